r"""Gaussian vectors with unknown mean and covariance matrix: the normal-inverse-Wishart prior.

.. math:: \Sigma \sim \mathrm{IW}(\nu, \Psi), \quad \mu \mid \Sigma \sim N(m, \Sigma/\kappa), \quad
   x_i \mid \mu, \Sigma \sim N_D(\mu, \Sigma)

With n rows of mean x̄ and scatter S: kappa_n = kappa + n, mean_n = (kappa m + n x̄)/kappa_n, nu_n = nu + n,
Psi_n = Psi + S + kappa n/kappa_n (x̄ - m)(x̄ - m)'. Predictive: D-variate Student-t with nu_n - D + 1 degrees of freedom
and scale matrix Psi_n (kappa_n + 1)/(kappa_n (nu_n - D + 1)). Joint mode: mean_n and Psi_n/(nu_n + D + 2); the marginal
mode of the covariance is Psi_n/(nu_n + D + 1).
(Gelman et al. 2013, *Bayesian Data Analysis*, section 3.6; Murphy 2007, section 9.)
"""

import functools
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import Argument, DataError
from bayesgen.core.names import by_name, names_along
from bayesgen.core.program import is_abstract, static
from bayesgen.models.gaps import PatternMoments, em
from bayesgen.models.gaussian_vector import GaussianVector, full_params
from bayesgen.models.kinds import Vector
from bayesgen.models.leaf import ConjugateFamily, Hyperparameter, hyperparameter, untied
from bayesgen.models.model import revised, unchecked
from bayesgen.numerics import student
from bayesgen.numerics.monomials import Quadratic, write_quadratic_log_density
from bayesgen.numerics.pieces import patterns
from bayesgen.numerics.special import multivariate_log_gamma_ratio, namespace
from bayesgen.numerics.student_gaps import log_density_with_gaps, tail_with_gaps
from bayesgen.numerics.sums import finite

_MANY = 1000  # rows for which polynomials are worth their coefficients


