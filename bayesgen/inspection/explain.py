"""Explanations of class probabilities: terms by column and class, the odds of one row, the importance of columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from bayesgen.core.errors import Argument, InputError, listed
from bayesgen.core.registry import fitted_of
from bayesgen.inspection.boundary import mean_scores
from bayesgen.inspection.probabilities import log_odds, predict_proba_interval
from bayesgen.models.bernoulli import BetaBinomial
from bayesgen.models.classifier import GaussianDiscriminant
from bayesgen.models.multinomial import DirichletMultinomial
from bayesgen.numerics.pieces import count_rows
from bayesgen.tables import dates, design
from bayesgen.tables.columns import frame_of
from bayesgen.tables.groups import group_codes
from bayesgen.tables.labels import codes_of


def explain(classifier, X, row: int | None = None, label=None) -> Any:
    """Divide the log probabilities of rows, or the log odds of one row, into terms of the columns.

    For all rows and classes: in naive Bayes the term of a column is log p(x_j | t = k, data), averaged over the
    posterior; a block that is one observation (a bag of words, heads with tosses) has one term, under its name. In
    a Gaussian discriminant with a shared covariance the term is w_kj (x_j - m_j) under the posterior mean of the
    weights, m the mean of the rows of fit, and the first term holds the score at m. Terms are centred over the
    classes: 0 says nothing, and a missing column says 0. The difference of two classes is a log odds.

    In logistic, probit and ordered classifiers it is b_kj (x_j - m_j) too, with the coefficients ``coef_`` as the
    weights, and m is 0 with ``standardize=False``; a category stands under its column. Scores of ordered classes are
    those of "higher than" each class but the last, x b - cut, which differ by the cut points alone and are not centred.
    For one row a column that is not known yet stands at m.

    In an averaged classifier the term of a column is the weighted average over members of exponent times the difference
    of log p(x | k) with and without the column. Redundant columns share their contribution. An average is no sum of
    logarithms, so the last term, "remainder", completes the log probability.

    For one row and class: the term of a column is the log odds with its value, less the log odds without it. In
    naive Bayes with two classes that is the log Bayes factor. Elsewhere columns may hold the same information, so
    the order in which they become known matters: each term is the mean over two orders, from the first column of
    the fit to the last and back, with a column missing until it is known. The terms sum to the log odds exactly,
    also under a full covariance. A word of a bag counts 0 until it is known; tosses are known from the beginning,
    and add 0. Where a point estimate rules classes out, a term is infinite, and a value that becomes known after the
    class is certain has the term of the other order, or 0.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        Rows. Without ``row``, a Gaussian discriminant needs them complete.
    row : int, optional
        Place of the row to explain, 0 for the first; default: all rows, for all classes.
    label : object, optional
        Class whose odds the row explains; default: its most probable class.

    Returns
    -------
    xarray.DataArray, dims (row, class, term) or (row, higher than, term), or RowEvidence
        Terms "prior", then the columns. In naive Bayes the softmax over classes of their sum is `predict_proba`
        (by draws, up to their noise). With ``row`` its class, probability and interval, prior log odds, terms and
        values, which `bayesgen.plot.evidence` draws.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier
    >>> X, y = [[0.0, 1.0], [0.2, 0.0], [1.0, 1.1], [1.2, 0.1]], ["a", "a", "b", "b"]
    >>> classifier = NaiveBayesClassifier().fit(X, y)
    >>> terms = classifier.explain([[1.3, 0.5]])
    >>> (terms.sel({"class": "b"}) - terms.sel({"class": "a"}))[0].round(2).to_series().to_dict()
    {'prior': 0.0, 'x0': 6.07, 'x1': -0.01}
    >>> evidence = classifier.explain([[1.3, 0.5]], row=0)
    >>> evidence.label, {column: round(term, 2) for column, term in evidence.terms.items()}
    ('b', {'x0': 6.07, 'x1': -0.01})
    """
    classifier = fitted_of(classifier)
    if row is not None:
        return _evidence(classifier, X, row, label)
    if label is not None:
        raise ValueError("label= is the class whose odds one row explains: give row=, the place of the row, too")
    import xarray as xr

    names, terms = classifier.terms(X)
    values = np.stack(np.broadcast_arrays(*terms), axis=-1)
    if values.shape[1] < len(classifier.classes_):
        labels = {"higher than": classifier.classes_[:-1].tolist(), "term": ["prior", *names]}
        return xr.DataArray(values, dims=("row", "higher than", "term"), coords=labels)
    known = np.isfinite(values)  # a plug-in estimate may rule a class out: -inf
    values = values - np.where(known, values, 0.0).sum(1, keepdims=True) / known.sum(1, keepdims=True).clip(1)
    labels = {"class": classifier.classes_.tolist(), "term": ["prior", *names]}
    return xr.DataArray(values, dims=("row", "class", "term"), coords=labels)


@np.errstate(invalid="ignore", divide="ignore")  # a point estimate may rule a class out
def terms_of_model(classifier, X):
    """Return names and terms (n, K): the log class probability, then the effect of each column, all others missing."""
    rows = classifier.read(X)
    if isinstance(classifier.model_, GaussianDiscriminant):
        return _linear_terms(classifier, rows["gaussian"])
    nothing, posterior = classifier.schema_.nothing(), classifier.posterior_
    blank = {name: np.repeat(v, count_rows(rows), axis=0) for name, v in nothing.items()}
    prior = posterior.log_class_prior[None]
    names, terms = [], [prior]
    for block in classifier.schema_.blocks:
        columns = rows[block.name]
        if block.single or classifier.model_.leaves[block.name].event_dim:
            parts = {block.columns[0] if block.single else block.name: columns}
        else:
            places = np.arange(columns.shape[1])
            parts = {c: np.where(places == j, columns, np.nan) for j, c in enumerate(block.columns)}
        names += parts
        joints = (posterior.log_predictive(blank | {block.name: alone}) for alone in parts.values())
        terms += [classifier.exponent_ * (joint - prior) for joint in joints]
    return names, terms


def _linear_terms(classifier, rows):
    """Return names and terms: the score at the mean of the rows of fit, then the change along each column."""
    if not classifier.model_.linear:
        problem = "explain() needs scores that are a sum over columns: naive Bayes, or Gaussians with "
        raise InputError(problem, Argument("shared", True))
    weights, intercept = mean_scores(classifier.posterior_, seed=classifier.random_state)
    centre = classifier.statistics_.leaves["gaussian"].pooled.mean
    if np.isnan(rows).any():
        raise ValueError("explain() of a Gaussian discriminant needs complete rows")
    at_centre = np.broadcast_to(intercept + weights @ centre, (len(rows), len(intercept)))
    columns = np.moveaxis(weights[None] * (rows - centre)[:, None], -1, 0)
    return classifier.schema_.columns, [at_centre, *columns]


def terms_of_score(classifier, X):
    """Return names of the columns, and terms (n, scores) of a regression: its score at the means, then b (x - m)."""
    rows = classifier.read(X) * classifier.scale_
    columns, origins = list(classifier.schema_.columns), np.asarray(design.origins(classifier.schema_), object)
    if classifier.cuts_ is not None:
        intercept, weights = -classifier.cuts_, np.tile(classifier.coef_, (len(classifier.cuts_), 1))
    else:
        first = len(classifier.classes_) - len(classifier.coef_)  # the first of two classes has the score 0
        weights = np.pad(classifier.coef_, ((first, 0), (0, 0)))
        intercept = np.pad(classifier.intercept_, (first, 0))
    terms = [rows[:, origins == name] @ weights[:, origins == name].T for name in columns]
    return columns, [(intercept + weights @ classifier.centre_)[None], *terms]


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """Evidence of the values of one row for a class against all others: log odds that add up.

    Attributes
    ----------
    label : object
        The class.
    probability : float
        Its probability.
    interval : tuple of float
        The 90 % posterior interval that holds the probability; (NaN, NaN) where the classifier is fitted at a point, by
        "map" or "ml", which has none: ``inference="laplace"`` gives one.
    prior : float
        Log odds of the class before any value is known.
    terms : dict from column to float
        Log odds that each value adds, in nats: prior and terms sum to the log odds of `probability`.
    values : dict from column to object
        The values of the row, None where missing; a date as text, 2024-01-31.
    """

    label: Any
    probability: float
    interval: tuple[float, float]
    prior: float
    terms: dict[str, float]
    values: dict[str, Any]

    @property
    def prior_probability(self) -> float:
        """Probability of the class before any value is known, beside which `probability` is to be read."""
        return float(expit(self.prior))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; None in place of infinite ones."""
        columns = {c: {"value": self.values[c], "log_odds": _finite(term)} for c, term in self.terms.items()}
        return {
            "class": self.label,
            "probability": self.probability,
            "interval": list(map(_finite, self.interval)),
            "prior_probability": self.prior_probability,
            "prior_log_odds": _finite(self.prior),
            "columns": columns,
        }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


