"""The lecture models: each an immutable prior, posterior, predictive and NumPyro model function at once."""

from bayesgen.models.beta_bernoulli import BetaBernoulli
from bayesgen.models.class_conditional import ClassConditional
from bayesgen.models.dirichlet_categorical import DirichletCategorical, KnownCategorical
from bayesgen.models.gaussian_discriminant import GaussianDiscriminant
from bayesgen.models.naive_bayes import NaiveBayes
from bayesgen.models.normal_inverse_gamma import NormalInverseGamma
from bayesgen.models.normal_inverse_wishart import NormalInverseWishart
from bayesgen.models.normal_known_variance import NormalKnownVariance

__all__ = [
    "BetaBernoulli",
    "ClassConditional",
    "DirichletCategorical",
    "GaussianDiscriminant",
    "KnownCategorical",
    "NaiveBayes",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "NormalKnownVariance",
]
