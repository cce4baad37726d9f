"""Wide tables: log losses where columns are thousands and rows are dozens.

`python -m benchmarks wide` measures all; `wide.csv` keeps the lines. Khan's tumours (2,308 genes) and NCI60 (6,830
genes) come with the package ISLP (`pip install --no-deps ISLP`, whose data alone are read), and are left out where it
is not installed. Ridge and discriminant analysis of the rivals take the principal components of the standardised rows,
all of them: the same directions at a fraction of the time.
"""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesgen import AveragedClassifier
from benchmarks.kept import Kept
from benchmarks.quality_report import markdown
from benchmarks.rivals import BASE, OURS

KEYS = ["data", "split", "model"]
COLUMNS = [*KEYS, "log_loss", "seconds"]
_WITHIN, _BESIDE = 1.05, 0.01  # of the best: as good as it


def _islp() -> Path | None:
    spec = find_spec("ISLP")  # found, not imported: it asks for packages that its data do not need
    places = None if spec is None else spec.submodule_search_locations
    return Path(places[0]) / "data" if places else None


def absent() -> list[str]:
    """A line for the tables that are not installed."""
    return [] if _islp() else ["Khan and NCI60 are skipped: pip install --no-deps ISLP"]


def khan(seed: int):
    """Gene expression of four kinds of small round blue cell tumours, 83 rows."""
    folder = _islp()
    X = np.concatenate([pd.read_csv(folder / f"Khan_x{part}.csv").to_numpy() for part in ("train", "test")])
    y = np.concatenate([pd.read_csv(folder / f"Khan_y{part}.csv")["x"] for part in ("train", "test")])
    return train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)


def nci60(seed: int):
    """Gene expression of cell lines of the cancers that have three or more of them, 57 rows of 8 kinds."""
    folder = _islp()
    X, y = np.load(folder / "NCI60data.npy"), pd.read_csv(folder / "NCI60labs.csv")["label"].to_numpy()
    own = pd.Series(y).map(pd.Series(y).value_counts()).to_numpy() >= 3
    return train_test_split(X[own], y[own], test_size=1 / 3, stratify=y[own], random_state=seed)


def few(seed: int):
    """60 rows of 5,000 columns, of which 30 tell three classes apart."""
    return _drawn(seed, lambda rng, y: np.concatenate([rng.normal(size=(3, 30)), np.zeros((3, 4970))], 1)[y] * 0.8)


def blocks(seed: int):
    """60 rows of 50 blocks of 100 columns, correlated by .6, of which ten blocks tell three classes apart."""

    def mean(rng, y):
        centre = np.concatenate([rng.normal(size=(3, 10)), np.zeros((3, 40))], 1)
        return np.repeat(centre[y] * 0.6 + rng.normal(size=(len(y), 50)) * np.sqrt(0.6 / 0.4), 100, axis=1)

    return _drawn(seed, mean)


def noise(seed: int):
    """60 rows of 5,000 columns of noise, and two classes."""
    X, T, y, t = _drawn(seed, lambda rng, y: 0.0)
    return X, T, y % 2, t % 2


def _drawn(seed: int, mean):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(360) % 3)
    X = rng.normal(size=(360, 5000)) + mean(rng, y)
    return X[:60], X[60:], y[:60], y[60:]


TABLES: dict[str, Callable] = {"few": few, "blocks": blocks, "noise": noise} | (
    {"Khan": khan, "NCI60": nci60} if _islp() else {}
)


def contenders() -> dict:
    """Every model, with the settings of its field."""
    grid = {"nearestcentroid__shrink_threshold": [0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0]}
    centroids = make_pipeline(StandardScaler(), NearestCentroid(priors="empirical"))  # probabilities since 1.6
    return {
        OURS: AveragedClassifier(),
        "bayesgen averaged, generative": AveragedClassifier(members="generative"),
        "shrinkage LDA": make_pipeline(
            StandardScaler(), PCA(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
        ),
        "logistic, cross-validated": make_pipeline(
            StandardScaler(),
            PCA(),
            LogisticRegressionCV(Cs=np.logspace(-6, 2, 9), cv=3, scoring="neg_log_loss", max_iter=1000),
        ),
        "forest": RandomForestClassifier(500, min_samples_leaf=2, random_state=0),
        "nearest shrunken centroids": GridSearchCV(centroids, grid, scoring="neg_log_loss", cv=3),
        BASE: DummyClassifier(strategy="prior"),
    }


def measure(kept: Kept, tables, splits: int) -> None:
    """Measure the cells not yet kept."""
    for split in range(splits):
        for name in tables:
            X, T, y, t = TABLES[name](split)
            for model, estimator in contenders().items():
                if (key := {"data": name, "split": split, "model": model}) in kept:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    start = process_time()
                    probability = estimator.fit(X, y).predict_proba(T)
                loss = log_loss(t, np.clip(probability, 1e-15, 1), labels=np.unique(y))
                kept.add(key, {"log_loss": loss, "seconds": process_time() - start})


class Section:
    """The section of `results.md`, made from the kept lines."""

    def __init__(self, frame: pd.DataFrame):
        self.frame = frame

    def markdown(self) -> str:
        """The section."""
        mean = self.frame.pivot_table(index="model", columns="data", values="log_loss", sort=False)
        rivals = mean.drop(index=[name for name in mean.index if name.startswith("bayesgen")]).min()
        near = mean.loc[OURS] <= np.maximum(rivals * _WITHIN, rivals + _BESIDE)
        table = mean.map("{:.3f}".format)
        table["seconds"] = self.frame.groupby("model")["seconds"].mean().map("{:.1f}".format)
        splits = self.frame.groupby(["data", "model"]).size().max()
        return (
            "## Wide tables\n\nMean log loss of rows kept aside, and mean seconds of CPU of fit and predictions,\n"
            f"over up to {splits} splits: fits take 55 (Khan), 38 (NCI60) and 60 rows of 2,308, 6,830 and 5,000\n"
            "columns. `few` has 30 that tell the classes apart, `blocks` ten of 50 blocks of correlated columns,\n"
            "`noise` none; of rivals' probabilities none is below 1e-15.\n"
            f"{OURS} is first or within 5 % or .01 in {near.sum()} of {len(near)} tables.\n\n"
            + "\n".join([*absent(), ""])
            + markdown(table.reset_index())
        )


def run(quick: bool = False) -> list[Section]:
    """Measure every table, or one draw of each simulator's."""
    kept = Kept(Path("build/wide-quick.csv") if quick else Path(__file__).parent / "wide.csv", KEYS, COLUMNS)
    measure(kept, ("few", "noise") if quick else TABLES, 1 if quick else 4)
    return [Section(kept.read())]
