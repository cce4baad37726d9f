"""Linear regression beside the laws: the joint of the targets, least squares, ridge, lasso, and the estimator."""

import numpy as np
import pytest
from mpmath import matrix, mp
from refusals import refuses
from scipy import stats
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.linear_model import Lasso, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import check_estimator

from bayesgen import NUTS, LinearRegressor, fit, load
from bayesgen.models import (
    LaplaceLinearRegression,
    LinearRegression,
    LinearRegressionKnownVariance,
    SemiConjugateLinearRegression,
)
from bayesgen.posterior import ParameterDraws

ROOT = np.array([[2.0, 0, 0], [0.3, 1.0, 0], [-0.5, 0.4, 0.7]])
SEARCH = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000}
UNKNOWN = LinearRegression([1.0, -0.5, 0.2], ROOT, 1.5, 0.8, columns=("a", "b"))
KNOWN = LinearRegressionKnownVariance([1.0, -0.5, 0.2], ROOT, 0.6, columns=("a", "b"))


def rows(n, seed=0, D=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, D)) @ np.tril(rng.normal(size=(D, D)) + 2 * np.eye(D))
    return x, 1 + x @ rng.normal(size=D) + 0.7 * rng.standard_normal(n)


# -- the algebra -------------------------------------------------------------------------------------------------------


def test_evidence_is_that_of_the_joint_distribution_of_the_targets():
    # without the weights the targets are one vector: Student-t, or Normal, about Zm with I + ZVZ'
    x, t = rows(7)
    z = np.column_stack([np.ones(7), x])
    spread = np.eye(7) + z @ ROOT @ ROOT.T @ z.T
    joint = stats.multivariate_t(z @ UNKNOWN.mean, 0.8 / 1.5 * spread, df=3.0)
    np.testing.assert_allclose(UNKNOWN.log_evidence(UNKNOWN.statistics(x, t)), joint.logpdf(t), rtol=1e-12)
    joint = stats.multivariate_normal(z @ KNOWN.mean, 0.36 * np.eye(7) + z @ ROOT @ ROOT.T @ z.T)
    np.testing.assert_allclose(KNOWN.log_evidence(KNOWN.statistics(x, t)), joint.logpdf(t), rtol=1e-12)


@pytest.mark.parametrize("model", [UNKNOWN, KNOWN], ids=["unknown", "known"])
def test_mean_and_variance_of_the_predictive_are_those_of_exact_draws(model):
    posterior = model.update(model.statistics(*rows(10)))
    draws, x = posterior.sample_parameters(np.random.default_rng(0), (20_000,)), rows(5, seed=1)[0]
    mean, variance = posterior.predictive_moments(x)
    location = draws["intercept"][:, None] + draws["coefficients"] @ x.T
    np.testing.assert_allclose(mean, location.mean(0), atol=5 * np.max(location.std(0)) / 141)
    np.testing.assert_allclose(variance, draws["variance"].mean() + location.var(0), rtol=0.1)


def test_a_line_through_0_by_the_joint_distribution_of_the_targets():
    x, t = rows(7)
    root, mean = ROOT[1:, 1:], np.array([-0.5, 0.2])
    unknown = LinearRegression(mean, root, 1.5, 0.8, intercept=False)
    known = LinearRegressionKnownVariance(mean, root, 0.6, intercept=False)
    spread = np.eye(7) + x @ root @ root.T @ x.T
    joint = stats.multivariate_t(x @ mean, 0.8 / 1.5 * spread, df=3.0)
    np.testing.assert_allclose(unknown.log_evidence(unknown.statistics(x, t)), joint.logpdf(t), rtol=1e-12)
    joint = stats.multivariate_normal(x @ mean, 0.36 * np.eye(7) + x @ root @ root.T @ x.T)
    np.testing.assert_allclose(known.log_evidence(known.statistics(x, t)), joint.logpdf(t), rtol=1e-12)
    least = known.ml(known.statistics(x, t))
    np.testing.assert_allclose(least["coefficients"], np.linalg.lstsq(x, t)[0], rtol=1e-12)
    assert least["intercept"] == 0
    exact, _, rank, _ = np.linalg.lstsq(x, x @ [1.0, 2.0])
    assert rank == 2
    refuses(lambda: unknown.ml(unknown.statistics(x, x @ exact)), "explain the target")


