"""A fitted classifier as one SELECT of DuckDB, for tables that stay in a database."""

from typing import Any

import numpy as np

from bayesgen.core.errors import listed
from bayesgen.export.plain import plain
from bayesgen.numerics.special import log_gamma_ratio

_FIELDS = ("location", "scale", "dof", "mean", "rate")
_JAVASCRIPT = "export it to JavaScript: export('model.js')"


def query(classifier) -> str:
    """Return a SELECT of the probability of each class, p_ and its label, for every row of the table ``rows``.

    NULL is a gap, and integrated out. A regression gives NULL for it, unless it fills gaps. `export` says which
    classifiers there are.
    """
    made = plain(classifier, 1)
    score = made.get("score", {})
    parts = [*made["factors"], score]
    kinds = {factor["kind"] for factor in made["factors"]} | {score[name] for name in ("link",) if name in score}
    large = any(isinstance(part.get(name), dict) for part in parts for name in (*_FIELDS, "mass", "weights"))
    refused = {
        "draws of a sampler": made["kind"] == "draws",
        "many members": made["kind"] == "average",
        "logarithms": made["derived"],
        listed(sorted(kinds)): kinds - {"gaussian", "list", "count", "logistic"},
        "columns that share their variance": any(part.get("joint") for part in parts),
        "more numbers than a query holds": large,
    }
    if what := [words for words, there in refused.items() if there]:
        raise ValueError(f"{type(classifier).__name__} of {what[0]} cannot be written in SQL; {_JAVASCRIPT}")
    classes = range(len(made["classes"]))
    scores = _lines(made) if score else [_evidence(made, k) for k in classes]
    inner = ",\n    ".join(f"{line} AS score_{k}" for k, line in enumerate(scores))
    names = ", ".join(f"score_{k}" for k in range(len(scores)))
    if "cuts" in score:
        found = _between(np.ravel(score["cuts"]))
    else:
        total = " + ".join(f"exp(score_{k} - top)" for k in classes)
        found = [f"exp(score_{k} - top) / ({total})" for k in classes]
    labelled = zip(found, made["classes"], strict=True)
    probabilities = ",\n  ".join(f"{each} AS {_name('p_' + label)}" for each, label in labelled)
    return (
        f"-- {made['about']['model']} of bayesgen {made['about']['version']}: write the name of a table for rows.\n"
        f"SELECT * EXCLUDE ({names}, top),\n  {probabilities}\nFROM (SELECT *, greatest({names}) AS top FROM (SELECT *,"
        f"\n    {inner}\n  FROM rows));\n"
    )


def _evidence(made: dict[str, Any], k: int) -> str:
    """Return log p(x, k) of a generative classifier."""
    terms = [term for factor in made["factors"] for term in _terms(factor, made, k)]
    evidence = " + ".join(["0.0", *terms])
    return f"{_number(np.log(made['priors'][k]))} + {_number(made['exponent'])} * ({evidence})"


def _lines(made: dict[str, Any]) -> list[str]:
    """Return the scores of a regression, sums of a term for each column."""
    score, lines = made["score"], []
    centre, scale = np.array(score["centre"]), np.array(score["scale"])
    rows = len(made["classes"]) if score["kind"] == "softmax" else 1
    for intercept, *slopes in np.broadcast_to(score["weights"], (1, rows, 1 + len(centre)))[0]:
        terms, place = [], 0
        for about in made["columns"]:
            b = np.array(slopes[place:])
            if about["kind"] in ("category", "bool"):
                # the columns of the score for each category, or for no and yes
                each = np.eye(len(about["categories"])) if about["kind"] == "category" else np.array([[0.0], [1.0]])
                size = each.shape[1]
                z = (each - centre[place : place + size]) / scale[place : place + size]
                term = _cases(about, made, z @ b[:size], "NULL")
            else:
                size, number = 1, f"({_value(about)} - {_number(centre[place])}) / {_number(scale[place])}"
                term = f"{number} * {_number(b[0])}"
            terms.append(f"coalesce({term}, 0.0)" if made["gaps"] else f"({term})")
            place += size
        lines.append(" + ".join([_number(intercept), *terms]))
    return lines