@np.errstate(invalid="ignore", divide="ignore")  # a point estimate may rule a class out
def _evidence(classifier, X, row: int, label) -> RowEvidence:
    """Add the columns of a row one by one, in two orders, and share out the steps of the log odds."""
    names, labels = list(classifier.schema_.columns), classifier.classes_.tolist()
    if label is not None and label not in labels:
        raise ValueError(f"label must be one of {listed(labels)}, got {label!r}")
    if len(labels) < 2:
        raise ValueError("odds need two classes, and the classifier learned one only")
    given, frame = _row_of(X, row, len(names))
    used = list(classifier.schema_.block_of)
    places = [names.index(column) for column in used]
    values = dict(zip(names, frame.iloc[0], strict=True))
    begun = {frame.columns[names.index(c)]: v for c, v in _begun(classifier.schema_.blocks, values).items()}

    def as_given(rows):
        return rows if given else rows.to_numpy()

    whole = classifier.read(as_given(frame)) if hasattr(classifier, "centre_") else None

    def along(order):
        """Return the log class probabilities of the row with more and more of its columns, from none to all."""
        unknown = np.ones((len(order) + 1, len(names)), dtype=bool)
        for count, place in enumerate(order, 1):
            unknown[count:, place] = False
        if isinstance(whole, np.ndarray):  # a regression, whose columns stand at their means until they are known
            origins = [names.index(column) for column in design.origins(classifier.schema_)]
            return classifier.posterior_.log_predictive(np.where(unknown[:, origins], 0.0, whole))
        rows = frame.take(np.zeros(len(unknown), int)).reset_index(drop=True).mask(unknown)
        rows = rows.fillna(begun) if begun else rows
        return classifier.predict_log_proba(as_given(rows))

    forwards, backwards = along(places), along(places[::-1])
    k = int(forwards[-1].argmax()) if label is None else labels.index(label)
    first, last = (np.diff(log_odds(path)[:, k]) for path in (forwards, backwards))
    steps = np.stack([first, last[::-1]])  # NaN from one infinity to the same one
    stepped = ~np.isnan(steps)
    mean = np.where(stepped, steps, 0.0).sum(0) / stepped.sum(0).clip(1)
    point = not classifier.posterior_.uncertain
    low, high = (np.nan, np.nan) if point else predict_proba_interval(classifier, as_given(frame))[0, k]
    return RowEvidence(
        labels[k],
        float(np.exp(forwards[-1, k])),
        (float(low), float(high)),
        float(log_odds(forwards)[0, k]),
        dict(zip(used, mean.tolist(), strict=True)),
        {column: _plain(values[column], column, classifier.schema_) for column in used},
    )


