"""Members of columns chosen without the rows left out: screened ones, and numbers of few values as categories."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refuses_parts
from scipy import stats
from sklearn.datasets import load_wine

import bayesgen as bg
from bayesgen import AveragedClassifier, inspection
from bayesgen.averaging.average import Average
from bayesgen.averaging.categories import CategoryMember
from bayesgen.averaging.composed import CodedMember, CodedMembers, ScreenedMember, ScreenedMembers, best_first, evidence
from bayesgen.averaging.gaussians import GaussianMember
from bayesgen.averaging.member import Setting
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.softmax import SoftmaxMember
from bayesgen.averaging.view import Training

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

WINE, CULTIVAR = load_wine(return_X_y=True)
POOL = ["gaussian", "category", "screened"]


def noisy(n=90, columns=30, seed=0):
    """Classes that differ in two correlated columns, the last two, among noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = rng.normal(size=(n, columns))
    x[:, -2:] = x[:, :1] + 0.6 * x[:, -2:] + np.where(y, 0.7, -0.7)[:, None] * [1, -1]
    x[:, 0] = rng.normal(size=n)
    return x, y


def mixed(n=80, seed=0):
    """Numbers and categories with gaps, one of each informative, and weights."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    x, c = rng.normal(size=(n, 5)), rng.integers(3, size=(n, 3))
    x[:, 3] += 2.0 * y
    c[:, 1] = np.where(rng.random(n) < 0.8, y, c[:, 1])
    x[rng.random(x.shape) < 0.1], c[rng.random(c.shape) < 0.1] = np.nan, -1
    return Rows(x, c, y, rng.choice([1.0, 2.0], n), (3, 3, 3), 3)


def framed(rows):
    """The same as a table."""
    frame = pd.DataFrame(rows.x).rename(columns=str)
    for j, column in enumerate(rows.c.T):
        frame[f"c{j}"] = pd.Categorical.from_codes(column, list("uvw"))
    return frame


def chain(x, codes, classes, predictive):
    """Log probability of entries one after the other, each class by itself: no closed form of the evidence."""
    total = 0.0
    for k in range(classes):
        own = x[codes == k]
        total += sum(predictive(own[:i], value) for i, value in enumerate(own))
    return total


def student(prior):
    """The predictive of one entry after others, from SciPy."""
    mean, kappa, alpha, beta = prior

    def log_density(before, value):
        n, k = len(before), kappa + len(before)
        m = (kappa * mean + before.sum()) / k
        b = beta + 0.5 * (before**2).sum() + 0.5 * kappa * mean**2 - 0.5 * k * m**2
        return stats.t(2 * alpha + n, m, np.sqrt(b * (k + 1) / ((alpha + n / 2) * k))).logpdf(value)

    return log_density


def tied(x, codes, classes, prior):
    """Log evidence of classes with means of their own and one variance: their entries are one multivariate t."""
    mean, kappa, alpha, beta = prior
    same = np.equal.outer(codes, codes)
    return stats.multivariate_t(
        np.full(len(x), mean), beta / alpha * (np.eye(len(x)) + same / kappa), 2 * alpha
    ).logpdf(x)


def test_the_bayes_factor_is_that_of_one_entry_after_the_other():
    rows = replace(mixed(), weight=np.ones(80))
    training = Training(rows, rows)
    found = evidence(training)
    for j in range(5):
        seen = ~np.isnan(rows.x[:, j])
        y, codes = training.bent[seen, j], rows.codes[seen]
        prior = y.mean(), 0.1, 2.0, y.var()
        own = chain(y, codes, 3, student(prior)), tied(y, codes, 3, prior)
        split = np.logaddexp(*own) - np.log(2)
        np.testing.assert_allclose(found[j], split - chain(y, 0 * codes, 1, student(prior)), atol=1e-8)
    for j in range(3):
        c = rows.c[rows.c[:, j] >= 0, j]
        codes = rows.codes[rows.c[:, j] >= 0]

        def die(before, value):
            return np.log(((before == value).sum() + 1) / (len(before) + 3))

        np.testing.assert_allclose(found[5 + j], chain(c, codes, 3, die) - chain(c, 0 * codes, 1, die), atol=1e-8)


def test_columns_that_separate_the_classes_come_first_and_empty_ones_last():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    x = rng.normal(size=(100, 6))
    x[:, 1] += y
    x[:, 4] *= 1 + 2 * y  # a difference in spread alone
    x[:, 5] = np.nan
    c = np.column_stack([rng.integers(2, size=100), np.where(rng.random(100) < 0.9, y, 1 - y)])
    rows = Rows(x, c, y, np.ones(100), (2, 2), 2)
    order = best_first(Training(rows, rows))
    assert {*order[:3]} == {1, 4, 7} and order[-1] == 5


def density_of(member, training, x, c):
    """Log density of rows by a member that is fitted anew: the sum of those of its parts."""
    total = 0.0
    for family, part in (
        (GaussianMember, member.gaussian),
        (CategoryMember, member.category),
        (SoftmaxMember, member.softmax),
    ):
        if part is not None:
            (fitted,) = family.fit([(part,)], training)
            total += fitted.log_density(x, c, np.array([list(fitted.members).index(part)]))[0]
    return total


@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_is_left_out_of_the_choice_and_of_the_fit(weighted):
    rows = mixed() if weighted else replace(mixed(), weight=np.ones(80))
    training, out, fold = Training(rows, rows), np.arange(80), np.arange(80) % 10
    groups = ScreenedMember.propose(rows, Setting())
    assert [group[0].columns for group in groups] == [2, 3, 5]
    _, density = ScreenedMember.fit_and_leave_out(groups, training, out, fold)
    choices = set()
    for j in range(10):
        here = fold == j
        rest = rows.take(~here)
        order = best_first(Training(rest, rest))
        for group, own in zip(groups, density, strict=True):
            chosen = sorted(order[: group[0].columns])
            choices.add(tuple(chosen))
            a, b = [i for i in chosen if i < 5], [i - 5 for i in chosen if i >= 5]
            cut = Rows(rest.x[:, a], rest.c[:, b], rest.codes, rest.weight, (3,) * len(b), 3)
            again, asked = Training(cut, cut), (rows.x[here][:, a], rows.c[here][:, b])
            for member, found in zip(group, own, strict=True):
                np.testing.assert_allclose(found[here], density_of(member, again, *asked), atol=1e-9)
    assert len(choices) > 3  # it was chosen anew


def test_noise_costs_less_and_what_wins_the_weight_is_screened():
    x, y = noisy()
    new, truth = noisy(2000, seed=1)
    pool = ["gaussian", "softmax"]
    loss = {}
    for members in (pool, [*pool, "screened"]):
        classifier = AveragedClassifier(members=members).fit(x, y)
        loss[len(members)] = bg.evaluation.log_loss(truth, classifier.predict_proba(new))
    table = classifier.summary()
    assert loss[3] < loss[2] - 0.1
    assert table["kind"].iloc[0] == "screened" and table.loc[table["kind"] == "screened", "share"].iloc[0] > 0.3
    assert set(table.loc[table["kind"] == "screened", "columns"]) == {15, 8, 4, 2}


CASES = {
    "fewer rows than columns": (WINE[::18, :], CULTIVAR[::18]),
    "fewer rows than columns, wide": (np.random.default_rng(0).normal(size=(8, 300)), np.arange(8) % 2),
    "noise": (np.random.default_rng(1).normal(size=(60, 10)), np.arange(60) % 3),
    "one value in each fold but one": (np.eye(40)[:, :8], np.arange(40) % 2),
    "the same column again": (np.repeat(WINE[::6, :2], 4, axis=1), CULTIVAR[::6]),
    "a class of one row": (WINE[[0, *range(60, 100)]], CULTIVAR[[0, *range(60, 100)]]),
    "gaps": (np.where(np.random.default_rng(2).random(WINE.shape) < 0.4, np.nan, WINE)[::4], CULTIVAR[::4]),
    "a column of gaps but for one row": (
        np.column_stack([WINE[::4], np.where(np.arange(45) < 2, np.arange(45.0), np.nan)]),
        CULTIVAR[::4],
    ),
    "one class": (WINE[::9], np.zeros(20, int)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:no member predicts", "ignore:columns .* hold one value")
def test_any_table(case):
    x, y = CASES[case]
    classifier = AveragedClassifier(members=POOL).fit(x, y)
    asked = np.concatenate([x, np.full((1, x.shape[1]), np.nan), np.where(np.arange(x.shape[1]) % 2, x[:1], 1e30)])
    probability = classifier.predict_proba(asked)
    assert np.isfinite(probability).all()
    np.testing.assert_allclose(probability.sum(1), 1)
    prior = np.exp(classifier.average_.log_class_prior)
    np.testing.assert_allclose(probability[len(x)], prior / prior.sum(), rtol=1e-9)  # nothing is known of the row
    if case == "noise":
        assert classifier.scores_["nested"] > classifier.scores_["base_rate"] - 0.05


def test_tables_of_five_columns_are_as_they_were():
    x, y = WINE[::4, :5], CULTIVAR[::4]
    assert not any(isinstance(m, ScreenedMember) for m in AveragedClassifier(members=POOL).fit(x, y).members_)


@pytest.mark.filterwarnings("ignore:35 of 115 rows (by weight )?repeat another:UserWarning")
def test_order_and_names_and_the_way_a_weight_is_written_change_nothing():
    rows = mixed()
    frame, names = framed(rows), np.array(["b", "c", "a"])[rows.codes]
    first = AveragedClassifier(members=POOL).fit(frame, rows.codes, rows.weight)
    assert first.summary().set_index("kind").loc["screened", "share"].iloc[0] > 0.02
    order = np.random.default_rng(0).permutation(frame.shape[1])
    twice = np.repeat(np.arange(80), rows.weight.astype(int))[::-1]
    other = AveragedClassifier(members=POOL).fit(frame.iloc[twice, order], names[twice])
    np.testing.assert_allclose(  # the sharpening follows five more searches for weights, each to a score of 1e-7
        other.predict_proba(frame.iloc[:, order])[:, [1, 2, 0]], first.predict_proba(frame), rtol=1e-6, atol=1e-10
    )


def test_files_answer_equally_and_those_that_lead_astray_are_refused(tmp_path):
    rows = mixed()
    frame = framed(rows)
    classifier = AveragedClassifier(members=[*POOL, "softmax"]).fit(frame, rows.codes)
    classifier.save(tmp_path / "own.safetensors")
    np.testing.assert_array_equal(
        bg.load(tmp_path / "own.safetensors").predict_proba(frame), classifier.predict_proba(frame)
    )
    for words, change in {
        "take no columns of this table": lambda part: {"chosen": part.chosen + 7},
        "are of another table": lambda part: {"dim": 4},
        "members are not": lambda part: {"members": part.members[:-1]},
    }.items():
        words = f"do not fit each other.*({words}|exponents are not)"
        refuses_parts(classifier, ScreenedMembers, change, words, tmp_path / "wrong.safetensors")


def test_questions_go_through_screened_members_or_leave_them_out():
    rows = mixed()
    frame = framed(rows)
    classifier = AveragedClassifier(members=POOL).fit(frame, rows.codes)
    average: Average = classifier.average_
    screened = np.array([isinstance(member, ScreenedMember) for member in classifier.members_])
    assert average.weights[screened].sum() > 0.05 and not average.density_weights[screened].any()
    some = frame.iloc[:5]
    said = np.exp(classifier.explain(some).sum("term").values)
    np.testing.assert_allclose(said / said.sum(1, keepdims=True), classifier.predict_proba(some), rtol=1e-9)
    assert (inspection.next_measurement(classifier, some).fillna(0) >= 0).all(axis=None)
    assert inspection.impute(classifier, some).notna().all(axis=None)
    assert len(classifier.sample(5)[0]) == 5 and classifier.predict_proba_interval(some).shape == (5, 3, 2)
    with pytest.raises(ValueError, match=r"no member has a density of all columns"):
        AveragedClassifier(members=["screened"]).fit(frame, rows.codes).sample(3)


def test_columns_with_leaves_and_groups_of_rows():
    rows = mixed()
    frame = framed(rows).assign(visits=np.random.default_rng(0).poisson(1 + 2 * rows.codes))
    classifier = AveragedClassifier(members=POOL, features={"visits": "poisson"})
    classifier.fit(frame, rows.codes, groups=np.arange(80) // 2)
    assert any(isinstance(member, ScreenedMember) for member in classifier.members_)
    np.testing.assert_allclose(classifier.predict_proba(frame).sum(1), 1)


CODED = ["gaussian", "softmax", "category", "coded"]


def grades(n=60, seed=0):
    """A class at the odd grades of 1 to 6, and a number that is weakly informative."""
    rng = np.random.default_rng(seed)
    grade = rng.integers(1, 7, n)
    y = np.where(rng.random(n) < 0.9, grade % 2, rng.integers(2, size=n))
    return pd.DataFrame({"grade": grade.astype(float), "size": rng.normal(0.5 * y)}), y


def graded(n=80, seed=0):
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
    plain, coded = (AveragedClassifier(members=own).fit(x, y) for own in (CODED[:-1], CODED))
    before, after = (bg.evaluation.log_loss(truth, own.predict_proba(new)) for own in (plain, coded))
    assert after < 0.45 < 0.6 < before  # with the rule known .20
    table = coded.summary()
    assert table["kind"].iloc[0] == "coded" and table.loc[table["kind"] == "coded", "share"].iloc[0] > 0.8
    assert set(table.loc[table["kind"] == "coded", "columns"]) == {1}


def test_a_row_is_left_out_of_the_values_and_of_the_fit():
    rows = graded()
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
            expected = density_of(member, Training(made, made), asked.x, asked.c)
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
    rows = graded()
    frame = pd.DataFrame(rows.x, columns=list("abcd")).assign(**{f"c{j}": rows.c[:, j].astype(str) for j in (0, 1)})
    frame = frame.replace("-1", None)
    first = AveragedClassifier(members=CODED).fit(frame, rows.codes).predict_proba(frame)
    order = np.random.default_rng(0).permutation(80)
    other = frame.assign(b=10 + 3 * frame["b"])[["c1", "d", "b", "a", "c", "c0"]]
    again = AveragedClassifier(members=CODED).fit(other.iloc[order], np.array(list("zxy"))[rows.codes[order]])
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


def test_files_of_coded_members_answer_equally_and_those_that_lead_astray_are_refused(tmp_path):
    x, y = grades()
    classifier = AveragedClassifier(members=CODED).fit(x, y)
    classifier.save(tmp_path / "own.safetensors")
    np.testing.assert_array_equal(bg.load(tmp_path / "own.safetensors").predict_proba(x), classifier.predict_proba(x))
    for words, change in {
        r"CodedMembers\.columns are no places of": {"columns": np.array([5])},
        "have no values of their columns": {"values": (np.array([2.0, 1.0]),)},
    }.items():
        words = f"do not fit each other.*{words}"
        refuses_parts(classifier, CodedMembers, lambda _, own=change: own, words, tmp_path / "wrong.safetensors")


def test_another_seed_changes_little():
    x, y = grades(60)
    first, other = (AveragedClassifier(random_state=seed).fit(x, y).predict_proba(x) for seed in (0, 1))
    assert np.abs(first - other).mean() < 0.01
    few = ["gaussian", "mixture", "category", "softmax", "screened", "coded"]
    first, other = (AveragedClassifier(members=few, random_state=seed).fit(x, y).predict_proba(x) for seed in (0, 1))
    np.testing.assert_array_equal(first, other)
