"""Times of the two ways for rows with gaps, beside the costs by which `bayesgen.averaging.engines` chooses among them.

`python -m benchmarks.engines` prints microseconds a row, medians of interleaved repetitions, for tables of D columns,
rows that lack k of them, and so many rows that share one pattern of gaps.
"""

import time

import numpy as np

import bayesgen as bg
from bayesgen.averaging import engines
from bayesgen.averaging.fitted_view import FittedView
from benchmarks.timing import medians


def fitted(dim: int) -> tuple[FittedView, np.ndarray]:
    """Return the Gaussian members of an average of three classes, and its rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = (rng.normal(size=(300, dim)) + 0.7 * y[:, None]) @ rng.normal(size=(dim, dim))
    average = bg.AveragedClassifier(members=["gaussian"]).fit(X, y).posterior_
    return next(part for part in average.parts if isinstance(part, FittedView)), X


def main() -> None:
    """Print a line for each kind of rows."""
    rng, every = np.random.default_rng(1), dict(engines.COSTS)
    for dim in (4, 10, 20, 40):
        view, X = fitted(dim)
        used = np.arange(len(view.members))
        for lack in sorted({1, 2, dim // 2}):
            for rows in (1, 4, 16, 64):
                patterns = np.array([~np.isin(np.arange(dim), rng.choice(dim, lack, replace=False)) for _ in range(8)])
                seen = np.repeat(patterns, rows, axis=0)
                y = view.view.read(X[rng.integers(0, len(X), len(seen))])[0]

                def ask(way, view=view, y=y, seen=seen, used=used):
                    engines.COSTS.clear()
                    engines.COSTS[way] = every[way]
                    known = vars(view.engines)  # what is derived for a pattern counts
                    known["_models"] = {key: found for key, found in known["_models"].items() if key[1] is None}
                    view.of_bent(y, seen, used)

                times = medians({way: lambda way=way, ask=ask: ask(way) for way in every}, clock=time.process_time)
                engines.COSTS.clear()
                engines.COSTS |= every
                chosen = engines.choose(np.full(2, rows), np.full(2, lack), dim)[0]
                told = ", ".join(f"{way} {1e6 * seconds / len(seen):.0f}" for way, seconds in times.items())
                print(f"D {dim}, lacking {lack}, {rows} rows a pattern: {told}; chosen: {chosen}")


if __name__ == "__main__":
    main()
