"""The lecture models: each an immutable prior, posterior, predictive and NumPyro model function at once."""

from bayesgen.models.beta_bernoulli import BetaBernoulli
from bayesgen.models.beta_binomial import BetaBinomial
from bayesgen.models.class_conditional import ClassConditional
from bayesgen.models.dirichlet_categorical import DirichletCategorical, KnownCategorical
from bayesgen.models.dirichlet_multinomial import DirichletMultinomial
from bayesgen.models.gamma_poisson import GammaPoisson
from bayesgen.models.gaussian_discriminant import GaussianDiscriminant
from bayesgen.models.label_noise import LabelNoise
from bayesgen.models.laplace_regression import LaplaceLinearRegression
from bayesgen.models.linear_regression import LinearRegression, LinearRegressionKnownVariance
from bayesgen.models.log_normal import LogNormal
from bayesgen.models.logistic_regression import LogisticRegression, ProbitRegression
from bayesgen.models.naive_bayes import NaiveBayes
from bayesgen.models.normal_inverse_gamma import NormalInverseGamma
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart
from bayesgen.models.normal_known_mean import NormalKnownMean
from bayesgen.models.normal_known_variance import NormalKnownVariance
from bayesgen.models.reference import (
    HaldaneBernoulli,
    HaldaneCategorical,
    ReferenceGaussian,
    ReferencePoisson,
    ReferenceVector,
)
from bayesgen.models.semi_conjugate_regression import SemiConjugateLinearRegression
from bayesgen.models.separation import SeparationPrior

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
    "NaiveBayes",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "NormalKnownMean",
    "NormalKnownVariance",
    "ProbitRegression",
    "ReferenceGaussian",
    "ReferencePoisson",
    "ReferenceVector",
    "SemiConjugateLinearRegression",
    "SeparationPrior",
]
