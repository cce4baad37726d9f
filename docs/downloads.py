"""A lecture as the Jupyter notebook that a student downloads; `docs/conf.py` writes one beside each page."""

import re

import jupytext

_LINK = re.compile(r"\{doc\}`([^`<]+) <([^`>]+)>`")
_SOLUTION = re.compile(r"<details>\n<summary>([^<]+)</summary>\n\n(.*?)\n</details>\n", re.DOTALL)
_CELL = re.compile(r"(^```\{code-cell\}\n.*?^```\n)", re.MULTILINE | re.DOTALL)
_HIDDEN = ':jupyter: {"source_hidden": true, "outputs_hidden": true}\n:tags: ["hide-cell"]\n'


def notebook(text: str):
    """The notebook of a lecture in MyST Markdown: links lead to the other notebooks, and solutions are folded.

    Other pages of the site are named without a link, since nobody downloads them.

    On the site one ``<details>`` folds a whole solution. Jupyter shows each cell by itself, so there every piece of
    words has a fold of its own, and the source and the output of every code cell are hidden until they are clicked.
    """
    text = _SOLUTION.sub(_folded, _LINK.sub(_led, text))
    return jupytext.reads(text, "md:myst")


def _led(link: re.Match) -> str:
    words, page = link.groups()
    return words if "/" in page else f"[{words}]({page}.ipynb)"


def _folded(solution: re.Match) -> str:
    title, body = solution.groups()
    parts, begun = [], False
    for piece in _CELL.split(body):
        if piece.startswith("```{code-cell}\n"):
            parts.append(("" if begun else f"**{title}**, in the hidden cell below\n\n") + _hidden(piece))
        elif piece.strip():
            summary = f"{title}, continued" if begun else title
            parts.append(f"<details>\n<summary>{summary}</summary>\n\n{piece.strip()}\n\n</details>\n")
        begun = begun or bool(piece.strip())
    return "+++\n\n" + "\n".join(parts) + "\n+++\n"


def _hidden(cell: str) -> str:
    return cell.replace("```{code-cell}\n", "```{code-cell}\n" + _HIDDEN, 1)
