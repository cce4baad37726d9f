"""A leaf of a user's, of sums or of rows, written outside the package, works everywhere with no edit in it."""

import re
from dataclasses import dataclass, replace

import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from refusals import refuses
from scipy import stats
from scipy.special import gammaln

import bayesgen as bg
from bayesgen.inference import Exact
from bayesgen.models import DirichletCategorical, NaiveBayes, NormalInverseGamma
from bayesgen.models.leaf import ConjugateFamily, DataError, ExponentialFamily, Hyperparameter, first, hyperparameter
from bayesgen.models.row_leaf import RowLeaf, RowsByGroup
from bayesgen.testing import BrokenLaws, check_leaf


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
        return replace(self, a=self.a + n, b=self.b + total)

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


WAITS = np.random.default_rng(0).exponential(1.5, (200, 2))


def prior(leaf, params):
    return stats.gamma(leaf.a, scale=1 / leaf.b).logpdf(params["rate"]).sum()


@pytest.mark.compiles
def test_it_obeys_the_laws():
    told = check_leaf(GammaExponential([3.0, 2.0], [4.0, 3.0]), WAITS, prior)
    left = {name: why for name, why in told.items() if why != "holds"}
    assert left == {
        "predictive_program_is_log_predictive": "GammaExponential has no predictive that is one NumPyro distribution",
        "target_has_probability_one": "missing_is_marginal says it of every entry",
        "nuts_is_the_reweighted_prior": "nuts_is_exact says more",
    }


class Shifted(GammaExponential):
    """A wrong prior program."""

    def parameters(self):
        return {"rate": numpyro.sample("rate", dist.Gamma(self.a + 1, self.b))}


class Hasty(GammaExponential):
    """A wrong posterior, whose evidence is right."""

    def update(self, statistics):
        n, total = np.moveaxis(statistics.total(), -1, 0)
        return replace(self, a=self.a + n, b=self.b + 1.1 * total)

    def log_evidence_terms(self, statistics):
        return GammaExponential(self.a, self.b).log_evidence_terms(statistics)


class Late(GammaExponential):
    """A wrong mode."""

    def mode(self):
        return {"rate": self.a / self.b}


class Crossed(GammaExponential):
    """Draws of another shape."""

    def sample_parameters(self, rng, size=()):
        return {"rate": rng.gamma(self.a, 1 / self.b, (*self.batch_shape, *size))}


CHEAP = ("learning_goes_in_steps", "predictive_is_an_evidence_ratio", "predictive_is_a_mean_over_draws")
CHEAP += ("map_maximises", "row_program_is_statistics_program", "prior_program_is_the_prior", "pieces_make_the_whole")


@pytest.mark.parametrize(
    ("leaf", "broken"),
    [
        (Shifted, {"prior_program_is_the_prior": "ACTUAL.*DESIRED"}),
        (Hasty, {"learning_goes_in_steps": "log evidence of two updates", "predictive_is_an_evidence_ratio": "ACTUAL"}),
        (Late, {"map_maximises": "gains [0-9]"}),
        (Crossed, {"predictive_is_a_mean_over_draws": "shape|broadcast"}),
    ],
)
def test_a_wrong_leaf_breaks_the_laws_that_speak_of_it(leaf, broken):
    with pytest.raises(BrokenLaws, match=rf"{leaf.__name__} breaks \d of 7 laws") as told:
        check_leaf(leaf([3.0, 2.0], [4.0, 3.0]), WAITS, prior, CHEAP)
    assert broken.keys() <= told.value.broken.keys() < set(CHEAP)
    for name, words in broken.items():
        assert name in str(told.value) and re.search(words, str(told.value.broken[name]), re.DOTALL)


@dataclass(frozen=True, eq=False)
class LogNormalPoisson(ExponentialFamily):
    """Count x ~ Poisson(mean), log mean ~ Normal(m, s): not conjugate."""

    density_kind = "probability"

    m: Hyperparameter = hyperparameter()
    s: Hyperparameter = hyperparameter(positive=True)

    def parameters(self):
        return {"mean": numpyro.sample("mean", dist.LogNormal(self.m, self.s))}

    def likelihood(self, params):
        return dist.Poisson(params["mean"])

    def sufficient_statistic(self, x, about=0.0):
        return np.stack([np.ones_like(x), x], axis=-1)

    def natural_parameters(self, params, about=0.0):
        mean = params["mean"]
        xp = mean.__array_namespace__()
        return xp.stack([-mean, xp.log(mean)], axis=-1)

    def log_base_measure(self, x):
        return -gammaln(x + 1.0)


class Unnormalised(LogNormalPoisson):
    """A density that lacks the factorial."""

    def log_base_measure(self, x):
        return np.zeros_like(x)


@pytest.mark.compiles
def test_a_leaf_that_is_not_conjugate():
    rows = np.random.default_rng(0).poisson(2.5, 100)
    laws = ["likelihood_of_statistics_is_that_of_rows", "missing_at_fit_is_marginal", "nuts_is_exact"]
    told = check_leaf(LogNormalPoisson(1.0, 0.5), rows, laws=laws)
    assert [*told.values()] == ["holds", "holds", "not conjugate: neither posterior nor evidence in closed form"]
    with pytest.raises(BrokenLaws) as broken:
        check_leaf(Unnormalised(1.0, 0.5), rows, laws=laws)
    assert [*broken.value.broken] == laws[:2]


