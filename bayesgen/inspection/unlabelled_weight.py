"""How much rows without a label should count: what labelled rows that are held out say."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

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
    log_loss : array, shape (W,)
        Mean of -log p(true class) over the labelled rows.
    """

    weights: np.ndarray
    log_loss: np.ndarray

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
    loss = np.zeros(len(tried))
    for w, j in np.ndindex(len(tried), int(fold.max()) + 1):
        weight = np.where(known, 1.0, tried[w])
        held = np.flatnonzero(known)[fold == j]
        weight[held] = 0.0
        probability = clone(classifier).fit(X, y, weight).predict_proba(X)
        with np.errstate(divide="ignore"):
            loss[w] -= np.log(probability[held, codes[fold == j]]).sum() / len(codes)
    return UnlabelledWeight(tried, loss)
