"""The four recipes of CONTRIBUTING.md work as they stand: each is run, and what it makes is used everywhere."""

import re
import sys
import types
from pathlib import Path

import laws
import numpy as np
import pytest
from refusals import refuses
from scipy import stats

import bayesgen as bg
from bayesgen.averaging import families
from bayesgen.inference import INFERENCES
from bayesgen.inspection.boundary import parameter_count
from bayesgen.models.structures import STRUCTURES

TEXT = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"<!-- recipe: (\w+) -->\n```python\n(.*?)```", TEXT, re.DOTALL))


def made(recipe: str, **names) -> types.ModuleType:
    """Return the module that a recipe defines."""
    module = types.ModuleType(f"recipe_{recipe}")
    sys.modules[module.__name__] = module  # where a dataclass looks for its types
    vars(module).update(names)
    exec(compile(RECIPES[recipe], f"CONTRIBUTING.md, {recipe}", "exec"), vars(module))
    return module


def test_there_are_four():
    assert [*RECIPES] == ["leaf", "check", "case", "prior", "inference", "structure", "family"]


# -- a leaf ----------------------------------------------------------------------------------------------------------

LEAF = made("leaf").BetaGeometric
made("prior", PRIORS=laws.PRIORS, BetaGeometric=LEAF, stats=stats)


@pytest.mark.compiles
def test_the_leaf_obeys_the_laws():
    without = RECIPES["check"].replace("from bayesgen.models import BetaGeometric\n", "")
    exec(compile(without, "CONTRIBUTING.md, check", "exec"), {"BetaGeometric": LEAF})


def test_the_leaf_is_a_case_of_the_laws():
    case = eval(RECIPES["case"], vars(laws) | {"BetaGeometric": LEAF})
    (rows,) = case.data(5)
    params = {"probability": np.array([0.3, 0.6])}
    assert rows.shape == (5, 2) and laws.predictive_program_is_log_predictive in case.without
    assert case.log_prior(params) == stats.beta([3.0, 4.0], [2.0, 1.5]).logpdf([0.3, 0.6]).sum()


def test_the_leaf_in_a_classifier():
    rng = np.random.default_rng(0)
    y = np.repeat(["often", "rarely"], 40)
    x = rng.geometric(np.where(y == "often", 0.7, 0.2)) - 1.0
    x[3] = np.nan
    classifier = bg.NaiveBayesClassifier({"x0": LEAF()}).fit(x[:, None], y)
    assert classifier.score(x[:, None], y) > 0.7
    refuses(lambda: classifier.predict([[0.5]]), r"value 0\.5 in row 0.*is not a count")


# -- an inference ----------------------------------------------------------------------------------------------------


@pytest.fixture
def resampling(monkeypatch):
    monkeypatch.setitem(INFERENCES, "resampling", None)  # taken out again
    return made("inference").Resampling


@pytest.mark.compiles
def test_the_inference_is_known_by_name_and_near_the_exact_posterior(resampling):
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b"], 6)
    X = rng.random((12, 2)) < np.where(y == "a", 0.2, 0.7)[:, None]
    exact = bg.NaiveBayesClassifier("bernoulli").fit(X, y)
    for way in ("resampling", resampling(num_samples=2000)):
        drawn = bg.NaiveBayesClassifier("bernoulli", inference=way, random_state=0).fit(X, y)
        assert drawn.posterior_.kind == "draws"
        np.testing.assert_allclose(drawn.predict_proba(X), exact.predict_proba(X), atol=0.05)
    with pytest.raises(TypeError, match="LogisticRegression has no exact draws of its prior"):
        bg.LogisticClassifier(inference="resampling").fit(X.astype(float), y)


# -- a structure -----------------------------------------------------------------------------------------------------


@pytest.fixture
def structure(monkeypatch):
    monkeypatch.setitem(STRUCTURES, "one factor", None)  # taken out again
    return made("structure")


