"""Draws of missing entries: each row's follow from its observed ones, and tables vary with the parameters."""

import functools
import itertools

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import integrate, stats
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_iris
from test_imputation import Drawn

import bayesgen as bg
from bayesgen.inspection import impute
from bayesgen.inspection.probabilities import FewDrawsWarning
from bayesgen.models import LogNormal, NormalInverseWishart

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

X, Y = load_iris(return_X_y=True)
ODD = np.array([5.0, 5.0, 5.0, np.nan])
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
GRID = 3.0 + np.sinh(np.linspace(-4.5, 4.5, 601))  # as dense as densities are narrow, and as wide as their tails
PAIR = np.random.default_rng(3).multivariate_normal([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]], 80)


@functools.cache
def average():
    return bg.AveragedClassifier(members="generative").fit(X[::5], Y[::5])


def gda(*args, step=13, **kwargs):
    return bg.GaussianDiscriminantClassifier(*args, random_state=0, **kwargs).fit(X[::step], Y[::step])


def eight_rows():
    return bg.NaiveBayesClassifier(random_state=0).fit(X[40:110:9], Y[40:110:9])


def distribution(classifier, row, column, k=None):
    """Return P(entry <= grid), by the trapezoid rule from the joint density alone."""
    rows = np.repeat(row[None], len(GRID), axis=0)
    rows[:, column] = GRID
    joint = classifier.predict_joint_log_proba(rows)
    score = logsumexp(joint, axis=1) if k is None else joint[:, k]
    share = integrate.cumulative_trapezoid(np.exp(score - score.max()), GRID, initial=0.0)
    return share / share[-1]


MAKES = {
    "average": average,
    "full": gda,
    "full, shared": lambda: gda("full", True),
    "isotropic": lambda: gda("isotropic"),
    "isotropic, shared": lambda: gda("isotropic", True),
    "diagonal, shared": lambda: gda("diagonal", True),
    "naive Bayes": eight_rows,
    "draws": lambda: gda(step=3, inference=Drawn()),
    "point": lambda: gda(step=3, inference="map"),
}


@pytest.mark.parametrize("k", [None, 1])
@pytest.mark.parametrize("make", MAKES)
def test_draws_of_a_row_have_its_distribution(make, k):
    classifier, label = MAKES[make](), None if k is None else [k]
    row = np.array([6.0, 2.8, 4.6, np.nan] if make == "draws" else [5.5, 3.5, 3.0, np.nan])  # what draws can explain
    values = np.array([table[0, 3] for table in impute(classifier, row[None], label, draws=2000)])
    quantiles = np.interp(LEVELS, distribution(classifier, row, 3, k), GRID)
    share = (values[:, None] <= quantiles).mean(0)
    z = (share - LEVELS) / np.sqrt(LEVELS * (1 - LEVELS) / len(values))
    assert np.abs(z).max() < 5, z


@pytest.mark.parametrize("make", ["full", "isotropic", "average"])
def test_two_entries_of_a_row_are_drawn_together(make):
    """Each entry, mapped by its distribution given the entries before it, is uniform, and the two are independent."""
    classifier, row = MAKES[make](), np.where(np.arange(4) < 2, np.nan, [0.0, 0.0, 5.0, 0.3])
    tables = [table[0] for table in impute(classifier, row[None], draws=150)]
    first = np.interp([t[0] for t in tables], GRID, distribution(classifier, row, 0))
    second = [
        np.interp(t[1], GRID, distribution(classifier, np.where(np.arange(4) == 1, np.nan, t), 1)) for t in tables
    ]
    assert min(stats.kstest(first, "uniform").pvalue, stats.kstest(second, "uniform").pvalue) > 1e-6
    assert abs(np.corrcoef(first, second)[0, 1]) * np.sqrt(150) < 5


def test_half_of_the_draws_lie_below_the_median_of_the_average():
    classifier = MAKES["average"]()
    values = np.array([table[0, 3] for table in impute(classifier, ODD[None], draws=4000)])
    assert abs((values < impute(classifier, ODD[None])[0, 3]).mean() - 0.5) / np.sqrt(0.25 / 4000) < 5


