"""Tables as users bring them: kinds of tables and columns, names, categories, gaps, unseen values, refusals."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import refuses

import bayesgen as bg
from bayesgen.models import BetaBernoulli
from bayesgen.sheets.survey import Survey
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import Table

Y = np.array(["a", "b"] * 4)


def test_integer_column_names():
    X = pd.DataFrame(np.arange(16.0).reshape(8, 2))
    np.testing.assert_allclose(
        bg.NaiveBayesClassifier().fit(X, Y).predict_proba(X),
        bg.NaiveBayesClassifier().fit(X.to_numpy(), Y).predict_proba(X.to_numpy()),
    )


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_a_gap_of_any_kind_drops_out(gap):
    X = pd.DataFrame({"c": ["u", "v"] * 4, "x": np.arange(8.0)})
    classifier = bg.NaiveBayesClassifier().fit(X, Y)
    row = pd.DataFrame({"c": pd.Series([gap], dtype=object), "x": [2.0]})
    alone = bg.NaiveBayesClassifier().fit(X[["x"]], Y)
    np.testing.assert_allclose(classifier.predict_proba(row), alone.predict_proba(row[["x"]]), rtol=1e-12)


def test_unseen_category():
    X = pd.DataFrame({"c": ["u", "v"] * 4, "x": np.arange(8.0)})
    new = pd.DataFrame({"c": ["w"], "x": [2.0]})
    with pytest.raises(ValueError, match=r"column 'c': 'w' in row 0.*unseen='missing'"):
        bg.NaiveBayesClassifier(unseen="error").fit(X, Y).predict(new)
    tolerant = bg.NaiveBayesClassifier().fit(X, Y)
    gap = new.assign(c=None)
    with pytest.warns(UserWarning, match=r"^1 value taken as missing, of categories .*: column 'c': \['w'\] in 1 row"):
        probability = tolerant.predict_proba(new)
    np.testing.assert_array_equal(probability, tolerant.predict_proba(gap))


def test_one_warning_counts_and_names_what_was_not_seen():
    levels = [f"k{i}" for i in range(4)] * 2
    X = pd.DataFrame({"c": ["u", "v"] * 4, "d": [1, 2] * 4, "e": levels}).astype({"d": "category"})
    classifier = bg.NaiveBayesClassifier().fit(X, Y)
    X = X.assign(c=["w", "w", None, "u", "q", "v", "u", "u"], d=3, e=[f"n{i}" for i in range(8)])
    with pytest.warns(UserWarning) as caught:
        classifier.predict(X)
    (one,) = caught
    assert str(one.message) == (
        "19 values taken as missing, of categories that were not there at fit: column 'c': ['w', 'q'] in 3 rows; "
        "column 'd': [3] in 8 rows; column 'e': ['n0', 'n1', 'n2', 'n3', 'n4', 'n5'] and 2 more in 8 rows. "
        "unseen='error' refuses them"
    )


BEYOND = 2**53
WHOLE = {
    "floats": (np.array([[1e19], [2e19]]), (1e19, 2e19)),
    "float32": (np.array([[1e19], [2e19]], np.float32), (float(np.float32(1e19)), float(np.float32(2e19)))),
    "a small one beside": (np.array([[1.0], [1e19]]), (1, 1e19)),
    "unsigned": (np.array([[2**63 + 1], [2**64 - 1]], np.uint64), (2**63 + 1, 2**64 - 1)),
    "unsigned, close": (np.array([[2**63 - 1], [2**63 + 1]], np.uint64), (2**63 - 1, 2**63 + 1)),
    "unsigned, big-endian": (np.array([[2**63 - 1], [2**63 + 1]], ">u8"), (2**63 - 1, 2**63 + 1)),
    "unsigned, small": (np.array([[3], [5]], np.uint64), (3, 5)),
    "far apart": (np.array([[-(2**63)], [2**63 - 1]]), (-(2**63), 2**63 - 1)),
    "the least": (np.array([[-(2**63)], [-(2**63) + 1]]), (-(2**63), -(2**63) + 1)),
    "beyond 64 bits": (np.array([[2**70], [2**70 + 1]], object), (2**70, 2**70 + 1)),
    "masked": (np.ma.masked_array([[BEYOND], [BEYOND + 1], [7]], [[0], [0], [1]]), (BEYOND, BEYOND + 1)),
    "nullable": (pd.DataFrame({"x0": pd.array([BEYOND, BEYOND + 1, None], "Int64")}), (BEYOND, BEYOND + 1)),
    "pyarrow": (pa.table({"x0": [BEYOND, BEYOND + 1, None]}), (BEYOND, BEYOND + 1)),
    "polars": (pl.DataFrame({"x0": [BEYOND, BEYOND + 1, None]}), (BEYOND, BEYOND + 1)),
    "1.0 beside a gap": (np.array([[1.0], [2.0], [np.nan]]), (1, 2)),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_whole_numbers_of_any_size_are_categories(kind):
    table, categories = WHOLE[kind]
    classifier = bg.NaiveBayesClassifier("categorical", unseen="error").fit(table, [0, 1, 1][: len(table)])
    (block,) = classifier.schema_.blocks
    assert block.categories == categories and list(map(type, block.categories)) == list(map(type, categories))
    probability = classifier.predict_proba(table)
    assert probability[0, 0] > probability[1, 0]
    drawn, _ = classifier.sample(20)
    assert set(np.asarray(drawn)[:, 0].tolist()) <= set(categories)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_category_of_the_last_row_alone_is_known(order):
    x = np.ones((40_000, 3), int)
    x[::2], x[-1, 1] = 0, 3
    classifier = bg.NaiveBayesClassifier("categorical").fit(np.asarray(x, order=order), np.arange(40_000) % 2)
    known = {column: block.categories for block in classifier.schema_.blocks for column in block.columns}
    assert known == {"x0": (0, 1), "x1": (0, 1, 3), "x2": (0, 1)}


def test_bools_are_drawn_as_bools_and_text_stays_beside_numbers():
    frame = pd.DataFrame(
        {"b": [True, False] * 4, "o": [True, None, False, True] * 2, "k": [0, 1] * 4, "c": ["u", 1] * 4}
    )
    for features in ("auto", {"b": BetaBernoulli(2, 2), "k": "bernoulli"}):
        drawn, _ = bg.NaiveBayesClassifier(features, random_state=0).fit(frame, Y).sample(9)
        assert drawn["b"].dtype == drawn["o"].dtype == bool and drawn["k"].dtype != bool
        assert set(drawn["c"]) == {"u", 1}
    drawn, _ = bg.NaiveBayesClassifier().fit(frame[["b"]].to_numpy(), Y).sample(9)
    assert drawn.dtype == bool
    drawn, _ = bg.NaiveBayesClassifier().fit([["u", 1.0], ["v", 2.0]] * 4, Y).sample(9)
    assert {type(v) for v in drawn[:, 0]} == {str} and {type(v) for v in drawn[:, 1]} == {float}


@pytest.mark.parametrize("nothing", [pa.nulls(2), pl.Series([None, None])], ids=["pyarrow", "polars"])
def test_a_column_of_nulls_is_missing_everywhere(nothing):
    X = pd.DataFrame({"c": ["u", "v"] * 4, "x": np.arange(8.0)})
    classifier = bg.NaiveBayesClassifier().fit(X, Y)
    want = classifier.predict_proba(pd.DataFrame({"c": [None, None], "x": [2.0, NAN]}))
    table = pa.table if isinstance(nothing, pa.Array) else pl.DataFrame
    np.testing.assert_array_equal(classifier.predict_proba(table({"c": nothing, "x": [2.0, None]})), want)
    alone = classifier.predict_proba(pd.DataFrame({"c": ["u", "v"], "x": [NAN, NAN]}))
    np.testing.assert_array_equal(classifier.predict_proba(table({"c": ["u", "v"], "x": nothing})), alone)


def test_whether_there_is_an_evidence_is_answered():
    gaps = np.where(np.eye(30, 3), np.nan, np.random.default_rng(0).normal(size=(30, 3)))
    y = np.arange(30) % 2
    fitted = bg.GaussianDiscriminantClassifier(inference="map").fit(gaps, y)
    assert not hasattr(fitted, "log_evidence_")
    refuses(lambda: fitted.log_evidence_, r"log_evidence_ has no closed form here: .*partly missing", AttributeError)
    assert hasattr(bg.GaussianDiscriminantClassifier("diagonal").fit(gaps, y), "log_evidence_")
    assert not hasattr(bg.GaussianDiscriminantClassifier(), "log_evidence_")


def test_a_slash_in_a_column_name_survives_arviz():
    X = pd.DataFrame({"a/b": ["u", "v"] * 4})
    tree = bg.NaiveBayesClassifier(random_state=0).fit(X, Y).to_arviz()
    assert tree.posterior["a_b.probability"].dims == ("chain", "draw", "class", "a_b.category")


# -- one table, every kind of container

NAN = np.nan


def test_dates_skewed_numbers_and_dropped_columns_by_features():
    rng = np.random.default_rng(0)
    days, debt = np.arange(40.0) * 3, np.exp(rng.normal(size=40))
    X = pd.DataFrame({"when": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D"), "debt": debt})
    X["text"], X["name"] = X["when"].dt.strftime("%d/%m/%Y"), [f"p{i}" for i in range(40)]
    y = np.repeat(["a", "b"], 20)
    features = {"when": "date", "text": "date", "debt": "log", "name": "drop"}
    got = bg.NaiveBayesClassifier(features).fit(X, y)
    plain = pd.DataFrame({"when": days + 19723, "debt": np.log(debt), "text": days + 19723})
    want = bg.NaiveBayesClassifier().fit(plain, y)
    np.testing.assert_allclose(got.predict_proba(X), want.predict_proba(plain), rtol=1e-9)
    assert got.log_evidence_ == pytest.approx(want.log_evidence_ - np.log(debt).sum())  # the Jacobian of the logarithm
    assert got.sample(3)[0]["name"].isna().all()
    assert got.predict_proba(X.drop(columns="name").assign(name=None)[list(X)])[0, 0] == got.predict_proba(X)[0, 0]


@pytest.mark.parametrize("kind", [bg.NaiveBayesClassifier, bg.AveragedClassifier])
def test_what_names_or_numbers_the_rows_is_told(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=30), "name": [f"p{i}" for i in range(30)], "row": np.arange(30)})
    X["day"] = [f"2024-01-{1 + i % 9:02}" for i in range(30)]
    with pytest.warns(UserWarning) as caught:
        kind().fit(X, np.repeat([0, 1], 15))
    told = " ".join(str(w.message) for w in caught)
    assert "column 'name' seems to name the rows" in told and "column 'row' seems to number the rows" in told
    assert "column 'day' holds dates as text" in told and "'date'} for the number of days" in told


@pytest.mark.parametrize("kind", [bg.NaiveBayesClassifier, bg.AveragedClassifier])
def test_a_warning_points_at_the_line_of_the_user(kind):
    """Not into the package, nor above the program, where Python says sys:1."""
    y, rng = np.repeat([0, 1], 15), np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=30) + 3 * y, "name": [f"p{i}" for i in range(30)]})
    with pytest.warns(UserWarning, match="names say nothing") as caught:
        classifier = kind().fit(X, y)
    with pytest.warns(UserWarning, match="not there at fit") as more:
        classifier.predict(X.assign(name="new"))
    assert {w.filename for w in [*caught, *more]} == {__file__}


# -- one description of columns --------------------------------------------------------------------------------------


def test_a_survey_of_pieces_describes_columns_as_the_table_does():
    """So a schema is the same whether the rows came at once or piece by piece; facts not looked up yet are None."""
    X = pd.DataFrame(
        {"size": [1.5, 2.0, None, 4.0], "sure": [True, False] * 2, "colour": ["red", "blue", "green", "red"]}
    )
    rows, table = X.assign(kind=["a", "b"] * 2), Table(X)
    first, second = (Survey.of(part, "kind", None, ["colour"]) for part in (rows[:2], rows[2:]))
    assert first is not None and second is not None
    survey, unread = first + second, Survey(dict.fromkeys(X, "O"))
    for column in X:
        assert (survey.kind(column), survey.family(column)) == (table.kind(column), table.family(column))
    assert survey.categories("colour") == table.categories("colour") and unread.categories("colour") is None
    assert Schema.learn(survey, "auto") == Schema.learn(table, "auto")
    assert [block.categories for block in Schema.learn(unread, "auto").blocks] == [None]


def test_numbers_0_and_1_are_told_where_they_become_gaussian():
    rng = np.random.default_rng(0)
    names = [f"q{i}" for i in range(9)]
    bits = pd.DataFrame(rng.random((80, 9)) < 0.4, columns=names)
    y = np.resize(["a", "b"], 80)

    def told(model, X, *labels):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            model.fit(X, *labels)
        return [str(warning.message) for warning in seen if "taken as Gaussian" in str(warning.message)]

    mixed = bits.astype(float).assign(x=rng.normal(size=80), z="word")
    mixed.loc[3, "q0"] = np.nan
    for X in (bits.astype(int), mixed):
        for model in (bg.NaiveBayesClassifier(), bg.AveragedClassifier(members=["gaussian"])):
            (text,) = told(model, X, y)
            assert text.startswith("numbers 0 and 1 alone") and f"features=dict.fromkeys({names}, 'bernoulli')" in text
        assert not told(bg.NaiveBayesClassifier(dict.fromkeys(names, "bernoulli")), X, y)
    for X in (bits, bits.to_numpy(), bits.to_numpy(int), bits.astype(int) * 2, bits.astype(int) + 1):
        assert not told(bg.NaiveBayesClassifier(), X, y)
    latent = bg.LatentClassClassifier(classes=2, starts=2, random_state=0)
    (text,) = told(latent, bits.astype(int))
    assert "numbers 0 and 1 alone" in text and "'bernoulli'" in text
    rng = np.random.default_rng(0)
    for low, high in ((1, 2), (1, 3), (2, 5), (1, 10)):
        answers = pd.DataFrame(rng.integers(low, high + 1, (60, 2)), columns=["p", "q"]).assign(z=rng.normal(size=60))
        for given in (answers, answers.mask(rng.random(answers.shape) < 0.1), answers.convert_dtypes()):
            (text,) = told(latent, given)
            assert "from 1 to 10 alone" in text and "fromkeys(['p', 'q'], 'categorical')" in text
    for other in (answers.astype(str), answers * 2 + 9, answers + 0.5, answers * 0 + 3):
        assert not told(latent, other.assign(z=answers["z"]))
    assert not told(bg.LatentClassClassifier(classes=2, random_state=0), bits)
    with warnings.catch_warnings(record=True) as seen:  # in batches, by their sums
        warnings.simplefilter("always")
        both = mixed.drop(columns="z").assign(two=np.resize([0.0, 2.0], 80), t=y)
        bg.NaiveBayesClassifier().fit_batches([both[:30], both[30:]], "t")
        bg.NaiveBayesClassifier(dict.fromkeys(names, "gaussian")).fit_batches([both[:30], both[30:]], "t")
    (text,) = (str(warning.message) for warning in seen if "taken as Gaussian" in str(warning.message))
    assert f"features=dict.fromkeys({names}, 'bernoulli')" in text


def test_the_nearest_name_comes_first(tmp_path):
    columns = {f"c{i}": [0.5, 1.5] * 4 for i in range(9)} | {"cens": Y}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    refuses(lambda: bg.read_table(tmp_path / "t.csv", "Cens"), "no column 'Cens'; there are: cens, c0")
    refuses(lambda: bg.NaiveBayes, "did you mean NaiveBayesClassifier", AttributeError)
