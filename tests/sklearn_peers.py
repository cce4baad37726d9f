"""scikit-learn's own tests of its naive Bayes and discriminant analysis, run on our estimators in their place.

Each class below takes the arguments of the class of scikit-learn that it is named after, and shows by their names what
ours has learned; all learning and predicting is ours. Smoothing by alpha is the mode under a Dirichlet(alpha + 1) or
Beta(alpha + 1, alpha + 1), so the numbers must agree; Gaussians are by maximum likelihood.
"""

import importlib.util
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import discriminant_analysis, naive_bayes

import bayesgen as bg
from bayesgen.models import BetaBernoulli, DirichletCategorical, DirichletMultinomial

# -- our estimators under the names of theirs


class _Naive(bg.NaiveBayesClassifier):
    family = "auto"

    def __init__(self, **settings):
        super().__init__(self.family, inference="map", unseen="error")
        vars(self).update(settings)

    def _template(self, schema):
        self.priors = self.class_prior
        if not self.fit_prior and self.class_prior is None:
            self.priors = np.full(len(self.classes_), 1 / len(self.classes_))
        return super()._template(schema)

    def _learn_schema(self, table):
        self.features = self._leaves(table)
        return super()._learn_schema(table)

    @property
    def class_count_(self):
        return self.statistics_.classes.total()

    @property
    def class_log_prior_(self):
        return np.log(self.posterior_.params["classes.probability"])

    def _probabilities(self):
        return [self.posterior_.params[f"{name}.probability"] for name in self.model_.leaves]


class GaussianNB(bg.NaiveBayesClassifier):
    def __init__(self, *, priors=None, var_smoothing=1e-9):
        super().__init__("gaussian", priors=priors, inference="ml")
        self.var_smoothing = var_smoothing

    class_prior_ = property(lambda self: self.posterior_.params["classes.probability"])
    theta_ = property(lambda self: self.posterior_.params["gaussian.mean"])
    var_ = property(lambda self: self.posterior_.params["gaussian.variance"])


class BernoulliNB(_Naive):
    family = "bernoulli"

    def __init__(self, *, alpha=1.0, force_alpha=True, binarize=0.0, fit_prior=True, class_prior=None):
        super().__init__(
            alpha=alpha, force_alpha=force_alpha, binarize=binarize, fit_prior=fit_prior, class_prior=class_prior
        )

    def table(self, X, reset):
        return super().table((X if sparse.issparse(X) else np.asarray(X)) > self.binarize, reset)

    def _leaves(self, table):
        return {table.columns: BetaBernoulli(self.alpha + 1, self.alpha + 1)}

    feature_log_prob_ = property(lambda self: np.log(self._probabilities()[0]))

    @property
    def feature_count_(self):
        (leaf,) = self.statistics_.leaves.values()
        return leaf.total()[..., 1]


class MultinomialNB(_Naive):
    family = "multinomial"

    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None):
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)

    def _leaves(self, table):
        return {table.columns: DirichletMultinomial(np.asarray(self.alpha) + 1, table.columns)}

    feature_log_prob_ = property(lambda self: np.log(self._probabilities()[0]))

    @property
    def feature_count_(self):
        (leaf,) = self.statistics_.leaves.values()
        return leaf.total()


class CategoricalNB(_Naive):
    family = "categorical"

    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None, min_categories=None):
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.min_categories = min_categories

    def table(self, X, reset):
        return super().table(np.asarray(X, dtype=int), reset)

    def _leaves(self, table):
        seen = table.numbers(table.columns).max(0) + 1
        counts = np.maximum(seen, 0 if self.min_categories is None else self.min_categories)
        columns = zip(table.columns, counts.tolist(), strict=True)
        return {column: DirichletCategorical(self.alpha + 1.0, range(count)) for column, count in columns}

    n_categories_ = property(lambda self: np.array([len(leaf.categories) for leaf in self.model_.leaves.values()]))
    category_count_ = property(lambda self: [s.total() for s in self.statistics_.leaves.values()])
    feature_log_prob_ = property(lambda self: [np.log(p) for p in self._probabilities()])


