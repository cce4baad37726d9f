"""What classes are that nobody named: profiles, memberships, rows left out, and the command that reports them."""

import numpy as np
import pandas as pd
import pytest
from commands import run
from matplotlib.figure import Figure
from scipy.special import logsumexp

import bayesgen as bg
from bayesgen.models import BetaBernoulli, LabelNoise, NormalInverseGamma


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    t = np.arange(150) % 3 // 2  # two thirds are 0
    frame = pd.DataFrame({"z": rng.normal(5.0 * t), "noise": rng.normal(size=150)})
    return frame.assign(bit=rng.random(150) < np.array([0.2, 0.9])[t], colour=rng.choice(["red", "blue"], 150))


@pytest.fixture(scope="module")
def fitted(table):
    return bg.LatentClassClassifier(classes=["a", "b"], starts=4, random_state=0).fit(table)


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
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 95"):
        fitted.class_profiles(95)


def test_a_summary_has_the_intervals_of_the_profiles(fitted):
    shown, profiles = fitted.summary(), fitted.class_profiles()
    low, high = shown.intervals["z", "mean"][1]
    assert (low, high) == (profiles.loc[("z", "mean"), ("b", "low")], profiles.loc[("z", "mean"), ("b", "high")])
    assert f"[{low:.3g}, {high:.3g}]" in repr(shown) and low < shown.values["z", "mean"][1] < high
    share = shown.intervals["class", "probability"][0]
    assert f"[{share[0]:.3g}, {share[1]:.3g}]" in shown._repr_html_()


def test_typical_rows_are_in_the_middle_of_their_class(fitted, table):
    found = fitted.typical_rows(table.set_axis(table.index + 100), count=4)
    assert len(found) == 8 and (found["membership"] > 0.99).all()
    assert (found.loc["b", "z"] - 5).abs().max() < 1 and found.loc["b", "bit"].all() and not found.loc["a", "bit"].any()
    z = fitted.posterior_.params["gaussian.mean"][1, 0]
    assert found.index[0][1] >= 100 and abs(found.loc["b", "z"] - z).mean() < abs(table["z"][2::3] - z).mean() / 2
    assert fitted.typical_rows(table[:2]).shape == (2, 5)
    with pytest.raises(ValueError, match="count must be"):
        fitted.typical_rows(table, count=0)


def test_memberships_are_the_surer_the_farther_from_the_border(fitted, table):
    rows = pd.DataFrame({"z": [0.0, 2.5], "noise": 0.0, "bit": pd.array([pd.NA] * 2, "boolean"), "colour": "red"})
    found = fitted.membership(rows)
    width = found["a", "high"] - found["a", "low"]
    assert width[0] < 0.05 < width[1]
    np.testing.assert_allclose(found.xs("mean", axis=1, level=1).sum(axis=1), 1.0)
    separating = fitted.separating_columns(table)
    assert separating.index[0] == "z" and separating["z"] > 0.4 > 0.3 > separating["bit"] > separating["noise"]
    assert abs(separating[["noise", "colour"]]).max() < 0.05


def test_labels_that_may_be_wrong_count_once(table):
    """Where labels are as good as certain, intervals are as wide as those of the exact posterior of labelled rows."""
    y = np.array(["a", "b"])[np.arange(150) % 3 // 2]
    certain, doubted = (
        bg.LatentClassClassifier(label_noise=noise, random_state=0).fit(table, y).class_profiles().sort_index(axis=1)
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


def test_the_command_writes_a_page_and_the_memberships(table, tmp_path):
    table.assign(patient=[f"p{i}" for i in range(150)]).to_csv(tmp_path / "table.csv", index=False)
    output = tmp_path / "found"
    given = (tmp_path / "table.csv", "--numbers", "1-2", "--starts", 2, "--id", "patient", "--output", output)
    code, told, err = run(*given, command="classes")
    assert (code, err) == (0, "") and "2 classes" in told
    member = pd.read_csv(output / "memberships.csv")
    assert list(member) == ["patient", "class", "P(0)", "P(1)"] and len(member) == 150
    page = (output / "report.html").read_text(encoding="utf-8")
    assert page.count("<img") == 2 and "<script" not in page
    assert '<div class="wide" tabindex="0"><table' in page and "prefers-color-scheme: dark" in page
    np.testing.assert_array_equal(bg.load(output / "model.safetensors").predict(table), member["class"])
    code, _, err = run(output / "memberships.csv", "--output", output, command="classes")
    assert code == 2 and "it is the file that is read" in err


def test_the_command_reads_a_folder_and_tells_how(table, tmp_path):
    (tmp_path / "rows").mkdir()
    for name, rows in {"a": table[:75], "b": table[75:]}.items():
        rows[["z", "noise"]].to_csv(tmp_path / "rows" / f"{name}.csv", sep=";", index=False)
    given = (tmp_path / "rows", "--numbers", "1", "--starts", 1, "--output", tmp_path / "found")
    code, told, err = run(*given, command="classes")
    assert (code, err) == (0, "") and "b.csv: fields apart by ';' alone" in told
    assert len(pd.read_csv(tmp_path / "found" / "memberships.csv")) == 150
