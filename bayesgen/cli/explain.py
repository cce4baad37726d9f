"""`bayesgen explain`: what each column of one row says for a class."""

import json as as_json
from pathlib import Path
from typing import Annotated

import typer

from bayesgen import report
from bayesgen.cli import options, reading
from bayesgen.cli.shell import one_line, said


def explain(
    model: Annotated[Path, typer.Argument(help="File of a saved classifier.")],
    file: options.Rows,
    row: Annotated[int, typer.Option(help="Which row, counted from 0 as in predictions.csv.")] = 0,
    label: Annotated[str | None, typer.Option("--class", help="For which class; default: the most probable.")] = None,
    output: Annotated[Path | None, typer.Option(help="A file for the picture: explain.png, .svg or .pdf.")] = None,
    missing: options.Missing = None,
    sep: options.Sep = ",",
    decimal: options.Decimal = ".",
    json: options.Json = False,
):
    """Tell why a row has its probability: what each of its values does to the odds of a class."""
    from bayesgen import inspection
    from bayesgen.estimators import storage

    out, err = report.consoles()
    with one_line(err):
        if output:
            reading.keep_inputs(output, file, model)
        classifier = storage.load(model)
        if not hasattr(classifier, "schema_"):
            raise ValueError(f"{model}: a {type(classifier).__name__} has no terms to explain; its coef_ tell")
        _, X = reading.columns_of_fit(classifier, file, missing, reading.Csv(sep, decimal))
        if not 0 <= row < len(X):
            raise ValueError(f"--row {row}: the file has the rows 0 to {len(X) - 1}")
        with said(err if json else out):
            told = inspection.evidence(classifier, X.iloc[[row]], _label(classifier, label))
        if output:
            with reading.writing(output) as opened:
                report.save_figure(report.draw_evidence(told), opened, output)
        if json:
            typer.echo(as_json.dumps(told.to_dict(), indent=2))
            return
        report.tell_evidence(out, told)
        if output:
            report.say(out, f"Written to {output}")


def _label(classifier, text: str | None):
    """The class that a text names; None where there is no text."""
    from bayesgen.messages import named

    classes = {str(known): known for known in classifier.classes_.tolist()}
    if text is not None and text not in classes:
        raise ValueError(f"--class: no class {text!r}; there are: {named(classes)}")
    return None if text is None else classes[text]
