r"""Labels that may be wrong: what is told of a row's class is drawn given the class that it has.

.. math:: \Gamma_t \sim \mathrm{Dirichlet}(\alpha_t), \qquad
   s_i \mid t_i, \Gamma \sim \mathrm{Categorical}(\Gamma_{t_i}), \\
   \alpha_{ts} = 1 + m \Big( (1 - \varepsilon) [s = t] + \frac{\varepsilon}{K - 1} [s \ne t] \Big)

with t the true class, s the label told, and Γ the K × K confusion matrix, each row of which sums to 1. The label
depends on the class alone: errors that are more frequent where classes overlap are not of this kind. The prior is that
of m rows of each class whose label was checked, a part ε of them wrong, beside a flat one; its mode is at ε. It must be
heavy on the diagonal: data cannot tell Γ from the same with its classes renamed.

Labels and one column of V categories are a table of K V counts that many Γ explain alike. Three views of the class that
are independent given it determine all (Kruskal 1977; Allman, Matias and Rhodes 2009, *Annals of Statistics* 37): the
label is one, so the columns of categories must form two groups of κ1 and κ2 joint values with
min(K, κ1) + min(K, κ2) ≥ K + 2. Of two classes that is two columns, and each must differ between the classes.
Numbers and counts need no second column: mixtures of their families are determined by themselves.
"""

from dataclasses import dataclass

import numpy as np

from bayesgen.hyperparameters import Hyperparameter, Hyperparameters, hyperparameter
from bayesgen.messages import several
from bayesgen.models.dirichlet_categorical import DirichletCategorical


@dataclass(frozen=True, eq=False)
class LabelNoise(Hyperparameters):
    """How often labels are thought to be wrong, and how sure one is of it: the prior of a confusion matrix.

    Parameters
    ----------
    rate : float, default 0.1
        The most probable share of wrong labels in each class, evenly over the other classes; above 0, and so small that
        the right label is the most frequent one.
    rows : float, default 20.0
        How many checked rows of each class the guess is worth, > 0.

    Examples
    --------
    >>> LabelNoise(rate=0.2, rows=10).confusion(["a", "b"]).alpha
    array([[9., 3.],
           [3., 9.]])
    """

    rate: Hyperparameter = hyperparameter(0.1, positive=True)
    rows: Hyperparameter = hyperparameter(20.0, positive=True)

    def __post_init__(self):
        super().__post_init__()
        if self.rate.ndim or self.rows.ndim:
            raise ValueError("LabelNoise: rate and rows must be numbers, the same for every class")
        if self.rate >= 1:
            raise ValueError(f"LabelNoise: rate must be a share of the labels below 1, got {float(self.rate):g}")

    def confusion(self, classes) -> DirichletCategorical:
        """The prior of Γ: a die for each true class, whose sides are the labels."""
        count = len(classes)
        if count < 2:
            raise ValueError("label_noise needs two classes at least: with one there is no wrong label")
        if self.rate >= 1 - 1 / count:
            raise ValueError(
                f"LabelNoise: with {count} classes rate must be below {1 - 1 / count:.3g}, got {float(self.rate):g}: "
                "else the right label is not the most frequent, and classes are known up to their names alone"
            )
        share = np.full((count, count), self.rate / (count - 1))
        np.fill_diagonal(share, 1 - self.rate)
        return DirichletCategorical(1 + self.rows * share, classes)


def check_identifiable(model) -> None:
    """Raise where labels and columns of categories do not determine how often labels are wrong; see the module."""
    count = len(model.class_names)
    sizes = {}
    for name, leaf in model.leaves.items():
        width = int(np.prod(leaf.features))
        columns = model.columns_of(name) or (name,) * width
        sizes |= {(name, j): (columns[j], leaf.cardinality(j)) for j in range(width)}
    if any(size is None for _, size in sizes.values()):
        return
    groups = {(1, 1)}  # what two groups of columns can tell of the classes, for every way to divide the columns
    for _, size in sizes.values():
        groups = {(min(count, a * size), b) for a, b in groups} | {(a, min(count, b * size)) for a, b in groups}
    if max(a + b for a, b in groups) < count + 2:
        columns = several(f"{column!r} ({size})" for column, size in sizes.values())
        raise ValueError(
            f"label_noise: with {count} classes, columns of few categories do not tell wrong labels from classes that "
            f"overlap; there is {columns}. Add columns (two classes need two of them), or fit without label_noise"
        )
