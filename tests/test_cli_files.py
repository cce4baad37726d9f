"""Files that the commands write are whole or absent, and never replace the files that they read."""

import contextlib
import io
import os
import resource
import stat
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
from commands import run
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen import data
from bayesgen.cli import app

pytestmark = pytest.mark.usefixtures("few_members")  # commands do to the average of all what they do to this one


@pytest.fixture
def birds(tmp_path, monkeypatch):
    """A folder to work in, with a table and a classifier that learned from it."""
    table = data.load("penguins")[::4].dropna()
    table.to_csv(tmp_path / "rows.csv", index=False)
    X, y = table.drop(columns="species"), table["species"]
    classifier = bg.NaiveBayesClassifier(random_state=0).fit(X, y)
    classifier.save(tmp_path / "birds.safetensors")
    classifier.partial_fit(X[:9], y[:9]).save(tmp_path / "others.safetensors")
    monkeypatch.chdir(tmp_path)
    return tmp_path


WRITES = {
    "predict": ("birds.safetensors", "rows.csv", "--output", "a.csv"),
    "predict batches": ("birds.safetensors", "rows.csv", "--output", "a.parquet"),
    "plot": ("birds.safetensors", "--output", "a.svg"),
    "explain": ("birds.safetensors", "rows.csv", "--output", "a.png"),
    "fit": ("rows.csv", "--target", "species", "--output", "a.safetensors"),
    "merge": ("birds.safetensors", "others.safetensors", "--output", "a.safetensors"),
}
COMPARE = ["rows.csv", "--target", "species", "--model", "nb", "--inference", "exact", "--folds", "2"]
COMPARE += ["--output", "report"]


# Drawing waits for the libraries of pictures.
FIRST_PLOT = [pytest.param(c, marks=[pytest.mark.compiles] * (c in ("plot", "explain"))) for c in WRITES]


def command(case):
    arguments = WRITES[case]
    return arguments, arguments[-1], case.split()[0]


