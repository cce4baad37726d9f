r"""Ordered classes given the columns: one score, cut into K intervals (the cumulative or proportional-odds model).

.. math:: c_1 < \dots < c_{K-1}, \quad b_j \sim N(0, s_j^2), \qquad P(t_i \le k \mid x_i) = F(c_k - x_i b)

with F the distribution function of the logistic or of the normal distribution: a hidden number x b + noise falls
between two cut points. So P(t = k | x) = F(u) - F(l), u = c_k - x b, l = c_{k-1} - x b, c_0 = -∞ and c_K = ∞. There is
no intercept, since a shift of all cut points is one. (McCullagh 1980, *J. R. Statist. Soc. B* 42.)

**The prior of the cut points** is that of K - 1 independent N(0, s_0²), sorted; it has the factor (K - 1)!. With K = 2
it is that of the intercept -c_1 in `LogisticRegression` and `ProbitRegression`, which are then the same model.

**The posterior** is log-concave in (c, b), with one mode (Burridge 1981, *J. R. Statist. Soc. B* 43), but where a class
in the middle has no rows: its two cut points then meet. Both are derived in `docs/mathematics/ordered-regression.md`.

**Digits.** A difference of distribution functions near 0 or 1 has few, so the logarithm is written as

.. math:: \log [F(u) - F(l)] = \log F(u) + \log F(-l) + \log(1 - e^{l - u}) \quad \text{(logistic)}, \qquad
   \log \Phi(u) + \log(1 - e^{-D}), \; D = \log \Phi(u) - \log \Phi(l) \quad \text{(probit)}

the latter for u + l <= 0, else for (-l, -u) in place of (l, u).
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfcx, expit, logit, ndtri

from bayesgen.core import program
from bayesgen.core.program import static
from bayesgen.core.statistics import Rows
from bayesgen.models.linear_model import scores
from bayesgen.models.row_classifier import RowClassifier, search
from bayesgen.numerics.newton import TOLERANCE, check_ordered_overlap
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.special import gammaln, log_ndtr, namespace, softplus

_FARTHEST = 1e153  # a score beyond has the probabilities 0 and 1 too, and its square would overflow


@dataclass(frozen=True, eq=False)
class OrderedRegression(RowClassifier):
    """Cumulative regression of ordered classes: P(t <= k | x) = F(c_k - x b); see the module.

    Parameters
    ----------
    prior_scale : array, shape (D,)
        Standard deviations of the coefficients, which have mean 0, in units of the noise (log odds, or normal standard
        deviations) per unit of x.
    intercept_scale : float
        Standard deviation of the K - 1 normals that are, sorted, the cut points.
    link : {"logistic", "probit"}
        F: the logistic distribution function, or the normal one.
    classes : tuple, default (0, 1, 2)
        Labels from lowest to highest, in the order of the codes.
    columns : tuple of str, optional
        Names of the columns.

    Examples
    --------
    >>> from bayesgen import fit
    >>> model = OrderedRegression(prior_scale=[2.5], classes=("low", "middle", "high"))
    >>> posterior = fit(model, ([[-1.0], [0.0], [0.2], [0.5], [2.0]], [0, 0, 1, 1, 2]), "map")
    >>> posterior.params["cuts"].round(2), posterior.params["coefficients"].round(2)
    (array([-0.21,  2.42]), array([2.27]))
    >>> np.exp(posterior.log_predictive([[1.0]])).round(3)
    array([[0.077, 0.46 , 0.463]])
    """

    classes: tuple = static(default=(0, 1, 2), kw_only=True)
    link: str = static(default="logistic", kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        if self.link not in _LINKS:
            raise ValueError(f"OrderedRegression: link must be one of {list(_LINKS)}, got {self.link!r}")

    def latents(self):
        sample, dist = program.numpyro.sample, program.dist
        cuts = sample("cuts", _sorted_normals()(self.intercept_scale, self.levels))
        return {"cuts": cuts, "coefficients": sample("coefficients", dist.Normal(0.0, self.prior_scale).to_event(1))}

    def likelihood(self, params, x):
        return program.dist.CategoricalLogits(self._of_classes(params["cuts"], x @ params["coefficients"]).T)

    def _cut(self, cuts, t):
        """Return the cut points below and above classes t, (..., len(t)), 0 where there is none; and where not."""
        places = np.arange(self.levels)[:, None]
        return cuts @ (places == t - 1), cuts @ (places == t), t == 0, t == self.levels

    @np.errstate(under="ignore", over="ignore")
    def _of_classes(self, cuts, score):
        """Return log p(t = k) of all classes from cut points (..., K - 1) and scores (..., n): (..., K, n)."""
        bounds = (end[..., None] for end in self._cut(cuts, np.arange(len(self.classes))))
        return _LINKS[self.link][0](score[..., None, :], *bounds)

    @np.errstate(under="ignore")
    def log_likelihood(self, params, statistics: Rows):
        rows = statistics.data
        log_p = _LINKS[self.link][0](rows["x"] @ params["coefficients"], *self._cut(params["cuts"], rows["t"]))
        return (rows["weight"] * log_p).sum()

    def log_likelihood_rows(self, params, x) -> np.ndarray:
        lead = params["cuts"].shape[:-1]
        score = scores({"intercept": np.zeros(lead), "coefficients": params["coefficients"]}, x)
        return self._of_classes(params["cuts"], np.clip(score, -_FARTHEST, _FARTHEST))

    def written(self, params):
        weights = np.pad(params["coefficients"], ((0, 0), (1, 0)))[:, None]
        return {"kind": "ordered", "link": self.link, "cuts": params["cuts"], "weights": weights}

    def dims(self, site: str) -> tuple[str, ...]:
        return ("cut",) if site == "cuts" else super().dims(site)

    def coords(self) -> dict[str, list]:
        """Return labels along the axes that `dims` names; a cut point has those of the two classes beside it."""
        pairs = zip(self.classes, self.classes[1:], strict=False)
        return super().coords() | {"cut": [f"{low}|{high}" for low, high in pairs]}

    def map(self, statistics):
        """Find the posterior mode by Newton's method; raise ValueError where a class in the middle has no rows."""
        empty = self.counts(statistics)[1:-1] == 0
        if empty.any():
            label = self.classes[1 + int(empty.argmax())]
            raise ValueError(
                f"class {label!r} has no rows: at the mode its two cut points meet, and its probability is 0; use "
                "'nuts' or 'laplace', which average over where they may be"
            )
        return super().map(statistics)

    @property
    def levels(self):
        """Number of cut points."""
        return len(self.classes) - 1

    def _params(self, v):
        return {"cuts": v[: self.levels], "coefficients": v[self.levels :]}

    def _unscaled(self, params, centre, scale):
        coefficients = params["coefficients"] / scale
        return {"cuts": params["cuts"] + centre @ coefficients, "coefficients": coefficients}

    def _pull(self, params, rows):
        """Return the least pull of a row at the cut points beside it."""
        upward, downward, *_ = self._derivatives(params["cuts"], rows["x"] @ params["coefficients"], rows["t"])
        first, last = rows["t"] == 0, rows["t"] == self.levels
        return np.minimum(np.where(last, 1.0, -upward), np.where(first, 1.0, downward)).min(initial=1.0)

    def _check_overlap(self, rows):
        check_ordered_overlap(rows["x"], rows["t"], len(self.classes))

    def _newton(self, statistics, precision, prepared=lambda rows: rows, tolerance=TOLERANCE):
        count = self.counts(statistics) + 0.5
        below = (count.cumsum() / count.sum())[:-1]
        start = np.concatenate([_LINKS[self.link][2](below), np.zeros(self.features)])

        def sums(v, rows, derivatives):
            return self._sums(v, prepared(rows), derivatives)

        return search(statistics, sums, precision, start, tolerance)

    def _sums(self, v, rows, derivatives: bool) -> tuple:
        """Return -log p(t | x, v) of rows; if ``derivatives``, also its gradient and Hessian in v = (c, b).

        The bounds u and l of a row are linear in v: the gradient of u is a 1 at its cut point, and -x.
        """
        cuts, coefficients = v[: self.levels], v[self.levels :]
        if (np.diff(cuts) <= 0).any():
            return (np.inf, 0.0, 0.0) if derivatives else (np.inf,)
        value, gradient, hessian = 0.0, np.zeros(len(v)), np.zeros((len(v), len(v)))
        for piece in pieces(len(rows["t"]), 4 * len(v), 1 << 18):
            x, t, w = rows["x"][piece], rows["t"][piece], rows["weight"][piece]
            score = x @ coefficients
            value -= w @ _LINKS[self.link][0](score, *self._cut(cuts, t))
            if not derivatives:
                continue
            up, down, up_up, down_down, up_down = self._derivatives(cuts, score, t)
            places = np.arange(self.levels)[:, None]
            upper, lower = np.vstack([places == t, -x.T]), np.vstack([places == t - 1, -x.T])
            gradient += upper @ (w * up) + lower @ (w * down)
            across = upper * (w * up_down) @ lower.T
            hessian += upper * (w * up_up) @ upper.T + lower * (w * down_down) @ lower.T + across + across.T
        return (value, gradient, hessian) if derivatives else (value,)

    @np.errstate(under="ignore", over="ignore")
    def _derivatives(self, cuts, score, t):
        """Return the derivatives of -log p(t = t_i) in u, l, u twice, l twice, and both; 0 for a bound that is none."""
        return _LINKS[self.link][1](score, *self._cut(cuts, t))


