r"""Gaussian and Student vectors with gaps: conditionals, statistics by pattern of missingness, and EM.

Let x be a D-variate Student-t (m, S, ν), with ν infinite for a Gaussian. Given its d observed entries o, with
δ² = (x_o - m_o)' S_oo⁻¹ (x_o - m_o), the other entries u are a Student-t with ν + d degrees of freedom about
m_u + S_uo S_oo⁻¹ (x_o - m_o), whose squared scale is

.. math:: \frac{\nu + \delta^2}{\nu + d} \big(S_{uu} - S_{uo} S_{oo}^{-1} S_{ou}\big)

(Ding 2016, *The American Statistician* 70, 293-295.) As a vector, x_u is a Student-t of this scale matrix. Its draw is
x_u = m_u + B (x_o - m_o) + √f (e_u - B e_o), with B = S_uo S_oo⁻¹, e ~ N(0, S) a whole row, and f = (ν + δ²)/χ²_{ν+d},
or 1 for a Gaussian: e_u - B e_o has the covariance of x_u given x_o, and none with e_o.
"""

import functools
from dataclasses import dataclass

import numpy as np

from bayesgen.core.errors import DataError
from bayesgen.core.program import static
from bayesgen.core.statistics import Statistics
from bayesgen.models.moments import Moments, Pooled
from bayesgen.numerics.pieces import patterns

_LIMIT, _TOLERANCE = 20_000, 1e-11  # of expectation-maximisation: steps, and distance from the maximum


def conditional_student(x, mean, scale, dof):
    """Return the Student-t of each missing entry, given the observed entries of its row.

    Parameters
    ----------
    x : array, shape (n, D)
        Rows, NaN where missing.
    mean : array, shape (..., D)
    scale : array, shape (..., D, D)
        Scale matrices, or covariances where ``dof`` is infinite.
    dof : array, shape (...)

    Returns
    -------
    location, spread : array, shape (..., n, D)
        Centre of the Student-t of each missing entry, and square root of its squared scale; NaN where it is observed.
    freedom : array, shape (..., n, 1)
        Degrees of freedom.
    """
    lead = mean.shape[:-1]
    location, spread = np.full((2, *lead, *x.shape), np.nan)
    freedom, dof = np.empty((*lead, len(x), 1)), np.broadcast_to(dof, lead)[..., None]
    for seen, rows in patterns(~np.isnan(x)):
        gone = np.setdiff1d(np.arange(x.shape[1]), seen)
        z = x[np.ix_(rows, seen)] - mean[..., None, seen]
        across, block = scale[..., seen[:, None], gone], scale[..., seen[:, None], seen]
        regress = np.linalg.solve(block, across)
        left = np.diagonal(scale, axis1=-2, axis2=-1)[..., gone] - (across * regress).sum(-2)
        location[..., rows[:, None], gone] = mean[..., None, gone] + z @ regress
        factor = _widening(z, np.linalg.cholesky(block), dof)
        spread[..., rows[:, None], gone] = np.sqrt(left)[..., None, :] * factor[..., None]
        freedom[..., rows, 0] = dof + len(seen)
    return location, spread, freedom


def _widening(z, root, dof):
    """Return √((ν + δ²)/(ν + d)), (..., n), from rows z (..., n, d) less the mean, and 1 where ν (..., 1) is infinite.

    ``root`` (..., d, d) is the Cholesky factor of S_oo. Rows are scaled, for their squares may lie beyond float64.
    """
    unit = np.abs(z).max(-1, keepdims=True, initial=1.0)
    distance = unit[..., 0] * np.sqrt((np.linalg.solve(root, (z / unit).mT) ** 2).sum(-2))
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(dof), 1.0, np.hypot(np.sqrt(dof), distance) / np.sqrt(dof + z.shape[-1]))


