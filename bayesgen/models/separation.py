r"""The separation strategy: independent priors on means, standard deviations and correlations.

.. math:: \mu_j \sim N(m, s_m^2), \quad \sigma_j \sim \mathrm{HalfNormal}(s), \quad R \sim \mathrm{LKJ}(\eta), \quad
   \Sigma = \mathrm{diag}(\sigma) R\, \mathrm{diag}(\sigma)

These priors are not conjugate: NUTS and MAP, still on the sufficient statistics. MAP is the mode in (μ, σ, R), with the
LKJ prior a density on R. (Barnard, McCulloch and Meng 2000, *Statistica Sinica* 10; Lewandowski, Kurowicka and Joe
2009.)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core import program
from bayesgen.core.program import static
from bayesgen.models.gaussian import Gaussian
from bayesgen.models.gaussian_vector import GaussianVector
from bayesgen.models.model import Hyperparameter, Hyperparameters, hyperparameter
from bayesgen.numerics.special import namespace


@dataclass(frozen=True, eq=False)
class SeparationPrior(Hyperparameters):
    """A prior of a Gaussian discriminant on means, standard deviations and correlations, in the columns' units.

    Parameters
    ----------
    mean, mean_sd : float, array of shape (D,), or mapping or Series from column to float
        Every mean is Normal(mean, mean_sd).
    scale : float, array of shape (D,), or mapping or Series from column to float
        Every standard deviation is HalfNormal(scale).
    eta : float
        Concentration of the LKJ prior on the correlation matrix; 1 is uniform.

    Examples
    --------
    >>> from bayesgen.models import DirichletCategorical, GaussianDiscriminant
    >>> prior = SeparationPrior(mean=[0.0, 0.0], mean_sd=10.0, scale=5.0)
    >>> model = GaussianDiscriminant(DirichletCategorical(1.0, 2), prior, shared=True)
    """

    mean: Hyperparameter = hyperparameter(0.0)
    mean_sd: Hyperparameter = hyperparameter(2.0, positive=True)
    scale: Hyperparameter = hyperparameter(1.0, positive=True)
    eta: Hyperparameter = hyperparameter(2.0, positive=True)
    names: Any = static(default=None, kw_only=True)

    def over_columns(self):
        """Return mean, mean_sd and scale as arrays of one shape."""
        return np.broadcast_arrays(self.mean, self.mean_sd, self.scale)


@dataclass(frozen=True, eq=False)
class SeparationFull(GaussianVector):
    """Gaussian vectors under `SeparationPrior`, the covariance per class or shared."""

    mean: Hyperparameter = hyperparameter(rank=1)
    mean_sd: Hyperparameter = hyperparameter(rank=1, positive=True)
    scale: Hyperparameter = hyperparameter(rank=1, positive=True)
    eta: Hyperparameter = hyperparameter(positive=True)
    shared: bool = static(default=False, kw_only=True)  # type: ignore[misc]  # a field, not a class variable

    site_dims = {**GaussianVector.site_dims, "sd": ("feature",), "correlation_cholesky": ("feature", "feature2")}

    def parameters(self):
        return self._spread() | self._mean()

    def latents(self, groups=None, name=""):
        if not self.shared:
            return super().latents(groups, name)
        spread = self._spread()
        with self.plates(groups, name):
            return spread | self._mean()

    def _spread(self):
        numpyro, dist, dim = program.numpyro, program.dist, self.mean.shape[-1]
        sd: Any = numpyro.sample("sd", dist.HalfNormal(self.scale).to_event(1))
        factor: Any = numpyro.sample("correlation_cholesky", dist.LKJCholesky(dim, self.eta)) if dim > 1 else 1.0
        cholesky = numpyro.deterministic("cholesky", sd[..., None] * factor)
        return {"covariance": numpyro.deterministic("covariance", cholesky @ cholesky.mT), "cholesky": cholesky}

    def _mean(self):
        return {"mean": program.numpyro.sample("mean", program.dist.Normal(self.mean, self.mean_sd).to_event(1))}

    def log_abs_det_jacobian(self, params):
        """Return log |dL/dR| = -Σ_i (D - i) log L_ii, L the Cholesky factor of the correlation matrix R."""
        cholesky, dim = params["cholesky"], self.mean.shape[-1]
        xp = namespace(cholesky)
        diagonal = xp.diagonal(cholesky, axis1=-2, axis2=-1) / xp.sqrt((cholesky**2).sum(-1))
        return -(xp.log(diagonal) * np.arange(dim - 1, -1, -1)).sum()


@dataclass(frozen=True, eq=False)
class SeparationDiagonal(Gaussian):
    """Independent Gaussian features under `SeparationPrior`, the variances per class or shared."""

    mean: Hyperparameter = hyperparameter()
    mean_sd: Hyperparameter = hyperparameter(positive=True)
    scale: Hyperparameter = hyperparameter(positive=True)
    tied: tuple[str, ...] = static(default=(), kw_only=True)  # type: ignore[misc]  # a field, not a class variable

    def dims(self, site, *, grouped=False):
        """Return the names of the axes of a parameter; "sd" has the axes of the variance."""
        return super().dims("variance" if site == "sd" else site, grouped=grouped)

    def parameters(self):
        return self._variance() | self._mean()

    def latents(self, groups=None, name=""):
        if not self.tied:
            return super().latents(groups, name)
        with self.plates(None, name):
            variance = self._variance()
        with self.plates(groups, name):
            return variance | self._mean()

    def _variance(self):
        sd: Any = program.numpyro.sample("sd", program.dist.HalfNormal(self.scale))
        return {"variance": program.numpyro.deterministic("variance", sd**2)}

    def _mean(self):
        return {"mean": program.numpyro.sample("mean", program.dist.Normal(self.mean, self.mean_sd))}
