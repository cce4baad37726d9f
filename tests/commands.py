"""Commands as a user gives them: what they print, and what they write."""

import pandas as pd
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen.cli import app


def run(*arguments, command="compare"):
    """Exit code, and standard output and error with runs of blanks made one."""
    result = CliRunner().invoke(app, [command, *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert "\x1b" not in result.output
    return result.exit_code, " ".join(result.stdout.split()), " ".join(result.stderr.split())


def fitted(tmp_path, *arguments):
    """Return the output of `fit`, and the classifier it saves in a folder that was not there."""
    code, out, err = run(*arguments, "--output", tmp_path / "deep" / "er" / "m.safetensors", command="fit")
    assert (code, err) == (0, "")
    return out, bg.load(tmp_path / "deep" / "er" / "m.safetensors")


def predicted(tmp_path, *arguments):
    """Return the output of `predict`, and its table."""
    file = tmp_path / "deeper" / "p.csv"
    code, out, err = run(tmp_path / "deep" / "er" / "m.safetensors", *arguments, "--output", file, command="predict")
    assert (code, err) == (0, "")
    return out, pd.read_csv(file, dtype={"class": str}, keep_default_na=False)


def table(tmp_path, text, name="table.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name
