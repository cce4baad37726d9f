"""The program of a leaf: parameters in their plates, rows given them, missing entries masked, and names of the axes."""

import abc
import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from bayesgen import program
from bayesgen.model import Model, Params
from bayesgen.program import static


@dataclasses.dataclass(frozen=True, eq=False)
class LeafProgram(Model):
    """A leaf as a NumPyro model function; see `bayesgen.leaf.ExponentialFamily`, which every leaf is."""

    event_dim: ClassVar[int] = 0
    site_dims: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # trailing dims of a parameter beside class and feature

    per_class: bool = static(default=False, kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        try:
            self.batch_shape  # noqa: B018 - that it exists is the check
        except ValueError:
            fields = [f.name for f in dataclasses.fields(self) if "rank" in f.metadata]
            shapes = ", ".join(f"{name} {np.shape(getattr(self, name))}" for name in fields)
            raise ValueError(f"{type(self).__name__}: the shapes of {shapes} do not fit together") from None

    @abc.abstractmethod
    def parameters(self) -> Params:
        """Sample the parameters from the prior: the `numpyro.sample` statements, plates already open."""

    @abc.abstractmethod
    def likelihood(self, params: Params) -> Any:
        """Return p(x | params) as a NumPyro distribution."""

    def __call__(self, x=None, *, size: int | None = None, subsample_size: int | None = None) -> Any:
        """Run the program of one group of rows: parameters from the prior, rows given the parameters.

        Parameters
        ----------
        x : array, shape (n, features..., event...), optional
            Observed rows, NaN where missing; None draws them.
        size : int, optional
            How many rows to draw where ``x`` is None; default 1.
        subsample_size : int, optional
            How many of the rows, chosen at random, stand for all of them (NumPyro's `HMCECS`, SVI by minibatches).
        """
        model = self.traced()
        params, size = model.latents(), (size or 1) if x is None else len(x)
        with program.subsampled(size, subsample_size) as rows:
            return model.observe("x", params, None if x is None else program.jnp.asarray(x)[rows], size, model.features)

    def latents(self, groups: int | None = None, name: str = "") -> Params:
        """Sample the parameters inside their plates: the prior half of the program, for ``groups`` classes at once."""
        with self.plates(groups, name):
            return self.parameters()

    @property
    def features(self) -> tuple[int, ...]:
        """Shape of the features this leaf covers; () for one scalar, or for one vector."""
        return self.batch_shape[1:] if self.per_class else self.batch_shape

    def dims(self, site: str, *, grouped: bool = False) -> tuple[str, ...]:
        """Names of the axes of a parameter, behind those of the draws; ``grouped`` ones begin with the class."""
        lead = ("class",) if grouped else ()
        return lead + _feature_names(self.features) + tuple(self.site_dims.get(site, ()))

    def coords(self) -> dict[str, list]:
        """Labels along the axes that `dims` names."""
        return {}

    @contextlib.contextmanager
    def plates(self, groups: int | None = None, name: str = "") -> Iterator[None]:
        """Open the plates of the parameters: "class" (``name``class over features) outside, ``name``feature inside."""
        features = self.features
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
        """Sample or observe rows at ``site``, under the plates "obs" and features; missing entries are masked.

        ``x`` may be fewer rows than ``size``: a subsample, see `program.subsampled`.
        """
        jnp = program.jnp
        likelihood = self.likelihood(params)
        x = None if x is None else jnp.asarray(x)
        count = size if x is None else x.shape[0]
        with contextlib.ExitStack() as stack:
            stack.enter_context(program.numpyro.plate("obs", size, subsample_size=count, dim=-1 - len(features)))
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


def _feature_names(shape) -> tuple[str, ...]:
    return ("feature",) if len(shape) == 1 else tuple(f"feature{i}" for i in range(len(shape)))


def _feature_plates(shape, name):
    for i, (label, size) in enumerate(zip(_feature_names(shape), shape, strict=True)):
        yield program.numpyro.plate(f"{name}{label}", size, dim=i - len(shape))
