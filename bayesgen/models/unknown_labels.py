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

**Rows without a certain label.** The class is summed out of rows without one (`docs/mathematics/latent-classes.md`)
and, where labels may be wrong, every row with a recorded label s_i contributes

.. math:: \Big( \sum_k \pi_k \, \Gamma_{k s_i} \, p(x_i \mid \theta_k) \Big)^{w_i}

The sum over classes has no sufficient statistics, so these rows are kept. There is no exact posterior: it would be a
sum over all K^m labellings. NUTS and Laplace take the density as it stands. They begin near the mode that MAP finds
(`UnknownClasses.start_from`), since other modes may have classes exchanged.

So rows of unknown class are a model, `UnknownClasses`, which holds a classifier and asks it about rows whose class is
known, or is supposed. A label that may be wrong is one more column of that classifier, a die with K sides in each
class, which new rows lack.

Maximum likelihood and MAP go by expectation-maximisation (Dempster, Laird and Rubin 1977; Nigam, McCallum, Thrun and
Mitchell 2000): a row counts w_i r_ik in class k, r_ik its probability there, and its label s_i as w_i r_ik labels of
class k in the closed form of Γ. The search begins at the recorded labels, with the most probable Γ of its prior, and
ends when no sum moves by more than 1e-9 of a row (`bayesgen.models.stacked_em`). Where no class is known, it begins at
the r_ik that `bayesgen.models.latent_classes` finds.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

from bayesgen.core.errors import DataError, listed, several
from bayesgen.core.statistics import Statistics
from bayesgen.models.categorical import DirichletCategorical
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.classifier import ClassConditional, NaiveBayes
from bayesgen.models.leaf import ExponentialFamily
from bayesgen.models.model import Hyperparameter, Hyperparameters, Model, Params, hyperparameter, of_part, unchecked
from bayesgen.models.moments import Moments
from bayesgen.models.row_em import RowEM
from bayesgen.models.row_leaf import RowsByGroup
from bayesgen.models.stacked_em import StackedEM
from bayesgen.numerics.pieces import select_rows, taken
from bayesgen.numerics.special import namespace
from bayesgen.numerics.sums import Grouping

_FLAT = 1e-7  # log likelihood that 600 steps may still gain at the end of a search
LABEL = "classes.label"  # name of the leaf of labels that may be wrong
CONFUSION = f"{LABEL}.probability"  # its site, the confusion matrix


