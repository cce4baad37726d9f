"""Classes that no row tells: enumeration, three Gaussians, and the anaesthetists of Dawid and Skene (1979)."""

import itertools
from dataclasses import replace

import arviz_stats
import numpy as np
import pandas as pd
import pytest
from laws import near
from refusals import refuses
from scipy import stats
from scipy.special import logsumexp, xlogy
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from test_own_leaf import Cauchy

import bayesgen as bg
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    DirichletMultinomial,
    MarkovChain,
    NormalInverseGamma,
    NormalKnownVariance,
    UnknownClasses,
    latent_classes,
)
from bayesgen.posterior import ParameterDraws

# Table 1 of Dawid and Skene: three readings of the first anaesthetist, one of each of four others
PATIENTS = """111 1 1 1 1|333 4 3 3 4|112 2 1 2 2|222 3 1 2 1|222 3 2 2 2|222 3 3 2 2|122 2 1 1 1|333 3 4 3 3
222 2 2 2 3|232 2 2 2 3|444 4 4 4 4|222 3 3 4 3|111 1 1 1 1|222 3 2 1 2|121 1 1 1 1|111 2 1 1 1
111 1 1 1 1|111 1 1 1 1|222 2 2 2 1|222 1 3 2 2|222 2 2 2 2|222 2 2 2 1|222 3 2 2 2|221 2 2 2 2
111 1 1 1 1|111 1 1 1 1|232 2 2 2 2|111 1 1 1 1|111 1 1 1 1|112 1 1 2 1|111 1 1 1 1|333 3 2 3 3
111 1 1 1 1|222 2 2 2 2|222 3 2 3 2|433 4 3 4 3|221 2 2 3 2|232 3 2 3 3|333 3 4 3 2|111 1 1 1 1
111 1 1 1 1|121 2 1 1 1|232 2 2 2 2|121 1 1 1 1|222 2 2 2 2"""
READINGS = [patient.split() for patient in PATIENTS.replace("\n", "|").split("|")]
FIRST, OTHERS = ("one", "two", "three", "four"), ("b", "c", "d", "e")
RATINGS = pd.DataFrame([[*(own[0].count(k) for k in "1234"), *own[1:]] for own in READINGS], columns=[*FIRST, *OTHERS])


def raters(alpha=1.0, **settings):
    first = {FIRST: DirichletMultinomial(alpha, **({"categories": FIRST} if np.ndim(alpha) == 0 else {}), **settings)}
    return first | {other: DirichletCategorical(alpha, list("1234"), **settings) for other in OTHERS}


def counts():
    """Ratings of each patient by each anaesthetist, (45, 5, 4)."""
    return np.array([[[reading.count(k) for k in "1234"] for reading in patient] for patient in READINGS], float)


def dawid_skene(labels):
    """Their own algorithm, equations 2.3 to 2.5, from probabilities of the classes; log likelihood of the readings."""
    n = counts()
    for _ in range(3000):
        share, errors = labels.mean(0), np.einsum("ij,ikl->kjl", labels, n)
        errors /= errors.sum(-1, keepdims=True)
        joint = np.log(share) + np.einsum("ikl,kjl->ij", n, np.log(np.maximum(errors, 1e-300)))
        labels = np.exp(joint - logsumexp(joint, axis=1)[:, None])
    return share, errors, logsumexp(joint, axis=1).sum(), labels


def test_the_anaesthetists_are_those_that_were_published():
    """Maximum likelihood from the start of the paper, the share of each rating, has its estimates."""
    fitted = bg.LatentClassClassifier(features=raters(), classes=4, starts=1, random_state=0).fit(RATINGS)
    model, begun = fitted.model_, fitted.statistics_
    start = counts().sum(1) / counts().sum((1, 2))[:, None]
    unknown = UnknownClasses(model)
    own = bg.fit(unknown, replace(begun, start=start), "ml").params
    np.testing.assert_array_equal(own["classes.probability"].round(2), [0.4, 0.42, 0.11, 0.07])
    first = [[0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0], [0, 0.34, 0.66, 0], [0, 0, 0.56, 0.44]]
    np.testing.assert_array_equal(own["+".join(FIRST) + ".probability"].round(2), first)
    share, errors, height, _ = dawid_skene(start)
    np.testing.assert_allclose(own["classes.probability"], share, atol=1e-7)
    np.testing.assert_allclose(own["b.probability"], errors[1], atol=1e-7)
    ways = stats.multinomial(3, [0.25] * 4).logpmf(counts()[:, 0]).sum() - 45 * 3 * np.log(0.25)  # orders of readings
    np.testing.assert_allclose(float(unknown.log_likelihood(own, begun)) - ways, height, atol=1e-8)


