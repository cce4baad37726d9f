"""One table in every kind of container: frames, arrays, sparse matrices."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from refusals import refuses
from scipy import sparse
from test_schema import NAN, Y

import bayesgen as bg
from bayesgen.models import BetaBernoulli, GammaPoisson, NormalInverseGamma
from bayesgen.sheets import files
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import Table

MIXED = pd.DataFrame(
    {
        "x": [0.5, NAN, 2.0, 3.5, 1.0, 4.0, 2.5, 6.0],
        "n": [1.0, 2, 3, NAN, 5, 6, 7, 9],
        "b": [True, False, None, True, False, True, True, False],
        "c": ["u", "v", "u", None, "v", "u", "v", "v"],
    }
)

NULLABLE = MIXED.astype({"x": "Float64", "n": "Int64", "b": "boolean", "c": "string"})


def polars(frame):
    return pl.from_arrow(pa.table({name: pa.array(frame[name], from_pandas=True) for name in frame}))


def polars_categories(frame):
    return polars(frame).with_columns(pl.col("c").cast(pl.Categorical))


def arrow(frame):
    return pa.table({name: pa.array(frame[name], from_pandas=True) for name in frame})


def arrow_categories(frame):
    return arrow(frame).set_column(3, "c", pa.array(frame["c"], from_pandas=True).dictionary_encode())


CONTAINERS = {
    "pandas": lambda f: f,
    "pandas objects": lambda f: f.astype(object),
    "pandas nullable": lambda f: NULLABLE,
    "pandas arrow": lambda f: NULLABLE.convert_dtypes(dtype_backend="pyarrow"),
    "pandas category": lambda f: f.astype({"c": "category"}),
    "polars": polars,
    "polars categorical": polars_categories,
    "pyarrow": arrow,
    "pyarrow dictionary": arrow_categories,
}


@pytest.mark.parametrize("of", (Decimal, Fraction))
def test_exact_numbers_are_numbers(of, tmp_path):
    exact = MIXED.assign(x=[None if np.isnan(v) else of(v) for v in MIXED["x"]])
    want = bg.NaiveBayesClassifier().fit(MIXED, Y)
    for table in (exact, exact[["x", "n"]].to_numpy(dtype=object)):
        columns = list(MIXED)[: table.shape[1]]
        numbers = bg.NaiveBayesClassifier().fit(MIXED[columns], Y)
        got = bg.NaiveBayesClassifier().fit(table, Y)
        np.testing.assert_array_equal(got.predict_proba(table), numbers.predict_proba(MIXED[columns]))
    if of is Decimal:
        exact.assign(y=Y).to_parquet(tmp_path / "rows.parquet")
        read = files.read(str(tmp_path / "rows.parquet")).table
        assert read["x"].dtype == float and read["x"].isna().sum() == 1
        big = bg.NaiveBayesClassifier().fit_batches(str(tmp_path / "rows.parquet"), "y")
        np.testing.assert_allclose(big.predict_proba(MIXED), want.predict_proba(MIXED), rtol=1e-12)


@pytest.mark.parametrize("kind", CONTAINERS)
def test_every_dataframe_says_the_same(kind):
    table = CONTAINERS[kind](MIXED)
    classifier = bg.NaiveBayesClassifier().fit(table, Y)
    want = bg.NaiveBayesClassifier().fit(NULLABLE, Y)
    assert classifier.schema_.columns == ("x", "n", "b", "c") == tuple(classifier.feature_names_in_)
    assert classifier.model_ == want.model_
    np.testing.assert_array_equal(classifier.predict_proba(table), want.predict_proba(NULLABLE))
    weight = np.array([1, 2, 0, 1, 0, 1, 3, 1])
    weighted = bg.NaiveBayesClassifier().fit(table, Y, sample_weight=weight)
    rows = np.flatnonzero(weight)
    np.testing.assert_array_equal(
        weighted.predict_proba(table),
        bg.NaiveBayesClassifier().fit(MIXED.iloc[rows], Y[rows], weight[rows]).predict_proba(MIXED),
    )


NUMBERS = np.array([[1.0, 2.0], [1.5, NAN], [NAN, 1.0], [5.0, 4.0], [6.0, NAN], [5.5, 5.0], [7.0, 5.0], [8.0, 1.0]])

GAPS = np.isnan(NUMBERS)

ARRAYS = {
    "array": NUMBERS,
    "Fortran order": np.asfortranarray(NUMBERS),
    "read only": np.lib.stride_tricks.as_strided(NUMBERS, writeable=False),
    "list": NUMBERS.tolist(),
    "masked": np.ma.masked_array(np.nan_to_num(NUMBERS, nan=7.0), mask=GAPS),
    "masked integers": np.ma.masked_array((2 * np.nan_to_num(NUMBERS, nan=7.0)).astype(int), mask=GAPS),
    "None": np.where(GAPS, None, NUMBERS.astype(object)),
    "NA": np.where(GAPS, pd.NA, NUMBERS.astype(object)),
    "frame": pd.DataFrame(NUMBERS),
    "nullable frame": pd.DataFrame(NUMBERS).astype("Float64"),
    "xarray": xr.DataArray(NUMBERS, dims=("row", "column")),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_every_array_and_every_gap_says_the_same(kind):
    table = ARRAYS[kind]
    want = bg.NaiveBayesClassifier("gaussian").fit(NUMBERS, Y).predict_proba(NUMBERS)
    got = bg.NaiveBayesClassifier("gaussian").fit(table, Y).predict_proba(table)
    np.testing.assert_allclose(got, want, rtol=1e-12 if kind == "masked integers" else 0)  # twice the numbers


def test_numbers_of_any_width_are_numbers():
    """No linear algebra takes long doubles, nor half precision."""
    rows = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float16)
    want = bg.GaussianDiscriminantClassifier().fit(rows.astype(float), Y).predict_proba(rows.astype(float))
    for kind in (np.longdouble, np.float16):
        table = pd.DataFrame(rows.astype(kind))
        got = bg.GaussianDiscriminantClassifier().fit(table, Y).predict_proba(table)
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_an_xarray_names_its_columns():
    X = xr.DataArray(NUMBERS, dims=("row", "column"), coords={"column": ["p", "q"]})
    classifier = bg.NaiveBayesClassifier().fit(X, Y)
    assert list(classifier.feature_names_in_) == ["p", "q"]
    refuses(lambda: classifier.predict(X[:, ::-1]), "same order")


def test_a_masked_bool_stays_a_bool_and_a_masked_label_is_missing():
    flags = np.ma.masked_array([[True], [False]] * 4, mask=[[0], [1]] * 4)
    assert Schema.learn(Table(flags), "auto").blocks[0].leaf == "bernoulli"
    labels = np.ma.masked_array([["u"], ["v"]] * 4, mask=[[0], [0]] * 3 + [[1], [1]])
    codes = Schema.learn(Table(labels), "auto").read(Table(labels))["x0"]
    np.testing.assert_array_equal(codes, [0, 1, 0, 1, 0, 1, NAN, NAN])


def test_numbers_stay_numbers_beside_strings_in_a_list():
    classifier = bg.NaiveBayesClassifier().fit([["u", 1.0], ["v", 2.0], ["u", 3.0], ["v", 5.0]], Y[:4])
    assert {b.leaf: b.columns for b in classifier.schema_.blocks} == {"categorical": ("x0",), "gaussian": ("x1",)}


def test_numbers_are_not_copied():
    X = np.random.default_rng(0).normal(size=(10, 4))
    for columns in (("x0", "x1", "x2", "x3"), ("x1", "x2"), ("x3",)):
        assert np.shares_memory(Table(X).numbers(columns), X)
    before = X.copy()
    bg.GaussianDiscriminantClassifier("diagonal").fit(X, [0, 1] * 5).predict_proba(X)
    np.testing.assert_array_equal(X, before)


def test_a_frame_is_not_made_an_array_as_a_whole(monkeypatch):
    monkeypatch.setattr(pd.DataFrame, "__array__", lambda *args, **kwargs: pytest.fail("np.asarray of the DataFrame"))
    bg.NaiveBayesClassifier().fit(MIXED, Y).predict_proba(MIXED)
    bg.LinearRegressor().fit(MIXED[["x"]].fillna(0.0), np.arange(8.0)).predict(MIXED[["x"]].fillna(0.0))


def test_names_of_the_columns_are_matched_and_positions_where_there_are_none():
    frame = pd.DataFrame({1: [True, False] * 4, 0: np.arange(8.0)})
    by_name = bg.NaiveBayesClassifier({1: BetaBernoulli(3, 3)}).fit(frame, Y)  # integers are names first
    assert by_name.model_.leaves["1"].a == 3
    array = np.column_stack([frame[1], frame[0]]).astype(float)
    by_place = bg.NaiveBayesClassifier({0: BetaBernoulli(3, 3), -1: "gaussian"}).fit(array, Y)
    assert by_place.model_.leaves["x0"].a == 3
    np.testing.assert_array_equal(by_name.predict_proba(frame), by_place.predict_proba(array))
    with pytest.raises(ValueError, match=r"columns \['0', '1'\]; those of fit came in the order \['1', '0'\]"):
        by_name.predict(frame[[0, 1]])
    classifier = bg.NaiveBayesClassifier().fit(MIXED[["x", "n"]], Y)
    with pytest.warns(UserWarning, match="valid feature names"):
        got = classifier.predict_proba(MIXED[["x", "n"]].to_numpy())
    np.testing.assert_array_equal(got, classifier.predict_proba(MIXED[["x", "n"]]))


def test_a_key_of_features_takes_one_column_or_several():
    features = {
        "x": NormalInverseGamma(2.0, 0.5, 2.0, 3.0),
        ("n",): NormalInverseGamma(100.0, 0.1, 2.0, 5000.0),
        2: BetaBernoulli(2, 2),
    }
    classifier = bg.NaiveBayesClassifier(features).fit(MIXED, Y)
    assert set(classifier.model_.leaves) == {"x", "n", "b", "c"}
    assert classifier.model_.leaves["b"].a == 2
    assert {c for block in classifier.schema_.blocks for c in block.columns} == set(MIXED)


COUNTS = sparse.random_array(
    (40, 6), density=0.3, rng=np.random.default_rng(0), data_sampler=lambda size: 1.0 + np.arange(size) % 3
)

GROUPS = np.array(["a", "b"] * 20)


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix"])
@pytest.mark.parametrize("family", ["bernoulli", "poisson", "multinomial"])
def test_sparse_is_dense(family, kind):
    X = getattr(sparse, kind)(COUNTS.sign() if family == "bernoulli" else COUNTS)
    weight = np.arange(40) % 3
    for inference in ("exact", "map"):
        one, two = (
            bg.NaiveBayesClassifier(family, class_concentration=2.0, inference=inference).fit(
                rows, GROUPS, sample_weight=weight
            )
            for rows in (X, X.toarray())
        )
        np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X.toarray()), rtol=1e-10)
        np.testing.assert_allclose(one.predict_proba(X.toarray()), two.predict_proba(X), rtol=1e-10)
    streamed = bg.NaiveBayesClassifier(family, class_concentration=2.0)
    for rows in (slice(0, 30), slice(30, 40)):
        streamed.partial_fit(X.tocsr()[rows], GROUPS[rows], classes=["a", "b"], sample_weight=weight[rows])
    exact = bg.NaiveBayesClassifier(family, class_concentration=2.0).fit(X, GROUPS, sample_weight=weight)
    np.testing.assert_allclose(streamed.predict_proba(X), exact.predict_proba(X), rtol=1e-12)


def test_entries_written_in_parts_or_as_zero():
    plain = sparse.csr_array([[2, 0, 1], [0, 3, 0], [1, 1, 0], [0, 0, 4]])
    parts = sparse.csr_array(([1, 1, 1, 3, 0, 1, 1, 0, 4], [0, 0, 2, 1, 2, 0, 1, 0, 2], [0, 3, 5, 7, 9]), shape=(4, 3))
    for family in ("poisson", "multinomial"):
        one, two = (bg.NaiveBayesClassifier(family).fit(X, [0, 0, 1, 1]).predict_proba(X) for X in (parts, plain))
        np.testing.assert_allclose(one, two, rtol=1e-13)
    assert parts.nnz == 9  # as the user wrote it


def test_sparse_blocks_are_sparse():
    features = {(0, 1): "poisson", (4, 2): GammaPoisson(1.0, 1.0), (3,): GammaPoisson(1.0, 1.0), 5: "poisson"}
    schema = Schema.learn(Table(COUNTS), features)
    blocks = schema.read(Table(COUNTS))
    assert blocks.keys() == {"poisson", "x4+x2", "x3"}
    assert isinstance(blocks["poisson"], sparse.csr_array) and isinstance(blocks["x4+x2"], sparse.csr_array)
    np.testing.assert_array_equal(blocks["poisson"].toarray(), COUNTS.toarray()[:, [0, 1, 5]])
    np.testing.assert_array_equal(blocks["x4+x2"].toarray(), COUNTS.toarray()[:, [4, 2]])
    np.testing.assert_array_equal(blocks["x3"], COUNTS.toarray()[:, 3])


def test_sparse_is_never_made_dense(monkeypatch):
    wide = sparse.random_array((2000, 50_000), density=2e-4, format="csr", rng=np.random.default_rng(0))
    wide.data = np.ceil(3 * wide.data)
    refuse = lambda *args, **kwargs: pytest.fail("densified")  # noqa: E731
    monkeypatch.setattr(sparse.csr_array, "toarray", refuse)
    monkeypatch.setattr(sparse.csr_array, "todense", refuse)
    classifier = bg.NaiveBayesClassifier("multinomial").fit(wide, np.arange(2000) % 2)
    assert np.isfinite(classifier.predict_proba(wide[:50])).all()
