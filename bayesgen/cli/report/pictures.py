"""The pictures that the commands write, drawn without pyplot: no display, and no global state.

Pictures of a comparison, with captions, are for the page of `bayesgen compare`; `bayesgen plot` draws those of a saved
classifier, by name.
"""

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import auc, roc_curve

from bayesgen import decision, inspection, plot
from bayesgen.comparison import over_time
from bayesgen.core.errors import quoted, several

_WIDTH = 4.8  # inches of a picture in a page: shrunk to a telephone its text can still be read
_AROUND = 6  # pixels of paper around a panel
_CURVES = 8  # classes, the most frequent, whose ROC curves are drawn
_PANELS = 12  # columns that `bayesgen plot` draws at most


@dataclass(frozen=True)
class Picture:
    """A picture for the page and the folder of `bayesgen compare`."""

    png: bytes
    caption: str
    seen: str  # a description for those who do not see it
    parts: tuple[bytes, ...]  # its panels as PNGs, which a page shows beside or below each other as its width allows


def pictures(account) -> dict[str, Picture]:
    """Draw the pictures of an account, by name: of what predicts best, of inferences; of models, columns and times."""
    result, models, worth = account.result, account.models, account.worth.frame
    calibration = _calibration(account.source, account.by_class.name)
    found = {"probabilities": _probabilities(result), "calibration": calibration}
    if models is not None:
        found["models"] = _models(models)
    if len(worth):
        found["columns"] = _columns(worth)
    if account.benefits:
        found["net_benefit"] = _net_benefit(account.benefits)
    if result.time is not None:
        found["time"] = _times(account.source)
    return found


def save_figure(figure, file, path: Path) -> None:
    """Write a figure to an open file, in the format that the suffix of its path names: PNG where it has none."""
    figure.savefig(file, dpi=150, format=path.suffix[1:].lower() or "png")


