"""Why: what each column of a row says for each class.

What each value of one row does to the odds of a class: log odds that add up, as a doctor would read them.

What each column is worth to a classifier: how much worse it predicts labelled rows where the column is missing.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import listed
from bayesgen.inspection.averaged import Averaged, averaged_terms
from bayesgen.inspection.boundary import mean_scores
from bayesgen.inspection.probabilities import log_odds, probability_interval
from bayesgen.models.bernoulli import BetaBinomial
from bayesgen.models.classifier import GaussianDiscriminant
from bayesgen.models.multinomial import DirichletMultinomial
from bayesgen.numerics.pieces import count_rows
from bayesgen.tables import dates
from bayesgen.tables.columns import frame_of
from bayesgen.tables.labels import class_codes, class_labels

if TYPE_CHECKING:
    import pandas as pd


def explain(classifier, X):
    """What each column of a row says for each class, as terms that add.

    In naive Bayes the term of a column is log p(x_j | t = k, data), averaged over the posterior, and that of a
    block that is one observation (a bag of words, heads with tosses) stands under its block's name. In a Gaussian
    discriminant with a shared covariance it is w_kj (x_j - m_j) under the posterior mean of the weights, m the mean
    of the rows of fit, and the first term holds the score at m. Terms are centred over the classes: 0 says nothing,
    and a column that is missing says 0. The difference of two classes is a log odds. In an averaged classifier the term
    of a column is the average over members, by weight, of their exponents times log p(x | k) with the column less that
    without it; columns that say the same share their say, and averaging is no sum of logarithms, so a last term
    "remainder" is what the others leave of the log probability.

    Parameters
    ----------
    classifier : fitted generative classifier
        Whose posterior is asked.
    X : DataFrame or array, shape (n, columns)
        Rows; complete for a Gaussian discriminant.

    Returns
    -------
    xarray.DataArray, dims (row, class, term)
        Terms "prior", then the columns. In naive Bayes the softmax over classes of their sum is `predict_proba` (of
        draws, up to their noise).

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier
    >>> X, y = [[0.0, 1.0], [0.2, 0.0], [1.0, 1.1], [1.2, 0.1]], ["a", "a", "b", "b"]
    >>> said = explain(NaiveBayesClassifier().fit(X, y), [[1.3, 0.5]])
    >>> (said.sel({"class": "b"}) - said.sel({"class": "a"}))[0].round(2).to_series().to_dict()
    {'prior': 0.0, 'x0': 6.07, 'x1': -0.01}
    """
    import xarray as xr

    check_is_fitted(classifier)
    names, terms = averaged_terms(classifier, X) if isinstance(classifier, Averaged) else _terms(classifier, X)
    values = np.stack(np.broadcast_arrays(*terms), axis=-1)
    known = np.isfinite(values)  # a plug-in estimate may rule a class out: -inf
    values = values - np.where(known, values, 0.0).sum(1, keepdims=True) / known.sum(1, keepdims=True).clip(1)
    labels = {"class": classifier.classes_.tolist(), "term": ["prior", *names]}
    return xr.DataArray(values, dims=("row", "class", "term"), coords=labels)


def _terms(classifier, X):
    rows = classifier._read(X)
    return (_linear_terms if isinstance(rows, np.ndarray) else _bayes_terms)(classifier, rows)


def _bayes_terms(classifier, rows):
    """Log class probability, and by column what it adds where all others are missing."""
    nothing, posterior = classifier.schema_.nothing(), classifier.posterior_
    blank = {name: np.repeat(v, count_rows(rows), axis=0) for name, v in nothing.items()}
    prior = posterior.log_predictive(nothing)
    names, terms = [], [prior]
    for block in classifier.schema_.blocks:
        own = rows[block.name]
        if block.single or classifier.model_.leaves[block.name].event_dim:
            parts = {block.columns[0] if block.single else block.name: own}
        else:
            places = np.arange(own.shape[1])
            parts = {c: np.where(places == j, own, np.nan) for j, c in enumerate(block.columns)}
        names += parts
        own = (posterior.log_predictive(blank | {block.name: part}) for part in parts.values())
        terms += [classifier.exponent_ * (joint - prior) for joint in own]
    return names, terms


def _linear_terms(classifier, rows):
    """Score at the mean of the rows of fit, and by column what leads away from it."""
    if not isinstance(classifier.model_, GaussianDiscriminant) or not classifier.model_.shared:
        raise ValueError("explain() needs scores that are a sum over columns: naive Bayes, or shared=True")
    weights, intercept = mean_scores(classifier.posterior_, seed=classifier.random_state)
    centre = classifier.statistics_.leaves["gaussian"].pooled.mean
    if np.isnan(rows).any():
        raise ValueError("explain() of a Gaussian discriminant needs complete rows")
    at_centre = np.broadcast_to(intercept + weights @ centre, (len(rows), len(intercept)))
    columns = np.moveaxis(weights[None] * (rows - centre)[:, None], -1, 0)
    return classifier.schema_.columns, [at_centre, *columns]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the values of a row say for a class against all others: log odds that add up.

    Attributes
    ----------
    label : object
        The class.
    probability : float
        Its probability.
    interval : tuple of float
        The central 90 % posterior interval of the probability.
    prior : float
        Log odds of the class before the row is looked at.
    terms : dict from column to float
        What each value adds to them, in nats: prior and terms sum to the log odds of `probability`.
    values : dict from column to object
        The values of the row, None where missing; a date as text, 2024-01-31.
    """

    label: Any
    probability: float
    interval: tuple[float, float]
    prior: float
    terms: dict[str, float]
    values: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; None in place of what is infinite."""
        columns = {c: {"value": self.values[c], "log_odds": _finite(term)} for c, term in self.terms.items()}
        return {
            "class": self.label,
            "probability": self.probability,
            "interval": list(self.interval),
            "prior_log_odds": _finite(self.prior),
            "columns": columns,
        }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def evidence(classifier, row, label=None) -> Evidence:
    """What each value of a row says for a class: with the value, less without it, shared out so that all add up.

    For two classes and naive Bayes the term of a column is its log Bayes factor, whatever the others are. Elsewhere the
    order of telling matters, since a column may say again what another said: each term is then the mean of two orders,
    the columns of the fit from first to last and from last to first, where a column is missing until it is told. The
    terms sum to the log odds exactly, also under a full covariance, where a column counts by its conditional density.
    A word in a bag of words counts 0 until it is told. The tosses of heads are given from the beginning, and add 0.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        One that takes missing values.
    row : DataFrame of one row, or array_like, shape (D,) or (1, D)
        The row.
    label : object, optional
        The class; default: the most probable.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier
    >>> X, y = [[0.0, 1.0], [0.2, 0.0], [1.0, 1.1], [1.2, 0.1]], ["a", "a", "b", "b"]
    >>> said = evidence(NaiveBayesClassifier().fit(X, y), [1.3, 0.5])
    >>> said.label, {column: round(term, 2) for column, term in said.terms.items()}
    ('b', {'x0': 6.07, 'x1': -0.01})
    """
    import pandas as pd

    check_is_fitted(classifier)
    names, labels = list(classifier.schema_.columns), classifier.classes_.tolist()
    if label is not None and label not in labels:
        raise ValueError(f"label must be one of {listed(labels)}, got {label!r}")
    if len(labels) < 2:
        raise ValueError("odds need two classes, and the classifier learned one only")
    given = frame_of(row)
    if given is None:
        frame = pd.DataFrame(np.asarray(row, dtype=object).reshape(1, -1)).infer_objects()
    else:
        frame = given.to_pandas()
    if frame.shape != (1, len(names)):
        raise ValueError(f"row must be one row of {len(names)} columns, got shape {frame.shape}")
    used = [column for block in classifier.schema_.blocks for column in block.columns]
    places = [names.index(column) for column in used]
    values = dict(zip(names, frame.iloc[0], strict=True))
    begun = {frame.columns[names.index(c)]: v for c, v in _begun(classifier.schema_.blocks, values).items()}

    def asked(rows):
        return rows.to_numpy() if given is None else rows

    def told(order):
        """Log odds of the row with more and more of its columns, from none to all."""
        unknown = np.ones((len(order) + 1, len(names)), dtype=bool)
        for count, place in enumerate(order, 1):
            unknown[count:, place] = False
        rows = frame.take(np.zeros(len(unknown), int)).reset_index(drop=True).mask(unknown)
        rows = rows.fillna(begun) if begun else rows
        return classifier.predict_log_proba(asked(rows))

    forwards, backwards = told(places), told(places[::-1])
    k = int(forwards[-1].argmax()) if label is None else labels.index(label)
    steps, back = (np.diff(log_odds(path)[:, k]) for path in (forwards, backwards))
    low, high = probability_interval(classifier, asked(frame))[0, k]
    return Evidence(
        labels[k],
        float(np.exp(forwards[-1, k])),
        (float(low), float(high)),
        float(log_odds(forwards)[0, k]),
        dict(zip(used, ((steps + back[::-1]) / 2).tolist(), strict=True)),
        {column: _plain(values[column], column, classifier.schema_.dates) for column in used},
    )


def _begun(blocks, values: dict[str, Any]) -> dict[str, Any]:
    """What stands in a column before it is told, where that is no gap: 0 of a word in a bag, and tosses."""
    begun = {}
    for block in blocks:
        if block.leaf == "multinomial" or isinstance(block.leaf, DirichletMultinomial):
            begun |= dict.fromkeys(block.columns, 0)
        elif isinstance(block.leaf, BetaBinomial) and not block.single:
            begun[block.columns[-1]] = values[block.columns[-1]]
    return {column: value for column, value in begun.items() if values[column] == values[column]}


def _plain(value, column: str, of_days):
    """A value as Python and JSON have it, None where missing; text of a column of dates."""
    import pandas as pd

    if pd.isna(value):
        return None
    if column in of_days:
        return dates.told(dates.days(np.asarray([value]), column)[0])
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float) else str(value)


def importance(classifier, X, y) -> "pd.DataFrame":
    r"""By how much the log loss of each row grows where a column is missing.

    .. math:: d_{ij} = \log p(t_i \mid x_i) - \log p(t_i \mid x_{i, -j})

    The column is integrated out, so nothing is fitted anew and nothing is shuffled. Naive Bayes without a column is
    also what it would be had it never been shown the column. A mean above 0 says that the column helps beside all the
    others. Of two columns that tell the same, either is worth little, since the other stays; and a column of naive
    Bayes may be worth less than nothing, where it counts again what others have told.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        One that takes missing values.
    X : DataFrame or array, shape (n, columns)
        Rows, best those that the fit did not see: on its own rows every column looks better than it is.
    y : array, shape (n,)
        Their classes.

    Returns
    -------
    DataFrame, shape (n, columns)
        A row for each row, in nats, with the columns that the classifier uses; a bag of words, and heads with their
        tosses, are missing together and stand under the name of their block. ``mean()`` is the importance, and
        ``sem()`` its standard error.

    Examples
    --------
    >>> from bayesgen import NaiveBayesClassifier, data
    >>> table = data.load("penguins")[["species", "bill_length_mm", "body_mass_g", "year"]]
    >>> y = table.pop("species")
    >>> classifier = NaiveBayesClassifier().fit(table[::2], y[::2])
    >>> importance(classifier, table[1::2], y[1::2]).mean().round(2).to_dict()
    {'bill_length_mm': 0.19, 'body_mass_g': -0.05, 'year': 0.0}
    """
    import pandas as pd

    check_is_fitted(classifier)
    table: Any = None if isinstance(X, pd.DataFrame) else frame_of(X)
    X = X if table is None else table.to_pandas()
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X), columns=classifier.schema_.columns)
    _, codes = class_codes(class_labels(y), classifier.classes_)
    if len(codes) != len(frame):
        raise ValueError(f"X has {len(frame)} rows, and y has {len(codes)}")
    at = np.arange(len(frame)), codes

    def log_probability(rows):
        return classifier.predict_log_proba(rows if isinstance(X, pd.DataFrame) else rows.to_numpy())[at]

    whole = log_probability(frame)
    worse = {}
    for name, columns in _parts(classifier):
        without = frame.copy(deep=False)
        for column in columns:
            without[column] = frame[column].mask(np.ones(len(frame), dtype=bool))
        worse[name] = whole - log_probability(without)
    return pd.DataFrame(worse, index=frame.index)


def _parts(classifier) -> list[tuple[str, tuple[str, ...]]]:
    """What is missing at a time, by name, in the order of the columns: each alone, but counts of one observation."""
    schema, leaves = classifier.schema_, getattr(getattr(classifier, "model_", None), "leaves", {})
    parts = []
    for block in schema.blocks:
        leaf = leaves.get(block.name)
        together = leaf is not None and leaf.event_dim and leaf.density_kind != "density"
        parts += [(block.name, block.columns)] if together else [(column, (column,)) for column in block.columns]
    place = {column: j for j, column in enumerate(schema.columns)}
    return sorted(parts, key=lambda part: place[part[1][0]])
