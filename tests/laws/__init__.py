"""The laws of `bayesgen.testing`, and the one table of models they are checked over.

A new model is one new line in `CASES`, and its prior density, by SciPy, one in `PRIORS`.
"""

from bayesgen.testing.bayes import predictive_program_is_log_predictive
from bayesgen.testing.case import SAMPLER, Case, block, compiled, is_pair, parameters, sample_sites, z_scores
from bayesgen.testing.check import LAWS
from laws.cases import CASES, LIKE_ANOTHER, THREE, TWO, leaf
from laws.priors import PRIORS

__all__ = [
    "CASES",
    "LAWS",
    "LIKE_ANOTHER",
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
    "predictive_program_is_log_predictive",
    "sample_sites",
    "z_scores",
]
