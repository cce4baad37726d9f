"""The value of each column: against refits without it, and for columns that cannot be known to matter."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refuses

import bayesgen as bg
from bayesgen import evaluation
from bayesgen.comparison import compare, compare_models, held_out_importance, impossible_row
from bayesgen.inspection import importance

TABLE = bg.data.load("penguins").sample(172, random_state=0).reset_index(drop=True)
SPECIES = TABLE.pop("species")
FIT, HELD = slice(None, 100), slice(100, None)


@pytest.mark.parametrize("inference", ["exact", "map"])
def test_naive_bayes_without_a_column_is_what_never_saw_it(inference):
    classifier = bg.NaiveBayesClassifier(inference=inference).fit(TABLE[FIT], SPECIES[FIT])
    worse = importance(classifier, TABLE[HELD], SPECIES[HELD])
    assert worse.index.equals(TABLE[HELD].index) and list(worse.columns) == list(TABLE.columns)
    codes = np.searchsorted(classifier.classes_, SPECIES[HELD])

    def losses(columns):
        other = bg.NaiveBayesClassifier(inference=inference).fit(TABLE.loc[:, columns][FIT], SPECIES[FIT])
        return -other.predict_log_proba(TABLE.loc[:, columns][HELD])[np.arange(len(codes)), codes]

    whole = losses(list(TABLE.columns))
    for column in TABLE.columns:
        without = losses([c for c in TABLE.columns if c != column])
        np.testing.assert_allclose(worse[column], without - whole, atol=1e-9)


def test_counts_of_one_observation_are_missing_together():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 40)
    words = rng.poisson(np.where(y == "a", 1.0, 3.0)[:, None], (80, 2))
    rows = pd.DataFrame({"x": rng.normal(size=80), "cheap": words[:, 0], "now": words[:, 1], "tosses": 9})
    rows["heads"] = rng.binomial(9, np.where(y == "a", 0.3, 0.6))
    features = {("cheap", "now"): "multinomial", ("heads", "tosses"): bg.models.BetaBinomial(1, 1)}
    worse = importance(bg.NaiveBayesClassifier(features).fit(rows[::2], y[::2]), rows[1::2], y[1::2])
    assert list(worse) == ["x", "multinomial", "heads+tosses"]
    without = bg.NaiveBayesClassifier({("heads", "tosses"): features["heads", "tosses"]})
    plain = bg.NaiveBayesClassifier(features)
    left = [*rows.columns.drop(["cheap", "now"])]
    losses = [
        evaluation.log_loss(y[1::2], classifier.fit(own[::2], y[::2]).predict_proba(own[1::2]))
        for classifier, own in ((without, rows[left]), (plain, rows))
    ]
    assert worse["multinomial"].mean() == pytest.approx(losses[0] - losses[1], abs=1e-9)


@pytest.mark.filterwarnings("error")
def test_every_dataframe_says_the_same():
    rows = TABLE[["island", "bill_length_mm"]]
    want, other = (bg.NaiveBayesClassifier().fit(own, SPECIES) for own in (rows, pl.from_pandas(rows)))
    np.testing.assert_array_equal(importance(other, pl.from_pandas(rows), SPECIES), importance(want, rows, SPECIES))


def test_a_column_that_is_missing_anyway_is_worth_nothing():
    rows = TABLE.assign(body_mass_g=np.where(TABLE.index % 3 == 0, np.nan, TABLE["body_mass_g"]))
    classifier = bg.AveragedClassifier(members=["gaussian", "category", "softmax"]).fit(rows[FIT], SPECIES[FIT])
    worse = importance(classifier, rows[HELD], SPECIES[HELD])
    gone = rows[HELD]["body_mass_g"].isna()
    # matrix products round the last bit of a row by how many rows stand beside it
    assert (worse.loc[gone, "body_mass_g"].abs() < 1e-14).all() and (worse.loc[~gone, "body_mass_g"] != 0).any()


def test_of_two_columns_that_tell_the_same_either_is_worth_little():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    x = rng.normal(size=400) + 3 * y
    X = np.column_stack([x, x + rng.normal(scale=0.05, size=400), rng.normal(size=400)])
    one = bg.GaussianDiscriminantClassifier().fit(X[::2], y[::2])
    worth = importance(one, X[1::2], y[1::2]).mean()
    alone = bg.GaussianDiscriminantClassifier().fit(X[::2, 1:], y[::2])
    assert worth["x0"] < 0.05 < 0.3 < importance(alone, X[1::2, 1:], y[1::2]).mean()["x0"]


def test_rows_and_classes_must_fit():
    classifier = bg.NaiveBayesClassifier().fit(TABLE, SPECIES)
    refuses(lambda: importance(classifier, TABLE[HELD], SPECIES[:3]), "X has 72 rows and y has 3")
    refuses(lambda: importance(classifier, TABLE[:2], ["Adelie", "king"]), "king")


def test_held_out_rows_have_the_folds_of_a_comparison():
    rows = TABLE[["island", "bill_length_mm"]]
    both = compare(rows, SPECIES, inferences=["exact"], folds=3, return_estimators=True)
    worse = held_out_importance(both, "exact")
    assert worse.index.equals(TABLE.index)
    one = compare(TABLE[["bill_length_mm"]], SPECIES, inferences=["exact"], folds=3)
    losses = [evaluation.log_loss(SPECIES, r.probability["exact"]) for r in (one, both)]
    assert worse["island"].mean() == pytest.approx(losses[0] - losses[1])
    assert isinstance(worse, pd.DataFrame)


@pytest.mark.compiles
def test_of_many_columns_those_are_asked_that_tell_most_alone():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = pd.DataFrame(rng.normal(size=(60, 80)), columns=[f"c{j}" for j in range(80)])
    X["spread"] = rng.normal(size=60) * np.where(y == 0, 1, 20)  # equal means: no F statistic sees it
    X["ward"] = pd.Categorical.from_codes(np.where(rng.random(60) < 0.8, y, 1 - y), ["north", "south"])
    result = compare_models(X, y, ["naive Bayes"], folds=2, return_estimators=True)
    worth = held_out_importance(result, "naive Bayes", most=5)
    assert worth.shape == (60, 5) and {"spread", "ward"} <= set(worth) and worth["spread"].mean() > 0
    whole = held_out_importance(result, "naive Bayes", most=1000)
    pd.testing.assert_frame_equal(whole[list(worth)], worth)
    with pytest.raises(ValueError, match="return_estimators=True"):
        held_out_importance(compare_models(X, y, ["naive Bayes"], folds=2), "naive Bayes")


def test_an_infinite_log_loss_has_its_row_and_column():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 20)
    X = pd.DataFrame({"x": rng.normal(size=40), "colour": pd.Series(["red", "blue"] * 20, dtype="category")})
    X["colour"] = X["colour"].cat.add_categories("green")
    X.loc[[3, 30], "colour"] = "green"  # one row of each class: whichever is held out, its class has no other
    result = compare(X, y, inferences=["ml", "exact"], folds=4, return_estimators=True)
    assert impossible_row(result, "ml") == (3, ["colour"]) and impossible_row(result, "exact") is None
    plain = compare(X, y, inferences=["ml"], folds=4)
    assert impossible_row(plain, "ml") == (3, [])
