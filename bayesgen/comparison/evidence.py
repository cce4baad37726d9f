"""Comparison of models by evidence: the posterior probabilities of fitted classifiers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesgen.inspection.leave_one_out import by_column, different_rows


@np.errstate(under="ignore")
def compare_evidence(classifiers: Mapping[Any, Any], prior: ArrayLike | None = None) -> pd.DataFrame:
    """Return the posterior probabilities of fitted classifiers as models of the same rows and classes.

    p(model | data) is proportional to p(model) p(X, y | model). Covariance structures, priors and kinds of features can
    be compared exactly if p(x) has the same meaning for every column: counts may be Poisson or categorical, but a
    probability is not comparable with a density, nor with a probability given the total of a bag of words. Under "weak"
    priors, which follow the data, the evidence is an empirical Bayes quantity. Logistic and probit classifiers are
    compared among themselves by p(y | X, model), on any columns of the same rows.

    Parameters
    ----------
    classifiers : mapping from name to fitted classifier
        Classifiers with conjugate priors, or with ``inference="laplace"``, which estimates evidences; all fitted to the
        same rows.
    prior : array_like, shape (models,), optional
        Prior probabilities of the models; default: all equal.

    Returns
    -------
    DataFrame
        Rows by name, the most probable first; columns "log_evidence", "probability", and "log_bayes_factor" against
        the first.

    Raises
    ------
    ValueError
        If classes, rows by class or columns differ, if a column's p(x) is of another kind, or if counts, means or sums
        of squares of a column show that the rows differ: rescaled, say, or with other gaps.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {name: GaussianDiscriminantClassifier(name).fit(X, y) for name in ("full", "diagonal", "isotropic")}
    >>> compare_evidence(models)["probability"].round(3).to_dict()
    {'full': 1.0, 'diagonal': 0.0, 'isotropic': 0.0}
    """
    if not isinstance(classifiers, Mapping) or not classifiers:
        raise ValueError("classifiers must be a mapping from name to fitted classifier, of one or more")
    log_evidence = np.array([classifier.log_evidence_ for classifier in classifiers.values()])
    (first, *others) = described = {name: _description(c) for name, c in classifiers.items()}
    for name in others:
        pairs = [(what, described[first].get(what), other) for what, other in described[name].items()]
        problems = [f"they differ in {what}, {one} against {other}" for what, one, other in pairs if one != other]
        if not problems and (rows := _different_rows(classifiers[first], classifiers[name])):
            problems = [f"they are of different rows; {rows}"]
        if problems:
            raise ValueError(f"the evidences of {first!r} and {name!r} do not compare: {problems[0]}")
    weights = np.ones(len(log_evidence)) if prior is None else np.asarray(prior, float)
    if weights.shape != log_evidence.shape or not (weights >= 0).all() or not weights.sum() > 0:
        raise ValueError(f"prior must hold one number >= 0 for each of the {len(log_evidence)} models")
    with np.errstate(divide="ignore"):
        log_joint = log_evidence + np.log(weights / weights.sum())
    probability = np.exp(log_joint - np.logaddexp.reduce(log_joint))
    table = pd.DataFrame({"log_evidence": log_evidence, "probability": probability}, index=list(classifiers))
    table = table.iloc[np.argsort(-log_joint, kind="stable")]
    return table.assign(log_bayes_factor=table["log_evidence"] - table["log_evidence"].iloc[0])


def _different_rows(one, other) -> str | None:
    """Return a text that shows that two classifiers were fitted to different rows, or None."""
    if hasattr(one, "score_samples"):
        return different_rows(*(by_column(c.schema_, c.model_, c.statistics_) for c in (one, other)))
    same_classes = np.array_equal(one.statistics_.data["t"], other.statistics_.data["t"])
    return None if same_classes else "their classes come in another order"


def _description(classifier) -> dict[str, Any]:
    """Return the properties that must agree between classifiers whose evidences are compared."""
    modelled = "the modelled variables"
    if not hasattr(classifier, "score_samples"):
        rows = classifier.statistics_.data
        counts = np.bincount(rows["t"], rows["weight"], len(classifier.classes_))
        by_class = dict(zip(classifier.classes_.tolist(), counts.tolist(), strict=True))
        return {modelled: "the classes given the columns", "the rows by class": by_class}
    counts = dict(zip(classifier.classes_.tolist(), classifier.statistics_.classes.sums.tolist(), strict=True))
    leaves, blocks = classifier.model_.leaves, classifier.schema_.block_of
    columns = {f"column {column!r}": leaves[block.name].density_kind for column, block in blocks.items()}
    whole = {modelled: "the columns and the classes", "the rows by class": counts, "the columns": sorted(columns)}
    return whole | columns
