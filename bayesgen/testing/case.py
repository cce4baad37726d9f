"""Parts of a law: a case, its rows and parameters, its densities, and the error allowed to a mean over draws.

Three kinds of models differ only here. A leaf has rows (x,); a classifier (x, t) with p(x, t); a regression (x, t) with
p(t | x). ``t`` are codes where the model answers class by class, else a number.
"""

import functools
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from arviz_stats import ess  # pyright: ignore[reportPrivateImportUsage]
from numpyro import handlers
from numpyro.infer import Predictive
from numpyro.infer.util import log_density

from bayesgen.core import program
from bayesgen.inference import NUTS, fit
from bayesgen.models import BetaBinomial, ClassConditional, DirichletMultinomial

SAMPLER = NUTS(num_samples=1000, num_warmup=500, num_chains=2)
LEAST_ESS = 200  # of 2000 draws; below it a standard error is itself too uncertain to divide by


@dataclass(frozen=True, eq=False)
class Case:
    """A model under test."""

    name: str  # from which the seeds follow
    model: Any  # with a prior strong enough that Monte Carlo over it converges
    rows: Callable[[np.random.Generator, int], tuple]  # complete rows
    without: Mapping[Callable, str] = field(default_factory=dict)  # the laws it is exempt from, and why
    slow: tuple = ()  # the laws that are left to the slow tests, since another line runs the same code
    given: bool = False  # True if x is given: a regression, whose density is p(t | x)
    kinked: bool = False  # True if the log density has kinks, so that at a maximum its slope need not be 0
    digits: float = 1e-10  # relative error of NumPyro's own log density of the predictive
    # log density of the prior in the parameters of the model, by other means than the model's
    log_prior: Callable[[Mapping], float] | None = None

    @property
    def rng(self) -> np.random.Generator:
        """A generator that begins anew each time."""
        return np.random.default_rng(zlib.crc32(self.name.encode()))

    @property
    def parts(self) -> Mapping:
        """The leaves whose rows may have gaps; the one leaf is named ""."""
        if self.given:
            return {}
        return self.model.leaves if isinstance(self.model, ClassConditional) else {"": self.model}

    def data(self, n, gaps="rows", seed=0):
        """Return rows of which a quarter is missing: "entries", whole "rows" (of scalars, one by one), or "no" gaps."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        data = self.rows(rng, n)
        for name, leaf in self.parts.items() if gaps != "no" else ():
            x = block(data, name)
            observation = x.shape[: x.ndim - leaf.event_dim]
            if gaps == "entries" and is_pair(leaf):
                x[..., 0][rng.random(observation) < 0.25] = np.nan
            else:
                whole = gaps == "rows" or isinstance(leaf, DirichletMultinomial)
                x[rng.random(observation if whole else x.shape) < 0.25] = np.nan
        return data


def is_pair(leaf):
    """Return True if an observation is a pair (heads, tosses), of which the heads alone may be missing."""
    return isinstance(leaf, BetaBinomial) and leaf.event_dim == 1


# -- rows --------------------------------------------------------------------------------------------------------------


def block(data, name):
    """The (writable) array of one leaf."""
    return data[0][name] if isinstance(data[0], Mapping) else data[0]


def blocks(data):
    """The arrays of all leaves."""
    return list(data[0].values()) if isinstance(data[0], Mapping) else [data[0]]


def pick(data, rows):
    """The rows at some indices, copied."""
    rows = np.asarray(rows, int)
    return tuple({k: v[rows] for k, v in a.items()} if isinstance(a, Mapping) else a[rows] for a in data)


def by_class(data):
    """Return True if the target is a class."""
    return len(data) > 1 and data[1].dtype.kind == "i"


def asked(data):
    """Return the data of a density: the rows; the target too where it is a number."""
    return data if len(data) > 1 and not by_class(data) else data[0]


# -- densities ---------------------------------------------------------------------------------------------------------


def densities(model, params, data):
    """Log density of each draw and row, (draws, n); of every class, (draws, K, n)."""
    return model.log_likelihood_rows(params, model.check(asked(data)))


def log_joint(posterior, data):
    """Log density of each row, at its own class, by ``posterior.log_predictive``."""
    density = posterior.log_predictive(asked(data))
    return density[np.arange(len(density)), data[1]] if by_class(data) else density


def log_joint_draws(model, params, data):
    """Log density of each draw and row, at its own class: (draws, n)."""
    density = densities(model, params, data)
    return density[:, data[1], np.arange(density.shape[-1])] if by_class(data) else density


def parameters(case, count):
    """Draws of the parameters from the prior: by the model's own algebra, or by its program where it has none."""
    if case.model.conjugate:
        return case.model.sample_parameters(case.rng, (count,))
    return {site: v[:count] for site, v in _from_program(case, max(count, 8)).items()}


