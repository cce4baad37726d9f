"""Rows that belong together: they are left out together, so that scores and weights suit rows of new groups."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import run
from refusals import refuses
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, TimeSeriesSplit

import bayesgen as bg
from bayesgen import AveragedClassifier, GaussianDiscriminantClassifier, NaiveBayesClassifier
from bayesgen.comparison import compare, compare_models, held_out_importance
from bayesgen.evaluation import reliability_table
from bayesgen.inspection import importance
from bayesgen.models import NormalInverseWishart

IRIS, SPECIES = load_iris(return_X_y=True)
FEW = ["gaussian", "category"]
PRIOR = NormalInverseWishart(np.full(4, 4.0), 0.1, 8.0, np.eye(4))


def clinic(patients, visits, seed, effect=0.0):
    """Visits of patients who are alike in all their visits, and whose class moves the first column by ``effect``."""
    rng = np.random.default_rng(seed)
    patient, y = np.repeat(np.arange(patients), visits), rng.integers(0, 2, patients)
    centre = rng.normal(size=(patients, 3))
    centre[:, 0] += effect * y
    return centre[patient] + 0.3 * rng.normal(size=(len(patient), 3)), y[patient], patient


@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")  # of labels at random it is right
@pytest.mark.parametrize("effect", [0.0, pytest.param(1.0, marks=pytest.mark.slow)])
def test_scores_and_probabilities_suit_new_patients(effect):
    X, y, patient = clinic(60, 4, 0, effect)
    new, truth, _ = clinic(500, 1, 1, effect)
    base = AveragedClassifier(members=[*FEW, "softmax", "forest"])
    plain, grouped = clone(base).fit(X, y), clone(base).fit(X, y, groups=patient)
    losses = [log_loss(truth, classifier.predict_proba(new)) for classifier in (plain, grouped)]
    assert losses[1] < losses[0] - 0.05
    assert abs(-grouped.scores_["nested"] - losses[1]) < 0.1 < abs(-plain.scores_["nested"] - losses[0])


@pytest.mark.compiles
def test_groups_of_one_row_are_no_groups():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    X[y == 1] += 1.5
    alone, none = rng.permutation(40), np.full(40, np.nan)
    few = AveragedClassifier(members=[*FEW, "softmax", "forest"])
    expected = clone(few).fit(X, y)
    for groups in (alone, none, pd.Series(alone).astype(str)):
        found = clone(few).fit(X, y, groups=groups)
        np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-7)
        assert found.scores_["nested"] == pytest.approx(expected.scores_["nested"], abs=1e-6)


def test_groups_of_another_library_are_groups():
    X, y, patient = clinic(20, 3, 0, 1.0)
    names, few = np.char.add("p", patient.astype(str)), AveragedClassifier(members=FEW)
    expected = clone(few).fit(X, y, groups=names).predict_proba(X)
    np.testing.assert_array_equal(clone(few).fit(X, y, groups=pa.array(names.tolist())).predict_proba(X), expected)


@pytest.mark.compiles
def test_neither_names_of_groups_nor_the_order_of_rows_change_anything():
    X, y, patient = clinic(20, 3, 0, 1.0)
    base = AveragedClassifier(members=["generative", "forest"])
    expected = clone(base).fit(X, y, groups=patient).predict_proba(X)
    order, names = np.random.default_rng(0).permutation(60), np.random.default_rng(1).permutation(20)
    found = clone(base).fit(X[order], y[order], groups=names[patient][order]).predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.compiles
def test_a_weight_of_two_is_a_row_twice_in_its_group_and_of_zero_is_none():
    X, y, patient = clinic(20, 3, 0, 1.0)
    weight = np.arange(60) % 3
    expected = AveragedClassifier().fit(X, y, weight, groups=patient).predict_proba(X)
    rows = np.repeat(np.arange(60), weight)
    found = AveragedClassifier().fit(X[rows], y[rows], groups=patient[rows]).predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:no member predicts rows left out better")
def test_equal_rows_of_two_patients_stay_two():
    X, y, patient = clinic(30, 2, 0, 1.0)
    X, y = np.round(X), y
    twice, both = np.concatenate([X, X]), np.concatenate([y, y])
    base = AveragedClassifier(members=[*FEW, "softmax", "forest"])
    apart = clone(base).fit(twice, both, groups=np.concatenate([patient, patient + 30]))
    together = clone(base).fit(twice, both, groups=np.concatenate([patient, patient]))
    assert apart.scores_["nested"] > together.scores_["nested"]


def test_a_class_of_one_group_is_named():
    with pytest.warns(UserWarning, match=r"all rows of \[2\] are of one group"):
        AveragedClassifier(members=FEW).fit(
            IRIS[::3], SPECIES[::3], groups=np.where(SPECIES == 2, 0, 1 + np.arange(150) % 7)[::3]
        )


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        (np.arange(149), "one label for each of the 150 rows"),
        (np.zeros((150, 2)), "one label for each of the 150 rows"),
        (["ward 1"] * 150, "one group only"),
        ([[1]] * 150, "one label for each"),
    ],
)
def test_groups_that_are_none_are_refused(groups, problem):
    refuses(lambda: AveragedClassifier().fit(IRIS, SPECIES, groups=groups), problem)


# -- single models


@pytest.mark.parametrize("model", [NaiveBayesClassifier(), GaussianDiscriminantClassifier(prior=PRIOR)])
def test_a_row_is_predicted_from_the_rows_of_all_other_groups(model):
    X, y, patient = IRIS[::2], SPECIES[::2], np.random.default_rng(0).integers(0, 9, 75)
    whole = clone(model).fit(X, y)
    left = whole.leave_one_out(X, y, groups=patient)
    for one in range(9):
        own = patient == one
        rest = whole.model_.update(whole.model_.statistics(whole.fitted_.read(X[~own]), y[~own]))
        np.testing.assert_allclose(left.log_joint[own], rest.log_predictive(whole.fitted_.read(X[own])), rtol=1e-9)
    assert left.conditional.sum() < whole.leave_one_out(X, y).conditional.sum() + 5
    assert left.se == pytest.approx(3 * np.bincount(patient, left.joint).std(ddof=1))


def test_groups_of_one_row_leave_as_rows():
    whole = NaiveBayesClassifier().fit(IRIS, SPECIES)
    alone = whole.leave_one_out(IRIS, SPECIES, groups=np.arange(150))
    np.testing.assert_array_equal(alone.log_joint, whole.leave_one_out(IRIS, SPECIES).log_joint)


@pytest.mark.compiles
def test_an_exponent_is_chosen_for_new_patients():
    base, losses = NaiveBayesClassifier(exponent="loo"), []
    for seed in range(5):
        X, y, patient = clinic(40, 6, seed)  # nothing to learn, but who is who
        new, truth, _ = clinic(500, 1, 10 + seed)
        plain, grouped = clone(base).fit(X, y), clone(base).fit(X, y, groups=patient)
        assert grouped.exponent_ < plain.exponent_
        losses.append([log_loss(truth, classifier.predict_proba(new)) for classifier in (plain, grouped)])
    assert np.diff(np.mean(losses, 0)) < -0.01
    alone = clone(base).fit(X, y, groups=np.arange(240))
    assert alone.exponent_ == pytest.approx(plain.exponent_, rel=1e-6)


# -- comparison


@pytest.mark.compiles
def test_a_comparison_holds_out_patients():
    X, y, patient = clinic(60, 4, 0)
    models = {"averaged": AveragedClassifier(members=FEW), "base rate": DummyClassifier(strategy="prior")}
    plain, grouped = compare_models(X, y, models), compare_models(X, y, models, groups=patient)
    for one in range(60):
        assert len(set(grouped.fold[patient == one])) == 1
    loss = [found.table.loc["averaged", "log_loss"] for found in (plain, grouped)]
    assert loss[0] < loss[1] - 0.02 and abs(loss[1] - np.log(2)) < 0.05
    losses = grouped.log_losses("base rate")
    sums = np.bincount(patient, losses - losses.mean())
    assert grouped.table.loc["base rate", "standard_error"] == pytest.approx(np.sqrt(60) * sums.std(ddof=1) / 240)


def test_a_comparison_takes_the_folds_of_scikit_learn():
    X, y = IRIS[::2], SPECIES[::2]
    splits = list(StratifiedKFold(3, shuffle=True, random_state=1).split(X, y))
    found = compare_models(X, y, ["naive Bayes"], folds=splits)
    assert all((found.fold[test] == number).all() for number, (_, test) in enumerate(splits, 1))
    later = compare_models(X, y, ["naive Bayes"], folds=list(TimeSeriesSplit(3).split(X)))
    np.testing.assert_array_equal(later.learned("naive Bayes"), later.fold == 3)  # where all classes have been seen
    assert "no row of the classes [2]" in later.notes[1].text
    mixed = np.random.default_rng(0).permutation(75)
    later = compare_models(X[mixed], y[mixed], ["naive Bayes"], folds=list(TimeSeriesSplit(3).split(X)))
    assert np.isfinite(later.table.loc["naive Bayes", "log_loss"]) and later.learned("naive Bayes").sum() == 54


@pytest.mark.parametrize(
    ("folds", "problem"),
    [
        ([([0, 1], [2]), ([0, 1], [2])], "row 2 held out 2 times"),
        ([([0, 1], [75])], "no places in 0, ..., 74"),
        ([[0, 1, 2]], "pairs of int arrays"),
        ([], "no fold"),
    ],
)
def test_folds_that_are_none_are_refused(folds, problem):
    refuses(lambda: compare_models(IRIS[::2], SPECIES[::2], ["naive Bayes"], folds=folds), problem)


# -- columns that name what rows belong to


@pytest.mark.parametrize("kind", [int, str])
def test_a_column_that_names_patients_is_told_of(kind):
    X, y, patient = clinic(60, 4, 0)
    names = np.random.default_rng(1).permutation(1000)[:60]
    names = names if kind is int else np.array([f"P{name}" for name in names])
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(number=names[patient])
    with pytest.warns(UserWarning, match=r"column 'number' seems to name .* 240 rows share 60 values"):
        AveragedClassifier(members=["gaussian", "category"]).fit(table, y)
    AveragedClassifier(members=["gaussian", "category"]).fit(table.drop(columns="number"), y)  # no other column does


def test_ages_and_counts_name_nobody():
    rng = np.random.default_rng(0)
    age = rng.integers(20, 70, 400)
    y = (age + rng.normal(0, 3, 400) > 45).astype(int)
    town = [f"town {place}" for place in rng.integers(0, 30, 400)]
    table = pd.DataFrame({"age": age, "children": rng.poisson(2.0, 400), "town": town})
    AveragedClassifier(members=["gaussian", "category"]).fit(table, y)


# -- the command line


def visits(path):
    X, y, patient = clinic(60, 4, 0)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(patient=patient, ill=np.array(["no", "yes"])[y])
    table.to_csv(path, index=False)
    return table


@pytest.mark.compiles
@pytest.mark.usefixtures("few_members")
@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")  # of labels at random it is right
def test_the_command_line_leaves_patients_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = visits("visits.csv")
    code, out, err = run("visits.csv", "--target", "ill", "--group", "patient", command="fit")
    assert code == 0, err
    fitted = bg.load("model.safetensors")
    assert list(fitted.schema_.columns) == ["a", "b", "c"]
    expected = AveragedClassifier().fit(table[["a", "b", "c"]], table["ill"], groups=table["patient"])
    assert fitted.scores_["nested"] == pytest.approx(expected.scores_["nested"])
    arguments = ["visits.csv", "--target", "ill", "--json", "--inference", "exact"]
    found = {}
    for group in ([], ["--group", "patient"]):
        code, out, err = run(*arguments, *group, *([] if group else ["--drop", "patient"]), command="compare")
        assert code == 0, err
        found[bool(group)] = json.loads(out)["models"]["averaged"]["log_loss"]
    assert found[False] < found[True] - 0.02 and abs(found[True] - np.log(2)) < 0.05  # as in Python, above


def test_groups_are_not_for_models_that_leave_nothing_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    visits("visits.csv")
    code, _, err = run("visits.csv", "--target", "ill", "--group", "patient", "--model", "nb", command="fit")
    assert code == 2 and "--group is not for --model nb; these take it: averaged" in err


# -- what tables and columns are worth


def test_what_a_column_is_worth_has_an_error_of_groups():
    X, y, patient = clinic(40, 6, 0, 1.0)
    X, y, patient = (np.delete(a, np.arange(0, 120, 7), 0) for a in (X, y, patient))  # groups of two sizes
    classifier = NaiveBayesClassifier().fit(*clinic(60, 1, 1, 1.0)[:2])
    rows, worth = importance(classifier, X, y), importance(classifier, X, y, groups=patient)
    assert len(worth) == 40
    np.testing.assert_allclose(worth.mean(), rows.mean())
    sums = (rows - rows.mean()).groupby(patient).sum()  # a ratio of sums over groups
    np.testing.assert_allclose(worth.sem(), np.sqrt(40) * sums.std() / len(y))
    assert (worth.sem() > 1.5 * rows.sem()).all()
    alone = importance(classifier, X, y, groups=np.arange(len(y)))
    np.testing.assert_allclose(alone, rows, atol=1e-12)
    even = importance(classifier, X[-120:], y[-120:], groups=patient[-120:])  # equal sizes: means of the groups
    np.testing.assert_allclose(even, rows[-120:].groupby(patient[-120:]).mean(), atol=1e-12)
    refuses(lambda: importance(classifier, X, y, groups=patient[1:]), "one label for each")


def test_held_out_columns_have_errors_of_groups():
    X, y, patient = clinic(40, 6, 0, 1.0)
    found = [compare(X, y, inferences=["exact"], groups=groups, return_estimators=True) for groups in (None, patient)]
    rows, worth = (held_out_importance(one, "exact") for one in found)
    assert worth.shape == (40, 3) and (worth.sem() > 1.5 * rows.sem()).all()


@pytest.mark.compiles
def test_intervals_of_frequencies_resample_groups():
    held = {False: [], True: []}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        patient = np.repeat(np.arange(60), rng.integers(1, 20, 60))
        p = np.full(len(patient), 0.7)
        y = (rng.random(60) < 0.7)[patient].astype(int)  # all visits of a patient end alike
        for grouped in held:
            table = reliability_table(y, p, groups=patient if grouped else None)
            held[grouped].append(table.lower[1, 6] <= 0.7 <= table.upper[1, 6])
    assert np.mean(held[True]) > 0.9 and np.mean(held[False]) < 0.6


def test_intervals_of_groups_of_one_row_are_those_of_rows():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y, weight = (rng.random(400) < p).astype(int), rng.integers(0, 3, 400)
    rows, alone = reliability_table(y, p), reliability_table(y, p, groups=rng.permutation(400))
    for end in ("lower", "upper"):
        np.testing.assert_allclose(getattr(alone, end), getattr(rows, end), atol=0.02)
    np.testing.assert_array_equal(alone.frequency, rows.frequency)
    few = reliability_table([0, 1, 1, 1], [0.1, 0.9, 0.95, 0.92], bins=4, groups=[1, 1, 2, 3])
    assert few.upper[1, 3] == 1 and few.lower[1, 0] == 0 and np.isnan(few.lower[1, 1])
    assert 0 < few.lower[1, 3] < 1 and 0 < few.upper[1, 0] < 1
    twice = reliability_table(y, p, sample_weight=weight, groups=np.arange(400))
    rows = np.repeat(np.arange(400), weight)
    np.testing.assert_allclose(twice.lower, reliability_table(y[rows], p[rows], groups=rows).lower, atol=1e-12)
    refuses(lambda: reliability_table(y, p, groups=[1, 2]), "one label for each of the 400 rows")
