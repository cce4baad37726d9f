"""What each value of a row says for a class."""

from typing import TYPE_CHECKING

import numpy as np

from bayesgen.plot import words
from bayesgen.plot.style import BLUE, QUIET, VERMILION, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayesgen.inspection.evidence import Evidence


def evidence(said: "Evidence", *, most: int | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw what each value of a row does to the odds of a class: bars that add up to the probability in the title.

    Parameters
    ----------
    said : Evidence
        What `bayesgen.inspection.evidence` returned.
    most : int, optional
        How many columns to draw, those that say most; the others are one bar. Default: all.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier, inspection
    >>> X, y = [[0.0, 1.0], [0.2, 0.0], [1.0, 1.1], [1.2, 0.1]], ["a", "a", "b", "b"]
    >>> said = inspection.evidence(NaiveBayesClassifier().fit(X, y), [1.3, 0.5])
    >>> evidence(said).get_xlabel()
    'log odds of b; the bars add up'
    """
    ax = axes(ax)
    ranked = sorted(said.terms.items(), key=lambda item: -abs(item[1]))
    most = len(ranked) if most is None else most
    bars = [("prior", said.prior), *((_valued(column, said.values[column]), term) for column, term in ranked[:most])]
    if ranked[most:]:
        bars.append((f"{len(ranked) - most} other columns", sum(term for _, term in ranked[most:])))
    values, places = np.array([term for _, term in bars]), np.arange(len(bars))
    ax.barh(places, values, color=[QUIET, *np.where(values[1:] > 0, BLUE, VERMILION)])
    reach = np.abs(values).max(initial=0.0) or 1.0
    texts = [words.odds(term) if place == 0 else words.factor(term) for place, term in enumerate(values.tolist())]
    for place, (term, text) in enumerate(zip(values.tolist(), texts, strict=True)):
        side = "left" if term >= 0 else "right"
        ax.text(term + np.copysign(0.02 * reach, term), place, text, fontsize=8, va="center", ha=side)
    ax.axvline(0, color=QUIET, linewidth=0.8)
    ax.set_yticks(places, [name for name, _ in bars])
    ax.set(xlim=_limits(ax, values, texts), ylim=(len(bars) - 0.5, -0.5))
    ax.set(xlabel=f"log odds of {said.label}; the bars add up")
    ax.set_title(
        f"P({said.label}) {_equal(said.probability)}, 90 % interval {words.interval(said.interval)}", fontsize=10
    )
    return ax


def _limits(ax, values, texts) -> tuple[float, float]:
    """Ends of the axis, with room for the words beside the longest bars."""
    width = 0.7 * ax.get_window_extent().width / ax.figure.dpi  # inches, less what the names of the bars take
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    shares = [0.05, 0.05]  # of the axis, for words to the left of the lowest bar and to the right of the highest
    for value, text in zip(values.tolist(), texts, strict=True):
        own, beside = (0, value - low) if value < 0 else (1, high - value)
        inside = beside / ((high - low) or 1.0)  # a shorter bar has room already
        shares[own] = max(shares[own], min(0.4, 0.065 * len(text) / width) - inside)
    span = ((high - low) or 1.0) / (1 - sum(shares))
    return low - shares[0] * span, high + shares[1] * span


def _valued(column: str, entry) -> str:
    return f"{column} {words.value(entry)}" if entry is None else f"{column} = {words.value(entry)}"


def _equal(p: float) -> str:
    text = words.probability(p)
    return text if text[0] in "<>" else f"= {text}"
