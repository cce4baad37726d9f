"""Alarms of `inspection.Watch` in streams with and without a change, and of other packages' on the same streams.

`python -m benchmarks.drift law codes false long power peers` measures all in half an hour of a core, or some of it, and
keeps the lines in docs/reliability/watch.csv. `law` is the promise: of 200 streams of each of the least favourable
kinds 21 at most alarm at level .05, which one kind in 1,500 at the level itself would break by chance. The peers need
`pip install crepes mapie river`: crepes and MAPIE bet on the same ranks of the same columns with thresholds by the same
union bound; river's detectors look at the columns themselves, at their defaults.
"""

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from bayesgen import NaiveBayesClassifier
from bayesgen.inspection import Watch
from bayesgen.numerics.betting import Bets, Ranks

RESULTS = Path(__file__).parent.parent / "docs/reliability/watch.csv"
COLUMNS = ["measured", "on", "streams", "rows", "alarms", "before the change", "median delay", "error of its begin"]
KNOWN, LEVEL = 100, 0.05
NAMES = ["a", "b", "c", "d"]


def heavy(n, rng):
    """Student-t columns with 2 degrees of freedom, two of which tell the class."""
    y = rng.integers(0, 2, n)
    return pd.DataFrame(rng.standard_t(2, (n, 4)) + y[:, None] * [1.5, 0.7, 0, 0], columns=NAMES), y


def categories(n, rng):
    """Text of 2, 3, 5 and 8 categories, rare ones among them."""
    y = rng.integers(0, 2, n)
    shares = [[0.3, 0.7], [0.02, 0.28, 0.7], [0.1, 0.2, 0.3, 0.2, 0.2], [0.01, 0.02, 0.03, 0.04, 0.2, 0.2, 0.2, 0.3]]
    columns = {c: rng.choice(list("pqrstuvw")[: len(p)], n, p=p) for c, p in zip(NAMES, shares, strict=True)}
    return pd.DataFrame({c: pd.Categorical(v, list("pqrstuvw")) for c, v in columns.items()}), y


def gaps(n, rng):
    """Normal columns with gaps of 1 to 60 %, more of them where the first column is high."""
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 4)) + y[:, None]
    lost = rng.random((n, 4)) < np.array([0.01, 0.1, 0.3, 0.6]) * (0.5 + 0.5 * (x[:, :1] > 0))
    return pd.DataFrame(np.where(lost, np.nan, x), columns=NAMES), y


def ties(n, rng):
    """Counts, tenths, halves, and zeros in four of five rows."""
    y = rng.integers(0, 2, n)
    x = [rng.poisson(2, n), rng.normal(size=n).round(1), (2 * rng.normal(size=n)).round() / 2]
    return pd.DataFrame(np.column_stack([*x, rng.exponential(size=n) * (rng.random(n) < 0.2)]), columns=NAMES), y


TABLES = {f.__name__: f for f in (heavy, categories, gaps, ties)}


def false_alarms(count: int, rows: int = 1000):
    """Yield lines of streams without a change: each kind of table, and what a classifier says."""
    for name, make in TABLES.items():
        alarms = 0
        for seed in range(count):
            rng = np.random.default_rng(seed)
            watch = Watch.from_rows(*make(KNOWN, rng), random_state=seed)
            alarms += bool(watch.update(*make(rows, rng)))
        yield ["no change", name, count, rows, alarms]
    for name, left_out in {"classifier, other rows known": False, "classifier, rows of its fit left out": True}.items():
        alarms = 0
        for seed in range(count):
            rng = np.random.default_rng(seed)
            fitted = heavy(KNOWN, rng)
            classifier, known = NaiveBayesClassifier().fit(*fitted), heavy(KNOWN, rng)
            asked = ["score", "shares", "density"]
            watch = Watch.from_rows(*(fitted if left_out else known), classifier, left_out=left_out, parts=asked)
            alarms += bool(watch.update(*heavy(rows, rng)))
        yield ["no change", name, count, rows, alarms]


def zipf(codes: int):
    """Return probabilities of so many codes, the k-th in proportion to 1/k."""
    share = 1 / np.arange(1, codes + 1)
    return share / share.sum()


def _texts(values):
    return pd.DataFrame({"code": pd.Series(values).map("c{}".format)})


