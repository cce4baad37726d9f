r"""Counts: a Poisson feature under a Gamma prior.

.. math:: \lambda \sim \mathrm{Gamma}(a, b), \qquad x_i \mid \lambda \sim \mathrm{Poisson}(\lambda), \;
   x_i \in \{0, 1, 2, \dots\}

After n rows with s events in all: posterior Gamma(a + s, b + n), whose mean (a + s) / (b + n) is in counts per row;
predictive negative binomial p(x) = Γ(a + x)/(Γ(a) x!) (b/(b + 1))^a (1/(b + 1))^x, wider than a Poisson of the same
mean; evidence of the sequence b^a/(b + n)^(a + s) Γ(a + s)/Γ(a) ∏ 1/x_i!; MAP (a + s - 1) / (b + n); ML s / n.
(Gelman et al. 2013, *Bayesian Data Analysis*, section 2.6.)
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse
from scipy.special import betaln, gammaln

from bayesgen import program
from bayesgen.model import LOG_ZERO, Conjugate, DataError, check_weight, first, hyperparameter, log_or_floor, over_rows
from bayesgen.statistics import (
    Sums,
    finite,
    grouping,
    membership,
    pieces,
    sparse_pieces,
    sparse_sum,
    weights_of,
    with_data,
)

_LEVELS = 8  # counts up to here are looked up, in a table of
_CELLS = 1 << 23  # at most so many cells, where that is more than one count


@dataclass(frozen=True, eq=False)
class GammaPoisson(Conjugate):
    """Poisson feature with a Gamma(concentration, rate) prior on its mean; ``params`` hold the "mean" count of a row.

    Parameters
    ----------
    concentration : float or array, shape (features...)
        Shape of the Gamma density: prior count of events, > 0.
    rate : float or array, shape (features...)
        Rate (inverse scale) of the Gamma density: the number of rows those events were seen in, > 0.

    Examples
    --------
    >>> prior = GammaPoisson(concentration=2, rate=1)
    >>> posterior = prior.update(prior.statistics([3, 5, 0]))
    >>> float(posterior.mean), float(posterior.mode()["mean"])
    (2.5, 2.25)
    """

    takes_sparse = True

    concentration: np.ndarray = hyperparameter(positive=True)
    rate: np.ndarray = hyperparameter(positive=True)

    measure = "probability"

    @classmethod
    def weak(cls, statistics) -> Self:
        """The default prior: Gamma(1, 1/m), m the pooled mean count; where no event was seen, as if one was."""
        rows, events = np.moveaxis(statistics.total().sum(0), -1, 0)
        return cls(np.ones_like(rows), np.maximum(rows, 1) / np.maximum(events, 1))

    def parameters(self):
        """Sample the mean count."""
        return {"mean": program.numpyro.sample("mean", program.dist.Gamma(self.concentration, self.rate))}

    def likelihood(self, params):
        """Poisson(mean)."""
        return program.dist.Poisson(params["mean"])

    def predictive(self):
        """Negative binomial, as a mixture of Poissons."""
        return program.dist.GammaPoisson(self.concentration, self.rate)

    @property
    def mean(self):
        """Mean of the mean count, concentration / rate."""
        return self.concentration / self.rate

    def T(self, x, about=0.0):
        """(1, x)."""
        return np.stack([np.ones(x.shape), x], axis=-1)

    def natural(self, params, about=0.0):
        """(-mean, log mean)."""
        mean = params["mean"]
        return mean.__array_namespace__().stack([-mean, log_or_floor(mean)], axis=-1)

    def log_base(self, x):
        """-log x!."""
        return -gammaln(x + 1.0)

    def check(self, x):
        """Entries are 0, 1, 2, ..., or NaN where missing."""
        x = super().check(x)
        self._require(x, whole, "is not a count: a Poisson feature is a whole number >= 0")
        return x

    def statistics(self, x, group=None, groups=None, weight=None):
        """Sum rows, events and -log x! by group; see `ExponentialFamily.statistics`."""
        x = self.shaped(x)
        known = spectrum(x.data) if sparse.issparse(x) else None
        x = self.check(x) if known is None else x
        weight, (codes, count, lead) = check_weight(weight, x.shape[0]), grouping(x.shape[0], group, groups)
        features = x.shape[1:]
        seen = np.broadcast_to(weights_of(codes, count, weight)[:, None], (count, math.prod(features)))
        if sparse.issparse(x):
            if not finite(x.data):
                seen = seen - sparse_sum(missing(x), codes, count, weight)
            events = sparse_sum(positive(x), codes, count, weight)
            base = sum(
                log_factorials(x[piece], None if weight is None else weight[piece]) for piece in sparse_pieces(x)
            )
        else:
            base, events = 0.0, np.zeros(seen.shape)
            for piece in pieces(len(x), len(events[0])):
                part, w = x[piece].reshape(-1, len(events[0])), None if weight is None else weight[piece]
                member = membership(codes[piece], count, w)
                if not finite(part):
                    seen = seen - member @ np.isnan(part).astype(float)
                    part = np.nan_to_num(part)
                events += member @ part.astype(float)
                base += log_factorials(part, w)
        sums = np.stack([np.maximum(seen, 0.0), events], axis=-1)
        return Sums(sums.reshape(*lead, *features, 2), np.float64(-base))

    def log_likelihood_rows(self, params, x):
        """Log p(row | params); see `ExponentialFamily.log_likelihood_rows`."""
        if not sparse.issparse(x):
            return super().log_likelihood_rows(params, x)
        eta, counts, gaps = self.natural(params), positive(x), missing(x)
        lead = eta.shape[: max(eta.ndim - 2, 0)]
        none, slope = np.moveaxis(np.broadcast_to(eta, (*lead, x.shape[1], 2)).reshape(-1, x.shape[1], 2), -1, 0)
        result = (counts @ slope.T - gaps @ none.T).T + none.sum(1)[:, None]
        result -= with_data(counts, log_factorial(counts.data)).sum(1)
        result[result < LOG_ZERO / 2] = -np.inf
        return result.reshape(*lead, x.shape[0])

    def update(self, statistics):
        """Add events and rows."""
        rows, events = np.moveaxis(statistics.total(), -1, 0)
        return GammaPoisson(self.concentration + events, self.rate + rows)

    def log_evidence(self, statistics):
        """Log of b^a/(b + n)^(a + s) Γ(a + s)/Γ(a) ∏ 1/x_i!."""
        p = self.update(statistics)
        terms = (
            gammaln(p.concentration)
            - gammaln(self.concentration)
            + self.concentration * np.log(self.rate)
            - p.concentration * np.log(p.rate)
        )
        return float(terms.sum() + statistics.base)

    def log_predictive(self, x):
        """Log probability of the negative binomial: what is linear in x as a matrix product, the gammas where x > 0."""
        x = self.check(x)
        groups = self.batch_shape[: max(len(self.batch_shape) - x.ndim + 1, 0)]
        a, b = (over_rows(v, groups, x) for v in (self.concentration, self.rate))
        none = (a * np.log1p(1 / b)).T
        result = np.empty((x.shape[0], len(a)))
        ways = log_ways(a, x, -np.log1p(b))
        for piece in rows_of(x):
            part = x[piece] if x.ndim == 2 else x[piece].reshape(-1, a.shape[1])
            result[piece] = ways(positive(part)) - none.sum(0)
            if not finite(part.data if sparse.issparse(part) else part):
                result[piece] += (missing(part) if sparse.issparse(part) else np.isnan(part)) @ none
        return result.reshape(x.shape[0], *groups)

    def mode(self):
        """(concentration - 1) / rate; none where the concentration is below 1."""
        bad = np.broadcast_to(self.concentration < 1, self.batch_shape)
        if bad.any():
            raise DataError(
                "the Gamma density has no mode where its concentration is below 1; use exact or NUTS, or a prior >= 1",
                **first(bad),
            )
        return {"mean": (self.concentration - 1) / self.rate}

    def ml(self, statistics):
        """Events per row; 0 is legitimate, no row at all is not."""
        rows, events = np.moveaxis(statistics.total(), -1, 0)
        if (rows == 0).any():
            raise DataError("maximum likelihood does not exist: no observed value", **first(rows == 0))
        return {"mean": events / rows}

    def draw(self, rng, size=()):
        """Exact Gamma draws."""
        return {"mean": rng.gamma(self.concentration, 1 / self.rate, (*size, *self.batch_shape))}


def whole(x):
    """Which entries are counts 0, 1, 2, ...."""
    return (x >= 0) & (x == np.floor(x)) if x.dtype.kind == "f" else x >= 0


def rows_of(x):
    """Slices of rows, dense or CSR."""
    return sparse_pieces(x) if sparse.issparse(x) else pieces(len(x), math.prod(x.shape[1:]))


def spectrum(counts):
    """How often each count below 4096 occurs in a vector; None where an entry is not such a count."""
    result = np.zeros(1 << 12, np.intp)
    for piece in pieces(len(counts), 1, rows=1 << 15):
        with np.errstate(invalid="ignore"):
            whole_part = counts[piece].astype(np.intp)
        right = whole_part.min() >= 0 and whole_part.max() < len(result)
        if not right or not (counts.dtype.kind != "f" or (whole_part == counts[piece]).all()):
            return None
        result += np.bincount(whole_part, minlength=len(result))
    return result


def log_factorials(x, weight=None):
    """Weighted sum of log x! over rows of counts, dense or CSR; NaN counts nothing."""
    values = log_factorial(np.nan_to_num(x.data if sparse.issparse(x) else x))
    if weight is None:
        return values.sum()
    return weight @ (with_data(x, values) if sparse.issparse(x) else values).sum(1)


def missing(x):
    """Where CSR rows hold a NaN, as ones in CSR."""
    if finite(x.data):
        return sparse.csr_array(x.shape)
    place = np.isnan(x.data)
    indptr = np.concatenate([[0], np.cumsum(place)])[x.indptr]
    return sparse.csr_array((np.ones(indptr[-1]), x.indices[place], indptr), shape=x.shape)


def log_ways(a, rows, slope=0.0):
    """Return a function of counts in CSR, all > 0: Σ log Γ(a + x)/(Γ(a) x!) + x slope over a row, (n, groups).

    Where there are many, counts up to 8 are looked up in a table of every column and count, (8 columns, groups): one
    sparse product, with the place in the table as column.

    Parameters
    ----------
    a, slope : array, shape (groups, columns)
        Hyperparameters.
    rows : array or CSR
        All the rows whose counts the function will be given.
    """
    groups, columns = a.shape
    values = rows.data if sparse.issparse(rows) else rows
    levels = 0
    if values.size * groups > a.size:
        levels = int(min(_LEVELS, np.fmax.reduce(values, axis=None, initial=0), max(1, _CELLS // a.size)))
    table, total = np.empty((levels, columns, groups)), np.zeros((columns, groups))
    for i in range(levels):
        total += np.log(a.T + i)
        total += np.transpose(slope) - np.log(i + 1)
        table[i] = total
    table, slope = table.reshape(-1, groups), np.broadcast_to(slope, a.shape)

    def ways(x):
        many = x.data > levels
        found, result = np.ones(x.nnz), np.zeros((x.shape[0], groups))
        if levels:
            place = x.data.astype(x.indices.dtype)
            place -= 1
            if many.any():
                place[many], found[many] = 0, 0.0
            place *= columns
            place += x.indices
            result += sparse.csr_array((found, place, x.indptr), (x.shape[0], len(table))) @ table
        if many.any():
            row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))[many]
            times, column = x.data[many], x.indices[many]
            for k in range(groups):
                terms = log_multichoose(a[k, column], times) + times * slope[k, column]
                result[:, k] += np.bincount(row, terms, x.shape[0])
        return result

    return ways


def log_factorial(x):
    """Log x! of every count; looked up where counts are small."""
    top = float(x.max(initial=0))  # of a uint8 255 + 2 would be 1
    if not top < 1 << 12:
        return gammaln(x + 1.0)
    return gammaln(np.arange(1.0, top + 2))[x.astype(np.intp)]


def positive(x):
    """Counts in CSR without what is missing or 0, which have no part in a sum of gammas; ``x`` dense or CSR."""
    rows = sparse.csr_array(x)
    if all((rows.data[piece] > 0).all() for piece in pieces(rows.nnz, 1)):
        return rows
    rows = with_data(rows, np.nan_to_num(rows.data)).copy()
    rows.eliminate_zeros()
    return rows


def log_multichoose(a, x):
    """Log of Γ(a + x)/(Γ(a) x!), the coefficient of every counting predictive; by B(a, x + 1), which cancels less."""
    return -np.log(a + x) - betaln(a, x + 1.0)
