"""Damage saved files at random: ``python tests/fuzz_files.py`` writes docs/reliability/files.csv.

Each of 10,000 damaged files, bits flipped, bytes overwritten and ends cut off, must be refused with a ValueError that
names it, or predict as before. Of 10,000 more the checksum is computed anew, so that all that reads behind it sees the
damage, and of 10,000 values in the header are exchanged for others: there a number that was changed is what the file
says. Workers are limited to 1 GB and 5 s of CPU time a file. ``python tests/fuzz_files.py 0 600`` goes on for 600 s.
"""

import csv
import itertools
import json
import multiprocessing
import resource
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from safetensors import numpy as safetensors

import bayesgen as bg
from bayesgen.files import container

COUNT, SECONDS, MEMORY = 10_000, 5, 1 << 30
TABLE = Path(__file__).parents[1] / "docs" / "reliability" / "files.csv"


def estimators():
    """Fitted estimators of every kind of posterior, with rows to predict."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(40, 2)), np.repeat(["a", "b"], 20)
    x[t == "b"] += 2.0
    mixed = np.column_stack([x[:, :1], rng.poisson(2.0, (40, 2))])
    kinds = {0: "gaussian", 1: "poisson", 2: "categorical"}
    yield bg.NaiveBayesClassifier(kinds).fit(mixed, t), mixed
    yield bg.NaiveBayesClassifier(kinds, inference="map").fit(mixed, t), mixed
    yield bg.GaussianDiscriminantClassifier(shared=True).fit(x, t), x
    yield bg.LinearRegressor().fit(x, x[:, 0]), x
    yield bg.LogisticClassifier(inference="map").fit(x, t), x
    members = ["gaussian", "category", "softmax", "screened", "forest"]
    wider = np.column_stack([mixed, rng.normal(size=(40, 4))])
    features = {1: "categorical", 2: "poisson"}
    yield bg.AveragedClassifier(members=members, features=features).fit(wider, t), wider
    fitted = bg.GaussianDiscriminantClassifier("diagonal").fit(x, t)
    fitted.posterior_ = fitted.posterior_.as_draws(0)
    yield fitted, x


def damaged(content: bytes, rng) -> bytes:
    """A copy with one to three bits flipped, or some bytes overwritten, or its end cut off."""
    place = int(rng.integers(len(content)))
    kind = rng.integers(4)
    if kind == 0:
        return content[:place]
    if kind == 1:
        size = int(rng.integers(1, 9))
        other = bytes(b ^ 255 for b in content[place : place + size])
        return content[:place] + other + content[place + size :]
    changed = bytearray(content)
    for at in {place, *rng.integers(len(content), size=rng.integers(3)).tolist()}:
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def sealed(text: str, arrays) -> bytes:
    """A file of a text and arrays with their checksum; the library writes what it can read."""
    arrays.pop(container._DIGEST, None)
    seal = np.frombuffer(container.digest(text, arrays), np.uint8)
    return safetensors.save({**arrays, container._DIGEST: seal}, {container._TEXT: text})


def parts(content: bytes):
    """The text and the arrays of a file."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return header["__metadata__"][container._TEXT], safetensors.load(content)


def resealed(content: bytes, rng) -> bytes:
    """A damaged copy whose checksum fits the damage; damage that the library refuses stays as it is."""
    inner = damaged(content, rng)
    try:
        return sealed(*parts(inner))
    except Exception:
        return inner


ODD = [None, True, -1, 0, 10**12, 10**400, 1e308, "", "a" * 1000, [], {}, {"float": "nan"}, {"tuple": []}]
ODD += [{"list": [[]]}]


