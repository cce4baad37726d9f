r"""The generative classifier: a prior over classes, and features given the class.

.. math:: \pi \sim p(\pi), \quad \theta_k \sim p(\theta), \qquad t_i \mid \pi \sim \mathrm{Categorical}(\pi), \quad
   x_i \mid t_i = k, \theta \sim \prod_{\text{leaf } j} p_j(x_{ij} \mid \theta_{jk})

Everything a leaf knows, the classifier inherits: statistics, evidence and log densities add over leaves. With a
confusion matrix Γ the label told of a row is drawn given its class, s_i | t_i ~ Categorical(Γ_{t_i}); see
`bayesgen.models.label_noise`.
"""

import abc
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from bayesgen import program
from bayesgen.errors import DataError
from bayesgen.leaf import ExponentialFamily
from bayesgen.model import Conjugate, Params
from bayesgen.models.dirichlet_categorical import Categorical
from bayesgen.models.unlabelled import PartlyLabelled
from bayesgen.numerics.special import namespace
from bayesgen.numerics.sums import Grouping, finite
from bayesgen.program import static
from bayesgen.statistics import Statistics, SumStatistics


@dataclass(frozen=True, eq=False)
class ClassStatistics(Statistics):
    """Statistics of a classifier: class counts, and each leaf's statistics by class.

    Attributes
    ----------
    classes : SumStatistics
        Sum of weights of each class.
    leaves : dict
        By name of the leaf.
    squares : array, shape (K,)
        Sum of squared weights of each class: (Σw)²/Σw² is Kish's effective number of rows.
    schema : str
        Fingerprint of the columns, categories and classes that were summed, where they are known. Statistics of two
        schemas do not add: one code would stand for two categories.
    decayed : bool
        Whether some rows were made to count less since they were summed.
    """

    classes: SumStatistics
    leaves: dict[str, Statistics]
    squares: np.ndarray
    schema: str = static(default="")
    decayed: bool = static(default=False)

    def _with(self, other, sign):
        if not isinstance(other, ClassStatistics) or self.leaves.keys() != other.leaves.keys():
            return super()._with(other, sign)
        if self.schema and other.schema and self.schema != other.schema:
            raise ValueError(
                "these are statistics of two schemas, which do not add: columns, categories or classes differ, or come "
                "in another order; sum all pieces under one schema"
            )
        combine = operator.add if sign > 0 else operator.sub
        leaves = {name: combine(mine, other.leaves[name]) for name, mine in self.leaves.items()}
        classes, squares = combine(self.classes, other.classes), combine(self.squares, other.squares)
        return ClassStatistics(classes, leaves, squares, self.schema or other.schema, self.decayed or other.decayed)

    def scaled(self, factor):
        """Statistics in which every row counts ``factor`` times what it did, marked as `decayed`."""
        leaves = {name: own.scaled(factor) for name, own in self.leaves.items()}
        return ClassStatistics(self.classes.scaled(factor), leaves, self.squares * factor**2, self.schema, True)

    def under(self, schema: str) -> "ClassStatistics":
        """The same statistics with the fingerprint of their schema."""
        return replace(self, schema=schema)


