"""Pictures of regression: lines the posterior holds possible, and where the next observation will lie."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from bayesgen.plot.style import BLUE, QUIET, VERMILION, axes, columns_of, legend, rows_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def regression(
    regressor, x: ArrayLike, t: ArrayLike, *, lines: int = 30, sds: float = 2.0, ax: "Axes | None" = None
) -> "Axes":
    """Draw lines from the posterior of a linear regression, its mean, and a predictive band.

    Parameters
    ----------
    regressor : fitted LinearRegressor
        Of one column.
    x, t : array_like, shape (n,)
        Observations; the picture reaches half their width beyond them.
    lines : int
        Draws of the line.
    sds : float
        Half the width of the band, in predictive standard deviations; 2 hold about 95 %.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax, x, t = axes(ax), np.ravel(x).astype(float), np.asarray(t, float)
    reach = 0.5 * np.ptp(x)
    line = np.linspace(x.min() - reach, x.max() + reach, 201)
    mean, sd = regressor.predict(rows_for(regressor, line[:, None]), return_std=True)
    band = {"color": BLUE, "alpha": 0.13, "linewidth": 0}
    ax.fill_between(line, mean - sds * sd, mean + sds * sd, label=f"next observation, ± {sds:g} sd", **band)
    posterior = regressor.to_arviz().posterior
    intercepts, slopes = (np.ravel(posterior[site].values) for site in ("intercept", "coefficients"))
    picked = np.linspace(0, len(slopes) - 1, lines).astype(int)
    for i, (a, b) in enumerate(zip(intercepts[picked], slopes[picked], strict=True)):
        ax.plot(line, a + b * line, color=BLUE, linewidth=0.7, alpha=0.5, label="" if i else "lines of the posterior")
    ax.plot(line, mean, color=VERMILION, linewidth=1.8, label="posterior mean")
    ax.plot(x, t, "o", color="0.1", markersize=4, label="observed")
    ax.set(xlim=(line[0], line[-1]), xlabel=columns_of(regressor, 1)[0], ylabel="target")
    legend(ax)
    return ax


def squashing(*, ax: "Axes | None" = None) -> "Axes":
    """Draw what makes a score a probability: logistic, probit, and the probit stretched to the logistic's slope at 0.

    Stretched by sqrt(8/π) the two differ by less than 0.02; the probit's tails are lighter.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax, score = axes(ax), np.linspace(-6, 6, 401)
    ax.plot(score, expit(score), color=BLUE, label="logistic 1 / (1 + exp(-a))")
    ax.plot(score, ndtr(score), color=VERMILION, linestyle="--", label="probit Φ(a)")
    stretched = ndtr(score * np.sqrt(np.pi / 8))
    ax.plot(score, stretched, color=QUIET, linestyle=":", linewidth=2.5, label="Φ(a sqrt(π/8))")
    ax.axhline(0.5, color="0.8", linewidth=0.8, zorder=0)
    ax.set(xlim=(-6, 6), ylim=(-0.02, 1.02), xlabel="score a", ylabel="probability")
    legend(ax)
    return ax
