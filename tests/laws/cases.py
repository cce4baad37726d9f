"""The one table of models under test. A new model is one new line in `CASES`."""

import functools

import numpy as np

from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    GaussianDiscriminant,
    KnownCategorical,
    LaplaceLinearRegression,
    LinearRegression,
    LinearRegressionKnownVariance,
    LogisticRegression,
    LogNormal,
    MarkovChain,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownMean,
    NormalKnownVariance,
    OrderedRegression,
    ProbitRegression,
    SemiConjugateLinearRegression,
    SeparationPrior,
    StudentT,
)
from bayesgen.testing.bayes import predictive_program_is_log_predictive
from bayesgen.testing.case import Case
from bayesgen.testing.check import EXACT, GENERATIVE, LAWS, NO_ALGEBRA
from bayesgen.testing.marginalisation import (
    evidence_of_missing_is_marginal,
    missing_at_fit_is_marginal,
    missing_is_marginal,
)
from bayesgen.testing.points import map_maximises, ml_maximises
from bayesgen.testing.programs import nuts_is_exact, nuts_is_the_reweighted_prior, row_program_is_statistics_program
from bayesgen.testing.sufficiency import likelihood_of_statistics_is_that_of_rows
from bayesgen.testing.value_semantics import is_a_pytree
from laws.priors import log_prior
from laws.rows import (
    bits,
    classed,
    codes,
    columns,
    counts,
    documents,
    heads,
    normals,
    outlying,
    sequences,
    skewed,
    tosses,
)

# -- what a model is exempt from, and why ------------------------------------------------------------------------------

REGRESSION = dict.fromkeys(
    (missing_is_marginal, missing_at_fit_is_marginal, evidence_of_missing_is_marginal),
    "x has no distribution to fill a gap from, and is never missing",
)
NO_EXACT = NO_ALGEBRA | dict.fromkeys(
    (missing_is_marginal, evidence_of_missing_is_marginal), "neither predictive nor evidence in closed form"
)
SEPARATION = NO_EXACT | {ml_maximises: "that of the conjugate model of the same covariance"}
CLASSIFIER = {predictive_program_is_log_predictive: "`predictive()` is a leaf's"}
NOTHING_TO_LEARN = dict.fromkeys((nuts_is_exact, ml_maximises, map_maximises), "nothing to learn")
GIVEN_TOSSES = {predictive_program_is_log_predictive: "the tosses are data: no one distribution"}
ANY_LENGTH = {predictive_program_is_log_predictive: "its predictive is of rows of one length"}
NO_TOP = {ml_maximises: "of Gaussian rows the likelihood has no highest degrees of freedom"}
NO_ML = {ml_maximises: "maximum likelihood under Laplace noise is not offered"}

# -- left to the slow tests, since another line runs the same code -----------------------------------------------------

NUTS_AGAIN = (nuts_is_exact,)  # naive Bayes samples all kinds of leaves; `test_vague_priors` structures and a line
VALUE_AGAIN = (is_a_pytree,)  # leaves have it line by line, and naive Bayes and a discriminant of few parameters
AGAIN = NUTS_AGAIN + VALUE_AGAIN
WEIGHTED_AGAIN = (nuts_is_the_reweighted_prior,)
COMPILED = (nuts_is_the_reweighted_prior, map_maximises, missing_at_fit_is_marginal, row_program_is_statistics_program)
COMPILED_AGAIN = (*COMPILED, likelihood_of_statistics_is_that_of_rows)


def case(name, model, rows, without, slow, **kwargs):
    return Case(name, model, rows, without, slow, log_prior=functools.partial(log_prior, model), **kwargs)


def leaf(name, model, rows, without=None, slow=(), **kwargs):
    own = EXACT if model.conjugate else NO_EXACT
    return case(name, model, rows, own | GENERATIVE | (without or {}), slow, **kwargs)


def discriminant(name, classes, prior, slow=(), **kwargs):
    model = GaussianDiscriminant(classes, prior, **kwargs)
    if isinstance(prior, StudentT):
        own = NO_EXACT | (NO_TOP if prior.dof is None else {})
    else:
        own = EXACT | CLASSIFIER if model.conjugate else SEPARATION
    return case(name, model, PAIR, GENERATIVE | own, slow)


def regression(name, model, rows, without=None, slow=(), **kwargs):
    own = EXACT if model.conjugate else NO_ALGEBRA
    return case(name, model, rows, REGRESSION | own | (without or {}), slow, given=True, **kwargs)


# -- priors ------------------------------------------------------------------------------------------------------------

