"""Settings of the generative classifiers, checked: priors of classes, labels and columns, and given statistics."""

import functools
from dataclasses import fields, replace
from typing import Any

import numpy as np

from bayesgen import models
from bayesgen.core.errors import listed
from bayesgen.core.statistics import ROUNDED, SumStatistics
from bayesgen.inspection.fitted import known_classes
from bayesgen.models.class_program import ClassStatistics, column_sums
from bayesgen.models.column_families import FAMILIES
from bayesgen.models.leaf import Leaf
from bayesgen.models.moments import Moments
from bayesgen.sheets.rows import fingerprint
from bayesgen.tables.schema import Block

_SMALLEST = 1e-150  # squares of smaller values lose digits, or all of them


def sums_suffice(classifier) -> bool:
    """Return True if a fit needs statistics alone; else raise AttributeError: there is no ``partial_fit``."""
    exponent = getattr(classifier, "exponent", None)
    if isinstance(exponent, str) and exponent == "loo":
        raise AttributeError("exponent='loo' is chosen by leaving out rows: give all of them to fit")
    return True


def class_prior(classifier, priors) -> Any:
    """Return the prior of the classes that ``priors``, or where these are None ``class_concentration``, gives."""
    if priors is not None:
        return known_classes(priors, classifier.classes_)
    try:
        alpha, labels = classifier.class_concentration, classifier.classes_.tolist()
        return _symmetric(alpha, *labels) if type(alpha) is float else models.DirichletCategorical(alpha, labels)
    except (TypeError, ValueError) as error:
        raise type(error)(f"class_concentration: {error}") from None


@functools.lru_cache(16, typed=True)
def _symmetric(alpha: float, *labels) -> models.DirichletCategorical:
    """Return a prior of classes, which many fits share in a cross-validation: its checks are a tenth of a small fit."""
    return models.DirichletCategorical(alpha, list(labels))


def check_statistics(schema, statistics, classes, template) -> None:
    """Raise if statistics summed elsewhere are not of this schema, these classes and the template's leaves."""
    if not isinstance(statistics, ClassStatistics):
        how = "statistics must come from row_schema(...).sum(batch), or be a sum of such"
        raise TypeError(f"{how}; got {statistics!r:.100}")
    if statistics.leaves.keys() != template.leaves.keys():
        both = f"statistics hold the blocks {listed(statistics.leaves)}, the schema {listed(template.leaves)}"
        raise ValueError(f"{both}: they are of different tables")
    if len(statistics.classes.sums) != (K := len(classes)):
        raise ValueError(f"statistics are of {len(statistics.classes.sums)} classes, not {K}")
    if statistics.schema not in ("", fingerprint(schema, classes)):
        why = "columns, categories or classes are not the same, or come in another order"
        raise ValueError(f"statistics were summed under another schema: {why}")
    zeros, nothing = SumStatistics(np.zeros(K), np.float64(0)), schema.nothing()
    _check_sums("classes", statistics.classes, zeros)
    _check_sums("squares", replace(zeros, sums=statistics.squares), zeros)
    for name, sums in statistics.leaves.items():
        if isinstance(sums, Moments | SumStatistics):  # others keep rows, or sums by the columns that a row has
            leaf = template.leaves[name]
            of_none = leaf.statistics(nothing[name][:0], np.empty(0, np.intp), K)
            _check_sums(name, sums, of_none, leaf.density_kind == "density")


def _check_sums(name, sums, of_none, signed=False) -> None:
    """Raise unless sums are finite, of the shapes that sums of no rows have, and counts and squares are >= 0."""
    shapes = {one.name: np.shape(getattr(of_none, one.name)) for one in fields(of_none)}
    right = type(sums) is type(of_none) and all(np.shape(getattr(sums, one)) == shapes[one] for one in shapes)
    with np.errstate(over="ignore", invalid="ignore"):
        right = right and np.isfinite(sums.total_about(0.0)).all() and np.isfinite(sums.base)
    if right and isinstance(sums, Moments):
        count, mean, scatter = column_sums(None, sums).values()
        right = (count >= 0).all() and (scatter >= -ROUNDED * count * mean**2).all()
    elif right and not signed:
        right = (sums.sums >= 0).all()
    if not right:
        raise ValueError(f"statistics of {name!r} are no sums of rows: finite, counts >= 0, of the shapes {shapes}")


def first_difference(a, b) -> str:
    """Describe the first difference between two fits whose columns, categories or classes differ."""
    for what, mine, theirs in (("classes", a.classes_, b.classes_), ("columns", a.schema_.columns, b.schema_.columns)):
        if list(mine) != list(theirs):
            return f"the {what} are {listed(mine)} and {listed(theirs)}"
    for column, block in a.schema_.block_of.items():
        if block != (other := b.schema_.block_of.get(column)):
            return f"column {column!r} has {_kind(block)} and {_kind(other)}"
    return "the order of the columns"


def _kind(block: Block | None) -> str:
    """Return the kind of a column in words: its categories, or its family."""
    if block is None:
        return "no part"
    if block.categories is not None:
        return f"the categories {listed(block.categories)}"
    return "numbers" if block.leaf == "gaussian" else f"the family {block.leaf!r}"


def check_scale(schema, statistics) -> None:
    """Raise where the squares of the values of a column with a weak prior lose digits."""
    for block in schema.blocks:
        if not isinstance(block.leaf, str) or not FAMILIES[block.leaf].scaled:
            continue
        pooled = statistics.leaves[block.name].pooled
        if not (pooled.constant.any() or (pooled.variance < _SMALLEST**2).any()):
            continue
        size, variance = np.abs(np.ravel(pooled.mean)), np.ravel(pooled.variance)
        tiny = (np.ravel(pooled.constant) & (size > 0) & (size < _SMALLEST)) | (variance < _SMALLEST**2)
        if tiny.any():
            why = f"squares of values below {_SMALLEST:g} lose their digits in float64; give them in smaller units"
            raise ValueError(f"columns {listed(np.array(block.columns)[tiny])}: {why}")


def leaf_of(block: Block, prior: str = "weak") -> Leaf:
    """Return the leaf of a block of columns: the user's own, or the one of their family."""
    leaf: Any = block.leaf  # the model refuses anything else by name
    shape = () if block.single else (len(block.columns),)
    if isinstance(leaf, str):
        if prior not in FAMILIES[leaf].priors:
            why = f"there is no {prior} prior of {leaf!r} columns; give its leaf"
            raise ValueError(f"column {block.columns[0]!r}: {why}")
        return FAMILIES[leaf].priors[prior](block, shape)
    if isinstance(leaf, Leaf) and shape and not (leaf.event_dim or leaf.features or leaf.per_class):
        return leaf.repeated(*shape)
    return leaf.for_columns(block.columns) if isinstance(leaf, Leaf) else leaf
