"""The command line: compare models on a table, fit and save one, predict with it, tell why, and draw pictures."""

import os
import sys
from typing import Annotated

from bayesgen.core.interrupt import EXIT_CODE, ends_the_command

with ends_the_command():
    try:
        import typer

        from bayesgen import load  # noqa: F401 - and with it all that a command may import, where Ctrl-C ends it in silence
        from bayesgen.cli.ask import explain, predict, watch
        from bayesgen.cli.class_report import classes
        from bayesgen.cli.compare import compare, demo
        from bayesgen.cli.learn import fit, merge, update
        from bayesgen.cli.look import look
        from bayesgen.cli.plot import plot
        from bayesgen.cli.publish import export, page, program
        from bayesgen.cli.report import terminal
        from bayesgen.core import __version__
    except ModuleNotFoundError as error:  # where what only predicts was installed
        lacking = str(error.name).partition(".")[0]
        sys.exit(f"bayesgen: the commands need {lacking}, which is not installed: pip install {lacking}")


class _App(typer.Typer):
    def __call__(self, *args, **kwargs):
        terminal.escape()  # before the first word of help
        try:
            return super().__call__(*args, **kwargs)
        except SystemExit as stop:
            if stop.code == EXIT_CODE:  # at its own end Python would wait for what XLA still runs, or crash in it
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(EXIT_CODE)
            raise


_BEGIN = """\
bayesgen: class probabilities from a table. It has a row for each case, and a column of classes.

  bayesgen demo                                       see what it does, with penguins; half a minute
  bayesgen look table.csv --target COLUMN             what the table holds, and the command that reads all of it
  bayesgen compare table.csv --target COLUMN          which model predicts the classes best; --output FOLDER: a page
  bayesgen fit table.csv --target COLUMN              learn from the table, into model.safetensors
  bayesgen predict model.safetensors new.csv          probabilities of new rows, into predictions.csv
  bayesgen explain model.safetensors new.csv --row 0  why one row has its probability
  bayesgen classes table.csv --numbers 1-6            classes that nobody named: how many, what they are, into classes/
  bayesgen watch model.safetensors new.csv            an alarm where new rows are no longer like the ones before
  bayesgen page model.safetensors                     the model as one page that anyone opens in a browser
  bayesgen page --learn                               a page that learns from a table in a browser, without Python
  bayesgen export model.safetensors                   a script in JavaScript, which predicts without Python
  bayesgen program model.safetensors                  the model in plain NumPyro, a text to read and to run

bayesgen --help lists all commands, bayesgen fit --help what one takes."""

app = _App(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
for command in (demo, look, compare, fit, update, merge, predict, explain, watch, plot, page, export, program, classes):
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"bayesgen {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
):
    """Bayesian generative classifiers: class probabilities from a table, and what they rest on."""
    if context.invoked_subcommand is None:
        typer.echo(_BEGIN)
