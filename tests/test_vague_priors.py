"""NUTS and Laplace under vague conjugate priors: against the exact posterior, refused, or an error; never silent."""

import itertools
import warnings

import jax.numpy as jnp
import laws
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from refusals import refuses

from bayesgen import NUTS, Laplace, fit
from bayesgen.inference import SamplerWarning
from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    GaussianDiscriminant,
    LinearRegression,
    LogNormal,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownMean,
    SemiConjugateLinearRegression,
)

RNG = np.random.default_rng(0)
T = np.arange(40) % 2
X = RNG.normal(size=(40, 3)) + T[:, None]
COUNTS, DIE = RNG.poisson(2, 40), RNG.integers(3, size=(40, 2))
Y = X @ [1.0, 2.0, 3.0] + RNG.normal(size=40)
TINY = 1e-3
CLASSES, THREE = DirichletCategorical(TINY, 2), np.zeros(3)
VECTOR = NormalInverseWishart(THREE, TINY, 2.05, TINY * np.eye(3))
COLUMNS = NormalInverseGamma(THREE, TINY, TINY, TINY)

LABELS = DirichletCategorical(1.0, ["a", "b"])

# Leaves with few rows: (leaf, rows). Together they are one program, which is compiled once.
FEW = {
    "poisson": (GammaPoisson(TINY, TINY), [0, 1, 0, 3]),
    "coin": (BetaBernoulli(0.01, 0.01), [0, 1, 1, 1]),
    "tosses": (BetaBinomial(0.01, 0.01, trials=10), [3, 4, 9]),
    "die": (DirichletCategorical(TINY, 3), [0, 1, 2, 1]),
    "words": (DirichletMultinomial(TINY, 3), [[3, 4, 1]]),
    "gaussian": (NormalInverseGamma(0, TINY, TINY, TINY), [1.0, 2.0, 4.0]),
    "gaussian far away": (NormalInverseGamma(0, TINY, TINY, TINY), [1e6, 1e6 + 1, 1e6 + 3]),
    "log normal": (LogNormal(0, TINY, TINY, TINY), [1.0, 2.0, 4.0]),
    "known mean": (NormalKnownMean(0, TINY, TINY), [1.0, 2.0, 4.0]),
}


def padded(rows, count=4):
    """Rows, and missing ones up to a number of them; twice, for two classes."""
    rows = np.append(rows, np.full((count - len(rows), *np.shape(rows)[1:]), np.nan), axis=0)
    return np.concatenate([rows, rows])


TOGETHER = NaiveBayes(CLASSES, {name: leaf for name, (leaf, _) in FEW.items()})

CASES = FEW | {
    "leaves with few rows": (TOGETHER, ({name: padded(rows) for name, (_, rows) in FEW.items()}, np.repeat([0, 1], 4))),
    "vector": (VECTOR, X),
    "vector of one row": (NormalInverseWishart(THREE, TINY, 2.1, TINY * np.eye(3)), X[:1]),
    "line": (LinearRegression(np.zeros(4), 30 * np.eye(4), TINY, TINY), (X, Y)),
    "line through 0": (LinearRegression(THREE, 1e4 * np.eye(3), TINY, TINY, intercept=False), (X * 1e-3 + 5, 1e3 * Y)),
    "full": (GaussianDiscriminant(CLASSES, VECTOR), (X, T)),
    "full, shared": (GaussianDiscriminant(CLASSES, VECTOR, shared=True), (X, T)),
    "diagonal": (GaussianDiscriminant(CLASSES, COLUMNS, "diagonal"), (X, T)),
    "diagonal, shared": (GaussianDiscriminant(CLASSES, COLUMNS, "diagonal", shared=True), (X, T)),
    "isotropic": (GaussianDiscriminant(CLASSES, COLUMNS, "isotropic"), (X, T)),
    "isotropic, shared": (GaussianDiscriminant(CLASSES, COLUMNS, "isotropic", shared=True), (X, T)),
    "naive Bayes": (
        NaiveBayes(
            CLASSES,
            {
                "coin": BetaBernoulli(0.01, 0.01),
                "counts": GammaPoisson(TINY, TINY),
                "die": DirichletCategorical(np.full((2, 3), TINY)),
                "number": NormalInverseGamma(0, TINY, TINY, TINY),
                "money": LogNormal(0, TINY, TINY, TINY),
            },
        ),
        ({"coin": DIE[:, 0] > 0, "counts": COUNTS, "die": DIE, "number": X[:, 0], "money": np.exp(X[:, 1])}, T),
    ),
}


