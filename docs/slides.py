"""Slides of the first lecture, which open without a network: `python docs/slides.py SITE`, in SITE/slides/1-coin.html.

Its notebook says in the metadata of its cells which begins a slide (docs/downloads.py), so `jupyter nbconvert --to
slides` makes them too; those load reveal.js and MathJax from the network. Here reveal.js lies beside the page, and
MathJax is the site's.
"""

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import nbformat
from nbconvert import SlidesExporter

ROOT = Path(__file__).resolve().parent.parent
REVEAL = "sphinx_revealjs/_static/revealjs"  # a package that has reveal.js in it; nothing else of it is used
HEAD = """<style>
.reveal { font-size: 26px }
.reveal .slides section { text-align: left; max-height: 100%; overflow-y: auto }
.reveal h1 { font-size: 2.2em } .reveal h2 { font-size: 1.6em }
.jp-InputPrompt, .jp-OutputPrompt { display: none }
.reveal pre { width: 100%; margin: 0; font-size: .8em; box-shadow: none }
.reveal img { max-height: 420px }
</style>
<script>MathJax = { tex: { inlineMath: [["$", "$"]], displayMath: [["$$", "$$"]] } }</script>
<script defer src="../_static/mathjax/tex-chtml-full.js"></script>
"""
FOOT = """<script src="reveal/reveal.js"></script>
<script>Reveal.initialize({ hash: true, transition: "none", width: 1100, height: 720, slideNumber: "c/t" })</script>
"""


def page(notebook: Path) -> str:
    """Return the slides of a notebook as a page that loads what lies beside it, and nothing else."""
    text, _ = SlidesExporter(exclude_input_prompt=True).from_notebook_node(nbformat.read(notebook, as_version=4))
    text = re.sub(r"<script[^>]*\ssrc=\"https:[^>]*>\s*</script>", "", text)
    style = r'<link href="reveal/\1.css" rel="stylesheet">'
    text = re.sub(r"<link href=\"https:[^\"]*/(reveal|simple)\.css\"[^>]*>", style, text)
    text = re.sub(r"<script type=\"(text/x-mathjax-config|module)\">.*?</script>", "", text, flags=re.DOTALL)
    text = re.sub(r"<script>\s*require\(.*?</script>", "", text, flags=re.DOTALL)
    text = re.sub(r"(href|src)=\"\.\./docs/([^\"]+?)\.md", r'\1="../\2.html', text)
    text = re.sub(r"(href|src)=\"\.\./docs/", r'\1="../', text)
    text = re.sub(r"href=\"(\d+-[\w-]+)\.ipynb", r'href="../tutorials/\1.html', text)
    if loaded := re.findall(r"<(?:script|link|img)[^>]*\s(?:src|href)=\"?https?:[^>]*>", text):
        raise ValueError(f"the slides would load from the network: {loaded}")
    return text.replace("</head>", f"{HEAD}</head>").replace("</body>", f"{FOOT}</body>")


def write(site: Path) -> None:
    """Write the slides into a site, with reveal.js beside them."""
    folder = site / "slides"
    (folder / "reveal").mkdir(parents=True, exist_ok=True)
    reveal = Path(find_spec("sphinx_revealjs").submodule_search_locations[0]).parent / REVEAL
    for name in ("dist/reveal.js", "dist/reveal.css", "dist/theme/simple.css", "LICENSE"):
        shutil.copy(reveal / name, folder / "reveal")
    style = folder / "reveal" / "simple.css"  # without its import of fonts from the network
    style.write_text(re.sub(r"@import url\(.*?\);", "", style.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "1-coin.html").write_text(page(ROOT / "notebooks" / "1-coin.ipynb"), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
