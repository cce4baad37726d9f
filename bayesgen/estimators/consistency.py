"""Checks that the parts of an estimator read from a file fit each other: types, shapes, and a first prediction.

They say nothing of the numbers: whoever writes a file chooses them.
"""

import dataclasses

import numpy as np

from bayesgen.averaging.average import Average
from bayesgen.averaging.leaves import ColumnModels
from bayesgen.core.registry import ours
from bayesgen.core.statistics import Rows
from bayesgen.models import LogNormal, NaiveBayes
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.linear_model import LineStatistics
from bayesgen.posterior.posterior import Posterior, log_mean_density
from bayesgen.tables import arrays, design
from bayesgen.tables.schema import Schema


def _require(right, problem: str) -> None:
    """Raise a problem unless something is right."""
    if not right:
        raise ValueError(f"its parts do not fit each other: {problem}")


def _is_labels(value, count: int) -> bool:
    """Return True if a value is an array of ``count`` strings."""
    return isinstance(value, np.ndarray) and value.shape == (count,) and all(isinstance(v, str) for v in value.tolist())


def _is_numbers(value, shape=None) -> bool:
    """Return True if a value is finite floats, of a shape where one is given."""
    right = isinstance(value, np.ndarray | float) and np.asarray(value).dtype.kind == "f"
    return right and (shape is None or np.shape(value) == shape) and bool(np.isfinite(value).all())


def _check_columns(estimator) -> None:
    """Check columns, classes and schema."""
    width = estimator.n_features_in_
    _require(type(width) is int and width > 0, "n_features_in_ is no number of columns")
    if hasattr(estimator, "feature_names_in_"):
        _require(_is_labels(estimator.feature_names_in_, width), f"feature_names_in_ are not {width} names")
    if hasattr(estimator, "classes_"):
        labels = estimator.classes_
        _require(isinstance(labels, np.ndarray) and labels.ndim == 1, "classes_ is no array of labels")
        _require(0 < len(labels) == len(set(labels.tolist())), "classes_ are not distinct")
    schema = estimator.schema_
    _require(isinstance(schema, Schema), f"schema_ is a {type(schema).__name__}")
    _require(all(block.columns for block in schema.blocks), "a block of schema_ has no column")
    taken = [column for block in schema.blocks for column in block.columns]
    _require(len({*schema.columns}) == len(schema.columns) == width, f"schema_ has not {width} columns")
    _require({*taken} <= {*schema.columns} and len({*taken}) == len(taken), "schema_ names a column twice, or none")


def _check_posterior(estimator, models: tuple[type, ...]) -> None:
    """Check that model and posterior are of the estimator's kind."""
    model, posterior = estimator.model_, estimator.posterior_
    _require(isinstance(model, models), f"model_ is a {type(model).__name__}")
    _require(isinstance(posterior, Posterior), f"posterior_ is a {type(posterior).__name__}")
    _require(type(posterior.model) is type(model), f"posterior_ is that of a {type(posterior.model).__name__}")
    if posterior.kind == "draws":
        _check_draws(posterior)


def _check_draws(posterior) -> None:
    """Check that chains and draws lead every array, of every site and statistic of the sampler."""
    right = isinstance(posterior.samples, dict) and isinstance(posterior.sample_stats, dict)
    _require(right, "the draws have no names")
    fields = [value for value in vars(posterior).values() if isinstance(value, dict)]
    arrays = [array for field in fields for array in field.values() if isinstance(array, np.ndarray)]
    _require(len({array.shape[:2] for array in arrays}) == 1, "the draws are not as many for each parameter")
    for array in arrays:
        _require(array.ndim >= 2 and min(array.shape[:2]) > 0 and array.dtype.kind in "biuf", "the draws are none")
    if posterior.warmup is not None:
        _require(type(posterior.warmup.model) is type(posterior.model), "the warm-up is that of another model")
        _check_draws(posterior.warmup)


