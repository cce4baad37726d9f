"""Partial pooling over groups of rows: against the written-out program, the rats on a grid, and groups never seen."""

import numpy as np
import pandas as pd
import pytest
from arviz_stats import ess
from numpyro.infer.util import log_density
from refusals import refuses
from scipy import stats
from scipy.special import softmax
from test_pooled import by_scipy

import bayesgen as bg
from bayesgen.core import program
from bayesgen.core.errors import NoClosedForm
from bayesgen.inference.whitening import collapsed
from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletCategorical,
    NaiveBayes,
    NormalInverseGamma,
    PooledGroups,
)
from bayesgen.models.function import statistics_program

RNG = np.random.default_rng(0)
T, GROUP = np.array([0, 0, 0, 1, 1, 1, 1, 0]), np.array([0, 0, 1, 0, 2, 2, 1, 1])


@pytest.mark.compiles
def test_what_nuts_samples_is_the_written_out_program_integrated():
    """p(population, x) = p(population, θ, x) / p(θ | population, x), at any θ; rows have gaps."""
    leaves = {"tosses": BetaBinomial(1.0, 2.0), "normals": NormalInverseGamma([0.0, 1.0], 0.5, 2.0, 1.5)}
    values = {"tosses": np.column_stack([RNG.integers(4, size=8), np.full(8, 4)]), "normals": RNG.normal(size=(8, 2))}
    values["normals"][2, 1] = np.nan
    x = {name: np.column_stack([rows, GROUP]).astype(float) for name, rows in values.items()}
    model = NaiveBayes(DirichletCategorical(1.5, 2), {k: PooledGroups(v, 0.7, groups=3) for k, v in leaves.items()})
    statistics, sites, theta = model.statistics(x, T), {"classes.probability": np.array([0.3, 0.7])}, 0.0
    for name, pooled in model.leaves.items():
        shape, rng = (2, *pooled.columns_of_leaf), np.random.default_rng(1)
        centre = pooled.leaf.sample_parameters(rng)
        params = {f"centre_{site}": np.broadcast_to(v, (2, *v.shape)) for site, v in centre.items()}
        params |= {site: rng.uniform(0.3, 0.9, shape) for site in pooled.population.spreads}
        posterior = pooled.given_rows(params, statistics.leaves[name])
        own = posterior.sample_parameters(rng)
        theta += by_scipy(posterior, own)
        sites |= {f"{name}.{site}": v for site, v in {**params, **own}.items()}
    sampled, sums, _ = collapsed(model, statistics)
    with program.x64():
        joint = float(log_density(model, (x, T), {}, sites)[0])
        other = float(log_density(statistics_program, (sampled, sums), {}, sites)[0])
    np.testing.assert_allclose(other, joint - theta, rtol=1e-9)


TUMOURS = np.array([0] * 14 + [1] * 8 + [2] * 9 + [1, 5, 2, 5, 3, 2, 7, 7, 3, 3, 2, 9, 10] + [4] * 7
                   + [10, 4, 4, 4, 5, 11, 12, 5, 5, 6, 5, 6, 6, 6, 6, 16, 15, 15, 9, 4])  # fmt: skip
RATS = np.array([20] * 7 + [19] * 4 + [18, 18, 17] + [20] * 4 + [19, 19, 18, 18, 25, 24, 23] + [20] * 6
                + [10, 49, 19, 46, 27, 17, 49, 47, 20, 20, 13, 48, 50] + [20] * 7
                + [48, 19, 19, 19, 22, 46, 49, 20, 20, 23, 19, 22, 20, 20, 20, 52, 46, 47, 24, 14])  # fmt: skip
LEAF = PooledGroups(BetaBinomial(1, 1), scale=100.0, groups=71)  # the book's prior, (a + b)^(-5/2), but for 1e-5
ROWS = np.column_stack([TUMOURS, RATS, np.arange(71)])


@pytest.fixture(scope="module")
def grid():
    """The rats of Gelman et al. 2013, section 5.3, by SciPy: the posterior of p = a/(a + b) and of log(a + b)."""
    p, log_total = (v.ravel() for v in np.meshgrid(np.linspace(0.06, 0.26, 201), np.linspace(0.7, 8.0, 366)))
    total = np.exp(log_total)
    prior = stats.halfcauchy(0, 100).logpdf(total**-0.5) - log_total / 2  # of the spread, by log(a + b)
    likelihood = stats.betabinom(RATS, (total * p)[:, None], (total * (1 - p))[:, None]).logpmf(TUMOURS).sum(1)
    return p, total, likelihood, softmax(prior + likelihood)