def _thirty(n, rng):
    codes = {f"c{i}": pd.Series(rng.zipf(1.2 + i / 10, n) % 1000).map("c{}".format) for i in range(8)}
    numbers = pd.DataFrame(rng.standard_t(2, (n, 14)), columns=[f"x{i}" for i in range(14)])
    lost = pd.DataFrame(np.where(rng.random((n, 8)) < 0.01 * np.arange(8), np.nan, 1.0)).add_prefix("gap")
    return pd.concat([pd.DataFrame(codes), numbers, lost], axis=1), None


def _rare_labels(n, rng):
    y = rng.choice(["a", "b", "c", "d", "e"], n, p=[0.9, 0.08, 0.01, 0.006, 0.004])
    return _texts(rng.choice(3, n)).assign(x=rng.normal(size=n) + (y != "a")), y


def _gaps_by_value(n, rng):
    x = rng.standard_cauchy((n, 3))
    lost = np.column_stack([x[:, 0] > 1, x[:, 1] > x[:, 0], rng.random(n) < 0.003])
    return pd.DataFrame(np.where(lost, np.nan, x), columns=list("abc")), None


def _of_all_kinds(n, rng):
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 50, n), unit="D")
    X = _texts(rng.zipf(1.5, n) % 99).assign(day=days, x=rng.poisson(0.3, n) * 1.0, b=rng.random(n) < 0.1)
    return X, rng.choice(list("uv"), n)


KINDS = {  # rows known, and the rows: nothing changes in any of them
    "200 Zipf codes, 100 known": (100, lambda n, rng: (_texts(rng.choice(200, n, p=zipf(200))), None)),
    "400 codes, 200 known": (200, lambda n, rng: (_texts(rng.integers(0, 400, n)), None)),
    "codes without end": (50, lambda n, rng: (_texts(rng.zipf(1.2, n)), None)),
    "rare codes": (100, lambda n, rng: (_texts(np.where(rng.random(n) < 0.05, rng.integers(0, 20, n), 99)), None)),
    "one code late": (100, lambda n, rng: (_texts(rng.random(n) < 0.005), None)),
    "a code once": (100, lambda n, rng: (_texts(rng.integers(0, 10**12, n)), None)),
    "ties": (20, ties),
    "gaps by value": (30, _gaps_by_value),
    "three rows known": (3, _of_all_kinds),
    "no row known": (0, _of_all_kinds),
    "thirty columns": (100, _thirty),
    "rare labels": (60, _rare_labels),
    "a few odd rows in a shuffled table": (
        100,
        lambda n, rng: (_texts(rng.permutation(np.arange(n) * (np.arange(n) < 12))), None),
    ),
}


def alarmed(kind: str, seed: int, rows: int = 400, level: float = LEVEL) -> bool:
    """Return True if the watch alarms in a stream without a change."""
    known, make = KINDS[kind]
    rng = np.random.default_rng(seed)
    X, y = make(known + rows, rng)
    then = None if y is None else y[known:]
    if known:
        watch = Watch.from_rows(X[:known], None if y is None else y[:known], level=level, random_state=seed)
    else:
        classifier = NaiveBayesClassifier(unseen="missing", features={"day": "date"}).fit(*make(60, rng))
        watch = Watch(classifier, level=level, random_state=seed)
    return bool(watch.update(X[known:], then))


def law(count: int):
    """Yield lines of streams of the least favourable kinds, without a change."""
    for kind in KINDS:
        alarms = sum(alarmed(kind, seed) for seed in range(count))
        yield ["no change, the law", kind, count, 400, alarms]
        assert alarms <= 21 * count / 200, f"{kind}: {alarms} of {count} streams alarm"


def _mixed(often, code):
    return lambda n, rng: np.where(rng.random(n) < often, code(n, rng), rng.choice(30, n, p=zipf(30)))


def _exchanged(share, i, j):
    place = np.arange(len(share))
    place[[i, j]] = place[[j, i]]
    return lambda n, rng: rng.choice(len(share), n, p=share[place])


TWO = np.append([0.3, 0.1], np.full(28, 0.6 / 28))
CODES = {  # shares of 30 codes, and the codes after the change
    "a new code in a tenth of the rows": (zipf(30), _mixed(0.1, lambda n, rng: np.full(n, 99))),
    "a new code in a fifth": (zipf(30), _mixed(0.2, lambda n, rng: np.full(n, 99))),
    "new codes, each once, in a fifth": (zipf(30), _mixed(0.2, lambda n, rng: rng.integers(10**6, 10**12, n))),
    "the first and the tenth code change places": (zipf(30), _exchanged(zipf(30), 0, 9)),
    "codes of .3 and .1 change places": (TWO, _exchanged(TWO, 0, 1)),
    "the first code is lost": (
        zipf(30),
        lambda n, rng: rng.choice(np.arange(1, 30), n, p=zipf(30)[1:] / zipf(30)[1:].sum()),
    ),
}


