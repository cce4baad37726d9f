"""Posteriors, which inferences return: in closed form, as draws, or as a point; and the one averaging rule.

``log_predictive(x)`` of a generative classifier is log p(x, t = k | data), shape (n, K). Draws average the *joint*
density over the posterior, and only the average may be normalised over k. Averaging p(t | x, θ) over draws ignores the
information of x about θ, and is wrong for a generative model by up to 0.9 in probability.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bayesgen.core.memory import check_memory
from bayesgen.core.registry import saveable
from bayesgen.core.statistics import Statistics
from bayesgen.models.model import Conjugate, Model, Params
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.draws import chain_efficiency, generator, log_mean_density, mean_density
from bayesgen.numerics.pieces import split_rows
from bayesgen.posterior.arviz import add_prior, log_prior, prior_samples, tree
from bayesgen.posterior.likelihoods import data_groups
from bayesgen.posterior.predictive import Predictive


class Posterior(Predictive):
    """The posterior of a model's parameters, in any representation.

    A subclass must write `model`, `kind`, `log_predictive`, `draws`, `as_draws`, `with_class_prior` and `mean`, and may
    write `point_or_draws`; callers never ask for its type.
    """

    model: Any
    sample_stats: Mapping[str, np.ndarray] = {}  # a sampler's statistics of each draw, in ArviZ's names

    @abc.abstractmethod
    def draws(self, seed=None, size: tuple[int, ...] = (4, 1000)) -> Params:
        """Draw parameters from the posterior: arrays (size..., ...)."""

    @abc.abstractmethod
    def as_draws(self, seed=None) -> "ParameterDraws":
        """Return the posterior as chains of draws: its own, or four of a thousand."""

    def point_or_draws(self, seed=None, size: tuple[int, ...] = (4, 1000)) -> Params:
        """Return parameters without an axis of draws where they have only one value, else `draws`."""
        return self.draws(seed, size)

    @abc.abstractmethod
    def mean(self) -> Params:
        """Return the mean of every parameter, as plain arrays."""

    @property
    def log_class_prior(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.mean()[f"{self.model.CLASSES}.probability"])

    def check(self, x) -> Any:
        return self.model.check(x)

    def check_draws(self, count: int) -> None:
        """Raise where so many draws of all parameters would not fit in memory."""
        one = sum(np.asarray(v).nbytes for v in self.draws(0, (1,)).values())
        check_memory(f"{count} draws of the parameters", count * one, "take fewer draws, or a smaller model")

    def label_draws(self, x, size, step, seed=None):
        """Draw parameters once, and yield the densities of some rows at a time under them."""
        self.check_draws(size)
        params = self.draws(seed, (size,))
        for piece in split_rows(x, step):
            yield self.model.log_likelihood_rows(params, piece), params

    def log_predictive_with_effective(self, x) -> tuple[np.ndarray, np.ndarray | None]:
        """Return `log_predictive`, and the effective number of draws in each of its averages, where known."""
        return self.log_predictive(x), None

    def predictive_moments(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of a regression's target at each row of x (n, D)."""
        return self.model.moments_of_draws(self.as_draws().flat, x)

    def to_arviz(self, seed=None, data=None):
        """Return draws as an ArviZ `xarray.DataTree` with named dims and labelled coords.

        Parameters
        ----------
        seed : int, Generator or JAX key, optional
            Source of randomness, where draws are needed.
        data : rows, or tuple of the rows and their target, optional
            Rows of a single feature, rows and classes or targets (x, t), or arguments of a NumPyro function, as
            `bayesgen.fit` takes them. They add the groups "log_likelihood", "observed_data", "posterior_predictive"
            and, of a proper prior, "log_prior", "prior" and "prior_predictive". A classifier's are those of its
            estimator: "joint", log p(x, t | θ), in "log_likelihood", and "t", log p(t | x, θ), in
            "conditional_log_likelihood". The target of a regression is "y", its columns are "constant_data".
        """
        rng = generator(seed)
        draws = self.as_draws(rng)
        if data is None:
            return tree(draws)
        prior = getattr(self, "prior", self.model)
        made = data_groups(prior, data)
        if not prior.proper:
            return tree(draws, made.groups(draws, rng))
        result = tree(draws, {**made.groups(draws, rng), "log_prior": log_prior(prior, draws, made.statistics)})
        before = ParameterDraws(prior, prior_samples(prior, rng, draws.samples, made.statistics))
        add_prior(result, before, {"prior_predictive": made.prior(before, rng)})
        return result


