"""Student's t as a leaf, with labels and without: limits, quadrature, SciPy, outliers, NUTS."""

import re

import numpy as np
import pandas as pd
import pytest
from laws import near
from numpyro.diagnostics import effective_sample_size
from refusals import refuses
from scipy import integrate, stats
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

import bayesgen as bg
from bayesgen.inference import NUTS, Exact
from bayesgen.inspection import impute
from bayesgen.models import NormalInverseGamma, NormalInverseWishart, StudentT, UnknownClasses
from bayesgen.models.row_em import RowEM

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
        refuses(call, re.escape(words), error)


def clusters(seed=0, n=150, outliers=0.1):
    """Three round clusters, a part of whose rows is moved by 8 standard deviations in each column."""
    rng = np.random.default_rng(seed)
    t = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) + np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])[t]
    out = rng.random(n) < outliers
    return X + out[:, None] * rng.normal(0.0, 8.0, (n, 2)), t, out


def make(covariance="student", **settings):
    return bg.LatentClassClassifier(
        "discriminant", covariance=covariance, **{"classes": 3, "random_state": 0} | settings
    )


def density(params, X):
    """Log density of each row under a mixture of Student's t, by SciPy."""
    parts = zip(params["gaussian.mean"], params["gaussian.covariance"], params["gaussian.dof"], strict=True)
    each = [stats.multivariate_t(mean, shape, dof).logpdf(X) for mean, shape, dof in parts]
    return logsumexp(np.log(params["classes.probability"])[:, None] + each, axis=0)


def test_clusters_are_found_in_spite_of_outliers():
    X, t, out = clusters()
    robust, gaussian = make(starts=8).fit(X), make("full", starts=8).fit(X)
    good = adjusted_rand_score(robust.predict(X)[~out], t[~out])
    assert good > 0.9 > adjusted_rand_score(gaussian.predict(X)[~out], t[~out]) + 0.2
    assert robust.starts_reached_ >= 2 and len(robust.free_) == 3
    params = robust.posterior_.params
    assert np.all(np.diff(params["classes.probability"]) <= 0)
    np.testing.assert_allclose(robust.score_samples(X), density(params, X), rtol=1e-10)
    total = float(UnknownClasses(robust.model_).log_likelihood(params, robust.statistics_))
    assert total == pytest.approx(density(params, X).sum(), rel=1e-12)


@pytest.mark.parametrize("way", [pytest.param("ml", marks=pytest.mark.compiles), "map"])
def test_the_density_never_falls(way):
    """Likelihood; and that times the prior, which SciPy has."""
    X, _, _ = clusters(1)
    leaf = StudentT(NormalInverseGamma(0.0, 0.01, 2.0, 2.0))
    df = pd.DataFrame(X, columns=["a", "b"]).assign(n=np.random.default_rng(0).poisson(3.0, len(X)))
    df.loc[[3, 7], ["a", "b"]] = [[np.nan, 1.0], [np.nan, np.nan]]
    features = {"a": leaf, "b": leaf, "n": bg.models.GammaPoisson(2.0, 1.0)}
    fitted = bg.LatentClassClassifier(features=features, classes=3, starts=2, random_state=0).fit(df)
    unknown, statistics = UnknownClasses(fitted.model_), fitted.statistics_

    def height(params):
        total = float(unknown.log_likelihood(params, statistics))
        if way == "ml":
            return total
        for name in "ab":
            mean, variance, dof = (params[f"{name}.{site}"] for site in ("mean", "variance", "dof"))
            total += stats.norm(0.0, np.sqrt(variance / 0.01)).logpdf(mean).sum()
            total += (
                stats.invgamma(2.0, scale=2.0).logpdf(variance) + stats.gamma(2.0, scale=10).logpdf(dof - 1)
            ).sum()
        return total + stats.gamma(2.0).logpdf(params["n.mean"]).sum()

    em = RowEM(unknown, statistics, way)
    for seed in range(3):
        labels = np.random.default_rng(seed).dirichlet(np.ones(3), len(df))
        params = em.begun(labels)
        state, heights = (params, unknown.labels(params, statistics)), [height(params)]
        for _ in range(60):
            state, _ = em.step(state)
            heights.append(height(state[0]))
        assert np.diff(heights).min() > -1e-9 and heights[-1] > heights[0] + 10


@pytest.mark.compiles
def test_likelihood_ends_at_a_maximum_that_no_small_step_raises():
    X, _, _ = clusters(4)
    with pytest.warns(UserWarning, match=r"in \d of 6 starts a class shrank"):
        params = make(inference="ml", starts=6).fit(X).posterior_.params
    top, rng = density(params, X).sum(), np.random.default_rng(0)
    for _ in range(40):
        moved = dict(params)
        moved["gaussian.mean"] = params["gaussian.mean"] + 1e-3 * rng.normal(size=(3, 2))
        moved["gaussian.dof"] = params["gaussian.dof"] * np.exp(1e-3 * rng.normal(size=3))
        moved["gaussian.covariance"] = params["gaussian.covariance"] * np.exp(1e-3 * rng.normal(size=3))[:, None, None]
        assert density(moved, X).sum() < top