@dataclass(frozen=True, eq=False)
class ClassConditional(Conjugate):
    """A class prior and named leaves; `NaiveBayes` and `GaussianDiscriminant` say which leaves.

    Sites are named ``classes.probability`` and ``<leaf>.<parameter>``, with the class as leading axis; where labels may
    be wrong, ``classes.confusion``, from class to label.
    """

    CLASSES: ClassVar[str] = "classes"
    CONFUSION: ClassVar[str] = "classes.confusion"

    classes: Any
    columns: Mapping[str, tuple[str, ...]] | tuple = static(default=(), kw_only=True)
    confusion: Any = field(default=None, kw_only=True)  # DirichletCategorical of K dice: labels, by class

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "columns", tuple((name, tuple(c)) for name, c in dict(self.columns).items()))
        if not isinstance(self.classes, Categorical) or self.classes.event_dim:
            raise TypeError(
                f"{type(self).__name__}: classes must be a DirichletCategorical or KnownCategorical, "
                f"got {type(self.classes).__name__}"
            )
        for name, leaf in self.leaves.items():
            if not isinstance(leaf, ExponentialFamily):
                raise TypeError(
                    f"{type(self).__name__}: {name!r} must be a model of a feature such as BetaBernoulli(), "
                    f"got {type(leaf).__name__}"
                )
            if name == self.CLASSES:
                raise ValueError(f"{type(self).__name__}: {name!r} cannot name a feature: it names the class prior")

    @property
    @abc.abstractmethod
    def leaves(self) -> Mapping[str, Any]:
        """The leaves by name."""

    @abc.abstractmethod
    def blocks(self, x) -> Mapping[str, Any]:
        """Rows as a mapping from leaf to its array."""

    @abc.abstractmethod
    def with_leaves(self, classes, leaves: Mapping[str, ExponentialFamily]) -> Self:
        """Return the same model with other leaves of the same names."""

    def settled(self, statistics: "ClassStatistics") -> Self:
        """Return the model with its weak priors, which follow the statistics of the rows, in their places."""
        leaves = self._leafwise(lambda name, leaf: leaf.settled(statistics.leaves[name]))
        changed = any(leaves[name] is not leaf for name, leaf in self.leaves.items())
        return self.with_leaves(self.classes, leaves) if changed else self

    @property
    def class_names(self) -> tuple:
        """Labels of the classes, in the order of the codes."""
        return self.classes.categories

    def columns_of(self, name: str) -> tuple[str, ...]:
        """Column names of a leaf, where they are known."""
        return dict(self.columns).get(name, ())

    # -- the program -------------------------------------------------------------------------------------------------

    def latents(self) -> Params:
        """Sample class probabilities and every leaf's parameters, leaves in plates "class" and "<leaf>.feature"."""
        with program.scope(self.CLASSES):
            params = {f"{self.CLASSES}.{site}": v for site, v in self.classes.parameters().items()}
            if self.confusion is not None:
                prior = program.dist.Dirichlet(self.confusion.alpha).to_event(1)
                params[self.CONFUSION] = program.numpyro.sample("confusion", prior)
        for name, leaf in self.leaves.items():
            with program.scope(name, hide_types=["plate"]):
                sites = leaf.latents(len(self.class_names), f"{name}.")
            params |= {f"{name}.{site}": v for site, v in sites.items()}
        return params

    def __call__(self, x=None, t=None, told=None, *, size: int | None = None, subsample_size: int | None = None):
        """Run the program row by row; see the module.

        Parameters
        ----------
        x : rows, optional
            As for `statistics`; None draws them.
        t : int array, shape (n,), optional
            Class codes; None draws them.
        told : int array, shape (n,), optional
            Labels told, of a model that has a confusion matrix; None draws them.
        size : int, optional
            How many rows to draw where both are None; default 1.
        subsample_size : int, optional
            How many of the rows, chosen at random, stand for all of them (NumPyro's `HMCECS`, SVI by minibatches).
        """
        numpyro, jnp = program.numpyro, program.jnp
        model = self.traced()
        params = model.latents()
        x = {} if x is None else {name: a for name, a in model.blocks(x).items() if a is not None}
        lengths = [len(a) for a in [*x.values(), t, told] if a is not None]
        size = lengths[0] if lengths else size or 1
        with program.subsampled(size, subsample_size) as rows:
            with numpyro.plate("obs", size, subsample_size=subsample_size):
                prior = model.classes.likelihood(model.site(params, self.CLASSES))
                t = numpyro.sample("t", prior, obs=None if t is None else jnp.asarray(t)[rows])
                if model.confusion is not None:
                    label = program.dist.Categorical(params[self.CONFUSION][t])
                    numpyro.sample("told", label, obs=None if told is None else jnp.asarray(told)[rows])
            for name, leaf in model.leaves.items():
                own, features = leaf.select_class(model.site(params, name), t), leaf.features
                seen = jnp.asarray(x[name])[rows] if name in x else None
                leaf.observe(f"{name}.x", own, seen, size, features, f"{name}.")
        return t

    def sample_rows(self, params: Params, seed) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Draw one row for each draw of the parameters: from the posterior predictive where they are the posterior's.

        Parameters
        ----------
        params : mapping to arrays (n, ...)
            ParameterDraws.
        seed : int
            Source of randomness.

        Returns
        -------
        t : int array, shape (n,)
            Class codes.
        x : mapping from leaf to array (n, ...)
        """
        rng = np.random.default_rng(seed)
        cumulative = np.cumsum(params[f"{self.CLASSES}.probability"], axis=-1)[:, :-1]
        t = (rng.random((len(cumulative), 1)) > cumulative).sum(1)
        x = {name: leaf.draw(self.site(params, name), rng) for name, leaf in self.leaves.items()}
        return t, {name: rows[np.arange(len(t)), t] for name, rows in x.items()}

    # -- statistics and densities ------------------------------------------------------------------------------------

    def site(self, params: Params, name: str) -> Params:
        """Return the parameters of one leaf, without its name before theirs."""
        return {key[len(name) + 1 :]: v for key, v in params.items() if key.rpartition(".")[0] == name}

    def _leafwise(self, operation) -> dict[str, Any]:
        """Apply ``operation(name, leaf)`` to every leaf; what it cannot take is told with its names."""
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

    def sum_rows(self, x: Mapping[str, Any], rows: Grouping) -> ClassStatistics:
        """Do `statistics` of blocks under a grouping by class that is checked already."""
        leaves = self._leafwise(lambda name, leaf: leaf.sum_rows(leaf.shaped(x[name]), rows))
        sizes, weight = rows.sizes(), rows.weight
        squares = sizes if weight is None else np.bincount(rows.codes, weight**2, rows.count)
        return ClassStatistics(SumStatistics(sizes, np.float64(0)), leaves, squares)

    def log_likelihood(self, params: Params, statistics: ClassStatistics | PartlyLabelled):
        """Log p(all rows | params): no rows needed, but those without a label. NumPy or JAX."""
        if isinstance(statistics, PartlyLabelled):
            return statistics.log_likelihood(self, params)
        result = self.classes.log_likelihood(self.site(params, self.CLASSES), statistics.classes)
        for name, leaf in self.leaves.items():
            result = result + leaf.log_likelihood(self.site(params, name), statistics.leaves[name])
        return result

    def whitened(self, statistics: ClassStatistics | PartlyLabelled):
        """The same posterior in better coordinates, leaf by leaf; see `Model.whitened`."""
        if isinstance(statistics, PartlyLabelled):  # rows that are kept stay in their own
            return super().whitened(statistics)
        parts = {name: leaf.whitened(statistics.leaves[name]) for name, leaf in self.leaves.items()}
        leaves, sums, back = ({name: part[i] for name, part in parts.items()} for i in range(3))

        def restore(params):
            own = {name: back[name](self.site(params, name)) for name in back}
            return self._join(self.site(params, self.CLASSES), own)

        return self.with_leaves(self.classes, leaves), replace(statistics, leaves=sums), restore

    def near(self, statistics: ClassStatistics | PartlyLabelled):
        """The posterior near the mode that the labels told lead to, where some are missing or may be wrong."""
        return statistics.posterior(self) if isinstance(statistics, PartlyLabelled) and self.conjugate else None

    def check(self, x) -> Mapping[str, Any]:
        """Return the rows by leaf, checked, or raise what is wrong with them."""
        x = self.blocks(x)
        return self._leafwise(lambda name, leaf: leaf.check(x[name]))

    def log_likelihood_rows(self, params: Params, x) -> np.ndarray:
        """Log p(x_i, t_i = k | params) for rows checked by `check`; (draws, K, n)."""
        return self.row_density(params)(x)

    def row_density(self, params: Params):
        """Return `log_likelihood_rows` as a function of rows; leaves prepare what does not depend on rows."""
        with np.errstate(divide="ignore"):
            classes = np.log(params[f"{self.CLASSES}.probability"])[..., None]
        leaves = {name: leaf.row_density(self.site(params, name)) for name, leaf in self.leaves.items()}

        def density(x):
            result = classes
            for name, leaf in leaves.items():
                result = result + leaf(x[name])
            return result

        return density

    def told(self, density: np.ndarray, params: Params) -> np.ndarray:
        """Log p(x_i, s_i = k | params) of the label told, from that of the class; (draws, K, n)."""
        if self.confusion is None:
            return density
        with np.errstate(under="ignore", divide="ignore"):
            top = np.maximum(density.max(1, keepdims=True), -1e300)
            return np.log(np.swapaxes(params[self.CONFUSION], 1, 2) @ np.exp(density - top)) + top

    # -- the algebra, where every leaf is conjugate ------------------------------------------------------------------

    @property
    def conjugate(self) -> bool:  # type: ignore[override]  # of a classifier it depends on the leaves
        """Whether the exact posterior exists in closed form."""
        return all(leaf.conjugate for leaf in self.leaves.values())

    @property
    def proper(self) -> bool:  # type: ignore[override]  # of a classifier it depends on the leaves
        """Whether the prior of every leaf is a distribution."""
        return all(leaf.proper for leaf in self.leaves.values())

    def update(self, statistics: ClassStatistics) -> Self:
        """Return the posterior: every leaf updated by class."""
        _require_labels(statistics)
        leaves = self._leafwise(lambda name, leaf: leaf.update(statistics.leaves[name]).marked_per_class())
        return self.with_leaves(self.classes.update(statistics.classes), leaves)

    def log_evidence(self, statistics: ClassStatistics):
        """Log p(x, t) of the rows as a sequence, every constant kept."""
        _require_labels(statistics)
        leaves = (leaf.log_evidence(statistics.leaves[name]) for name, leaf in self.leaves.items())
        return self.classes.log_evidence(statistics.classes) + sum(leaves)

    def log_predictive(self, x):
        """Log p(x, t = k) with the parameters integrated out, (n, K)."""
        x, mean = self.blocks(x), self.classes.mean
        with np.errstate(divide="ignore"):
            result = namespace(mean).log(mean)[:, None]
        for density in self._leafwise(lambda name, leaf: leaf.log_predictive(x[name])).values():
            own = density.reshape(len(density), math.prod(density.shape[1:])).T
            if isinstance(own, np.ndarray):
                own = np.ascontiguousarray(own)
            alike = isinstance(own, np.ndarray) and own.dtype == result.dtype and len(own) == len(result)
            if alike and own.flags.writeable:
                own += result  # it is nobody else's: a million rows are not copied
                result = own
            else:
                result = result + own
        return result.T  # class by class in memory: what follows reduces over a few classes of many rows

    def map(self, statistics: ClassStatistics | PartlyLabelled) -> Params:
        """Mode of the posterior, leaf by leaf, by class; by expectation-maximisation where labels are missing."""
        if isinstance(statistics, PartlyLabelled):
            return statistics.maximise(self, "map")
        leaves = self._leafwise(lambda name, leaf: leaf.map(statistics.leaves[name]))
        return self._join(self.classes.map(statistics.classes), leaves)

    def log_abs_det_jacobian(self, params: Params):
        """Sum of the leaves'; see `ExponentialFamily.log_abs_det_jacobian`."""
        return sum(leaf.log_abs_det_jacobian(self.site(params, name)) for name, leaf in self.leaves.items())

    def ml(self, statistics: ClassStatistics | PartlyLabelled) -> Params:
        """Maximum likelihood, leaf by leaf, by class; by expectation-maximisation where labels are missing."""
        if isinstance(statistics, PartlyLabelled):
            return statistics.maximise(self, "ml")
        leaves = self._leafwise(lambda name, leaf: leaf.ml(statistics.leaves[name]))
        return self._join(self.classes.ml(statistics.classes), leaves)

    def expected(self) -> Params:
        """Mean of every parameter."""
        leaves = {name: leaf.expected() for name, leaf in self._by_class().items()}
        return {**self._join(self.classes.expected(), leaves), **self._confusion(lambda dice: dice.expected())}

    def _by_class(self) -> dict[str, Any]:
        """The leaves, their hyperparameters by class."""
        count = len(self.class_names)
        return {n: leaf if leaf.per_class else leaf.for_classes(count) for n, leaf in self.leaves.items()}

    def sample_parameters(self, rng: np.random.Generator, size: tuple[int, ...] = ()) -> Params:
        """Draw the parameters exactly, leaf by leaf."""
        classes = self.classes.sample_parameters(rng, size)
        leaves = {name: leaf.sample_parameters(rng, size) for name, leaf in self._by_class().items()}
        return {**self._join(classes, leaves), **self._confusion(lambda dice: dice.sample_parameters(rng, size))}

    def _confusion(self, operation) -> Params:
        """What an operation on its dice gives of the confusion matrix, where there is one."""
        return {} if self.confusion is None else {self.CONFUSION: operation(self.confusion)["probability"]}

    def _join(self, classes: Params, leaves: Mapping[str, Params]) -> Params:
        parts = {self.CLASSES: classes, **leaves}
        return {f"{name}.{site}": value for name, params in parts.items() for site, value in params.items()}

    def dims(self, site: str) -> tuple[str, ...]:
        """Names of the axes of a site, behind those of the draws."""
        if site == self.CONFUSION:
            return ("class", "label")
        name, _, parameter = site.rpartition(".")
        if name == self.CLASSES:
            return ("class",)
        wide = sum(bool(leaf.features) or leaf.event_dim > 0 for leaf in self.leaves.values())
        own = self.leaves[name].dims(parameter, grouped=True)
        return tuple(d if d == "class" or (wide == 1 and d.startswith("feature")) else f"{name}.{d}" for d in own)

    def coords(self) -> dict[str, list]:
        """Labels along the axes that `dims` names, where they are known."""
        labels: dict[str, list] = {"class": list(self.class_names)}
        if self.confusion is not None:
            labels["label"] = list(self.class_names)
        for name, leaf in self.leaves.items():
            for site in leaf.site_dims or ("",):
                for dim in self.dims(f"{name}.{site}"):
                    if dim.split(".")[-1].startswith("feature") and len(self.columns_of(name)):
                        labels[dim] = list(self.columns_of(name))
                    elif dim == f"{name}.category":
                        labels[dim] = list(leaf.categories)
        return labels


def _require_labels(statistics) -> None:
    if isinstance(statistics, PartlyLabelled):
        doubt = "have no label" if statistics.told is None else "have a class that is not known, as labels may be wrong"
        raise ValueError(
            f"{len(statistics.base)} rows {doubt}: their posterior is a sum over all labellings, and neither it "
            "nor the evidence has a closed form; use inference='map', 'ml' or 'nuts'"
        )
