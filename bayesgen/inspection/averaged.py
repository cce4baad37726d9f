"""Inspection of an averaged classifier: its members, joint density, explanations, and posteriors of the members."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.averaging import columns, draws, explanation, filling, missing
from bayesgen.averaging.given_the_rest import Members, Rows
from bayesgen.averaging.warp import far_rows
from bayesgen.inspection.joint_of_model import along, expectations, totals_of
from bayesgen.inspection.missing import Components, Joint, gaps_of
from bayesgen.numerics.pieces import DENSITIES, pieces, taken
from bayesgen.posterior.posterior import ExactPosterior, generator
from bayesgen.tables.schema import Schema

_SETTINGS = ("kind", "components", "covariance", "rho", "kappa", "shrinkage", "categories", "strength")
_SHARE = 0.995  # of the weight: the heaviest members, which stand for the average where entries are valued
_LIGHT = 1e-15  # share of the weight of a line below which a node adds nothing to a sum
_LEAST = 0.01  # least weight of a member whose posterior is returned


@dataclass(frozen=True)
class _Alone:
    """The columns with leaves of an averaged classifier, as a classifier of one model."""

    posterior_: ExactPosterior
    schema_: Schema
    log_prior: np.ndarray

    @property
    def classifier(self) -> "_Alone":
        """Itself: the joint density of a classifier has one."""
        return self


class AveragedJoint(Joint):
    """The joint density of columns and class under the untempered members of an average."""

    def __init__(self, classifier):
        self.classifier, self.average = classifier, classifier.average_
        self.log_prior = self.average.log_class_prior
        self.leaves: Any = self.average.leaves
        self.own = replace(classifier.schema_, blocks=columns.leaves(classifier.schema_))

    def read(self, X):
        """Return the numbers of the rows, the codes of their categories, and the entries of the columns with leaves."""
        rows = self.classifier._read(X)
        return rows | {"categories": np.where(rows["categories"] < 0, np.nan, rows["categories"])}

    def blocks(self, rows):
        """Return the entries by block, NaN in the columns that were left out."""
        return columns.blocks(self.classifier.schema_, *arrays(rows), self.classifier.constant_)

    def totals(self):
        """Return the leaves of counts given their total."""
        return {} if self.leaves is None else totals_of(self.leaves.model)

    def log_density(self, rows):
        """Return the log density under the members, in the units of the columns."""
        return self.average.log_joint(*arrays(rows)) - self.log_prior

    def draw(self, count, rng):
        """Draw each row from a member of its own."""
        return _rows(*draws.rows(self.average, np.repeat(np.arange(len(self.log_prior)), count), rng))

    def expected(self, rows, codes):
        """Fill in medians and modes; in columns with leaves the means that the leaves say."""
        refuse_far(self.classifier, rows["numbers"], "impute()")
        x, c, e = arrays(rows)
        filled = missing.expected(self.average, x, c, e, codes)
        if self.leaves is None:
            return _rows(*filled)
        weight = softmax(self.average.log_joint(x, c, e).T, axis=0)
        if codes is not None:
            weight = np.equal.outer(np.arange(len(weight)), codes).astype(float)
        own = self.leaves.blocks(e.copy())
        for gap, values in expectations(self._components(), self.own, self.leaves.blocks(e), weight[None]):
            own[gap.block].reshape(len(x), -1)[gap.rows, gap.place] = values
        return _rows(*filled, self.leaves.joined(own))

    def _along(self, e) -> Iterator[tuple[Any, np.ndarray, Any]]:
        """Yield the missing entries of rows in columns with leaves, log p(v | k) at values v, (K, n, Q), and widths."""
        components, own, students = self._components(), self.leaves.blocks(e), {}
        nothing = np.zeros((1, len(self.log_prior), len(e)))
        for gap in gaps_of(self.own, own):
            yield gap, *along(components, gap, own, nothing, students)

    def _components(self) -> Components:
        """Return the components of the columns with leaves: the classes."""
        return Components(_Alone(self.leaves.exact, self.own, self.log_prior))

    def filled(self, rows, codes, draws, rng):
        """Draw for each row a member, class and group that explain it, then entries."""
        refuse_far(self.classifier, rows["numbers"], "impute()")
        x, c, e = filling.by_row(self.average, *arrays(rows), codes, draws, rng)
        for draw in range(draws):
            yield _rows(x[draw], c[draw], taken(e, draw))

    def filled_together(self, rows, codes, draws, rng, fitted):
        """Draw a member and its parameters, which know all rows, then classes, groups and entries given them."""
        refuse_far(self.classifier, rows["numbers"], "impute()")
        for filled in itertools.islice(filling.together(self.average, *arrays(rows), codes, rng, fitted), draws):
            yield _rows(*filled)

    def knows(self, rows, codes):
        """Compare the sums of the rows with those of the fit."""
        return filling.knows(self.average, *arrays(rows), codes)

    def measured(self, rows):
        """Take all categories and a grid of numbers, under the members that have nearly all of the weight."""
        refuse_far(self.classifier, rows["numbers"], "next_measurement()")
        classifier, schema, (x, c, e) = self.classifier, self.classifier.schema_, arrays(rows)
        average = _heaviest(classifier.posterior_)
        names = columns.numbers(schema, classifier.constant_) + columns.categories(schema)
        places, ends = np.array([schema.columns.index(name) for name in names]), missing.reach(average)
        chance, answer = (Members(average, weights > 0) for weights in (average.density_weights, average.weights))

        def log(probability):
            with np.errstate(divide="ignore"):
                return np.log(probability)

        for own, part, gaps in missing.entries(answer, x, c, e):
            likely, now = Rows(chance, part.x, part.c, part.e), log(answer.probability(part.here()))
            for row, column in gaps:
                values, y, log_joint = missing.grid(likely, row, column, ends)
                weight = missing.mass(y, log_joint).sum(0)
                heavy = np.argsort(-weight, axis=1)[:, : (weight > _LIGHT).sum(1).max()]
                values, y, weight = (np.take_along_axis(nodes, heavy, 1) for nodes in (values, y, weight))
                then = log(answer.probability(part.along(row, column, values, y)))
                yield (own[row], places[column]), now[:, row], then, weight
            for j in range(c.shape[1]):
                row = np.flatnonzero(part.c[:, j] < 0)
                if len(row):
                    weight = softmax(logsumexp(chance.log_joint(likely.levels(row, j)), axis=0), axis=1)
                    then = log(answer.probability(part.levels(row, j)))
                    yield (own[row], places[x.shape[1] + j]), now[:, row], then, weight
            if self.leaves is not None:
                joint = chance.log_joint(likely.here())
                for gap, density, log_width in self._along(part.e):
                    for piece in pieces(len(gap.rows), len(answer.weights) * density[:, 0].size, DENSITIES):
                        row, values = gap.rows[piece], density[:, piece]
                        width = log_width if np.ndim(log_width) == 0 else log_width[piece]
                        weight = softmax(logsumexp(joint[:, row, None] + values, axis=0) + width, axis=1)
                        then = log(answer.probability(part.with_leaf(row, values)))
                        yield (own[row], gap.column), now[:, row], then, weight
        nothing = np.zeros((len(self.log_prior), len(x)))
        for name in classifier.constant_:  # left out of the fit, so they tell nothing about the class
            yield (slice(None), schema.columns.index(name)), nothing, nothing[..., None], np.ones((len(x), 1))


def arrays(rows) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return numbers, codes of categories, -1 where missing, and entries of leaves, as members take them."""
    c = rows["categories"]
    return rows["numbers"], np.where(np.isnan(c), -1, c).astype(np.intp), rows.get("leaves")


