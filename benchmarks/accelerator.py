"""NUTS on an accelerator against two cores of the same machine, hot: four models of 1e5 rows and 50 columns.

Needs JAX for the accelerator (`pip install "jax[cuda12]"`); without one it says so and measures nothing. Each side runs
in a process of its own, once to compile and once to be timed; means must agree before there is a ratio.
"""

import json

import numpy as np

from benchmarks.timing import Table, told

CASES = {
    "separation prior": "GaussianDiscriminant(DirichletCategorical(1, 2), SeparationPrior([0] * {dim}), shared=True)",
    "logistic": "LogisticRegression([2.5] * {dim})",
    "probit": "ProbitRegression([1.5] * {dim})",
    "softmax": "LogisticRegression([2.5] * {dim}, classes=(0, 1, 2))",
}
TWO_CORES = """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
"""
RUN = """
import json, warnings
from time import perf_counter
import jax, numpy as np
from numpyro.diagnostics import effective_sample_size
from bayesgen import NUTS
from bayesgen.models import *
warnings.simplefilter("ignore")  # so few draws are for the clock
rng = np.random.default_rng(0)
x = rng.standard_normal(({rows}, {dim}))
score = x @ rng.normal(size={dim}) / {dim} ** 0.5 + rng.logistic(size={rows})
model = {model}
statistics = model.statistics(x, np.digitize(score, [-1, 1] if "(0, 1, 2)" in {model!r} else [0]))
NUTS(1, {warmup}, 4, progress=False)(model, statistics, seed=1)
start = perf_counter()
draws = NUTS({samples}, {warmup}, 4, progress=False)(model, statistics, seed=0)
seconds = perf_counter() - start
z = draws.samples["gaussian.mean" if "gaussian.mean" in draws.samples else "coefficients"]
z = z.reshape(*z.shape[:2], -1)
error = z.std((0, 1)) / np.sqrt(np.maximum(effective_sample_size(z), 4.0))
steps = float(draws.sample_stats["n_steps"].mean())
device = jax.devices()[0].device_kind
print(json.dumps([seconds, z.mean((0, 1)).tolist(), error.tolist(), steps, device]))
"""


def run(quick: bool = False) -> list[Table]:
    """Fill the table, where JAX sees an accelerator."""
    if told("import jax; print(jax.default_backend())").strip() == "cpu":
        print("    JAX sees no accelerator: nothing to measure")
        return []
    sizes = {"rows": 2_000, "dim": 5} if quick else {"rows": 100_000, "dim": 50}
    sizes |= {"samples": 100, "warmup": 100}
    table = Table(
        "NUTS on an accelerator", "1e5 rows of 50 columns, 4 chains of 100 draws after 100. Steps are per draw."
    )
    for name, model in CASES.items():
        code = RUN.format(**sizes, model=model.format(**sizes))
        (fast, mine, error, steps, device), (slow, theirs, other, *_) = (
            json.loads(told(own)) for own in (code, TWO_CORES + code)
        )
        z = (np.array(mine) - theirs) / np.hypot(error, other)
        if not (np.abs(z) < 6).all():
            raise AssertionError(f"{name}: a mean is {np.abs(z).max():.1f} standard errors off; nothing is told")
        table.add(f"{name}, {device}, {fast:.1f} s, {steps:.0f} steps", "two cores", slow / fast, 10)
    return [table]
