"""Probabilities: learning curves of the averaged classifier, of our single models and of scikit-learn's classifiers.

Every cell is a data set, a number of rows a class, a part of the entries removed (from the rows of fit and of test
alike) and a split; all contenders have the same rows. What is done is kept in a file, a line each, so that a long run
can be broken off and taken up again: `python -m benchmarks.quality --help` runs a part of it.
"""

import argparse
import json
import warnings
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pandas as pd

from bayesgen import evaluation
from benchmarks.rivals import DEVELOPMENT, contenders, table

KEPT = Path("build/quality.jsonl")
ROWS = (5, 10, 20, 50, 100, "all")
REMOVED = (0.0, 0.1, 0.3)
SPLITS = 20
_TEST = 1000  # rows at most, and "all" is at most 4 times as many
_KEYS = ["data", "rows", "removed", "split", "model"]
OURS = "bayesgen averaged"
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
    done = {tuple(map(str, key)) for key in read(kept)[_KEYS].to_numpy()} if kept.exists() else set()
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
                        if (models and model not in models) or tuple(map(str, key.values())) in done:
                            continue
                        with kept.open("a") as file:
                            file.write(json.dumps(key | _one(estimator, Z, y, *places)) + "\n")


def _one(estimator, X, y, fit, test):
    start, cpu = perf_counter(), process_time()  # on a machine that others use the second is the steadier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            estimator.fit(X.iloc[fit], y[fit])
        except (ValueError, np.linalg.LinAlgError) as error:
            return {"error": str(error)[:200]}
        seconds = perf_counter() - start
        result = score(y[test], estimator.predict_proba(X.iloc[test]))
    return result | {"fit": seconds, "seconds": perf_counter() - start, "cpu": process_time() - cpu}


def read(kept: Path) -> pd.DataFrame:
    """What is kept, a row each."""
    frame = pd.DataFrame([json.loads(line) for line in kept.read_text().splitlines()])
    return frame.drop_duplicates(_KEYS, keep="last")


