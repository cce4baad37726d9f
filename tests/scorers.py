"""Engines that run an exported classifier, and rows on which it must answer as Python does."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from py_mini_racer import MiniRacer

from bayesgen.export import script


def counts(few: int):
    """Give a test ``count`` rows: a few by default, and 10,000 among the slow ones."""
    return pytest.mark.parametrize("count", [few, pytest.param(10_000, marks=pytest.mark.slow)], ids=str)


class Scorer:
    """An exported classifier in an engine: its functions by name, called with rows as records."""

    def __init__(self, classifier, engine):
        self.engine = engine
        text = script(classifier)
        assert text.isascii()
        assert "</" not in text
        assert "<!--" not in text
        engine.eval(text.rsplit("\nexport {", 1)[0])

    def ask(self, expression: str, **values) -> Any:
        """Return what an expression of JavaScript has as JSON, with values by name; infinite numbers as text."""
        given = "".join(f"const {name} = JSON.parse({json.dumps(json.dumps(v))});" for name, v in values.items())
        as_text = "(k, v) => (typeof v === 'number' && !Number.isFinite(v) ? String(v) : v)"
        return json.loads(self.engine.eval(f"(() => {{{given} return JSON.stringify({expression}, {as_text})}})()"))

    def proba(self, rows, log: bool = False, priors=None) -> np.ndarray:
        """Return class probabilities of rows, or their logs, (n, K)."""
        name = "predictLogProba" if log else "predictProba"
        found = self.ask(f"rows.map((row) => {name}(row, {{priors}}))", rows=records(rows), priors=priors)
        return np.array([[float(str(v).replace("Infinity", "inf")) for v in row] for row in found])


@contextlib.contextmanager
def scorer(classifier) -> Iterator[Scorer]:
    """Give an exported classifier in the engine that pip installs."""
    with MiniRacer() as engine:
        yield Scorer(classifier, engine)


class Page:
    """A page in an engine without a browser: its elements are objects, and what waits for idle time runs at once."""

    def __init__(self, path: Path, engine):
        self.engine = engine
        text = path.read_text(encoding="utf-8")
        program = re.search(r"<script>(.*)</script>", text, re.DOTALL)
        assert program is not None
        engine.eval((Path(__file__).parent / "page_elements.js").read_text(encoding="utf-8"))
        engine.eval(program[1])

    def cases(self, table: pd.DataFrame) -> tuple[str, list[list[str]]]:
        """Paste a table, and return the sentence about it and the lines of the answers."""
        return self.pasted(table.to_csv(sep="\t", index=False))

    def pasted(self, text: str) -> tuple[str, list[list[str]]]:
        """Paste a text."""
        return tuple(json.loads(self.engine.eval(f"JSON.stringify(pasteCases({json.dumps(text)}))")))

    def typed(self, place: int, text: str) -> list[str]:
        """Type a text into a field, and return what the page says of it: the field, answer, interval and questions."""
        return json.loads(self.engine.eval(f"JSON.stringify(typeInto({place}, {json.dumps(text)}))"))


def records(rows) -> list[dict]:
    """Return rows as JSON has them, None where unknown."""
    rows = (
        rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=[f"x{j}" for j in range(len(rows[0]))])
    )
    return [{c: None if v is None or v != v else v for c, v in row.items()} for row in rows.to_dict("records")]


def hard(X: pd.DataFrame, count: int, rng, far=(1e-300, 1e300, -1e300, 0.0)) -> pd.DataFrame:
    """Return rows picked from a table, with gaps in a sixth of the entries and far values in some numbers."""
    rows = X.iloc[rng.integers(0, len(X), count)].reset_index(drop=True)
    for column in rows:
        if rows[column].dtype.kind == "f" and len(far):
            wild = rng.random(count) < 0.02
            rows[column] = rows[column].mask(wild, rng.choice(far, count))
        gone = rng.random(count) < 1 / 6
        numbers = rows[column].dtype.kind in "if"
        rows[column] = rows[column].mask(gone) if numbers else rows[column].astype(object).where(~gone, None)
    return rows


def assert_equal(classifier, made: Scorer, rows, apart: bool = True) -> None:
    """Hold every probability of an exported classifier, and its logarithm, against Python's; print the differences.

    Where log p(x, k) is below -1e4 under every class, as with an entry of 1e300, float64 cannot hold twelve digits of a
    probability: at -7e4 Python is 5e-12 from fifty digits, and so is JavaScript. There the bound is eps |log p|.
    """
    most = 1e-12 if apart else 1e-9
    log_p, average = classifier.predict_log_proba(rows), hasattr(classifier, "average_")  # which may have no density
    joint = np.abs(log_p if average else classifier.predict_joint_log_proba(rows))
    size = 1 + np.where(np.isfinite(joint), joint, 0.0).max(1)
    found = made.proba(rows, log=True)
    assert np.array_equal(np.isfinite(found), np.isfinite(log_p))
    with np.errstate(invalid="ignore"):
        apart_log = np.nanmax(np.abs(found - log_p) / size[:, None])
    apart_p = np.abs(made.proba(rows) - classifier.predict_proba(rows)).max(1)
    near = apart_p[size < 1e4].max(initial=0.0)
    print(f"{len(rows)} rows: |dp| {near:.1e}, far out {apart_p.max():.1e}; |d log p| {apart_log:.1e} (1 + |log p|)")
    assert apart_log <= most
    assert (apart_p <= np.maximum(most, np.finfo(float).eps * size)).all()
