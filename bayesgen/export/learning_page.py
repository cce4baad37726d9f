"""The page that learns: one file that makes a classifier of a table in any browser, and a calculator of it.

It holds the functions that read, learn and show as its script (`learn_table.js`, `learn_model.js`, `learn.js`), and the
parts of a calculator as data, of which it makes the page that `bayesgen.export.to_page` would write.
"""

from pathlib import Path

from bayesgen.core import __version__
from bayesgen.export.calculator import PAGE, framed
from bayesgen.export.script import functions, literal
from bayesgen.export.wording import packaged, sentences
from bayesgen.files import container, disk
from bayesgen.tables.groups import NAMES
from bayesgen.tables.text import SUMS

_PARTS = ("numbers", "texts", "learn_table", "learn_model", "learn_files", "elements", "learn")  # of its script


def learning_page(path) -> None:
    """Write a web page that learns classes from a table which is dropped on it, and needs no Python.

    The page reads a CSV file or pasted cells, fits naive Bayes or a Gaussian discriminant by the weak priors of this
    package, and shows the probabilities of each row left out. It saves the model for `bayesgen.load` and as a
    calculator, and prints the Python that does the same. It opens by a double click, and sends nothing anywhere.

    Parameters
    ----------
    path : str or Path
        The file, ``learn.html`` or another that ends in .html or .htm. It is written as a whole or not at all.

    Raises
    ------
    ValueError
        Before anything is written: if the name of the file ends otherwise.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learning_page(Path(folder, "learn.html"))
    ...     page = Path(folder, "learn.html").read_text()
    >>> "<h1>Learn classes from a table</h1>" in page
    True
    """
    disk.check_ending(path, *PAGE)
    said = sentences()
    options = {
        "version": __version__,
        "format": container.VERSION,
        "frame": framed("calculator.html", language="en", noscript=said["noscript"]),
        "functions": functions({"classes": ()}),
        "calculator": f"{packaged('elements.js')}\n{packaged('calculator.js')}",
        "sentences": said,
        "names": NAMES.pattern,
        "sums": SUMS,
    }
    parts = [f"const page = {literal(options)};", *(packaged(f"{name}.js") for name in _PARTS)]
    with disk.writing(Path(path)) as file:
        file.write(framed("learn.html", script='"use strict";\n' + "\n".join(parts)).encode())
