"""The site: `sphinx-build -W -j 2 docs docs/_build/html`. Notebooks and code cells are run while it is built."""

import logging as std_logging
import os
import re
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from docutils import nodes
from PIL import Image
from sphinx.util import logging

import bayesgen
from bayesgen.plot.style import COLOURS

logger = logging.getLogger(__name__)
sys.path.append(str(Path(__file__).parent))
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # a page has no progress bars
if version("jax").startswith("0.10."):  # pages are compiled in three quarters of the time, as in tests/conftest.py
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")

# What pages draw by themselves has the colours of bayesgen's pictures, which every eye tells apart.
_style = Path(tempfile.mkdtemp()) / "matplotlibrc"
_style.write_text(f"axes.prop_cycle: cycler('color', {[colour.lstrip('#') for colour in COLOURS]})\n")
os.environ["MATPLOTLIBRC"] = str(_style)

project, author, copyright = "bayesgen", "The bayesgen developers", "The bayesgen developers"
version = release = bayesgen.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",  # formulas without a network
]
exclude_patterns = ["_build", "_templates", "**.ipynb_checkpoints"]
templates_path = ["_templates"]
default_role = "py:obj"

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "cache"  # a page is run again when its code has changed
nb_execution_timeout = 240
nb_execution_raise_on_error = False  # raised in one of several processes it is buried; -W makes an error of the warning
nb_execution_show_tb = True
nb_merge_streams = True


def _cause_first(record):
    """Put the error of a page in the first line of its warning, which begins with the name of the page."""
    head, _, trace = str(record.msg).partition("\n")
    errors = re.findall(r"^\w[\w.]*: .*", _COLOURS.sub("", trace), re.MULTILINE)
    if head.startswith("Executing notebook failed") and errors:
        record.msg = f"the code of this page fails: {errors[-1]}\n{trace}"
    return True


_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

autosummary_generate = True
autodoc_typehints = "none"  # types stand in the docstrings
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_use_param = False  # types are words, not links

html_theme = "pydata_sphinx_theme"
html_title = "bayesgen"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_show_sourcelink = False
_WITHOUT = (
    "index",
    "lectures",
    "teachers",
    "reliability",
    "scaling",
    "comparison",
    "design",
    "gallery",
    "contents",
    "tabarena",
)
html_sidebars = {page: [] for page in (*_WITHOUT, "ecosystem", "essays", "stability")}  # they have no pages below them
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "article_header_end": ["notebook"],  # _templates/notebook.html: a lecture is also there as .ipynb
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Links of _templates/notebook.html: to Colab and Binder where the repository, owner/name, is known, which it is not
# yet; to the notebook in the reader's browser after `sphinx-build -A browser=1`, and docs/browser.py puts it there.
html_context = {"default_mode": "auto", "repository": ""}


def _plain_mathematics(app, what, name, obj, options, lines):
    """Let docstrings write formulas as they would in a text file.

    An indented block is literal, |x| an absolute value, and a trailing underscore a part of a name.
    """
    result, inside = [], None  # inside: the indentation of what introduced a literal block or a directive
    for i, line in enumerate(lines):
        indent, text = len(line) - len(line.lstrip()), line.strip()
        if inside is not None and text and indent <= inside:
            inside = None
        if inside is None and text:
            above = next((one for one in reversed(lines[:i]) if one.strip()), "")
            after_blank = i > 0 and not lines[i - 1].strip()
            if indent >= 4 and after_blank and above[:1].strip() and not above.startswith((":", "..", ">>>", "-")):
                result, inside = [*result, "::", ""], 0
            elif text.startswith((".. math::", ".. code")):
                inside = indent
            elif not text.startswith((">>>", "..")):
                line = _escape(line)
        result.append(line)
    lines[:] = result


def _escape(line):
    parts = re.split(r"(``.*?``|:\w+:`.*?`|`.*?`)", line)
    for j in range(0, len(parts), 2):
        parts[j] = re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", parts[j].replace("|", "\\|"))
        if j and re.match(r"\w", parts[j]):
            parts[j] = "\\ " + parts[j]  # markup ends before a letter
    return "".join(parts)


def _described(app, doctree):
    """Warn of a picture that nothing describes for those who do not see it: a cell does by ``mystnb: image: alt``."""
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            logger.warning("a picture without words for those who do not see it", location=image)


def _warned(app, doctree):
    """Leave the file and the line of code, which are those of the building machine, out of a warning of a cell."""
    from downloads import WARNING

    for block in doctree.findall(nodes.literal_block):
        if "stderr" in block["classes"]:
            block.rawsource = WARNING.sub(r"\1", block.astext())
            block.children = [nodes.Text(block.rawsource)]


def _panels(app, doctree):
    """Mark pictures of panels side by side, which are wider than any of one: site.css scrolls them on a telephone."""
    for image in doctree.findall(nodes.image):
        path = Path(app.srcdir, image["uri"].lstrip("/"))
        if path.suffix == ".png" and path.is_file() and Image.open(path).width > _ONE_PANEL:
            image["classes"].append("panels")