@pytest.mark.compiles
def test_the_structure_in_a_classifier(structure, tmp_path):
    rng = np.random.default_rng(2)
    y = np.repeat(["a", "b"], 40)
    loadings = np.where((y == "a")[:, None], [1.0, 1.0, 1.0], [1.0, -1.0, 1.0])
    X = rng.normal(size=(80, 1)) * loadings + 0.3 * rng.normal(size=(80, 3))
    sampler = bg.NUTS(num_samples=100, num_warmup=200, num_chains=1)
    with pytest.warns(bg.inference.SamplerWarning):  # so few draws
        classifier = bg.GaussianDiscriminantClassifier("one factor", inference=sampler, random_state=0).fit(X, y)
    loading = classifier.posterior_.draws(0, (50,))["gaussian.loading"]
    assert loading.shape == (50, 2, 3)
    assert list(classifier.to_arviz().posterior["gaussian.loading"].dims) == ["chain", "draw", "class", "feature"]
    assert classifier.score(X, y) > 0.8  # the means say nothing: it is the covariance that tells
    classifier.save(tmp_path / "model.safetensors")
    again = bg.load(tmp_path / "model.safetensors", [structure.OneFactor])
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    assert parameter_count(2, 3, "one factor") == parameter_count(2, 3, "diagonal") + 2 * 3


@pytest.mark.compiles
def test_the_structure_obeys_the_laws_of_statistics(structure):
    leaf = structure.OneFactor(mean=[1.0, 2.0], mean_sd=[1.0, 1.0], scale=[1.5, 1.0])
    model = bg.models.GaussianDiscriminant(laws.TWO, leaf, covariance="one factor")
    case = laws.Case("one factor", model, next(case.rows for case in laws.CASES if case.name == "full"))
    names = ("pieces_make_the_whole", "likelihood_of_statistics_is_that_of_rows", "row_program_is_statistics_program")
    for law in laws.LAWS:
        if law.__name__ in names:
            law(case)


def test_the_structure_says_what_it_takes(structure):
    with pytest.raises(ValueError, match="not offered shared"):
        bg.GaussianDiscriminantClassifier("one factor", shared=True, inference="map").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="'one factor' takes a OneFactor prior, got SeparationPrior"):
        bg.models.GaussianDiscriminant(laws.TWO, bg.models.SeparationPrior(), covariance="one factor")


# -- a family of members ---------------------------------------------------------------------------------------------


def test_the_family_in_an_average(monkeypatch, tmp_path):
    recipe = made("family")
    monkeypatch.setattr(families, "FAMILIES", [*families.FAMILIES, recipe.BinsMember])
    X = np.random.default_rng(3).random((400, 2))
    y = (5 * X[:, 0]).astype(int) % 2  # five stripes, which no Gaussian sees
    X[5, 1] = np.nan
    classifier = bg.AveragedClassifier(members=["gaussian", "bins"]).fit(X[:200], y[:200])
    own = classifier.summary().query("kind == 'bins'")
    assert sorted(own["bins"]) == [3, 5] and own["weight"].sum() > 0.5
    assert classifier.score(X[200:], y[200:]) > 0.8
    gap = np.where(np.arange(2) == 1, np.nan, X[200:204])
    np.testing.assert_allclose(classifier.predict_proba(np.full((1, 2), np.nan))[0], _share(y[:200]), rtol=1e-9)
    assert (bg.inspection.next_measurement(classifier, gap)[:, 1] >= 0).all()
    assert classifier.predict_proba_interval(gap).shape == (4, 2, 2)
    assert classifier.explain(gap).sizes["term"] == 4
    classifier.save(tmp_path / "model.safetensors")
    again = bg.load(tmp_path / "model.safetensors", [recipe.BinsMember, recipe.BinsMembers])
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))


def _share(y):
    count = np.bincount(y) + 1
    return count / count.sum()
