"""Families of columns, which users name ("gaussian", "poisson"): each has the leaf of each of its priors.

A new family is a file with a leaf, and a `Family` that it adds to `FAMILIES`.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.models import structures
from bayesgen.models.bernoulli import BetaBernoulli
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.models.gaussian import NormalInverseGamma
from bayesgen.models.leaf import Leaf
from bayesgen.models.log_normal import LogNormal
from bayesgen.models.multinomial import DirichletMultinomial
from bayesgen.models.poisson import GammaPoisson
from bayesgen.models.reference import ReferenceGaussian, ReferencePoisson
from bayesgen.models.student_t import StudentT

Maker = Callable[[Any, tuple[int, ...]], Leaf]
_WEAK = structures.WeakGaussian(NormalInverseGamma.weak)


@dataclass(frozen=True)
class Family:
    """A family of columns."""

    # the leaf under each prior that there is, of the columns and categories of a block, and the shape of its features:
    # () for a single column
    priors: Mapping[str, Maker]
    sparse: bool = False  # True if a 0 that is not written is a 0, so that columns may be a sparse matrix
    # True if the weak prior takes its scale from the rows: a column that is constant has none, and says nothing
    scaled: bool = False


def _coins(alpha: float) -> Maker:
    return lambda block, shape: structures.WeakBernoulli(functools.partial(_coin, alpha))


def _coin(alpha: float, statistics) -> BetaBernoulli:
    return BetaBernoulli(np.full(statistics.sums.shape[1:-1], alpha), alpha)


def _dice(alpha: float) -> Maker:
    return lambda block, shape: structures.WeakCategorical(
        functools.partial(_die, alpha, block.categories), block.categories
    )


def _die(alpha: float, categories, statistics) -> DirichletCategorical:
    return DirichletCategorical(np.full(statistics.sums.shape[1:], alpha), categories)


def _words(alpha: float) -> Maker:
    return lambda block, shape: DirichletMultinomial(alpha, block.columns)


def _log_gaussian(shift: float) -> Family:
    leaf = structures.WeakLogGaussian(functools.partial(LogNormal.weak, shift=shift), shift=shift)
    return Family({"weak": lambda block, shape: leaf}, scaled=True)


_GAUSSIAN = Family(
    {"weak": lambda block, shape: _WEAK, "reference": lambda block, shape: ReferenceGaussian()}, scaled=True
)
FAMILIES: dict[str, Family] = {
    "gaussian": _GAUSSIAN,
    "date": _GAUSSIAN,
    "log": _log_gaussian(0.0),
    "log1p": _log_gaussian(1.0),
    "student": Family({"weak": lambda block, shape: structures.WeakStudentT(StudentT.weak)}, scaled=True),
    "bernoulli": Family({"weak": _coins(1.0), "reference": _coins(0.5)}, sparse=True),
    "categorical": Family({"weak": _dice(1.0), "reference": _dice(0.5)}),
    "poisson": Family(
        {
            "weak": lambda block, shape: structures.WeakPoisson(GammaPoisson.weak),
            "reference": lambda block, shape: ReferencePoisson(),
        },
        sparse=True,
    ),
    "multinomial": Family({"weak": _words(1.0), "reference": _words(0.5)}, sparse=True),
}


def sparse_families() -> list[str]:
    """Return the families whose columns may be a sparse matrix."""
    return [name for name, family in FAMILIES.items() if family.sparse]
