"""An average exported as JavaScript answers as the average itself."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scorers import assert_equal, hard, records, scorer

import bayesgen as bg
from bayesgen.inspection import next_measurement


def table(rng, n, numbers=4, classes=3) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, one of them skewed, a column of text, a bool and few grades, of classes that overlap."""
    y = rng.integers(0, classes, n)
    X = pd.DataFrame({f"x{j}": rng.normal(y * (j % 4 + 1) * 0.4, 1 + j) for j in range(numbers)})
    X["x1"] = np.exp(X["x1"] / 3)
    X["colour"] = np.array(["red", "it's", "</a>"])[(y + rng.integers(0, 3, n)) % 3]
    X["wet"] = rng.random(n) < (y + 1) / (classes + 1)
    X["grade"] = (y + rng.integers(0, 3, n)).astype(float)
    return X, np.array([f"k{k}" for k in range(classes)])[y]


FAMILIES = {
    "gaussian": ["gaussian"],
    "mixture": ["mixture"],
    "products": ["gaussian", "category"],
    "softmax": ["softmax", "category"],
    "screened and coded": ["screened", "coded"],
    "trees": ["forest", "boosted"],
}


def check(classifier, X, count, rng):
    """Hold probabilities against Python's; and of a row with gaps its evidence and the values of what it lacks."""
    rows = hard(X, count, rng)
    with scorer(classifier) as made:
        assert_equal(classifier, made, rows, apart=False)
        row = X.iloc[[3]].astype(object)
        row.iloc[0, [0, 4, 5]] = None
        given = records(row)[0]
        terms = {t["column"]: t["contribution"] for t in made.ask("explain(row)", row=given)}
        assert terms == pytest.approx(classifier.explain(row, row=0).terms, abs=1e-9)
        if classifier.average_.density_weights.any():
            values = next_measurement(classifier, row).iloc[0].dropna().to_dict()
            found = {f["column"]: f["value"] for f in made.ask("nextMeasurement(row)", row=given)}
            assert found == pytest.approx(values, abs=1e-6)
            assert made.ask("predictProbaInterval(row)", row=given) is None
        priors = np.array([0.6, 0.3, 0.1])
        told = made.proba(rows[:20], priors=priors.tolist())
        assert np.abs(told - classifier.predict_proba(rows[:20], priors=priors)).max() < 1e-9


@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_is_scored_as_in_python(name):
    rng = np.random.default_rng(0)
    X, y = table(rng, 1001 if name == "trees" else 150)  # the fewest rows that trees are boosted with
    X.loc[::11, "x0"] = np.nan  # gaps at the fit too
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(bg.AveragedClassifier(members=FAMILIES[name]).fit(X, y), X, 200, rng)
