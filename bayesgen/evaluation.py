"""Evaluation of class probabilities against the true classes.

`log_loss` and `brier_score` are the means of the two proper losses of `bayesgen.decision`: the true
probabilities alone minimise their expectation. `accuracy` looks at the most probable class only, and
`realised_loss` at the decisions that a loss matrix makes of the probabilities. Calibration asks
whether what is given probability 0.7 happens in 70 % of the cases: `reliability_table` shows it,
`expected_calibration_error` and `brier_decomposition` measure it.

All take the arguments of scikit-learn's metrics, and `sklearn.metrics.make_scorer` takes all that
return a number, with ``response_method="predict_proba"``; `loss_scorer` and `calibration_scorer`
are ready ones. Two numbers differ from scikit-learn's on purpose: its log loss takes a probability
of 0 for 2e-16, which makes a certain error cost 36 nats, here it is infinite; and its Brier score
of two classes is half of this one unless it is told ``scale_by_half=False``.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv
from sklearn.metrics import accuracy_score, make_scorer

from bayesgen.decision import cross_entropy, decide, risk, squared_loss
from bayesgen.outcomes import Codes, Floats, Labels, mean, truth_and_probability, weights

Strategy = Literal["uniform", "quantile"]


def accuracy(
    y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: ArrayLike | None = None, labels: Labels | None = None
) -> float:
    """Fraction of rows whose most probable class is the true one; ties go to the lowest class.

    Parameters
    ----------
    y_true : array_like, shape (n,)
        True classes: labels, or codes 0 to K - 1.
    y_proba : array_like, shape (n, K), or (n,) for two classes
        Predicted class probabilities, every row summing to 1; or those of the second class.
    sample_weight : array_like, shape (n,), optional
        Nonnegative: an integer weight is a row repeated, zero a row absent.
    labels : sequence, shape (K,), optional
        The classes in the order of the columns, such as ``classifier.classes_``; needed where `y_true` lacks one.
        Default: whole numbers from 0 to K - 1 are codes, else the distinct labels in `y_true`, sorted.

    Raises
    ------
    TypeError, ValueError
        For a wrong kind, and for a wrong shape or value of an argument; the message names it.

    Examples
    --------
    >>> accuracy([0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
    0.75
    >>> accuracy(["oak", "ash"], [0.9, 0.8], labels=["ash", "oak"])
    0.5
    """
    t, p = truth_and_probability(y_true, y_proba, labels)
    return float(accuracy_score(t, decide(p), sample_weight=weights(sample_weight, len(t))))


def log_loss(
    y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: ArrayLike | None = None, labels: Labels | None = None
) -> float:
    """Mean of -log p(true class), in nats; infinite if a true class was given probability 0.

    Parameters and errors as `accuracy`.

    >>> round(log_loss([0, 1], [[0.5, 0.5], [0.2, 0.8]]), 4)
    0.4581
    """
    return mean(cross_entropy(y_true, y_proba, labels=labels), sample_weight)


def brier_score(
    y_true: ArrayLike, y_proba: ArrayLike, *, sample_weight: ArrayLike | None = None, labels: Labels | None = None
) -> float:
    """Mean of sum_k (1[y_true = k] - p_k)^2, from 0 to 2, as Brier defined it.

    With two classes it is twice the mean squared error of p(t = 1 | x), which some call the Brier
    score. Parameters and errors as `accuracy`.

    >>> brier_score([0, 1], [[0.5, 0.5], [1.0, 0.0]])
    1.25
    """
    return mean(squared_loss(y_true, y_proba, labels=labels), sample_weight)


def realised_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    loss: ArrayLike,
    *,
    reject_cost: float | None = None,
    sample_weight: ArrayLike | None = None,
    labels: Labels | None = None,
) -> float:
    """Mean loss of deciding, in every row, for the action of least expected loss under its probabilities.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels
        As `accuracy`, and so are the errors.
    loss : array_like, shape (K, A)
        ``loss[i, j]`` is what action j costs when the truth is class i.
    reject_cost : float, optional
        Cost of declining to decide; see `bayesgen.decision.decide`.

    Examples
    --------
    >>> realised_loss(["ill", "well", "well"], [0.3, 0.95, 0.8], loss=[[0, 10], [1, 0]])
    0.3333333333333333
    """
    t, p = truth_and_probability(y_true, y_proba, labels)
    action = decide(p, loss, reject_cost=reject_cost)
    return risk(t, action, loss, reject_cost=reject_cost, sample_weight=sample_weight)


@dataclass(frozen=True, eq=False)
class ReliabilityTable:
    """Predicted probabilities against observed frequencies, for every class and bin.

    An empty bin has count 0 and NaN means and interval, which plots leave out.

    Attributes
    ----------
    edges : ndarray, shape (K, bins + 1)
        Edges of the bins, from 0 to 1.
    count : ndarray, shape (K, bins)
        Total weight of the rows in the bin; their number if there are no weights.
    probability, frequency : ndarray, shape (K, bins)
        Mean predicted probability of the class, and fraction of rows truly of the class.
    lower, upper : ndarray, shape (K, bins)
        The 95 % Jeffreys interval of the frequency, for independent rows: central quantiles of
        Beta(hits + 1/2, misses + 1/2), with 0 below no hits and 1 above no misses.
    """

    edges: Floats
    count: Floats
    probability: Floats
    frequency: Floats
    lower: Floats
    upper: Floats


def reliability_table(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    bins: int = 10,
    strategy: Strategy = "uniform",
    *,
    sample_weight: ArrayLike | None = None,
    labels: Labels | None = None,
) -> ReliabilityTable:
    """Predicted probability and observed frequency, class by class and bin by bin.

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels
        As `accuracy`, and so are the errors.
    bins : int
        Number of bins, at least 1. A bin holds the probabilities above its lower edge and up to its
        upper edge, the first bin also those at 0.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal total weight in each class; the inner edges are then
        predicted probabilities, and since tied ones share a bin, others may be empty.

    Examples
    --------
    >>> table = reliability_table([0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], bins=2)
    >>> table.count[1], table.frequency[1]
    (array([2., 1.]), array([0.5, 1. ]))
    """
    t, p = truth_and_probability(y_true, y_proba, labels)
    return _table(_indicator(t, p), p, bins, strategy, sample_weight)


def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    bins: int = 10,
    strategy: Strategy = "uniform",
    *,
    kind: Literal["confidence", "classwise"] = "confidence",
    sample_weight: ArrayLike | None = None,
    labels: Labels | None = None,
) -> float:
    """Mean over rows of |frequency - mean probability| of the bin they fall in, from 0 to 1.

    ``kind="confidence"``, what is mostly meant, bins the probability of the most probable class and
    asks how often that class is the true one. ``kind="classwise"`` does so for every class and
    averages over classes. Both depend on the bins, and neither is proper: always predicting the
    class frequencies makes both zero. Other parameters and errors as `reliability_table`.

    >>> y_proba = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]
    >>> expected_calibration_error([0, 1, 0, 1], y_proba)
    0.25
    """
    t, p = truth_and_probability(y_true, y_proba, labels)
    if kind == "confidence":
        event, p = (decide(p) == t)[:, None], p.max(axis=1, keepdims=True)
    elif kind == "classwise":
        event = _indicator(t, p)
    else:
        raise ValueError(f'kind must be "confidence" or "classwise"; got {kind!r}.')
    table = _table(event, p, bins, strategy, sample_weight)
    gap = np.abs(table.frequency - table.probability)
    return float(np.nansum(table.count * gap) / table.count.sum())


def loss_scorer(loss: ArrayLike, *, reject_cost: float | None = None, labels: Labels | None = None) -> Any:
    """A scorer for scikit-learn: minus the `realised_loss` of a classifier's decisions, so that larger is better.

    Parameters
    ----------
    loss, reject_cost
        As `realised_loss`.
    labels : sequence, shape (K,), optional
        Every class, in sorted order; needed where the held-out rows of a fold may lack one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> loss = [[0, 1, 1], [1, 0, 5], [1, 1, 0]]
    >>> cross_val_score(GaussianDiscriminantClassifier(), *load_iris(return_X_y=True), scoring=loss_scorer(loss)).round(
    ...     2
    ... )
    array([-0.  , -0.  , -0.  , -0.07, -0.  ])
    """
    settings = {"loss": loss, "reject_cost": reject_cost, "labels": labels}
    return make_scorer(realised_loss, response_method="predict_proba", greater_is_better=False, **settings)


def calibration_scorer(
    bins: int = 10,
    strategy: Strategy = "uniform",
    *,
    kind: Literal["confidence", "classwise"] = "confidence",
    labels: Labels | None = None,
) -> Any:
    """A scorer for scikit-learn: minus the `expected_calibration_error`, so that larger is better.

    Parameters
    ----------
    bins, strategy, kind
        As `expected_calibration_error`.
    labels : sequence, shape (K,), optional
        Every class, in sorted order; needed where the held-out rows of a fold may lack one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayesgen import NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> calibration_scorer()(NaiveBayesClassifier().fit(X[::2], y[::2]), X[1::2], y[1::2]) < 0
    True
    """
    settings = {"bins": bins, "strategy": strategy, "kind": kind, "labels": labels}
    return make_scorer(expected_calibration_error, response_method="predict_proba", greater_is_better=False, **settings)


@dataclass(frozen=True)
class BrierDecomposition:
    """Terms of the Brier score, as `brier_decomposition` defines them."""

    reliability: float
    resolution: float
    uncertainty: float
    within_bin_variance: float
    within_bin_covariance: float


def brier_decomposition(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    bins: int = 10,
    strategy: Strategy = "uniform",
    *,
    sample_weight: ArrayLike | None = None,
    labels: Labels | None = None,
) -> BrierDecomposition:
    """Split the Brier score into calibration, discrimination and what is in the data.

    For one class let p be its predicted probability, o = 1[truth is the class], P and O their means
    over the bin a row falls in, B the mean of o over all rows, and E the mean over rows. Then

        E (p - o)^2 =   E (P - O)^2              reliability: miscalibration, 0 is best
                      - E (O - B)^2              resolution: how far bins differ, large is best
                      + B (1 - B)                uncertainty: the same for every forecast
                      + E (p - P)^2              within-bin variance
                      - 2 E (p - P)(o - O)       within-bin covariance (with its 2)

    and the terms returned are sums over classes: reliability - resolution + uncertainty +
    within_bin_variance - within_bin_covariance is `brier_score`, always, up to rounding. The first
    three alone give it (Murphy 1973) where all probabilities in a bin are equal, else only if the
    last two (Stephenson, Coelho and Jolliffe 2008) happen to cancel.

    Parameters and errors as `reliability_table`.

    >>> terms = brier_decomposition([0, 1, 1], [[1, 0], [0.5, 0.5], [0, 1]])
    >>> round(terms.reliability, 4), round(terms.resolution, 4), round(terms.uncertainty, 4)
    (0.1667, 0.4444, 0.4444)
    """
    t, p = truth_and_probability(y_true, y_proba, labels)
    o = _indicator(t, p)
    table = _table(o, p, bins, strategy, sample_weight)
    cell = np.arange(p.shape[1]), _bin_of(p, table.edges)
    p_bin, o_bin = table.probability[cell], table.frequency[cell]
    base = np.average(o, axis=0, weights=weights(sample_weight, len(o)))

    def total(term: Floats) -> float:
        return mean(term.sum(axis=1), sample_weight)

    return BrierDecomposition(
        reliability=total((p_bin - o_bin) ** 2),
        resolution=total((o_bin - base) ** 2),
        uncertainty=float(np.sum(base * (1 - base))),
        within_bin_variance=total((p - p_bin) ** 2),
        within_bin_covariance=2 * total((p - p_bin) * (o - o_bin)),
    )


def _indicator(t: Codes, p: Floats) -> NDArray[np.bool_]:
    return t[:, None] == np.arange(p.shape[1])


def _bin_of(p: Floats, edges: Floats) -> Codes:
    columns = zip(edges, p.T, strict=True)
    return np.stack([np.searchsorted(edge[1:-1], column) for edge, column in columns], axis=1)


def _table(
    event: NDArray[np.bool_], p: Floats, bins: int, strategy: Strategy, sample_weight: ArrayLike | None
) -> ReliabilityTable:
    """Events (n, m), yes or no, against their probabilities p (n, m); m rows of bins."""
    w, m = weights(sample_weight, len(p)), p.shape[1]
    if not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(f"bins must be an integer of at least 1; got {bins!r}.")
    levels = np.arange(bins + 1) / bins  # linspace gives 0.30000000000000004
    edges = np.tile(levels, (m, 1))
    if strategy == "quantile":
        edges[:, 1:-1] = np.quantile(p, levels[1:-1], axis=0, weights=w, method="inverted_cdf").T
    elif strategy != "uniform":
        raise ValueError(f'strategy must be "uniform" or "quantile"; got {strategy!r}.')
    cell = (_bin_of(p, edges) + bins * np.arange(m)).ravel()

    def total(values: NDArray) -> NDArray:
        weighted = (w[:, None] * values).ravel()
        return np.bincount(cell, weights=weighted, minlength=m * bins).reshape(m, bins)

    count, hits = total(np.ones_like(p)), total(event)
    occupied = np.where(count > 0, count, np.nan)
    frequency = hits / occupied
    a, b = hits + 0.5, occupied - hits + 0.5
    return ReliabilityTable(
        edges=edges,
        count=count,
        probability=total(p) / occupied,
        frequency=frequency,
        lower=np.where(frequency == 0, 0.0, betaincinv(a, b, 0.025)),
        upper=np.where(frequency == 1, 1.0, betaincinv(a, b, 0.975)),
    )
