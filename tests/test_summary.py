"""Summaries of fitted classifiers as tables; records and results in few characters."""

import numpy as np
import pandas as pd
import pytest
from laws.cases import CASES

import bayesgen as bg
from bayesgen import data
from bayesgen.models import BetaBernoulli, GammaPoisson, KnownCategorical, NormalInverseGamma, NormalInverseWishart

X = data.load("penguins")
y = X.pop("species")
NUMBERS = X[["bill_length_mm", "bill_depth_mm"]].dropna()
LABELS = y[NUMBERS.index]


@pytest.mark.parametrize("case", [c for c in CASES if c.model.conjugate], ids=lambda c: c.name)
def test_expected_is_the_mean_of_exact_draws(case):
    model, rng = case.model, np.random.default_rng(0)
    draws = model.sample_parameters(rng, (20_000,))
    means = model.expected()
    for site, value in draws.items():
        if site.endswith("cholesky"):
            continue
        error = value.std(0) / np.sqrt(len(value))
        assert (np.abs(value.mean(0) - means[site]) < 6 * error + 1e-12).all(), site


def test_a_summary_says_what_the_rows_say():
    classifier = bg.NaiveBayesClassifier({"body_mass_g": "log", "year": "poisson"}).fit(X, y)
    said = classifier.summary()
    frame = said.to_frame()
    assert list(frame.columns) == ["Adelie", "Chinstrap", "Gentoo"]
    own = X[y == "Gentoo"]
    assert frame.loc[("bill_length_mm", "mean"), "Gentoo"] == pytest.approx(own["bill_length_mm"].mean(), rel=1e-3)
    assert frame.loc[("bill_length_mm", "sd"), "Gentoo"] == pytest.approx(own["bill_length_mm"].std(), rel=0.02)
    mass = np.log(own["body_mass_g"])
    assert frame.loc[("body_mass_g", "mean of log"), "Gentoo"] == pytest.approx(mass.mean(), rel=1e-3)
    assert frame.loc[("year", "mean count"), "Gentoo"] == pytest.approx(own["year"].mean(), rel=1e-3)
    assert frame.loc[("island", "P(Dream)"), "Gentoo"] == pytest.approx(
        1 / 127
    )  # no row of 124, and Dirichlet(1, 1, 1)
    assert frame.loc[("class", "probability")].sum() == pytest.approx(1)
    assert said.gaps["sex"] == X["sex"].isna().sum() and said.gaps["island"] == 0
    assert said.prior["island"] == "Dirichlet([1, 1, 1])"
    text = repr(said)
    assert "47.5 ± 3.1" in text and "124 rows" in text
    assert r"bill\_length\_mm & 38.8 (2.7) &" in said.to_latex()
    shown = classifier._repr_mimebundle_()["text/html"]
    assert "47.5 ± 3.1" in shown and "<table>" in shown


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "isotropic"])
@pytest.mark.parametrize("inference", ["exact", "ml"])
def test_every_structure_is_told(covariance, shared, inference):
    frame = (
        bg.GaussianDiscriminantClassifier(covariance, shared, inference=inference)
        .fit(NUMBERS, LABELS)
        .summary()
        .to_frame()
    )
    deviation = frame.loc[("bill_depth_mm", "sd")]
    assert deviation.between(0.9, 2.6).all() and (deviation.nunique() == 1) == shared
    np.testing.assert_allclose(
        frame.loc[("bill_depth_mm", "mean")], NUMBERS.groupby(LABELS)["bill_depth_mm"].mean(), rtol=1e-3
    )


def test_html_escapes_what_columns_are_called():
    table = pd.DataFrame({"<b>&": [1.0, 2.0, 4.0, 5.0]})
    said = bg.NaiveBayesClassifier().fit(table, ["<a>", "<a>", "b", "b"]).summary()
    assert "&lt;b&gt;&amp;" in said._repr_html_() and "<b>" not in said._repr_html_()
    assert r"<b>\&" in said.to_latex()


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (BetaBernoulli(4, 2), "BetaBernoulli(a=4, b=2)"),
        (BetaBernoulli(), "BetaBernoulli(a=1, b=1)"),
        (NormalInverseGamma(0.1 + 0.2, 1, 2, 1e7), "NormalInverseGamma(mean=0.3, kappa=1, alpha=2, beta=1e+07)"),
        (
            KnownCategorical([0.25, 0.75], ["a", "b"]),
            "KnownCategorical(probability=[0.25, 0.75], categories=('a', 'b'))",
        ),
        (GammaPoisson(np.ones(20), 1), "GammaPoisson(concentration=<20 numbers>, rate=1)"),
        (
            NormalInverseWishart(np.zeros(4), 1, 6, np.eye(4)),
            "NormalInverseWishart(mean=[0, 0, 0, 0], kappa=1, nu=6, scale=<4 x 4 numbers>)",
        ),
    ],
)
def test_records_are_told_in_few_characters(record, text):
    assert repr(record) == text


def test_leave_one_out_tells_its_elpd():
    rows, labels = [[1.0], [1.4], [3.1], [2.9]], ["a", "a", "b", "b"]
    found = bg.NaiveBayesClassifier().fit(rows, labels).leave_one_out(rows, labels)
    assert (
        repr(found)
        == f"LeaveOneOut(elpd={found.elpd:.1f} ± {found.se:.1f}, log loss={-found.conditional.mean():.3f}, rows=4)"
    )
