"""Statistics add, weights are repeated rows, and the likelihood needs nothing but statistics."""

import itertools
from dataclasses import replace

import numpy as np
from numpyro import handlers

from bayesgen.core import program
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.linear_model import LineStatistics
from bayesgen.testing.case import blocks, close, compiled, log_joint_draws, one, parameters, pick, same


def pieces_make_the_whole(case):
    """Statistics add: pieces in any order, one of them empty, to rounding (60 sums of doubles: 60 eps = 1e-14)."""
    for gaps in ("rows", "entries") if case.parts else ("no",):
        data = case.data(60, gaps)
        whole = case.model.statistics(*data)
        cuts = np.split(case.rng.permutation(60), [7, 7, 31])
        pieces = [case.model.statistics(*pick(data, rows)) for rows in cuts]
        for a, b, c, d in itertools.permutations(pieces):
            say_the_same(case, (a + b) + (c + d), whole)


def a_weight_is_a_row_repeated(case):
    """An integer weight repeats a row, and zero leaves it out, whatever is written in it; but for Kish's number."""
    data = case.data(40)
    weight = case.rng.integers(0, 4, 40)
    repeated = pick(data, np.repeat(np.arange(40), weight))
    for x in blocks(data):
        x[weight == 0] = np.nan
    say_the_same(case, case.model.statistics(*data, weight=weight.astype(float)), case.model.statistics(*repeated))


def a_weight_may_be_a_fraction(case):
    """The log likelihood is linear in the weights: statistics of weight w and 1 - w add to statistics of weight 1."""
    data, weight = case.data(40), case.rng.random(40)
    pieces = [case.model.statistics(*data, weight=w) for w in (weight, 1 - weight)]
    say_the_same(case, pieces[0] + pieces[1], case.model.statistics(*data))


def say_the_same(case, a, b):
    """Statistics are equal; where they are the rows themselves, in any order, they give one likelihood."""
    if isinstance(b, ClassStatistics | LineStatistics):  # of weights it keeps squares too, which no likelihood has
        a, b = (replace(s, squares=np.zeros(1)) for s in (a, b))
    if not b.keeps_rows:
        return same(a, b, 1e-12, "statistics")
    for i in range(3):
        params = one(parameters(case, 3), i)
        expected = case.model.log_likelihood(params, b)
        close(case.model.log_likelihood(params, a), expected, 1e-12, "log likelihood of the same rows")


def likelihood_of_statistics_is_that_of_rows(case):
    """η . T = Σ rows of the product = Σ rows of NumPyro's log_prob, at parameters from the prior.

    The terms are of order 1 to 1000, so 1e-10 relative allows for their cancellation.
    """
    model = case.model
    data, params = case.data(30), parameters(case, 3)
    rows = log_joint_draws(model, params, data)
    alone = [one(params, i) for i in range(3)]
    with program.x64():
        by_program = compiled(lambda params: program_log_prob(model, params, data), alone[0])
        expected = [by_program(p) for p in alone]
    for i, p in enumerate(alone):
        again = log_joint_draws(model, {k: v[None] for k, v in p.items()}, data)[0]
        close(again, rows[i], 1e-12, "log_likelihood_rows of a draw alone, and among others")
        close(rows[i], expected[i], 1e-10, "log_likelihood_rows, and log_prob of the program's distribution", 1e-10)
        total = model.log_likelihood(p, model.statistics(*data))
        close(total, rows[i].sum(), 1e-10, "log_likelihood of statistics, and the sum of log_likelihood_rows")


def program_log_prob(model, params, data):
    """Log density of each row by the `log_prob` of the distributions that the model's program observes it under."""
    trace = handlers.trace(handlers.substitute(handlers.seed(model, 0), data=params)).get_trace(*data)
    sites = [site for site in trace.values() if site["type"] == "sample" and site["is_observed"]]
    return sum(site["fn"].log_prob(site["value"]).reshape(len(site["value"]), -1).sum(1) for site in sites)
