"""Rows without labels: against the mixture that SciPy writes, a grid of the parameters, and held-out rows."""

import functools
import itertools
import warnings

import laws
import numpy as np
import pandas as pd
import pytest
from laws import compiled
from numpyro.diagnostics import effective_sample_size
from numpyro.infer.util import log_density
from refusals import refuses
from scipy import stats
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import bayesgen as bg
from bayesgen.inspection import unlabelled_weight
from bayesgen.models import BetaBernoulli, DirichletCategorical, LabelNoise, NaiveBayes, SeparationPrior, UnknownClasses
from bayesgen.models.unknown_labels import PartlyLabelled

X, Y = load_iris(return_X_y=True)
GD, NB = (
    functools.partial(bg.LatentClassClassifier, model, inference="map") for model in ("discriminant", "naive bayes")
)
SOME = np.where(np.arange(150) % 5 == 0, Y, np.nan)


def two_clouds(rng, n=60):
    t = rng.integers(2, size=n)
    return rng.normal(size=(n, 1)) + 2.5 * t[:, None], np.where(np.arange(n) < 12, t, np.nan)


def test_maximum_likelihood_is_where_a_search_over_the_mixture_ends():
    x, y = two_clouds(np.random.default_rng(0))
    unknown = np.isnan(y)
    weight, code = np.where(unknown, 0.6, 1.0), np.nan_to_num(y).astype(int)
    found = GD(covariance="diagonal", inference="ml").fit(x, y, weight).posterior_.params

    def loss(z):
        share, mean, sd = 1 / (1 + np.exp(z[0])), z[1:3], np.exp(z[3:5])
        joint = np.log([share, 1 - share]) + stats.norm.logpdf(x, mean, sd)
        each = np.where(unknown, logsumexp(joint, axis=1), joint[np.arange(len(y)), code])
        return -(weight * each).sum()

    start = [0.0, *found["gaussian.mean"][:, 0] + 0.1, 0.1, -0.1]
    end = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000}).x
    assert found["classes.probability"][0] == pytest.approx(1 / (1 + np.exp(end[0])), abs=1e-5)
    np.testing.assert_allclose(found["gaussian.mean"][:, 0], end[1:3], atol=1e-5)
    np.testing.assert_allclose(found["gaussian.variance"][:, 0], np.exp(2 * end[3:5]), atol=1e-5)


@pytest.mark.parametrize(("covariance", "shared"), [(c, s) for c in ("full", "diagonal", "isotropic") for s in (0, 1)])
def test_the_likelihood_is_that_of_a_mixture(covariance, shared):
    """Summed from T(x) by row, in NumPy and in JAX, against the multivariate normal of SciPy."""
    classifier = GD(covariance=covariance, shared=bool(shared)).fit(X, SOME)
    statistics, model, params = classifier.statistics_, classifier.model_, classifier.posterior_.params
    unknown, known = UnknownClasses(model), ~np.isnan(SOME)
    assert isinstance(statistics, PartlyLabelled)
    leaf = model.gaussian.select_class(model.site(params, "gaussian"), ...)
    covariances = leaf["covariance"] if covariance == "full" else [np.diag(v) for v in leaf["variance"]]
    joint = np.log(params["classes.probability"]) + np.stack(
        [stats.multivariate_normal(m, c).logpdf(X) for m, c in zip(leaf["mean"], covariances, strict=True)], axis=1
    )
    expected = joint[known, Y[known]].sum() + logsumexp(joint[~known], axis=1).sum()
    assert unknown.log_likelihood(params, statistics) == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(unknown.labels(params, statistics), softmax(joint[~known], axis=1), atol=1e-9)
    if bool(shared) != (covariance == "full"):
        return  # to compile takes seconds
    with laws.x64():
        traced = compiled(unknown.log_likelihood, dict(params), statistics)(dict(params), statistics)
    assert float(traced) == pytest.approx(expected, rel=1e-10)


def test_mixed_columns_with_gaps_reach_a_point_that_no_step_betters():
    table = bg.data.load("penguins")
    species = table.pop("species").where(np.arange(344) % 4 == 0)
    classifier = NB().fit(table, species)
    statistics, model = classifier.statistics_, classifier.model_
    labels = UnknownClasses(model).labels(classifier.posterior_.params, statistics)
    again = model.map(statistics.expected(model, labels))
    for site, value in classifier.posterior_.params.items():
        np.testing.assert_allclose(again[site], value, rtol=1e-6)
    assert statistics.expected(model, labels).classes.sums.sum() == pytest.approx(344)


