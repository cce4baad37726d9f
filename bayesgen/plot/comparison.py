"""Pictures of models side by side, and of what each column is worth."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesgen.plot.style import BLUE, QUIET, VERMILION, axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bayesgen.comparison import ModelComparison


def models(result: "ModelComparison", *, ax: "Axes | None" = None) -> "Axes":
    """Draw by how much the log loss of each model is above that of the best, with two standard errors on either side.

    The differences are paired, row by row. The models are from best to worst, downwards; numbers beside the names are
    their log losses. The base rate is a dashed line where another model is worse than it, and left out else: it would
    draw the others together.

    Parameters
    ----------
    result : ModelComparison
        What `bayesgen.compare_models` returned.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax, table = axes(ax), result.table
    table: Any = table[np.isfinite(table["difference"])]
    base = table["difference"].get("base rate")
    table = table.drop(index="base rate", errors="ignore") if len(table) > 1 else table
    worst = table["difference"].max()
    if base is not None and worst > base:
        ax.axvline(base, color=QUIET, linestyle="--", linewidth=1)
        ax.annotate("base rate", (base, 1), xycoords=("data", "axes fraction"), fontsize=8, ha="center", va="bottom")
    places = np.arange(len(table))
    best = table["difference"].to_numpy() == 0
    ax.axvline(0, color=QUIET, linewidth=0.8)
    for own, colour in ((best, VERMILION), (~best, BLUE)):
        ax.errorbar(
            table["difference"][own],
            places[own],
            xerr=2 * table["difference_error"][own],
            fmt="o",
            color=colour,
            capsize=3,
        )
    names = [f"{name}  {loss:.3f}" for name, loss in table["log_loss"].items()]
    ax.set_yticks(places, names)
    ax.set(ylim=(len(table) - 0.5, -0.5), xlabel="log loss above the best, ± 2 standard errors of the difference")
    return ax


def importance(worse: "pd.DataFrame", *, most: int = 20, ax: "Axes | None" = None) -> "Axes":
    """Draw what each column is worth: the mean growth of the log loss without it, with two standard errors.

    Parameters
    ----------
    worse : DataFrame, shape (n, columns)
        What `bayesgen.inspection.importance` returned.
    most : int
        How many columns to draw, those that are worth most.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax, mean, error = axes(ax), worse.mean(), worse.sem()
    names = mean.sort_values(ascending=False).index[:most]
    places = np.arange(len(names))
    ax.axvline(0, color=QUIET, linewidth=0.8)
    helps = np.asarray(mean[names]) > 0
    for own, colour in ((helps, BLUE), (~helps, VERMILION)):
        ax.errorbar(mean[names][own], places[own], xerr=2 * error[names][own], fmt="o", color=colour, capsize=3)
    ax.set_yticks(places, [str(name) for name in names])
    ax.set(
        ylim=(len(names) - 0.5, -0.5), xlabel="growth of the log loss without the column,\n± 2 standard errors [nats]"
    )
    return ax
