"""The two shipped data sets: their contents and their licences."""

import pytest
from refusals import refuses

from bayesgen import data


def test_names():
    assert data.names() == ["anes96", "penguins"]


@pytest.mark.parametrize("name", data.names())
def test_a_description_lies_beside_each_table(name):
    description = data.path(name).with_suffix(".txt").read_text(encoding="utf-8")
    for heading in ("Licence", "Source", "Citation", "Columns"):
        assert f"\n{heading}" in description
    for column in data.load(name).columns:
        assert f"\n    {column} " in description


def test_penguins():
    table = data.load("penguins")
    assert table.shape == (344, 8)
    measurements = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    assert list(table.columns) == ["species", "island", *measurements, "sex", "year"]
    counts = {"Adelie": 152, "Chinstrap": 68, "Gentoo": 124}
    assert table["species"].value_counts().to_dict() == counts
    measured = table[measurements]
    assert all(dtype.kind == "f" for dtype in measured.dtypes)
    assert measured.isna().sum().tolist() == [2, 2, 2, 2]
    assert measured.isna().all(axis=1).sum() == 2  # missing together
    assert table["sex"].isna().sum() == 11
    assert table["sex"].value_counts().to_dict() == {"male": 168, "female": 165}
    assert table[["species", "island", "year"]].notna().all(axis=None)
    # Means over the measured birds, as published with the table.
    assert measured.mean().round(2).tolist() == [43.92, 17.15, 200.92, 4201.75]


def test_anes96():
    table = data.load("anes96")
    assert table.shape == (944, 10)
    columns = "popul TVnews selfLR ClinLR DoleLR PID age educ income vote"
    assert " ".join(table.columns) == columns
    assert all(dtype.kind == "i" for dtype in table.dtypes)
    assert table["vote"].value_counts().to_dict() == {0: 551, 1: 393}
    limits = {
        "popul": (0, 7300),
        "TVnews": (0, 7),
        "selfLR": (1, 7),
        "ClinLR": (1, 7),
        "DoleLR": (1, 7),
        "PID": (0, 6),
        "age": (19, 91),
        "educ": (1, 7),
        "income": (1, 24),
        "vote": (0, 1),
    }
    found = table.agg(["min", "max"])
    assert {column: tuple(found[column]) for column in table} == limits


@pytest.mark.parametrize("name", ["iris", "", "penguins.csv", "../data/penguins"])
@pytest.mark.parametrize("function", [data.path, data.load])
def test_unknown_name(function, name):
    refuses(lambda: function(name), r"no data set named .*; there are: anes96, penguins")
