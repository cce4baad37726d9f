"""Models and inferences side by side, by their predictions of the same held-out rows."""

import contextlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from bayesgen.comparison.result import Comparison, ModelComparison, Note
from bayesgen.inference import Inference, resolve
from bayesgen.inspection.draw_reliability import FewDrawsWarning
from bayesgen.inspection.importance import importance

if TYPE_CHECKING:
    import pandas as pd


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


def compare(
    X,
    y,
    model: str = "nb",
    inferences: Iterable[str] | Mapping[str, Inference] = ("ml", "map", "exact", "nuts"),
    folds: int = 5,
    seed: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
    features: Mapping[str, str] | None = None,
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
    features : mapping from column to family, optional
        Of naive Bayes, see `NaiveBayesClassifier`; columns it does not name have the family of their type.

    Examples
    --------
    >>> from bayesgen import data
    >>> table = data.load("anes96")
    >>> result = compare(table[["PID", "age"]], table["vote"], inferences=["ml", "exact"])
    >>> round(result.scores("exact").accuracy, 2)
    0.9
    """
    from bayesgen.comparison.candidates import estimator  # a tenth of the time of `import bayesgen`

    if not isinstance(inferences, Mapping):
        inferences = {name: resolve(name) for name in inferences}
    if not inferences:
        raise ValueError("inferences must name at least one of ml, map, exact, nuts")
    y = np.asarray(y)
    folds = usable_folds(y, folds)
    result = Comparison.begin(y, inferences)
    classifier = estimator(X, model, seed=seed, features=features)
    _cross_validate(
        result,
        folds,
        seed,
        progress,
        lambda name, train: classifier.set_params(inference=inferences[name]).fit(_safe_indexing(X, train), y[train]),
        lambda name: X,
    )
    return result


def compare_models(
    X,
    y,
    models: Sequence[str] | Mapping[str, Any] | None = None,
    folds: int = 5,
    seed: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
    features: Mapping[str, str] | None = None,
) -> ModelComparison:
    """Cross-validate models of one table on the same stratified folds.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        Rows: numbers, bools and categories, NaN, None or NA where missing.
    y : array, shape (n,)
        Class labels.
    models : sequence of names, or mapping from name to classifier, optional
        Of "base rate", "naive Bayes", "shared", "full" (Gaussian discriminants), "averaged" and "logistic" (MAP);
        default: all that can take some column. Or classifiers of your own, which get the rows as they are.
    folds : int
        Number of folds; fewer where the smallest class has fewer rows.
    seed : int
        Of the folds and of what is random in a model.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before every fit, and at the end.
    features : mapping from column to family, optional
        Of naive Bayes, see `NaiveBayesClassifier`; columns it does not name have the family of their type.

    Returns
    -------
    ModelComparison
        ``table`` has the scores, ``notes`` and ``remarks`` what else is to be known.

    Notes
    -----
    A standard error is the standard deviation over rows divided by the root of their number. Rows of different folds
    share most of what they are predicted from, so it is somewhat too small (Bengio and Grandvalet 2004, *JMLR* 5);
    it says nothing of other training sets. A difference is taken row by row, which leaves out what makes a row hard for
    every model alike: models whose log losses overlap by their own errors can well be apart by their difference.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> result = compare_models(X, y, ["base rate", "naive Bayes", "shared"])
    >>> result.table["log_loss"].round(2).to_dict()
    {'shared': 0.05, 'naive Bayes': 0.12, 'base rate': 1.1}
    """
    from bayesgen.comparison.candidates import candidates

    y = np.asarray(y)
    folds = usable_folds(y, folds)
    chosen, left_out = candidates(X, models, seed, features)
    remarks = {name: f"left out: {why}" for name, why in left_out.items()}
    done = {name: candidate.note for name, candidate in chosen.items() if candidate.note}
    result = ModelComparison.begin(y, chosen, remarks=done | remarks)

    def fit(name, train):
        candidate = chosen[name]
        classifier: Any = clone(candidate.classifier)
        return classifier.fit(_safe_indexing(candidate.rows, train), y[train])

    _cross_validate(result, folds, seed, progress, fit, lambda name: chosen[name].rows)
    return result


def held_out_importance(
    X, y, model: str = "nb", folds: int = 5, seed: int = 0, features: Mapping[str, str] | None = None
) -> "pd.DataFrame":
    """What each column is worth on held-out rows under the exact posterior: `inspection.importance` of every fold.

    Parameters
    ----------
    X, y, model, folds, seed, features
        As `compare`, whose folds these are.

    Returns
    -------
    DataFrame, shape (n, columns)
        By how much the log loss of each row grows where a column is missing; without the rows of a fold that could not
        be learned.
    """
    import pandas as pd

    from bayesgen.comparison.candidates import estimator

    y, found = np.asarray(y), []
    for train, test in _splits(np.unique(y, return_inverse=True)[1], usable_folds(y, folds), seed):
        with warnings.catch_warnings(), contextlib.suppress(ValueError):
            warnings.simplefilter("ignore")  # what is wrong with a fold is a note of `compare`
            classifier = estimator(X, model, seed=seed, features=features).fit(_safe_indexing(X, train), y[train])
            found.append(importance(classifier, _safe_indexing(X, test), y[test]))
    return pd.concat(found).sort_index() if found else pd.DataFrame()


def _cross_validate(result: Comparison, folds: int, seed: int, progress, fit, rows) -> None:
    """Fill ``result``: ``fit(name, train)`` returns a fitted classifier, ``rows(name)`` all rows as it takes them."""
    work = [
        (number, name, *places)
        for number, places in enumerate(_splits(result.y_true, folds, seed), 1)
        for name in result.probability
    ]
    progress = progress or (lambda done, total, text: None)
    for done, (number, name, train, test) in enumerate(work):
        progress(done, len(work), f"fold {number} of {folds}: {name}")
        result.fold[test] = number
        start = perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                classifier = fit(name, train)
                probability = classifier.predict_proba(_safe_indexing(rows(name), test))
                if np.isnan(probability).any():
                    raise ValueError("its class probabilities are not numbers")
                result.probability[name][test] = probability
                posterior = getattr(classifier, "posterior_", None)
                diverging = posterior.sample_stats.get("diverging") if posterior is not None else None
                if diverging is not None and diverging.any():
                    warnings.warn(f"{diverging.sum()} draws diverged", UserWarning, stacklevel=1)
            except ValueError as error:
                result.notes.append(Note(name, number, str(error), True))
        result.seconds[name] += perf_counter() - start
        few = [w.message for w in caught if isinstance(w.message, FewDrawsWarning)]
        for warning in few:
            result.doubtful[name][test[warning.rows]] = True
        told = [w for w in caught if w.message not in few and issubclass(w.category, UserWarning | RuntimeWarning)]
        said = dict.fromkeys(str(w.message) for w in told)
        result.notes.extend(Note(name, number, text, False) for text in said)
    progress(len(work), len(work), "done")


def _splits(truth, folds: int, seed: int):
    """Yield the rows of fit and the rows held out, fold by fold: the same for all that is compared."""
    return StratifiedKFold(folds, shuffle=True, random_state=seed).split(truth, truth)
