"""Schemas: the way from a table to named blocks of numbers and back.

A block is a set of columns of one family, handed to one leaf as an array (n, columns), or (n,) for a single column.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from bayesgen.core.errors import InputError, InputWarning, listed, warn
from bayesgen.core.registry import saveable
from bayesgen.models.categorical import label_array
from bayesgen.models.column_families import FAMILIES, sparse_families
from bayesgen.models.leaf import Leaf
from bayesgen.numerics.pieces import count_rows
from bayesgen.tables.dates import durations, moments
from bayesgen.tables.description import Columns
from bayesgen.tables.findings import of_alike, of_doubt, of_unseen, tell
from bayesgen.tables.reading import Reading
from bayesgen.tables.table import Table
from bayesgen.tables.units import DURATION

DROP = "drop"  # in place of a family: the column is left out
_RESERVED = "classes"


@saveable
@dataclass(frozen=True)
class Block:
    """Columns that share a leaf.

    Attributes
    ----------
    name : str
        The leaf's name in the model.
    columns : tuple of str
        Its columns, in order.
    single : bool
        True if the leaf takes (n,) rather than (n, columns).
    leaf : Leaf or str
        The leaf the user gave, or the family to make one of.
    categories : tuple or None
        Labels in the order of their codes, where the leaf is categorical.
    """

    name: str
    columns: tuple[str, ...]
    single: bool
    leaf: Leaf | str
    categories: tuple | None = None

    @property
    def textual(self) -> bool:
        """True if the categories are text."""
        return self.categories is not None and all(isinstance(label, str) for label in self.categories)

    @property
    def values(self) -> tuple[str, ...]:
        """Its columns without those that tell the group of a row."""
        return _values(self.columns, self.leaf)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column in a file: "O" text, "f" numbers, "b" what may be bools too."""
        if self.categories is not None:
            return dict.fromkeys(self.columns, "O" if self.textual else "b")
        if isinstance(self.leaf, Leaf):
            return dict(zip(self.columns, self.leaf.column_kinds(len(self.columns)), strict=True))
        return dict.fromkeys(self.columns, "b" if self.leaf == "bernoulli" else "f")

    def read(self, table: Table, unseen: dict | None) -> Any:
        """Return its rows as the leaf takes them, NaN where missing; ``unseen`` is as in `Leaf.read_columns`."""
        if self.categories is not None:
            rows: Any = table.codes(self.columns, self.categories, unseen)
        elif isinstance(self.leaf, Leaf):
            rows = self.leaf.read_columns(table, self.columns, unseen)
        else:
            rows = table.numbers(self.columns)
        if self.single:  # a column of its own is as long as the class codes: dense from a sparse matrix too
            rows = rows.toarray()[:, 0] if sparse.issparse(rows) else rows[:, 0]
        return rows

    def write(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns that its rows stand for, by name: the inverse of `read`."""
        if self.categories is None and isinstance(self.leaf, Leaf):
            return dict(zip(self.columns, self.leaf.write_columns(rows), strict=True))
        columns = rows.reshape(len(rows), -1).T
        if self.categories is not None:
            columns = label_array(self.categories)[columns.astype(np.intp)]
        return dict(zip(self.columns, columns, strict=True))


@saveable
@dataclass(frozen=True)
class Schema:
    """Order, blocks and types of the columns, learned at fit.

    Attributes
    ----------
    columns : tuple of str
        Their order.
    blocks : tuple of Block
        The blocks they form.
    bools : tuple of str
        Columns that held True and False, not 1 and 0.
    library : str
        Library of the DataFrame, "pandas", "polars" or "pyarrow", in which rows are given back.
    reading : Reading
        How the table of the fit was written, by which later ones are read.
    whole, unsigned : tuple of str
        Columns of a table in memory that held whole numbers alone, and none below 0.
    target : str
        Name of the column of the classes; "" where it had none.
    """

    columns: tuple[str, ...]
    blocks: tuple[Block, ...]
    bools: tuple[str, ...] = ()
    library: str = "pandas"
    reading: Reading = Reading()
    whole: tuple[str, ...] = field(default=(), compare=False)
    unsigned: tuple[str, ...] = field(default=(), compare=False)
    target: str = field(default="", compare=False)

    @classmethod
    def learn(cls, table: Columns, features) -> "Schema":
        """Divide the columns of a table, or of a survey, into blocks.

        ``features`` is "auto", a family's name, or a mapping from column (or tuple of columns: one block) to a leaf or
        a family's name; columns that it does not name are "auto", and "drop" leaves columns out. "multinomial" is one
        bag of words: all columns, or the columns of a tuple. Where levels of a column are still to be looked up, the
        categories of its block are None.
        """
        chosen: dict[tuple[str, ...], Any] = {}
        if isinstance(features, Mapping):
            for key, leaf in features.items():
                chosen[_column_names(key, table)] = leaf
        elif not isinstance(features, str) or (features != "auto" and features not in FAMILIES):
            got = repr(features) if isinstance(features, str | int | float | None) else f"a {type(features).__name__}"
            known = f"'auto', one of {list(FAMILIES)}, or a mapping from column to leaf"
            raise ValueError(f"features must be {known}; got {got}")
        if table.sparse:
            _check_sparse(chosen, features)
        one = table.common(features) if isinstance(features, str) else None
        if one is not None and one != "categorical":  # one leaf for all, however many
            block = Block(one, table.columns, False, one)
            bools = table.bools(table.columns) if one == "bernoulli" else ()
            return cls(table.columns, (block,), bools, table.library).as_written(table)
        if isinstance(features, str) and features == "multinomial":  # one bag of all words
            chosen[table.columns] = features
        mentioned = [column for key, leaf in chosen.items() for column in _values(key, leaf)]
        taken = {c for key in chosen for c in key}  # a column of groups may serve several leaves
        if len(set(mentioned)) < len(mentioned):
            twice = next(c for c in mentioned if mentioned.count(c) > 1)
            raise ValueError(f"features names the column {twice!r} twice; name it once")
        for column in table.columns:
            if column not in taken:
                tell(of_doubt(column, table.doubt(column)))
                family = features if isinstance(features, str) and features in FAMILIES else table.family(column)
                chosen[(column,)] = family
        blocks = tuple(_blocks(chosen, table))
        if not blocks:
            raise ValueError("features drops every column: nothing is left to learn from")
        bits = [c for b in blocks if b.categories is None for c in b.values if b.kinds[c] == "b"]
        return cls(table.columns, blocks, table.bools(bits), table.library).as_written(table)

    def as_written(self, table: Columns) -> "Schema":
        """Return the schema with the account of how a table was written, and of the dates in it."""
        dated = any(block.leaf == "date" for block in self.blocks)  # a bag of words has no list of its columns
        dates = [column for column, block in self.block_of.items() if block.leaf == "date"] if dated else []
        spans = tuple([column for column in self.block_of if column in table.durations]) if table.durations else ()
        if isinstance(table, Table) and not table.sparse:
            numeric = [c for c, b in self.block_of.items() if b.categories is None and c not in (*spans, *dates)]
            whole, unsigned = table.held(tuple(numeric))
            self = replace(self, whole=whole, unsigned=unsigned)
        if not dates and not spans and table.reading == self.reading:
            return self
        if changed := [column for column in self.block_of if column in table.changed]:
            text = f"the columns {listed(changed)} hold values that their file had not: later files are read as they "
            warn(InputWarning(f"{text}stand, so change them likewise", column=changed[0], value=changed))
        known = table.reading.of_columns(self.block_of).without(changed)
        forms = {column: table.date_form(column) for column in dict.fromkeys([*known.dates, *dates])}
        days = tuple(column for column, form in forms.items() if form is None)
        found = {column: known.dates.get(column, "") if form is None else form for column, form in forms.items()}
        units = {**known.units, **dict.fromkeys(spans, DURATION)}
        return replace(self, reading=replace(known, dates=found, days=days, spans=spans, units=units))

    def of_target(self, y) -> "Schema":
        """Return the schema with the name of the classes: that of a Series, or the name itself."""
        name = y if isinstance(y, str) else getattr(y, "name", None)
        return replace(self, target=name) if isinstance(name, str) else self

    def of_more(self) -> "Schema":
        """Return the schema of more rows than it was learned from, of whose numbers less is known."""
        return replace(self, whole=(), unsigned=())

    @property
    def dates(self) -> tuple[str, ...]:
        """Columns that are days since 1970-01-01: read from dates, shown and given back as dates."""
        return tuple(self.reading.dates)

    @functools.cached_property
    def block_of(self) -> dict[str, Block]:
        """The block of each column that is used, block by block."""
        return {column: block for block in self.blocks for column in block.columns}

    @functools.cached_property
    def numeric(self) -> bool:
        """True if all columns form one block of numbers."""
        first = self.blocks[0]
        return first.categories is None and first.columns == self.columns

    def used(self) -> "Schema":
        """Return the schema without the columns that are left out, which are not read."""
        return replace(self, columns=tuple(column for column in self.columns if column in self.block_of))

    def read(self, table: Table, unseen: str = "error") -> dict[str, np.ndarray]:
        """Return one array a block, NaN where missing; an unseen category is an error, or missing with a warning."""
        if self.reading.percent is not None:
            self.reading.check_percent(table.reading, (c for c in table.columns if c not in table.changed))
        table = table.renamed(self.columns, self.reading)
        self._check_durations(table)
        new: dict[str, dict] | None = {} if unseen == "missing" else None
        result = {block.name: block.read(table, new) for block in self.blocks}
        if new:
            tell([of_unseen(new)])
        return result

    def _check_durations(self, table: Table) -> None:
        """Raise where a table has durations (of a file: numbers of days) and the fit had none, or the other way."""
        read = {column for column in self.reading.fractions if table.reading.in_days(column)}
        for column in sorted(table.durations.union(self.reading.spans, read)):
            has = column in table.durations or table.reading.in_days(column)
            if column not in self.block_of or has == self.reading.in_days(column):
                continue
            if not has and (table.kind(column) not in ("b", "f") or np.isnan(table.numbers((column,))).all()):
                continue  # refused as no number, or a gap
            text, cure = "numbers, where the fit had durations", f"pandas.to_timedelta(X[{column!r}], unit='D')"
            if has:
                text, cure = "durations, where the fit had none", f"X[{column!r}] / pandas.Timedelta(days=1)"
            raise InputError(f"column {column!r} holds {text}; convert them, such as by {cure}", column=column)

    def write(self, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return columns by name from one array a block, the inverse of `read`; what is left out is missing."""
        result = {column: np.full(count_rows(rows), np.nan) for column in self.columns}
        for block in self.blocks:
            for column, cells in block.write(rows[block.name]).items():
                dated = moments(cells) if column in self.dates else cells
                dated = durations(cells) if column in self.reading.spans else dated
                result[column] = cells.astype(bool) if column in self.bools else dated
        return result

    def number(self, text: str, column: str, beside: Iterable[str] = ()) -> float:
        """Return the number that a text means in a column of numbers, NaN for a gap, as `Reading.number` reads it."""
        limits = column in self.reading.limited(self.used().columns)
        return self.reading.number(text, column, beside, column in self.whole, limits)

    def texts_of(self, column: str) -> dict[str, Any]:
        """Return what is known of a column of numbers by which its texts are read, for programs without Python."""
        reading, fraction = self.reading, self.reading.fractions.get(column, False if column in self.whole else None)
        found = {"fraction": fraction} if fraction is not None else {}
        if unit := "%" if column in (reading.percent or ()) else reading.units.get(column, ""):
            found |= {"unit": unit, "bare": column in reading.bare}
        return found | ({"programs": True} if column in reading.plain else {})

    def nothing(self) -> dict[str, np.ndarray]:
        """Return one row with every entry missing."""
        return {b.name: np.full((1,) if b.single else (1, len(b.columns)), np.nan) for b in self.blocks}


def _values(columns: tuple[str, ...], leaf) -> tuple[str, ...]:
    """Return the columns of a leaf, or of what a user gave as one, without those that tell the group of a row."""
    return columns[: len(columns) - getattr(leaf, "group_columns", 0)]


def side_by_side(columns) -> np.ndarray:
    """Join columns (n,) in an array (n, columns), of objects where there are dates, or text beside numbers."""
    columns = [c.astype(object) if c.dtype.kind in "Mm" else c for c in columns]
    kinds = {"text" if c.dtype.kind in "US" else c.dtype.kind if c.dtype.kind in "bO" else "number" for c in columns}
    return np.column_stack([c.astype(object) for c in columns] if len(kinds) > 1 else columns)


def _check_sparse(chosen, features):
    for family in [*chosen.values(), features]:
        if isinstance(family, str) and family in FAMILIES and not FAMILIES[family].sparse:
            zero = "a 0 of theirs is a value like any other"
            cure = f"Sparse are {sparse_families()}; give X.toarray() for others"
            raise TypeError(f"X is sparse, which {family!r} features cannot be: {zero}. {cure}")


def _column_names(key, table) -> tuple[str, ...]:
    """Return the names of the columns in a key of ``features``; an integer that is no name is a position."""

    def name(k):
        count = len(table.columns)
        return table.columns[k] if isinstance(k, int) and str(k) not in table.place and -count <= k < count else str(k)

    names = tuple(name(k) for k in (key if isinstance(key, tuple) else (key,)))
    absent = [name for name in names if name not in table.place]
    if absent:
        there = f"it has {listed(table.columns)}"
        raise ValueError(f"features names the columns {listed(absent)}, which X does not have; {there}")
    return names


def _blocks(chosen, table):
    """Yield blocks: a leaf the user gave stands alone; columns of one family (and one set of categories) share one."""
    shared: dict[tuple, list[str]] = {}
    taken = {_RESERVED}

    def name(wanted: str) -> str:
        while wanted in taken:
            wanted += "_"
        taken.add(wanted)
        return wanted

    for key, leaf in chosen.items():
        if not isinstance(leaf, str):
            leaf = leaf.for_table(key, table) if isinstance(leaf, Leaf) else leaf  # the model refuses what is none
            vector = getattr(leaf, "event_dim", 0) > 0
            categories = None if vector else getattr(leaf, "categories", None)
            single = len(key) == 1 and not vector and not getattr(leaf, "features", ())
            yield Block(name("+".join(key)), key, single, leaf, categories)
        elif leaf == DROP:
            continue
        elif leaf not in FAMILIES:
            families = [*FAMILIES, DROP]
            raise ValueError(f"column {key[0]!r}: features must give a leaf or one of {families}, got {leaf!r}")
        elif leaf == "multinomial":
            if len(key) == 1 and len(table.columns) > 1:
                cure = "give 'multinomial' to a tuple of columns"
                raise ValueError(f"column {key[0]!r}: a bag of one word says nothing; {cure}")
            yield Block(name(leaf), key, False, leaf)
        else:
            for column in key:
                categories = table.categories(column) if leaf == "categorical" else None
                if categories:
                    count = table.count and functools.partial(table.count, column)
                    tell(of_alike(f"column {column!r}", categories, count, (column,)))
                if categories == ():
                    cure = "drop it or declare DirichletCategorical(alpha, categories=[...])"
                    raise ValueError(f"column {column!r} has no observed value to learn its categories from; {cure}")
                shared.setdefault((leaf, categories), []).append(column)
    for (family, categories), columns in shared.items():
        alone = family == "categorical" and len(columns) == 1
        yield Block(name(columns[0] if alone else family), tuple(columns), alone, family, categories)
