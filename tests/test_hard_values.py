"""Hard values: many rows, far from 0, against 60 digits."""

import mpmath
import numpy as np
import pytest
from test_models import evidence, learn

from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownVariance,
)

MP = mpmath.mp.clone()
MP.dps = 60
RNG = np.random.default_rng(3)
BITS = RNG.random(100_000) < 0.3
CODES = RNG.integers(0, 3, 100_000)
FAR = RNG.normal(1e8, 1.0, 100_000)
FAR2 = RNG.multivariate_normal([1e8, -3e7], [[1.0, 0.9], [0.9, 1.0]], 2000)


def mp_dirichlet(alpha, counts):
    alpha = [MP.mpf(float(a)) for a in alpha]
    total, n = sum(alpha), int(sum(counts))
    rising = sum(MP.loggamma(a + int(c)) - MP.loggamma(a) for a, c in zip(alpha, counts, strict=True))
    return rising - MP.loggamma(total + n) + MP.loggamma(total)


def mp_known(x, mean, sd, noise):
    """Completing the square from exact raw sums."""
    mean, sd, noise = MP.mpf(mean), MP.mpf(sd), MP.mpf(noise)
    n, s1, s2 = len(x), MP.fsum(map(MP.mpf, x.tolist())), MP.fsum(MP.mpf(v) ** 2 for v in x.tolist())
    precision = 1 / sd**2 + n / noise**2
    centre = (mean / sd**2 + s1 / noise**2) / precision
    exponent = mean**2 / sd**2 + s2 / noise**2 - precision * centre**2
    return -n * MP.log(2 * MP.pi * noise**2) / 2 - MP.log(sd**2 * precision) / 2 - exponent / 2


def mp_normal(x, mean, kappa, alpha, beta):
    mean, kappa, alpha, beta = map(MP.mpf, (mean, kappa, alpha, beta))
    n, s1, s2 = len(x), MP.fsum(map(MP.mpf, x.tolist())), MP.fsum(MP.mpf(v) ** 2 for v in x.tolist())
    centre = (kappa * mean + s1) / (kappa + n)
    beta_n = beta + (s2 + kappa * mean**2 - (kappa + n) * centre**2) / 2
    alpha_n = alpha + MP.mpf(n) / 2
    gammas = MP.loggamma(alpha_n) - MP.loggamma(alpha) + alpha * MP.log(beta) - alpha_n * MP.log(beta_n)
    return gammas + MP.log(kappa / (kappa + n)) / 2 - MP.mpf(n) / 2 * MP.log(2 * MP.pi)


def mp_plane(x, mean, kappa, nu, scale):
    kappa, nu, n = MP.mpf(kappa), MP.mpf(nu), len(x)
    rows = [MP.matrix(row) for row in x.tolist()]
    mean = MP.matrix(list(mean))
    s1, s2 = MP.zeros(2, 1), MP.zeros(2, 2)
    for row in rows:
        s1, s2 = s1 + row, s2 + row * row.T
    centre = (kappa * mean + s1) / (kappa + n)
    scale = MP.matrix(scale)
    scale_n = scale + s2 + kappa * mean * mean.T - (kappa + n) * centre * centre.T
    nu_n = nu + n

    def log_gamma_2(a):
        return MP.loggamma(a) + MP.loggamma(a - MP.mpf(1) / 2)

    return (
        -n * MP.log(MP.pi)
        + MP.log(kappa / (kappa + n))
        + nu / 2 * MP.log(MP.det(scale))
        - nu_n / 2 * MP.log(MP.det(scale_n))
        + log_gamma_2(nu_n / 2)
        - log_gamma_2(nu / 2)
    )


HARD = {
    "coin, tiny prior": (
        BetaBernoulli(1e-3, 1e-3), BITS, [1],
        lambda x: mp_dirichlet([1e-3, 1e-3], [x.sum(), (~np.asarray(x, bool)).sum()]),
    ),
    "coin, all heads": (
        BetaBernoulli(1e-3, 1e-3), np.ones(100_000), [1.0], lambda x: mp_dirichlet([1e-3, 1e-3], [len(x), 0])
    ),
    "die, tiny prior": (
        DirichletCategorical(1e-3, 4), CODES, [3], lambda x: mp_dirichlet([1e-3] * 4, np.bincount(x, minlength=4))
    ),
    "toronto, far away": (
        NormalKnownVariance(1e8, 10.0, 1.0), FAR, [1e8 + 4.0], lambda x: mp_known(x, 1e8, 10, 1)
    ),
    "normal, far away": (
        NormalInverseGamma(1e8, 1e-3, 1e-3, 1e-3), FAR, [1e8 + 4.0], lambda x: mp_normal(x, 1e8, 1e-3, 1e-3, 1e-3)
    ),
    "normal, prior far from the data": (
        NormalInverseGamma(0.0, 1e-3, 1e-3, 1e-3), FAR[:50], [1e8], lambda x: mp_normal(x, 0, 1e-3, 1e-3, 1e-3)
    ),
    "normal, few rows": (
        NormalInverseGamma(1e8, 1e-3, 1e-3, 1e-3), FAR[:2], [1e8 - 900.0], lambda x: mp_normal(x, 1e8, 1e-3, 1e-3, 1e-3)
    ),
    "plane, far away": (
        NormalInverseWishart([1e8, -3e7], 1e-3, 1.001, 1e-3 * np.eye(2)), FAR2, [[1e8 + 3.0, -3e7 - 3.0]],
        lambda x: mp_plane(x, [1e8, -3e7], 1e-3, 1.001, [[1e-3, 0], [0, 1e-3]]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.compiles] * ("far away" in n)) for n in HARD])
def test_hard_values(name):
    """Nine digits of evidence and predictive: tiny priors, 1e5 rows, unit spread at an offset of 1e8.

    A mean near 1e8 is a double and so known to one unit in the last place, 1.5e-8: what such a step does to the
    log predictive is allowed on top.
    """
    model, x, new, exact = HARD[name]
    new = np.asarray(new, x.dtype)
    whole = exact(x)
    assert evidence(model, x) == pytest.approx(float(whole), rel=1e-9)
    posterior = learn(model, x)
    ratio = float(exact(np.concatenate([x, new])) - whole)
    step = 0.0
    if x.dtype == float:
        for sign in np.ndindex((2,) * new.size):
            moved = np.nextafter(new, np.where(np.reshape(sign, new.shape), np.inf, -np.inf))
            step = max(
                step,
                abs(posterior.log_predictive(moved)[0] - posterior.log_predictive(new)[0]) if new[0].max() > 1 else 0,
            )
    assert posterior.log_predictive(new)[0] == pytest.approx(ratio, rel=1e-9, abs=1e-9 * abs(ratio) + step + 1e-15)


def test_merging_far_away_pieces_keeps_the_digits():
    prior = NormalInverseGamma(1e8, 1.0, 1.0, 1.0)
    whole = prior.statistics(FAR)
    pieces = [prior.statistics(piece) for piece in np.array_split(FAR, 97)]
    total = pieces[0]
    for piece in pieces[1:]:
        total = total + piece
    exact = FAR.astype(np.longdouble)
    scatter = float(((exact - exact.mean()) ** 2).sum())
    # Chan's merge needs the means, known to 1.5e-8 of a standard deviation; raw second moments would lose all digits.
    assert whole.scatter == pytest.approx(scatter, rel=1e-9)
    assert total.scatter == pytest.approx(scatter, rel=1e-9)
