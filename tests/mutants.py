"""Do the tests notice a wrong formula? `python tests/mutants.py [part of a name]` writes docs/reliability/mutants.csv.

Each mutant is one formula made wrong, in a copy of the package beside a copy of the tests; the fast tests that speak of
it must fail.
"""

import csv
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOME = Path(__file__).parents[1]
MODELS = "models/"
# Which tests speak of it: files, and models of the laws. Left out is what compiles for long and finds no wrong formula.
SUITES = {
    "statistics": ("test_properties test_kernels", "nothing"),
    "scalars": ("test_models test_properties", "normal- or toronto- or isotropic-"),
    "vectors": ("test_models test_properties", "plane- or (full and shared-)"),
    "bits": ("test_models", "coins-"),
    "categories": ("test_models", "dice-"),
    "counts": ("test_counts", "nothing"),
    "regression": ("test_linear_regression", "nothing"),
    "separation": ("test_laws", "separation-"),
    "classes": ("test_properties test_schema", "nothing"),
    "draws": ("test_models test_inspection", "nothing"),
    "decisions": ("test_decision test_evaluation", "nothing"),
    "calibration": ("test_calibration", "nothing"),
}
SLOW = (
    "nuts",
    "row_program",
    "predictive_program",
    "pytree",
    "dims",
    "exact_posteriors",
    "slow_chains",
    "own_is_calibrated",
    "dataframe",
    "array_and",
)
# what is wrong, the file, the text, the text in its place, the tests
MUTANTS = [
    (
        "merging forgets the distance of the means",
        "statistics.py",
        "self.scatter + sign * other.scatter + sign * between * square",
        "self.scatter + sign * other.scatter",
        "statistics",
    ),
    (
        "merging weighs the mean by the wrong side",
        "statistics.py",
        "share = np.divide(other.n, n, out=np.zeros_like(n), where=n > 0)",
        "share = np.divide(self.n, n, out=np.zeros_like(n), where=n > 0)",
        "statistics",
    ),
    (
        "taking away adds the distance of the means",
        "statistics.py",
        "sign * other.scatter + sign * between * square",
        "sign * other.scatter + between * square",
        "statistics",
    ),
    (
        "scatter about the running mean, not corrected",
        "statistics.py",
        "member @ z - total * step",
        "member @ z",
        "statistics",
    ),
    (
        "scatter of vectors, not corrected",
        "statistics.py",
        "z.T @ z - total[:, None] * (total / n[k])",
        "z.T @ z",
        "vectors",
    ),
    ("weights of vectors squared", "statistics.py", "z *= np.sqrt(w)[:, None]", "z *= w[:, None]", "vectors"),
    (
        "pooled variance by N, not N - K",
        "statistics.py",
        "np.divide(within, total.n - present,",
        "np.divide(within, total.n,",
        "classes",
    ),
    (
        "normal-inverse-gamma: squares without kappa",
        MODELS + "normal_inverse_gamma.py",
        "0.5 * self.kappa * n / kappa * delta**2",
        "0.5 * n * delta**2",
        "scalars",
    ),
    (
        "normal-inverse-gamma: no squares of the mean",
        MODELS + "normal_inverse_gamma.py",
        "0.5 * statistics.scatter + 0.5 * self.kappa * n / kappa * delta**2",
        "0.5 * statistics.scatter",
        "scalars",
    ),
    (
        "normal-inverse-gamma: alpha + n",
        MODELS + "normal_inverse_gamma.py",
        "self.tie(n / 2)",
        "self.tie(n)",
        "scalars",
    ),
    (
        "normal-inverse-gamma: mean of the rows",
        MODELS + "normal_inverse_gamma.py",
        "self.mean + n / kappa * delta",
        "self.mean + delta",
        "scalars",
    ),
    (
        "normal-inverse-gamma: predictive without the doubt of the mean",
        MODELS + "normal_inverse_gamma.py",
        "self.beta * (self.kappa + 1) / (self.alpha * self.kappa)",
        "self.beta / self.alpha",
        "scalars",
    ),
    (
        "normal-inverse-gamma: mode of the variance alone",
        MODELS + "normal_inverse_gamma.py",
        "self.alpha + 1 + means / 2",
        "self.alpha + 1",
        "scalars",
    ),
    (
        "normal-inverse-gamma: evidence with kappa upside down",
        MODELS + "normal_inverse_gamma.py",
        "np.log(self.kappa / p.kappa)",
        "np.log(p.kappa / self.kappa)",
        "scalars",
    ),
    (
        "normal-inverse-gamma: draws without kappa",
        MODELS + "normal_inverse_gamma.py",
        "rng.normal(self.mean, (variance / self.kappa) ** 0.5, shape)",
        "rng.normal(self.mean, variance ** 0.5, shape)",
        "scalars",
    ),
    (
        "known variance: posterior of one row",
        MODELS + "normal_known_variance.py",
        "1 / self.sd**2 + statistics.n / self.noise_sd**2",
        "1 / self.sd**2 + 1 / self.noise_sd**2",
        "scalars",
    ),
    (
        "known variance: predictive without the noise",
        MODELS + "normal_known_variance.py",
        "self.beside(self.sd**2 + self.noise_sd**2, x)",
        "self.beside(self.sd**2, x)",
        "scalars",
    ),
    (
        "Gaussian: slope upside down",
        MODELS + "gaussian.py",
        "d / variance, -0.5 / variance]",
        "-d / variance, -0.5 / variance]",
        "scalars",
    ),
    (
        "Gaussian: determinant left out",
        MODELS + "gaussian.py",
        "(LOG_2PI + xp.log(variance) + d * d / variance)",
        "(LOG_2PI + d * d / variance)",
        "scalars",
    ),
    (
        "normal-inverse-Wishart: nu + n - 1",
        MODELS + "normal_inverse_wishart.py",
        "self.nu + self.tie(n), self.scale",
        "self.nu + self.tie(n - 1), self.scale",
        "vectors",
    ),
    (
        "normal-inverse-Wishart: degrees of freedom of the predictive",
        MODELS + "normal_inverse_wishart.py",
        "self.nu - self.mean.shape[-1] + 1",
        "self.nu - self.mean.shape[-1] + 2",
        "vectors",
    ),
    (
        "normal-inverse-Wishart: squares without kappa",
        MODELS + "normal_inverse_wishart.py",
        "(self.kappa * n / kappa)[..., None, None]",
        "n[..., None, None]",
        "vectors",
    ),
    (
        "normal-inverse-Wishart: evidence of one dimension",
        MODELS + "normal_inverse_wishart.py",
        "means = 0.5 * dim * (",
        "means = 0.5 * (",
        "vectors",
    ),
    (
        "normal-inverse-Wishart: mode as if nothing were shared",
        MODELS + "normal_inverse_wishart.py",
        "self.nu + dim + 1 + means",
        "self.nu + dim + 2",
        "vectors",
    ),
    (
        "normal-inverse-Wishart: volume of the Cholesky factor",
        MODELS + "normal_inverse_wishart.py",
        "np.arange(dim, 0, -1) + np.log(2)",
        "np.arange(dim - 1, -1, -1) + np.log(2)",
        "vectors",
    ),
    (
        "normal-inverse-Wishart: Bartlett's degrees of freedom",
        MODELS + "normal_inverse_wishart.py",
        "self.nu[..., None] + diagonal - dim + 1",
        "self.nu[..., None] - diagonal",
        "vectors",
    ),
    (
        "Gaussian vector: off-diagonal precision counted once",
        MODELS + "gaussian_vector.py",
        "np.where(rows == cols, -0.5, -1.0)",
        "np.where(rows == cols, -0.5, -0.5)",
        "vectors",
    ),
    (
        "Gaussian vector: EM without the conditional variance",
        MODELS + "gaussian_vector.py",
        "cross @ regress.mT + part.n[..., None, None] * rest",
        "cross @ regress.mT",
        "vectors",
    ),
    (
        "Gaussian vector: maximum likelihood by n - 1",
        MODELS + "gaussian_vector.py",
        "covariance = scatter / np.asarray(count)[..., None, None]",
        "covariance = scatter / (np.asarray(count) - 1)[..., None, None]",
        "vectors",
    ),
    (
        "separation: volume of the correlations",
        MODELS + "separation.py",
        "np.arange(dim - 1, -1, -1)",
        "np.arange(dim, 0, -1)",
        "separation",
    ),
    (
        "coin: heads are tails",
        MODELS + "beta_bernoulli.py",
        "BetaBernoulli(self.a + ones, self.b + zeros)",
        "BetaBernoulli(self.a + zeros, self.b + ones)",
        "bits",
    ),
    (
        "coin: mode is the mean",
        MODELS + "beta_bernoulli.py",
        "(self.a - 1) / np.where(flat, 1, self.a + self.b - 2)",
        "self.a / np.where(flat, 1, self.a + self.b)",
        "bits",
    ),
    (
        "die: evidence without the total",
        MODELS + "dirichlet_categorical.py",
        "gammaln(total + counts.sum(-1)) - gammaln(total)",
        "gammaln(total)",
        "categories",
    ),
    (
        "die: draws without the boost",
        MODELS + "dirichlet_categorical.py",
        "np.log1p(-rng.random(shape)) / self.alpha",
        "np.log1p(-rng.random(shape))",
        "categories",
    ),
    (
        "die: mode without the - 1",
        MODELS + "dirichlet_categorical.py",
        "excess = self.alpha - 1",
        "excess = self.alpha",
        "categories",
    ),
    ("counts: rate forgets the rows", MODELS + "gamma_poisson.py", "self.rate + rows)", "self.rate)", "counts"),
    (
        "counts: evidence without 1/x!",
        MODELS + "gamma_poisson.py",
        "float(terms.sum() + statistics.base)",
        "float(terms.sum())",
        "counts",
    ),
    ("counts: predictive is a Poisson's", MODELS + "gamma_poisson.py", "a * np.log1p(1 / b)", "a / b", "counts"),
    (
        "counts: mode is the mean",
        MODELS + "gamma_poisson.py",
        '{"mean": (self.concentration - 1) / self.rate}',
        '{"mean": self.concentration / self.rate}',
        "counts",
    ),
    (
        "binomial: evidence without the coefficients",
        MODELS + "beta_binomial.py",
        "super().log_evidence(statistics) + statistics.base",
        "super().log_evidence(statistics)",
        "counts",
    ),
    (
        "counts: a second event is as likely as a third",
        MODELS + "counts.py",
        "np.log1p((i - 1) / own)",
        "np.log1p(i / own)",
        "counts",
    ),
    (
        "counts: predictive without 1/x! above 1",
        MODELS + "counts.py",
        "np.log1p((i - 1) / own) - np.log(i)",
        "np.log1p((i - 1) / own)",
        "counts",
    ),
    (
        "counts: large counts count twice",
        MODELS + "counts.py",
        "small[above[many]] = 0",
        "small[above[many]] = 1",
        "counts",
    ),
    (
        "bag: predictive of any length",
        MODELS + "dirichlet_multinomial.py",
        "ways(counts) - _of_lengths(own.sum(1), counts.sum(1))",
        "ways(counts)",
        "counts",
    ),
    (
        "bag: evidence without the coefficients",
        MODELS + "dirichlet_multinomial.py",
        "super().log_evidence(statistics) + statistics.base",
        "super().log_evidence(statistics)",
        "counts",
    ),
    (
        "regression: alpha + n",
        MODELS + "linear_regression.py",
        "self.alpha + statistics.n / 2",
        "self.alpha + statistics.n",
        "regression",
    ),
    (
        "regression: evidence with the determinants upside down",
        MODELS + "linear_regression.py",
        "np.diagonal(p.factor) / np.diagonal(self.factor)",
        "np.diagonal(self.factor) / np.diagonal(p.factor)",
        "regression",
    ),
    (
        "regression: predictive without the noise",
        MODELS + "linear_regression.py",
        "self.beta / self.alpha * (1 + spread)\n        constant",
        "self.beta / self.alpha * spread\n        constant",
        "regression",
    ),
    (
        "classes: predictive without the class prior",
        MODELS + "class_conditional.py",
        "result = np.log(self.classes.mean)",
        "result = 0 * np.log(self.classes.mean)",
        "classes",
    ),
    ("draws: a sum, not a mean", "posterior.py", "np.log(s / count)", "np.log(s)", "draws"),
    (
        "draws: pieces not brought to one anchor",
        "posterior.py",
        "totals[i] * np.exp(tops[i] - anchor)",
        "totals[i]",
        "draws",
    ),
    ("far rows lose their digits", "classifier.py", "joint -= top[:, None]", "joint -= 0.0", "classes"),
    (
        "decision: miss and false alarm exchanged",
        "decision.py",
        "float(false_alarm / (false_alarm + miss))",
        "float(miss / (false_alarm + miss))",
        "decisions",
    ),
    (
        "decision: rejects at equal loss",
        "decision.py",
        "_finite(reject_cost) < least",
        "_finite(reject_cost) <= least",
        "decisions",
    ),
    (
        "Brier score halved",
        "decision.py",
        "np.square(np.eye(q.shape[1])[t] - q).sum(axis=1)",
        "np.square(np.eye(q.shape[1])[t] - q).mean(axis=1)",
        "decisions",
    ),
    (
        "calibration: lower tail alone",
        "calibration.py",
        "np.minimum(1.0, 2 * np.minimum(below, above))",
        "np.minimum(1.0, 2 * below)",
        "calibration",
    ),
    (
        "calibration: the true rank is counted among the draws",
        "calibration.py",
        "share = 1 / (draws + 1 - j)",
        "share = 1 / (draws + 2 - j)",
        "calibration",
    ),
]


