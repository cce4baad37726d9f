"""Mixtures of products of factors: against SciPy and integrals, under an average, and for families of one's own."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen.averaging import families
from bayesgen.averaging.member import FittedFactors, FittedMembers, Member
from bayesgen.core.program import Record
from bayesgen.inspection import impute, next_measurement, typicality
from bayesgen.numerics.student_gaps import conditional_student, fill_student, log_density_with_gaps
from bayesgen.posterior.component import Components, Factor, gaps
from bayesgen.posterior.conditional import Line, Listed

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

# -- a mixture that SciPy works out ----------------------------------------------------------------------------------


class Gaussians(Factor):
    """Gaussian vectors in two alternatives; the first class has two groups, the second one."""

    blocks = ("x",)
    owner = np.array([0, 0, 1, 0, 0, 1])
    alternative = np.array([0, 0, 0, 1, 1, 1])
    log_share = np.log([0.3, 0.7, 1.0, 0.6, 0.4, 1.0])
    mean = np.array([[0.0, 0.0], [3.0, 1.0], [-1.0, 2.0], [1.0, 1.0], [2.0, -2.0], [0.0, 4.0]])
    scale = np.array([[[1.0, r], [r, 2.0]] for r in (0.5, -0.9, 0.0, 1.2, 0.3, -0.4)])

    def log_density(self, rows):
        return log_density_with_gaps(rows["x"], self.mean, self.scale, np.full(6, 1e9))

    def conditionals(self, rows, block):
        location, spread, dof = conditional_student(rows["x"], self.mean, self.scale, np.inf)
        for gap in gaps(block, rows["x"]):
            dofs = np.broadcast_to(dof, location.shape)
            yield gap, Line(*(v[:, gap.rows, gap.place] for v in (location, spread, dofs)), lambda z: z)

    def fill(self, rows, group, rng):
        return {"x": fill_student(rows["x"], group, self.mean, self.scale, np.inf, rng)}


class Coins(Factor):
    """One bit, alike in all members."""

    blocks = ("u",)
    owner = np.arange(2)
    chance = np.array([0.2, 0.9])

    def log_density(self, rows):
        u = rows["u"][:, 0]
        return np.where(np.isnan(u), 0.0, np.log(np.where(u == 1, self.chance[:, None], 1 - self.chance[:, None])))

    def conditionals(self, rows, block):
        for gap in gaps(block, rows["u"]):
            yield gap, Listed(np.arange(2.0), np.log([1 - self.chance, self.chance]).T[:, None], label=True)

    def fill(self, rows, group, rng):
        drawn = rng.random(len(group)) < self.chance[group]
        return {"u": np.where(np.isnan(rows["u"]), drawn[:, None], rows["u"])}


def log_gaussian(x, mean, scale):
    """Log density of one row, by SciPy."""
    seen = ~np.isnan(x)
    return multivariate_normal(mean[seen], scale[np.ix_(seen, seen)]).logpdf(x[seen]) if seen.any() else 0.0


MEMBER, CLASS = np.array([0.4, 0.6]), np.array([[0.3, 0.7], [0.5, 0.5]])
MIXTURE = Components(np.log(MEMBER), np.log(CLASS), [Gaussians(), Coins()], np.array([[0, 0], [1, 0]]))
ROWS = {
    "x": np.array([[0.5, np.nan], [np.nan, 1.0], [np.nan, np.nan], [2.0, -1.0]]),
    "u": np.array([[1.0], [np.nan], [0.0], [np.nan]]),
}


def density(x, u, k):
    """p(x, u, t = k) of one row, as the definition has it."""
    own, coin = Gaussians(), Coins()
    total = 0.0
    for m in range(2):
        groups = np.flatnonzero((own.alternative == m) & (own.owner == k))
        parts = sum(np.exp(own.log_share[g] + log_gaussian(x, own.mean[g], own.scale[g])) for g in groups)
        bit = 1.0 if np.isnan(u) else coin.chance[k] if u else 1 - coin.chance[k]
        total += MEMBER[m] * CLASS[m, k] * parts * bit
    return total


def test_a_mixture_is_the_sum_of_its_products():
    found = np.exp(logsumexp(MIXTURE.given(ROWS).log_joint, axis=0))
    expected = [[density(x, u[0], k) for x, u in zip(ROWS["x"], ROWS["u"], strict=True)] for k in range(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-7)  # a t of 1e9 degrees of freedom
    known = MIXTURE.given(ROWS, np.array([0, 1, 0, 1])).log_joint
    assert np.isneginf(known[:, [1, 0, 1, 0], range(4)]).all() and np.isfinite(known[:, [0, 1, 0, 1], range(4)]).all()


def test_entries_are_those_of_rows_with_the_entry_and_sum_to_rows_without():
    joint, seen = np.exp(logsumexp(MIXTURE.given(ROWS).log_joint, axis=0)), set()
    for entry in MIXTURE.given(ROWS).entries():
        values, log_joint, log_width, _ = entry.along()
        block, place, rows = entry.gap
        total = np.exp(log_joint + log_width).sum(2)
        np.testing.assert_allclose(total, joint[:, rows], rtol=2e-3)  # the line ends at quantiles of 1e-6
        for e, row in enumerate(rows):
            seen.add((block, place, int(row)))
            line = np.broadcast_to(values, log_joint.shape[1:])[e]
            for q in range(0, len(line), max(1, len(line) // 3)):
                filled = {name: own[row].copy() for name, own in ROWS.items()}
                filled[block][place] = line[q]
                own = [density(filled["x"], filled["u"][0], k) for k in range(2)]
                np.testing.assert_allclose(np.exp(log_joint[:, e, q]), own, rtol=1e-6)
    assert seen == {(name, int(j), int(i)) for name, own in ROWS.items() for i, j in np.argwhere(np.isnan(own))}


def test_expected_values_are_integrals():
    entries = ((entry.gap, entry.expected()) for entry in MIXTURE.given(ROWS).entries())
    found = {(block, int(j), int(i)): v for (block, j, rows), own in entries for i, v in zip(rows, own, strict=True)}

    def weight(v):
        return sum(density(np.array([0.5, v]), 1.0, k) for k in range(2))

    mean = quad(lambda v: v * weight(v), -20, 20)[0] / quad(weight, -20, 20)[0]
    assert abs(found["x", 1, 0] - mean) < 1e-7
    ones = sum(density(ROWS["x"][3], 1.0, k) for k in range(2)), sum(density(ROWS["x"][3], 0.0, k) for k in range(2))
    assert found["u", 0, 3] == (ones[0] > ones[1])
    line = Line(np.array([[0.0], [3.0]]), np.ones((2, 1)), np.full((2, 1), np.inf), lambda z: np.exp(z), bent=True)
    median = np.log(line.expected(np.array([[0.3], [0.7]])))[0]
    assert abs(0.3 * norm.cdf(median) + 0.7 * norm.cdf(median - 3) - 0.5) < 1e-12


def test_draws_have_the_moments_of_the_mixture():
    rng, n = np.random.default_rng(0), 20_000
    drawn = MIXTURE.draw({"x": np.full((1, 2), np.nan), "u": np.full((1, 1), np.nan)}, np.repeat([0, 1], n), rng)
    own = Gaussians()
    for k in range(2):
        member = MEMBER * CLASS[:, k] / (MEMBER * CLASS[:, k]).sum()
        here = own.owner == k
        weight = member[own.alternative[here]] * np.exp(own.log_share[here])
        x = drawn["x"].reshape(2, n, 2)[k]
        assert (abs(x.mean(0) - weight @ own.mean[here]) < 5 * x.std(0) / np.sqrt(n)).all()
        second = weight @ (own.scale[here][:, 0, 1] + own.mean[here].prod(1))
        assert abs((product := x.prod(1)).mean() - second) < 5 * product.std() / np.sqrt(n)
    bits = drawn["u"].reshape(2, n).mean(1)
    assert (abs(bits - own_chance()) < 5 * np.sqrt(own_chance() * (1 - own_chance()) / n)).all()


def own_chance():
    return Coins().chance


def test_a_row_is_completed_in_proportion_to_what_it_has():
    rng, n = np.random.default_rng(1), 20_000
    rows = {name: np.repeat(own[:1], n, axis=0) for name, own in ROWS.items()}
    filled, codes, groups = MIXTURE.complete(rows, None, rng)
    wanted = np.array([density(ROWS["x"][0], 1.0, k) for k in range(2)])
    wanted /= wanted.sum()
    assert abs(codes.mean() - wanted[1]) < 5 * np.sqrt(wanted.prod() / n)
    assert (Gaussians.owner[groups[0]] == codes).all() and (groups[1] == codes).all()
    ((_, mean),) = [(e.gap, e.expected()) for e in MIXTURE.given(select(0)).entries()]
    assert abs(filled["x"][:, 1].mean() - mean[0]) < 5 * filled["x"][:, 1].std() / np.sqrt(n)


def select(row):
    return {name: own[row : row + 1] for name, own in ROWS.items()}


def test_what_factors_scorers_and_families_of_them_lack_is_named():
    assert Factor.__abstractmethods__ == {"log_density", "conditionals", "fill"}
    assert Member.__abstractmethods__ == {"family", "propose", "fit"}
    assert FittedFactors.__abstractmethods__ == {"factor"}
    assert FittedMembers.__abstractmethods__ == {"log_density"}
    assert not Member.blocks and not FittedMembers.generates


# -- an average ------------------------------------------------------------------------------------------------------

N = 90
Y = np.arange(N) % 3
_rng = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "a": _rng.normal(Y, 1.0),
        "b": np.exp(_rng.normal(Y, 1.0)),
        "c": _rng.poisson(1 + 2 * Y).astype(float),
        "d": np.array(["u", "v", "w"])[(Y + _rng.integers(0, 2, N)) % 3],
        "e": _rng.random(N) < 0.2 + 0.3 * Y,
    }
)


def test_the_components_of_an_average_are_its_density_and_that_of_rows_with_an_entry():
    classifier = bg.AveragedClassifier(members=["gaussian", "mixture", "category"], features={"c": "poisson"})
    joint = classifier.fit(TABLE, Y).fitted_.joint()
    rows = joint.read(TABLE.mask(np.random.default_rng(1).random(TABLE.shape) < 0.3)[:12])
    average, x = classifier.average_, rows["numbers"]

    def whole(rows):
        return average.log_joint(*joint.arrays(rows)).T

    given, slope = joint.components().given(rows), average.bend.log_slope(x)
    np.testing.assert_allclose(logsumexp(given.log_joint, axis=0) + slope, whole(rows), rtol=1e-10, atol=1e-10)
    for entry in given.entries():
        values, log_joint, *_ = entry.along()
        block, place, own = entry.gap
        line = np.broadcast_to(values, log_joint.shape[1:])
        for q in range(0, line.shape[1], max(1, line.shape[1] // 4)):
            filled = {name: v[own].copy() for name, v in rows.items()}
            filled[block].reshape(len(own), -1)[:, place] = line[:, q]
            straight = whole(filled) - average.bend.log_slope(filled["numbers"])
            np.testing.assert_allclose(log_joint[..., q], straight, rtol=1e-8, atol=1e-8)


def test_an_average_reports_along_an_entry_what_it_reports_of_rows_with_it():
    pool = ["gaussian", "category", "softmax"]
    classifier = bg.AveragedClassifier(members=pool, features={"c": "poisson"}, priors=[0.5, 0.3, 0.2]).fit(TABLE, Y)
    joint = classifier.fitted_.joint()
    rows = joint.read(TABLE.mask(np.random.default_rng(2).random(TABLE.shape) < 0.3)[:12])
    given, answer = joint.valued().given(rows), replace(classifier.posterior_, weights=joint.heaviest[1])
    np.testing.assert_allclose(
        np.exp(joint.log_probability(given)).T, answer.probability(*joint.arrays(rows)), rtol=1e-9
    )
    for entry in given.entries():
        found, (block, place, own) = np.exp(joint.log_probability(given, entry, along := entry.along())), entry.gap
        line = np.broadcast_to(along.values, found.shape[1:])
        for q in range(0, line.shape[1], max(1, line.shape[1] // 3)):
            filled = {name: v[own].copy() for name, v in rows.items()}
            filled[block].reshape(len(own), -1)[:, place] = line[:, q]
            straight = answer.probability(*joint.arrays(filled)).T
            np.testing.assert_allclose(found[..., q], straight, rtol=1e-7, atol=1e-9)


# -- families of one's own -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Plain(Member):
    """Independent Gaussians of unit variance about the means of the classes."""

    blocks = ("numbers",)
    sd: float

    @property
    def family(self):
        return "plain"

    @classmethod
    def propose(cls, rows, setting):
        return [(cls(1.0),)] if rows.x.shape[1] else []

    @classmethod
    def fit(cls, groups, training):
        rows, y = training.rows, training.warp.forward(training.rows.x)
        mean = np.stack([np.nanmean(y[rows.codes == k], 0) for k in range(rows.classes)])
        return [PlainMembers(group, PlainFactor(mean, training.warp, cls.blocks)) for group in groups]


class PlainOfTables(Plain):
    blocks = ("numbers", "categories")


@dataclass(frozen=True, eq=False)
class PlainMembers(FittedFactors):
    members: tuple
    settled: Any

    @property
    def bend(self):
        return self.settled.warp

    def factor(self, place):
        return self.settled


@dataclass(frozen=True, eq=False)
class PlainFactor(Record, Factor):
    mean: np.ndarray
    warp: Any
    blocks: tuple

    @property
    def owner(self):
        return np.arange(len(self.mean))

    def log_density(self, rows):
        density = norm.logpdf(self.warp.forward(rows["numbers"]), self.mean[:, None])
        return np.where(np.isnan(density), 0, density).sum(2)

    def conditionals(self, rows, block):
        for gap in gaps(block, rows[block]):
            column, one = self.warp.take([gap.place]), np.ones((len(self.mean), len(gap.rows)))
            location = self.mean[:, gap.place, None] * one
            yield (
                gap,
                Line(location, one, np.inf * one, lambda z, c=column: c.back(z.reshape(-1, 1)).reshape(z.shape), True),
            )

    def fill(self, rows, group, rng):
        y = self.mean[group] + rng.normal(size=rows["numbers"].shape)
        x = np.where(np.isnan(rows["numbers"]), self.warp.back(y), rows["numbers"])
        return {block: x if block == "numbers" else rows[block] for block in self.blocks}


X, T = load_iris(return_X_y=True)
GAPS = X[1:20:2].copy()
GAPS[:, 1] = np.nan
QUESTIONS = {
    "predict_proba": lambda c: c.predict_proba(GAPS).sum(1),
    "score_samples": lambda c: c.score_samples(GAPS),
    "sample": lambda c: c.sample(20)[0],
    "predict_proba_interval": lambda c: c.predict_proba_interval(GAPS, size=50),
    "impute": lambda c: impute(c, GAPS),
    "impute, draws": lambda c: impute(c, GAPS, draws=2),
    "impute, joint": lambda c: impute(c, GAPS, draws=2, joint=True),
    "next_measurement": lambda c: next_measurement(c, GAPS)[:, 1],
    "typicality": lambda c: typicality(c, GAPS, 200).by_class,
    "to_arviz": lambda c: len(c.to_arviz().children),
    "explain": lambda c: c.explain(GAPS),
}


@pytest.mark.parametrize("family", [Plain, PlainOfTables])
@pytest.mark.parametrize("others", [[], ["gaussian"]], ids=["alone", "beside others"])
def test_a_family_of_ones_own_answers_every_question(family, others, monkeypatch):
    monkeypatch.setattr(families, "FAMILIES", [*families.FAMILIES, family])
    classifier = bg.AveragedClassifier(members=[*others, families.name_of(family)]).fit(X[::2], T[::2])
    for name, ask in QUESTIONS.items():
        assert np.isfinite(np.asarray(ask(classifier), float)).all(), name
    if not others:
        warp = classifier.average_.bend
        y, mean = warp.forward(X), np.stack([warp.forward(X[::2])[T[::2] == k].mean(0) for k in range(3)])
        log_prior = classifier.average_.log_class_prior
        joint = norm.logpdf(y[:, None], mean).sum(2) + log_prior + warp.log_slope(X)[:, None]
        np.testing.assert_allclose(classifier.score_samples(X), logsumexp(joint, axis=1), rtol=1e-9)
        filled = impute(classifier, GAPS, np.zeros(len(GAPS), int))
        np.testing.assert_allclose(filled[:, 1], warp.take([1]).back(mean[:1, 1:2])[0, 0], rtol=1e-6)