@functools.cache
def _sorted_normals() -> Any:
    dist: Any = program.dist

    class SortedNormals(dist.Distribution):
        """Independent N(0, scale²), sorted; (size,)."""

        arg_constraints = {"scale": dist.constraints.positive}
        support = dist.constraints.ordered_vector
        reparametrized_params = ["scale"]

        def __init__(self, scale, size, *, validate_args=None):
            self.scale = program.jnp.asarray(scale)
            super().__init__(self.scale.shape, (size,), validate_args=validate_args)

        def sample(self, key: Any, sample_shape=()):
            noise = program.jax.random.normal(key, (*sample_shape, *self.batch_shape, *self.event_shape))
            return self.scale[..., None] * program.jnp.sort(noise, axis=-1)

        def log_prob(self, value):
            density = dist.Normal(0.0, self.scale[..., None]).log_prob(value).sum(-1)
            return density + gammaln(self.event_shape[0] + 1.0)

    return SortedNormals


# -- links: log [F(u) - F(l)] of cut points less score, and the derivatives of its negative ----------------------------


def _log_logistic(score, low, high, first, last):
    xp, inner = namespace(score), ~(first | last)
    above, below = xp.where(last, 0.0, softplus(score - high)), xp.where(first, 0.0, softplus(low - score))
    return xp.where(inner, _log1mexp(xp.where(inner, high - low, 1.0)), 0.0) - above - below


