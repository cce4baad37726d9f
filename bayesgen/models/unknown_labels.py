r"""Rows whose class is not known: their labels may be wrong, or missing.

**Labels that may be wrong.** The recorded label of a row is drawn given its class:

.. math:: \Gamma_t \sim \mathrm{Dirichlet}(\alpha_t), \qquad
   s_i \mid t_i, \Gamma \sim \mathrm{Categorical}(\Gamma_{t_i}), \\
   \alpha_{ts} = 1 + m \Big( (1 - \varepsilon) [s = t] + \frac{\varepsilon}{K - 1} [s \ne t] \Big)

with t the true class, s the recorded label, and Γ the K × K confusion matrix, each row of which sums to 1. The label
depends on the class alone: errors that are more frequent where classes overlap are not modelled. The prior is flat plus
m rows of each class whose label was checked, a part ε of them wrong; its mode is at ε. It must be heavy on the
diagonal, since data cannot distinguish Γ from the same matrix with its classes renamed.

The labels and one column of V categories form a table of K V counts that many Γ explain equally well. Three views of
the class that are independent given it determine everything (Kruskal 1977; Allman, Matias and Rhodes 2009, *Annals of
Statistics* 37). The label is one view, so the columns of categories must form two groups of κ1 and κ2 joint values with
min(K, κ1) + min(K, κ2) ≥ K + 2. For two classes that takes two columns, each of which must differ between the classes.
Numbers and counts need no second column: mixtures of their families are determined by themselves.

**Rows without a certain label.** The class is summed out:

.. math:: p(\text{rows} \mid \theta) = \prod_{i \text{ labelled}} p(x_i, t_i \mid \theta)
   \prod_{i \text{ unlabelled}} \Big( \sum_k \pi_k \, p(x_i \mid \theta_k) \Big)^{w_i}

and, where labels may be wrong, every row with a recorded label s_i contributes

.. math:: \Big( \sum_k \pi_k \, \Gamma_{k s_i} \, p(x_i \mid \theta_k) \Big)^{w_i}

The sum over classes has no sufficient statistics, so these rows are kept. There is no exact posterior: it would be a
sum over all K^m labellings. NUTS and Laplace take the density as it stands. Chains of NUTS begin near the mode that
MAP finds (`PartlyLabelled.posterior`), since other modes may have classes exchanged.

Maximum likelihood and MAP go by expectation-maximisation (Dempster, Laird and Rubin 1977; Nigam, McCallum, Thrun and
Mitchell 2000). Under the current parameters a row belongs to class k with probability r_ik. It then counts as w_i r_ik
rows in the closed form of class k, and its label s_i as w_i r_ik labels of class k in the closed form of Γ. The search
begins at the recorded labels, with the most probable Γ of its prior, and ends when no r_ik moves by more than 1e-9.
Where no class is known, it begins at the r_ik that `bayesgen.models.latent_classes` finds.
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
from bayesgen.models.leaf import ExponentialFamily, log_or_floor
from bayesgen.models.model import Hyperparameter, Hyperparameters, hyperparameter
from bayesgen.numerics.pieces import count_rows, select_rows
from bayesgen.numerics.special import namespace
from bayesgen.numerics.sums import Grouping


@dataclass(frozen=True, eq=False)
class LabelNoise(Hyperparameters):
    """The prior of a confusion matrix: how often labels are wrong, and how sure one is of it.

    Parameters
    ----------
    rate : float, default 0.1
        Most probable share of wrong labels in each class, spread evenly over the other classes. It is above 0, and so
        small that the right label is the most frequent one.
    rows : float, default 20.0
        Number of checked rows of each class that the guess is worth, > 0.

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
        """Return the prior of Γ: a die for each true class, whose sides are the labels."""
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
    groups = {(1, 1)}  # joint values of two groups of columns, for every way to divide the columns
    for _, size in sizes.values():
        groups = {(min(count, a * size), b) for a, b in groups} | {(a, min(count, b * size)) for a, b in groups}
    if max(a + b for a, b in groups) < count + 2:
        columns = several(f"{column!r} ({size})" for column, size in sizes.values())
        raise ValueError(
            f"label_noise: with {count} classes, columns of few categories do not tell wrong labels from classes that "
            f"overlap; there is {columns}. Add columns (two classes need two of them), or fit without label_noise"
        )


_LIMIT = 10_000  # steps of expectation-maximisation
_STILL = 1e-9  # largest move of a probability at the end of the search


