r"""Gaussian discriminant analysis: a class prior and a Gaussian vector given the class.

.. math:: t_i \mid \pi \sim \mathrm{Categorical}(\pi), \qquad x_i \mid t_i = k \sim N_D(\mu_k, \Sigma_k)

A covariance per class gives quadratic boundaries (QDA). The exact predictive class probability uses a Student-t density
per class, whose degrees of freedom follow the rows of the class: nothing is plugged in.
"""

from dataclasses import dataclass, replace
from typing import Any

from bayesgen.models.class_conditional import ClassConditional


@dataclass(frozen=True, eq=False)
class GaussianDiscriminant(ClassConditional):
    """Class prior times a Gaussian vector per class.

    Parameters
    ----------
    classes : DirichletCategorical or KnownCategorical
        Prior over the classes; its categories are the class labels.
    gaussian : NormalInverseWishart
        Prior on the mean and covariance of a class.
    columns : mapping, keyword
        ``{"gaussian": names of the D columns}``, for messages and labels.
    per_class : bool, keyword
        Whether hyperparameters carry a leading axis of classes (they do in a posterior).

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

    @property
    def leaves(self):
        """The one leaf."""
        return {"gaussian": self.gaussian}

    def blocks(self, x):
        """Rows (n, D), or None to draw them."""
        return {"gaussian": x}

    def with_leaves(self, classes, leaves, *, per_class):
        """Return the same model with another leaf."""
        return replace(self, classes=classes, gaussian=leaves["gaussian"], per_class=per_class)