def _slopes_logistic(score, low, high, first, last):
    q = np.where(first | last, 0.0, 1 / np.expm1(np.where(first | last, 1.0, high - low)))
    up, down = np.where(last, 0.0, -expit(score - high)), np.where(first, 0.0, expit(low - score))
    bend = q * (1 + q)
    return up - q, down + q, bend - up * (1 + up), bend + down * (1 - down), -bend


def _log_probit(score, low, high, first, last):
    near, width, inner, _ = _nearer(score, low, high, first, last)
    xp, mass = namespace(score), log_ndtr(near)
    return mass + xp.where(inner, _log1mexp(xp.where(inner, _fall(near, width, mass), 1.0)), 0.0)


def _slopes_probit(score, low, high, first, last):
    near, width, inner, swap = _nearer(score, low, high, first, last)
    share = np.where(inner, -np.expm1(-_fall(near, width, log_ndtr(near))), 1.0)
    a = np.sqrt(2 / np.pi) / erfcx(-near / np.sqrt(2)) / share  # φ(near)/p
    b = np.where(inner, a * np.exp(np.where(inner, width * (near - width / 2), 0.0)), 0.0)  # φ(far)/p
    bend_a, bend_b = np.maximum(a * (a + near), 0.0), np.maximum(b * (b - near + width), 0.0)
    first_order = np.where(swap, -b, -a), np.where(swap, a, b)
    return *first_order, np.where(swap, bend_b, bend_a), np.where(swap, bend_a, bend_b), -a * b


def _nearer(score, low, high, first, last):
    """Return the upper end of each interval, or of its mirror image where it lies right of 0 or has no upper end.

    Return also its width, 1 where it has one end, a mask of the intervals with two ends, and one of the mirrored.
    """
    xp, inner = namespace(score), ~(first | last)
    swap = last | (inner & (high + low > 2 * score))
    return xp.where(swap, score - low, high - score), xp.where(inner, high - low, 1.0), inner, swap


def _fall(near, width, mass):
    """Return log Φ(near) - log Φ(near - width): more than -near width, as log Φ is concave, where both are rounded."""
    return namespace(mass).maximum(mass - log_ndtr(near - width), -near * width)


def _log1mexp(x):
    """Return log(1 - exp(-x)), x > 0."""
    xp = namespace(x)
    return xp.log(-xp.expm1(-x))


_LINKS: dict[str, tuple[Any, Any, Any]] = {
    "logistic": (_log_logistic, _slopes_logistic, logit),
    "probit": (_log_probit, _slopes_probit, ndtri),
}
