"""`bayesgen compare`: inferences and models side by side on held-out rows."""

import json as as_json
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, NamedTuple

import pandas as pd
import typer
from rich.progress import Progress
from sklearn.base import clone

from bayesgen import comparison
from bayesgen.cli import folders, inputs, shell
from bayesgen.cli.learn import check_options, fit_command, takes
from bayesgen.cli.report import page, run, terminal, words
from bayesgen.cli.shell import command_line
from bayesgen.comparison import candidates
from bayesgen.core.errors import listed
from bayesgen.estimators.linear_classifiers import LogisticClassifier
from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
from bayesgen.sheets.cleaning import Prepared, split
from bayesgen.sheets.files import TableFile
from bayesgen.tables.labels import class_codes

_QUIET = 20.0  # seconds after which a line is printed where no bar can be drawn


@dataclass(frozen=True)
class Options:
    """Options that tell what is compared, how it is judged, and what is written."""

    model: Annotated[
        str, typer.Option(help="all: naive Bayes by every inference, then the models; nb or gda: one by every one.")
    ] = "all"
    inference: Annotated[str, typer.Option(help="Inferences with commas between; laplace too.")] = "ml,map,exact,nuts"
    folds: Annotated[int, typer.Option(help="Folds of stratified cross-validation; blocks of times with --order.")] = 5
    output: Annotated[
        Path | None, typer.Option(help="Folder for report.html, pictures, predictions.csv; posterior.nc by h5netcdf.")
    ] = None
    group: shell.Group = None
    order: shell.Order = None
    importance: Annotated[bool, typer.Option(help="Ask what each column is worth to what predicts best.")] = True
    loss: shell.Loss = None
    net_benefit: Annotated[
        str | None, typer.Option(help="Class of the cases: what acting on its probability is worth, in the report.")
    ] = None
    target_shares: shell.Shares = None
    seed: shell.Seed = 0
    json: shell.Json = False


class _Rows(NamedTuple):
    """The table as it was read, and how its rows are split."""

    read: TableFile
    prepared: Prepared
    costs: pd.DataFrame  # of each action under each class
    whole: Any  # the model, learned from all rows
    folds: Any  # the rows to fit and those held out; with times the number of blocks, which are the same again
    groups: Any  # of each row, or None
    times: Any  # of each row, or None


@shell.grouped
def compare(
    context: typer.Context,
    file: shell.File,
    target: shell.Labels = None,
    *,
    options: Options,
    roles: shell.Roles,
    csv: shell.Csv,
) -> Any:
    """Compare inferences on a table (ML, MAP, the exact posterior, NUTS: 4 chains of 1000 draws), then models."""
    with shell.consoles() as (out, err):
        show = (lambda *_: None) if options.json else (lambda tell, *told: tell(out, *told))
        of, model, inferences = _asked(options, target, roles, file)
        rows = _rows(of, model, options, roles, csv, file)
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
        show(terminal.tell_table, rows.read, of, rows.prepared, rows.whole.schema_)
        bar = Progress(console=err, transient=True, disable=not err.is_terminal)
        with bar, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubts of columns: the table's account told them, and each fold does
            tell = _Teller(err, bar)
            table, how = (rows.prepared.X, rows.prepared.y), _how(rows, options, tell)
            result = comparison.compare(*table, model, inferences, *how)
            if not any(result.learned(name).any() for name in inferences):
                raise ValueError(f"nothing could be learned in any fold: {words.in_options(result.notes[0].message)}")
            show(terminal.tell_result, result, options.folds, words.MODELS[model])
            models = _models(rows, options, tell, show) if options.model == "all" else None
            account = _judged(context, file, of, model, rows, options, result, models, tell, show)
            posterior = None
            if options.output:
                tell(0, 0, "posterior of all rows")
                posterior = _of_all_rows(rows, account, inferences)
        if options.order is not None:
            show(terminal.fold, [words.of_times(account)])
            show(terminal.tell, "until", words.time_cells(account))
        if options.json:
            typer.echo(as_json.dumps(account.to_dict(), indent=2))
        if options.output:
            page.write(err if options.json else out, options.output, account, posterior)
        if account.save is not None:
            show(terminal.say, f"To save {account.by_class.name}, the best of these models, learned from all rows:")
            show(terminal.say, account.save, 2)
    return posterior  # for `demo`


def _asked(options: Options, target: str | None, roles: shell.Roles, file: str) -> tuple[Any, str, dict[str, Any]]:
    """Return column or columns of the classes, model and inferences; before any reading raise where options clash."""
    if options.model not in (known := ("all", *candidates.MODELS)):
        raise ValueError(f"--model must be one of {', '.join(known)}; got {options.model!r}")
    if options.output:
        for name in page.FILES:
            inputs.keep_inputs(options.output / name, *folders.paths(file), options.loss)
    of = shell.target_of(target, options.target_shares)
    if options.order and options.target_shares:
        raise ValueError("--order takes one label a row, and --target-shares has shares of the classes")
    inferences = {name: inputs.inference(name) for name in split([options.inference.lower()])}
    if not inferences:
        raise ValueError("--inference must name at least one of ml, map, exact, nuts and laplace")
    what, least = ("blocks", 1) if options.order else ("folds", 2)
    if options.folds < least:
        raise ValueError(f"--folds must be a number of {what}, {least} or more; got {options.folds}")
    model = "nb" if options.model == "all" else options.model
    check_options(model, vars(roles))
    return of, model, inferences


