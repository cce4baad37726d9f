"""`bayesgen predict`: classes and probabilities of new rows. `bayesgen explain`: the evidence of one row, by column.

`bayesgen watch`: an alarm where new rows are no longer like the ones before.
"""

import json as as_json
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bayesgen import decision, plot
from bayesgen.cli import folders, formats, inputs, shell
from bayesgen.cli.report import pictures, terminal
from bayesgen.cli.shell import said
from bayesgen.core.errors import counted, named
from bayesgen.estimators.discriminant import GaussianDiscriminantClassifier
from bayesgen.estimators.streaming import predictions
from bayesgen.inspection.explain import explain as terms_of
from bayesgen.inspection.watch import ALONE, Watch
from bayesgen.sheets.cleaning import split
from bayesgen.tables.table import Table

_MINUTES = 12  # columns from which the modes and draws of full covariances take long: 14 s on 200 rows with gaps


@shell.grouped
def predict(
    model: Annotated[Path, typer.Argument(help="File of a saved estimator, by `bayesgen fit` or its method save.")],
    file: shell.Rows,
    csv: shell.Csv,
    output: Annotated[
        Path, typer.Option(help="File for predictions: .parquet, else CSV, or .gz, .bz2, .xz, .zst, .zip of it; or -.")
    ] = Path("predictions.csv"),
    id: shell.Id = None,
    unseen: shell.Unseen = "missing",
    loss: shell.Loss = None,
    reject_cost: shell.RejectCost = None,
):
    """Predict the class of every row of a table, with the probability of each class."""
    piped, names = str(output) == "-", split(id)
    with shell.consoles() as (out, err):
        out = err if piped else out
        if unseen not in ("error", "missing"):
            raise ValueError(f"--unseen must be error or missing, got {unseen}")
        if not piped:
            inputs.keep_inputs(output, *folders.paths(file), model, loss)
        estimator = inputs.load(model)
        if hasattr(estimator, "unseen"):
            estimator.set_params(unseen=unseen)
        reading = csv.later(estimator)
        decide = _decisions(estimator, loss, reject_cost, reading)

        def predicted(X, others):
            return formats.named(decide(predictions(estimator, X)), others[names])

        with said(out):
            warnings.filterwarnings("ignore", "X has feature names", UserWarning)  # fitted on an array: x0, x1, ...
            if folders.outgrows(file, summed=True):
                frames = folders.batches(file, estimator, names, reading, predicted)
                source = file
            else:
                read, X = inputs.columns_of_fit(estimator, file, reading, names)
                source, frames = read.source, [predicted(X, read.table)]
                terminal.tell_reading(out, read, X.columns)
            count, columns = formats.write(frames, output)
        if not piped:
            terminal.say(out, f"{source}: {counted(count, 'row')}; written to {output}: {named(columns)}")


def _decisions(estimator, loss, reject_cost, reading):
    """Return the function that adds to predictions the action of least expected loss, where there are losses."""
    if loss is None and reject_cost is None:
        return lambda found: found
    if not hasattr(estimator, "classes_"):
        raise ValueError(f"--loss and --reject-cost need classes, which {type(estimator).__name__} has not")
    classes = estimator.classes_.tolist()
    costs = inputs.losses(loss, reading, classes)

    def decide(found):
        probability = found[[f"p_{label}" for label in classes]].to_numpy()
        return found.join(decision.act(probability, costs, classes, reject_cost=reject_cost))

    return decide


