"""Wild entries: one at a thousand times the others is told, and moves an average little."""

import warnings

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.neighbors import KNeighborsClassifier

import bayesgen as bg
from bayesgen import AveragedClassifier, GaussianDiscriminantClassifier, LogisticClassifier, NaiveBayesClassifier, data
from bayesgen.averaging import completion
from bayesgen.averaging.member_rows import Rows
from bayesgen.core.errors import InputWarning
from bayesgen.tables import wild

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

IRIS, SPECIES = load_iris(return_X_y=True)
FIT, TEST = slice(None, None, 5), slice(2, None, 5)
HALF = np.arange(100) % 2


def quick():
    """A classifier of the members that a wild entry moves most."""
    return AveragedClassifier(members=["gaussian", "softmax"])


def column(name):
    """A hundred entries of two classes, and the places of those that are wild."""
    x = np.random.default_rng(0).normal(size=100)
    few = [7]
    if name == "grades":
        x = np.round(x).clip(-1, 1)
    if name == "sparse":
        x[HALF == 0] = 0
        x[:90:3] = 0
    if name == "offset":
        x += 1e4
    if name == "a class":
        return np.where(HALF == 1, 1e3, 1.0) * x, []
    x[few] = 1e3 * np.abs(x).max()
    if name == "a code":
        few, x[:20] = [], 1e6
    if name == "other side":
        x[7] *= -1
    if name == "four others":
        few, x[8:], x[:3] = [], 0, 0
    return x, few


@pytest.mark.parametrize(
    "name", ["normal", "grades", "sparse", "offset", "other side", "a code", "a class", "four others"]
)
def test_what_is_wild_in_a_column(name):
    x, few = column(name)
    assert wild.find(x[:, None], HALF).row.tolist() == few
    gap = np.append(x, np.nan)[:, None]  # a gap is no distance
    assert wild.find(gap, np.append(HALF, 0)).row.tolist() == few


def test_the_largest_row_of_a_class_of_its_own_is_not_wild():
    x, codes = column("normal")[0], HALF.copy()
    codes[[7, 8]] = 2  # one row of two
    assert not len(wild.find(x[:, None], codes).row)
    codes[9] = 2  # one row of three
    assert wild.find(x[:, None], codes).row.tolist() == [7]


def test_three_slips_of_a_column_hide_none_of_each_other():
    x = column("normal")[0]
    x[[20, 31]] = 50 * x[7], -x[7]
    assert sorted(wild.find(x[:, None], HALF).row) == [7, 20, 31]


def test_false_alarms_in_columns_of_cauchys_law_are_as_few_as_derived():
    columns = 6000
    x = np.random.default_rng(0).standard_cauchy((100, columns))
    alarms = len(set(wild.find(x, HALF).column))
    expected = columns / 300
    assert abs(alarms - expected) < 5 * expected**0.5


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits, data.load])
def test_tables_without_slips_have_no_wild_entry(load):
    if load is data.load:
        X = load("penguins")
        x, y = X.select_dtypes("number").to_numpy(float), pd.factorize(X["species"])[0]
    else:
        x, y = load(return_X_y=True)
    for step in (1, 3, 10):
        assert not len(wild.find(x[::step], y[::step]).row)


def test_one_entry_at_a_thousand_times_the_largest_moves_no_other_row(monkeypatch):
    x, y = load_wine(return_X_y=True)

    def probability(X):
        return quick().fit(X, y[FIT]).predict_proba(x[TEST])

    clean, moved, without = probability(x[FIT]), [], []
    for row, place in ((7, 2), (14, 1)):
        X = x[FIT].copy()
        X[row, place] = 1000 * X[:, place].max()
        with pytest.warns(InputWarning, match=f"column 'x{place}': value .* in row {row} is"):
            moved.append(np.abs(probability(X) - clean).max())
        with monkeypatch.context() as patch:
            patch.setattr(wild, "find", lambda x, codes: wild.Wild(*np.zeros((3, 0))))
            without.append(np.abs(probability(X) - clean).max())
    assert max(moved) < 0.05
    assert min(without) > 0.1


