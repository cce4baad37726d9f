"""The use of each tool of scikit-learn on each kind of estimator, or the reason for none: rows of docs/ecosystem.md."""

import functools
import pickle

import numpy as np
import pandas as pd
from sklearn import (
    calibration,
    ensemble,
    feature_selection,
    inspection,
    metrics,
    model_selection,
    multiclass,
    multioutput,
    semi_supervised,
)
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_iris
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.linear_model import RANSACRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import bayesgen as bg

KINDS = {
    "naive Bayes": bg.NaiveBayesClassifier(),
    "discriminant": bg.GaussianDiscriminantClassifier(shared=True),
    "averaged": bg.AveragedClassifier(members=["gaussian", "category"], bend=False),
    "logistic": bg.LogisticClassifier(inference="map"),
    "probit": bg.ProbitClassifier(inference="map"),
    "ordered": bg.OrderedClassifier(inference="map"),
    "latent": bg.LatentClassClassifier(classes=3, starts=2, random_state=0),
    "linear": bg.LinearRegressor(),
}
CLASSIFIERS = tuple(KINDS)[:-1]
GRIDS = {
    "naive Bayes": {"class_concentration": [1.0, 5.0]},
    "discriminant": {"covariance": ["full", "diagonal"]},
    "averaged": {"class_concentration": [1.0, 5.0]},
    "linear": {"prior_scale": [1.0, 2.5]},
    "logistic": {"prior_scale": [1.0, 2.5]},
    "probit": {"prior_scale": [1.0, 2.5]},
    "ordered": {"prior_scale": [1.0, 2.5]},
    "latent": {"class_concentration": [1.0, 5.0]},
}
_X, _Y = load_iris(return_X_y=True)
_ROWS = np.random.default_rng(0).permutation(150)[:90]
NAMES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


@functools.cache
def data(kind):
    """Rows of iris: three species, two for the probit, the petal width for a regression."""
    X, species = pd.DataFrame(_X[_ROWS], columns=NAMES), np.array(["setosa", "versicolor", "virginica"])[_Y[_ROWS]]
    if kind == "linear":
        return X[NAMES[:3]], X["petal_width"].to_numpy()
    if kind in ("ordered", "latent"):  # whose labels are numbers: of the first they are in order
        return X, _Y[_ROWS]
    two = species != "setosa"
    return (X[two].reset_index(drop=True), species[two]) if kind == "probit" else (X, species)


def searched(search, **options):
    def use(kind, estimator, X, y):
        found = search(estimator, GRIDS[kind], cv=2, error_score="raise", **options).fit(X, y)
        assert found.best_params_.keys() == GRIDS[kind].keys()

    return use


def inside(make, score=0.6):
    """A meta-estimator, fitted, predicts at least so well."""

    def use(kind, estimator, X, y):
        assert make(estimator).fit(X, y).score(X, y) > score

    return use


def drawn(display, **options):
    def use(kind, estimator, X, y):
        fitted = clone(estimator).fit(X, y)
        assert display.from_estimator(fitted, X, y, **options).figure_ is not None

    return use


def two_classes(use):
    """Return the tool on the two classes of the probit's data."""

    def of_two(kind, estimator, X, y):
        X, y = data("probit")
        if kind in ("ordered", "latent"):
            y = np.unique(y, return_inverse=True)[1]
        use(kind, estimator.set_params(classes=2) if kind == "latent" else estimator, X, y)

    return of_two


def with_text(kind, estimator, X, y):
    X = X.assign(text=np.where(X["sepal_width"] > 3, "wide", "narrow"))
    columns = make_column_transformer((StandardScaler(), NAMES[:3]), ("passthrough", ["text"]))
    pipeline = make_pipeline(columns, estimator).set_output(transform="polars")
    assert pipeline.fit(X, y).score(X, y) > 0.8


def pipeline(kind, estimator, X, y):
    whole = make_pipeline(StandardScaler(), estimator).set_output(transform="pandas").fit(X, y)
    assert whole.score(X, y) > 0.8 and list(whole[-1].feature_names_in_) == list(X.columns)


def cross_validated(kind, estimator, X, y):
    found = model_selection.cross_validate(estimator, X, y, cv=3, error_score="raise", return_train_score=True)
    assert np.mean(found["test_score"]) > 0.7


def cross_predicted(kind, estimator, X, y):
    method = "predict" if kind == "linear" else "predict_log_proba"
    assert len(model_selection.cross_val_predict(estimator, X, y, cv=3, method=method)) == len(X)


def scored(kind, estimator, X, y):
    loss = 1 - np.eye(len(np.unique(y)))
    for metric, options in ((bg.evaluation.realised_loss, {"loss": loss}), (bg.evaluation.brier_score, {})):
        how = {"response_method": "predict_proba", "greater_is_better": False}
        scoring = metrics.make_scorer(metric, **how, **options)
        assert (model_selection.cross_val_score(estimator, X, y, cv=2, scoring=scoring, error_score="raise") <= 0).all()


