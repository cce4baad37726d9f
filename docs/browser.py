"""The notebooks in a browser, nothing installed: `python docs/browser.py [SITE]` puts JupyterLite into the built site.

It needs `pip install ".[browser]"`, builds bayesgen's wheel, and writes SITE/lite, by default docs/_build/html/lite.
Its Python is Pyodide, which the reader's browser loads and which has no JAX; cells that draw say what to install
elsewhere. Pages show the links to it where the site was built by `sphinx-build -A browser=1 docs docs/_build/html`.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def contents(folder: Path) -> Path:
    """Put the notebooks, and the essays that they link to, into a folder as they lie here; return it."""
    for source in ("notebooks/*.ipynb", "notebooks/student/*.ipynb", "docs/essays/*.html", "docs/essays/*.png"):
        for path in ROOT.glob(source):
            target = folder / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    return folder


def main(site: Path) -> None:
    """Build the wheel and the page of JupyterLite in a folder of the site."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(work), str(ROOT)]
        subprocess.run(build, check=True)
        (wheel,) = work.glob("bayesgen-*.whl")
        build = [sys.executable, "-m", "jupyter", "lite", "build", "--piplite-wheels", str(wheel)]
        given = ["--contents", str(contents(work / "contents")), "--output-dir", str(site.resolve() / "lite")]
        subprocess.run([*build, *given], check=True, cwd=work)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "_build" / "html")
