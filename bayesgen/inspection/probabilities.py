"""How sure a classifier is of its probabilities: the spread of p(t = k | x, θ) over the posterior of θ."""

import warnings

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.inspection.averaged import averaged_draws
from bayesgen.inspection.tempering import tempered
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.pieces import DENSITIES, split_rows


def probability_draws(classifier, X, size: int = 1000) -> np.ndarray:
    """Class probabilities under single draws of the parameters: how sure the model is of its own probability.

    Their plain average is the predictive probability of a discriminative model, but *not* of a generative one,
    where x itself tells about θ: that is ``predict_proba``. Of an averaged classifier each draw is of a member, by
    weight, and of that member's parameters; a discriminative member is a point.

    Parameters
    ----------
    classifier : fitted classifier
        Whose posterior is asked.
    X : DataFrame or array, shape (n, columns)
        Rows.
    size : int, default 1000
        Draws; of a point estimate all are the same.

    Returns
    -------
    array, shape (size, n, K)
    """
    return np.concatenate(list(_by_pieces(classifier, X, size)), axis=1)


def probability_interval(classifier, X, level: float = 0.9, size: int = 1000) -> np.ndarray:
    """Central posterior interval of p(t = k | x, θ), for every row and class.

    Parameters
    ----------
    classifier : fitted classifier
        Whose posterior is asked.
    X : DataFrame or array, shape (n, columns)
        Rows.
    level : float, default 0.9
        Posterior probability of the interval.
    size : int, default 1000
        Draws it is taken from.

    Returns
    -------
    array, shape (n, K, 2)
        Lower and upper end.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    ends = [0.5 - level / 2, 0.5 + level / 2]
    intervals = [np.quantile(p, ends, axis=0) for p in _by_pieces(classifier, X, size)]
    return np.moveaxis(np.concatenate(intervals, axis=1), 0, -1)


def _by_pieces(classifier, X, size):
    """Yield p(t = k | x_i, θ_s) of some rows at a time, (size, rows, K)."""
    check_is_fitted(classifier)
    if hasattr(classifier, "average_"):
        yield from averaged_draws(classifier, X, size)
        return
    check_count("size", size)
    model, params = classifier.posterior_.model, classifier.posterior_.draws(classifier.random_state, (size,))
    for rows in split_rows(model.check(classifier._read(X)), max(1, DENSITIES // (size * len(classifier.classes_)))):
        density = possible(model.log_likelihood_rows(params, rows), params)
        if (exponent := getattr(classifier, "exponent_", 1.0)) != 1:
            with np.errstate(divide="ignore"):
                density = tempered(density, np.log(params["classes.probability"])[..., None], exponent)
        yield softmax(np.moveaxis(density, 1, -1), axis=-1)


def possible(density, params):
    """Log densities (draws, K, rows), the class prior where all are log 0, as in ``predict_proba``."""
    lost = np.isneginf(density.max(1, keepdims=True))
    if not lost.any():
        return density
    warn_of_lost(lost.any(0).sum(), 6)
    with np.errstate(divide="ignore"):
        return np.where(lost, np.log(params["classes.probability"])[..., None], density)


def warn_of_lost(rows: int, stacklevel: int) -> None:
    """Warn of rows that no class can explain, which a plug-in estimate can make of any row."""
    message = f"{rows} rows have probability 0 under every class; they get the class prior"
    warnings.warn(message, UserWarning, stacklevel)