COV = np.array([[2.0, 0.6], [0.6, 1.0]])
NIW2 = NormalInverseWishart(mean=[1.5, 2.5], kappa=2.0, nu=7.0, scale=8 * COV)
NIW3 = NormalInverseWishart(np.full(3, 2.0), 1.5, 9.0, 9 * (np.eye(3) + 0.3))
NIG = NormalInverseGamma(mean=1.0, kappa=1.5, alpha=4.0, beta=6.0)
NIGS = NormalInverseGamma([1.0, 2.0, 3.0], [1.5, 0.7, 2.0], [4.0, 5.0, 3.5], [6.0, 5.0, 8.0])
TORONTO = NormalKnownVariance(mean=1.0, sd=2.0, noise_sd=1.5)
TWO, THREE = DirichletCategorical([2.0, 1.5], ["no", "yes"]), DirichletCategorical(1.5, ["a", "b", "c"])
DIE, DICE = DirichletCategorical([1.5, 2.0, 3.0]), DirichletCategorical([[1.5, 2.0, 1.2], [3.0, 1.1, 2.5]])
MIXED = {"coin": BetaBernoulli([1.5, 2.0], 2.0), "die": DIE, "size": NIG, "sizes": NIGS, "heat": TORONTO}
MIXED_ROWS = {"coin": bits(2), "die": codes(3), "size": normals(), "sizes": normals(3), "heat": normals()}

CALLS, PAIRS = GammaPoisson([2.0, 0.7], [0.5, 1.5]), BetaBinomial(1.5, 2.5)
BAG = DirichletMultinomial([1.2, 1.0, 2.5], length=7)
BAGS = DirichletMultinomial([[1.2, 1.0, 2.5], [2.0, 1.5, 1.1]], length=4)
COUNTS = {"calls": CALLS, "days": BetaBinomial([1.5, 2.0], 2.0, trials=[6, 3]), "tosses": PAIRS, "bag": BAG}
COUNTS_ROWS = {"calls": counts(2), "days": heads([6, 3]), "tosses": tosses(), "bag": documents(3)}

CHAIN = MarkovChain(3, 1, [[1.5, 2.0, 3.0], [2.5, 1.5, 2.0], [1.2, 3.0, 2.2], [4.0, 1.5, 1.5]], length=4)

PLANE = NormalInverseGamma([1.5, 2.5], [1.5, 0.7], [5.0, 6.0], [6.0, 5.0])
ROUND = NormalInverseGamma([1.5, 2.5], 1.5, 6.0, 8.0)
APART = SeparationPrior([1.5, 2.5], [1.0, 1.5], [1.5, 1.2], eta=2.5)
PAIR = classed(2, x=normals(2))

TAILS = StudentT(NormalInverseGamma([1.5, 2.5], [1.5, 0.7], [5.0, 6.0], [6.0, 5.0]))
TAILS2, TAILS4 = StudentT(NIW2, dof_shape=3.0, dof_rate=0.5), StudentT(NIW2, dof=4.0)

LINE = {"mean": [1.0, -0.5, 0.2], "factor": [[1.0, 0, 0], [0.3, 0.8, 0], [-0.5, 0.4, 0.7]]}
SLOPES = {"mean": [-0.5, 0.2], "factor": [[0.8, 0], [0.4, 0.7]]}
LASSO = {"alpha": 4.0, "beta": 3.0, "intercept_scale": 1.5}
SCORES = {"prior_scale": [1.5, 1.0], "intercept_scale": 1.2}
ABC = ("a", "b", "c")

