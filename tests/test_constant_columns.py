"""A column that is constant over all rows of the fit says nothing and changes nothing."""

import shutil
import warnings

import jax
import numpy as np
import pandas as pd
import pytest
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from scorers import assert_equal, scorer
from sklearn.base import clone

import bayesgen as bg
from bayesgen.inference import NUTS, Laplace
from bayesgen.inspection import impute, next_measurement, typicality

pytestmark = pytest.mark.filterwarnings("ignore:columns .* constant", "ignore:columns .* hold one value")

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1], [20, 70])  # of unequal size: with equal ones a wrong prior cancels
X = RNG.normal(size=(90, 2)) + 1.5 * (Y == 0)[:, None]
NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier

CASES = {
    "gaussian": lambda **k: NB(**k),
    "log": lambda **k: NB("log", **k),
    "student": lambda **k: NB("student", **{"inference": "map"} | k),
    "full": lambda **k: GD(**k),
    "shared": lambda **k: GD(shared=True, **k),
    "diagonal": lambda **k: GD("diagonal", **k),
    "isotropic": lambda **k: GD("isotropic", shared=True, **k),
    "student vector": lambda **k: GD("student", **{"inference": "map"} | k),
    "average": lambda **k: bg.AveragedClassifier(members=["generative"], **k),
}
each = pytest.mark.parametrize("make", CASES.values(), ids=CASES)


def with_constants(rows, count=2, gaps=False):
    """Return rows with constant columns after the first, every fifth entry missing with ``gaps``."""
    columns = np.full((len(rows), count), 7.0)
    columns[::5] = np.nan if gaps else 7.0
    return np.c_[rows[:, :1], columns, rows[:, 1:]]


@each
@pytest.mark.parametrize("gaps", [pytest.param(False, marks=pytest.mark.compiles), True])
def test_constant_columns_change_no_probability_and_no_score(make, gaps):
    rows = np.exp(X / 3)
    plain, beside = make().fit(rows, Y), make().fit(with_constants(rows, gaps=gaps), Y)
    new = with_constants(rows)
    other = new.copy()
    other[:, 1] = 9.0
    for asked in (new, other):
        np.testing.assert_allclose(beside.predict_proba(asked), plain.predict_proba(rows), rtol=0, atol=1e-12)
        np.testing.assert_allclose(beside.score_samples(asked), plain.score_samples(rows), rtol=0, atol=1e-12)
    if hasattr(plain, "log_evidence_"):
        np.testing.assert_allclose(beside.log_evidence_, plain.log_evidence_, rtol=1e-14)


@pytest.mark.parametrize(
    ("make", "inference"),
    [
        pytest.param(NB, "map", id="map"),
        pytest.param(GD, "map", id="full map"),
        pytest.param(NB, "ml", id="ml"),
        pytest.param(GD, "ml", id="full ml"),
        pytest.param(GD, Laplace(200), id="full laplace", marks=pytest.mark.compiles),
        pytest.param(NB, NUTS(50, 50, 1), id="nuts", marks=pytest.mark.compiles),
    ],
)
@pytest.mark.filterwarnings("ignore::bayesgen.inference.SamplerWarning", "ignore::UserWarning")
def test_constant_columns_change_no_other_inference(make, inference):
    """The same seed draws the same: the column has no latent. Draws of NUTS come through compiled sums (2e-12)."""
    plain = make(inference=inference, random_state=0).fit(X, Y)
    beside = make(inference=inference, random_state=0).fit(with_constants(X), Y)
    close = 1e-11 if isinstance(inference, NUTS) else 1e-12
    np.testing.assert_allclose(beside.predict_proba(with_constants(X)), plain.predict_proba(X), rtol=0, atol=close)


@pytest.mark.parametrize("make", [bg.LogisticClassifier, bg.OrderedClassifier])
def test_constant_columns_change_no_score_of_a_line(make):
    plain, beside = make(inference="map").fit(X, Y), make(inference="map").fit(with_constants(X), Y)
    np.testing.assert_allclose(beside.predict_proba(with_constants(X)), plain.predict_proba(X), rtol=0, atol=1e-12)


