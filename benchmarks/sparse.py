"""Sparse rows: bits and bags of words in CSR, against BernoulliNB and MultinomialNB.

The exact predictive of a bag of words is a Dirichlet-multinomial, which looks up a term for every count, where
MultinomialNB plugs in one number a word.
"""

# ruff: noqa: B023 - a contender is called in the turn of the loop that makes it

import numpy as np
from scipy import sparse
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

from bayesgen.models import BetaBernoulli, DirichletCategorical, DirichletMultinomial, NaiveBayes
from benchmarks.timing import Table, agree, medians


def words(n: int, columns: int, mean: float = 43, seed: int = 0):
    """Counts in CSR, some ``mean`` words a document, frequencies by Zipf's law."""
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, columns + 1)
    length = rng.poisson(mean, n)
    word = np.searchsorted(np.cumsum(weight / weight.sum()), rng.random(length.sum())).clip(max=columns - 1)
    document = np.repeat(np.arange(n), length)
    return sparse.csr_array(sparse.coo_array((np.ones(len(word)), (document, word)), shape=(n, columns)))


def run(quick: bool = False) -> list[Table]:
    """Fill the table."""
    table = Table(
        "Sparse rows", "Ours are the models' statistics and posterior, and log joint. Floor: a read of what is stored."
    )
    n, columns = (5_000, 5_000) if quick else (100_000, 100_000)
    counts = words(n, columns)
    bits = sparse.csr_array((np.ones(counts.nnz), counts.indices, counts.indptr), shape=counts.shape)
    for groups in (2, 10):
        t = np.random.default_rng(1).integers(groups, size=n)
        for x, leaf, make, fit, predict in [
            (bits, BetaBernoulli(np.ones(columns), 1.0), BernoulliNB, 2.5, 2.5),
            (counts, DirichletMultinomial(np.ones(columns)), MultinomialNB, 2, 1.7),
        ]:
            ours = NaiveBayes(DirichletCategorical(1.0, groups), {"x": leaf})
            peer, statistics = make().fit(x, t), ours.statistics({"x": x}, t)
            sums = statistics.leaves["x"].sums
            agree("counts", sums[..., 1] if make is BernoulliNB else sums, peer.feature_count_, 0)
            posterior = ours.update(statistics)
            thin, thick = (posterior.log_predictive({"x": rows}) for rows in (x[:50], x[:50].toarray()))
            agree("sparse and dense", thin, thick, 1e-10)
            contenders = {
                "peer fit": lambda: make().fit(x, t),
                "fit": lambda: ours.update(ours.statistics({"x": x}, t)),
                "peer predict": lambda: peer.predict_proba(x),
                "predict": lambda: posterior.log_predictive({"x": x}),
                "floor": lambda: (x.indices.sum(), x.data.sum()),
            }
            time = medians(contenders, 3)
            for name, goal in (("fit", fit), ("predict", predict)):
                cell = f"{type(leaf).__name__} {n} x {columns}, {groups} classes, {name}"
                table.add(cell, make.__name__, time[f"peer {name}"] / time[name], goal, time[name] / time["floor"])
    return [table]
