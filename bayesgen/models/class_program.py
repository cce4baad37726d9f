"""The program of a generative classifier, and the statistics of classified rows.

`ClassProgram` samples class probabilities, the parameters of the leaves, and rows given both. `ClassStatistics` keep
the counts of the classes and the statistics of each leaf by class.
"""

import abc
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bayesgen.core import program
from bayesgen.core.program import static
from bayesgen.core.statistics import Statistics, SumStatistics
from bayesgen.models.categorical import Categorical
from bayesgen.models.gaps import PatternMoments
from bayesgen.models.leaf import Leaf
from bayesgen.models.model import Model, Params, on_jax
from bayesgen.models.moments import Moments, moments
from bayesgen.models.row_leaf import RowsByGroup

_NEVER = -1e30  # log probability of a class that a row cannot have: sums over classes stay finite in single precision


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
        True if the weight of some rows was lowered after they were summed, or their labels were shares.
    """

    classes: SumStatistics
    leaves: dict[str, Statistics]
    squares: np.ndarray
    schema: str = static(default="")
    decayed: bool = static(default=False)

    @property
    def keeps_rows(self) -> bool:  # type: ignore[override]  # depends on the leaves
        """True if some leaf keeps its rows."""
        return any(statistics.keeps_rows for statistics in self.leaves.values())

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

    def without(self, gone, signed=()):
        classes = self.classes.without(gone.classes)
        leaves = {name: sums.without(gone.leaves[name], name in signed) for name, sums in self.leaves.items()}
        squares = np.maximum(self.squares - gone.squares, 0.0)
        return ClassStatistics(classes, leaves, squares, self.schema, self.decayed)

    def scaled(self, factor):
        """Return the statistics with every row weighted ``factor`` times as before, marked as `decayed`."""
        leaves = {name: sums.scaled(factor) for name, sums in self.leaves.items()}
        return ClassStatistics(self.classes.scaled(factor), leaves, self.squares * factor**2, self.schema, True)


def column_sums(leaf, statistics) -> dict[str, np.ndarray]:
    """Return the summaries of all columns of a block: arrays (K, columns)."""
    if isinstance(statistics, PatternMoments):
        statistics = statistics.columns()
    if isinstance(statistics, RowsByGroup):
        x, codes, weight = statistics.flat()
        statistics = moments(x.reshape(len(x), -1), codes, statistics.lead[0], weight)
    if isinstance(statistics, Moments):
        mean, squares, n = statistics.mean, statistics.scatter, statistics.n
        if statistics.vector:
            squares = np.diagonal(squares, axis1=-2, axis2=-1)
        flat = [a.reshape(len(mean), -1) for a in (mean, squares)]
        n = np.broadcast_to(n.reshape(len(mean), -1), flat[0].shape)
        return {"count": n, "mean": flat[0], "scatter": flat[1]}
    total = statistics.total()
    total = total.reshape(len(total), -1, total.shape[-1])
    return leaf.summaries(total)


@dataclass(frozen=True, eq=False)
class ClassProgram(Model):
    """A class prior and named leaves, as a NumPyro model function.

    Sites are named ``classes.probability`` and ``<leaf>.<parameter>``, with the class as leading axis.
    """

    CLASSES: ClassVar[str] = "classes"

    classes: Any
    columns: Mapping[str, tuple[str, ...]] | tuple = static(default=(), kw_only=True)

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
            if not isinstance(leaf, Leaf):
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
        for name, leaf in self.leaves.items():
            with program.scope(name, hide_types=["plate"]):
                sites = leaf.latents(len(self.class_names), f"{name}.")
            params |= {f"{name}.{site}": v for site, v in sites.items()}
        return params

    @program.unique_names()
    def __call__(
        self,
        x=None,
        t=None,
        *,
        size: int | None = None,
        subsample_size: int | None = None,
        log_joint: bool | None = None,
    ):
        """Run the program row by row; see `bayesgen.models.classifier`.

        Inside plates of the user every one of their elements has parameters and rows of its own.

        Parameters
        ----------
        x : rows, optional
            Rows as for `statistics`, with the axes of the user's plates in front; None draws them.
        t : int array, shape (plates..., n), optional
            Class codes; None draws them. A code of -1 is a class that is not known, for a program that is enumerated
            (`numpyro.contrib.funsor.config_enumerate`); in a row without any entry it marks that there is no row.
        size : int, optional
            Number of rows to draw where both are None; default 1.
        subsample_size : int, optional
            Number of rows, chosen at random, that stand for all (NumPyro's `HMCECS`, SVI by minibatches).
        log_joint : bool, optional
            True records the site "t_log_joint", log p(x, t = k | parameters) of each row and class, (rows..., K), with
            missing entries integrated out. By default it is recorded where x is given and t is drawn: then the draws
            of "t" are of the class prior, as nothing conditions them on x, and probabilities of the classes given x
            come from the mean of exp(t_log_joint) over draws of the posterior.
        """
        numpyro = program.numpyro
        model, layout = on_jax(self), program.Layout.now()
        params = {site: program.jnp.asarray(value) for site, value in model.latents().items()}
        rows_of = {} if x is None else model.blocks(x)
        given = {name: program.known(a) for name, a in rows_of.items() if a is not None}
        t = model._codes(t)
        trailing = [(a, len(model.leaves[name].features) + model.leaves[name].event_dim) for name, a in given.items()]
        lengths = [layout.size(*a) for a in [*trailing, *([] if t is None else [(t, 0)])]]
        if len(set(lengths)) > 1:
            raise ValueError(f"all rows must be of one length, got {lengths}")
        size, empty = lengths[0] if lengths else size or 1, model._empty(given, t)
        hidden = t is not None and (t < 0) & ~empty
        partly = not program.is_abstract(hidden) and bool(np.any(hidden))
        with program.subsampled(size, subsample_size) as rows:
            given = {name: layout.place(a, rows) for name, a in given.items()}
            t, empty = (a if a is None else layout.place(a, rows) for a in (t, empty))
            with numpyro.plate("obs", size, subsample_size=subsample_size, dim=layout.dim):
                t, free = model._sample_classes(params, t, empty, partly)
            for name, leaf in model.leaves.items():
                of_rows = leaf.select_class(model.site(params, name), layout.codes(t))
                leaf.observe(f"{name}.x", of_rows, given.get(name), size, leaf.features)
            if given and (free if log_joint is None else log_joint):
                numpyro.deterministic("t_log_joint", model._log_joint(params, given))
        return t

    def _codes(self, codes: Any) -> Any:
        """Return codes of classes as integers, or raise where they are known and no class has them."""
        codes, count = program.known(codes), len(self.class_names)
        if codes is None:
            return None
        if not program.is_abstract(codes) and not np.isin(codes, np.arange(-1, count)).all():
            raise ValueError(f"t must hold codes 0..{count - 1} of the classes, or -1 where it is not known")
        return codes.astype(int)

    def _empty(self, x: Mapping[str, Any], t) -> Any:
        """Return a mask of the rows without any entry, (plates..., n); None where no class is given."""
        if t is None:
            return None
        result = np.full(t.shape, x.keys() == self.leaves.keys())
        for name, rows in x.items():
            axes = tuple(range(-len(self.leaves[name].features) - self.leaves[name].event_dim, 0))
            gone = program.jnp.isnan(rows) if program.is_abstract(rows) else rows != rows
            result = result & (gone.all(axes) if axes else gone)
        return result

    def _sample_classes(self, params: Params, t: Any, empty: Any, partly: bool):
        """Sample or observe the classes; return them, and True if they are drawn: not given, substituted or enumerated.

        Where some are known and some are not, "t" holds all of them: of a row whose class is known, which "t_known"
        observes, it can take no other value. So the sum over all values of "t" is over the unknown classes alone.
        """
        numpyro, jnp = program.numpyro, program.jnp
        probability = self.site(params, self.CLASSES)["probability"]
        prior: Any = self.classes.likelihood({"probability": probability})
        known: Any = t is not None and t >= 0
        count = len(self.class_names)
        if partly:
            numpyro.sample("t_known", prior.mask(known), obs=jnp.where(known, t, 0))
            certain = jnp.where(jnp.expand_dims(t, -1) == jnp.arange(count), 0.0, _NEVER)
            unknown = jnp.maximum(jnp.log(probability), _NEVER)
            t, prior = None, program.dist.Categorical(logits=jnp.where(known[..., None], certain, unknown))
        elif t is not None and (program.is_abstract(t) or (t < 0).any()):
            # An unknown class that nobody could see when the program was compiled has code K: its density is NaN.
            prior, t = prior.mask(known | ~empty), jnp.where(known, t, jnp.where(empty, 0, count))
        site = program.watch()
        with site:
            t = numpyro.sample("t", prior, obs=None if t is None else jnp.asarray(t))
        return t, site.drawn

    def _log_joint(self, params: Params, x: Mapping[str, Any]):
        """Return log p(x, t = k | params), (rows..., K)."""
        result = program.jnp.log(self.site(params, self.CLASSES)["probability"])
        for name, rows in x.items():
            leaf = self.leaves[name]
            lead = rows.ndim - len(leaf.features) - leaf.event_dim
            rows = rows.reshape(*rows.shape[:lead], 1, *rows.shape[lead:])
            likelihood, rows = leaf._density_of(leaf.select_class(self.site(params, name), ...), rows)
            result = result + likelihood.to_event(len(leaf.features)).log_prob(rows)
        return result

    def sample_rows(self, params: Params, seed) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Draw a row for each of n draws of the parameters; return the class codes (n,), and the rows by leaf."""
        rng = np.random.default_rng(seed)
        t = self.classes.draw(self.site(params, self.CLASSES), rng)
        x = {name: leaf.draw(self.site(params, name), rng) for name, leaf in self.leaves.items()}
        return t, {name: rows[np.arange(len(t)), t] for name, rows in x.items()}

    # -- names of sites and of their axes ----------------------------------------------------------------------------

    def site(self, params: Params, name: str) -> Params:
        """Return the parameters of one leaf, without the leaf's name in front of theirs."""
        return {key[len(name) + 1 :]: v for key, v in params.items() if key.rpartition(".")[0] == name}

    def join(self, classes: Params, leaves: Mapping[str, Params]) -> Params:
        """Return the parameters of the classes and of each leaf under the names of their sites."""
        parts = {self.CLASSES: classes, **leaves}
        return {f"{name}.{site}": value for name, params in parts.items() for site, value in params.items()}

    def dims(self, site: str) -> tuple[str, ...]:
        name, _, parameter = site.rpartition(".")
        if name == self.CLASSES:
            return ("class",)
        wide = sum(bool(leaf.features) or leaf.event_dim > 0 for leaf in self.leaves.values())
        axes = self.leaves[name].dims(parameter, grouped=True)
        return tuple(d if d == "class" or (wide == 1 and d.startswith("feature")) else f"{name}.{d}" for d in axes)

    def coords(self) -> dict[str, list]:
        labels: dict[str, list] = {"class": list(self.class_names)}
        for name, leaf in self.leaves.items():
            known = leaf.coords()
            for site in leaf.site_dims or ("",):
                for dim in self.dims(f"{name}.{site}"):
                    axis = dim.removeprefix(f"{name}.")
                    if dim.split(".")[-1].startswith("feature") and len(self.columns_of(name)):
                        labels[dim] = list(leaf._modelled(self.columns_of(name)))
                    elif axis in known:
                        labels[dim] = known[axis]
        return labels
