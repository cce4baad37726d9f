"""ArviZ's own functions on what `to_arviz` gives, called as its documentation calls them."""

import arviz_base as azb
import arviz_functions as functions
import arviz_plots as azp
import arviz_stats as azs
import matplotlib
import numpy as np
import pytest
import xarray as xr
from refusals import refuses
from scipy import stats
from sklearn.datasets import load_diabetes, load_iris

import bayesgen as bg
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    HaldaneBernoulli,
    LinearRegression,
    LogisticRegression,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
)

matplotlib.use("Agg")
pytestmark = [
    pytest.mark.filterwarnings("default::DeprecationWarning"),  # of ArviZ, about its own dependencies
    pytest.mark.filterwarnings("default::FutureWarning"),
    pytest.mark.filterwarnings("default:The inplace keyword"),
    pytest.mark.filterwarnings("default:Estimated shape parameter"),
]
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
SHORT = bg.NUTS(500, 500, 2)


@pytest.fixture(scope="module")
def lda():
    """Return a sampled discriminant of two classes, so that every group is there."""
    classifier = bg.GaussianDiscriminantClassifier(shared=True, inference=SHORT, random_state=0).fit(
        X[50:], NAMES[Y[50:]]
    )
    return classifier.to_arviz(X[50:], NAMES[Y[50:]])


@pytest.fixture(scope="module")
def line():
    x, y = load_diabetes(return_X_y=True)
    regressor = bg.LinearRegressor(random_state=0).fit(x[::4], y[::4])
    return regressor, x[::4], y[::4], regressor.to_arviz(x[::4], y[::4])


@pytest.fixture(scope="module")
def softmax():
    classifier = bg.LogisticClassifier(inference=SHORT, random_state=0).fit(X, Y)
    return classifier, classifier.to_arviz(X, Y)


@pytest.mark.compiles
def test_groups_dims_and_labels(lda):
    assert {"posterior", "sample_stats", "log_likelihood", "posterior_predictive", "observed_data", "prior"} <= set(
        lda.children
    )
    mean = lda.posterior["gaussian.mean"]
    assert mean.dims == ("chain", "draw", "class", "feature") and mean.sizes["chain"] == 2
    assert list(mean.coords["class"].values) == ["versicolor", "virginica"]
    assert list(mean.coords["feature"].values) == ["x0", "x1", "x2", "x3"]
    assert {"diverging", "lp", "energy", "n_steps", "acceptance_rate"} <= set(lda.sample_stats.data_vars)


def test_summary(lda):
    table = azs.summary(lda, var_names=["gaussian.mean"])
    assert "gaussian.mean[versicolor, x0]" in table.index
    assert (table["r_hat"].astype(float) < 1.05).all()


def test_loo_is_of_whole_rows(lda):
    assert set(lda.log_likelihood.data_vars) == {"joint"}
    assert azs.loo(lda).elpd < bg.inspection.loo_given_x(lda).elpd < 0


@pytest.mark.compiles
@pytest.mark.parametrize("shared", [False, True])
def test_loo_of_classes_given_columns_is_what_leaving_out_gives(shared):
    classifier = bg.GaussianDiscriminantClassifier(shared=shared, random_state=0).fit(X, Y)
    data, exact = classifier.to_arviz(X, Y), classifier.leave_one_out(X, Y)
    estimate = bg.inspection.loo_given_x(data)
    assert abs(estimate.elpd - exact.conditional.sum()) < 0.15
    np.testing.assert_allclose(estimate.elpd_i, exact.conditional, atol=0.05)
    np.testing.assert_allclose(estimate.se, np.sqrt(150) * exact.conditional.std(), rtol=0.05)
    assert 0 < estimate.p < 10
    given = data.conditional_log_likelihood["t"]
    assert (given.values < 0).all()  # none is rounded to 0, of rows that are sure either


LARGE = {"log_likelihood", "conditional_log_likelihood", "posterior_predictive", "prior_predictive"}


