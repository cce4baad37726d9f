"""Mistakes of published software, each with numbers; see also the laws."""

import laws
import mpmath
import numpy as np
import pytest
from refusals import refuses
from scipy import stats
from scipy.special import gammaln, logsumexp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB

from bayesgen import NUTS, GaussianDiscriminantClassifier, NaiveBayesClassifier, fit
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    KnownCategorical,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
)

TWO = DirichletCategorical(1.0, 2)


def normalised(log_joint):
    return np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))


def three_gaussians(rng, n, dim=3):
    """Correlated, unevenly sized classes."""
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    mix = rng.normal(size=(3, dim, dim))
    return np.einsum("nij,nj->ni", mix[y], rng.normal(size=(n, dim))) + 2 * y[:, None], y


# -- averaging the right thing


@pytest.mark.compiles
def test_the_joint_is_averaged_and_then_normalised():
    """Four rows against fifty: x* itself tells about the parameters, so E p(t|x*, θ) is not p(t|x*, data)."""
    x = np.concatenate([np.random.default_rng(0).normal(0, 1, 4), np.random.default_rng(1).normal(1, 1, 50)])
    t = np.repeat([0, 1], [4, 50])
    model = NaiveBayes(TWO, {"x": NormalInverseGamma(0.0, 0.01, 1.0, 1.0)})
    statistics = model.statistics({"x": x}, t)
    new = {"x": np.linspace(-6, 10, 33)}
    exact = fit(model, statistics)
    right = normalised(exact.log_predictive(new))[:, 0]

    def wrong(params):
        density = model.log_likelihood_rows(params, model.check(new))
        return np.exp(density - logsumexp(density, axis=1, keepdims=True)).mean(0)[0]

    trap = wrong(exact.draws(1, (20_000,)))
    assert right[-1] > 0.999 and trap[-1] < 0.2  # at x = 10: not a row of the large class
    sampled = fit(model, statistics, NUTS(num_samples=2000, num_warmup=500, num_chains=2), seed=0)
    nuts = normalised(sampled.log_predictive(new))[:, 0]
    apart = np.abs(right - trap) > 0.1  # far from both classes few draws carry the average: errors of up to 0.2
    assert apart.sum() > 10
    assert (np.abs(nuts - right) < np.abs(nuts - trap))[apart].all()
    near = np.minimum(np.abs(new["x"] - x[:4].mean()) / x[:4].std(), np.abs(new["x"] - x[4:].mean()) / x[4:].std()) < 3
    assert near.sum() > 10
    assert np.abs(nuts - right)[near].mean() < 0.02
    # |z| < 5 by the delta method, where the tails of the density still have a standard error.
    flat = {site: v.reshape(-1, *v.shape[2:]) for site, v in sampled.samples.items()}
    ratio = np.exp(model.log_likelihood_rows(flat, model.check(new)) - exact.log_predictive(new).T)
    influence = right * (1 - right) * (ratio[:, 0] - ratio[:, 1])
    scores = laws.z_scores(influence.reshape(2, 2000, -1)[:, :, near], 0.0)
    assert (np.abs(scores) < 5).all()


def test_the_spread_over_draws_is_another_question():
    """The average of p(t|x*, θ) is what the wrong rule gives; the posterior's answer is not."""
    rng = np.random.default_rng(5)
    x, t = np.concatenate([rng.normal(0, 1, 4), rng.normal(3, 1, 50)])[:, None], np.repeat([0, 1], [4, 50])
    shared = GaussianDiscriminant(TWO, NormalInverseGamma([0.0], 0.01, 1.0, 1.0), "isotropic", shared=True)
    apart = GaussianDiscriminant(TWO, NormalInverseGamma([0.0], 0.01, 1.0, 1.0), "isotropic")
    new = [[12.0]]
    # With a variance of its own the small class may be wide; with a shared one it may not.
    assert normalised(fit(apart, (x, t)).log_predictive(new))[0, 0] > 0.9
    assert normalised(fit(shared, (x, t)).log_predictive(new))[0, 0] < 0.1


