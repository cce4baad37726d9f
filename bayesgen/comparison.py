"""Inferences side by side: the same rows, the same folds, one model, learned by ML, MAP, exactly and by NUTS.

`prepare` makes columns and classes of a raw table and tells what it did to it; `compare` runs the cross-validation.
Nothing here prints.
"""

import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from bayesgen import evaluation
from bayesgen.classifier import GaussianDiscriminantClassifier, NaiveBayesClassifier
from bayesgen.inference import named
from bayesgen.models import DirichletCategorical
from bayesgen.schema import Schema
from bayesgen.table import Table

if TYPE_CHECKING:
    import pandas as pd

MODELS = ("nb", "gda")
_FEW = 10  # a column of whole numbers with no more distinct values could also be one of categories


@dataclass(frozen=True)
class Prepared:
    """Columns and classes that a classifier takes, and what was done to the table.

    Attributes
    ----------
    X, y, rows
        Columns (DataFrame), class labels, and the position in the table of every row that is left.
    notes : tuple of str
        What was left out, and what was ambiguous.
    """

    X: Any
    y: np.ndarray
    rows: np.ndarray
    notes: tuple[str, ...]


def prepare(table: "pd.DataFrame", target: str, model: str = "nb") -> Prepared:
    """Split a table into columns and classes, leaving out what ``model`` cannot use.

    Parameters
    ----------
    table : pandas.DataFrame
        Raw rows.
    target : str
        Column of the classes; rows without one are left out.
    model : {"nb", "gda"}
        "gda" takes columns of numbers only, and rows without gaps only.

    Raises
    ------
    ValueError
        If the target is no column, or holds no two classes, or nothing is left to learn from.
    """
    _check_model(model)
    table = table.set_axis(table.columns.map(str), axis=1)
    if not table.columns.is_unique:
        raise ValueError(f"column {table.columns[table.columns.duplicated()][0]!r} is there twice")
    if target not in table.columns:
        raise ValueError(f"no column {target!r}; there are: {', '.join(table.columns)}")
    if not len(table):
        raise ValueError("the table is empty: it has columns, but no rows")
    rows = np.flatnonzero(table[target].notna())
    notes, told = [], defaultdict(list)
    if len(rows) < len(table):
        notes.append(f"{_count(len(table) - len(rows), 'row')} left out: no {target}")
    X, y = table.iloc[rows].drop(columns=target), np.asarray(table[target].iloc[rows].tolist())
    if y.dtype.kind == "f":
        if (y % 1 != 0).any():
            raise ValueError(f"{target} holds {len(np.unique(y))} distinct real numbers, not classes")
        y = y.astype(int)
    y = y if y.dtype.kind in "biuU" else y.astype(str)
    _check_classes(target, y)
    for column in X.columns:
        if why := _unusable(X[column], rows, model):
            X = X.drop(columns=column)
            told[f"left out: {why}"].append(column)
        else:
            X[column], doubt = _typed(X[column])
            if doubt:
                told[f"ambiguous: {doubt}"].append(column)
    notes += [f"{', '.join(columns)} {what}" for what, columns in told.items()]
    if not X.shape[1]:
        raise ValueError("; ".join(["no column is left to learn from", *notes]))

    gaps = X.isna().to_numpy()
    if gaps.any() and model == "nb":
        notes.append(f"{_count(gaps.sum(), 'missing value')} integrated out")
    if gaps.any() and model == "gda":
        whole = ~gaps.any(1)
        notes.append(f"{_count((~whole).sum(), 'row')} left out: gda compares on rows without gaps")
        X, y, rows = X[whole], y[whole], rows[whole]
        _check_classes(target, y)
    return Prepared(X.reset_index(drop=True), y, rows, tuple(notes))


def _unusable(column, rows, model) -> str | None:
    """Why a model cannot use a column, if it cannot."""
    values = column.dropna()
    kinds = _kinds(values)
    if not kinds:
        return "no observed value"
    if not kinds <= {"number", "bool", "str"}:
        return f"values of type {', '.join(sorted(kinds))}, neither numbers nor categories"
    distinct = values.nunique()
    if distinct == 1:
        return f"constant, always {values.iloc[0]}"
    if column.dtype.kind in "iu" and len(rows) > _FEW and (np.diff(column) == np.diff(rows)).all():
        return "a row number, it seems: it counts the rows"
    if "str" in kinds and distinct >= 0.9 * len(values):
        return f"an identifier, it seems: {distinct} distinct values in {len(values)} rows"
    if model == "gda" and kinds != {"number"}:
        return "not numbers, and gda takes numbers only"
    return None


def _typed(column) -> tuple[Any, str]:
    """Return a usable column of one type, and what is doubtful about the type."""
    import pandas as pd

    values = column.dropna()
    kinds = _kinds(values)
    if kinds == {"number"}:
        few = values.nunique() <= _FEW and (values % 1 == 0).all()
        return pd.to_numeric(column), "few distinct whole numbers, taken as numbers, not categories" if few else ""
    if kinds == {"bool"}:
        return column, ""
    values = values.astype(object).map(str)
    words = values[pd.to_numeric(values, errors="coerce").isna()]
    but = f"but for {words.iloc[0]!r}" if len(words) else "written as text"
    doubt = f"numbers {but}, taken as categories" if len(words) < 0.5 * len(values) else ""
    return values.reindex(column.index), doubt


