"""Kinds of columns, fit by later: what the values of a fit mean stays, is told, or they are refused."""

import contextlib
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from kinds import DAYS, FAMILIES, KINDS, LABELS, RNG, Y
from py_mini_racer import JSEvalException
from refusals import refuses
from scorers import scorer
from sklearn.base import clone

import bayesgen as bg


def meant(kind, values):
    """Return the values of a column as those of a fit's kind, where they stand for some; else None."""
    try:
        if kind == "date" and values.dtype.kind in "if":  # days since 1970, where the fit of a file had such too
            return pd.Series(pd.to_datetime(values, unit="D"))
        if kind in ("number", "count"):
            return pd.Series([float(value) for value in values])
        if kind == "bool":
            return pd.Series([{1.0: True, 0.0: False}[float(value)] for value in values])
        return pd.Series([f"{float(value):g}" for value in values]) if kind == "category" else None
    except (ValueError, TypeError, KeyError):
        return None


def frames(folder, values):
    return pd.DataFrame({"v": values}), None


def of_polars(folder, values):
    return pl.DataFrame({"v": values}), None


def csv(folder, values):
    values = values.astype(str) if values.dtype.kind == "m" else values
    pd.DataFrame({"v": values, "w": 1}).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv", "csv"


def parquet(folder, values):
    pd.DataFrame({"v": values, "w": 1}).to_parquet(folder / "t.parquet")
    return folder / "t.parquet", "parquet"


def script(folder, values):
    """Return rows as programs write them in JSON."""
    dated = values.dtype.kind in "mM"
    return [{"v": value.isoformat() if dated else value} for value in values.tolist()], None


def fitted(way, kind, folder):
    """Return a classifier of one column of a kind, from a frame or a file."""
    rows, file = (frames if way is script else way)(folder, KINDS[kind])
    family = {"v": FAMILIES[kind]} if kind in FAMILIES else "auto"
    if file:
        roles = {"date": {"date": "v"}, "count": {"count": "v"}, "category": {"categorical": "v"}}.get(kind, {})
        table, account = bg.read_table(rows, number="v" if kind == "number" else (), drop="w", **roles)
        rows, family = table[["v"]], account.features
    return bg.NaiveBayesClassifier(family).fit(rows, LABELS)


def answers(classifier, way, values, folder):
    """Return the probabilities of later rows, of a file by batches too, that come without a word."""
    rows, file = way(folder, values)

    def by_batches():
        return pd.concat(classifier.predict_batches(rows, progress=False))[["p_a", "p_b"]].to_numpy()

    def whole():
        if way is script:
            with scorer(classifier) as made:
                told = made.ask("rows.flatMap((row) => remarks(row))", rows=rows)
                if told:
                    raise ValueError(told[0])
                return np.array(made.ask("rows.map((row) => predictProba(row))", rows=rows), float)
        return classifier.predict_proba(bg.read_table(rows, like=classifier)[0] if file else rows)

    found = []
    for ask in (whole, by_batches) if file else (whole,):
        with warnings.catch_warnings(), contextlib.suppress(ValueError, TypeError, UserWarning, JSEvalException):
            warnings.simplefilter("error")
            found.append(ask())
    return found


@pytest.mark.parametrize("way", [frames, of_polars, csv, parquet, script])
@pytest.mark.parametrize("kind", KINDS)
def test_seven_kinds_by_seven(kind, way, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = fitted(way, kind, tmp_path)
        direct = fitted(frames, kind, tmp_path)
    alike = answers(classifier, way, KINDS[kind], tmp_path)
    assert len(alike) == (2 if way in (csv, parquet) else 1)
    for found in alike:
        assert np.abs(found - direct.predict_proba(pd.DataFrame({"v": KINDS[kind]}))).max() < 1e-9
    for later in KINDS.keys() - {kind}:
        for found in answers(classifier, way, KINDS[later], tmp_path):
            values = meant(kind, KINDS[later])
            assert values is not None, f"{kind} takes {later} in silence"
            expected = direct.predict_proba(pd.DataFrame({"v": values}))
            assert np.abs(found - expected).max() < 1e-9, f"{kind} takes {later} for something else"


ESTIMATORS = {
    "naive Bayes": bg.NaiveBayesClassifier(),
    "discriminant": bg.GaussianDiscriminantClassifier(),
    "latent": bg.LatentClassClassifier(classes=2, starts=2, random_state=0),
    "logistic": bg.LogisticClassifier(inference="map"),
    "probit": bg.ProbitClassifier(inference="map"),
    "ordered": bg.OrderedClassifier(inference="map", order=["a", "b"]),
    "average": bg.AveragedClassifier(members=["gaussian"]),
    "linear": bg.LinearRegressor(),
    "imputer": bg.Imputer(bg.NaiveBayesClassifier()),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_durations_after_numbers_and_back_are_refused_by_every_estimator(name):
    X = pd.DataFrame({"stay": DAYS, "w": RNG.normal(Y)})
    spans = X.assign(stay=pd.to_timedelta(X["stay"], unit="D"))
    ask = "predict" if hasattr(ESTIMATORS[name], "predict") else "transform"
    y = Y.astype(float) if name == "linear" else None if name == "latent" else LABELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers, durations = (clone(ESTIMATORS[name]).fit(rows, y) for rows in (X, spans))
    if name != "imputer":  # which gives durations back
        same = np.testing.assert_allclose if name == "linear" else np.testing.assert_array_equal
        same(durations.predict(spans), numbers.predict(X))
    refuses(lambda: getattr(numbers, ask)(spans), "column 'stay' holds durations, where the fit had none")
    refuses(
        lambda: getattr(durations, ask)(X), "column 'stay' holds numbers, where the fit had durations; .*to_timedelta"
    )
    gaps = spans.assign(stay=[None] * 60)
    if name in ("naive Bayes", "discriminant", "latent", "average"):
        np.testing.assert_array_equal(durations.predict(gaps), numbers.predict(X.assign(stay=np.nan)))


def test_durations_are_kept_apart_in_further_fits_and_given_back(tmp_path):
    X = pd.DataFrame({"stay": KINDS["duration"], "w": RNG.normal(Y)})
    numbers = X.assign(stay=X["stay"] / pd.Timedelta(days=1))
    with pytest.warns(UserWarning, match="holds durations"):
        classifier = bg.NaiveBayesClassifier().fit(X, LABELS)
    refuses(lambda: classifier.partial_fit(numbers, LABELS), "holds numbers, where the fit had durations")
    both = [(X, LABELS), (numbers, LABELS)]
    refuses(lambda: bg.NaiveBayesClassifier().fit_batches(both, progress=False), "numbers, where it held durations")
    classifier.save(tmp_path / "m.safetensors")
    again = bg.load(tmp_path / "m.safetensors")
    refuses(lambda: again.predict(numbers), "holds numbers, where the fit had durations")
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    drawn, _ = classifier.sample(5)
    assert drawn["stay"].dtype.kind == "m"
    assert np.isfinite(classifier.predict_proba(drawn)).all()
