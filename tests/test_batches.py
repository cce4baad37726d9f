"""Rows in batches give the same fit as all at once, whatever holds them; an error names the place of the fault."""

import gzip
import pickle
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from refusals import refuses
from sklearn.base import clone
from test_fit_statistics import CASES, WEIGHT, Y, mixed

import bayesgen as bg

NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
TABLE = mixed().assign(kind=Y, weight=WEIGHT)


def fresh(estimator):
    return clone(estimator)


def equal(estimator, whole, X):
    np.testing.assert_allclose(estimator.predict_proba(X), whole.predict_proba(X), rtol=1e-10, atol=1e-10)
    assert estimator.classes_.tolist() == whole.classes_.tolist()
    assert estimator.n_features_in_ == whole.n_features_in_


def in_three(folder):
    """Write the table as three Parquet files of a few row groups each; return their folder."""
    for i, part in enumerate((TABLE[:25], TABLE[25:26], TABLE[26:])):
        parquet.write_table(pa.Table.from_pandas(part), folder / f"{i}.parquet", row_group_size=10)
    return folder


@pytest.fixture
def folder(tmp_path):
    return in_three(tmp_path)


@pytest.mark.parametrize("weight", [None, "weight"], ids=["", "weighted"])
@pytest.mark.parametrize("case", CASES)
def test_every_family_learns_from_files_what_it_learns_in_memory(case, weight, tmp_path):
    estimator, X = CASES[case]
    whole = fresh(estimator).fit(X, Y, None if weight is None else WEIGHT)
    if case == "words":  # sparse rows stand in no file
        cuts = [slice(0, 13), slice(13, 14), slice(14, 60)]
        pieces = [(X[own], Y[own], *([WEIGHT[own]] if weight else [])) for own in cuts]
        again = fresh(estimator).fit_batches(pieces)
    else:
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        for i, own in enumerate((slice(0, 30), slice(30, 60))):
            part = pa.Table.from_pandas(frame.assign(kind=Y, weight=WEIGHT)[own])
            parquet.write_table(part if weight else part.drop(["weight"]), tmp_path / f"{i}.pq", row_group_size=11)
        again = fresh(estimator).fit_batches(tmp_path, "kind", sample_weight=weight)
        assert again.feature_names_in_.tolist() == list(frame.columns)
        X = frame
        whole = fresh(estimator).fit(X, Y, None if weight is None else WEIGHT)
    equal(again, whole, X)
    if whole.model_.conjugate and case != "full with gaps":
        assert again.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)