def test_categories_of_the_average_are_drawn_in_proportion_to_the_density_of_the_row():
    table = bg.data.load("penguins").sample(80, random_state=0)
    classifier = bg.AveragedClassifier(members=["gaussian", "category"]).fit(table, table.pop("species"))
    row = pd.DataFrame([table.iloc[0]]).assign(island=None, body_mass_g=np.nan, flipper_length_mm=188.0)
    islands = ["Biscoe", "Dream", "Torgersen"]
    chance = softmax(classifier.score_samples(pd.concat([row] * 3).assign(island=islands)))
    drawn = pd.concat(impute(classifier, pd.concat([row] * 200, ignore_index=True), draws=10))["island"]
    z = [((drawn == one).mean() - p) / np.sqrt(p * (1 - p) / 2000) for one, p in zip(islands, chance, strict=True)]
    assert np.abs(z).max() < 5 and chance.max() < 0.99


def test_counts_are_weighed_by_what_their_row_has():
    """Against draws of the posterior, weighed by the density of the observed entry."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 6)
    table = pd.DataFrame({"time": np.exp(rng.normal(y, 1)), "visits": rng.poisson(2 + 6 * y)})
    features = {"time": LogNormal(0.0, 0.1, 1.0, 1.0), "visits": "poisson"}
    classifier = bg.NaiveBayesClassifier(features, random_state=0).fit(table, y)
    drawn = pd.concat(impute(classifier, pd.DataFrame({"time": [1.5] * 200, "visits": np.nan}), draws=10))["visits"]
    params = classifier.posterior_.draws(1, (100_000,))
    seen = stats.lognorm.pdf(1.5, np.sqrt(params["time.variance"]), scale=np.exp(params["time.mean"]))
    rate = next(v for site, v in params.items() if site.startswith(("visits", "poisson")))
    weight = params["classes.probability"] * seen
    wanted = (weight * rate.reshape(weight.shape)).sum() / weight.sum()
    assert abs(drawn.mean() - wanted) / (drawn.std() / np.sqrt(2000)) < 5


def test_a_row_far_from_all_draws_is_drawn_with_a_warning():
    classifier, rows = gda(step=3, inference=Drawn()), [[6.0, 2.8, 4.6, np.nan], [30.0, 0.0, 0.0, np.nan]]
    with pytest.warns(FewDrawsWarning, match="values of 1 of 2 rows rest on fewer than 50 effective draws"):
        impute(classifier, rows, draws=2)
    with pytest.warns(FewDrawsWarning, match="the tables rest on fewer than 50"):
        impute(classifier, rows, draws=2, joint=True)


@pytest.mark.parametrize("y", [None, [1]])
def test_rows_that_an_estimate_rules_out_are_filled(y):
    rows = pd.DataFrame({"bit": [0, 0, 1, 1], "other": [1, 1, 0, 0], "x": [1.0, 2.0, 3.0, 4.5]})
    coins = dict.fromkeys(["bit", "other"], "bernoulli")
    classifier = bg.NaiveBayesClassifier(coins, inference="ml").fit(rows, [0, 0, 1, 1])
    gone = pd.DataFrame({"bit": [1], "other": [1], "x": [np.nan]})  # neither class has both
    assert impute(classifier, gone, y)["x"].between(1, 5).all()
    assert np.isfinite(impute(classifier, gone, y, draws=1)[0]["x"]).all()


# -- tables whose rows share their parameters


def variance_of_mean(tables, rows):
    """Variance between tables of the mean of column 1 over some rows, and its standard error as a share of it."""
    return np.var([np.asarray(t)[rows, 1].mean() for t in tables], ddof=1), np.sqrt(2 / len(tables))


def wanted_variance(params, seen):
    """Variance of the mean of column 1 over rows with these entries of column 0, by draws (S, 1, ...) of parameters."""
    mean, covariance = params["gaussian.mean"][:, 0], params["gaussian.covariance"][:, 0]
    slope = covariance[:, 0, 1] / covariance[:, 0, 0]
    noise = covariance[:, 1, 1] - slope * covariance[:, 0, 1]
    return np.var(mean[:, 1] + slope * (seen.mean() - mean[:, 0])) + noise.mean() / len(seen)


def test_tables_of_independent_columns_vary_as_their_mean_is_unknown():
    classifier = bg.GaussianDiscriminantClassifier("diagonal", random_state=0).fit(PAIR[:20], np.zeros(20))
    new = np.where([True, False], PAIR, np.nan)
    leaf = classifier.posterior_.model.gaussian
    square, kappa = (leaf.beta / (leaf.alpha - 1))[0, 1], leaf.kappa.ravel()[0]
    for joint, wanted in ((True, square * (1 / kappa + 1 / 80)), (False, square * (1 + 1 / kappa) / 80)):
        found, error = variance_of_mean(impute(classifier, new, draws=400, joint=joint), slice(None))
        assert abs(found / wanted - 1) < 5 * error, (joint, found, wanted)


def test_tables_of_new_rows_vary_as_a_regression_is_unknown():
    """Observed values of column 0 do not inform the regression of column 1, whose posterior stays as after the fit."""
    classifier = bg.GaussianDiscriminantClassifier(random_state=0).fit(PAIR[:20], np.zeros(20))
    wanted = wanted_variance(classifier.posterior_.draws(0, (20_000,)), PAIR[20:60, 0])
    new = np.where([True, False], PAIR[20:60], np.nan)
    found, error = variance_of_mean(impute(classifier, new, draws=120, joint=True), slice(None))
    assert abs(found / wanted - 1) < 5 * error, (found, wanted)


def test_tables_of_the_rows_of_a_fit_by_em_vary_under_its_prior():
    gaps, y = np.where((np.arange(80) >= 20)[:, None] & [False, True], np.nan, PAIR), np.zeros(80)
    classifier = bg.GaussianDiscriminantClassifier(inference="map", random_state=0).fit(gaps, y)
    model = classifier.model_
    params = model.update(model.statistics(gaps[:20], np.zeros(20, int))).sample_parameters(
        np.random.default_rng(0), (20_000,)
    )
    wanted = wanted_variance(params, gaps[20:, 0])
    found, error = variance_of_mean(impute(classifier, gaps, y, draws=100, joint=True), slice(20, None))
    assert abs(found / wanted - 1) < 5 * error, (found, wanted)
    imputer, both = bg.Imputer(draw=True).fit(gaps), {True: [], False: []}
    for (joint, tables), seed in itertools.product(both.items(), range(25)):
        imputer.classifier_.set_params(random_state=seed)
        tables.append(imputer.transform(gaps if joint else np.tile(gaps, (2, 1)))[: len(gaps)])
    ratio = np.divide(*(variance_of_mean(tables, slice(20, None))[0] for tables in both.values()))
    assert stats.f(24, 24).sf(ratio) < 0.01


def test_rows_of_an_exact_fit_are_not_counted_twice():
    gaps, y = np.where((np.arange(80) >= 20)[:, None] & [False, True], np.nan, PAIR), np.zeros(80)
    classifier = bg.GaussianDiscriminantClassifier("diagonal", random_state=0).fit(gaps, y)
    leaf = classifier.posterior_.model.gaussian
    wanted = (leaf.beta / (leaf.alpha - 1) * (1 / leaf.kappa + 1 / 60))[0, 1]
    found, error = variance_of_mean(impute(classifier, gaps, y, draws=400, joint=True), slice(20, None))
    assert abs(found / wanted - 1) < 5 * error, (found, wanted)


@pytest.mark.parametrize("covariance", ["full", pytest.param("diagonal", marks=pytest.mark.slow), "draws"])
def test_tables_of_rows_without_classes_know_all_that_is_seen(covariance):
    """Two rows with other gaps, against draws of the posterior that are weighed by the density of both rows."""
    y = np.arange(16) % 2
    rows = PAIR[:16] + 1.5 * y[:, None]
    settings = {"inference": Drawn()} if covariance == "draws" else {"covariance": covariance}
    classifier = bg.GaussianDiscriminantClassifier(random_state=0, **settings).fit(rows, y)
    tables = np.stack(impute(classifier, [[4.0, np.nan], [np.nan, 0.5]], draws=250, joint=True))
    posterior = classifier.posterior_
    params = posterior.flat if covariance == "draws" else posterior.draws(1, (100_000,))
    mean, square = params["gaussian.mean"], params.get("gaussian.covariance")
    if square is None:
        square = params["gaussian.variance"][..., None] * np.eye(2)
    weight, means = 1.0, []
    for column, value in ((0, 4.0), (1, 0.5)):
        variance = square[..., column, column]
        joint = params["classes.probability"] * stats.norm.pdf(value, mean[..., column], np.sqrt(variance))
        other = mean[..., 1 - column] + square[..., 0, 1] / variance * (value - mean[..., column])
        means.append((joint * other).sum(1) / joint.sum(1))
        weight = weight * joint.sum(1)
    weight = weight / weight.sum()
    drawn = tables[:, [0, 1], [1, 0]].T
    for values, own in zip((*drawn, drawn[0] * drawn[1]), (*means, means[0] * means[1]), strict=True):
        error = np.sqrt(values.var() / 250 + (weight**2 * (own - weight @ own) ** 2).sum())
        assert abs(values.mean() - weight @ own) < 5 * error, (values.mean(), weight @ own, error)


def test_tables_of_the_average_share_a_member_and_its_parameters():
    classifier = bg.AveragedClassifier(members=["gaussian", "category"], bend=False).fit(X[::6, :1], Y[::6])
    tables = impute(classifier, np.full((16, 1), np.nan), np.full(16, 2), draws=200, joint=True)
    found = np.var([table.mean() for table in tables], ddof=1)
    fitted, moments = classifier.average_, []
    for member, weight in zip(fitted.members, fitted.density_weights, strict=True):
        if weight:
            ((view, place),) = fitted.places(member)
            leaf, scale = view.posterior(place), view.view.warp.scale[0]
            kappa, alpha = (np.broadcast_to(v, (3, 1))[2, 0] for v in (leaf.kappa, leaf.alpha))
            beta = np.broadcast_to(leaf.beta, (3, 1))[2, 0]
            moments.append((weight, scale * leaf.mean[2, 0], scale**2 * beta / (alpha - 1) * (1 / kappa + 1 / 16)))
    weight, mean, variance = np.array(moments).T / [[sum(m[0] for m in moments)], [1], [1]]
    wanted = weight @ variance + weight @ (mean - weight @ mean) ** 2
    assert abs(found / wanted - 1) < 5 * np.sqrt(2 / 200), (found, wanted)


# -- tables of an average with leaves


def visits(rows=30, seed=0):
    """Rows of two classes with a number and two counts."""
    rng, y = np.random.default_rng(seed), np.arange(rows) % 2
    columns = {"age": rng.normal(y, 2.0), "visits": rng.poisson(2.0 + 3 * y), "calls": rng.poisson(4.0 - 2 * y)}
    return pd.DataFrame(columns, dtype=float), y


def z_of_variance(means, wanted):
    """Return z of the variance of some means, by their fourth moment."""
    square = (np.array(means) - np.mean(means)) ** 2
    return (square.mean() - wanted) / (square.std() / np.sqrt(len(means)))


@pytest.mark.parametrize("rows", ["of the fit", "new"])
def test_tables_of_counts_vary_as_their_rate_is_unknown(rows):
    """Under the posterior Gamma(a, b) the mean of n filled counts has the variance a/b² + a/(b n)."""
    table, y = visits()
    table.loc[(y == 1) & (table.index >= 10), "visits"] = np.nan
    average = bg.AveragedClassifier(members=["gaussian", "category"], features={"visits": "poisson"}).fit(table, y)
    leaf = average.average_.leaves.posterior.leaves["poisson"]
    a, b = (np.broadcast_to(v, (2, 1))[1, 0] for v in (leaf.concentration, leaf.rate))
    if rows == "new":
        table, y = visits(24, 1)[0], np.ones(24, int)
        table.loc[8:, "visits"] = np.nan
        a, b = a + table["visits"].sum(), b + 8
    gone = table["visits"].isna().to_numpy()
    means = [own.loc[gone, "visits"].mean() for own in impute(average, table, y, draws=400, joint=True)]
    wanted = a / b**2 + a / (b * gone.sum())
    assert abs(np.mean(means) - a / b) < 5 * np.sqrt(wanted / 400)
    assert abs(z_of_variance(means, wanted)) < 5, (np.var(means), wanted)
    alone = [own.loc[gone, "visits"].mean() for own in impute(average, table, y, draws=400)]
    assert z_of_variance(alone, wanted) < -5


def test_tables_of_counts_without_classes_know_all_that_is_seen():
    """Two rows with other gaps, against draws of the posterior that are weighed by the density of both rows."""
    rows, y = visits()
    features = {"visits": "poisson", "calls": "poisson"}
    average = bg.AveragedClassifier(features=features, members=["gaussian"]).fit(rows[[*features]], y)
    new = pd.DataFrame({"visits": [6.0, np.nan], "calls": [np.nan, 3.0]})
    drawn = np.stack([own.to_numpy()[[0, 1], [1, 0]] for own in impute(average, new, draws=400, joint=True)], 1)
    rng, fitted = np.random.default_rng(1), average.average_
    classes = rng.dirichlet(fitted.class_weight + fitted.concentration, 100_000)
    rate = fitted.leaves.posterior.sample_parameters(rng, (100_000,))["poisson.mean"]
    weight, means = 1.0, []
    for column, value in ((0, 6), (1, 3)):
        joint = classes * stats.poisson.pmf(value, rate[..., column])
        means.append((joint * rate[..., 1 - column]).sum(1) / joint.sum(1))
        weight = weight * joint.sum(1)
    weight = weight / weight.sum()
    for values, own in zip((*drawn, drawn[0] * drawn[1]), (*means, means[0] * means[1]), strict=True):
        error = np.sqrt(values.var() / 400 + (weight**2 * (own - weight @ own) ** 2).sum())
        assert abs(values.mean() - weight @ own) < 5 * error, (values.mean(), weight @ own, error)


def test_tables_of_a_leaf_with_a_full_covariance_vary_as_its_regression_is_unknown():
    prior = NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2))
    rows = pd.DataFrame(PAIR, columns=["a", "b"])
    average = bg.AveragedClassifier(features={("a", "b"): prior}, members=["gaussian"])
    average.fit(rows[:20], np.arange(20) % 2)
    own, leaf = average.average_.leaves, next(iter(average.average_.leaves.posterior.leaves))
    drawn = own.posterior.sample_parameters(np.random.default_rng(0), (20_000,))
    params = {f"gaussian.{name}": drawn[f"{leaf}.{name}"] for name in ("mean", "covariance")}
    wanted = wanted_variance(params, PAIR[20:60, 0])
    tables = impute(average, rows[20:60].assign(b=np.nan), np.zeros(40, int), draws=120, joint=True)
    assert abs(z_of_variance([table["b"].mean() for table in tables], wanted)) < 5


def test_imputers_by_an_average_with_leaves_vary_as_its_rate_is_unknown():
    table = visits()[0][["age", "visits"]]
    table.loc[10:, "visits"] = np.nan
    average = bg.AveragedClassifier(members=["gaussian", "category"], features={"visits": "poisson"})
    imputer, means = bg.Imputer(average, draw=True).fit(table), []
    leaf = imputer.classifier_.average_.leaves.posterior.leaves["poisson"]
    a, b = leaf.concentration.item(), leaf.rate.item()
    for seed in range(60):  # as of imputers with these seeds, which would be 60 fits of the same rows
        imputer.classifier_.set_params(random_state=seed)
        means.append(imputer.transform(table)["visits"][10:].mean())
    assert abs(z_of_variance(means, a / b**2 + a / (b * 20))) < 5


def test_the_rows_of_a_fit_are_recognised():
    table = bg.data.load("penguins")[::8]
    y = table.pop("species")
    gaps = table.assign(bill_length_mm=table["bill_length_mm"].where(np.arange(len(y)) % 3 > 0))
    numbers = gaps.select_dtypes("number")
    for classifier, rows in (
        (bg.AveragedClassifier(members="generative"), gaps),
        (bg.AveragedClassifier(members=["gaussian", "category"], features={"body_mass_g": "log"}), gaps),
        (bg.NaiveBayesClassifier(), gaps),
        (bg.GaussianDiscriminantClassifier(inference="map"), numbers),
    ):
        density = classifier.fit(rows, y).fitted_.joint()
        codes = np.unique(y, return_inverse=True)[1]
        assert density.knows(density.read(rows), codes)
        assert not density.knows(density.read(rows), codes[::-1])
        assert not density.knows(density.read(rows[1:]), codes[1:])
        (filled,) = impute(classifier, rows, y, draws=1, joint=True)
        assert not filled.isna().any(axis=None) and (filled[rows.notna()] == rows)[rows.notna()].all(axis=None)


def test_tables_need_draws():
    refuses(lambda: impute(gda(), ODD[None], joint=True), "give draws=")
    refuses(lambda: impute(gda(), ODD[None], draws=1, joint="rows"), "joint must be True or False", TypeError)
