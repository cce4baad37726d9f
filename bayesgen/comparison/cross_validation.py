"""Cross-validation of models and of inferences: class probabilities of the same held-out rows, and their scores."""

import contextlib
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from bayesgen.comparison.blocks import blocks_in_order, predict_block, two_classes
from bayesgen.comparison.results import Comparison, Fitted, ModelComparison, Note
from bayesgen.core.errors import Argument, InputError, InputWarning, listed, warn
from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
from bayesgen.inference import Inference, resolve
from bayesgen.inspection.explain import by_group, importance
from bayesgen.inspection.probabilities import FewDrawsWarning
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.pieces import taken
from bayesgen.tables.dates import taken_out, times_of
from bayesgen.tables.groups import group_codes
from bayesgen.tables.labels import NUMBERS
from bayesgen.tables.repeats import columns_of, repeats
from bayesgen.tables.shares import Shares, labels_or_shares, stacked
from bayesgen.tables.text import numbers

_Result = TypeVar("_Result", bound=Comparison)
_MANY = 10  # numbers: digits are classes
_ROW = re.compile(r"(?<=in row )\d+")


def usable_folds(y, folds: int) -> int:
    """Return ``folds``, or the size of the smallest class if that is less; raise ValueError if it is 1."""
    check_count("folds", folds, 2)
    classes, codes = two_classes(y)
    counts = np.bincount(codes)
    if counts.min() < 2 and len(classes) > _MANY and numbers(list(map(str, classes))):
        raise InputError(Argument("y", y, "y"), f" holds {len(classes)} {NUMBERS}")
    if counts.min() < 2:
        raise ValueError(f"too few rows: class {classes[counts.argmin()]} has 1, and every class needs at least 2")
    return int(min(folds, counts.min()))


def compare(
    X,
    y,
    model: str = "nb",
    inferences: Iterable[str] | Mapping[str, Inference] = ("ml", "map", "exact", "nuts"),
    folds: int | Sequence[tuple[Any, Any]] = 5,
    seed: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
    features: Mapping[str, str] | None = None,
    groups=None,
    order=None,
    return_estimators: bool = False,
) -> Comparison:
    """Cross-validate one model, learned in several ways, on the same stratified folds.

    The ``model`` is "nb", naive Bayes, or "gda", Gaussian discriminant analysis with a full covariance per class. All
    but ``inferences`` to compare, names or a mapping from name to Inference, is as for `compare_models`. With ``order``
    every inference is learned anew before each block, and by nothing within it.

    Examples
    --------
    >>> from bayesgen import data
    >>> table = data.load("anes96")
    >>> result = compare(table[["PID", "age"]], table["vote"], inferences=["ml", "exact"])
    >>> round(result.scores("exact").accuracy, 2)
    0.9
    """
    from bayesgen.comparison.candidates import Candidate, estimator  # here, since it takes a tenth of `import bayesgen`

    if not isinstance(inferences, Mapping):
        inferences = {name: resolve(name) for name in inferences}
    if not inferences:
        raise ValueError("inferences must name at least one of ml, map, exact, nuts")
    X, y, group, time, places = _planned(X, y, folds, seed, groups, order)
    result = Comparison.begin(y, inferences, group=group, time=time)
    with _told_once():
        chosen = {name: Candidate(estimator(X, model, how, seed, features), X) for name, how in inferences.items()}
    return _cross_validate(result, chosen, y, places, progress, return_estimators, in_time=False)


