"""Declared contracts hold: abstract classes, posteriors of a user's own, floors that import from below, types."""

import ast
import copy
import functools
import inspect
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import bayesgen as bg
from bayesgen.core import program
from bayesgen.core.program import Record
from bayesgen.core.statistics import PlainSums, Statistics
from bayesgen.estimators.estimator import Estimator
from bayesgen.inference.coordinates import LogOdds
from bayesgen.inspection.fitted import Fitted, FittedClassifier, FittedDensity
from bayesgen.models import BetaBernoulli
from bayesgen.models.leaf import ConjugateFamily, ExponentialFamily, Leaf
from bayesgen.models.model import Conjugate, Hyperparameters, Model, Params, is_conjugate
from bayesgen.models.row_leaf import RowLeaf
from bayesgen.posterior import ParameterDraws, Posterior, Predictive

ROOT = Path(__file__).parent.parent

assert bg.load  # imports every class that a file may name


def below(cls) -> Iterator[type]:
    """Every subclass."""
    for sub in cls.__subclasses__():
        yield sub
        yield from below(sub)


def ours(classes) -> list[type]:
    return [cls for cls in classes if cls.__module__.startswith("bayesgen.")]


# -- abstract or final -----------------------------------------------------------------------------------------------

BASES = {Record, Hyperparameters, Statistics, PlainSums, Estimator}  # what nobody makes an instance of

CLASSES = ours([*program.records(), *below(Predictive), *below(Estimator)])


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_no_class_inherits_from_one_that_has_instances(cls):
    concrete = [b.__name__ for b in ours(cls.__mro__[1:]) if b not in BASES and not inspect.isabstract(b)]
    assert not concrete, f"{cls.__name__} switches parts of {concrete} off or on: let them share an abstract class"


def test_every_public_method_says_what_it_does_or_overrides_one_that_does():
    bare = [
        f"{cls.__name__}.{name}"
        for cls in CLASSES
        for name in vars(cls)
        if not name.startswith("_")
        if callable(member := getattr(cls, name)) or isinstance(member, property)
        if not inspect.getdoc(member)
    ]
    assert not bare


@pytest.mark.parametrize("cls", [cls for cls in below(Estimator) if not inspect.isabstract(cls)])
def test_an_estimator_is_read_in_at_most_five_classes(cls):
    """Five where rows have labels and sums add; what a classifier of unknown classes lacks stands in two of them."""
    own = [base.__name__ for base in ours(cls.__mro__)]
    assert len(own) <= 5, f"{cls.__name__} takes its methods from {own}"


def test_an_average_learns_in_stages_that_a_screen_shows():
    """Each stage is a function of a room: 73 lines of them made a fit that nobody read."""
    assert len(inspect.getsource(bg.AveragedClassifier._learn).splitlines()) <= 35


def test_the_walk_sees_the_package():
    assert {BetaBernoulli, LogOdds, ParameterDraws, bg.NaiveBayesClassifier} <= set(CLASSES)


# -- what is missing is named at instantiation -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Empty(ConjugateFamily):
    """A leaf with nothing written."""


REQUIRED = {
    Model: {"__call__", "latents", "statistics", "check", "log_likelihood", "log_likelihood_rows", "dims", "coords"},
    Leaf: {"parameters", "likelihood", "sum_rows", "log_likelihood", "log_likelihood_rows"},
    RowLeaf: {"parameters", "likelihood", "log_density"},
    ExponentialFamily: {"parameters", "likelihood", "sufficient_statistic", "natural_parameters"},
    ConjugateFamily: {"parameters", "likelihood", "sufficient_statistic", "natural_parameters", "update",
                      "log_evidence_terms", "sample_parameters"},
    Predictive: {"log_predictive", "label_draws", "with_class_prior", "log_class_prior"},
    Posterior: {"log_predictive", "draws", "as_draws", "with_class_prior", "mean"},
    Fitted: {"read"},
}  # fmt: skip
REQUIRED[FittedClassifier] = REQUIRED[Fitted] | {"terms", "predict_proba"}
REQUIRED[FittedDensity] = REQUIRED[FittedClassifier] | {"joint", "predict_joint_log_proba", "draw"}
REQUIRED[Conjugate] = REQUIRED[Model] | {"update", "log_evidence", "log_predictive", "sample_parameters"}


@pytest.mark.parametrize("base", REQUIRED, ids=lambda base: base.__name__)
def test_the_docstring_lists_what_must_be_written(base):
    assert set(base.__abstractmethods__) == REQUIRED[base]
    told = "".join(inspect.getdoc(cls) or "" for cls in base.__mro__ if cls in REQUIRED)
    assert not [name for name in REQUIRED[base] if name not in told]


def test_an_empty_leaf_is_refused_with_what_it_lacks():
    with pytest.raises(TypeError, match="Empty") as refused:
        Empty()  # pyright: ignore[reportAbstractUsage]
    assert all(name in str(refused.value) for name in REQUIRED[ConjugateFamily])


