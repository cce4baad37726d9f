"""Numbers beside a unit: it is kept, said, absent, or another power of ten."""

import warnings

import numpy as np
import pandas as pd
import pytest
from offices import run, written
from refusals import refuses

import bayesgen as bg

NB = bg.NaiveBayesClassifier


@pytest.mark.parametrize("odd", ["12", "12 lb", "12 %", pytest.param("kg", marks=pytest.mark.compiles)])
def test_a_later_number_without_its_unit_is_refused(tmp_path, odd):
    texts = [f"{i % 17},5 kg" for i in range(60)]
    table, account = bg.read_table(written(tmp_path, {"v": texts}), "y")
    assert "v: the unit dropped, as in '0,5 kg'" in account.notes
    model = NB().fit(table[["v", "w"]], table["y"])
    model.save(tmp_path / "m.safetensors")
    model = bg.load(tmp_path / "m.safetensors")
    assert model.schema_.reading.units == {"v": "kg"}
    for later in ([*texts[:59], odd], [odd] * 60):
        path = written(tmp_path, {"v": later}, name="later.csv")
        for call in (
            lambda path=path: bg.read_table(path, like=model),
            lambda path=path: [*model.predict_batches(path, progress=False)],
        ):
            with pytest.raises(ValueError, match="'v'") as refused:
                call()
            assert "'lb'" not in str(refused.value)  # pounds are never read as kilograms
    code, out = run("predict", tmp_path / "m.safetensors", path, "--output", tmp_path / "p.csv")
    assert code == 2 and (odd != "12" or "if they are in kg, give --unit v=kg" in out)


def test_a_unit_that_is_said_may_be_absent_and_no_other_may_stand(tmp_path):
    texts = [f"{i % 17}.5" + " Stk" * (i % 3 > 0) for i in range(60)]
    path = written(tmp_path, {"v": texts})
    told = str(bg.read_table(path, "y")[1])
    assert "left out: numbers as text" in told and "units={'v': 'Stk'} reads them" in told
    table, _ = bg.read_table(path, "y", units={"v": "Stk"})
    np.testing.assert_array_equal(table["v"], [i % 17 + 0.5 for i in range(60)])
    model = NB().fit(table[["v", "w"]], table["y"])
    pd.testing.assert_frame_equal(bg.read_table(path, like=model)[0], table[["v", "w"]])
    code, out = run("fit", path, "--target", "y", "--unit", "v=Stk", "--model", "nb", "--output", tmp_path / "m")
    assert code == 0 and "unit dropped" in out
    path = written(tmp_path, {"v": [*texts[:59], "3 kg"]})
    refuses(lambda: bg.read_table(path, "y", units={"v": "Stk"}), "column 'v': '3 kg' in row 59 is no number in Stk")
    refuses(lambda: bg.read_table(path, "y", units={"x": "kg"}), "no column 'x'")
    assert run("fit", path, "--target", "y", "--unit", "kg")[0] == 2


KIN = {"mm": 0.1, "cm": 1.0, "m": 100.0}, {"mg": 1e-3, "g": 1.0, "kg": 1e3}, {"ml": 0.1, "cl": 1.0, "L": 100.0}


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("units", KIN, ids="".join)
def test_powers_of_ten_of_a_unit_are_computed_and_told(units, decimal, tmp_path):
    rng, (_, usual, _) = np.random.default_rng(3), units
    values, written_in = rng.integers(11, 999, 60) / 10, rng.choice([*units], 60, p=[0.2, 0.6, 0.2])
    values[:3], written_in[:3] = 0.5, [*units]
    numbers = [f"{v / units[unit]:.12g}".replace(".", decimal) for v, unit in zip(values, written_in, strict=True)]
    path = written(tmp_path, {"v": [f"{n} {unit}" for n, unit in zip(numbers, written_in, strict=True)]})
    table, account = bg.read_table(path, "y")
    np.testing.assert_allclose(table["v"], values, rtol=1e-12)
    assert any(f"v: other powers of ten computed in {usual}, such as" in note for note in account.notes)
    model = NB().fit(table[["v", "w"]], table["y"])
    assert model.schema_.reading.units == {"v": usual}
    for unit in units:
        later = [f"{v / units[unit]:.12g} {unit}".replace(".", decimal) for v in values]
        found, _ = bg.read_table(path := written(tmp_path, {"v": later}, name="later.csv"), like=model)
        np.testing.assert_allclose(found["v"], values, rtol=1e-12)
        p = pd.concat(model.predict_batches(path, progress=False)).filter(like="p_").to_numpy()
        np.testing.assert_allclose(p, model.predict_proba(found), atol=1e-12)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        batches = NB().fit_batches(written(tmp_path, {"v": later[:30] + [f"7 {usual}"] * 30}), "y", progress=False)
    assert batches.schema_.reading.units["v"] in units
    assert any("computed from another power of ten of its unit" in str(one.message) for one in told)
    other = {"cm": "s", "g": "mmol/l", "cl": "mg"}[usual]  # another thing than the unit
    path = written(tmp_path, {"v": [*later[:50], *(f"{i} {other}" for i in range(1, 11))]})
    assert "v" not in bg.read_table(path, "y")[0]
    said = {"units": {"v": usual}, "decimal": decimal}
    refuses(lambda: bg.read_table(path, "y", **said), f"'1 {other}' in row 50 is no number in {usual}")
    refuses(lambda: model.schema_.number("5 mm", "v") if "mm" in units else model.schema_.number("5 mg", "v"), "'v'")
