"""Predictions in the order of time: each row from the rows of the fit and from those that came between."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.models.class_program import ClassStatistics
from bayesgen.numerics.pieces import count_rows, select_rows
from bayesgen.tables.dates import times_of
from bayesgen.tables.groups import group_codes
from bayesgen.tables.labels import class_codes, class_labels


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
    check_is_fitted(classifier)
    if not exact(classifier):
        raise ValueError(
            "predict_in_order() adds the statistics of rows: it needs naive Bayes or a discriminant with "
            "inference='exact' and a label for each row of the fit; compare_models(order=) refits others"
        )
    rows = classifier._read(X)
    labels = class_labels(y)
    if len(labels) != count_rows(rows):
        raise ValueError(f"X has {count_rows(rows)} rows and y has {len(labels)}; they must be of one length")
    _, codes = class_codes(labels, classifier.classes_)
    time, group = times_of(order, len(codes)), group_codes(groups, len(codes))
    model, statistics = classifier.model_, classifier.statistics_
    begin, sequence, learned = begins(time, group), np.argsort(time, kind="stable"), 0
    result = np.empty((len(codes), len(classifier.classes_)))
    for moment in np.unique(begin):
        passed = np.searchsorted(time[sequence], moment)
        if passed > learned:
            new = sequence[learned:passed]
            statistics, learned = statistics + model.statistics(select_rows(rows, new), codes[new]), passed
        own = np.flatnonzero(begin == moment)
        result[own] = model.update(statistics).log_predictive(select_rows(rows, own))
    return result


def exact(classifier) -> bool:
    """Return True for a classifier whose exact posterior follows from sums over the rows."""
    kind = getattr(getattr(classifier, "posterior_", None), "kind", None)
    return kind == "exact" and isinstance(getattr(classifier, "statistics_", None), ClassStatistics)


def begins(time, group) -> np.ndarray:
    """Return the time at which the group of each row begins, (n,): its own time where there are no groups."""
    if group is None:
        return time
    _, place = np.unique(group, return_inverse=True)
    order = np.argsort(time, kind="stable")[::-1]
    first = np.empty(int(place.max(initial=-1)) + 1, time.dtype)
    first[place[order]] = time[order]  # of several assignments the last one stays: the earliest time
    return first[place]
