"""Results of a comparison by cross-validation: probabilities of held-out rows, scores, differences and failures."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesgen import evaluation
from bayesgen.numerics.pieces import taken
from bayesgen.numerics.sums import by_label
from bayesgen.tables.labels import class_codes
from bayesgen.tables.shares import Shares, most, stacked


@dataclass(frozen=True)
class Note:
    """The failure, or a warning, of an inference in one fold."""

    inference: str
    fold: int
    message: Exception | Warning | str
    failed: bool

    @property
    def text(self) -> str:
        """The words of the message."""
        return str(self.message)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The classifier of one fold, with all rows as it takes them, and the places of those held out."""

    classifier: Any
    rows: Any
    held_out: np.ndarray


class Judged(NamedTuple):
    """Held-out predictions beside the classes that judge them: of a row with shares each class that has one."""

    row: np.ndarray  # (m,): place of the row
    truth: np.ndarray  # (m,): code of the class
    probability: np.ndarray  # (m, K)
    weight: np.ndarray | None  # (m,): shares; None where each row has one class
    group: np.ndarray | None  # (m,): what belongs together, the classes of a row with shares too


@dataclass(frozen=True)
class Scores:
    """Mean scores over the held-out rows of the ``folds`` folds that could be learned; NaN if there is none."""

    folds: int
    accuracy: float
    log_loss: float
    brier_score: float
    calibration_error: float


