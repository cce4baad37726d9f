"""Statistics that are summed elsewhere, piece by piece, give the fit of all rows: every family, gaps, weights."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import sparse

import bayesgen as bg
from bayesgen import models

RNG = np.random.default_rng(4)
Y = np.repeat(["a", "b", "c"], [14, 20, 26])
LEVEL = np.unique(Y, return_inverse=True)[1]
NUMBERS = RNG.normal(LEVEL[:, None] + [0.0, 50.0, -3.0], [1.0, 5.0, 0.1])
COUNTS = RNG.poisson(1.0 + LEVEL[:, None], (60, 4)).astype(float)
WEIGHT = RNG.uniform(0.2, 3.0, 60)
GAPS = RNG.random(NUMBERS.shape) < 0.15


def mixed():
    """A table of numbers, bools, categories and counts, with gaps."""
    table = pd.DataFrame(NUMBERS, columns=["x", "y", "z"]).mask(GAPS)
    table["link"] = RNG.random(60) < 0.2 + 0.2 * LEVEL
    table["colour"] = pd.Categorical(np.where(RNG.random(60) < 0.5, "red", "blue"), ["red", "blue", "green"])
    return table.assign(calls=COUNTS[:, 0])


NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
CASES = {
    "numbers": (NB(), NUMBERS),
    "numbers with gaps": (NB(), np.where(GAPS, np.nan, NUMBERS)),
    "mixed": (NB({"calls": "poisson"}), mixed()),
    "counts": (NB("poisson"), COUNTS),
    "bits": (NB("bernoulli"), (COUNTS > 1) * 1.0),
    "categories": (NB("categorical"), np.minimum(COUNTS, 4).astype(int)),
    "logarithms": (NB({"x": "log1p", ("y", "z"): "log"}), pd.DataFrame(COUNTS[:, :3] + 0.5, columns=["x", "y", "z"])),
    "successes": (NB({"x0": models.BetaBinomial(1.0, 1.0, trials=20)}), COUNTS),
    "words": (NB("multinomial"), sparse.csr_array(COUNTS)),
    "own prior": (NB({"x": models.NormalInverseGamma(0.0, 1.0, 2.0, 1.0)}), mixed()),
    **{
        f"{covariance}, {'shared' if shared else 'own'}": (GD(covariance, shared), NUMBERS)
        for covariance in ("full", "diagonal", "isotropic")
        for shared in (False, True)
    },
    "full with gaps": (GD(inference="map"), np.where(GAPS, np.nan, NUMBERS)),
}


def rows(X, chosen):
    return X.iloc[chosen] if isinstance(X, pd.DataFrame) else X[chosen]


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("case", CASES)
def test_pieces_summed_elsewhere_teach_what_the_rows_would(case, weight):
    estimator, X = CASES[case]
    whole = estimator.fit(X, Y, weight)
    cuts = np.split(RNG.permutation(60), [17, 18, 40])
    schema = whole.row_schema([(X, Y)], schema=whole.schema_, classes=whole.classes_)
    pieces = [schema.sum((rows(X, own), Y[own], None if weight is None else weight[own])) for own in cuts]
    again = bg.NaiveBayesClassifier if isinstance(estimator, NB) else GD
    again = again(**estimator.get_params(deep=False)).fit_statistics(whole.schema_, sum(pieces), whole.classes_)
    np.testing.assert_allclose(again.predict_proba(X), whole.predict_proba(X), rtol=1e-10, atol=1e-10)
    assert again.n_features_in_ == whole.n_features_in_
    assert hasattr(again, "feature_names_in_") == hasattr(whole, "feature_names_in_")
    if whole.model_.conjugate and case != "full with gaps":
        assert again.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)


def test_what_does_not_belong_together_is_refused():
    one, other = NB().fit(NUMBERS, Y), NB("poisson").fit(COUNTS, Y)
    refuses(lambda: NB().fit_statistics(one.schema_, other.statistics_, one.classes_), "they are of different tables")
    refuses(lambda: NB().fit_statistics(one.schema_, one.statistics_, ["a", "b"]), "statistics are of 3 classes, not 2")
    with pytest.raises(ValueError, match="classes must be distinct labels in order"):
        NB().fit_statistics(one.schema_, one.statistics_, ["c", "b", "a"])


def test_a_failed_fit_leaves_the_one_before():
    fitted = NB().fit(NUMBERS, Y)
    before = fitted.predict_proba(NUMBERS)
    with pytest.raises(ValueError):
        fitted.fit_statistics(fitted.schema_, fitted.statistics_, ["a", "b"])
    np.testing.assert_array_equal(fitted.predict_proba(NUMBERS), before)
