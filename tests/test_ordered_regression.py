"""Ordered classes beside the laws: links of SciPy, published estimates, two classes, orders, the estimator."""

import warnings

import numpy as np
import pandas as pd
import pytest
from laws import SAMPLER, x64
from refusals import refuses
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.ensemble import VotingClassifier
from sklearn.utils.estimator_checks import check_estimator

import bayesgen as bg
from bayesgen import LogisticClassifier, OrderedClassifier, ProbitClassifier, fit
from bayesgen.models import LogisticRegression, OrderedRegression, ProbitRegression

NOISE = {"logistic": stats.logistic, "probit": stats.norm}
CUTS, SLOPES = np.array([-1.0, 0.0, 1.5]), np.array([1.2, -0.5])
MODELS = {link: OrderedRegression([2.5, 1.5], 2.0, classes=tuple("abcd"), link=link) for link in NOISE}
EVERY = pytest.mark.parametrize("link", NOISE)


def rows(link, n, seed=0, cuts=CUTS):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, np.searchsorted(cuts, x @ SLOPES + NOISE[link].rvs(size=n, random_state=rng))


# -- densities ---------------------------------------------------------------------------------------------------------


@EVERY
def test_likelihood_and_its_derivatives_are_those_of_scipy(link):
    model, (x, t) = MODELS[link], rows(link, 30)
    statistics, v = model.statistics(x, t, np.arange(30) % 3), np.append(CUTS, SLOPES)
    ends = np.concatenate([[-np.inf], CUTS, [np.inf]])
    below = NOISE[link].cdf(ends - (x @ SLOPES)[:, None])
    expected = np.log(np.diff(below))
    ours = model.log_likelihood_rows({"cuts": CUTS[None], "coefficients": SLOPES[None]}, x)[0]
    np.testing.assert_allclose(ours, expected.T, rtol=1e-10)
    total = np.arange(30) % 3 @ expected[np.arange(30), t]
    np.testing.assert_allclose(model.log_likelihood({"cuts": CUTS, "coefficients": SLOPES}, statistics), total)
    value, gradient, hessian = model._sums(v, statistics.data, True)
    np.testing.assert_allclose(value, -total)
    steps = 1e-5 * np.eye(5)
    slope = [np.subtract(*(model._sums(v + s * e, statistics.data, False)[0] for s in (1, -1))) for e in steps]
    bend = [np.subtract(*(model._sums(v + s * e, statistics.data, True)[1] for s in (1, -1))) for e in steps]
    np.testing.assert_allclose(gradient, np.array(slope) / 2e-5, atol=1e-6)
    np.testing.assert_allclose(hessian, np.array(bend) / 2e-5, atol=1e-6)


@EVERY
def test_classes_far_away_or_thin_keep_their_digits(link):
    """By mpmath with 400 digits, of a class between cut points that touch, and of rows far out."""
    import mpmath

    mpmath.mp.dps = 400

    def below(z):
        return mpmath.ncdf(z) if link == "probit" else 1 / (1 + mpmath.exp(-z))

    model = OrderedRegression([1.0], classes=(0, 1, 2), link=link)
    for width in (1e-6, 0.1, 3.0):
        params = {"cuts": np.array([[0.25, 0.25 + width]]), "coefficients": np.ones((1, 1))}
        x = np.array([-30.0, -4.0, 0.0, 0.3, 5.0, 30.0])
        want = []
        for value in x:
            low, high = (mpmath.mpf(float(c)) - mpmath.mpf(float(value)) for c in params["cuts"][0])
            inside = below(high) - below(low) if high + low < 0 else below(-low) - below(-high)
            want.append([float(mpmath.log(p)) for p in (below(low), inside, below(-high))])
        np.testing.assert_allclose(model.log_likelihood_rows(params, x[:, None])[0].T, want, rtol=1e-9)
    far = np.array([[1e3], [-1e8], [1e100], [-1e150]])
    log_p = model.log_likelihood_rows(params, far)[0]
    assert np.isfinite(log_p).all()
    np.testing.assert_allclose(np.exp(log_p).sum(0), 1, rtol=1e-12)


