"""Student's t as a leaf: limits, quadrature, a mode by SciPy, missing entries by integration, and outliers."""

import re

import numpy as np
import pytest
from numpyro.diagnostics import effective_sample_size
from scipy import integrate, stats
from scipy.optimize import approx_fprime

import bayesgen as bg
from bayesgen.inference import NUTS, Exact
from bayesgen.inspection import impute
from bayesgen.models import NormalInverseGamma, NormalInverseWishart, StudentT

NIG = NormalInverseGamma(mean=0.5, kappa=0.5, alpha=2.0, beta=3.0)
NIW = NormalInverseWishart([0.5, 1.0, 0.0], 0.5, 6.0, np.eye(3) * 2 + 0.5)


def vectors(count=60, gaps=0.15):
    rng = np.random.default_rng(3)
    x = rng.standard_t(3, (count, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -0.4], [0.0, 0.0, 1.0]])
    x[rng.random(x.shape) < gaps] = np.nan
    return x


# -- many degrees of freedom are the Gaussian leaf -------------------------------------------------------------------


@pytest.mark.parametrize(("gaussian", "x"), [(NIG, vectors()[:, 0]), (NIW, vectors()), (NIW, vectors(gaps=0.0))])
def test_with_many_degrees_of_freedom_it_is_the_gaussian(gaussian, x):
    x = np.clip(x, -6, 6)
    group, weight = np.arange(60) % 2, np.arange(60) % 3 + 0.5
    leaf = StudentT(gaussian, dof=1e9)
    ours, theirs = (own.statistics(x, group, 2, weight) for own in (leaf, gaussian))
    for way in ("ml", "map"):
        found, expected = getattr(leaf, way)(ours), getattr(gaussian, way)(theirs)
        for site, value in expected.items():
            np.testing.assert_allclose(found[site], value, rtol=1e-6, atol=1e-6)
    expected = {site: np.asarray(value) for site, value in expected.items()}
    one = {site: value[None] for site, value in expected.items()}
    assert leaf.log_likelihood(expected, ours) == pytest.approx(gaussian.log_likelihood(expected, theirs), rel=1e-6)
    np.testing.assert_allclose(leaf.log_likelihood_rows(one, x), gaussian.log_likelihood_rows(one, x), atol=1e-6)
    assert leaf.log_likelihood(expected, ours) == pytest.approx(
        weight @ leaf.log_likelihood_rows(one, x)[0, group, np.arange(60)], rel=1e-12
    )


# -- NUTS against quadrature in all three parameters -----------------------------------------------------------------


def test_nuts_meets_quadrature():
    x = np.array([0.1, 0.9, 1.4, -0.3, 0.7, 0.4, 1.1, 0.2, 9.0, 0.6, -0.1, 0.8])
    leaf = StudentT(NIG, dof_shape=2.0, dof_rate=0.3)
    mean = np.linspace(-1.5, 3.0, 91)[:, None, None]
    log_variance = np.linspace(-4.0, 4.0, 81)[:, None]
    log_above = np.linspace(-9.0, 4.5, 91)
    variance, dof = np.exp(log_variance), 1 + np.exp(log_above)
    density = stats.invgamma(2.0, scale=3.0).logpdf(variance) + stats.norm(0.5, np.sqrt(variance / 0.5)).logpdf(mean)
    density = density + stats.gamma(2.0, scale=1 / 0.3).logpdf(dof - 1) + log_variance + log_above
    density = density + sum(stats.t(dof, mean, np.sqrt(variance)).logpdf(value) for value in x)
    p = np.exp(density - density.max())
    p /= p.sum()
    samples = bg.fit(leaf, x, NUTS(num_samples=600, num_warmup=300, num_chains=2), seed=0).samples
    pairs = [
        (samples["mean"], mean),
        (samples["mean"] ** 2, mean**2),
        (np.log(samples["variance"]), log_variance),
        (np.log(samples["variance"]) ** 2, log_variance**2),
        (np.log(samples["dof"] - 1), log_above),
        (np.log(samples["dof"] - 1) ** 2, log_above**2),
    ]
    for draws, value in pairs:
        error = draws.std() / np.sqrt(effective_sample_size(draws))
        assert abs(draws.mean() - (p * value).sum()) < 5 * error