def test_without_log_prior_the_mode_is_that_of_the_program():
    told = check_leaf(GammaExponential(3.0, 4.0), WAITS[:, 0], laws=["map_maximises", "prior_program_is_the_prior"])
    assert told == {
        "map_maximises": "holds",
        "prior_program_is_the_prior": "give log_prior, the log density of the prior by SciPy",
    }


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("gaussian", WAITS), TypeError, "ConjugateFamily or RowLeaf, got 'gaussian'"),
        ((bg.models.HaldaneBernoulli(), [0, 1]), ValueError, "HaldaneBernoulli has an improper prior"),
        ((GammaExponential(3.0, 4.0), [1.0, np.nan]), ValueError, "ten or more without gaps, got 2 with 1 gaps"),
        ((GammaExponential(3.0, 4.0), WAITS[:, 0], None, ["gravity"]), ValueError, "laws has 'gravity'; the laws are"),
        (
            (bg.NaiveBayesClassifier("bernoulli").fit([[0], [1]], [0, 1]).posterior_.model.leaves["bernoulli"], [[0]]),
            ValueError,
            "leaf is a posterior",
        ),
    ],
)
def test_what_is_no_leaf_to_check_is_refused(arguments, error, words):
    refuses(lambda: check_leaf(*arguments), words, error)


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


@pytest.mark.compiles
def test_nuts_equals_exact(table):
    X, y = table
    exact = bg.NaiveBayesClassifier(FEATURES).fit(X, y)
    sampled = bg.NaiveBayesClassifier(FEATURES, inference="nuts", random_state=0).fit(X, y)
    difference = np.abs(exact.predict_proba(X) - sampled.predict_proba(X))
    assert difference.mean() < 0.005 and difference.max() < 0.03
    assert list(sampled.to_arviz().posterior["wait.rate"].dims) == ["chain", "draw", "class"]


@pytest.mark.compiles
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


@dataclass(frozen=True, eq=False)
class Cauchy(RowLeaf):
    """x ~ Cauchy(centre, 1), centre ~ Normal(0, width)."""

    width: Hyperparameter = hyperparameter(1.0, positive=True)

    def parameters(self):
        return {"centre": numpyro.sample("centre", dist.Normal(0.0, self.width))}

    def likelihood(self, params):
        return dist.Cauchy(params["centre"], 1.0)

    def log_density(self, params, x):
        centre = params["centre"]
        return -centre.__array_namespace__().log1p((x - centre) ** 2) - np.log(np.pi)


def log_prior(leaf, params):
    return stats.norm(0, leaf.width).logpdf(params["centre"]).sum()


ROWS = stats.cauchy([0.5, -0.3]).rvs((60, 2), random_state=0)


def test_laws():
    laws = ["pieces_make_the_whole", "a_weight_is_a_row_repeated", "a_weight_may_be_a_fraction"]
    laws += ["likelihood_of_statistics_is_that_of_rows", "map_maximises", "ml_maximises", "is_a_pytree"]
    laws += ["row_program_is_statistics_program", "prior_program_is_the_prior", "draws_have_named_dims"]
    told = check_leaf(Cauchy([1.0, 0.7]), ROWS, log_prior, laws)
    assert set(told.values()) == {"holds"}


@pytest.fixture(scope="module")
def halves():
    rng = np.random.default_rng(1)
    y = np.repeat(["left", "right"], [25, 12])
    X = np.column_stack([rng.standard_cauchy(37) + 2 * (y == "right"), rng.normal(size=37)])
    X[3, 0] = np.nan
    return X, y


@pytest.fixture(scope="module")
def fitted(halves):
    return bg.NaiveBayesClassifier({"x0": Cauchy(2.0)}, inference="map").fit(*halves)


@pytest.mark.compiles
def test_the_mode_of_each_class_is_where_a_grid_has_it(halves, fitted):
    X, y = halves
    grid = np.linspace(-4, 6, 100_001)
    for k, label in enumerate(fitted.classes_):
        x = X[(y == label) & ~np.isnan(X[:, 0]), 0]
        log_p = stats.norm(0, 2).logpdf(grid) + sum(stats.cauchy(grid).logpdf(value) for value in x)
        assert fitted.posterior_.params["x0.centre"][k] == pytest.approx(grid[log_p.argmax()], abs=1e-4)


@pytest.mark.compiles
def test_a_file_has_the_rows_and_is_private(fitted, halves, tmp_path):
    fitted.save(tmp_path / "fit.bayesgen")
    assert (tmp_path / "fit.bayesgen").stat().st_mode & 0o77 == 0
    again = bg.load(tmp_path / "fit.bayesgen", [Cauchy])
    np.testing.assert_array_equal(again.predict_proba(halves[0]), fitted.predict_proba(halves[0]))
    assert isinstance(again.statistics_.leaves["x0"], RowsByGroup)


@pytest.mark.compiles
def test_what_needs_sums_is_refused_by_name(fitted, halves):
    X, y = halves
    with pytest.raises(TypeError, match=r"'x0'.*Cauchy cannot learn from rows without a label"):
        bg.LatentClassClassifier(features={"x0": Cauchy(2.0)}).fit(X, np.where(np.arange(37) == 30, None, y))
    with pytest.raises(ValueError, match="keeps its rows cannot forget some of them"):
        fitted.statistics_.leaves["x0"] - fitted.statistics_.leaves["x0"]
    with pytest.raises(TypeError, match="no exact posterior"):
        bg.NaiveBayesClassifier({"x0": Cauchy(2.0)}, inference=Exact()).fit(X, y)
    refuses(lambda: Cauchy(2.0).statistics(ROWS), r"rows have \(2,\) features where the model has \(\)", DataError)