class _Gaussian(bg.GaussianDiscriminantClassifier):
    tied = False

    def __init__(self, priors, **settings):
        super().__init__(shared=self.tied, priors=priors, inference="ml")
        vars(self).update(settings)

    def fit(self, X, y):
        refused = [name for name in ("shrinkage", "covariance_estimator", "reg_param") if getattr(self, name, None)]
        if refused:
            raise NotImplementedError(f"there is no {refused[0]}: a prior shrinks the covariance")
        return super().fit(X, y)

    means_ = property(lambda self: self.posterior_.params["gaussian.mean"])
    covariance_ = property(lambda self: self.posterior_.params["gaussian.covariance"])
    priors_ = property(lambda self: self.posterior_.params["classes.probability"])


class LinearDiscriminantAnalysis(_Gaussian):
    tied = True

    def __init__(self, solver="svd", shrinkage=None, priors=None, n_components=None, store_covariance=False, tol=1e-4,
                 covariance_estimator=None):  # fmt: skip
        super().__init__(priors, solver=solver, shrinkage=shrinkage, n_components=n_components, tol=tol,
                         store_covariance=store_covariance, covariance_estimator=covariance_estimator)  # fmt: skip


class QuadraticDiscriminantAnalysis(_Gaussian):
    def __init__(self, *, solver="svd", shrinkage=None, priors=None, reg_param=0.0, store_covariance=False, tol=1e-4,
                 covariance_estimator=None):  # fmt: skip
        super().__init__(priors, solver=solver, shrinkage=shrinkage, reg_param=reg_param, tol=tol,
                         store_covariance=store_covariance, covariance_estimator=covariance_estimator)  # fmt: skip


OURS = {
    naive_bayes: (GaussianNB, BernoulliNB, MultinomialNB, CategoricalNB),
    discriminant_analysis: (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis),
}

# -- their tests, on ours


@dataclass(frozen=True)
class Item:
    """One test of theirs with one set of its parameters."""

    name: str
    run: Callable[[], Any]


NOT_OURS = ("test_cnb", "test_covariance")  # of a class or a function that is theirs alone
FIXTURES = {"global_random_seed": 42, "global_dtype": np.float64}


def items(module) -> Iterator[Item]:
    """The tests of scikit-learn of one of its modules, on our classes."""
    spec = importlib.util.find_spec(f"sklearn.tests.test_{module.__name__.rpartition('.')[2]}")
    assert spec and spec.loader
    suite = importlib.util.module_from_spec(spec)
    theirs = {cls.__name__: getattr(module, cls.__name__) for cls in OURS[module]}
    for cls in OURS[module]:
        setattr(module, cls.__name__, cls)
    try:
        spec.loader.exec_module(suite)  # which imports the classes by name
    finally:
        for name, cls in theirs.items():
            setattr(module, name, cls)
    vars(suite)["pytest"] = _InAnyWords()
    for name, function in list(vars(suite).items()):
        if name.startswith("test_") and "array_api" not in name:
            yield from _expanded(name, function)


class _InAnyWords:
    """Pytest, except that an error may have other words."""

    raises = staticmethod(lambda kind, match=None: pytest.raises(kind))

    def __getattr__(self, name):
        return getattr(pytest, name)


def _expanded(name, function) -> Iterator[Item]:
    sets = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args[0], mark.args[1]
            names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
            sets.append([dict(zip(names, v if len(names) > 1 else (v,), strict=True)) for v in values])
    wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
    fixtures = {n: v for n, v in FIXTURES.items() if n in wanted}
    for chosen in itertools.product(*sets):
        given = {key: value for part in chosen for key, value in part.items()}
        label = "-".join(getattr(v, "__name__", str(v)) for v in given.values() if np.ndim(v) == 0)
        if "ComplementNB" not in label and name not in NOT_OURS:
            yield Item(f"{name}[{label}]" if label else name, _call(function, given | fixtures))


