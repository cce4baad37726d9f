"""A line with Gaussian noise, whatever the prior of its weights: rows as moments, densities, least squares."""

import math
from collections.abc import Mapping

import numpy as np

from bayesgen import program
from bayesgen.models.discriminative import Discriminative, scores
from bayesgen.models.gaussian import LOG_2PI
from bayesgen.numerics.existence import check_rank
from bayesgen.numerics.special import namespace
from bayesgen.statistics import Moments, moments

_RANK = 1e-7  # of a column's spread, what is left of it beside the others: below, sums of squares cannot tell it from 0


class GaussianLine(Discriminative):
    """A line with Gaussian noise; ``params`` hold "intercept", "coefficients" and "variance"."""

    def __call__(self, x, t=None):
        """Run the program row by row.

        Parameters
        ----------
        x : array, shape (n, D)
            Columns.
        t : array, shape (n,), optional
            Observed target; None draws it.
        """
        model, x = self.traced(), program.jnp.asarray(x)
        params = model.latents()
        with program.numpyro.plate("obs", x.shape[0]):
            location = params["intercept"] + x @ params["coefficients"]
            return program.numpyro.sample("t", model.likelihood(location, params["variance"]), obs=t)

    def likelihood(self, location, variance):
        """Distribution of the target about its location."""
        return program.dist.Normal(location, variance**0.5)

    def statistics(self, x, t, weight=None) -> Moments:
        """Count, mean and scatter of (x, t): one pass, additive over pieces of the data, free of hyperparameters.

        Parameters
        ----------
        x : array, shape (n, D)
            Columns; a missing value is an error.
        t : array, shape (n,)
            Target.
        weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.
        """
        x, t, w = self.check_rows(x, t, weight)
        return moments(np.column_stack([x, target(t)]), weight=w, vector=True)

    def log_likelihood(self, params, statistics):
        """Log p(t | x, params) of all rows: -n log(2πσ²)/2 - (n (t̄ - a - x̄b)² + c'Sc)/2σ², c = (-b, 1)."""
        n, mean, variance = statistics.n, statistics.mean, params["variance"]
        xp = namespace(params["coefficients"])
        contrast = xp.concatenate([-params["coefficients"], xp.ones(1)])
        squares = n * (mean @ contrast - params["intercept"]) ** 2 + contrast @ statistics.scatter @ contrast
        return -0.5 * (n * (LOG_2PI + xp.log(variance)) + squares / variance)

    def check(self, x) -> Mapping[str, np.ndarray]:
        """Return rows (x, t), a pair or a mapping, as a mapping to arrays, or raise what is wrong with them."""
        x, t = (x["x"], x["t"]) if isinstance(x, Mapping) else x
        x, t, _ = self.check_rows(x, t, None)
        return {"x": x, "t": target(t)}

    def log_likelihood_rows(self, params, x) -> np.ndarray:
        """Log p(t_i | x_i, params) for rows checked by `check`; (draws, n)."""
        variance = params["variance"][..., None]
        return -0.5 * (LOG_2PI + np.log(variance) + (x["t"] - scores(params, x["x"])) ** 2 / variance)

    def moments_of_draws(self, params, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the target at each row of x (n, D), over draws of the parameters (draws, ...)."""
        x = self.check_columns(x)
        weights = np.column_stack([params["intercept"], params["coefficients"]])
        rows, centre = np.column_stack([np.ones(len(x)), x]), weights.mean(0)
        spread = (weights - centre).T @ (weights - centre) / len(weights)
        return rows @ centre, ((rows @ spread) * rows).sum(1) + params["variance"].mean()

    def least_squares(self, statistics: Moments) -> tuple[np.ndarray, float]:
        """Weights (1 + D,) of least squares, and the sum of squared residuals; ValueError where not determined."""
        mean, rows = statistics.mean, square_root(statistics)[1:, 1:]
        noise = np.sqrt(statistics.n * statistics.resolution()[:-1])
        spread = check_rank(rows[:, :-1], noise, self.columns, _RANK)
        coefficients = np.linalg.lstsq(rows[:, :-1] / spread, rows[:, -1])[0] / spread
        squares = float(((rows[:, -1] - rows[:, :-1] @ coefficients) ** 2).sum())
        return np.append(mean[-1] - mean[:-1] @ coefficients, coefficients), squares

    def ml(self, statistics: Moments):
        """Least squares, and the mean squared residual (divisor n); ValueError where they are not determined."""
        weights, squares = self.least_squares(statistics)
        if squares <= max(1e-14 * statistics.scatter[-1, -1], statistics.n * statistics.resolution()[-1]):
            raise ValueError(
                "maximum likelihood of the noise variance does not exist: the columns explain the target of these "
                f"{statistics.n:g} rows exactly; use 'map', 'exact' or 'nuts'"
            )
        return self.params(weights, squares / statistics.n)

    @staticmethod
    def params(weights, variance):
        """Name the parts of weights (..., 1 + D)."""
        return {"intercept": weights[..., 0], "coefficients": weights[..., 1:], "variance": np.asarray(variance)}


def square_root(statistics: Moments) -> np.ndarray:
    """Return D + 2 rows of (1, x, t) that have the sums of squares and products of all the rows: (D + 2, D + 2)."""
    n, mean, size = float(statistics.n), statistics.mean, len(statistics.mean)
    rows = np.zeros((size + 1, size + 1))
    rows[0] = math.sqrt(n) * np.append(1.0, mean)
    scale = np.sqrt(np.diagonal(statistics.scatter))  # a root of the correlations: units do not mix
    unit = np.where(scale > 0, scale, 1.0)
    value, vector = np.linalg.eigh(statistics.scatter / unit / unit[:, None])
    rows[1:, 1:] = np.sqrt(np.maximum(value, 0.0))[:, None] * vector.T * scale
    return rows


def target(t) -> np.ndarray:
    """Return the target as floats, or raise what is wrong with it."""
    try:
        if np.asarray(t).dtype.kind in "cmM":  # they would convert, to something else
            raise TypeError
        t = np.asarray(t, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"the target must be numbers, got {np.asarray(t).dtype} values") from None
    if not np.isfinite(t).all():
        raise ValueError(f"the target is NaN (missing) or inf in row {int(np.argmax(~np.isfinite(t)))}; drop the row")
    return t
