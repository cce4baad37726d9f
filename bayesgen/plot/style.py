"""Shared parts of the pictures: colours and marks that every eye distinguishes, Axes, and rows on a grid.

The texts for odds, probabilities and values serve the command line too.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from bayesgen.tables.columns import to_float
from bayesgen.tables.dates import moments

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:  # a picture, once one is drawn, imports Matplotlib
    Axes = Any

# The colours of Okabe and Ito (https://jfly.uni-koeln.de/color/); marks and dashes serve print in grey.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "#000000")
MARKS = "osD^vPX"
DASHES = ("-", "--", "-.", ":")
QUIET = "0.45"  # grey, for references


def axes(ax: Axes | None) -> Axes:
    """Return ``ax``, or pyplot's current Axes, created if there is none."""
    if ax is not None and not hasattr(ax, "get_xlim"):
        raise TypeError(f"ax must be Axes of matplotlib, as Figure().subplots() makes them, got a {type(ax).__name__}")
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.gca()


def check_fitted(name: str, value, *methods: str) -> None:
    """Raise unless ``value`` is a fitted classifier, which ``methods`` besides ask."""
    if lacking := [method for method in ("predict_proba", *methods) if not hasattr(value, method)]:
        raise TypeError(f"{name} must be a fitted classifier with {lacking[0]}, got a {type(value).__name__}")
    if hasattr(value, "fit"):
        check_is_fitted(value)


def shades(colour: str, strongest: float = 0.35):
    """Return a colour map from transparent to a light ``colour``."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    return LinearSegmentedColormap.from_list("", [to_rgba(colour, 0.0), to_rgba(colour, strongest)])


def grid(ax: Axes, x, steps: int, margin: float = 0.12):
    """Return both coordinates (steps, steps) and rows (steps², 2) of a grid over points (n, 2), a margin and ``ax``."""
    x = np.asarray(x, float)
    low, high = np.nanmin(x, 0), np.nanmax(x, 0)
    low, high = low - margin * (high - low), high + margin * (high - low)
    if ax.has_data():
        drawn = np.sort([ax.get_xlim(), ax.get_ylim()]).T
        low, high = np.minimum(low, drawn[0]), np.maximum(high, drawn[1])
    first, second = np.meshgrid(*np.linspace(low, high, steps).T)
    return first, second, np.column_stack([first.ravel(), second.ravel()])


def rows_for(estimator, values, like=None):
    """Return rows as ``estimator`` was fitted on them: an array, or a table, with gaps where ``like`` has no column."""
    names = getattr(estimator, "feature_names_in_", None)
    if hasattr(values, "columns"):
        return values
    values = np.asarray(values, float)
    if names is None:
        return values
    given = columns_of(estimator, values.shape[1], like)
    if len(given) != values.shape[1]:
        raise ValueError(f"X has {values.shape[1]} columns, and the fit had {len(given)}: give a DataFrame with names")
    table = pd.DataFrame(values, columns=given)
    return table.assign(**{c: moments(table[c]) for c in _dates(estimator) if c in given}).reindex(columns=names)


def columns_of(estimator, count: int, X=None) -> list[str]:
    """Return the names of the columns of ``X``, else of the columns in the fit, else x1, x2, ...."""
    for names in (getattr(X, "columns", None), getattr(estimator, "feature_names_in_", None)):
        if names is not None:
            return [str(name) for name in names]
    return [f"x{j + 1}" for j in range(count)]


def numbers(estimator, X) -> np.ndarray:
    """Return rows as numbers to draw (n, D), columns of dates as days."""
    each = (numbers_of(estimator, X[name], name) for name in getattr(X, "columns", ()))
    return np.column_stack([*each]) if hasattr(X, "columns") else np.asarray(X, float)


def numbers_of(estimator, values, column: str) -> np.ndarray:
    """Return the values of a column as numbers to draw (n,), dates as days."""
    values = np.asarray(values)
    if column in _dates(estimator):
        return estimator.schema_.reading.days_of(values, column)
    return to_float(values, column)


def legend(ax: Axes, title: str | None = None) -> Axes:
    """Draw the legend where it hides least; with an explicit place Matplotlib does not warn that the search is slow."""
    ax.legend(fontsize=8, loc="best", title=title)
    return ax


def scatter(ax: Axes, estimator, X, y):
    """Draw rows by class, and name the axes."""
    x, y = numbers(estimator, X), np.asarray(y)
    if y.shape != (len(x),):
        raise ValueError(f"y must hold one label for each of the {len(x)} rows of X, got shape {y.shape}")
    for k, name in enumerate(estimator.classes_):
        points = x[y == name]
        style = {"c": COLOURS[k % 7], "marker": MARKS[(k + k // 7) % 7], "s": 16}
        ax.scatter(*points.T, label=str(name), linewidth=0.4, edgecolor="white", zorder=3, **style)
    for axis, column in zip((ax.xaxis, ax.yaxis), columns_of(estimator, 2, X), strict=True):
        axis.set_label_text(column)
        dated(axis, estimator, column)


def dated(axis, estimator, column: str):
    """Label an axis with dates where its column holds days since 1970-01-01, as the dates of Matplotlib do."""
    if column in _dates(estimator):
        date_ticks(axis)


def date_ticks(axis):
    """Label an axis with dates."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    axis.set_major_locator(locator := AutoDateLocator())
    axis.set_major_formatter(ConciseDateFormatter(locator))


def _dates(estimator) -> tuple[str, ...]:
    return getattr(getattr(estimator, "schema_", None), "dates", ())


def probability(p: float) -> str:
    """Return a probability as text with three digits, never as 0 or 1."""
    return f"{p:.3f}" if 0.001 <= p <= 0.999 else "< 0.001" if p < 0.5 else "> 0.999"


def interval(bounds: tuple[float, float]) -> str:
    """Return a 90 % interval of probabilities as text; NaN is that of a point estimate, which has none."""
    if np.isnan(bounds[0]):
        return "fitted at a point: no interval"
    return f"90 % interval {probability(bounds[0])} to {probability(bounds[1])}"


def value(entry) -> str:
    """Return an entry of a table as text, a number with six digits."""
    number = isinstance(entry, int | float) and not isinstance(entry, bool)
    return "missing" if entry is None else f"{entry:g}" if number else str(entry)


def odds(log_odds: float) -> str:
    """Return odds as text: 3 to 1, or 1 to 4.

    >>> odds(math.log(3)), odds(math.log(0.25))
    ('3 to 1', '1 to 4')
    """
    return f"{_ratio(log_odds)} to 1" if log_odds >= 0 else f"1 to {_ratio(log_odds)}"


def factor(log_odds: float) -> str:
    """Return the effect of a term on the odds as text: times 3.2, divided by 4.

    >>> factor(math.log(3.2)), factor(-math.log(4)), factor(-0.01)
    ('times 3.2', 'divided by 4', 'as before')
    """
    if _ratio(log_odds) == "1":
        return "as before"
    return f"{'times' if log_odds > 0 else 'divided by'} {_ratio(log_odds)}"


def _ratio(log_odds: float) -> str:
    ratio = math.exp(min(abs(log_odds), 700.0))
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:,.0f}" if ratio < 1e6 else "more than a million"