@pytest.mark.compiles
@pytest.mark.parametrize("kind", ["discriminant", "softmax", "line"])
def test_only_the_large_groups_that_are_asked_for(kind, softmax, line):
    discriminant = bg.GaussianDiscriminantClassifier(random_state=0).fit(X, Y)
    estimator, x, y = {"discriminant": (discriminant, X, Y), "softmax": (softmax[0], X, Y), "line": line[:3]}[kind]
    every = estimator.to_arviz(x, y, draws=50)
    large = LARGE & set(every.children)
    for groups in ((), ("log_likelihood",), ("posterior_predictive", "prior_predictive")):
        some = estimator.to_arviz(x, y, draws=50, groups=groups)
        assert set(some.children) == set(every.children) - large | set(groups)
        if "log_likelihood" in groups:
            xr.testing.assert_equal(some.log_likelihood, every.log_likelihood)
    refuses(lambda: estimator.to_arviz(x, y, groups=["likelihood"]), "groups must be some of")


@pytest.mark.compiles
def test_attributes_and_statistics_of_a_sampler():
    data = bg.fit(bg.models.BetaBernoulli(1, 1), [1, 0], bg.NUTS(60, 50, 2, keep_warmup=True), seed=0).to_arviz()
    assert data.posterior.attrs["tuning_steps"] == 50 and data.posterior.attrs["sampling_time"] > 0
    for group in data.children.values():
        assert group.attrs["inference_library"] == "bayesgen"
        assert group.attrs["inference_library_version"] == bg.__version__
    steps = data.sample_stats["n_steps"].values
    np.testing.assert_array_equal(data.sample_stats["tree_depth"], np.log2(steps).astype(int) + 1)
    assert not data.sample_stats["reached_max_tree_depth"].any()
    assert data.warmup_posterior["probability"].sizes == {"chain": 2, "draw": 50}
    assert "diverging" in data.warmup_sample_stats


@pytest.mark.compiles
def test_keeping_the_warmup_changes_no_draw():
    model = bg.models.BetaBernoulli(1, 1)
    kept, plain = (bg.fit(model, [1, 0], bg.NUTS(60, 50, 2, keep_warmup=k), seed=0) for k in (True, False))
    assert plain.warmup is None
    np.testing.assert_array_equal(kept.samples["probability"], plain.samples["probability"])


@pytest.mark.compiles
def test_log_prior_is_the_density_of_what_is_sampled(lda):
    mean, sd = lda.log_prior["gaussian.mean"], lda.log_prior["classes.probability"]
    assert mean.dims == sd.dims == ("chain", "draw")
    posterior = bg.fit(bg.models.BetaBernoulli(2, 3), [1, 0, 1])
    data = posterior.to_arviz(0, [1, 0, 1])
    p = data.posterior["probability"]
    np.testing.assert_allclose(data.log_prior["probability"], stats.beta(2, 3).logpdf(p), rtol=1e-6)
    np.testing.assert_allclose(data.log_likelihood["x"].isel(obs=1), np.log1p(-p), rtol=1e-9)
    assert abs(data.posterior_predictive["x"].values.mean() - 4 / 8) < 0.03
    assert abs(data.prior_predictive["x"].values.mean() - 2 / 5) < 0.05


@pytest.mark.compiles
def test_a_users_function_with_its_data():
    counts = np.array([2, 3, 1, 4])
    data = bg.fit(functions.visits, counts, bg.Laplace(500), seed=0).to_arviz(0, counts)
    rate = data.posterior["rate"]
    expected = stats.poisson(rate.values[..., None]).logpmf(counts)
    np.testing.assert_allclose(data.log_likelihood["counts"], expected, rtol=1e-9)
    assert data.posterior_predictive["counts"].dims == ("chain", "draw", "obs")
    np.testing.assert_array_equal(data.observed_data["counts"], counts)
    spread, rate = data.posterior["spread"].values, rate.values
    np.testing.assert_allclose(data.log_prior["rate"], stats.lognorm(spread).logpdf(rate), rtol=1e-6)
    refuses(lambda: bg.NaiveBayesClassifier().fit(X, Y).posterior_.to_arviz(0, X), r"give to_arviz\(seed, \(x, t\)\)")


