"""Decisions from class probabilities p(t = i | x), given what mistakes cost.

``loss[i, j]`` is the loss of taking action j when the truth is class i: rows are truths, columns
are actions. There may be more actions than classes (take another measurement), and a loss may be
negative (a gain). The Bayes decision is the action of least expected loss,

    a(x) = argmin_j  sum_i p(t = i | x) loss[i, j].

The action may also be the report of a probability vector itself. `squared_loss` and `cross_entropy`
are proper: their expectation is least when one reports what one believes, the posterior.

Arguments are checked everywhere: a wrong kind of value is a TypeError, a wrong shape or value a
ValueError, and the message names the argument.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

REJECT = -1
"""The action code by which `decide` declines to decide."""


def zero_one(n_classes: int) -> Floats:
    """Loss matrix (K, K) that counts mistakes: 0 on the diagonal, 1 elsewhere.

    >>> zero_one(2)
    array([[0., 1.],
           [1., 0.]])
    """
    return 1.0 - np.eye(n_classes)


def expected_loss(y_proba: ArrayLike, loss: ArrayLike) -> Floats:
    """Compute the expected loss of every action, sum_i p(t = i | x) loss[i, j].

    Parameters
    ----------
    y_proba : array_like, shape (n, K)
        Class probabilities; every row sums to 1.
    loss : array_like, shape (K, A)
        Finite losses, in a unit of the user's choice (errors, euros, days).

    Returns
    -------
    ndarray, shape (n, A)
        In the unit of `loss`.

    Examples
    --------
    Missing a disease (truth 1, action 0) costs ten false alarms:

    >>> expected_loss([[0.75, 0.25]], loss=[[0, 1], [10, 0]])
    array([[2.5 , 0.75]])
    """
    p = _probabilities(y_proba)
    return p @ _loss_matrix(loss, n_classes=p.shape[1])


def decide(y_proba: ArrayLike, loss: ArrayLike | None = None, *, reject_cost: float | None = None) -> Codes:
    """Take the action of least expected loss in every row; ties go to the lowest code.

    Parameters
    ----------
    y_proba : array_like, shape (n, K)
        Class probabilities; every row sums to 1.
    loss : array_like, shape (K, A), optional
        Finite losses. Left out, every mistake costs 1 (`zero_one`): the action is the most probable
        class, and its expected loss one minus that probability.
    reject_cost : float, optional
        Cost of declining to decide, in the unit of `loss`. A row is rejected where this is strictly
        lower than the expected loss of every action.

    Returns
    -------
    ndarray of int, shape (n,)
        Action codes 0 to A - 1, and `REJECT` (-1) for rejected rows.

    Examples
    --------
    >>> y_proba = [[0.75, 0.25], [0.45, 0.55]]
    >>> decide(y_proba, loss=[[0, 1], [10, 0]])
    array([1, 1])
    >>> decide(y_proba, reject_cost=0.3)
    array([ 0, -1])
    """
    if loss is None:
        p = _probabilities(y_proba)
        action, least = p.argmax(axis=1), 1 - p.max(axis=1)
    else:
        losses = expected_loss(y_proba, loss)
        action, least = losses.argmin(axis=1), losses.min(axis=1)
    if reject_cost is None:
        return action
    return np.where(_finite(reject_cost) < least, REJECT, action)


def threshold(loss: ArrayLike) -> float:
    """Probability of class 1 above which to decide for class 1, where there are two classes.

    With p = p(t = 1 | x), p loss[1, 1] + (1 - p) loss[0, 1] < p loss[1, 0] + (1 - p) loss[0, 0] if

        p > false_alarm / (false_alarm + miss),    false_alarm = loss[0, 1] - loss[0, 0],
                                                          miss = loss[1, 0] - loss[1, 1].

    At the threshold both actions cost the same, and `decide` takes action 0. If a correct decision
    costs more than the wrong one, or nothing depends on the decision, it is a ValueError.

    >>> threshold([[0, 1], [9, 0]])
    0.1
    """
    matrix = _loss_matrix(loss, n_classes=2)
    if matrix.shape[1] != 2:
        raise ValueError(f"loss must have shape (2, 2); got {matrix.shape}. Use decide instead.")
    false_alarm, miss = matrix[0, 1] - matrix[0, 0], matrix[1, 0] - matrix[1, 1]
    if min(false_alarm, miss) < 0 or false_alarm + miss == 0:
        raise ValueError(
            "loss must make wrong decisions dearer than correct ones; wrong minus correct is "
            f"{false_alarm:g} for class 0 and {miss:g} for class 1. Are these gains?"
        )
    return float(false_alarm / (false_alarm + miss))


def risk(
    y_true: ArrayLike,
    action: ArrayLike,
    loss: ArrayLike,
    *,
    reject_cost: float | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean realised loss, in the unit of `loss`: sum_n w_n loss[y_true_n, action_n] / sum_n w_n.

    Parameters
    ----------
    y_true : array_like of int, shape (n,)
        True class codes 0 to K - 1.
    action : array_like of int, shape (n,)
        Action codes 0 to A - 1 and `REJECT`, as `decide` returns them.
    loss : array_like, shape (K, A)
        Finite losses.
    reject_cost : float, optional
        Loss of a rejected row; without it, a rejected row is an error.
    sample_weight : array_like, shape (n,), optional
        Nonnegative: an integer weight is a row repeated, zero a row absent.

    Examples
    --------
    >>> risk(y_true=[0, 1, 1, 0], action=[0, 0, 1, -1], loss=[[0, 1], [10, 0]], reject_cost=2)
    3.0
    """
    matrix = _loss_matrix(loss)
    t = _codes("y_true", y_true, 0, matrix.shape[0])
    a = _codes("action", action, REJECT, matrix.shape[1], n_rows=len(t))
    realised, rejected = matrix[t, a], a == REJECT
    if reject_cost is not None:
        realised[rejected] = _finite(reject_cost)
    elif rejected.any():
        raise ValueError(f"reject_cost is needed: {rejected.sum()} rows of action are rejected.")
    return _mean(realised, sample_weight)


