"""Tables that users bring: DataFrames, few rows, labels that are text, words, gaps, float32; all through estimators.

Times are CPU time on one thread of the BLAS, for calls of a millisecond beside other work. Scikit-learn has the same
input; against gaps it has an imputer in front. Before the clock starts predicted classes are compared.
"""

# ruff: noqa: B023 - a contender is called in the turn of the loop that makes it

import tempfile
import time
import tracemalloc
import warnings

import numpy as np
import pandas as pd
from pyarrow import csv
from scipy import sparse
from scipy.special import betaln, expit, gammaln
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from bayesgen import GaussianDiscriminantClassifier, LogisticClassifier, NaiveBayesClassifier
from bayesgen.numerics.counts import LARGEST_TABLE
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.special import log_beta_binomial
from bayesgen.numerics.sums import with_data
from bayesgen.sheets.files import read
from benchmarks.fit import rows
from benchmarks.sparse import words
from benchmarks.timing import Table, agree, medians

BARE = {GaussianNB: "naive", QuadraticDiscriminantAnalysis: "full", LinearDiscriminantAnalysis: "shared"}
NAIVE = [("gaussian", GaussianNB), ("bernoulli", BernoulliNB), ("categorical", CategoricalNB)]


def frame(x) -> pd.DataFrame:
    """Rows as a DataFrame with names."""
    return pd.DataFrame(x, columns=[f"column {j}" for j in range(x.shape[1])])


def pairs(small: bool):
    """Family, peer and ours: naive Bayes, and for few rows the discriminants."""
    yield from ((family, make(), NaiveBayesClassifier(family)) for family, make in NAIVE)
    if small:
        yield "gaussian", QuadraticDiscriminantAnalysis(), GaussianDiscriminantClassifier()
        yield "gaussian", LinearDiscriminantAnalysis(), GaussianDiscriminantClassifier(shared=True)


def compare(table, cell, ours, peer, x, t, goals, *, tasks=("fit", "predict"), calls=1, floors=None):
    """Add the cells of a fit and a prediction; ``floors`` are bare kernels of these tasks or of some of them."""
    ours.fit(x, t)
    peer.fit(x, t)
    same = (ours.predict(x) == peer.predict(x)).mean()
    if same < 0.9:
        raise AssertionError(f"{cell}: the predicted classes agree in {same:.0%} of the rows; nothing was timed")
    for task, goal in zip(tasks, goals, strict=True):
        method = {"fit": lambda one: one.fit(x, t), "predict": lambda one: one.predict_proba(x)}[task]
        contenders = {"peer": lambda: method(peer), "ours": lambda: method(ours)}
        if floors and task in floors:
            contenders["floor"] = floors[task]
        seconds = medians(contenders, 5, calls, time.process_time)
        name = type(peer).__name__ if not hasattr(peer, "steps") else "imputer and QDA"
        floor = seconds["ours"] / seconds["floor"] if "floor" in seconds else None
        table.add(f"{cell}, {task}", name, seconds["peer"] / seconds["ours"], goal, floor)


class Bare(ClassifierMixin, BaseEstimator):
    """The predictive under a weak prior in bare NumPy: all that scikit-learn's loops and checks leave to be saved."""

    def __init__(self, kind="full", class_concentration=1.0):
        self.kind = kind  # "full", "shared" or "naive"
        self.class_concentration = class_concentration

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        self.classes_, t = np.unique(y, return_inverse=True)
        member = np.eye(len(self.classes_))[:, t]
        n, dim = member.sum(1), X.shape[1]
        mean = member @ X / n[:, None]
        z = X - mean[t]
        scatter = (member[:, None] * z.T) @ z
        middle, kappa = n @ mean / len(X), 0.01 + n
        apart = mean - middle
        variance = scatter.sum(0).diagonal() / (len(X) - len(n))
        between = (0.01 * n / kappa)[:, None, None] * apart[:, :, None] * apart[:, None]
        self.mean_, unit = middle + (n / kappa)[:, None] * apart, 1 + 1 / kappa
        if self.kind == "naive":
            square = (2 * variance + (scatter + between).diagonal(axis1=1, axis2=2)) * unit[:, None]
            self.scale_, self.power_, level = square[:, :, None] ** -0.5, 1.5 + n / 2, -0.5 * np.log(square).sum(1)
            level += dim * (gammaln(self.power_) - gammaln(self.power_ - 0.5))
        else:
            add, rows = (lambda a: a.sum(0, keepdims=True), len(X)) if self.kind == "shared" else (lambda a: a, n)
            root = np.linalg.cholesky(add(scatter + between) + (2 * dim - 1) * np.diag(variance))
            dof = 2 * dim + 1 + rows + np.zeros(len(n))
            self.scale_, self.power_ = np.linalg.inv(root) / np.sqrt(unit)[:, None, None], (dof + dim) / 2
            level = gammaln(self.power_) - gammaln(dof / 2) - 0.5 * dim * np.log(unit)
            level -= np.log(root.diagonal(axis1=1, axis2=2)).sum(1)
        self.level_ = level + np.log(n + self.class_concentration)
        return self

    def joint(self, X):
        """Log p(x, t = k | data) of rows as they are, (K, n)."""
        z = X.T - self.mean_[:, :, None]
        z = z * self.scale_ if self.kind == "naive" else self.scale_ @ z
        z *= z
        far = np.log1p(z).sum(1) if self.kind == "naive" else np.log1p(z.sum(1))
        return self.level_[:, None] - self.power_[:, None] * far

    def predict(self, X):
        return self.classes_[self.joint(validate_data(self, X, reset=False)).argmax(0)]

    def unchecked(self, X):
        """Class probabilities of an array that is not looked at first, (n, K)."""
        joint = self.joint(X)
        joint -= joint.max(0)
        np.exp(joint, out=joint)
        joint /= joint.sum(0)
        return joint.T


