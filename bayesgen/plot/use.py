"""Pictures of a classifier in use: the evidence that its rows are no longer what they were."""

from typing import TYPE_CHECKING

from bayesgen.inspection.watch import Watch
from bayesgen.plot.style import COLOURS, DASHES, QUIET, axes, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def watch(result: Watch, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the evidence of each part of a watch over the rows, and the line at which a part alarms.

    Parts in alarm have a colour, with a cross at the row since which it seems so; without an alarm the three of most
    evidence have one. Below 0 nothing speaks for a change.

    Parameters
    ----------
    result : Watch
        Watch that has seen some rows.
    ax : matplotlib Axes, default: the current Axes
    """
    ax, evidence, since = axes(ax), result.evidence, {alarm.part: alarm.since for alarm in result.alarms}
    loud = list(since) or evidence.max().nlargest(3).index.tolist()
    for name in evidence.columns.difference(loud):
        ax.plot(evidence.index, evidence[name], color=QUIET, linewidth=0.7, alpha=0.5)
    for i, name in enumerate(loud[: len(COLOURS)]):
        ax.plot(evidence.index, evidence[name], color=COLOURS[i], linestyle=DASHES[i % 4], label=name)
        if name in since:
            ax.plot(since[name], 0, "x", color=COLOURS[i], markersize=8, zorder=3)
    ax.axhline(result.threshold, color="black", linewidth=0.8, linestyle=":")
    ax.annotate("alarm", (0.01, result.threshold), xycoords=ax.get_yaxis_transform(), va="bottom", fontsize=8)
    top = max(2 * result.threshold, min(evidence.max(axis=None), 6 * result.threshold)) if len(evidence) else 1.0
    ax.set(xlabel="row", ylabel="evidence of a change (log10 of the martingale)", ylim=(None, top))
    if len(evidence):
        legend(ax)
    return ax
