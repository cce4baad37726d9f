"""`bayesgen export`: a saved classifier as a program that needs no Python."""

from pathlib import Path
from typing import Annotated

import typer

from bayesgen.cli import inputs
from bayesgen.cli.report import terminal
from bayesgen.cli.shell import one_line, said
from bayesgen.files import storage


def export(
    model: Annotated[Path, typer.Argument(help="File of a saved classifier, by `bayesgen fit` or its method save.")],
    output: Annotated[Path, typer.Option(help="File for the program, a script in JavaScript.")] = Path("model.js"),
):
    """Write a saved classifier as a program that needs no Python."""
    out, err = terminal.consoles()
    with one_line(err):
        inputs.keep_inputs(output, model)
        classifier = storage.load(model)
        if not hasattr(classifier, "classes_"):
            raise ValueError(f"{model}: {type(classifier).__name__} has no classes, and cannot be exported")
        output.parent.mkdir(parents=True, exist_ok=True)
        with said(out):
            classifier.export(output)
        terminal.say(out, f"Written to {output}, {output.stat().st_size / 1000:.0f} kB")
