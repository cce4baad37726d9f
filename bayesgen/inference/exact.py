"""The conjugate posterior: Bayes' rule by addition."""

from dataclasses import dataclass

from bayesgen.inference.base import register, summarise
from bayesgen.posterior import ExactPosterior


@register("exact")
@dataclass(frozen=True)
class Exact:
    """Exact posterior and evidence of a conjugate model."""

    def __call__(self, model, data, *, seed=None) -> ExactPosterior:
        """Return the `ExactPosterior` posterior; nothing is random."""
        if not getattr(model, "conjugate", False):
            raise TypeError(
                f"{type(model).__name__} has no exact posterior: not every part is conjugate; "
                "use inference='map' or 'nuts'"
            )
        statistics = summarise(model, data)
        return ExactPosterior(model.update(statistics), model.log_evidence(statistics))
