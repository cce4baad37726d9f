"""What a model is: a NumPyro model function, an exponential family, a conjugate model.

A user's own leaf derives from `Conjugate` and writes a few lines of mathematics; see `bayesgen.models` for examples.
"""

import contextlib
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from bayesgen import program
from bayesgen.numerics.checks import check_weight
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.sums import finite, grouping, membership
from bayesgen.program import Record
from bayesgen.statistics import Statistics, SumStatistics

Params = Mapping[str, Any]  # name of a site -> array (draws..., groups..., features..., event...)

_INFINITE = "is infinite; replace it, or give NaN where the value is missing"
LOG_ZERO = -1e290  # a finite stand-in for log 0, so that 0 * log 0 = 0 in a matrix product


class NoClosedForm(Exception):
    """A model has no formula for what was asked; an inference may have another way."""


class DataError(ValueError):
    """A value that a model cannot take, placed by index; a model that knows names restates it with them."""

    def __init__(self, problem: str, *, group: int | None = None, feature: int | None = None):
        self.problem, self.group, self.feature = problem, group, feature
        place = [f"class {group}"] * (group is not None) + [f"feature {feature}"] * (feature is not None)
        super().__init__(": ".join([", ".join(place)] * bool(place) + [problem]))

    def with_names(self, classes=(), columns=()) -> ValueError:
        """The same error with the names of class and column in place of their numbers."""
        group = classes[self.group] if self.group is not None and len(classes) else self.group
        place = [f"class {group!r}"] * (group is not None)
        if len(columns) == 1 or (len(columns) and self.feature is not None):
            feature = self.feature or 0  # within a block that goes by one name its number stays a number
            known = feature < len(columns)
            place.append(f"column {columns[feature]!r}" if known else f"column {columns[0]!r}, feature {feature}")
        return ValueError(": ".join([", ".join(place)] * bool(place) + [self.problem]))


def hyperparameter(default: Any = dataclasses.MISSING, *, rank: int = 0, positive: bool = False) -> Any:
    """Declare a hyperparameter: a float64 array whose last ``rank`` axes belong to one feature or vector."""
    return dataclasses.field(default=default, metadata={"rank": rank, "positive": positive})


class Model(Record):
    """A probabilistic model: an immutable record of hyperparameters that is itself a NumPyro model function."""

    def __post_init__(self):
        super().__post_init__()
        for field in dataclasses.fields(self):
            if "rank" in field.metadata:
                object.__setattr__(self, field.name, _hyper(self, field))

    def __call__(self, *data):
        """Run the program row by row: parameters from the prior, rows given the parameters."""
        raise TypeError(f"{type(self).__name__} does not define a NumPyro program")

    def latents(self) -> Params:
        """Sample the parameters inside their plates: the prior half of the program."""
        raise TypeError(f"{type(self).__name__} does not define latents()")

    def statistics_program(self, statistics: Statistics) -> None:
        """Run the program on the statistics: parameters from the prior, the likelihood of all rows as one factor."""
        params = self.latents()
        program.numpyro.factor("log_likelihood", self.log_likelihood(params, statistics))

    def log_likelihood(self, params: Params, statistics: Statistics):
        """Log p(all rows | params). NumPy or JAX."""
        raise TypeError(f"{type(self).__name__} does not define log_likelihood()")

    def row_density(self, params: Params):
        """Return `log_likelihood_rows` of ``params`` as a function of rows alone, for many pieces of rows."""
        return lambda x: self.log_likelihood_rows(params, x)

    def log_likelihood_rows(self, params: Params, x) -> np.ndarray:
        """Log p(row | params) for every leading index of ``params`` and every row."""
        raise TypeError(f"{type(self).__name__} does not define log_likelihood_rows()")

    def log_abs_det_jacobian(self, params: Params):
        """Log of d(sampled sites)/d(parameters): turns the sites' density into that of the parameters MAP speaks of."""
        return 0.0

    def traced(self) -> Self:
        """Return the same model on JAX arrays: a NumPy float64 leaf would leak into a float32 program.

        Of a copy: JAX remembers the conversion of a read-only array and would hand a later float64 run the float32 one.
        """
        return program.jax.tree_util.tree_map(lambda a: program.jnp.asarray(a.copy()), self)