def test_priors_tell_the_classes_apart():
    """A prior that expects the right rating to be the most frequent one names the classes, whatever the seed."""
    heavy = np.where(np.eye(4), 4.0, 1.0)
    settings = {"classes": ["1", "2", "3", "4"], "order_by": "one"}
    found = [
        bg.LatentClassClassifier(features=raters(heavy, per_class=True), random_state=seed, **settings).fit(RATINGS)
        for seed in (0, 1)
    ]
    assert len(found[0].free_) == 0
    np.testing.assert_array_equal(found[0].predict_proba(RATINGS), found[1].predict_proba(RATINGS))
    majority = np.array(list("1234"))[counts().sum(1).argmax(1)]
    assert (found[0].predict(RATINGS) == majority).mean() > 0.9


def mixture(seed=0):
    """Three Gaussians in two columns, of which the second is a coin."""
    rng = np.random.default_rng(seed)
    t = rng.permutation(np.repeat([0, 1, 2], [60, 40, 100]))
    return pd.DataFrame({"z": rng.normal([-5.0, 0.0, 6.0], 1.0, (200, 3))[np.arange(200), t],
                         "coin": rng.random(200) < np.array([0.9, 0.5, 0.1])[t]}), t  # fmt: skip


@pytest.mark.compiles
def test_statistics_of_unknown_classes_have_a_text():
    """Arrays stand where the default is None."""
    rows = np.random.default_rng(0).normal(size=(40, 2))
    assert repr(bg.LatentClassClassifier(classes=2, random_state=0).fit(rows).statistics_).startswith("PartlyLabelled(")


def test_three_gaussians_are_found_and_named():
    X, t = mixture()
    by_column = bg.LatentClassClassifier(classes=["low", "mid", "high"], order_by="z", starts=6, random_state=1).fit(X)
    np.testing.assert_allclose(by_column.posterior_.mean()["gaussian.mean"][:, 0], [-5, 0, 6], atol=0.5)
    assert (by_column.predict(X) == np.array(["low", "mid", "high"])[t]).mean() > 0.98
    by_share = bg.LatentClassClassifier(classes=3, starts=6, random_state=2).fit(X)
    np.testing.assert_array_equal(by_share.free_, [0, 1, 2])
    assert np.all(np.diff(by_share.posterior_.mean()["classes.probability"]) < 0)
    np.testing.assert_allclose(by_share.predict_proba(X)[:, [1, 2, 0]], by_column.predict_proba(X), atol=1e-6)
    likeliest = bg.LatentClassClassifier(classes=3, inference="ml", starts=4, order_by="z", random_state=0).fit(X)
    assert adjusted_rand_score(likeliest.predict(X), t) > 0.95
    shown = by_share.summary()
    assert sum(shown.rows.values()) == pytest.approx(200) and shown.gaps["z"] == 0


