"""How much rows without a label should count: what labelled rows that are held out say."""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from bayesgen.averaging.rows import folds
from bayesgen.numerics.checks import check_weight
from bayesgen.tables.labels import class_codes, some_labels


@dataclass(frozen=True)
class UnlabelledWeight:
    """Log loss of labelled rows held out, by the weight that rows without a label have.

    Attributes
    ----------
    weights : array, shape (W,)
        The weights tried; under 0 the rows are left out.
    losses : array, shape (W, n)
        -log p(true class) of each labelled row.
    """

    weights: np.ndarray
    losses: np.ndarray

    @property
    def log_loss(self) -> np.ndarray:
        """Their means over the rows, (W,)."""
        return self.losses.mean(1)

    @property
    def best(self) -> float:
        """The weight of least log loss; 0 where rows without a label do harm."""
        return float(self.weights[self.log_loss.argmin()])


def unlabelled_weight(classifier, X, y, weights=(0.0, 0.1, 0.3, 1.0), seed: int = 0) -> UnlabelledWeight:
    """Try weights of the rows without a label, by cross-validation over the rows that have one.

    Where the model is wrong, rows without a label may pull the classes to groups that are no classes, the more the more
    there are. So look before: ``fit(X, y, sample_weight=np.where(has_label, 1, best))``.

    Parameters
    ----------
    classifier : generative classifier
        By ``inference="map"``, "ml" or "nuts", with its marker of a missing label; it stays as it is.
    X, y : rows and labels, some of them missing
        All rows of a fit. Every class needs two labels.
    weights : array, shape (W,)
        The weights to try, >= 0.
    seed : int
        Of the folds: five, or as many as the smallest class has labels.

    Returns
    -------
    UnlabelledWeight

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> some = np.where(np.arange(150) % 10 == 0, y, -1)  # five labels of each class
    >>> classifier = GaussianDiscriminantClassifier(shared=True, inference="map", unlabelled=-1)
    >>> unlabelled_weight(classifier, X, some, weights=[0.0, 1.0]).log_loss.round(2)
    array([0.47, 0.11])
    """
    labels, place = some_labels(y, classifier.unlabelled)
    if place is None:
        raise ValueError("every row of y has a label; say by unlabelled= of the classifier how a missing one is marked")
    tried = np.asarray(check_weight(np.atleast_1d(weights), np.size(weights), "weights"))
    _, codes = class_codes(labels)
    fewest = np.bincount(codes).min()
    if fewest < 2:
        raise ValueError("a class has one label only; to hold it out every class needs two")
    known, fold = place >= 0, folds(codes, min(5, int(fewest)), np.random.default_rng(seed))
    losses = np.empty((len(tried), len(codes)))
    for w, j in np.ndindex(len(tried), int(fold.max()) + 1):
        weight, out = np.where(known, 1.0, tried[w]), fold == j
        held = np.flatnonzero(known)[out]
        weight[held] = 0.0  # a fit with weights asks nothing of labelled rows itself
        log_probability = clone(classifier).fit(X, y, weight).predict_log_proba(_safe_indexing(X, held))
        losses[w, out] = -log_probability[np.arange(len(held)), codes[out]]
    return UnlabelledWeight(tried, losses)


def warn_of_harm(classifier, X, y) -> None:
    """Warn where labelled rows that are held out say that the rows without a label do harm.

    The mean difference of their log loss, with and without those rows, must be above two of its standard errors: a few
    labels cannot tell much, and a lower bar warns of rows that help (`benchmarks/results.md` has how often this one
    does). Where a class has one label, or a part has no fit, nothing is said.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            without, beside = unlabelled_weight(classifier, X, y, (0.0, 1.0)).losses
        except ValueError:
            return
    more = beside - without
    if more.mean() > 2 * more.std(ddof=1) / np.sqrt(len(more)):
        warnings.warn(
            f"the rows without a label seem to do harm: with them the log loss of labelled rows held out is "
            f"{beside.mean():.2f}, and {without.mean():.2f} without; ask inspection.unlabelled_weight how much they "
            "should count, and say so by sample_weight",
            UserWarning,
            stacklevel=3,
        )
