"""Members that the user chooses, and classifiers of the user's among them: pools, settings, folds, failures, files."""

import functools
from contextlib import contextmanager

import joblib
import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import bayesgen as bg
from bayesgen import AveragedClassifier, inspection
from bayesgen.averaging import learning, softmax
from bayesgen.estimators import averaged, workers

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["a", "b", "c"])[Y]
FIT = slice(None, None, 3)


def kinds(classifier):
    """Names of the families that took part."""
    table = classifier.summary()
    return {*table["kind"]} - {"generative", "base rate"} | ({"mixture"} if table["components"].max() > 1 else set())


LATER = {"mixture", "screened", "coded"}


@pytest.mark.parametrize(
    ("rows", "classes", "members", "expected"),
    [
        (28, 2, "all", set()),
        (28, 2, ["all"], set()),
        (30, 2, "all", LATER),
        (28, 3, "all", LATER),
        (28, 2, ["gaussian", "mixture", "screened", "coded"], LATER),
        (28, 2, "generative", {"mixture"}),
    ],
)
def test_of_few_rows_of_two_classes_all_members_are_those_that_buy_something(rows, classes, members, expected):
    y = np.arange(rows) % classes
    x = np.random.default_rng(0).normal(size=(rows, 7)) + y[:, None]
    x[:, 6] = np.arange(rows) % 5
    classifier = AveragedClassifier(members=members).fit(x, y)
    assert kinds(classifier) & LATER == expected
    assert members not in ("all", ["all"]) or {"softmax", "forest"} <= kinds(classifier)


class Told(ClassifierMixin, BaseEstimator):
    """It predicts class frequencies, and keeps what it was given."""

    given = []

    def __init__(self, random_state=None, fails=False):
        self.random_state = random_state
        self.fails = fails

    def fit(self, X, y, sample_weight=None):
        if self.fails:
            raise RuntimeError("no such device")
        self.classes_, count = np.unique(y, return_counts=True)
        self.share_ = count / count.sum()
        self.given.append((X, y, sample_weight, self.random_state))
        return self

    def predict_proba(self, X):
        self.given.append((X,))
        return np.tile(self.share_, (len(X), 1))


@pytest.fixture
def told():
    Told.given.clear()
    return Told


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ("generative", {"mixture"}),
        (["gaussian"], set()),
        (["gaussian", "softmax"], {"softmax"}),
        (["generative", "forest"], {"mixture", "forest"}),
        ("all", {"mixture", "softmax", "forest"}),
        (["gaussian", ("tree", DecisionTreeClassifier())], {"tree"}),
    ],
)
def test_a_pool_holds_what_it_names(members, expected):
    classifier = AveragedClassifier(members=members).fit(X[FIT], NAMES[FIT])
    assert kinds(classifier) == expected and classifier.score(X, NAMES) > 0.85
    table = classifier.summary()
    families = [member.family for member in classifier.members_]
    weights = pd.Series(classifier.weights_).groupby(families).sum()
    assert sorted(table["share"].unique()) == pytest.approx(sorted(weights.unique()))