@shell.grouped
def explain(
    model: Annotated[Path, typer.Argument(help="File of a saved classifier.")],
    file: shell.Rows,
    csv: shell.Csv,
    row: Annotated[int, typer.Option(help="Which row, counted from 0 as in predictions.csv.")] = 0,
    label: Annotated[str | None, typer.Option("--class", help="For which class; default: the most probable.")] = None,
    output: Annotated[Path | None, typer.Option(help="A file for the picture: explain.png, .svg or .pdf.")] = None,
    json: shell.Json = False,
):
    """Tell why a row has its probability: what each of its values does to the odds of a class."""
    with shell.consoles() as (out, err):
        if output:
            inputs.keep_inputs(output, file, model)
            formats.check_picture(output)
        classifier = inputs.with_classes(model, inputs.load(model), ", and no odds to explain")
        read, X = inputs.columns_of_fit(classifier, file, csv.later(classifier))
        classes = {str(known): known for known in classifier.classes_.tolist()} | {None: None}
        if label not in classes:
            raise ValueError(f"--class: no class {label!r}; there are: {named([*classes][:-1])}")
        if not 0 <= row < len(X):
            raise ValueError(f"--row {row}: the file has the rows 0 to {len(X) - 1}")
        with said(err if json else out):
            terminal.tell_reading(err if json else out, read, ())
            classifier.schema_.read(Table(X.iloc[[row]]), "missing")  # which warns of categories that are new
            warnings.filterwarnings("ignore", ".*taken as missing, of categories")  # of copies of the row
            told = terms_of(classifier, X, row, classes[label])
        if output:
            figure = pictures.drawn(6.4, 1.3 + 0.3 * (1 + len(told.terms)), plot.evidence, told)
            with formats.writing(output) as opened:
                pictures.save_figure(figure, opened, output)
        if json:
            typer.echo(as_json.dumps(told.to_dict(), indent=2))
            return
        terminal.tell_evidence(out, told, row, _interval_by(classifier))
        if hasattr(classifier, "missing"):
            terminal.say(out, "It knows no odds without values: prior stands for those at the means of all columns.")
        if output:
            terminal.say(out, f"Written to {output}")


def _interval_by(classifier) -> str:
    """Tell how a classifier that is fitted at a point would get an interval; else nothing."""
    if classifier.posterior_.kind != "point":
        return ""
    covariances = isinstance(classifier, GaussianDiscriminantClassifier) and len(classifier.schema_.columns) >= _MINUTES
    return f" (--inference laplace{', in minutes,' * covariances} gives one)"


@shell.grouped
def watch(
    model: Annotated[Path, typer.Argument(help="File of a saved estimator.")],
    file: shell.Rows,
    csv: shell.Csv,
    state: Annotated[
        Path, typer.Option(help="File of the watch, begun where there is none; it holds counts of values.")
    ] = Path("state.safetensors"),
    target: Annotated[str | None, typer.Option(help="Column of the classes, where they are known by now.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="To begin with: rows to compare with, as of the fit; default: the first of FILE.")
    ] = None,
    level: Annotated[
        float, typer.Option(help="To begin with: the probability at most of ever an alarm without a change.")
    ] = 0.05,
    again: Annotated[bool, typer.Option("--again", help="Take FILE though the same rows came before.")] = False,
):
    """Take up new rows; where they are no longer like the ones before, say so and end with status 3."""
    with shell.consoles() as (out, _):
        inputs.keep_inputs(state, model, *folders.paths(file), reference)
        estimator = inputs.load(model)
        reading, others, names = csv.later(estimator), [] if target is None else [target], {}
        names.update({str(label): label for label in getattr(estimator, "classes_", np.empty(0)).tolist()})

        def labelled(X, table):
            if target is None:
                return X, None
            said_of = zip(table[target], table[target].notna(), strict=True)
            return X, [names.get(str(v), v) if there else None for v, there in said_of]

        def whole(path):
            read, X = inputs.columns_of_fit(estimator, path, reading, others)
            terminal.tell_reading(out, read, X.columns)
            return labelled(X, read.table)

        with said(out):
            if state.exists():
                if reference is not None:
                    raise ValueError(f"--reference {reference}: {state} is there and goes on; delete it to begin anew")
                found = Watch.load(state, estimator)
            else:
                parts = [kind for kind in ALONE if target is not None or kind != "labels"]
                if reference is None:
                    parts += ["shares", "density", *["score"] * (target is not None)]
                    found = Watch(estimator, parts=parts, level=level)
                else:
                    found = Watch.from_rows(*whole(reference), estimator, parts=parts, level=level)
            if target is not None and not any(part.kind == "labels" for part in found.parts):
                raise ValueError(f"--target {target}: this watch began without classes, and has no part for them")
            before = found.rows
            large = folders.outgrows(file)
            for rows in folders.batches(file, estimator, others, reading, labelled) if large else [whole(file)]:
                found.update(*rows, again=again)
        found.save(state)
        told = f"{file}: {counted(found.rows - before, 'row')}, {found.rows} so far; written to {state}"
        alarm = "ALARM" if found.alarms else "No alarm"
        terminal.say(out, f"{told}. {alarm}: {counted(len(found.parts), 'part')} watched")
        for one in found.alarms:
            terminal.say(out, f"{one.text} (found at row {one.row})", indent=2)
    if found.alarms:
        raise typer.Exit(3)
