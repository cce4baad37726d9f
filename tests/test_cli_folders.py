"""`fit`, `predict` and `compare` on folders, patterns, and files too large to be read whole."""

import re
import subprocess
import sys
import weakref

import numpy as np
import pandas as pd
import pytest
from commands import run

import bayesgen as bg
from bayesgen import data
from bayesgen.cli import ask, folders
from bayesgen.sheets import sources
from bayesgen.tables.reading import Reading

pytestmark = pytest.mark.usefixtures("few_members")  # commands do to the average of all what they do to this one


@pytest.fixture(params=["csv", pytest.param("parquet", marks=pytest.mark.compiles)])
def parts(request, tmp_path):
    """A folder of three files, and the table of all their rows; a word of the first file has a line's end in it."""
    table = data.load("penguins").sample(frac=1, random_state=0, ignore_index=True)
    table.loc[3, "island"] = "Dream"
    (tmp_path / "rows").mkdir()
    for number in range(3):
        part = table[number * 120 : (number + 1) * 120]
        file = tmp_path / "rows" / f"{number}.{request.param}"
        part[part.columns[:: -1 if number == 1 else 1]].to_csv(file, index=False) if request.param == "csv" else (
            part.to_parquet(file, index=False)
        )
    table.to_csv(tmp_path / "whole.csv", index=False)
    return tmp_path, table, request.param


@pytest.fixture
def small_memory(monkeypatch):
    """A machine on which every file is too large to be read whole."""
    monkeypatch.setattr(folders, "_LARGE", 0)
    monkeypatch.setattr(folders, "available", lambda: 0)


def test_a_folder_is_the_table_of_all_its_rows(parts):
    folder, table, kind = parts
    given = ("--target", "species", "--model", "nb")
    code, out, err = run(folder / "rows", *given, "--output", folder / "parts.safetensors", command="fit")
    assert (code, err) == (0, "") and f"{folder / 'rows'}: 344 rows, 8 columns; 344 rows used" in out
    assert run(folder / "whole.csv", *given, "--output", folder / "whole.safetensors", command="fit")[0] == 0
    X = table.drop(columns="species")
    mine = bg.load(folder / "parts.safetensors").predict_proba(X)
    np.testing.assert_allclose(mine, bg.load(folder / "whole.safetensors").predict_proba(X), rtol=1e-12)
    pattern = folder / "rows" / f"*.{kind}"
    code, out, err = run(
        folder / "parts.safetensors", pattern, "--id", "species", "--output", folder / "p.csv", command="predict"
    )
    assert (code, err) == (0, "") and "344 rows; written to" in out
    found = pd.read_csv(folder / "p.csv")
    np.testing.assert_allclose(found.filter(like="p_"), mine, rtol=1e-9)
    assert found["species"].tolist() == table["species"].tolist()
    given = ("--target", "species", "--model", "nb", "--inference", "exact", "--folds", 2)
    found, whole = (run(folder / name, *given)[1] for name in ("rows", "whole.csv"))
    assert "exact 2 of 2" in found and _scores(found) == _scores(whole)


def _scores(out):
    """The line of scores, without the seconds."""
    return re.search(r"exact \d of \d ([\d. ]+) \d+\.\d\d ", out)[1]


@pytest.mark.parametrize("model", ["nb", "gda", pytest.param("logistic", marks=pytest.mark.compiles)])
def test_large_files_are_learned_in_batches(parts, small_memory, model):
    folder, table, kind = parts
    given = ("--target", "species", "--model", model)
    if model != "gda":
        given += ("--categorical", "year")
    if model == "nb":
        given += ("--log", "body_mass_g")
    code, out, err = run(folder / "rows", *given, "--output", folder / "large.safetensors", command="fit")
    assert (code, err) == (0, "") and "a sample of 344 of 344 rows, stratified by class; all of them are learned" in out
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "outgrows", lambda *given, summed=False: False)
        assert run(folder / "rows", *given, "--output", folder / "small.safetensors", command="fit")[0] == 0
    found, want = (bg.load(folder / f"{name}.safetensors") for name in ("large", "small"))
    X = table[list(want.schema_.columns)]
    X = X.assign(year=X["year"].astype(str)) if kind == "csv" and model != "gda" else X  # categories of CSV are text
    np.testing.assert_allclose(found.predict_proba(X), want.predict_proba(X), atol=1e-5)
    code, _, err = run(
        folder / "large.safetensors", folder / "rows", "--output", folder / "p.parquet", command="predict"
    )
    assert (code, err) == (0, "")
    np.testing.assert_allclose(
        pd.read_parquet(folder / "p.parquet").filter(like="p_"), found.predict_proba(X), rtol=1e-9
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_words_for_a_gap_are_gaps_in_batches_too(tmp_path, monkeypatch, kind):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=90), "k": rng.integers(0, 5, 90), "c": rng.choice(["u", "v", "?"], 90)})
    frame.loc[::7, "x"], frame.loc[::9, "k"], frame["t"] = -999.0, -999, np.resize(["a", "b", "?"], 90)
    frame = frame.astype({"x": str, "k": str}) if kind == "csv" else frame
    frame.replace("-999.0", "-999").to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    given = (tmp_path / f"a.{kind}", "--target", "t", "--model", "nb", "--missing=-999,?")
    for large in (False, True):
        monkeypatch.setattr(folders, "outgrows", lambda *given, large=large, summed=False: large)
        assert run(*given, "--output", tmp_path / f"{large}.safetensors", command="fit")[0] == 0
        files = (tmp_path / "False.safetensors", given[0], "--output", tmp_path / f"{large}.csv")
        assert run(*files, command="predict")[0] == 0
    X = frame.drop(columns="t").replace({"-999": None, "-999.0": None, -999: None, "?": None})
    X = X.astype({"x": float, "k": float})
    found, want = (bg.load(tmp_path / f"{large}.safetensors").predict_proba(X) for large in (True, False))
    np.testing.assert_allclose(found, want, rtol=1e-9)
    for large in (False, True):
        got = pd.read_csv(tmp_path / f"{large}.csv").filter(like="p_")
        np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.compiles
