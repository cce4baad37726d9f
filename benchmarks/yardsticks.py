"""Yardsticks: tables of the comparison of probabilities beyond the curves, from the kept lines."""

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.rivals import BASE, OURS

KEYS = ["data", "rows", "removed", "noise", "split", "model"]
CELL, SPLIT = KEYS[:4], KEYS[:5]
AUC = "auc_error"
BOTH = ("CatBoost", "LightGBM")  # a cell is judged once it has these
FEW = ("5", "10")  # sizes below 20 rows of each class
PUBLISHED = Path(__file__).parent / "published.csv"


def rivals(models) -> list[str]:
    """The models that are not ours, and learn from columns."""
    return [m for m in models if not m.startswith("bayesgen") and m != BASE]


def near(frame: pd.DataFrame) -> pd.DataFrame:
    """Tell by cell (rows) and rival (columns) if our log loss is within 5 % or .01 of its, on the splits of both."""
    loss = frame.pivot_table("log_loss", SPLIT, "model")
    found = {}
    for model in rivals(loss):
        both = loss[[OURS, model]].dropna().groupby(level=CELL).mean()
        found[model] = both[OURS] <= np.maximum(1.05 * both[model], both[model] + 0.01)
    return pd.DataFrame(found)


def shares(frame: pd.DataFrame) -> list[tuple]:
    """Aim, goal, result and verdict: the part of the cells in which we are near every rival that was measured there."""
    found = near(frame)
    judged = found.reindex(columns=BOTH).notna().all(axis=1)
    good = found[judged].ne(False).all(axis=1).rename("near").reset_index()
    good = good.merge(frame[["data", "classes"]].drop_duplicates("data"))
    least = frame[frame["model"].isin(BOTH)].groupby([*CELL, "model"])["split"].nunique().min()
    rows = []
    for which, goal, own in (
        ("all", 0.75, good),
        ("tables of two classes", 0.65, good[good["classes"] == 2]),
        ("from 20 rows per class on", 0.80, good[~good["rows"].isin(FEW)]),
    ):
        came = f"{own['near'].mean():.0%} of {len(own)}" if len(own) else "not measured"
        there = f"{' and '.join(BOTH)} among them (splits: {least} or more)"
        aim = f"cells within 5 % or .01 of the best of all rivals, {there}: {which}"
        rows.append((aim, f"{goal:.0%}", came, len(own) > 0 and own["near"].mean() >= goal))
    return rows


def by_rival(frame: pd.DataFrame) -> pd.DataFrame:
    """Count cells by rival: ours near it or ahead; ahead; behind by most."""
    loss, good, rows = frame.pivot_table("log_loss", SPLIT, "model"), near(frame), []
    for model in good:
        both = loss[[OURS, model]].dropna().groupby(level=CELL).mean()
        if not len(both):
            continue
        behind = both[OURS] - both[model]
        worst = behind.idxmax()
        rows.append(
            {
                "rival": model,
                "cells": len(both),
                "its log loss": f"{both[model].mean():.3f}",
                "ours there": f"{both[OURS].mean():.3f}",
                "ours near it or ahead": f"{good[model].dropna().astype(bool).mean():.0%}",
                "ours ahead": f"{(behind < 0).mean():.0%}",
                "farthest behind": f"{behind.max():+.3f} ({worst[0]} {worst[1]})",
            }
        )
    return pd.DataFrame(rows)


def by_level(frame: pd.DataFrame, by: str, levels: tuple) -> pd.DataFrame:
    """Mean log loss by rival and level, and in brackets ours on the same rows.

    Where ``by`` is "noise" the splits are those that have all levels, so that the columns compare.
    """
    frame = frame[frame[by].isin(levels)]
    loss = frame.pivot_table("log_loss", SPLIT, "model")
    rows = []
    for model in rivals(loss):
        both = loss[[OURS, model]].dropna() if OURS in loss else loss.iloc[:0]
        if by == "noise" and len(both):
            both = both[both.groupby(level=["data", "rows", "removed", "split"])[OURS].transform("size") == len(levels)]
        if not len(both):
            continue
        mean = both.groupby(level=CELL).mean().groupby(level=by).mean()
        shown = {level: f"{mean[model][level]:.3f} ({mean[OURS][level]:.3f})" for level in mean.index}
        cells = both.groupby(level=["data", "rows"]).ngroups
        rows.append({"rival": model, "cells": cells} | {level: shown.get(level, "") for level in levels})
    return pd.DataFrame(rows)


def excess(frame: pd.DataFrame) -> pd.DataFrame:
    """Log loss in excess of the base rate where labels are permuted: mean over data sets, and the worst of them."""
    loss = frame[frame.noise == "labels"].pivot_table("log_loss", SPLIT, "model")
    if not {OURS, BASE} <= set(loss):
        return pd.DataFrame()
    above = (loss[OURS] - loss[BASE]).dropna()
    rows = []
    for size, own in above.groupby(level="rows", sort=False):
        sets = own.groupby(level="data").mean()
        rows.append(
            {
                "rows per class": size,
                "data sets": len(sets),
                "splits": own.groupby(level="data").size().max(),
                "mean excess": f"{sets.mean():+.3f}",
                "worst data set": f"{sets.max():+.3f} ({sets.idxmax()})",
            }
        )
    return pd.DataFrame(rows).sort_values("rows per class", key=lambda size: size.astype(int))


def published(frame: pd.DataFrame) -> pd.DataFrame:
    """Figures that others published, beside the same measure on folds of our own."""
    theirs = pd.read_csv(PUBLISHED)
    theirs = theirs[theirs["data"].isin(frame["data"])]
    folds = frame[(frame["rows"] == "3-fold") & (frame["noise"] == "0") & (frame["removed"] == 0)]
    rows = [theirs]
    for data, measure in theirs[["data", "measure"]].drop_duplicates().to_numpy():
        here = folds[folds["data"] == data].groupby("model")[measure].agg(value="mean", splits="count").reset_index()
        here = here[here["model"].isin([OURS, *rivals(here["model"])])].rename(columns={"model": "method"})
        rows.append(here.assign(data=data, measure=measure, source="here"))
    table = pd.concat(rows).sort_values(["data", "value"])
    names = {"log_loss": "log loss", AUC: "1 - AUC"}
    return table.assign(value=table["value"].map("{:.3f}".format), measure=table["measure"].map(names))


def failures(frame: pd.DataFrame) -> str:
    """A line that counts the fits that failed."""
    count = frame[frame["log_loss"].isna()].groupby("model").size()
    return ", ".join(f"{model} {times}" for model, times in count.items())
