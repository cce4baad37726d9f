"""Every leaf that the package exports, as NumPyro's tools use it: bare, in naive Bayes, in a plate, enumerated."""

import jax
import laws
import numpy as np
import numpyro
import pytest
from numpyro.contrib.funsor import config_enumerate
from numpyro.infer import Predictive

from bayesgen import models
from bayesgen.models import DirichletCategorical, NaiveBayes
from bayesgen.models.leaf import Leaf

RNG = np.random.default_rng(0)
N, T = 12, np.arange(12) % 2
NUMBERS = RNG.normal(size=(N, 2))
CODES = RNG.integers(0, 3, (N, 2)).astype(float)
NIG = models.NormalInverseGamma([0.0, 1.0], 1.0, 3.0, 2.0)
LEAVES = {
    "BetaBernoulli": (models.BetaBernoulli([1.0, 2.0], 2.0), (NUMBERS > 0).astype(float)),
    "BetaBinomial": (models.BetaBinomial([1.0, 2.0], 2.0, trials=[3, 4]), CODES),
    "DirichletCategorical": (models.DirichletCategorical(np.ones((2, 3)), 3), CODES),
    "DirichletMultinomial": (models.DirichletMultinomial([1.0, 2.0, 1.5], length=4), np.tile([2.0, 1.0, 1.0], (N, 1))),
    "GammaPoisson": (models.GammaPoisson([1.0, 2.0], 1.0), CODES),
    "LogNormal": (models.LogNormal([0.0, 1.0], 1.0, 3.0, 2.0), np.exp(NUMBERS)),
    "MarkovChain": (models.MarkovChain(3, length=4), RNG.integers(0, 3, (N, 4)).astype(float)),
    "NormalInverseGamma": (NIG, NUMBERS),
    "NormalInverseWishart": (models.NormalInverseWishart([0.0, 1.0], 1.0, 4.0, np.eye(2)), NUMBERS),
    "NormalKnownMean": (models.NormalKnownMean([0.0, 1.0], 3.0, 2.0), NUMBERS),
    "NormalKnownVariance": (models.NormalKnownVariance([0.0, 1.0], 2.0, 1.0), NUMBERS),
    "Pooled": (models.Pooled(NIG), NUMBERS),
    "PooledGroups": (
        models.PooledGroups(models.NormalInverseGamma(0.0, 1.0, 3.0, 2.0), groups=3),
        np.column_stack([NUMBERS[:, 0], np.arange(N) % 3]),
    ),
    "StudentT": (models.StudentT(NIG), NUMBERS),
}
REFUSED = {"HaldaneBernoulli", "HaldaneCategorical", "KnownCategorical"}  # no draws; a prior of classes


def test_every_exported_leaf_is_here():
    exported = {name for name in models.__all__ if issubclass(getattr(models, name), Leaf)}
    improper = {name for name in exported if name.startswith("Reference")}
    assert exported - improper - REFUSED == LEAVES.keys()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.compiles if name == "PooledGroups" else pytest.mark.slow) for name in LEAVES],
)
def test_a_leaf_runs_in_every_program(name):
    leaf, rows = LEAVES[name]
    key = jax.random.PRNGKey(0)

    def in_plate(x):
        with numpyro.plate("ward", 2, dim=-2):
            leaf(x)

    model = NaiveBayes(DirichletCategorical(2.0, 2), {"x": leaf})
    with laws.x64():
        assert np.isfinite(Predictive(leaf, num_samples=2)(key, rows)["x"]).all()
        assert Predictive(in_plate, num_samples=2)(key, np.stack([rows, rows]))["x"].shape[0] == 2
        draws = {k: np.array(v) for k, v in Predictive(model, num_samples=3)(key, {"x": rows}, T).items()}
        params = {k: v for k, v in draws.items() if k not in ("t", "x.x", "t_log_joint")}
        joint = Predictive(model, params)(key, {"x": rows})["t_log_joint"]
        found = Predictive(config_enumerate(model), params, infer_discrete=True)(key, {"x": rows}, np.full(N, -1))["t"]
    assert np.isin(found, [0, 1]).all()
    expected = model.log_likelihood_rows(params, model.check({"x": rows}))
    np.testing.assert_allclose(np.swapaxes(joint, 1, 2), expected, rtol=1e-8)
    kept, (of_rows, total) = model.statistics({"x": rows}, T), (expected[:, T, np.arange(N)].sum(1), [])
    for j in range(3):
        total.append(float(model.log_likelihood({k: v[j] for k, v in params.items()}, kept)))
    np.testing.assert_allclose(total, of_rows, rtol=1e-8)
