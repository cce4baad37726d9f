r"""Logistic, softmax and probit regression: classes given the columns.

.. math:: a_c \sim N(0, s_0^2), \quad b_{cj} \sim N(0, s_j^2), \qquad
   P(t_i = k \mid x_i) = \mathrm{link}_k(a + x_i b)

Two classes have one score, of the second class against the first: the logistic link 1/(1 + e⁻ˢ), or the probit link
Φ(s). With K > 2 classes the link is the softmax eˢᵏ/Σ eˢ. The scores then come in two ways, which are two models:

- symmetric (the default): every class has a score. Adding one vector to all of them changes no probability, so the
  prior alone decides it. No class is special: naming the classes in another order changes nothing.
- pinned: the score of the last class is 0, and the others are log odds against it. The log odds of class k against the
  last then have prior sd s, between two others √2 s; in the symmetric model all have √2 s. So posteriors and
  probabilities differ; with much data they agree. Pinned with K = 2 is the logistic model up to the sign.

There are no sufficient statistics: the rows are kept. The posterior density is log-concave, with one mode, found by
Newton's method. (Bishop 2006, sections 4.3.2-4.3.5. Gelman et al. 2008, *Annals of Applied Statistics* 2, give the
scale 2.5, to a Cauchy and for columns of standard deviation 1/2.)
"""

import abc
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import helmert
from scipy.special import erfcx, expit, softmax

from bayesgen.core import program
from bayesgen.core.program import static
from bayesgen.core.statistics import Rows
from bayesgen.models.linear_model import scores
from bayesgen.models.row_classifier import RowClassifier, search
from bayesgen.numerics.newton import TOLERANCE, check_overlap
from bayesgen.numerics.pieces import pieces, scratch
from bayesgen.numerics.special import log_ndtr, namespace, softplus


