"""Sums of rows by group, dense or sparse, and weight, mean and scatter: the parts of every model's statistics.

Weight, mean and scatter take one pass. Rows are centred on the running mean of their group: cancellation in the sums of
squares is then limited to the rows of one piece, whatever the offset. The first entry of a group is its first mean, so
a constant column is exactly 0 throughout.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from bayesgen.numerics.checks import check_weight
from bayesgen.numerics.pieces import ROWS, pieces, product_rows, scratch, taken

_FEW = 4  # groups up to which a dense product is faster
_AT_ONCE = 1 << 15  # rows times groups times columns up to which there is one product
_SPARSE = 1 << 21  # entries of sparse rows, or of their membership, worked on at a time


@dataclass(frozen=True)
class Grouping:
    """Group (class) and weight of each row, checked once, then used by every leaf."""

    codes: np.ndarray  # (n,): group of each row, 0..count - 1
    count: int  # number of groups
    weight: np.ndarray | None  # (n,), or None: weights >= 0; None where every row counts once
    lead: tuple[int, ...]  # leading shape of the sums: (count,), or () where rows have no groups

    @classmethod
    def of(cls, length: int, group=None, groups: int | None = None, weight=None) -> "Grouping":
        """Return the grouping of ``length`` rows, checked; without ``group`` all rows are of one group."""
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
        """Return the grouping of some rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Grouping(self.codes[rows], self.count, weight, self.lead)

    def sizes(self) -> np.ndarray:
        """Return the sum of weights (without weights the number of rows) of each group, (count,)."""
        return np.bincount(self.codes, self.weight, self.count).astype(float)

    def sum(self, values) -> np.ndarray:
        """Return the weighted sum of rows (n, D), dense or CSR, by group, (count, D); for bools the number of True."""
        if sparse.issparse(values):
            return _sum_stored(values, self)
        bits = values.dtype == bool and self.weight is None
        if bits and self.count <= 8 and not values.flags.c_contiguous:  # else it is faster to add whole rows
            return _count_bits(values, self)
        kind = np.uint16 if bits and len(values) < 1 << 16 else float  # too few to overflow
        return self.membership(kind) @ values.astype(kind, copy=False)

    def total(self, values) -> float:
        """Return the weighted sum of values (n, ...) over all rows."""
        return float((values if self.weight is None else values.T @ self.weight).sum())

    def membership(self, dtype: DTypeLike = float) -> sparse.csc_array | np.ndarray:
        """Return the matrix (count, n) of weights at each row's group, whose product with rows is their sum by group.

        It is sparse unless a dense product is faster: for a few groups, by the BLAS, and for few rows. In a dense
        product an entry that is not finite reaches the sums of all groups.
        """
        few = self.count <= (_FEW if dtype is float else 1)
        if few or self.count * len(self.codes) <= 4096:
            member = (self.codes == np.arange(self.count)[:, None]).astype(dtype)
            return member if self.weight is None else member * self.weight
        data = np.ones(len(self.codes), dtype) if self.weight is None else self.weight
        places = np.arange(len(self.codes) + 1)
        return sparse.csc_array((data, self.codes, places), shape=(self.count, len(self.codes)))


def by_label(labels, values) -> np.ndarray:
    """Return the sums of values (n,) over the rows of each label (n,), in the order of the labels."""
    return np.bincount(np.unique(labels, return_inverse=True)[1], values)


def finite(x) -> bool:
    """Return True only if all is finite, in one read without a copy: a sum keeps NaN and infinity, or overflows."""
    values = x.data if sparse.issparse(x) else x
    with np.errstate(over="ignore", invalid="ignore"):
        return values.dtype.kind != "f" or bool(np.isfinite(values.sum()))


def _count_bits(flags: np.ndarray, rows: Grouping) -> np.ndarray:
    """Count the rows of each group that are true in each column of ``flags`` (n, columns), packed eight to a byte."""
    packed = np.packbits(np.ascontiguousarray(flags.T), axis=1)
    members = np.packbits(rows.codes == np.arange(rows.count)[:, None], axis=1)
    return np.stack([np.bitwise_count(packed & bits).sum(1, dtype=np.intp) for bits in members])


def with_data(x, data) -> Any:
    """Return sparse rows with the places of the entries of ``x`` and other values."""
    return sparse.csr_array((data, x.indices, x.indptr), shape=x.shape)


def _sum_stored(x: Any, rows: Grouping) -> np.ndarray:
    """Return the sum of CSR rows (n, columns) by group, dense (groups, columns), in one pass over the stored entries.

    Each entry adds to its own cell: a product with the members of many groups would touch much memory at every entry.
    With one group it takes twice the time of a product, 3 of the 27 ms of a fit.
    """
    total, step = np.zeros((rows.count, x.shape[1])), max(1, int(_SPARSE * x.shape[0] / max(x.nnz, 1)))
    for start in range(0, x.shape[0], step):
        stop = min(start + step, x.shape[0])
        stored, length = slice(x.indptr[start], x.indptr[stop]), np.diff(x.indptr[start : stop + 1])
        cell = np.repeat(rows.codes[start:stop] * x.shape[1], length)
        cell += x.indices[stored]
        data = x.data[stored] if rows.weight is None else x.data[stored] * np.repeat(rows.weight[start:stop], length)
        total += np.bincount(cell, data, total.size).reshape(total.shape)
    return total


