"""Every picture beside its baseline, text removed since fonts differ; `python tests/test_pictures.py` draws them.

The baselines are of the oldest matplotlib that is tested, on Python 3.11; a newer one, which puts edges and gaps
of lines elsewhere, has a folder for the pictures that differ. Draw with the oldest first, then with the newest.
"""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images
from matplotlib.text import Text

import bayesgen as bg
from bayesgen import plot
from bayesgen.averaging.gaussians import GaussianMember, MixtureMember
from bayesgen.averaging.member import Product
from bayesgen.models import BetaBernoulli, NormalInverseGamma, NormalKnownVariance

BASELINE = Path(__file__).parent / "baseline"
OLDEST = (3, 10)
VERSION = tuple(map(int, mpl.__version__.split(".")[:2]))
NEWER = BASELINE / "3.11"
TOLERANCE = 6
TEMPERATURES = [6.1, 9.4, 3.8, 11.2, 8.5, 5.0, 10.3]
CORNERS = np.array([[0.0, 0.0], [4.0, 0.5], [1.5, 4.0]])

rng = np.random.default_rng(1)
Y = np.repeat(["a", "b", "c"], 12)
X = rng.normal(size=(36, 2)) + np.repeat(CORNERS, 12, axis=0)
LINE = np.linspace(-3, 8, 200)
PROBABILITY = rng.dirichlet([0.4, 0.4, 0.4], 300)
TRUTH = (PROBABILITY.cumsum(1) < rng.random((300, 1))).sum(1).clip(max=2)
OUTLIER = np.vstack([X[:24], [[15, 14]]]), np.append(Y[:24], "b")


ORDER = np.random.default_rng(2).permutation(36)


def gda(covariance="full", shared=False, inference="exact"):
    return bg.GaussianDiscriminantClassifier(covariance, shared, inference=inference)


def along_line(ax):
    fits = {way: gda(inference=way).fit(X[:24], Y[:24]) for way in ("ml", "map", "exact")}
    plot.along_line(fits, [-20, 0], [20, 5], X=X[:24], ax=ax)


def boundaries(ax):
    fits = {"LDA": gda(shared=True), "logistic": bg.LogisticClassifier(inference="map")}
    plot.boundaries({label: fit.fit(*OUTLIER) for label, fit in fits.items()}, *OUTLIER, ax=ax)


def ordered():
    return bg.compare_models(X, Y, ["base rate", "naive Bayes"], folds=3, order=ORDER)


AVERAGED = bg.AveragedClassifier()
AVERAGED.average_ = SimpleNamespace(  # as a fit might leave it
    members=[
        Product((GaussianMember("full", 2.0, 0.1),)),
        Product((MixtureMember("full", 2.0, 0.1, most=3),)),
        Product(()),
    ],
    weights=np.array([0.5, 0.3, 0.2]),
    exponents=np.array([0.8, 0.5, 1.0]),
)
PICTURES = {
    "beta_densities": lambda ax: plot.beta_densities([(1, 1), (2, 2), (0.5, 0.5), (8, 3)], ax=ax),
    "coin": lambda ax: plot.coin(BetaBernoulli(2, 2), [1, 1], [1, 1, 0] * 20, ax=ax),
    "mean_1": lambda ax: plot.mean_and_predictive(NormalKnownVariance(10, 8, 3), TEMPERATURES[:1], ax=ax),
    "mean_7": lambda ax: plot.mean_and_predictive(NormalKnownVariance(10, 8, 3), TEMPERATURES, ax=ax),
    "ml_map_bayes": lambda ax: plot.predictive_densities(NormalInverseGamma(10, 0.1, 1, 9), TEMPERATURES[:3], ax=ax),
    "gaussian": lambda ax: plot.gaussian([0, 0], [[1, 0.8], [0.8, 1]], ax=ax),
    "sigmoid": lambda ax: plot.class_conditionals(gda(shared=True).fit(X[:24, :1], Y[:24]), LINE, ax=ax),
    "softmax": lambda ax: plot.class_conditionals(gda().fit(X[:, :1], Y), LINE, ax=ax),
    "regions_full": lambda ax: plot.decision_regions(gda().fit(X, Y), X, Y, steps=61, ax=ax),
    "regions_shared": lambda ax: plot.decision_regions(gda(shared=True).fit(X, Y), X, Y, steps=61, ax=ax),
    "class_probabilities": lambda ax: plot.class_probabilities(
        gda("diagonal").fit(X, Y), X, Y, [6, 6], steps=61, ax=ax
    ),
    "along_line": along_line,
    "outlier": boundaries,
    "squashing": lambda ax: plot.squashing(ax=ax),
    "regression": lambda ax: plot.regression(
        bg.LinearRegressor(random_state=0).fit(X[:, :1], X[:, 1]), X[:, 0], X[:, 1], ax=ax
    ),
    "reliability": lambda ax: plot.reliability(TRUTH, PROBABILITY, ax=ax),
    "probabilities": lambda ax: plot.probabilities(TRUTH, PROBABILITY, PROBABILITY[::-1], ax=ax),
    "calibration": lambda ax: plot.calibration(
        bg.testing.check_calibration(NormalInverseGamma(20, 0.05, 3, 27), size=10, seed=0), ax=ax
    ),
    "confusion": lambda ax: plot.confusion(TRUTH, PROBABILITY.argmax(1), [[0, 1, 5], [1, 0, 5], [9, 9, 0]], ax=ax),
    "learning_curves": lambda ax: plot.learning_curves(
        [10, 20, 40], {"one": [[3, 2, 1], [2, 2, 1]], "other": [[1, 1, 1], [2, 1.5, 1.2]]}, ax=ax
    ),
    "column": lambda ax: plot.column(gda("diagonal").fit(X, Y), "x0", ax=ax),
    "members": lambda ax: plot.members(AVERAGED, ax=ax),
    "models": lambda ax: plot.models(
        bg.compare_models(X, Y, ["base rate", "naive Bayes", "shared", "full"], folds=3), ax=ax
    ),
    "importance": lambda ax: plot.importance(
        bg.inspection.importance(bg.NaiveBayesClassifier().fit(X, Y), X, Y), ax=ax
    ),
    "running_score": lambda ax: plot.running_score(ordered(), ax=ax),
    "calibration_over_time": lambda ax: plot.calibration_over_time(ordered(), ax=ax),
    "net_benefit": lambda ax: plot.net_benefit(bg.evaluation.net_benefit(TRUTH, PROBABILITY, positive=1), ax=ax),
    "watch": lambda ax: plot.watch(watched(), ax=ax),
    "class_numbers": lambda ax: plot.class_numbers(bg.compare_classes(X, (1, 2, 3, 4), folds=3, starts=3), ax=ax),
    "class_profiles": lambda ax: plot.class_profiles(latent(), ax=ax),
    "evidence": lambda ax: plot.evidence(bg.NaiveBayesClassifier().fit(X, Y).explain(X, row=20), ax=ax),
}


