"""Evidences and predictives against integrals of the density, and against the chain rule."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad
from test_models import evidence, learn

from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownVariance,
)

TWO = DirichletCategorical(1.0, 2)
X = np.array([1.3, 2.9, 0.4, 3.3])


def test_coin_by_integration():
    coin, x = BetaBernoulli(1.7, 3.1), [1, 0, 0, 1, 0]
    whole = quad(lambda p: stats.beta(1.7, 3.1).pdf(p) * p**2 * (1 - p) ** 3, 0, 1)[0]
    assert evidence(coin, x) == pytest.approx(np.log(whole), rel=1e-9)


def test_die_by_integration():
    die, x = DirichletCategorical([1.7, 3.1, 2.2]), [0, 2, 2, 1]
    prior = stats.dirichlet([1.7, 3.1, 2.2])

    def density(q, p):
        rest = 1 - p - q
        return prior.pdf([p, q, rest]) * p * q * rest**2 if rest > 0 else 0.0

    whole = dblquad(density, 0, 1, 0, lambda p: 1 - p, epsabs=1e-12)[0]
    assert evidence(die, x) == pytest.approx(np.log(whole), rel=1e-8)


def test_toronto():
    """Twenty degrees yesterday: what is the mean of this season, and what will tomorrow be?"""
    prior, x = NormalKnownVariance(mean=18.0, sd=4.0, noise_sd=3.0), np.array([20.0, 25.0, 16.0])

    def density(mean):
        return stats.norm(18, 4).pdf(mean) * stats.norm(mean, 3).pdf(x).prod()

    def integral(f):
        return quad(lambda m: f(m) * density(m), -40, 80, points=[18, 20], epsabs=1e-15, epsrel=1e-11)[0]

    whole = integral(lambda m: 1.0)
    mean = integral(lambda m: m) / whole
    sd = np.sqrt(integral(lambda m: (m - mean) ** 2) / whole)
    posterior = learn(prior, x)
    assert evidence(prior, x) == pytest.approx(np.log(whole), rel=1e-9)
    assert (posterior.mean, posterior.sd) == pytest.approx((mean, sd), rel=1e-9)
    tomorrow = integral(lambda m: stats.norm(m, 3).pdf(24.0)) / whole
    assert np.exp(posterior.log_predictive([24.0]))[0] == pytest.approx(tomorrow, rel=1e-9)
    # The predictive is wider than the posterior, by the noise of one day: 3² + sd².
    assert np.exp(posterior.log_predictive([mean]))[0] == pytest.approx(stats.norm(0, np.hypot(3, sd)).pdf(0), rel=1e-9)


def test_normal_by_integration():
    """The trapezoid rule in (log variance, standardised mean), where the integrand dies away on all sides."""
    prior = NormalInverseGamma(mean=1.0, kappa=0.7, alpha=2.5, beta=1.8)
    variance = np.exp(np.linspace(-8, 12, 2001))[:, None]

    def integral(rows):
        u = np.linspace(-12, 12, 601)
        mean = np.mean(rows) + np.sqrt(variance) * u
        density = stats.invgamma(2.5, scale=1.8).pdf(variance) * stats.norm(1.0, np.sqrt(variance / 0.7)).pdf(mean)
        for row in rows:
            density = density * stats.norm(mean, np.sqrt(variance)).pdf(row)
        return (density * variance**1.5).sum() * 0.01 * (u[1] - u[0])

    whole = integral(X)
    assert evidence(prior, X) == pytest.approx(np.log(whole), rel=1e-9)
    new = np.exp(learn(prior, X).log_predictive([5.0]))[0]
    assert new == pytest.approx(integral(np.append(X, 5.0)) / whole, rel=1e-9)
    mean, width, dof = (float(np.squeeze(part)) for part in learn(prior, X).student(np.array([np.nan])))
    assert np.exp(stats.t(dof, mean, width).logpdf(5.0)) == pytest.approx(new, rel=1e-9)  # from which gaps are drawn


def tied_t(x, t, mean, kappa, alpha, beta):
    """Log density of Gaussian columns under one variance ~ InvGamma(alpha, beta): one big Student-t of all entries."""
    same = np.equal.outer(t, t)
    shape = np.eye(len(x)) + same / kappa
    shape = beta / alpha * np.kron(shape, np.eye(x.shape[1]))
    return stats.multivariate_t(np.tile(mean, len(x)), shape, df=2 * alpha).logpdf(x.ravel())


def test_variances_that_are_shared_make_one_student_t():
    """Entries that share a variance are jointly t: SciPy's density of all entries at once, per structure."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(2.0, 1.5, (7, 3)), np.array([0, 1, 1, 0, 0, 1, 0])
    mean, kappa, alpha, beta = np.array([1.0, 2.0, 3.0]), 0.7, 2.5, 1.8
    prior = NormalInverseGamma(mean, kappa, alpha, beta)
    classes = evidence(TWO, t)
    parts = [t == 0, t == 1]
    columns = [[j] for j in range(3)]
    blocks = {
        ("diagonal", False): [(rows, cols) for rows in parts for cols in columns],
        ("diagonal", True): [(slice(None), cols) for cols in columns],
        ("isotropic", False): [(rows, [0, 1, 2]) for rows in parts],
        ("isotropic", True): [(slice(None), [0, 1, 2])],
    }
    for (covariance, shared), pieces in blocks.items():
        model = GaussianDiscriminant(TWO, prior, covariance, shared)
        by_scipy = sum(tied_t(x[r][:, c], t[r], mean[c], kappa, alpha, beta) for r, c in pieces)
        assert evidence(model, x, t) == pytest.approx(classes + by_scipy, rel=1e-11), (covariance, shared)


