"""Pictures of the lectures: the coin, Gaussians, regression, and Bayes nets."""

import matplotlib as mpl
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from matplotlib.figure import Figure
from scipy import stats
from scipy.special import expit

import bayesgen as bg
from bayesgen import plot
from bayesgen.models import BetaBernoulli, NormalInverseGamma, NormalKnownVariance

mpl.use("Agg")


def axes():
    return Figure().subplots()


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def colours(ax):
    return [line.get_color() for line in ax.lines]


# -- the coin ---------------------------------------------------------------------------------------------------------


def test_beta_densities():
    ax = plot.beta_densities([(2, 2), (8, 3), (0.5, 0.5)], ax=axes())
    for line, (a, b) in zip(ax.lines, [(2, 2), (8, 3), (0.5, 0.5)], strict=True):
        x, y = line.get_data()
        np.testing.assert_allclose(y, stats.beta(a, b).pdf(x))
    assert labels(ax) == ["Beta(2, 2)", "Beta(8, 3)", "Beta(0.5, 0.5)"]
    assert len(set(colours(ax))) == 3
    assert ax.get_ylim()[1] < 5  # the poles of Beta(1/2, 1/2) do not set the scale


def test_coin_before_and_after():
    ax = plot.coin(BetaBernoulli(2, 3), [1, 1, 0], [1] * 30, ax=axes())
    curves = [line for line in ax.lines if len(line.get_xdata()) > 2]
    for line, (a, b) in zip(curves, [(2, 3), (4, 4), (32, 3)], strict=True):
        x, y = line.get_data()
        np.testing.assert_allclose(y, stats.beta(a, b).pdf(x))
    means = [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 2]
    np.testing.assert_allclose(means, [1 / 2, 32 / 35])


# -- Gaussians --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7])
def test_the_predictive_is_wider_than_the_posterior_by_the_noise(count):
    data, prior = np.arange(count) + 20.0, NormalKnownVariance(0, 10, 2)
    ax = plot.mean_and_predictive(prior, data, unit="°C", ax=axes())
    variance = 1 / (1 / 100 + count / 4)
    location = variance * data.sum() / 4
    for line, v in zip(ax.lines[:2], [variance, variance + 4], strict=True):
        x, y = line.get_data()
        np.testing.assert_allclose(y, stats.norm(location, v**0.5).pdf(x), atol=1e-12)
    assert ax.get_xlabel() == "x [°C]"
    np.testing.assert_array_equal(ax.lines[2].get_xdata(), data)


def test_densities_of_the_next_temperature():
    data, prior = [3.0, 4.0, 6.5], NormalInverseGamma(0.0, 0.1, 1.0, 4.0)
    ax = plot.predictive_densities(prior, data, ax=axes())
    ml, mode, full = ax.lines[:3]
    x, y = ml.get_data()
    np.testing.assert_allclose(y, stats.norm(np.mean(data), np.std(data)).pdf(x))
    posterior = prior.update(prior.statistics(data))
    scale = (posterior.beta * (posterior.kappa + 1) / (posterior.alpha * posterior.kappa)) ** 0.5
    np.testing.assert_allclose(full.get_ydata(), stats.t(2 * posterior.alpha, posterior.mean, scale).pdf(x))
    assert full.get_ydata().max() < min(ml.get_ydata().max(), mode.get_ydata().max())
    assert labels(ax) == ["maximum likelihood", "MAP", "posterior predictive", "observed"]


def test_one_temperature_is_enough_where_the_noise_is_known():
    ax = plot.predictive_densities(NormalKnownVariance(0, 10, 2), [21.0], ax=axes())
    assert np.isfinite(ax.lines[0].get_ydata()).all()


def test_contours_of_a_gaussian_hold_their_probability():
    mean, covariance = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 1.0]])
    ax = plot.gaussian(mean, covariance, ax=axes())
    contours = ax.collections[1]
    inverse = np.linalg.inv(covariance)
    for path, mass in zip(contours.get_paths(), [0.99, 0.9, 0.5], strict=True):
        step = path.vertices - mean
        squared = np.einsum("ni,ij,nj->n", step, inverse, step)
        np.testing.assert_allclose(stats.chi2(2).cdf(squared), mass, atol=0.01)
    lengths = sorted(np.ptp(line.get_xydata(), axis=0) @ np.ptp(line.get_xydata(), axis=0) / 4 for line in ax.lines)
    np.testing.assert_allclose(lengths, np.linalg.eigvalsh(covariance))


