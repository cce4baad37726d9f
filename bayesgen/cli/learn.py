"""`bayesgen fit`, `update` and `merge`: learn from a table, from more rows, and from models that learned apart."""

import functools
import operator
import warnings
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from bayesgen.cli import folders, inputs, shell
from bayesgen.cli.look import cures
from bayesgen.cli.report import terminal
from bayesgen.cli.shell import said
from bayesgen.comparison import candidates
from bayesgen.core.errors import counted
from bayesgen.estimators.additive import refuse_equal
from bayesgen.estimators.averaged import AveragedClassifier
from bayesgen.estimators.linear_classifiers import LogisticClassifier
from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
from bayesgen.files import storage
from bayesgen.sheets.cleaning import split
from bayesgen.tables.reading import Reading


class Choice(NamedTuple):
    """A model that `bayesgen fit` learns."""

    inference: str | None  # by default; None where the model has none to choose
    takes: tuple[str, ...]  # options that this model takes and others do not


def _unfitted(model: str, X, inference, seed, features) -> Any:
    if model == "averaged":
        return AveragedClassifier(features=features or "auto", random_state=seed)
    if model == "logistic":
        return LogisticClassifier(inference=inference, missing="mean", unseen="missing", random_state=seed)
    return candidates.estimator(X, model, inference, seed, features)


def _learn(model: str, prepared, inference, seed, group: str | None, large: folders.Sample | None):
    """Return a classifier that learned from all rows of a table; ``group`` is the column of what they belong to.

    Of large files the averaged classifier learns from the sample, under the frequencies of the classes in all files;
    others learn from all rows, in batches, with the columns of the sample.
    """
    X = prepared.X
    if large is None or model == "averaged":
        classifier = _unfitted(model, X, inference, seed, prepared.features)
        if large is not None:
            classifier.set_params(priors=large.priors(prepared.y, prepared.rows))
        return classifier.fit(X, prepared.y, **({"groups": prepared.names[group]} if group else {}))
    if model == "nb":
        kinds = {column: "categorical" for column in X if hasattr(X[column], "cat")}
        kinds |= {column: "bernoulli" for column in X if str(X[column].dtype) in ("bool", "boolean")}
        unfitted = NaiveBayesClassifier(kinds | prepared.features or "auto", inference=inference, random_state=seed)
    else:
        unfitted = _unfitted(model, X, inference, seed, {})
    rows = folders.Cleaned(large.file, large.target, X)
    return unfitted.fit_batches(rows, large.target, classes=list(large.classes))


MODELS = {
    "averaged": Choice(None, ("categorical", "count", "bernoulli", "log", "group")),
    "nb": Choice("exact", ("inference", "categorical", "count", "bernoulli", "log")),
    "shared": Choice("exact", ("inference",)),
    "full": Choice("exact", ("inference",)),
    "logistic": Choice("map", ("inference", "categorical", "bernoulli")),
}
_ALSO = {"naive Bayes": "nb", "gda": "full"}  # other names of models
_READING = {field.name for group in (shell.Roles, shell.Csv) for field in fields(group)}  # options that read a table
_FEW_TAKE = ("inference", "categorical", "count", "bernoulli", "log", "group")  # options that not every model takes


def takes(model: str) -> bool:
    """Return True if `bayesgen fit` learns a model of this name."""
    return model in MODELS or model in _ALSO


def fit_command(context: typer.Context, file: str, target: str | tuple[str, ...], model: str, reading: Reading) -> str:
    """Return the `bayesgen fit` that learns a model of `bayesgen compare` from the same columns, read in the same way.

    Signs that the ``reading`` found are filled in. Where the model takes no groups or times their columns name rows;
    categories and bools that it does not take are left out, and counts are plain numbers to it, in both.
    """
    taken = MODELS[_ALSO.get(model, model)].takes
    renamed = {"order": "id"} | ({} if "group" in taken else {"group": "id"})
    renamed |= {role: "drop" for role in ("categorical", "bernoulli") if role not in taken}
    without = {role for role in _FEW_TAKE if role not in taken}
    of = ["--target", target] if isinstance(target, str) else ["--target-shares", ",".join(target)]
    begin = ["bayesgen", "fit", file, *of, "--model", model]
    for name in ("sep",) if reading.plain else ("sep", "decimal", "thousands"):  # what is said holds for all columns
        if context.params.get(name) is None and (value := getattr(reading, name)) != getattr(Reading(), name):
            begin += [f"--{name}", "tab" if value == "\t" else value]
    return shell.command_line(context, begin, {"group", "seed", *_READING} - without, renamed)


def check_options(model: str, given: Mapping[str, Any]) -> None:
    """Raise ValueError unless there is a model of this name, and it takes the options that were given a value."""
    choice = MODELS.get(_ALSO.get(model, model))
    if choice is None:
        raise ValueError(f"--model must be one of {', '.join((*MODELS, *_ALSO))}; got {model!r}")
    for option in _FEW_TAKE:
        if given.get(option) and option not in choice.takes:
            others = ", ".join(name for name, choice in MODELS.items() if option in choice.takes)
            raise ValueError(f"--{option} is not for --model {model}; these take it: {others}")


