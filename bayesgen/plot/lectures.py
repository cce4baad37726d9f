"""Pictures of the lecture models: the coin, Gaussians, the prior of a leaf, and regression.

A coin is drawn as densities of its probability of heads, before and after tosses. Gaussians show a mean beside the next
observation, predictives by several inferences, and contours in two dimensions. A leaf shows its prior predictive.
Regression shows lines from the posterior with a predictive band, and the functions that make a score a probability.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import expit, ndtr

from bayesgen.inference import fit
from bayesgen.models import BetaBernoulli, NormalInverseGamma, NormalKnownVariance
from bayesgen.models.leaf import ConjugateFamily
from bayesgen.numerics.checks import check_kind
from bayesgen.plot import style
from bayesgen.plot.style import BLUE, COLOURS, DASHES, QUIET, VERMILION, Axes, axes, legend

_THETA = np.linspace(0, 1, 401)[1:-1]  # without the ends, where a density may be infinite


def beta_densities(parameters: Iterable[tuple[float, float]], *, ax: Axes | None = None) -> Axes:
    """Draw the densities of Beta(a, b).

    Parameters
    ----------
    parameters : iterable of (a, b)
        Parameters of each density.
    ax : matplotlib Axes, default: the current Axes
    """
    pairs = np.asarray([*parameters] if np.iterable(parameters) else None, float)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not (pairs > 0).all():
        raise ValueError(f"parameters must be pairs (a, b) of numbers > 0, got {parameters!r}")
    ax, highest = axes(ax), 1.0
    for i, (a, b) in enumerate(pairs.tolist()):
        density = stats.beta.pdf(_THETA, a, b)
        highest = max(highest, density[5:-5].max())  # a pole at an end does not set the scale
        ax.plot(_THETA, density, color=COLOURS[i % 7], linestyle=DASHES[i % 4], label=f"Beta({a:g}, {b:g})")
    return _finish_coin(ax, highest)


def coin(prior: BetaBernoulli, *tosses: ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw the prior of a coin, and the posterior after each set of tosses, with its mean.

    A few tosses move the prior a little; many leave a narrow posterior wherever the prior was.

    Parameters
    ----------
    prior : BetaBernoulli
        The prior, of one coin.
    *tosses : array_like of 0 and 1
        Sets of tosses, each combined with the same prior.
    ax : matplotlib Axes, default: the current Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = coin(BetaBernoulli(2, 2), [1, 1], [1, 0] * 20, ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['prior Beta(2, 2)', 'after 2 heads in 2 tosses', 'after 20 heads in 40 tosses']
    """
    check_kind("prior", prior, BetaBernoulli, "a BetaBernoulli")
    ax = axes(ax)
    density = stats.beta.pdf(_THETA, prior.a, prior.b)
    ax.plot(_THETA, density, color=QUIET, linestyle="--", label=f"prior Beta({prior.a:g}, {prior.b:g})")
    highest = density[5:-5].max()
    for i, data in enumerate(tosses):
        posterior = prior.update(prior.statistics(data))
        density, colour = stats.beta.pdf(_THETA, posterior.a, posterior.b), COLOURS[i % 7]
        label = f"after {posterior.a - prior.a:g} heads in {len(np.asarray(data))} tosses"
        _shaded(ax, _THETA, density, colour, DASHES[i % 4], label)
        ax.axvline(float(posterior.mean), color=colour, linewidth=0.8, linestyle=":")
        highest = max(highest, density[5:-5].max())
    return _finish_coin(ax, highest)


def _shaded(ax: Axes, x, density, colour: str, dash: str = "-", label: str | None = None) -> None:
    ax.plot(x, density, color=colour, linestyle=dash, label=label)
    ax.fill_between(x, density, color=colour, alpha=0.12, linewidth=0)


def _finish_coin(ax, highest):
    ax.set(xlim=(0, 1), ylim=(0, 1.08 * highest), xlabel="probability of heads θ", ylabel="density")
    return legend(ax)


