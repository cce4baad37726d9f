"""What an inference is, and the one way from a model's data to its statistics."""

from typing import Any, Protocol

from bayesgen.posterior import Posterior
from bayesgen.statistics import Statistics


class Inference(Protocol):
    """A way to a posterior; an instance carries its settings."""

    def __call__(self, model: Any, data: Any, *, seed: Any = None) -> Posterior:
        """Return the posterior of ``model`` given ``data``: statistics, rows, or a tuple of row arguments."""
        ...


def summarise(model, data) -> Statistics:
    """Statistics of ``data``: themselves, or those of the rows."""
    if isinstance(data, Statistics):
        return data
    return model.statistics(*data) if isinstance(data, tuple) else model.statistics(data)


def named(inference) -> Any:
    """Return an inference from its name "ml", "map", "exact" or "nuts", or as it is."""
    from bayesgen.inference import MAP, ML, NUTS, Exact

    names = {"ml": ML, "map": MAP, "exact": Exact, "nuts": NUTS}
    if isinstance(inference, str) and inference.lower() in names:
        return names[inference.lower()]()
    if isinstance(inference, str) or not callable(inference) or isinstance(inference, type):
        raise ValueError(
            f"inference must be one of {sorted(names)}, or an inference such as NUTS(num_samples=500); "
            f"got {inference!r}"
        )
    return inference


def fit(model, data, inference="exact", *, seed=None) -> Posterior:
    """Learn a model from data.

    Parameters
    ----------
    model : Model
        Any model of `bayesgen.models`, or a leaf of one's own.
    data : rows, tuple of the model's row arguments, or Statistics
        What ``model.statistics`` takes.
    inference : str or Inference
        "ml", "map", "exact", "nuts", or an instance.
    seed : int, Generator or JAX key, optional
        Source of randomness, for NUTS.

    Returns
    -------
    Posterior
        With ``log_predictive(x)``, ``draws()`` and ``to_arviz()``.

    Examples
    --------
    >>> from bayesgen.models import BetaBernoulli
    >>> posterior = fit(BetaBernoulli(2, 2), [1, 1])
    >>> posterior.log_predictive([1]).round(4)
    array([-0.4055])
    """
    return named(inference)(model, data, seed=seed)
