"""Results of a run of `bayesgen compare`, for the page, for the files, and for programs: scores by class, and all."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix, precision_score, recall_score, roc_auc_score

from bayesgen import decision
from bayesgen.cli.report.words import base_rate, families, from_exact, in_options
from bayesgen.comparison import Comparison, ModelComparison, held_out_importance, over_time
from bayesgen.core import __version__
from bayesgen.evaluation import NetBenefit, net_benefit
from bayesgen.sheets.cleaning import Prepared
from bayesgen.sheets.files import TableFile
from bayesgen.tables.schema import Schema

_CURVES = 7  # models whose net benefit is told
_THRESHOLDS = (0.05, *(tenth / 10 for tenth in range(1, 10)), 0.95)


@dataclass(frozen=True, eq=False)
class ByClass:
    """The scores of the held-out rows, each class against all others, and the actions at the user's costs.

    Where each action is a class, the scores are of the actions; else they are of the most probable classes.
    """

    name: str  # the model or inference whose probabilities they are
    scores: pd.DataFrame  # (K, 5): "rows", "base rate", "sensitivity", "precision" and "ROC-AUC"
    actions: pd.DataFrame  # (K, actions): how many rows of each class meet each action
    cost: float  # mean cost of a row
    least: float  # least mean cost of an action that is taken for all rows alike
    told: bool  # the user gave the costs; else a mistake costs 1
    thresholds: pd.DataFrame  # of two classes: the scores of naming the second from a probability on; else empty

    @classmethod
    def of(cls, result: Comparison, models: ModelComparison | None, loss: pd.DataFrame, told: bool) -> "ByClass":
        """Return the scores of the best model, or without models of the exact posterior or the first inference."""
        if models is not None:
            source, name = models, models.best
        else:
            learned = [name for name in result.probability if result.learned(name).any()]
            source, name = result, "exact" if "exact" in learned else learned[0]
        labels, (_, codes, p, weight, _) = source.classes.tolist(), source.judged(name)
        words = [str(label) for label in labels]
        taken = decision.act(p, loss, labels)["action"].astype(str).to_numpy()
        truth = np.array(words, dtype=object)[codes]
        actions = [str(action) for action in loss.columns]
        both = list(dict.fromkeys([*words, *actions]))
        table: Any = confusion_matrix(truth, taken, labels=both, sample_weight=weight)
        table = pd.DataFrame(table, index=both, columns=both)
        predicted = taken if set(actions) <= set(words) else np.array(words, dtype=object)[p.argmax(1)]
        how: dict = {"labels": words, "average": None, "zero_division": np.nan, "sample_weight": weight}
        counts = np.bincount(codes, weight, minlength=len(labels))
        scores = {
            "rows": counts,
            "base rate": counts / counts.sum(),
            "sensitivity": recall_score(truth, predicted, **how),
            "precision": precision_score(truth, predicted, **how),
            "ROC-AUC": [
                roc_auc_score(codes == k, column, sample_weight=weight) if 0 < n < counts.sum() else np.nan
                for k, (column, n) in enumerate(zip(p.T, counts, strict=True))
            ],
        }
        by_action = table.loc[words, actions]
        costs = loss.rename(index=str, columns=str).loc[words, actions].to_numpy()
        cost = float((by_action.to_numpy() * costs).sum() / counts.sum())
        least = float((counts[:, None] * costs).sum(0).min() / counts.sum())
        by_threshold = _by_threshold(codes == 1, p[:, 1], weight) if len(labels) == 2 else pd.DataFrame()
        return cls(name, pd.DataFrame(scores, index=words), by_action, cost, least, told, by_threshold)

    def threshold_cells(self) -> dict[str, dict[str, str]]:
        """Return the scores at each threshold, by heading."""
        return _cells(self.thresholds.rename(index="{:g}".format, columns={"rows": "rows named"}))

    def score_cells(self) -> dict[str, dict[str, str]]:
        """Return the scores by class and heading."""
        headings = {"base rate": "base\nrate", "sensitivity": "sensi-\ntivity"}
        headings |= {"precision": "preci-\nsion", "ROC-AUC": "ROC-\nAUC"}
        return _cells(self.scores.rename(columns=headings))

    def action_cells(self) -> dict[str, dict[str, str]]:
        """Return the rows of each class by action."""
        rows = self.actions.to_dict(orient="index")
        return {str(label): {str(action): f"{n:.10g}" for action, n in row.items()} for label, row in rows.items()}

    def sentence(self) -> str:
        """Tell what the actions cost."""
        costs = "at your costs" if self.told else "where each mistake costs 1 (--loss takes other costs)"
        least = f"the best single action for all rows costs {self.least:.4f}"
        return f"Rows of each class by the action of least expected cost, {costs}: {self.cost:.4f} a row; {least}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "of": self.name,
            "scores": self.scores.to_dict(orient="index"),
            "actions": self.actions.to_dict(orient="index"),
            "cost": self.cost,
            "least_cost_of_one_action": self.least,
            "thresholds": self.thresholds.to_dict(orient="index"),
        }


def _by_threshold(true: np.ndarray, p: np.ndarray, weight: np.ndarray | None) -> pd.DataFrame:
    """Return the scores of naming a class, which rows (n,) are ``true`` of, where its probability p (n,) is enough."""
    rows, w = {}, np.ones(len(p)) if weight is None else weight
    for threshold in _THRESHOLDS:
        named = p >= threshold
        with np.errstate(invalid="ignore"):  # 0 of 0 rows: NaN
            rows[threshold] = {
                "rows": w @ named,
                "sensitivity": np.divide(w @ (named & true), w @ true),
                "specificity": np.divide(w @ (~named & ~true), w @ ~true),
                "precision": np.divide(w @ (named & true), w @ named),
                "negative value": np.divide(w @ (~named & ~true), w @ ~named),
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def _note(note) -> dict[str, Any]:
    text = in_options(note.message)
    return {"inference": note.inference, "fold": note.fold, "text": text, "failed": note.failed}


def _cells(scores: pd.DataFrame) -> dict:
    """Return the texts of scores by row and heading, in the first column numbers of rows."""
    count, *others = scores.columns
    told: Any = scores[others].map(lambda value: f"{value:.4f}" if np.isfinite(value) else "-")
    told.insert(0, count, scores[count].map("{:.0f}".format))
    return told.to_dict(orient="index")


class Worth(NamedTuple):
    """Worth of the columns to what predicts best, on held-out rows."""

    name: str  # the model or inference
    frame: pd.DataFrame  # growth of the log loss of each row without a column, (n, columns asked); empty if not asked
    columns: int  # columns of the table
    no_better: bool  # than the frequencies of the classes: then no column is asked about

    @classmethod
    def of(cls, source: Comparison, name: str, base: float, columns: int, asked: bool, progress=None) -> "Worth":
        """Return the worth of the columns to a model; none where it is not asked for, or no better than ``base``."""
        no_better = not source.scores(name).log_loss < base
        if no_better or not asked or not hasattr(source.estimators[name][0].classifier, "schema_"):
            return cls(name, pd.DataFrame(), columns, no_better)
        return cls(name, held_out_importance(source, name, progress=progress), columns, False)


def net_benefits(source: Comparison, positive: str | None) -> dict[str, NetBenefit]:
    """Return what acting on held-out probabilities of a class is worth, by model, the best first; none if not asked.

    Models that could not be learned in all folds of the best are left out: curves are of the same rows.
    """
    if positive is None:
        return {}
    best, labels = source.best_first(), {str(label): label for label in source.classes.tolist()}
    rows, classes = source.learned(best[0]), source.classes.tolist()
    same = [name for name in best if np.array_equal(source.learned(name), rows)]
    row, codes, _, weight, group = source.judged(best[0])
    how: dict = {"positive": labels[positive], "labels": classes, "weights": weight, "groups": group}
    truth = source.classes[codes]
    return {name: net_benefit(truth, source.probability[name][row], **how) for name in same[:_CURVES]}


@dataclass(frozen=True, eq=False)
class Account:
    """Input, settings and results of a comparison."""

    read: TableFile  # the file as it was read
    target: str | tuple[str, ...]  # the column of the classes, or those of their shares
    prepared: Prepared  # the table as models take it
    schema: Schema  # the families of its columns
    model: str  # whose inferences are compared: "nb" or "gda"
    result: Comparison  # its inferences
    models: ModelComparison | None  # models beside each other, where they were asked for
    worth: Worth  # of each column, to what predicts best
    by_class: ByClass  # scores by class of the best of them, and its actions
    seed: int  # of the folds and of NUTS
    command: str  # repeats it
    save: str | None  # learns the best model from all rows, and saves it; None where it is no model to save
    order: str | None  # the column of times, where each row is predicted from earlier ones
    benefits: dict[str, NetBenefit]  # of acting, by model, where a class of the cases was named

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns of the classes or of their shares."""
        return (self.target,) if isinstance(self.target, str) else self.target

    @property
    def source(self) -> Comparison:
        """The comparison that has the best model."""
        return self.result if self.models is None else self.models

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; None in place of NaN and infinite numbers."""
        columns = {column: family for family, members in families(self.schema).items() for column, _ in members}
        worth = {"importance": self.worth.frame.mean(), "standard_error": self.worth.frame.sem()}
        found: dict[str, Any] = {
            "bayesgen": __version__,
            "command": self.command,
            "save": self.save,
            "data": {
                "source": self.read.source,
                "rows": len(self.read.table),
                "rows_used": len(self.prepared.y),
                "target": self.target,
                "classes": self.prepared.sizes,
                "columns": columns,
                "notes": [*map(in_options, (*self.prepared.suspicions, *self.read.notes, *self.prepared.notes))],
                "suspicions": [*map(in_options, self.prepared.suspicions)],
            },
            "folds": self.result.folds,
            "seed": self.seed,
            "model": self.model,
            "inferences": {name: self._inference(name) for name in self.result.probability},
            "base_rate": base_rate(self.result),
            "by_class": self.by_class.to_dict(),
            "importance_of": self.worth.name if len(self.worth.frame) else None,
            "importance": {c: {what: v[c] for what, v in worth.items()} for c in self.worth.frame.columns},
            "notes": list(map(_note, self.result.notes)),
        }
        if self.models is not None:
            found["models"] = self.models.table.to_dict(orient="index")
            found["best"], found["remarks"] = self.models.best, self.models.remarks
            found["notes"] += map(_note, self.models.notes)
        if self.benefits:
            found["net_benefit"] = {name: vars(benefit) for name, benefit in self.benefits.items()}
        if self.order is not None:
            times = over_time(self.source, self.by_class.name).astype({"begin": str, "end": str})
            found["order"] = {"column": self.order, "of": self.by_class.name, "periods": times.to_dict("records")}
        return {name: _as_json(value) for name, value in found.items()}

    def _inference(self, name: str) -> dict[str, Any]:
        scores, result = vars(self.result.scores(name)), self.result
        apart = from_exact(result, name)
        most = {"largest_difference_from_exact": apart.max()} if apart.size else {}
        few = {"rows_of_few_draws": result.doubtful[name].sum()}
        return scores | {"seconds": result.seconds[name]} | most | few


def _as_json(value):
    if isinstance(value, dict):
        return {str(name): _as_json(entry) for name, entry in value.items()}
    value = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    if isinstance(value, list | tuple):
        return [_as_json(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
