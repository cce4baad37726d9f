"""`bayesgen plot`: pictures of a saved classifier, and of how it does on rows whose classes are known."""

from pathlib import Path
from typing import Annotated

import typer

from bayesgen.cli import formats, inputs, shell
from bayesgen.cli.report import pictures, terminal
from bayesgen.cli.shell import said
from bayesgen.core.errors import counted, listed, named
from bayesgen.sheets.cleaning import split


@shell.grouped
def plot(
    model: Annotated[Path, typer.Argument(help="File of a saved classifier.")],
    csv: shell.Csv,
    file: Annotated[
        str | None, typer.Argument(help="Rows with their classes, best those that the fit did not see; or -.")
    ] = None,
    of: Annotated[
        str,
        typer.Option(
            help="columns: how the values of each are distributed in each class; members: what was averaged; and with "
            "FILE reliability, probabilities, confusion, importance, or decision_regions."
        ),
    ] = "columns",
    output: Annotated[Path, typer.Option(help="File for the picture: .png, .svg or .pdf.")] = Path("picture.png"),
    target: Annotated[str | None, typer.Option(help="Column of the classes, in FILE.")] = None,
    columns: Annotated[list[str] | None, typer.Option(help="Columns to draw, for decision_regions two.")] = None,
    loss: shell.Loss = None,
    reject_cost: shell.RejectCost = None,
):
    """Draw what a classifier has learned, or how its probabilities fare on rows whose classes are known."""
    with shell.consoles() as (out, _):
        if of not in pictures.GALLERY:
            raise ValueError(f"--of must be one of {', '.join(pictures.GALLERY)}; got {of!r}")
        draw, needs_rows = pictures.GALLERY[of]
        if needs_rows != (file is not None):
            raise ValueError(f"--of {of} needs FILE, with rows" if needs_rows else f"--of {of} takes no FILE")
        if needs_rows and target is None:
            raise ValueError(f"--of {of} needs --target, the column of {file} that holds the classes")
        inputs.keep_inputs(output, model, file, loss)
        formats.check_picture(output)
        classifier = inputs.with_classes(model, inputs.load(model), " to draw")
        reading = csv.later(classifier)
        used = classifier.schema_.used().columns
        chosen = split(columns) or list(used)
        if unknown := [column for column in chosen if column not in used]:
            raise ValueError(f"--columns: no column {unknown[0]!r} in the fit; there are: {named(used)}")
        asked, y = pictures.Asked(classifier, chosen), []
        with said(out):
            if file is not None and target is not None:
                if hasattr(classifier, "unseen"):
                    classifier.set_params(unseen="missing")
                read, X = inputs.columns_of_fit(classifier, file, reading, [target])
                rows, y = inputs.classes(classifier, read.table[target])
                known = classifier.classes_.tolist()
                if foreign := [label for label in dict.fromkeys(y) if label not in known]:
                    raise ValueError(f"--target {target}: it holds {listed(foreign)}; the classes are {listed(known)}")
                if not y:
                    raise ValueError(f"--target {target}: no row of {file} has a class")
                costs = inputs.losses(loss, reading, known)
                asked = pictures.Asked(classifier, chosen, X[rows], y, costs, reject_cost)
                terminal.tell_reading(out, read, X.columns)
            figure = draw(asked)
        with formats.writing(output) as opened:
            pictures.save_figure(figure, opened, output)
        terminal.say(out, f"Written to {output}" if file is None else f"{counted(len(y), 'row')}; written to {output}")
