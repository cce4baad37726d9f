"""From a raw table to columns and classes that a classifier takes, and an account of what was done to it."""

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MODELS = ("nb", "gda")
_FEW = 10  # a column of whole numbers with no more distinct values could also be one of categories


@dataclass(frozen=True)
class Prepared:
    """Columns and classes that a classifier takes, and what was done to the table.

    Attributes
    ----------
    X, y, rows
        Columns (DataFrame), class labels, and the position in the table of every row that is left.
    notes : tuple of str
        What was left out, and what was ambiguous.
    """

    X: Any
    y: np.ndarray
    rows: np.ndarray
    notes: tuple[str, ...]


def prepare(table: "pd.DataFrame", target: str, model: str = "nb") -> Prepared:
    """Split a table into columns and classes, leaving out what ``model`` cannot use.

    Parameters
    ----------
    table : pandas.DataFrame
        Raw rows.
    target : str
        Column of the classes; rows without one are left out.
    model : {"nb", "gda"}
        "gda" takes columns of numbers only, and rows without gaps only.

    Raises
    ------
    ValueError
        If the target is no column, or holds no two classes, or nothing is left to learn from.
    """
    check_model(model)
    table = table.set_axis(table.columns.map(str), axis=1)
    if not table.columns.is_unique:
        raise ValueError(f"column {table.columns[table.columns.duplicated()][0]!r} is there twice")
    if target not in table.columns:
        raise ValueError(f"no column {target!r}; there are: {', '.join(table.columns)}")
    if not len(table):
        raise ValueError("the table is empty: it has columns, but no rows")
    rows = np.flatnonzero(table[target].notna())
    notes, told = [], defaultdict(list)
    if len(rows) < len(table):
        notes.append(f"{_count(len(table) - len(rows), 'row')} left out: no {target}")
    X, y = table.iloc[rows].drop(columns=target), np.asarray(table[target].iloc[rows].tolist())
    if y.dtype.kind == "f":
        if (y % 1 != 0).any():
            raise ValueError(f"{target} holds {len(np.unique(y))} distinct real numbers, not classes")
        y = y.astype(int)
    y = y if y.dtype.kind in "biuU" else y.astype(str)
    _check_classes(target, y)
    for column in X.columns:
        if why := _unusable(X[column], rows, model):
            X = X.drop(columns=column)
            told[f"left out: {why}"].append(column)
        else:
            X[column], doubt = _typed(X[column])
            if doubt:
                told[f"ambiguous: {doubt}"].append(column)
    notes += [f"{', '.join(columns)} {what}" for what, columns in told.items()]
    if not X.shape[1]:
        raise ValueError("; ".join(["no column is left to learn from", *notes]))

    gaps = X.isna().to_numpy()
    if gaps.any() and model == "nb":
        notes.append(f"{_count(gaps.sum(), 'missing value')} integrated out")
    if gaps.any() and model == "gda":
        whole = ~gaps.any(1)
        notes.append(f"{_count((~whole).sum(), 'row')} left out: gda compares on rows without gaps")
        X, y, rows = X[whole], y[whole], rows[whole]
        _check_classes(target, y)
    return Prepared(X.reset_index(drop=True), y, rows, tuple(notes))


def _unusable(column, rows, model) -> str | None:
    """Why a model cannot use a column, if it cannot."""
    values = column.dropna()
    kinds = _kinds(values)
    if not kinds:
        return "no observed value"
    if not kinds <= {"number", "bool", "str"}:
        return f"values of type {', '.join(sorted(kinds))}, neither numbers nor categories"
    distinct = values.nunique()
    if distinct == 1:
        return f"constant, always {values.iloc[0]}"
    if column.dtype.kind in "iu" and len(rows) > _FEW and (np.diff(column) == np.diff(rows)).all():
        return "a row number, it seems: it counts the rows"
    if "str" in kinds and distinct >= 0.9 * len(values):
        return f"an identifier, it seems: {distinct} distinct values in {len(values)} rows"
    if model == "gda" and kinds != {"number"}:
        return "not numbers, and gda takes numbers only"
    return None


def _typed(column) -> tuple[Any, str]:
    """Return a usable column of one type, and what is doubtful about the type."""
    import pandas as pd

    values = column.dropna()
    kinds = _kinds(values)
    if kinds == {"number"}:
        few = values.nunique() <= _FEW and (values % 1 == 0).all()
        return pd.to_numeric(column), "few distinct whole numbers, taken as numbers, not categories" if few else ""
    if kinds == {"bool"}:
        return column, ""
    values = values.astype(object).map(str)
    words = values[pd.to_numeric(values, errors="coerce").isna()]
    but = f"but for {words.iloc[0]!r}" if len(words) else "written as text"
    doubt = f"numbers {but}, taken as categories" if len(words) < 0.5 * len(values) else ""
    return values.reindex(column.index), doubt


def _kinds(values) -> set[str]:
    """Kinds of observed values: "number", "bool", "str", or the names of other types."""
    if values.dtype.kind in "iufb" and len(values):
        return {"bool"} if values.dtype.kind == "b" else {"number"}
    names = {type(v).__name__ for v in values.tolist()}
    return {"number" if name in ("int", "float") else name for name in names}


def _count(n, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _check_classes(target, y):
    if not len(y):
        raise ValueError(f"no row is left: all lack {target} or, for gda, a number")
    if (y == y[0]).all():
        raise ValueError(f"{target} holds one class only, {y[0]}, in the {_count(len(y), 'row')} that can be used")


def check_model(model: str) -> None:
    """Raise where a model has no such short name."""
    if model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}; got {model!r}")