def test_degrees_of_freedom_differ_by_class():
    """Flat prior |Σ|^-(p+1)/2: x* ~ t_{n-p}(mean, S (n+1)/(n (n-p))), gamma functions included; p = 3, n = (8, 60)."""
    rng = np.random.default_rng(1)
    p, sizes = 3, (8, 60)
    rows = [rng.normal(0.4 * k, 1, (n, p)) for k, n in enumerate(sizes)]
    new = rng.normal(size=(200, p))
    means = [r.mean(0) for r in rows]
    scatters = [(r - m).T @ (r - m) for r, m in zip(rows, means, strict=True)]
    posterior = GaussianDiscriminant(
        KnownCategorical([0.5, 0.5]),
        NormalInverseWishart(means, np.array(sizes, float), np.array(sizes) - 1.0, scatters, per_class=True),
    )
    by_scipy, without_gammas = [], []
    for n, mean, scatter in zip(sizes, means, scatters, strict=True):
        shape = scatter * (n + 1) / (n * (n - p))
        by_scipy.append(stats.multivariate_t(mean, shape, df=n - p).logpdf(new))
        without_gammas.append(by_scipy[-1] - gammaln(n / 2) + gammaln((n - p) / 2))
    got = normalised(posterior.log_predictive(new))
    np.testing.assert_allclose(got, normalised(np.transpose(by_scipy)), rtol=1e-10)
    assert np.abs(got - normalised(np.transpose(without_gammas))).max() > 0.3


def test_shared_covariance_counts_the_rows_of_all_classes():
    rng = np.random.default_rng(2)
    x, t = rng.normal(size=(30, 2)), np.repeat([0, 1], [5, 25])
    prior = NormalInverseWishart([0.0, 0.0], 0.5, 4.0, np.eye(2))
    shared = fit(GaussianDiscriminant(TWO, prior, shared=True), (x, t)).model.gaussian
    apart = fit(GaussianDiscriminant(TWO, prior), (x, t)).model.gaussian
    assert np.unique(shared.nu) == 4 + 30 and np.unique(shared.dof) == 4 + 30 - 2 + 1
    np.testing.assert_array_equal(apart.nu, [4 + 5, 4 + 25])
    np.testing.assert_array_equal(np.broadcast_to(shared.kappa, 2), [0.5 + 5, 0.5 + 25])


def test_no_direction_may_be_dropped():
    """Far off in a direction in which the classes agree a Student-t is less sure; a rule that projects is not."""
    rng = np.random.default_rng(3)
    t = np.repeat([0, 1], 15)
    x = rng.normal(size=(30, 2)) + np.outer(t, [4.0, 0.0])
    model = GaussianDiscriminant(
        KnownCategorical([0.5, 0.5]), NormalInverseWishart([0, 0], 0.01, 2.5, np.eye(2)), shared=True
    )
    posterior = fit(model, (x, t))
    near, far = normalised(posterior.log_predictive([[0.5, 0.0], [0.5, 30.0]]))
    assert near[0] > 0.99 and 0.3 < far[0] < 0.95
    plug_in = normalised(fit(model, (x, t), "ml").log_predictive([[0.5, 0.0], [0.5, 30.0]]))
    assert abs(plug_in[0, 0] - plug_in[1, 0]) < 0.01 or plug_in[1, 0] > 0.99 or plug_in[1, 0] < 0.01


def test_one_trial_is_the_plug_in_of_the_mean():
    coin = laws.CASES[0].model
    posterior = coin.update(coin.statistics([1, 0, 1]))
    assert np.exp(posterior.log_predictive([1]))[0] == pytest.approx(float(posterior.mean), rel=1e-14)
    draws = posterior.sample_parameters(np.random.default_rng(0), (100_000,))["probability"]
    assert abs(draws.mean() - posterior.mean) < 5 * draws.std() / np.sqrt(len(draws))


def test_the_class_prior_is_in_the_prediction():
    X, y = np.tile([[0.0], [1.0]], (20, 1)), np.repeat(["few", "many"], [10, 30])
    probability = NaiveBayesClassifier({0: BetaBernoulli()}).fit(X, y).predict_proba([[np.nan]])
    np.testing.assert_allclose(probability, [[11 / 42, 31 / 42]], rtol=1e-14)


def test_priors_for_deciding_do_not_change_the_fit():
    X, y = three_gaussians(np.random.default_rng(4), 60)
    for shared in (False, True):
        own = GaussianDiscriminantClassifier(shared=shared).fit(X, y)
        given = GaussianDiscriminantClassifier(shared=shared, priors=[0.2, 0.3, 0.5]).fit(X, y)
        assert own.posterior_.model.gaussian == given.posterior_.model.gaussian
        difference = given.posterior_.log_predictive(X) - own.posterior_.log_predictive(X)
        by_hand = np.log([0.2, 0.3, 0.5]) - np.log(own.posterior_.model.classes.mean)
        np.testing.assert_allclose(difference, np.tile(by_hand, (60, 1)), atol=1e-12)