@contextlib.contextmanager
def full_disk():
    """A disk that is full once it holds a kilobyte of a file, as far as one can fill it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:  # before pytest writes of the test, perhaps to a file
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("case", FIRST_PLOT)
def test_links_and_modes_stay(case, birds):
    arguments, name, how = command(case)
    (birds / "target").touch()
    (birds / "target").chmod(0o600)
    (birds / name).symlink_to("target")
    code, _, err = run(*arguments, command=how)
    assert (code, err) == (0, "") and os.readlink(birds / name) == "target"
    assert stat.S_IMODE((birds / "target").stat().st_mode) == 0o600 and (birds / "target").stat().st_size > 1000


@pytest.mark.parametrize("case", FIRST_PLOT)
def test_a_full_disk_leaves_what_was_there(case, birds):
    arguments, name, how = command(case)
    assert run(*arguments, command=how)[0] == 0
    before = {path.name: path.read_bytes() for path in birds.iterdir()}
    with full_disk():
        code, _, err = run(*arguments, command=how)
    assert code == 2 and err.startswith("Error: ") and name in err
    assert {path.name: path.read_bytes() for path in birds.iterdir()} == before


@pytest.mark.parametrize("case", WRITES)
def test_nothing_is_read_where_nothing_can_be_written(case, birds):
    arguments, name, how = command(case)
    os.mkfifo(birds / name)
    code, _, err = run(*("nowhere" if a.endswith("csv") and a != name else a for a in arguments), command=how)
    assert code == 2 and f"--output {name}: this is a named pipe" in err
    assert stat.S_ISFIFO((birds / name).stat().st_mode)


@pytest.mark.parametrize("suffix", ["csv.gz", "csv.bz2", "csv.xz", "csv.zip"])
def test_predictions_are_compressed_as_their_name_says(suffix, birds):
    assert run("birds.safetensors", "rows.csv", "--output", f"p.{suffix}", command="predict")[0] == 0
    assert run("birds.safetensors", "rows.csv", "--output", "p.csv", command="predict")[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv(f"p.{suffix}"), pd.read_csv("p.csv"))


@pytest.mark.parametrize(
    ("source", "output"),
    [
        *((source, "p.txt") for source in ("rows.txt", "rows.csv.bz2", "rows.parquet", "-")),
        *(("rows.txt", output) for output in ("p.csv.bz2", "p.csv.zst", "p.parquet", "-")),
        ("rows.parquet", "p.parquet"),
        ("-", "-"),
    ],
)
def test_what_predict_reads_it_writes_and_the_other_way_round(source, output, birds):
    table = pd.read_csv("rows.csv")
    if source.endswith("parquet"):
        table.to_parquet(source)
    else:
        table.to_csv("rows.txt" if source == "-" else source, index=False)
    given = ["predict", "birds.safetensors", source, "--output", output, "--id", "species", "--reject-cost", "0.1"]
    content = (birds / "rows.txt").read_bytes() if source == "-" else None
    result = CliRunner().invoke(app, given, input=content)
    assert result.exit_code == 0, result.output
    if output == "p.parquet":
        found = pd.read_parquet(output)
    elif output == "p.csv.zst":  # pandas would need another package
        found = pd.read_csv(pa.input_stream(output, compression="zstd"))
    else:
        found = pd.read_csv(io.StringIO(result.stdout) if output == "-" else output)
    assert found.columns[:3].tolist() == ["row", "species", "class"] and "action" in found
    assert found["species"].tolist() == table["species"].tolist()
    want = bg.load("birds.safetensors").predict_proba(table.drop(columns="species"))
    np.testing.assert_allclose(found.filter(like="p_"), want, rtol=1e-9)


@pytest.mark.compiles
def test_ids_are_kept_whatever_their_columns_are_called(birds):
    names, table = ["row", "class", "fold", "truth", "exact_class", "p_Adelie", "patient"], pd.read_csv("rows.csv")
    table = table.assign(**{name: [f"{name} {i}" for i in range(len(table))] for name in names})
    table.to_csv("named.csv", index=False)
    ids = [word for name in names for word in ("--id", name)]
    assert run("birds.safetensors", "named.csv", *ids, "--output", "p.csv", command="predict")[0] == 0
    assert run("named.csv", *COMPARE[1:], *ids)[0] == 0
    taken = {"p.csv": ("row", "class", "p_Adelie"), "report/predictions.csv": ("row", "fold", "truth", "exact_class")}
    for file, own in taken.items():
        found = pd.read_csv(file)
        called = [f"id_{name}" if name in own else name for name in names]
        assert found.columns[1:8].tolist() == called
        assert (found[called].to_numpy() == table[names].to_numpy()).all()
        assert found["row"].tolist() == list(range(len(table)))


def test_a_file_of_costs_is_not_replaced(birds):
    costs = "species,count\nGentoo,5\nAdelie,0\nChinstrap,1\n"
    (birds / "costs.csv").write_text(costs)
    given = ("--loss", "costs.csv", "--output", "costs.csv")
    code, _, err = run("birds.safetensors", "rows.csv", *given, command="predict")
    assert code == 2 and "it is the file that is read, costs.csv" in err
    assert (birds / "costs.csv").read_text() == costs


@pytest.mark.compiles
def test_a_report_is_there_whole_or_the_one_before_is(birds):
    code, out, err = run(*COMPARE)
    assert (code, err) == (0, "") and "report.html" in out
    mine = birds / "report" / "mine.txt"
    mine.write_text("mine")
    (birds / "report" / "models.png").write_bytes(b"of an earlier run")
    before = {path.name: path.read_bytes() for path in (birds / "report").iterdir()}
    with full_disk():
        code, _, err = run(*COMPARE)
    assert code == 2 and "Error: " in err and "report" in err
    assert {path.name: path.read_bytes() for path in (birds / "report").iterdir()} == before
    assert run(*COMPARE)[0] == 0
    assert not (birds / "report" / "models.png").exists() and mine.read_text() == "mine"
    with xr.open_datatree(birds / "report" / "posterior.nc", engine="h5netcdf") as tree:
        assert "posterior" in tree


@pytest.mark.compiles
def test_a_report_without_netcdf_has_all_but_draws_and_says_no_word_of_it(birds, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5netcdf", None)
    code, out, err = run(*COMPARE)
    assert (code, err) == (0, "") and "posterior.nc" not in out and "h5netcdf" not in out
    assert (birds / "report" / "report.html").exists() and not (birds / "report" / "posterior.nc").exists()


@pytest.mark.compiles
def test_a_page_that_cannot_be_made_leaves_the_report_before(birds, monkeypatch):
    from bayesgen.cli.report import page

    def fail(*arguments):
        raise KeyboardInterrupt

    assert run(*COMPARE)[0] == 0
    before = {path.name: path.read_bytes() for path in (birds / "report").iterdir()}
    monkeypatch.setattr(page, "page", fail)
    assert run(*COMPARE)[0] == 130
    assert {path.name: path.read_bytes() for path in (birds / "report").iterdir()} == before


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_read(birds):
    (birds / "report").mkdir()
    os.mkfifo(birds / "report" / "calibration.png")
    code, _, err = run("nowhere.csv", *COMPARE[1:])
    assert code == 2 and "calibration.png: this is a named pipe" in err
