"""Gaussian vectors with gaps: statistics by pattern of missingness, and expectation-maximisation.

The conditional of what a row lacks given what it has is in `bayesgen.numerics.student_gaps`.
"""

import functools
from dataclasses import dataclass

import numpy as np

from bayesgen.core.errors import DataError
from bayesgen.core.program import static
from bayesgen.core.statistics import Statistics
from bayesgen.models.moments import LocationScale, Moments
from bayesgen.numerics.newton import fixed_point
from bayesgen.numerics.student import regression

_TOLERANCE = 1e-11  # distance from the maximum at the end of expectation-maximisation


@dataclass(frozen=True, eq=False)
class PatternMoments(Statistics):
    """`Moments` of vectors with gaps, one for every pattern of missingness."""

    patterns: tuple[str, ...] = static()  # sorted patterns such as "101": the second of three columns is missing
    # moments of the rows of each pattern, with a leading axis of patterns, then groups; 0 in missing columns
    moments: Moments

    base = 0.0

    @property
    def seen(self) -> np.ndarray:
        """Columns that each pattern has, as 0 and 1: (patterns, D)."""
        return np.array([[c == "1" for c in pattern] for pattern in self.patterns], dtype=float)

    @property
    def seen_by_group(self) -> np.ndarray:
        """``seen`` with an axis of length 1 for each axis of groups, to broadcast against the moments."""
        return self.seen.reshape(len(self.patterns), *[1] * (self.moments.n.ndim - 1), -1)

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
            return PatternMoments.of(gone | {p: sums + gone[p] if p in gone else sums for p, sums in parts.items()})
        if strange := [p for p in gone if p not in parts and gone[p].n.any()]:
            raise ValueError(f"no row has the gaps of those to take out, such as {strange[0]} (1: seen, 0: missing)")
        kept = {p: sums - gone[p] if p in gone else sums for p, sums in parts.items()}
        return PatternMoments.of({p: sums for p, sums in kept.items() if sums.n.any()} or kept)

    def without(self, gone, signed=False):
        before, kept = self.by_pattern(), self - gone
        for pattern, moments in kept.by_pattern().items():
            moments.check_digits(before[pattern], kept.pooled.variance)
        return kept

    @property
    def observed(self) -> np.ndarray:
        """True for each column that has an entry, (D,)."""
        return np.asarray(self.seen.any(0))

    def select(self, columns: np.ndarray) -> "Moments | PatternMoments":
        """Return the moments of some columns, by their places: plain ones where these have no gaps."""
        whole, parts = "1" * len(columns), {}
        for pattern, moments in self.by_pattern().items():
            seen = "".join(pattern[j] for j in columns)
            if "1" in seen:
                part = moments.select(columns)
                parts[seen] = parts[seen] + part if seen in parts else part
        if not parts:
            return self.moments.select(columns).sum_groups().scaled(0.0)
        return parts[whole] if parts.keys() == {whole} else PatternMoments.of(parts)

    def scaled(self, factor):
        return PatternMoments(self.patterns, self.moments.scaled(factor))

    def columns(self) -> Moments:
        """Return the moments of every column by itself, over its observed entries."""
        m = self.moments
        squares = np.diagonal(m.scatter, axis1=-2, axis2=-1)
        return Moments(m.n[..., None] * self.seen_by_group, m.mean, squares).sum_groups()

    @functools.cached_property
    def pooled(self) -> LocationScale:
        """Location and within-class scale of each column; see `Moments.pooled`."""
        columns = self.columns()
        if columns.n.ndim == 1:  # rows without classes form one class
            columns = Moments(columns.n[None], columns.mean[None], columns.scatter[None])
        return columns.pooled


def em(leaf, statistics: PatternMoments, maximise):
    """Maximise over gaps by expectation-maximisation: ``maximise`` takes complete moments to parameters.

    The E step completes the moments of each pattern: with R of `bayesgen.numerics.student.regression` the mean is
    μ + R(x̄ - μ), the scatter R S R' + n(Σ - R Σ). (Little and Rubin 2002, *Statistical Analysis with Missing Data*,
    section 11.2.) The search ends when the remaining distance, extrapolated from the last steps, is below 1e-11 in
    every standardised parameter.
    """
    columns = statistics.columns()
    mean, variance, _ = statistics.pooled
    start = np.where(columns.n > 0, columns.mean, mean)
    scale = np.sqrt(variance)
    units = {"mean": scale, "covariance": np.outer(scale, scale)}

    def advance(params):
        full = leaf._expand(params)
        new = maximise(_complete(statistics, full))
        ahead = leaf._expand(new)
        if np.linalg.eigvalsh(ahead["covariance"] / units["covariance"]).min() < 1e-9:
            raise DataError(
                "no maximum exists: with these gaps the covariance shrinks to a singular one; use 'map', 'nuts'"
            )
        return new, max(float(np.abs((ahead[site] - full[site]) / unit).max()) for site, unit in units.items())

    problem = "no maximum was reached over the missing entries; use 'nuts', or a stronger prior with 'map'"
    return fixed_point(advance, {"mean": start, "covariance": np.diag(variance)}, _TOLERANCE, problem)


def _complete(statistics: PatternMoments, params) -> Moments:
    """Return the expected moments of complete rows, given the observed entries."""
    mu, sigma, seen = params["mean"], params["covariance"], statistics.moments
    R = regression(sigma, statistics.seen_by_group > 0)
    mean = mu + (R @ (seen.mean - mu)[..., None])[..., 0]
    scatter = R @ seen.scatter @ R.mT + seen.n[..., None, None] * (sigma - R @ sigma)
    return Moments(seen.n, mean, scatter).sum_groups()
