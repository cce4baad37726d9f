r"""The transformation of Yeo and Johnson: columns bent towards normality within the classes.

With z the standardised column, a = ± log(1 + |z|) with the sign of z, and p = λ where z >= 0, λ - 2 where z < 0,

.. math:: y = (e^{p a} - 1)/p \quad (a \text{ where } p = 0), \qquad \log |dy/dz| = (\lambda - 1) a

λ = 1 leaves the column as it is; λ = 0 takes the logarithm of its upper side. One λ in [0, 2] per column serves all
classes. It maximises the profile likelihood of classes with one variance, under the prior λ ~ N(1, ½²):

.. math:: (N - K) \big(-\tfrac12 \log S(\lambda)/N + \tfrac{\lambda - 1}N \sum_i w_i a_i\big) - 2 (\lambda - 1)^2

with S the scatter within the classes, on a grid of steps of a tenth, which is finer than the uncertainty of λ.
(Yeo and Johnson 2000, *Biometrika* 87, 954-959.)
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.special import inv_boxcox1p

from bayesgen.core.program import Record
from bayesgen.core.shapes import require_fit, shaped

FAR = 1e100  # bent numbers: squares of nearer values, times any precision, stay below it
_FIELDS = ("location", "scale", "power")
_GRID = np.linspace(0.0, 2.0, 21)
_LEAST = 1e-200  # stands for p = 0: (e^(p a) - 1)/p is then a, its limit
_COLUMNS = 128  # bent at a time: more leave the cache


@dataclass(frozen=True, eq=False)
class YeoJohnson(Record):
    """The transformation of each column; z = (x - location)/scale."""

    location: np.ndarray = field(metadata=shaped("columns"))  # mean and standard deviation of the training rows, and λ
    scale: np.ndarray = field(metadata=shaped("columns", positive=True))
    power: np.ndarray = field(metadata=shaped("columns", least=0))

    @classmethod
    def learn(cls, x, codes, classes: int, weight, bend: bool = True, few: bool = True) -> "YeoJohnson":
        """Choose λ from rows, NaN where missing, and their classes; without ``bend``, standardise only.

        Unless columns are ``few`` the steps are of a fifth.
        """
        if x.shape[1] > _COLUMNS:
            starts = range(0, x.shape[1], _COLUMNS)
            bends = [cls.learn(x[:, i : i + _COLUMNS], codes, classes, weight, bend, False) for i in starts]
            return cls(*(np.concatenate([getattr(bend, name) for bend in bends]) for name in _FIELDS))
        seen = ~np.isnan(x)
        w = np.where(seen, weight[:, None], 0.0)
        total = w.sum(0)
        location = _over((w * np.where(seen, x, 0.0)).sum(0), total)
        z = np.where(seen, x - location, 0.0)
        variance = _over((w * z**2).sum(0), total)
        scale = np.where(variance > (1e-14 * np.abs(location)) ** 2, np.sqrt(variance), 1.0)
        if not bend:
            return cls(location, scale, np.ones(x.shape[1]))
        z /= scale
        a, below, complete = _log_size(z), _below(z), bool(seen.all())
        slope = _over((w * a).sum(0), total)
        member = np.zeros((classes, len(x)))
        member[codes, np.arange(len(x))] = weight
        count = member @ seen
        freedom = np.maximum(total - (count > 0).sum(0), 0.0)
        grid = _GRID if few else _GRID[::2]
        score = np.empty((len(grid), x.shape[1]))
        for place, power in enumerate(grid):
            y = _bend(a, below, power)
            mean = _over(member @ y, count)
            between = (count * (mean - _over((count * mean).sum(0), total)) ** 2).sum(0)
            y -= mean[codes]
            y *= y
            scatter = weight @ y if complete else (w * y).sum(0)
            # as in V, for classes of one row each have no scatter
            spread = scatter + 0.01 * _over(scatter + between, total) + 1e-300
            score[place] = freedom * (-0.5 * np.log(spread) + (power - 1) * slope) - 2 * (power - 1) ** 2
        return cls(location, scale, grid[score.argmax(0)])

    @np.errstate(over="ignore")
    def forward(self, x) -> np.ndarray:
        """Return the bent columns; infinite where they leave float64, unlike `polar`."""
        z = x - self.location
        z /= self.scale
        bent = np.flatnonzero(self.power != 1)
        if len(bent) == z.shape[1]:
            return _bend(_log_size(z), _below(z), self.power)
        z_bent = z[:, bent]
        z[:, bent] = _bend(_log_size(z_bent), _below(z_bent), self.power[bent])
        return z

    def fits(self, sizes):
        """Require powers of 2 at most; see `check_shapes`."""
        require_fit((self.power <= 2).all(), "the bend is none")
        return sizes

    @np.errstate(divide="ignore")
    def polar(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Return sign and log size of the bent columns; the log size is -inf where they are 0 or missing."""
        p = np.abs(_below(x - self.location) + self.power + _LEAST)
        a = p * self._log_distance(x)
        size = a + np.log(-np.expm1(-a)) - np.log(p)
        return np.where(x < self.location, -1.0, 1.0), np.where(np.isnan(x), -np.inf, size)

    @np.errstate(over="ignore", divide="ignore")
    def _log_distance(self, x):
        """Return log(1 + |z|), also where z leaves float64."""
        away = np.abs(x - self.location)
        a = np.log1p(away / self.scale)
        if (far := np.isinf(a)).any():
            a = np.where(far, np.log(away) - np.log(self.scale), a)
        return a

    def take(self, columns) -> "YeoJohnson":
        """Return the transformation of some columns."""
        return YeoJohnson(self.location[columns], self.scale[columns], self.power[columns])

    def log_slope(self, x) -> np.ndarray:
        """Return the log Jacobian of each row, (n,); missing entries add 0."""
        a = np.copysign(self._log_distance(x), x - self.location)
        slopes = (self.power - 1) * a - np.log(self.scale)
        return np.where(np.isnan(x), 0.0, slopes).sum(1)

    def back(self, y) -> np.ndarray:
        """Return the columns as given, from bent ones."""
        size = inv_boxcox1p(np.abs(y), np.where(y < 0, 2 - self.power, self.power))
        return self.location + self.scale * np.copysign(size, y)


def far_rows(y) -> np.ndarray:
    """Return the places of bent rows with an entry beyond `FAR`; mostly the sum of squares shows that there is none."""
    flat = y.ravel()
    with np.errstate(over="ignore"):
        none = flat @ flat <= FAR**2
    return np.flatnonzero(np.zeros(0) if none else (np.abs(y) > FAR).any(1))


def _over(sum, weight):
    return np.divide(sum, weight, out=np.zeros_like(weight), where=weight > 0)


def _log_size(z):
    """Return a = ± log(1 + |z|), with the sign of z."""
    a = np.abs(z)
    return np.copysign(np.log1p(a, out=a), z, out=a)


def _below(z):
    """Return 0 where z >= 0, and -2 where z < 0: by arithmetic, for `numpy.where` takes several times as long."""
    side = np.copysign(1.0, z)
    side -= 1
    return side


def _bend(a, below, power):
    """Return y from a, and p, which is λ plus ``below``."""
    p = below + power
    if (np.abs(power - 1) == 1).any():
        p += _LEAST
    y = np.multiply(p, a)
    np.expm1(y, out=y)
    y /= p
    return y
