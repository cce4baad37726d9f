r"""Lines with normal weights as NUTS samples them: the logarithm of the noise variance, and uncorrelated weights.

With z = log(σ²/s²), and weights w = m + σ^c F u, where c is 1 if their prior scales with the noise and 0 if it does
not, and m and F are location and root of the posterior (`NormalWeights.solve`), both squares are of lines in u:

.. math:: |F_0^{-1} (w - m_0)|^2/\sigma^{2c} = |a\, e^{-cz/2} + A u|^2, \qquad
   |t - Zw|^2/\sigma^2 = |b\, e^{-z/2} - B u\, e^{(c - 1)z/2}|^2

of the prior N(m_0, σ^{2c} F_0 F_0'), and of the rows. Where c is 1, u is N(0, I) a posteriori and independent of z;
where it is 0, F is the root at the mode of σ, and u is close to that.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen import program
from bayesgen.hyperparameters import Hyperparameter, hyperparameter
from bayesgen.models.coordinates import prior, real, require_shape
from bayesgen.models.line_statistics import LineStatistics
from bayesgen.models.normal_weights import NormalWeights
from bayesgen.numerics.gammas import log_gammas
from bayesgen.program import static
from bayesgen.statistics import Statistics


@dataclass(frozen=True, eq=False)
class LineRows(Statistics):
    """Rows as u sees them: their weight n, b = ``target`` and B = ``rows``."""

    n: np.ndarray
    target: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class LineCoordinates(NormalWeights):
    """A line whose program has the sites "log_variance", z, and "offset", u; ``mean`` and ``factor`` are a and A."""

    mean: Hyperparameter = hyperparameter(rank=1)
    factor: Hyperparameter = hyperparameter(rank=2)
    alpha: Hyperparameter = hyperparameter(1.0, positive=True)
    beta: Hyperparameter = hyperparameter(1.0, positive=True)
    columns: tuple[str, ...] = static(default=())
    intercept: bool = static(default=False, kw_only=True)
    scaled: bool = static(default=True, kw_only=True)

    def latents(self):
        """Sample z and u."""
        z, u = real("log_variance", ()), real("offset", self.mean.shape)
        noise = program.jnp.exp(-z / 2) if self.scaled else 1.0
        prior(
            -self.alpha * z - self.beta * program.jnp.exp(-z) - 0.5 * ((self.mean * noise + self.factor @ u) ** 2).sum()
        )
        return {"log_variance": z, "offset": u}

    def log_likelihood(self, params, statistics):
        """Log p(t | x) of all rows, but for the constant (2π)^(-n/2)."""
        z, u = params["log_variance"], params["offset"]
        noise = program.jnp.exp(-z / 2)
        residual = statistics.target * noise - statistics.rows @ u * (1.0 if self.scaled else noise)
        return -0.5 * (statistics.n * z + (residual**2).sum())

    def near(self, statistics) -> Any:
        """The posterior, or close to it where the prior of the weights does not scale with the noise."""
        return self.revised(alpha=self.alpha + statistics.n / 2)

    def sample_parameters(self, rng, size=()):
        """Draws of z and u, of a record that `near` made."""
        z = np.log(self.alpha) - log_gammas(rng, self.alpha, size)
        return {"log_variance": z, "offset": rng.standard_normal((*size, len(self.mean)))}


def straightened(model: Any, statistics: LineStatistics, noise: float | None = None):
    """Coordinates of a line; of one whose prior does not scale with the noise, at the standard deviation ``noise``."""
    scaled, rows = noise is None, model.rows_of(statistics)
    require_shape("variance", model.alpha + statistics.n / 2)
    centre, root, squares = model.solve(statistics, 1.0 if scaled else noise)
    left = rows[:, -1] - rows[:, :-1] @ centre
    squares = squares if scaled else left @ left
    variance = (model.beta + squares / 2) / (model.alpha + statistics.n / 2)
    scale = variance**0.5
    apart = solve_triangular(model.factor, centre - model.mean, lower=True)
    turned = np.tril(solve_triangular(model.factor, root, lower=True))
    unit = 1.0 if scaled else scale

    def restore(params):
        spread = scale * np.exp(params["log_variance"] / 2)
        step = params["offset"] @ root.T
        return model.params(centre + (spread[..., None] * step if scaled else step), spread**2)

    own = LineCoordinates(apart * unit / scale, turned, model.alpha, model.beta / variance, scaled=scaled)
    return own, LineRows(statistics.n, left / scale, rows[:, :-1] @ root / unit), restore
