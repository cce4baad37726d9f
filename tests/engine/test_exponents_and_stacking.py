"""Exponents and weights of the members of an average, against SciPy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from scipy.special import logsumexp, softmax

from bayesgen.averaging.ensembles import ForestMember
from bayesgen.averaging.gaussians import GaussianMember
from bayesgen.averaging.member import Product
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.softmax import SoftmaxMember
from bayesgen.averaging.weights import PRIORS, LeftOut, by_stacking, prior_mass, strength
from bayesgen.numerics import tempering
from bayesgen.numerics.stacking import stack


def densities(members=4, n=60, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, n)
    density = rng.normal(size=(members, n, classes)) * np.array([0.3, 3, 30, 300])[:members, None, None]
    density[:, np.arange(n), codes] += np.array([0.1, 2, 20, 10])[:members, None]
    return density, np.log(rng.dirichlet(np.ones(classes), n)), codes, rng.uniform(0.2, 2, n)


def test_exponents_are_those_that_scipy_finds():
    density, log_prior, codes, weight = densities()
    found = tempering.exponents(density, log_prior, codes, weight, 0.7)
    for f, tau in zip(density, found, strict=True):

        def loss(log_tau, f=f):
            tau = np.exp(log_tau)
            joint = tau * f + log_prior
            score = joint[np.arange(len(codes)), codes] - logsumexp(joint, axis=1)
            return -(weight @ score + (log_tau - np.log(0.7) - tau / 0.7) / 0.25)

        best = optimize.minimize_scalar(loss, bounds=(-9, 4), method="bounded", options={"xatol": 1e-10})
        assert tau == pytest.approx(np.exp(best.x), rel=1e-5)


def test_exponents_start_anywhere_and_end_at_one_place():
    density, log_prior, codes, weight = densities()
    found = tempering.exponents(density, log_prior, codes, weight, 0.7)
    for start in (1e-4, 50.0):
        again = tempering.exponents(density, log_prior, codes, weight, 0.7, np.full(4, start))
        np.testing.assert_allclose(again, found, rtol=1e-12)


def test_an_exponent_does_not_depend_on_the_members_beside_it():
    density, log_prior, codes, weight = densities()
    found = tempering.exponents(density, log_prior, codes, weight, 0.7)
    for start in (None, found[:1]):  # at its root, a member waits for those that need more steps
        alone = np.concatenate([tempering.exponents(f[None], log_prior, codes, weight, 0.7, start) for f in density])
        np.testing.assert_allclose(alone, found, rtol=1e-12)
    again = tempering.exponents(density, log_prior, codes, weight, 0.7, np.where(np.arange(4) == 3, 50.0, found))
    np.testing.assert_allclose(again, found, rtol=1e-12)


def test_probabilities_are_tempered_and_bounded_by_the_class_prior():
    density, log_prior, _, _ = densities()
    exponents, least = np.array([2.0, 1.0, 0.1, 0.5]), np.array([0.0, 0.02, 0.0, 0.3])
    share = least[:, None, None]
    expected = (softmax(exponents[:, None, None] * density + log_prior, 2) + share * np.exp(log_prior)) / (1 + share)
    arguments = log_prior.T, exponents
    found = tempering.log_probability(density.swapaxes(1, 2).copy(), *arguments, least)
    np.testing.assert_allclose(np.exp(found), expected.swapaxes(1, 2), rtol=1e-12)
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    mixture = tempering.mixture(density.swapaxes(1, 2).copy(), *arguments, weights, least)
    np.testing.assert_allclose(mixture, np.einsum("m,mnk->kn", weights, expected), rtol=1e-12)


def test_a_member_that_says_nothing_keeps_the_expected_exponent_and_the_class_prior():
    _, log_prior, codes, weight = densities()
    nothing = np.zeros((1, len(codes), 3))
    tau = tempering.exponents(nothing, log_prior, codes, weight, 0.7)
    assert tau == pytest.approx(0.7)
    np.testing.assert_allclose(
        tempering.log_probability(nothing.swapaxes(1, 2), log_prior.T, tau)[0], log_prior.T, atol=1e-14
    )


def test_stacking_is_what_scipy_finds():
    rng = np.random.default_rng(0)
    score, weight = np.log(rng.uniform(0.05, 1, (5, 40))), rng.uniform(0.2, 2, 40)
    prior = np.array([1.0, 0.5, 0.5, 0.2, 0.2])

    def loss(free):
        w = np.exp(free - logsumexp(free))
        return -(weight @ np.log(w @ np.exp(score)) + prior @ np.log(w))

    best = optimize.minimize(loss, np.zeros(5), tol=1e-14)
    expected = np.exp(best.x - logsumexp(best.x))
    np.testing.assert_allclose(stack(score, weight, prior), expected, atol=1e-5)
    np.testing.assert_allclose(stack(score + rng.normal(size=40), weight, prior), expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("members", "count"), [(1, 3), (4, 1), (6, 150), (120, 40), (3, 0)])
def test_stacking_ends_at_its_maximum(members, count, seed):
    """At a maximum over the simplex the gradient has one size, and members that are nearly alike make the way long."""
    rng = np.random.default_rng(seed)
    score = rng.choice([1e-3, 0.1, 1.0, 30.0]) * rng.normal(size=(members, count)) - 50.0 * rng.normal(size=count)
    score[members // 2 :] = score[: members - members // 2] + 1e-3 * rng.normal(size=(members - members // 2, count))
    weight = rng.choice([1e-3, 1.0, 3.0], count)
    prior = rng.dirichlet(np.ones(members)) + 0.1  # so that no weight is small enough to be cut
    start = np.eye(members)[0] if seed % 2 else None
    weights = stack(score, weight, prior, start, tolerance=1e-9)
    density = np.exp(score - score.max(0, initial=-np.inf))
    gradient = density @ (weight / (weights @ density)) + prior / weights
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(gradient, weight.sum() + prior.sum(), rtol=1e-4)
    assert gradient.max() <= (weight.sum() + prior.sum()) * (1 + 1e-8)


def test_the_gap_of_stacking_bounds_what_is_left_to_gain():
    rng = np.random.default_rng(0)
    score, weight, prior = np.log(rng.uniform(0.05, 1, (30, 40))), rng.uniform(0.2, 2, 40), np.full(30, 0.1)

    def value(w):
        return weight @ np.log(w @ np.exp(score)) + prior @ np.log(w)

    best = value(stack(score, weight, prior, tolerance=1e-12))
    for tolerance in (1.0, 1e-2, 1e-4):
        assert 0 <= best - value(stack(score, weight, prior, tolerance=tolerance)) < tolerance


def _left_out(gain, n):
    """Return rows of two classes under the base rate, a member that gives its class ``gain`` more, and 18 of chance."""
    rng = np.random.default_rng(3)
    codes = np.arange(n) % 2
    density = np.zeros((20, n, 2))
    density[1, np.arange(n), codes] = gain
    density[2:, np.arange(n), codes] = rng.normal(0, 1.5, (18, n))
    rows = Rows(np.zeros((n, 1)), np.zeros((n, 0), int), codes, np.ones(n), (), 2)
    return LeftOut(density, np.full((n, 2), -np.log(2)), rows, rows.weight, np.zeros(20))


@pytest.mark.parametrize("gain", [0.1, 4.0])
def test_the_nested_score_decides_between_the_priors(gain):
    """A member that is right of all rows has nearly all by the weak prior; where all is chance the strong count."""
    predicted = _left_out(gain, 30)
    prior = np.full((3, 20), 1 / 20)
    weights = by_stacking(predicted, prior, np.ones(20), 0, np.zeros(20, bool)).weights
    log_q = predicted.log_q(np.ones(20))
    weak, _, strong = (stack(log_q, np.ones(30), times * strength(30) / 20 * np.ones(20)) for times, _ in PRIORS)
    if gain > 1:
        assert weights[1] > 0.8 > strong[1]
    else:
        spread = [np.exp(-(w[w > 0] @ np.log(w[w > 0]))) for w in (weak, strong)]
        assert spread[0] < spread[1]
        assert weights[0] > weak[0]


def test_copies_that_share_the_prior_of_a_member_change_nothing():
    predicted = _left_out(1.0, 30)
    prior = np.full((3, 20), 1 / 20)
    order = np.append(np.arange(20), 1)
    copied = replace(predicted, density=predicted.density[order], least=predicted.least[order])
    split = prior[:, order] * np.where(np.isin(order, 1), 0.5, 1.0)
    once, twice = (
        by_stacking(rows, own, np.ones(own.shape[1]), 0, np.zeros(own.shape[1], bool))
        for rows, own in ((predicted, prior), (copied, split))
    )
    np.testing.assert_allclose(np.append(twice.weights[:1], twice.weights[2:20]), np.delete(once.weights, 1), atol=2e-4)
    assert twice.weights[1] + twice.weights[20] == pytest.approx(once.weights[1], abs=2e-4)
    assert twice.nested == pytest.approx(once.nested, abs=1e-5)


def test_stacking_that_is_cut_short_says_so():
    score, one = np.log(np.random.default_rng(0).uniform(0.05, 1, (5, 40))), np.ones(40)
    with pytest.warns(UserWarning, match="were not found in 2 steps"):
        stack(score, one, np.full(5, 0.2), steps=2)


def test_the_mass_of_the_prior_is_even_over_families():
    a, b = (Product((GaussianMember(name, 1.0, 1.0),)) for name in ("full", "shared"))
    base, softmax = Product(()), SoftmaxMember(1.0)
    np.testing.assert_allclose(prior_mass([a, b, b, softmax], 0.1), [1 / 4, 1 / 8, 1 / 8, 1 / 2])
    np.testing.assert_allclose(prior_mass([a, base], 0.1), [5 / 6, 1 / 6])
    np.testing.assert_allclose(prior_mass([a, softmax, softmax], 0.1), [1 / 3, 1 / 3, 1 / 3])
    np.testing.assert_allclose(prior_mass([a, b, ForestMember()], 0.6), [0.2, 0.2, 0.6])
    assert strength(10) == 5 and strength(1000) == 1