CASES = [
    leaf("coin", BetaBernoulli(a=2.0, b=3.5), bits(), slow=NUTS_AGAIN),
    leaf("coins", BetaBernoulli([2.0, 1.5, 4.0], [3.5, 2.0, 1.2]), bits(3), slow=NUTS_AGAIN),
    leaf("die", DIE, codes(3), slow=NUTS_AGAIN),
    leaf("dice", DICE, codes(3, 2), slow=NUTS_AGAIN),
    leaf("known die", KnownCategorical([0.2, 0.3, 0.5]), codes(3), NOTHING_TO_LEARN),
    leaf("calls", CALLS, counts(2), slow=NUTS_AGAIN, digits=1e-5),
    leaf("heads of six", BetaBinomial(1.5, 2.5, trials=6), heads(6), slow=NUTS_AGAIN, digits=1e-5),
    leaf("tosses", PAIRS, tosses(), GIVEN_TOSSES, slow=NUTS_AGAIN),
    leaf("bag", BAG, documents(3), ANY_LENGTH, NUTS_AGAIN),
    leaf("bags of four", BAGS, documents(3, 2, length=4), slow=NUTS_AGAIN, digits=1e-5),
    leaf("chain", CHAIN, sequences(3, 4), ANY_LENGTH, NUTS_AGAIN),
    leaf("toronto", TORONTO, normals(), slow=NUTS_AGAIN),
    leaf("gauge", NormalKnownMean(1.0, 4.0, 6.0), normals(), slow=NUTS_AGAIN),
    leaf("gauges", NormalKnownMean([1.0, 2.0], [4.0, 5.0], [6.0, 5.0]), normals(2), slow=NUTS_AGAIN),
    leaf("weather stations", NormalKnownVariance([1.0, 2.0], [2.0, 0.5], [1.5, 1.0]), normals(2), slow=NUTS_AGAIN),
    leaf("normal", NIG, normals(), slow=NUTS_AGAIN),
    leaf("normals", NIGS, normals(3), slow=NUTS_AGAIN),
    leaf("skewed", LogNormal(mean=1.0, kappa=1.5, alpha=4.0, beta=2.0), skewed(), slow=NUTS_AGAIN),
    leaf("skewed from 0", LogNormal([1.0, 0.5], 1.5, [4.0, 5.0], 2.0, shift=1.0), skewed(2, shift=1), slow=NUTS_AGAIN),
    leaf("gaussian line", NormalInverseWishart([1.0], 1.5, 8.0, [[12.0]]), normals(1), slow=NUTS_AGAIN),
    leaf("gaussian plane", NIW2, normals(2), slow=NUTS_AGAIN),
    leaf("gaussian space", NIW3, normals(3), slow=NUTS_AGAIN),
    leaf("naive Bayes", NaiveBayes(THREE, MIXED), classed(3, **MIXED_ROWS), CLASSIFIER, VALUE_AGAIN),
    leaf("naive Bayes, known classes", NaiveBayes(KnownCategorical([0.3, 0.7]), {"size": NIG}),
         classed(2, size=normals()), CLASSIFIER, NUTS_AGAIN),
    leaf("naive Bayes of counts", NaiveBayes(TWO, COUNTS), classed(2, **COUNTS_ROWS), CLASSIFIER, AGAIN),
    discriminant("full", TWO, NIW2, AGAIN),
    discriminant("full shared", TWO, NIW2, AGAIN, shared=True),
    discriminant("diagonal", TWO, PLANE, covariance="diagonal", slow=AGAIN),
    discriminant("diagonal shared", TWO, PLANE, covariance="diagonal", shared=True, slow=NUTS_AGAIN),
    discriminant("isotropic", TWO, ROUND, AGAIN, covariance="isotropic"),
    discriminant("isotropic shared", TWO, ROUND, covariance="isotropic", shared=True, slow=NUTS_AGAIN),
    discriminant("separation", TWO, APART, COMPILED),
    discriminant("separation shared", TWO, APART, COMPILED_AGAIN, shared=True),
    discriminant("separation diagonal", TWO, APART, COMPILED_AGAIN, covariance="diagonal"),
    leaf("outliers", TAILS, outlying(2), slow=WEIGHTED_AGAIN),
    discriminant("student", TWO, TAILS2, tuple(LAWS), covariance="student"),
    discriminant("student shared", TWO, TAILS4, tuple(LAWS), covariance="student", shared=True),
    regression("linear", LinearRegression(**LINE, alpha=4.0, beta=3.0, columns=("a", "b")), columns(2),
               slow=NUTS_AGAIN),
    regression("linear, known noise", LinearRegressionKnownVariance(**LINE, noise_sd=0.8), columns(2),
               slow=NUTS_AGAIN),
    regression("linear through 0", LinearRegression(**SLOPES, alpha=4.0, beta=3.0, intercept=False), columns(2),
               slow=NUTS_AGAIN),
    regression("linear, prior apart", SemiConjugateLinearRegression(**LINE, alpha=4.0, beta=3.0), columns(2),
               slow=NUTS_AGAIN + WEIGHTED_AGAIN),
    regression("laplace noise", LaplaceLinearRegression([0.8, 0.5], **LASSO), columns(2), NO_ML, WEIGHTED_AGAIN,
               kinked=True),
    regression("laplace prior", LaplaceLinearRegression([0.8, 0.5], **LASSO, noise="normal", prior="laplace"),
               columns(2), slow=WEIGHTED_AGAIN, kinked=True),
    regression("laplace noise and prior", LaplaceLinearRegression([0.8, 0.5], **LASSO, prior="laplace"), columns(2),
               NO_ML, WEIGHTED_AGAIN, kinked=True),
    regression("logistic", LogisticRegression(**SCORES), columns(2, classes=2)),
    regression("softmax", LogisticRegression(**SCORES, classes=ABC, columns=("a", "b")), columns(2, classes=3),
               slow=WEIGHTED_AGAIN),
    regression("softmax, pinned", LogisticRegression(**SCORES, classes=ABC, symmetric=False), columns(2, classes=3),
               slow=WEIGHTED_AGAIN),
    regression("probit", ProbitRegression(**SCORES), columns(2, classes=2), slow=WEIGHTED_AGAIN),
    regression("ordered", OrderedRegression(**SCORES, classes=ABC), columns(2, classes=3), slow=WEIGHTED_AGAIN),
    regression("ordered, probit", OrderedRegression(**SCORES, classes=ABC, link="probit"), columns(2, classes=3),
               slow=COMPILED_AGAIN),
]  # fmt: skip

# Programs like another line's, in another shape: each operation is compiled anew, for seconds.
LIKE_ANOTHER = ("coins", "weather stations", "gaussian line", "gaussian space", "naive Bayes, known classes")
LIKE_ANOTHER += ("diagonal shared", "isotropic shared", "separation", "separation shared")
LIKE_ANOTHER += (
    "heads of six",
    "tosses",
    "bags of four",
    "naive Bayes of counts",
    "linear, known noise",
    "laplace noise",
)
LIKE_ANOTHER += ("laplace prior", "laplace noise and prior", "logistic", "softmax, pinned", "probit")
LIKE_ANOTHER += ("student", "student shared")
