"""The command line: compare inferences on a table, fit a classifier and save it, predict with a saved one."""

import contextlib
import warnings
from dataclasses import replace
from pathlib import Path

import typer
from rich.progress import Progress

from bayesgen import report


class _App(typer.Typer):
    def __call__(self, *args, **kwargs):
        report.escape()  # before the first word of help
        return super().__call__(*args, **kwargs)


app = _App(add_completion=False, no_args_is_help=True)

_FILE = typer.Argument(
    help="A CSV or Parquet file, or the name of a built-in data set: penguins, anes96. A file of that name wins."
)
_TARGET = typer.Option(help="Column of the classes.")
_MODEL = typer.Option("nb", help="nb: naive Bayes on all columns; gda: Gaussian discriminant on the numbers.")
_MISSING = typer.Option(
    [],
    help="What is missing beside an empty field, with commas between: NA,?,-999. In a column of numbers NA, NaN and "
    "null are missing anyway.",
)
_CATEGORIES = typer.Option([], help="Columns of numbers that are categories, with commas between.")


@app.callback()
def _main():
    """Bayesian generative classifiers."""


@app.command()
def compare(
    file: str = _FILE,
    target: str = _TARGET,
    model: str = typer.Option(
        "all",
        help="all: naive Bayes by every inference, and then the models beside each other; nb or gda: one model by "
        "every inference.",
    ),
    inference: str = typer.Option("ml,map,exact,nuts", help="Inferences to compare, with commas between; laplace too."),
    folds: int = typer.Option(5, help="Folds of the stratified cross-validation."),
    output: Path | None = typer.Option(None, help="Folder for pictures, predictions.csv and posterior.nc."),
    missing: list[str] = _MISSING,
    categories: list[str] = _CATEGORIES,
    seed: int = typer.Option(0, help="Seed of the folds and of NUTS."),
):
    """Compare inferences on a table (ML, MAP, the exact posterior, NUTS: 4 chains of 1000 draws), then models."""
    from bayesgen import comparison
    from bayesgen.tables.cleaning import MODELS

    out, err = report.consoles()
    with _one_line(err):
        if model not in (known := ("all", *MODELS)):
            raise ValueError(f"--model must be one of {', '.join(known)}; got {model!r}")
        beside, model = model == "all", "nb" if model == "all" else model
        inferences = {name: _inference(name) for name in _split([inference.lower()])}
        read, prepared = _prepared(file, target, model, missing, categories)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters of them comes again, counted, in every fold
            whole = comparison.estimator(prepared.X, model, seed=seed).fit(prepared.X, prepared.y)
        comparison.usable_folds(prepared.y, folds)
        if output:
            for name in report.FILES:
                _keep_inputs(output / name, read.path)
            output.mkdir(parents=True, exist_ok=True)
        report.tell_table(out, read, target, prepared, whole.schema_)
        with Progress(console=err, transient=True, disable=not err.is_terminal) as bar:
            task = bar.add_task("")

            def tell(done, total, text):
                bar.update(task, completed=done, total=total, description=text)

            result = comparison.compare(prepared.X, prepared.y, model, inferences, folds, seed, tell)
            models = None
            if beside:
                models = comparison.compare_models(prepared.X, prepared.y, folds=folds, seed=seed, progress=tell)
            if output:
                bar.update(task, total=None, description="posterior of all rows")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    drawn = [inferences[name] for name in ("nuts", "laplace") if name in inferences]
                    whole.set_params(inference=(*drawn, "exact")[0]).fit(prepared.X, prepared.y)
        if not any(result.learned(name).any() for name in inferences):
            raise ValueError(f"nothing could be learned in any fold: {result.notes[0].text}")
        report.tell_result(out, result, folds)
        if models is not None:
            report.tell_models(out, models)
        if output:
            report.write(out, output, result, models, prepared, whole)


@app.command()
def fit(
    file: str = _FILE,
    target: str = _TARGET,
    model: str = _MODEL,
    inference: str = typer.Option("exact", help="ml, map, exact, nuts or laplace."),
    output: Path = typer.Option(Path("model.nc"), help="File to save the classifier to, for `bayesgen predict`."),
    missing: list[str] = _MISSING,
    categories: list[str] = _CATEGORIES,
    seed: int = typer.Option(0, help="Seed of NUTS."),
):
    """Learn a classifier from a table and save it; rows without a class are left out."""
    from bayesgen import comparison

    out, err = report.consoles()
    with _one_line(err):
        how = _inference(inference.strip().lower())
        read, prepared = _prepared(file, target, model, missing, categories)
        _keep_inputs(output, read.path)
        with _said(out):
            classifier = comparison.estimator(prepared.X, model, how, seed).fit(prepared.X, prepared.y)
            classifier.schema_ = replace(classifier.schema_, missing=tuple(_split(missing)))
            report.tell_table(out, read, target, prepared, classifier.schema_)
        output.parent.mkdir(parents=True, exist_ok=True)
        classifier.save(output)
        report.say(out, f"Written to {output}")


