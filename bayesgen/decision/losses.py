"""Decisions from class probabilities p(t = i | x), given what mistakes cost.

``loss[i, j]`` is the loss of taking action j when the truth is class i: rows are truths, columns are actions. There may
be more actions than classes (take another measurement), and a loss may be negative (a gain). Rows and columns of a
DataFrame are found by their labels, in whatever order they stand. The Bayes decision is the action of least expected
loss,

    a(x) = argmin_j  sum_i p(t = i | x) loss[i, j].

The action may also be the report of a probability vector itself. `squared_loss` and `cross_entropy` are proper: their
expectation is least for the report of one's belief, the posterior.

Arguments are checked everywhere: a wrong kind of value is a TypeError, a wrong shape or value a ValueError, and the
message names the argument.
"""

from typing import Any, overload

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesgen.decision import outcomes
from bayesgen.decision.outcomes import Floats, Labels
from bayesgen.numerics.checks import check_level
from bayesgen.tables.shares import Shares, labels_or_shares


def zero_one(n_classes: int) -> Floats:
    """Return the loss matrix (K, K) that counts mistakes: 0 on the diagonal, 1 elsewhere.

    >>> zero_one(2)
    array([[0., 1.],
           [1., 0.]])
    """
    return 1.0 - np.eye(n_classes)


@overload
def expected_loss(  # pyright: ignore[reportOverlappingOverload]  # a DataFrame is array-like, too
    y_proba: ArrayLike, loss: pd.DataFrame, *, labels: Labels | None = None
) -> pd.DataFrame: ...
@overload
def expected_loss(y_proba: ArrayLike, loss: ArrayLike, *, labels: Labels | None = None) -> Floats: ...
def expected_loss(y_proba: ArrayLike, loss: Any, *, labels: Labels | None = None) -> Floats | pd.DataFrame:
    """Compute the expected loss of every action, sum_i p(t = i | x) loss[i, j].

    Parameters
    ----------
    y_proba : array_like or DataFrame, shape (n, K)
        Class probabilities; every row sums to 1.
    loss : array_like or DataFrame, shape (K, A)
        Finite losses, in a unit of the user's choice (errors, euros, days). The index of a DataFrame holds the classes,
        in any order, its columns the names of the actions.
    labels : sequence, shape (K,), optional
        The classes in the order of the columns of `y_proba`, as ``classifier.classes_``; needed where `loss` names its
        rows and `y_proba` does not name its columns.

    Returns
    -------
    ndarray or DataFrame, shape (n, A)
        In the unit of `loss`; a DataFrame, whose columns are the actions, where `loss` is one.

    Examples
    --------
    Missing a disease (truth 1, action 0) costs ten false alarms:

    >>> expected_loss([[0.75, 0.25]], loss=[[0, 1], [10, 0]])
    array([[2.5 , 0.75]])
    """
    losses, actions = _expected(y_proba, loss, labels)
    if not outcomes.is_table(loss):
        return losses
    return pd.DataFrame(losses, columns=actions, index=y_proba.index if isinstance(y_proba, pd.DataFrame) else None)


def _expected(y_proba, loss, labels):
    """Return the expected losses (n, A), and the names of the actions, if any."""
    p = outcomes.probabilities(y_proba)
    matrix, actions = outcomes.aligned_loss(loss, outcomes.column_classes(y_proba, labels), p.shape[1])
    return p @ matrix, actions