def test_prior_of_class_shares_is_uniform_under_the_probit():
    """Shares of N(0, 1) between sorted draws from it are Dirichlet(1, 1, 1, 1): mean 1/4, variance 3/80."""
    import jax
    from numpyro.infer import Predictive

    model = OrderedRegression([1.0], 1.0, classes=tuple("abcd"), link="probit")
    with x64():
        cuts = np.asarray(Predictive(model.latents, num_samples=4000)(jax.random.PRNGKey(0))["cuts"])
    assert (np.diff(cuts) > 0).all()
    params = {"cuts": cuts, "coefficients": np.ones((4000, 1))}
    share = np.exp(model.log_likelihood_rows(params, np.zeros((1, 1))))[..., 0]
    marginal = stats.beta(1, 3)
    assert (np.abs(share.mean(0) - 1 / 4) < 5 * (3 / 80 / 4000) ** 0.5).all()
    assert min(stats.kstest(share[:, k], marginal.cdf).pvalue for k in range(4)) > 1e-4


# -- point estimates ---------------------------------------------------------------------------------------------------

# Madsen (1976): satisfaction of 1681 tenants of Copenhagen, by influence, type of housing and contact with neighbours.
# The counts are `housing` of MASS: satisfaction fastest, then influence, type, contact.
FREQUENCY = """21 21 28 34 22 36 10 11 36 61 23 17 43 35 40 26 18 54 13 9 10 8 8 12 6 7 9 18 6 7 15 13 13 7 5 11
14 19 37 17 23 40 3 5 23 78 46 43 48 45 86 15 25 62 20 23 20 10 22 24 7 10 21 57 23 13 31 21 13 5 6 13"""


def housing():
    contact, kind, influence, satisfaction = (a.ravel() for a in np.indices((2, 4, 3, 3)))
    x = np.column_stack([influence == 1, influence == 2, kind == 1, kind == 2, kind == 3, contact == 1]) * 1.0
    return x, satisfaction, np.array(FREQUENCY.split(), float)


def test_maximum_likelihood_is_that_of_polr():
    """Venables and Ripley 2002, Modern Applied Statistics with S, section 7.3; figures of R's polr with its help."""
    x, t, weight = housing()
    assert weight.sum() == 1681
    model = OrderedRegression(np.full(6, 2.5), classes=("Low", "Medium", "High"))
    point = fit(model, (x, t, weight), "ml").params
    published = [0.5663937, 1.2888191, -0.5723501, -0.3661866, -1.0910149, 0.3602841]
    np.testing.assert_allclose(point["coefficients"], published, atol=2e-5)  # polr stops at five digits
    np.testing.assert_allclose(point["cuts"], [-0.4961353, 0.6907083], atol=2e-5)
    np.testing.assert_allclose(-2 * model.log_likelihood(point, model.statistics(x, t, weight)), 3479.149, atol=5e-4)


@EVERY
@pytest.mark.parametrize("how", ["ml", "map"])
def test_estimates_are_those_of_a_search_by_scipy(link, how):
    model, (x, t) = MODELS[link], rows(link, 200)

    def energy(v):
        cuts, slopes = np.cumsum(np.append(v[0], np.exp(v[1:3]))), v[3:]
        below = NOISE[link].cdf(np.concatenate([[-np.inf], cuts, [np.inf]]) - (x @ slopes)[:, None])
        prior = stats.norm.logpdf(cuts, 0, 2.0).sum() + stats.norm.logpdf(slopes, 0, [2.5, 1.5]).sum()
        return -np.log(np.diff(below)[np.arange(200), t]).sum() - (prior if how == "map" else 0.0)

    best = optimize.minimize(energy, np.zeros(5), tol=1e-12, options={"gtol": 1e-7})
    point = fit(model, (x, t), how).params
    np.testing.assert_allclose(point["cuts"], np.cumsum(np.append(best.x[0], np.exp(best.x[1:3]))), atol=2e-5)
    np.testing.assert_allclose(point["coefficients"], best.x[3:], atol=2e-5)


