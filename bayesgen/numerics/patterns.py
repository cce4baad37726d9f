"""Patterns of missing entries: rows that have the same entries are worked on together."""

import numpy as np


def patterns(observed):
    """Group rows by which entries they have: yields (column indices, row indices) for each pattern in ``observed``."""
    if observed.all():
        yield np.arange(observed.shape[1]), np.arange(len(observed))
        return
    kinds, order, bounds = grouped_patterns(observed)
    for i, kind in enumerate(kinds):
        yield np.flatnonzero(kind), order[bounds[i] : bounds[i + 1]]


def grouped_patterns(observed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The patterns of ``observed`` (n, D) as bools (P, D), rows in their order (n,), and where each begins (P + 1,)."""
    place, count = np.zeros(len(observed), np.intp), 1
    for first in range(0, observed.shape[1], 16):  # 16 columns are a small number, which float32 has
        bits = observed[:, first : first + 16].astype(np.float32)
        place *= 1 << 16
        place += (bits @ (2.0 ** np.arange(bits.shape[1], dtype=np.float32))).astype(np.intp)
        if first == 0:
            there = np.bincount(place, minlength=1 << 16) > 0
            place = (np.cumsum(there) - 1)[place]
            count = int(there.sum())
        else:
            both, place = np.unique(place, return_inverse=True)
            count = len(both)
    order = np.argsort(place.astype(np.min_scalar_type(count)), kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=count))])
    return observed[order[bounds[:-1]]], order, bounds
