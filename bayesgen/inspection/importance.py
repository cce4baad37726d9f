"""What each column is worth to a classifier: how much worse it predicts labelled rows where the column is missing."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.tables.columns import frame_of
from bayesgen.tables.labels import class_codes, class_labels

if TYPE_CHECKING:
    import pandas as pd


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