@dataclass(frozen=True, eq=False)
class PartlyLabelled(Statistics):
    """Statistics of labelled rows, and the rows whose class is not known.

    Attributes
    ----------
    labelled : ClassStatistics
        Statistics of the rows with a label, which is taken as recorded. Weak priors follow them.
    rows : dict from leaf to array (m, ...)
        Checked rows of unknown class, NaN where missing.
    terms : dict from leaf to array (m, dim T)
        T(x) of these rows about ``centres``, 0 where missing; the features of a leaf are side by side.
    centres : dict from leaf to array
        Means of the columns, where T has a centre.
    base : array, shape (m,)
        Sum of log h(x) over leaves.
    weight : array, shape (m,)
        Weights of these rows, > 0.
    told : array, shape (m, K), optional
        1 at the recorded label of a row, else 0. If it is given, labels may be wrong: then all rows are among ``rows``,
        and ``labelled`` is only the start of the search.
    about : ClassStatistics, optional
        Statistics of all rows, which weak priors follow in place of those of the labelled rows.
    start : array, shape (m, K), optional
        Probabilities of the classes of ``rows`` at which the search begins, in place of the labelled rows alone.
    """

    keeps_rows = True

    labelled: ClassStatistics
    rows: dict[str, np.ndarray]
    terms: dict[str, np.ndarray]
    centres: dict[str, np.ndarray]
    base: np.ndarray
    weight: np.ndarray
    told: Any = None
    about: Any = None
    start: Any = None

    @classmethod
    def of(cls, model, labelled, x, weight=None, told=None, about=None) -> "PartlyLabelled":
        """Combine rows ``x``, as the model or its template takes them, with the statistics of the labelled rows.

        They are the rows without a label, or all rows where labels may be wrong: then ``told`` (m,) holds the codes of
        the recorded labels, -1 for none. The other arguments are attributes of the class.
        """
        if told is not None:
            check_identifiable(model)
            told = (np.asarray(told)[:, None] == np.arange(len(model.class_names))).astype(float)
        for name, leaf in model.leaves.items():
            if not isinstance(leaf, ExponentialFamily):
                raise TypeError(
                    f"{name!r}: {type(leaf).__name__} cannot learn from rows without a "
                    f"{'certain ' if told is not None else ''}label: leave them out, or give another leaf"
                )
        checked = model.check(x)
        rows = {name: np.asarray(v.toarray() if sparse.issparse(v) else v, float) for name, v in checked.items()}
        count = count_rows(rows)
        terms, centres, base = {}, {}, np.zeros(count)
        for name, leaf in model.leaves.items():
            z, missing = rows[name], leaf.missing(rows[name])
            if leaf.event_dim and (np.isnan(z).reshape(count, -1).any(1) & ~missing.reshape(count, -1).all(1)).any():
                raise DataError(
                    f"{name!r}: rows without a {'certain ' if told is not None else ''}label have gaps, which a full "
                    "covariance and a Markov chain do not take: leave them out, or take a diagonal or isotropic "
                    "covariance"
                )
            pooled = getattr((about or labelled).leaves[name], "pooled", None)
            centres[name] = np.zeros(()) if pooled is None else pooled.mean
            with np.errstate(invalid="ignore"):
                term = np.where(missing[..., None], 0.0, leaf.sufficient_statistic(z, centres[name]))
                base += np.where(missing, 0.0, leaf.log_base_measure(z)).reshape(count, -1).sum(1)
            terms[name] = term.reshape(count, -1)
        return cls(labelled, rows, terms, centres, base, np.ones(count) if weight is None else weight, told, about)

    @property
    def classes(self):
        """Counts of the labelled rows."""
        return self.labelled.classes

    @property
    def leaves(self):
        """Statistics of the rows that weak priors follow."""
        return (self.about or self.labelled).leaves

    @property
    def sizes(self):
        """Counts of the labelled rows, and of the others by their probabilities where the search begins at such."""
        return self.classes.total() + (0.0 if self.start is None else self.weight @ self.start)

    @property
    def squares(self):
        """Sums of squared weights of the labelled rows."""
        return self.labelled.squares

    def log_likelihood(self, model, params) -> Any:
        """Return log p(all rows | params), the unknown classes summed out. NumPy or JAX."""
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
        """Return the probability of each class of the rows whose class is not known, (m, K).

        A row that every class gives probability 0, as a point estimate can, has those of the classes.
        """
        one = {site: np.asarray(value)[None] for site, value in params.items()}
        joint = model.log_likelihood_rows(one, self.rows)[0].T
        if self.told is not None:
            joint = joint + self.told @ log_or_floor(params[model.CONFUSION]).T
        lost = np.isneginf(joint.max(1))
        with np.errstate(under="ignore", divide="ignore"):
            joint[lost] = np.log(params[f"{model.CLASSES}.probability"])
            return softmax(joint, axis=1)

    def expected(self, model, labels):
        """Return statistics of all rows; a row of unknown class counts in every class by its probability."""
        count, classes = labels.shape
        weight = (self.weight[:, None] * labels).ravel()
        rows = select_rows(self.rows, np.repeat(np.arange(count), classes))
        codes = np.tile(np.arange(classes), count)
        sums = model.sum_rows(rows, Grouping(codes, classes, weight, (classes,)))
        return sums if self.told is not None else self.labelled + sums

    def _confusions(self, labels):
        """Return the expected counts of each label in each class, by the probabilities of the classes."""
        return SumStatistics((self.weight[:, None] * labels).T @ self.told, np.float64(0))

    def posterior(self, model):
        """Return a conjugate model's posterior if every row counts in each class by its probability at the mode.

        The posterior's modes may have classes exchanged; this is near the one that expectation-maximisation finds from
        the recorded labels. Where it finds none, the recorded labels are taken as right.
        """
        try:
            labels = self.labels(model, self.maximise(model, "map"))
        except ValueError:
            return model.update(self.labelled)
        result = model.update(self.expected(model, labels))
        if self.told is None:
            return result
        return result._revised(confusion=model.confusion.update(self._confusions(labels)))

    def maximise(self, model, way: str):
        """Maximise by expectation-maximisation; ``way``, "map" or "ml", is the method with the closed form."""
        begun = self.labelled if self.start is None else self.expected(model, self.start)
        params, before = getattr(model, way)(begun), None
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
