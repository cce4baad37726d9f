"""What a leaf believes of the next value."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.plot.style import BLUE, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def prior(leaf, *, unit: str = "", ax: "Axes | None" = None) -> "Axes":
    """Draw what a prior believes of the next value: its predictive, with the parameters integrated out.

    Draw it before there is data, to see whether the hyperparameters say what you believe.

    Parameters
    ----------
    leaf : conjugate leaf of one feature
        `BetaBernoulli`, `DirichletCategorical`, `GammaPoisson`, `NormalInverseGamma`, `LogNormal` or
        `NormalKnownVariance`.
    unit : str
        Unit of the values.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.

    Examples
    --------
    >>> from bayesgen.models import NormalInverseGamma
    >>> prior(NormalInverseGamma.from_guess(mean=120, sd=10, rows=20), unit="mmHg").get_xlabel()
    'next value [mmHg]'
    """
    if leaf.batch_shape or leaf.event_dim:
        raise ValueError(f"prior() draws a leaf of one feature, and this {type(leaf).__name__} covers more")
    ax = axes(ax)
    means = leaf.expected()
    categories = getattr(leaf, "categories", None)
    label = f"next value [{unit}]" if unit else "next value"
    if set(means) == {"mean", "variance"}:
        params = leaf.sample_parameters(np.random.default_rng(0), (20_000,))
        drawn: Any = np.random.default_rng(1).normal(params["mean"], np.sqrt(params["variance"]))
        if shift := hasattr(leaf, "logarithm"):
            drawn = np.exp(drawn) - leaf.shift
        low, high = np.quantile(drawn, [0.0 if shift else 0.005, 0.97 if shift else 0.995])
        x = np.linspace(low, high, 401)
        density = np.exp(leaf.log_predictive(x))
        ax.plot(x, density, color=BLUE)
        ax.fill_between(x, density, color=BLUE, alpha=0.12, linewidth=0)
        ax.set(xlabel=label, ylabel="density", xlim=(low, high))
    else:
        if categories is not None:
            values = np.arange(len(categories))
        elif set(means) == {"mean"}:
            reach = float(means["mean"]) + 4 * np.sqrt(float(means["mean"]) * (1 + 1 / float(leaf.rate)))
            values = np.arange(int(reach) + 2)
        else:
            values = np.arange(2)
        ax.bar(values, np.exp(leaf.log_predictive(values.astype(float))), color=BLUE)
        if categories is not None or len(values) <= 12:
            ax.set_xticks(values, values if categories is None else [str(c) for c in categories])
        ax.set(xlabel=label, ylabel="probability")
    ax.set_ylim(bottom=0)
    return ax