@pytest.mark.compiles
def test_rows_classes_and_columns_have_their_labels():
    table = bg.data.load("penguins").sample(40, random_state=0)
    labels = table.pop("species")
    classifier = bg.NaiveBayesClassifier(random_state=0).fit(table, labels)
    data = classifier.to_arviz(table, labels, columns=True)
    assert list(data.observed_data["obs"].values) == list(table.index)
    assert list(data.posterior_predictive["t"].attrs["classes"]) == list(classifier.classes_)
    assert set(data.posterior_predictive.data_vars) == {"t", *table.columns} == set(data.prior_predictive.data_vars)
    assert list(data.observed_data["sex"].attrs["categories"]) == ["female", "male"]
    np.testing.assert_array_equal(data.observed_data["bill_length_mm"], table["bill_length_mm"])
    drawn, codes = data.posterior_predictive["bill_length_mm"].values, data.observed_data["t"].values
    for k in range(3):
        seen = table["bill_length_mm"].values[codes == k]
        assert abs(np.nanmean(seen) - drawn[..., codes == k].mean()) < 1.0
    assert data.prior_predictive["t"].dims == ("chain", "draw", "obs")


@pytest.mark.compiles
def test_a_regressions_columns_and_prior(line):
    _, x, y, data = line
    assert set(data.constant_data.data_vars) == {f"x{j}" for j in range(10)}
    np.testing.assert_allclose(data.constant_data["x2"], x[:, 2], atol=1e-12)
    assert data.prior["coefficients"].sizes["draw"] == 1000
    assert data.prior_predictive["y"].sizes["obs"] == len(y) and "coefficients" in data.log_prior


@pytest.mark.compiles
def test_logistic_regression_has_a_prior(softmax):
    _, data = softmax
    assert set(data.prior.data_vars) >= {"intercept", "coefficients"}
    assert abs(data.prior_predictive["t"].values.mean() - 1) < 0.1 and len(data.log_prior.data_vars)


def test_zarr_both_ways(lda, tmp_path):
    pytest.importorskip("zarr")
    lda.to_zarr(tmp_path / "lda.zarr", zarr_format=2)  # format 3 has no text yet, and zarr warns of it
    again = xr.open_datatree(tmp_path / "lda.zarr", engine="zarr")
    xr.testing.assert_equal(again["log_likelihood"].to_dataset(), lda["log_likelihood"].to_dataset())


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("prior", "inference"),
    [("weak", "exact"), pytest.param(bg.models.SeparationPrior(), SHORT, marks=pytest.mark.slow)],
)
def test_a_summary_has_no_gap(prior, inference):
    """A Cholesky factor is 0 above its diagonal in every draw, which has no R-hat; a covariance says the same."""
    fitted = bg.GaussianDiscriminantClassifier(prior=prior, inference=inference, random_state=0).fit(X[:, :3], Y)
    tree = fitted.to_arviz(X[:, :3], Y)
    assert not azs.summary(tree).isna().any(axis=None)
    assert not [site for site in (*tree.posterior, *tree.prior) if site.endswith("cholesky")]
    assert set(tree.posterior) == set(tree.prior)


def test_plots(lda, tmp_path):
    azp.plot_trace(lda, var_names=["gaussian.mean"], backend="matplotlib")
    azp.plot_forest(lda, var_names=["gaussian.mean"], backend="matplotlib")
    azp.plot_ppc_pava(lda, data_type="binary", backend="matplotlib").savefig(tmp_path / "pava.png")
    matplotlib.pyplot.close("all")


@pytest.mark.compiles
def test_plots_of_a_regression(line):
    azp.plot_loo_pit(line[-1], var_names=["y"], backend="matplotlib")
    matplotlib.pyplot.close("all")


@pytest.mark.compiles
def test_a_regressions_groups_are_its_predictive(line):
    regressor, x, y, data = line
    mean, sd = regressor.predict(x, return_std=True)
    drawn = data.posterior_predictive["y"].values.reshape(-1, len(y))
    assert (np.abs(drawn.mean(0) - mean) < 5 * sd / np.sqrt(len(drawn))).all()
    exact = regressor.posterior_.model.log_predictive((regressor.fitted_.read(x), y))
    density = data.log_likelihood["y"].values.reshape(-1, len(y))
    ratio = np.exp(density - exact)  # has mean 1 over the posterior
    assert (np.abs(ratio.mean(0) - 1) < 5 * ratio.std(0) / np.sqrt(len(ratio))).all()
    np.testing.assert_array_equal(data.observed_data["y"], y)