# -- parameters


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_inverse_wishart_draws(dim):
    """Mean scale/(nu - D - 1), variances of SciPy's, a Cholesky factor that is one; and SciPy's distribution."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(dim, dim))
    scale, nu = mix @ mix.T + np.eye(dim), dim + 6.0
    model = NormalInverseWishart(np.arange(dim), 2.0, nu, scale)
    count = 40_000
    draws = model.sample_parameters(np.random.default_rng(1), (count,))
    sigma, root = draws["covariance"], draws["cholesky"]
    np.testing.assert_allclose(root @ root.mT, sigma, rtol=1e-12)
    assert (np.triu(root, 1) == 0).all() and (np.diagonal(root, axis1=1, axis2=2) > 0).all()

    def z(values, exact):
        return (values.mean(0) - exact) / (values.std(0) / np.sqrt(count))

    assert (np.abs(z(sigma, scale / (nu - dim - 1))) < 5).all()
    assert (np.abs(z((sigma - scale / (nu - dim - 1)) ** 2, stats.invwishart(nu, scale).var())) < 5).all()
    precision = np.linalg.inv(sigma)
    assert (np.abs(z(precision, nu * np.linalg.inv(scale))) < 5).all()  # a Wishart
    theirs = np.asarray(stats.invwishart(nu, scale).rvs(4000, random_state=2)).reshape(-1, dim, dim)
    for f in (np.linalg.det, lambda s: s[:, 0, -1]):
        assert stats.ks_2samp(f(sigma), f(theirs)).pvalue > 1e-4
    # The mean given Σ: N(m, Σ/kappa), so its standardised square is chi-squared whatever Σ is.
    white = np.linalg.solve(root, (draws["mean"] - np.arange(dim))[..., None])[..., 0] * np.sqrt(2.0)
    assert stats.kstest((white**2).sum(1), stats.chi2(dim).cdf).pvalue > 1e-4


def test_modes_of_the_inverse_wishart():
    """The joint mode has nu + D + 2 below it; the mode of Σ alone, nu + D + 1, is another."""
    prior = NormalInverseWishart([0.0, 0.0], 1.0, 5.0, np.eye(2))
    np.testing.assert_allclose(prior.mode()["covariance"], np.eye(2) / (5 + 2 + 2))
    line = NormalInverseGamma(0.0, 1.0, 3.0, 2.0)
    assert line.mode()["variance"] == pytest.approx(2 / (3 + 1.5))


def test_laplace_smoothing_is_a_mean_not_a_mode():
    """Add-one smoothing is the mean under Dirichlet(1), which is the mode under Dirichlet(2)."""
    x = [0, 0, 2, 2, 2]
    smooth = (np.array([2, 0, 3]) + 1) / 8
    np.testing.assert_allclose(fit(DirichletCategorical(1.0, 3), x).model.mean, smooth)
    np.testing.assert_allclose(fit(DirichletCategorical(2.0, 3), x, "map").params["probability"], smooth)
    assert not np.allclose(fit(DirichletCategorical(1.0, 3), x, "map").params["probability"], smooth)


# -- agreement with scikit-learn, where it computes the same thing


def test_gaussian_naive_bayes_is_scikit_learns():
    X, y = three_gaussians(np.random.default_rng(5), 80)
    theirs = GaussianNB(var_smoothing=0).fit(X, y)
    for ours in (
        NaiveBayesClassifier(inference="ml").fit(X, y),
        GaussianDiscriminantClassifier("diagonal", inference="ml").fit(X, y),
    ):
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_quadratic_discriminant_is_scikit_learns():
    """Both divide by n."""
    X, y = three_gaussians(np.random.default_rng(6), 80)
    theirs = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    ours = GaussianDiscriminantClassifier(inference="ml").fit(X, y)
    np.testing.assert_allclose(ours.posterior_.params["gaussian.covariance"], theirs.covariance_, atol=1e-10)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)


def test_linear_discriminant_is_scikit_learns():
    X, y = three_gaussians(np.random.default_rng(7), 80)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, y)
    ours = GaussianDiscriminantClassifier(shared=True, inference="ml").fit(X, y)
    np.testing.assert_allclose(ours.posterior_.params["gaussian.covariance"], theirs.covariance_, atol=1e-10)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("kind", ["bernoulli", "categorical"])
def test_smoothed_naive_bayes_is_scikit_learns(kind):
    """Their alpha = 1 is our exact predictive; their class probabilities are ML, so ours are given."""
    rng = np.random.default_rng(8)
    y = rng.integers(0, 3, 70)
    X = rng.integers(0, 2 if kind == "bernoulli" else 4, (70, 5))
    theirs = (BernoulliNB(alpha=1) if kind == "bernoulli" else CategoricalNB(alpha=1, min_categories=4)).fit(X, y)
    ours = NaiveBayesClassifier(kind, priors=np.bincount(y) / 70).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)


# -- numbers


@pytest.mark.parametrize("inference", ["ml", "map", "exact"])
@pytest.mark.parametrize("features", [400, 2000])
def test_products_do_not_underflow(features, inference):
    rng = np.random.default_rng(9)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, features)) + 0.05 * y[:, None]
    classifier = NaiveBayesClassifier(inference=inference).fit(X, y)
    log_probability = classifier.predict_log_proba(rng.normal(size=(10, features)) * 3)
    assert np.isfinite(log_probability).all()
    np.testing.assert_allclose(logsumexp(log_probability, axis=1), 0, atol=1e-12)
    assert (classifier.score_samples(X) < -300).all()


@pytest.mark.parametrize("inference", ["ml", "map", "exact"])
def test_far_away_there_is_no_floor(inference):
    """Classes about 0 and 3 of one shape: at 38, 41 and a million standard deviations the right one stays ahead."""
    base = np.random.default_rng(10).normal(size=20)
    X, y = np.concatenate([base - base.mean(), base - base.mean() + 3])[:, None], np.repeat([0, 3], 20)
    classifier = GaussianDiscriminantClassifier("isotropic", shared=True, inference=inference).fit(X, y)
    new = np.array([[3.5], [38.0], [41.0], [1e6]])
    probability = classifier.predict_proba(new)
    assert np.isfinite(classifier.predict_log_proba(new)).all()
    assert (probability[:, 1] > 0.5).all()
    assert (classifier.predict_proba(3 - new)[:, 0] > 0.5).all()
    if inference != "exact":  # a plug-in rule only gets surer
        assert (np.diff(probability[:, 1]) >= 0).all()
    apart = NaiveBayesClassifier(inference=inference).fit(X, y).predict_proba(new)
    assert np.isfinite(apart).all() and (apart[:, 1] > 0.5).all()


def test_offset_does_not_cancel():
    """Spread 1 at an offset of 1e8: raw second moments leave nothing of the scatter."""
    rng = np.random.default_rng(11)
    x = rng.normal(0, 1, 90)
    prior = NormalInverseGamma(1e8, 1.0, 1.0, 1.0)
    far, near = fit(prior, x + 1e8).model, fit(NormalInverseGamma(0.0, 1.0, 1.0, 1.0), x).model
    assert near.beta > 30
    assert far.beta == pytest.approx(float(near.beta), rel=1e-7)  # x + 1e8 itself is rounded to 1.5e-8


@pytest.mark.parametrize("inference", ["ml", "map", "exact"])
@pytest.mark.parametrize(
    ("covariance", "shared"), [("full", False), ("full", True), ("diagonal", False), ("isotropic", True)]
)
def test_units_do_not_matter(inference, covariance, shared):
    """Shifting or rescaling a column changes no probability under weak priors (isotropic: all by one factor)."""
    X, y = three_gaussians(np.random.default_rng(12), 50)
    factor = 1e4 if covariance == "isotropic" else np.array([1e-6, 1.0, 1e6])
    moved = factor * (X + np.array([0.0, 50.0, -100.0]))
    make = lambda Z: GaussianDiscriminantClassifier(covariance, shared, inference=inference).fit(Z, y).predict_proba(Z)  # noqa: E731
    np.testing.assert_allclose(make(moved), make(X), atol=1e-8)


def test_large_degrees_of_freedom():
    """Γ((ν + D)/2)/Γ(ν/2) at ν = 3,000 and 1e5: single precision is off by 6e-4 and 0.02."""
    mp = mpmath.mp
    for nu in (3000.0, 1e5, 1e9):
        model = NormalInverseWishart(np.zeros(3), 10.0, nu, nu * np.eye(3))
        dof = nu - 2
        x = np.array([0.3, -1.0, 2.0])
        squares = float((x**2).sum()) / (nu * 11 / (10 * dof))
        with mp.workdps(40):
            exact = (
                mp.loggamma((dof + 3) / mp.mpf(2)) - mp.loggamma(dof / mp.mpf(2)) - mp.mpf(3) / 2 * mp.log(mp.pi * dof)
                - mp.mpf(3) / 2 * mp.log(mp.mpf(nu) * 11 / (10 * dof))
                - (dof + 3) / mp.mpf(2) * mp.log1p(squares / mp.mpf(dof))
            )  # fmt: skip
        assert model.log_predictive([x])[0] == pytest.approx(float(exact), rel=1e-6 if nu > 1e8 else 1e-9)


@pytest.mark.parametrize("inference", ["ml", "map", "exact"])
def test_one_wide_column_does_not_blind_the_others(inference):
    """A global variance floor makes the wide column rule: accuracy 1.0 falls to chance."""
    rng = np.random.default_rng(13)
    y = np.repeat([0, 1], 100)
    X = np.column_stack([1e-3 * (rng.normal(size=200) + 10 * y), rng.normal(0, 1e6, 200)])
    assert NaiveBayesClassifier(inference=inference).fit(X, y).score(X, y) == 1
    assert GaussianNB(var_smoothing=1e-9).fit(X, y).score(X, y) < 0.7  # their default


# -- data


def test_a_class_without_rows_has_its_prior_predictive():
    labels = ["a", "b", "absent"]
    prior = NormalInverseGamma([0.0, 1.0], 0.5, 2.0, 3.0)
    model = NaiveBayes(DirichletCategorical(1.0, labels), {"x": prior, "bit": BetaBernoulli()})
    x = {"x": np.random.default_rng(14).normal(size=(10, 2)), "bit": np.ones(10)}
    posterior = fit(model, (x, np.repeat([0, 1], 5)))
    new = {"x": np.array([[0.2, 3.0]]), "bit": np.array([0])}
    expected = np.log(1 / 13) + prior.log_predictive(new["x"]) + np.log(1 / 2)
    np.testing.assert_allclose(posterior.log_predictive(new)[:, 2], expected, rtol=1e-13)
    refuses(lambda: fit(model, (x, np.repeat([0, 1], 5)), "ml"), "'absent'")
    known = NaiveBayes(KnownCategorical([0.5, 0.5, 0.0], labels), model.features)
    joint = fit(known, (x, np.repeat([0, 1], 5))).log_predictive(new)
    assert joint[0, 2] == -np.inf and np.isfinite(joint[0, :2]).all()


def test_fewer_rows_than_columns():
    """n <= p is no obstacle to a proper prior."""
    rng = np.random.default_rng(15)
    X, y = rng.normal(size=(12, 20)), np.repeat(["a", "b"], [1, 11])
    for shared in (False, True):
        for inference in ("exact", "map"):
            probability = GaussianDiscriminantClassifier(shared=shared, inference=inference).fit(X, y).predict_proba(X)
            assert np.isfinite(probability).all()


def test_the_number_of_categories_matters():
    """An unseen category is not a missing value: Dirichlet(1) over V declared ones gives it 1/(n + V)."""
    for count in (2, 3, 10):
        die = DirichletCategorical(1.0, count)
        np.testing.assert_allclose(np.exp(fit(die, [0, 0, 1]).log_predictive([1, np.nan])), [2 / (3 + count), 1])


@pytest.mark.parametrize("inference", ["ml", "map", "exact"])
def test_one_class_is_certain(inference):
    X = np.random.default_rng(17).normal(size=(10, 2))
    for classifier in (NaiveBayesClassifier(inference=inference), GaussianDiscriminantClassifier(inference=inference)):
        np.testing.assert_array_equal(classifier.fit(X, ["only"] * 10).predict_proba(X), 1)
        assert (classifier.predict(X) == "only").all()


def test_gaps_do_not_make_an_indefinite_covariance():
    """Covariances of pairs of columns from the rows that have both need not be a covariance matrix."""
    nan = np.nan
    first = np.array([[0, 0, nan], [1, 1.1, nan], [2, 1.9, nan], [3, 3.1, nan]])
    second = np.array([[nan, 0, 0], [nan, 1, 1.1], [nan, 2, 1.9], [nan, 3, 3.1]])
    third = np.array([[0, nan, 3], [1, nan, 2.1], [2, nan, 0.9], [3, nan, 0]])
    x = np.concatenate([first, second, third])
    pairs = np.ma.corrcoef(np.ma.masked_invalid(x), rowvar=False)
    assert np.linalg.eigvalsh(pairs.filled())[0] < -0.5
    model = NormalInverseWishart(np.full(3, 1.5), 0.1, 6.0, np.eye(3))
    assert np.linalg.eigvalsh(fit(model, x, "map").params["covariance"])[0] > 0.01
