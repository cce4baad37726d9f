"""Results of a run of `bayesgen compare`: for the page, for the files, and for programs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesgen.cli.report.classes import ByClass, base_rate
from bayesgen.cli.report.words import families, from_exact
from bayesgen.core import __version__

if TYPE_CHECKING:
    from bayesgen.comparison import Comparison, ModelComparison


@dataclass(frozen=True, eq=False)
class Account:
    """Input, settings and results of a comparison.

    Attributes
    ----------
    read, target, prepared, schema
        The file as it was read, the column of the classes, what was made of the table, and the families of its columns.
    model : str
        The model whose inferences are compared, "nb" or "gda".
    result : Comparison
        Its inferences.
    models : ModelComparison or None
        Models beside each other, where they were asked for.
    worth : DataFrame, shape (n, columns)
        Worth of each column to ``model`` under the exact posterior, on held-out rows.
    by_class : ByClass
        Scores by class of the best of them, and its actions.
    seed : int
        Of the folds and of NUTS.
    command : str
        The command to repeat it.
    order : str or None
        The column of times, where each row is predicted from earlier ones.
    """

    read: Any
    target: str
    prepared: Any
    schema: Any
    model: str
    result: "Comparison"
    models: "ModelComparison | None"
    worth: pd.DataFrame
    by_class: ByClass
    seed: int
    command: str
    order: str | None = None

    @property
    def source(self) -> "Comparison":
        """The comparison that has the best model."""
        return self.result if self.models is None else self.models

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; None in place of NaN and infinite numbers."""
        labels, counts = np.unique(self.prepared.y, return_counts=True)
        columns = {column: family for family, own in families(self.schema).items() for column, _ in own}
        worth = {"importance": self.worth.mean(), "standard_error": self.worth.sem()}
        found: dict[str, Any] = {
            "bayesgen": __version__,
            "command": self.command,
            "data": {
                "source": self.read.source,
                "rows": len(self.read.table),
                "rows_used": len(self.prepared.y),
                "target": self.target,
                "classes": {str(label): int(n) for label, n in zip(labels.tolist(), counts, strict=True)},
                "columns": columns,
                "notes": [*self.read.notes, *self.prepared.notes],
            },
            "folds": self.result.folds,
            "seed": self.seed,
            "model": self.model,
            "inferences": {name: self._inference(name) for name in self.result.probability},
            "base_rate": base_rate(self.result),
            "by_class": self.by_class.to_dict(),
            "importance": {c: {what: v[c] for what, v in worth.items()} for c in self.worth.columns},
            "notes": [vars(note) for note in self.result.notes],
        }
        if self.models is not None:
            found["models"] = self.models.table.to_dict(orient="index")
            found["best"], found["remarks"] = self.models.best, self.models.remarks
            found["notes"] += [vars(note) for note in self.models.notes]
        if self.order is not None:
            from bayesgen.comparison import over_time

            times = over_time(self.source, self.by_class.name).astype({"begin": str, "end": str})
            found["order"] = {"column": self.order, "of": self.by_class.name, "periods": times.to_dict("records")}
        return {name: _as_json(own) for name, own in found.items()}

    def _inference(self, name: str) -> dict[str, Any]:
        scores, result = vars(self.result.scores(name)), self.result
        apart = from_exact(result, name)
        most = {"largest_difference_from_exact": apart.max()} if apart.size else {}
        few = {"rows_of_few_draws": result.doubtful[name].sum()}
        return scores | {"seconds": result.seconds[name]} | most | few


def _as_json(value):
    """Convert values to those that JSON has."""
    if isinstance(value, dict):
        return {str(name): _as_json(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(own) for own in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value
