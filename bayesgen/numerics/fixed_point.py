"""The end of a search that repeats one map, such as expectation-maximisation, until its argument moves no more."""

__all__ = ["reached"]


def reached(step: float, last: float, tolerance: float) -> bool:
    """Return True if the search is within ``tolerance`` of the fixed point.

    Such a search converges at a linear rate r, the ratio of two steps; after a step s, a distance of about
    s (r + r² + ...) = s r/(1 - r) remains. A small step alone does not show that the end is near.

    Parameters
    ----------
    step, last : float
        Sizes of this step and of the one before, >= 0; ``last`` is infinite at the first.
    tolerance : float
        Largest distance, in the units of the steps.

    Examples
    --------
    >>> reached(1e-6, 2e-6, 1e-5), reached(1e-6, 1.001e-6, 1e-5)  # rates .5 and .999
    (True, False)
    """
    rate = step / last if step else 0.0
    return step == 0 or (0 < rate < 1 and step * rate / (1 - rate) < tolerance)
