"""Missing values: means, modes and draws given the observed entries."""

import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import bayesgen as bg
from bayesgen.inspection import impute, next_measurement
from bayesgen.models import BetaBinomial, DirichletCategorical, LogNormal, NormalKnownMean, NormalKnownVariance
from bayesgen.posterior import ParameterDraws

X, Y = load_iris(return_X_y=True)
TABLE = bg.data.load("penguins")
SPECIES = TABLE.pop("species")
GONE = np.random.default_rng(0).random(X.shape) < 0.3
GAPS = np.where(GONE, np.nan, X)
STRUCTURES = [(c, s) for c in ("full", "diagonal", "isotropic") for s in (False, True)]
GRID = np.linspace(-60.0, 70.0, 26_001)


@dataclass(frozen=True)
class Drawn:
    """An inference that returns draws, as a sampler does."""

    count: int = 2000

    def __call__(self, model, data, *, seed=None):
        return ParameterDraws(model, model.update(data).sample_parameters(np.random.default_rng(0), (1, self.count)))


def by_integration(classifier, row, column, k=None, grid=GRID):
    """Mean of one missing entry from the joint density alone, by the trapezoid rule."""
    rows = np.repeat(row[None], len(grid), axis=0)
    rows[:, column] = grid
    joint = classifier.posterior_.log_predictive(classifier.fitted_.read(rows))
    score = logsumexp(joint, axis=1) if k is None else joint[:, k]
    weight = np.exp(score - score.max())
    return (weight @ grid) / weight.sum()


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("covariance", "shared"), STRUCTURES)
def test_means_are_those_of_the_joint_density(covariance, shared, known):
    classifier = bg.GaussianDiscriminantClassifier(covariance, shared).fit(X[::4], Y[::4])
    row = np.array([6.0, np.nan, np.nan, 1.6])
    found = impute(classifier, row[None], [2] if known else None)[0]
    for column in (1, 2):
        other = np.where(np.arange(4) == column, np.nan, row)
        assert found[column] == pytest.approx(by_integration(classifier, other, column, 2 if known else None), abs=2e-3)
    np.testing.assert_array_equal(found[[0, 3]], row[[0, 3]])


def test_means_under_draws_of_a_sampler():
    classifier = bg.GaussianDiscriminantClassifier(inference=Drawn(), random_state=0).fit(X, Y)
    row = np.array([6.0, 2.8, np.nan, 1.6])
    assert impute(classifier, row[None])[0, 2] == pytest.approx(
        by_integration(classifier, row, 2, grid=GRID[12_000:15_000:10]), abs=0.05
    )


@pytest.mark.parametrize("inference", ["ml", "map"])
def test_rows_of_the_fit_get_what_em_gives_them(inference):
    """Given the class and the estimate, a missing entry's mean is its regression on the observed ones."""
    classifier = bg.GaussianDiscriminantClassifier(inference=inference).fit(GAPS, Y)
    found, params = impute(classifier, GAPS, Y), classifier.posterior_.params
    for i in range(0, 150, 7):
        o, m = np.flatnonzero(~GONE[i]), np.flatnonzero(GONE[i])
        mean, cov = (params[f"gaussian.{site}"][Y[i]] for site in ("mean", "covariance"))
        wanted = mean[m] + cov[np.ix_(m, o)] @ np.linalg.pinv(cov[np.ix_(o, o)]) @ (GAPS[i, o] - mean[o])
        np.testing.assert_allclose(found[i, m], wanted, rtol=1e-8)


