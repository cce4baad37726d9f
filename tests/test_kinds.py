"""One table of densities by kind: NumPy, JavaScript and forty digits of mpmath agree to 1e-12, relative."""

import re
from dataclasses import replace
from pathlib import Path

import mpmath
import numpy as np
import pandas as pd
import pytest
from scorers import scorer

import bayesgen as bg
from bayesgen.export.plain import plain
from bayesgen.models import (
    BetaBinomial,
    DirichletMultinomial,
    GammaPoisson,
    NormalInverseGamma,
    NormalKnownMean,
    NormalKnownVariance,
)

RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
NUMBERS = pd.DataFrame(RNG.normal(1.5 * Y[:, None], [1.0, 2.0, 0.1], (60, 3)), columns=["a", "b", "c"])
FAR = [[0.3, -1.0, 0.2], [1e6, 0.0, -1e3], [-1e150, 2.0, 1e-9], [7.0, 1e12, 5.0]]
COUNTS = pd.DataFrame(RNG.poisson(2.0 + 3 * Y[:, None], (60, 2)), columns=["a", "b"]).astype(float)
MANY = [[0, 1], [3, 0], [40, 7], [1e5, 2], [1e8, 3e6]]
HEADS = pd.DataFrame({"a": RNG.binomial(9, 0.3 + 0.3 * Y), "b": 9}).astype(float)
BITS = pd.DataFrame(RNG.integers(0, 2, (60, 2)), columns=["a", "b"]).astype(float)
LOG_ZERO = -1e290
NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
CASES = {
    "numbers": (NB, {("a", "b", "c"): NormalInverseGamma([0.0] * 3, 1.0, 2.0, 2.0)}, NUMBERS, FAR),
    "known mean": (NB, {("a", "b", "c"): NormalKnownMean([0.5] * 3, 2.0, 2.0)}, NUMBERS, FAR),
    "known variance": (NB, {("a", "b", "c"): NormalKnownVariance([0.5] * 3, 2.0, 1.5)}, NUMBERS, FAR[:2]),
    "shared variance": (GD, "isotropic", NUMBERS, FAR),
    "vector": (GD, "full", NUMBERS, FAR[:2]),
    "values": (NB, {("a", "b"): bg.models.BetaBernoulli([1.0, 2.0], 0.5)}, BITS, [[0, 1], [1, 1]]),
    "counts": (NB, {("a", "b"): GammaPoisson([1.0, 2.0], 0.5)}, COUNTS, MANY),
    "heads": (NB, {"a": BetaBinomial(1.0, 2.0, trials=9)}, HEADS[["a"]], [[0], [4], [9]]),
    "tosses": (NB, {("a", "b"): BetaBinomial(1.0, 2.0)}, HEADS, [[0, 0], [3, 9], [1e6, 3e6], [0, 1e8]]),
    "bag": (NB, {("a", "b"): DirichletMultinomial([1.0, 2.0])}, COUNTS, [*MANY, [0, 0]]),
}


def log_ways(a, x):
    """Return log Γ(a + x)/(Γ(a) x!)."""
    return mpmath.loggamma(a + x) - mpmath.loggamma(a) - mpmath.loggamma(x + 1)


def log_student(z, log_det, dof):
    """Return the log density of whitened entries z: Student's t, or a Gaussian where dof is infinite."""
    d, square = len(z), sum(v**2 for v in z)
    if dof == mpmath.inf:
        return -(d * mpmath.log(2 * mpmath.pi) + log_det + square) / 2
    level = mpmath.loggamma((dof + d) / 2) - mpmath.loggamma(dof / 2)
    return level - (d * mpmath.log(mpmath.pi * dof) + log_det + (dof + d) * mpmath.log1p(square / dof)) / 2


def of_heads(mean, total, x, n):
    if total == mpmath.inf:
        return log_ways(n - x + 1, x) + x * mpmath.log(mean) + (n - x) * mpmath.log(1 - mean)
    return log_ways(mean * total, x) + log_ways((1 - mean) * total, n - x) - log_ways(total, n)


def of_count(mean, rate, x):
    if rate == mpmath.inf:
        return x * mpmath.log(mean) - mean - mpmath.loggamma(x + 1)
    return log_ways(mean * rate, x) - mean * rate * mpmath.log1p(1 / rate) - x * mpmath.log1p(rate)