def _row_of(X, row: int, width: int) -> tuple[bool, pd.DataFrame]:
    """Return one row as a frame, and True if X is a table: its columns have the types of the table."""
    table: Any = frame_of(X)
    whole = np.asarray(X, dtype=object) if table is None else table
    if len(whole.shape) != 2 or whole.shape[1] != width:
        raise ValueError(f"X must be rows of {width} columns, got shape {whole.shape}")
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < len(whole):
        raise ValueError(f"row must be the place of a row of X, from 0 to {len(whole) - 1}; got {row!r}")
    if table is None:
        return False, pd.DataFrame(whole[[row]]).infer_objects()
    return True, table[[int(row)]].to_pandas()


def _begun(blocks, values: dict[str, Any]) -> dict[str, Any]:
    """Return what columns hold before they are known where that is no gap: 0 for a word of a bag, tosses."""
    begun = {}
    for block in blocks:
        if block.leaf == "multinomial" or isinstance(block.leaf, DirichletMultinomial):
            begun |= dict.fromkeys(block.columns, 0)
        elif isinstance(block.leaf, BetaBinomial) and block.leaf.event_dim:
            begun[block.columns[-1]] = values[block.columns[-1]]
    return {column: value for column, value in begun.items() if values[column] == values[column]}


def _plain(value, column: str, schema):
    """Return a value as Python and JSON have it: None if missing, text in a column of dates."""
    if isinstance(value, list | tuple | np.ndarray):  # a sequence
        return " ".join(map(str, value))
    if pd.isna(value):
        return None
    if column in schema.dates:
        return dates.as_date(schema.reading.days_of(np.asarray([value]), column)[0])
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float) else str(value)


