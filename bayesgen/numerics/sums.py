"""Sums of rows by group, dense or sparse: what every model's statistics are made of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from bayesgen.numerics.checks import check_weight

_FEW = 4  # groups


@dataclass(frozen=True)
class Grouping:
    """Which group (class) each row belongs to, and what it weighs: checked once, then used by every leaf.

    Attributes
    ----------
    codes : int array, shape (n,)
        Group of each row, 0..count - 1.
    count : int
        Number of groups.
    weight : array, shape (n,), or None
        Weights >= 0; None where every row counts once.
    lead : tuple of int
        Shape in front of the sums: (count,), or () where the rows are of no groups.
    bounds : int array, shape (count + 1,), or None
        Where the rows of each group begin, if those of a group stand side by side.
    """

    codes: np.ndarray
    count: int
    weight: np.ndarray | None
    lead: tuple[int, ...]
    bounds: np.ndarray | None = None

    @classmethod
    def of(cls, length: int, group=None, groups: int | None = None, weight=None) -> "Grouping":
        """Check codes and weights of ``length`` rows; without ``group`` all rows are of one group."""
        weight = check_weight(weight, length)
        if group is None:
            return cls(np.zeros(length, np.intp), 1, weight, ())
        codes = np.asarray(group)
        if groups is None:
            raise ValueError("give groups=, the number of groups, with group=")
        if codes.shape != (length,) or (
            length and (codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() >= groups)
        ):
            raise ValueError(f"group must hold one whole number from 0 to {groups - 1} for each of the {length} rows")
        return cls(codes.astype(np.intp, copy=False), groups, weight, (groups,))

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, rows) -> "Grouping":
        """The same of some rows."""
        weight, bounds = None if self.weight is None else self.weight[rows], None
        if self.bounds is not None and isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            bounds = np.minimum(np.maximum(self.bounds - start, 0), stop - start)
        return Grouping(self.codes[rows], self.count, weight, self.lead, bounds)

    def side_by_side(self) -> "tuple[np.ndarray, Grouping]":
        """The order that brings the rows of each group side by side, (n,), and the grouping of rows in that order."""
        order = np.argsort(self.codes.astype(np.min_scalar_type(self.count)), kind="stable")
        bounds = np.searchsorted(self.codes, np.arange(self.count + 1), sorter=order)
        codes = np.repeat(np.arange(self.count), np.diff(bounds))
        weight = None if self.weight is None else self.weight[order]
        return order, Grouping(codes, self.count, weight, self.lead, bounds)

    def sizes(self) -> np.ndarray:
        """Sum of weights (without: number of rows) of each group, (count,)."""
        if self.bounds is not None and self.weight is None:
            return np.diff(self.bounds).astype(float)
        return np.bincount(self.codes, self.weight, self.count).astype(float)

    def sum(self, values) -> np.ndarray:
        """Weighted sum of rows (n, D) by group, (count, D); of bools how many are true."""
        bits, total = values.dtype == bool and self.weight is None, np.zeros((self.count, values.shape[1]))
        if self.bounds is None and bits and self.count <= 8:
            return _count_bits(values, self)
        if self.bounds is None:
            kind = np.uint16 if bits and len(values) < 1 << 16 else float  # too few to overflow
            return self.membership(kind) @ values.astype(kind, copy=False)
        for k in np.flatnonzero(np.diff(self.bounds)):
            run = slice(self.bounds[k], self.bounds[k + 1])
            own, w = values[run], None if self.weight is None else self.weight[run]
            total[k] = own.sum(0, np.intp if bits else float) if w is None else w @ own
        return total

    def membership(self, dtype: DTypeLike = float) -> sparse.csc_array | np.ndarray:
        """Matrix (count, n) of weights at each row's group; times rows it is their sum by group, in one pass.

        It is sparse, but where a dense one is multiplied faster: of a few groups by the BLAS, and of few rows; what is
        not finite then reaches the sums of all groups.
        """
        few = self.count <= (_FEW if dtype is float else 1)
        if few or self.count * len(self.codes) <= 4096:
            member = (self.codes == np.arange(self.count)[:, None]).astype(dtype)
            return member if self.weight is None else member * self.weight
        data = np.ones(len(self.codes), dtype) if self.weight is None else self.weight
        places = np.arange(len(self.codes) + 1)
        return sparse.csc_array((data, self.codes, places), shape=(self.count, len(self.codes)))


def finite(x) -> bool:
    """Whether all is finite, in one read without a copy: a sum keeps any NaN or infinity. May err towards False."""
    with np.errstate(over="ignore", invalid="ignore"):
        return x.dtype.kind != "f" or bool(np.isfinite(x.sum()))


def _count_bits(flags: np.ndarray, rows: Grouping) -> np.ndarray:
    """How many rows of each group are true in each column of ``flags`` (n, columns): eight rows a byte, counted."""
    packed = np.packbits(np.ascontiguousarray(flags.T), axis=1)
    members = np.packbits(rows.codes == np.arange(rows.count)[:, None], axis=1)
    return np.stack([np.bitwise_count(packed & own).sum(1, dtype=np.intp) for own in members])


def with_data(x, data) -> Any:
    """Sparse rows with the entries of ``x`` and other values."""
    return sparse.csr_array((data, x.indices, x.indptr), shape=x.shape)


def sparse_sum(x: Any, rows: Grouping, values=None, cells: int = 1 << 21) -> np.ndarray:
    """Sum CSR rows (n, columns) by group: a dense (groups, columns), in one pass over what is stored.

    ``values`` replace the stored ones. A few groups are a product with their members; many would touch too much memory
    at every entry, so there each entry adds to its own cell.
    """
    x = x if values is None else with_data(x, values)
    total, step = np.zeros((rows.count, x.shape[1])), max(1, cells // rows.count)
    if rows.count > 4:
        step = max(1, int(cells * x.shape[0] / max(x.nnz, 1)))
    for start in range(0, x.shape[0], step):
        piece = slice(start, min(start + step, x.shape[0]))
        own = rows[piece]
        w = np.ones(len(own)) if own.weight is None else own.weight
        if rows.count > 4:
            stored, length = slice(x.indptr[start], x.indptr[piece.stop]), np.diff(x.indptr[start : piece.stop + 1])
            cell = np.repeat(own.codes * x.shape[1], length)
            cell += x.indices[stored]
            data = x.data[stored] if own.weight is None else x.data[stored] * np.repeat(w, length)
            total += np.bincount(cell, data, total.size).reshape(total.shape)
        else:
            member = np.zeros((len(w), rows.count))
            member[np.arange(len(w)), own.codes] = w
            total += ((x if len(w) == x.shape[0] else x[piece]).T @ member).T
    return total
