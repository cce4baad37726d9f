"""Bayes' rule: learning goes in steps, and predictive, evidence and draws are of one posterior."""

import numpy as np

from bayesgen.core import program
from bayesgen.testing.case import blocks, close, compiled, log_joint, log_joint_draws, pick, require, same


def learning_goes_in_steps(case):
    """Today's posterior is tomorrow's prior, evidence multiplies, and no rows change nothing."""
    model, data = case.model, case.data(30)
    first, second, none = (model.statistics(*pick(data, rows)) for rows in (range(12), range(12, 30), []))
    half = model.update(first)
    at_once = model.update(first + second)
    new = case.data(6, seed=1)
    same(log_joint(half.update(second), new), log_joint(at_once, new), 1e-11, "predictive after two updates, and one")
    parts, whole = model.log_evidence(first) + half.log_evidence(second), model.log_evidence(first + second)
    close(parts, whole, 1e-11, "log evidence of two updates, and of one")
    same(log_joint(model.update(none), new), log_joint(model, new), 1e-14, "predictive after an update with no rows")
    nothing = model.log_evidence(none)
    require(abs(nothing) < 1e-14, f"the log evidence of no rows is {nothing:g}, not 0")


def predictive_is_an_evidence_ratio(case):
    """p(x | D) = p(D, x) / p(D): Student-t and friends against the normalising constants."""
    model = case.model
    statistics, new = model.statistics(*case.data(20)), case.data(8, seed=1)
    with_row = [model.log_evidence(statistics + model.statistics(*pick(new, [i]))) for i in range(8)]
    ratio = np.array(with_row) - model.log_evidence(statistics)
    found = log_joint(model.update(statistics), new)
    close(found, ratio, 1e-10, "log_predictive of `update`, and differences of log_evidence", 1e-10)


def predictive_is_a_mean_over_draws(case):
    """p(x | D) = E p(x | params) over exact draws: independent, so |z| < 5 with the plain standard error."""
    posterior = case.model.update(case.model.statistics(*case.data(12)))
    new = case.data(8, "entries", seed=1)
    params = posterior.sample_parameters(case.rng, (20_000,))
    ratio = np.exp(log_joint_draws(posterior, params, new) - log_joint(posterior, new))
    _mean_is_one(ratio, 0.05, "density of a row over draws by sample_parameters, relative to exp(log_predictive)")


def evidence_is_a_mean_over_the_prior(case):
    """p(D) = E p(D | params) over exact draws of the prior, for a few rows, so that the mean converges."""
    entries = sum(x[0].size for x in blocks(case.data(1, "no")))
    data = case.data(max(1, 6 // entries), "no")
    log_likelihood = log_joint_draws(case.model, case.model.sample_parameters(case.rng, (100_000,)), data).sum(1)
    ratio = np.exp(log_likelihood - case.model.log_evidence(case.model.statistics(*data)))
    _mean_is_one(ratio, 0.1, "likelihood over draws of the prior, relative to exp(log_evidence)")


def _mean_is_one(ratio, most, what):
    """Require that means over independent draws are 1 within five standard errors, each of them below ``most``."""
    mean, error = ratio.mean(0), ratio.std(0) / np.sqrt(len(ratio))
    require(error < most, f"{what}: a standard error of {error.max():.2g}, where {most} is allowed: a stronger prior?")
    off = np.abs(mean - 1) > 5 * error + 1e-12
    require(~off, f"{what}: means {mean[off]} with standard errors {error[off]}, where 1 is expected")


def predictive_program_is_log_predictive(case):
    """The predictive as a NumPyro distribution, features multiplied, is the closed form."""
    model = case.model.update(case.model.statistics(*case.data(12)))
    new = case.data(8, "no", seed=1)
    with program.x64():
        predictive = model.predictive(new[0]) if case.given else model.predictive()
        x = new[-1].astype(int) if predictive.is_discrete else new[-1]
        density = np.asarray(compiled(predictive.log_prob, x)(x)).reshape(8, -1).sum(1)
    close(density, log_joint(model, new), case.digits, "log_prob of `predictive`, and log_predictive", case.digits)