def exact(said, k, row):
    """Return log p(row | class k) of a kind, to forty digits."""
    number = np.vectorize(lambda v: mpmath.mpf(float(v)), otypes=[object])
    f = {name: number(v[k]) for name, v in said.arrays().items()}
    x = [mpmath.mpf(float(v)) for v in row]
    each = {name: np.broadcast_to(v, len(x)) for name, v in f.items() if v.ndim < 2}
    if said.kind == "vector":
        matrix, away = mpmath.matrix(f["scale"].tolist()), [v - m for v, m in zip(x, f["location"], strict=True)]
        root = mpmath.cholesky(matrix)
        return log_student(list(mpmath.lu_solve(root, away)), mpmath.log(mpmath.det(matrix)), f["dof"][()])
    if said.kind == "gaussian":
        z = [(v - m) / s for v, m, s in zip(x, each["location"], each["scale"], strict=True)]
        log_det = [2 * mpmath.log(s) for s in each["scale"]]
        if said.joint:
            return log_student(z, sum(log_det), each["dof"][0])
        return sum(log_student([v], d, nu) for v, d, nu in zip(z, log_det, each["dof"], strict=True))
    if said.kind == "list":
        return sum(mpmath.log(mass[int(v)]) for mass, v in zip(f["mass"], x, strict=True))
    if said.kind == "count":
        return sum(map(of_count, each["mean"], each["rate"], x))
    if said.kind == "heads":
        return sum(map(of_heads, each["mean"], each["total"], x, map(mpmath.mpf, said.trials)))
    if said.kind == "tosses":
        return of_heads(f["mean"][()], f["total"][()], *x)
    total, n = f["total"][()], sum(x)
    if total == mpmath.inf:
        return mpmath.loggamma(n + 1) + sum(
            v * mpmath.log(p) - mpmath.loggamma(v + 1) for v, p in zip(x, f["mass"], strict=True)
        )
    return sum(log_ways(p * total, v) for v, p in zip(x, f["mass"], strict=True)) - log_ways(total, n)


def given_classes(said):
    """Return the arrays (2, features..., ...) of a density under one draw of the parameters."""
    return {name: v[0] for name, v in said.arrays().items()}


@pytest.mark.parametrize("inference", ["exact", "map"])
@pytest.mark.parametrize("name", CASES)
def test_a_density_is_the_same_in_three_engines(name, inference):
    cls, how, X, rows = CASES[name]
    classifier = cls(how, inference=inference).fit(X, Y)
    factor = classifier.joint().components().factors[0]
    said, x = factor.leaf.written(factor.params), np.array(rows, float)
    said = replace(said, **said.arrays((2, *factor.leaf.features)) if factor.params is None else given_classes(said))
    with mpmath.workdps(40):
        expected = np.array([[float(exact(said, k, row)) for row in x] for k in range(2)])
    if factor.params is not None:
        expected[expected < LOG_ZERO / 2] = -np.inf  # which stands for a density of 0 where parameters are known
    read = {factor.blocks[0]: x if factor.leaf.features or factor.leaf.event_dim else x[:, 0]}
    python = factor.log_density(read)
    with scorer(classifier) as made:
        ask = "rows.map((row) => Array.from(densities(factors[0], entriesOfRow(row)), Number))"
        script = np.array(made.ask(ask, rows=x.tolist()), float).T
    for found in (python, script):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.compiles
def test_the_record_of_a_classifier_is_the_one_of_the_design(few_members):
    """Every key that programs may read stands in docs/design.md, and none besides."""
    text = (Path(__file__).parent.parent / "docs/design.md").read_text(encoding="utf-8")
    section = text.split("## Programs without Python")[1].split("\n## ")[0]
    told = {key for line in re.findall(r"^\| (`[^|]*) \|", section, re.M) for key in re.findall(r"`(\w+)`", line)}
    labels, dated = np.array(["a", "b"])[Y], NUMBERS.assign(d=pd.date_range("2024-01-01", periods=60).astype(str))
    fits = [
        NB("gaussian").fit(NUMBERS, labels),
        NB({"d": "date"}).fit(dated, labels),
        bg.AveragedClassifier(members="generative", random_state=0).fit(NUMBERS, labels),
        bg.LogisticClassifier().fit(NUMBERS, labels),
    ]
    assert set().union(*(plain(classifier, 100) for classifier in fits)) | {"kinds"} == told