@EVERY
def test_cut_points_are_recovered(link):
    model, (x, t) = MODELS[link], rows(link, 20_000)
    point = fit(model, (x, t), "map").params
    covariance = np.linalg.inv(
        model._sums(np.append(point["cuts"], point["coefficients"]), model.statistics(x, t).data, True)[2]
    )
    z = (np.append(*point.values()) - np.append(CUTS, SLOPES)) / np.sqrt(np.diagonal(covariance))
    assert np.abs(z).max() < 5


@pytest.mark.parametrize("link, other", [("logistic", LogisticRegression), ("probit", ProbitRegression)])
def test_two_classes_are_logistic_or_probit_regression(link, other):
    x, t = rows(link, 100, cuts=[0.3])
    ordered, two = OrderedRegression([2.5, 1.5], 2.0, classes=(0, 1), link=link), other([2.5, 1.5], 2.0)
    for how in ("ml", "map"):
        mine, theirs = fit(ordered, (x, t), how), fit(two, (x, t), how)
        np.testing.assert_allclose(-mine.params["cuts"][0], theirs.params["intercept"], atol=1e-8)
        np.testing.assert_allclose(mine.params["coefficients"], theirs.params["coefficients"], atol=1e-8)
        np.testing.assert_allclose(mine.log_predictive(x), theirs.log_predictive(x), rtol=1e-8)
    classifier = LogisticClassifier if link == "logistic" else ProbitClassifier
    mine, theirs = (
        make(inference="map").fit(x, t) for make in (lambda **k: OrderedClassifier(link=link, **k), classifier)
    )
    np.testing.assert_allclose(mine.predict_proba(x), theirs.predict_proba(x), atol=1e-8)


@EVERY
def test_the_reversed_order_changes_signs_alone(link):
    model, (x, t) = MODELS[link], rows(link, 60)
    mine, turned = (fit(model, (x, codes), "map") for codes in (t, 3 - t))
    np.testing.assert_allclose(mine.params["cuts"], -turned.params["cuts"][::-1], atol=1e-8)
    np.testing.assert_allclose(mine.log_predictive(x), turned.log_predictive(x)[:, ::-1], rtol=1e-8)


def test_maximum_likelihood_that_does_not_exist_is_refused():
    x, line = np.linspace(-1, 1, 30)[:, None], OrderedRegression([2.5], classes=("low", "middle", "high"))
    apart = np.repeat([0, 1, 2], 10)
    refuses(lambda: fit(line, (x, apart), "ml"), "a combination of the columns separates the ordered classes")
    refuses(lambda: fit(line, (x, np.repeat([0, 2], 15)), "ml"), r"classes \['middle'\] have no rows")
    with pytest.raises(ValueError, match="class 'middle' has no rows: at the mode its two cut points meet"):
        fit(line, (x, np.repeat([0, 2], 15)), "map")
    with warnings.catch_warnings(), pytest.raises(ValueError, match="separates the ordered classes"):
        warnings.simplefilter("error")
        fit(OrderedRegression([2.5], classes=(0, 1, 2), link="probit"), (100 * x, apart), "ml")
    point = fit(line, (x, apart), "map").params
    assert np.isfinite(point["coefficients"]).all() and np.diff(point["cuts"]) > 0
    overlap = np.where(np.arange(30) % 7, apart, 1)  # one cut point is passed by rows of both sides: enough
    assert np.isfinite(fit(line, (x, overlap), "ml").params["cuts"]).all()
    half = np.where(np.arange(30) < 10, 0, 1 + np.arange(30) % 2)  # only classes 1 and 2 overlap: enough too
    assert np.isfinite(fit(line, (x, half), "ml").params["cuts"]).all()


# -- draws -------------------------------------------------------------------------------------------------------------


