r"""The program of a model in plain NumPyro, as NumPyro's gallery would write it: a text that needs no bayesgen.

The text is written from the model: its priors and densities (`bayesgen.export.program_leaves`), the plates of its
parameters, and the rows given its classes,

.. math:: \pi \sim p(\pi), \quad \theta_{jk} \sim p(\theta_j), \qquad t_i \sim \mathrm{Categorical}(\pi), \quad
   x_{ij} \mid t_i = k \sim p_j(x_{ij} \mid \theta_{jk})

Where a class is not known it is summed out, Σ_k p(x_i, t_i = k | θ), in `model`, or left to NumPyro, in `enumerated`.
Sites have the names that they have in the model, and the joint density is the model's, constants too.
"""

import itertools
import json
import re
import textwrap
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayesgen.core import __version__
from bayesgen.core.errors import InputError, listed
from bayesgen.core.statistics import SumStatistics
from bayesgen.export.program_leaves import text_of, value_of
from bayesgen.export.program_lines import text_of_line
from bayesgen.files import disk
from bayesgen.models.class_program import ClassProgram, ClassStatistics
from bayesgen.models.classifier import NaiveBayes
from bayesgen.models.leaf import Leaf
from bayesgen.models.model import Hyperparameters, Model
from bayesgen.models.moments import Moments
from bayesgen.models.unknown_labels import LABEL, PartlyLabelled, UnknownClasses

_INLINE, _LONGEST = 10, 80  # numbers, and signs, of an array that stands within the program
_WIDTH, _ROWS = 110, 100
_CLASSES = f"{ClassProgram.CLASSES}.probability"
PROGRAM = "a program in Python", (".py",)


class Program(str):
    """The text of a program; `save` writes it to a file."""

    def save(self, path) -> None:
        """Write the text to a file, ``program.py``, as a whole or not at all."""
        disk.check_ending(path, *PROGRAM)
        with disk.writing(Path(path)) as file:
            file.write(self.encode())


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
        Rows to fit an estimator to; of a model, ``X`` are rows as it takes them. Where rows have gaps, the program
        leaves these out.

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
        return Program(_Text(model, X))
    if isinstance(model, Hyperparameters):
        raise InputError(f"{name} is a prior alone: give the model that takes it")
    if not hasattr(model, "get_params"):
        raise TypeError(f"a program is of a model or of an estimator, got {name}")
    settings = model.get_params(deep=False)
    if "members" in settings:
        raise InputError(f"{name} is no one program, but many: give a naive Bayes or a discriminant of its columns")
    if X is not None:
        model = _with_prior(type(model)(**settings), X, y)
    if not hasattr(model, "model_"):
        raise InputError(f"this {name} is not fitted: fit it, or give its rows, program(estimator, X, y)")
    learned, units = model.model_, (model.centre_, model.scale_) if hasattr(model, "centre_") else None
    if isinstance(model.statistics_, PartlyLabelled) and not isinstance(learned, UnknownClasses):
        learned = UnknownClasses(learned, model.label_noise and model.label_noise.confusion(model.classes_.tolist()))
    return Program(_Text(learned, sums=model.statistics_, units=units))


class _Asked(Exception):
    """Carries what an estimator has learned before its inference out of its `fit`."""

    def __init__(self, **learned):
        super().__init__()
        vars(self).update(learned)


def _with_prior(estimator, X, y):
    """Return the model, with its weak priors, that an estimator would learn from rows, and the units of its columns."""

    def ask(model, data, *, seed=None):
        raise _Asked(**vars(estimator) | {"model_": model, "statistics_": data})

    try:
        return estimator.set_params(inference=ask).fit(X, y)
    except _Asked as asked:
        return asked


