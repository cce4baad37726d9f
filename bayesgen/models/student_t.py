r"""Features and vectors with outliers: Student's t about the mean of a Gaussian leaf, a scale mixture.

Every row has a precision u of its own, by which the variance of its Gaussian is divided:

.. math:: (\mu, \Sigma) \sim p(\mu, \Sigma), \quad \nu - 1 \sim \mathrm{Gamma}(a, \text{rate } b), \quad
   u_i \mid \nu \sim \mathrm{Gamma}(\nu/2, \nu/2), \quad x_i \mid u_i \sim N_D(\mu, \Sigma/u_i)

with the normal-inverse-gamma prior of (μ, σ²), or the normal-inverse-Wishart one of (μ, Σ). With u integrated out a row
has the density of Student's t, which NUTS and Laplace take: u is no latent (`docs/mathematics/student-t.md`). ν is
known or learned, by default under Gamma(2, rate .1), of mean 20 (Juárez and Steel 2010, *Journal of Business & Economic
Statistics* 28), moved by 1: with ν < 1/(n - 1) a single row has a likelihood without bound.

**ML and MAP** go by ECME (`bayesgen.models.ecme`).

**Missing entries** are integrated out: the entries that are there are a t of their block of Σ with the same ν. Given
them the others are a t with ν + d degrees of freedom (`bayesgen.numerics.student_gaps`).
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import DataError
from bayesgen.core.program import static
from bayesgen.models import ecme
from bayesgen.models.ecme import LEAST
from bayesgen.models.gaussian import NormalInverseGamma, tie
from bayesgen.models.gaussian_vector import inverse_triangular
from bayesgen.models.model import Hyperparameter, hyperparameter, of_part, revised
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart
from bayesgen.models.row_leaf import RowLeaf, RowsByGroup
from bayesgen.numerics.special import log1p_sum_squares, log_gamma_ratio, namespace
from bayesgen.numerics.student import seen_root
from bayesgen.numerics.student_gaps import log_density_with_gaps


@dataclass(frozen=True, eq=False)
class StudentT(RowLeaf):
    """Student's t about a Gaussian leaf: for numbers, or vectors, with outliers.

    Parameters
    ----------
    gaussian : NormalInverseGamma or NormalInverseWishart
        Prior of the mean and of the variance of numbers, or of the covariance of vectors: those of the Gaussian that
        this is for infinitely many degrees of freedom. Parameters have its names, "mean", "variance", "covariance".
    dof_shape, dof_rate : float
        Gamma prior of the degrees of freedom less 1, > 0.
    dof : float, optional
        Known degrees of freedom, > 0; by default they are learned, by feature and class.

    Examples
    --------
    >>> import bayesgen as bg
    >>> leaf = StudentT(NormalInverseGamma(mean=0.0, kappa=0.01, alpha=1.0, beta=1.0), dof=4.0)
    >>> rows = [0.1, -0.4, 0.3, 0.2, -0.1, 50.0]
    >>> round(float(bg.fit(leaf, rows, "map").params["mean"]), 2)
    0.03
    """

    gaussian: Any
    dof_shape: Hyperparameter = hyperparameter(2.0, positive=True)
    dof_rate: Hyperparameter = hyperparameter(0.1, positive=True)
    dof: float | None = static(default=None, kw_only=True)

    takes_gaps = learns_unlabelled = True

    def __post_init__(self):
        if not isinstance(self.gaussian, NormalInverseGamma | NormalInverseWishart):
            raise TypeError(
                "StudentT: gaussian must be a NormalInverseGamma, or a NormalInverseWishart of vectors, got "
                f"{self.gaussian!r:.100}"
            )
        super().__post_init__()
        for name in ("dof_shape", "dof_rate"):
            if getattr(self, name).ndim:
                raise ValueError(f"StudentT: {name} must be a number, the same for all features")
        if self.dof is not None:
            if isinstance(self.dof, bool) or not isinstance(self.dof, int | float | np.number):
                raise TypeError(f"StudentT: dof must be a number > 0, or None to learn it, got {self.dof!r}")
            if not 0 < self.dof < np.inf:
                raise ValueError(f"StudentT: dof must be finite and > 0, got {self.dof:g}; of a Gaussian take its leaf")

    @classmethod
    def from_guess(cls, mean, sd, rows: float, dof: float | None = None) -> Self:
        """Return the prior of an expert who guesses mean and sd of the rows that are no outliers, worth ``rows`` rows.

        For vectors give `NormalInverseWishart.from_guess` to the leaf.

        >>> StudentT.from_guess(mean=120, sd=10, rows=20).gaussian
        NormalInverseGamma(mean=120, kappa=20, alpha=11, beta=1000)
        """
        return cls(NormalInverseGamma.from_guess(mean, sd, rows), dof=dof)

    @classmethod
    def weak(cls, statistics: RowsByGroup) -> Self:
        """Return the default prior of numbers: that of the Gaussian, at medians in place of means."""
        return cls(NormalInverseGamma.weak(statistics))

    @classmethod
    def weak_vector(cls, statistics: RowsByGroup) -> Self:
        """Return the default prior of vectors."""
        return cls(NormalInverseWishart.weak(statistics))

    def quantities(self, params, column, labels=None):
        found = self.gaussian.quantities({site: v for site, v in params.items() if site != "dof"}, column)
        found = {"mean": found["mean"], "scale": found["sd"]}
        if "dof" in params:
            dof = np.asarray(params["dof"])
            found["degrees of freedom"] = dof[:, column] if dof.ndim == 2 else dof
        return found

    def prior_of(self, column):
        known = {"dof": self.dof} if self.dof is not None else {"dof_shape": self.dof_shape, "dof_rate": self.dof_rate}
        told = ", ".join(f"{name}={program.short(value)}" for name, value in known.items())
        return f"StudentT({self.gaussian.prior_of(column)}, {told})"

    # -- shapes and names, those of the Gaussian ---------------------------------------------------------------------

    event_dim = of_part("gaussian", "event_dim")
    site_dims = of_part("gaussian", "site_dims")
    batch_shape = of_part("gaussian", "batch_shape")
    log_abs_det_jacobian = of_part("gaussian", "log_abs_det_jacobian")

    def dims(self, site, *, grouped=False):
        return super().dims(site, grouped=grouped) if site == "dof" else self.gaussian.dims(site, grouped=grouped)

    def for_columns(self, columns):
        return replace(self, gaussian=self.gaussian.for_columns(columns))

    def for_classes(self, groups):
        return replace(self, gaussian=self.gaussian.for_classes(groups), per_class=True)

    def repeated(self, columns):
        return replace(self, gaussian=self.gaussian.repeated(columns))

    def _expand(self, params):
        """Return all parameters by class, and the degrees of freedom, known or not."""
        full = self.gaussian._expand({site: value for site, value in params.items() if site != "dof"})
        mean = full["mean"]
        known = namespace(mean).full(mean.shape[: mean.ndim - self.event_dim], self.dof or np.nan, mean.dtype)
        return full | {"dof": params.get("dof", known)}

    # -- the program -------------------------------------------------------------------------------------------------

    def parameters(self):
        return {**self.gaussian.parameters(), **self._sample_dof()}

    def latents(self, groups=None, name=""):
        """Sample the parameters inside their plates; what classes share, once."""
        params = self.gaussian.latents(groups, name)
        with self.plates(groups, name):
            return {**params, **self._sample_dof()}

    def _sample_dof(self):
        if self.dof is not None:
            return {}
        dist = program.dist
        above = dist.transforms.AffineTransform(LEAST, 1.0, domain=dist.constraints.positive)
        prior = dist.TransformedDistribution(dist.Gamma(self.dof_shape, self.dof_rate), above, validate_args=False)
        return {"dof": program.numpyro.sample("dof", prior)}

    def likelihood(self, params):
        params = self._expand(params)
        if self.event_dim:
            return program.dist.MultivariateStudentT(params["dof"], params["mean"], params["cholesky"])
        return program.dist.StudentT(params["dof"], params["mean"], params["variance"] ** 0.5)

    def _density_of(self, params, x=None):
        """Return p(x | params), and its rows; of vectors with gaps a point mass carries that of what is there."""
        jnp = program.jnp
        if not self.event_dim or x is None or not (program.is_abstract(x) or np.isnan(x).any()):
            return super()._density_of(params, x)
        full, seen = self._expand(params), ~jnp.isnan(x)
        inverse, level, count = _of_pattern(full["covariance"], full["dof"], seen)
        z = inverse @ jnp.where(seen, x - full["mean"], 0.0)[..., None]
        density = _log_density(level, full["dof"], count, z[..., 0])
        rows = jnp.where(seen, x, 0.0)
        everywhere = jnp.broadcast_to(rows, (*density.shape, rows.shape[-1]))  # a class that is enumerated has an axis
        return program.dist.Delta(everywhere, log_density=density, event_dim=1), rows

    # -- densities ---------------------------------------------------------------------------------------------------

    def log_density(self, params, x):
        mean, dof = params["mean"], params["dof"]
        xp = namespace(mean)
        if not self.event_dim:
            level = log_gamma_ratio(dof / 2, 0.5) - 0.5 * xp.log(np.pi * dof * params["variance"])
            z = (x - mean) / xp.sqrt(dof * params["variance"])
            return level - (dof + 1) / 2 * (log1p_sum_squares(z, ()) if xp is np else xp.log1p(z * z))
        cholesky = params["cholesky"][..., 0, :, :]
        z = (x - mean) @ inverse_triangular(cholesky).mT
        return _log_density(_level(cholesky, dof[..., 0], x.shape[-1])[..., None], dof, x.shape[-1], z)

    def log_likelihood(self, params, statistics):
        if not self.event_dim or len(statistics.patterns) == 1:
            return super().log_likelihood(params, statistics)
        full, pattern = self._expand(params), statistics.pattern
        xp, axis = namespace(full["mean"]), pattern.ndim - 1
        covariance, dof = full["covariance"][..., None, :, :], full["dof"][..., None]
        inverse, level, count = _of_pattern(covariance, dof, statistics.patterns)  # (classes..., patterns, ...)
        whiten = xp.take_along_axis(inverse, pattern[..., None, None], axis=axis)
        away = xp.where(statistics.seen, statistics.x - full["mean"][..., None, :], 0.0)
        z = (whiten @ away[..., None])[..., 0]
        density = _log_density(xp.take_along_axis(level, pattern, axis=axis), dof, count[pattern], z)
        return (statistics.weight * density).sum()

    def log_likelihood_rows(self, params, x):
        if not self.event_dim:
            return super().log_likelihood_rows(params, x)
        said = self.density(params)
        return log_density_with_gaps(x, *said.flat).reshape(*said.dof.shape, len(x))

    def density(self, params=None):
        full = self._expand(params)
        return replace(self.gaussian.density(full), dof=full["dof"])

    # -- maximum likelihood and the mode: ECME -----------------------------------------------------------------------

    def ml(self, statistics):
        settings = self._search(statistics, "ml")
        if isinstance(settings[0], ecme.Numbers):
            settings[0].refuse_ties(self.dof or LEAST)
        return ecme.search(*settings)

    def map(self, statistics):
        return ecme.search(*self._search(statistics, "map"))

    def begun(self, statistics, way: str):
        """Return the parameters after the first step towards those of `ml` or `map`, from medians."""
        settings = self._search(statistics, way)
        return ecme.advanced(*settings, ecme.begun(settings[0], self.dof))[0]

    def advanced(self, params, statistics, way: str):
        """Return the parameters after a step towards those of `ml` or `map`, ``way``, and the size of the step."""
        return ecme.advanced(*self._search(statistics, way), params)

    def _search(self, statistics, way: str):
        """Return what `ecme.search` takes."""

        def maximise(moments, lack):
            if way == "ml":
                return self.gaussian.ml(replace(moments, n=moments.n + lack))
            return self._given_precisions(moments, lack).mode()

        prior = None if way == "ml" else (float(self.dof_shape), float(self.dof_rate))
        return self._rows(statistics), self.gaussian, self.dof, maximise, prior

    def starting_draws(self, statistics, rng, size):
        """Draw from the posterior of the Gaussian given the precisions of rows at the mode."""
        try:
            params = self.map(statistics)
        except (DataError, np.linalg.LinAlgError):
            return {}
        rows, full = self._rows(statistics), self._expand(params)
        sums = rows.sums(full, full["dof"], rows.distances(full))
        draws = self._given_precisions(*sums).sample_parameters(rng, size)
        if self.dof is None:
            spread = np.exp(0.5 * rng.standard_normal((*size, *full["dof"].shape)))
            draws["dof"] = LEAST + (full["dof"] - LEAST) * spread
        return draws

    def _rows(self, statistics: RowsByGroup) -> ecme.Numbers | ecme.Vectors:
        return ecme.Vectors(statistics) if self.event_dim else ecme.Numbers(statistics)

    def _given_precisions(self, moments, lack):
        """Return the posterior of the Gaussian from sums that û weighs, and the weight that they ``lack``."""
        posterior = self.gaussian.update(moments)
        if self.event_dim:
            return revised(posterior, nu=posterior.nu + self.gaussian._tie(lack))
        return revised(posterior, alpha=posterior.alpha + tie(lack, self.gaussian.tied) / 2)


def _level(root, dof, count):
    """Return the log density at the centre, from the Cholesky factor of Σ."""
    xp = namespace(root, dof)
    log_det = xp.log(xp.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
    return log_gamma_ratio(dof / 2, count / 2) - 0.5 * count * xp.log(np.pi * dof) - log_det


def _log_density(level, dof, count, z):
    """Return the log density from whitened rows ``z`` (..., D)."""
    xp = namespace(level, dof, z)
    far = log1p_sum_squares(z / np.sqrt(dof)[..., None]) if xp is np else xp.log1p((z * z).sum(-1) / dof)
    return level - (dof + count) / 2 * far


def _of_pattern(covariance, dof, seen):
    """Return inverse roots, levels, and numbers of entries for patterns ``seen`` (..., D), by `seen_root`."""
    root, count = seen_root(covariance, seen), seen.sum(-1).astype(covariance.dtype)
    return inverse_triangular(root), _level(root, dof, count), count