@app.command()
def predict(
    model: Path = typer.Argument(help="File of a saved estimator, by `bayesgen fit` or by its method save."),
    file: str = typer.Argument(help="A CSV or Parquet file with the columns of the fit; others are ignored."),
    output: Path = typer.Option(Path("predictions.csv"), help="File for the predictions, a row for each row."),
    missing: list[str] = _MISSING,
    unseen: str = typer.Option("missing", help="What a category is that was not there at fit: missing, or error."),
):
    """Predict the class of every row of a table, with the probability of each class."""
    from bayesgen.estimators import storage
    from bayesgen.tables.messages import named

    out, err = report.consoles()
    with _one_line(err):
        if unseen not in ("error", "missing"):
            raise ValueError(f"--unseen must be error or missing, got {unseen}")
        estimator = storage.load(model)
        if hasattr(estimator, "unseen"):
            estimator.set_params(unseen=unseen)
        read, X = _columns(estimator, file, _split(missing))
        _keep_inputs(output, read.path, model)
        with _said(out):
            warnings.filterwarnings("ignore", "X has feature names", UserWarning)  # fitted on an array: x0, x1, ...
            predictions = _predictions(estimator, X)
            report.tell_gaps(out, read, X.columns)
        output.parent.mkdir(parents=True, exist_ok=True)
        predictions.to_csv(output, index=False)
        report.say(out, f"{file}: {len(X)} rows; written to {output}: {named(predictions.columns)}")


@contextlib.contextmanager
def _one_line(err):
    """What is wrong with files and arguments as one line, and exit code 2."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        report.say(err, f"Error: {' '.join(str(error).split())}")
        raise typer.Exit(2) from None


@contextlib.contextmanager
def _said(out):
    """Warnings as lines, each once, below what is said meanwhile."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning | RuntimeWarning)):
        report.say(out, text, indent=2)


def _split(values) -> list[str]:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def _inference(name: str):
    from bayesgen.inference import INFERENCES

    if name not in INFERENCES:
        raise ValueError(f"no inference {name!r}; there are: {', '.join(sorted(INFERENCES))}")
    return INFERENCES[name]()


def _keep_inputs(output: Path, *inputs: Path) -> None:
    """Raise where writing would replace what is read, by whatever name, or cannot be."""
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            raise ValueError(f"--output {output}: it is the file that is read, {path}; it would be lost")
    if output.is_dir():
        raise ValueError(f"--output {output}: it is a folder, not a file")
    standing = next((folder for folder in output.parents if folder.exists()), Path())
    if not standing.is_dir():
        raise ValueError(f"--output {standing}: it is a file, not a folder")


def _prepared(file, target, model, missing, categories):
    """The file as it was read, and what a classifier takes of it."""
    from bayesgen.tables import cleaning, files
    from bayesgen.tables.messages import named

    declared = _split(categories)
    kinds: dict[str, files.Kind] = {**dict.fromkeys(declared, "category"), target: "label"}
    read = files.read(file, _split(missing), kinds)
    absent = [column for column in declared if column not in read.table.columns]
    if absent:
        raise ValueError(f"--categories: no column {absent[0]!r}; there are: {named(read.table.columns)}")
    return read, cleaning.prepare(read.table, target, model, read.gaps)


def _columns(estimator, file, missing):
    """The file as it was read, and the columns of the fit from it: those of text categories as text, as at fit."""
    from bayesgen.tables import files
    from bayesgen.tables.messages import named

    schema = getattr(estimator, "schema_", None)
    columns = list(schema.columns if schema else estimator.model_.columns)
    kinds: dict[str, files.Kind] = dict.fromkeys(columns, "number")
    for block in schema.blocks if schema else ():
        if block.categories is not None and all(isinstance(category, str) for category in block.categories):
            kinds |= dict.fromkeys(block.columns, "text")
    read = files.read(file, [*missing, *(schema.missing if schema else ())], kinds)
    absent = [column for column in columns if column not in read.table.columns]
    if absent:
        raise ValueError(f"{file}: lacks the columns {named(absent)} of the fit; it has {named(read.table.columns)}")
    return read, read.table[columns]


def _predictions(estimator, X):
    import numpy as np
    import pandas as pd

    if not hasattr(estimator, "predict_proba"):
        mean, sd = estimator.predict(X, return_std=True)
        return pd.DataFrame({"row": np.arange(len(X)), "prediction": mean, "sd": sd})
    probability, classes = estimator.predict_proba(X), estimator.classes_
    columns = {"row": np.arange(len(X)), "class": classes[probability.argmax(1)]}
    return pd.DataFrame(columns | {f"p_{c}": p for c, p in zip(classes.tolist(), probability.T, strict=True)})
