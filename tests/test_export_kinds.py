"""Every kind of leaf, exported as JavaScript, under every posterior: probabilities, evidence, values and intervals."""

import re
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scorers import assert_equal, counts, hard, records, scorer

import bayesgen as bg
from bayesgen.export import script
from bayesgen.inspection import next_measurement
from bayesgen.models import BetaBinomial, GammaPoisson, NormalInverseGamma, NormalKnownMean, NormalKnownVariance, Pooled
from bayesgen.models.kinds import Counts, Density

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 200)
LABELS = np.array(["a", "b", "c"])[Y]
NUMBERS = pd.DataFrame({f"x{j}": RNG.normal(Y * (j + 1) * 0.7, 1 + j) for j in range(4)})
POSITIVE = np.exp(NUMBERS / 3)
COUNTS = pd.DataFrame({"c0": RNG.poisson(2 + 3.0 * Y), "c1": RNG.poisson(9 - 3.0 * Y)})
HEADS = pd.DataFrame({"h": RNG.binomial(12, (Y + 1) / 5), "g": RNG.binomial(5, (Y + 1) / 5)})
TOSSES = pd.DataFrame({"h": RNG.binomial(1 + 5 * Y + 3, (Y + 1) / 5), "t": 1 + 5 * Y + 3})
BAG = pd.DataFrame([RNG.multinomial(12 + k, [0.2 + 0.1 * k, 0.3, 0.5 - 0.1 * k]) for k in Y], columns=["u", "v", "w"])
NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
CASES = {
    "gaussian": (NB, {}, NUMBERS),
    "known variance": (NB, {"features": {c: NormalKnownVariance(0, 10, 2.0) for c in NUMBERS}}, NUMBERS),
    "known mean": (NB, {"features": {c: NormalKnownMean(1.0, 1, 1) for c in NUMBERS}}, NUMBERS),
    "log": (NB, {"features": "log"}, POSITIVE),
    "log1p": (NB, {"features": "log1p"}, POSITIVE),
    "poisson": (NB, {"features": "poisson"}, COUNTS),
    "binomial": (NB, {"features": {("h", "g"): BetaBinomial(1, 1, trials=(12, 5))}}, HEADS),
    "tosses": (NB, {"features": {("h", "t"): BetaBinomial(1, 1)}}, TOSSES),
    "bag": (NB, {"features": "multinomial"}, BAG),
    "mixed": (
        NB,
        {"features": {("u", "v", "w"): "multinomial", "c0": "poisson"}},
        pd.concat([NUMBERS, COUNTS, BAG], axis=1),
    ),
} | {
    f"{covariance} {shared}": (GD, {"covariance": covariance, "shared": shared}, NUMBERS)
    for covariance in ("full", "diagonal", "isotropic")
    for shared in (False, True)
}
STUDENT = {
    "student numbers": (NB, {"features": "student"}, NUMBERS),
    "student": (GD, {"covariance": "student"}, NUMBERS),
}
POINTS = [name for name in CASES if name not in ("mixed", "known mean")] + list(STUDENT)


def fitted(name, **settings):
    cls, options, X = (CASES | STUDENT)[name]
    return cls(**options, **settings, random_state=0).fit(X, LABELS), X


def rows_of(name, X, count, rng):
    """Rows with gaps and far values; a bag is missing as a whole, and heads may be where tosses are known."""
    far = {"log": (1e-300, 1e300), "log1p": (0.0, 1e300)}.get(name, (1e-300, 1e300, -1e300, 0.0))
    rows = hard(X, count, rng, far)
    if "c0" in rows:
        rows["c0"] = rows["c0"].mask(rng.random(count) < 0.02, rng.choice([0, 1000, 10**9], count))
    if "u" in rows:
        whole = X[["u", "v", "w"]].iloc[rng.integers(0, len(X), count)].reset_index(drop=True)
        rows[["u", "v", "w"]] = whole.mask(np.repeat(rng.random((count, 1)) < 0.2, 3, axis=1))
    if name == "tosses":
        rows["t"] = rng.integers(0, 30, count)
        rows["h"] = pd.Series(rng.binomial(rows["t"], 0.4)).mask(rng.random(count) < 0.2)
    return rows


