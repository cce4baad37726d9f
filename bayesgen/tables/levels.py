"""Categories of whole numbers that lie close together: looked up in a table instead of hashed."""

import functools

import numpy as np

from bayesgen.numerics.pieces import pieces


def _over_rows(function, values):
    """Reduce (n, D) over rows; of short ones that stand one behind the other 64 side by side, which is faster."""
    if not values.flags.c_contiguous:
        return function.reduce(values, 0)
    whole = len(values) // 64 * 64
    wide = values[:whole].reshape(-1, 64 * values.shape[1])
    first = [function.reduce(wide, 0).reshape(64, -1)] if whole else []
    return function.reduce(np.concatenate([*first, values[whole:]]), 0)


class Levels:
    """Values of an array (n, D) of whole numbers, looked up in a table instead of hashed: a few passes for all columns.

    A cell stands for each number between the least and the largest of a column; columns have their cells in a row.
    """

    WIDEST = 1 << 12  # between the least and the largest number of a column

    def __init__(self, values):
        self.values, self.low = values, _over_rows(np.minimum, values)
        high = _over_rows(np.maximum, values).astype(object)  # their distance may be more than 64 bits hold
        self.width = np.minimum(high - self.low.astype(object) + 1, self.WIDEST + 1).astype(np.intp)
        self.first = np.cumsum(self.width) - self.width

    def _cells(self, places):
        """Yield the rows of a piece, and the cells of their values."""
        wide = np.uint64 if self.values.dtype.kind == "u" and self.values.dtype.itemsize == 8 else np.intp
        shift = (self.first.astype(wide) - self.low.astype(wide))[places]
        every = len(places) == self.values.shape[1]
        for piece in pieces(len(self.values), len(places), 1 << 16):
            part = self.values[piece] if every else self.values[piece, places]
            yield piece, (part + shift).view(np.intp)  # of 64 bits without a sign the sum wraps around to the cell

    @functools.cached_property
    def present(self) -> np.ndarray:
        """Which cells hold a value; once every cell does, no further row is looked at."""
        present = np.zeros(int(self.width.sum()), bool)
        for _, cells in self._cells(np.arange(len(self.low))):
            present |= np.bincount(cells.ravel("K"), minlength=len(present)) > 0
            if present.all():
                break
        return present

    def categories(self, place: int) -> tuple:
        """Distinct values of a column, in order."""
        own = self.present[self.first[place] : self.first[place] + self.width[place]]
        low = int(self.low[place])  # one of Python, for the sum may lie beyond 2^63
        return tuple(low + cell for cell in np.flatnonzero(own).tolist())

    def _within(self, places, top: int) -> bool:
        """Whether all values of some columns lie in 0, ..., top - 1."""
        return bool((self.low[places] >= 0).all() and (self.low[places] + self.width[places] <= top).all())

    def codes(self, places, categories) -> np.ndarray | None:
        """Code of each value, (n, columns), in few bytes; None where some value is no category."""
        if categories == tuple(range(len(categories))) and self._within(places, len(categories)):
            return self.values if len(places) == self.values.shape[1] else self.values[:, places]
        table = np.full(int(self.width.sum()), len(categories), np.min_scalar_type(len(categories)))
        for place in places:
            for code, label in enumerate(categories):
                cell = label - int(self.low[place]) if isinstance(label, int) else -1
                if 0 <= cell < self.width[place]:
                    table[self.first[place] + cell] = code
        result = np.empty((len(self.values), len(places)), table.dtype)
        for piece, cells in self._cells(places):
            result[piece] = table[cells]
        return None if result.max(initial=0) == len(categories) else result
