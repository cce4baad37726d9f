"""The effect of each value of one row on the odds: terms that add up, for every classifier; decisions by name."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run
from matplotlib.figure import Figure
from refusals import refuses
from scipy.special import expit, logit, softmax

import bayesgen as bg
from bayesgen import data, decision, plot
from bayesgen.models import BetaBinomial

X = data.load("penguins")
y = X.pop("species")
NUMBERS = X.select_dtypes("number").dropna()
CASES = {
    "naive Bayes": (bg.NaiveBayesClassifier({"year": "drop"}), X, y),
    "averaged": (bg.AveragedClassifier(members=["gaussian", "category", "softmax"]), X[::8], y[::8]),
    "full": (bg.GaussianDiscriminantClassifier(), NUMBERS, y[NUMBERS.index]),
    "logistic": (bg.LogisticClassifier(inference="map"), X.dropna(), y[X.dropna().index]),
    "ordered": (bg.OrderedClassifier(inference="map"), NUMBERS, y[NUMBERS.index].str.len()),
    "shared": (bg.GaussianDiscriminantClassifier(shared=True), NUMBERS.to_numpy(), y[NUMBERS.index]),
}


@pytest.mark.parametrize("name", [pytest.param(c, marks=[pytest.mark.compiles] * (c == "averaged")) for c in CASES])
def test_terms_add_up_to_the_log_odds(name):
    classifier, rows, labels = CASES[name]
    row = rows[30:31]
    known = classifier.fit(rows, labels).classes_.tolist()
    for k, label in enumerate(known):
        said, p = classifier.explain(row, 0, label), classifier.predict_proba(row)[0, k]
        assert said.probability == pytest.approx(p)
        assert said.prior + sum(said.terms.values()) == pytest.approx(logit(p), abs=1e-6)
        assert np.isnan(said.interval).all() if "map" in str(classifier) else said.interval[0] <= said.interval[1]
    assert classifier.explain(rows, row=np.int64(30)).label == classifier.predict(row)[0]


@pytest.mark.compiles
def test_terms_of_a_regression_are_its_columns_times_their_coefficients():
    rows, labels = X.dropna(), y[X.dropna().index]
    softmax_ = bg.LogisticClassifier(inference="map").fit(rows, labels)
    terms = softmax_.explain(rows[:9])
    assert terms.dims == ("row", "class", "term") and terms.term.values.tolist() == ["prior", *rows.columns]
    np.testing.assert_allclose(softmax(terms.sum("term").values, axis=1), softmax_.predict_proba(rows[:9]), rtol=1e-9)
    length = softmax_.coef_[:, 3] * (rows["bill_length_mm"].iloc[0] - rows["bill_length_mm"].mean())
    np.testing.assert_allclose(terms.sel(term="bill_length_mm")[0], length - length.mean(), rtol=1e-9)
    two = labels != "Gentoo"
    plain = bg.LogisticClassifier(inference="map", standardize=False).fit(rows[two], labels[two])
    said, terms = plain.explain(rows, 4, "Chinstrap"), plain.explain(rows[4:5])[0]
    for column, term in said.terms.items():
        assert term == pytest.approx(float(terms.sel({"term": column}).diff("class")[0]), abs=1e-9)
    ordered = bg.OrderedClassifier(order=sorted(set(labels)), inference="map").fit(rows, labels)
    terms, above = ordered.explain(rows[:9]), 1 - ordered.predict_proba(rows[:9]).cumsum(1)[:, :-1]
    assert terms.dims == ("row", "higher than", "term")
    np.testing.assert_allclose(expit(terms.sum("term").values), above, rtol=1e-6)


def test_two_classes_of_naive_bayes_have_the_terms_of_explain():
    two = y != "Gentoo"
    classifier = bg.NaiveBayesClassifier().fit(X[two], y[two])
    row = X[two][5:6]
    said, terms = classifier.explain(row, 0, "Adelie"), classifier.explain(row)[0]
    want = (terms.sel({"class": "Adelie"}) - terms.sel({"class": "Chinstrap"})).to_series()
    for column, term in said.terms.items():
        assert term == pytest.approx(want[column], abs=1e-9)


@pytest.mark.parametrize("row", [-1, 12, True, 1.0, None])
def test_a_row_is_named_by_its_place(row):
    classifier = bg.NaiveBayesClassifier().fit(X, y)
    with pytest.raises(ValueError, match="give row=" if row is None else "place of a row of X, from 0 to 11"):
        classifier.explain(X[:12], row, "Adelie")


@pytest.mark.parametrize("inference", ["map", "ml"])
def test_a_class_that_a_point_estimate_rules_out_has_infinite_terms(inference):
    """Without a warning of NumPy, and without NaN: a value tells nothing more of a class that is certain already."""
    rows = pd.DataFrame({"bit": [1, 1, 1, 0] + 4 * [0], "word": [*"uuvvwwww"], "x": [0.1, 4, 2, 6, 1, 5, 3, 7]})
    classifier = bg.NaiveBayesClassifier({"bit": "bernoulli"}, inference=inference).fit(rows, [*"aaaabbbb"])
    terms, said = classifier.explain(rows), classifier.explain(rows, row=0)
    assert terms.sel({"class": "b"})[0].isin([-np.inf]).sum() == 2 and not terms.isnull().any()
    x = np.diff(classifier.predict_log_proba(rows[:1].assign(bit=np.nan, word=None))[0])[0]
    assert (said.label, said.prior, said.probability) == ("a", 0.0, 1.0)
    assert said.terms == pytest.approx({"bit": np.inf, "word": np.inf, "x": -x}, abs=1e-12)
    one = classifier.explain(rows, row=3).terms  # a 0 is known before the word, and after it
    assert one["bit"] == pytest.approx(np.log(1 / 4)) and one["word"] == np.inf and np.isfinite(one["x"])
    ax = plot.evidence(said, ax=Figure().subplots())
    assert np.isfinite(ax.get_xlim()).all() and len({bar.get_width() for bar in ax.patches}) == 3


@pytest.mark.parametrize("as_table", [False, True])
def test_a_word_of_a_bag_is_told_by_its_count(as_table):
    counts = np.array([[2, 0, 1], [1, 0, 0], [0, 3, 1], [0, 1, 0]])

    def table(rows):
        return pd.DataFrame(rows, columns=["now", "dear", "the"]) if as_table else np.array(rows)

    classifier = bg.NaiveBayesClassifier("multinomial").fit(table(counts), [1, 1, 0, 0])
    said = classifier.explain(table(counts), row=0)
    log_p = classifier.predict_log_proba(table([[2, 0, 0], [0, 0, 1], [2, 0, 1]]))
    now, dear, the = said.terms.values()
    assert dear == 0 and now + the == pytest.approx(logit(said.probability) - said.prior)
    alone, last, both = np.diff(log_p)[:, 0]
    assert now == pytest.approx((alone + both - last) / 2)  # told first, and told after "the"
    nothing = classifier.explain(table([[np.nan] * 3]), row=0)
    assert set(nothing.terms.values()) == {0.0} and set(nothing.values.values()) == {None}


def test_heads_are_told_given_their_tosses():
    rows = pd.DataFrame({"heads": [1.0, 2, 3, 4], "tosses": [5, 5, 5, 5], "size": [1.0, 2, 3, 4]})
    classifier = bg.NaiveBayesClassifier({("heads", "tosses"): BetaBinomial(1, 1)}).fit(rows, [0, 0, 1, 1])
    said, terms = classifier.explain(rows, row=0), classifier.explain(rows[:1])[0].diff("class")[0].to_series()
    assert said.terms["tosses"] == 0
    assert -said.terms["heads"] == pytest.approx(terms["heads+tosses"])
    assert -said.terms["size"] == pytest.approx(terms["size"])


def test_rows_of_polars_have_the_same_terms():
    polars = pytest.importorskip("polars")
    table = polars.from_pandas(X)
    said = bg.NaiveBayesClassifier().fit(table, y).explain(table, row=4)
    assert said.terms == pytest.approx(bg.NaiveBayesClassifier().fit(X, y).explain(X, row=4).terms)


def test_the_picture_says_values_and_factors():
    classifier = bg.NaiveBayesClassifier().fit(X, y)
    said = classifier.explain(X, row=3)  # a row with gaps
    ax = plot.evidence(said, most=2, ax=Figure().subplots())
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0] == "prior" and names[-1] == "5 other columns"
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(said.prior + sum(said.terms.values()))
    assert "90 % interval" in ax.get_title()
    assert said.terms["bill_length_mm"] == pytest.approx(0, abs=1e-9) and said.values["bill_length_mm"] is None


LOSS = pd.DataFrame({"treat": [1.0, 0.0], "wait": [0.0, 10.0]}, index=["well", "ill"])


def test_actions_by_name_to_the_end():
    probability = np.array([[0.01, 0.99], [0.4, 0.6], [0.15, 0.85]])
    found = decision.act(probability, LOSS, ["ill", "well"], reject_cost=0.5)
    assert found["action"].tolist() == ["wait", "ask", "ask"]
    truth = ["well", "ill", "well"]
    assert decision.risk(truth, found["action"], LOSS, reject_cost=0.5) == pytest.approx(1 / 3)
    other = decision.act(probability, LOSS.iloc[::-1], ["ill", "well"])  # the order of the index says nothing
    assert other["action"].tolist() == ["wait", "treat", "treat"]
    ax = plot.confusion(truth, found["action"], LOSS, reject_cost=0.5, ax=Figure().subplots())
    assert [label.get_text() for label in ax.get_xticklabels()] == ["treat", "wait", "asked"]
    assert ax.get_title() == "mean loss 0.333"
    refuses(lambda: plot.confusion(truth, found["action"], LOSS, ax=Figure().subplots()), "reject_cost is needed")
    refuses(lambda: decision.act(probability, LOSS, ["ill", "dead"]), "one row for each of the classes")


@pytest.mark.compiles
@pytest.mark.usefixtures("few_members")
def test_from_the_command_line(tmp_path):
    table = data.load("penguins")[::4]
    table.to_csv(tmp_path / "p.csv", index=False)
    model = tmp_path / "m.safetensors"
    assert run(tmp_path / "p.csv", "--target", "species", "--output", model, command="fit")[0] == 0
    call = (model, tmp_path / "p.csv", "--row", 50)
    code, out, err = run(*call, "--output", tmp_path / "e.png", command="explain")
    assert (
        (code, err) == (0, "")
        and "Row 50: P(" in out
        and "90 % interval" in out
        and "before any value is known 0." in out
        and "Together" in out
    )
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
    point = tmp_path / "point.safetensors"
    options = "--target", "species", "--output", point, "--model", "logistic"
    assert run(tmp_path / "p.csv", *options, command="fit")[0] == 0
    said = run(point, tmp_path / "p.csv", "--row", 50, command="explain")[1]
    assert "fitted at a point: no interval (--inference laplace gives one)" in " ".join(said.split())
    told = json.loads(run(*call, "--json", "--class", "Adelie", command="explain")[1])
    assert told["class"] == "Adelie" and told["columns"]["island"]["value"] == table["island"].iloc[50]
    assert "--class: no class 'Emu'" in run(*call, "--class", "Emu", command="explain")[2]
    assert f"the file has the rows 0 to {len(table) - 1}" in run(*call[:3], len(table), command="explain")[2]

    (tmp_path / "costs.csv").write_text("truth,keep,free\nAdelie,0,1\nGentoo,1,0\nChinstrap,9,0\n")
    written = tmp_path / "d.csv"
    call = (model, tmp_path / "p.csv", "--output", written, "--loss", tmp_path / "costs.csv")
    assert run(*call, "--reject-cost", 0.01, command="predict")[0] == 0
    got = pd.read_csv(written)
    p = got[["p_Adelie", "p_Chinstrap", "p_Gentoo"]].to_numpy()
    keep, free = p @ [0, 9, 1], p @ [1, 0, 0]
    want = np.where(np.minimum(keep, free) > 0.01, "ask", np.where(keep <= free, "keep", "free"))
    assert (got["action"] == want).all() and (want == "ask").any()
    (tmp_path / "costs.csv").write_text("truth,keep\nAdelie,0\nGentoo,1\n")
    assert "one row for each of the classes" in run(*call, command="predict")[2]


def test_a_probability_stands_beside_that_of_the_class_alone():
    """A probability of 0.3 for a rare class may be six times as much as usual."""
    rng = np.random.default_rng(0)
    ill = np.arange(200) < 10
    rows, labels = rng.normal(size=(200, 1)) + ill[:, None], np.where(ill, "ill", "well")
    said = bg.NaiveBayesClassifier().fit(rows, labels).explain([[2.0]], row=0, label="ill")
    assert said.prior_probability == pytest.approx(11 / 202)  # one row of each class is added
    assert said.to_dict()["prior_probability"] == said.prior_probability < said.probability
