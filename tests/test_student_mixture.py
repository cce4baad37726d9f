"""Student's t without labels: against SciPy, Gaussians and NUTS."""

import numpy as np
import pandas as pd
import pytest
from laws import near
from scipy import stats
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

import bayesgen as bg
from bayesgen.models import NormalInverseGamma, StudentT, UnknownClasses
from bayesgen.models.row_em import RowEM


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
    X, _, _ = clusters(2)
    with pytest.warns(UserWarning, match="in 1 of 4 starts a class shrank"):
        params = make(inference="ml", starts=4).fit(X).posterior_.params
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
        with pytest.raises(ValueError, match=r"Student's t there are no draws.*'laplace'.*arviz_stats\.loo"):
            method()
    assert not fitted.summary().intervals
    one = bg.LatentClassClassifier("discriminant", covariance="student", classes=1).fit(X)
    with pytest.raises(ValueError, match="'laplace'"):
        one.class_profiles()
    gone = np.where(np.arange(120).reshape(60, 2) == 6, np.nan, X)
    with pytest.raises(ValueError, match="rows without a label have gaps"):
        make().fit(gone)
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
