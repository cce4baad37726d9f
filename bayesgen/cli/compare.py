"""`bayesgen compare`: inferences and models side by side on held-out rows."""

import json as as_json
import warnings
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
from rich.progress import Progress
from sklearn.base import clone

from bayesgen import comparison
from bayesgen.cli import folders, inputs, shell
from bayesgen.cli.learn import check_options, fit_command, takes
from bayesgen.cli.report import page, run, terminal, words
from bayesgen.cli.shell import command_line
from bayesgen.core.errors import listed
from bayesgen.estimators.linear_classifiers import LogisticClassifier
from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
from bayesgen.tables.cleaning import split
from bayesgen.tables.labels import class_codes


@shell.grouped
def compare(
    context: typer.Context,
    file: shell.File,
    target: shell.Labels = None,
    *,
    roles: shell.Roles,
    csv: shell.Csv,
    model: Annotated[
        str,
        typer.Option(
            help="all: naive Bayes by every inference, and then the models beside each other; nb or gda: one model by "
            "every inference."
        ),
    ] = "all",
    inference: Annotated[
        str, typer.Option(help="Inferences to compare, with commas between; laplace too.")
    ] = "ml,map,exact,nuts",
    folds: Annotated[
        int, typer.Option(help="Folds of the stratified cross-validation; blocks of times with --order.")
    ] = 5,
    output: Annotated[
        Path | None, typer.Option(help="Folder for report.html, its pictures, predictions.csv and posterior.nc.")
    ] = None,
    group: shell.Group = None,
    order: shell.Order = None,
    importance: Annotated[
        bool, typer.Option(help="Ask what each column is worth to what predicts best: a prediction for each column.")
    ] = True,
    loss: shell.Loss = None,
    net_benefit: Annotated[
        str | None,
        typer.Option(
            help="Class of the cases: what acting on its probability is worth, a curve a model in the report."
        ),
    ] = None,
    target_shares: shell.Shares = None,
    seed: shell.Seed = 0,
    json: shell.Json = False,
) -> Any:
    """Compare inferences on a table (ML, MAP, the exact posterior, NUTS: 4 chains of 1000 draws), then models."""
    from bayesgen.comparison import candidates  # here, since it takes a tenth of `import bayesgen`

    with shell.consoles() as (out, err):
        if model not in (known := ("all", *candidates.MODELS)):
            raise ValueError(f"--model must be one of {', '.join(known)}; got {model!r}")
        if output:
            for name in page.FILES:
                inputs.keep_inputs(output / name, *folders.paths(file), loss)
        of = shell.target_of(target, target_shares)
        if order and target_shares:
            raise ValueError("--order takes one label a row, and --target-shares has shares of the classes")
        beside, model = model == "all", "nb" if model == "all" else model
        inferences = {name: inputs.inference(name) for name in split([inference.lower()])}
        if not inferences:
            raise ValueError("--inference must name at least one of ml, map, exact, nuts and laplace")
        if folds < (least := 1 if order else 2):
            raise ValueError(
                f"--folds must be a number of {'blocks' if order else 'folds'}, {least} or more; got {folds}"
            )
        check_options(model, vars(roles))
        said = vars(roles) | {"group": [group] if group else [], "order": [order] if order else []}
        reading = csv.first()
        read, prepared, _ = inputs.prepared(file, of, model, reading, said, seed)
        families, classes = prepared.features, class_codes(prepared.y)[0].tolist()
        costs = inputs.losses(loss, read.reading, classes)
        if net_benefit is not None and net_benefit not in map(str, classes):
            raise ValueError(f"--net-benefit must be a class, one of {listed(classes)}; got {net_benefit!r}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters of them comes again, counted, in every fold
            whole = candidates.estimator(prepared.X, model, seed=seed, features=families).fit(prepared.X, prepared.y)
        schema = whole.schema_
        together = prepared.copies if order is None else None
        groups = together if group is None else prepared.names[group]
        times = None if order is None else prepared.names[order]
        splits = comparison.splits(prepared.y, folds, seed, groups, times)
        places = splits if order is None else folds  # the same blocks again
        if output:
            output.mkdir(parents=True, exist_ok=True)
        show = (lambda *_: None) if json else (lambda tell, *told: tell(out, *told))
        show(terminal.tell_table, read, of, prepared, schema)
        rows = prepared.X, prepared.y
        with Progress(console=err, transient=True, disable=not err.is_terminal) as bar:
            tell = _Teller(err, bar)
            how = places, seed, tell, families, groups, times, True
            result = comparison.compare(*rows, model, inferences, *how)
            if not any(result.learned(name).any() for name in inferences):
                why = words.in_options(result.notes[0].message)
                raise ValueError(f"nothing could be learned in any fold: {why}")
            show(terminal.tell_result, result, folds, words.MODELS[model])
            models = None
            if beside:
                chosen, left_out = candidates.candidates(prepared.X, None, seed, families)
                averaged = {name: chosen.pop(name) for name in ("averaged",) if name in chosen}
                models = comparison.compare_models(*rows, chosen, *how)
                models.remarks.update({name: f"left out: {why}" for name, why in left_out.items()})
                if averaged:
                    if len(models.probability) > 1:
                        show(terminal.tell, "model", words.model_cells(models), [_NEXT])
                    models = models.beside(comparison.compare_models(*rows, averaged, *how))
                show(terminal.tell, "model", words.model_cells(models), words.of_models(models))
            by_class = run.ByClass.of(result, models, costs, loss is not None)
            scores, sentence = by_class.score_cells(), by_class.sentence()
            show(terminal.tell, "class", scores, [sentence], f"By class, {by_class.name}:")
            show(terminal.tell, "class", by_class.action_cells())
            source = result if models is None else models
            benefits = run.net_benefits(source, net_benefit)
            if benefits:
                show(terminal.tell, "from", words.benefit_cells(benefits), (), f"{words.of_benefits(benefits)}:")
            base = words.base_rate(result)["log_loss"]
            worth = run.Worth.of(source, by_class.name, base, prepared.X.shape[1], importance, tell)
            show(terminal.fold, words.of_columns(worth))
            posterior = None
            if output:
                tell(0, 0, "posterior of all rows")
                posterior = _of_all_rows(whole, source, by_class.name, prepared, inferences)
        about = read, of, prepared, schema, model, result, models, worth, by_class
        save = None
        if models is not None and takes(models.best):
            save = fit_command(context, file, of, models.best, read.reading)
        account = run.Account(*about, seed, command_line(context), save, order, benefits)
        if order is not None:
            show(terminal.fold, [words.of_times(account)])
            show(terminal.tell, "until", words.time_cells(account))
        if json:
            typer.echo(as_json.dumps(account.to_dict(), indent=2))
        if output:
            page.write(err if json else out, output, account, posterior)
        if save is not None and models is not None:
            show(terminal.say, f"To save {models.best}, the best of these models, learned from all rows:")
            show(terminal.say, save, 2)
    return posterior  # for `demo`


def _of_all_rows(whole, source, name: str, prepared, inferences):
    """Return the model ``name`` that predicts best, learned from all rows with draws where it has an inference.

    An inference of one model is that model, ``whole``; it draws by NUTS or Laplace where these were compared.
    """
    rows: Any = prepared.X
    unfitted: Any = whole
    if name not in inferences:
        one = source.estimators[name][0]
        rows, unfitted = one.rows, clone(one.classifier)
    drawn = [inferences[how] for how in ("nuts", "laplace") if how in inferences]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the comparison told them, fold by fold
        if isinstance(unfitted, LogisticClassifier):
            unfitted.set_params(inference="laplace")
        elif isinstance(unfitted, NaiveBayesClassifier) or unfitted is whole:
            unfitted.set_params(inference=(*drawn, "exact")[0])
        return unfitted.fit(rows, prepared.y) if hasattr(unfitted, "to_arviz") else unfitted


_NEXT = "Next the averaged classifier, whose fit takes some hundred times as long as that of one model."
_QUIET = 20.0  # seconds after which a line is printed where no bar can be drawn


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
