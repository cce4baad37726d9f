"""TabPFN v1, a network trained on simulated tables: it runs in an environment of its own, made by `tabpfn_v1.sh`.

It needs a torch, NumPy and scikit-learn of its time, so this file is run there as a process that is sent rows and sends
probabilities back. `$TABPFN_PYTHON` names another interpreter than the one in `build/tabpfn`.

Hollmann, Müller, Eggensperger and Hutter (2023), "TabPFN: a transformer that solves small tabular classification
problems in a second", ICLR.
"""

import io
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

PYTHON = Path(os.environ.get("TABPFN_PYTHON", Path(__file__).parents[1] / "build" / "tabpfn" / "bin" / "python"))


class TabPFN(ClassifierMixin, BaseEstimator):
    """The network with four orders of columns and classes, on one thread; numbers only."""

    columns, classes, rows = 100, 10, 5000  # it takes no more of the first two; more rows take much memory

    def fit(self, X, y):
        """Keep the rows, which are the network's input."""
        if len(X) > self.rows:
            raise ValueError(f"TabPFN v1 is asked of {self.rows} rows at most, not of {len(X)}")
        self.X_, self.y_, self.classes_ = np.asarray(X, float), np.asarray(y), np.unique(y)
        return self

    def predict_proba(self, X):
        """Ask the process."""
        process = _process()
        _send(process.stdin, X=self.X_, y=self.y_, new=np.asarray(X, float))
        answer = _receive(process.stdout)
        if answer is None:
            _process.cache_clear()
            raise RuntimeError("the process of TabPFN v1 has ended")
        if "error" in answer:
            raise RuntimeError(str(answer["error"]))
        self.cpu_elsewhere_ = float(answer["cpu"])
        return answer["probability"]


@cache
def _process():
    return subprocess.Popen([PYTHON, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _send(stream, **arrays):
    message = io.BytesIO()
    np.savez(message, **arrays)
    stream.write(len(message.getvalue()).to_bytes(8, "big") + message.getvalue())
    stream.flush()


def _receive(stream):
    length = int.from_bytes(stream.read(8), "big")
    return np.load(io.BytesIO(stream.read(length))) if length else None


def serve() -> None:
    """Answer until the other side is gone."""
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # what the package prints is no message
    import torch
    from tabpfn import TabPFNClassifier

    torch.set_num_threads(1)
    while (rows := _receive(sys.stdin.buffer)) is not None:
        start = process_time()
        try:
            network = TabPFNClassifier(device="cpu", N_ensemble_configurations=4, seed=0)
            network.fit(rows["X"], rows["y"], overwrite_warning=True)
            answer = {"probability": network.predict_proba(rows["new"])}
        except Exception as error:
            answer = {"error": np.array(f"{type(error).__name__}: {error}")}
        _send(out, cpu=np.array(process_time() - start), **answer)


if __name__ == "__main__":
    serve()
