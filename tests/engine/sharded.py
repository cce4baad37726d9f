"""NUTS on rows laid over four devices, beside NUTS on one; `test_nuts.py` runs it in a process of its own."""

import sys
from functools import partial

import jax
import numpy as np

import bayesgen as bg
from bayesgen.core import program
from bayesgen.inference.point import potential
from bayesgen.posterior.compiled import over_devices, starter

rng = np.random.default_rng(0)
x = rng.normal(size=(301, 3))  # no multiple of four
score = x[:, 0] + rng.logistic(size=301)
WEIGHT = rng.uniform(0.5, 2.0, 301)
CASES = {
    "logistic": (bg.LogisticClassifier, (score > 0).astype(int)),
    "softmax": (bg.LogisticClassifier, np.digitize(score, [-1, 1])),
    "probit": (bg.ProbitClassifier, (score > 0).astype(int)),
    "ordered": (bg.OrderedClassifier, np.digitize(score, [-1, 1])),
    "laplace noise": (partial(bg.LinearRegressor, noise="laplace"), score),
}


def main(cases):
    assert len(jax.devices()) == 4, jax.devices()
    for case in cases or CASES:
        make, y = CASES[case]
        fits = []
        for shard_rows in (False, True):
            sampler = bg.NUTS(num_samples=300, num_warmup=200, num_chains=2, keep_warmup=True, shard_rows=shard_rows)
            fits.append(make(inference=sampler, random_state=0).fit(x, y, WEIGHT))
        one, four = fits
        model, rows = one.model_, one.statistics_
        with program.x64():
            laid = over_devices(rows)
            assert {part.data.shape for part in laid.data["x"].addressable_shards} == {(76, 3)}, case
            origin, spread = starter(model, rows)(0)
            step = 0.1 * np.sqrt(spread)
            at = jax.jit(jax.value_and_grad(potential))
            np.testing.assert_allclose(*(np.append(*at(step, origin, model, r)) for r in (rows, laid)), rtol=1e-12)
            assert "all-reduce" in at.lower(step, origin, model, laid).compile().as_text(), case
        for site, draws in one.posterior_.warmup.samples.items():  # rounding grows along a chain
            np.testing.assert_allclose(
                draws[:, :10], four.posterior_.warmup.samples[site][:, :10], rtol=1e-6, atol=1e-6
            )
        gap = (
            np.abs(one.predict_proba(x) - four.predict_proba(x)) if hasattr(one, "classes_") else one.coef_ - four.coef_
        )
        assert np.abs(gap).max() < 0.02, (case, gap)


if __name__ == "__main__":
    main(sys.argv[1:])
