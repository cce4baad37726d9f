"""How sure a classifier is of its probabilities: the spread of p(t = k | x, θ) over the posterior of θ."""

import warnings

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.inspection.averaged import Averaged, averaged_draws
from bayesgen.inspection.tempering import tempered
from bayesgen.numerics.checks import check_count, check_level
from bayesgen.numerics.memory import check_memory
from bayesgen.numerics.pieces import DENSITIES, count_rows, split_rows


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
    check_is_fitted(classifier)
    check_count("size", size)
    rows, done = _rows(classifier, X), 0
    count = len(rows[0]) if isinstance(rows, tuple) else count_rows(rows)
    check_memory(
        f"{size} draws of {count} rows' probabilities of {len(classifier.classes_)} classes",
        8 * size * count * len(classifier.classes_),
        "take fewer draws (size=), fewer rows at a time, or predict_proba_interval",
    )
    result = np.empty((size, count, len(classifier.classes_)))
    for probability in _by_pieces(classifier, rows, size):
        result[:, done : done + probability.shape[1]] = probability
        done += probability.shape[1]
    return result


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
    check_level("level", level)
    ends = [0.5 - level / 2, 0.5 + level / 2]
    check_is_fitted(classifier)
    check_count("size", size)
    intervals = []
    for probability in _by_pieces(classifier, _rows(classifier, X), size):
        with np.errstate(under="ignore"):
            intervals.append(np.quantile(probability, ends, axis=0))
    return np.moveaxis(np.concatenate(intervals, axis=1), 0, -1)


def _rows(classifier, X):
    rows = classifier._read(X)
    return rows if isinstance(classifier, Averaged) else classifier.posterior_.model.check(rows)


def _by_pieces(classifier, rows, size):
    """Yield p(t = k | x_i, θ_s) of some rows at a time, (size, rows, K)."""
    if isinstance(classifier, Averaged):
        yield from averaged_draws(classifier, rows, size)
        return
    model, posterior = classifier.posterior_.model, classifier.posterior_
    check_draws(posterior, size)
    params, exponent = posterior.draws(classifier.random_state, (size,)), getattr(classifier, "exponent_", 1.0)
    for part in split_rows(rows, max(1, DENSITIES // (size * len(classifier.classes_)))):
        density = possible(model.log_likelihood_rows(params, part), params)
        if exponent != 1:
            with np.errstate(divide="ignore"):
                density = tempered(density, np.log(params["classes.probability"])[..., None], exponent)
        with np.errstate(under="ignore"):
            probability = softmax(np.moveaxis(density, 1, -1), axis=-1)
        yield probability


def log_odds(log_probability: np.ndarray) -> np.ndarray:
    """Log p/(1 - p) of each class, (n, K), from log joint densities or log probabilities: 1 - p is a sum of others."""
    result = np.empty_like(log_probability)
    for k, (own, odds) in enumerate(zip(log_probability.T, result.T, strict=True)):
        others = np.delete(log_probability, k, axis=1)
        rest = logsumexp(others, axis=1) if others.size else -np.inf
        odds[:] = np.where(np.isneginf(own), -np.inf, own - rest)
    return result


def check_draws(posterior, count: int) -> None:
    """Raise where so many draws of all parameters would not fit in memory."""
    if posterior.kind != "point":
        one = sum(np.asarray(v).nbytes for v in posterior.draws(0, (1,)).values())
        check_memory(f"{count} draws of the parameters", count * one, "take fewer draws, or a smaller model")


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
