"""Measurements of rows one after the other, each time the most valuable one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.inspection.joint import joint_of
from bayesgen.inspection.measurement import costs_of, next_measurement


@dataclass(frozen=True)
class Acquisition:
    """Rows that were measured one entry after the other.

    Attributes
    ----------
    X : DataFrame or array, shape (n, columns)
        The rows with what was measured.
    order : list of list of str
        The columns that each row was measured in, in order.
    spent : array, shape (steps + 1, n)
        What was spent on each row after each step.
    probability : array, shape (steps + 1, n, K)
        Class probabilities after each step.
    """

    X: Any
    order: list[list[str]]
    spent: np.ndarray
    probability: np.ndarray


def acquire(
    classifier,
    X,
    values,
    budget: float,
    loss: ArrayLike | None = None,
    cost: Any = 1.0,
    value: Callable[..., Any] = next_measurement,
) -> Acquisition:
    """Measure missing entries one after the other, each time the most valuable one, until the budget of a row is spent.

    A row is done too where no entry is worth what it costs. The search is greedy: it looks one measurement ahead.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        Whose probabilities are asked.
    X : DataFrame or array, shape (n, columns)
        Rows; what may be measured is missing.
    values : DataFrame or array, shape (n, columns)
        What measuring gives; what is missing here too cannot be measured.
    budget : float
        What may be spent on each row, in the unit of the costs.
    loss, cost
        As of `next_measurement`; by default every measurement costs 1, and the value is in nats.
    value : callable, default `next_measurement`
        ``value(classifier, X, loss, cost)`` gives what to compare, for another order than that of the value.

    Returns
    -------
    Acquisition

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier().fit(X, y)
    >>> nothing = np.full((1, 4), np.nan)
    >>> acquire(classifier, nothing, X[:1], budget=0.02, cost=0.01).order
    [['x3']]
    """
    import pandas as pd

    joint = joint_of(classifier, "acquire()")
    if isinstance(budget, bool | str) or np.ndim(budget) or not budget >= 0:
        raise ValueError(f"budget must be a number >= 0, got {budget!r}")
    names = list(classifier.schema_.columns)
    costs = costs_of(tuple(names), cost)
    if np.shape(values) != np.shape(X):
        raise ValueError(f"X has shape {np.shape(X)} and values {np.shape(values)}: they must be of the same rows")
    table, given = pd.DataFrame(X).copy(), pd.DataFrame(values)
    joint.read(X)  # what is wrong with the rows is told before any is measured
    known = given.notna().to_numpy()

    def form(frame):
        return frame if isinstance(X, pd.DataFrame) else frame.to_numpy()

    order: list[list[str]] = [[] for _ in range(len(table))]
    spent, probability = [np.zeros(len(table))], [classifier.predict_proba(form(table))]
    active = np.arange(len(table))
    while len(active):
        worth = np.asarray(value(classifier, form(table.iloc[active]), loss, costs), float)
        left = budget - spent[-1][active]
        possible = known[active] & (costs <= left[:, None] + 1e-12) & table.iloc[active].isna().to_numpy()
        worth = np.where(possible & (worth > 0), worth, -np.inf)
        going = np.isfinite(worth.max(1))
        active, best = active[going], worth[going].argmax(1)
        if not len(active):
            break
        now = spent[-1].copy()
        for j in np.unique(best):
            at = active[best == j]
            table.iloc[at, j] = given.iloc[at, j]
            now[at] += costs[j]
            for i in at:
                order[i].append(names[j])
        p = probability[-1].copy()
        p[active] = classifier.predict_proba(form(table.iloc[active]))
        spent.append(now)
        probability.append(p)
    return Acquisition(form(table), order, np.stack(spent), np.stack(probability))
