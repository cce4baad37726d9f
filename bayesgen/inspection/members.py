"""Inspection of an averaged classifier: a table of its members, explanations, and posteriors of the members."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from bayesgen.averaging import families
from bayesgen.averaging.average import Average
from bayesgen.averaging.member import NUMBERS
from bayesgen.averaging.outside import refuse_long
from bayesgen.core.errors import InputError
from bayesgen.core.registry import fitted_of
from bayesgen.inspection.fitted import FittedDensity, known_classes
from bayesgen.inspection.joint_of_average import JointOfAverage, refuse_far
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.models.classifier import NaiveBayes
from bayesgen.numerics.draws import generator
from bayesgen.numerics.pieces import taken
from bayesgen.numerics.special import log_mixture
from bayesgen.numerics.tempering import log_probability
from bayesgen.numerics.yeo_johnson import YeoJohnson
from bayesgen.tables import arrays

_SETTINGS = ("kind", "components", "covariance", "rho", "kappa", "shrinkage", "categories", "strength")
_LEAST = 0.01  # least weight of a member whose posterior is returned


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedAverage(FittedDensity):
    """A fitted average of many members; ``priors`` and ``members`` are settings of `AveragedClassifier`."""

    average_: Average  # the members with their weights, under the learned class probabilities
    constant_: Mapping[str, float]  # columns that were constant at the fit, and are left out
    scores_: Mapping[str, Any]  # what was found of the members on rows left out
    priors: Any = None
    members: Any = "all"

    @property
    def posterior_(self) -> Average:
        """The average under ``priors``, or under the learned class probabilities."""
        if self.priors is None:
            return self.average_
        return replace(self.average_, given=known_classes(self.priors, self.classes_).probability)

    def read(self, X):
        table = self.table(X)
        if pairs := families.pairs(self.members):
            refuse_long([name for name, _ in pairs], table.renamed(self.schema_.columns), self.schema_)
        blocks = self.schema_.read(table, self.unseen)
        x, c = arrays.numbers_and_codes(self.schema_, blocks, self.constant_)
        rows, e = {"numbers": x, "categories": c}, arrays.entries(self.schema_, blocks)
        if self.average_.leaves is None or e is None:
            return rows
        self.average_.leaves.check(e)
        return rows | {"leaves": e}

    def read_for_draws(self, X):
        rows = self.read(X)
        refuse_far(self, rows["numbers"], "draws of class probabilities")
        return rows

    def joint(self):
        self._with_density()
        return JointOfAverage(self)

    def _with_density(self) -> Average:
        """Return the average, or raise an error where no member has a density of a row."""
        if not self.average_.density_weights.any():
            raise ValueError(
                f"no member has a density of all columns, which this question needs: members={self.members!r:.100} has "
                "no generative ones for them; add 'generative'"
            )
        return self.average_

    def terms(self, X):
        rows = self.read(X)
        refuse_far(self, rows["numbers"], "explain()")
        terms = _terms(self.posterior_, *rows.values())
        schema, left_out, leaves = self.schema_, self.constant_, self.average_.leaves
        leaf_parts = [] if leaves is None else leaves.parts()
        plain = [*arrays.numbers(schema, left_out), *arrays.categories(schema, left_out)]
        first = [*plain, *(of[0] for _, of, _ in leaf_parts)]
        names = [*plain, *(name for name, _, _ in leaf_parts)]
        order = sorted(range(len(first)), key=lambda j: schema.columns.index(first[j]))
        return [*(names[j] for j in order), "remainder"], [terms[..., j] for j in (0, *(1 + j for j in order), -1)]

    def model_of(self, place: int) -> tuple[NaiveBayes, YeoJohnson | None]:
        """Return the member in a row of `summary` as a model of rows by leaf, and the bends of its "numbers"."""
        average, order = self.average_, np.argsort(-self.average_.weights, kind="stable").tolist()
        if place not in range(len(order)):
            raise ValueError(f"member must be a row of summary(), 0 to {len(order) - 1}, got {place!r}")
        member, names = average.members[order[place]], arrays.categories(self.schema_, self.constant_)
        parts, beside = [fitted.leaves(where, names) for fitted, where in average.places(member)], average.leaves
        parts += [beside.model.leaves] if beside is not None and getattr(member, "leaves", ()) else []
        leaves = {name: leaf for part in parts for name, leaf in part.items()}
        if not leaves or not all(parts) or len(leaves) < sum(map(len, parts)):
            told = "is no product of leaves, as a plain program is: take another row of summary(), of kind 'generative'"
            raise InputError(f"the member {member.family!r} {told}")
        columns = {NUMBERS: arrays.numbers(self.schema_, self.constant_)} | dict(beside.model.columns if beside else ())
        classes = DirichletCategorical(average.concentration, self.classes_.tolist())
        model = NaiveBayes(classes, leaves, columns={name: tuple(columns[name]) for name in leaves if name in columns})
        return model, average.bend if NUMBERS in leaves else None

    def predict_proba(self, X, priors=None) -> np.ndarray:
        """Return the probability of each class, (n, K), columns in the order of ``classes_``.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows; missing entries are integrated out.
        priors : array, shape (K,), or mapping or Series from class to float, optional
            Class probabilities of the population to decide for; the averaged probability is multiplied by their ratio
            to the learned ones.
        """
        rows, held = self.read(X), self if priors is None else replace(self, priors=priors)
        return held.posterior_.probability(*rows.values())

    def predict_joint_log_proba(self, X) -> np.ndarray:
        """Return log p(x, t = k), (n, K), under the untempered members, weighted by stacking on rows left out."""
        return self._with_density().log_joint(*self.read(X).values())

    def draw(self, count, rng):
        density = self.joint()
        classes = np.exp(density.log_prior)
        codes = rng.choice(len(classes), count, p=classes / classes.sum())
        return density.blocks(density.components().draw(density.nothing(), codes, rng)), codes


def summary(classifier):
    """Return a table of the members, the heaviest first.

    Returns
    -------
    DataFrame
        A row for each member, with the columns "kind" (generative, softmax, screened, coded, forest, boosted,
        base rate), "components", "covariance", "rho", "kappa", "shrinkage" (of the numbers), "categories",
        "strength", "columns" (how many a screened member takes, or how many numbers a coded one takes as
        categories), "leaves" (the most of a boosted tree, or the names of the columns with leaves of their own),
        "sums" (True if boosted trees see weighted sums of the numbers too),
        "rows" (the rows from which it learned what is no sum, such as bends, components, coefficients and
        trees: fewer than there are where the time would be too long), "as of row" (where it learned on: members that
        are no sums stay as the first fit made them), "exponent", "weight", "share", the weight of
        all members of its family, and "log score", the mean over rows left out. Its ``attrs`` have the "log loss" to
        expect of new rows, its "standard error", and what is "left out" at a time; see ``scores_`` of the classifier.

    Examples
    --------
    >>> from bayesgen import AveragedClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> table = summary(AveragedClassifier(members=["gaussian", "category", "softmax"]).fit(X[::5], y[::5]))
    >>> float(table["weight"].sum().round(12))
    1.0
    >>> round(table.attrs["log loss"], 1), table.attrs["left out"]
    (0.1, 'rows')
    """
    import pandas as pd

    average, scores = fitted_of(classifier).average_, fitted_of(classifier).scores_
    frame = pd.DataFrame([member.settings() for member in average.members])
    first = [*_SETTINGS, *(name for name in frame if name not in _SETTINGS)]
    frame = frame.reindex(columns=first).astype({"components": object, "covariance": object, "categories": object})
    frame["rows"] = scores["learned"]
    if "as of" in scores:
        frame["as of row"] = scores["as of"]
    frame["exponent"], frame["weight"] = average.exponents, average.weights
    family = pd.Series([member.family for member in average.members])
    frame["share"] = frame["weight"].groupby(family).transform("sum")
    frame["log score"] = scores["members"]
    frame = frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)
    frame.attrs = {"log loss": -scores["nested"], "standard error": scores["nested_error"]}
    frame.attrs["left out"] = scores.get("leaving", "rows")
    return frame


def _terms(average, x, c, e=None) -> np.ndarray:
    r"""Return the terms of prior, numbers, categories, P parts of leaves, and remainder, (n, K, 1 + D + F + P + 1).

    .. math:: e_{kj} = \beta \sum_m w_m \tau_m \big(\log p_m(x \mid k) - \log p_m(x_{-j} \mid k)\big), \qquad
       r_k = \log p(k \mid x) - \log \pi_k - \sum_j e_{kj}

    each centred over the classes; x_{-j} is x with the entry of column j integrated out. Columns with leaves follow the
    others; those of a leaf that are one observation have one term.
    """
    leaves = cast(Any, average.leaves)
    parts = [] if average.leaves is None else leaves.parts()
    log_prior = average.log_class_prior if average.given is None else np.log(average.given)
    result = np.empty((len(x), len(log_prior), x.shape[1] + c.shape[1] + len(parts) + 2))
    result[..., 0] = log_prior
    used = average.weights > 0
    weights, exponents, least = average.weights[used], average.exponents[used], average.roster.least[used]
    share = average.sharpening * weights * exponents
    carried = share[average.roster.carries[used]].sum()
    for piece in average.pieces(len(x), used):
        entries = taken(e, piece)
        density = average.log_density(x[piece], c[piece], used, entries)
        whole = np.tensordot(share, density, 1)
        log_q = log_probability(density.swapaxes(1, 2), average.log_class_prior[:, None], exponents, least)
        gain = log_mixture(log_q, weights).T - average.log_class_prior  # finite where p itself is 0
        result[piece, :, -1] = average.sharpening * gain + log_prior
        numbers = ((without, c[piece]) for without in _each_missing(x[piece], np.nan))
        categories = ((x[piece], without) for without in _each_missing(c[piece], -1))
        for j, blocks in enumerate(itertools.chain(numbers, categories), 1):
            result[piece, :, j] = whole - np.tensordot(share, average.log_density(*blocks, used, entries), 1)
        for j, without in enumerate(_each_missing(entries, np.nan, [places for _, _, places in parts])):
            term = leaves.log_density(entries) - leaves.log_density(without)
            result[piece, :, 1 + x.shape[1] + c.shape[1] + j] = carried * term
    result[..., -1] -= result[..., :-1].sum(2)
    return result - result.mean(1, keepdims=True)


def _each_missing(values, missing, places: Iterable[Any] | None = None) -> Iterator[np.ndarray]:
    """Yield copies of the rows without the columns at one of the ``places``; by default without one column."""
    for place in range(values.shape[1]) if places is None else places:
        without = values.copy()
        without[:, place] = missing
        yield without


def to_arviz(classifier):
    """Return draws of the parameters of each generative member of some weight, as an `xarray.DataTree`.

    A weighted average of tempered members has no single posterior, so each member has its own: the group "member 0"
    is the heaviest, and so on down to weight 0.01. Each group has the attributes "weight" and "exponent", and an
    untempered "posterior" of the means and covariances (or variances) of the classes, in the units of the bent
    columns, of the probabilities of levels and classes, and of the sites of leaves, such as "visits.rate". A level
    is named with its column ("soil = clay"). Softmax members are points and have no posterior.
    """
    import xarray as xr

    classifier = fitted_of(classifier)
    fitted, rng = classifier.average_, generator(classifier.random_state)
    heavy = [m for m in np.argsort(-fitted.weights, kind="stable") if fitted.weights[m] >= _LEAST]
    groups = {}
    for m in heavy:
        member = fitted.members[m]
        if not fitted.drawn(member):
            continue
        drawn = fitted.parameters(member, (4, 250), rng)
        dims = {dim for variable, _ in drawn.values() for dim in variable}
        named = (fitted.leaves.posterior.coords() if member.leaves else {}) | _labels(classifier, member)
        labels = {dim: values for dim, values in named.items() if dim in dims}
        place = f"member {len(groups) // 2}"
        groups[f"/{place}"] = xr.Dataset(attrs={"weight": fitted.weights[m], "exponent": fitted.exponents[m]})
        groups[f"/{place}"].attrs["family"] = member.family
        variables = {site: (("chain", "draw", *axes), values) for site, (axes, values) in drawn.items()}
        groups[f"/{place}/posterior"] = xr.Dataset(variables, coords={"chain": range(4), "draw": range(250)} | labels)
    result = xr.DataTree.from_dict(groups)
    result.attrs["inference_library"] = "bayesgen"
    return result


def _labels(classifier, member) -> dict[str, list]:
    schema, classes = classifier.schema_, classifier.classes_.tolist()
    numeric, level = (names(schema, classifier.constant_) for names in (arrays.numbers, arrays.level_names))
    labels = {"class": classes, "feature": numeric, "feature2": numeric, "level": level}
    for fit, place in classifier.average_.places(member):
        owner = fit.factor(place).owner.tolist()
        if len(owner) > len(classes):
            labels["group"] = [f"{classes[k]}, component {owner[:g].count(k)}" for g, k in enumerate(owner)]
    return labels
