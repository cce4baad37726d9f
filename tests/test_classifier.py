"""Answers of the generative classifiers; tables, scikit-learn's tools and counts have tests of their own."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from refusals import refuses
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone

from bayesgen import NUTS, AveragedClassifier, GaussianDiscriminantClassifier, NaiveBayesClassifier
from bayesgen.inference import Exact
from bayesgen.models import BetaBernoulli, DirichletCategorical, NormalInverseGamma, SeparationPrior

SAMPLER = NUTS(num_samples=500, num_warmup=400, num_chains=2)
FAST = ["ml", "map", "exact"]


def mixed(n=90, gaps=True):
    """A table of every kind of column, informative and with gaps, and its classes."""
    rng = np.random.default_rng(0)
    y = np.repeat(["ash", "birch", "oak"], n // 3)
    k = np.repeat([0.0, 1.0, 2.0], n // 3)
    table = pd.DataFrame(
        {
            "height": rng.normal(10 + 2 * k, 2),
            "girth": rng.normal(100 * k, 60),
            "rings": rng.poisson(5 + 3 * k),
            "sick": rng.random(n) < 0.2 + 0.3 * k,
            "leaf": pd.Categorical(rng.choice(["oval", "round"], n), categories=["lobed", "oval", "round"]),
            "soil": np.where(rng.random(n) < 0.3 + 0.2 * k, "clay", "sand"),
        }
    )
    if gaps:
        table = table.astype({"rings": "Int64", "sick": "boolean", "soil": object})
        for j, column in enumerate(table.columns):
            table.loc[rng.choice(n, 6, replace=False), column] = [None, pd.NA, np.nan][j % 3] if j == 5 else pd.NA
    return table, y


@pytest.fixture(scope="session")
def exact():
    X, y = mixed()
    return NaiveBayesClassifier(random_state=0).fit(X, y)


# -- one table, every inference


@pytest.mark.parametrize("inference", FAST)
def test_what_predictions_have_in_common(inference):
    X, y = mixed()
    classifier = NaiveBayesClassifier(inference=inference).fit(X, y)
    probability = classifier.predict_proba(X)
    assert list(classifier.classes_) == ["ash", "birch", "oak"]
    np.testing.assert_allclose(probability.sum(1), 1, rtol=1e-13)
    np.testing.assert_allclose(np.log(probability), classifier.predict_log_proba(X), atol=1e-12)
    np.testing.assert_array_equal(classifier.predict(X), classifier.classes_[probability.argmax(1)])
    np.testing.assert_allclose(
        classifier.score_samples(X), logsumexp(classifier.posterior_.log_predictive(classifier.fitted_.read(X)), axis=1)
    )
    assert classifier.score(X, y) > 0.6


@pytest.mark.slow
def test_nuts_is_exact(exact):
    X, y = mixed()
    nuts = NaiveBayesClassifier(inference=SAMPLER, random_state=0).fit(X, y)
    assert nuts.posterior_.samples.keys() == exact.posterior_.draws(0, (1, 1)).keys()
    # 1000 draws: a class probability is known to about 0.02, an average over 90 rows to less.
    difference = nuts.predict_proba(X) - exact.predict_proba(X)
    assert np.abs(difference).max() < 0.1
    assert np.abs(difference).mean() < 0.01
    np.testing.assert_array_equal(nuts.predict(X), nuts.classes_[nuts.predict_proba(X).argmax(1)])


def test_blocks_of_the_table(exact):
    families = {block.columns: type(exact.model_.leaves[block.name]).__name__ for block in exact.schema_.blocks}
    assert families == {
        ("height", "girth", "rings"): "NormalInverseGamma",
        ("sick",): "BetaBernoulli",
        ("leaf",): "DirichletCategorical",
        ("soil",): "DirichletCategorical",
    }
    assert exact.model_.leaves["leaf"].categories == ("lobed", "oval", "round")  # an unused level is declared
    assert exact.n_features_in_ == 6 and list(exact.feature_names_in_) == list(mixed()[0].columns)


def test_exact_by_hand():
    """Two columns, two classes: the product of one Student-t and one Beta-Bernoulli by SciPy."""
    X = pd.DataFrame({"x": [1.0, 2.0, 4.0, 3.0, 7.0], "b": [True, False, True, True, True]})
    y = np.array([0, 0, 0, 1, 1])
    prior = NormalInverseGamma(2.0, 0.5, 2.0, 3.0)
    got = (
        NaiveBayesClassifier({"x": prior, "b": BetaBernoulli(2, 1)}, class_concentration=1.5).fit(X, y).predict_proba(X)
    )
    joint = []
    for k in (0, 1):
        x, n = X["x"][y == k], (y == k).sum()
        kappa, alpha = 0.5 + n, 2 + n / 2
        mean = (0.5 * 2.0 + x.sum()) / kappa
        beta = 3 + ((x - x.mean()) ** 2).sum() / 2 + 0.5 * n * (x.mean() - 2) ** 2 / (2 * kappa)
        t = stats.t(2 * alpha, mean, np.sqrt(beta * (kappa + 1) / (alpha * kappa))).pdf(X["x"])
        heads = (2 + X["b"][y == k].sum()) / (3 + n)
        joint.append((1.5 + n) / (3 + 5) * t * np.where(X["b"], heads, 1 - heads))
    np.testing.assert_allclose(got, np.transpose(joint) / np.sum(joint, 0)[:, None], rtol=1e-12)


@pytest.mark.compiles
def test_evidence_is_that_of_the_model(exact):
    X, y = mixed()
    assert exact.log_evidence_ == exact.posterior_.log_evidence
    assert NaiveBayesClassifier(inference="ml").fit(X, y).log_evidence_ == exact.log_evidence_
    separate = GaussianDiscriminantClassifier(prior=SeparationPrior(), inference="map").fit(
        [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    )
    refuses(lambda: separate.log_evidence_, "conjugate", AttributeError)


# -- the shapes in which data comes


@pytest.mark.parametrize("inference", FAST)
@pytest.mark.parametrize("kind", ["naive", "full", "shared", "diagonal", "isotropic"])
def test_an_empty_row_gets_the_class_prior(kind, inference):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.repeat([0, 1], [10, 20])
    if kind == "naive":
        classifier = NaiveBayesClassifier(inference=inference)
    else:
        covariance = "full" if kind == "shared" else kind
        classifier = GaussianDiscriminantClassifier(covariance, kind == "shared", inference=inference)
    nothing = np.full((1, 2), np.nan)
    prior = {"ml": [1 / 3, 2 / 3], "map": [1 / 3, 2 / 3], "exact": [11 / 32, 21 / 32]}[inference]
    np.testing.assert_allclose(classifier.fit(X, y).predict_proba(nothing)[0], prior, rtol=1e-12)
    given = clone(classifier).set_params(priors=[0.9, 0.1]).fit(X, y)
    np.testing.assert_allclose(given.predict_proba(nothing)[0], [0.9, 0.1], rtol=1e-12)
    # An empty row at fit says something of its class only.
    more = clone(classifier).fit(np.vstack([X, nothing]), np.append(y, 0)).posterior_
    less = clone(classifier).fit(X, y).posterior_
    if inference == "exact":
        assert all(more.model.leaves[n] == less.model.leaves[n] for n in more.model.leaves)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "isotropic"])
@pytest.mark.parametrize("shared", [False, True])
def test_gaps_at_prediction_under_every_covariance(covariance, shared):
    """p(t | x_1) is p(t, x_1, x_2) integrated over x_2, on a grid."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 15)
    X = rng.normal(size=(30, 2)) @ [[1.0, 0.8], [0.0, 0.6]] + y[:, None]
    classifier = GaussianDiscriminantClassifier(covariance, shared).fit(X, y)
    grid = np.sinh(np.linspace(-12, 12, 4001))  # far out, for the tails are heavy
    rows = np.column_stack([np.full(4001, 0.7), grid])
    density = np.exp(classifier.posterior_.log_predictive(rows))
    joint = np.trapezoid(density, grid, axis=0)
    got = classifier.predict_proba([[0.7, np.nan]])[0]
    np.testing.assert_allclose(got, joint / joint.sum(), rtol=1e-4)


