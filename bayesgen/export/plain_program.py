"""The program of a model in plain NumPyro, as NumPyro's gallery would write it: a text that needs no bayesgen.

Sites have the names that they have in the model, and the joint density is the model's, constants too. Where a class is
not known it is summed out, Σ_k p(x_i, t_i = k | θ), in `model`, or left to NumPyro, in `enumerated`. The priors and
densities are in `bayesgen.export.program_leaves`, those of regressions in `bayesgen.export.program_lines`.
"""

import itertools
import json
import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bayesgen.core import __version__
from bayesgen.core.errors import InputError, listed
from bayesgen.core.statistics import Statistics, SumStatistics
from bayesgen.export.program_leaves import text_of, value_of
from bayesgen.export.program_lines import text_of_line
from bayesgen.files import disk
from bayesgen.models.beside_constants import BesideConstants
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.classifier import NaiveBayes
from bayesgen.models.leaf import Leaf
from bayesgen.models.linear_model import Discriminative
from bayesgen.models.model import Hyperparameters, Model
from bayesgen.models.moments import Moments
from bayesgen.models.row_leaf import RowsByGroup
from bayesgen.models.unknown_labels import LABEL, PartlyLabelled, UnknownClasses

_INLINE, _LONGEST = 10, 80  # numbers, and signs, of an array that stands within the program
_WIDTH, _ROWS = 110, 100
_CLASSES = "classes."
PROGRAM = "a program in Python", (".py",)


class Program(str):
    """The text of a program; `save` writes it to a file."""

    def save(self, path) -> None:
        """Write the text to a file, ``program.py``, as a whole or not at all."""
        disk.check_ending(path, *PROGRAM)
        with disk.writing(Path(path)) as file:
            file.write(self.encode())


class _Asked(Exception):
    """Ends a fit before its inference, and tells what the estimator has learned."""


def program(model: Any, X=None, y=None) -> Program:
    r"""Return the plain NumPyro program of a model or an estimator, a text without an import of bayesgen.

    Run as a file, it draws from the posterior by NUTS, of rows of no meaning: put yours in their place. Its function
    ``model(x, t)`` takes rows as the model does: an array, or one by name of the leaf, and codes of the classes.

    Parameters
    ----------
    model : model or estimator
        A model of `bayesgen.models`; an estimator, fitted, or with the rows that it is to be fitted to. Weak priors
        have the numbers that the rows gave them.
    X, y : optional
        Rows to fit an estimator to; of a model, ``X`` are rows as it takes them. The program leaves out their gaps, and
        columns that are constant.

    Returns
    -------
    Program
        The text, a `str`, whose ``save(path)`` writes it to a file.

    Raises
    ------
    ValueError
        If the model is no program that stands for itself: an improper prior, a prior alone, an average.

    Examples
    --------
    >>> from bayesgen.models import BetaBernoulli
    >>> print("\n".join(program(BetaBernoulli(a=2, b=2)).splitlines()[12:16]))
    def model(x):
        probability = numpyro.sample("probability", dist.Beta(2.0, 2.0))
        with numpyro.plate("obs", len(x)):
            numpyro.sample("x", dist.Bernoulli(probability), obs=x)
    """
    name = type(model).__name__
    if isinstance(model, Model):
        if not model.proper:
            raise InputError(f"{name}: the prior is improper, and a program draws from its priors: give a proper one")
        rows = None if X is None or isinstance(model, Discriminative) else model.check(X)
        return Program(_Text(model, {"": rows} if isinstance(model, Leaf) else rows))
    if isinstance(model, Hyperparameters):
        raise InputError(f"{name} is a prior alone: give the model that takes it")
    if not hasattr(model, "get_params"):
        raise TypeError(f"a program is of a model or of an estimator, got {name}")
    settings = model.get_params(deep=False)
    if "members" in settings:
        raise InputError(f"{name} is no one program, but many: give a naive Bayes or a discriminant of its columns")
    if X is not None:
        model = type(model)(**settings)

        def ask(learned, data, *, seed=None):
            raise _Asked(vars(model) | {"model_": learned, "statistics_": data})

        try:
            model.set_params(inference=ask).fit(X, y)
        except _Asked as asked:
            vars(model).update(asked.args[0])
    if not hasattr(model, "model_"):
        raise InputError(f"this {name} is not fitted: fit it, or give its rows, program(estimator, X, y)")
    learned, units = model.model_, (model.centre_, model.scale_) if hasattr(model, "centre_") else None
    if isinstance(model.statistics_, PartlyLabelled) and not isinstance(learned, UnknownClasses):
        learned = UnknownClasses(learned, model.label_noise and model.label_noise.confusion(model.classes_.tolist()))
    return Program(_Text(learned, model.statistics_, units))


