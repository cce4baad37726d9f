r"""The mode and the maximum likelihood of Student's t by ECME: the steps, for numbers and for vectors with gaps.

`docs/mathematics/student-t.md` has the two steps; û_i is the mean precision of a row of weight w_i given its entries.
The mode is that of the Gaussian leaf with κ_n = κ + Σ w û, means and scatter weighted by w û, and Σ w rows in the count
of the variance. What a row lacks has its mean given the rest, and adds its conditional covariance, which û does not
divide. ν then moves by a step of Newton's method on the density itself, in log(ν - 1). The search begins at medians and
ends when the distance left, extrapolated, is below 1e-11 in standardised parameters. Under maximum likelihood ν is at
most 1e4, which stands for a Gaussian. A density may have several modes where classes have few rows: the search finds
the one of the middle. (Liu and Rubin 1995, *Statistica Sinica* 5.)
"""

import numpy as np
from scipy.special import polygamma, psi

from bayesgen.core.errors import refuse_where
from bayesgen.models.moments import Moments
from bayesgen.models.row_leaf import RowsByGroup
from bayesgen.numerics.newton import fixed_point
from bayesgen.numerics.student import regression, seen_root

LEAST, _MOST = 1.0, 1e4  # degrees of freedom that are learned; with more it is a Gaussian
_START = 4.0  # degrees of freedom at which a search begins
_TOLERANCE = 1e-11  # distance from the maximum


class Rows:
    """Rows of the groups of a leaf, with medians to begin at; a subclass has the sums of one kind of observation."""

    def __init__(self, statistics: RowsByGroup):
        self.axis, self.statistics = statistics.weight.ndim - 1, statistics

    @property
    def middle(self) -> tuple[np.ndarray, np.ndarray]:
        """Medians by group, and squared spreads about them; those of all rows where a class has none."""
        (centre, spread), pooled = self.statistics.medians, self.statistics.pooled
        return np.where(np.isnan(centre), pooled.mean, centre), np.where(spread > 0, spread**2, pooled.variance)


class Numbers(Rows):
    """Rows of scalar features: arrays (classes..., M, features...)."""

    count = 1

    def __init__(self, statistics: RowsByGroup):
        super().__init__(statistics)
        self.x, weight = statistics.x, statistics.weight
        self.weight = statistics.seen * weight.reshape(*weight.shape, *[1] * (self.x.ndim - weight.ndim))
        self.total = self.weight.sum(self.axis)

    def start(self):
        """Return medians, and the squared spread about them."""
        centre, square = self.middle
        return {"mean": centre, "variance": square}

    def _beside(self, value):
        return np.expand_dims(value, self.axis)

    def distances(self, full):
        """Return δ of each entry."""
        return (self.x - self._beside(full["mean"])) ** 2 / self._beside(full["variance"])

    def sums(self, full, dof, delta):
        """Return the moments that û weighs, by the distances δ, and what they lack of the weight of the rows."""
        weight = self.weight * (self._beside(dof) + 1) / (self._beside(dof) + delta)
        n = weight.sum(self.axis)
        mean = (weight * self.x).sum(self.axis) / np.where(n > 0, n, 1.0)
        scatter = (weight * (self.x - self._beside(mean)) ** 2).sum(self.axis)
        return Moments(n, mean, scatter), self.total - n

    def steps(self, old, new):
        """Return what parameters moved by, in standard units."""
        return (new["mean"] - old["mean"]) / np.sqrt(new["variance"]), np.log(new["variance"] / old["variance"])

    def refuse_ties(self, dof: float) -> None:
        """Raise where so many rows share one value that the likelihood has no bound there: m >= ν (n - m)."""
        x, weight = (np.moveaxis(a, self.axis, -1) for a in (self.x, self.weight))
        bad = np.zeros(x.shape[:-1], bool)
        for place in np.ndindex(bad.shape):
            seen = weight[place] > 0
            _, value = np.unique(x[place][seen], return_inverse=True)
            shared = np.bincount(value, weight[place][seen]).max(initial=0.0)
            bad[place] = shared >= dof * (weight[place].sum() - shared)
        refuse_where(bad, "maximum likelihood of a Student-t does not exist: too many rows share one value; use 'map'")


