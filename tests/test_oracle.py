"""Every model x inference x {complete, missing at prediction, missing at fit}, against `oracle`: SciPy alone."""

import functools
import itertools

import numpy as np
import oracle
import pytest
from oracle import Bernoulli, Binomial, Categorical, Classifier, Gaussian, KnownVariance, Multinomial, Poisson
from refusals import refuses

import bayesgen as bg
from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    GaussianDiscriminant,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownVariance,
)

ALPHA = np.array([2.0, 1.5])
CLASSES = DirichletCategorical(ALPHA, ["no", "yes"])
CODES = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
GAP = np.nan
SAMPLER = bg.NUTS(num_samples=1500, num_warmup=500, num_chains=2)
INFERENCES = ["ml", "map", "exact", "nuts"]

BITS = np.array([[1, 0], [1, 1], [0, 1], [1, 0], [0, 0], [0, 1], [1, 0], [0, 0], [1, 1]], float)
LABELS = np.array([[0], [2], [0], [1], [2], [2], [1], [0], [2]], float)
COUNTS = np.array([[2, 1], [4, 0], [3, 2], [1, 1], [6, 3], [4, 5], [7, 2], [3, 4], [5, 3]], float)
HEADS = np.array([[1, 4], [2, 3], [0, 5], [2, 4], [4, 1], [3, 2], [5, 1], [3, 0], [4, 2]], float)
WORDS = np.array(
    [[2, 0, 1], [1, 1, 0], [3, 0, 0], [0, 1, 1], [0, 2, 1], [1, 3, 0], [0, 1, 2], [0, 0, 1], [1, 2, 2]], float
)
PLANE = np.array(
    [[0.2, 1.0], [1.1, 1.9], [-0.4, 0.6], [0.9, 0.5], [2.0, 1.5], [3.1, 2.9], [2.4, 0.8], [1.2, 1.4], [2.8, 2.2]]
)


def flaw(rows, *places):
    rows = rows.copy()
    for place in places:
        rows[place] = GAP
    return rows


# name -> our leaf, the oracle's, rows
NAIVE = {
    "Bernoulli": (BetaBernoulli([2.0, 1.5], 2.0), Bernoulli([2.0, 1.5], [2.0, 2.0]), BITS),
    "categorical": (DirichletCategorical([1.5, 2.0, 1.2]), Categorical([1.5, 2.0, 1.2]), LABELS),
    "Gaussian mean": (
        NormalKnownVariance([1.0, 1.5], [1.5, 1.0], [1.0, 0.8]),
        KnownVariance([1.0, 1.5], [1.5, 1.0], [1.0, 0.8]),
        PLANE,
    ),
    "Gaussian": (
        NormalInverseGamma([1.0, 1.5], 1.0, [4.0, 4.0], [3.0, 2.0]),
        Gaussian("diagonal", False, mean=[1.0, 1.5], kappa=1.0, alpha=[4.0, 4.0], beta=[3.0, 2.0]),
        PLANE,
    ),
    "Poisson": (GammaPoisson([3.0, 3.0], [1.0, 1.5]), Poisson([3.0, 3.0], [1.0, 1.5]), COUNTS),
    "binomial": (BetaBinomial([2.0, 1.5], 2.0, trials=5), Binomial([2.0, 1.5], [2.0, 2.0]), HEADS),
    "multinomial": (DirichletMultinomial([1.5, 2.0, 1.2]), Multinomial([1.5, 2.0, 1.2]), WORDS),
}
FULL = NormalInverseWishart([1.0, 1.5], 1.0, 7.0, [[4.0, 0.5], [0.5, 3.0]])
PRIORS = {
    "full": (FULL, {"mean": [1.0, 1.5], "kappa": 1.0, "nu": 7.0, "scale": [[4.0, 0.5], [0.5, 3.0]]}),
    "diagonal": (NAIVE["Gaussian"][0], {"mean": [1.0, 1.5], "kappa": 1.0, "alpha": [4.0, 4.0], "beta": [3.0, 2.0]}),
    "isotropic": (
        NormalInverseGamma([1.0, 1.5], 1.0, 4.0, 3.0),
        {"mean": [1.0, 1.5], "kappa": 1.0, "alpha": 4.0, "beta": 3.0},
    ),
}


class Row:
    """One row of the table: our model and the oracle's, on the same rows."""

    def __init__(self, model, reference, rows, shape, whole=False, kept=slice(None)):
        self.model, self.reference, self.shape = model, reference, shape
        self.rows, self.codes, self.new = rows[kept], CODES[kept], rows[[1, 5, 7]]
        gaps = [(2,), (5,)] if whole else [(2, 0), (5, rows.shape[1] - 1)]
        self.gappy = flaw(self.rows, *gaps)
        self.new_gappy = flaw(self.new, (0,), *([] if whole else [(1, 0)]))


