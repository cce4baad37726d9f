r"""Simulation-based calibration: a check of posteriors by simulation from the prior.

Draw parameters θ from the prior, data from the likelihood at θ, and L independent draws from the posterior given these
data. Then the rank of θ among the draws is uniform on 0..L, for every scalar function of θ and the data: this follows
from Bayes' rule alone. A wrong update, density or sampler makes the ranks non-uniform. (Talts et al. 2018,
arXiv:1804.06788; Modrák et al. 2023, *Bayesian Analysis*, on the likelihood of the data as a test quantity.)
"""

import functools
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesgen.core import program
from bayesgen.inference import NUTS, Inference, SamplerWarning, resolve
from bayesgen.models.classifier import ClassConditional, NaiveBayes
from bayesgen.models.leaf import Leaf
from bayesgen.models.model import Model, Params, is_conjugate, on_jax, summarise
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.draws import band, generator, uniformity

_LONGER = 4  # doublings of a chain, at most, in search of independent draws


@dataclass(frozen=True, eq=False)
class Calibration:
    """Result of `check_calibration`.

    Attributes
    ----------
    ranks : dict from name to int array, shape (simulations,)
        Rank 0..draws of the truth among the posterior draws, for every scalar parameter that varies, and for the
        "log_likelihood" of the data.
    draws : int
        Posterior draws in each ranking.
    effective : float
        Smallest effective sample size of all simulations; infinite where draws are exact.
    divergent : int
        Number of simulations with a divergence.
    """

    ranks: Mapping[str, np.ndarray]
    draws: int
    effective: float = math.inf
    divergent: int = 0

    @property
    def simulations(self) -> int:
        """Number of simulated data sets."""
        return len(next(iter(self.ranks.values())))

    @functools.cached_property
    def p_values(self) -> dict[str, float]:
        """P value of every scalar, under the hypothesis that its ranks are uniform, by `uniformity`."""
        return {name: uniformity(ranks, self.draws) for name, ranks in self.ranks.items()}

    @functools.cached_property
    def adjusted(self) -> dict[str, float]:
        """P values after Holm's correction for their number, the smallest first."""
        result, least = {}, 0.0
        for i, name in enumerate(sorted(self.p_values, key=self.p_values.__getitem__)):
            result[name] = least = max(least, min(1.0, (len(self.p_values) - i) * self.p_values[name]))
        return result

    @property
    def p_value(self) -> float:
        """The smallest p value after Holm's correction."""
        return next(iter(self.adjusted.values()))

    def band(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and largest counts of ranks below 1..draws that ``level`` does not reject, of one scalar."""
        return band(self.simulations, self.draws, level)

    def ok(self, level: float = 0.01) -> bool:
        """Return True if no scalar is rejected; a correct posterior fails with probability ``level`` at most."""
        return self.p_value > level

    def __str__(self):
        worst = next(iter(self.adjusted))
        return (
            f"{self.simulations} simulations, ranks of {len(self.ranks)} scalars among {self.draws} draws: "
            f"least p value {self.p_value:.2g} ({worst}), Holm-corrected"
        )


def check_calibration(
    model: Model,
    size: int = 20,
    inference: str | Inference = "exact",
    *,
    simulations: int = 100,
    draws: int = 99,
    missing=None,
    simulate: Callable[[Mapping[str, np.ndarray], np.random.Generator], Any] | None = None,
    seed=None,
) -> Calibration:
    """Check a model and an inference by simulation: true parameters should rank uniformly among posterior draws.

    Parameters
    ----------
    model : Model
        Model with a proper prior: any leaf, also your own, a `NaiveBayes`, a `GaussianDiscriminant`, or (with
        ``simulate``) a regression.
    size : int
        Rows of a simulated data set. Keep it small: a mistake in the prior shows where data are few.
    inference : str or Inference
        "exact", or a sampler such as ``NUTS(num_samples=500, num_chains=1)``, which is compiled once. Its draws are
        thinned; if fewer than ``draws`` of them are effective, the chain is run for longer.
    simulations : int
        Number of simulated data sets.
    draws : int
        Posterior draws in each ranking.
    missing : bool array, shape of the rows, or mapping from feature to array, optional
        Entries to remove from every data set.
    simulate : callable (params, rng) -> data, optional
        Draws one data set given parameters, in the form that the model's ``statistics`` takes: a tuple if it takes
        several arguments. By default rows are drawn from the model's own ``likelihood``.
    seed : int or Generator, optional
        Source of randomness.

    Returns
    -------
    Calibration
        ``print`` it, call its ``ok()``, or draw it by `bayesgen.plot.calibration`.

    Examples
    --------
    >>> from bayesgen.models import BetaBernoulli
    >>> result = check_calibration(BetaBernoulli(2, 3), size=10, seed=0)
    >>> result.ok()
    True
    >>> print(result)
    100 simulations, ranks of 2 scalars among 99 draws: least p value 1 (probability), Holm-corrected
    """
    for name, value in (("size", size), ("simulations", simulations), ("draws", draws)):
        check_count(name, value)
    if not isinstance(model, Model):
        raise TypeError(f"model must be a model of bayesgen.models or a leaf of your own, got {model!r}")
    inference, rng = resolve(inference), generator(seed)
    truths = _parameters(model, rng, simulations)
    each = [{site: v[i] for site, v in truths.items()} for i in range(simulations)]
    sets = (simulate(params, rng) for params in each) if simulate else _rows(model, truths, size, missing, rng)
    ranks, moving, effective, divergent = [], np.zeros((), bool), math.inf, 0
    posterior: Params = {}
    for params, data in zip(each, sets, strict=True):
        statistics = summarise(model, data)
        posterior, found = _independent(inference, model, statistics, draws, rng)
        both = {site: np.concatenate([params[site][None], v]) for site, v in posterior.items()}
        scalars = [v.reshape(len(v), -1) for v in both.values()]
        values = np.column_stack([*scalars, _log_likelihood(model, both, data, statistics)])
        ties = (values[1:] == values[0]).sum(0)
        ranks.append((values[1:] < values[0]).sum(0) + rng.integers(ties + 1))
        # known values and the zeros of a factor do not move
        moving = moving | (np.ptp(values, axis=0) > 1e-12 * np.abs(values).max(0))
        effective, divergent = min(effective, found[0]), divergent + found[1]
    indices = [(site, list(index)) for site, v in posterior.items() for index in np.ndindex(v.shape[1:])]
    names = [site + (str(index).replace(" ", "") if index else "") for site, index in indices]
    table = np.array(ranks)
    first = np.unique(table, axis=1, return_index=True)[1]  # scalars that always have the same rank are one quantity
    kept = [j for j in range(table.shape[1]) if moving[j] and j in first]
    if not kept:
        raise ValueError(f"{type(model).__name__} has nothing to learn: no parameter varies")
    return Calibration({[*names, "log_likelihood"][j]: table[:, j] for j in kept}, draws, effective, divergent)


def _parameters(model, rng, count):
    """Return draws of the prior, exact if the model is conjugate, else by its program."""
    if is_conjugate(model):
        return {site: np.asarray(v) for site, v in model.sample_parameters(rng, (count,)).items()}
    from numpyro.infer import Predictive

    with program.x64():
        key = program.jax.random.PRNGKey(int(rng.integers(2**31)))
        sites = Predictive(on_jax(model).latents, num_samples=count)(key)
        return {site: np.asarray(v) for site, v in sites.items()}


def _rows(model, truths, size, missing, rng):
    """Yield a data set of ``size`` rows for every draw of the parameters; all are drawn at once."""
    seed, count = int(rng.integers(2**31)), len(next(iter(truths.values())))
    if isinstance(model, ClassConditional):
        repeated = {site: np.repeat(v, size, axis=0) for site, v in truths.items()}
        codes, rows = model.sample_rows(repeated, seed)
        rows = {name: x.reshape(count, size, *x.shape[1:]) for name, x in rows.items()}
        several = isinstance(model, NaiveBayes)
        masks = (missing or {}) if several else {name: missing for name in rows}
        rows = {name: _gaps(x, masks.get(name)) for name, x in rows.items()}
        for i, t in enumerate(codes.reshape(count, size)):
            table = {name: x[i] for name, x in rows.items()}
            yield (table if several else table.popitem()[1]), t
        return
    if not isinstance(model, Leaf):
        raise TypeError(f"{type(model).__name__} has no distribution of its columns: give simulate=")
    with program.x64():
        arguments = program.jax.random.PRNGKey(seed), {site: np.array(v) for site, v in truths.items()}
        draw = program.build(lambda key, params: model.likelihood(params).sample(key, (size,)), *arguments, once=True)
        x = np.asarray(draw(*arguments))
    yield from _gaps(np.moveaxis(x, 1, 0), missing)


def _gaps(x, missing):
    """Remove the missing entries from every data set (simulations, n, ...)."""
    if missing is None:
        return x
    if np.shape(missing) != x.shape[1:]:
        raise ValueError(f"missing must have the shape of the rows, {x.shape[1:]}, got {np.shape(missing)}")
    return np.where(np.asarray(missing, bool), np.nan, x)


def _independent(inference, model, statistics, count, rng):
    """Return independent posterior draws (count, ...), and a pair: their effective number, and True if one diverged."""
    from numpyro.diagnostics import effective_sample_size

    attempt = 0
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamplerWarning)  # counted instead
            posterior = inference(model, statistics, seed=int(rng.integers(2**31)))
        if posterior.kind == "point":
            raise TypeError(f"{type(inference).__name__} gives a point, not a posterior: use 'exact' or NUTS(...)")
        if posterior.kind == "exact":
            return posterior.draws(rng, (count,)), (math.inf, False)
        with np.errstate(invalid="ignore", divide="ignore"):
            sizes = np.concatenate([np.ravel(effective_sample_size(np.asarray(v))) for v in posterior.samples.values()])
        effective = float(sizes[~np.isnan(sizes)].min(initial=math.inf))  # NaN: a value that does not vary
        if effective >= count or not isinstance(inference, NUTS) or attempt == _LONGER:
            break
        inference = replace(inference, num_samples=2 * inference.num_samples)  # the program stays compiled
        attempt += 1
    flat = posterior.flat
    apart = np.linspace(0, len(next(iter(flat.values()))) - 1, count).astype(int)
    diverged = bool(np.any(posterior.sample_stats.get("diverging", False)))
    return {site: v[apart] for site, v in flat.items()}, (effective, diverged)


def _log_likelihood(model, params, data, statistics):
    """Return log p(data | params) for every draw."""
    if isinstance(model, ClassConditional):
        density = model.log_likelihood_rows(params, model.check(data[0]))
        return density[:, data[1], np.arange(len(data[1]))].sum(-1)
    if isinstance(model, Leaf):
        return model.log_likelihood_rows(params, model.check(data)).sum(-1)
    draws = ({site: v[i] for site, v in params.items()} for i in range(len(next(iter(params.values())))))
    return np.array([model.log_likelihood(draw, statistics) for draw in draws])
