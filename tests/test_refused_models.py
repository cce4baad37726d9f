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
REGRESS = models.LinearRegression([0, 0, 0], np.eye(3))
MODELS = {
    # hyperparameters
    "a of no size": (lambda: models.BetaBernoulli(0.0, 1.0), ValueError, "BetaBernoulli: a must be positive, got 0"),
    "a and b beyond sums": (lambda: models.BetaBernoulli(1e308, 1e308), ValueError, "a and b must sum to 1e.300"),
    "b NaN": (lambda: models.BetaBernoulli(1.0, NAN), ValueError, "BetaBernoulli: b must be finite"),
    "a infinite": (lambda: models.BetaBernoulli(INF, 1.0), ValueError, "a must be finite"),
    "a a word": (lambda: models.BetaBernoulli("two", 1.0), TypeError, "a must be a number"),
    "a complex": (lambda: models.BetaBernoulli(1j, 1.0), TypeError, "a must be a number"),
    "a None": (lambda: models.BetaBernoulli(None, 1.0), (TypeError, ValueError), "a must be"),
    "shapes that do not fit": (lambda: models.BetaBernoulli([1.0, 1.0], [1.0] * 3), ValueError, "do not fit together"),
    "trials of no size": (lambda: models.BetaBinomial(1, 1, trials=0), ValueError, "whole numbers >= 1"),
    "trials a fraction": (lambda: models.BetaBinomial(1, 1, trials=2.5), ValueError, "whole numbers >= 1"),
    "rate negative": (lambda: models.GammaPoisson(1.0, -1.0), ValueError, "rate must be positive, got -1"),
    "concentration NaN": (lambda: models.GammaPoisson(NAN, 1.0), ValueError, "concentration must be finite"),
    "alpha without categories": (lambda: models.DirichletCategorical(1.0), ValueError, "give categories="),
    "no category": (lambda: models.DirichletCategorical(1.0, 0), ValueError, "one or more distinct"),
    "a category twice": (lambda: models.DirichletCategorical(1.0, ["a", "a"]), ValueError, "distinct labels"),
    "alpha for other categories": (lambda: models.DirichletCategorical([1.0, 1.0], 3), ValueError, "2 entries for 3"),
    "an alpha of no size": (lambda: models.DirichletCategorical([1.0, 0.0]), ValueError, "alpha must be positive"),
    "length negative": (lambda: models.DirichletMultinomial(1.0, 3, length=-1), ValueError, "length must be a whole"),
    "probabilities of sum 2": (lambda: models.KnownCategorical([1.0, 1.0]), ValueError, "sum to 1"),
    "noise of no size": (lambda: models.NormalKnownVariance(0.0, 1.0, 0.0), ValueError, "noise_sd must be positive"),
    "variance of no rows": (
        lambda: bg.fit(models.NormalKnownMean(), [NAN], "ml"),
        ValueError,
        "maximum likelihood does not exist: no observed value",
    ),
    "variance of rows that are the known mean": (
        lambda: bg.fit(models.NormalKnownMean(2.0), [2.0, 2.0], "ml"),
        ValueError,
        "every value is the known mean",
    ),
    "alpha of no size": (lambda: models.NormalKnownMean(0.0, 0.0), ValueError, "alpha must be positive"),
    "sd negative": (lambda: models.NormalKnownVariance(0.0, -1.0), ValueError, "sd must be positive"),
    "kappa of no size": (lambda: models.NormalInverseGamma(0, 0, 1, 1), ValueError, "kappa must be positive"),
    "alpha of a gamma negative": (lambda: models.NormalInverseGamma(0, 1, -1, 1), ValueError, "alpha must be positive"),
    "beta NaN": (lambda: models.NormalInverseGamma(0, 1, 1, NAN), ValueError, "beta must be finite"),
    "mean infinite": (lambda: models.NormalInverseGamma(INF, 1, 1, 1), ValueError, "mean must be finite"),
    "nu too small": (
        lambda: models.NormalInverseWishart([0, 0], 1, 1, np.eye(2)),
        ValueError,
        "nu must exceed D - 1 = 1, got 1",
    ),
    "scale not symmetric": (
        lambda: models.NormalInverseWishart([0, 0], 1, 4, [[1, 0.5], [0, 1]]),
        ValueError,
        "scale must be symmetric",
    ),
    "scale not definite": (
        lambda: models.NormalInverseWishart([0, 0], 1, 4, [[1, 2], [2, 1]]),
        ValueError,
        "positive definite",
    ),
    "scale of another size": (
        lambda: models.NormalInverseWishart([0, 0], 1, 4, np.eye(3)),
        ValueError,
        r"shape \(2, 2\)",
    ),
    "scale a number": (lambda: models.NormalInverseWishart([0, 0], 1, 4, 1.0), ValueError, "at least 2 axes"),
    "mean a number": (lambda: models.NormalInverseWishart(0.0, 1, 4, [[1.0]]), ValueError, "at least 1 axes"),
    "eta of no size": (lambda: models.SeparationPrior(eta=0.0), ValueError, "eta must be positive"),
    "separate scale negative": (lambda: models.SeparationPrior(scale=-1.0), ValueError, "scale must be positive"),
    "factor not triangular": (lambda: models.LinearRegression([0, 0], np.ones((2, 2))), ValueError, "lower triangular"),
    "factor of another size": (lambda: models.LinearRegression([0, 0], np.eye(3)), ValueError, "lower triangular"),
    "no coefficient": (lambda: models.LinearRegression([0], np.eye(1)), ValueError, "each coefficient"),
    "probit of three": (lambda: models.ProbitRegression([1.0], classes=(0, 1, 2)), ValueError, "two classes"),
    "noise of no kind": (
        lambda: models.LaplaceLinearRegression([1.0], noise="cauchy"),
        ValueError,
        "noise must be one of",
    ),
    "no class prior": (lambda: models.NaiveBayes(NIG, {"u": NIG}), TypeError, "classes must be a DirichletCategorical"),
    "reserved name": (lambda: models.NaiveBayes(TWO, {"classes": NIG}), ValueError, "names the class prior"),
    "isotropic with two betas": (
        lambda: models.GaussianDiscriminant(TWO, models.NormalInverseGamma([0, 0], 1, 1, [1, 2]), "isotropic"),
        ValueError,
        "one variance",
    ),
    "isotropic separation": (
        lambda: models.GaussianDiscriminant(TWO, models.SeparationPrior(), "isotropic"),
        TypeError,
        "NormalInverseGamma or ReferenceGaussian prior",
    ),
    "vector prior with one mean": (
        lambda: models.GaussianDiscriminant(TWO, NIG, "diagonal"),
        ValueError,
        "one entry for each column",
    ),
    # rows
    "complex rows": (lambda: bg.fit(NIG, np.array([1j])), TypeError, "takes numbers, got complex128"),
    "dates": (lambda: bg.fit(NIG, np.array(["2020"], "datetime64[Y]")), TypeError, "takes numbers, got datetime64"),
    "words": (lambda: bg.fit(NIG, ["1", "2"]), TypeError, "takes numbers, got <U1"),
    "objects": (lambda: bg.fit(NIG, [{}, 1]), TypeError, "takes numbers"),
    "ragged rows": (lambda: bg.fit(NIG, [[1.0], [1.0, 2.0]]), ValueError, "inhomogeneous"),
    "a number for rows": (lambda: bg.fit(NIG, 3.0), ValueError, "array of rows"),
    "vector for rows of vectors": (lambda: bg.fit(NIW, [1.0, 2.0]), ValueError, "2 axes or more"),
    "wide rows": (lambda: bg.fit(NIW, np.zeros((3, 4))), ValueError, "4 entries where the prior mean has 2"),
    "wide block": (
        lambda: bg.fit(models.NormalInverseGamma([0.0, 0.0], 1, 1, 1), np.zeros((3, 3))),
        ValueError,
        r"rows have \(3,\) features where the model has \(2,\)",
    ),
    "partly missing vector": (
        lambda: bg.fit(NIW, [[NAN, 1.0], [1.0, 2.0]]),
        ValueError,
        "partly missing.*'map' or 'nuts'",
    ),
    "sparse rows": (lambda: bg.fit(NIG, sparse.csr_array([[1.0]])), TypeError, "takes dense rows"),
    "infinite row": (lambda: bg.fit(NIG, [1.0, INF]), ValueError, "value inf in row 1 is infinite"),
    "code beyond": (lambda: bg.fit(TWO, [0, 2]), ValueError, r"value 2 in row 1 is not a category code 0..1"),
    "huge code": (lambda: bg.fit(TWO, [0, 10**15]), ValueError, "value 1e.15 in row 1 is not a category code"),
    "code beyond any integer": (lambda: bg.fit(TWO, [0.0, 1e300]), ValueError, "is not a category code"),
    "negative code": (lambda: bg.fit(TWO, [0, -1]), ValueError, "value -1 in row 1"),
    "half a code": (lambda: bg.fit(TWO, [0.5]), ValueError, "value 0.5 in row 0"),
    "more heads than tosses": (lambda: bg.fit(models.BetaBinomial(1, 1, trials=3), [4]), ValueError, "4"),
    "more heads than tosses in a pair": (lambda: bg.fit(models.BetaBinomial(1, 1), [[4, 3]]), ValueError, "row 0"),
    "masked regression rows": (
        lambda: REGRESS.statistics(np.ma.masked_array(np.ones((2, 2)), mask=[[1, 0], [0, 0]]), [1.0, 2.0]),
        ValueError,
        "the value in row 0 is NaN",
    ),
    "masked regression target": (
        lambda: REGRESS.statistics(np.ones((2, 2)), np.ma.masked_array([1.0, 2.0], mask=[0, 1])),
        ValueError,
        "the target has masked entries",
    ),
    "group beyond": (lambda: NIG.statistics([1.0, 2.0], [0, 5], 2), ValueError, "whole number from 0 to 1"),
    "group below": (lambda: NIW.statistics(np.eye(2), [0, -1], 2), ValueError, "whole number from 0 to 1"),
    "half a group": (
        lambda: models.BetaBernoulli().statistics([1, 0], [0.5, 1], 2),
        ValueError,
        "whole number from 0 to 1",
    ),
    "fewer groups": (lambda: TWO.statistics([1, 0], [0], 2), ValueError, "each of the 2 rows"),
    "groups without their number": (
        lambda: models.GammaPoisson(1, 1).statistics([1, 0], [0, 1]),
        ValueError,
        "groups=",
    ),
    "group of a bag beyond": (
        lambda: models.DirichletMultinomial(1.0, 2).statistics([[1, 0]], [1], 1),
        ValueError,
        "from 0 to 0",
    ),
    "masked weight": (
        lambda: NIG.statistics([1.0, 2.0], weight=np.ma.masked_array([1, 1], mask=[0, 1])),
        ValueError,
        "masked entries",
    ),
    "negative weight": (lambda: NIG.statistics([1.0], weight=[-1.0]), ValueError, "finite number >= 0"),
    "NaN weight": (lambda: NIG.statistics([1.0], weight=[NAN]), ValueError, "finite number >= 0"),
    "one weight for all": (lambda: NIG.statistics([1.0, 2.0], weight=[1.0]), ValueError, "each of the 2 rows"),
    "class beyond": (
        lambda: NAIVE.statistics({"u": [1.0]}, [2]),
        ValueError,
        "value 2 in row 0 is not a category code",
    ),
    "missing class": (lambda: NAIVE.statistics({"u": [1.0]}, [NAN]), ValueError, "t is missing in row 0"),
    "fewer classes": (lambda: NAIVE.statistics({"u": [1.0, 2.0]}, [0]), ValueError, "one length"),
    "no such feature": (lambda: NAIVE.statistics({"w": [1.0]}, [0]), ValueError, r"lacks the features \['u'\]"),
    "array for a mapping": (lambda: NAIVE.statistics(np.ones((1, 1)), [0]), TypeError, "as a mapping"),
    "wide prediction": (lambda: bg.fit(NIW, np.eye(2)).log_predictive(np.zeros((1, 3))), ValueError, "3 entries where"),
    "infinite prediction": (lambda: bg.fit(NIG, [1.0, 2.0]).log_predictive([INF]), ValueError, "infinite"),
    "unknown inference": (lambda: bg.fit(NIG, [1.0], "vb"), ValueError, "inference must be one of"),
    "class of an inference": (lambda: bg.fit(NIG, [1.0], bg.NUTS), ValueError, r"such as NUTS\(num_samples=500\)"),
    "model as a word": (lambda: bg.fit("coin", [1.0]), TypeError, "model must be a model"),
    "class of a model": (lambda: bg.fit(models.BetaBernoulli, [1.0]), TypeError, "model must be a model"),
    "no exact separation": (
        lambda: bg.fit(models.GaussianDiscriminant(TWO, models.SeparationPrior([0.0, 0.0])), (np.eye(2), [0, 1])),
        TypeError,
        "no exact posterior",
    ),
    "ml of nothing": (lambda: bg.fit(NIG, [NAN], "ml"), ValueError, "no observed value"),
    "ml of one value": (lambda: bg.fit(NIG, [1.0, 1.0], "ml"), ValueError, "fewer than two distinct values"),
    "ml of an empty class": (
        lambda: bg.fit(NAIVE, ({"u": [1.0, 2.0]}, [0, 0]), "ml"),
        ValueError,
        "class 1.*no observed",
    ),
    "ml of few vectors": (lambda: bg.fit(NIW, [[1.0, 2.0]], "ml"), ValueError, "degrees of freedom"),
    "ml on a line": (lambda: bg.fit(NIW, np.outer(np.arange(6.0), [1, 2]), "ml"), ValueError, "linearly dependent"),
    "no mode of a coin": (
        lambda: bg.fit(models.BetaBernoulli(0.5, 0.5), [1], "map"),
        ValueError,
        "no mode where a or b",
    ),
    "no mode of a die": (lambda: bg.fit(models.DirichletCategorical(0.5, 3), [1], "map"), ValueError, "no mode where"),
    "statistics that do not add": (
        lambda: NIG.statistics([1.0]) + TWO.statistics([1]),
        TypeError,
        "unsupported operand",
    ),
    "statistics of other columns": (
        lambda: NIW.statistics(np.eye(2)) + NIG.statistics([1.0]),
        TypeError,
        "unsupported operand",
    ),
    # samplers
    "no draw": (lambda: bg.NUTS(num_samples=0), ValueError, "num_samples must be an integer >= 1, got 0"),
    "warmup negative": (lambda: bg.NUTS(num_warmup=-1), ValueError, "num_warmup must be an integer >= 0"),
    "half a chain": (lambda: bg.NUTS(num_chains=0.5), ValueError, "num_chains must be an integer >= 1"),
    "acceptance of 1": (lambda: bg.NUTS(target_accept=1.0), ValueError, "target_accept must lie between 0 and 1"),
    "acceptance NaN": (lambda: bg.NUTS(target_accept=NAN), ValueError, "target_accept must lie between 0 and 1"),
    "draws in words": (lambda: bg.NUTS(num_samples="many"), ValueError, "num_samples must be an integer"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_models_refuse(kind):
    refuses(*MODELS[kind])
