"""A leaf's program: parameters in their plates, rows given them, missing entries masked, names of the axes."""

import abc
import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from bayesgen.core import program
from bayesgen.core.program import static
from bayesgen.models.model import Model, Params, on_jax


@dataclasses.dataclass(frozen=True, eq=False)
class LeafProgram(Model):
    """A leaf as a NumPyro model function; every leaf is a `Leaf`, which derives from it."""

    event_dim: ClassVar[int] = 0
    site_dims: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # trailing dims of a parameter, besides class and feature

    per_class: bool = static(default=False, kw_only=True)
    names: Any = static(default=None, kw_only=True)

    @abc.abstractmethod
    def parameters(self) -> Params:
        """Sample the parameters from the prior: the `numpyro.sample` statements, plates already open."""

    @abc.abstractmethod
    def likelihood(self, params: Params) -> Any:
        """Return p(x | params) as a NumPyro distribution."""

    @program.unique_names('name each leaf, as in leaf(x, prefix="first"), or ')
    def __call__(
        self, x=None, *, size: int | None = None, subsample_size: int | None = None, prefix: str | None = None
    ) -> Any:
        """Run the program on one group of rows: parameters from the prior, rows given the parameters.

        Inside plates of the user every one of their elements has parameters and rows of its own.

        Parameters
        ----------
        x : array, shape (plates..., n, features..., event...), optional
            Observed rows, NaN where missing; None draws them.
        size : int, optional
            Number of rows to draw where ``x`` is None; default 1.
        subsample_size : int, optional
            Number of rows, chosen at random, that stand for all (NumPyro's `HMCECS`, SVI by minibatches).
        prefix : str, optional
            Put before the names of the sites, "prefix.x", where a program has several leaves of the same rows.

        Returns
        -------
        array
            The rows, their axes where NumPyro has those of the plates.
        """
        model, layout, x = on_jax(self), program.Layout.now(), program.known(x)
        size = (size or 1) if x is None else layout.size(x, len(model.features) + model.event_dim)
        with contextlib.ExitStack() as stack:
            if prefix:
                stack.enter_context(program.scope(prefix, hide_types=["plate"]))
            params = model.latents(name=f"{prefix}." if prefix else "")
            with program.subsampled(size, subsample_size) as rows:
                return model.observe("x", params, None if x is None else layout.place(x, rows), size, model.features)

    def latents(self, groups: int | None = None, name: str = "") -> Params:
        """Sample the parameters inside their plates: the prior half of the program, for ``groups`` classes at once."""
        with self.plates(groups, name):
            return self.parameters()

    @property
    def features(self) -> tuple[int, ...]:
        """Shape of the features that the leaf covers; () for one scalar, or for one vector."""
        return self.batch_shape[1:] if self.per_class else self.batch_shape

    def dims(self, site: str, *, grouped: bool = False) -> tuple[str, ...]:
        lead = ("class",) if grouped else ()
        return lead + _feature_names(self.features) + tuple(self.site_dims.get(site, ()))

    def coords(self) -> dict[str, list]:
        return {}

    @contextlib.contextmanager
    def plates(self, groups: int | None = None, name: str = "") -> Iterator[None]:
        """Open the plates of the parameters: "class" (``name``class over features) outside, ``name``feature inside.

        Within plates of the user, axes of the event take their place; see `program.axes`.
        """
        shape = self.features
        labels = [(f"{name}{label}", size) for label, size in zip(_feature_names(shape), shape, strict=True)]
        if groups is not None:
            labels.insert(0, (f"{name}class" if labels else "class", groups))  # a plate keeps one dim in a program
        with program.axes(labels):
            yield

    def select_class(self, params: Params, group) -> Params:
        """Return the parameters of each row's class: ``params`` lead with the classes, ``group`` holds codes (n,)."""
        return {site: value[group] for site, value in self._expand(params).items()}

    def _expand(self, params: Params) -> Params:
        """Return the parameters with the axes of classes and features that share one; by default none is shared."""
        return params

    def observe(self, site: str, params: Params, x, size: int, features: tuple[int, ...]):
        """Sample or observe rows at ``site`` in the plate "obs"; missing entries are integrated out.

        Features are axes of the event, so the plates of the program are the rows and those of the user. Parameters are
        those of each row, or of all: arrays (rows..., features..., event...) or (features..., event...). ``x`` are
        ``size`` rows, or a subsample of so many, see `program.subsampled`; None draws them.
        """
        dim = program.Layout.now().dim
        count = size if x is None else x.shape[dim - len(features) - self.event_dim]
        with program.numpyro.plate("obs", size, subsample_size=count, dim=dim):
            likelihood, x = self._density_of(params, x)
            return program.numpyro.sample(site, likelihood.to_event(len(features)), obs=x)

    def _density_of(self, params: Params, x=None) -> tuple[Any, Any]:
        """Return p(x | params) as a NumPyro distribution, and the rows at which it has their density.

        Where entries are missing, it is the density of those that are there, at rows without NaN. A leaf writes
        `likelihood`; it overrides this where rows say more than their entries, as a document does by its length.
        """
        jnp, likelihood = program.jnp, self.likelihood(params)
        if x is None or not jnp.issubdtype(x.dtype, jnp.floating):
            return likelihood, x if x is None else jnp.asarray(x)
        # The value is replaced before log_prob and masked after: a masked log_prob(nan) has a NaN gradient.
        missing, event = jnp.isnan(x), tuple(range(-self.event_dim, 0))
        x = jnp.where(missing, likelihood.support.feasible_like(x), x)
        x = x.astype(int) if likelihood.is_discrete else x  # Categorical indexes by its value
        return likelihood.mask(~missing.any(event) if event else ~missing), x


def _feature_names(shape) -> tuple[str, ...]:
    return ("feature",) if len(shape) == 1 else tuple(f"feature{i}" for i in range(len(shape)))
