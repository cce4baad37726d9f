"""A classifier exported as JavaScript answers as the classifier itself."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from commands import run
from refusals import refuses
from scipy import stats
from scorers import assert_equal, counts, hard, records, scorer
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

import bayesgen as bg
from bayesgen.inspection import next_measurement


def mixed(rng, n=200, classes=("a", "b", "c")) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, categories and bools of classes that lie apart."""
    y = rng.integers(0, len(classes), n)
    levels = np.array(["red", "it's", 'a "b"', "</script>", "é<!--"])
    X = {f"x{j}": rng.normal(y * (j + 1) * 0.7, 1 + j) for j in range(3)}
    X["__proto__"] = levels[(y + rng.integers(0, 3, n)) % 5]
    X["toString"] = rng.random(n) < (y + 1) / (len(classes) + 1)
    X["grade"] = pd.Categorical(rng.integers(1, 4, n))
    return pd.DataFrame(X), np.array(classes)[y]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def birds():
    X = bg.data.load("penguins").sample(frac=1, random_state=0)
    return X, X.pop("species")


@counts(2000)
def test_mixed_columns_with_gaps_and_far_values_are_scored_as_in_python(rng, count):
    X, y = mixed(rng)
    X["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, len(X)), unit="D")
    classifier = bg.NaiveBayesClassifier({"day": "date"}, unseen="missing").fit(X, y)
    X["day"] = X["day"].dt.strftime("%Y-%m-%d")
    rows = hard(X, count, rng)
    rows.loc[::97, "__proto__"] = "never seen"
    with scorer(classifier) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_equal(classifier, made, rows)
        (remark,) = made.ask("remarks(row)", row={"__proto__": "never seen"})
        assert "column '__proto__': ['never seen'] in 1 row" in remark


@pytest.mark.parametrize("dof", [0.3, 1.0, 2.0, 3.5, 40.0, 1e5, np.inf])
def test_a_line_is_cut_at_the_quantiles_of_students_t(birds, dof):
    levels = [1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.12, 0.22, 0.35]
    with scorer(bg.NaiveBayesClassifier().fit(*birds)) as made:
        found = made.ask(f"quantilesOf({'Infinity' if np.isinf(dof) else dof})")
    np.testing.assert_allclose(found, stats.t.ppf(levels, dof), rtol=1e-11)


@counts(1000)
@pytest.mark.parametrize("classes", [2, 30])
def test_any_number_of_classes(rng, classes, count):
    X, y = mixed(rng, 600, tuple(f"k{k:02}" for k in range(classes)))
    classifier = bg.NaiveBayesClassifier(exponent=0.7).fit(X, y)
    with scorer(classifier) as made:
        rows = hard(X, count, rng)
        assert_equal(classifier, made, rows)
        priors = rng.dirichlet(np.ones(classes))
        expected = classifier.predict_proba(rows, priors)
        assert np.abs(made.proba(rows, priors=priors.tolist()) - expected).max() < 1e-12


def test_the_other_answers_are_those_of_python(rng, birds):
    X, y = birds
    classifier = bg.NaiveBayesClassifier(random_state=0).fit(X, y)
    row = X.iloc[[3]].assign(bill_length_mm=np.nan, island=None, sex=None)
    loss = [[0, 1, 5], [1, 0, 5], [9, 9, 0]]
    one = {c: None if v is None or v != v else v for c, v in row.to_dict("records")[0].items()}
    with scorer(classifier) as made:
        told = made.ask("explain(row, label)", row=one, label="Gentoo")
        expected = classifier.explain(row, row=0, label="Gentoo").terms
        assert {t["column"]: t["contribution"] for t in told} == pytest.approx(expected, abs=1e-11)
        for losses, cost in ((None, {}), (loss, {"sex": 0.1})):
            best = made.ask("nextMeasurement(row, {loss, costs})", row=one, loss=losses, costs=cost)
            assert [b["value"] for b in best] == sorted((b["value"] for b in best), reverse=True)
            values = next_measurement(classifier, row, losses, cost).iloc[0].dropna()
            assert {b["column"]: b["value"] for b in best} == pytest.approx(values.to_dict(), abs=1e-6)
        low_high = np.array(made.ask("predictProbaInterval(row, {seed: 7})", row=one))
        assert low_high == pytest.approx(classifier.predict_proba_interval(row, size=20_000)[0], abs=0.01)
        probability = classifier.predict_proba(row)[0]
        done = made.ask("decide(p, loss)", p=probability.tolist(), loss=loss)
        assert done["losses"] == pytest.approx(probability @ np.array(loss))
        assert done["action"] == bg.decision.decide(probability[None], loss)[0]


def test_typicality_is_the_rank_of_python_among_the_rows_that_the_file_ships(birds):
    X, y = birds
    X = X[["bill_length_mm", "body_mass_g", "island"]]
    classifier = bg.NaiveBayesClassifier({"body_mass_g": "log"}, random_state=0).fit(X, y)
    with scorer(classifier) as made:
        places, rows = made.ask("[model.columns.map((c) => c.name), drawnRows()]")
        drawn = pd.DataFrame(rows, columns=places)
        drawn["island"] = np.array(["Biscoe", "Dream", "Torgersen"])[drawn["island"].astype(int)]
        for known in (["bill_length_mm"], ["body_mass_g", "island"], places):
            some = X.iloc[:20].copy()
            some.loc[some.index[0], "bill_length_mm"] = 80.0
            others = [column for column in places if column not in known]
            some[others], shown = None, drawn.assign(**dict.fromkeys(others))
            mine, theirs = classifier.score_samples(some), classifier.score_samples(shown)
            ranks = ((theirs[:, None] < mine).sum(0) + 0.5) / (len(theirs) + 1)
            found = np.array(made.ask("rows.map(typicality)", rows=records(some)))
            assert found == pytest.approx(ranks, abs=0.6 / (len(theirs) + 1))  # equal densities count as halves


def test_words_of_what_cannot_be_taken_are_those_of_python(birds):
    X, y = birds
    X = X.assign(heavy=X.body_mass_g > 4000)
    classifier = bg.NaiveBayesClassifier({"body_mass_g": "log"}, unseen="error").fit(X, y)
    row = X.iloc[[0]].astype({"bill_length_mm": float})
    told = "(() => { try { predictProba(row); return null; } catch (e) { return [e.message, e.column]; } })()"
    with scorer(classifier) as made:
        for column, value in {"island": "Elsewhere", "body_mass_g": -1.0, "bill_length_mm": np.inf}.items():
            with pytest.raises(ValueError) as caught:
                classifier.predict_proba(row.assign(**{column: [value]}))
            said = made.ask(told.replace("row)", f"{{[column]: {'Infinity' if value == np.inf else 'value'}}})"),
                            column=column, value=None if value == np.inf else value)  # fmt: skip
            assert said == [str(caught.value), column]
        assert "which is not a number" in made.ask(told, row={"bill_length_mm": "long"})[0]
        assert "is not 0 or 1" in made.ask(told, row={"heavy": 2})[0]


def test_what_cannot_be_exported_is_refused_by_name_before_a_file_is_touched(tmp_path, birds):
    X, y = birds
    path = tmp_path / "model.js"
    path.write_text("before")
    mine = bg.AveragedClassifier(members=["gaussian", ("mine", GaussianNB())])
    mine.fit(X[["bill_length_mm", "body_mass_g"]].dropna()[:60], y[X.body_mass_g.notna()][:60])
    refuses(lambda: mine.export(path), "AveragedClassifier cannot be exported: its member 'mine', a GaussianNB")
    with pytest.raises(TypeError, match="expected a fitted estimator of bayesgen, got a GaussianNB"):
        bg.export.script(GaussianNB().fit(X[["year"]], y))
    with pytest.raises(NotFittedError):
        bg.export.to_page(bg.NaiveBayesClassifier(), tmp_path / "page.html")
    assert path.read_text() == "before"
    bg.NaiveBayesClassifier().fit(X, y).export(path)
    assert path.read_text().splitlines()[-1].startswith("export { model, predictProba")


@pytest.mark.parametrize("name", ["m.sql", "m.c", "m.onnx", "m.html", "m", ".js", "m.js.gz", "m.JS ", "m.json"])
def test_a_file_of_another_ending_is_refused_before_anything_is_written(tmp_path, birds, name):
    X, y = birds
    classifier = bg.NaiveBayesClassifier().fit(X, y)
    classifier.save(tmp_path / "model.safetensors")
    refuses(lambda: classifier.export(tmp_path / name), "a script in JavaScript ends in .js or .mjs, not in")
    code, _, err = run(tmp_path / "model.safetensors", "--output", tmp_path / name, command="export")
    assert code == 2 and "--output" in err and "ends in .js or .mjs" in err
    if name != "m.html":
        name = "p.pdf" if name == "m.sql" else name
        refuses(lambda: classifier.to_page(tmp_path / name), "a page ends in .html or .htm, not in")
        code, _, err = run(tmp_path / "model.safetensors", "--output", tmp_path / "new" / name, command="page")
        assert code == 2 and "ends in .html or .htm" in err
    words = ("--words-template", tmp_path / "words.html")
    assert "ends in .toml" in run(tmp_path / "model.safetensors", *words, command="page")[2]
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    classifier.export(tmp_path / "m.JS")
    classifier.to_page(tmp_path / "m.HTM")


def test_sql_is_refused_with_what_stands_in_its_place(tmp_path, birds):
    X, y = birds
    classifier = bg.NaiveBayesClassifier().fit(X, y)
    refuses(
        lambda: classifier.export(tmp_path / "m.js", dialect="duckdb"), r"SQL is no longer written; predict_batches\(\)"
    )
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_script(tmp_path, birds, monkeypatch):
    X, y = birds
    monkeypatch.chdir(tmp_path)
    bg.NaiveBayesClassifier().fit(X, y).save("model.safetensors")
    bg.LinearRegressor().fit(X[["year"]], np.arange(len(y))).save("line.safetensors")
    assert run("model.safetensors", "--output", "a.js", command="export")[::2] == (0, "")
    assert (tmp_path / "a.js").read_text().startswith("// NaiveBayesClassifier, a classifier of bayesgen")
    assert run("model.safetensors", "--dialect", "duckdb", command="export")[0] == 2  # SQL, which is no longer written
    code, _, err = run("line.safetensors", command="export")
    assert code == 2 and "line.safetensors: LinearRegressor has no classes" in err
    assert not (tmp_path / "model.js").exists()


def test_a_script_of_twenty_columns_has_less_than_116_kb_and_names_the_model_by_a_checksum(rng):
    y = rng.integers(0, 3, 200)
    X = rng.normal(y[:, None], 1.0, (200, 20))
    made = {how: bg.GaussianDiscriminantClassifier(inference=how).fit(X, y) for how in ("exact", "map")}
    texts = [bg.export.script(made[how]) for how in ("exact", "map", "exact")]
    assert max(map(len, texts)) < 116_000  # 13,000 of them read texts, dates, durations and codes as Python does
    checksums = [re.search(r'"checksum":"([0-9a-f]{64})"', text)[1] for text in texts]
    assert checksums[0] == checksums[2] != checksums[1]
