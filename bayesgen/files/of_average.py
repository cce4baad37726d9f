"""Whether the parts of an averaged classifier in a file are of one piece."""

import numpy as np

from bayesgen.averaging import columns
from bayesgen.averaging.gaussian import STRUCTURES
from bayesgen.averaging.logistic import STRENGTHS
from bayesgen.files import known
from bayesgen.files.required import is_numbers, require


def check(estimator) -> None:
    """Raise where the parts of an averaged classifier do not fit its columns and classes, or one another."""
    schema, fitted, left_out = estimator.schema_, estimator.average_, estimator.constant_
    require(isinstance(left_out, tuple) and {*left_out} <= {*columns.numbers(schema)}, "constant_ are no numbers")
    require(isinstance(fitted, known.AVERAGE), f"average_ is a {type(fitted).__name__}")
    classes, dim = (len(estimator.classes_),), len(columns.numbers(schema, left_out))
    levels, places = columns.levels(schema), np.arange(len(estimator.classes_))
    for view in fitted.numeric:
        owner, groups = view.view.owner, len(view.view.owner)
        require(owner.ndim == 1 and owner.dtype.kind == "i", "the groups have no classes")
        require((np.diff(owner) >= 0).all() and np.array_equal(np.unique(owner), places), "a class has no group")
        _check_warp(view.view.warp, dim)
        if (filling := view.view.filling) is not None:
            require(is_numbers(filling.mean, (*classes, dim)), "the means that gaps are completed from")
            require(is_numbers(filling.covariance, (dim, dim)), "the covariance that gaps are completed from")
        require(is_numbers(view.view.centres, (groups, dim)), "the centres of the groups")
        shapes = {"n": (groups,), "mean": (groups, dim), "scatter": (groups, dim, dim)}
        for name, shape in shapes.items():
            require(is_numbers(getattr(view.statistics, name), shape), f"the moments have no {name} of {shape}")
        require((view.statistics.n >= 0).all(), "the groups have weights below 0")
        require(all(m.structure in STRUCTURES and m.rho > 0 and m.kappa > 0 for m in view.members), "a member is none")
    require(bool(fitted.numeric) == bool(dim), f"the members are not of {dim} numeric columns")
    require((fitted.categorical is not None) == bool(levels), f"the members are not of {len(levels)} categories")
    if fitted.categorical is not None:
        require(fitted.categorical.levels.tolist() == levels, "the members have other categories than schema_")
        total, pairs = sum(levels), fitted.categorical.pairs
        require(is_numbers(fitted.categorical.single, (*classes, total)), "the counts of categories")
        require(pairs is None or is_numbers(pairs, (*classes, total, total)), "the counts of pairs of categories")
    if (softmax := fitted.discriminative) is not None:
        _check_warp(softmax.warp, dim)
        require(softmax.levels.tolist() == levels, "the softmax members have other categories than schema_")
        shape = (len(STRENGTHS), *classes, 1 + dim + sum(levels))
        shapes = {"centre": (dim,), "scale": (dim,), "coefficients": shape, "log_prior": classes}
        for name, shape in shapes.items():
            require(is_numbers(getattr(softmax, name), shape), f"the softmax members have no {name} of {shape}")
    for name in ("class_weight", "concentration"):
        require(is_numbers(getattr(fitted, name), classes), f"{name} is not one number a class")
        require((getattr(fitted, name) >= 0).all(), f"{name} has entries below 0")
    members = (len(fitted.names),)
    for name in ("exponents", "weights", "density_weights"):
        value = getattr(fitted, name)
        require(is_numbers(value, members) and (value >= 0).all(), f"{name} are not {members[0]} numbers >= 0")
    with np.errstate(all="ignore"):
        rows = np.concatenate([np.zeros((1, dim)), np.full((1, dim), np.nan)]), np.zeros((2, len(levels)), np.intp)
        require(fitted.probability(*rows).shape == (2, *classes), "the average predicts no such classes")


def _check_warp(warp, dim) -> None:
    for name in ("location", "scale", "power"):
        require(is_numbers(getattr(warp, name), (dim,)), f"the bend of the columns has no {name} of each")
    require((warp.scale > 0).all() and (warp.power >= 0).all() and (warp.power <= 2).all(), "the bend is none")
