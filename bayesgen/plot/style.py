"""What the pictures share: colours and marks told apart by every eye, where to draw, and rows on a grid.

Odds, probabilities and values in words, as pictures and the command line tell them.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from bayesgen.tables.dates import days

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The colours of Okabe and Ito (https://jfly.uni-koeln.de/color/); marks and dashes serve print in grey.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "#000000")
MARKS = "osD^vPX"
DASHES = ("-", "--", "-.", ":")
QUIET = "0.45"  # grey of what is there for reference


def axes(ax: "Axes | None") -> "Axes":
    """Return ``ax``, or pyplot's current Axes, made if there is none."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.gca()


def shades(colour: str, strongest: float = 0.35):
    """Return a colour map from transparent to a light ``colour``."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    return LinearSegmentedColormap.from_list("", [to_rgba(colour, 0.0), to_rgba(colour, strongest)])


def grid(ax: "Axes", x, steps: int, margin: float = 0.12):
    """Cover the points ``x`` (n, 2) and a margin: (steps, steps) arrays of both coordinates, and the rows (steps², 2).

    Where ``ax`` holds data already, its limits are covered too.
    """
    x = np.asarray(x, float)
    low, high = np.nanmin(x, 0), np.nanmax(x, 0)
    low, high = low - margin * (high - low), high + margin * (high - low)
    if ax.has_data():
        (left, right), (bottom, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
        low, high = np.minimum(low, [left, bottom]), np.maximum(high, [right, top])
    first, second = np.meshgrid(*np.linspace(low, high, steps).T)
    return first, second, np.column_stack([first.ravel(), second.ravel()])


def rows_for(estimator, values, like=None):
    """Give rows the form ``estimator`` was fitted on: a table with its column names, or an array; a table stays one.

    Where the table ``like`` names some of its columns, the values are of these, and the others are missing.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if hasattr(values, "columns"):
        return values
    values = np.asarray(values, float)
    if names is None:
        return values
    import pandas as pd

    given = columns_of(estimator, values.shape[1], like)
    if len(given) != values.shape[1]:
        raise ValueError(
            f"X has {values.shape[1]} columns, and the fit had {len(given)}: give a DataFrame that names those of X"
        )
    return pd.DataFrame(values, columns=given).reindex(columns=names)


def columns_of(estimator, count: int, X=None) -> list[str]:
    """Names of the columns of ``X``, or else of those ``estimator`` was fitted on, or x1, x2, ...."""
    for names in (getattr(X, "columns", None), getattr(estimator, "feature_names_in_", None)):
        if names is not None:
            return [str(name) for name in names]
    return [f"x{j + 1}" for j in range(count)]


def numbers(estimator, X) -> np.ndarray:
    """Rows to draw as numbers (n, D), columns of dates as days."""
    if not _dates(estimator) or not hasattr(X, "columns"):
        return np.asarray(X, float)
    return np.column_stack([numbers_of(estimator, X[name], name) for name in X.columns])


def numbers_of(estimator, values, column: str) -> np.ndarray:
    """Values of a column to draw as numbers (n,), dates as days."""
    values = np.asarray(values)
    return days(values, column) if column in _dates(estimator) else values.astype(float)


def legend(ax: "Axes", title: str | None = None):
    """Draw the legend where it hides least; the place is named, or Matplotlib warns where it takes long to find it."""
    ax.legend(fontsize=8, loc="best", title=title)


def scatter(ax: "Axes", estimator, X, y):
    """Draw rows by class, and name the axes."""
    x, y = numbers(estimator, X), np.asarray(y)
    for k, name in enumerate(estimator.classes_):
        own = x[y == name]
        style = {
            "c": COLOURS[k % 7],
            "marker": MARKS[(k + k // 7) % 7],
            "s": 16,
            "linewidth": 0.4,
            "edgecolor": "white",
        }
        ax.scatter(own[:, 0], own[:, 1], label=str(name), zorder=3, **style)
    first, second = columns_of(estimator, 2, X)
    ax.set(xlabel=first, ylabel=second)
    dated(ax.xaxis, estimator, first)
    dated(ax.yaxis, estimator, second)


def dated(axis, estimator, column: str):
    """Label an axis with dates where its column holds days since 1970-01-01, as the dates of Matplotlib do."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    if column in _dates(estimator):
        axis.set_major_locator(locator := AutoDateLocator())
        axis.set_major_formatter(ConciseDateFormatter(locator))


def _dates(estimator) -> tuple[str, ...]:
    """Columns of days, where the estimator is one of ours that keeps a schema."""
    return getattr(getattr(estimator, "schema_", None), "dates", ())


def probability(p: float) -> str:
    """A probability with three digits, and never 0 or 1 where it is not."""
    return f"{p:.3f}" if 0.001 <= p <= 0.999 else "< 0.001" if p < 0.5 else "> 0.999"


def interval(bounds: tuple[float, float]) -> str:
    """An interval of a probability."""
    return f"{probability(bounds[0])} to {probability(bounds[1])}"


def value(entry) -> str:
    """What stands in a table, with six digits of a number."""
    number = isinstance(entry, int | float) and not isinstance(entry, bool)
    return "missing" if entry is None else f"{entry:g}" if number else str(entry)


def odds(log_odds: float) -> str:
    """Odds: 3 to 1, or 1 to 4.

    >>> odds(math.log(3)), odds(math.log(0.25))
    ('3 to 1', '1 to 4')
    """
    return f"{_ratio(log_odds)} to 1" if log_odds >= 0 else f"1 to {_ratio(log_odds)}"


def factor(log_odds: float) -> str:
    """What a term does to the odds: times 3.2, divided by 4.

    >>> factor(math.log(3.2)), factor(-math.log(4)), factor(0.0)
    ('times 3.2', 'divided by 4', 'as before')
    """
    if abs(log_odds) < 0.005:
        return "as before"
    return f"{'times' if log_odds > 0 else 'divided by'} {_ratio(log_odds)}"


def _ratio(log_odds: float) -> str:
    ratio = math.exp(min(abs(log_odds), 700.0))
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:,.0f}" if ratio < 1e6 else "more than a million"
