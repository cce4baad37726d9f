"""Classes that nobody named: how many there are, what they are, and pairs of columns that stay dependent in them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from commands import run
from matplotlib.figure import Figure
from refusals import refuses
from scipy import stats
from scipy.special import logsumexp
from sklearn.datasets import load_iris

import bayesgen as bg
from bayesgen.inspection import bivariate_residuals
from bayesgen.models import BetaBernoulli, LabelNoise, NormalInverseGamma, latent_classes
from bayesgen.posterior import ParameterDraws
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
    refuses(lambda: replace(kept.class_numbers_, numbers=(1, 2)), r"2 numbers of classes have values of shapes")


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
    x = model.check(fitted.fitted_.read(X))
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
    refuses(lambda: bg.compare_classes(X, (3,), starts=2), "3 have no label, and X has 2 different rows")
    refuses(lambda: bg.compare_classes(X, (1, 2), sample_weight=np.ones(12)), "takes no sample_weight", TypeError)
    refuses(lambda: bg.compare_classes(X, (0, 1)), "numbers")
    refuses(lambda: bg.compare_classes(X, (1,), folds=13), "folds must be a whole number from 2 to the 12 rows, got 13")
    refuses(lambda: bg.LatentClassClassifier(classes="auto").fit(X, ["a", *[None] * 11]), "classes='auto' compares")


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


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    t = np.arange(150) % 3 // 2  # two thirds are 0
    frame = pd.DataFrame({"z": rng.normal(5.0 * t), "noise": rng.normal(size=150)})
    return frame.assign(bit=rng.random(150) < np.array([0.2, 0.9])[t], colour=rng.choice(["red", "blue"], 150))


@pytest.fixture(scope="module")
def fitted(labelled):
    return bg.LatentClassClassifier(classes=["a", "b"], starts=4, random_state=0).fit(labelled)


def test_profiles_hold_the_truth_within_their_intervals(fitted):
    profiles = fitted.class_profiles()
    truth = {("class", "probability"): [2 / 3, 1 / 3], ("z", "mean"): [0, 5], ("bit", "probability"): [0.2, 0.9]}
    for place, expected in truth.items():
        found = profiles.loc[place].unstack()
        assert (found["low"] - 0.05 < expected).all() and (expected < found["high"] + 0.05).all()
        assert (found["low"] < found["mean"]).all() and (found["mean"] < found["high"]).all()
    assert profiles.loc[("z", "sd"), ("a", "mean")] == pytest.approx(1.0, abs=0.25)
    wide = fitted.class_profiles(0.99)
    for label in "ab":
        assert (wide[label, "high"] - wide[label, "low"] >= profiles[label, "high"] - profiles[label, "low"]).all()
    refuses(lambda: fitted.class_profiles(95), "level must lie between 0 and 1, got 95")


def test_a_summary_has_the_intervals_of_the_profiles(fitted):
    shown, profiles = fitted.summary(), fitted.class_profiles()
    low, high = shown.intervals["z", "mean"][1]
    assert (low, high) == (profiles.loc[("z", "mean"), ("b", "low")], profiles.loc[("z", "mean"), ("b", "high")])
    assert f"[{low:.3g}, {high:.3g}]" in repr(shown) and low < shown.values["z", "mean"][1] < high
    share = shown.intervals["class", "probability"][0]
    assert f"[{share[0]:.3g}, {share[1]:.3g}]" in shown._repr_html_()


def test_typical_rows_are_in_the_middle_of_their_class(fitted, labelled):
    found = fitted.typical_rows(labelled.set_axis(labelled.index + 100), count=4)
    assert len(found) == 8 and (found["membership"] > 0.99).all()
    assert (found.loc["b", "z"] - 5).abs().max() < 1 and found.loc["b", "bit"].all() and not found.loc["a", "bit"].any()
    z = fitted.posterior_.mean()["gaussian.mean"][1, 0]
    assert found.index[0][1] >= 100 and abs(found.loc["b", "z"] - z).mean() < abs(labelled["z"][2::3] - z).mean() / 2
    assert fitted.typical_rows(labelled[:2]).shape == (2, 5)
    refuses(lambda: fitted.typical_rows(labelled, count=0), "count must be")


def test_memberships_are_the_surer_the_farther_from_the_border(fitted, labelled):
    rows = pd.DataFrame({"z": [0.0, 2.5], "noise": 0.0, "bit": pd.array([pd.NA] * 2, "boolean"), "colour": "red"})
    found = fitted.membership(rows)
    width = found["a", "high"] - found["a", "low"]
    assert width[0] < 0.05 < width[1]
    np.testing.assert_allclose(found.xs("mean", axis=1, level=1).sum(axis=1), 1.0)
    separating = fitted.separating_columns(labelled)
    assert separating.index[0] == "z" and separating["z"] > 0.4 > 0.3 > separating["bit"] > separating["noise"]
    assert abs(separating[["noise", "colour"]]).max() < 0.05


def test_labels_that_may_be_wrong_count_once(labelled):
    """Where labels are as good as certain, intervals are as wide as those of the exact posterior of labelled rows."""
    y = np.array(["a", "b"])[np.arange(150) % 3 // 2]
    certain, doubted = (
        bg.LatentClassClassifier(label_noise=noise, random_state=0).fit(labelled, y).class_profiles().sort_index(axis=1)
        for noise in (None, LabelNoise(rate=1e-4, rows=1e4))
    )
    width, other = (p.xs("high", axis=1, level=1) - p.xs("low", axis=1, level=1) for p in (certain, doubted))
    assert 0.9 < (other / width).to_numpy().mean() < 1.1  # 0.71 if they counted twice
    apart = (certain - doubted).xs("mean", axis=1, level=1) / width
    assert np.abs(apart.to_numpy()).max() < 0.1


def test_rows_left_out_are_those_of_enumeration():
    """Eight rows: p(x_i | others) as a ratio of evidences that are sums over all labellings."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"z": rng.normal([*[-1.5] * 4, *[1.5] * 4]), "bit": rng.random(8) < 0.5})
    leaves = {"z": NormalInverseGamma(0.0, 0.1, 3.0, 3.0), "bit": BetaBernoulli(2.0, 2.0)}
    make = bg.LatentClassClassifier(features=leaves, classes=2, starts=4, random_state=0)
    whole = make.fit(X)
    found, level = whole.leave_one_out(), whole.log_evidence_
    exact = np.array([level - make.fit(X.drop(index=i)).log_evidence_ for i in range(8)])
    np.testing.assert_allclose(found.log_density, exact, atol=0.1)
    assert found.pareto_k.shape == (8,) and found.elpd == pytest.approx(found.log_density.sum())
    assert found.doubtful == (found.pareto_k > 0.7).sum() and np.isfinite(logsumexp(found.log_density))


