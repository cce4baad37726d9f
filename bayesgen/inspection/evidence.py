"""What each value of one row does to the odds of a class: log odds that add up, as a doctor would read them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.inspection.probabilities import log_odds, probability_interval
from bayesgen.messages import listed
from bayesgen.models.beta_binomial import BetaBinomial
from bayesgen.models.dirichlet_multinomial import DirichletMultinomial
from bayesgen.tables import dates
from bayesgen.tables.columns import frame_of


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
