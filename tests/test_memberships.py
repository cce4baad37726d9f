"""The posterior given memberships: the default of classes that nobody named has an answer for every row."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy.special import logsumexp, softmax

import bayesgen as bg
from bayesgen.models import BetaBernoulli, NormalInverseGamma, UnknownClasses
from bayesgen.numerics.sums import Grouping


def table(seed):
    """Return a table of few rows: answers, categories, counts, numbers, with gaps, rare values and constants."""
    rng = np.random.default_rng(seed)
    n, found = int(rng.integers(4, 30)), {}
    for place in range(int(rng.integers(1, 6))):
        kind = rng.integers(5)
        rare = rng.choice([0.5, 0.1, 0.02])
        values = {
            0: pd.Series(rng.random(n) < rare, dtype="boolean"),
            1: pd.Series(pd.Categorical(rng.choice(list("abc"), n, p=[1 - rare, rare, 0]), list("abc"))),
            2: pd.Series(rng.choice([0, 7, 40], n, p=[1 - rare, rare / 2, rare / 2]), dtype="Int64"),
            3: pd.Series(rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)),
            4: pd.Series(rng.choice([1.0, 1.0, 2.0], n)),
        }[int(kind)]
        if rng.random() < 0.3:
            values[:] = values[0]
        if rng.random() < 0.5:
            values = values.mask((rng.random(n) < 0.3) & (np.arange(n) > 0))
        found[f"c{place}"] = values
    return pd.DataFrame(found)


def strange(X):
    """Return rows of all combinations of values, those too that no row had, and gaps."""
    choices = []
    for name in X:
        if X[name].dtype == "boolean":
            choices.append([True, False, None])
        elif X[name].dtype == "category":
            choices.append([*"abc", None])
        else:
            choices.append([0, 7, 1000, None])
    rows = list(itertools.islice(itertools.product(*choices), 300))
    return pd.DataFrame({name: pd.Series(v).astype(X[name].dtype) for name, v in zip(X, zip(*rows))})  # noqa: B905


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("inference", ["memberships", "map", "ml"])
def test_every_row_has_probabilities(inference):
    """By default a density above 0 too; the points keep probabilities within 0 and 1."""
    done = 0
    for seed in range(40 if inference == "memberships" else 25):
        X = table(seed)
        counts = {name: "poisson" for name in X if X[name].dtype == "Int64"}
        settings = {"features": counts or "auto", "starts": 3, "random_state": 0, "inference": inference}
        try:
            fitted = bg.LatentClassClassifier(classes=1 + seed % 3, **settings).fit(X)
        except ValueError as error:
            assert "different rows" in str(error) or inference != "memberships", f"seed {seed}: {error}"
            continue
        done += 1
        rows = strange(X)
        p = fitted.predict_proba(rows)
        assert np.isfinite(p).all() and np.allclose(p.sum(1), 1), seed
        assert not np.isnan(fitted.score_samples(rows)).any(), seed
        if inference == "memberships":
            log_p = fitted.predict_log_proba(rows)
            assert np.isfinite(log_p).all() and np.isfinite(fitted.score_samples(rows)).all(), seed
        for site, value in fitted.posterior_.draws(0, (1,)).items():
            assert not site.endswith("probability") or ((value >= 0) & (value <= 1)).all(), (seed, site)
    assert done > 12


def enumerated(model, x, new):
    """Return log p(new row, class) summed over all labellings of the rows, (n, K)."""
    count, classes = len(next(iter(x.values()))), len(model.class_names)
    level, density = [], []
    for labels in itertools.product(range(classes), repeat=count):
        sums = model.sum_rows(x, Grouping(np.array(labels), classes, None, (classes,)))
        level.append(model.log_evidence(sums))
        density.append(model.update(sums).log_predictive(new))
    return logsumexp(np.array(level)[:, None, None] + density, axis=0) - logsumexp(level)


def test_its_predictive_is_near_the_sum_over_all_labellings():
    """Where classes are apart; and nearer to it than the mode is, whose density is too low at every strange row."""
    rng = np.random.default_rng(0)
    t = np.arange(9) % 3 > 0
    X = pd.DataFrame({"z": rng.normal(np.where(t, 4.0, -4.0)), "bit": t, "other": np.arange(9) == 4})
    leaves = {"z": NormalInverseGamma(0.0, 0.1, 3.0, 3.0), "bit": BetaBernoulli(), "other": BetaBernoulli()}
    new = pd.DataFrame({"z": [-4.0, 4.0, 4.0, -9.0, 0.0], "bit": [0, 1, 0, 1, 1], "other": [0, 0, 1, 1, 1]})
    new = new.astype({"bit": bool, "other": bool})
    settings = {"features": leaves, "classes": 2, "starts": 4, "order_by": "z", "random_state": 0}
    fitted = bg.LatentClassClassifier(**settings).fit(X)
    model = fitted.model_
    x, rows = (model.check(fitted.fitted_.read(frame)) for frame in (X, new))
    exact = logsumexp(enumerated(model, x, rows), axis=1)
    np.testing.assert_allclose(fitted.score_samples(new), exact, atol=0.1)
    mode = bg.LatentClassClassifier(**settings, inference="map").fit(X)
    assert (mode.score_samples(new)[2:] < exact[2:] - 1).all()


def test_it_is_the_posterior_of_rows_that_count_by_their_memberships():
    X = np.r_[np.random.default_rng(0).normal(size=30), np.random.default_rng(1).normal(3.0, size=20)][:, None]
    fitted, mode = (
        bg.LatentClassClassifier(classes=2, starts=4, inference=way, random_state=0).fit(X)
        for way in ("memberships", "map")
    )
    model, statistics = mode.model_, mode.statistics_
    labels = UnknownClasses(model).labels(mode.posterior_.params, statistics)
    expected = model.update(statistics.expected(model, labels))
    np.testing.assert_allclose(
        fitted.predict_proba(X), softmax(expected.log_predictive(fitted.fitted_.read(X)), 1), rtol=1e-9
    )
    assert fitted.posterior_.kind == "memberships" and "given memberships" in str(fitted.summary())
    refuses(lambda: fitted.predict_proba_interval(X), "by memberships has no interval")
    apart = fitted.membership(X)  # draws whose weights know that memberships are not certain
    assert np.abs(apart.xs("mean", axis=1, level=1) - fitted.predict_proba(X)).to_numpy().max() < 0.15


def test_rows_with_labels_have_the_exact_posterior_and_files_keep_it(tmp_path):
    X, y = bg.data.load("penguins").drop(columns=["year"]), None
    y = X.pop("species")
    exact = bg.NaiveBayesClassifier().fit(X, y)
    latent = bg.LatentClassClassifier().fit(X, y)
    np.testing.assert_array_equal(latent.predict_proba(X), exact.predict_proba(X))
    assert latent.log_evidence_ == exact.log_evidence_ and latent.posterior_.kind == "exact"
    few = bg.LatentClassClassifier(label_noise=bg.models.LabelNoise(0.1), random_state=0).fit(X, y)
    few.save(tmp_path / "few.safetensors")
    again = bg.load(tmp_path / "few.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), few.predict_proba(X))
    assert again.posterior_ == few.posterior_ and few.confusion_.shape == (1, 1, 3, 3)
    np.testing.assert_allclose(few.confusion_.sum(-1), 1)
    assert few.posterior_with_labels_.samples["classes.label.probability"].shape == (4, 1000, 3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(few.predict_log_proba(X.iloc[:5])).all()