@each
def test_draws_and_missing_entries_are_the_constant(make):
    rows = with_constants(np.exp(X / 3))
    classifier = make(random_state=0).fit(rows, Y)
    drawn, _ = classifier.sample(30)
    assert (abs(drawn[:, 1:3] - 7) < 1e-12).all() and (drawn.std(0)[[0, 3]] > 0.1).all()
    gappy = rows[:6].copy()
    gappy[:3, 1], gappy[1, 0], gappy[5, 2] = np.nan, np.nan, 9.0
    tables = [
        impute(classifier, gappy),
        *impute(classifier, gappy, draws=2),
        *impute(classifier, gappy, Y[:6], 1, True),
    ]
    for table in tables:
        assert (abs(table[:3, 1] - 7) < 1e-12).all() and np.isfinite(table).all()
        assert table[5, 2] == 9  # an entry that is there stays
    worth = np.asarray(next_measurement(classifier, gappy[:3]))
    assert abs(worth[:, 1]).max() < 1e-9 and worth[1, 0] > 1e-4


@each
def test_another_value_is_unlike_anything_seen(make):
    rows = with_constants(np.exp(X / 3))
    classifier = make(random_state=0).fit(rows, Y)
    strange = rows[30:33].copy()
    strange[1, 1], strange[2, 2] = 7.5, np.nan
    found = typicality(classifier, strange)
    assert found.overall[1] < 1e-3 and (found.by_class[1] < 1e-3).all()
    assert (found.overall[[0, 2]] > 0.01).all()


@pytest.mark.compiles
def test_the_program_is_the_closed_form():
    """The NumPyro program of the model has the density of its algebra, and no latent of the constant column."""
    rows = with_constants(X, gaps=True)
    for classifier, blocks in ((NB().fit(rows, Y), {"gaussian": rows}), (GD().fit(rows, Y), rows)):
        model, statistics = classifier.model_, classifier.statistics_
        params = classifier.posterior_.draws(0, ())
        assert params["gaussian.mean"].shape == (2, 2)
        sites = {k: v for k, v in params.items() if k != "gaussian.covariance"}
        with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
            whole, _ = log_density(model, (blocks, Y), {}, sites)
            prior, _ = log_density(lambda model=model: model.latents(), (), {}, sites)
            seen = Predictive(model, {k: v[None] for k, v in sites.items()})(jax.random.PRNGKey(0), blocks)
        np.testing.assert_allclose(float(whole - prior), float(model.log_likelihood(params, statistics)), rtol=1e-9)
        joint = np.exp(np.asarray(seen["t_log_joint"][0]))
        np.testing.assert_allclose(
            np.log(joint).T,
            model.log_likelihood_rows({k: v[None] for k, v in params.items()}, model.check(blocks))[0],
            rtol=1e-6,
        )


@pytest.mark.parametrize("make", [NB, GD])
def test_sums_that_add_decide_alike(make):
    """A column that is constant in one part of the rows alone is no constant column of all."""
    rows, mixed = with_constants(X), RNG.permutation(90)
    rows[60:, 2] = RNG.normal(size=30)
    whole, first = make().fit(rows, Y), mixed[:45]
    parts = make().partial_fit(rows[:60], Y[:60], classes=[0, 1]).partial_fit(rows[60:], Y[60:])
    frame = pd.DataFrame(rows, columns=whole.schema_.columns)
    batches = make().fit_batches([frame[:50].assign(t=Y[:50]), frame[50:].assign(t=Y[50:])], "t")
    for other, asked in ((parts, rows), (batches, frame), (make().fit(rows[mixed], Y[mixed]), rows)):
        np.testing.assert_allclose(other.predict_proba(asked), whole.predict_proba(rows), rtol=1e-9)
    rows = with_constants(X)
    halves = [make().fit(rows[chosen], Y[chosen]) for chosen in (first, mixed[45:])]
    together = make().fit(rows, Y)
    np.testing.assert_allclose((halves[0] + halves[1]).predict_proba(rows), together.predict_proba(rows), rtol=1e-9)
    left = make().fit(rows, Y).forget(rows[first], Y[first])
    np.testing.assert_allclose(left.predict_proba(rows), halves[1].predict_proba(rows), rtol=1e-9)
    loo = make().fit(X, Y).leave_one_out(X, Y)
    np.testing.assert_allclose(together.leave_one_out(rows, Y).log_joint, loo.log_joint, rtol=1e-12)


def test_questions_do_not_see_a_constant_column():
    rows = with_constants(X)
    classifier = GD(shared=True).fit(rows, Y)
    terms, plain = classifier.explain(rows[:4]), GD(shared=True).fit(X, Y).explain(X[:4])
    assert (terms.sel(term=["x1", "x2"]) == 0).all()
    np.testing.assert_allclose(terms.sum("term"), plain.sum("term"), rtol=1e-9)
    assert classifier.summary().to_frame().loc[("x1", "constant")].tolist() == [7.0, 7.0]