class Unhashable(LogisticRegression):
    """A classifier as CatBoost's are: without a hash."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other):
        return self is other


def test_a_classifier_without_a_hash_is_a_member_as_others_are():
    odd, plain = (
        AveragedClassifier(members=["gaussian", ("its", cls())]).fit(X[FIT], NAMES[FIT])
        for cls in (Unhashable, LogisticRegression)
    )
    np.testing.assert_array_equal(odd.predict_proba(X[:5]), plain.predict_proba(X[:5]))


@pytest.mark.parametrize(
    ("members", "error", "words"),
    [
        ("some", ValueError, "members has 'some'; it may have"),
        ([], ValueError, "a list that is not empty"),
        (["gaussian", 3], ValueError, "neither a name nor a pair"),
        ([("forest", LogisticRegression())], ValueError, "a classifier named 'forest', which is taken"),
        ([("bend", LogisticRegression())], ValueError, "named 'bend', which is taken"),
        ([("a__b", LogisticRegression())], ValueError, "has '__'"),
        ([("a", LogisticRegression()), ("a", LogisticRegression())], ValueError, "which is taken"),
        ([("a", OneHotEncoder())], TypeError, "'a', a OneHotEncoder: a classifier with fit"),
        ([("a", LogisticRegression)], TypeError, "'a', the class LogisticRegression: give a classifier of it"),
        ([("", LogisticRegression())], ValueError, "a classifier without a name"),
    ],
)
def test_a_pool_that_names_nothing_is_refused(members, error, words):
    refuses(lambda: AveragedClassifier(members=members).fit(X[FIT], Y[FIT]), words, error)


def test_settings_of_a_member_are_set_and_cloned_as_in_a_vote():
    classifier = AveragedClassifier(members=["gaussian", ("line", LogisticRegression())])
    assert classifier.get_params()["line__C"] == 1.0 and "line" not in classifier.get_params(deep=False)
    again = clone(classifier.set_params(line__C=0.5, bend=False))
    assert again.members[1][1] is not classifier.members[1][1]
    assert again.get_params()["line__C"] == 0.5 and not again.bend
    again.set_params(line=DecisionTreeClassifier(max_depth=1), line__max_depth=2)
    assert again.get_params()["line__max_depth"] == 2 and classifier.get_params()["line__C"] == 0.5


def test_a_member_gets_the_rows_as_they_are_given(told):
    frame = pd.DataFrame({"n": X[FIT, 0].round().astype(int), "t": pd.Categorical(np.where(X[FIT, 1] > 3, "u", "v"))})
    frame["flag"], frame["held"] = X[FIT, 2] > 4, 7
    weight = 0.5 + np.arange(len(frame)) % 2
    with pytest.warns(UserWarning, match="hold one value"):
        classifier = AveragedClassifier(members=["gaussian", ("told", told())]).fit(frame, NAMES[FIT], weight)
    fits = [own for own in told.given if len(own) > 1]
    asked = [own[0] for own in told.given if len(own) == 1]
    pd.testing.assert_frame_equal(fits[0][0], frame)
    assert (fits[0][1] == NAMES[FIT]).all() and (fits[0][2] == weight).all() and len(fits) == 6
    assert all(isinstance(own[3], int) for own in fits)
    assert sum(len(frame) - len(own[0]) for own in fits) == len(frame)  # each row is left out of one fit
    assert all(own.dtypes.equals(frame.dtypes) for own in asked if not own.isna().any(axis=None))
    told.given.clear()
    classifier.predict_proba(frame[::-1])
    pd.testing.assert_frame_equal(told.given[-1][0], frame[::-1].reset_index(drop=True))


@pytest.mark.parametrize(
    ("kind", "later"),
    [
        ("int64", [2.999, -0.5]),
        ("uint8", [300.0, -1.0]),
        ("int8", [300.0, 1e300]),
        ("Int64", [2.5, np.nan]),
        ("UInt8", [-1.0, 3.0]),
        ("float32", [0.1, np.nan]),
    ],
)
@pytest.mark.parametrize("form", ["frame", "array"])
def test_later_numbers_reach_a_member_as_they_are(told, kind, later, form):
    frame = pd.DataFrame({"n": (np.arange(40) % 7).astype(kind.lower()), "m": (np.arange(40) % 5).astype(kind.lower())})
    X = frame.astype(kind) if form == "frame" else frame.to_numpy()
    classifier = AveragedClassifier(members=["gaussian", ("told", told())]).fit(X, np.arange(40) % 7 > 2)
    new = pd.DataFrame({"n": later, "m": [1.0, 2.0]})
    told.given.clear()
    classifier.predict_proba(new if form == "frame" else new.to_numpy())
    seen = np.asarray(told.given[-1][0], float)
    np.testing.assert_array_equal(seen[seen[:, 1].argsort()], new.to_numpy())  # rows come by their gaps
    told.given.clear()
    classifier.predict_proba(X[:3])  # what the type of the fit holds, comes in it
    assert (told.given[-1][0].dtypes == X.dtypes).all() if form == "frame" else told.given[-1][0].dtype == X.dtype


def test_what_later_rows_cannot_give_back_is_refused(told):
    small = np.arange(40) % 7
    y = small > 2
    classifier = AveragedClassifier(members=["gaussian", ("told", told())])
    long = pd.DataFrame({"small": small, "id": 2**53 + small})
    refuses(lambda: classifier.fit(long, y), r"column 'id': 9007199254740993 in row 1 is a whole number beyond 2\^53")
    with pytest.raises(ValueError, match=r"column 'x0': 9007199254740997 in row 0.*members=\['told'\]"):
        classifier.fit(small[:, None], y).predict(np.array([[2**53 + 5], [2**53 + 4]]))
    with pytest.raises(ValueError, match=r"drops the columns \['id'\].*never again"):
        clone(classifier).set_params(features={"id": "drop"}).fit(long, y)
    days = pd.Timestamp("2024-05-13") + pd.to_timedelta(small, unit="D")
    dated = pd.DataFrame({"small": small, "when": days.strftime("%Y-%m-%d")})
    with pytest.raises(ValueError, match=r"columns \['when'\] hold dates as text"):
        clone(classifier).set_params(features={"when": "date"}).fit(dated, y)


@functools.cache
def gaussians():
    return AveragedClassifier(members=["gaussian"]).fit(X[FIT], NAMES[FIT])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p[:1], r"has the shape \(1, 3\), where there are \d+ rows and 3 classes"),
        (lambda p: p[:, :1], r"has the shape \(\d+, 1\)"),
        (lambda p: p - 0.5, "has the entry -.* below 0"),
        (lambda p: p * np.nan, "is not finite"),
        (lambda p: p * 1.01, "sums to 1.01 in a row"),
    ],
)
def test_probabilities_that_are_none_leave_a_member_out(told, change, words):
    class Wrong(told):
        def predict_proba(self, X):
            return change(super().predict_proba(X))

    with pytest.warns(UserWarning, match=f"'odd' failed and takes no part: ValueError: .*member 'odd' {words}"):
        classifier = AveragedClassifier(members=["gaussian", ("odd", Wrong())]).fit(X[FIT], NAMES[FIT])
    np.testing.assert_array_equal(classifier.predict_proba(X), gaussians().predict_proba(X))


def test_probabilities_of_float32_are_taken_and_later_faults_named(told):
    class Rounded(told):
        wrong = 1.0

        def predict_proba(self, X):
            return (super().predict_proba(X) * np.float32(1.0005) * self.wrong).astype(np.float32)

    classifier = AveragedClassifier(members=["gaussian", ("a", Rounded()), ("b", told())]).fit(X[FIT], NAMES[FIT])
    a, b = (part.log_density(X, np.empty((150, 0), int), [0]) for part in classifier.average_.parts[-2:])
    np.testing.assert_allclose(a, b, atol=1e-6)
    Rounded.wrong = 2.0
    refuses(lambda: classifier.predict(X), r"predict_proba of member 'a' sums to 2\.001")


@pytest.mark.filterwarnings("ignore:.*hold one value", "ignore:no member predicts")
@pytest.mark.parametrize("members", ["all", ["gaussian", ("told", Told())], ["softmax", "forest"]])
def test_without_a_column_that_varies_the_class_prior_is_the_answer(members):
    y = np.repeat(["a", "b"], [10, 20])
    with pytest.warns(UserWarning, match="no member predicts rows left out better"):
        classifier = AveragedClassifier(members=members).fit(np.ones((30, 1)), y)
    np.testing.assert_allclose(classifier.predict_proba([[1.0], [7.0]]), [[11 / 32, 21 / 32]] * 2)
    rare = np.r_[7.0, np.ones(29)][:, None]  # one fold has ones alone
    assert np.isfinite(AveragedClassifier(members=members).fit(rare, y).predict_proba(rare)).all()


@pytest.mark.parametrize(("shown", "seen"), [(True, True), (False, False), (None, False)])
def test_a_bar_names_the_stages_of_a_fit_that_takes_its_time(shown, seen, capsys, monkeypatch):
    monkeypatch.setattr(workers, "_PATIENCE", 0.0)
    AveragedClassifier(members=["gaussian", "softmax"], progress=shown).fit(X[FIT], NAMES[FIT])
    out, err = capsys.readouterr()
    assert ("averaging" in err) == bool(err) == seen and not out
    with pytest.raises(TypeError, match="progress must be True or False"):
        AveragedClassifier(progress="yes").fit(X[FIT], NAMES[FIT])


def test_every_stage_is_named_once(monkeypatch):
    told = []

    @contextmanager
    def stages(what, shown):
        yield lambda *stage: told.append(stage)

    monkeypatch.setattr(averaged, "stages", stages)
    AveragedClassifier(members=["gaussian", "category", "softmax", "forest"]).fit(X[FIT], NAMES[FIT])
    done, total, text = zip(*told, strict=True)
    assert [*done] == [*range(len(told))] and {*total} == {len(told)}
    assert (
        text[:3] == ("sums of all rows", "members 'softmax'", "members 'forest'")
        and text[3] == "fold 1 of 10"
        and text[-1] == "exponents and weights"
    )


@pytest.mark.slow
def test_a_thousand_classes_end_and_tell_how_far_they_are(capsys):
    """Half a minute for two rows of each; a guess has the log score -6.9."""
    rng = np.random.default_rng(0)
    places, y = 1000 * rng.normal(size=1000), np.arange(2000) % 1000
    rows, asked = (rng.normal(size=(2000, 1)) + places[y][:, None] for _ in range(2))
    average = AveragedClassifier(members=["gaussian"], progress=True).fit(rows, y)
    out, err = capsys.readouterr()
    assert "averaging" in err and "exponents and weights" in err and not out
    for classifier in (average, bg.NaiveBayesClassifier().fit(rows, y)):
        log_p = classifier.predict_log_proba(asked)
        np.testing.assert_allclose(np.exp(log_p).sum(1), 1.0, rtol=1e-12)
        assert log_p[np.arange(2000), y].mean() > -4


@pytest.mark.parametrize(("columns", "most"), [(3, 1), (30, 3)])
def test_the_softmax_regression_of_two_classes_is_the_logistic_mode(columns, most):
    rng = np.random.default_rng(columns)
    z = np.column_stack([np.ones(60), rng.normal(size=(60, columns))])
    codes, weight = rng.integers(2, size=60), rng.integers(1, most + 1, 60) * 1.0
    for strength in softmax.STRENGTHS:
        found = softmax._fit(z, codes, weight, strength, np.zeros((2, 1 + columns)))
        # By scikit-learn, whose C is 2 strength for b = b_1 - b_0; an intercept of variance 100 is a column so scaled.
        unit = np.sqrt(100 / strength)
        line = LogisticRegression(C=2 * strength, fit_intercept=False, tol=1e-10, max_iter=10_000)
        half = line.fit(np.column_stack([z[:, 0] * unit, z[:, 1:]]), codes, weight).coef_[0] / 2
        half[0] *= unit
        np.testing.assert_allclose(found, [-half, half], atol=1e-6)


@pytest.mark.filterwarnings("ignore:51 of 200 rows repeat another:UserWarning")
def test_the_summary_says_how_many_rows_a_member_learned_from(monkeypatch):
    monkeypatch.setattr(learning, "_FOLDED", 60)
    monkeypatch.setattr(learning, "_LEARN", 60)
    monkeypatch.setattr(softmax, "_CELLS", 15 * 80)
    rows, labels = np.vstack([X, X[:50]]), np.append(Y, Y[:50])
    classifier = AveragedClassifier(members=["gaussian", "softmax", "forest"]).fit(rows, labels)
    table = classifier.summary().groupby("kind")["rows"].agg(["min", "max"])
    distinct = len(np.unique(np.column_stack([X, Y]), axis=0))
    assert table.loc["forest"].tolist() == [200, 200] and classifier.scores_["repeats"] == 1 - distinct / 200
    assert table.loc["generative"].tolist() == [60, 60] and 80 <= table.loc["softmax", "min"] < 200


def test_copies_of_rows_are_warned_of_where_chance_makes_few():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.integers(2, size=60)
    with pytest.warns(UserWarning, match=r"120 of 180 rows repeat another, class and all; .*copies.*groups="):
        AveragedClassifier(members=["gaussian"]).fit(np.tile(x + 2 * y[:, None], (3, 1)), np.tile(y, 3))
    levels = pd.DataFrame({"a": pd.Categorical(rng.integers(3, size=180)), "b": rng.integers(3, size=180) + 0.0})
    assert AveragedClassifier(members=["gaussian", "category"]).fit(levels, levels["b"] > 0).scores_["repeats"] > 0.9


@pytest.mark.filterwarnings("ignore:50 of 100 rows repeat another:UserWarning")
def test_identical_rows_are_left_out_together(told):
    twice = np.repeat(X[FIT], 2, axis=0)
    AveragedClassifier(members=["gaussian", ("told", told())]).fit(twice, np.repeat(Y[FIT], 2))
    for own in [own[0] for own in told.given if len(own) > 1]:
        _, count = np.unique(own, axis=0, return_counts=True)
        assert (count % 2 == 0).all()


def test_a_member_that_says_nothing_gets_no_weight_and_one_that_is_right_does(told):
    classifier = AveragedClassifier(members=["gaussian", ("told", told())]).fit(X[FIT], Y[FIT])
    table = classifier.summary().set_index("kind")
    assert table.loc["told", "weight"] < 0.02
    np.testing.assert_allclose(table.loc["told", "log score"], classifier.scores_["base_rate"], atol=0.02)
    rng = np.random.default_rng(0)
    Z = rng.uniform(0, 4, (300, 2))
    y = Z.astype(int).sum(1) % 2
    board = AveragedClassifier(members=["gaussian", ("tree", DecisionTreeClassifier(min_samples_leaf=3))]).fit(Z, y)
    assert board.summary().set_index("kind").loc["tree", "weight"] > 0.9


def test_a_member_that_fails_leaves_the_rest_standing(told):
    with pytest.warns(UserWarning, match="member 'told' failed and takes no part: RuntimeError: no such device"):
        classifier = AveragedClassifier(members=["gaussian", ("told", told(fails=True))]).fit(X[FIT], NAMES[FIT])
    np.testing.assert_array_equal(classifier.predict_proba(X), gaussians().predict_proba(X))


def test_a_class_of_one_row_and_weights_that_nobody_takes():
    rows = [0, *range(50, 150, 3)]
    line = make_pipeline(LogisticRegression(max_iter=1000))
    with pytest.warns(UserWarning, match=r"members \['line'\] take no sample_weight"):
        classifier = AveragedClassifier(members=["gaussian", ("line", line)]).fit(
            X[rows], NAMES[rows], np.full(35, 0.5)
        )
    np.testing.assert_allclose(classifier.predict_proba(X).sum(1), 1)


def test_dates_before_1970_reach_a_member_as_dates(told):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"born": pd.to_datetime(rng.integers(-20_000, -1_000, 40), unit="D"), "kind": ["p", "q"] * 20})
    y = np.where(X["born"] < pd.Timestamp("1945-01-01"), "old", "young")
    members = ["gaussian", "category", ("own", told())]
    classifier = AveragedClassifier(members=members, features={"born": "date"}).fit(X, y)
    told.given.clear()
    X = X[:5].assign(kind=["p", None, "q", "p", "q"])
    classifier.predict_proba(X)
    (seen,) = told.given[-1]
    pd.testing.assert_series_equal(seen["born"], X["born"], check_index=False)
    assert seen["kind"].isna().tolist() == X["kind"].isna().tolist()


def test_questions_about_rows_with_gaps_go_through_every_member():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(t=np.where(X[:, 3] > 1, "u", "v"))
    hot = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    line = make_pipeline(hot, LogisticRegression(max_iter=1000))  # it takes no gaps
    classifier = AveragedClassifier(members=["gaussian", "category", ("line", line)]).fit(frame[FIT], NAMES[FIT])
    some = frame[1::30].copy()
    some.iloc[0, 0], some.iloc[1, 4] = np.nan, None
    probability = classifier.predict_proba(some)
    np.testing.assert_allclose(probability.sum(1), 1)
    said = classifier.explain(some)
    total = np.exp(said.sum("term").values)
    np.testing.assert_allclose(total / total.sum(1, keepdims=True), probability, rtol=1e-9)
    assert inspection.next_measurement(classifier, some).iloc[0, 0] >= 0
    assert classifier.predict_proba_interval(some).shape == (5, 3, 2)


def test_without_a_density_questions_that_need_one_say_so():
    classifier = AveragedClassifier(members=[("tree", DecisionTreeClassifier(max_depth=2))]).fit(X[FIT], Y[FIT])
    assert classifier.score(X, Y) > 0.9
    questions = (
        lambda: classifier.sample(3),
        lambda: classifier.score_samples(X),
        lambda: inspection.impute(classifier, np.where(X > 6, np.nan, X)),
        lambda: inspection.typicality(classifier, X),
    )
    for ask in questions:
        refuses(ask, r"no member has a density of all columns.*add 'generative'")
    with pytest.raises(ValueError, match="needs members that have an evidence"):
        AveragedClassifier("evidence", members=["softmax"]).fit(X[FIT], Y[FIT])


def test_only_members_of_the_users_forbid_a_file(tmp_path):
    own = AveragedClassifier(members=["gaussian", ("tree", DecisionTreeClassifier())]).fit(X[FIT], Y[FIT])
    refuses(lambda: own.save(tmp_path / "own.safetensors"), r"members \['tree'\] are your own.*joblib.dump", TypeError)
    joblib.dump(own, tmp_path / "own.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "own.joblib").predict_proba(X), own.predict_proba(X))
    some = AveragedClassifier(members=["gaussian", "softmax", "forest"]).fit(X[FIT], Y[FIT])
    some.save(tmp_path / "some.safetensors")
    again = bg.load(tmp_path / "some.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), some.predict_proba(X))
    assert again.get_params() == some.get_params()
