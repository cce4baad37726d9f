r"""Generative classifiers: a prior over classes, and features given the class.

.. math:: \pi \sim p(\pi), \quad \theta_k \sim p(\theta), \qquad t_i \mid \pi \sim \mathrm{Categorical}(\pi), \quad
   x_i \mid t_i = k, \theta \sim \prod_{\text{leaf } j} p_j(x_{ij} \mid \theta_{jk})

Statistics, evidence and log densities add over the leaves. Rows whose class is not known are a model of their own,
which holds one of these: `bayesgen.models.unknown_labels`.

**Naive Bayes.** Features are independent given the class, each with a leaf of its own, of any mixture of families:

.. math:: p(t = k \mid x) \propto p(t = k) \prod_j p_j(x_j \mid t = k); \quad \text{a missing } x_j \text{ drops out.}

**Gaussian discriminant analysis.** The features are one Gaussian vector given the class:

.. math:: t_i \mid \pi \sim \mathrm{Categorical}(\pi), \qquad x_i \mid t_i = k \sim N_D(\mu_k, \Sigma_k)

The covariance is full (QDA), diagonal (Gaussian naive Bayes) or isotropic, per class or shared by all: full and shared
is LDA; isotropic and shared with equal class probabilities is the nearest mean. The exact predictive class probability
uses a Student-t density per class, whose degrees of freedom grow with the rows from which its covariance is learned;
no estimate is plugged in.
"""

import abc
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen.core.errors import DataError
from bayesgen.core.program import static
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.beside_constants import marked_per_class
from bayesgen.models.class_program import ClassProgram, ClassStatistics
from bayesgen.models.leaf import Leaf
from bayesgen.models.model import Conjugate, Params, revised
from bayesgen.models.structures import structure
from bayesgen.numerics.special import namespace
from bayesgen.numerics.sums import Grouping, finite


def _of_every_leaf(flag: str) -> Any:
    """Return a property that is True where a flag is True for every leaf."""
    return property(lambda self: all([getattr(f, flag) for f in self.leaves.values()]), doc=f"{flag}, every leaf.")


