"""Leave-one-out of the classes given the columns, from ArviZ's weights for whole rows."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp


def loo_given_x(data):
    """Estimate the expected log predictive density of classes given columns, row by row left out.

    A row that is left out takes its columns with it, so the weights of the draws are those of the joint density, which
    ArviZ smooths (PSIS), and the estimate is the log of Σ w p(x_i, t_i | θ) / Σ w p(x_i | θ): both are averaged before
    one is divided by the other, as ``predict_proba`` does. Of a discriminative model it is ``arviz_stats.loo``. So the
    two kinds of model compare: ``arviz_stats.compare`` takes what this returns.

    Parameters
    ----------
    data : DataTree
        What ``to_arviz(X, y)`` of a classifier returned.

    Returns
    -------
    arviz_stats.ELPDData
        With its values by row; the k of Pareto, and so the warnings, are those of the joint.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier(random_state=0).fit(X, y)
    >>> estimate = loo_given_x(classifier.to_arviz(X, y)).elpd
    >>> bool(abs(estimate - classifier.leave_one_out(X, y).conditional.sum()) < 0.5)
    True
    """
    from arviz_stats import loo  # pyright: ignore[reportPrivateImportUsage]

    whole: Any = loo(data, pointwise=True)
    if "conditional_log_likelihood" not in data.children:
        return whole
    joint = data["log_likelihood"]["joint"]
    columns = joint - data["conditional_log_likelihood"]["t"]

    def flat(values):
        return values.transpose("chain", "draw", "obs").values.reshape(-1, values.sizes["obs"])

    def average(density, weight) -> np.ndarray:
        return np.asarray(logsumexp(weight + flat(density), axis=0))

    weight = flat(whole.log_weights)
    rows = average(joint, weight) - average(columns, weight)
    fitted = average(joint, 0.0) - average(columns, 0.0)
    elpd, spread = float(rows.sum()), float(np.sqrt(len(rows) * rows.var()))
    return replace(whole, elpd=elpd, se=spread, p=float(fitted.sum()) - elpd, elpd_i=whole.elpd_i.copy(data=rows))