def _hyper(model: Model, field: dataclasses.Field) -> np.ndarray:
    owner, name, rank = type(model).__name__, field.name, field.metadata["rank"]
    try:
        value = np.asarray(getattr(model, name), dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{owner}: {name} must be a number or an array of numbers") from None
    if not np.isfinite(value).all():
        raise ValueError(f"{owner}: {name} must be finite")
    if field.metadata["positive"] and not (value > 0).all():
        raise ValueError(f"{owner}: {name} must be positive, got {value.min():g}")
    if value.ndim < rank:
        raise ValueError(f"{owner}: {name} must have at least {rank} axes, got shape {value.shape}")
    value = value.copy()
    value.flags.writeable = False
    return value


class ExponentialFamily(Model):
    """A model of one feature (or a block of them): log p(x|params) = natural_parameters(params) . T(x) + log h(x).

    Axes are written ``...`` in front: draws, then groups (classes), then features; ``event_dim`` trailing axes are one
    observation. Subclasses write `parameters`, `likelihood`, `sufficient_statistic`, `natural_parameters` and `ml`;
    the rest follows.
    """

    event_dim: ClassVar[int] = 0
    density_kind: ClassVar[str] = (
        "density"  # what p(x) is: a "density", or a "probability"; evidences compare where it is the same
    )
    takes_sparse: ClassVar[bool] = False  # whether rows may be a sparse array (n, columns)
    site_dims: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # trailing dims of a parameter beside class and feature

    def __post_init__(self):
        super().__post_init__()
        fields = [f for f in dataclasses.fields(self) if "rank" in f.metadata]
        try:
            np.broadcast_shapes(*(np.shape(getattr(self, f.name))[: -f.metadata["rank"] or None] for f in fields))
        except ValueError:
            shapes = ", ".join(f"{f.name} {np.shape(getattr(self, f.name))}" for f in fields)
            raise ValueError(f"{type(self).__name__}: the shapes of {shapes} do not fit together") from None

    # -- the program -------------------------------------------------------------------------------------------------

    def parameters(self) -> Params:
        """Sample the parameters from the prior: the `numpyro.sample` statements, plates already open."""
        raise TypeError(f"{type(self).__name__} does not define parameters()")

    def likelihood(self, params: Params) -> Any:
        """Return p(x | params) as a NumPyro distribution."""
        raise TypeError(f"{type(self).__name__} does not define likelihood()")

    def __call__(self, x=None, *, size: int | None = None):
        """Run the program of one group of rows: parameters from the prior, rows given the parameters.

        Parameters
        ----------
        x : array, shape (n, features..., event...), optional
            Observed rows, NaN where missing; None draws them.
        size : int, optional
            How many rows to draw where ``x`` is None; default 1.
        """
        model = self.traced()
        return model.observe("x", model.latents(), x, size or 1, model.features())

    def latents(self, groups: int | None = None, name: str = "", per_class: bool = False) -> Params:
        """Sample the parameters inside their plates: the prior half of the program, for ``groups`` classes at once."""
        with self.plates(groups, name, per_class):
            return self.parameters()

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the hyperparameters in front of what belongs to one feature."""
        fields = [f for f in dataclasses.fields(self) if "rank" in f.metadata]
        shapes = [np.shape(getattr(self, f.name))[: -f.metadata["rank"] or None] for f in fields]
        return np.broadcast_shapes(*shapes)

    def features(self, per_class: bool = False) -> tuple[int, ...]:
        """Shape of the features this leaf covers; () for one scalar, or for one vector."""
        return self.batch_shape[1:] if per_class else self.batch_shape

    def dims(self, site: str, *, grouped: bool = False, per_class: bool = False) -> tuple[str, ...]:
        """Names of the axes of a parameter, behind those of the draws."""
        features = _feature_names(self.features(per_class))
        return ("class",) * grouped + features + tuple(self.site_dims.get(site, ()))

    def coords(self) -> dict[str, list]:
        """Labels along the axes that `dims` names."""
        return {}

    @contextlib.contextmanager
    def plates(self, groups: int | None = None, name: str = "", per_class: bool = False):
        """Open the plates of the parameters: "class" (``name``class over features) outside, ``name``feature inside."""
        features = self.features(per_class)
        with contextlib.ExitStack() as stack:
            if groups is not None:
                label = f"{name}class" if features else "class"  # a plate keeps one dim throughout a program
                stack.enter_context(program.numpyro.plate(label, groups, dim=-1 - len(features)))
            for plate in _feature_plates(features, name):
                stack.enter_context(plate)
            yield

    def select_class(self, params: Params, group) -> Params:
        """Parameters of the class of each row: ``params`` has a leading axis of classes, ``group`` holds codes (n,)."""
        return {site: value[group] for site, value in params.items()}

    def observe(self, site: str, params: Params, x, size: int, features: tuple[int, ...], name: str = ""):
        """Sample or observe rows at ``site``, under the plates "obs" and features; missing entries are masked."""
        jnp = program.jnp
        likelihood = self.likelihood(params)
        if x is not None:
            x = jnp.asarray(x)
            size = x.shape[0]
        with contextlib.ExitStack() as stack:
            stack.enter_context(program.numpyro.plate("obs", size, dim=-1 - len(features)))
            for plate in _feature_plates(features, name):
                stack.enter_context(plate)
            if x is not None and jnp.issubdtype(x.dtype, jnp.floating):
                # The value is replaced before log_prob and masked after: a masked log_prob(nan) has a NaN gradient.
                missing = jnp.isnan(x)
                event = tuple(range(-self.event_dim, 0))
                x = jnp.where(missing, likelihood.support.feasible_like(x), x)
                x = x.astype(int) if likelihood.is_discrete else x  # Categorical indexes by its value
                likelihood = likelihood.mask(~missing.any(event) if event else ~missing)
            return program.numpyro.sample(site, likelihood, obs=x)

    # -- the exponential family --------------------------------------------------------------------------------------

    def sufficient_statistic(self, x, about=0.0):
        """Sufficient statistic of each entry: (n, features..., event...) -> (n, features..., dim T); contains a 1."""
        raise TypeError(f"{type(self).__name__} does not define sufficient_statistic()")

    def natural_parameters(self, params: Params, about=0.0):
        """Natural parameters η of T(x), the log partition among them: (..., features..., dim T). NumPy or JAX."""
        raise TypeError(f"{type(self).__name__} does not define natural()")

    def log_base_measure(self, x):
        """The log base measure log h(x) of each entry, (n, features...)."""
        return np.zeros(x.shape[: x.ndim - self.event_dim])

    def check(self, x) -> Any:
        """Return the rows as an array, NaN where missing, or raise what is wrong with them.

        Sparse rows stay sparse, in CSR, where the leaf takes them.
        """
        x = self.shaped(x)
        if not finite(x.data if sparse.issparse(x) else x):
            self._require(x, lambda part: ~np.isinf(part), _INFINITE)
        return x

    def shaped(self, x) -> Any:
        """Do the first half of `check`, which looks at types and shapes but not at the entries."""
        if sparse.issparse(x):
            return self._shaped_like(self._csr(x))
        x = np.asarray(np.ma.filled(x.astype(float), np.nan) if np.ma.isMaskedArray(x) else x)
        if x.dtype.kind not in "biuf":
            try:
                if x.dtype.kind != "O":  # strings, dates and complex numbers would convert, to something else
                    raise TypeError
                x = x.astype(float)
            except (TypeError, ValueError):
                raise TypeError(f"{type(self).__name__} takes numbers, got {x.dtype} values") from None
        if x.ndim < 1 + self.event_dim:
            raise DataError(f"expected an array of rows with {1 + self.event_dim} axes or more, got shape {x.shape}")
        return self._shaped_like(x)

    def _csr(self, x):
        """Sparse rows in canonical CSR, without a copy where they are that already."""
        if not self.takes_sparse:
            raise TypeError(
                f"{type(self).__name__} takes dense rows, got a sparse {type(x).__name__}; give it x.toarray(), or "
                "model counts and bits by GammaPoisson, DirichletMultinomial or BetaBernoulli, which take sparse rows"
            )
        if x.ndim != 2 or x.dtype.kind not in "biuf":
            raise TypeError(f"{type(self).__name__} takes sparse rows (n, columns) of numbers, got {x.dtype} {x.shape}")
        rows = x if isinstance(x, sparse.csr_array) else sparse.csr_array(x)  # which remembers that it is canonical
        if not rows.has_canonical_format:  # an entry stored in parts
            rows = rows.copy()
            rows.sum_duplicates()
        return rows

    def _shaped_like(self, x):
        features = x.shape[1 : x.ndim - self.event_dim]
        own = self.batch_shape[len(self.batch_shape) - len(features) :]
        if len(own) == len(features) and any(a not in (1, b) for a, b in zip(own, features, strict=True)):
            raise DataError(f"rows have {features} features where the model has {own}")
        return x

    def _require(self, x, good, problem: str):
        """Raise for the first entry that is neither ``good`` nor NaN, looking at a piece of the rows at a time."""
        values = x.data if sparse.issparse(x) else x
        for piece in pieces(len(values), math.prod(values.shape[1:]), 1 << 17, 1 << 17):
            right = good(values[piece])
            if right.all():
                continue
            right |= np.isnan(values[piece])
            if right.all():
                continue
            if not sparse.issparse(x):
                self._refuse(x[piece], ~right, problem, piece.start)
            i = piece.start + int(right.argmin())
            row, place = int(np.searchsorted(x.indptr, i, "right")) - 1, int(x.indices[i])
            raise DataError(f"value {values[i]:g} in row {row} {problem}", feature=place)

    def _refuse(self, x, bad, problem: str, start: int = 0):
        """Raise for the first entry where ``bad``; ``x`` begins with row ``start``."""
        row, *place = np.argwhere(bad)[0]
        value = x[row, *place]
        raise DataError(f"value {value:g} in row {start + row} {problem}", feature=place[-1] if place else None)

    def missing(self, x) -> np.ndarray:
        """Which entries carry nothing, (n, features...): NaN scalars, vectors of NaN only."""
        missing = np.isnan(x)
        return missing.all(tuple(range(-self.event_dim, 0))) if self.event_dim else missing

    def statistics(self, x, group=None, groups: int | None = None, weight=None) -> Statistics:
        """Sum T(x) and log h(x) over rows, by group: one pass, additive over pieces of the data.

        Parameters
        ----------
        x : array, shape (n, features..., event...)
            Rows; NaN is missing and counts nothing.
        group : int array, shape (n,), optional
            Class code of each row, in 0..groups-1.
        groups : int, optional
            Number of classes; needed with ``group``.
        weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.
        """
        x = self.check(x)
        weight, (codes, count, lead) = check_weight(weight, len(x)), grouping(len(x), group, groups)
        result = None
        for piece in pieces(max(len(x), 1), math.prod(x.shape[1:])):
            part = x[piece]
            w = np.ones(len(part)) if weight is None else weight[piece]
            seen = ~self.missing(part) * w.reshape(-1, *[1] * (x.ndim - 1 - self.event_dim))
            with np.errstate(invalid="ignore"):
                rows = np.where(seen[..., None] > 0, self.sufficient_statistic(part) * seen[..., None], 0.0)
                base = np.where(seen > 0, self.log_base_measure(part) * seen, 0.0)
            total = membership(codes[piece], count) @ rows.reshape(len(part), math.prod(rows.shape[1:]))
            new = SumStatistics(total.reshape(*lead, *rows.shape[1:]), base.sum())
            result = new if result is None else result + new
        return result  # type: ignore[return-value]

    def log_likelihood(self, params: Params, statistics: Statistics):
        """Log p(all rows | params) = natural_parameters . total + log h: no rows needed. NumPy or JAX."""
        return (self.natural_parameters(params, statistics.centre) * statistics.total()).sum() + statistics.base

    def log_likelihood_rows(self, params: Params, x) -> np.ndarray:
        """Log p(row | params) for every row and every leading index of ``params``.

        Parameters
        ----------
        params : mapping to arrays (lead..., features..., event...)
            ``lead`` is (draws,) or (draws, classes).
        x : array, shape (n, features..., event...)
            Rows; features are independent given the parameters, a missing one is left out.

        Returns
        -------
        array, shape (lead..., n)
        """
        return self.product(params, x)

    def product(self, params: Params, x, about=0.0) -> np.ndarray:
        """Do `log_likelihood_rows` as one matrix product of natural parameters with T(x, about)."""
        missing = self.missing(x)
        with np.errstate(invalid="ignore", over="ignore"):
            rows, base = self.sufficient_statistic(x, about), self.log_base_measure(x)
        if missing.any():
            rows, base = np.where(missing[..., None], 0.0, rows), np.where(missing, 0.0, base)
        eta = self.natural_parameters(params, about)
        lead = eta.shape[: eta.ndim - rows.ndim + 1]
        result = eta.reshape(math.prod(lead), -1) @ rows.reshape(len(x), math.prod(rows.shape[1:])).T
        result += base.reshape(len(x), math.prod(base.shape[1:])).sum(1)
        result[result < LOG_ZERO / 2] = -np.inf
        return result.reshape(*lead, len(x))

    def ml(self, statistics: Statistics) -> Params:
        """Maximum-likelihood parameters of each group; `DataError` where they do not exist."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for maximum likelihood")

    def map(self, statistics: Statistics) -> Params:
        """Mode of the posterior density in the parameters as the model writes them, by group."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for the posterior mode")

    def for_classes(self, groups: int) -> Self:
        """Return the model with its hyperparameters repeated along a leading axis of classes."""
        shape = (groups, *self.batch_shape)
        changes = {}
        for field in dataclasses.fields(self):
            if "rank" in field.metadata:
                value = getattr(self, field.name)
                own = value.shape[value.ndim - field.metadata["rank"] :]
                changes[field.name] = np.broadcast_to(value, shape + own)
        return dataclasses.replace(self, **changes)


class Conjugate(ExponentialFamily):
    """An exponential family with a conjugate prior: prior, posterior and both predictives are one class.

    ``prior.update(prior.statistics(x))`` is Bayes' rule.
    """

    conjugate: ClassVar[bool] = True

    def update(self, statistics: Statistics) -> Self:
        """Return the posterior, with the groups of ``statistics`` as leading axis."""
        raise TypeError(f"{type(self).__name__} does not define update()")

    def log_evidence(self, statistics: Statistics) -> float:
        """Log p(rows as a sequence) under this prior, every constant kept, summed over groups and features."""
        raise TypeError(f"{type(self).__name__} does not define log_evidence()")

    def log_predictive(self, x) -> np.ndarray:
        """Log p(row) with the parameters integrated out: (n, groups...), features multiplied, missing ones left out."""
        raise TypeError(f"{type(self).__name__} does not define log_predictive()")

    def predictive(self) -> Any:
        """Return the predictive as a NumPyro distribution, for a user's own program."""
        raise TypeError(f"{type(self).__name__} does not define predictive()")

    def mode(self) -> Params:
        """Joint mode of the parameters' density (of a posterior: the MAP estimate), as they are written here."""
        raise NoClosedForm(f"{type(self).__name__} has no closed form for the mode")

    def map(self, statistics: Statistics) -> Params:
        """Mode of the posterior."""
        return self.update(statistics).mode()

    def sample_parameters(self, rng: np.random.Generator, size: tuple[int, ...] = ()) -> Params:
        """Draw parameters exactly: arrays (size..., groups..., features..., event...)."""
        raise TypeError(f"{type(self).__name__} does not define sample_parameters()")

    def over_features(self, terms, x) -> np.ndarray:
        """Sum predictive terms (groups..., n, features...) over features, missing left out: (n, groups...)."""
        missing = self.missing(x)
        if missing.any():
            terms = np.where(missing, 0.0, terms)
        axes = tuple(range(-(x.ndim - 1 - self.event_dim), 0))
        return np.moveaxis(terms.sum(axes) if axes else terms, -1, 0)

    def beside(self, value, x, rank: int = 0) -> np.ndarray:
        """Give a hyperparameter (groups..., features..., rank) an axis for the rows, before the features of ``x``."""
        features = x.ndim - 1 - self.event_dim
        return np.expand_dims(value, value.ndim - rank - features) if value.ndim - rank > features else value


def _feature_names(shape) -> tuple[str, ...]:
    return ("feature",) if len(shape) == 1 else tuple(f"feature{i}" for i in range(len(shape)))


def _feature_plates(shape, name):
    for i, (label, size) in enumerate(zip(_feature_names(shape), shape, strict=True)):
        yield program.numpyro.plate(f"{name}{label}", size, dim=i - len(shape))


def log_or_floor(p):
    """Return log p, or the finite `LOG_ZERO` where p is 0, with a gradient that is finite too. NumPy or JAX."""
    xp = p.__array_namespace__()
    return xp.where(p > 0, xp.log(xp.where(p > 0, p, 1.0)), LOG_ZERO)


def over_rows(value, groups, x):
    """A hyperparameter for every group and every entry of a row of ``x``, (groups, entries)."""
    return np.broadcast_to(value, (*groups, *x.shape[1:])).reshape(math.prod(groups), math.prod(x.shape[1:]))


def first(bad) -> dict[str, int]:
    """Where ``bad`` (groups, features...) is first true, as arguments of `DataError`."""
    index = np.argwhere(np.atleast_1d(bad))[0]
    return {"group": int(index[0])} | ({"feature": int(index[-1])} if len(index) > 1 else {})
