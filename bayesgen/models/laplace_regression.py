r"""Linear regression with a Laplace distribution: of the coefficients (lasso), of the noise (robust), or of both.

.. math:: \sigma^2 \sim \mathrm{InvGamma}(a, b), \quad
   \beta_j \mid \sigma \sim N \text{ or } \mathrm{Laplace}(0, \tau_j \sigma), \quad
   t_i \mid x_i \sim N(\mu_i, \sigma^2) \text{ or } \mathrm{Laplace}(\mu_i, \sigma/\sqrt{2})

with μ_i = α + x_i β; `docs/mathematics/laplace-regression.md` derives the posterior, which has one mode and no closed
form, and its mode: the lasso (Tibshirani 1996) under a Laplace prior, ridge under a Normal one. With both Normal the
model is `LinearRegression` with a diagonal V.

In (β/σ, 1/σ) the negative log density is convex, with kinks |u|. `map` replaces these by sqrt(u² + ε²) and lowers ε
from 1 to 1e-8 by Newton steps. A coefficient |u| < 1e-6 (units of τσ) is then set to 0: the exact zeros of the lasso.
"""

from dataclasses import dataclass

import numpy as np

from bayesgen.core import program
from bayesgen.core.program import static
from bayesgen.core.statistics import Rows
from bayesgen.models.linear_model import GaussianLine, scores, target
from bayesgen.models.model import Hyperparameter, hyperparameter
from bayesgen.numerics.newton import CLOSE, minimise
from bayesgen.numerics.special import namespace

_KINDS = ("normal", "laplace")
_ZERO = 1e-6  # a coefficient below this, in units of its prior scale, is 0 at the mode


