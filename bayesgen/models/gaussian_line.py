"""A line with Gaussian noise, whatever the prior of its weights: what it keeps of rows, densities, least squares.

Least squares are solved by the triangular factor of `LineStatistics`: coefficients b with R_xx b = r_xt, squared
residuals of sum r_tt². (Golub and Van Loan 2013, *Matrix Computations*, section 5.3.)
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen import program
from bayesgen.models.discriminative import Discriminative, scores
from bayesgen.models.gaussian import LOG_2PI
from bayesgen.models.line_statistics import LineStatistics
from bayesgen.numerics.existence import check_rank
from bayesgen.numerics.special import namespace

_RANK = 1e-12  # of a column's spread, what is left of it beside the others: below, float64 cannot tell it from 0


class GaussianLine(Discriminative):
    """A line with Gaussian noise; ``params`` hold "intercept" (0 if there is none), "coefficients" and "variance"."""

    intercept: bool = True  # whether there is one

    def __call__(self, x, t=None, *, subsample_size: int | None = None):
        """Run the program row by row.

        Parameters
        ----------
        x : array, shape (n, D)
            Columns.
        t : array, shape (n,), optional
            Observed target; None draws it.
        subsample_size : int, optional
            How many of the rows, chosen at random, stand for all of them (NumPyro's `HMCECS`, SVI by minibatches).
        """
        model, x = self.traced(), program.jnp.asarray(x)
        params = model.latents()
        with program.subsampled(len(x), subsample_size) as rows:
            location = params["intercept"] + x[rows] @ params["coefficients"]
            with program.numpyro.plate("obs", len(x), subsample_size=subsample_size):
                seen = None if t is None else program.jnp.asarray(t)[rows]
                return program.numpyro.sample("t", model.likelihood(location, params["variance"]), obs=seen)

    def likelihood(self, location, variance):
        """Distribution of the target about its location."""
        return program.dist.Normal(location, variance**0.5)

    def statistics(self, x, t, weight=None) -> Any:
        """`LineStatistics` of (x, t): one pass, additive over pieces of the data, free of hyperparameters.

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
        statistics = LineStatistics.of(x, target(t), w)
        large = ~np.isfinite(statistics.factor).all(0)  # of these the first: what overflows spoils those to its right
        if large.any():
            names = [*(f"column {name!r}" for name in self.columns or range(self.features)), "the target"]
            raise ValueError(f"{names[large.argmax()]} has values too large for float64; give it in larger units")
        return statistics

    def log_likelihood(self, params, statistics):
        """Log p(t | x, params) of all rows: -n log(2πσ²)/2 - (n (t̄ - a - x̄b)² + |R c|²)/2σ², c = (-b, 1)."""
        n, mean, variance = statistics.n, statistics.mean, params["variance"]
        xp = namespace(params["coefficients"])
        contrast = xp.concatenate([-params["coefficients"], xp.ones(1)])
        squares = n * (mean @ contrast - params["intercept"]) ** 2 + ((statistics.factor @ contrast) ** 2).sum()
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
        rows, centre = np.column_stack([np.ones(len(x)), x]), weights.mean(0)  # an intercept that is not there is 0
        spread = (weights - centre).T @ (weights - centre) / len(weights)
        return rows @ centre, ((rows @ spread) * rows).sum(1) + params["variance"].mean()

    def least_squares(self, statistics: LineStatistics) -> tuple[np.ndarray, float]:
        """Weights of least squares, and the root of the squared residuals; ValueError where not determined."""
        mean, factor = statistics.mean, statistics.factor
        if not self.intercept:
            _, factor = np.linalg.qr(self.rows_of(statistics))
        check_rank(factor[:-1, :-1], statistics.noise()[:-1], self.columns, _RANK)
        coefficients = solve_triangular(factor[:-1, :-1], factor[:-1, -1])
        if not self.intercept:
            return coefficients, abs(float(factor[-1, -1]))
        return np.append(mean[-1] - mean[:-1] @ coefficients, coefficients), float(factor[-1, -1])

    def design(self, x) -> np.ndarray:
        """Rows z = (1, x), or x without an intercept."""
        return np.column_stack([np.ones(len(x)), x]) if self.intercept else x

    def rows_of(self, statistics: LineStatistics) -> np.ndarray:
        """D + 2 rows (z, t) that have the sums of squares and products of all the rows."""
        rows = statistics.rows()
        return rows if self.intercept else rows[:, 1:]

    def ml(self, statistics):
        """Least squares, and the mean squared residual (divisor n); ValueError where they are not determined."""
        weights, residual = self.least_squares(statistics)
        if residual <= max(_RANK * np.linalg.norm(statistics.factor[:, -1]), statistics.noise()[-1]):
            raise ValueError(
                "maximum likelihood of the noise variance does not exist: the columns explain the target of these "
                f"{statistics.n:g} rows exactly; use 'map', 'exact' or 'nuts'"
            )
        return self.params(weights, residual**2 / statistics.n)

    def params(self, weights, variance):
        """Name the parts of weights (..., 1 + D), or (..., D) without an intercept."""
        intercept, coefficients = weights[..., 0], weights[..., 1:]
        if not self.intercept:
            intercept, coefficients = np.zeros(weights.shape[:-1]), weights
        return {"intercept": intercept, "coefficients": coefficients, "variance": np.asarray(variance)}


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
