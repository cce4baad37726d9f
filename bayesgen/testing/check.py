"""All laws, and a leaf that is put through them.

A law is a function that takes a `Case` and raises an AssertionError, which has the numbers. No law repeats a model's
algebra: closed forms meet numerical integration, Monte Carlo, NUTS, NumPyro's densities, and each other along different
roads.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesgen.core.errors import NoClosedForm
from bayesgen.models.leaf import Leaf
from bayesgen.testing import bayes, marginalisation, points, programs, sufficiency, value_semantics
from bayesgen.testing.case import Case

Law = Callable[[Case], None]
LAWS: list[Law] = [
    sufficiency.pieces_make_the_whole,
    sufficiency.a_weight_is_a_row_repeated,
    sufficiency.a_weight_may_be_a_fraction,
    sufficiency.likelihood_of_statistics_is_that_of_rows,
    bayes.learning_goes_in_steps,
    bayes.predictive_is_an_evidence_ratio,
    bayes.predictive_is_a_mean_over_draws,
    bayes.evidence_is_a_mean_over_the_prior,
    bayes.predictive_program_is_log_predictive,
    marginalisation.missing_is_marginal,
    marginalisation.missing_at_fit_is_marginal,
    marginalisation.evidence_of_missing_is_marginal,
    marginalisation.target_has_probability_one,
    points.ml_maximises,
    points.map_maximises,
    programs.row_program_is_statistics_program,
    programs.prior_program_is_the_prior,
    programs.nuts_is_exact,
    programs.nuts_is_the_reweighted_prior,
    value_semantics.is_a_pytree,
    value_semantics.draws_have_named_dims,
]

EXACT = {programs.nuts_is_the_reweighted_prior: "nuts_is_exact says more"}
GENERATIVE = {marginalisation.target_has_probability_one: "missing_is_marginal says it of every entry"}
NO_ALGEBRA = dict.fromkeys(
    (*(law for law in LAWS if law.__module__ == bayes.__name__), programs.nuts_is_exact),
    "not conjugate: neither posterior nor evidence in closed form",
)
_OF_GAPS = (marginalisation.missing_is_marginal, marginalisation.evidence_of_missing_is_marginal)
_NO_EVIDENCE = dict.fromkeys(_OF_GAPS, "not conjugate: no predictive")
_NO_PRIOR = {programs.prior_program_is_the_prior: "give log_prior, the log density of the prior by SciPy"}


class BrokenLaws(AssertionError):
    """Laws that a leaf breaks.

    Attributes
    ----------
    broken : dict from str to Exception
        By the name of each law what it raised.
    """

    def __init__(self, leaf: str, count: int, broken: Mapping[str, Exception]):
        self.broken = dict(broken)
        told = "".join(f"\n\n{name}: {_indented(error)}" for name, error in broken.items())
        super().__init__(f"{leaf} breaks {len(broken)} of {count} laws{told}")


def _indented(error: Exception) -> str:
    said = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return "\n    ".join(line for line in said.splitlines() if line.strip())


def check_leaf(
    leaf: Any,
    rows: ArrayLike,
    log_prior: Callable[[Any, Mapping[str, np.ndarray]], float] | None = None,
    laws: Iterable[str] | None = None,
) -> dict[str, str]:
    """Check that a leaf obeys the laws that every leaf of the package obeys.

    Among them: statistics add, and a weight is a row repeated; the likelihood of statistics is that of the rows, and
    that of the NumPyro program; posterior, evidence, predictive and draws are of one posterior; a missing entry is
    integrated out; ML and MAP are maxima; NUTS finds the exact posterior.

    Parameters
    ----------
    leaf : Leaf
        With a prior strong enough that means over draws from it converge, as in the example: its likelihoods should
        differ by a factor of a hundred at most.
    rows : array, shape (n, features..., event...)
        Complete rows as they occur, some tens or hundreds, from which the laws draw theirs.
    log_prior : callable (leaf, params) -> float, optional
        Log density of the prior at parameters by site, by other means than the leaf's, such as SciPy. Without it the
        mode is compared with the density of the leaf's program.
    laws : iterable of str, optional
        Names of the laws to check; default all.

    Returns
    -------
    dict from str to str
        By the name of each law "holds", or why it was left out.

    Raises
    ------
    BrokenLaws
        If a law does not hold, with the numbers; ``broken`` has the error of each.
    ValueError, TypeError
        If there is nothing to check.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.models import BetaBernoulli
    >>> from bayesgen.testing import check_leaf
    >>> rows = np.random.default_rng(0).integers(0, 2, 50)
    >>> check_leaf(BetaBernoulli(2.0, 3.0), rows, laws=["pieces_make_the_whole", "predictive_is_an_evidence_ratio"])
    {'pieces_make_the_whole': 'holds', 'predictive_is_an_evidence_ratio': 'holds'}
    """
    case = _case(leaf, rows, log_prior)
    known = {law.__name__: law for law in LAWS}
    asked = list(known) if laws is None else list(laws)
    if strange := [name for name in asked if name not in known]:
        raise ValueError(f"laws has {strange[0]!r}; the laws are {', '.join(known)}")
    told, broken = {}, {}
    for name in asked:
        law = known[name]
        if law in case.without:
            told[name] = case.without[law]
            continue
        told[name] = "holds"
        try:
            law(case)
        except NoClosedForm as error:  # such as a predictive that is no distribution of NumPyro's
            told[name] = str(error)
        except Exception as error:  # a leaf under test raises whatever it stumbles over
            broken[name] = error
    if broken:
        raise BrokenLaws(type(leaf).__name__, list(told.values()).count("holds"), broken)
    return told


def _case(leaf, rows, log_prior) -> Case:
    """Return the case of a leaf, or raise an error where it cannot be put through the laws."""
    name = type(leaf).__name__
    if not isinstance(leaf, Leaf):
        raise TypeError(f"leaf must derive from ExponentialFamily, ConjugateFamily or RowLeaf, got {leaf!r:.100}")
    if not leaf.proper:
        raise ValueError(f"{name} has an improper prior: it has no draws and no evidence; give one that is proper")
    if leaf.per_class:
        raise ValueError(f"leaf is a posterior, with a prior for each class; give the prior: {name}(...)")
    rows = np.array(leaf.check(rows), dtype=float)
    if len(rows) < 10 or np.isnan(rows).any():
        raise ValueError(f"rows must be ten or more without gaps, got {len(rows)} with {np.isnan(rows).sum()} gaps")
    without = GENERATIVE | (EXACT if leaf.conjugate else NO_ALGEBRA | _NO_EVIDENCE)
    if log_prior is None:
        without |= _NO_PRIOR
    density = None if log_prior is None else lambda params: float(log_prior(leaf, params))
    return Case(name, leaf, lambda rng, n: (rows[rng.integers(len(rows), size=n)],), without, log_prior=density)
