"""What every check of a file asks: that something holds, and whether a value is numbers or labels."""

import numpy as np


def require(right, problem: str) -> None:
    """Raise what is wrong where something does not hold."""
    if not right:
        raise ValueError(f"its parts do not fit each other: {problem}")


def is_labels(value, count: int) -> bool:
    """Whether a value is an array of so many strings."""
    return isinstance(value, np.ndarray) and value.shape == (count,) and all(isinstance(v, str) for v in value.tolist())


def is_numbers(value, shape=None) -> bool:
    """Whether a value is finite floats, of a shape."""
    right = isinstance(value, np.ndarray | float) and np.asarray(value).dtype.kind == "f"
    return right and (shape is None or np.shape(value) == shape) and bool(np.isfinite(value).all())
