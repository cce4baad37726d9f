"""Fifty clients of a service at once: ``python tests/serving.py [NAME ...]`` writes docs/reliability/serving.csv.

Three classifiers are saved, and each is served by ``docs/serve/app.py`` in a process of its own, one worker of uvicorn.
50 clients send 20,000 requests, a row each, the next when the last one was answered: most to ``/predict``, some to
``/explain``. Every answer must be the one that the classifier gives here, asked for one row by one thread, to the last
digit. The resident memory of the service is read after 2,000 requests, when all its threads worked, and at the end.
Writes the lines of the classifiers named, or all.
"""

import csv
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pandas as pd

import bayesgen as bg

ROOT = Path(__file__).parents[1]
SERVE, TABLE = ROOT / "docs" / "serve", ROOT / "docs" / "reliability" / "serving.csv"
CLIENTS, REQUESTS, BEGUN = 50, 20_000, 2_000
EXPLAINED = {"naive Bayes": 10, "discriminant with gaps": 10, "averaged": 500}  # one of so many; the average is slow
FEW = 8  # rows to explain

rng = np.random.default_rng(0)
Y = np.where(rng.random(120) < 0.4, "ill", "well")
ILL = Y == "ill"
X = pd.DataFrame(
    {
        "blood pressure": rng.normal(120 + 20 * ILL, 10).round(1),
        "visits": rng.poisson(1.0 + 2 * ILL),
        "income": np.exp(rng.normal(7.0, 1.0, 120)).round(2),
        "town": rng.choice(["north", "south"], 120),
        "smoker": rng.random(120) < 0.3 + 0.2 * ILL,
        "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300 * 24 * 60, 120), unit="min"),
    }
)
X.loc[::7, "blood pressure"] = np.nan
NUMBERS = X[["blood pressure", "income"]]
FEATURES = {"visits": "poisson", "income": "log", "since": "date"}
BUILT = {
    "naive Bayes": (bg.NaiveBayesClassifier(FEATURES, random_state=0), X),
    "discriminant with gaps": (bg.GaussianDiscriminantClassifier(inference="map", random_state=0), NUMBERS),
    "averaged": (bg.AveragedClassifier(members="generative", features=FEATURES, random_state=0), X),
}


def saved(name: str, folder: Path):
    """A classifier that was fitted, and its rows; its file and one of costs are written into the folder."""
    unfitted, rows = BUILT[name]
    classifier = unfitted.fit(rows, Y)
    classifier.save(folder / "model.safetensors")
    costs(folder)
    return classifier, rows


def costs(folder: Path) -> None:
    """Write what it costs to treat, or to wait."""
    pd.DataFrame({"class": ["ill", "well"], "treat": [0, 1], "wait": [10, 0]}).to_csv(folder / "costs.csv", index=False)


def as_json(rows) -> list[dict]:
    """Return rows as a client sends them: missing entries are left out."""
    records = rows.assign(since=rows["since"].dt.strftime("%Y-%m-%dT%H:%M")) if "since" in rows else rows
    return [{k: v for k, v in own.items() if v == v} for own in records.to_dict("records")]


@dataclass
class Load:
    """The results of many requests: requests that failed, answers that differ, megabytes, seconds of each request."""

    failed: int
    different: int
    before: float
    after: float
    seconds: np.ndarray
    wall: float


@contextmanager
def served(folder: Path):
    """The process of a service of the folder's files, and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"MODEL": str(folder / "model.safetensors"), "COSTS": str(folder / "costs.csv"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "uvicorn", "app:app", "--app-dir", str(SERVE), "--port", str(port)]
    process = subprocess.Popen([*command, "--log-level", "warning"], env=os.environ | settings)
    try:
        for _ in range(600):
            try:
                if ask(HTTPConnection("127.0.0.1", port), "GET", "/health")[0] == 200:
                    break
            except ConnectionRefusedError:
                if process.poll() is not None:
                    raise RuntimeError("the service ended before it was ready") from None
                time.sleep(0.1)
        yield process, port
    finally:
        process.terminate()
        process.wait()


def ask(connection: HTTPConnection, method: str, path: str, body=None) -> tuple[int, object]:
    """The status and the answer of one request."""
    connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def resident(process) -> float:
    """Megabytes of memory that a process has (Linux)."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def load(name: str, folder: Path) -> Load:
    """Serve a classifier and ask it."""
    classifier, rows = saved(name, folder)
    every = EXPLAINED[name]
    sent, alone = as_json(rows), [rows[i : i + 1] for i in range(len(rows))]
    classes = classifier.classes_.tolist()
    probability = [dict(zip(classes, classifier.predict_proba(row)[0].tolist(), strict=True)) for row in alone]
    predicted = [[{"class": max(p, key=p.get), "probability": p}] for p in probability]
    explained = [classifier.explain(row, row=0).to_dict() for row in alone[:FEW]]

    def client(numbers) -> list[tuple[str, float]]:
        connection, came = HTTPConnection("127.0.0.1", port, timeout=120), []
        for number in numbers:
            i, result, start = number % len(sent), "failed", time.perf_counter()
            path, body, right = "/predict", [sent[i]], predicted[i]
            if (number // CLIENTS + number) % every == 0:  # each client in its turn
                j = number % FEW
                path, body, right = "/explain", sent[j], explained[j]
            try:
                status, answer = ask(connection, "POST", path, body)
                if status == 200:
                    result = "equal" if answer == right else "different"
            except OSError:
                connection.close()
            came.append((result, time.perf_counter() - start))
        return came

    def together(first, last) -> list[tuple[str, float]]:
        with ThreadPoolExecutor(CLIENTS) as pool:
            each = pool.map(client, [range(first + k, last, CLIENTS) for k in range(CLIENTS)])
            return [one for own in each for one in own]

    with served(folder) as (process, port):
        start = time.perf_counter()
        came = together(0, BEGUN)
        before = resident(process)
        came += together(BEGUN, REQUESTS)
        wall, after = time.perf_counter() - start, resident(process)
    count = Counter(result for result, _ in came)
    return Load(count["failed"], count["different"], before, after, np.array([own for _, own in came]), wall)


def main(*names: str) -> bool:
    """Ask the classifiers named, or all, and write their lines; return True if anything failed."""
    columns = ["classifier", "requests", "explanations", "failed", "different answers"]
    columns += [f"MB after {BEGUN}", "MB at the end", "requests a second", "median, ms", "99 %, ms"]
    lines, bad = {}, 0
    if TABLE.exists():
        with TABLE.open(newline="") as file:
            lines = {line[0]: line for line in csv.reader(file)}
    for name in names or BUILT:
        with tempfile.TemporaryDirectory() as folder:
            found = load(name, Path(folder))
        bad += found.failed + found.different
        memory = [f"{own:.0f}" for own in (found.before, found.after)]
        times = [f"{1000 * own:.0f}" for own in np.quantile(found.seconds, [0.5, 0.99])]
        asked = [REQUESTS, REQUESTS // EXPLAINED[name], found.failed, found.different]
        lines[name] = [name, *asked, *memory, f"{REQUESTS / found.wall:.0f}", *times]
        print(*lines[name], sep=", ", flush=True)
        with TABLE.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([columns, *(lines[own] for own in BUILT if own in lines)])
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
