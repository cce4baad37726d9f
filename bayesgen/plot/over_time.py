"""Pictures of a comparison in the order of time: the running score, and calibration over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.comparison.blocks import over_time
from bayesgen.plot.style import BLUE, COLOURS, DASHES, MARKS, VERMILION, axes, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayesgen.comparison import Comparison


def running_score(
    result: "Comparison", models: Sequence[str] | None = None, *, periods: int = 10, ax: "Axes | None" = None
) -> "Axes":
    """Draw the log loss of models over time: the mean in each period ± 2 standard errors, at its middle row.

    Where a curve rises, what was learned fits the rows of that time less well than it did: there is drift, or a model
    has seen too few rows. Vertical lines stand where the models were learned anew.

    Parameters
    ----------
    result : Comparison
        Comparison with ``order``.
    models : sequence of str, optional
        Models to draw; default: all that could be learned, the best seven.
    periods : int, default 10
        Number of periods at most; see `bayesgen.comparison.over_time`.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax = axes(ax)
    names = result.best_first()[: len(COLOURS)] if models is None else models
    for i, name in enumerate(names):
        style: dict = {"color": COLOURS[i % 7], "marker": MARKS[i % 7], "linestyle": DASHES[i % 4], "markersize": 4}
        table = over_time(result, name, periods)
        middle, error = _middle(table), 2 * table["standard_error"].fillna(0.0)
        ax.plot(middle, table["log_loss"], label=name, **style)
        low, high = table["log_loss"] - error, table["log_loss"] + error
        ax.fill_between(middle, low, high, color=COLOURS[i % 7], alpha=0.15, linewidth=0)
    time: Any = result.time
    for fold in range(1, result.folds + 1):
        ax.axvline(time[result.fold == fold].min(), color="0.8", linewidth=0.8, zorder=0)
    ax.set(ylabel="log loss of later rows")
    _name_times(ax, result)
    legend(ax)
    return ax


def calibration_over_time(
    result: "Comparison", model: str | None = None, *, periods: int = 10, ax: "Axes | None" = None
) -> "Axes":
    """Draw how often the predicted class was the true one over time, beside the probability that it was given.

    Bars are 95 % intervals, over groups where there are groups. Where the line of probabilities leaves the bars, the
    probabilities of that time were too sure, or not sure enough.

    Parameters
    ----------
    result : Comparison
        Comparison with ``order``.
    model : str, optional
        Model to draw; default: the one of the least log loss.
    periods : int, default 10
        Number of periods at most; see `bayesgen.comparison.over_time`.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax = axes(ax)
    name = result.best_first()[0] if model is None else model
    table = over_time(result, name, periods)
    middle = _middle(table)
    ax.vlines(middle, table["lower"], table["upper"], color=BLUE, linewidth=1.5, alpha=0.6)
    ax.plot(middle, table["frequency"], "o", color=BLUE, markersize=5, label="how often the predicted class is true")
    ax.plot(middle, table["probability"], color=VERMILION, marker="_", label="its probability, on average")
    ax.set(ylabel=name, ylim=(min(0.45, table["lower"].min() - 0.05), 1.03))
    _name_times(ax, result)
    legend(ax)
    return ax


def _middle(table) -> np.ndarray:
    """Return the middle of each period."""
    return (table["begin"] + (table["end"] - table["begin"]) / 2).to_numpy()


def _name_times(ax, result) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    ax.set(xlabel="time")
    if result.time.dtype.kind == "M":
        ax.xaxis.set_major_locator(locator := AutoDateLocator())
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
