"""The laws that every model obeys, and the one table of models they are checked over.

A law takes a `Case` and asserts. A new model is one new line in `CASES` (and its prior density, by SciPy, one in
`PRIORS`); a leaf of one's own can be put through `LAWS` from anywhere. Nothing here repeats a model's algebra: closed
forms meet numerical integration, Monte Carlo, NUTS, SciPy's and NumPyro's densities, and each other along different
roads.
"""

from laws.bayes import (
    evidence_is_a_mean_over_the_prior,
    learning_goes_in_steps,
    predictive_is_a_mean_over_draws,
    predictive_is_an_evidence_ratio,
    predictive_program_is_log_predictive,
)
from laws.cases import CASES, THREE, TWO, leaf
from laws.helpers import SAMPLER, Case, block, compiled, is_pair, parameters, sample_sites, z_scores
from laws.missing import (
    evidence_of_missing_is_marginal,
    missing_at_fit_is_marginal,
    missing_is_marginal,
    target_has_probability_one,
)
from laws.points import map_maximises, ml_maximises
from laws.priors import PRIORS
from laws.programs import (
    nuts_is_exact,
    nuts_is_the_reweighted_prior,
    prior_program_is_the_prior,
    row_program_is_statistics_program,
)
from laws.statistics import (
    a_weight_is_a_row_repeated,
    a_weight_may_be_a_fraction,
    likelihood_of_statistics_is_that_of_rows,
    pieces_make_the_whole,
)
from laws.values import draws_have_named_dims, is_a_pytree

__all__ = [
    "CASES",
    "LAWS",
    "PRIORS",
    "SAMPLER",
    "THREE",
    "TWO",
    "Case",
    "block",
    "compiled",
    "is_pair",
    "leaf",
    "parameters",
    "sample_sites",
    "z_scores",
]

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
    target_has_probability_one,
    ml_maximises,
    map_maximises,
    row_program_is_statistics_program,
    prior_program_is_the_prior,
    nuts_is_exact,
    nuts_is_the_reweighted_prior,
    is_a_pytree,
    draws_have_named_dims,
]
