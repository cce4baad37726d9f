"""Arguments of decisions and scores, checked and in one form: true classes, probabilities, losses and weights."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesgen.core.errors import listed
from bayesgen.core.names import by_name, names_along, places
from bayesgen.numerics.checks import check_weight
from bayesgen.tables.labels import class_labels

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Labels = Sequence | NDArray

REJECT = -1
"""The action code by which `bayesgen.decision.decide` declines to decide."""

ASK = "ask"
"""The name of the code `REJECT` among the actions of `bayesgen.decision.act`."""

NONE_OF_THESE = -2
"""The action code by which `bayesgen.decision.decide` marks a row that is like no class."""

CODE_NAMES = ["none of these", ASK]
"""Names of the codes -2 and -1 where actions have names."""


def truth_and_probability(y_true: ArrayLike, y_proba: ArrayLike, labels: Labels | None = None) -> tuple[Codes, Floats]:
    """Return `class_codes` (n,) and probabilities (n, K) in the order of `column_classes`; of two one may do."""
    names, p = column_classes(y_proba, labels), both_columns(y_proba)
    t = class_codes("y_true", y_true, p.shape[1], names, len(p))
    if labels is None and names is not None and _are_text(names) and sorted(names) != [*names]:
        _refuse_codes(t, y_true, f"y_proba names its columns {listed(names)}")
    return t, p


def both_columns(y_proba: ArrayLike) -> Floats:
    """Return probabilities (n, K); one column is the probability of the second of two classes."""
    p = numbers("y_proba", y_proba)
    return probabilities(np.column_stack([1 - p, p]) if p.ndim == 1 else p)


def named_classes(y_true: ArrayLike, codes: Codes, y_proba: ArrayLike, labels: Labels | None, count: int) -> list:
    """Return the classes in the order of the columns of the probabilities, as the user calls them."""
    known = column_classes(y_proba, labels)
    return np.asarray(classes_by_code(y_true, codes, count) if known is None else known).tolist()


def for_case(p: Floats, y_proba: ArrayLike, case: int) -> Floats:
    """Return probabilities of two classes (n, 2) whose one column was given as that of the case, by its code."""
    return p[:, ::-1] if np.ndim(y_proba) == 1 and case == 0 else p


def case_of(positive, classes: Sequence) -> int:
    """Return the code of the class of the cases; the second of two classes where nobody names it."""
    if positive is None and len(classes) != 2:
        raise ValueError(f"positive must name the class of the cases, one of {listed(classes)}")
    if positive is not None and positive not in classes:
        raise ValueError(f"positive must be one of the classes {listed(classes)}, got {positive!r}")
    return 1 if positive is None else list(classes).index(positive)


def class_codes(
    name: str, values: ArrayLike, count: int, labels: Labels | None = None, n_rows: int | None = None
) -> Codes:
    """Return the code of each class, 0 to count - 1.

    With ``labels`` a code is the place among them, by value or by text; codes are accepted where all labels are text,
    and other text than the codes. Without labels whole numbers from 0 to count - 1 are codes, and any other ``count``
    distinct values are the classes in sorted order, like scikit-learn's ``classes_``.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")  # odd in a fit, not in a few rows to score
        y = class_labels(values, name) if np.size(values) else np.zeros(np.shape(values), np.intp)
    if n_rows not in (None, len(y)):
        raise ValueError(f"{name} must have shape ({n_rows},), one class a row; got {y.shape}.")
    known = None if labels is None else list(labels)
    if known is not None and not len(known) == len(set(known)) == count:
        raise ValueError(
            f"{name} needs {count} distinct labels, in the order of the columns of y_proba or the axis of loss; got "
            f"{listed(known)}."
        )
    whole = y.dtype.kind in "biu" and (not y.size or 0 <= y.min() <= y.max() < count)
    textual = known is not None and _are_text(known)
    if textual and y.dtype.kind in "biu" and set(np.unique(y).astype(str)) <= {*(known or ())}:
        y = y.astype(str)  # classes 1 and 2, which polars calls "1" and "2"
    elif whole and (known is None or textual):
        return y.astype(np.intp, copy=False)
    found, codes = np.unique(y, return_inverse=True)
    if known is None:
        if len(found) != count:
            raise ValueError(
                f"{name} holds {len(found)} distinct values {listed(found)} where there are {count} classes: give "
                "labels=, the classes in the order of the columns, such as classifier.classes_."
            )
        return codes
    place = {label: code for code, label in enumerate(known)}
    if new := [label for label in found.tolist() if label not in place]:
        raise ValueError(f"{name} holds {listed(new)}, not among {listed(known)}.")
    return np.array([place[label] for label in found.tolist()], dtype=np.intp)[codes]


