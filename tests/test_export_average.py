"""An average exported as JavaScript answers as the average itself.

``python tests/test_export_average.py`` writes docs/reliability/page-intervals.csv, of the intervals of six tables.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp
from scorers import assert_equal, counts, hard, records, scorer
from sklearn.datasets import load_breast_cancer, load_wine

import bayesgen as bg
from bayesgen.inspection import next_measurement

TABLE = Path(__file__).parents[1] / "docs" / "reliability" / "page-intervals.csv"


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


def check(classifier, X: pd.DataFrame, count, rng):
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
        for known in (row, X.iloc[[5]], X.loc[[6], ["x2"]].reindex(columns=X.columns), row.map(lambda value: None)):
            assert_drawn_alike(classifier, made, known)
        near = hard(X, 20, rng, far=())
        lows, highs = intervals(made, near, draws=400).transpose(2, 0, 1)
        p = classifier.predict_proba(near)
        assert ((lows <= p + 1e-12) & (p - 1e-12 <= highs) & (highs <= 1) & (lows >= 0)).all()
        priors = np.array([0.6, 0.3, 0.1])[: len(classifier.classes_)]
        priors = priors / priors.sum()
        told = made.proba(rows[:20], priors=priors.tolist())
        assert np.abs(told - classifier.predict_proba(rows[:20], priors=priors)).max() < 1e-9


def intervals(made, rows, **options) -> np.ndarray:
    """Return the intervals (n, K, 2) that a script tells of rows."""
    asked = "rows.map((row) => predictProbaInterval(row, options))"
    return np.array(made.ask(asked, rows=records(rows), options=options), float)


def assert_drawn_alike(classifier, made, row, size: int = 2000):
    """Hold the class probabilities of a row under draws against Python's, as two samples of one distribution."""
    theirs = classifier.predict_proba_draws(row, size)[:, 0]
    drawn = f"drawnMixture({size}, 1)"
    each = f"Array.from({{ length: {size} }}, (_, s) => averaged(about, null, s, s + 1))"
    mine = np.exp(made.ask(f"[given(complete(row), {drawn})].map((about) => {each})[0]", row=records(row)[0]))
    for k in range(mine.shape[1]):
        same: Any = ks_2samp(mine[:, k], theirs[:, k])
        assert same.pvalue > 1e-6, (k, row)


