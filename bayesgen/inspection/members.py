"""Inspection of an averaged classifier: a table of its members, explanations, and posteriors of the members."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np

from bayesgen.core.registry import fitted_of
from bayesgen.inspection.joint_of_average import refuse_far
from bayesgen.numerics.draws import generator
from bayesgen.numerics.pieces import taken
from bayesgen.numerics.special import log_mixture
from bayesgen.numerics.tempering import log_probability
from bayesgen.tables import arrays

_SETTINGS = ("kind", "components", "covariance", "rho", "kappa", "shrinkage", "categories", "strength")
_LEAST = 0.01  # least weight of a member whose posterior is returned


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
        trees: fewer than there are where the time would be too long), "exponent", "weight", "share", the weight of
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

    classifier = fitted_of(classifier)
    frame = pd.DataFrame([member.settings() for member in classifier.members_])
    first = [*_SETTINGS, *(name for name in frame if name not in _SETTINGS)]
    frame = frame.reindex(columns=first).astype({"components": object, "covariance": object, "categories": object})
    frame["rows"] = classifier.scores_["learned"]
    frame["exponent"], frame["weight"] = classifier.exponents_, classifier.weights_
    family = pd.Series([member.family for member in classifier.members_])
    frame["share"] = frame["weight"].groupby(family).transform("sum")
    frame["log score"] = classifier.scores_["members"]
    frame = frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)
    scores = classifier.scores_
    frame.attrs = {"log loss": -scores["nested"], "standard error": scores["nested_error"]}
    frame.attrs["left out"] = scores.get("leaving", "rows")
    return frame


def averaged_terms(classifier, X):
    """Return the names and terms (n, K, terms) by which `explain` explains an averaged classifier."""
    rows = classifier.read(X)
    refuse_far(classifier, rows["numbers"], "explain()")
    terms = _terms(classifier.posterior_, *rows.values())
    schema, left_out, leaves = classifier.schema_, classifier.constant_, classifier.average_.leaves
    leaf_parts = [] if leaves is None else leaves.parts()
    first = [
        *arrays.numbers(schema, left_out),
        *arrays.categories(schema, left_out),
        *(of[0] for _, of, _ in leaf_parts),
    ]
    names = [*first[: len(first) - len(leaf_parts)], *(name for name, _, _ in leaf_parts)]
    order = sorted(range(len(first)), key=lambda j: schema.columns.index(first[j]))
    return [*(names[j] for j in order), "remainder"], [terms[..., j] for j in (0, *(1 + j for j in order), -1)]


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
    """Return the names along each axis that the parameters of a member may have."""
    schema, classes = classifier.schema_, classifier.classes_.tolist()
    numeric, level = (names(schema, classifier.constant_) for names in (arrays.numbers, arrays.level_names))
    labels = {"class": classes, "feature": numeric, "feature2": numeric, "level": level}
    for fit, place in classifier.average_.places(member):
        owner = fit.factor(place).owner.tolist()
        if len(owner) > len(classes):
            labels["group"] = [f"{classes[k]}, component {owner[:g].count(k)}" for g, k in enumerate(owner)]
    return labels
