"""Random tables, whole and damaged: ``python tests/fuzz_inputs.py 3600`` writes docs/reliability/inputs.csv.

Tables in the styles of offices are another command, ``python tests/fuzz_inputs.py offices 2000``; see `fuzz_offices`.

For as many seconds as it is given, one attack after another, each drawn from its own seed, in a folder of its own:

- the same table in another dress (separator, quotes, line ends, encoding, compression, Parquet) must be the same table,
  read at once and in batches, by Python and by the command line;
- a table with bytes changed, cut off or repeated must be refused, or read alike by Python and by the command line;
- a command line with arguments at random must end with exit code 0 or 2.

Nothing may end in a traceback, change an input, leave a file behind, or replace an output by half of another. A failure
is printed with its number, and ``python tests/fuzz_inputs.py 0 NUMBER`` repeats it.
"""

import bz2
import contextlib
import csv
import gzip
import io
import lzma
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import fuzz_offices
import numpy as np
import pandas as pd
from fuzz_files import damaged
from typer.testing import CliRunner

import bayesgen as bg
from bayesgen.cli import app

SECONDS, MEMORY = 60, 8 << 30  # of one attack
TABLE = Path(__file__).parents[1] / "docs" / "reliability" / "inputs.csv"
PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
WORDS = ["red", "green", "sea blue", 'the "old" one', "a;b,c", "line\nbreak", "naïve", "日本"]


class Failure(Exception):
    """An outcome that must not happen."""


def require(good, problem) -> None:
    """Fail with a problem unless all is good."""
    if not good:
        raise Failure(problem)


def drawn(rng, rows=None) -> pd.DataFrame:
    """A table of numbers, whole numbers, words and gaps, with a class."""
    rows = rows or int(rng.integers(12, 60))
    y = np.arange(rows) % 2
    words = rng.choice(WORDS, 3, replace=False)
    table = pd.DataFrame(
        {
            "size": (rng.normal(size=rows) + y).round(int(rng.integers(1, 6))),
            "count": rng.poisson(2.0 + y),
            "colour": words[rng.integers(3, size=rows)],
            "far": rng.normal(size=rows) * 10.0 ** rng.integers(-8, 9),
            "kind": np.array(["yes", "no"])[y],
        }
    )
    for name in ("size", "colour"):
        table.loc[rng.random(rows) < 0.1, name] = np.nan
    return table.sample(frac=1.0, random_state=int(rng.integers(1 << 31))).reset_index(drop=True)


def dressed(table, folder: Path, rng) -> tuple[Path, dict]:
    """A file of the table in some dress, and the options by which it is read."""
    if rng.random() < 0.2:
        path = folder / "dressed.parquet"
        table.to_parquet(path, row_group_size=int(rng.integers(3, 40)))
        return path, {}
    sep, decimal = [(",", "."), (";", "."), (";", ","), ("\t", ".")][rng.integers(4)]
    suffix = list(PACKERS)[rng.integers(len(PACKERS))]
    text = table.to_csv(
        index=False,
        sep=sep,
        decimal=decimal,
        quoting=int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])),
        lineterminator=str(rng.choice(["\n", "\r\n"])),
    )
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
    path = folder / f"dressed.csv{suffix}"
    path.write_bytes(PACKERS[suffix](text.encode(encoding)))
    return path, {"sep": sep, "decimal": decimal}


def plain(folder: Path, table, name="plain.csv") -> Path:
    """A file of the table as a program writes it."""
    table.to_csv(folder / name, index=False)
    return folder / name


def naive_bayes():
    return bg.NaiveBayesClassifier(unseen="missing")


