"""How many classes there are: against enumeration, published criteria, and rows whose classes are known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen.models import BetaBernoulli, NormalInverseGamma, latent_classes
from benchmarks.starts import CHEATING, VALUES, answers


def humps(seed=0, sizes=(30, 20, 50)):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(m, 1.0, n) for m, n in zip((-6.0, 0.0, 7.0), sizes, strict=True)])[:, None]


def test_the_highest_likelihood_is_the_one_that_was_published():
    X = answers(CHEATING)
    fitted = bg.LatentClassClassifier(classes=2, inference="ml", random_state=0).fit(X)
    assert fitted.score_samples(X).sum() == pytest.approx(-440.0271, abs=1e-4)
    assert fitted.starts_reached_ >= 4


def test_two_classes_of_goodman():
    """Goodman 1974, Biometrika 61: two classes fit with G² = 2.72 on 6 degrees of freedom; shares .72 and .28."""
    X = answers(VALUES)
    fitted = bg.LatentClassClassifier(classes=2, inference="ml", random_state=0).fit(X)
    counts = np.array(list(VALUES.values()), float)
    patterns = answers(dict.fromkeys(VALUES, 1))
    expected = 216 * np.exp(fitted.score_samples(patterns))
    assert 2 * (counts * np.log(counts / expected)).sum() == pytest.approx(2.72, abs=0.005)
    np.testing.assert_allclose(fitted.posterior_.params["classes.probability"], [0.72, 0.28], atol=0.005)
    assert fitted.starts_reached_ >= 10
    table = bg.compare_classes(X, (2,), starts=6, folds=2).table
    assert table.loc[2, "bic"] == pytest.approx(-2 * -504.4677 + 9 * np.log(216), abs=0.01)  # poLCA: 1057.313


@pytest.mark.compiles
def test_the_number_of_humps_is_found_and_told():
    done = []
    found = bg.compare_classes(humps(), (1, 2, 3, 4), starts=4, progress=lambda *told: done.append(told))
    table = found.table
    assert found.best == 3 and table["log_density"].is_monotonic_decreasing
    assert done[-1][:2] == (24, 24) and done[0][2] == "1 class, all rows"
    assert (table.loc[[1, 2], "difference"] < -2 * table.loc[[1, 2], "difference_error"]).all()
    assert table.loc[3, "smallest"] == pytest.approx(20, abs=0.5) and table.loc[3, "entropy"] > 0.98
    for number, fitted in found.fits.items():  # of all rows, whatever folds were fitted after it
        assert sum(fitted.summary().rows.values()) == pytest.approx(100) and len(fitted.classes_) == number
    assert "3 classes" in found.sentence and "3 classes" in repr(found)


@pytest.mark.compiles
def test_the_best_number_is_taken_whatever_else_is_compared_and_a_file_keeps_it(tmp_path):
    found = bg.compare_classes(humps(), (2, 3), starts=4)
    again = bg.compare_classes(humps(), (3,), starts=4)
    np.testing.assert_array_equal(again.log_density[3], found.log_density[3])
    auto = bg.LatentClassClassifier(classes="auto", starts=4, random_state=0).fit(humps())
    assert len(auto.classes_) == auto.class_numbers_.best == 3
    auto.save(tmp_path / "model.safetensors")
    kept = bg.load(tmp_path / "model.safetensors")
    pd.testing.assert_frame_equal(kept.class_numbers_.table, auto.class_numbers_.table)
    assert repr(kept.class_numbers_) == repr(auto.class_numbers_)
    plain = auto.set_params(classes=2).fit(humps())
    assert not hasattr(plain, "class_numbers_")
    plain.save(tmp_path / "model.safetensors")
    assert not hasattr(bg.load(tmp_path / "model.safetensors"), "class_numbers_")
    with pytest.raises(ValueError, match=r"2 numbers of classes have values of shapes"):
        replace(kept.class_numbers_, numbers=(1, 2))


def test_the_evidence_of_draws_about_the_mode_is_that_of_enumeration():
    rng = np.random.default_rng(0)
    for seed in range(3):
        t = np.arange(12) % 2
        X = pd.DataFrame({"z": np.random.default_rng(seed).normal(3.0 * t), "bit": rng.random(12) < 0.2 + 0.6 * t})
        fitted = bg.LatentClassClassifier(classes=2, starts=6, random_state=0).fit(X)
        found = latent_classes.weighted_draws(fitted.model_, fitted.statistics_, rng)
        assert found.log_evidence == pytest.approx(fitted.log_evidence_, abs=0.02 + 5 * found.error)


def test_weights_make_the_draws_those_of_the_posterior():
    """Two columns, labels for part of the rows: the mean of a parameter against a sum over all labellings."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"z": rng.normal([*[-2.0] * 5, *[2.0] * 5]), "bit": rng.random(10) < 0.5})
    leaves = {"z": NormalInverseGamma(0.0, 0.1, 3.0, 3.0), "bit": BetaBernoulli(2.0, 2.0)}
    y = pd.Series(["a", *[None] * 8, "b"])
    fitted = bg.LatentClassClassifier(features=leaves).fit(X, y)
    model, statistics = fitted.model_, fitted.statistics_
    draws = latent_classes.weighted_draws(model, statistics, rng, 20_000)
    x = model.check(fitted.read(X))
    levels, means = [], []
    for code in range(2**8):
        t = np.array([0, *(code >> np.arange(8) & 1), 1])
        posterior = model.update(model.statistics(x, t))
        levels.append(model.log_evidence(model.statistics(x, t)))
        means.append(posterior.expected()["z.mean"])
    exact = np.exp(np.array(levels) - logsumexp(levels)) @ np.array(means)
    found = draws.weight @ draws.params["z.mean"]
    spread = np.sqrt(draws.weight**2 @ (draws.params["z.mean"] - found) ** 2)
    assert (np.abs(found - exact) < 5 * spread).all()
    assert abs(draws.log_evidence - logsumexp(levels)) < 5 * draws.error


