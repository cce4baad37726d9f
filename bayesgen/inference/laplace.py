r"""The Laplace approximation: draws about the mode, half with heavy tails, corrected and tested by importance weights.

`docs/howto/laplace.md` says what the approximation is. A Gaussian φ alone does not do as a proposal: where the
posterior of the L latents z has heavier tails, p/φ has no bound and its variance may be infinite, while no draw shows
it. So half of the S proposals come from φ, half from the multivariate t density τ with 4 degrees of freedom and the
same centre and matrix. All are weighted by the mixture that they come from (Veach and Guibas 1995, *SIGGRAPH*;
Hesterberg 1995, *Technometrics* 37),

.. math:: q = \tfrac12 \varphi + \tfrac12 \tau, \qquad w_s = p(x, z_s)/q(z_s), \qquad c_s = \varphi(z_s)/q(z_s)

where w is at most 2p/φ and at most 2p/τ. With S/2 draws of each part, the mean of f(z) w over all S has the expectation

.. math:: \tfrac1S \left[ \tfrac S2 E_\varphi f w + \tfrac S2 E_\tau f w \right] = \int q f w \, dz = \int f p \, dz.

*Evidence.* For f = 1 the mean of w is p(x), without bias; in the same way the mean of c is 1, which is known. So
log p(x) is estimated by log(mean w / mean c): c is a control variate, which takes away all error where the posterior is
φ itself (Owen and Zhou 2000, *Journal of the American Statistical Association* 95). To first order its error is that of
the mean of w/mean w - c/mean c: as each part of q has a fixed number of draws, the root of the sum of the squared
deviations of these terms from the mean of their part, over S.

*Draws.* Systematic resampling in random order (Madow 1949, *Annals of Mathematical Statistics* 20) picks n of S: at
n w_s/Σw expected times, rounded up or down, so none twice unless a weight exceeds Σw/n. A share p of the posterior then
comes out with a variance of about p(1 - p)(1/n + 1/S'), where S' = (Σw)²/Σw² is the number of draws that the
weighted ones are worth (Kong, Liu and Wong 1994, same journal, 89). Of a posterior that is a Gaussian of 2, 10, 50 or
200 latents, .96, .86, .72 and .62 of the proposals are left.

*More rounds.* The first takes 4n proposals. If they are worth fewer than 2n, they are used for the weighted mean and
covariance alone, shrunk to those of φ as by L draws, and 8n proposals are drawn anew from four parts: φ, τ, and a
Gaussian and a t density there. These are used for a mean and covariance that know more of the tails, and so once more:
all proposals of the fourth and last round come from eight parts. As the earlier parts remain, no tail is lost; as the
draws that chose the parts are not used again, no bias comes in.

The shape k of the largest weights detects what these parts reach too seldom; what they never reach, no weight shows: a
long tail of a few latents among many, since a t density of many latents is wide in all of them at once. (Gelman et al.
2013, *Bayesian Data Analysis*, sections 4.1, 10.4 and 13.3; Vehtari et al. 2024, *Journal of Machine Learning Research*
25.)
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp

from bayesgen.core import program
from bayesgen.core.errors import Argument, InputError, InputTypeError, warn
from bayesgen.core.registry import saveable
from bayesgen.inference.base import SamplerWarning, distance_from_exact, register, require_proper
from bayesgen.inference.point import potential, search, sites
from bayesgen.inference.whitening import collapsed
from bayesgen.models.gaps import PatternMoments
from bayesgen.models.model import Model, summarise
from bayesgen.models.unknown_labels import UnknownClasses
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.draws import LARGEST_K, generator, pareto_shape, systematic
from bayesgen.numerics.pieces import DENSITIES
from bayesgen.posterior.compiled import fresh, kept, shapes
from bayesgen.posterior.posterior import ParameterDraws

_WORST = 0.8  # Pareto k of classes that no label tells, above which ranks of the truth among the draws are not uniform
_FEWEST = 100  # effective proposals, below which there is a warning whatever k is
_ENOUGH = 2  # effective proposals for each draw that is kept; below, there are more rounds
_LAST = 20_000  # proposals of the last round, at least
_FREEDOM = 4  # degrees of freedom of the t density: heavy tails that still have a covariance
_BATCHES = (8, 1024)  # fewest and most densities computed at a time
_WORK = 5e8  # operations of a Hessian, a quarter of a minute


def _refuse_long(statistics) -> None:
    """Raise for full covariances of rows with gaps whose Hessian takes minutes: it factorises each pattern per latent.

    In 200 rows of two classes with 5 % gaps 12 columns take 14 s, and 24 do not end.
    """
    for sums in getattr(statistics, "leaves", {}).values():
        if not isinstance(sums, PatternMoments):
            continue
        patterns, *classes, columns = sums.moments.mean.shape
        latents = math.prod(classes) * columns * (columns + 3) / 2
        if latents * patterns * math.prod(classes) * columns**3 > _WORK:
            raise InputError(
                f"Laplace of a full covariance of {columns} columns whose rows have {patterns} patterns of gaps would "
                "take minutes to hours: use ",
                Argument("inference", "map"),
                Argument("covariance", "diagonal", ", or a diagonal covariance"),
                ", or fill the gaps before",
            )


@saveable
@register("laplace")
@dataclass(frozen=True)
class Laplace:
    """Draws about the posterior mode, corrected by importance weights: a posterior and an evidence in seconds.

    It fits every model whose density is twice differentiable, conjugate or not, in seconds where NUTS takes minutes,
    with an estimate of the evidence even where there is no formula. It returns `ParameterDraws` with one chain of
    independent draws, and in ``run``

    - "log_evidence": log p(data) from the importance weights, with its standard error "log_evidence_error";
    - "log_evidence_gaussian": the same if the posterior were a Gaussian;
    - "effective_proposals": how many draws of the posterior itself would do what the weighted proposals do;
    - "pareto_k": the shape of the largest weights; none is large where it is 0 or below. Above 0.7, or where fewer than
      100 proposals are effective, a `SamplerWarning` says that the posterior is too far from a Gaussian, and to use
      NUTS. Below, quantiles of the draws and the error of the evidence are right in the models that were checked:
      ``docs/reliability.md`` has the table.

    It finds one mode: neither weights nor k show others far away, nor a tail where nothing was proposed.

    Parameters
    ----------
    num_samples : int
        Number of draws kept. A draw is kept twice only where its weight is more than that of one draw. They are picked
        from four times as many proposals. If these are worth fewer than twice ``num_samples``, two rounds of twice as
        many and one of 20,000, or of 20 times ``num_samples`` if that is more, follow what the rounds before found.

    Raises
    ------
    TypeError
        For linear regression with Laplace noise or a Laplace prior, whose density has kinks.
    ValueError
        Where no mode is found, or the prior is improper; for rows without a certain label where k is above 0.8.

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

    def __post_init__(self):
        check_count("Laplace: num_samples", self.num_samples)

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> ParameterDraws:
        """Return one chain of independent draws; see the class for its ``run``."""
        if not model.smooth:
            raise InputTypeError(
                f"{type(model).__name__} with Laplace noise or a Laplace prior has no Laplace approximation: its "
                "density is not twice differentiable; use ",
                Argument("inference", "nuts"),
                ", or 'map' for the mode alone",
            )
        require_proper(model, "Laplace")
        statistics, rng, begun = summarise(model, data), generator(seed), time.perf_counter()
        _refuse_long(statistics)
        with program.x64():
            sampled, sums, restore = collapsed(model, statistics)
            traced, copied = fresh(sampled, sums)
            mode = search(potential, traced, copied, "posterior mode")
            size, root = len(mode.step), np.linalg.cholesky(mode.curvature)
            volume = np.log(mode.scale).sum() - np.log(np.diagonal(root)).sum()  # log |H| / -2

            def propose(count, *places):
                """Return proposals, in units where φ is N(0, I) and as steps, with energies, log w and c."""
                units, density, control = _proposals(rng, count, *places)
                step = mode.step + mode.scale * solve_triangular(root, units.T, lower=True, trans=1).T
                energy = _in_batches(potential, step, mode.origin, traced, copied)
                return units, step, energy, np.where(np.isfinite(energy), volume - energy - density, -np.inf), control

            places, enough = [(np.zeros(size), np.eye(size))], _ENOUGH * self.num_samples
            units, step, energy, log_weight, control = propose(2 * enough, *places)
            weight, effective = _weights(log_weight, self.num_samples)
            for count in (4 * enough, 4 * enough, max(_LAST, 10 * enough)) if effective < enough else ():
                places.append(_moments(units, weight, effective))
                units, step, energy, log_weight, control = propose(count, *places)
                weight, effective = _weights(log_weight, self.num_samples)
            picked = systematic(rng, weight, self.num_samples)
            samples = restore(_in_batches(sites, step[picked], mode.origin, traced, copied))
        k = float(np.nan_to_num(pareto_shape(log_weight), nan=np.inf))  # of too few proposals nothing is known
        evidence, error = _evidence(weight, control, 2 * len(places))
        run = {
            "sampling_time": time.perf_counter() - begun,
            "log_evidence": float(log_weight.max() + evidence),
            "log_evidence_error": float(error),
            "log_evidence_gaussian": float(0.5 * size * np.log(2 * np.pi) + volume - mode.energy),
            "effective_proposals": effective,
            "pareto_k": k,
        }
        if k > _WORST and isinstance(model, UnknownClasses):
            problem = f"Laplace: the Pareto k of the importance weights is {k:.2f}, above {_WORST:g}: of rows without "
            problem += "a certain label the posterior has other modes, or a tail, which the draws miss; use "
            raise InputError(problem, Argument("inference", "nuts"), ", or 'memberships'")
        doubt = ""
        if k > LARGEST_K:
            doubt = f"the Pareto k of the importance weights is {k:.2f}, above {LARGEST_K:g}"
        elif effective < min(_FEWEST, self.num_samples):
            doubt = f"all weighted proposals are worth {effective:.0f} draws only"
        if doubt:
            warning = SamplerWarning(
                f"Laplace: {doubt}: the posterior is too far from a Gaussian for the draws and the evidence to be "
                "relied upon; use ",
                Argument("inference", "nuts"),
            )
            warn(warning)
        chain = {site: v[None] for site, v in samples.items()}
        stats = {"lp": -energy[picked][None]}
        return ParameterDraws(model, chain, stats, distance_from_exact(model, statistics, chain), run)


