"""Labels that may be wrong: against sums over all labellings, SciPy's search, simulated labels, and held-out rows."""

import functools
import itertools

import numpy as np
import pandas as pd
import pytest
from arviz_stats import ess
from refusals import refuses
from scipy import sparse, stats
from scipy.optimize import minimize
from scipy.special import betaln, logsumexp
from sklearn.datasets import load_iris, load_wine

import bayesgen as bg
from bayesgen.inspection import class_given_label
from bayesgen.models import BetaBernoulli, LabelNoise, NormalKnownVariance

GD, NB = (
    functools.partial(bg.LatentClassClassifier, model, inference="map") for model in ("discriminant", "naive bayes")
)
LABELS = "classes.label.probability"  # the confusion matrix among the sites
COINS = np.array([[1, 1], [1, 1], [0, 1], [0, 0], [0, 0], [1, 0], [0, 0], [1, 1]])
TOLD = np.array([1, 1, 1, 0, 0, 0, 1, 0])


def wrong(y, rate, seed):
    """Return labels of which a part are exchanged for another class."""
    rng = np.random.default_rng(seed)
    count = y.max() + 1
    return np.where(rng.random(len(y)) < rate, (y + rng.integers(1, count, len(y))) % count, y)


def test_the_likelihood_is_a_sum_over_all_labellings():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=6), "bit": rng.random(6) < 0.5})
    table.loc[2, "x"] = np.nan
    told, leaves = np.array([0, 1, 2, 0, -1, 1]), {"x": NormalKnownVariance(0.0, 4.0, 1.0), "bit": BetaBernoulli(2, 2)}
    fitted = NB(leaves, label_noise=LabelNoise(0.2, 5)).fit(table, np.where(told < 0, np.nan, told))
    params = fitted.posterior_.params
    share, confusion = params["classes.probability"], fitted.confusion_[0, 0]
    x, bit = table["x"].to_numpy(), table["bit"].to_numpy()
    density = np.where(np.isnan(x)[:, None], 1, stats.norm.pdf(x[:, None], params["x.mean"], 1.0))
    p = params["bit.probability"]
    density = density * np.where(bit[:, None], p, 1 - p) * np.where(told[:, None] < 0, 1, confusion[:, told].T)
    total = sum(np.prod((share * density)[np.arange(6), t]) for t in itertools.product(range(3), repeat=6))
    model = fitted.posterior_with_labels_.model
    found = model.log_likelihood({**params, LABELS: confusion}, fitted.statistics_)
    assert found == pytest.approx(np.log(total), rel=1e-12)