def action_codes(values: ArrayLike, names: Labels | None, count: int, n_rows: int) -> Codes:
    """Return the code of each action, `REJECT` to count - 1, from names, or codes if names are absent or text."""
    if np.ma.is_masked(values):
        raise ValueError("action has masked entries; leave these rows out.")
    a = np.asarray(values)
    if names is not None and (a.dtype.kind not in "biu" or not _are_text(names)):
        asked = np.array([value == ASK for value in a.ravel().tolist()]) & (ASK not in list(names))
        if a.shape != (n_rows,) or not asked.any():
            return class_codes("action", a.tolist(), count, names, n_rows)  # numbers beside "ask" are objects
        codes = np.full(n_rows, REJECT, np.intp)
        codes[~asked] = class_codes("action", a[~asked].tolist(), count, names) if not asked.all() else 0
        return codes
    if a.dtype.kind not in "biu":
        raise TypeError(f"action must be integer codes; got dtype {a.dtype}. Give the names of actions as actions=.")
    if a.shape != (n_rows,):
        raise ValueError(f"action must have shape ({n_rows},), one code a row; got {a.shape}.")
    if a.size and not REJECT <= a.min() <= a.max() < count:
        raise ValueError(
            f"action must be codes from {REJECT} to {count - 1}; got {a.min()} to {a.max()}. Number actions from 0, in "
            "the order of the columns of loss."
        )
    return a.astype(np.intp, copy=False)


def _are_text(labels: Labels) -> bool:
    return all(isinstance(label, str) for label in labels)


def is_table(values) -> bool:
    """Return True if rows and columns are labelled, as in a DataFrame."""
    return hasattr(values, "columns") and hasattr(values, "index")


def named_loss(loss, labels: Labels | None = None, actions: Labels | None = None):
    """Return a loss matrix with the names of its rows and columns, each None where there are no names.

    Rows and columns of a DataFrame are found by their labels: they come in the order of ``labels`` and ``actions``
    where these are given, else in their own. Labels 0, 1, ... in this order, those of a DataFrame made without any, are
    no names. Labels match by their text, since a file holds nothing else.
    """
    matrix = loss_matrix(loss)
    if is_table(loss):
        rows, labels = _in_order(loss.index, labels, "one row for each of the classes")
        columns, actions = _in_order(loss.columns, actions, "one column for each of the actions")
        matrix = matrix[np.ix_(rows, columns)]
    elif axes := names_along(loss):  # a frame without an index: its rows are the classes in their order
        columns, actions = _in_order(axes[-1] or range(matrix.shape[1]), actions, "one column for each of the actions")
        matrix = matrix[:, columns]
    return matrix, labels, actions


def _in_order(names, wanted: Labels | None, expected: str):
    """Return the place of each wanted label among ``names``, and the labels; all where none is wanted.

    Names 0, 1, ... in this order are no labels: then None is returned in place of all labels.
    """
    names = list(names)
    order = places("loss", names, names if wanted is None else list(wanted), expected)
    if wanted is None:
        return order, None if names == list(range(len(names))) else names
    return order, list(wanted)


def aligned_loss(loss, classes: Labels | None, n_classes: int):
    """Return a loss matrix with its rows in the order of ``classes``, and the names of its actions, if any.

    Where rows are named and nothing says which class each column of the probabilities is, it is an error.
    """
    matrix, rows, actions = named_loss(loss, classes)
    if classes is None and rows is not None:
        raise ValueError(
            f"loss names its rows {listed(rows)}, and nothing says which column of the probabilities is which: give "
            "labels=, the classes in the order of the columns, such as classifier.classes_."
        )
    return loss_matrix(matrix, n_classes), actions


def column_classes(y_proba, labels: Labels | None) -> Labels | None:
    """Return the classes in the order of the columns: ``labels``, or the names of the columns of a DataFrame."""
    names = names_along(y_proba)[1:] or (None,)
    if names[0] is None:
        return labels
    if labels is not None and [*map(str, names[0])] != [*map(str, labels)]:
        raise ValueError(
            f"labels must be in the order of the columns of y_proba, {listed(names[0])}; got {listed(labels)}. Leave "
            "labels out, or give y_proba.to_numpy()."
        )
    return names[0] if labels is None else labels


