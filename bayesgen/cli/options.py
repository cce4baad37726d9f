"""The arguments that several commands share, each described once."""

from typing import Annotated

import typer

File = Annotated[
    str,
    typer.Argument(
        help="A CSV or Parquet file; - for the standard input; or the name of a built-in data set: penguins, anes96. "
        "A file of that name wins."
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
Seed = Annotated[int, typer.Option(help="Seed of the folds and of NUTS.")]
Unseen = Annotated[str, typer.Option(help="What a category is that was not there at fit: missing, or error.")]
Loss = Annotated[
    str | None, typer.Option(help="A CSV file of costs: the classes in its first column, the actions in its header.")
]
RejectCost = Annotated[
    float | None, typer.Option(help="What it costs to ask somebody instead; then the action is ask.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]