def fill_student(x, group, mean, scale, dof, rng) -> np.ndarray:
    """Draw the missing entries of rows, each a Student-t or Gaussian vector, given the observed entries of the row.

    Parameters
    ----------
    x : array, shape (n, D)
        Rows, NaN where missing.
    group : int array, shape (n,)
        The distribution of each row.
    mean : array, shape (G, D)
    scale : array, shape (G, D, D)
        Scale matrices, or covariances where ``dof`` is infinite.
    dof : array, shape (G,)
    """
    result, dof = x.copy(), np.broadcast_to(dof, len(mean))
    for seen, rows in patterns(~np.isnan(x)):
        gone = np.setdiff1d(np.arange(x.shape[1]), seen)
        own, place = np.unique(group[rows], return_inverse=True)  # each is factorised once
        block = scale[own[:, None, None], seen[:, None], seen]
        regress = np.linalg.solve(block, scale[own[:, None, None], seen[:, None], gone])[place]
        z, freedom = x[np.ix_(rows, seen)] - mean[group[rows][:, None], seen], dof[group[rows]]
        noise = (np.linalg.cholesky(scale[own])[place] @ rng.standard_normal((len(rows), x.shape[1], 1)))[..., 0]
        if not np.isinf(freedom).all():
            widening = _widening(z[:, None], np.linalg.cholesky(block)[place], freedom[:, None])
            noise *= widening * np.sqrt((freedom + len(seen)) / rng.chisquare(freedom + len(seen)))[:, None]
        moved = ((z - noise[:, seen])[:, None] @ regress)[:, 0]
        result[np.ix_(rows, gone)] = mean[group[rows][:, None], gone] + moved + noise[:, gone]
    return result


@dataclass(frozen=True, eq=False)
class PatternMoments(Statistics):
    """`Moments` of vectors with gaps, one for every pattern of missingness.

    Attributes
    ----------
    patterns : tuple of str
        Sorted patterns such as "101": the second of three columns is missing.
    moments : Moments
        Moments of the rows of each pattern, with a leading axis of patterns, then groups; 0 in missing columns.
    """

    patterns: tuple[str, ...] = static()
    moments: Moments

    base = 0.0

    @property
    def seen(self) -> np.ndarray:
        """Columns that each pattern has, as 0 and 1: (patterns, D)."""
        return np.array([[c == "1" for c in pattern] for pattern in self.patterns], dtype=float)

    @property
    def gaps(self) -> list[int]:
        """Columns with a missing entry."""
        return np.flatnonzero((self.seen == 0).any(0)).tolist()

    def by_pattern(self) -> dict[str, Moments]:
        """Return the moments of each pattern."""
        m = self.moments
        return {p: Moments(m.n[i], m.mean[i], m.scatter[i]) for i, p in enumerate(self.patterns)}

    @classmethod
    def of(cls, parts: dict[str, Moments]) -> "PatternMoments":
        """Stack the moments of patterns."""
        names = tuple(sorted(parts))
        stacked = (np.stack([getattr(parts[p], a) for p in names]) for a in ("n", "mean", "scatter"))
        return cls(names, Moments(*stacked))

    def __radd__(self, other):
        return self + other if isinstance(other, Moments) else super().__radd__(other)

    def _with(self, other, sign):
        if isinstance(other, Moments) and other.vector:
            other = PatternMoments.of({"1" * other.mean.shape[-1]: other})
        if not isinstance(other, PatternMoments):
            return super()._with(other, sign)
        parts, gone = self.by_pattern(), other.by_pattern()
        if sign > 0:
            return PatternMoments.of(gone | {p: part + gone[p] if p in gone else part for p, part in parts.items()})
        if strange := [p for p in gone if p not in parts and gone[p].n.any()]:
            raise ValueError(f"no row has the gaps of those to take out, such as {strange[0]} (1: seen, 0: missing)")
        left = {p: part - gone[p] if p in gone else part for p, part in parts.items()}
        return PatternMoments.of({p: part for p, part in left.items() if part.n.any()} or left)

    def without(self, part, signed=False):
        """Return the moments without the rows of ``part``; see `Moments.without`."""
        before, rest = self.by_pattern(), (self - part).by_pattern()
        left = PatternMoments.of({p: own.without_dust(before[p]) for p, own in rest.items()})
        for pattern, own in left.by_pattern().items():
            own.check_digits(before[pattern], left.pooled.variance)
        return left

    def scaled(self, factor):
        """Scale weight and scatter in proportion; keep the means."""
        return PatternMoments(self.patterns, self.moments.scaled(factor))

    def columns(self) -> Moments:
        """Return the moments of every column by itself, over its observed entries."""
        m = self.moments
        seen = self.seen.reshape(len(self.patterns), *[1] * (m.n.ndim - 1), -1)
        return Moments(m.n[..., None] * seen, m.mean, np.diagonal(m.scatter, axis1=-2, axis2=-1)).sum_groups()

    @functools.cached_property
    def pooled(self) -> Pooled:
        """Location and within-class scale of each column; see `Moments.pooled`."""
        columns = self.columns()
        if columns.n.ndim == 1:  # rows without classes form one class
            columns = Moments(columns.n[None], columns.mean[None], columns.scatter[None])
        return columns.pooled


