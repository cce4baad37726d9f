"""Kinds of predictive density: a leaf says its kind and arrays once; draws, gaps and programs follow from these.

Arrays broadcast to (lead..., features...), and some have axes of their own behind these. Parameters that are known are
worth infinitely many rows, so a density given the parameters and a predictive are of one kind.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from bayesgen.core.errors import NoClosedForm
from bayesgen.numerics.student_gaps import conditional_student, fill_student


@dataclass(frozen=True, eq=False, kw_only=True)
class Density(abc.ABC):
    """The density of an observation under groups, as a kind and arrays.

    A user's kind is a subclass, which may write `draw` and `student`. An export of it needs a ``script``: an object in
    JavaScript, as those of ``bayesgen/export/kinds.js`` are, which says how the arrays are read.

    Parameters
    ----------
    about : mapping, keyword
        Facts of the columns: their "kind" ("number", "count"), the number that values lie "above", and "words", in
        which others are refused.
    kept, constant : tuple of int and mapping, keyword
        Places of the columns that it is of, by default all, and the values of the others, which are constant.
    """

    kind: ClassVar[str]
    axes: ClassVar[Mapping[str, int]]  # its arrays, and the number of axes that each has behind the features
    settings: ClassVar[tuple[str, ...]] = ()  # what it says beside the arrays
    script: ClassVar[str] = ""
    joint = False  # True if the entries that a row has move those that it lacks: then it has ``fill``

    about: Mapping[str, Any] = field(default_factory=dict)
    kept: tuple[int, ...] | None = None
    constant: Mapping[int, float] = field(default_factory=dict)

    def arrays(self, shape: tuple[int, ...] | None = None) -> dict[str, np.ndarray]:
        """Return the arrays, broadcast to a shape (lead..., features...), or to the one that they have in common."""
        given = {name: (np.asarray(getattr(self, name)), axes) for name, axes in self.axes.items()}
        if shape is None:
            shape = np.broadcast_shapes(*(v.shape[: v.ndim - axes] for v, axes in given.values()))
        return {name: np.broadcast_to(v, shape + v.shape[v.ndim - axes :]) for name, (v, axes) in given.items()}

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw an observation under each group, where the parameters are known."""
        raise NoClosedForm(f"a density of the kind {self.kind!r} does not say how it is drawn from")

    def student(self, x) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return location, scale and degrees of freedom of missing numbers; see `bayesgen.models.leaf.Leaf.student`."""
        raise NoClosedForm(f"a density of the kind {self.kind!r} does not say how its columns depend on each other")


@dataclass(frozen=True, eq=False)
class Numbers(Density):
    """Student's t of ``location``, ``scale`` and ``dof``, a Gaussian where ``dof`` is infinite.

    The location is known as from ``kappa`` rows: the squared scale is 1 + 1/kappa times that of a row given the
    location. Classes share the variance where it is ``tied``, columns where they are ``joint``. With a ``shift`` it is
    the density of log(x + shift).
    """

    kind = "gaussian"
    axes = {"location": 0, "scale": 0, "dof": 0, "kappa": 0}
    settings = "tied", "joint"

    location: Any
    scale: Any
    dof: Any = np.inf
    kappa: Any = np.inf
    tied: bool = False
    joint: bool = False
    shift: float | None = None

    def draw(self, rng):
        away, dof = rng.normal(0.0, self.arrays()["scale"]), np.asarray(self.dof)
        return self.location + (away if np.isinf(dof).all() else away / np.sqrt(rng.chisquare(dof, away.shape) / dof))

    def student(self, x):
        if self.joint:
            return self._vector.student(x)
        location, scale, dof, _ = self.arrays().values()
        shape = *location.shape[: location.ndim - x.ndim + 1], 1, -1  # with an axis for the rows
        return location.reshape(shape), scale.reshape(shape), dof.reshape(shape)

    def fill(self, x, group, rng):
        """Draw the missing entries of rows given those that share their variance, as `Vector.fill` does."""
        return self._vector.fill(x, group, rng)

    @property
    def _vector(self) -> "Vector":
        location, scale, dof, _ = self.arrays().values()
        return Vector(location, scale[..., None] ** 2 * np.eye(scale.shape[-1]), dof[..., 0])


@dataclass(frozen=True, eq=False)
class Vector(Density):
    """Vectors (..., D) of scale matrices (..., D, D), else as `Numbers`; the Cholesky factors may be known."""

    kind = "vector"
    axes = {"location": 1, "scale": 2, "dof": 0, "kappa": 0}
    settings = ("tied",)
    joint = True

    location: Any
    scale: Any
    dof: Any = np.inf
    kappa: Any = np.inf
    tied: bool = False
    root: Any = None

    @property
    def flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Locations (G, D), scale matrices (G, D, D) and degrees of freedom (G,) of all groups, on one axis."""
        location, scale, dof, _ = self.arrays().values()
        dim = location.shape[-1]
        return location.reshape(-1, dim), scale.reshape(-1, dim, dim), dof.reshape(-1)

    def draw(self, rng):
        location, _, dof, _ = self.arrays().values()
        root = np.linalg.cholesky(self.scale) if self.root is None else self.root
        away = (root @ rng.standard_normal((*location.shape, 1)))[..., 0]
        return location + (away if np.isinf(dof).all() else away / np.sqrt(rng.chisquare(dof) / dof)[..., None])

    def student(self, x):
        return conditional_student(x, *list(self.arrays().values())[:3])

    def fill(self, x, group, rng):
        """Draw the missing entries of rows (n, D) given the others; ``group`` (n,) is the place of each in `flat`."""
        return fill_student(x, group, *self.flat, rng)


@dataclass(frozen=True, eq=False)
class Values(Density):
    """Values 0, 1, ..., V - 1 of probabilities (..., V), whose Dirichlet has the parameters mass times ``total``."""

    kind = "list"
    axes = {"mass": 1, "total": 0}

    mass: Any
    total: Any = np.inf

    def draw(self, rng):
        cumulative = np.cumsum(self.mass, axis=-1)[..., :-1]
        return (rng.random((*cumulative.shape[:-1], 1)) > cumulative).sum(-1)


@dataclass(frozen=True, eq=False)
class Counts(Density):
    """Poisson counts of a ``mean`` that is known as from ``rate`` rows: Gamma(mean rate, rate)."""

    kind = "count"
    axes = {"mean": 0, "rate": 0}

    mean: Any
    rate: Any = np.inf

    def draw(self, rng):
        return rng.poisson(self.mean)


@dataclass(frozen=True, eq=False)
class Heads(Density):
    """Heads in tosses, of a ``mean`` that is known as from ``total`` tosses: Beta(mean total, (1 - mean) total).

    The ``trials`` are one number a feature; without them each observation is a pair (heads, tosses).
    """

    axes = {"mean": 0, "total": 0}
    settings = ("trials",)

    mean: Any
    total: Any = np.inf
    trials: tuple[int, ...] | None = None

    @property
    def kind(self):  # type: ignore[override]
        """With and without a known number of tosses these are two kinds."""
        return "heads" if self.trials else "tosses"


@dataclass(frozen=True, eq=False)
class Bag(Density):
    """Counts of words (..., V) given their sum; the Dirichlet is that of `Values`."""

    kind = "bag"
    axes = {"mass": 1, "total": 0}

    mass: Any
    total: Any = np.inf
