r"""The separation strategy: independent priors on means, standard deviations and correlations.

.. math:: \mu_j \sim N(m, s_m^2), \quad \sigma_j \sim \mathrm{HalfNormal}(s), \quad R \sim \mathrm{LKJ}(\eta), \quad
   \Sigma = \mathrm{diag}(\sigma) R\, \mathrm{diag}(\sigma)

Not conjugate: NUTS and MAP, still on the sufficient statistics. MAP is the mode in (μ, σ, R), the LKJ prior a density
on R. (Barnard, McCulloch and Meng 2000, *Statistica Sinica* 10; Lewandowski, Kurowicka and Joe 2009.)
"""

from dataclasses import dataclass

import numpy as np

from bayesgen import program
from bayesgen.model import Model, hyperparameter
from bayesgen.models.gaussian import Gaussian
from bayesgen.models.gaussian_vector import GaussianVector
from bayesgen.program import static


@dataclass(frozen=True, eq=False)
class SeparationPrior(Model):
    """Prior of a Gaussian discriminant on means, standard deviations and correlations, in the columns' own units.

    Parameters
    ----------
    mean, mean_sd : float or array, shape (D,)
        Every mean is Normal(mean, mean_sd).
    scale : float or array, shape (D,)
        Every standard deviation is HalfNormal(scale).
    eta : float
        Concentration of the LKJ prior on the correlation matrix; 1 is uniform.

    Examples
    --------
    >>> from bayesgen.models import DirichletCategorical, GaussianDiscriminant
    >>> prior = SeparationPrior(mean=[0.0, 0.0], mean_sd=10.0, scale=5.0)
    >>> model = GaussianDiscriminant(DirichletCategorical(1.0, 2), prior, shared=True)
    """

    mean: np.ndarray = hyperparameter(0.0)
    mean_sd: np.ndarray = hyperparameter(2.0, positive=True)
    scale: np.ndarray = hyperparameter(1.0, positive=True)
    eta: np.ndarray = hyperparameter(2.0, positive=True)

    def leaf(self, covariance: str, shared: bool):
        """Return the leaf for a structure of the covariance, "full" or "diagonal"."""
        mean, mean_sd, scale = np.broadcast_arrays(self.mean, self.mean_sd, self.scale)
        if covariance == "full":
            return SeparationFull(mean, mean_sd, scale, self.eta, shared)
        return SeparationDiagonal(mean, mean_sd, scale, ("class",) if shared else ())


@dataclass(frozen=True, eq=False)
class SeparationFull(GaussianVector):
    """Gaussian vectors under `SeparationPrior`, the covariance per class or shared."""

    mean: np.ndarray = hyperparameter(rank=1)
    mean_sd: np.ndarray = hyperparameter(rank=1, positive=True)
    scale: np.ndarray = hyperparameter(rank=1, positive=True)
    eta: np.ndarray = hyperparameter(positive=True)
    shared: bool = static(default=False)  # type: ignore[misc]

    site_dims = GaussianVector.site_dims | {"sd": ("feature",), "correlation_cholesky": ("feature", "feature2")}

    def latents(self, groups=None, name="", per_class=False):
        """Sample means by class; standard deviations and correlations by class or once."""
        numpyro, dist = program.numpyro, program.dist
        dim = self.mean.shape[-1]

        def spread():
            sd = numpyro.sample("sd", dist.HalfNormal(self.scale).to_event(1))
            if dim == 1:
                return sd[..., None]
            root = numpyro.sample("correlation_cholesky", dist.LKJCholesky(dim, self.eta))
            return sd[..., None] * root

        cholesky = spread() if self.shared else None
        with self.plates(groups, name, per_class):
            cholesky = spread() if cholesky is None else cholesky
            mean = numpyro.sample("mean", dist.Normal(self.mean, self.mean_sd).to_event(1))
        cholesky = numpyro.deterministic("cholesky", cholesky)
        covariance = numpyro.deterministic("covariance", cholesky @ cholesky.mT)
        return {"mean": mean, "covariance": covariance, "cholesky": cholesky}

    def log_abs_det_jacobian(self, params):
        """Log |dL/dR| = -Σ_i (D - i) log L_ii, L the Cholesky factor of the correlation matrix R."""
        xp, dim, cholesky = params["cholesky"].__array_namespace__(), self.mean.shape[-1], params["cholesky"]
        diagonal = xp.diagonal(cholesky, axis1=-2, axis2=-1) / xp.sqrt((cholesky**2).sum(-1))
        return -(xp.log(diagonal) * np.arange(dim - 1, -1, -1)).sum()


@dataclass(frozen=True, eq=False)
class SeparationDiagonal(Gaussian):
    """Independent Gaussian features under `SeparationPrior`, the variances per class or shared."""

    mean: np.ndarray = hyperparameter()
    mean_sd: np.ndarray = hyperparameter(positive=True)
    scale: np.ndarray = hyperparameter(positive=True)
    tied: tuple[str, ...] = static(default=())  # type: ignore[misc]

    def dims(self, site, *, grouped=False, per_class=False):
        """Names of the axes of a parameter; "sd" has those of the variance."""
        return super().dims("variance" if site == "sd" else site, grouped=grouped, per_class=per_class)

    def latents(self, groups=None, name="", per_class=False):
        """Sample means by class; standard deviations by class or once."""
        numpyro, dist = program.numpyro, program.dist
        with self.plates(None if "class" in self.tied else groups, name, per_class):
            sd = numpyro.sample("sd", dist.HalfNormal(self.scale))
        with self.plates(groups, name, per_class):
            mean = numpyro.sample("mean", dist.Normal(self.mean, self.mean_sd))
        return {"mean": mean, "variance": numpyro.deterministic("variance", sd**2)}
