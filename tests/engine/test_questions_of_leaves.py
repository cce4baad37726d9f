"""Questions about an average some of whose columns have leaves of their own, and its files."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from engine.test_averaged_leaves import FEATURES, FEW, NEW, NEW_Y, Waiting, X, Y, _three
from refusals import refuses
from scipy import integrate
from scipy.special import logsumexp, softmax

from bayesgen import AveragedClassifier, NaiveBayesClassifier, inspection, load, plot
from bayesgen.averaging.member import NOTHING
from bayesgen.core.errors import NoClosedForm
from bayesgen.models import BetaBinomial
from bayesgen.models.model import revised

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers


@pytest.fixture(scope="module")
def fitted():
    return AveragedClassifier(features=FEATURES, members=FEW).fit(X, Y)


def test_a_gap_in_a_leaf_drops_out(fitted):
    gone = NEW.assign(visits=np.nan, bill=np.nan, wait=np.nan)
    rows = fitted.fitted_.read(gone)
    np.testing.assert_array_equal(
        fitted.average_.log_density(*_three(rows)), fitted.average_.log_density(rows["numbers"], rows["categories"])
    )
    nothing = fitted.predict_proba(NEW.mask(np.ones(NEW.shape, bool)))[:1]
    np.testing.assert_allclose(nothing[0], [1 / 3] * 3, rtol=1e-9)


def test_densities_of_a_leaf_integrate_to_one(fitted):
    row = NEW.iloc[[9]]
    grid = np.linspace(-12, 12, 4001)
    each = pd.concat([row] * len(grid), ignore_index=True).assign(bill=np.exp(grid))
    density = np.exp(fitted.score_samples(each)) * np.exp(grid)
    whole = np.exp(fitted.score_samples(row.assign(bill=np.nan)))
    np.testing.assert_allclose(integrate.simpson(density, grid), whole, rtol=1e-3)
    counts = pd.concat([row] * 200, ignore_index=True).assign(visits=np.arange(200.0))
    total = np.exp(fitted.score_samples(counts)).sum()
    np.testing.assert_allclose(total, np.exp(fitted.score_samples(row.assign(visits=np.nan)))[0], rtol=1e-9)


def test_terms_of_an_explanation_add_up(fitted):
    said = fitted.explain(NEW)
    assert said.term.values.tolist() == ["prior", *X.columns, "remainder"]
    np.testing.assert_allclose(softmax(said.sum("term").values, axis=1), fitted.predict_proba(NEW), rtol=1e-9)
    hole = NEW.columns.get_indexer(["visits", "bill", "wait"])
    for row, column in zip(*np.nonzero(NEW.iloc[:, hole].isna().to_numpy()), strict=True):
        np.testing.assert_allclose(said[row, :, 1 + hole[column]], 0, atol=1e-12)
    one = fitted.explain(NEW, row=0)
    assert set(one.terms) == {*X.columns}
    odds = one.prior + sum(one.terms.values())
    assert 1 / (1 + np.exp(-odds)) == pytest.approx(one.probability)


def test_imputed_values_are_means_given_the_class(fitted):
    holed = NEW.assign(visits=np.nan, bill=np.nan, wait=NEW["wait"].fillna(1.0))
    codes = np.searchsorted(fitted.classes_, NEW_Y)
    filled = inspection.impute(fitted, holed, NEW_Y)
    mean = fitted.average_.leaves.posterior.leaves["poisson"].expected()["mean"][:, 0]
    np.testing.assert_allclose(filled["visits"], mean[codes], rtol=1e-6)
    log_mean = fitted.average_.leaves.posterior.leaves["log"].mean[:, 0]
    np.testing.assert_allclose(filled["bill"], np.exp(log_mean[codes]), rtol=1e-6)
    joint = fitted.predict_joint_log_proba(holed)
    chance = softmax(joint, axis=1)
    np.testing.assert_allclose(inspection.impute(fitted, holed)["visits"], chance @ mean, rtol=1e-6)
    np.testing.assert_allclose(inspection.impute(fitted, holed)["age"].dropna().index, np.arange(12))


def test_drawn_values_follow_the_predictive_of_their_class(fitted):
    row = pd.concat([NEW.iloc[[9]].assign(visits=np.nan, wait=np.nan)] * 40)
    drawn = [inspection.impute(clone_seed(fitted, s), row, ["top"] * 40, draws=1)[0] for s in range(40)]
    visits = np.array([own["visits"].mean() for own in drawn])  # one draw of the parameters for each table
    mean = fitted.average_.leaves.posterior.leaves["poisson"].expected()["mean"][2, 0]
    assert abs(visits.mean() - mean) < 5 * visits.std(ddof=1) / np.sqrt(len(visits))
    assert all((own["wait"] > 0).all() for own in drawn)


def clone_seed(classifier, seed):
    again = pickle.loads(pickle.dumps(classifier))
    again.random_state = seed
    return again


def test_drawn_rows_follow_the_leaves(fitted):
    rows, classes = clone_seed(fitted, 7).sample(3000)
    for name, k in (("low", 0), ("top", 2)):
        own = rows["visits"][classes == name]
        expected = fitted.average_.leaves.posterior.leaves["poisson"].expected()["mean"][k, 0]
        assert abs(own.mean() - expected) < 5 * own.std() / np.sqrt(len(own))
    assert (rows["bill"] > 0).all() and (rows["wait"] > 0).all() and [*rows] == [*X]


def test_draws_of_probabilities_average_to_the_probability(fitted):
    few = replace(fitted.average_, sharpening=1.0)
    only = replace(
        few, weights=np.eye(len(few.weights))[few.members.index(NOTHING) - 1], exponents=np.ones(len(few.weights))
    )
    drawn = np.concatenate([own for own, _ in only.label_draws(fitted.fitted_.read(NEW), 2000, 100, 0)], axis=2)
    density = np.exp(drawn)  # p(t | x, θ) of the leaves alone
    alone = NaiveBayesClassifier(FEATURES, random_state=0).fit(X[[*FEATURES]], Y)
    expected = alone.predict_proba_draws(NEW[[*FEATURES]], 2000)
    spread = np.sqrt(density.var(0).T / 2000 + expected.var(0) / 2000)
    assert (np.abs(density.mean(0).T - expected.mean(0)) < 5 * spread).all()
    interval = fitted.predict_proba_interval(NEW, level=0.99)
    assert (interval[..., 0] <= fitted.predict_proba(NEW) + 0.02).all()


def test_typicality_is_near_zero_for_what_a_leaf_has_not_seen(fitted):
    strange = NEW.iloc[:2].assign(visits=[2.0, 60.0])
    found = inspection.typicality(fitted, strange, draws=300).overall
    assert found[0] > 0.02 and found[1] < 0.01


def test_the_value_of_a_count_is_its_mutual_information(fitted):
    row = NEW.iloc[[9]].assign(visits=np.nan, bill=np.nan)
    worth = inspection.next_measurement(fitted, row)
    assert worth.notna().iloc[0].tolist() == [name in ("visits", "bill") for name in X]
    counts = pd.concat([row] * 80, ignore_index=True).assign(visits=np.arange(80.0))
    grid = np.linspace(-9, 9, 3001)
    bills = pd.concat([row] * len(grid), ignore_index=True).assign(bill=np.exp(grid))
    for name, rows, width in (("visits", counts, np.zeros(80)), ("bill", bills, grid + np.log(grid[1] - grid[0]))):
        log_weight = logsumexp(fitted.predict_joint_log_proba(rows), axis=1) + width
        weight = softmax(log_weight)
        now, then = fitted.predict_log_proba(row), fitted.predict_log_proba(rows)
        expected = weight @ (np.exp(then) * (then - now)).sum(1)
        assert worth[name].iloc[0] == pytest.approx(expected, rel=0.05, abs=1e-3), name


def test_a_leaf_that_cannot_answer_says_so_by_its_column(fitted):
    hole = NEW.assign(wait=np.nan)
    for ask in (inspection.impute, inspection.next_measurement):
        with pytest.raises(NoClosedForm, match=r"columns \['wait'\]: Waiting does not say .* write density\(\)"):
            ask(fitted, hole)


def test_heads_among_tosses():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    tosses = rng.integers(1, 9, 60)
    rows = pd.DataFrame({"x": rng.normal(size=60), "heads": rng.binomial(tosses, 0.3 + 0.3 * y), "tosses": tosses})
    features = {("heads", "tosses"): BetaBinomial(1, 1)}
    classifier = AveragedClassifier(members=FEW, features=features).fit(rows, y)
    assert classifier.members_[0].leaves == ("heads+tosses",)
    assert classifier.explain(rows).term.values.tolist() == ["prior", "x", "heads+tosses", "remainder"]
    refuses(lambda: classifier.sample(2), "rows cannot be drawn", TypeError)


def test_posteriors_of_the_leaves_stand_beside_those_of_the_members(fitted):
    posterior = fitted.to_arviz()["member 0"]["posterior"]
    assert posterior["wait.rate"].dims == ("chain", "draw", "class")
    assert posterior["poisson.mean"].coords["poisson.feature"].values.tolist() == ["visits"]
    leaf = fitted.average_.leaves.posterior.leaves["wait"]
    expected = leaf.a / leaf.b
    own = posterior["wait.rate"].values.reshape(-1, 3)
    assert (np.abs(own.mean(0) - expected) < 5 * own.std(0) / np.sqrt(len(own))).all()


def test_next_labels_summary_and_picture(fitted):
    assert len(inspection.next_labels(fitted, NEW, 2).rows) == 2
    shown = fitted.summary()
    assert shown["leaves"].dropna().unique().tolist() == ["wait, visits, bill"]
    assert shown["leaves"].isna().sum() == (~fitted.average_.roster.carries).sum()
    assert plot.members(fitted).get_xlabel() == "weight"


def test_what_is_loaded_is_what_was_saved(fitted, tmp_path):
    fitted.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors", [Waiting])
    assert again.average_ == fitted.average_ and again.get_params() == fitted.get_params()
    for ask in ("predict_proba", "score_samples", "predict_proba_interval"):
        np.testing.assert_array_equal(getattr(again, ask)(NEW), getattr(fitted, ask)(NEW))
    refuses(lambda: load(tmp_path / "model.safetensors"), "Waiting")
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(NEW), fitted.predict_proba(NEW))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda leaves: None, "leaves are a NoneType"),
        (lambda leaves: replace(leaves, single=()), "entries of another shape"),
        (
            lambda leaves: replace(leaves, model=revised(leaves.model, features={"wait": Waiting(1.0, 1.0)})),
            "other columns than schema_",
        ),
    ],
)
def test_a_file_whose_leaves_do_not_fit_is_refused(fitted, tmp_path, change, words):
    broken = clone_seed(fitted, 0)
    broken.average_ = replace(fitted.average_, leaves=change(fitted.average_.leaves))
    broken.save(tmp_path / "model.safetensors")
    refuses(lambda: load(tmp_path / "model.safetensors", [Waiting]), words)
