"""How a classifier does on each row of its fit had the row not been there."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.inspection.same_rows import by_column, different_rows
from bayesgen.messages import listed
from bayesgen.numerics.pieces import select_rows, split_rows
from bayesgen.tables.labels import class_codes, class_labels, existing

_FEW = 64  # rows at a time whose others are summed for each; those of one row take almost as long


def leave_one_out(classifier, X, y, sample_weight=None) -> "LeaveOneOut":
    """Class probabilities of each row of the fit had it not been there, exactly: by the statistics of all others.

    These are added, by halves of halves, and nothing is subtracted: a row far out loses no digits. The
    hyperparameters stay those of the full fit ("weak" ones follow the data), and nothing is sampled. A row of
    weight w is taken out whole.

    Parameters
    ----------
    classifier : fitted generative classifier
        With ``inference="exact"``.
    X, y, sample_weight
        The rows of the fit.

    Returns
    -------
    LeaveOneOut

    Raises
    ------
    ValueError
        Where the rows are not those of the fit, as far as counts, means and sums of squares by class and column tell.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier
    >>> X, y = [[1.0], [1.4], [3.1], [2.9]], ["a", "a", "b", "b"]
    >>> leave_one_out(NaiveBayesClassifier().fit(X, y), X, y).probability[:, 0].round(2)
    array([1.  , 0.99, 0.  , 0.01])
    """
    rows, codes, weight = rows_of_fit(classifier, X, y, sample_weight, "leave_one_out() is exact")
    model, whole = classifier.model_, classifier.statistics_

    def summed(own):
        return model.statistics(select_rows(rows, own), codes[own], None if weight is None else weight[own])

    check_rows(classifier, whole, summed(slice(None)))
    log_joint = np.empty((len(codes), len(classifier.classes_)))
    others = all_but_one(summed, np.arange(len(codes)), 0)
    for i, (row, rest) in enumerate(zip(split_rows(rows, 1), others, strict=True)):
        log_joint[i] = model.update(rest).log_predictive(row)[0]
    return LeaveOneOut(log_joint, codes)


def rows_of_fit(classifier, X, y, sample_weight, purpose: str):
    """The rows as the model takes them, the codes of their classes, and their weights or None."""
    check_is_fitted(classifier)
    if classifier.posterior_.kind != "exact":
        raise ValueError(f"{purpose}: it needs inference='exact'")
    table, y, weight = existing(classifier._table(X, reset=False), class_labels(y), sample_weight)
    _, codes = class_codes(y, classifier.classes_)
    return classifier._shape(classifier.schema_.read(table)), codes, weight


def check_rows(classifier, whole, given) -> None:
    """Raise where the statistics of rows are not those of the fit."""
    counts, fitted = given.classes.sums, whole.classes.sums
    if not np.allclose(counts, fitted, rtol=1e-9):
        problem = f"rows by class are {listed(fitted)} and {listed(counts)}"
    else:
        problem = different_rows(*(by_column(classifier.schema_, classifier.model_, s) for s in (whole, given)))
    if problem:
        raise ValueError(f"X and y must be the rows of the fit: {problem}, at the fit and here")


def all_but_one(summed, rows, outside):
    """Yield the statistics of all rows but one, for each of ``rows``, those of all rows beside them being ``outside``.

    Of n rows each is summed log2 n times; to subtract each from the sum of all would be as fast, and errs by the whole
    answer where one row has most of the scatter.
    """
    if len(rows) <= _FEW:
        for i in range(len(rows)):
            yield outside + summed(np.delete(rows, i))
        return
    left, right = np.array_split(rows, 2)
    yield from all_but_one(summed, left, outside + summed(right))
    yield from all_but_one(summed, right, outside + summed(left))


@dataclass(frozen=True)
class LeaveOneOut:
    """Predictions of each row by all others.

    Attributes
    ----------
    log_joint : array, shape (n, K)
        Log p(x_i, t = k | all other rows).
    codes : int array, shape (n,)
        The class each row has.
    """

    log_joint: np.ndarray
    codes: np.ndarray

    def __repr__(self):
        rows, loss = len(self.codes), -self.conditional.mean()
        return f"LeaveOneOut(elpd={self.elpd:.1f} ± {self.se:.1f}, log loss={loss:.3f}, rows={rows})"

    @property
    def probability(self) -> np.ndarray:
        """p(t_i = k | x_i, all other rows), (n, K)."""
        return softmax(self.log_joint, axis=1)

    @property
    def joint(self) -> np.ndarray:
        """Log p(x_i, t_i | all other rows) of each row, (n,); their sum is the joint elpd."""
        return self.log_joint[np.arange(len(self.codes)), self.codes]

    @property
    def conditional(self) -> np.ndarray:
        """Log p(t_i | x_i, all other rows) of each row, (n,); minus their mean is the log loss."""
        return self.joint - logsumexp(self.log_joint, axis=1)

    @property
    def elpd(self) -> float:
        """Expected log predictive density of rows and classes: the sum of `joint`."""
        return float(self.joint.sum())

    @property
    def se(self) -> float:
        """Standard error of `elpd`: sqrt(n) times the sd over rows."""
        return float(np.sqrt(len(self.joint)) * self.joint.std(ddof=1))
