r"""Reference priors: the improper limits of the conjugate ones, whose posteriors are the classical answers.

=======================  ==============================================  ============================================
leaf                     prior                                           posterior, and where it is proper
=======================  ==============================================  ============================================
`ReferenceGaussian`      :math:`p(\mu, \sigma^2) \propto 1/\sigma^2`     NIG(x̄, n, (n - 1)/2, S/2): two distinct
                                                                         values
`ReferenceVector`        :math:`p(\mu, \Sigma) \propto                   NIW(x̄, n, n - 1, S): n > D rows, none of
                         |\Sigma|^{-(D + 1)/2}`                          the columns a combination of others
`ReferencePoisson`       :math:`p(\lambda) \propto \lambda^{-1/2}`       Gamma(s + 1/2, n): one row
`HaldaneBernoulli`       :math:`p(\theta) \propto 1/(\theta              Beta(s, f): a one and a zero
                         (1 - \theta))`
`HaldaneCategorical`     :math:`p(\theta) \propto \prod 1/\theta_v`      Dirichlet(n): every category
=======================  ==============================================  ============================================

The Gaussian limits are kappa = 0, beta = 0, alpha = -1/2 for every mean that is tied to the variance, and nu = -1 for
every mean tied to the covariance: where M means share one, alpha = (N - M)/2 and nu = N - M after N rows. The
predictive of a Gaussian class is then Geisser's (1964, *Posterior odds for multivariate normal classifications*), a
D-variate Student-t about x̄_k with n_k - D degrees of freedom and squared scale S_k (n_k + 1)/(n_k (n_k - D)). Where K
classes share the covariance these are N - K - D + 1 and S (n_k + 1)/(n_k (N - K - D + 1)). They are the classical
predictive densities of QDA and LDA. Jeffreys' prior of a coin or a die is proper: Beta(1/2, 1/2), Dirichlet(1/2).

An improper prior has no draws and no evidence: its constant is arbitrary, and so would be a comparison of models by it.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen.core.errors import Argument, DataError, refuse_where
from bayesgen.core.program import static
from bayesgen.models.bernoulli import Bernoulli, BetaBernoulli
from bayesgen.models.categorical import Categorical, DirichletCategorical, labels
from bayesgen.models.gaps import PatternMoments
from bayesgen.models.gaussian import Gaussian, NormalInverseGamma, tie
from bayesgen.models.gaussian_vector import GaussianVector, independent
from bayesgen.models.leaf import ConjugateFamily
from bayesgen.models.moments import Moments
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart
from bayesgen.models.poisson import GammaPoisson, Poisson


@dataclass(frozen=True, eq=False)
class ReferencePrior(ConjugateFamily):
    """An improper prior: it gives a posterior, but neither draws nor evidence."""

    proper = False
    # shape of the features; a classifier learns it from its rows
    shape: tuple[int, ...] = static(default=(), kw_only=True)

    @functools.cached_property
    def batch_shape(self):
        return self.shape

    def for_classes(self, groups):
        """Return itself: classes have the same prior."""
        return self

    def repeated(self, columns):
        return replace(self, shape=(columns,))

    def with_prior(self, statistics: Any):
        shape = statistics.mean.shape[1:] if isinstance(statistics, Moments) else statistics.sums.shape[1:-1]
        return replace(self, shape=shape)

    def parameters(self) -> Any:
        raise ValueError(f"{type(self).__name__} is improper: it has no draws; give a proper prior")

    def sample_parameters(self, rng, size=()):
        return self.parameters()

    def log_evidence_terms(self, statistics) -> Any:
        raise ValueError(f"{type(self).__name__} is improper: it has no evidence; give a proper prior")

    def log_predictive(self, x) -> Any:
        raise ValueError(f"{type(self).__name__} is improper: it has no predictive before rows are learned from")


def _require(possible, problem: str) -> None:
    """Raise, for the first class and column, where the posterior stays improper."""
    refuse_where(~np.asarray(possible), f"the reference prior stays improper here: {problem}")


@dataclass(frozen=True, eq=False)
class ReferenceGaussian(Gaussian, ReferencePrior):
    """Gaussian features under p(means, variance) ∝ 1/variance.

    Parameters
    ----------
    tied : tuple of {"class", "feature"}, keyword
        Axes that share one variance; a `GaussianDiscriminant` sets them.

    Examples
    --------
    >>> prior = ReferenceGaussian()
    >>> posterior = prior.update(prior.statistics([1.0, 3.0, 2.0]))
    >>> float(posterior.alpha), float(posterior.beta)  # (n - 1)/2 and S/2
    (1.0, 1.0)
    """

    tied: tuple[str, ...] = static(default=(), kw_only=True)  # type: ignore[misc]  # a field, not a class variable

    def update(self, statistics: Moments):
        """Return NIG(x̄, n, (N - M)/2, S/2): N and S over all rows, M the means that share the variance."""
        n, spread = statistics.n, tie(statistics.scatter, self.tied)
        _require(n > 0, "no observed value")
        freedom = tie(n, self.tied) - tie(np.ones(n.shape), self.tied)
        enough = (freedom > 0) & (spread > tie(n * statistics.resolution(), self.tied))
        _require(enough, "fewer than two distinct values")
        return NormalInverseGamma(statistics.mean, n, freedom / 2, spread / 2, tied=self.tied)


@dataclass(frozen=True, eq=False)
class ReferenceVector(GaussianVector, ReferencePrior):
    """Gaussian vectors under p(means, Σ) ∝ |Σ|^-(D + 1)/2.

    Parameters
    ----------
    shared : bool, keyword
        If True, all classes share one covariance; a `GaussianDiscriminant` sets this.

    Examples
    --------
    >>> prior = ReferenceVector()
    >>> posterior = prior.update(prior.statistics([[1.0, 2.0], [3.0, 0.0], [2.0, 5.0], [0.0, 1.0]]))
    >>> float(posterior.nu), float(posterior.dof)  # n - 1 and n - D
    (3.0, 2.0)
    """

    shared: bool = static(default=False, kw_only=True)  # type: ignore[misc]  # a field, not a class variable

    def with_prior(self, statistics):
        """Return itself: a vector is one observation."""
        return self

    def update(self, statistics: Moments | PatternMoments):
        """Return NIW(x̄, n, N - M, S): N and S over all rows, M the means that share the covariance."""
        if isinstance(statistics, PatternMoments):
            raise DataError(
                "rows are partly missing: the reference prior has no exact posterior then; give a proper prior with ",
                Argument("inference", "map"),
                " or 'nuts', or a diagonal or isotropic covariance",
                feature=statistics.gaps[0],
            )
        n, scatter, dim = statistics.n, statistics.scatter, statistics.mean.shape[-1]
        nu, noise = n - 1, n[..., None] * statistics.resolution()
        _require(n > 0, "no observed row")
        if self.shared:
            nu, scatter, noise = (a.sum(0, keepdims=True) for a in (nu, scatter, noise))
        rows = "as many rows beyond one" if self.shared else f"more rows than {dim}"
        _require(nu > dim - 1, f"{dim} columns need {rows} in each class")
        variance = np.diagonal(scatter, axis1=-2, axis2=-1)
        _require(variance > noise, "no two distinct values")
        _require(independent(scatter), "the columns are linearly dependent")
        return NormalInverseWishart(statistics.mean, n, nu, scatter, shared=self.shared)


@dataclass(frozen=True, eq=False)
class ReferencePoisson(Poisson, ReferencePrior):
    """Counts under Jeffreys' p(mean) ∝ mean^-1/2.

    Examples
    --------
    >>> prior = ReferencePoisson()
    >>> float(prior.update(prior.statistics([3, 5, 0])).mean.round(3))  # (8 + 1/2)/3
    2.833
    """

    def update(self, statistics):
        """Return Gamma(s + 1/2, n)."""
        rows, events = np.moveaxis(statistics.total(), -1, 0)
        _require(rows > 0, "no observed value")
        return GammaPoisson(events + 0.5, rows)


@dataclass(frozen=True, eq=False)
class HaldaneBernoulli(Bernoulli, ReferencePrior):
    """Coins under Haldane's p(θ) ∝ 1/(θ(1 - θ)): Beta(a, b) as a and b fall to 0.

    Examples
    --------
    >>> coin = HaldaneBernoulli()
    >>> float(coin.update(coin.statistics([1, 1, 0, 1])).mean)  # the share of ones
    0.75
    """

    def update(self, statistics):
        """Return Beta(s, f)."""
        zeros, ones = np.moveaxis(statistics.total(), -1, 0)
        _require((zeros > 0) & (ones > 0), "Haldane's prior needs a one and a zero; BetaBernoulli(0.5, 0.5) is proper")
        return BetaBernoulli(ones, zeros)


@dataclass(frozen=True, eq=False)
class HaldaneCategorical(ReferencePrior, Categorical):
    """Dice under Haldane's p(θ) ∝ ∏ 1/θ_v: Dirichlet(alpha) as alpha falls to 0.

    Parameters
    ----------
    categories : int or sequence
        The number of categories V or their labels, in the order of the codes.

    Examples
    --------
    >>> die = HaldaneCategorical(3)
    >>> die.update(die.statistics([0, 0, 2, 1])).mean  # the shares
    array([0.5 , 0.25, 0.25])
    """

    categories: Any = static(default=2)

    def __post_init__(self):
        object.__setattr__(self, "categories", labels("HaldaneCategorical", self.categories))
        super().__post_init__()

    @property
    def mean(self):
        """Undefined before any row: raises ValueError."""
        return self.parameters()

    def update(self, statistics):
        """Return Dirichlet(n)."""
        counts = statistics.total()
        _require((counts > 0).all(-1), "Haldane's prior needs every category; DirichletCategorical(0.5, ...) is proper")
        return DirichletCategorical(counts, self.categories)
