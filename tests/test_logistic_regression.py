"""Logistic, softmax and probit regression beside the laws: SciPy's links, R's numbers, existence, the estimators."""

import numpy as np
import pandas as pd
import pytest
from laws import SAMPLER
from refusals import refuses
from scipy import stats
from scipy.special import expit, log_expit, log_ndtr, log_softmax, ndtr
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression as ScikitLearn

from bayesgen import LogisticClassifier, ProbitClassifier, fit
from bayesgen.models import LogisticRegression, ProbitRegression
from bayesgen.numerics.newton import check_overlap

ABC = ("a", "b", "c")
LOGIT = LogisticRegression([2.5, 1.0, 0.7], 2.0)
PROBIT = ProbitRegression([2.5, 1.0, 0.7], 2.0)
SYMMETRIC = LogisticRegression([2.5, 1.0, 0.7], 2.0, classes=ABC)
PINNED = LogisticRegression([2.5, 1.0, 0.7], 2.0, classes=ABC, symmetric=False)
MODELS = {"logit": LOGIT, "probit": PROBIT, "symmetric": SYMMETRIC, "pinned": PINNED}
EVERY = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def rows(n, K=2, seed=0, D=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, D))
    score = x @ rng.normal(size=(D, K)) + rng.gumbel(size=(n, K))
    return x, score.argmax(1)


def data(model, n, seed=0):
    return rows(n, len(model.classes), seed, model.features)


def weights(model, seed=0):
    rng = np.random.default_rng(seed)
    lead = () if len(model.classes) == 2 else (len(model.scored),)
    return {"intercept": rng.normal(size=lead), "coefficients": rng.normal(size=(*lead, model.features))}


# -- densities ---------------------------------------------------------------------------------------------------------


@EVERY
def test_likelihood_is_that_of_scipy(model):
    x, t = data(model, 20)
    one = {k: np.asarray(v) for k, v in weights(model).items()}
    score = np.atleast_2d(one["coefficients"]) @ x.T + np.reshape(one["intercept"], (-1, 1))
    if model is PROBIT:
        expected = np.concatenate([log_ndtr(-score), log_ndtr(score)])
    elif model is LOGIT:
        expected = np.concatenate([log_expit(-score), log_expit(score)])
    else:
        expected = log_softmax(np.concatenate([score, np.zeros((3 - len(score), 20))]), axis=0)
    ours = model.log_likelihood_rows({k: v[None] for k, v in one.items()}, x)[0]
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-14)
    total = expected[t, np.arange(20)].sum()
    statistics = model.statistics(x, t)
    np.testing.assert_allclose(model.log_likelihood(one, statistics), total, rtol=1e-12)


@EVERY
def test_far_rows_have_finite_probabilities_that_sum_to_one(model):
    one = {k: v[None] for k, v in weights(model).items()}
    far = np.array([[0.0, 0, 0], [1e3, 0, 0], [-1e3, 50, 3], [1e8, -1e8, 1e4], [1e100, 0, 1]])
    log_p = model.log_likelihood_rows(one, far)[0]
    assert np.isfinite(log_p).all()
    np.testing.assert_allclose(np.exp(log_p).sum(0), 1, rtol=1e-12)
    near = LogisticClassifier(inference="map").fit(far[:3] / 1e3, [0, 1, 0]).predict_proba(far * 1e150)
    np.testing.assert_allclose(near.sum(1), 1)


def test_probit_keeps_its_digits_in_the_tail():
    one = {"intercept": np.zeros(1), "coefficients": np.ones((1, 1))}
    log_p = ProbitRegression([1.0]).log_likelihood_rows(one, np.array([[-30.0]]))[0, :, 0]
    np.testing.assert_allclose(log_p, [-stats.norm.sf(30), -454.3212439563431], rtol=1e-13, atol=1e-300)


# -- point estimates ---------------------------------------------------------------------------------------------------


