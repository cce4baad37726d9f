"""Rows without labels: how often the warning that they do harm is right."""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import bayesgen as bg

TABLES = (load_breast_cancer, load_wine, load_iris)
MODELS = {
    "naive Bayes": bg.NaiveBayesClassifier(inference="map", unlabelled=-1),
    "isotropic": bg.GaussianDiscriminantClassifier("isotropic", inference="map", unlabelled=-1),
    "linear discriminant": bg.GaussianDiscriminantClassifier(shared=True, inference="map", unlabelled=-1),
}


@dataclass
class Warned:
    """Counts for each model: fits that rows without labels harmed, and fits with a warning."""

    rows: list[str]

    def markdown(self) -> str:
        """The table as Markdown."""
        head = ["model", "fits", "worse by .02", "warned of these", "better by .02", "warned of these"]
        note = (
            "5, 10 and 20 labelled rows per class in one half of a data set (breast cancer, wine, iris), the other "
            "rows without a label; log loss with and without them in the other half decides whether they did harm."
        )
        lines = ["## Rows without labels", "", note, "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        return "\n".join([*lines, *self.rows]) + "\n"


def trial(classifier, X, y, labels: int, seed: int) -> tuple[float, bool]:
    """Log loss that rows without labels add, and whether the fit warned of them."""
    test, pool = np.array_split(np.random.default_rng(seed).permutation(len(y)), 2)
    known = np.concatenate([pool[y[pool] == k][:labels] for k in np.unique(y)])
    some = np.where(np.isin(np.arange(len(y)), known), y, -1)

    def loss(rows):
        log_p = classifier.fit(X[rows], some[rows]).predict_log_proba(X[test])
        return -np.maximum(log_p[np.arange(len(test)), y[test]], -700).mean()

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        beside = loss(pool)
        without = loss(known)
    return beside - without, any("seem to do harm" in str(w.message) for w in said)


def run(quick: bool = False) -> list[Warned]:
    """Fill the table."""
    rows = []
    for name, classifier in MODELS.items():
        cells = [(load, labels, seed) for load in TABLES for labels in (5, 10, 20) for seed in range(1 if quick else 6)]
        found = [trial(classifier, *load(return_X_y=True), labels, seed) for load, labels, seed in cells]
        more, warned = np.array(found).T
        worse, better = more > 0.02, more < -0.02
        counts = (len(found), worse.sum(), warned[worse].sum(), better.sum(), warned[better].sum())
        rows.append(f"| {name} | " + " | ".join(f"{c:.0f}" for c in counts) + " |")
        print("  ", rows[-1], flush=True)
    return [Warned(rows)]
