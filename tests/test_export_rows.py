"""The law of a script and a page: each row has the answer of `predict_proba`, or is told of, or refused."""

import json
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kinds import DAYS, FAMILIES, KINDS, LABELS, RNG, Y
from scorers import records, scorer

import bayesgen as bg
from bayesgen.export import script
from bayesgen.inspection import next_measurement

VALUES = [
    None, np.nan, np.inf, -np.inf, True, False, 0, 1, 2, -1, 1.5, 1e-300, 1e153, 1e200, 2**53, 2**53 + 1, 10**20, "",
    " ", "red", "Red", "1", "1.0", "01", "1e0", "2", "yes", "True", "nan", "2024-01-31", "2023-02-31", "2024-02-29",
    "2023-02-29", "0000-01-01", "0099-03-04", "2024-1-5", "2024-01-31T12:30:00Z", "2024-01-31 24:00", "31.01.2024",
    "2024-01-31T12:30:00+02:00", "1:30", "-1:30", "1 days 02:30:00", "-1 days +02:30:00", "P1DT2H30M", "-P1D", "P",
    pd.Timestamp("2024-01-31 06:00"), pd.Timedelta(hours=30), pd.Timedelta(days=-1), [1], {"a": 1},
]  # fmt: skip


def answer(classifier, value):
    """Return what Python says of a row of one column: probabilities or None, and whether it told something."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            rows = pd.DataFrame({"v": pd.Series([value])})
            if isinstance(value, str) and classifier.schema_.reading.in_days("v"):  # a file has them as text
                rows["v"] = pd.to_timedelta(rows["v"]) if value.strip("-")[:1] == "P" else read(value, classifier)
            return classifier.predict_proba(rows)[0], bool(told)
        except (ValueError, TypeError, OverflowError):
            return None, True


def read(text, classifier):
    """Return the entry of a file."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rows.csv").write_text(f'v,w\n"{text}",1\n')
        return bg.read_table(Path(folder, "rows.csv"), like=classifier)[0]["v"]


def as_json(value):
    """Return a value as programs write it in JSON."""
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        return value.isoformat()
    return value


def said(made, value):
    """Return what the script says of it."""
    text = "null" if value is None else json.dumps(as_json(value))
    row = f"{{v: {text}}}"
    answered = f"return [predictProba({row}), remarks({row})];"
    found, remarks = made.ask(f"(() => {{ try {{ {answered} }} catch (e) {{ return [e.message, []]; }} }})()")
    return (None, found) if isinstance(found, str) else (np.array(found, float), remarks)