# -- the mode, by densities and gradients of SciPy -------------------------------------------------------------------


@pytest.mark.parametrize("way", ["ml", "map"])
def test_ecme_ends_where_the_slope_of_scipys_density_is_0(way):
    x, weight = vectors(), np.arange(60) % 3 + 0.5
    leaf = StudentT(NIW, dof_shape=3.0, dof_rate=0.5)
    found = getattr(leaf, way)(leaf.statistics(x, weight=weight))
    rows, columns = np.tril_indices(3)

    def density(point):
        mean, dof, covariance = point[:3], point[3], np.zeros((3, 3))
        covariance[rows, columns] = covariance[columns, rows] = point[4:]
        total = 0.0
        for row, w in zip(x, weight, strict=True):
            o = np.flatnonzero(~np.isnan(row))
            if len(o):
                total += w * stats.multivariate_t(mean[o], covariance[np.ix_(o, o)], dof).logpdf(row[o])
        if way == "ml":
            return total
        prior = stats.invwishart(6.0, NIW.scale).logpdf(covariance) + stats.gamma(3.0, scale=2.0).logpdf(dof - 1)
        return total + prior + stats.multivariate_normal(NIW.mean, covariance / 0.5).logpdf(mean)

    best = np.concatenate([found["mean"], [found["dof"]], found["covariance"][rows, columns]])
    np.testing.assert_allclose(approx_fprime(best, density, 1e-6), 0, atol=2e-3)
    rng, top = np.random.default_rng(0), density(best)
    assert all(density(best + size * rng.standard_normal(10)) < top for size in (0.3, 0.1, 0.01) for _ in range(5))


# -- missing entries -------------------------------------------------------------------------------------------------


def test_what_a_row_lacks_is_the_conditional_of_scipys_density():
    leaf = StudentT(NIW, dof=3.5)
    covariance = np.array([[2.0, 0.9, 0.2], [0.9, 1.5, -0.5], [0.2, -0.5, 1.0]])
    params = {"mean": np.array([[1.0, 0.0, -1.0]]), "covariance": covariance[None]}
    params["cholesky"] = np.linalg.cholesky(params["covariance"])
    x = np.array([[6.0, np.nan, -3.0]])
    location, scale, dof = (np.broadcast_to(part, (1, 1, 3))[0, 0, 1] for part in leaf.student(x, params))
    t = stats.multivariate_t(params["mean"][0], covariance, 3.5)
    whole = integrate.quad(lambda v: t.pdf([6.0, v, -3.0]), -np.inf, np.inf)[0]
    for value in (-2.0, 0.5, 3.0, 8.0):
        below = integrate.quad(lambda v: t.pdf([6.0, v, -3.0]), -np.inf, value)[0] / whole
        assert stats.t(dof, location, scale).cdf(value) == pytest.approx(below, abs=1e-7)
    density = leaf.log_likelihood_rows({site: v[None] for site, v in params.items()}, x)
    assert density[0, 0, 0] == pytest.approx(np.log(whole), abs=1e-7)
    drawn = leaf.fill(np.repeat(x, 4000, 0), np.zeros(4000, int), np.random.default_rng(0), params)[:, 1]
    assert stats.kstest(drawn, stats.t(dof, location, scale).cdf).pvalue > 1e-6


# -- in the estimators -----------------------------------------------------------------------------------------------


def contaminated(rng, count, share=0.05):
    """Two classes that are Gaussian, and rows whose first column is ten times as large."""
    y = np.arange(count) % 2
    x = rng.normal(size=(count, 2)) @ [[1.0, 0.6], [0.0, 0.8]] + np.where(y[:, None], [3.5, 1.0], [2.0, 2.0])
    x[rng.random(count) < share, 0] *= 10
    return x, y


def loss(classifier, x, y):
    return -classifier.predict_log_proba(x)[np.arange(len(y)), y].mean()


