"""The pictures of a saved classifier that `bayesgen plot` draws, by name."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bayesgen import decision, inspection, plot
from bayesgen.cli.report.pictures import make_figure, panels

_PANELS = 12


@dataclass(frozen=True)
class Asked:
    """Subject of a picture: a classifier, its columns, and rows with their classes, if any.

    ``loss`` is a DataFrame with the cost of each action under each class.
    """

    classifier: Any
    columns: Sequence[str]
    X: Any = None
    y: Any = None
    loss: Any = None
    reject_cost: float | None = None


def _name(asked: Asked) -> str:
    return type(asked.classifier).__name__


def _columns(asked: Asked):
    if not hasattr(asked.classifier, "sample"):
        raise ValueError(f"a {_name(asked)} learns nothing of how its columns are distributed")
    shown = asked.columns[:_PANELS]
    if len(shown) < len(asked.columns):
        warnings.warn(f"the first {_PANELS} of {len(asked.columns)} columns; --columns names others", stacklevel=2)
    figure, axes = panels(len(shown))
    for name, ax in zip(shown, axes, strict=True):
        plot.column(asked.classifier, name, ax=ax)
    return figure


def _members(asked: Asked):
    if not hasattr(asked.classifier, "members_"):
        raise ValueError(f"a {_name(asked)} is one model: averaged classifiers alone have members")
    figure = make_figure(6.4, 4.8)
    plot.members(asked.classifier, ax=figure.subplots())
    return figure


def _reliability(asked: Asked):
    figure, (ax,) = panels(1)
    classes = asked.classifier.classes_
    plot.reliability(asked.y, asked.classifier.predict_proba(asked.X), labels=classes, ax=ax)
    return figure


def _probabilities(asked: Asked):
    figure, (ax,) = panels(1)
    classes = asked.classifier.classes_
    plot.probabilities(asked.y, asked.classifier.predict_proba(asked.X), labels=classes, ax=ax)
    return figure


def _confusion(asked: Asked):
    classes, loss, reject_cost = asked.classifier.classes_, asked.loss, asked.reject_cost
    taken = decision.act(asked.classifier.predict_proba(asked.X), loss, classes, reject_cost=reject_cost)["action"]
    figure = make_figure(2.4 + 1.2 * (loss.shape[1] + (reject_cost is not None)), 1.6 + 0.7 * len(loss))
    plot.confusion(asked.y, taken, loss, reject_cost=reject_cost, ax=figure.subplots())
    return figure


def _importance(asked: Asked):
    worth = inspection.importance(asked.classifier, asked.X, asked.y)
    figure = make_figure(6.4, 1.0 + 0.32 * min(worth.shape[1], 20))
    plot.importance(worth, ax=figure.subplots())
    return figure


def _regions(asked: Asked):
    if len(asked.columns) != 2:
        raise ValueError("--of regions draws two columns: name them by --columns, with a comma between")
    figure = make_figure(6.4, 4.8)
    plot.decision_regions(asked.classifier, asked.X[list(asked.columns)], asked.y, ax=figure.subplots())
    return figure


# The function that draws each, and True if it needs rows with their classes.
GALLERY: dict[str, tuple[Callable[[Asked], Any], bool]] = {
    "columns": (_columns, False),
    "members": (_members, False),
    "reliability": (_reliability, True),
    "probabilities": (_probabilities, True),
    "confusion": (_confusion, True),
    "importance": (_importance, True),
    "regions": (_regions, True),
}
