"""Odd but valid input, and numbers of narrow types, are read as any other."""

import enum

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from refusals import GD, NB, X, Y, refuses
from scipy import sparse

import bayesgen as bg
from bayesgen import models

ODD = {
    "big-endian": X.to_numpy().astype(">f8"),
    "read-only": np.lib.stride_tricks.as_strided(X.to_numpy(), writeable=False),
    "negative strides": X.to_numpy()[::-1][::-1],
    "Fortran order": np.asfortranarray(X.to_numpy()),
    "masked, nothing masked": np.ma.masked_array(X.to_numpy()),
    "single precision": X.to_numpy().astype(np.float32).astype(np.float64),
    "objects": X.to_numpy().astype(object),
    "nested lists": X.to_numpy().tolist(),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("make", [GD, NB])
def test_odd_containers_are_read(kind, make):
    want = make().fit(X.to_numpy(), Y).predict_proba(X.to_numpy())
    table = ODD[kind]
    tolerance = 1e-6 if kind == "single precision" else 1e-13
    np.testing.assert_allclose(make().fit(table, Y).predict_proba(table), want, rtol=tolerance, atol=tolerance)


ARROW = {
    "text": pa.array(Y),
    "chunks of text": pa.chunked_array([pa.array(Y[:3]), pa.array(Y[3:])]),
    "large text": pa.array(Y, pa.large_string()),
    "dictionary": pa.array(Y).dictionary_encode(),
    "integers": pa.array(np.arange(8) % 2),
    "bools": pa.array(Y == "a"),
}


@pytest.mark.parametrize("kind", ARROW)
@pytest.mark.usefixtures("few_members")
@pytest.mark.filterwarnings("ignore:no member predicts rows left out better:UserWarning")  # of eight rows
@pytest.mark.parametrize("make", [GD, NB, bg.AveragedClassifier, lambda: bg.LogisticClassifier(inference="map")])
def test_labels_of_pyarrow_are_read(kind, make):
    want = make().fit(X, ARROW[kind].to_pylist())
    fitted = make().fit(X, ARROW[kind])
    assert fitted.classes_.tolist() == want.classes_.tolist()
    np.testing.assert_array_equal(fitted.predict_proba(X), want.predict_proba(X))


class Word(str, enum.Enum):  # noqa: UP042 - a StrEnum is text already
    A = "a"
    B = "b"


WORDS = {
    "a list of members of an Enum": [Word(label) for label in Y],
    "a Series of them": pd.Series([Word(label) for label in Y]),
    "text of any length": np.array(Y.tolist(), np.dtypes.StringDType()) if hasattr(np.dtypes, "StringDType") else Y,
}


@pytest.mark.parametrize("kind", WORDS)
def test_labels_of_other_types_of_text_are_read(kind):
    for make in (NB, lambda: bg.LogisticClassifier(inference="map")):
        fitted = make().fit(X, WORDS[kind])
        assert fitted.classes_.tolist() == ["a", "b"] and type(fitted.classes_.tolist()[0]) is str
        np.testing.assert_array_equal(fitted.predict_proba(X), make().fit(X, Y).predict_proba(X))
        assert fitted.score(X, WORDS[kind]) == make().fit(X, Y).score(X, Y)


def test_a_refusal_shows_whole_numbers_as_numbers():
    refuses(lambda: bg.LatentClassClassifier(classes=2).fit(X, [0, 1, 7, 0, 1, 0, 1, 0]), r"y holds the labels \[7\]")


@pytest.mark.filterwarnings("ignore:.*label:UserWarning")
@pytest.mark.filterwarnings("ignore:whole numbers from 1 to 10 alone")
def test_some_labels_of_pyarrow_are_read():
    y = pa.array([None, *Y[1:]])
    assert bg.LatentClassClassifier().fit(X, y).classes_.tolist() == ["a", "b"]
    refuses(lambda: NB().fit(X, y), "y contains missing labels")


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int64, np.float32])
def test_small_integers_do_not_wrap_around(dtype):
    """In uint8, 255 + 2 is 1."""
    top = np.full((20, 2), min(255, np.iinfo(dtype).max) if np.dtype(dtype).kind in "iu" else 255, dtype)
    for leaf in (
        models.GammaPoisson(1.0, 1.0),
        models.DirichletMultinomial(1.0, 2),
        models.BetaBinomial(1, 1, trials=255),
    ):
        x = top if leaf.event_dim else top[:, 0]
        narrow, wide = (bg.fit(leaf, rows) for rows in (x, x.astype(float)))
        assert narrow.log_evidence == wide.log_evidence
        np.testing.assert_array_equal(narrow.log_predictive(x), wide.log_predictive(x.astype(float)))


@pytest.mark.parametrize("covariance", ["full", "diagonal", "isotropic"])
def test_rows_beyond_any_density_get_the_class_prior(covariance):
    """Under a plug-in Gaussian squares of 1e200 overflow: log p(x | class) is -inf for all, and a warning says so."""
    classifier = GD(covariance, inference="map", class_concentration=2.0).fit(X, Y)
    with pytest.warns(UserWarning, match="8 rows have probability 0 under every class"):
        np.testing.assert_allclose(classifier.predict_proba(1e200 * (1 + X)), 0.5)


@pytest.mark.parametrize("size", [1e153, 1e200, 1e300])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "isotropic"])
def test_rows_far_out_keep_their_student_t(covariance, size):
    """A t falls like a power of the distance, so its ratios have a limit, which they reach before 1e100."""
    classifier, direction = GD(covariance).fit(X, Y), np.ones_like(X) + X / np.abs(X).max()
    np.testing.assert_allclose(
        classifier.predict_proba(size * direction), classifier.predict_proba(1e100 * direction), rtol=1e-9
    )


@pytest.mark.slow
def test_three_hundred_thousand_categories_are_learned_and_told():
    """In some seconds, as counts grow with the rows: a million take 17. Dirichlet(1) counts a value seen once twice."""
    rows, y = pd.DataFrame({"c": [f"v{i}" for i in range(300_000)]}), np.arange(300_000) % 3
    with pytest.warns(UserWarning, match="column 'c' seems to name the rows, with 300000 distinct values"):
        classifier = bg.NaiveBayesClassifier().fit(rows, y)
    np.testing.assert_allclose(classifier.predict_proba(rows[:3]), (1 + np.eye(3)) / 4, rtol=1e-9)


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
