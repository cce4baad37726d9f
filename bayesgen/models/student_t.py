r"""Features and vectors with outliers: Student's t about the mean of a Gaussian leaf, a scale mixture.

Every row has a precision u of its own, by which the variance of its Gaussian is divided:

.. math:: (\mu, \Sigma) \sim p(\mu, \Sigma), \quad \nu - 1 \sim \mathrm{Gamma}(a, \text{rate } b), \quad
   u_i \mid \nu \sim \mathrm{Gamma}(\nu/2, \nu/2), \quad x_i \mid u_i \sim N_D(\mu, \Sigma/u_i)

with the normal-inverse-gamma prior of (μ, σ²), or the normal-inverse-Wishart one of (μ, Σ). With u integrated out

.. math:: \log p(x) = \log \frac{\Gamma((\nu + D)/2)}{\Gamma(\nu/2)} - \frac D2 \log(\pi\nu) - \frac12 \log|\Sigma|
   - \frac{\nu + D}{2} \log\Big(1 + \frac{\delta}{\nu}\Big), \qquad \delta = (x - \mu)' \Sigma^{-1} (x - \mu)

which is what NUTS and Laplace take: u is no latent. As ν grows this is the Gaussian leaf. The covariance of a row is
Σ ν/(ν - 2) for ν > 2. ν is known or learned, by default under Gamma(2, rate .1), of mean 20 (Juárez and Steel 2010,
*Journal of Business & Economic Statistics* 28), moved by 1: with ν < 1/(n - 1) a single row has a likelihood without
bound.

**ML and MAP** go by ECME (Liu and Rubin 1995, *Statistica Sinica* 5). Under the current parameters u_i has the mean

.. math:: \hat u_i = \frac{\nu + d_i}{\nu + \delta_i}

for a row of weight w_i with d_i entries at squared distance δ_i. A row far out counts little. Given û the mode is that
of the Gaussian leaf with κ_n = κ + Σ w û, means and scatter weighted by w û, and Σ w rows in the count of the variance.
What a row lacks has its mean given the rest, and adds its conditional covariance, which û does not divide. ν then moves
by a step of Newton's method on the density itself, in log(ν - 1). The search begins at medians and ends when the
distance left, extrapolated, is below 1e-11 in standardised parameters. Under maximum likelihood ν is at most 1e4, which
stands for a Gaussian. A density may have several modes where classes have few rows: the search finds the one of the
middle.

**Missing entries** are integrated out: the entries that are there are a t of their block of Σ with the same ν. Given
them the others are a t with ν + d degrees of freedom (`bayesgen.numerics.student`).
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import polygamma, psi

from bayesgen.core import program
from bayesgen.core.errors import DataError, first
from bayesgen.core.program import static
from bayesgen.core.statistics import RowsByGroup
from bayesgen.models.gaussian import NormalInverseGamma, beside_rows
from bayesgen.models.gaussian_vector import inverse_triangular
from bayesgen.models.model import Hyperparameter, hyperparameter
from bayesgen.models.moments import Moments
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart
from bayesgen.models.row_leaf import RowLeaf
from bayesgen.numerics import fixed_point
from bayesgen.numerics.pieces import DENSITIES, patterns, pieces
from bayesgen.numerics.special import log1p_sum_squares, log_gamma_ratio, namespace
from bayesgen.numerics.student import conditional_student, fill_student

_LEAST, _MOST = 1.0, 1e4  # degrees of freedom that are learned; with more it is a Gaussian
_START = 4.0  # degrees of freedom at which a search begins
_LIMIT, _TOLERANCE = 20_000, 1e-11  # of ECME: steps, and distance from the maximum


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

    takes_gaps = True

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

    # -- shapes and names, those of the Gaussian ---------------------------------------------------------------------

    @property
    def event_dim(self) -> int:  # type: ignore[override]  # of the Gaussian
        """Number of axes of one observation: 1 for vectors."""
        return self.gaussian.event_dim

    @property
    def site_dims(self):  # type: ignore[override]
        """Names of the last axes of parameters."""
        return self.gaussian.site_dims

    @property
    def batch_shape(self):  # type: ignore[override]
        """Shape of the hyperparameters in front of those of one feature, or vector."""
        return self.gaussian.batch_shape

    def dims(self, site, *, grouped=False):
        """Return the names of the axes of a parameter."""
        return super().dims(site, grouped=grouped) if site == "dof" else self.gaussian.dims(site, grouped=grouped)

    def for_columns(self, columns):
        """Return the leaf with hyperparameters that name their columns in the order of ``columns``, or raise."""
        return replace(self, gaussian=self.gaussian.for_columns(columns))

    def _for_classes(self, groups):
        return replace(self, gaussian=self.gaussian._for_classes(groups), per_class=True)

    def _repeated(self, columns):
        return replace(self, gaussian=self.gaussian._repeated(columns))

    def _expand(self, params):
        """Return all parameters by class, and the degrees of freedom, known or not."""
        full = self.gaussian._expand({site: value for site, value in params.items() if site != "dof"})
        mean = full["mean"]
        known = namespace(mean).full(mean.shape[: mean.ndim - self.event_dim], self.dof or np.nan, mean.dtype)
        return full | {"dof": params.get("dof", known)}

    def select_class(self, params, group):
        """Return the parameters of the class of each row."""
        return super().select_class(self._expand(params), group)

    def _beside_rows(self, params):
        return super()._beside_rows(self._expand(params))

    # -- the program -------------------------------------------------------------------------------------------------

    def parameters(self):
        """Sample the parameters of the Gaussian, and the degrees of freedom."""
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
        above = dist.transforms.AffineTransform(_LEAST, 1.0, domain=dist.constraints.positive)
        prior = dist.TransformedDistribution(dist.Gamma(self.dof_shape, self.dof_rate), above, validate_args=False)
        return {"dof": program.numpyro.sample("dof", prior)}

    def likelihood(self, params):
        """Return Student's t."""
        params = self._expand(params)
        if self.event_dim:
            return program.dist.MultivariateStudentT(params["dof"], params["mean"], params["cholesky"])
        return program.dist.StudentT(params["dof"], params["mean"], params["variance"] ** 0.5)

    def density_of(self, params, x=None):
        """Return p(x | params), and the rows at which it has their density; of vectors with gaps a point with it."""
        jnp = program.jnp
        if not self.event_dim or x is None or not (program.is_abstract(x) or np.isnan(x).any()):
            return super().density_of(params, x)
        full, seen = self._expand(params), ~jnp.isnan(x)
        inverse, level, count = _of_pattern(full["covariance"], full["dof"], seen)
        z = inverse @ jnp.where(seen, x - full["mean"], 0.0)[..., None]
        density = _log_density(level, full["dof"], count, z[..., 0])
        rows = jnp.where(seen, x, 0.0)
        everywhere = jnp.broadcast_to(rows, (*density.shape, rows.shape[-1]))  # a class that is enumerated has an axis
        return program.dist.Delta(everywhere, log_density=density, event_dim=1), rows

    def log_abs_det_jacobian(self, params):
        """Return that of the Gaussian leaf."""
        return self.gaussian.log_abs_det_jacobian(params)

    # -- densities ---------------------------------------------------------------------------------------------------

    def log_density(self, params, x):
        """Return the log density of whole observations."""
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
        """Return log p(all rows | params), what vectors lack integrated out. NumPy or JAX."""
        if not self.event_dim or len(statistics.patterns) == 1:
            return super().log_likelihood(params, statistics)
        full, at = self._expand(params), statistics.pattern
        xp, axis = namespace(full["mean"]), at.ndim - 1
        covariance, dof = full["covariance"][..., None, :, :], full["dof"][..., None]
        inverse, level, count = _of_pattern(covariance, dof, statistics.patterns)  # (classes..., patterns, ...)
        own = xp.take_along_axis(inverse, at[..., None, None], axis=axis)
        away = xp.where(statistics.seen, statistics.x - full["mean"][..., None, :], 0.0)
        z = (own @ away[..., None])[..., 0]
        density = _log_density(xp.take_along_axis(level, at, axis=axis), dof, count[at], z)
        return (statistics.weight * density).sum()

    def log_likelihood_rows(self, params, x):
        """Return log p(row | params) for every row and leading index of ``params``, by pattern of gaps of vectors."""
        if not self.event_dim:
            return super().log_likelihood_rows(params, x)
        full = self._expand(params)
        mean, dof = full["mean"], full["dof"]
        result = np.zeros((*dof.shape, len(x)))
        for seen, rows in patterns(~np.isnan(x)):
            if not len(seen):
                continue
            root = np.linalg.cholesky(full["covariance"][..., seen[:, None], seen])
            inverse, level = np.linalg.inv(root).mT, _level(root, dof, len(seen))[..., None]
            for piece in pieces(len(rows), mean.size, DENSITIES):
                z = (x[np.ix_(rows[piece], seen)] - mean[..., None, seen]) @ inverse
                result[..., rows[piece]] = _log_density(level, dof[..., None], len(seen), z)
        return result

    # -- draws, and missing entries ----------------------------------------------------------------------------------

    def draw(self, params, rng):
        """Draw from the Gaussian of a row whose precision is drawn."""
        full = self._expand(params)
        away = self.gaussian.draw({**full, "mean": np.zeros_like(full["mean"])}, rng)
        root = np.sqrt(rng.chisquare(full["dof"]) / full["dof"])
        return full["mean"] + away / (root[..., None] if self.event_dim else root)

    def fill(self, x, group, rng, params=None):
        """Draw what rows lack; of a vector given what is there."""
        if params is None or not self.event_dim:
            return super().fill(x, group, rng, params)
        full = self._expand(params)
        return fill_student(x, group, full["mean"], full["covariance"], full["dof"], rng)

    def student(self, x, params=None):
        """Return the Student-t of each missing entry; of a vector given what is there."""
        if params is None:
            return super().student(x)
        full = self._expand(params)
        if self.event_dim:
            return conditional_student(x, full["mean"], full["covariance"], full["dof"])
        return tuple(beside_rows(v, x) for v in (full["mean"], np.sqrt(full["variance"]), full["dof"]))

    # -- maximum likelihood and the mode: ECME -----------------------------------------------------------------------

    def ml(self, statistics):
        """Return the maximum of the likelihood; raise where it does not exist."""
        if not self.event_dim:
            _refuse_ties(statistics, self.dof or _LEAST)

        def maximise(moments, lack):
            return self.gaussian.ml(replace(moments, n=moments.n + lack))

        return self._search(statistics, maximise, None)

    def map(self, statistics):
        """Return the mode of the posterior density of mean, variance or covariance, and degrees of freedom."""
        prior = float(self.dof_shape), float(self.dof_rate)
        return self._search(statistics, lambda *sums: self._given_precisions(*sums).mode(), prior)

    def starting_draws(self, statistics, rng, size):
        """Draw from the posterior of the Gaussian given the precisions of rows at the mode."""
        try:
            params = self.map(statistics)
        except (DataError, np.linalg.LinAlgError):
            return {}
        rows, full = _rows(self, statistics), self._expand(params)
        draws = self._given_precisions(*rows.sums(full, full["dof"])).sample_parameters(rng, size)
        if self.dof is None:
            spread = np.exp(0.5 * rng.standard_normal((*size, *full["dof"].shape)))
            draws["dof"] = _LEAST + (full["dof"] - _LEAST) * spread
        return draws

    def _given_precisions(self, moments, lack):
        """Return the posterior of the Gaussian from sums that û weighs, and the weight that they ``lack``."""
        posterior = self.gaussian.update(moments)
        if self.event_dim:
            return posterior._revised(nu=posterior.nu + self.gaussian._tie(lack))
        return posterior._revised(alpha=posterior.alpha + self.gaussian._tie(lack) / 2)

    def _search(self, statistics, maximise, prior):
        """Return the parameters where ECME ends; ``maximise`` takes sums to those of the Gaussian."""
        rows = _rows(self, statistics)
        full = rows.start()
        dof = np.full(rows.total.shape, _START if self.dof is None else float(self.dof))
        last = np.inf
        for _ in range(_LIMIT):
            if self.dof is None:
                moved = _newton(dof, rows.distances(full), rows.count, rows.weight, rows.axis, prior)
            else:
                moved = dof
            params = maximise(*rows.sums(full, moved))
            new = self.gaussian._expand(params)
            steps = (*rows.steps(full, new), np.log(moved - _LEAST) - np.log(dof - _LEAST) if self.dof is None else 0.0)
            step = max(float(np.abs(s).max(initial=0.0)) for s in steps)
            if fixed_point.reached(step, last, _TOLERANCE):
                return params if self.dof is not None else {**params, "dof": moved}
            full, dof, last = new, moved, step
        raise DataError("no maximum was reached: give dof=, a stronger prior with 'map', or take 'nuts'")


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
    """Return inverse roots, levels, and numbers of entries for patterns ``seen`` (..., D); missing rows are unit ones.

    If the identity replaces the rows and columns of missing entries, Σ has the determinant and inverse of the block.
    """
    xp = namespace(covariance)
    seen = xp.asarray(seen).astype(covariance.dtype)
    both, count = seen[..., :, None] * seen[..., None, :], seen.sum(-1)
    root = xp.linalg.cholesky(covariance * both + (1 - seen)[..., None] * np.eye(seen.shape[-1]))
    return inverse_triangular(root), _level(root, dof, count), count


