"""Every law over every model of the table, and every model of the package is in the table. The laws: `tests/laws/`."""

import laws
import pytest

from bayesgen import models

COMPILED = (
    "likelihood_of_statistics_is_that_of_rows",
    "row_program_is_statistics_program",
    "prior_program_is_the_prior",
)
COMPILED += ("ml_maximises", "map_maximises", "missing_at_fit_is_marginal", "is_a_pytree")
# Lines whose leaves stand in "naive Bayes", or whose structure is that of "gaussian plane" by class.
AGAIN = (*laws.LIKE_ANOTHER, "full shared", "normals", "dice", "gauges", "skewed from 0", "linear through 0")
AGAIN += ("coin", "die", "full", "ordered, probit")
# What a model's other laws say too, held for models of each kind.
AGAINST_ROWS = ("row_program_is_statistics_program", "missing_at_fit_is_marginal", "is_a_pytree")
KINDS = ("naive Bayes", "gaussian plane", "normal", "toronto", "calls", "chain", "linear", "softmax", "ordered")
# Programs and draws in another shape of a model whose leaf, or prior, is that of another line.
IN_SHAPES = ("predictive_program_is_log_predictive", "evidence_of_missing_is_marginal", "draws_have_named_dims")
SHAPES = ("coins", "weather stations", "gaussian line", "gaussian space", "normals", "dice", "gauges", "skewed from 0")
SHAPES += ("separation", "separation shared", "laplace prior", "laplace noise", "full shared")
IN_LOOPS = (
    "pieces_make_the_whole",
    "target_has_probability_one",
    "a_weight_is_a_row_repeated",
)  # of calls of JAX, where sums are no sums of rows
# Of a kind that another line has, and seconds long: rows of weights by loops, searches, gaps at the fit.
SEARCHED = {
    "a_weight_may_be_a_fraction": ("outliers", "laplace noise", "laplace noise and prior", "softmax, pinned", "probit"),
    "likelihood_of_statistics_is_that_of_rows": ("linear, prior apart", "outliers"),
    "map_maximises": ("outliers", "linear, prior apart", "skewed", "chain"),
    "missing_at_fit_is_marginal": ("gaussian plane", "naive Bayes"),
    "row_program_is_statistics_program": ("gaussian plane", "naive Bayes"),
    "is_a_pytree": ("gaussian plane",),
    "prior_program_is_the_prior": ("separation diagonal",),
    "evidence_of_missing_is_marginal": ("naive Bayes", "skewed", "diagonal", "diagonal shared"),
    "missing_is_marginal": ("gaussian space",),
    "pieces_make_the_whole": ("softmax", "ordered"),
    "target_has_probability_one": ("linear, prior apart",),
    "draws_have_named_dims": ("separation diagonal",),
}
ALONE = (("full shared", "map_maximises"), ("separation", "prior_program_is_the_prior"))  # notice a formula of theirs


def marks(case, law):
    """Leave what repeats a program of another line to the slow tests, and long laws of a kind to those that compile."""
    name = law.__name__
    again = name in COMPILED and case.name in AGAIN
    again |= name in AGAINST_ROWS and case.name not in KINDS
    again |= name in IN_SHAPES and case.name in SHAPES
    if law in case.slow or (again and (case.name, name) not in ALONE):
        return pytest.mark.slow
    long = name in IN_LOOPS and case.name in (*laws.LIKE_ANOTHER, "outliers", "ordered, probit")
    return pytest.mark.compiles if long or case.name in SEARCHED.get(name, ()) else ()


PAIRS = [
    pytest.param(case, law, id=f"{case.name}-{law.__name__}", marks=marks(case, law))
    for case in laws.CASES
    for law in laws.LAWS
    if law not in case.without
]


@pytest.mark.parametrize(("case", "law"), PAIRS)
def test_law(case, law):
    law(case)


NOT_MODELS = {
    "ClassConditional": "what naive Bayes and the Gaussian discriminant share",
    **dict.fromkeys(
        ("ReferenceGaussian", "ReferenceVector", "ReferencePoisson", "HaldaneBernoulli", "HaldaneCategorical"),
        "improper, without draws and evidence; their posteriors are in the table: tests/test_reference_priors.py",
    ),
    "LabelNoise": "the prior of a confusion matrix: tests/test_label_noise.py",
    "UnknownClasses": "over classifiers of the table: tests/test_unlabelled.py",
    **dict.fromkeys(
        ("Pooled", "PooledGroups"),
        "over leaves of the table; NUTS samples the program with the leaves integrated out: tests/test_pooled.py",
    ),
    "SeparationPrior": "a prior of the Gaussian discriminant, there as three lines",
}


def test_every_model_is_in_the_table():
    shown = {type(model) for case in laws.CASES for model in (case.model, *case.parts.values())}
    missing = [name for name in models.__all__ if getattr(models, name) not in shown and name not in NOT_MODELS]
    assert not missing, f"give them a line in tests/laws/cases.py: {missing}"


def test_every_law_holds_for_some_model_in_the_default_run():
    for law in laws.LAWS:
        fast = [case.name for case in laws.CASES if law not in case.without and not marks(case, law)]
        assert fast, law.__name__
