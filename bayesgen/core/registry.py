"""What a file may name: the estimators with the attributes that fitting sets, models, inferences, posteriors."""

from bayesgen import inference, models, posterior
from bayesgen.averaging.average import Average
from bayesgen.core import program
from bayesgen.core.statistics import Rows
from bayesgen.estimators.averaged import AveragedClassifier
from bayesgen.estimators.discriminant import GaussianDiscriminantClassifier
from bayesgen.estimators.linear import LogisticClassifier, ProbitClassifier
from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
from bayesgen.estimators.regression import LinearRegressor
from bayesgen.files.values import ours
from bayesgen.models.linear_model import LineStatistics
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.tables.schema import Block, Schema

_ALWAYS = ("n_features_in_", "model_", "statistics_", "posterior_")
_GENERATIVE = (*_ALWAYS, "classes_", "schema_")
_SCALED = (*_ALWAYS, "centre_", "scale_", "coef_", "intercept_")

FITTED = {  # attributes of a fitted estimator; "feature_names_in_" too, where the fit had names
    NaiveBayesClassifier: (*_GENERATIVE, "exponent_"),
    GaussianDiscriminantClassifier: _GENERATIVE,
    LinearRegressor: (*_SCALED, "variance_"),
    LogisticClassifier: (*_SCALED, "classes_"),
    ProbitClassifier: (*_SCALED, "classes_"),
    AveragedClassifier: ("n_features_in_", "classes_", "schema_", "constant_", "average_", "scores_"),
}
MODELS = {
    NaiveBayesClassifier: models.NaiveBayes,
    GaussianDiscriminantClassifier: models.GaussianDiscriminant,
    LinearRegressor: models.LinearRegression | models.SemiConjugateLinearRegression | models.LaplaceLinearRegression,
    LogisticClassifier: models.LogisticRegression,
    ProbitClassifier: models.ProbitRegression,
}
DRAWS = posterior.ParameterDraws | posterior.PointEstimate
POSTERIORS = posterior.ExactPosterior | DRAWS
SCHEMA, ROWS, LINE, AVERAGE = Schema, Rows, LineStatistics, Average
_PARTS = (
    *(posterior.ExactPosterior, posterior.ParameterDraws, posterior.PointEstimate),
    *(inference.ML, inference.MAP, inference.Exact, inference.NUTS, inference.Laplace),
    *(Schema, Block),
)


def estimators() -> dict[str, type]:
    """The estimators by name."""
    return {cls.__name__: cls for cls in FITTED}


def classes() -> dict[str, type]:
    """The classes of this package that are within an estimator, by name: its records and what holds them."""
    return {cls.__name__: cls for cls in (*filter(ours, program.records()), *_PARTS)}


def may_be_saved(cls: type) -> bool:
    """Whether a file may name a class: one of this package, or a record of the user, which the reader hands over."""
    return classes().get(cls.__name__) is cls or (issubclass(cls, program.Record) and not ours(cls))


def private(estimator) -> bool:
    """Whether an estimator keeps the rows it learned from."""
    return isinstance(getattr(estimator, "statistics_", None), Rows | PartlyLabelled)