@dataclass(frozen=True, eq=False)
class LinearClassifier(RowClassifier):
    """Classes through scores a + x b with Normal priors; axes are draws, then scores C (1, K - 1 or K), then rows."""

    @property
    def scored(self) -> tuple:
        """The classes that have a score."""
        return self.classes[1:]

    # -- the link, which a subclass writes ---------------------------------------------------------------------------

    @abc.abstractmethod
    def log_probability(self, score) -> Any:
        """Return log p(t = k) from scores (..., C, n): (..., K, n). NumPy or JAX."""

    @abc.abstractmethod
    def log_chosen(self, score, t) -> Any:
        """Return log p(t = t_i) of each row from scores (C, n) and codes (n,): (n,). NumPy or JAX."""

    @abc.abstractmethod
    def derivatives(self, score, t) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient (C, n) and Hessian (C, C, n) of -log p(t = t_i) in the scores."""

    # -- the program -------------------------------------------------------------------------------------------------

    def latents(self):
        """Sample intercepts and coefficients, in the plate "class" where there are several scores."""
        if len(self.classes) == 2:
            return self._sample("intercept", "coefficients")
        with program.numpyro.plate("class", len(self.scored)):
            return self._sample("intercept", "coefficients")

    def _sample(self, *names):
        numpyro, dist = program.numpyro, program.dist
        intercept = numpyro.sample(names[0], dist.Normal(0.0, self.intercept_scale))
        coefficients = numpyro.sample(names[1], dist.Normal(0.0, self.prior_scale).to_event(1))
        return {"intercept": intercept, "coefficients": coefficients}

    def likelihood(self, params, x):
        return program.dist.CategoricalLogits(self.log_probability(self.scores(params, x)).T)

    def scores(self, params, x):
        """Return the scores (C, n) of one draw; NumPy or JAX."""
        intercept, coefficients = params["intercept"], params["coefficients"]
        return (coefficients @ x.T + intercept[..., None]).reshape(-1, x.shape[0])

    # -- rows and densities ------------------------------------------------------------------------------------------

    def log_likelihood(self, params, statistics: Rows):
        rows = statistics.data
        return (rows["weight"] * self.log_chosen(self.scores(params, rows["x"]), rows["t"])).sum()

    def log_likelihood_rows(self, params, x) -> np.ndarray:
        score = scores(params, x)
        return self.log_probability(score[:, None] if len(self.classes) == 2 else score)

    def dims(self, site: str) -> tuple[str, ...]:
        return ("class",) * (len(self.classes) > 2) + super().dims(site)

    def coords(self) -> dict[str, list]:
        """Return labels along the axes that `dims` names; "class" holds the classes that have a score."""
        return super().coords() | ({"class": list(self.scored)} if len(self.classes) > 2 else {})

    # -- point estimates ---------------------------------------------------------------------------------------------

    def _params(self, v):
        weights = v.reshape(len(self.scored), -1)
        weights = weights[0] if len(self.classes) == 2 else weights
        return {"intercept": weights[..., 0], "coefficients": weights[..., 1:]}

    def _unscaled(self, params, centre, scale):
        coefficients = params["coefficients"] / scale
        return {"intercept": params["intercept"] - coefficients @ centre, "coefficients": coefficients}

    def _pull(self, params, rows):
        return np.abs(self.derivatives(self.scores(params, rows["x"]), rows["t"])[0]).max(0).min(initial=1.0)

    def _check_overlap(self, rows):
        check_overlap(rows["x"], rows["t"], self.classes, self.columns)

    def _newton(self, statistics, precision, prepared=lambda rows: rows, tolerance=TOLERANCE):
        shape = len(self.scored), len(precision)

        def design(rows):
            rows = prepared(rows)
            return rows | {"columns": np.vstack([np.ones(len(rows["x"])), rows["x"].T])}

        if not statistics.dear:
            statistics, design = Rows(design(statistics.data)), lambda rows: rows  # once for all steps

        def sums(v, rows, derivatives):
            return self._sums(v.reshape(shape), design(rows), derivatives)

        return search(statistics, sums, np.tile(precision, shape[0]), np.zeros(np.prod(shape)), tolerance)

    def _sums(self, weights, rows, derivatives: bool) -> tuple:
        """Return -log p(t | x, w) of rows; if ``derivatives``, also its gradient and Hessian in the weights.

        The rows come as columns (1 + D, n), the first of ones, so that sums run along long vectors.
        """
        columns, (count, size), value, gradient = rows["columns"], weights.shape, 0.0, np.zeros(weights.shape)
        hessian = np.zeros((count, size, count, size))
        for piece in pieces(columns.shape[1], size * (count + 1), 1 << 16):  # pieces that stay in the cache
            z, t, w = columns[:, piece], rows["t"][piece], rows["weight"][piece]
            score = weights @ z
            value -= w @ self.log_chosen(score, t)
            if not derivatives:
                continue
            slope, curvature = self.derivatives(score, t)
            gradient += (w * slope) @ z.T
            weighed = scratch("weighed", z.shape)
            for c in range(count):
                for d in range(c + 1):
                    block = np.multiply(z, w * curvature[c, d], out=weighed) @ z.T
                    hessian[c, :, d] += block
                    if d < c:
                        hessian[d, :, c] += block
        return (value, gradient.ravel(), hessian.reshape(count * size, -1)) if derivatives else (value,)


@dataclass(frozen=True, eq=False)
class LogisticRegression(LinearClassifier):
    """Logistic regression for two classes, softmax regression for more; see the module.

    Parameters
    ----------
    prior_scale : array, shape (D,)
        Standard deviations of the coefficients, which have mean 0, in log odds per unit of x.
    intercept_scale : float
        Standard deviation of the intercept.
    symmetric : bool, default True
        With more than two classes: True gives every class a score, False pins the last class's to 0.
    classes : tuple, default (0, 1)
        Labels in the order of the codes.
    columns : tuple of str, optional
        Names of the columns.

    Examples
    --------
    >>> from bayesgen import fit
    >>> model = LogisticRegression(prior_scale=[2.5])
    >>> posterior = fit(model, ([[-1.0], [0.0], [0.5], [2.0]], [0, 0, 1, 1]), "map")
    >>> np.exp(posterior.log_predictive([[1.0]])).round(3)
    array([[0.176, 0.824]])
    """

    symmetric: bool = static(default=True, kw_only=True)

    @property
    def scored(self):
        """The classes that have a score: the second of two; of more, all (symmetric) or all but the last (pinned)."""
        if len(self.classes) == 2:
            return self.classes[1:]
        return self.classes if self.symmetric else self.classes[:-1]

    def latents(self):
        """Sample intercepts and coefficients, in the plate "class" where there are several scores.

        The symmetric model samples the contrasts z = H w instead, H an orthogonal Helmert matrix: the mean over classes
        and its orthogonal contrasts. They have the same prior as w, but only the contrasts feel the data, where every w
        depends on all others. This takes NUTS from 72 leapfrog steps a draw to 6 (3 classes, 300 rows).
        """
        if len(self.scored) < len(self.classes):
            return super().latents()
        numpyro, basis = program.numpyro, helmert(len(self.classes), full=True)
        with numpyro.plate("contrast", len(self.classes)):
            sites = self._sample("intercept_contrasts", "coefficient_contrasts")
        return {name: numpyro.deterministic(name, basis.T @ value) for name, value in sites.items()}

    def dims(self, site):
        if site.endswith("_contrasts"):
            return ("contrast", "feature")[: 1 + site.startswith("coefficient")]
        return super().dims(site)

    def _all(self, score):
        """Add the score 0 of the class that has none: (..., C, n) -> (..., K, n)."""
        if len(self.scored) == len(self.classes):
            return score
        xp = namespace(score)
        parts = [score, xp.zeros_like(score[..., :1, :])]
        return xp.concatenate(parts[::-1] if len(self.classes) == 2 else parts, axis=-2)

    def written(self, params):
        weights = np.concatenate([params["intercept"][..., None], params["coefficients"]], axis=-1)
        return {"kind": "softmax", "weights": self._all(weights.reshape(len(weights), -1, 1 + self.features))}

    @np.errstate(under="ignore")
    def log_probability(self, score):
        score = self._all(score)
        xp = namespace(score)
        shifted = score - score.max(-2, keepdims=True)
        return shifted - xp.log(xp.exp(shifted).sum(-2, keepdims=True))

    @np.errstate(under="ignore")
    def log_chosen(self, score, t):
        if len(self.classes) == 2:
            return -softplus((1 - 2 * t) * score[0])
        chosen = t == np.arange(len(self.classes))[:, None]
        return namespace(score).where(chosen, self.log_probability(score), 0.0).sum(0)

    @np.errstate(under="ignore")
    def derivatives(self, score, t):
        """Return the probabilities less 1[t = c], and diag(p) - p p'."""
        if len(self.classes) == 2:
            p = expit(score)
            return p - t, (p * (1 - p))[None]
        count = len(self.scored)
        p = softmax(self._all(score), axis=0)[:count]
        codes = np.arange(count)[:, None]
        curvature = -p[:, None] * p
        curvature[np.arange(count), np.arange(count)] += p
        return p - (t == codes), curvature

    def map(self, statistics):
        """Find the posterior mode; in the symmetric model the prior pulls the mean of all scores to 0."""
        params = super().map(statistics)
        if len(self.scored) < len(self.classes):
            return params
        return {site: value - value.mean(0) for site, value in params.items()}  # which is 0 but for rounding

    def ml(self, statistics):
        """Find the maximum likelihood, of the symmetric model the one at which weights sum to 0 over the classes."""
        if len(self.scored) < len(self.classes):
            return super().ml(statistics)
        pinned = replace(self, symmetric=False).ml(statistics)
        scored = {site: np.concatenate([value, 0 * value[:1]]) for site, value in pinned.items()}
        return {site: value - value.mean(0) for site, value in scored.items()}


