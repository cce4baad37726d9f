"""Predictions of rows and their classes after a fit, by one model with parameters or by many."""

import abc
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayesgen.core.program import same
from bayesgen.models.model import Params
from bayesgen.posterior.component import Components


class Predictive(abc.ABC):
    """The predictive distribution p(x, t = k | data) of a fit, and its spread over what the data leave open.

    A subclass must write `log_predictive`, `label_draws`, `with_class_prior` and `log_class_prior`. A `Posterior`, of
    one model, writes these from draws of its parameters. The average of many members
    (`bayesgen.averaging.average.Average`) has no parameters of its own.
    """

    kind: ClassVar[Literal["exact", "memberships", "draws", "point", "average"]]
    integrated: ClassVar[bool] = False  # True if parameters are integrated out of `log_predictive` in closed form
    uncertain: ClassVar[bool] = True  # True if draws of it say how far a class probability may be off

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        compared = (f.name for f in fields(self) if f.compare)  # type: ignore[arg-type]
        return all(same(getattr(self, name), getattr(other, name)) for name in compared)

    __hash__ = None  # type: ignore[assignment]  # its arrays may be large

    def __getstate__(self):
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # none derived

    def mixture(self, name: str, make: Callable[[], Components]) -> Components:
        """Return a mixture of factors that answers questions about rows: made at the first call, and kept."""
        kept = vars(self).setdefault("_mixtures", dict[str, Components]())
        if name not in kept:
            kept[name] = make()
        return kept[name]

    @property
    @abc.abstractmethod
    def log_class_prior(self) -> np.ndarray:
        """Log p(t = k | data) of a row without entries, shape (K,); -inf for a class that cannot be."""

    @abc.abstractmethod
    def log_predictive(self, x) -> np.ndarray:
        """Return log p(x, t = k | data) of a classifier, (n, K), or log p(x | data) of a single feature, (n,)."""

    @abc.abstractmethod
    def label_draws(self, x, size: int, step: int, seed=None) -> Iterator[tuple[np.ndarray, Params]]:
        """Yield log p(x, t = k | θ) of ``step`` checked rows at a time, (size, K, n), and the draws of the parameters.

        A discriminative model gives log p(t = k | x, θ), and an average that of members drawn by weight, up to a
        constant for each row and draw. The draws are the same for all rows.
        """

    @abc.abstractmethod
    def with_class_prior(self, classes) -> Self:
        """Return the same under given class probabilities, a `KnownCategorical`."""

    def check(self, x) -> Any:
        """Return rows as `label_draws` takes them, or raise; by default they are taken as they are."""
        return x
