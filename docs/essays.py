"""Essays, pictures that move: `python docs/essays.py` writes what they share into each page of docs/essays.

A page is one file that needs no other. Style, conjugate updates and elements are written once, in `essay.css` and
`conjugate.js`; special functions and random numbers are those of exported classifiers, `bayesgen/export/numbers.js`.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "essays"
NUMBERS = FOLDER.parent.parent / "bayesgen" / "export" / "numbers.js"
PAGES = sorted(FOLDER.glob("*.html"))
_SHARED = re.compile(r"(/\* begin ([\w.]+) \*/\n).*?(/\* end \*/)", re.DOTALL)


def script() -> str:
    """Return what the scripts of all essays begin with."""
    return "\n".join(path.read_text(encoding="utf-8") for path in (NUMBERS, FOLDER / "conjugate.js"))


def written(page: str) -> str:
    """Return the text of a page with what it shares as it is now."""
    shared = {"conjugate.js": script(), "essay.css": (FOLDER / "essay.css").read_text(encoding="utf-8")}
    return _SHARED.sub(lambda found: f"{found[1]}{shared[found[2]]}{found[3]}", page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