def independent(x, t, V, alpha, beta):
    """Posterior mean of weights ~ N(0, V) and variance ~ InvGamma(alpha, beta), by quadrature over the variance."""
    variance = np.exp(np.linspace(-6, 6, 4001))
    weight = stats.invgamma(alpha, scale=beta).pdf(variance) * variance  # the grid is even in its logarithm
    means = []
    for i, s in enumerate(variance):
        weight[i] *= stats.multivariate_normal(np.zeros(len(t)), s * np.eye(len(t)) + x @ V @ x.T).pdf(t)
        means.append(np.linalg.solve(np.linalg.inv(V) + x.T @ x / s, x.T @ t / s))
    weight /= weight.sum()
    return weight @ np.array(means), weight @ variance


@pytest.mark.slow  # NUTS compiles
def test_draws_under_priors_apart_by_quadrature():
    x, t = rows(9)
    root = ROOT[1:, 1:]
    model = SemiConjugateLinearRegression([0.0, 0.0], root, 1.5, 0.8, intercept=False)
    mean, variance = independent(x, t, root @ root.T, 1.5, 0.8)
    posterior = fit(model, (x, t), NUTS(4000, 1000, 2), seed=0)
    for draws, expected in ((posterior.flat["coefficients"], mean), (posterior.flat["variance"], variance)):
        assert (np.abs(draws.mean(0) - expected) < 5 * draws.std(0) / np.sqrt(len(draws) / 5)).all()


def test_the_mode_under_priors_apart_has_no_better_neighbour():
    """With a strong prior at 0 there are two modes: the line explains the target, or noise does."""
    x, t = rows(6, D=1)
    for sd in (0.05, 0.2, 3.0):
        model = SemiConjugateLinearRegression([0.0, 0.0], np.diag([sd, sd]), 0.5, 0.02)
        statistics = model.statistics(x, t)

        def density(v, model=model, statistics=statistics, sd=sd):
            params = {"intercept": v[0], "coefficients": v[1:2], "variance": np.exp(v[2])}
            prior = -(v[:2] @ v[:2]) / (2 * sd**2) - 1.5 * v[2] - 0.02 * np.exp(-v[2])
            return -prior - model.log_likelihood(params, statistics)

        mode = model.map(statistics)
        at = np.array([mode["intercept"], *mode["coefficients"], np.log(mode["variance"])])
        starts = [at + 0.1, *([1.0, s, v] for s in (0.0, 2.0) for v in (-4.0, 3.0))]
        best = min((minimize(density, v, method="Nelder-Mead", options=SEARCH) for v in starts), key=lambda r: r.fun)
        assert density(at) <= best.fun + 1e-9
        np.testing.assert_allclose(at, best.x, atol=1e-4)


def test_an_offset_costs_few_digits():
    mp.dps = 60
    x, t = rows(12, D=1)
    x, t = x + 1e8, t + 1e6
    model = LinearRegression([0.0, 0.0], np.diag([1e7, 10.0]), 1.0, 1.0)
    posterior = model.update(model.statistics(x, t))
    z = matrix([[1, mp.mpf(float(v))] for v in x[:, 0]])
    y = matrix([mp.mpf(float(v)) for v in t])
    precision = mp.diag([mp.mpf(10) ** -14, mp.mpf(10) ** -2]) + z.T * z
    w = mp.lu_solve(precision, z.T * y)
    residual = y - z * w
    prior = w.T * mp.diag([mp.mpf(10) ** -14, mp.mpf(10) ** -2]) * w
    beta = 1 + (sum(r * r for r in residual) + prior[0]) / 2
    new = matrix([1, mp.mpf(float(x[0, 0] + 1))])
    spread = (new.T * mp.lu_solve(precision, new))[0]
    mean, variance = posterior.predictive_moments([[x[0, 0] + 1]])
    # the columns' own spread is 1e-8 of their offset, so 1e-16 / 1e-8 is what float64 can know of it
    np.testing.assert_allclose(mean - 1e6, float((new.T * w)[0] - 1000000), rtol=1e-6)
    np.testing.assert_allclose(variance, float(beta / 6 * (1 + spread)), rtol=1e-6)


