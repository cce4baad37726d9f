"""The conjugate posterior: Bayes' rule by addition."""

from dataclasses import dataclass
from typing import Any

from bayesgen.inference.base import register, summarise
from bayesgen.model import Model, is_conjugate
from bayesgen.posterior import ExactPosterior


@register("exact")
@dataclass(frozen=True)
class Exact:
    """Exact posterior and evidence of a conjugate model."""

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> ExactPosterior:
        """Return the `ExactPosterior` posterior; nothing is random."""
        if not is_conjugate(model):
            raise TypeError(
                f"{type(model).__name__} has no exact posterior: not every part is conjugate; "
                "use inference='map' or 'nuts'"
            )
        statistics = summarise(model, data)
        return ExactPosterior(model.update(statistics), model, statistics)