def _call(function, given):
    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            function(**given)

    return run


_MADE = "a prior shrinks the covariance; there is no `shrinkage`, `covariance_estimator` or `reg_param` beside it"
_AXES = "a classifier alone: there is no `transform` and no `n_components`"
_EXISTS = (
    "a variance of 0 has no maximum likelihood: an error that names class and column, where theirs adds `var_smoothing`"
)
_PRIVATE = "it calls a private function of theirs"
_CATEGORIES = (
    "the categories are those of the first piece; others are declared by `DirichletCategorical(1, categories=)`"
)
_WHOLE = "its counts are fractions, and a bag of words holds whole numbers"
_SMALL = "alpha 0 is maximum likelihood, not replaced by 1e-10"
_KEPT = "the covariance is always kept; there is no `store_covariance`"
_LINALG = "the same error is a ValueError that names the column, not a LinAlgError"
DIFFERENCES = {  # test, or test with its parameters: why ours differs
    "test_gnb_priors_sum_isclose": _EXISTS,
    "test_gnb_check_update_with_no_data": _PRIVATE,
    "test_gnb_partial_fit": _EXISTS,
    "test_discretenb_partial_fit[CategoricalNB]": _CATEGORIES,
    "test_NB_partial_fit_no_first_classes[GaussianNB]": _EXISTS,
    "test_discretenb_provide_prior": "a class that is declared twice is one class",
    "test_discretenb_provide_prior_with_partial_fit[MultinomialNB]": _WHOLE,
    "test_discretenb_sample_weight_multiclass[CategoricalNB]": _CATEGORIES,
    "test_categoricalnb_min_categories_errors": "categories are declared by a leaf; there is no `min_categories`",
    "test_alpha": _SMALL,
    "test_alpha_vector": _PRIVATE,
    "test_check_accuracy_on_digits": _EXISTS,
    "test_check_alpha": _PRIVATE,
    "test_predict_joint_proba[GaussianNB]": _EXISTS,
    "test_lda_predict": _MADE,
    "test_lda_priors": "priors that do not sum to 1 are refused, not rescaled with a warning",
    "test_lda_transform": _AXES,
    "test_lda_solver_agreement": _AXES,
    "test_lda_explained_variance_ratio": _AXES,
    "test_lda_orthogonality": _AXES,
    "test_lda_store_covariance": _KEPT,
    "test_lda_shrinkage": _MADE,
    "test_lda_ledoitwolf": _MADE,
    "test_lda_dimension_warning": _AXES,
    "test_lda_dtype_match": "everything is float64, float32 rows too; and " + _MADE,
    "test_lda_numeric_consistency_float32_float64": _MADE,
    "test_qda_covariance_estimator": _MADE,
    "test_qda_ledoitwolf": _MADE,
    "test_qda_coefs": "there are no `rotations_` and `scalings_`: covariances are kept as they are",
    "test_qda_store_covariance": _KEPT,
    "test_qda_regularization": _LINALG + "; and " + _MADE,
    "test_get_feature_names_out": _AXES,
    "test_qda_shrinkage_performance": _MADE,
}
LONG = ("test_check_accuracy_on_digits", "test_qda_shrinkage_performance", "test_lda_predict_proba")


def difference(item: Item) -> str | None:
    """Why a test is not passed."""
    return DIFFERENCES.get(item.name) or DIFFERENCES.get(item.name.partition("[")[0])


def table() -> str:
    """The table of docs/ecosystem.md."""
    every = [item for module in OURS for item in items(module)]
    passed = sum(difference(item) is None for item in every)
    lines = [
        f"{passed} of {len(every)} pass. The others:",
        "",
        "| test of scikit-learn | why ours differs |",
        "|---|---|",
    ]
    return "\n".join([*lines, *(f"| `{name}` | {reason} |" for name, reason in DIFFERENCES.items())])


if __name__ == "__main__":
    print(table())
