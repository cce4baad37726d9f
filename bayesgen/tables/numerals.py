"""Numbers as offices write them: 1.898,7 and 59,9 % and <0.5, beside the plain ones of programs."""

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from bayesgen.core.errors import MOST, Argument, InputError, Note, several, shortened
from bayesgen.tables.arrow import compute, pa
from bayesgen.tables.columns import first_texts, refused
from bayesgen.tables.text import GAP_WORDS, Kind, column_of, gap_spellings, gaps_among_numbers, matches, sampled
from bayesgen.tables.units import BLANK, DURATION, MINUS, fits, undressed, unit_in, without_units

BLANKS = " \t\u00a0\u2007\u2009\u202f\r\n"  # that may stand around a text
_NEGATIVE = f"^{BLANK}*(?:[(]([^)]*)[)]|(.*[0-9%]){BLANK}?{MINUS}){BLANK}*$"  # (7.5) and 7.5-, of accountants
_APART = {".": r"\.", ",": ",", "'": "['\u2019]", " ": BLANK}  # between thousands
_PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
_LIKELY = re.compile(
    f"{BLANK}*[<>\u2264\u2265=(]*{BLANK}*(?:[+]|{MINUS}{BLANK}?)?[.,]?[0-9](?:{BLANK}|{MINUS}|[+0-9eE.,'\u2019])*%?[-)]?$"
)
_PADDED = re.compile("[+-]?0[0-9]")
LIMIT, _BELOW = "[<>\u2264\u2265]=?", "[<\u2264]"
FEW = 10  # texts that may well be categories, such as <18, 18 and 19


@dataclass(frozen=True)
class Numerals:
    """The way in which the numbers of a file are written."""

    decimal: str = "."  # before the fraction
    thousands: str = ""  # between thousands: "", or one of . , ' and a blank
    limits: bool = False  # True if <0.5 stands for half of 0.5, below a limit of detection, >9 for 9, and <-1 for -1
    unit: str = ""  # beside each number, such as € or kg: it is taken away
    meant: tuple[tuple[str, str], ...] = ()  # texts of the column that mean another, "" for a gap

    def __post_init__(self):
        if self.decimal not in (".", ","):
            raise ValueError(f"before the fraction of a number stands a point or a comma, not {self.decimal!r}")
        if self.thousands and self.thousands not in _APART:
            raise ValueError(f"between thousands stands one of . , ' and a blank, not {self.thousands!r}")
        if self.thousands == self.decimal:
            other = "," if self.decimal == "." else "."
            cure = f"give the decimal sign {other!r}, or another sign between thousands"
            raise ValueError(f"{self.decimal!r} cannot stand both between thousands and before the fraction: {cure}")

    @functools.cached_property
    def pattern(self) -> str:
        """Regular expression of a number, in the dialects of Python and of Arrow."""
        point = re.escape(self.decimal)
        whole = "[0-9]+"
        if self.thousands:
            groups = f"[1-9][0-9]{{0,2}}(?:{_APART[self.thousands]}[0-9]{{3}})+"
            lakhs = "|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}" if self.thousands == "," else ""  # 12,34,567, of India
            whole = f"(?:{groups}{lakhs}|{whole})"
        limit = f"(?:{LIMIT}{BLANK}*)?" if self.limits else ""
        size = f"(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE](?:[+]|{MINUS})?[0-9]+)?{BLANK}*%?"
        ended = f"{whole}(?:{point}[0-9]+)?{BLANK}*%?{BLANK}?[-\u2212]"  # not 5.- nor 5,-, which are prices
        number = f"(?:(?:[+]|{MINUS}{BLANK}?)?{size}|{ended}|[(]{size}[)])"
        return f"^{BLANK}*{limit}{number}{BLANK}*$"

    def plain(self, fields: "pa.Array") -> "pa.Array":
        """Return fields as programs write them, without percent signs and limits, and with a point; words stay."""
        bare = compute.replace_substring_regex(fields, _NEGATIVE, r"-\1\2")
        bare = compute.replace_substring_regex(bare, MINUS, "-")
        bare = compute.replace_substring_regex(bare, f"[^-+0-9eE{self.decimal}]", "")
        bare = compute.replace_substring(bare, ",", ".")
        return compute.if_else(compute.match_substring_regex(fields, self.pattern), bare, fields)

    def meaning(self, fields: "pa.Array") -> "pa.Array":
        """Return fields with the texts that they mean."""
        if not (meant := dict(self.meant)):
            return fields
        encoded = fields.dictionary_encode()
        texts = [meant.get(text.strip(BLANKS), text) for text in encoded.dictionary.to_pylist()]
        return pa.array(texts, fields.type).take(encoded.indices)

    def value(self, text: str, fraction: bool | None = None) -> float | None:
        """Return the number of one text, without its unit; None where it is none, or one of two.

        A text is one of two where its sign may be of thousands or of a fraction: if it is written as by programs, and
        others are not, or if the column is known to hold no ``fraction``.
        """
        plain = self.decimal == "," and self.thousands != "." and bool(fits(_PLAIN, text))
        apart = any(thousands_apart(pa.array([text]), sign) for sign in ".," if sign != self.thousands)
        if (apart and (plain or fraction is False)) or not (plain or fits(self.pattern, text)):
            return None
        value = float(text if plain else self.plain(pa.array([text]))[0].as_py())
        return value / 2 if self.limits and value > 0 and re.search(_BELOW, text) else value

    def given(self, otherwise: "Numerals") -> tuple[Argument, ...]:
        """Return the arguments that have to be said where otherwise those of another way hold."""
        both = self.decimal != otherwise.decimal or self.thousands not in ("", otherwise.thousands)  # one is not enough
        point = "" if self.decimal == otherwise.decimal == "." else self.decimal
        values = {"decimal": both and point, "thousands": both and self.thousands}
        values["limits"] = self.limits and not otherwise.limits
        return tuple(Argument(name, value) for name, value in values.items() if value)


