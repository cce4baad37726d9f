"""Probabilities: the averaged classifier against our single models and the classifiers that people use instead.

A cell is a data set, a number of rows of fit, a way of spoiling, and a split; all contenders have the same rows. The
results are in `quality.csv`, a line for each cell and contender, so that a long run can be broken off, taken up again
and extended. `python -m benchmarks quality` measures all parts, `python -m benchmarks.quality noise --data iris` some
of it, and `--write` makes tables, picture and pages of all that is kept.
"""

import argparse
import warnings
from itertools import product
from math import inf
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

from bayesgen import evaluation
from benchmarks.kept import Kept
from benchmarks.quality_report import MEASURES, ROWS, Section, curves, first_screen, picture, put
from benchmarks.rivals import BASE, DEVELOPMENT, LARGE, ON_DEMAND, OURS, absent, contenders, table
from benchmarks.yardsticks import AUC, KEYS

HERE = Path(__file__).parent
COLUMNS = [*KEYS, "classes", *MEASURES, AUC, "cpu", "error"]
SPLITS = 20
_TEST = 1000  # rows at most, and "all" is at most 4 times as many
FLOOR = 1e-15  # a probability below counts as this, as scikit-learn's log_loss has it


class Part(NamedTuple):
    """Cells to measure: every data set at every size, as far as it has the rows, and with everything that spoils it.

    Attributes
    ----------
    rows : of "5", "10" ... rows of each class; "n500", "n2000" ... rows of all classes together; "all", four fifths of
        the rows, at most 4,000; "3-fold", two thirds, and the test rows are the other third.
    removed : part of the entries that are removed, from the rows of fit and of test alike.
    noise : "0", "10", "50" columns of noise added; or "labels", which are permuted, so that nothing is to be learned.
    models : the contenders, where not all that are installed.
    """

    data: tuple = DEVELOPMENT
    rows: tuple = ROWS
    removed: tuple = (0.0,)
    noise: tuple = ("0",)
    splits: int = SPLITS
    models: tuple = ()


PARTS = {
    "curves": Part(),
    "gaps": Part(rows=("20", "50"), removed=(0.1, 0.3)),
    "sizes": Part((*DEVELOPMENT, *LARGE), ("n500", "n2000", "n10000"), splits=3),
    "noise": Part(rows=("20", "100"), noise=("10", "50"), splits=5),
    "labels": Part(rows=ROWS[:-1], noise=("labels",), models=(OURS, BASE)),
    "published": Part(("splice", "pima"), ("3-fold",), splits=9),
}


def split(y, rows: str, seed: int):
    """Places of the rows of fit and of test, or None where there are too few rows."""
    rng = np.random.default_rng(seed)
    if rows == "3-fold":
        repeat, fold = divmod(seed, 3)
        return list(StratifiedKFold(3, shuffle=True, random_state=repeat).split(y, y))[fold]
    if rows == "all":
        order = rng.permutation(len(y))
        cut = max(len(y) // 5, 1)
        return order[cut : cut + 4 * _TEST], order[:cut][:_TEST]
    if rows.startswith("n"):
        order, count = rng.permutation(len(y)), int(rows[1:])
        cut = min(len(y) // 5, _TEST)
        return (order[cut : cut + count], order[:cut]) if cut + count <= len(y) else None
    count = int(rows)
    if np.bincount(y).min() < 1.2 * count:
        return None
    fit = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:count] for k in range(y.max() + 1)])
    rest = rng.permutation(np.setdiff1d(np.arange(len(y)), fit))
    return fit, rest[:_TEST]


def spoiled(X: pd.DataFrame, y, removed: float, noise: str, seed: int):
    """The table with entries removed and columns of noise added, or with its labels permuted."""
    if noise == "labels":
        y = np.random.default_rng([seed, 3]).permutation(y)
    elif int(noise):
        values = np.random.default_rng([seed, 2]).normal(size=(len(X), int(noise)))
        X = X.join(pd.DataFrame(values, index=X.index).add_prefix("noise"))
    if removed:
        X = X.mask(np.random.default_rng([seed, 1]).random(X.shape) < removed)
    return X, y


def score(y, probability) -> dict:
    """The measures of class probabilities; one less the area under the ROC curve where there are two classes."""
    probability = np.clip(probability, FLOOR, None)
    probability = probability / probability.sum(1, keepdims=True)
    two = probability.shape[1] == 2 and len(set(y)) == 2
    return {
        "log_loss": evaluation.log_loss(y, probability),
        "brier": evaluation.brier_score(y, probability),
        "calibration": evaluation.expected_calibration_error(y, probability),
        "accuracy": evaluation.accuracy(y, probability),
        AUC: 1 - roc_auc_score(y, probability[:, 1]) if two else np.nan,
    }


