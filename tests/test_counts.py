"""Counts, beyond the laws: SciPy's digits, large counts, tosses that are data, and the estimator."""

import functools
import pickle
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from refusals import refuses
from scipy import sparse, stats

from bayesgen.core import program
from bayesgen.models import BetaBernoulli, BetaBinomial, DirichletMultinomial, GammaPoisson
from bayesgen.numerics import counts

NAN = np.nan


# -- one leaf ---------------------------------------------------------------------------------------------------------


def fixed_tosses(leaf, x):
    return stats.betabinom(6, leaf.a, leaf.b).logpmf(x)


def tosses_in_a_column(leaf, x):
    return stats.betabinom(x[:, 1], leaf.a, leaf.b).logpmf(x[:, 0])


def events(leaf, x):
    return stats.nbinom(leaf.concentration, leaf.rate / (leaf.rate + 1)).logpmf(x)


def words(leaf, x):
    return [stats.dirichlet_multinomial(leaf.alpha, row.sum()).logpmf(row) for row in x]


LEAVES = {
    "poisson": (GammaPoisson(2.0, 0.5), [3, 0, 7, 1, 4], events),
    "binomial": (BetaBinomial(1.5, 2.5, trials=6), [2, 6, 0, 5, 3], fixed_tosses),
    "pairs": (BetaBinomial(1.5, 2.5), [[2, 6], [0, 3], [9, 9], [0, 0], [1, 4]], tosses_in_a_column),
    "bag": (DirichletMultinomial([0.5, 1.0, 2.5]), [[2, 3, 0], [0, 0, 0], [1, 0, 4], [0, 7, 1]], words),
}


