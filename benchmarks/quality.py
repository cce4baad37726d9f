"""Probabilities: learning curves of the averaged classifier, of our single models and of scikit-learn's classifiers.

Every cell is a data set, a number of rows per class, a part of the entries removed (from the rows of fit and of test
alike) and a split; all contenders have the same rows. What is done is kept in `quality.csv`, a line each, so that a
long run can be broken off and taken up again: `python -m benchmarks.quality --help` runs a part of it.
"""

import argparse
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd

from bayesgen import evaluation
from benchmarks.quality_report import KEYS, MEASURES, Section, first_screen, markdown, picture, put, summary
from benchmarks.rivals import DEVELOPMENT, ON_DEMAND, contenders, table

KEPT = Path(__file__).parent / "quality.csv"
ROWS = (5, 10, 20, 50, 100, "all")
REMOVED = (0.0, 0.1, 0.3)
SPLITS = 20
COLUMNS = [*KEYS, *MEASURES, "cpu", "error"]
_TEST = 1000  # rows at most, and "all" is at most 4 times as many
FIGURE = Path(__file__).parent / "figures" / "quality.png"
NOTES = Path(__file__).parent / "quality-notes.md"
FLOOR = 1e-15  # a probability below counts as this, as scikit-learn's log_loss has it


def split(y, rows, seed: int):
    """Places of the rows of fit and of test, or None where a class has too few."""
    rng = np.random.default_rng(seed)
    if rows == "all":
        order = rng.permutation(len(y))
        cut = max(len(y) // 5, 1)
        return order[cut : cut + 4 * _TEST], order[:cut][:_TEST]
    if np.bincount(y).min() < 1.2 * rows:
        return None
    fit = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:rows] for k in range(y.max() + 1)])
    rest = rng.permutation(np.setdiff1d(np.arange(len(y)), fit))
    return fit, rest[:_TEST]


def score(y, probability) -> dict:
    """The four measures of class probabilities."""
    probability = np.clip(probability, FLOOR, None)
    probability = probability / probability.sum(1, keepdims=True)
    return {
        "log_loss": evaluation.log_loss(y, probability),
        "brier": evaluation.brier_score(y, probability),
        "calibration": evaluation.expected_calibration_error(y, probability),
        "accuracy": evaluation.accuracy(y, probability),
    }


def measure(kept: Path, names, sizes, removed, splits: int, models=None) -> None:
    """Measure what is asked for and not yet kept."""
    kept.parent.mkdir(exist_ok=True)
    done = {tuple(map(str, key)) for key in read(kept)[KEYS].to_numpy()} if kept.exists() else set()
    for seed in range(splits):
        for name in names:
            X, y = table(name)
            for rows in sizes:
                for part in removed:
                    cell = {"data": name, "rows": str(rows), "removed": part, "split": seed}
                    if (places := split(y, rows, seed)) is None:
                        continue
                    gone = np.random.default_rng([seed, 1]).random(X.shape) < part
                    Z = X.mask(gone) if part else X
                    for model, estimator in contenders(X).items():
                        key = cell | {"model": model}
                        wanted = model in models if models else model not in ON_DEMAND
                        if not wanted or tuple(map(str, key.values())) in done:
                            continue
                        row = pd.DataFrame([key | _one(estimator, Z, y, *places)], columns=COLUMNS)
                        row.to_csv(kept, mode="a", header=not kept.exists(), index=False, float_format="%.5g")


def _one(estimator, X, y, fit, test):
    start = process_time()  # steady on a machine that others use
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator.fit(X.iloc[fit], y[fit])
        except (ValueError, np.linalg.LinAlgError) as error:
            return {"error": str(error)[:200]}
        result = score(y[test], estimator.predict_proba(X.iloc[test]))
    return result | {"cpu": process_time() - start}


def read(kept: Path) -> pd.DataFrame:
    """What is kept, a row each."""
    return pd.read_csv(kept, dtype={"rows": str, "removed": float}).drop_duplicates(KEYS, keep="last")


def run(quick: bool = False) -> list[Section]:
    """Measure all cells, or two small ones, and draw the curves."""
    if quick:
        kept = Path("build/quality-quick.csv")
        measure(kept, ("iris", "tae"), (10,), (0.0, 0.3), 2)
    else:
        kept = KEPT
        measure(kept, DEVELOPMENT, ROWS, (0.0,), SPLITS)
        measure(kept, DEVELOPMENT, (20, 50), REMOVED[1:], SPLITS)
        return [show(read(kept))]
    return [Section(read(kept), SPLITS)]


def show(frame: pd.DataFrame) -> Section:
    """Draw the picture, and renew what README and the site show; returns the section of `results.md`."""
    root, section = FIGURE.parents[2], Section(frame, SPLITS, NOTES.read_text())
    for path in (FIGURE, root / "docs" / "pictures" / "quality.png"):
        picture(frame, path)
    put(root / "README.md", first_screen(frame, SPLITS, "docs/pictures/quality.png"))
    put(root / "docs" / "index.md", first_screen(frame, SPLITS, "pictures/quality.png"))
    put(root / "docs" / "comparison.md", section.page("pictures/quality.png"))
    return section


def main() -> None:
    """Measure a part, and print the summary of what is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=main.__doc__)
    parser.add_argument("--kept", type=Path, default=KEPT, help="the file of results")
    parser.add_argument("--data", nargs="+", default=DEVELOPMENT)
    parser.add_argument("--rows", nargs="+", default=[str(rows) for rows in ROWS])
    parser.add_argument("--removed", nargs="+", type=float, default=[0.0])
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--models", nargs="+")
    parser.add_argument(
        "--write", action="store_true", help="measure nothing; write results.md, the picture, README and the site"
    )
    arguments = parser.parse_args()
    if arguments.write:
        from benchmarks.__main__ import write

        write("quality", show(read(arguments.kept)).markdown())
        return
    sizes = [rows if rows == "all" else int(rows) for rows in arguments.rows]
    measure(arguments.kept, arguments.data, sizes, arguments.removed, arguments.splits, arguments.models)
    print(markdown(summary(read(arguments.kept))))


if __name__ == "__main__":
    main()
