"""Streams: an average that learns on, against one that is fitted anew, and learners of scikit-learn and river.

`python -m benchmarks.stream steady moved tables` measures all, or some of it, and keeps the lines in
docs/reliability/stream.csv. `steady` and `moved` are 10,000 rows in pieces of 100: six numbers, one of them skewed, and
two categories, of two classes; in `moved` an offset is added to two columns from row 5,000 on. Each piece is predicted,
then learned. The average is fitted to the first 1,000 rows; "anew" is fitted to all rows (of `moved`: to the latest
2,000) at each tenth and predicts the next. Log losses are means over the rows of a tenth after the first. `tables` are
twelve development sets, two thirds of each learned in ten pieces or fitted whole, scored on the other third. River is
`pip install river`.
"""

import argparse
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from bayesgen import AveragedClassifier, NaiveBayesClassifier
from benchmarks.quality import FLOOR
from benchmarks.rivals import table

RESULTS = Path(__file__).parent.parent / "docs/reliability/stream.csv"
COLUMNS = ["measured", "model", "tenth", "log_loss", "seconds"]
ROWS, PIECE, FIRST = 10_000, 100, 1000
SETS = (
    "iris",
    "wine",
    "wdbc",
    "penguins",
    "pima",
    "bupa",
    "vowel",
    "australian",
    "tae",
    "hayes-roth",
    "breast",
    "tic-tac-toe",
)


def rows(kind: str, seed: int = 0):
    """Rows and codes of their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, ROWS)
    X = rng.normal(size=(ROWS, 6)) + y[:, None] * [0.8, 0.5, 0.3, 0, 0, 0]
    X[:, 1] = np.exp(X[:, 1])
    X[:, 3] += 0.8 * X[:, 0] * np.where(y, 1, -1)
    if kind == "moved":
        X[ROWS // 2 :, [0, 3]] += [1.5, -1.0]
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    frame["c"] = pd.Categorical(np.array(list("pqr"))[rng.integers(0, 2, ROWS) + (rng.random(ROWS) < 0.3 + 0.3 * y)])
    frame["d"] = pd.Categorical(np.array(list("st"))[(rng.random(ROWS) < 0.5).astype(int)])
    return frame, y


class Ours:
    """An estimator of this package that learns piece by piece, perhaps forgetting half in 1,000 rows."""

    def __init__(self, estimator, decay=1.0):
        self.estimator, self.decay = estimator, decay

    def learn(self, X, y):
        if self.decay < 1 and hasattr(self.estimator, "classes_"):
            self.estimator.decay(self.decay)
        self.estimator.partial_fit(X, y, classes=[0, 1])

    def predict(self, X):
        return self.estimator.predict_proba(X)[:, 1]


class Anew:
    """An average that is fitted anew to the rows so far, or the latest of them."""

    def __init__(self, estimator, latest=ROWS):
        self.estimator, self.latest, self.rows = estimator, latest, []

    def learn(self, X, y):
        self.rows.append((X, y))
        if sum(len(piece) for _, piece in self.rows) % FIRST == 0:
            X, y = pd.concat([x for x, _ in self.rows]), np.concatenate([piece for _, piece in self.rows])
            self.estimator.fit(X[-self.latest :], y[-self.latest :])

    def predict(self, X):
        return self.estimator.predict_proba(X)[:, 1]


class Scaled:
    """A learner of scikit-learn on standardised numbers and indicators of categories."""

    def __init__(self, estimator):
        self.estimator, self.scale = estimator, StandardScaler()

    def _columns(self, X):
        return pd.get_dummies(X).to_numpy(float)

    def learn(self, X, y):
        z = self._columns(X)
        self.estimator.partial_fit(self.scale.partial_fit(z).transform(z), y, classes=[0, 1])

    def predict(self, X):
        return self.estimator.predict_proba(self.scale.transform(self._columns(X)))[:, 1]


class River:
    """A learner of river, row by row."""

    def __init__(self, model):
        self.model = model

    def learn(self, X, y):
        for row, label in zip(self._rows(X), y.tolist(), strict=True):
            self.model.learn_one(row, label)

    def predict(self, X):
        return np.array([self.model.predict_proba_one(row).get(1, 0.5) for row in self._rows(X)])

    def _rows(self, X):
        return pd.get_dummies(X).astype(float).to_dict("records")


def learners(kind: str) -> dict:
    """Return what learns, by name."""
    latest, decay = (2000, 0.5**0.1) if kind == "moved" else (ROWS, 1.0)
    result = {
        "average, learned on": Ours(AveragedClassifier(), decay),
        "generative members, learned on": Ours(AveragedClassifier(members="generative"), decay),
        "average, anew at each tenth": Anew(AveragedClassifier(), latest),
        "naive Bayes": Ours(NaiveBayesClassifier(), decay),
        "scikit-learn GaussianNB": Scaled(GaussianNB()),
        "scikit-learn SGDClassifier": Scaled(SGDClassifier(loss="log_loss", random_state=0)),
    }
    try:
        from river import forest, linear_model, naive_bayes, preprocessing
    except ImportError:
        return result
    return result | {
        "river GaussianNB": River(naive_bayes.GaussianNB()),
        "river LogisticRegression": River(preprocessing.StandardScaler() | linear_model.LogisticRegression()),
        "river ARFClassifier": River(forest.ARFClassifier(seed=0)),
    }


def stream(kind: str, wanted=None):
    """Yield lines of one kind of stream."""
    X, y = rows(kind)
    for name, learner in learners(kind).items():
        if wanted and name not in wanted:
            continue
        losses, begin = [], process_time()
        learner.learn(X[:FIRST], y[:FIRST])
        for start in range(FIRST, ROWS, PIECE):
            piece, labels = X[start : start + PIECE], y[start : start + PIECE]
            p = np.clip(learner.predict(piece), FLOOR, 1 - FLOOR)
            losses.append(-np.log(np.where(labels, p, 1 - p)).mean())
            learner.learn(piece, labels)
            if len(losses) == FIRST // PIECE:
                yield kind, name, start // FIRST, np.mean(losses), process_time() - begin
                losses = []


def tables():
    """Yield lines of development sets: learned in ten pieces, and fitted whole."""
    for name in SETS:
        X, y = table(name)
        order = np.random.default_rng(0).permutation(len(y))
        known, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
        for members in ("generative", "all"):
            for how in ("learned in ten pieces", "fitted whole"):
                begin, classifier = process_time(), AveragedClassifier(members=members)
                for piece in np.array_split(known, 10 if how != "fitted whole" else 1):
                    classifier.partial_fit(X.iloc[piece], y[piece], classes=np.unique(y))
                p = np.maximum(classifier.predict_proba(X.iloc[test])[np.arange(len(test)), y[test]], FLOOR)
                yield f"table {name}", f"{members}, {how}", 10, -np.log(p).mean(), process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=["steady", "moved", "tables"])
    parser.add_argument("--models", nargs="+", help="measure these models of a stream alone")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for kind in arguments.kinds:
        for line in tables() if kind == "tables" else stream(kind, arguments.models):
            kept = pd.read_csv(RESULTS) if RESULTS.exists() else pd.DataFrame(columns=COLUMNS)
            same = (kept[COLUMNS[:3]] == list(line[:3])).all(axis=1)
            new = pd.DataFrame([line], columns=COLUMNS).round({"log_loss": 4, "seconds": 1})
            pd.concat([kept[~same], new]).to_csv(RESULTS, index=False)
            print(*new.iloc[0], flush=True)


if __name__ == "__main__":
    main()