@dataclass(frozen=True, eq=False)
class NormalInverseWishart(GaussianVector, ConjugateFamily):
    """Gaussian vector with a normal-inverse-Wishart prior on mean and covariance.

    Parameters
    ----------
    mean : array, shape (..., D), or mapping or Series from column to float
        Prior mean, in the units of x.
    kappa : float or array, shape (...)
        Number of rows that the prior mean is worth, > 0.
    nu : float or array, shape (...)
        Degrees of freedom, > D - 1.
    scale : array, shape (..., D, D), or DataFrame of columns by columns
        Scale matrix, symmetric positive definite, in squared units of x; the covariance has mean scale/(nu - D - 1).
    shared : bool, keyword
        If True, all classes share one covariance Σ ~ IW(nu, scale), with every class mean given it; a
        `GaussianDiscriminant` sets this. In a posterior nu and scale keep the axis of classes, with length 1:
        nu_n = nu + N for every class, N the number of rows of all.

    Examples
    --------
    >>> prior = NormalInverseWishart(mean=[0.0, 0.0], kappa=1.0, nu=4.0, scale=np.eye(2))
    >>> posterior = prior.update(prior.statistics([[1.0, 2.0], [3.0, 0.0]]))
    >>> float(posterior.nu), posterior.mean.round(3)
    (6.0, array([1.333, 0.667]))
    """

    mean: Hyperparameter = hyperparameter(rank=1)
    kappa: Hyperparameter = hyperparameter(positive=True)
    nu: Hyperparameter = hyperparameter(positive=True)
    scale: Hyperparameter = hyperparameter(rank=2)
    shared: bool = static(default=False, kw_only=True)  # type: ignore[misc]  # a field, not a class variable

    def __post_init__(self):
        super().__post_init__()
        dim = self.mean.shape[-1]
        if self.scale.shape[-2:] != (dim, dim):
            raise ValueError(
                f"NormalInverseWishart: scale must end in shape ({dim}, {dim}) to fit mean of length {dim}, "
                f"got {self.scale.shape}"
            )
        if is_abstract(self.nu) or is_abstract(self.scale):
            return
        if not (self.nu > dim - 1).all():
            raise ValueError(f"NormalInverseWishart: nu must exceed D - 1 = {dim - 1}, got {self.nu.min():g}")
        lopsided = np.abs(self.scale - self.scale.mT)
        if (lopsided > 1e-8 * np.abs(self.scale).max(initial=0)).any():
            raise ValueError("NormalInverseWishart: scale must be symmetric")
        try:
            np.linalg.cholesky(self.scale)
        except np.linalg.LinAlgError:
            raise ValueError("NormalInverseWishart: scale must be positive definite") from None

    @classmethod
    def from_guess(cls, mean, sd, rows: float, correlation=None) -> "NormalInverseWishart":
        """Return the prior of an expert who guesses mean and sd of every column, worth ``rows`` > 0 rows.

        The mean of the covariance has variances sd² and the guessed correlations, none by default. Each column alone
        has the prior of `NormalInverseGamma.from_guess`.

        Parameters
        ----------
        mean, sd : array_like, shape (D,), or mapping or Series from column to float
            Guesses in the units of the columns.
        rows : float
            Number of rows that both guesses are worth.
        correlation : array_like, shape (D, D), or DataFrame of columns by columns, optional
            Correlations of the columns, positive definite.

        Examples
        --------
        >>> NormalInverseWishart.from_guess(mean=[120, 80], sd=[10, 5], rows=20).nu
        array(23.)
        """
        given = {"mean": mean, "sd": sd, "correlation": np.eye(len(mean)) if correlation is None else correlation}
        names = next((axis for value in given.values() for axis in names_along(value) if axis is not None), None)
        mean, sd, correlation = (
            np.asarray(by_name(name, value, names, names, expected="one entry for each of the columns"), float)
            for name, value in given.items()
        )
        scale = rows * correlation * np.outer(sd, sd)
        names = None if names is None else tuple(names)
        return NormalInverseWishart(mean, rows, rows + len(mean) + 1, scale, names=names)

    @classmethod
    def weak(cls, statistics) -> Self:
        """Return the default prior: the data's location and within-class scale, no correlation; nu = 3D."""
        mean, variance, _ = statistics.pooled
        dim = len(mean)
        scale = (2 * dim - 1) * np.diag(variance)
        return unchecked(cls, mean=mean, kappa=np.array(0.01), nu=np.array(3.0 * dim), scale=scale)

    @property
    def dof(self):
        """Degrees of freedom of the predictive Student-t, nu - D + 1."""
        return self.nu - self.mean.shape[-1] + 1

    @property
    def predictive_scale(self):
        """Scale matrix of the predictive Student-t."""
        return self.scale * ((self.kappa + 1) / (self.kappa * self.dof))[..., None, None]

    # -- the program -------------------------------------------------------------------------------------------------
    # Arguments are valid by construction: NumPyro's validation of a triangle compiles dozens of programs, 1 s.

    def parameters(self):
        cholesky = _sample_cholesky(self.nu, self.scale)
        return _with_covariance(self._sample_mean(cholesky), cholesky)

    def _sample_mean(self, cholesky):
        spread = cholesky / program.jnp.sqrt(self.kappa)[..., None, None]
        normal = program.dist.MultivariateNormal(self.mean, scale_tril=spread, validate_args=False)
        return program.numpyro.sample("mean", normal)

    def predictive(self):
        return program.dist.MultivariateStudentT(
            self.dof, self.mean, program.jnp.linalg.cholesky(program.jnp.asarray(self.predictive_scale))
        )

    # -- the algebra -------------------------------------------------------------------------------------------------

    def _tie(self, increments, event: int = 0):
        """Sum over the classes, whose axis has ``event`` axes after it and stays, where they share a covariance."""
        return increments.sum(-1 - event, keepdims=True) if self.shared else increments

    def has_closed_form(self, statistics):
        return not isinstance(statistics, PatternMoments)

    def update(self, statistics) -> Self:
        """Return the posterior, computed by steps from the prior so that offsets do not cancel."""
        if not self.has_closed_form(statistics):
            raise DataError(
                "rows are partly missing: a full covariance then has no exact posterior; use ",
                Argument("inference", "map"),
                " or ",
                Argument("inference", "nuts", "'nuts'"),
                Argument("covariance", "diagonal", ", or a diagonal or isotropic covariance"),
                feature=statistics.gaps[0],
            )
        n, delta = statistics.n, statistics.mean - self.mean
        kappa = self.kappa + n
        between = (self.kappa * n / kappa)[..., None, None] * delta[..., :, None] * delta[..., None, :]
        mean = self.mean + (n / kappa)[..., None] * delta
        nu, scale = self.nu + self._tie(n), self.scale + self._tie(statistics.scatter + between, 2)
        return revised(self, mean=mean, kappa=kappa, nu=nu, scale=scale)

    def log_evidence_terms(self, statistics):
        """Return the log evidence of each class.

        It is the log of π^(-nD/2) (kappa/kappa_n)^(D/2) |Psi|^(nu/2)/|Psi_n|^(nu_n/2) Γ_D(nu_n/2)/Γ_D(nu/2).
        """
        p, dim = self.update(statistics), self.mean.shape[-1]
        xp = namespace(p.mean, p.scale)
        means = -0.5 * dim * (xp.log1p(statistics.n / self.kappa) + statistics.n * np.log(np.pi))
        before, after = xp.linalg.slogdet(self.scale)[1], xp.linalg.slogdet(p.scale)[1]
        rows = self._tie(statistics.n)
        scales = 0.5 * (self.nu * (before - after) - rows * after)
        return self._tie(means) + scales + multivariate_log_gamma_ratio(self.nu, rows, dim)

    def marginal(self, columns) -> Self:
        """Return the model of d of the columns, whose block of the covariance has D - d fewer degrees of freedom."""
        columns = np.asarray(columns)
        fewer = self.mean.shape[-1] - len(columns)
        block = self.scale[..., columns[:, None], columns]
        return revised(self, mean=self.mean[..., columns], nu=self.nu - fewer, scale=block)

    def _shaped(self, x):
        x = super()._shaped(x)
        if x.shape[-1] != self.mean.shape[-1]:
            raise DataError(f"rows have {x.shape[-1]} entries where the prior mean has {self.mean.shape[-1]}")
        return x

    def _fast_predictive(self, x):
        """Return the log density of the Student-t; gaps leave its marginal t with the same degrees of freedom."""
        x = self._shaped(x)
        if finite(x):
            density = np.empty((len(self._flat[0]), len(x)))
            self._write_log_density(density, x)
        else:
            if np.isinf(x).any():
                self.check(x)  # raises, and names the entry
            density = log_density_with_gaps(x, *self._flat)
        return density.T.reshape(len(x), *self.batch_shape)

    def _write_log_density(self, result, x):
        """Write the log density of rows without gaps to ``result`` (groups, n)."""
        if self._once is not None and student.write_shared_log_density(result, x, self._once):
            return
        if len(x) >= _MANY and self._quadratic is not None:
            write_quadratic_log_density(result, x, self._quadratic, self._flat[0], self.whitener)
        else:
            student.write_log_density(result, x, self._flat[0], self.whitener)

    def density(self, params=None):
        if params is not None:
            return super().density(params)
        return Vector(self.mean, self.predictive_scale, self.dof, self.kappa, tied=self.shared)

    @functools.cached_property
    def _flat(self):
        """Location, scale matrix and degrees of freedom of the predictive of all groups, on one axis."""
        return self.density().flat

    def tail_probability(self, x):
        """Return the tail of the Student-t of the observed entries; 1 where there is none."""
        x = self.check(x)
        return tail_with_gaps(x, *self._flat).T.reshape(len(x), *self.batch_shape)

    @functools.cached_property
    def whitener(self):
        """Whitener of rows without gaps: dof times the predictive's scale matrix is scale times 1 + 1/kappa."""
        dim, each = self.mean.shape[-1], np.zeros(self.batch_shape)
        whitener = student.Whitener.of(np.linalg.cholesky(self.scale), 1 + 1 / self.kappa + each, self.dof + each, dim)
        return student.Whitener(
            whitener.matrix.reshape(-1, dim, dim), whitener.level.reshape(-1), whitener.power.reshape(-1)
        )

    @functools.cached_property
    def _quadratic(self):
        """Polynomials of many rows without gaps, where there are many groups of few columns; else None."""
        return Quadratic.of(self._flat[0], self.whitener)

    @functools.cached_property
    def _once(self):
        """Whitener of rows for all classes at once, where they share a covariance; else None."""
        dim, groups = self._flat[0].shape[1], len(self._flat[0])
        if not self.shared or groups == 1 or self.scale.size > dim * dim:
            return None
        root = np.linalg.cholesky(self.scale.reshape(dim, dim))
        unit = np.broadcast_to(1 + 1 / self.kappa, self.batch_shape).reshape(groups, 1)
        return student.SharedWhitener.of(self._flat[0], root, unit, self.dof.reshape(1))

    def _row_evidence(self, x):
        """Return evidences of single rows, by marginal models for gaps."""
        x, result = self.check(x), program.jnp.zeros((len(x), *self.batch_shape))
        for seen, rows in patterns(~np.isnan(x)):
            if len(seen):
                evidence = super(NormalInverseWishart, self.marginal(seen))._row_evidence(x[np.ix_(rows, seen)])
                result = result.at[rows].set(evidence)
        return result

    def expected(self):
        """Return the means of mean and covariance, the latter scale / (nu - D - 1), infinite where nu <= D + 1."""
        dim = self.mean.shape[-1]
        spare = (self.nu - dim - 1)[..., None, None]
        covariance = np.where(spare > 0, self.scale / np.where(spare > 0, spare, 1.0), np.inf)
        return {"mean": np.broadcast_to(self.mean, (*self.batch_shape, dim)), "covariance": self._squeeze(covariance)}

    def mode(self):
        """Return the joint mode of (means, covariance): scale / (nu + D + 1 + number of means tied to it)."""
        dim, means = self.mean.shape[-1], self._tie(np.ones(self.batch_shape))
        return self._peak(self.nu + dim + 1 + means)

    def marginal_mode(self):
        """Return the modes of the marginal densities: with the means integrated out, scale / (nu + D + 1)."""
        return self._peak(self.nu + self.mean.shape[-1] + 1)

    def _peak(self, divisor):
        mean = np.broadcast_to(self.mean, (*self.batch_shape, self.mean.shape[-1]))
        return full_params(mean, self._squeeze(self.scale / divisor[..., None, None]))

    def _squeeze(self, matrix):
        """Drop the axis of classes from a shared covariance."""
        return matrix[..., 0, :, :] if self.shared else matrix

    def map(self, statistics):
        if isinstance(statistics, PatternMoments):
            return em(self, statistics, lambda complete: self.update(complete).mode())
        return self.update(statistics).mode()

    def log_abs_det_jacobian(self, params):
        """Return log |dL/dΣ| = -Σ_i (D - i + 1) log L_ii - D log 2, i = 1..D.

        The prior is sampled in the Cholesky factor L.
        """
        xp, dim = namespace(params["cholesky"]), self.mean.shape[-1]
        log_diagonal = xp.log(xp.diagonal(params["cholesky"], axis1=-2, axis2=-1))
        return -(log_diagonal * np.arange(dim, 0, -1) + np.log(2)).sum()

    def sample_parameters(self, rng, size=()):
        """Draw exactly by Bartlett's decomposition.

        M'M ~ Wishart(nu, I) with M lower triangular; then L M⁻¹ is a factor of Σ.
        """
        dim = self.mean.shape[-1]
        shape = (*size, *self.batch_shape)
        once = (*size, *np.broadcast_shapes(self.nu.shape, self.scale.shape[:-2])) if self.shared else shape
        M = np.tril(rng.standard_normal((*once, dim, dim)), -1)
        diagonal = np.arange(dim)
        M[..., diagonal, diagonal] = np.sqrt(rng.chisquare(self.nu[..., None] + diagonal - dim + 1, (*once, dim)))
        cholesky = np.linalg.cholesky(self.scale) @ student.triangular_inverse(M)
        noise = (cholesky @ rng.standard_normal((*shape, dim, 1)))[..., 0]
        mean = self.mean + noise / np.sqrt(self.kappa)[..., None]
        cholesky = self._squeeze(cholesky)
        return {"mean": mean, "covariance": cholesky @ cholesky.mT, "cholesky": cholesky}

    # -- where classes share the covariance --------------------------------------------------------------------------

    def for_classes(self, groups):
        """Return the prior with a mean for every class, and a shared covariance once."""
        if not self.shared:
            return super().for_classes(groups)
        dim, xp = self.mean.shape[-1], namespace(self.mean, self.kappa)
        mean, kappa = xp.broadcast_to(self.mean, (groups, dim)), xp.broadcast_to(self.kappa, (groups,))
        nu, scale = self.nu.reshape(1), self.scale.reshape(1, dim, dim)
        return replace(self, mean=mean, kappa=kappa, nu=nu, scale=scale, per_class=True)

    def latents(self, groups=None, name=""):
        """Sample a shared covariance once, outside the plate of classes, and the means given it."""
        if not self.shared:
            return super().latents(groups, name)
        cholesky = _sample_cholesky(self.nu.reshape(()), self.scale.reshape(self.scale.shape[-2:]))
        with self.plates(groups, name):
            mean = self._sample_mean(cholesky[..., None, :, :])
        return _with_covariance(mean, cholesky)


def log_predictive_of(model, y) -> np.ndarray:
    """Return the log density of rows under the groups of a model that is kept, (F, n).

    For one prediction polynomials pay from a thousand rows on; of a model that is kept they are there.
    """
    if isinstance(model, NormalInverseWishart) and not model.shared and model._quadratic is not None and finite(y):
        result = np.empty((len(model._flat[0]), len(y)))
        write_quadratic_log_density(result, y, model._quadratic, model._flat[0], model.whitener)
        return result
    density: Any = model.log_predictive(y)
    return density.reshape(len(y), -1).T


def _sample_cholesky(nu, scale) -> Any:
    root = program.jnp.linalg.cholesky(scale)
    return program.numpyro.sample(
        "cholesky", program.dist.InverseWishartCholesky(nu, scale_tril=root, validate_args=False)
    )


def _with_covariance(mean, cholesky):
    """Return the parameters, with the covariance recorded beside its factor."""
    covariance = program.numpyro.deterministic("covariance", cholesky @ cholesky.mT)
    return {"mean": mean, "covariance": covariance, "cholesky": cholesky}


@untied.register
def _(leaf: NormalInverseWishart) -> NormalInverseWishart:
    return revised(leaf, shared=False)
