"""The program of a generative classifier, and the statistics of classified rows.

`ClassProgram` samples class probabilities, the parameters of the leaves, and rows given both. `ClassStatistics` keep
the counts of the classes and the statistics of each leaf by class.
"""

import abc
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from bayesgen.core import program
from bayesgen.core.program import static
from bayesgen.core.statistics import Statistics, SumStatistics
from bayesgen.models.categorical import Categorical
from bayesgen.models.leaf import ExponentialFamily
from bayesgen.models.model import Model, Params


@dataclass(frozen=True, eq=False)
class ClassStatistics(Statistics):
    """Statistics of a classifier: class counts, and each leaf's statistics by class.

    Attributes
    ----------
    classes : SumStatistics
        Sum of weights of each class.
    leaves : dict
        Statistics by name of the leaf.
    squares : array, shape (K,)
        Sum of squared weights of each class: (Σw)²/Σw² is Kish's effective number of rows.
    schema : str
        Fingerprint of the columns, categories and classes that were summed, where known. Statistics of two schemas
        cannot be added: one code would stand for two categories.
    decayed : bool
        True if the weight of some rows was lowered after they were summed.
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

    def without(self, part, signed=()):
        """Return the statistics without the rows of ``part``; ``signed`` names leaves whose sums may be negative."""
        classes = self.classes.without(part.classes)
        leaves = {name: own.without(part.leaves[name], name in signed) for name, own in self.leaves.items()}
        squares = np.maximum(self.squares - part.squares, 0.0)
        return ClassStatistics(classes, leaves, squares, self.schema, self.decayed)

    def scaled(self, factor):
        """Return the statistics with every row weighted ``factor`` times as before, marked as `decayed`."""
        leaves = {name: own.scaled(factor) for name, own in self.leaves.items()}
        return ClassStatistics(self.classes.scaled(factor), leaves, self.squares * factor**2, self.schema, True)


@dataclass(frozen=True, eq=False)
class ClassProgram(Model):
    """A class prior and named leaves, as a NumPyro model function.

    Sites are named ``classes.probability`` and ``<leaf>.<parameter>``, with the class as leading axis. Where labels may
    be wrong there is also ``classes.confusion``, from class to label.
    """

    CLASSES: ClassVar[str] = "classes"
    CONFUSION: ClassVar[str] = "classes.confusion"

    classes: Any
    columns: Mapping[str, tuple[str, ...]] | tuple = static(default=(), kw_only=True)
    confusion: Any = field(default=None, kw_only=True)  # DirichletCategorical of K dice: the labels of each class

    def __post_init__(self):
        super().__post_init__()
        columns = dict(self.columns)
        object.__setattr__(self, "columns", tuple(zip(columns, map(tuple, columns.values()), strict=True)))
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
        """Return rows as a mapping from leaf to its array."""

    @property
    def class_names(self) -> tuple:
        """Labels of the classes, in the order of the codes."""
        return self.classes.categories

    def columns_of(self, name: str) -> tuple[str, ...]:
        """Return the column names of a leaf; () where they are unknown."""
        return dict(self.columns).get(name, ())

    # -- the program -------------------------------------------------------------------------------------------------

    def latents(self) -> Params:
        """Sample class probabilities and every leaf's parameters, leaves in plates "class" and "<leaf>.feature"."""
        with program.scope(self.CLASSES):
            params = {f"{self.CLASSES}.{site}": v for site, v in self.classes.latents().items()}
            if self.confusion is not None:
                prior = program.dist.Dirichlet(self.confusion.alpha).to_event(1)
                params[self.CONFUSION] = program.numpyro.sample("confusion", prior)
        for name, leaf in self.leaves.items():
            with program.scope(name, hide_types=["plate"]):
                sites = leaf.latents(len(self.class_names), f"{name}.")
            params |= {f"{name}.{site}": v for site, v in sites.items()}
        return params

    def __call__(self, x=None, t=None, told=None, *, size: int | None = None, subsample_size: int | None = None):
        """Run the program row by row; see `bayesgen.models.classifier`.

        Parameters
        ----------
        x : rows, optional
            Rows as for `statistics`; None draws them.
        t : int array, shape (n,), optional
            Class codes; None draws them.
        told : int array, shape (n,), optional
            Recorded labels, of a model that has a confusion matrix; None draws them.
        size : int, optional
            Number of rows to draw where all of these are None; default 1.
        subsample_size : int, optional
            Number of rows, chosen at random, that stand for all (NumPyro's `HMCECS`, SVI by minibatches).
        """
        numpyro, jnp = program.numpyro, program.jnp
        model = self._traced()
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
        """Draw one row for each draw of the parameters: from the posterior predictive if these are posterior draws.

        Parameters
        ----------
        params : mapping to arrays (n, ...)
            Draws of the parameters.
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

    # -- names of sites and of their axes ----------------------------------------------------------------------------

    def site(self, params: Params, name: str) -> Params:
        """Return the parameters of one leaf, without the leaf's name in front of theirs."""
        return {key[len(name) + 1 :]: v for key, v in params.items() if key.rpartition(".")[0] == name}

    def _join(self, classes: Params, leaves: Mapping[str, Params]) -> Params:
        parts = {self.CLASSES: classes, **leaves}
        return {f"{name}.{site}": value for name, params in parts.items() for site, value in params.items()}

    def dims(self, site: str) -> tuple[str, ...]:
        """Return the names of the axes of a site, after the axes of the draws."""
        if site == self.CONFUSION:
            return ("class", "label")
        name, _, parameter = site.rpartition(".")
        if name == self.CLASSES:
            return ("class",)
        wide = sum(bool(leaf.features) or leaf.event_dim > 0 for leaf in self.leaves.values())
        own = self.leaves[name].dims(parameter, grouped=True)
        return tuple(d if d == "class" or (wide == 1 and d.startswith("feature")) else f"{name}.{d}" for d in own)

    def coords(self) -> dict[str, list]:
        """Return the known labels along the axes that `dims` names."""
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