def test_labels_of_any_kind():
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    for y in (
        ["a", "a", "b", "b"],
        [False, False, True, True],
        [3, 3, -1, -1],
        pd.Series(["u", "u", "v", "v"], dtype="category"),
        pd.Series([1, 1, 2, 2], dtype="Int64"),
        pd.Series([True, True, False, False], dtype="boolean"),
        pd.Series(["x", "x", "y", "y"], dtype="string"),
        pa.chunked_array([["x", "x"], ["y", "y"]]),
        np.array(["x", "x", "y", "y"], dtype=object),
    ):
        classifier = NaiveBayesClassifier().fit(X, y)
        labels = y.to_pylist() if isinstance(y, pa.ChunkedArray) else list(y)
        assert list(classifier.predict(X)) == labels
        assert sorted(set(labels)) == list(classifier.classes_)
        assert type(classifier.classes_.tolist()[0]) is type(np.asarray(labels).tolist()[0])


# -- features


def test_blocks_are_the_columns_one_by_one():
    """A block of columns under one array leaf gives the answers of single leaves."""
    X, y = mixed(gaps=False)
    means, betas = [8.0, 50.0], [4.0, 900.0]
    together = NaiveBayesClassifier({("height", "girth"): NormalInverseGamma(means, 0.5, 2.0, betas)})
    apart = NaiveBayesClassifier(
        {name: NormalInverseGamma(m, 0.5, 2.0, b) for name, m, b in zip(("height", "girth"), means, betas, strict=True)}
    )
    one, two = together.fit(X, y), apart.fit(X, y)
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-11)
    assert one.log_evidence_ == pytest.approx(two.log_evidence_, rel=1e-13)


