"""The program of a model in plain NumPyro, as NumPyro's gallery would write it: a text that needs no bayesgen.

Sites have the names that they have in the model, and the joint density is the model's, constants too. Where a class is
not known it is summed out, Σ_k p(x_i, t_i = k | θ), in `model`, or left to NumPyro, in `enumerated`. The priors and
densities are in `bayesgen.export.program_texts`.
"""

import contextlib
import functools
import itertools
import json
import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np

from bayesgen.core import __version__
from bayesgen.core.errors import Argument, InputError, listed
from bayesgen.core.statistics import Statistics
from bayesgen.export.program_texts import Text, text_of, value_of
from bayesgen.files import disk
from bayesgen.models.beside_constants import BesideConstants
from bayesgen.models.class_program import ClassStatistics, column_sums
from bayesgen.models.classifier import NaiveBayes
from bayesgen.models.leaf import Leaf
from bayesgen.models.linear_model import Discriminative
from bayesgen.models.markov_chain import MarkovChain
from bayesgen.models.model import Hyperparameters, Model
from bayesgen.models.sequences import ChainStatistics
from bayesgen.models.unknown_labels import LABEL, PartlyLabelled, UnknownClasses

_INLINE, _LONGEST = 10, 80  # numbers, and signs, of an array that stands within the program
_WIDTH, _ROWS = 110, 100
_CLASSES, _LABEL = "classes.probability", f"{LABEL}."
_quoted = functools.partial(json.dumps, ensure_ascii=False)
PROGRAM = "a program in Python", (".py",)


class Program(str):
    """The text of a program; `save` writes it to a file."""

    def save(self, path) -> None:
        """Write the text to a file, ``program.py``, as a whole or not at all."""
        disk.check_ending(path, *PROGRAM)
        with disk.writing(Path(path)) as file:
            file.write(self.encode())


class _Asked(Exception):
    """Ends a fit before its inference."""


def program(model: Any, X=None, y=None, *, member: int | None = None) -> Program:
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
    member : int, optional
        Of an `AveragedClassifier`, the generative member to write, by its row in `summary`: 0 is the heaviest. Its
        numbers are bent, and the log of the slope of the bends is part of the joint density.

    Returns
    -------
    Program
        The text, a `str`, whose ``save(path)`` writes it to a file.

    Raises
    ------
    ValueError
        If the model is no program that stands for itself: an improper prior, a prior alone, an average as a whole, a
        member that only scores classes, or is no product of leaves.

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
    if ("members" in settings) != (member is not None):
        many, no = "is no one program, but many: give a row of summary(), as in ", "has no members: leave out "
        raise InputError(f"{name} {many if member is None else no}", Argument("member", 0 if member is None else None))
    if X is not None:
        model, found = type(model)(**settings), {}

        def ask(learned, data, *, seed=None):
            found.update(vars(model), model_=learned, statistics_=data)
            raise _Asked

        with contextlib.suppress(_Asked):
            (model.set_params(inference=ask) if member is None else model).fit(X, y)
        vars(model).update(found)
    if member is not None:
        learned, bends = model.fitted_.model_of(member)
        return Program(_Text(learned, f"Member {member} of an average, untempered.", bends and astuple(bends)))
    if not hasattr(model, "model_"):
        raise InputError(f"this {name} is not fitted: fit it, or give its rows, program(estimator, X, y)")
    learned, units = model.model_, (model.centre_, model.scale_) if hasattr(model, "centre_") else None
    if isinstance(model.statistics_, PartlyLabelled) and not isinstance(learned, UnknownClasses):
        learned = UnknownClasses(learned, model.label_noise and model.label_noise.confusion(model.classes_.tolist()))
    return Program(_Text(learned, model.statistics_, units))


def program_or_none(model: Any) -> str:
    """Return the program of a model or an estimator; "" where there is none to write."""
    with contextlib.suppress(ValueError):
        return program(model)
    return ""


