"""A leaf of a new kind, and a family of columns by it, written outside the package: no file of it is opened."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import stats
from scipy.special import gammaln

from bayesgen import AveragedClassifier, NaiveBayesClassifier, load
from bayesgen.core import program
from bayesgen.core.errors import NoClosedForm
from bayesgen.inspection import impute, typicality
from bayesgen.models.column_families import FAMILIES, Family
from bayesgen.models.leaf import ConjugateFamily, Hyperparameter, count_and_mean, hyperparameter
from bayesgen.models.structures import WeakPrior
from bayesgen.numerics.special import namespace


class Exponential(ConjugateFamily):
    """Times until something happens, all at one rate."""

    def likelihood(self, params):
        return program.dist.Exponential(params["rate"])

    def sufficient_statistic(self, x, about=0.0):
        return np.stack([np.ones(x.shape), x], axis=-1)

    def natural_parameters(self, params, about=0.0):
        rate = params["rate"]
        return namespace(rate).stack([namespace(rate).log(rate), -rate], axis=-1)

    def summaries(self, total):
        return count_and_mean(total[..., 0], total[..., 1])

    def quantities(self, params, column, labels=None):
        return {"per day": super().quantities(params, column)["rate"]}

    def update(self, statistics):
        raise NotImplementedError

    log_evidence_terms = sample_parameters = parameters = update


@dataclass(frozen=True, eq=False)
class GammaExponential(Exponential):
    """The rate is Gamma(shape, scale of the times)."""

    shape: Hyperparameter = hyperparameter(1.0, positive=True)
    time: Hyperparameter = hyperparameter(1.0, positive=True)

    @classmethod
    def weak(cls, statistics):
        """One row at the mean of all rows."""
        count, total = np.moveaxis(statistics.total().sum(0), -1, 0)
        return cls(np.ones(len(count)), total / count)

    def parameters(self):
        return {"rate": program.numpyro.sample("rate", program.dist.Gamma(self.shape, self.time))}

    def update(self, statistics):
        count, total = np.moveaxis(statistics.total(), -1, 0)
        return replace(self, shape=self.shape + count, time=self.time + total)

    def log_evidence_terms(self, statistics):
        count, total = np.moveaxis(statistics.total(), -1, 0)
        after = gammaln(self.shape + count) - (self.shape + count) * np.log(self.time + total)
        return after - gammaln(self.shape) + self.shape * np.log(self.time)

    def sample_parameters(self, rng, size=()):
        return {"rate": rng.gamma(self.shape, 1 / self.time, (*size, *self.batch_shape))}

    def expected(self):
        return {"rate": self.shape / self.time}


class WeakExponential(WeakPrior, Exponential):
    """Times whose prior follows the rows."""

    needs_scale = False


@pytest.fixture(scope="module", autouse=True)
def family():
    FAMILIES["waiting"] = Family({"weak": lambda block, shape: WeakExponential(GammaExponential.weak)})
    yield
    del FAMILIES["waiting"]


RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 80)
X = pd.DataFrame({"wait": RNG.exponential(1 + 2 * Y), "stay": RNG.exponential(3.0 - Y), "age": RNG.normal(Y)})
X.loc[3, "wait"] = np.nan
FEATURES = {"wait": "waiting", "stay": "waiting"}


def fitted():
    return NaiveBayesClassifier(FEATURES).fit(X, Y)


def test_its_weak_prior_follows_the_rows_and_its_density_is_lomax():
    leaf = fitted().model_.leaves["waiting"]
    np.testing.assert_allclose(leaf.time, X[["wait", "stay"]].mean())
    one = NaiveBayesClassifier("waiting").fit(X[["stay"]], Y)
    a = [1.0 + (Y == k).sum() for k in (0, 1)]
    b = [X["stay"].mean() + X["stay"][Y == k].sum() for k in (0, 1)]
    prior = np.log([(1 + (Y == k).sum()) / (2 + len(Y)) for k in (0, 1)])
    expected = np.stack([stats.lomax(a[k], scale=b[k]).logpdf([0.5, 4.0]) + prior[k] for k in (0, 1)], axis=1)
    np.testing.assert_allclose(one.predict_joint_log_proba(pd.DataFrame({"stay": [0.5, 4.0]})), expected, rtol=1e-10)


def test_summary_says_its_quantities_and_gaps():
    shown = fitted().summary()
    assert ("wait", "per day") in shown.values and shown.gaps["wait"] == 1
    assert shown.prior["stay"].startswith("GammaExponential(shape=1")


def test_rows_are_left_out_and_those_of_another_fit_are_told():
    times, rest = X[["wait", "stay"]], np.arange(len(Y)) != 5
    left = NaiveBayesClassifier(FEATURES).fit(times, Y).leave_one_out(times, Y)
    prior = GammaExponential([1.0, 1.0], times.mean())  # that of all rows
    without = NaiveBayesClassifier({("wait", "stay"): prior}).fit(times[rest], Y[rest])
    np.testing.assert_allclose(left.log_joint[5], without.predict_joint_log_proba(times[5:6])[0], rtol=1e-9)
    refuses(lambda: fitted().leave_one_out(X.assign(wait=X["wait"] * 2), Y), "column 'wait' has means by class")


def test_files_and_the_average_take_it(tmp_path):
    average = AveragedClassifier(features=FEATURES, members="generative").fit(X, Y)
    for classifier in (fitted(), average):
        classifier.save(tmp_path / "own.safetensors")
        again = load(tmp_path / "own.safetensors", [GammaExponential, WeakExponential])
        np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    assert typicality(average, X[:3]).overall.shape == (3,)
    refuses(lambda: impute(fitted(), X), r"write density\(\)", NoClosedForm)
