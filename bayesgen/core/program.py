"""JAX and NumPyro, imported on first use, and records, which are pytrees to JAX.

The algebra of bayesgen is NumPy; a model's program is NumPyro. A user who only needs closed forms must not wait for a
compiler, so nothing here imports JAX until a program is run: the names ``jax``, ``jnp``, ``numpyro``, ``dist`` and
``handlers`` of this module are imported on first use (PEP 562), once, under a lock. `Record` classes become JAX
pytrees at that moment, or at construction where the user has loaded JAX already.
"""

import contextlib
import dataclasses
import functools
import importlib
import os
import sys
import threading
import types
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from dataclasses import field as static  # only under this name do type checkers know the keywords of a field

    import jax
    import jax.flatten_util
    import jax.numpy as jnp
    import jax.scipy.special
    import numpyro
    import numpyro.distributions as dist
    import numpyro.infer.hmc
    import numpyro.infer.util
    from numpyro import handlers
else:

    def static(**kwargs):
        """Declare a dataclass field that is structure, not an array: hashable, a compile-time constant to JAX."""
        return dataclasses.field(metadata={"static": True}, **kwargs)


_MODULES = {
    "jax": "jax",
    "jnp": "jax.numpy",
    "numpyro": "numpyro",
    "dist": "numpyro.distributions",
    "handlers": "numpyro.handlers",
}
_this: Any = sys.modules[__name__]  # its attributes are imported on first use; its globals are not
_lock = threading.RLock()
tracing = threading.RLock()  # hold it while tracing a program: all threads share NumPyro's one stack of handlers
_records: list[type] = []
registered: set[type] = set()  # those that JAX knows as pytrees
_forked = False  # True in a child forked after JAX had started its threads, which the child lacks


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _lock:
        for package in ("jax", "numpyro"):
            # ArviZ announces both as modules that load at the first look at an attribute. Where a module of NumPyro is
            # imported before that, the package runs a second time in the midst of its first.
            getattr(sys.modules.get(package), "__version__", None)
        try:
            module = importlib.import_module(_MODULES[name])
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"programs and draws need JAX and NumPyro ({error}): pip install jax numpyro; without them, as in a "
                "browser, the closed forms are there: inference='exact', 'ml' or 'map'",
                name=error.name,
            ) from error
        globals()[name] = module
        register()
    return module


def _after_fork() -> None:
    """Notice that JAX, ours or the user's, cannot run in this child; no lock is taken that a lost thread may hold."""
    global _forked
    bridge = sys.modules.get("jax._src.xla_bridge")
    _forked = _forked or bool(getattr(bridge, "_backends", bridge is not None))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def register() -> None:
    """Register every known `Record` class as a pytree, each once."""
    from jax.tree_util import register_pytree_node

    with _lock:
        if Sites not in registered:
            registered.add(Sites)
            register_pytree_node(Sites, lambda sites: (list(sites.values()), tuple(sites)), _sites)
        for cls in _records:
            if cls not in registered:
                registered.add(cls)
                register_pytree_node(cls, _flatten, _unflattener(cls))


def records() -> tuple[type, ...]:
    """Return every `Record` class that has been defined."""
    return tuple(_records)


def _flatten(record: "Record") -> tuple[list, tuple]:
    children, constants = [], []
    # Fields are read here, not at registration: a class enters `_records` before `@dataclass` has made its fields.
    for field in dataclasses.fields(record):
        (constants if field.metadata.get("static") else children).append(getattr(record, field.name))
    return children, tuple(constants)


def _sites(names, values) -> "Sites":
    return Sites(zip(names, values, strict=True))


def _unflattener(cls: type):
    def unflatten(constants, children):
        record = object.__new__(cls)  # no __init__: JAX passes tracers and placeholders through
        constants, children = iter(constants), iter(children)
        for field in dataclasses.fields(cls):
            source = constants if field.metadata.get("static") else children
            object.__setattr__(record, field.name, next(source))
        return record

    return unflatten


