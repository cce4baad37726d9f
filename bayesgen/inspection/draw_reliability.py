"""How far class probabilities by draws can be trusted: on how many draws the average at each row rests.

A generative classifier averages p(x, t = k | θ) over draws of θ. At a row far out, or in a class of few rows, a handful
of them may carry the average; then it is rough, whatever the number of draws.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from bayesgen.numerics.pareto import pareto_shape
from bayesgen.numerics.pieces import DENSITIES, count_rows, split_rows

FEWEST = 100  # effective draws below which an average is called rough
LARGEST_K = 0.7  # and the shape of the tail above which it is
MATTERS = 1e-3  # a class of less probability is not looked at: far from its rows few draws always carry the average


class FewDrawsWarning(UserWarning):
    """Class probabilities of some rows rest on few draws.

    Attributes
    ----------
    rows : bool array, shape (n,)
        Those rows.
    """

    def __init__(self, text: str, rows=()):
        super().__init__(text)
        self.rows = rows


@dataclass(frozen=True)
class DrawReliability:
    """What the average at each row rests on, in the worst of the classes that matter there.

    Attributes
    ----------
    effective : array, shape (n,)
        Effective draws: those of the row's weights, of them the share that is effective in the chains.
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
        """Whether a row has fewer than 100 effective draws, or a tail of shape above 0.7, (n,)."""
        return (self.effective < FEWEST) | (self.pareto_k > LARGEST_K)


def draw_reliability(classifier, X) -> DrawReliability:
    """On how many draws the class probabilities of each row rest, and how heavy the tail of their weights is.

    Classes of a probability below 0.001 are left out: far from its rows a class always rests on few draws.

    Parameters
    ----------
    classifier : fitted generative classifier
        With ``inference="nuts"`` or ``"laplace"``.
    X : DataFrame or array, shape (n, columns)
        Rows.

    Returns
    -------
    DrawReliability

    Examples
    --------
    >>> from bayesgen import NUTS, NaiveBayesClassifier
    >>> X, y = [[1.0], [1.4], [0.9], [3.1], [2.9], [3.4]], ["a", "a", "a", "b", "b", "b"]
    >>> classifier = NaiveBayesClassifier(inference=NUTS(500, 500, 2), random_state=0).fit(X, y)
    >>> draw_reliability(classifier, [[1.1], [40.0]]).doubtful
    array([False,  True])
    """
    check_is_fitted(classifier)
    posterior = classifier.posterior_
    if posterior.kind != "draws" or not hasattr(classifier, "score_samples"):
        raise ValueError(
            "draw_reliability() is about draws of a generative classifier: it needs inference='nuts' or 'laplace'"
        )
    posterior = posterior.as_draws(classifier.random_state)
    read = classifier._read(X)
    joint, effective = posterior.log_predictive_with_effective(read)
    rows = posterior.model.check(read)
    params, k, done = posterior.flat, np.empty(joint.shape), 0
    draws = len(next(iter(params.values())))
    for part in split_rows(rows, max(1, DENSITIES // (draws * joint.shape[1]))):
        own = slice(done, done := done + count_rows(part))
        k[own] = pareto_shape(posterior.model.log_likelihood_rows(params, part), posterior.efficiency).T
    aside = ~matters(joint)
    with np.errstate(invalid="ignore", under="ignore"):
        worst = np.where(aside | np.isnan(k), -np.inf, k).max(1)
        probability = softmax(joint, axis=1)
    return DrawReliability(fewest(joint, effective), np.where(np.isinf(worst), np.nan, worst), probability)


def matters(joint) -> np.ndarray:
    """Which classes (n, K) have a probability that is worth its own reliability."""
    with np.errstate(invalid="ignore"):  # -inf for all
        return ~(joint - joint.max(1, keepdims=True) < np.log(MATTERS))


def fewest(joint, effective) -> np.ndarray:
    """Effective draws (n,) in the worst of the classes that matter."""
    return np.where(matters(joint), effective, np.inf).min(1)


def warn_of_few_draws(joint, effective, exact: bool, stacklevel: int) -> None:
    """Warn, counting them, of rows that rest on few draws; ``exact`` says whether there is another way."""
    few = fewest(joint, effective) < FEWEST
    if few.any():
        cure = "use inference='exact', or more draws" if exact else "take more draws"
        text = (
            f"the class probabilities of {few.sum()} of {len(few)} rows rest on fewer than {FEWEST} effective draws, "
            f"and are rough: {cure}; inspection.draw_reliability tells which rows"
        )
        warnings.warn(FewDrawsWarning(text, few), stacklevel=stacklevel)
