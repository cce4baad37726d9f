"""The elements of the pages that commands write, each of which needs no other file, no script and no network."""

import base64
import html
from collections.abc import Iterable, Mapping

# A telephone of 390 pixels scrolls wide tables sideways, and shows the panels of a picture below each other: their text
# can be read at its width.
_STYLE = """
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 52rem; margin: 0 auto;
  padding: 1rem; overflow-wrap: anywhere; -webkit-text-size-adjust: 100% }
h1, h2 { line-height: 1.2 }
h2 { margin-top: 2.2rem; border-bottom: 1px solid #ccc }
.wide { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .5rem; text-align: right; vertical-align: bottom; white-space: pre;
  border-bottom: 1px solid #ddd }
th:first-child { text-align: left }
figure { margin: 1.2rem 0 }
.panels { display: flex; flex-wrap: wrap; gap: .8rem }
img { max-width: 100%; height: auto; align-self: start }
.panels img { width: 24.5rem }
.panels img:only-child { width: 34rem }
figcaption { color: #555; font-size: .9rem }
pre { background: #f5f5f5; padding: .6rem; white-space: pre-wrap }
@media screen and (prefers-color-scheme: dark) {
  body { color: #ddd; background: #181818 }
  h2, th, td { border-color: #444 }
  figcaption { color: #aaa }
  pre { background: #262626 }
  img { filter: invert(.9) hue-rotate(180deg) }
}
@media (max-width: 30rem) {
  table { font-size: .85rem }
  th, td { padding: .25rem .3rem }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt }
  h2 { break-after: avoid }
  figure, table, pre { break-inside: avoid }
  .wide { overflow: visible }
  th, td { padding: .15rem .3rem }
  .panels img { width: 8cm }
  .panels img:only-child { width: 12cm }
}
"""


class Html(str):
    """Text that is HTML already; all other text is escaped where it is put into a tag."""


def tag(name: str, *inside: str, **attributes: str) -> Html:
    """Return an element with what is inside it."""
    given = "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items())
    within = "".join(part if isinstance(part, Html) else html.escape(part) for part in inside)
    return Html(f"<{name}{given}>{within}</{name}>")


def document(title: str, parts: Iterable[str]) -> str:
    """Return a page with a title above its parts."""
    head = tag("title", title) + tag("style", Html(_STYLE))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        f"style-src 'unsafe-inline'\">{head}</head>\n<body>\n"
        + "\n".join([tag("h1", title), *parts])
        + "\n</body></html>\n"
    )


def section(title: str, *parts: Html) -> list[Html]:
    """Return parts below a heading."""
    return [tag("h2", title), *parts]


def bullets(lines: Iterable[str]) -> Html:
    """Return a list of lines; nothing where there are none."""
    inside = [tag("li", line) for line in lines]
    return tag("ul", *inside) if inside else Html()


def tabled(first: str, rows: Mapping[str, Mapping[str, str]]) -> Html:
    """Return a table of cells by row and heading, with the heading ``first`` above the names of the rows."""
    heads = [first, *next(iter(rows.values()))]
    lines = [tag("tr", *(tag("th", head, scope="col") for head in heads))]
    for name, cells in rows.items():
        lines.append(tag("tr", tag("th", name, scope="row"), *(tag("td", cell) for cell in cells.values())))
    return wide(tag("table", *lines))


def wide(table: Html) -> Html:
    """Return a table that may be wider than the screen: then a finger or the keyboard moves it."""
    return tag("div", table, **{"class": "wide", "tabindex": "0"})


def image(png: bytes, seen: str) -> Html:
    """Return a picture, with a description for those who do not see it."""
    data = base64.b64encode(png).decode()
    return Html(f'<img src="data:image/png;base64,{data}" alt="{html.escape(seen)}">')