@dataclass(frozen=True, eq=False)
class ClassConditional(ClassProgram, Conjugate):
    """A class prior and named leaves, which `NaiveBayes` and `GaussianDiscriminant` choose."""

    @abc.abstractmethod
    def with_leaves(self, classes, leaves: Mapping[str, Leaf]) -> Self:
        """Return the same model with other leaves of the same names."""

    def with_prior(self, statistics: ClassStatistics) -> Self:
        """Return the model with its weak priors set from the statistics of the rows."""
        leaves = self.leafwise(lambda name, leaf: leaf.with_prior(statistics.leaves[name]))
        same = all(map(operator.is_, leaves.values(), self.leaves.values()))
        return self if same else self.with_leaves(self.classes, leaves)

    def leafwise(self, operation) -> dict[str, Any]:
        """Apply ``operation(name, leaf)`` to every leaf; restate a `DataError` with the names of class and column."""
        result = {}
        for name, leaf in self.leaves.items():
            try:
                result[name] = operation(name, leaf)
            except DataError as error:
                raise error.with_names(self.class_names, self.columns_of(name) or (name,)) from None
        return result

    def statistics(self, x, t, weight=None) -> ClassStatistics:
        """Sum the rows, by class: one pass, additive over pieces of the data.

        Parameters
        ----------
        x : rows
            A mapping from leaf name to array (n, ...) (naive Bayes), or an array (n, D) (Gaussian discriminant).
        t : int array, shape (n,)
            Class codes in 0..K-1.
        weight : array, shape (n,), optional
            Row weights >= 0.
        """
        x = self.blocks(x)
        if np.asarray(t).dtype.kind not in "iu":
            t = self.classes.check(t)
            if not finite(t):
                raise ValueError(f"t is missing in row {np.isnan(t).argmax()}; drop the rows without a class")
            t = t.astype(np.intp)
        lengths = {name: len(rows) if isinstance(rows, list | tuple) else rows.shape[0] for name, rows in x.items()}
        lengths["t"] = len(t)
        if len(set(lengths.values())) > 1:
            raise ValueError(f"all rows must be of one length, got {lengths}")
        self.classes.check(t)
        return self.sum_rows(x, Grouping.of(len(t), t, len(self.class_names), weight))

    def sum_rows(self, x: Mapping[str, Any], rows: Grouping, schema: str = "") -> ClassStatistics:
        """Do `statistics` of blocks under a grouping by class that is already checked; see `ClassStatistics.schema`."""
        leaves = self.leafwise(lambda name, leaf: leaf.sum_rows(leaf._shaped(x[name]), rows))
        sizes, weight = rows.sizes(), rows.weight
        squares = sizes if weight is None else np.bincount(rows.codes, weight**2, rows.count)
        return ClassStatistics(SumStatistics(sizes, np.float64(0)), leaves, squares, schema)

    def log_likelihood(self, params: Params, statistics: ClassStatistics):
        result = self.classes.log_likelihood(self.site(params, self.CLASSES), statistics.classes)
        for name, leaf in self.leaves.items():
            result = result + leaf.log_likelihood(self.site(params, name), statistics.leaves[name])
        return result

    def has_closed_form(self, statistics: ClassStatistics):
        """Return True if every leaf has a posterior in closed form."""
        leaves = self.leaves.items()
        return self.conjugate and all(leaf.has_closed_form(statistics.leaves[name]) for name, leaf in leaves)

    def starting_draws(self, statistics, rng, size):
        """Draw leaf by leaf from the exact posterior, from the prior, or as the leaf says."""
        known = {name: leaf.start_from(statistics.leaves[name]) or leaf for name, leaf in self._by_class().items()}
        leaves = {name: leaf.starting_draws(statistics.leaves[name], rng, size) for name, leaf in known.items()}
        return self.join(self.classes.update(statistics.classes).sample_parameters(rng, size), leaves)

    def check(self, x) -> Mapping[str, Any]:
        x = self.blocks(x)
        return self.leafwise(lambda name, leaf: leaf.check(x[name]))

    def log_likelihood_rows(self, params: Params, x) -> np.ndarray:
        return self.row_density(params)(x)

    def row_density(self, params: Params):
        with np.errstate(divide="ignore"):
            classes = np.log(params[f"{self.CLASSES}.probability"])[..., None]
        leaves = {name: leaf.row_density(self.site(params, name)) for name, leaf in self.leaves.items()}

        def density(x):
            result = classes
            for name, leaf in leaves.items():
                result = result + leaf(x[name])
            return result

        return density

    conjugate: ClassVar[bool] = _of_every_leaf("conjugate")
    proper: ClassVar[bool] = _of_every_leaf("proper")
    bounded: ClassVar[bool] = _of_every_leaf("bounded")

    def update(self, statistics: ClassStatistics) -> Self:
        leaves = self.leafwise(lambda name, leaf: marked_per_class(leaf.update(statistics.leaves[name])))
        return self.with_leaves(self.classes.update(statistics.classes), leaves)

    def log_evidence(self, statistics: ClassStatistics):
        leaves = (leaf.log_evidence(statistics.leaves[name]) for name, leaf in self.leaves.items())
        return self.classes.log_evidence(statistics.classes) + sum(leaves)

    def log_predictive(self, x):
        """Return log p(x, t = k) with the parameters integrated out, (n, K)."""
        x, mean = self.blocks(x), self.classes.mean
        with np.errstate(divide="ignore"):
            result = namespace(mean).log(mean)[:, None]
        for density in self.leafwise(lambda name, leaf: leaf.log_predictive(x[name])).values():
            term = density.reshape(len(density), math.prod(density.shape[1:])).T
            if isinstance(term, np.ndarray):
                term = np.ascontiguousarray(term)
            alike = isinstance(term, np.ndarray) and term.dtype == result.dtype and len(term) == len(result)
            if alike and term.flags.writeable:
                term += result  # nobody else holds it, so a million rows are not copied
                result = term
            else:
                result = result + term
        return result.T  # class by class in memory: later reductions run over a few classes of many rows

    def map(self, statistics: ClassStatistics) -> Params:
        leaves = self.leafwise(lambda name, leaf: leaf.map(statistics.leaves[name]))
        return self.join(self.classes.map(statistics.classes), leaves)

    def log_abs_det_jacobian(self, params: Params):
        return sum(leaf.log_abs_det_jacobian(self.site(params, name)) for name, leaf in self.leaves.items())

    def ml(self, statistics: ClassStatistics) -> Params:
        leaves = self.leafwise(lambda name, leaf: leaf.ml(statistics.leaves[name]))
        return self.join(self.classes.ml(statistics.classes), leaves)

    def expected(self) -> Params:
        return self.join(self.classes.expected(), {name: leaf.expected() for name, leaf in self._by_class().items()})

    def _by_class(self) -> dict[str, Any]:
        """Return the leaves, with hyperparameters by class."""
        count = len(self.class_names)
        return {n: leaf if leaf.per_class else leaf.for_classes(count) for n, leaf in self.leaves.items()}

    def sample_parameters(self, rng: np.random.Generator, size: tuple[int, ...] = ()) -> Params:
        classes = self.classes.sample_parameters(rng, size)
        leaves = {name: leaf.sample_parameters(rng, size) for name, leaf in self._by_class().items()}
        return self.join(classes, leaves)


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
        Names of the columns of a block, for messages and labels.

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

    leaves = property(operator.attrgetter("features"), doc="The leaves by name.")  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def blocks(self, x):
        try:
            names = list(x.keys())
        except AttributeError:
            raise TypeError(
                f"NaiveBayes takes rows as a mapping from feature to array, got {type(x).__name__}"
            ) from None
        if type(x) is dict and names == [*self.features]:
            return x
        absent = [name for name in self.features if name not in names]
        if absent:
            raise ValueError(f"x lacks the features {absent}; it has {names}")
        return {name: x[name] for name in self.features}

    def with_leaves(self, classes, leaves):
        return revised(self, classes=classes, features=dict(leaves))


