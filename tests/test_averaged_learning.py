"""An average learns on: sums as a fit of all rows under what the first learned, weights by scores of rows before."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

import bayesgen as bg
from bayesgen.averaging import view
from bayesgen.averaging.view import Filling

AC = bg.AveragedClassifier
FEW = ["gaussian", "category"]
N, FIRST = 160, 70


def table(seed=0, gaps=False, n=N):
    """Numbers in other units, one skewed, a category, bools and a count, of three classes of unequal size."""
    rng = np.random.default_rng(seed)
    y = np.array(["low", "mid", "top"])[np.r_[0, 1, 2, rng.choice(3, n - 3, p=[0.5, 0.3, 0.2])]]
    k = np.unique(y, return_inverse=True)[1]
    X = pd.DataFrame({"a": 1e3 + 40 * rng.normal(k), "b": rng.lognormal(0.3 * k), "c": 1e-3 * rng.normal(size=n)})
    X["kind"] = pd.Categorical(np.array(list("uvw"))[(rng.integers(0, 2, n) + (k > 0))], categories=list("uvw"))
    X["flag"] = rng.random(n) < 0.3 + 0.2 * k
    X["visits"] = rng.poisson(1 + k)
    if gaps:
        holes = rng.random((n, 3)) < 0.15
        X.loc[:, ["a", "b", "c"]] = X[["a", "b", "c"]].mask(holes)
        X.loc[rng.random(n) < 0.1, "kind"] = np.nan
    return X, y


def fresh(**options):
    return AC(**({"features": {"visits": "poisson"}, "members": FEW} | options))


def known(X, y, **options):
    """A fit to the first rows, among which all classes and categories are."""
    return fresh(**options).fit(X[:FIRST], y[:FIRST])


def pieces(order, seed):
    return np.split(order, np.sort(np.random.default_rng(seed).choice(np.arange(1, len(order)), 4, replace=False)))


def by_class(classifier, X):
    """Log densities of rows under every member, about those of the first class."""
    density = classifier.average_.log_density(*classifier.fitted_.read(X).values())
    return density - density[..., :1]


def equal(a, b, X, tolerance=1e-10):
    np.testing.assert_allclose(a.average_.log_class_prior, b.average_.log_class_prior, rtol=1e-12)
    np.testing.assert_allclose(by_class(a, X), by_class(b, X), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", [0, 1])
def test_where_nothing_else_is_learned_the_members_are_those_of_a_fit_of_all_rows(seed):
    X, y = table(seed)
    whole = fresh(bend=False).fit(X, y)
    learned = known(X, y, bend=False)
    for own in pieces(FIRST + np.random.default_rng(seed).permutation(N - FIRST), seed):
        learned.partial_fit(X.iloc[own], y[own])
    equal(learned, whole, X)
    assert learned.total_weight_ == N == learned.effective_rows_


@pytest.fixture
def under(monkeypatch):
    """Let later fits take bends, fillings and components of a fit in place of those of their rows."""

    def take(fitted):
        views = {part.view.count: part.view for part in fitted.average_.parts if hasattr(part, "view")}
        warp, filling = views[1].warp, views[1].filling
        monkeypatch.setattr(view.YeoJohnson, "learn", classmethod(lambda cls, *rows: warp))
        monkeypatch.setattr(view.Filling, "learn", classmethod(lambda cls, *rows: filling))
        monkeypatch.setattr(view.View, "learn", classmethod(lambda cls, training, count: views[count]))

    return take


@pytest.mark.parametrize("gaps", [False, True])
def test_members_are_those_of_a_fit_of_all_rows_under_the_bends_of_the_first(gaps, under):
    X, y = table(2, gaps)
    weight = np.random.default_rng(3).choice([0.5, 1.0, 2.5], N)
    members = [*FEW, "mixture"]
    learned = fresh(members=members).fit(X[:FIRST], y[:FIRST], weight[:FIRST])
    under(learned)
    whole = fresh(members=members).fit(X, y, weight)
    for own in pieces(FIRST + np.random.default_rng(1).permutation(N - FIRST), 1):
        learned.partial_fit(X.iloc[own], y[own], sample_weight=weight[own])
    equal(learned, whole, X)
    np.testing.assert_allclose(learned.effective_rows_, weight.sum() ** 2 / (weight**2).sum())


def test_gaps_that_come_later_are_completed_by_the_rows_of_the_fit():
    X, y = table(4)
    complete = np.random.default_rng(0).normal(size=(90, 3)) * [1, 2, 3] + np.arange(90)[:, None] % 3
    codes = np.arange(90) % 3
    found = Filling.learn(complete, np.ones((90, 3), bool), codes, 3, np.ones(90))
    mean = np.array([complete[codes == k].mean(0) for k in range(3)])
    within = sum(29 * np.cov(complete[codes == k].T) for k in range(3))
    np.testing.assert_allclose(found.mean, mean)
    prior = 90 * found.covariance - within  # of three rows, on the diagonal
    np.testing.assert_allclose(prior - np.diag(np.diag(prior)), 0.0, atol=1e-9)
    assert (np.diag(prior) > 0).all()

    gone = X.copy()
    gone.loc[FIRST:, "a"] = gone.loc[FIRST:, "a"].mask(np.arange(N - FIRST) % 4 == 0)
    one, other = known(X, y), known(X, y)
    one.partial_fit(gone[FIRST:], y[FIRST:])
    for own in pieces(np.arange(N - 1, FIRST - 1, -1), 2):
        other.partial_fit(gone.iloc[own], y[own])
    equal(one, other, gone)
    whole = known(X, y).partial_fit(X[FIRST:], y[FIRST:])
    assert 0 < np.abs(by_class(one, X) - by_class(whole, X))[:, :, 1:].mean() < 0.5


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda fitted: pickle.loads(pickle.dumps(fitted)), "file"])
def test_a_copy_learns_on_to_the_bit(copied, tmp_path):
    X, y = table(5)
    fitted = known(X, y).partial_fit(X[FIRST:90], y[FIRST:90])
    if copied == "file":
        fitted.save(tmp_path / "fit.safetensors")
        other = bg.load(tmp_path / "fit.safetensors")
    else:
        other = copied(fitted)
    before = other.predict_proba(X)
    fitted.partial_fit(X[90:], y[90:])
    np.testing.assert_array_equal(other.predict_proba(X), before)
    other.partial_fit(X[90:], y[90:])
    np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))
    assert other.scores_["nested"] == fitted.scores_["nested"]


def test_a_fit_of_a_file_from_before_predicts_and_says_why_it_learns_no_more(tmp_path):
    X, y = table(5)
    fitted = known(X, y)
    before = fitted.predict_proba(X)
    del fitted.stream_
    fitted.save(tmp_path / "fit.safetensors")
    again = bg.load(tmp_path / "fit.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), before)
    for ask in (again.partial_fit, again.forget):
        refuses(lambda ask=ask: ask(X[:3], y[:3]), "saved before averages learned on")


def test_whole_weights_are_rows_written_out_and_pieces_without_weight_change_nothing():
    X, y = table(6)
    times = np.random.default_rng(0).integers(0, 3, N - FIRST)
    one, other = known(X, y), known(X, y)
    one.partial_fit(X[FIRST:], y[FIRST:], sample_weight=times)
    own = np.repeat(np.arange(FIRST, N), times)
    other.partial_fit(X.iloc[own], y[own])
    equal(one, other, X)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-9)


def test_the_first_call_is_a_fit_and_knows_classes_that_are_to_come():
    X, y = table(7)
    first = fresh().partial_fit(X[:FIRST], y[:FIRST], classes=["low", "mid", "top"])
    np.testing.assert_array_equal(first.predict_proba(X), known(X, y).predict_proba(X))
    two = y != "top"
    later = fresh().partial_fit(X[two][:50], y[two][:50], classes=["low", "mid", "top"])
    assert later.predict_proba(X).shape == (N, 3)
    later.partial_fit(X[~two], y[~two])
    assert (later.predict(X[~two]) == "top").mean() > 0.5


def test_what_cannot_be_learned_is_refused_and_the_fit_stays():
    X, y = table(8)
    fitted = known(X, y)
    before = vars(fitted).copy()
    far = X.copy()
    far.loc[3, "b"] = 1e5
    new = X.astype({"kind": object})
    new.loc[2, "kind"] = "z"
    infinite = X.copy()
    infinite.loc[1, "a"] = np.inf
    less = X.copy()
    less.loc[0, "visits"] = -1
    for rows, labels, words in (
        (far[:5], y[:5], "column 'b': value 100000 in row 3 is .* times as far"),
        (new[:5], y[:5], "z"),
        (infinite[:5], y[:5], "infinite"),
        (less[:5], y[:5], "visits"),
        (X[:5], ["other"] * 5, "other"),
        (X[["a", "b"]][:5], y[:5], "feature names"),
    ):
        refuses(lambda rows=rows, labels=labels: fitted.partial_fit(rows, labels), words)
        assert vars(fitted).keys() == before.keys()
        assert all(vars(fitted)[name] is value for name, value in before.items())
    refuses(lambda: fitted.partial_fit(X[:5], y[:5], classes=["low", "mid"]), "since the first call")
    refuses(lambda: fresh().partial_fit(X[:40], y[:40]), "classes must be given at the first call")
    refuses(lambda: fresh().partial_fit(X[:4], y[:4], classes=["low", "mid", "top"]), "first piece has 4 rows")
    kept = known(X, y, wild="keep").partial_fit(far[:5], y[:5])
    assert kept.total_weight_ == FIRST + 5


def test_rows_are_scored_by_members_that_had_not_learned_from_them():
    X, y = table(9)
    fitted = known(X, y)
    members = sum(len(part.members) for part in fitted.average_.parts)
    rows = dict(fitted.fitted_.read(X[FIRST:100]))
    each = [
        part.log_density(rows["numbers"], rows["categories"], np.arange(len(part.members)))
        for part in fitted.average_.parts
    ]
    expected = np.concatenate([*each, fitted.average_.leaves.log_density(rows["leaves"])[None]])
    prior = fitted.average_.log_class_prior
    before = len(fitted.stream_.scored)
    fitted.partial_fit(X[FIRST:100], y[FIRST:100])
    scored = fitted.stream_.scored
    assert len(scored) == before + 100 - FIRST
    assert scored.density.shape == (members + 1, len(scored), 3)
    late = scored.density[:, before:]
    order = np.lexsort(expected[0].T)
    np.testing.assert_allclose(late[:, np.lexsort(late[0].T)], expected[:, order], rtol=1e-5)
    np.testing.assert_allclose(scored.log_prior[before:], np.tile(prior, (100 - FIRST, 1)))
    assert (scored.place[before:] >= FIRST).all()
    assert (scored.place[:before] < FIRST).all()


def test_the_rows_of_a_group_leave_together_and_two_pieces_have_no_group_in_common():
    X, y = table(10)
    patient = np.r_[1000 + np.arange(FIRST), np.arange(N - FIRST) // 4]
    fitted = known(X, y, keep_rows=True)
    alone = copy.deepcopy(fitted)
    for s in (slice(FIRST, 110), slice(110, N)):
        fitted.partial_fit(X[s], y[s], groups=patient[s] % 100)
        alone.partial_fit(X[s], y[s])
    assert len(np.unique(fitted.stream_.scored.group)) == len(np.unique(patient))
    equal(fitted, alone, X)
    assert fitted.scores_["nested_error"] != alone.scores_["nested_error"]
    alone.partial_fit(X[:3], y[:3], groups=["one"] * 3)  # a piece may be one group
    whole = fresh().fit(X, y, groups=patient)
    np.testing.assert_allclose(fitted.refit().predict_proba(X), whole.predict_proba(X), rtol=1e-9)
    assert not hasattr(fitted, "leave_one_out")


def test_a_fifth_of_new_rows_chooses_weights_anew_and_the_last_half_of_all_is_told():
    X, y = table(10)
    fitted = known(X, y)
    old = fitted.weights_
    fitted.partial_fit(X[FIRST : FIRST + 17], y[FIRST : FIRST + 17])
    np.testing.assert_array_equal(fitted.weights_, old)
    assert fitted.scores_["rows"] == FIRST
    fitted.partial_fit(X[FIRST + 17 : FIRST + 18], y[FIRST + 17 : FIRST + 18])
    assert np.abs(fitted.weights_ - old).max() > 0
    rows = FIRST + 18
    assert fitted.scores_["rows"] == (fitted.stream_.scored.place >= rows / 2).sum() == rows / 2
    assert fitted.weights_.sum() == pytest.approx(1)
    assert (fitted.scores_["as of"] == rows).all()
    trees = known(X, y, members=["gaussian", "forest", "softmax"]).partial_fit(X[FIRST:90], y[FIRST:90])
    stays = [member.family in ("forest", "softmax") for member in trees.members_]
    np.testing.assert_array_equal(trees.scores_["as of"], np.where(stays, FIRST, 90))


@pytest.mark.parametrize("weights", ["stacking", "evidence"])
def test_weights_after_learning_on_are_those_of_a_fit_where_evidence_chooses(weights):
    X, y = table(11)
    learned = known(X, y, bend=False, weights=weights).partial_fit(X[FIRST:], y[FIRST:])
    whole = fresh(bend=False, weights=weights).fit(X, y)
    if weights == "evidence":
        np.testing.assert_allclose(learned.predict_proba(X), whole.predict_proba(X), rtol=1e-8, atol=1e-10)
    else:
        assert np.abs(learned.predict_proba(X) - whole.predict_proba(X)).mean() < 0.03


# -- forget, decay, merge ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True])
def test_forgotten_rows_were_never_there_and_their_scores_leave(gaps):
    X, y = table(12, gaps)
    fitted = known(X, y).partial_fit(X[FIRST:], y[FIRST:])
    left = known(X, y).partial_fit(X[110:], y[110:])
    fitted.forget(X[FIRST:110], y[FIRST:110])  # no warning: they came after the fit
    equal(fitted, left, X, 1e-8)
    ours, theirs = fitted.stream_.scored, left.stream_.scored
    np.testing.assert_array_equal(np.sort(ours.digest), np.sort(theirs.digest))
    np.testing.assert_allclose(fitted.effective_rows_, left.effective_rows_)
    with pytest.warns(UserWarning, match="10 rows may be of the fit, which bends.* still know"):
        fitted.forget(X[:10], y[:10])
    assert len(fitted.stream_.scored) == len(ours) - 10
    assert fitted.total_weight_ == N - 50


def test_strict_forgetting_refuses_where_something_still_knows_the_rows():
    X, y = table(12)
    fitted = known(X, y).partial_fit(X[FIRST:], y[FIRST:])
    before = vars(fitted).copy()
    refuses(
        lambda: fitted.forget(X[:5], y[:5], strict=True), "5 rows may be of the fit, which bends still know: fit anew"
    )
    assert all(vars(fitted)[name] is value for name, value in before.items())
    fitted.forget(X[FIRST:90], y[FIRST:90], strict=True)
    known(X, y, bend=False).forget(X[:5], y[:5], strict=True)  # sums alone know them
    refuses(lambda: known(X, y, members=["forest"]).forget(X[:5], y[:5], strict=True), "which forest still know")
    known(X, y, keep_rows=True).forget(X[:5], y[:5], strict=True)


def test_what_cannot_be_forgotten_is_refused_and_the_fit_stays():
    X, y = table(13)
    fitted = known(X, y)
    before = vars(fitted).copy()
    for rows, labels, words in (
        (pd.concat([X[:FIRST]] * 2), np.tile(y[:FIRST], 2), "not among those of the fit"),
        (X[:FIRST], y[:FIRST], "no row would be left"),
        (X[:5], ["other"] * 5, "other"),
    ):
        refuses(lambda rows=rows, labels=labels: fitted.forget(rows, labels), words)
        assert all(vars(fitted)[name] is value for name, value in before.items())


def test_decay_is_a_weight_of_the_rows_before():
    X, y = table(14)
    decayed = known(X, y, bend=False).decay(0.5).partial_fit(X[FIRST:], y[FIRST:])
    weight = np.where(np.arange(N) < FIRST, 0.5, 1.0)
    equal(decayed, fresh(bend=False).fit(X, y, weight), X)
    assert decayed.total_weight_ == weight.sum()
    assert set(decayed.stream_.scored.weight) == {0.5, 1.0}
    refuses(lambda: decayed.decay(0), "factor must be")


def test_copies_of_one_fit_that_learned_apart_merge_and_others_are_refused():
    X, y = table(15)
    start = known(X, y)
    a, b, c = (
        copy.deepcopy(start).partial_fit(X[s], y[s]) for s in (slice(FIRST, 100), slice(100, 130), slice(130, N))
    )
    whole = copy.deepcopy(start).partial_fit(X[FIRST:], y[FIRST:])
    for merged in (a + b + c, sum([c, b, a]), a + (c + b)):
        equal(merged, whole, X)
        assert merged.total_weight_ == N
        np.testing.assert_array_equal(np.sort(merged.stream_.scored.digest), np.sort(whole.stream_.scored.digest))
    np.testing.assert_allclose((a + b).predict_proba(X), (b + a).predict_proba(X), rtol=1e-8)
    b.forget(X[100:110], y[100:110])
    equal(a + b, copy.deepcopy(start).partial_fit(X[FIRST:100], y[FIRST:100]).partial_fit(X[110:130], y[110:130]), X)
    gone = X.copy()
    gone.loc[130:, "a"] = np.nan
    d = copy.deepcopy(start).partial_fit(gone[130:], y[130:])
    equal(a + d, d + a, X)
    refuses(lambda: a + copy.deepcopy(a), "learned from the same rows")
    refuses(lambda: a + fresh().fit(X[60:], y[60:]), "fitted apart")
    refuses(lambda: a + known(X, y, wild="keep"), "differ in")
    assert a.__add__(1) is NotImplemented


def test_what_copies_did_before_they_parted_is_never_counted_twice(tmp_path):
    X, y = table(15)
    start = known(X, y, bend=False)  # so that nothing but sums knows a row
    later = [slice(FIRST + 20, FIRST + 40), slice(FIRST + 40, FIRST + 60)]

    def parted(common, change=lambda fitted: fitted):
        common = copy.deepcopy(start) if common is None else common
        return [change(copy.deepcopy(common).partial_fit(X[s], y[s])) for s in later]

    seen = copy.deepcopy(start).partial_fit(X[FIRST : FIRST + 20], y[FIRST : FIRST + 20])
    for pair in (
        parted(seen),
        parted(copy.deepcopy(start).decay(0.5)),
        parted(copy.deepcopy(start).forget(X[:5], y[:5])),
        parted(None, lambda fitted: fitted.forget(X[:5], y[:5])),
        parted(None, lambda fitted: fitted.decay(0.5)),
    ):
        refuses(lambda pair=pair: pair[0] + pair[1], "count twice")
    a, b = parted(None)
    refuses(lambda: (a + b) + copy.deepcopy(b).partial_fit(X[-5:], y[-5:]), "count twice")
    a.forget(X[:5], y[:5]).save(tmp_path / "a.safetensors")
    merged = bg.load(tmp_path / "a.safetensors") + b.forget(X[5:8], y[5:8])
    equal(merged, (parted(None)[0] + parted(None)[1]).forget(X[:8], y[:8]), X)


# -- kept rows --------------------------------------------------------------------------------------------------------


def test_kept_rows_are_fitted_anew_as_if_they_had_come_at_once(tmp_path):
    X, y = table(16, gaps=True)
    fitted = known(X, y, keep_rows=True)
    np.testing.assert_array_equal(fitted.predict_proba(X), known(X, y).predict_proba(X))
    fitted.partial_fit(X[FIRST:120], y[FIRST:120]).partial_fit(X[120:], y[120:])
    fitted.save(tmp_path / "fit.safetensors")
    assert (tmp_path / "fit.safetensors").stat().st_mode & 0o077 == 0
    for each in (fitted, bg.load(tmp_path / "fit.safetensors")):
        whole = fresh(keep_rows=True).fit(X, y)
        np.testing.assert_allclose(each.refit().predict_proba(X), whole.predict_proba(X), rtol=1e-9)
        each.forget(X[:30], y[:30])
        np.testing.assert_allclose(each.predict_proba(X), fresh().fit(X[30:], y[30:]).predict_proba(X), rtol=1e-9)
    refuses(lambda: fitted.forget(X[:2], y[:2]), "not among those of the fit")
    refuses(lambda: fitted.forget(X[30:], y[30:]), "no row would be left")
    refuses(lambda: known(X, y).refit(), "refit\\(\\) needs the rows")


def test_kept_rows_of_copies_are_joined_and_those_of_the_fit_count_once():
    X, y = table(17)
    start = known(X, y, keep_rows=True)
    a, b = (copy.deepcopy(start).partial_fit(X[s], y[s]) for s in (slice(FIRST, 100), slice(100, N)))
    np.testing.assert_allclose((a + b).refit().predict_proba(X), fresh().fit(X, y).predict_proba(X), rtol=1e-9)


def test_weights_and_shares_are_learned_from_as_a_fit_learns_from_them():
    X, y = table(18)
    classes = np.unique(y)
    shares = 0.8 * (y[:, None] == classes) + 0.2 / 3
    weight = np.random.default_rng(0).choice([0.5, 1.0], N)
    kept = fresh(bend=False, keep_rows=True).fit(X[:FIRST], shares[:FIRST], weight[:FIRST], classes=classes)
    kept.partial_fit(X[FIRST:], shares[FIRST:], sample_weight=weight[FIRST:])
    whole = fresh(bend=False).fit(X, shares, weight, classes=classes)
    equal(kept, whole, X)
    np.testing.assert_allclose(kept.refit().predict_proba(X), whole.predict_proba(X), rtol=1e-9)


# -- ages -------------------------------------------------------------------------------------------------------------


def test_it_is_told_when_rows_have_doubled_and_the_summary_says_as_of_which_row():
    X, y = table(19)
    trees = known(X, y, members=["gaussian", "forest"])
    assert "as of row" not in trees.summary()
    trees.partial_fit(X[FIRST:139], y[FIRST:139])
    with pytest.warns(UserWarning, match="members forest are as of the first 70 rows, and 140 rows came by now"):
        trees.partial_fit(X[139:140], y[139:140])
    trees.partial_fit(X[140:], y[140:])  # told once, until they double again
    ages = trees.summary().set_index("kind")["as of row"]
    assert ages["forest"] == FIRST and (ages["generative"] == N).all()
    known(X, y).partial_fit(X[FIRST:], y[FIRST:])  # nothing stays


def test_it_is_told_when_members_that_stay_fall_behind():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 560)
    X = rng.normal(size=(560, 2)) + np.c_[1.5 * y, np.zeros(560)]
    fitted = AC(members=["gaussian", "softmax"], bend=False).fit(X[:200], y[:200])
    fitted.partial_fit(X[200:380], y[200:380])  # as before: nothing is told
    moved = X.copy()
    moved[300:, 0] = -moved[300:, 0]
    fitted = AC(members=["gaussian", "softmax"], bend=False).fit(X[:300], y[:300])
    with pytest.warns(UserWarning, match="gain less beside the others, by more than two errors"):
        for start in range(300, 540, 40):
            fitted.decay(0.5).partial_fit(moved[start : start + 40], y[start : start + 40])
