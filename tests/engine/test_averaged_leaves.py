"""Columns of an averaged classifier with leaves of their own: a factor of every member that has a density."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refusals import refuses
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.metrics import log_loss
from test_own_leaf import GammaExponential

from bayesgen import AveragedClassifier, NaiveBayesClassifier, inspection
from bayesgen.averaging.leaves import ColumnModels
from bayesgen.averaging.member import NOTHING
from bayesgen.averaging.member_rows import HeldOut, Rows
from bayesgen.models import (
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
)
from bayesgen.models.leaf import require
from bayesgen.models.log_normal import LogNormal
from bayesgen.models.separation import SeparationDiagonal
from bayesgen.models.structures import WeakLogGaussian, WeakPoisson

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers


class Waiting(GammaExponential):
    """A leaf of a user's own that takes times above 0 alone."""

    def check(self, x):
        x = super().check(x)
        require(x, lambda part: part > 0, "is no waiting time")
        return x


FEATURES = {"visits": "poisson", "bill": "log", "wait": Waiting(2.0, 2.0)}
FEW = ["gaussian", "category", "softmax"]
ONE = AveragedClassifier(members=FEW)


def table(n=60, seed=0):
    """Rows with numbers, categories and columns for leaves, with gaps in all, and classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = pd.DataFrame(
        {
            "age": rng.normal(50 + 5 * y, 9),
            "visits": rng.poisson(1.0 + y).astype(float),
            "sex": np.where(rng.random(n) < 0.3 + 0.2 * y, "f", "m"),
            "bill": rng.lognormal(0.5 * y),
            "height": rng.normal(170 - 4 * y, 8),
            "wait": rng.exponential(1.0 + y),
        }
    )
    for row, name in enumerate(X, 2):
        X.loc[row, name] = None if name == "sex" else np.nan
    return X, np.array(["low", "mid", "top"])[y]


X, Y = table()
NEW, NEW_Y = table(12, seed=1)


@pytest.fixture(scope="module")
def fitted():
    return AveragedClassifier(features=FEATURES, members=FEW).fit(X, Y)


# -- the factor


def test_the_average_of_leaves_alone_is_naive_bayes():
    features = FEATURES | {
        "age": NormalInverseGamma(50.0, 1.0, 2.0, 50.0),
        "height": "log1p",
        "sex": DirichletCategorical(1.0, ["f", "m"]),
    }
    weight = np.random.default_rng(3).uniform(0.2, 2, len(Y))
    average = AveragedClassifier("evidence", features=features).fit(X, Y, weight)
    assert average.weights_.tolist() == [1.0, 0.0] and average.exponents_.tolist() == [1.0, 1.0]
    assert [member.family for member in average.members_] == ["leaves", "base rate"]
    bayes = NaiveBayesClassifier(features).fit(X, Y, weight)
    np.testing.assert_allclose(average.predict_proba(NEW), bayes.predict_proba(NEW), rtol=1e-11)
    np.testing.assert_allclose(average.predict_joint_log_proba(NEW), bayes.predict_joint_log_proba(NEW), rtol=1e-11)
    terms = bayes.explain(NEW)
    np.testing.assert_allclose(average.explain(NEW).sel(term=terms.term.values), terms, atol=1e-11)


def test_every_member_with_a_density_is_multiplied_by_the_leaves(fitted):
    alone = clone(ONE).fit(X[["age", "sex", "height"]], Y)
    bayes = NaiveBayesClassifier(FEATURES).fit(X[[*FEATURES]], Y)
    leaf = bayes.predict_joint_log_proba(NEW[[*FEATURES]]) - np.log(bayes.posterior_.model.classes.mean)
    own = fitted.average_.log_density(*_three(fitted.fitted_.read(NEW)))
    without = alone.average_.log_density(*alone.fitted_.read(NEW[["age", "sex", "height"]]).values())
    carries = fitted.average_.roster.carries
    assert carries.sum() == fitted.members_.index(NOTHING) and len(own) == len(without) + 1
    expected = without[: carries.sum()] + leaf
    np.testing.assert_allclose(own[carries], expected, rtol=1e-10, atol=1e-9)  # the last was the base rate
    base, *soft = own[~carries]
    assert not base.any()
    np.testing.assert_allclose(soft, without[carries.sum() :], rtol=1e-6, atol=1e-6)


def _three(rows):
    return rows["numbers"], rows["categories"], None, rows["leaves"]


def test_names_of_numbers_and_categories_change_nothing_and_auto_is_the_default():
    few, y = X[["age", "sex", "height"]].assign(late=X["wait"] > 1), Y
    names = {"age": "gaussian", "sex": "categorical", "late": "bernoulli"}
    plain = clone(ONE).fit(few, y).predict_proba(few)
    np.testing.assert_array_equal(clone(ONE).set_params(features=names).fit(few, y).predict_proba(few), plain)
    dropped = clone(ONE).set_params(features={"wait": "drop"}).fit(few.assign(wait=X["wait"]), y)
    np.testing.assert_array_equal(dropped.predict_proba(few.assign(wait=0.0)), plain)


def test_dates_are_numbers_of_days():
    day = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(X["age"].fillna(50)), "D"), name="day")
    dated = X[["height"]].assign(day=day)
    days = pd.DataFrame({"day": (day - pd.Timestamp("1970-01-01")).dt.days.astype(float), "height": X["height"]})
    classifier = clone(ONE).set_params(features={"day": "date"}).fit(dated, Y)
    expected = clone(ONE).fit(days, Y).predict_proba(days)
    np.testing.assert_allclose(classifier.predict_proba(dated), expected, rtol=1e-6)
    assert classifier.sample(2)[0]["day"].dtype.kind == "M"


# -- leave-one-out


def rows_of_leaves(weight, seed=0):
    """Leaves that follow the rows, those that do not, a bag of words; and the rows."""
    rng = np.random.default_rng(seed)
    n = len(weight)
    e = np.column_stack(
        [rng.poisson(2, (n, 2)), rng.lognormal(size=n), rng.exponential(size=n), rng.poisson(1, (n, 3))]
    ).astype(float)
    e[rng.random((n, 7)) < 0.1] = np.nan
    e[np.isnan(e[:, 4:]).any(1), 4:] = np.nan
    leaves = {
        "counts": WeakPoisson(GammaPoisson.weak),
        "bill": WeakLogGaussian(LogNormal.weak),
        "wait": Waiting(1.0, 1.0),
        "words": DirichletMultinomial(1.0, ["a", "b", "c"]),
    }
    columns = {"counts": ("x", "y"), "bill": ("bill",), "wait": ("wait",), "words": ("a", "b", "c")}
    model = NaiveBayes(DirichletCategorical(1.0, 3), leaves, columns=columns)
    return model, Rows(np.empty((n, 0)), np.empty((n, 0), int), np.arange(n) % 3, weight, (), 3, e=e)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("outlier", [False, True])
def test_leaving_out_a_row_is_a_refit(whole, outlier):
    model, rows = rows_of_leaves(np.random.default_rng(1).uniform(0.3, 3.0, 30))
    if outlier:
        rows.e[4, 3] = 1e13  # the sum of all others is below its rounding error
    rows.e[9], rows.codes[9] = rows.e[3], rows.codes[3]  # two rows that are the same to the leaves
    removed = rows.weight if whole else np.minimum(rows.weight, 1.0)
    at = np.arange(30)[::-2]
    held = replace(HeldOut.of(rows, at), gone=rows.take(at, removed[at]))
    left = ColumnModels.of(model, ["wait"], rows.e, rows.codes, rows.weight).loo_log_density(held)
    for j, (i, own) in enumerate(zip(at, left, strict=True)):
        rest = held.others(j)
        refit = ColumnModels.of(model, ["wait"], rest.e, rest.codes, rest.weight).settled()
        np.testing.assert_allclose(own, refit.log_density(rows.e[i : i + 1])[0], rtol=1e-9, atol=1e-9)


def test_leaving_out_a_group_is_a_refit():
    model, rows = rows_of_leaves(np.random.default_rng(1).uniform(0.3, 3.0, 30))
    rows = replace(rows, group=np.random.default_rng(2).integers(0, 7, 30))
    held = HeldOut.of(rows, np.arange(30))
    left = ColumnModels.of(model, ["wait"], rows.e, rows.codes, rows.weight).loo_log_density(held)
    for departure in range(7):
        rest, here = held.others(departure), held.without == departure
        refit = ColumnModels.of(model, ["wait"], rest.e, rest.codes, rest.weight).settled()
        np.testing.assert_allclose(left[here], refit.log_density(rows.e[here]), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:all rows of the labels:UserWarning")
@pytest.mark.filterwarnings("ignore:.*(rows|by weight) repeat another:UserWarning")
def test_order_of_rows_changes_nothing_and_a_weight_of_two_is_two_rows():
    weight, base = np.arange(60) % 3, AveragedClassifier(members=FEW, features=FEATURES)
    weighted = clone(base).fit(X, Y, weight).predict_proba(NEW)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(60), weight))
    repeated = clone(base).fit(X.iloc[order], Y[order]).predict_proba(NEW)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


def test_rows_that_differ_in_a_leaf_alone_are_told_apart():
    same = pd.DataFrame({"age": np.repeat([1.0, 2.0], 20), "visits": np.tile([0.0, 9.0], 20)})
    y = np.tile([0, 1], 20)
    classifier = clone(ONE).set_params(features={"visits": "poisson"}).fit(same, y)
    assert classifier.scores_["rows"] == 40 and classifier.score(same, y) == 1


# -- what it is for


def test_few_rows_of_counts_are_predicted_better_by_counts_than_by_bent_numbers():
    """Sixteen rows inform less on variances than on means, and a count with a Poisson leaf has no variance."""
    losses = {"auto": [], "poisson": []}
    for seed in range(3):
        y = np.arange(1016) % 2
        rate = np.where(y[:, None] == 0, [1, 2, 4, 8, 1, 2], [2, 4, 8, 16, 2, 4])
        counts = np.random.default_rng(seed).poisson(rate).astype(float)
        for features, own in losses.items():
            classifier = AveragedClassifier(features=features, members=FEW).fit(counts[:16], y[:16])
            own.append(log_loss(y[16:], classifier.predict_proba(counts[16:])))
    assert np.mean(losses["poisson"]) < np.mean(losses["auto"]) - 0.02


@pytest.mark.parametrize("dense", [True, False])
def test_a_bag_of_words_beside_numbers(dense):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    words = rng.poisson(np.where(y[:, None] == 0, [2.0, 1, 0.5, 0.2], [1.0, 2, 0.2, 0.5])).astype(float)
    if dense:
        rows = pd.DataFrame(words, columns=[*"abcd"]).assign(length=rng.normal(y, 2.0))
        features = {(*"abcd",): "multinomial"}
    else:
        rows, features = sparse.csr_array(words), "multinomial"
    classifier = AveragedClassifier(members=FEW, features=features).fit(rows, y)
    assert classifier.score(rows, y) > 0.7 and classifier.members_[0].leaves == ("multinomial",)
    if not dense:
        assert [member.family for member in classifier.members_] == ["leaves", "base rate"]
        return
    said = classifier.explain(rows[:5])
    assert said.term.values.tolist() == ["prior", "multinomial", "length", "remainder"]
    assert [*inspection.importance(classifier, rows, y)] == ["multinomial", "length"]
    assert (classifier.sample(3)[0][[*"abcd"]] >= 0).all(axis=None)
    with pytest.raises(ValueError, match="column 'a': row 0 is partly missing: a bag of words is missing as a whole"):
        classifier.predict(rows.assign(a=np.nan))
    hole = rows.assign(a=np.nan, b=np.nan, c=np.nan, d=np.nan)
    np.testing.assert_allclose(classifier.explain(hole).sel(term="multinomial"), 0, atol=1e-12)
    for ask in (inspection.impute, inspection.next_measurement):
        with pytest.raises(ValueError, match=r"no answer for 'multinomial' \(columns such as 'a'\)"):
            ask(classifier, hole)
    refuses(lambda: inspection.typicality(classifier, rows), r"typicality\(\) has no answer for 'multinomial'")
    assert np.isfinite(inspection.impute(classifier, rows.assign(length=np.nan))["length"]).all()


# -- at home


def test_settings_within_leaves(fitted):
    assert fitted.get_params()["features__wait__a"] == 2.0
    again = clone(fitted).set_params(features__wait__a=3.0)
    assert again.features["wait"].a == 3.0 and fitted.features["wait"].a == 2.0


def test_arrays_and_frames_of_polars():
    names = ["age", "visits", "bill", "height"]
    whole = AveragedClassifier(members=FEW, features={"visits": "poisson", "bill": "log"}).fit(X[names], Y)
    expected = whole.predict_proba(NEW[names])
    array = AveragedClassifier(members=FEW, features={1: "poisson", -2: "log"}).fit(X[names].to_numpy(), Y)
    np.testing.assert_allclose(array.predict_proba(NEW[names].to_numpy()), expected, rtol=1e-9)
    frame = pl.DataFrame(X[names].to_dict("list"), nan_to_null=True)
    again = clone(whole).fit(frame, Y)
    np.testing.assert_allclose(again.predict_proba(pl.DataFrame(NEW[names].to_dict("list"))), expected, rtol=1e-9)
    assert isinstance(again.sample(2)[0], pl.DataFrame)


# -- what it refuses


@pytest.mark.parametrize(
    ("features", "error", "words"),
    [
        ({"vistis": "poisson"}, ValueError, r"features names the columns \['vistis'\], which X does not have"),
        ({"visits": "poison"}, ValueError, r"column 'visits': features must give a leaf or one of .*got 'poison'"),
        ("counts", ValueError, "features must be 'auto', one of"),
        ({"age": "poisson"}, ValueError, r"column 'age': value .* in row 0 is not a count"),
        ({"visits": "log"}, ValueError, r"column 'visits': value 0 in row"),
        ({"visits": "bernoulli"}, ValueError, r"column 'visits': value \d in row \d+ is not 0 or 1"),
        ({"visits": 3.0}, TypeError, "'visits' must be a model of a feature such as BetaBernoulli"),
        ({("age", "height"): SeparationDiagonal(np.zeros(2), np.ones(2), np.ones(2))}, TypeError,
         r"columns \['age', 'height'\]: a SeparationDiagonal has no posterior in closed form"),
        ({("age", "height"): NormalInverseWishart(np.zeros(2), 1.0, 4.0, np.eye(2))}, ValueError,
         r"columns \['age', 'height'\]: rows are partly missing, and then a NormalInverseWishart has no posterior"),
        ({"age": "drop", "visits": "drop", "sex": "drop", "bill": "drop", "height": "drop", "wait": "drop"}, ValueError,
         "drops every column"),
    ],
)  # fmt: skip
def test_features_that_cannot_be_are_named(features, error, words):
    refuses(lambda: clone(ONE).set_params(features=features).fit(X, Y), words, error)


def test_entries_that_cannot_be_are_named_at_prediction(fitted):
    many = pd.concat([NEW] * 400, ignore_index=True)
    many.loc[3000, "visits"] = 0.5
    refuses(lambda: fitted.predict_proba(many), r"column 'visits': value 0\.5 in row 3000 is not a count")
    refuses(lambda: fitted.explain(NEW.assign(wait=-1.0)), r"column 'wait': value -1 in row 0 is no waiting time")


def test_a_constant_column_of_logarithms_is_warned_of():
    with pytest.warns(UserWarning, match=r"columns \['bill'\] are constant"):
        clone(ONE).set_params(features={"bill": "log"}).fit(X.assign(bill=2.0), Y)


def test_counts_that_say_nothing_and_a_column_of_gaps():
    rows = X[["age"]].assign(visits=np.nan, zeros=0.0)
    classifier = clone(ONE).set_params(features={"visits": "poisson", "zeros": "poisson"}).fit(rows, Y)
    assert np.isfinite(classifier.predict_log_proba(rows)).all()


def test_units_of_a_leaf_change_nothing():
    features = {"bill": "log", "visits": "poisson"}
    here = clone(ONE).set_params(features=features).fit(X, Y).predict_proba(NEW)
    there = clone(ONE).set_params(features=features).fit(X.assign(bill=X["bill"] * 1e4), Y)
    np.testing.assert_allclose(there.predict_proba(NEW.assign(bill=NEW["bill"] * 1e4)), here, atol=1e-8)
    assert stats.entropy(here.T).max() < np.log(3)