def em(leaf, statistics: PatternMoments, maximise):
    """Maximise over gaps by expectation-maximisation: ``maximise`` takes complete moments to parameters.

    The E step completes the moments of each pattern: with B = Σ_mo Σ_oo⁻¹, missing columns have mean
    μ_m + B(x̄_o - μ_o), scatter B S B' + n(Σ_mm - B Σ_om) and cross scatter B S. (Little and Rubin 2002,
    *Statistical Analysis with Missing Data*, section 11.2.) The search ends when the remaining distance,
    extrapolated from the last steps, is below 1e-11 in every standardised parameter.
    """
    columns = statistics.columns()
    mean, variance, _ = statistics.pooled
    start = np.where(columns.n > 0, columns.mean, mean)
    scale, last = np.sqrt(variance), np.inf
    params = leaf._expand({"mean": start, "covariance": np.diag(variance)})
    for _ in range(_LIMIT):
        new = maximise(_complete(statistics, params))
        full = leaf._expand(new)
        if np.linalg.eigvalsh(full["covariance"] / np.outer(scale, scale)).min() < 1e-9:
            raise DataError(
                "no maximum exists: with these gaps the covariance shrinks to a singular one; use 'map', 'nuts'"
            )
        steps = [
            (full["mean"] - params["mean"]) / scale,
            (full["covariance"] - params["covariance"]) / np.outer(scale, scale),
        ]
        step = max(float(np.abs(s).max()) for s in steps)
        params, rate, last = full, step / last, step
        # At a linear rate r a distance of about step r/(1 - r) remains.
        if step == 0 or (0 < rate < 1 and step * rate / (1 - rate) < _TOLERANCE):
            return new
    raise DataError("no maximum was reached over the missing entries; use 'nuts', or a stronger prior with 'map'")


def _complete(statistics: PatternMoments, params) -> Moments:
    """Return the expected moments of complete rows, given the observed entries."""
    result = None
    for pattern, part in statistics.by_pattern().items():
        o, m = (np.flatnonzero([c == flag for c in pattern]) for flag in ("1", "0"))
        mu, sigma = params["mean"], params["covariance"]
        part = Moments(part.n, part.mean[..., o], part.scatter[..., o[:, None], o])
        regress = np.linalg.solve(sigma[..., o[:, None], o], sigma[..., o[:, None], m]).mT
        mean, scatter = np.empty_like(mu), np.empty_like(sigma)
        mean[..., o] = part.mean
        mean[..., m] = mu[..., m] + (regress @ (part.mean - mu[..., o])[..., None])[..., 0]
        cross = regress @ part.scatter
        rest = sigma[..., m[:, None], m] - regress @ sigma[..., o[:, None], m]
        scatter[..., o[:, None], o] = part.scatter
        scatter[..., m[:, None], o] = cross
        scatter[..., o[:, None], m] = cross.mT
        scatter[..., m[:, None], m] = cross @ regress.mT + part.n[..., None, None] * rest
        whole = Moments(part.n, mean, scatter)
        result = whole if result is None else result + whole
    return result  # type: ignore[return-value]
