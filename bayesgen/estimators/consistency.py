"""Checks that the parts of an estimator read from a file fit each other: types, shapes, and a first prediction.

They say nothing of the numbers: whoever writes a file chooses them.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from bayesgen.averaging.average import Average
from bayesgen.averaging.leaves import ColumnModels
from bayesgen.averaging.member import table_sizes
from bayesgen.averaging.stream import BESIDE, Stream
from bayesgen.core.registry import ours
from bayesgen.core.shapes import check_array, check_shapes, require_fit
from bayesgen.core.statistics import Rows
from bayesgen.models import NaiveBayes
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.linear_model import LineStatistics
from bayesgen.posterior.posterior import Posterior, log_mean_density
from bayesgen.tables import arrays, design
from bayesgen.tables.schema import Schema


def check_parts(estimator, models: tuple[type, ...]) -> None:
    """Raise where the parts of an estimator do not fit each other; its model is one of ``models``."""
    width = estimator.n_features_in_
    require_fit(type(width) is int and width > 0, "n_features_in_ is no number of columns")
    if hasattr(estimator, "feature_names_in_"):
        names = estimator.feature_names_in_
        right = isinstance(names, np.ndarray) and names.shape == (width,) and all(isinstance(v, str) for v in names)
        require_fit(right, f"feature_names_in_ are not {width} names")
    if hasattr(estimator, "classes_"):
        labels = estimator.classes_
        require_fit(isinstance(labels, np.ndarray) and labels.ndim == 1, "classes_ is no array of labels")
        require_fit(0 < len(labels) == len(set(labels.tolist())), "classes_ are not distinct")
    schema = estimator.schema_
    require_fit(isinstance(schema, Schema), f"schema_ is a {type(schema).__name__}")
    require_fit(all(block.columns for block in schema.blocks), "a block of schema_ has no column")
    taken = [column for block in schema.blocks for column in block.columns]
    require_fit(len({*schema.columns}) == len(schema.columns) == width, f"schema_ has not {width} columns")
    require_fit({*taken} <= {*schema.columns} and len({*taken}) == len(taken), "schema_ names a column twice, or none")
    if not models:
        return _check_average(estimator)
    model, posterior = estimator.model_, estimator.posterior_
    require_fit(isinstance(model, models), f"model_ is a {type(model).__name__}")
    require_fit(isinstance(posterior, Posterior), f"posterior_ is a {type(posterior).__name__}")
    require_fit(type(posterior.model) is type(model), f"posterior_ is that of a {type(posterior.model).__name__}")
    if posterior.kind == "draws":
        _check_draws(posterior)
    return _check_regression(estimator) if hasattr(estimator, "centre_") else _check_generative(estimator)


def _check_draws(posterior) -> None:
    """Check that chains and draws lead every array, of every site and statistic of the sampler."""
    right = isinstance(posterior.samples, dict) and isinstance(posterior.sample_stats, dict)
    require_fit(right, "the draws have no names")
    fields = [value for value in vars(posterior).values() if isinstance(value, dict)]
    arrays = [array for field in fields for array in field.values() if isinstance(array, np.ndarray)]
    require_fit(len({array.shape[:2] for array in arrays}) == 1, "the draws are not as many for each parameter")
    for array in arrays:
        require_fit(array.ndim >= 2 and min(array.shape[:2]) > 0 and array.dtype.kind in "biuf", "the draws are none")
    if posterior.warmup is not None:
        require_fit(type(posterior.warmup.model) is type(posterior.model), "the warm-up is that of another model")
        _check_draws(posterior.warmup)


def _check_generative(estimator) -> None:
    schema, model, posterior = estimator.schema_, estimator.model_, estimator.posterior_
    labels = estimator.classes_.tolist()
    require_fit(getattr(estimator, "unseen", "error") in ("error", "missing"), "unseen is no setting")
    exponent = getattr(estimator, "exponent_", 1.0)
    require_fit(isinstance(exponent, float) and 0 < exponent < np.inf, "exponent_ is no number > 0")
    for each in (model, posterior.model):
        _check_leaves(each, estimator.statistics_, schema.blocks, labels)
    if posterior.integrated:
        for name, leaf in model.leaves.items():
            prior, learned = _shapes(leaf, (len(labels),)), _shapes(posterior.model.leaves[name])
            # The limit of an improper prior is another class.
            same = prior == learned if leaf.proper else prior[1] == learned[1]
            require_fit(same, f"the shapes of prior and posterior of {name!r}")
    rows = {name: _possible(model.leaves[name], empty) for name, empty in schema.nothing().items()}
    _check_prediction(posterior, rows, (1, len(labels)))


def _check_leaves(model, statistics, blocks, labels) -> None:
    """Raise where model and statistics have other classes, leaves or categories than the blocks of a schema."""
    names = sorted(block.name for block in blocks)
    require_fit(list(model.class_names) == labels, "the model has other classes than classes_")
    require_fit(sorted(model.leaves) == names, "the model has other features than schema_")
    require_fit(sorted(statistics.leaves) == names, "the statistics are of other features than schema_")
    require_fit(statistics.classes.total().shape == (len(labels),), "the statistics count other classes than classes_")
    for block in blocks:
        leaf, levels = model.leaves[block.name], block.categories
        known, size = getattr(leaf, "categories", None), leaf.cardinality(0)
        right = known is None or size is None if levels is None else size == len(levels) and known in (None, levels)
        require_fit(right, f"the block {block.name!r} has not the categories of its leaf")


def _shapes(leaf, groups=()) -> tuple:
    """Return the shape that a leaf covers, and the shape of each of its hyperparameters for one feature."""
    fields = [field for field in dataclasses.fields(leaf) if "rank" in field.metadata]
    of_feature = [getattr(leaf, f.name).shape[-f.metadata["rank"] :] for f in fields if f.metadata["rank"]]
    return type(leaf), (*groups, *leaf.batch_shape), of_feature


def _check_regression(estimator) -> None:
    estimator._check_settings()
    labels, names = getattr(estimator, "classes_", None), design.names(estimator.schema_)
    width = len(names)
    for each in (estimator.model_, estimator.posterior_.model):
        require_fit(each.features == width and each.columns == names, "the model has other columns than schema_")
        known = labels is None or list(each.classes) == labels.tolist()
        require_fit(known, "the model has other classes than classes_")
    sizes, told = {"columns": width, "line": width + 1}, {"coef_": "columns", "intercept_": ""}
    if hasattr(estimator, "cuts_"):
        sizes["cuts"], told = len(estimator.classes_) - 1, {"coef_": "columns", "cuts_": "cuts"}
    elif labels is not None:
        sizes["scores"] = 1 if len(labels) == 2 else len(labels)
        told = {"coef_": "scores columns", "intercept_": "scores"}
    for name, axes in ({"centre_": "columns", "scale_": "columns"} | told).items():
        check_array(name, getattr(estimator, name), axes, sizes)
    require_fit((estimator.scale_ > 0).all(), "scale_ is not positive")
    row, statistics = np.zeros((1, width)), estimator.statistics_
    require_fit(isinstance(statistics, Rows | LineStatistics), f"statistics_ are {type(statistics).__name__}")
    if isinstance(statistics, LineStatistics):
        check_shapes(statistics, sizes)
    if labels is None:
        variance = estimator.variance_
        require_fit(isinstance(variance, float) and variance >= 0, "variance_ is no number >= 0")
        _check_prediction(estimator.posterior_, (row, np.zeros(1)), (1,))
    else:
        _check_prediction(estimator.posterior_, row, (1, len(labels)))


def _check_prediction(posterior, row, shape) -> None:
    """Ask for the density of one row: what does not fit in it does not fit at all. Of draws the first does."""
    with np.errstate(all="ignore"):
        if posterior.kind == "draws":
            first, model = {site: v[:1] for site, v in posterior.flat.items()}, posterior.model
            density = log_mean_density(model, first, model.check(row))
        else:
            density = posterior.log_predictive(row)
    require_fit(density.shape == shape, "the posterior predicts no such classes")


def _check_average(estimator) -> None:
    schema, fitted, left_out = estimator.schema_, estimator.average_, estimator.constant_
    numeric = isinstance(left_out, dict) and {*left_out} <= {*arrays.numbers(schema), *arrays.categories(schema)}
    require_fit(numeric and all(isinstance(v, float) for v in left_out.values()), "constant_ are no numbers")
    require_fit(isinstance(fitted, Average), f"average_ is a {type(fitted).__name__}")
    classes, levels = len(estimator.classes_), arrays.levels(schema, left_out)
    dim = len(arrays.numbers(schema, left_out))
    require_fit(all(family.members for family in fitted.parts), "a part has no members")
    density = np.any(fitted.density_weights)  # of all columns
    for kind, count, what in (("numbers", dim, "numeric columns"), ("categories", len(levels), "categories")):
        known = bool(fitted.modelling(kind))
        right = bool(count) == known if density else count or not known
        require_fit(right, f"the members are not of {count} {what}")
    e, sizes = None, table_sizes(dim, tuple(levels), classes)
    for average in _averages(estimator, sizes):
        e = _check_own_leaves(average.leaves, arrays.leaves(schema), estimator.classes_.tolist())
        check_shapes(average, sizes | {"averaged": len(fitted.members)})
    with np.errstate(all="ignore"):
        rows = np.concatenate([np.zeros((1, dim)), np.full((1, dim), np.nan)]), np.zeros((2, len(levels)), np.intp)
        probability = fitted.probability(*rows, None if e is None else np.concatenate([e, e]))
        require_fit(probability.shape == (2, classes), "the average predicts no such classes")


def _averages(estimator, sizes) -> Iterator[Average]:
    """Yield the average; where it learns on, also what its sums make of it, those so far and those of the fit."""
    yield (fitted := estimator.average_)
    if (stream := vars(estimator).get("stream_")) is None:
        return
    require_fit(isinstance(stream, Stream) and isinstance(stream.base, Stream), "stream_ has not the sums of the fit")
    count = sum(len(part.members) for part in fitted.parts) + (fitted.leaves is not None)
    check_shapes(stream, sizes | {"factors": count, "key": 16})
    right = stream.columns == (sizes["columns"], sizes["categories"]) and 0 < stream.scored.first <= stream.scored.rows
    require_fit(right, "stream_ is of other columns or rows")
    kept = {} if stream.kept is None else getattr(stream.kept, "data", {0: []})
    blocks = {*BESIDE, *(block.name for block in estimator.schema_.blocks)}
    right = kept.keys() in (set(), blocks) and len({len(values) for values in kept.values()}) < 2
    require_fit(right, "stream_ keeps rows of other columns")
    for sums in (stream, stream.base):
        yield sums.learned(fitted, fitted.leaves and fitted.leaves.model)


def _check_own_leaves(leaves, blocks, labels) -> np.ndarray | None:
    """Raise if the leaves of an average do not fit their blocks; return a row that they can take, (1, E), or None."""
    if not blocks:
        require_fit(leaves is None, "the average has leaves, schema_ no column for them")
        return None
    require_fit(isinstance(leaves, ColumnModels), f"leaves are a {type(leaves).__name__}")
    model, statistics = leaves.model, leaves.statistics
    require_fit(isinstance(model, NaiveBayes), f"the leaves are those of a {type(model).__name__}")
    right = [(name, model.columns_of(name)) for name in model.leaves] == [(b.name, b.columns) for b in blocks]
    require_fit(right, "the leaves have other columns than schema_")
    require_fit({*leaves.single} == {b.name for b in blocks if b.single}, "the leaves take entries of another shape")
    require_fit(isinstance(statistics, ClassStatistics), f"statistics of leaves are {type(statistics).__name__}")
    _check_leaves(model, statistics, blocks, labels)
    require_fit(model.conjugate, "a leaf has no posterior in closed form")
    rows = [_possible(model.leaves[block.name], np.full((1, len(block.columns)), np.nan)) for block in blocks]
    return np.concatenate(rows, axis=1)


def _possible(leaf, rows) -> np.ndarray:
    """Return rows with entries that a leaf can take in place of missing ones, where that is known."""
    if not ours(type(leaf)):
        return rows  # to a user's own leaf this may be nothing that can be
    return np.full_like(rows, 0.0 if hasattr(leaf, "categories") or leaf.cardinality(0) else 1.0)  # 0 has no logarithm
