"""The gain of compiled loops: the kernels of Gaussian naive Bayes, each fused into one loop by numba, beside ours.

A numba extra would hold these loops: one thread, moments about the first row of each class, one logarithm for
sixteen columns. They take no gaps and no weights. Answers are compared before the clock starts.
"""

import importlib.util
import time

import numpy as np
from scipy.special import gammaln
from threadpoolctl import threadpool_limits

from bayesgen.models import NormalInverseGamma
from bayesgen.models.moments import moments
from benchmarks.fit import rows
from benchmarks.timing import Table, agree, medians

CELLS = [
    ("float64, by row", 1_000_000, 10),
    ("float64, by column", 1_000_000, 10),
    ("float32, by column", 1_000_000, 20),
]


def loops():
    """The two loops, compiled."""
    import numba

    @numba.njit
    def fit(x, t, first):
        n, size = np.zeros(len(first)), x.shape[1]
        total, square = np.zeros(first.shape), np.zeros(first.shape)
        for i in range(len(x)):
            k = t[i]
            n[k] += 1
            for j in range(size):
                z = x[i, j] - first[k, j]
                total[k, j] += z
                square[k, j] += z * z
        return n, total, square

    @numba.njit
    def predict(x, mean, width, power, constant):
        result = np.empty((len(mean), len(x)))
        for i in range(len(x)):
            for k in range(len(mean)):
                log, product = 0.0, 1.0
                for j in range(x.shape[1]):
                    z = (x[i, j] - mean[k, j]) * width[k, j]
                    product *= 1 + z * z
                    if j % 16 == 15:
                        log += np.log(product)
                        product = 1.0
                result[k, i] = constant[k] - power[k] * (log + np.log(product))
        return result

    return fit, predict


def run(quick: bool = False) -> list[Table]:
    """Fill the table."""
    table = Table("Compiled loops", "CPU time on one thread; below 1 the loop that numba compiles is faster than ours.")
    if not importlib.util.find_spec("numba"):
        table.note += " numba is not installed, so nothing was compared."
        return [table]
    fit, predict = loops()
    for kind, n, dim in CELLS:
        x, t = rows("gaussian", 20_000 if quick else n, dim, 2)
        x = np.asfortranarray(x) if kind.endswith("column") else x
        x = x.astype(np.float32) if kind.startswith("float32") else x
        first = np.array([x[t == k][0] for k in range(2)], float)
        count, total, square = fit(x, t, first)
        own = moments(x, t, 2)
        agree(kind, own.scatter, square - total**2 / count[:, None], 1e-9)
        leaf = NormalInverseGamma(np.zeros(dim), 0.01, 1.0, 1.0).update(own)
        dof, spread = 2 * leaf.alpha[:, 0], leaf.squared_scale
        level = gammaln((dof + 1) / 2) - gammaln(dof / 2)
        constant = dim * level - 0.5 * np.log(np.pi * dof[:, None] * spread).sum(1)
        width, power = 1 / np.sqrt(dof[:, None] * spread), (dof + 1) / 2
        agree(kind, leaf.log_predictive(x).T, predict(x, leaf.mean, width, power, constant), 1e-6)
        tasks = {
            "fit": (lambda x=x, t=t: moments(x, t, 2), lambda x=x, t=t, first=first: fit(x, t, first)),
            "predict": (
                lambda x=x, leaf=leaf: leaf.log_predictive(x),
                lambda x=x, leaf=leaf, a=(width, power, constant): predict(x, leaf.mean, *a),
            ),
        }
        with threadpool_limits(1):
            for task, (ours, loop) in tasks.items():
                seconds = medians({"ours": ours, "loop": loop}, 5, 1, time.process_time)
                table.add(
                    f"{kind}, {n:.0e} x {dim}, {task}".replace("e+0", "e"),
                    "numba",
                    seconds["loop"] / seconds["ours"],
                    None,
                )
    return [table]
