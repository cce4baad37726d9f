"""What `features="auto"` takes each kind of column for is what the table of docs/howto/mixed-columns.md says."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

import bayesgen as bg

PAGE = Path(__file__).parent.parent / "docs" / "howto" / "mixed-columns.md"
Y = np.repeat(["u", "v"], [10, 20])
COLUMNS = {
    "bool": Y == "u",
    "int": np.arange(30) % 7,
    "float": np.linspace(0.0, 1.0, 30) ** 2,
    "text": np.array(["x", "y", "z"] * 10),
    "category": pd.Categorical(["k", "l", "l"] * 10),
    "category of numbers": pd.Categorical([1, 2, 3] * 10),
}
MODELS = {  # the names of the table: what is fitted
    "NaiveBayesClassifier": bg.NaiveBayesClassifier(),
    "GaussianDiscriminantClassifier": bg.GaussianDiscriminantClassifier(),
    "LatentClassClassifier": bg.LatentClassClassifier(inference="map"),
    'LatentClassClassifier("discriminant")': bg.LatentClassClassifier("discriminant", inference="map"),
    "LogisticClassifier": bg.LogisticClassifier(inference="map"),
    "ProbitClassifier": bg.ProbitClassifier(inference="map"),
    "OrderedClassifier": bg.OrderedClassifier(order=["u", "v"], inference="map"),
    "LinearRegressor": bg.LinearRegressor(),
    "AveragedClassifier": bg.AveragedClassifier(members=["all"]),
    "Imputer": bg.Imputer(),
}


def cells():
    """Yield (estimator, kind of column, what the page says) for each cell of its table."""
    lines = re.findall(r"^\| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE) if PAGE.exists() else []
    for line in lines[1:]:
        names, *said = line.split(" | ")
        for name in re.findall("`(.*?)`", names):
            yield from (
                (name, kind, what) for kind, what in zip(lines[0].removeprefix("| ").split(" | "), said, strict=True)
            )


CELLS = [*cells()]


@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no pages")
def test_the_table_has_a_cell_for_each_estimator_and_kind():
    assert {(name, kind) for name, kind, _ in CELLS} == {(name, kind) for name in MODELS for kind in COLUMNS}
    public = {name for name in bg.__all__ if isinstance(getattr(bg, name), type) and hasattr(getattr(bg, name), "fit")}
    assert public == {name.partition("(")[0] for name in MODELS}


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [pytest.param(*cell, marks=[pytest.mark.compiles] * (cell[0] == "AveragedClassifier")) for cell in CELLS],
)
@pytest.mark.filterwarnings("ignore:no member predicts")
def test_auto_takes_a_column_as_the_page_says(name, kind, said):
    table, model = pd.DataFrame({"c": COLUMNS[kind]}), MODELS[name]
    target = {"LinearRegressor": (np.arange(30.0) ** 1.5,), "Imputer": ()}.get(name, (Y,))
    if said == "refused":
        refuses(lambda: model.fit(table, *target), r"column 'c' holds '\w', which is not a number")
        return
    fitted = model.fit(table, *target)
    if said == "one number":  # a gap is filled by a number; a line has one coefficient
        if name == "Imputer":
            assert np.isfinite(np.asarray(fitted.transform(pd.DataFrame({"c": [np.nan]})), float)).all()
        else:
            assert list(fitted.model_.columns) == ["c"]
    elif said == "one of 0 and 1 each":
        assert list(fitted.model_.columns) == [f"c == {label}" for label in np.unique(table["c"])]
    else:
        (block,) = fitted.schema_.blocks
        assert block.leaf == said and bool(block.categories) == (said == "categorical")
