"""The voters of the lecture, by hand, and the voters of 1996: mixed features with gaps, and who they vote for."""

from fractions import Fraction
from math import log

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer

from bayesgen import NUTS, NaiveBayesClassifier, data
from bayesgen.models import BetaBinomial, DirichletCategorical, NormalInverseGamma


@pytest.fixture
def voters():
    rows = [
        # voted last time, income, state, candidate
        ("Y", "low", "MN", "Clinton"),
        ("N", "low", "MN", "Clinton"),
        ("Y", "high", None, "Clinton"),
        ("Y", None, "WI", "Clinton"),
        ("N", "high", "WI", "Dole"),
        ("Y", "high", "TX", "Dole"),
        (None, "high", "TX", "Dole"),
    ]
    table = pd.DataFrame(rows, columns=["voted", "income", "state", "candidate"])
    return table, table.pop("candidate")


def someone(voted=None, income=None, state=None):
    return pd.DataFrame({"voted": [voted], "income": [income], "state": [state]}, dtype=object)


@pytest.mark.parametrize(
    "row, clinton, dole",
    [
        # (count + 1) / (observed + number of categories), a gap counting nowhere:
        #                p(class)         Y                 high              WI
        (("Y", "high", "WI"), (5, 9, 4, 6, 2, 5, 2, 6), (4, 9, 2, 4, 4, 5, 2, 6)),
        #                p(class)         Y                                   MN
        (("Y", None, "MN"), (5, 9, 4, 6, 3, 6), (4, 9, 2, 4, 1, 6)),
        #                p(class)         N                 low               TX
        (("N", "low", "TX"), (5, 9, 2, 6, 3, 5, 1, 6), (4, 9, 2, 4, 1, 5, 3, 6)),
        ((None, None, None), (5, 9), (4, 9)),
    ],
)
def test_voters_by_hand(voters, row, clinton, dole):
    joint = []
    for terms in (clinton, dole):
        product = Fraction(1)
        for over, under in zip(terms[::2], terms[1::2], strict=True):
            product *= Fraction(over, under)
        joint.append(product)
    classifier = NaiveBayesClassifier().fit(*voters)
    x = someone(*row)
    expected = [float(p / sum(joint)) for p in joint]
    np.testing.assert_allclose(classifier.predict_proba(x), [expected], rtol=1e-12)
    assert classifier.score_samples(x)[0] == pytest.approx(log(sum(joint)), rel=1e-12)
    assert classifier.predict(x)[0] == ("Clinton" if expected[0] > 0.5 else "Dole")


def test_evidence_of_the_voters_by_hand(voters):
    # Each factor is Γ(V)/Γ(V + n) ∏ n_v!: classes 1!/8! 4!3!, voted 3!1!/5! and 1!1!/3!, income 2!1!/4! and 3!0!/4!,
    # state 2!/5! 2!0!1! and 2!/5! 0!2!1!
    factors = (280, 20, 6, 12, 4, 30, 30)
    assert NaiveBayesClassifier().fit(*voters).log_evidence_ == pytest.approx(-sum(map(log, factors)), rel=1e-12)


def test_a_state_nobody_came_from(voters):
    x = someone("Y", "high", "OH")
    with pytest.raises(ValueError, match="column 'state': 'OH' in row 0 is not one of the categories"):
        NaiveBayesClassifier(unseen="error").fit(*voters).predict(x)
    lenient = NaiveBayesClassifier().fit(*voters)
    with pytest.warns(UserWarning, match="1 value taken as missing"):
        probability = lenient.predict_proba(x)
    np.testing.assert_array_equal(probability, lenient.predict_proba(someone("Y", "high")))
    # declared, it is one category of four: 1/7 for Clinton (3 observed) and for Dole, so it says nothing here
    declared = NaiveBayesClassifier({"state": DirichletCategorical(1.0, ["MN", "OH", "TX", "WI"])}).fit(*voters)
    np.testing.assert_allclose(declared.predict_proba(x), probability, rtol=1e-12)


def test_maximum_likelihood_does_not_smooth(voters):
    classifier = NaiveBayesClassifier(inference="ml").fit(*voters)
    # Clinton 4/7 · 3/4 · 1/3 · 1/3 = 1/21, Dole 3/7 · 1/2 · 3/3 · 1/3 = 1/14
    np.testing.assert_allclose(classifier.predict_proba(someone("Y", "high", "WI")), [[0.4, 0.6]], rtol=1e-12)
    with pytest.warns(UserWarning, match="1 rows have probability 0 under every class"):
        np.testing.assert_allclose(classifier.predict_proba(someone("N", "low", "TX")), [[4 / 7, 3 / 7]])


