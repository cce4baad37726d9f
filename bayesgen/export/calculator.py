"""A fitted classifier as one web page, which anyone opens: no server, no network, nothing to install.

The page holds the scorer (`bayesgen.export.script`), the words of its author, and a script that asks the scorer. Style
and script are allowed by their hashes, and nothing else is: what is entered cannot leave the page. Names and words are
data of the script, which shows them as text.
"""

import base64
import hashlib
import html
import re
from pathlib import Path
from string import Template
from typing import Any

from bayesgen.core.errors import InputWarning, listed, warn
from bayesgen.decision.outcomes import aligned_loss, costs_of
from bayesgen.export.plain import plain
from bayesgen.export.script import DRAWS, literal, source
from bayesgen.export.wording import doubts, packaged, page_words
from bayesgen.files import disk

PAGE = "a page", (".html", ".htm")  # what a file holds, and how its name ends


def to_page(classifier, path, *, loss=None, cost: Any = None, words=None) -> None:
    """Write the classifier as one web page that asks for values and answers as `predict_proba` does.

    The page shows the probability of each class with its interval, why it is so, what to ask next, and a warning where
    the values are like nothing seen. It opens in every browser, by a double click too, and sends nothing anywhere. A
    fit at a point has no interval, and the page says so.
    Regressions need every value, and say which is missing; they know nothing of what to ask next, of other shares of
    the classes, or of values that are like nothing seen.

    Parameters
    ----------
    path : str or Path
        The file, ``calculator.html`` or another that ends in .html or .htm. It is written as a whole or not at all.
    loss : DataFrame or array_like, shape (K, A), optional
        Losses of actions as in `bayesgen.decision.decide`: the page then shows the action of least expected loss, and
        asks next by what an answer saves. The columns of a DataFrame name the actions; an array takes the classes.
    cost : float, mapping or Series from column to float, or array of shape (columns,), optional
        Cost of asking for a column, in the unit of the loss, as in `bayesgen.inspection.next_measurement`.
    words : str, Path or mapping, optional
        Words of the page, a file in TOML or what it holds: `bayesgen.export.words_template` returns one to fill in.

    Raises
    ------
    ValueError, TypeError
        Before anything is written: if the name of the file ends otherwise; if the classifier cannot be exported, and
        what can; if loss, cost or words name a class or column that there is not, in words with the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from bayesgen import NaiveBayesClassifier, data
    >>> X = data.load("penguins")
    >>> y = X.pop("species")
    >>> classifier = NaiveBayesClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     classifier.to_page(Path(folder, "calculator.html"), words={"title": "Which penguin is it?"})
    ...     page = Path(folder, "calculator.html").read_text()
    >>> "<h1>Which penguin is it?</h1>" in page
    True
    """
    disk.check_ending(path, *PAGE)
    disk.destination(path)
    model = plain(classifier, DRAWS)
    losses = None if loss is None else _losses(loss, classifier.classes_.tolist())
    names = classifier.schema_.columns
    costs = list(zip(names, costs_of(names, cost).tolist(), strict=True))  # pairs: a name may be __proto__
    said, files = page_words(words, model)
    for doubt in doubts(model):
        warn(InputWarning(doubt))
    options = said | {"losses": losses, "costs": costs, "left_out": model["unused"]}
    page = _page(source(model), options).encode()
    with disk.writing(Path(path), files) as file:
        file.write(page)


def _losses(loss, classes) -> dict[str, Any]:
    matrix, actions = aligned_loss(loss, classes, len(classes))
    if actions is None:
        if matrix.shape[1] != len(classes):
            unnamed = f"its {matrix.shape[1]} actions, which are not the classes {listed(classes)}"
            raise ValueError(f"loss must name {unnamed}: give a DataFrame, whose columns name them")
        actions = classes
    return {"loss": matrix.tolist(), "actions": [str(action) for action in actions]}


def _page(scorer: str, options: dict[str, Any]) -> str:
    """Return the page of a scorer, with the options of the page's own script."""
    script = f"{scorer}\nconst page = {literal(options)};\n{packaged('elements.js')}\n{packaged('calculator.js')}"
    noscript, title = _text(options["sentences"]["noscript"]), _text(options["title"])
    given = {"language": options["language"], "noscript": noscript, "title": title}
    return framed("calculator.html", **given, script=script, script_hash=_hash(script))


def framed(name: str, **given: str) -> str:
    """Return a page by the name of its frame, with the style of all pages; what is not given is left to fill in."""
    style = packaged("calculator.css")
    return Template(packaged(name)).safe_substitute(style=style, style_hash=_hash(style), **given)


def _text(text: str) -> str:
    """Return a text as HTML has it, without the control characters that it cannot have."""
    return html.escape(re.sub(r"[\x00-\x1f\x7f]+", " ", text))


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