# -- what of ECME differs between numbers and vectors ------------------------------------------------------------------


def _rows(leaf: StudentT, statistics: RowsByGroup) -> "_Numbers | _Vectors":
    return _Vectors(statistics) if leaf.event_dim else _Numbers(statistics)


def _start(statistics: RowsByGroup) -> tuple[np.ndarray, np.ndarray]:
    """Return medians and squared spreads by class, those of all rows where a class has none."""
    (centre, spread), pooled = statistics.medians, statistics.pooled
    return np.where(np.isnan(centre), pooled.mean, centre), np.where(spread > 0, spread**2, pooled.variance)


class _Numbers:
    """Rows of scalar features: arrays (classes..., M, features...)."""

    count = 1

    def __init__(self, statistics: RowsByGroup):
        self.x, self.axis = statistics.x, statistics.weight.ndim - 1
        weight = statistics.weight
        self.weight = statistics.seen * weight.reshape(*weight.shape, *[1] * (self.x.ndim - weight.ndim))
        self.total = self.weight.sum(self.axis)
        self.start_at = _start(statistics)

    def start(self):
        """Return medians, and the squared spread about them."""
        mean, variance = self.start_at
        return {"mean": mean, "variance": variance}

    def _beside(self, value):
        return np.expand_dims(value, self.axis)

    def distances(self, full):
        """Return δ of each entry."""
        return (self.x - self._beside(full["mean"])) ** 2 / self._beside(full["variance"])

    def sums(self, full, dof):
        """Return the moments that û weighs, and what they lack of the weight of the rows."""
        weight = self.weight * (self._beside(dof) + 1) / (self._beside(dof) + self.distances(full))
        n = weight.sum(self.axis)
        mean = (weight * self.x).sum(self.axis) / np.where(n > 0, n, 1.0)
        scatter = (weight * (self.x - self._beside(mean)) ** 2).sum(self.axis)
        return Moments(n, mean, scatter), self.total - n

    def steps(self, old, new):
        """Return what parameters moved by, in standard units."""
        return (new["mean"] - old["mean"]) / np.sqrt(new["variance"]), np.log(new["variance"] / old["variance"])


