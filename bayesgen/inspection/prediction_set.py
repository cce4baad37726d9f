r"""Sets of classes that hold the truth as often as they promise, whether the model is right or wrong.

A row x is put beside the n rows whose classes are known, under each class k in turn. Every one of the n + 1 rows then
has a score, the log odds of its own class when all *other* n rows have been learned from,

.. math:: s_i = \log \frac{p(t_i \mid x_i, \text{others})}{1 - p(t_i \mid x_i, \text{others})}, \qquad
   p_k(x) = \frac{1 + \#\{i : s_i \le s_x\}}{n + 1},

and k is in the set where :math:`p_k(x) > 1 - \text{level}`. Under the true class all n + 1 rows are treated alike, so
that where they are exchangeable the rank of the new one is uniform, and the set misses the truth with probability
1 - level at most: marginally, over the rows of fit and the new one together (Vovk, Gammerman and Shafer 2005,
*Algorithmic Learning in a Random World*, section 2.2). Where rows belong to groups, the groups are exchangeable: with G
groups of known rows that nothing was learned from, a random row of a new group has

.. math:: p_k(x) = \frac{1 + \sum_g \#\{i \in g : s_i \le s_x\}/n_g}{G + 1}

(Dunn, Wasserman and Ramdas 2023, *JASA* 118, on hierarchical models).

The promise needs that no row has a part of its own in the score. So a weak prior is settled anew with the candidate
among the rows that it follows; and an exponent or a prior that leave-one-out chose from the rows of fit alone is
refused.

To learn from all rows but one is to add statistics, so no model is fitted anew: n rows and K classes cost n K densities
for each class of each new row. Statistics of the other rows are sums, never differences: a row far out loses no digits.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import listed, warn
from bayesgen.core.statistics import SumStatistics, all_but_one, departures
from bayesgen.inspection.fitted import FittedModel
from bayesgen.inspection.leave_one_out import check_rows, rows_of_fit
from bayesgen.inspection.probabilities import log_odds
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.gaps import PatternMoments
from bayesgen.models.markov_chain import MarkovChain
from bayesgen.numerics.checks import check_flag, check_level
from bayesgen.numerics.pieces import count_rows, pieces, select_rows
from bayesgen.numerics.sums import Grouping
from bayesgen.tables.groups import group_codes
from bayesgen.tables.labels import class_labels, codes_of

_SAME = 1e-9  # scores as near as this are ties, which count against the new row: rounding breaks no promise
_CELLS = 1 << 20  # entries of statistics held at a time


@dataclass(frozen=True)
class PredictionSet:
    """Set of the classes that each row may have.

    Attributes
    ----------
    p_value : array, shape (n, K)
        Share of the rows, itself among them, that are as strange under their class as the row is under this one.
    classes : array, shape (K,)
        Class labels.
    level : float
        Probability with which a set holds the true class, at least.
    """

    p_value: np.ndarray
    classes: np.ndarray
    level: float

    @property
    def contains(self) -> np.ndarray:
        """Return True for classes in the set of a row, (n, K): their p-value exceeds 1 - level."""
        return self.p_value > 1 - self.level + 1e-12

    @property
    def size(self) -> np.ndarray:
        """Return the number of classes in each set, (n,); 0 if a row is strange under all of them."""
        return self.contains.sum(1)

    @property
    def labels(self) -> list[list]:
        """Return the classes in the set of each row."""
        return [self.classes[row].tolist() for row in self.contains]


def predict_set(
    classifier, X, X_known, y_known, level: float = 0.9, by_class: bool = False, groups=None
) -> PredictionSet:
    """Return sets of classes that hold the true one with probability ``level`` at least, be the model right or wrong.

    A classifier by ``inference="exact"`` takes the rows of its fit as those whose class is known, and uses each twice:
    to learn from, and to be compared with (full conformal prediction, see the module). Any other, the averaged
    classifier among them, takes rows that it has *not* learned from (split conformal prediction): with rows of its fit
    nothing is promised. The promise holds for exchangeable rows, and on average over them: not given x, and not for
    each class unless ``by_class``.

    Parameters
    ----------
    classifier : fitted classifier
        Classifier without weights of rows, and without an exponent by "loo": their rows are not exchangeable.
    X : DataFrame or array, shape (n, columns)
        Rows to predict; gaps as at the fit, so none for full covariances.
    X_known, y_known : rows and their classes
        The rows of the fit if inference is exact, else other rows.
    level : float, default 0.9
        Least probability that a set holds the true class, between 0 and 1. Where fewer than 1/(1 - level) - 1 rows (or
        groups) are known every set holds all classes, with a warning.
    by_class : bool, default False
        True to keep the promise within each class: a row is then compared with rows of that class alone. A class
        of fewer than 1/(1 - level) - 1 known rows is in every set.
    groups : array, shape (known rows,), optional
        Label of what a known row belongs to, where rows belong together: a patient, a batch, a day. The known rows are
        then rows that no classifier has learned from, each group weighs one, and the promise holds for a row of a new
        group.

    Raises
    ------
    ValueError
        If the known rows are not the rows of an exact fit, or are the rows of another kind of fit.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[:, :2], load_iris().target_names[y]
    >>> classifier = GaussianDiscriminantClassifier().fit(X[::3], y[::3])
    >>> predict_set(classifier, X[[1, 52, 77]], X[::3], y[::3]).labels
    [['setosa'], ['virginica'], ['virginica']]
    """
    check_is_fitted(classifier)
    check_level("level", level)
    check_flag("by_class", by_class)
    exact = getattr(getattr(classifier, "posterior_", None), "kind", None) == "exact"
    if exact and groups is None:
        group, p_value = None, _full(classifier, X, X_known, y_known, by_class)
    else:
        group = group_codes(groups, len(class_labels(y_known)))
        p_value = _split(classifier, X, X_known, y_known, by_class, group)
    _warn_of_few(classifier.classes_, class_labels(y_known), group, level, by_class)
    return PredictionSet(p_value, classifier.classes_, level)


def _warn_of_few(classes, y, group, level: float, by_class: bool) -> None:
    """Warn of known rows, or groups, so few that no p-value is 1 - level or less, 1/(n + 1) being the least."""
    needed, what = math.ceil(1 / (1 - level) - 1e-9) - 1, "known rows" if group is None else "groups of known rows"
    group = np.arange(len(y)) if group is None else group
    few = [k for k in classes.tolist() if len(np.unique(group[y == k])) < needed] if by_class else []
    if few:
        warn(f"level={level:g} asks for {needed} {what} of a class: {listed(few)} have fewer, and are in every set")
    elif (count := len(np.unique(group))) < needed and not by_class:
        warn(f"level={level:g} asks for {needed} {what}, and there are {count}: every set holds all classes")


# -- split: rows that were not learned from ----------------------------------------------------------------------------


def _split(classifier, X, X_known, y_known, by_class, group):
    known = log_odds(classifier.predict_log_proba(X_known))
    codes = codes_of(y_known, classifier.classes_, len(known), ("X_known", "y_known"))
    if hasattr(classifier, "statistics_"):
        _refuse_rows_of_fit(classifier, X_known, y_known)
    new = log_odds(classifier.predict_log_proba(X))
    odds, result = known[np.arange(len(codes)), codes], np.empty(new.shape)
    group = np.arange(len(codes)) if group is None else group
    for k in range(new.shape[1]):
        among = np.flatnonzero(codes == k) if by_class else np.arange(len(codes))
        among = among[np.argsort(odds[among])]
        _, place, size = np.unique(group[among], return_inverse=True, return_counts=True)
        strange = np.append(0.0, np.cumsum(1 / size[place]))  # each group weighs one
        result[:, k] = (1 + strange[np.searchsorted(odds[among], new[:, k], side="right")]) / (len(size) + 1)
    return result


def _refuse_rows_of_fit(classifier, X, y) -> None:
    try:
        check_rows(classifier, classifier.statistics_, classifier.sum_rows(X, y, None))
    except ValueError:
        return
    raise ValueError(
        "X_known and y_known are the rows of the fit: give rows that it has not learned from, or fit by "
        "inference='exact' and give no groups"
    )


# -- full: all n + 1 rows ----------------------------------------------------------------------------------------------


def _full(classifier, X, X_known, y_known, by_class):
    if isinstance(exponent := getattr(classifier, "exponent", None), str) and exponent == "loo":
        raise ValueError(
            "predict_set() treats all rows alike, and exponent='loo' was chosen by the rows of fit alone: give a "
            "number, or use an AveragedClassifier with rows set aside"
        )
    leaves = classifier.model_.leaves if isinstance(classifier, FittedModel) else {}
    chains = [name for name, leaf in leaves.items() if isinstance(leaf, MarkovChain)]
    if chains:
        raise ValueError(
            f"predict_set() of {listed(chains)}: rows of sequences do not leave an exact fit one by one; fit another "
            "inference, and give rows that it has not learned from"
        )
    rows, codes, _ = rows_of_fit(classifier, X_known, y_known, None, "predict_set() takes the rows of an exact fit")
    template, whole = classifier.template(classifier.schema_), classifier.statistics_

    def summed(held):
        return template.statistics(select_rows(rows, held), codes[held])

    try:
        check_rows(classifier, whole, summed(np.arange(len(codes))))
    except ValueError as error:
        raise ValueError(f"predict_set(): {error}. Rows with weights are not exchangeable: fit without") from None
    unknown = classifier.read(X)
    known, new = _singles(template, rows), _singles(template, unknown)
    others = _own_class(all_but_one(summed, departures(len(codes)), 0), codes)
    width = len(classifier.classes_) * sum(a[0].size for s in others.values() for a in _arrays(s).values())
    result = np.empty((count_rows(template.blocks(unknown)), len(classifier.classes_)))
    for i, k in np.ndindex(*result.shape):
        candidate = _Candidate(template, whole, _take(new, [i]), k, getattr(classifier, "exponent_", 1.0))
        compared = np.flatnonzero(codes == k) if by_class else np.arange(len(codes))
        stranger = 0
        for piece in pieces(len(compared), width, _CELLS):
            chosen = compared[piece]
            scores = candidate.scores(_take(others, chosen), codes[chosen], _take(known, chosen))
            stranger += (~(scores > candidate.score)).sum()  # what leaves float64, far out, counts against the row
        result[i, k] = (1 + stranger) / (len(compared) + 1)
    return result


class _Candidate:
    """A new row beside the rows of the fit, under some class, and the scores of all rows with it."""

    def __init__(self, template, whole: ClassStatistics, new, k: int, exponent: float):
        self.new, self.k, self.exponent = new, k, exponent
        unit = np.eye(len(whole.classes.sums))[k]
        leaves = {name: s + _where(unit, new[name]) for name, s in whole.leaves.items()}
        sums = SumStatistics(whole.classes.sums + unit, whole.classes.base)
        self.all = ClassStatistics(sums, leaves, whole.squares + unit)
        self.model = template.with_prior(self.all)
        before = {name: _each(lambda a: a[None], s) for name, s in whole.leaves.items()}
        score = log_odds(self._log_joint(before, whole.classes.sums[None], new))[0, k]
        self.score = score + _SAME * max(1.0, abs(score)) if np.isfinite(score) else score

    def scores(self, all_others, codes, rows) -> np.ndarray:
        """Return the scores of some rows of the fit, each without itself and with the candidate, (b,).

        Parameters
        ----------
        all_others, rows : mapping from leaf to statistics (b, ...)
            Statistics of all other rows of its class, and of the row alone.
        codes : int array, shape (b,)
            Class of each row.
        """
        belongs, statistics = codes[:, None] == np.arange(len(self.all.classes.sums)), {}
        for name, others in all_others.items():
            with_new = others + _where(codes == self.k, self.new[name])
            statistics[name] = _each(
                lambda a, b: np.where(_beside(belongs, b[:, None]), b[:, None], a), self.all.leaves[name], with_new
            )
        joint = self._log_joint(statistics, self.all.classes.sums - belongs, rows)
        return log_odds(joint)[np.arange(len(codes)), codes]

    def _log_joint(self, statistics, counts, rows) -> np.ndarray:
        """Return log π_k p(x | k)^τ of rows, each under statistics (b, K, ...) and counts (b, K) of its own: (b, K)."""

        def density(name, leaf):
            posterior = leaf.update(statistics[name]).untied()
            terms = posterior.log_evidence_terms(_each(lambda a: a[:, None], rows[name]))
            return terms.sum(tuple(range(2, terms.ndim)))

        share = self.model.classes.update(SumStatistics(counts, np.float64(0))).mean
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(share) + self.exponent * sum(self.model.leafwise(density).values())


# -- statistics as arrays ----------------------------------------------------------------------------------------------


def _arrays(statistics) -> dict[str, Any]:
    """Return the arrays of statistics by name; sums of log h are the same under every class, and stay out."""
    return {f.name: a for f in fields(statistics) if np.ndim(a := getattr(statistics, f.name))}


def _each(function, *statistics):
    """Return statistics with ``function`` applied to their arrays."""
    parts = [_arrays(s) for s in statistics]
    return replace(statistics[0], **{name: function(*(p[name] for p in parts)) for name in parts[0]})


def _take(statistics, rows):
    """Select rows of statistics (n, ...) by leaf."""
    return {name: _each(lambda a: a[rows], s) for name, s in statistics.items()}


def _own_class(leave_one_out, codes):
    """Return for each row the statistics of the other rows of its class, by leaf, (n, ...)."""
    selected = [
        {name: _each(lambda a, k=k: a[[k]], s) for name, s in others.leaves.items()}
        for k, others in zip(codes, leave_one_out, strict=True)
    ]
    return {name: _each(lambda *a: np.concatenate(a), *(row[name] for row in selected)) for name in selected[0]}


def _where(present, statistics):
    """Return statistics (groups, ...) with one row (1, ...) in each group where it is ``present``, else nothing."""
    return _each(lambda a: _beside(present, a) * a, statistics)


def _beside(flags, a):
    """Give flags of the first axes of ``a`` as many axes as ``a`` has."""
    return flags.reshape(flags.shape + (1,) * (a.ndim - flags.ndim))


def _singles(model, rows):
    """Return the statistics of each row alone, (n, ...), by leaf."""

    def single(name, leaf):
        x = leaf.shaped(model.blocks(rows)[name])
        statistics = leaf.sum_rows(x, Grouping(np.arange(x.shape[0]), x.shape[0], None, (x.shape[0],)))
        if isinstance(statistics, PatternMoments):
            raise ValueError(
                "X has gaps, and a full covariance has no exact posterior given rows with gaps: use "
                "covariance='diagonal' or 'isotropic', naive Bayes, or an AveragedClassifier with rows set aside"
            )
        return statistics

    return model.leafwise(single)