def make(kind, unseen="missing"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bg.NaiveBayesClassifier({"v": FAMILIES[kind]} if kind in FAMILIES else "auto", unseen=unseen).fit(
            pd.DataFrame({"v": KINDS[kind]}), LABELS
        )


@pytest.mark.parametrize("unseen", ["missing", "error"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_value_in_each_kind_of_column_is_answered_alike_told_or_refused(kind, unseen):
    classifier = make(kind, unseen)
    with scorer(classifier) as made:
        for value in VALUES:
            (expected, told), (found, words) = answer(classifier, value), said(made, value)
            if found is None:
                assert "undefined" not in words and "[object" not in words and "Cannot" not in words, (value, words)
                continue
            assert np.isfinite(found).all() and (found >= 0).all(), value
            if expected is None or np.abs(found - expected).max() > 1e-9 or told:
                assert words, f"{value!r} after {kind}: Python says {expected}, the script {found} and tells nothing"
            if expected is not None:
                assert np.abs(found - expected).max() < 1e-9, (value, expected, found)


LOST = "1 row has probability 0 under every class; it gets the class prior"


def identifiers(text):
    return list(dict.fromkeys(re.findall(r"[A-Za-z_$][\w$]*", text)))


ODD = [
    "A", "a", "T", "t", "__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "then", '"', "'", "\\",
    "`${1}`", "</script>", "<!--", "\u2028", "a.b", "a b", " a", "0", "-1", "ä", "\n", "{name}", "$&",
]  # fmt: skip


def test_every_name_of_its_text_is_a_name_like_another_in_columns_classes_and_categories():
    plain = bg.NaiveBayesClassifier().fit(pd.DataFrame({"x": DAYS}), LABELS)
    names = list(dict.fromkeys([*identifiers(script(plain)), *ODD]))
    X = pd.DataFrame(RNG.normal(Y[:, None], 1.0, (60, len(names))), columns=names)
    classifier = bg.NaiveBayesClassifier(exponent=0.02).fit(X, LABELS)
    rows = X[:5].mask(RNG.random((5, len(names))) < 0.2)
    with scorer(classifier) as made:
        found = np.array(made.ask("rows.map((row) => predictProba(row))", rows=records(rows)))
        assert np.abs(found - classifier.predict_proba(rows)).max() < 1e-12
        assert made.ask("rows.flatMap((row) => remarks(row))", rows=records(rows)) == []
        some = [*names[::20], *ODD]
        ones = pd.DataFrame(np.nan, index=range(len(some)), columns=names)
        for row, name in enumerate(some):
            ones.loc[row, name] = 5.0
        ones = classifier.predict_proba(ones)
        found = made.ask("names.map((name) => predictProba(JSON.parse(`{${JSON.stringify(name)}: 5}`)))", names=some)
        assert np.abs(np.array(found) - ones).max() < 1e-12  # each name leads to its column
        (remark,) = made.ask("remarks({zzz: 1, x0: null})")
        assert remark.startswith("'zzz', 'x0': no column of the model, which has ")
    names = list(dict.fromkeys([*names[::10], *ODD]))
    y = np.resize(names, 4 * len(names))
    levels = pd.DataFrame({"level": np.where(RNG.random(len(y)) < 0.7, y, RNG.permutation(y))})
    with pytest.warns(UserWarning, match="differ only by blanks, case"):
        classifier = bg.NaiveBayesClassifier("categorical", unseen="error").fit(levels, y)
    with scorer(classifier) as made:
        found = np.array(made.ask("rows.map((row) => predictProba(row))", rows=records(levels[: len(names)])))
        assert np.abs(found - classifier.predict_proba(levels[: len(names)])).max() < 1e-12
        assert [classifier.classes_.tolist().index(label) for label in made.ask("model.classes")] == list(
            range(len(names))
        )


def test_rows_without_values_and_rows_that_are_ruled_out_are_answered_as_in_python():
    X = pd.DataFrame({"c": pd.Categorical(list("xxyyyy") * 10, categories=list("xyz")), "n": DAYS, "m": DAYS[::-1]})
    far = [{"n": v} for v in (1e149, 1e153, 1e155, -1e200, 1.7e308)] + [
        {"n": 1e200, "m": -1e200},
        {"c": "z", "n": 1e160},
    ]
    few = [{}, {"c": "z"}, {"c": "x"}, {"n": 1.0}, {"c": "z", "n": 20.0}]
    models = {how: bg.NaiveBayesClassifier(inference=how, random_state=0) for how in ("exact", "ml", "map")}
    models |= {
        f"{covariance} {shared}": bg.GaussianDiscriminantClassifier(covariance, shared=shared, inference="map")
        for covariance in ("full", "diagonal", "isotropic")
        for shared in (False, True)
    }
    for name, model in models.items():
        table = X if name in ("exact", "ml", "map") else X[["n", "m"]]
        model.fit(table, LABELS)
        with scorer(model) as made:
            for row in [*few, *far]:
                row = {column: value for column, value in row.items() if column in table}
                rows = pd.DataFrame([row], columns=list(table)).astype({"n": float, "m": float})
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    expected = model.predict_proba(rows)[0]
                assert np.abs(np.array(made.ask("predictProba(row)", row=row)) - expected).max() < 1e-9, (name, row)
                assert made.ask("remarks(row)", row=row) == [LOST] * bool(told), (name, row)
                try:
                    worth = made.ask("nextMeasurement(row)", row=row)
                except Exception as error:
                    assert "is too far from the rows of the fit for next_measurement()" in str(error), (name, row)
                    continue
                values = next_measurement(model, rows).iloc[0].dropna().to_dict()
                assert {one["column"]: one["value"] for one in worth} == pytest.approx(values, abs=1e-6), (name, row)


def test_what_is_no_row_is_refused():
    with scorer(make("number")) as made:
        for row in ("undefined", "null", "[1]", "'v'", "3", "new Map([['v', 1]])"):
            told = made.ask(
                f"(() => {{ try {{ predictProba({row}); return 0; }} catch (e) {{ return e.message; }} }})()"
            )
            assert "a row is an object of values by the names of columns" in told
        assert made.ask("remarks({v: ''})") == ["column 'v': '' is taken as unknown"]


def test_cases_that_are_pasted_in_a_page_are_answered_alike_told_or_refused(paged):
    names = ["A", "a", "__proto__", "page", "columns", "T", "say"]
    X = pd.DataFrame(RNG.normal(Y[:, None], 1.0, (60, len(names))).round(3), columns=names)
    X["when"], X["stay"] = KINDS["date"].dt.strftime("%Y-%m-%d"), KINDS["duration"]
    X["yes"] = KINDS["bool"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = bg.NaiveBayesClassifier({"when": "date"}).fit(X, LABELS)
    page = paged(classifier, cost={"__proto__": 0.5})
    status, lines = page.cases(X[:20])
    assert status == "Answered: 20."
    p = np.array([[float(cell) for cell in line[2:4]] for line in lines[1:]])
    assert np.abs(p - classifier.predict_proba(X[:20])).max() < 1e-11
    days = X[:5].assign(stay=X["stay"] / pd.Timedelta(days=1), when=["2023-02-31", *X["when"][1:5]])
    status, lines = page.cases(days)  # the page says that its durations are days
    assert status == "Answered: 4. Without an answer: 1; the last column says why."
    assert lines[1][-1] == "column 'when': '2023-02-31' is not a date"
    p = np.array([[float(cell) for cell in line[2:4]] for line in lines[2:]])
    assert np.abs(p - classifier.predict_proba(X[1:5])).max() < 1e-11
    assert page.cases(X[:2].drop(columns=["a", "T"]))[0] == "Answered: 2. Not in the table, and so unknown: a, T."
    assert (
        page.cases(X[:2].drop(columns="T").assign(t=1.0).assign(**{"t ": 2.0}))[0]
        == "Two headings lead to T: keep one of them."
    )
    assert page.engine.eval("new Map(page.costs).get('__proto__')") == 0.5
