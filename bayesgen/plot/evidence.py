"""What each feature of a row says for a class."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from bayesgen.plot import words
from bayesgen.plot.style import BLUE, QUIET, VERMILION, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayesgen.inspection.evidence import Evidence


def feature_evidence(classifier, row, class_index: int = -1) -> dict[str, float]:
    """What each feature adds to the log odds of a class against all others: with it, minus with it left out.

    For two classes and naive Bayes these are the terms of a sum: prior log odds plus evidence is the log odds. (With
    draws, which the average over the posterior couples, nearly so; in a bag of words, given the other words.)

    Parameters
    ----------
    classifier : fitted NaiveBayesClassifier
        Or another that takes missing values.
    row : pandas DataFrame of one row, or array_like, shape (D,) or (1, D)
        The row.
    class_index : int
        Which class, as an index of ``classes_``.

    Returns
    -------
    dict
        Column to evidence in nats; a column that is missing in the row says nothing, 0.

    Examples
    --------
    >>> import bayesgen as bg
    >>> X, y = [[0.0, 1.0], [0.2, 0.0], [1.0, 1.1], [1.2, 0.1]], ["a", "a", "b", "b"]
    >>> said = feature_evidence(bg.NaiveBayesClassifier().fit(X, y), [1.3, 0.5])
    >>> {name: round(value, 2) for name, value in said.items()}
    {'x0': 6.07, 'x1': -0.01}
    """
    columns = classifier.schema_.columns
    bags = {column for block in classifier.schema_.blocks if block.leaf == "multinomial" for column in block.columns}
    whole = _log_odds(classifier, _left_out(row), class_index)
    return {
        name: whole - _log_odds(classifier, _left_out(row, j, name in bags), class_index)
        for j, name in enumerate(columns)
    }


def evidence(classifier, row, class_index: int = -1, *, most: int | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw what each feature of a row adds to the log odds of a class, as bars; see `feature_evidence`.

    Parameters
    ----------
    classifier : fitted NaiveBayesClassifier
        Or another that takes missing values.
    row : pandas DataFrame of one row, or array_like, shape (D,) or (1, D)
        The row.
    class_index : int
        Which class, as an index of ``classes_``.
    most : int, optional
        How many features to draw, those that say most, and none that says nothing; default: all.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
    """
    ax = axes(ax)
    said = feature_evidence(classifier, row, class_index)
    ranked = sorted(said.items(), key=lambda item: abs(item[1]))
    if most is not None:
        ranked = [item for item in ranked if item[1]][-most:]
    whole = _log_odds(classifier, _left_out(row), class_index)
    values = np.array([value for _, value in ranked])
    ax.barh([name for name, _ in ranked], values, color=np.where(values > 0, BLUE, VERMILION))
    reach = np.abs(values).max(initial=0.0) or 1.0
    for i, value in enumerate(values):
        ax.text(
            value + np.copysign(0.02 * reach, value),
            i,
            f"{round(value, 1) + 0.0:+.1f}",
            fontsize=8,
            va="center",
            ha="left" if value >= 0 else "right",
        )
    ax.axvline(0, color=QUIET, linewidth=0.8)
    name = classifier.classes_[class_index]
    title = f"P({name} | x) {_equal(float(expit(whole)))}"
    room = 0.2 * reach  # for the numbers
    ax.set(xlim=(values.min(initial=0.0) - room, values.max(initial=0.0) + room))
    ax.set(xlabel=f"evidence for {name} [nats]", title=title)
    return ax


def evidence_of(said: "Evidence", *, most: int | None = None, ax: "Axes | None" = None) -> "Axes":
    """Draw what each value of a row does to the odds of a class: bars that add up to the probability in the title.

    Parameters
    ----------
    said : Evidence
        What `bayesgen.inspection.evidence` returned.
    most : int, optional
        How many columns to draw, those that say most; the others are one bar. Default: all.
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.
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
    for place, term in enumerate(values.tolist()):
        text, side = words.odds(term) if place == 0 else words.factor(term), "left" if term >= 0 else "right"
        ax.text(term + np.copysign(0.02 * reach, term), place, text, fontsize=8, va="center", ha=side)
    ax.axvline(0, color=QUIET, linewidth=0.8)
    ax.set_yticks(places, [name for name, _ in bars])
    room = 0.55 * reach  # for the words
    ax.set(xlim=(values.min(initial=0.0) - room, values.max(initial=0.0) + room), ylim=(len(bars) - 0.5, -0.5))
    ax.set(xlabel=f"log odds of {said.label}; the bars add up")
    ax.set_title(
        f"P({said.label}) {_equal(said.probability)}, 90 % interval {words.interval(said.interval)}", fontsize=10
    )
    return ax


def _valued(column: str, entry) -> str:
    return f"{column} {words.value(entry)}" if entry is None else f"{column} = {words.value(entry)}"


def _equal(p: float) -> str:
    text = words.probability(p)
    return text if text[0] in "<>" else f"= {text}"


def _left_out(row, j: int | None = None, in_bag: bool = False):
    """Return the row as a table or array of one row, with column ``j`` missing, or its count 0 in a bag of words."""
    if hasattr(row, "columns"):
        if j is None:
            return row
        row, column = row.copy(), row.columns[j]
        row[column] = row[column] * 0 if in_bag else row[column].where(np.array([False]))
        return row
    row = np.asarray(row)
    row = np.array(row, float if row.dtype.kind in "biuf" else object).reshape(1, -1)
    if j is not None:
        row[0, j] = 0.0 if in_bag else np.nan
    return row


def _log_odds(classifier, row, class_index):
    log_probability = classifier.predict_log_proba(row)[0]
    return float(log_probability[class_index] - np.logaddexp.reduce(np.delete(log_probability, class_index)))