@pytest.mark.parametrize("leaf, x, expected", LEAVES.values(), ids=LEAVES.keys())
def test_predictive_agrees_with_scipy(leaf, x, expected):
    posterior = leaf.update(leaf.statistics(x))
    for model in (leaf, posterior):
        np.testing.assert_allclose(model.log_predictive(x), expected(model, np.array(x)), rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_the_program_draws_documents_of_one_length():
    drawn = program.handlers.trace(program.handlers.seed(DirichletMultinomial(1.0, 3, length=7), 0)).get_trace(size=50)
    assert (drawn["x"]["value"].sum(-1) == 7).all()


@pytest.mark.compiles
def test_tosses_are_given_never_drawn():
    leaf = BetaBinomial(1.5, 2.5)
    refuses(lambda: program.handlers.seed(leaf, 0)(size=3), "give trials=", TypeError)
    refuses(leaf.predictive, "give trials=", TypeError)


def test_boundary_estimates():
    poisson = GammaPoisson(1.0, 1.0)
    zeros = poisson.statistics([[0, 2], [0, 1]])
    np.testing.assert_array_equal(poisson.ml(zeros)["mean"], [0, 1.5])
    np.testing.assert_array_equal(poisson.update(zeros).mode()["mean"], [0, 1])
    rows = poisson.log_likelihood_rows({"mean": np.array([[0.0, 1.5]])}, np.array([[0, 1], [1, 1]]))
    np.testing.assert_allclose(rows, [[stats.poisson(1.5).logpmf(1), -np.inf]])
    refuses(GammaPoisson(0.5, 1.0).mode, "no mode where its concentration is below 1")
    refuses(lambda: poisson.ml(poisson.statistics([NAN])), "no observed value")


def test_features_multiply():
    x = np.array([[3, 0], [1, 8], [0, 2]])
    both, alone = GammaPoisson([2.0, 1.0], 0.5), (GammaPoisson(2.0, 0.5), GammaPoisson(1.0, 0.5))
    parts = [leaf.log_predictive(x[:, j]) for j, leaf in enumerate(alone)]
    np.testing.assert_allclose(both.log_predictive(x), sum(parts))
    tosses = BetaBinomial(1.0, [1.0, 2.0], trials=np.array([3, 8]))
    alone = BetaBinomial(1.0, 1.0, 3), BetaBinomial(1.0, 2.0, 8)
    np.testing.assert_allclose(
        tosses.log_predictive(x), sum(leaf.log_predictive(x[:, j]) for j, leaf in enumerate(alone))
    )
    evidence = sum(leaf.log_evidence(leaf.statistics(x[:, j])) for j, leaf in enumerate(alone))
    assert tosses.log_evidence(tosses.statistics(x)) == pytest.approx(evidence, rel=1e-13)
    bags = DirichletMultinomial([[1.0, 2.0], [3.0, 0.5]])
    documents = np.stack([x, x[:, ::-1]], 1)
    alone = [DirichletMultinomial(bags.alpha[j]).log_predictive(documents[:, j]) for j in range(2)]
    np.testing.assert_allclose(bags.log_predictive(documents), sum(alone))


def test_one_toss_is_the_coin():
    x = [1, 0, 1, 1]
    tosses, coin = BetaBinomial(2.0, 3.0, trials=1), BetaBernoulli(2.0, 3.0)
    np.testing.assert_allclose(tosses.log_predictive(x), coin.log_predictive(x), rtol=1e-13)
    assert tosses.log_evidence(tosses.statistics(x)) == pytest.approx(coin.log_evidence(coin.statistics(x)), rel=1e-13)


def test_heads_may_be_missing_alone():
    leaf = BetaBinomial(1.0, 1.0)
    assert leaf.statistics([[NAN, 5], [1, 2]]) == leaf.statistics([[1, 2]])
    np.testing.assert_allclose(leaf.log_predictive([[NAN, 5.0]]), 0, atol=1e-14)


def test_the_predictive_is_wider_than_the_plug_in():
    # Gamma(5, 2): mean 5/2; a negative binomial of variance mean (1 + 1/b) = 15/4, where a plugged-in Poisson has 5/2
    counts = np.arange(200)
    p = np.exp(GammaPoisson(5.0, 2.0).log_predictive(counts))
    assert p.sum() == pytest.approx(1)
    assert p @ counts == pytest.approx(2.5)
    assert p @ (counts - 2.5) ** 2 == pytest.approx(3.75)
    # Dirichlet(2, 1, 1): p([2, 3, 0]) = 5!/(2! 3!) (2·3)(1·2·3)/(4·5·6·7·8) = 3/56; plugged in 10 (1/2)² (1/4)³ = 5/128
    bag = DirichletMultinomial([2.0, 1.0, 1.0])
    assert np.exp(bag.log_predictive([[2, 3, 0]])) == pytest.approx(3 / 56)
    plug_in = bag.log_likelihood_rows({"probability": bag.mean[None]}, np.array([[2, 3, 0]]))
    assert np.exp(plug_in) == pytest.approx(5 / 128)


def test_an_empty_document_has_probability_one():
    bag = DirichletMultinomial([0.3, 1e-3, 1e4])
    np.testing.assert_allclose(bag.log_predictive([[0, 0, 0]]), 0, atol=1e-10)


@pytest.mark.parametrize("a", [1e-3, 1.0, 1e5, 1e10])
@pytest.mark.parametrize("x", [0, 1, 30, 10**6])
def test_digits_at_large_counts(a, x):
    mpmath.mp.dps = 40
    b = a / 1000
    exact = mpmath.log(mpmath.gammaprod([a + x], [a, x + 1])) + a * mpmath.log(b / (mpmath.mpf(b) + 1))
    exact -= x * mpmath.log(mpmath.mpf(b) + 1)
    assert GammaPoisson(a, b).log_predictive([x])[0] == pytest.approx(float(exact), rel=1e-12, abs=1e-9 + 1e-14 * a)


def hostile(rng, rows, columns, top):
    """Return CSR rows with entries in parts, in any order, written zeros and counts up to ``top``, and their sums."""
    count = rng.integers(0, 12, rows)
    place, column = np.repeat(np.arange(rows), count), rng.integers(columns, size=count.sum())
    data = np.where(rng.random(len(column)) < 0.7, rng.poisson(1, len(column)), rng.integers(top, size=len(column)))
    indptr = np.concatenate([[0], np.cumsum(count)])
    x = sparse.csr_array((data.astype(float), column, indptr), shape=(rows, columns))
    dense = np.zeros(x.shape)
    np.add.at(dense, (place, column), data)
    assert not x.has_canonical_format and (x.data == 0).any()
    return x, dense


def by_gammas(a, x):
    """Return the log of Γ(a + x)/(Γ(a) x!) by row, (n, groups), with 40 digits."""
    mpmath.mp.dps = 40
    one = functools.cache(lambda a, x: mpmath.log(mpmath.gammaprod([mpmath.mpf(a) + x], [a, x + 1])))
    return np.array(
        [[float(sum(one(v, int(c)) for v, c in zip(own, row, strict=True) if c)) for own in a] for row in x]
    )


@pytest.mark.parametrize("top", [5, 200, 2**33])
@pytest.mark.parametrize("limits", [{}, {"LARGEST_TABLE": 1}, {"LARGEST_INDEX": 1}], ids=str)
def test_words_without_gammas_are_exact(monkeypatch, limits, top):
    for name, value in limits.items():
        monkeypatch.setattr(counts, name, value)
    rng = np.random.default_rng(11)
    x, dense = hostile(rng, 60, 40, top)
    a = np.exp(rng.uniform(-9, 9, (2, 40)))
    bag, total = DirichletMultinomial(a), dense.sum(1)[:, None]
    ways = by_gammas(a, dense)
    lengths = np.concatenate([by_gammas(own[None], total) for own in a.sum(1, keepdims=True)], 1)
    scale = np.maximum(np.maximum(np.abs(ways), np.abs(lengths)), 1.0)
    for rows in (x, dense, x[:7], x.astype(int), x):  # the table is kept, and grows
        own = bag.log_predictive(rows)
        assert (np.abs(own - (ways - lengths)[: len(own)]) / scale[: len(own)]).max() < 1e-12
    (terms,) = vars(bag)["_known"].values()
    assert terms.table[:-1].nbytes <= max(counts.LARGEST_TABLE, a.nbytes)
    assert len(terms.table) > 41 or "LARGEST_TABLE" in limits
    b = np.exp(rng.uniform(-3, 3, (2, 40)))
    expected = ways - (a * np.log1p(1 / b)).sum(1) - dense @ np.log1p(b).T
    scale = np.maximum(scale, dense @ np.log1p(b).T)
    assert (np.abs(GammaPoisson(a, b).log_predictive(x) - expected) / scale).max() < 1e-12


def test_a_table_of_terms_is_no_part_of_a_value():
    bag = DirichletMultinomial(np.ones(1000))
    before = len(pickle.dumps(bag))
    bag.log_predictive(np.full((500, 1000), 3.0))
    assert len(pickle.dumps(bag)) <= before + 100
    assert pickle.loads(pickle.dumps(bag)) == bag == DirichletMultinomial(np.ones(1000))


def test_rare_large_counts_do_not_make_a_table():
    bag = DirichletMultinomial(np.ones(1000))
    x = np.zeros((3, 1000))
    x[:, 7] = 10**6
    bag.log_predictive(x)
    (ways,) = vars(bag)["_known"].values()
    assert len(ways.table) == 1000 + 1  # and a row of zeros


def test_weak_prior_follows_the_pooled_mean():
    x, group = np.array([[4, 0], [6, 0], [2, 0]]), np.array([0, 1, 1])
    statistics = GammaPoisson(1.0, 1.0).statistics(x, group, 2)
    prior = GammaPoisson.weak(statistics)
    np.testing.assert_allclose(prior.mean, [4, 1 / 3])  # a column of zeros: as if one event had been seen
    np.testing.assert_array_equal(prior.concentration, [1, 1])
    empty = GammaPoisson.weak(GammaPoisson(1.0, 1.0).statistics(x[:0], group[:0], 2))
    np.testing.assert_array_equal(empty.mean, [1, 1])


ERRORS = [
    (DirichletMultinomial(1.0, 2), sparse.csr_array([[0, 1.5]]), "feature 1: value 1.5 in row 0 is not a count"),
    (DirichletMultinomial(1.0, 2), sparse.csr_array([[0, 1], [-1, 2]]), "feature 0: value -1 in row 1 is not a count"),
    (GammaPoisson(1.0, [1.0, 2.0]), sparse.csr_array([[0, 1 + 2**-50]]), "feature 1: value 1 in row 0 is not a count"),
    (GammaPoisson(1.0, 1.0), [0, 1.5], "value 1.5 in row 1 is not a count"),
    (GammaPoisson(1.0, 1.0), [0, -1], "value -1 in row 1 is not a count"),
    (GammaPoisson(1.0, 1.0), [[0, 1], [1, np.inf]], "feature 1: value inf in row 1 is infinite"),
    (GammaPoisson(1.0, 1.0), ["many"], "takes numbers"),
    (BetaBinomial(1.0, 1.0, 3), [1, 4], "value 4 in row 1 is more than the tosses"),
    (BetaBinomial(1.0, 1.0, [3, 5]), [[3, 4], [4, 4]], "feature 0: value 4 in row 1 is more than the tosses"),
    (BetaBinomial(1.0, 1.0, 3), [0.5], "value 0.5 in row 0 is not a count"),
    (BetaBinomial(1.0, 1.0), [[1, 2], [3, 2]], "feature 0: value 3 in row 1 is more than the tosses"),
    (BetaBinomial(1.0, 1.0), [[1, NAN]], "feature 1: row 0 has heads but no number of tosses"),
    (BetaBinomial(1.0, 1.0), [[1, 2.5]], "feature 1: value 2.5 in row 0 is not a count"),
    (BetaBinomial(1.0, 1.0), [[1, 2, 3]], "expected pairs"),
    (BetaBinomial(1.0, 1.0), [1, 2], "2 axes or more"),
    (DirichletMultinomial(1.0, 2), [[1, 2], [NAN, 2]], "feature 0: row 1 is partly missing"),
    (DirichletMultinomial(1.0, 2), [[1, -2]], "feature 1: value -2 in row 0 is not a count"),
    (DirichletMultinomial(1.0, 2), [[1, 2, 3]], "expected documents of 2 words, got 3 columns"),
]


@pytest.mark.parametrize("leaf, rows, message", ERRORS)
def test_rows_that_are_refused(leaf, rows, message):
    refuses(lambda: leaf.statistics(rows), message, (ValueError, TypeError))
    refuses(lambda: leaf.log_predictive(rows), message, (ValueError, TypeError))


# -- the estimator ----------------------------------------------------------------------------------------------------


def test_tosses_that_repeat_are_worked_out_once_and_right():
    """Against SciPy, a row and a column at a time; counts too many to share a number are taken one by one."""
    rng = np.random.default_rng(3)
    a, b = np.array([[2.0, 3.5], [40.0, 1.0]]), np.array([[1.0, 9.0], [7.0, 0.5]])
    posterior = BetaBinomial(a, b, per_class=True)
    for top in (9, 200_000_000):
        tosses = rng.integers(1, top, (40, 2))
        x = np.stack([rng.binomial(tosses, 0.3), tosses], axis=-1).astype(float)
        x[3, 1, 0] = x[4, :, 0] = np.nan
        terms = stats.betabinom(x[:, None, :, 1], a, b).logpmf(np.nan_to_num(x[:, None, :, 0]))
        expected = np.where(np.isnan(x[:, None, :, 0]), 0.0, terms).sum(-1)
        np.testing.assert_allclose(posterior.log_predictive(x), expected, rtol=1e-6)


def test_threads_that_grow_one_table_get_the_answers_of_one():
    rng = np.random.default_rng(0)
    leaf = GammaPoisson(np.full(300, 2.0), 1.0)
    batches = [rng.poisson(mean, (40, 300)).astype(float) for mean in (0.5, 3.0, 8.0, 20.0)]
    expected = [leaf.update(leaf.statistics(rows[:0])).log_predictive(rows) for rows in batches]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            shared = leaf.update(leaf.statistics(batches[0][:0]))
            for found, own in zip(pool.map(shared.log_predictive, batches), expected, strict=True):
                np.testing.assert_allclose(found, own, rtol=1e-9)