class ConjugatePosterior(Posterior):
    """A posterior that is a model of its prior's family: ``model``, with updated hyperparameters."""

    model: Conjugate
    integrated = True

    @property
    def log_class_prior(self):
        with np.errstate(divide="ignore"):
            return np.log(self.model.classes.mean)  # type: ignore[attr-defined]  # classifiers have it

    def log_predictive(self, x) -> np.ndarray:
        return self.model.log_predictive(x)

    def draws(self, seed=None, size=(4, 1000)) -> Params:
        """Draw exactly and independently, arranged as ``size`` = (chains, draws)."""
        return self.model.sample_parameters(generator(seed), size)

    def as_draws(self, seed=None) -> "ParameterDraws":
        return ParameterDraws(self.model, self.draws(seed))

    def mean(self) -> Params:
        """Return the means in closed form, where the model has them."""
        return self.model.expected()  # type: ignore[attr-defined]  # regressions have it, and only they call this

    def predictive_moments(self, x):
        return self.model.predictive_moments(x)  # type: ignore[attr-defined]  # regressions have it


@saveable
@dataclass(frozen=True, eq=False)
class ExactPosterior(ConjugatePosterior):
    """An exact posterior: the model with updated hyperparameters.

    Parameters
    ----------
    model : Conjugate
        The posterior.
    prior : Conjugate
        The model before the rows.
    statistics : Statistics
        Statistics of the rows.
    """

    model: Conjugate
    prior: Conjugate
    statistics: Statistics

    kind = "exact"

    @cached_property
    def log_evidence(self):
        """Log p(data) under the prior, as a sequence, every constant kept."""
        return self.prior.log_evidence(self.statistics)

    def with_class_prior(self, classes) -> "ExactPosterior":
        return replace(self, model=replace(self.model, classes=classes))


