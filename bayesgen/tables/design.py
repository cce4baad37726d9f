"""The columns of a linear score: the numbers of a table, and a column of 0 and 1 for each category, "island == Dream".

A score is a sum over columns, so it takes numbers alone. Every category has its column: the prior of the coefficients
settles what the sum of these columns, always 1, leaves open.
"""

import numpy as np

from bayesgen.core.errors import InputError, quoted
from bayesgen.core.memory import check_memory
from bayesgen.models.linear_model import complete
from bayesgen.tables.description import Columns
from bayesgen.tables.findings import of_doubt, tell
from bayesgen.tables.schema import Block, Schema
from bayesgen.tables.table import Table

_IS = " == "  # between a column and its category
_SPARSE = "X is sparse, and a regression takes dense rows: give X.toarray()"
NO_BIT = "is neither True nor False, 1 nor 0, which it held at the fit"
_MANY = 1000  # categories that may be names of the rows, with a column for each row


def learn(table: Columns) -> Schema:
    """Divide the columns of a table, or of a survey of its rows, into numbers, bools among them, and categories."""
    if table.sparse:
        raise TypeError(_SPARSE)
    if table.common("auto"):
        return Schema.learn(table, "auto")
    families = {column: table.family(column) for column in table.columns}
    for column, family in families.items():
        if family == "categorical":  # even numbers of the rows may have a coefficient, a trend
            tell(of_doubt(column, table.doubt(column)))
    return Schema.learn(table, families)


def names(schema: Schema) -> tuple[str, ...]:
    """Return the names of the columns of a score, or raise where two would be the same."""
    if schema.numeric:
        return schema.columns
    result = tuple(name for _, name in _pairs(schema))
    if len(set(result)) < len(result):
        twice = next(name for name in result if result.count(name) > 1)
        raise ValueError(f"two columns would be called {quoted(twice)}: rename one of the table, or its categories")
    return result


def _pairs(schema: Schema) -> list[tuple[str, str]]:
    """Return the column of the table and the name of each column of a score, in order."""
    found = [(column, schema.block_of[column].categories) for column in schema.columns if column in schema.block_of]
    return [(c, n) for c, each in found for n in ([c] if each is None else [f"{c}{_IS}{level}" for level in each])]


def origins(schema: Schema) -> list[str]:
    """Return the column of the table that each column of a score is made of."""
    return list(schema.columns) if schema.numeric else [column for column, _ in _pairs(schema)]


def read(schema: Schema, table: Table, unseen: str = "error") -> np.ndarray:
    """Return the columns of a score (n, D), NaN where missing; an unseen category is an error, or missing."""
    if table.sparse:
        raise TypeError(_SPARSE)
    blocks = schema.read(table, unseen)
    for block in schema.blocks:
        if not {*schema.bools}.isdisjoint(block.columns):
            _refuse_no_bits(block, blocks[block.name])
    if schema.numeric:
        return np.asarray(blocks[schema.blocks[0].name], float).reshape(-1, len(schema.columns))
    columns = {}
    for block in schema.blocks:
        for column, values in zip(block.columns, np.atleast_2d(blocks[block.name].T), strict=True):
            columns[column] = values[:, None]
            if block.categories is not None:
                if (count := len(block.categories)) > _MANY:
                    check_memory(f"column {column!r} of {count} categories", 8 * count * len(values), "drop it")
                columns[column] = np.where(np.isnan(values)[:, None], np.nan, values[:, None] == np.arange(count))
    return np.hstack([columns[column] for column in schema.columns if column in columns])


def _refuse_no_bits(block: Block, values) -> None:
    """Raise an error where a column that held True and False at the fit holds anything but 0 and 1."""
    values = values.reshape(len(values), -1)
    wrong = (values != 0) & (values != 1) & (values == values)
    if values.dtype.kind != "b" and wrong.any():
        row, place = np.argwhere(wrong)[0].tolist()
        column, value = block.columns[place], float(values[row, place])
        raise InputError(f"column {column!r}: {value:g} in row {row} {NO_BIT}", column=column, row=row, value=value)


def filled(schema: Schema, x: np.ndarray, means=None) -> np.ndarray:
    """Return finite rows of a score: a gap is filled with its column's mean, or an error that names it."""
    if means is not None:
        x = np.where(np.isnan(x), means, x)
    return complete(x, origins(schema))
