"""Inverses of triangular matrices against LAPACK's."""

import numpy as np
import pytest

from bayesgen.numerics.student import triangular_inverse


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 10])
def test_many_inverses_agree_with_those_of_lapack_and_are_triangular(dim):
    lower = np.tril(np.random.default_rng(dim).normal(size=(5, 3, dim, dim))) + 3 * np.eye(dim)
    found = triangular_inverse(lower)
    np.testing.assert_allclose(found, np.linalg.inv(lower), rtol=1e-10, atol=1e-12)
    assert (np.triu(found, 1) == 0).all()


def test_of_no_matrices_there_are_no_inverses():
    assert triangular_inverse(np.empty((0, 3, 3))).shape == (0, 3, 3)