@dataclass(frozen=True)
class Column:
    """A column as it was read, with an entry of each unusual kind, "" where there is none."""

    values: pd.Series
    gaps: pd.Series  # the spelling of each gap
    limited: np.ndarray | None = None  # mask of the rows that hold a limit; None where there are none, or none is read
    percent: str = ""  # its percent sign was dropped
    limit: str = ""
    minus: str = ""  # its brackets, or its sign behind the number, were read as a minus
    unit: str = ""  # its unit was taken away
    other: str = ""  # it was computed from another power of ten of the unit
    apart: str = ""  # its point, read as the decimal comma would be, may stand between thousands
    bare: str = ""  # it has no percent sign, or no unit, where others have one

    @property
    def tells(self) -> np.ndarray:
        """The mask of the rows that hold a limit, where there may be none."""
        return np.zeros(len(self.values), bool) if self.limited is None else self.limited


def read_column(
    fields: "pa.Array", missing=(), kind: Kind | None = None, how: Numerals | None = None, name: str = ""
) -> Column:
    """Convert the fields of a column to its kind, as `column_of` does, with numbers written as ``how`` says.

    Raise `InputError`, which calls the column by its ``name``, where its numbers could be read in another way alone.
    """
    how = how or Numerals()
    if how.meant:
        found = read_column(how.meaning(fields), missing, kind, replace(how, meant=()), name)
        return replace(found, gaps=gap_spellings(fields, found.values.isna().to_numpy()))
    if how.unit and kind != "text":
        return _beside_unit(fields, missing, kind, how, name)
    if kind == "text" and how.decimal == ",":
        fields = _whole_codes(fields, missing)
    if how.thousands != ".":  # else 1.898 would be a plain number
        plain = Column(*column_of(fields, missing, kind))
        if plain.values.dtype.kind == "f" and how.decimal == ",":
            return replace(plain, apart=thousands_apart(fields))
        if kind == "text" or plain.values.dtype.kind in "biuf":
            return plain
    if kind != "text" and (found := office_column(fields, missing, kind, how)) is not None:
        return found
    column = Column(*column_of(fields, missing, kind))
    if how.thousands == "." and column.values.dtype.kind in "iuf":  # 1.898 would be less than 2
        row = int((gaps_among_numbers(fields, missing) | matches(fields, how.pattern)).argmin())
        text = "is no number with a point between thousands and a comma before the fraction"
        raise refused(name, row, fields[row].as_py(), f"{text}; write all of them in one way")
    return column


