"""Schemas of pyarrow: what the types of columns declare."""

from bayesgen.messages import listed
from bayesgen.tables.survey import Survey, kind_of_type


def without_index(schema) -> list[str]:
    """Columns of a schema of pyarrow, less those that pandas wrote for the index of a frame."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in index]


def declared(schema, target, weight) -> Survey:
    """Kinds of the columns, but for those of the classes and of the weights."""
    columns = [name for name in without_index(schema) if name not in (target, weight)]
    return Survey({name: kind_of_type(schema.field(name).type) for name in columns})


def check_like(schema, path, first) -> None:
    """Raise where a file has other columns than the first, or one of another kind."""
    here, there = (set(without_index(s)) for s in (schema, first))
    if here != there:
        raise ValueError(
            f"its columns are not those of {path}: it lacks {listed(sorted(there - here))} and has besides "
            f"{listed(sorted(here - there))}"
        )
    for name in sorted(here):
        mine, other = schema.field(name).type, first.field(name).type
        if mine != other and kind_of_type(mine) != kind_of_type(other) and "null" not in (mine, other):
            raise ValueError(f"column {name!r} is of the type {mine}, in {path} of the type {other}")
