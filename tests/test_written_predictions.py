"""Predictions that are written to files, batch by batch."""

import os
import resource
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from refusals import refuses
from test_batches import NB, TABLE, in_three
from test_fit_statistics import Y

import bayesgen as bg


@pytest.fixture
def folder(tmp_path):
    return in_three(tmp_path)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_predictions_are_written_batch_by_batch(kind, folder, tmp_path):
    X = TABLE.drop(columns=["kind", "weight"])
    fitted = NB().fit(X, Y)
    path = tmp_path / f"predictions.{kind}"
    assert fitted.predict_batches(folder, path) == 60
    found = pd.read_parquet(path) if kind == "parquet" else pd.read_csv(path)
    assert found["row"].tolist() == list(range(60)) and found["class"].tolist() == fitted.predict(X).tolist()
    np.testing.assert_allclose(found[["p_a", "p_b", "p_c"]], fitted.predict_proba(X), rtol=1e-14)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst", "zip"])
def test_predictions_are_compressed_as_the_name_of_their_file_says(ending, folder, tmp_path):
    fitted, path = NB().fit(TABLE.drop(columns=["kind", "weight"]), Y), tmp_path / f"p.csv.{ending}"
    assert fitted.predict_batches(folder, path) == 60
    found, account = bg.read_table(path, number="row")  # which tells a name that is not true
    want = pd.concat(fitted.predict_batches(folder))
    assert found[list(want)].astype(object).to_numpy().tolist() == want.astype(object).to_numpy().tolist()
    assert not any("compressed" in note for note in account.notes)


def test_predictions_come_in_order_of_any_source_and_estimator(folder):
    x = np.random.default_rng(0).normal(size=(60, 3))
    line = bg.LinearRegressor().fit(x, x.sum(1))
    found = pd.concat(line.predict_batches([x[:10], x[10:]]))
    np.testing.assert_allclose(found["prediction"], line.predict(x))
    unnamed = bg.LogisticClassifier(inference="map").fit(x, Y)
    table = pa.table({f"x{j}": x[:, j] for j in (2, 1, 0)})
    found = pd.concat(unnamed.predict_batches(table))
    np.testing.assert_allclose(found[["p_a", "p_b", "p_c"]], unnamed.predict_proba(x))


def test_a_prediction_that_fails_leaves_no_file(folder, tmp_path):
    fitted = NB(unseen="error").fit(TABLE[["x", "colour"]], Y)
    strange = TABLE.assign(colour="pink")
    for source, message in (([TABLE, strange], "batch 1: column 'colour': 'pink'"), ([TABLE[:0]], "has no rows")):
        with pytest.raises(ValueError, match=message):
            fitted.predict_batches(source, tmp_path / "p.csv")
    refuses(lambda: fitted.predict_batches(TABLE, tmp_path / "p.txt"), "give a name that ends in")
    assert not (tmp_path / "p.csv").exists() and not list(tmp_path.glob(".*"))


def test_the_command_line_predicts_folders_and_merges(folder, tmp_path):
    from typer.testing import CliRunner

    from bayesgen.cli import app

    X = TABLE.drop(columns=["kind", "weight"])
    whole = NB().fit(X, Y)
    for i, own in enumerate((slice(0, 35), slice(35, 60))):
        part = NB().row_schema(TABLE, "kind", schema=whole.schema_, classes=whole.classes_).sum(TABLE[own])
        NB().fit_statistics(whole.schema_, part, whole.classes_).save(tmp_path / f"{i}.safetensors")
    files = [str(tmp_path / name) for name in ("0.safetensors", "1.safetensors", "all.safetensors")]
    done = CliRunner().invoke(app, ["merge", *files[:2], "--output", files[2]])
    assert done.exit_code == 0 and "2 models, rows of total weight 60" in done.output
    out = str(tmp_path / "p.parquet")
    done = CliRunner().invoke(app, ["predict", files[2], str(folder), "--output", out])
    assert done.exit_code == 0 and "60 rows" in done.output
    found = pd.read_parquet(out)
    np.testing.assert_allclose(found[["p_a", "p_b", "p_c"]], whole.predict_proba(X), rtol=1e-10)


@pytest.fixture
def rows(tmp_path):
    """A folder with a table, alone."""
    (tmp_path / "rows").mkdir()
    TABLE.to_parquet(tmp_path / "rows" / "rows.parquet")
    return tmp_path / "rows" / "rows.parquet"


@pytest.fixture(scope="module")
def learned():
    return NB().fit(TABLE.drop(columns=["kind", "weight"]), Y)


