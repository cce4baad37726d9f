"""Inspection of an averaged classifier: its members, joint density, explanations, and posteriors of the members."""

import itertools
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.averaging import columns, draws, explanation, filling, missing
from bayesgen.averaging.given_the_rest import Members, Rows
from bayesgen.averaging.member import Product
from bayesgen.averaging.warp import far_rows
from bayesgen.inspection.missing import Joint
from bayesgen.posterior.posterior import generator

_SETTINGS = ("kind", "components", "covariance", "rho", "kappa", "shrinkage", "categories", "strength")
_SHARE = 0.995  # of the weight: the heaviest members, which stand for the average where entries are valued
_LIGHT = 1e-15  # share of the weight of a line below which a node adds nothing to a sum
_LEAST = 0.01  # least weight of a member whose posterior is returned


class AveragedJoint(Joint):
    """The joint density of columns and class under the untempered members of an average."""

    def __init__(self, classifier):
        self.classifier, self.average = classifier, classifier.average_
        self.log_prior = self.average.log_class_prior

    def read(self, X):
        """Return the numbers of the rows, and the codes of their categories."""
        rows = self.classifier._read(X)
        return rows | {"categories": np.where(rows["categories"] < 0, np.nan, rows["categories"])}

    def blocks(self, rows):
        """Return numbers and categories by block, NaN in the columns that were left out."""
        return columns.blocks(self.classifier.schema_, *arrays(rows), self.classifier.constant_)

    def log_density(self, rows):
        """Return the log density under the members, in the units of the columns."""
        return self.average.log_joint(*arrays(rows)) - self.log_prior

    def draw(self, count, rng):
        """Draw each row from a member of its own."""
        x, c = draws.rows(self.average, np.repeat(np.arange(len(self.log_prior)), count), rng)
        return {"numbers": x, "categories": c.astype(float)}

    def expected(self, rows, codes):
        """Fill in medians and modes."""
        refuse_far(self.classifier, rows["numbers"], "impute()")
        x, c = missing.expected(self.average, *arrays(rows), codes)
        return {"numbers": x, "categories": c.astype(float)}

    def filled(self, rows, codes, draws, rng):
        """Draw for each row a member, class and group that explain it, then entries."""
        refuse_far(self.classifier, rows["numbers"], "impute()")
        for x, c in zip(*filling.by_row(self.average, *arrays(rows), codes, draws, rng), strict=True):
            yield {"numbers": x, "categories": c.astype(float)}

    def filled_together(self, rows, codes, draws, rng, fitted):
        """Draw a member and its parameters, which know all rows, then classes, groups and entries given them."""
        refuse_far(self.classifier, rows["numbers"], "impute()")
        tables = filling.together(self.average, *arrays(rows), codes, rng, fitted)
        for x, c in itertools.islice(tables, draws):
            yield {"numbers": x, "categories": c.astype(float)}

    def knows(self, rows, codes):
        """Compare the sums of the rows with those of the fit."""
        return filling.knows(self.average, *arrays(rows), codes)

    def measured(self, rows):
        """Take all categories and a grid of numbers, under the members that have nearly all of the weight."""
        refuse_far(self.classifier, rows["numbers"], "next_measurement()")
        classifier, schema, (x, c) = self.classifier, self.classifier.schema_, arrays(rows)
        average = _heaviest(classifier.posterior_)
        names = columns.numbers(schema, classifier.constant_) + columns.categories(schema)
        places, ends = np.array([schema.columns.index(name) for name in names]), missing.reach(average)
        chance, answer = (Members(average, weights > 0) for weights in (average.density_weights, average.weights))

        def log(probability):
            with np.errstate(divide="ignore"):
                return np.log(probability)

        for own, part, gaps in missing.entries(answer, x, c):
            likely, now = Rows(chance, part.x, part.c), log(answer.probability(part.here()))
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
        nothing = np.zeros((len(self.log_prior), len(x)))
        for name in classifier.constant_:  # left out of the fit, so they tell nothing about the class
            yield (slice(None), schema.columns.index(name)), nothing, nothing[..., None], np.ones((len(x), 1))


def arrays(rows) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers, and codes of categories, -1 where missing, as members take them."""
    c = rows["categories"]
    return rows["numbers"], np.where(np.isnan(c), -1, c).astype(np.intp)


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


def members(classifier):
    """Return a table of the members, the heaviest first.

    Parameters
    ----------
    classifier : fitted AveragedClassifier
        The classifier whose members are listed.

    Returns
    -------
    DataFrame
        Columns "kind" (generative, softmax, forest, boosted, base rate), "components", "covariance", "rho", "kappa",
        "shrinkage" (of the numbers), "categories", "strength", "leaves" (of a boosted tree), "exponent", "weight",
        "share", the weight of all members of its family, and "log score", the mean over rows left out.

    Examples
    --------
    >>> from bayesgen import AveragedClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> table = members(AveragedClassifier(members=["gaussian", "category", "softmax"]).fit(X[::5], y[::5]))
    >>> float(table["weight"].sum().round(12))
    1.0
    """
    import pandas as pd

    check_is_fitted(classifier)
    frame = pd.DataFrame([member.settings() for member in classifier.members_])
    first = [*_SETTINGS, *(name for name in frame if name not in _SETTINGS)]
    frame = frame.reindex(columns=first).astype({"components": object, "covariance": object, "categories": object})
    frame["exponent"], frame["weight"] = classifier.exponents_, classifier.weights_
    family = pd.Series([member.family for member in classifier.members_])
    frame["share"] = frame["weight"].groupby(family).transform("sum")
    frame["log score"] = classifier.scores_["members"]
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def refuse_far(classifier, x, question: str) -> None:
    """Raise if a number is so far out that only limits of densities are left, which `question` cannot take.

    Parameters
    ----------
    classifier : fitted AveragedClassifier
        The classifier whose bends measure how far a number is.
    x : array, shape (n, D)
        Numbers, NaN where missing.
    question : str
        Name of the question, for the message.
    """
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
    x, c = classifier._read(X).values()
    refuse_far(classifier, x, "explain()")
    terms = explanation.terms(classifier.posterior_, x, c)
    schema, left_out = classifier.schema_, classifier.constant_
    names = [*columns.numbers(schema, left_out), *columns.categories(schema)]
    order = [1 + names.index(name) for name in schema.columns if name in names]
    return [names[j - 1] for j in order] + ["remainder"], [terms[..., j] for j in (0, *order, -1)]


def member_posteriors(classifier):
    """Return draws of the parameters of each generative member of some weight: the method `to_arviz`."""
    import xarray as xr

    fitted, rng = classifier.average_, generator(classifier.random_state)
    heavy = [m for m in np.argsort(-fitted.weights, kind="stable") if fitted.weights[m] >= _LEAST]
    groups = {}
    for m in heavy:
        member = fitted.members[m]
        if not isinstance(member, Product):
            continue
        own = draws.parameters(fitted, member, (4, 250), rng)
        dims = {dim for variable, _ in own.values() for dim in variable}
        labels = {dim: values for dim, values in _labels(classifier, member).items() if dim in dims}
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
