"""Scores by class of what predicts best, and what is done with its probabilities at the user's costs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix, precision_score, recall_score, roc_auc_score

from bayesgen import decision
from bayesgen.comparison import Comparison, ModelComparison
from bayesgen.comparison.results import scores_of


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

    @classmethod
    def of(cls, result: Comparison, models: ModelComparison | None, loss: pd.DataFrame, told: bool) -> "ByClass":
        """Return the scores of the best model, or without models of the exact posterior or the first inference."""
        if models is not None:
            source, name = models, models.best
        else:
            learned = [name for name in result.probability if result.learned(name).any()]
            source, name = result, "exact" if "exact" in learned else learned[0]
        rows, labels = source.learned(name), source.classes.tolist()
        p, codes, words = source.probability[name][rows], source.y_true[rows], [str(label) for label in labels]
        taken = decision.act(p, loss, labels)["action"].astype(str).to_numpy()
        truth = np.array(words, dtype=object)[codes]
        actions = [str(action) for action in loss.columns]
        both = list(dict.fromkeys([*words, *actions]))
        table: Any = pd.DataFrame(confusion_matrix(truth, taken, labels=both), index=both, columns=both)
        predicted = taken if set(actions) <= set(words) else np.array(words, dtype=object)[p.argmax(1)]
        how: dict = {"labels": words, "average": None, "zero_division": np.nan}
        counts = np.bincount(codes, minlength=len(labels))
        scores = {
            "rows": counts,
            "base rate": counts / counts.sum(),
            "sensitivity": recall_score(truth, predicted, **how),
            "precision": precision_score(truth, predicted, **how),
            "ROC-AUC": [
                roc_auc_score(codes == k, own) if 0 < n < len(codes) else np.nan
                for k, (own, n) in enumerate(zip(p.T, counts, strict=True))
            ],
        }
        by_action = table.loc[words, actions]
        costs = loss.rename(index=str, columns=str).loc[words, actions].to_numpy()
        cost = float((by_action.to_numpy() * costs).sum() / len(codes))
        least = float((counts[:, None] * costs).sum(0).min() / len(codes))
        return cls(name, pd.DataFrame(scores, index=words), by_action, cost, least, told)

    def score_cells(self) -> dict[str, dict[str, str]]:
        """Return the scores by class and heading."""
        headings = {
            "base rate": "base\nrate",
            "sensitivity": "sensi-\ntivity",
            "precision": "preci-\nsion",
            "ROC-AUC": "ROC-\nAUC",
        }
        return {
            label: {"rows": f"{own['rows']:.0f}"} | {shown: _number(own[name]) for name, shown in headings.items()}
            for label, own in self.scores.to_dict(orient="index").items()
        }

    def action_cells(self) -> dict[str, dict[str, str]]:
        """Return the rows of each class by action."""
        return {
            str(label): {str(action): str(n) for action, n in row.items()} for label, row in self.actions.iterrows()
        }

    def sentence(self) -> str:
        """Tell what the actions cost."""
        costs = "at your costs" if self.told else "where each mistake costs 1 (--loss takes other costs)"
        return (
            f"Rows of each class by the action of least expected cost, {costs}: {self.cost:.4f} a row; the best single "
            f"action for all rows costs {self.least:.4f}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "of": self.name,
            "scores": self.scores.to_dict(orient="index"),
            "actions": self.actions.to_dict(orient="index"),
            "cost": self.cost,
            "least_cost_of_one_action": self.least,
        }


def _number(value: float) -> str:
    return f"{value:.4f}" if np.isfinite(value) else "-"


def base_rate(result: Comparison) -> dict[str, float]:
    """Return the scores of the frequencies of the classes in the other folds, beside which others are to be read.

    Where rows are in the order of time these are the rows that came before the fold.
    """
    own = np.eye(len(result.classes))[result.y_true]
    p = np.empty(own.shape)
    for fold in range(1, result.folds + 1):
        held = result.fold == fold
        p[held] = own[~held if result.time is None else result.time < result.time[held].min()].mean(0)
    seen = result.fold > 0
    truth, p = result.y_true[seen], p[seen]
    return scores_of(truth, p)