def single(name):
    leaf, part, rows = NAIVE[name]
    flat = name in ("categorical",)
    model = NaiveBayes(CLASSES, {"x": leaf})
    whole = name in ("categorical", "multinomial")
    return Row(model, Classifier(ALPHA, part), rows, lambda x: {"x": x[:, 0] if flat else x}, whole)


def mixed():
    names = ("Bernoulli", "categorical", "Gaussian", "Poisson")
    model = NaiveBayes(CLASSES, {name: NAIVE[name][0] for name in names})
    rows = np.hstack([NAIVE[name][2] for name in names])

    def shape(x):
        return {"Bernoulli": x[:, :2], "categorical": x[:, 2], "Gaussian": x[:, 3:5], "Poisson": x[:, 5:]}

    reference = Classifier(ALPHA, *(NAIVE[name][1] for name in names))
    return Row(model, reference, rows, shape, kept=[0, 1, 2, 4, 5, 6])  # few, so that draws of the prior have weight


def discriminant(covariance, shared):
    prior, hyper = PRIORS[covariance]
    model = GaussianDiscriminant(CLASSES, prior, covariance, shared)
    return Row(model, Classifier(ALPHA, Gaussian(covariance, shared, **hyper)), PLANE, lambda x: x)


TABLE = {f"naive Bayes, {name}": (single, name) for name in NAIVE} | {"naive Bayes, mixed": (mixed,)}
TABLE |= {
    f"gda, {c}{', shared' * s}": (discriminant, c, s) for c in ("full", "diagonal", "isotropic") for s in (False, True)
}


def cells():
    """Every cell; slow are NUTS, points of the mixed model, whose parts have theirs, and points of complete rows.

    A point from rows with gaps comes from the columns without them too; the oracle's search takes seconds. The second
    command has those of structures that are a full covariance with fewer parameters, and of leaves like another.
    """
    for name, gaps in itertools.product(TABLE, ["complete at fit", "missing at fit"]):
        for inference in INFERENCES:
            points = inference in ("ml", "map") and name != "gda, isotropic"
            slow = inference == "nuts" or (points and (name == "naive Bayes, mixed" or gaps == "complete at fit"))
            again = name.startswith("gda") and name != "gda, full" and (points or "shared" in name)
            again |= name in ("naive Bayes, binomial", "naive Bayes, Gaussian mean")
            again |= inference == "map" and name in ("gda, full", "naive Bayes, Gaussian")  # seconds; "ml" has them
            slow |= again and inference == "map"  # whose search is that of "ml" and a prior
            yield pytest.param(name, gaps, inference, marks=[pytest.mark.slow] * slow + [pytest.mark.compiles] * again)


@functools.lru_cache(1)  # its cells follow each other
def row_of(name):
    make, *arguments = TABLE[name]
    return make(*arguments)


@pytest.mark.parametrize(("name", "gaps", "inference"), list(cells()))
def test_cell(name, gaps, inference):
    row = row_of(name)
    rows = row.gappy if gaps == "missing at fit" else row.rows
    data = (row.shape(rows), row.codes)
    if inference == "exact" and gaps == "missing at fit" and "full" in name:
        refuses(lambda: bg.fit(row.model, data), "'map' or 'nuts'")
        return
    posterior = bg.fit(row.model, data, SAMPLER if inference == "nuts" else inference, seed=0)
    new = [row.new_gappy] if gaps == "missing at fit" else [row.new, row.new_gappy]
    found = np.concatenate([np.exp(posterior.log_predictive(row.shape(own))) for own in new])
    new = np.concatenate(new)
    if inference in ("ml", "map"):
        theta, _ = row.reference.estimate(rows, row.codes, inference == "map")
        expected = np.exp(np.stack([row.reference.log_joint(theta, x)[0] for x in new]))
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-9)  # a search by values alone
        return
    expected, error = row.reference.predictive(rows, row.codes, new)
    if inference == "nuts":  # 3000 correlated draws against as many effective ones
        error = 3 * error + 0.02 * expected
    assert (np.abs(found - expected) < 5 * error).all()


def test_the_oracle_tells_a_wrong_answer():
    """A plug-in estimate in place of the predictive, or a forgotten prior, does not pass."""
    row = discriminant("full", True)
    expected, error = row.reference.predictive(row.rows, CODES, row.new)
    for wrong in ("ml", "map"):
        found = np.exp(bg.fit(row.model, (row.rows, CODES), wrong).log_predictive(row.new))
        assert (np.abs(found - expected) > 5 * error).any()


def test_the_oracles_densities_are_those_of_scipy():
    """The two-column normal written as first, and second given first."""
    from scipy import stats

    part = Gaussian("full", False, **PRIORS["full"][1])
    mean, matrix = theta = part.draw(np.random.default_rng(0), 3)
    for m in range(3):
        for k in range(oracle.K):
            expected = stats.multivariate_normal(mean[m, k], matrix[m, k]).logpdf(PLANE[0])
            assert part.log_rows(theta, PLANE[0])[m, k] == pytest.approx(expected, rel=1e-10)