def codes(count: int, known: int = 200, after: int = 400):
    """Yield lines of a column of codes that changes with the first row after those that are known."""
    for name, (share, changed) in CODES.items():
        delays = []
        for seed in range(count):
            rng = np.random.default_rng(seed)
            watch = Watch.from_rows(_texts(rng.choice(len(share), known, p=share)), random_state=seed)
            delays += (
                [min(alarm.row for alarm in watch.alarms) + 1] if watch.update(_texts(changed(after, rng))) else []
            )
        yield [name, f"{known} rows known", count, after, len(delays), None, np.median(delays) if delays else None]


def long_streams(count: int, rows: int = 20_000):
    """Yield lines of long streams without a change, betting on all of them at once, and the size of a saved watch."""
    rng, parts = np.random.default_rng(0), 9
    tables = [TABLES[name](KNOWN + rows, rng) for name, _ in zip(TABLES, range(4), strict=True)]
    sizes = []
    for X, y in tables:
        watch = Watch.from_rows(X[:KNOWN], y[:KNOWN])
        watch.update(X[KNOWN:], y[KNOWN:])
        with tempfile.TemporaryDirectory() as folder:
            watch.save(path := Path(folder) / "state.safetensors")
            sizes.append(path.stat().st_size)
    yield ["largest state, kB", "all tables", len(sizes), rows, round(max(sizes) / 1000)]
    draws = [lambda n: rng.standard_t(2, n), lambda n: rng.standard_cauchy(n), lambda n: rng.poisson(2, n) * 1.0]
    draws += [
        lambda n: rng.normal(size=n),
        *[lambda n, p=p: (rng.random(n) < p) * 1.0 for p in (0, 0.01, 0.1, 0.3, 0.5)],
    ]
    ranks = [[Ranks.of(draw(KNOWN), 4096) for draw in draws] for _ in range(count)]
    bets, highest = Bets.start(count * parts, KNOWN), np.zeros(count * parts)
    for _ in range(0, rows, 500):
        p = [r.rank(draw(500), rng.random(500))[0] for each in ranks for r, draw in zip(each, draws, strict=True)]
        highest = np.maximum(highest, bets.take(np.array(p).T).max(0))
    alarms = (highest.reshape(count, parts).max(1) >= np.log(parts / LEVEL)).sum()
    yield ["no change", "heavy tails, ties, gaps", count, rows, int(alarms)]


def _moderate(n, rng, offset=0.0, prevalence=0.3):
    y = (rng.random(n) < prevalence) * 1
    return pd.DataFrame(rng.standard_t(4, (n, 4)) + offset + y[:, None] * [1.5, 0.7, 0, 0], columns=NAMES), y


def _blank(X):
    return X.assign(a=np.nan)


CHANGES = {  # the offset of the table, the share of class 1 after the change, and what happens to the columns
    "one unit higher": (0, 0.3, lambda X: X.assign(a=X.a + 1)),
    "a centred column x 10": (0, 0.3, lambda X: X.assign(a=X.a * 10)),
    "a positive column x 10": (20, 0.3, lambda X: X.assign(a=X.a * 10)),
    "prevalence .3 to .6": (0, 0.6, lambda X: X),
    "a column goes blank": (0, 0.3, _blank),
}


def power(count: int, known: int = KNOWN, before: int = 100, after: int = 300):
    """Yield lines of streams that change."""
    for name, (offset, prevalence, change) in CHANGES.items():
        early, delays, errors = 0, [], []
        for seed in range(count):
            rng = np.random.default_rng(seed)
            watch = Watch.from_rows(*_moderate(known, rng, offset), random_state=seed)
            early += bool(watch.update(*_moderate(before, rng, offset)))
            X, y = _moderate(after, rng, offset, prevalence)
            if not watch.alarms and (found := watch.update(change(X), y)):
                first = min(found, key=lambda alarm: alarm.row)
                delays.append(first.row - before + 1)
                errors.append(abs(first.since - before))
        yield [
            name,
            f"{known} rows known",
            count,
            before + after,
            len(delays),
            early,
            np.median(delays),
            np.median(errors),
        ]


