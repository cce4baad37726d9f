"""Pictures of classifiers: densities and probabilities over one column, regions and boundaries over two."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.numerics.checks import check_kind
from bayesgen.plot import style
from bayesgen.plot.style import COLOURS, DASHES, QUIET, Axes, axes, check_fitted, columns_of, legend


def class_conditionals(classifier, x: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw p(x, t = k) of every class along one column, and the class probability that follows by Bayes' rule.

    Two equal Gaussians give the sigmoid, several the softmax. The area under a density is the probability of its
    class, and where two densities cross their classes are equally probable. Probabilities have an axis of their own
    at the right, a twin of the Axes returned.

    Parameters
    ----------
    classifier : fitted generative estimator
        Estimator of one column.
    x : array_like, shape (n,)
        Values to draw at.
    ax : matplotlib Axes, default: the current Axes
    """
    check_fitted("classifier", classifier, "score_samples")
    ax, x = axes(ax), np.atleast_1d(np.asarray(x, float))
    rows, names = style.rows_for(classifier, x[:, None]), classifier.classes_
    log_probability = classifier.predict_log_proba(rows)
    density = np.exp(log_probability + classifier.score_samples(rows)[:, None])
    right = ax.twinx()
    for k, name in enumerate(names):
        ax.fill_between(x, density[:, k], color=COLOURS[k % 7], alpha=0.15, linewidth=0)
        ax.plot(x, density[:, k], color=COLOURS[k % 7], linewidth=1, label=f"p(x, {name})")
    for k in range(len(names) == 2, len(names)):
        label = f"P({names[k]} | x)"
        right.plot(x, np.exp(log_probability[:, k]), color=COLOURS[k % 7], linestyle="--", linewidth=2, label=label)
    right.set(ylim=(0, 1.02), ylabel="probability of the class (dashed)")
    ax.set(xlabel=columns_of(classifier, 1)[0], ylabel="density", xlim=(x.min(), x.max()))
    ax.set_ylim(0, 1.05 * density.max())
    handles, labels = (a + b for a, b in zip(*(a.get_legend_handles_labels() for a in (ax, right)), strict=True))
    ax.legend(handles, labels, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(names))
    return ax


def decision_regions(classifier, X: ArrayLike, y: ArrayLike, *, steps: int = 121, ax: Axes | None = None) -> Axes:
    """Draw the regions of the most probable class over two columns, with a band for the uncertainty of the boundary.

    Every draw of the posterior has boundaries of its own. The band is where draws disagree on the class: the class that
    most draws choose is chosen by fewer than 95 % of them. For two classes this is the central 90 % interval of the
    boundary's position at each place; whole boundaries lie in it less often. A point estimate has no band, nor has an
    estimator of another package. `agreement` returns the share of the draws for a band of another level.

    Parameters
    ----------
    classifier : fitted estimator
        Estimator of two columns, or of more if it takes gaps.
    X, y : array_like, shapes (n, 2) and (n,)
        Rows to draw, which also set the limits. A DataFrame may hold two of the fitted columns; the others are
        then integrated out.
    steps : int
        Points of the grid in each direction.
    ax : matplotlib Axes, default: the current Axes
    """
    check_fitted("classifier", classifier)
    ax = axes(ax)
    first, second, rows = style.grid(ax, style.numbers(classifier, X), steps)
    table = style.rows_for(classifier, rows, X)
    probability = classifier.predict_proba(table)
    best = probability.argmax(1).reshape(first.shape)
    for k in range(probability.shape[1]):
        region = np.where(best == k, 1.0, np.nan)
        ax.pcolormesh(first, second, region, cmap=style.shades(COLOURS[k % 7], 0.16), vmin=0, vmax=1, rasterized=True)
    share = agreement(classifier, table) if hasattr(classifier, "model_") else None
    if share is not None and share.min() < 1:
        ax.contourf(first, second, share.reshape(first.shape), levels=[0.0, 0.95], colors="0.3", alpha=0.25)
        ax.fill([], [], color="0.3", alpha=0.25, label="90% of boundaries")
    _boundaries(ax, first, second, probability, colors="0.1", linewidths=1.2)
    style.scatter(ax, classifier, X, y)
    return _within(ax, first, second)


def agreement(classifier, rows: ArrayLike, draws: int = 200) -> np.ndarray:
    """Return the share of posterior draws that agree with most of them on the most probable class, (n,): 1 / K to 1.

    Parameters
    ----------
    classifier : fitted estimator of bayesgen
        Estimator with a posterior.
    rows : array or DataFrame, shape (n, D)
        Rows.
    draws : int
        Number of posterior draws.
    """
    check_fitted("classifier", classifier, "posterior_", "model_")
    posterior, x = classifier.posterior_, classifier.fitted_.read(style.rows_for(classifier, rows))
    joint = posterior.model.log_likelihood_rows(posterior.draws(0, (draws,)), posterior.model.check(x))
    chosen = joint.argmax(1)[:, None] == np.arange(joint.shape[1])[:, None]
    return chosen.mean(0).max(0)