# -- point estimates ---------------------------------------------------------------------------------------------------


def test_maximum_likelihood_is_least_squares_with_divisor_n():
    x, t = rows(30)
    weight = np.random.default_rng(0).integers(0, 3, 30).astype(float)
    z, root = np.column_stack([np.ones(30), x]), np.sqrt(weight)
    w, squares, *_ = np.linalg.lstsq(z * root[:, None], t * root)
    point = fit(UNKNOWN, (x, t, weight), "ml").params
    np.testing.assert_allclose(np.append(point["intercept"], point["coefficients"]), w, rtol=1e-11)
    np.testing.assert_allclose(point["variance"], squares[0] / weight.sum(), rtol=1e-11)
    known = fit(KNOWN, (x, t, weight), "ml").params
    np.testing.assert_allclose(known["coefficients"], w[1:], rtol=1e-11)
    assert known["variance"] == 0.6**2


def test_ridge_is_the_mode_under_a_normal_prior():
    x, t = rows(50, D=4)
    sigma, tau = 0.7, 0.3
    prior = LinearRegressionKnownVariance(np.zeros(5), np.diag([1e7, *[tau] * 4]), sigma)
    ridge = Ridge(sigma**2 / tau**2).fit(x, t)
    point = fit(prior, (x, t), "map").params
    np.testing.assert_allclose(point["coefficients"], ridge.coef_, atol=1e-8)
    np.testing.assert_allclose(point["intercept"], ridge.intercept_, atol=1e-8)
    # with an unknown variance V is in its units, and the penalty 1/s² whatever the noise
    z = (x - x.mean(0)) / x.std(0)
    for inference in ("exact", "map"):
        ours = LinearRegressor(prior_scale=0.4, inference=inference).fit(x, t)
        ridge = Ridge(1 / 0.4**2).fit(z, t)
        np.testing.assert_allclose(ours.coef_ * x.std(0), ridge.coef_, atol=1e-8)
        np.testing.assert_allclose(ours.predict(x), ridge.predict(z), atol=1e-8)


@pytest.mark.parametrize("n, D", [(60, 8), (20, 50)])
def test_lasso_is_the_mode_under_a_laplace_prior(n, D):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, D))
    t = 3 + x[:, 0] * 2 - x[:, 1] + rng.normal(size=n)
    ours = LinearRegressor(0.05, 1e6, prior="laplace", inference="map").fit(x, t)
    z = (x - x.mean(0)) / x.std(0)
    lasso = Lasso(np.sqrt(ours.variance_) / (n * 0.05), tol=1e-14, max_iter=10**6).fit(z, t)
    np.testing.assert_allclose(ours.coef_ * x.std(0), lasso.coef_, atol=1e-6)
    assert 0 < (lasso.coef_ == 0).sum() == (ours.coef_ == 0).sum()