@dataclass(frozen=True, eq=False)
class GaussianDiscriminant(ClassConditional):
    """Class prior times a Gaussian vector per class.

    Parameters
    ----------
    classes : DirichletCategorical or KnownCategorical
        Prior over the classes; its categories are the class labels.
    gaussian : NormalInverseWishart, NormalInverseGamma, SeparationPrior or StudentT
        Prior on means and covariances. `NormalInverseWishart`: for a full covariance. `NormalInverseGamma` with a mean
        of length D: for a diagonal one (alpha, beta per feature) and an isotropic one (alpha, beta numbers).
        `SeparationPrior`: for full and diagonal. `StudentT` of a `NormalInverseWishart`: for "student".
    covariance : {"full", "diagonal", "isotropic", "student"}, default "full"
        Structure of the covariance; "student" is full, with the tails of Student's t in place of a Gaussian's.
    shared : bool, default False
        If True, the classes share the covariance.
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
        form = structure(self.covariance)
        if not isinstance(self.shared, bool | np.bool_):
            raise TypeError(f"shared must be True or False, got {self.shared!r}")
        object.__setattr__(self, "gaussian", form.leaf(self.gaussian, bool(self.shared)))
        super().__post_init__()

    @property
    def linear(self) -> bool:
        """True if the log odds of the classes are linear in the row: Gaussians that share a covariance."""
        return bool(self.shared) and self.covariance != "student"

    @property
    def leaves(self):
        return {"gaussian": self.gaussian}

    def blocks(self, x):
        """Return rows (n, D) by leaf, or None to draw them."""
        return x if isinstance(x, Mapping) else {"gaussian": x}

    def with_leaves(self, classes, leaves):
        return revised(self, classes=classes, gaussian=leaves["gaussian"])
