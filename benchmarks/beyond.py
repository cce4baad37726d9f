"""Rows beyond memory: fits of Parquet files by batches, against bare scans of pyarrow that sum the columns.

Each fit runs in a process of its own, whose peak memory is its own; CPU seconds are of all its threads. Scans
and fits take turns, and medians are compared. Sizes are in millions of rows: `python -m benchmarks beyond`, or
`python -m benchmarks.beyond 1 10 100` (4 GB of disk at 100).
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import Table

COLUMNS = [f"x{j}" for j in range(10)]
CLASSES = 3
SCANS = {"scan": "scan", "leanest scan": "leanest scan, one thread"}
FITS = ("naive Bayes", "mixed naive Bayes", "full discriminant")
_GROUP = 1_000_000  # rows of a row group


def write(path: Path, millions: int) -> None:
    """Write a file of 10 columns of float32 (four Gaussian, three counts, three bits) and a class."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    schema = pa.schema([("t", pa.int8()), *((name, pa.float32()) for name in COLUMNS)])
    with parquet.ParquetWriter(path, schema, compression="NONE", use_dictionary=False) as writer:
        for _ in range(millions):
            t = rng.integers(CLASSES, size=_GROUP).astype(np.int8)
            x = rng.normal(size=(10, _GROUP)).astype(np.float32) + 0.5 * t
            x[4:7] = rng.poisson(1.0 + t, size=(3, _GROUP))
            x[7:] = rng.random((3, _GROUP)) < 0.2 + 0.2 * t
            writer.write_table(pa.table([t, *x.astype(np.float32)], schema=schema))


def once(kind: str, path: str, workers: int) -> dict[str, float]:
    """Time one kind of work on a file: CPU and wall seconds, and the peak memory of this process in MB."""
    import time

    import pyarrow.compute as pc
    from pyarrow import dataset, parquet

    import bayesgen as bg

    families = {**dict.fromkeys(COLUMNS[4:7], "poisson"), **dict.fromkeys(COLUMNS[7:], "bernoulli")}
    fits = {
        "naive Bayes": bg.NaiveBayesClassifier(),
        "mixed naive Bayes": bg.NaiveBayesClassifier(families),
        "full discriminant": bg.GaussianDiscriminantClassifier(),
    }
    fits["naive Bayes"].fit_batches([([[0.0], [1.0]], [0, 1])])  # late imports are no part of the rate
    start, wall = time.process_time(), time.perf_counter()
    if kind in SCANS:
        if kind == "scan":
            batches = dataset.dataset(path).to_batches(columns=COLUMNS)
        else:  # all groups in one call take three times the CPU time, for memory that is fresh
            file = parquet.ParquetFile(path)
            how: dict = {"columns": COLUMNS, "use_threads": False}
            groups = range(file.num_row_groups)
            batches = (batch for g in groups for batch in file.iter_batches(1 << 16, row_groups=[g], **how))
        for batch in batches:
            for column in batch.columns:
                pc.sum(column)  # type: ignore[attr-defined]
    else:
        fits[kind].fit_batches(path, "t", classes=list(range(CLASSES)), workers=workers)
    cpu, wall = time.process_time() - start, time.perf_counter() - wall
    lines = Path("/proc/self/status").read_text().splitlines()  # `getrusage` has the peak of whoever began us in it
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return {"cpu": cpu, "wall": wall, "peak": peak / 1024}


def measured(path: Path, repeats: int, workers: int = 2) -> dict[str, dict[str, float]]:
    """Medians of CPU, wall seconds and peak memory of every kind, taken in turns in fresh processes."""
    runs: dict[str, list] = {kind: [] for kind in (*SCANS, *FITS)}
    for _ in range(repeats):
        for kind in runs:
            command = [sys.executable, "-m", "benchmarks.beyond", "--once", kind, str(path), str(workers)]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}
            )
            runs[kind].append(json.loads(done.stdout))
    return {kind: {w: statistics.median(run[w] for run in own) for w in own[0]} for kind, own in runs.items()}


def group(path: str, number: int):
    """A row group as a table: a partition of Dask."""
    from pyarrow import parquet

    return parquet.ParquetFile(path).read_row_group(number, use_threads=False)


def on_dask(path: Path, workers: int, groups: int) -> float:
    """Seconds of a naive Bayes fit on workers of one thread, the quickest of three; the first only wakes them."""
    import time

    from dask.delayed import delayed
    from dask.distributed import Client, LocalCluster

    import bayesgen as bg

    seconds = []
    how = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**how) as cluster, Client(cluster):
        for _ in range(4):
            parts = [
                delayed(group)(str(path), number, dask_key_name=f"{time.time()}-{number}") for number in range(groups)
            ]
            start = time.perf_counter()
            bg.NaiveBayesClassifier().fit_batches(parts, "t", classes=list(range(CLASSES)))
            seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def run(quick: bool = False, sizes=(1, 10)) -> list[Table]:
    """Measure every size; the ratio is the CPU time of the scan over ours, and the goal a half."""
    table = Table(
        "Beyond memory",
        "10 columns of float32 and a class in one Parquet file, fitted by `fit_batches` on two threads, against scans "
        "of pyarrow that read the ten columns and sum each: as one writes it (`dataset.to_batches`), and the leanest, "
        "a row group after the other on one thread in batches of 65,536 rows. Ratios are of CPU seconds; those on the "
        "clock, where scan and fit both have all cores, and that of Dask, whose workers are processes of one thread, "
        "are of seconds that pass.",
    )
    peaks: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for millions in (1,) if quick else sizes:
            path = Path(folder) / "rows.parquet"
            write(path, millions)
            found = measured(path, 1 if quick else 3)
            for kind, own in found.items():
                peaks.setdefault(kind, {})[millions] = own["peak"]
                for scan, name in SCANS.items():
                    if kind in FITS:
                        table.add(f"{kind}, {millions}e6 rows", name, found[scan]["cpu"] / own["cpu"], 0.5)
                if kind in FITS:
                    rate = found["scan"]["wall"] / own["wall"]
                    table.add(f"{kind}, {millions}e6 rows: on the clock", SCANS["scan"], rate, 0.5)
            if millions >= 10:
                one, two = (on_dask(path, workers, millions) for workers in (1, 2))
                table.add(f"naive Bayes on Dask, {millions}e6 rows: two workers", "one worker", one / two, 1.6)
    lines = [
        f"- {kind}: " + ", ".join(f"{peak:.0f} MB at {millions}e6 rows" for millions, peak in own.items())
        for kind, own in peaks.items()
    ]
    table.note += "\n\nPeak memory of the whole process, imports included:\n\n" + "\n".join(lines)
    return [table]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        print(json.dumps(once(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        from benchmarks.__main__ import write as keep

        keep("beyond", "\n".join(t.markdown() for t in run(sizes=[int(size) for size in sys.argv[1:]])))
