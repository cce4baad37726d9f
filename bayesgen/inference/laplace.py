r"""The Laplace approximation: draws of a Gaussian at the mode, corrected and tested by importance weights.

Let z be the L unconstrained latents (logs of positive parameters, and so on; densities include the log-Jacobian), ẑ the
mode of p(x, z) and H the Hessian of -log p(x, z) there. Then

.. math:: p(z \mid x) \approx N(\hat z, H^{-1}), \qquad
   \log p(x) \approx \log p(x, \hat z) + \tfrac L2 \log 2\pi - \tfrac12 \log |H|

Draws z_s of this Gaussian q have importance weights w_s = p(x, z_s)/q(z_s), whose mean is p(x), without bias. Picked in
proportion to w, none twice, they are draws of the posterior except where q hardly ever proposes; the shape k of the
largest weights detects such places. (Gelman et al. 2013, *Bayesian Data Analysis*, sections 4.1, 10.4 and 13.3; Vehtari
et al. 2024, *Journal of Machine Learning Research* 25.)
"""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from bayesgen.core import program
from bayesgen.core.errors import Argument, InputTypeError
from bayesgen.core.registry import saveable
from bayesgen.inference.base import SamplerWarning, distance_from_exact, register, summarise
from bayesgen.inference.point import Mode, potential, search, sites
from bayesgen.models.model import Model
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.draws import pareto_shape
from bayesgen.numerics.pieces import DENSITIES
from bayesgen.posterior.compiled import fresh, kept, shapes
from bayesgen.posterior.posterior import ParameterDraws, generator

_LARGEST_K = 0.7  # above it the weights of so many draws do not show what the Gaussian misses
_BATCHES = (8, 1024)  # fewest and most densities computed at a time


@saveable
@register("laplace")
@dataclass(frozen=True)
class Laplace:
    """A Gaussian at the posterior mode, corrected by importance weights: draws and an evidence in seconds.

    It fits every model whose density is twice differentiable, conjugate or not, in seconds where NUTS takes minutes,
    with an estimate of the evidence even where there is no formula. It returns `ParameterDraws` with one chain of
    independent draws, and in ``run``

    - "log_evidence": log p(data) from the importance weights, with its standard error "log_evidence_error";
    - "log_evidence_gaussian": the same if the posterior were that Gaussian;
    - "pareto_k": the shape of the largest weights, 0 where all weights are one. Up to 0.7 draws and evidence are
      reliable; above, a `SamplerWarning` says that the posterior is too far from a Gaussian, and to use NUTS.

    It finds one mode: neither weights nor k show others far away.

    Parameters
    ----------
    num_samples : int
        Number of draws kept.
    num_proposals : int
        Largest number of draws of the Gaussian from which these are picked, none twice; more than ``num_samples``. It
        starts at twice ``num_samples`` and doubles until no draw has a weight that would pick it more than once.

    Raises
    ------
    TypeError
        For linear regression with Laplace noise or a Laplace prior, whose density has kinks.
    ValueError
        Where no mode is found, or the prior is improper.

    Examples
    --------
    >>> from bayesgen import fit
    >>> from bayesgen.models import BetaBernoulli
    >>> posterior = fit(BetaBernoulli(2, 2), [1, 1, 0, 1, 1], Laplace(), seed=0)
    >>> {name: round(posterior.run[name], 2) for name in ("log_evidence", "log_evidence_gaussian")}
    {'log_evidence': -3.34, 'log_evidence_gaussian': -3.36}
    >>> round(float(fit(BetaBernoulli(2, 2), [1, 1, 0, 1, 1]).log_evidence), 2)
    -3.33
    """

    num_samples: int = 1000
    num_proposals: int = 20_000

    def __post_init__(self):
        check_count("Laplace: num_samples", self.num_samples)
        check_count("Laplace: num_proposals", self.num_proposals)
        if self.num_proposals <= self.num_samples:
            raise ValueError(
                f"Laplace: num_proposals must be more than num_samples = {self.num_samples}, got {self.num_proposals}: "
                "draws are picked from them, none twice"
            )

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> ParameterDraws:
        """Return one chain of independent draws; see the class for its ``run``."""
        if not model.smooth:
            raise InputTypeError(
                f"{type(model).__name__} with Laplace noise or a Laplace prior has no Laplace approximation: its "
                "density is not twice differentiable; use ",
                Argument("inference", "nuts"),
                ", or 'map' for the mode alone",
            )
        if not model.proper:
            raise ValueError(
                "Laplace needs a prior that is a distribution, and this one is improper: use 'exact' or 'map'"
            )
        statistics, rng, begun = summarise(model, data), generator(seed), time.perf_counter()
        with program.x64():
            own, copied = fresh(model, statistics)
            mode = search(potential, own, copied, "posterior mode")
            step, proposed, gaussian = _proposals(mode, rng, self.num_proposals)
            energy = log_weight = weight = np.empty(0)
            while len(energy) < len(step) and (not len(energy) or weight.max() * self.num_samples > weight.sum()):
                more = step[len(energy) : max(2 * len(energy), 2 * self.num_samples)]
                energy = np.append(energy, _in_batches(potential, more, mode.origin, own, copied))
                log_weight = np.nan_to_num(-energy - proposed[: len(energy)], nan=-np.inf)
                with np.errstate(under="ignore", invalid="ignore"):
                    weight = np.exp(log_weight - log_weight.max())
            if (weight > 0).sum() <= self.num_samples:
                raise ValueError("the density of almost all draws of the Gaussian at the mode is 0; use 'nuts'")
            picked = _without_replacement(rng, weight, self.num_samples)
            samples = _in_batches(sites, step[picked], mode.origin, own, copied)
        k = float(np.nan_to_num(pareto_shape(log_weight)))
        run = {
            "sampling_time": time.perf_counter() - begun,
            "log_evidence": float(logsumexp(log_weight) - np.log(len(weight))),
            "log_evidence_error": float(weight.std() / (weight.mean() * len(weight) ** 0.5)),
            "log_evidence_gaussian": float(gaussian),
            "pareto_k": k,
        }
        if k > _LARGEST_K:
            warning = SamplerWarning(
                f"Laplace: the Pareto k of the importance weights is {k:.2f}, above {_LARGEST_K:g}: the posterior is "
                "too far from a Gaussian for the draws and the evidence to be relied upon; use ",
                Argument("inference", "nuts"),
            )
            warnings.warn(warning, stacklevel=3)
        chain = {site: v[None] for site, v in samples.items()}
        stats = {"lp": -energy[picked][None]}
        return ParameterDraws(model, chain, stats, distance_from_exact(model, statistics, chain), run)


