"""Categories of thousands of levels: what is asked of them, and what a fit costs."""

import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesgen import AveragedClassifier
from bayesgen.averaging import ensembles
from bayesgen.averaging.ensembles import ForestMember
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.view import Training
from bayesgen.core.shapes import check_shapes

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers


def many_levels(n, levels, seed=0):
    """Two numbers and a category whose levels move the log odds of two classes; the first are the most common."""
    rng = np.random.default_rng(seed)
    c = np.minimum(rng.exponential(levels / 3, n).astype(int), levels - 1)
    x = rng.normal(size=(n, 2))
    y = np.random.default_rng(9).normal(size=levels)[c] + x[:, 0] + rng.logistic(size=n) > 0
    return pd.DataFrame(x).add_prefix("x").assign(c=[f"level {code}" for code in c]), y.astype(int)


def test_of_thousands_of_levels_a_forest_asks_about_the_common_ones_whatever_the_classes():
    rng, n, levels = np.random.default_rng(0), 4000, 1500
    c = np.where(rng.random(n) < 0.3, 7, rng.integers(-1, levels, n))
    rows = Rows(
        rng.normal(size=(n, 1)), np.column_stack([c, rng.integers(3, size=n)]), c % 2, np.ones(n), (levels, 3), 2
    )
    of_others, other = replace(rows, codes=rng.integers(2, size=n)), [0, 1 + 7, *range(1 + levels, 1 + levels + 3)]
    assert ensembles.asked_about(rows)[0].tolist() == ensembles.asked_about(of_others)[0].tolist() == other
    alone = replace(rows, x=rows.x[:, :0], c=np.arange(n)[:, None] % levels, levels=(levels,))
    assert len(ensembles.asked_about(alone)[0]) == 1  # no level is common
    for every in (rows, alone):
        (forest,) = ForestMember.fit([(ForestMember(),)], Training(every, every))
        check_shapes(forest, {"columns": every.x.shape[1], "levels of each": every.levels, "classes": 2})
        whole = forest.trees.leaves(ensembles.together(every.x, every.c, every.levels))
        votes = np.concatenate([forest.trees.leaf[leaves].sum(1, dtype=float) for _, leaves in whole])
        expected = np.log((votes + 0.5) / (len(forest.trees.root) + 1)) - forest.log_prior
        seen = ~(np.isnan(every.x).all(1) & (every.c < 0).all(1))
        np.testing.assert_allclose(forest.shares(every.x, every.c)[0][seen], expected[seen], atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*taken as missing, of categories:UserWarning")
def test_twenty_thousand_rows_of_ten_thousand_levels_take_twenty_seconds_and_no_dense_matrix():
    X, y = many_levels(20_000, 10_000)
    assert X["c"].nunique() > 5000
    start = time.process_time()
    tracemalloc.start()
    classifier = AveragedClassifier().fit(X, y)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 300e6
    start = time.process_time()
    classifier = AveragedClassifier().fit(X, y)
    assert time.process_time() - start < 20
    X, y = many_levels(4000, 10_000, seed=1)
    without = AveragedClassifier().fit(X[["x0", "x1"]][::2], y[::2])
    assert classifier.score(X, y) > without.score(X[["x0", "x1"]], y)
