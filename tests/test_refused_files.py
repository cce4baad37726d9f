"""Files that are refused, by `load` and by the commands."""

import numpy as np
import pytest
from refusals import GD, X, Y, refuses
from safetensors.numpy import save_file
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen.cli import app

pytestmark = pytest.mark.usefixtures("no_sampling")


# -- files


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "not a file that"), (b"PK\x03\x04", "not a file that"), (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
     (b"\x10" + bytes(7) + b"{" + bytes(4000), "not a file that"), (b"\x80\x04K\x01.", "not a file that")],
)  # fmt: skip
def test_load_refuses_foreign_files(content, words, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(content)
    refuses(lambda: bg.load(tmp_path / "model.safetensors"), words)


def test_load_refuses_a_file_of_another_library(tmp_path):
    save_file({"x": np.ones(3)}, tmp_path / "other.safetensors")
    refuses(lambda: bg.load(tmp_path / "other.safetensors"), "not a file that bayesgen has saved")


def test_load_refuses_a_file_that_is_not_there(tmp_path):
    refuses(lambda: bg.load(tmp_path / "none.safetensors"), "none.safetensors", FileNotFoundError)


def test_load_refuses_a_file_with_one_changed_byte(tmp_path):
    fitted = GD().fit(X, Y)
    fitted.save(tmp_path / "model.safetensors")
    content = (tmp_path / "model.safetensors").read_bytes()
    for place in np.random.default_rng(0).integers(len(content), size=60):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        (tmp_path / "model.safetensors").write_bytes(changed)
        refuses(lambda: bg.load(tmp_path / "model.safetensors"), "model.safetensors: ")


# -- the command line

COMMANDS = {
    "no such file": (["compare", "none.csv", "--target", "y"], "no such file, nor a built-in data set"),
    "no such column": (["compare", "penguins", "--target", "y"], "y"),
    "no such inference": (["compare", "penguins", "--target", "species", "--inference", "vb"], "no inference 'vb'"),
    "no such model": (["compare", "penguins", "--target", "species", "--model", "svm"], "svm"),
    "one fold": (["compare", "penguins", "--target", "species", "--inference", "ml", "--folds", "1"], "fold"),
    "half a fold": (["compare", "penguins", "--target", "species", "--folds", "2.5"], "Invalid value"),
    "a measured target": (
        ["compare", "penguins", "--target", "body_mass_g", "--inference", "ml"],
        "too few rows: class 2700 has 1",
    ),
    "no target": (["compare", "penguins"], "--target"),
    "fit of nothing": (["fit", "none.csv", "--target", "y"], "no such file"),
    "fit of no inference": (
        ["fit", "penguins", "--target", "species", "--model", "nb", "--inference", "vb"],
        "no inference 'vb'",
    ),
    "predict with no model": (["predict", "none.safetensors", "penguins"], "none.safetensors"),
    "no such command": (["divine"], "No such command"),
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_command_line_refuses(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, words = COMMANDS[kind]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert words in " ".join(result.output.split()) and "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []
