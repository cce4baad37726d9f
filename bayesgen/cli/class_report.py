"""`bayesgen classes`: classes that nobody named in a table: how many, what they are, and the class of each row."""

import base64
import html
import io
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from bayesgen.cli import inputs, shell
from bayesgen.cli.report import terminal
from bayesgen.cli.shell import one_line, said
from bayesgen.comparison import compare_classes
from bayesgen.core.errors import counted
from bayesgen.tables.account import cleaned

_STYLE = """:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem }
.wide { overflow-x: auto } table { border-collapse: collapse; border: 0 }
th, td { padding: .2rem .5rem; text-align: right }
img { max-width: 100%; height: auto; background: #fff }"""


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
        str,
        typer.Option(help="naive bayes: columns independent within a class; discriminant: a Gaussian of the numbers."),
    ] = "naive bayes",
    starts: Annotated[int, typer.Option(help="Starts of each search.")] = 20,
    output: Annotated[Path, typer.Option(help="Folder for the page, the tables and the model.")] = Path("classes"),
    seed: shell.Seed = 0,
):
    """Find classes that nobody named: how many the rows bear out, what they are, and which rows are of them."""
    out, err = terminal.consoles()
    with one_line(err):
        tried = numbers_of(numbers)
        reading = csv.first()
        given = {role: values or () for role, values in vars(roles).items()}
        read, prepared = cleaned(file, None, "nb", given, reading, inputs.content(file, reading))
        settings: dict[str, Any] = {"features": prepared.features or "auto"} if model == "naive bayes" else {}
        with said(out):
            found = compare_classes(prepared.X, tried, model, seed=seed, starts=starts, **settings)
        best = found.fits[found.best]
        member = pd.DataFrame(best.predict_proba(prepared.X), columns=[f"P({c})" for c in best.classes_])
        member.insert(0, "class", best.predict(prepared.X))
        names = prepared.names.reset_index(drop=True)
        member = pd.concat([names, member], axis=1) if names.shape[1] else member.rename_axis("row").reset_index()
        profiles = best.class_profiles()
        output.mkdir(parents=True, exist_ok=True)
        member.to_csv(output / "memberships.csv", index=False)
        found.table.to_csv(output / "numbers.csv")
        profiles.to_csv(output / "profiles.csv")
        best.save(output / "model.safetensors")
        (output / "report.html").write_text(_page(file, found, best, profiles), encoding="utf-8")
        for note in (*read.notes, *prepared.notes, *prepared.suspicions):
            terminal.say(out, note)
        terminal.say(out, found.table.round(3).to_string())
        terminal.say(out, found.sentence)
        for number, remark in found.remarks.items():
            terminal.say(out, f"{counted(number, 'class')}: {remark}")
        terminal.say(
            out, f"Written to {output}: report.html, memberships.csv, profiles.csv, numbers.csv, model.safetensors"
        )


def _page(file: str, found, best, profiles) -> str:
    """Return the report, one page that needs no other file."""
    from bayesgen.plot import class_numbers, class_profiles

    size = best.summary().rows
    shares = ", ".join(f"{label}: {rows:.0f} rows" for label, rows in size.items())
    shown = profiles.round(3)
    remarks = "".join(f"<li>{number}: {html.escape(text)}</li>" for number, text in found.remarks.items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Classes in {html.escape(file)}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>Classes in {html.escape(file)}</h1>\n<h2>How many</h2><p>{html.escape(found.sentence)}</p>"
        f"{_picture(class_numbers, found, 'Log density of rows left out, by number of classes')}"
        f'<div class="wide">{found.table.round(3).to_html(border=0)}</div><ul>{remarks}</ul>'
        f"<h2>What they are</h2><p>{html.escape(shares)}</p>"
        f"{_picture(class_profiles, best, 'Profile of each class')}"
        f'<div class="wide">{shown.to_html(border=0)}</div></body></html>\n'
    )


def _picture(draw, what, told: str) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    draw(what, ax=figure.add_subplot())
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return f'<img alt="{html.escape(told)}" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'
