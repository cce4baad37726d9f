r"""Pairs of columns that remain dependent within the classes that nobody named.

The model says that columns are independent within a class. For columns j and l with features φ, the indicators of the
values of a column, or a number less its mean, the products of the rows and those that the model expects are

.. math:: O = \sum_i \mathrm{E}[\phi_j \phi_l^\top \mid x_{i,\mathrm{obs}}] = \sum_{ik} r_{ik} \hat\phi_{ijk}
   \hat\phi_{ilk}^\top, \qquad E = n \sum_k \pi_k \mu_{jk} \mu_{lk}^\top, \qquad
   \chi^2 = \sum_{ab} \frac{(O_{ab} - E_{ab})^2}{m \sum_k \pi_k \nu_{jka} \nu_{lkb}}

with μ and ν the means of φ and φ² in class k, r_ik the probability of the class given all that the row has, and
:math:`\hat\phi_{ijk}` the feature of an entry that was observed, else its mean μ_jk: what a row lacks is counted by its
probability given what the row has. So O has the mean E where gaps depend on values that were observed (missing at
random: Rubin 1976, *Biometrika* 63), which the products of complete pairs have not. m rows have both entries. For
categories without gaps χ² is Pearson's of the table of two columns; divided by (V_j - 1)(V_l - 1), a number counting as
two values, it is the bivariate residual of Vermunt and Magidson (2005, *Technical Guide for Latent GOLD*). A value far
above 1 tells of a pair that the classes do not explain.

It has no χ² distribution, since the classes are fitted to the same rows. So tables are drawn from the model, each is
fitted again, and p = (1 + tables whose residual is as large)/(1 + tables). Of a point estimate they come from
that point (the parametric bootstrap); else each comes from another draw of the posterior, so that what is not known
of the parameters counts too. Drawn tables have gaps that depend on drawn values as those of the rows do on theirs: the
gaps of a column follow a logistic regression on the columns that have fewer, on their values and gaps.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayesgen.core.errors import NoClosedForm, listed
from bayesgen.core.registry import fitted_of
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
    classifier = fitted_of(classifier)
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
        params = unknown.near_mode(kept)
        return _residuals(model, params, kept.rows, unknown.labels(params, kept))[first, places]

    found, exceeded, gaps = residuals(statistics), np.zeros(len(first)), _Gaps(statistics.rows, model)
    codes = np.full(len(statistics.weight), -1)
    for place in range(tables):
        params = {site: np.asarray(value[place]) for site, value in draws.items()}
        _, rows = model.sample_rows({s: np.broadcast_to(v, (len(codes), *v.shape)) for s, v in params.items()}, rng)
        kept = unknown.statistics(gaps.made(rows, rng), codes)
        kept = replace(kept, start=unknown.labels(params, kept))
        exceeded += residuals(kept) >= found - 1e-9  # a pair that fits exactly has rounding left
    index = pd.MultiIndex.from_tuples([(names[a], names[b]) for a, b in zip(first, places, strict=True)])
    table = pd.DataFrame({"residual": found, "p": (1 + exceeded) / (1 + tables)}, index)
    table.attrs["tables"] = f"{tables} tables from {'the point estimate' if point else 'draws of the posterior'}"
    return table.sort_values(["p", "residual"], ascending=[True, False], kind="stable")


def _apart(leaf, params) -> bool:
    """Return True if columns are independent, given the parameters: lists of values, counts or Gaussians."""
    try:
        said = leaf.density(params)
    except NoClosedForm:
        return False
    return said.kind in ("list", "count", "gaussian") and bool(np.isinf(getattr(said, "dof", np.inf)).all())


class _Gaps:
    """Model the gaps of columns by those that have fewer: a logistic regression of each."""

    def __init__(self, rows, model):
        from sklearn.linear_model import LogisticRegression

        self.categories = {name: leaf.cardinality(0) for name, leaf in model.leaves.items()}
        missing = {(name, j): gone for name, x in rows.items() for j, gone in enumerate(np.isnan(_flat(x)).T)}
        numbers = {name: _flat(x) for name, x in rows.items() if self.categories[name] is None}
        self.middle = {name: np.nan_to_num(np.nanmean(x, axis=0)) for name, x in numbers.items()}
        self.spread = {name: np.nan_to_num(np.nanstd(x, axis=0)) for name, x in numbers.items()}
        order = sorted(missing, key=lambda place: missing[place].sum())
        self.whole = [place for place in order if not missing[place].any()]
        self.models, taken = {}, [self._features(rows, place, missing[place]) for place in self.whole]
        for place in order[len(self.whole) :]:
            gone = missing[place]
            known = np.concatenate([np.zeros((len(gone), 1)), *taken], axis=1)
            self.models[place] = gone.mean() if gone.all() else LogisticRegression(max_iter=1000).fit(known, gone)
            taken.append(self._features(rows, place, gone))

    def made(self, rows, rng) -> dict[str, np.ndarray]:
        """Return drawn rows with gaps."""
        result = {name: np.array(x, float) for name, x in rows.items()}
        count, nowhere = len(next(iter(result.values()))), np.zeros(len(next(iter(result.values()))), bool)
        taken = [self._features(rows, place, nowhere) for place in self.whole]
        for place, model in self.models.items():
            known = np.concatenate([np.zeros((count, 1)), *taken], axis=1)
            gone = rng.random(count) < (model if isinstance(model, float) else model.predict_proba(known)[:, 1])
            taken.append(self._features(rows, place, gone))
            name, j = place
            result[name].reshape(count, -1)[gone, j] = np.nan
        return result

    def _features(self, rows, place, gone) -> np.ndarray:
        """Return a column as predictors: its categories or z and z², 0 where it is missing, and that it is."""
        name, j = place
        x, size = _flat(rows[name])[:, j], self.categories[name]
        if size is None:
            z = (x - self.middle[name][j]) / (self.spread[name][j] or 1.0)
            made = np.stack([z, z * z], axis=1)
        else:
            made = x[:, None] == np.arange(size)
        return np.concatenate([np.where(gone[:, None], 0.0, made), gone[:, None]], axis=1)


def _flat(x) -> np.ndarray:
    return np.asarray(x, float).reshape(len(x), -1)


def _residuals(model, params, rows, labels) -> np.ndarray:
    """Return the residual of each pair of columns, (columns, columns), from rows by leaf and memberships (n, K)."""
    share, parts = params[f"{model.CLASSES}.probability"], []
    for name, whole in model.leaves.items():
        x = _flat(rows[name])
        leaf, kept = varying(whole, tuple(range(x.shape[1])))
        said = leaf.density(model.site(params, name))
        parts += [_features(said, place, share, x[:, column]) for place, column in enumerate(kept)]
    features, means, squares = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    widths = np.array([part[0].shape[1] for part in parts])
    seen, starts = ~np.isnan(features), np.cumsum(widths) - widths
    both, found = seen.T.astype(float) @ seen, np.zeros((len(seen.T), len(seen.T)))
    for member, mean in zip(labels.T, means, strict=True):
        completed = np.where(seen, features, mean)
        found += (completed * member[:, None]).T @ completed
    apart = found - len(features) * ((share[:, None] * means).T @ means)
    scale = both * ((share[:, None] * squares).T @ squares)
    square = np.divide(apart**2, scale, out=np.zeros_like(scale), where=scale > 0)
    total = np.add.reduceat(np.add.reduceat(square, starts, axis=0), starts, axis=1)
    free = np.maximum(widths - 1, 1)
    return total / (free[:, None] * free)


def _features(said, place: int, share, x):
    """Return φ (n, V), NaN where missing, and the means of φ and φ² by class, (K, V), of the column at a place."""
    if said.kind == "list":
        chance = said.mass.reshape(len(share), -1, said.mass.shape[-1])[:, place]
        return np.where(np.isnan(x)[:, None], np.nan, x[:, None] == np.arange(chance.shape[1])), chance, chance
    moments = (said.mean, said.mean) if said.kind == "count" else (said.location, said.scale**2)
    mean, variance = (v.reshape(len(share), -1)[:, [place]] for v in moments)
    x = np.log(x + said.shift) if getattr(said, "shift", None) is not None else x
    apart = mean - (middle := share @ mean)
    return x[:, None] - middle, apart, variance + apart**2
