"""Exported classifiers: sizes of script and page, time of a row in V8, and how far answers are from Python's.

`python -m benchmarks export` needs `mini-racer`, of the extra ``test``, the engine of Chrome and of Node. Times are CPU
time of all its threads: of a row over a thousand rows after a thousand others, of questions where nothing is known.
"""

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd

import bayesgen as bg
from bayesgen.export import script, to_page
from benchmarks.quality_report import markdown

ROWS, LOOKS, WIDE = 1000, 50, 20


def table(count: int, columns: int, rng) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows of three classes that overlap."""
    y = rng.integers(0, 3, count)
    X = rng.normal(0.5 * y[:, None] * np.ones(columns), 1.0)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)]), np.array(["a", "b", "c"])[y]


def cases(quick: bool):
    """Yield names, fitted classifiers and their rows."""
    rng = np.random.default_rng(0)
    X, y = table(200 if quick else ROWS, 10, rng)
    birds = bg.data.load("penguins")
    species = birds.pop("species")
    naive, full = bg.NaiveBayesClassifier(random_state=0), bg.GaussianDiscriminantClassifier(random_state=0)
    yield "naive Bayes, penguins", naive.fit(birds, species), birds
    yield "average, 10 columns", bg.AveragedClassifier(random_state=0).fit(X, y), X
    yield "naive Bayes, 10 columns", bg.NaiveBayesClassifier(random_state=0).fit(X, y), X
    yield "full discriminant, 10 columns", full.fit(X, y), X
    if quick:
        return
    yield "average, penguins", bg.AveragedClassifier(random_state=0).fit(birds, species), birds
    wide, labels = table(ROWS, WIDE, rng)
    yield f"naive Bayes, {WIDE} columns", bg.NaiveBayesClassifier(random_state=0).fit(wide, labels), wide
    drawn = bg.NaiveBayesClassifier(random_state=0).fit(X, y)
    drawn.posterior_ = drawn.posterior_.as_draws(0).thinned(400)
    yield "naive Bayes, 400 draws", drawn, X
    yield (
        "Student's t, at a point",
        bg.GaussianDiscriminantClassifier(covariance="student", inference="map").fit(X, y),
        X,
    )
    yield "softmax, at a point", bg.LogisticClassifier(inference="map").fit(X, y), X
    sampled = bg.LogisticClassifier(inference=bg.Laplace(400), random_state=0).fit(X, y)
    yield "softmax, 400 draws", sampled, X
    ordered = bg.OrderedClassifier(order=["a", "b", "c"], link="probit", inference="map")
    yield "ordered probit, at a point", ordered.fit(X, y), X


@dataclass
class Section:
    """The section of `results.md`."""

    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """Add a line of the table."""
        self.rows.append(list(cells))
        print("  ", *cells, sep="  ", flush=True)

    def markdown(self) -> str:
        """Return the table with what it says."""
        head = "classifier; script, kB; page, kB; a row, us; largest \\|dp\\|; questions, ms; interval, ms; its ends"
        return (
            "## Exported classifiers\n\nSizes; CPU time of a row in V8; the largest difference of a probability from "
            f"Python's over {ROWS:,} rows, a sixth of\nwhose entries are missing where the classifier takes gaps; time "
            "of what to ask next when nothing is known, of all columns;\ntime of the first interval, which draws "
            f"parameters, and the largest difference of the ends of intervals of {LOOKS} rows\nfrom Python's of 20,000 "
            f"draws.\n\n{markdown(pd.DataFrame(self.rows, columns=head.split('; ')))}"
        )


def run(quick: bool = False) -> list[Section]:
    """Fill the table."""
    from py_mini_racer import MiniRacer

    section = Section()
    for name, classifier, X in cases(quick):
        rng = np.random.default_rng(1)
        rows = X.iloc[rng.integers(0, len(X), ROWS)].reset_index(drop=True).astype(object)
        if hasattr(classifier, "score_samples"):
            rows = rows.where(rng.random(rows.shape) > 1 / 6, None)
        rows = rows.where(rows.notna(), None)
        text = script(classifier)
        with tempfile.TemporaryDirectory() as folder, MiniRacer() as engine:
            to_page(classifier, page := Path(folder, "page.html"))
            size = page.stat().st_size
            engine.eval(text.rsplit("\nexport {", 1)[0])
            engine.eval(f"const rows = {json.dumps(rows.to_dict('records'))};")
            found = json.loads(engine.eval("JSON.stringify(rows.map((row) => predictProba(row)))"))
            began = process_time()
            engine.eval("rows.forEach((row) => predictProba(row))")
            took = process_time() - began
            apart = np.abs(np.array(found) - classifier.predict_proba(rows)).max()
            began = process_time()
            engine.eval("nextMeasurement({}); 0")
            asked = f"{1000 * (process_time() - began):.0f}" if hasattr(classifier, "score_samples") else ""
            began = process_time()
            engine.eval("predictProbaInterval(rows[0]); 0")
            first = process_time() - began
            looked = f"JSON.stringify(rows.slice(0, {LOOKS}).map((row) => predictProbaInterval(row)))"
            ends = json.loads(engine.eval(looked))
        told = "", ""
        if classifier.posterior_.kind not in ("point", "average"):
            python = classifier.predict_proba_interval(rows[:LOOKS], size=20_000)
            told = f"{1000 * first:.0f}", f"{np.abs(np.array(ends) - python).max():.3f}"
        sizes = f"{len(text) / 1000:.0f}", f"{size / 1000:.0f}"
        section.add(name, *sizes, f"{1e6 * took / ROWS:.0f}", f"{apart:.0e}", asked, *told)
    return [section]
