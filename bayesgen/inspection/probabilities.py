r"""Uncertainty of class probabilities: their spread over the posterior, and their error from a finite number of draws.

p(t = k | x, θ) varies over the posterior of θ; its draws and intervals are methods of every classifier.

A generative classifier averages p(x, t = k | θ) over draws of θ. At an outlying row, or in a class of few rows, a
handful of draws may carry the average; then it is rough, whatever their number. `draw_reliability` finds such rows.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from bayesgen.core.errors import Argument, InputError, InputWarning, warn
from bayesgen.core.memory import check_memory
from bayesgen.core.registry import fitted_of
from bayesgen.numerics.checks import check_count, check_level
from bayesgen.numerics.draws import LARGEST_K, pareto_shape
from bayesgen.numerics.pieces import DENSITIES, count_rows, split_rows
from bayesgen.posterior.likelihoods import possible

_STEPS, _CLOSE = 300, 1e-11  # most steps of a shift, and the difference of log means at which it is found
FEWEST = 100  # effective draws below which an average is called rough
MATTERS = 1e-3  # a class of less probability is left out: far from its rows few draws always carry the average


def predict_proba_draws(classifier, X, size: int = 1000) -> np.ndarray:
    """Return class probabilities under single draws of the parameters, the uncertainty of the probability itself.

    Their plain average is the predictive probability of a discriminative model, but *not* of a generative one: there
    x itself is evidence of θ, by which ``predict_proba`` weighs the draws. In an averaged classifier a draw picks a
    member by its weight, then its exponent and parameters, or moves the scores of one that has no draws of these.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        Rows.
    size : int, default 1000
        Number of draws; all are the same under a point estimate.

    Returns
    -------
    array, shape (size, n, K)
    """
    classifier = fitted_of(classifier)
    check_count("size", size)
    rows, done = classifier.read_for_draws(X), 0
    count = count_rows(rows)
    check_memory(
        f"{size} draws of {count} rows' probabilities of {len(classifier.classes_)} classes",
        8 * size * count * len(classifier.classes_),
        "take fewer draws (size=), fewer rows at a time, or predict_proba_interval",
    )
    result = np.empty((size, count, len(classifier.classes_)))
    for _, log_probability in by_pieces(classifier, rows, size):
        places = slice(done, done := done + log_probability.shape[1])
        with np.errstate(under="ignore"):
            np.exp(log_probability, out=result[:, places])
    return result


def predict_proba_interval(classifier, X, level: float = 0.9, size: int = 1000) -> np.ndarray:
    r"""Return the shortest posterior interval of each class probability that holds what `predict_proba` says.

    ``predict_proba`` is a ratio of expected densities, perhaps tempered, and draws of p(t | x, θ) have another mean. So
    they are shifted on the log odds until they have this one; how far they spread there stays. The interval is the
    shortest between two of them that holds it and ``level`` of all draws.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        Rows.
    level : float, default 0.9
        Posterior probability of the interval.
    size : int, default 1000
        Number of draws from which the interval is taken, 2 or more.

    Returns
    -------
    array, shape (n, K, 2)
        Lower and upper end.

    Raises
    ------
    ValueError
        If the classifier is fitted at a point, by "map" or "ml", which knows nothing of how far its probabilities may
        be off; or by "memberships", which are taken as known: `LatentClassClassifier.membership` has intervals.
    """
    check_level("level", level)
    classifier = fitted_of(classifier)
    check_count("size", size, least=2)
    if not classifier.posterior_.uncertain:
        how = "by memberships" if classifier.posterior_.kind == "memberships" else "at a point"
        gives = Argument("inference", "laplace"), " gives one"
        raise InputError(f"a classifier that is fitted {how} has no interval; ", *gives)
    rows, said, intervals = classifier.read_for_draws(X), classifier.predict_proba(X), []
    for _, log_probability in by_pieces(classifier, rows, size):
        mean, said = np.split(said, [log_probability.shape[1]])
        intervals.append(shortest(shifted(log_probability, mean), mean, level))
    return np.concatenate(intervals)


@np.errstate(divide="ignore", invalid="ignore", under="ignore", over="ignore")
def shifted(log_probability, mean) -> np.ndarray:
    r"""Return class probabilities (S, n, K) of draws, shifted on the log odds so that their mean is ``mean`` (n, K).

    They are q_s ∝ q_sk e^{a_k} at the minimum of a convex F(a) (`docs/mathematics/averaged.md`), which exists for every
    p > 0 if each draw leaves all classes possible: so a draw of 0 counts as e^-10,000. A class of p = 0 is ruled out.

    Newton's method looks for d = log p - log m = 0, exact to relative precision in a class however rare: log m has the
    derivatives I - P, P_kl = mean(q_k q_l)/m_k. Where a step does not halve d, a moves by d, which never raises F, as
    mean log Σ q_k e^{d_k} <= log Σ m_k e^{d_k}; while d shrinks slowly, by twice as much each time.
    """
    log_q, eye = np.maximum(np.swapaxes(log_probability, 0, 1), -1e4), np.eye(mean.shape[1])
    todo, shift, result = np.arange(len(mean)), np.where(mean > 0, 0.0, -np.inf), np.empty_like(log_q)
    last, pace, back, sure = np.full(len(mean), np.inf), np.ones(len(mean)), shift.copy(), np.full(len(mean), True)
    for _ in range(_STEPS):
        drawn, p, top = softmax(log_q[todo] + shift[todo, None], axis=2), mean[todo], eye[mean[todo].argmax(1)] == 1
        m = np.maximum(drawn.mean(1), np.finfo(float).tiny)
        apart = np.where(p > 0, np.log(p) - np.log(m), 0.0)
        size = np.abs(apart).max(1)
        halved = size <= last[todo] / 2
        good = sure[todo] | halved
        result[todo[good]] = drawn[good]
        slope = eye - drawn.swapaxes(1, 2) @ drawn / (drawn.shape[1] * m[..., None])
        slope = np.where(top[..., None], eye, slope) + 1e-14 * eye  # the shift of the likeliest class stays
        step = np.linalg.solve(slope, np.where(top, 0.0, apart)[..., None])[..., 0]
        faster = np.where((size < last[todo]) & ~halved, 2 * pace[todo], 1.0)
        pace[todo] = np.where(sure[todo], faster, pace[todo])
        before = shift[todo], back[todo]
        steps = (step, pace[todo, None] * apart)
        shift[todo], back[todo] = (np.where(good[:, None], before[0] + d, before[1]) for d in steps)
        last[todo], sure[todo] = np.where(good, size, last[todo]), ~good
        todo = todo[~(size <= _CLOSE)]
    return np.swapaxes(result, 0, 1)


def shortest(drawn, mean, level: float) -> np.ndarray:
    """Return the shortest intervals (n, K, 2) between draws (S, n, K) that hold a share ``level`` and their mean."""
    drawn = np.sort(drawn, axis=0)
    count = max(2, int(np.ceil(level * len(drawn))))
    low, high = drawn[: len(drawn) - count + 1], drawn[count - 1 :]
    outside = np.maximum(low - mean, mean - high).clip(0.0)  # 0 somewhere, but for rounding where all draws are equal
    best = np.where(outside > outside.min(0), np.inf, high - low).argmin(0)
    return np.stack([np.take_along_axis(ends, best[None], 0)[0] for ends in (low, high)], axis=-1)


def by_pieces(classifier, rows, size):
    """Yield log p(x_i, t = k | θ_s), (size, K, rows), and log p(t = k | x_i, θ_s), (size, rows, K), of a few rows."""
    exponent, step = getattr(classifier, "exponent_", 1.0), max(1, DENSITIES // (size * len(classifier.classes_)))
    for drawn, params in classifier.posterior_.label_draws(rows, size, step, classifier.random_state):
        density = possible(drawn, params)
        if exponent != 1:
            with np.errstate(divide="ignore"):
                density = tempered(density, np.log(params["classes.probability"])[..., None], exponent)
        with np.errstate(under="ignore"):
            yield drawn, log_softmax(np.moveaxis(density, 1, -1), axis=-1)


def tempered(log_joint, log_prior, exponent: float):
    """Return log π_k p(x | k)^τ from the logs of π_k p(x | k) and of π_k."""
    if exponent == 1:
        return log_joint
    with np.errstate(invalid="ignore"):  # where π_k is 0, so is all
        return np.where(np.isneginf(log_joint), -np.inf, log_prior + exponent * (log_joint - log_prior))


def log_odds(log_probability: np.ndarray) -> np.ndarray:
    """Return log p/(1 - p) of each class, (n, K), from log joint densities or probabilities, as 1 - p sums others."""
    apart = 1.0 - np.eye(log_probability.shape[1])
    others = [np.asarray(logsumexp(log_probability, axis=1, b=each)) for each in apart]
    return np.where(np.isneginf(log_probability), -np.inf, log_probability - np.stack(others, axis=1))


class FewDrawsWarning(InputWarning):
    """Class probabilities of some rows rest on few draws; ``rows``, (n,), is True for these."""

    def __init__(self, *parts: str | Argument, rows=()):
        super().__init__(*parts)
        self.rows = rows


@dataclass(frozen=True)
class DrawReliability:
    """Effective draws behind the average at each row, in the worst of the classes that matter there.

    Attributes
    ----------
    effective : array, shape (n,)
        Effective draws: of the row's weights, times the share of the draws that is effective in the chains.
    pareto_k : array, shape (n,)
        Shape of the tail of the weights; above 0.7 more draws hardly help. NaN of fewer than 25 draws.
    probability : array, shape (n, K)
        Class probabilities.
    """

    effective: np.ndarray
    pareto_k: np.ndarray
    probability: np.ndarray

    @property
    def doubtful(self) -> np.ndarray:
        """Return True for rows with fewer than 100 effective draws, or a tail of shape above 0.7, (n,)."""
        return (self.effective < FEWEST) | (self.pareto_k > LARGEST_K)


def draw_reliability(classifier, X) -> DrawReliability:
    """Return how many draws the class probabilities of each row rest on, and how heavy the tail of their weights is.

    Classes of a probability below 0.001 are left out: far from its rows a class always rests on few draws.

    Parameters
    ----------
    classifier : fitted generative classifier
        With ``inference="nuts"`` or ``"laplace"``.
    X : DataFrame or array, shape (n, columns)
        Rows.

    Examples
    --------
    >>> from bayesgen import NUTS, NaiveBayesClassifier
    >>> X, y = [[1.0], [1.4], [0.9], [3.1], [2.9], [3.4]], ["a", "a", "a", "b", "b", "b"]
    >>> classifier = NaiveBayesClassifier(inference=NUTS(500, 500, 2), random_state=0).fit(X, y)
    >>> draw_reliability(classifier, [[1.1], [40.0]]).doubtful
    array([False,  True])
    """
    classifier = fitted_of(classifier)
    posterior = classifier.posterior_
    if posterior.kind != "draws" or not hasattr(classifier, "score_samples"):
        raise ValueError(
            "draw_reliability() is about draws of a generative classifier: it needs inference='nuts' or 'laplace'"
        )
    posterior = posterior.as_draws(classifier.random_state)
    read = classifier.read(X)
    joint, effective = posterior.log_predictive_with_effective(read)
    rows = posterior.model.check(read)
    params, model, aside = posterior.flat, posterior.model, ~matters(joint)
    parts = split_rows(rows, max(1, DENSITIES // (len(next(iter(params.values()))) * joint.shape[1])))
    shapes = [pareto_shape(model.log_likelihood_rows(params, piece), posterior.efficiency).T for piece in parts]
    k = np.concatenate(shapes)
    with np.errstate(invalid="ignore", under="ignore"):
        worst = np.where(aside | np.isnan(k), -np.inf, k).max(1)
        probability = softmax(joint, axis=1)
    return DrawReliability(fewest(joint, effective), np.where(np.isinf(worst), np.nan, worst), probability)


def matters(joint) -> np.ndarray:
    """Return True for classes (n, K) whose probability is large enough to need a reliability."""
    with np.errstate(invalid="ignore"):  # -inf for all
        return ~(joint - joint.max(1, keepdims=True) < np.log(MATTERS))


def fewest(joint, effective) -> np.ndarray:
    """Return the effective draws (n,) in the worst of the classes that matter."""
    return np.where(matters(joint), effective, np.inf).min(1)


def warn_of_few_draws(joint, effective, exact: bool) -> None:
    """Warn of the number of rows that rest on few draws; ``exact`` is True if exact inference is another way."""
    few = fewest(joint, effective) < FEWEST
    if few.any():
        text = f"the class probabilities of {few.sum()} of {len(few)} rows rest on fewer than {FEWEST} effective draws"
        which = "; inspection.draw_reliability tells which rows"
        warn(FewDrawsWarning(f"{text}, and are rough: ", *more_draws(exact), which, rows=few))


def more_draws(exact: bool) -> list[str | Argument]:
    """Return the cure of few draws; ``exact`` is True if exact inference is another way."""
    return ["use ", Argument("inference", "exact"), ", or more draws"] if exact else ["take more draws"]