def test_the_picture_has_a_line_for_each_class_and_boxes(fitted):
    ax = bg.plot.class_profiles(fitted, ax=Figure().add_subplot())
    texts = [text.get_text() for text in ax.get_xticklabels()]
    assert texts == ["bit", "colour blue", "colour red", "z", "noise"]
    assert [text.get_text().split()[0] for text in ax.get_legend().get_texts()] == ["a", "b"]
    (other,) = [axes for axes in ax.figure.axes if axes is not ax]
    assert len(other.patches) == 4


def test_the_command_writes_a_page_and_the_memberships(labelled, tmp_path):
    labelled.assign(patient=[f"p{i}" for i in range(150)]).to_csv(tmp_path / "table.csv", index=False)
    output = tmp_path / "found"
    given = (tmp_path / "table.csv", "--numbers", "1-2", "--starts", 2, "--id", "patient", "--output", output)
    code, told, err = run(*given, command="classes")
    assert (code, err) == (0, "") and "2 classes" in told
    member = pd.read_csv(output / "memberships.csv")
    assert list(member) == ["patient", "class", "P(0)", "P(1)"] and len(member) == 150
    page = (output / "report.html").read_text(encoding="utf-8")
    assert page.count("<img") == 2 and "<script" not in page
    assert '<div class="wide" tabindex="0"><table' in page and "prefers-color-scheme: dark" in page
    np.testing.assert_array_equal(bg.load(output / "model.safetensors").predict(labelled), member["class"])
    code, _, err = run(output / "memberships.csv", "--output", output, command="classes")
    assert code == 2 and "it is the file that is read" in err


def test_the_command_reads_a_folder_and_tells_how(labelled, tmp_path):
    (tmp_path / "rows").mkdir()
    for name, rows in {"a": labelled[:75], "b": labelled[75:]}.items():
        rows[["z", "noise"]].to_csv(tmp_path / "rows" / f"{name}.csv", sep=";", index=False)
    given = (tmp_path / "rows", "--numbers", "1", "--starts", 1, "--output", tmp_path / "found")
    code, told, err = run(*given, command="classes")
    assert (code, err) == (0, "") and "b.csv: fields apart by ';' alone" in told
    assert len(pd.read_csv(tmp_path / "found" / "memberships.csv")) == 150


