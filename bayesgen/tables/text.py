"""Kinds of the text in a file: numbers, True and False, gaps, or plain text. Arrow reads the distinct fields."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayesgen.core.errors import MOST, counted, several
from bayesgen.tables.arrow import compute, is_arrow, pa

Kind = Literal["text", "number"]

GAP_WORDS = frozenset(("na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none"))  # beside numbers, in any case
_NUMBER = r"^(?i)[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?)$"  # inf is a word
_INTEGER, _ANY = r"^-?(0|[1-9][0-9]{0,17})$", r"^-?(0|[1-9][0-9]{0,17})(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$"
# by type the first field of a column of plain numbers, and every field: 1e999 would be infinite
_PLAIN = {"int64": (_INTEGER, _INTEGER), "float64": (r"^-?(0|[1-9][0-9]{0,17})\.[0-9]+$", _ANY)}
_WHOLE = r"^[+-]?[0-9]+$"
_PADDED = r"^[+-]?0[0-9]"  # 01 and 1 are two codes and one number
_SLIP = re.compile(r"(.+)(?:(.)(.)(.*)\0\1\3\2\4|.?(.*)\0\1.?\5)$")  # of two words behind each other
SUMS = (  # how a line of sums or a footnote begins
    "^(?i) *((zwischensumme|summe|subtotal|sous-total)\\b.*|((gesamt|grand )?(summen?|sums?|totale?s?)|gesamt"
    "|insgesamt|somm[ea]|suma|mean|average|mittelwert|durchschnitt|moyenne|media|promedio|m[e\u00e9]dian[ae]?"
    "|\u03a3|\u00f8) *[:=]? *$|[*]|(quelle|source|fuente|fonte|stand|hinweis|anmerkung|legende|notes?|nota) *:)"
)
_BOOLS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}


def column_of(fields: Any, missing=(), kind: Kind | None = None) -> tuple[pd.Series, pd.Series]:
    """Convert the fields of a column, a Series or an Arrow array, to its kind; return it with the spelling of each gap.

    By default a column holds numbers (or bools) where all fields do, and text where one does not. An empty field is a
    gap, and so is what ``missing`` names; beside numbers also NA, NaN, null and the like. Leading zeros mark a code,
    unless ``kind`` is "number".
    """
    whole = fields if is_arrow(fields, "Array") else pa.array(fields, pa.large_string(), from_pandas=True)
    whole = whole.combine_chunks() if is_arrow(whole, "ChunkedArray") else whole
    gone = among(whole, {"", *missing})
    for type_, (begins, every) in _PLAIN.items() if kind != "text" and len(whole) and not gone.any() else ():
        if re.match(begins, whole[0].as_py() or "") and matches(whole, every).all():  # read without hashing the fields
            return pd.Series(whole.cast(type_).to_numpy()), NO_GAPS
    if kind == "text":
        return _texts(whole, gone), gap_spellings(whole, gone)
    encoded = whole.dictionary_encode()
    codes, distinct = encoded.indices.to_numpy(), encoded.dictionary
    gaps = gaps_among_numbers(distinct, missing)
    parsed = _parsed(compute.utf8_trim_whitespace(distinct).filter(pa.array(~gaps)), padded=kind == "number")
    if parsed is None:
        return _texts(whole, gone), gap_spellings(whole, gone)
    values = np.full(len(gaps), np.nan if parsed.dtype.kind == "f" else 0, dtype=parsed.dtype)
    values[~gaps] = parsed
    return _numbers(values.take(codes), gaps[codes]), gap_spellings(whole, gaps[codes])


def sampled(fields: "pa.Array") -> "pa.Array":
    """Return 64 fields spread over a column, fewer of a short one, which mostly tell its kind."""
    places = np.unique(np.linspace(0, max(len(fields) - 1, 0), 64).astype(np.intp))[: len(fields)]
    return fields.take(pa.array(places))


def gap_spellings(fields: "pa.Array", gone: np.ndarray) -> pd.Series:
    """Return the spelling of gaps, by row."""
    lost = np.flatnonzero(gone)
    if not len(lost):
        return NO_GAPS
    return pd.Series(fields.take(pa.array(lost)).to_numpy(zero_copy_only=False), index=lost, dtype=object)


NO_GAPS = pd.Series([], index=pd.Index([], dtype=int), dtype=object)


def _texts(fields: "pa.Array", gone: np.ndarray) -> pd.Series:
    if gone.all():
        return pd.Series(np.full(len(gone), None))
    return (compute.if_else(pa.array(gone), None, fields) if gone.any() else fields).to_pandas()


def _numbers(values: np.ndarray, gone: np.ndarray) -> pd.Series:
    """Return numbers or bools, missing where ``gone``; whole ones stay whole beside a gap."""
    if gone.any() and values.dtype.kind != "f":
        nullable: Any = pd.arrays.BooleanArray if values.dtype.kind == "b" else pd.arrays.IntegerArray
        return pd.Series(nullable(values, gone))
    return pd.Series(values)


def gaps_among_numbers(fields: "pa.Array", missing) -> np.ndarray:
    """Return the mask of the fields that are gaps if the others are numbers: empty, ``missing``, or NA and the like."""
    return among(fields, {"", *missing}) | among(compute.utf8_lower(compute.utf8_trim_whitespace(fields)), GAP_WORDS)


def numbers(fields: list[str]) -> list | None:
    """Return the bools or numbers that text stands for, leading zeros or not; None where some is neither."""
    parsed = _parsed(pa.array(fields, pa.large_string()), padded=True)
    return None if parsed is None else parsed.tolist()


def counts_of(spelled) -> str:
    """Count the spellings of gaps: ``11 empty, 8 'NA'``."""
    counts = Counter(spelled).most_common()
    shown = [f"{n} {repr(field) if field else 'empty'}" for field, n in counts[:MOST]]
    others = sum(n for _, n in counts[MOST:])
    return ", ".join([*shown, f"{others} in other ways"] if others else shown)


def alike(labels: Iterable[Any]) -> list[list[str]]:
    """Return the groups of texts that differ only by blanks, case, or how Unicode writes them.

    >>> alike(["yes", "no", "Yes ", 1])
    [['yes', 'Yes ']]
    """
    groups = defaultdict(list)
    for label in labels:
        if isinstance(label, str):
            plain = label if label.isascii() else unicodedata.normalize("NFKC", _seen(label))
            groups[" ".join(plain.casefold().split())].append(label)
    return [group for group in groups.values() if len(group) > 1]


def _seen(text: str) -> str:
    """Return a text without the characters that format others and are not seen, which Unicode calls Cf."""
    return "".join(sign for sign in text if unicodedata.category(sign) != "Cf")


def tell_alike(groups: list[list[str]], count: Callable[[str], int] | None) -> str:
    """Tell of groups that `alike` found, with the number of rows of each text where it is known."""
    spelled = {t: repr(t) if unicodedata.is_normalized("NFC", t) else ascii(t) for group in groups for t in group}
    texts = [[spelled[t] + (f" in {counted(count(t), 'row')}" if count else "") for t in group] for group in groups]
    return f"{several(map(' and '.join, texts), '; ')} differ only by blanks, case or how Unicode writes them"


def slips(counts: Mapping[str, int]) -> dict[str, list[str]]:
    """Return frequent texts, each with the rare ones that are one slip of the keyboard away, by the rows of each text.

    A letter is missing, added or another, or two are exchanged, behind the first of a word of five. Rare are at most
    three rows beside ten times as many. Of a thousand texts and more, as of names, none is looked at. A letter is told
    of the one word of four and more that it begins, however often it is there.

    >>> slips({"m": 20, "male": 4, "female": 30, "A": 9, "AB": 9})
    {'male': ['m']}
    >>> slips({"negativ": 60, "negatv": 1, "male": 50, "female": 2, "typical": 40, "atypical": 3, "L4": 30, "L5": 1})
    {'negativ': ['negatv']}
    """
    found = defaultdict(list)
    for letter, word in (pairs := initials(counts) if len(counts) < 1000 else []):
        if len(word) > 3 and [one for one, _ in pairs].count(letter) == 1:
            found[word].append(letter)
    rare = [(text, count, text.casefold()) for text, count in counts.items() if count <= 3 and len(counts) < 1000]
    for often, count in counts.items() if rare else ():
        plain = often.casefold()
        near = (one for one in rare if 10 * one[1] <= count and one[2][:1] == plain[:1])
        found[often] += [text for text, _, other in near if abs(len(other) - len(plain)) < 2 and _slip(plain, other)]
    return {often: texts for often, texts in found.items() if texts}


def initials(labels: Collection[str]) -> list[list[str]]:
    """Return pairs of a single letter among labels and a word that it begins, as it may stand for it."""
    words = [(word, word.casefold()) for word in labels if word[1:].islower()]
    letters = [(letter, letter.casefold()) for letter in labels if len(letter) == 1]
    return [[letter, word] for letter, small in letters for word, plain in words if plain.startswith(small)]


def _slip(first: str, second: str) -> bool:
    words = [re.split(r"([\W\d_]+)", text) for text in (first, second)]
    (one, other), *more = [pair for pair in zip(*words, strict=False) if pair[0] != pair[1]] or [("", "")]
    alone = not more and len(words[0]) == len(words[1]) and one.isalpha()
    return alone and max(len(one), len(other)) > 4 and bool(_SLIP.match(f"{one}\0{other}"))


def matches(fields, pattern: str) -> np.ndarray:
    """Return the mask of the fields that match a regular expression."""
    return compute.match_substring_regex(fields, pattern).to_numpy(zero_copy_only=False)


def among(fields: "pa.Array", words) -> np.ndarray:
    """Return the mask of the fields that equal one of ``words``."""
    found = compute.is_in(fields, value_set=pa.array(sorted(words), fields.type))
    return found.to_numpy(zero_copy_only=False).astype(bool)


def _parsed(fields: "pa.Array", padded: bool) -> np.ndarray | None:
    """Return bools, integers or floats, as near as their type comes; None where a field is text, or nothing tells."""
    if not len(fields):
        return np.empty(0) if padded else None
    if among(fields, _BOOLS).all():
        return np.array([_BOOLS[field] for field in fields.to_pylist()])
    if not matches(fields, _NUMBER).all() or (not padded and matches(fields, _PADDED).any()):
        return None
    for kind in (pa.int64(), pa.uint64()) if matches(fields, _WHOLE).all() else ():
        try:
            return compute.replace_substring_regex(fields, r"^\+", "").cast(kind).to_numpy()
        except pa.ArrowInvalid:  # beyond 64 bits
            continue
    try:
        return fields.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:  # Python reads what Arrow does not: +1.5, and 1e999 as infinite
        return np.array([float(field) for field in fields.to_pylist()])
