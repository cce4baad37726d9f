"""Pictures of class probabilities: reliability, confidence, cost, scores by size and over time; and of calibration."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.comparison import Comparison, over_time
from bayesgen.decision import outcomes
from bayesgen.evaluation import reliability_curve, reliability_table
from bayesgen.numerics.checks import check_kind
from bayesgen.plot.style import BLUE, COLOURS, DASHES, MARKS, QUIET, VERMILION, Axes, axes, date_ticks, legend

if TYPE_CHECKING:
    from bayesgen.testing import Calibration

RIGHT, WRONG = BLUE, VERMILION
_FLOOR = 1e-9  # probabilities beyond are drawn at the edge


def reliability(
    y_true: ArrayLike,
    probability: ArrayLike,
    *,
    bins: int = 10,
    labels: outcomes.Labels | None = None,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the frequency with which the most probable class is the true one, against its probability.

    On the diagonal, predictions with probability 0.7 are right in 70 % of the cases; below it the classifier is
    overconfident. The line is `bayesgen.evaluation.reliability_curve`, without bins; the shade is where 90 % of such
    lines are if the probabilities are right. Points are of bins, bars their 95 % Jeffreys intervals
    (`bayesgen.evaluation.reliability_table`), numbers count the rows in a bin. The mean
    distance to the diagonal, weighted by rows, is `bayesgen.evaluation.expected_calibration_error`.

    Parameters
    ----------
    y_true : array_like, shape (n,)
        True classes: labels, or codes 0 to K - 1.
    probability : array_like, shape (n, K), or (n,) for two classes
        Predicted probabilities of all classes, or of the second class.
    bins : int
        Number of bins of equal width.
    labels : sequence, shape (K,), optional
        The classes in the order of the columns, where `y_true` may lack one; default: its distinct labels, sorted.
    groups : array_like, shape (n,), optional
        Label of what a row belongs to, where rows belong together: the bars then resample groups.
    weights : array_like, shape (n,), optional
        Nonnegative weights of the rows.
    ax : matplotlib Axes, default: the current Axes
    """
    (truth, probability), ax = outcomes.truth_and_probability(y_true, probability, labels), axes(ax)
    top, right = probability.max(1), (probability.argmax(1) == truth).astype(int)
    table = reliability_table(right, np.stack([1 - top, top], axis=1), bins, sample_weight=weights, groups=groups)
    curve = reliability_curve(right, top, weights=weights, groups=groups)
    count, p, frequency, lower, upper = (
        v[1][table.count[1] > 0] for v in (table.count, table.probability, table.frequency, table.lower, table.upper)
    )
    low, high = min(1 / probability.shape[1], lower.min()) - 0.1, 1.03  # room for the numbers at the foot
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", zorder=1)
    ax.fill_between(curve.probability, curve.lower, curve.upper, color=QUIET, alpha=0.15, linewidth=0, zorder=0)
    ax.vlines(p, lower, upper, color=RIGHT, linewidth=1.5, alpha=0.6, zorder=2)
    ax.plot(p, frequency, "o", color=RIGHT, markersize=5, zorder=3)
    ax.plot(curve.probability, curve.frequency, color=VERMILION, linewidth=1, zorder=1)
    foot = ax.get_xaxis_transform()  # x as the data, y from 0 at the foot to 1
    for x, n in zip(p, count, strict=True):
        ax.text(x, 0.01, f"{n:.0f}", transform=foot, ha="center", va="bottom", fontsize=7, color="0.35")
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal", ylabel="how often it is the true class")
    ax.set_xlabel("probability of the predicted class\n(numbers at the foot: rows)")
    return ax


