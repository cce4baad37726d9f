"""Find in a file itself how it was written, where nobody says it: its separator, units, and signs of numbers.

Each is taken where the file leaves one reading, and told with the option that says it; else it is left to the user.
"""

import csv
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen.core.errors import Argument, Note, named, quoted
from bayesgen.tables.arrow import compute, pa
from bayesgen.tables.numerals import WAYS, Numerals, thousands_apart
from bayesgen.tables.reading import Reading
from bayesgen.tables.text import gaps_among_numbers, matches, sampled
from bayesgen.tables.units import DURATION, power_of, unit_in, without_units

SEPARATORS = ",;\t|"
_ABOVE = 20  # lines above the header at most
# of money, mass, length, volume, temperature, time, power and what is dissolved
_USUAL = """
    $ \u20ac \u00a3 \u00a5 \u20b9 EUR USD GBP CHF SEK NOK DKK PLN CZK HUF RON TRY JPY CNY INR AUD CAD NZD BRL
    MXN kg g mg \u00b5g \u03bcg ug ng t lb lbs oz km m cm mm \u00b5m \u03bcm nm ft mi yd ha m2 m\u00b2 cm2
    cm\u00b2 km\u00b2 m3 m\u00b3 l L dl dL cl ml mL \u00b5l \u03bcl fl \u00b0C \u00b0F \u00b0 K s ms min h hrs
    days years yrs Hz kHz MHz GHz W kW MW kWh MWh V mV mA Pa hPa kPa bar mbar mmHg psi kB MB GB TB km/h mph
    m/s bpm kcal kJ J cal IU U/l U/L IU/l IU/L mIU/l g/l g/L g/dl g/dL mg/l mg/L mg/dl mg/dL \u00b5g/l
    \u03bcg/l ng/ml ng/mL mmol/l mmol/L \u00b5mol/l \u03bcmol/l \u00b5mol/L
"""
UNITS = frozenset((*_USUAL.split(), DURATION))


def separator(lines: Callable[[], Any]) -> str:
    """Return the sign that alone gives every row as many fields, at least two; a comma where there is no such sign.

    ``lines`` opens the text anew. Where no sign does so, it may be one below the fewest lines that have fewer fields.
    """
    with lines() as text:
        head = "".join(itertools.islice(text, _ABOVE))
    signs = [sign for sign in SEPARATORS if sign in head]
    if not set(signs) - {","}:
        return ","
    above = {sign: count for sign in signs if (count := _lines_above(lines, sign)) is not None}
    found = [sign for sign, count in above.items() if count == min(above.values())]
    return found[0] if len(found) == 1 else ","


def _lines_above(lines: Callable[[], Any], sign: str) -> int | None:
    """Return the number of rows above those to which a sign gives as many fields, at least two; None without these."""
    width, rows, above = 0, 0, 0
    with lines() as text:
        try:
            for row in csv.reader(text, delimiter=sign):
                if not any(map(str.strip, row)):
                    continue
                if len(row) > width and above + rows <= _ABOVE:
                    width, rows, above = len(row), 0, above + rows
                if len(row) != width:
                    return None
                rows += 1
        except csv.Error:
            return None
    return above if width > 1 and (rows > 1 or not above) else None