def _between(cuts) -> list[str]:
    """Return F(high - s) - F(low - s) for the cuts around each class, F the logistic function of a score s."""
    ends = ["1", *(f"(1 + exp({_number(cut)} - score_0))" for cut in cuts), ""]
    tops = ["", *(f"(1 + exp(score_0 - {_number(cut)}))" for cut in cuts), "1"]
    inner = -np.expm1(-np.diff(cuts, prepend=-np.inf, append=np.inf))
    return [f"{_number(mass)} / ({tops[k + 1]} * {ends[k]})" for k, mass in enumerate(inner)]


def _terms(factor: dict[str, Any], made: dict[str, Any], k: int) -> list[str]:
    """Return log p(x_j | k) of each column of a factor, 0 where it is NULL."""
    shape, terms = (len(made["classes"]), len(factor["columns"])), []
    values = {name: np.broadcast_to(factor[name], shape) for name in _FIELDS if name in factor}
    for i, j in enumerate(factor["columns"]):
        about, each = made["columns"][j], {name: float(v[k, i]) for name, v in values.items()}
        column = _value(about)
        if factor["kind"] == "gaussian":
            terms.append(f"coalesce({_gaussian(column, **each)}, 0.0)")
        elif factor["kind"] == "count":
            terms.append(f"coalesce({_count(column, **each)}, 0.0)")
        else:
            mass = np.broadcast_to(factor["mass"], (*shape, factor["size"]))[k, i]
            with np.errstate(divide="ignore"):
                terms.append(_cases(about, made, np.log(mass), "0.0"))
    return terms


def _value(about: dict[str, Any]) -> str:
    """Return the number or category of a column."""
    name, kind = _name(about["name"]), about["kind"]
    if kind == "date":
        return f"date_diff('day', DATE '1970-01-01', CAST({name} AS DATE))"
    return f"CAST({name} AS INTEGER)" if kind == "bool" else name


def _cases(about: dict[str, Any], made: dict[str, Any], values, missing: str) -> str:
    """Return the value of each category of a column; ``missing`` where it is NULL, or new and taken as missing."""
    pairs = zip(about["categories"], values, strict=True)
    when = " ".join(f"WHEN {_label(label)} THEN {_number(value)}" for label, value in pairs)
    as_missing = made["unseen"] == "missing" and about["kind"] == "category"
    column, told = _value(about), f"column {about['name']}: a value that was not there at fit"
    other = missing if as_missing else f"error({_text(told)})"
    return f"CASE WHEN {column} IS NULL THEN {missing} ELSE CASE {column} {when} ELSE {other} END END"


def _gaussian(x: str, location: float, scale: float, dof: float) -> str:
    """Return the log density of Student's t; log(1 + u) is 2 atanh(u / (2 + u)), which keeps the digits of small u."""
    width = scale * (dof**0.5 if np.isfinite(dof) else 1.0)
    z = f"(({x} - {_number(location)}) / {_number(width)})"
    if np.isinf(dof):
        return f"({_number(-0.5 * np.log(2 * np.pi) - np.log(scale))} - 0.5 * {z} * {z})"
    level = float(log_gamma_ratio(dof / 2, 0.5)) - 0.5 * np.log(np.pi) - np.log(width)
    near = f"2 * atanh({z} * {z} / (2 + {z} * {z}))"
    middle, far = f"ln(1 + {z} * {z})", f"2 * ln(abs({z}))"
    log = f"CASE WHEN abs({z}) < 1 THEN {near} WHEN abs({z}) < 1e9 THEN {middle} ELSE {far} END"
    return f"({_number(level)} - {_number((dof + 1) / 2)} * CASE WHEN {x} IS NULL THEN NULL ELSE {log} END)"


def _count(x: str, mean: float, rate: float) -> str:
    """Return the log probability of a count, negative binomial or Poisson."""
    if np.isinf(rate):
        return f"({x} * {_number(np.log(mean))} - {_number(mean)} - lgamma({x} + 1))"
    a = mean * rate
    level = -float(a * np.log1p(1 / rate))
    ways = f"lgamma({x} + {_number(a)}) - lgamma({_number(a)}) - lgamma({x} + 1)"
    return f"({ways} + {_number(level)} - {x} * {_number(np.log1p(rate))})"


def _number(value: float) -> str:
    text = repr(float(value))
    return f"CAST('{text}' AS DOUBLE)" if not np.isfinite(value) else f"({text if 'e' in text else text + 'e0'})"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _label(label) -> str:
    return str(int(label)) if isinstance(label, bool) else repr(label) if not isinstance(label, str) else _text(label)


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
