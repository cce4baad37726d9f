"""The laws that every model obeys, and the one table of models they are checked over.

A law takes a `Case` and asserts. A new model is one new line in `CASES`; a leaf of one's own can be put through
`LAWS` from anywhere. Nothing here repeats a model's algebra: closed forms meet numerical integration, Monte Carlo,
NUTS, SciPy's and NumPyro's densities, and each other along different roads.
"""

import copy
import functools
import itertools
import math
import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from arviz_stats import ess
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer import Predictive
from numpyro.infer.util import constrain_fn, log_density
from scipy import stats
from scipy.integrate import quad_vec
from scipy.optimize import approx_fprime, minimize

from bayesgen import NUTS, fit, program
from bayesgen.models import (
    BetaBernoulli,
    ClassConditional,
    DirichletCategorical,
    GaussianDiscriminant,
    KnownCategorical,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownVariance,
    SeparationPrior,
)
from bayesgen.models.separation import SeparationDiagonal, SeparationFull

SAMPLER = NUTS(num_samples=1000, num_warmup=500, num_chains=2)
LEAST_ESS = 200  # of 2000 draws; below it a standard error is itself too uncertain to divide by


@dataclass(frozen=True, eq=False)
class Case:
    """A model under test.

    Attributes
    ----------
    name : str
        For the test's id.
    model : Model
        With a prior strong enough that Monte Carlo over it converges.
    rows : callable (rng, n) -> (x,) or (x, t)
        Complete rows.
    without : tuple of laws
        The laws it is exempt from.
    slow : tuple of laws
        Those that are left to the slow tests: another line runs the same code.
    """

    name: str
    model: Any
    rows: Callable[[np.random.Generator, int], tuple]
    without: tuple = ()
    slow: tuple = ()

    @property
    def rng(self):
        return np.random.default_rng(zlib.crc32(self.name.encode()))

    @property
    def parts(self) -> Mapping:
        return self.model.leaves if isinstance(self.model, ClassConditional) else {"": self.model}

    def data(self, n, gaps="rows", seed=0):
        """Rows with a quarter missing: "entries", "rows" (vectors are missing as a whole, scalars one by one), "no"."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        data = self.rows(rng, n)
        for part, leaf in self.parts.items() if gaps != "no" else ():
            x = block(data, part)
            whole = leaf.event_dim and gaps == "rows"
            mask = rng.random(x.shape[:1] if whole else x.shape) < 0.25
            x[mask] = np.nan
        return data


def block(data, part):
    """The (writable) array of one leaf."""
    return data[0][part] if isinstance(data[0], Mapping) else data[0]


def pick(data, rows):
    """The rows at some indices, copied."""
    rows = np.asarray(rows, int)
    return tuple({k: v[rows] for k, v in a.items()} if isinstance(a, Mapping) else a[rows] for a in data)


def length(data):
    return len(next(iter(data[0].values())) if isinstance(data[0], Mapping) else data[0])


def log_joint(posterior, data):
    """Log p(x_i, t_i | ...) of each row, by ``posterior.log_predictive``."""
    density = posterior.log_predictive(data[0])
    return density[np.arange(len(density)), data[1]] if len(data) > 1 else density


def log_joint_draws(model, params, data):
    """Log p(x_i, t_i | params) for each draw and row: (draws, n)."""
    density = model.log_likelihood_rows(params, model.check(data[0]))
    return density[:, data[1], np.arange(density.shape[-1])] if len(data) > 1 else density


def parameters(case, count):
    """Draws of the parameters from the prior: by the model's own algebra, or by its program where it has none."""
    if case.model.conjugate:
        return case.model.sample_parameters(case.rng, (count,))
    with program.x64():
        draws = Predictive(case.model.latents, num_samples=count)(jax.random.PRNGKey(0))
        return {site: np.asarray(v) for site, v in draws.items()}


def same(a, b, tolerance):
    """Two pytrees are equal up to ``tolerance`` times the largest entry of each array."""
    (left, one), (right, two) = jax.tree_util.tree_flatten(a), jax.tree_util.tree_flatten(b)
    assert one == two
    for x, y in zip(left, right, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * np.abs(y).max(initial=0))


def z_scores(draws, exact, variance=0.0):
    """Standard scores of means over draws (chains, draws, ...) against ``exact``, known up to ``variance``.

    The test fails where the effective sample size does not carry a standard error.
    """
    flat = np.moveaxis(np.asarray(draws, float).reshape(*draws.shape[:2], -1), -1, 0)
    if not len(flat):
        return np.zeros(draws.shape[2:])
    size = np.array([ess(a, method="mean") for a in flat])
    assert size.min() > LEAST_ESS, f"effective sample size {size.min():.0f}"
    shape = draws.shape[2:]
    return (flat.mean((1, 2)).reshape(shape) - exact) / np.sqrt((flat.var((1, 2)) / size).reshape(shape) + variance)


