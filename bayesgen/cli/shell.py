"""The arguments that several commands share, and the commands' errors and warnings.

Errors are printed as one line, warnings as lines, and arguments that they advise as options of the command line.
"""

import contextlib
import shlex
import warnings
from typing import Annotated

import typer

from bayesgen.cli import report

File = Annotated[
    str,
    typer.Argument(
        help="A CSV or Parquet file, a folder or pattern of them, or - for the standard input; or the name of a "
        "built-in data set: penguins, anes96. A file of that name wins. Large files are sampled."
    ),
]
Rows = Annotated[
    str,
    typer.Argument(
        help="A CSV or Parquet file with the columns of the fit, a folder or pattern of them, or - for the standard "
        "input. Large files are read in batches."
    ),
]
Target = Annotated[str, typer.Option(help="Column of the classes.")]
Drop = Annotated[list[str] | None, typer.Option(help="Columns to leave out, with commas between.")]
Id = Annotated[
    list[str] | None, typer.Option(help="Columns that name the rows: left out, and carried into predictions.csv.")
]
Group = Annotated[
    str | None,
    typer.Option(
        help="Column of what a row belongs to, such as a patient: left out, and its rows are left out together where "
        "models are judged.",
        show_default=False,
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        help="Column of times, such as dates or visits: left out, and each row is predicted from earlier rows alone.",
        show_default=False,
    ),
]
Categorical = Annotated[list[str] | None, typer.Option(help="Columns of numbers that are categories.")]
Count = Annotated[list[str] | None, typer.Option(help="Columns of counts 0, 1, 2, ..., which get a Poisson model.")]
Bernoulli = Annotated[list[str] | None, typer.Option(help="Columns of 0 and 1.")]
Log = Annotated[
    list[str] | None,
    typer.Option(help="Columns of skewed numbers >= 0, such as incomes: their logarithm is described."),
]
Date = Annotated[
    list[str] | None, typer.Option(help="Columns of dates to use as numbers of days; others are left out.")
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="What is missing beside an empty field, with commas between: NA,?,-999. In a column of numbers NA, NaN "
        "and null are missing anyway."
    ),
]
Sep = Annotated[str, typer.Option(help="What separates the columns of a CSV file: ';', or tab.")]
Decimal = Annotated[str, typer.Option(help="What stands before the fraction of a number in a CSV file: . or ,")]
Thousands = Annotated[
    str, typer.Option(help="What stands between the thousands of a number in a CSV file: . , ' or a blank.")
]
Limits = Annotated[
    bool,
    typer.Option(
        help="Read limits of detection as numbers: <0.5 as half of it, >9 as 9, and tell them in a column of their own."
    ),
]
LaterSep = Annotated[
    str | None,
    typer.Option(help="What separates the columns of a CSV file, where not as at the fit.", show_default=False),
]
LaterDecimal = Annotated[
    str | None, typer.Option(help="What stands before fractions, where not as at the fit.", show_default=False)
]
LaterThousands = Annotated[
    str | None, typer.Option(help="What stands between thousands, where not as at the fit.", show_default=False)
]
Seed = Annotated[int, typer.Option(help="Seed of the folds and of NUTS.")]
Unseen = Annotated[str, typer.Option(help="What a category is that was not there at fit: missing, or error.")]
Loss = Annotated[
    str | None, typer.Option(help="A CSV file of costs: the classes in its first column, the actions in its header.")
]
RejectCost = Annotated[
    float | None, typer.Option(help="What it costs to ask somebody instead; then the action is ask.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]


@contextlib.contextmanager
def one_line(err):
    """Print an error in files or arguments as one line, and end with exit code 2."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        report.say(err, f"Error: {report.in_options(error)}")
        raise typer.Exit(2) from None


@contextlib.contextmanager
def said(out):
    """Print warnings as lines, each once, after the block."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    said = (w.message for w in caught if issubclass(w.category, UserWarning | RuntimeWarning))
    for text in dict.fromkeys(map(report.in_options, said)):
        report.say(out, text, indent=2)


def command_line(context: typer.Context) -> str:
    """Return the command with the arguments and options that were given, as a shell takes it."""
    words = ["bayesgen", str(context.info_name)]
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[parameter.name or ""]
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif value is True:
            words.append(parameter.opts[0])
        else:
            values = value if isinstance(value, list | tuple) else [value]
            words += [word for one in values for word in (parameter.opts[0], str(one))]
    return shlex.join(words)