class _Vectors:
    """Rows of vectors: arrays (classes..., M, D), worked on by class and pattern of gaps."""

    def __init__(self, statistics: RowsByGroup):
        self.weight, self.axis, self.start_at = statistics.weight, statistics.weight.ndim - 1, _start(statistics)
        self.total, self.lead = self.weight.sum(-1), statistics.lead
        self.count = statistics.patterns.sum(-1)[statistics.pattern]
        dim, length = statistics.x.shape[-1], self.weight.shape[-1]
        x, weight = statistics.x.reshape(-1, length, dim), self.weight.reshape(-1, length)
        pattern, self.parts = statistics.pattern.reshape(-1, length), []
        for k in range(len(x)):
            for p, seen in enumerate(statistics.patterns):
                rows = np.flatnonzero((pattern[k] == p) & (weight[k] > 0))
                if len(rows):
                    o, m = np.flatnonzero(seen), np.flatnonzero(~seen)
                    self.parts.append((k, rows, o, m, x[k][np.ix_(rows, o)], weight[k][rows]))

    def start(self):
        """Return medians, and the squared spread about them, without correlation."""
        mean, variance = self.start_at
        return {"mean": mean, "covariance": variance[..., None] * np.eye(mean.shape[-1])}

    def _flat(self, full):
        dim = full["mean"].shape[-1]
        return full["mean"].reshape(-1, dim), full["covariance"].reshape(-1, dim, dim)

    def distances(self, full):
        """Return δ of each row."""
        mean, covariance = self._flat(full)
        result = np.zeros((len(mean), self.weight.shape[-1]))
        for k, rows, o, _, x, _ in self.parts:
            root = np.linalg.cholesky(covariance[k][np.ix_(o, o)])
            result[k, rows] = (np.linalg.solve(root, (x - mean[k, o]).T) ** 2).sum(0)
        return result.reshape(self.weight.shape)

    def sums(self, full, dof):
        """Return the moments that û weighs, gaps completed, and what they lack of the weight of the rows."""
        mean, covariance = self._flat(full)
        dim, dof, delta = mean.shape[-1], dof.reshape(-1), self.distances(full).reshape(len(mean), -1)
        n, first, second = np.zeros(len(mean)), np.zeros_like(mean), np.zeros_like(covariance)
        for k, rows, o, m, x, w in self.parts:
            weight, away = w * (dof[k] + len(o)) / (dof[k] + delta[k, rows]), np.zeros((len(rows), dim))
            away[:, o] = x - mean[k, o]
            if len(m):
                regress = np.linalg.solve(covariance[k][np.ix_(o, o)], covariance[k][np.ix_(o, m)])
                away[:, m] = away[:, o] @ regress
                left = covariance[k][np.ix_(m, m)] - covariance[k][np.ix_(m, o)] @ regress
                second[k][np.ix_(m, m)] += w.sum() * left
            n[k] += weight.sum()
            first[k] += weight @ away
            second[k] += (weight[:, None] * away).T @ away
        shift = first / np.where(n > 0, n, 1.0)[:, None]
        scatter = second - n[:, None, None] * shift[:, :, None] * shift[:, None, :]
        lead = self.lead
        moments = Moments(n.reshape(lead), (mean + shift).reshape(*lead, dim), scatter.reshape(*lead, dim, dim))
        return moments, self.total - moments.n

    def steps(self, old, new):
        """Return what parameters moved by, in standard units."""
        sd = np.sqrt(np.diagonal(new["covariance"], axis1=-2, axis2=-1))
        covariance = (new["covariance"] - old["covariance"]) / (sd[..., :, None] * sd[..., None, :])
        return (new["mean"] - old["mean"]) / sd, covariance


