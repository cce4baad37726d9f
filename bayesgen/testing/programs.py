"""The model as a NumPyro program: one density whether of rows or of statistics, SciPy's prior, and what NUTS finds."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpyro.infer.util import log_density

from bayesgen.core import program
from bayesgen.inference import fit
from bayesgen.models import ClassConditional
from bayesgen.testing import case as cases
from bayesgen.testing.case import LEAST_ESS, SAMPLER, close, compiled, log_joint_draws, near, one, parameters, require


def row_program_is_statistics_program(case):
    """The model function on rows and the latents with the statistics' likelihood have one density."""
    data = case.data(20, "entries")
    statistics = case.model.statistics(*data)
    draws = parameters(case, 3)
    params = [one(draws, i) for i in range(3)]
    with program.x64():
        values = [cases.sampled(case.model, p) for p in params]
        row_program = compiled(lambda v: log_density(case.model, data, {}, v)[0], values[0])
        prior_program = compiled(lambda v: log_density(case.model.latents, (), {}, v)[0], values[0])
        rows, prior = ([float(f(v)) for v in values] for f in (row_program, prior_program))
    likelihood = [case.model.log_likelihood(p, statistics) for p in params]
    expected = np.add(prior, likelihood)
    close(rows, expected, 1e-10, "log density of the program on rows, and of prior program and log_likelihood", 1e-10)


def prior_program_is_the_prior(case):
    """The sampled sites, their volume element put in, have SciPy's density in the parameters of the model."""
    params = one(parameters(case, 1))
    found, expected = cases.program_log_prior(case)(params), case.log_prior(params)
    close(found, expected, 1e-9, "log density of the program's sites, and by log_prior", 1e-9)


def nuts_is_exact(case):
    """NUTS meets the exact posterior: quartiles, means, densities and class probabilities, |z| < 5."""
    statistics, found = cases.nuts(case)
    exact = fit(case.model, statistics, "exact")
    count = 40_000
    draws = {site: v[0] for site, v in exact.draws(2, (1, count)).items()}
    sites = sorted(draws), sorted(found.samples)
    require(sites[0] == sites[1], f"sample_parameters draws {sites[0]}, the program {sites[1]}")
    new = case.data(6, seed=1)
    # Beside the parameters one number that depends on them all: the log likelihood of some rows.
    sizes = [log_joint_draws(case.model, params, new).sum(1) for params in (draws, found.flat)]
    pairs = [(site, draws[site], values) for site, values in found.samples.items()]
    for site, b, a in [*pairs, ("log likelihood", sizes[0], sizes[1].reshape(SAMPLER.num_chains, -1))]:
        shapes = b.shape[1:], a.shape[2:]
        require(shapes[0] == shapes[1], f"{site} has shape {shapes[0]} by sample_parameters, {shapes[1]} by NUTS")
        a, b = a.reshape(*a.shape[:2], -1), b.reshape(count, -1)
        free = b.std(0) > 1e-12 * np.abs(b).max(0)  # not the upper triangle of a factor, nor a known value
        np.testing.assert_allclose(a[0, 0, ~free], b[0, ~free], atol=1e-12)
        a, b = a[..., free], b[:, free]
        for level in (0.25, 0.5, 0.75):
            below = a < np.quantile(b, level, axis=0)
            what = f"share of NUTS' draws of {site} below the quantile {level}"
            near(below, level, level * (1 - level) / count, what)
        near(a, b.mean(0), b.var(0) / count, f"mean of {site}")
    # The density of a row, relative to the exact predictive, has mean 1; class probabilities by the delta method.
    density = cases.densities(case.model, found.flat, new)
    ratio = np.exp(density - exact.log_predictive(cases.asked(new)).T)
    ratio = ratio.reshape(SAMPLER.num_chains, -1, *ratio.shape[1:])
    moving = ratio.std((0, 1)) > 1e-12
    near(ratio[:, :, moving], 1.0, what="density of a row over NUTS' draws, relative to log_predictive")
    if isinstance(case.model, ClassConditional):
        probability = np.exp(exact.log_predictive(new[0])).T
        probability /= probability.sum(0)
        influence = probability * (ratio - (probability * ratio).sum(2, keepdims=True))
        moving = influence.std((0, 1)) > 1e-12  # of a row with nothing in it the probability is the class prior
        near(influence[:, :, moving], 0.0, what="class probabilities")
        by_nuts = np.exp(found.log_predictive(new[0])).T
        close(by_nuts / by_nuts.sum(0), probability, 1e-7, "class probabilities", 0.05)


def nuts_is_the_reweighted_prior(case):
    """NUTS meets draws of the prior weighted by their likelihood where no posterior is exact, |z| < 5."""
    data = case.data(8 if case.given else 3, "no")
    # Three rows leave a standard deviation to its prior, down to 0: a step for the bulk diverges there.
    found: Any = fit(case.model, data, replace(SAMPLER, target_accept=0.98, num_samples=2000), seed=1)
    params = parameters(case, 300_000 if case.given else 1_000_000)
    log_weight = log_joint_draws(case.model, params, data).sum(1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    size = 1 / (weight**2).sum()
    require(size > LEAST_ESS, f"weighted draws of the prior worth {size:.0f}, below {LEAST_ESS}: a stronger prior?")
    # Beside the parameters the density of some rows, of which the posterior predictive is the mean.
    new = case.data(3, "no", seed=1)
    pairs = {site: (b, found.samples[site]) for site, b in params.items()}
    densities_of_new = [np.exp(log_joint_draws(case.model, p, new)) for p in (params, found.flat)]
    pairs["density"] = densities_of_new[0], densities_of_new[1].reshape(SAMPLER.num_chains, -1, 3)
    for site, (b, a) in pairs.items():
        b, a = b.reshape(len(b), -1), a.reshape(*a.shape[:2], -1)
        free = b.std(0) > 1e-12
        a, b = a[..., free], b[:, free]
        mean = weight @ b
        near(a, mean, weight**2 @ (b - mean) ** 2, f"mean of {site}")
    np.testing.assert_allclose(np.exp(cases.log_joint(found, new)), densities_of_new[1].mean(0), rtol=1e-10)