def watched():
    rng = np.random.default_rng(0)
    watch = bg.inspection.Watch.from_rows(rng.normal(size=(50, 2)))
    watch.update(rng.normal(size=(150, 2)))
    watch.update(rng.normal(size=(60, 2)) + np.array([2, 0]))
    return watch


def latent():
    table = pd.DataFrame({"length": X[:, 0], "spots": X[:, 1] > 2, "tail": X[:, 0] + X[:, 1] > 3})
    return bg.LatentClassClassifier(classes=2, order_by="length", starts=3, random_state=0).fit(table)


def draw(name: str, path: Path):
    with mpl.rc_context():
        mpl.rcdefaults()
        figure = Figure(figsize=(3, 2.2), dpi=60)
        PICTURES[name](figure.subplots())
        for axes in figure.axes:
            axes.tick_params(labelbottom=False, labelleft=False, labelright=False)
            if axes.get_legend():
                axes.get_legend().remove()
        for text in figure.findobj(Text):
            text.set_visible(False)
        FigureCanvasAgg(figure)
        figure.savefig(path, metadata={"Software": None})


def drawn_before(name: str) -> Path:
    """The baseline of a picture for this matplotlib."""
    newer = NEWER / f"{name}.png"
    return newer if VERSION > OLDEST and newer.exists() else BASELINE / f"{name}.png"


@pytest.mark.parametrize("name", PICTURES)
def test_looks_as_before(name, tmp_path):
    draw(name, tmp_path / f"{name}.png")
    assert compare_images(drawn_before(name), tmp_path / f"{name}.png", tol=TOLERANCE) is None


def test_every_function_has_a_picture():
    drawn = " ".join(PICTURES) + " mean_and_predictive predictive_densities class_conditionals"
    drawn += " decision_regions boundaries"
    # a net is text in boxes, whose sizes follow the font
    drawing = set(plot.__all__) - {"agreement", "prior", "bayes_net", "net"}
    assert drawing <= set(drawn.replace("regions_", "decision_regions ").split())


if __name__ == "__main__":
    for name in PICTURES:
        if VERSION == OLDEST:
            draw(name, BASELINE / f"{name}.png")
            continue
        NEWER.mkdir(exist_ok=True)
        (NEWER / f"{name}.png").unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            draw(name, drawn := Path(folder) / f"{name}.png")
            if compare_images(BASELINE / f"{name}.png", drawn, tol=TOLERANCE):
                (NEWER / f"{name}.png").write_bytes(drawn.read_bytes())