def measure(kept: Kept, part: Part, until: float = inf) -> int:
    """Measure the cells not yet kept, up to a time of `perf_counter`; return their number."""
    count = 0
    for seed, name in product(range(part.splits), part.data):
        X, y = table(name)
        for rows, removed, noise in product(part.rows, part.removed, part.noise):
            Z, t = spoiled(X, y, removed, noise, seed)
            if (places := split(t, rows, seed)) is None:
                continue
            cell = {"data": name, "rows": rows, "removed": f"{removed:g}", "noise": noise, "split": seed}
            for model, estimator in contenders(Z, t).items():
                key = cell | {"model": model}
                if (model not in part.models if part.models else model in ON_DEMAND) or key in kept:
                    continue
                if perf_counter() > until:
                    return count
                kept.add(key, {"classes": t.max() + 1} | _one(estimator, Z, t, *places))
                count += 1
    return count


def _one(estimator, X, y, fit, test):
    start = process_time()  # steady on a machine that others use
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator.fit(X.iloc[fit], y[fit])
            probability = estimator.predict_proba(X.iloc[test])
            if probability.shape[1] != y.max() + 1 or not np.isfinite(probability).all():
                raise ValueError("no finite probability for each class")
        except Exception as error:  # each package has its own; the report counts them
            return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"}
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    cpu = process_time() - start + getattr(last, "cpu_elsewhere_", 0.0)
    return score(y[test], probability) | {"cpu": cpu}


def results(path: Path = HERE / "quality.csv") -> Kept:
    """The file of results."""
    return Kept(path, KEYS, COLUMNS)


def read(kept: Kept) -> pd.DataFrame:
    """Return the kept lines, a row each."""
    return kept.read().astype({"removed": float, "split": int})


def run(quick: bool = False) -> list[Section]:
    """Measure all parts, or two small tables, and draw the curves."""
    print(*absent(), sep="\n")
    if quick:
        kept = results(Path("build/quality-quick.csv"))
        measure(kept, Part(("iris", "tae"), ("10",), (0.0, 0.3), splits=2))
        return [Section(read(kept), SPLITS)]
    kept = results()
    for part in PARTS.values():
        measure(kept, part)
    return [show(read(kept))]


def show(frame: pd.DataFrame) -> Section:
    """Draw the picture, and renew the blocks of README and the site; return the section of `results.md`."""
    root, section = HERE.parent, Section(frame, SPLITS, (HERE / "quality-notes.md").read_text())
    for path in (HERE / "figures" / "quality.png", root / "docs" / "pictures" / "quality.png"):
        picture(curves(frame), path)
    put(root / "README.md", first_screen(frame, SPLITS, "docs/pictures/quality.png"))
    put(root / "docs" / "index.md", first_screen(frame, SPLITS, "pictures/quality.png"))
    put(root / "docs" / "comparison.md", section.page("pictures/quality.png"))
    return section


def main() -> None:
    """Measure the cells of parts of the comparison that are not kept yet, and print the kept ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=main.__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default curves. Options replace their cells")
    parser.add_argument("--data", nargs="+", help=f"of {', '.join((*DEVELOPMENT, *LARGE))}")
    parser.add_argument(
        "--rows", nargs="+", help="of 5 and other numbers of each class, n500 of all together, all, 3-fold"
    )
    parser.add_argument("--removed", nargs="+", type=float, help="parts of the entries")
    parser.add_argument("--noise", nargs="+", help="of 0, 10 and other numbers of columns, labels")
    parser.add_argument("--splits", type=int)
    parser.add_argument("--models", nargs="+", help="names of contenders; default all that are installed")
    parser.add_argument("--minutes", type=float, default=inf, help="begin no fit after so many; run again to go on")
    parser.add_argument("--forget", nargs="+", help="take out all lines of these models first")
    parser.add_argument("--kept", type=Path, default=HERE / "quality.csv", help="the file of results")
    parser.add_argument(
        "--write", action="store_true", help="measure nothing; write results.md, the picture, README and the site"
    )
    options = parser.parse_args()
    kept = results(options.kept)
    if options.write:
        from benchmarks.__main__ import write

        write("quality", show(read(kept)).markdown())
        return
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.forget:
        kept.forget(options.forget)
    until = perf_counter() + 60 * options.minutes
    print(*absent(), sep="\n")
    chosen = {field: given for field in Part._fields if (given := getattr(options, field)) is not None}
    for name in options.parts or ["curves"]:
        part = PARTS[name]._replace(**chosen)
        print(f"{name}: {measure(kept, part, until)} measured", flush=True)
    print(Section(read(kept), SPLITS).yardsticks())


if __name__ == "__main__":
    main()