def as_written(
    table: Mapping[str, "pa.Array"], missing: Collection[str], reading: Reading, sep: str = ","
) -> tuple[Reading, list[str], dict[str, str]]:
    """Return how a first file is written, as the user says or, where it leaves one reading, shows; and tell it.

    Columns that keep two readings are told each: they are to be left out of what the others show.
    """
    units = units_in({name: fields for name, fields in table.items() if name not in reading.units}, missing)
    reading, said, doubts = replace(reading, units={**reading.units, **units}), bool(reading.decimal), dict[str, str]()
    usual = Numerals(limits=reading.limits)
    ways = [usual, reading.numerals()] if said else [replace(how, limits=reading.limits) for how in WAYS]
    if said and reading.thousands != ".":
        return reading, [], doubts
    while (found := way_of(table, missing, reading.units, ways)) and found.column:
        doubts[found.column] = _doubt(found.column, found.entry, reading.units, found.ways)
        table = {name: fields for name, fields in table.items() if name != found.column}
    if not said and sep != "," and (found is None or found.ways[0].decimal == "."):
        beside = {name: unit for name, fields in table.items() if (unit := _one_unit(_texts(fields, missing)))}
        doubts |= _of_points(table, missing, {**beside, **reading.units}, usual)
    if found is None:
        return reading, [], doubts
    how, programs = found.ways[0], f"{named(found.plain)}, which programs wrote" if found.plain else ""
    reading = replace(reading, decimal=how.decimal, thousands=how.thousands, plain=found.plain)
    if said:
        return reading, [f"numbers with a point before the fraction: {programs}"] if programs else [], doubts
    plain = programs and f", but for {programs}"
    signs = Note(*how.given(usual), between=" ")
    return reading, [Note("numbers read as the file leaves no other way: ", signs, plain)], doubts


def _doubt(column: str, entry: str, units: Mapping[str, str], ways: Collection[Numerals]) -> str:
    """Return the doubt about a column, with the options for each of its readings."""
    signs = ("decimal", "thousands")
    unit = units.get(column, "")
    beside = [Argument("units", {column: unit})] if unit and unit not in UNITS else []
    arguments = ([*(Argument(name, sign) for name in signs if (sign := getattr(way, name))), *beside] for way in ways)
    bare = without_units(pa.array([entry], pa.string()), unit)
    numbers = (way.plain(bare)[0].as_py() for way in ways)  # a point that a program wrote stays
    either = [Note(f"{n} by ", Note(*said, between=" ")) for n, said in zip(numbers, arguments, strict=True)]
    why = f": {entry!r} may be read in two ways, as "
    return Note(quoted(column), " left out", why, Note(*either, between=" or as "))


def _of_points(table, missing: Collection[str], units: Mapping[str, str], usual: Numerals) -> dict[str, str]:
    """Return the doubts about columns whose points may all stand between thousands, where none of the file cannot."""
    found = {}
    for name, fields in table.items():
        texts = without_units(pa.array(_texts(fields, missing), pa.string()), units.get(name, ""))
        if units.get(name) != DURATION and matches(texts, "[.]").any() and matches(texts, usual.pattern).all():
            if _fractions(texts):
                return {}
            found[name] = thousands_apart(texts)
    ways = [replace(usual, decimal=",", thousands="."), usual]
    return {name: _doubt(name, entry, units, ways) for name, entry in found.items()}


def _ungrouped(texts: "pa.Array") -> bool:
    """Return True if thousands have no sign in a column, as by 1141 beside 1.234, which is then a fraction."""
    patterns = ("^[^0-9]*[1-9][.,][0-9]{3}[^0-9.,]*$", "^[^0-9.,]*[1-9][0-9]{3}[^0-9.,]*$")
    return all(matches(texts, pattern).any() for pattern in patterns)


def units_in(table: Mapping[str, "pa.Array"], missing: Collection[str]) -> dict[str, str]:
    """Return the columns in which beside every number stands one unit, of those that are known, each with its unit."""
    found = {}
    for name, fields in table.items():
        if _one_unit(_texts(sampled(fields), missing)) in UNITS and (unit := _one_unit(_texts(fields, missing))):
            found[name] = unit
    return found


def _texts(fields: "pa.Array", missing: Collection[str]) -> list[str]:
    """Return the distinct fields that are no gaps."""
    distinct = compute.utf8_trim_whitespace(fields.unique())
    return distinct.filter(pa.array(~gaps_among_numbers(distinct, missing))).to_pylist()


def _one_unit(texts: list[str]) -> str:
    """Return the unit that all texts have, a 0 aside, or in one or another power of ten; "" where there is none."""
    texts = [text for text in texts if text.strip("0.,")]
    if not texts or not unit_in(texts[0]):
        return ""
    units = Counter(map(unit_in, texts))
    powers = {power[0] if (power := power_of(unit)) else unit for unit in units}
    return units.most_common(1)[0][0] if len(powers) == 1 else ""


