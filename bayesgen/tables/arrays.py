"""Conversion of the blocks of a schema to arrays, and back: numbers, category codes, and columns with own leaves.

A block of the family "gaussian" or "date" holds numbers; one of "categorical" or "bernoulli" (bools) holds categories.
All others have leaves of their own: those that the user gave, and the families "poisson", "log", "log1p" and
"multinomial".
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.core.errors import listed
from bayesgen.core.memory import check_memory
from bayesgen.models.bernoulli import BINARY
from bayesgen.models.column_families import FAMILIES
from bayesgen.numerics.pieces import count_rows
from bayesgen.tables.schema import Block, Schema
from bayesgen.tables.table import Table

INFINITE = "is infinite; give NaN where it is missing"
_SMALLEST, LARGEST = 1e-150, 1e150  # limits at fit: squares beyond lose digits, or leave float64
_FINITE = float(np.finfo(float).max)
_NUMBERS, _CATEGORIES = ("gaussian", "date"), ("categorical", "bernoulli")


def numbers(schema: Schema, constant=()) -> list[str]:
    """Return the names of the numeric columns, without the constant ones."""
    without = set(constant)
    return [name for block in _of(schema, _NUMBERS) for name in block.columns if name not in without]


def categories(schema: Schema, constant=()) -> list[str]:
    """Return the names of the columns of categories and bools, block by block, without the constant ones."""
    return [name for name, _ in _levels(schema, constant)]


def leaves(schema: Schema) -> tuple[Block, ...]:
    """Return the blocks that have a leaf of their own."""
    others = {block.name for block in [*_of(schema, _NUMBERS), *_of(schema, _CATEGORIES)]}
    return tuple(block for block in schema.blocks if block.name not in others)


def _of(schema: Schema, families) -> list[Block]:
    return [block for block in schema.blocks if isinstance(block.leaf, str) and block.leaf in families]


def levels(schema: Schema, constant=()) -> list[int]:
    """Return the number of categories of each column of `categories`."""
    return [len(levels) for _, levels in _levels(schema, constant)]


def level_names(schema: Schema, constant=()) -> list[str]:
    """Return the names of all levels of all columns of `categories`, each with its column."""
    return [f"{name} = {level}" for name, levels in _levels(schema, constant) for level in levels]


def _levels(schema: Schema, constant=()) -> list[tuple[str, tuple]]:
    """Return the columns of categories and bools, without the constant ones, and the levels of each."""
    without, bits = set(constant), (False, True)
    pairs = ((name, block.categories or bits) for block in _of(schema, _CATEGORIES) for name in block.columns)
    return [(name, levels) for name, levels in pairs if name not in without]


def learned(table: Table, features) -> tuple[Schema, dict[str, np.ndarray]]:
    """Return the schema of a table for an average, and its rows by block.

    A column of a family such as "log", whose weak prior takes its scale from the rows, becomes a number where it has
    one value or none: so `constant` leaves it out of every member, of their exponents and of their number.
    """
    schema = Schema.learn(table, features)
    rows, moved, blocks = schema.read(table), [], []
    for block in schema.blocks:
        scaled = isinstance(block.leaf, str) and block.leaf not in _NUMBERS and FAMILIES[block.leaf].scaled
        varies = _spread(_matrix(rows[block.name])) > 0 if scaled else np.ones(len(block.columns), bool)
        moved += [name for name, flag in zip(block.columns, varies, strict=True) if not flag]
        kept = tuple(name for name in block.columns if name not in moved)
        blocks += [replace(block, columns=kept)] if kept else []
    if not moved:
        return schema, rows
    place = next((i for i, block in enumerate(blocks) if block.leaf == "gaussian"), len(blocks))
    name = "gaussian"
    while name in {block.name for block in blocks}:
        name += "_"
    numbers = blocks[place] if place < len(blocks) else Block(name, (), False, "gaussian")
    blocks[place : place + 1] = [replace(numbers, columns=(*numbers.columns, *moved))]
    schema = replace(schema, blocks=tuple(blocks))
    return schema, schema.read(table)


def constant(schema: Schema, blocks) -> dict[str, float]:
    """Return the columns with one value and the value, or its code; and numeric ones without a value, with NaN.

    What says nothing is so left out of every member, whatever it holds. Raise if numbers are too small.
    """
    found = {}
    for name, codes in zip(categories(schema), _codes(schema, blocks).T, strict=True):
        if (low := np.fmin.reduce(codes, initial=np.nan)) == np.fmax.reduce(codes, initial=np.nan):
            found[name] = float(low)
    names = numbers(schema)
    if not names:
        return found
    x = _numbers(schema, blocks)
    spread = _spread(x)
    varies = spread > 0
    if len(tiny := np.flatnonzero(varies & (spread < _SMALLEST))):
        why = "lose their digits in float64; give them in smaller units"
        raise ValueError(f"columns {listed([names[j] for j in tiny])}: squares of values below {_SMALLEST:g} {why}")
    value = np.fmax.reduce(x[:, ~varies], 0).tolist()
    return found | dict(zip([name for name, flag in zip(names, varies, strict=True) if not flag], value, strict=True))


def numbers_and_codes(schema: Schema, blocks, left_out=(), largest=_FINITE) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers (n, D) up to ``largest``, NaN where missing, and category codes (n, F), -1 where missing."""
    x = _numbers(schema, blocks)
    if x.size and (np.fmin.reduce(x, None) < -largest or np.fmax.reduce(x, None) > largest):
        row, place = np.argwhere(np.abs(x) > largest)[0]
        value = x[row, place]
        words = INFINITE if np.isinf(value) else "is too large; take another unit"
        raise ValueError(f"column {numbers(schema)[place]!r}: value {value:g} in row {row} {words}")
    c = _codes(schema, blocks)
    if left_out:
        x, c = x[:, _kept(numbers(schema), left_out)], c[:, _kept(categories(schema), left_out)]
    return x, np.where(np.isnan(c), -1, c).astype(np.intp)


