"""Coded members: numbers of few values as categories, beside the members that take them as numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

import bayesgen as bg
from bayesgen import AveragedClassifier
from bayesgen.averaging.categories import CategoryMember
from bayesgen.averaging.composed import CodedMember, CodedMembers
from bayesgen.averaging.gaussians import GaussianMember
from bayesgen.averaging.member import Setting
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.softmax import SoftmaxMember
from bayesgen.averaging.view import Training

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

POOL = ["gaussian", "softmax", "category", "coded"]


def grades(n=60, seed=0):
    """A class at the odd grades of 1 to 6, and a number that is weakly informative."""
    rng = np.random.default_rng(seed)
    grade = rng.integers(1, 7, n)
    y = np.where(rng.random(n) < 0.9, grade % 2, rng.integers(2, size=n))
    return pd.DataFrame({"grade": grade.astype(float), "size": rng.normal(0.5 * y)}), y


def mixed(n=80, seed=0):
    """Numbers of many and of few values, and categories, with gaps and weights."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    x = np.column_stack([rng.normal(size=n), rng.integers(4, size=n), y + rng.normal(size=n), (y + 1) % 3 * 2.5])
    x[::7, 3] = 2.5
    c = np.where(rng.random((n, 1)) < 0.7, y[:, None], rng.integers(3, size=(n, 2)))
    x[rng.random(x.shape) < 0.1], c[rng.random(c.shape) < 0.1] = np.nan, -1
    return Rows(x, c, y, rng.choice([1.0, 2.0], n), (3, 3), 3)


def test_a_class_at_every_other_grade_is_found():
    x, y = grades()
    new, truth = grades(2000, 1)
    plain, coded = (AveragedClassifier(members=own).fit(x, y) for own in (POOL[:-1], POOL))
    before, after = (bg.evaluation.log_loss(truth, own.predict_proba(new)) for own in (plain, coded))
    assert after < 0.45 < 0.6 < before  # with the rule known .20
    table = coded.summary()
    assert table["kind"].iloc[0] == "coded" and table.loc[table["kind"] == "coded", "share"].iloc[0] > 0.8
    assert set(table.loc[table["kind"] == "coded", "columns"]) == {1}


def test_a_row_is_left_out_of_the_values_and_of_the_fit():
    rows = mixed()
    training, out, fold = Training(rows, rows), np.arange(80), np.arange(80) % 10
    (group,) = CodedMember.propose(rows, Setting())
    assert {member.columns for member in group} == {(1, 3)}
    _, (density,) = CodedMember.fit_and_leave_out([group], training, out, fold)

    def coded(some, like):
        own = [pd.Categorical(some.x[:, j], pd.Series(like.x[:, j]).dropna().sort_values().unique()) for j in (1, 3)]
        codes = np.column_stack([some.c, *(part.codes for part in own)])
        return replace(some, x=some.x[:, [0, 2]], c=codes, levels=(3, 3, *(len(part.categories) for part in own)))

    for j in range(10):
        here, rest = rows.take(fold == j), rows.take(fold != j)
        made, asked = coded(rest, rest), coded(here, rest)
        for member, found in zip(group, density, strict=True):
            expected = np.zeros((len(here), 3))
            for family, part in (
                (GaussianMember, member.gaussian),
                (CategoryMember, member.category),
                (SoftmaxMember, member.softmax),
            ):
                if part is not None:
                    (fitted,) = family.fit([(part,)], Training(made, made))
                    place = np.array([list(fitted.members).index(part)])
                    expected += fitted.log_density(asked.x, asked.c, place)[0]
            np.testing.assert_allclose(found[fold == j], expected, atol=1e-9)


@pytest.mark.parametrize(
    ("columns", "coded"),
    [
        (np.arange(10.0), ()),  # as many values as rows
        (np.arange(30.0) % 11, ()),  # too many values
        (np.arange(30.0) % 2, ()),  # two values: a line knows all
        (np.where(np.arange(30) % 4, np.arange(30.0) % 3, np.nan), (0,)),
    ],
)
def test_numbers_of_three_to_ten_values_are_coded(columns, coded):
    y = np.arange(len(columns)) % 2
    rows = Rows(columns[:, None], np.empty((len(y), 0), int), y, np.ones(len(y)), (), 2)
    groups = CodedMember.propose(rows, Setting())
    assert [member.columns for group in groups for member in group[:1]] == [coded] * len(groups)
    assert bool(groups) == bool(coded)


def test_units_names_and_order_change_nothing():
    rows = mixed()
    frame = pd.DataFrame(rows.x, columns=list("abcd")).assign(**{f"c{j}": rows.c[:, j].astype(str) for j in (0, 1)})
    frame = frame.replace("-1", None)
    first = AveragedClassifier(members=POOL).fit(frame, rows.codes).predict_proba(frame)
    order = np.random.default_rng(0).permutation(80)
    other = frame.assign(b=10 + 3 * frame["b"])[["c1", "d", "b", "a", "c", "c0"]]
    again = AveragedClassifier(members=POOL).fit(other.iloc[order], np.array(list("zxy"))[rows.codes[order]])
    np.testing.assert_allclose(again.predict_proba(other)[:, [2, 0, 1]], first, atol=1e-6)


@pytest.mark.filterwarnings("ignore:no member predicts")
def test_values_that_are_new_and_rows_without_entries_have_an_answer():
    x, y = grades()
    classifier = AveragedClassifier(members=["coded"]).fit(x, y)
    asked = pd.DataFrame({"grade": [2.5, 1e300, np.nan, np.nan], "size": [np.nan, np.nan, np.nan, 0.3]})
    probability = classifier.predict_proba(asked)
    prior = np.exp(classifier.average_.log_class_prior)
    np.testing.assert_allclose(probability[:3], np.tile(prior / prior.sum(), (3, 1)), rtol=1e-9)
    assert np.isfinite(probability).all()


def test_files_answer_equally_and_those_that_lead_astray_are_refused(tmp_path):
    x, y = grades()
    classifier = AveragedClassifier(members=POOL).fit(x, y)
    classifier.save(tmp_path / "own.safetensors")
    np.testing.assert_array_equal(bg.load(tmp_path / "own.safetensors").predict_proba(x), classifier.predict_proba(x))
    average = classifier.average_
    place = next(i for i, part in enumerate(average.parts) if isinstance(part, CodedMembers))
    for words, change in {
        r"CodedMembers\.columns are no places of": {"columns": np.array([5])},
        "have no values of their columns": {"values": (np.array([2.0, 1.0]),)},
    }.items():
        parts = list(average.parts)
        parts[place] = replace(parts[place], **change)
        classifier.average_ = replace(average, parts=tuple(parts))
        classifier.save(tmp_path / "wrong.safetensors")
        refuses(lambda: bg.load(tmp_path / "wrong.safetensors"), f"do not fit each other.*{words}")


def test_another_seed_changes_little():
    x, y = grades(60)
    first, other = (AveragedClassifier(random_state=seed).fit(x, y).predict_proba(x) for seed in (0, 1))
    assert np.abs(first - other).mean() < 0.01
    few = ["gaussian", "mixture", "category", "softmax", "screened", "coded"]
    first, other = (AveragedClassifier(members=few, random_state=seed).fit(x, y).predict_proba(x) for seed in (0, 1))
    np.testing.assert_array_equal(first, other)