@dataclass(frozen=True, eq=False)
class LabelNoise(Hyperparameters):
    """The prior of a confusion matrix: how often labels are wrong, and how sure one is of it.

    Parameters
    ----------
    rate : float, or array of shape (K, K), default 0.1
        Most probable share of wrong labels in each class, spread evenly over the other classes. It is above 0, and so
        small that the right label is the most frequent one. Or the share of each label (columns) in each class (rows,
        both sorted), with 0 on the diagonal and where a class is never labelled so: each label comes more often from
        its class than from any other. Labels that are "positive" or "unknown" are of this kind: of the classes
        "positive" and "unknown", the second of which then means negative, ``[[0, 0.5], [0, 0]]`` says that half of the
        positive rows are labelled unknown, and no negative row is labelled positive.
    rows : float, default 20.0
        Number of checked rows of each class that the guess is worth, > 0.

    Examples
    --------
    >>> LabelNoise(rate=0.2, rows=10).confusion(["a", "b"]).alpha
    array([[9., 3.],
           [3., 9.]])
    """

    rate: Hyperparameter = hyperparameter(0.1)
    rows: Hyperparameter = hyperparameter(20.0, positive=True)

    def __post_init__(self):
        super().__post_init__()
        if self.rows.ndim:
            raise ValueError("LabelNoise: rows must be a number, the same for every class")
        if self.rate.ndim == 0:
            if not 0 < self.rate < 1:
                raise ValueError(f"LabelNoise: rate must be a share, above 0 and below 1, got {float(self.rate):g}")
            return
        if self.rate.ndim != 2 or len(self.rate) != self.rate.shape[1] or self.rate.diagonal().any():
            raise ValueError(
                "LabelNoise: rate must be a number, the same for every class, or an array (K, K) of the share of each "
                f"wrong label (columns) in each class (rows), 0 on the diagonal; got {self.rate.tolist()}"
            )
        if (self.rate < 0).any() or (self.rate.sum(1) >= 1).any():
            raise ValueError(
                "LabelNoise: the shares of wrong labels in rate must be >= 0 and sum to less than 1 in each class, got "
                f"{self.rate.tolist()}"
            )

    def confusion(self, classes) -> DirichletCategorical:
        """Return the prior of Γ: a die for each true class, whose sides are the labels."""
        count = len(classes)
        if count < 2:
            raise ValueError("label_noise needs two classes at least: with one there is no wrong label")
        wrong = self.rate if self.rate.ndim else (1 - np.eye(count)) * self.rate / (count - 1)
        if len(wrong) != count:
            raise ValueError(f"LabelNoise: rate is of {len(wrong)} classes, and there are {count}: {listed(classes)}")
        if not self.rate.ndim and self.rate >= 1 - 1 / count:
            raise ValueError(
                f"LabelNoise: with {count} classes rate must be below {1 - 1 / count:.3g}, got {float(self.rate):g}: "
                "else the right label is not the most frequent, and classes are known up to their names alone"
            )
        share = wrong + np.diag(1 - wrong.sum(1))
        often = (share >= share.diagonal()) & ~np.eye(count, dtype=bool)
        if often.any():
            true, label = (list(classes)[k] for k in np.argwhere(often)[0])
            raise ValueError(
                f"LabelNoise: by rate the label {label!r} is as frequent in class {true!r} as in its own, and classes "
                "are known up to their names alone; rows of rate are classes, and columns are labels, both sorted"
            )
        return DirichletCategorical(1 + self.rows * share, classes, per_class=True)


def check_identifiable(model) -> None:
    """Raise where labels and columns of categories do not determine how often labels are wrong; see the module."""
    count = len(model.class_names)
    sizes = {}
    for name, leaf in model.leaves.items():
        columns = model.columns_of(name) or (name,) * int(np.prod(leaf.features))
        sizes |= {(name, j): (column, leaf.cardinality(j)) for j, column in enumerate(columns)}
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


@dataclass(frozen=True, eq=False)
class PartlyLabelled(Statistics):
    """Statistics of the rows with a label, and the rows whose class is not known."""

    keeps_rows = True

    # statistics of the rows with a label, by label. Where labels may be wrong, only priors and searches ask for them.
    recorded: ClassStatistics
    # checked rows of unknown class, NaN where missing: those without a label, or all rows where labels may be wrong
    rows: dict[str, np.ndarray]
    # T(x) of these rows about ``centres``, 0 where missing; the features of a leaf are side by side
    terms: dict[str, np.ndarray]
    centres: dict[str, np.ndarray]  # means of the columns, where T has a centre
    base: np.ndarray  # (m,): sum of log h(x) over leaves
    weight: np.ndarray  # (m,): weights of these rows, > 0
    about: ClassStatistics  # statistics that weak priors follow
    # (m, K): probabilities of the classes of ``rows`` at which the search begins, in place of the labels alone
    start: Any = None
    # (starts,): where the searches from all starts ended, by likelihood or by the bound of `latent_classes`
    heights: Any = None

    classes = of_part("recorded", "classes")  # counts of the labels
    squares = of_part("recorded", "squares")  # sums of squared weights of the rows with a label
    leaves = of_part("about", "leaves")  # statistics of the rows that weak priors follow

    @property
    def sizes(self):
        """Counts of the labels, and of other rows by their probabilities where the search begins at such."""
        return self.classes.total() + (0.0 if self.start is None else self.weight @ self.start)

    def expected(self, model: ClassConditional, labels) -> ClassStatistics:
        """Return statistics of all rows; a row of unknown class counts in every class by its probability (m, K)."""
        count, classes = labels.shape
        weight = (self.weight[:, None] * labels).ravel()
        rows = select_rows(self.rows, np.repeat(np.arange(count), classes))
        sums = model.sum_rows(rows, Grouping(np.tile(np.arange(classes), count), classes, weight, (classes,)))
        alone = LABEL in self.rows or not self.recorded.classes.total().any()
        return sums if alone else self.recorded + sums