def test_mode_under_laplace_noise_and_prior_is_a_linear_programme():
    x, t = rows(40, D=5)
    model = LaplaceLinearRegression(np.full(5, 0.05), 1e6, prior="laplace")
    point = model.map(model.statistics(x, t))
    sigma = np.sqrt(point["variance"])
    # given sigma: min √2/σ Σ|r| + Σ|b|/(τσ), r = r⁺ - r⁻, b = b⁺ - b⁻, and a free intercept
    cost = np.r_[0.0, np.full(10, 1 / (0.05 * sigma)), np.full(80, np.sqrt(2) / sigma)]
    equal = np.column_stack([np.ones(40), x, -x, np.eye(40), -np.eye(40)])
    best = linprog(cost, A_eq=equal, b_eq=t, bounds=[(None, None)] + [(0, None)] * 90)
    residual = t - point["intercept"] - x @ point["coefficients"]
    ours = (np.sqrt(2) * np.abs(residual).sum() + np.abs(point["coefficients"]).sum() / 0.05) / sigma
    np.testing.assert_allclose(ours, best.fun, rtol=1e-9)
    np.testing.assert_allclose(point["coefficients"], best.x[1:6] - best.x[6:11], atol=1e-6)


def test_two_roads_to_one_mode():
    # both Normal: the search of one model must find the closed form of the other
    x, t = rows(30)
    search = LaplaceLinearRegression([0.5, 2.0], 3.0, 1.5, 2.0, 0.7, noise="normal", prior="normal")
    closed = LinearRegression([1.5, 0, 0], np.diag([3.0, 0.5, 2.0]), 2.0, 0.7)
    for site, value in closed.map(closed.statistics(x, t)).items():
        np.testing.assert_allclose(search.map(search.statistics(x, t))[site], value, rtol=1e-9)


def test_a_gross_outlier_moves_laplace_noise_little():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 30)[:, None]
    t = 2 * x[:, 0] + 0.1 * rng.standard_normal(30)
    t[-1] += 1000
    robust = LinearRegressor(100.0, 100.0, noise="laplace", inference="map").fit(x, t)
    assert abs(robust.coef_[0] - 2) < 0.3 < 100 < abs(LinearRegressor(100.0, 100.0).fit(x, t).coef_[0] - 2)


# -- the estimator -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [{}, {"prior": "laplace", "inference": "map"}, {"inference": "ml"}])
def test_standardising_is_undone(kwargs):
    x, t = rows(40, D=3)
    weight = np.random.default_rng(0).integers(0, 3, 40).astype(float)
    centre = np.average(x, axis=0, weights=weight)
    scale = np.sqrt(np.average((x - centre) ** 2, axis=0, weights=weight))
    z, model = (x - centre) / scale, LinearRegressor(0.3, **kwargs)
    ours = clone(model).fit(x, t, weight)
    shift = np.average(t, weights=weight)  # by hand: as they are, with the intercept about 0
    by_hand = clone(model).set_params(standardize=False).fit(z, t - shift, weight)
    np.testing.assert_allclose(ours.predict(x), by_hand.predict(z) + shift, rtol=1e-7)
    np.testing.assert_allclose(ours.coef_ * scale, by_hand.coef_, atol=1e-8)
    np.testing.assert_allclose(x @ ours.coef_ + ours.intercept_, ours.predict(x), rtol=1e-9)
    units = clone(model).fit(x * [1e3, 1e-6, -1] + [0, 5, 1e4], 7 * t - 3, weight)
    np.testing.assert_allclose(units.predict(x * [1e3, 1e-6, -1] + [0, 5, 1e4]), 7 * ours.predict(x) - 3, rtol=1e-6)


def test_standard_deviations_and_draws_agree_with_the_predictive():
    x, t = rows(40)
    exact = LinearRegressor(random_state=0).fit(x, t)
    mean, sd = exact.predict(x, return_std=True)
    draws = clone(exact)
    draws.fit(x, t).posterior_ = ParameterDraws(exact.model_, exact.posterior_.draws(0, (4, 5000)))
    other_mean, other_sd = draws.predict(x, return_std=True)
    np.testing.assert_allclose(other_mean, mean, atol=0.01)
    np.testing.assert_allclose(other_sd, sd, rtol=0.02)
    point = LinearRegressor(inference="ml").fit(x, t)
    np.testing.assert_allclose(point.predict(x, return_std=True)[1], point.variance_**0.5)


