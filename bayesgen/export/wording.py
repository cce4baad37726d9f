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

from bayesgen.core.errors import listed, named
from bayesgen.export.plain import plain

_LARGEST = 5_000_000  # bytes of all pictures
_PICTURES = {b"\x89PNG\r\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
_KINDS = {"columns": "column", "classes": "class", "categories": "category", "sentences": "sentence"}
_TEXTS = {
    "title": "the heading of the page",
    "introduction": "a sentence or two below it",
    "language": "of the words and of numbers, such as en, de or pt-BR",
    "footer": "who made the page, and for what it is not meant",
}


def _sentences() -> dict[str, str]:
    """Return the sentences of the page in English."""
    text = resources.files("bayesgen.export").joinpath("words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["sentences"]


@dataclass(frozen=True)
class Wording:
    """Words of the author of a page, checked against a model in plain numbers."""

    given: Mapping[str, Any]
    model: Mapping[str, Any]
    pictures: Mapping[str, str]  # of classes, as data: addresses
    files: tuple[Path, ...]  # that were read

    @classmethod
    def of(cls, words, model) -> "Wording":
        """Read and check the words of a page: a path, a mapping, or None."""
        source = _Source.of({} if words is None else words)
        source.check(source.given, _form(model))
        for key, sentence in source.given.get("sentences", {}).items():
            known = set(re.findall(r"\{(\w+)\}", _sentences()[key]))
            if unknown := set(re.findall(r"\{(\w+)\}", sentence)) - known:
                raise source.fault(
                    ("sentences", key), f"{{{min(unknown)}}} stands for nothing; known: {named(sorted(known))}"
                )
        if not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", source.given.get("language") or "en"):
            raise source.fault(("language",), "expected the code of a language, such as en, de or pt-BR")
        order = source.given.get("order", [])
        names = [column["name"] for column in model["columns"]]
        if wrong := [name for name in order if name not in names or order.count(name) > 1]:
            what = "stands there twice" if wrong[0] in names else f"is no column; there are: {named(names)}"
            raise source.fault(("order",), f"{wrong[0]!r} {what}")
        pictures, files = source.pictures()
        return cls(source.given, model, pictures, files)

    def options(self) -> dict[str, Any]:
        """Return the words as the script of the page takes them, with their defaults."""
        labels = self.model["classes"]
        either = (
            f"{', '.join(labels[:-1])} or {labels[-1]}?" if 1 < len(labels) < 5 else f"One of {len(labels)} classes"
        )
        usual = {"title": either, "introduction": "", "language": "en", "footer": ""}
        texts = {key: self.given.get(key) or text for key, text in usual.items()}
        about = self.given.get("classes", {})
        classes = [{"name": about.get(label, {}).get("name") or label} for label in labels]
        for one, label in zip(classes, labels, strict=True):
            if label in self.pictures:
                one["picture"] = self.pictures[label]
        sentences = _sentences() | dict(self.given.get("sentences", {}))
        order = [*self.given.get("order", [])]
        order += [column["name"] for column in self.model["columns"] if column["name"] not in order]
        columns = {column["name"]: self._column(column, sentences) for column in self.model["columns"]}
        return texts | {"classes": classes, "columns": [columns[name] for name in order], "sentences": sentences}

    def _column(self, column, sentences) -> dict[str, Any]:
        said = self.given.get("columns", {}).get(column["name"], {})
        found = {key: column[key] for key in ("name", "kind", "range") if key in column}
        found |= {"label": said.get("name") or _plainly(column["name"])}
        found |= {key: said[key] for key in ("unit", "help") if said.get(key)}
        if "categories" in column:
            yes_no = {True: sentences["yes"], False: sentences["no"]}
            bools = column["kind"] == "bool" or all(isinstance(value, bool) for value in column["categories"])
            usual = [yes_no[bool(value)] if bools else str(value) for value in column["categories"]]
            named = said.get("categories", {})
            found["choices"] = [
                {"value": value, "name": named.get(str(value)) or words}
                for value, words in zip(column["categories"], usual, strict=True)
            ]
        return found


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
    sentences = dict.fromkeys(_sentences(), str)
    tables = {"columns": columns, "classes": classes, "sentences": sentences}
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
        line = next((number for number, found in self._places() if found[: len(place)] == place), None)
        return ValueError(f"{self.path}{f', line {line}' if line else ''}: {problem}")

    def _places(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield the number of each line that names a word, and the keys that lead to the word."""
        table: tuple[str, ...] = ()
        for number, line in enumerate(self.lines, 1):
            try:
                keys = _keys(tomllib.loads(line))
            except tomllib.TOMLDecodeError:  # of several lines
                keys = _keys(tomllib.loads(f"{line.partition('=')[0]}= 0")) if re.match(r"\s*[\w-]+\s*=", line) else ()
            if line.lstrip().startswith("["):
                table = keys
                yield number, table
            elif keys:
                yield number, (*table, *keys)

    def pictures(self) -> tuple[dict[str, str], tuple[Path, ...]]:
        """Return the pictures of the classes as data: addresses, and the files that were read."""
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
                found[label] = f"data:{kind};base64,{base64.b64encode(content).decode()}"
                files.append(path)
        return found, tuple(files)


def _keys(parsed: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys that lead to the only word of a line."""
    keys = []
    while isinstance(parsed, Mapping) and len(parsed) == 1:
        (key,) = parsed
        keys.append(key)
        parsed = parsed[key]
    return tuple(keys)


def words_template(classifier) -> str:
    """Return the words of a page to fill in, a file in TOML: empty ones have their defaults.

    >>> from bayesgen import NaiveBayesClassifier
    >>> classifier = NaiveBayesClassifier().fit([[1.0], [1.2], [3.0], [3.3]], ["a", "a", "b", "b"])
    >>> print(words_template(classifier)[:26])
    title = ""  # the heading
    """
    model = plain(classifier, 1)
    lines = [f'{key} = ""  # {meaning}' for key, meaning in _TEXTS.items()]
    lines.append(f"order = [{', '.join(_quoted(column['name']) for column in model['columns'])}]")
    for column in model["columns"]:
        table = f"columns.{_quoted(column['name'])}"
        lines += ["", f"[{table}]", f"name = {_quoted(_plainly(column['name']))}", 'unit = ""', 'help = ""']
        if column["kind"] == "category":
            texts = [str(value) for value in column["categories"]]
            lines += [f"[{table}.categories]", *(f"{_quoted(text)} = {_quoted(text)}" for text in texts)]
    for label in model["classes"]:
        picture = 'picture = ""  # a file beside this one'
        lines += ["", f"[classes.{_quoted(label)}]", f"name = {_quoted(label)}", picture]
    text = resources.files("bayesgen.export").joinpath("words.toml").read_text(encoding="utf-8")
    return "\n".join([*lines, "", text])


def _quoted(text: str) -> str:
    """Return a text as TOML writes it: as JSON does, but for one sign."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