def narrowed(statistics: ClassStatistics) -> ClassStatistics:
    """Return statistics of all rows, with the scatter within a class that `latent_classes` expects of their total."""
    numbers = {n: sums for n, sums in statistics.leaves.items() if isinstance(sums, Moments | RowsByGroup)}
    columns = sum((~sums.pooled.constant).sum() for sums in numbers.values())
    share = len(statistics.classes.total()) ** (-2 / max(columns, 1))

    def narrow(sums):
        if isinstance(sums, Moments):
            return replace(sums, scatter=sums.scatter * share)
        middle = sums.pooled.mean
        return replace(sums, x=np.where(sums.seen, middle + (sums.x - middle) * np.sqrt(share), 0.0))

    leaves = {name: narrow(sums) for name, sums in numbers.items()}
    return replace(statistics, leaves=statistics.leaves | leaves)


@dataclass(frozen=True, eq=False)
class UnknownClasses(Model):
    """A generative classifier some of whose rows have no label, or labels that may be wrong.

    Parameters
    ----------
    model : NaiveBayes or GaussianDiscriminant
        Model of rows and their true classes.
    confusion : DirichletCategorical, optional
        Prior of the labels in each class, K dice with ``per_class=True``, where labels may be wrong; see `LabelNoise`.

    Examples
    --------
    >>> import bayesgen as bg
    >>> from bayesgen.models import BetaBernoulli, DirichletCategorical, NaiveBayes
    >>> coins = NaiveBayes(DirichletCategorical(1.0, ["a", "b"]), {"heads": BetaBernoulli(2.0, 2.0)})
    >>> tosses = {"heads": [1.0, 1.0, 0.0, 0.0, 1.0]}
    >>> found = bg.fit(UnknownClasses(coins), (tosses, np.array([0, 0, 1, -1, -1])), "map")
    >>> found.params["heads.probability"].round(2)
    array([0.73, 0.32])
    """

    model: Any
    confusion: Any = None

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.model, ClassConditional):
            raise TypeError(f"model must be a NaiveBayes or a GaussianDiscriminant, got {type(self.model).__name__}")

    @functools.cached_property
    def whole(self) -> ClassConditional:
        """The classifier; where labels may be wrong, with a leaf of the labels beside the others."""
        model = self.model
        if self.confusion is None:
            return model
        leaves = {**model.leaves, LABEL: self.confusion}
        return unchecked(NaiveBayes, classes=model.classes, features=leaves, columns=model.columns)

    proper = of_part("model", "proper")
    bounded = of_part("model", "bounded")
    check = of_part("model", "check")
    log_abs_det_jacobian = of_part("whole", "log_abs_det_jacobian")
    dims = of_part("whole", "dims")
    coords = of_part("whole", "coords")

    def __call__(self, x=None, t=None, **options):
        """Run the program of the classifier row by row; ``t`` are codes of labels, -1 for none.

        Where labels may be wrong, "t" is the true class of every row, and "classes.label.x" the label.
        """
        if self.confusion is None:
            return self.model(x, t, **options)
        if x is None and t is None:
            return self.whole(**options)
        rows = dict.fromkeys(self.model.leaves) if x is None else self.model.blocks(x)
        return self.whole(self.beside(rows, t), **options)

    def latents(self) -> Params:
        return self.whole.latents()

    def beside(self, rows, t=None) -> dict[str, Any]:
        """Return rows by leaf, where labels may be wrong with their codes (n,) as one more, NaN where there is none."""
        if self.confusion is None or t is None:
            return dict(rows)
        xp = namespace(t)
        return {**rows, LABEL: xp.where(xp.asarray(t) < 0, np.nan, t)}

    def statistics(self, x, t, weight=None, schema: str = "", narrow: bool = True) -> PartlyLabelled:
        """Sum the rows with a label by their labels, and keep the rows of unknown class.

        Parameters
        ----------
        x : rows
            As the classifier takes them.
        t : int array, shape (n,)
            Codes of the labels, -1 where there is none.
        weight : array, shape (n,), optional
            Row weights >= 0.
        schema : str
            See `ClassStatistics`.
        narrow : bool
            False for the weak prior of one class, whatever the number of classes.
        """
        model, t, doubt = self.model, np.asarray(t), "" if self.confusion is None else "certain "
        for name, leaf in model.leaves.items():
            if not (isinstance(leaf, ExponentialFamily) or getattr(leaf, "learns_unlabelled", False)):
                columns, kind = listed(model.columns_of(name) or (name,)), type(leaf).__name__.removeprefix("Weak")
                raise TypeError(
                    f"columns {columns}: a {kind} cannot learn from rows without a {doubt}label: leave them out, or "
                    "give another leaf"
                )
        if doubt:
            check_identifiable(model)
        x, known, classes = model.check(x), t >= 0, len(model.class_names)

        def summed(chosen, codes):
            grouping = Grouping(codes, classes, taken(weight, chosen), (classes,))
            return model.sum_rows(select_rows(x, chosen), grouping, schema)

        recorded = summed(known, t[known])
        every = (recorded.classes.total() > 0).all()
        about = recorded if every else summed(np.arange(len(t)), np.zeros(len(t), np.intp))
        about = narrowed(about) if narrow and not every else about
        unknown = np.flatnonzero(~known) if self.confusion is None else np.arange(len(t))
        rows = {n: np.asarray(v.toarray() if sparse.issparse(v) else v, float) for n, v in x.items()}
        rows = select_rows(self.beside(rows, t), unknown)
        terms, centres, base = {}, {}, np.zeros(len(unknown))
        for name, leaf in self.whole.leaves.items():
            z, missing = rows[name], leaf._missing(rows[name])
            gaps = np.isnan(z).reshape(len(z), -1).any(1) & ~missing.reshape(len(z), -1).all(1)
            if leaf.event_dim and gaps.any():
                raise DataError(
                    f"{name!r}: rows without a {doubt}label have gaps, which a full covariance and a Markov chain do "
                    "not take: leave them out, or take a diagonal or isotropic covariance"
                )
            if not isinstance(leaf, ExponentialFamily):
                continue
            pooled = getattr(about.leaves.get(name), "pooled", None)
            centres[name] = np.zeros(()) if pooled is None else pooled.mean
            with np.errstate(invalid="ignore"):
                term = np.where(missing[..., None], 0.0, leaf.sufficient_statistic(z, centres[name]))
                base += np.where(missing, 0.0, leaf.log_base_measure(z)).reshape(len(z), -1).sum(1)
            terms[name] = term.reshape(len(z), -1)
        weight = np.ones(len(unknown)) if weight is None else np.asarray(weight, float)[unknown]
        return PartlyLabelled(recorded, rows, terms, centres, base, weight, about)

    def log_likelihood(self, params: Params, statistics: PartlyLabelled):
        """Return log p(all rows | params), the unknown classes summed out. NumPy or JAX."""
        model = self.whole
        share = params[f"{model.CLASSES}.probability"]
        xp = namespace(share)
        joint = xp.log(share)
        for name, leaf in model.leaves.items():
            sites = model.site(params, name)
            if name not in statistics.terms:
                joint = joint + leaf.densities(sites, statistics.rows[name]).T
                continue
            eta = leaf.natural_parameters(sites, statistics.centres[name])
            joint = joint + statistics.terms[name] @ eta.reshape(len(share), -1).T
        top = joint.max(1)
        level = top + xp.log(xp.exp(joint - top[:, None]).sum(1))
        result = (statistics.weight * (level + statistics.base)).sum()
        return result + model.log_likelihood(params, statistics.recorded) if self.confusion is None else result

    def log_likelihood_rows(self, params: Params, x) -> np.ndarray:
        """Return log p(row, t = k | params), (draws, K, n): of its label too, where rows have it `beside` them."""
        return (self.whole if LABEL in x else self.model).log_likelihood_rows(params, x)

    def labels(self, params: Params, statistics: PartlyLabelled) -> np.ndarray:
        """Return the probability of each class of the rows whose class is not known, (m, K).

        A row that every class gives probability 0, as a point estimate can, has those of the classes.
        """
        one = {site: np.asarray(value)[None] for site, value in params.items()}
        joint = self.log_likelihood_rows(one, statistics.rows)[0].T
        lost = np.isneginf(joint.max(1))
        with np.errstate(under="ignore", divide="ignore"):
            joint[lost] = np.log(params[f"{self.model.CLASSES}.probability"])
            return softmax(joint, axis=1)

    def map(self, statistics: PartlyLabelled) -> Params:
        return self._maximise(statistics, "map")

    def ml(self, statistics: PartlyLabelled) -> Params:
        return self._maximise(statistics, "ml")

    def stacked(self, statistics: PartlyLabelled, way: str) -> StackedEM:
        """Return the steps of expectation-maximisation for these rows."""
        return StackedEM(self.whole, statistics, way, None if self.confusion is not None else statistics.recorded)

    def _maximise(self, statistics: PartlyLabelled, way: str) -> Params:
        """Maximise by expectation-maximisation; ``way``, "map" or "ml", is the classifier's method in closed form.

        "start" is "map" that need not arrive: along a ridge memberships hardly move.
        """
        closed = "map" if way == "start" else way
        if statistics.start is not None:
            labels = statistics.start
        else:
            params = getattr(self.model, closed)(statistics.recorded)
            if self.confusion is not None:
                params = {**params, CONFUSION: self.confusion.mode()["probability"]}
            labels = self.labels(params, statistics)
        if statistics.terms.keys() != self.whole.leaves.keys():
            return RowEM(self, statistics, closed).climb(labels)
        em = self.stacked(statistics, way)
        found, arrived = em.climb(em.summed(labels.T[None]), limit=1000)
        before = em.level(found[0])  # or raise
        for _ in range(20):  # along a ridge, as where the columns are too few for the classes, the sums go on
            if arrived[0] or way == "start":
                break
            found, arrived = em.climb(found, limit=200)
            level = em.level(found[0])
            arrived |= abs(level - before) < _FLAT
            before = level
        params = em.parameters(found[0])
        if not (arrived[0] or way == "start"):
            raise DataError("no maximum was reached over unknown classes; use 'nuts', or fewer rows without a label")
        return params

    def start_from(self, statistics: PartlyLabelled):
        """Return the posterior if every row counts in each class by its probability at the mode.

        The posterior's modes may have classes exchanged; this is near the one that expectation-maximisation finds from
        the labels. Where it finds none, the labels are taken as right.
        """
        if not self.model.conjugate:
            return None
        try:
            return self.whole.update(self.expected(statistics))
        except ValueError:
            return replace(self, model=self.model.update(statistics.recorded)).whole

    def expected(self, statistics: PartlyLabelled) -> ClassStatistics:
        """Return statistics of all rows, each of which counts in every class by its probability at the mode."""
        return statistics.expected(self.whole, self.labels(self.near_mode(statistics), statistics))

    def near_mode(self, statistics: PartlyLabelled) -> Params:
        """Return the parameters at the mode; where the density has a ridge, those to which the search has come."""
        return self._maximise(statistics, "start")

    def starting_draws(self, statistics: PartlyLabelled, rng, size):
        """Draw as the classifier does for the rows with a label, or for all of them under the classes at the mode."""
        if statistics.terms.keys() == self.whole.leaves.keys():
            return self.model.starting_draws(statistics.recorded, rng, size)
        return self.whole.starting_draws(self.expected(statistics), rng, size)