def _rows(target, model: str, options: Options, roles: shell.Roles, csv: shell.Csv, file: str) -> _Rows:
    """Read the table, learn the model from all rows, which finds what it cannot take, and split the rows."""
    said = vars(roles) | {name: [column] if (column := getattr(options, name)) else [] for name in ("group", "order")}
    read, prepared, _ = inputs.prepared(file, target, model, csv.first(), said, options.seed)
    classes = class_codes(prepared.y)[0].tolist()
    costs = inputs.losses(options.loss, read.reading, classes)
    if options.net_benefit is not None and options.net_benefit not in map(str, classes):
        raise ValueError(f"--net-benefit must be a class, one of {listed(classes)}; got {options.net_benefit!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what matters of them comes again, counted, in every fold
        whole = candidates.estimator(prepared.X, model, seed=options.seed, features=prepared.features)
        whole = whole.fit(prepared.X, prepared.y)
    times = None if options.order is None else prepared.names[options.order]
    together = prepared.copies if options.order is None else None
    groups = together if options.group is None else prepared.names[options.group]
    splits = comparison.splits(prepared.y, options.folds, options.seed, groups, times)
    return _Rows(read, prepared, costs, whole, splits if times is None else options.folds, groups, times)


def _models(rows: _Rows, options: Options, tell, show) -> comparison.ModelComparison:
    """Cross-validate the models beside each other."""
    models = comparison.compare_models(rows.prepared.X, rows.prepared.y, None, *_how(rows, options, tell))
    show(terminal.tell, "model", words.model_cells(models), words.of_models(models))
    return models


def _how(rows: _Rows, options: Options, tell) -> tuple[Any, ...]:
    """Return the arguments of both comparisons, from the folds on."""
    return rows.folds, options.seed, tell, rows.prepared.features, rows.groups, rows.times, True


def _judged(context, file, target, model, rows: _Rows, options: Options, result, models, tell, show) -> run.Account:
    """Return the account of what predicts best: by class, at the user's costs, and what each column is worth to it."""
    by_class = run.ByClass.of(result, models, rows.costs, options.loss is not None)
    scores, sentence = by_class.score_cells(), by_class.sentence()
    show(terminal.tell, "class", scores, [sentence], f"By class, {by_class.name}:")
    show(terminal.tell, "class", by_class.action_cells())
    source = result if models is None else models
    if benefits := run.net_benefits(source, options.net_benefit):
        show(terminal.tell, "from", words.benefit_cells(benefits), (), f"{words.of_benefits(benefits)}:")
    base = words.base_rate(result)["log_loss"]
    worth = run.Worth.of(source, by_class.name, base, rows.prepared.X.shape[1], options.importance, tell)
    show(terminal.fold, words.of_columns(worth))
    save = None
    if models is not None and takes(models.best):
        save = fit_command(context, file, target, models.best, rows.read.reading)
    learned = rows.read, target, rows.prepared, rows.whole.schema_, model, result, models, worth, by_class
    return run.Account(*learned, options.seed, command_line(context), save, options.order, benefits)


def _of_all_rows(rows: _Rows, account: run.Account, inferences):
    """Return the best model, or the one of the best inference, learned from all rows by NUTS or Laplace if compared."""
    X: Any = rows.prepared.X
    unfitted: Any = rows.whole
    if (name := account.by_class.name) not in inferences:
        one = account.source.estimators[name][0]
        X, unfitted = one.rows, clone(one.classifier)
    drawn = [inferences[how] for how in ("nuts", "laplace") if how in inferences]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the comparison told them, fold by fold
        if isinstance(unfitted, LogisticClassifier):
            unfitted.set_params(inference="laplace")
        elif isinstance(unfitted, NaiveBayesClassifier) or unfitted is rows.whole:
            unfitted.set_params(inference=(*drawn, "exact")[0])
        return unfitted.fit(X, rows.prepared.y) if hasattr(unfitted, "to_arviz") else unfitted


class _Teller:
    """Tell how far the work is: by a bar on a terminal, elsewhere by a line now and then."""

    def __init__(self, err, bar: Progress):
        self.err, self.bar, self.task, self.told = err, bar, bar.add_task(""), monotonic()

    def __call__(self, done: int, total: int, text: str) -> None:
        self.bar.update(self.task, completed=done, total=total or None, description=text)
        if not self.err.is_terminal and done < total and monotonic() - self.told > _QUIET:
            self.told = monotonic()
            terminal.say(self.err, f"{text} ({done} of {total} done)")


def demo(
    context: typer.Context,
    output: Annotated[
        Path, typer.Option(help="Folder for report.html, all that stands in it, and calculator.html.")
    ] = Path("bayesgen-demo"),
):
    """Show what `bayesgen compare` does, with 344 penguins of three species: measures, island, sex, and gaps."""
    best = compare(context, "penguins", "species", folds=3, output=output)  # 5 folds would not end in half a minute
    with shell.consoles() as (out, err):
        best.to_page(output / "calculator.html", words={"title": "Which penguin is it?"})
    terminal.say(out, f"Written to {output}: calculator.html, in which anyone can ask the best of these models")
    terminal.say(err, f"Open {output / 'report.html'} in a browser; then do the same with your own table.")