def test_labels_from_none_to_all():
    X, t = mixture()
    names = np.array(["b", "c", "a"])[t]
    some = pd.Series(names).where(np.arange(200) < 12)
    # Priors that do not follow the rows, for they would follow other ones.
    leaves = {"z": NormalInverseGamma(0.0, 0.01, 2.0, 4.0), "coin": BetaBernoulli(2.0, 2.0)}
    few = bg.LatentClassClassifier(features=leaves, classes=["a", "b", "c"], random_state=0).fit(X, some)
    assert len(few.free_) == 0 and (few.predict(X) == names).mean() > 0.98
    same = bg.LatentClassClassifier(features=leaves).fit(X, some)  # the classes are those of the labels
    np.testing.assert_array_equal(few.predict_proba(X), same.predict_proba(X))
    named = {"features": leaves, "classes": ["a", "b", "c"]}
    one = bg.LatentClassClassifier(**named, random_state=0).fit(X, some.where(some != "c"))
    assert one.free_.tolist() == ["c"] and (one.predict(X) == names).mean() > 0.98
    every = bg.LatentClassClassifier(**named, inference="exact").fit(X, names)
    exact = bg.NaiveBayesClassifier(leaves).fit(X, names)
    np.testing.assert_array_equal(every.predict_proba(X), exact.predict_proba(X))
    assert every.log_evidence_ == exact.log_evidence_


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_the_evidence_of_few_rows_is_a_sum_over_all_labellings(classes):
    rng = np.random.default_rng(classes)
    X = pd.DataFrame({"bit": rng.integers(0, 2, 4), "size": rng.normal(size=4), "word": ["ab", "b", "aab", "a"]})
    X.loc[2, "size"] = np.nan
    own = np.arange(1.0, classes + 1)  # a prior of each class
    leaves = {"bit": BetaBernoulli(own, 2.0, per_class=True), "size": NormalInverseGamma(0.5, 0.5, 2.0, 2.0)}
    settings = {"features": leaves | {"word": MarkovChain("ab")}, "classes": classes, "class_concentration": 1.5}
    found = bg.LatentClassClassifier(**settings, random_state=0).fit(X)
    x = found.model_.check(found.schema_.read(bg.tables.table.Table(X)))
    every = [
        found.model_.log_evidence(found.model_.statistics(x, np.array(t)))
        for t in itertools.product(range(classes), repeat=4)
    ]
    np.testing.assert_allclose(found.log_evidence_, logsumexp(every), rtol=1e-11)
    if classes > 1:
        labels = found.predict_proba(X)
        assert bound(found.model_, found.statistics_, labels) < found.log_evidence_


def oblong(seed=0, n=200):
    """Three clouds side by side, each ten times as long as wide."""
    rng = np.random.default_rng(seed)
    t = rng.permutation(np.arange(3 * n) % 3)
    along, across = rng.normal(0.0, [5.0, 0.5], (3 * n, 2)).T
    return np.column_stack([along + across + 3 * t, along - across - 3 * t]), t


def agreement(found, truth):
    """Share of rows in the same class, under the best names of the classes found."""
    return max((np.array(names)[found] == truth).mean() for names in itertools.permutations(range(3)))


@pytest.mark.parametrize(("covariance", "shared"), [(c, s) for c in ("full", "diagonal", "isotropic") for s in (0, 1)])
def test_a_mixture_of_gaussians_is_at_least_that_of_scikit_learn(covariance, shared):
    """Oblong clouds for a full covariance, round ones for the others, in which each structure is right."""
    if covariance == "full":
        X, t = oblong()
    else:
        t = np.arange(150) % 3
        X = np.random.default_rng(0).normal(size=(150, 2)) + np.array([[0.0, 0.0], [7.0, 0.0], [0.0, 8.0]])[t]
    peers = {"full": ("full", "tied"), "diagonal": ("diag", "tied"), "isotropic": ("spherical", "tied")}
    peer = GaussianMixture(3, covariance_type=peers[covariance][shared], n_init=5, random_state=0).fit_predict(X)
    own = {"model": "discriminant", "covariance": covariance, "shared": bool(shared), "classes": 3, "starts": 6}
    fitted = bg.LatentClassClassifier(**own, random_state=0).fit(X)
    assert agreement(fitted.predict(X), t) >= max(0.99, agreement(peer, t) - 0.002)
    assert np.all(np.diff(fitted.posterior_.mean()["classes.probability"]) <= 0) and len(fitted.free_) == 3


def test_draws_of_a_shared_covariance_are_matched_too():
    """Only what belongs to a class is renamed with it."""
    X, _ = oblong(n=20)
    own = {"covariance": "isotropic", "shared": True, "classes": 3, "starts": 4, "random_state": 0}
    fitted = bg.LatentClassClassifier("discriminant", **own).fit(X)
    model, statistics = fitted.model_, fitted.statistics_
    known = model.update(statistics.expected(model, statistics.start))
    draws = known.sample_parameters(np.random.default_rng(0), (1, 9))
    turned = {site: v if "variance" in site else np.roll(v, 1, axis=2) for site, v in draws.items()}
    for site, values in latent_classes.matched(model, statistics, turned).items():
        np.testing.assert_array_equal(values, draws[site])
    assert latent_classes.log_evidence(model, statistics) is None