def squared_loss(y_true: ArrayLike, y_proba: ArrayLike) -> Floats:
    """Squared loss of reported probabilities q, sum_k (1[y_true = k] - q_k)^2, row by row.

    With belief p its expectation is sum_k p_k (1 - p_k) + |p - q|^2, least at q = p alone: under
    squared loss the best report is the mean of what is unknown, here of 1[y_true = k].

    Parameters
    ----------
    y_true : array_like of int, shape (n,)
        True class codes 0 to K - 1.
    y_proba : array_like, shape (n, K)
        Reported class probabilities; every row sums to 1.

    Returns
    -------
    ndarray, shape (n,)
        From 0 (certain and right) to 2 (certain and wrong).

    Examples
    --------
    >>> squared_loss([0, 1], [[0.5, 0.5], [1.0, 0.0]])
    array([0.5, 2. ])
    """
    t, q = _truth_and_probability(y_true, y_proba)
    return np.square(np.eye(q.shape[1])[t] - q).sum(axis=1)


def cross_entropy(y_true: ArrayLike, y_proba: ArrayLike) -> Floats:
    """Logarithmic loss of reported probabilities q, -log q[y_true] in nats, row by row.

    With belief p its expectation is the entropy of p plus the Kullback-Leibler divergence
    sum_k p_k log(p_k / q_k), which is zero at q = p alone. Reporting 0 for what happens costs
    infinitely much; nothing is clipped. Parameters and shapes as `squared_loss`.

    >>> cross_entropy([0, 1], [[0.5, 0.5], [1.0, 0.0]])
    array([0.69314718,        inf])
    """
    t, q = _truth_and_probability(y_true, y_proba)
    with np.errstate(divide="ignore"):
        return 0.0 - np.log(q[np.arange(len(t)), t])  # 0.0 -, since -log(1) prints as -0.0


def _numbers(name: str, values: ArrayLike) -> Floats:
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; leave these rows out.")
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of numbers; got dtype {array.dtype}.")
    return array.astype(np.float64, copy=False)


def _probabilities(values: ArrayLike) -> Floats:
    p = _numbers("y_proba", values)
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


def _loss_matrix(values: ArrayLike, n_classes: int | None = None) -> Floats:
    loss = _numbers("loss", values)
    if loss.ndim != 2 or loss.size == 0 or n_classes not in (None, len(loss)):
        raise ValueError(
            f"loss must have shape ({n_classes or 'classes'}, actions), a row for each true class; got {loss.shape}."
        )
    if not np.isfinite(loss).all():
        raise ValueError("loss must be finite; for a forbidden action use a large number.")
    return loss


def _finite(reject_cost: float) -> float:
    if not np.isfinite(reject_cost):
        raise ValueError(f"reject_cost must be finite, or None to never reject; got {reject_cost}.")
    return reject_cost


def _codes(name: str, values: ArrayLike, low: int, stop: int, n_rows: int | None = None) -> Codes:
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; leave these rows out.")
    codes = np.asarray(values)
    if codes.dtype.kind not in "biu":
        raise TypeError(
            f"{name} must be integer codes; got dtype {codes.dtype}. Turn labels into codes with "
            "np.searchsorted(sorted_classes, labels)."
        )
    if codes.ndim != 1 or n_rows not in (None, len(codes)):
        rows = "rows" if n_rows is None else n_rows
        raise ValueError(f"{name} must have shape ({rows},), one code a row; got {codes.shape}.")
    if codes.size and not low <= codes.min() <= codes.max() < stop:
        raise ValueError(
            f"{name} must be codes from {low} to {stop - 1}; got {codes.min()} to {codes.max()}. "
            "Number classes and actions from 0, in the order of the columns."
        )
    return codes.astype(np.intp, copy=False)


def _truth_and_probability(t: ArrayLike, p: ArrayLike) -> tuple[Codes, Floats]:
    p = _probabilities(p)
    return _codes("y_true", t, 0, p.shape[1], n_rows=len(p)), p


def _weights(sample_weight: ArrayLike | None, n_rows: int) -> Floats:
    weights = np.ones(n_rows) if sample_weight is None else _numbers("sample_weight", sample_weight)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), one a row; got {weights.shape}.")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError("sample_weight must be finite and nonnegative; to leave a row out give it 0.")
    if not weights.any():
        raise ValueError("sample_weight must be positive for at least one row; there is none to average.")
    return weights


def _mean(values: NDArray, sample_weight: ArrayLike | None) -> float:
    weights = _weights(sample_weight, len(values))
    used = weights > 0  # 0 times infinity: a row of weight zero is absent, whatever its value
    return float(np.average(values[used], weights=weights[used]))