def _beside_unit(fields: "pa.Array", missing, kind: Kind | None, how: Numerals, name: str) -> Column:
    """Return a column of numbers beside a unit, without it; a column of text as it is."""
    encoded, unlike = fields.dictionary_encode(), replace(how, unit="")
    distinct = encoded.dictionary
    alike = undressed(distinct, how.unit)
    without = without_units(alike, how.unit, True)
    read = Numerals() if how.unit == DURATION else unlike
    found = read_column(without.take(encoded.indices), missing, kind, read, name)
    if found.values.dtype.kind not in "iuf" or found.percent:
        return read_column(fields, missing, kind, unlike, name)
    dressed, other = (compute.not_equal(*two).to_numpy(False) for two in ((without, distinct), (without, alike)))
    bare = ~dressed & matches(distinct, "[1-9]") & ~gaps_among_numbers(distinct, missing)
    masks = (dressed, other, bare)
    unit, power, one = (distinct[int(mask.argmax())].as_py().strip() if mask.any() else "" for mask in masks)
    return replace(found, unit=unit, other=power, bare=found.bare or (one if dressed.any() else ""))


def without_unit(name: str, fields: "pa.Array", missing, how: Numerals) -> InputError:
    """Return the error on a column that was said to hold numbers beside a unit, and holds another entry."""
    texts = how.meaning(fields)
    numbers = matches(without_units(texts, how.unit), how.pattern) & ~matches(texts, "%")
    row = int((numbers | gaps_among_numbers(texts, missing)).argmin())
    return refused(name, row, fields[row].as_py(), f"is no number in {how.unit}")


def words_in(fields: "pa.Array", missing, how: Numerals) -> dict[str, int]:
    """Return the fields that are neither numbers nor gaps, with the rows of each."""
    texts = compute.utf8_trim_whitespace(how.meaning(fields))
    numbers = matches(without_units(texts, how.unit), how.pattern) | gaps_among_numbers(texts, missing)
    return {one["values"]: one["counts"] for one in texts.filter(pa.array(~numbers)).value_counts().to_pylist()}


