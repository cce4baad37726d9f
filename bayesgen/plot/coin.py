"""Pictures of the coin: what is believed of the probability of heads, before and after some tosses."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from bayesgen.models import BetaBernoulli
from bayesgen.plot.style import COLOURS, DASHES, QUIET, axes, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_THETA = np.linspace(0, 1, 401)[1:-1]  # without the ends, where a density may be infinite


def beta_densities(parameters: Iterable[tuple[float, float]], *, ax: "Axes | None" = None) -> "Axes":
    """Draw the densities of Beta(a, b).

    Parameters
    ----------
    parameters : iterable of (a, b)
        One density each.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax, highest = axes(ax), 1.0
    for i, (a, b) in enumerate(parameters):
        density = stats.beta.pdf(_THETA, a, b)
        highest = max(highest, density[5:-5].max())  # a pole at an end does not set the scale
        ax.plot(_THETA, density, color=COLOURS[i % 7], linestyle=DASHES[i % 4], label=f"Beta({a:g}, {b:g})")
    return _finish(ax, highest)


def coin(prior: BetaBernoulli, *tosses: ArrayLike, ax: "Axes | None" = None) -> "Axes":
    """Draw the prior of a coin, and the posterior after each set of tosses, with its mean.

    A few tosses move the prior a little; many leave a narrow posterior wherever the prior was.

    Parameters
    ----------
    prior : BetaBernoulli
        The prior, of one coin.
    *tosses : array_like of 0 and 1
        Sets of tosses, each met by the same prior.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = coin(BetaBernoulli(2, 2), [1, 1], [1, 0] * 20, ax=Figure().subplots())
    >>> ax.get_legend_handles_labels()[1]
    ['prior Beta(2, 2)', 'after 2 of 2 heads', 'after 20 of 40 heads']
    """
    ax = axes(ax)
    density = stats.beta.pdf(_THETA, prior.a, prior.b)
    ax.plot(_THETA, density, color=QUIET, linestyle="--", label=f"prior Beta({prior.a:g}, {prior.b:g})")
    highest = density[5:-5].max()
    for i, data in enumerate(tosses):
        posterior = prior.update(prior.statistics(data))
        density, colour = stats.beta.pdf(_THETA, posterior.a, posterior.b), COLOURS[i % 7]
        label = f"after {posterior.a - prior.a:g} of {len(np.asarray(data))} heads"
        ax.plot(_THETA, density, color=colour, linestyle=DASHES[i % 4], label=label)
        ax.fill_between(_THETA, density, color=colour, alpha=0.12, linewidth=0)
        ax.axvline(float(posterior.mean), color=colour, linewidth=0.8, linestyle=":")
        highest = max(highest, density[5:-5].max())
    return _finish(ax, highest)


def _finish(ax, highest):
    ax.set(xlim=(0, 1), ylim=(0, 1.08 * highest), xlabel="probability of heads θ", ylabel="density")
    legend(ax)
    return ax
