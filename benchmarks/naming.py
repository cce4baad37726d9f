"""Names: the columns of the development sets of which the averaged classifier warns that they name groups of rows.

None of these columns names things that new rows would not have, except for the columns that are said to; so the
listed columns are false alarms. `python -m benchmarks naming` looks at all rows of each set, and at 500 of them.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesgen.tables.groups import naming
from benchmarks.rivals import DEVELOPMENT, LARGE, table

SOME = 500  # rows of the smaller look
NAMING = {("vowel", "1"): "speaker", ("tae", "1"): "instructor"}  # columns that do name what rows belong to


def warned(name: str, rows: int | None = None) -> tuple[int, list[str]]:
    """Return the number of columns of a set, and the columns with a warning, in all rows or some."""
    X, y = table(name)
    if rows is not None and rows < len(X):
        chosen = np.random.default_rng(0).permutation(len(X))[:rows]
        X, y = X.iloc[chosen], y[chosen]
    found = []
    for column in X:
        categories = isinstance(X[column].dtype, pd.CategoricalDtype)
        values = X[column].cat.codes.to_numpy() if categories else X[column].to_numpy(float)
        if naming(column, values, y):
            found.append(column)
    return X.shape[1], found


@dataclass
class Section:
    """The section of `results.md`."""

    rows: list[tuple[str, int, list[str], list[str]]]

    def markdown(self) -> str:
        """The table as Markdown."""
        columns = sum(own[1] for own in self.rows)
        alarms = [(name, c) for name, _, *both in self.rows for own in both for c in own if (name, c) not in NAMING]
        lines = [
            "## Columns that seem to name what rows belong to",
            "",
            f"Warnings on {len(self.rows)} sets with {columns} columns, of which "
            f"{', '.join(f'{name} {column} ({what})' for (name, column), what in NAMING.items())} do name what rows",
            f"belong to. False alarms: {len(set(alarms))} columns.",
            "",
            f"| data | columns | warned of, all rows | warned of, {SOME} rows |",
            "| --- | --- | --- | --- |",
        ]
        shown = (f"| {name} | {n} | {', '.join(a) or '-'} | {', '.join(b) or '-'} |" for name, n, a, b in self.rows)
        return "\n".join([*lines, *shown]) + "\n"


def run(quick: bool = False) -> list[Section]:
    """Look at all sets, or at two."""
    names = ("iris", "tae") if quick else (*DEVELOPMENT, *LARGE)
    rows = [(name, *warned(name), warned(name, SOME)[1]) for name in names]
    print(Section(rows).markdown(), flush=True)
    return [Section(rows)]
