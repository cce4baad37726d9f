r"""The value of measuring a missing entry before deciding.

Let l(a; x) = Σ_k p(k | x) L_ka be the expected loss of action a, and a(x_o) the best action now. The expected saving is

.. math:: V_j = \mathrm{E}\big[l(a(x_o); x_o, x_j) - \min_a l(a; x_o, x_j)\big], \qquad
   x_j \sim p(x_j \mid x_o) = \sum_k p(k \mid x_o)\, p(x_j \mid k, x_o)

(Raiffa and Schlaifer 1961, *Applied Statistical Decision Theory*). No term of the mean is negative, tempered
probabilities or not. Where the action is to report the class probabilities and the loss is their negative logarithm,
V_j is the expected Kullback-Leibler divergence of the report now from the one then: the mutual information of class and
entry, if nothing is tempered.

The mean is a sum over categories and counts, and over nodes on the line of a number; see `Joint.measured`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.core.errors import InputError
from bayesgen.decision.outcomes import aligned_loss, costs_of
from bayesgen.inspection.missing import joint_of
from bayesgen.numerics.pieces import count_rows


@np.errstate(under="ignore")
def next_measurement(classifier, X, loss: ArrayLike | None = None, cost: Any = None):
    """Return the value of knowing each missing entry of each row, less its cost.

    Gaps are taken as ignorable. Each entry is valued alone: two entries that say something only together may both be
    worth nothing, and a greedy search misses them.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        Its untempered densities give the distribution of an entry, its `predict_proba` the decision. 100 draws stand
        for a sampled posterior, the members with 99.5 % of the weight for an average.
    X : DataFrame or array, shape (n, columns)
        Rows; the entries that may be measured are missing.
    loss : array_like or DataFrame, shape (K, A), optional
        Losses of actions as in `bayesgen.decision.decide`; the index of a DataFrame holds the classes.
        By default the loss is the entropy of the class probabilities, in nats.
    cost : float, mapping or Series from column to float, or array of shape (columns,), optional
        Cost of measuring a column, in the unit of the loss; 0 for columns that a mapping does not name.

    Returns
    -------
    DataFrame or array, shape (n, columns)
        NaN where an entry is known. Before costs no value is negative; measure the largest, as long as it is above 0.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier().fit(X, y)
    >>> next_measurement(classifier, [[6.0, np.nan, np.nan, np.nan]]).round(2)
    array([[ nan, 0.12, 0.53, 0.59]])
    """
    joint = joint_of(classifier, "next_measurement()")
    classifier, classes = joint.classifier, joint.classifier.classes_.tolist()
    losses = None if loss is None else aligned_loss(loss, classes, len(classes))[0]
    names = classifier.schema_.columns
    costs, rows = costs_of(names, cost), joint.read(X)
    result = np.full((count_rows(rows), len(names)), np.nan)
    joint.check(rows, "next_measurement()")
    with np.errstate(invalid="ignore"):  # infinite less infinite, of a row so far out that it is refused
        for places, now, then, weight in joint.measured(rows):
            result[places] = saved = _saved(now, then, weight, losses)
            for row in np.arange(len(result))[places[0]][np.isnan(saved)][:1]:
                text = f"row {row} is too far from the rows of the fit for next_measurement(): give NaN for its far "
                raise InputError(f"{text}values, or leave the row out", row=int(row))
    result -= costs
    if classifier.feature_names_in_ is None:
        return result
    import pandas as pd

    return pd.DataFrame(result, columns=list(names), index=X.index if isinstance(X, pd.DataFrame) else None)


def _saved(now, then, weight, losses):
    """Return the expected saving, (n,), from log class probabilities now (K, n), then (K, n, Q), and weights (n, Q)."""
    with np.errstate(under="ignore"):
        probability = np.exp(then)
    if losses is None:
        with np.errstate(invalid="ignore"):  # -inf less -inf
            terms = np.where(probability > 0, probability * (then - now[..., None]), 0.0)
        return np.maximum((weight * terms.sum(0)).sum(1), 0.0)  # rounding may leave -1e-17
    action = (losses.T @ np.exp(now)).argmin(0)
    expected = np.tensordot(losses.T, probability, 1)
    chosen = np.take_along_axis(expected, action[None, :, None], 0)[0]
    return (weight * (chosen - expected.min(0))).sum(1)
