"""A user's own NumPyro model function as a `Model`, so that every inference can fit it."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core import program
from bayesgen.core.program import static
from bayesgen.core.statistics import Statistics
from bayesgen.models.model import Model


@dataclass(frozen=True, eq=False)
class Arguments(Statistics):
    """The arguments of a model function: all of the data, since there is no smaller statistic of them."""

    arrays: dict[str, np.ndarray]  # the arguments that are arrays or lists of numbers; JAX traces them
    constants: tuple = static()  # all others (None, numbers, text, functions), which are part of the program

    @classmethod
    def of(cls, data) -> "Arguments":
        """Read a tuple of positional arguments, a mapping of keyword arguments, or a single argument."""
        given = data if isinstance(data, Mapping) else dict(enumerate(data if isinstance(data, tuple) else (data,)))
        arrays, constants = {}, []
        for key, value in given.items():
            if hasattr(value, "__array__") or isinstance(value, list | tuple):
                array = np.asarray(value)
                if array.dtype.kind not in "biuf":
                    raise TypeError(f"argument {key!r} of the model holds {array.dtype} values; give it numbers")
                arrays[str(key)] = array
            else:
                constants.append((str(key), value))
        return cls(arrays, tuple(constants))

    def call(self, function: Callable):
        """Call ``function`` with the data."""
        values = {**self.arrays, **dict(self.constants)}
        positions = sorted((key for key in values if key.isdigit()), key=int)
        errors = program.jax.errors
        try:
            return function(*[values.pop(key) for key in positions], **values)
        except (errors.JAXTypeError, errors.JAXIndexError) as error:
            raise TypeError(
                f"{_name(function)} needs the numbers of an argument while it is compiled{_line(function, error)}. The "
                "arrays among its arguments are traced: write jax.numpy in place of numpy there, as in "
                "jnp.nan_to_num(x) and jnp.where(x > 0, a, b); or keep the array out of the arguments, as "
                "functools.partial(function, x=x), where the program itself depends on its numbers"
            ) from None


@dataclass(frozen=True, eq=False)
class FunctionModel(Model):
    """A NumPyro model function with continuous latents, made by `bayesgen.fit`."""

    function: Callable = static()  # the function, as NumPyro takes it
    axes: tuple = static(default=())  # plates around each latent, outermost first

    @classmethod
    def of(cls, function: Callable, data) -> tuple["FunctionModel", Arguments]:
        """Read the function by running it once on its data; raise where a latent is discrete or data are lacking."""
        arguments = Arguments.of(data)
        with program.x64():
            try:
                trace = _trace(function, arguments)
            except NotImplementedError as error:  # an improper prior
                raise ValueError(
                    f"{_name(function)} cannot be run forward ({error}): give every latent a proper prior"
                ) from None
        latents = {name: s for name, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
        for name, site in latents.items():
            if site["fn"].support.is_discrete:
                raise ValueError(
                    f"the latent {name!r} is discrete, and has no gradient: sum it out of the model (for a mixture, "
                    "MixtureSameFamily), or observe it"
                )
        if not latents:
            raise ValueError(f"{_name(function)} samples no latent: there is nothing to learn")
        if not any(site["type"] == "sample" and site["is_observed"] for site in trace.values()):
            raise ValueError(f"{_name(function)} observes nothing: pass the data, and give them to a site as obs=")
        axes = tuple((name, plates(site)) for name, site in latents.items())
        return cls(function, axes), arguments

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def latents(self):
        """Raise TypeError: a function samples its latents as it runs, not apart from its data."""
        raise TypeError(f"{_name(self.function)} samples its latents as it runs: they cannot be drawn without data")

    def statistics(self, *data):
        return Arguments.of(data)

    def log_likelihood(self, params, statistics):
        """Return the log density of the observed values, all sites together."""
        with program.x64():
            return sum(program.log_density(site).sum() for site in self.observed(params, statistics).values())

    def check(self, x) -> Arguments:
        return Arguments.of(x)

    def log_likelihood_rows(self, params, x: Arguments) -> np.ndarray:
        """Return log p(row | params) of the sites observed in the plate "obs", for every draw: (draws, n)."""
        jax, jnp = program.jax, program.jnp
        latents = {name: params[name] for name, _ in self.axes}
        local = [name for name, around in self.axes if "obs" in around]
        if local:
            raise ValueError(f"the latents {local} belong to the rows of the fit (plate 'obs'); new rows have none")

        def density(draw):
            rows = [r for r in map(_by_row, self.observed(draw, x).values()) if r is not None]
            if not rows:
                raise ValueError("log_predictive needs the new data observed in a plate named 'obs', one row each")
            return sum(rows)

        with program.x64():
            arrays = {name: jnp.asarray(np.array(v)) for name, v in latents.items()}
            return np.asarray(jax.vmap(density)(arrays))

    def observed(self, params, x: Arguments) -> dict[str, Any]:
        """Return the traced sites of the observed values by name, given one draw of the latents. JAX."""
        trace = _trace(program.handlers.substitute(self.function, dict(params)), x)
        return {name: site for name, site in trace.items() if site["type"] == "sample" and site["is_observed"]}

    def dims(self, site: str) -> tuple[str, ...]:
        return dict(self.axes).get(site, ())

    def coords(self) -> dict[str, list]:
        return {}


def _trace(function, arguments: Arguments) -> dict[str, Any]:
    return program.traced(program.handlers.seed(lambda: arguments.call(function), 0))


def statistics_program(model, statistics) -> None:
    """Run a model on statistics: parameters from the prior, the likelihood of all rows as one factor."""
    if isinstance(statistics, Arguments):
        statistics.call(model.function)
    else:
        program.numpyro.factor("log_likelihood", model.log_likelihood(model.latents(), statistics))


def plates(site) -> tuple[str, ...]:
    """Return the names of a site's plates if these are all of its batch axes, else (), so that names and axes agree."""
    frames = sorted(site["cond_indep_stack"], key=lambda frame: frame.dim)
    full = [frame.dim for frame in frames] == list(range(-len(site["fn"].batch_shape), 0))
    return tuple(frame.name for frame in frames) if full else ()


def _by_row(site):
    """Return the log density of an observed site by row of the plate "obs", other axes summed; None outside it."""
    frame = next((f for f in site["cond_indep_stack"] if f.name == "obs"), None)
    if frame is None:
        return None
    rows = program.jnp.moveaxis(program.log_density(site), frame.dim, 0)
    return rows.reshape(rows.shape[0], -1).sum(1)


def _name(function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _line(function, error) -> str:
    """Return the place where an error left a function of the user, as text; "" where it has no source."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f", in line {frames[-1].lineno}: {frames[-1].line}" if frames else ""
