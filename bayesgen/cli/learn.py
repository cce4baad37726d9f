"""`bayesgen fit`, `update` and `merge`: learn from a table, from more rows, and from models that learned apart."""

import functools
import operator
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bayesgen.cli import folders, models, reading, report, shell
from bayesgen.cli.shell import one_line, said
from bayesgen.core.errors import counted
from bayesgen.files import storage


def fit(
    file: shell.File,
    target: shell.Target,
    model: Annotated[
        str,
        typer.Option(
            help="averaged: the average over many models, which has nothing to tune; nb: naive Bayes; gda: Gaussian "
            "discriminant, on the numbers; logistic: logistic regression."
        ),
    ] = "averaged",
    inference: Annotated[
        str | None,
        typer.Option(
            help="ml, map, exact, nuts or laplace; default: exact, of logistic map. Not of averaged.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="File to save the classifier to, for `bayesgen predict`.")] = Path(
        "model.nc"
    ),
    drop: shell.Drop = None,
    id: shell.Id = None,
    group: shell.Group = None,
    categorical: shell.Categorical = None,
    count: shell.Count = None,
    bernoulli: shell.Bernoulli = None,
    log: shell.Log = None,
    date: shell.Date = None,
    missing: shell.Missing = None,
    sep: shell.Sep = ",",
    decimal: shell.Decimal = ".",
    thousands: shell.Thousands = "",
    limits: shell.Limits = False,
    seed: shell.Seed = 0,
):
    """Learn a classifier from a table and save it; rows without a class are left out."""
    out, err = report.consoles()
    with one_line(err):
        ids = [*(id or []), *([group] if group else [])]
        roles = dict(drop=drop, id=ids, categorical=categorical, count=count, bernoulli=bernoulli, log=log, date=date)
        models.check_options(model, roles | {"inference": inference, "group": group})
        how = models.inference_of(model, inference)
        reading.keep_inputs(output, *folders.paths(file))
        csv, spelled = reading.Csv(sep, decimal, thousands, limits), reading.split(missing)
        batched = model != "averaged"
        read, prepared, sample = reading.prepared(file, target, model, spelled, csv, roles, seed, batched)
        with said(out):
            warnings.filterwarnings("ignore", ".*as if copied from y")  # the account of the table tells it
            rows = functools.partial(folders.Cleaned, file, target, prepared.X, prepared.dates, spelled, csv)
            large = None if sample is None else models.Large(sample, target, rows)
            classifier = models.learn(model, prepared, how, seed, group, large)
            classifier.schema_ = replace(classifier.schema_, missing=tuple(spelled), dates=prepared.dates)
            report.tell_table(out, read, target, prepared, classifier.schema_)
        output.parent.mkdir(parents=True, exist_ok=True)
        classifier.save(output)
        report.say(out, f"Written to {output}")


def update(
    model: Annotated[Path, typer.Argument(help="File of a classifier, saved by `bayesgen fit`.")],
    file: shell.Rows,
    target: shell.Target,
    output: Annotated[Path | None, typer.Option(help="File to save to; default: MODEL itself, replaced.")] = None,
    missing: shell.Missing = None,
    sep: shell.Sep = ",",
    decimal: shell.Decimal = ".",
    thousands: shell.Thousands = "",
    limits: shell.Limits = False,
    untrusted: shell.Untrusted = False,
):
    """Learn from more rows: the classifier becomes what it would be from all rows together."""
    out, err = report.consoles()
    with one_line(err):
        reading.keep_inputs(output or model, file)
        classifier = storage.load(model, untrusted=untrusted)
        if not hasattr(classifier, "partial_fit"):
            raise ValueError(f"{model}: a {type(classifier).__name__} does not learn from more rows; fit all of them")
        read, X = reading.columns_of_fit(
            classifier, file, missing, reading.Csv(sep, decimal, thousands, limits), [target]
        )
        rows, y = reading.classes(classifier, read.table[target])
        with said(out):
            classifier.partial_fit(X[rows], y)
            report.tell_gaps(out, read, X.columns)
        destination = output or model
        destination.parent.mkdir(parents=True, exist_ok=True)
        classifier.save(destination)
        total = f"{classifier.statistics_.classes.sums.sum():g}"
        left_out = f"; {counted((~rows).sum(), 'row')} left out: no {target}" if not rows.all() else ""
        report.say(out, f"{counted(rows.sum(), 'row')} more, {total} in all{left_out}; written to {destination}")


def merge(
    files: Annotated[
        list[Path], typer.Argument(metavar="MODELS...", help="Files of saved models of one kind, columns and classes.")
    ],
    output: Annotated[Path, typer.Option(help="File to save the merged model to.")] = Path("merged.nc"),
    untrusted: shell.Untrusted = False,
):
    """Merge saved models into one that has learned from the rows of all."""
    out, err = report.consoles()
    with one_line(err):
        reading.keep_inputs(output, *files)
        loaded = [storage.load(path, untrusted=untrusted) for path in files]
        if any(not hasattr(one, "forget") for one in loaded):
            raise ValueError(
                "only naive Bayes, Gaussian discriminants and linear regressions merge: their statistics add"
            )
        if len({type(one) for one in loaded}) > 1:
            raise ValueError("these models are of several kinds; merge those of one")
        merged = functools.reduce(operator.add, loaded)
        output.parent.mkdir(parents=True, exist_ok=True)
        merged.save(output)
        count, rows = counted(len(files), "model"), f"rows of total weight {merged.total_weight_:g}"
        report.say(out, f"{count}, {rows}; written to {output}")