@pytest.mark.compiles
def test_trees_of_arviz_do_not_hold_a_constant_column():
    rows = with_constants(X)
    classifier = GD(shared=True).fit(rows, Y)
    assert classifier.to_arviz().posterior.feature.values.tolist() == ["x0", "x3"]
    tables = classifier.to_arviz(rows, Y, columns=True, draws=40)
    assert (tables.posterior_predictive["x2"] == 7).all()


def test_a_file_keeps_it(tmp_path):
    rows = with_constants(np.exp(X))
    for name, make in CASES.items():
        classifier = make().fit(rows, Y)
        classifier.save(tmp_path / f"{name}.safetensors")
        again = bg.load(tmp_path / f"{name}.safetensors")
        np.testing.assert_array_equal(again.predict_proba(rows), classifier.predict_proba(rows))


@pytest.mark.skipif(shutil.which("node") is None, reason="JavaScript needs Node.js")
def test_an_export_to_javascript_leaves_it_out():
    frame = pd.DataFrame(with_constants(np.exp(X)), columns=list("abcd"))
    for features in ("auto", {"a": "log", "b": "log"}):
        classifier = NB(features).fit(frame, Y)
        with scorer(classifier) as made:
            assert_equal(classifier, made, pd.concat([frame[:20], frame[:20].assign(b=9.0, c=np.nan)]))


@each
@pytest.mark.filterwarnings("ignore:no member predicts")
def test_where_nothing_varies_the_classes_alone_count(make):
    classifier = make().fit(np.full((90, 2), 3.0), Y)
    np.testing.assert_allclose(
        classifier.predict_proba([[3.0, 3.0], [np.nan, 4.0]]), [[21 / 92, 71 / 92]] * 2, atol=0.03
    )
    drawn, _ = classifier.sample(5)
    np.testing.assert_allclose(drawn, 3.0)


def test_a_single_column_with_a_leaf_of_its_own():
    frame = pd.DataFrame({"a": X[:, 0], "b": 7.0, "c": np.where(Y, "u", "v")})
    for make in (NB,):
        features = {"a": "gaussian", "b": "log", "c": "categorical"}
        plain = make(features={k: v for k, v in features.items() if k != "b"}).fit(frame[["a", "c"]], Y)
        beside = make(features=features).fit(frame, Y)
        np.testing.assert_allclose(beside.predict_proba(frame), plain.predict_proba(frame[["a", "c"]]), atol=1e-12)


@pytest.mark.parametrize(
    "beside", [*(pytest.param(leaf, marks=pytest.mark.compiles) for leaf in ("log", "log1p")), "both"]
)
def test_a_constant_leaf_of_an_average_is_no_leaf(beside):
    """It moves neither an exponent nor a number of members, whatever leaves stand beside it."""
    frame = pd.DataFrame({"a": np.exp(X[:, 0]), "b": X[:, 1], "n": RNG.poisson(3, 90), "c": 7.0, "d": 2.0})
    frame.loc[::7, "d"] = np.nan
    leaves = {"a": "log", "n": "poisson"} if beside == "both" else {"n": "drop"}
    more = {"c": "log", "d": "log1p"} if beside == "both" else {("c", "d"): beside}
    average = bg.AveragedClassifier(members=["generative"])
    plain = clone(average).set_params(features=leaves).fit(frame[["a", "b", "n"]], Y)
    found = clone(average).set_params(features=leaves | more).fit(frame, Y)
    assert found.constant_ == {"c": 7.0, "d": 2.0} and len(found.members_) == len(plain.members_)
    asked = frame.assign(c=9.0)
    np.testing.assert_allclose(found.predict_proba(asked), plain.predict_proba(frame[["a", "b", "n"]]), atol=1e-12)
    np.testing.assert_allclose(found.exponents_, plain.exponents_, atol=1e-12)
    assert typicality(found, asked).overall.max() < 1e-3 < typicality(found, frame).overall.min()
    filled = impute(found, frame[:3].assign(c=np.nan, n=frame["n"]))
    assert (filled["c"] == 7).all() and (filled["d"] == 2).all()