_IMPORTS = [
    "import jax",
    "import jax.numpy as jnp",
    "import numpy as np",
    "import numpyro",
    "import numpyro.distributions as dist",
    "from numpyro.infer import MCMC, NUTS",
    "",
    "numpyro.enable_x64()",
    "",
]
_HELPERS = {
    "entries": '''
def entries(x, possible=0.0):
    """Return a mask of the entries that are there, and the rows with a number in place of each NaN."""
    seen = ~jnp.isnan(jnp.asarray(x, float))
    return seen, jnp.where(seen, x, possible)
''',
    "marginal": '''
def marginal(covariance, seen):
    """Return the covariance of the entries that are there; a missing one stands apart, of variance 1/2pi: density 1."""
    both = seen[..., None] & seen[..., None, :]
    return jnp.where(both, covariance, jnp.eye(seen.shape[-1]) / (2 * jnp.pi))
''',
    "contexts": '''
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
    """The text of the program of one model, and the arrays and functions that it needs."""

    def __init__(self, model: Any, rows: Any = None, sums: Any = None, units: Any = None):
        self.model, self.rows, self.sums, self.units = model, rows, sums, units
        self.constants: dict[str, str] = {}  # arrays that stand below the program
        self.needed: set[str] = set()  # functions that it needs
        self.sites: dict[str, tuple[str, tuple[str, ...]]] = {}  # the variable of each site, and its axes
        self.notes: list[str] = []  # on its arguments
        self.classes = 0

    def __str__(self) -> str:
        """Return the whole text."""
        model = self.model
        if isinstance(model, UnknownClasses):
            body, asked = self.unknown(model), self.asked(model.model)
        elif isinstance(model, ClassProgram):
            body, asked = self.classifier(model), self.asked(model)
        elif isinstance(model, Leaf):
            body, asked = self.alone(model), [self.example(model)]
        else:
            body, asked = self.regression(model), self.asked_of_line(model)
        notes = [part for note in self.notes for part in textwrap.wrap(note, _WIDTH - 2, subsequent_indent="  ")]
        lines = [f'"""{type(model).__name__} in NumPyro, written by bayesgen {__version__}."""', "", *_IMPORTS]
        lines += [line for name in _HELPERS if name in self.needed for line in [*_HELPERS[name].splitlines(), ""]]
        lines += [""] * bool(self.needed and notes)
        lines += [*(f"# {note}" for note in notes), *([""] * 2)] if notes else [""]
        lines += [*(part for line in body for part in _laid_out(line)), ""]
        lines += [""] * bool(self.constants) + [f"{name} = {text}" for name, text in self.constants.items()]
        names = ("x", "t")[: len(asked)]
        main = ["rng = np.random.default_rng(0)  # rows of no meaning: put yours in their place"]
        main += [f"{name} = {text}" for name, text in zip(names, asked, strict=True)]
        main += ["sampler = MCMC(NUTS(model), num_warmup=500, num_samples=1000)"]
        main += [f"sampler.run(jax.random.PRNGKey(0), {', '.join(names)})", "sampler.print_summary()"]
        lines += ["", 'if __name__ == "__main__":', *(part for line in _indented(main) for part in _laid_out(line))]
        return "\n".join(lines) + "\n"

    # -- the three kinds of model --------------------------------------------------------------------------------------

    def alone(self, leaf) -> list[str]:
        """Return the program of a leaf by itself."""
        lines = _joined(self.prior(leaf, "", None))
        return ["def model(x):", *_indented([*lines, *_plate("x", self.observed(leaf, "", "x", "x"))])]

    def classifier(self, model) -> list[str]:
        """Return the program of rows whose classes are known, or drawn."""
        lines, sources = self.parameters(model), self.sources(model)
        rows = [f't = numpyro.sample("t", dist.Categorical(probs={self.sites[_CLASSES][0]}), obs=t)']
        for name, leaf in model.leaves.items():
            rows += self.observed(leaf, name, sources[name], f"{name}.x", "t")
        return ["def model(x, t=None):", *_indented([*lines, *_plate(next(iter(sources.values())), rows)])]

    def unknown(self, model) -> list[str]:
        """Return the program with the classes of some rows summed out, and the one that leaves the sum to NumPyro."""
        whole, noisy = model.whole, model.confusion is not None
        prior, sources = self.parameters(whole), self.sources(whole)
        if noisy:
            sources[LABEL] = "t"
        names = ", ".join(variable for variable, _ in self.sites.values())
        taken = f"({names}) = parameters()"
        probability, first = self.sites[_CLASSES][0], next(iter(sources.values()))
        summed, drawn = [taken, f"joint = jnp.log({probability})"], []
        for name, leaf in whole.leaves.items():
            *lines, density, rows = self.density(leaf, name, f"{sources[name]}[:, None]", None)
            summed += [*lines, f"density = {density}", f"joint = joint + density.log_prob({rows})"]
            drawn += self.observed(leaf, name, sources[name], f"{name}.x", "k")
        total, start, logs = "jax.nn.logsumexp(joint, axis=1)", [taken], f"jnp.log({probability})"
        if not noisy:
            known = ["t = jnp.asarray(t)", "known = t >= 0"]
            certain = f"jnp.where(t[:, None] == jnp.arange({self.classes}), 0.0, -1e30)"
            start = [taken, *known, f"certain = {certain}", f"logs = jnp.where(known[:, None], certain, {logs})"]
            summed, logs = [*summed, *known], "logs"
            total = f"jnp.where(known, joint[jnp.arange(len(t)), t], {total})"
            label = f"dist.Categorical(probs={probability}).mask(known)"
            drawn.insert(0, f'numpyro.sample("t_known", {label}, obs=jnp.where(known, t, 0))')
        site = f'k = numpyro.sample("t", dist.Categorical(logits={logs}), infer={{"enumerate": "parallel"}})'
        drawn.insert(0 if noisy else 1, site)
        labels = "labels, which may be wrong" if noisy else "-1 where it is not known"
        return [
            *["def parameters():", *_indented([*prior, f"return ({names})"]), "", ""],
            *[f"def model(x, t):  # t: {labels}"],
            *_indented([*summed, f'numpyro.factor("rows", ({total}).sum())']),
            *["", "", "def enumerated(x, t):  # the same, where NumPyro sums over k"],
            *_indented([*start, *_plate(first, drawn)]),
        ]

    def regression(self, model) -> list[str]:
        """Return the program of a target given its columns."""
        lines, likelihood = text_of_line(model)
        lines = [self.filled(text, model, "") for text in lines]
        if self.units is not None:
            centre, scale = (
                self.literal(name, value, 1) for name, value in zip(("centre", "scale"), self.units, strict=True)
            )
            lines.insert(0, f"x = (x - {centre}) / {scale}")
        if model.columns:
            self.notes.append(f"Columns of x: {listed(model.columns)}.")
        rows = [f'numpyro.sample("t", {self.filled(likelihood, model, "")}, obs=t)']
        return ["def model(x, t=None):", *_indented([*lines, *_plate("x", rows)])]

    # -- parameters ----------------------------------------------------------------------------------------------------

    def parameters(self, model) -> list[str]:
        """Return the prior of a classifier: its classes, and each leaf by class."""
        names, self.classes = model.class_names, len(model.class_names)
        self.notes.append(f"Classes: {', '.join(f'{k} is {label!r}' for k, label in enumerate(names))}.")
        parts = self.prior(model.classes, model.CLASSES, None)
        for name, leaf in model.leaves.items():
            parts += self.prior(leaf, name, len(names))
        return _joined(parts)

    def sources(self, model) -> dict[str, str]:
        """Return the expression of the rows of each leaf, and note the columns that they hold."""
        alone = not isinstance(model, NaiveBayes)
        sources = {name: "x" if alone else f"x[{_quoted(name)}]" for name in model.leaves}
        for name, source in sources.items():
            if columns := model.columns_of(name):
                self.notes.append(f"Columns of {source}: {listed(columns)}.")
        return sources

    def prior(self, leaf, name: str, groups: int | None) -> list[tuple[str, str]]:
        """Return the statements of the sites of a leaf, each with the plates that it stands in."""
        text, sizes, label = text_of(leaf), {}, f"{name}." if name else ""
        if len(leaf.features) > 1:
            raise InputError(
                f"a {type(leaf).__name__} of features in rows and columns is not written as a plain program"
            )
        if groups is not None:
            sizes["class"] = groups
        if leaf.features:
            sizes["feature"] = leaf.features[0]
        result = []
        for site, prior in text.sites.items():
            axes = tuple(axis for axis in sizes if axis not in text.shared.get(site, ()))
            variable = _new(re.sub(r"\W|^(?=\d)", "_", f"{label}{site}"), [known for known, _ in self.sites.values()])
            value = self.filled(prior.removeprefix("="), leaf, name, axes)
            kind = "deterministic" if prior.startswith("=") else "sample"
            plates = ", ".join(self.plate(label, axes, place, sizes) for place in range(len(axes)))
            statement = f"{variable} = numpyro.{kind}({_quoted(label + site)}, {value})"
            result.append((f"with {plates}:" if plates else "", statement))
            self.sites[label + site] = (variable, axes)
        return result

    def plate(self, label: str, axes, place: int, sizes) -> str:
        """Return a plate; that of classes has a name of its own where there are features beside it."""
        axis, alone = axes[place], len(axes) == 1
        named = axis if axis == "class" and alone else f"{label}{axis}"
        return f"numpyro.plate({_quoted(named)}, {sizes[axis]}{'' if alone else f', dim={place - len(axes)}'})"

    # -- rows ----------------------------------------------------------------------------------------------------------

    def observed(self, leaf, name: str, source: str, site: str, index: str = "") -> list[str]:
        """Return the statements that observe the rows of a leaf."""
        *lines, density, rows = self.density(leaf, name, source, index)
        return [*lines, f"numpyro.sample({_quoted(site)}, {density}, obs={rows})"]

    def density(self, leaf, name: str, source: str, index: str | None) -> list[str]:
        """Return statements, the distribution of the rows, and the rows at which it has their density.

        ``index`` is the class of each row, "" where there are none; None stands for all classes at once.
        """
        text, rows, lines, mask = text_of(leaf), source, [], ""
        if text.chain:
            self.needed.add("contexts")
            if self.rows is not None and self.has_gaps(leaf, name):
                raise InputError("a MarkovChain with gaps is not written as a plain program")
            lines, rows, mask = [f"codes = {source}"], "jnp.maximum(codes, 0).astype(int)", ".mask(codes >= 0)"
        elif self.has_gaps(leaf, name):
            self.needed.add("entries")
            possible = "" if text.possible == "0.0" else f", {text.possible}"
            lines, rows = [f"seen, rows = entries({source}{possible})"], "rows"
            mask = f".mask(seen{text.place}{text.whole})"
            if leaf.event_dim and not (text.vector or text.whole or text.place):
                raise InputError(f"vectors with gaps of a {type(leaf).__name__} are not written as a plain program")
            if text.vector:
                self.needed.add("marginal")
                mask = ""
        density = text.vector if rows == "rows" and text.vector else text.likelihood
        likelihood = self.filled(density, leaf, name, None, index, rows) + mask
        event = len(leaf.features) + text.chain
        observed = f"{rows}{text.place}" + ".astype(int)" * text.codes
        return [*lines, likelihood + f".to_event({event})" * bool(event), observed]

    def has_gaps(self, leaf, name: str) -> bool:
        """Return True if entries of a leaf may be missing: by the rows, or by the sums of the rows of a fit."""
        if name == LABEL or (self.rows is None and self.sums is None):
            return False
        if self.rows is not None:
            rows = self.rows[name] if isinstance(self.rows, Mapping) else self.rows
            return bool(np.isnan(np.asarray(leaf.check(rows), float)).any())
        sums, count = self.sums.leaves[name] if isinstance(self.sums, ClassStatistics) else None, None
        if isinstance(sums, Moments):
            count = sums.n
        elif isinstance(sums, SumStatistics):
            total = sums.total()
            count = leaf.summaries(total.reshape(len(total), -1, total.shape[-1])).get("count")
        return count is None or not np.allclose(count.T, self.sums.classes.total())

    # -- the parts of a line -------------------------------------------------------------------------------------------

    def filled(self, text: str, leaf, name: str, axes=None, index: str | None = "", rows: str = "") -> str:
        """Return a text with the numbers of the hyperparameters, and the variables of the sites.

        It stands within plates of ``axes``; or, where these are None, among rows of the class ``index``.
        """
        label = f"{name}." if name else ""

        def number(found):
            value, rank = value_of(leaf, found["number"])
            matrix = "[..., None, None]" * (bool(found["matrix"]) and np.size(value) > 1)
            return self.literal(f"{label}{found['number']}", value, rank) + matrix

        def variable(found):
            if found["site"] in ("x", "seen"):
                return rows if found["site"] == "x" else "seen"
            what, own = self.sites[label + found["site"]]
            by_class, thin = "class" in own, getattr(leaf, "features", ()) and "feature" not in own
            if found["chain"]:
                every = f"jnp.arange({self.classes})" if index is None else index
                found = f"contexts(codes, {len(leaf.categories)}, {leaf.order})"
                return f"{what}[{every}[:, None], {found}]" if every else f"{what}[{found}]"
            if axes is None and index and by_class:
                return f"{what}[{index}, None]" if thin else f"{what}[{index}]"
            return f"{what}[:, None]" if by_class and thin and (axes is None or "feature" in axes) else what

        text = re.sub(r"\$(?P<number>\w+)(?P<matrix>:matrix)?", number, text)
        return re.sub(r"\{(?P<site>\w+)(?P<chain>:chain)?\}", variable, text)

    def literal(self, name: str, value, rank: int = 0) -> str:
        """Return numbers as Python reads them back, without axes along which they do not change."""
        value = np.asarray(value)
        first = value.reshape(-1, *value.shape[value.ndim - rank :])[0]
        if (value == first).all():
            value = first
        if value.ndim == 0:
            return repr(value.item())
        if value.ndim == rank == 1 and (value == value[0]).all():
            return f"jnp.full({len(value)}, {value[0].item()!r})"
        if value.ndim == rank == 2 and len(value) == value.shape[1] and (value == np.diag(np.diagonal(value))).all():
            return f"jnp.diag({self.literal(name, np.diagonal(value), 1)})"
        text = f"jnp.array({value.tolist()})"
        if value.size <= _INLINE and len(text) <= _LONGEST:
            return text
        text = "\n".join(textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False))
        same = [known for known, array in self.constants.items() if array == text]
        name = same[0] if same else _new(re.sub(r"\W|^(?=\d)", "_", name).upper(), self.constants)
        self.constants[name] = text
        return name

    # -- rows to try it with -------------------------------------------------------------------------------------------

    def asked(self, model) -> list[str]:
        """Return rows and classes of no meaning, as text."""
        rows = {name: self.example(leaf) for name, leaf in model.leaves.items()}
        many = "{" + ", ".join(f"{_quoted(name)}: {text}" for name, text in rows.items()) + "}"
        first = -1 if isinstance(self.model, UnknownClasses) and self.model.confusion is None else 0
        codes = f"rng.integers({first}, {len(model.class_names)}, {_ROWS})"
        return [many if isinstance(model, NaiveBayes) else next(iter(rows.values())), codes]

    def asked_of_line(self, model) -> list[str]:
        """Return columns and targets of no meaning, as text."""
        classes = getattr(model, "classes", None)
        target = f"rng.normal(size={_ROWS})" if classes is None else f"rng.integers(0, {len(classes)}, {_ROWS})"
        return [f"rng.normal(size=({_ROWS}, {model.features}))", target]

    def example(self, leaf) -> str:
        """Return rows of no meaning of a leaf, as text."""
        text = text_of(leaf)
        vector = ()
        if leaf.event_dim and not (text.whole or text.place):
            vector = (4,) if text.chain else (value_of(leaf, "D")[0],)
        shape = (_ROWS, *leaf.features, *vector)
        shape = str(shape if len(shape) > 1 else _ROWS)
        return self.filled(text.rows.replace("{shape}", shape), leaf, "").replace("jnp.", "np.")


def _indented(lines) -> list[str]:
    return [f"    {line}" for line in lines]


def _plate(source: str, rows) -> list[str]:
    return [f'with numpyro.plate("obs", len({source})):', *_indented(rows)]


def _joined(parts) -> list[str]:
    """Return statements with those of the same plates under one `with`."""
    result, before = [], ""
    for plates, line in parts:
        if plates and plates != before:
            result.append(plates)
        result.append(f"    {line}" if plates else line)
        before = plates
    return result


def _new(name: str, known: Collection[str]) -> str:
    """Return a name that is not among those known."""
    return next(
        f"{name}{ending}" for ending in ("", *map(str, range(2, 2 + len(known)))) if f"{name}{ending}" not in known
    )


def _quoted(name: str) -> str:
    """Return a name as a string of Python."""
    return json.dumps(name, ensure_ascii=False)


def _laid_out(line: str) -> list[str]:
    """Return a statement; where it is long, with what its widest brackets hold on lines of their own."""
    indent = " " * (len(line) - len(line.lstrip()))
    if len(line) <= _WIDTH or line.endswith(":"):
        return [line]
    depth, quote, opened, groups, commas = 0, "", 0, [], [0]
    for place, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote and line[place - 1] != "\\" else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{":
            if depth == 0:
                opened, commas = place, [place]
            depth += 1
        elif sign == "," and depth == 1:
            commas.append(place)
        elif sign in ")]}":
            depth -= 1
            if depth == 0:
                groups.append((place - opened, opened, place, [*commas, place]))
    if not groups:
        return [line]
    _, first, last, commas = max(groups)
    inner = [f"{indent}    {line[a + 1 : b].strip()}," for a, b in itertools.pairwise(commas)]
    return [line[: first + 1], *(part for text in inner for part in _laid_out(text)), indent + line[last:]]