def at_once(path, **options):
    """Naive Bayes of a file read at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table, _ = bg.read_table(path, "kind", **options)
        return naive_bayes().fit(table.drop(columns="kind"), table["kind"].to_numpy()), table


def command(*arguments) -> int:
    """The exit code of a command, which ends by itself and prints no traceback."""
    result = CliRunner().invoke(app, [str(own) for own in arguments])
    wrong = result.exception is not None and not isinstance(result.exception, SystemExit)
    require(not wrong, f"the command line raised {result.exception!r:.300}")
    require("Traceback" not in result.output, "the command line printed a traceback")
    require(result.exit_code in (0, 2), f"the command line ended with {result.exit_code}: {result.output[-300:]}")
    return result.exit_code


def options_of(options) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]


def same(one, other, rows) -> None:
    """Two classifiers must give the same probabilities."""
    columns = list(one.schema_.columns)
    require(sorted(columns) == sorted(other.schema_.columns), f"columns {columns}, {list(other.schema_.columns)}")
    apart = np.abs(one.predict_proba(rows[columns]) - other.predict_proba(rows[list(other.schema_.columns)])).max()
    require(apart < 1e-9, f"probabilities apart by {apart:.1e}")


def dress(folder: Path, rng) -> str:
    """Read a table in another dress, at once, in batches, and by the command line."""
    table = drawn(rng)
    path, options = dressed(table, folder, rng)
    wanted, rows = at_once(plain(folder, table))
    same(wanted, at_once(path, **options)[0], rows)
    code = command(
        "fit", path, "--target=kind", "--model=nb", f"--output={folder / 'm.safetensors'}", *options_of(options)
    )
    require(code == 0, "the command line refused a whole table")
    same(wanted, bg.load(folder / "m.safetensors"), rows)
    kept = [name for name in table.columns if name in wanted.schema_.columns or name == "kind"]
    whole = plain(folder, table[kept], "kept.csv")
    found = naive_bayes().fit_batches(whole, "kind", progress=False)
    same(wanted, found, rows)
    wrote = found.predict_batches(whole, folder / "p.csv", progress=False)
    told = pd.read_csv(folder / "p.csv", keep_default_na=False)
    require(wrote == len(table) == len(told), f"{wrote} predictions of {len(table)} rows")
    apart = np.abs(told.filter(like="p_").to_numpy() - found.predict_proba(rows[list(found.schema_.columns)])).max()
    require(apart < 1e-6, f"predictions in a file apart by {apart:.1e}")
    return "equal"


def damage(folder: Path, rng) -> str:
    """Read a damaged file, at once, in batches, and by the command line."""
    table = drawn(rng)
    path, options = dressed(table, folder, rng)
    content = path.read_bytes()
    if rng.random() < 0.3:  # a part of it again, as where a copy went on after a break
        first, last = np.sort(rng.integers(len(content), size=2))
        content = content[:last] + content[first:]
    else:
        content = damaged(content, rng)
    path.write_bytes(content)
    output = folder / "m.safetensors"
    output.write_text("of an earlier day")
    code = command("fit", path, "--target=kind", "--model=nb", f"--output={output}", *options_of(options))
    require(path.read_bytes() == content, "the input was changed")
    if code == 2:
        require(output.read_text() == "of an earlier day", "a refused fit replaced its output")
    try:
        wanted, rows = at_once(path, **options)
    except (ValueError, TypeError) as error:
        require(code == 2, f"Python refused what the command line read: {error}")
        return "refused"
    require(code == 0, "the command line refused what Python read")
    same(wanted, bg.load(output), rows)
    return "read"


_FLAGS = ["--target", "--model", "--drop", "--id", "--group", "--categorical", "--count", "--bernoulli", "--log"]
_FLAGS += ["--date", "--missing", "--sep", "--decimal", "--thousands", "--limits", "--seed", "--inference"]
_VALUES = ["kind", "size", "count", "colour", "far", "none", "", ",", "nb", "gda", "averaged", "logistic", "map", "ml"]
_VALUES += ["exact", "-1", "3", "1e9", "\x1b[31m", "é", "a,b", "tab", ".", "plain.csv", "m.safetensors", "*", "."]


def arguments(folder: Path, rng) -> str:
    """Give commands arguments at random."""
    table = drawn(rng)
    file, output = plain(folder, table), folder / "m.safetensors"
    content = file.read_bytes()
    given = ["--target", "kind"] if rng.random() < 0.8 else []
    for _ in range(int(rng.integers(4))):
        flag = str(rng.choice(_FLAGS))
        given.append(flag)
        if flag != "--limits":
            given.append(str(rng.choice(_VALUES)))
    model = [] if "--model" in given or rng.random() < 0.1 else ["--model", "nb"]
    with contextlib.chdir(folder):
        code = command("fit", file, *given, *model, "--output", output)
        require((code == 0) == output.exists(), "an output of a refused fit, or none of a fit")
        if code == 0:
            more = [str(rng.choice([*_FLAGS, "--output"])), str(rng.choice(_VALUES))] if rng.random() < 0.5 else []
            command("predict", output, file, "--output", folder / "p.csv", *more)
    require(file.read_bytes() == content, "the input was changed")
    return "done" if code == 0 else "refused"


ATTACKS = {"another dress": dress, "damage": damage, "arguments": arguments}


def attack(number: int, folder: Path) -> tuple[str, str]:
    """Return the name of an attack, and its outcome."""
    name = list(ATTACKS)[number % len(ATTACKS)]
    before = set(folder.parent.iterdir())
    result = ATTACKS[name](folder, np.random.default_rng(number))
    require(set(folder.parent.iterdir()) == before, "a file beside the folder")
    hidden = [path.name for path in folder.rglob(".*")]
    require(not hidden, f"left behind: {hidden}")
    return name, result


def late(*_):
    raise Failure(f"more than {SECONDS} s")


def main(seconds=3600.0, only=None) -> bool:
    """Attack for so many seconds, or once by a number; write the table; return True if anything failed."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, late)
    end, number, came, slowest, failed = time.perf_counter() + seconds, 0, Counter(), Counter(), 0
    while only is not None or time.perf_counter() < end:
        number, start = number if only is None else only, time.perf_counter()
        name = list(ATTACKS)[number % len(ATTACKS)]
        signal.alarm(SECONDS)
        try:
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (inner := Path(folder) / "own").mkdir()
                with contextlib.redirect_stderr(io.StringIO()):
                    _, result = attack(number, inner)
        except Exception as error:
            failed, result = failed + 1, "failed"
            print(f"{number} ({name}): {error!r:.400}", flush=True)
            if not isinstance(error, Failure) or only is not None:
                traceback.print_exc()
        finally:
            signal.alarm(0)
        came[name, result] += 1
        slowest[name] = max(slowest[name], time.perf_counter() - start)
        if only is not None:
            print(name, result)
            return bool(failed)
        number += 1
    kinds = ["equal", "read", "done", "refused", "failed"]
    with TABLE.open("w", newline="") as file:
        rows = [[name, *(came[name, kind] for kind in kinds), f"{slowest[name]:.2f}"] for name in ATTACKS]
        csv.writer(file, lineterminator="\n").writerows([["attack", *kinds, "slowest, s"], *rows])
    print(TABLE.read_text())
    return bool(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["offices"]:
        sys.exit(fuzz_offices.main(*map(int, sys.argv[2:4])))
    sys.exit(main(*map(float, sys.argv[1:2]), *map(int, sys.argv[2:3])))