def mean_and_predictive(prior: NormalKnownVariance, data: ArrayLike, *, unit: str = "", ax: Axes | None = None) -> Axes:
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
    ax : matplotlib Axes, default: the current Axes
    """
    check_kind("prior", prior, NormalKnownVariance, "a NormalKnownVariance")
    ax, data = axes(ax), np.asarray(data, float)
    posterior = prior.update(prior.statistics(data))
    wide = float(np.hypot(posterior.sd, posterior.noise_sd))
    x = np.linspace(float(posterior.mean) - 4 * wide, float(posterior.mean) + 4 * wide, 401)
    _shaded(ax, x, stats.norm.pdf(x, posterior.mean, posterior.sd), BLUE, "-", "posterior of the mean")
    _shaded(ax, x, np.exp(posterior.log_predictive(x)), VERMILION, "--", "predictive of the next one")
    return _finish(ax, x, data, unit)


def predictive_densities(prior, data: ArrayLike, *, unit: str = "", ax: Axes | None = None) -> Axes:
    """Draw the density of the next observation by maximum likelihood, MAP and the posterior predictive.

    Parameters
    ----------
    prior : Conjugate
        A model of one scalar feature, `NormalKnownVariance` or `NormalInverseGamma`.
    data, unit
        As for `mean_and_predictive`.
    ax : matplotlib Axes, default: the current Axes
    """
    check_kind("prior", prior, (NormalKnownVariance, NormalInverseGamma), "a NormalKnownVariance or NormalInverseGamma")
    ax, data = axes(ax), np.asarray(data, float)
    predictive = prior.update(prior.statistics(data))
    spread = 4 * np.ptp(data) / len(data) ** 0.5 + np.ptp(data)
    if not spread:  # one row has no spread of its own
        spread = 4 * float(np.hypot(predictive.sd, predictive.noise_sd))
    x = np.linspace(float(predictive.mean) - spread, float(predictive.mean) + spread, 401)
    names = {"ml": "maximum likelihood", "map": "MAP", "exact": "posterior predictive"}
    for i, (way, label) in enumerate(names.items()):
        density = np.exp(fit(prior, data, way).log_predictive(x))
        ax.plot(x, density, color=COLOURS[i % 7], linestyle=DASHES[::-1][(i + 1) % 4], label=label)
    return _finish(ax, x, data, unit)


def gaussian(mean: ArrayLike, covariance: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw the density of a bivariate Gaussian, contours that enclose 50, 90 and 99 % of it, and its principal axes.

    Parameters
    ----------
    mean : array_like, shape (2,)
        Mean.
    covariance : array_like, shape (2, 2)
        Covariance matrix.
    ax : matplotlib Axes, default: the current Axes
    """
    ax, mean, covariance = axes(ax), np.asarray(mean, float), np.asarray(covariance, float)
    reach = 3.6 * np.sqrt(np.diagonal(covariance).max())
    line = np.linspace(-reach, reach, 161)
    first, second = np.meshgrid(mean[0] + line, mean[1] + line)
    normal = stats.multivariate_normal(mean, covariance)  # pyright: ignore[reportArgumentType]  # SciPy has no stubs
    density = normal.pdf(np.stack([first, second], axis=-1))
    ax.pcolormesh(first, second, density, cmap=style.shades(BLUE, 0.8), shading="auto", rasterized=True)
    # the squared Mahalanobis distance is chi-squared with two degrees of freedom
    levels = {normal.pdf(mean) * np.exp(-0.5 * stats.chi2.ppf(mass, 2)): f"{mass:.0%}" for mass in (0.99, 0.9, 0.5)}
    lines = ax.contour(first, second, density, levels=list(levels), colors="0.15", linewidths=0.8)
    ax.clabel(lines, fmt=levels, fontsize=7)
    variances, directions = np.linalg.eigh(covariance)
    for length, direction in zip(np.sqrt(variances), directions.T, strict=True):
        ends = mean + np.outer([-length, length], direction)
        ax.plot(*ends.T, color=VERMILION, linewidth=1)
    ax.set(xlabel="x1", ylabel="x2", aspect="equal")
    return ax


def _finish(ax, x, data, unit):
    ax.plot(data, np.zeros_like(data), "|", color="0.1", markersize=14, label="observed", clip_on=False)
    ax.set(xlim=(x[0], x[-1]), xlabel=f"x [{unit}]" if unit else "x", ylabel="density")
    ax.set_ylim(bottom=0)
    return legend(ax)