@pytest.mark.compiles
def test_classes_without_labels_are_found_as_without_it():
    rows = np.r_[RNG.normal(0, 1, (60, 1)), RNG.normal(6, 1, (20, 1))]
    settings = {"classes": 2, "order_by": 0, "inference": "map", "random_state": 0}
    plain = bg.LatentClassClassifier(**settings).fit(rows)
    beside = bg.LatentClassClassifier(**settings).fit(np.c_[rows, np.ones((80, 2))])
    for site in ("classes.probability", "gaussian.mean", "gaussian.variance"):
        expected = plain.posterior_.params[site]
        np.testing.assert_allclose(np.ravel(beside.posterior_.params[site]), np.ravel(expected), rtol=1e-6)
    few = [
        bg.LatentClassClassifier(classes=2, random_state=0).fit(r).log_evidence_
        for r in (rows[55:65], with_constants(rows[55:65]))
    ]
    np.testing.assert_allclose(few[1], few[0], rtol=1e-12)


def test_unlabelled_rows_beside_a_constant_column():
    labels = np.where(np.arange(90) % 3, Y, np.nan)
    for kind in ({}, {"model": "discriminant", "covariance": "diagonal"}):
        fits = [bg.LatentClassClassifier(**kind).fit(r, labels) for r in (X, with_constants(X))]
        np.testing.assert_allclose(fits[1].predict_proba(with_constants(X)), fits[0].predict_proba(X), atol=1e-7)


def test_a_prior_of_the_user_stays():
    """Bayes' rule is followed where a prior was given: its scale does not come from the rows."""
    from bayesgen.models import NormalInverseGamma

    leaf = NormalInverseGamma(0.0, 1.0, 1.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = NB({"x0": leaf, "x1": leaf}).fit(np.c_[X[:, 0], np.full(90, 7.0)], Y)
    alone = NB({"x0": leaf}).fit(X[:, :1], Y)
    assert np.abs(given.predict_proba(np.c_[X[:, 0], np.full(90, 7.0)]) - alone.predict_proba(X[:, :1])).max() > 0.01


# -- columns of other kinds: what says nothing changes nothing

SEX = RNG.random(90) < np.where(Y, 0.7, 0.3)
FRAME = pd.DataFrame(
    {"u": X[:, 0], "v": X[:, 1], "sex": SEX, "town": np.where(RNG.random(90) < 0.4 + 0.3 * Y, "A", "B")}
)
LABELS = np.where(Y, "ill", "well")
SAID = {
    "number": 7.0,
    "text": "x",
    "True": True,
    "False": False,
    "category": pd.Categorical(["m"] * 90, categories=["k", "m", "z"]),
    "date": pd.Timestamp("2024-05-01"),
}
KINDS = {
    "naive Bayes": lambda **k: NB(**k),
    "reference": lambda **k: NB(prior="reference", **k),
    "map": lambda **k: NB(inference="map", **k),
    "ml": lambda **k: NB(inference="ml", **k),
    "exponent": lambda **k: NB(exponent="loo", **k),
    "latent": lambda **k: bg.LatentClassClassifier(classes=2, starts=2, **k),
    "logistic": lambda **k: bg.LogisticClassifier(inference="map"),
    "ordered": lambda **k: bg.OrderedClassifier(inference="map", order=["ill", "well"]),
    "average": lambda **k: bg.AveragedClassifier(members=["generative"], **k),
    "average of all": lambda **k: bg.AveragedClassifier(**k),
}


def pairs(names):
    """Return the cases of estimators and kinds; averages of most kinds, which take seconds each, are slow."""
    slow = {"average": {"number", "False", "category", "date"}, "average of all": set(SAID)}
    return [
        pytest.param(name, kind, marks=[pytest.mark.slow] * (kind in slow.get(name, ())))
        for name in names
        for kind in SAID
    ]


def beside(value, kind, gaps=False):
    """Return the table with a column of one value in its midst, every fifth entry missing with ``gaps``."""
    table = FRAME.assign(c=value)[["u", "c", "v", "sex", "town"]]
    if gaps:
        kept = np.arange(90) % 5 > 0
        table["c"] = (
            table["c"].where(kept)
            if kind in ("number", "date", "category")
            else table["c"].astype(object).where(kept, None)
        )
    return table


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "kind"), pairs(KINDS))
def test_a_constant_column_of_any_kind_changes_nothing(name, kind):
    if kind == "date" and name in ("logistic", "ordered"):
        pytest.skip("they take no dates")
    if kind in ("number", "date") and name == "reference":
        pytest.skip("the reference prior needs two distinct numbers")
    for gaps in (False, True) if name in ("naive Bayes", "map") else (False,):
        table = beside(SAID[kind], kind, gaps)
        dated = {"features": {"c": "date"}} if kind == "date" and name not in ("logistic", "ordered") else {}
        y = None if name == "latent" else LABELS
        make = KINDS[name]
        plain, found = make(random_state=0).fit(FRAME, y), make(random_state=0, **dated).fit(table, y)
        most = 1e-9 if name == "latent" else 1e-12  # a search for the mode ends about 1e-11 from it
        np.testing.assert_allclose(found.predict_proba(table), plain.predict_proba(FRAME), rtol=0, atol=most)
        if hasattr(plain, "score_samples") and name != "latent":
            np.testing.assert_allclose(found.score_samples(table), plain.score_samples(FRAME), rtol=0, atol=1e-10)
        if hasattr(plain, "log_evidence_"):
            np.testing.assert_allclose(found.log_evidence_, plain.log_evidence_, rtol=1e3 * most)
        if name == "naive Bayes":
            loo = [m.leave_one_out(X, LABELS).log_joint for m, X in ((found, table), (plain, FRAME))]
            np.testing.assert_allclose(*loo, rtol=0, atol=1e-11)
        if name == "average":
            np.testing.assert_allclose(found.exponents_, plain.exponents_, atol=1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "kind"), pairs(["naive Bayes", "average"]))
