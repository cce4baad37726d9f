"""The lectures as Jupyter notebooks: `python docs/downloads.py [NAME ...]` runs them and writes notebooks/*.ipynb.

Their text is notebooks/source/*.md; without a NAME all are run, two at a time, in a few minutes.

A solution is one Markdown cell that opens at a click: GitHub and Colab show hidden code cells all the same. Notebooks
for students, notebooks/student/*.ipynb, have no outputs, and in place of a solution whose answer is a number or a name
a cell that checks what a student found. The source says so below the solution, in lines that no page shows:

    % check 3, 2 digits: the expression whose value, or list of values, is the answer
    % hint 3: One sentence for those who are not there yet.
"""

import ast
import base64
import hashlib
import io
import os
import pprint
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import jupytext
import nbformat

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
SOURCES = NOTEBOOKS / "source"
INSTALL = """import sys
from importlib.util import find_spec

if sys.platform == "emscripten":  # in a browser, where a page is the computer
    import piplite

    await piplite.install("bayesgen")
elif find_spec("bayesgen") is None:
    raise ModuleNotFoundError(
        'Open a terminal in the folder of the project, run  pip install -e ".[notebooks]"  and restart the kernel.'
    )"""
CHECK = """from fractions import Fraction
from hashlib import sha256

# The answers of the exercises are kept as digests, which tell nothing before
# an answer is found: of each value, and where it was rounded to several
# digits of its neighbours in the last one.
SALT = {salt!r}
CHECKS = {checks}


def check(number, *answer):
    digits, kept, hint = CHECKS[number]

    def digest(place, value):
        if isinstance(value, (list, tuple)) or getattr(value, "shape", ()):
            value = [*value][0] if len(value) == 1 else "several"
        value = str(value).strip().lower()
        try:  # 3/8 is a number, too
            value = round(float(Fraction(value.replace(" ", ""))), digits) + 0
            value = f"{{value:.{{digits}}f}}"
        except (ValueError, ZeroDivisionError, OverflowError):
            pass  # a name
        text = f"{{SALT}}/{{number}}/{{place}}/{{value}}"
        return sha256(text.encode()).hexdigest()[:10]

    if any(v is None for v in answer) or len(answer) != len(kept):
        print(f"Exercise {{number}} asks for {{len(kept)}} value(s). {{hint}}")
    elif all(digest(i, v) in kept[i] for i, v in enumerate(answer)):
        print(f"Exercise {{number}}: right.")
    else:
        print(f"Exercise {{number}}: not yet. {{hint}}")"""
CHECKED = re.compile(r"^% check (\d+), (?:(\d) digits?|label): (.+)\n% hint \1: (.+)\n?", re.MULTILINE)
_SOLUTION = re.compile(r"<details>\n<summary>Solution of (\d+)</summary>")
_PAGE = re.compile(r"\{doc\}`([^`<]+?)\s+<([^`>]+)>`")
_LECTURE = re.compile(r"\]\((\d+-[\w-]+)\.md(?:#[\w-]+)?\)")
_OUTSIDE = re.compile(r"(\]\(|<a href=\"|<img src=\")\.\./(?=[a-z])")
_DETAILS = re.compile(r"(<details>\n<summary>[^<]+</summary>|</details>)")
_OUTPUT = re.compile(r"\n\n<!-- output -->\n.*?\n<!-- end of output -->", re.DOTALL)
WARNING = re.compile(r"^/\S+\.py:\d+: (.*\n)(?:  .*\n)?", re.MULTILINE)  # the file, and the line of code below


