"""The picture of docs/reliability.md, accuracy of densities against n: `python docs/accuracy.py` writes it as a PNG.

Log predictive densities after n rows, by bayesgen and by two log-gammas subtracted, against mpmath at 40 digits.
"""

from pathlib import Path

import matplotlib as mpl
import mpmath as mp
import numpy as np
from scipy.special import betaln, gammaln

from bayesgen.models import BetaBinomial, DirichletMultinomial, NormalInverseGamma, NormalInverseWishart
from bayesgen.numerics.special import log_beta_binomial, log_beta_ratio

HERE = Path(__file__).parent / "reliability"
SIZES = 2.0 ** np.arange(2, 54)


def student(n, log_gamma, log=np.log, number=float):
    """Log density at 1/2 of a Student-t with n degrees of freedom and scale 1."""
    dof = number(n)
    level = log_gamma((dof + 1) / 2) - log_gamma(dof / 2) - log(number(np.pi) * dof) / 2
    return level - (dof + 1) / 2 * log(1 + 1 / (4 * dof))


def student_vector(n, log_gamma, log=np.log, number=float):
    """The same of three columns at (1/2, 0, 0)."""
    dof = number(n)
    level = log_gamma((dof + 3) / 2) - log_gamma(dof / 2) - 3 * log(number(np.pi) * dof) / 2
    return level - (dof + 3) / 2 * log(1 + 1 / (4 * dof))


def binomial(n, log_beta):
    """Log probability of 3 heads in 7 tosses under Beta(n, 2n)."""
    return np.log(35.0) + log_beta(n + 3, 2 * n + 4) - log_beta(n, 2 * n)


def ours():
    """By name: (density of bayesgen after n rows, the plain formula, mpmath's)."""
    precise = {"log_gamma": mp.loggamma, "log": mp.log, "number": mp.mpf}

    def beta_exact(n):
        n = mp.mpf(n)
        rising = mp.mpf(1)
        for start, steps in ((n, 3), (2 * n, 4)):
            for i in range(steps):
                rising *= start + i
        for i in range(7):
            rising /= 3 * n + i
        return mp.log(35 * rising)

    def words_exact(n):
        n = mp.mpf(n)
        return mp.log(3 * n * n * (n + 1) / (3 * n * (3 * n + 1) * (3 * n + 2)))

    def words_plain(n):
        rising = gammaln(n + 2) - gammaln(n) + gammaln(n + 1) - gammaln(n)
        return np.log(3.0) + gammaln(3 * n) - gammaln(3 * n + 3) + rising

    return {
        "Student-t (normal-inverse-gamma)": (
            lambda n: NormalInverseGamma(0.0, 1.0, n / 2, n / 4).log_predictive([0.5])[0],
            lambda n: student(n, gammaln),
            lambda n: student(n, **precise),
        ),
        "three columns (normal-inverse-Wishart)": (
            lambda n: NormalInverseWishart([0, 0, 0], 1.0, n + 2, n / 2 * np.eye(3)).log_predictive([[0.5, 0, 0]])[0],
            lambda n: student_vector(n, gammaln),
            lambda n: student_vector(n, **precise),
        ),
        "beta-binomial": (
            lambda n: BetaBinomial(n, 2 * n, trials=7).log_predictive([3])[0],
            lambda n: binomial(n, betaln),
            beta_exact,
        ),
        "Dirichlet-multinomial": (
            lambda n: DirichletMultinomial([n, n, n]).log_predictive([[2, 1, 0]])[0],
            words_plain,
            words_exact,
        ),
    }


def accuracy():
    """Absolute error of each log density against n, with and without the differences of bayesgen."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained", sharey=True)
    with mp.workdps(40):
        for ax, (name, (density, plain, exact)) in zip(axes, ours().items(), strict=True):
            truth = [exact(n) for n in SIZES]
            for label, function, style in (("two log-gammas subtracted", plain, "C1."), ("bayesgen", density, "C0.")):
                pairs = zip(SIZES, truth, strict=True)
                error = [max(float(abs(mp.mpf(float(function(n))) - t)), 1e-18) for n, t in pairs]
                ax.loglog(SIZES, error, style, label=label)
                print(f"{name}, {label}: at most {max(error):.1e}, at 2^53 {error[-1]:.1e}")
            ax.set(title=name, xlabel="rows, to 2$^{53}$")
            ax.title.set_fontsize(10)
    axes[0].set_ylabel("error of a log density")
    axes[0].legend()
    return figure


def many_tosses(before, tosses, size=40):
    """Largest errors over ``size`` draws: of the log probability of heads in tosses after others, and of the evidence.

    The first is absolute, the second relative to the log evidence of the tosses in order, if that is beyond 1.
    """
    rng = np.random.default_rng(0)
    share = rng.uniform(0.05, 0.95, size)
    a, b = before * share, before * (1 - share)
    heads = np.floor(tosses * rng.beta(a, b))
    heads_error, evidence_error = [], []
    for point in np.transpose([a, b, heads, tosses - heads]):
        a, b, x, y = map(mp.mpf, point)
        log_beta = [mp.loggamma(p) + mp.loggamma(q) - mp.loggamma(p + q) for p, q in ((a, b), (a + x, b + y))]
        evidence = log_beta[1] - log_beta[0]
        coefficient = mp.loggamma(x + y + 1) - mp.loggamma(x + 1) - mp.loggamma(y + 1)
        heads_error.append(abs(mp.mpf(float(log_beta_binomial(*point))) - evidence - coefficient))
        evidence_error.append(abs(mp.mpf(float(log_beta_ratio(*point))) - evidence) / max(1, abs(evidence)))
    return float(max(heads_error)), float(max(evidence_error))


if __name__ == "__main__":
    mpl.use("Agg")
    accuracy().savefig(HERE / "accuracy.png", dpi=100)
    with mp.workdps(40):
        for before in (2, 1e4, 1e6, 1e8):
            for tosses in (10, 1e4, 1e6, 1e8, 1e12):
                heads, evidence = many_tosses(before, tosses)
                print(f"{tosses:.0e} tosses after {before:.0e}: heads {heads:.1e}, evidence relative {evidence:.1e}")