@pytest.mark.compiles
def test_map_is_where_a_search_over_the_density_ends():
    told = np.array([*TOLD, np.nan])
    bits, weight = np.vstack([COINS, [1, 0]]).astype(bool), np.array([1, 2, 1, 1.5, 1, 1, 0.5, 1, 1])
    leaf = {"x0": BetaBernoulli(3, 2), "x1": BetaBernoulli(2, 2)}
    own = {"class_concentration": 2.0, "label_noise": LabelNoise(0.2, 4)}
    fitted = NB(leaf, **own).fit(bits, told, weight)
    found, code = fitted.posterior_.params, np.nan_to_num(told).astype(int)

    def energy(z):
        """Minus the log density; the share is Beta(2, 2), the coins Beta(3, 2) and Beta(2, 2), Γ has 1 + 4 (.8, .2)."""
        share, a0, a1, b0, b1, g0, g1 = p = 1 / (1 + np.exp(-z))
        prior = sum(stats.beta(*ab).logpdf(v) for ab, v in zip([(2, 2), *[(3, 2)] * 2, *[(2, 2)] * 2], p, strict=False))
        prior += stats.beta(4.2, 1.8).logpdf(g0) + stats.beta(4.2, 1.8).logpdf(g1)
        confusion = np.array([[g0, 1 - g0], [1 - g1, g1]])
        coins = np.array([[a0, b0], [a1, b1]])
        joint = np.log([share, 1 - share]) + np.log(np.where(bits[:, None], coins, 1 - coins)).sum(2)
        joint += np.where(np.isnan(told)[:, None], 0, np.log(confusion[:, code].T))
        return -prior - weight @ logsumexp(joint, axis=1)

    p = [found["classes.probability"][0], *found["x0.probability"], *found["x1.probability"]]
    p = np.array([*p, *np.diag(fitted.confusion_[0, 0])])
    z = np.log(p / (1 - p))
    end = minimize(energy, z + 0.05, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(1 / (1 + np.exp(-end.x)), p, atol=1e-6)
    assert energy(z) <= end.fun + 1e-10


def enumerated(new):
    """Mean of Γ and p(t | new row), by all labellings of the coins: each has its posterior in closed form."""
    alpha = np.array([[5.0, 2.0], [2.0, 5.0]])  # 1 + 5 (.8, .2)
    log_weight, confusion, joint = [], [], []
    for labelling in itertools.product([0, 1], repeat=len(TOLD)):
        t = np.array(labelling)
        n = np.bincount(t, minlength=2)
        table = alpha + np.array([[(TOLD[t == k] == s).sum() for s in (0, 1)] for k in (0, 1)])
        ones = np.array([COINS[t == k].sum(0) for k in (0, 1)])
        coins = betaln(1 + ones, 1 + n[:, None] - ones).sum()
        log_weight.append(betaln(*(1 + n)) + coins + betaln(*table.T).sum())
        confusion.append(table / table.sum(1, keepdims=True))
        one = (1 + ones) / (2 + n[:, None])
        joint.append((1 + n) / (2 + n.sum()) * np.where(new, one, 1 - one).prod(1))
    weight = np.exp(log_weight - logsumexp(log_weight))
    p = weight @ np.array(joint)
    return np.tensordot(weight, confusion, 1), p / p.sum()


@pytest.mark.slow  # it compiles and samples
def test_draws_are_of_the_posterior_over_all_labellings():
    own = {"inference": bg.NUTS(1000, 1000, 4), "label_noise": LabelNoise(0.2, 5), "random_state": 0}
    classifier = NB("bernoulli", **own).fit(COINS.astype(bool), TOLD)
    new = np.array([True, False])
    confusion, p = enumerated(new)
    draws = classifier.to_arviz().posterior[LABELS]
    assert draws.dims[2:] == ("class", "classes.label.category")
    effective = ess(draws)
    z = (draws.mean(("chain", "draw")) - confusion) / (draws.std(("chain", "draw")) / np.sqrt(effective))
    assert np.abs(z).max() < 5
    np.testing.assert_allclose(classifier.predict_proba(new[None])[0], p, atol=0.02)


@pytest.mark.compiles
def test_the_confusion_matrix_of_simulated_labels_is_found():
    rng, truth = np.random.default_rng(1), np.array([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.0, 0.4, 0.6]])
    t = rng.integers(3, size=3000)
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[t] + rng.normal(size=(3000, 2))
    told = (rng.random((3000, 1)) > truth[t].cumsum(1)[:, :-1]).sum(1)
    for way in ("ml", "map"):
        found = GD(shared=True, inference=way, label_noise=LabelNoise(0.1, 5)).fit(X, told)
        error = found.confusion_[0, 0] - truth
        # of 1000 rows a class; that the class itself is not known widens it by less than a half here
        assert np.abs(error).max() < 5 * 1.5 * np.sqrt(0.25 / 1000)
        assert (np.abs(error) < 5 * 1.5 * np.sqrt((truth * (1 - truth) + 0.02) / 1000)).all()


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_it_helps_on_rows_held_out(load):
    X, y = load(return_X_y=True)
    loss = np.zeros(2)
    for seed in range(3):
        test, train = np.array_split(np.random.default_rng(seed).permutation(len(y)), 2)
        told = wrong(y, 0.3, seed)
        for i, noise in enumerate((LabelNoise(), None)):
            classifier = GD(shared=True, label_noise=noise).fit(X[train], told[train])
            loss[i] += bg.evaluation.log_loss(y[test], classifier.predict_proba(X[test])) / 3
    assert loss[0] < 0.6 * loss[1]