def compare_models(
    X,
    y,
    models: Sequence[str] | Mapping[str, Any] | None = None,
    folds: int | Sequence[tuple[Any, Any]] = 5,
    seed: int = 0,
    progress: Callable[[int, int, str], None] | None = None,
    features: Mapping[str, str] | None = None,
    groups=None,
    order=None,
    return_estimators: bool = False,
) -> ModelComparison:
    """Cross-validate models of one table on the same stratified folds, or predict each row from earlier ones.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        Rows: numbers, bools and categories, NaN, None or NA where missing.
    y : array, shape (n,), or DataFrame, shape (n, K)
        Class labels; or the share of each class, which names its column. Scores are then means by share, folds are not
        stratified, there is no ``order``, and classifiers that know no shares get a row for each class, with weights.
    models : sequence of names, or mapping from name to classifier, optional
        Names among "base rate", "naive Bayes", "shared", "full" (Gaussian discriminants), "averaged" and "logistic"
        (MAP); default: all that can take some column. Or classifiers of your own, which get the rows as they are.
    folds : int, or list of pairs of int arrays
        Number of folds; fewer if the smallest class has fewer rows. Or the rows to fit and the rows held out of each
        fold, as scikit-learn's splitters make them: ``list(TimeSeriesSplit().split(X))``. A row is held out once at
        most.
    seed : int
        Seed of the folds, of NUTS and of random models.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before every fit, and at the end.
    features : mapping from column to family, optional
        Families of columns for naive Bayes, see `NaiveBayesClassifier`; other columns have the family of their type.
    groups : array, shape (n,), optional
        Label of what a row belongs to, where rows belong together: a patient, a batch, a day. No fold parts a group,
        models that leave rows out while they learn leave out groups, and standard errors are taken over groups. Without
        groups, order and given folds, copies of a row are a group (see `AveragedClassifier`), with a warning.
    order : array, shape (n,), or name of a column, optional
        Time of each row: dates, or numbers such as those of visits. Each row is then predicted from earlier ones alone;
        a column that is named is left out of the rows. The first row that is scored comes when every class has two.
        Models are learned anew before each of ``folds`` blocks of times, which are short at first, where each row
        tells much, and grow longer. Exact posteriors (naive Bayes, discriminants) are updated within a block
        by every row once its time has passed, under the prior that the rows before the block gave. Rows of one time
        are predicted together. With groups, all rows of a group are predicted from what came before its first one, in
        the block in which it begins; to other groups each of its rows is known once its own time has passed.
    return_estimators : bool, default False
        Keep the classifiers of all folds, which `held_out_importance` asks.

    Returns
    -------
    ModelComparison
        ``table`` has the scores, ``notes`` failures and warnings, ``remarks`` changes of rows and models left out.

    Notes
    -----
    A standard error is the standard deviation over rows divided by the root of their number. It is somewhat too small,
    since the training rows of different folds overlap (Bengio and Grandvalet 2004, *JMLR* 5), and it does not cover
    other training sets. A difference is taken row by row, so that rows which are hard for every model cancel: log
    losses that overlap within their own errors may still differ clearly.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> result = compare_models(X, y, ["base rate", "naive Bayes", "shared"])
    >>> result.table["log_loss"].round(2).to_dict()
    {'shared': 0.05, 'naive Bayes': 0.12, 'base rate': 1.1}
    """
    from bayesgen.comparison.candidates import candidates

    X, y, group, time, places = _planned(X, y, folds, seed, groups, order)
    with _told_once():
        chosen, left_out = candidates(X, models, seed, features)
    remarks = {name: f"left out: {why}" for name, why in left_out.items()}
    done = {name: candidate.note for name, candidate in chosen.items() if candidate.note}
    result = ModelComparison.begin(y, chosen, remarks=done | remarks, group=group, time=time)
    return _cross_validate(result, chosen, y, places, progress, return_estimators, in_time=time is not None)


