"""Do the tests notice a wrong formula? `python tests/mutants.py [part of a name]` writes docs/reliability/mutants.csv.

Each mutant is one formula made wrong, in a copy of the package beside a copy of the tests; the fast tests that speak of
it must fail. `python tests/mutants.py --check` only makes every mutant, and runs nothing.

A formula is found by what it is, not by where it is written: a function or method by its name, wherever in the package
it stands or is inherited from, and in it the one expression (or statement) of a shape. In a shape `_a`, `_b`, ... stand
for any expression and are kept; so neither a new layout, a moved file nor another name of a local variable matters. A
shape that fits nowhere, or in two places, is an error.
"""

import ast
import contextlib
import copy
import csv
import functools
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).parents[1]
PACKAGE = HOME / "bayesgen"
MODELS = "test_models test_by_integration test_hard_values test_model_errors"
# Which tests speak of it: files, and models of the laws. Left out is what compiles for long and finds no wrong formula.
SUITES = {
    "statistics": ("test_properties test_kernels", "nothing"),
    "scalars": (f"{MODELS} test_properties", "normal- or toronto- or isotropic-"),
    "vectors": (f"{MODELS} test_properties", "plane- or (full and shared-)"),
    "bits": (MODELS, "coins-"),
    "categories": (MODELS, "dice-"),
    "counts": ("test_counts", "calls- or heads or tosses- or bag"),
    "regression": ("test_linear_regression test_line_statistics", "linear"),
    "separation": ("test_laws", "separation-"),
    "classes": ("test_properties test_schema", "nothing"),
    "draws": (f"{MODELS} test_inspection", "nothing"),
    "decisions": ("test_decision test_evaluation", "nothing"),
    "calibration": ("test_calibration", "nothing"),
    "sharpening": ("test_sharpening", "nothing"),
}
SLOW = ("nuts", "row_program", "predictive_program", "pytree", "dims", "exact_posteriors", "slow_chains")
SLOW += ("own_is_calibrated", "dataframe", "array_and")


@dataclass(frozen=True)
class Mutant:
    """A fault in words, the function, the shapes of the right and the wrong formula, and the tests."""

    what: str
    where: str
    right: str
    wrong: str
    suite: str