def test_the_rats_have_the_evidence_of_the_grid_and_the_means_of_the_book(grid):
    p, total, likelihood, weight = grid
    sums, places = LEAF.statistics(ROWS), np.arange(0, len(p), 997)
    points = [{"centre_probability": p[i], "spread": total[i] ** -0.5} for i in places]
    evidence = [float(LEAF.given(point).log_evidence(sums)) for point in points]
    np.testing.assert_allclose(evidence, likelihood[places], rtol=1e-9)
    printed = total < np.exp(5)  # the range of the book's grid
    book = weight[printed] @ np.column_stack([total * p, total * (1 - p)])[printed] / weight[printed].sum()
    np.testing.assert_allclose(book, [2.403, 14.319], atol=0.02)


def test_a_new_group_is_integrated_out_and_a_known_one_remembered(grid):
    """P(3 tumours in 20 rats): in a new group, and in the last one, whose own rats had 4 in 14; the mean of a group."""
    p, total, _, weight = grid
    rng, a, b = np.random.default_rng(0), total * p, total * (1 - p)
    picked = rng.choice(len(p), 20_000, p=weight)
    population = {"centre_probability": p[picked], "spread": total[picked] ** -0.5}
    theta = LEAF.given_rows(population, LEAF.statistics(ROWS)).sample_parameters(rng)
    mean = weight @ ((a[:, None] + TUMOURS) / (total[:, None] + RATS))
    error = theta["probability"].std(0) / np.sqrt(len(picked))
    assert (np.abs(theta["probability"].mean(0) - mean) < 5 * error).all()
    found = np.exp(LEAF.log_likelihood_rows({**population, **theta}, LEAF.check([[3, 20, np.nan], [3, 20, 70]])))
    exact = weight @ stats.betabinom(20, a, b).pmf(3), weight @ stats.betabinom(20, a + 4, b + 10).pmf(3)
    assert (np.abs(found.mean(0) - exact) < 5 * found.std(0) / np.sqrt(len(picked))).all()


@pytest.mark.slow
def test_nuts_finds_the_rats_of_the_grid(grid):
    p, total, _, weight = grid
    posterior = bg.fit(LEAF, ROWS, bg.NUTS(num_samples=2000, num_warmup=500, num_chains=2), seed=0)
    samples = posterior.samples
    exact = {
        "centre_probability": (samples["centre_probability"], weight @ p),
        "spread": (np.log(samples["spread"]), -weight @ np.log(total) / 2),
        "probability": (samples["probability"], weight @ (((total * p)[:, None] + TUMOURS) / (total[:, None] + RATS))),
    }
    for site, (draws, mean) in exact.items():
        error = draws.std((0, 1)) / np.sqrt(ess(draws, chain_axis=0, draw_axis=1))
        assert (np.abs(draws.mean((0, 1)) - mean) < 5 * error).all(), site
    assert posterior.to_arviz()["posterior"]["probability"].dims == ("chain", "draw", "group")


def patients(count, visits, rng):
    """Rows of patients who are sick or well: two readings that patients differ in by more than the sickness."""
    sick = np.arange(count) % 2
    level = rng.normal(0.8 * sick[:, None], 1.0, (count, 2))
    who = np.repeat(np.arange(count), visits)
    rows = pd.DataFrame(rng.normal(level[who], 0.5), columns=["pulse", "heat"])
    return rows.assign(patient=[f"p{i}" for i in who]), np.where(sick[who], "sick", "well")


FEATURES = {("pulse", "heat", "patient"): PooledGroups(NormalInverseGamma(0.0, 0.5, 2.0, 1.0))}


@pytest.fixture(scope="module")
def clinic():
    X, y = patients(16, 12, np.random.default_rng(0))
    return bg.NaiveBayesClassifier(FEATURES, inference="laplace", random_state=0).fit(X, y), X, y


def losses(classifier, X, y):
    """Mean log loss on 1200 rows of 400 patients never seen: pooled, naive Bayes tempered by groups=, and plain."""
    new, sick = patients(400, 3, np.random.default_rng(99))
    numbers = ["pulse", "heat"]
    tempered = bg.NaiveBayesClassifier(exponent="loo").fit(X[numbers], y, groups=X["patient"])
    fitted = [(classifier, new.assign(patient="new")), (tempered, new[numbers])]
    fitted += [(bg.NaiveBayesClassifier().fit(X[numbers], y), new[numbers])]
    places = np.arange(len(new)), np.searchsorted(classifier.classes_, sick)
    return [-model.predict_log_proba(rows)[places].mean() for model, rows in fitted]


@pytest.mark.compiles
def test_patients_never_seen_are_predicted_better_than_as_independent_rows(clinic):
    pooled, _, plain = losses(*clinic)
    assert pooled < plain - 0.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Laplace")  # in one of the clinics the weighted proposals are worth 92 draws