def test_unlabelled_rows_without_a_prior_that_follows_them_are_refused():
    X, _ = mixture()
    with pytest.raises(TypeError, match=r"'z'.*ReferenceGaussian has no posterior .* under a prior"):
        bg.LatentClassClassifier(features={"z": bg.models.ReferenceGaussian()}, classes=2).fit(X)
    with pytest.raises(TypeError, match=r"'z'.*a Cauchy cannot learn from rows without a label"):
        bg.LatentClassClassifier(features={"z": Cauchy(1.0)}, classes=2).fit(X)
    with pytest.raises(ValueError, match=r"y holds the labels \[5\].*\[0, 1\]"):
        bg.LatentClassClassifier(classes=2).fit(X, [5, *[None] * 199])
    refuses(lambda: bg.LatentClassClassifier().fit(X), "y holds no label: give classes=")
    with pytest.raises(ValueError, match="covariance='diagonal' is no setting of model='naive bayes'"):
        bg.LatentClassClassifier(covariance="diagonal", classes=2).fit(X)
    refuses(lambda: bg.LatentClassClassifier("lda", classes=2).fit(X), "model must be one of")
    with pytest.raises(ValueError, match="200 rows have no label: their posterior is a sum over all labellings"):
        bg.LatentClassClassifier(classes=2, inference="exact").fit(X)
    refuses(lambda: bg.LatentClassClassifier(classes=2, order_by="y").fit(X), "order_by is no column of X: 'y'")
    with pytest.raises(TypeError, match="classes must be their number, their names or 'auto', got 'three'"):
        bg.LatentClassClassifier(classes="three").fit(X)
    refuses(lambda: bg.LatentClassClassifier(classes=["a", "a"]).fit(X), "classes must be distinct names")
    fitted = bg.LatentClassClassifier(classes=2, random_state=0).fit(X)
    refuses(lambda: fitted.log_evidence_, "inference='laplace' estimates it", AttributeError)
    refuses(lambda: fitted.partial_fit(X, np.zeros(200)), "no attribute 'partial_fit'", AttributeError)


def test_a_file_keeps_it(tmp_path):
    X, _ = mixture()
    fitted = bg.LatentClassClassifier(classes=3, starts=2, random_state=0).fit(X)
    fitted.save(tmp_path / "model.safetensors")
    again = bg.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.free_, fitted.free_)


def test_draws_are_matched_with_the_classes_of_the_start():
    """Draws with their classes renamed at random are given back their names; log likelihoods are those of rows."""
    X, _ = mixture()
    leaves = {"z": NormalKnownVariance(0.0, 6.0, 1.0), "coin": BetaBernoulli(2.0, 2.0)}
    fitted = bg.LatentClassClassifier(features=leaves, classes=3, random_state=0).fit(X)
    model, statistics = fitted.model_, fitted.statistics_
    rng = np.random.default_rng(0)
    draws = model.update(statistics.expected(model, statistics.start)).sample_parameters(rng, (2, 50))
    place = np.argsort(rng.random((2, 50, 3)), axis=-1)
    shuffled = {site: np.take_along_axis(v, place, 2) for site, v in draws.items() if v.ndim == 3}
    for site, values in latent_classes.matched(model, statistics, shuffled).items():
        np.testing.assert_array_equal(values, draws[site])
    fitted.posterior_ = ParameterDraws(model, draws)
    rows = fitted.to_arviz(X)["log_likelihood"]["x"].values
    mean, share = draws["z.mean"], draws["classes.probability"]
    density = share[..., None, :] * stats.norm(mean[..., None, :], 1.0).pdf(X["z"].to_numpy()[:, None])
    heads, bit = draws["coin.probability"][..., None, :], X["coin"].to_numpy()[:, None]
    np.testing.assert_allclose(rows, np.log((density * np.where(bit, heads, 1 - heads)).sum(-1)), rtol=1e-10)


