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

Rows whose class is not known: without a label, or with one that may be wrong. The class is summed out, or expected.

.. math:: p(\text{rows} \mid \theta) = \prod_{i \text{ labelled}} p(x_i, t_i \mid \theta)
   \prod_{i \text{ unlabelled}} \Big( \sum_k \pi_k \, p(x_i \mid \theta_k) \Big)^{w_i}

and, where labels may be wrong (`bayesgen.models.unknown_labels`), of every row that was told the label s_i

.. math:: \Big( \sum_k \pi_k \, \Gamma_{k s_i} \, p(x_i \mid \theta_k) \Big)^{w_i}

The sum over classes has no sufficient statistics, so these rows are kept, and there is no exact posterior: it would be
a sum over all K^m labellings. NUTS and Laplace take the density as it stands; chains of NUTS begin near the mode that
MAP finds (`PartlyLabelled.posterior`), since others may have classes exchanged. Maximum likelihood and MAP go by
expectation-maximisation (Dempster, Laird and Rubin 1977; Nigam, McCallum, Thrun and Mitchell 2000): under the
parameters at hand a row belongs to class k with probability r_ik, and counts w_i r_ik of a row in the closed form of
each class, and of a label s_i told of class k in that of Γ. It begins at the labels as they were told, with the most
probable Γ of its prior, and ends when no r_ik moves by more than 1e-9.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

from bayesgen.core.errors import DataError, several
from bayesgen.core.statistics import Statistics, SumStatistics
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.hyperparameters import Hyperparameter, Hyperparameters, hyperparameter
from bayesgen.models.leaf import log_or_floor
from bayesgen.numerics.pieces import count_rows, select_rows
from bayesgen.numerics.special import namespace
from bayesgen.numerics.sums import Grouping


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


_LIMIT = 10_000  # steps of expectation-maximisation
_STILL = 1e-9