def test_categories_bits_and_counts():
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=400)
    table = pd.DataFrame({
        "colour": np.where(rng.random(400) < 0.8, np.where(y, "red", "blue"), "green"),
        "bit": rng.random(400) < 0.2 + 0.6 * y,
        "visits": rng.poisson(2 + 10 * y),
        "heads": rng.binomial(6, 0.2 + 0.6 * y),
    })  # fmt: skip
    features = {"visits": "poisson", "heads": BetaBinomial(1, 1, trials=6)}
    classifier = bg.NaiveBayesClassifier(features).fit(table, y)
    gone = pd.DataFrame({"colour": [None, "red"], "bit": [False, None], "visits": [np.nan, 11], "heads": [1, np.nan]})
    found = impute(classifier, gone)
    assert found["colour"].tolist() == ["blue", "red"] and found["bit"].tolist() == [False, True]
    first, second = classifier.predict_proba(gone)
    leaves = classifier.posterior_.model.leaves
    rate = leaves["visits"] if "visits" in leaves else leaves["poisson"]
    assert found["visits"][0] == pytest.approx(float(first @ rate.mean.ravel()), rel=1e-6)
    assert found["heads"][1] == pytest.approx(float(second @ (6 * leaves["heads"].mean.ravel())), rel=1e-9)
    for drawn in impute(classifier, gone, draws=5):
        assert set(drawn["colour"]) <= {"red", "blue", "green"} and drawn["heads"].between(0, 6).all()
        assert drawn.loc[1, "colour"] == "red" and drawn.loc[1, "visits"] == 11


@pytest.mark.parametrize(
    "make",
    [
        lambda: bg.GaussianDiscriminantClassifier(random_state=0),
        lambda: bg.GaussianDiscriminantClassifier("isotropic", shared=True, random_state=0),
        lambda: bg.GaussianDiscriminantClassifier(inference=Drawn(), random_state=0),
        pytest.param(
            lambda: bg.AveragedClassifier(members=["gaussian", "category"]), marks=pytest.mark.slow, id="average"
        ),
    ],
)
def test_draws_cover_and_agree_with_the_mean(make):
    classifier = make().fit(X[::2], Y[::2])
    held_out, gone = GAPS[1::2], GONE[1::2]
    tables = np.stack(impute(classifier, held_out, Y[1::2], draws=60))
    low, high = np.quantile(tables, [0.05, 0.95], axis=0)
    truth = X[1::2]
    covered = ((low <= truth) & (truth <= high))[gone].mean()
    assert 0.8 < covered < 0.98  # of 87 entries: 0.9 within 3 standard errors
    centre = impute(classifier, held_out, Y[1::2])
    z = (tables.mean(0) - centre)[gone] / (tables.std(0)[gone] / np.sqrt(60))
    assert np.sqrt((z**2).mean()) < 2 and (tables[:, ~gone] == truth[~gone]).all()
    assert tables.std(0)[gone].min() > 0


def test_a_draw_keeps_what_the_columns_have_to_do_with_each_other():
    """Petal length and width, both missing: filled by means they would lie on a line, by draws they are correlated."""
    classifier = bg.GaussianDiscriminantClassifier(random_state=0).fit(X, Y)
    rows = np.where(np.arange(4) < 2, X[100:], np.nan)
    drawn = np.concatenate(impute(classifier, rows, np.full(50, 2), draws=20))
    wanted = np.corrcoef(X[100:].T)[2, 3]
    assert np.corrcoef(drawn.T)[2, 3] == pytest.approx(wanted, abs=0.15)
    assert np.corrcoef(drawn.T)[0, 2] == pytest.approx(np.corrcoef(X[100:].T)[0, 2], abs=0.1)


def test_the_average_fills_categories_and_numbers():
    classifier = bg.AveragedClassifier(members=["gaussian", "category"]).fit(TABLE[::3], SPECIES[::3])
    gone = TABLE.iloc[[0, 200]].assign(island=None)
    gone.loc[0, "bill_length_mm"] = np.nan
    filled = impute(classifier, gone)
    assert filled.index.tolist() == [0, 200] and filled["island"][200] == "Biscoe"
    grid = np.linspace(20, 65, 1801)
    rows = pd.concat([gone.iloc[[0]]] * len(grid)).assign(bill_length_mm=grid)
    density = np.exp(classifier.score_samples(rows))
    share = np.cumsum(density) / density.sum()
    assert filled["bill_length_mm"][0] == pytest.approx(np.interp(0.5, share, grid), abs=0.05)
    drawn = impute(classifier, gone, draws=3)
    assert len({table["bill_length_mm"][0] for table in drawn}) == 3


