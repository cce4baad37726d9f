"""Fit: sufficient statistics and posterior, against scikit-learn's naive Bayes and discriminants.

Both sides get the same array and integer labels; scikit-learn has its default settings, and the discriminants also
their fastest solver. Ours is measured as model (labels are codes) and as estimator (labels are looked up, the table is
read).
"""

# ruff: noqa: B023 - a contender is called in the turn of the loop that makes it

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB

from bayesgen import GaussianDiscriminantClassifier, NaiveBayesClassifier
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
)
from benchmarks.timing import Table, agree, medians

NAIVE = [("gaussian", GaussianNB, 6), ("bernoulli", BernoulliNB, 10), ("categorical", CategoricalNB, 10)]
SIZES = [(1_000, 10, 2), (100_000, 10, 10), (1_000_000, 10, 2), (1_000_000, 100, 10)]
QUICK = [(1_000, 10, 2), (20_000, 10, 10)]


def rows(family: str, n: int, dim: int, groups: int, seed: int = 0):
    """Rows of one family whose classes differ, float64 (codes: int64), and their class codes."""
    rng = np.random.default_rng(seed)
    t = rng.integers(groups, size=n)
    if family == "gaussian":
        x = rng.standard_normal((n, dim))
        x += rng.normal(size=(groups, dim))[t]
    elif family == "bernoulli":
        x = (rng.random((n, dim)) < rng.uniform(0.1, 0.9, (groups, dim))[t]).astype(float)
    else:
        x = (rng.random((n, dim)) * 5 * rng.uniform(0.6, 1.0, (groups, dim))[t]).astype(np.int64)
        x[:5] = np.arange(5)[:, None]  # every category occurs in every column
    return x, t


def model(family: str, dim: int, groups: int, shared: bool = False):
    """Our model of a family; a discriminant for "vector"."""
    classes = DirichletCategorical(1.0, groups)
    if family == "vector":
        prior = NormalInverseWishart(np.zeros(dim), 0.01, 3.0 * dim, (2 * dim - 1.0) * np.eye(dim))
        return GaussianDiscriminant(classes, prior, shared=shared)
    leaf = {
        "gaussian": NormalInverseGamma(np.zeros(dim), 0.01, 1.0, 1.0),
        "bernoulli": BetaBernoulli(np.ones(dim), 1.0),
        "categorical": DirichletCategorical(np.ones((dim, 5)), 5),
    }[family]
    return NaiveBayes(classes, {"x": leaf})


def as_rows(ours, x):
    """Rows as the model takes them."""
    return x if isinstance(ours, GaussianDiscriminant) else {"x": x}


def check_naive_bayes(family, statistics, peer):
    """Our statistics give scikit-learn's parameters."""
    own = statistics.leaves["x"]
    if family == "gaussian":
        agree("means", own.mean, peer.theta_, 1e-9)
        agree("variances", own.scatter / own.n + peer.epsilon_, peer.var_, 1e-9)
    elif family == "bernoulli":
        agree("counts", own.sums[..., 1], peer.feature_count_, 0)
    else:
        agree("counts", own.sums.swapaxes(0, 1), np.stack(peer.category_count_), 0)


def run(quick: bool = False) -> list[Table]:
    """Fill the tables."""
    naive = Table("Fit of naive Bayes", "The floor is one read of X (its sum). `estimator` includes reading the table.")
    vector = Table("Fit of full Gaussians", "Per class and shared, against each of scikit-learn's solvers.")
    for n, dim, groups in QUICK if quick else SIZES:
        size, repeats = f"{n:.0e} x {dim}, {groups} classes".replace("e+0", "e"), 3 if n * dim > 1e7 else 5
        for family, make, goal in NAIVE:
            x, t = rows(family, n, dim, groups)
            ours, estimator = model(family, dim, groups), NaiveBayesClassifier(family)
            check_naive_bayes(family, ours.statistics({"x": x}, t), make().fit(x, t))
            contenders = {
                "peer": lambda: make().fit(x, t),
                "model": lambda: ours.update(ours.statistics({"x": x}, t)),
                "estimator": lambda: estimator.fit(x, t),
                "floor": x.sum,
            }
            time = medians(contenders, repeats)
            wanted = 12 if n * dim == 1e8 else goal
            for name in ("model", "estimator"):
                ratio, floor = time["peer"] / time[name], time[name] / time["floor"]
                naive.add(f"{family} {size} {name}", make.__name__, ratio, wanted, floor)
        x, t = rows("gaussian", n, dim, groups)
        for shared in (False, True):
            ours = model("vector", dim, groups, shared)
            estimator = GaussianDiscriminantClassifier(shared=shared)
            solvers = ("svd", "lsqr") if shared else ("svd", "eigen")
            make = LinearDiscriminantAnalysis if shared else QuadraticDiscriminantAnalysis
            statistics = ours.statistics(x, t).leaves["gaussian"]
            agree("means", statistics.mean, make(solver=solvers[1]).fit(x, t).means_, 1e-9)
            contenders = {s: lambda s=s: make(solver=s).fit(x, t) for s in solvers}
            contenders["model"] = lambda: ours.update(ours.statistics(x, t))
            contenders["estimator"] = lambda: estimator.fit(x, t)
            contenders["floor"] = x.sum
            time = medians(contenders, repeats)
            for name in ("model", "estimator"):
                for solver, goal in zip(solvers, (5, 3), strict=True):
                    cell = f"{'shared' if shared else 'per class'} {size} {name}"
                    ratio, floor = time[solver] / time[name], time[name] / time["floor"]
                    vector.add(cell, f"{make.__name__}({solver})", ratio, goal, floor)
    return [naive, vector]