def test_maximum_likelihood_is_that_of_r():
    # R: glm(Species == "virginica" ~ ., binomial, subset(iris, Species != "setosa"))
    x, t = load_iris(return_X_y=True)
    model = LogisticRegression(np.full(4, 2.5))
    point = fit(model, (x[50:], t[50:] - 1), "ml").params
    np.testing.assert_allclose(point["intercept"], -42.6378, rtol=1e-5)
    np.testing.assert_allclose(point["coefficients"], [-2.4652, -6.6809, 9.4294, 18.2861], rtol=1e-4)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("tau", [0.3, 2.5, np.inf])
def test_estimates_are_those_of_scikit_learn(K, tau):
    x, t = rows(300, K)
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    peer = ScikitLearn(C=tau**2, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(x, t, weight)  # intercept is free
    model = LogisticRegression(np.full(3, min(tau, 1e3)), 1e5, classes=ABC[:K])
    point = fit(model, (x, t, weight), "map" if np.isfinite(tau) else "ml").params
    np.testing.assert_allclose(np.atleast_2d(point["coefficients"]), peer.coef_, atol=1e-5)
    intercept = np.atleast_1d(point["intercept"])
    np.testing.assert_allclose(intercept, peer.intercept_ - (K > 2) * peer.intercept_.mean(), atol=1e-5)


@pytest.mark.parametrize("period", [0, 17])
def test_many_rows_have_the_mode_of_scikit_learn_whatever_their_order(period):
    """The search begins at every 17th row, which may be of one class alone."""
    x, t = rows(8000, 2)
    if period:
        t[::period] = 1
    peer = ScikitLearn(C=2.5**2, tol=1e-12, max_iter=10_000, solver="newton-cg").fit(x, t)
    point = fit(LogisticRegression(np.full(3, 2.5), 1e5, classes=ABC[:2]), (x, t), "map").params
    np.testing.assert_allclose(point["coefficients"], peer.coef_[0], atol=1e-7)
    np.testing.assert_allclose(point["intercept"], peer.intercept_[0], atol=1e-7)


def test_maximum_likelihood_does_not_depend_on_symmetry():
    x, t = rows(200, 3)
    symmetric, pinned = (fit(model, (x, t), "ml") for model in (SYMMETRIC, PINNED))
    np.testing.assert_allclose(symmetric.log_predictive(x), pinned.log_predictive(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(symmetric.params["coefficients"].sum(0), 0, atol=1e-12)


def test_the_two_softmax_priors_differ_and_only_one_is_symmetric():
    x, t = rows(30, 3)
    order = np.array([2, 0, 1])
    for symmetric in (True, False):
        model = LogisticRegression([1.0, 1.0, 1.0], 1.0, classes=ABC, symmetric=symmetric)
        p = np.exp(fit(model, (x, t), "map").log_predictive(x))
        other = np.exp(fit(model, (x, order[t]), "map").log_predictive(x))[:, order]
        assert np.allclose(p, other, atol=1e-10) == symmetric


def test_pinning_two_classes_changes_nothing():
    x, t = rows(30)
    other = LogisticRegression(LOGIT.prior_scale, 2.0, symmetric=False)
    one, two = (model.map(model.statistics(x, t)) for model in (LOGIT, other))
    np.testing.assert_allclose(one["coefficients"], two["coefficients"])


# -- existence ---------------------------------------------------------------------------------------------------------

X, T = rows(40)
LINE = np.linspace(-1, 1, 10)[:, None]
HALF = (LINE[:, 0] > 0).astype(int)
SEPARABLE = {
    "complete": (LINE, HALF),
    "up to ties": (np.array([[0.0], [1], [1], [2]]), np.array([0, 0, 1, 1])),
    "by two columns": (X, (X @ [1, -2, 0.5] > 0.3).astype(int)),
    "one class of three": (np.r_[X, X + 100], np.r_[T, np.full(40, 2)]),
    "three by a score each": (X, (X @ [[1, 0, 1], [0, 1, 1], [0.5, 0, 0]]).argmax(1)),
    "one corner": (np.c_[X[:, :1], X[:, 1] > 1], np.where(X[:, 1] > 1, 1, T)),
}


@pytest.mark.parametrize(
    "kind, name",
    [(LogisticClassifier, name) for name in SEPARABLE]
    + [(ProbitClassifier, name) for name, (_, t) in SEPARABLE.items() if t.max() == 1],
)
def test_separable_classes_have_no_maximum_likelihood_but_a_mode(kind, name):
    x, t = SEPARABLE[name]
    refuses(lambda: kind(inference="ml").fit(x, t), r"does not exist: .* separates .*; use 'map' or 'nuts'")
    for scale in (2.5, 1e3):
        model = kind(scale, inference="map").fit(x, t)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.predict_proba(x)).all()


@pytest.mark.parametrize("symmetric", [True, False])
def test_overlap_of_every_pair_is_enough(symmetric):
    for seed in range(5):
        x, t = rows(100, 3, seed)
        model = LogisticClassifier(symmetric=symmetric, inference="ml").fit(x, t)
        check_overlap(x, t, ABC, ())  # linear programming agrees
        assert np.isfinite(model.coef_).all()


def test_real_data_that_thirty_columns_separate():
    x, t = load_breast_cancer(return_X_y=True)
    refuses(lambda: LogisticClassifier(inference="ml").fit(x, t), "a combination of the columns separates")
    assert LogisticClassifier(inference="map").fit(x, t).score(x, t) > 0.98


def test_a_certain_row_does_not_pass_for_separation():
    # one row so far out that its probability rounds to 1: linear programming decides, and finds the overlap
    x, t = rows(100, D=1)
    x, t = np.append(x, [[1e3]], 0), np.append(t, int(np.corrcoef(x[:, 0], t)[0, 1] > 0))
    point = fit(LogisticRegression([1.0]), (x, t), "ml").params
    peer = ScikitLearn(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(x / 100, t)
    np.testing.assert_allclose(point["coefficients"], peer.coef_[0] / 100, rtol=1e-5)


# -- NUTS --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("model", [SYMMETRIC, PINNED], ids=["symmetric", "pinned"])
def test_softmax_takes_nuts_few_steps(model):
    stats = fit(model, data(model, 40), SAMPLER, seed=0).sample_stats
    assert stats["diverging"].sum() == 0
    assert stats["n_steps"].mean() < 20


@pytest.mark.compiles
def test_separable_classes_by_nuts():
    draws = fit(LogisticRegression([2.5]), (LINE, HALF), SAMPLER, seed=0)
    assert np.isfinite(draws.samples["coefficients"]).all() and (draws.samples["coefficients"] > 0).mean() > 0.99


# -- the estimators ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LogisticClassifier, ProbitClassifier])
@pytest.mark.parametrize("inference", ["ml", "map"])
def test_standardising_is_undone(kind, inference):
    x, t = rows(120)
    weight = np.random.default_rng(0).integers(0, 3, 120).astype(float)
    centre = np.average(x, axis=0, weights=weight)
    scale = np.sqrt(np.average((x - centre) ** 2, axis=0, weights=weight))
    z = (x - centre) / scale
    ours = kind(0.5, inference=inference).fit(x, t, weight)
    by_hand = kind(0.5, standardize=False, inference=inference).fit(z, t, weight)
    np.testing.assert_allclose(ours.predict_proba(x), by_hand.predict_proba(z), rtol=1e-9)
    np.testing.assert_allclose(ours.coef_ * scale, by_hand.coef_, rtol=1e-9)
    link = ndtr if kind is ProbitClassifier else expit
    np.testing.assert_allclose(link(x @ ours.coef_[0] + ours.intercept_), ours.predict_proba(x)[:, 1], rtol=1e-9)
    other = x * [1e4, 1e-6, -1] + [1e6, 0, 3]
    units = kind(0.5, inference=inference).fit(other, t, weight)
    np.testing.assert_allclose(units.predict_proba(other), ours.predict_proba(x), rtol=1e-6)


@pytest.mark.parametrize("symmetric", [True, False])
def test_reported_coefficients_of_softmax(symmetric):
    x, t = rows(100, 3)
    labels = np.array(["no", "maybe", "yes"])[t]
    model = LogisticClassifier(symmetric=symmetric, inference="map").fit(x * 10 + 3, labels)
    assert model.coef_.shape == (3, 3) and model.intercept_.shape == (3,)
    p = np.exp(log_softmax((x * 10 + 3) @ model.coef_.T + model.intercept_, axis=1))
    np.testing.assert_allclose(model.predict_proba(x * 10 + 3), p, rtol=1e-9)
    assert (model.predict(x * 10 + 3) == model.classes_[p.argmax(1)]).all()
    assert (model.coef_[-1] == 0).all() != symmetric
    posterior = model.to_arviz().posterior
    scored = ["maybe", "no", "yes"] if symmetric else ["maybe", "no"]
    assert posterior["coefficients"].dims == ("chain", "draw", "class", "feature")
    assert posterior.coords["class"].values.tolist() == scored
    np.testing.assert_allclose(posterior["coefficients"][0, 0], model.coef_[: len(scored)])


@pytest.mark.compiles
def test_draws_are_told_of_the_columns_as_given():
    x, t = rows(60)
    frame = pd.DataFrame(x * [1, 100, 0.01] + [0, 1e3, 0], columns=["age", "height", "dose"])
    model = LogisticClassifier(inference=SAMPLER, random_state=0).fit(frame, t)
    tree = model.to_arviz()
    assert tree.posterior.coords["feature"].values.tolist() == ["age", "height", "dose"]
    np.testing.assert_allclose(tree.posterior["coefficients"].mean(("chain", "draw")), model.coef_[0], rtol=1e-12)
    intercept = tree.posterior["intercept"]
    rounding = 1e-12 * float(abs(intercept).mean())  # the draws cancel: their mean is near 0
    np.testing.assert_allclose(intercept.mean(), model.intercept_[0], rtol=1e-12, atol=rounding)
    assert "diverging" in tree.sample_stats
    a, b = tree.posterior["intercept"].values[..., None], tree.posterior["coefficients"].values
    p = expit(a + b @ frame.to_numpy().T).mean((0, 1))
    np.testing.assert_allclose(model.predict_proba(frame)[:, 1], p, rtol=1e-9)
    again = clone(model).fit(frame, t)
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))


def ml(x, t):
    return LogisticClassifier(inference="ml").fit(x, t)


ERRORS = {
    "missing": (lambda: LOGIT.check([[0, 1, np.nan]]), "column 2: the value in row 0 is NaN: missing"),
    "missing at predict": (
        lambda: LogisticClassifier(inference="map").fit(X, T).predict([[0, np.inf, 0]]),
        r"column 'x1': the value in row 0 is infinite \(inf\)",
    ),
    "codes": (lambda: LOGIT.statistics(X, T + 1), r"t must hold class codes 0..1, got \[1, 2\]"),
    "names": (lambda: LOGIT.statistics(X, np.full(40, "a")), r"t must hold class codes 0..1, got \['a'\]"),
    "lengths": (lambda: LOGIT.statistics(X, T[1:]), "one value for each of the 40 rows"),
    "width": (lambda: LOGIT.statistics(X[:, :2], T), "expected rows of 3 columns"),
    "text": (lambda: LOGIT.statistics(np.full((40, 3), "a"), T), "the columns must be numbers"),
    "classes": (lambda: LogisticRegression([1.0], classes=("a",)), "two or more distinct labels"),
    "probit": (lambda: ProbitRegression([1.0], classes=ABC), "takes two classes, got 3"),
    "probit of three": (lambda: ProbitClassifier(inference="map").fit(X, np.arange(40) % 3), "use LogisticClassifier"),
    "scale": (lambda: LogisticRegression([-1.0]), "prior_scale must be positive"),
    "scalar": (lambda: LogisticRegression(1.0), "prior_scale must have at least 1 axes"),
    "bad scale": (lambda: LogisticClassifier(intercept_scale=-1).fit(X, T), "intercept_scale must be a finite number"),
    "one class": (lambda: LogisticClassifier().fit(X, np.zeros(40)), r"y holds one class only, \[0.0\]"),
    "one class left": (lambda: LogisticClassifier().fit(X, T, 1.0 * T), r"y holds one class only, \[1\]"),
    "no rows": (lambda: fit(SYMMETRIC, (X, T), "ml"), r"classes \['c'\] have no rows; use 'map' or 'nuts'"),
    "collinear": (lambda: ml(np.c_[X, X.sum(1)], T), r"columns \['x.'\] are linear combinations of the others"),
    "constant": (lambda: ml(np.c_[X, np.full(40, 0.1)], T), r"columns \['x3'\] are constant"),
    "alone": (lambda: ml(np.c_[X, T], T), "column 'x3' alone separates class 0 from the others"),
    "exact": (lambda: LogisticClassifier(inference="exact").fit(X, T), "has no exact posterior"),
}


@pytest.mark.parametrize("call, message", ERRORS.values(), ids=ERRORS.keys())
def test_errors_name_what_is_wrong(call, message):
    refuses(call, message, (ValueError, TypeError))


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e200, 1e307])
@pytest.mark.parametrize("make", [LogisticClassifier, ProbitClassifier])
def test_units_beyond_squares_do_not_matter(make, size):
    """Squares of 1e-170 are 0, of 1e200 infinite: columns are standardised all the same."""
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    want = make(inference="map").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(make(inference="map").fit(X * size, y).predict_proba(X * size), want, rtol=1e-12)