def cells(frame: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Means over splits: a row for each data set, size and part removed, a column for each model."""
    return frame.pivot_table(measure, ["data", "rows", "removed"], "model")


def interval(difference: pd.Series) -> tuple[float, float]:
    """Mean and standard error of a paired difference by cell and split: cells are what is sampled."""
    by_cell = difference.groupby(["data", "rows", "removed"]).mean()
    return by_cell.mean(), by_cell.std(ddof=1) / np.sqrt(len(by_cell))


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Every model over the cells that it and ours have: means, and in log loss ours less it with its interval."""
    one = frame.pivot_table(["log_loss", "brier", "calibration", "accuracy", "seconds"], _KEYS[:4], "model")
    rows = {}
    for model in one["log_loss"].columns:
        both = one.dropna(subset=[(m, model) for m in one.columns.levels[0]])
        mean, error = interval(both["log_loss"][OURS] - both["log_loss"][model])
        rows[model] = {m: both[m][model].mean() for m in one.columns.levels[0]} | {
            "cells": both.groupby(level=[0, 1, 2]).ngroups,
            "ours": both["log_loss"][OURS].mean(),
            "difference": mean,
            "low": mean - 1.96 * error,
            "high": mean + 1.96 * error,
        }
    return pd.DataFrame(rows).T.sort_values("difference", ascending=False)


def goals(frame: pd.DataFrame) -> dict[str, float]:
    """What is promised: the margin over the best single rival, cells near the best rival, cells behind our own."""
    complete = frame[frame.removed == frame.removed.min()]
    loss = cells(complete, "log_loss").dropna(subset=[OURS])
    own = [m for m in loss if m.startswith("bayesgen") and "averaged" not in m]
    rivals = loss[[m for m in loss if not m.startswith("bayesgen")]]
    everywhere = rivals.dropna(axis=1)
    best = rivals.min(axis=1)
    near = loss[OURS] <= np.maximum(1.05 * best, best + 0.01)
    one = complete.pivot_table("log_loss", _KEYS[:4], "model")
    error = one[own].rsub(one[OURS], axis=0).groupby(level=[0, 1, 2]).sem().reindex(loss.index)
    behind = (loss[own].rsub(loss[OURS], axis=0) > 0.02 + 2 * error).any(axis=1)
    calibration = cells(complete, "calibration")[[OURS, *everywhere]].mean()
    plain = calibration.drop([OURS, *(m for m in calibration.index if "calibrated" in m)])
    return {
        "cells": len(loss),
        "mean log loss": loss[OURS].mean(),
        "that of the best single rival": everywhere.mean().min(),
        "margin": 1 - loss[OURS].mean() / everywhere.mean().min(),
        "part of cells within 5 % or .01 of the cell's best rival": near.mean(),
        "cells behind our best single model": behind.sum(),
        "calibration error": calibration[OURS],
        "least of a rival that is not recalibrated": plain.min(),
    }


class Section:
    """What `results.md` gets: the table over all cells, the promises, one line a data set and size."""

    def __init__(self, frame: pd.DataFrame):
        self.frame = frame

    def markdown(self) -> str:
        """The section."""
        parts = ["## Probabilities\n", __doc__.split("\n\n")[1].replace("\n", " ") + "\n"]
        over = summary(self.frame).round(3).reset_index(names="model")
        parts.append(_markdown(over))
        parts.append("\n".join(f"- {name}: {value:.3g}" for name, value in goals(self.frame).items()) + "\n")
        loss = (
            cells(self.frame[self.frame.removed == self.frame.removed.min()], "log_loss")
            .reset_index()
            .drop(columns="removed")
            .round(3)
        )
        loss["order"] = loss.rows.map({str(rows): place for place, rows in enumerate(ROWS)})
        parts.append(_markdown(loss.sort_values(["data", "order"]).drop(columns="order").astype(object).fillna("")))
        return "\n".join(parts)


def _markdown(frame: pd.DataFrame) -> str:
    lines = [list(frame.columns), ["---"] * frame.shape[1], *frame.to_numpy().tolist()]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def picture(frame: pd.DataFrame, path: Path) -> None:
    """Mean log loss against rows a class, a curve a model, over the data sets that have every size."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    sizes = [rows for rows in ROWS if rows != "all"]
    loss = cells(frame[frame.removed == 0], "log_loss").reset_index().set_index("data")
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    shown = [m for m in loss if m not in ("rows", "removed") and loss[m].notna().mean() > 0.6]
    have = [name for name, own in loss.groupby(level=0) if {str(s) for s in sizes} <= set(own.rows)]
    for model in shown:
        curve = [loss[loss.rows == str(s)].loc[have, model].mean() for s in sizes]
        strong = model == OURS
        axes.plot(sizes, curve, label=model, lw=3 if strong else 1.2, zorder=3 if strong else 2, marker="o", ms=3)
    axes.set(xscale="log", xlabel="rows a class", ylabel="mean log loss of new rows", ylim=(None, 1.2))
    axes.set_xticks(sizes, sizes)
    axes.legend(fontsize=7, ncols=2)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def run(quick: bool = False) -> list[Section]:
    """Measure all cells, or two small ones, and draw the curves."""
    if quick:
        kept = KEPT.with_name("quality-quick.jsonl")
        measure(kept, ("iris", "tae"), (10,), (0.0, 0.3), 2)
    else:
        kept = KEPT
        measure(kept, DEVELOPMENT, ROWS, (0.0,), SPLITS)
        measure(kept, DEVELOPMENT, (20, 50), REMOVED[1:], SPLITS)
        picture(read(kept), Path(__file__).parent / "figures" / "quality.png")
    return [Section(read(kept))]


def main() -> None:
    """Measure a part, and print the summary of what is kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=main.__doc__)
    parser.add_argument("--kept", type=Path, default=KEPT, help="the file of results")
    parser.add_argument("--data", nargs="+", default=DEVELOPMENT)
    parser.add_argument("--rows", nargs="+", default=[str(rows) for rows in ROWS])
    parser.add_argument("--removed", nargs="+", type=float, default=[0.0])
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--models", nargs="+")
    arguments = parser.parse_args()
    sizes = [rows if rows == "all" else int(rows) for rows in arguments.rows]
    measure(arguments.kept, arguments.data, sizes, arguments.removed, arguments.splits, arguments.models)
    print(Section(read(arguments.kept)).markdown())


if __name__ == "__main__":
    main()