@pytest.mark.compiles
def test_laplace_keeps_the_order_and_averages_over_an_empty_class():
    model = OrderedRegression([2.5], 2.5, classes=("low", "middle", "high"))
    x = np.linspace(-1, 1, 30)[:, None]
    posterior = fit(model, (x, np.where(np.arange(30) % 5 > 1, 2, 0)), bg.Laplace(500), seed=0)
    assert (np.diff(posterior.samples["cuts"]) > 0).all()
    p = np.exp(posterior.log_predictive([[0.0]]))[0]
    assert 0 < p[1] < 0.1


@pytest.mark.slow
@EVERY
def test_ranks_of_true_parameters_are_uniform(link):
    model = OrderedRegression([1.5, 1.0], 1.0, link=link)
    x = np.random.default_rng(0).normal(size=(12, 2))

    def simulate(params, rng):
        return x, np.searchsorted(
            params["cuts"], x @ params["coefficients"] + NOISE[link].rvs(size=12, random_state=rng)
        )

    result = bg.testing.check_calibration(model, 12, SAMPLER, simulations=150, draws=49, simulate=simulate, seed=1)
    assert result.ok(), str(result)


# -- the estimator -----------------------------------------------------------------------------------------------------

LABELS = np.array(["never", "often", "always", "sometimes"])
ORDER = ["never", "sometimes", "often", "always"]
X, T = rows("logistic", 120)
Y = np.array(ORDER)[T]