def test_a_wild_entry_is_told_with_its_facts_and_the_row_of_the_table():
    X = pd.DataFrame(IRIS[FIT], columns=["a", "b", "c", "d"])
    X.loc[9, "b"] = -4e4
    weight = np.ones(len(X))
    weight[[0, 3]] = 0
    with pytest.warns(InputWarning, match="taken as missing") as told:
        quick().fit(X, SPECIES[FIT], sample_weight=weight)
    fact = told[0].message
    assert (fact.column, fact.row, fact.value) == ("b", 9, -4e4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit(X.assign(b=X["b"].rank()), SPECIES[FIT])  # as the warning advises who wants to keep it


def test_a_completed_entry_is_the_regression_on_class_and_row():
    rng = np.random.default_rng(0)
    codes = np.arange(2000) % 2
    x = (
        rng.multivariate_normal([0, 0, 0], [[1, 0.8, 0.3], [0.8, 1, 0.1], [0.3, 0.1, 1]], size=2000)
        + 2 * codes[:, None]
    )
    x[5, 1], x[6, 0] = 1e5, np.nan
    rows = Rows(x, np.empty((2000, 0), int), codes, np.ones(2000), (), 2)
    found = wild.find(x, codes)
    completed = completion.completed(rows, found, bend=False).x
    others = np.delete(np.arange(2000), [5, 6])
    design = np.column_stack([codes == 0, codes == 1, x[:, 0], x[:, 2]])
    line = np.linalg.lstsq(design[others], x[others, 1])[0]
    np.testing.assert_allclose(completed[5, 1], design[5] @ line, atol=0.01)  # the prior is worth three rows of 2,000
    completed[5, 1] = x[5, 1]
    np.testing.assert_array_equal(completed, x)  # all else stays, gaps too


@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")
def test_a_wild_date_is_told_as_a_date_and_own_members_are_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"d": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 60, 60), "D"), "x": rng.normal(size=60)}
    )
    X.loc[7, "d"] = pd.Timestamp("1900-01-01")
    y = np.arange(60) % 2
    with pytest.warns(InputWarning, match="value 1900-01-01 in row 7") as told:
        AveragedClassifier(features={"d": "date"}, members=["gaussian"]).fit(X, y)
    assert "ranks" not in str(told[0].message) and "own" not in str(told[0].message)
    X["d"], X.loc[3, "x"] = 1.0, 1e6
    with pytest.warns(InputWarning, match=r"\(members=\['near'\], classifiers of your own, learn from it as it is\)"):
        AveragedClassifier(members=["gaussian", ("near", KNeighborsClassifier())]).fit(X[["x"]], y)


def test_three_rows_of_one_class_that_are_right_are_kept_where_asked(few_members):
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = np.c_[rng.normal(size=100) + y, rng.normal(size=100)]
    X[[1, 3, 5], 1] = 1e5 + np.arange(3)  # all of class 1
    row = [[0.5, 1e5]]
    with pytest.warns(UserWarning, match=r"it is right, give wild='keep'"):
        taken = AveragedClassifier().fit(X, y).predict_proba(row)[0, 1]
    with pytest.warns(UserWarning, match=r"learned from as it is, as wild='keep' asks"):
        kept = AveragedClassifier(wild="keep").fit(X, y).predict_proba(row)[0, 1]
    assert kept > taken + 0.1
    refuses(lambda: AveragedClassifier(wild="mend").fit(X, y), "wild must be one of")


def test_columns_that_cannot_have_wild_entries_are_known_by_their_sums():
    """The sums of a column say so only where the search itself finds none: it is run over columns near the limit."""
    rng, found = np.random.default_rng(1), 0
    for rows in (8, 20, 50, 400):
        codes = np.arange(rows) % 2
        x = rng.standard_t(1, (rows, 500)) + rng.choice([0, 1e3, 1e9], 500)
        few = rng.integers(1, max(3, rows // 100) + 1, 500)
        for j, count in enumerate(few):
            x[rng.choice(rows, count, replace=False), j] *= 10 ** rng.uniform(1, 9)
        x[rng.random(x.shape) < 0.05] = np.nan
        suspects = set(wild._suspects(x, codes, None, wild.edges_of(x)))
        for j in range(500):
            alone = wild._beyond(x[:, j], codes, j, np.nanmedian(x[:, j]))
            found += len(alone.row) > 0
            assert not len(alone.row) or j in suspects
    assert found > 200
    apart = 1000.0 * codes[:, None] + rng.normal(size=(400, 3))  # the mean of all is far from each class, and tells it
    assert not len(wild._suspects(apart, codes, None, wild.edges_of(apart)))


def test_entries_that_only_one_class_has_are_no_slips():
    x = column("normal")[0]
    codes = np.where(np.arange(100) < 20, 1, 0)
    x[[3, 7, 11]] = 2e3, 3e3, 4e3  # chance: 20 of 100 rows, three times, or the 80 others
    chance = (20 * 19 * 18 + 80 * 79 * 78) / (100 * 99 * 98)
    assert wild._chance(np.array([80, 20]), 3) == pytest.approx(chance, rel=1e-12)
    assert sorted(wild.find(x[:, None], codes).row) == [3, 7, 11]  # so likely by chance
    codes = np.arange(100) // 10
    x[[3, 7, 9]] = x[[3, 7, 11]]
    x[11] = 0
    assert not len(wild.find(x[:, None], codes).row)  # .007


@pytest.mark.parametrize(
    "classifier", [NaiveBayesClassifier(), GaussianDiscriminantClassifier(), LogisticClassifier(inference="map")]
)
def test_others_tell_it_and_learn_from_it_as_it_is(classifier):
    X, y = IRIS[FIT].copy(), SPECIES[FIT]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.fit(X, y)
    X[7, 1] = 5000
    weight = np.ones(len(y))
    weight[2] = 0
    with pytest.warns(InputWarning, match="'x1': value 5000 in row 7 is .* learned from as it is") as told:
        classifier.fit(X, y, sample_weight=weight)
    assert (told[0].message.column, told[0].message.row) == ("x1", 7)


def test_a_comparison_tells_it_once_with_its_row_of_the_table(few_members):
    X, y = IRIS[FIT].copy(), SPECIES[FIT]
    X[22, 1] = 5000
    result = bg.compare_models(X, y, ["naive Bayes", "shared"], folds=3)
    notes = [note for note in result.notes if "5000" in note.text]
    assert [note.inference for note in notes] == ["naive Bayes", "shared"]
    assert all(note.message.row == 22 and "'x1': value 5000 in row 22 is" in note.text for note in notes)