def test_arviz_tells_coefficients_of_the_columns_as_given():
    import pandas as pd

    x, t = rows(200)
    model = LinearRegressor(random_state=0).fit(pd.DataFrame(x * 100 + 7, columns=["age", "height"]), t)
    posterior = model.to_arviz().posterior
    assert posterior.sizes == {"chain": 4, "draw": 1000, "feature": 2}
    assert posterior.coords["feature"].values.tolist() == ["age", "height"]
    error = posterior["coefficients"].std(("chain", "draw")) / np.sqrt(4000)
    assert (np.abs(posterior["coefficients"].mean(("chain", "draw")) - model.coef_) < 5 * error).all()
    error = posterior["intercept"].std() / np.sqrt(4000)
    assert abs(posterior["intercept"].mean() - model.intercept_) < 5 * error
    assert model.posterior_.to_arviz().posterior["coefficients"].dims == ("chain", "draw", "feature")


def test_basis_expansion_is_a_pipeline():
    x = np.linspace(-3, 3, 40)[:, None]
    t = np.sin(x[:, 0])
    curve = make_pipeline(PolynomialFeatures(5), LinearRegressor(1000.0)).fit(x, t)  # a constant column does no harm
    assert np.abs(curve.predict(x) - t).max() < 0.05


@pytest.mark.compiles
def test_scikit_learn_contract():
    check_estimator(LinearRegressor(noise="laplace", prior="laplace", inference="map"), on_skip=None)


X, T = rows(10)
SAME = np.column_stack([X, X[:, 0] - 2 * X[:, 1]])
ERRORS = {
    "missing": (
        lambda: UNKNOWN.statistics([[1.0, 2.0], [3.0, np.nan]], [1, 2]),
        "column 'b': the value in row 1 is NaN",
    ),
    "infinite": (lambda: LinearRegressor().fit([[1.0], [np.inf]], [1, 2]), r"column 'x0'.* row 1 is infinite \(inf\)"),
    "missing target": (lambda: UNKNOWN.statistics(X, np.append(T[1:], np.nan)), "target is NaN .* row 9"),
    "lengths": (lambda: UNKNOWN.statistics(X, T[1:]), "one value for each of the 10 rows"),
    "width": (lambda: UNKNOWN.statistics(X[:, :1], T), "expected rows of 2 columns"),
    "weight": (lambda: UNKNOWN.statistics(X, T, -T), "weight must hold one finite number >= 0"),
    "factor": (lambda: LinearRegression([0, 0], np.ones((2, 2))), "factor must be lower triangular"),
    "one mean": (lambda: LinearRegression([0], [[1]]), "mean must hold that of the intercept and of each"),
    "names": (lambda: LinearRegression([0, 0], np.eye(2), columns=("a", "b")), "2 names for 1 columns"),
    "noise": (lambda: LaplaceLinearRegression([1.0], noise="cauchy"), "noise must be one of"),
    "collinear": (lambda: fit_ml(SAME, T), r"columns \['x[012]'\] are linear combinations"),
    "constant": (lambda: fit_ml(X * [1, 0] + [0, 0.1], T), r"columns \['x1'\] are constant"),
    "few rows": (lambda: fit_ml(X[:2], T[:2]), "maximum likelihood does not exist: columns"),
    "exact fit": (lambda: fit_ml(X, X @ [1, 2]), "variance does not exist: the columns explain the target"),
    "no ml": (lambda: LinearRegressor(noise="laplace", inference="ml").fit(X, T), "use 'map' or 'nuts'"),
    "scale": (lambda: LinearRegressor(prior_scale=0).fit(X, T), "prior_scale must be a finite number > 0"),
    "no weight": (lambda: LinearRegressor().fit(X, T, np.zeros(10)), "at least one non-zero"),
    "evidence": (
        lambda: LinearRegressor(noise="laplace", inference="map").fit(X, T).log_evidence_,
        "no closed form here",
    ),
    "exact": (lambda: LinearRegressor(noise="laplace").fit(X, T), "has no exact posterior"),
}