def decide(
    y_proba: ArrayLike,
    loss: ArrayLike | pd.DataFrame | None = None,
    *,
    reject_cost: float | None = None,
    typicality: ArrayLike | None = None,
    none_of_these: float | None = None,
    labels: Labels | None = None,
) -> NDArray[Any]:
    """Take the action of least expected loss in every row; ties go to the first action.

    Parameters
    ----------
    y_proba : array_like or DataFrame, shape (n, K)
        Class probabilities; every row sums to 1.
    loss : array_like or DataFrame, shape (K, A), optional
        Finite losses, as of `expected_loss`. Left out, every mistake costs 1 (`zero_one`): the action is the most
        probable class, and its expected loss one minus that probability.
    reject_cost : float, optional
        Cost of declining to decide, in the unit of `loss`. A row is rejected where this is strictly lower than the
        expected loss of every action.
    typicality : array_like, shape (n,), optional
        Tail probability of each row, ``bayesgen.inspection.typicality(classifier, X).overall``.
    none_of_these : float, optional
        Level, between 0 and 1: a row of a lower typicality is of none of the classes, whatever its class probabilities.
        If the model is right, so is one in 1/level rows of the classes. `risk` knows no loss of such rows; leave them
        out of it.
    labels : sequence, shape (K,), optional
        The classes in the order of the columns of `y_proba`; see `expected_loss`.

    Returns
    -------
    ndarray, shape (n,)
        Action codes 0 to A - 1, `REJECT` (-1) for rejected rows, `NONE_OF_THESE` (-2) for rows that are like no class.
        Where the columns of `loss` are named, the names of the actions, `ASK` ("ask") and "none of these".

    Examples
    --------
    >>> y_proba = [[0.75, 0.25], [0.45, 0.55]]
    >>> decide(y_proba, loss=[[0, 1], [10, 0]])
    array([1, 1])
    >>> decide(y_proba, reject_cost=0.3)
    array([ 0, -1])
    >>> decide(y_proba, typicality=[0.4, 0.001], none_of_these=0.01)
    array([ 0, -2])

    Losses with names, in any order:

    >>> import pandas as pd
    >>> loss = pd.DataFrame({"treat": [0, 1], "wait": [10, 0]}, index=["ill", "well"])
    >>> decide([[0.95, 0.05], [0.6, 0.4]], loss, labels=["well", "ill"])
    array(['wait', 'treat'], dtype=object)
    """
    actions = None
    if loss is None:
        p = outcomes.probabilities(y_proba)
        action, least = p.argmax(axis=1), 1 - p.max(axis=1)
    else:
        losses, actions = _expected(y_proba, loss, labels)
        action, least = losses.argmin(axis=1), losses.min(axis=1)
    if reject_cost is not None:
        action = np.where(outcomes.finite(reject_cost) < least, outcomes.REJECT, action)
    if typicality is not None or none_of_these is not None:
        action = np.where(_unlike(typicality, none_of_these, len(action)), outcomes.NONE_OF_THESE, action)
    if actions is None:
        return action
    names = np.array([*actions, *outcomes.CODE_NAMES], dtype=object)
    if clash := set(names[action[action < 0]]) & set(actions):
        raise ValueError(f"loss has the action {clash.pop()!r}, as rows without an action are called: rename it.")
    return names[action]


def act(y_proba: ArrayLike, loss: pd.DataFrame, classes: Labels, *, reject_cost: float | None = None) -> pd.DataFrame:
    """Take the action of least expected loss in every row as `decide`, and return it with that loss.

    Parameters
    ----------
    y_proba : array_like or DataFrame, shape (n, K)
        Class probabilities; every row sums to 1.
    loss : DataFrame, shape (K, A)
        Finite losses: the index holds the classes, in any order, the columns the names of the actions.
    classes : sequence, shape (K,)
        The classes in the order of the columns of `y_proba`, as ``classifier.classes_``.
    reject_cost : float, optional
        Cost of asking somebody instead, in the unit of `loss`.

    Returns
    -------
    DataFrame
        "action", a name or `ASK` ("ask") where asking costs less, and its "expected_loss".

    Examples
    --------
    >>> import pandas as pd
    >>> loss = pd.DataFrame({"treat": [0, 1], "wait": [10, 0]}, index=["ill", "well"])
    >>> act([[0.01, 0.99], [0.4, 0.6], [0.15, 0.85]], loss, ["ill", "well"], reject_cost=0.5)
      action  expected_loss
    0   wait            0.1
    1    ask            0.5
    2    ask            0.5
    """
    if not outcomes.is_table(loss):
        raise TypeError("loss must be a DataFrame, whose columns name the actions; decide takes an array.")
    least = expected_loss(y_proba, loss, labels=classes).min(axis=1)
    action = decide(y_proba, loss, reject_cost=reject_cost, labels=classes)
    return pd.DataFrame({"action": action, "expected_loss": least.clip(upper=reject_cost)})