def entries(schema: Schema, blocks) -> np.ndarray | None:
    """Return the entries of the blocks with own leaves side by side, (n, E), NaN where missing; None without such."""
    parts = [_matrix(made_dense(blocks[block.name])) for block in leaves(schema)]
    return np.concatenate(parts, axis=1) if parts else None


def made_dense(rows) -> np.ndarray:
    """Return rows as floats; those of a sparse matrix are written out where memory holds them."""
    if sparse.issparse(rows):
        check_memory("the rows of a sparse matrix, made dense,", 8 * math.prod(rows.shape), "give fewer rows at a time")
        rows = rows.toarray()
    return np.asarray(rows, float)


def columns(schema: Schema, blocks, names) -> np.ndarray:
    """Return the numbers, or codes, of the columns of some names, (n, columns), NaN where missing."""
    every = [*numbers(schema), *categories(schema)]
    return np.concatenate([_numbers(schema, blocks), _codes(schema, blocks)], axis=1)[:, [*map(every.index, names)]]


def blocks(schema: Schema, x, c, e=None, left_out=(), others: Mapping[str, np.ndarray] | None = None):
    """Return the entries by block, the inverse of `numbers_and_codes` and `entries`.

    Columns that were ``left_out`` are missing, but for those whose values (n,) ``others`` has by name.
    """
    result, found = {}, []
    for names, entries in ((numbers(schema), x), (categories(schema), c)):
        whole, kept = entries, _kept(names, left_out)
        if not kept.all():
            whole = np.full((len(x), len(names)), np.nan)
            whole[:, kept] = entries
        for name in set(others or ()).intersection(names):
            whole[:, names.index(name)] = (others or {})[name]
        found.append(whole)
    kinds: Any = ((found[0], _of(schema, _NUMBERS)), (found[1], _of(schema, _CATEGORIES)), (e, leaves(schema)))
    for array, members in kinds:
        stops = itertools.accumulate(len(block.columns) for block in members)
        for block, stop in zip(members, stops, strict=True):
            result[block.name] = array[:, stop - len(block.columns) : stop]
    return result


def _codes(schema: Schema, rows) -> np.ndarray:
    """Return the codes of all columns of `categories`, (n, F), NaN where missing; raise where a bool is none."""
    others = [_matrix(rows[block.name]) for block in _of(schema, _CATEGORIES)]
    for block, values in zip(_of(schema, _CATEGORIES), others, strict=True):
        if block.categories is not None:  # which are codes of the schema
            continue
        for row, place in np.argwhere(~((values == 0) | (values == 1) | np.isnan(values)))[:1]:
            name = block.columns[place]
            raise ValueError(f"column {name!r}: value {values[row, place]:g} in row {row} {BINARY}")
    return np.concatenate([np.empty((count_rows(rows), 0)), *others], axis=1)


def _matrix(values):
    return np.asarray(values, float).reshape(len(values), -1)


def _numbers(schema, rows):
    matrices = [_matrix(rows[block.name]) for block in _of(schema, _NUMBERS)]
    if len(matrices) == 1:
        return matrices[0]
    return np.concatenate(matrices, axis=1) if matrices else np.empty((count_rows(rows), 0))


def _spread(x):
    """Return the range of each column; NaN, which is not above 0, if it has no value."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.fmax.reduce(x, 0) - np.fmin.reduce(x, 0)


def _kept(names: list[str], left_out) -> np.ndarray:
    left_out = set(left_out)
    return np.array([name not in left_out for name in names], bool)