@shell.grouped
def fit(
    context: typer.Context,
    file: shell.File,
    target: shell.Labels = None,
    *,
    roles: shell.Roles,
    csv: shell.Csv,
    model: Annotated[
        str,
        typer.Option(
            help="averaged: the average over many models, which has nothing to tune; nb: naive Bayes; full, shared: "
            "Gaussian discriminants, on the numbers, with a covariance for each class or one for all; logistic: "
            "logistic regression."
        ),
    ] = "averaged",
    inference: Annotated[
        str | None, typer.Option(help="ml, map, exact, nuts or laplace; default: exact, of logistic map.")
    ] = None,
    output: Annotated[Path, typer.Option(help="File for the classifier.")] = Path("model.safetensors"),
    group: shell.Group = None,
    target_shares: shell.Shares = None,
    seed: shell.Seed = 0,
):
    """Learn a classifier from a table and save it; rows without a class are left out."""
    with shell.consoles() as (out, _):
        of = shell.target_of(target, target_shares)
        said_roles = vars(roles) | {"group": [group] if group else []}
        check_options(model, said_roles | {"inference": inference})
        model = _ALSO.get(model, model)
        usual = MODELS[model].inference
        inputs.keep_inputs(output, *folders.paths(file))
        batched = model != "averaged"
        read, prepared, sample = inputs.prepared(file, of, model, csv.first(), said_roles, seed, batched)
        if model in ("full", "shared") and not inference and prepared.X.isna().to_numpy().any():
            usual, prepared = "map", replace(prepared, notes=(*prepared.notes, candidates.GAPS))
        how = None if usual is None else inputs.inference((inference or usual).strip().lower())
        with said(out):
            told = "as if copied from y|rows repeat another|holds numbers as text|differ only by"
            told += "|seems to name people|holds no number twice"
            warnings.filterwarnings("ignore", f".*({told})")  # the account of the table tells it
            classifier = _learn(model, prepared, how, seed, group, sample)
            classifier.schema_ = classifier.schema_.of_target(of)
            terminal.tell_table(out, read, of, prepared, classifier.schema_)
            if model == "averaged":
                scores = classifier.scores_
                losses = f"{-scores['nested']:.4f}, give or take {scores['nested_error']:.4f}"
                losses += f"; by the frequencies of the classes alone {-scores['base_rate']:.4f}"
                terminal.say(out, f"log loss of rows that were left out while it learned: {losses}", indent=2)
        output.parent.mkdir(parents=True, exist_ok=True)
        classifier.save(output)
        terminal.say(out, f"Written to {output}")
        without = {*split(roles.drop, read.table.columns), *prepared.names}
        if target and (read.doubts or any(column not in without for column, _ in cures(read, target))):
            look = shell.command_line(context, ["bayesgen", "look", file, "--target", target], _READING)
            terminal.say(out, f"Not all of the file was read; this says what reads more of it: {look}")


@shell.grouped
def update(
    model: Annotated[Path, typer.Argument(help="File of a classifier, saved by `bayesgen fit`.")],
    file: shell.Rows,
    target: shell.Target,
    csv: shell.Csv,
    output: Annotated[Path | None, typer.Option(help="File to save to; default: MODEL itself, replaced.")] = None,
):
    """Learn from more rows: the classifier becomes what it would be from all rows together."""
    with shell.consoles() as (out, _):
        inputs.keep_inputs(output or model, file)
        classifier = storage.load(model)
        if not hasattr(classifier, "partial_fit"):
            raise ValueError(f"{model}: {type(classifier).__name__} does not learn from more rows; fit all of them")
        read, X = inputs.columns_of_fit(classifier, file, csv.later(classifier), [target])
        rows, y = inputs.classes(classifier, read.table[target])
        with said(out):
            classifier.partial_fit(X[rows], y)
            terminal.tell_reading(out, read, X.columns)
        destination = output or model
        destination.parent.mkdir(parents=True, exist_ok=True)
        classifier.save(destination)
        total = f"{classifier.total_weight_:g}"
        left_out = f"; {counted((~rows).sum(), 'row')} left out: no {target}" if not rows.all() else ""
        terminal.say(out, f"{counted(rows.sum(), 'row')} more, {total} in all{left_out}; written to {destination}")


def merge(
    files: Annotated[
        list[Path], typer.Argument(metavar="MODELS...", help="Files of saved models of one kind, columns and classes.")
    ],
    output: Annotated[Path, typer.Option(help="File to save the merged model to.")] = Path("merged.safetensors"),
):
    """Merge saved models into one that has learned from the rows of all."""
    with shell.consoles() as (out, _):
        inputs.keep_inputs(output, *files)
        loaded = [storage.load(path) for path in files]
        if any(not hasattr(one, "forget") for one in loaded):
            raise ValueError("only averages, naive Bayes, discriminants and linear regressions merge: their sums add")
        if len({type(one) for one in loaded}) > 1:
            raise ValueError("these models are of several kinds; merge those of one")
        refuse_equal([(str(path), one) for path, one in zip(files, loaded, strict=True)])
        merged = functools.reduce(operator.add, loaded)
        output.parent.mkdir(parents=True, exist_ok=True)
        merged.save(output)
        count, rows = counted(len(files), "model"), f"rows of total weight {merged.total_weight_:g}"
        terminal.say(out, f"{count}, {rows}; written to {output}")
