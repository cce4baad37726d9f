r"""Naive Bayes: features independent given the class, each with a leaf of its own, of any mixture of families.

.. math:: p(t = k \mid x) \propto p(t = k) \prod_j p_j(x_j \mid t = k); \quad \text{a missing } x_j \text{ drops out.}
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bayesgen.models.class_conditional import ClassConditional


@dataclass(frozen=True, eq=False)
class NaiveBayes(ClassConditional):
    """Class prior times one leaf per feature (or per block of features of one family).

    Parameters
    ----------
    classes : DirichletCategorical or KnownCategorical
        Prior over the classes; its categories are the class labels.
    features : mapping from name to leaf
        A leaf with array hyperparameters covers a block of features.
    columns : mapping from name to column names, optional
        What the features of a block are called, for messages and labels.

    Examples
    --------
    >>> from bayesgen.models import BetaBernoulli, DirichletCategorical, NormalInverseGamma
    >>> model = NaiveBayes(
    ...     DirichletCategorical(1.0, ["ham", "spam"]),
    ...     {"link": BetaBernoulli(1, 1), "length": NormalInverseGamma(0.0, 0.01, 1.0, 1.0)},
    ... )
    >>> x = {"link": [0, 1, 1, 0], "length": [0.3, 2.0, float("nan"), 0.1]}
    >>> posterior = model.update(model.statistics(x, [0, 1, 1, 0]))
    >>> posterior.log_predictive({"link": [1], "length": [2.1]}).argmax(1)
    array([1])
    """

    features: Mapping[str, Any]

    def __post_init__(self):
        object.__setattr__(self, "features", dict(self.features))
        super().__post_init__()

    @property
    def leaves(self):
        """The leaves by name."""
        return self.features

    def blocks(self, x):
        """Rows by leaf, from a mapping or a table."""
        try:
            names = list(x.keys())
        except AttributeError:
            raise TypeError(
                f"NaiveBayes takes rows as a mapping from feature to array, got {type(x).__name__}"
            ) from None
        absent = [name for name in self.features if name not in names]
        if absent:
            raise ValueError(f"x lacks the features {absent}; it has {names}")
        return {name: x[name] for name in self.features}

    def with_leaves(self, classes, leaves):
        """Return the same model with other leaves of the same names."""
        return self.revised(classes=classes, features=dict(leaves))