def check(classifier, name, X, count):
    """Hold probabilities, the evidence of a row and the values of its unknown entries against Python's."""
    rng = np.random.default_rng(1)
    rows = rows_of(name, X, count, rng)
    with scorer(classifier) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_equal(classifier, made, rows, apart=isinstance(classifier, NB))
        row = X.iloc[[0]].astype(float)
        if name not in ("tosses", "bag", "mixed"):
            row = row.mask([[True] + [False] * (X.shape[1] - 1)])
            if classifier.posterior_.kind != "draws":
                (known,) = records(next_measurement(classifier, row))
                found = {f["column"]: f["value"] for f in made.ask("nextMeasurement(row)", row=records(row)[0])}
                assert found == pytest.approx({c: v for c, v in known.items() if v is not None}, abs=1e-6)
        terms = {t["column"]: t["contribution"] for t in made.ask("explain(row)", row=records(row)[0])}
        assert terms == pytest.approx(classifier.explain(row, row=0).terms, abs=1e-9)
        low_high = made.ask("predictProbaInterval(row, {draws: 20000})", row=records(row)[0])
        if not classifier.posterior_.uncertain:
            assert low_high is None
        else:
            expected = classifier.predict_proba_interval(row, size=20_000)[0]
            few = classifier.posterior_.kind == "draws"  # of 200 draws several windows are nearly as short as another
            assert np.array(low_high) == pytest.approx(expected, abs=0.03 if few else 0.01)
            assert np.diff(low_high) == pytest.approx(np.diff(expected), abs=0.01)


@counts(1000)
@pytest.mark.parametrize("name", CASES)
def test_exact_posteriors(name, count):
    classifier, X = fitted(name)
    check(classifier, name, X, count)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 30])
@pytest.mark.parametrize("name", CASES)
def test_few_and_many_classes_on_ten_thousand_rows(name, classes):
    cls, options, X = CASES[name]
    rng = np.random.default_rng(2)
    y = rng.permutation(np.arange(len(X)) % classes)
    classifier = cls(**options).fit(X, y)
    with scorer(classifier) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_equal(classifier, made, rows_of(name, X, 10_000, rng), apart=cls is NB)


@counts(300)
@pytest.mark.parametrize("name", POINTS)
def test_points(name, count):
    classifier, X = fitted(name, inference="map")
    check(classifier, name, X, count)


@pytest.mark.compiles
@counts(100)
@pytest.mark.parametrize("name", CASES)
def test_draws_are_averaged_as_in_python(name, count):
    classifier, X = fitted(name)
    classifier.posterior_ = classifier.posterior_.as_draws(0).thinned(200)
    check(classifier, name, X, count)


@pytest.mark.compiles
@pytest.mark.parametrize("name", ["gaussian", "log1p", "full False", "diagonal True", "isotropic False"])
def test_a_column_that_is_constant_says_nothing(name):
    cls, options, X = CASES[name]
    X = X.assign(x1=2.0)
    with pytest.warns(UserWarning, match="constant"):
        classifier = cls(**options, random_state=0).fit(X, LABELS)
    check(classifier, name, X, 300)
    with scorer(classifier) as made:
        assert made.ask("typicality(row)", row={"x0": 1.0, "x1": 3.0}) == 0
        assert made.ask("nextMeasurement(row)", row={"x0": 1.0})[-1] == {"column": "x1", "value": 0}


LATENT = {
    "no labels": ({"classes": 2, "starts": 2}, None),
    "some labels": ({"model": "discriminant"}, np.where(RNG.random(200) < 0.3, LABELS, None)),
    "labels that may be wrong": ({"label_noise": bg.models.LabelNoise(rate=0.1)}, LABELS),
    "Student's t": ({"classes": 2, "starts": 2, "features": "student"}, None),
    "all labels": ({"inference": "exact"}, LABELS),
}