def fit_ml(x, t):
    return LinearRegressor(inference="ml").fit(x, t)


@pytest.mark.parametrize("call, message", ERRORS.values(), ids=ERRORS.keys())
def test_errors_name_what_is_wrong(call, message):
    refuses(call, message, (ValueError, TypeError, AttributeError))


def test_a_constant_target_is_warned_of():
    with pytest.warns(UserWarning, match="y is constant"):
        model = LinearRegressor().fit(X, np.full(10, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0)


def test_an_estimator_through_0_is_ridge_without_intercept_and_forgets_nothing_in_batches():
    x, t = rows(40)
    x, t = x + np.array([1.0, 3.0]), t + 4
    line = LinearRegressor(intercept=False, standardize=False, prior_scale=0.5).fit(x, t)
    np.testing.assert_allclose(line.coef_, Ridge(alpha=4.0, fit_intercept=False).fit(x, t).coef_, rtol=1e-10)
    assert line.intercept_ == 0 and line.predict(np.zeros((1, 2)))[0] == 0
    scaled = LinearRegressor(intercept=False).fit(x, t)
    np.testing.assert_allclose(scaled.scale_, np.sqrt((x**2).mean(0)), rtol=1e-12)
    np.testing.assert_allclose(
        LinearRegressor(intercept=False).fit(x * [1, 1e3], 5 * t).predict(x * [1, 1e3]),
        5 * scaled.predict(x),
        rtol=1e-9,
    )
    pieces = LinearRegressor(intercept=False).fit_batches([(x[:15], t[:15]), (x[15:], t[15:])])
    np.testing.assert_allclose(pieces.predict(x, return_std=True), scaled.predict(x, return_std=True), rtol=1e-10)
    more = LinearRegressor(intercept=False).partial_fit(x[:15], t[:15]).partial_fit(x[15:], t[15:])
    np.testing.assert_allclose(more.predict(x), scaled.predict(x), rtol=1e-10)
    for own in ({"noise": "laplace"}, {"prior": "laplace"}):
        robust = LinearRegressor(intercept=False, inference="map", standardize=False, **own).fit(x, t)

        def loss(v, model=robust.model_, statistics=robust.statistics_, params=robust.posterior_.params, own=own):
            distance, likelihood = v / np.sqrt(params["variance"]) / 2.5, {**params, "coefficients": v}
            prior = np.abs(distance).sum() if "prior" in own else distance @ distance / 2
            return prior - model.log_likelihood(likelihood, statistics)

        best = minimize(loss, robust.coef_ + 0.05, method="Nelder-Mead", options=SEARCH)
        np.testing.assert_allclose(robust.coef_, best.x, atol=1e-5)


def test_an_estimator_whose_prior_does_not_scale_with_the_noise(tmp_path):
    x, t = rows(40)
    own = {"scale_with_noise": False, "standardize": False, "prior_scale": 0.3, "intercept_scale": 0.3}
    line = LinearRegressor(inference="map", **own).fit(x, t)
    ridge = Ridge(alpha=line.variance_ / 0.09, fit_intercept=False).fit(np.column_stack([np.ones(40), x]), t)
    np.testing.assert_allclose([line.intercept_, *line.coef_], ridge.coef_, rtol=1e-6)
    line.save(tmp_path / "own.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "own.safetensors").predict(x), line.predict(x))
    refuses(lambda: LinearRegressor(**own).fit(x, t), "no exact posterior", TypeError)
    refuses(lambda: LinearRegressor(inference="map", noise="laplace", **own).fit(x, t), "takes normal noise")
    refuses(lambda: LinearRegressor(intercept="no").fit(x, t), "intercept must be True or False", TypeError)
