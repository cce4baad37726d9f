"""Members along a missing entry, from one factorisation, against the densities of rows with that entry filled in."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.averaging.given_the_rest import Members
from bayesgen.averaging.missing import entries

rng = np.random.default_rng(0)
Y = np.repeat([0, 1, 2], 20)
NUMBERS = pd.DataFrame(rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + Y[:, None], columns=list("abcd"))
NUMBERS["d"] = np.exp(NUMBERS["d"])
CATEGORIES = pd.DataFrame(
    {"e": np.array(["u", "v", "w"])[(Y + rng.integers(2, size=60)) % 3], "f": rng.random(60) < 0.4}
)
MIXED = pd.concat([NUMBERS, CATEGORIES], axis=1)


def averages():
    yield "numbers", NUMBERS[["a", "b", "d"]], {"members": "generative"}
    yield "gaps at fit", MIXED[["a", "d", "e", "f"]].mask(rng.random((60, 4)) < 0.1), {}
    yield "one number", NUMBERS[["a"]], {}
    yield "categories", CATEGORIES, {}


@pytest.mark.parametrize(("table", "settings"), [pytest.param(*own, id=name) for name, *own in averages()])
def test_members_along_an_entry_are_those_of_rows_with_it(table, settings):
    fitted = bg.AveragedClassifier(**settings).fit(table, Y)
    average, priors = fitted.average_, np.array([0.2, 0.5, 0.3])
    holed = table.mask(np.random.default_rng(1).random(table.shape) < 0.4)[::8]
    x, c = (part.copy() for part in fitted._read(holed).values())
    x[:2], c[:2] = np.nan, -1  # rows of nothing
    some = np.random.default_rng(2).random(len(average.weights)) < 0.5
    for used in (average.weights > 0, average.density_weights > 0, some):
        members = Members(average, used)
        numbers = list(entries(members, x, c))
        np.testing.assert_array_equal(np.sort(np.concatenate([own for own, *_ in numbers])), np.arange(len(x)))
        assert sum(len(row) for *_, gaps in numbers for row, _ in gaps) == np.isnan(x).sum()
        for own, rows, gaps in numbers:
            check(average, used, members, rows.here(), x[own], c[own], priors)
            for row, column in gaps:
                warp = average.taking("numbers")[0].view.warp.take(column)
                y = np.random.default_rng(3).normal(scale=3, size=(len(row), 5))
                values = warp.back(y.T).T
                filled = np.repeat(x[own[row]], 5, axis=0)
                filled[np.arange(len(filled)), np.repeat(column, 5)] = values.ravel()
                found = rows.along(row, column, values, y).reshape(used.sum(), 3, -1)
                check(average, used, members, found, filled, np.repeat(c[own[row]], 5, axis=0), priors)
            for j in range(c.shape[1]):
                row, levels = np.flatnonzero(c[own, j] < 0), members.categorical.levels[j]
                if len(row):
                    filled = np.repeat(c[own[row]], levels, axis=0)
                    filled[:, j] = np.tile(np.arange(levels), len(row))
                    found = rows.levels(row, j).reshape(used.sum(), 3, -1)
                    check(average, used, members, found, np.repeat(x[own[row]], levels, axis=0), filled, priors)


def check(average, used, members, found, x, c, priors):
    """Compare (M, K, n) with the densities of the average, and the two averages of them."""
    np.testing.assert_allclose(found, np.swapaxes(average.log_density(x, c, used), 1, 2), rtol=1e-9, atol=1e-9)
    if (used == (average.weights > 0)).all():
        for p in (None, priors):
            same = replace(average, given=p)
            own = Members(same, used).probability(found).T
            np.testing.assert_allclose(own, same.probability(x, c), atol=1e-11)
    if (used == (average.density_weights > 0)).all():
        slope = average.taking("numbers")[0].view.warp.log_slope(x)[:, None] if average.taking("numbers") else 0.0
        np.testing.assert_allclose(members.log_joint(found).T + slope, average.log_joint(x, c), rtol=1e-10, atol=1e-10)