@pytest.mark.parametrize("name", sorted(REQUIRED[ConjugateFamily]))
def test_a_leaf_that_lacks_one_method_is_refused_and_it_is_named(name):
    written = {n: lambda self, *args, **options: None for n in REQUIRED[ConjugateFamily] - {name}}
    leaf = dataclass(frozen=True, eq=False)(type("Leaf", (ConjugateFamily,), written))
    with pytest.raises(TypeError, match=rf"Leaf.*\b{name}\b"):
        leaf()


@pytest.mark.parametrize("name", sorted(REQUIRED[Posterior]))
def test_a_posterior_that_lacks_one_method_is_refused_and_it_is_named(name):
    written = {n: lambda self, *args, **options: None for n in REQUIRED[Posterior] - {name}}
    with pytest.raises(TypeError, match=rf"Own.*\b{name}\b"):
        type("Own", (Posterior,), written)()


# -- a posterior of a user's own -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mixture(Posterior):
    """Draws of which each has a weight: what importance sampling gives."""

    model: Model
    samples: Params  # arrays (draws, ...)
    weight: np.ndarray  # (draws,), sums to 1

    kind = "draws"

    def log_predictive(self, x):
        density = self.model.log_likelihood_rows(self.samples, self.model.check(x))
        with np.errstate(divide="ignore"):
            terms = density + np.log(self.weight).reshape(-1, *[1] * (density.ndim - 1))
        return np.logaddexp.reduce(terms, axis=0).T

    def draws(self, seed=None, size=(4, 1000)):
        picked = np.random.default_rng(seed).choice(len(self.weight), size=size, p=self.weight)
        return {site: v[picked] for site, v in self.samples.items()}

    def as_draws(self, seed=None):
        return ParameterDraws(self.model, self.draws(seed))

    def with_class_prior(self, classes):
        one = ParameterDraws(self.model, {site: v[None] for site, v in self.samples.items()}).with_class_prior(classes)
        return replace(self, model=one.model, samples=one.flat)

    def mean(self):
        return {site: np.tensordot(self.weight, v, 1) for site, v in self.samples.items()}


@dataclass(frozen=True)
class Importance:
    """An inference of one's own: draws of the exact posterior, as a mixture with equal weights."""

    size: int = 4000

    def __call__(self, model, data, *, seed=None):
        assert is_conjugate(model)
        samples = model.update(data).sample_parameters(np.random.default_rng(0), (self.size,))
        return Mixture(model, samples, np.full(self.size, 1 / self.size))


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b"], 30)
    return rng.normal(np.where(y == "a", 0.0, 1.5)[:, None], 1.0, (60, 2)), y


def test_an_own_posterior_serves_a_classifier(rows):
    own, exact = bg.NaiveBayesClassifier(inference=Importance()).fit(*rows), bg.NaiveBayesClassifier().fit(*rows)
    assert isinstance(own.posterior_, Mixture)
    for priors in (None, [0.9, 0.1]):
        np.testing.assert_allclose(own.predict_proba(rows[0], priors), exact.predict_proba(rows[0], priors), atol=0.01)
    tree = own.to_arviz(*rows)
    assert {"posterior", "log_likelihood", "posterior_predictive"} <= set(tree.children)
    assert own.predict_proba_interval(rows[0]).shape == (60, 2, 2)
    assert len(own.sample(3)[0]) == 3


def test_an_own_posterior_serves_a_regression(rows):
    x, target = rows[0], rows[0] @ [1.0, -2.0] + 0.5
    own, exact = bg.LinearRegressor(inference=Importance()).fit(x, target), bg.LinearRegressor().fit(x, target)
    np.testing.assert_allclose(own.coef_, exact.coef_, atol=0.01)
    for one, other in zip(own.predict(x, return_std=True), exact.predict(x, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=0.05, atol=0.01)
    assert own.to_arviz().posterior["coefficients"].shape[-1] == 2


# -- class_weight ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier])
def test_class_weight_is_refused_with_a_word_on_priors(cls):
    with pytest.raises(TypeError, match=f"{cls.__name__} has no class_weight.*priors="):
        cls(class_weight="balanced")
    classifier = cls(priors=[0.2, 0.8])
    for again in (clone(classifier), copy.deepcopy(classifier), pickle.loads(pickle.dumps(classifier))):
        assert again.priors == [0.2, 0.8]
    assert list(inspect.signature(cls).parameters) == sorted(cls().get_params(), key=str(inspect.signature(cls)).find)


# -- what is public --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [bg, bg.inspection], ids=lambda module: module.__name__)
def test_dir_shows_what_is_public(module):
    assert dir(module) == sorted(module.__all__) and all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError):
        module.nothing_of_this_name  # noqa: B018


