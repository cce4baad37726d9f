"""Whether what a file says of an estimator is of one piece: names, types, shapes, and a first prediction."""

import dataclasses

import numpy as np

from bayesgen.files import known
from bayesgen.files.values import ours
from bayesgen.posterior import log_mean_density


def check_names(estimator, names) -> None:
    """Raise where the attributes of a fitted estimator are not those that fitting sets."""
    expected = known.FITTED[type(estimator)]
    strange = sorted(set(names) - {*expected, "feature_names_in_"})
    absent = [name for name in expected if name not in names]
    if strange or absent:
        problem = f"has no attribute {strange[0]!r:.100}" if strange else f"needs the attribute {absent[0]!r}"
        raise ValueError(f"a fitted {type(estimator).__name__} {problem}")


def check(estimator) -> None:
    """Raise where the parts of a fitted estimator do not fit each other.

    It says nothing of the numbers: whoever writes a file chooses them.
    """
    cls, width, model, posterior = type(estimator), estimator.n_features_in_, estimator.model_, estimator.posterior_
    _require(type(width) is int and width > 0, "n_features_in_ is no number of columns")
    _require(isinstance(model, known.MODELS[cls]), f"model_ is a {type(model).__name__}")
    _require(isinstance(posterior, known.POSTERIORS), f"posterior_ is a {type(posterior).__name__}")
    _require(type(posterior.model) is type(model), f"posterior_ is that of a {type(posterior.model).__name__}")
    if hasattr(estimator, "feature_names_in_"):
        _require(_is_labels(estimator.feature_names_in_, width), f"feature_names_in_ are not {width} names")
    if hasattr(estimator, "classes_"):
        labels = estimator.classes_
        _require(isinstance(labels, np.ndarray) and labels.ndim == 1, "classes_ is no array of labels")
        _require(0 < len(labels) == len(set(labels.tolist())), "classes_ are not distinct")
    if posterior.kind == "draws":
        _check_draws(posterior)
    (_check_generative if hasattr(estimator, "schema_") else _check_regression)(estimator, width)


def _require(right, problem: str) -> None:
    if not right:
        raise ValueError(f"its parts do not fit each other: {problem}")


def _is_labels(value, count: int) -> bool:
    return isinstance(value, np.ndarray) and value.shape == (count,) and all(isinstance(v, str) for v in value.tolist())


def _is_numbers(value, shape=None) -> bool:
    right = isinstance(value, np.ndarray | float) and np.asarray(value).dtype.kind == "f"
    return right and (shape is None or np.shape(value) == shape) and bool(np.isfinite(value).all())


def _check_draws(posterior) -> None:
    """Chains and draws lead every array, of every site and statistic of the sampler."""
    fields = [value for value in vars(posterior).values() if isinstance(value, dict)]
    arrays = [array for field in fields for array in field.values() if isinstance(array, np.ndarray)]
    _require(len({array.shape[:2] for array in arrays}) == 1, "the draws are not as many for each parameter")
    for array in arrays:
        _require(array.ndim >= 2 and min(array.shape[:2]) > 0 and array.dtype.kind in "biuf", "the draws are none")
    if posterior.warmup is not None:
        _require(type(posterior.warmup.model) is type(posterior.model), "the warm-up is that of another model")
        _check_draws(posterior.warmup)


def _check_generative(estimator, width) -> None:
    schema, model, posterior = estimator.schema_, estimator.model_, estimator.posterior_
    _require(isinstance(schema, known.SCHEMA), f"schema_ is a {type(schema).__name__}")
    taken = [column for block in schema.blocks for column in block.columns]
    _require(len(schema.columns) == width == len(taken), f"schema_ has not {width} columns, each in one block")
    _require({*taken} == {*schema.columns} and len({*taken}) == width, "schema_ names a column twice")
    labels, names = estimator.classes_.tolist(), [block.name for block in schema.blocks]
    for each in (model, posterior.model):
        _require(list(each.class_names) == labels, "the model has other classes than classes_")
        _require(sorted(each.leaves) == sorted(names), "the model has other features than schema_")
    if posterior.kind == "exact":
        for name, leaf in model.leaves.items():
            right = _shapes(leaf, (len(labels),)) == _shapes(posterior.model.leaves[name])
            _require(right, f"the shapes of prior and posterior of {name!r}")
    statistics = estimator.statistics_
    _require(sorted(statistics.leaves) == sorted(names), "statistics_ are of other features than schema_")
    _require(statistics.classes.total().shape == (len(labels),), "statistics_ count other classes than classes_")
    rows = schema.nothing()
    for block in schema.blocks:
        if ours(type(model.leaves[block.name])):  # to a user's own, 0 may be nothing that can be
            rows[block.name] = np.zeros_like(rows[block.name])
    _check_prediction(posterior, estimator._shape(rows), (1, len(labels)))


def _shapes(leaf, groups=()) -> tuple:
    """Shape of what a leaf covers, and of what belongs to one feature of each of its hyperparameters."""
    fields = [field for field in dataclasses.fields(leaf) if "rank" in field.metadata]
    own = [getattr(leaf, f.name).shape[-f.metadata["rank"] :] for f in fields if f.metadata["rank"]]
    return type(leaf), (*groups, *leaf.batch_shape), own


def _check_regression(estimator, width) -> None:
    model, labels = estimator.model_, getattr(estimator, "classes_", None)
    for each in (model, estimator.posterior_.model):
        _require(each.features == width and len(each.columns) == width, f"the model has not {width} columns")
        _require(labels is None or list(each.classes) == labels.tolist(), "the model has other classes than classes_")
    scores = () if labels is None else (1 if len(labels) == 2 else len(labels),)
    shapes = {"centre_": (width,), "scale_": (width,), "coef_": (*scores, width), "intercept_": scores}
    for name, shape in shapes.items():
        _require(_is_numbers(getattr(estimator, name), shape), f"{name} are not finite numbers of the shape {shape}")
    _require((estimator.scale_ > 0).all(), "scale_ is not positive")
    row = np.zeros((1, width))
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
