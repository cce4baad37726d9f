"""What an inference returns: the posterior in closed form, as draws, or as a point; and the one averaging rule.

A posterior answers ``log_predictive(x)``: for a generative classifier log p(x, t = k | data), shape (n, K). Draws
average the *joint* density over the posterior and only then may one normalise over k; averaging p(t | x, θ) over draws
forgets that x tells about θ, and is wrong for a generative model by up to 0.9 in probability.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from bayesgen.model import Params
from bayesgen.statistics import Statistics

_CELLS = 1 << 21  # log densities held at a time: 16 MB


class Posterior(Protocol):
    """The posterior of a model's parameters, however it is represented."""

    model: Any

    def log_predictive(self, x) -> np.ndarray:
        """Log p(x, t = k | data) for a classifier, (n, K); log p(x | data) for a single feature, (n,)."""
        ...

    def draws(self, seed=None, size: tuple[int, ...] = (4, 1000)) -> Params:
        """Parameters drawn from the posterior: arrays (size..., ...)."""
        ...

    def to_arviz(self, seed=None) -> Any:
        """Return the draws as an ArviZ `xarray.DataTree` with named dims and labelled coords."""
        ...


@dataclass(frozen=True)
class Closed:
    """An exact posterior: the model with updated hyperparameters.

    Parameters
    ----------
    model : Conjugate or ClassConditional
        The posterior.
    log_evidence : float
        Log p(data) under the prior, as a sequence, every constant kept.
    """

    model: Any
    log_evidence: float

    def log_predictive(self, x) -> np.ndarray:
        """Log predictive in closed form; see `Posterior`."""
        return self.model.log_predictive(x)

    def draws(self, seed=None, size=(4, 1000)) -> Params:
        """Exact independent draws, arranged as ``size`` = (chains, draws)."""
        return self.model.draw(generator(seed), size)

    def with_class_prior(self, classes) -> "Closed":
        """The same posterior of a classifier's features, under given class probabilities: a `KnownCategorical`."""
        return Closed(replace(self.model, classes=classes), self.log_evidence)

    def to_arviz(self, seed=None):
        """Exact draws as chains."""
        return _tree(self.model, self.draws(seed))


@dataclass(frozen=True)
class Draws:
    """A posterior represented by draws.

    Parameters
    ----------
    model : Model
        The model whose parameters they are.
    sites : mapping from site to array (chains, draws, ...)
        The draws.
    sample_stats : mapping from name to array (chains, draws)
        What the sampler said of each draw, in ArviZ's names.
    """

    model: Any
    sites: Params
    sample_stats: Mapping[str, np.ndarray] = field(default_factory=dict)

    def log_predictive(self, x) -> np.ndarray:
        """Log of the average over draws of the (joint) density; see `Posterior`."""
        flat = {site: v.reshape(-1, *v.shape[2:]) for site, v in self.sites.items()}
        return log_mean_density(self.model, flat, self.model.check(x))

    def draws(self, seed=None, size=(4, 1000)) -> Params:
        """Draws picked at random, with replacement, from those at hand."""
        flat = {site: v.reshape(-1, *v.shape[2:]) for site, v in self.sites.items()}
        count = len(next(iter(flat.values())))
        picked = generator(seed).integers(count, size=size)
        return {site: v[picked] for site, v in flat.items()}

    def with_class_prior(self, classes):
        """The same posterior of a classifier's features, under given class probabilities: a `KnownCategorical`."""
        site = f"{self.model.CLASSES}.probability"
        known = np.broadcast_to(classes.probability, self.sites[site].shape)
        return replace(self, model=replace(self.model, classes=classes), sites={**self.sites, site: known})

    def to_arviz(self, seed=None):
        """Return the draws as they are; there is nothing random to seed."""
        return _tree(self.model, self.sites, self.sample_stats)


@dataclass(frozen=True)
class Point(Draws):
    """A point estimate: a single draw. ``sites`` have shape (1, 1, ...)."""

    @classmethod
    def at(cls, model, params: Params) -> "Point":
        """Wrap plain parameters."""
        return cls(model, {site: np.asarray(v)[None, None] for site, v in params.items()})

    @property
    def params(self) -> Params:
        """The estimate, as plain arrays."""
        return {site: v[0, 0] for site, v in self.sites.items()}


def log_mean_density(model, params: Params, x) -> np.ndarray:
    """Log of the mean over draws of p(row, t = k | params): draws and rows in pieces, the maximum taken out of exp.

    Parameters
    ----------
    model : Model
        Knows `log_likelihood_rows`.
    params : mapping to arrays (S, ...)
        Draws.
    x : rows, checked
        An array, or a mapping to arrays.

    Returns
    -------
    array, shape (n, K), or (n,) for a model without classes
    """
    count = len(next(iter(params.values())))
    pieces = []
    for piece in _pieces(x):
        step, done, top, total = 64, 0, -np.inf, 0.0
        while done < count:
            part = {site: v[done : done + step] for site, v in params.items()}
            density = model.log_likelihood_rows(part, piece)
            new = np.maximum(top, density.max(0))
            anchor = np.where(np.isfinite(new), new, 0.0)  # exp(-inf - -inf) is NaN
            total = total * np.exp(top - anchor) + np.exp(density - anchor).sum(0)
            top, done = new, done + step
            step = max(64, int(_CELLS / max(density[0].size, 1)))
        with np.errstate(divide="ignore"):
            pieces.append(np.where(np.isfinite(top), top, 0.0) + np.log(total / count))
    return np.concatenate(pieces, axis=-1).T


def _pieces(x, size=8192):
    """Yield rows a few thousand at a time; the arguments of a user's function are not rows, and stay whole."""
    if isinstance(x, Statistics):
        yield x
        return
    n = (next(iter(x.values())) if isinstance(x, Mapping) else x).shape[0]
    for start in range(0, max(n, 1), size):
        rows = slice(start, start + size)
        yield {name: a[rows] for name, a in x.items()} if isinstance(x, Mapping) else x[rows]


def generator(seed) -> np.random.Generator:
    """Return a NumPy generator from a seed: None, int, Generator, RandomState or JAX key."""
    if isinstance(seed, np.random.RandomState):
        seed = seed.randint(2**31)
    elif hasattr(seed, "dtype") and "key" in str(seed.dtype):  # a typed JAX key
        from bayesgen import program

        seed = program.jax.random.key_data(seed)
    if not isinstance(seed, np.random.Generator | int | None):
        seed = np.asarray(seed).ravel().astype(np.uint32)
    return np.random.default_rng(seed)


def _tree(model, sites: Params, sample_stats: Mapping[str, np.ndarray] | None = None):
    from arviz_base import from_dict

    def safe(name):
        return name.replace("/", "_")  # netCDF and DataTree keep "/" for groups

    groups: dict[str, Any] = {"posterior": {safe(site): np.asarray(v) for site, v in sites.items()}}
    if sample_stats:
        groups["sample_stats"] = dict(sample_stats)
    dims = {safe(site): [safe(dim) for dim in model.dims(site)] for site in sites}
    tree = from_dict(groups, dims=dims, coords={safe(dim): labels for dim, labels in model.coords().items()})
    tree.attrs["inference_library"] = "bayesgen"
    return tree
