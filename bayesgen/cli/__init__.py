"""The command line: compare models on a table, fit and save one, predict with it, tell why, and draw pictures."""

import os
import sys
from typing import Annotated

from bayesgen.core.interrupt import EXIT_CODE, ends_the_command

with ends_the_command():
    import typer

    from bayesgen.cli import report
    from bayesgen.cli.ask import explain, predict
    from bayesgen.cli.compare import compare
    from bayesgen.cli.learn import fit, merge, update
    from bayesgen.cli.plot import plot
    from bayesgen.core import __version__


class _App(typer.Typer):
    def __call__(self, *args, **kwargs):
        report.escape()  # before the first word of help
        try:
            return super().__call__(*args, **kwargs)
        except SystemExit as stop:
            if stop.code == EXIT_CODE:  # at its own end Python would wait for what XLA still runs, or crash in it
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(EXIT_CODE)
            raise


app = _App(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
for command in (compare, fit, update, merge, predict, explain, plot):
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"bayesgen {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
):
    """Bayesian generative classifiers: class probabilities from a table, and what they rest on."""