@np.errstate(under="ignore")
def _proposals(rng, count: int, *places):
    """Draw from a Gaussian and a t density at each place, a centre and a root of a covariance, equally many of each.

    Return the draws, (count, L), their log densities under the mixture, and the first Gaussian's share of the density.
    """
    component = np.arange(count) % (2 * len(places))
    heavy = component % 2 == 1
    noise = rng.standard_normal((count, len(places[0][0])))
    noise[heavy] *= np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, heavy.sum()))[:, None]
    units = np.empty_like(noise)
    for i, (centre, root) in enumerate(places):
        units[component // 2 == i] = centre + noise[component // 2 == i] @ root.T
    densities = np.concatenate([_log_densities(units, *place) for place in places])
    density = logsumexp(densities, axis=0, b=np.bincount(component, minlength=len(densities))[:, None] / count)
    return units, density, np.exp(densities[0] - density)


def _log_densities(units, centre, root):
    """Return the log density of a Gaussian, and that of a t density, (2, count)."""
    size, half = len(centre), (_FREEDOM + len(centre)) / 2
    squares = (solve_triangular(root, (units - centre).T, lower=True) ** 2).sum(0)
    volume = np.log(np.diagonal(root)).sum()
    gaussian = -0.5 * squares - 0.5 * size * np.log(2 * np.pi)
    t = gammaln(half) - gammaln(_FREEDOM / 2) - 0.5 * size * np.log(_FREEDOM * np.pi)
    return np.stack([gaussian, t - half * np.log1p(squares / _FREEDOM)]) - volume


@np.errstate(under="ignore", invalid="ignore")
def _weights(log_weight, least: int):
    """Return weights relative to the largest, more than ``least`` above 0, and how many draws they are worth."""
    weight = np.exp(log_weight - log_weight.max())
    if not (weight > 0).sum() > least:
        raise ValueError("the density of almost all draws about the mode is 0; use 'nuts'")
    return weight, float(weight.sum() ** 2 / (weight**2).sum())


@np.errstate(under="ignore")
def _evidence(weight, control, parts: int):
    """Return the log of mean weight over mean control, and its standard error; draws of each of the parts in turn."""
    terms = weight / weight.mean() - control / control.mean()
    squares = sum(len(draws) * draws.var() for draws in (terms[first::parts] for first in range(parts)))
    return np.log(weight.mean() / control.mean()), squares**0.5 / len(terms)


@np.errstate(under="ignore")
def _moments(units, weight, effective: float):
    """Return weighted mean and root of the covariance, shrunk to those of N(0, I) as by one draw for each latent."""
    size, share = units.shape[1], weight / weight.sum()
    trust, mean = effective / (effective + size), share @ units
    covariance = (units - mean).T * share @ (units - mean)
    return trust * mean, np.linalg.cholesky(trust * covariance + (1 - trust) * np.eye(size))


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
    found = [run(few, origin, model, statistics) for few in steps.reshape(-1, size, steps.shape[1])]
    return jax.tree_util.tree_map(lambda *parts: np.concatenate(parts)[:count], *found)