# -- regression -------------------------------------------------------------------------------------------------------


def test_regression_lines_and_band():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, 15)
    t = 1 + 2 * x + rng.normal(size=15)
    regressor = bg.LinearRegressor(random_state=0).fit(x[:, None], t)
    ax = plot.regression(regressor, x, t, ax=axes())
    assert len(ax.lines) == 30 + 2
    line, fitted = ax.lines[30].get_data()
    mean, sd = regressor.predict(line[:, None], return_std=True)
    np.testing.assert_allclose(fitted, mean)
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx((mean + 2 * sd).max())
    assert band[:, 1].min() == pytest.approx((mean - 2 * sd).min())
    slopes = [np.diff(one.get_ydata())[0] / np.diff(line)[0] for one in ax.lines[:30]]
    assert np.std(slopes) > 0 and abs(np.mean(slopes) - regressor.coef_[0]) < 1


def test_squashing_functions():
    logistic, probit, stretched = plot.squashing(ax=axes()).lines[:3]
    a = logistic.get_xdata()
    np.testing.assert_allclose(logistic.get_ydata(), expit(a))
    np.testing.assert_allclose(probit.get_ydata(), stats.norm.cdf(a))
    assert np.abs(stretched.get_ydata() - logistic.get_ydata()).max() < 0.02


# -- Bayes nets --------------------------------------------------------------------------------------------------------


def test_a_bayes_net_has_the_arrows_of_the_program():
    def program(x):
        spread = numpyro.sample("spread", dist.HalfNormal(1.0))
        mean = numpyro.sample("mean", dist.Normal(0.0, spread))
        numpyro.deterministic("twice", 2 * mean)
        with numpyro.plate("obs", len(x)):
            numpyro.sample("x", dist.Normal(mean, spread), obs=x)

    ax = plot.bayes_net(program, np.zeros(3), ax=axes())
    arrows = [text for text in ax.texts if not text.get_text()]
    named = [text for text in ax.texts if text.get_text() and text.get_bbox_patch()]
    places = {text.get_position(): text.get_text() for text in named}
    ends = {(places[tuple(one.get_position())], places[tuple(one.xy)]) for one in arrows}
    assert ends == {("spread", "mean"), ("spread", "x"), ("mean", "x")}
    grey = [text.get_text() for text in named if text.get_bbox_patch().get_facecolor()[:3] != (1, 1, 1)]
    assert grey == ["x"]
    with pytest.raises(ValueError, match="names: y: no site of this program; it has spread, mean, x"):
        plot.bayes_net(program, np.zeros(3), names={"y": "z"}, ax=axes())


@pytest.mark.parametrize("shared", [True, False])
def test_boxes_of_a_net_hold_the_quantities_of_their_plates_alone(shared):
    names = {"classes.probability": "pi", "gaussian.mean": "mu", "gaussian.cholesky": "Sigma", "gaussian.x": "x"}
    X, y = np.random.default_rng(0).normal(size=(9, 2)), np.arange(9) % 2
    classifier = bg.GaussianDiscriminantClassifier(shared=shared).fit(X, y)
    ax = plot.bayes_net(classifier.model_, X, y, names=names, ax=axes())
    places = {text.get_text(): text.get_position() for text in ax.texts if text.get_bbox_patch()}
    boxes = [patch.get_path().get_extents() for patch in ax.patches]
    inside = [{name for name, place in places.items() if box.contains(*place)} for box in boxes]
    assert inside == [{"mu"} if shared else {"mu", "Sigma"}, {"t", "x"}]


def test_a_net_is_written_parents_first():
    with pytest.raises(ValueError, match="an arrow leads from t to 'word': put it before 'word'"):
        plot.net({"word": ["t"], "t": []}, ax=axes())
