"""`bayesgen merge`: saved models that learned apart, as one."""

import functools
import operator
from pathlib import Path
from typing import Annotated

import typer

from bayesgen import report
from bayesgen.cli import reading
from bayesgen.cli.shell import one_line


def merge(
    models: Annotated[list[Path], typer.Argument(help="Files of saved models of one kind, columns and classes.")],
    output: Annotated[Path, typer.Option(help="File to save the merged model to.")] = Path("merged.nc"),
):
    """Merge saved models into one that has learned from the rows of all."""
    from bayesgen.estimators import storage
    from bayesgen.messages import counted

    out, err = report.consoles()
    with one_line(err):
        reading.keep_inputs(output, *models)
        loaded = [storage.load(path) for path in models]
        if any(not hasattr(one, "forget") for one in loaded):
            raise ValueError(
                "only naive Bayes, Gaussian discriminants and linear regressions merge: their statistics add"
            )
        if len({type(one) for one in loaded}) > 1:
            raise ValueError("these models are of several kinds; merge those of one")
        merged = functools.reduce(operator.add, loaded)
        output.parent.mkdir(parents=True, exist_ok=True)
        merged.save(output)
        count, rows = counted(len(models), "model"), f"rows of total weight {merged.total_weight_:g}"
        report.say(out, f"{count}, {rows}; written to {output}")
