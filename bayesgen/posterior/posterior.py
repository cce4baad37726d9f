"""What an inference returns: the posterior in closed form, as draws, or as a point; and the one averaging rule.

A posterior answers ``log_predictive(x)``: for a generative classifier log p(x, t = k | data), shape (n, K). Draws
average the *joint* density over the posterior and only then may one normalise over k; averaging p(t | x, θ) over draws
forgets that x tells about θ, and is wrong for a generative model by up to 0.9 in probability.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayesgen.core.program import same
from bayesgen.core.registry import saveable
from bayesgen.core.statistics import Statistics
from bayesgen.models.model import Conjugate, Model, Params
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.draws import chain_efficiency, log_mean_density, mean_density
from bayesgen.posterior.arviz import add_prior, data_groups, log_prior, prior_samples, tree


class Posterior(abc.ABC):
    """The posterior of a model's parameters, however it is represented.

    A subclass must write `model`, `kind`, `log_predictive`, `draws`, `as_draws`, `with_class_prior`, `point_or_draws`
    and `mean`; nobody else asks for its type.
    """

    model: Any
    kind: ClassVar[Literal["exact", "draws", "point"]]
    sample_stats: Mapping[str, np.ndarray] = {}  # what a sampler said of each draw, in ArviZ's names

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        compared = (f.name for f in fields(self) if f.compare)  # type: ignore[arg-type]
        return all(same(getattr(self, name), getattr(other, name)) for name in compared)

    __hash__ = None  # type: ignore[assignment]  # its arrays may be large

    @abc.abstractmethod
    def log_predictive(self, x) -> np.ndarray:
        """Log p(x, t = k | data) for a classifier, (n, K); log p(x | data) for a single feature, (n,)."""

    @abc.abstractmethod
    def draws(self, seed=None, size: tuple[int, ...] = (4, 1000)) -> Params:
        """Parameters drawn from the posterior: arrays (size..., ...)."""

    @abc.abstractmethod
    def as_draws(self, seed=None) -> "ParameterDraws":
        """The posterior as chains of draws: its own, or four of a thousand."""

    @abc.abstractmethod
    def with_class_prior(self, classes) -> Self:
        """The same posterior of a classifier's features, under given class probabilities: a `KnownCategorical`."""

    @abc.abstractmethod
    def point_or_draws(self, seed=None, size: tuple[int, ...] = (4, 1000)) -> Params:
        """Parameters without an axis of draws where there is only one value of them, else `draws`."""

    @abc.abstractmethod
    def mean(self) -> Params:
        """Mean of every parameter, as plain arrays."""

    def log_predictive_with_effective(self, x) -> tuple[np.ndarray, np.ndarray | None]:
        """`log_predictive`, and the effective number of draws that each of its averages rests on, where it is known."""
        return self.log_predictive(x), None

    def predictive_moments(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of a regression's target at each row of x (n, D)."""
        return self.model.moments_of_draws(self.as_draws().flat, x)

    def to_arviz(self, seed=None, data=None):
        """Return draws as an ArviZ `xarray.DataTree` with named dims and labelled coords.

        Parameters
        ----------
        seed : int, Generator or JAX key, optional
            Source of randomness, where the posterior is drawn from.
        data : rows, optional
            Of a single feature, or of a NumPyro function its arguments, as `bayesgen.fit` takes them. They add the
            groups "log_likelihood", "log_prior", "observed_data", "posterior_predictive" and "prior".
        """
        rng = generator(seed)
        draws = self.as_draws(rng)
        if data is None:
            return tree(draws)
        prior = getattr(self, "prior", self.model)
        statistics, groups = data_groups(prior, data)
        result = tree(draws, {**groups(draws, rng), "log_prior": log_prior(prior, draws, statistics)})
        before = ParameterDraws(prior, prior_samples(prior, rng, draws.samples, statistics))
        add_prior(result, before, {"prior_predictive": groups(before, rng)["posterior_predictive"]})
        return result


@saveable
@dataclass(frozen=True, eq=False)
class ExactPosterior(Posterior):
    """An exact posterior: the model with updated hyperparameters.

    Parameters
    ----------
    model : Conjugate
        The posterior.
    prior : Conjugate
        The model before the rows.
    statistics : Statistics
        Of the rows.
    """

    model: Conjugate
    prior: Conjugate
    statistics: Statistics

    kind = "exact"

    @cached_property
    def log_evidence(self):
        """Log p(data) under the prior, as a sequence, every constant kept."""
        return self.prior.log_evidence(self.statistics)

    def log_predictive(self, x) -> np.ndarray:
        """Log predictive in closed form; see `Posterior`."""
        return self.model.log_predictive(x)

    def draws(self, seed=None, size=(4, 1000)) -> Params:
        """Exact independent draws, arranged as ``size`` = (chains, draws)."""
        return self.model.sample_parameters(generator(seed), size)

    def as_draws(self, seed=None) -> "ParameterDraws":
        """Four chains of a thousand draws."""
        return ParameterDraws(self.model, self.draws(seed))

    def with_class_prior(self, classes) -> "ExactPosterior":
        """The same, under given class probabilities; see `Posterior`."""
        return replace(self, model=replace(self.model, classes=classes))

    def point_or_draws(self, seed=None, size=(4, 1000)) -> Params:
        """Draws."""
        return self.draws(seed, size)

    def mean(self) -> Params:
        """Means in closed form, where the model has them."""
        return self.model.expected()  # type: ignore[attr-defined]  # of the regressions, which alone ask for it

    def predictive_moments(self, x):
        """Mean and variance in closed form; see `Posterior`."""
        return self.model.predictive_moments(x)  # type: ignore[attr-defined]  # of the regressions


@saveable
@dataclass(frozen=True, eq=False)
class ParameterDraws(Posterior):
    """A posterior (or a prior) represented by draws.

    Parameters
    ----------
    model : Model
        The model whose parameters they are.
    samples : mapping from site to array (chains, draws, ...)
        The draws.
    sample_stats : mapping from name to array (chains, draws)
        What the sampler said of each draw, in ArviZ's names.
    distance : mapping from site to float
        Where an exact posterior exists and the draws are a sampler's: how far their mean is from it, see `distance`.
    run : mapping from name to number
        What a sampler says of its run as a whole, in ArviZ's names: "sampling_time" (seconds), "tuning_steps"; of the
        Laplace approximation its evidences and "pareto_k", see `bayesgen.Laplace`.
    warmup : ParameterDraws, optional
        The draws of the warm-up, where they were asked for.
    """

    model: Model
    samples: Params
    sample_stats: Mapping[str, np.ndarray] = field(default_factory=dict)
    distance: Mapping[str, float] = field(default_factory=dict)
    run: Mapping[str, float] = field(default_factory=dict, compare=False)  # seconds differ from run to run
    warmup: "ParameterDraws | None" = None

    kind = "draws"

    @property
    def log_evidence(self) -> float:
        """Log p(data) as the inference estimated it: only that of `bayesgen.Laplace` does."""
        if "log_evidence" not in self.run:
            raise AttributeError("these draws come with no estimate of the evidence: inference='laplace' gives one")
        return self.run["log_evidence"]

    @property
    def flat(self) -> Params:
        """The draws of all chains in one axis: arrays (chains x draws, ...)."""
        return {site: v.reshape(-1, *v.shape[2:]) for site, v in self.samples.items()}

    def log_predictive(self, x) -> np.ndarray:
        """Log of the average over draws of the (joint) density; see `Posterior`."""
        return log_mean_density(self.model, self.flat, self.model.check(x))

    def log_predictive_with_effective(self, x) -> tuple[np.ndarray, np.ndarray]:
        """`log_predictive`, and the effective number of draws each of its averages rests on.

        A row weighs a draw by its density there; of weights w that sum to 1, 1/Σ w² are effective, of them the share
        that is effective in the chains.
        """
        density, effective = mean_density(self.model, self.flat, self.model.check(x), effective=True)
        assert effective is not None
        return density, effective * self.efficiency

    @cached_property
    def efficiency(self) -> float:
        """Effective draws for each draw of the chains, 1 at most: that of the log density, 1 where it is not known."""
        lp = self.sample_stats.get("lp")
        return 1.0 if lp is None else chain_efficiency(lp)

    def thinned(self, count: int | None) -> "ParameterDraws":
        """Some ``count`` of the draws, evenly apart in each chain; all of them where it is None."""
        if count is None:
            return self
        check_count("draws", count)
        chains, length = next(iter(self.samples.values())).shape[:2]
        places = np.linspace(0, length - 1, min(length, -(-count // chains))).astype(int)
        samples, stats = ({k: v[:, places] for k, v in own.items()} for own in (self.samples, self.sample_stats))
        return replace(self, samples=samples, sample_stats=stats)

    def draws(self, seed=None, size=(4, 1000)) -> Params:
        """Draws picked at random, with replacement, from those at hand."""
        flat = self.flat
        count = len(next(iter(flat.values())))
        picked = generator(seed).integers(count, size=size)
        return {site: v[picked] for site, v in flat.items()}

    def as_draws(self, seed=None) -> "ParameterDraws":
        """Return itself; there is nothing random to seed."""
        return self

    def with_class_prior(self, classes) -> "ParameterDraws":
        """The same, under given class probabilities; see `Posterior`."""
        model: Any = self.model
        return replace(self, model=replace(model, classes=classes), samples=_known(model, self.samples, classes))

    def point_or_draws(self, seed=None, size=(4, 1000)) -> Params:
        """Draws."""
        return self.draws(seed, size)

    def mean(self) -> Params:
        """Averages over the draws."""
        return {site: v.mean((0, 1)) for site, v in self.samples.items()}


@saveable
@dataclass(frozen=True, eq=False)
class PointEstimate(Posterior):
    """A single value of the parameters, taken for the posterior.

    Parameters
    ----------
    model : Model
        The model whose parameters they are.
    params : mapping from site to array
        The estimate.
    """

    model: Model
    params: Params

    kind = "point"

    def __post_init__(self):
        object.__setattr__(self, "params", {site: np.asarray(v) for site, v in self.params.items()})

    def log_predictive(self, x) -> np.ndarray:
        """Log density at the estimate; see `Posterior`."""
        return log_mean_density(self.model, self.as_draws().flat, self.model.check(x))

    def draws(self, seed=None, size=(4, 1000)) -> Params:
        """The estimate, repeated."""
        return {site: np.broadcast_to(v, (*size, *v.shape)) for site, v in self.params.items()}

    def as_draws(self, seed=None) -> ParameterDraws:
        """A single chain of a single draw."""
        return ParameterDraws(self.model, {site: v[None, None] for site, v in self.params.items()})

    def with_class_prior(self, classes) -> "PointEstimate":
        """The same, under given class probabilities; see `Posterior`."""
        model: Any = self.model
        return PointEstimate(replace(model, classes=classes), _known(model, self.params, classes))

    def point_or_draws(self, seed=None, size=(4, 1000)) -> Params:
        """The estimate."""
        return self.params

    def mean(self) -> Params:
        """The estimate."""
        return self.params


def _known(model, params: Params, classes) -> Params:
    """Parameters of a classifier with given class probabilities in the place of their own."""
    site = f"{model.CLASSES}.probability"
    return {**params, site: np.broadcast_to(classes.probability, params[site].shape)}


def distance(samples: Params, exact: Params) -> dict[str, float]:
    """How far draws are from exact ones: by site the largest difference of two means, in exact standard deviations.

    Of n effective draws on either side it is about sqrt(2 log(m)/n) for m entries; 0 where nothing varies.
    """
    result = {}
    for site, values in exact.items():
        mine, own = np.asarray(samples[site]).mean((0, 1)), np.asarray(values)
        spread = own.std((0, 1))
        apart = np.abs(mine - own.mean((0, 1)))
        result[site] = float(np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0).max(initial=0.0))
    return result


def generator(seed) -> np.random.Generator:
    """Return a NumPy generator from a seed: None, int, Generator, RandomState or JAX key."""
    if isinstance(seed, np.random.RandomState):
        seed = seed.randint(2**31)
    elif hasattr(seed, "dtype") and "key" in str(seed.dtype):  # a typed JAX key
        from bayesgen.core import program

        seed = program.jax.random.key_data(seed)
    if isinstance(seed, np.random.Generator | None):
        return np.random.default_rng(seed)
    words = np.asarray(seed)  # an int, or the words of a JAX key
    if words.dtype.kind not in "iu" or (words < 0).any():
        raise ValueError(f"a seed is None, an int >= 0, a Generator, a RandomState or a JAX key; got {seed!r}")
    return np.random.default_rng(seed if words.ndim == 0 else words.ravel().astype(np.uint32))