def planted(seed=0, n=200, copied=0.0, columns="ABCDE"):
    """Answers of two classes; a share of the last is the one before, whatever the class."""
    rng = np.random.default_rng(seed)
    t = rng.random(n) < 0.4
    bits = rng.random((n, len(columns))) < np.where(t, 0.85, 0.2)[:, None]
    bits[:, -1] = np.where(rng.random(n) < copied, bits[:, -2], bits[:, -1])
    return pd.DataFrame(bits, columns=list(columns)), t, rng


def fit(X, **settings):
    usual = {"classes": 2, "starts": 4, "random_state": 0, "inference": "map"}
    return bg.LatentClassClassifier(**usual | settings).fit(X)


def test_a_planted_pair_is_the_first_of_columns_of_every_kind():
    X, t, rng = planted(copied=0.5)
    X["z"] = rng.normal(2.0 * t)
    X["w"] = 0.6 * X["z"] + rng.normal(size=200)
    X["n"] = rng.poisson(2.0 + 3.0 * t)
    X["price"] = np.exp(rng.normal(1.0 * t))
    X["die"] = pd.Categorical(np.where(rng.random(200) < 0.5, rng.integers(3, size=200), t).astype(str))
    X.loc[:9, "z"] = np.nan
    found = bivariate_residuals(fit(X, features={"price": "log", "n": "poisson"}), tables=39)
    assert set(found.index[:2]) == {("D", "E"), ("z", "w")} and (found["p"][:2] == 1 / 40).all()
    assert (found["residual"].iloc[:2] > 5).all() and len(found) == 10 * 9 / 2
    assert 0.3 < found["p"].iloc[2:].mean() < 0.7 and found.attrs["tables"] == "39 tables from the point estimate"


def test_a_residual_of_categories_is_the_one_of_pearson():
    X, _, _ = planted(3, copied=0.3)
    X["D"] = pd.Categorical(np.where(X["D"], "yes", np.where(X["E"], "no", "perhaps")))
    fitted = fit(X)
    params = fitted.posterior_.params
    found = bivariate_residuals(fitted, tables=1)["residual"]
    yes = params["bernoulli.probability"]
    names = [block.columns for block in fitted.schema_.blocks]
    assert names == [("A", "B", "C", "E"), ("D",)]
    share, three = params["classes.probability"], params["D.probability"]
    two = np.stack([1 - yes[:, 3], yes[:, 3]], axis=1)
    expected = 200 * np.einsum("k,ka,kb->ab", share, three, two)
    observed = pd.crosstab(X["D"], X["E"]).to_numpy()
    pearson = stats.chisquare(observed.ravel(), expected.ravel() * observed.sum() / expected.sum()).statistic
    assert found[("E", "D")] == pytest.approx(pearson / 2, rel=1e-6)


def test_draws_take_part_and_other_classifiers_are_refused():
    X, t, rng = planted(copied=0.4, columns="ABCFGHDE")
    fitted = fit(X)
    model, statistics = fitted.model_, fitted.statistics_
    exact = model.update(statistics.expected(model, statistics.start))
    fitted.posterior_ = ParameterDraws(model, exact.sample_parameters(rng, (1, 50)))
    found = bivariate_residuals(fitted, tables=19)
    assert found.index[0] == ("D", "E") and found.attrs["tables"] == "19 tables from draws of the posterior"
    numbers = pd.DataFrame(np.random.default_rng(0).normal(3.0 * t[:, None], size=(200, 2)), columns=["u", "v"])
    with pytest.raises(ValueError, match=r"columns .*u.*v.*is not for a NormalInverseWishart"):
        bivariate_residuals(fit(numbers, model="discriminant"))
    with pytest.raises(ValueError, match=r"columns .*is not for a StudentT"):
        bivariate_residuals(fit(numbers, features={"u": "student", "v": "student"}))
    with pytest.raises(ValueError, match="of rows without labels and weights"):
        bivariate_residuals(bg.LatentClassClassifier(classes=2, random_state=0).fit(X, sample_weight=np.arange(200)))
    refuses(lambda: bivariate_residuals(fit(X, classes=1)), "two classes or more")


@pytest.mark.slow
def test_p_of_independent_columns_is_uniform():
    """One pair of each of 150 tables; p takes the values 1/20, 2/20, ..."""
    p = [bivariate_residuals(fit(planted(seed)[0]), tables=19)["p"][("A", "B")] for seed in range(150)]
    low = sum(value <= 0.1 for value in p)
    assert stats.binomtest(low, 150, 0.1).pvalue > 1e-4
    assert abs(np.mean(p) - 0.525) < 4 * np.sqrt(1 / 12 / 150)