MUTANTS = [
    Mutant("merging forgets the distance of the means", "Moments._with",
           "_s * self.n * _h", "0.0 * self.n * _h", "statistics"),
    Mutant("merging weighs the mean by the wrong side", "Moments._with",
           "np.divide(other.n, _n, out=_o, where=_w)", "np.divide(self.n, _n, out=_o, where=_w)", "statistics"),
    Mutant("taking away adds the distance of the means", "Moments._with",
           "_s * self.n * _h", "self.n * _h", "statistics"),
    Mutant("scatter about the running mean, not corrected", "_add_scalars",
           "_m @ _z - _t * _s", "_m @ _z", "statistics"),
    Mutant("scatter of vectors, not corrected", "_add_vectors",
           "_z.T @ _z - _t", "_z.T @ _z", "vectors"),
    Mutant("weights of vectors squared", "_add_vectors",
           "_z *= np.sqrt(_w)[:, None]", "_z *= _w[:, None]", "vectors"),
    Mutant("pooled variance by N, not N - K", "Moments.pooled",
           "_t - (_n > 0).sum(0)", "_t", "classes"),
    Mutant("normal-inverse-gamma: squares without kappa", "NormalInverseGamma._steps",
           "0.5 * _n / (1 + _n / self.kappa) * _d**2", "0.5 * _n * _d**2", "scalars"),
    Mutant("normal-inverse-gamma: no squares of the mean", "NormalInverseGamma._steps",
           "0.5 * _s.scatter + _m", "0.5 * _s.scatter", "scalars"),
    Mutant("normal-inverse-gamma: alpha + n", "NormalInverseGamma._steps",
           "(_n / 2, 0.5 * _s.scatter + _m)", "(_n, 0.5 * _s.scatter + _m)", "scalars"),
    Mutant("normal-inverse-gamma: mean of the rows", "NormalInverseGamma._steps",
           "_n / (self.kappa + _n)", "1.0 + 0.0 * _n", "scalars"),
    Mutant("normal-inverse-gamma: predictive without the doubt of the mean", "NormalInverseGamma.squared_scale",
           "self.beta / self.alpha * (1 + 1 / self.kappa)", "self.beta / self.alpha", "scalars"),
    Mutant("normal-inverse-gamma: mode of the variance alone", "NormalInverseGamma.mode",
           "self.alpha + 1 + _m / 2", "self.alpha + 1", "scalars"),
    Mutant("normal-inverse-gamma: evidence with kappa upside down", "NormalInverseGamma.log_evidence_terms",
           "_x.log1p(_s.n / self.kappa)", "-_x.log1p(_s.n / self.kappa)", "scalars"),
    Mutant("normal-inverse-gamma: draws without kappa", "NormalInverseGamma.sample_parameters",
           "(_v / self.kappa) ** 0.5", "_v**0.5", "scalars"),
    Mutant("known variance: posterior of one row", "NormalKnownVariance.update",
           "1 / self.sd**2 + _s.n / self.noise_sd**2", "1 / self.sd**2 + 1 / self.noise_sd**2", "scalars"),
    Mutant("known variance: predictive without the noise", "NormalKnownVariance._fast_predictive",
           "self.sd**2 + self.noise_sd**2", "self.sd**2", "scalars"),
    Mutant("Gaussian: slope upside down", "Gaussian.natural_parameters",
           "[_p, _d / _v, -0.5 / _v]", "[_p, -_d / _v, -0.5 / _v]", "scalars"),
    Mutant("Gaussian: determinant left out", "Gaussian.natural_parameters",
           "LOG_2PI + _x.log(_v) + _d * _d / _v", "LOG_2PI + _d * _d / _v", "scalars"),
    Mutant("normal-inverse-Wishart: nu + n - 1", "NormalInverseWishart.update",
           "self.nu + self._tie(_n)", "self.nu + self._tie(_n - 1)", "vectors"),
    Mutant("normal-inverse-Wishart: degrees of freedom of the predictive", "NormalInverseWishart.dof",
           "self.nu - _d + 1", "self.nu - _d + 2", "vectors"),
    Mutant("normal-inverse-Wishart: squares without kappa", "NormalInverseWishart.update",
           "(self.kappa * _n / _k)[..., None, None]", "_n[..., None, None]", "vectors"),
    Mutant("normal-inverse-Wishart: evidence of one dimension", "NormalInverseWishart.log_evidence_terms",
           "-0.5 * _d * (_k + _n)", "-0.5 * (_k + _n)", "vectors"),
    Mutant("normal-inverse-Wishart: mode as if nothing were shared", "NormalInverseWishart.mode",
           "self.nu + _d + 1 + _m", "self.nu + _d + 2", "vectors"),
    Mutant("normal-inverse-Wishart: volume of the Cholesky factor", "NormalInverseWishart.log_abs_det_jacobian",
           "np.arange(_d, 0, -1)", "np.arange(_d - 1, -1, -1)", "vectors"),
    Mutant("normal-inverse-Wishart: Bartlett's degrees of freedom", "NormalInverseWishart.sample_parameters",
           "self.nu[..., None] + _i - _d + 1", "self.nu[..., None] - _i", "vectors"),
    Mutant("Gaussian vector: off-diagonal precision counted once", "_natural_parameters",
           "np.where(_r == _c, -0.5, -1.0)", "np.where(_r == _c, -0.5, -0.5)", "vectors"),
    Mutant("Gaussian vector: EM without the conditional variance", "_complete",
           "_c @ _r.mT + _n * _v", "_c @ _r.mT", "vectors"),
    Mutant("Gaussian vector: maximum likelihood by n - 1", "GaussianVector.ml",
           "_s / np.asarray(_n)[..., None, None]", "_s / (np.asarray(_n) - 1)[..., None, None]", "vectors"),
    Mutant("separation: volume of the correlations", "SeparationFull.log_abs_det_jacobian",
           "np.arange(_d - 1, -1, -1)", "np.arange(_d, 0, -1)", "separation"),
    Mutant("coin: heads are tails", "BetaBernoulli.update",
           "revised(self, a=self.a + _s, b=self.b + _f)", "revised(self, a=self.a + _f, b=self.b + _s)", "bits"),
    Mutant("coin: mode is the mean", "BetaBernoulli.mode",
           "_u / np.where(_f, 1, _u + _d)", "self.a / np.where(_f, 1, self.a + self.b)", "bits"),
    Mutant("die: evidence without the total", "log_evidence_of_counts",
           "_r - log_gamma_ratio(_t, _n)", "_r", "categories"),
    Mutant("die: draws without the boost", "log_gammas",
           "np.log1p(_u) / shape_parameter", "np.log1p(_u)", "categories"),
    Mutant("die: mode without the - 1", "DirichletCategorical.mode",
           "self.alpha - 1", "self.alpha", "categories"),
    Mutant("counts: rate forgets the rows", "GammaPoisson.update",
           "self.rate + _n", "self.rate", "counts"),
    Mutant("counts: evidence without 1/x!", "GammaPoisson.log_evidence",
           "_t + _s.base", "_t", "counts"),
    Mutant("counts: predictive is a Poisson's", "GammaPoisson._fast_predictive",
           "_a * np.log1p(1 / _b)", "_a / _b", "counts"),
    Mutant("counts: mode is the mean", "GammaPoisson.mode",
           "(self.concentration - 1) / self.rate", "self.concentration / self.rate", "counts"),
    Mutant("binomial: evidence without the coefficients", "BetaBinomial.log_evidence",
           "_e + _s.base", "_e", "counts"),
    Mutant("counts: a second event is as likely as a third", "LogWays._grown",
           "np.log((self.a + (_x - 1)) / _x)", "np.log((self.a + _x) / _x)", "counts"),
    Mutant("counts: predictive without 1/x! above 1", "LogWays._grown",
           "np.log((self.a + (_x - 1)) / _x)", "np.log(self.a + (_x - 1))", "counts"),
    Mutant("counts: large counts count twice", "LogWays.__call__",
           "cell[aside] = cells - 1", "cell[aside] = 0", "counts"),
    Mutant("bag: predictive of any length", "DirichletMultinomial._fast_predictive",
           "_w(_x) - _f(_a.sum(1), _l(_x))", "_w(_x)", "counts"),
    Mutant("bag: evidence without the coefficients", "DirichletMultinomial.log_evidence",
           "_e + _s.base", "_e", "counts"),
    Mutant("regression: alpha + n", "LinearRegression.update",
           "self.alpha + _s.n / 2", "self.alpha + _s.n", "regression"),
    Mutant("regression: evidence with the determinants upside down", "LinearRegression.log_evidence",
           "_f.diagonal() / self.factor.diagonal()", "self.factor.diagonal() / _f.diagonal()", "regression"),
    Mutant("regression: predictive as if the weights were known", "LinearRegression.log_predictive",
           "LOG_2PI + _x.log(self.beta) + _l", "LOG_2PI + _x.log(self.beta)", "regression"),
    Mutant("regression: pieces forget the distance of their means", "LineStatistics.of",
           "np.sqrt(_n / (_n + _s) * _s) * _d", "0.0 * _d", "regression"),
    Mutant("regression: merging forgets the distance of the means", "LineStatistics._with",
           "np.sqrt(self.n / _n * other.n) * _d", "0.0 * _d", "regression"),
    Mutant("regression: weights of rows squared", "LineStatistics.of",
           "_r *= np.sqrt(_w)", "_r *= _w", "regression"),
    Mutant("regression: rows taken out by the wrong share", "LineStatistics.without",
           "np.sqrt(self.n / _n * gone.n)", "np.sqrt(gone.n)", "regression"),
    Mutant("classes: predictive without the class prior", "ClassConditional.log_predictive",
           "namespace(_m).log(_m)[:, None]", "0 * namespace(_m).log(_m)[:, None]", "classes"),
    Mutant("average: the class prior is sharpened too", "sharpened",
           "prior * (probability / prior) ** _e", "probability ** _e", "sharpening"),
    Mutant("draws: a sum, not a mean", "mean_density",
           "np.log(_s / _n)", "np.log(_s)", "draws"),
    Mutant("draws: pieces not brought to one anchor", "mean_density",
           "_t[_i] * np.exp(_o - _a)", "_t[_i]", "draws"),
    Mutant("far rows lose their digits", "FittedModel._joint",
           "_j -= _t[:, None]", "_j -= 0.0", "classes"),
    Mutant("decision: miss and false alarm exchanged", "threshold",
           "_f / (_f + _m)", "_m / (_f + _m)", "decisions"),
    Mutant("decision: rejects at equal loss", "decide",
           "outcomes.finite(_c) < _l", "outcomes.finite(_c) <= _l", "decisions"),
    Mutant("Brier score halved", "squared_loss",
           "np.square(_d).sum(axis=1)", "np.square(_d).mean(axis=1)", "decisions"),
    Mutant("calibration: lower tail alone", "_tails",
           "np.minimum(1.0, 2 * np.minimum(_b, _a))", "np.minimum(1.0, 2 * _b)", "calibration"),
    Mutant("calibration: the true rank is counted among the draws", "_p_value",
           "1 / (_d + 1 - _j)", "1 / (_d + 2 - _j)", "calibration"),
]  # fmt: skip

