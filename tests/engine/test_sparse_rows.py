"""Sparse rows are dense rows, to every leaf."""

import numpy as np
import pytest
from engine.test_kernels import NAN
from refusals import refuses
from scipy import sparse

from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    NaiveBayes,
    NormalInverseGamma,
)

SPARSE = {
    "bernoulli": BetaBernoulli(np.full(40, 0.5), 3.0),
    "poisson": GammaPoisson(np.linspace(0.1, 2, 40), 0.5),
    "multinomial": DirichletMultinomial(np.linspace(0.1, 2, 40)),
}


def sparse_rows(kind, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.poisson(0.15, (3000, 40)) * (1.0 if kind == "bernoulli" else rng.integers(1, 7, (3000, 40)))
    x[5] *= 1 if kind == "bernoulli" else 1000
    return (np.minimum(x, 1) if kind == "bernoulli" else x).astype(float)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.coo_array])
@pytest.mark.parametrize("count", [3, 6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_is_dense(kind, missing, weighted, count, make):
    leaf, x, rng = SPARSE[kind], sparse_rows(kind), np.random.default_rng(4)
    if missing:
        x[rng.random(x.shape) < 0.01] = NAN
    if missing and kind == "multinomial":
        x[np.isnan(x).any(1)] = NAN
    group, weight = rng.integers(count, size=len(x)), rng.integers(0, 3, len(x)) * 1.0 if weighted else None
    got, plain = (leaf.statistics(rows, group, count, weight) for rows in (make(x), x))
    np.testing.assert_allclose(got.sums, plain.sums, rtol=1e-13)
    np.testing.assert_allclose(got.base, plain.base, rtol=1e-12)
    after = leaf.update(plain)
    np.testing.assert_allclose(after.log_predictive(make(x)), after.log_predictive(x), rtol=1e-10, atol=1e-10)
    params = after.sample_parameters(rng, (4,))
    dense = after.log_likelihood_rows(params, after.check(x))
    np.testing.assert_allclose(after.log_likelihood_rows(params, after.check(make(x))), dense, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_rows_that_are_wrong_are_placed(kind):
    x = sparse_rows(kind)
    x[7, 3] = 0.5
    x = sparse.csr_array(x)
    refuses(lambda: SPARSE[kind].statistics(x), r"feature 3: value 0.5 in row 7")
    refuses(lambda: SPARSE[kind].log_predictive(x), r"feature 3: value 0.5 in row 7")


def test_an_entry_stored_in_parts():
    x = sparse.csr_array((np.ones(3), [1, 1, 0], [0, 2, 3]), shape=(2, 40))
    assert not x.has_canonical_format
    got = SPARSE["poisson"].statistics(x)
    np.testing.assert_array_equal(got.sums, SPARSE["poisson"].statistics(x.toarray()).sums)
    assert x.nnz == 3


@pytest.mark.parametrize("leaf", [NormalInverseGamma(np.zeros(3), 1, 1, 1), DirichletCategorical(np.ones((3, 2)), 2)])
def test_leaves_that_take_no_sparse_rows_say_so(leaf):
    x = sparse.csr_array(np.eye(3))
    for use in (leaf.statistics, leaf.check, leaf.log_predictive):
        with pytest.raises(TypeError, match=rf"{type(leaf).__name__} takes dense rows.*toarray"):
            use(x)


def test_sparse_rows_in_a_classifier():
    x, t = sparse_rows("bernoulli"), np.arange(3000) % 2
    model = NaiveBayes(DirichletCategorical(1.0, 2), {"words": SPARSE["bernoulli"]})
    dense = model.update(model.statistics({"words": x}, t))
    thin = model.update(model.statistics({"words": sparse.csr_array(x)}, t))
    assert dense == thin
    got = thin.log_predictive({"words": sparse.csr_array(x)})
    np.testing.assert_allclose(got, dense.log_predictive({"words": x}), rtol=1e-12)