def _peers():
    """Return detectors by name: from ranks (n, m) and values (n, m) to the first row of an alarm, or None."""
    from crepes import martingales
    from mapie.exchangeability_testing import OnlineMartingaleTest
    from river import drift

    def first(hits):
        return int(hits.argmax()) if hits.any() else None

    def of_crepes(make):
        return lambda p, x: first((np.array([make().apply(c) for c in p.T]) >= p.shape[1] / LEVEL).any(0))

    def of_mapie(p, x):
        rows = []
        for column in p.T:
            test = OnlineMartingaleTest(warn=False)
            rows += [
                t for t, one in enumerate(column) if test.update_simple_jumper_martingale(one) >= p.shape[1] / LEVEL
            ][:1]
        return min(rows, default=None)

    def of_river(make):
        def found(p, x):
            rows = []
            for column in x.T:
                detector = make()
                for t, one in enumerate(column):
                    detector.update(one)
                    if detector.drift_detected and t >= KNOWN:
                        rows.append(t - KNOWN)
                        break
            return min(rows, default=None)

        return found

    kinds = {"SimpleJumper": martingales.SimpleJumper, "SleeperStayer": martingales.SleeperStayer}
    found = {f"crepes {name}": of_crepes(kind) for name, kind in kinds.items()} | {"MAPIE jumper": of_mapie}
    return (
        found
        | {f"river {k.__name__}": of_river(k) for k in (drift.ADWIN, drift.PageHinkley, drift.KSWIN)}
        | {"bayesgen": _ours}
    )


def _ours(p, x):
    hits = (Bets.start(p.shape[1], KNOWN).take(p) >= np.log(p.shape[1] / LEVEL)).any(1)
    return int(hits.argmax()) if hits.any() else None


def peers(count: int, before: int = 100, after: int = 300):
    """Yield lines of other packages' detectors on the four columns."""
    detectors = _peers()
    for name in ("no change", "one unit higher", "a centred column x 10"):
        offset, _, change = CHANGES.get(name, (0, 0.3, lambda X: X))
        lines = {who: (0, []) for who in detectors}
        for seed in range(count):
            rng = np.random.default_rng(seed)
            known, quiet = _moderate(KNOWN, rng, offset)[0], _moderate(before, rng, offset)[0]
            new = pd.concat([quiet, change(_moderate(after, rng, offset)[0])]).to_numpy()
            ranks = [
                Ranks.of(known[c].to_numpy(), 4096).rank(new[:, j], rng.random(len(new)))[0]
                for j, c in enumerate(known)
            ]
            for who, detect in detectors.items():
                row = detect(np.array(ranks).T, np.vstack([known, new]))
                early, delays = lines[who]
                if row is not None and row < before and name != "no change":
                    lines[who] = early + 1, delays
                elif row is not None:
                    delays.append(row - before + 1)
        for who, (early, delays) in lines.items():
            line = [name, f"{who}: four columns", count, before + after, len(delays)]
            yield line if name == "no change" else [*line, early, np.median(delays) if delays else None]


WHAT = {
    "law": lambda quick: law(10 if quick else 200),
    "codes": lambda quick: codes(10 if quick else 200),
    "false": lambda quick: false_alarms(10 if quick else 200),
    "long": lambda quick: long_streams(2 if quick else 200, 2000 if quick else 20_000),
    "power": lambda quick: (line for known in (KNOWN, 500) for line in power(10 if quick else 200, known)),
    "peers": lambda quick: peers(5 if quick else 200),
}


def main() -> None:
    """Measure what is asked for, and put its lines in place of older ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__)
    parser.add_argument("what", nargs="*", help=f"of {', '.join(WHAT)}; default all")
    parser.add_argument("--quick", action="store_true", help="few streams, to see that all runs; writes nothing")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for what in arguments.what or WHAT:
        for line in WHAT[what](arguments.quick):
            row = pd.DataFrame([[*line, *[None] * (len(COLUMNS) - len(line))]], columns=COLUMNS, dtype=object)
            print(*line, sep=", ", flush=True)
            if not arguments.quick:
                kept = pd.read_csv(RESULTS, dtype=object) if RESULTS.exists() else row[:0]
                others = kept[~((kept.measured == line[0]) & (kept.on == line[1]))]
                pd.concat([others, row]).to_csv(RESULTS, index=False)


if __name__ == "__main__":
    main()
