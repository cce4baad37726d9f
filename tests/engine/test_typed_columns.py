"""Columns whose type says what they are: categories of whole numbers, words among numbers, pages with a checksum."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet
from refusals import refuses
from test_batches import NB, TABLE, equal
from test_fit_statistics import Y

import bayesgen as bg
from bayesgen.sheets.files import read

CODES = pd.DataFrame({"code": pd.Categorical([4, 1, 2, 4, 3, 1] * 10, [1, 2, 3, 4]), "kind": Y})


def _written(folder, table):
    parquet.write_table(table, folder / "codes.parquet", row_group_size=25)
    return folder / "codes.parquet"


WHERE_CODES_COME_FROM = {
    "a category of pandas": lambda folder: _written(folder, pa.Table.from_pandas(CODES)),
    "a dictionary of Arrow": lambda folder: _written(
        folder, pa.table({"code": pa.array(CODES["code"].tolist()).dictionary_encode(), "kind": Y})
    ),
    "a folder": lambda folder: _written(folder, pa.Table.from_pandas(CODES)).parent,
    "a data set": lambda folder: dataset.dataset(_written(folder, pa.Table.from_pandas(CODES))),
    "a frame": lambda _: CODES,
    "frames": lambda _: [CODES[:20], CODES[20:]],
    "an Arrow table": lambda _: pa.Table.from_pandas(CODES),
}


@pytest.mark.parametrize("where", WHERE_CODES_COME_FROM)
def test_a_category_of_whole_numbers_is_one_wherever_it_comes_from(where, tmp_path):
    source = WHERE_CODES_COME_FROM[where](tmp_path)
    again, whole = NB().fit_batches(source, "kind"), NB().fit(CODES[["code"]], Y)
    assert {block.name: block.categories for block in again.schema_.blocks} == {"code": (1, 2, 3, 4)}
    equal(again, whole, CODES[["code"]])
    batches = pd.concat(whole.predict_batches(source))
    np.testing.assert_allclose(batches.filter(like="p_"), whole.predict_proba(CODES[["code"]]), rtol=1e-12)
    if where == "a category of pandas":
        codes = NB().fit_batches(source, "code", classes=[1, 2, 3, 4])
        assert codes.classes_.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "make", [lambda t: t, lambda t: t.to_pandas(types_mapper=pd.ArrowDtype)], ids=["arrow", "pandas"]
)
def test_levels_without_a_row_that_a_dictionary_of_arrow_declares_stay(make):
    code = pa.DictionaryArray.from_arrays(pa.array([0, 2, None, 2] * 15), pa.array(["low", "mid", "high"]))
    table = pa.table({"code": code, "kind": Y})
    memory, batches = NB().fit(make(table.select(["code"])), Y), NB().fit_batches(make(table), "kind")
    for fitted in (memory, batches):
        assert {block.name: block.categories for block in fitted.schema_.blocks} == {"code": ("low", "mid", "high")}
    equal(batches, memory, make(table.select(["code"])))


BAD = ["1.5", "2.5", "3", "oops", "-4", "5"] * 10
WORDS = {
    "text in memory": lambda _: pd.DataFrame({"x": BAD, "kind": Y}),
    "objects": lambda _: pd.DataFrame({"x": [v if v == "oops" else float(v) for v in BAD], "kind": Y}),
    "Arrow": lambda _: pa.table({"x": BAD, "kind": Y}),
    "Parquet": lambda folder: _written(folder, pa.table({"x": BAD, "kind": Y})),
}


@pytest.mark.parametrize("leaf", ["gaussian", "poisson", bg.models.NormalInverseGamma(0.0, 1.0, 1.0, 1.0)], ids=str)
@pytest.mark.parametrize("where", WORDS)
def test_the_bad_word_among_numbers_is_named_and_no_good_one(where, leaf, tmp_path):
    source, message = WORDS[where](tmp_path), "column 'x' holds 'oops', which is not a number"
    table = source if hasattr(source, "columns") else parquet.read_table(source)
    with pytest.raises(ValueError, match=message) as told:
        NB({"x": leaf}).fit(table[["x"]] if isinstance(table, pd.DataFrame) else table.select(["x"]), Y)
    assert (told.value.column, told.value.value) == ("x", "oops")
    with pytest.raises(ValueError, match=message) as told:
        NB({"x": leaf}).fit_batches(source, "kind")
    assert (told.value.column, told.value.value) == ("x", "oops")


def test_a_word_in_a_later_batch_is_named():
    table = WORDS["objects"](None)
    good = table[table["x"] != "oops"].astype({"x": float})
    for tables, message in (
        ([good, table], r"batch 1: column 'x' holds text or categories \('oops'\), where it held numbers before"),
        ([table, good], r"batch 1: column 'x' holds numbers, where it held text or categories \('oops'\) before"),
    ):
        with pytest.raises(ValueError, match=message) as told:
            NB().fit_batches(tables, "kind")
        assert (told.value.column, told.value.value) == ("x", "oops")


def test_a_column_of_numbers_and_words_is_in_batches_what_it_is_in_memory():
    table = WORDS["objects"](None)
    memory, batches = NB().fit(table[["x"]], Y), NB().fit_batches(table, "kind")
    assert memory.schema_ == batches.schema_
    equal(batches, memory, table[["x"]])


def test_a_page_is_checked_by_its_sum_where_it_has_one(tmp_path):
    path = tmp_path / "0.parquet"
    for checked in (True, False):
        settings = {"write_page_checksum": checked, "compression": "none", "use_dictionary": False}
        parquet.write_table(pa.Table.from_pandas(TABLE.drop(columns="weight")), path, **settings)
        page = parquet.ParquetFile(path).metadata.row_group(0).column(0)
        changed = bytearray(path.read_bytes())
        changed[page.data_page_offset + page.total_compressed_size - 3] ^= 1  # a digit of the last number
        path.write_bytes(changed)
        name = TABLE.columns[0]
        if checked:
            with pytest.raises(ValueError, match=rf"row group 0: columns \['{name}'\] cannot be read: .*CRC checksum"):
                NB().fit_batches(path, "kind")
            refuses(lambda: read(str(path)), r"0\.parquet: not readable as Parquet: .*CRC checksum")
        else:
            NB().fit_batches(path, "kind")
            read(str(path))