@pytest.mark.compiles
def test_laplace_noise_is_drawn_as_laplace():
    x = np.random.default_rng(0).normal(size=(60, 1))
    y = x[:, 0] + np.random.default_rng(1).laplace(size=60)
    regressor = bg.LinearRegressor(noise="laplace", inference="map", random_state=0).fit(x, y)
    errors = regressor.to_arviz(x, y).posterior_predictive["y"].values[0, 0] - regressor.predict(x)
    assert stats.kstest(errors, stats.laplace(scale=np.sqrt(regressor.variance_ / 2)).cdf).pvalue > 1e-4


@pytest.mark.compiles
def test_a_softmax_regressions_likelihood(softmax):
    logistic, data = softmax
    assert set(data.log_likelihood.data_vars) == {"t"}
    draws = data.posterior["coefficients"].values.reshape(-1, 3, 4)
    scores = draws @ X.T + data.posterior["intercept"].values.reshape(-1, 3)[..., None]
    share = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
    mine = data.log_likelihood["t"].values.reshape(-1, 150)
    np.testing.assert_allclose(mine, share[:, Y, np.arange(150)], atol=1e-8)
    refuses(lambda: logistic.to_arviz(X), "X and y together")


@pytest.mark.compiles
def test_discriminative_and_generative_models_compare(softmax):
    generative = bg.GaussianDiscriminantClassifier(shared=True, random_state=0).fit(X, Y)
    trees = {"logistic": softmax[1], "lda": generative.to_arviz(X, Y)}
    table = azs.compare({name: bg.inspection.loo_given_x(data) for name, data in trees.items()})
    assert set(table.index) == {"logistic", "lda"} and (table["elpd"] < 0).all()


@pytest.mark.compiles
def test_netcdf_both_ways(lda, tmp_path):
    lda.to_netcdf(tmp_path / "lda.nc")
    again = xr.open_datatree(tmp_path / "lda.nc")
    for group in lda.children:
        xr.testing.assert_equal(again[group].to_dataset(), lda[group].to_dataset())
    assert isinstance(azb.extract(again, group="posterior"), xr.Dataset)


# -- models without an estimator


def classified(n=40):
    rng = np.random.default_rng(3)
    t = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 2.0 * t[:, None], t


DISCRIMINANT = GaussianDiscriminant(
    DirichletCategorical(1.0, ["no", "yes"]), NormalInverseWishart(np.zeros(2), 0.1, 6.0, 3 * np.eye(2))
)
BAYES = NaiveBayes(
    DirichletCategorical(1.0, ["no", "yes"]),
    {"first": NormalInverseGamma(0.0, 0.1, 3.0, 3.0), "second": BetaBernoulli(1.0, 1.0)},
)


@pytest.mark.parametrize("name", ["discriminant", "naive Bayes"])
def test_the_tree_of_a_bare_classifier_is_that_of_an_estimator(name):
    """Densities by SciPy; leave-one-out meets the exact one, evidence over evidence without the row."""
    x, t = classified()
    model, rows = (DISCRIMINANT, x) if name == "discriminant" else (BAYES, {"first": x[:, 0], "second": x[:, 1] > 1})
    posterior = bg.fit(model, (rows, t))
    tree = posterior.to_arviz(0, (rows, t))
    params = {site: v[0, :3] for site, v in posterior.as_draws(0).samples.items()}
    joint = np.log(params["classes.probability"])[:, None].repeat(len(t), 1)
    for draw in range(3):
        for k in range(2):
            if name == "discriminant":
                normal = stats.multivariate_normal(
                    params["gaussian.mean"][draw, k], params["gaussian.covariance"][draw, k]
                )
                joint[draw, :, k] += normal.logpdf(x)
            else:
                sd = params["first.variance"][draw, k] ** 0.5
                joint[draw, :, k] += stats.norm(params["first.mean"][draw, k], sd).logpdf(rows["first"])
                joint[draw, :, k] += stats.bernoulli(params["second.probability"][draw, k]).logpmf(rows["second"])
    mine = joint[:, np.arange(len(t)), t]
    found = {group: tree[group].to_dataset().isel(chain=0, draw=slice(3)) for group in tree.children if "log" in group}
    np.testing.assert_allclose(found["log_likelihood"]["joint"], mine, rtol=1e-9)
    given = mine - np.logaddexp(joint[..., 0], joint[..., 1])
    np.testing.assert_allclose(found["conditional_log_likelihood"]["t"], given, rtol=1e-8, atol=1e-12)
    assert tree.observed_data.t.attrs["classes"] == ["no", "yes"]
    assert {"log_prior", "prior", "prior_predictive", "posterior_predictive"} <= tree.children.keys()
    pick = (lambda a, keep: a[keep]) if name == "discriminant" else (lambda a, keep: {n: v[keep] for n, v in a.items()})
    whole, exact = posterior.log_evidence, 0.0
    for i in range(len(t)):
        keep = np.arange(len(t)) != i
        exact += whole - model.log_evidence(model.statistics(pick(rows, keep), t[keep]))
    assert abs(azs.loo(tree, var_name="joint").elpd - exact) < 0.5  # some tenths by Monte Carlo, of about -150
    azp.plot_ppc_pava(tree, var_names=["t"], backend="matplotlib")
    matplotlib.pyplot.close("all")
    refuses(lambda: posterior.to_arviz(0, rows), "come with a target")
    refuses(lambda: posterior.to_arviz(0, (rows, t + 1)), r"t must hold the code 0\.\.1")


