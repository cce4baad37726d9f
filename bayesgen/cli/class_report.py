"""`bayesgen classes`: classes that nobody named in a table: how many, what they are, and the class of each row."""

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from bayesgen.cli import folders, formats, inputs, shell
from bayesgen.cli.report import terminal, words
from bayesgen.cli.report.elements import Html, bullets, document, image, section, tag, wide
from bayesgen.cli.report.pictures import drawn, picture
from bayesgen.cli.shell import said
from bayesgen.comparison import compare_classes
from bayesgen.core.errors import counted
from bayesgen.files import disk

_FILES = ("report.html", "memberships.csv", "profiles.csv", "numbers.csv", "model.safetensors")


def numbers_of(text: str) -> list[int]:
    """Return whole numbers from "1-6", "3" or "2,4".

    >>> numbers_of("1-3,5")
    [1, 2, 3, 5]
    """
    found = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            raise ValueError(f"--numbers takes numbers of classes, such as 1-6 or 2,4, got {text!r}")
        found += range(int(first), int(last or first) + 1)
    return found


@shell.grouped
def classes(
    file: shell.File,
    roles: shell.Roles,
    csv: shell.Csv,
    numbers: Annotated[str, typer.Option(help="Numbers of classes to compare: 1-6, or 3, or 2,4.")] = "1-6",
    model: Annotated[
        str, typer.Option(help="naive bayes: columns independent within a class; discriminant: Gaussian numbers.")
    ] = "naive bayes",
    starts: Annotated[int, typer.Option(help="Starts of each search.")] = 20,
    output: Annotated[Path, typer.Option(help="Folder for the page, the tables and the model.")] = Path("classes"),
    seed: shell.Seed = 0,
):
    """Find classes that nobody named: how many the rows bear out, what they are, and which rows are of them."""
    with shell.consoles() as (out, _):
        tried = numbers_of(numbers)
        for name in _FILES:
            inputs.keep_inputs(output / name, *folders.paths(file))
        read, prepared, _ = inputs.prepared(file, None, "nb", csv.first(), vars(roles), seed)
        settings: dict[str, Any] = {"features": prepared.features or "auto"} if model == "naive bayes" else {}
        with said(out):
            found = compare_classes(prepared.X, tried, model, seed=seed, starts=starts, **settings)
        best = found.fits[found.best]
        member = pd.DataFrame(best.predict_proba(prepared.X), columns=[f"P({c})" for c in best.classes_])
        member.insert(0, "class", best.predict(prepared.X))
        of = prepared.names
        member = formats.named(member, of) if of.shape[1] else member.rename_axis("row").reset_index()
        profiles = best.class_profiles()
        contents = {
            "report.html": _page(file, found, best, profiles),
            "memberships.csv": member.to_csv(index=False),
            "profiles.csv": profiles.to_csv(),
            "numbers.csv": found.table.to_csv(),
        }
        output.mkdir(parents=True, exist_ok=True)
        best.save(output / "model.safetensors")
        disk.write_together({output / name: text.encode() for name, text in contents.items()})
        for note in (*read.notes, *prepared.notes, *prepared.suspicions):
            terminal.say(out, words.in_options(note))
        terminal.say(out, found.table.round(3).to_string())
        terminal.say(out, found.sentence)
        for number, remark in found.remarks.items():
            terminal.say(out, f"{counted(number, 'class')}: {remark}")
        terminal.say(out, f"Written to {output}: {', '.join(_FILES)}")


def _page(file: str, found, best, profiles) -> str:
    from bayesgen.plot import class_numbers, class_profiles

    shares = ", ".join(f"{label}: {rows:.0f} rows" for label, rows in best.summary().rows.items())
    parts = section(
        "How many",
        tag("p", found.sentence),
        _picture(class_numbers, found, "Log density of rows left out, by number of classes"),
        _table(found.table),
        bullets(f"{number}: {remark}" for number, remark in found.remarks.items()),
    )
    profile = _picture(class_profiles, best, "Profile of each class")
    parts += section("What they are", tag("p", shares), profile, _table(profiles))
    return document(f"Classes in {file}", parts)


def _table(frame: pd.DataFrame) -> Html:
    return wide(Html(frame.round(3).to_html(border=0)))


def _picture(draw, subject, seen: str) -> Html:
    return image(picture(drawn(8, 4.2, draw, subject), "", seen).png, seen)
