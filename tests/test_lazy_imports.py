"""Unused packages are not imported; modules that ArviZ announces as loading late are whole once loaded."""

import subprocess
import sys

import numpy as np
import pytest

import bayesgen as bg

FIRST = {
    "to_arviz with rows": "bg.fit(GAUSSIAN, [1.0, 2.0, 3.0], 'exact').to_arviz(0, [1.0, 2.0, 3.0])",
    "predictive": "GAUSSIAN.predictive()",
    "columns": "CLASSIFIER.to_arviz(X, y, columns=True)",
    "sample": "CLASSIFIER.sample(3)",
    "NUTS": "",
}
PROGRAM = """
import arviz_base
import bayesgen as bg
X, y = [[0.0], [1.0], [2.0], [4.0]], [0, 0, 1, 1]
GAUSSIAN = bg.models.NormalInverseGamma(0.0, 1.0, 2.0, 2.0)
CLASSIFIER = bg.NaiveBayesClassifier().fit(X, y)
{first}
bg.fit(bg.models.BetaBernoulli(1.0, 1.0), [1, 0, 1], bg.NUTS(5, 5, 1))
import sys, numpyro
assert numpyro.distributions is sys.modules["numpyro.distributions"]
"""


@pytest.mark.compiles
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(own, id=name, marks=[] if name == "to_arviz with rows" else pytest.mark.slow)  # a process for each
        for name, own in FIRST.items()
    ],
)
def test_numpyro_is_whole_after_whatever_comes_first(first):
    code = PROGRAM.format(first=first)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


CLOSED = """
import sys
import numpy as np
import bayesgen as bg
assert "bayesgen.plot" not in sys.modules
bg.plot.coin

from bayesgen.models import BetaBernoulli, DirichletCategorical, NormalInverseGamma
from bayesgen.numerics import special

special.log_gamma_ratio(np.ones(3), 0.5), special.multivariate_log_gamma_ratio(3.0, 1.0, 2), special.log_ndtr(0.0)
special.log_beta_binomial(1, 1, 2, 3), special.log1p_sum_squares(np.array([1e300]))
coin = BetaBernoulli([2.0, 3.0], 1.0)
rng = np.random.default_rng(0)
X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
for inference in ("ml", "map", "exact"):
    bg.NaiveBayesClassifier(inference=inference).fit(X, y).predict_proba(X)
    for covariance in ("full", "diagonal", "isotropic"):
        bg.GaussianDiscriminantClassifier(covariance, inference=inference).fit(X, y).predict_proba(X)
bg.LinearRegressor().fit(X, y).predict(X, return_std=True)
bg.LogisticClassifier(inference="map").fit(X, y).predict_proba(X)
bg.fit(BetaBernoulli(), [0, 1]).draws(0)
hash(bg.fit(NormalInverseGamma(0.0, 1.0, 1.0, 1.0), [0.0, 1.0]).model)
bg.fit(DirichletCategorical(1.0, 3), [0, 1]).log_predictive([2])
print(*sorted({name.partition(".")[0] for name in sys.modules}))
import bayesgen.cli
assert "matplotlib" not in sys.modules

import jax  # and the coin was built before JAX was there
BetaBernoulli()  # the next construction tells JAX
assert len(jax.tree_util.tree_leaves(coin)) == 2
"""


@pytest.mark.compiles
def test_closed_forms_need_no_compiler():
    """The algebra half imports neither JAX nor NumPyro, nor what only pictures and draws need; a command no picture."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", CLOSED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    unwanted = {"jax", "jaxlib", "numpyro", "matplotlib", "arviz", "arviz_base", "arviz_stats", "xarray"}
    assert not unwanted & set(done.stdout.split())


FIRST_ROW = """
import sys
import numpy as np
import sklearn.base
before = set(sys.modules)
import bayesgen as bg
X = np.arange(8.0).reshape(4, 2) ** 2
(bg.load(sys.argv[1]) if sys.argv[1:] else bg.NaiveBayesClassifier().fit(X, [0, 1, 0, 1])).predict_proba(X[:1])
print(*(set(sys.modules) - before))
"""


@pytest.mark.compiles
@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")
def test_a_first_row_waits_for_no_module_that_it_does_not_ask(loaded, tmp_path):
    """Beside what scikit-learn's base class imports: its scores, folds and regressions are 150 modules, a tenth."""
    file = []
    if loaded:
        X = np.random.default_rng(0).normal(size=(40, 2))
        bg.AveragedClassifier().fit(X, np.arange(40) % 2).save(tmp_path / "average.safetensors")
        file = [str(tmp_path / "average.safetensors")]
    done = subprocess.run([sys.executable, "-c", FIRST_ROW, *file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules = [name for name in done.stdout.split() if not loaded or not name.startswith("bayesgen.averaging")]
    rooms = {".".join(name.split(".")[:2]) for name in modules}
    assert not {"bayesgen.averaging", "bayesgen.comparison", "bayesgen.evaluation", "bayesgen.plot"} & rooms
    beside = {name for name in rooms if name.split(".")[0] not in ("bayesgen", "safetensors", "tomllib")}
    assert beside <= {"sklearn.utils"}, beside


NAMES = """
import importlib, pkgutil, sys
import bayesgen as bg
assert not {"numpy", "sklearn", "bayesgen.models"} & set(sys.modules)
bg.NaiveBayesClassifier
assert "bayesgen.averaging.ensembles" not in sys.modules
from bayesgen import load
from bayesgen.core import registry
known = registry.classes() | registry.estimators()
for module in pkgutil.walk_packages(bg.__path__, "bayesgen."):
    if module.name != "bayesgen.__main__":
        importlib.import_module(module.name)
assert known == registry.classes() | registry.estimators()
"""


@pytest.mark.compiles
def test_names_are_imported_at_their_first_use_and_load_knows_every_class():
    done = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


IN_MEMORY = """
import sys
from importlib.abc import MetaPathFinder


class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ImportError("pyarrow is refused")


sys.meta_path.insert(0, Refuse())
import numpy as np
import pandas as pd
import bayesgen as bg

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(40, 2)), columns=list("ab"))
y = np.where(X["a"] > 0, "u", "v")
gappy = X.assign(c=rng.choice(["p", "q", None], 40), d=pd.date_range("2024-01-01", periods=40))
gappy.loc[3:9, "b"] = np.nan
one = gappy[:3]
bayes = bg.NaiveBayesClassifier({"d": "date"}).fit(gappy, y)
bayes.predict_proba(one), bayes.explain(one, 1), bayes.leave_one_out(gappy, y)
bayes.partial_fit(gappy, y).save(sys.argv[1])
assert (bg.load(sys.argv[1]).predict(one) == bayes.predict(one)).all()
bg.inspection.impute(bayes, one)
bg.GaussianDiscriminantClassifier().fit(X.to_numpy(), y).sample(2)
bg.LinearRegressor().fit(X, X["a"]).predict(X)
average = bg.AveragedClassifier(members=["gaussian", "category"], progress=False).fit(gappy.drop(columns="d"), y)
average.predict_proba(one.drop(columns="d"))
bg.data.load("anes96")
try:
    bg.read_table("penguins")
except ImportError as error:
    print(error)
"""


@pytest.mark.compiles
def test_fit_and_predict_in_memory_need_no_arrow(tmp_path):
    """Arrow reads files and streams; where it is refused, everything but these answers."""
    code = [sys.executable, "-W", "ignore", "-c", IN_MEMORY, str(tmp_path / "bayes.safetensors")]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "pyarrow is refused\n"