def shares_below(draws, exact):
    """Standard scores of how many draws are below the quantiles of 20,000 exact ones, which no heavy tail disturbs."""
    varying = exact.std(0) > 0
    for level in (0.1, 0.5, 0.9):
        below = draws <= np.quantile(exact, level, axis=0)
        yield laws.z_scores(below[..., varying] * 1.0, level, level * (1 - level) / len(exact))


# Programs like another line's: leaves alone stand among those together, and a structure is shared or is not.
AGAIN = (*FEW, "vector of one row", "line", "full", "full, shared", "diagonal, shared", "isotropic", "naive Bayes")


def cases():
    """Every case with three seeds; slow are all but the first, and cases that compile another's program."""
    for case, seed in itertools.product(CASES, range(3)):
        yield pytest.param(case, seed, marks=[pytest.mark.slow] * (seed > 0 or case in AGAIN))


@pytest.mark.compiles
@pytest.mark.parametrize(("case", "seed"), list(cases()))
@pytest.mark.filterwarnings("ignore:NUTS")
def test_a_vague_prior_with_data_agrees_with_the_exact_posterior(case, seed):
    model, data = CASES[case]
    statistics = model.statistics(*data) if isinstance(data, tuple) else model.statistics(data)
    exact = model.update(statistics).sample_parameters(np.random.default_rng(1), (20_000,))
    found = NUTS(1000, 500, 4)(model, statistics, seed=seed)
    assert found.samples.keys() == exact.keys()
    for site, values in exact.items():
        for z in shares_below(found.samples[site], values):
            assert (np.abs(z) < 5).all(), site


def gibbs(model, statistics, count):
    """Draws of both full conditionals of `SemiConjugateLinearRegression` in turn (Hoff 2009, section 9.2.1)."""
    rng, variance, rows, found = np.random.default_rng(2), 1.0, model.rows_of(statistics), []
    for _ in range(count):
        mean, root, _ = model.solve(statistics, variance**0.5)
        weights = mean + root @ rng.normal(size=len(mean))
        squares = ((rows[:, -1] - rows[:, :-1] @ weights) ** 2).sum()
        variance = (model.beta + squares / 2) / rng.gamma(model.alpha + statistics.n / 2)
        found.append(np.append(weights, variance))
    return np.array(found)[count // 10 :]


@pytest.mark.compiles
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_a_vague_semi_conjugate_line_agrees_with_gibbs_sampling(seed):
    model = SemiConjugateLinearRegression(np.zeros(4), 30 * np.eye(4), TINY, TINY)
    statistics = model.statistics(X, Y)
    exact = gibbs(model, statistics, 5000)
    samples = NUTS(1000, 500, 4)(model, statistics, seed=seed).samples
    parts = [samples["intercept"][..., None], samples["coefficients"], samples["variance"][..., None]]
    for z in shares_below(np.concatenate(parts, -1), exact):
        assert (np.abs(z) < 5).all()


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("prior", "covariance"),
    [
        (NormalInverseGamma(THREE, 0.01, 0.01, 0.01), "diagonal"),  # the shapes of CASES: the programs are there
        pytest.param(NormalInverseWishart(THREE, TINY, 3.0, np.eye(3)), "full", marks=pytest.mark.slow),
    ],
)
def test_probabilities_under_a_vague_prior_are_those_of_the_exact_posterior(prior, covariance):
    rng = np.random.default_rng(3)
    t = np.arange(60) % 2
    x = rng.normal(size=(60, 3)) + 0.5 * t[:, None]
    model = GaussianDiscriminant(DirichletCategorical(1.0, 2), prior, covariance)
    joint, effective = fit(model, (x, t), NUTS(1000, 500, 4), seed=0).log_predictive_with_effective(x)
    enough = effective.min(1) > 100  # of the others the mean is not known to its own error
    assert enough.mean() > 0.9
    error = (np.diff(joint) - np.diff(fit(model, (x, t), "exact").log_predictive(x)))[:, 0]
    # A mean of n effective densities has the relative variance 1/n, of either class.
    assert (np.abs(error) < 5 * np.sqrt((1 / effective).sum(1)))[enough].all()