def few(odd: int, rows: int) -> bool:
    """Return True if entries that are no numbers are so few that a column of so many rows is one of numbers."""
    return odd <= max(3, rows // 100)


def _whole_codes(fields: "pa.Array", missing) -> "pa.Array":
    """Return codes such as 1,0, whole numbers which a decimal comma made of them, as 1; other fields as they are."""
    for texts in (sampled(fields), fields.unique()):
        if not (gaps_among_numbers(texts, missing) | matches(texts, "^-?[0-9]+(,0+)?$")).all():
            return fields
    return compute.replace_substring_regex(fields, ",0+$", "")


def thousands_apart(fields: "pa.Array", sign: str = ".") -> str:
    """Return a field of a column of numbers whose points (or another sign) may all stand between thousands, else ""."""
    texts = [text for text in first_texts(fields.unique().to_pylist()) if sign in text]
    apart = re.compile(rf"[^0-9.,]*[1-9][0-9]{{0,2}}({re.escape(sign)}[0-9]{{3}})+[^0-9.,]*$")
    return texts[0] if texts and all(map(apart.match, texts)) else ""


def office_column(fields: "pa.Array", missing, kind, how: Numerals) -> Column | None:
    """Return a column of which every entry is a number as offices write it, as `read_column` does, else None."""
    if _numbers_and_gaps(sampled(fields), missing, how) is None:
        return None
    encoded = fields.dictionary_encode()
    distinct, rows = encoded.dictionary, encoded.indices
    if (gaps := _numbers_and_gaps(distinct, missing, how)) is None or gaps.all():
        return None
    plain = compute.if_else(pa.array(gaps), distinct, how.plain(distinct))
    values, spelled = column_of(plain.take(rows), missing, kind)
    if values.dtype.kind not in "iuf":
        return None
    patterns = ("%", LIMIT, _NEGATIVE, _BELOW, "[1-9]")
    percent, limits, minus, below, not_zero = (matches(distinct, pattern) & ~gaps for pattern in patterns)
    limited = None
    if limits.any():
        limited = limits[rows.to_numpy()]
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        values = pd.Series(np.where(below[rows.to_numpy()] & (numbers > 0), numbers / 2, numbers))
    unusual = {"percent": percent, "limit": limits, "minus": minus, "bare": not_zero & ~percent & percent.any()}
    first = {name: distinct[int(found.argmax())].as_py().strip() for name, found in unusual.items() if found.any()}
    return Column(values, spelled, limited, **first)


def readings(text: str, how: Numerals) -> list[str]:
    """Return the numbers that a text is in any of the usual ways of writing, as ``how`` writes them.

    >>> readings("1,200", Numerals()), readings("37.6", Numerals(",", ".")), readings("5 10", Numerals())
    (['1200', '1.2'], ['37,6'], [])
    """
    found = (way.value(text) for way in (*WAYS[2:], *WAYS[:2]) if fits(way.pattern, text))
    numbers = (value for value in dict.fromkeys(found) if value is not None and np.isfinite(value))
    return [f"{value:.15g}".replace(".", how.decimal) for value in numbers]


def proves(fields: "pa.Array", how: Numerals) -> bool:
    """Return True if some field is a number in this way of writing alone: with its two signs exchanged it is none."""
    other = Numerals("," if how.decimal == "." else ".", how.decimal if how.thousands else "")
    distinct = fields.unique()
    return bool((matches(distinct, how.pattern) & ~matches(distinct, other.pattern)).any())


def limits_in(fields: "pa.ChunkedArray", how: Numerals) -> np.ndarray:
    """Return the mask of the texts that are limits of detection, such as <0.5."""
    fields = fields.cast("string")  # of gaps alone the type is another
    patterns = (replace(how, limits=True).pattern, LIMIT)
    numbers, limits = (compute.match_substring_regex(fields, pattern) for pattern in patterns)
    return compute.and_(numbers, limits).fill_null(False).to_numpy()


def _numbers_and_gaps(fields: "pa.Array", missing, how: Numerals) -> np.ndarray | None:
    """Return the mask of the gaps where all else is numbers, else None."""
    gaps = gaps_among_numbers(fields, missing)
    return gaps if (gaps | matches(fields, how.pattern)).all() else None


@dataclass(frozen=True)
class Unread:
    """A column of text that would hold numbers if it were read in another way."""

    how: tuple[Numerals, ...]  # the ways that read them: two where 1,898 may be 1898 or 1.898
    entry: str  # one that needs them
    words: tuple[str, ...] = ()  # those that are no number in any way, in order
    share: tuple[int, int] = (0, 0)  # distinct numbers, of so many distinct values

    @property
    def unit(self) -> str:
        """The unit beside the numbers; "" where there is none."""
        return self.how[0].unit

    def example(self) -> str:
        """Return the entry as an example, with the share of values that are numbers, and the words that are none."""
        if not self.words:
            return repr(self.entry)
        (count, among), words = self.share, several(shortened(repr(word)) for word in self.words)
        return f"{self.entry!r} ({count} of {among} distinct values), but for {words}"

    def cures(self, column: str, otherwise: Numerals | None = None) -> list[list[Argument]]:
        """Return the arguments by which a column would be numbers, for each way; none if a word cannot be said."""
        if len(self.words) > MOST or any(re.search("^[^#]*[0-9]|[,=]", word) for word in self.words):
            return []
        said = [Argument("units", {column: self.unit})] if self.unit else []
        said += [Argument("missing", f"{column}={','.join(self.words)}")] if self.words else []
        return [[*how.given(otherwise or Numerals()), *said] for how in self.how]

    def advice(self, column: str, otherwise: Numerals | None = None) -> Note:
        """Return an entry, and the arguments that read the column beside those given, which a caller may leave out."""
        ways = [Note(*way, between=" ") for way in self.cures(column, otherwise) if way]
        advice = Note("; ", Note(*ways, between=" or "), " reads them")
        return Note(f", such as {self.example()}", *([Argument("", advice, str(advice))] if ways else ()))


_SIGNS = (("", "."), ("", ","), (",", "."), (".", ","), ("'", "."), (" ", "."), ("'", ","), (" ", ","))
WAYS = [Numerals(decimal, apart) for apart, decimal in _SIGNS]  # that of programs first
_WAYS = [*WAYS, *(replace(how, limits=True) for how in WAYS)]


def unread(texts: Iterable[str], least: int | None = None) -> Unread | None:
    """Return how a column of text could be read as numbers; None where it could not, or its numbers are plain already.

    More than half of the distinct values are numbers, or more than ``least``, where it is given. The first thousand
    are looked at.

    >>> unread(["10,6", "-3", "0,5"]).cures("x")
    [[Argument(name='decimal', value=',', words='')]]
    >>> unread(["10.6", "3"]), unread(["1,5 kg"])
    (None, None)
    """
    every = list(texts)
    texts = [text for text in first_texts(every) if text and text.casefold() not in GAP_WORDS]
    enough = len(texts) // 2 if least is None else min(least, len(texts) // 2)
    odd = [text for text in texts if not fits(_PLAIN, text)]
    if not odd:
        return None
    likely, beside = (sum(map(bool, map(look, texts))) for look in (lambda text: fits(_LIKELY, text), unit_in))
    if likely <= max(enough, beside):
        return _beside_units(texts, enough)
    counts = {how: sum(bool(fits(how.pattern, text)) for text in texts) for how in _WAYS}
    most = max(counts.values())
    how = next(way for way, count in counts.items() if count == most)
    needing = [text for text in odd if fits(how.pattern, text)]
    needing.sort(key=lambda text: sum(bool(fits(way.pattern, text)) for way in _WAYS))  # which tells most of how
    word = next((text for text in texts if not fits(how.pattern, text)), None)
    if not needing or most <= enough or (len(texts) <= FEW and (word is not None or how.limits)):
        return None
    return _found(_alike(how, counts), needing[0], every, lambda text: fits(how.pattern, text))


def _alike(how: Numerals, counts: Mapping[Numerals, int]) -> tuple[Numerals, ...]:
    """Return the ways that read as many texts as one of a decimal comma does: 1,898 may be 1898."""
    other = Numerals(".", ",", how.limits)
    both = how.decimal == "," and not how.thousands and counts[how] == counts[other]
    return (how, other) if both else (how,)


def _found(ways: tuple[Numerals, ...], entry: str, every: Iterable, reads: Callable[[str], object]) -> Unread:
    """Return the finding on a column, with all of its words: one may stand behind the first thousand values.

    A number with a percent sign where most have none, or without it where most have one, is a word too.
    """
    texts = [text for value in every if (text := str(value).strip()) and text.casefold() not in GAP_WORDS]
    numbers = [text for text in texts if reads(text)]
    most = 2 * sum("%" in text for text in numbers) > len(numbers)
    plain = {text for text in numbers if ("%" in text) == most or not re.search("[1-9]", text)}
    words = tuple(text for text in texts if text not in plain)
    return Unread(ways, entry, words, (len(texts) - len(words), len(texts)))


def _beside_units(texts: list[str], enough: int) -> Unread | None:
    """Return the finding on numbers beside a unit, such as 7.5 kg; None for codes, such as 12A to 12F."""
    units = Counter(unit for text in texts if (unit := unit_in(text)))
    if units.total() <= max(FEW, enough) or 2 * (most := units.most_common(1)[0])[1] <= units.total():
        return None
    bare = undressed(pa.array(texts), most[0]).to_pylist()
    counts = {way: sum(bool(fits(way.pattern, text)) for text in bare) for way in _WAYS}
    how = max(counts, key=counts.__getitem__)
    ways = tuple(replace(way, unit=most[0]) for way in _alike(how, counts))
    entry = next(text for text in texts if unit_in(text) == most[0])
    number = dict(zip(texts, bare, strict=True))
    return _found(ways, entry, texts, lambda text: fits(how.pattern, number[text]))


def almost_plain(texts: Iterable[str], whole: bool = True) -> Unread | None:
    """Return how a column of more than ten plain numbers as text would be read as such; None where it would not.

    Leading zeros make codes of numbers. Whole numbers alone are found where ``whole`` says so: they may be names.

    >>> almost_plain([*map(str, range(20)), "unknown"]).example()
    "'0' (20 of 21 distinct values), but for 'unknown'"
    >>> almost_plain([f"{code:02}" for code in range(20)])
    """
    every = list(texts)
    texts = [text for text in first_texts(every) if text and text.casefold() not in GAP_WORDS]
    numbers = [text for text in texts if fits(_PLAIN, text)]
    fractions = [text for text in numbers if "." in text]
    if len(numbers) <= FEW or 20 * sum(map(bool, map(_PADDED.match, numbers))) > len(numbers):
        return None
    if not whole and (2 * len(numbers) <= len(texts) or not (fractions or len(numbers) < len(texts))):
        return None
    return _found((Numerals(),), (fractions or numbers)[0], every, lambda text: fits(_PLAIN, text))
