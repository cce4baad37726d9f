"""Regressions, exported as JavaScript: probabilities, evidence and intervals of every link, and the words for gaps."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_ndtr
from scorers import counts, records, scorer

import bayesgen as bg
from bayesgen.inspection.probabilities import shifted, shortest
from bayesgen.posterior import ParameterDraws

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 120)
X = pd.DataFrame({f"x{j}": RNG.normal(Y * (j + 1) * 0.7, 1 + j) for j in range(2)})
X["toString"] = np.array(["red", "it's", "</script>"])[(Y + RNG.integers(0, 2, 120)) % 3]
X["grown"] = RNG.random(120) < (Y + 1) / 4
LABELS = np.array(["a", "b", "c"])[Y]
ORDER = {"order": ["a", "b", "c"]}
CASES = {
    "logistic": (bg.LogisticClassifier, {}, LABELS == "a"),
    "softmax": (bg.LogisticClassifier, {}, LABELS),
    "pinned": (bg.LogisticClassifier, {"symmetric": False, "standardize": False}, LABELS),
    "probit": (bg.ProbitClassifier, {}, LABELS == "a"),
    "ordered": (bg.OrderedClassifier, ORDER, LABELS),
    "ordered probit": (bg.OrderedClassifier, ORDER | {"link": "probit"}, LABELS),
}


def rows_of(count, rng):
    """Rows of the table, in which some numbers are tiny, huge, or far out: one a row, since two may cancel."""
    rows = X.iloc[rng.integers(0, len(X), count)].reset_index(drop=True)
    chosen = rng.random(count)
    for place, column in enumerate(("x0", "x1")):
        wild = (chosen >= 0.1 * place) & (chosen < 0.1 * (place + 1))
        rows[column] = rows[column].mask(wild, rng.choice([1e-300, 1e300, -1e300, 0.0, 40.0, -40.0], count))
    return rows


def check(classifier, count):
    """Hold probabilities, the evidence of a row and its interval against Python's."""
    rows = rows_of(count, np.random.default_rng(1))
    log_p = classifier.predict_log_proba(rows)
    with scorer(classifier) as made:
        found = made.proba(rows, log=True)
        assert np.array_equal(np.isfinite(found), np.isfinite(log_p))
        apart_log = (np.abs(found - log_p) / (1 + np.abs(log_p).max(1, keepdims=True))).max()
        apart_p = np.abs(made.proba(rows) - np.exp(log_p)).max()
        print(f"{count} rows: |dp| {apart_p:.1e}, |d log p| {apart_log:.1e} of 1 + the largest |log p|")
        assert max(apart_log, apart_p) < 1e-12
        row = X.iloc[[0]]
        terms = {term["column"]: term["contribution"] for term in made.ask("explain(row)", row=records(row)[0])}
        assert terms == pytest.approx(classifier.explain(row, row=0).terms, abs=1e-11)
        between = made.ask("predictProbaInterval(row)", row=records(row)[0])
        assert made.ask("[typicality(row), nextMeasurement(row)]", row=records(row)[0]) == [None, None]
        if classifier.posterior_.kind == "point":
            assert between is None
        else:
            drawn = classifier.model_.log_likelihood_rows(classifier.posterior_.flat, classifier.fitted_.read(row))
            p = classifier.predict_proba(row)
            expected = shortest(shifted(drawn.swapaxes(1, 2), p), p, 0.9)
            assert np.array(between) == pytest.approx(expected[0], abs=1e-9)


@counts(300)
@pytest.mark.parametrize("name", CASES)
def test_points(name, count):
    cls, options, y = CASES[name]
    check(cls(**options, inference="map").fit(X, y), count)


def drawn(classifier, count):
    """Give a classifier at a point draws around it, as a sampler would."""
    rng, point = np.random.default_rng(3), classifier.posterior_
    samples = {site: v + 0.3 * rng.normal(size=(1, count, *v.shape)) for site, v in point.params.items()}
    samples |= {site: np.sort(v) for site, v in samples.items() if site == "cuts"}
    classifier.posterior_ = ParameterDraws(point.model, samples)
    return classifier


@counts(100)
@pytest.mark.parametrize("name", CASES)
def test_draws(name, count):
    cls, options, y = CASES[name]
    check(drawn(cls(**options, inference="map").fit(X, y), 200), count)


def test_many_draws_are_thinned_evenly_and_told():
    classifier = drawn(bg.LogisticClassifier(inference="map").fit(X, LABELS), 1000)
    with scorer(classifier) as made:
        assert made.ask("model.about.draws") == [400, 1000]
        classifier.posterior_ = classifier.posterior_.thinned(400)
        assert made.proba(X) == pytest.approx(classifier.predict_proba(X), abs=1e-12)


def test_the_normal_distribution_function_in_both_tails():
    x = np.concatenate([np.linspace(-40, 10, 2001), [-1e8, -1e-300, 0.0, 1e-300, 38.0, -3.0, np.nextafter(-3.0, -4.0)]])
    with scorer(bg.ProbitClassifier(inference="map").fit(X, LABELS == "a")) as made:
        assert made.ask("x.map(logNormalBelow)", x=x.tolist()) == pytest.approx(log_ndtr(x), rel=1e-12, abs=1e-300)


def test_gaps_and_other_values_are_refused_in_the_words_of_python():
    told = "(() => { try { predictProba(row); return null; } catch (e) { return [e.message, e.column]; } })()"
    classifier = bg.LogisticClassifier(inference="map").fit(X, LABELS)
    row = X.iloc[[0]]
    with scorer(classifier) as made:
        for column, value in {"x1": None, "toString": "blue", "grown": 2, "x0": np.inf}.items():
            with pytest.raises(ValueError) as caught:
                classifier.predict_proba(row.assign(**{column: [value]}))
            given = "{...row, [name]: Infinity}" if value == np.inf else "{...row, [name]: value}"
            written = None if value == np.inf else value
            said = made.ask(told.replace("(row)", f"({given})"), row=records(row)[0], name=column, value=written)
            assert said == [str(caught.value), column]
        assert made.ask("remarks({x0: 1})") == []  # a single entry can be checked before the others are there
        with pytest.raises(Exception, match="no shares of the classes"):
            made.ask("predictProba(row, {priors: [.2, .3, .5]})", row=records(row)[0])


def test_gaps_that_python_fills_are_filled():
    classifier = bg.OrderedClassifier(**ORDER, inference="map", missing="mean", unseen="missing").fit(X, LABELS)
    rng = np.random.default_rng(2)
    rows = rows_of(300, rng).astype({"grown": object})
    rows = rows.mask(pd.DataFrame(rng.random(rows.shape) < 0.2, columns=rows.columns), None)
    rows.loc[::9, "toString"] = "blue"
    with scorer(classifier) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.abs(made.proba(rows) - classifier.predict_proba(rows)).max() < 1e-12
        assert "['blue'] in 1 row" in made.ask("remarks(row)", row={"toString": "blue"})[0]
        nothing = pd.DataFrame({column: [None] for column in X})
        assert made.ask("predictProba({})") == pytest.approx(classifier.predict_proba(nothing)[0], abs=1e-12)
