"""Pictures of predicted class probabilities: whether they are calibrated, and how far they dare to go."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.evaluation import reliability_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RIGHT, WRONG = "#0072B2", "#D55E00"  # blue and vermilion of Okabe and Ito, told apart by every eye
_FLOOR = 1e-9  # probabilities beyond are drawn at the edge


def reliability(truth: ArrayLike, probability: ArrayLike, *, bins: int = 10, ax: "Axes | None" = None) -> "Axes":
    """Draw how often the most probable class is the true one, against its probability.

    On the diagonal a classifier that says 0.7 is right in 70 % of the cases; below it, it is overconfident. Bars are
    the 95 % Jeffreys intervals of `bayesgen.evaluation.reliability_table`, numbers the rows in a bin. The mean
    distance to the diagonal, weighted by rows, is `bayesgen.evaluation.expected_calibration_error`.

    Parameters
    ----------
    truth : array_like of int, shape (n,)
        True class codes 0 to K - 1.
    probability : array_like, shape (n, K)
        Predicted class probabilities.
    bins : int
        Number of bins of equal width.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.
    """
    probability, ax = np.asarray(probability, float), _axes(ax)
    top = probability.max(1)
    right = probability.argmax(1) == np.asarray(truth)
    table = reliability_table(right.astype(int), np.stack([1 - top, top], axis=1), bins)
    count, p, frequency, lower, upper = (
        v[1][table.count[1] > 0] for v in (table.count, table.probability, table.frequency, table.lower, table.upper)
    )
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", zorder=1)
    ax.vlines(p, lower, upper, color=RIGHT, linewidth=1.5, alpha=0.6, zorder=2)
    ax.plot(p, frequency, "o", color=RIGHT, markersize=5, zorder=3)
    for x, n in zip(p, count, strict=True):
        ax.text(x, -0.11, f"{n:.0f}", ha="center", va="bottom", fontsize=7, color="0.35")
    start = 1 / probability.shape[1]
    ax.set(xlim=(start - 0.03, 1.03), ylim=(-0.12, 1.04))
    ax.set(
        xlabel="probability of the predicted class\n(numbers at the foot: rows)",
        ylabel="how often it is the true class",
    )
    return ax


def probabilities(
    truth: ArrayLike, probability: ArrayLike, reference: ArrayLike | None = None, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw the probability given to the true class, row by row, against that of a reference.

    Both axes are in log odds, where 0.99 and 0.9999 are apart. A row above the diagonal in the upper half, or below it
    in the lower half, is one of which ``probability`` is surer than the reference, rightly or wrongly: what a plug-in
    estimate does where data are few. Without a reference rows are ranked by their probability.

    Parameters
    ----------
    truth : array_like of int, shape (n,)
        True class codes 0 to K - 1.
    probability, reference : array_like, shape (n, K)
        Predicted class probabilities.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.
    """
    truth, probability, ax = np.asarray(truth), np.asarray(probability, float), _axes(ax)
    rows = np.arange(len(truth))
    right = probability.argmax(1) == truth
    y = np.clip(probability[rows, truth], _FLOOR, 1 - _FLOOR)
    if reference is None:
        x = (y.argsort().argsort() + 0.5) / len(y)
        ax.set(xlabel="fraction of rows")
    else:
        x = np.clip(np.asarray(reference, float)[rows, truth], _FLOOR, 1 - _FLOOR)
        ax.axline((0, 0), (1, 1), transform=ax.transAxes, color="0.6", linewidth=1, linestyle="--", zorder=1)
        _log_odds(ax, "x")
    _log_odds(ax, "y")
    for mask, colour, mark, label in ((right, RIGHT, "o", "right"), (~right, WRONG, "X", "wrong")):
        ax.scatter(
            x[mask],
            y[mask],
            s=18,
            c=colour,
            marker=mark,
            alpha=0.6,
            linewidth=0,
            label=f"{label} ({mask.sum()})",
            zorder=2,
        )
    legend = ax.legend(
        loc="lower right", fontsize=8, handletextpad=0.2, title=f"edge: beyond {_FLOOR:.0e}".replace("e-0", "e-")
    )
    legend.get_title().set_fontsize(7)
    ax.set(ylabel="probability of the true class")
    return ax


def _log_odds(ax, axis: str):
    ticks = {1e-8: "1e-8", 1e-4: "1e-4", 0.01: "0.01", 0.5: "0.5", 0.99: "0.99", 1 - 1e-4: "0.9999", 1 - 1e-8: "1-1e-8"}
    ax.set(**{f"{axis}scale": "logit", f"{axis}lim": (_FLOOR / 2, 1 - _FLOOR / 2)})
    ax.set(**{f"{axis}ticks": list(ticks), f"{axis}ticklabels": list(ticks.values())})
    getattr(ax, f"{axis}axis").set_minor_locator(_nothing())
    ax.tick_params(labelsize=8)


def _nothing():
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _axes(ax):
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]