def bare_counts(family, x, t):
    """The bare counts of entries by class, of coins and of five categories: the least work of their fit."""
    if family == "bernoulli":
        member = np.eye(2)[:, t]
        return {"fit": lambda: sum(member[:, own] @ x[own] for own in pieces(len(x), 10))}
    if family == "categorical":
        cells = (x + 5 * np.arange(10) + 50 * t[:, None]).ravel()
        return {"fit": lambda: [np.bincount(cells[own], minlength=100) for own in pieces(len(cells), 1, rows=1 << 16)]}
    return None


def frames(table, quick):
    """Arrays and DataFrames of one type, small and large."""
    for kind, of in (("array", np.asarray), ("DataFrame", frame)):
        for family, peer, ours in pairs(True):
            x, t = rows(family, 1000, 10, 2)
            gaussian = type(peer) not in (BernoulliNB, CategoricalNB)
            goals = (1.5, 1.2) if kind == "DataFrame" else (2, 1.5) if gaussian else (None, None)
            floors, own = None, of(x)
            if gaussian:
                bare = Bare(BARE[type(peer)]).fit(x, t)
                agree(type(peer).__name__, ours.fit(own, t).predict_proba(own), bare.unchecked(x), 1e-9)
                floors = {"predict": lambda: bare.unchecked(x)}
            compare(table, f"{kind} 1e3 x 10", ours, peer, own, t, goals, calls=20, floors=floors)
    asked = {"gaussian": (6, 3), "bernoulli": (10, 5), "categorical": (8, 4)}
    for family, peer, ours in pairs(False):
        x, t = rows(family, 20_000 if quick else 1_000_000, 10, 2)
        floors = bare_counts(family, x, t)
        compare(table, "DataFrame 1e6 x 10", ours, peer, frame(x), t, asked[family], floors=floors)


def folds(table, quick):
    """Cross-validation of 150 rows; the floor is the same predictive in bare NumPy."""
    x, y = load_iris(return_X_y=True)
    for ours, peer in (
        (NaiveBayesClassifier(), GaussianNB()),
        (GaussianDiscriminantClassifier(), QuadraticDiscriminantAnalysis()),
        (GaussianDiscriminantClassifier(shared=True), LinearDiscriminantAnalysis()),
    ):
        estimators = {"ours": ours, "peer": peer, "floor": Bare(BARE[type(peer)])}
        contenders = {n: lambda e=e: cross_val_predict(e, x, y, cv=10) for n, e in estimators.items()}
        agree(type(peer).__name__, contenders["ours"](), contenders["floor"](), 0)
        seconds = medians(contenders, 9, 3, time.process_time)
        name, floor = type(peer).__name__, seconds["ours"] / seconds["floor"]
        table.add("cross_val_predict, 150 rows, 10 folds", name, seconds["peer"] / seconds["ours"], 1.5, floor)
    concentrations = {"class_concentration": [0.5, 1.0, 2.0, 4.0]}
    grids = {
        "ours": GridSearchCV(GaussianDiscriminantClassifier(), concentrations),
        "peer": GridSearchCV(QuadraticDiscriminantAnalysis(), {"reg_param": [0.0, 0.1, 0.2, 0.3]}),
        "floor": GridSearchCV(Bare(), concentrations),
    }
    seconds = medians({n: lambda g=g: g.fit(x, y) for n, g in grids.items()}, 9, 1, time.process_time)
    floor = seconds["ours"] / seconds["floor"]
    table.add("GridSearchCV, 150 rows", "QuadraticDiscriminantAnalysis", seconds["peer"] / seconds["ours"], 1.5, floor)