def _newton(dof, delta, count, weight, axis, prior):
    """Return the degrees of freedom after a step of Newton's method in η = log(ν - 1), by class and feature.

    The log density is that of rows at squared distances ``delta``, and of the gamma ``prior`` (shape, rate), if any.
    """
    nu = np.expand_dims(dof, axis)
    both = nu * (nu + delta)
    slope = psi((nu + count) / 2) - psi(nu / 2) - count / nu - np.log1p(delta / nu) + (nu + count) * delta / both
    bend = 0.5 * (polygamma(1, (nu + count) / 2) - polygamma(1, nu / 2)) + count / nu**2 + delta / both
    bend += delta * (both - (nu + count) * (2 * nu + delta)) / both**2
    slope, bend = ((0.5 * weight * value).sum(axis) for value in (slope, bend))
    above = dof - _LEAST
    if prior is not None:
        slope, bend = slope + (prior[0] - 1) / above - prior[1], bend - (prior[0] - 1) / above**2
    slope, bend = above * slope, above * slope + above**2 * bend
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(bend < 0, -slope / bend, np.sign(slope))
    return _LEAST + np.clip(above * np.exp(np.clip(step, -1.0, 1.0)), 1e-8, _MOST - _LEAST)


def _refuse_ties(statistics: RowsByGroup, dof: float) -> None:
    """Raise where so many rows share one value that the likelihood has no bound there: m >= ν (n - m)."""
    rows = _Numbers(statistics)
    x, weight = (np.moveaxis(a, rows.axis, -1) for a in (rows.x, rows.weight))
    bad = np.zeros(x.shape[:-1], bool)
    for place in np.ndindex(bad.shape):
        _, own = np.unique(x[place][weight[place] > 0], return_inverse=True)
        shared = np.bincount(own, weight[place][weight[place] > 0]).max(initial=0.0)
        bad[place] = shared >= dof * (weight[place].sum() - shared)
    if bad.any():
        raise DataError(
            "maximum likelihood of a Student-t does not exist: too many rows share one value; use 'map'", **first(bad)
        )
