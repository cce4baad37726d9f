"""The command line: compare inferences on a table, fit a classifier and save it, predict with a saved one."""

import warnings
from collections import defaultdict
from pathlib import Path
from typing import NoReturn

import typer
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

app = typer.Typer(add_completion=False, no_args_is_help=True)

_FILE = typer.Argument(
    help="A CSV or Parquet file, or the name of a built-in data set: penguins, anes96. A file of that name wins."
)
_TARGET = typer.Option(help="Column of the classes.")
_MODEL = typer.Option("nb", help="nb: naive Bayes on all columns; gda: Gaussian discriminant on the numbers.")


@app.callback()
def _main():
    """Bayesian generative classifiers."""


@app.command()
def compare(
    file: str = _FILE,
    target: str = _TARGET,
    model: str = _MODEL,
    inference: str = typer.Option("ml,map,exact,nuts", help="What to compare, with commas between."),
    folds: int = typer.Option(5, help="Folds of the stratified cross-validation."),
    output: Path | None = typer.Option(None, help="Folder for pictures, predictions.csv and posterior.nc."),
    seed: int = typer.Option(0, help="Seed of the folds and of NUTS."),
):
    """Compare ways of inference on a table: ML, MAP, the exact posterior, and NUTS (4 chains of 1000 draws)."""
    from bayesgen import comparison
    from bayesgen.tables.cleaning import prepare

    out, err = Console(), Console(stderr=True)
    try:
        names = [name.strip().lower() for name in inference.split(",")]
        inferences = {name: _inference(name) for name in names}
        table, source = _read(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters of them comes again, counted, in every fold
            prepared = prepare(table, target, model)
            whole = comparison.estimator(prepared.X, model, seed=seed).fit(prepared.X, prepared.y)
        comparison.usable_folds(prepared.y, folds)
        if output:
            if output.exists() and not output.is_dir():
                raise ValueError(f"--output {output}: it is a file, not a folder")
            output.mkdir(parents=True, exist_ok=True)
        _tell_table(out, source, table, target, prepared, whole.schema_)
        with Progress(console=err, transient=True, disable=not err.is_terminal) as bar:
            task = bar.add_task("")
            result = comparison.compare(
                prepared.X,
                prepared.y,
                model,
                inferences,
                folds,
                seed,
                lambda done, total, text: bar.update(task, completed=done, total=total, description=text),
            )
            if output:
                bar.update(task, total=None, description="posterior of all rows")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    whole.set_params(inference=inferences.get("nuts", "exact")).fit(prepared.X, prepared.y)
        if not any(result.learned(name).any() for name in inferences):
            raise ValueError(f"nothing could be learned in any fold: {result.notes[0].text}")
        _tell_result(out, result, folds)
        if output:
            _write(out, output, result, prepared, whole)
    except (ValueError, OSError) as error:
        _fail(err, str(error))


@app.command()
def fit(
    file: str = _FILE,
    target: str = _TARGET,
    model: str = _MODEL,
    inference: str = typer.Option("exact", help="ml, map, exact or nuts."),
    output: Path = typer.Option(Path("model.nc"), help="File to save the classifier to, for `bayesgen predict`."),
    seed: int = typer.Option(0, help="Seed of NUTS."),
):
    """Learn a classifier from a table and save it; rows without a class are left out."""
    from bayesgen import comparison
    from bayesgen.tables.cleaning import prepare

    out, err = Console(), Console(stderr=True)
    try:
        how = _inference(inference.strip().lower())
        table, source = _read(file)
        prepared = prepare(table, target, model)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            classifier = comparison.estimator(prepared.X, model, how, seed).fit(prepared.X, prepared.y)
        _tell_table(out, source, table, target, prepared, classifier.schema_)
        for text in dict.fromkeys(str(warning.message) for warning in said):
            _say(out, text, indent=2)
        classifier.save(output)
        _say(out, f"Written to {output}")
    except (ValueError, TypeError, OSError) as error:
        _fail(err, str(error))


@app.command()
def predict(
    model: Path = typer.Argument(help="File of a saved estimator, by `bayesgen fit` or by its method save."),
    file: str = typer.Argument(help="A CSV or Parquet file with the columns of the fit; others are ignored."),
    output: Path = typer.Option(Path("predictions.csv"), help="File for the predictions, a row for each row."),
    unseen: str = typer.Option("error", help="What a category is that was not there at fit: error, or missing."),
):
    """Predict the class of every row of a table, with the probability of each class."""
    from bayesgen.estimators import storage

    out, err = Console(), Console(stderr=True)
    try:
        if unseen not in ("error", "missing"):
            raise ValueError(f"--unseen must be error or missing, got {unseen}")
        estimator = storage.load(model)
        if hasattr(estimator, "unseen"):
            estimator.set_params(unseen=unseen)
        X = _columns(estimator, file)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X has feature names", UserWarning)  # fitted on an array: x0, x1, ...
            predictions = _predictions(estimator, X)
        predictions.to_csv(output, index=False)
        _say(out, f"{file}: {len(X)} rows; written to {output}: {', '.join(predictions.columns)}")
    except (ValueError, TypeError, OSError) as error:
        _fail(err, str(error))


def _columns(estimator, file):
    """The columns of the fit from a file, those of labels as the text that was learned from."""
    import pandas as pd

    schema = getattr(estimator, "schema_", None)
    columns = list(schema.columns if schema else estimator.model_.columns)
    labels = [c for b in (schema.blocks if schema else ()) for c in b.columns if _texts(b.categories)]
    table, _ = _read(file, dict.fromkeys(labels, str))
    absent = [c for c in columns if c not in table.columns]
    if absent:
        raise ValueError(f"{file}: lacks the columns {', '.join(absent)} of the fit; it has {', '.join(table.columns)}")
    for column in labels:
        values = table[column].astype(object)
        table[column] = values.where(values.isna(), values.map(str))
    return pd.DataFrame(table[columns])


def _texts(categories) -> bool:
    return categories is not None and all(isinstance(c, str) for c in categories)


def _predictions(estimator, X):
    import numpy as np
    import pandas as pd

    if not hasattr(estimator, "predict_proba"):
        mean, sd = estimator.predict(X, return_std=True)
        return pd.DataFrame({"row": np.arange(len(X)), "prediction": mean, "sd": sd})
    probability, classes = estimator.predict_proba(X), estimator.classes_
    columns = {"row": np.arange(len(X)), "class": classes[probability.argmax(1)]}
    return pd.DataFrame(columns | {f"p_{c}": p for c, p in zip(classes.tolist(), probability.T, strict=True)})


def _fail(console: Console, message: str) -> NoReturn:
    console.print(Text(f"Error: {' '.join(message.split())}"), soft_wrap=True)
    raise typer.Exit(2)


def _inference(name: str):
    from bayesgen.inference import INFERENCES

    if name not in INFERENCES:
        raise ValueError(f"no inference {name!r}; there are: {', '.join(sorted(INFERENCES))}")
    return INFERENCES[name]()


def _read(name: str, types=None):
    """Return the table, and where it came from. A file wins over a built-in data set of its name.

    ``types`` maps columns that are text in a CSV file, numbers as they may look, to str.
    """
    import pandas as pd

    from bayesgen import data

    path = Path(name)
    if not path.is_file() and name in data.names():
        return data.load(name), f"{name} (built in)"
    if not path.exists():
        raise ValueError(f"{name}: no such file, nor a built-in data set; built in are: {', '.join(data.names())}")
    parquet = path.suffix.lower() in (".parquet", ".pq")
    try:
        return pd.read_parquet(path) if parquet else pd.read_csv(path, low_memory=False, dtype=types), name
    except pd.errors.EmptyDataError:
        raise ValueError(f"{name}: the file is empty") from None
    except (ValueError, OSError) as error:
        raise ValueError(f"{name}: not readable as {'Parquet' if parquet else 'CSV'}: {error}") from None


def _tell_table(out: Console, source, table, target, prepared, schema):
    import numpy as np

    classes, counts = np.unique(prepared.y, return_counts=True)
    sizes = ", ".join(f"{c} {n}" for c, n in zip(classes.tolist(), counts, strict=True))
    _say(out, f"{source}: {len(table)} rows, {table.shape[1]} columns; {len(prepared.y)} rows used")
    _say(out, f"{target}, {len(classes)} classes: {sizes}", indent=2)
    families = defaultdict(list)
    for block in schema.blocks:
        levels = [str(c) for c in block.categories or ()]
        more = f", {len(levels) - 6} more" if len(levels) > 6 else ""
        family = "categorical" if levels else block.leaf
        families[family] += [f"{c} ({', '.join(levels[:6])}{more})" if levels else c for c in block.columns]
    for family, columns in families.items():
        _say(out, f"{family}: {', '.join(columns)}", indent=2)
    for note in prepared.notes:
        _say(out, note, indent=2)


def _tell_result(out: Console, result, folds):
    import numpy as np

    if result.folds < folds:
        _say(out, f"{result.folds} folds, not {folds}: the smallest class has no more rows", indent=2)
    table = Table("inference", box=box.SIMPLE_HEAD, pad_edge=False, caption_justify="left")
    for heading in ("folds", "accuracy", "log\nloss", "Brier\nscore", "calib.\nerror", "seconds", "largest\n|p-exact|"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in result.probability:
        s = result.scores(name)
        scores = [s.accuracy, s.log_loss, s.brier_score, s.calibration_error]
        apart = result.difference(name) if name != "exact" and "exact" in result.probability else np.array([])
        table.add_row(
            name,
            f"{s.folds} of {result.folds}",
            *(f"{v:.4f}" if s.folds else "-" for v in scores),
            f"{result.seconds[name]:.2f}",
            f"{apart.max():.4f}" if apart.size else "-",
        )
    table.caption = Text("\n".join(_notes(result)))
    out.print(table)
    if {"nuts", "exact"} <= result.probability.keys() and (apart := result.difference("nuts", "exact")).size:
        mean, most = f"{apart.mean():.5f}", f"{apart.max():.5f}"
        _say(out, f"NUTS and exact class probabilities differ by {mean} on average and {most} at most.")
        _say(
            out,
            "Far from every class a few draws carry the average: a heavy Monte Carlo tail, which the largest shows.",
        )


def _notes(result):
    """Yield failures, then warnings, each text once with the inferences and folds it came from."""
    places = defaultdict(lambda: defaultdict(list))
    for note in sorted(result.notes, key=lambda note: not note.failed):
        places[note.failed, note.text][note.inference].append(note.fold)
    for (failed, text), where in places.items():
        folds = sorted({fold for found in where.values() for fold in found})
        which = f"fold{'s' * (len(folds) > 1)} {', '.join(map(str, folds))}"
        yield f"{', '.join(where)} {'left out of' if failed else 'warned in'} {which}: {text}"
    some = [name for name in result.probability if 0 < result.scores(name).folds < result.folds]
    if some:
        yield f"The scores of {', '.join(some)} are means over the rows of the other folds only."


def _write(out: Console, folder: Path, result, prepared, whole):
    import numpy as np
    import pandas as pd

    columns = {"row": prepared.rows, "fold": result.fold, "truth": prepared.y}
    for name, probability in result.probability.items():
        learned = result.learned(name)
        columns[f"{name}_class"] = np.where(learned, result.classes[probability.argmax(1)].astype(object), None)
        columns |= {f"{name}_p_{c}": p for c, p in zip(result.classes.tolist(), probability.T, strict=True)}
    pd.DataFrame(columns).to_csv(folder / "predictions.csv", index=False)
    _draw(folder, result)
    written = ["calibration.png", "probabilities.png", "predictions.csv"]
    (folder / "posterior.nc").unlink(missing_ok=True)
    try:
        whole.to_arviz().to_netcdf(folder / "posterior.nc", engine="h5netcdf")
        written.append("posterior.nc")
    except ValueError as error:
        _say(out, f"posterior.nc is left out: {error}")
    _say(out, f"Written to {folder}: {', '.join(written)}")


def _draw(folder: Path, result):
    """Draw without pyplot: no display, and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from bayesgen import plot

    names = [name for name in result.probability if result.learned(name).any()]
    reference = "exact" if "exact" in names and len(names) > 1 else None
    others = [name for name in names if name != reference]
    for file, panels in (("calibration", names), ("probabilities", others)):
        figure = Figure(figsize=(3.4 * len(panels) + 0.4, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for name, ax in zip(panels, axes, strict=True):
            rows = result.learned(name)
            if file == "calibration":
                plot.reliability(result.y_true[rows], result.probability[name][rows], ax=ax)
            else:
                rows &= result.learned(reference) if reference else rows
                against = result.probability[reference][rows] if reference else None
                plot.probabilities(result.y_true[rows], result.probability[name][rows], against, ax=ax)
                ax.set(xlabel=f"the same under {reference}" if reference else ax.get_xlabel())
            ax.label_outer()
            ax.set_title(f"{name}, {len(set(result.fold[rows]))} of {result.folds} folds", fontsize=10)
        figure.savefig(folder / f"{file}.png", dpi=150)


def _say(out: Console, text: str, indent: int = 0):
    out.print(Text(" " * indent + text), soft_wrap=True)
