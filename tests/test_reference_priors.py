"""Reference priors: against the classical predictive densities, integrals over the prior, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln, log_softmax
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen import models

X, Y = load_iris(return_X_y=True)
GD, NB = bg.GaussianDiscriminantClassifier, bg.NaiveBayesClassifier
ROWS = np.r_[20:28, 50:62, 100:120]  # as many as tell the classes' degrees of freedom apart
STRUCTURES = [(c, s) for c in ("full", "diagonal", "isotropic") for s in (False, True)]


@pytest.mark.parametrize("shared", [False, True])
def test_the_predictive_densities_of_geisser(shared):
    x, y, new, D, K = X[ROWS], Y[ROWS], X[::17], 4, 3
    density = []
    pooled = sum((y == k).sum() * np.cov(x[y == k].T, ddof=0) for k in range(K))
    for k in range(K):
        own = x[y == k]
        n, scatter = len(own), len(own) * np.cov(own.T, ddof=0)
        dof, scatter = (len(x) - K - D + 1, pooled) if shared else (n - D, scatter)
        density.append(stats.multivariate_t(own.mean(0), scatter * (n + 1) / (n * dof), dof).logpdf(new))
    classifier = GD("full", shared, "reference", priors=[0.2, 0.3, 0.5]).fit(x, y)
    expected = log_softmax(np.array(density).T + np.log([0.2, 0.3, 0.5]), axis=1)
    np.testing.assert_allclose(classifier.predict_log_proba(new), expected, rtol=1e-8, atol=1e-8)


def test_the_formula_of_mass_leaves_a_gamma_out():
    """R's MASS, qda(method="predictive"): Γ(n/2)/Γ((n - D)/2) is missing in it, and differs by class."""
    x, y, new, D = X[ROWS][:, :3], Y[ROWS], X[:, :3], 3
    exact = GD(prior="reference", priors=[1 / 3] * 3).fit(x, y).predict_log_proba(new)
    mass, n = np.empty((150, 3)), np.bincount(y)
    for k in range(3):
        own = x[y == k]
        covariance, delta = np.cov(own.T), new - own.mean(0)
        far = (delta @ np.linalg.inv(covariance) * delta).sum(1) * n[k] / ((n[k] + 1) * (n[k] - 1))
        level = np.linalg.slogdet(covariance)[1] + D * np.log((n[k] ** 2 - 1) / n[k])
        mass[:, k] = -0.5 * level - n[k] / 2 * np.log1p(far)
    right = log_softmax(mass + gammaln(n / 2) - gammaln((n - D) / 2), axis=1)
    np.testing.assert_allclose(exact, right, rtol=1e-9, atol=1e-9)
    assert np.abs(np.exp(exact) - np.exp(log_softmax(mass, axis=1))).max() > 0.1