def places(value, path=()):
    """All places within JSON, as keys from the outermost."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def within(value, path):
    """The value at a place."""
    for key in path:
        value = value[key]
    return value


def exchanged(content: bytes, rng) -> bytes:
    """A copy in which one to three values of the text are others of the text, or odd ones, or gone."""
    text, arrays = parts(content)
    values = json.loads(text)
    for _ in range(rng.integers(1, 4)):
        found = list(places(values))[1:]
        path, other = found[rng.integers(len(found))], found[rng.integers(len(found))]
        value = ODD[rng.integers(len(ODD))] if rng.random() < 0.4 else within(values, other)
        value = json.loads(json.dumps(value))  # a copy, which a later exchange may change
        if rng.random() < 0.2:
            del within(values, path[:-1])[path[-1]]
        else:
            within(values, path[:-1])[path[-1]] = value
    return sealed(json.dumps(values), arrays)


def predicted(estimator, rows):
    """Return the answers of an estimator for rows, as numbers."""
    return estimator.predict_proba(rows) if hasattr(estimator, "predict_proba") else estimator.predict(rows)


def outcome(path, rows, want) -> str:
    """Return the outcome of a damaged file; one that says its columns hold other things may refuse the rows."""
    estimator, (probability, schema) = None, want
    try:
        estimator = bg.load(path)
        got = predicted(estimator, rows)
    except ValueError as error:
        if estimator is not None and estimator.schema_ != schema:
            return "other numbers"
        return "refused" if str(path) in str(error) else f"refused without its name: {error}"
    except MemoryError:
        return "more than 1 GB"
    return "equal" if np.array_equal(got, probability) else "other numbers"


def work(connection, path, make, seed, rows, want, good):
    """Damage one file again and again, in a process with limits; tell each outcome, and how long it took."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    while True:
        case = connection.recv()
        path.write_bytes(make(good, np.random.default_rng([seed, case])))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of CPU time, which ends the process, wherever it is
        start = time.process_time()
        try:
            said = outcome(path, rows, want)
        except Exception as error:
            said = f"raised {error!r:.200}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.send((said, time.process_time() - start))


class Worker:
    """A limited process, started anew where a file ended it."""

    def __init__(self, *arguments):
        self.arguments, self.process = arguments, None

    def ask(self, case):
        """The outcome of a case, and its seconds."""
        if self.process is None:
            self.connection, other = multiprocessing.Pipe()
            context = multiprocessing.get_context("fork")
            self.process = context.Process(target=work, args=(other, *self.arguments), daemon=True)
            self.process.start()
            other.close()
        self.connection.send(case)
        try:
            return self.connection.recv()
        except EOFError:
            self.process.join()
            code, self.process = self.process.exitcode, None
            return (f"over {SECONDS} s" if code == -signal.SIGPROF else f"ended by signal {-code}"), float(SECONDS)

    def stop(self):
        """End the process."""
        if self.process is not None:
            self.process.terminate()
            self.process.join()


DAMAGES = {"as it happens": damaged, "checksum computed anew": resealed, "values exchanged": exchanged}
KNOWN = ("refused", "equal", "other numbers")


def main(count=COUNT, seconds=0):
    """Damage all files so many times and write the table; or go on for so many seconds."""
    table, bad, end = [], [], time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        cases = []
        for number, (fitted, rows) in enumerate(estimators()):
            path = Path(folder) / f"{number}.safetensors"
            fitted.save(path)
            cases.append((path, rows, (predicted(fitted, rows), fitted.schema_), path.read_bytes()))
        for number, (damage, make) in enumerate(DAMAGES.items(), 1):
            said, slowest = [], 0.0
            workers = [Worker(path, make, i, rows, want, good) for i, (path, rows, want, good) in enumerate(cases)]
            stop = end - seconds + seconds * number / len(DAMAGES)
            for case in itertools.count():
                if time.monotonic() > stop if seconds else case == count:
                    break
                result, took = workers[case % len(workers)].ask(case)
                slowest = max(slowest, took)
                said.append(result)
                if result not in KNOWN:
                    bad.append((damage, case % len(workers), case, result))
            for worker in workers:
                worker.stop()
            known = [said.count(kind) for kind in KNOWN]
            table.append([damage, len(said), *known, len(said) - sum(known), f"{slowest:.2f}"])
            print(*table[-1], sep=", ", flush=True)
    for case in bad[:20]:
        print(*case)
    if not seconds:
        with TABLE.open("w", newline="") as file:
            header = ["damage", "files", "refused", "equal predictions", "other numbers", "beyond limits", "slowest, s"]
            csv.writer(file, lineterminator="\n").writerows([header, *table])
    return any(row[5] or (row[0] == "as it happens" and row[4]) for row in table)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
