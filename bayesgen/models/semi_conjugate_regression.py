r"""Linear regression with priors of weights and noise that are independent: the semi-conjugate one of the lectures.

.. math:: \sigma^2 \sim \mathrm{InvGamma}(a, b), \quad w \sim N(m, V), \quad
   t_i \mid x_i, w, \sigma^2 \sim N(z_i^\top w, \sigma^2)

with z = (1, x) and w = (intercept, coefficients), or z = x and w the coefficients. In `LinearRegression` V is in units
of the noise variance, so that small noise means small weights; here V is in units of t². Given the noise, and given the
weights, the posterior of the other is in closed form; that of both is not. NUTS samples it.

Mode: given σ² that of the weights is w(σ²) = m_n of `LinearRegressionKnownVariance`, and given the weights σ² is
(b + |t - Zw|²/2)/(a + 1 + n/2). The residuals at a mode lie between those of least squares and those at m, so all modes
have their σ² within two known ends: there the density at (w(σ²), σ²), a function of σ² alone, is searched on a grid of
its logarithm, and about the best point. (Hoff 2009, *A First Course in Bayesian Statistical Methods*, section 9.2.)
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from bayesgen import program
from bayesgen.hyperparameters import Hyperparameter, hyperparameter
from bayesgen.models.linear_regression import LinearRegression
from bayesgen.models.normal_weights import NormalWeights
from bayesgen.program import static

_GRID = 60


@dataclass(frozen=True, eq=False)
class SemiConjugateLinearRegression(NormalWeights):
    """Linear regression whose prior of the weights does not scale with the noise; by NUTS, MAP and Laplace.

    Parameters
    ----------
    mean : array, shape (1 + D,), or (D,) without an intercept
        Prior mean m of intercept and coefficients, in units of t and of t per unit of x.
    factor : array, shape (1 + D, 1 + D), or (D, D)
        Lower triangular root F of their prior covariance V = F F', in the same units: ``np.diag`` of standard
        deviations, or ``np.linalg.cholesky(V)``.
    alpha, beta : float
        Shape, and scale in squared units of t, of the inverse-gamma prior on the noise variance, > 0.
    columns : tuple of str, optional
        Names of the columns.
    intercept : bool, keyword, default True
        Whether there is one.

    Examples
    --------
    >>> from bayesgen import fit
    >>> model = SemiConjugateLinearRegression(mean=[0.0], factor=[[10.0]], intercept=False)
    >>> mode = fit(model, ([[1.0], [2.0], [3.0]], [2.1, 3.9, 6.0]), "map").params
    >>> mode["coefficients"].round(2), float(mode["variance"].round(2))
    (array([1.99]), 0.29)
    """

    mean: Hyperparameter = hyperparameter(rank=1)
    factor: Hyperparameter = hyperparameter(rank=2)
    alpha: Hyperparameter = hyperparameter(1.0, positive=True)
    beta: Hyperparameter = hyperparameter(1.0, positive=True)
    columns: tuple[str, ...] = static(default=())
    intercept: bool = static(default=True, kw_only=True)

    def latents(self):
        """Sample the noise variance and, independent of it, the weights."""
        variance = program.numpyro.sample("variance", program.dist.InverseGamma(self.alpha, self.beta))
        return self.weights(1.0) | {"variance": variance}

    def whitened(self, statistics):
        """The same posterior in the logarithm of the variance, and in weights that do not correlate at the mode."""
        from bayesgen.models.line_coordinates import straightened

        return straightened(self, statistics, noise=self._noise(statistics))

    def near(self, statistics):
        """The posterior of `LinearRegression` whose prior is the same at the mode of the variance."""
        factor = self.factor / self._noise(statistics)
        return LinearRegression(
            self.mean, factor, self.alpha, self.beta, self.columns, intercept=self.intercept
        ).update(statistics)

    def _noise(self, statistics) -> float:
        """The standard deviation of the noise at the mode."""
        return float(self.map(statistics)["variance"]) ** 0.5

    def map(self, statistics):
        """Joint mode of weights and variance; see the module."""
        rows, power = self.rows_of(statistics), self.alpha + 1 + statistics.n / 2

        def scale(weights):
            """Minus the logarithm of the density's part in exp(-./σ²)."""
            return self.beta + ((rows[:, -1] - rows[:, :-1] @ weights) ** 2).sum() / 2

        def energy(u):
            squares = self.solve(statistics, np.exp(u / 2))[2]
            return power * u + self.beta * np.exp(-u) + squares / 2

        least = np.linalg.lstsq(rows[:, :-1], rows[:, -1])[0]
        low, high = np.log([scale(least) / power, scale(self.mean) / power])
        grid = np.linspace(low - 0.01, high + 0.01, _GRID)
        best = int(np.argmin([energy(u) for u in grid]))
        around = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
        u = minimize_scalar(energy, bounds=around, method="bounded", options={"xatol": 1e-12}).x
        return self.params(self.solve(statistics, np.exp(u / 2))[0], np.exp(u))
