"""Errors that carry what is needed to say them in the user's own names."""

import numpy as np


class NoClosedForm(Exception):
    """A model has no formula for what was asked; an inference may have another way."""


class DataError(ValueError):
    """A value that a model cannot take, placed by index; a model that knows names says it again with them."""

    def __init__(self, problem: str, *, group: int | None = None, feature: int | None = None):
        self.problem, self.group, self.feature = problem, group, feature
        super().__init__(_told(None if group is None else str(group), "feature", feature, problem))

    def with_names(self, classes=(), columns=()) -> ValueError:
        """The same error with the names of class and column in place of their numbers."""
        group = None
        if self.group is not None:
            group = repr(classes[self.group] if len(classes) else self.group)
        if not len(columns) or (len(columns) > 1 and self.feature is None):
            return ValueError(_told(group, "column", None, self.problem))
        feature = self.feature or 0  # within a block that goes by one name its number stays a number
        name = repr(columns[feature]) if feature < len(columns) else f"{columns[0]!r}, feature {feature}"
        return ValueError(_told(group, "column", name, self.problem))


def _told(group: str | None, kind: str, feature, problem: str) -> str:
    place = [] if group is None else [f"class {group}"]
    if feature is not None:
        place.append(f"{kind} {feature}")
    return f"{', '.join(place)}: {problem}" if place else problem


def first(bad) -> dict[str, int]:
    """Where ``bad`` (groups, features...) is first true, as arguments of `DataError`."""
    index = np.argwhere(np.atleast_1d(bad))[0]
    place = {"group": int(index[0])}
    if len(index) > 1:
        place["feature"] = int(index[-1])
    return place