@dataclass(frozen=True, eq=False)
class ProbitRegression(LinearClassifier):
    """Probit regression for two classes: P(t = 1 | x) = Φ(a + x b); see the module.

    Parameters
    ----------
    prior_scale : array, shape (D,)
        Standard deviations of the coefficients, which have mean 0, in standard deviations of the latent noise per unit
        of x. A probit coefficient is about 0.6 times a logistic one.
    intercept_scale, classes, columns
        As of `LogisticRegression`; there are two classes.

    Examples
    --------
    >>> from bayesgen import fit
    >>> model = ProbitRegression(prior_scale=[2.5])
    >>> posterior = fit(model, ([[-1.0], [0.0], [0.5], [2.0]], [0, 0, 1, 1]), "map")
    >>> np.exp(posterior.log_predictive([[1.0]])).round(3)
    array([[0.08, 0.92]])
    """

    def __post_init__(self):
        super().__post_init__()
        if len(self.classes) != 2:
            raise ValueError(f"ProbitRegression takes two classes, got {len(self.classes)}; use LogisticRegression")

    def written(self, params):
        """Return it as the ordered regression of two classes, cut at minus the intercept."""
        weights = np.pad(params["coefficients"], ((0, 0), (1, 0)))[:, None]
        return {"kind": "ordered", "link": "probit", "cuts": -params["intercept"][:, None], "weights": weights}

    @np.errstate(under="ignore")
    def log_probability(self, score):
        """Return (log Φ(-s), log Φ(s)), exact in both tails."""
        xp = namespace(score)
        return xp.concatenate([log_ndtr(-score), log_ndtr(score)], axis=-2)

    @np.errstate(under="ignore")
    def log_chosen(self, score, t):
        return log_ndtr((2 * t - 1) * score[0])

    @np.errstate(under="ignore")
    def derivatives(self, score, t):
        """Return the inverse Mills ratio m(s) = φ(s)/Φ(s), with the sign of the class, and m (m + s)."""
        sign = 2 * t - 1
        s = sign * score
        mills = np.sqrt(2 / np.pi) / erfcx(-s / np.sqrt(2))
        return -sign * mills, np.maximum(mills * (mills + s), 0.0)[None]