@pytest.mark.parametrize("tied", [(), ("class",), ("feature",), ("class", "feature")])
def test_the_posterior_predictive_of_gaussians_is_an_integral_over_the_prior(tied):
    """By a grid over the variances, of likelihoods integrated over the means by a grid too, under 1/variance."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(7, 2)) * [1, 2], np.array([0, 0, 0, 1, 1, 1, 1])
    covariance, shared = ("isotropic" if "feature" in tied else "diagonal"), "class" in tied
    classifier = GD(covariance, shared, "reference", priors=[0.5, 0.5]).fit(x, t)
    new, log_s = np.array([[0.5, -1.0]]), np.linspace(-6, 9, 300)
    sd = np.exp(log_s)

    def over_mean(values):
        """∫ ∏ N(value | m, s²) dm on a grid of m in units of s, for every s."""
        m = values.mean() + np.linspace(-9, 9, 181)[:, None] * sd
        likelihood = np.exp(sum(stats.norm.logpdf(v, m, sd) for v in values))
        return likelihood.sum(0) * sd * (18 / 180)

    def evidence(rows, codes):
        """Return the evidence of all rows: a product of integrals, one for each variance; dσ²/σ² is 2 d log s."""
        cells = {}
        for k, j in np.ndindex(2, 2):
            key = (0 if shared else k, 0 if "feature" in tied else j)
            cells.setdefault(key, np.ones_like(sd))
            cells[key] = cells[key] * over_mean(rows[codes == k, j])
        return np.prod([value.sum() for value in cells.values()])

    joint = [evidence(np.vstack([x, new]), np.append(t, k)) for k in (0, 1)]
    np.testing.assert_allclose(classifier.predict_proba(new)[0], joint / np.sum(joint), rtol=1e-4)


def test_mixed_columns_and_their_jeffreys_priors():
    rng = np.random.default_rng(1)
    table = {"x": rng.normal(size=40), "n": rng.poisson(2.0, 40), "b": rng.random(40) < 0.4, "c": list("pqrs" * 10)}
    frame, y = pd.DataFrame(table), np.arange(40) % 2
    classifier = NB({"n": "poisson"}, prior="reference").fit(frame, y)
    leaves = classifier.posterior_.model.leaves
    own = frame[y == 1]
    assert leaves["bernoulli"].a[1, 0] == own["b"].sum() + 0.5
    np.testing.assert_allclose(leaves["c"].alpha[1], [0.5 + (own["c"] == c).sum() for c in "pqrs"])
    np.testing.assert_allclose(leaves["poisson"].concentration[1], own["n"].sum() + 0.5)
    assert leaves["gaussian"].alpha[1, 0] == (len(own) - 1) / 2
    refuses(lambda: bg.NaiveBayesClassifier(prior="reference", inference="nuts").fit(frame[["x"]], y), "improper")
    assert not hasattr(classifier, "log_evidence_")


def test_coins_of_haldane_and_jeffreys():
    tosses = [1, 0, 1, 1, 1]
    haldane = bg.fit(models.HaldaneBernoulli(), tosses)
    jeffreys = bg.fit(models.BetaBernoulli(0.5, 0.5), tosses)
    grid = np.linspace(0, 1, 200001)[1:-1]
    for posterior, a, b in ((haldane, 0.0, 0.0), (jeffreys, 0.5, 0.5)):
        weight = grid ** (4 + a - 1) * (1 - grid) ** (1 + b - 1)
        expected = (weight * grid).sum() / weight.sum()
        assert np.exp(posterior.log_predictive([1])[0]) == pytest.approx(expected, rel=5e-3)
    assert np.exp(haldane.log_predictive([1])[0]) == pytest.approx(4 / 5)  # maximum likelihood is its mean
    die = bg.fit(models.HaldaneCategorical(["a", "b"]), [0, 1, 1])
    assert die.model.mean == pytest.approx([1 / 3, 2 / 3])


def test_counts_by_quadrature():
    """The predictive of Jeffreys' prior, against the integral of Poisson densities over the mean."""
    seen, new = [3, 5, 0], np.arange(6)
    posterior = bg.fit(models.ReferencePoisson(), seen)

    def integral(counts):
        return quad(lambda rate: rate**-0.5 * stats.poisson.pmf(counts, rate).prod(), 0, np.inf)[0]

    expected = np.log([integral([*seen, x]) / integral(seen) for x in new])
    np.testing.assert_allclose(posterior.log_predictive(new), expected, rtol=1e-6)


@pytest.mark.parametrize(("covariance", "shared"), STRUCTURES)
def test_questions_to_a_fit_by_the_reference_prior(covariance, shared, tmp_path):
    x, y = X[ROWS], Y[ROWS]
    classifier = GD(covariance, shared, "reference", random_state=0).fit(x, y)
    left = classifier.leave_one_out(x, y)
    rest = GD(covariance, shared, "reference").fit(np.delete(x, 7, 0), np.delete(y, 7))
    np.testing.assert_allclose(left.log_joint[7], rest.posterior_.log_predictive(x[[7]])[0], rtol=1e-9)
    first = np.arange(len(x)) % 4 > 0
    pieces = GD(covariance, shared, "reference").partial_fit(x[first], y[first], classes=[0, 1, 2])
    pieces.partial_fit(x[~first], y[~first])
    np.testing.assert_allclose(pieces.predict_proba(X), classifier.predict_proba(X), rtol=1e-7, atol=1e-12)
    classifier.save(tmp_path / "own.safetensors")
    np.testing.assert_array_equal(bg.load(tmp_path / "own.safetensors").predict_proba(X), classifier.predict_proba(X))
    if covariance == "full":  # each compiles a program
        assert classifier.sample(3)[0].shape == (3, 4)
    point = GD(covariance, shared, "reference", inference="map").fit(x, y).posterior_.params
    exact = classifier.posterior_.model.gaussian.mode()
    for site, value in point.items():
        if site.startswith("gaussian"):
            np.testing.assert_allclose(value, exact[site.split(".")[1]], rtol=1e-12)
    groups = set(classifier.to_arviz(x, y).children)
    assert "log_likelihood" in groups and not groups & {"prior", "log_prior", "prior_predictive"}