def test_patients_never_seen_are_predicted_better_than_by_a_tempered_fit():
    """Over 16 clinics of 16 patients: a tempered fit knows of groups, but not how they differ."""
    found = []
    for seed in range(16):
        X, y = patients(16, 12, np.random.default_rng(seed))
        classifier = bg.NaiveBayesClassifier(FEATURES, inference="laplace", random_state=0).fit(X, y)
        found.append(losses(classifier, X, y))
    pooled, tempered, plain = np.mean(found, axis=0)
    assert pooled < tempered - 0.01 and pooled < plain - 0.03, (pooled, tempered, plain)


@pytest.mark.compiles
def test_an_estimator_knows_its_groups(clinic, tmp_path):
    classifier, X, _ = clinic
    rows = pd.concat([X[:1]] * 3, ignore_index=True).assign(patient=["p0", "a stranger", None])
    probability = classifier.predict_proba(rows)
    np.testing.assert_array_equal(probability[1], probability[2])
    assert probability[0, 1] > probability[1, 1] + 0.1  # p0 is well, and all his rows say so
    classifier.save(tmp_path / "clinic.bayesgen")
    np.testing.assert_array_equal(bg.load(tmp_path / "clinic.bayesgen").predict_proba(rows), probability)
    name = "pulse+heat+patient"
    posterior = classifier.to_arviz()["posterior"]
    assert posterior[f"{name}.mean"].dims == ("chain", "draw", "class", f"{name}.group", f"{name}.value")
    assert set(posterior[f"{name}.group"].values) == set(X["patient"])
    shown = classifier.summary().to_frame().loc[("pulse", "mean")]
    centre = posterior[f"{name}.centre_mean"].mean(("chain", "draw"))[:, 0]
    np.testing.assert_allclose(shown, centre, rtol=1e-9)
    drawn, _ = classifier.sample(2)
    assert drawn["patient"].isna().all() and drawn["pulse"].notna().all()


@pytest.mark.compiles
def test_what_names_no_groups_is_refused(clinic):
    classifier, X, y = clinic
    leaf = FEATURES["pulse", "heat", "patient"]

    def fitted(features, rows, **settings):
        bg.NaiveBayesClassifier(features, **settings).fit(rows, y)

    with pytest.raises(ValueError, match=r"a tuple of columns, the last of which names the group, as in \('pulse', "):
        fitted({"pulse": leaf}, X)
    with pytest.raises(ValueError, match="column 'patient': row 3 does not tell its group"):
        fitted(FEATURES, X.assign(patient=X["patient"].mask(X.index == 3)), inference="laplace")
    refuses(lambda: fitted(FEATURES, X.assign(patient=None)), "the groups of column 'patient' are all missing")
    refuses(lambda: fitted(FEATURES, X, inference="map"), "no posterior mode")
    refuses(lambda: fitted(FEATURES, X, inference="ml"), "no maximum likelihood")
    with pytest.raises(ValueError, match="give groups=, their number or their labels"):
        PooledGroups(BetaBernoulli(1, 1)).statistics([[1, 0]])
    with pytest.raises(ValueError, match=r"value 3 in row 0 is not the code 0\.\.2 of a group"):
        PooledGroups(BetaBernoulli(1, 1), groups=3).statistics([[1, 3]])
    refuses(lambda: bg.inspection.impute(classifier, X[:2].assign(pulse=np.nan)), "missing values", NoClosedForm)


def simulated(params, rng):
    """Tumours of the groups, two rows in each."""
    group = np.tile(np.arange(6.0), 2)
    heads = rng.binomial(8, np.tile(params["probability"], 2))
    return np.column_stack([heads, np.full(12, 8), group])


@pytest.mark.slow
def test_nuts_on_the_population_is_calibrated():
    nuts = bg.NUTS(num_samples=300, num_warmup=300, num_chains=1)
    leaf = PooledGroups(BetaBinomial(2.0, 1.5), 0.8, groups=6)
    result = bg.testing.check_calibration(leaf, 12, nuts, simulate=simulated, simulations=100, draws=49, seed=0)
    assert result.ok(1e-3), str(result)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:Laplace")
def test_a_group_that_no_row_tells_stays_missing_among_bools():
    X = pd.DataFrame({"v": np.arange(60.0) % 7, "g": np.arange(60) % 3 == 0})
    leaf = PooledGroups(NormalInverseGamma(0.0, 0.5, 2.0, 1.0))
    fitted = bg.NaiveBayesClassifier({("v", "g"): leaf}, inference="laplace").fit(X, np.arange(60) % 2)
    assert fitted.sample(4)[0]["g"].isna().all()
