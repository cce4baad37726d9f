"""Scores: the mean loss of class probabilities, and of the decisions based on them."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesgen.decision import outcomes
from bayesgen.decision.losses import cross_entropy, decide, ranked_loss, risk, squared_loss
from bayesgen.decision.outcomes import Labels, mean, truth_and_probability, weights


def accuracy(
    y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: ArrayLike | None = None, labels: Labels | None = None
) -> float:
    """Return the fraction of rows whose most probable class is the true one; ties go to the lowest class.

    Parameters
    ----------
    y_true : array_like, shape (n,)
        True classes: labels, or codes 0 to K - 1.
    y_proba : array_like or DataFrame, shape (n, K), or (n,) for two classes
        Predicted class probabilities, every row summing to 1; or the probabilities of the second class. The names of
        the columns of a DataFrame are the classes.
    sample_weight : array_like, shape (n,), optional
        Nonnegative: an integer weight is a row repeated, zero a row absent.
    labels : sequence, shape (K,), optional
        The classes in the order of the columns, such as ``classifier.classes_``; needed where `y_true` lacks one.
        Default: whole numbers from 0 to K - 1 are codes, else the distinct labels in `y_true`, sorted.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type, or the wrong shape or value; the message names it.

    Examples
    --------
    >>> accuracy([0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
    0.75
    >>> accuracy(["oak", "ash"], [0.9, 0.8], labels=["ash", "oak"])
    0.5
    """
    t, p = truth_and_probability(y_true, y_proba, labels)
    return mean(decide(p) == t, sample_weight)


def log_loss(
    y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: ArrayLike | None = None, labels: Labels | None = None
) -> float:
    """Return the mean of -log p(true class), in nats; infinite if a true class was given probability 0.

    Parameters and errors are as for `accuracy`.

    >>> round(log_loss([0, 1], [[0.5, 0.5], [0.2, 0.8]]), 4)
    0.4581
    """
    return mean(cross_entropy(y_true, y_proba, labels=labels), sample_weight)


def brier_score(
    y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: ArrayLike | None = None, labels: Labels | None = None
) -> float:
    """Return the mean of sum_k (1[y_true = k] - p_k)^2, from 0 to 2, as Brier defined it.

    With two classes it is twice the mean squared error of p(t = 1 | x), which some call the Brier
    score. Parameters and errors are as for `accuracy`.

    >>> brier_score([0, 1], [[0.5, 0.5], [1.0, 0.0]])
    1.25
    """
    return mean(squared_loss(y_true, y_proba, labels=labels), sample_weight)


def scaled_brier_score(
    y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: ArrayLike | None = None, labels: Labels | None = None
) -> float:
    """Return 1 - `brier_score` / that of the class frequencies of these rows: 1 is perfect, 0 no better than these.

    Parameters and errors are as for `accuracy`; besides, rows of one class alone are a ValueError.

    >>> round(scaled_brier_score([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8]), 4)
    0.3
    """
    t, p = truth_and_probability(y_true, y_proba, labels)
    share = np.bincount(t, weights(sample_weight, len(t)), p.shape[1])
    spread = 1 - np.square(share / share.sum()).sum()
    if np.count_nonzero(share) < 2:
        raise ValueError("y_true holds one class alone: its frequency is a perfect prediction, and there is no scale")
    return 1 - brier_score(y_true, y_proba, sample_weight=sample_weight, labels=labels) / float(spread)


def ranked_probability_score(
    y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: ArrayLike | None = None, labels: Labels | None = None
) -> float:
    """Return the mean `bayesgen.decision.ranked_loss` of ordered classes, from 0 to 1; smaller is better.

    Parameters and errors are as for `accuracy`; ``labels`` are the classes from lowest to highest, which text needs.

    >>> ranked_probability_score([0, 2], [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    0.125
    >>> ranked_probability_score([0, 2], [[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]])
    0.25
    """
    return mean(ranked_loss(y_true, y_proba, labels=labels), sample_weight)


def realised_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    loss: ArrayLike | pd.DataFrame,
    *,
    reject_cost: float | None = None,
    sample_weight: ArrayLike | None = None,
    labels: Labels | None = None,
) -> float:
    """Return the mean loss of taking, in every row, the action of least expected loss under its probabilities.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels
        As for `accuracy`, which raises the same errors.
    loss : array_like or DataFrame, shape (K, A)
        ``loss[i, j]`` is the cost of action j when the truth is class i. The index of a DataFrame holds the classes, in
        any order.
    reject_cost : float, optional
        Cost of declining to decide; see `bayesgen.decision.decide`.

    Examples
    --------
    >>> realised_loss(["ill", "well", "well"], [0.3, 0.95, 0.8], loss=[[0, 10], [1, 0]])
    0.3333333333333333
    """
    labels = outcomes.column_classes(y_proba, labels)
    t, p = truth_and_probability(y_true, y_proba, labels)
    classes = outcomes.named_classes(y_true, t, y_proba, labels, p.shape[1])
    matrix, _ = outcomes.aligned_loss(loss, classes, len(classes))
    action = decide(p, matrix, reject_cost=reject_cost)
    return risk(t, action, matrix, reject_cost=reject_cost, sample_weight=sample_weight)