def test_the_averaged_classifier_learns_from_a_sample_and_knows_the_frequencies(tmp_path, small_memory, monkeypatch):
    rng = np.random.default_rng(0)
    n = 4000
    kind = np.where(rng.random(n) < 0.02, "rare", "usual")
    kind[:7] = ""
    frame = pd.DataFrame({"x": rng.normal(size=n) + 2 * (kind == "rare"), "kind": kind})
    for number in range(4):
        frame[number::4].to_csv(tmp_path / f"{number}.csv", index=False)
    monkeypatch.setattr(folders, "_SAMPLED", 400)
    code, out, err = run(tmp_path / "*.csv", "--target", "kind", "--output", tmp_path / "m.safetensors", command="fit")
    rare = int((kind == "rare").sum())
    assert (code, err) == (0, "") and f"rare {min(rare, 50)}, usual" in out
    assert "of 3993 rows, stratified by class; 7 rows without a class left out" in out
    np.testing.assert_allclose(bg.load(tmp_path / "m.safetensors").priors, [rare / 3993, 1 - rare / 3993])
    arguments = ("--target", "kind", "--model", "nb", "--inference", "exact", "--folds", 2)
    code, out, err = run(tmp_path / "*.csv", *arguments)
    assert (code, err) == (0, "") and "stratified by class" in out and "exact 2 of 2" in out