def scores_of(truth, probability, weight=None) -> dict[str, float]:
    """Return the mean scores of class probabilities by name, as in `Scores`."""
    measures = {
        "accuracy": evaluation.accuracy,
        "log_loss": evaluation.log_loss,
        "brier_score": evaluation.brier_score,
        "calibration_error": evaluation.expected_calibration_error,
    }
    return {name: measure(truth, probability, sample_weight=weight) for name, measure in measures.items()}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Held-out class probabilities of every inference.

    Attributes
    ----------
    classes : array, shape (K,)
        Class labels.
    y_true, fold : int arrays, shape (n,)
        Class code of every row, of shares the largest, and the fold that held it out, from 1.
    probability : dict from inference to array, shape (n, K)
        Held-out class probabilities, NaN in folds that could not be learned.
    seconds : dict from inference to float
        Time of fitting and predicting in all folds, compilation included.
    notes : list of Note
        Failures and warnings.
    doubtful : dict from inference to bool array, shape (n,)
        True for rows whose probabilities rest on few draws; see `inspection.draw_reliability`.
    group : int array, shape (n,), or None
        The group of each row, over which standard errors are taken; None where every row stands for itself.
    time : array, shape (n,), or None
        The time of each row, datetime64 or numbers, where each was predicted from earlier ones; None elsewhere. Fold 0
        then has the first rows, which are predicted by nothing.
    estimators : dict from inference to list of Fitted
        The classifier of each fold that could be learned, if ``return_estimators`` asked for it.
    shares : array, shape (n, K), or None
        Shares of the classes, where rows have these as labels: scores are then their means by share.
    """

    classes: np.ndarray
    y_true: np.ndarray
    fold: np.ndarray
    probability: dict[str, np.ndarray]
    seconds: dict[str, float]
    notes: list[Note]
    doubtful: dict[str, NDArray[np.bool_]]
    group: np.ndarray | None = field(default=None, kw_only=True)
    time: np.ndarray | None = field(default=None, kw_only=True)
    estimators: dict[str, list[Fitted]] = field(default_factory=dict, kw_only=True)
    shares: np.ndarray | None = field(default=None, kw_only=True)

    @classmethod
    def begin(cls, y, names: Collection[str], **others) -> Self:
        """Return a comparison of ``names`` on rows with classes ``y`` before the first fold, without probabilities."""
        classes, codes = class_codes(y) if isinstance(y, Shares) else np.unique(y, return_inverse=True)
        return cls(
            classes=classes,
            y_true=most(codes),
            shares=codes if codes.ndim == 2 else None,
            fold=np.zeros(len(y), int),
            probability={name: np.full((len(y), len(classes)), np.nan) for name in names},
            seconds=dict.fromkeys(names, 0.0),
            notes=[],
            doubtful={name: np.zeros(len(y), bool) for name in names},
            **others,
        )

    @property
    def folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max())

    def learned(self, inference: str) -> NDArray[np.bool_]:
        """Return True for each row that has probabilities, since its fold could be learned, shape (n,)."""
        return np.isfinite(self.probability[inference].sum(axis=1))

    @property
    def codes(self) -> np.ndarray:
        """Class code of every row (n,), or its shares of the classes (n, K)."""
        return self.y_true if self.shares is None else self.shares

    @property
    def indicators(self) -> np.ndarray:
        """Shares of the classes, (n, K), 1 and 0 where rows have one class."""
        return np.eye(len(self.classes))[self.y_true] if self.shares is None else self.shares

    def impossible(self, inference: str) -> np.ndarray:
        """Return True for each class that a row has, or has a share of, and that got probability 0, shape (n, K)."""
        return (self.probability[inference] == 0) & (self.indicators > 0)

    def judged(self, inference: str) -> Judged:
        """Return the held-out predictions of one inference beside the true classes, of shares all that a row has."""
        held = np.flatnonzero(self.learned(inference))
        place, code, votes = stacked(self.codes[held], None)
        row, group = held[place], self.group
        if self.shares is not None and group is None:
            group = np.arange(len(self.fold))
        return Judged(row, code, self.probability[inference][row], votes, taken(group, row))

    def scores(self, inference: str) -> Scores:
        """Return the scores of one inference over the folds that it could learn."""
        found = self.judged(inference)
        if not len(found.row):
            return Scores(0, *[float("nan")] * 4)
        folds = len(np.unique(self.fold[found.row]))
        return Scores(folds, **scores_of(found.truth, found.probability, found.weight))

    def best_first(self) -> list[str]:
        """Return the models or inferences that could be learned, the one of the least log loss first."""
        learned = [name for name in self.probability if self.learned(name).any()]
        if not learned:
            raise ValueError("no model could be learned in any fold or before any block: there is nothing to draw")
        return sorted(learned, key=lambda name: self.scores(name).log_loss)

    def difference(self, one: str = "nuts", other: str = "exact") -> np.ndarray:
        """Return the |difference| of two inferences' probabilities on the m rows that have both, shape (m, K)."""
        rows = self.learned(one) & self.learned(other)
        return np.abs(self.probability[one][rows] - self.probability[other][rows])


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Comparison):
    """Held-out class probabilities of every model: a `Comparison` with a table of the models.

    Attributes
    ----------
    remarks : dict from model to str
        Changes of the rows for the model, or the reason why it is left out.
    """

    remarks: dict[str, str]

    def __repr__(self) -> str:
        held = f"{(self.fold > 0).sum()} held-out rows in {self.folds}"
        head = f"{type(self).__name__} on {held} {'folds' if self.time is None else 'blocks, from earlier rows'}"
        remarks = [f"{name}: {remark}" for name, remark in self.remarks.items()]
        return "\n".join([head, self.table.round(4).to_string(), *remarks])

    def _repr_html_(self) -> str:
        return self.table.round(4).to_html()

    def log_losses(self, model: str) -> np.ndarray:
        """Return the log loss of every row, NaN where there is none, shape (n,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p = np.log(self.probability[model])
            if self.shares is not None:
                return -np.where((self.shares > 0) | np.isnan(log_p), self.shares * log_p, 0.0).sum(1)
            return -log_p[np.arange(len(self.y_true)), self.y_true]

    @property
    def best(self) -> str:
        """The model of the least mean log loss, among those that were learned in most folds."""
        rank = {name: (-self.learned(name).sum(), self._mean(self.log_losses(name))[0]) for name in self.probability}
        return min(rank, key=rank.__getitem__)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each model, the best first.

        Columns: "log_loss" with its "standard_error"; "difference", the mean over rows of the log loss minus the best
        model's on the same row, with its "difference_error"; "brier_score", "calibration_error", "accuracy", "seconds"
        of fitting and predicting in all folds, and "folds" that could be learned.
        """
        best, rows = self.log_losses(self.best), {}
        for name in self.probability:
            scores, losses = self.scores(name), self.log_losses(name)
            loss, error = self._mean(losses)
            difference, apart = self._mean(losses - best)
            told = {"log_loss": loss, "standard_error": error, "difference": difference, "difference_error": apart}
            told |= {kind: getattr(scores, kind) for kind in ("brier_score", "calibration_error", "accuracy")}
            rows[name] = told | {"seconds": self.seconds[name], "folds": scores.folds}
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")
        return frame.sort_values(["log_loss"], kind="stable")

    def _mean(self, values) -> tuple[float, float]:
        """Return the mean over rows that have a value, and its standard error, NaN if a value is infinite."""
        known = ~np.isnan(values)
        return mean_of_rows(values[known], taken(self.group, known))


def mean_of_rows(values, group=None) -> tuple[float, float]:
    """Return the mean over rows and its standard error, over groups where there are groups; NaN if it has none."""
    if len(values) < 2 or not np.isfinite(values).all():
        return (float(values.mean()) if len(values) else float("nan")), float("nan")
    mean, apart = values.mean(), values - values.mean()
    if group is not None:  # rows of one group are not independent: their sums are
        apart = by_label(group, apart)
        if len(apart) < 2:  # one group says nothing of how groups differ
            return float(mean), float("nan")
    return float(mean), float(np.sqrt((apart**2).sum() * len(apart) / max(len(apart) - 1, 1)) / len(values))