def _unlike(typicality: ArrayLike | None, level: float | None, n_rows: int):
    """Return the mask of the rows whose typicality is below a level."""
    if typicality is None or level is None:
        raise ValueError("typicality and none_of_these go together: the tail probability of each row, and a level.")
    if hasattr(typicality, "overall"):
        raise TypeError("typicality: of what bayesgen.inspection.typicality returns give .overall")
    tail = outcomes.numbers("typicality", typicality)
    if tail.shape != (n_rows,) or not ((tail >= 0) & (tail <= 1)).all():
        raise ValueError(
            f"typicality must hold one number in [0, 1] for each of the {n_rows} rows; got shape {tail.shape}. Of what "
            "bayesgen.inspection.typicality returns give .overall."
        )
    check_level("none_of_these", level)
    return tail < level


def threshold(loss: ArrayLike | pd.DataFrame, *, labels: Labels | None = None) -> float:
    """Return the probability of class 1 above which to decide for class 1, where there are two classes.

    With p = p(t = 1 | x), p loss[1, 1] + (1 - p) loss[0, 1] < p loss[1, 0] + (1 - p) loss[0, 0] if

        p > false_alarm / (false_alarm + miss),    false_alarm = loss[0, 1] - loss[0, 0],
                                                          miss = loss[1, 0] - loss[1, 1].

    At the threshold both actions cost the same, and `decide` takes action 0. If a correct decision costs more than the
    wrong one, or nothing depends on the decision, it is a ValueError. A DataFrame whose rows and columns are named by
    the classes needs ``labels``, the two classes in their order.

    >>> threshold([[0, 1], [9, 0]])
    0.1
    """
    matrix, rows, actions = outcomes.named_loss(loss, labels, labels)
    if matrix.shape != (2, 2):
        raise ValueError(f"loss must have shape (2, 2); got {matrix.shape}. Use decide instead.")
    if labels is None and (rows or actions):
        raise ValueError("loss names its rows or columns: give labels=, class 0 and class 1, or loss.to_numpy().")
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
    loss: ArrayLike | pd.DataFrame,
    *,
    reject_cost: float | None = None,
    labels: Labels | None = None,
    actions: Labels | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean realised loss, in the unit of `loss`: sum_n w_n loss[y_true_n, action_n] / sum_n w_n.

    Parameters
    ----------
    y_true : array_like, shape (n,)
        True classes: labels, or codes 0 to K - 1.
    action : array_like, shape (n,)
        Action codes 0 to A - 1 and `REJECT`, as `decide` returns them; or names of actions.
    loss : array_like or DataFrame, shape (K, A)
        Finite losses.
    labels, actions : sequence, optional
        The classes in the order of the rows of `loss`, and names of its columns, where `action` holds names; default:
        those of a DataFrame. Where both are given, rows and columns of a DataFrame are found by name, and codes count
        in the order given; codes of classes need ``labels`` where `loss` names its rows. `ASK` names a rejected row.
    reject_cost : float, optional
        Loss of a rejected row; without it, a rejected row is an error.
    sample_weight : array_like, shape (n,), optional
        Nonnegative: an integer weight is a row repeated, zero a row absent.

    Examples
    --------
    >>> risk(y_true=[0, 1, 1, 0], action=[0, 0, 1, -1], loss=[[0, 1], [10, 0]], reject_cost=2)
    3.0
    >>> risk(["ill", "well"], ["wait", "treat"], [[9, 0], [0, 1]], labels=["ill", "well"], actions=["wait", "treat"])
    5.0
    """
    t, matrix, _, actions = outcomes.truth_and_loss(y_true, loss, labels, actions)
    a = outcomes.action_codes(action, actions, matrix.shape[1], len(t))
    realised, rejected = matrix[t, a], a == outcomes.REJECT
    if reject_cost is not None:
        realised[rejected] = outcomes.finite(reject_cost)
    elif rejected.any():
        raise ValueError(f"reject_cost is needed: {rejected.sum()} rows of action are rejected.")
    return outcomes.mean(realised, sample_weight)


def squared_loss(y_true: ArrayLike, y_proba: ArrayLike, *, labels: Labels | None = None) -> Floats:
    """Compute the squared loss of reported probabilities q, sum_k (1[y_true = k] - q_k)^2, row by row.

    With belief p its expectation is sum_k p_k (1 - p_k) + |p - q|^2, least at q = p alone: under squared loss the best
    report is the mean of the unknown, here of 1[y_true = k].

    Parameters
    ----------
    y_true : array_like, shape (n,)
        True classes: labels, or codes 0 to K - 1.
    y_proba : array_like or DataFrame, shape (n, K), or (n,) for two classes
        Reported class probabilities, every row summing to 1; or probabilities of the second class. The names of the
        columns of a DataFrame are the classes.
    labels : sequence, shape (K,), optional
        The classes in the order of the columns, where `y_true` may lack one; default: its distinct labels, sorted.

    Returns
    -------
    ndarray, shape (n,)
        From 0 (certain and right) to 2 (certain and wrong).

    Examples
    --------
    >>> squared_loss([0, 1], [[0.5, 0.5], [1.0, 0.0]])
    array([0.5, 2. ])
    """
    t, q = outcomes.truth_and_probability(y_true, y_proba, labels)
    return np.square(np.eye(q.shape[1])[t] - q).sum(axis=1)


def ranked_loss(y_true: ArrayLike, y_proba: ArrayLike, *, labels: Labels | None = None) -> Floats:
    """Compute the ranked loss of probabilities q of ordered classes, row by row.

    It is sum_{k<K} (1[y_true <= k] - Q_k)^2 / (K - 1), where Q_k = q_1 + ... + q_k: the mean squared loss of the K - 1
    questions "class k or lower?". So a probability costs more the further its class is from the true one. With belief p
    its expectation is least at q = p alone. The ranked probability score of Epstein (1969, *Journal of Applied
    Meteorology* 8) is 1 less this (Murphy 1971, same journal, 10). With two classes it is half of `squared_loss`.

    Parameters
    ----------
    y_true, y_proba : array_like
        As for `squared_loss`.
    labels : sequence, shape (K,), optional
        The classes from lowest to highest, in the order of the columns, as ``classifier.classes_``; text needs them, or
        a DataFrame whose columns name them. Default: numbers in their order.

    Returns
    -------
    ndarray, shape (n,)
        From 0 (certain and right) to 1 (certain of one end of the order where the other is true).

    Examples
    --------
    >>> ranked_loss([0, 0], [[0, 1, 0], [0, 0, 1]])
    array([0.5, 1. ])
    >>> ranked_loss(["low", "high"], [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1]], labels=["low", "middle", "high"])
    array([0.05, 0.65])
    """
    t, q = outcomes.truth_and_probability(y_true, y_proba, labels)
    if q.shape[1] < 2:
        raise ValueError("y_proba must have two columns at least: one class has no order.")
    if outcomes.column_classes(y_proba, labels) is None and np.asarray(y_true).dtype.kind in "OSU" and q.shape[1] > 2:
        raise ValueError(
            "y_true holds text, and nothing says in which order the classes are: give labels=, the classes from lowest "
            "to highest in the order of the columns of y_proba, such as classifier.classes_."
        )
    reached = t[:, None] <= np.arange(q.shape[1] - 1)
    return np.square(reached - q.cumsum(axis=1)[:, :-1]).mean(axis=1)


def cross_entropy(y_true: ArrayLike, y_proba: ArrayLike, *, labels: Labels | None = None) -> Floats:
    """Compute the logarithmic loss of reported probabilities q, -log q[y_true] in nats, row by row.

    With belief p its expectation is the entropy of p plus the Kullback-Leibler divergence sum_k p_k log(p_k / q_k),
    which is zero at q = p alone. Reporting 0 for what happens costs infinitely much; nothing is clipped. Parameters and
    shapes as `squared_loss`; ``y_true`` may be shares of the classes (n, K), too, and the loss is their mean by share.

    >>> cross_entropy([0, 1], [[0.5, 0.5], [1.0, 0.0]])
    array([0.69314718,        inf])
    """
    known = outcomes.column_classes(y_proba, labels)
    if isinstance(y_true := labels_or_shares(y_true, default=known, argument="labels="), Shares):
        q = outcomes.both_columns(y_proba)
        shares = y_true.among(range(q.shape[1]) if known is None else known)
        if len(shares) != len(q):
            raise ValueError(f"y_true holds shares of {len(shares)} rows, and y_proba has {len(q)}")
        with np.errstate(divide="ignore"):
            return 0.0 - np.where(shares > 0, shares * np.log(q), 0.0).sum(axis=1)
    t, q = outcomes.truth_and_probability(y_true, y_proba, labels)
    with np.errstate(divide="ignore"):
        return 0.0 - np.log(q[np.arange(len(t)), t])  # 0.0 -, since -log(1) prints as -0.0
