"""An average exported as JavaScript answers as the average itself."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scorers import assert_equal, counts, hard, records, scorer

import bayesgen as bg
from bayesgen.inspection import next_measurement


def table(rng, n, numbers=4, classes=3) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, one of them skewed, a column of text, a bool and few grades, of classes that overlap."""
    y = rng.integers(0, classes, n)
    X = pd.DataFrame({f"x{j}": rng.normal(y * (j % 4 + 1) * 0.4, 1 + j) for j in range(numbers)})
    X["x1"] = np.exp(X["x1"] / 3)
    X["colour"] = np.array(["red", "it's", "</a>"])[(y + rng.integers(0, 3, n)) % 3]
    X["wet"] = rng.random(n) < (y + 1) / (classes + 1)
    X["grade"] = (y + rng.integers(0, 3, n)).astype(float)
    return X, np.array([f"k{k}" for k in range(classes)])[y]


FAMILIES = {
    "gaussian": ["gaussian"],
    "mixture": ["mixture"],
    "products": ["gaussian", "category"],
    "softmax": ["softmax", "category"],
    "screened and coded": ["screened", "coded"],
    "trees": ["forest", "boosted"],
    "trees of sums": ["boosted"],
}


def check(classifier, X, count, rng):
    """Hold probabilities against Python's; and of a row with gaps its evidence and the values of what it lacks."""
    rows = hard(X, count, rng)
    rows.loc[::97, "colour"] = "never seen"
    with scorer(classifier) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_equal(classifier, made, rows, apart=False)
        row = X.iloc[[3]].astype(object)
        row.iloc[0, [0, 4, 5]] = None
        given = records(row)[0]
        terms = {t["column"]: t["contribution"] for t in made.ask("explain(row)", row=given)}
        assert terms == pytest.approx(classifier.explain(row, row=0).terms, abs=1e-9)
        if classifier.average_.density_weights.any():
            values = next_measurement(classifier, row).iloc[0].dropna().to_dict()
            found = {f["column"]: f["value"] for f in made.ask("nextMeasurement(row)", row=given)}
            assert found == pytest.approx(values, abs=1e-6)
            assert made.ask("predictProbaInterval(row)", row=given) is None
        priors = np.array([0.6, 0.3, 0.1])[: len(classifier.classes_)]
        priors = priors / priors.sum()
        told = made.proba(rows[:20], priors=priors.tolist())
        assert np.abs(told - classifier.predict_proba(rows[:20], priors=priors)).max() < 1e-9


def family(name, rng):
    """An average of some families, with gaps at the fit too, and its rows."""
    trees = name.startswith("trees")  # 1,000 rows are the fewest that all boosted trees take
    X, y = table(rng, 1001 if trees else 150, classes=2 if name == "trees of sums" else 3)
    X.loc[::11, "x0"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bg.AveragedClassifier(members=FAMILIES[name]).fit(X, y), X


@counts(200)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(f, marks=[pytest.mark.compiles] * (f in ("trees", "trees of sums", "screened and coded")))
        for f in FAMILIES
    ],
)
def test_each_family_is_scored_as_in_python(name, count):
    rng = np.random.default_rng(0)
    check(*family(name, rng), count, rng)


@counts(200)
def test_leaves_dates_constants_and_shares_of_another_place(count):
    rng = np.random.default_rng(0)
    X, y = table(rng, 150)
    code = np.array([int(label[1]) for label in y])
    X = X.assign(visits=rng.poisson(1 + 2 * code), bill=np.exp(X["x0"] / 3), same=2.5)
    X["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 150), unit="D")
    features = {"visits": "poisson", "bill": "log", "day": "date", "wet": "drop"}
    classifier = bg.AveragedClassifier(members=["gaussian", "category"], features=features, priors=[0.2, 0.3, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit(X, y)
    X["day"] = X["day"].dt.strftime("%Y-%m-%d")
    rows = hard(X, count, rng, far=(1e-300, 1e300))
    with scorer(classifier) as made:
        assert_equal(classifier, made, rows, apart=False)
        assert made.ask("model.priors") == pytest.approx([0.2, 0.3, 0.5])
        assert made.ask("typicality(row)", row={"x0": 1.0, "same": 3.0}) == 0
        about = made.ask("model.about")
        assert (about["rows"], about["score"]) == (150, pytest.approx(-classifier.scores_["nested"]))
        told = "(() => { try { nextMeasurement(row); return null; } catch (e) { return e.message; } })()"
        with pytest.raises(ValueError, match="column 'x2'") as caught:
            next_measurement(classifier, X.iloc[[0]].assign(x0=np.nan, x2=1e300))
        assert made.ask(told, row={"x2": 1e300}) == str(caught.value)


def test_typicality_ranks_as_in_python_among_the_rows_that_the_file_ships():
    rng = np.random.default_rng(0)
    X, y = table(rng, 150)
    X = X[["x0", "x1", "wet"]]
    classifier = bg.AveragedClassifier(members=["gaussian", "category"]).fit(X, y)
    with scorer(classifier) as made:
        shown = pd.DataFrame(made.ask("drawnRows()"), columns=list(X)).astype({"wet": bool})
        mine, theirs = classifier.score_samples(X[:20]), classifier.score_samples(shown)
        ranks = ((theirs[:, None] < mine).sum(0) + 0.5) / (len(theirs) + 1)
        assert made.ask("rows.map(typicality)", rows=records(X[:20])) == pytest.approx(ranks, abs=0.6 / len(theirs))


def test_a_script_that_would_be_too_large_is_refused(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = table(rng, 150)
    classifier = bg.AveragedClassifier(members=["forest", "gaussian"]).fit(X, y)
    monkeypatch.setattr(sys.modules["bayesgen.export.script"], "_LARGEST", 100_000)
    with pytest.raises(
        ValueError, match=r"AveragedClassifier makes a script of .* MB.*: fit it with members='generative'"
    ):
        bg.export.script(classifier)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 30])
def test_all_families_and_many_classes_on_ten_thousand_rows(classes):
    rng = np.random.default_rng(1)
    X, y = table(rng, 600, classes=classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = bg.AveragedClassifier(random_state=0).fit(X, y)
        with scorer(classifier) as made:
            assert_equal(classifier, made, hard(X, 10_000, rng), apart=False)