def _figure(width: float, height: float):
    """Return a figure of a width and height in inches, in no window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def drawn(width: float, height: float, draw: Callable[..., Any], *given, **options):
    """Return a figure that holds what one function draws."""
    figure = _figure(width, height)
    draw(*given, **options, ax=figure.subplots())
    return figure


def picture(figure: Any, caption: str, seen: str) -> Picture:
    """Return a figure as a picture, whole and cut into its panels."""
    from matplotlib.image import imsave

    def png(pixels) -> bytes:
        imsave(content := io.BytesIO(), pixels, format="png")
        return content.getvalue()

    figure.set_dpi(150)
    figure.canvas.draw()
    whole, parts = np.asarray(figure.canvas.buffer_rgba()), []
    height, width = whole.shape[:2]
    for ax in figure.axes:
        box = ax.get_tightbbox().padded(_AROUND)
        left, right = max(0, int(box.x0)), min(width, int(box.x1))
        top, bottom = max(0, int(height - box.y1)), min(height, int(height - box.y0))
        parts.append(png(whole[top:bottom, left:right]))
    return Picture(png(whole), caption, seen, tuple(parts))


def _panels(count: int):
    """Return a figure and ``count`` square panels, two in a row: they can be read on a telephone."""
    rows, columns = -(-count // 2), min(count, 2)
    figure = _figure(3.4 * columns + 0.4, 3.6 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.remove()
    return figure, axes[:count]


def _title(result, name, rows) -> str:
    folds = len(set(result.fold[rows]))
    return name if folds == result.folds else f"{name}, {folds} of {result.folds} folds"


def _probabilities(result) -> Picture:
    names = [name for name in result.probability if result.learned(name).any()]
    reference = "exact" if "exact" in names and len(names) > 1 else None
    others = [name for name in names if name != reference]
    figure, axes = _panels(len(others))
    for name, ax in zip(others, axes, strict=True):
        found = result.judged(name)
        both = (result.learned(reference) if reference else result.learned(name))[found.row]
        rows = found.row[both]
        against = result.probability[reference][rows] if reference else None
        plot.probabilities(found.truth[both], found.probability[both], against, ax=ax)
        ax.set(xlabel=f"the same under {reference}" if reference else ax.get_xlabel())
        ax.set_title(_title(result, name, rows), fontsize=10)
    caption = "The probability that each held-out row gave to its true class"
    if reference is None:
        return picture(figure, f"{caption}.", f"{caption}, in log odds, by rank: {', '.join(others)}.")
    apart = _listed({name: result.difference(name).max(initial=0.0) for name in others})
    return picture(
        figure,
        f"{caption}, against that under the exact posterior. Off the diagonal the two differ.",
        f"{caption}, in log odds, against the same under exact, a panel each for {', '.join(others)}. The largest "
        f"differences of a class probability: {apart}.",
    )


def _calibration(result, name: str) -> Picture:
    """Draw the reliability of one model or inference, and beside it its ROC curves."""
    figure, (left, right) = _panels(2)
    rows, truth, p, weight, group = result.judged(name)
    plot.reliability(truth, p, groups=group, weights=weight, ax=left)
    left.set_title(_title(result, name, rows), fontsize=10)
    counts = np.bincount(truth, minlength=len(result.classes))
    shown = [1] if len(counts) == 2 else np.argsort(-counts, kind="stable")[:_CURVES].tolist()
    areas = {}
    for k in shown:
        if 0 < counts[k] < len(truth):
            wrong, right_ones, _ = roc_curve(truth == k, p[:, k], sample_weight=weight)
            areas[str(result.classes[k])] = area = float(auc(wrong, right_ones))
            shown_as = str(result.classes[k]).replace("$", r"\$")  # no formula
            right.plot(wrong, right_ones, label=f"{shown_as}: {area:.3f}")
    right.plot([0, 1], [0, 1], "--", color="grey", linewidth=1)
    right.set(xlabel="1 - specificity", ylabel="sensitivity", aspect="equal")
    right.set_title("ROC, with the area below it", fontsize=10)
    if areas:
        right.legend(loc="lower right", fontsize=8)
    return picture(
        figure,
        f"{name}. Left or above: how often the most probable class is the true one, against its probability: points "
        "in bins, with 95 % intervals and numbers of rows, and a line without bins. On the dashed diagonal both are "
        "the same; below it the probabilities are too sure. In the shade are 90 % of such lines if they "
        "are right. The other: how many rows of a class are found, against how many others are taken for it.",
        f"Reliability diagram and ROC curves of {name}. The calibration error, the mean distance to the diagonal: "
        f"{result.scores(name).calibration_error:.4f}. Areas below the curves: {_listed(areas)}.",
    )


def _models(models) -> Picture:
    above = models.table["difference"].drop(index=models.best).dropna()
    return picture(
        drawn(_WIDTH, 0.8 + 0.42 * len(models.probability), plot.models, models),
        f"By how much the log loss of each model is above that of {models.best}, row by row, with two standard errors "
        "of the difference on either side. Beside the names stand the log losses.",
        f"Log loss of models above that of {models.best}: {_listed(above.to_dict())}.",
    )


def _net_benefit(benefits) -> Picture:
    first = next(iter(benefits.values()))
    half = {name: found.model[49] for name, found in benefits.items()}
    return picture(
        drawn(_WIDTH, 4.0, plot.net_benefit, benefits),
        f"What acting on held-out probabilities is worth in a row, {first.unit}, by the {first.varied}, beside acting "
        "on all rows and on none. A curve is faint where fewer than 20 rows are acted on, or fewer than 20 are not.",
        f"Net benefit at a threshold of 0.5: {_listed(half)}; of acting on all {first.single['all'][49]:.4f}.",
    )


def _columns(worth) -> Picture:
    mean = worth.mean().sort_values(ascending=False)
    return picture(
        _importance_figure(worth, _WIDTH),
        "By how much the log loss of held-out rows grows where a column is missing, with two standard errors on either "
        "side: to the right of 0 a column helps beside all the others.",
        f"Growth of the log loss where a column is missing: {_listed(mean.to_dict())}.",
    )


def _importance_figure(worth, width: float):
    return drawn(width, 1.0 + 0.32 * min(worth.shape[1], 20), plot.importance, worth)


def _times(result) -> Picture:
    figure = _figure(6.8, 6.4)
    above, below = figure.subplots(2, 1, sharex=True)
    plot.running_score(result, ax=above).set(xlabel="")
    plot.calibration_over_time(result, ax=below)
    best = result.best_first()[0]
    table = over_time(result, best)
    losses, right = (", ".join(f"{v:.3f}" for v in table[name]) for name in ("log_loss", "frequency"))
    return picture(
        figure,
        "Above: the log loss of rows that were predicted from earlier ones, a mean for each period with two standard "
        "errors on either side; grey lines stand where the models were learned anew. Below: how often the predicted "
        f"class of {best} was the true one, with 95 % intervals, and the probability that it was given. A log loss "
        "that rises, and a probability outside its interval, say that what was learned holds no longer.",
        f"Over time, of {best}: log losses {losses}; the predicted class is right in {right}.",
    )


def _listed(values: Mapping) -> str:
    """Return names with their numbers, the first six."""
    return several(f"{name} {value:.4f}" for name, value in values.items())


@dataclass(frozen=True)
class Asked:
    """Subject of a picture of `bayesgen plot`: a classifier, its columns, and rows with their classes, if any."""

    classifier: Any
    columns: Sequence[str]
    X: Any = None
    y: Any = None
    loss: Any = None  # a DataFrame with the cost of each action under each class
    reject_cost: float | None = None


def _distributions(asked: Asked):
    shown = asked.columns[:_PANELS]
    if len(shown) < len(asked.columns):
        warnings.warn(f"the first {_PANELS} of {len(asked.columns)} columns; --columns names others", stacklevel=2)
    figure, axes = _panels(len(shown))
    for name, ax in zip(shown, axes, strict=True):
        plot.column(asked.classifier, name, ax=ax)
    return figure


def _members(asked: Asked):
    if not hasattr(asked.classifier, "members_"):
        raise ValueError(f"{type(asked.classifier).__name__} is one model: averaged classifiers alone have members")
    return drawn(6.4, 4.8, plot.members, asked.classifier)


def _of_truth(draw: Callable[..., Any], asked: Asked):
    figure, (ax,) = _panels(1)
    draw(asked.y, asked.classifier.predict_proba(asked.X), labels=asked.classifier.classes_, ax=ax)
    return figure


def _confusion(asked: Asked):
    classes, loss, reject_cost = asked.classifier.classes_, asked.loss, asked.reject_cost
    taken = decision.act(asked.classifier.predict_proba(asked.X), loss, classes, reject_cost=reject_cost)["action"]
    width, height = 2.4 + 1.2 * (loss.shape[1] + (reject_cost is not None)), 1.6 + 0.7 * len(loss)
    return drawn(width, height, plot.confusion, asked.y, taken, loss, reject_cost=reject_cost)


def _regions(asked: Asked):
    if len(asked.columns) != 2:
        raise ValueError("--of decision_regions draws two columns: name them by --columns, with a comma between")
    if found := [column for column in asked.columns if asked.classifier.schema_.block_of[column].categories]:
        raise ValueError(f"--of decision_regions draws two columns of numbers, and {quoted(found[0])} has categories")
    return drawn(6.4, 4.8, plot.decision_regions, asked.classifier, asked.X[list(asked.columns)], asked.y)


# The function that draws each, and True if it needs rows with their classes.
GALLERY: dict[str, tuple[Callable[[Asked], Any], bool]] = {
    "columns": (_distributions, False),
    "members": (_members, False),
    "reliability": (partial(_of_truth, plot.reliability), True),
    "probabilities": (partial(_of_truth, plot.probabilities), True),
    "confusion": (_confusion, True),
    "importance": (lambda a: _importance_figure(inspection.importance(a.classifier, a.X, a.y), 6.4), True),
    "decision_regions": (_regions, True),
}