@contextlib.contextmanager
def x64():
    """Compute in float64 on this thread, compiled and with rank promotion, whatever the user's JAX settings.

    The global settings stay untouched. Without the compiler (`jax.disable_jit`) a sampler would not end, and NumPyro's
    own distributions need rank promotion, which ``jax_numpy_rank_promotion="raise"`` forbids. A forked child of a
    process that used JAX gets a RuntimeError: it would wait forever for the threads of its parent.
    """
    if _forked:
        raise RuntimeError(
            "this process was forked from one that had used JAX, and JAX would hang in it: start processes by 'spawn' "
            "or 'forkserver', as multiprocessing.get_context('spawn') and joblib's 'loky' do, or fork before JAX first "
            "computes"
        )
    jax = _this.jax
    with jax.enable_x64(True), jax.disable_jit(False), jax.numpy_rank_promotion("allow"):
        yield


def scope(prefix: str, divider: str = ".", **options):
    """Return NumPyro's scope with this divider; it renames a site once, though `handlers.do` resends its message."""
    return _messengers().Scope(prefix=prefix, divider=divider, **options)


class Sites(dict):
    """The values of a program's sites by name, a pytree to JAX; a name that is none of them raises and lists those."""

    def __missing__(self, name):
        raise KeyError(f"there is no site {name!r}; the sites are {', '.join(map(repr, self))}")


def around() -> tuple[tuple[int, int], ...]:
    """Return the plates that the user has open around this statement as (dim, size), the leftmost axis first."""
    found = {h.dim: h.subsample_size for h in _this.numpyro.primitives._PYRO_STACK if hasattr(h, "subsample_size")}
    return tuple(sorted(found.items()))


@contextlib.contextmanager
def axes(labels: Sequence[tuple[str, int]]):
    """Open a plate for each (name, size), the last on the rightmost axis.

    Within plates of the user, whose axes are on the right already, they become axes of the sites' events instead: a
    plate keeps one axis throughout a program.
    """
    with contextlib.ExitStack() as stack:
        if not around():
            for i, (name, size) in enumerate(labels):
                stack.enter_context(_this.numpyro.plate(name, size, dim=i - len(labels)))
        elif labels:
            stack.enter_context(_messengers().EventAxes(tuple(size for _, size in labels)))
        yield


def watch():
    """Return a handler for one site, whose ``drawn`` tells whether the site was sampled from its distribution.

    It was not where it is observed, substituted, intervened on or enumerated. Nothing in a message says so but its
    intermediate results, a list that sampling makes anew.
    """
    return _messengers().Watch()


@functools.cache
def _messengers() -> Any:
    """Return the handlers of this module, whose bases are there when NumPyro is."""

    class Scope(_this.handlers.scope):
        def process_message(self, msg):
            if id(self) not in msg.get("_scopes", ()):
                msg["_scopes"] = (*msg.get("_scopes", ()), id(self))
                super().process_message(msg)

    class EventAxes(_this.numpyro.primitives.Messenger):
        def __init__(self, shape):
            super().__init__(None)
            self.shape = shape

        def process_message(self, msg):
            if msg["type"] == "sample" and not msg.get("_event_axes"):
                msg["_event_axes"] = True  # `handlers.do` resends its message
                batch = np.broadcast_shapes(msg["fn"].batch_shape, self.shape)
                msg["fn"] = msg["fn"].expand(batch).to_event(len(self.shape))

    class Watch(_this.numpyro.primitives.Messenger):
        def __init__(self):
            super().__init__(None)
            self.drawn, self._before = False, []

        def process_message(self, msg):
            if msg["type"] == "sample":
                msg["intermediates"] = self._before

        def postprocess_message(self, msg):
            if msg["type"] == "sample":
                sampled = msg["intermediates"] is not self._before
                self.drawn = sampled and not msg["is_observed"] and not msg["infer"].get("enumerate")

    return types.SimpleNamespace(Scope=Scope, EventAxes=EventAxes, Watch=Watch)


