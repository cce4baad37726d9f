"""Vectors whitened by positive definite matrices that share a part, in one factorisation of each with its vectors."""

import numpy as np

from bayesgen.numerics.student import triangular_inverse

BORDER = 1e250  # large: the diagonal of what borders a matrix, and of columns that a row lacks


def add_diagonal(matrix, diagonal):
    """Add to the diagonals of matrices, in place."""
    places = np.arange(matrix.shape[-1])
    matrix[..., places, places] += diagonal


def bordered(matrix, vectors):
    """Return matrices A, (..., D, D), with vectors (..., R, D) beside them: upper halves, (..., D + R, D + R).

    The factor of [[A, v], [v', t I]] holds U'⁻¹ v beside U, the factor of A, for any t that is large enough.
    """
    *batch, count, dim = vectors.shape
    result = np.zeros((*batch, dim + count, dim + count))
    result[..., :dim, :dim] = matrix
    result[..., :dim, dim:] = vectors.mT
    border = range(dim, dim + count)
    result[..., border, border] = BORDER
    return result


class Bordered:
    """Positive definite matrices A = U'U bordered by vectors v, so that one factorisation whitens them.

    See `bordered`. All A have the part ``fixed`` (B, G, D, D) in common; ``vectors`` (B, G, R, D) are R for each
    matrix, any numbers in missing entries. More than D vectors, none of them with gaps, are whitened by themselves.

    An entry that is not ``seen`` (B, D) gets a diagonal entry so large that its row of U vanishes beside it, and its
    entries of U'⁻¹ v are 0 to all digits: the others are those of the seen block.
    """

    def __init__(self, fixed, vectors, seen):
        *_, count, self.dim = vectors.shape
        beside = seen is None and count > self.dim
        self.vectors, self.seen = vectors if beside else None, True if seen is None else seen[:, None]
        self.fixed = fixed if beside else bordered(fixed, vectors)
        if seen is not None:
            add_diagonal(self.fixed[..., : self.dim, : self.dim], BORDER * ~self.seen)
        self.varying = np.zeros_like(self.fixed[:, :1])

    def whiten(self, varying):
        """Return log determinants of A = ``varying`` (B, 1, D, D) + fixed, (B, G), and U'⁻¹ v, (B, G, R, D)."""
        dim = self.dim
        np.copyto(self.varying[..., :dim, :dim], varying)
        root = np.linalg.cholesky(self.varying + self.fixed, upper=True)
        log_det = 2 * np.log(np.diagonal(root[..., :dim, :dim], axis1=-2, axis2=-1)).sum(-1, where=self.seen)
        if self.vectors is None:
            return log_det, root[..., :dim, dim:].mT
        return log_det, self.vectors @ triangular_inverse(root.mT).mT
