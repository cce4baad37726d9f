"""Numbers of narrow types hold the same values, so every answer is the same as for float64."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import bayesgen as bg


@pytest.mark.parametrize("table", [np.asarray, pd.DataFrame, sparse.csr_array])
def test_evidence_of_large_counts_in_float32(table):
    X, y = np.random.default_rng(0).binomial(6_000_000, 0.5, (200, 3)), np.arange(200) % 2
    found = bg.NaiveBayesClassifier(features="poisson").fit(table(X.astype(np.float32)), y)
    expected = bg.NaiveBayesClassifier(features="poisson").fit(X.astype(float), y).log_evidence_
    np.testing.assert_allclose(found.log_evidence_, expected, rtol=1e-8)


@pytest.mark.parametrize("table", [np.asarray, sparse.csr_array])
def test_bags_of_many_words_in_float32(table):
    X, y = np.random.default_rng(0).integers(0, 1 << 24, (12, 7)), np.r_[np.zeros(11, int), 1]
    whole, narrow = (
        bg.NaiveBayesClassifier(features="multinomial").fit(table(X.astype(t)), y) for t in (np.int64, np.float32)
    )
    np.testing.assert_allclose(narrow.log_evidence_, whole.log_evidence_, rtol=1e-14)
    found = narrow.predict_joint_log_proba(table(X.astype(np.float32)))
    np.testing.assert_allclose(found, whole.predict_joint_log_proba(table(X)), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_logarithms_of_narrow_types(dtype):
    rng, y = np.random.default_rng(0), np.arange(300) % 2
    X = (230 + 4 * rng.normal(size=(300, 3)) + 2 * y[:, None]).clip(200, 255).astype(np.uint8)
    wide, narrow = (bg.NaiveBayesClassifier(features="log1p").fit(X.astype(t), y) for t in (float, dtype))
    assert narrow.log_evidence_ == pytest.approx(wide.log_evidence_, rel=1e-12)
    np.testing.assert_allclose(wide.predict_proba(X.astype(dtype)), wide.predict_proba(X.astype(float)), rtol=1e-10)


@pytest.mark.parametrize("setting", [{"prior": "reference"}, {"inference": "ml"}])
@pytest.mark.parametrize("shared", [False, True])
def test_full_covariances_in_extreme_units(setting, shared):
    rng, y = np.random.default_rng(0), np.arange(40) % 2
    X = rng.normal(size=(40, 3)) + y[:, None]
    one, small, large = (
        bg.GaussianDiscriminantClassifier(shared=shared, **setting).fit(X * unit, y).predict_proba(X * unit)
        for unit in (1.0, 1e-120, 1e140)
    )
    np.testing.assert_allclose([small, large], [one, one], rtol=1e-9)
