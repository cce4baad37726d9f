"""A user's settings of NumPy and JAX change nothing: no compiler, no promoted ranks, every flag an error."""

import warnings

import jax
import numpy as np
import pytest

import bayesgen as bg
from bayesgen.models import BetaBinomial, DirichletCategorical, SeparationPrior

SETTINGS = {
    "no compiler": jax.disable_jit,
    "ranks not promoted": lambda: jax.numpy_rank_promotion("raise"),
    "flags raised": lambda: np.errstate(all="raise"),
}
FEW = bg.NUTS(20, 20, 1)
RNG = np.random.default_rng(0)
Y = np.repeat([0, 1, 2], 8)
X = RNG.normal(size=(24, 2)) + 40.0 * Y[:, None]  # so far apart that probabilities underflow
COUNTS = RNG.poisson(3.0 + 5 * Y[:, None], (24, 2))
HEADS = np.column_stack([RNG.binomial(9, 0.2 + 0.3 * Y), np.full(24, 9)])


def classify(classifier, x=X, y=Y):
    """Ask a generative classifier every question."""
    classifier.set_params(random_state=0, class_concentration=2.0).fit(x, y)
    classifier.predict_proba(x), classifier.predict_log_proba(x), classifier.score_samples(x)
    classifier.predict_proba_draws(x, size=20)
    if classifier.model_.conjugate:
        assert np.isfinite(classifier.log_evidence_)
    if classifier.inference != "map":  # what compiles is run once
        classifier.to_arviz(x[:3], y[:3])
        classifier.sample(2)


def regress(estimator, y):
    estimator.set_params(random_state=0).fit(X % 10, y)
    estimator.predict(X % 10)
    estimator.to_arviz(X[:3] % 10, y[:3])


def own():
    import numpyro
    import numpyro.distributions as dist

    def rate(counts):
        mean = numpyro.sample("mean", dist.LogNormal(0.0, 1.0))
        with numpyro.plate("obs", len(counts)):
            numpyro.sample("counts", dist.Poisson(mean), obs=counts)

    for inference in ("map", FEW):
        bg.fit(rate, COUNTS[:, 0], inference, seed=0).log_predictive(COUNTS[:2, 0])


NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
PROGRAMS = {
    "naive Bayes": lambda inference: classify(NB(inference=inference)),
    "bits": lambda inference: classify(NB("bernoulli", inference=inference), X % 10 > 5),
    "categories": lambda inference: classify(
        NB({c: DirichletCategorical(2.0, range(40)) for c in (0, 1)}, inference=inference), COUNTS
    ),
    "counts": lambda inference: classify(NB("poisson", inference=inference), COUNTS),
    "bag": lambda inference: classify(NB("multinomial", inference=inference), COUNTS),
    "tosses": lambda inference: (
        NB({(0, 1): BetaBinomial(2.0, 2.0)}, inference=inference).fit(HEADS, Y).predict_proba(HEADS)
    ),
    "full": lambda inference: classify(GD(inference=inference)),
    "full shared": lambda inference: classify(GD(shared=True, inference=inference)),
    "diagonal shared": lambda inference: classify(GD("diagonal", True, inference=inference)),
    "isotropic": lambda inference: classify(GD("isotropic", inference=inference)),
    "separation": lambda inference: classify(GD(prior=SeparationPrior(40.0, 40.0), inference=inference)),
    "line": lambda inference: regress(bg.LinearRegressor(inference=inference), X[:, 0]),
    "lasso": lambda inference: regress(bg.LinearRegressor(prior="laplace", inference=inference), X[:, 0]),
    "logistic": lambda inference: regress(bg.LogisticClassifier(inference=inference), Y % 2),
    "softmax": lambda inference: regress(bg.LogisticClassifier(inference=inference), Y),
    "probit": lambda inference: regress(bg.ProbitClassifier(inference=inference), Y % 2),
}
INEXACT = {"separation", "lasso", "logistic", "softmax", "probit"}
KINDS = ["naive Bayes", "categories", "full shared", "line", "softmax"]
QUICK = {"full", "counts"}  # programs that are sampled in every run of the tests


@pytest.mark.compiles
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("inference", ["map", "exact"])
@pytest.mark.parametrize("names", [KINDS, pytest.param([*PROGRAMS], marks=pytest.mark.slow)], ids=["kinds", "all"])
def test_closed_forms_under_a_users_settings(setting, inference, names):
    """A program of each kind, and the slow tests all: without a compiler every operation takes its time."""
    with SETTINGS[setting](), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* effective draws")
        for name in names:
            if name != "separation" and (inference != "exact" or name not in INEXACT):
                PROGRAMS[name](inference)


@pytest.mark.compiles
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PROGRAMS]
)
def test_nuts_under_a_users_settings(setting, name):
    with SETTINGS[setting]():
        PROGRAMS[name](FEW)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_other_programs_under_a_users_settings(setting):
    with SETTINGS[setting]():
        PROGRAMS["separation"]("map")
        own()
        assert bg.testing.check_calibration(bg.models.BetaBernoulli(2, 3), size=4, simulations=20, seed=0) is not None


@pytest.mark.compiles
def test_an_average_runs_with_flags_raised():
    with np.errstate(all="raise"):
        classifier = bg.AveragedClassifier(members=["gaussian", "category", "softmax"], random_state=0).fit(X, Y)
        for far in (X, 1e90 * X):
            classifier.predict_proba(far), classifier.score_samples(far), classifier.predict_proba_draws(far[:2])
        gaps = np.where([False, True], np.nan, 1e5 * X[:2])
        bg.inspection.next_measurement(classifier, gaps), bg.inspection.impute(classifier, gaps)
        bg.inspection.typicality(classifier, gaps), classifier.sample(2)