def class_probabilities(
    classifier, X: ArrayLike, y: ArrayLike, point: ArrayLike | None = None, *, steps: int = 121, ax: Axes | None = None
) -> Axes:
    """Draw P(t = k | x) of every class over two columns, as contours of .5, .9 and .99, its density, and a new point.

    Parameters
    ----------
    classifier : fitted generative estimator
        Estimator of two columns, or of more if it takes gaps.
    X, y, steps
        As for `decision_regions`.
    point : array_like, shape (2,), optional
        A new row; its class probabilities are written beside it.
    ax : matplotlib Axes, default: the current Axes
    """
    check_fitted("classifier", classifier, "score_samples")
    ax, points = axes(ax), style.numbers(classifier, X)
    points = points if point is None else np.vstack([points, point])
    first, second, rows = style.grid(ax, points, steps)
    table = style.rows_for(classifier, rows, X)
    probability = classifier.predict_proba(table)
    density = probability * np.exp(classifier.score_samples(table))[:, None]
    for k in range(probability.shape[1]):
        shade = density[:, k].reshape(first.shape)
        ax.pcolormesh(first, second, shade, cmap=style.shades(COLOURS[k % 7], 0.6), rasterized=True)
        surface = probability[:, k].reshape(first.shape)
        style_of: dict = {"colors": COLOURS[k % 7], "linewidths": 1, "linestyles": "--"}
        lines = ax.contour(first, second, surface, levels=[0.5, 0.9, 0.99], **style_of)
        ax.clabel(lines, fmt="%g", fontsize=7)
    style.scatter(ax, classifier, X, y)
    if point is not None:
        point = np.asarray(point, float)
        chances = classifier.predict_proba(style.rows_for(classifier, point[None], X))[0]
        text = "\n".join(f"P({name}) = {p:.2g}" for name, p in zip(classifier.classes_, chances, strict=True))
        ax.plot(*point, "*", color="0.1", markersize=13, label="new row", linestyle="none", zorder=4)
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": QUIET, "alpha": 0.85}
        ax.annotate(text, (*point,), (8, -8), textcoords="offset points", va="top", fontsize=8, bbox=box, zorder=5)
    return _within(ax, first, second)


def boundaries(classifiers: Mapping[str, Any], X: ArrayLike, y: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Draw the boundaries of several classifiers over two columns, such as LDA and logistic under an outlier.

    Parameters
    ----------
    classifiers : mapping from label to fitted estimator
        Anything with ``predict_proba`` and ``classes_``.
    X, y
        As for `decision_regions`.
    ax : matplotlib Axes, default: the current Axes
    """
    _check_all(classifiers)
    ax, any_of_them = axes(ax), next(iter(classifiers.values()))
    first, second, rows = style.grid(ax, style.numbers(any_of_them, X), 161)
    style.scatter(ax, any_of_them, X, y)
    for i, (label, classifier) in enumerate(classifiers.items()):
        probability = classifier.predict_proba(style.rows_for(classifier, rows, X))
        colour, dash = COLOURS[-1 - i % 7], DASHES[i % 4]  # from the end: the first ones mark the classes
        _boundaries(ax, first, second, probability, colors=[colour], linestyles=[dash], linewidths=1.8)
        ax.plot([], [], color=colour, linestyle=dash, linewidth=1.8, label=label)
    return _within(ax, first, second)


def along_line(
    classifiers: Mapping[str, Any],
    start: ArrayLike,
    stop: ArrayLike,
    *,
    X: ArrayLike | None = None,
    class_index: int = -1,
    ax: Axes | None = None,
) -> Axes:
    """Draw the probability of a class along a line by several classifiers, such as ML, MAP and Bayes far from the data.

    Parameters
    ----------
    classifiers : mapping from label to fitted estimator
        As for `boundaries`.
    start, stop : array_like, shape (D,)
        Ends of the line.
    X : array_like, shape (n, D), optional
        Rows whose orthogonal projections on the line are drawn as ticks.
    class_index : int
        Index of the class in ``classes_``.
    ax : matplotlib Axes, default: the current Axes
    """
    _check_all(classifiers)
    ax, start, stop = axes(ax), np.asarray(start, float), np.asarray(stop, float)
    length = float(np.linalg.norm(stop - start))
    distance = np.linspace(0, length, 401)
    rows = start + distance[:, None] / length * (stop - start)
    for i, (label, classifier) in enumerate(classifiers.items()):
        probability = classifier.predict_proba(style.rows_for(classifier, rows))[:, class_index]
        ax.plot(distance, probability, color=COLOURS[i % 7], linestyle=DASHES[::-1][(i + 1) % 4], label=label)
    if X is not None:
        seen = (np.asarray(X, float) - start) @ (stop - start) / length
        ax.plot(seen, np.full(len(seen), -0.03), "|", color="0.2", markersize=8, label="rows seen")
    name = next(iter(classifiers.values())).classes_[class_index]
    ax.set(xlim=(0, length), ylim=(-0.06, 1.03), xlabel="distance along the line", ylabel=f"P({name} | x)")
    return legend(ax)


def _check_all(classifiers) -> None:
    check_kind("classifiers", classifiers, Mapping, "a mapping from label to fitted classifier")
    if not classifiers:
        raise ValueError("classifiers must hold one fitted classifier at least")
    for label, classifier in classifiers.items():
        check_fitted(f"classifiers[{label!r}]", classifier)


def _within(ax: Axes, first, second) -> Axes:
    ax.set(xlim=(first.min(), first.max()), ylim=(second.min(), second.max()))
    return legend(ax)


def _boundaries(ax, first, second, probability, **drawn):
    """Draw the points where two classes are equally probable and no third is more so, as contours of log odds."""
    log_probability = np.log(np.maximum(probability, 1e-300))  # log odds are smooth where probabilities jump
    for k in range(probability.shape[1] - 1):  # every boundary borders a class other than the last
        rival = np.delete(log_probability, k, axis=1).max(1)
        margin = (log_probability[:, k] - rival).reshape(first.shape)
        if margin.min() < 0 < margin.max():
            ax.contour(first, second, margin, levels=[0.0], **drawn)
