"""The cells and sentences that the terminal and the page have in common."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from bayesgen.comparison import impossible_row, over_time
from bayesgen.comparison.results import scores_of
from bayesgen.core.errors import Argument, Informed, Note, counted, named, quoted, several
from bayesgen.inspection.probabilities import FEWEST
from bayesgen.tables.dates import as_text
from bayesgen.tables.shares import stacked
from bayesgen.tables.suspicions import record

MODELS = {"nb": "naive Bayes", "gda": "a Gaussian discriminant with a full covariance for each class"}
TWICE = "by more than two standard errors"


_OPTIONS: dict[str, str | dict] = {  # arguments of the library that are no option of their name here, by value
    "again": "--again",
    "array": "",  # which no file holds
    "categories": "fit anew, with rows of every category; `bayesgen predict --unseen missing` takes it as missing",
    "classes": "fit anew, with rows of every class",
    "covariance": "",
    "date_order": "--date-order dmy",
    "features": {
        "bernoulli": "--bernoulli",
        "categorical": "make it a category by --categorical",
        "log1p": ", which --log takes",
        "drop": "leave them out by --drop",
    },
    "groups": "`--group {value}`",
    "label_weight": "",
    "loss": "--loss",
    "schema": "learn from the rows of both at once: `bayesgen fit` takes a folder or a pattern of files",
    "units": "--unit",
    "shared": {True: "a shared covariance"},
    "unseen": {"error": "`bayesgen predict --unseen error`"},  # no option of the commands that take one row, or draw
    "y": "the column of classes",
}
_HEADINGS = {
    "accuracy": "accuracy",
    "log_loss": "log\nloss",
    "brier_score": "Brier\nscore",
    "calibration_error": "calib.\nerror",
}


def in_options(message: BaseException | str, advice: bool = True) -> str:
    """Return the text of an error, warning or note, whose ``advice`` names options of the commands, or is left out."""
    parts = message.parts if isinstance(message, Informed | Note) else [str(message)]
    parts = [part for part in parts if advice or getattr(part, "name", "part")]
    if isinstance(message, OSError) and message.filename:
        parts = [f"{message.filename}: {str(message.strerror).lower()}"]
    text = "".join(_option(part) if isinstance(part, Argument) else part for part in parts)
    return text if isinstance(message, Note) else " ".join(text.split())


def joined(words: Iterable[str]) -> str:
    """Return a command as a shell takes it, that of Windows too where each word can be written for both.

    >>> print(joined(["bayesgen", "fit", "my table.csv", "--missing", "crp=<0.5"]), joined(["a!$"]))
    bayesgen fit "my table.csv" --missing "crp=<0.5" 'a!$'
    """
    return " ".join(word if word == shlex.quote(word) else _in_quotes(word) for word in words)


def _in_quotes(word: str) -> str:
    return f'"{word}"' if re.fullmatch(r'[^"$`\\!%]+', word) else shlex.quote(word)


def _option(argument: Argument) -> str:
    name, value = argument.name, argument.value
    if not name:
        return in_options(value)
    if name == "units" and value:
        return " ".join(f"--unit {joined([f'{column}={unit}'])}" for column, unit in value.items())
    if name in ("bernoulli", "categorical") and value:
        columns = [value] if isinstance(value, str) else value
        apart = any(column != column.strip() or "," in column for column in columns)
        return " ".join(f"--{name} {joined([one])}" for one in (columns if apart else [",".join(columns)]))
    if (known := _OPTIONS.get(name)) is not None:
        return known.format(value=quoted(value)) if isinstance(known, str) else known[value]
    if value is None or value is True:
        return f"--{name.replace('_', '-')}"
    if name in ("sep", "decimal", "thousands", "missing", "same", "fill_down", "sheet"):  # whose values stand in quotes
        value = "tab" if value == "\t" else _in_quotes(",".join(value) if isinstance(value, list) else value)
    return f"--{name.replace('_', '-')} {value}"


def of_table(read, target, prepared, schema) -> list[str]:
    """Summarise the table that was read: rows, classes, columns by family, omissions and doubts."""
    sizes = several(f"{quoted(c)} {n:.10g}" for c, n in prepared.sizes.items())
    count = f"{len(prepared.sizes)} classes"
    of = f"{quoted(target)}, {count}" if isinstance(target, str) else f"shares of {count}, with their sums"
    used = f"{len(read.table)} rows, {read.table.shape[1]} columns; {len(prepared.y)} rows used"
    lines = [f"{read.source}: {used}", f"{of}: {sizes}"]
    for family, columns in families(schema).items():
        levels = (quoted(c) + (f" ({named(categories)})" if categories else "") for c, categories in columns)
        lines.append(f"{family}: {several(levels)}")
    return [*lines, *map(in_options, (*read.notes, *prepared.notes, *record(prepared.suspicions)))]


def families(schema) -> dict[str, list]:
    """Return the columns of each family, each with its categories or None."""
    found = defaultdict(list)
    for block in schema.blocks:
        family = "categorical" if block.categories else block.leaf
        for column in block.columns:
            found["date" if column in schema.dates else family].append((column, block.categories))
    return found


def inference_cells(result) -> dict[str, dict[str, str]]:
    """Return the scores of every inference, and of the base rate beside them, by heading."""
    cells = {}
    for name in result.probability:
        scores, apart = result.scores(name), from_exact(result, name)
        cells[name] = {
            "folds": f"{scores.folds} of {result.folds}",
            **(_numbers(vars(scores)) if scores.folds else dict.fromkeys(_HEADINGS.values(), "-")),
            "seconds": f"{result.seconds[name]:.2f}",
            "largest\n|p-exact|": f"{apart.max():.4f}" if len(apart) else "-",
        }
    base = dict.fromkeys(next(iter(cells.values())), "-") | {"folds": f"{result.folds} of {result.folds}"}
    return cells | {"base rate": base | _numbers(base_rate(result))}


def of_inferences(result) -> Iterator[str]:
    """Yield remarks on the scores of the inferences."""
    yield from _notes(result)
    if {"nuts", "exact"} <= result.probability.keys() and (apart := result.difference("nuts", "exact")).size:
        mean, most = f"{apart.mean():.5f}", f"{apart.max():.5f}"
        yield f"NUTS and exact class probabilities differ by {mean} on average and {most} at most."
    for name, rows in result.doubtful.items():
        if count := int(rows.sum()):
            few = f"{name}: {counted(count, 'row')} of {len(rows)} rest on fewer than {FEWEST} effective draws;"
            yield f"{few} their probabilities are rough, and exact ones, where they exist, are not."
    for name in result.estimators:
        if found := impossible_row(result, name):
            row, columns = found
            rows = result.estimators[name][0].rows
            cells = several(f"{quoted(column)} {quoted(str(rows[column].iloc[row]))}" for column in columns)
            why = f" because of {cells}" if columns else ""
            label = quoted(str(result.classes[result.impossible(name)[row]][0]))
            yield f"{name}: log loss inf, since row {rows.index[row]}, of class {label}, got probability 0{why}."


def model_cells(models) -> dict[str, dict[str, str]]:
    """Return the scores of every model, the best first, by heading."""
    headings = {"log\nloss": "log_loss", "std.\nerror": "standard_error"}
    headings |= {"above\nbest": "difference", "error\nof it": "difference_error", "Brier\nscore": "brier_score"}
    headings |= {"calib.\nerror": "calibration_error", "accuracy": "accuracy"}
    rows = {}
    for name, row in models.table.iterrows():
        values = {heading: f"{row[column]:.4f}" for heading, column in headings.items()}
        if not row["folds"]:
            values = dict.fromkeys(values, "-")
        elif name == models.best:
            values |= {"above\nbest": "-", "error\nof it": "-"}
        rows[str(name)] = values | {"seconds": f"{row['seconds']:.2f}"}
    return rows


def of_models(models) -> Iterator[str]:
    """Yield remarks on the models and their scores."""
    told = defaultdict(list)
    for name, remark in models.remarks.items():
        told[remark].append(name)
    for remark, names in told.items():
        yield f"{', '.join(names)}: {remark}"
    yield from _notes(models)
    if models.time is not None:
        exact = "exact posteriors (naive Bayes, discriminants) learn each row once its time has passed"
        yield f"Between two fits, {exact}; the inferences in the first table do not."
    yield "Above best: mean difference in log loss, row by row, with its standard error."


def of_benefits(benefits) -> str:
    """Describe the table of `benefit_cells`."""
    name, found = next(iter(benefits.items()))
    judged = "the intervals are of the rows that judged, not of other rows to learn from"
    return f"Net benefit in 100 rows ({found.unit}) of {name} by the {found.varied}; {judged}"


def benefit_cells(benefits) -> dict[str, dict[str, str]]:
    """Return what acting on the probabilities of the best model is worth, by threshold and by heading."""
    found, cells = next(iter(benefits.values())), {}
    for t in (4, 9, 19, 29, 39, 49, 59, 69, 79, 89):
        band = f"{100 * found.lower[t]:.1f} to {100 * found.upper[t]:.1f}"
        cells[f"{found.thresholds[t]:g}"] = {
            "model": f"{100 * found.model[t]:.1f}",
            "90 % interval": "too few rows" if found.few[t] else band,
            "all": f"{100 * found.single['all'][t]:.1f}",
            "P(beats both\nall and none)": "-" if found.few[t] else f"{found.best[t]:.2f}",
        }
    return cells


def of_columns(worth) -> Iterator[str]:
    """Yield the columns that the best model clearly needs, by more than two standard errors."""
    if worth.no_better:
        yield "No model predicts better than the frequencies of the classes, so no column is said to matter."
    if not len(worth.frame):
        return
    mean, error = worth.frame.mean(), worth.frame.sem()
    sure = mean[mean > 2 * error].sort_values(ascending=False)
    asked = worth.frame.shape[1]
    asked = f"all {asked} columns" if asked == worth.columns else f"the {asked} of {worth.columns} that tell most alone"
    if len(sure):
        which = f"any one of {named(sure.index)}" if len(sure) > 1 else quoted(sure.index[0])
        yield f"Without {which}, {worth.name} predicts new rows clearly worse ({TWICE})."
    else:
        yield f"There is no single column without which {worth.name} predicts new rows clearly worse ({TWICE})."
    yield f"Asked of {asked}, each left out alone; columns that tell the same stand in for each other."


def of_times(account) -> str:
    """Describe the order of time in which rows were predicted."""
    result = account.result
    first = as_text(result.time[result.fold > 0].min())
    past = f"each row is predicted from those that came before it by the column {quoted(account.order)}"
    since = f"from {first} on, once every class has two; learned anew before each of {result.folds} blocks"
    return f"Over time, {account.by_class.name}: {past}, {since}."


def time_cells(account) -> dict[str, dict[str, str]]:
    """Return the scores of what predicts best by the end of each period, and by heading."""
    return {
        as_text(row["end"]): {
            "rows": str(row["rows"]),
            "log\nloss": f"{row['log_loss']:.4f}",
            "std.\nerror": f"{row['standard_error']:.4f}",
            "mean\nprobability": f"{row['probability']:.4f}",
            "right": f"{row['frequency']:.4f}",
            "95 % interval": f"{row['lower']:.3f} to {row['upper']:.3f}",
        }
        for row in over_time(account.source, account.by_class.name).to_dict("records")
    }


def _numbers(scores) -> dict[str, str]:
    return {heading: f"{scores[name]:.4f}" for name, heading in _HEADINGS.items()}


def base_rate(result) -> dict[str, float]:
    """Return the scores of a prediction by the class frequencies of the other folds alone: what a model must beat.

    Where rows are in the order of time these are the rows that came before the fold.
    """
    indicators = result.indicators
    p = np.empty(indicators.shape)
    for fold in range(1, result.folds + 1):
        held = result.fold == fold
        before = ~held if result.time is None else result.time < result.time[held].min()
        p[held] = indicators[before].mean(0)
    seen = result.fold > 0
    place, code, votes = stacked(result.codes[seen], None)
    return scores_of(code, p[seen][place], votes)


def from_exact(result, name) -> np.ndarray:
    """Return the distances of class probabilities from the exact ones; empty where there is nothing to compare."""
    return result.difference(name) if name != "exact" and "exact" in result.probability else np.empty(0)


def _notes(result) -> Iterator[str]:
    """Yield failures, then warnings, each text once with the inferences and folds it came from."""
    places = defaultdict(lambda: defaultdict(list))
    for note in sorted(result.notes, key=lambda note: not note.failed):
        places[note.failed, in_options(note.message)][note.inference].append(note.fold)
    for (failed, text), where in places.items():
        folds = sorted({fold for found in where.values() for fold in found})
        which = f"fold{'s' * (len(folds) > 1)} {named(folds)}"
        yield f"{', '.join(where)} {'left out of' if failed else 'warned in'} {which}: {text}"
    partial = [name for name in result.probability if 0 < result.scores(name).folds < result.folds]
    if partial:
        yield f"The scores of {', '.join(partial)} are means over the rows of the other folds only."
