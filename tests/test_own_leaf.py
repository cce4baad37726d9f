"""A leaf of a user's own, written outside the package, works everywhere with no edit in the package."""

from dataclasses import dataclass

import laws
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy import stats
from scipy.special import gammaln

import bayesgen as bg
from bayesgen.models import DirichletCategorical, NaiveBayes, NormalInverseGamma
from bayesgen.models.leaf import ConjugateFamily, DataError, Hyperparameter, first, hyperparameter


@dataclass(frozen=True, eq=False)
class GammaExponential(ConjugateFamily):
    """Waiting time x ~ Exponential(rate), rate ~ Gamma(a, b)."""

    a: Hyperparameter = hyperparameter(positive=True)
    b: Hyperparameter = hyperparameter(positive=True)

    def parameters(self):
        return {"rate": numpyro.sample("rate", dist.Gamma(self.a, self.b))}

    def likelihood(self, params):
        return dist.Exponential(params["rate"])

    def sufficient_statistic(self, x, about=0.0):
        return np.stack([np.ones_like(x), x], axis=-1)

    def natural_parameters(self, params, about=0.0):
        rate = params["rate"]
        xp = rate.__array_namespace__()
        return xp.stack([xp.log(rate), -rate], axis=-1)

    def update(self, statistics):
        n, total = np.moveaxis(statistics.total(), -1, 0)
        return GammaExponential(self.a + n, self.b + total)

    def log_evidence_terms(self, statistics):
        p = self.update(statistics)
        return self.a * np.log(self.b) - p.a * np.log(p.b) + gammaln(p.a) - gammaln(self.a)

    def mode(self):
        return {"rate": (self.a - 1) / self.b}

    def ml(self, statistics):
        n, total = np.moveaxis(statistics.total(), -1, 0)
        if (total <= 0).any():
            raise DataError("maximum likelihood does not exist: no time has passed", **first(total <= 0))
        return {"rate": n / total}

    def sample_parameters(self, rng, size=()):
        return {"rate": rng.gamma(self.a, 1 / self.b, (*size, *self.batch_shape))}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    y = np.repeat(["fast", "slow"], 30)
    wait = rng.exponential(np.where(y == "fast", 1.0, 4.0))
    wait[[2, 40]] = np.nan
    return pd.DataFrame({"wait": wait, "noise": rng.normal(size=60)}), y


FEATURES = {"wait": GammaExponential(2.0, 2.0)}


laws.PRIORS[GammaExponential] = lambda leaf, p: stats.gamma(leaf.a, scale=1 / leaf.b).logpdf(p["rate"]).sum()
CASE = laws.leaf(
    "waiting times",
    GammaExponential([3.0, 2.0], [4.0, 3.0]),
    lambda rng, n: (rng.exponential(1.5, (n, 2)),),
    {laws.predictive_program_is_log_predictive: "it does not write predictive()"},
)


NUTS_AGAIN = laws.LAWS[[law.__name__ for law in laws.LAWS].index("nuts_is_exact")]  # in a classifier below
OBEYED = [
    pytest.param(law, marks=[pytest.mark.slow] * (law is NUTS_AGAIN)) for law in laws.LAWS if law not in CASE.without
]


@pytest.mark.parametrize("law", OBEYED)
def test_it_obeys_the_laws(law):
    law(CASE)


def test_exact_ml_and_map_in_the_estimator(table):
    X, y = table
    for inference in ("exact", "ml", "map"):
        classifier = bg.NaiveBayesClassifier(FEATURES, inference=inference).fit(X, y)
        probability = classifier.predict_proba(X)
        assert probability.shape == (60, 2) and np.isfinite(probability).all()
        assert classifier.score(X, y) > 0.6
    slow = X["wait"][y == "slow"]
    rate = bg.NaiveBayesClassifier(FEATURES, inference="ml").fit(X, y).posterior_.params["wait.rate"]
    assert rate[1] == pytest.approx(1 / slow.mean(), rel=1e-12)


def test_a_missing_waiting_time_drops_out(table):
    X, y = table
    classifier = bg.NaiveBayesClassifier(FEATURES).fit(X, y)
    gap = X.iloc[[2]]
    alone = bg.NaiveBayesClassifier().fit(X[["noise"]], y)
    np.testing.assert_allclose(classifier.predict_proba(gap), alone.predict_proba(gap[["noise"]]), rtol=1e-12)


def test_nuts_equals_exact(table):
    X, y = table
    exact = bg.NaiveBayesClassifier(FEATURES).fit(X, y)
    sampled = bg.NaiveBayesClassifier(FEATURES, inference="nuts", random_state=0).fit(X, y)
    difference = np.abs(exact.predict_proba(X) - sampled.predict_proba(X))
    assert difference.mean() < 0.005 and difference.max() < 0.03
    assert list(sampled.to_arviz().posterior["wait.rate"].dims) == ["chain", "draw", "class"]


def test_map_without_a_closed_form_reaches_the_same_mode():
    class NoFormula(GammaExponential):
        def mode(self):
            return ConjugateFamily.mode(self)

        def ml(self, statistics):
            return ConjugateFamily.ml(self, statistics)

    x = [0.5, 1.5, 0.2]
    for inference in ("map", "ml"):
        numeric = bg.fit(NoFormula(2.0, 3.0), x, inference).params["rate"]
        assert numeric == pytest.approx(bg.fit(GammaExponential(2.0, 3.0), x, inference).params["rate"], rel=1e-6)


def test_ml_names_class_and_column_where_it_does_not_exist():
    model = NaiveBayes(
        DirichletCategorical(1.0, ["fast", "slow"]),
        {"wait": GammaExponential(2.0, 2.0), "noise": NormalInverseGamma(0.0, 1.0, 1.0, 1.0)},
    )
    with pytest.raises(ValueError, match=r"class 'slow', column 'wait'.*no time has passed"):
        bg.fit(model, ({"wait": [1.0, 0.0], "noise": [1.0, 2.0]}, [0, 1]), "ml")
