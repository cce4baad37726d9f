r"""A Gaussian vector with unknown mean and covariance matrix.

.. math:: \Sigma \sim \mathrm{IW}(\nu, \Psi), \quad \mu \mid \Sigma \sim N(m, \Sigma/\kappa), \quad
   x_i \mid \mu, \Sigma \sim N_D(\mu, \Sigma)

With n rows of mean x̄ and scatter S: kappa_n = kappa + n, mean_n = (kappa m + n x̄)/kappa_n, nu_n = nu + n,
Psi_n = Psi + S + kappa n/kappa_n (x̄ - m)(x̄ - m)'. Predictive: D-variate Student-t with nu_n - D + 1 degrees of freedom
and scale matrix Psi_n (kappa_n + 1)/(kappa_n (nu_n - D + 1)). Joint mode: mean_n and Psi_n/(nu_n + D + 2).
(Gelman et al. 2013, *Bayesian Data Analysis*, section 3.6; Murphy 2007, section 9.)
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaln, multigammaln

from bayesgen import program
from bayesgen.model import Conjugate, DataError, hyperparameter
from bayesgen.models.gaussian import LOG_2PI
from bayesgen.statistics import moments, patterns


@dataclass(frozen=True, eq=False)
class NormalInverseWishart(Conjugate):
    """Gaussian vector with a normal-inverse-Wishart prior on mean and covariance.

    Parameters
    ----------
    mean : array, shape (..., D)
        Prior mean, in the units of x.
    kappa : float or array, shape (...)
        Rows the prior mean is worth, > 0.
    nu : float or array, shape (...)
        Degrees of freedom, > D - 1.
    scale : array, shape (..., D, D)
        Scale matrix, symmetric positive definite, in squared units of x; the covariance has mean scale/(nu - D - 1).

    Examples
    --------
    >>> prior = NormalInverseWishart(mean=[0.0, 0.0], kappa=1.0, nu=4.0, scale=np.eye(2))
    >>> posterior = prior.update(prior.statistics([[1.0, 2.0], [3.0, 0.0]]))
    >>> float(posterior.nu), posterior.mean.round(3)
    (6.0, array([1.333, 0.667]))
    """

    mean: np.ndarray = hyperparameter(rank=1)
    kappa: np.ndarray = hyperparameter(positive=True)
    nu: np.ndarray = hyperparameter(positive=True)
    scale: np.ndarray = hyperparameter(rank=2)

    event_dim = 1
    site_dims = {"mean": ("feature",), "covariance": ("feature", "feature2"), "cholesky": ("feature", "feature2")}

    def __post_init__(self):
        super().__post_init__()
        dim = self.mean.shape[-1]
        if self.scale.shape[-2:] != (dim, dim):
            raise ValueError(
                f"NormalInverseWishart: scale must end in shape ({dim}, {dim}) to fit mean of length {dim}, "
                f"got {self.scale.shape}"
            )
        if not (self.nu > dim - 1).all():
            raise ValueError(f"NormalInverseWishart: nu must exceed D - 1 = {dim - 1}, got {self.nu.min():g}")
        spread = np.abs(self.scale).max(initial=0)
        if not np.allclose(self.scale, np.swapaxes(self.scale, -1, -2), rtol=0, atol=1e-8 * spread):
            raise ValueError("NormalInverseWishart: scale must be symmetric")
        try:
            np.linalg.cholesky(self.scale)
        except np.linalg.LinAlgError:
            raise ValueError("NormalInverseWishart: scale must be positive definite") from None

    @classmethod
    def weak(cls, statistics) -> Self:
        """The default prior: the data's own location and within-class scale, no correlation; nu = 3D."""
        mean, variance, _ = statistics.pooled()
        dim = len(mean)
        return cls(mean, 0.01, 3.0 * dim, (2 * dim - 1) * np.diag(variance))

    @property
    def dof(self):
        """Degrees of freedom of the predictive Student-t, nu - D + 1."""
        return self.nu - self.mean.shape[-1] + 1

    @property
    def predictive_scale(self):
        """Scale matrix of the predictive Student-t."""
        return self.scale * ((self.kappa + 1) / (self.kappa * self.dof))[..., None, None]

    # -- the program -------------------------------------------------------------------------------------------------

    def parameters(self):
        """Sample the Cholesky factor of the covariance, and the mean given it."""
        jnp, dist = program.jnp, program.dist
        prior = dist.InverseWishartCholesky(self.nu, scale_tril=jnp.linalg.cholesky(self.scale))
        cholesky = program.numpyro.sample("cholesky", prior)
        spread = cholesky / jnp.sqrt(self.kappa)[..., None, None]
        mean = program.numpyro.sample("mean", dist.MultivariateNormal(self.mean, scale_tril=spread))
        covariance = program.numpyro.deterministic("covariance", cholesky @ cholesky.mT)
        return {"mean": mean, "covariance": covariance, "cholesky": cholesky}

    def likelihood(self, params):
        """Multivariate normal."""
        return program.dist.MultivariateNormal(params["mean"], scale_tril=params["cholesky"])

    def predictive(self):
        """Multivariate Student-t."""
        return program.dist.MultivariateStudentT(
            self.dof, self.mean, program.jnp.linalg.cholesky(program.jnp.asarray(self.predictive_scale))
        )

    # -- the exponential family --------------------------------------------------------------------------------------

    def T(self, x, about=0.0):
        """(1, z, z_i z_j for i <= j), z = x - about."""
        z = x - about
        rows, cols = np.triu_indices(x.shape[-1])
        return np.concatenate([np.ones((*z.shape[:-1], 1)), z, z[..., rows] * z[..., cols]], axis=-1)

    def natural(self, params, about=0.0):
        """(-D log(2π)/2 - log|L| - |w|²/2, P d, -P_ii/2 and -P_ij), d = mean - about, w = L⁻¹d, P = L⁻ᵀL⁻¹."""
        d, cholesky = params["mean"] - about, params["cholesky"]
        xp, dim = d.__array_namespace__(), d.shape[-1]
        inverse = xp.linalg.inv(cholesky)
        precision = inverse.mT @ inverse
        w = (inverse @ d[..., None])[..., 0]
        log_det = xp.log(xp.diagonal(cholesky, axis1=-2, axis2=-1)).sum(-1)
        log_partition = -0.5 * dim * LOG_2PI - log_det - 0.5 * (w * w).sum(-1)
        rows, cols = np.triu_indices(dim)
        quadratic = precision[..., rows, cols] * np.where(rows == cols, -0.5, -1.0)
        return xp.concatenate([log_partition[..., None], (inverse.mT @ w[..., None])[..., 0], quadratic], axis=-1)

    @classmethod
    def statistics(cls, x, group=None, groups=None, weight=None):
        """`Moments` with the full scatter, by group. A row with nothing observed counts for its class alone."""
        x = cls.check(cls, x)  # type: ignore[arg-type]
        missing = np.isnan(x)
        partly = missing & ~missing.all(-1, keepdims=True)
        if partly.any():
            row, column = np.argwhere(partly)[0]
            raise DataError(
                f"row {row} is partly missing: a full covariance needs complete rows to fit; drop or impute "
                "it, or use naive Bayes, which takes it as it is",
                feature=int(column),
            )
        return moments(x, group, groups, weight, vector=True)

    def log_likelihood_rows(self, params, x):
        """Log p(row | params), centred and whitened by the class's mean over draws; missing entries integrated out."""
        lead, dim = params["mean"].shape[:-1], params["mean"].shape[-1]
        mean = params["mean"].reshape(-1, lead[-1] if len(lead) > 1 else 1, dim)
        covariance = params["covariance"].reshape(*mean.shape, dim)
        result = np.zeros((*mean.shape[:2], len(x)))
        for observed, rows in patterns(~np.isnan(x)):
            block = np.ix_(observed, observed)
            for k in range(mean.shape[1]):
                if not len(observed):
                    continue
                mu, sigma = mean[:, k, observed], covariance[:, k][:, *block]
                about = mu.mean(0)
                whiten = np.linalg.inv(np.linalg.cholesky(sigma.mean(0)))
                local = {"mean": (mu - about) @ whiten.T, "cholesky": whiten @ np.linalg.cholesky(sigma)}
                z = (x[np.ix_(rows, observed)] - about) @ whiten.T
                density = self.product(local, z)
                result[:, k, rows] = density + np.log(np.diagonal(whiten)).sum()
        return result.reshape(*lead, len(x))

    # -- the algebra -------------------------------------------------------------------------------------------------

    def update(self, statistics):
        """The posterior, written as steps from the prior so that offsets do not cancel."""
        n, delta = statistics.n, statistics.mean - self.mean
        kappa = self.kappa + n
        between = (self.kappa * n / kappa)[..., None, None] * delta[..., :, None] * delta[..., None, :]
        mean = self.mean + (n / kappa)[..., None] * delta
        return NormalInverseWishart(mean, kappa, self.nu + n, self.scale + statistics.scatter + between)

    def log_evidence(self, statistics):
        """Log of (2π)^(-nD/2) 2^(nD/2) (kappa/kappa_n)^(D/2) |Psi|^(nu/2)/|Psi_n|^(nu_n/2) Γ_D(nu_n/2)/Γ_D(nu/2)."""
        p, dim = self.update(statistics), self.mean.shape[-1]
        terms = (
            -0.5 * statistics.n * dim * np.log(np.pi)
            + 0.5 * dim * np.log(self.kappa / p.kappa)
            + 0.5 * self.nu * np.linalg.slogdet(self.scale)[1]
            - 0.5 * p.nu * np.linalg.slogdet(p.scale)[1]
            + multigammaln(p.nu / 2, dim)
            - multigammaln(self.nu / 2, dim)
        )
        return float(np.sum(terms))

    def log_predictive(self, x):
        """Log density of the predictive Student-t; a missing entry leaves the marginal t, degrees of freedom kept."""
        x = self.check(x)
        shape = self.batch_shape
        mean = np.broadcast_to(self.mean, (*shape, x.shape[-1])).reshape(-1, x.shape[-1])
        scale = np.broadcast_to(self.predictive_scale, (*shape, *self.scale.shape[-2:])).reshape(
            len(mean), *self.scale.shape[-2:]
        )
        dof = np.broadcast_to(self.dof, shape).reshape(-1)
        result = np.zeros((len(mean), len(x)))
        for observed, rows in patterns(~np.isnan(x)):
            dim = len(observed)
            for k in range(len(mean)):
                cholesky = np.linalg.cholesky(scale[k][np.ix_(observed, observed)])
                z = (x[np.ix_(rows, observed)] - mean[k, observed]) @ np.linalg.inv(cholesky).T
                constant = gammaln((dof[k] + dim) / 2) - gammaln(dof[k] / 2) - 0.5 * dim * np.log(np.pi * dof[k])
                log_det = np.log(np.diagonal(cholesky)).sum()
                result[k, rows] = (
                    constant - log_det - (dof[k] + dim) / 2 * np.log1p(np.einsum("ij,ij->i", z, z) / dof[k])
                )
        return result.T.reshape(len(x), *shape)

    def mode(self):
        """Joint mode of (mean, covariance): scale / (nu + D + 2)."""
        dim = self.mean.shape[-1]
        covariance = self.scale / (self.nu + dim + 2)[..., None, None]
        shape = covariance.shape[:-2]
        return _params(np.broadcast_to(self.mean, (*shape, dim)), covariance)

    def ml(self, statistics):
        """Sample mean, and covariance with divisor n; none with n <= D rows or a singular scatter."""
        n, dim = np.atleast_1d(statistics.n), statistics.mean.shape[-1]
        scatter = statistics.scatter.reshape(-1, dim, dim)
        spread = np.sqrt(np.diagonal(scatter, axis1=-2, axis2=-1))
        resolution = np.sqrt(n[:, None] * statistics.resolution().reshape(-1, dim))
        for k in range(len(n)):
            if n[k] <= dim:
                raise DataError(
                    f"maximum likelihood does not exist: {n[k]:g} complete rows for {dim} features; a full "
                    f"covariance needs more than {dim}",
                    group=k,
                )
            for j in np.flatnonzero(spread[k] <= resolution[k]):
                raise DataError("maximum likelihood does not exist: no two distinct values", group=k, feature=int(j))
            correlation = scatter[k] / np.outer(spread[k], spread[k])
            if np.linalg.eigvalsh(correlation)[0] <= 8 * dim * np.finfo(float).eps:
                raise DataError("maximum likelihood does not exist: the columns are linearly dependent", group=k)
        return _params(statistics.mean, statistics.scatter / statistics.n[..., None, None])

    def draw(self, rng, size=()):
        """Exact draws by Bartlett's decomposition: M'M ~ Wishart(nu, I), M lower triangular; L M⁻¹ is a factor of Σ."""
        dim = self.mean.shape[-1]
        shape = (*size, *self.batch_shape)
        M = np.tril(rng.standard_normal((*shape, dim, dim)), -1)
        diagonal = np.arange(dim)
        M[..., diagonal, diagonal] = np.sqrt(rng.chisquare(self.nu[..., None] + diagonal - dim + 1, (*shape, dim)))
        cholesky = np.linalg.cholesky(self.scale) @ np.linalg.inv(M)
        noise = (cholesky @ rng.standard_normal((*shape, dim, 1)))[..., 0]
        mean = self.mean + noise / np.sqrt(self.kappa)[..., None]
        return {"mean": mean, "covariance": cholesky @ cholesky.mT, "cholesky": cholesky}


def _params(mean, covariance):
    return {"mean": mean, "covariance": covariance, "cholesky": np.linalg.cholesky(covariance)}
