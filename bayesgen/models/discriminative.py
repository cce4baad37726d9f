"""What the regressions share: rows of columns that are never missing, names of columns, weights."""

import abc
from collections.abc import Mapping

import numpy as np

from bayesgen.model import Model
from bayesgen.numerics.checks import check_weight
from bayesgen.numerics.sums import finite


class Discriminative(Model):
    """A model of a target given its columns, p(t | x, params): it has nothing to say of x, so x must be complete.

    Parameters of a score a + x b are the sites ``intercept`` and ``coefficients``. `log_likelihood_rows` is a density
    of t, so the average over posterior draws is the plain average of p(t | x, params).
    """

    columns: tuple[str, ...]

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "columns", tuple(self.columns))
        if self.columns and len(self.columns) != self.features:
            raise ValueError(f"{type(self).__name__}: {len(self.columns)} names for {self.features} columns")

    @property
    @abc.abstractmethod
    def features(self) -> int:
        """Number of columns D."""

    def check_columns(self, x, weight=None) -> np.ndarray:
        """Return the rows as floats (n, D), or raise what is wrong with them."""
        x = np.asanyarray(x)  # masked entries stay masked
        if x.ndim != 2 or x.shape[1] != self.features:
            owner = type(self).__name__
            raise ValueError(f"{owner}: expected rows of {self.features} columns, (n, {self.features}), got {x.shape}")
        return complete(x, self.columns, weight)

    def check_rows(self, x, t, weight) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return columns, target and weight of the rows that exist: those whose weight is not 0."""
        if np.ma.is_masked(t):
            raise ValueError("the target has masked entries; drop these rows")
        t = np.asarray(t)
        weight = check_weight(weight, len(t))
        w = np.ones(len(t)) if weight is None else weight
        if np.shape(x)[:1] != t.shape:
            raise ValueError(f"t must hold one value for each of the {len(x)} rows, got shape {t.shape}")
        x = self.check_columns(x, w)
        seen = slice(None) if w.all() else w > 0
        return x[seen], t[seen], w[seen]

    def dims(self, site: str) -> tuple[str, ...]:
        """Names of the axes of a site, behind those of the draws."""
        return ("feature",) if site == "coefficients" else ()

    def coords(self) -> dict[str, list]:
        """Labels along the axes that `dims` names, where they are known."""
        return {"feature": list(self.columns)} if self.columns else {}


def complete(x, columns, weight=None) -> np.ndarray:
    """Return rows (n, D) as floats, or raise where one (whose weight is not 0) is not a finite number."""
    try:
        x = np.asarray(np.ma.filled(x.astype(float), np.nan) if np.ma.is_masked(x) else x, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"the columns must be numbers, got {np.asarray(x).dtype} values") from None
    if finite(x):
        return x
    bad = ~np.isfinite(x) if weight is None else ~np.isfinite(x) & (weight > 0)[:, None]
    if bad.any():
        row, column = np.argwhere(bad)[0]
        kind = "NaN: missing" if np.isnan(x[row, column]) else "infinite (inf)"
        name = repr(columns[column]) if columns else column
        raise ValueError(
            f"column {name}: the value in row {row} is {kind}; a discriminative model has no distribution of the "
            "columns to fill it from: impute it, drop the row, or use a generative classifier"
        )
    return x


def scores(params: Mapping, x) -> np.ndarray:
    """Scores a + x b for every draw: params (lead..., D), (lead...) and x (n, D) give (lead..., n), by one product."""
    coefficients, intercept = params["coefficients"], params["intercept"]
    product = coefficients.reshape(-1, x.shape[1]) @ x.T
    return product.reshape(*intercept.shape, len(x)) + intercept[..., None]