def test_sparse_rows_say_what_dense_ones_do():
    X, y = load_iris(return_X_y=True)
    told = wrong(y, 0.2, 0)
    classifier = NB("poisson", label_noise=LabelNoise())
    dense = classifier.fit(np.round(X), told).predict_proba(np.round(X))
    found = classifier.fit(sparse.csr_array(np.round(X)), told).predict_proba(np.round(X))
    np.testing.assert_allclose(found, dense, rtol=1e-8, atol=1e-12)


def test_which_labels_look_wrong():
    X, y = load_iris(return_X_y=True)
    told = wrong(y, 0.2, 0)
    classifier = GD(shared=True, label_noise=LabelNoise()).fit(X, told)
    p = class_given_label(classifier, X, told)
    doubted = p[np.arange(150), told] < 0.5
    assert (doubted == (told != y)).mean() > 0.95
    posterior = classifier.posterior_with_labels_
    point = {site: value[0] for site, value in posterior.flat.items()}
    np.testing.assert_allclose(p, posterior.model.labels(point, classifier.statistics_), atol=1e-12)


@pytest.mark.compiles
def test_what_users_do_with_it(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["p", "q", "r"])
    told = names[wrong(y.to_numpy(), 0.2, 0)].astype(object)
    told[::10] = None
    own = {"covariance": "diagonal", "label_noise": LabelNoise(0.15)}
    classifier = GD(**own).fit(X, told)
    assert classifier.score(X, names[y]) > 0.9
    classifier.save(tmp_path / "own.safetensors")
    again = bg.load(tmp_path / "own.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    assert again.label_noise == own["label_noise"] and again.model_ == classifier.model_
    assert classifier.get_params()["label_noise__rate"] == 0.15
    assert "labelled q" in str(classifier.summary())
    joint = classifier.predict_joint_log_proba(X)
    with_label = logsumexp(joint[:, :, None] + np.log(classifier.confusion_[0, 0]), axis=1)
    gone = told == None  # noqa: E711  # entry by entry
    codes = np.searchsorted(names, np.where(gone, "p", told).astype(str))
    expected = np.where(gone, logsumexp(joint, axis=1), with_label[np.arange(150), codes])
    rows = again.to_arviz(X, told).log_likelihood["x"].values.ravel()
    np.testing.assert_allclose(rows, expected, rtol=1e-9)
    one = again.to_arviz(X[1:3], told[1:3]).log_likelihood["x"].values.ravel()  # labels of one class
    np.testing.assert_allclose(one, expected[1:3], rtol=1e-9)
    assert not any(hasattr(classifier, name) for name in ("partial_fit", "fit_batches", "forget", "decay", "__add__"))


REFUSED = {
    "exact": (
        lambda: GD(inference="exact", label_noise=LabelNoise()),
        "labels that may be wrong: their posterior is a sum over all labellings",
    ),
    "a rate that hides the label": (lambda: GD(label_noise=LabelNoise(0.7)), "rate must be below 0.667"),
    "no record": (lambda: GD(label_noise=0.1), "label_noise must be a LabelNoise"),
    "a class without labels": (lambda: GD(classes=4, label_noise=LabelNoise()), "needs labels of every class"),
    "an argument of the labelled classifier": (
        lambda: bg.GaussianDiscriminantClassifier(label_noise=LabelNoise()),
        "has no label_noise: LatentClassClassifier",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(name):
    make, message = REFUSED[name]
    refuses(lambda: make().fit(*load_iris(return_X_y=True)), message, (ValueError, TypeError))


def test_gaps_and_questions_are_refused():
    X, y = load_iris(return_X_y=True)
    X[3, 2] = np.nan
    refuses(lambda: GD(label_noise=LabelNoise()).fit(X, y), "rows without a certain label have gaps")
    classifier = NB(label_noise=LabelNoise()).fit(X, y)
    assert classifier.score(X, y) > 0.9
    refuses(lambda: class_given_label(classifier, X, y[1:]), "X has 150 rows and y has 149")
    refuses(lambda: class_given_label(NB().fit(X, y), X, y), "fitted with label_noise=")


@pytest.mark.slow  # it compiles and samples
def test_laplace_begins_at_the_labels():
    """Its draws are those of the mode near the labels, where NUTS samples."""
    X, y = load_iris(return_X_y=True)
    told, own = wrong(y, 0.2, 0), {"covariance": "isotropic", "shared": True, "label_noise": LabelNoise()}
    nearby = GD(inference="laplace", random_state=0, **own).fit(X, told)
    drawn = GD(inference=bg.NUTS(500, 500, 2), random_state=0, **own).fit(X, told)
    np.testing.assert_allclose(nearby.confusion_.mean((0, 1)), drawn.confusion_.mean((0, 1)), atol=0.02)
    assert nearby.score(X, y) > 0.85


@pytest.mark.parametrize(
    "rate", [[[0, 0.5], [0, 0]], [[0, 0], [0.6, 0]], [[0, 0.1, 0.2], [0, 0, 0.3], [0, 0, 0]]], ids=str
)
@pytest.mark.parametrize("way", ["ml", "map"])
def test_classes_that_are_never_labelled_so_are_not(rate, way):
    """Labels "positive" or "unknown", and as many of three classes: new rows are told as by the true labels."""
    rng, rate = np.random.default_rng(3), np.array(rate)
    share = rate + np.diag(1 - rate.sum(1))
    t, new = rng.integers(len(rate), size=600), rng.integers(len(rate), size=2000)
    X, later = (np.eye(3)[truth] * 3 + rng.normal(size=(len(truth), 3)) for truth in (t, new))
    told = (rng.random((600, 1)) > share[t].cumsum(1)[:, :-1]).sum(1)
    noisy = GD(shared=True, inference=way, label_noise=LabelNoise(rate, 5)).fit(X, told)
    found = noisy.confusion_[0, 0]
    assert (found[share == 0] < 1e-8).all()
    # of 200 rows a class or more; that the class itself is not known widens it by less than a half here
    assert (np.abs(found - share) < 5 * 1.5 * np.sqrt((share * (1 - share) + 1e-4) / 200)).all()
    losses = [
        bg.evaluation.log_loss(new, classifier.predict_proba(later))
        for classifier in (noisy, *(bg.GaussianDiscriminantClassifier(shared=True).fit(X, y) for y in (t, told)))
    ]
    assert losses[0] < losses[1] + 0.02 < losses[2]


def test_rates_of_each_class_are_refused_where_they_are_none():
    refuses(lambda: LabelNoise([[0.9, 0.1], [0.1, 0.9]]), "rate must be a number, .* 0 on the diagonal")
    refuses(lambda: LabelNoise([[0, -0.1], [0.1, 0]]), ">= 0 and sum to less than 1")
    refuses(lambda: LabelNoise([[0, 0.6, 0.4], [0, 0, 0], [0, 0, 0]]), "sum to less than 1")
    refuses(lambda: LabelNoise([[0, 0.1], [0.1, 0]]).confusion("abc"), "of 2 classes, and there are 3: .*'a', 'b', 'c'")
    refuses(lambda: LabelNoise([[0, 0.9], [0.1, 0]]).confusion("ab"), "label 'b' is as frequent in class 'a' as in its")


@pytest.mark.parametrize("rate", [0.0, 1.0, np.nan, [0.1, 0.2]])
def test_a_rate_is_a_share(rate):
    refuses(lambda: LabelNoise(rate), r"rate .*must be")


def test_columns_that_do_not_tell_wrong_labels_are_refused():
    """Kruskal's count: of two classes two coins do, of three three; a column of four values and one of two do too."""
    rng = np.random.default_rng(0)
    coins = rng.random((60, 3)) < 0.5
    die = pd.Categorical(rng.integers(4, size=60))
    noise = {"label_noise": LabelNoise()}
    two, three = rng.integers(2, size=60), rng.integers(3, size=60)
    for table, y in ((coins[:, :1], two), (coins[:, :2], three), (pd.DataFrame({"die": die}), two)):
        with pytest.raises(ValueError, match="do not tell wrong labels"):
            NB(**noise).fit(table, y)
    for table, y in ((coins[:, :2], two), (coins, three), (pd.DataFrame({"die": die, "coin": coins[:, 0]}), three)):
        NB(**noise).fit(table, y)
    refuses(lambda: GD(**noise).fit(rng.normal(size=(60, 2)), np.zeros(60)), "two classes at least")
