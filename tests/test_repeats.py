"""Rows that repeat another: how many do, how many would by chance, and which are copies that are held out together."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from bayesgen import (
    AveragedClassifier,
    GaussianDiscriminantClassifier,
    LogisticClassifier,
    NaiveBayesClassifier,
    tables,
)
from bayesgen.comparison import compare, compare_models
from bayesgen.tables.repeats import columns_of, repeats

RNG = np.random.default_rng(0)
NOISE = pd.DataFrame(RNG.normal(size=(100, 5)).round(3), columns=list("abcde"))
CODES = RNG.integers(0, 2, 100)


def found(X, y):
    return repeats(columns_of(X), np.unique(y, return_inverse=True)[1])


def bools(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    shares = np.where(y[:, None], [0.65, 0.35, 0.6, 0.5], [0.35, 0.6, 0.4, 0.5])
    return pd.DataFrame(rng.random((n, 4)) < shares, columns=list("abcd")), y


def test_chance_is_the_mean_over_all_orders_within_the_classes(monkeypatch):
    monkeypatch.setattr(tables.repeats, "_SHUFFLES", 500)
    first, second, y = np.array([1, 1, 2, 3, 3, 3, 1, 2.0]), list("aabbabaa"), np.array([0, 0, 0, 0, 0, 1, 1, 1])
    every = []
    for one, two in itertools.product(itertools.permutations(range(5)), itertools.permutations(range(5, 8))):
        every.append(8 - len(set(zip(first, (second[i] for i in (*one, *two)), y, strict=True))))
    told = found(pd.DataFrame({"u": first, "v": second}), y)
    assert told.count == pd.DataFrame({"u": first, "v": second, "y": y}).duplicated().sum()
    assert abs(told.chance - np.mean(every)) < 4 * np.std(every) / np.sqrt(500)


def one_hot():
    levels = np.random.default_rng(1).integers(0, 4, (200, 4))
    return pd.get_dummies(pd.DataFrame(levels).astype("category")), np.random.default_rng(2).integers(0, 2, 200)


def answers():
    rng = np.random.default_rng(3)
    leaning = rng.random((200, 1)) < 0.5
    return pd.DataFrame(rng.random((200, 20)) < np.where(leaning, 0.95, 0.05)), rng.integers(0, 2, 200)


def two_units():
    size = np.random.default_rng(4).normal(170, 10, 200).round()
    return pd.DataFrame({"cm": size, "inch": (size / 2.54).round()}), np.random.default_rng(5).integers(0, 2, 200)


def two_exact_units():
    size, rng = two_units()[0]["cm"], np.random.default_rng(7)
    return pd.DataFrame({"cm": size, "mm": 10 * size, "sex": rng.choice(["f", "m"], 200)}), rng.integers(0, 2, 200)


def gaps_among_weights():
    rng = np.random.default_rng(8)
    weight = np.where(rng.random(300) < 0.05, np.nan, rng.normal(40, 5, 300).round(0) + rng.integers(0, 2, 300) / 2)
    return pd.DataFrame({"weight": weight, "island": rng.choice(list("abc"), 300)}), rng.integers(0, 2, 300)


def clinic():
    rng = np.random.default_rng(6)
    X = pd.DataFrame({"age": rng.integers(20, 80, 302), "pressure": rng.integers(90, 180, 302)})
    X = X.assign(cholesterol=rng.integers(120, 400, 302), sex=rng.choice(["f", None], 302))
    chosen = rng.integers(0, 302, 1025)
    return X.iloc[chosen], rng.integers(0, 2, 302)[chosen]


TABLES = {
    "every row twice": (lambda: (pd.concat([NOISE, NOISE]), np.r_[CODES, CODES]), True),
    "whole numbers drawn with replacement": (clinic, True),
    "three copies": (lambda: (pd.concat([NOISE, NOISE[:3]]), np.r_[CODES, CODES[:3]]), False),
    "four bools": (lambda: bools(200, 0), False),
    "answers that depend on each other": (answers, False),
    "categories as bools": (one_hot, False),
    "one size in two units": (two_units, False),
    "one column": (lambda: (np.tile(np.arange(50.0), 4)[:, None], np.repeat([0, 1], 100)), False),
    "flowers": (lambda: load_iris(return_X_y=True), False),
    "a fine column with gaps": (gaps_among_weights, False),
    "one size in two units, and a sex": (two_exact_units, False),
}


@pytest.mark.parametrize("case", TABLES)
def test_copies_are_what_chance_and_dependence_do_not_explain(case):
    make, copied = TABLES[case]
    X, y = make()
    told = found(X, y)
    assert told.count == pd.DataFrame(np.asarray(X, object)).assign(y=y).duplicated().sum()
    assert (told.copies is not None) == copied
    if copied:  # equal rows, and no others, are of one group
        rows = pd.DataFrame(np.asarray(X, object)).assign(y=y)
        assert len(np.unique(told.copies)) == len(rows.drop_duplicates()) == len(rows) - told.count
        assert len(rows.assign(copy=told.copies).drop_duplicates()) == len(np.unique(told.copies))


def test_the_order_of_the_rows_changes_no_number():
    X, y = bools(60, 3)
    numbers = {found(X.iloc[order], y[order]).chance for order in map(RNG.permutation, [60] * 9)}
    assert len(numbers) == 1


def test_few_columns_are_read_where_these_tell_the_rows_apart():
    read = []
    columns = (read.append(j) or np.arange(1000.0) for j in range(500))
    assert not repeats(columns, np.arange(1000) % 2) and len(read) == 1


def test_the_score_of_four_bools_is_that_of_new_rows():
    (X, y), (new, truth) = bools(200, 0), bools(20_000, 100)
    loss = log_loss(truth, NaiveBayesClassifier().fit(X, y).predict_proba(new))
    score = compare_models(X, y, ["naive Bayes"]).table.loc["naive Bayes"]
    assert abs(score["log_loss"] - loss) < 2 * score["standard_error"] < 0.1
    by_copies = compare_models(X, y, ["naive Bayes"], groups=pd.factorize(pd.MultiIndex.from_frame(X.assign(y=y)))[0])
    assert by_copies.table.loc["naive Bayes", "log_loss"] > loss + 0.09


TWICE, BOTH = pd.concat([NOISE, NOISE], ignore_index=True), np.r_[CODES, CODES]
TOLD = "100 of 200 rows repeat another, class and all; by chance 0 would"


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:no member predicts rows left out:UserWarning")
def test_copies_of_noise_predict_nothing_and_are_told():
    classifier = AveragedClassifier(members=["gaussian", "forest"])
    with pytest.warns(UserWarning, match=TOLD):
        scores = classifier.fit(TWICE, BOTH).scores_
    assert abs(scores["nested"] + np.log(2)) < 3 * scores["nested_error"] < 0.15
    apart = classifier.fit(TWICE, BOTH, groups=range(200)).scores_  # no copies, says the user
    assert apart["nested"] > -0.4


def test_copies_share_a_fold_and_other_ways_to_split_are_kept():
    with pytest.warns(UserWarning, match=TOLD):
        result = compare_models(TWICE, BOTH, ["naive Bayes", "base rate"])
    assert (result.fold[:100] == result.fold[100:]).all() and result.group is not None
    with pytest.warns(UserWarning, match=TOLD):
        result = compare(TWICE, BOTH, inferences=["map"])
    assert (result.fold[:100] == result.fold[100:]).all()
    halves = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    for options in ({"folds": halves}, {"order": np.arange(200)}, {"groups": np.arange(200)}):
        result = compare_models(TWICE, BOTH, ["naive Bayes"], **options)  # without a warning
        assert (result.fold[:100] != result.fold[100:]).any()


@pytest.mark.parametrize("kind", ["numbers", "gaps", "mixed", "sparse", "many"])
@pytest.mark.parametrize("make", [NaiveBayesClassifier, GaussianDiscriminantClassifier, LogisticClassifier])
def test_a_fit_of_one_model_tells_of_copies(make, kind):
    """Of 2,100 rows and more stripes of sums are looked at."""
    rows = NOISE if kind != "many" else pd.DataFrame(np.random.default_rng(7).normal(size=(4000, 3)))
    codes = CODES if kind != "many" else np.random.default_rng(8).integers(0, 2, 4000)
    if kind == "gaps" and make is not GaussianDiscriminantClassifier:
        rows = rows.mask(np.random.default_rng(6).random(rows.shape) < 0.1)
    if kind == "mixed" and make is NaiveBayesClassifier:
        rows = rows.assign(text=np.where(rows["a"] > 0, "u", "v"), bit=rows["b"] > 0)
    options: dict = {"inference": "map", "missing": "mean"} if make is LogisticClassifier else {}
    if kind == "sparse":
        rows = sparse.csr_array(np.random.default_rng(9).poisson(1.0, (100, 30)))
        options, make = {"features": "multinomial"}, NaiveBayesClassifier
    several = (lambda parts: sparse.vstack(parts).tocsr()) if sparse.issparse(rows) else pd.concat
    share = 12 if kind == "many" else 5  # a twelfth of the rows stands twice
    few = slice(0, len(codes) // share)
    with pytest.warns(UserWarning, match=r"rows repeat another, class and all; by chance 0 would: .*too sure"):
        make(**options).fit(several([rows, rows[few]]), np.r_[codes, codes[few]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(**options).fit(rows, codes)  # no row twice


def answered(twice):
    """Twenty answers of three kinds, with gaps, of 100 people, each of whom is there once or twice."""
    rng = np.random.default_rng(10)
    X = pd.DataFrame(rng.choice(["yes", "no", "perhaps"], (100, 20))).mask(rng.random((100, 20)) < 0.1)
    X.columns = [f"q{j}" for j in range(20)]
    return (pd.concat([X, X]), np.r_[CODES, CODES]) if twice else (X, CODES)


@pytest.mark.parametrize("classifier", [NaiveBayesClassifier(), LogisticClassifier(inference="map", missing="mean")])
def test_a_fit_of_answers_tells_of_copies(classifier):
    with pytest.warns(
        UserWarning, match=r"100 of 200 rows repeat another, class and all; by chance 0 would: .*too sure"
    ):
        classifier.fit(*answered(True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.fit(*answered(False))


def test_tables_in_which_chance_repeats_rows_are_not_searched(monkeypatch):
    """By chance 300 rows of four bools have n/2 P(same class) Π P(same value) repeats each: 150 · .5 · .08 are many."""
    X, y = bools(300, 2)
    pairs = np.triu_indices(300, 1)
    same = y[pairs[0]] == y[pairs[1]]
    agree = [(X[c].to_numpy()[pairs[0]] == X[c].to_numpy()[pairs[1]])[same].mean() for c in X]
    drawn = tables.repeats._agreeing([X.to_numpy(float)], y)
    assert drawn == pytest.approx(150 * same.mean() * np.prod(agree), rel=0.2)
    monkeypatch.setattr(tables.repeats, "repeats", None)
    NaiveBayesClassifier().fit(X, y)


def test_a_fit_of_categories_or_coarse_numbers_tells_of_no_copies():
    X, y = bools(400, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NaiveBayesClassifier().fit(X, y)
        NaiveBayesClassifier("poisson").fit(np.random.default_rng(0).poisson(2.0, (300, 3)), y[:300])
        GaussianDiscriminantClassifier().fit(*load_iris(return_X_y=True))