def held_out_importance(
    comparison: Comparison, name: str, most: int = 50, progress: Callable[[int, int, str], None] | None = None
) -> pd.DataFrame:
    """Return the importance of each column to one model on the held-out rows: `inspection.importance` of every fold.

    The comparison was made with ``return_estimators=True``, and ``name`` is one of its models or inferences. Returned
    is the growth of the log loss of each row (n, columns), or each group (G, columns), if a column is missing; without
    the rows of folds that could not be learned. Each column costs one more prediction of all columns. Of more columns
    than ``most`` those are taken that tell most about the class by themselves: by the log Bayes factor of a naive Bayes
    leaf for each class against one leaf. ``progress(done, total, text)`` is called before every fold, and at the end.

    Examples
    --------
    >>> from bayesgen import data
    >>> table = data.load("anes96")
    >>> X, y = table[["PID", "age"]], table["vote"]
    >>> result = compare_models(X, y, ["naive Bayes"], folds=3, return_estimators=True)
    >>> held_out_importance(result, "naive Bayes").mean().round(2).to_dict()
    {'PID': 0.35, 'age': 0.0}
    """
    if name not in comparison.estimators:
        raise ValueError(f"no fitted classifiers of {name!r}: compare with return_estimators=True")
    y, progress = comparison.classes[comparison.y_true], progress or (lambda done, total, text: None)
    fitted, found, columns = comparison.estimators[name], [], None
    for fold, one in enumerate(fitted):
        progress(fold, len(fitted), f"what each column is worth: fold {fold + 1} of {len(fitted)}")
        if fold == 0 and len(one.classifier.schema_.used().columns) > most:
            columns = _telling(one.rows, y, most)
        place, code, votes = stacked(comparison.codes[one.held_out], None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the comparison noted the problems of a fold
            held = _safe_indexing(one.rows, one.held_out[place])
            worse = importance(one.classifier, held, comparison.classes[code], columns=columns)
        found.append(worse if votes is None else worse.mul(votes, axis=0).groupby(place).sum())
    progress(len(fitted), len(fitted), "done")
    if not found:
        return pd.DataFrame()
    places = np.concatenate([one.held_out for one in fitted])
    worth = pd.concat(found).set_axis(places).sort_index()
    index = getattr(fitted[0].rows, "index", None)
    worth = worth if index is None else worth.set_axis(index[np.sort(places)])
    return by_group(worth, taken(comparison.group, np.sort(places)))


def impossible_row(comparison: Comparison, name: str) -> tuple[int, list[str]] | None:
    """Return the first held-out row whose class had probability 0, and the columns without any of which it is above 0.

    Such a row makes the log loss infinite. Maximum likelihood, and the mode under a flat prior, give probability 0 to a
    category that no row of the class has. None if there is no such row; no columns where no single one did it,
    or where the comparison kept no classifiers (``return_estimators``).
    """
    never = comparison.impossible(name)
    if not never.any():
        return None
    row = int(never.any(1).argmax())
    for one in comparison.estimators.get(name, []):
        if row in one.held_out and hasattr(one.classifier, "schema_"):
            with warnings.catch_warnings(), np.errstate(invalid="ignore"):
                warnings.simplefilter("ignore")
                label = comparison.classes[never[row]][:1]
                worse = importance(one.classifier, _safe_indexing(one.rows, [row]), label)
            return row, worse.columns[(worse == -np.inf).to_numpy()[0]].tolist()
    return row, []


def _telling(X, y, most: int) -> list[str]:
    """Return the names of the columns that tell most about the class by themselves, by their log Bayes factors."""
    log_bayes: dict[str, float] = {}
    for sign, labels in ((1, y), (-1, np.zeros(len(y), int))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one class, or a constant column, on purpose
            classifier = NaiveBayesClassifier().fit(X, labels)
        for block in classifier.schema_.blocks:
            leaf, statistics = classifier.model_.leaves[block.name], classifier.statistics_.leaves[block.name]
            terms = np.broadcast_to(leaf.log_evidence_terms(statistics).sum(0), len(block.columns))
            for column, term in zip(block.columns, terms.tolist(), strict=True):
                log_bayes[column] = log_bayes.get(column, 0.0) + sign * term
    return sorted(log_bayes, key=lambda column: -log_bayes[column])[:most]


def _cross_validate(result: _Result, chosen, y, places, progress, keep: bool, in_time: bool) -> _Result:
    """Return ``result`` filled by the candidates of each name, fitted anew for each fold, which ``keep`` keeps.

    With ``in_time`` exact posteriors learn within a block; see `predict_block`.
    """
    work = [(number, name, *fold) for number, fold in enumerate(places, 1) for name in chosen]
    progress = progress or (lambda done, total, text: None)
    for done, (number, name, train, test) in enumerate(work):
        progress(done, len(work), f"fold {number} of {len(places)}: {name}")
        result.fold[test] = number
        start, rows, classifier = perf_counter(), chosen[name].rows, clone(chosen[name].classifier)
        grouped, learned, labels = result.group is not None and has_fit_parameter(classifier, "groups"), train, y[train]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                lacking = np.flatnonzero(result.indicators[train].sum(0) == 0)
                if len(lacking):
                    raise ValueError(f"the rows to fit hold no row of the classes {listed(result.classes[lacking])}")
                options = {"groups": taken(result.group, train)} if grouped else {}
                if result.shares is not None and not has_fit_parameter(classifier, "label_weight"):
                    if not has_fit_parameter(classifier, "sample_weight"):
                        raise ValueError("it takes neither shares of the classes nor weights of rows")
                    row, code, votes = stacked(result.shares[train], None)
                    learned, labels, options = train[row], result.classes[code], {"sample_weight": votes}
                    options |= {"groups": taken(result.group, learned)} if grouped else {}
                classifier = classifier.fit(_safe_indexing(rows, learned), labels, **options)
                if in_time:
                    probability = predict_block(classifier, rows, y, result.time, result.group, train, test)
                else:
                    probability = classifier.predict_proba(_safe_indexing(rows, test))
                probability = _sorted(classifier, probability)
                if np.isnan(probability).any():
                    raise ValueError("its class probabilities are not numbers")
                result.probability[name][test] = probability
                if keep:
                    result.estimators.setdefault(name, []).append(Fitted(classifier, rows, test))
                draws = getattr(classifier, "posterior_", None)  # an average has no draws to tell of
                diverging = getattr(draws, "sample_stats", {}).get("diverging")
                if diverging is not None and diverging.any():
                    warnings.warn(f"{diverging.sum()} draws diverged", UserWarning, stacklevel=1)
            except ValueError as error:
                result.notes.append(Note(name, number, error, True))
        result.seconds[name] += perf_counter() - start
        few = [w.message for w in caught if isinstance(w.message, FewDrawsWarning)]
        for warning in few:
            result.doubtful[name][test[warning.rows]] = True
        told = [w for w in caught if w.message not in few and issubclass(w.category, UserWarning | RuntimeWarning)]
        told = [w for w in told if getattr(w.message, "kind", None) != "repeats"]  # `_planned` looked at all rows
        said = {str(message): message for message in (_of_table(w.message, learned) for w in told)}
        before = set().union(*(_entries(note.message) for note in result.notes if note.inference == name))
        said = {text: m for text, m in said.items() if not (found := _entries(m)) or not found <= before}
        result.notes.extend(Note(name, number, message, False) for message in said.values())
    progress(len(work), len(work), "done")
    return result


@contextlib.contextmanager
def _told_once():
    """Tell the warnings of the block after it, each once, though every model that looks at the table gives them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in {str(w.message): w.message for w in caught}.values():
        warn(message)


def _of_table(message, learned):
    """Return a warning that names rows of a fit with the rows of the table, whose places are ``learned`` (n,)."""
    if not _entries(message):
        return message
    text = _ROW.sub(lambda found: str(learned[int(found[0])]), str(message))
    return InputWarning(text, column=message.column, row=int(learned[message.row]), value=message.value)


def _entries(message) -> set[tuple[Any, str]]:
    """Return column and row of the entries that a warning tells of; none of another warning."""
    if not isinstance(message, InputWarning) or message.row is None:
        return set()
    return {(message.column, row) for row in _ROW.findall(str(message))}


def _sorted(classifier, probability):
    """Return probabilities with the classes in sorted order; those of ordered classes come in their own."""
    classes = np.asarray(getattr(classifier, "classes_", range(probability.shape[1])))
    order = np.argsort(classes, kind="stable")
    return probability if (order[1:] > order[:-1]).all() else probability[:, order]


def _planned(X, y, folds, seed: int, groups, order):
    """Return rows and labels, the group and the time of each, None without such, and the rows of each fold.

    Where a number of folds alone is given copies of a row are of one group, told by a warning.
    """
    X, order = taken_out(X, order)
    y = labels_or_shares(y)
    if isinstance(y, Shares):
        if order is not None:
            raise ValueError("order takes one label a row, and y has shares of the classes")
        truth = y.values.argmax(1)
    else:
        y = truth = np.asarray(y)
    if groups is None and order is None and not isinstance(folds, Iterable):
        found = repeats(columns_of(X), np.unique(truth, return_inverse=True)[1])
        groups = found.copies
        if found.unlikely:
            warn(found.told())
    time = None if order is None else times_of(order, len(y))
    return X, y, group_codes(groups, len(y)), time, splits(y, folds, seed, groups, order)


def splits(y, folds: Any, seed: int, groups=None, order=None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows to fit and those held out, fold by fold, by arguments of `compare_models`, ``order`` as times."""
    if order is not None:
        return blocks_in_order(y, order, folds, group_codes(groups, len(y)))
    if isinstance(folds, Iterable):
        return _given(folds, len(y))
    group = group_codes(groups, len(y))
    if isinstance(y, Shares):
        check_count("folds", folds)
        kind, truth = KFold if group is None else GroupKFold, y.values
    else:
        kind, truth = StratifiedKFold if group is None else StratifiedGroupKFold, np.unique(y, return_inverse=True)[1]
        folds = min(usable_folds(y, folds), len(y) if group is None else len(np.unique(group)))
    return list(kind(folds, shuffle=True, random_state=seed).split(truth, truth, group))


def _given(folds, rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds that a user gives, checked."""
    wanted = "folds must be a number, or pairs of int arrays: the rows to fit and the rows held out"
    found, held = [], np.zeros(rows, int)
    for number, pair in enumerate(folds):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"{wanted}; fold {number} is a {type(pair).__name__}")
        train, test = map(np.asarray, pair)
        for places in (train, test):
            whole = places.ndim == 1 and places.dtype.kind in "iu" and len(places) > 0
            if not whole or places.min() < 0 or places.max() >= rows:
                raise ValueError(f"{wanted}; those of fold {number} are no places in 0, ..., {rows - 1}")
        np.add.at(held, test, 1)
        found.append((train, test))
    if not found or held.max() > 1:
        problem = "no fold" if not found else f"row {held.argmax()} held out {held.max()} times"
        raise ValueError(f"folds must hold out each row once at most, in one fold at least; there is {problem}")
    return found