class Vectors(Rows):
    """Rows of vectors: arrays (classes..., M, D), worked on by class and pattern of gaps."""

    def __init__(self, statistics: RowsByGroup):
        super().__init__(statistics)
        self.weight, self.lead = statistics.weight, statistics.lead
        self.total = self.weight.sum(-1)
        self.count = statistics.patterns.sum(-1)[statistics.pattern]
        dim, length = statistics.x.shape[-1], self.weight.shape[-1]
        x, weight = statistics.x.reshape(-1, length, dim), self.weight.reshape(-1, length)
        pattern, self.seen, self.parts = statistics.pattern.reshape(-1, length), statistics.patterns, []
        for k in range(len(x)):
            for p in range(len(self.seen)):
                rows = np.flatnonzero((pattern[k] == p) & (weight[k] > 0))
                if len(rows):
                    self.parts.append((k, p, rows, x[k][rows], weight[k][rows]))

    def start(self):
        """Return medians, and the squared spread about them, without correlation."""
        centre, square = self.middle
        return {"mean": centre, "covariance": square[..., None] * np.eye(centre.shape[-1])}

    def _flat(self, full):
        dim = full["mean"].shape[-1]
        return full["mean"].reshape(-1, dim), full["covariance"].reshape(-1, dim, dim)

    def distances(self, full):
        """Return δ of each row."""
        mean, covariance = self._flat(full)
        result, root = np.zeros((len(mean), self.weight.shape[-1])), seen_root(covariance[:, None], self.seen)
        for k, p, rows, x, _ in self.parts:
            result[k, rows] = (np.linalg.solve(root[k, p], (self.seen[p] * (x - mean[k])).T) ** 2).sum(0)
        return result.reshape(self.weight.shape)

    def sums(self, full, dof, delta):
        """Return the moments that û weighs, by the distances δ, gaps completed, and what they lack of the weight."""
        mean, covariance = self._flat(full)
        dim, dof, delta = mean.shape[-1], dof.reshape(-1), delta.reshape(len(mean), -1)
        n, first, second = np.zeros(len(mean)), np.zeros_like(mean), np.zeros_like(covariance)
        R = regression(covariance[:, None], self.seen)
        for k, p, rows, x, w in self.parts:
            weight = w * (dof[k] + self.seen[p].sum()) / (dof[k] + delta[k, rows])
            away = (self.seen[p] * (x - mean[k])) @ R[k, p].T
            n[k] += weight.sum()
            first[k] += weight @ away
            second[k] += (weight[:, None] * away).T @ away + w.sum() * (covariance[k] - R[k, p] @ covariance[k])
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


def advanced(rows: Numbers | Vectors, gaussian, dof: float | None, maximise, prior, params):
    """Return the parameters after a step of ECME, and the size of the step.

    ``maximise`` takes what ``rows.sums`` returns to the parameters of the Gaussian leaf; ``prior`` is (shape, rate) of
    the gamma prior of the degrees of freedom less 1, or None. They are among the parameters where ``dof`` is None.
    """
    old, freedom = gaussian._expand({site: v for site, v in params.items() if site != "dof"}), params.get("dof", dof)
    freedom = np.broadcast_to(freedom, rows.total.shape)
    delta = rows.distances(old)
    if dof is None:
        freedom = _newton(freedom, delta, rows.count, rows.weight, rows.axis, prior)
    found = maximise(*rows.sums(old, freedom, delta))
    steps = rows.steps(old, gaussian._expand(found))
    if dof is None:
        steps = *steps, np.log(freedom - LEAST) - np.log(params["dof"] - LEAST)
        found = {**found, "dof": freedom}
    return found, max(float(np.abs(step).max(initial=0.0)) for step in steps)


def begun(rows: Numbers | Vectors, dof: float | None):
    """Return the parameters at which a search begins."""
    return rows.start() if dof is not None else {**rows.start(), "dof": np.full(rows.total.shape, _START)}


def search(rows: Numbers | Vectors, gaussian, dof: float | None, maximise, prior):
    """Return the parameters of a Gaussian leaf where ECME ends, with the degrees of freedom where ``dof`` is None."""

    def advance(params):
        return advanced(rows, gaussian, dof, maximise, prior, params)

    problem = "no maximum was reached: give dof=, a stronger prior with 'map', or take 'nuts'"
    return fixed_point(advance, begun(rows, dof), _TOLERANCE, problem)


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
    above = dof - LEAST
    if prior is not None:
        slope, bend = slope + (prior[0] - 1) / above - prior[1], bend - (prior[0] - 1) / above**2
    slope, bend = above * slope, above * slope + above**2 * bend
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(bend < 0, -slope / bend, np.sign(slope))
    return LEAST + np.clip(above * np.exp(np.clip(step, -1.0, 1.0)), 1e-8, _MOST - LEAST)