def killer(folder: Path, suite: str) -> tuple[str, float]:
    """The test that fails first, or nothing; and the seconds."""
    files, laws = SUITES[suite]
    files = files.split()
    chosen = " or ".join([*(f for f in files if f != "test_laws"), f"(test_laws and ({laws}))"])
    command = [
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-k",
        f"({chosen}) and not ({' or '.join(SLOW)})",
    ]
    paths = [f"tests/{name}.py" for name in dict.fromkeys([*files, "test_laws"])]
    start = time.time()
    result = subprocess.run([sys.executable, "-m", *command, *paths], cwd=folder, capture_output=True, text=True)
    failed = [
        line.split(" - ")[0].split("::")[-1]
        for line in result.stdout.splitlines()
        if line.startswith(("FAILED", "ERROR"))
    ]
    if result.returncode not in (0, 1):
        failed = failed or [f"pytest ended with {result.returncode}"]
    return (failed or [""])[0], time.time() - start


def main(wanted=""):
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
        for what, file, old, new, suite in MUTANTS:
            if wanted in what:
                path = folder / "bayesgen" / file
                text = path.read_text()
                if text.count(old) < 1:
                    raise ValueError(f"{what}: {file} does not hold {old!r}")
                path.write_text(text.replace(old, new, 1))
                failed, seconds = killer(folder, suite)
                path.write_text(text)
                table.append([what, file, "killed" if failed else "survived", failed])
                print(f"{table[-1][2]:8s} {seconds:4.0f} s  {what}: {failed}", flush=True)
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
    lines = [lines[mutant[0]] for mutant in MUTANTS if mutant[0] in lines]
    killed = sum(line[2] == "killed" for line in lines)
    print(f"{killed} of {len(lines)} killed")
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["mutant", "file", "result", "by"], *lines])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
