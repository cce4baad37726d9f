"""What a comparison found: class probabilities of the held-out rows, what they cost, and their scores side by side."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from bayesgen import evaluation

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Note:
    """What an inference said of a fold: why it failed, or a warning."""

    inference: str
    fold: int
    text: str
    failed: bool


@dataclass(frozen=True)
class Scores:
    """Means over the held-out rows of the ``folds`` folds that could be learned; NaN where there is none."""

    folds: int
    accuracy: float
    log_loss: float
    brier_score: float
    calibration_error: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Held-out class probabilities of every inference.

    Attributes
    ----------
    classes : array, shape (K,)
        Class labels.
    y_true, fold : int arrays, shape (n,)
        Class code of every row, and the fold that held it out, from 1.
    probability : dict from inference to array, shape (n, K)
        Held-out class probabilities, NaN in folds that could not be learned.
    seconds : dict from inference to float
        Fitting and predicting in all folds, compilation included.
    notes : list of Note
        Failures and warnings.
    doubtful : dict from inference to bool array, shape (n,)
        The rows whose probabilities rest on few draws; see `inspection.draw_reliability`.
    """

    classes: np.ndarray
    y_true: np.ndarray
    fold: np.ndarray
    probability: dict[str, np.ndarray]
    seconds: dict[str, float]
    notes: list[Note]
    doubtful: dict[str, NDArray[np.bool_]]

    @classmethod
    def begin(cls, y, names: Collection[str], **others) -> Self:
        """Return what is known of rows with classes ``y`` before the first fold: no probabilities of ``names`` yet."""
        classes, truth = np.unique(y, return_inverse=True)
        return cls(
            classes=classes,
            y_true=truth,
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
        """Whether a row has a probability: its fold could be learned, (n,)."""
        return np.isfinite(self.probability[inference].sum(axis=1))

    def scores(self, inference: str) -> Scores:
        """Scores of one inference, over the folds where it exists."""
        rows = self.learned(inference)
        if not rows.any():
            return Scores(0, *[float("nan")] * 4)
        held = self.y_true[rows], self.probability[inference][rows]
        return Scores(
            len(np.unique(self.fold[rows])),
            evaluation.accuracy(*held),
            evaluation.log_loss(*held),
            evaluation.brier_score(*held),
            evaluation.expected_calibration_error(*held),
        )

    def difference(self, one: str = "nuts", other: str = "exact") -> np.ndarray:
        """|Difference| of two inferences' probabilities over the m rows where both exist, shape (m, K)."""
        rows = self.learned(one) & self.learned(other)
        return np.abs(self.probability[one][rows] - self.probability[other][rows])


@dataclass(frozen=True, eq=False)
class ModelComparison(Comparison):
    """Held-out class probabilities of every model: `Comparison`, and what is told of the models beside each other.

    Attributes
    ----------
    remarks : dict from model to str
        What was done to the rows for its sake, or why it is left out.
    """

    remarks: dict[str, str]

    def log_losses(self, model: str) -> np.ndarray:
        """Log loss of every row, (n,), NaN where there is none."""
        own = self.probability[model][np.arange(len(self.y_true)), self.y_true]
        with np.errstate(divide="ignore"):
            return -np.log(own)

    @property
    def best(self) -> str:
        """The model of the least mean log loss, among those that were learned in most folds."""
        rank = {name: (-self.learned(name).sum(), _mean(self.log_losses(name))[0]) for name in self.probability}
        return min(rank, key=rank.__getitem__)

    @property
    def table(self) -> "pd.DataFrame":
        """A row for each model, the best first.

        Columns "log_loss" with its "standard_error"; "difference", the mean over rows of the log loss less that of the
        best model of the same row, with its "difference_error"; "brier_score", "calibration_error", "accuracy",
        "seconds" of fitting and predicting in all folds, and "folds" that could be learned.
        """
        import pandas as pd

        best, rows = self.log_losses(self.best), {}
        for name in self.probability:
            scores, own = self.scores(name), self.log_losses(name)
            loss, error = _mean(own)
            difference, apart = _mean(own - best)
            rows[name] = {
                "log_loss": loss,
                "standard_error": error,
                "difference": difference,
                "difference_error": apart,
                "brier_score": scores.brier_score,
                "calibration_error": scores.calibration_error,
                "accuracy": scores.accuracy,
                "seconds": self.seconds[name],
                "folds": scores.folds,
            }
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")
        return frame.sort_values(["log_loss"], kind="stable")


def _mean(values) -> tuple[float, float]:
    """Mean over the rows where there is a value, and its standard error; infinite values leave no error."""
    values = values[~np.isnan(values)]
    if len(values) < 2 or not np.isfinite(values).all():
        return (float(values.mean()) if len(values) else float("nan")), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