def test_rows_whose_scores_overflow():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    classifier = LogisticClassifier(inference="map", standardize=False).fit(X * 0.01, y)
    probability = classifier.predict_proba([[1e308, 1e308], [1e308, -1e308], [-1.7e308, 1.0]])
    assert np.isfinite(probability).all() and (probability.max(1) == 1).all()
    with pytest.raises(ValueError, match=r"column 'x0': the value 1e.308 in row 0 is too far from the rows of the fit"):
        LogisticClassifier(inference="map").fit(X * 0.01, y).predict_proba([[1e308, 0.0]])


def test_classes_without_rows_are_declared():
    X = np.random.default_rng(0).normal(size=(30, 2))
    one = LogisticClassifier(inference="map").fit(X, ["a"] * 30, classes=["a", "b"])
    assert one.classes_.tolist() == ["a", "b"] and (one.predict_proba(X)[:, 0] > 0.5).all()
    three = LogisticClassifier(inference="map").fit(X, np.resize(["a", "c"], 30), classes=["c", "b", "a"])
    assert (three.predict_proba(X).argmin(1) == 1).all()
    refuses(lambda: LogisticClassifier().fit(X, ["a"] * 30, classes=["a"]), "classes holds one label")


@pytest.mark.parametrize("overlap", [1e-6, 1e-9, 1e-11])
@pytest.mark.parametrize("width", [1, 10])
def test_classes_that_barely_overlap_are_not_separable(overlap, width):
    """linprog keeps its constraints to 1e-7, and calls this separated."""
    x, t = np.r_[np.linspace(-width, 0, 20), np.linspace(-overlap, width, 20)], np.repeat([0, 1], 20)
    check_overlap(x[:, None] / x.std(), t, (0, 1), ())
    turned = np.column_stack([np.repeat(x, 2), np.tile([-1.0, 1.0], 40)]) @ [[0.6, 0.8], [-0.8, 0.6]]
    check_overlap(turned / turned.std(0), np.repeat(t, 2), (0, 1), ())
    assert np.isfinite(LogisticClassifier(inference="ml").fit(x[:, None], t).coef_).all()
    x[20:] += 2 * overlap
    refuses(lambda: check_overlap(x[:, None] / x.std(), t, (0, 1), ()), "separates")
