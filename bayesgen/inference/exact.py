"""The conjugate posterior: Bayes' rule by addition."""

from dataclasses import dataclass

from bayesgen.inference.base import summarise
from bayesgen.posterior import Closed


@dataclass(frozen=True)
class Exact:
    """Exact posterior and evidence of a conjugate model."""

    def __call__(self, model, data, *, seed=None) -> Closed:
        """Return the `Closed` posterior; nothing is random."""
        if not getattr(model, "conjugate", False):
            raise TypeError(
                f"{type(model).__name__} has no exact posterior: not every part is conjugate; "
                "use inference='map' or 'nuts'"
            )
        statistics = summarise(model, data)
        return Closed(model.update(statistics), model.log_evidence(statistics))