@contextlib.contextmanager
def unique_names(cure: str = ""):
    """Restate NumPyro's error where a program has two sites of one name; it also decorates a model function."""
    try:
        yield
    except AssertionError as error:
        if "unique names" not in str(error):
            raise
        raise ValueError(
            f"this program has two sites of one name ({error}): {cure}run each model under "
            'numpyro.handlers.scope(prefix="first"), each with its prefix'
        ) from None


def known(data):
    """Return data that a program is given as a NumPy array, whose gaps can be seen, or as they are where JAX traces."""
    return data if data is None or is_abstract(data) else np.asarray(data)


@dataclasses.dataclass(frozen=True)
class Layout:
    """The axes of rows among those of the user's plates: data have the plates in front, the program where they are."""

    plates: tuple[tuple[int, int], ...]  # the plates of the user, the leftmost axis first
    dim: int  # axis of the rows, the rightmost that is free

    @classmethod
    def now(cls) -> "Layout":
        """Return the layout at this statement."""
        plates = around()
        taken = {dim for dim, _ in plates}
        return cls(plates, next(-i for i in range(1, len(taken) + 2) if -i not in taken))

    def size(self, data, trailing: int) -> int:
        """Return the number of rows of data (plates..., n, ...) with ``trailing`` axes after the rows, or raise."""
        shape, sizes = data.shape, tuple(size for _, size in self.plates)
        if len(shape) != len(sizes) + 1 + trailing or shape[: len(sizes)] != sizes:
            expected = ", ".join([*map(str, sizes), "n", *["..."] * bool(trailing)])
            raise ValueError(
                f"rows in the plates of this program must have {len(sizes) + 1 + trailing} axes, ({expected}): first "
                f"those of the plates, then the rows, then the features; got shape {shape}"
            )
        return shape[len(sizes)]

    def place(self, data, rows=slice(None)):
        """Return data (plates..., n, ...) with the axes where the plates are, of some of the rows."""
        count = len(self.plates)
        data = data if isinstance(rows, slice) else _this.jnp.asarray(data)
        if not count:
            return data[rows]
        data = data[(*[slice(None)] * count, rows)]
        dims = [*(dim for dim, _ in self.plates), self.dim]
        shape = [1] * -min(dims)
        for axis, dim in enumerate(dims):
            shape[dim] = data.shape[axis]
        order = [int(i) for i in np.argsort(dims)]
        return data.transpose(*order, *range(count + 1, data.ndim)).reshape(*shape, *data.shape[count + 1 :])

    def codes(self, t):
        """Return the index of each row among parameters (plates..., K, ...): its code, behind those of its plates."""
        if not self.plates:
            return t
        lead, sizes = -self.plates[0][0], dict(self.plates)
        places = (_this.jnp.arange(sizes.get(dim, 1)).reshape(-1, *[1] * (-dim - 1)) for dim in range(-lead, 0))
        return (*places, t)


@contextlib.contextmanager
def subsampled(size: int, subsample_size: int | None):
    """Yield the rows that a program sees: all, or a random subsample, which every plate "obs" inside then shares.

    The log density of a subsample is scaled by size/subsample_size, as in any NumPyro plate.
    """
    if subsample_size is None or subsample_size == size:
        yield slice(None)
        return
    with _this.numpyro.plate("obs", size, subsample_size=subsample_size) as rows:
        pass
    with _this.handlers.substitute(data={"obs": rows}):
        yield rows


def traced(run) -> dict[str, Any]:
    """Run a program once, while no other thread traces one, and return its sites by name."""
    with tracing:
        return _this.handlers.trace(run).get_trace()


def log_density(site):
    """Return the log density of a traced site at its value, entry by entry, times the scale of its plates."""
    return site["fn"].log_prob(site["value"]) * (1.0 if site["scale"] is None else site["scale"])