@pytest.mark.slow
def test_nuts_and_laplace_meet_the_truth_and_each_other():
    X, t = mixture()
    leaves = {"z": NormalKnownVariance(0.0, 6.0, 1.0), "coin": BetaBernoulli(2.0, 2.0)}
    sampler = bg.NUTS(num_warmup=300, num_samples=500, num_chains=2)
    sampled = bg.LatentClassClassifier(features=leaves, classes=3, inference=sampler, random_state=0).fit(X)
    assert adjusted_rand_score(sampled.predict(X), t) > 0.95
    laplace = {
        k: bg.LatentClassClassifier(features=leaves, classes=k, inference="laplace", random_state=0).fit(X)
        for k in (2, 3)
    }
    assert laplace[3].log_evidence_ > laplace[2].log_evidence_ + 50
    for site, values in laplace[3].posterior_.as_draws().flat.items():
        if values.std() > 0:
            near(sampled.posterior_.samples[site], values.mean(0), values.var(0) / len(values), site)
    two, three = (float(arviz_stats.loo(fitted.to_arviz(X)).elpd) for fitted in (laplace[2], sampled))
    assert three > two + 50


@pytest.mark.slow
def test_laplace_times_the_ways_to_rename_is_the_exact_evidence():
    """Twelve rows in two groups far apart: the sum over all divisions, and the estimate at one of two modes."""
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(-6, 1, 6), rng.normal(6, 1, 6)])[:, None]
    leaf = {0: NormalKnownVariance(0.0, 8.0, 1.0)}
    fitted = bg.LatentClassClassifier(features=leaf, classes=2, inference="laplace", random_state=0).fit(X)
    estimate = fitted.posterior_.log_evidence + np.log(2)
    assert abs(estimate - fitted.log_evidence_) < 5 * fitted.posterior_.run["log_evidence_error"] + 1e-3


def test_rows_of_unknown_class_are_not_left_out_exactly():
    X = np.r_[-3.0, -2.5, 2.5, 3.0][:, None]
    leaf = {0: NormalKnownVariance(0.0, 8.0, 1.0)}
    fitted = bg.LatentClassClassifier(features=leaf, classes=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"needs inference='exact'.*arviz_stats\.loo\(classifier\.to_arviz\("):
        fitted.leave_one_out(X, fitted.predict(X))


def test_a_likelihood_without_a_bound_is_refused_where_no_other_maximum_is_found():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 2)), 5.0 + 1e-7 * rng.normal(size=(4, 2))])  # four rows nearly equal
    make = bg.LatentClassClassifier(classes=2, inference="ml", random_state=0)
    refuses(lambda: make.fit(X), r"column 'x[01]': the variance falls to 0 .* inference='map'")
    assert np.isfinite(make.set_params(inference="map").fit(X).predict_proba(X)).all()
    with pytest.warns(UserWarning, match=r"in \d+ of 20 starts a class shrank .* use inference='map'"):
        other = make.set_params(model="discriminant", inference="ml").fit(X)  # it may divide the others, too
    assert latent_classes.shrunk(other.model_, other.posterior_.params) is None
    assert np.isneginf(other.statistics_.heights).any()


def test_three_equal_rows_of_a_mixture_are_told():
    """All other starts end at a variance of 0; one is left, at which both classes are the same: a saddle, p = .5."""
    X = np.r_[np.random.default_rng(0).normal(size=(30, 1)), [[0.2]] * 3]
    with pytest.warns(UserWarning, match="a class shrank onto rows of nearly one value, where the likelihood grows"):
        bg.LatentClassClassifier(classes=2, inference="ml", random_state=0).fit(X)
    bg.LatentClassClassifier(classes=2, inference="map", random_state=0).fit(X)  # without a word


STRUCTURES = {
    "columns": {},
    "full": {"model": "discriminant"},
    "shared": {"model": "discriminant", "shared": True},
    "isotropic": {"model": "discriminant", "covariance": "isotropic", "shared": True},
}