SOURCES = {
    "folder": lambda folder: folder,
    "glob": lambda folder: f"{folder}/[0-9].parquet",
    "paths": lambda folder: sorted(folder.glob("*.parquet")),
    "pandas": lambda _: TABLE,
    "pyarrow": lambda _: pa.Table.from_pandas(TABLE),
    "reader": lambda _: pa.Table.from_pandas(TABLE).to_reader(7),
    "polars": lambda _: pl.from_pandas(TABLE),
    "lazy": lambda folder: pl.scan_parquet(f"{folder}/*.parquet"),
    "duckdb": lambda folder: duckdb.sql(f"select * from '{folder}/*.parquet'"),
    "list": lambda _: [TABLE[:20], TABLE[20:20], TABLE[20:]],
    "iterator": lambda _: iter([TABLE[:20], pl.from_pandas(TABLE[20:])]),
    "mappings": lambda _: [{name: TABLE[name].to_numpy() for name in TABLE}],
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same(source, folder):
    X = TABLE.drop(columns=["kind", "weight"])
    whole = NB().fit(X, Y, WEIGHT)
    declared = {"schema": whole.schema_, "classes": ["a", "b", "c"]}
    again = NB().fit_batches(SOURCES[source](folder), "kind", sample_weight="weight", **declared)
    equal(again, whole, X)


def test_types_categories_and_classes_are_found_where_none_are_declared(folder):
    X = TABLE.drop(columns=["kind", "weight"]).astype({"colour": str})
    whole = NB().fit(X, Y)
    table = TABLE.drop(columns="weight").astype({"colour": str})
    for source in (pa.Table.from_pandas(table), [table[:20], table[20:]], pl.from_pandas(table).lazy()):
        again = NB().fit_batches(source, "kind")
        assert again.schema_ == whole.schema_
        equal(again, whole, X)


def test_csv_columns_have_the_type_that_all_their_rows_have(tmp_path):
    text = "a,b,c,d,y\n1,NA,x,TRUE,0\n2,3,y,FALSE,1\n", "a,b,c,d,y\n,5.5,1,true,0\n4,NA,x,,1\n2.5,1,,false,1\n"
    for i, part in enumerate(text):
        (tmp_path / f"{i}.csv").write_text(part)
    X = pd.DataFrame(
        {
            "a": [1, 2, None, 4, 2.5],
            "b": [None, 3, 5.5, None, 1],
            "c": ["x", "y", "1", "x", None],
            "d": pd.array([True, False, True, None, False], "boolean"),
        }
    )
    whole = NB().fit(X, [0, 1, 0, 1, 1])
    for declared in ({}, {"schema": whole.schema_, "classes": [0, 1]}):
        again = NB().fit_batches(tmp_path, "y", **declared)
        assert [block.categories for block in again.schema_.blocks] == [b.categories for b in whole.schema_.blocks]
        equal(again, whole, X)


def test_partitions_in_paths_are_columns(tmp_path):
    whole = TABLE.assign(year=np.where(np.arange(60) < 30, 2024, 2025)).drop(columns="weight")
    for year, part in whole.groupby("year"):
        (tmp_path / f"year={year}").mkdir()
        parquet.write_table(pa.Table.from_pandas(part.drop(columns="year")), tmp_path / f"year={year}" / "a.parquet")
    again = NB({"year": "categorical"}).fit_batches(tmp_path, "kind")
    equal(again, NB({"year": "categorical"}).fit(whole.drop(columns="kind"), Y), whole.drop(columns="kind"))


def test_columns_that_are_left_out_are_not_read(tmp_path):
    when = pd.date_range("2024-01-01", periods=60)
    parquet.write_table(pa.Table.from_pandas(TABLE.assign(when=when)), tmp_path / "a.parquet")
    again = NB({"when": "drop", "colour": "drop"}).fit_batches(tmp_path / "a.parquet", "kind", sample_weight="weight")
    X = TABLE.drop(columns=["kind", "weight", "colour"])
    whole = NB().fit(X, Y, WEIGHT)
    np.testing.assert_allclose(
        again.predict_proba(X.assign(colour="?", when=when)[list(again.feature_names_in_)]), whole.predict_proba(X)
    )
    with pytest.raises(TypeError, match=r"column 'when' holds .*, which no feature model takes"):
        NB().fit_batches(tmp_path / "a.parquet", "kind")
    dates = NB({"when": "date"}).fit_batches(tmp_path / "a.parquet", "kind")
    X = TABLE.drop(columns="kind").assign(when=when)
    equal(dates, NB({"when": "date"}).fit(X, Y), X)


def test_a_worker_needs_the_schema_alone():
    schema = NB().row_schema(TABLE, "kind", sample_weight="weight")
    there = pickle.loads(pickle.dumps(schema))
    total = sum(there.sum(part) for part in (TABLE[:7], TABLE[:0], pa.Table.from_pandas(TABLE[7:])))
    X = TABLE.drop(columns=["kind", "weight"])
    equal(NB().fit_statistics(schema.schema, total, schema.classes), NB().fit(X, Y, WEIGHT), X)


# -- interrupted -----------------------------------------------------------------------------------------------------


def test_an_interrupt_leaves_the_fit_before(folder, monkeypatch):
    from bayesgen.sheets.rows import RowSchema

    fitted = NB().fit(TABLE.drop(columns=["kind", "weight"])[:30], Y[:30])
    before, read, statistics = vars(fitted).copy(), [], RowSchema.statistics

    def slow(self, batch):
        read.append(len(batch))
        if len(read) == 5:
            raise KeyboardInterrupt
        return statistics(self, batch)

    monkeypatch.setattr(RowSchema, "statistics", slow)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit_batches(folder, "kind", sample_weight="weight", workers=1)
    assert vars(fitted) == before


# -- errors ----------------------------------------------------------------------------------------------------------


def refused(source, message, kind=ValueError, estimator=None, **declared):
    """Check that a fit is refused with a message, and the fit before is left."""
    fitted = (estimator or NB()).fit(TABLE.drop(columns=["kind", "weight"]), Y)
    before = vars(fitted).copy()
    refuses(lambda: fitted.fit_batches(source, "kind", sample_weight="weight", **declared), message, kind)
    assert vars(fitted) == before


def test_files_of_other_columns_are_named(folder):
    parquet.write_table(pa.Table.from_pandas(TABLE.drop(columns="x")), folder / "3.parquet")
    refused(folder, r"3\.parquet: its columns are not those of .*0\.parquet: it lacks \['x'\]")


def test_a_column_that_changes_its_type_is_named(folder, tmp_path):
    parquet.write_table(pa.Table.from_pandas(TABLE.astype({"x": str})), folder / "3.parquet")
    refused(folder, r"3\.parquet: column 'x' is of the type .*string.*, in .*0\.parquet of the type double")
    refused([TABLE, TABLE.astype({"x": str})], "batch 1: column 'x' holds text or categories .*, where it held numbers")
    known = NB().fit(TABLE.drop(columns=["kind", "weight"]), Y)
    declared = {"schema": known.schema_, "classes": known.classes_}
    refused([TABLE, TABLE.assign(x="?")], r"batch 1: column 'x' holds '\?', which is not a number", **declared)


def test_what_was_not_declared_is_named(folder):
    known = NB().fit(TABLE.drop(columns=["kind", "weight"]), Y)
    refused(folder, r"0\.parquet, row group 1: y holds the labels \['b'\]", classes=["a", "c"])
    strange = TABLE.assign(colour=np.where(np.arange(60) < 45, "red", "pink"))
    declared = {"schema": known.schema_, "classes": known.classes_}
    refused([TABLE, strange], "batch 1: column 'colour': 'pink' in row 45 is not one of the categories", **declared)


def test_a_damaged_file_is_named(folder):
    whole = (folder / "2.parquet").read_bytes()
    (folder / "2.parquet").write_bytes(whole[: len(whole) // 2])
    refused(folder, r"2\.parquet: .*Parquet")
    page = parquet.ParquetFile(folder / "0.parquet").metadata.row_group(1).column(1)
    damaged = bytearray((folder / "0.parquet").read_bytes())
    start = page.dictionary_page_offset or page.data_page_offset
    damaged[start : start + page.total_compressed_size] = bytes(page.total_compressed_size)
    (folder / "2.parquet").write_bytes(whole)
    (folder / "0.parquet").write_bytes(damaged)
    refused(folder, r"0\.parquet, row group 1: columns \['y'\] cannot be read", classes=["a", "b", "c"])


DAMAGED = {
    "of no bytes": ("2.parquet", b"", "2.parquet: .*0 bytes"),
    "CSV of no bytes": ("a.csv", b"", "a.csv: the file is empty"),
    "CSV of a header": ("a.csv", b"x,kind,weight\n", "no rows"),
    "CSV with a short row": (
        "a.csv",
        b"x,kind,weight\n1,a,1\n2,b\n",
        "a.csv, rows 0 to 1: the weight weight must hold",
    ),
    "CSV with a long row": (
        "a.csv",
        b"x,kind,weight\n1,a,1\n2,b,1,3\n",
        "a.csv.*line 3 has 4 fields, where the header has 3",
    ),
    "CSV that is no text": ("a.csv", b"x,kind,weight\n1,\xff\xfe,1\n", "a.csv.*its text is not UTF-8"),
    "CSV that ends early": (
        "a.csv.gz",
        gzip.compress(b"x,kind,weight\n1,a,1\n" * 20)[:-12],
        "a.csv.gz.*Truncated compressed stream",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_files_damaged_in_other_ways_are_named(case, folder):
    name, content, message = DAMAGED[case]
    (folder / name).write_bytes(content)
    refused(folder if name.endswith("parquet") else folder / name, message)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_source_that_breaks_off_leaves_the_fit_before(error):
    def tables():
        yield TABLE
        raise error("broken off")

    known = NB().fit(TABLE.drop(columns=["kind", "weight"]), Y)
    refused(tables(), "broken off", error, schema=known.schema_, classes=known.classes_)


def test_what_holds_nothing_or_is_nothing_is_told(folder, tmp_path):
    refused([TABLE[:0]], "no rows")
    refused(tmp_path / "none", "none: no such file")
    refused(iter([TABLE]), r"read once, and the classes and the categories of 'colour' are not known")
    refused(3.0, "cannot read batches of a float", TypeError)
    refused([TABLE], "workers must be a whole number >= 1, got 0", workers=0)
    refused(pa.Table.from_pandas(TABLE.drop(columns="weight")), r"lacks the columns weight")
    refused([TABLE.assign(weight=-1.0)], "batch 0: the weight weight must hold one finite number >= 0")
    refused([TABLE.assign(kind=None)], "batch 0: y contains missing labels")
    refuses(lambda: NB(exponent="loo").fit_batches(TABLE, "kind"), "no attribute 'fit_batches'", AttributeError)
    with pytest.raises(AttributeError, match=r"no fit_batches: .* give fit a sample"):
        bg.AveragedClassifier().fit_batches(TABLE, "kind")


def test_statistics_of_two_schemas_do_not_add():
    X = TABLE.drop(columns=["kind", "weight"])
    one, other = NB().fit(X, Y), NB().fit(X.assign(colour=X.colour.cat.reorder_categories(["blue", "red", "green"])), Y)
    refuses(lambda: one.statistics_ + other.statistics_, "statistics of two schemas, which do not add")
    refuses(lambda: NB().fit_statistics(other.schema_, one.statistics_, one.classes_), "summed under another schema")
    assert re.fullmatch("[0-9a-f]{16}", one.statistics_.schema)


@pytest.mark.parametrize("weight", [None, "w"])
def test_numbers_of_arrow_teach_what_they_teach_in_memory(weight, tmp_path):
    """Columns of numbers are brought into the order of the classes as they are read, with gaps and without."""
    rng = np.random.default_rng(0)
    t = rng.integers(3, size=500)
    table = pd.DataFrame(rng.normal(1e3 * t[:, None], size=(500, 4)).astype(np.float32), columns=list("abcd"))
    table["n"], table["bit"] = rng.poisson(t + 1.0).astype(np.int16), (rng.random(500) < 0.3).astype(np.uint8)
    kept = table.columns
    table["t"], table["w"] = t, rng.uniform(0.1, 2.0, 500) * (rng.random(500) < 0.9)
    if weight is None:
        table = table.drop(columns="w")
    gaps = table.copy()
    gaps.loc[rng.random(500) < 0.2, "b"] = np.nan
    families = {"n": "poisson", "bit": "bernoulli"}
    for rows in (table, gaps):
        parquet.write_table(pa.Table.from_pandas(rows), tmp_path / "rows.parquet", row_group_size=200)
        for estimator in (NB(), NB(families), bg.GaussianDiscriminantClassifier(inference="map")):
            whole = fresh(estimator).fit(rows[kept], t, rows.get("w"))
            again = fresh(estimator).fit_batches(tmp_path / "rows.parquet", "t", sample_weight=weight)
            equal(again, whole, rows[kept])


def test_what_is_wrong_in_a_number_is_told_with_its_row():
    table = pa.table({"bit": [0.0, 1.0, 1.0, 2.0, 0.0, 1.0], "x": np.arange(6.0), "t": [1, 0, 1, 1, 0, 0]})
    with pytest.raises(ValueError, match=r"rows 0 to 5: .*column 'bit': value 2 in row 3 is not 0 or 1"):
        NB({"bit": "bernoulli"}).fit_batches(table, "t", classes=[0, 1])


# -- facts of errors -------------------------------------------------------------------------------------------------


def test_a_type_that_no_model_takes_is_named_in_full():
    days = TABLE.assign(day=pd.date_range("2024-01-01", periods=len(TABLE)))
    with pytest.raises(
        TypeError, match=r"column 'day' holds Datetime\(.*, time_zone=None\), which no feature"
    ) as error:
        fresh(NB()).fit_batches([days[:20], days[20:]], "kind", sample_weight="weight")
    assert error.value.column == "day" and error.value.kind.startswith("Datetime(")  # pyright: ignore


def test_an_error_knows_column_row_and_value_wherever_it_was_raised():
    classifier = NB({"colour": "categorical", "size": "log"}, unseen="error")
    table = pd.DataFrame({"colour": ["red", "blue"] * 10, "size": np.arange(1.0, 21), "kind": ["a", "a", "b", "b"] * 5})
    classifier.fit_batches([table], "kind")
    for change, known in (({"colour": "green"}, ("colour", 0, "green")), ({"size": -1.0}, ("size", 0, -1.0))):
        rows = table.assign(**change).drop(columns="kind")
        with pytest.raises(ValueError) as error:
            classifier.predict(rows)
        assert (error.value.column, error.value.row, error.value.value) == known
        again = pickle.loads(pickle.dumps(error.value))
        assert (str(again), vars(again)) == (str(error.value), vars(error.value))
        with pytest.raises(ValueError, match=r"^batch 0: ") as error:
            list(classifier.predict_batches([rows]))
        assert (error.value.column, error.value.row, error.value.value) == known