@pytest.mark.compiles
def test_the_tree_of_a_bare_regression():
    """Densities by SciPy, leave-one-out by evidences; two models compared; replicates have the target's moments."""
    x, _ = classified()
    y = x @ [1.0, -2.0] + np.random.default_rng(0).normal(0, 0.5, len(x))
    model = LinearRegression(np.zeros(3), 3 * np.eye(3), alpha=3.0, beta=1.0, columns=("a", "b"))
    posterior = bg.fit(model, (x, y))
    tree = posterior.to_arviz(0, (x, y))
    params = {site: v[0, 0] for site, v in posterior.as_draws(0).samples.items()}
    normal = stats.norm(params["intercept"] + x @ params["coefficients"], params["variance"] ** 0.5)
    np.testing.assert_allclose(tree.log_likelihood.y[0, 0], normal.logpdf(y), rtol=1e-9)
    exact = sum(
        posterior.log_evidence - model.log_evidence(model.statistics(np.delete(x, i, 0), np.delete(y, i)))
        for i in range(len(y))
    )
    assert abs(azs.loo(tree).elpd - exact) < 0.3
    assert list(tree.constant_data.data_vars) == ["a", "b"]
    drawn = tree.posterior_predictive.y.values.reshape(-1, len(y))
    np.testing.assert_allclose(drawn.mean(0), posterior.predictive_moments(x)[0], atol=0.06)
    strict = bg.fit(LinearRegression(np.zeros(3), 0.01 * np.eye(3), alpha=3.0, beta=1.0), (x, y)).to_arviz(0, (x, y))
    assert azs.compare({"weak": tree, "strict": strict}).index[0] == "weak"
    azp.plot_ppc_dist(tree, var_names=["y"], backend="matplotlib")
    matplotlib.pyplot.close("all")


@pytest.mark.compiles
def test_the_tree_of_a_bare_logistic_regression():
    x, t = classified()
    posterior = bg.fit(LogisticRegression([1.0, 1.0], 2.0), (x, t), "laplace", seed=0)
    tree = posterior.to_arviz(0, (x, t))
    params = {site: v[0, 0] for site, v in posterior.samples.items()}
    score = np.squeeze(params["intercept"]) + x @ np.squeeze(params["coefficients"])
    np.testing.assert_allclose(tree.log_likelihood.t[0, 0], -np.logaddexp(0, -(2 * t - 1) * score), rtol=1e-9)
    assert "conditional_log_likelihood" not in tree.children
    assert np.isfinite(azs.loo(tree).elpd)


def test_an_improper_prior_has_no_prior_groups():
    tree = bg.fit(HaldaneBernoulli(), [0.0, 1.0, 1.0]).to_arviz(0, [0.0, 1.0, 1.0])
    assert "prior" not in tree.children and tree.log_likelihood.x.shape == (4, 1000, 3)