def test_numbers_that_cannot_be_fitted_are_told():
    X = pd.DataFrame({"bit": [True, False] * 6})
    found = bg.compare_classes(X, (1, 2, 3), starts=2, folds=2)
    assert found.remarks[3].startswith("classes: 3 have no label, and X has 2 different rows")
    assert np.isnan(found.table.loc[3, "log_density"]) and found.best in (1, 2)
    with pytest.raises(ValueError, match="3 have no label, and X has 2 different rows"):
        bg.compare_classes(X, (3,), starts=2)
    with pytest.raises(TypeError, match="takes no sample_weight"):
        bg.compare_classes(X, (1, 2), sample_weight=np.ones(12))
    with pytest.raises(ValueError, match="numbers"):
        bg.compare_classes(X, (0, 1))
    with pytest.raises(ValueError, match="folds must be a whole number from 2 to the 12 rows, got 13"):
        bg.compare_classes(X, (1,), folds=13)
    with pytest.raises(ValueError, match="classes='auto' compares"):
        bg.LatentClassClassifier(classes="auto").fit(X, ["a", *[None] * 11])


def test_the_picture_rings_the_best():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    found = bg.compare_classes(humps(), (2, 3), starts=2, folds=2)
    ax = bg.plot.class_numbers(found, ax=Figure().add_subplot())
    ring = ax.lines[-1]
    assert ring.get_xdata()[0] == 3 and ring.get_ydata()[0] == found.table.loc[3, "log_density"]


@pytest.mark.compiles
def test_criteria_of_iris_are_those_of_mclust():
    """Mclust(iris[, 1:4], modelNames = "VVV"), which has them with the other sign."""
    table = bg.compare_classes(load_iris().data, (1, 2, 3), "discriminant", folds=2).table
    np.testing.assert_allclose(table["bic"].sort_index(), [829.9782, 574.0178, 580.8399], atol=2e-3)