def probabilities(
    y_true: ArrayLike,
    probability: ArrayLike,
    reference: ArrayLike | None = None,
    *,
    labels: outcomes.Labels | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the predicted probability of the true class, row by row, against a reference's prediction.

    Both axes are in log odds, where 0.99 and 0.9999 are apart. For rows above the diagonal in the upper half, or below
    it in the lower half, ``probability`` is surer than the reference, rightly or wrongly, as plug-in estimates are with
    few data. Without a reference rows are ranked by their probability.

    Parameters
    ----------
    y_true, probability, labels
        As for `reliability`.
    reference : array_like, optional
        Probabilities of another prediction, in the form of ``probability``.
    ax : matplotlib Axes, default: the current Axes
    """
    (truth, probability), ax = outcomes.truth_and_probability(y_true, probability, labels), axes(ax)
    rows = np.arange(len(truth))
    right = probability.argmax(1) == truth
    y = np.clip(probability[rows, truth], _FLOOR, 1 - _FLOOR)
    if reference is None:
        x = (y.argsort().argsort() + 0.5) / len(y)
        ax.set(xlabel="fraction of rows")
    else:
        against = outcomes.truth_and_probability(y_true, reference, labels)[1]
        x = np.clip(against[rows, truth], _FLOOR, 1 - _FLOOR)
        ax.axline((0, 0), (1, 1), transform=ax.transAxes, color="0.6", linewidth=1, linestyle="--", zorder=1)
        _log_odds(ax, "x")
    _log_odds(ax, "y")
    for mask, colour, mark, label in ((right, RIGHT, "o", "right"), (~right, WRONG, "X", "wrong")):
        style: dict = {"s": 18, "c": colour, "marker": mark, "alpha": 0.6, "linewidth": 0, "zorder": 2}
        ax.scatter(x[mask], y[mask], label=f"{label} ({mask.sum()})", **style)
    edge = f"edge: beyond {_FLOOR:.0e}".replace("e-0", "e-")
    ax.legend(loc="lower right", fontsize=8, handletextpad=0.2, title=edge, title_fontsize=7)
    ax.set(ylabel="probability of the true class")
    return ax


def confusion(
    y_true: ArrayLike,
    action: ArrayLike,
    loss: ArrayLike,
    *,
    classes: outcomes.Labels | None = None,
    actions: outcomes.Labels | None = None,
    reject_cost: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the number of rows of each class under each action, coloured by their total cost.

    Parameters
    ----------
    y_true : array_like, shape (n,)
        True classes: labels, or codes 0 to K - 1.
    action : array_like, shape (n,)
        Actions taken: codes 0 to A - 1 and `REJECT`, as from `bayesgen.decision.decide`, or their names, as from
        `bayesgen.decision.act`. Rejected rows have a column of their own, "asked".
    loss : array_like or DataFrame, shape (K, A)
        Loss of each action under each truth.
    classes, actions : sequence, optional
        Classes in the order of the rows of `loss`, and actions in the order of its columns; default: their codes, and
        for K actions the classes; for a DataFrame its index and its columns, found by name where these are given.
    reject_cost : float, optional
        Cost of a rejected row, needed if there is any.
    ax : matplotlib Axes, default: the current Axes
    """
    ax, (truth, matrix, classes, actions) = axes(ax), outcomes.truth_and_loss(y_true, loss, classes, actions)
    if classes is None:
        classes = outcomes.classes_by_code(y_true, truth, len(matrix))
    if actions is None:
        actions = classes if len(matrix) == matrix.shape[1] else range(matrix.shape[1])
    codes = outcomes.action_codes(action, actions, matrix.shape[1], len(truth))
    actions = [str(name) for name in actions]
    if (codes == outcomes.REJECT).any():
        if reject_cost is None:
            raise ValueError("reject_cost is needed: some rows were rejected, and their cost is part of the mean loss.")
        matrix = np.column_stack([matrix, np.full(len(matrix), outcomes.finite(reject_cost))])
        codes, actions = np.where(codes == outcomes.REJECT, len(actions), codes), [*actions, "asked"]
    count = np.zeros(matrix.shape, int)
    np.add.at(count, (truth, codes), 1)
    cost = count * matrix
    reach = np.abs(cost).max() or 1.0
    ax.imshow(cost, cmap="PuOr_r", vmin=-reach, vmax=reach, aspect="auto")
    for (i, j), n in np.ndenumerate(count):
        ink = "white" if abs(cost[i, j]) > 0.7 * reach else "0.1"
        ax.text(j, i, f"{n}\ncost {cost[i, j]:g}", ha="center", va="center", color=ink)
    ax.set_xticks(range(matrix.shape[1]), actions)
    ax.set_yticks(range(len(matrix)), [str(c) for c in classes])
    ax.set(xlabel="action", ylabel="truth", title=f"mean loss {cost.sum() / max(len(truth), 1):.3g}")
    return ax


def learning_curves(sizes: ArrayLike, scores: Mapping[str, ArrayLike], *, ax: Axes | None = None) -> Axes:
    """Draw the log loss of held-out rows against the number of training rows: mean over repeats ± 2 standard errors.

    Parameters
    ----------
    sizes : array_like, shape (s,)
        Numbers of training rows.
    scores : mapping from label to array_like, shape (repeats, s)
        Log losses of each method.
    ax : matplotlib Axes, default: the current Axes
    """
    check_kind("scores", scores, Mapping, "a mapping from label to scores")
    ax, sizes = axes(ax), np.atleast_1d(sizes)
    for i, (label, values) in enumerate(scores.items()):
        values = np.atleast_2d(np.asarray(values, float))
        mean, error = values.mean(0), np.zeros(len(sizes))
        if len(values) > 1:
            error = 2 * values.std(0, ddof=1) / len(values) ** 0.5
        _banded(ax, i, sizes, mean, error, label)
    ax.set(xscale="log", xlabel="rows learned from", ylabel="log loss on other rows")
    ax.set_xticks(sizes, [f"{n:g}" for n in sizes])
    ax.xaxis.minorticks_off()
    return legend(ax)


def _banded(ax: Axes, i: int, x, mean, error, label: str) -> None:
    colour = COLOURS[i % 7]
    ax.plot(x, mean, label=label, markersize=4, color=colour, marker=MARKS[i % 7], linestyle=DASHES[i % 4])
    ax.fill_between(x, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)


def running_score(result: Comparison, *, ax: Axes | None = None) -> Axes:
    """Draw the log loss of the best seven models over time: mean ± 2 standard errors, in the middle of each period.

    Periods are those of `bayesgen.comparison.over_time`. Where a curve rises, what was learned fits the rows of that
    time less well than it did: there is drift, or a model has seen too few rows. Vertical lines stand where the models
    were learned anew.

    Parameters
    ----------
    result : Comparison
        Comparison with ``order``.
    ax : matplotlib Axes, default: the current Axes
    """
    check_kind("result", result, Comparison, "a comparison with order=")
    ax = axes(ax)
    for i, name in enumerate(result.best_first()[: len(COLOURS)]):
        table = over_time(result, name)
        _banded(ax, i, _middle(table), table["log_loss"], 2 * table["standard_error"].fillna(0.0), name)
    time: Any = result.time
    for fold in range(1, result.folds + 1):
        ax.axvline(time[result.fold == fold].min(), color="0.8", linewidth=0.8, zorder=0)
    ax.set(ylabel="log loss of later rows")
    return _in_time(ax, result)


def calibration_over_time(result: Comparison, model: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw how often the predicted class was the true one over time, beside the probability that it was given.

    Bars are 95 % intervals, over groups where there are groups. Where the line of probabilities leaves the bars, the
    probabilities of that time were too sure, or not sure enough.

    Parameters
    ----------
    result : Comparison
        Comparison with ``order``.
    model : str, optional
        Model to draw; default: the one of the least log loss.
    ax : matplotlib Axes, default: the current Axes
    """
    check_kind("result", result, Comparison, "a comparison with order=")
    ax, name = axes(ax), result.best_first()[0] if model is None else model
    table = over_time(result, name)
    middle = _middle(table)
    ax.vlines(middle, table["lower"], table["upper"], color=BLUE, linewidth=1.5, alpha=0.6)
    ax.plot(middle, table["frequency"], "o", color=BLUE, markersize=5, label="how often the predicted class is true")
    ax.plot(middle, table["probability"], color=VERMILION, marker="_", label="its probability, on average")
    ax.set(ylabel=name, ylim=(min(0.45, table["lower"].min() - 0.05), 1.03))
    return _in_time(ax, result)


def _middle(table) -> np.ndarray:
    return (table["begin"] + (table["end"] - table["begin"]) / 2).to_numpy()


def _in_time(ax: Axes, result) -> Axes:
    ax.set(xlabel="time")
    if result.time.dtype.kind == "M":
        date_ticks(ax.xaxis)
    return legend(ax)


def _log_odds(ax, axis: str):
    ticks = {1e-8: "1e-8", 1e-4: "1e-4", 0.5: "0.5", 1 - 1e-4: "0.9999", 1 - 1e-8: "1-1e-8"}
    ax.set(**{f"{axis}scale": "logit", f"{axis}lim": (_FLOOR / 2, 1 - _FLOOR / 2)})
    getattr(ax, f"set_{axis}ticks")(list(ticks), list(ticks.values()))
    getattr(ax, f"{axis}axis").minorticks_off()
    ax.tick_params(labelsize=8)


def calibration(result: "Calibration", *, ax: Axes | None = None) -> Axes:
    """Draw the distribution function of the ranks of each scalar, less the uniform one.

    If the posterior is correct, all curves stay in the band everywhere with a probability of 0.99 or more. A curve
    leaves it if the p value of its scalar is at most 0.01 divided by the number of scalars; then ``result.ok()`` is
    False. An arch above zero means that the truth is lower than the posterior, an arch below
    that it is higher; a wave that begins upwards means that the posterior is too narrow, downwards too wide.

    Parameters
    ----------
    result : Calibration
        Result of `bayesgen.testing.check_calibration`.
    ax : matplotlib Axes, default: the current Axes
    """
    from bayesgen.testing import Calibration

    check_kind("result", result, Calibration, "what check_calibration returns")
    ax, points = axes(ax), np.arange(result.draws + 2) / (result.draws + 1)
    each = 0.01 / len(result.ranks)
    ends = 0, result.simulations
    low, high = (np.pad(b, 1, constant_values=ends) / result.simulations - points for b in result.band(each))
    ax.fill_between(points, low, high, color=QUIET, alpha=0.2, linewidth=0)
    ax.axhline(0, color=QUIET, linewidth=1)
    off = [name for name, p in result.p_values.items() if p <= each]
    for name, ranks in result.ranks.items():
        below = np.append(0, np.bincount(ranks, minlength=result.draws + 1).cumsum()) / result.simulations
        style = {"color": BLUE, "linewidth": 0.8, "alpha": 0.5}
        if name in off:
            style = {"color": COLOURS[1 + off.index(name) % 6], "linewidth": 1.5, "label": name, "zorder": 3}
        ax.plot(points, below - points, **style)
    if off:
        legend(ax, "not uniform")
    ax.set(xlim=(0, 1), xlabel="rank of the truth among posterior draws", ylabel="distribution of ranks, less uniform")
    return ax
