"""Kernels one by one, for pytest-benchmark, so that a slow-down shows.

`pytest benchmarks/test_kernels.py --benchmark-autosave`, and later
`pytest benchmarks/test_kernels.py --benchmark-compare --benchmark-compare-fail=min:20%`.
"""

import numpy as np
import pytest

from bayesgen.numerics.draws import log_mean_density
from benchmarks.fit import as_rows, model, rows

FAMILIES = ("gaussian", "bernoulli", "categorical", "vector")


@pytest.fixture(params=FAMILIES)
def case(request):
    x, t = rows("gaussian" if request.param == "vector" else request.param, 20_000, 10, 3)
    ours = model(request.param, 10, 3)
    return ours, as_rows(ours, x), t


def test_statistics(case, benchmark):
    ours, x, t = case
    benchmark(ours.statistics, x, t)


def test_update(case, benchmark):
    ours, x, t = case
    benchmark(ours.update, ours.statistics(x, t))


def test_log_predictive(case, benchmark):
    ours, x, t = case
    benchmark(ours.update(ours.statistics(x, t)).log_predictive, x)


def test_average_over_draws(case, benchmark):
    ours, x, t = case
    draws = ours.update(ours.statistics(x, t)).sample_parameters(np.random.default_rng(0), (200,))
    benchmark(log_mean_density, ours, draws, ours.check(x))
