"""Fields of a file: the type of a column of text does not depend on the place of the deciding field."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from bayesgen.tables.files import read
from bayesgen.tables.text import column_of

TELLING = {  # a field among many whole numbers -> what the column is, and what that field is
    "7": ("i", 7),
    "+5": ("i", 5),
    " 6 ": ("i", 6),
    "1.5": ("f", 1.5),
    "1e3": ("f", 1000.0),
    "18446744073709551615": ("u", 2**64 - 1),
    "99999999999999999999": ("f", 1e20),
    "007": ("text", "007"),
    "-01": ("text", "-01"),
    "0x1F": ("text", "0x1F"),
    "1_000": ("text", "1_000"),
    "x": ("text", "x"),
    "NA": ("gap", None),
    "": ("gap", None),
}


@pytest.mark.parametrize("place", (0, 17, 500, 999))
@pytest.mark.parametrize("field", TELLING)
def test_one_field_among_many_tells_the_type(field, place):
    fields = [str(i % 50 + 1) for i in range(1000)]
    fields[place] = field
    kind, value = TELLING[field]
    column, gaps = column_of(pd.Series(fields, dtype=object))
    rest = [v for i, v in enumerate(column.tolist()) if i != place]
    if kind == "text":
        assert column.tolist() == fields and not len(gaps)
    elif kind == "gap":
        assert column.dtype == "Int64" and column.isna().to_numpy().nonzero()[0].tolist() == [place]
        assert gaps.to_dict() == {place: field} and rest == [i % 50 + 1 for i in range(1000) if i != place]
    else:
        assert column.dtype.kind == kind and column[place] == value and not len(gaps)
        assert rest == [i % 50 + 1 for i in range(1000) if i != place]


def test_numbers_with_a_fraction_among_leading_zeros_and_hexadecimals():
    fields = [f"{0.25 * i}" for i in range(400)]
    assert column_of(pd.Series(fields))[0].tolist() == [0.25 * i for i in range(400)]
    for field, text in (("00.5", True), ("0x1", True), ("-0.5", False), ("0", False)):
        column, _ = column_of(pd.Series([*fields, field, "0.125"]))
        assert (column.iloc[400] == field) if text else (column.iloc[400] == float(field))
    assert column_of(pd.Series([*fields, "00.5"]), kind="number")[0].iloc[400] == 0.5


def test_arrow_and_pandas_read_the_same_file(tmp_path):
    """Quotes, a line break in a field, a byte order mark; a row too short goes to pandas."""
    path = tmp_path / "t.csv"
    text = 'n,"a b",z\r\n1.5,"x, ""y""","two\r\nlines"\r\n,é,01\r\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    found = read(str(path))
    plain = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert list(found.table) == list(plain) == ["n", "a b", "z"]
    np.testing.assert_array_equal(found.table["n"], [1.5, np.nan])
    assert found.table[["a b", "z"]].to_numpy().tolist() == plain[["a b", "z"]].to_numpy().tolist()
    path.write_bytes(text.encode() + b"2\r\n")
    assert read(str(path)).table["n"].tolist()[::2] == [1.5, 2.0]


def test_text_that_is_not_utf8_far_down_says_so(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"size,colour\n" + b"1,blue\n" * 100_000 + "2,grün\n".encode("latin-1"))
    refuses(lambda: read(str(path)), "not UTF-8")
