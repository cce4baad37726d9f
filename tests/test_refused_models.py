"""Refusals of models, leaves and ways of inference."""

import numpy as np
import pytest
from refusals import INF, NAN, refuses
from scipy import sparse

import bayesgen as bg
from bayesgen import models

pytestmark = pytest.mark.usefixtures("no_sampling")

NIG = models.NormalInverseGamma(0.0, 1.0, 2.0, 2.0)
NIW = models.NormalInverseWishart([0.0, 0.0], 1.0, 4.0, np.eye(2))
TWO = models.DirichletCategorical(1.0, 2)
NAIVE = models.NaiveBayes(TWO, {"u": NIG})
BITS = models.NaiveBayes(TWO, {"bit": models.BetaBernoulli()})
REGRESS = models.LinearRegression([0, 0, 0], np.eye(3))
MODELS = {
    # hyperparameters
    "a of no size": (lambda: models.BetaBernoulli(0.0, 1.0), "BetaBernoulli: a must be positive, got 0"),
    "a and b beyond sums": (lambda: models.BetaBernoulli(1e308, 1e308), "a and b must sum to 1e.300"),
    "b NaN": (lambda: models.BetaBernoulli(1.0, NAN), "BetaBernoulli: b must be finite"),
    "b of no size": (lambda: models.BetaBernoulli(1, 0), "b must be positive, got 0"),
    "a beyond float64": (lambda: models.BetaBernoulli(10**400, 1.0), "a must be finite, and is beyond 1.8e308"),
    "a infinite": (lambda: models.BetaBernoulli(INF, 1.0), "a must be finite"),
    "a a word": (lambda: models.BetaBernoulli("two", 1.0), "a must be a number", TypeError),
    "a complex": (lambda: models.BetaBernoulli(1j, 1.0), "a must be a number", TypeError),
    "a None": (lambda: models.BetaBernoulli(None, 1.0), "a must be", (TypeError, ValueError)),
    "shapes that do not fit": (lambda: models.BetaBernoulli([1.0, 1.0], [1.0] * 3), "do not fit together"),
    "trials of no size": (lambda: models.BetaBinomial(1, 1, trials=0), "whole numbers >= 1"),
    "trials a fraction": (lambda: models.BetaBinomial(1, 1, trials=2.5), "whole numbers >= 1"),
    "trials a word": (lambda: models.BetaBinomial(1, 1, trials="ten"), "whole numbers >= 1"),
    "concentration of no size": (lambda: models.GammaPoisson(0.0, 1.0), "concentration must be positive"),
    "rate negative": (lambda: models.GammaPoisson(1.0, -1.0), "rate must be positive, got -1"),
    "concentration NaN": (lambda: models.GammaPoisson(NAN, 1.0), "concentration must be finite"),
    "alpha without categories": (lambda: models.DirichletCategorical(1.0), "give categories="),
    "no category": (lambda: models.DirichletCategorical(1.0, 0), "one or more distinct"),
    "categories in an empty list": (lambda: models.DirichletCategorical(1.0, []), "one or more distinct"),
    "a category twice": (lambda: models.DirichletCategorical(1.0, ["a", "a"]), "distinct labels"),
    "alpha for other categories": (lambda: models.DirichletCategorical([1.0, 1.0], 3), "2 entries for 3"),
    "an alpha of no size": (lambda: models.DirichletCategorical([1.0, 0.0]), "alpha must be positive"),
    "an alpha of NaN": (lambda: models.DirichletCategorical([1, NAN]), "alpha must be finite"),
    "length negative": (lambda: models.DirichletMultinomial(1.0, 3, length=-1), "length must be a whole"),
    "words without names": (lambda: models.DirichletMultinomial(1.0), "give categories="),
    "alpha for other words": (lambda: models.DirichletMultinomial([1, 2], 3), "alpha has 2 entries for 3 categories"),
    "order of a chain": (lambda: models.MarkovChain("ab", order=4), "order must be 0, 1, 2 or 3"),
    "alpha of a chain": (lambda: models.MarkovChain("ab", alpha=[1.0, 2.0, 3.0]), r"alpha must be .* \(3, 2\)"),
    "alpha of a chain of no size": (lambda: models.MarkovChain("ab", alpha=0.0), "alpha must be positive"),
    "a gap that is a symbol": (lambda: models.MarkovChain("ab", gap="a"), "gap 'a' is one of the categories"),
    "separator of no length": (lambda: models.MarkovChain("ab", separator=""), "separator must be a text"),
    "chain of no length": (lambda: models.MarkovChain("ab", length=0), "length must be a whole number"),
    "a chain too long to count": (lambda: models.MarkovChain(200, order=3), r"200\^4 probabilities"),
    "probabilities of sum 2": (lambda: models.KnownCategorical([1.0, 1.0]), "sum to 1"),
    "probabilities below 0": (lambda: models.KnownCategorical([1.5, -0.5]), ">= 0"),
    "probabilities of other categories": (lambda: models.KnownCategorical([0.5, 0.5], ["a"]), "categories"),
    "a probability": (lambda: models.KnownCategorical(0.5), "at least 1 axes"),
    "noise of no size": (lambda: models.NormalKnownVariance(0.0, 1.0, 0.0), "noise_sd must be positive"),
    "variance of no rows": (
        lambda: bg.fit(models.NormalKnownMean(), [NAN], "ml"),
        "maximum likelihood does not exist: no observed value",
    ),
    "variance of rows that are the known mean": (
        lambda: bg.fit(models.NormalKnownMean(2.0), [2.0, 2.0], "ml"),
        "every value is the known mean",
    ),
    "alpha of no size": (lambda: models.NormalKnownMean(0.0, 0.0), "alpha must be positive"),
    "sd negative": (lambda: models.NormalKnownVariance(0.0, -1.0), "sd must be positive"),
    "mean of a known variance infinite": (lambda: models.NormalKnownVariance(INF, 1, 1), "mean must be finite"),
    "kappa of no size": (lambda: models.NormalInverseGamma(0, 0, 1, 1), "kappa must be positive"),
    "alpha of a gamma negative": (lambda: models.NormalInverseGamma(0, 1, -1, 1), "alpha must be positive"),
    "beta NaN": (lambda: models.NormalInverseGamma(0, 1, 1, NAN), "beta must be finite"),
    "beta of no size": (lambda: models.NormalInverseGamma(0, 1, 1, 0), "beta must be positive"),
    "betas of other columns": (lambda: models.NormalInverseGamma([0, 0], 1, 1, [1] * 3), "Gamma: the shapes of"),
    "mean infinite": (lambda: models.NormalInverseGamma(INF, 1, 1, 1), "mean must be finite"),
    "nu too small": (lambda: models.NormalInverseWishart([0, 0], 1, 1, np.eye(2)), "nu must exceed D - 1 = 1, got 1"),
    "kappa negative": (lambda: models.NormalInverseWishart([0, 0], -1, 3, np.eye(2)), "kappa must be positive"),
    "scale not symmetric": (
        lambda: models.NormalInverseWishart([0, 0], 1, 4, [[1, 0.5], [0, 1]]),
        "scale must be symmetric",
    ),
    "scale not definite": (lambda: models.NormalInverseWishart([0, 0], 1, 4, [[1, 2], [2, 1]]), "positive definite"),
    "scale singular": (lambda: models.NormalInverseWishart([0, 0], 1, 3, np.ones((2, 2))), "positive definite"),
    "scale NaN": (lambda: models.NormalInverseWishart([0, 0], 1, 3, NAN * np.eye(2)), "scale must be finite"),
    "scale of another size": (lambda: models.NormalInverseWishart([0, 0], 1, 4, np.eye(3)), r"shape \(2, 2\)"),
    "scale a number": (lambda: models.NormalInverseWishart([0, 0], 1, 4, 1.0), "at least 2 axes"),
    "mean a number": (lambda: models.NormalInverseWishart(0.0, 1, 4, [[1.0]]), "at least 1 axes"),
    "eta of no size": (lambda: models.SeparationPrior(eta=0.0), "eta must be positive"),
    "separate scale negative": (lambda: models.SeparationPrior(scale=-1.0), "scale must be positive"),
    "factor of another size": (lambda: models.LinearRegression([0, 0], np.eye(3)), "lower triangular"),
    "no class prior": (lambda: models.NaiveBayes(NIG, {"u": NIG}), "classes must be a DirichletCategorical", TypeError),
    "reserved name": (lambda: models.NaiveBayes(TWO, {"classes": NIG}), "names the class prior"),
    "no leaf": (lambda: models.NaiveBayes(TWO, {"x": 3}), "'x' must be a model of a feature", TypeError),
    "vector prior of bits": (
        lambda: models.GaussianDiscriminant(TWO, models.BetaBernoulli()),
        "takes a NormalInverseWishart",
        TypeError,
    ),
    "no such covariance": (lambda: models.GaussianDiscriminant(TWO, NIW, "round"), "covariance must be one"),
    "isotropic with two betas": (
        lambda: models.GaussianDiscriminant(TWO, models.NormalInverseGamma([0, 0], 1, 1, [1, 2]), "isotropic"),
        "one variance",
    ),
    "isotropic separation": (
        lambda: models.GaussianDiscriminant(TWO, models.SeparationPrior(), "isotropic"),
        "NormalInverseGamma or ReferenceGaussian prior",
        TypeError,
    ),
    "vector prior with one mean": (
        lambda: models.GaussianDiscriminant(TWO, NIG, "diagonal"),
        "one entry for each column",
    ),
    # rows
    "complex rows": (lambda: bg.fit(NIG, np.array([1j])), "takes numbers, got complex128", TypeError),
    "dates": (lambda: bg.fit(NIG, np.array(["2020"], "datetime64[Y]")), "takes numbers, got datetime64", TypeError),
    "words": (lambda: bg.fit(NIG, ["1", "2"]), "takes numbers, got <U1", TypeError),
    "objects": (lambda: bg.fit(NIG, [{}, 1]), "takes numbers", TypeError),
    "ragged rows": (lambda: bg.fit(NIG, [[1.0], [1.0, 2.0]]), "inhomogeneous"),
    "a number for rows": (lambda: bg.fit(NIG, 3.0), "array of rows"),
    "vector for rows of vectors": (lambda: bg.fit(NIW, [1.0, 2.0]), "2 axes or more"),
    "wide rows": (lambda: bg.fit(NIW, np.zeros((3, 4))), "4 entries where the prior mean has 2"),
    "wide block": (
        lambda: bg.fit(models.NormalInverseGamma([0.0, 0.0], 1, 1, 1), np.zeros((3, 3))),
        r"rows have \(3,\) features where the model has \(2,\)",
    ),
    "partly missing vector": (lambda: bg.fit(NIW, [[NAN, 1.0], [1.0, 2.0]]), "partly missing.*'map' or 'nuts'"),
    "sparse rows": (lambda: bg.fit(NIG, sparse.csr_array([[1.0]])), "takes dense rows", TypeError),
    "infinite row": (lambda: bg.fit(NIG, [1.0, INF]), "value inf in row 1 is infinite"),
    "infinite entry": (lambda: bg.fit(NIW, [[1.0, -INF]]), "feature 1: value -inf in row 0 is infinite"),
    "infinite entry of a class": (
        lambda: models.GaussianDiscriminant(TWO, NIW).statistics([[1.0, INF]], [0]),
        "column 'gaussian', feature 1: value inf in row 0 is infinite",
    ),
    "no bit": (lambda: bg.fit(models.BetaBernoulli(), [0, 2]), "value 2 in row 1 is not 0 or 1"),
    "half a bit": (lambda: bg.fit(models.BetaBernoulli(), [0.5]), "not 0 or 1"),
    "no bit of a class": (lambda: BITS.statistics({"bit": [0, 5]}, [0, 1]), "'bit'.*value 5 in row 1"),
    "code beyond": (lambda: bg.fit(TWO, [0, 2]), r"value 2 in row 1 is not a category code 0..1"),
    "huge code": (lambda: bg.fit(TWO, [0, 10**15]), "value 1e.15 in row 1 is not a category code"),
    "code beyond any integer": (lambda: bg.fit(TWO, [0.0, 1e300]), "is not a category code"),
    "negative code": (lambda: bg.fit(TWO, [0, -1]), "value -1 in row 1"),
    "half a code": (lambda: bg.fit(TWO, [0.5]), "value 0.5 in row 0"),
    "masked regression rows": (
        lambda: REGRESS.statistics(np.ma.masked_array(np.ones((2, 2)), mask=[[1, 0], [0, 0]]), [1.0, 2.0]),
        "the value in row 0 is NaN",
    ),
    "masked regression target": (
        lambda: REGRESS.statistics(np.ones((2, 2)), np.ma.masked_array([1.0, 2.0], mask=[0, 1])),
        "the target has masked entries",
    ),
    "group beyond": (lambda: NIG.statistics([1.0, 2.0], [0, 5], 2), "whole number from 0 to 1"),
    "group below": (lambda: NIW.statistics(np.eye(2), [0, -1], 2), "whole number from 0 to 1"),
    "half a group": (lambda: models.BetaBernoulli().statistics([1, 0], [0.5, 1], 2), "whole number from 0 to 1"),
    "fewer groups": (lambda: TWO.statistics([1, 0], [0], 2), "each of the 2 rows"),
    "groups without their number": (lambda: models.GammaPoisson(1, 1).statistics([1, 0], [0, 1]), "groups="),
    "group of a bag beyond": (lambda: models.DirichletMultinomial(1.0, 2).statistics([[1, 0]], [1], 1), "from 0 to 0"),
    "masked weight": (
        lambda: NIG.statistics([1.0, 2.0], weight=np.ma.masked_array([1, 1], mask=[0, 1])),
        "masked entries",
    ),
    "negative weight": (lambda: NIG.statistics([1.0], weight=[-1.0]), "finite number >= 0"),
    "NaN weight": (lambda: NIG.statistics([1.0], weight=[NAN]), "finite number >= 0"),
    "one weight for all": (lambda: NIG.statistics([1.0, 2.0], weight=[1.0]), "each of the 2 rows"),
    "infinite weight": (lambda: NIG.statistics([1.0], weight=[INF]), "weight"),
    "a column of weights": (lambda: NIG.statistics([1.0, 2.0], weight=[[1.0], [1.0]]), "weight"),
    "negative weight of a class": (lambda: NAIVE.statistics({"u": [1.0]}, [0], weight=[-1.0]), "weight"),
    "one weight for all classes": (lambda: NAIVE.statistics({"u": [1.0, 2.0]}, [0, 1], weight=[1.0]), "weight"),
    "class beyond": (lambda: NAIVE.statistics({"u": [1.0]}, [2]), "value 2 in row 0 is not a category code"),
    "missing class": (lambda: NAIVE.statistics({"u": [1.0]}, [NAN]), "t is missing in row 0"),
    "fewer classes": (lambda: NAIVE.statistics({"u": [1.0, 2.0]}, [0]), "one length"),
    "no such feature": (lambda: NAIVE.statistics({"w": [1.0]}, [0]), r"lacks the features \['u'\]"),
    "array for a mapping": (lambda: NAIVE.statistics(np.ones((1, 1)), [0]), "as a mapping", TypeError),
    "wide prediction": (lambda: bg.fit(NIW, np.eye(2)).log_predictive(np.zeros((1, 3))), "3 entries where"),
    "infinite prediction": (lambda: bg.fit(NIG, [1.0, 2.0]).log_predictive([INF]), "infinite"),
    "unknown inference": (lambda: bg.fit(NIG, [1.0], "vb"), "inference must be one of"),
    "class of an inference": (lambda: bg.fit(NIG, [1.0], bg.NUTS), r"such as NUTS\(num_samples=500\)"),
    "model as a word": (lambda: bg.fit("coin", [1.0]), "model must be a model", TypeError),
    "class of a model": (lambda: bg.fit(models.BetaBernoulli, [1.0]), "model must be a model", TypeError),
    "no exact separation": (
        lambda: bg.fit(models.GaussianDiscriminant(TWO, models.SeparationPrior([0.0, 0.0])), (np.eye(2), [0, 1])),
        "no exact posterior",
        TypeError,
    ),
    "statistics that do not add": (
        lambda: NIG.statistics([1.0]) + TWO.statistics([1]),
        "unsupported operand",
        TypeError,
    ),
    "statistics of other columns": (
        lambda: NIW.statistics(np.eye(2)) + NIG.statistics([1.0]),
        "unsupported operand",
        TypeError,
    ),
    "acceptance NaN": (lambda: bg.NUTS(target_accept=NAN), "target_accept must lie between 0 and 1"),
    "no draw": (lambda: bg.NUTS(num_samples=0), "num_samples must be a whole number >= 1, got 0"),
    "half a draw": (lambda: bg.NUTS(num_samples=1.5), "num_samples must be a whole number"),
    "draws True": (lambda: bg.NUTS(num_samples=True), "num_samples must be a whole number >= 1, got True"),
    "warmup negative": (lambda: bg.NUTS(num_warmup=-1), "num_warmup must be a whole number >= 0"),
    "no chain": (lambda: bg.NUTS(num_chains=0), "num_chains must be a whole number >= 1"),
    "chains in words": (lambda: bg.NUTS(num_chains="4"), "num_chains must be a whole number"),
    "acceptance of 1": (lambda: bg.NUTS(target_accept=1.0), "target_accept must lie between 0 and 1"),
    "acceptance of 0": (lambda: bg.NUTS(target_accept=0), "target_accept must lie between 0 and 1"),
    "no draw of Laplace": (lambda: bg.Laplace(num_samples=0), "num_samples must be a whole number >= 1"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_models_refuse(kind):
    refuses(*MODELS[kind])