def build(function, *arguments, once: bool = False):
    """Compile ``function`` for the shapes of ``arguments``; see `compiled`."""
    return compiled(_this.jax.jit(function).lower(*arguments), once)


def compiled(lowered, once: bool = False):
    """Compile a program that JAX has lowered; ``once`` leaves out optimisations that would take longer than the run.

    The newer emitter of fused loops is switched off: it doubles the time of compilation, and these programs of small
    arrays run no faster with it. So is the fusion of matrix products for a library, which cannot be part of one kernel.
    A compiler that does not know one of these options, such as JAX 0.12's, is given the others: without them a kernel
    fails there.
    """
    options: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_experimental_ynn_fusion_type": ""}
    if once:
        options |= {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    while True:
        try:
            return lowered.compile(compiler_options=options)
        except _this.jax.errors.JaxRuntimeError as error:
            known = {k: v for k, v in options.items() if f"No such compile option: '{k}'" not in str(error)}
            if len(known) == len(options):
                raise
            options = known


def is_abstract(value) -> bool:
    """Return True if JAX is tracing a function of ``value``, which then has no number to look at."""
    core = sys.modules.get("jax.core")
    return core is not None and isinstance(value, core.Tracer)


class Record:
    """An immutable value made of arrays and other records, compared by value, and a pytree to JAX.

    JAX knows it from the first use of JAX in here on, or, where the user has imported JAX, from the next model on.
    Subclasses are declared ``@dataclass(frozen=True, eq=False)``.
    """

    __dataclass_fields__: ClassVar[dict]

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Record.__repr__  # else `@dataclass` would write its own
        _records.append(cls)

    def __repr__(self):
        """Show hyperparameters and all fields not at their default, four digits each: ``BetaBernoulli(a=4, b=2)``."""
        parts = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            told = field.metadata.get("rank") is not None or field.default is dataclasses.MISSING
            if told or is_abstract(value) or not same(value, field.default):
                parts.append(f"{field.name}={short(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __getstate__(self):
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # without what is derived

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        return all(same(getattr(self, f.name), getattr(other, f.name)) for f in dataclasses.fields(self))

    def __hash__(self):
        return hash((type(self), *(_key(getattr(self, f.name)) for f in dataclasses.fields(self))))


def short(value: Any) -> str:
    """Return a value as a short text: numbers with four digits, an array of up to twelve entries, else its shape."""
    if is_abstract(value):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {short(item)}" for name, item in value.items()) + "}"
    if isinstance(value, float) or (hasattr(value, "ndim") and value.ndim == 0 and value.dtype.kind in "biuf"):
        return f"{float(value):.4g}"
    if hasattr(value, "tolist") and hasattr(value, "shape"):
        if value.size > 12:
            return f"<{' x '.join(map(str, value.shape))} numbers>"
        return short(value.tolist())
    if isinstance(value, list):
        return f"[{', '.join(map(short, value))}]"
    return repr(value)


def same(a: Any, b: Any) -> bool:
    """Return True if two values are equal: arrays entry by entry, where NaN is NaN, mappings item by item."""
    if hasattr(a, "shape") and hasattr(b, "shape"):
        return bool(np.array_equal(a, b, equal_nan=np.result_type(a).kind == np.result_type(b).kind == "f"))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if hasattr(a, "shape") or hasattr(b, "shape"):  # one of them
        return getattr(a, "ndim", 0) == getattr(b, "ndim", 0) == 0 and bool(a == b)
    return bool(a == b)


def _key(value):
    if isinstance(value, dict):
        return tuple(sorted((name, _key(item)) for name, item in value.items()))
    if hasattr(value, "shape"):
        return (value.shape, np.asarray(value, float).tobytes())
    return hash(value if isinstance(value, Hashable) else type(value))  # a user's classifier may have no hash