def notebook(text: str, run=None, answers: dict | None = None, slides: bool = False):
    """Return the notebook of a lecture in MyST Markdown: run, if it is given, makes the outputs of its cells.

    Links lead to the other notebooks and to the files of the site's pages. The first code cell says how to install
    bayesgen where it is missing. The values of the answers that can be checked go into ``answers``, by number. With
    ``slides`` the metadata of each cell say whether it begins a slide, as `jupyter nbconvert --to slides` reads them.
    """
    page = jupytext.reads(text, "md:myst")
    if run is not None:
        ask(page)
        run(page)
        answers = {} if answers is None else answers
        answers |= {cell.metadata.check: _printed(cell) for cell in page.cells if "check" in cell.metadata}
        page.cells = [cell for cell in page.cells if "check" not in cell.metadata]
    cells = []
    for cell in page.cells:
        if cell.cell_type == "code":
            cells.append(cell)
        else:
            words = _links(CHECKED.sub("", cell.source + "\n"))
            cells += [nbformat.v4.new_markdown_cell(part.strip()) for part in _DETAILS.split(words)]
    cells = _folded([cell for cell in cells if cell.source])
    begin = next(i for i, cell in enumerate(cells) if cell.cell_type == "code")
    cells.insert(begin, nbformat.v4.new_code_cell(INSTALL))
    for number, cell in enumerate(cells, 1):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.execution_count = None
        if slides:
            cell.metadata["slideshow"] = {"slide_type": _slide(cell.source, cell.cell_type == "code")}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python", "file_extension": ".py"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def _slide(source: str, code: bool) -> str:
    """Return the kind of slide of a cell: a heading begins one, code stands on one below it, answers are for later."""
    if source == INSTALL or source.startswith(("<details>", "**Exercise", "## Exercises", "import matplotlib")):
        return "skip"
    return "slide" if source.startswith("#") and not code else "subslide" if code else "-"


def ask(page) -> None:
    """Put a cell that prints the answer before each Markdown cell in which a check stands."""
    cells = []
    for cell in page.cells:
        for number, _, expression, _ in CHECKED.findall(cell.source + "\n") if cell.cell_type == "markdown" else ():
            asked = nbformat.v4.new_code_cell(f"import numpy\nprint(numpy.ravel({expression}).tolist())")
            asked.metadata["check"] = int(number)
            cells.append(asked)
        cells.append(cell)
    page.cells = cells


def _printed(cell) -> list:
    return ast.literal_eval("".join(output.text for output in cell.outputs if output.get("name") == "stdout"))


def checks(text: str, answers: dict, salt: str) -> dict[int, tuple]:
    """Return digits, digests and hint of each exercise that has a check, as its notebook for students keeps them."""
    result = {}
    for number, digits, _, hint in CHECKED.findall(text):
        kept = []
        for place, value in enumerate(answers[int(number)]):
            near = [str(value).strip().lower()]
            if digits:
                # an exact answer has no neighbours, nor has one of which they are a tenth or more away
                exact = abs(value - round(value, int(digits))) < 1e-9 or abs(value) * 10 ** int(digits) < 10
                steps = (0,) if exact else (-1, 0, 1)
                near = [f"{round(value + step * 10.0 ** -int(digits), int(digits)) + 0:.{digits}f}" for step in steps]
            texts = [f"{salt}/{number}/{place}/{one}" for one in near]
            kept.append([hashlib.sha256(one.encode()).hexdigest()[:10] for one in texts])
        result[int(number)] = (int(digits or 0), kept, hint)
    return result


def student(made, text: str, answers: dict, salt: str):
    """Return the notebook for students: no outputs, and checks in place of the solutions that can be checked."""
    known, cells = checks(text, answers, salt), []
    for cell in made.cells:
        cell = nbformat.from_dict(cell)
        number = _SOLUTION.match(cell.source) if cell.cell_type == "markdown" else None
        if number and int(number[1]) in known:
            digits, kept, _ = known[int(number[1])]
            kind = f"{digits} digit(s) after the point" if digits else "whole numbers or names"
            nothing = ", ".join(["None"] * len(kept))
            cell = nbformat.v4.new_code_cell(f"check({number[1]}, {nothing})  # {kind}")
        elif cell.cell_type == "code":
            cell.outputs = []
        else:
            deeper = _OUTSIDE.sub(r"\1../../", cell.source)
            cell.source = deeper.replace("<summary>Solution of", "<summary>Model answer to")
        cells.append(cell)
    begin = next(i for i, cell in enumerate(cells) if cell.cell_type == "code") + 1
    if known:
        shown = pprint.pformat(known, width=78, compact=True)
        cells.insert(begin, nbformat.v4.new_code_cell(CHECK.format(salt=salt, checks=shown)))
    for number, cell in enumerate(cells, 1):
        cell.id = f"cell-{number}"
    return nbformat.v4.new_notebook(cells=cells, metadata=made.metadata)


def without_outputs(source: str) -> str:
    """Return a Markdown cell without the outputs that a solution shows, to compare what was written."""
    return _OUTPUT.sub("", source)


def _links(words: str) -> str:
    words = _PAGE.sub(r"[\1](\2.md)", words)
    return _OUTSIDE.sub(r"\1../docs/", _LECTURE.sub(r"](\1.ipynb)", words))


