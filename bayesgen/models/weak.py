"""Leaves whose prior is to follow the rows: they sum these, and then give the leaf to learn with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bayesgen.errors import NoClosedForm
from bayesgen.leaf import ExponentialFamily
from bayesgen.models.gamma_poisson import Poisson
from bayesgen.models.gaussian import Gaussian
from bayesgen.models.gaussian_vector import GaussianVector
from bayesgen.models.log_normal import LogGaussian
from bayesgen.program import static


@dataclass(frozen=True, eq=False)
class WeakPrior(ExponentialFamily):
    """A family without a prior yet.

    Parameters
    ----------
    make : callable (statistics) -> leaf
        Gives the leaf, its prior that of the statistics' own location and scale, worth a few rows.
    """

    make: Callable[[Any], ExponentialFamily] = static()

    def parameters(self):
        """There is nothing to sample them from."""
        raise NoClosedForm("a weak prior follows the rows: sum them, and take `settled`")

    def settled(self, statistics):
        """Return the leaf whose prior follows ``statistics``."""
        return self.make(statistics)


class WeakGaussian(WeakPrior, Gaussian):
    """Gaussian features whose prior follows the data."""


class WeakGaussianVector(WeakPrior, GaussianVector):
    """Gaussian vectors whose prior follows the data."""


class WeakPoisson(WeakPrior, Poisson):
    """Counts whose prior follows the data."""


@dataclass(frozen=True, eq=False)
class WeakLogGaussian(WeakPrior, LogGaussian):
    """Features whose shifted logarithm is Gaussian."""