@pytest.mark.slow  # what it samples from is compared with SciPy's mixture above
def test_draws_are_of_the_posterior_with_the_label_summed_out():
    """One coin in each of two classes and few labels, against a grid of the two probabilities and the class share."""
    bits = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0], bool)[:, None]
    y = np.array([0, 0, 0, 0, 1, 1, *[np.nan] * 6])
    classifier = NB("bernoulli", inference=bg.NUTS(1000, 500, 2), random_state=0).fit(bits, y)
    grid = (np.arange(60) + 0.5) / 60
    share, a, b = np.meshgrid(grid, grid, grid, indexing="ij")
    log = np.zeros(share.shape)
    for one, t in zip(bits[:, 0], y, strict=True):
        joint = share * (a if one else 1 - a), (1 - share) * (b if one else 1 - b)
        log += np.log(joint[0] + joint[1] if np.isnan(t) else joint[int(t)])
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    draws = classifier.posterior_.flat
    mean = {"classes.probability": (weight * share).sum(), "bernoulli.probability": (weight * a).sum()}
    for site, expected in mean.items():
        values = draws[site].reshape(len(draws[site]), -1)[:, 0]
        assert abs(values.mean() - expected) < 5 * values.std() / np.sqrt(len(values) / 4)
    p = classifier.predict_proba([[True]])[0]
    expected = np.array([(weight * share * a).sum(), (weight * (1 - share) * b).sum()])
    np.testing.assert_allclose(p, expected / expected.sum(), atol=0.02)


@pytest.mark.compiles
@pytest.mark.parametrize("noise", [None, LabelNoise(0.2, 2)], ids=["unlabelled", "wrong"])
def test_no_chain_exchanges_classes(noise, capfd):
    """Three classes apart, three labels of each, or a fifth of all labels wrong: from the prior chains did not meet."""
    rng, y = np.random.default_rng(1), np.arange(60) % 3
    x = rng.normal(size=(60, 2)) + 3 * np.stack([y, y], axis=1)
    exchanged = np.where(rng.random(60) < 0.2, (y + rng.integers(1, 3, 60)) % 3, y)
    labels = np.where(np.arange(60) < 9, y, np.nan) if noise is None else exchanged
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bg.inference.SamplerWarning)  # few draws: R-hat is noise
        own = {"covariance": "diagonal", "label_noise": noise, "random_state": 0}
        classifier = GD(inference=bg.NUTS(100, 200, 4), **own).fit(x, labels)
    mean = classifier.posterior_.samples["gaussian.mean"].mean(axis=3)  # (chains, draws, classes)
    np.testing.assert_array_equal(mean.argsort(axis=2), np.broadcast_to(np.arange(3), mean.shape))
    np.testing.assert_allclose(mean.mean(axis=1), np.broadcast_to([0.0, 3.0, 6.0], (4, 3)), atol=1.0)
    within = np.array([effective_sample_size(chain[None]) for chain in mean])  # blind to what other chains do
    square = mean.var(axis=1, ddof=1) * np.maximum(1 / within, 1 / mean.shape[1])  # below 0 where draws alternate
    apart = (mean.mean(axis=1)[:, None] - mean.mean(axis=1)) / np.sqrt(square[:, None] + square)
    assert np.abs(apart).max() < 5
    assert capfd.readouterr().err == ""  # the compiler of JAX 0.12 wrote of a kernel that it could not make


@pytest.mark.compiles
def test_chains_begin_at_labels_as_told_where_there_is_no_mode():
    """A coin of Beta(1/2, 1/2) without a tail has no mode; NUTS samples all the same."""
    bits, y = np.array([1, 1, 1, 0, 0, 1, 0], bool)[:, None], np.array([0, 0, 1, 1, 1, np.nan, np.nan])
    coin = BetaBernoulli(0.5, 0.5)
    refuses(lambda: NB({"x0": coin}).fit(bits, y), "mode")
    classifier = NB({"x0": coin}, inference=bg.NUTS(200, 200, 2), random_state=0).fit(bits, y)
    first, second = classifier.posterior_.flat["x0.probability"].mean(0)
    assert first > 0.6 > second