@dataclass(frozen=True)
class Way:
    """A way in which all numbers of a file can be read, or two of which nothing tells which is meant."""

    ways: tuple[Numerals, ...]
    plain: tuple[str, ...] = ()  # columns that programs wrote beside them
    column: str = ""  # one that the two read otherwise
    entry: str = ""  # of that column


def way_of(
    table: Mapping[str, "pa.Array"], missing: Collection[str], units: Mapping[str, str], ways: list[Numerals]
) -> Way | None:
    """Return the way, of several with the plain one first, that reads all numbers of a file; None if plain, or none.

    A column of fractions with a point is one that a program wrote where most of its points cannot stand between
    thousands.
    """
    table = {name: fields for name, fields in table.items() if units.get(name) != DURATION}
    looks = {name: without_units(sampled(fields), units.get(name, "")) for name, fields in table.items()}
    odd = [name for name, look in looks.items() if not _reads(ways[0], look, missing)]
    if not (odd := [name for name in odd if any(_reads(how, looks[name], missing) for how in ways[1:])]):
        return None
    values: dict[str, list] = {}
    for name in [*odd, *(name for name in table if name not in odd and _reads(ways[0], looks[name], missing))]:
        texts = without_units(pa.array(_texts(table[name], missing), pa.string()), units.get(name, ""))
        if _codes(texts) or not len(texts):
            continue
        several = [how for how in ways if how.thousands not in (".", ",")] if _ungrouped(texts) else ways
        read = [how.plain(texts) if how in several and matches(texts, how.pattern).all() else None for how in ways]
        if any(one is not None for one in read):
            values[name] = read
    programs = any(read[0] is not None and _fractions(read[0]) for read in values.values())
    found = [p for p in range(len(ways)) if all(_value(read, p, ways, programs) for read in values.values())]
    if not found or not any(name in values for name in odd):
        return None
    how = ways[found[0]]
    for name, read in values.items():
        first, *others = (_value(read, place, ways, programs).cast(pa.float64()).to_numpy() for place in found)
        for place, other in zip(found[1:], others, strict=True):
            if (apart := ~np.equal(first, other)).any():
                entry = _texts(table[name], missing)[int(apart.argmax())]
                return Way((how, ways[place]), column=name, entry=entry)
    return Way((how,), tuple(name for name, read in values.items() if how.thousands == "." and read[found[0]] is None))


def _reads(how: Numerals, fields: "pa.Array", missing: Collection[str]) -> bool:
    return bool((gaps_among_numbers(fields, missing) | matches(fields, how.pattern)).all())


def _value(read: list, place: int, ways: list[Numerals], programs: bool) -> Any:
    """Return the numbers of a column in one of the ways, as programs write them; None where that does not read it.

    Where ``programs`` wrote no fraction with a point, a column of points that may be of thousands is none of theirs.
    """
    if read[place] is not None or read[0] is None:
        return read[place]
    pointed = [text for text in read[0].to_pylist() if "." in text]
    apart = sum(bool(thousands_apart(pa.array([text]))) for text in pointed)
    if ways[place].thousands == ".":
        return read[0] if 2 * apart < len(pointed) else None
    return read[0] if programs or not apart or apart < len(pointed) else None


def _fractions(texts: "pa.Array") -> bool:
    """Return True if the points in a column of plain numbers cannot all stand between thousands."""
    return bool(matches(texts, "[.]").any() and (not thousands_apart(texts) or _ungrouped(texts)))


def _codes(texts: "pa.Array") -> bool:
    """Return True for whole numbers of three groups or more, all as long: of telephones, accounts, people."""
    lengths = compute.unique(compute.utf8_length(texts)).to_pylist()
    return len(lengths) == 1 and lengths[0] > 10 and not matches(texts, "[.,]").any()
