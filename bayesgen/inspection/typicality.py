r"""Typicality: the rank of the density of a row among rows that the model itself would draw.

.. math:: u_k(x) = P\big(p(X \mid k) < p(x \mid k)\big) + U\, P\big(p(X \mid k) = p(x \mid k)\big), \qquad
   X \sim p(\cdot \mid t = k, \text{data}), \; U \sim \mathrm{Uniform}(0, 1)

a tail probability: uniform over rows of class k if the model is right, and near 0 for a row unlike them all. With gaps
both densities are marginals of the seen entries. A Gaussian predictive t with ν degrees of freedom and d entries seen
has δ²/d ~ F(d, ν), which is exact; elsewhere it is the rank among M rows drawn from the predictive, ties broken by U,

.. math:: u = \frac{\#\{p_m < p\} + U (1 + \#\{p_m = p\})}{M + 1}

which is uniform too, whatever the distribution. Over all classes the same with p(x) = Σ_k π_k p(x | k).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from bayesgen.inspection.missing import Joint, joint_of, refuse_totals
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.draws import generator
from bayesgen.numerics.pieces import ROWS, patterns, select_rows, split_rows
from bayesgen.posterior.component import Rows

_SAME = 1e-9  # relative distance of two log densities that are equal but for rounding


@dataclass(frozen=True)
class Typicality:
    """Tail probabilities of rows, small if nothing like them was seen.

    Attributes
    ----------
    by_class : array, shape (n, K)
        Tail probability among rows of each class.
    overall : array, shape (n,)
        Tail probability among rows of all classes, in their proportions: for `bayesgen.decision.decide`.
    """

    by_class: np.ndarray
    overall: np.ndarray


def typicality(classifier, X, draws: int = 2000) -> Typicality:
    """Return the predictive tail probability of rows, for each class and over all: small if unlike anything seen.

    If the model is right, a share u of its rows has a typicality below u. A row with no entry has 1. Tempered
    classifiers use their untempered densities. Counts that are modelled given their total (bags of words,
    heads of tosses that are a column) are refused: a row's density then depends on its own total.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        Classifier whose density is used.
    X : DataFrame or array, shape (n, columns)
        Rows; missing entries are integrated out. A pattern of gaps costs as much as to predict ``draws`` rows a class.
    draws : int, default 2000
        Number of rows drawn from each class, if there is no formula.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier(random_state=0).fit(X, y)
    >>> typicality(classifier, [X[0], 3 * X[0]]).overall.round(2)
    array([1., 0.])
    """
    joint = joint_of(classifier, "typicality()")
    check_count("draws", draws)
    refuse_totals(joint, "typicality()")
    rows, rng = joint.read(X), generator(joint.classifier.random_state)
    seen = np.concatenate([~np.isnan(v.reshape(len(v), -1)) for v in rows.values()], axis=1)
    drawn, ties = joint.draw(draws, rng), rng.random(len(seen))
    by_class, overall = np.ones((len(seen), len(joint.log_prior))), np.ones(len(seen))
    for places, rows_of in patterns(seen):
        if len(places):
            found = _ranks(joint, select_rows(rows, rows_of), _masked(drawn, places), ties[rows_of])
            by_class[rows_of], overall[rows_of] = found
    exact = [tails for piece in split_rows(rows, ROWS) if (tails := joint.tails(piece)) is not None]
    return Typicality(np.concatenate(exact) if exact else by_class, overall)


def _masked(rows: Rows, places) -> Rows:
    """Return rows with their entries in the given places alone."""
    result, start = {}, 0
    for name, v in rows.items():
        flat = v.reshape(len(v), -1)
        keep = np.isin(np.arange(start, start := start + flat.shape[1]), places)
        result[name] = np.where(keep, flat, np.nan).reshape(v.shape)
    return result


def _ranks(joint: Joint, rows: Rows, drawn: Rows, ties):
    """Return the ranks of rows among drawn rows of the same pattern of gaps, by class (n, K) and overall (n,)."""
    mine, theirs, prior = joint.log_density(rows), joint.log_density(drawn), joint.log_prior
    classes = len(prior)
    count = len(theirs) // classes
    theirs_by_class = theirs.reshape(classes, count, classes)
    even = np.ones(count)
    by_class = np.column_stack([_rank(mine[:, k], theirs_by_class[k, :, k], even, ties) for k in range(classes)])
    weight = np.repeat(np.exp(prior), count)
    with np.errstate(under="ignore"):
        of_rows, of_drawn = (logsumexp(density + prior, axis=1) for density in (mine, theirs))
    return by_class, _rank(of_rows, of_drawn, weight, ties)


def _rank(value, others, weight, ties):
    """Return the share of the others' weight below each value, plus ``ties`` of the weight that equals it: (n,)."""
    order = np.argsort(others)
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    width = _SAME * (1 + np.abs(np.where(np.isfinite(value), value, 0.0)))
    low, high = (below[np.searchsorted(others[order], value + shift)] for shift in (-width, width))
    one = weight.mean()
    return (low + ties * (high - low + one)) / (below[-1] + one)