@np.errstate(invalid="ignore", over="ignore", under="ignore")
def mean_and_scatter(x, rows: Grouping, *, vector: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weight, mean and scatter of rows (n, D) by group, (groups, D) each.

    NaN is a missing entry. With ``vector`` it is a missing row, the weight is (groups,), and the scatter a matrix
    (groups, D, D) of all columns with each other. The mean is 0 where nothing is observed; the sum of squares about it
    is not finite where squares leave float64.
    """
    count, dim = rows.count, x.shape[1]
    if len(x) * count * max(dim, 8) <= _AT_ONCE and (found := _at_once(x, rows, vector)) is not None:
        return found
    n = np.zeros(count if vector else (count, dim))
    mean = np.zeros((count, dim))
    scatter = np.zeros((count, dim, dim) if vector else (count, dim))
    add = _add_vectors if vector else _add_scalars
    size = min(ROWS, count * product_rows(dim * dim)) if vector else ROWS
    for piece in pieces(len(x), dim, rows=size):
        entries, grouping = x[piece], rows[piece]
        if grouping.weight is not None and not grouping.weight.all():  # rows of weight 0 are not read
            entries, grouping = entries[grouping.weight > 0], grouping[grouping.weight > 0]
        add(n, mean, scatter, entries, grouping)
    return n, mean, scatter


def _at_once(x, rows: Grouping, vector: bool):
    """Return moments of few rows (n, columns) in one product; None if a group is empty or an entry missing."""
    member = rows.membership()
    n = member.sum(1)
    if not n.all():
        return None
    mean = x.take(member.argmax(1), 0).astype(float, copy=False)  # centred on a row of its group a constant column is 0
    z = x - mean.take(rows.codes, 0)
    total = member @ z
    step = total / n[:, None]
    mean += step
    if vector:
        scatter = (member[:, None] * z.T) @ z - total[:, :, None] * step[:, None]
    else:
        n = n[:, None].repeat(x.shape[1], 1)
        scatter = np.maximum(member @ (z * z) - total * step, 0.0)
    return (n, mean, scatter) if np.isfinite(scatter).all() else None


def _add_scalars(n, mean, scatter, x, rows: Grouping):
    """Add rows to the moments (groups, columns), in place."""
    member = rows.membership()
    size = member @ np.ones(len(x))
    new = np.flatnonzero((size > 0) & (n == 0).any(1))
    if len(new):  # the entries of the first row of a group are the first means
        first = np.empty(len(n), np.intp)
        first[rows.codes[::-1]] = np.arange(len(x))[::-1]
        entries = x[first[new]].astype(float)
        for k in np.flatnonzero(np.isnan(entries).any(1)):
            members = x[rows.codes == new[k]]
            entries[k] = np.take_along_axis(members, (~np.isnan(members)).argmax(0)[None], 0)[0]
        mean[new] = np.where((n[new] == 0) & ~np.isnan(entries), entries, mean[new])
    if x.strides[0] >= x.strides[1]:
        z = np.take(mean, rows.codes, 0, out=scratch("centred", x.shape), mode="clip")
    elif isinstance(member, np.ndarray) and rows.weight is None:  # columns are runs in memory, and stay so
        z = np.matmul(mean.T, member, out=scratch("centred", x.shape[::-1])).T
    else:
        z = np.take(mean.T, rows.codes, 1, out=scratch("centred", x.shape[::-1]), mode="clip").T
    np.subtract(x, z, out=z)
    total, size = member @ z, size[:, None]
    if np.isnan(total).any():
        missing = np.isnan(x)
        z[missing] = 0.0
        total, size = member @ z, member @ (~missing).astype(float)
    n += size
    step = np.divide(total, n, out=np.zeros_like(total), where=n > 0)
    mean += step
    z *= z
    scatter += np.maximum(member @ z - total * step, 0.0)


def _add_vectors(n, mean, scatter, x, rows: Grouping):
    """Add rows to the moments (groups, D, D), in place; a row with a missing entry adds nothing."""
    if not finite(x):
        seen = ~np.isnan(x).any(1)
        x, rows = x[seen], rows[seen]
    order = np.argsort(rows.codes.astype(np.min_scalar_type(rows.count)), kind="stable")
    bounds = np.searchsorted(rows.codes, np.arange(rows.count + 1), sorter=order)
    sorted_rows, weight = x.take(order, 0).astype(float, copy=False), taken(rows.weight, order)
    for k in np.flatnonzero(np.diff(bounds)):
        segment = slice(bounds[k], bounds[k + 1])
        z, w = sorted_rows[segment], taken(weight, segment)
        if n[k] == 0:
            mean[k] = z[0]
        z -= mean[k]
        total = (np.ones(len(z)) if w is None else w) @ z  # for short rows eight times faster than a sum
        n[k] += len(z) if w is None else w.sum()
        if w is not None:
            z *= np.sqrt(w)[:, None]
        mean[k] += total / n[k]
        scatter[k] += z.T @ z - total[:, None] * (total / n[k])