@pytest.mark.compiles
def test_what_a_sample_keeps_does_not_depend_on_the_batches(tmp_path, monkeypatch):
    """Every row of a class is as likely as any other, however much is kept on the way."""
    frame = pd.DataFrame({"x": np.arange(2000.0), "t": np.arange(2000) % 2})
    for number in range(8):
        frame[number * 250 : (number + 1) * 250].to_parquet(tmp_path / f"{number}.parquet", index=False)
    monkeypatch.setattr(folders, "_SAMPLED", 100)
    kept = [folders.sample(str(tmp_path), "t", Reading(), seed) for seed in range(40)]
    assert {len(one.codes) for one in kept} == {100} and kept[0].counts.tolist() == [1000, 1000]
    x = np.concatenate([one.rows.table["x"].to_numpy() for one in kept])
    assert abs(x.mean() - 999.5) < 5 * 577 / 4000**0.5
    counts = np.histogram(x, 8, (0, 2000))[0]
    assert ((counts - 500) ** 2 / 500).sum() < 30  # chi squared of 7 degrees of freedom


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fit empty --target t", "empty: no such file, nor a folder or pattern of Parquet or CSV files"),
        ("fit rows --target t", "lacks ['x'] and has besides ['z']"),
        ("fit *.csv --target t --sep ;", "no column 't'; there are: 'x,t'"),
        ("fit *.txt --target t", "*.txt: no such file"),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_line(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "rows"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a.csv").write_text("x,t\n1,a\n2,b\n")
    (tmp_path / "rows" / "a.csv").write_text("x,t\n1,a\n2,b\n")
    (tmp_path / "rows" / "b.csv").write_text("z,t\n1,a\n2,b\n")
    code, _, err = run(*arguments.split()[1:], command=arguments.split()[0])
    assert code == 2 and err.startswith("Error: ") and words in err


@pytest.mark.parametrize("model", ["nb", "shared"])
def test_models_of_sums_read_a_folder_twice(tmp_path, monkeypatch, model):
    """Once for the sample and once for the sums: it takes hardly longer than `fit_batches`."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 6000)
    frame = pd.DataFrame(rng.normal(size=(6000, 4)) + y[:, None], columns=[*"pqrs"]).assign(n=rng.poisson(3.0, 6000))
    frame["word"] = rng.choice(["u", "v", ""], 6000)
    frame["t"] = pd.Series(np.array(["a", "b", "c"])[y]).mask(rng.random(6000) < 0.01)
    frame = frame.mask(rng.random(frame.shape) < 0.01).astype({"n": "float"}) if model == "nb" else frame
    (tmp_path / "rows").mkdir()
    for number in range(5):
        frame[number::5].to_parquet(tmp_path / "rows" / f"{number}.parquet", index=False)
    read, counted = [], sources.ParquetFiles._read
    monkeypatch.setattr(sources.ParquetFiles, "_read", lambda *given: (read.append(given[-1]), counted(*given))[1])
    monkeypatch.setattr(folders, "_SUMMED", 0)
    monkeypatch.setattr(folders, "_SAMPLED", 500)
    monkeypatch.setattr(folders, "_FEWEST", 20)
    drop = ("--drop", "word") if model == "shared" else ()
    given = ("--target", "t", "--model", model, *drop, "--output", tmp_path / "m.safetensors")
    code, out, err = run(tmp_path / "rows", *given, command="fit")
    assert (code, err) == (0, "") and "all of them are learned from, in batches" in out
    passes = [names for names in read if len(names) > 2]  # a pass over the categories alone comes between for nb
    assert len(passes) == 2 * 5
    whole = frame[frame["t"].notna()].drop(columns=list(drop[1:])).reset_index(drop=True)
    if model == "nb":
        whole["word"] = whole["word"].mask(whole["word"] == "")
        memory = bg.NaiveBayesClassifier()
    else:
        memory = bg.GaussianDiscriminantClassifier(shared=True)
    X, y = whole.drop(columns="t"), whole["t"].to_numpy(dtype=str)
    want = memory.fit(X, y).predict_proba(X[:50])
    found = bg.load(tmp_path / "m.safetensors")
    assert found.total_weight_ == len(whole)
    np.testing.assert_allclose(found.predict_proba(X[:50]), want, rtol=1e-8)


def test_predictions_of_large_files_are_held_a_batch_at_a_time(parts, small_memory, monkeypatch):
    folder, table, kind = parts
    bg.NaiveBayesClassifier().fit(table.drop(columns="species"), table["species"]).save(folder / "m.safetensors")
    for number in range(3, 12):  # some more files
        (folder / "rows" / f"{number}.{kind}").write_bytes((folder / "rows" / f"0.{kind}").read_bytes())
    held, most, plain = [], [], ask.predictions

    def counted(estimator, X):
        found = plain(estimator, X)
        held.extend(map(weakref.ref, (X, found)))
        most.append(sum(one() is not None for one in held))
        return found

    monkeypatch.setattr(ask, "predictions", counted)
    given = folder / "m.safetensors", folder / "rows", "--output", folder / f"p.{kind}"
    code, out, err = run(*given, command="predict")
    assert (code, err) == (0, "") and "1424 rows; written to" in out
    assert len(most) == 12 and max(most) <= 4  # rows and predictions of a batch, and of the one before it


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_memory_of_predict_does_not_grow_with_the_rows(tmp_path, kind):
    """345 MB for 1.2 million rows and 374 for 3 million of six columns; held as a whole each took 400 bytes more."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100_000, 6)), columns=[*"abcdef"])
    bg.NaiveBayesClassifier().fit(frame[:500], np.arange(500) % 3).save(tmp_path / "m.safetensors")
    frame.to_csv(tmp_path / "rows.csv", index=False) if kind == "csv" else frame.to_parquet(tmp_path / "rows.parquet")
    program = (
        "import resource, sys; from bayesgen.cli import app, folders; folders._SUMMED = 0\n"
        "app(sys.argv[1:], standalone_mode=False); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )

    def memory(files):
        """Megabytes of a process that predicts as many files of 100,000 rows."""
        (folder := tmp_path / str(files)).mkdir()
        for number in range(files):
            (folder / f"{number}.{kind}").symlink_to(tmp_path / f"rows.{kind}")
        given = "predict", tmp_path / "m.safetensors", folder, "--output", tmp_path / f"p.{kind}"
        said = subprocess.run(
            [sys.executable, "-c", program, *map(str, given)], capture_output=True, text=True, check=True
        )
        assert f"{files * 100_000} rows; written to" in " ".join(said.stdout.split())
        return int(said.stdout.split()[-1]) / 1024

    few, many = memory(3), memory(9)
    assert many < few + 80  # 600,000 rows more, which would take 240
