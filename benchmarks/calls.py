"""Count the calls of a fit and of a prediction, and how often they go from file to file: `python -m benchmarks.calls`.

Naive Bayes on a DataFrame of 100 rows and 4 columns with 3 classes, at the second call, when all caches are
filled. Calls are of functions of the package, without comprehensions, which are functions before Python 3.12 alone; a
change is a call or a return that leads from one file of the package to another.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import bayesgen as bg

PACKAGE = str(Path(bg.__file__).parent)
COMPREHENSIONS = {"<listcomp>", "<dictcomp>", "<setcomp>"}


def count(function) -> tuple[int, int]:
    """Return the calls of functions of the package that ``function()`` makes, and the changes of file among them."""
    calls, changes, files = 0, 0, []

    def look(frame, event, _):
        nonlocal calls, changes
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE) or frame.f_code.co_name in COMPREHENSIONS:
            return
        if event == "call":
            calls += 1
            changes += bool(files) and files[-1] != name
            files.append(name)
        elif event == "return" and files:
            files.pop()

    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls, changes


def main():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [34, 33, 33])
    X = pd.DataFrame(rng.normal(size=(100, 4)), columns=["w", "x", "y", "z"])
    classifier = bg.NaiveBayesClassifier().fit(X, y)
    classifier.predict_proba(X)
    for name, function in {
        "fit": lambda: classifier.fit(X, y),
        "predict_proba": lambda: classifier.predict_proba(X),
    }.items():
        function()  # the second call counts: what the first one keeps is there
        calls, changes = count(function)
        print(f"{name}: {calls} calls, {changes} changes of file")


if __name__ == "__main__":
    main()
