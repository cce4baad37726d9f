"""Lines and tables that the commands print, readable in the narrowest terminal."""

import io
import sys
from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bayesgen.cli.report import words
from bayesgen.core.errors import counted
from bayesgen.plot import style as odds_words
from bayesgen.tables.text import counts_of

_UNSEEN = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if n != ord("\n")} | {
    n: f"\\u{n:04x}" for n in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


def escape() -> None:
    """Let the streams escape characters that the encoding of the terminal lacks, in place of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def visible(text: str) -> str:
    """Escape the control characters in a text, for terminals and for the direction of writing."""
    return text.translate(_UNSEEN)


def say(out: Console, text: str, indent: int = 0) -> None:
    """Print one line, unbroken."""
    out.print(Text(" " * indent + visible(text)), soft_wrap=True)


def fold(out: Console, lines: Iterable[str]) -> None:
    """Print lines, each broken where the terminal ends."""
    for line in lines:
        out.print(Text(visible(line)), overflow="fold")


def tell_table(out: Console, read, target, prepared, schema) -> None:
    """Print a summary of the table: rows, classes, columns by family, omissions and doubts."""
    first, *others = words.of_table(read, target, prepared, schema)
    say(out, first)
    for line in others:
        say(out, line, indent=2)


def tell_reading(out: Console, read, columns) -> None:
    """Print the notes on a later file, and the missing values in some columns, counted by spelling."""
    for note in read.notes:
        say(out, words.in_options(note), indent=2)
    spelled = [word for column in columns for word in read.gaps[column]]
    if spelled:
        say(out, f"{counted(len(spelled), 'missing value')}: {counts_of(spelled)}", indent=2)


def tell_result(out: Console, result, folds, model: str) -> None:
    """Print the scores of a model by every inference, side by side where the terminal is wide enough."""
    if result.folds < folds:
        fewer = "folds, not {}: the smallest class has no more rows"
        fewer = fewer if result.time is None else "blocks, not {}: there are no more times"
        say(out, f"{result.folds} {fewer.format(folds)}", indent=2)
    tell(out, "inference", words.inference_cells(result), words.of_inferences(result), f"Inferences of {model}:")


def tell_evidence(out: Console, told, row: int, cure: str = "") -> None:
    """Print the effect of each value of a row on the odds of a class, the strongest first, and what gives intervals."""
    probability, interval = odds_words.probability(told.probability), odds_words.interval(told.interval)
    before = odds_words.probability(told.prior_probability)
    say(out, f"Row {row}: P({told.label}) = {probability}, {interval}{cure}; before any value is known {before}")
    rows = {"prior": {"value": "", "log odds": f"{told.prior:+.2f}", "odds": odds_words.odds(told.prior)}}
    for column, term in sorted(told.terms.items(), key=lambda item: -abs(item[1])):
        rows[column] = {
            "value": odds_words.value(told.values[column]),
            "log odds": f"{term:+.2f}".replace("-0.00", "+0.00"),
            "odds": odds_words.factor(term),
        }
    tell(out, "column", rows)
    total = told.prior + sum(told.terms.values())
    say(out, f"Together {total:+.2f}: odds of {odds_words.odds(total)}.")


def tell(out: Console, first: str, rows: dict[str, dict[str, str]], lines: Iterable[str] = (), title: str = "") -> None:
    """Print rows of values by heading, with ``first`` above their names, a title above and lines below them.

    Values stand side by side where the terminal is wide enough, else below each other.
    """
    if title:
        say(out, title)
    headings = [visible(heading) for heading in next(iter(rows.values()))]
    for between in (" ", "\n"):  # words of names below each other where the table is too wide
        table = Table(first, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for heading in headings:
            table.add_column(Text(heading.replace(" ", between)), justify="right", no_wrap=True)
        for name, values in rows.items():
            table.add_row(Text(visible(name).replace(" ", between)), *(Text(visible(t)) for t in values.values()))
        if out.measure(table, options=out.options.update(width=1000)).maximum <= out.width:
            out.print(table)
            break
    else:
        widest = max(map(len, headings))
        for name, values in rows.items():
            say(out, name)
            for heading, value in zip(headings, values.values(), strict=True):
                say(out, f"{heading.replace(chr(10), ' '):<{widest}} {value}", indent=2)
    fold(out, lines)
