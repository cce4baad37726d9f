"""Pictures of classes that nobody named: how many there are, and what they are."""

import numpy as np

from bayesgen.estimators.class_numbers import ClassNumbers
from bayesgen.numerics.checks import check_kind
from bayesgen.plot.style import BLUE, COLOURS, DASHES, MARKS, QUIET, Axes, axes, check_fitted, legend

_BESIDE = 36  # characters of all names that have room beside each other


def class_numbers(numbers, *, ax: Axes | None = None) -> Axes:
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
    check_kind("numbers", numbers, ClassNumbers, "what compare_classes returns")
    ax, table = axes(ax), numbers.table.sort_index()
    height, best = table["log_density"], numbers.best
    ax.axhline(height.max(), color=QUIET, linestyle=":", zorder=0)
    ax.errorbar(table.index, height, table["difference_error"], color=BLUE, marker="o", capsize=3)
    ax.plot([best], [height[best]], "o", markersize=13, markerfacecolor="none", color=COLOURS[1])
    ax.set(xlabel="classes", ylabel="log density of a row left out", xticks=list(table.index))
    return ax


def class_profiles(classifier, *, ax: Axes | None = None) -> Axes:
    """Draw what each class is: probabilities of the values of columns as lines, numbers as boxes, with intervals.

    Probabilities are on the left axis, with 95 % intervals. A box reaches from a standard deviation below the mean of
    a number in the class to one above it, on the right axis, in standard deviations of all rows from their mean; the
    bar in it is the interval of the mean.

    Parameters
    ----------
    classifier : fitted LatentClassClassifier
    ax : matplotlib Axes, default: the current Axes

    Examples
    --------
    >>> from bayesgen import LatentClassClassifier
    >>> X = np.r_[np.arange(20) / 20.0, 10 + np.arange(10) / 10.0][:, None]
    >>> ax = class_profiles(LatentClassClassifier(classes=2, starts=2, random_state=0).fit(X))
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['x0']
    """
    check_fitted("classifier", classifier, "class_profiles")
    ax, table = axes(ax), classifier.class_profiles()
    labels, means = classifier.classes_.tolist(), table.xs("mean", axis=1, level=1)
    share = means.loc[("class", "probability")].to_numpy()
    places = [place for place in table.index if place[0] != "class"]
    items = [p for p in places if p[1] == "probability" or p[1].startswith("P(")]
    sums = [p for p in places if p[1] in ("mean", "mean count")]
    names = [column if quantity == "probability" else f"{column} {quantity[2:-1]}" for column, quantity in items]
    right = ax.twinx() if items and sums else ax
    width = 0.8 / len(labels)
    for k, label in enumerate(labels):
        colour, name = COLOURS[k % 7], f"{label} ({share[k]:.0%})"
        if items:
            mean, low, high = (table.loc[items, (label, end)].to_numpy() for end in ("mean", "low", "high"))
            around = np.maximum([mean - low, high - mean], 0.0)  # the mean of a skewed density may lie outside
            style = {"color": colour, "marker": MARKS[k % 7], "linestyle": DASHES[k % 4], "capsize": 2}
            ax.errorbar(np.arange(len(items)), mean, around, label=name, **style)
        for j, (column, quantity) in enumerate(sums):
            each = means.loc[(column, quantity)].to_numpy()
            spread = means.loc[(column, "sd")].to_numpy() if (column, "sd") in places else np.sqrt(each)
            centre = share @ each
            unit = np.sqrt(share @ (spread**2 + (each - centre) ** 2)) or 1.0
            place = len(items) + j + (k + 0.5) * width - 0.4
            ends = [(table.loc[(column, quantity), (label, end)] - centre) / unit for end in ("low", "high")]
            middle, half = (each[k] - centre) / unit, spread[k] / unit
            told = name if not (items or j) else None
            right.bar(place, 2 * half, 0.9 * width, middle - half, color=colour, alpha=0.35, label=told)
            right.plot([place, place], ends, color=colour, linewidth=3, solid_capstyle="butt")
    if items:
        ax.set(ylabel="probability within the class", ylim=(-0.03, 1.03))
    if sums:
        right.set_ylabel("standard deviations from the mean of all rows")
    texts = [*names, *(column for column, _ in sums)]
    ax.set_xticks(range(len(texts)), texts, rotation=90 if sum(map(len, texts)) > _BESIDE else 0)
    return legend(ax)