@functools.lru_cache(8)
def _from_program(case, count):
    with program.x64():
        key = jax.random.PRNGKey(0)
        draws = compiled(Predictive(case.model.latents, num_samples=count), key)(key)
        return {site: np.asarray(v) for site, v in draws.items()}


def one(params, i=0):
    """One draw."""
    return {site: np.asarray(v[i]) for site, v in params.items()}


@functools.cache
def nuts(case: Case) -> tuple[Any, Any]:
    """The statistics of some rows with gaps, and their posterior by NUTS."""
    statistics = case.model.statistics(*case.data(25))
    return statistics, fit(case.model, statistics, SAMPLER, seed=1)


# -- programs ----------------------------------------------------------------------------------------------------------


def sample_sites(model, params):
    """The sites that are sampled, not computed, at given parameters."""
    latents = handlers.substitute(handlers.seed(model.latents, 0), data=params)  # drawing would be slow to compile
    trace = handlers.trace(latents).get_trace()
    return {name: site for name, site in trace.items() if site["type"] == "sample"}


def sampled(model, params):
    """Values of the sites that are sampled."""
    with program.x64():
        return {name: np.asarray(site["value"]) for name, site in sample_sites(model, params).items()}


def program_log_prior(case):
    """Return the log density of the prior at parameters, by the sites that the program samples."""

    def density(params):
        values = {name: site["value"] for name, site in sample_sites(case.model, params).items()}
        return log_density(case.model.latents, (), {}, values)[0]

    example = {site: np.asarray(v, float) for site, v in one(parameters(case, 1)).items()}
    with program.x64():
        by_sites = compiled(density, example)

    def log_prior(params):
        params = {site: np.asarray(params[site], float) for site in example}
        with program.x64():
            return float(by_sites(params)) + float(case.model.log_abs_det_jacobian(params))

    return log_prior


def compiled(f, *args):
    """Jit without optimising: a function called once is compiled for longer than it runs."""
    return program.build(f, *args, once=True)


# -- how near ----------------------------------------------------------------------------------------------------------


def require(holds, what: str) -> None:
    """Raise an AssertionError with these words, which have the numbers, unless all of ``holds`` is true."""
    if not np.all(holds):
        raise AssertionError(what)


def same(a, b, tolerance, what=""):
    """Require that two pytrees are equal up to ``tolerance`` times the largest entry of each array."""
    (ours, first), (theirs, second) = jax.tree_util.tree_flatten(a), jax.tree_util.tree_flatten(b)
    require(first == second, f"{what}: {first} is not {second}")
    for x, y in zip(ours, theirs, strict=True):
        close(x, y, tolerance, what, tolerance * np.abs(y).max(initial=0))


def close(found, expected, rtol, what, atol=0.0):
    """Require that arrays are equal up to ``rtol`` times each entry of ``expected``, and ``atol``."""
    np.testing.assert_allclose(found, expected, rtol, atol, err_msg=what)


def near(draws, exact, variance=0.0, what="") -> None:
    """Require that means over draws are within five standard errors of ``exact``; see `z_scores`."""
    z = np.abs(z_scores(draws, exact, variance))
    require(z < 5, f"{what}: {z.max(initial=0):.1f} standard errors away, where 5 are allowed")


def z_scores(draws, exact, variance=0.0):
    """Standard scores of means over draws (chains, draws, ...) against ``exact``, known up to ``variance``.

    An AssertionError says where the effective sample size does not carry a standard error.
    """
    flat = np.moveaxis(np.asarray(draws, float).reshape(*draws.shape[:2], -1), -1, 0)
    if not len(flat):
        return np.zeros(draws.shape[2:])
    size = np.array([ess(a, method="mean") for a in flat])
    require(size > LEAST_ESS, f"an effective sample size of {size.min():.0f}, below {LEAST_ESS}")
    shape = draws.shape[2:]
    return (flat.mean((1, 2)).reshape(shape) - exact) / np.sqrt((flat.var((1, 2)) / size).reshape(shape) + variance)