def test_nothing_missing_and_everything_missing():
    for classifier in (bg.GaussianDiscriminantClassifier(), bg.AveragedClassifier(members=["gaussian", "category"])):
        classifier.fit(X[::5], Y[::5])
        np.testing.assert_array_equal(impute(classifier, X[:3]), X[:3])
        np.testing.assert_array_equal(impute(classifier, X[:3], draws=1)[0], X[:3])
        empty = impute(classifier, np.full((1, 4), np.nan))
        assert np.abs(empty - X[::5].mean(0)).max() < 1.5


def test_imputer_is_a_step_of_a_pipeline():
    frame = pd.DataFrame(GAPS, columns=["a", "b", "c", "d"])
    pipe = make_pipeline(bg.Imputer(), LogisticRegression(max_iter=1000)).fit(frame, Y)
    assert pipe.score(frame, Y) > 0.9
    filled = bg.Imputer(bg.GaussianDiscriminantClassifier("diagonal")).fit(frame).transform(frame)
    assert filled.columns.tolist() == ["a", "b", "c", "d"] and not filled.isna().any(axis=None)
    np.testing.assert_allclose(filled["a"][GONE[:, 0]], frame["a"].mean(), atol=0.01)  # one class: the column's mean
    one, same, other = (bg.Imputer(draw=True, random_state=s).fit_transform(frame, Y)["a"] for s in (0, 0, 1))
    assert (one == same).all() and not (one == other).all()
    imputer = bg.Imputer(draw=True).fit(frame, Y)
    again = pickle.loads(pickle.dumps(imputer))
    pd.testing.assert_frame_equal(again.transform(frame), imputer.transform(frame))
    pd.testing.assert_frame_equal(clone(again).fit_transform(frame, Y), imputer.transform(frame))


def test_imputation_beats_the_mean_of_the_column():
    classifier = bg.GaussianDiscriminantClassifier().fit(X[::2], Y[::2])
    error = np.abs(impute(classifier, GAPS[1::2]) - X[1::2])[GONE[1::2]].mean()
    plain = np.abs(X[::2].mean(0) - X[1::2])[GONE[1::2]].mean()
    assert error < 0.6 * plain


def test_a_category_of_its_own_leaf():
    classifier = bg.NaiveBayesClassifier({"x0": DirichletCategorical(1.0, [0, 1, 2])}).fit(Y[:, None], Y)
    assert impute(classifier, [[np.nan]], [1])[0, 0] == 1


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_log_normal_columns_are_filled_and_drawn_in_their_own_units(shift):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    x = np.exp(3 + y + 0.5 * rng.normal(size=300))
    leaf = LogNormal(0.0, 0.01, 1.0, 1.0, shift=shift)
    classifier = bg.NaiveBayesClassifier({"x0": leaf}, random_state=0).fit(x[:, None], y)
    assert impute(classifier, [[np.nan]], [0])[0, 0] == pytest.approx(
        np.exp(np.log(x[y == 0] + shift).mean()) - shift, rel=1e-3
    )
    drawn = np.log(np.concatenate(impute(classifier, [[np.nan]], [1], draws=400)))
    assert drawn.mean() == pytest.approx(4, abs=0.15) and drawn.std() == pytest.approx(0.5, abs=0.1)
    rows, labels = classifier.sample(2000)
    assert np.log(rows[labels == 1]).mean() == pytest.approx(4, abs=0.15)
    assert next_measurement(classifier, [[np.nan]])[0, 0] > 0.2


def test_a_known_mean_and_an_unknown_one():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    x = rng.normal(2.0, 1 + 2 * y)[:, None]
    classifier = bg.NaiveBayesClassifier({"x0": NormalKnownMean(2.0, 1.0, 1.0)}).fit(x, y)
    assert impute(classifier, [[np.nan]])[0, 0] == pytest.approx(2.0)
    assert next_measurement(classifier, [[np.nan]])[0, 0] > 0.1
    noise = NormalKnownVariance(0.0, 10.0, 1.0)
    classifier = bg.NaiveBayesClassifier({"x0": noise}).fit(x, y)
    means = classifier.posterior_.model.leaves["x0"].mean
    assert impute(classifier, [[np.nan]], [1])[0, 0] == pytest.approx(means[1])