def test_gaps_and_weights(tmp_path):
    first, known = GD(shared=True).fit(X, SOME), ~np.isnan(SOME)
    names = np.array(["p", "q", "r"])[Y].astype(object)
    names[~known] = None
    for y in (names, pd.Series(names), pd.Series(SOME, dtype="Int64")):
        other = GD(shared=True).fit(X, y)
        np.testing.assert_allclose(other.predict_proba(X), first.predict_proba(X), rtol=1e-9, atol=1e-12)
    labelled = bg.GaussianDiscriminantClassifier(shared=True, inference="map").fit(X[known], SOME[known])
    none = GD(shared=True).fit(X, SOME, known * 1.0)
    np.testing.assert_array_equal(none.predict_proba(X), labelled.predict_proba(X))
    exact = GD(inference="exact").fit(X, Y)  # every row has one: nothing is different
    np.testing.assert_array_equal(
        exact.predict_proba(X), bg.GaussianDiscriminantClassifier().fit(X, Y).predict_proba(X)
    )
    assert not hasattr(first, "log_evidence_") and not hasattr(first, "partial_fit")
    first.save(tmp_path / "own.safetensors")
    np.testing.assert_array_equal(bg.load(tmp_path / "own.safetensors").predict_proba(X), first.predict_proba(X))


@pytest.mark.parametrize("noise", [None, LabelNoise(0.2, 5)], ids=["unlabelled", "wrong"])
def test_the_program_row_by_row_is_the_likelihood_of_the_statistics(noise):
    """NumPyro's density of the program, summed over the classes of the rows whose class is not known."""
    x = {"coin": np.array([1.0, 0.0, np.nan, 1.0]), "other": np.array([1.0, 1.0, 0.0, 0.0])}
    t, leaves = np.array([0, 1, -1, -1]), {"coin": BetaBernoulli(2.0, 3.0), "other": BetaBernoulli(1.5, 2.0)}
    coins = NaiveBayes(DirichletCategorical(2.0, ["a", "b"]), leaves)
    model = UnknownClasses(coins, noise and noise.confusion(["a", "b"]))
    statistics = model.statistics(x, t)
    point = bg.fit(model, statistics, "map").params
    unknown = t < 0 if noise is None else np.ones(4, bool)
    with laws.x64():
        prior = log_density(model.latents, (), {}, dict(point))[0]
        seen = []
        for classes in itertools.product([0, 1], repeat=int(unknown.sum())):
            every = t.copy()
            every[unknown] = classes
            seen.append(float(log_density(model, (x, t), {}, {**point, "t": every})[0] - prior))
    assert logsumexp(seen) == pytest.approx(float(model.log_likelihood(point, statistics)), rel=1e-9)


@pytest.mark.compiles
def test_a_separation_prior_takes_rows_without_labels():
    """It has no closed form: the mode is searched on the density with the classes summed out."""
    prior = SeparationPrior(X.mean(0), 10.0, X.std(0))
    fitted = GD(covariance="diagonal", prior=prior).fit(X, SOME)
    assert fitted.score(X, Y) > 0.9
    model, point = UnknownClasses(fitted.model_), fitted.posterior_.params
    best = float(model.log_likelihood(point, fitted.statistics_))
    for step in (0.98, 1.02):
        moved = point | {"gaussian.mean": np.asarray(point["gaussian.mean"]) * step}
        assert float(model.log_likelihood(moved, fitted.statistics_)) < best


def held_out(table, classifier, labels=5, seeds=4):
    """Mean log loss of half the rows, with a few labels of each class in the other half, and without the others."""
    (x, y), loss = table, np.zeros(2)
    for seed in range(seeds):
        test, pool = np.array_split(np.random.default_rng(seed).permutation(len(y)), 2)
        known = np.concatenate([pool[y[pool] == k][:labels] for k in np.unique(y)])
        some = np.full(len(y), np.nan)
        some[known] = y[known]
        for i, rows in enumerate((pool, known)):
            probability = classifier.fit(x[rows], some[rows]).predict_proba(x[test])
            loss[i] += bg.evaluation.log_loss(y[test], probability) / seeds
    return loss


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_rows_without_labels_help_where_classes_are_clouds(load):
    some, without = held_out(load(return_X_y=True), GD(shared=True))
    assert some < 0.75 * without


@pytest.mark.compiles
def test_the_weight_is_chosen_by_labelled_rows():
    x, y = load_breast_cancer(return_X_y=True)
    some = np.where(np.arange(len(y)) % 12 == 0, y, np.nan)
    wrong, right = NB(), GD(shared=True)
    assert unlabelled_weight(wrong, x, some, [0.0, 1.0]).best == 0  # columns that depend on each other
    found = unlabelled_weight(right, x, some, [0.0, 1.0])
    assert found.best == 1 and found.log_loss[1] < found.log_loss[0]


