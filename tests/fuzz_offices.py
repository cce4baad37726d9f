"""Tables in the styles of offices: ``python tests/fuzz_inputs.py offices 2000`` writes docs/reliability/offices.csv.

Of each seed 0, 1, 2 ... a table is drawn and two styles: the signs before fractions and between thousands, the minus,
percent signs, units of money and measure, five ways of dates, words for gaps, the encoding, the order of columns. The
command line learns from the table in one style, with its options, and predicts other rows of it (and `read_table` reads
it as it comes)

- in the same style without an option, by the command line and by ``predict_batches``: right, and neither refused nor
  told, but where a value truly has two readings (each is listed);
- in the other style with the options that say it, and without any: right, or refused or told by column and value;
- without any option at the fit either: right, or told by column and value;
- in the same style but for one entry: refused or told by column and value, or right in every other row. In the table of
  the fit, too, every other row must hold the numbers that it holds without that entry.

An answer is right where it is that of a classifier of the numbers themselves. ``python tests/fuzz_inputs.py
offices 0 SEED`` repeats one.
"""

import contextlib
import csv
import re
import tempfile
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen.cli import app

TABLE = Path(__file__).parents[1] / "docs" / "reliability" / "offices.csv"
SIGNS = [(".", ""), (".", ","), (".", "'"), (".", " "), (",", ""), (",", "."), (",", "'"), (",", "\u00a0")]
DATES = ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"]
COLUMNS = ["amount", "size", "rate", "when", "colour"]
OUTCOMES = ["right", "told", "refused", "wrong"]
WAYS = ["the style of the fit, command line", "the style of the fit, predict_batches", "another style, said by options"]
WAYS += ["the style of the fit, nothing said", "another style, without options", "one entry of another style"]
WAYS += ["one entry of another style, at the fit"]
ODD = ["12.5", "0,5", "0.5", "500.00", "1.234", "1,234", "inf", "1_000", "\u0664\u0660", "1e-3", "\uff11"]
ODD += ["7 kg", "12-", "x"]


@dataclass(frozen=True)
class Style:
    """How an office writes a table."""

    sep: str
    decimal: str
    thousands: str
    minus: str
    percent: str  # "" writes .593 for 59.3 %
    date: str
    gap: str
    encoding: str
    unit: str  # beside the sizes

    @classmethod
    def drawn(cls, rng) -> "Style":
        decimal, thousands = SIGNS[rng.integers(len(SIGNS))]
        sep = str(rng.choice([";", "\t"] if decimal == "," else [",", ";", "\t", "|"]))
        percent, gap = str(rng.choice(["", "%", " %"], p=[0.8, 0.1, 0.1])), str(rng.choice(["", "", "NA", "n/a"]))
        encoding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
        minus = str(rng.choice(["-", "\u2212", "()", "behind"], p=[0.5, 0.3, 0.1, 0.1]))
        unit = str(rng.choice(["", "$", "\u20ac", "EUR", "kg", "mg/l"], p=[0.75, 0.05, 0.05, 0.05, 0.05, 0.05]))
        return cls(sep, decimal, thousands, minus, percent, DATES[rng.integers(len(DATES))], gap, encoding, unit)

    def number(self, value: float, digits: int) -> str:
        text = f"{abs(value):,.{digits}f}"
        text = text.replace(",", "T").replace(".", self.decimal).replace("T", self.thousands)
        if value >= 0:
            return text
        return {"()": f"({text})", "behind": f"{text}-"}.get(self.minus, self.minus + text)

    def size(self, value: float, digits: int) -> str:
        text = self.number(value, digits)
        if not self.unit or not any(sign in text for sign in "123456789"):
            return text
        return self.unit + text if self.unit == "$" and value >= 0 else f"{text} {self.unit}"

    def rate(self, share: float) -> str:
        return self.number(100 * share, 1) + self.percent if self.percent else self.number(share, 3)

    def texts(self, table: pd.DataFrame, digits: int) -> pd.DataFrame:
        """The table as the office writes it."""
        written = pd.DataFrame(
            {
                "amount": [self.number(v, 0) for v in table["amount"]],
                "size": [self.size(v, digits) for v in table["size"]],
                "rate": [self.rate(v) for v in table["rate"]],
                "when": table["when"].dt.strftime(self.date),
                "colour": table["colour"],
            }
        )
        written = written.where(table[COLUMNS].notna(), self.gap)
        return written.assign(colour=table["colour"], kind=table["kind"])  # in text NA is a word

    def write(self, table: pd.DataFrame, digits: int, path: Path, rng, odd: tuple[int, str, str] | None = None) -> Path:
        """Write the table as a file, its columns in any order, perhaps with another entry in a row and column."""
        texts = self.texts(table, digits)
        if odd is not None:
            texts.loc[odd[0], odd[1]] = odd[2]
        text = texts[list(rng.permutation(texts.columns))].to_csv(index=False, sep=self.sep)
        path.write_bytes(text.encode(self.encoding))
        return path

    @property
    def options(self) -> list[str]:
        blank = " " if self.thousands.isspace() else self.thousands  # any blank is meant
        return [f"--sep={self.sep}", f"--decimal={self.decimal}", f"--thousands={blank}"]


