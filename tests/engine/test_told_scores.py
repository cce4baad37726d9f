"""The score that an averaged classifier tells of new rows, where classes were drawn with the rows or chosen.

``python tests/engine/test_told_scores.py`` writes docs/reliability/told-scores.csv, of 200 fits a cell.
"""

import itertools
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from bayesgen import AveragedClassifier
from bayesgen.averaging.learning import as_drawn

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

ROWS = {2: 60, 10: 100, 30: 240, 100: 300}
TABLE = Path(__file__).parents[2] / "docs" / "reliability" / "told-scores.csv"


def fitted(classes, drawn, signal, seed):
    """Return a classifier of three columns, its log score of new rows, and their standard error."""
    rng = np.random.default_rng(seed)
    centres = signal * rng.normal(size=(classes, 3))
    n, new = ROWS[classes], 2000
    y = rng.integers(0, classes, n) if drawn else np.arange(n) % classes
    u = rng.integers(0, classes, new)
    known = np.isin(u, y)
    classifier = AveragedClassifier(members=["gaussian"]).fit(rng.normal(size=(n, 3)) + centres[y], y)
    p = classifier.predict_log_proba(rng.normal(size=(known.sum(), 3)) + centres[u[known]])
    # of a class without rows the prior alone speaks, as for a row left out that was alone of its class
    score = np.full(new, -np.log(n + len(classifier.classes_)))
    score[known] = p[np.arange(len(p)), np.searchsorted(classifier.classes_, u[known])]
    return classifier, score.mean(), score.std() / np.sqrt(new)


@pytest.mark.filterwarnings("ignore:no member predicts")
@pytest.mark.parametrize(("classes", "drawn"), [(30, True), (30, False)])
def test_noise_promises_no_more_than_new_rows_bear_out(classes, drawn):
    classifier, score, error = fitted(classes, drawn, 0.0, 0)
    told, count = classifier.scores_, classifier.average_.class_weight
    assert told["classes"] == ("drawn" if drawn else "chosen")
    # under Dirichlet(1, ..., 1): a row leaves alone where classes were drawn, else with one row of every other class
    n = count.sum() - (1 if drawn else classes)
    assert told["base_rate"] == pytest.approx(count @ np.log(count / (n + classes)) / count.sum())
    assert abs(told["nested"] - score) < 2 * np.hypot(told["nested_error"], error)


@pytest.mark.filterwarnings("ignore:no member predicts")
def test_chosen_classes_that_leave_row_by_row_are_as_frequent_as_they_are():
    """Of two classes of 30 rows a row leaves alone, and its class would seem rarer than the other."""
    assert fitted(2, False, 0.0, 0)[0].scores_["base_rate"] == pytest.approx(-np.log(2), abs=1e-12)


def test_classes_are_drawn_unless_they_are_more_equal_than_that():
    rng = np.random.default_rng(0)
    equal = [not as_drawn(np.bincount(rng.integers(0, 10, 200), minlength=10)) for _ in range(2000)]
    assert 0.003 < np.mean(equal) < 0.02  # 1 %, give or take five errors and the steps of counts
    assert not as_drawn(np.full(10, 20.0)) and as_drawn(np.array([190.0, 10.0])) and as_drawn(np.array([7.0]))
    edge = np.sqrt(chi2.ppf(0.01, 1) * 100 / 2)
    assert as_drawn(np.array([100 + 1.01 * edge, 100 - 1.01 * edge]))
    assert not as_drawn(np.array([100 + 0.99 * edge, 100 - 0.99 * edge]))


def cell(classes, drawn, signal, fits=200):
    """Return how often ± 1.64 errors held, the mean error in spreads of the difference, and the mean difference."""
    found = [fitted(classes, drawn, signal, seed) for seed in range(fits)]
    difference = np.array([classifier.scores_["nested"] - score for classifier, score, _ in found])
    told = np.array([classifier.scores_["nested_error"] for classifier, _, _ in found])
    within = np.abs(difference) <= 1.64 * np.hypot(told, [error for *_, error in found])
    return within.mean(), told.mean() / difference.std(), difference.mean()


@pytest.mark.slow
@pytest.mark.parametrize("signal", [0.0, 1.5])
@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("classes", ROWS)
@pytest.mark.filterwarnings("ignore")  # of noise the classifier warns
def test_the_error_that_is_told_covers_the_score_of_new_rows(classes, drawn, signal):
    within, ratio, difference = cell(classes, drawn, signal)
    if (classes, drawn, signal) == (100, False, 1.5):
        # three rows a class, of which a row leaves with one of every other class: members that learned from a third
        # fewer rows tell less than new rows will score, by about one error, and 72 % of 60 fits hold
        assert -0.2 < difference < 0 and within >= 0.6
    else:
        assert within >= 0.85
    # 1.5 is the factor of shared rows, which the error has whether they matter or not. It is besides the larger of two
    # variances: where two chosen classes are told well one is .99 and one 1.11 of that of the difference, and the
    # larger 1.27 in the mean: the error is 1.64 spreads of 460 fits. By the first alone 83 % of these would hold
    assert ratio <= (1.5 if drawn else 1.8)


def main(every, fits=200) -> None:
    """Write the cells of some numbers of classes beside those that the file has."""
    table = pd.read_csv(TABLE) if TABLE.exists() else pd.DataFrame({"classes": []})
    for classes, drawn, signal in itertools.product(every, (True, False), (0.0, 1.5)):
        within, ratio, difference = cell(classes, drawn, signal, fits)
        what = {"classes": classes, "rows": ROWS[classes], "were": "drawn" if drawn else "chosen"}
        what["columns"] = "tell well" if signal else "noise"
        figures = {"fits": fits, "within 1.64 errors": f"{within:.0%}", "error by spread": round(ratio, 2)}
        row = pd.DataFrame([what | figures | {"told less true": round(difference, 3)}])
        table = pd.concat([table, row]).drop_duplicates([*what], keep="last").sort_values("classes", kind="stable")
        table.to_csv(TABLE, index=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(map(int, sys.argv[1:]) if sys.argv[1:] else ROWS)