def test_an_unused_level_shares_the_smoothing():
    levels = pd.CategoricalDtype(["a", "b", "never"])
    X = pd.DataFrame({"c": pd.Series(["a", "b", "a", "b"], dtype=levels)})
    classifier = NaiveBayesClassifier().fit(X, [0, 0, 0, 1])
    row = pd.DataFrame({"c": pd.Series(["never"], dtype=levels)})
    by_hand = np.array([4 / 6 * 1 / (3 + 3), 2 / 6 * 1 / (1 + 3)])
    np.testing.assert_allclose(classifier.predict_proba(row)[0], by_hand / by_hand.sum(), rtol=1e-13)


def test_declared_categories_of_a_leaf():
    X = pd.DataFrame({"c": ["a", "b", "a"]})
    leaf = DirichletCategorical(1.0, ["a", "b", "z"])
    classifier = NaiveBayesClassifier({"c": leaf}, unseen="error").fit(X, [0, 1, 1])
    assert np.isfinite(classifier.predict_proba(pd.DataFrame({"c": ["z"]}))).all()
    with pytest.raises(ValueError, match="column 'c': 'q' in row 0 is not one of the categories"):
        classifier.predict(pd.DataFrame({"c": ["q"]}))


# -- impossible rows


def test_rows_of_probability_zero():
    """ML gives a combination unseen in every class probability 0: the class prior, one warning, never NaN."""
    X = pd.DataFrame({"a": [True, True, False, False], "b": [True, True, False, False]})
    classifier = NaiveBayesClassifier(inference="ml").fit(X, [0, 0, 1, 1])
    new = pd.DataFrame({"a": [True, True, False], "b": [True, False, True]})
    with pytest.warns(
        UserWarning, match="^2 rows have probability 0 under every class; they get the class prior$"
    ) as seen:
        probability = classifier.predict_proba(new)
    assert len(seen) == 1
    np.testing.assert_array_equal(probability, [[1, 0], [0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(classifier.score_samples(new), [np.log(0.5), -np.inf, -np.inf])
    exact = NaiveBayesClassifier().fit(X, [0, 0, 1, 1])
    np.testing.assert_allclose(exact.predict_proba(new)[1:], 0.5)


@pytest.mark.slow
def test_random_state():
    X, y = mixed(gaps=False)
    X = X[["sick"]]
    short = NUTS(num_samples=20, num_warmup=20, num_chains=1)
    draws = [
        NaiveBayesClassifier(inference=short, random_state=seed).fit(X, y).posterior_.samples["bernoulli.probability"]
        for seed in (0, 0, np.random.RandomState(0), 1)
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[3]).all()


# -- ArviZ


def test_arviz_labels(exact):
    posterior = exact.to_arviz()["posterior"]
    assert list(posterior.coords["class"].values) == ["ash", "birch", "oak"]
    assert posterior["classes.probability"].dims == ("chain", "draw", "class")
    mean = posterior["gaussian.mean"]
    assert mean.dims[:3] == ("chain", "draw", "class")
    assert list(mean.coords[mean.dims[3]].values) == ["height", "girth", "rings"]
    leaf = posterior["leaf.probability"]
    assert list(leaf.coords[leaf.dims[-1]].values) == ["lobed", "oval", "round"]


@pytest.mark.parametrize("inference", FAST)
def test_arviz_under_every_inference(inference):
    X, y = mixed(gaps=False)
    tree = GaussianDiscriminantClassifier(inference=inference, random_state=0).fit(X[["height", "girth"]], y).to_arviz()
    covariance = tree["posterior"]["gaussian.covariance"]
    assert covariance.dims[2] == "class"
    assert covariance.shape[2:] == (3, 2, 2)
    for dim in covariance.dims[3:]:
        assert list(covariance.coords[dim].values) == ["height", "girth"]


# -- errors


NUMBERS = pd.DataFrame({"u": [0.0, 1.0, 2.0, 5.0, 6.0, 8.0], "v": [1.0, 0.0, 2.0, 4.0, 7.0, 5.0]})
LABELS = ["a", "a", "a", "b", "b", "b"]
NB, GD = NaiveBayesClassifier, GaussianDiscriminantClassifier
GAP = NUMBERS.assign(v=[1.0, np.nan, 2.0, 4.0, 7.0, 5.0])

WAYS = [  # that rows or priors do not allow; what no inference takes is in `test_refused_fits`
    (NB(exponent=0.0), NUMBERS, LABELS, ValueError, "finite number > 0"),
    (NB(exponent=0.0, inference="nuts"), NUMBERS, LABELS, ValueError, "finite number > 0"),
    (NB(exponent="best"), NUMBERS, LABELS, ValueError, "number > 0 or 'loo'"),
    (NB(exponent=None), NUMBERS, LABELS, TypeError, "a number"),
    (NB(inference="mcmc"), NUMBERS, LABELS, ValueError, "inference must be one of .*'mcmc'"),
    (NB(inference=NUTS), NUMBERS, LABELS, ValueError, "inference must be one of"),
    (NB(inference="ml"), NUMBERS, ["a"] * 5 + ["b"], ValueError, "class 'b', column 'u': maximum likelihood"),
    (NB(inference="ml"), NUMBERS.assign(v=[0, 1, 2, 3, 3, 3.0]), LABELS, ValueError, "class 'b', column 'v': maximum"),
    (GD(inference="ml"), NUMBERS, ["a"] * 4 + ["b"] * 2, ValueError, "class 'b': maximum likelihood does not exist"),
    (GD("diagonal", inference="ml"), NUMBERS.assign(v=[0, 1, 2, 3, 3, 3]), LABELS, ValueError, "class 'b', column 'v'"),
    (GD(shared=True, inference="ml"), NUMBERS.assign(w=NUMBERS.u + NUMBERS.v), LABELS, ValueError, "linearly dep"),
    (GD(), GAP, LABELS, ValueError, "column 'v'.*partly missing.*'map' or 'nuts'"),
    (GD(prior=SeparationPrior(), inference=Exact()), NUMBERS, LABELS, TypeError, "no exact posterior.*'map' or 'nuts'"),
]


@pytest.mark.parametrize(("classifier", "X", "y", "kind", "words"), WAYS)
def test_inferences_that_do_not_go(classifier, X, y, kind, words, no_sampling):
    refuses(lambda: clone(classifier).fit(X, y), words, kind)


def test_a_constant_column_is_told_and_harmless():
    with pytest.warns(UserWarning, match=r"columns \['c'\] are constant: .* left out") as seen:
        classifier = NB().fit(NUMBERS.assign(c=3.0), LABELS)
    assert len(seen) == 1
    plain = NB().fit(NUMBERS, LABELS).predict_proba(NUMBERS)
    np.testing.assert_allclose(classifier.predict_proba(NUMBERS.assign(c=3.0)), plain, rtol=1e-12)


@pytest.mark.parametrize("make", [NB, GD, lambda: AveragedClassifier(members="generative")])
def test_a_column_that_is_the_class_is_told(make):
    """It may be a copy of the classes, which new rows do not have."""
    rows, y = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"]), np.arange(40) % 2
    with pytest.warns(UserWarning, match="'c' has one value for each class, as if copied from y") as seen:
        make().fit(rows.assign(c=3.0 - y), y)
    assert len(seen) == 1 and seen[0].message.column == "c" and seen[0].filename == __file__
    make().fit(rows.assign(c=3.0 - y)[:19], y[:19])  # so few rows may agree by chance
    make().fit(rows.assign(c=np.where(np.arange(40) == 7, 9.0, y)), y)  # more values than classes


@pytest.mark.parametrize("make", [NB, GD, AveragedClassifier])
def test_one_class_is_told(make):
    with pytest.warns(UserWarning, match=r"y holds one class only, \['a'\]") as seen:
        make().fit([[1.0], [2.0], [4.0]], ["a"] * 3)
    assert len(seen) == 1 and seen[0].filename == __file__


@pytest.mark.compiles
@pytest.mark.parametrize(
    "ask",
    [
        lambda: NB(inference=NUTS(10, 10, 1), random_state=0).fit(NUMBERS, LABELS),
        lambda: NUTS(10, 10, 1)(BetaBernoulli(), [1.0, 0.0], seed=0),
    ],
    ids=["a classifier", "an inference"],
)
def test_a_warning_names_a_line_of_the_user(ask):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ask()
    assert {warning.filename for warning in seen} == {__file__}