def _rows(x, c, e=None) -> dict[str, np.ndarray]:
    """Return rows by kind from the arrays that members take."""
    rows = {"numbers": x, "categories": c.astype(float)}
    return rows if e is None else rows | {"leaves": e}


def _heaviest(average):
    """Return the average of the members with nearly all of the weight, for classes and for densities each."""

    def kept(weights):
        order = np.argsort(-weights, kind="stable")
        some = order[: 1 + np.searchsorted(np.cumsum(weights[order]), _SHARE)]
        result = np.zeros_like(weights)
        result[some] = weights[some]
        return result / result.sum()

    return replace(average, weights=kept(average.weights), density_weights=kept(average.density_weights))


def check_averaged(classifier, question: str) -> None:
    """Raise if a question about averaged classifiers is put to another classifier."""
    check_is_fitted(classifier)
    if not hasattr(classifier, "members_"):
        raise TypeError(f"{question} is about an AveragedClassifier, got a {type(classifier).__name__}")


def summary(classifier):
    """Return a table of the members, the heaviest first.

    Returns
    -------
    DataFrame
        A row for each member, with the columns "kind" (generative, softmax, screened, coded, forest, boosted,
        base rate), "components", "covariance", "rho", "kappa", "shrinkage" (of the numbers), "categories",
        "strength", "columns" (how many a screened member takes, or how many numbers a coded one takes as
        categories), "leaves" (the most of a boosted tree, or the names of the columns with leaves of their own),
        "rows" (the distinct rows from which it learned what is no sum, such as bends, components, coefficients and
        trees: fewer than there are where the time would be too long), "exponent", "weight", "share", the weight of
        all members of its family, and "log score", the mean over rows left out.

    Examples
    --------
    >>> from bayesgen import AveragedClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> table = summary(AveragedClassifier(members=["gaussian", "category", "softmax"]).fit(X[::5], y[::5]))
    >>> float(table["weight"].sum().round(12))
    1.0
    """
    import pandas as pd

    check_is_fitted(classifier)
    frame = pd.DataFrame([member.settings() for member in classifier.members_])
    first = [*_SETTINGS, *(name for name in frame if name not in _SETTINGS)]
    frame = frame.reindex(columns=first).astype({"components": object, "covariance": object, "categories": object})
    frame["rows"] = classifier.scores_.get("learned", np.nan)  # a file of 0.2.0 does not say
    frame["exponent"], frame["weight"] = classifier.exponents_, classifier.weights_
    family = pd.Series([member.family for member in classifier.members_])
    frame["share"] = frame["weight"].groupby(family).transform("sum")
    frame["log score"] = classifier.scores_["members"]
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def refuse_far(classifier, x, question: str) -> None:
    """Raise if a number of rows (n, D) is so far out that only limits of densities are left, useless for a question."""
    for view in classifier.average_.taking("numbers")[:1]:
        y = view.view.warp.forward(x)
        for row in far_rows(np.where(np.isnan(y), 0.0, y))[:1]:
            place = np.nanargmax(np.abs(y[row]))
            name = columns.numbers(classifier.schema_, classifier.constant_)[place]
            raise ValueError(
                f"column {name!r}: value {x[row, place]:g} in row {row} is too far from the rows of the fit for "
                f"{question}: give NaN in its place, or leave the row out"
            )


