"""Whether what a file says of an estimator is of one piece: names, types, shapes, and a first prediction."""

import dataclasses

import numpy as np

from bayesgen.estimators.averaged import AveragedClassifier
from bayesgen.files import known, of_average
from bayesgen.files.required import is_labels, is_numbers, require
from bayesgen.files.values import ours
from bayesgen.models import LogNormal
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
    cls, width = type(estimator), estimator.n_features_in_
    require(type(width) is int and width > 0, "n_features_in_ is no number of columns")
    if hasattr(estimator, "feature_names_in_"):
        require(is_labels(estimator.feature_names_in_, width), f"feature_names_in_ are not {width} names")
    if hasattr(estimator, "classes_"):
        labels = estimator.classes_
        require(isinstance(labels, np.ndarray) and labels.ndim == 1, "classes_ is no array of labels")
        require(0 < len(labels) == len(set(labels.tolist())), "classes_ are not distinct")
    if isinstance(estimator, AveragedClassifier):
        _check_schema(estimator.schema_, width)
        of_average.check(estimator)
        return
    model, posterior = estimator.model_, estimator.posterior_
    require(isinstance(model, known.MODELS[cls]), f"model_ is a {type(model).__name__}")
    require(isinstance(posterior, known.POSTERIORS), f"posterior_ is a {type(posterior).__name__}")
    require(type(posterior.model) is type(model), f"posterior_ is that of a {type(posterior.model).__name__}")
    if posterior.kind == "draws":
        _check_draws(posterior)
    (_check_generative if hasattr(estimator, "schema_") else _check_regression)(estimator, width)


def _check_draws(posterior) -> None:
    """Chains and draws lead every array, of every site and statistic of the sampler."""
    fields = [value for value in vars(posterior).values() if isinstance(value, dict)]
    arrays = [array for field in fields for array in field.values() if isinstance(array, np.ndarray)]
    require(len({array.shape[:2] for array in arrays}) == 1, "the draws are not as many for each parameter")
    for array in arrays:
        require(array.ndim >= 2 and min(array.shape[:2]) > 0 and array.dtype.kind in "biuf", "the draws are none")
    if posterior.warmup is not None:
        require(type(posterior.warmup.model) is type(posterior.model), "the warm-up is that of another model")
        _check_draws(posterior.warmup)


def _check_schema(schema, width) -> None:
    require(isinstance(schema, known.SCHEMA), f"schema_ is a {type(schema).__name__}")
    taken = [column for block in schema.blocks for column in block.columns]
    require(len({*schema.columns}) == len(schema.columns) == width, f"schema_ has not {width} columns")
    require({*taken} <= {*schema.columns} and len({*taken}) == len(taken), "schema_ names a column twice, or none")


def _check_generative(estimator, width) -> None:
    schema, model, posterior, exponent = estimator.schema_, estimator.model_, estimator.posterior_, estimator.exponent_
    require(isinstance(exponent, float) and 0 < exponent < np.inf, "exponent_ is no number > 0")
    _check_schema(schema, width)
    labels, names = estimator.classes_.tolist(), [block.name for block in schema.blocks]
    for each in (model, posterior.model):
        require(list(each.class_names) == labels, "the model has other classes than classes_")
        require(sorted(each.leaves) == sorted(names), "the model has other features than schema_")
    if posterior.kind == "exact":
        for name, leaf in model.leaves.items():
            own, learned = _shapes(leaf, (len(labels),)), _shapes(posterior.model.leaves[name])
            same = (
                own == learned if leaf.proper else own[1] == learned[1]
            )  # of an improper one the limit is another class
            require(same, f"the shapes of prior and posterior of {name!r}")
    statistics = estimator.statistics_
    require(sorted(statistics.leaves) == sorted(names), "statistics_ are of other features than schema_")
    require(statistics.classes.total().shape == (len(labels),), "statistics_ count other classes than classes_")
    rows = schema.nothing()
    for block in schema.blocks:
        leaf = model.leaves[block.name]
        if ours(type(leaf)):  # to a user's own, 0 may be nothing that can be; 0 has no logarithm
            rows[block.name] = np.full_like(rows[block.name], isinstance(leaf, LogNormal))
    _check_prediction(posterior, estimator._shape(rows), (1, len(labels)))


def _shapes(leaf, groups=()) -> tuple:
    """Shape of what a leaf covers, and of what belongs to one feature of each of its hyperparameters."""
    fields = [field for field in dataclasses.fields(leaf) if "rank" in field.metadata]
    own = [getattr(leaf, f.name).shape[-f.metadata["rank"] :] for f in fields if f.metadata["rank"]]
    return type(leaf), (*groups, *leaf.batch_shape), own


def _check_regression(estimator, width) -> None:
    model, labels = estimator.model_, getattr(estimator, "classes_", None)
    for each in (model, estimator.posterior_.model):
        require(each.features == width and len(each.columns) == width, f"the model has not {width} columns")
        require(labels is None or list(each.classes) == labels.tolist(), "the model has other classes than classes_")
    scores = () if labels is None else (1 if len(labels) == 2 else len(labels),)
    shapes = {"centre_": (width,), "scale_": (width,), "coef_": (*scores, width), "intercept_": scores}
    for name, shape in shapes.items():
        require(is_numbers(getattr(estimator, name), shape), f"{name} are not finite numbers of the shape {shape}")
    require((estimator.scale_ > 0).all(), "scale_ is not positive")
    row, statistics = np.zeros((1, width)), estimator.statistics_
    require(isinstance(statistics, known.ROWS | known.LINE), f"statistics_ are {type(statistics).__name__}")
    if isinstance(statistics, known.LINE):
        require(is_numbers(statistics.n, ()), "statistics_ are of no number of rows")
        require(is_numbers(statistics.mean, (width + 1,)), f"statistics_ have not {width} columns and a target")
        require(is_numbers(statistics.factor, (width + 1, width + 1)), "statistics_ hold no factor of their columns")
    if labels is None:
        variance = estimator.variance_
        require(isinstance(variance, float) and variance >= 0, "variance_ is no number >= 0")
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
    require(density.shape == shape, "the posterior predicts no such classes")
