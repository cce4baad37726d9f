"""Pictures of classes that nobody named: how many there are, and what they are."""

from typing import TYPE_CHECKING

from bayesgen.plot.style import BLUE, COLOURS, QUIET, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def class_numbers(numbers, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the held-out log density of a row against the number of classes, with error bars.

    A bar is a standard error of the difference from the best on the same rows: where it reaches the dotted line, the
    rows do not tell this number of classes from the best. The number that is taken is ringed.

    Parameters
    ----------
    numbers : ClassNumbers
        Result of `compare_classes`.
    ax : matplotlib Axes, default: the current Axes

    Examples
    --------
    >>> from bayesgen import compare_classes
    >>> X = np.r_[np.arange(20) / 20.0, 10 + np.arange(20) / 20.0][:, None]
    >>> ax = class_numbers(compare_classes(X, (1, 2), starts=2))
    >>> ax.get_xlabel()
    'classes'
    """
    ax, table = axes(ax), numbers.table.sort_index()
    height, best = table["log_density"], numbers.best
    ax.axhline(height.max(), color=QUIET, linestyle=":", zorder=0)
    ax.errorbar(table.index, height, table["difference_error"], color=BLUE, marker="o", capsize=3)
    ax.plot([best], [height[best]], "o", markersize=13, markerfacecolor="none", color=COLOURS[1])
    ax.set(xlabel="classes", ylabel="log density of a row left out", xticks=list(table.index))
    return ax