def curves(kind, estimator, X, y):
    sizes, _, scores = model_selection.learning_curve(estimator, X, y, cv=3, train_sizes=[0.5, 1.0], shuffle=True)
    assert scores.shape == (len(sizes), 3) and np.isfinite(scores).all()
    ((name, values),) = GRIDS[kind].items()
    _, scores = model_selection.validation_curve(estimator, X, y, param_name=name, param_range=values, cv=3)
    assert np.isfinite(scores).all()


def permuted(kind, estimator, X, y):
    assert model_selection.permutation_test_score(estimator, X, y, cv=2, n_permutations=5)[2] < 0.2


def important(kind, estimator, X, y):
    found = inspection.permutation_importance(clone(estimator).fit(X, y), X, y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmax() >= 2  # a petal tells more than a sepal


def dependence(kind, estimator, X, y):
    fitted = clone(estimator).fit(X, y)
    rows = inspection.partial_dependence(fitted, X, ["petal_length"], grid_resolution=5, kind="average")
    assert np.isfinite(rows["average"]).all()


def boundary(kind, estimator, X, y):
    plane = X[NAMES[1:3]]
    inspection.DecisionBoundaryDisplay.from_estimator(
        clone(estimator).fit(plane, y), plane, grid_resolution=9, response_method="predict"
    )


def by_coefficients(make):
    def use(kind, estimator, X, y):
        assert make(estimator).fit(X, y).get_support().sum() == 2

    return use


def confused(kind, estimator, X, y):
    metrics.ConfusionMatrixDisplay.from_estimator(clone(estimator).fit(X, y), X, y)


def half_labelled(kind, estimator, X, y):
    y = np.unique(y, return_inverse=True)[1]
    y[::3] = -1
    assert semi_supervised.SelfTrainingClassifier(estimator).fit(X, y).score(X[y >= 0], y[y >= 0]) > 0.8


def targets(make):
    """Several targets at once: the species and whether the sepal is wide, or two numbers."""

    def use(kind, estimator, X, y):
        other = X["sepal_width"] if kind == "linear" else np.where(X["sepal_width"] > 3, "wide", "narrow")
        codes = np.column_stack([np.unique(v, return_inverse=True)[1] for v in (y, other)])
        Y = np.column_stack([y, other]) if kind == "linear" else codes
        assert make(estimator).fit(X, Y).predict(X).shape == Y.shape

    return use


def imputed(kind, estimator, X, y):
    gappy = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    filled = IterativeImputer(estimator, max_iter=3, sample_posterior=True, random_state=0).fit_transform(gappy)
    assert np.isfinite(filled).all()


def kept(kind, estimator, X, y):
    fitted = clone(estimator).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert "prior" in estimator_html_repr(fitted) or "priors" in repr(fitted.get_params())


def frozen(kind, estimator, X, y):
    fitted = clone(estimator).fit(X, y)
    np.testing.assert_array_equal(FrozenEstimator(fitted).fit(X, y).predict(X), fitted.predict(X))


def calibrated_after(kind, estimator, X, y):
    fitted = FrozenEstimator(clone(estimator).fit(X, y))
    whole = calibration.CalibratedClassifierCV(fitted, method="isotonic").fit(X, y)
    assert whole.score(X, y) > 0.8


def three(estimator):
    return [(f"e{i}", clone(estimator)) for i in range(2)]


def boosted(make):
    return inside(lambda e: make(e, n_estimators=2, random_state=0))


TOOLS = {
    "make_pipeline, set_output": pipeline,
    "ColumnTransformer, text beside numbers": with_text,
    "clone, pickle, repr, HTML": kept,
    "FrozenEstimator": frozen,
    "cross_validate, cross_val_score": cross_validated,
    "cross_val_predict": cross_predicted,
    "GridSearchCV": searched(model_selection.GridSearchCV),
    "RandomizedSearchCV": searched(model_selection.RandomizedSearchCV, n_iter=2, random_state=0),
    "HalvingGridSearchCV": searched(model_selection.HalvingGridSearchCV, min_resources=40, random_state=0),
    "learning_curve, validation_curve": curves,
    "make_scorer": scored,
    "permutation_test_score": permuted,
    "CalibratedClassifierCV": inside(lambda e: calibration.CalibratedClassifierCV(e, cv=2)),
    "CalibratedClassifierCV of a fitted one": calibrated_after,
    "TunedThresholdClassifierCV": two_classes(inside(lambda e: model_selection.TunedThresholdClassifierCV(e, cv=2))),
    "FixedThresholdClassifier": two_classes(
        inside(lambda e: model_selection.FixedThresholdClassifier(e, threshold=0.4, response_method="predict_proba"))
    ),
    "VotingClassifier": inside(lambda e: ensemble.VotingClassifier(three(e), voting="soft")),
    "StackingClassifier": inside(lambda e: ensemble.StackingClassifier(three(e), clone(e), cv=2)),
    "BaggingClassifier": boosted(ensemble.BaggingClassifier),
    "AdaBoostClassifier": boosted(ensemble.AdaBoostClassifier),
    "OneVsRestClassifier": inside(multiclass.OneVsRestClassifier),
    "OneVsOneClassifier": inside(multiclass.OneVsOneClassifier),
    "OutputCodeClassifier": inside(lambda e: multiclass.OutputCodeClassifier(e, random_state=0)),
    "MultiOutputClassifier": targets(multioutput.MultiOutputClassifier),
    "ClassifierChain": targets(multioutput.ClassifierChain),
    "SelfTrainingClassifier": half_labelled,
    "VotingRegressor": inside(lambda e: ensemble.VotingRegressor(three(e))),
    "StackingRegressor": inside(lambda e: ensemble.StackingRegressor(three(e), clone(e), cv=2)),
    "BaggingRegressor": boosted(ensemble.BaggingRegressor),
    "AdaBoostRegressor": boosted(ensemble.AdaBoostRegressor),
    "RANSACRegressor": inside(lambda e: RANSACRegressor(e, min_samples=20, random_state=0)),
    "TransformedTargetRegressor": inside(lambda e: TransformedTargetRegressor(e, func=np.log1p, inverse_func=np.expm1)),
    "MultiOutputRegressor, RegressorChain": lambda *a: [
        targets(make)(*a) for make in (multioutput.MultiOutputRegressor, multioutput.RegressorChain)
    ],
    "IterativeImputer(sample_posterior=True)": imputed,
    "SelectFromModel, by coef_": by_coefficients(
        lambda e: feature_selection.SelectFromModel(e, max_features=2, threshold=-np.inf)
    ),
    "RFE, RFECV, by coef_": by_coefficients(lambda e: feature_selection.RFE(e, n_features_to_select=2)),
    "SequentialFeatureSelector": by_coefficients(
        lambda e: feature_selection.SequentialFeatureSelector(e, n_features_to_select=2, cv=2)
    ),
    "permutation_importance": important,
    "partial_dependence": dependence,
    "DecisionBoundaryDisplay": boundary,
    "ConfusionMatrixDisplay": confused,
    "CalibrationDisplay": two_classes(drawn(calibration.CalibrationDisplay)),
    "RocCurveDisplay, PrecisionRecallDisplay, DetCurveDisplay": two_classes(
        lambda *a: [
            drawn(d)(*a) for d in (metrics.RocCurveDisplay, metrics.PrecisionRecallDisplay, metrics.DetCurveDisplay)
        ]
    ),
    "PredictionErrorDisplay": drawn(metrics.PredictionErrorDisplay),
}
_OF_CLASSES = "of classes"
_OF_NUMBERS = "of a number to predict"
LEFT_OUT = {  # tool: (kinds it is used on, why on no other)
    "ColumnTransformer, text beside numbers": (
        ("naive Bayes", "averaged", "logistic", "probit", "ordered", "latent", "linear"),
        "its Gaussians describe numbers alone; encode the text, or take another",
    ),
    "SelectFromModel, by coef_": (
        ("discriminant", "logistic", "probit", "ordered", "linear"),
        "no linear scores, so no `coef_`; `permutation_importance` asks for none",
    ),
    "RFE, RFECV, by coef_": (
        ("discriminant", "logistic", "probit", "ordered", "linear"),
        "no linear scores, so no `coef_`; `SequentialFeatureSelector` asks for none",
    ),
}
for _name in TOOLS:
    if any(part in _name for part in ("Regressor", "Imputer", "PredictionError")):
        LEFT_OUT[_name] = (("linear",), _OF_NUMBERS)
    elif any(part in _name for part in ("Classifier", "make_scorer", "Confusion", "Calibration", "RocCurve")):
        LEFT_OUT[_name] = (CLASSIFIERS, _OF_CLASSES)


def kinds_of(name):
    return LEFT_OUT.get(name, (tuple(KINDS), ""))[0]


def table():
    """The table of docs/ecosystem.md."""
    lines = [f"| tool | {' | '.join(KINDS)} | why not |", "|---|" + "---|" * (len(KINDS) + 1)]
    for name in TOOLS:
        cells = " | ".join("yes" if kind in kinds_of(name) else "-" for kind in KINDS)
        lines.append(f"| {name} | {cells} | {LEFT_OUT.get(name, ((), ''))[1]} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
