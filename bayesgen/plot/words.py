"""Odds, probabilities and values in words, as pictures and the command line tell them."""

import math


def probability(p: float) -> str:
    """A probability with three digits, and never 0 or 1 where it is not."""
    return f"{p:.3f}" if 0.001 <= p <= 0.999 else "< 0.001" if p < 0.5 else "> 0.999"


def interval(bounds: tuple[float, float]) -> str:
    """An interval of a probability."""
    return f"{probability(bounds[0])} to {probability(bounds[1])}"


def value(entry) -> str:
    """What stands in a table, with six digits of a number."""
    number = isinstance(entry, int | float) and not isinstance(entry, bool)
    return "missing" if entry is None else f"{entry:g}" if number else str(entry)


def odds(log_odds: float) -> str:
    """Odds: 3 to 1, or 1 to 4.

    >>> odds(math.log(3)), odds(math.log(0.25))
    ('3 to 1', '1 to 4')
    """
    return f"{_ratio(log_odds)} to 1" if log_odds >= 0 else f"1 to {_ratio(log_odds)}"


def factor(log_odds: float) -> str:
    """What a term does to the odds: times 3.2, divided by 4.

    >>> factor(math.log(3.2)), factor(-math.log(4)), factor(0.0)
    ('times 3.2', 'divided by 4', 'as before')
    """
    if abs(log_odds) < 0.005:
        return "as before"
    return f"{'times' if log_odds > 0 else 'divided by'} {_ratio(log_odds)}"


def _ratio(log_odds: float) -> str:
    ratio = math.exp(min(abs(log_odds), 700.0))
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:,.0f}" if ratio < 1e6 else "more than a million"
