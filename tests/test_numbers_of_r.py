"""Numbers that R printed for the penguins without gaps: R 4.2.2, MASS 7.3-58.2, e1071 1.7-13 (docs/teachers.md)."""

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg

PENGUINS = bg.data.load("penguins").dropna()
SPECIES = PENGUINS["species"]  # Adelie, Chinstrap, Gentoo
BIRD = pd.DataFrame({"bill_length_mm": [45.0], "bill_depth_mm": [17.0]})


@pytest.mark.parametrize(
    ("shared", "posterior"),
    [
        (True, [0.01548635533, 0.8918804538, 0.09263319086]),  # lda(x, species, method = "mle")
        (False, [0.02986713415, 0.959658965, 0.01047390085]),  # qda(x, species, method = "mle")
    ],
    ids=["lda", "qda"],
)
def test_discriminants_by_maximum_likelihood(shared, posterior):
    classifier = bg.GaussianDiscriminantClassifier(shared=shared, inference="ml").fit(PENGUINS[list(BIRD)], SPECIES)
    assert classifier.predict_proba(BIRD)[0] == pytest.approx(posterior, rel=1e-9)


def test_smoothed_tables_of_naive_bayes():
    """Laplace = 1 is the posterior mean under Dirichlet(1, ..., 1); Gaussian columns have the divisor n - 1."""
    smoothed = bg.NaiveBayesClassifier().fit(PENGUINS[["island"]], SPECIES).posterior_.mean()["island.probability"]
    biscoe, dream, torgersen = smoothed.T
    assert biscoe == pytest.approx([0.302013423, 0.014084507, 0.983606557], abs=1e-9)
    assert dream == pytest.approx([0.375838926, 0.971830986, 0.008196721], abs=1e-9)
    assert torgersen == pytest.approx([0.322147651, 0.014084507, 0.008196721], abs=1e-9)
    bills = bg.NaiveBayesClassifier(inference="ml").fit(PENGUINS[["bill_length_mm"]], SPECIES).posterior_.params
    n = SPECIES.value_counts().sort_index().to_numpy()
    spread = np.sqrt(bills["gaussian.variance"][:, 0] * n / (n - 1))
    assert spread == pytest.approx([2.662597, 3.339256, 3.106116], abs=1e-6)
