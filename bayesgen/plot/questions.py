"""Pictures of a fitted classifier: a column by class, the evidence of a row, importance, members; and of models."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.comparison import ModelComparison
from bayesgen.inspection.explain import RowEvidence
from bayesgen.numerics.checks import check_kind
from bayesgen.plot import style
from bayesgen.plot.style import BLUE, COLOURS, DASHES, QUIET, VERMILION, Axes, axes, check_fitted, dated, numbers_of
from bayesgen.tables.columns import check_named
from bayesgen.tables.dates import moments

_DRAWN = 2000  # rows drawn from the predictive to find the range to show
_MOST_BARS = 24  # more values make a curve
_POINTS = 301
_LONGEST = 24  # characters of a category below its bar
_BESIDE = 36  # characters of all categories that have room beside each other


def column(classifier, name: str, *, ax: Axes | None = None) -> Axes:
    r"""Draw the learned distribution of one column in each class.

    .. math:: p(x_j \mid t = k, \text{data})

    The parameters and all other columns are integrated out. Numbers have a density, categories and counts a bar for
    each value; of many categories those that are most frequent in some class. Where the curves of two classes lie
    apart, the column distinguishes these classes.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        Classifier whose predictive is drawn.
    name : str
        A column of the fit; "x0", "x1", ... for an array.
    ax : matplotlib Axes, default: the current Axes

    Raises
    ------
    ValueError
        If the classifier has no such column, or no distribution of its columns.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier, data
    >>> penguins = data.load("penguins")
    >>> classifier = NaiveBayesClassifier(random_state=0).fit(penguins[["island", "body_mass_g"]], penguins["species"])
    >>> ax = column(classifier, "body_mass_g")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('body_mass_g', 'density within the class')
    """
    check_fitted("classifier", classifier)
    check_kind("name", name, str, "the name of a column")
    classifier = getattr(classifier, "fitted_", classifier)  # a record is given as it is
    if not hasattr(classifier, "predict_joint_log_proba"):
        raise ValueError(f"a {classifier.estimator} learns nothing of how its columns are distributed")
    check_named(name, classifier.schema_.block_of)
    block = classifier.schema_.block_of[name]
    ax, values = axes(ax), list(block.categories or _typical(classifier, name))
    heights = _within_classes(classifier, name, values)
    whole = block.categories is not None or not any(value % 1 for value in values)
    ax.set(xlabel=name, ylabel="probability within the class" if whole else "density within the class")
    if block.categories is not None and len(values) > _MOST_BARS:
        kept = np.sort(np.argsort(-heights.max(1), kind="stable")[:_MOST_BARS])
        ax.set_xlabel(f"{name}: the {_MOST_BARS} most frequent of {len(values)} categories")
        values, heights = [values[place] for place in kept], heights[kept]
    if whole and len(values) <= _MOST_BARS:
        places, width = np.arange(len(values)), 0.8 / len(classifier.classes_)
        for k, label in enumerate(classifier.classes_):
            beside = places + (k + 0.5) * width - 0.4
            ax.bar(beside, heights[:, k], width, color=COLOURS[k % 7], label=str(label))
        texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
        texts = [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in texts]
        upright: dict[str, Any] = {"rotation": 90, "fontsize": 8} if sum(map(len, texts)) > _BESIDE else {}
        ax.set_xticks(places, texts, **upright)
    else:
        for k, label in enumerate(classifier.classes_):
            (line,) = ax.plot(values, heights[:, k], color=COLOURS[k % 7], linestyle=DASHES[k % 4], label=str(label))
            line.set_marker("." if whole else "")
        ax.set_xlim(values[0], values[-1])
        dated(ax.xaxis, classifier, name)
    ax.set_ylim(0, 1.3 * heights.max())  # room for the legend
    ax.legend(fontsize=8, ncols=3, loc="upper center")
    return ax


def _typical(classifier, name: str) -> np.ndarray:
    """Return values to draw at, in increasing order, over the central 98 % of each class's predictive."""
    drawn, labels = replace(classifier, random_state=0).sample(_DRAWN)
    columns = list(classifier.schema_.columns)
    values = numbers_of(classifier, drawn[name] if hasattr(drawn, "columns") else drawn[:, columns.index(name)], name)
    # A date drawn beyond the calendar is missing, so NaN is left out.
    ends = np.array([np.nanquantile(values[labels == label], [0.01, 0.99]) for label in np.unique(labels)])
    low, high = ends[:, 0].min(), ends[:, 1].max()
    if (values % 1).any():
        return np.linspace(low, high, _POINTS)
    return np.arange(low, high + 1, max(1, (high - low) // _POINTS))


def _within_classes(classifier, name: str, values) -> np.ndarray:
    """Return p(x_j | t = k) of each value and class: rows with all else missing, relative to an empty row."""
    columns = list(classifier.schema_.columns)
    rows = pd.DataFrame(np.nan, index=range(len(values) + 1), columns=columns).astype({name: object})
    shown = moments(values).astype(object) if name in classifier.schema_.dates else values
    rows[name] = pd.Series([*shown, np.nan], dtype=object).infer_objects()
    joint = classifier.predict_joint_log_proba(rows.to_numpy() if classifier.feature_names_in_ is None else rows)
    return np.exp(joint[:-1] - joint[-1])


def evidence(said: RowEvidence, *, most: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the effect of each value of a row on the odds of a class: bars that add up to the probability in the title.

    Parameters
    ----------
    said : RowEvidence
        Result of ``explain(X, row)`` of a classifier.
    most : int, optional
        Number of columns to draw, the largest terms; the others share one bar. Default: all.
    ax : matplotlib Axes, default: the current Axes

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier
    >>> X, y = [[0.0, 1.0], [0.2, 0.0], [1.0, 1.1], [1.2, 0.1]], ["a", "a", "b", "b"]
    >>> said = NaiveBayesClassifier().fit(X, y).explain([[1.3, 0.5]], row=0)
    >>> evidence(said).get_xlabel()
    'log odds of b; the bars add up'
    """
    check_kind("said", said, RowEvidence, "what explain(X, row=) of a classifier returns")
    ax = axes(ax)
    ranked = sorted(said.terms.items(), key=lambda item: -abs(item[1]))
    most = len(ranked) if most is None else most
    bars = [("prior", said.prior)]
    for column, term in ranked[:most]:
        entry = said.values[column]
        bars.append((f"{column}{'' if entry is None else ' ='} {style.value(entry)}", term))
    if ranked[most:]:
        bars.append((f"{len(ranked) - most} other columns", sum(term for _, term in ranked[most:])))
    terms, places = [term for _, term in bars], np.arange(len(bars))
    longest = 1.5 * max([abs(term) for term in terms if np.isfinite(term)], default=0.0) or 1.0
    values = np.clip(terms, -longest, longest)  # where a class is ruled out a term is infinite
    drawn = ax.barh(places, values, color=[QUIET, *np.where(values[1:] > 0, BLUE, VERMILION)])
    texts = [style.odds(said.prior), *map(style.factor, terms[1:])]
    ax.bar_label(drawn, texts, padding=3, fontsize=8)
    ax.axvline(0, color=QUIET, linewidth=0.8)
    ax.set_yticks(places, [name for name, _ in bars])
    ax.set(xlim=_limits(ax, values, texts), ylim=(len(bars) - 0.5, -0.5))
    ax.set(xlabel=f"log odds of {said.label}; the bars add up")
    probability = style.probability(said.probability)
    sign = "" if probability[0] in "<>" else "= "
    ax.set_title(f"P({said.label}) {sign}{probability}, {style.interval(said.interval)}", fontsize=10)
    return ax


def _limits(ax, values, texts) -> tuple[float, float]:
    """Return the ends of the axis, with room for the words beside the longest bars."""
    width = 0.7 * ax.get_window_extent().width / ax.figure.dpi  # inches, less the room for the names of the bars
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    shares = [0.05, 0.05]  # of the axis, for words to the left of the lowest bar and to the right of the highest
    for value, text in zip(values.tolist(), texts, strict=True):
        side, beside = (0, value - low) if value < 0 else (1, high - value)
        inside = beside / ((high - low) or 1.0)  # a shorter bar has room already
        shares[side] = max(shares[side], min(0.4, 0.065 * len(text) / width) - inside)
    span = ((high - low) or 1.0) / (1 - sum(shares))
    return low - shares[0] * span, high + shares[1] * span


def models(result: ModelComparison, *, ax: Axes | None = None) -> Axes:
    """Draw the excess of each model's log loss over the best one, with two standard errors on either side.

    The differences are paired, row by row. Models run from best to worst, downwards; the numbers beside their names are
    log losses. The base rate is a dashed line if another model is worse, and is left out otherwise, since it would
    crowd the others.

    Parameters
    ----------
    result : ModelComparison
        Result of `bayesgen.compare_models`.
    ax : matplotlib Axes, default: the current Axes
    """
    check_kind("result", result, ModelComparison, "what compare_models returns")
    ax, table = axes(ax), result.table
    table: Any = table[np.isfinite(table["difference"])]
    base = table["difference"].get("base rate")
    table = table.drop(index="base rate", errors="ignore") if len(table) > 1 else table
    worst = table["difference"].max()
    if base is not None and worst > base:
        ax.axvline(base, color=QUIET, linestyle="--", linewidth=1)
        ax.annotate("base rate", (base, 1), xycoords=("data", "axes fraction"), fontsize=8, ha="center", va="bottom")
    names = [f"{name}  {loss:.3f}" for name, loss in table["log_loss"].items()]
    _below_each_other(ax, names, table["difference"], table["difference_error"], table["difference"] == 0)
    ax.set(xlabel="log loss above the best, ± 2 standard errors")
    return ax


def _below_each_other(ax: Axes, names: list[str], mean, error, red) -> None:
    """Draw means with two standard errors on either side, a line for each, where ``red`` in another colour."""
    mean, error, red = np.asarray(mean), np.asarray(error), np.asarray(red)
    places = np.arange(len(names))
    ax.axvline(0, color=QUIET, linewidth=0.8)
    for drawn, colour in ((~red, BLUE), (red, VERMILION)):
        ax.errorbar(mean[drawn], places[drawn], xerr=2 * error[drawn], fmt="o", color=colour, capsize=3)
    ax.set(yticks=places, yticklabels=names, ylim=(len(names) - 0.5, -0.5))


def importance(worse: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the importance of the first 20 columns: the mean growth of the log loss without each, ± 2 standard errors.

    Parameters
    ----------
    worse : DataFrame, shape (n, columns)
        Result of `bayesgen.inspection.importance`.
    ax : matplotlib Axes, default: the current Axes
    """
    check_kind("worse", worse, pd.DataFrame, "the DataFrame that inspection.importance returns")
    ax, mean, error = axes(ax), worse.mean(), worse.sem()
    names = mean.sort_values(ascending=False).index[:20]
    _below_each_other(ax, [str(name) for name in names], mean[names], error[names], ~(mean[names] > 0))
    ax.set(xlabel="growth of the log loss without the column,\n± 2 standard errors [nats]")
    return ax


def members(classifier, *, ax: Axes | None = None) -> Axes:
    """Draw the weight of the 12 heaviest families of members as bars, with the mean exponent of each beside it.

    A family is one structure with all strengths of its prior: "full", "shared", "3 components", "softmax"; for mixed
    tables, a structure of the numbers with a structure of the categories. The exponent, averaged by weight within the
    family, is the trust in its densities: 1 takes them as they are, below 1 they were too sure.

    Parameters
    ----------
    classifier : fitted AveragedClassifier
        Classifier whose members are drawn.
    ax : matplotlib Axes, default: the current Axes

    Examples
    --------
    >>> from bayesgen import AveragedClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> axes = members(AveragedClassifier(members=["gaussian", "category", "softmax"]).fit(X[::5], y[::5]))
    >>> axes.get_xlabel()
    'weight'
    """
    check_fitted("classifier", classifier)
    average = getattr(classifier, "average_", None)
    if average is None:
        raise TypeError(f"plot.members() is about an AveragedClassifier, got a {type(classifier).__name__}")
    names, place = np.unique([member.family for member in average.members], return_inverse=True)
    ax, weights = axes(ax), np.bincount(place, average.weights)
    exponents = np.bincount(place, average.weights * average.exponents)
    heaviest = [j for j in np.argsort(-weights, kind="stable")[:12] if weights[j] > 0][::-1]
    bars = ax.barh([names[j] for j in heaviest], weights[heaviest], color=BLUE)
    texts = ["" if names[j] == "base rate" else f"τ = {exponents[j] / weights[j]:.2f}" for j in heaviest]
    ax.bar_label(bars, texts, padding=3, fontsize=8, color=QUIET)
    ax.set(xlim=(0, 1.2 * weights.max()), xlabel="weight", title="What was averaged, and the exponents τ")
    return ax
