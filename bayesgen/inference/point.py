"""Point estimates: maximum likelihood and the mode of the posterior."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen import program
from bayesgen.errors import NoClosedForm
from bayesgen.inference.base import register, summarise
from bayesgen.inference.compiled import fresh, kept, shapes
from bayesgen.inference.mode import search, sites
from bayesgen.model import Model
from bayesgen.posterior import PointEstimate


@register("ml")
@dataclass(frozen=True)
class ML:
    """Maximum likelihood, in closed form where the model has one. A ValueError names what stands against it."""

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> PointEstimate:
        """Return the `PointEstimate` of highest likelihood."""
        statistics = summarise(model, data)
        try:
            return PointEstimate(model, model.ml(statistics))
        except NoClosedForm:
            return PointEstimate(model, _maximise(_unlikelihood, model, statistics, "maximum likelihood estimate"))


@register("map")
@dataclass(frozen=True)
class MAP:
    """Mode of the posterior density in the parameters as the model writes them: probabilities, means, (co)variances.

    In closed form where the model has one, else by Newton's method on the same log density from the prior's median.
    A mode depends on the parameters it is taken in; here no Jacobian of a transformation enters.
    """

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> PointEstimate:
        """Return the `PointEstimate` of highest posterior density."""
        statistics = summarise(model, data)
        try:
            return PointEstimate(model, model.map(statistics))
        except NoClosedForm:
            return PointEstimate(model, _maximise(_undensity, model, statistics, "posterior mode"))


def _maximise(energy, model, statistics, sought: str):
    """Return every site where ``energy`` is least."""
    with program.x64():
        model, statistics = fresh(model, statistics)
        mode = search(energy, model, statistics, sought)
        arguments = mode.step, mode.origin, model, statistics
        at = kept(("sites", *shapes(model, statistics)), lambda: program.build(sites, *arguments, once=True))
        return {name: np.asarray(value) for name, value in at(*arguments).items()}


def _undensity(step, origin, model, statistics):
    """Negative log density of the parameters and of the rows."""
    from numpyro.infer.util import log_density

    values = sites(step, origin, model, statistics)
    joint, _ = log_density(model.statistics_program, (statistics,), {}, values)
    return -(joint + model.log_abs_det_jacobian(values))


def _unlikelihood(step, origin, model, statistics):
    """Negative log density of the rows."""
    from numpyro.infer.util import log_density

    values = sites(step, origin, model, statistics)
    _, trace = log_density(model.statistics_program, (statistics,), {}, values)
    seen = (s for s in trace.values() if s["type"] == "sample" and s["is_observed"])
    return -sum((s["fn"].log_prob(s["value"]) * (1.0 if s["scale"] is None else s["scale"])).sum() for s in seen)
