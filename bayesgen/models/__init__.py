"""The lecture models: each an immutable prior, posterior, predictive and NumPyro model function at once."""

from bayesgen.models.bernoulli import BetaBernoulli, BetaBinomial
from bayesgen.models.categorical import DirichletCategorical, KnownCategorical
from bayesgen.models.classifier import ClassConditional, GaussianDiscriminant, NaiveBayes
from bayesgen.models.gaussian import NormalInverseGamma
from bayesgen.models.gaussian_known import NormalKnownMean, NormalKnownVariance
from bayesgen.models.laplace_regression import LaplaceLinearRegression
from bayesgen.models.linear_regression import (
    LinearRegression,
    LinearRegressionKnownVariance,
    SemiConjugateLinearRegression,
)
from bayesgen.models.log_normal import LogNormal
from bayesgen.models.logistic_regression import LogisticRegression, ProbitRegression
from bayesgen.models.markov_chain import MarkovChain
from bayesgen.models.multinomial import DirichletMultinomial
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart
from bayesgen.models.ordered_regression import OrderedRegression
from bayesgen.models.poisson import GammaPoisson
from bayesgen.models.pooled import Pooled
from bayesgen.models.pooled_groups import PooledGroups
from bayesgen.models.reference import (
    HaldaneBernoulli,
    HaldaneCategorical,
    ReferenceGaussian,
    ReferencePoisson,
    ReferenceVector,
)
from bayesgen.models.separation import SeparationPrior
from bayesgen.models.student_t import StudentT
from bayesgen.models.unknown_labels import LabelNoise, UnknownClasses

__all__ = [
    "BetaBernoulli",
    "BetaBinomial",
    "ClassConditional",
    "DirichletCategorical",
    "DirichletMultinomial",
    "GammaPoisson",
    "GaussianDiscriminant",
    "HaldaneBernoulli",
    "HaldaneCategorical",
    "KnownCategorical",
    "LabelNoise",
    "LaplaceLinearRegression",
    "LinearRegression",
    "LinearRegressionKnownVariance",
    "LogNormal",
    "LogisticRegression",
    "MarkovChain",
    "NaiveBayes",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "NormalKnownMean",
    "NormalKnownVariance",
    "OrderedRegression",
    "Pooled",
    "PooledGroups",
    "ProbitRegression",
    "ReferenceGaussian",
    "ReferencePoisson",
    "ReferenceVector",
    "SemiConjugateLinearRegression",
    "SeparationPrior",
    "StudentT",
    "UnknownClasses",
]
