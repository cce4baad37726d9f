"""Time of the averaged classifier, to fit and to ask for one row and for many, beside three rivals.

Times are of a user's calls, on DataFrames, on one core. A new row is one row of a DataFrame; many are 5,000 at once.
"""

import warnings
from concurrent.futures import ThreadPoolExecutor
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from bayesgen import AveragedClassifier
from benchmarks.rivals import contenders, table
from benchmarks.timing import medians, told

PEERS = ("forest", "boosting", "logistic")
CELLS = {  # rows, columns, classes
    "1,000 x 10, 3 classes": (1000, 10, 3),
    "150 x 10, 3 classes": (150, 10, 3),
    "10,000 x 10, 3 classes": (10_000, 10, 3),
    "1,000 x 20, 3 classes": (1000, 20, 3),
    "1,000 x 100, 3 classes": (1000, 100, 3),
    "1,000 x 10, 10 classes": (1000, 10, 10),
    "1,000 x 10, 30 classes": (1000, 10, 30),
}
TENTH, PENGUINS = "1,000 x 10, 3 classes, a tenth missing", "penguins, 276 x 6, 3 classes"
GAPS = {  # rows, columns, classes, share of entries that are missing
    TENTH: (1000, 10, 3, 0.1),
    "1,000 x 10, 3 classes, three tenths missing": (1000, 10, 3, 0.3),
    "1,000 x 30, 3 classes, a tenth missing": (1000, 30, 3, 0.1),
    "1,000 x 100, 3 classes, a tenth missing": (1000, 100, 3, 0.1),
    "300 x 300, 3 classes, a tenth missing": (300, 300, 3, 0.1),
}
MANY = 5000
_ASKING = 0.5  # seconds that a call of a thread takes at most, or that of a hundred rows
ASKED = {  # of the generative members and of all: milliseconds for a row, microseconds a row of many
    "1,000 x 10, 3 classes": ((1, 3), (20, 60)),
    "1,000 x 100, 3 classes": ((None, None), (120, None)),
    PENGUINS: ((2, None), (None, None)),
    TENTH: ((None, None), (60, None)),  # three times the time of complete rows
}


def rows(n: int, columns: int, classes: int, missing: float = 0.0):
    """Return rows of Gaussian classes with correlated columns and their classes; MANY more than ``n``."""
    rng = np.random.default_rng(0)
    n += MANY
    y = rng.integers(classes, size=n)
    mix = np.eye(columns) + 0.5 * rng.normal(size=(columns, columns)) / columns**0.5
    x = rng.normal(size=(classes, columns))[y] + rng.normal(size=(n, columns)) @ mix
    x[rng.random(x.shape) < missing] = np.nan
    return pd.DataFrame(x).add_prefix("x"), y


def penguins():
    """Return the penguins, repeated behind the rows of fit so that there are many to predict."""
    X, y = table("penguins")
    order = np.random.default_rng(0).permutation(len(y))
    order = np.concatenate([order[:276], np.resize(order[276:], MANY)])
    return X.iloc[order].reset_index(drop=True), y[order]


def measure(X, y) -> dict[str, tuple[float, float, float, float]]:
    """Return seconds of a fit, of one row and of a row of many, and the rate of two threads, for each contender."""
    ours = {"generative": AveragedClassifier(members="generative"), "all": AveragedClassifier()}
    peers = contenders(X, y)
    models, n = ours | {name: peers[name] for name in PEERS}, len(X) - MANY
    fit = medians({name: lambda m=m: m.fit(X[:n], y[:n]) for name, m in models.items()}, 1, clock=process_time)
    own, some = X[n : n + 1], X[n:]
    one = medians({name: lambda m=m: m.predict_proba(own) for name, m in models.items()}, 30)
    many = medians({name: lambda m=m: m.predict_proba(some) for name, m in models.items()}, 3, clock=process_time)
    times = {name: (fit[name], one[name], many[name] / MANY) for name in models}
    return {
        name: (*own, _threads(models[name], some[: max(100, int(_ASKING / own[-1]))])) for name, own in times.items()
    }


