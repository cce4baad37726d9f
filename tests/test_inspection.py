"""The certainty of a probability, the reasons for it, and predictions without each row."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from refusals import refuses
from scipy import optimize, stats
from scipy.special import softmax
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen import plot
from bayesgen.models import BetaBinomial, NormalInverseGamma, NormalInverseWishart

X, Y = load_iris(return_X_y=True)
TABLE = bg.data.load("penguins")
SPECIES = TABLE.pop("species")
STRUCTURES = [(c, s) for c in ("full", "diagonal", "isotropic") for s in (False, True)]


def prior_of(covariance):
    if covariance == "full":
        return NormalInverseWishart(X.mean(0), 0.1, 6.0, np.eye(4))
    ones = np.ones(4) if covariance == "diagonal" else 1.0
    return NormalInverseGamma(X.mean(0), 0.1, 2.0 * ones, 0.5 * ones)


# -- leave one out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("covariance", "shared"), STRUCTURES)
def test_leave_one_out_is_refitting_without_the_row(covariance, shared):
    def fitted(rows):
        classifier = bg.GaussianDiscriminantClassifier(covariance, shared, prior_of(covariance))
        return classifier.fit(X[rows], Y[rows])

    rows = np.r_[0:150:5]
    left = fitted(rows).leave_one_out(X[rows], Y[rows])
    for i in (0, 7, 12, 29):
        rest = fitted(np.delete(rows, i))
        np.testing.assert_allclose(left.log_joint[i], rest.posterior_.log_predictive(X[rows[[i]]])[0], rtol=1e-9)
        np.testing.assert_allclose(left.probability[i], rest.predict_proba(X[rows[[i]]])[0], rtol=1e-9, atol=1e-300)


def test_leave_one_out_of_mixed_features_with_gaps_and_weights():
    leaves = {c: NormalInverseGamma(0.0, 1e-6, 1.0, 1.0) for c in TABLE.select_dtypes("number").columns}
    rows, weight = np.r_[3:344:12], np.resize([1.0, 2.0, 0.5], 29)
    few, y = TABLE.iloc[rows], SPECIES.iloc[rows]
    assert few.isna().any(axis=None)
    declared = {c: bg.models.DirichletCategorical(1.0, sorted(TABLE[c].dropna().unique())) for c in ("island", "sex")}
    classifier = bg.NaiveBayesClassifier(leaves | declared).fit(few, y, weight)
    left = classifier.leave_one_out(few, y, weight)
    for i in range(0, 29, 4):
        keep = np.delete(np.arange(29), i)
        rest = bg.NaiveBayesClassifier(leaves | declared).fit(few.iloc[keep], y.iloc[keep], weight[keep])
        expected = rest.posterior_.log_predictive(rest.fitted_.read(few.iloc[[i]]))[0]
        np.testing.assert_allclose(left.log_joint[i], expected, rtol=1e-9)


def test_leave_one_out_sums():
    classifier = bg.GaussianDiscriminantClassifier().fit(X, Y)
    left = classifier.leave_one_out(X, Y)
    assert left.probability.sum(1) == pytest.approx(np.ones(150), abs=1e-12)
    assert left.elpd == pytest.approx(left.joint.sum()) and left.se > 0
    np.testing.assert_allclose(left.conditional, np.log(left.probability[np.arange(150), Y]), atol=1e-12)
    assert left.conditional.mean() < np.log(classifier.predict_proba(X)[np.arange(150), Y]).mean()


@pytest.mark.compiles
def test_leave_one_out_agrees_with_pareto_smoothing():
    import arviz_stats as azs

    classifier = bg.NaiveBayesClassifier(random_state=0).fit(X, Y)
    exact = classifier.leave_one_out(X, Y)
    approximate = azs.loo(classifier.to_arviz(X, Y), pointwise=True)
    assert approximate.elpd == pytest.approx(exact.elpd, abs=0.5)
    assert approximate.se == pytest.approx(exact.se, rel=0.02)
    assert np.abs(approximate.elpd_i.values - exact.joint).max() < 0.3


# -- the probability of a probability ----------------------------------------------------------------------------------


def test_draws_of_a_coins_probability_are_its_beta_posterior():
    """One binary feature with known classes: p(t | x, θ) is a function of two Beta draws, in closed form."""
    flips, y = np.array([[1], [1], [0], [1], [0], [0], [0], [1]], bool), np.repeat([0, 1], 4)
    classifier = bg.NaiveBayesClassifier(priors=[0.5, 0.5], random_state=0).fit(flips, y)
    draws = classifier.predict_proba_draws([[True]], 4000)[:, 0]
    rng = np.random.default_rng(1)
    a, b = rng.beta(4, 2, 4000), rng.beta(2, 4, 4000)
    assert draws.sum(1) == pytest.approx(np.ones(4000))
    assert stats.ks_2samp(draws[:, 0], a / (a + b)).pvalue > 1e-4
    p = (4 / 6) / (4 / 6 + 2 / 6)  # a ratio of expected densities
    shift = optimize.brentq(lambda shift: (a / (a + b * np.exp(shift))).mean() - p, -2, 2)
    moved = np.sort(a / (a + b * np.exp(shift)))
    width, *ends = min((b - a, a, b) for a, b in zip(moved, moved[3199:], strict=False) if a <= p <= b)
    found = classifier.predict_proba_interval([[True]], 0.8, 4000)[0, 0]
    assert found[0] <= p <= found[1] and np.diff(found)[0] == pytest.approx(width, abs=0.02)
    np.testing.assert_allclose(found, ends, atol=0.05)  # many are almost as short


def test_intervals_narrow_with_data_and_hold_the_predictive():
    def interval(step):
        classifier = bg.GaussianDiscriminantClassifier(random_state=0).fit(X[50::step], Y[50::step])
        return classifier.predict_proba_interval(X[60:140:9])[..., 0, :], classifier.predict_proba(X[60:140:9])[:, 0]

    (few, _), (many, probability) = interval(10), interval(1)
    assert np.diff(few).mean() > 1.5 * np.diff(many).mean()
    assert ((many[:, 0] <= probability) & (probability <= many[:, 1])).mean() > 0.8


def test_a_discriminative_model_averages_its_draws():
    classifier = bg.LogisticClassifier(inference=bg.Laplace(1000), random_state=0).fit(X[50:], Y[50:])
    posterior = classifier.posterior_
    everything = {site: v.reshape(-1, *v.shape[2:]) for site, v in posterior.samples.items()}
    rows = classifier.fitted_.read(X[70:80])
    average = np.exp(posterior.model.log_likelihood_rows(everything, rows)).mean(0).T
    np.testing.assert_allclose(classifier.predict_proba(X[70:80]), average, rtol=1e-9)
    assert np.abs(classifier.predict_proba_draws(X[70:80], 4000).mean(0) - average).max() < 0.02


def test_a_point_estimate_has_one_probability_and_no_interval():
    classifier = bg.GaussianDiscriminantClassifier(inference="ml").fit(X, Y)
    draws = classifier.predict_proba_draws(X, 3)
    np.testing.assert_allclose(draws, np.stack([classifier.predict_proba(X)] * 3), rtol=1e-9)
    with pytest.raises(ValueError, match="fitted at a point has no interval; inference='laplace' gives one"):
        classifier.predict_proba_interval(X)
    said = classifier.explain(X, row=3)
    assert np.isnan(said.interval).all() and said.to_dict()["interval"] == [None, None]
    assert "fitted at a point: no interval" in plot.evidence(said, ax=Figure().subplots()).get_title()
    for call in (lambda: classifier.predict_proba_interval(X, 1.5), lambda: classifier.predict_proba_draws(X, 0)):
        refuses(call, r"level must|size must")


# -- why ---------------------------------------------------------------------------------------------------------------


@pytest.mark.compiles
def test_rows_that_no_class_explains_get_the_class_prior_in_every_draw():
    X, y = np.array([[0, 1], [0, 1], [1, 0]]), ["a", "a", "b"]
    classifier = bg.NaiveBayesClassifier("bernoulli", inference="ml").fit(X, y)
    rows = np.array([[0, 0], [0, 1]])
    with pytest.warns(UserWarning, match="1 rows have probability 0 under every class") as caught:
        draws = classifier.predict_proba_draws(rows, 3)
    assert caught[0].filename == __file__
    prior = classifier.posterior_.params["classes.probability"].ravel()
    np.testing.assert_allclose(draws, np.broadcast_to([prior, [1.0, 0.0]], (3, 2, 2)), rtol=1e-12)
    with pytest.warns(UserWarning, match="1 rows"):
        data = classifier.to_arviz(rows, ["a", "b"])
    np.testing.assert_array_equal(data["log_likelihood"]["joint"], -np.inf)
    conditional = data["conditional_log_likelihood"]["t"].values.ravel()
    np.testing.assert_allclose(conditional, [np.log(prior[0]), -np.inf])


@pytest.mark.parametrize("inference", ["exact", "map", "ml"])
def test_naive_bayes_terms_add_to_the_probability(inference):
    classifier = bg.NaiveBayesClassifier(inference=inference).fit(TABLE, SPECIES)
    said = classifier.explain(TABLE)
    assert list(said.coords["term"].values) == [
        "prior",
        *sorted(TABLE.columns, key=list(said.coords["term"].values).index),
    ]
    assert set(said.coords["term"].values) == {"prior", *TABLE.columns}
    with np.errstate(under="ignore"):
        np.testing.assert_allclose(
            softmax(said.sum("term").values, axis=1), classifier.predict_proba(TABLE), atol=1e-12
        )
    for column in TABLE.columns:
        np.testing.assert_allclose(said.sel(term=column).values[TABLE[column].isna()], 0.0, atol=1e-12)


def test_a_bag_of_words_and_heads_with_tosses_are_one_term_each():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.poisson(2.0, (12, 3)), columns=["cheap", "now", "heads"]).assign(tosses=20)
    features = {("cheap", "now"): "multinomial", ("heads", "tosses"): BetaBinomial(1.0, 1.0)}
    classifier = bg.NaiveBayesClassifier(features).fit(table, np.repeat([0, 1], 6))
    said = classifier.explain(table)
    assert said.sizes["term"] == 3
    np.testing.assert_allclose(softmax(said.sum("term").values, axis=1), classifier.predict_proba(table), atol=1e-12)


@pytest.mark.parametrize("gap", (False, True))
def test_linear_terms_add_to_the_log_odds(gap):
    rows = X.copy()
    rows[::7, 1] = np.nan if gap else rows[::7, 1]
    classifier = bg.GaussianDiscriminantClassifier(shared=True, inference="ml").fit(rows, Y)
    said = classifier.explain(X)
    np.testing.assert_allclose(softmax(said.sum("term").values, axis=1), classifier.predict_proba(X), atol=1e-9)
    # at the mean of the rows no column says anything
    np.testing.assert_allclose(classifier.explain(np.nanmean(rows, 0)[None]).values[..., 1:], 0.0, atol=1e-9)
    refuses(lambda: bg.GaussianDiscriminantClassifier().fit(X, Y).explain(X), "shared=True")
    refuses(lambda: classifier.explain([[1.0, np.nan, 1.0, 1.0]]), "complete rows")


# -- ArviZ -------------------------------------------------------------------------------------------------------------


@pytest.mark.compiles
def test_arviz_groups_with_rows():
    classifier = bg.NaiveBayesClassifier(random_state=0).fit(TABLE, SPECIES)
    data = classifier.to_arviz(TABLE[:40], SPECIES[:40])
    assert set(data.children) == {
        *("posterior", "log_likelihood", "conditional_log_likelihood", "posterior_predictive", "observed_data"),
        *("log_prior", "prior", "prior_predictive"),
    }
    assert data.log_likelihood["joint"].dims == ("chain", "draw", "obs")
    draws = {site: v.values.reshape(-1, *v.shape[2:]) for site, v in data.posterior.data_vars.items()}
    model = classifier.posterior_.model
    density = model.log_likelihood_rows(draws, model.check(classifier.fitted_.read(TABLE[:40])))
    codes = np.searchsorted(classifier.classes_, SPECIES[:40])
    joint = np.stack([density[:, k, i] for i, k in enumerate(codes)], axis=1)
    np.testing.assert_allclose(data.log_likelihood["joint"].values.reshape(-1, 40), joint, rtol=1e-12)
    share = softmax(density, axis=1)
    conditional = np.log(np.stack([share[:, k, i] for i, k in enumerate(codes)], axis=1))
    np.testing.assert_allclose(data.conditional_log_likelihood["t"].values.reshape(-1, 40), conditional, atol=1e-9)
    drawn = data.posterior_predictive["t"].values.reshape(-1, 40)
    for k in range(3):
        error = (drawn == k).mean(0) - share[:, k].mean(0)
        assert (np.abs(error) < 5 * np.sqrt(share[:, k].mean(0) / len(drawn)) + 1e-9).all()
    assert set(data.prior_predictive.data_vars) == {"t", *TABLE.columns}


# -- evidence ----------------------------------------------------------------------------------------------------------


def test_model_probabilities_average_to_their_prior():
    """Over every data set of two counts in 0..2, weighted by its probability under the mixture of models."""
    total = share = 0.0
    for a, b in np.ndindex(3, 3):
        x = pd.DataFrame({"count": [a, b]})
        leaves = {str(alpha): bg.models.DirichletCategorical(alpha, [0, 1, 2]) for alpha in (0.5, 5.0)}
        fits = {name: bg.NaiveBayesClassifier({"count": leaf}).fit(x, [0, 1]) for name, leaf in leaves.items()}
        table = bg.compare_evidence(fits, prior=[0.3, 0.7])
        weight = 0.3 * np.exp(fits["0.5"].log_evidence_) + 0.7 * np.exp(fits["5.0"].log_evidence_)
        total, share = total + weight, share + weight * table.loc["0.5", "probability"]
    assert share / total == pytest.approx(0.3, rel=1e-12)


def test_evidence_chooses_between_structures_and_kinds_of_feature():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    x = pd.DataFrame({"visits": rng.poisson(3.0 + 3 * y), "age": rng.normal(40 + 5 * y, 9)})
    kinds = {
        "poisson": bg.NaiveBayesClassifier({"visits": "poisson"}).fit(x, y),
        "categorical": bg.NaiveBayesClassifier({"visits": "categorical"}).fit(x, y),
    }
    table = bg.compare_evidence(kinds)
    assert list(table.index) == ["poisson", "categorical"] and table["probability"].sum() == pytest.approx(1)
    assert table.loc["categorical", "log_bayes_factor"] == pytest.approx(
        kinds["categorical"].log_evidence_ - kinds["poisson"].log_evidence_
    )
    z = rng.normal(size=(120, 2)) @ [[1.0, 0.9], [0.0, 0.3]] + y[:, None]
    structures = {f"{c} {s}": bg.GaussianDiscriminantClassifier(c, s).fit(z, y) for c, s in STRUCTURES}
    assert bg.compare_evidence(structures).index[0] == "full True"


def test_evidences_that_do_not_compare():
    x, y = pd.DataFrame({"a": [1, 2, 3, 4], "b": [0, 1, 1, 2]}), [0, 0, 1, 1]
    NB = bg.NaiveBayesClassifier
    gaussian = NB("gaussian").fit(x, y)
    for other, words in (
        (NB("categorical").fit(x, y), "they differ in column 'a', density against probability"),
        (NB("multinomial").fit(x, y), "given the total"),
        (NB("gaussian").fit(x[:3], y[:3]), "rows by class"),
        (NB("gaussian").fit(x[["a"]], y), "the columns"),
    ):
        with pytest.raises(ValueError, match=words):
            bg.compare_evidence({"gaussian": gaussian, "other": other})
    refuses(lambda: bg.compare_evidence({"gaussian": gaussian}, prior=[0.5, 0.5]), "prior must hold")
    for nothing in ({}, [gaussian]):
        with pytest.raises(ValueError, match="mapping from name to fitted classifier"):
            bg.compare_evidence(nothing)
    with pytest.raises(AttributeError, match="no closed form here"):
        bg.compare_evidence({"softmax": bg.LogisticClassifier(inference="map").fit(X, Y)})


@pytest.mark.compiles
def test_every_leaf_says_what_its_p_of_x_is():
    import laws

    for case in laws.CASES:
        kind = getattr(case.model, "density_kind", None)
        if case.model.conjugate and kind in ("density", "probability"):
            params = {site: v[0] for site, v in case.model.sample_parameters(np.random.default_rng(0), (1,)).items()}
            assert case.model.likelihood(params).is_discrete == (kind == "probability"), case.name


# -- rows far out ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:column .* as far from the middle:UserWarning")
@pytest.mark.parametrize(("covariance", "shared"), STRUCTURES)
def test_leave_one_out_of_a_row_far_out(covariance, shared):
    """1e8 standard deviations out (a full covariance is refused there): a subtraction from the sum leaves no digit."""
    far = X[::5].copy()
    far[3] *= 1e6 if covariance == "full" else 1e8
    classifier = bg.GaussianDiscriminantClassifier(covariance, shared, prior_of(covariance)).fit(far, Y[::5])
    left, rest, model = classifier.leave_one_out(far, Y[::5]), np.delete(np.arange(30), 3), classifier.model_
    expected = model.update(model.statistics(far[rest], Y[::5][rest])).log_predictive(far[[3]])[0]
    np.testing.assert_allclose(left.log_joint[3], expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:column .* as far from the middle:UserWarning")
def test_the_exponent_beside_a_row_far_out():
    """A column of noise holds one row far out: how far does not matter, and no digit of the others is lost."""
    y, rng = np.arange(60) % 2, np.random.default_rng(0)
    x = np.column_stack([*[rng.normal(size=60) + y] * 2, rng.normal(size=60)])
    exponents = []
    for far in (1e8, 1e9, 1e12):
        x[0, 2] = far
        exponents.append(bg.NaiveBayesClassifier(exponent="loo").fit(x, y).exponent_)
    np.testing.assert_allclose(exponents, exponents[0], rtol=2e-3)  # the row itself moved


def test_leave_one_out_of_many_rows_in_any_order():
    """More rows than are summed at once; and their order is no part of what the fit keeps."""
    classifier, order = bg.NaiveBayesClassifier().fit(X, Y), np.random.default_rng(0).permutation(150)
    ordered, other = classifier.leave_one_out(X, Y), classifier.leave_one_out(X[order], Y[order])
    np.testing.assert_allclose(other.log_joint, ordered.log_joint[order], rtol=1e-9)


def test_the_pareto_shape_is_that_of_arviz():
    from arviz_stats.base import array_stats

    from bayesgen.numerics.draws import pareto_shape

    log_weight = np.random.default_rng(0).exponential(size=(2000, 4)) * [0.2, 0.5, 0.8, 1.2]
    theirs = array_stats.psislw(-log_weight.T, r_eff=0.7, axis=-1)[1]
    np.testing.assert_allclose(pareto_shape(log_weight, 0.7), theirs, rtol=1e-9)
    assert np.isnan(pareto_shape(np.zeros(100))) and np.isnan(pareto_shape(log_weight[:20])).all()


@pytest.mark.compiles
def test_draws_say_where_they_are_few():
    """Four rows against fifty: far from both the average rests on a handful of draws, and may err by .05 and more."""
    x = np.concatenate([np.random.default_rng(0).normal(0, 1, 4), np.random.default_rng(1).normal(1, 1, 50)])[:, None]
    y, new = np.repeat([0, 1], [4, 50]), np.linspace(-6, 10, 33)[:, None]
    leaf = {0: NormalInverseGamma(0.0, 0.01, 1.0, 1.0)}
    exact = bg.NaiveBayesClassifier(leaf).fit(x, y).predict_proba(new)
    nuts = bg.NaiveBayesClassifier(leaf, inference=bg.NUTS(1000, 500, 2), random_state=2).fit(x, y)
    with pytest.warns(UserWarning, match=r"of 33 rows rest on fewer than 100 .*inference='exact'") as caught:
        error = np.abs(nuts.predict_proba(new) - exact).max(1)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nuts.predict_proba(new[(error < 0.01) & (np.abs(new[:, 0] - 0.5) < 1)])  # where rows are, nothing is said
    said = bg.inspection.draw_reliability(nuts, new)
    np.testing.assert_array_equal(caught[0].message.rows, said.effective < 100)
    assert not said.doubtful[12:15].any()
    # by 100 effective draws a probability has a standard error of up to .05; in 16 fits by other seeds the largest
    # error of rows of which nothing is said was .004 to .036
    assert error[~said.doubtful].max() < 0.05
    assert said.pareto_k[-1] > 0.7 > said.pareto_k[13]
    flat, model = nuts.posterior_.flat, nuts.posterior_.model
    weight = softmax(model.log_likelihood_rows(flat, model.check(nuts.fitted_.read(new[[13]])))[:, 1, 0])
    own = nuts.posterior_.log_predictive_with_effective(nuts.fitted_.read(new[[13]]))[1][0, 1]
    assert own == pytest.approx(nuts.posterior_.efficiency / (weight**2).sum(), rel=1e-9)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:Laplace:UserWarning")  # its k is .75 here: the same draws serve both sides
@pytest.mark.parametrize(
    ("covariance", "shared"), [("full", False), pytest.param("diagonal", True, marks=pytest.mark.slow)]
)
def test_reliability_of_draws_is_that_of_the_prediction(covariance, shared):
    x = X[:, :2]
    classifier = bg.GaussianDiscriminantClassifier(covariance, shared, inference="laplace", random_state=0).fit(x, Y)
    rows = np.where(np.arange(x.size).reshape(x.shape) % 7 == 0, np.nan, x)
    said = bg.inspection.draw_reliability(classifier, rows)
    np.testing.assert_allclose(said.probability, classifier.predict_proba(rows), rtol=1e-12)
    assert said.effective.shape == said.pareto_k.shape == (len(X),)


def test_many_rows_are_sampled_in_the_memory_of_the_rows():
    """The parameters of 20,000 draws, 103 MB, are not there at once; rows of every piece have the right moments."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    classifier = bg.GaussianDiscriminantClassifier(random_state=0).fit(rng.normal(size=(90, 10)) + y[:, None], y)
    tracemalloc.start()
    x, t = classifier.sample(20_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 80e6 and len(x) == len(t) == 20_000
    for k in range(3):
        own = x[t == k]
        z = (own.mean(0) - classifier.posterior_.model.gaussian.mean[k]) / (own.std(0) / len(own) ** 0.5)
        assert (np.abs(z) < 5).all()
    assert len(np.unique(x[:, 0])) == 20_000


@pytest.mark.compiles
def test_to_arviz_keeps_as_many_draws_as_are_asked_for():
    for estimator in (bg.GaussianDiscriminantClassifier(random_state=0), bg.LinearRegressor(random_state=0)):
        estimator.fit(X, Y)
        found = estimator.to_arviz(X[:5], Y[:5], draws=100)
        assert found.posterior.sizes["chain"] * found.posterior.sizes["draw"] == 100
        assert found["log_likelihood"].sizes["draw"] == found.posterior.sizes["draw"]
        assert estimator.to_arviz(draws=38).posterior.sizes["draw"] == 10  # of four chains
    refuses(lambda: estimator.to_arviz(draws=0), "draws must be a whole number >= 1")