def importance(classifier, X, y, groups=None, columns=None) -> pd.DataFrame:
    r"""Return the growth of the log loss of each row, or of each group of rows, without each column.

    .. math:: d_{ij} = \log p(t_i \mid x_i) - \log p(t_i \mid x_{i, -j})

    The column is integrated out, so nothing is fitted anew and nothing is shuffled. Naive Bayes without a column is the
    naive Bayes of the other columns. A mean above 0 says that the column helps beside all the others. If two columns
    hold the same information, each is worth little, since the other stays. A column of naive Bayes may be worth less
    than nothing if it counts the information of others again.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        Classifier that takes missing values.
    X : DataFrame or array, shape (n, columns)
        Rows, best new ones: on the rows of the fit every column looks better than it is.
    y : array, shape (n,)
        Their classes.
    groups : array, shape (n,), optional
        Label of what a row belongs to, where rows belong together: a patient, a batch, a day. Each row is still
        predicted alone, but the rows of a group are no independent witnesses of what a column is worth; see `by_group`.
    columns : sequence of names, optional
        The columns to ask about, each of which costs one prediction; default: all that the classifier uses.

    Returns
    -------
    DataFrame, shape (n, columns), or (G, columns)
        A row for each row, or for each of G groups in the order of their first rows, in nats, with the columns that
        the classifier uses; a bag of words, and heads with their tosses, are missing together and stand under the name
        of their block. ``mean()`` is the importance, the mean over rows, and ``sem()`` its standard error.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier, data
    >>> table = data.load("penguins")[["species", "bill_length_mm", "body_mass_g", "year"]]
    >>> y = table.pop("species")
    >>> classifier = NaiveBayesClassifier().fit(table[::2], y[::2])
    >>> importance(classifier, table[1::2], y[1::2]).mean().round(2).to_dict()
    {'bill_length_mm': 0.19, 'body_mass_g': -0.05, 'year': 0.0}
    """
    classifier = fitted_of(classifier)
    table: Any = None if isinstance(X, pd.DataFrame) else frame_of(X)
    X = X if table is None else table.to_pandas()
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X), columns=classifier.schema_.columns)
    codes = codes_of(y, classifier.classes_, len(frame))
    group = group_codes(groups, len(codes))
    chosen = np.arange(len(frame)), codes

    def log_probability(rows):
        return classifier.predict_log_proba(rows if isinstance(X, pd.DataFrame) else rows.to_numpy())[chosen]

    whole = log_probability(frame)
    worse = {}
    for name, together in _parts(classifier):
        if columns is not None and not set(columns).intersection(together):
            continue
        without = frame.copy(deep=False)
        for column in together:
            without[column] = frame[column].mask(np.ones(len(frame), dtype=bool))
        worse[name] = whole - log_probability(without)
    return by_group(pd.DataFrame(worse, index=frame.index), group)


def by_group(worth: pd.DataFrame, group) -> pd.DataFrame:
    r"""Gather the values of rows by group, so that their mean stays and its error is the one of independent groups.

    .. math:: d_{gj} = m_j + \frac{n_g}{n / G} (m_{gj} - m_j)

    with the means :math:`m_j` over all n rows and :math:`m_{gj}` over the :math:`n_g` rows of group g. Where all groups
    are of one size this is the mean of the group. In general the mean over groups is the mean over rows, and its
    standard error is the one of a ratio of sums over groups, as `ModelComparison` has it. Without a ``group`` each row
    stands for itself.
    """
    if group is None:
        return worth
    place, _ = pd.factorize(group)
    middle = worth.mean().where(np.isfinite(worth).all(), 0.0)  # an infinite value is left as it is
    apart: Any = (worth - middle).groupby(place).sum()
    return apart * (len(apart) / len(worth)) + middle


def _parts(classifier) -> list[tuple[str, tuple[str, ...]]]:
    """Return the columns that leave together, by name, in order: each alone but for counts of one observation."""
    schema, average = classifier.schema_, getattr(classifier, "average_", None)
    model = getattr(classifier, "model_", None) if average is None or average.leaves is None else average.leaves.model
    leaves = getattr(model, "leaves", {})
    parts = []
    for block in schema.blocks:
        leaf = leaves.get(block.name)
        together = leaf is not None and leaf.event_dim and leaf.density_kind != "density"
        parts += [(block.name, block.columns)] if together else [(column, (column,)) for column in block.columns]
    place = {column: j for j, column in enumerate(schema.columns)}
    return sorted(parts, key=lambda one: place[one[1][0]])