def _threads(model, X, calls: int = 6) -> float:
    """Return the rate at which two threads ask, over that at which one does."""
    with ThreadPoolExecutor(2) as two:
        ask = {
            "one": lambda: [model.predict_proba(X) for _ in range(calls)],
            "two": lambda: [*two.map(model.predict_proba, [X] * calls)],
        }
        times = medians(ask, 3)
    return times["one"] / times["two"]


class Times:
    """Times by cell, as four tables of Markdown."""

    def __init__(self, times: dict[str, dict[str, tuple[float, float, float, float]]]):
        self.times = times

    def markdown(self) -> str:
        """Return the four tables."""
        parts = [
            "## The averaged classifier\n",
            "One core, DataFrames; rivals as in `benchmarks/rivals.py` (a forest of 200 trees, boosting by default, "
            "logistic regression with its C by cross-validation). `generative` and `all` are `members=` of "
            f"`AveragedClassifier`. Many rows are {MANY:,} at once. In brackets: what was asked.",
        ]
        for place, (title, unit) in enumerate(
            [
                ("A fit, seconds of CPU", 1),
                ("One row, milliseconds", 1e3),
                ("Many rows, microseconds of CPU a row", 1e6),
                ("Rate of two threads that ask for many rows, over the rate of one", 1),
            ]
        ):
            names = list(next(iter(self.times.values())))
            parts.append(f"\n| {title} | " + " | ".join(names) + " |\n|---" + "|---:" * len(names) + "|")
            for cell, times in self.times.items():
                asked = ASKED[cell][place - 1] if place in (1, 2) and cell in ASKED else ()
                goals = dict(zip(names, asked, strict=False))
                entries = [
                    f"{unit * own[place]:.3g}" + (f" ({goal})" if (goal := goals.get(name)) else "")
                    for name, own in times.items()
                ]
                parts.append(f"| {cell} | " + " | ".join(entries) + " |")
        return "\n".join(parts) + "\n"


LEVELS = (2000, 1000), (5000, 3000), (20_000, 10_000)  # rows, and levels of one category
_LEVELS = """
import resource, time, warnings
import numpy as np, pandas as pd
from bayesgen import AveragedClassifier
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
c, x = rng.integers({levels}, size={rows}), rng.normal(size=({rows}, 2))
y = rng.normal(size={levels})[c] + x[:, 0] + rng.logistic(size={rows}) > 0
X = pd.DataFrame(x).add_prefix("x").assign(c=[f"level {{code}}" for code in c])
start = time.process_time()
AveragedClassifier().fit(X, y)
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


class Levels:
    """A category of many levels beside two numbers: seconds of CPU of a fit, and the memory of its process."""

    def __init__(self, cells):
        self.found = {cell: told(_LEVELS.format(rows=cell[0], levels=cell[1])).split() for cell in cells}

    def markdown(self) -> str:
        """Return a table."""
        lines = (f"| {n:,} x {k:,} | {float(s):.1f} | {float(mb):.0f} |" for (n, k), (s, mb) in self.found.items())
        head = "| A category of many levels, rows x levels | a fit, seconds of CPU | memory, MB |\n|---|---:|---:|"
        return "\n".join([head, *lines]) + "\n"


def run(quick: bool = False) -> list[Any]:
    """Measure every cell."""
    cells = {name: lambda size=size: rows(*size) for name, size in (CELLS | GAPS).items()} | {PENGUINS: penguins}
    if quick:
        cells = {"150 x 4, 3 classes": lambda: rows(150, 4, 3)}
    times = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in cells.items():
            times[name] = measure(*make())
            print("  ", name, {m: [float(f"{t:.3g}") for t in own] for m, own in times[name].items()}, flush=True)
    levels = Levels(LEVELS[:1] if quick else LEVELS)
    print(levels.markdown())
    return [Times(times), levels]
