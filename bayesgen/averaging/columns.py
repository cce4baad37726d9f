"""Conversion of the blocks of a schema to arrays of numbers and of category codes, and back; a bool is a category."""

import warnings

import numpy as np

from bayesgen.core.errors import listed
from bayesgen.numerics.pieces import count_rows, pieces
from bayesgen.tables.schema import Schema

WIDEST = 2000  # numeric columns
_SMALLEST, LARGEST = 1e-150, 1e150  # limits at fit: squares beyond lose digits, or leave float64
_FINITE = float(np.finfo(float).max)
_FARTHEST = 1e50  # times the spread of a column: bent columns square it, and densities square that


def numbers(schema: Schema, constant=()) -> list[str]:
    """Return the names of the numeric columns, without the constant ones."""
    return [
        name for block in schema.blocks if block.leaf == "gaussian" for name in block.columns if name not in constant
    ]


def categories(schema: Schema) -> list[str]:
    """Return the names of the columns of categories and bools, block by block."""
    return [name for block in schema.blocks if block.leaf != "gaussian" for name in block.columns]


def levels(schema: Schema) -> list[int]:
    """Return the number of categories of each column of `categories`."""
    count = {block.name: 2 if block.categories is None else len(block.categories) for block in schema.blocks}
    return [count[block.name] for block in schema.blocks if block.leaf != "gaussian" for _ in block.columns]


def level_names(schema: Schema) -> list[str]:
    """Return the names of all levels of all columns of `categories`, each with its column."""
    return [
        f"{name} = {level}"
        for block in schema.blocks
        if block.leaf != "gaussian"
        for name in block.columns
        for level in ((False, True) if block.categories is None else block.categories)
    ]


def constant(schema: Schema, blocks) -> tuple[str, ...]:
    """Return the numeric columns with one value or none; raise if values are too small or columns too many."""
    names = numbers(schema)
    if not names:
        return ()
    x = _numbers(schema, blocks)
    varies = _spread(x[:100]) > 0
    varies[~varies] = _spread(x[:, ~varies]) > 0
    tiny = np.flatnonzero(varies & ~(_spread(x[:100]) >= _SMALLEST))
    tiny = tiny[_spread(x[:, tiny]) < _SMALLEST]
    if len(tiny):
        raise ValueError(
            f"columns {listed([names[j] for j in tiny])}: squares of values below {_SMALLEST:g} lose their digits in "
            "float64; give them in smaller units"
        )
    if varies.sum() > WIDEST:
        raise ValueError(
            f"X has {varies.sum()} numeric columns, and at most {WIDEST} are taken: choose some by "
            "sklearn.feature_selection, or project them by PCA"
        )
    return tuple(name for name, flag in zip(names, varies, strict=True) if not flag)


def refuse_far(schema: Schema, blocks) -> None:
    """Raise if a value lies so far from the others of its column that its square hides them."""
    x = _numbers(schema, blocks)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns without a value
        away = np.abs(x - np.nanmedian(x, 0))
        times = np.nan_to_num(away / np.nanmedian(np.where(away > 0, away, np.nan), 0))
    if times.max(initial=0) > _FARTHEST:
        row, place = np.unravel_index(times.argmax(), times.shape)
        raise ValueError(
            f"column {numbers(schema)[place]!r}: value {x[row, place]:g} in row {row} is {times[row, place]:.0e} times "
            "as far from the middle of the column as most others, which its square hides: mend it, or leave the row out"
        )


def arrays(schema: Schema, blocks, left_out=(), largest=_FINITE) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers (n, D) up to ``largest``, NaN where missing, and category codes (n, F), -1 where missing."""
    x = _numbers(schema, blocks)
    if not _small(x) and (np.fmin.reduce(x, None) < -largest or np.fmax.reduce(x, None) > largest):
        row, place = np.argwhere(np.abs(x) > largest)[0]
        value = x[row, place]
        what = "infinite; give NaN where it is missing" if np.isinf(value) else "too large; take another unit"
        raise ValueError(f"column {numbers(schema)[place]!r}: value {value:g} in row {row} is {what}")
    if left_out:
        x = x[:, [name not in left_out for name in numbers(schema)]]
    others = [_matrix(blocks[block.name]) for block in schema.blocks if block.leaf != "gaussian"]
    c = np.concatenate([np.empty((len(x), 0)), *others], axis=1)
    return x, np.where(np.isnan(c), -1, c).astype(np.intp)


def blocks(schema: Schema, x, c, left_out=()) -> dict[str, np.ndarray]:
    """Return the blocks of numbers and category codes, the inverse of `arrays`; columns left out are missing."""
    result, start = {}, 0
    for block in schema.blocks:
        if block.leaf == "gaussian":
            whole = np.full((len(x), len(block.columns)), np.nan)
            whole[:, [name not in left_out for name in block.columns]] = x
            result[block.name] = whole
        else:
            stop = start + len(block.columns)
            result[block.name] = c[:, start:stop]
            start = stop
    return result


def _matrix(values):
    return np.asarray(values, float).reshape(len(values), -1)


def _numbers(schema, rows):
    own = [rows[block.name] for block in schema.blocks if block.leaf == "gaussian"]
    return _matrix(own[0]) if own else np.empty((count_rows(rows), 0))


def _spread(x):
    """Return the range of each column; NaN, which is not above 0, if it has no value."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.fmax.reduce(x, 0) - np.fmin.reduce(x, 0)


def _small(x) -> bool:
    """Return True if there is neither a gap nor a number whose square is too large, in one read."""
    with np.errstate(over="ignore", invalid="ignore"):
        flat = (x[part].ravel() for part in pieces(len(x), x.shape[1]))
        return bool(np.isfinite(sum(rows @ rows for rows in flat)))
