"""Parts of a row that a watch looks at, how they are read and told, and how a batch that came before is known."""

import hashlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import gammaln

from bayesgen.core.errors import Argument, InputError, InputTypeError, InputWarning, counted, quoted, warn
from bayesgen.core.registry import saveable
from bayesgen.numerics.betting import hashed
from bayesgen.tables.columns import FAMILY, code_of
from bayesgen.tables.schema import Block, Schema
from bayesgen.tables.table import Table

ALONE, ASKED = ("values", "rarity", "gaps", "labels"), ("score", "shares", "density")
KINDS = (*ALONE, *ASKED)
_MOST = 4096  # digests that are kept
_CHANCE = np.log(1e6)  # log of the number of orders from which a batch that came before is no chance


@saveable
@dataclass(frozen=True)
class Part:
    """A part of a row that is watched by itself."""

    kind: str  # one of KINDS
    of: str = ""  # column, or class of a share
    categorical: bool = False

    @property
    def name(self) -> str:
        """Return the name of the part, such as "gaps of age"."""
        return f"{self.kind} of {quoted(self.of)}" if self.of else self.kind


def place_of(label) -> float:
    """Return the place of a category in the order by a hash of its text, in which 1, 1.0 and "1" are one."""
    code = code_of(label)
    return hashed(str(int(code) if isinstance(code, float) and code.is_integer() else code))


def of_rarity(part: Part, sums: np.ndarray, before: np.ndarray, since: np.ndarray) -> str:
    """Say how the categories changed that come, by the sum of p and of 1, and counts of each before and since."""
    rarer, new = sums[0] < sums[2] / 2, int((before == 0).sum())
    text = f"the categories of {part.of!r} are {'less' if rarer else 'more'} common than before"
    found = f": {new} of {since.sum()} rows hold one that had never come, {(before > 0).sum()} of {before.sum()} before"
    return text + found * bool(new and rarer)


def of_shares(part: Part, names: list[str], before: np.ndarray, since: np.ndarray) -> str:
    """Say which of several values, the missing last of gaps, is more or less frequent, by counts before and since."""
    total, recent = before.sum(), since.sum()
    share = ((before + since) / (total + recent)).clip(1e-12, 1 - 1e-12)
    change = since / max(recent, 1) - before / max(total, 1)
    variance = share * (1 - share) * (total + recent)
    errors = change**2 * total * recent / variance  # change in standard errors, squared
    k = len(names) - 1 if part.kind == "gaps" else int(errors.argmax())
    rows = f"{since[k]} of {recent} rows, {before[k]} of {total} before"
    often, of = "more" if change[k] > 0 else "less", repr(part.of) if part.of else "class"
    if errors[k] < 2:
        what = f"the gaps of {of}" if part.kind == "gaps" else f"the categories of {of}" if part.of else "the classes"
        return f"{what} no longer come in random order"
    if part.kind == "gaps":
        return f"{of} is missing {often} often than before: in {rows}"
    new = " that is new" if not before[k] else ""
    return f"{of}{':' * bool(part.of)} {names[k]}{new} is {often} frequent than before: {rows}"


def of_numbers(part: Part, sums: np.ndarray, date: bool) -> str:
    """Say how numbers changed, by the sums of p, of abs(2p - 1) and of 1."""
    higher, wider = sums[:2] / sums[2] - 0.5
    subject = {"score": "the log score of the labels", "density": "the density of the rows"}
    subject["shares"] = f"the probability of {part.of!r}"
    what = subject.get(part.kind, repr(part.of))
    if max(abs(higher), abs(wider)) ** 2 * sums[2] < 1 / 6:  # 2 of the squared standard errors of uniform numbers
        return f"{what} no longer comes in random order"
    if abs(wider) > abs(higher) + 0.05:
        return f"{what} is {'more' if wider > 0 else 'less'} spread out than before"
    ways = ("later", "earlier") if date else ("higher", "lower")
    return f"{what} is {ways[int(higher < 0)]} than before"


def schema_of(table: Table) -> Schema:
    """Return the schema of rows that no classifier learned from: numbers, categories, and dates as numbers of days."""
    blocks = []
    for column in table.columns:
        kind = table.kind(column)
        if kind in FAMILY:
            doubt = None if table.sparse else table.doubt(column)
            family = "date" if doubt and doubt.kind == "dates" else FAMILY[kind]
            if doubt and doubt.kind == "numbers":
                text = f"column {column!r} holds numbers as text, watched as categories: give numbers, "
                warn(InputWarning(f"{text}or a column of type category", column=column, kind=doubt.kind))
        elif pd.api.types.infer_dtype(table.labels(column), skipna=True) in ("date", "datetime", "datetime64"):
            family = "date"
        else:
            text = f"column {column!r} holds {kind}, which cannot be ranked: convert it, or leave it out"
            raise InputTypeError(text, column=column, kind=str(kind))
        blocks.append(Block(column, (column,), True, family, () if family == "categorical" else None))
    return Schema(table.columns, tuple(blocks), library=table.library).as_written(table)


def numbers_of(table: Table, column: str) -> np.ndarray:
    """Return the values of a column of numbers, (n,), or of dates as days."""
    try:
        return np.asarray(table.numbers((column,)), np.float64).reshape(len(table))
    except (InputError, InputTypeError) as error:
        found = error.kind if error.value is None else repr(error.value)
        text = f"column {column!r} held numbers or dates when the watch began, and now holds {found}: convert it"
        raise InputError(text, column=column, value=error.value) from None


# -- batches that came before, known by digests ----------------------------------------------------------------------


def with_batch(batches: np.ndarray, values: np.ndarray, again: bool | None) -> np.ndarray:
    """Return the digests with that of another batch (n, parts); raise InputError where it came before.

    ``again`` True takes it all the same; None refuses it only where its order is one of a million.
    """
    digest = np.uint64(int.from_bytes(hashlib.blake2b(values.tobytes(), digest_size=8).digest(), "big"))
    if again is not True and digest in batches:
        equal = pd.Series([row.tobytes() for row in values]).value_counts().to_numpy()
        orders = gammaln(len(values) + 1) - gammaln(equal + 1).sum()  # log of n! over the factorials of equal rows
        if again is False or orders >= _CHANCE:
            problem = f"these rows ({counted(len(values), 'row')}) came before, in this order, and count already; "
            raise InputError(problem, Argument("again", True), " takes them once more")
    return np.append(batches, digest)[-_MOST:]