def labels(table, quick):
    """Class labels that are text."""
    x, t = rows("gaussian", 20_000 if quick else 1_000_000, 10, 2)
    y = np.array(["ham", "spam"])[t]
    for kind, own in (("str array", y), ("object array", y.astype(object)), ("Series", pd.Series(y.astype(object)))):
        compare(table, f"labels {kind}, 1e6 x 10", NaiveBayesClassifier(), GaussianNB(), x, own, (4,), tasks=("fit",))


def text(table, quick):
    """Words in CSR; the floor is the bare product, in a prediction from counts with a table of columns and counts."""
    n, columns = (2000, 5000) if quick else (20_000, 50_000)
    rng = np.random.default_rng(0)
    few = words(n, columns, 90)
    many = with_data(few, rng.poisson(1, few.nnz) + 1.0)
    bits = with_data(few, np.ones(few.nnz))
    score = few @ np.linspace(-1, 1, columns)
    for classes in (2, 4):
        t = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
        member = np.eye(classes)[t]
        for name, family, x, peer, goals in (
            ("counts mostly 1", "multinomial", few, MultinomialNB(), (1, 0.6)),
            ("counts Poisson(1) + 1", "multinomial", many, MultinomialNB(), (1, 0.6)),
            ("bits", "bernoulli", bits, BernoulliNB(), (2, 2)),
        ):
            levels = min(int(x.data.max()), LARGEST_TABLE // (8 * columns * classes))
            moved = (x.indices + columns * (np.minimum(x.data, levels) - 1)).astype(np.int32)
            cells = sparse.csr_array((np.ones(x.nnz), moved, x.indptr), shape=(n, columns * levels))
            weight = rng.normal(size=(columns * levels, classes))
            floors = {"fit": lambda: x.T @ member, "predict": lambda: cells @ weight}
            cell = f"{name}, 2e4 x 5e4, {classes} classes"
            compare(table, cell, NaiveBayesClassifier(family), peer, x, t, goals, floors=floors)


def distances(x, whiten, centres):
    """Squared distances of rows from centres, whitened: the least work of a prediction with full covariances."""
    for own in pieces(len(x), len(centres) * x.shape[1]):
        z = whiten @ (x[own].T - centres)
        z *= z
        z.sum(1)


def gaps(table, quick):
    """Rows with gaps; the floor is our prediction of complete ones. And many columns, with two threads."""
    x, t = rows("gaussian", 5000 if quick else 100_000, 10, 3)
    ours, peer = GaussianDiscriminantClassifier(), make_pipeline(SimpleImputer(), QuadraticDiscriminantAnalysis())
    ours.fit(x, t)
    peer.fit(x, t)
    holes = np.where(np.random.default_rng(0).random(x.shape) < 0.05, np.nan, x)
    contenders = {
        "peer": lambda: peer.predict(holes),
        "ours": lambda: ours.predict(holes),
        "floor": lambda: ours.predict(x),
    }
    seconds = medians(contenders, 5, 1, time.process_time)
    cell, floor = "gaps of 5 %, 1e5 x 10, predict", seconds["ours"] / seconds["floor"]
    table.add(cell, "imputer and QDA", seconds["peer"] / seconds["ours"], 1.5, floor)
    for dim in (20, 50):
        x, t = rows("gaussian", 5000 if quick else 100_000, dim, 3)
        ours, peer = GaussianDiscriminantClassifier(), QuadraticDiscriminantAnalysis()
        floors = {"predict": lambda: distances(x, np.tri(dim), np.ones((3, dim, 1)))}
        with threadpool_limits(2):
            cell = f"two threads, 1e5 x {dim}"
            compare(table, cell, ours, peer, x, t, (1.5,), tasks=("predict",), floors=floors)


def student_passes(x):
    """The passes over the entries for a density of naive Bayes, in float64, and one logarithm a row and class."""
    for own in pieces(len(x), x.shape[1]):
        columns = x[own].T.astype(float)
        for _ in range(2):
            z = columns - 1.0
            z *= 0.5
            z *= z
            z += 1
            np.log(np.multiply.reduce(z))


def float32(table, quick):
    """A DataFrame of float32, and the memory that fit and prediction take beside it."""
    x, t = rows("gaussian", 20_000 if quick else 1_000_000, 20, 2)
    x = frame(x.astype(np.float32))
    ours = NaiveBayesClassifier()
    floors = {"predict": lambda: student_passes(x.to_numpy())}
    compare(table, "float32 DataFrame 1e6 x 20", ours, GaussianNB(), x, t, (4, 2), floors=floors)
    peaks = []
    for run in (lambda: ours.fit(x, t), lambda: ours.predict_proba(x)):
        tracemalloc.start()
        run()
        peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
    table.note += f" Memory beside the float32 X: {peaks[0]:.0f} MB at fit, {peaks[1]:.0f} MB at prediction"
    table.note += " (asked: 20), of which 16 MB are the probabilities."


def newton(columns, t, start=None):
    """Newton's method for the mode of logistic regression in bare NumPy, from the mode of every tenth row."""
    ridge = 2.5**-2 * np.eye(len(columns))
    v, close = (np.zeros(len(columns)), 0.01) if start is None else (start, 1e-10)
    while True:
        p = expit(v @ columns)
        hessian = columns * (p * (1 - p)) @ columns.T + ridge
        slope = columns @ (p - t) + ridge @ v
        step = np.linalg.solve(hessian, slope)
        v = v - step
        if slope @ step < close:
            return v


def logistic(table, quick):
    """The mode of logistic regression under one penalty: ours to rounding, theirs to a gradient of 1e-4 and of 1e-8."""
    for n in (2000,) if quick else (10_000, 200_000):
        x, t = rows("gaussian", n, 10, 2)
        ours, cell = LogisticClassifier(inference="map", prior_scale=2.5), f"logistic mode, {n:.0e} x 10"

        def bare():
            columns = np.vstack([np.ones(n), ((x - x.mean(0)) / x.std(0)).T])
            return newton(columns, t, newton(columns[:, ::10], t[::10]))

        scaled = ours.fit(x, t).coef_[0] * ours.scale_
        agree("logistic mode", scaled, bare()[1:], 1e-6)
        floors = {"fit": bare}
        for tolerance, name in ((1e-4, cell), (1e-8, f"{cell}, tol=1e-8")):
            peer = LogisticRegression(C=2.5**2, tol=tolerance)
            compare(table, name.replace("e+0", "e"), ours, peer, x, t, (1,), tasks=("fit",), floors=floors)


def file_of_fields(table, quick):
    """A CSV file, read by us, by pandas, and by Arrow into its own types alone, which is the floor."""
    rng, n = np.random.default_rng(0), 2000 if quick else 200_000
    own = frame(rng.normal(size=(n, 12)).round(4))
    own["column 10"], own["column 11"] = rng.choice(list("abcd"), n), rng.integers(9, size=n)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table.csv"
        own.to_csv(path, index=False)
        pd.testing.assert_frame_equal(read(path).table, pd.read_csv(path))
        contenders = {
            "ours": lambda: read(path),
            "peer": lambda: pd.read_csv(path),
            "floor": lambda: csv.read_csv(path, csv.ReadOptions(use_threads=False)),
        }
        seconds = medians(contenders, 5, 1, time.process_time)
    ours = seconds["ours"]
    table.add(f"CSV, {n:.0e} x 12".replace("e+0", "e"), "pandas", seconds["peer"] / ours, 0.68, ours / seconds["floor"])


def pairs_apart(table, quick):
    """Heads and tosses of which no pair is there twice, against log-gammas, which lose digits."""
    rng, n, a, b = np.random.default_rng(0), 2000 if quick else 100_000, 2.5, 3.5
    tosses = rng.integers(100_000, size=n).astype(float)
    x = np.floor(rng.random(n) * (tosses + 1))
    y = tosses - x

    def plain():
        ways = gammaln(tosses + 1) - gammaln(x + 1) - gammaln(y + 1)
        return ways + gammaln(a + x) + gammaln(b + y) - gammaln(a + b + tosses) - betaln(a, b)

    agree("beta-binomial", log_beta_binomial(a, b, x, y), plain(), 1e-8)
    seconds = medians({"ours": lambda: log_beta_binomial(a, b, x, y), "peer": plain}, 5, 5, time.process_time)
    table.add("pairs (heads, tosses) all apart, 1e5", "log-gammas", seconds["peer"] / seconds["ours"], None)


FLOORS = (
    "Floors are bare kernels, without any reading or checking. Words: the sparse product, in a prediction with a "
    "table of columns and counts. Gaps: our prediction of complete rows. Categories: one `bincount` of entries that "
    "are numbers of cells already. Bernoulli: the product with the members of the classes. Two threads: the whitened "
    "distances. float32: the passes of a Student-t over the entries, in float64. Predictions of a thousand rows: the "
    "same densities in bare NumPy; cross-validation and search: behind scikit-learn's own checks. Logistic mode: "
    "Newton's method in bare NumPy."
)

PARTS = (frames, folds, labels, text, gaps, float32, logistic, file_of_fields, pairs_apart)


def run(quick: bool = False) -> list[Table]:
    """Fill the table."""
    table = Table("Tables that users bring", f"CPU time on one thread. {FLOORS}")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in PARTS:
            part(table, quick)
    return [table]
