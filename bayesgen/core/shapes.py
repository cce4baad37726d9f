"""Shapes of the arrays that a record keeps: said at its fields, and checked in one walk where a file was read."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesgen.core.program import Record


def shaped(axes: str, kind: str = "f", *, places: str = "", same: str = "", least=-np.inf, positive=False) -> dict:
    """Return the metadata of a field of a record that is an array of finite numbers, or of whole ones (``kind`` "i").

    ``axes`` are the names of its axes, or their lengths: "groups columns", "nodes 2", "1+columns"; "" is a number, and
    "columns or columns columns" is either. A name has one length in a record and in those that it holds. Entries are
    places of the axis ``places``, whole numbers 0, 1, ...; or the whole numbers called ``same``; or ``least`` and more;
    or ``positive``, above 0.
    """
    kind = "i" if places or same else kind
    return {"axes": axes, "kind": kind, "places": places, "same": same, "least": least, "positive": positive}


def require_fit(right, problem: str) -> None:
    """Raise a problem of what a file says unless something is right."""
    if not right:
        raise ValueError(f"its parts do not fit each other: {problem}")


def check_array(where: str, value, axes: str, sizes: dict[str, Any], kind: str = "f") -> None:
    """Raise unless a value is finite floats, or whole numbers of ``kind`` "i", of these axes, see `shaped`.

    ``where`` names the value in the message; ``sizes`` has known lengths of axes, and gets those of other names.
    """
    array = np.asarray(value) if isinstance(value, np.ndarray | float | int) else np.empty(0, object)
    fitting = (_lengths(choice.split(), array.shape, sizes) for choice in axes.split(" or "))
    found = next((lengths for lengths in fitting if lengths is not None), None)
    known = ", ".join(f"{name} = {sizes[name]}" for name in sorted({*axes.split()} & sizes.keys()))
    what = f"{where} are not {'finite' if kind == 'f' else 'whole'} numbers of the shape ({axes}), {known}"
    require_fit(array.dtype.kind == kind and found is not None and np.isfinite(array).all(), what)
    sizes.update(found or {})


def _lengths(names, shape, known) -> dict[str, Any] | None:
    """Return known lengths with those of the axes, or None where these do not fit them; other names have any length."""
    if len(names) != len(shape):
        return None
    sizes = dict(known)
    for name, length in zip(names, shape, strict=True):
        if name.isidentifier():
            expected = sizes.setdefault(name, length)
        else:
            expected = sum(int(term) if term.isdigit() else sizes[term] for term in name.split("+"))
        if expected != length:
            return None
    return sizes


def check_shapes(record, sizes: Mapping[str, Any]) -> None:
    """Raise ValueError where arrays of a record, or of the records that it holds, are not as their fields say.

    A record may write ``fits(sizes)``, which is asked once its arrays are right: it raises by `require_fit` where they
    do not go together, and returns the lengths of the axes of the records that it holds.
    """
    known = dict(sizes)
    for field in dataclasses.fields(record):
        value, said = getattr(record, field.name), field.metadata
        if "axes" not in said or value is None:
            continue
        where = f"{type(record).__name__}.{field.name}"
        check_array(where, value, said["axes"], known, said["kind"])
        above = (np.asarray(value) >= said["least"]) & (np.asarray(value) > (0 if said["positive"] else -np.inf))
        require_fit(above.all(), f"{where} have entries that are too small")
        if said["places"]:
            within = (value >= 0).all() and (value < known[said["places"]]).all()
            require_fit(within, f"{where} are no places of {known[said['places']]} {said['places']}")
        if said["same"]:
            require_fit(value.tolist() == list(known[said["same"]]), f"{where} are not {known[said['same']]}")
    inner = record.fits(known) if hasattr(record, "fits") else known
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Record):
                check_shapes(one, inner)
