"""Why: what each column of a row says for each class."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.boundary import mean_scores
from bayesgen.inspection.averaged import Averaged, averaged_terms
from bayesgen.models.gaussian_discriminant import GaussianDiscriminant
from bayesgen.numerics.pieces import count_rows


def explain(classifier, X):
    """What each column of a row says for each class, as terms that add.

    In naive Bayes the term of a column is log p(x_j | t = k, data), averaged over the posterior, and that of a
    block that is one observation (a bag of words, heads with tosses) stands under its block's name. In a Gaussian
    discriminant with a shared covariance it is w_kj (x_j - m_j) under the posterior mean of the weights, m the mean
    of the rows of fit, and the first term holds the score at m. Terms are centred over the classes: 0 says nothing,
    and a column that is missing says 0. The difference of two classes is a log odds. In an averaged classifier the term
    of a column is the average over members, by weight, of their exponents times log p(x | k) with the column less that
    without it; columns that say the same share their say, and averaging is no sum of logarithms, so a last term
    "remainder" is what the others leave of the log probability.

    Parameters
    ----------
    classifier : fitted generative classifier
        Whose posterior is asked.
    X : DataFrame or array, shape (n, columns)
        Rows; complete for a Gaussian discriminant.

    Returns
    -------
    xarray.DataArray, dims (row, class, term)
        Terms "prior", then the columns. In naive Bayes the softmax over classes of their sum is `predict_proba` (of
        draws, up to their noise).

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier
    >>> X, y = [[0.0, 1.0], [0.2, 0.0], [1.0, 1.1], [1.2, 0.1]], ["a", "a", "b", "b"]
    >>> said = explain(NaiveBayesClassifier().fit(X, y), [[1.3, 0.5]])
    >>> (said.sel({"class": "b"}) - said.sel({"class": "a"}))[0].round(2).to_series().to_dict()
    {'prior': 0.0, 'x0': 6.07, 'x1': -0.01}
    """
    import xarray as xr

    check_is_fitted(classifier)
    names, terms = averaged_terms(classifier, X) if isinstance(classifier, Averaged) else _terms(classifier, X)
    values = np.stack(np.broadcast_arrays(*terms), axis=-1)
    known = np.isfinite(values)  # a plug-in estimate may rule a class out: -inf
    values = values - np.where(known, values, 0.0).sum(1, keepdims=True) / known.sum(1, keepdims=True).clip(1)
    labels = {"class": classifier.classes_.tolist(), "term": ["prior", *names]}
    return xr.DataArray(values, dims=("row", "class", "term"), coords=labels)


def _terms(classifier, X):
    rows = classifier._read(X)
    return (_linear_terms if isinstance(rows, np.ndarray) else _bayes_terms)(classifier, rows)


def _bayes_terms(classifier, rows):
    """Log class probability, and by column what it adds where all others are missing."""
    nothing, posterior = classifier.schema_.nothing(), classifier.posterior_
    blank = {name: np.repeat(v, count_rows(rows), axis=0) for name, v in nothing.items()}
    prior = posterior.log_predictive(nothing)
    names, terms = [], [prior]
    for block in classifier.schema_.blocks:
        own = rows[block.name]
        if block.single or classifier.model_.leaves[block.name].event_dim:
            parts = {block.columns[0] if block.single else block.name: own}
        else:
            places = np.arange(own.shape[1])
            parts = {c: np.where(places == j, own, np.nan) for j, c in enumerate(block.columns)}
        names += parts
        own = (posterior.log_predictive(blank | {block.name: part}) for part in parts.values())
        terms += [classifier.exponent_ * (joint - prior) for joint in own]
    return names, terms


def _linear_terms(classifier, rows):
    """Score at the mean of the rows of fit, and by column what leads away from it."""
    if not isinstance(classifier.model_, GaussianDiscriminant) or not classifier.model_.shared:
        raise ValueError("explain() needs scores that are a sum over columns: naive Bayes, or shared=True")
    weights, intercept = mean_scores(classifier.posterior_, seed=classifier.random_state)
    centre = classifier.statistics_.leaves["gaussian"].pooled.mean
    if np.isnan(rows).any():
        raise ValueError("explain() of a Gaussian discriminant needs complete rows")
    at_centre = np.broadcast_to(intercept + weights @ centre, (len(rows), len(intercept)))
    columns = np.moveaxis(weights[None] * (rows - centre)[:, None], -1, 0)
    return classifier.schema_.columns, [at_centre, *columns]
