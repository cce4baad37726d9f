"""Settings within the parameters of an estimator: fields of inferences and priors, leaves of columns."""

import dataclasses
from collections.abc import Mapping
from typing import Any


def settings(value: Any) -> dict[str, Any]:
    """What can be set within a value, by its path: ``num_samples`` of an inference, ``height__kappa`` of leaves."""
    result = {}
    for name, part in _parts(value).items():
        result[name] = part
        result |= {f"{name}__{path}": inner for path, inner in settings(part).items()}
    return result


def changed(value: Any, changes: Mapping[str, Any], where: str) -> Any:
    """The same value with some of its `settings` changed, all at once.

    Parameters
    ----------
    value : record or mapping
        What is changed; it stays as it is.
    changes : mapping from path to value
        The new settings.
    where : str
        What the value is called, for messages.
    """
    parts, new, inner = _parts(value), {}, {}
    for path, setting in changes.items():
        name = next((n for n in parts if path == n or path.startswith(f"{n}__")), None)
        if name is None:
            there = f"it has {sorted(parts)}" if parts else "give an inference, prior or leaf to set something in"
            raise ValueError(f"{where}={value!r:.100} has no setting {path!r}; {there}")
        if path == name:
            new[name] = setting
        else:
            inner.setdefault(name, {})[path[len(name) + 2 :]] = setting
    for name, own in inner.items():
        new[name] = changed(new.get(name, parts[name]), own, f"{where}__{name}")
    return {**value, **new} if isinstance(value, Mapping) else dataclasses.replace(value, **new)


def _parts(value) -> dict[str, Any]:
    """Fields of a record that its user gives (an estimator sets those by keyword alone), or values of a mapping."""
    if isinstance(value, Mapping):
        return {key: part for key, part in value.items() if isinstance(key, str)}
    if isinstance(value, type) or not dataclasses.is_dataclass(value):
        return {}
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if not field.kw_only}