def test_orders_are_given_in_three_ways_and_numbers_sort():
    numbers = OrderedClassifier(inference="map").fit(X, T * 10)
    assert numbers.classes_.tolist() == [0, 10, 20, 30]
    levels = pd.Series(pd.Categorical(Y, [*ORDER, "unused"], ordered=True))
    cures = r"no row has the levels \['unused'\] of y.*order=.*keeps them, y.cat.remove_unused_categories\(\) drops"
    with pytest.warns(UserWarning, match=cures):
        by_levels = OrderedClassifier(inference="map").fit(X, levels)
    fits = [
        OrderedClassifier(inference="map", order=ORDER).fit(X, Y),
        OrderedClassifier(inference="map").fit(X, Y, classes=ORDER),
        by_levels,
        OrderedClassifier(inference="map").fit(X, levels.cat.remove_unused_categories()),
    ]
    for classifier in fits:
        assert classifier.classes_.tolist() == ORDER
        np.testing.assert_allclose(classifier.predict_proba(X), numbers.predict_proba(X), rtol=1e-10)
        assert (classifier.predict(X) == np.array(ORDER)[numbers.predict(X) // 10]).all()
    assert clone(fits[0]).fit(X, Y).classes_.tolist() == ORDER
    with pytest.raises(
        ValueError, match=r"nobody has said in which order the classes \['always', 'never', 'often', 'so"
    ):
        OrderedClassifier(inference="map").fit(X, Y)
    refuses(lambda: OrderedClassifier(inference="map").fit(X, pd.Categorical(Y)), "nobody has said in which order")
    refuses(lambda: OrderedClassifier(inference="map", order=[*ORDER, "never"]).fit(X, Y), "names a label twice")
    refuses(lambda: OrderedClassifier(inference="map", order=ORDER[:3]).fit(X, Y), r"y holds the labels \['always'\]")
    with pytest.raises(ValueError, match=r"y holds the numbers \[0, 1, 2, 3\].*encoded.*give y as numbers in order"):
        VotingClassifier([("o", OrderedClassifier(inference="map", order=ORDER))], voting="soft").fit(X, Y)
    refuses(lambda: OrderedClassifier(link="cauchit", inference="map").fit(X, T), "link must be one of")
    inside = VotingClassifier([("o", OrderedClassifier(inference="map"))], voting="soft").fit(X, T * 10)
    np.testing.assert_allclose(inside.predict_proba(X), numbers.predict_proba(X), rtol=1e-10)
    two = OrderedClassifier(inference="map").fit(X, np.where(T > 1, "yes", "no"))  # two have no order to mistake
    assert two.classes_.tolist() == ["no", "yes"]


@pytest.mark.filterwarnings("ignore:.* rows repeat another")
@EVERY
def test_coefficients_are_told_of_the_columns_as_given(link):
    frame = pd.DataFrame(X * [1, 100] + [0, 1e3], columns=["age", "dose"])
    weight = np.random.default_rng(0).integers(0, 3, 120)
    classifier = OrderedClassifier(inference="map", link=link, order=ORDER).fit(frame, Y, weight)
    below = NOISE[link].cdf(classifier.cuts_ - (frame.to_numpy() @ classifier.coef_)[:, None])
    np.testing.assert_allclose(classifier.predict_proba(frame).cumsum(1)[:, :-1], below, rtol=1e-8)
    assert (np.diff(classifier.cuts_) > 0).all()
    again = OrderedClassifier(inference="map", link=link, order=ORDER).fit(
        frame.loc[np.repeat(range(120), weight)], np.repeat(Y, weight)
    )
    np.testing.assert_allclose(classifier.coef_, again.coef_, rtol=1e-7)
    batches = OrderedClassifier(inference="map", link=link, order=ORDER)
    table = frame.assign(y=Y, w=weight)
    batches.fit_batches([table[:50], table[50:]], "y", sample_weight="w")
    np.testing.assert_allclose(batches.predict_proba(frame), classifier.predict_proba(frame), atol=1e-8)


@pytest.mark.compiles
def test_gaps_categories_files_decisions_and_arviz(tmp_path):
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "city": np.resize(["a", "b", "c"], 120)})
    gaps = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.1)
    refuses(lambda: OrderedClassifier(inference="map", order=ORDER).fit(gaps, Y), "missing")
    classifier = OrderedClassifier(inference="map", order=ORDER, missing="mean").fit(gaps, Y)
    p = classifier.predict_proba(gaps)
    np.testing.assert_allclose(p.sum(1), 1)
    classifier.save(tmp_path / "ordered.safetensors")
    again = bg.load(tmp_path / "ordered.safetensors")
    np.testing.assert_array_equal(again.predict_proba(gaps), p)
    assert again.classes_.tolist() == ORDER and list(again.order) == ORDER
    distance = np.abs(np.subtract.outer(range(4), range(4)))  # the cost of a mistake: how many classes it is off
    median = (p.cumsum(1) < 0.5).sum(1)
    clear = np.abs(p.cumsum(1) - 0.5).min(1) > 1e-9
    assert (bg.decision.decide(p, distance)[clear] == median[clear]).all()
    tree = classifier.to_arviz(gaps, Y, groups=["log_likelihood"])
    assert tree.posterior["cuts"].dims == ("chain", "draw", "cut")
    assert tree.posterior.coords["cut"].values.tolist() == ["never|sometimes", "sometimes|often", "often|always"]
    np.testing.assert_allclose(tree.posterior["cuts"].mean(("chain", "draw")), classifier.cuts_)
    log_p = np.log(np.exp(tree.log_likelihood["t"].values).mean((0, 1)))
    np.testing.assert_allclose(log_p, np.log(p[np.arange(120), T]), rtol=1e-9)
    assert bg.evaluation.ranked_probability_score(Y, p, labels=classifier.classes_) < 0.2


def test_a_comparison_knows_which_column_is_which():
    classifier = OrderedClassifier(inference="map", order=ORDER)
    places = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    result = bg.compare_models(X, Y, {"ordered": classifier}, folds=places)
    for train, test in places:
        own = classifier.fit(X[train], Y[train]).predict_proba(X[test])
        np.testing.assert_array_equal(result.probability["ordered"][test], own[:, np.argsort(ORDER)])
    assert result.classes.tolist() == sorted(ORDER)


def test_scikit_learn_contract():
    refused = {"check_classifiers_classes": "three classes of text have no order that anybody gave"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(OrderedClassifier(inference="map"), on_skip=None, expected_failed_checks=refused)
