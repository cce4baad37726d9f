"""The arguments that several commands share, each declared once, and the commands' errors and warnings.

Errors are printed as one line, warnings as lines, and arguments that they advise as options of the command line.
"""

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console

from bayesgen.cli.report import terminal, words
from bayesgen.sheets.cleaning import split
from bayesgen.tables.reading import Reading

File = Annotated[
    str,
    typer.Argument(
        help="A CSV, Excel or Parquet file, a folder or pattern of them, or - for the standard input; or the name of a "
        "built-in data set: penguins, anes96. A file of that name wins. Large files are sampled."
    ),
]
Rows = Annotated[
    str, typer.Argument(help="A file with the columns of the fit, a folder or pattern of them, or - (standard input).")
]
Several = list[str] | None  # values of an option that may be given more than once
Target = Annotated[str, typer.Option(help="Column of the classes.")]
Labels = Annotated[str | None, typer.Option("--target", help="Column of the classes.")]
Shares = Annotated[
    Several, typer.Option(help="In place of --target: a column a class, with commas between, of its share of each row.")
]
Id = Annotated[Several, typer.Option(help="Columns that name the rows: left out, and carried into predictions.csv.")]
Group = Annotated[
    str | None, typer.Option(help="Column of what a row belongs to, such as a patient: its rows are held out together.")
]
Order = Annotated[
    str | None, typer.Option(help="Column of times, such as dates: each row is predicted from earlier rows alone.")
]
Seed = Annotated[int, typer.Option(help="Seed of the folds and of NUTS.")]
Unseen = Annotated[str, typer.Option(help="How to take a category that was not there at the fit: missing, or error.")]
Loss = Annotated[str | None, typer.Option(help="A CSV of costs: classes in its first column, actions in its header.")]
RejectCost = Annotated[float | None, typer.Option(help="What it costs to ask somebody; then the action is ask.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]


@dataclass(frozen=True)
class Roles:
    """Options that tell what columns are, for commands that learn from a table."""

    drop: Annotated[Several, typer.Option(help="Columns to leave out, with commas between.")] = None
    id: Id = None
    number: Annotated[Several, typer.Option(help="Columns of numbers to keep, though they seem to number rows.")] = None
    categorical: Annotated[Several, typer.Option(help="Columns of numbers that are categories.")] = None
    count: Annotated[Several, typer.Option(help="Columns of counts 0, 1, 2, ..., which get a Poisson model.")] = None
    bernoulli: Annotated[Several, typer.Option(help="Columns of 0 and 1.")] = None
    log: Annotated[Several, typer.Option(help="Columns of skewed numbers >= 0, as incomes: their logarithm.")] = None
    date: Annotated[Several, typer.Option(help="Columns of dates to use as numbers of days; else left out.")] = None


@dataclass(frozen=True)
class Csv:
    """Options that tell how a CSV file is written: each stands for the field of its name of a `Reading`."""

    missing: Annotated[
        Several, typer.Option(help="Words for a gap, with commas between: NA,?,-999; age=999 is of one column.")
    ] = None
    same: Annotated[Several, typer.Option(help="Texts of a column that mean one, the first: sex=m,M,male.")] = None
    blank: Annotated[Several, typer.Option(help="What an empty field of a column means, such as tick=no.")] = None
    sep: Annotated[
        str | None, typer.Option(help="What separates the columns, such as ';' or tab; default: as the file shows.")
    ] = None
    decimal: Annotated[str | None, typer.Option(help="What stands before the fraction of a number: . or ,")] = None
    thousands: Annotated[str | None, typer.Option(help="What stands between thousands: . , ' or a blank.")] = None
    limits: Annotated[
        bool, typer.Option(help="Read <0.5 as half of it and >9 as 9, and tell limits in a column of their own.")
    ] = False
    unit: Annotated[Several, typer.Option(help="What stands beside numbers, and is taken away: price=€.")] = None
    date_order: Annotated[str | None, typer.Option(help="Order of dates that nothing tells: dmy, mdy or ymd.")] = None
    sheet: Annotated[str | None, typer.Option(help="Sheet of an Excel file; by default the one not empty.")] = None
    encoding: Annotated[str | None, typer.Option(help="Encoding of text that is not UTF-8, such as cp1252.")] = None
    fill_down: Annotated[Several, typer.Option(help="A column of merged cells: empty fields mean those above.")] = None

    def first(self) -> Reading:
        """Return how a file is written to learn from."""
        return Reading.said(**self._said())

    def later(self, estimator) -> Reading:
        """Return how a later file is written: as that of the fit, unless an option says otherwise."""
        return estimator.schema_.reading.given(**self._said())

    def _said(self) -> dict[str, Any]:
        gaps = split(self.missing, [one for one in self.missing or () if "=" in one])
        said = vars(self) | {"missing": gaps, "limits": self.limits or None}
        if wrong := [value for value in said["unit"] or () if not all(value.rpartition("=")[::2])]:
            raise ValueError(f"--unit takes a column and its unit, such as price=€, not {wrong[0]!r}")
        said["units"] = {c: u for c, _, u in (value.rpartition("=") for value in said.pop("unit") or ())} or None
        return said | {"sep": {"tab": "\t", "\\t": "\t"}.get(self.sep or "", self.sep)}


def target_of(target: str | None, shares: Sequence[str] | None) -> str | tuple[str, ...]:
    """Return the column of the classes, or the columns of their shares, of which one must be said."""
    columns = tuple(split(shares))
    if (target is None) == (shares is None) or (shares is not None and len(columns) < 2):
        raise ValueError("give --target, the column of the classes, or --target-shares, two columns of shares or more")
    return target or columns


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command, last of all, the options of each dataclass among its parameters; it gets them as one object."""
    declared = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in declared if is_dataclass(p.annotation)}
    hints = {name: get_type_hints(group, include_extras=True) for name, group in groups.items()}
    options = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[n][field.name]
        )
        for n, group in groups.items()
        for field in fields(group)
    ]

    @functools.wraps(command)
    def with_groups(*arguments, **given):
        made = {n: group(**{o: given.pop(o) for o in hints[n] if o in given}) for n, group in groups.items()}
        return command(*arguments, **made, **given)

    parameters = [*(p for p in declared if p.name not in groups), *options]
    with_groups.__annotations__ = {p.name: p.annotation for p in parameters}
    vars(with_groups)["__signature__"] = inspect.Signature(parameters)
    return with_groups


@contextlib.contextmanager
def consoles():
    """Give standard output and standard error; an error in files or arguments is one line there, with exit code 2."""
    out, err = Console(), Console(stderr=True)
    try:
        yield out, err
    except (ValueError, TypeError, OSError, ImportError) as error:
        terminal.say(err, f"Error: {words.in_options(error)}")
        raise typer.Exit(2) from None


@contextlib.contextmanager
def said(out):
    """Print warnings as lines, each once, after the block."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    said = (w.message for w in caught if issubclass(w.category, UserWarning | RuntimeWarning))
    for text in dict.fromkeys(map(words.in_options, said)):
        terminal.say(out, text, indent=2)


def command_line(
    context: typer.Context,
    begin: Sequence[str] = (),
    kept: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> str:
    """Return the command with the arguments and options that were given, as a shell takes it.

    Where another command is to ``begin`` with its arguments, only the options ``kept`` and those ``renamed`` follow.
    """
    said, renamed = [*(begin or ("bayesgen", str(context.info_name)))], renamed or {}
    for parameter in context.command.params:
        name = parameter.name or ""
        source, value = context.get_parameter_source(name), context.params[name]
        if source is None or source.name != "COMMANDLINE":
            continue
        if parameter.param_type_name == "argument":
            said += [] if begin else [str(value)]
        elif name in renamed or not begin or name in kept:
            option = (parameter.secondary_opts if value is False else parameter.opts)[0]
            option = f"--{renamed[name]}" if name in renamed else option
            for one in value if isinstance(value, list | tuple) else [value]:
                said += [option] if isinstance(one, bool) else [option, str(one)]
    return words.joined(said)


def options_of(group: Roles | Csv) -> list[str]:
    """Return the words that give the options of a group."""
    given = {f"--{name.replace('_', '-')}": value for name, value in vars(group).items() if value}
    several = {option: value if isinstance(value, list) else [value] for option, value in given.items()}
    return [word for option, values in several.items() for one in values for word in (option, one) if word is not True]