def test_income_in_thousands(voters):
    table, candidate = voters
    table["income"] = [21.0, 30.0, 60.0, np.nan, 75.0, 80.0, 100.0]
    prior = NormalInverseGamma(mean=50.0, kappa=1.0, alpha=2.0, beta=400.0)
    classifier = NaiveBayesClassifier({"income": prior}).fit(table, candidate)
    # Clinton: n = 3, mean 37, scatter 16² + 7² + 23² = 834; Dole: n = 3, mean 85, scatter 10² + 5² + 15² = 350
    density = []
    for mean, scatter in ((37, 834), (85, 350)):
        kappa, alpha = 1 + 3, 2 + 3 / 2
        beta = 400 + scatter / 2 + 1 * 3 / 4 * (mean - 50) ** 2 / 2
        scale = (beta * (kappa + 1) / (alpha * kappa)) ** 0.5
        density.append(stats.t(2 * alpha, (50 + 3 * mean) / 4, scale).pdf(65))
    joint = np.array([5 / 9 * 4 / 6 * 2 / 6, 4 / 9 * 2 / 4 * 2 / 6]) * density
    row = someone("Y", 65.0, "WI").astype({"income": float})
    np.testing.assert_allclose(classifier.predict_proba(row), [joint / joint.sum()], rtol=1e-12)


# -- 1996 -------------------------------------------------------------------------------------------------------------

LEANING = DirichletCategorical(1.0, range(1, 8))  # codes 1 to 7, whether or not all were seen
FEATURES = {
    ("selfLR", "ClinLR", "DoleLR"): DirichletCategorical(np.ones((3, 7)), range(1, 8)),
    "PID": DirichletCategorical(1.0, range(7)),
    "educ": LEANING,
    "TVnews": BetaBinomial(1, 1, trials=7),  # days of the week
    "income": "poisson",  # steps up a ladder of 24
}


@pytest.fixture(scope="module")
def survey():
    """Answers with one in ten knocked out, and the vote; `popul` is far too wide for a Poisson and left out."""
    table = data.load("anes96").drop(columns="popul")
    vote = table.pop("vote").map({0: "Clinton", 1: "Dole"}).to_numpy()
    gaps = np.random.default_rng(1996).random(table.shape) < 0.1
    return table.astype(float).mask(gaps), vote


def test_votes_of_1996(survey):
    X, y = survey
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    share = np.mean(y == "Dole")
    baseline = log_loss(y, np.tile([1 - share, share], (len(y), 1)))
    p = cross_val_predict(NaiveBayesClassifier(FEATURES), X, y, cv=folds, method="predict_proba")
    assert log_loss(y, p) < baseline / 2
    assert np.mean(p.argmax(1) == (y == "Dole")) > 0.87


def test_a_row_with_one_answer(survey):
    X, y = survey
    classifier = NaiveBayesClassifier(FEATURES).fit(X, y)
    silent = X.iloc[[0]].mask(np.ones((1, X.shape[1]), bool))
    clinton, dole = (y == "Clinton").sum() + 1, (y == "Dole").sum() + 1
    np.testing.assert_allclose(classifier.predict_proba(silent), [[clinton / 946, dole / 946]], rtol=1e-12)
    for party in range(7):
        answered = [((X["PID"] == party) & (y == name)).sum() + 1 for name in ("Clinton", "Dole")]
        of = [(X["PID"].notna() & (y == name)).sum() + 7 for name in ("Clinton", "Dole")]
        joint = np.array([clinton, dole]) * answered / of
        p = classifier.predict_proba(silent.assign(PID=float(party)))
        np.testing.assert_allclose(p, [joint / joint.sum()], rtol=1e-12)


def test_a_skewed_column_discretised():
    table = data.load("anes96")
    X, y = table[["popul"]], table["vote"]  # thousands of people: 0 to 7300
    bins = make_pipeline(FunctionTransformer(np.log1p), KBinsDiscretizer(8, encode="ordinal", strategy="uniform"))
    methods = {
        "poisson": NaiveBayesClassifier("poisson"),
        "gaussian": NaiveBayesClassifier("gaussian"),
        "bins": make_pipeline(bins, NaiveBayesClassifier({0: DirichletCategorical(1.0, range(8))})),
        "nothing": DummyClassifier(strategy="prior"),
    }
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    loss = {
        name: log_loss(y, cross_val_predict(method, X, y, cv=folds, method="predict_proba"))
        for name, method in methods.items()
    }
    assert loss["bins"] < loss["nothing"] < loss["poisson"]
    assert loss["bins"] < loss["gaussian"]


@pytest.mark.slow
def test_nuts_votes_alike(survey):
    X, y = survey
    exact = NaiveBayesClassifier(FEATURES).fit(X, y)
    sampled = NaiveBayesClassifier(FEATURES, inference=NUTS(500, 300, 2), random_state=0).fit(X, y)
    np.testing.assert_allclose(sampled.predict_proba(X), exact.predict_proba(X), atol=0.02)
