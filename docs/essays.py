"""Essays, pictures that move: `python docs/essays.py` writes what they share into each page of docs/essays.

A page is one file that needs no other. Style and conjugate updates are written once, in `essay.css` and `conjugate.js`;
special functions and random numbers are those of exported classifiers, a part of `bayesgen/export/scorer.js`.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "essays"
SCORER = FOLDER.parent.parent / "bayesgen" / "export" / "scorer.js"
PAGES = sorted(FOLDER.glob("*.html"))
_SHARED = re.compile(r"(/\* begin ([\w.]+) \*/\n).*?(/\* end \*/)", re.DOTALL)


def numbers() -> str:
    """Return the functions of the scorer that know no model."""
    text = SCORER.read_text(encoding="utf-8")
    constant = next(line for line in text.splitlines() if line.startswith("const LOG_2PI"))
    section = text.split("// ---- numbers ")[1].split("// ---- kinds of density ")[0].split("\n", 1)[1].strip()
    functions = re.findall(r"(?:/\*\*(?:(?!\*/).)*?\*/\n)?^function (\w+).*?^}$", section, re.M | re.S)
    assert {"logSum", "logGamma", "logGammaRatio", "generator"} <= set(functions)
    draw = re.search(r"^function dirichlet.*?^}$", text, re.M | re.S)
    assert draw is not None
    return f"{constant}\n\n{section}\n\n{draw[0]}\n"


def script() -> str:
    """Return what the scripts of all essays begin with."""
    return f"{numbers()}\n{(FOLDER / 'conjugate.js').read_text(encoding='utf-8')}"


def written(page: str) -> str:
    """Return the text of a page with what it shares as it is now."""
    shared = {"conjugate.js": script(), "essay.css": (FOLDER / "essay.css").read_text(encoding="utf-8")}
    return _SHARED.sub(lambda found: f"{found[1]}{shared[found[2]]}{found[3]}", page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
