"""Rows predicted from others: from all others, exactly or by draws through ArviZ, or from those before in time."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax

from bayesgen.core.errors import listed
from bayesgen.core.registry import fitted_of
from bayesgen.core.statistics import all_but_one, departures
from bayesgen.models.class_program import ClassStatistics, column_sums
from bayesgen.numerics.pieces import count_rows, select_rows, taken
from bayesgen.numerics.sums import by_label
from bayesgen.tables.dates import times_of
from bayesgen.tables.groups import group_codes
from bayesgen.tables.labels import codes_of
from bayesgen.tables.learned_rows import LearnedRows
from bayesgen.tables.shares import stacked

_PLURAL = {"count": "observed values", "mean": "means", "scatter": "sums of squares", "sum": "sums"}


def different_rows(one, other) -> str | None:
    """Describe the first difference beyond rounding of what two results of `by_column` both have; None without one."""
    for column, mine in one.items():
        theirs = other.get(column, {})
        for kind in [kind for kind in mine if kind in theirs]:
            a, b = mine[kind], theirs[kind]
            if a.shape != b.shape or (np.abs(a - b) > _rounding(kind, mine, theirs)).any():
                return f"column {column!r} has {_PLURAL[kind]} by class of {_short(a)} and {_short(b)}"
    return None


def _short(values) -> str:
    return listed(float(f"{value:.9g}") for value in values.ravel())


def _rounding(kind, *summaries):
    """Return the largest difference that rounding makes between sums of the same rows in another order."""
    value = np.maximum(*(np.abs(s[kind]) for s in summaries))
    known = next((s for s in summaries if "scatter" in s), None)
    if kind in ("count", "sum") or known is None:
        return 1e-9 * value
    n, blur = np.maximum(known["count"], 1.0), 1e-12 * np.abs(known["mean"])
    if kind == "mean":
        return blur + 1e-6 * np.sqrt(known["scatter"] / n)
    return 1e-6 * value + n * blur**2


def by_column(schema, model, statistics) -> dict[str, dict[str, np.ndarray]]:
    """Return the summaries of each column that do not depend on its model, by class: arrays (K,), or (K, ...)."""
    result = {}
    for block in schema.blocks:
        if block.values != block.columns:  # its sums are by group
            continue
        sums = column_sums(model.leaves[block.name], statistics.leaves[block.name])
        for j, column in enumerate(block.columns):
            result[column] = {kind: v if kind == "sum" and v.ndim > 2 else v[:, j] for kind, v in sums.items()}
    return result


def leave_one_out(classifier, X, y, sample_weight=None, groups=None) -> "LeaveOneOut":
    """Predict each row of the fit from all other rows, exactly; needs ``inference="exact"``.

    The statistics of all other rows are added, by halves of halves, and nothing is subtracted: an outlying row
    loses no digits. The hyperparameters stay those of the full fit ("weak" ones follow the data), and nothing is
    sampled. A row of weight w is taken out whole.

    Parameters
    ----------
    X, y, sample_weight
        The rows of the fit; of shares of the classes times their ``label_weight``.
    groups : array, shape (n,), optional
        Label of what a row belongs to (a patient, a batch, a day): a row is then predicted from the rows of all
        other groups.

    Returns
    -------
    LeaveOneOut
        Log densities, probabilities and expected log predictive densities of the rows left out.

    Raises
    ------
    ValueError
        If the rows are not those of the fit, as counts, means and sums of squares by class and column show.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier
    >>> X, y = [[1.0], [1.4], [3.1], [2.9]], ["a", "a", "b", "b"]
    >>> NaiveBayesClassifier().fit(X, y).leave_one_out(X, y).probability[:, 0].round(2)
    array([1.  , 0.99, 0.  , 0.01])
    """
    classifier = fitted_of(classifier)
    check_exact(classifier, "leave_one_out() is exact")
    classes, model, whole = classifier.classes_, classifier.model_, classifier.statistics_
    given = LearnedRows.read(classifier.table(X), y, sample_weight, groups, default=classes, whole=False).among(classes)
    codes, weight, group = given.codes, given.weight, given.group
    rows = classifier.schema_.read(given.table)

    def summed(held):
        row, code, votes = stacked(codes[held], taken(weight, held))
        return model.statistics(select_rows(select_rows(rows, held), row), code, votes)

    check_rows(classifier, whole, summed(slice(None)))
    log_joint = np.empty((len(codes), len(classes)))
    leaving = departures(len(codes), group)
    for held, others in zip(leaving, all_but_one(summed, leaving, 0), strict=True):
        log_joint[held] = model.update(others).log_predictive(select_rows(rows, held))
    return LeaveOneOut(log_joint, codes, group)


def check_exact(classifier, purpose: str) -> None:
    """Raise where a record has no exact posterior, which a ``purpose`` needs."""
    if classifier.posterior_.kind != "exact":
        lacking = "" if classifier.model_.conjugate else f", and {type(classifier.model_).__name__} has none"
        cure = "of draws, by inference='nuts' or 'laplace', take arviz_stats.loo(classifier.to_arviz(X, y))"
        raise ValueError(f"{purpose}: it needs inference='exact'{lacking}; {cure}")


def check_rows(classifier, whole, given) -> None:
    """Raise if the statistics of the given rows differ from the statistics of the fit."""
    counts, fitted = given.classes.sums, whole.classes.sums
    if not np.allclose(counts, fitted, rtol=1e-9):
        problem = f"rows by class are {listed(fitted)} and {listed(counts)}"
    else:
        problem = different_rows(*(by_column(classifier.schema_, classifier.model_, s) for s in (whole, given)))
    if problem:
        raise ValueError(f"X and y must be the rows of the fit: {problem}, at the fit and here")


@dataclass(frozen=True)
class LeaveOneOut:
    """Predictions of each row from all others.

    Attributes
    ----------
    log_joint : array, shape (n, K)
        Log p(x_i, t = k | all other rows).
    codes : int array, shape (n,), or array, shape (n, K)
        Class of each row, or its shares of the classes: scores are then their means by share.
    group : int array, shape (n,), or None
        Group of each row, with which it was left out; None where each row was left out by itself.
    """

    log_joint: np.ndarray
    codes: np.ndarray
    group: np.ndarray | None = None

    def __repr__(self):
        rows, loss = len(self.codes), -self.conditional.mean()
        return f"LeaveOneOut(elpd={self.elpd:.1f} ± {self.se:.1f}, log loss={loss:.3f}, rows={rows})"

    @property
    def probability(self) -> np.ndarray:
        """Return p(t_i = k | x_i, all other rows), (n, K)."""
        return softmax(self.log_joint, axis=1)

    @property
    def joint(self) -> np.ndarray:
        """Return log p(x_i, t_i | all other rows) of each row, (n,); their sum is the joint elpd."""
        if self.codes.ndim == 2:
            return np.where(self.codes > 0, self.codes * self.log_joint, 0.0).sum(1)
        return self.log_joint[np.arange(len(self.codes)), self.codes]

    @property
    def conditional(self) -> np.ndarray:
        """Return log p(t_i | x_i, all other rows) of each row, (n,); minus their mean is the log loss."""
        return self.joint - logsumexp(self.log_joint, axis=1)

    @property
    def elpd(self) -> float:
        """Return the expected log predictive density of rows and classes: the sum of `joint`."""
        return float(self.joint.sum())

    @property
    def se(self) -> float:
        """Return the standard error of `elpd`: sqrt(n) times the sd over rows, or over the sums of groups."""
        scores = self.joint
        if self.group is not None:
            scores = by_label(self.group, scores)
        return float(np.sqrt(len(scores)) * scores.std(ddof=1))


def loo_given_x(data):
    """Estimate the expected log predictive density of classes given columns, row by row left out.

    A row that is left out takes its columns with it, so the draws have the weights of the joint density, which ArviZ
    smooths (PSIS). The estimate is the log of Σ w p(x_i, t_i | θ) / Σ w p(x_i | θ): both are averaged before one is
    divided by the other, as in ``predict_proba``. For a discriminative model it equals ``arviz_stats.loo``, so the two
    kinds of model compare: ``arviz_stats.compare`` takes the result.

    Parameters
    ----------
    data : DataTree
        Result of ``to_arviz(X, y)`` of a classifier.

    Returns
    -------
    arviz_stats.ELPDData
        The estimate, with its values by row; Pareto's k, and so the warnings, refer to the joint density.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier(random_state=0).fit(X, y)
    >>> estimate = loo_given_x(classifier.to_arviz(X, y)).elpd
    >>> bool(abs(estimate - classifier.leave_one_out(X, y).conditional.sum()) < 0.5)
    True
    """
    from arviz_stats import loo  # pyright: ignore[reportPrivateImportUsage]

    whole: Any = loo(data, pointwise=True)
    if "conditional_log_likelihood" not in data.children:
        return whole
    joint = data["log_likelihood"]["joint"]
    columns = joint - data["conditional_log_likelihood"]["t"]

    def flat(values):
        return values.transpose("chain", "draw", "obs").values.reshape(-1, values.sizes["obs"])

    def average(density, weight) -> np.ndarray:
        return np.asarray(logsumexp(weight + flat(density), axis=0))

    weight = flat(whole.log_weights)
    rows = average(joint, weight) - average(columns, weight)
    fitted = average(joint, 0.0) - average(columns, 0.0)
    elpd, spread = float(rows.sum()), float(np.sqrt(len(rows) * rows.var()))
    return replace(whole, elpd=elpd, se=spread, p=float(fitted.sum()) - elpd, elpd_i=whole.elpd_i.copy(data=rows))


def predict_in_order(classifier, X, y, order, groups=None) -> np.ndarray:
    r"""Return log p(x_i, t = k | all earlier rows) of rows that came after those of the fit, (n, K).

    The posterior goes on from the rows of the fit: the statistics of each row are added once its time has passed, under
    the prior of the fit. So with distinct times and no groups the sum of the entries of the true classes is, by the
    chain rule, the growth of the log evidence,

    .. math:: \sum_i \log p(x_i, t_i \mid x_{<i}, t_{<i}) = \log p(\text{all rows}) - \log p(\text{rows of the fit})

    Parameters
    ----------
    classifier : naive Bayes or discriminant, fitted with inference="exact"
        Classifier of rows that came before.
    X : DataFrame or array, shape (n, columns)
        Rows that came after.
    y : array, shape (n,)
        Their classes, among those of the fit.
    order : array, shape (n,)
        Their times: dates or numbers. Rows of one time are predicted from the same rows, each alone.
    groups : array, shape (n,), optional
        Label of what a row belongs to, where rows belong together: a patient, a batch, a day. All rows of a group are
        predicted from what came before its first one.

    Raises
    ------
    ValueError
        If the posterior is not exact, or order or groups do not suit the rows.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier
    >>> X, y = [["a"], ["b"], ["b"], ["a"], ["b"]], [0, 1, 0, 0, 1]
    >>> first, whole = (NaiveBayesClassifier().fit(X[:n], y[:n]) for n in (3, 5))
    >>> log_joint = predict_in_order(first, X[3:], y[3:], order=[1, 2])
    >>> bool(np.isclose(log_joint[[0, 1], y[3:]].sum(), whole.log_evidence_ - first.log_evidence_))
    True
    """
    classifier = fitted_of(classifier)
    if not exact(classifier):
        raise ValueError(
            "predict_in_order() adds the statistics of rows: it needs naive Bayes or a discriminant with "
            "inference='exact' and a label for each row of the fit; compare_models(order=) refits others"
        )
    rows = classifier.read(X)
    codes = codes_of(y, classifier.classes_, count_rows(rows))
    time, group = times_of(order, len(codes)), group_codes(groups, len(codes))
    model, statistics = classifier.model_, classifier.statistics_
    begin, sequence, learned = begins(time, group), np.argsort(time, kind="stable"), 0
    result = np.empty((len(codes), len(classifier.classes_)))
    for moment in np.unique(begin):
        passed = np.searchsorted(time[sequence], moment)
        if passed > learned:
            new = sequence[learned:passed]
            statistics, learned = statistics + model.statistics(select_rows(rows, new), codes[new]), passed
        rows_then = np.flatnonzero(begin == moment)
        result[rows_then] = model.update(statistics).log_predictive(select_rows(rows, rows_then))
    return result


def exact(classifier) -> bool:
    """Return True for a classifier whose exact posterior follows from sums over the rows."""
    kind = getattr(getattr(classifier, "posterior_", None), "kind", None)
    return kind == "exact" and isinstance(getattr(classifier, "statistics_", None), ClassStatistics)


def begins(time, group) -> np.ndarray:
    """Return the time at which the group of each row begins, (n,): its own time where there are no groups."""
    return time if group is None else pd.Series(time).groupby(group).transform("min").to_numpy()
