"""The picture of simulation-based calibration."""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.calibration import Calibration
from bayesgen.numerics.uniformity import band
from bayesgen.plot.style import BLUE, COLOURS, QUIET, axes, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def calibration(result: Calibration, *, level: float = 0.01, ax: "Axes | None" = None) -> "Axes":
    """Draw by how much the ranks of each scalar are off uniform: their distribution function less the uniform one.

    Right posteriors stay in the band, all curves everywhere, with a probability of 1 - ``level`` or more; a curve
    leaves it where the p value of its scalar is ``level`` divided by their number or less, so where one does,
    ``result.ok(level)`` is False. An arch above zero says that the truth is lower than the posterior; below, that it is
    higher; a wave that begins upwards, that the posterior is too narrow; downwards, too wide.

    Parameters
    ----------
    result : Calibration
        What `bayesgen.check_calibration` returned.
    level : float
        Probability that a right posterior has a curve outside the band.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax, points = axes(ax), np.arange(result.draws + 2) / (result.draws + 1)
    own = level / len(result.ranks)
    low, high = (np.pad(b, 1) for b in band(result.simulations, result.draws, own))
    low[-1] = high[-1] = result.simulations
    low, high = (b / result.simulations - points for b in (low, high))
    ax.fill_between(points, low, high, color=QUIET, alpha=0.2, linewidth=0)
    ax.axhline(0, color=QUIET, linewidth=1)
    off = [name for name, p in result.p_values.items() if p <= own]
    for name, ranks in result.ranks.items():
        below = np.append(0, np.bincount(ranks, minlength=result.draws + 1).cumsum()) / result.simulations
        style = {"color": BLUE, "linewidth": 0.8, "alpha": 0.5}
        if name in off:
            style = {"color": COLOURS[1 + off.index(name) % 6], "linewidth": 1.5, "label": name, "zorder": 3}
        ax.plot(points, below - points, **style)
    if off:
        legend(ax, "not uniform")
    ax.set(xlim=(0, 1), xlabel="rank of the truth among posterior draws", ylabel="distribution of ranks, less uniform")
    return ax