def test_a_line_is_a_plane_of_one_column():
    """At D = 1 the inverse Wishart is an inverse gamma: nu = 2 alpha, scale = 2 beta."""
    line = NormalInverseGamma(mean=1.0, kappa=0.7, alpha=2.5, beta=1.8)
    plane = NormalInverseWishart([1.0], 0.7, 5.0, [[3.6]])
    assert evidence(plane, X[:, None]) == pytest.approx(evidence(line, X), rel=1e-13)
    one, two = learn(line, X), learn(plane, X[:, None])
    new = np.array([-3.0, 1.0, 50.0])
    np.testing.assert_allclose(two.log_predictive(new[:, None]), one.log_predictive(new), rtol=1e-13)
    assert two.mode()["covariance"].item() == pytest.approx(one.mode()["variance"], rel=1e-13)


def test_plane_by_the_chain_rule():
    """Evidence of a vector model: of column 1, times the one of column 2 given column 1, both one-dimensional.

    Under IW(nu, Psi): Σ_11 ~ IW(nu - 1, Psi_11); the regression of column 2 on 1 is conjugate, and SciPy's Student-t
    gives its evidence: x2 | x1 ~ t with a mean linear in x1.
    """
    rng = np.random.default_rng(1)
    x = rng.normal(size=(6, 2)) @ [[1.0, 0.5], [0.0, 0.8]] + [1.0, 2.0]
    nu, kappa, scale, mean = 5.0, 0.7, np.array([[2.0, 0.6], [0.6, 1.5]]), np.array([0.5, 1.5])
    # Column 1: one-dimensional, nu - 1 degrees of freedom.
    first = evidence(NormalInverseGamma(mean[0], kappa, (nu - 1) / 2, scale[0, 0] / 2), x[:, 0])
    # Column 2 given column 1: s² ~ IG(nu/2, Psi_22.1/2), slope | s² ~ N(Psi_21/Psi_11, s²/Psi_11),
    # intercept | slope, s² ~ N(m_2 - slope m_1, s²/kappa).
    slope, rest = scale[1, 0] / scale[0, 0], scale[1, 1] - scale[1, 0] ** 2 / scale[0, 0]
    z = x[:, 0] - mean[0]
    shape = np.eye(6) + np.ones((6, 6)) / kappa + np.outer(z, z) / scale[0, 0]
    second = stats.multivariate_t(mean[1] + slope * z, rest / nu * shape, df=nu).logpdf(x[:, 1])
    prior = NormalInverseWishart(mean, kappa, nu, scale)
    assert evidence(prior, x) == pytest.approx(first + second, rel=1e-12)


def test_shared_covariance_by_the_chain_rule():
    """The same with a mean per class under one covariance."""
    rng = np.random.default_rng(2)
    t = np.array([0, 1, 1, 0, 1, 1, 0])
    x = rng.normal(size=(7, 2)) @ [[1.0, 0.5], [0.0, 0.8]] + t[:, None]
    nu, kappa, scale, mean = 5.0, 0.7, np.array([[2.0, 0.6], [0.6, 1.5]]), np.array([0.5, 1.5])
    same = np.eye(7) + np.equal.outer(t, t) / kappa
    z = x[:, 0] - mean[0]
    slope, rest = scale[1, 0] / scale[0, 0], scale[1, 1] - scale[1, 0] ** 2 / scale[0, 0]
    first = stats.multivariate_t(np.full(7, mean[0]), scale[0, 0] / (nu - 1) * same, df=nu - 1).logpdf(x[:, 0])
    shape = rest / nu * (same + np.outer(z, z) / scale[0, 0])
    second = stats.multivariate_t(mean[1] + slope * z, shape, df=nu).logpdf(x[:, 1])
    model = GaussianDiscriminant(TWO, NormalInverseWishart(mean, kappa, nu, scale), shared=True)
    assert evidence(model, x, t) == pytest.approx(evidence(TWO, t) + first + second, rel=1e-12)