@counts(300)
@pytest.mark.parametrize("name", LATENT)
def test_latent_classes_are_those_of_their_posterior(name, count):
    settings, y = LATENT[name]
    classifier = bg.LatentClassClassifier(**settings, random_state=0).fit(NUMBERS, y)
    check(classifier, name, NUMBERS, count)
    with scorer(classifier) as made:
        about = made.ask("model.about")
    assert (about["rows"], about["shares"] is None) == (200, name != "all labels")


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDENT)
def test_draws_of_a_sampler(name):
    classifier, X = fitted(name, inference=bg.Laplace(200))
    check(classifier, name, X, 10_000)


@pytest.mark.slow
def test_classes_that_are_pooled_go_by_draws():
    leaf, X = Pooled(NormalInverseGamma(0.0, 1.0, 1.0, 1.0)), NUMBERS[["x0"]]
    classifier = NB({"x0": leaf}, inference=bg.Laplace(200), random_state=0).fit(X, LABELS)
    with scorer(classifier) as made:
        assert_equal(classifier, made, hard(X, 10_000, np.random.default_rng(1), far=()))


@dataclass(frozen=True, eq=False)
class Lomax(Density):
    """A kind of a user's."""

    kind = "lomax"
    axes = {"mean": 0, "rate": 0}

    mean: object
    rate: object


@dataclass(frozen=True, eq=False)
class Geometric(Lomax):
    """A kind of a user's with its script: counts of failures of probability (1 - p)^x p, p = 1/(1 + mean)."""

    kind = "geometric"
    script = """{
      fields: { mean: "entry", rate: "entry" },
      density: (f, g, i, x) => x * Math.log(f.mean[g] / (1 + f.mean[g])) - Math.log1p(f.mean[g]),
      values: () => 400,
      drawn: () => {},
    }"""


def test_a_kind_of_a_user_brings_its_script():
    """The leaf is the Poisson's for all but its density, which is that of the kind."""

    class Failures(GammaPoisson):
        @property
        def predicted(self):
            return Geometric(self.mean, self.rate)

        def log_predictive(self, x):
            p = 1 / (1 + self.mean)
            return stats.geom(p, loc=-1).logpmf(np.reshape(x, (-1, 1)))

    X = COUNTS[["c0"]].astype(float)
    classifier = NB({"c0": Failures(2.0, 0.5)}).fit(X, LABELS)
    with scorer(classifier) as made:
        found = made.proba(X[:50].assign(c0=np.arange(50.0)))
    np.testing.assert_allclose(found, classifier.predict_proba(X[:50].assign(c0=np.arange(50.0))), atol=1e-12)


class Calls(GammaPoisson):
    """A leaf of a user's, which says of which kind its density is."""

    @property
    def predicted(self):
        return Counts(self.mean, self.rate, about={"kind": "count", "words": "is no number of calls"})


@counts(100)
def test_a_leaf_of_a_user_goes_by_a_kind_that_there_is(count):
    X = COUNTS.astype(float)
    classifier = NB({column: Calls(2.0, 0.5) for column in X}).fit(X, LABELS)
    with scorer(classifier) as made:
        assert_equal(classifier, made, hard(X, count, np.random.default_rng(1), far=(0.0, 1e3, 1e9)))
        with pytest.raises(Exception, match="value -1 in row 0 is no number of calls"):
            made.ask("predictProba(row)", row={"c0": -1})


def test_a_leaf_of_a_user_that_says_too_little_is_refused_by_what_it_lacks():
    class Number(Calls):
        density_kind = "density"

    class Waiting(Calls):
        @property
        def predicted(self):
            return Lomax(self.mean, self.rate)

    for leaf, problem in {
        Number: "['c0']: a density of the kind 'count' does not say how its columns",
        Waiting: "Lomax: a program has no density of the kind 'lomax': write script",
    }.items():
        with pytest.raises(ValueError, match=re.escape(problem)):
            script(NB({"c0": leaf(2.0, 0.5)}).fit(COUNTS[["c0"]].astype(float), LABELS))