@pytest.mark.parametrize(
    ("gaussian", "student", "expected"),
    [
        (bg.NaiveBayesClassifier(), bg.NaiveBayesClassifier("student", inference="map"), [1.00, 0.38]),
        (
            bg.GaussianDiscriminantClassifier(shared=True),
            bg.GaussianDiscriminantClassifier("student", shared=True, inference="map"),
            [0.55, 0.31],
        ),
    ],
    ids=["naive Bayes", "shared covariance"],
)
def test_outliers_do_less_harm_as_the_page_says(gaussian, student, expected):
    for share in (0.05, 0.0):
        rng = np.random.default_rng(0)
        train, test = contaminated(rng, 300, share), contaminated(rng, 4000, share)
        found = [loss(classifier.fit(*train), *test) for classifier in (gaussian, student)]
        if share:
            np.testing.assert_allclose(found, expected, atol=0.006)
        else:
            assert found[1] == pytest.approx(found[0], abs=0.005)


def test_a_fit_of_both_kinds_of_leaf(tmp_path):
    x, y = contaminated(np.random.default_rng(1), 80)
    x[5, 0] = x[7, 1] = np.nan
    by_name = bg.NaiveBayesClassifier({"x0": "student"}, inference="map").fit(x, y)
    prior = by_name.model_.leaves["student"]
    assert isinstance(prior, StudentT) and 1 < prior.gaussian.mean < 4  # a median: outliers do not move it
    by_leaf = bg.NaiveBayesClassifier({"x0": StudentT.from_guess(2.5, 1.0, rows=4.0)}, inference="map").fit(x, y)
    for classifier in (by_name, by_leaf):
        classifier.save(tmp_path / "fit.safetensors")
        again = bg.load(tmp_path / "fit.safetensors")
        np.testing.assert_array_equal(again.predict_proba(x), classifier.predict_proba(x))
        assert "degrees of freedom" in str(classifier.summary())
        parts = classifier.explain(x[:9]).sum("term").values
        odds = np.diff(classifier.predict_log_proba(x[:9]))[:, 0]
        np.testing.assert_allclose(parts[:, 1] - parts[:, 0], odds, atol=1e-10)
    assert dict(by_leaf.to_arviz().posterior["x0.dof"].sizes) == {"chain": 1, "draw": 1, "class": 2}
    filled = impute(by_leaf, x)
    assert not np.isnan(np.asarray(filled, float)).any()


def test_what_has_no_meaning_is_refused_by_name():
    x, y = contaminated(np.random.default_rng(1), 40)
    shared = bg.GaussianDiscriminantClassifier("student", shared=True, inference="map").fit(x, y)
    assert not hasattr(shared, "coef_")
    refused = [
        (lambda: StudentT(3.0), TypeError, "gaussian must be a NormalInverseGamma"),
        (lambda: StudentT(NIG, dof=-1.0), ValueError, "dof must be finite and > 0, got -1"),
        (lambda: StudentT(NIG, dof="many"), TypeError, "dof must be a number > 0, or None to learn it, got 'many'"),
        (lambda: StudentT(NIG, dof_shape=[1.0, 2.0]), ValueError, "dof_shape must be a number"),
        (lambda: bg.inspection.boundary.discriminant(shared.posterior_), TypeError, "neither linear nor quadratic"),
        (lambda: shared.explain(x), ValueError, "a sum over columns"),
        (lambda: bg.GaussianDiscriminantClassifier("student", inference=Exact()).fit(x, y), TypeError, "no exact post"),
        (
            lambda: bg.GaussianDiscriminantClassifier("student", prior=StudentT(NIG), inference="map").fit(x, y),
            TypeError,
            "takes a StudentT of a NormalInverseWishart",
        ),
        (
            lambda: bg.NaiveBayesClassifier({"x0": "student"}, inference="ml").fit(np.where(x > 3, x, 3.0), y),
            ValueError,
            "class 0, column 'x0': maximum likelihood of a Student-t does not exist: too many rows share one value",
        ),
    ]
    for call, error, words in refused:
        with pytest.raises(error, match=re.escape(words)):
            call()
