r"""The posterior given memberships: rows of unknown class count in each class by their probability at the mode.

If row i counts r_ik in class k, its probability at the mode (`bayesgen.models.unknown_labels`), the posterior is
conjugate. It is the best distribution of the parameters in the variational bound of the evidence at these r (Beal 2003,
*Variational algorithms for approximate Bayesian inference*, section 2.3). An answer that no row of a class gave has a
probability above 0, and a class of few rows heavy tails, which the mode knows nothing of. "Memberships" in
`docs/mathematics/latent-classes.md` has the formulas, and says where it is too narrow.
"""

from dataclasses import dataclass
from typing import Any

from bayesgen.core.errors import Argument, InputTypeError
from bayesgen.core.registry import saveable
from bayesgen.inference.base import Exact, exact_posterior, register
from bayesgen.inference.point import MAP
from bayesgen.models.class_program import ClassProgram
from bayesgen.models.model import Model, is_conjugate, summarise
from bayesgen.models.unknown_labels import UnknownClasses
from bayesgen.posterior.posterior import MembershipPosterior, Posterior


@saveable
@register("memberships")
@dataclass(frozen=True)
class Memberships:
    """Parameters integrated out, in closed form, where rows of unknown class count by their memberships at the mode.

    It is the default of `bayesgen.LatentClassClassifier`. Rows whose class is known have the exact posterior. Where a
    model has no closed form (Student's t, gaps in a full covariance) it is the mode, as by "map".

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen import fit
    >>> from bayesgen.models import BetaBernoulli, DirichletCategorical, NaiveBayes, UnknownClasses
    >>> coins = NaiveBayes(DirichletCategorical(1.0, ["a", "b"]), {"heads": BetaBernoulli(1.0, 1.0)})
    >>> rows, codes = {"heads": [1.0, 1.0, 0.0, 0.0, 1.0]}, np.array([0, 0, 1, -1, -1])
    >>> posterior = fit(UnknownClasses(coins), (rows, codes), Memberships())
    >>> posterior.model.leaves["heads"].mean.round(2)  # the mode has 1 and 0
    array([0.8 , 0.25])
    """

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> Posterior:
        """Return the posterior; nothing is random."""
        if not isinstance(model, UnknownClasses | ClassProgram):
            problem = f"memberships are of classes that have leaves, which a {type(model).__name__} has not; use "
            raise InputTypeError(problem, Argument("inference", "exact" if is_conjugate(model) else "map"))
        statistics = summarise(model, data)
        if isinstance(model, UnknownClasses):
            found = exact_posterior(model.whole, model.expected(statistics)) if model.model.conjugate else None
            return MAP()(model, statistics) if found is None else MembershipPosterior(found)
        closed = is_conjugate(model) and model.has_closed_form(statistics)
        return (Exact() if closed else MAP())(model, statistics)  # the classes of all rows are known
