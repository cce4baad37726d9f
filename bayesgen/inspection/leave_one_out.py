"""How a classifier does on each row of its fit had the row not been there."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.numerics.pieces import split_rows
from bayesgen.numerics.sums import Grouping
from bayesgen.tables.labels import class_codes, class_labels, existing


def leave_one_out(classifier, X, y, sample_weight=None) -> "LeaveOneOut":
    """Class probabilities of each row of the fit had it not been there, exactly: its statistics are subtracted.

    The hyperparameters stay those of the full fit ("weak" ones follow the data), and nothing is sampled. A row of
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
    """
    check_is_fitted(classifier)
    if classifier.posterior_.kind != "exact":
        raise ValueError("leave_one_out() is exact: it needs inference='exact'")
    table, y, weight = existing(classifier._table(X, reset=False), class_labels(y), sample_weight)
    _, codes = class_codes(y, classifier.classes_)
    rows = classifier._shape(classifier.schema_.read(table))
    model, whole = classifier.model_, classifier.statistics_
    counts = Grouping(codes, len(classifier.classes_), weight, ()).sizes()
    if not np.allclose(counts, whole.classes.sums, rtol=1e-9):
        raise ValueError(
            f"X and y must be the rows of the fit, which had {whole.classes.sums.tolist()} rows by class; "
            f"these have {counts.tolist()}"
        )
    log_joint = np.empty((len(codes), len(classifier.classes_)))
    for i, row in enumerate(split_rows(rows, 1)):
        own = slice(i, i + 1)
        rest = whole - model.statistics(row, codes[own], None if weight is None else weight[own])
        log_joint[i] = model.update(rest).log_predictive(row)[0]
    return LeaveOneOut(log_joint, codes)


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
