"""ArviZ's own functions on what `to_arviz` gives, called as its documentation calls them."""

import arviz_base as azb
import arviz_plots as azp
import arviz_stats as azs
import matplotlib
import numpy as np
import pytest
import xarray as xr
from scipy import stats
from sklearn.datasets import load_diabetes, load_iris

import bayesgen as bg

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
    """Of two classes, sampled, so that every group is there."""
    classifier = bg.GaussianDiscriminantClassifier(shared=True, inference=SHORT, random_state=0).fit(
        X[50:], NAMES[Y[50:]]
    )
    return classifier.to_arviz(X[50:], NAMES[Y[50:]])


@pytest.fixture(scope="module")
def line():
    x, y = load_diabetes(return_X_y=True)
    regressor = bg.LinearRegressor(random_state=0).fit(x[::4], y[::4])
    return regressor, x[::4], y[::4], regressor.to_arviz(x[::4], y[::4])


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


def test_loo(lda):
    joint, conditional = (azs.loo(lda, var_name=name) for name in ("joint", "conditional"))
    assert joint.elpd < conditional.elpd < 0


def test_plots(lda, tmp_path):
    azp.plot_trace(lda, var_names=["gaussian.mean"], backend="matplotlib")
    azp.plot_forest(lda, var_names=["gaussian.mean"], backend="matplotlib")
    azp.plot_ppc_pava(lda, var_names=["t"], data_type="binary", backend="matplotlib").savefig(tmp_path / "pava.png")
    matplotlib.pyplot.close("all")


def test_plots_of_a_regression(line):
    azp.plot_loo_pit(line[-1], var_names=["y"], backend="matplotlib")
    matplotlib.pyplot.close("all")


def test_a_regressions_groups_are_its_predictive(line):
    regressor, x, y, data = line
    mean, sd = regressor.predict(x, return_std=True)
    drawn = data.posterior_predictive["y"].values.reshape(-1, len(y))
    assert (np.abs(drawn.mean(0) - mean) < 5 * sd / np.sqrt(len(drawn))).all()
    exact = regressor.posterior_.model.log_predictive((regressor._read(x), y))
    density = data.log_likelihood["y"].values.reshape(-1, len(y))
    ratio = np.exp(density - exact)  # has mean 1 over the posterior
    assert (np.abs(ratio.mean(0) - 1) < 5 * ratio.std(0) / np.sqrt(len(ratio))).all()
    np.testing.assert_array_equal(data.observed_data["y"], y)


def test_laplace_noise_is_drawn_as_laplace():
    x = np.random.default_rng(0).normal(size=(60, 1))
    y = x[:, 0] + np.random.default_rng(1).laplace(size=60)
    regressor = bg.LinearRegressor(noise="laplace", inference="map", random_state=0).fit(x, y)
    errors = regressor.to_arviz(x, y).posterior_predictive["y"].values[0, 0] - regressor.predict(x)
    assert stats.kstest(errors, stats.laplace(scale=np.sqrt(regressor.variance_ / 2)).cdf).pvalue > 1e-4


def test_a_softmax_regressions_likelihood():
    logistic = bg.LogisticClassifier(inference=SHORT, random_state=0).fit(X, Y)
    data = logistic.to_arviz(X, Y)
    assert set(data.log_likelihood.data_vars) == {"conditional"}
    draws = data.posterior["coefficients"].values.reshape(-1, 3, 4)
    scores = draws @ X.T + data.posterior["intercept"].values.reshape(-1, 3)[..., None]
    share = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
    mine = data.log_likelihood["conditional"].values.reshape(-1, 150)
    np.testing.assert_allclose(mine, share[:, Y, np.arange(150)], atol=1e-8)
    with pytest.raises(ValueError, match="X and y together"):
        logistic.to_arviz(X)


def test_discriminative_and_generative_models_compare(lda):
    logistic = bg.LogisticClassifier(inference=SHORT, random_state=0).fit(X[50:], Y[50:])
    table = azs.compare({"logistic": logistic.to_arviz(X[50:], Y[50:]), "lda": lda}, var_name="conditional")
    assert set(table.index) == {"logistic", "lda"} and (table["elpd"] < 0).all()


def test_netcdf_both_ways(lda, tmp_path):
    lda.to_netcdf(tmp_path / "lda.nc")
    again = xr.open_datatree(tmp_path / "lda.nc")
    for group in lda.children:
        xr.testing.assert_equal(again[group].to_dataset(), lda[group].to_dataset())
    assert isinstance(azb.extract(again, group="posterior"), xr.Dataset)