@pytest.mark.compiles
def test_labels_from_none_to_all_and_a_shared_covariance():
    X, t, out = clusters()
    some = pd.Series(t).where(np.arange(150) < 24)
    for y in (some, some.where(some != 2)):
        fitted = make(classes=[0, 1, 2], starts=4).fit(X, y)
        assert (fitted.predict(X)[~out] == t[~out]).mean() > 0.93
    every, plain = make(classes=None).fit(X, t), bg.GaussianDiscriminantClassifier("student", inference="map").fit(X, t)
    np.testing.assert_allclose(every.predict_proba(X), plain.predict_proba(X), rtol=1e-10)
    shared = make(shared=True, starts=8).fit(X)
    assert shared.posterior_.params["gaussian.covariance"].shape == (2, 2)
    assert adjusted_rand_score(shared.predict(X)[~out], t[~out]) > 0.9


def test_what_a_student_does_not_do_is_told():
    X, _, _ = clusters(n=60)
    fitted = make(starts=2).fit(X)
    for method in (fitted.class_profiles, fitted.leave_one_out, lambda: fitted.membership(X)):
        refuses(method, r"Student's t there are no draws.*'laplace'.*arviz_stats\.loo")
    assert not fitted.summary().intervals
    one = bg.LatentClassClassifier("discriminant", covariance="student", classes=1).fit(X)
    refuses(one.class_profiles, "'laplace'")
    gone = np.where(np.arange(120).reshape(60, 2) == 6, np.nan, X)
    refuses(lambda: make().fit(gone), "rows without a label have gaps")
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(b=1.0)
    with pytest.raises(ValueError, match=r"\['b'\] hold one value.*leave them out"):
        bg.LatentClassClassifier(features={"a": "student", "b": "student"}, classes=2).fit(frame)
    found = bg.compare_classes(X, (1, 3), "discriminant", covariance="student", starts=2, folds=2)
    assert found.remarks[3] == "inference='laplace' estimates its evidence" and np.isfinite(found.table["bic"]).all()


@pytest.mark.slow
def test_nuts_and_laplace_agree_with_the_mode_of_two_heavy_tails():
    rng = np.random.default_rng(0)
    X = np.concatenate([-6 + rng.standard_t(3, 60), 6 + rng.standard_t(3, 90)])[:, None]
    leaf = {0: StudentT(NormalInverseGamma(0.0, 0.01, 2.0, 2.0), dof=3.0)}
    settings = {"features": leaf, "classes": 2, "random_state": 0, "starts": 4}
    sampler = bg.NUTS(num_warmup=400, num_samples=800, num_chains=2)
    sampled = bg.LatentClassClassifier(inference=sampler, **settings).fit(X)
    laplace = bg.LatentClassClassifier(inference="laplace", **settings).fit(X)
    mode = bg.LatentClassClassifier(**settings).fit(X).posterior_.params
    for site, values in laplace.posterior_.as_draws().flat.items():
        near(sampled.posterior_.samples[site], values.mean(0), values.var(0) / len(values), site)
        spread = values.std(0)
        assert (np.abs(mode[site] - values.mean(0)) < spread).all()
    assert np.isfinite(laplace.log_evidence_)
    assert laplace.class_profiles().xs("mean", axis=1, level=1).loc[("x0", "mean")].round().tolist() == [6.0, -6.0]


def two_clusters(seed, share, sd, gaps=0.0):
    """Return two clusters of a hundred rows, 8 sd apart in both columns, and a share of rows far out."""
    rng = np.random.default_rng(seed)
    far = round(200 * share)
    X = np.r_[rng.normal(size=(100, 2)), rng.normal(size=(100, 2)) + 8, rng.normal(size=(far, 2)) * sd]
    X[rng.random(X.shape) < gaps] = np.nan
    return X


@pytest.mark.parametrize(
    ("share", "sd"), [(0.05, 50), *(pytest.param(*far, marks=pytest.mark.slow) for far in ((0.02, 30), (0.1, 100)))]
)
def test_far_rows_leave_the_clusters_of_others(share, sd):
    """Unlabelled: the clusters are found, by columns with gaps too, and the count of starts tells those that failed."""
    for seed, settings, gaps in (
        (0, {"model": "discriminant", "covariance": "student"}, 0.0),
        (1, {"model": "discriminant", "covariance": "student", "inference": "ml"}, 0.0),
        (2, {"features": "student"}, 0.1),
    ):
        X = two_clusters(seed, share, sd, gaps)
        fitted = bg.LatentClassClassifier(**settings, classes=2, random_state=seed).fit(X)
        known = ~np.isnan(X[:200]).all(1)
        assert adjusted_rand_score(np.repeat([0, 1], 100)[known], fitted.predict(X)[:200][known]) > 0.9
        heights = fitted.statistics_.heights
        assert len(heights) == 20 and fitted.starts_reached_ == (heights > heights.max() - 1e-3).sum() < 20
