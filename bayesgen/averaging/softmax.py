r"""Softmax members: penalised regressions on all columns, where no generative member fits.

Let z hold the standardised bent columns and an indicator of each category, 0 where missing. With coefficients b_k of
prior N(0, C) and intercepts a_k of prior N(0, 100),

.. math:: p(k \mid x) \propto e^{a_k + b_k^\top z}, \qquad
   f_k(x) = \log p(k \mid x) - \log \pi_k

where π are the class frequencies of the rows it was learned from. f takes the place of log p(x | k), so the member is
tempered and combined with class priors like all others. It is learned from rows, so rows are left out by folds. It has
no density of x, and takes no part where one is needed.

It is the mode of `LogisticRegression` with the same prior. The penalty is the same for all classes, so Σ_k b_k = 0 at
the mode, and of two classes b_1 = -b_0 = b/2: a logistic regression, whose mode Newton's method finds in a fifth of the
time of L-BFGS. For more classes it takes 7 to 14 times as long as L-BFGS where classes times columns are hundreds
(digits, splice).

Where columns are more than rows the search moves in coordinates of the span of the rows, in which b_k lies as the
penalty is the same in all directions of z.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from bayesgen.averaging.member import FittedMembers, Member, Written, bent_entries
from bayesgen.averaging.member_rows import Rows, indicated, log_frequencies, without_entries
from bayesgen.averaging.view import WIDE
from bayesgen.core.shapes import require_fit, shaped
from bayesgen.numerics.newton import CLOSE, minimise
from bayesgen.numerics.yeo_johnson import YeoJohnson, far_rows

_FARTHEST = 1e250  # largest entry: its products with coefficients stay within float64, and hide those of near entries
_RANK = 1e-12  # share of the largest square below which a direction is none
_CELLS = 10_000_000  # rows times coefficients, at most: 100,000 rows of 30 columns and 3 classes
_NEWTON = 200  # coefficients of two classes up to which Newton's method is the faster, and columns to dense products
_SPARSE = 0.1  # share of entries that are not 0 below which products with a sparse matrix are the faster
_ENOUGH = 50  # rows a class from which on the strengths between others gain nothing
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)  # C, the prior variance of a coefficient


@dataclass(frozen=True, eq=False)
class SoftmaxMember(Member):
    """A softmax regression."""

    mass: ClassVar = 2.0  # smooth models of t given x, which no other family is

    strength: float  # C, the prior variance of a coefficient

    @property
    def family(self) -> str:
        return "softmax"

    @classmethod
    def propose(cls, rows: Rows, setting):
        """Propose five strengths, and three where rows are enough to choose between them."""
        return [tuple(map(cls, STRENGTHS if rows.worth < _ENOUGH * rows.classes else STRENGTHS[::2]))]

    @classmethod
    def fit(cls, groups, training):
        return [LogisticMembers.of(group, training) for group in groups]

    @classmethod
    def most_rows(cls, rows):
        """Return the number of rows that keeps rows times coefficients within a bound."""
        each = len(rows.levels) if _mostly_zeros(rows.x.shape[1], rows.levels) else sum(rows.levels)
        columns = rows.x.shape[1] + each  # products skip zeros
        width = rows.classes * (1 + (min(columns, len(rows)) if columns > WIDE else columns))
        return _CELLS // width


@dataclass(frozen=True, eq=False)
class LogisticMembers(FittedMembers):
    """Softmax regressions, one of each strength."""

    members: tuple[SoftmaxMember, ...]  # the strengths
    warp: YeoJohnson  # the transformation of the numeric columns
    centre: np.ndarray = field(metadata=shaped("columns"))  # mean and standard deviation of the bent columns
    scale: np.ndarray = field(metadata=shaped("columns"))
    # categories of each categorical column
    levels: np.ndarray = field(metadata=shaped("categories", same="levels of each"))
    coefficients: np.ndarray = field(metadata=shaped("strengths classes 1+columns+levels"))  # the intercept first
    log_prior: np.ndarray = field(metadata=shaped("classes"))  # log class frequencies

    @classmethod
    def of(cls, members, training) -> "LogisticMembers":
        """Learn from the rows of a training, each strength from the one before."""
        rows, warp, y = training.rows, training.warp, training.bent
        codes, classes, weight, seen = rows.codes, rows.classes, rows.weight, ~np.isnan(rows.x)
        w = np.where(seen, weight[:, None], 0.0)
        total = np.maximum(w.sum(0), 1e-300)
        centre = (w * np.where(seen, y, 0.0)).sum(0) / total
        variance = (w * np.where(seen, y - centre, 0.0) ** 2).sum(0) / total
        scale = np.where(variance > 1e-14, np.sqrt(variance), 1.0)
        log_prior = log_frequencies(codes, weight, classes)
        self = cls(members, warp, centre, scale, np.asarray(rows.levels, int), np.empty(0), log_prior)
        z = self._columns(rows.x, rows.c)
        back: Any = None
        if z.shape[1] - 1 > max(WIDE, len(rows)) and not sparse.issparse(z):
            z, back = _span(z)
        found, start = [], np.zeros((classes, z.shape[1]))
        for member in members:
            start = _fit(z, codes, weight, member.strength, start)
            found.append(start if back is None else np.column_stack([start[:, 0], start[:, 1:] @ back]))
        return replace(self, coefficients=np.stack(found))

    def fits(self, sizes):
        """Require a regression of each strength; see `check_shapes`."""
        right = len(self.coefficients) == len(self.members) and all(member.strength > 0 for member in self.members)
        require_fit(right, "a softmax member is none")
        return sizes

    def written(self, numbers, categories):
        said = {
            "kind": "softmax",
            "columns": [*bent_entries(numbers, self.warp), *categories],
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "sizes": [0] * len(numbers) + self.levels.tolist(),
            "weights": self.coefficients,
            "log_prior": self.log_prior.tolist(),
            "groups": self.coefficients[..., 0].size,
        }
        return [Written(said, np.arange(len(self.members)))]

    def log_density(self, x, c, used) -> np.ndarray:
        b = self.coefficients[used]
        score = self._columns(x, c) @ b.reshape(-1, b.shape[2]).T
        result = log_softmax(np.moveaxis(score.reshape(-1, *b.shape[:2]), 1, 0), axis=2) - self.log_prior
        result[:, without_entries(x, c)] = 0.0
        return result

    def _columns(self, x, c) -> Any:
        """Return a column of ones, the standardised columns and the indicators, (n, P), sparse if these are many."""
        z = (self.warp.forward(x) - self.centre) / self.scale
        z = np.where(np.isnan(z), 0.0, z)
        far = far_rows(z)
        if len(far):
            z[far] = self._drawn_in(x[far])
        dense = np.concatenate([np.ones((len(x), 1)), z], axis=1)
        if _mostly_zeros(x.shape[1], self.levels):
            return sparse.hstack([sparse.csr_array(dense), indicated(c, self.levels)], format="csr")
        return np.concatenate([dense, *(c[:, j, None] == np.arange(n) for j, n in enumerate(self.levels))], axis=1)

    def _drawn_in(self, x):
        """Return the standardised columns of far rows, scaled down to `_FARTHEST` if beyond: one class has all."""
        sign, size = self.warp.polar(x)
        size -= np.log(self.scale)
        size[:, ~self.coefficients[:, :, 1 : 1 + x.shape[1]].any((0, 1))] = -np.inf  # no effect, however far
        return sign * np.exp(size - np.maximum(size.max(1, keepdims=True) - np.log(_FARTHEST), 0.0))


def _mostly_zeros(dim: int, levels) -> bool:
    """Return True if so many numbers and levels of categories make many columns, most of which are 0 in a row."""
    columns = 1 + dim + sum(levels)
    return columns > _NEWTON and 1 + dim + len(levels) < _SPARSE * columns


def _span(z):
    """Return rows (n, 1 + P) in coordinates of the span of their columns but the first, and its basis, (r, P)."""
    columns = z[:, 1:]
    squares, vectors = np.linalg.eigh(columns @ columns.T)
    kept = squares > _RANK * squares[-1]
    root = np.sqrt(squares[kept])
    return np.column_stack([z[:, 0], vectors[:, kept] * root]), (vectors[:, kept] / root).T @ columns


def _fit(z, codes, weight, strength, start):
    penalty = np.full(z.shape[1], 1 / strength)
    penalty[0] = 0.01
    if len(start) == 2 and z.shape[1] <= _NEWTON:
        half = _half_of_two(z, codes, weight, penalty, start[1])
        return np.stack([-half, half])
    truth = np.zeros((len(codes), len(start)))
    truth[np.arange(len(codes)), codes] = weight

    def loss(free):
        b = free.reshape(start.shape)
        log_p = log_softmax(z @ b.T, axis=1)
        slope = (weight[:, None] * np.exp(log_p) - truth).T @ z + b * penalty
        return 0.5 * (b * b * penalty).sum() - (truth * log_p).sum(), slope.ravel()

    scale = {"maxiter": 300, "ftol": 1e-10, "gtol": 1e-5}
    return minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=scale).x.reshape(start.shape)


def _half_of_two(z, codes, weight, penalty, start):
    """Return the coefficients of the second of two classes, (P,); those of the first are their negative."""
    signed = z * np.where(codes == 1, 2.0, -2.0)[:, None]  # a row gets the log odds signed @ b of its class

    def loss(b, derivatives=False):
        odds = signed @ b
        value = float(weight @ np.logaddexp(0.0, -odds) + penalty @ (b * b))
        if not derivatives:
            return value
        wrong = expit(-odds)
        hessian = signed.T @ (signed * (weight * wrong * (1 - wrong))[:, None])
        hessian[np.diag_indices(len(b))] += 2 * penalty
        return value, 2 * penalty * b - (weight * wrong) @ signed, hessian

    return minimise(loss, start, tolerance=CLOSE)[0]