def climbed(codes, alpha, labels, steps):
    """Expectation-maximisation of Dawid and Skene's mode, votes -1 where missing: log posterior, labels (n, K)."""
    votes = np.stack([codes == value for value in range(len(alpha))], 2).astype(float)  # (n, raters, values)
    for _ in range(steps):
        errors = np.einsum("ik,ijv->jkv", labels, votes) + alpha - 1
        errors /= errors.sum(2, keepdims=True)
        joint = np.log(labels.mean(0)) + np.einsum("ijv,jkv->ik", votes, np.log(np.maximum(errors, 1e-300)))
        labels = softmax(joint, 1)
    prior = ((alpha - 1) * np.log(np.maximum(errors, 1e-300))).sum()
    return logsumexp(joint, axis=1).sum() + prior, labels


def test_raters_who_did_not_see_every_item():
    rng = np.random.default_rng(4)
    truth, alpha = rng.integers(0, 3, 90), np.where(np.eye(3), 4.0, 1.0)
    said = [np.where(rng.random(90) < right, truth, rng.integers(0, 3, 90)) for right in (0.85, 0.7, 0.6, 0.6, 0.1)]
    codes = np.where(rng.random((90, 5)) < 0.35, -1, np.stack(said, 1))
    X = pd.DataFrame({f"r{j}": pd.Series(np.array(["0", "1", "2", None])[codes[:, j]]) for j in range(5)})
    leaf = DirichletCategorical(alpha, list("012"), per_class=True)
    made = bg.LatentClassClassifier(
        features=dict.fromkeys(X, leaf), classes=list("012"), inference="map", random_state=0
    ).fit(X)
    majority = np.stack([(codes == value).sum(1) for value in range(3)], 1) + 0.1
    best, _ = climbed(codes, alpha, majority / majority.sum(1, keepdims=True), 3000)
    found = made.predict_proba(X)
    height, again = climbed(codes, alpha, found, 1)
    np.testing.assert_allclose(again, found, atol=1e-4)  # the fixed point of these steps, too
    assert height > best - 1e-3


def test_clumps_of_equal_rows_are_classes_and_a_sensor_that_sticks_is_told():
    rows = np.repeat([[0.0], [5.0]], 5, axis=0)
    found = bg.LatentClassClassifier(classes=2, order_by=0, inference="map", random_state=0).fit(rows)
    np.testing.assert_allclose(found.predict_proba(rows), np.repeat(np.eye(2), 5, axis=0), atol=1e-6)
    stuck = np.concatenate([np.random.default_rng(0).normal(size=(30, 1)), [[9.0]] * 3])
    with pytest.raises(ValueError, match="column 'x0': the variance falls to 0 where rows repeat"):
        bg.LatentClassClassifier(classes=2, inference="ml", random_state=0).fit(stuck)


def test_answers_that_nobody_gave():
    """At the mode under Dirichlet(1) and by "ml" their probability is 0 in every class, which is told."""
    X = pd.DataFrame({"q": pd.Categorical([*"aabbaabb"], [*"abc"]), "r": pd.Categorical([*"xxyyxxyy"], [*"xyz"])})
    new = pd.DataFrame({"q": ["c", "a"], "r": ["z", "z"]})
    given = {"q": DirichletCategorical(2.0, [*"abc"]), "r": DirichletCategorical(2.0, [*"xyz"])}
    found = bg.LatentClassClassifier(features=given, classes=2, random_state=0).fit(X).predict_proba(new)
    assert np.isfinite(found).all() and found.sum(1) == pytest.approx([1, 1])
    for inference in ("map", "ml"):
        fitted = bg.LatentClassClassifier(classes=2, random_state=0, inference=inference).fit(X)
        with pytest.warns(UserWarning, match="2 rows have probability 0 under every class; they get the class prior"):
            found = fitted.predict_proba(new)
        np.testing.assert_allclose(found, [fitted.posterior_.params["classes.probability"]] * 2)


def test_an_infinite_value_without_a_class_is_named():
    rows = pd.DataFrame({"a": np.arange(9.0), "b": [*range(8), -np.inf]})
    refuses(lambda: bg.LatentClassClassifier(classes=2).fit(rows), "column 'b': value -inf in row 8 is infinite")
