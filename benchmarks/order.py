"""Order: how far probabilities move where only the order of columns or rows, names of classes or a seed changed.

`python -m benchmarks order` measures all, `python -m benchmarks.order --data iris --splits 1` some of it; `order.csv`
keeps the lines. A row's change is the largest change of its class probabilities.
"""

import argparse
import warnings
from itertools import product
from math import inf
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from sklearn.base import clone

from benchmarks.kept import Kept
from benchmarks.quality import split
from benchmarks.quality_report import markdown
from benchmarks.rivals import DEVELOPMENT, OURS, contenders, table

KEYS = ["data", "rows", "split", "model", "change"]
COLUMNS = [*KEYS, "mean", "largest", "moved"]
CHANGES = ("columns", "classes", "rows", "seed")
MODELS = (OURS, "forest")  # a forest's seed is the measure
MOVED = 0.1  # a row that changes by more has moved


def reseeded(estimator, seed: int):
    """A clone whose every random state is another."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    return clone(estimator).set_params(**dict.fromkeys(names, seed))


def changed(estimator, X, y, fit, test, change: str):
    """Return probabilities of the test rows, in the order of the codes, after one change to the fit."""
    rng = np.random.default_rng(0)
    if change == "columns":
        X = X[rng.permutation(X.columns)]
    elif change == "classes":
        y = y.max() - y
    elif change == "rows":
        fit = rng.permutation(fit)
    elif change == "seed":
        estimator = reseeded(estimator, 1)
    probability = clone(estimator).fit(X.iloc[fit], y[fit]).predict_proba(X.iloc[test])
    return probability[:, ::-1] if change == "classes" else probability


def measure(kept: Kept, data, rows, splits: int, models=MODELS, until: float = inf) -> None:
    """Measure the cells not yet kept, up to a time of `perf_counter`."""
    for seed, name, size, model in product(range(splits), data, rows, models):
        X, y = table(name)
        if (places := split(y, size, seed)) is None:
            continue
        cell, before = {"data": name, "rows": size, "split": seed, "model": model}, None
        for change in CHANGES:
            if (key := cell | {"change": change}) in kept:
                continue
            if perf_counter() > until:
                return
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimator = contenders(X, y)[model]
                before = changed(estimator, X, y, *places, "nothing") if before is None else before
                after = changed(estimator, X, y, *places, change)
            move = np.abs(after - before).max(1)
            kept.add(key, {"mean": move.mean(), "largest": move.max(), "moved": (move > MOVED).mean()})


class Section:
    """The section of `results.md`, made from the kept lines."""

    def __init__(self, frame: pd.DataFrame):
        self.frame = frame

    def markdown(self) -> str:
        """The section."""
        rows = []
        for (model, change), own in self.frame.groupby(["model", "change"], sort=False):
            cells = own.groupby(["data", "rows"])
            worst = own.loc[own["largest"].idxmax()]
            rows.append(
                {
                    "model": model,
                    "changed": change,
                    "cells": cells.ngroups,
                    "splits": cells.size().max(),
                    "mean change of a row": f"{cells['mean'].mean().mean():.4f}",
                    f"rows that move by more than {MOVED:g}": f"{cells['moved'].mean().mean():.1%}",
                    "largest": f"{worst['largest']:.2f} ({worst['data']} {worst['rows']})",
                }
            )
        return (
            "## Order\n\nHow far the probabilities of new rows move where only the order of columns or rows, the\n"
            "names of the classes (whose order follows) or the random state changed. A row's change is that of the\n"
            f"class that moves most.\n\n{markdown(pd.DataFrame(rows))}"
        )


def results(path: Path = Path(__file__).parent / "order.csv") -> Kept:
    """The file of results."""
    return Kept(path, KEYS, COLUMNS)


def run(quick: bool = False) -> list[Section]:
    """Measure all development sets at 10 and 50 rows per class, or two of them."""
    kept = results(Path("build/order-quick.csv")) if quick else results()
    measure(kept, ("iris", "tae") if quick else DEVELOPMENT, ("10",) if quick else ("10", "50"), 1 if quick else 5)
    return [Section(kept.read())]


def main() -> None:
    """Measure the cells of a part that are not kept yet, and print the kept ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.order", description=main.__doc__)
    parser.add_argument("--data", nargs="+", default=DEVELOPMENT)
    parser.add_argument("--rows", nargs="+", default=("10", "50"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--minutes", type=float, default=inf, help="begin no fit after so many; run again to go on")
    parser.add_argument("--forget", nargs="+", help="take out all lines of these models first")
    parser.add_argument("--write", action="store_true", help="measure nothing; write the section of results.md")
    options = parser.parse_args()
    kept = results()
    if options.write:
        from benchmarks.__main__ import write

        write("order", Section(kept.read()).markdown())
        return
    if options.forget:
        kept.forget(options.forget)
    until = perf_counter() + 60 * options.minutes
    measure(kept, options.data, options.rows, options.splits, options.models, until)
    print(Section(kept.read()).markdown())


if __name__ == "__main__":
    main()