@saveable
@dataclass(frozen=True, eq=False)
class MembershipPosterior(ConjugatePosterior):
    """The posterior if each row of unknown class counts in every class by its membership; see `bayesgen.Memberships`.

    Its draws take the memberships as known, so they are too narrow where classes overlap.

    Parameters
    ----------
    model : Conjugate
        The posterior.
    """

    model: Conjugate

    kind, uncertain = "memberships", False

    def with_class_prior(self, classes) -> "MembershipPosterior":
        return replace(self, model=replace(self.model, classes=classes))


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
        The sampler's statistics of each draw, in ArviZ's names.
    distance : mapping from site to float
        Distance of a sampler's draws from the exact posterior, where one exists; see `distance`.
    run : mapping from name to number
        Statistics of the run as a whole, in ArviZ's names: "sampling_time" (seconds), "tuning_steps"; of the Laplace
        approximation its evidences, "effective_proposals" and "pareto_k", see `bayesgen.Laplace`.
    warmup : ParameterDraws, optional
        The draws of the warm-up, if they were requested.
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
        """Log p(data) as estimated by the inference, which only `bayesgen.Laplace` does."""
        if "log_evidence" not in self.run:
            raise AttributeError("these draws come with no estimate of the evidence: inference='laplace' gives one")
        return self.run["log_evidence"]

    @property
    def flat(self) -> Params:
        """Draws of all chains on one axis: arrays (chains x draws, ...)."""
        return {site: v.reshape(-1, *v.shape[2:]) for site, v in self.samples.items()}

    def log_predictive(self, x) -> np.ndarray:
        """Return the log of the average over draws of the (joint) density."""
        return log_mean_density(self.model, self.flat, self.model.check(x))

    def log_predictive_with_effective(self, x) -> tuple[np.ndarray, np.ndarray]:
        """Return `log_predictive`, and the effective number of draws in each of its averages.

        A row weighs each draw by its density there. Weights w that sum to 1 have 1/Σ w² effective draws, multiplied by
        the effective share of the chains' draws.
        """
        density, effective = mean_density(self.model, self.flat, self.model.check(x))
        return density, effective * self.efficiency

    @cached_property
    def efficiency(self) -> float:
        """Effective draws per draw of the chains, at most 1, by the log density; 1 where it is unknown."""
        lp = self.sample_stats.get("lp")
        return 1.0 if lp is None else chain_efficiency(lp)

    def thinned(self, count: int | None) -> "ParameterDraws":
        """Return ``count`` of the draws, evenly spaced in each chain; all of them if ``count`` is None."""
        if count is None:
            return self
        check_count("draws", count)
        chains, length = next(iter(self.samples.values())).shape[:2]
        places = np.linspace(0, length - 1, min(length, -(-count // chains))).astype(int)
        samples, stats = ({k: v[:, places] for k, v in arrays.items()} for arrays in (self.samples, self.sample_stats))
        return replace(self, samples=samples, sample_stats=stats)

    def draws(self, seed=None, size=(4, 1000)) -> Params:
        """Pick draws at random, with replacement."""
        flat = self.flat
        count = len(next(iter(flat.values())))
        picked = generator(seed).integers(count, size=size)
        return {site: v[picked] for site, v in flat.items()}

    def as_draws(self, seed=None) -> "ParameterDraws":
        """Return itself; there is nothing random to seed."""
        return self

    def with_class_prior(self, classes) -> "ParameterDraws":
        model: Any = self.model
        return replace(self, model=replace(model, classes=classes), samples=_known(model, self.samples, classes))

    def mean(self) -> Params:
        return {site: v.mean((0, 1)) for site, v in self.samples.items()}


@saveable
@dataclass(frozen=True, eq=False)
class PointEstimate(Posterior):
    """A single value of the parameters, used as the posterior.

    Parameters
    ----------
    model : Model
        The model whose parameters they are.
    params : mapping from site to array
        The estimate.
    """

    model: Model
    params: Params

    kind, uncertain = "point", False

    def __post_init__(self):
        object.__setattr__(self, "params", {site: np.asarray(v) for site, v in self.params.items()})

    def check_draws(self, count: int) -> None:
        """Take any number of draws, which are all the same."""

    def log_predictive(self, x) -> np.ndarray:
        return log_mean_density(self.model, self.as_draws().flat, self.model.check(x))

    def draws(self, seed=None, size=(4, 1000)) -> Params:
        return {site: np.broadcast_to(v, (*size, *v.shape)) for site, v in self.params.items()}

    def as_draws(self, seed=None) -> ParameterDraws:
        return ParameterDraws(self.model, {site: v[None, None] for site, v in self.params.items()})

    def with_class_prior(self, classes) -> "PointEstimate":
        model: Any = self.model
        return PointEstimate(replace(model, classes=classes), _known(model, self.params, classes))

    def point_or_draws(self, seed=None, size=(4, 1000)) -> Params:
        return self.params

    def mean(self) -> Params:
        return self.params


def _known(model, params: Params, classes) -> Params:
    """Return a classifier's parameters with the class probabilities replaced by given ones."""
    site = f"{model.CLASSES}.probability"
    return {**params, site: np.broadcast_to(classes.probability, params[site].shape)}


def distance(samples: Params, exact: Params) -> dict[str, float]:
    """Return the largest difference between the means of draws and exact draws, by site, in exact standard deviations.

    With n effective draws on either side it is about sqrt(2 log(m)/n) for m entries; it is 0 where nothing varies.
    """
    result = {}
    for site, values in exact.items():
        mine, theirs = np.asarray(samples[site]).mean((0, 1)), np.asarray(values)
        spread = theirs.std((0, 1))
        apart = np.abs(mine - theirs.mean((0, 1)))
        result[site] = float(np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0).max(initial=0.0))
    return result
