"""Sequences as users write them, texts, lists and tuples of symbols, to and from arrays of codes."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bayesgen.core.errors import DataError, listed
from bayesgen.models.categorical import Dice

END = -1  # code behind the end of a row


class Symbols(Dice):
    """Dice that are asked for the symbols of sequences, its ``categories``."""

    separator: str | None  # text between symbols; None where each character is one
    gap: str | None  # symbol that stands for a missing one

    def _encode(self, rows: Iterable, unseen: dict | None = None) -> np.ndarray:
        """Return texts, lists or tuples as codes (n, L), NaN where missing and -1 behind the end of a row.

        None or NaN in place of a sequence is a row that is missing. A symbol that is no category is an error; where
        ``unseen`` is given it is missing, and counted there by the rows that hold it.
        """
        code: dict[Any, float] = {label: float(v) for v, label in enumerate(self.categories)}
        coded = []
        for place, row in enumerate(rows):
            if not isinstance(row, Iterable) and _nothing(row):
                coded.append(None)
                continue
            try:
                known = [(symbol, code.get(symbol)) for symbol in self._divided(row, place)]
            except TypeError:  # a symbol that has no hash
                raise DataError(f"row {place} holds lists in place of symbols", row=place) from None
            new = {symbol for symbol, v in known if v is None and not self._is_gap(symbol)}
            if new and unseen is None:
                symbol = next(symbol for symbol, _ in known if symbol in new)
                raise DataError(
                    f"row {place} holds the symbol {symbol!r}, which is none of the categories "
                    f"{listed(self.categories)}; declare it, or name it as gap= where it stands for a missing one",
                    row=place,
                    value=symbol,
                )
            for symbol in new:
                unseen[symbol] = unseen.get(symbol, 0) + 1  # pyright: ignore[reportOptionalSubscript, reportOptionalMemberAccess]
            coded.append([np.nan if v is None else v for _, v in known])
        result = np.full((len(coded), max([1, *(len(c) for c in coded if c is not None)])), np.nan)
        for row_codes, codes in zip(result, coded, strict=True):
            if codes is not None:
                row_codes[: len(codes)], row_codes[len(codes) :] = codes, END
        return result

    def _divided(self, row, place) -> list:
        if isinstance(row, str):
            symbols = (list(row) if self.separator is None else row.split(self.separator)) if row else []
        elif isinstance(row, Iterable) and not isinstance(row, Mapping | bytes):
            symbols = [s.item() if isinstance(s, np.generic) else s for s in row]
        else:
            kind = type(row).__name__
            raise DataError(f"row {place} is {row!s:.40}, a {kind}: a sequence is a text, a list or a tuple", row=place)
        if not symbols:
            raise DataError(f"row {place} is an empty sequence; give None where missing, or leave it out", row=place)
        return symbols

    def _is_gap(self, symbol) -> bool:
        return _nothing(symbol) or (self.gap is not None and symbol == self.gap)

    def _decode(self, x) -> np.ndarray:
        """Return codes (n, L) as sequences: texts where every symbol is one, else tuples; None where missing."""
        textual = all(isinstance(c, str) for c in self.categories)
        between = self.separator or ""
        result = np.empty(len(x), dtype=object)
        for i, row in enumerate(np.asarray(x)):
            symbols: list[Any] = [self.gap if v != v else self.categories[int(v)] for v in row if v != END]
            gone = all(v != v for v in row)
            text = textual and None not in symbols
            result[i] = None if gone else between.join(symbols) if text else tuple(symbols)
        return result


def _nothing(value) -> bool:
    """Return True for None, NaN and NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA is neither equal nor not
        return True