def prior(leaf, *, unit: str = "", ax: Axes | None = None) -> Axes:
    """Draw the prior predictive of the next value, with the parameters integrated out.

    Draw it before there are data, to see if the hyperparameters express your beliefs.

    Parameters
    ----------
    leaf : conjugate leaf of one feature
        `BetaBernoulli`, `DirichletCategorical`, `GammaPoisson`, `NormalInverseGamma`, `LogNormal` or
        `NormalKnownVariance`.
    unit : str
        Unit of the values.
    ax : matplotlib Axes, default: the current Axes

    Examples
    --------
    >>> from bayesgen.models import NormalInverseGamma
    >>> prior(NormalInverseGamma.from_guess(mean=120, sd=10, rows=20), unit="mmHg").get_xlabel()
    'next value [mmHg]'
    """
    check_kind("leaf", leaf, ConjugateFamily, "a conjugate leaf, such as BetaBernoulli(1, 1)")
    if leaf.batch_shape or leaf.event_dim:
        raise ValueError(f"prior() draws a leaf of one feature, and this {type(leaf).__name__} covers more")
    ax = axes(ax)
    means = leaf.expected()
    categories = getattr(leaf, "categories", None)
    label = f"next value [{unit}]" if unit else "next value"
    if set(means) == {"mean", "variance"}:
        params = leaf.sample_parameters(np.random.default_rng(0), (20_000,))
        drawn: Any = np.random.default_rng(1).normal(params["mean"], np.sqrt(params["variance"]))
        if shift := hasattr(leaf, "of_logarithm"):
            drawn = np.exp(drawn) - leaf.shift
        low, high = np.quantile(drawn, [0.0 if shift else 0.005, 0.97 if shift else 0.995])
        x = np.linspace(low, high, 401)
        _shaded(ax, x, np.exp(leaf.log_predictive(x)), BLUE)
        ax.set(xlabel=label, ylabel="density", xlim=(low, high))
    else:
        count = leaf.cardinality(0)
        if count is None:
            reach = float(means["mean"]) + 4 * np.sqrt(float(means["mean"]) * (1 + 1 / float(leaf.rate)))
            count = int(reach) + 2
        values = np.arange(count)
        ax.bar(values, np.exp(leaf.log_predictive(values.astype(float))), color=BLUE)
        if categories is not None or len(values) <= 12:
            ax.set_xticks(values, values if categories is None else [str(c) for c in categories])
        ax.set(xlabel=label, ylabel="probability")
    ax.set_ylim(bottom=0)
    return ax


def regression(regressor, x: ArrayLike, t: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw 30 lines from the posterior of a linear regression, its mean, and a band of about 95 % of new observations.

    Parameters
    ----------
    regressor : fitted LinearRegressor
        Regressor of one column.
    x, t : array_like, shape (n,)
        Observations; the picture reaches half their width beyond them.
    ax : matplotlib Axes, default: the current Axes
    """
    if not hasattr(regressor, "to_arviz") or hasattr(regressor, "predict_proba"):
        raise TypeError(f"regressor must be a fitted LinearRegressor, got a {type(regressor).__name__}")
    ax, x, t = axes(ax), np.ravel(x).astype(float), np.asarray(t, float)
    reach = 0.5 * np.ptp(x)
    line = np.linspace(x.min() - reach, x.max() + reach, 201)
    mean, sd = regressor.predict(style.rows_for(regressor, line[:, None]), return_std=True)
    band = {"color": BLUE, "alpha": 0.13, "linewidth": 0}
    ax.fill_between(line, mean - 2 * sd, mean + 2 * sd, label="next observation, ± 2 sd", **band)
    posterior = regressor.to_arviz().posterior
    intercepts, slopes = (np.ravel(posterior[site].values) for site in ("intercept", "coefficients"))
    picked = np.linspace(0, len(slopes) - 1, 30).astype(int)
    for i, (a, b) in enumerate(zip(intercepts[picked], slopes[picked], strict=True)):
        ax.plot(line, a + b * line, color=BLUE, linewidth=0.7, alpha=0.5, label="" if i else "lines of the posterior")
    ax.plot(line, mean, color=VERMILION, linewidth=1.8, label="posterior mean")
    ax.plot(x, t, "o", color="0.1", markersize=4, label="observed")
    ax.set(xlim=(line[0], line[-1]), xlabel=style.columns_of(regressor, 1)[0], ylabel="target")
    return legend(ax)


def squashing(*, ax: Axes | None = None) -> Axes:
    """Draw the functions from score to probability: logistic, probit, and probit with the logistic's slope at 0.

    Stretched by sqrt(8/π) the probit differs from the logistic by less than 0.02; its tails are lighter.

    Parameters
    ----------
    ax : matplotlib Axes, default: the current Axes
    """
    ax, score = axes(ax), np.linspace(-6, 6, 401)
    ax.plot(score, expit(score), color=BLUE, label="logistic 1 / (1 + exp(-a))")
    ax.plot(score, ndtr(score), color=VERMILION, linestyle="--", label="probit Φ(a)")
    stretched = ndtr(score * np.sqrt(np.pi / 8))
    ax.plot(score, stretched, color=QUIET, linestyle=":", linewidth=2.5, label="Φ(a sqrt(π/8))")
    ax.axhline(0.5, color="0.8", linewidth=0.8, zorder=0)
    ax.set(xlim=(-6, 6), ylim=(-0.02, 1.02), xlabel="score a", ylabel="probability")
    return legend(ax)
