"""Results of a run of `bayesgen compare`: for the page, for the files, and for programs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.cli.report.classes import ByClass, base_rate
from bayesgen.cli.report.words import families, from_exact
from bayesgen.comparison import Comparison, ModelComparison, over_time
from bayesgen.core import __version__
from bayesgen.tables.cleaning import Prepared
from bayesgen.tables.files import TableFile
from bayesgen.tables.schema import Schema


@dataclass(frozen=True, eq=False)
class Account:
    """Input, settings and results of a comparison."""

    read: TableFile  # the file as it was read
    target: str  # the column of the classes
    prepared: Prepared  # the table as models take it
    schema: Schema  # the families of its columns
    model: str  # whose inferences are compared: "nb" or "gda"
    result: Comparison  # its inferences
    models: ModelComparison | None  # models beside each other, where they were asked for
    worth: pd.DataFrame  # worth of each column to ``model`` under the exact posterior, on held-out rows (n, columns)
    by_class: ByClass  # scores by class of the best of them, and its actions
    seed: int  # of the folds and of NUTS
    command: str  # repeats it
    order: str | None  # the column of times, where each row is predicted from earlier ones

    @property
    def source(self) -> Comparison:
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