@dataclass(frozen=True, eq=False)
class LaplaceLinearRegression(GaussianLine):
    """Linear regression with Laplace coefficients, Laplace noise, or both.

    Parameters
    ----------
    prior_scale : array, shape (D,)
        Scales τ of the coefficients in units of the noise sd, per unit of x: the mean absolute value of a Laplace, the
        standard deviation of a Normal.
    intercept_scale : float
        Standard deviation of the intercept, which is always Normal, in units of the noise sd.
    intercept_mean : float
        Prior mean of the intercept.
    alpha, beta : float
        Shape, and scale in squared units of t, of the inverse-gamma prior on the noise variance, > 0.
    noise, prior : {"normal", "laplace"}
        Distribution of the noise, and of the coefficients. With normal noise NUTS and MAP need only `LineStatistics`.
    columns : tuple of str, optional
        Names of the columns.
    intercept : bool, default True
        If False there is none, and its scale and mean are ignored.

    Examples
    --------
    >>> from bayesgen import fit
    >>> x, t = np.arange(5.0)[:, None], [0.0, 1.1, 1.9, 3.0, 40.0]
    >>> model = LaplaceLinearRegression(prior_scale=[100.0], intercept_scale=100.0)
    >>> fit(model, (x, t), "map").params["coefficients"].round(2)
    array([1.])
    """

    prior_scale: Hyperparameter = hyperparameter(rank=1, positive=True)
    intercept_scale: Hyperparameter = hyperparameter(2.5, positive=True)
    intercept_mean: Hyperparameter = hyperparameter(0.0)
    alpha: Hyperparameter = hyperparameter(1.0, positive=True)
    beta: Hyperparameter = hyperparameter(1.0, positive=True)
    noise: str = static(default="laplace", kw_only=True)
    prior: str = static(default="normal", kw_only=True)
    columns: tuple[str, ...] = static(default=(), kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        for name in ("noise", "prior"):
            if (value := getattr(self, name)) not in _KINDS:
                raise ValueError(f"LaplaceLinearRegression: {name} must be one of {_KINDS}, got {value!r}")

    @property
    def features(self) -> int:
        return self.prior_scale.shape[-1]

    @property
    def smooth(self) -> bool:  # type: ignore[override]  # depends on the distributions
        """True if neither distribution has a kink."""
        return "laplace" not in (self.noise, self.prior)

    def latents(self):
        numpyro, dist = program.numpyro, program.dist
        variance = numpyro.sample("variance", dist.InverseGamma(self.alpha, self.beta))
        sd = variance**0.5
        if self.intercept:
            intercept = numpyro.sample("intercept", dist.Normal(self.intercept_mean, self.intercept_scale * sd))
        else:
            intercept = numpyro.deterministic("intercept", program.jnp.zeros(()))
        family = dist.Laplace if self.prior == "laplace" else dist.Normal
        coefficients = numpyro.sample("coefficients", family(0.0, self.prior_scale * sd).to_event(1))
        return {"intercept": intercept, "coefficients": coefficients, "variance": variance}

    def likelihood(self, params, x):
        normal = super().likelihood(params, x)
        return normal if self.noise == "normal" else program.dist.Laplace(normal.loc, (params["variance"] / 2) ** 0.5)

    def statistics(self, x, t, weight=None):
        """Return `LineStatistics` under normal noise, `Rows` under Laplace noise; see `LinearRegression.statistics`."""
        if self.noise == "normal":
            return super().statistics(x, t, weight)
        x, t, w = self.check_rows(x, t, weight)
        return Rows({"x": x, "t": target(t), "weight": w})

    def log_likelihood(self, params, statistics):
        if self.noise == "normal":
            return super().log_likelihood(params, statistics)
        rows, variance = statistics.data, params["variance"]
        xp = namespace(variance)
        distance = xp.abs(rows["t"] - params["intercept"] - rows["x"] @ params["coefficients"])
        return -(rows["weight"] * (0.5 * xp.log(2 * variance) + (2 / variance) ** 0.5 * distance)).sum()

    def log_likelihood_rows(self, params, x):
        if self.noise == "normal":
            return super().log_likelihood_rows(params, x)
        variance = params["variance"][..., None]
        return -0.5 * np.log(2 * variance) - np.sqrt(2 / variance) * np.abs(x["t"] - scores(params, x["x"]))

    def ml(self, statistics):
        """Return least squares under normal noise; raise under Laplace noise."""
        if self.noise == "normal":
            return super().ml(statistics)
        raise ValueError("maximum likelihood under Laplace noise is not offered; use 'map' or 'nuts'")

    def map(self, statistics):
        if self.noise == "normal":
            rows = self.rows_of(statistics)
            z, y, w, n = rows[:, :-1], rows[:, -1], np.ones(len(rows)), statistics.n
        else:
            z = self.design(statistics.data["x"])
            y, w = statistics.data["t"], statistics.data["weight"]
            n = w.sum()
        scale, centre = self.prior_scale, np.zeros(z.shape[1])
        if self.intercept:
            scale, centre[0] = np.append(self.intercept_scale, scale), self.intercept_mean
        first, y = 1 + self.intercept, y - z @ centre  # index of the first coefficient in v
        power = 2 * (self.alpha + 1) + n + len(scale)
        rows = np.column_stack([y, -z * scale])  # residuals / σ = rows @ v, v = (1/σ, weights/(σ scale))
        v, decrement = np.zeros(rows.shape[1]), np.inf
        v[0] = np.sqrt(power / (2 * self.beta + w @ y**2))
        for epsilon in 10.0 ** -np.arange(9):

            def function(v, derivatives=False, epsilon=epsilon):
                if v[0] <= 0:
                    return np.inf
                residual, slope, curvature = _penalty(rows @ v, self.noise, epsilon, 2**0.5)
                prior, push, stiffness = _penalty(v[first:], self.prior, epsilon)
                level = v[1:first]  # the weight of the intercept, if there is one
                value = self.beta * v[0] ** 2 - power * np.log(v[0]) + w @ residual + 0.5 * level @ level + prior.sum()
                if not derivatives:
                    return value
                first_order = np.array([2 * self.beta * v[0] - power / v[0], *level])
                second_order = np.array([2 * self.beta + power / v[0] ** 2, *np.ones(len(level))])
                bent = curvature > 1e-15 * curvature.max()  # few rows, in the end, under Laplace noise
                hessian = rows[bent].T @ ((w * curvature)[bent, None] * rows[bent])
                hessian += np.diag(np.append(second_order, stiffness))
                return value, (w * slope) @ rows + np.append(first_order, push), hessian

            v, decrement = minimise(function, v, limit=200, tolerance=1e-12)
        if not decrement < CLOSE:
            raise ValueError("the search for the posterior mode did not converge; standardise the columns")
        if self.prior == "laplace":
            v[first:][np.abs(v[first:]) < _ZERO] = 0.0
        return self.params(centre + v[1:] * scale / v[0], v[0] ** -2.0)


def _penalty(u, kind, epsilon, factor=1.0):
    """Return value, slope and curvature of u²/2, or of factor * sqrt(u² + epsilon²)."""
    if kind == "normal":
        return 0.5 * u * u, u, np.ones_like(u)
    root = np.sqrt(u * u + epsilon * epsilon)
    return factor * root, factor * u / root, factor * epsilon**2 / root**3