_IMPORTS = """
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

numpyro.enable_x64()
"""
_HELPERS = {
    "entries(": '''
def entries(x, possible=0.0):
    """Return a mask of the entries that are there, and the rows with a number in place of each NaN."""
    seen = ~jnp.isnan(jnp.asarray(x, float))
    return seen, jnp.where(seen, x, possible)
''',
    "marginal(": '''
def marginal(covariance, seen):
    """Return the covariance of the entries that are there; a missing one stands apart, of variance 1/2pi: density 1."""
    both = seen[..., None] & seen[..., None, :]
    return jnp.where(both, covariance, jnp.eye(seen.shape[-1]) / (2 * jnp.pi))
''',
    "contexts(": '''
def contexts(x, count, order):
    """Return the place of the context of each symbol: of the symbols before it, shorter contexts first."""
    place, x = [], np.maximum(x, 0).astype(int)
    for i in range(x.shape[-1]):
        before = x[..., max(i - order, 0) : i]
        powers = count ** np.arange(before.shape[-1])
        place.append(powers.sum() + before @ powers[::-1])
    return np.stack(place, -1)
''',
}


class _Text:
    """The text of the program of one model; ``data`` are rows by leaf, or the statistics of a fit."""

    def __init__(self, model: Any, data: Any = None, units: Any = None):
        self.model: Any = model
        self.units, whole = units, getattr(model, "model", model)
        self.unknown, recorded = isinstance(model, UnknownClasses), getattr(data, "recorded", data)
        self.rows = getattr(data, "rows", data if isinstance(data, Mapping) else {})
        self.sums = recorded if isinstance(recorded, ClassStatistics) else None
        self.constants: dict[str, str] = {}  # names of arrays that stand below the program, by their text
        self.sites: dict[str, tuple[str, Collection[str]]] = {}  # the variable of each site, and its axes
        self.noisy = getattr(model, "confusion", None) is not None
        self.by_name = isinstance(whole, NaiveBayes)  # True if rows are given by leaf
        self.names = () if isinstance(model, Leaf) else getattr(whole, "class_names", getattr(model, "classes", ()))
        self.notes = ["Weak priors have the numbers that the rows gave."] * isinstance(data, Statistics)
        if self.names:
            self.notes.append(f"Classes: {', '.join(f'{k} is {label!r}' for k, label in enumerate(self.names))}.")
        # by what stands before the names of their sites
        self.leaves: dict[str, Any] = {"": model} if isinstance(model, Leaf) else {}
        self.sources = {"": "x"}
        for name, leaf in getattr(whole, "leaves", {}).items():
            columns, source = whole.columns_of(name), f"x[{_quoted(name)}]" if self.by_name else "x"
            if isinstance(leaf, BesideConstants):
                self.notes.append(f"Constant columns, which are left out: {listed(leaf.constants(columns))}.")
                if not leaf.kept:
                    continue
                columns, leaf = tuple(columns[j] for j in leaf.kept), leaf.leaf
            self.leaves[f"{name}."], self.sources[f"{name}."] = leaf, source
            self.notes += [f"Columns of {source}: {listed(columns)}."] * bool(columns)
        if not (self.leaves or isinstance(model, Discriminative)):
            raise InputError(f"no column of this {type(model).__name__} varies: there is no program to write")
        if self.noisy:
            self.leaves[f"{LABEL}."], self.sources[f"{LABEL}."] = self.model.confusion, "t"

    def __str__(self) -> str:
        """Return the whole text."""
        if self.unknown:
            functions = self.summed_and_enumerated()
        else:
            lines = [*self.priors(), *self.observed("t")] if self.leaves else self.line()
            functions = [_block(f"def model({'x' if isinstance(self.model, Leaf) else 'x, t=None'}):", lines)]
        rows = self.examples()
        main = [
            "rng = np.random.default_rng(0)  # rows of no meaning: put yours in their place",
            *(f"{name} = {text}" for name, text in rows.items()),
            "sampler = MCMC(NUTS(model), num_warmup=500, num_samples=1000)",
            f"sampler.run(jax.random.PRNGKey(0), {', '.join(rows)})",
            "sampler.print_summary()",
        ]
        *parts, main = [
            "\n".join(_laid_out(lines)) for lines in [*functions, _block('if __name__ == "__main__":', main)]
        ]
        helpers = [text for call, text in _HELPERS.items() if any(call in part for part in parts)]
        whole: Any = {"break_long_words": False, "break_on_hyphens": False}
        constants = "\n".join(
            textwrap.fill(f"{name} = {text}", _WIDTH, **whole) for text, name in self.constants.items()
        )
        notes = [textwrap.fill(note, _WIDTH, initial_indent="\n# ", subsequent_indent="#   ") for note in self.notes]
        told = f'"""{type(self.model).__name__} in NumPyro, written by bayesgen {__version__}."""\n'
        top = "".join([told, _IMPORTS, *notes])
        return "\n\n\n".join(part.strip("\n") for part in [top, *helpers, *parts, constants, main] if part) + "\n"

    def summed_and_enumerated(self) -> list[list[str]]:
        """Return functions: the prior, the model with unknown classes summed out, and with the sum left to NumPyro."""
        prior = self.priors()
        names = ", ".join(variable for variable, _ in self.sites.values())
        taken = f"({names}) = parameters()"
        summed = [taken, f"joint = jnp.log({next(iter(self.sites.values()))[0]})"]
        for label in self.leaves:
            *lines, density, rows = self.density(label, ":")
            summed += [*lines, f"density = {density}", f"joint = joint + density.log_prob({rows})"]
        drawn, told = self.observed("k"), "labels, which may be wrong" if self.noisy else "labels"
        if not self.noisy:
            summed.append(f"possible = (t[:, None] < 0) | (t[:, None] == jnp.arange({len(self.names)}))")
            summed.append("joint = jnp.where(possible, joint, -jnp.inf)")
            drawn.append('    numpyro.factor("t_known", jnp.where((t < 0) | (t == k), 0.0, -1e30))')
        summed.append('numpyro.factor("rows", jax.nn.logsumexp(joint, axis=1).sum())')
        return [
            _block("def parameters():", [*prior, f"return ({names})"]),
            _block(f"def model(x, t):  # t: {told}, -1 where there is none", summed),
            _block("def enumerated(x, t):  # the same, where NumPyro sums over k", [taken, *drawn]),
        ]

    def line(self) -> list[str]:
        """Return the statements of a regression."""
        lines, likelihood = text_of_line(self.model)
        if self.units is not None:
            centre, scale = map(self.literal, ("centre", "scale"), self.units, (1, 1))
            lines = [f"x = (x - {centre}) / {scale}", *lines]
        if self.model.columns:
            self.notes.append(f"Columns of x: {listed(self.model.columns)}.")
        *lines, likelihood = [self.filled(text, self.model, "") for text in [*lines, likelihood]]
        return [*lines, *_block('with numpyro.plate("obs", len(x)):', [f'numpyro.sample("t", {likelihood}, obs=t)'])]

    def priors(self) -> list[str]:
        """Return the statements of all sites, those of the same plates together."""
        classes = {_CLASSES: getattr(self.model, "model", self.model).classes} if self.names else {}
        parts = [part for label, leaf in (classes | self.leaves).items() for part in self.prior(label, leaf)]
        together = itertools.groupby(parts, lambda part: part[0])
        return [line for plates, same in together for line in _block(plates, [statement for _, statement in same])]

    def prior(self, label: str, leaf) -> Iterator[tuple[str, str]]:
        """Yield the statements of the sites of a leaf, each after the plates that it stands in."""
        classes = len(self.names) if label in self.leaves else 0
        axes_of_all = zip(("class", "feature"), (classes, *leaf.features), strict=False)
        sizes = {axis: size for axis, size in axes_of_all if size}
        for site, prior in text_of(leaf).sites.items():
            axes = [axis for axis in sizes if axis in leaf.dims(site, grouped=bool(classes))]
            plates = [
                f"numpyro.plate({_quoted(axis if axes == ['class'] else label + axis)}, {sizes[axis]}{dim})"
                for axis, dim in zip(axes, (", dim=-2", ", dim=-1") if len(axes) > 1 else ("",), strict=False)
            ]
            variable = _new(label + site, [known for known, _ in self.sites.values()])
            kind = "deterministic" if prior.startswith("=") else "sample"
            value = self.filled(prior.removeprefix("="), leaf, label, axes)
            self.sites[label + site] = variable, axes
            statement = f"{variable} = numpyro.{kind}({_quoted(label + site)}, {value})"
            yield f"with {', '.join(plates)}:" if plates else "", statement

    def observed(self, index: str) -> list[str]:
        """Return the statements of the rows, whose classes have the name ``index``."""
        rows = []
        if self.names:
            last = "obs=t" if index == "t" else 'infer={"enumerate": "parallel"}'
            probability = next(iter(self.sites.values()))[0]
            rows.append(f'{index} = numpyro.sample("t", dist.Categorical(probs={probability}), {last})')
        for label in self.leaves:
            *lines, density, seen = self.density(label, index)
            rows += [*lines, f"numpyro.sample({_quoted(f'{label}x')}, {density}, obs={seen})"]
        return _block(f'with numpyro.plate("obs", len({self.sources[next(iter(self.leaves))]})):', rows)

    def density(self, label: str, index: str) -> list[str]:
        """Return statements, the distribution of the rows, and the rows at which it has their density.

        ``index`` is the name of the class of each row; ":" stands for all classes at once.
        """
        leaf, lines, mask = self.leaves[label], [], ""
        text, rows = text_of(leaf), self.sources[label] + "[:, None]" * (index == ":")
        density = text.likelihood
        if self.sources[label] == "t":
            text, mask = replace(text, entry="jnp.maximum({x}, 0)"), f".mask({rows} >= 0)"
        elif self.has_gaps(label):
            if not (text.mask or text.vector):
                raise InputError(f"gaps of a {type(leaf).__name__} are not written as a plain program: leave them out")
            lines, rows = [f"seen, rows = entries({rows}{text.possible})"], "rows"
            density, mask = text.vector or density, f".mask({text.mask})" * bool(text.mask)
        event = len(leaf.features) + text.event
        density = density + mask + f".to_event({event})" * bool(event)
        return [*lines, self.filled(density, leaf, label, ("feature",), index, rows), text.entry.replace("{x}", rows)]

    def has_gaps(self, label: str) -> bool:
        """Return True if entries of a leaf may be missing: in the rows, or by the counts of a fit."""
        rows, leaf, count = self.rows.get(label[:-1]), self.leaves[label], None
        if rows is not None and (rows != rows).sum():
            return True
        sums = self.sums and self.sums.leaves[label[:-1]]
        if isinstance(sums, Moments):
            count = sums.n
        elif isinstance(sums, RowsByGroup):
            count = np.einsum("kn,kn...->k...", sums.weight, sums.seen)
        elif isinstance(sums, SumStatistics):
            total = sums.total()
            count = leaf.summaries(total.reshape(len(total), -1, total.shape[-1])).get("count")
        return bool(self.sums) and (count is None or not np.allclose(count.T, self.sums.classes.total()))

    def filled(self, text: str, leaf, label: str, axes: Collection[str] = (), index: str = ":", rows: str = "") -> str:
        """Return a text with its numbers and sites, within plates of ``axes``, of all classes or of an ``index``."""

        def number(found):
            value, rank = value_of(leaf, found[1])
            if axes == ["class"] and leaf.features and value.ndim > 1:  # all features share it
                value = value[:, 0]
            return self.literal(label + found[1], value[..., None, None] if found[2] and value.ndim else value, rank)

        def variable(found):
            if found[1] == "x":
                return rows
            what, known = self.sites[label + found[1]]
            by_class = "class" in known
            if found[2]:
                every = f"jnp.arange({len(self.names)})" if index == ":" else index
                return (
                    f"{what}[{f'{every}[:, None], ' * by_class}contexts({rows}, {len(leaf.categories)}, {leaf.order})]"
                )
            thin = bool(leaf.features) and "feature" in axes and "feature" not in known
            return f"{what}[{index}{', None' * thin}]" if by_class and (thin or index != ":") else what

        return re.sub(r"\{(\w+)(:chain)?\}", variable, re.sub(r"\$(\w+)(:matrix)?", number, text))

    def literal(self, name: str, value, rank: int) -> str:
        """Return numbers as Python reads them back, without axes along which they do not change."""
        value = np.asarray(value)
        first = value.reshape(-1, *value.shape[value.ndim - rank :])[0]
        value = first if (value == first).all() else value
        if value.ndim == 0:
            return repr(value.item())
        if value.ndim == rank == 1 and (value == value[0]).all():
            return f"jnp.full({len(value)}, {value[0].item()!r})"
        if value.ndim == rank == 2 and len(value) == value.shape[1] and (value == np.diag(value.diagonal())).all():
            return f"jnp.diag({self.literal(name, value.diagonal(), 1)})"
        text = f"jnp.array({value.tolist()})"
        if value.size <= _INLINE and len(text) <= _LONGEST:
            return text
        if text not in self.constants:
            self.constants[text] = _new(name.upper()[-_LONGEST // 2 :], self.constants.values())
        return self.constants[text]

    def examples(self) -> dict[str, str]:
        """Return rows and targets of no meaning, as text."""
        rows = {}
        for label, leaf in self.leaves.items():
            text = text_of(leaf).rows.replace("{shape}", ", ".join(map(str, (_ROWS, *leaf.features))))
            rows[label] = self.filled(text, leaf, label).replace(f"({_ROWS})", str(_ROWS)).replace("jnp.", "np.")
        x = next(iter(rows.values())) if rows else f"rng.normal(size=({_ROWS}, {self.model.features}))"
        if self.by_name:
            named = (f"{_quoted(label[:-1])}: {x}" for label, x in rows.items() if self.sources[label] != "t")
            x = f"{{{', '.join(named)}}}"
        codes = f"rng.integers({-1 if self.unknown else 0}, {len(self.names)}, {_ROWS})"
        t = {} if isinstance(self.model, Leaf) else {"t": codes if self.names else f"rng.normal(size={_ROWS})"}
        return {"x": x} | t


def _block(head: str, lines: Iterable[str]) -> list[str]:
    """Return lines below a head, if there is one."""
    return [head, *(f"    {line}" for line in lines)] if head else list(lines)


def _new(name: str, known: Collection[str]) -> str:
    """Return a name that Python takes, and that is not among those known."""
    plain = "".join(sign if f"_{sign}".isidentifier() else "_" for sign in unicodedata.normalize("NFKC", name))
    plain = plain if plain.isidentifier() else f"_{plain}"
    return next(f"{plain}{k}" for k in ("", *range(2, 3 + len(known))) if f"{plain}{k}" not in known)


def _quoted(name: str) -> str:
    """Return a name as a string of Python."""
    return json.dumps(name, ensure_ascii=False)


def _laid_out(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines; of those that are too long, what their first brackets hold stands on lines below."""
    for line in lines:
        indent, depth, cuts = " " * (len(line) - len(line.lstrip())), 0, []
        for sign in re.finditer(r'"(?:[^"\\]|\\.)*"|[](){},[]', line):
            depth += (sign[0] in "([{") - (sign[0] in ")]}")
            if (depth == 1 and sign[0] in "([{,") or (depth == 0 and sign[0] in ")]}"):
                cuts.append(sign.start())
            if depth == 0 and cuts:
                break
        if len(line) <= _WIDTH or not cuts:
            yield line
            continue
        inner = [f"{indent}    {line[a + 1 : b].strip()}" for a, b in itertools.pairwise(cuts)]
        comma = "," * (len(inner) > 1)  # behind a single expression it would make a tuple
        yield line[: cuts[0] + 1]
        yield from _laid_out(part + comma for part in inner)
        yield indent + line[cuts[-1] :]
