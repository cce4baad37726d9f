"""NUTS of models without an exact posterior where columns correlate: effective draws per CPU second.

The peer is NumPyro's own `MCMC.run` on the same statistics, its compiling included, which it does at every call. Before
a ratio is printed the means of both are compared.
"""

import functools
import time
import warnings

import numpy as np
from numpyro.diagnostics import effective_sample_size

from bayesgen import NUTS
from bayesgen.models import (
    DirichletCategorical,
    GaussianDiscriminant,
    LogisticRegression,
    ProbitRegression,
    SeparationPrior,
)
from benchmarks.fit import rows
from benchmarks.nuts import mixing, plain
from benchmarks.timing import Table

_CONDITION = 100  # of the covariance of the columns
CELLS = [
    ("logistic", 1_000, 4, 2),
    ("logistic", 1_000, 10, 2),
    ("logistic", 10_000, 10, 2),
    ("softmax", 1_000, 4, 3),
    ("probit", 1_000, 10, 2),
    ("separation", 10_000, 4, 3),
]


def problem(kind: str, n: int, dim: int, groups: int):
    """A model and the statistics of rows whose columns correlate."""
    x, t = rows("gaussian", n, dim, groups)
    x = x @ mixing(dim, _CONDITION)
    if kind == "separation":
        prior = SeparationPrior(x.mean(0), 10 * x.std(0), x.std(0))
        model = GaussianDiscriminant(DirichletCategorical(1.0, groups), prior)
    else:
        x = (x - x.mean(0)) / x.std(0)
        family = ProbitRegression if kind == "probit" else LogisticRegression
        score = x @ np.random.default_rng(1).normal(size=(dim, groups))
        t = (score + np.random.default_rng(2).gumbel(size=score.shape)).argmax(1)
        model = family(np.full(dim, 2.5), classes=tuple(range(groups)))
    return model, model.statistics(x, t)


def rate(draws, sites, seconds: float) -> float:
    """Smallest effective sample size over the entries of some sites, per second."""
    return min(float(effective_sample_size(np.asarray(draws[site])).min()) for site in sites) / seconds


def agreed(cell: str, ours, theirs, sites) -> None:
    """Stop where a mean of one sampler is more than six standard errors from the other's."""
    for site in sites:
        a, b = (np.asarray(draws[site]) for draws in (ours, theirs))
        square = sum(v.var((0, 1)) / effective_sample_size(v) for v in (a, b))
        z = np.abs(a.mean((0, 1)) - b.mean((0, 1))) / np.sqrt(square)
        if not (z < 6).all():
            raise AssertionError(f"{cell}, {site}: means are {z.max():.1f} standard errors apart; nothing is told")


def timed(call):
    """Return the result of a call, and its CPU seconds."""
    start = time.process_time()
    return call(), time.process_time() - start


def run(quick: bool = False) -> list[Table]:
    """Fill the table."""
    table = Table(
        "NUTS, models without an exact posterior",
        f"CPU time, columns with condition number {_CONDITION}, 2 chains. Ours is hot; NumPyro compiles at each call.",
    )
    samples, warmup = (100, 200) if quick else (1000, 1000)
    for kind, n, dim, groups in CELLS[:1] if quick else CELLS:
        cell = f"{kind}, {n} rows, {dim} columns, {groups} classes"
        model, statistics = problem(kind, n, dim, groups)
        sampler = NUTS(samples, warmup, 2, progress=False)
        sites = ("gaussian.mean", "gaussian.sd") if kind == "separation" else ("intercept", "coefficients")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampler(model, statistics, seed=0)  # compiled
            own, seconds = timed(functools.partial(sampler, model, statistics, seed=1))
            theirs, others = timed(plain(model, statistics, samples, warmup))
        agreed(cell, own.samples, theirs, sites)
        table.add(cell, "NumPyro MCMC.run", rate(own.samples, sites, seconds) / rate(theirs, sites, others), 1)
        steps = own.sample_stats["n_steps"].mean()
        table.note += f" {cell}: {steps:.1f} leapfrog steps a draw."
    return [table]
