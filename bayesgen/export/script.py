"""The script: a classifier in plain numbers, and the functions beside it that read them, in one text."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayesgen.core.errors import counted
from bayesgen.export.plain import plain
from bayesgen.export.wording import packaged, sentences
from bayesgen.files import disk

DRAWS = 400
SCRIPT = "a script in JavaScript", (".js", ".mjs")  # what a file holds, and how its name ends
_LARGEST = 10_000_000  # bytes of a script
# files, in order
_PARTS = ("numbers", "rows", "texts", "entries", "kinds", "average", "mixture", "regression", "answers", "questions")
_UNREAD = ("no_number", "two_numbers", "no_unit", "a_percent")  # sentences on a text that is no value
_EXPORTS = (
    "export { model, predictProba, predictLogProba, predictProbaInterval, explain, nextMeasurement, nextMeasurements, "
    "typicality, decide, remarks, parse };"
)


def script(classifier) -> str:
    """Return a fitted classifier as one plain script in JavaScript, which answers as `predict_proba` does.

    Its functions take a row as an object by column name, where null is unknown: ``predictProba(row)``,
    ``predictProbaInterval(row)``, ``explain(row, label)``, ``nextMeasurement(row)``, ``typicality(row)``,
    ``decide(probabilities, loss)``. ``parse(texts)`` makes such a row of texts: numbers as the file of the fit writes
    them, or else as a language does, ``parse(texts, {language: "de"})``, dates, words for gaps. The script needs
    nothing else, and runs in every browser and in Node. The last line of the text is the only one that makes it a
    module; without it, it is a script for a page.

    Parameters
    ----------
    classifier : fitted classifier
        Naive Bayes, a Gaussian discriminant or latent classes, whose leaves say of which kind their density is
        (`bayesgen.models.leaf.Leaf.density`); an average, whose members say it
        (`bayesgen.averaging.member.FittedMembers.written`); or a logistic, probit or ordered regression, which takes no
        gaps and has no ``nextMeasurement`` and no ``typicality`` (they are null). Of a sampled posterior the script
        holds at most 400 draws, chosen evenly: its probabilities are the averages over these.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier
    >>> X, y = [[1.0], [1.4], [3.1], [2.9]], ["a", "a", "b", "b"]
    >>> text = script(NaiveBayesClassifier().fit(X, y))
    >>> text.splitlines()[-1][:40]
    'export { model, predictProba, predictLog'
    """
    return f"{source(plain(classifier, DRAWS))}\n{_EXPORTS}\n"


def source(made: Mapping[str, Any]) -> str:
    """Return the script of a classifier in plain numbers, without the line that makes it a module."""
    about = made["about"]
    head = f"// {about['model']}, a classifier of bayesgen {about['version']}, exported on {about['date']}."
    if about["draws"]:
        shipped, of = about["draws"]
        head += f"\n// Its probabilities are averages over {counted(shipped, 'draw')} of {of}."
    model = ",\n".join(f"  {name}: {literal(value)}" for name, value in made.items() if name != "kinds")
    text = f'{head}\n"use strict";\n\nconst model = {{\n{model},\n}};\n{functions(made)}'
    if len(text) > _LARGEST:
        trees = sum(len(literal(factor)) for factor in made["factors"] if "child" in factor)
        cure = "members='generative', which have no trees" if trees > len(text) / 2 else "fewer columns or categories"
        size = f"{len(text) / 1e6:.1f} MB, {trees / 1e6:.1f} of them trees, and {_LARGEST // 10**6} are the most"
        raise ValueError(f"{about['model']} makes a script of {size}: fit it with {cure}")
    return text


def functions(made: Mapping[str, Any]) -> str:
    """Return what reads a classifier in plain numbers: its sentences, and the files that it needs."""
    without = {"regression": "score", "average": "average"}  # files that only some classifiers need, and their sign
    texts = {name: packaged(f"{name}.js") for name in _PARTS if without.get(name, "classes") in made}
    texts["kinds"] += "".join(f"KINDS.{kind} = {text};\n" for kind, text in made.get("kinds", {}).items())
    said = literal({key: text for key, text in sentences().items() if key in _UNREAD})
    return "\n".join([f"const sentences = {said};\n", *texts.values()])


def literal(value: Any) -> str:
    """Return a value as JavaScript writes it, of ASCII alone, without a sign that would end a script in a page."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def export(classifier, path, dialect: str = "javascript") -> None:
    """Write the classifier as a program in JavaScript that needs no Python, see `bayesgen.export.script`.

    Parameters
    ----------
    path : str or Path
        The file, ``model.js`` or ``model.mjs``. It is written as a whole or not at all.
    dialect : str, default "javascript"
        The language, of which there is one. SQL is no longer written: `predict_batches` takes relations of DuckDB.

    Raises
    ------
    ValueError
        Before anything is written: if the name of the file ends otherwise, or the classifier cannot be exported.
    """
    if dialect != "javascript":
        cure = "SQL is no longer written; predict_batches() of the classifier reads relations of DuckDB"
        raise ValueError(f"dialect must be 'javascript', got {dialect!r}: {cure}")
    disk.check_ending(path, *SCRIPT)
    text = script(classifier)
    with disk.writing(Path(path)) as file:
        file.write(text.encode())
