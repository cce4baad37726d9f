"""The laws of `bayesgen.testing`, and the one table of models they are checked over.

A new model is one new line in `CASES`, and its prior density, by SciPy, one in `PRIORS`.
"""

from bayesgen.core.program import x64
from bayesgen.testing.bayes import predictive_program_is_log_predictive
from bayesgen.testing.case import (
    SAMPLER,
    Case,
    block,
    compiled,
    is_pair,
    near,
    parameters,
    sample_sites,
    sampled,
    z_scores,
)
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
    "near",
    "parameters",
    "predictive_program_is_log_predictive",
    "sample_sites",
    "sampled",
    "x64",
    "z_scores",
]