def _proposals(mode: Mode, rng, count: int):
    """Return draws of the Gaussian at a mode, (count, L), their log densities under it, and its log evidence."""
    size = len(mode.step)
    root, volume = np.linalg.cholesky(mode.curvature), np.log(mode.scale).sum()
    noise = rng.standard_normal((count, size))
    step = mode.step + mode.scale * solve_triangular(root, noise.T, lower=True, trans=1).T
    constant = np.log(np.diagonal(root)).sum() - volume - 0.5 * size * np.log(2 * np.pi)
    return step, constant - 0.5 * (noise**2).sum(1), -mode.energy - constant


def _without_replacement(rng, weight, count: int):
    """Return places of ``count`` distinct draws, each picked with a probability proportional to its weight, at most 1.

    Systematic sampling in random order (Madow 1949, *Annals of Mathematical Statistics* 20).
    """
    order = rng.permutation(len(weight))
    share, sure = weight[order], np.zeros(len(weight), bool)
    while True:
        rest = share[~sure].sum()
        wanted = np.where(sure, 1.0, share * (count - sure.sum()) / rest)
        if not (wanted > 1).any():
            break
        sure |= wanted > 1
    places = np.searchsorted(wanted.cumsum(), rng.random() + np.arange(count), side="right")
    return rng.permutation(order[np.minimum(places, len(weight) - 1)])


def _in_batches(function, steps, origin, model, statistics):
    """Return ``function(step, origin, model, statistics)`` of each of many steps, compiled once per shape."""
    jax = program.jax
    largest = max(np.size(a) for a in (1, *jax.tree_util.tree_leaves(statistics)))
    size = int(np.clip(DENSITIES // largest, *_BATCHES))

    def batch(steps, *arguments):
        return jax.vmap(lambda step: function(step, *arguments))(steps)

    def make():  # not by `program.build`, which compiles faster: its program took three times as long over 1e4 rows
        return jax.jit(batch).lower(np.zeros((size, steps.shape[1])), origin, model, statistics).compile()

    run, count = kept((function.__qualname__, size, *shapes(model, statistics)), make), len(steps)
    steps = np.concatenate([steps, np.broadcast_to(steps[:1], (-count % size, steps.shape[1]))])
    found = [run(own, origin, model, statistics) for own in steps.reshape(-1, size, steps.shape[1])]
    return jax.tree_util.tree_map(lambda *parts: np.concatenate(parts)[:count], *found)
