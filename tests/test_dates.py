"""Dates are days to a model, and dates again in the rows that it gives back."""

import datetime

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.inspection import impute

MONDAY = np.datetime64("2024-01-01", "D")
WEEKS = np.repeat([0, 40], 30) + np.random.default_rng(0).integers(0, 9, 60)
SEEN = MONDAY + 7 * WEEKS  # days
DOSE = np.random.default_rng(1).normal(size=60)
KIND = np.repeat(["old", "new"], 30)
FORMS = {
    "moments": SEEN.astype("datetime64[ns]"),
    "ISO": SEEN.astype(str),
    "local": np.array([f"{day.astype(object):%d.%m.%Y}" for day in SEEN], dtype=object),
    "days": SEEN.astype(int),
}


def fitted(X, **settings):
    return bg.NaiveBayesClassifier({"seen": "date"}, random_state=0, **settings).fit(X, KIND)


@pytest.mark.parametrize("form", FORMS)
def test_sampled_and_imputed_rows_hold_dates(form, tmp_path):
    X = pd.DataFrame({"seen": FORMS[form], "dose": DOSE})
    fitted(X).save(tmp_path / "fit.nc")
    for classifier in (fitted(X), bg.load(tmp_path / "fit.nc")):
        rows, labels = classifier.sample(500)
        assert rows["seen"].dtype == "datetime64[ms]" and rows["dose"].dtype == float
        for kind in ("old", "new"):  # the mean of 250 draws, five standard errors about the mean of the rows
            drawn = (rows["seen"][labels == kind] - pd.Timestamp(MONDAY)) / pd.Timedelta(days=7)
            own = WEEKS[kind == KIND]
            assert abs(drawn.mean() - own.mean()) < 5 * drawn.std() * np.sqrt(1 / 200 + 1 / 30)
        gaps = X.astype({"seen": object}).assign(seen=lambda table: table["seen"].where(table.index % 3 != 0))
        for full in (impute(classifier, gaps), *impute(classifier, gaps, draws=2)):
            assert (full["seen"] == SEEN.astype("datetime64[ms]"))[gaps["seen"].notna()].all()
            np.testing.assert_array_equal(full["dose"], DOSE)
            assert full["seen"].notna().all()
        means = impute(classifier, gaps, KIND)["seen"][gaps["seen"].isna() & (KIND == "old")]
        days = np.nanmean(np.where(gaps["seen"].notna() & (KIND == "old"), SEEN.astype(int), np.nan))
        assert abs((means - pd.to_datetime(days, unit="D")) / pd.Timedelta(days=1)).max() < 7


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_dates_come_back_in_the_library_of_the_fit(library):
    X = nw.from_dict({"seen": SEEN.astype(object).tolist(), "dose": DOSE.tolist()}, backend=library).to_native()
    rows = nw.from_native(fitted(X).sample(5)[0], eager_only=True)
    assert isinstance(rows["seen"].dtype, nw.Datetime) and rows["dose"].dtype == nw.Float64
    again = fitted(X).predict_proba(rows.to_native())
    np.testing.assert_allclose(again, fitted(X).predict_proba(rows.to_pandas()), rtol=1e-12)


def test_an_array_holds_dates_beside_numbers():
    X = np.column_stack([SEEN.astype(object), DOSE.astype(object)])
    classifier = bg.NaiveBayesClassifier({0: "date", 1: "gaussian"}, random_state=0).fit(X, KIND)
    rows = classifier.sample(3)[0]
    assert {type(value) for value in rows[:, 0]} == {datetime.datetime}
    assert classifier.predict_proba(rows).shape == (3, 2)


def test_a_moment_beyond_the_calendar_is_missing():
    days = np.array([-719_162.0, 2_932_896.0, -719_163.0, 1e300, np.nan])
    schema = fitted(pd.DataFrame({"seen": SEEN})).schema_
    told = schema.write({"date": days})["seen"]
    assert [str(moment)[:10] for moment in told] == ["0001-01-01", "9999-12-31", "NaT", "NaT", "NaT"]


@pytest.mark.compiles
def test_arviz_draws_days():
    """The rows under the prior are numbers, as in the posterior predictive of columns."""
    X = pd.DataFrame({"seen": FORMS["ISO"], "dose": DOSE})
    for columns in (False, True):
        drawn = fitted(X).to_arviz(X, KIND, columns=columns)["prior_predictive"]["seen"]
        assert drawn.dtype == float