def test_a_question_is_a_method_or_a_function_not_both():
    names = {name for cls in below(Estimator) for name in dir(cls)}
    assert not names & set(bg.inspection.__all__)
    types = {name for name in bg.inspection.__all__ if isinstance(getattr(bg.inspection, name), type)}
    assert types == {"Watch"}  # the one question that is asked again and again, and has a state


# -- floors ----------------------------------------------------------------------------------------------------------

_TABLE = (ROOT / "docs/design.md").read_text(encoding="utf-8").split("## Floors")[1].split("\n## ")[0]
FLOOR = {  # of each room, from the table of docs/design.md, whose top line is the highest floor
    room: height
    for height, line in enumerate(reversed(re.findall(r"^ {4}(\S.*)$", _TABLE, re.MULTILINE)))
    for room in re.split(r", ", re.split(r" {2,}", line)[0])
}
MODULES = {
    ".".join(path.relative_to(ROOT / "bayesgen").with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "bayesgen").rglob("*.py"))
}


@functools.cache
def code(module) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@functools.cache
def walked(module) -> list[ast.AST]:
    return [*ast.walk(code(module))]


def imports(nodes) -> Iterator[str]:
    """The modules of this package that a piece of code imports, in functions too."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "bayesgen":
            where = node.module.removeprefix("bayesgen").lstrip(".")
            for alias in node.names:
                inner = f"{where}.{alias.name}".lstrip(".")
                yield inner if inner in MODULES else where or "__init__"
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("bayesgen") for alias in node.names), "say `from bayesgen import ...`"


def test_the_table_of_floors_has_every_room():
    assert {module.split(".")[0] for module in MODULES} == set(FLOOR)


def test_a_file_name_stands_in_one_room():
    files = [path.stem for path in MODULES.values() if path.stem != "__init__"]
    assert not {name for name in files if files.count(name) > 1}


def test_every_import_is_of_a_floor_below():
    pairs = [(m, other) for m in MODULES for other in imports(walked(m))]
    rooms = [(m, other, m.split(".")[0], other.split(".")[0]) for m, other in pairs]
    up = [f"{m} imports {other}" for m, other, here, there in rooms if here != there and FLOOR[there] >= FLOOR[here]]
    assert not up


@pytest.mark.parametrize(("room", "most"), [("", 94), ("tables", 55), ("sheets", 15)])
def test_arrows_between_rooms_and_within_them_do_not_grow(room, most):
    """An arrow is a room that imports another one, or a file of a room that imports another one of it."""
    inside = [module for module in MODULES if module.startswith(f"{room}.") or not room]
    place = int(bool(room))
    pairs = [(m, other) for m in inside for other in imports(walked(m)) if other in inside]
    arrows = {(m.split(".")[place], other.split(".")[place]) for m, other in pairs}
    assert len({(here, there) for here, there in arrows if here not in (there, "__init__", "__main__")}) <= most


def test_no_room_uses_a_private_name_of_another():
    """What another room needs is public; names of no room are those of other libraries."""
    trees = {module: walked(module) for module in MODULES}
    members: dict[str, set] = {}  # of classes, and what is set on them, by room
    for module, nodes in trees.items():
        inner = [item for node in nodes if isinstance(node, ast.ClassDef) for item in ast.walk(node)]
        stored = [n.attr for n in inner if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
        names = [n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        methods = [n.name for n in inner if isinstance(n, ast.FunctionDef)]
        members.setdefault(module.split(".")[0], set()).update(stored, names, methods)
    everything = set().union(*members.values())
    private = re.compile("_[a-z].*[^_]$")
    for module, nodes in trees.items():
        used = {n.attr for n in nodes if isinstance(n, ast.Attribute)} & everything - members[module.split(".")[0]]
        taken = (n.names for n in nodes if isinstance(n, ast.ImportFrom) and str(n.module).startswith("bayesgen"))
        used |= {alias.name for names in taken for alias in names}
        assert not [*filter(private.match, used)], module


def test_no_circle_within_a_room():
    """Imports at the head of modules make no circle anywhere."""
    graph = {}
    for module in MODULES:
        head = [n for n in code(module).body if isinstance(n, ast.ImportFrom)]
        graph[module] = {other for other in imports(head)} - {module}
    done: set[str] = set()

    def visit(module, path):
        assert module not in path, " -> ".join([*path, module])
        if module not in done:
            for other in graph[module]:
                visit(other, [*path, module])
            done.add(module)

    for module in graph:
        visit(module, [])


def test_nothing_asks_for_the_type_of_a_posterior_but_its_own_module_and_files():
    asks = re.compile(r"isinstance\([^)]*\b(ExactPosterior|ParameterDraws|PointEstimate|POSTERIORS|DRAWS)\b")
    found = [module for module, path in MODULES.items() if asks.search(path.read_text(encoding="utf-8"))]
    assert set(found) <= {"posterior.posterior"}, found
