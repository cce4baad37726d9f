r"""How far the features of a classifier are to be trusted: the exponent that exact leave-one-out chooses.

.. math:: q(k \mid x) \propto p(t = k \mid \text{data}) \, p(x \mid t = k, \text{data})^{\tau}

The predictive of a wrong model is too sure of itself: naive Bayes counts two columns that say the same twice. τ below
1 takes that back. What comes out is a probability of the class and nothing else: it belongs to no posterior, and to no
density of x. See `bayesgen.averaging.temper` for what τ maximises.
"""

import numpy as np

from bayesgen.averaging import temper
from bayesgen.averaging.rows import sample
from bayesgen.inspection.leave_one_out import all_but_one, rows_of_fit
from bayesgen.numerics.pieces import select_rows

_MOST = 1000  # rows that are left out


def tempered(log_joint, log_prior, exponent: float):
    """Log of π_k p(x | k)^τ from log of π_k p(x | k) and of π_k."""
    if exponent == 1:
        return log_joint
    with np.errstate(invalid="ignore"):  # where π_k is 0, so is all
        return np.where(np.isneginf(log_joint), -np.inf, log_prior + exponent * (log_joint - log_prior))


def best_exponent(classifier, X, y, sample_weight=None) -> float:
    """The exponent τ of the features that maximises the log score of rows left out, and a prior on it.

    Every row is left out by one unit of its weight, so that a weight of 2 is two rows; "weak" priors follow the rows
    that are left. Of more than 1,000 rows a stratified sample is left out, each class weighted back to its part.

    Parameters
    ----------
    classifier : fitted generative classifier
        With ``inference="exact"``.
    X, y, sample_weight
        The rows of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen import NaiveBayesClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> x = rng.normal(size=60) + y
    >>> twice = np.column_stack([x, x])  # one column that is there twice
    >>> once, both = (NaiveBayesClassifier().fit(X, y) for X in (x[:, None], twice))
    >>> best_exponent(both, twice, y) < 0.7 * best_exponent(once, x[:, None], y)
    True
    """
    purpose = "an exponent is chosen by exact leave-one-out"
    rows, codes, weight = rows_of_fit(classifier, X, y, sample_weight, purpose)
    weight = np.ones(len(codes)) if weight is None else weight
    template, nothing = classifier._template(classifier.schema_), classifier._shape(classifier.schema_.nothing())

    def summed(own, weight=weight):
        return template.statistics(select_rows(rows, own), codes[own], weight[own])

    places = sample(codes, _MOST, np.random.default_rng(0))
    others = all_but_one(summed, places, summed(np.delete(np.arange(len(codes)), places)))
    density, log_prior = np.empty((2, len(places), len(classifier.classes_)))
    for j, (i, rest) in enumerate(zip(places, others, strict=True)):
        own = slice(i, i + 1)
        if weight[i] > 1:
            rest = rest + summed(own, weight - 1)
        model = template.settled(rest).update(rest)
        log_prior[j] = model.log_predictive(nothing)[0]
        density[j] = model.log_predictive(select_rows(rows, own))[0] - log_prior[j]
    codes, own = codes[places], weight[places]
    scored = (
        own
        * (classifier.statistics_.classes.sums / np.bincount(codes, own, len(classifier.classes_)).clip(1e-300))[codes]
    )
    scored *= own.sum() / scored.sum()
    mode = temper.expected(len(classifier.schema_.columns), scored.sum())
    return float(temper.exponents(density[None], log_prior, codes, scored, mode)[0])
