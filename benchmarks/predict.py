"""Prediction: the exact posterior predictive against scikit-learn's plug-in `predict_proba`.

Ours answers a harder question (a Student-t, not a normal) and is still to be faster. Before the clock starts our log
density is compared with a plain formula, by SciPy or by triangular solves, to 1e-9.
"""

# ruff: noqa: B023 - a contender is called in the turn of the loop that makes it

import numpy as np
from scipy import stats
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB

from bayesgen import GaussianDiscriminantClassifier, NaiveBayesClassifier
from benchmarks.fit import as_rows, model, rows
from benchmarks.timing import Table, agree, medians

SIZES = [(1_000, 10, 2), (100_000, 10, 10), (1_000_000, 100, 2)]
QUICK = [(1_000, 10, 2), (20_000, 10, 10)]
GOALS = {"gaussian": 2, "vector": 1.5, "bernoulli": 4, "categorical": 4}
PEERS = {
    "gaussian": GaussianNB,
    "vector": QuadraticDiscriminantAnalysis,
    "bernoulli": BernoulliNB,
    "categorical": CategoricalNB,
}


def plain(family: str, posterior, x):
    """The log joint density by the textbook formula, (n, K)."""
    leaf = next(iter(posterior.leaves.values()))
    prior = np.log(posterior.classes.mean)
    x = x[:, None]
    if family == "gaussian":
        terms = stats.t(2 * leaf.alpha, leaf.mean, np.sqrt(leaf.squared_scale)).logpdf(x)
    elif family == "bernoulli":
        terms = stats.bernoulli(leaf.mean).logpmf(x)
    elif family == "categorical":
        terms = np.log(np.take_along_axis(leaf.mean[None], x[..., None], -1)[..., 0])
    else:
        columns = []
        for k in range(len(leaf.mean)):
            dof, dim = leaf.dof[k], x.shape[-1]
            root = np.linalg.cholesky(leaf.predictive_scale[k])
            z = solve_triangular(root, (x[:, 0] - leaf.mean[k]).T, lower=True)
            constant = gammaln((dof + dim) / 2) - gammaln(dof / 2) - 0.5 * dim * np.log(np.pi * dof)
            tail = (dof + dim) / 2 * np.log1p((z * z).sum(0) / dof)
            columns.append(constant - np.log(np.diagonal(root)).sum() - tail)
        return prior + np.stack(columns, axis=1)
    return prior + terms.sum(-1)


def probabilities(posterior, x):
    """Class probabilities of a model: its log joint, normalised."""
    joint = posterior.log_predictive(x)
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def run(quick: bool = False) -> list[Table]:
    """Fill the table."""
    table = Table(
        "Prediction", "`log joint` is the kernel; `estimator` is `predict_proba`. The floor is one read of X (its sum)."
    )
    for n, dim, groups in QUICK if quick else SIZES:
        size, repeats = f"{n:.0e} x {dim}, {groups} classes".replace("e+0", "e"), 3 if n * dim > 1e7 else 5
        for family, make in PEERS.items():
            x, t = rows("gaussian" if family == "vector" else family, n, dim, groups)
            ours = model(family, dim, groups)
            posterior = ours.update(ours.statistics(as_rows(ours, x), t))
            agree(
                f"{family} density",
                posterior.log_predictive(as_rows(ours, x[:2000])),
                plain(family, posterior, x[:2000]),
                1e-9,
            )
            train = slice(min(n, 100_000))
            peer = make().fit(x[train], t[train])
            estimator = GaussianDiscriminantClassifier() if family == "vector" else NaiveBayesClassifier(family)
            estimator.fit(x[train], t[train])
            contenders = {
                "peer": lambda: peer.predict_proba(x),
                "log joint": lambda: posterior.log_predictive(as_rows(ours, x)),
                "estimator": lambda: estimator.predict_proba(x),
                "floor": x.sum,
            }
            time = medians(contenders, repeats)
            goal = 3 if family == "vector" and n >= 100_000 else GOALS[family]
            for name in ("log joint", "estimator"):
                ratio, floor = time["peer"] / time[name], time[name] / time["floor"]
                table.add(f"{family} {size} {name}", make.__name__, ratio, goal, floor)
    return [table]
