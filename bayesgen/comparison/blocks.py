"""Rows in the order of time: blocks that are predicted from what came before them, and scores over time."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from bayesgen.comparison.results import Comparison, mean_of_rows
from bayesgen.core.errors import listed
from bayesgen.evaluation.reliability import frequencies
from bayesgen.inspection.leave_one_out import begins, exact, predict_in_order
from bayesgen.numerics.checks import check_kind
from bayesgen.numerics.pieces import taken
from bayesgen.tables.dates import times_of

_LEAST = 10  # rows of a period of `over_time`, on average


def blocks_in_order(y, order, count: Any, group) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows that came before and the rows to predict, block by block in the order of time.

    The first block begins once every class has two rows; the rows before it are predicted by nothing. Blocks are short
    at first, where each row tells much, and grow longer: the root of the number of rows that came before grows by about
    the same step. Rows of one time are in one block. A group is in one block as a whole: that in which it begins, so
    that its later rows, too, are predicted from what came before its first; to later blocks each of its rows is known
    once its own time has passed. With groups each class must have rows of two groups before the first block. There are
    fewer blocks than ``count`` where there are fewer times.
    """
    if not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"folds must be the number of blocks, an integer >= 1, where order is given; got {count!r}")
    classes, codes = two_classes(y)
    time = times_of(order, len(y))
    moments, rank = np.unique(time, return_inverse=True)
    if len(moments) < 2:
        raise ValueError(f"order has one time only, {moments[0]}: no row came before another; give the time of each")
    known = np.array([_second(rank[codes == k], taken(group, codes == k)) for k in range(len(classes))])
    begin = begins(rank, group)
    starts = np.unique(begin[begin > known.max()])
    if not len(starts):
        late = listed(classes[known >= begin.max()])
        which = "two rows" if group is None else "rows of two groups"
        lack = f"the classes {late} do not have {which} each; give more rows, or cross-validate without order"
        raise ValueError(f"order: no row can be scored, since before the last time {lack}")
    root = np.sqrt(np.searchsorted(np.sort(rank), starts))  # of the number of rows that came before each start
    wanted = np.linspace(root[0], np.sqrt(len(rank)), count, endpoint=False)
    chosen = np.unique(np.abs(root[:, None] - wanted).argmin(0))
    ends = [*starts[chosen[1:]], len(moments)]
    spans = zip(starts[chosen], ends, strict=True)
    return [(np.flatnonzero(rank < first), np.flatnonzero((begin >= first) & (begin < end))) for first, end in spans]


def two_classes(y) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels and the code of each row; raise ValueError if there is one class only."""
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"there must be at least two classes, got {classes.tolist()}")
    return classes, codes


def _second(rank, group) -> int:
    """Return the rank of the time of the second row, or of the second group; a large one if there is none."""
    first = np.sort(rank if group is None else begins(rank, group)[np.unique(group, return_index=True)[1]])
    return int(first[1]) if len(first) > 1 else np.iinfo(np.int64).max


def predict_block(classifier, X, y, time, group, past, block) -> np.ndarray:
    """Return class probabilities of the rows of a block, from a classifier of the rows that came before it.

    An exact posterior is updated by every row of the block once its time has passed, under the prior of the fit; see
    `inspection.predict_in_order`. Other classifiers stay as they are until the next block. ``past`` and ``block`` are
    places among all rows X.
    """
    from sklearn.utils import _safe_indexing

    if not exact(classifier) or getattr(classifier, "exponent_", 1.0) != 1.0:
        return classifier.predict_proba(_safe_indexing(X, block))
    between = time < begins(time[block], taken(group, block)).max()
    later = np.setdiff1d(np.union1d(np.flatnonzero(between), block), past)
    rows = _safe_indexing(X, later), np.asarray(y)[later], time[later]
    log_joint = predict_in_order(classifier, *rows, groups=taken(group, later))[np.searchsorted(later, block)]
    return softmax(log_joint, axis=1)


def over_time(result, name: str, periods: int = 10) -> pd.DataFrame:
    """Return the scores of a model over time: a row for each period, with about as many rows in each.

    Columns: "begin" and "end", the times of the first and the last row; "rows"; "log_loss" with its "standard_error";
    "probability", the mean probability of the predicted class, and "frequency", how often it is the true one, with the
    95 % interval from "lower" to "upper" (over groups where there are groups). A log loss that rises, or a probability
    outside the interval, says that what was learned holds no longer: drift.

    Parameters
    ----------
    result : Comparison
        Comparison with ``order``.
    name : str
        One of its models or inferences.
    periods : int, default 10
        Number of periods, at most; fewer where there are few rows. Rows of one time are in one period.
    """
    check_kind("result", result, Comparison, "a comparison with order=")
    check_kind("name", name, str, "the name of one of its models")
    if result.time is None:
        raise ValueError("the rows of this comparison have no times: give order= to compare_models")
    if name not in result.probability:
        raise ValueError(f"no model {name!r}; there are: {', '.join(result.probability)}")
    rows = np.flatnonzero(result.learned(name))
    rows = rows[np.argsort(result.time[rows], kind="stable")]
    if not len(rows):
        raise ValueError(f"{name} could be learned before no block: there are no scores")
    time, truth, p = result.time[rows], result.y_true[rows], result.probability[name][rows]
    group = taken(result.group, rows)
    first = np.searchsorted(time, time)  # rows of one time count as the first of them
    count = max(1, min(periods, len(rows) // _LEAST))
    period = np.unique(first * count // len(rows), return_inverse=True)[1]
    count, right = int(period.max()) + 1, p.argmax(1) == truth
    size, frequency, lower, upper = frequencies(right, period, count, np.ones(len(rows)), group)
    with np.errstate(divide="ignore"):
        loss = -np.log(p[np.arange(len(rows)), truth])
    begin, members = np.searchsorted(period, np.arange(count)), [period == j for j in range(count)]
    end = np.append(begin[1:], len(rows)) - 1
    scores, errors = np.transpose([mean_of_rows(loss[within], taken(group, within)) for within in members])
    table = {"begin": time[begin], "end": time[end], "rows": size.astype(int)}
    table |= {"log_loss": scores, "standard_error": errors, "probability": np.bincount(period, p.max(1)) / size}
    return pd.DataFrame(table | {"frequency": frequency, "lower": lower, "upper": upper})
