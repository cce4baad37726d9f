"""`bayesgen look`: what a table holds, and one command that reads as much of it as is certain.

Each option is tried before it is named. What is a question, such as 99 in an age, stands beside the command.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bayesgen.cli import inputs, shell
from bayesgen.cli.report import terminal, words
from bayesgen.core.errors import Argument, InputError, counted, named, quoted
from bayesgen.sheets import files
from bayesgen.tables.dates import moments
from bayesgen.tables.description import of_labels
from bayesgen.tables.suspicions import record
from bayesgen.tables.text import alike

_TICKS = ("x", "X", "\u2713", "\u2714", "\u2611", "\u2612")  # beside empty fields alone


def cures(read: files.TableFile, target: str | None) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the columns of a table of which more can be read, each with the options for every way of reading it."""
    for name, values in read.table.items():
        column, seen = str(name), values.dropna()
        distinct = [] if values.dtype.kind in "iufbM" or hasattr(values, "cat") else seen.unique().tolist()
        if not all(isinstance(text, str) for text in distinct):
            continue
        verdict = of_labels(distinct, len(seen)) if distinct and column != target else None
        if verdict and (found := verdict.unread):
            ways: list[dict] = [{a.name: a.value for a in w} for w in found.cures(column, read.reading.numerals())]
            ways = [way | {"unit": f"{column}={found.unit}"} if way.pop("units", None) else way for way in ways]
            if cure := {name: value for way in ways for name, value in way.items() if name in (*_SEVERAL, "limits")}:
                yield column, [cure]
            yield column, ways
        for group in alike(distinct):
            often = sorted(dict.fromkeys(text.strip() for text in group), key=lambda text: -(seen == text).sum())
            if not any(re.search("[,=]", text) for text in often):
                yield column, [{"same": f"{column}={','.join(often)}"}]
        if len(seen) < len(values) and len(distinct) == 1 and distinct[0].strip() in _TICKS:
            yield column, [{"blank": f"{column}=no"}]


@dataclass(frozen=True)
class _Look:
    """A table as some options read it."""

    file: str
    target: str
    roles: shell.Roles
    csv: shell.Csv

    @functools.cached_property
    def prepared(self) -> Any:
        """The file as it was read, and the columns and classes to learn from; in their place why there are none."""
        try:
            return inputs.prepared(self.file, self.target, "nb", self.csv.first(), vars(self.roles), 0)[:2]
        except ValueError as error:  # perhaps an option mends it; if the file cannot be read at all this is raised
            reading = self.csv.first()
            return files.read(self.file, {}, reading, content=inputs.content(self.file, reading)), error

    def opened(self) -> "_Look":
        """Return the table with the encoding and separator without which the file cannot be read."""
        try:
            _ = self.prepared
        except InputError as error:
            said = (part for part in error.parts if isinstance(part, Argument) and part.name in ("encoding", "sep"))
            if cure := {part.name: part.value for part in said if getattr(self.csv, part.name) is None}:
                return self.given(cure).opened()
            raise
        return self

    @property
    def command(self) -> str:
        said = [*shell.options_of(self.roles), *shell.options_of(self.csv)]
        return words.joined(["bayesgen", "fit", self.file, "--target", self.target, *said])

    def given(self, options: dict[str, Any]) -> "_Look":
        """Return the table as further options read it."""
        lists = {name: [*(getattr(self.csv, name) or ()), value] for name, value in options.items() if name in _SEVERAL}
        return replace(self, csv=replace(self.csv, **options | lists))

    def reads(self, column: str, before: "_Look") -> bool:
        """Return True if the options read a column that was text ``before``, and lose no other."""
        try:
            (read, table), (_, known) = self.prepared, before.prepared
        except ValueError:
            return False
        kept = {} if isinstance(known, ValueError) else known.X.drop(columns=column, errors="ignore")
        if isinstance(table, ValueError) or any(not values.equals(table.X.get(name)) for name, values in kept.items()):
            return False
        both = (replace(one, table=one.table.filter(items=[column])) for one in (before.prepared[0], read))
        lacks = [list(cures(one, self.target)) for one in both]
        return len(lacks[1]) < len(lacks[0])


_SEVERAL = ("missing", "same", "blank", "unit")


def recipe(file: str, target: str, roles: shell.Roles, csv: shell.Csv) -> tuple[_Look, list[str]]:
    """Return a table as all options read it that are certain, and questions: columns with more than one reading."""
    look, refused, questions = _Look(file, target, roles, csv).opened(), list[Any](), list[str]()
    while cure := next((one for one in cures(look.prepared[0], target) if one not in refused), None):
        column, ways = cure
        good = [way for way in ways if look.given(way).reads(column, look)]
        if len(good) == 1 == len(ways):
            look, refused, questions = look.given(good[0]), [], []  # which others may need
            continue
        refused.append(cure)
        if good:
            said = " or ".join(words.joined(shell.options_of(replace(shell.Csv(), **way))) for way in good)
            questions.append(f"{quoted(column)} is read by {said}, and only you know which is meant")
    if isinstance(error := look.prepared[1], ValueError):
        raise ValueError("; ".join([*questions, words.in_options(error, advice=False)]))
    return look, questions


def _made_of(values, dated: bool) -> str:
    """Return what was made of a column, of which numbers may be days."""
    seen = values.dropna()
    lacking = f", {counted(len(values) - len(seen), 'gap')}" * (len(seen) < len(values))
    if values.dtype.kind not in "iuf":
        return f"categories {named(seen.unique().tolist())}{lacking}"
    ends = [str(moments([end])[0])[:10] if dated else f"{end:g}" for end in (seen.min(), seen.max())]
    return f"{'dates' if dated else 'numbers'} from {' to '.join(ends)}{lacking}"


@shell.grouped
def look(file: shell.File, target: shell.Target, *, roles: shell.Roles, csv: shell.Csv):
    """Tell what a table holds, and print one command that reads as much of it as is certain."""
    with shell.consoles() as (out, _), shell.said(out):
        if file == "-":
            raise ValueError("the standard input can be read once, and each option is tried: give the name of a file")
        found, questions = recipe(file, target, roles, csv)
        read, prepared = found.prepared
        terminal.say(out, f"{read.source}: {counted(len(read.table), 'row')}, of which {len(prepared.y)} have a class")
        for column, values in prepared.X.items():
            terminal.say(out, f"{quoted(column)}: {_made_of(values, column in prepared.dates)}", indent=2)
        for note in (*read.notes, *prepared.notes):
            terminal.say(out, words.in_options(note, advice=False), indent=2)
        for line in record([*questions, *map(words.in_options, prepared.suspicions)]):
            terminal.say(out, line, indent=2)
        terminal.say(out, found.command)
