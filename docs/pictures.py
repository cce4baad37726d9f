"""The pictures of README.md: `python docs/pictures.py` writes docs/pictures/*.png."""

from pathlib import Path

import matplotlib as mpl

import bayesgen as bg
from bayesgen import plot

HERE = Path(__file__).parent / "pictures"


def band():
    """Sixty penguins, and how well they determine the boundaries between their species."""
    import matplotlib.pyplot as plt

    penguins = bg.data.load("penguins").dropna().sample(60, random_state=1)
    X, y = penguins[["bill_length_mm", "bill_depth_mm"]], penguins["species"]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for ax, shared in zip(axes, (True, False), strict=True):
        classifier = bg.GaussianDiscriminantClassifier(shared=shared).fit(X, y)
        plot.decision_regions(classifier, X, y, ax=ax)
        ax.set_title("one covariance for all" if shared else "a covariance for each species")
    return figure


def far():
    """Twelve penguins: plug-in rules are certain, of one species and then of the other, where nothing was seen."""
    import matplotlib.pyplot as plt

    penguins = bg.data.load("penguins").query("species != 'Gentoo'").dropna()
    few = penguins.groupby("species").sample(6, random_state=2)
    X, y = few[["bill_length_mm", "bill_depth_mm"]], few["species"]
    ways = {"maximum likelihood": "ml", "MAP": "map", "posterior predictive": "exact"}
    fits = {label: bg.GaussianDiscriminantClassifier(inference=way).fit(X, y) for label, way in ways.items()}
    figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
    plot.along_line(fits, [20, 18], [75, 18.5], X=X, ax=ax)
    ax.set_title("twelve penguins, and bills far longer than any seen", fontsize=10)
    return figure


if __name__ == "__main__":
    mpl.use("Agg")
    HERE.mkdir(exist_ok=True)
    for picture in (band, far):
        picture().savefig(HERE / f"{picture.__name__}.png", dpi=100)
