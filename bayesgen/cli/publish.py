"""`bayesgen export` and `bayesgen page`: a saved classifier as a program that needs no Python, and as a web page."""

from pathlib import Path
from typing import Annotated

import typer

from bayesgen.cli import formats, inputs, shell
from bayesgen.cli.report import terminal
from bayesgen.cli.shell import said
from bayesgen.export import learning_page, words_template
from bayesgen.export import program as program_of
from bayesgen.export.calculator import PAGE
from bayesgen.export.plain_program import PROGRAM
from bayesgen.export.script import SCRIPT
from bayesgen.files import storage

Model = Annotated[Path, typer.Argument(help="File of a saved classifier, by `bayesgen fit` or its method save.")]


def _classifier(model: Path):
    return inputs.with_classes(model, storage.load(model), ", whose probabilities a program or page tells")


def export(model: Model, output: Annotated[Path, typer.Option(help="File for the script.")] = Path("model.js")):
    """Write a saved classifier as a script in JavaScript, which needs no Python."""
    with shell.consoles() as (out, _):
        inputs.keep_inputs(output, model, holds=SCRIPT)
        classifier = _classifier(model)
        output.parent.mkdir(parents=True, exist_ok=True)
        with said(out):
            classifier.export(output)
        terminal.say(out, f"Written to {output}, {output.stat().st_size / 1000:,.0f} kB")


def program(
    model: Annotated[Path, typer.Argument(help="File of a saved model, by `bayesgen fit` or its method save.")],
    output: Annotated[Path | None, typer.Option(help="File for the text; default: print it.")] = None,
    member: Annotated[int | None, typer.Option(help="Of an average, the member, by its row in summary().")] = None,
):
    """Write a saved model as a program in plain NumPyro, as one reads and runs it without bayesgen."""
    with shell.consoles() as (out, _):
        text = program_of(storage.load(model), member=member)
        if output is None:
            return typer.echo(text, nl=False)
        inputs.keep_inputs(output, model, holds=PROGRAM)
        output.parent.mkdir(parents=True, exist_ok=True)
        text.save(output)
        terminal.say(out, f"Written to {output}")


def page(
    model: Annotated[Path | None, typer.Argument(help="File of a saved classifier; none with --learn.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="File for the page; default: calculator.html, or learn.html.")
    ] = None,
    loss: shell.Loss = None,
    cost: Annotated[
        str | None, typer.Option(help="A CSV of what it costs to ask: names of columns, and their costs beside them.")
    ] = None,
    words: Annotated[
        Path | None, typer.Option(help="A TOML file of words: title, units, names, pictures, another language.")
    ] = None,
    words_template_: Annotated[
        Path | None, typer.Option("--words-template", help="Write such a file to fill in, and no page.")
    ] = None,
    learn: Annotated[bool, typer.Option("--learn", help="Write the page that learns from a table; no model.")] = False,
):
    """Write a saved classifier as one web page, which asks for values and answers at once, offline, in any browser."""
    with shell.consoles() as (out, _):
        if learn != (model is None) or (learn and (loss or cost or words or words_template_)):
            raise ValueError("give either the file of a saved classifier, or --learn, which takes --output alone")
        output = output or Path("learn.html" if learn else "calculator.html")
        if words_template_:
            formats.check_ending(words_template_, "a file of words", (".toml",), "--words-template")
        inputs.keep_inputs(words_template_ or output, model, loss, cost, words, holds=None if words_template_ else PAGE)
        if model is None:
            output.parent.mkdir(parents=True, exist_ok=True)
            learning_page(output)
            return _tell(out, output)
        classifier = _classifier(model)
        if words_template_:
            text = words_template(classifier)
            with formats.writing(words_template_) as file:
                file.write(text.encode())
            terminal.say(out, f"Written to {words_template_}: fill it in, then give it by --words")
            return
        reading, labels = classifier.schema_.reading, classifier.classes_.tolist()
        losses = inputs.losses(loss, reading, labels) if loss else None
        costs = inputs.costs(cost, reading, classifier.schema_.columns)
        output.parent.mkdir(parents=True, exist_ok=True)
        with said(out):
            classifier.to_page(output, loss=losses, cost=costs, words=words)
        _tell(out, output)


def _tell(out, page: Path) -> None:
    size = page.stat().st_size
    terminal.say(out, f"Written to {page}, {size / 1000:,.0f} kB: it opens in any browser, without a network")