def averaged_terms(classifier, X):
    """Return the names and terms (n, K, terms) by which `explain` explains an averaged classifier."""
    rows = classifier._read(X)
    refuse_far(classifier, rows["numbers"], "explain()")
    terms = explanation.terms(classifier.posterior_, *rows.values())
    schema, left_out, leaves = classifier.schema_, classifier.constant_, classifier.average_.leaves
    own = [] if leaves is None else leaves.parts()
    first = [*columns.numbers(schema, left_out), *columns.categories(schema), *(of[0] for _, of, _ in own)]
    names = [*first[: len(first) - len(own)], *(name for name, _, _ in own)]
    order = sorted(range(len(first)), key=lambda j: schema.columns.index(first[j]))
    return [*(names[j] for j in order), "remainder"], [terms[..., j] for j in (0, *(1 + j for j in order), -1)]


def to_arviz(classifier):
    """Return draws of the parameters of each generative member of some weight, as an `xarray.DataTree`.

    A weighted average of tempered members has no single posterior, so each member has its own: the group "member 0"
    is the heaviest, and so on down to weight 0.01. Each group has the attributes "weight" and "exponent", and an
    untempered "posterior" of the means and covariances (or variances) of the classes, in the units of the bent
    columns, of the probabilities of levels and classes, and of the sites of leaves, such as "visits.rate". A level
    is named with its column ("soil = clay"). Softmax members are points and have no posterior.
    """
    import xarray as xr

    fitted, rng = classifier.average_, generator(classifier.random_state)
    heavy = [m for m in np.argsort(-fitted.weights, kind="stable") if fitted.weights[m] >= _LEAST]
    groups = {}
    for m in heavy:
        member = fitted.members[m]
        if not fitted.drawn(member):
            continue
        own = draws.parameters(fitted, member, (4, 250), rng)
        dims = {dim for variable, _ in own.values() for dim in variable}
        named = (fitted.leaves.posterior.coords() if member.leaves else {}) | _labels(classifier, member)
        labels = {dim: values for dim, values in named.items() if dim in dims}
        place = f"member {len(groups) // 2}"
        groups[f"/{place}"] = xr.Dataset(attrs={"weight": fitted.weights[m], "exponent": fitted.exponents[m]})
        groups[f"/{place}"].attrs["family"] = member.family
        variables = {site: (("chain", "draw", *axes), values) for site, (axes, values) in own.items()}
        groups[f"/{place}/posterior"] = xr.Dataset(variables, coords={"chain": range(4), "draw": range(250)} | labels)
    result = xr.DataTree.from_dict(groups)
    result.attrs["inference_library"] = "bayesgen"
    return result


def _labels(classifier, member) -> dict[str, list]:
    """Return the names along each axis that the parameters of a member may have."""
    schema, classes = classifier.schema_, classifier.classes_.tolist()
    numeric = columns.numbers(schema, classifier.constant_)
    labels = {"class": classes, "feature": numeric, "feature2": numeric, "level": columns.level_names(schema)}
    if member.numbers is not None:
        view, _ = classifier.average_.place(member.numbers)
        owner = view.view.owner.tolist()
        labels["group"] = [f"{classes[k]}, component {owner[:g].count(k)}" for g, k in enumerate(owner)]
    return labels