@dataclass(frozen=True, eq=False)
class PartlyLabelled(Statistics):
    """Statistics of labelled rows, and the rows whose class is not known.

    Attributes
    ----------
    labelled : ClassStatistics
        Of the rows with a label, as it was told. Weak priors follow them.
    rows : dict from leaf to array (m, ...)
        The rows whose class is not known, checked, NaN where missing.
    terms : dict from leaf to array (m, dim T)
        Their T(x) about ``centres``, 0 where missing; the features of a leaf are side by side.
    centres : dict from leaf to array
        The means of the columns, where T has a centre.
    base : array, shape (m,)
        Sum of log h(x) over leaves.
    weight : array, shape (m,)
        What each counts, > 0.
    told : array, shape (m, K), optional
        1 at the label told of a row, else 0. Where it is given labels may be wrong: then all rows are among ``rows``,
        and the labelled ones are no more than where the search begins.
    """

    keeps_rows = True

    labelled: ClassStatistics
    rows: dict[str, np.ndarray]
    terms: dict[str, np.ndarray]
    centres: dict[str, np.ndarray]
    base: np.ndarray
    weight: np.ndarray
    told: Any = None

    @classmethod
    def of(cls, model, labelled, x, weight=None, told=None) -> "PartlyLabelled":
        """Put rows, as the model takes them, beside the statistics of those that have a label.

        Parameters
        ----------
        model : ClassConditional
            The model, or its template.
        labelled : ClassStatistics
            Of the rows with a label.
        x : rows
            Those without a label; all of them where labels may be wrong.
        weight : array, shape (m,), optional
            Their weights, > 0.
        told : int array, shape (m,), optional
            Codes of the labels told, -1 for none, of a model with a confusion matrix.
        """
        if told is not None:
            check_identifiable(model)
            told = (np.asarray(told)[:, None] == np.arange(len(model.class_names))).astype(float)
        checked = model.check(x)
        rows = {name: np.asarray(v.toarray() if sparse.issparse(v) else v, float) for name, v in checked.items()}
        count = count_rows(rows)
        terms, centres, base = {}, {}, np.zeros(count)
        for name, leaf in model.leaves.items():
            own, missing = rows[name], leaf.missing(rows[name])
            if leaf.event_dim and (np.isnan(own).reshape(count, -1).any(1) & ~missing.reshape(count, -1).all(1)).any():
                raise DataError(
                    f"rows without a {'certain ' if told is not None else ''}label have gaps, which a full covariance "
                    "does not take: leave them out, or take a diagonal or isotropic covariance"
                )
            pooled = getattr(labelled.leaves[name], "pooled", None)
            centres[name] = np.zeros(()) if pooled is None else pooled.mean
            with np.errstate(invalid="ignore"):
                term = np.where(missing[..., None], 0.0, leaf.sufficient_statistic(own, centres[name]))
                base += np.where(missing, 0.0, leaf.log_base_measure(own)).reshape(count, -1).sum(1)
            terms[name] = term.reshape(count, -1)
        return cls(labelled, rows, terms, centres, base, np.ones(count) if weight is None else weight, told)

    @property
    def classes(self):
        """Counts of the labelled rows."""
        return self.labelled.classes

    @property
    def leaves(self):
        """Statistics of the labelled rows."""
        return self.labelled.leaves

    @property
    def squares(self):
        """Sums of squared weights of the labelled rows."""
        return self.labelled.squares

    def log_likelihood(self, model, params) -> Any:
        """Log p(all rows | params), the unknown classes summed out. NumPy or JAX."""
        share = params[f"{model.CLASSES}.probability"]
        xp = namespace(share)
        joint = xp.log(share)
        for name, leaf in model.leaves.items():
            eta = leaf.natural_parameters(model.site(params, name), self.centres[name])
            joint = joint + self.terms[name] @ eta.reshape(len(share), -1).T
        if self.told is not None:
            joint = joint + self.told @ log_or_floor(params[model.CONFUSION]).T
        top = joint.max(1)
        level = top + xp.log(xp.exp(joint - top[:, None]).sum(1))
        result = (self.weight * (level + self.base)).sum()
        return result if self.told is not None else result + model.log_likelihood(params, self.labelled)

    def labels(self, model, params) -> np.ndarray:
        """Probability of each class of the rows whose class is not known, (m, K)."""
        one = {site: np.asarray(value)[None] for site, value in params.items()}
        joint = model.log_likelihood_rows(one, self.rows)[0].T
        if self.told is not None:
            joint = joint + self.told @ log_or_floor(params[model.CONFUSION]).T
        with np.errstate(under="ignore"):
            return softmax(joint, axis=1)

    def expected(self, model, labels):
        """Statistics of all rows, those whose class is not known in every class by its probability."""
        count, classes = labels.shape
        weight = (self.weight[:, None] * labels).ravel()
        rows = select_rows(self.rows, np.repeat(np.arange(count), classes))
        codes = np.tile(np.arange(classes), count)
        sums = model.sum_rows(rows, Grouping(codes, classes, weight, (classes,)))
        return sums if self.told is not None else self.labelled + sums

    def _confusions(self, labels):
        """How often each label was told of each class, by the probabilities of the classes."""
        return SumStatistics((self.weight[:, None] * labels).T @ self.told, np.float64(0))

    def posterior(self, model):
        """The posterior of a conjugate model, were every row of each class as often as its mode says.

        Of the modes of the posterior, which may have classes exchanged, it is near the one that expectation-
        maximisation finds from the labels told. Where it finds none, the labels told are taken as right.
        """
        try:
            labels = self.labels(model, self.maximise(model, "map"))
        except ValueError:
            return model.update(self.labelled)
        result = model.update(self.expected(model, labels))
        return (
            result if self.told is None else result.revised(confusion=model.confusion.update(self._confusions(labels)))
        )

    def maximise(self, model, way: str):
        """Maximise by expectation-maximisation; ``way``, "map" or "ml", is the method with the closed form."""
        params, before = getattr(model, way)(self.labelled), None
        if self.told is not None:
            params = {**params, model.CONFUSION: model.confusion.mode()["probability"]}
        for _ in range(_LIMIT):
            labels = self.labels(model, params)
            if before is not None and np.abs(labels - before).max() < _STILL:
                return params
            params, before = getattr(model, way)(self.expected(model, labels)), labels
            if self.told is not None:
                params[model.CONFUSION] = getattr(model.confusion, way)(self._confusions(labels))["probability"]
        raise DataError("no maximum was reached over the unknown classes; use 'nuts', or fewer rows without a label")