# -- finding and changing a formula ------------------------------------------------------------------------------------


@functools.cache
def sources():
    """The modules of the package, parsed: path -> tree."""
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def definitions(name, kinds):
    """Return each (path, node) of a module of the package that defines ``name`` at its top level."""
    nodes = ((path, node) for path, tree in sources().items() for node in tree.body)
    return [(path, node) for path, node in nodes if isinstance(node, kinds) and node.name == name]


def find(where):
    """The path and the node of a function, or of a method, which a base class may define."""
    owner, _, method = where.rpartition(".")
    found = definitions(owner or where, ast.ClassDef if owner else ast.FunctionDef)
    if len(found) != 1:
        raise ValueError(f"{where}: the package defines {owner or where} {len(found)} times")
    path, node = found[0]
    if not owner:
        return path, node
    for function in node.body:
        if isinstance(function, ast.FunctionDef) and function.name == method:
            return path, function
    for base in node.bases:
        if definitions(ast.unparse(base), ast.ClassDef):
            with contextlib.suppress(LookupError):
                return find(f"{ast.unparse(base)}.{method}")
    raise LookupError(f"{where}: neither {owner} nor a base of it defines {method}")


def parse(text):
    """An expression, or a statement, as a tree."""
    statement = ast.parse(text).body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement


def is_wild(node):
    """Return True if a name stands for any expression: `_a`, but not `_natural_parameters`."""
    return isinstance(node, ast.Name) and len(node.id) == 2 and node.id[0] == "_"


def fits(shape, node, bound):
    """Return True if a tree has a shape; put the expressions for `_a`, `_b`, ... into ``bound``."""
    if is_wild(shape):
        return isinstance(node, ast.expr) and ast.unparse(bound.setdefault(shape.id, node)) == ast.unparse(node)
    if isinstance(shape, list) and isinstance(node, list):
        return len(shape) == len(node) and all(fits(a, b, bound) for a, b in zip(shape, node, strict=True))
    if not isinstance(shape, ast.AST):
        return shape == node
    if type(shape) is not type(node):
        return False
    fields = (field for field in shape._fields if field != "ctx")
    return all(fits(getattr(shape, field, None), getattr(node, field, None), bound) for field in fields)


class Filled(ast.NodeTransformer):
    """Puts into a shape what its wild names stand for."""

    def __init__(self, bound):
        self.bound = bound

    def visit_Name(self, node):
        return copy.deepcopy(self.bound[node.id]) if is_wild(node) else node


class Swapped(ast.NodeTransformer):
    """Puts one tree in the place of another."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else super().visit(node)


def mutate(mutant):
    """The module that changes, as its path, and its new text."""
    path, function = find(mutant.where)
    shape, places = parse(mutant.right), []
    for node in ast.walk(function):
        bound = {}
        if fits(shape, node, bound):
            places.append((node, bound))
    if len(places) != 1:
        raise ValueError(f"{mutant.what}: {len(places)} places of {mutant.where} have the shape {mutant.right!r}")
    place, bound = places[0]
    twins = {}
    tree = copy.deepcopy(sources()[path], twins)
    wrong = Filled(bound).visit(parse(mutant.wrong))
    text = ast.unparse(ast.fix_missing_locations(Swapped(twins[id(place)], wrong).visit(tree)))
    compile(text, str(path), "exec")
    return path, text


# -- do the tests notice? ----------------------------------------------------------------------------------------------


def killer(folder: Path, suite: str) -> tuple[str, float]:
    """The test that fails first, or nothing; and the seconds."""
    files, laws = SUITES[suite]
    files = files.split()
    chosen = " or ".join([*(f for f in files if f != "test_laws"), f"(test_laws and ({laws}))"])
    selection = f"({chosen}) and not ({' or '.join(SLOW)})"
    command = ["pytest", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-k", selection]
    paths = [str(path) for name in dict.fromkeys([*files, "test_laws"]) for path in folder.glob(f"tests/**/{name}.py")]
    start = time.time()
    result = subprocess.run([sys.executable, "-m", *command, *paths], cwd=folder, capture_output=True, text=True)
    if result.returncode in (4, 5):
        raise ValueError(f"no tests are chosen by {selection!r}")
    failed = [
        line.split(" - ")[0].split("::")[-1]
        for line in result.stdout.splitlines()
        if line.startswith(("FAILED", "ERROR"))
    ]
    if result.returncode not in (0, 1):
        failed = failed or [f"pytest ended with {result.returncode}"]
    return (failed or [""])[0], time.time() - start


def main(wanted=""):
    if wanted == "--check":
        for mutant in MUTANTS:
            mutate(mutant)
        print(f"{len(MUTANTS)} mutants can be made")
        return 0
    table = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("bayesgen", "tests"):
            shutil.copytree(HOME / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(HOME / "pyproject.toml", folder)
        if not wanted:
            for suite in SUITES:
                failed, seconds = killer(folder, suite)
                print(f"{suite}: {seconds:.0f} s unchanged{failed and f', FAILED: {failed}'}", flush=True)
        for mutant in MUTANTS:
            if wanted in mutant.what:
                path, text = mutate(mutant)
                copied = folder / path.relative_to(HOME)
                copied.write_text(text)
                failed, seconds = killer(folder, mutant.suite)
                copied.write_text(path.read_text())
                table.append([mutant.what, mutant.where, "killed" if failed else "survived", failed])
                print(f"{table[-1][2]:8s} {seconds:4.0f} s  {mutant.what}: {failed}", flush=True)
    report(table)
    return 0 if all(line[2] == "killed" for line in table) else 1


def report(table):
    """Write the lines of ``table`` in place of older ones of the same mutants."""
    path = HOME / "docs" / "reliability" / "mutants.csv"
    lines = {}
    if path.exists():
        with path.open(newline="") as file:
            lines = {line[0]: line for line in csv.reader(file)}
    lines |= {line[0]: line for line in table}
    lines = [lines[mutant.what] for mutant in MUTANTS if mutant.what in lines]
    killed = sum(line[2] == "killed" for line in lines)
    print(f"{killed} of {len(lines)} killed")
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["mutant", "where", "result", "by"], *lines])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
