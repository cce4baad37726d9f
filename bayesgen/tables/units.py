"""Units beside numbers, such as 7.5 kg and $ 7.50: finding one, taking it away, and its powers of ten."""

import re

from bayesgen.tables.arrow import compute, pa
from bayesgen.tables.text import matches

BLANK = "[ \t\u00a0\u2007\u2009\u202f]"  # blanks that stand in numbers, those that do not break a line among them
MINUS = "[-\u2212\u2013]"  # of keyboards; of word processors and typesetting, which some write as a dash
_DRESSED = re.compile(  # $7.5, EUR 7.5, 7.5 kg
    rf"[-+\u2212\u2013]?(?P<before>[$\u20ac\u00a3\u00a5\u20b9]{BLANK}*|[A-Z]{{3}}{BLANK}+)?[-+\u2212\u2013]?[.,]?[0-9]"
    rf"(?:[0-9.,'\u2019]|{BLANK}(?=[0-9]))*(?P<behind>{BLANK}*(?:[^\W\d_]|[$\u20ac\u00a3\u00a5\u20b9\u00b0])[^\d.,]{{0,7}})?$"
)
DURATION = "h:mm"  # in place of a unit, of durations such as 1:30 or 1 days 02:30:00, which are days
_CLOCK = re.compile(
    r"([+-]?\d+) days? ()\+?(\d\d):(\d\d):(\d\d(?:\.\d+)?)$|()(-?)(\d{1,4}):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?$"
)
_POWERS = {"n": -9, "\u00b5": -6, "\u03bc": -6, "u": -6, "m": -3, "c": -2, "d": -1, "": 0, "k": 3}  # of m, g, l
_LONGEST = 100  # characters of a number: some patterns take time that grows with the square of a text


def fits(pattern: str | re.Pattern, text: str) -> re.Match | None:
    """Return the match of a text at its beginning; None of one that is too long for a number."""
    return re.match(pattern, text) if len(text) <= _LONGEST else None


def _days_of(text: str) -> str:
    if not (found := _CLOCK.match(text.strip())):
        return text
    days, sign, hours, minutes, seconds = (found[place] or found[place + 5] or "0" for place in range(1, 6))
    clock = (int(hours) * 60 + int(minutes) + float(seconds) / 60) / 1440
    return repr(-clock if sign == "-" else int(days) + clock)


def unit_in(text: str) -> str:
    """Return the unit before or behind a number; "" where there is none.

    >>> unit_in("$ 7.50"), unit_in("-7,5 mg/l"), unit_in("7.5"), unit_in("A7"), unit_in("1:30")
    ('$', 'mg/l', '', '', 'h:mm')
    """
    if _CLOCK.match(text.strip()):
        return DURATION
    found = fits(_DRESSED, re.sub(f"[()]|(?<=[0-9]){MINUS}", "", text).strip())  # (7.5) kg and 7.5- kg
    return "" if found is None else (found["before"] or found["behind"] or "").strip()


def undressed(fields: "pa.Array", unit: str) -> "pa.Array":
    """Return fields without a unit before or behind their number; durations as days."""
    if unit == DURATION:
        return pa.array(map(_days_of, fields.to_pylist()), fields.type)
    word = re.escape(unit).replace(r"\ ", " ")  # which Arrow takes for no escape
    bare = compute.replace_substring_regex(fields, f"^({BLANK}*(?:[+(]|{MINUS})?){BLANK}*{word}{BLANK}*", r"\1")
    behind = rf"([^\pL]){BLANK}*{word}({BLANK}?(?:[)]|{MINUS})?{BLANK}*)$"  # the m of 5 m, and not of 5 mm
    bare = compute.replace_substring_regex(bare, behind, r"\1\2")
    return compute.if_else(compute.match_substring_regex(fields, "[0-9]"), bare, fields)


def power_of(unit: str) -> tuple[str, int] | None:
    """Return what a unit is a power of ten of, and the power: metres, grams and litres; None of other units.

    >>> power_of("cm"), power_of("L"), power_of("kg"), power_of("mmol/l"), power_of("M")
    (('m', -2), ('l', 0), ('g', 3), None, None)
    """
    base = {"m": "m", "g": "g", "l": "l", "L": "l"}.get(unit[-1:])
    return (base, _POWERS[unit[:-1]]) if base and unit[:-1] in _POWERS else None


def without_units(fields: "pa.Array", unit: str, computed: bool = False) -> "pa.Array":
    """Return fields without a unit or another power of ten of it: 1.5 cm in mm as 1.5, or ``computed`` as 1.5e1."""
    fields, wanted = undressed(fields, unit), power_of(unit)
    words = compute.utf8_trim_whitespace(fields.unique()) if wanted else pa.array([], pa.string())
    for other in {unit_in(text) for text in words.filter(pa.array(matches(words, "[mglL]"))).to_pylist()}:
        if wanted and (power := power_of(other)) and power[0] == wanted[0]:
            plain, texts = compute.utf8_trim_whitespace(undressed(fields, other)), compute.utf8_trim_whitespace(fields)
            scaled = compute.binary_join_element_wise(plain, f"e{power[1] - wanted[1]}" if computed else "", "")
            fields = compute.if_else(compute.equal(plain, texts), fields, scaled)
    return fields
