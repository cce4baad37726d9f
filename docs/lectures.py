"""Where each subject of the slides is taught: `python docs/lectures.py` prints the lines of docs/lectures.md.

Each line names a section of a notebook; its numbers must stand in the outputs of the cells of that very section.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent
_ROW = re.compile(
    r"^\| ([A-Z]a?\d[\d,-]*) \| (.*?) \| \[[^]]+\]\(tutorials/([\w-]+)\.md#([\w-]+)\) \| .* \| (.*?) ?\|$", re.M
)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """A subject of a slide: the notebook and the anchor of the section that teaches it, and the numbers it shows."""

    slide: str
    subject: str
    notebook: str
    anchor: str
    numbers: tuple[str, ...]

    def found(self) -> list[str]:
        """Return the section's title and the line of output that holds each number, or raise where none does."""
        title, output = section(self.notebook, self.anchor)
        shown = [next((line for line in output.splitlines() if number in line), None) for number in self.numbers]
        for number, line in zip(self.numbers, shown, strict=True):
            if line is None:
                raise LookupError(f"{self.slide}: no cell of {self.notebook}#{self.anchor} printed {number!r}")
        return [title, *(line.strip() for line in dict.fromkeys(shown))]


def lines() -> list[Line]:
    """Return the subjects of docs/lectures.md in order."""
    rows = _ROW.findall((DOCS / "lectures.md").read_text(encoding="utf-8").replace(r"\|", "¦"))
    return [
        Line(slide, subject, notebook, anchor, tuple(one.replace("¦", "|") for one in re.findall("`([^`]+)`", numbers)))
        for slide, subject, notebook, anchor, numbers in rows
    ]


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Return the anchors of a page of Markdown."""
    return {slug(title) for _, title in _HEADING.findall(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))}


def section(notebook: str, anchor: str) -> tuple[str, str]:
    """Return the title of a section of an executed notebook, and what its cells printed."""
    cells = json.loads((DOCS.parent / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    title, now, printed = None, None, []
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for _, heading in _HEADING.findall("".join(cell["source"])):
                now = slug(heading)
                title = heading if now == anchor else title
        elif now == anchor:
            for output in cell["outputs"]:
                data = output.get("data", {})
                if "image/png" not in data:  # the text of a picture describes it
                    printed.append("".join(output.get("text") or data.get("text/plain", "")))
    if title is None:
        raise LookupError(f"{notebook} has no section {anchor!r}")
    return title, "\n".join(printed)


def main() -> int:
    """Print each line, its notebook, its section and its numbers; return 1 if something is missing."""
    missing = 0
    for line in lines():
        try:
            title, *shown = line.found()
            print(f"{line.slide:8s} {line.subject}\n         {line.notebook}, {title}")
            for one in shown:
                print(f"         | {one}")
        except LookupError as error:
            missing += 1
            print(f"{line.slide:8s} {line.subject}\n         MISSING: {error}")
    print(f"{len(lines())} lines, {missing} missing")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