_IMPORTS = """
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

numpyro.enable_x64()
"""
_HELPERS = '''\
def bent(x, centre, scale, power):
    """Return numbers bent by Yeo and Johnson, and the log of the slope of the bends of each row."""
    z = (x - centre) / scale
    size, p = jnp.log1p(jnp.abs(z)), jnp.where(z < 0, 2 - power, power) + 1e-200  # p = 0 is a limit
    slope = (power - 1) * jnp.sign(z) * size - jnp.log(scale)
    return jnp.sign(z) * jnp.expm1(p * size) / p, jnp.where(jnp.isnan(x), 0, slope).sum(-1)


def entries(x):
    """Return a mask of the entries that are there, and the rows with 1, which all can be, in place of each NaN."""
    seen = ~jnp.isnan(jnp.asarray(x, float))
    return seen, jnp.where(seen, x, 1.0)


def marginal(covariance, seen):
    """Return the covariance of the entries that are there; a missing one stands apart, of variance 1/2pi: density 1."""
    both = seen[..., None] & seen[..., None, :]
    return jnp.where(both, covariance, jnp.eye(seen.shape[-1]) / (2 * jnp.pi))


def student(rows, seen, dof, mean, covariance):
    """Return a point mass at rows, with the density of Student's t of the entries that are there."""
    normal, d = dist.MultivariateNormal(jnp.where(seen, mean, 1.0), covariance), seen.sum(-1)
    top, log_gamma = normal.log_prob(normal.mean), jax.scipy.special.gammaln
    level = top + log_gamma((dof + d) / 2) - log_gamma(dof / 2) - d / 2 * jnp.log(dof / 2)
    density = level - (dof + d) / 2 * jnp.log1p(2 * (top - normal.log_prob(rows)) / dof)
    return dist.Delta(jnp.broadcast_to(rows, (*density.shape, rows.shape[-1])), density, event_dim=1)


def contexts(x, count, order):
    """Return 1 at the place of the context of each symbol, else 0; shorter contexts come first, of fewer before it."""
    place, x = [], np.maximum(x, 0).astype(int)
    for i in range(x.shape[-1]):
        before = x[..., max(i - order, 0) : i]
        powers = count ** np.arange(before.shape[-1])
        place.append(powers.sum() + before @ powers[::-1])
    return jax.nn.one_hot(np.stack(place, -1), (count ** np.arange(order + 1)).sum())'''
_STATEMENTS = {
    "": "{0} = numpyro.sample({1}, {2})",
    "=": "{0} = numpyro.deterministic({1}, {2})",
    ":": "{0} = {2}",
    "+": "numpyro.factor({1}, {2})",
}


def _has_gaps(name: str, leaf, data) -> bool:
    """Return True if entries of a leaf may be missing: in the rows, or by the counts of a fit."""
    rows, sums = getattr(data, "rows", data), getattr(data, "recorded", data)
    if isinstance(data, str):
        return not isinstance(leaf, MarkovChain)
    if isinstance(rows, Mapping) and rows.get(name) is not None and (rows[name] != rows[name]).sum():
        return True
    if not isinstance(sums, ClassStatistics):
        return False
    if isinstance(kept := sums.leaves[name], ChainStatistics):
        return len(kept.stretches) > 0
    count = column_sums(leaf, kept).get("count")
    return count is None or not np.allclose(count.T, sums.classes.total())