@functools.cache
def nuts(case: Case):
    """The statistics of some rows with gaps, and their posterior by NUTS."""
    statistics = case.model.statistics(*case.data(25))
    return statistics, fit(case.model, statistics, SAMPLER, seed=1)


# -- statistics --------------------------------------------------------------------------------------------------------


def pieces_make_the_whole(case):
    """Statistics add: pieces in any order, one of them empty, to rounding (60 sums of doubles: 60 eps = 1e-14)."""
    for gaps in "rows", "entries":
        data = case.data(60, gaps)
        whole = case.model.statistics(*data)
        cuts = np.split(case.rng.permutation(60), [7, 7, 31])
        pieces = [case.model.statistics(*pick(data, rows)) for rows in cuts]
        for a, b, c, d in itertools.permutations(pieces):
            same((a + b) + (c + d), whole, 1e-12)


def a_weight_is_a_row_repeated(case):
    """An integer weight repeats a row, and zero leaves it out, whatever is written in it."""
    data = case.data(40)
    weight = case.rng.integers(0, 4, 40)
    repeated = pick(data, np.repeat(np.arange(40), weight))
    same(case.model.statistics(*data, weight=weight.astype(float)), case.model.statistics(*repeated), 1e-12)


def a_weight_may_be_a_fraction(case):
    """The log likelihood is linear in the weights: statistics of weight w and 1 - w add to those of weight 1."""
    data, weight = case.data(40), case.rng.random(40)
    pieces = [case.model.statistics(*data, weight=w) for w in (weight, 1 - weight)]
    same(pieces[0] + pieces[1], case.model.statistics(*data), 1e-12)