def check_generative(estimator, models: tuple[type, ...]) -> None:
    """Raise where the parts of a generative classifier do not fit each other; its model is one of ``models``."""
    _check_columns(estimator)
    _check_posterior(estimator, models)
    schema, model, posterior = estimator.schema_, estimator.model_, estimator.posterior_
    labels = estimator.classes_.tolist()
    _require(getattr(estimator, "unseen", "error") in ("error", "missing"), "unseen is no setting")
    exponent = getattr(estimator, "exponent_", 1.0)
    _require(isinstance(exponent, float) and 0 < exponent < np.inf, "exponent_ is no number > 0")
    for each in (model, posterior.model):
        _check_leaves(each, estimator.statistics_, schema.blocks, labels)
    if posterior.kind == "exact":
        for name, leaf in model.leaves.items():
            prior, learned = _shapes(leaf, (len(labels),)), _shapes(posterior.model.leaves[name])
            # The limit of an improper prior is another class.
            same = prior == learned if leaf.proper else prior[1] == learned[1]
            _require(same, f"the shapes of prior and posterior of {name!r}")
    rows = {name: _possible(model.leaves[name], empty) for name, empty in schema.nothing().items()}
    _check_prediction(posterior, estimator.as_model_takes(rows), (1, len(labels)))


def _check_leaves(model, statistics, blocks, labels) -> None:
    """Raise where model and statistics have other classes, leaves or categories than the blocks of a schema."""
    names = sorted(block.name for block in blocks)
    _require(list(model.class_names) == labels, "the model has other classes than classes_")
    _require(sorted(model.leaves) == names, "the model has other features than schema_")
    _require(sorted(statistics.leaves) == names, "the statistics are of other features than schema_")
    _require(statistics.classes.total().shape == (len(labels),), "the statistics count other classes than classes_")
    for block in blocks:
        leaf, levels = model.leaves[block.name], block.categories
        known, size = getattr(leaf, "categories", None), leaf.cardinality(0)
        right = known is None or size is None if levels is None else size == len(levels) and known in (None, levels)
        _require(right, f"the block {block.name!r} has not the categories of its leaf")


def _shapes(leaf, groups=()) -> tuple:
    """Return the shape that a leaf covers, and the shape of each of its hyperparameters for one feature."""
    fields = [field for field in dataclasses.fields(leaf) if "rank" in field.metadata]
    of_feature = [getattr(leaf, f.name).shape[-f.metadata["rank"] :] for f in fields if f.metadata["rank"]]
    return type(leaf), (*groups, *leaf.batch_shape), of_feature


def check_regression(estimator, models: tuple[type, ...]) -> None:
    """Raise where the parts of a linear estimator do not fit each other; its model is one of ``models``."""
    _check_columns(estimator)
    estimator._check_settings()
    _check_posterior(estimator, models)
    labels, names = getattr(estimator, "classes_", None), design.names(estimator.schema_)
    width = len(names)
    for each in (estimator.model_, estimator.posterior_.model):
        _require(each.features == width and each.columns == names, "the model has other columns than schema_")
        _require(labels is None or list(each.classes) == labels.tolist(), "the model has other classes than classes_")
    for name, shape in ({"centre_": (width,), "scale_": (width,)} | estimator._shapes(width)).items():
        _require(_is_numbers(getattr(estimator, name), shape), f"{name} are not finite numbers of the shape {shape}")
    _require((estimator.scale_ > 0).all(), "scale_ is not positive")
    row, statistics = np.zeros((1, width)), estimator.statistics_
    _require(isinstance(statistics, Rows | LineStatistics), f"statistics_ are {type(statistics).__name__}")
    if isinstance(statistics, LineStatistics):
        _require(_is_numbers(statistics.n, ()), "statistics_ are of no number of rows")
        _require(_is_numbers(statistics.mean, (width + 1,)), f"statistics_ have not {width} columns and a target")
        _require(_is_numbers(statistics.factor, (width + 1, width + 1)), "statistics_ hold no factor of their columns")
    if labels is None:
        variance = estimator.variance_
        _require(isinstance(variance, float) and variance >= 0, "variance_ is no number >= 0")
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
    _require(density.shape == shape, "the posterior predicts no such classes")


