"""Raters who disagree: what models learn from one rater, from the majority of five, and from the shares of five.

`python -m benchmarks.raters` prints mean log losses of new rows over 20 tables of 60 rows, those of naive Bayes in
seconds and those of the average in minutes. Of three normal columns the first tells the class, by the logistic function
of twice its value.
"""

import warnings

import numpy as np
import pandas as pd

import bayesgen as bg

TABLES, ROWS, RATERS, NEW = 20, 60, 5, 2000


def losses(classifier, tables: int = TABLES) -> pd.Series:
    """Return the mean log loss of new rows by what was learned from, and the least that there is."""
    found = []
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(ROWS, 3)), rng.normal(size=(NEW, 3))
        chance, of_new = (1 / (1 + np.exp(-2 * rows[:, 0])) for rows in (X, new))
        truth = np.column_stack([1 - of_new, of_new])
        one, votes = (rng.random(ROWS) < chance).astype(int), rng.binomial(RATERS, chance) / RATERS
        learned = {
            "majority": (votes > 0.5).astype(int),
            "one rater": one,
            "shares": np.column_stack([1 - votes, votes]),
        }
        row = {}
        for name, y in learned.items():
            fitted = classifier().fit(X, y, classes=[0, 1]) if name == "shares" else classifier().fit(X, y)
            row[name] = -(truth * np.log(fitted.predict_proba(new))).sum(1).mean()
        found.append(row | {"floor": -(truth * np.log(truth)).sum(1).mean()})
    return pd.DataFrame(found).mean()


def main() -> None:
    """Print the losses of naive Bayes and of the average."""
    warnings.simplefilter("ignore")
    for classifier in (bg.NaiveBayesClassifier, bg.AveragedClassifier):
        print(classifier.__name__, losses(classifier).round(4).to_dict(), flush=True)


if __name__ == "__main__":
    main()
