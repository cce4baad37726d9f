"""Pictures of a classifier in use: what acting on it is worth, and the evidence that rows are not what they were."""

from collections.abc import Mapping

import numpy as np

from bayesgen.evaluation import NetBenefit
from bayesgen.inspection.watch import Watch
from bayesgen.numerics.checks import check_kind
from bayesgen.plot.style import COLOURS, DASHES, QUIET, Axes, axes, legend


def watch(result: Watch, *, ax: Axes | None = None) -> Axes:
    """Draw the evidence of each part of a watch over the rows, and the line at which a part alarms.

    Parts in alarm have a colour, with a cross at the row since which it seems so; without an alarm the three of most
    evidence have one. Below 0 nothing speaks for a change.

    Parameters
    ----------
    result : Watch
        Watch that has seen some rows.
    ax : matplotlib Axes, default: the current Axes
    """
    check_kind("result", result, Watch, "a Watch")
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
    return legend(ax) if len(evidence) else ax


def net_benefit(curves: NetBenefit | Mapping[str, NetBenefit], *, ax: Axes | None = None) -> Axes:
    """Draw what acting on probabilities is worth over thresholds or costs, beside the single actions for all rows.

    A curve is faint and has no band where too few rows are treated differently. Below the axis the picture is cut off
    where a single action costs much more than the others save.

    Parameters
    ----------
    curves : NetBenefit or mapping from str to NetBenefit
        Result of `bayesgen.evaluation.net_benefit`, or one of each model, over the same thresholds and rows.
    ax : matplotlib Axes, default: the current Axes
    """
    ax, curves = axes(ax), dict(curves) if isinstance(curves, Mapping) else {"model": curves}
    for name, found in curves.items():
        check_kind(f"curves[{name!r}]", found, NetBenefit, "what evaluation.net_benefit returns")
    first = next(iter(curves.values()))
    for i, (name, worth) in enumerate(first.single.items()):
        ax.plot(first.thresholds, worth, color=QUIET, linestyle=DASHES[(i + 1) % 4], linewidth=1, label=name)
    for i, (name, found) in enumerate(curves.items()):
        colour, sure, x = COLOURS[i % len(COLOURS)], ~found.few, found.thresholds
        ax.plot(x, found.model, color=colour, linewidth=0.8, alpha=0.5)
        ax.plot(x, np.where(sure, found.model, np.nan), color=colour, label=name)
        if len(curves) == 1:
            ax.fill_between(x, found.lower, found.upper, where=sure.tolist(), color=colour, alpha=0.15, linewidth=0)
    top = max(1e-9, *(found.model.max() for found in curves.values()), *map(np.max, first.single.values()))
    if len(curves) == 1:
        top = max(top, first.upper[~first.few].max(initial=0.0))
    ax.set(xlabel=first.varied, ylabel=f"{first.unit}, a row", ylim=(-0.25 * top, 1.1 * top))
    if any(found.few.any() for found in curves.values()):
        ax.set_title("faint: too few rows are treated differently", fontsize=8, color=QUIET)
    return legend(ax)
