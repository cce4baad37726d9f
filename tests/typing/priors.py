"""Priors: numbers and lists go in, arrays come out, for both checkers."""

from typing import assert_type

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    LaplaceLinearRegression,
    LogisticRegression,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownVariance,
    SeparationPrior,
)

Floats = NDArray[np.float64]

coin = BetaBernoulli(2, 2)
assert_type(coin.a, Floats)
width: int = coin.a.ndim
assert_type(coin.update(coin.statistics([1, 1])), BetaBernoulli)
assert_type(BetaBernoulli(a=[1, 2], b=np.ones(2)).b, Floats)

size = NormalInverseGamma(mean=0, kappa=1, alpha=[1, 2], beta=1)
assert_type(size.alpha, Floats)
assert_type(size.update(size.statistics([[1.0, 2.0]])), NormalInverseGamma)
assert_type(NormalKnownVariance().noise_sd, Floats)

classes = DirichletCategorical(1.0, ["ham", "spam"])
wishart = NormalInverseWishart(mean=[0, 0], kappa=0.01, nu=6.0, scale=3 * np.eye(2))
naive = NaiveBayes(classes, {"link": coin, "length": size}, columns={"length": ("long", "wide")})
gaussian = GaussianDiscriminant(classes, wishart, shared=True)
separated = GaussianDiscriminant(classes, SeparationPrior(mean=[0.0, 0.0], mean_sd=10.0), covariance="diagonal")
assert_type(naive.update(naive.statistics({"link": [1], "length": [[0.1, 0.2]]}, [0])), NaiveBayes)
assert_type(gaussian.conjugate, bool)

lasso = LaplaceLinearRegression([1, 1], alpha=2, noise="normal", prior="laplace")
softmax = LogisticRegression(prior_scale=[2.5], classes=("a", "b", "c"), symmetric=False)
assert_type(lasso.prior_scale, Floats)

hyper = BetaBernoulli(jnp.ones(()), 2.0)  # a JAX value, as inside a program: an array too
