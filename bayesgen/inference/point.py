"""Point estimates: maximum likelihood and the mode of the posterior."""

from dataclasses import dataclass

from bayesgen.inference.base import summarise
from bayesgen.posterior import Point


@dataclass(frozen=True)
class ML:
    """Maximum likelihood. A ValueError names the class and column where it does not exist."""

    def __call__(self, model, data, *, seed=None) -> Point:
        """Return the `Point` of highest likelihood."""
        return Point.at(model, model.ml(summarise(model, data)))


@dataclass(frozen=True)
class MAP:
    """Mode of the posterior density in the parameters as the model writes them: probabilities, means, (co)variances.

    A mode depends on the parameters it is taken in; here no Jacobian of a transformation enters.
    """

    def __call__(self, model, data, *, seed=None) -> Point:
        """Return the `Point` of highest posterior density."""
        return Point.at(model, model.update(summarise(model, data)).mode())
