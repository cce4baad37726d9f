"""What a user says of the columns of a raw table, where their type does not tell it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from bayesgen.messages import named


@dataclass(frozen=True)
class Roles:
    """Columns by what they are.

    Attributes
    ----------
    drop : tuple of str
        Those that are left out.
    id : tuple of str
        Those that name the rows: left out of the model, and carried into the predictions.
    categorical, count, bernoulli, log, date : tuple of str
        Numbers that are categories; counts (Poisson); 0 or 1; positive and skewed numbers, described by their
        logarithm; dates to be used as numbers of days.
    """

    drop: tuple[str, ...] = ()
    id: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    count: tuple[str, ...] = ()
    bernoulli: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    date: tuple[str, ...] = ()

    @classmethod
    def said(cls, columns: Iterable[str], given: Mapping[str, Iterable[str] | None]) -> "Roles":
        """Roles from what was said on a command line: column names, with commas between where there are several.

        Parameters
        ----------
        columns : iterable of str
            Those of the table.
        given : mapping from role to iterable of str, or None
            A value that is the name of a column is that one, commas and all.

        Raises
        ------
        ValueError
            If there is no such column, or one is named twice.
        """
        columns, taken = list(columns), {}
        result: dict[str, tuple[str, ...]] = {field.name: () for field in fields(cls)}
        for role, values in given.items():
            parts = (part for value in values or () for part in ([value] if value in columns else value.split(",")))
            result[role] = tuple(part.strip() for part in parts if part.strip())
            for name in result[role]:
                if name not in columns:
                    raise ValueError(f"--{role}: no column {name!r}; there are: {named(columns)}")
                if name in taken:
                    raise ValueError(f"--{role}: the column {name!r} is named by --{taken[name]} already")
                taken[name] = role
        return cls(**result)
