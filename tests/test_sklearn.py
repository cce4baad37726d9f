"""At home in scikit-learn: its own checks, its tools, coefficients and scores, settings within settings."""

import pickle
from dataclasses import replace

import joblib
import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp, ndtr, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import StackingClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayesgen as bg
from bayesgen.inspection.boundary import discriminant
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    NormalInverseGamma,
    NormalInverseWishart,
    SeparationPrior,
)

NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
LINE, LOGIT, PROBIT = bg.LinearRegressor, bg.LogisticClassifier, bg.ProbitClassifier
IRIS, SPECIES = load_iris(return_X_y=True)

# -- scikit-learn's own checks


class Counts(NB):
    """Naive Bayes of counts that tells the checks to give it whole numbers, as they do for categories alone."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


ESTIMATORS = [
    NB(),
    NB(inference="map"),
    NB("categorical"),
    Counts("poisson"),
    GD(),
    GD(shared=True, inference="map"),
    GD("diagonal"),
    GD("isotropic", shared=True),
    LINE(),
    LINE(inference="map"),
    LOGIT(inference="map"),
    LOGIT(inference="map", missing="mean"),
    PROBIT(inference="map"),
    bg.Imputer(),
    bg.Imputer(NB(), draw=True),
]


def refused(estimator) -> dict[str, str]:
    """Checks that an estimator cannot pass, and why."""
    if isinstance(estimator, GD) and (estimator.covariance, estimator.inference) == ("full", "exact"):
        return {
            "check_estimators_nan_inf": "gaps, which it refuses at fit (under a full covariance they have no conjugate "
            "posterior), are integrated out at prediction"
        }
    if isinstance(estimator, NB) and estimator.features == "poisson":
        fractions = "its X are fractions, and a Poisson feature is a whole number"
        return {
            "check_sample_weight_equivalence_on_dense_data": fractions,
            "check_sample_weight_equivalence_on_sparse_data": fractions,
            "check_classifiers_one_label_sample_weights": fractions,
            "check_positive_only_tag_during_fit": "its X are fractions, and the error it wants is in other words",
        }
    return {}


@pytest.mark.filterwarnings("ignore:columns .* are constant:UserWarning")
@pytest.mark.filterwarnings("ignore:y is constant:UserWarning")
@pytest.mark.filterwarnings("ignore:.* taken as missing, of categories:UserWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=refused)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:columns .* are constant:UserWarning")
@pytest.mark.filterwarnings("ignore:y is constant:UserWarning")
@parametrize_with_checks([NB(exponent="loo")], expected_failed_checks=refused)
def test_checks_of_scikit_learn_of_an_exponent_that_rows_choose(estimator, check):
    check(estimator)


def test_tags():
    tags = get_tags(NB()).input_tags
    assert (tags.allow_nan, tags.categorical, tags.string, tags.sparse) == (True, True, True, False)
    assert get_tags(NB("multinomial")).input_tags.sparse and get_tags(NB("multinomial")).input_tags.positive_only
    assert get_tags(NB({(0, 1): "poisson"})).input_tags.sparse
    assert not get_tags(NB("gaussian")).input_tags.string
    tags = get_tags(GD()).input_tags
    assert (tags.allow_nan, tags.categorical, tags.string, tags.sparse) == (False, False, False, False)
    assert get_tags(LINE()).input_tags.string and get_tags(LOGIT(missing="mean")).input_tags.allow_nan
    for takes, estimator in {
        "gaps at fit": [GD(inference="map"), GD("diagonal"), GD("isotropic", inference=bg.Exact()), NB("gaussian")],
        "no gaps": [GD(), GD(shared=True, inference=bg.Exact()), LINE(), LOGIT(), PROBIT()],
    }.items():
        assert {get_tags(e).input_tags.allow_nan for e in estimator} == {takes == "gaps at fit"}
    for features, categorical in (("auto", True), ("categorical", True), ("poisson", False), ({0: "poisson"}, True)):
        assert get_tags(NB(features)).input_tags.categorical is categorical
    assert not get_tags(PROBIT()).classifier_tags.multi_class


# -- its tools


def table(n=90):
    """A table of every kind of column, and its classes."""
    rng = np.random.default_rng(0)
    y = np.repeat(["ash", "birch", "oak"], n // 3)
    k = np.repeat([0.0, 1.0, 2.0], n // 3)
    frame = pd.DataFrame(
        {
            "height": rng.normal(10 + 2 * k, 2),
            "rings": pd.array(rng.poisson(5 + 3 * k), dtype="Int64"),
            "sick": rng.random(n) < 0.2 + 0.3 * k,
            "leaf": pd.Categorical(rng.choice(["oval", "round"], n), categories=["lobed", "oval", "round"]),
            "soil": np.where(rng.random(n) < 0.3 + 0.2 * k, "clay", "sand"),
        }
    )
    frame.loc[[3, 40], "height"] = np.nan
    frame.loc[[5, 50], "rings"] = pd.NA
    return frame, y


FITTED = [
    (NB(inference="map"), *table()),
    (NB(), *table()),
    (GD(shared=True), IRIS, SPECIES),
    (LINE(), *load_diabetes(return_X_y=True)),
    (LOGIT(inference="map"), IRIS, SPECIES),
    (PROBIT(inference="map"), IRIS[50:], SPECIES[50:]),
]


def answer(estimator, X):
    return estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else estimator.predict(X)


@pytest.mark.parametrize(("estimator", "X", "y"), FITTED)
def test_pickle_and_joblib_keep_every_bit(estimator, X, y, tmp_path):
    fitted = clone(estimator).fit(X, y)
    joblib.dump(fitted, tmp_path / "model.joblib")
    for again in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(answer(again, X), answer(fitted, X))


def test_clone_takes_priors_and_inferences():
    prior = NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2))
    sampler = bg.NUTS(num_samples=50)
    copy = clone(GD(prior=prior, inference=sampler))
    assert copy.prior == prior and copy.inference == sampler
    assert "NormalInverseWishart" in repr(copy)
    features = {"a": BetaBernoulli(2, 2), ("b", "c"): "poisson"}
    assert clone(NB(features)).features == features


def test_feature_names_and_their_order():
    X, y = table()
    classifier = NB().fit(X, y)
    assert list(classifier.feature_names_in_) == list(X.columns) and classifier.n_features_in_ == 5
    with pytest.raises(ValueError, match="same order"):
        classifier.predict(X[X.columns[::-1]])
    with pytest.raises(ValueError, match="unseen at fit time:\n- w"):
        classifier.predict(X.assign(w=1))
    with pytest.raises(ValueError, match="now missing:\n- soil"):
        classifier.predict(X.drop(columns="soil"))


@pytest.mark.compiles
def test_grid_over_inferences_covariances_and_priors():
    grid = [
        {"gd__covariance": ["full", "diagonal", "isotropic"], "gd__shared": [True, False], "gd__inference": ["map"]},
        {"gd__prior": [NormalInverseWishart(np.zeros(4), 0.1, 6.0, np.eye(4)), "weak"], "gd__inference": ["exact"]},
        {"gd__prior": [SeparationPrior()], "gd__covariance": ["diagonal"], "gd__inference": ["map"]},
    ]
    pipeline = make_pipeline(StandardScaler(), GD())
    pipeline.steps[1] = ("gd", pipeline.steps[1][1])
    search = GridSearchCV(pipeline, grid, cv=3, scoring="neg_log_loss", error_score="raise").fit(IRIS, SPECIES)
    assert len(search.cv_results_["params"]) == 9 and search.best_score_ > -0.1
    X, y = table()
    grid = {"inference": ["ml", "map", "exact"], "class_concentration": [1.0, 5.0], "priors": [None, np.full(3, 1 / 3)]}
    assert GridSearchCV(NB(), grid, cv=3, error_score="raise").fit(X, y).best_score_ > 0.5


def test_pipelines():
    X, y = table()
    bins = make_column_transformer(
        (KBinsDiscretizer(4, encode="ordinal", strategy="uniform"), ["height"]),
        ("passthrough", ["sick", "leaf", "soil"]),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    X = X.fillna({"height": X["height"].mean()})
    declared = DirichletCategorical(1.0, [0.0, 1.0, 2.0, 3.0])
    pipeline = make_pipeline(bins, NB({"height": declared})).fit(X, y)
    assert pipeline[-1].schema_.columns == ("height", "sick", "leaf", "soil")
    assert pipeline[-1].model_.leaves["leaf"].categories == ("lobed", "oval", "round")
    assert pipeline.score(X, y) > 0.5


def test_calibration():
    calibrated = CalibratedClassifierCV(GD(inference="ml"), cv=3).fit(IRIS, SPECIES)
    assert calibrated.predict_proba(IRIS).shape == (150, 3) and calibrated.score(IRIS, SPECIES) > 0.95


@pytest.mark.compiles
def test_cross_validation_in_processes():
    one, two = (cross_val_predict(GD(), IRIS, SPECIES, n_jobs=n, method="predict_proba") for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("estimator", [NB(), GD(), LINE(), LOGIT(inference="map"), PROBIT(inference="map")])
def test_weights_are_routed(estimator):
    X, y = IRIS[50:, 1:], IRIS[50:, 0] if isinstance(estimator, LINE) else SPECIES[50:]
    weight, folds = np.arange(100) % 3, KFold(2, shuffle=True, random_state=0)
    with config_context(enable_metadata_routing=True):
        estimator = clone(estimator).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), estimator)
        given = {"sample_weight": weight}
        result = cross_validate(pipeline, X, y, cv=folds, params=given, return_estimator=True, error_score="raise")
    rows = next(folds.split(X))[0]
    scaled = StandardScaler().fit(X[rows], sample_weight=weight[rows]).transform(X[rows])
    want = clone(estimator).fit(scaled, y[rows], sample_weight=weight[rows])
    np.testing.assert_array_equal(answer(result["estimator"][0][-1], scaled), answer(want, scaled))


RARE, TREES = table()
RARE.loc[88, "soil"] = "peat"  # in one row alone


@pytest.mark.filterwarnings("ignore:1 value taken as missing, of categories .* column 'soil'.* in 1 row:UserWarning")
def test_a_category_of_one_fold_alone_is_missing_in_it():
    X, y = RARE, TREES
    assert np.isfinite(cross_val_score(NB(), X, y, cv=5, error_score="raise")).all()
    with pytest.raises(ValueError, match="'peat' in row"):
        cross_val_score(NB(unseen="error"), X, y, cv=5, error_score="raise")
    search = GridSearchCV(NB(), {"class_concentration": [1.0, 5.0]}, cv=5, error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    for whole in (CalibratedClassifierCV(NB(), cv=5), StackingClassifier([("nb", NB())], LOGIT(inference="map"))):
        np.testing.assert_allclose(whole.fit(X, y).predict_proba(X).sum(1), 1, rtol=1e-9)


def test_a_category_that_was_not_declared_is_an_error_in_a_stream():
    stream = NB().partial_fit(RARE[::2][:-1], TREES[::2][:-1], classes=["ash", "birch", "oak"])
    with pytest.raises(ValueError, match=r"'soil': 'peat' in row 8 is not one of the categories \['clay', 'sand'\]"):
        stream.partial_fit(RARE[80:], TREES[80:])


# -- joint probabilities, scores, coefficients


@pytest.mark.parametrize(
    "estimator", [NB(), NB(inference="map"), GD(), bg.AveragedClassifier(members=["gaussian"])], ids=str
)
def test_joint_log_probabilities(estimator):
    fitted = clone(estimator).fit(IRIS[::2], SPECIES[::2])
    joint = fitted.predict_joint_log_proba(IRIS)
    np.testing.assert_allclose(logsumexp(joint, axis=1), fitted.score_samples(IRIS), rtol=1e-12)
    if not hasattr(fitted, "average_"):  # whose members are tempered for the probabilities
        np.testing.assert_allclose(softmax(joint, axis=1), fitted.predict_proba(IRIS), rtol=1e-9, atol=1e-300)


def test_decision_function():
    X, y = IRIS[50:, :2], SPECIES[50:]
    for estimator, link in ((LOGIT(inference="map"), expit), (PROBIT(inference="map"), ndtr)):
        fitted = estimator.fit(X, y)
        score = fitted.decision_function(X)
        np.testing.assert_allclose(score, X @ fitted.coef_[0] + fitted.intercept_[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(link(score), fitted.predict_proba(X)[:, 1], rtol=1e-9)
        far = fitted.decision_function(100 * X)  # where probabilities are 0 and 1 to rounding
        np.testing.assert_allclose(far, 100 * X @ fitted.coef_[0] + fitted.intercept_[0], rtol=1e-6)
    three = LOGIT(inference="map").fit(IRIS, SPECIES)
    scores = three.decision_function(IRIS)
    np.testing.assert_allclose(softmax(scores, axis=1), three.predict_proba(IRIS), rtol=1e-12)
    np.testing.assert_array_equal(three.classes_[scores.argmax(1)], three.predict(IRIS))
    for classes in (2, 3):
        X, y = IRIS[SPECIES < classes], SPECIES[SPECIES < classes]
        lda, own = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y), GD(shared=True, inference="ml").fit(X, y)
        theirs = lda.decision_function(X) if classes == 2 else lda.predict_log_proba(X)
        np.testing.assert_allclose(own.decision_function(X), theirs, rtol=1e-7, atol=1e-7)
    assert not hasattr(NB(), "decision_function")


@pytest.mark.parametrize("classes", [2, 3])
def test_coefficients_of_a_shared_discriminant(classes):
    X, y = IRIS[SPECIES < classes], SPECIES[SPECIES < classes]
    lda, ml = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y), GD(shared=True, inference="ml").fit(X, y)
    np.testing.assert_allclose(ml.coef_, lda.coef_, rtol=1e-9)
    np.testing.assert_allclose(ml.intercept_, lda.intercept_, rtol=1e-9)
    for covariance in ("full", "diagonal", "isotropic"):
        fitted = GD(covariance, shared=True, random_state=0).fit(X[::5], y[::5])
        assert fitted.coef_.shape == ((1, 4) if classes == 2 else (3, 4))
        drawn = discriminant(fitted.posterior_, seed=1, size=(20000,))  # the means in closed form, by draws
        for mean, draws in ((fitted.coef_, drawn.weights), (fitted.intercept_, drawn.intercept)):
            draws = draws[:, 1:] - draws[:, :1] if classes == 2 else draws
            z = (draws.mean(0) - mean) / (draws.std(0) / 20000**0.5)
            assert np.abs(z).max() < 5
        known = clone(fitted).set_params(priors=np.full(classes, 1 / classes)).fit(X[::5], y[::5])
        np.testing.assert_allclose(known.coef_, fitted.coef_, rtol=1e-12)
    for refused in (GD().fit(X, y), GD("diagonal").fit(X, y)):
        assert not hasattr(refused, "coef_") and not hasattr(refused, "intercept_")


# -- settings within inferences, priors and leaves


def test_settings_within_parameters():
    prior = NormalInverseWishart(np.zeros(4), 0.1, 6.0, np.eye(4))
    sampler = bg.NUTS(num_samples=50)
    classifier = GD(prior=prior, inference=sampler)
    deep = classifier.get_params()
    assert deep["prior__kappa"] == 0.1 and deep["inference__num_samples"] == 50 and "prior__per_class" not in deep
    assert set(classifier.get_params(deep=False)) == {n for n in deep if "__" not in n}
    assert classifier.set_params(prior__kappa=2.0, inference__num_samples=7, inference__num_chains=2) is classifier
    assert classifier.prior == replace(prior, kappa=2.0) and prior.kappa == 0.1
    assert classifier.inference == bg.NUTS(num_samples=7, num_chains=2) and sampler.num_samples == 50
    assert LOGIT().set_params(inference__num_samples=9).inference == bg.NUTS(num_samples=9)  # "nuts" by its name
    both = {"prior": replace(prior, nu=9.0), "prior__mean": np.ones(2), "prior__scale": np.eye(2)}
    assert GD().set_params(**both).prior == NormalInverseWishart(np.ones(2), 0.1, 9.0, np.eye(2))
    leaves = NB({"a": BetaBernoulli(1, 1), ("b", "c"): "poisson"}).set_params(features__a__b=3.0)
    assert leaves.features == {"a": BetaBernoulli(1, 3), ("b", "c"): "poisson"}
    assert clone(classifier).get_params().keys() == deep.keys()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"prior__kappa": 1.0}, "prior='weak' has no setting 'kappa'; give an inference, prior or leaf"),
        ({"inference__num_sample": 1}, "inference=Exact.* has no setting 'num_sample'"),
        ({"sampler__num_samples": 1}, "GaussianDiscriminantClassifier has no parameter 'sampler'"),
        ({"inference": "nuts", "inference__num_samples": -1}, "num_samples must be a whole number >= 1"),
        ({"inference": "nuts", "inference__draws": 1}, r"it has \['keep_warmup', 'num_chains'"),
    ],
)
def test_settings_that_are_not_there(setting, words):
    with pytest.raises(ValueError, match=words):
        GD().set_params(**setting)


def test_a_search_over_settings_within():
    X = pd.DataFrame(IRIS[:, :2], columns=["length", "width"])
    grid = {"features__length__kappa": [1e-3, 1e3], "features__width": ["gaussian", NormalInverseGamma(3.0, 1, 2, 1)]}
    leaves = {"length": NormalInverseGamma(0.0, 1.0, 2.0, 1.0), "width": "gaussian"}
    search = GridSearchCV(NB(leaves), grid, cv=3, error_score="raise")
    assert search.fit(X, SPECIES).best_params_["features__length__kappa"] == 1e-3
    grid = {"prior__kappa": [0.1, 10.0], "prior__nu": [6.0, 60.0], "inference": ["exact", "map"]}
    search = GridSearchCV(GD(prior=NormalInverseWishart(np.zeros(4), 1, 6, np.eye(4))), grid, cv=3, error_score="raise")
    assert len(search.fit(IRIS, SPECIES).cv_results_["params"]) == 8


# -- rows come back in the library they came in


@pytest.mark.parametrize(
    "estimator", [NB(random_state=0), GD(random_state=0), bg.AveragedClassifier(members=["gaussian", "category"])]
)
@pytest.mark.parametrize("library", ["pandas", "polars", pytest.param("pyarrow", marks=pytest.mark.compiles)])
def test_rows_come_back_in_their_library(estimator, library, tmp_path):
    X = pd.DataFrame(IRIS, columns=list("abcd"))
    if not isinstance(estimator, GD):
        X["e"] = np.where(X["a"] > 5.8, "tall", "low")
    table = nw.from_native(X).to_dict(as_series=False)
    given = nw.from_dict(table, backend=library).to_native()
    fitted = clone(estimator).fit(given, SPECIES)
    fitted.save(tmp_path / "fit.nc")
    for one in (fitted, bg.load(tmp_path / "fit.nc")):
        rows, labels = one.sample(5)
        assert type(rows) is type(given) and nw.from_native(rows).columns == list(X.columns)
        np.testing.assert_array_equal(one.predict(rows).shape, labels.shape)
