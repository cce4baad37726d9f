"""Classes given the columns by a linear score: the rows that such a model keeps, their checks, and Newton's method."""

import abc
import functools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core.errors import DataError, listed
from bayesgen.core.program import is_abstract, static
from bayesgen.core.statistics import DistantRows, Rows
from bayesgen.models.linear_model import Discriminative, LineStatistics
from bayesgen.models.model import Hyperparameter, hyperparameter
from bayesgen.numerics.newton import CLOSE, TOLERANCE, check_rank, minimise

_LARGEST = 1e150  # largest entry: sums of its squares stay within float64
_SURE = 1e-12  # every row pulls harder than this at a stationary point: maximum likelihood exists


@dataclass(frozen=True, eq=False)
class RowClassifier(Discriminative):
    """Classes given the columns, with independent Normal priors of the coefficients; it keeps the rows."""

    prior_scale: Hyperparameter = hyperparameter(rank=1, positive=True)
    intercept_scale: Hyperparameter = hyperparameter(2.5, positive=True)
    classes: tuple = static(default=(0, 1), kw_only=True)
    columns: tuple[str, ...] = static(default=(), kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "classes", tuple(self.classes))
        if len(set(self.classes)) < max(len(self.classes), 2):
            raise ValueError(f"{type(self).__name__}: classes must be two or more distinct labels, got {self.classes}")
        for name in ("prior_scale", "intercept_scale"):
            scale, least = getattr(self, name), 1 / _LARGEST
            if not is_abstract(scale) and not (np.asarray(scale) >= least).all():
                raise ValueError(f"{type(self).__name__}: {name} must be {least:g} at least, got {scale.min():g}")

    @property
    def features(self) -> int:
        return self.prior_scale.shape[-1]

    def statistics(self, x, t, weight=None) -> Rows:
        """Keep the rows, checked: columns (n, D), class codes 0..K-1 (n,), and weights as of a regression."""
        x, t, w = self.check_rows(x, t, weight)
        count = len(self.classes)
        if t.dtype.kind not in "biuf" or not ((t >= 0) & (t < count) & (t == np.floor(t))).all():
            raise ValueError(f"t must hold class codes 0..{count - 1}, got {listed(sorted(set(t.tolist()), key=str))}")
        if x.size and max(x.max(), -x.min()) > _LARGEST:
            problem, column = "squares of the rows are too large for float64; give it in larger units", np.abs(x).max(0)
            raise DataError(problem, feature=int(column.argmax())).with_names((), self.columns)
        return Rows({"x": x, "t": t.astype(np.intp), "weight": w})

    def check(self, x) -> np.ndarray:
        """Return the rows, or raise.

        A row so far out that a sum of scores could overflow is moved in along its direction: its scores differ by so
        much that its probabilities are 0 and 1 already.
        """
        x = self.check_columns(x)
        far = np.abs(x).max(1, initial=0.0) > _LARGEST
        if far.any():
            x = x.copy()
            x[far] *= _LARGEST / np.abs(x[far]).max(1, keepdims=True)
        return x

    def counts(self, statistics: Rows | DistantRows) -> np.ndarray:
        """Return the number of rows of each class, (K,)."""
        return statistics.over(lambda rows: np.bincount(rows["t"], minlength=len(self.classes)))

    @abc.abstractmethod
    def written(self, params) -> dict[str, Any]:
        """Return the scores of draws (S, ...) as plain arrays with a kind, for programs without Python.

        ``weights`` (S, R, 1 + D) hold intercept and coefficients of R scores. Kinds are

        - "softmax": R = K scores, of one class each.
        - "ordered": R = 1 score between ``cuts`` (S, K - 1), with the ``link`` "logistic" or "probit".
        """

    # -- point estimates: a subclass writes Newton's method on the vector v of its parameters --------------------------

    @property
    def levels(self) -> int:
        """Number of parameters of a score in front of its coefficients: one intercept, or all cut points."""
        return 1

    @abc.abstractmethod
    def _newton(self, statistics, precision, prepared=lambda rows: rows, tolerance=TOLERANCE) -> tuple[Any, float]:
        """Minimise -log p(t | x, v) + Σ precision v²/2 over ``prepared`` rows; see `search`."""

    @abc.abstractmethod
    def _params(self, v) -> dict[str, np.ndarray]:
        """Name the parts of a vector v."""

    @abc.abstractmethod
    def _pull(self, params, rows) -> float:
        """Return how hard the row pulls at its scores that pulls least."""

    @abc.abstractmethod
    def _check_overlap(self, rows) -> None:
        """Raise ValueError if the columns separate the classes."""

    @abc.abstractmethod
    def _unscaled(self, params, centre, scale) -> dict[str, np.ndarray]:
        """Return the parameters for columns x from those for (x - centre)/scale."""

    def map(self, statistics: Rows | DistantRows):
        """Find the posterior mode by Newton's method."""
        scales = np.append(np.full(self.levels, self.intercept_scale), self.prior_scale)
        v, decrement = self._newton(statistics, scales**-2.0, tolerance=CLOSE)
        if not decrement < CLOSE:
            raise ValueError("the search for the posterior mode did not converge; standardise the columns")
        return self._params(v)

    def ml(self, statistics: Rows | DistantRows):
        """Find the maximum likelihood by Newton's method; raise ValueError where it does not exist.

        It does not exist where a class has no rows, or a combination of columns (of ordered classes, with cut points)
        separates the classes: then the likelihood grows without end. A stationary point at which every row still pulls
        proves that it exists. Without that proof the rows are looked at, if they are in memory.
        """
        absent = [label for label, count in zip(self.classes, self.counts(statistics), strict=True) if not count]
        if absent:
            raise ValueError(f"maximum likelihood does not exist: classes {absent} have no rows; use 'map' or 'nuts'")
        centre, scale = self._spread(statistics)

        def scaled(rows):
            return rows | {"x": (rows["x"] - centre) / scale}

        v, decrement = self._newton(statistics, np.zeros(self.levels + self.features), scaled)
        params = self._params(v)
        if not decrement <= TOLERANCE or statistics.over(lambda rows: self._pull(params, scaled(rows)), min) < _SURE:
            if not isinstance(statistics, Rows):
                raise ValueError(
                    "the search for the maximum likelihood did not end in a point that proves that it exists: the "
                    "columns may separate the classes; use 'map'"
                )
            self._check_overlap(scaled(statistics.data))
        if not decrement < CLOSE:
            raise ValueError("the search for the maximum likelihood did not converge; use 'map' or 'nuts'")
        return self._unscaled(params, centre, scale)

    def _spread(self, statistics) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of the columns, (D,) each; raise where the others determine one."""
        line = statistics.over(lambda rows: LineStatistics.of(rows["x"], 0.0 * rows["t"], np.ones(len(rows["t"]))))
        centre, root = line.mean[:-1], line.n**0.5
        noise = 8 * np.finfo(float).eps * np.abs(centre) * root
        return centre, check_rank(line.factor[:-1, :-1], noise, self.columns) / root


def search(statistics, sums, precision, start, tolerance: float) -> tuple[np.ndarray, float]:
    """Minimise -log p(t | x, v) + Σ precision v²/2 over v (p,) by Newton's method; return v and its decrement.

    ``sums(v, rows, derivatives)`` returns (-log p of the rows,), with derivatives also its gradient and Hessian; they
    are added over pieces. Where rows are slow to read, the derivatives are summed together with the value, since the
    next step mostly needs them: then a step is one pass.
    """

    def added(one, other):
        return tuple(map(operator.add, one, other))

    @functools.lru_cache(maxsize=1)
    def total(key, derivatives):
        return statistics.over(lambda rows: sums(np.frombuffer(key), rows, derivatives), added)

    def function(v, derivatives=False):
        value, *found = total(np.ascontiguousarray(v).tobytes(), derivatives or statistics.dear)
        value = 0.5 * (precision * v**2).sum() + value
        if not derivatives:
            return value
        gradient, hessian = found
        return value, gradient + precision * v, hessian + np.diag(precision)

    return minimise(function, start, tolerance=tolerance)