def _kinds(values) -> set[str]:
    """Kinds of observed values: "number", "bool", "str", or the names of other types."""
    if values.dtype.kind in "iufb" and len(values):
        return {"bool"} if values.dtype.kind == "b" else {"number"}
    names = {type(v).__name__ for v in values.tolist()}
    return {"number" if name in ("int", "float") else name for name in names}


def _count(n, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _check_classes(target, y):
    if not len(y):
        raise ValueError(f"no row is left: all lack {target} or, for gda, a number")
    if (y == y[0]).all():
        raise ValueError(f"{target} holds one class only, {y[0]}, in the {_count(len(y), 'row')} that can be used")


def estimator(X, model: str = "nb", inference: Any = "exact", seed: Any = 0):
    """Return the classifier to compare, not fitted; its categories are those of all rows of ``X``, not of a fold."""
    _check_model(model)
    if model == "gda":
        return GaussianDiscriminantClassifier(inference=inference, random_state=seed)
    blocks = Schema.learn(Table(X), "auto").blocks
    leaves = {
        c: DirichletCategorical(np.ones(len(b.categories)), b.categories)
        for b in blocks
        if b.categories
        for c in b.columns
    }
    return NaiveBayesClassifier(leaves or "auto", inference=inference, random_state=seed)


def _check_model(model):
    if model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}; got {model!r}")


def usable_folds(y, folds: int) -> int:
    """Return ``folds``, or the size of the smallest class where that is less; a ValueError where it is 1."""
    if not isinstance(folds, int | np.integer) or folds < 2:
        raise ValueError(f"folds must be an integer >= 2, got {folds!r}")
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"there must be at least two classes, got {classes.tolist()}")
    if counts.min() < 2:
        raise ValueError(f"too few rows: class {classes[counts.argmin()]} has 1, and every class needs at least 2")
    return int(min(folds, counts.min()))


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
    truth, fold : int arrays, shape (n,)
        Class code of every row, and the fold that held it out, from 1.
    probability : dict from inference to array, shape (n, K)
        Held-out class probabilities, NaN in folds that could not be learned.
    seconds : dict from inference to float
        Fitting and predicting in all folds, compilation included.
    notes : list of Note
        Failures and warnings.
    """

    classes: np.ndarray
    truth: np.ndarray
    fold: np.ndarray
    probability: dict[str, np.ndarray]
    seconds: dict[str, float]
    notes: list[Note]

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
        held = self.truth[rows], self.probability[inference][rows]
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


def compare(
    X,
    y,
    model: str = "nb",
    inferences=("ml", "map", "exact", "nuts"),
    folds: int = 5,
    seed: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
) -> Comparison:
    """Cross-validate one model, learned in several ways, on the same stratified folds.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        Rows.
    y : array, shape (n,)
        Class labels.
    model : {"nb", "gda"}
        Naive Bayes, or Gaussian discriminant analysis with a full covariance per class.
    inferences : sequence of names, or mapping from name to Inference
        What to compare.
    folds : int
        Number of folds; fewer where the smallest class has fewer rows.
    seed : int
        Of the folds and of NUTS.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before every fit, and at the end.

    Examples
    --------
    >>> from bayesgen import data
    >>> table = data.load("anes96")
    >>> result = compare(table[["PID", "age"]], table["vote"], inferences=["ml", "exact"])
    >>> round(result.scores("exact").accuracy, 2)
    0.9
    """
    if not isinstance(inferences, Mapping):
        inferences = {name: named(name) for name in inferences}
    if not inferences:
        raise ValueError("inferences must name at least one of ml, map, exact, nuts")
    y = np.asarray(y)
    classes, truth = np.unique(y, return_inverse=True)
    folds = usable_folds(y, folds)
    blank = np.full((len(y), len(classes)), np.nan)
    result = Comparison(
        classes, truth, np.zeros(len(y), int), {n: blank.copy() for n in inferences}, dict.fromkeys(inferences, 0.0), []
    )
    classifier = estimator(X, model, seed=seed)
    work = [
        (number, name, *rows)
        for number, rows in enumerate(StratifiedKFold(folds, shuffle=True, random_state=seed).split(truth, truth), 1)
        for name in inferences
    ]
    progress = progress or (lambda done, total, text: None)
    for done, (number, name, train, test) in enumerate(work):
        progress(done, len(work), f"fold {number} of {folds}: {name}")
        result.fold[test] = number
        classifier.set_params(inference=inferences[name])
        start = perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                classifier.fit(_safe_indexing(X, train), y[train])
                probability = classifier.predict_proba(_safe_indexing(X, test))
                if np.isnan(probability).any():
                    raise ValueError("its class probabilities are not numbers")
                result.probability[name][test] = probability
                diverging = getattr(classifier.posterior_, "sample_stats", {}).get("diverging")
                if diverging is not None and diverging.any():
                    warnings.warn(f"{diverging.sum()} draws diverged", UserWarning, stacklevel=1)
            except ValueError as error:
                result.notes.append(Note(name, number, str(error), True))
        result.seconds[name] += perf_counter() - start
        said = dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning | RuntimeWarning))
        result.notes.extend(Note(name, number, text, False) for text in said)
    progress(len(work), len(work), "done")
    return result
