"""Questions to an averaged classifier: what was averaged, why, how sure, and the posteriors of its members."""

import abc
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.averaging import average, columns, draws, explanation
from bayesgen.averaging.warp import far_rows
from bayesgen.numerics.pieces import DENSITIES
from bayesgen.posterior.posterior import generator

_SETTINGS = ("kind", "components", "covariance", "rho", "kappa", "shrinkage", "categories", "strength")
_LEAST = 0.01  # weight from which a member's posterior is returned


class Averaged(abc.ABC):
    """What questions ask of an averaged classifier: those that go another way for it look whether it is one.

    Attributes
    ----------
    average_ : Average
        The members with their statistics, exponents and weights.
    classes_ : array, shape (K,)
        Class labels.
    schema_ : Schema
        What was learned of the columns.
    constant_ : tuple of str
        Numeric columns that are left out.
    priors : array, shape (K,), or None
        Class probabilities of the population to decide for.
    """

    average_: average.Average
    classes_: np.ndarray
    schema_: Any
    constant_: tuple[str, ...]
    priors: Any
    random_state: Any

    @abc.abstractmethod
    def _read(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (n, numeric columns), and codes of categories (n, others), -1 where missing."""

    @abc.abstractmethod
    def _known(self, priors) -> np.ndarray:
        """Class probabilities (K,) that a user gives, checked."""


def check_averaged(classifier, question: str) -> None:
    """Raise where a question is to an averaged classifier, and another classifier is asked."""
    check_is_fitted(classifier)
    if not isinstance(classifier, Averaged):
        raise TypeError(f"{question} is about an AveragedClassifier, got a {type(classifier).__name__}")


def members(classifier):
    """A table of what was averaged, the heaviest member first.

    Parameters
    ----------
    classifier : fitted AveragedClassifier
        Whose members are listed.

    Returns
    -------
    DataFrame
        Columns "kind" (generative, softmax, base rate), "components", "covariance", "rho", "kappa", "shrinkage" (of the
        numbers), "categories", "strength", "exponent", "weight" and "log score", the mean of rows left out.

    Examples
    --------
    >>> from bayesgen import AveragedClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> table = members(AveragedClassifier(components=False).fit(X[::5], y[::5]))
    >>> float(table["weight"].sum().round(12))
    1.0
    """
    import pandas as pd

    check_is_fitted(classifier)
    frame = pd.DataFrame([member.settings() for member in classifier.members_])
    first = [*_SETTINGS, *(name for name in frame if name not in _SETTINGS)]
    frame = frame.reindex(columns=first).astype({"components": object, "covariance": object, "categories": object})
    frame["exponent"], frame["weight"] = classifier.exponents_, classifier.weights_
    frame["log score"] = classifier.scores_["members"]
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def refuse_far(classifier, x, question: str) -> None:
    """Raise where a number of a row is so far out that only limits of densities are left, which `question` cannot take.

    Parameters
    ----------
    classifier : fitted AveragedClassifier
        Whose bends say how far a number is.
    x : array, shape (n, D)
        Numbers, NaN where missing.
    question : str
        What is asked, for the message.
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
    """What `explain` says of an averaged classifier: names, and terms (n, K, terms)."""
    priors = None if classifier.priors is None else classifier._known(classifier.priors)
    x, c = classifier._read(X)
    refuse_far(classifier, x, "explain()")
    terms = explanation.terms(classifier.average_, x, c, priors)
    schema, left_out = classifier.schema_, classifier.constant_
    names = [*columns.numbers(schema, left_out), *columns.categories(schema)]
    order = [1 + names.index(name) for name in schema.columns if name in names]
    return [names[j - 1] for j in order] + ["remainder"], [terms[..., j] for j in (0, *order, -1)]


def averaged_draws(classifier, rows, size: int):
    """Yield p(k | x_i, m_s, θ_s) of some rows at a time, (size, rows, K): members drawn by weight, θ by posterior."""
    (x, c), fitted = rows, classifier.average_
    refuse_far(classifier, x, "draws of class probabilities")
    ratio = 1.0
    if classifier.priors is not None:
        ratio = classifier._known(classifier.priors) / np.exp(fitted.log_class_prior)
    seed = int(generator(classifier.random_state).integers(1 << 31))
    step = max(1, DENSITIES // (size * len(classifier.classes_)))
    for start in range(0, len(x), step):
        part = slice(start, start + step)  # the same draws for every piece
        probability = ratio * draws.probabilities(fitted, x[part], c[part], size, np.random.default_rng(seed))
        yield probability / probability.sum(2, keepdims=True)


def member_posteriors(classifier):
    """Draws of the parameters of each generative member of some weight, an `xarray.DataTree` of posteriors.

    A weighted average of tempered members has no one posterior, so there is one a member: the group "member 0" is the
    heaviest, and so on to those of weight 0.01. Each holds "posterior" (of the classes' means and covariances, or
    variances, in the units of the bent columns; of the probabilities of levels; and of classes), untempered, and the
    attributes "weight" and "exponent". Softmax members are points and have none.

    Parameters
    ----------
    classifier : fitted AveragedClassifier
        Whose posteriors they are.
    """
    import xarray as xr

    check_averaged(classifier, "member_posteriors()")
    fitted, rng = classifier.average_, generator(classifier.random_state)
    heavy = [m for m in np.argsort(-fitted.weights, kind="stable") if fitted.weights[m] >= _LEAST]
    groups = {}
    for m in heavy:
        member = fitted.members[m]
        if not isinstance(member, average.Product):
            continue
        own = draws.parameters(fitted, member, (4, 250), rng)
        own = {site: (("chain", "draw", *dims), values) for site, (dims, values) in own.items()}
        labels = {"class": classifier.classes_.tolist()}
        numeric = columns.numbers(classifier.schema_, classifier.constant_)
        labels |= {dim: numeric for dim in ("column", "other column") if any(dim in v[0] for v in own.values())}
        place = f"member {len(groups) // 2}"
        groups[f"/{place}"] = xr.Dataset(attrs={"weight": fitted.weights[m], "exponent": fitted.exponents[m]})
        groups[f"/{place}"].attrs["family"] = member.family
        groups[f"/{place}/posterior"] = xr.Dataset(own, coords=labels)
    result = xr.DataTree.from_dict(groups)
    result.attrs["inference_library"] = "bayesgen"
    return result