def truth_and_loss(y_true: ArrayLike, loss, labels: Labels | None, actions: Labels | None):
    """Return the class codes of rows, a loss matrix in their order, and the names of its rows and columns, if any."""
    matrix, rows, actions = named_loss(loss, labels, actions)
    t = class_codes("y_true", y_true, len(matrix), rows)
    if labels is None and rows is not None and _are_text(rows):
        _refuse_codes(t, y_true, f"loss names its rows {listed(rows)}")
    return t, matrix, rows, actions


def _refuse_codes(t: Codes, y_true: ArrayLike, names: str) -> None:
    """Raise if true classes are codes where nothing says which class each code is."""
    if t.size and np.array_equal(t, y_true):
        raise ValueError(
            f"{names}, and y_true holds codes: name the classes in y_true, or give labels=, the classes in the order "
            "of their codes, such as classifier.classes_."
        )


def classes_by_code(y_true: ArrayLike, codes: Codes, count: int) -> Labels:
    """Return the classes in the order of their codes, where nobody gave them: codes, or the distinct values sorted."""
    return np.arange(count) if np.array_equal(codes, y_true) else np.unique(np.asarray(y_true))


def numbers(name: str, values: ArrayLike) -> Floats:
    """Return an array of floats; raise if entries are masked or no numbers."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; leave these rows out.")
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of numbers; got dtype {array.dtype}.")
    return array.astype(np.float64, copy=False)


def probabilities(values: ArrayLike) -> Floats:
    """Return class probabilities (n, K); raise unless every row is one distribution."""
    p = numbers("y_proba", values)
    if p.ndim != 2 or p.shape[1] == 0:
        raise ValueError(
            f"y_proba must have shape (rows, classes); got {p.shape}. For two classes give "
            "both columns: np.column_stack([1 - p, p])."
        )
    wrong = np.flatnonzero(~((p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) <= 1e-6)))
    if wrong.size:
        raise ValueError(
            "y_proba must be finite and in [0, 1], every row summing to 1 within 1e-6; not so "
            f"in {wrong.size} rows, first row {wrong[0]}: {p[wrong[0]]}. Normalise the rows."
        )
    return p


def loss_matrix(values: ArrayLike, n_classes: int | None = None) -> Floats:
    """Return losses (K, actions); raise if their shape is wrong or one is not finite."""
    loss = numbers("loss", values)
    if loss.ndim != 2 or loss.size == 0 or n_classes not in (None, len(loss)):
        wanted = f"({n_classes or 'classes'}, actions), a row for each true class"
        raise ValueError(f"loss must have shape {wanted}; got {loss.shape}.")
    if not np.isfinite(loss).all():
        raise ValueError("loss must be finite; for a forbidden action use a large number.")
    return loss


def finite(reject_cost: float) -> float:
    """Return the cost of declining to decide; raise if it is not finite."""
    if not np.isfinite(reject_cost):
        raise ValueError(f"reject_cost must be finite, or None to never reject; got {reject_cost}.")
    return reject_cost


def costs_of(names, cost) -> np.ndarray:
    """Return the cost of each column, shape (columns,), from the argument ``cost``."""
    if isinstance(cost, Mapping):
        absent = [name for name in cost if name not in names]
        if absent:
            raise ValueError(f"cost names the columns {listed(absent)}, which X does not have; it has {listed(names)}")
        cost = [cost.get(name, 0.0) for name in names]
    cost = by_name("cost", cost, names, expected="one cost for each of the columns")
    try:
        costs = np.asarray(0.0 if cost is None else cost, float)
    except (TypeError, ValueError):
        raise TypeError(f"cost must be a number, one a column, or numbers by column; got {cost!r}") from None
    if costs.shape not in ((), (len(names),)):
        raise ValueError(f"cost must be a number, or one for each of the {len(names)} columns; got shape {costs.shape}")
    if not (np.isfinite(costs) & (costs >= 0)).all():
        raise ValueError("cost must be finite and >= 0")
    return np.broadcast_to(costs, (len(names),))


def weights(sample_weight: ArrayLike | None, n_rows: int) -> Floats:
    """Return one weight per row, 1 by default; raise if one is negative or not finite, or if all are 0."""
    check_weight(sample_weight, n_rows, "sample_weight")
    w = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, float)
    if not n_rows:
        raise ValueError("there is no row to average: give at least one.")
    if not w.any():
        raise ValueError("sample_weight must be positive for at least one row; there is none to average.")
    return w


def mean(values: NDArray, sample_weight: ArrayLike | None) -> float:
    """Return the weighted mean over rows."""
    w = weights(sample_weight, len(values))
    used = w > 0  # 0 times infinity: a row of weight zero is absent, whatever its value
    return float(np.average(values[used], weights=w[used]))
