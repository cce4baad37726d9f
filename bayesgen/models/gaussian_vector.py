"""Gaussian vectors with a full covariance, under any prior: moments, densities, maximum likelihood, gaps.

Each class has a covariance, or all share one. Parameters hold it as "covariance" and its Cholesky factor "cholesky",
shape (draws..., K if per class, D, D). Missing entries are integrated out: at prediction by the marginal of the
observed entries, at fit by statistics for each pattern of missingness, so that the cost grows with the patterns, not
the rows.
"""

from typing import ClassVar

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import DataError, refuse_where
from bayesgen.models.gaps import PatternMoments, em
from bayesgen.models.gaussian import LOG_2PI
from bayesgen.models.kinds import Vector
from bayesgen.models.leaf import ExponentialFamily
from bayesgen.models.moments import Moments, grouped_moments
from bayesgen.numerics.pieces import CELLS, patterns
from bayesgen.numerics.special import namespace
from bayesgen.numerics.student import seen_root
from bayesgen.numerics.sums import finite


class GaussianVector(ExponentialFamily):
    """Gaussian vectors; ``params`` hold "mean", "covariance" and "cholesky"."""

    shared: ClassVar[bool] = False  # one covariance for all classes

    event_dim = 1
    site_dims = {"mean": ("feature",), "covariance": ("feature", "feature2"), "cholesky": ("feature", "feature2")}

    def _expand(self, params):
        """Give a shared covariance the axis of classes, so that it broadcasts against the mean."""
        mean = params["mean"]
        shape = (*mean.shape, mean.shape[-1])
        result = {"mean": mean}
        for site in params.keys() & {"covariance", "cholesky"}:
            value = params[site]
            value = value[..., None, :, :] if value.ndim == mean.ndim else value
            result[site] = namespace(mean).broadcast_to(value, shape)
        return result

    def dims(self, site, *, grouped=False):
        dims = super().dims(site, grouped=grouped)
        return tuple(d for d in dims if not (d == "class" and self.shared and site != "mean"))

    def likelihood(self, params):
        return program.dist.MultivariateNormal(params["mean"], scale_tril=params["cholesky"])

    def _density_of(self, params, x=None):
        """Return the normal density of what is there; a missing entry is at its mean, with variance 1/2π: density 1."""
        jnp, traced = program.jnp, program.is_abstract(x)
        if x is None or not (traced or np.isnan(x).any()):
            return self.likelihood(params), x if x is None else jnp.asarray(x)
        seen, mean, cholesky = ~jnp.isnan(x), params["mean"], params["cholesky"]

        def marginal(cholesky):
            return seen_root(cholesky @ cholesky.mT, seen, 0.5 / np.pi)

        def whole(cholesky):  # of a minibatch, say, whose gaps are not known when the program is compiled
            return jnp.broadcast_to(cholesky, np.broadcast_shapes(cholesky.shape, (*x.shape, x.shape[-1])))

        factor = program.jax.lax.cond(seen.all(), whole, marginal, cholesky) if traced else marginal(cholesky)
        likelihood = self.likelihood({"mean": jnp.where(seen, mean, 0.0), "cholesky": factor})
        return likelihood, jnp.where(seen, x, 0.0)

    def density(self, params=None):
        full = self._expand(params)
        return Vector(full["mean"], full["covariance"], root=full.get("cholesky"))

    def sufficient_statistic(self, x, about=0.0):
        """Return (1, z, z_i z_j for i <= j), z = x - about."""
        z = x - about
        rows, cols = np.triu_indices(x.shape[-1])
        return np.concatenate([np.ones((*z.shape[:-1], 1)), z, z[..., rows] * z[..., cols]], axis=-1)

    def natural_parameters(self, params, about=0.0):
        """Return (-D log(2π)/2 - log|L| - |w|²/2, P d, -P_ii/2, -P_ij), d = mean - about, w = L⁻¹d, P = L⁻ᵀL⁻¹."""
        dim = params["mean"].shape[-1]
        return _natural_parameters(params["mean"] - about, self._expand(params)["cholesky"], dim)

    def sum_rows(self, x, rows):
        """Return `Moments` with the full scatter, by group, or their `PatternMoments` where rows are partly missing.

        A row with nothing observed counts for its class alone. The sums are free of hyperparameters.
        """
        if finite(x):
            return grouped_moments(x, rows, vector=True)
        missing, parts = np.isnan(self.check(x)), {}
        there = ~missing.all(-1)
        if not missing[there].any():
            return grouped_moments(x[there], rows[there], vector=True)
        for seen, places in patterns(~missing):
            if len(seen):
                pattern = "".join("1" if j in seen else "0" for j in range(x.shape[1]))
                # Missing columns are 0 throughout, and so are their mean and scatter.
                parts[pattern] = grouped_moments(np.nan_to_num(x[places]), rows[places], vector=True)
        return PatternMoments.of(parts)

    def log_likelihood(self, params, statistics):
        """Return log p(all rows | params), the missing entries integrated out. NumPy or JAX."""
        if isinstance(statistics, Moments):
            return super().log_likelihood(params, statistics)
        m, covariance = statistics.moments, self._expand(params)["covariance"]
        seen = statistics.seen_by_group
        cholesky = seen_root(covariance, seen)
        return (_natural_parameters((params["mean"] - m.mean) * seen, cholesky, seen.sum(-1)) * m.total()).sum()

    def log_likelihood_rows(self, params, x):
        return self.row_density(params)(x)

    def row_density(self, params):
        """Return `log_likelihood_rows` as a function of rows, which keeps natural parameters by pattern of gaps."""
        full = self._expand(params)
        lead, dim = full["mean"].shape[:-1], full["mean"].shape[-1]
        mean = full["mean"].reshape(-1, lead[-1] if len(lead) > 1 else 1, dim)
        covariance = full["covariance"].reshape(*mean.shape, dim)
        known, single = {}, len(mean) == 1

        def prepare(seen):
            result, step = [], max(1, CELLS // (len(mean) * dim * dim))  # classes at a time
            for classes in (slice(k, k + step) for k in range(0, mean.shape[1], step)):
                mu, sigma = mean[:, classes, seen], covariance[:, classes, seen[:, None], seen]
                about, whiten = mu.mean(0), np.linalg.inv(np.linalg.cholesky(sigma.mean(0)))
                if single:
                    eta = np.full((len(about), 1, 1), -0.5 * len(seen) * LOG_2PI)
                else:
                    d = (whiten @ (mu - about)[..., None])[..., 0]
                    eta = _natural_parameters(d, whiten @ np.linalg.cholesky(sigma), len(seen)).swapaxes(0, 1)
                eta[..., 0] += np.log(np.diagonal(whiten, axis1=-2, axis2=-1)).sum(-1)[:, None]
                result.append((about, whiten, np.ascontiguousarray(eta)))
            return [np.concatenate(every) for every in zip(*result, strict=True)]

        def density(x):
            result = np.zeros((mean.shape[1], mean.shape[0], len(x)))  # one block for each class
            whole = finite(x)
            for seen, rows in patterns(np.ones((1, dim), bool) if whole else ~np.isnan(x)):
                if not len(seen):
                    continue
                place, entries = (slice(None), x) if whole else (rows, x[np.ix_(rows, seen)])
                if seen.tobytes() not in known:
                    known[seen.tobytes()] = prepare(seen)
                about, whiten, eta = known[seen.tobytes()]
                step = max(1, CELLS // (eta.shape[-1] * len(entries) + 1))
                for k in (slice(first, first + step) for first in range(0, len(eta), step)):
                    with np.errstate(over="ignore", invalid="ignore"):
                        z = whiten[k] @ (entries.T - about[k][..., None])
                        if single:  # a draw is whitened by itself
                            result[k][..., place] = eta[k] - 0.5 * (z * z).sum(-2, keepdims=True)
                        elif whole:
                            np.matmul(eta[k], _columns(z), out=result[k])
                        else:
                            result[k][..., place] = eta[k] @ _columns(z)
            if not finite(result):  # rows beyond 1e150 standard deviations: squares overflow, to either sign
                result[np.isnan(result)] = -np.inf
            return result.swapaxes(0, 1).reshape(*lead, len(x))

        return density

    def ml(self, statistics):
        """Return means, and covariances with divisor n (by EM where rows have gaps); raise where one is singular."""
        if isinstance(statistics, PatternMoments):
            return em(self, statistics, self.ml)
        n, dim = statistics.n, statistics.mean.shape[-1]
        refuse_where(n <= 0, "maximum likelihood does not exist: no observed row")
        scatter, count, means, noise = statistics.scatter, n, 1, statistics.resolution()
        if self.shared:
            scatter, count, means, noise = scatter.sum(-3), n.sum(-1), n.shape[-1], noise.max(-2)
        covariance = scatter / np.asarray(count)[..., None, None]
        each = covariance.reshape(-1, dim, dim), noise.reshape(-1, dim), np.ravel(count - means)
        for k, (sigma, floor, rank) in enumerate(zip(*each, strict=True)):
            place = {} if self.shared or not n.ndim else {"group": k}
            if rank < dim:
                raise DataError(
                    f"maximum likelihood does not exist: {rank:g} degrees of freedom (rows less means) for {dim} "
                    "columns; a full covariance needs at least as many",
                    **place,
                )
            variance = np.diagonal(sigma)
            for j in np.flatnonzero(variance <= floor):
                raise DataError("maximum likelihood does not exist: no two distinct values", **place, feature=int(j))
            if not independent(sigma):
                raise DataError("maximum likelihood does not exist: the columns are linearly dependent", **place)
        return full_params(statistics.mean, covariance)


def independent(scatter) -> np.ndarray:
    """Return True for each scatter matrix (..., D, D) whose columns, of variances above 0, are linearly independent."""
    dim, spread = scatter.shape[-1], np.sqrt(np.diagonal(scatter, axis1=-2, axis2=-1))
    correlation = scatter / spread[..., :, None] / spread[..., None, :]  # the product of both may leave float64
    return np.linalg.eigvalsh(correlation)[..., 0] > 8 * dim * np.finfo(float).eps


def _columns(z):
    """Return T of rows about 0, with a row for each entry of T: (..., D, n) -> (..., 1 + D + D (D + 1)/2, n)."""
    products = (z[..., i : i + 1, :] * z[..., i:, :] for i in range(z.shape[-2]))
    return np.concatenate([np.ones_like(z[..., :1, :]), z, *products], axis=-2)


def _natural_parameters(d, cholesky, dim):
    """Return the natural parameters of a Gaussian vector of ``dim`` entries at distance ``d`` from the centre of T."""
    xp = namespace(d)
    inverse = inverse_triangular(cholesky)
    precision = inverse.mT @ inverse
    w = (inverse @ d[..., None])[..., 0]
    log_det = xp.log(xp.diagonal(cholesky, axis1=-2, axis2=-1)).sum(-1)
    log_partition = -0.5 * dim * LOG_2PI - log_det - 0.5 * (w * w).sum(-1)
    rows, cols = np.triu_indices(d.shape[-1])
    quadratic = precision[..., rows, cols] * np.where(rows == cols, -0.5, -1.0)
    return xp.concatenate([log_partition[..., None], (inverse.mT @ w[..., None])[..., 0], quadratic], axis=-1)


def inverse_triangular(cholesky):
    """Return the inverse of a lower triangular matrix."""
    if namespace(cholesky) is np:
        return np.linalg.inv(cholesky)
    eye = program.jnp.broadcast_to(program.jnp.eye(cholesky.shape[-1]), cholesky.shape)
    return program.jax.scipy.linalg.solve_triangular(cholesky, eye, lower=True)


def full_params(mean, covariance):
    """Return parameters from a mean and covariance, with the Cholesky factor."""
    return {"mean": mean, "covariance": covariance, "cholesky": namespace(covariance).linalg.cholesky(covariance)}