def likelihood_of_statistics_is_that_of_rows(case):
    """η . T = Σ rows of the product = Σ rows of NumPyro's log_prob, at parameters from the prior.

    The terms are of order 1 to 1000, so 1e-10 relative allows for their cancellation.
    """
    model = case.model
    data, params = case.data(30), parameters(case, 3)
    rows = log_joint_draws(model, params, data)
    for i in range(3):
        one = {site: np.asarray(v[i]) for site, v in params.items()}
        np.testing.assert_allclose(
            log_joint_draws(model, {k: v[None] for k, v in one.items()}, data)[0], rows[i], 1e-12
        )
        with program.x64():
            np.testing.assert_allclose(rows[i], program_log_prob(case, one, data), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(model.log_likelihood(one, model.statistics(*data)), rows[i].sum(), rtol=1e-10)


def program_log_prob(case, params, data):
    """Log p(x_i, t_i | params) by the `log_prob` of NumPyro's distributions; vectors are whole or missing."""
    result, groups = 0.0, None
    if isinstance(case.model, ClassConditional):
        groups = data[1]
        result = np.log(params["classes.probability"])[groups]
    for part, leaf in case.parts.items():
        x = block(data, part)
        own = params if groups is None else leaf.select_class(case.model.site(params, part), groups)
        event = tuple(range(x.ndim - leaf.event_dim, x.ndim))
        missing = np.isnan(x)
        likelihood = leaf.likelihood(own)
        density = likelihood.log_prob(np.where(missing, 1.0, x).astype(int if likelihood.is_discrete else float))
        density = np.where(missing.all(event) if event else missing, 0.0, density)
        result = result + density.reshape(len(x), -1).sum(1)
    return result


# -- Bayes' rule -------------------------------------------------------------------------------------------------------


def learning_goes_in_steps(case):
    """Today's posterior is tomorrow's prior, evidence multiplies, and no rows teach nothing."""
    model, data = case.model, case.data(30)
    first, second, none = (model.statistics(*pick(data, rows)) for rows in (range(12), range(12, 30), []))
    half = model.update(first)
    at_once = model.update(first + second)
    new = case.data(6, seed=1)
    same(log_joint(half.update(second), new), log_joint(at_once, new), 1e-11)
    whole = model.log_evidence(first + second)
    assert math.isclose(model.log_evidence(first) + half.log_evidence(second), whole, rel_tol=1e-11)
    same(log_joint(model.update(none), new), log_joint(model, new), 1e-14)
    assert model.log_evidence(none) == 0


def predictive_is_an_evidence_ratio(case):
    """p(x | D) = p(D, x) / p(D): Student-t and friends against the normalising constants."""
    model = case.model
    statistics, new = model.statistics(*case.data(20)), case.data(8, seed=1)
    ratio = [
        model.log_evidence(statistics + model.statistics(*pick(new, [i]))) - model.log_evidence(statistics)
        for i in range(8)
    ]
    np.testing.assert_allclose(log_joint(model.update(statistics), new), ratio, rtol=1e-10, atol=1e-10)


def predictive_is_a_mean_over_draws(case):
    """p(x | D) = E p(x | params) over exact draws: independent, so |z| < 5 with the plain standard error."""
    posterior = case.model.update(case.model.statistics(*case.data(12)))
    new = case.data(8, "entries", seed=1)
    params = posterior.sample_parameters(case.rng, (20_000,))
    ratio = np.exp(log_joint_draws(posterior, params, new) - log_joint(posterior, new))
    error = ratio.std(0) / np.sqrt(len(ratio))
    assert (error < 0.05).all()
    assert (np.abs(ratio.mean(0) - 1) <= 5 * error + 1e-12).all()


def evidence_is_a_mean_over_the_prior(case):
    """p(D) = E p(D | params) over exact draws of the prior, for a few rows, so that the mean converges."""
    data = case.data(1, "no")
    features = sum(block(data, part)[0].size for part in case.parts)
    data = case.data(max(1, 6 // features), "no")
    log_likelihood = log_joint_draws(case.model, case.model.sample_parameters(case.rng, (100_000,)), data).sum(1)
    ratio = np.exp(log_likelihood - case.model.log_evidence(case.model.statistics(*data)))
    error = ratio.std() / np.sqrt(len(ratio))
    assert error < 0.1
    assert abs(ratio.mean() - 1) <= 5 * error + 1e-12


def predictive_program_is_log_predictive(case):
    """The predictive as a NumPyro distribution, features multiplied, is the closed form."""
    model = case.model.update(case.model.statistics(*case.data(12)))
    x = case.data(8, "no", seed=1)[0]
    with program.x64():
        predictive = model.predictive()
        density = predictive.log_prob(x.astype(int) if predictive.is_discrete else x)
        density = np.asarray(density).reshape(8, -1).sum(1)
    np.testing.assert_allclose(density, model.log_predictive(x), rtol=1e-10, atol=1e-10)


# -- missing entries ---------------------------------------------------------------------------------------------------


def integrate(f, support, about):
    """Sum or integrate over the values of one entry, as the support of NumPyro's likelihood says."""
    if support.is_discrete:
        low, high = getattr(support, "lower_bound", 0), getattr(support, "upper_bound", 1)
        return sum(f(float(v)) for v in range(int(low), int(high) + 1))
    if hasattr(support, "lower_bound"):
        return quad_vec(f, float(support.lower_bound), np.inf, epsabs=1e-11, epsrel=1e-9)[0]
    return quad_vec(lambda u: f(about + u), -np.inf, np.inf, epsabs=1e-11, epsrel=1e-9)[0]


def observed_entries(case, data):
    """Yield (part, support, index) of one observed entry of each feature of each leaf."""
    params = {k: v[0] for k, v in parameters(case, 1).items()}
    for part, leaf in case.parts.items():
        own = leaf.select_class(case.model.site(params, part), [0]) if part or len(data) > 1 else params
        support = leaf.likelihood(own).support
        x = block(data, part)
        for place in np.ndindex(x.shape[1:]):
            seen = ~np.isnan(x[(slice(None), *place)])
            others = ~np.isnan(x).all(tuple(range(1, x.ndim))) if x.ndim > 1 else seen
            yield part, support, (int(np.argmax(seen & others)), *place)


def missing_is_marginal(case):
    """A missing entry is integrated out: ∫ p(..., x_j, ...) dx_j = p(..., missing, ...) at prediction."""
    posterior = case.model.update(case.model.statistics(*case.data(12)))

    def density(data, row):
        return np.exp(posterior.log_predictive(pick(data, [row])[0])[0])

    _integrates_out(case, case.data(12, "entries", seed=1), density)


def missing_at_fit_is_marginal(case):
    """The same for the likelihood of all rows, given parameters."""
    params = {k: v[0] for k, v in parameters(case, 1).items()}

    def density(data, row):
        return np.exp(case.model.log_likelihood(params, case.model.statistics(*data)))

    _integrates_out(case, case.data(6, "entries"), density)


def evidence_of_missing_is_marginal(case):
    """And for the evidence, where the posterior is exact."""

    def density(data, row):
        return np.exp(case.model.log_evidence(case.model.statistics(*data)))

    _integrates_out(case, case.data(6), density, vectors=False)


def _integrates_out(case, data, density, vectors=True):
    for part, support, index in observed_entries(case, data):
        if case.parts[part].event_dim and not vectors:
            continue  # with a part of a vector missing there is no exact evidence
        value = block(data, part)[index]

        def at(entry, part=part, index=index):
            changed = copy.deepcopy(data)
            block(changed, part)[index] = entry
            return density(changed, index[0])

        scale = at(value)
        whole = integrate(lambda entry, at=at, scale=scale: at(entry) / scale, support, value)
        np.testing.assert_allclose(whole, at(np.nan) / scale, rtol=1e-7)


# -- point estimates ---------------------------------------------------------------------------------------------------


def unconstrain(model, params):
    """The sampled sites of ``params`` as one unconstrained vector, and the way back from it to every site."""
    with program.x64():
        z = {
            name: biject_to(site["fn"].support).inv(jax.numpy.asarray(site["value"]))
            for name, site in sample_sites(model, params).items()
        }
        vector, unravel = ravel_pytree(z)
        back = compiled(lambda v: constrain_fn(model.latents, (), {}, unravel(v), return_deterministic=True), vector)

    def constrain(vector):
        with program.x64():
            return {site: np.asarray(v) for site, v in back(vector).items()}

    return np.asarray(vector), constrain


def sample_sites(model, params):
    """The sites that are sampled, not computed, at given parameters."""
    latents = handlers.substitute(handlers.seed(model.latents, 0), data=params)  # drawing would be slow to compile
    trace = handlers.trace(latents).get_trace()
    return {name: site for name, site in trace.items() if site["type"] == "sample"}


def sampled(model, params):
    """Values of the sites that are sampled."""
    with program.x64():
        return {name: np.asarray(site["value"]) for name, site in sample_sites(model, params).items()}


def compiled(f, *args):
    """Jit without optimising: what is called once is compiled for longer than it runs."""
    return program.build(f, *args, once=True)


def _is_maximum(case, point, objective):
    """No step, large or small, is an improvement; the slope is zero; and a search from elsewhere ends there."""
    best, constrain = unconstrain(case.model, point)

    def f(vector):
        try:
            return objective(constrain(vector))
        except np.linalg.LinAlgError:  # a search that strays to where a covariance is singular to rounding
            return -1e10

    top, rng = f(best), case.rng
    again = constrain(best)
    same(again, {site: np.asarray(point[site]) for site in again}, 1e-9)
    rounding = 1e-11 * (1 + abs(top))
    for size in (1.0, 0.1, 1e-2, 1e-3):
        for _ in range(10):
            step = size * rng.standard_normal(best.shape)
            assert f(best + step) < top + rounding
    # Central differences of step 1e-4 have an error of about 1e-8 times third derivatives of order n = 40.
    slope = [(f(best + e) - f(best - e)) / 2e-4 for e in 1e-4 * np.eye(len(best))]
    np.testing.assert_allclose(slope, 0, atol=1e-4)
    if len(best) <= 6:
        start = best + 0.5 * rng.standard_normal(best.shape)
        found = minimize(lambda v: -f(v), start, jac=lambda v: -approx_fprime(v, f, 1e-6), method="BFGS")
        np.testing.assert_allclose(-found.fun, top, rtol=1e-7)
        np.testing.assert_allclose(found.x, best, atol=2e-3)


def statistics_with_gaps(case):
    """Statistics of rows with gaps; of vectors both missing as a whole and in part."""
    vectors = any(leaf.event_dim for leaf in case.parts.values())
    return [case.model.statistics(*case.data(40, gaps)) for gaps in (["rows", "entries"] if vectors else ["rows"])]


def ml_maximises(case):
    """Maximum likelihood maximises the likelihood."""
    for statistics in statistics_with_gaps(case):
        point = fit(case.model, statistics, "ml").params
        _is_maximum(case, point, lambda params, s=statistics: float(case.model.log_likelihood(params, s)))


def map_maximises(case):
    """MAP maximises likelihood times prior density, the density as SciPy writes it in the parameters of the model."""
    for statistics in statistics_with_gaps(case):
        point = fit(case.model, statistics, "map").params

        def objective(params, statistics=statistics):
            return float(case.model.log_likelihood(params, statistics)) + log_prior(case.model, params)

        _is_maximum(case, point, objective)


def log_prior(model, params) -> float:
    """Log density of the parameters, by SciPy; of a classifier's, by class."""
    if not isinstance(model, ClassConditional):
        return float(PRIORS[type(model)](model, params))
    result = log_prior(model.classes, model.site(params, "classes"))
    for name, leaf in model.leaves.items():
        own, groups = model.site(params, name), range(len(model.class_names))
        shares = getattr(leaf, "shared", False) or getattr(leaf, "tied", ())
        if leaf_density := GROUPED.get((type(leaf), bool(shares))):
            result += float(leaf_density(leaf, own))
        else:
            result += sum(log_prior(leaf, {site: v[k] for site, v in own.items()}) for k in groups)
    return result


def _dirichlet(leaf, params):
    rows = params["probability"].reshape(-1, params["probability"].shape[-1])
    alpha = np.broadcast_to(leaf.alpha, params["probability"].shape).reshape(rows.shape)
    return sum(stats.dirichlet(a).logpdf(p / p.sum()) for a, p in zip(alpha, rows, strict=True))


def _normal_inverse_gamma(leaf, params):
    mean, variance = params["mean"], params["variance"]
    spread = stats.norm(leaf.mean, np.sqrt(variance / leaf.kappa)).logpdf(mean)
    return (stats.invgamma(leaf.alpha, scale=leaf.beta).logpdf(variance) + spread).sum()


def _normal_inverse_wishart(leaf, params):
    covariance = params["covariance"]
    spread = stats.multivariate_normal(leaf.mean, covariance / leaf.kappa).logpdf(params["mean"])
    return stats.invwishart(float(leaf.nu), leaf.scale).logpdf(covariance) + spread


PRIORS: dict[type, Callable] = {  # of the parameters of one class
    BetaBernoulli: lambda leaf, p: stats.beta(leaf.a, leaf.b).logpdf(p["probability"]).sum(),
    DirichletCategorical: _dirichlet,
    KnownCategorical: lambda leaf, p: 0.0,
    NormalKnownVariance: lambda leaf, p: stats.norm(leaf.mean, leaf.sd).logpdf(p["mean"]).sum(),
    NormalInverseGamma: _normal_inverse_gamma,
    NormalInverseWishart: _normal_inverse_wishart,
}


def _shared_normal_inverse_wishart(leaf, params):
    covariance = params["covariance"]
    spread = [stats.multivariate_normal(leaf.mean, covariance / leaf.kappa).logpdf(mean) for mean in params["mean"]]
    return stats.invwishart(float(leaf.nu), leaf.scale).logpdf(covariance) + sum(spread)


def _tied_normal_inverse_gamma(leaf, params):
    variance = params["variance"]
    alpha, beta = (a if "feature" not in leaf.tied else a.reshape(()) for a in (leaf.alpha, leaf.beta))
    density = stats.invgamma(alpha, scale=beta).logpdf(variance).sum()
    variance = variance[..., None] if "feature" in leaf.tied else variance
    return density + stats.norm(leaf.mean, np.sqrt(variance / leaf.kappa)).logpdf(params["mean"]).sum()


def _separation(leaf, params):
    """In means, standard deviations and the correlation r of two columns: LKJ(η) is (1 + r)/2 ~ Beta(η, η)."""
    density = stats.norm(leaf.mean, leaf.mean_sd).logpdf(params["mean"]).sum()
    density += stats.halfnorm(scale=leaf.scale).logpdf(params["sd"]).sum()
    if "covariance" in params:
        assert leaf.mean.shape == (2,)
        r = params["covariance"][..., 0, 1] / params["sd"].prod(-1)
        density += (stats.beta(leaf.eta, leaf.eta).logpdf((1 + r) / 2) - np.log(2)).sum()
    return density


GROUPED: dict[tuple[type, bool], Callable] = {  # by whether something is shared: of all classes together
    (NormalInverseWishart, True): _shared_normal_inverse_wishart,
    (NormalInverseGamma, True): _tied_normal_inverse_gamma,
    (SeparationFull, True): _separation,
    (SeparationFull, False): _separation,
    (SeparationDiagonal, True): _separation,
    (SeparationDiagonal, False): _separation,
}


# -- programs ----------------------------------------------------------------------------------------------------------


def row_program_is_statistics_program(case):
    """The model function on rows and the latents with the statistics' likelihood have one density."""
    data = case.data(20)
    statistics = case.model.statistics(*data)
    draws = parameters(case, 3)
    params = [{k: v[i] for k, v in draws.items()} for i in range(3)]
    with program.x64():
        values = [sampled(case.model, p) for p in params]
        row_program = compiled(lambda v: log_density(case.model, data, {}, v)[0], values[0])
        prior_program = compiled(lambda v: log_density(case.model.latents, (), {}, v)[0], values[0])
        rows, prior = ([float(f(v)) for v in values] for f in (row_program, prior_program))
    likelihood = [case.model.log_likelihood(p, statistics) for p in params]
    np.testing.assert_allclose(rows, np.add(prior, likelihood), rtol=1e-10, atol=1e-10)


def prior_program_is_the_prior(case):
    """The sampled sites, their volume element put in, have SciPy's density in the parameters of the model."""
    params = {k: v[0] for k, v in parameters(case, 1).items()}
    with program.x64():
        values = sampled(case.model, params)
        density = float(compiled(lambda v: log_density(case.model.latents, (), {}, v)[0], values)(values))
    volume = float(case.model.log_abs_det_jacobian(params))
    assert math.isclose(density + volume, log_prior(case.model, params), rel_tol=1e-9, abs_tol=1e-9)


def nuts_is_exact(case):
    """NUTS meets the exact posterior: quartiles, means, densities and class probabilities, |z| < 5."""
    statistics, sampled = nuts(case)
    exact = fit(case.model, statistics, "exact")
    count = 40_000
    draws = {site: v[0] for site, v in exact.draws(2, (1, count)).items()}
    assert draws.keys() == sampled.samples.keys()
    new = case.data(6, seed=1)
    # Beside the parameters one number that depends on them all: the log likelihood of some rows.
    flat = {site: v.reshape(-1, *v.shape[2:]) for site, v in sampled.samples.items()}
    sizes = [log_joint_draws(case.model, params, new).sum(1) for params in (draws, flat)]
    pairs = [(site, draws[site], found) for site, found in sampled.samples.items()]
    for site, b, a in [*pairs, ("log likelihood", sizes[0], sizes[1].reshape(SAMPLER.num_chains, -1))]:
        assert a.shape[2:] == b.shape[1:], site
        a, b = a.reshape(*a.shape[:2], -1), b.reshape(count, -1)
        free = b.std(0) > 1e-12 * np.abs(b).max(0)  # not the upper triangle of a factor, nor a known value
        np.testing.assert_allclose(a[0, 0, ~free], b[0, ~free], atol=1e-12)
        a, b = a[..., free], b[:, free]
        for level in (0.25, 0.5, 0.75):
            below = a < np.quantile(b, level, axis=0)
            assert (np.abs(z_scores(below, level, level * (1 - level) / count)) < 5).all(), (site, level)
        assert (np.abs(z_scores(a, b.mean(0), b.var(0) / count)) < 5).all(), site
    # The density of a row, relative to the exact predictive, has mean 1; class probabilities by the delta method.
    density = case.model.log_likelihood_rows(flat, case.model.check(new[0]))
    ratio = np.exp(density - exact.log_predictive(new[0]).T)
    ratio = ratio.reshape(SAMPLER.num_chains, -1, *ratio.shape[1:])
    moving = ratio.std((0, 1)) > 1e-12
    assert (np.abs(z_scores(ratio[:, :, moving], 1.0)) < 5).all()
    if len(new) > 1:
        probability = np.exp(exact.log_predictive(new[0])).T
        probability /= probability.sum(0)
        influence = probability * (ratio - (probability * ratio).sum(2, keepdims=True))
        moving = influence.std((0, 1)) > 1e-12  # of a row with nothing in it the probability is the class prior
        assert (np.abs(z_scores(influence[:, :, moving], 0.0)) < 5).all()
        by_nuts = np.exp(sampled.log_predictive(new[0])).T
        np.testing.assert_allclose(by_nuts / by_nuts.sum(0), probability, atol=0.05)


def nuts_is_the_reweighted_prior(case):
    """Where no posterior is exact: NUTS meets draws of the prior weighted by their likelihood, |z| < 5."""
    data = case.data(3, "no")
    # Three rows leave a standard deviation to its prior, down to 0: a step for the bulk diverges there.
    found = fit(case.model, data, replace(SAMPLER, target_accept=0.98, num_samples=2000), seed=1)
    params = parameters(case, 1_000_000)
    log_weight = log_joint_draws(case.model, params, data).sum(1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > LEAST_ESS
    for site, b in params.items():
        b, a = b.reshape(len(b), -1), found.samples[site].reshape(*found.samples[site].shape[:2], -1)
        free = b.std(0) > 1e-12
        a, b = a[..., free], b[:, free]
        mean = weight @ b
        assert (np.abs(z_scores(a, mean, weight**2 @ (b - mean) ** 2)) < 5).all(), site


# -- values ------------------------------------------------------------------------------------------------------------


def is_a_pytree(case):
    """A model is a value: it survives JAX, pickle and copy, compares and hashes by value, and JAX maps over it."""
    model = case.model
    statistics = model.statistics(*case.data(10, "entries"))
    for value in (model, statistics):
        leaves, structure = jax.tree_util.tree_flatten(value)
        for again in (structure.unflatten(leaves), pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert again == value and hash(again) == hash(value)
            same(again, value, 0)
        changed = structure.unflatten([leaf + 0.5 for leaf in leaves])
        assert changed != value
        assert value != 1
    values = sampled(model, {k: v[0] for k, v in parameters(case, 1).items()})
    other = jax.tree_util.tree_map(lambda v: 1.25 * v, model)
    both = jax.tree_util.tree_map(lambda a, b: np.stack([a, b]), model, other)

    def density(model):
        return log_density(model.latents, (), {}, values)[0]

    with program.x64():
        single, mapped = compiled(density, model), compiled(jax.vmap(density), both)
        np.testing.assert_allclose(mapped(both), [single(model), single(other)], rtol=1e-12)


def draws_have_named_dims(case):
    """Draws go to ArviZ with as many names as axes, labels as long as the axes, and come back as they were."""
    posterior = fit(case.model, case.model.statistics(*case.data(12)), "exact")
    tree = posterior.to_arviz(0)
    for site, values in posterior.draws(0).items():
        array = tree["posterior"][site]
        assert array.dims[:2] == ("chain", "draw")
        np.testing.assert_array_equal(array.values, values)
        if isinstance(case.model, ClassConditional) and "class" in array.dims:
            assert list(array.coords["class"].values) == list(case.model.class_names)


LAWS = [
    pieces_make_the_whole,
    a_weight_is_a_row_repeated,
    a_weight_may_be_a_fraction,
    likelihood_of_statistics_is_that_of_rows,
    learning_goes_in_steps,
    predictive_is_an_evidence_ratio,
    predictive_is_a_mean_over_draws,
    evidence_is_a_mean_over_the_prior,
    predictive_program_is_log_predictive,
    missing_is_marginal,
    missing_at_fit_is_marginal,
    evidence_of_missing_is_marginal,
    ml_maximises,
    map_maximises,
    row_program_is_statistics_program,
    prior_program_is_the_prior,
    nuts_is_exact,
    nuts_is_the_reweighted_prior,
    is_a_pytree,
    draws_have_named_dims,
]

# -- the table ---------------------------------------------------------------------------------------------------------


def bits(*shape):
    return lambda rng, n: ((rng.random((n, *shape)) < 0.4).astype(float),)


def codes(count, *shape):
    return lambda rng, n: (rng.integers(0, count, (n, *shape)).astype(float),)


def normals(*shape, mean=2.0, sd=1.5):
    return lambda rng, n: (rng.normal(mean, sd, (n, *shape)),)


def classed(count, **parts):
    """Rows of a classifier: classes at random, the rows of class k moved (or, where discrete, drawn anew) by k."""

    def rows(rng, n):
        t = rng.permutation(np.arange(n) % count)
        x = {}
        for name, part in parts.items():
            (x[name],) = part(rng, n)
            if not np.array_equal(x[name], np.round(x[name])):
                x[name] += t.reshape(-1, *[1] * (x[name].ndim - 1))
        return (x["x"] if list(x) == ["x"] else x), t

    return rows


COV = np.array([[2.0, 0.6], [0.6, 1.0]])
NIW2 = NormalInverseWishart(mean=[1.5, 2.5], kappa=2.0, nu=7.0, scale=8 * COV)
NIW3 = NormalInverseWishart(np.full(3, 2.0), 1.5, 9.0, 9 * (np.eye(3) + 0.3))
NIG = NormalInverseGamma(mean=1.0, kappa=1.5, alpha=4.0, beta=6.0)
NIGS = NormalInverseGamma([1.0, 2.0, 3.0], [1.5, 0.7, 2.0], [4.0, 5.0, 3.5], [6.0, 5.0, 8.0])
TORONTO = NormalKnownVariance(mean=1.0, sd=2.0, noise_sd=1.5)
TWO, THREE = DirichletCategorical([2.0, 1.5], ["no", "yes"]), DirichletCategorical(1.5, ["a", "b", "c"])
DIE, DICE = DirichletCategorical([1.5, 2.0, 3.0]), DirichletCategorical([[1.5, 2.0, 1.2], [3.0, 1.1, 2.5]])
MIXED = {"coin": BetaBernoulli([1.5, 2.0], 2.0), "die": DIE, "size": NIG, "sizes": NIGS, "heat": TORONTO}
MIXED_ROWS = {"coin": bits(2), "die": codes(3), "size": normals(), "sizes": normals(3), "heat": normals()}

PLANE = NormalInverseGamma([1.5, 2.5], [1.5, 0.7], [5.0, 6.0], [6.0, 5.0])
ROUND = NormalInverseGamma([1.5, 2.5], 1.5, 6.0, 8.0)
APART = SeparationPrior([1.5, 2.5], [1.0, 1.5], [1.5, 1.2], eta=2.5)
PAIR = classed(2, x=normals(2))

NO_DISTRIBUTION = (predictive_program_is_log_predictive,)  # `predictive()` is a leaf's
EXACT = (nuts_is_the_reweighted_prior,)  # there is better
NOTHING_TO_LEARN = (nuts_is_exact, ml_maximises, map_maximises)
NOT_CONJUGATE = (
    ml_maximises,  # that of the conjugate model of the same covariance
    learning_goes_in_steps,
    predictive_is_an_evidence_ratio,
    predictive_is_a_mean_over_draws,
    evidence_is_a_mean_over_the_prior,
    predictive_program_is_log_predictive,
    missing_is_marginal,
    evidence_of_missing_is_marginal,
    nuts_is_exact,
    draws_have_named_dims,
)
NUTS_AGAIN = (nuts_is_exact,)  # the NUTS of another line, in another shape
COMPILED = (nuts_is_the_reweighted_prior, map_maximises, missing_at_fit_is_marginal, row_program_is_statistics_program)


def leaf(name, model, rows, without=(), slow=()):
    return Case(name, model, rows, EXACT + without, slow)


def discriminant(name, classes, prior, slow=(), **kwargs):
    model = GaussianDiscriminant(classes, prior, **kwargs)
    return Case(name, model, PAIR, (EXACT + NO_DISTRIBUTION) if model.conjugate else NOT_CONJUGATE, slow)


CASES = [
    leaf("coin", BetaBernoulli(a=2.0, b=3.5), bits()),
    leaf("coins", BetaBernoulli([2.0, 1.5, 4.0], [3.5, 2.0, 1.2]), bits(3), slow=NUTS_AGAIN),
    leaf("die", DIE, codes(3)),
    leaf("dice", DICE, codes(3, 2), slow=NUTS_AGAIN),
    leaf("known die", KnownCategorical([0.2, 0.3, 0.5]), codes(3), NOTHING_TO_LEARN),
    leaf("toronto", TORONTO, normals()),
    leaf("weather stations", NormalKnownVariance([1.0, 2.0], [2.0, 0.5], [1.5, 1.0]), normals(2), slow=NUTS_AGAIN),
    leaf("normal", NIG, normals()),
    leaf("normals", NIGS, normals(3), slow=NUTS_AGAIN),
    leaf("gaussian line", NormalInverseWishart([1.0], 1.5, 8.0, [[12.0]]), normals(1), slow=NUTS_AGAIN),
    leaf("gaussian plane", NIW2, normals(2)),
    leaf("gaussian space", NIW3, normals(3), slow=NUTS_AGAIN),
    leaf("naive Bayes", NaiveBayes(THREE, MIXED), classed(3, **MIXED_ROWS), NO_DISTRIBUTION),
    leaf("naive Bayes, known classes", NaiveBayes(KnownCategorical([0.3, 0.7]), {"size": NIG}),
         classed(2, size=normals()), NO_DISTRIBUTION, NUTS_AGAIN),
    discriminant("full", TWO, NIW2),
    discriminant("full shared", TWO, NIW2, shared=True),
    discriminant("diagonal", TWO, PLANE, covariance="diagonal", slow=NUTS_AGAIN),
    discriminant("diagonal shared", TWO, PLANE, covariance="diagonal", shared=True),
    discriminant("isotropic", TWO, ROUND, covariance="isotropic"),
    discriminant("isotropic shared", TWO, ROUND, covariance="isotropic", shared=True, slow=NUTS_AGAIN),
    discriminant("separation", TWO, APART, COMPILED),
    discriminant("separation shared", TWO, APART, COMPILED, shared=True),
    discriminant("separation diagonal", TWO, APART, (nuts_is_the_reweighted_prior,), covariance="diagonal"),
]  # fmt: skip
