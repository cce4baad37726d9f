"""A fitted classifier as one SELECT of DuckDB, for tables that stay in a database."""

from typing import Any

import numpy as np

from bayesgen.export.plain import plain
from bayesgen.numerics.special import log_gamma_ratio

_FIELDS = ("location", "scale", "dof", "mean", "rate")
_JAVASCRIPT = "export it to JavaScript: export('model.js')"


def query(classifier) -> str:
    """Return a SELECT of the probability of each class, p_ and its label, for every row of the table ``rows``.

    NULL is a gap, and integrated out.

    Parameters
    ----------
    classifier : fitted classifier
        Naive Bayes of Gaussian, Bernoulli, categorical and Poisson leaves, or a Gaussian discriminant whose columns
        stand apart; exact or a point.
    """
    made = plain(classifier, 1)
    kinds = {factor["kind"] for factor in made["factors"]}
    packed = (*_FIELDS, "mass")  # arrays too large to be written as a query
    strange = [
        factor
        for factor in made["factors"]
        if {"joint", "shift"} & factor.keys() or any(isinstance(factor.get(name), str) for name in packed)
    ]
    if made["kind"] == "draws" or kinds - {"gaussian", "list", "count"} or strange:
        what = f"{sorted(kinds)}" if made["kind"] != "draws" else "draws of a sampler"
        raise ValueError(f"{type(classifier).__name__} of {what} cannot be written in SQL; {_JAVASCRIPT}")
    classes, prior = len(made["classes"]), np.log(made["priors"])
    scores = []
    for k in range(classes):
        terms = [term for factor in made["factors"] for term in _terms(factor, made, k)]
        evidence = " + ".join(["0.0", *terms])
        scores.append(f"{_number(prior[k])} + {_number(made['exponent'])} * ({evidence}) AS score_{k}")
    total = " + ".join(f"exp(score_{k} - top)" for k in range(classes))
    inner = ",\n    ".join(scores)
    probabilities = ",\n  ".join(
        f"exp(score_{k} - top) / ({total}) AS {_name('p_' + label)}" for k, label in enumerate(made["classes"])
    )
    top = ", ".join(f"score_{k}" for k in range(classes))
    left = ", ".join([*(f"score_{k}" for k in range(classes)), "top"])
    return (
        f"-- {made['about']['model']} of bayesgen {made['about']['version']}: write the name of a table for rows.\n"
        f"SELECT * EXCLUDE ({left}),\n  {probabilities}\nFROM (SELECT *, greatest({top}) AS top FROM (SELECT *,\n"
        f"    {inner}\n  FROM rows));\n"
    )


def _terms(factor: dict[str, Any], made: dict[str, Any], k: int) -> list[str]:
    """Return log p(x_j | k) of each column of a factor, 0 where it is NULL."""
    shape, terms = (len(made["classes"]), len(factor["columns"])), []
    values = {name: np.broadcast_to(factor[name], shape) for name in _FIELDS if name in factor}
    for i, j in enumerate(factor["columns"]):
        about, each = made["columns"][j], {name: float(v[k, i]) for name, v in values.items()}
        column = _name(about["name"])
        if factor["kind"] == "gaussian":
            terms.append(f"coalesce({_gaussian(column, **each)}, 0.0)")
        elif factor["kind"] == "count":
            terms.append(f"coalesce({_count(column, **each)}, 0.0)")
        else:
            mass = np.broadcast_to(factor["mass"], (*shape, factor["size"]))[k, i]
            with np.errstate(divide="ignore"):
                cases = zip(about["categories"], np.log(mass), strict=True)
            when = " ".join(f"WHEN {_label(label)} THEN {_number(value)}" for label, value in cases)
            seen = column if about["kind"] == "category" else f"CAST({column} AS INTEGER)"
            text = f"column {about['name']}: a value that was not there at fit"
            other = "0.0" if made["unseen"] == "missing" and about["kind"] == "category" else f"error({_label(text)})"
            terms.append(f"CASE WHEN {column} IS NULL THEN 0.0 ELSE CASE {seen} {when} ELSE {other} END END")
    return terms


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