def test_draws_fills_files_and_scripts_keep_a_constant_of_any_kind(name, kind, tmp_path):
    table = beside(SAID[kind], kind)
    dated = {"features": {"c": "date"}} if kind == "date" else {}
    classifier, value = KINDS[name](random_state=0, **dated).fit(table, LABELS), table["c"].iloc[0]
    drawn, _ = classifier.sample(20)
    assert (drawn["c"] == value).all() or abs(drawn["c"] - value).max() < 1e-12
    assert drawn["sex"].nunique() == 2
    gone = table[:4].assign(c=beside(SAID[kind], kind, gaps=True)["c"][:1].reindex(range(4)), u=np.nan)
    filled = impute(classifier, gone)["c"]
    assert (abs(filled - value) < 1e-12).all() if kind == "number" else (filled == value).all()
    worth = next_measurement(classifier, gone)
    assert abs(worth["c"]).max() < 1e-9 < worth["u"].min()
    if kind in ("number", "True", "False", "category", "date"):
        other = {"number": 9.0, "category": "z", "date": pd.Timestamp("2024-06-01")}.get(kind, kind == "False")
        strange = table[:4].assign(c=pd.Series([other] * 4, dtype=table["c"].dtype))
        np.testing.assert_allclose(classifier.predict_proba(strange), classifier.predict_proba(table[:4]), atol=1e-12)
        assert typicality(classifier, strange).overall.max() < 1e-3 < typicality(classifier, table[:4]).overall.min()
    classifier.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(
        bg.load(tmp_path / "m.safetensors").predict_proba(table), classifier.predict_proba(table)
    )
    rows = table[:10].assign(c=table["c"].astype(str) if kind == "date" else table["c"])
    with scorer(classifier) as made:
        assert_equal(classifier, made, rows.assign(c=rows["c"].astype(object)), apart=name != "average")
        assert {"column": "c", "value": 0} in made.ask("nextMeasurement(row)", row={"u": 1.0})


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["True", "category"])
def test_sums_of_pieces_decide_alike_for_bits_and_categories(kind):
    """A column that is constant in one part of the rows alone is no constant column of all."""
    table = beside(SAID[kind], kind)
    mixed = table.copy()
    mixed.loc[60:, "c"] = {"True": False, "category": "k"}[kind]
    for rows in (table, mixed):
        whole = NB().fit(rows, LABELS)
        parts = NB().partial_fit(rows[:60], LABELS[:60], classes=["ill", "well"]).partial_fit(rows[60:], LABELS[60:])
        pieces = [(rows[:60], LABELS[:60]), (rows[60:], LABELS[60:])]
        batches = NB().fit_batches(pieces, progress=False)
        for other in (parts, batches, NB().fit(rows[::2], LABELS[::2]) + NB().fit(rows[1::2], LABELS[1::2])):
            np.testing.assert_allclose(other.predict_proba(rows), whole.predict_proba(rows), rtol=1e-9)
    told = NB().fit(beside(SAID[kind], kind, gaps=True), LABELS).summary()
    assert (told.gaps["c"], told.gaps["sex"], told.gaps["town"]) == (18, 0, 0)
    shown = told.to_frame().loc["c"]
    assert shown.index.tolist() == [{"True": "constant", "category": "P(m)"}[kind]] and (shown == 1).all(axis=None)
    left = NB().fit(mixed, LABELS).forget(mixed[60:], LABELS[60:])
    np.testing.assert_allclose(
        left.predict_proba(table), NB().fit(table[:60], LABELS[:60]).predict_proba(table), rtol=1e-9
    )