class _Text:
    """The text of a program; ``data`` are rows by leaf, the statistics of a fit, or what is told of a member."""

    def __init__(self, model: Any, data: Any = None, units: Any = None):
        self.model, self.units, self.unknown = model, units, isinstance(model, UnknownClasses)
        self.constants: dict[str, str] = {}  # names of arrays that stand below the program, by their text
        self.sites: dict[str, tuple[str, Collection[str]]] = {}  # the variable of each site, and its axes
        whole, alone = model.model if self.unknown else model, isinstance(model, Leaf | Discriminative)
        self.by_name = isinstance(whole, NaiveBayes)  # True if rows are given by leaf
        self.classes = None if alone else text_of(whole.classes)
        self.names = whole.class_names if self.classes else getattr(model, "classes", ())
        self.notes, self.bent = [data] * isinstance(data, str), units is not None and len(units) == 3
        self.notes += ["Weak priors have the numbers that the rows gave."] * isinstance(data, Statistics | str)
        if self.names:
            self.notes.append(f"Classes: {', '.join(f'{k} is {label!r}' for k, label in enumerate(self.names))}.")
        self.parts: dict[str, Text] = {}  # of each leaf, by what stands before the names of its sites
        for name, leaf in ({"": model} if alone else whole.leaves).items():
            columns = getattr(model, "columns", ()) if alone else whole.columns_of(name)
            source = f"x[{_quoted(name)}]" if self.by_name else "x"
            if isinstance(leaf, BesideConstants):
                self.notes.append(f"Constant columns, which are left out: {listed(leaf.constants(columns))}.")
                if not leaf.kept:
                    continue
                columns, leaf = tuple(columns[j] for j in leaf.kept), leaf.leaf
            source = "numbers" if self.bent and name == "numbers" else source
            self.parts[f"{name}." * (not alone)] = text_of(leaf, source, _has_gaps(name, leaf, data))
            self.notes += [f"Columns of {source}: {listed(columns)}."] * bool(columns)
        if not self.parts:
            raise InputError(f"no column of this {type(model).__name__} varies: there is no program to write")
        if self.unknown and model.confusion is not None:
            self.parts[_LABEL] = replace(text_of(model.confusion, "t"), entry="jnp.maximum({x}, 0)")

    def __str__(self) -> str:
        """Return the whole text."""
        functions = self.summed_and_enumerated() if self.unknown else [self.by_class()]
        rows = self.examples()
        main = [
            "rng = np.random.default_rng(0)  # rows of no meaning: put yours in their place",
            *(f"{name} = {text}" for name, text in rows.items()),
            "sampler = MCMC(NUTS(model), num_warmup=500, num_samples=1000)",
            f"sampler.run(jax.random.PRNGKey(0), {', '.join(rows)})",
            "sampler.print_summary()",
        ]
        functions.append(_block('if __name__ == "__main__":', main))
        parts = ["\n".join(map(_laid_out, lines)) for lines in functions]
        called = {name for part in parts for name in re.findall(r"\w+\(", part)}
        helpers = [text for text in _HELPERS.split("\n\n\n") if text[4 : text.index("(") + 1] in called]
        wrapped = functools.partial(textwrap.fill, width=_WIDTH, subsequent_indent="    ", break_on_hyphens=False)
        constants = "\n".join(wrapped(f"{name} = {text}") for text, name in self.constants.items())
        notes = [textwrap.fill(note, _WIDTH, initial_indent="\n# ", subsequent_indent="#   ") for note in self.notes]
        told = f'"""{type(self.model).__name__} in NumPyro, written by bayesgen {__version__}."""\n'
        every = ["".join([told, _IMPORTS, *notes]), *helpers, *parts[:-1], constants, parts[-1]]
        return "\n\n\n".join(part.strip("\n") for part in every if part) + "\n"

    def summed_and_enumerated(self) -> list[list[str]]:
        """Return functions: the prior, the model with unknown classes summed out, and with the sum left to NumPyro."""
        prior = self.priors()
        names = ", ".join(variable for variable, _ in self.sites.values())
        taken = f"({names}) = parameters()"
        summed = [taken, f"joint = jnp.log({self.sites[_CLASSES][0]})"]
        for label in self.parts:
            *lines, density, rows = self.density(label, ":")
            summed += [*lines, f"density = {density}", f"joint = joint + density.log_prob({rows})"]
        drawn, told = self.observed("k"), "labels, which may be wrong" if _LABEL in self.parts else "labels"
        if _LABEL not in self.parts:
            summed.append(f"possible = (t[:, None] < 0) | (t[:, None] == jnp.arange({len(self.names)}))")
            summed.append("joint = jnp.where(possible, joint, -jnp.inf)")
            drawn.append('    numpyro.factor("t_known", jnp.where((t < 0) | (t == k), 0.0, -1e30))')
        summed.append('numpyro.factor("rows", jax.nn.logsumexp(joint, axis=1).sum())')
        return [
            _block("def parameters():", [*prior, f"return ({names})"]),
            _block(f"def model(x, t):  # t: {told}, -1 where there is none", summed),
            _block("def enumerated(x, t):  # the same, where NumPyro sums over k", [taken, *drawn]),
        ]

    def by_class(self) -> list[str]:
        """Return the function of rows whose classes are known, or that have none."""
        lines = [*self.priors(), *self.observed("t")]
        if self.units is not None:
            before = 'numbers, slope = bent(x["numbers"], {}, {}, {})' if self.bent else "x = (x - {}) / {}"
            lines = [before.format(*map(self.literal, ("centre", "scale", "power"), self.units)), *lines]
        return _block(f"def model({'x' if isinstance(self.model, Leaf) else 'x, t=None'}):", lines)

    def priors(self) -> list[str]:
        """Return the statements of all sites, those of the same plates together."""
        classes = {"classes.": self.classes} if self.classes else {}
        statements = (each for label, text in (classes | self.parts).items() for each in self.prior(label, text))
        together = itertools.groupby(statements, lambda each: each[0])
        return [line for plates, same in together for line in _block(plates, [statement for _, statement in same])]

    def prior(self, label: str, text: Text) -> Iterator[tuple[str, str]]:
        """Yield the statements of the sites of a leaf, each after the plates that it stands in."""
        grouped = {"grouped": True} if self.classes and text is not self.classes else {}
        sizes = text.plates or {"class": len(self.names), **dict(zip(["feature"], text.features, strict=False))}
        for site, prior in text.sites.items():
            axes = [axis for axis in sizes if axis in text.leaf.dims(site, **grouped)]
            plates = [
                f"numpyro.plate({_quoted(axis if axes == ['class'] else label + axis)}, {sizes[axis]}{dim})"
                for axis, dim in zip(axes, (", dim=-2", ", dim=-1") if len(axes) > 1 else ("",), strict=False)
            ]
            variable, kind = _new(label + site, [known for known, _ in self.sites.values()]), prior[: prior[0] in "=:+"]
            value = self.filled(prior.removeprefix(kind), label, text, axes)
            self.sites[label + site] = variable, axes
            statement = _STATEMENTS[kind].format(variable, _quoted(label + site), value)
            yield f"with {', '.join(plates)}:" if plates else "", statement

    def observed(self, index: str) -> list[str]:
        """Return the statements of the rows, whose classes have the name ``index``."""
        rows = []
        if self.classes:
            last = "obs=t" if index == "t" else 'infer={"enumerate": "parallel"}'
            probability = self.sites[_CLASSES][0]
            rows.append(f'{index} = numpyro.sample("t", dist.Categorical(probs={probability}), {last})')
        for label in self.parts:
            *lines, density, seen = self.density(label, index)
            site = _quoted(label + ("t" if seen == "t" else "x"))
            rows += [*lines, f"numpyro.sample({site}, {density}, obs={seen})"]
        rows += ['numpyro.factor("slope", slope)'] * self.bent
        return _block(f'with numpyro.plate("obs", len({next(iter(self.parts.values())).source})):', rows)

    def density(self, label: str, index: str) -> list[str]:
        """Return statements, the distribution of the rows of a class, ":" for all at once, and the rows it is of."""
        text, lines, mask = self.parts[label], [], ""
        density, rows = text.likelihood, text.source + "[:, None]" * (index == ":")
        if text.source == "t":
            mask = f".mask({rows} >= 0)"
        elif text.gaps:
            if not (text.mask or text.vector):
                name = type(text.leaf).__name__
                raise InputError(f"gaps of a {name} are not written as a plain program: leave these rows out")
            lines, rows = [f"seen, rows = entries({rows})"], "rows"
            density, mask = text.vector or density, f".mask({text.mask})" * bool(text.mask)
        density += mask + f".to_event({len(text.features)})" * bool(text.features)
        return [*lines, self.filled(density, label, text, ("feature",), index, rows), text.entry.replace("{x}", rows)]

    def filled(self, words: str, label: str, text: Text, axes: Collection[str] = (), index=":", rows="") -> str:
        """Return words with their numbers and sites, within plates of ``axes``, of all classes or of an ``index``."""

        def number(found):
            value, rank = value_of(text.leaf, found[1])
            if axes == ["class"] and text.features and value.ndim > 1:  # all features share it
                value = value[:, 0]
            return self.literal(label + found[1], value[..., None, None] if found[2] and value.ndim else value, rank)

        def variable(found):
            if found[1] in ("x", "shape"):
                return rows
            what, known = self.sites[label + found[1]]
            thin = bool(text.features) and "feature" in axes and "feature" not in known
            return f"{what}[{index}{', None' * thin}]" if "class" in known and (thin or index != ":") else what

        return re.sub(r"\{(\w+)\}", variable, re.sub(r"\$(\w+)(:matrix)?", number, words))

    def literal(self, name: str, value, rank: int = 1) -> str:
        """Return numbers as Python reads them back, without axes along which they do not change."""
        value = np.asarray(value)
        first = value.reshape(-1, *value.shape[value.ndim - rank :])[0]
        value = first if (value == first).all() else value
        if value.ndim == 0:
            return repr(value.item())
        if value.ndim == rank == 1 and (value == value[0]).all():
            return f"jnp.full({len(value)}, {value[0].item()!r})"
        if value.ndim == rank == 2 and len(value) == value.shape[1] and (value == np.diag(value.diagonal())).all():
            return f"jnp.diag({self.literal(name, value.diagonal())})"
        text = f"jnp.array({value.tolist()})"
        if value.size <= _INLINE and len(text) <= _LONGEST:
            return text
        if text not in self.constants:
            self.constants[text] = _new(name.upper()[-_LONGEST // 2 :], self.constants.values())
        return self.constants[text]

    def examples(self) -> dict[str, str]:
        """Return rows and targets of no meaning, as text."""
        rows = {}
        for label, text in self.parts.items():
            shape = ", ".join(map(str, (_ROWS, *text.features)))
            rows[label] = self.filled(text.rows, label, text, rows=shape).replace(f"({_ROWS})", str(_ROWS))
        rows.pop(_LABEL, None)
        if self.bent:
            rows["numbers."] = "{} + {} * ".format(*map(self.literal, ("", ""), self.units)) + rows["numbers."]
        x = next(iter(rows.values()))
        if self.by_name:
            x = f"{{{', '.join(f'{_quoted(label[:-1])}: {text}' for label, text in rows.items())}}}"
        t = f"rng.normal(size={_ROWS})"
        if self.names:
            t = f"rng.integers({-1 if self.unknown else 0}, {len(self.names)}, {_ROWS})"
        return {"x": x.replace("jnp.", "np.")} | ({} if isinstance(self.model, Leaf) else {"t": t})


def _block(head: str, lines: Iterable[str]) -> list[str]:
    """Return lines below a head, if there is one."""
    return [head, *(f"    {line}" for line in lines)] if head else list(lines)


def _new(name: str, known: Collection[str]) -> str:
    """Return a name that Python takes, and that is not among those known."""
    plain = "".join(sign if f"_{sign}".isidentifier() else "_" for sign in unicodedata.normalize("NFKC", name))
    plain = plain if plain.isidentifier() else f"_{plain}"
    return next(f"{plain}{k}" for k in ("", *range(2, 3 + len(known))) if f"{plain}{k}" not in known)


def _laid_out(line: str) -> str:
    """Return a line; of one that is too long, what its first brackets hold stands on lines below."""
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', lambda text: "_" * len(text[0]), line)
    depths = list(itertools.accumulate((sign in "([{") - (sign in ")]}") for sign in plain))
    if len(line) <= _WIDTH or 1 not in depths:
        return line
    start, indent = depths.index(1), " " * (len(line) - len(line.lstrip()))
    end = depths.index(0, start)
    cuts = [start, *(i for i in range(start, end) if plain[i] == "," and depths[i] == 1), end]
    comma = "," * (len(cuts) > 2)  # behind a single expression it would make a tuple
    inner = [_laid_out(f"{indent}    {line[a + 1 : b].strip()}{comma}") for a, b in itertools.pairwise(cuts)]
    return "\n".join([line[: start + 1], *inner, indent + line[end:]])
