"""The contract and registry of inferences, `fit`, and exact inference: Bayes' rule by addition."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from bayesgen.core.errors import Argument, InputTypeError, InputWarning
from bayesgen.core.registry import saveable
from bayesgen.models.function import FunctionModel
from bayesgen.models.model import Model, Params, is_conjugate, summarise
from bayesgen.posterior.posterior import ExactPosterior, Posterior, distance


class Inference(Protocol):
    """A way to a posterior; an instance carries its settings."""

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> Posterior:
        """Return the posterior of ``model`` given ``data``: statistics, rows, or a tuple of row arguments."""
        ...


_I = TypeVar("_I", bound=Inference)

INFERENCES: dict[str, Callable[[], Inference]] = {}  # inferences by name; each registers itself in its file


class SamplerWarning(InputWarning):
    """Warns of draws that do not represent the posterior well; the message says what to do."""


def require_proper(model: Model, name: str) -> None:
    """Raise ValueError if the prior is no distribution, from which the inference of a name needs draws."""
    if not model.proper:
        raise ValueError(f"{name} needs a prior that is a distribution, and this one is improper: use 'exact' or 'map'")


def distance_from_exact(model: Model, statistics: Any, samples: Params) -> dict[str, float]:
    """Return the distance of draws from the exact posterior, {} where there is none; see `ParameterDraws`."""
    exact = exact_posterior(model, statistics)
    return {} if exact is None else distance(samples, exact.sample_parameters(np.random.default_rng(0), (1, 4000)))


def exact_posterior(model: Model, statistics: Any) -> Any:
    """Return the posterior of a conjugate model in closed form; None where there is none."""
    return model.update(statistics) if is_conjugate(model) and model.has_closed_form(statistics) else None


def register(name: str) -> Callable[[type[_I]], type[_I]]:
    """Register a class of inferences by name, for `resolve` and the command line."""

    def decorate(cls: type[_I]) -> type[_I]:
        INFERENCES[name] = cls
        return cls

    return decorate


def named(value: Any) -> Any:
    """Return the inference of a name, with its default settings; return any other value as it is."""
    return INFERENCES[value.lower()]() if isinstance(value, str) and value.lower() in INFERENCES else value


def resolve(inference: "str | Inference") -> "Inference":
    """Return an inference from its name, such as "ml", "map", "exact", "nuts" or "laplace", or as it is."""
    inference = named(inference)
    if isinstance(inference, str) or not callable(inference) or isinstance(inference, type):
        raise ValueError(
            f"inference must be one of {sorted(INFERENCES)}, or an inference such as NUTS(num_samples=500); "
            f"got {inference!r}"
        )
    return inference


def fit(
    model: Model | Callable[..., Any], data: Any, inference: str | Inference = "exact", *, seed: Any = None
) -> Posterior:
    """Learn a model from data.

    Parameters
    ----------
    model : Model or callable
        Any model of `bayesgen.models`, a leaf of one's own, or a NumPyro model function whose latents are continuous.
        A function works with "ml", "map", "nuts" and "laplace"; its "map" is the mode over its constrained sites.
    data : rows, tuple of the model's row arguments, or Statistics
        Arguments of ``model.statistics``, or their statistics; for a function its argument, a tuple of positional or a
        mapping of keyword arguments.
    inference : str or Inference
        "ml", "map", "exact", "nuts", "laplace", or an instance.
    seed : int, Generator or JAX key, optional
        Source of randomness, for NUTS and Laplace.

    Returns
    -------
    Posterior
        It has ``log_predictive(x)``, ``draws()`` and ``to_arviz()``. For a function, ``log_predictive(new_data)`` takes
        new arguments, and averages the density of the sites observed in the plate "obs", row by row.

    Examples
    --------
    >>> from bayesgen.models import BetaBernoulli
    >>> posterior = fit(BetaBernoulli(2, 2), [1, 1])
    >>> posterior.log_predictive([1]).round(4)
    array([-0.4055])

    A function of one's own:

    >>> import numpyro, numpyro.distributions as dist
    >>> def rate(counts):
    ...     mean = numpyro.sample("mean", dist.LogNormal(0.0, 1.0))
    ...     with numpyro.plate("obs", len(counts)):
    ...         numpyro.sample("counts", dist.Poisson(mean), obs=counts)
    >>> point = fit(rate, [2, 3, 1], "map")
    >>> round(float(point.params["mean"]), 3), point.log_predictive([0]).round(3)
    (1.526, array([-1.526]))
    """
    if not isinstance(model, Model):
        if not callable(model) or isinstance(model, type):
            raise TypeError(f"model must be a model of bayesgen.models or a NumPyro model function, got {model!r}")
        model, data = FunctionModel.of(model, data)
    return resolve(inference)(model, data, seed=seed)


@saveable
@register("exact")
@dataclass(frozen=True)
class Exact:
    """Exact posterior and evidence of a conjugate model."""

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> ExactPosterior:
        """Return the `ExactPosterior`; nothing is random."""
        if not is_conjugate(model):
            problem = f"{type(model).__name__} has no exact posterior: not every part is conjugate; use "
            advised = ("map", " or 'nuts'") if model.bounded else ("nuts", " or 'laplace'")
            raise InputTypeError(problem, Argument("inference", advised[0]), advised[1])
        statistics = summarise(model, data)
        return ExactPosterior(model.update(statistics), model, statistics)
