"""Class labels and row weights as users bring them."""

import enum
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from bayesgen.core.errors import Argument, InputError, listed
from bayesgen.numerics.checks import check_weight
from bayesgen.tables.shares import Shares


def existing(table, y, weight):
    """Return the rows of a `Table` whose weight is not 0, with target, weights and places; others are never read."""
    if len(y) != len(table):
        raise ValueError(f"X has {len(table)} rows and y has {len(y)}; they must be of one length")
    if weight is None:
        return table, y, None, range(len(y))
    weight = np.array(check_weight(weight, len(y), "sample_weight"))  # what is kept is not the user's
    if not weight.any():
        raise ValueError("sample_weight must hold at least one non-zero number")
    places = np.flatnonzero(weight)
    if len(places) == len(y):
        return table, y, weight, places
    return table.rows(places), y[places], weight[places], places


def class_labels(y, name: str = "y") -> Any:
    """Return class labels as an array (n,), or raise an error that calls them ``name``; `Shares` stay shares."""
    if isinstance(y, Shares) or (type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biu"):
        return y  # whole numbers are labels, none of them missing
    masked = np.ma.is_masked(y)
    y = _array(y)
    if not masked and y.dtype.kind in "biuU":
        return y
    if not masked and y.dtype.kind == "O" and pd.api.types.infer_dtype(y, skipna=False) == "string":
        return y
    if masked or pd.isna(y).any():
        learned = ", or learn from them too by LatentClassClassifier" if name == "y" else ""
        raise ValueError(f"{name} contains missing labels; drop these rows{learned}")
    if y.dtype.kind == "O" and pd.api.types.infer_dtype(y) in ("boolean", "integer", "floating", "mixed-integer-float"):
        y = np.array(y.tolist())  # as NumPy makes of a list: pandas keeps objects of a column that had a gap
    if y.dtype.kind in "SVO":
        _check_kinds(y, name)
    assert_all_finite(y, input_name=name)
    try:
        check_classification_targets(y)
    except TypeError:  # labels without an order among them
        kinds = sorted({type(label).__name__ for label in y})
        raise TypeError(f"{name} mixes labels of the types {kinds}; make them of one type") from None
    return y


def weightless(y, classes, weight) -> list:
    """Return the labels that only rows of weight 0 have: they are no classes of the fit."""
    if weight is None or isinstance(y, Shares):
        return []
    known = set(classes.tolist())
    return [label for label in _distinct(y)[0].tolist() if label not in known]


NUMBERS = (  # said of a target of so many numbers that no model of classes is meant
    "numbers, and a class is meant to be one of few: cut them into classes, such as low and high, or predict the "
    "number itself with LinearRegressor"
)


def some_labels(y, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels that there are, and the place of each row's among them, -1 where it has none.

    A row has none where its label is NaN, None or NA, and all ``rows`` have none where ``y`` is None.
    """
    y = np.full(rows, np.nan) if y is None else _array(y)
    known = ~pd.isna(y)
    labels = np.array(y[known].tolist()) if y.dtype.kind == "O" else y[known]
    return class_labels(labels) if len(labels) else labels, np.where(known, np.cumsum(known) - 1, -1)


def _array(y) -> np.ndarray:
    return column_or_1d(unwrapped(y), warn=True)


def unwrapped(y):
    """Return labels as NumPy has them, where `np.asarray` would make others of a library's own type."""
    if type(y).__module__.partition(".")[0] == "pyarrow" and hasattr(y, "to_pandas"):  # its arrays copy no text unasked
        y = y.to_pandas()
    if not isinstance(getattr(y, "dtype", None), np.dtype) and (convert := getattr(y, "to_numpy", None)):
        y = _spread(y) if hasattr(y, "factorize") else convert()  # of a nullable integer one, np.asarray gives a float
    kind = getattr(getattr(y, "dtype", None), "kind", "O" if isinstance(y, list | tuple) else "")
    if kind == "T":  # NumPy's text of any length, which scikit-learn does not know
        y = np.array(np.asarray(y).tolist())
    elif kind == "O" and any(issubclass(one, enum.Enum) and issubclass(one, str | int) for one in set(map(type, y))):
        y = np.array([one.value if isinstance(one, enum.Enum) else one for one in y])  # NumPy cuts their names
    return y


def _spread(y) -> np.ndarray:
    """Return a pandas column of text or categories as an array, in which equal labels are one object."""
    codes, distinct = y.factorize(use_na_sentinel=True)
    if (codes < 0).any() or not len(y):
        return y.to_numpy()
    return distinct.to_numpy()[codes]


def declared_classes(classes) -> np.ndarray:
    """Return the classes that a user declares, sorted and each once, or raise an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")  # of rows it would be odd, here it is meant
        return np.unique(class_labels(classes))


def _check_kinds(y, name) -> None:
    for kind in dict.fromkeys(map(type, y.tolist())):
        if not issubclass(kind, str | bool | np.bool_ | int | float | complex | np.number):
            what, cure = f"{kind.__name__} values", "list(map(str, y))"
            if issubclass(kind, bytes):
                what, cure = "bytes", f"[label.decode() for label in {name}]"
            raise TypeError(f"{name} holds {what}, which are no labels; make them text: {cure}")


def class_codes(y, classes=None) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, by default those found in ``y``, and the code of each label among them; of shares (n, K)."""
    if isinstance(y, Shares):
        classes = declared_classes(y.names) if classes is None else classes
        return classes, y.among(classes.tolist())
    found, codes = _distinct(y)
    if classes is None:
        return found, codes
    position = {label: code for code, label in enumerate(classes.tolist())}
    new = [label for label in found.tolist() if label not in position]
    if new:
        cure = "declare every class as classes=, of partial_fit at its first call"
        text = f" holds the labels {listed(new)}, which are not among the classes {listed(classes)}: "
        raise InputError(Argument("y", new, "y"), text, Argument("classes", classes.tolist(), cure), value=new)
    return classes, np.array([position[label] for label in found.tolist()])[codes]


def codes_of(y, classes, rows: int) -> np.ndarray:
    """Return the codes of the labels of so many rows."""
    _, codes = class_codes(class_labels(y), classes)
    if len(codes) != rows:
        raise ValueError(f"X has {rows} rows and y has {len(codes)}; they must be of one length")
    return codes


def _distinct(y) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels in order, and the place of each label; small whole numbers are counted, not sorted."""
    if y.dtype.kind in "iu" and y.size and (top := int(y.max())) < 1 << 12 and y.min() >= 0:
        places = y.astype(np.intp, copy=False)
        present = np.bincount(places, minlength=top + 1) > 0
        if present.all():
            return np.arange(top + 1, dtype=y.dtype), places
        return np.flatnonzero(present).astype(y.dtype), (np.cumsum(present) - 1)[places]
    codes, found = pd.factorize(y, sort=True)
    return np.asarray(found, y.dtype), codes
