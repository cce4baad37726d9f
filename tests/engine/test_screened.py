"""Screened members: columns that separate the classes best, chosen without the rows that are left out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import stats
from sklearn.datasets import load_wine

import bayesgen as bg
from bayesgen import AveragedClassifier, inspection
from bayesgen.averaging.average import Average
from bayesgen.averaging.categories import CategoryMember
from bayesgen.averaging.composed import ScreenedMember, ScreenedMembers, best_first, evidence
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
                expected = np.zeros((here.sum(), 3))
                for family, part in (
                    (GaussianMember, member.gaussian),
                    (CategoryMember, member.category),
                    (SoftmaxMember, member.softmax),
                ):
                    if part is not None:
                        (fitted,) = family.fit([(part,)], again)
                        place = np.array([list(fitted.members).index(part)])
                        expected += fitted.log_density(*asked, place)[0]
                np.testing.assert_allclose(found[here], expected, atol=1e-9)
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
    average = classifier.average_
    place = next(i for i, part in enumerate(average.parts) if isinstance(part, ScreenedMembers))
    wrong = {
        "take no columns of this table": {"chosen": average.parts[place].chosen + 7},
        "are of another table": {"dim": 4},
        "members are not": {"members": average.parts[place].members[:-1]},
    }
    for words, change in wrong.items():
        parts = list(average.parts)
        parts[place] = replace(parts[place], **change)
        classifier.average_ = replace(average, parts=tuple(parts))
        classifier.save(tmp_path / "wrong.safetensors")
        refuses(lambda: bg.load(tmp_path / "wrong.safetensors"), f"do not fit each other.*({words}|exponents are not)")


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
