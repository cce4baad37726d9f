r"""Class probabilities of another population, estimated from its rows without labels.

With f_ik = p(x_i | t_i = k), known up to a factor of each row and held fixed, rows are a mixture with unknown shares

.. math:: p(x_1, \ldots, x_n \mid \pi) = \prod_i \sum_k \pi_k f_{ik}, \qquad \pi \sim \mathrm{Dirichlet}(\alpha)

The log likelihood is concave in π. EM climbs it: π_k becomes the mean of the rows' p(k | x_i) under π (Saerens,
Latinne and Decaestecker 2002, *Neural Computation* 14, 21-41). The posterior is sampled by Gibbs: labels given π, π
given the labels' counts. A Dirichlet of the summed probabilities would be too narrow, as if the labels were known.
"""

from dataclasses import dataclass

import numpy as np

from bayesgen.core.errors import counted, warn
from bayesgen.core.registry import fitted_of
from bayesgen.numerics.checks import check_count, check_level, check_positive
from bayesgen.numerics.draws import chain_efficiency, generator
from bayesgen.numerics.newton import reached
from bayesgen.numerics.pieces import pieces

_CHAINS, _WARMUP = 4, 100
_STEPS = 20_000  # of EM at most
_THIN = 20  # sweeps between two draws at most
_FEW = 10  # labelled rows for each class but one, below which the rows say too little


@dataclass(frozen=True)
class ClassPrior:
    """Class probabilities of a population, estimated from its rows without labels.

    Attributes
    ----------
    ml : array, shape (K,)
        Maximum likelihood, by EM.
    draws : array, shape (chains, draws, K)
        Draws of the posterior.
    rows : int
        Number of rows.
    concentration : float
        Concentration of the Dirichlet prior, for each class.
    """

    ml: np.ndarray
    draws: np.ndarray
    rows: int
    concentration: float

    @property
    def mean(self) -> np.ndarray:
        """Return the posterior means, (K,): the class probabilities to decide with."""
        return self.draws.mean((0, 1))

    @property
    def sd(self) -> np.ndarray:
        """Return the posterior standard deviations, (K,)."""
        return self.draws.std((0, 1))

    def interval(self, level: float = 0.9) -> np.ndarray:
        """Return the central posterior intervals, (K, 2), of probability ``level``."""
        check_level("level", level)
        return np.quantile(self.draws, [0.5 - level / 2, 0.5 + level / 2], axis=(0, 1)).T

    @property
    def labelled_rows(self) -> float:
        """Return the number of labelled rows that would hold as much information.

        The variances of a Dirichlet posterior of total mass A sum to (1 - Σ mean²)/(A + 1); A is solved for, and the
        mass of the prior taken off.
        """
        mass = (1 - (self.mean**2).sum()) / np.maximum((self.sd**2).sum(), 1e-300) - 1
        return float(np.clip(mass - self.concentration * len(self.ml), 0.0, self.rows))

    @property
    def effective(self) -> float:
        """Return the effective draws of the class whose chains move least."""
        return min(map(chain_efficiency, np.moveaxis(self.draws, -1, 0))) * self.draws[..., 0].size


def estimate_class_prior(classifier, X, *, concentration: float = 1.0, draws: int = 500) -> ClassPrior:
    """Estimate the class probabilities of a population from its rows alone, the densities of the classes held fixed.

    The estimate is right if the classes look in the new population as they did at fit, and only their frequencies
    differ. The densities are the same as in `predict_proba`, tempered for tempered classifiers; their own uncertainty
    is left out.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        Classifier whose densities of the classes are held fixed.
    X : DataFrame or array, shape (n, columns)
        Rows of the new population, without labels.
    concentration : float, default 1.0
        Concentration of the Dirichlet prior of the class probabilities, for each class.
    draws : int, default 500
        Number of draws of the posterior in each of four chains.

    Returns
    -------
    ClassPrior
        Its ``mean`` is for ``predict_proba(X, priors=)``.

    Warns
    -----
    UserWarning
        If the rows hold less information than ten labelled ones for each class but one: they are too few, or classes
        overlap.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> classifier = NaiveBayesClassifier(random_state=0).fit((rng.normal(size=200) + 2 * y)[:, None], y)
    >>> ill = rng.random(500) < 0.1  # the disease is rarer here
    >>> found = estimate_class_prior(classifier, (rng.normal(size=500) + 2 * ill)[:, None])
    >>> found.mean.round(1), bool(found.labelled_rows < 500)
    (array([0.9, 0.1]), True)
    """
    classifier = fitted_of(classifier)
    if not hasattr(classifier, "score_samples"):
        raise ValueError("estimate_class_prior() compares densities of the classes: it needs a generative classifier")
    check_positive("concentration", concentration)
    check_count("draws", draws)
    count = len(classifier.classes_)
    density = np.exp(classifier.predict_log_proba(X, priors=np.full(count, 1 / count)))
    ml, rate = _maximum(density)
    thin = 1 if rate < 0.5 else min(_THIN, int(np.ceil(np.log(0.5) / np.log(min(rate, 0.999)))))
    rng = generator(classifier.random_state)
    chains = [_gibbs(density, ml, concentration, draws, thin, rng) for _ in range(_CHAINS)]
    found = ClassPrior(ml, np.stack(chains), len(density), concentration)
    if found.labelled_rows < _FEW * (count - 1):
        warn(
            f"{found.rows} rows without labels say as much about the class probabilities as "
            f"{counted(round(found.labelled_rows), 'row')} with labels would: they are too few, or the classes overlap "
            "too much to tell; look at interval()"
        )
    return found


def _maximum(density):
    """Run EM from even shares until the distance left at its rate is below 1e-7; return the shares and the rate."""
    share, last, rate = np.full(density.shape[1], 1 / density.shape[1]), np.inf, 1.0
    for _ in range(_STEPS):
        with np.errstate(under="ignore"):
            new = share * ((1 / (density @ share)) @ density) / len(density)
        step, share = np.abs(new - share).max(), new
        near, rate, last = reached(step, last, 1e-7), step / last, step
        if near:
            break
    return share / share.sum(), rate


def _gibbs(density, start, concentration, count, thin, rng):
    """Draw the shares, (count, K), after a warm-up.

    The rate of EM is the part of the information that is missing with the labels, and about the correlation of two
    sweeps (Sahu and Roberts 1999, *Statistics and Computing* 9): ``thin`` sweeps make a draw, so that the correlation
    of two draws is one half.
    """
    rows, classes = density.shape
    result, share = np.empty((count, classes)), (rows * start + concentration) / (rows + concentration * classes)
    for step in range(-_WARMUP, thin * count):
        labels = np.zeros(classes)
        for piece in pieces(rows, classes):
            cumulative = np.cumsum(density[piece] * share, axis=1)
            below = cumulative[:, :-1] < rng.random((len(cumulative), 1)) * cumulative[:, -1:]
            labels += np.bincount(below.sum(1), minlength=classes)
        share = rng.dirichlet(labels + concentration)
        result[max(step, 0) // thin] = share
    return result