def _folded(cells: list) -> list:
    """Make one Markdown cell of all cells between <details> and </details>."""
    result, solution = [], None
    for cell in cells:
        if cell.source.startswith("<details>"):
            solution = nbformat.v4.new_markdown_cell(cell.source)
        elif solution is None:
            result.append(cell)
        elif cell.source == "</details>":
            solution.source += "\n\n</details>"
            result.append(solution)
            solution = None
        else:
            solution.source += "\n\n" + (_as_words(cell, solution) if cell.cell_type == "code" else cell.source)
    return result


def _as_words(cell, solution) -> str:
    """Return a code cell and its outputs as Markdown; its pictures become attachments of the solution."""
    text, pictures = "", []
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            name = f"picture-{len(solution.get('attachments', {})) + 1}.png"
            solution.setdefault("attachments", {})[name] = {"image/png": data["image/png"]}
            pictures.append(f"![{output.metadata['image/png']['alt']}](attachment:{name})")
        else:
            text += output.get("text") or data.get("text/plain", "")
            text = text.rstrip("\n") + "\n"
    shown = [f"```text\n{text.strip(chr(10))}\n```"] if text.strip() else []
    code = f"```python\n{cell.source}\n```"
    if not (shown or pictures):
        return code
    return code + "\n\n<!-- output -->\n\n" + "\n\n".join(shown + pictures) + "\n\n<!-- end of output -->"


def execute(page) -> None:
    """Run all cells, and give each picture its alternative text and few colours."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(page, timeout=240, record_timing=False, resources={"metadata": {"path": folder}}).execute()
    for cell in page.cells:
        words = cell.metadata.get("mystnb", {}).get("image", {}).get("alt")
        if cell.cell_type == "code":
            cell.outputs = _merged(cell.outputs)
        for output in cell.get("outputs", []):
            output.pop("execution_count", None)
            if output.output_type == "execute_result":
                output.execution_count = None
            if "text" in output:
                output.text = WARNING.sub(r"\1", output.text)
            if "image/png" in output.get("data", {}):
                if words is None:
                    raise ValueError(f"a picture without words for those who do not see it: {cell.source[:200]}")
                output.data = {"image/png": _small(output.data["image/png"]), "text/plain": words}
                output.metadata = {"image/png": {"alt": words}}


def _merged(outputs: list) -> list:
    """Put pieces of one stream together, which a busy machine sends one by one: what is printed, then warnings."""
    streams: dict = {}
    for output in outputs:
        if output.output_type == "stream":
            stream = streams.setdefault(output.name, nbformat.v4.new_output("stream", name=output.name, text=""))
            stream.text += output.text
    return [*streams.values(), *(output for output in outputs if output.output_type != "stream")]


def _small(picture: str) -> str:
    from PIL import Image

    small = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB").quantize(128).save(small, "png", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def write(source: Path) -> str:
    """Run a lecture and write its notebook; return a line that says how large it is."""
    text, answers = source.read_text(encoding="utf-8"), {}
    made = notebook(text, execute, answers, slides=source.stem == "1-coin")
    target = NOTEBOOKS / f"{source.stem}.ipynb"
    (target.parent / "student").mkdir(exist_ok=True)
    for_students = target.parent / "student" / target.name
    for one, path in ((made, target), (student(made, text, answers, source.stem), for_students)):
        nbformat.validate(one)
        nbformat.write(one, path)
    return f"{target.relative_to(ROOT)}: {target.stat().st_size / 1000:.0f} KB"


def main(names: list[str]) -> None:
    """Write the notebooks named, or all, two at a time."""
    from bayesgen.plot.style import COLOURS

    with tempfile.TemporaryDirectory() as folder:
        colours = [colour.lstrip("#") for colour in COLOURS]
        style = Path(folder) / "matplotlibrc"
        style.write_text(f"figure.dpi: 80\naxes.prop_cycle: cycler('color', {colours})\n")
        os.environ |= {"MATPLOTLIBRC": str(style), "PYTHONWARNINGS": "ignore:IProgress not found"}
        sources = [SOURCES / f"{name}.md" for name in names] or sorted(SOURCES.glob("*.md"))
        with ProcessPoolExecutor(max_workers=2) as pool:
            for line in pool.map(write, sources):
                print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
