"""Pictures of Gaussians: a mean and the next observation, what point estimates leave out, two dimensions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from bayesgen.inference import Inference, fit
from bayesgen.models import NormalKnownVariance
from bayesgen.plot.style import BLUE, COLOURS, DASHES, VERMILION, axes, legend, shades

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def mean_and_predictive(
    prior: NormalKnownVariance, data: ArrayLike, *, unit: str = "", ax: "Axes | None" = None
) -> "Axes":
    """Draw the posterior of a Gaussian mean beside the predictive of the next observation.

    The predictive is wider by the noise of one observation, and stays so however many rows there are.

    Parameters
    ----------
    prior : NormalKnownVariance
        The prior, of one feature.
    data : array_like, shape (n,)
        Observations, drawn as ticks.
    unit : str
        Unit of the horizontal axis.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax, data = axes(ax), np.asarray(data, float)
    posterior = prior.update(prior.statistics(data))
    wide = float(np.hypot(posterior.sd, posterior.noise_sd))
    x = np.linspace(float(posterior.mean) - 4 * wide, float(posterior.mean) + 4 * wide, 401)
    curves = {
        "posterior of the mean": (stats.norm.pdf(x, posterior.mean, posterior.sd), BLUE, "-"),
        "predictive of the next one": (np.exp(posterior.log_predictive(x)), VERMILION, "--"),
    }
    for label, (density, colour, dash) in curves.items():
        ax.plot(x, density, color=colour, linestyle=dash, label=label)
        ax.fill_between(x, density, color=colour, alpha=0.12, linewidth=0)
    return _finish(ax, x, data, unit)


def predictive_densities(
    prior,
    data: ArrayLike,
    inferences: Iterable[str | Inference] = ("ml", "map", "exact"),
    *,
    unit: str = "",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the density of the next observation by maximum likelihood, MAP and the posterior predictive.

    Parameters
    ----------
    prior : Conjugate
        A model of one scalar feature, `NormalKnownVariance` or `NormalInverseGamma`.
    data : array_like, shape (n,)
        Observations, drawn as ticks.
    inferences : sequence of str or Inference
        Ways of inference, one curve each.
    unit : str
        Unit of the horizontal axis.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax, data = axes(ax), np.asarray(data, float)
    predictive = prior.update(prior.statistics(data))
    spread = 4 * np.ptp(data) / len(data) ** 0.5 + np.ptp(data)
    if not spread:  # one row has no spread of its own
        spread = 4 * float(np.hypot(predictive.sd, predictive.noise_sd))
    x = np.linspace(float(predictive.mean) - spread, float(predictive.mean) + spread, 401)
    names = {"ml": "maximum likelihood", "map": "MAP", "exact": "posterior predictive"}
    for i, way in enumerate(inferences):
        density = np.exp(fit(prior, data, way).log_predictive(x))
        label = names.get(way, way) if isinstance(way, str) else type(way).__name__
        ax.plot(x, density, color=COLOURS[i % 7], linestyle=DASHES[::-1][(i + 1) % 4], label=label)
    return _finish(ax, x, data, unit)


def gaussian(
    mean: ArrayLike, covariance: ArrayLike, *, masses: tuple[float, ...] = (0.5, 0.9, 0.99), ax: "Axes | None" = None
) -> "Axes":
    """Draw the density of a bivariate Gaussian, its contours around given probability, and its principal axes.

    Parameters
    ----------
    mean : array_like, shape (2,)
        Mean.
    covariance : array_like, shape (2, 2)
        Covariance matrix.
    masses : tuple of float
        Probability inside each contour, increasing.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax, mean, covariance = axes(ax), np.asarray(mean, float), np.asarray(covariance, float)
    reach = 3.6 * np.sqrt(np.diagonal(covariance).max())
    line = np.linspace(-reach, reach, 161)
    first, second = np.meshgrid(mean[0] + line, mean[1] + line)
    normal = stats.multivariate_normal(mean, covariance)  # pyright: ignore[reportArgumentType]  # SciPy has no stubs
    density = normal.pdf(np.stack([first, second], axis=-1))
    ax.pcolormesh(first, second, density, cmap=shades(BLUE, 0.8), shading="auto", rasterized=True)
    # the squared Mahalanobis distance is chi-squared with two degrees of freedom
    levels = {normal.pdf(mean) * np.exp(-0.5 * stats.chi2.ppf(mass, 2)): f"{mass:.0%}" for mass in masses[::-1]}
    lines = ax.contour(first, second, density, levels=list(levels), colors="0.15", linewidths=0.8)
    ax.clabel(lines, fmt=levels, fontsize=7)
    for length, direction in zip(*_axes_of(covariance), strict=True):
        ends = mean + np.outer([-length, length], direction)
        ax.plot(*ends.T, color=VERMILION, linewidth=1)
    ax.set(xlabel="x1", ylabel="x2", aspect="equal")
    return ax


def _axes_of(covariance):
    value, vector = np.linalg.eigh(covariance)
    return np.sqrt(value), vector.T


def _finish(ax, x, data, unit):
    ax.plot(data, np.zeros_like(data), "|", color="0.1", markersize=14, label="observed", clip_on=False)
    ax.set(xlim=(x[0], x[-1]), xlabel=f"x [{unit}]" if unit else "x", ylabel="density")
    ax.set_ylim(bottom=0)
    legend(ax)
    return ax