@pytest.mark.parametrize(
    ("model", "data", "words"),
    [
        (GammaPoisson(TINY, TINY), [0, 0], r"'mean'.*shape of 0.001.*'exact'"),
        (BetaBernoulli(0.01, 0.01), [1, 1], "'probability'.*shape of 0.01.*'exact'"),
        (DirichletCategorical(TINY, 3), [0, 1, 1], "'probability'.*shape of 0.001.*'exact'"),
        (NormalInverseGamma(0, 1, TINY, 1), [np.nan], "'variance'.*shape of 0.001.*'exact'"),
        (NormalKnownMean(0, TINY, 1), [np.nan], "'variance'.*shape of 0.001.*'exact'"),
        (GaussianDiscriminant(LABELS, COLUMNS, "diagonal", columns={"gaussian": ["p", "q", "r"]}),
         (np.where(T[:, None] > 0, X, [1.0, np.nan, 1.0]), T), "class 'a', column 'q'.*'variance'"),
        (GaussianDiscriminant(LABELS, NormalInverseWishart(THREE, 1, 2.001, np.eye(3))),
         (X, 0 * T), "class 'b'.*'covariance'"),
        (GaussianDiscriminant(CLASSES, COLUMNS, "isotropic"), (X, 0 * T), "'probability'"),
    ],
)  # fmt: skip
def test_a_posterior_that_float64_cannot_hold_is_refused_by_site_and_class(model, data, words):
    refuses(lambda: fit(model, data, NUTS(10, 10, 1)), words)


def nowhere_finite(x):
    place = numpyro.sample("place", dist.Normal(0.0, 1.0))
    numpyro.factor("density", jnp.where(place > 100, 0.0, jnp.nan) + 0 * x)


def steps(x):
    """A density that is 0 almost everywhere, so that no chain moves."""
    place = numpyro.sample("place", dist.Normal(0.0, 1.0))
    numpyro.factor("density", -1e300 * jnp.abs(place - x))


@pytest.mark.compiles
@pytest.mark.parametrize(("density", "words"), [(nowhere_finite, "not finite"), (steps, "never moved|not finite")])
def test_draws_that_are_not_finite_and_chains_that_never_moved_are_errors(density, words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refuses(lambda: fit(density, 0.123, NUTS(100, 100, 2), seed=0), words)


@pytest.mark.compiles
def test_laplace_of_a_vague_semi_conjugate_line_agrees_with_nuts():
    model = SemiConjugateLinearRegression(np.zeros(4), 30 * np.eye(4), TINY, TINY)
    one, two = (fit(model, (X, Y), way, seed=0).samples for way in (Laplace(), NUTS(1000, 500, 4)))
    for site in ("coefficients", "variance"):
        assert (np.abs(one[site].mean((0, 1)) - two[site].mean((0, 1))) < 0.2 * two[site].std((0, 1))).all()


MORE = ("gaussian", "known mean", "diagonal")  # by programs like those of the others


@pytest.mark.compiles
@pytest.mark.parametrize(
    "case", ["gaussian far away", "poisson", "line", *(pytest.param(c, marks=pytest.mark.slow) for c in MORE)]
)
def test_laplace_starts_where_the_posterior_is(case):
    model, data = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerWarning)
        found = fit(model, data, Laplace(), seed=0)
    if found.run["pareto_k"] < 0.5:
        assert found.log_evidence == pytest.approx(float(fit(model, data).log_evidence), abs=0.1)
        assert max(found.distance.values()) < 0.2
