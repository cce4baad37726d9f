"""The next measurement of an average: its density at every node, and its probabilities of rows with each filled in."""

from time import process_time

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine

import bayesgen as bg
from bayesgen.inspection import next_measurement
from benchmarks.timing import Table, medians

NODES = 64  # values of a missing number at which its density is computed


def filled(average, rows):
    """Work out the densities and probabilities of some rows, with a row of its own for every node of a gap."""
    for row in rows:
        for column in np.flatnonzero(np.isnan(row)):
            x, c = np.repeat(row[None], NODES, axis=0), np.empty((NODES, 0), np.intp)
            x[:, column] = average.modelling("numbers")[0].view.warp.location[column]
            average.log_joint(x, c)
            average.probability(x, c)


def run(quick: bool = False) -> list[Table]:
    """Fill the table."""
    table = Table(
        "Next measurement",
        "`inspection.next_measurement` of an averaged classifier, fitted to every second row, where 200 rows share no "
        "gaps: CPU time, against densities and probabilities of rows with 64 values filled in.",
    )
    for name, load, gaps in (("wine", load_wine, 5), ("tumours", load_breast_cancer, 10)):
        X, y = load(return_X_y=True)
        classifier = bg.AveragedClassifier(members=["gaussian", "category"] if quick else "all").fit(X[::2], y[::2])
        rng, count = np.random.default_rng(0), 2 if quick else 200
        rows = X[rng.integers(len(X), size=count)].copy()
        for row in rows:
            row[rng.choice(X.shape[1], gaps, replace=False)] = np.nan
        average = classifier.average_
        contenders = {
            "ours": lambda c=classifier, r=rows: next_measurement(c, r),
            "rows filled in": lambda a=average, r=rows: filled(a, r[:2]),
        }
        time = medians(contenders, 3, 1, process_time)
        ratio = time["rows filled in"] / 2 * count / time["ours"]
        cell = f"{name}, {gaps} gaps of {X.shape[1]} columns"
        table.add(cell, "rows filled in", ratio, None)
        table.note += f" {cell}: {1e3 * time['ours'] / (count * gaps):.2g} ms an entry."
    return [table]