_ONE_PANEL = 740  # pixels: 7 inches, at the 100 of them an inch that pages draw


# Where other libraries describe their names. No inventory of theirs is fetched: the site builds without a network.
_OUTWARD = {
    "arviz_plots": "https://python.arviz.org/projects/plots/en/latest/api/generated/{}.html",
    "arviz_stats": "https://python.arviz.org/projects/stats/en/latest/api/generated/{}.html",
    "numpyro": "https://num.pyro.ai/en/stable/primitives.html",
    "numpyro.distributions": "https://num.pyro.ai/en/stable/distributions.html",
    "numpyro.handlers": "https://num.pyro.ai/en/stable/handlers.html",
    "numpyro.infer": "https://num.pyro.ai/en/stable/mcmc.html",
    "pandas": "https://pandas.pydata.org/docs/reference/api/{}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{}.html",
    "xarray": "https://docs.xarray.dev/en/stable/generated/{}.html",
}


def _outward(app, env, node, contnode):
    """Link a name of another library, such as `sklearn.naive_bayes.GaussianNB`, to its documentation."""
    name = node.get("reftarget", "")
    libraries = [library for library in _OUTWARD if name.startswith(f"{library}.")]
    if not libraries:
        return None
    address = _OUTWARD[max(libraries, key=len)].format(name)
    return nodes.reference("", "", contnode, internal=False, refuri=address, reftitle=name)


def _notebooks(app, exception):
    """Put the Jupyter notebook of each lecture beside its page."""
    if exception is None and app.builder.name == "html":
        notebooks, target = Path(app.srcdir).parent / "notebooks", Path(app.outdir) / "tutorials"
        (target / "student").mkdir(exist_ok=True)
        for notebook in [*notebooks.glob("*.ipynb"), *notebooks.glob("student/*.ipynb")]:
            shutil.copy(notebook, target / notebook.relative_to(notebooks))


def _calculators(app, exception):
    """Put the live pages of how-tos beside them."""
    if exception is None and app.builder.name == "html":
        import calculators

        calculators.write(Path(app.outdir, "howto"))


def _essays(app, exception):
    """Put the essays and their still pictures where pages and notebooks link to them."""
    if exception is None and app.builder.name == "html":
        for file in (*Path(app.srcdir, "essays").glob("*.html"), *Path(app.srcdir, "essays").glob("*.png")):
            target = Path(app.outdir) / "essays" / file.name
            target.parent.mkdir(exist_ok=True)
            shutil.copy(file, target)


def _slides(app, exception):
    """Put the slides of the first lecture beside its page."""
    if exception is None and app.builder.name == "html":
        import slides

        slides.write(Path(app.outdir))


def _for_language_models(app, exception):
    """Write llms.txt: each page but those of single names, by folder, with its title and its first sentences."""
    if exception is not None or app.builder.name != "html":
        return
    sections = {"": [], "howto": [], "mathematics": [], "tutorials": []}
    for page in sorted(app.env.found_docs):
        folder = page.rpartition("/")[0]
        if folder in sections:
            paragraphs = app.env.get_doctree(page).findall(nodes.paragraph)
            first = next((text for one in paragraphs if len(text := " ".join(one.astext().split())) > 40), "")
            words = first if len(first) <= 200 else f"{first[:200].rpartition('. ')[0] or first[:196] + ' ..'}."
            sections[folder].append(f"- [{app.env.titles[page].astext()}]({page}.html): {words}".removesuffix(": "))
    names = {"": "The site", "howto": "How-to", "mathematics": "Mathematics", "tutorials": "Lectures"}
    summary = bayesgen.__doc__.splitlines()[0]
    text = "\n\n".join(f"## {names[folder]}\n\n" + "\n".join(lines) for folder, lines in sections.items())
    Path(app.outdir, "llms.txt").write_text(f"# bayesgen\n\n> {summary}\n\n{text}\n", encoding="utf-8")


def setup(app):
    for handler in std_logging.getLogger("sphinx").handlers:
        handler.filters.insert(0, _cause_first)
    app.connect("build-finished", _notebooks)
    app.connect("build-finished", _calculators)
    app.connect("build-finished", _essays)
    app.connect("build-finished", _slides)
    app.connect("build-finished", _for_language_models)
    app.connect("doctree-read", _described)
    app.connect("doctree-read", _panels)
    app.connect("doctree-read", _warned)
    app.connect("missing-reference", _outward)
    app.connect("autodoc-process-docstring", _plain_mathematics, priority=900)  # after napoleon
    # It only copies files, and does not say that pages may be read beside each other.
    app.extensions["sphinx-mathjax-offline"].parallel_read_safe = True
    return {"parallel_read_safe": True, "parallel_write_safe": True}
