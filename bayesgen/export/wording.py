"""Words of a page: what its author says of columns and classes, and its sentences, in any language.

Words are a TOML file or a mapping of the same form. What names a column, class, category or sentence that there is not
is refused, in a file by its line, before anything is written.
"""

import base64
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from bayesgen.core.errors import listed, named, several
from bayesgen.export.plain import plain
from bayesgen.tables.groups import NAMES
from bayesgen.tables.text import alike, initials

_LARGEST = 5_000_000  # bytes of all pictures
_PICTURES = {b"\x89PNG\r\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
_KINDS = {"columns": "column", "classes": "class", "categories": "category", "sentences": "sentence"}
_TEXTS = {
    "title": "the heading of the page",
    "introduction": "a sentence or two below it",
    "language": "of the words and of numbers, such as en, de or pt-BR",
    "footer": "who made the page, and for what it is not meant",
}


def packaged(name: str) -> str:
    """Return the text of a file of this room: words, or a part of a script or page."""
    return resources.files("bayesgen.export").joinpath(name).read_text(encoding="utf-8")


def sentences() -> dict[str, str]:
    """Return the sentences of the page in English."""
    return tomllib.loads(packaged("words.toml"))["sentences"]


def page_words(words, model) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """Return words, of a TOML file or a mapping, as a page takes them, with defaults, and the files that were read."""
    source = _Source.of({} if words is None else words)
    given, labels, told = source.given, model["classes"], sentences()
    source.check(given, _form(model))
    for key, sentence in given.get("sentences", {}).items():
        known = sorted(set(re.findall(r"\{(\w+)\}", told[key])))
        if unknown := sorted(set(re.findall(r"\{(\w+)\}", sentence)) - {*known}):
            raise source.fault(("sentences", key), f"{{{unknown[0]}}} stands for nothing; known: {named(known)}")
    if not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", given.get("language") or "en"):
        raise source.fault(("language",), "expected the code of a language, such as en, de or pt-BR")
    order, names = given.get("order", []), [column["name"] for column in model["columns"]]
    if wrong := [name for name in order if name not in names or order.count(name) > 1]:
        what = "stands there twice" if wrong[0] in names else f"is no column; there are: {named(names)}"
        raise source.fault(("order",), f"{wrong[0]!r} {what}")
    pictures, files = source.pictures()
    either = f"{', '.join(labels[:-1])} or {labels[-1]}?" if 1 < len(labels) < 5 else f"One of {len(labels)} classes"
    heading = f"{_plainly(model['target'])}: {either}" if model["target"] else either
    usual = {"title": heading, "introduction": "", "language": "en", "footer": ""}
    told |= given.get("sentences", {})
    about = given.get("classes", {})
    classes = [{"name": about.get(label, {}).get("name") or label} | pictures.get(label, {}) for label in labels]
    columns = {column["name"]: _column(column, given, told) for column in model["columns"]}
    for column in model["columns"]:
        unlikely = model["gaps"] and column["name"] not in order and names_row(column, model)
        columns[column["name"]]["asked"] = not (column.get("told") or unlikely)
    found = {key: given.get(key) or text for key, text in usual.items()}
    ordered = [columns[name] for name in dict.fromkeys([*order, *names])]
    return found | {"classes": classes, "columns": ordered, "sentences": told}, files


def _column(column, given, told) -> dict[str, Any]:
    said = given.get("columns", {}).get(column["name"], {})
    found = {key: column[key] for key in ("name", "kind", "range", "told") if key in column}
    found |= {"label": said.get("name") or _plainly(column["name"])}
    usual = {"unit": unit} if (unit := "days" if column["kind"] == "duration" else column.get("unit")) else {}
    found |= usual | {key: said[key] for key in ("unit", "help") if said.get(key)}
    if values := column.get("categories"):
        bools = column["kind"] == "bool" or all(isinstance(value, bool) for value in values)
        texts = {v: (told["yes"] if v else told["no"]) if bools else str(v) for v in values}
        words = said.get("categories", {})
        found["choices"] = [{"value": v, "name": words.get(str(v)) or texts[v]} for v in values]
    return found


def names_row(column: Mapping[str, Any], model) -> bool:
    """Return True if a column seems to tell which row it is: an identifier, the date of the row, a free text."""
    if column["kind"] == "category":
        texts = [str(value) for value in column["categories"]]
        long = sum(map(len, texts)) > 30 * len(texts)
        return len(texts) > max(20, (model["about"]["rows"] or 0) / 4) or (len(texts) > 7 and long)
    named = NAMES.search(column["name"]) and column.get("fraction") is False
    return bool(named) or (column["kind"] == "date" and not re.search("birth|born|dob|geb", column["name"], re.I))


def doubts(model: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the maker of a page should look at: levels that may be one, columns that tell which row it is."""
    for column in model["columns"]:
        levels = [value for value in column.get("categories", ()) if isinstance(value, str)]
        if found := [*alike(levels), *initials(levels)]:
            pairs = several(" and ".join(map(repr, group)) for group in found)
            yield f"column {column['name']!r}: {pairs} may be one level, of which the page offers each: join them"
    if not model["gaps"] and (asked := [column["name"] for column in model["columns"] if names_row(column, model)]):
        yield f"the page has to ask for {named(asked)}, which seem to tell which row it is: fit without them"


def _plainly(name: str) -> str:
    return name.replace("_", " ").strip() or name


def _form(model) -> dict[str, Any]:
    """Return the words that there may be, and their types."""
    column = {"name": str, "unit": str, "help": str}
    columns = {
        one["name"]: column | {"categories": {str(value): str for value in one.get("categories", ())}}
        for one in model["columns"]
    }
    classes = {label: {"name": str, "picture": str} for label in model["classes"]}
    tables = {"columns": columns, "classes": classes, "sentences": dict.fromkeys(sentences(), str)}
    return dict.fromkeys(_TEXTS, str) | {"order": list} | tables


@dataclass(frozen=True)
class _Source:
    """Words as they were given, and the lines of their file."""

    given: Mapping[str, Any]
    path: Path | None = None
    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, words) -> "_Source":
        if isinstance(words, Mapping):
            return cls(words)
        path = Path(words)
        try:
            text = path.read_bytes().decode("utf-8-sig")
            return cls(tomllib.loads(text), path, tuple(text.splitlines()))
        except UnicodeDecodeError:
            raise ValueError(f"{path}: these words are no text in UTF-8; save them so") from None
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path}: this is no TOML: {error}") from None

    def check(self, given, form, *place: str) -> None:
        """Raise unless all that is given is in the form, with its type."""
        for key, value in given.items():
            where = (*place, key)
            kind = _KINDS.get(place[-1], "word") if place else "word"
            if key not in form:
                raise self.fault(where, f"there is no {kind} {key!r}; there are: {named(form)}")
            wanted = form[key]
            if isinstance(wanted, dict):
                if not isinstance(value, Mapping):
                    raise self.fault(where, f"expected a table, got {value!r}")
                self.check(value, wanted, *where)
            elif not isinstance(value, wanted):
                raise self.fault(where, f"expected {'text in quotes' if wanted is str else 'a list'}, got {value!r}")

    def fault(self, place: tuple[str, ...], problem: str) -> ValueError:
        """Return the error about a word, by its line in a file."""
        if self.path is None:
            return ValueError(f"words, {'.'.join(place)}: {problem}")
        line = 0
        for key in place:  # below the line of its table
            word = re.compile(rf"(?<![\w-]){re.escape(key)}(?![\w-])[\"']?\s*[.=\]]")
            line = next((n for n in range(line, len(self.lines)) if word.search(self.lines[n])), line)
        return ValueError(f"{self.path}, line {line + 1}: {problem}")

    def pictures(self) -> tuple[dict[str, dict[str, str]], tuple[Path, ...]]:
        """Return the "picture" of each class that has one, as a data: address, and the files that were read."""
        found, files, size = {}, [] if self.path is None else [self.path], 0
        for label, words in self.given.get("classes", {}).items():
            if name := words.get("picture"):
                path = Path(name) if self.path is None else self.path.parent / name
                where = "classes", label, "picture"
                try:
                    content = path.read_bytes()
                except OSError as error:
                    raise self.fault(where, f"the picture {name!r} cannot be read: {error.strerror}") from None
                kind = next((kind for begin, kind in _PICTURES.items() if content.startswith(begin)), None)
                if kind is None:
                    raise self.fault(where, f"{name!r} is no picture of the kinds {listed(_PICTURES.values())}")
                if (size := size + len(content)) > _LARGEST:
                    raise self.fault(where, f"the pictures have more than {_LARGEST // 10**6} MB in all; shrink them")
                found[label] = {"picture": f"data:{kind};base64,{base64.b64encode(content).decode()}"}
                files.append(path)
        return found, tuple(files)


def words_template(classifier) -> str:
    """Return the words of a page to fill in, a file in TOML: empty ones have their defaults.

    >>> from bayesgen import NaiveBayesClassifier
    >>> classifier = NaiveBayesClassifier().fit([[1.0], [1.2], [3.0], [3.3]], ["a", "a", "b", "b"])
    >>> print(words_template(classifier)[:26])
    title = ""  # the heading
    """
    model = plain(classifier, 1)
    lines = [f'{key} = ""  # {meaning}' for key, meaning in _TEXTS.items()]
    asked = (_quoted(one["name"]) for one in page_words(None, model)[0]["columns"] if one["asked"])
    lines.append(f"order = [{', '.join(asked)}]")
    for column in model["columns"]:
        table = f"columns.{_quoted(column['name'])}"
        lines += ["", f"[{table}]", f"name = {_quoted(_plainly(column['name']))}", 'unit = ""', 'help = ""']
        if column["kind"] == "category":
            texts = [str(value) for value in column["categories"]]
            lines += [f"[{table}.categories]", *(f"{_quoted(text)} = {_quoted(text)}" for text in texts)]
    for label in model["classes"]:
        picture = 'picture = ""  # a file beside this one'
        lines += ["", f"[classes.{_quoted(label)}]", f"name = {_quoted(label)}", picture]
    return "\n".join([*lines, "", packaged("words.toml")])


def _quoted(text: str) -> str:
    """Return a text as TOML writes it: as JSON does, but for one sign."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
