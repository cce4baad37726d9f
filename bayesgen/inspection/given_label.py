"""The class of a row, given its columns and a label that may be wrong."""

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.leaf import log_or_floor
from bayesgen.numerics.pieces import DENSITIES, count_rows, split_rows
from bayesgen.posterior import generator
from bayesgen.tables.labels import class_codes, class_labels

_DRAWS = 500


def class_given_label(classifier, X, y) -> np.ndarray:
    r"""Probability of each class of rows whose label was told: small at its label where the label looks wrong.

    .. math:: p(t_i = k \mid x_i, s_i, \text{data}) = \mathrm{E}_{\theta \mid \text{data}} \left[
       \frac{\pi_k \Gamma_{k s_i} p(x_i \mid \theta_k)}{\sum_l \pi_l \Gamma_{l s_i} p(x_i \mid \theta_l)} \right]

    which is exact for rows of the fit, whose labels are among the data; of other rows the label has taught nothing.

    Parameters
    ----------
    classifier : generative classifier fitted with ``label_noise``
        Whose posterior is asked.
    X, y : rows and the labels told
        Of the fit.

    Returns
    -------
    array, shape (n, K)
        Columns in the order of ``classes_``.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> from bayesgen.models import LabelNoise
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> y[3] = 2
    >>> classifier = GaussianDiscriminantClassifier(inference="map", label_noise=LabelNoise(0.05)).fit(X, y)
    >>> class_given_label(classifier, X[3:4], y[3:4]).round(2)
    array([[1., 0., 0.]])
    """
    check_is_fitted(classifier)
    model: Any = getattr(classifier, "model_", None)
    if getattr(model, "confusion", None) is None:
        raise ValueError("class_given_label() needs a classifier that was fitted with label_noise=")
    _, codes = class_codes(class_labels(y), classifier.classes_)
    rows = model.check(classifier._read(X))
    if count_rows(rows) != len(codes):
        raise ValueError(f"X has {count_rows(rows)} rows and y has {len(codes)}; they must be of one length")
    posterior = classifier.posterior_
    params = posterior.draws(generator(classifier.random_state), (1 if posterior.kind == "point" else _DRAWS,))
    confusion = log_or_floor(params[model.CONFUSION])
    found = []
    for part in split_rows(rows, max(1, DENSITIES // confusion[..., 0].size)):
        own = codes[len(found) :][: count_rows(part)]
        joint = model.log_likelihood_rows(params, part) + confusion[..., own]
        with np.errstate(under="ignore"):
            found += list(softmax(joint, axis=1).mean(0).T)
    return np.stack(found)