def check_average(estimator) -> None:
    """Raise where the parts of an averaged classifier do not fit its columns and classes, or one another."""
    _check_columns(estimator)
    schema, fitted, left_out = estimator.schema_, estimator.average_, estimator.constant_
    numeric = isinstance(left_out, dict) and {*left_out} <= {*arrays.numbers(schema)}
    _require(numeric and all(isinstance(v, float) for v in left_out.values()), "constant_ are no numbers")
    _require(isinstance(fitted, Average), f"average_ is a {type(fitted).__name__}")
    classes, levels = len(estimator.classes_), arrays.levels(schema)
    dim = len(arrays.numbers(schema, left_out))
    _require(all(family.members for family in fitted.parts), "a part has no members")
    for family in fitted.parts:
        for problem, value, shape in family.claims(dim, tuple(levels), classes):
            _require(value if shape is None else _is_numbers(value, shape), problem)
    density = np.any(fitted.density_weights)  # of all columns
    for kind, count, what in (("numbers", dim, "numeric columns"), ("categories", len(levels), "categories")):
        known = bool(fitted.modelling(kind))
        right = bool(count) == known if density else count or not known
        _require(right, f"the members are not of {count} {what}")
    e = _check_own_leaves(fitted.leaves, arrays.leaves(schema), estimator.classes_.tolist())
    for name in ("class_weight", "concentration"):
        _require(_is_numbers(getattr(fitted, name), (classes,)), f"{name} is not one number a class")
        _require((getattr(fitted, name) >= 0).all(), f"{name} has entries below 0")
    members = (len(fitted.members),)
    for name in ("exponents", "weights", "density_weights"):
        value = getattr(fitted, name)
        _require(_is_numbers(value, members) and (value >= 0).all(), f"{name} are not {members[0]} numbers >= 0")
    _require(_is_numbers(fitted.sharpening, ()) and fitted.sharpening > 0, "sharpening is not one number > 0")
    with np.errstate(all="ignore"):
        rows = np.concatenate([np.zeros((1, dim)), np.full((1, dim), np.nan)]), np.zeros((2, len(levels)), np.intp)
        probability = fitted.probability(*rows, None if e is None else np.concatenate([e, e]))
        _require(probability.shape == (2, classes), "the average predicts no such classes")


def _check_own_leaves(leaves, blocks, labels) -> np.ndarray | None:
    """Raise if the leaves of an average do not fit their blocks; return a row that they can take, (1, E), or None."""
    if not blocks:
        _require(leaves is None, "the average has leaves, schema_ no column for them")
        return None
    _require(isinstance(leaves, ColumnModels), f"leaves are a {type(leaves).__name__}")
    model, statistics = leaves.model, leaves.statistics
    _require(isinstance(model, NaiveBayes), f"the leaves are those of a {type(model).__name__}")
    right = [(name, model.columns_of(name)) for name in model.leaves] == [(b.name, b.columns) for b in blocks]
    _require(right, "the leaves have other columns than schema_")
    _require({*leaves.single} == {b.name for b in blocks if b.single}, "the leaves take entries of another shape")
    _require(isinstance(statistics, ClassStatistics), f"statistics of leaves are {type(statistics).__name__}")
    _check_leaves(model, statistics, blocks, labels)
    _require(model.conjugate, "a leaf has no posterior in closed form")
    rows = [_possible(model.leaves[block.name], np.full((1, len(block.columns)), np.nan)) for block in blocks]
    return np.concatenate(rows, axis=1)


def _possible(leaf, rows) -> np.ndarray:
    """Return rows with entries that a leaf can take in place of missing ones, where that is known."""
    # To a user's own leaf 0 may be nothing that can be; 0 has no logarithm.
    return np.full_like(rows, isinstance(getattr(leaf, "leaf", leaf), LogNormal)) if ours(type(leaf)) else rows
