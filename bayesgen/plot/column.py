"""What a classifier has learned of one column."""

import copy
from typing import TYPE_CHECKING

import numpy as np

from bayesgen.messages import named
from bayesgen.plot.style import COLOURS, DASHES, axes, dated, numbers_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DRAWN = 2000  # rows of the predictive, whose range is shown
_MOST_BARS = 24  # a curve beyond
_POINTS = 301


def column(classifier, name: str, *, ax: "Axes | None" = None) -> "Axes":
    r"""Draw how the values of one column are distributed in each class, after what was learned.

    .. math:: p(x_j \mid t = k, \text{data})

    The parameters and all other columns are integrated out. Numbers have a density, categories and counts a bar for
    each value. Where the curves of two classes lie apart, the column tells these classes apart.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        Whose predictive is drawn.
    name : str
        A column of the fit; of an array "x0", "x1", ....
    ax : matplotlib Axes, optional
        Where to draw; default: the current Axes.

    Raises
    ------
    ValueError
        Where the classifier has no such column, or no distribution of its columns.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier, data
    >>> penguins = data.load("penguins")
    >>> classifier = NaiveBayesClassifier(random_state=0).fit(penguins[["island", "body_mass_g"]], penguins["species"])
    >>> ax = column(classifier, "body_mass_g")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('body_mass_g', 'density within the class')
    """
    block = _block(classifier, name)
    ax, values = axes(ax), list(block.categories or _typical(classifier, name))
    heights = _within_classes(classifier, name, values)
    whole = block.categories is not None or not any(value % 1 for value in values)
    ax.set(xlabel=name, ylabel="probability within the class" if whole else "density within the class")
    if whole and len(values) <= _MOST_BARS:
        places, width = np.arange(len(values)), 0.8 / len(classifier.classes_)
        for k, label in enumerate(classifier.classes_):
            beside = places + (k + 0.5) * width - 0.4
            ax.bar(beside, heights[:, k], width, color=COLOURS[k % 7], label=str(label))
        ax.set_xticks(places, [f"{value:g}" if isinstance(value, float) else str(value) for value in values])
    else:
        for k, label in enumerate(classifier.classes_):
            (line,) = ax.plot(values, heights[:, k], color=COLOURS[k % 7], linestyle=DASHES[k % 4], label=str(label))
            line.set_marker("." if whole else "")
        ax.set_xlim(values[0], values[-1])
        dated(ax.xaxis, classifier, name)
    ax.set_ylim(0, 1.3 * heights.max())  # room for the legend
    ax.legend(fontsize=8, ncols=3, loc="upper center")
    return ax


def _block(classifier, name: str):
    """The block of columns that ``name`` is one of."""
    if not hasattr(classifier, "predict_joint_log_proba"):
        raise ValueError(f"a {type(classifier).__name__} learns nothing of how its columns are distributed")
    blocks = classifier.schema_.blocks
    for block in blocks:
        if name in block.columns:
            return block
    raise ValueError(f"no column {name!r}; there are: {named(c for block in blocks for c in block.columns)}")


def _typical(classifier, name: str) -> np.ndarray:
    """Values to draw at, increasing: over the central 98 % of each class, of the predictive."""
    drawn, labels = copy.copy(classifier).set_params(random_state=0).sample(_DRAWN)
    columns = list(classifier.schema_.columns)
    values = numbers_of(classifier, drawn[name] if hasattr(drawn, "columns") else drawn[:, columns.index(name)], name)
    # A draw beyond the calendar is missing.
    ends = np.array([np.nanquantile(values[labels == label], [0.01, 0.99]) for label in np.unique(labels)])
    low, high = ends[:, 0].min(), ends[:, 1].max()
    if (values % 1).any():
        return np.linspace(low, high, _POINTS)
    return np.arange(low, high + 1, max(1, (high - low) // _POINTS))


def _within_classes(classifier, name: str, values) -> np.ndarray:
    """p(x_j | t = k) of each value and class: rows with all else missing, less the row with nothing at all."""
    import pandas as pd

    columns = list(classifier.schema_.columns)
    rows = pd.DataFrame(np.nan, index=range(len(values) + 1), columns=columns).astype({name: object})
    rows[name] = pd.Series([*values, np.nan], dtype=object).infer_objects()
    joint = classifier.predict_joint_log_proba(rows if hasattr(classifier, "feature_names_in_") else rows.to_numpy())
    return np.exp(joint[:-1] - joint[-1])
