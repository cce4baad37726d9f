"""Beta and gamma distributions whose central interval is given: an expert's words as hyperparameters."""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, expit, gammainc, gammaincinv


def _tail(low: float, high: float, mass: float, most: float) -> float:
    """Mass on either side of the interval, or an error where it is none."""
    if not 0 < low < high < most:
        between = "0 and 1" if most == 1 else "0 and infinity"
        raise ValueError(f"low and high must be in order and between {between}, got {low} and {high}")
    if not 0 < mass < 1:
        raise ValueError(f"mass must be between 0 and 1, got {mass}")
    return (1 - mass) / 2


def _root(excess, low: float, high: float) -> float:
    """Logarithm of the strength, between some 3e-4 and 7e10 rows."""
    if excess(-8) * excess(25) > 0:
        raise ValueError(f"no prior is so wide or so narrow: low {low}, high {high}")
    found: Any = brentq(excess, -8, 25, xtol=1e-13)
    return float(found)


def beta_of_interval(low: float, high: float, mass: float) -> tuple[float, float]:
    """Beta(a, b) with as much below ``low`` as above ``high``, and ``mass`` between.

    For each total a + b one mean has the right mass below ``low``; the mass above ``high`` falls with the total.

    >>> a, b = beta_of_interval(0.025, 0.975, 0.95)
    >>> round(a, 6), round(b, 6)
    (1.0, 1.0)
    """
    tail = _tail(low, high, mass, 1.0)

    def with_total(log_total):
        total = np.exp(log_total)
        logit: Any = brentq(lambda z: betainc(total * expit(z), total * expit(-z), low) - tail, -40, 40, xtol=1e-14)
        return total * expit(logit), total * expit(-logit)

    a, b = with_total(_root(lambda z: betainc(*with_total(z), high) - (1 - tail), low, high))
    return float(a), float(b)


def gamma_of_interval(low: float, high: float, mass: float) -> tuple[float, float]:
    """Gamma(concentration, rate) with as much below ``low`` as above ``high``, and ``mass`` between.

    For each concentration one rate has the right mass below ``low``; then the mass above ``high`` falls with it.

    >>> concentration, rate = gamma_of_interval(-np.log(0.95), -np.log(0.05), 0.9)
    >>> round(concentration, 6), round(rate, 6)
    (1.0, 1.0)
    """
    tail = _tail(low, high, mass, np.inf)

    def rate(concentration):
        return gammaincinv(concentration, tail) / low

    def excess(log_concentration):
        concentration = np.exp(log_concentration)
        return gammainc(concentration, rate(concentration) * high) - (1 - tail)

    concentration = np.exp(_root(excess, low, high))
    return float(concentration), float(rate(concentration))
