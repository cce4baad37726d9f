"""Leaves of columns that the user gave a model: one more factor of every generative member.

Each block of columns has a conjugate leaf of `bayesgen.models` or of the user's own, whose parameters are integrated
out ("Leaves" in `docs/mathematics/averaged.md`). All members share these factors, and temper them like their densities.
"""

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bayesgen.averaging.member_rows import HeldOut
from bayesgen.core.errors import Argument, InputError, InputTypeError, listed
from bayesgen.core.program import Record, static
from bayesgen.core.statistics import all_but_one, departures
from bayesgen.models.beside_constants import marked_per_class
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.classifier import NaiveBayes
from bayesgen.models.model import is_conjugate
from bayesgen.numerics.sums import Grouping


@dataclass(frozen=True, eq=False)
class ColumnModels(Record):
    """Leaves of some blocks of columns, and the statistics of their rows by class.

    Rows are arrays e (n, E) of all columns of the blocks, side by side, NaN where missing.
    """

    # the leaves by block; while members are fitted, weak priors are still to come. Its class prior is not used.
    model: NaiveBayes
    statistics: ClassStatistics  # statistics of all rows
    # blocks of one column, whose leaf takes entries (n,) rather than (n, 1)
    single: tuple[str, ...] = static(default=())

    @classmethod
    def of(cls, model: NaiveBayes, single, e, codes, weight) -> "ColumnModels":
        """Check and sum rows; weak priors are still to come."""
        blocks = _split(model, single, e)
        rows = Grouping.of(len(e), codes, len(model.class_names), weight)
        return cls(model, model.sum_rows(blocks, rows), tuple(single))

    def settled(self) -> "ColumnModels":
        """Return the leaves with weak priors that follow the statistics; raise if one has no exact posterior."""
        model = self.model.with_prior(self.statistics)
        for name, leaf in model.leaves.items():
            if not is_conjugate(leaf):
                raise InputTypeError(
                    f"columns {listed(model.columns_of(name))}: a {type(leaf).__name__} has no posterior in closed "
                    "form, and an average takes conjugate leaves; give one, or use NaiveBayesClassifier with ",
                    Argument("inference", "nuts"),
                )
            if not leaf.has_closed_form(self.statistics.leaves[name]):
                raise InputError(
                    f"columns {listed(model.columns_of(name))}: rows are partly missing, and then a "
                    f"{type(leaf).__name__} has no posterior in closed form: leave these rows out, or give each column "
                    "a leaf of its own"
                )
        return replace(self, model=model)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, and of blocks that are one observation."""
        return tuple(name for name, _, _ in self.parts())

    @functools.cached_property
    def posterior(self) -> NaiveBayes:
        """All leaves with their posteriors."""
        return self.model.update(self.statistics)

    def of_rows(self, e, codes, weight=None) -> "ColumnModels":
        """Return the same leaves, with the statistics of other rows."""
        return ColumnModels.of(self.model, self.single, e, codes, np.ones(len(e)) if weight is None else weight)

    def has_closed_form(self, e) -> bool:
        """Tell if the leaves have a posterior in closed form given rows with these gaps."""
        return self.model.has_closed_form(self.of_rows(e, np.zeros(len(e), np.intp)).statistics)

    def hyperparameters(self) -> list[np.ndarray]:
        """Return the hyperparameters of all posteriors, in order."""
        posteriors = self.posterior.leaves.values()
        return [np.asarray(getattr(p, f.name)) for p in posteriors for f in fields(p) if "rank" in f.metadata]

    def blocks(self, e) -> dict[str, np.ndarray]:
        """Return rows by block, as the leaves take them."""
        return _split(self.model, self.single, e)

    def check(self, e) -> None:
        """Raise, by the names of the columns, if an entry is none that a leaf can take."""
        self.posterior.check(self.blocks(e))

    def parts(self) -> list[tuple[str, tuple[str, ...], np.ndarray]]:
        """Return name, columns and places in e of the entries that are missing together: single ones, or a block."""
        result, start = [], 0
        for name, leaf in self.model.leaves.items():
            columns = self.model.columns_of(name)
            places = start + np.arange(len(columns))
            if leaf.event_dim:
                result.append((name, columns, places))
            else:
                result += [(column, (column,), places[j : j + 1]) for j, column in enumerate(columns)]
            start += len(columns)
        return result

    def log_density(self, e) -> np.ndarray:
        """Return log p(x_j | k) of rows, summed over the blocks, (n, K)."""
        x = self.blocks(e)
        each = self.posterior.leafwise(lambda name, leaf: leaf.log_predictive(x[name]).reshape(len(e), -1))
        return sum(each.values(), np.zeros((len(e), len(self.model.class_names))))

    def loo_log_density(self, held: HeldOut) -> np.ndarray:
        """Return the log density of rows held out, (n, K), each without the rows that leave with it.

        Weak priors follow the rows that are left.
        """
        data, predicted_rows = held.data, self.blocks(held.rows.e)
        x = self.blocks(data.e)

        def each(name, leaf):
            def summed(places, weight=data.weight):
                rows = Grouping(data.codes[places], data.classes, weight[places], (data.classes,))
                return leaf.sum_rows(x[name][places], rows)

            def predicted(others, rows):
                posterior = marked_per_class(leaf.with_prior(others).update(others))
                return posterior.log_predictive(predicted_rows[name][rows]).reshape(-1, data.classes)

            result = np.empty((len(held), data.classes))
            if not held.single:
                leaving = departures(len(held.gone_with), held.gone_with)
                parts = [held.places[places] for places in leaving]
                outside = summed(np.delete(np.arange(len(data)), held.places))
                for departure, others in enumerate(all_but_one(summed, parts, outside)):
                    predicted_here = np.flatnonzero(held.without == departure)
                    result[predicted_here] = predicted(others, predicted_here)
                return result
            places, removed = held.places, held.gone.weight
            known: dict[Any, int] = {}  # rows that are the same to this leaf are left out once
            same = [(data.codes[i], r, x[name][i].tobytes()) for i, r in zip(places, removed, strict=True)]
            place = np.array([known.setdefault(key, len(known)) for key in same], np.intp)
            first = np.unique(place, return_index=True)[1]
            outside = summed(np.delete(np.arange(len(data)), places[first]))
            remaining = all_but_one(summed, [places[j : j + 1] for j in first], outside)
            for j, others in zip(first, remaining, strict=True):
                i, r = places[j], removed[j]
                if data.weight[i] > r:
                    others = others + summed(slice(i, i + 1), data.weight - r)
                result[j] = predicted(others, slice(j, j + 1))
            return result[first[place]]

        return sum(self.model.leafwise(each).values(), np.zeros((len(held), data.classes)))

    def seconds(self) -> float:
        """Estimate the seconds to leave out one row."""
        return 1e-3 * len(self.model.leaves) + 1e-7 * self.width * len(self.model.class_names)

    # -- under draws of the parameters -------------------------------------------------------------------------------

    def draws(self, rng, size) -> Mapping[str, np.ndarray]:
        """Draw the parameters of all leaves, (*size, K, ...) by site."""
        drawn = self.posterior.sample_parameters(rng, size)
        return {site: v for site, v in drawn.items() if site.rpartition(".")[0] != NaiveBayes.CLASSES}

    def density_under(self, params, e) -> np.ndarray:
        """Return the log density of rows under draws of the parameters, (size, n, K)."""
        model = self.posterior
        x = model.check(self.blocks(e))
        leaves = model.leaves.items()
        each = (leaf.log_likelihood_rows(model.site(params, name), x[name]).swapaxes(1, 2) for name, leaf in leaves)
        return sum(each, np.zeros(1))

    def joined(self, blocks) -> np.ndarray:
        """Return the inverse of `blocks`."""
        return np.concatenate([blocks[name].reshape(len(blocks[name]), -1) for name in self.model.leaves], axis=1)

    @property
    def width(self) -> int:
        """Number of columns."""
        return sum(len(self.model.columns_of(name)) for name in self.model.leaves)


def _split(model: NaiveBayes, single, e) -> dict[str, np.ndarray]:
    widths = [len(model.columns_of(name)) for name in model.leaves]
    bounds = itertools.pairwise([0, *itertools.accumulate(widths)])
    by_block = {name: e[:, start:stop] for name, (start, stop) in zip(model.leaves, bounds, strict=True)}
    return {name: v[:, 0] if name in single else v for name, v in by_block.items()}