@pytest.mark.parametrize("way", ["map", "ml"])
@pytest.mark.parametrize("structure", [*STRUCTURES, "counts"])
def test_a_step_of_all_starts_is_the_step_of_each(structure, way):
    """Sums of T(x) by matrix products, against the sums of rows that are repeated in every class, with weights."""
    rng = np.random.default_rng(0)
    if structure == "counts":
        X = pd.DataFrame({"bit": rng.random(40) < 0.4, "n": rng.poisson(3.0, 40), "z": rng.normal(50.0, 1.0, 40)})
        X["die"] = pd.Categorical(rng.integers(3, size=40).astype(str))
        X.loc[3, "z"] = np.nan
        X["word"] = rng.choice(["ab", "b", "aab", "a"], 40)
        leaves = {"bit": "bernoulli", "n": "poisson", "z": "gaussian", "die": "categorical", "word": MarkovChain("ab")}
        own = {"features": leaves}
    else:
        X, own = oblong(n=20)[0] + 100.0, STRUCTURES[structure]
    some = pd.Series(["a", "b", *[None] * (len(X) - 2)])
    weight = rng.uniform(0.5, 2.0, len(X))
    fitted = bg.LatentClassClassifier(**own, classes=["a", "b", "c"], random_state=0).fit(X, some, weight)
    model, statistics = fitted.model_, fitted.statistics_
    labels = rng.dirichlet(np.ones(3), (4, len(statistics.weight)))
    em = UnknownClasses(model).stacked(statistics, way)
    joint, level = em.expected(em.maximised(em.summed(np.swapaxes(labels, 1, 2))))
    for each, found, height in zip(labels, joint, level, strict=True):
        params = getattr(model, way)(statistics.expected(model, each))
        unknown = UnknownClasses(model)
        np.testing.assert_allclose(found.T, unknown.labels(params, statistics), atol=1e-8)
        likelihood = unknown.log_likelihood(params, statistics) - model.log_likelihood(params, statistics.recorded)
        np.testing.assert_allclose(height, likelihood, rtol=1e-9)
        least = bound(model, statistics, found.T)
        if way == "map":
            heights, _ = em.heights(em.summed(np.swapaxes(each, 0, 1)[None]))
            np.testing.assert_allclose(heights[0], least - recorded_base(model, statistics), rtol=1e-9)


def bound(model, statistics, labels):
    """Lower bound of the log evidence at probabilities (m, K) of the classes of rows, as the module has it."""
    entropy = -(statistics.weight[:, None] * xlogy(labels, labels)).sum()
    return float(model.log_evidence(statistics.expected(model, labels)) + entropy)


def recorded_base(model, statistics):
    """Part of the evidence of the rows with a label that no start moves."""
    return sum(float(statistics.recorded.leaves[name].base) for name in model.leaves)


@pytest.mark.compiles
def test_many_starts_end_where_plain_steps_end_and_are_counted():
    X, _ = mixture()
    found = bg.LatentClassClassifier(classes=3, starts=12, random_state=0).fit(X)
    heights = found.statistics_.heights
    assert len(heights) == 12 and found.starts_reached_ == (heights > heights.max() - 1e-3).sum() >= 4
    em = UnknownClasses(found.model_).stacked(found.statistics_, "map")
    sums = em.summed(np.random.default_rng(1).dirichlet(np.ones(3), 200).T[None])
    fast, arrived = em.climb(sums)
    for _ in range(3000):
        sums = em.step(sums)
    assert arrived.all()
    np.testing.assert_allclose(em.heights(fast)[0], em.heights(sums)[0], rtol=1e-10)


def test_classes_are_named_by_another_fit():
    X, _ = mixture()
    first = bg.LatentClassClassifier(classes=["low", "mid", "high"], order_by="z", starts=4, random_state=0).fit(X)
    weight = np.where(np.arange(200) < 10, 0.0, 1.0)
    again = bg.LatentClassClassifier(classes=["low", "mid", "high"], starts=4, random_state=5)
    assert (again.fit(X, sample_weight=weight, match_to=first).predict(X) == first.predict(X)).mean() > 0.97
    more = bg.LatentClassClassifier(classes=4, starts=4, random_state=5).fit(X, match_to=first)
    table = pd.crosstab(first.predict(X), more.predict(X))
    assert table.loc["low", 0] > 40 and table.loc["mid", 1] > 10  # class k is the k-th class of the other
    refuses(lambda: again.fit(X, match_to="z"), "match_to must be a fitted classifier, got str", TypeError)
