r"""Gaussian discriminant analysis: a class prior and a Gaussian vector given the class.

.. math:: t_i \mid \pi \sim \mathrm{Categorical}(\pi), \qquad x_i \mid t_i = k \sim N_D(\mu_k, \Sigma_k)

The covariance is full (QDA), diagonal (Gaussian naive Bayes) or isotropic, per class or shared by all: full and shared
is LDA; isotropic and shared with equal class probabilities is the nearest mean. The exact predictive class probability
uses a Student-t density per class, whose degrees of freedom follow the rows that speak of its covariance: nothing is
plugged in.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.models.class_conditional import ClassConditional
from bayesgen.models.structures import structure
from bayesgen.program import static


@dataclass(frozen=True, eq=False)
class GaussianDiscriminant(ClassConditional):
    """Class prior times a Gaussian vector per class.

    Parameters
    ----------
    classes : DirichletCategorical or KnownCategorical
        Prior over the classes; its categories are the class labels.
    gaussian : NormalInverseWishart, NormalInverseGamma or SeparationPrior
        Prior on means and covariances: normal-inverse-Wishart for a full covariance; normal-inverse-gamma with a mean
        of length D for a diagonal one (alpha, beta per feature) and an isotropic one (alpha, beta numbers); the
        separation strategy for full and diagonal.
    covariance : {"full", "diagonal", "isotropic"}, default "full"
        Structure of the covariance.
    shared : bool, default False
        Whether the classes share it.
    columns : mapping, keyword
        ``{"gaussian": names of the D columns}``, for messages and labels.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesgen.models import DirichletCategorical, NormalInverseWishart
    >>> prior = NormalInverseWishart(mean=np.zeros(2), kappa=0.01, nu=6.0, scale=3 * np.eye(2))
    >>> model = GaussianDiscriminant(DirichletCategorical(1.0, 2), prior)
    >>> x = np.array([[0.0, 0.1], [0.2, -0.3], [3.0, 2.9], [3.1, 3.3]])
    >>> posterior = model.update(model.statistics(x, [0, 0, 1, 1]))
    >>> posterior.log_predictive([[3.0, 3.0]]).argmax(1)
    array([1])
    """

    gaussian: Any
    covariance: str = static(default="full")
    shared: bool = static(default=False)

    def __post_init__(self):
        own = structure(self.covariance)
        if not isinstance(self.shared, bool | np.bool_):
            raise TypeError(f"shared must be True or False, got {self.shared!r}")
        object.__setattr__(self, "gaussian", own.leaf(self.gaussian, bool(self.shared)))
        super().__post_init__()

    @property
    def leaves(self):
        """Return the one leaf by its name."""
        return {"gaussian": self.gaussian}

    def blocks(self, x):
        """Rows (n, D), or None to draw them."""
        return {"gaussian": x}

    def with_leaves(self, classes, leaves):
        """Return the same model with another leaf."""
        return self.revised(classes=classes, gaussian=leaves["gaussian"])
