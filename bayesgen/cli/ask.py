"""`bayesgen predict`: classes and probabilities of new rows. `bayesgen explain`: the evidence of one row, by column."""

import json as as_json
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesgen.cli import reading, report, shell
from bayesgen.cli.shell import one_line, said


def _decided(found, estimator, loss, reject_cost, csv):
    """Add to predictions the action of least expected loss."""
    from bayesgen import decision

    if not hasattr(estimator, "classes_"):
        raise ValueError(f"--loss and --reject-cost need classes, which a {type(estimator).__name__} has not")
    classes = estimator.classes_.tolist()
    costs = reading.losses(loss, csv, classes)
    probability = found[[f"p_{label}" for label in classes]].to_numpy()
    return found.join(decision.act(probability, costs, classes, reject_cost=reject_cost))


def _compression(path: Path) -> Any:
    """Return the compression for pandas by the name of a file, which an open file does not show."""
    how = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
    return {"method": "zip", "archive_name": path.stem} if path.suffix == ".zip" else how.get(path.suffix)


def predict(
    model: Annotated[Path, typer.Argument(help="File of a saved estimator, by `bayesgen fit` or its method save.")],
    file: shell.Rows,
    output: Annotated[
        Path, typer.Option(help="File for the predictions, .csv or .parquet; - for the standard output.")
    ] = Path("predictions.csv"),
    id: shell.Id = None,
    missing: shell.Missing = None,
    sep: shell.Sep = ",",
    decimal: shell.Decimal = ".",
    thousands: shell.Thousands = "",
    unseen: shell.Unseen = "missing",
    loss: shell.Loss = None,
    reject_cost: shell.RejectCost = None,
):
    """Predict the class of every row of a table, with the probability of each class."""
    from bayesgen.core.errors import named
    from bayesgen.estimators.predictions import predictions
    from bayesgen.files import storage

    csv, piped, decided = (
        reading.Csv(sep, decimal, thousands),
        str(output) == "-",
        loss is not None or reject_cost is not None,
    )
    out, err = report.consoles()
    out = err if piped else out
    with one_line(err):
        if unseen not in ("error", "missing"):
            raise ValueError(f"--unseen must be error or missing, got {unseen}")
        if not piped:
            reading.keep_inputs(output, file, model, loss)
        estimator = storage.load(model)
        if hasattr(estimator, "unseen"):
            estimator.set_params(unseen=unseen)
        names = reading.split(id)
        if reading.in_batches(file, output):
            if names or decided or csv != reading.Csv():
                raise ValueError(
                    "--id, --sep, --decimal, --loss and --reject-cost are not for folders, patterns, large files or "
                    "Parquet"
                )
            output.parent.mkdir(parents=True, exist_ok=True)
            with said(out):
                count = estimator.predict_batches(file, output, missing=reading.split(missing))
            report.say(out, f"{file}: {count} rows; written to {output}")
            return
        read, X = reading.columns_of_fit(estimator, file, missing, csv, names)
        with said(out):
            warnings.filterwarnings("ignore", "X has feature names", UserWarning)  # fitted on an array: x0, x1, ...
            found = predictions(estimator, X)
            found.insert(0, "row", range(len(X)))
            report.tell_gaps(out, read, X.columns)
            if decided:
                found = _decided(found, estimator, loss, reject_cost, csv)
        for place, name in enumerate(names, 1):
            found.insert(place, name, read.table[name].to_numpy())
        if piped:
            typer.echo(found.to_csv(index=False), nl=False)
            return
        with reading.writing(output) as opened:
            found.to_csv(opened, index=False, compression=_compression(output))
        report.say(out, f"{read.source}: {len(X)} rows; written to {output}: {named(found.columns)}")


def explain(
    model: Annotated[Path, typer.Argument(help="File of a saved classifier.")],
    file: shell.Rows,
    row: Annotated[int, typer.Option(help="Which row, counted from 0 as in predictions.csv.")] = 0,
    label: Annotated[str | None, typer.Option("--class", help="For which class; default: the most probable.")] = None,
    output: Annotated[Path | None, typer.Option(help="A file for the picture: explain.png, .svg or .pdf.")] = None,
    missing: shell.Missing = None,
    sep: shell.Sep = ",",
    decimal: shell.Decimal = ".",
    thousands: shell.Thousands = "",
    json: shell.Json = False,
):
    """Tell why a row has its probability: what each of its values does to the odds of a class."""
    from bayesgen.files import storage

    out, err = report.consoles()
    with one_line(err):
        if output:
            reading.keep_inputs(output, file, model)
        classifier = storage.load(model)
        if not hasattr(classifier, "schema_"):
            raise ValueError(f"{model}: a {type(classifier).__name__} has no terms to explain; its coef_ tell")
        _, X = reading.columns_of_fit(classifier, file, missing, reading.Csv(sep, decimal, thousands))
        if not 0 <= row < len(X):
            raise ValueError(f"--row {row}: the file has the rows 0 to {len(X) - 1}")
        with said(err if json else out):
            told = classifier.explain(X, row, _label(classifier, label))
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
    """Return the class that a text names; None where there is no text."""
    from bayesgen.core.errors import named

    classes = {str(known): known for known in classifier.classes_.tolist()}
    if text is not None and text not in classes:
        raise ValueError(f"--class: no class {text!r}; there are: {named(classes)}")
    return None if text is None else classes[text]
