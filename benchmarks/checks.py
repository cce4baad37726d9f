"""Checks: a plain fit of naive Bayes with all that is looked for in its rows, against the fit alone.

The answers are the same. "at most" is what the time may be of that without checks.
"""

import numpy as np
import pandas as pd

from bayesgen import NaiveBayesClassifier
from bayesgen.estimators import generative
from benchmarks.timing import Table, agree, medians

SIZES = [(1_000, 1.3, 401), (100_000, 1.15, 41), (1_000_000, 1.15, 9)]


def run(quick: bool = False) -> list[Table]:
    """Fill the table."""
    table = Table(
        "Checks of a plain fit", "10 columns, two classes; the ratio is the time without checks over that with."
    )
    found = generative.findings
    for n, most, repeats in SIZES[:1] if quick else SIZES:
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, n)
        x = rng.normal(size=(n, 10)) + y[:, None]
        frame = pd.DataFrame({f"c{j}": x[:, j].copy() for j in range(10)})
        for name, rows in (("array", x), ("frame", frame)):
            classifier = NaiveBayesClassifier()

            def alone(rows=rows, y=y, classifier=classifier):
                generative.findings = lambda *_, **__: ()
                try:
                    return classifier.fit(rows, y)
                finally:
                    generative.findings = found

            def whole(rows=rows, y=y, classifier=classifier):
                return classifier.fit(rows, y)

            means = alone().statistics_.leaves["gaussian"].mean
            agree("means", means, whole().statistics_.leaves["gaussian"].mean, 0)
            time = medians({"alone": alone, "fit": whole}, repeats)
            table.add(
                f"{name} {n:.0e} x 10".replace("e+0", "e"), "no checks", time["alone"] / time["fit"], round(1 / most, 2)
            )
    return [table]
