r"""Pairs of columns that remain dependent within the classes that nobody named.

The model says that columns are independent within a class. For columns j and l with features φ, the indicators of the
values of a column, or a number less its mean, the products that were observed and those that the model expects are

.. math:: O = \sum_i \phi_j(x_{ij}) \phi_l(x_{il})^\top, \qquad E = n \sum_k \pi_k \mu_{jk} \mu_{lk}^\top, \qquad
   \chi^2 = \sum_{ab} \frac{(O_{ab} - E_{ab})^2}{n \sum_k \pi_k \nu_{jka} \nu_{lkb}}

with μ and ν the means of φ and φ² in class k, over the n rows that have both. For categories this is Pearson's χ² of
the table of two columns; divided by (V_j - 1)(V_l - 1), a number counting as two values, it is the bivariate residual
of Vermunt and Magidson (2005, *Technical Guide for Latent GOLD*). A value far above 1 tells of a pair that the classes
do not explain.

It has no χ² distribution, since the classes are fitted to the same rows. So tables are drawn from the model, each is
fitted again, and p = (1 + tables whose residual is as large)/(1 + tables). Of a point estimate they come from
that point (the parametric bootstrap); of draws each comes from another draw of the posterior, so that what is not known
of the parameters counts too.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import NoClosedForm, listed
from bayesgen.models import UnknownClasses
from bayesgen.models.beside_constants import varying
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.numerics.checks import check_count


def bivariate_residuals(classifier, tables: int = 99, seed: int = 0) -> pd.DataFrame:
    """Return how far each pair of columns is from independence within a class, the clearest dependence first.

    Parameters
    ----------
    classifier : fitted LatentClassClassifier
        Two classes or more, no row with a label or a weight; columns of categories, numbers and counts.
    tables : int, default 99
        Number of tables that are drawn and fitted for the p-values.
    seed : int, default 0

    Returns
    -------
    DataFrame, index (column, column)
        "residual": χ² by its degrees of freedom; "p": how often a table of independent columns has as large a one. Each
        p is of its pair alone: of 20 pairs one is below .05 by chance.

    Raises
    ------
    ValueError
        If the classifier models the dependence, or has other columns, or rows with labels or weights.

    Examples
    --------
    >>> from bayesgen import LatentClassClassifier
    >>> rng = np.random.default_rng(0)
    >>> t = rng.random(200) < 0.5
    >>> X = rng.random((200, 6)) < np.where(t, 0.9, 0.2)[:, None]
    >>> X[:, 3] = np.where(rng.random(200) < 0.5, X[:, 2], X[:, 3])  # half of them copy the answer before
    >>> fitted = LatentClassClassifier(classes=2, starts=5, random_state=0).fit(X)
    >>> bivariate_residuals(fitted, tables=19).index[0]
    ('x2', 'x3')
    """
    check_is_fitted(classifier)
    check_count("tables", tables)
    statistics = classifier.statistics_
    if not isinstance(statistics, PartlyLabelled) or statistics.classes.total().any() or (statistics.weight != 1).any():
        raise ValueError("bivariate_residuals() is for two classes or more, of rows without labels and weights")
    model, rng, names = classifier.model_, np.random.default_rng(seed), []
    draws: Any = classifier.posterior_.draws(rng, (tables,))
    for block in classifier.schema_.blocks:
        leaf, columns = varying(model.leaves[block.name], block.columns)
        if not _apart(leaf, {site: v[0] for site, v in model.site(draws, block.name).items()}):
            kind = type(leaf).__name__
            raise ValueError(f"columns {listed(block.columns)}: bivariate_residuals() is not for a {kind}")
        names += columns
    unknown, point = UnknownClasses(model), classifier.posterior_.kind == "point"
    first, places = np.triu_indices(len(names), 1)

    def residuals(kept):
        params = unknown.map(kept)
        return _residuals(model, params, kept.rows)[first, places]

    found, exceeded = residuals(statistics), np.zeros(len(first))
    gaps = {name: np.isnan(rows) for name, rows in statistics.rows.items()}
    codes = np.full(len(statistics.weight), -1)
    for place in range(tables):
        params = {site: np.asarray(value[place]) for site, value in draws.items()}
        _, rows = model.sample_rows({s: np.broadcast_to(v, (len(codes), *v.shape)) for s, v in params.items()}, rng)
        kept = unknown.statistics({name: np.where(gaps[name], np.nan, drawn) for name, drawn in rows.items()}, codes)
        kept = replace(kept, start=unknown.labels(params, kept))
        exceeded += residuals(kept) >= found - 1e-9  # a pair that fits exactly has rounding left
    index = pd.MultiIndex.from_tuples([(names[a], names[b]) for a, b in zip(first, places, strict=True)])
    table = pd.DataFrame({"residual": found, "p": (1 + exceeded) / (1 + tables)}, index)
    table.attrs["tables"] = f"{tables} tables from {'the point estimate' if point else 'draws of the posterior'}"
    return table.sort_values(["p", "residual"], ascending=[True, False], kind="stable")


def _apart(leaf, params) -> bool:
    """Return True if columns are independent, given the parameters: lists of values, counts or Gaussians."""
    try:
        said = leaf.written(params)
    except NoClosedForm:
        return False
    return said["kind"] in ("list", "count", "gaussian") and bool(np.isinf(said.get("dof", np.inf)).all())


def _residuals(model, params, rows) -> np.ndarray:
    """Return the residual of each pair of columns, (columns, columns), from rows by leaf."""
    share, parts = params[f"{model.CLASSES}.probability"], []
    for name, whole in model.leaves.items():
        x = rows[name].reshape(len(rows[name]), -1)
        leaf, kept = varying(whole, tuple(range(x.shape[1])))
        said = leaf.written(model.site(params, name))
        parts += [_features(said, place, share, x[:, column]) for place, column in enumerate(kept)]
    features, means, squares = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    widths = np.array([part[0].shape[1] for part in parts])
    seen, starts = ~np.isnan(features), np.cumsum(widths) - widths
    both, known = seen.T.astype(float) @ seen, np.where(seen, features, 0.0)
    apart = known.T @ known - both * ((share[:, None] * means).T @ means)
    scale = both * ((share[:, None] * squares).T @ squares)
    square = np.divide(apart**2, scale, out=np.zeros_like(scale), where=scale > 0)
    total = np.add.reduceat(np.add.reduceat(square, starts, axis=0), starts, axis=1)
    free = np.maximum(widths - 1, 1)
    return total / (free[:, None] * free)


def _features(said, place: int, share, x):
    """Return φ (n, V), NaN where missing, and the means of φ and φ² by class, (K, V), of the column at a place."""
    if said["kind"] == "list":
        chance = said["mass"].reshape(len(share), -1, said["mass"].shape[-1])[:, place]
        return np.where(np.isnan(x)[:, None], np.nan, x[:, None] == np.arange(chance.shape[1])), chance, chance
    moments = (said["mean"], said["mean"]) if said["kind"] == "count" else (said["location"], said["scale"] ** 2)
    mean, variance = (v.reshape(len(share), -1)[:, [place]] for v in moments)
    x = np.log(x + said["shift"]) if "shift" in said else x
    apart = mean - (middle := share @ mean)
    return x[:, None] - middle, apart, variance + apart**2
