"""The live pages of three how-tos, which the site puts beside them: `python docs/calculators.py FOLDER`."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import bayesgen as bg
from bayesgen.export import learning_page


def ward(path):
    """Tumours by six measurements: what to measure next, and when to stop."""
    table, y = load_breast_cancer(return_X_y=True, as_frame=True)
    names = ["texture", "area", "smoothness", "compactness", "symmetry", "fractal dimension"]
    X = table[[f"mean {name}" for name in names]].set_axis(names, axis=1)
    y = np.where(y == 0, "malignant", "benign")
    classifier = bg.NaiveBayesClassifier(dict.fromkeys(names, "log"), exponent="loo").fit(X, y)  # skewed numbers > 0
    loss = pd.DataFrame({"leave it": [0, 10], "operate": [1, 0]}, index=["benign", "malignant"])
    words = {
        "title": "Is this tumour malignant?",
        "introduction": "Measurements of the nuclei of cells, taken by a fine needle.",
        "footer": "An example, learned from 569 tumours of one hospital. Not for the care of anybody.",
        "sentences": {"next_hint_loss": "What each measurement is worth beyond its cost, in false alarms."},
    }
    classifier.to_page(path, loss=loss, cost=0.02, words=words)


def key(path):
    """Penguins: which species, asking as little as possible."""
    X = bg.data.load("penguins").drop(columns="year")
    y = X.pop("species")
    classifier = bg.NaiveBayesClassifier(exponent="loo", random_state=0).fit(X, y)
    measures = {"bill_length_mm": "mm", "bill_depth_mm": "mm", "flipper_length_mm": "mm", "body_mass_g": "g"}
    columns = {c: {"name": c.rsplit("_", 1)[0].replace("_", " "), "unit": unit} for c, unit in measures.items()}
    columns["bill_length_mm"]["help"] = "from the tip to the feathers"
    words = {
        "title": "Which penguin is it?",
        "introduction": "A grown penguin of the Palmer archipelago. Begin with what is asked first.",
        "columns": columns,
        "sentences": {"next_hint": "The most telling first; the numbers are what an answer tells, in nats."},
    }
    classifier.to_page(path, words=words)


def write(folder):
    """Write the pages into a folder."""
    for page in (ward, key):
        page(Path(folder, f"{page.__name__}.html"))
    learning_page(Path(folder, "learn.html"))


if __name__ == "__main__":
    write(sys.argv[1])
