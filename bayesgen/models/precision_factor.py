r"""The normal-inverse-Wishart prior as NUTS samples it: of whitened rows, and in a factor of the precision.

With Σ⁻¹ = U'U, U lower triangular, U_jj = exp r_jj and U_ij = r_ij below the diagonal,

.. math:: \log p(r) = \sum_j (\nu - D + j)\, r_{jj} - \tfrac12 \mathrm{tr}(U \Psi U'), \quad
   \log p(u \mid r) = - \tfrac{\kappa}{2} |u/\sqrt{\kappa_n} - Um|^2, \quad j = 1, \dots, D,

where u = sqrt(κ_n) U μ, of rows whose posterior mean is 0, is N(0, I) a posteriori and independent of r: however little
is known of a covariance, it makes no funnel of the means. Both are up to a constant: Σ⁻¹ is Wishart(nu, Ψ⁻¹),
|dΣ⁻¹/dU| = 2^D Π U_jj^j and dU_jj/dr_jj = U_jj (Muirhead 1982, *Aspects of Multivariate Statistical Theory*, theorem
2.1.9, with the columns in reverse order). There are products and nothing to solve, so XLA can make one kernel of the
leapfrog steps (`bayesgen.posterior.compiled.one_kernel`): of 4 columns a step takes a quarter of the time that it takes
in the factor of Σ, where NumPyro solves triangular systems, of 10 a third.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core import program
from bayesgen.models.coordinates import require_shape
from bayesgen.models.hyperparameters import Hyperparameter, hyperparameter
from bayesgen.models.moments import Moments
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart
from bayesgen.numerics.special import namespace
from bayesgen.numerics.student import triangular_inverse

_SMALL = 20  # columns


@dataclass(frozen=True, eq=False)
class PrecisionFactor(NormalInverseWishart):
    """A normal-inverse-Wishart prior whose program has the sites "factor", the vectors of r, and "offset", u."""

    kappa_n: Hyperparameter = hyperparameter(1.0, positive=True)

    def latents(self, groups=None, name=""):
        """Sample r, of every class or once for all, and u; "inverse" is U, "log_diagonal" the r_jj."""
        dim = self.mean.shape[-1]
        once = _flat("factor", dim * (dim + 1) // 2)[None] if self.shared else None
        with self.plates(groups, name):
            factor = _flat("factor", dim * (dim + 1) // 2) if once is None else once
            params = {"offset": _flat("offset", dim), **_unfolded(factor, dim)}
        powers = self.nu[..., None] - dim + np.arange(1.0, dim + 1)
        density = (params["log_diagonal"] * powers).sum() - 0.5 * _traces(params, self.scale).sum()
        means = -0.5 * self.kappa * self._squares(params, self.mean)
        program.numpyro.factor("prior", density + means.sum())
        return params

    def log_likelihood(self, params, statistics):
        """Log p(all rows | params), from their `Moments`, but for the constant (2π)^(-nD/2)."""
        rows = statistics.n * (params["log_diagonal"].sum(-1) - 0.5 * self._squares(params, statistics.mean))
        return rows.sum() - 0.5 * _traces(params, self.tie(statistics.scatter)).sum()

    def _squares(self, params, point):
        """|U(mean - point)|² of every mean."""
        z = params["offset"] / self.kappa_n[..., None] ** 0.5 - (params["inverse"] @ point[..., None])[..., 0]
        return (z * z).sum(-1)

    def sample_parameters(self, rng, size=()):
        """Exact draws of the two sites."""
        params = super().sample_parameters(rng, size)
        inverse = triangular_inverse(params["cholesky"])
        every = inverse[..., None, :, :] if self.shared else inverse
        offset = self.kappa_n[..., None] ** 0.5 * (every @ params["mean"][..., None])[..., 0]
        return {"offset": offset, "factor": _folded(inverse)}

    def factors(self, params):
        """Cholesky factors of the covariance, of draws of the two sites."""
        return triangular_inverse(_unfolded(params["factor"], self.mean.shape[-1])["inverse"])


def whitened(model: NormalInverseWishart, statistics: Moments):
    """The posterior of rows F⁻¹(x - c), where c and FF' are the posterior mean and scale/nu; see `Model.whitened`.

    Their prior is NIW(F⁻¹(mean - c), kappa, nu, F⁻¹ scale F⁻ᵀ). Of 4 columns with condition number 100 it takes NUTS
    from 15 leapfrog steps a draw to 7.
    """
    posterior = model.update(statistics)
    require_shape("covariance", posterior.dof / 2, ("class",) if posterior.shared else ())
    centre, factor = posterior.mean, np.linalg.cholesky(posterior.scale / posterior.nu[..., None, None])
    inverse = np.tril(np.linalg.inv(factor))

    def moved(mean):
        return (inverse @ (mean - centre)[..., None])[..., 0]

    def turned(matrix):
        both = inverse @ matrix @ inverse.mT
        return (both + both.mT) / 2

    def restore(params):
        root = sampled.factors(params)
        cholesky, every = model.squeeze(factor) @ root, root[..., None, :, :] if model.shared else root
        mean = centre + (factor @ every @ params["offset"][..., None])[..., 0] / posterior.kappa[..., None] ** 0.5
        return {"mean": mean, "covariance": cholesky @ cholesky.mT, "cholesky": cholesky}

    grouped = centre.ndim > model.mean.ndim and not model.per_class
    prior = model.for_classes(len(centre)) if grouped else model
    own = Moments(statistics.n, moved(statistics.mean), turned(statistics.scatter))
    kept = {
        "kappa": prior.kappa,
        "nu": prior.nu,
        "shared": prior.shared,
        "per_class": prior.per_class,
        "kappa_n": posterior.kappa,
    }
    sampled = PrecisionFactor(moved(prior.mean), scale=turned(prior.scale), **kept)
    return sampled, own, restore


def _flat(site, size) -> Any:
    """Sample a vector of real numbers, whose density is a factor of the program."""
    real = program.dist.constraints.real_vector
    return program.numpyro.sample(site, program.dist.ImproperUniform(real, (), (size,)))


def _places(r, dim):
    """Entries (..., D (D + 1)/2) in a square (..., D, D), each once on or below the diagonal: no scatter is needed."""
    both = namespace(r).concatenate([r[..., dim:], r[..., ::-1]], axis=-1)
    return both.reshape(*r.shape[:-1], dim, dim)


def _unfolded(r, dim):
    """U and the logs of its diagonal."""
    square, eye = _places(r, dim), np.eye(dim)
    log_diagonal = (square * eye).sum(-1)
    diagonal = namespace(r).exp(log_diagonal)[..., None] * eye
    return {"inverse": square * np.tri(dim, k=-1) + diagonal, "log_diagonal": log_diagonal}


def _folded(inverse):
    """The vectors r of U."""
    dim = inverse.shape[-1]
    rows, columns = np.tril_indices(dim)
    raw, diagonal = inverse.copy(), np.arange(dim)
    raw[..., diagonal, diagonal] = np.log(raw[..., diagonal, diagonal])
    r = np.empty((*raw.shape[:-2], len(rows)))
    r[..., _places(np.arange(len(rows)), dim)[rows, columns]] = raw[..., rows, columns]
    return r


def _traces(params, matrix):
    """Traces of U A U', A a symmetric matrix; the derivative along dU is 2 tr(UA dU'), of the same product UA.

    Without that rule the gradient has two products more: a step of 10 columns then takes a fifth longer.
    """

    def trace(inverse):
        return (_product(inverse, matrix) * inverse).sum((-2, -1))

    def rule(primals, tangents):
        (inverse,), (along,) = primals, tangents
        product = _product(inverse, matrix)
        return (product * inverse).sum((-2, -1)), 2 * (product * along).sum((-2, -1))

    result = program.jax.custom_jvp(trace)
    result.defjvp(rule)
    return result(params["inverse"])


def _product(inverse, matrix):
    """UA; in one kernel a small product takes half the time written out."""
    if inverse.shape[-1] <= _SMALL:
        return (inverse[..., None] * matrix[..., None, :, :]).sum(-2)
    return inverse @ matrix