KINDS = ["parquet", "csv"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["itself", "a link", "a hard link", "another spelling"])
def test_predictions_never_replace_what_is_read(way, kind, tmp_path, learned):
    file = tmp_path / f"rows.{kind}"
    (TABLE.to_csv if kind == "csv" else TABLE.to_parquet)(file, index=False)
    output, whole = tmp_path / f"p.{kind}", file.read_bytes()
    if way == "a link":
        output.symlink_to(file)
    elif way == "a hard link":
        output.hardlink_to(file)
    else:
        (tmp_path / "sub").mkdir()
        output = file if way == "itself" else tmp_path / "sub" / ".." / file.name
    for source in (file, [file], tmp_path / f"*.{kind}"):
        with pytest.raises(ValueError, match=rf"it is the file that is read, .*\.{kind}; it would be lost"):
            learned.predict_batches(source, output)
    assert file.read_bytes() == whole


def test_predictions_in_a_folder_that_is_read_are_not_read_again(rows, learned):
    output = rows.parent / "p.parquet"
    assert learned.predict_batches(rows.parent, output) == 60
    before = output.read_bytes()
    with pytest.raises(ValueError, match=r"its columns are not those|it is the file that is read"):
        learned.predict_batches(rows.parent, output)
    assert output.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_keep_links_and_modes(kind, rows, tmp_path, learned):
    target, link = tmp_path / f"target.{kind}", tmp_path / f"link.{kind}"
    target.touch()
    target.chmod(0o600)
    link.symlink_to(target)
    assert learned.predict_batches(rows, link) == 60
    assert link.is_symlink() and stat.S_IMODE(target.stat().st_mode) == 0o600
    assert len(pd.read_parquet(target) if kind == "parquet" else pd.read_csv(target)) == 60


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_that_was_planted_where_predictions_are_made_is_left(kind, rows, tmp_path, learned):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (tmp_path / f".p.{kind}.unfinished").symlink_to(mine)
    learned.predict_batches(rows, tmp_path / f"p.{kind}")
    assert mine.read_text() == "mine" and (tmp_path / f".p.{kind}.unfinished").is_symlink()


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_as_long_as_the_file_system_takes(kind, rows, tmp_path, learned):
    longest = os.pathconf(tmp_path, "PC_NAME_MAX")
    output = tmp_path / ("p" * (longest - len(kind) - 1) + f".{kind}")
    assert learned.predict_batches(rows, output) == 60 and output.exists()
    refuses(lambda: learned.predict_batches(rows, tmp_path / f"p{output.name}"), "File name too long", OSError)


def test_where_nothing_can_be_written_nothing_is_read(tmp_path, learned):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()

    def tables():
        raise AssertionError("a row was read")
        yield

    places = {"pipe.csv": "a named pipe", "folder.csv": "a folder", "none/p.csv": "No such folder"}
    for name, message in (places | {"p.txt": "give a name that ends in"}).items():
        with pytest.raises((ValueError, OSError), match=message):
            learned.predict_batches(tables(), tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe.csv").stat().st_mode) and (tmp_path / "folder.csv").is_dir()


@pytest.mark.parametrize("kind", KINDS)
def test_two_that_predict_to_one_file_leave_one_of_both(kind, tmp_path, learned):
    """Each is at its second batch before either ends; the file is from one of them, whole."""
    output, together = tmp_path / f"p.{kind}", threading.Barrier(2, timeout=60)

    def tables(count):
        yield TABLE
        together.wait()
        yield TABLE[:count]
        together.wait()

    with ThreadPoolExecutor(2) as threads:
        done = list(threads.map(lambda count: learned.predict_batches(tables(count), output), (10, 20)))
    assert done == [70, 80]
    found = pd.read_parquet(output) if kind == "parquet" else pd.read_csv(output)
    assert found["row"].tolist() in (list(range(70)), list(range(80)))
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_leaves_the_predictions_before(kind, rows, tmp_path, learned):
    output = tmp_path / f"p.{kind}"
    learned.predict_batches(rows, output)
    before, limit = output.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        refuses(lambda: learned.predict_batches([TABLE] * 9, output), rf"p\.{kind}", OSError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert output.read_bytes() == before and sorted(path.name for path in tmp_path.iterdir()) == [output.name, "rows"]


def test_predictions_of_a_dask_table_are_written_where_a_file_is_asked_for(tmp_path, learned):
    dask = pytest.importorskip("dask.dataframe")
    source = dask.from_pandas(TABLE.drop(columns=["kind", "weight"]).astype({"colour": str}), npartitions=3)
    assert learned.predict_batches(source, tmp_path / "p.parquet") == 60
    assert len(pd.read_parquet(tmp_path / "p.parquet")) == 60