def family(name, rng):
    """An average of some families, with gaps at the fit too, and its rows."""
    trees = name.startswith("trees")  # 1,000 rows are the fewest that all boosted trees take
    X, y = table(rng, 1001 if trees else 150, classes=2 if name == "trees of sums" else 3)
    X.loc[::11, "x0"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bg.AveragedClassifier(members=FAMILIES[name], random_state=0).fit(X, y), X


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


@pytest.mark.compiles
def test_many_categories_are_scored_and_drawn_as_in_python():
    """Counts of many pairs are packed as whole numbers; trees over sets of levels have more nodes than leaves."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    level = np.minimum(rng.integers(0, 4, (300, 20)) + (y[:, None] & (np.arange(20) % 3 == 0)), 3)
    X = pd.DataFrame(level).add_prefix("q").map("v{}".format)
    members = ["category", "screened", "boosted"]
    classifier = bg.AveragedClassifier(members=members, random_state=0).fit(X, y)
    with scorer(classifier) as made:
        assert_equal(classifier, made, hard(X, 100, rng), apart=False)
        assert_drawn_alike(classifier, made, X.iloc[[0]])
        assert_drawn_alike(classifier, made, X.iloc[[1]].assign(q3=None, q7=None))


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
        with pytest.raises(ValueError, match="column 'x2'") as caught:
            classifier.predict_proba_interval(X.iloc[[0]].assign(x0=np.nan, x2=1e300))
        assert made.ask(told.replace("nextMeasurement", "predictProbaInterval"), row={"x2": 1e300}) == str(caught.value)
        assert_drawn_alike(classifier, made, X.iloc[[7]])
        assert_drawn_alike(classifier, made, X.iloc[[8]].assign(x0=np.nan, visits=np.nan, colour=None))


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


# -- the ends of intervals ---------------------------------------------------------------------------------------------


def penguins():
    X = bg.data.load("penguins")
    return X, X.pop("species")


def gaps_and_categories():
    rng = np.random.default_rng(3)
    X, y = table(rng, 300, classes=2)
    X["grade"] = X["grade"].map("g{}".format)
    return X.mask(rng.random(X.shape) < 0.15), y


def forty_rows():
    wine: Any = load_wine(as_frame=True)
    X, y = wine.data, wine.target
    chosen = np.random.default_rng(0).permutation(len(X))[:40]
    return X.iloc[chosen], y.iloc[chosen]


ENDS: dict[str, Any] = {
    "penguins": penguins,
    "breast cancer": lambda: load_breast_cancer(return_X_y=True, as_frame=True),
    "gaps and categories": gaps_and_categories,
    "forty rows": forty_rows,
    "wine": lambda: load_wine(return_X_y=True, as_frame=True),
    "three classes": lambda: table(np.random.default_rng(4), 150),
}


@pytest.mark.compiles
def test_an_interval_far_from_all_rows_holds_the_probability_beside_it():
    X = bg.data.load("penguins")
    y = X.pop("species")
    rows = X[:4].assign(
        **dict.fromkeys(X.select_dtypes("number"), np.nan), **{name: None for name in ("island", "sex")}
    )
    rows["bill_length_mm"] = [-3.0, 5.0, 100.0, 1200.0]
    classifier = bg.AveragedClassifier().fit(X, y)
    with scorer(classifier) as made:
        found = intervals(made, rows)
    p = classifier.predict_proba(rows)
    assert (found[..., 0] <= p + 1e-9).all() and (p <= found[..., 1] + 1e-9).all()


def ends(name: str, count: int = 30, seeds: int = 40) -> dict[str, float]:
    """Compare the ends of a page's intervals with Python's, in the mean of some seeds, and one of Python's with these.

    The shortest of nearly equal intervals is sought, so those of 1,000 draws are off by some hundredths where wide.
    """
    X, y = ENDS[name]()
    rng = np.random.default_rng(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = bg.AveragedClassifier(random_state=0).fit(X, y)
    rows = X.iloc[rng.permutation(len(X))[:count]].astype(object)
    rows = rows.where(rng.random(rows.shape) < np.linspace(0.4, 1, len(rows))[:, None], None)
    rows = rows.astype({name: float for name in X if X[name].dtype.kind == "f"})
    with scorer(classifier) as made:
        found = intervals(made, rows)
        spread = made.ask("JSON.stringify([model.members.spread, model.members.looseness, model.members.total]).length")
    p, usual = classifier.predict_proba(rows), classifier.predict_proba_interval(rows)
    several = (classifier.set_params(random_state=seed) for seed in range(1, seeds + 1))
    sampled = np.stack([one.predict_proba_interval(rows) for one in several])
    sure, error = sampled.mean(0), sampled.std(0, ddof=1) / seeds**0.5
    apart, apart_usual = (np.abs(one - sure).max((1, 2)) for one in (found, usual))
    return {
        "rows": len(rows),
        "mean width": np.diff(sure).mean(),
        "p outside": float(((p < found[..., 0] - 1e-12) | (p > found[..., 1] + 1e-12)).sum()),
        "ends apart, mean": np.abs(found - sure).mean(),
        "median of the largest": np.median(apart),
        "largest": apart.max(),
        "error of Python's mean there": error.flat[np.abs(found - sure).argmax()],
        "largest of one in Python": apart_usual.max(),
        "kB for intervals": spread / 1000,
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDS)
def test_a_page_has_the_intervals_of_python(name):
    said = ends(name)
    print(name, said)
    assert said["p outside"] == 0
    assert said["largest"] < 0.02 + 2 * said["error of Python's mean there"]  # what it is compared with is drawn, too
    assert said["kB for intervals"] < 500


if __name__ == "__main__":
    pd.DataFrame({name: ends(name) for name in ENDS}).T.round(4).rename_axis("table").to_csv(TABLE)