def unit_of(style: Style, fit: Style) -> list[str]:
    """The option for the unit of a table, or where it has none for that of the fit, in which its sizes are too."""
    return [f"--unit=size={unit}"] if (unit := style.unit or fit.unit) else []


def drawn(rng, rows: int, digits: int) -> pd.DataFrame:
    """A table of the numbers themselves: amounts, sizes, shares, dates and colours, with gaps, and a class."""
    y = rng.integers(2, size=rows)
    y[:2] = 0, 1
    table = pd.DataFrame(
        {
            "amount": np.rint(10.0 ** rng.uniform(2, 6, rows) * (1 + y)),
            "size": (rng.normal(scale=10.0 ** rng.integers(0, 4), size=rows) + y).round(digits),
            "rate": rng.uniform(0.01, 0.99, rows).round(3),
            "when": pd.to_datetime(rng.integers(15_000, 20_000, rows) + 700 * y, unit="D"),
            "colour": rng.choice(["red", "green", "sea blue"], rows),
            "kind": np.array(["no", "yes"])[y],
        }
    )
    for name in COLUMNS:
        table[name] = table[name].mask(rng.random(rows) < 0.05)
    return table


def of_numbers(table: pd.DataFrame, percent: bool) -> pd.DataFrame:
    """The columns as a program has them, in the units of the fit."""
    days = (table["when"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    rate = (100 * table["rate"]).round(1) if percent else table["rate"]
    return table[COLUMNS].assign(when=days, rate=rate)


def command(*arguments) -> tuple[int, str]:
    """The exit code and the output of a command, which prints no traceback."""
    result = CliRunner().invoke(app, [str(word) for word in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, " ".join(result.output.split())


def told_in(output: str) -> bool:
    """True if something was told that is neither the end of a prediction nor a count of gaps."""
    output = re.sub(r"\d+ missing values?: [^;]*?(?= \S+: \d+ rows?;)", "", output)
    return re.fullmatch(r"\s*\S+: \d+ rows?; written to .*", output) is None


def outcome(want, got, told: bool) -> str:
    """Right, or told; wrong where other probabilities came without a word."""
    right = got is not None and np.abs(got - want).max() < 1e-6
    return "told" if told else "right" if right else "wrong"


def named(text: str) -> bool:
    """True if a text names a column and quotes a value."""
    return any(name in text for name in COLUMNS) and bool(re.search("'[^']*'|\"[^\"]*\"", text))


def predict(model: Path, file: Path, folder: Path, want, options=(), aside=()) -> tuple[str, str]:
    """The outcome of the command ``predict``, and what it told; rows ``aside`` may have any answer."""
    code, output = command("predict", model, file, "--output", folder / "p.csv", *options)
    if code:
        return "refused" if named(output) else "wrong", output
    got = pd.read_csv(folder / "p.csv").filter(like="p_").to_numpy()
    told, want, got = told_in(output), np.delete(want, aside, 0), np.delete(got, aside, 0)
    return ("wrong", output) if told and not named(output) else (outcome(want, got, told), output)


def batches(model: Path, file: Path, want) -> tuple[str, str]:
    """The outcome of ``predict_batches``, and what it told."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            got = pd.concat(bg.load(model).predict_batches(file, progress=False)).filter(like="p_").to_numpy()
        except ValueError as error:
            return "refused" if named(str(error)) else "wrong", str(error)
    text = "; ".join(str(warning.message) for warning in caught)
    return outcome(want, got, bool(caught)), text


def odd_entry(rng, other: Style, rows: int) -> tuple[int, str, str]:
    """A row, a column of numbers, and an entry for it in another style, or in none."""
    written = other.number(float(rng.uniform(-5000, 5000)), int(rng.integers(3)))
    return int(rng.integers(rows)), str(rng.choice(COLUMNS[:3])), str(rng.choice([*ODD, written, other.rate(0.321)]))


def read_with(file: Path, style: Style | None, want: pd.DataFrame, row: int | None = None) -> tuple[str, str]:
    """The outcome of reading a table to learn from, in a style that is said, perhaps with an odd entry in a row."""
    how, aside = {}, [] if row is None else [row]
    if style is not None:
        thousands = " " * style.thousands.isspace() or style.thousands
        how = {"sep": style.sep, "decimal": style.decimal, "thousands": thousands}
    try:
        table, account = bg.read_table(file, "kind", date="when", **how)
    except ValueError as error:
        return "refused" if named(str(error)) else "wrong", str(error)
    wrong = [
        name
        for name in COLUMNS[:3]
        if name not in table
        or not pd.api.types.is_numeric_dtype(table[name])
        or not np.allclose(table[name].drop(aside).astype(float), want[name].drop(aside), equal_nan=True)
    ]
    text = "; ".join(account.notes)
    return ("right" if not wrong else "told" if all(name in text for name in wrong) else "wrong"), text


def one(seed: int, folder: Path) -> dict[str, tuple[str, str]]:
    """The outcomes of one seed, by the way of reading, and what was told; nothing where the fit was refused."""
    rng = np.random.default_rng(seed)
    style, other, digits = Style.drawn(rng), Style.drawn(rng), int(rng.integers(1, 4))
    table, later = drawn(rng, int(rng.integers(30, 80)), digits), drawn(rng, int(rng.integers(4, 30)), digits)
    file, model = style.write(table, digits, folder / "fit.csv", rng), folder / "m.safetensors"
    roles = ["--target=kind", "--date=when", "--model=nb", f"--output={model}"]
    code, output = command("fit", file, *roles, *style.options)
    percent = style.percent != ""
    numbers = bg.NaiveBayesClassifier(unseen="missing").fit(of_numbers(table, percent), table["kind"])
    if code:
        return dict.fromkeys(WAYS, ("refused" if named(output) else "wrong", f"fit: {output}"))
    want = numbers.predict_proba(of_numbers(later, percent))
    odd, first = odd_entry(rng, other, len(later)), odd_entry(rng, other, len(table))
    same = style.write(later, digits, folder / "same.csv", rng)
    strange = other.write(later, digits, folder / "other.csv", rng)
    found = [
        predict(model, same, folder, want),
        batches(model, same, want),
        predict(model, strange, folder, want, [*other.options, *unit_of(other, style)]),
        read_with(file, None, of_numbers(table, percent)),
        predict(model, strange, folder, want),
        predict(model, style.write(later, digits, folder / "odd.csv", rng, odd), folder, want, aside=[odd[0]]),
        read_with(
            style.write(table, digits, folder / "first.csv", rng, first), style, of_numbers(table, percent), first[0]
        ),
    ]
    return dict(zip(WAYS, found, strict=True))


def tried(seed: int) -> dict[str, tuple[str, str]]:
    """The outcomes of one seed, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), contextlib.chdir(folder):
        warnings.simplefilter("ignore")
        return one(seed, Path(folder))


def main(count: int = 2000, only: int | None = None) -> bool:
    """Try so many seeds, or one; print what was told of a file in the style of the fit, and every failure."""
    counts, failed, seeds = Counter(), False, range(count) if only is None else [only]
    with ProcessPoolExecutor() as pool:
        outcomes = [*pool.map(tried, seeds, chunksize=10)]
    for seed, found in zip(seeds, outcomes, strict=True):
        for way, (result, text) in found.items():
            counts[way, result] += 1
            failed |= result == "wrong"
            if result == "wrong" or (way in WAYS[:2] and result != "right") or only is not None:
                print(f"{seed} {way}: {result}: {text:.300}", flush=True)
    if only is None:
        rows = [[way, *(counts[way, result] for result in OUTCOMES)] for way in WAYS]
        with TABLE.open("w", newline="") as opened:
            csv.writer(opened, lineterminator="\n").writerows([["rows are read in", *OUTCOMES], *rows])
        print(TABLE.read_text())
    return failed
