"""The watch over rows that come: its ranks, its bets, its alarms, its files, and the command."""

import itertools
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from commands import run
from refusals import refuses
from scipy.stats import binom, kstest

import bayesgen as bg
from bayesgen.files import storage
from bayesgen.inspection import Watch
from bayesgen.numerics.betting import Bets, Ranks, cut, hashed


def table(n, rng, shift=0.0):
    y = rng.integers(0, 2, n)
    X = pd.DataFrame(rng.standard_t(4, (n, 2)) + y[:, None] * [1.5, 0.0], columns=["creatinine", "age"])
    X["sex"] = rng.choice(["f", "m"], n)
    return X.assign(creatinine=X.creatinine + shift), np.where(y, "ill", "well")


def scores(seen, counted):
    """What values (n,) are ranked by: themselves, or how often each is there."""
    return np.array([(seen == v).sum() for v in seen]) if counted else seen


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("most", [3, 20, 4096])
def test_ranks_are_those_of_the_whole_bag_at_as_many_digits_as_it_allows(most, counted):
    rng = np.random.default_rng(most)
    for draw in (rng.standard_cauchy, lambda n: rng.integers(-3, 3, n) * 1.0):
        known, values, ties, bits = draw(40), draw(150), rng.random(150), 52
        ranks = Ranks.of(known, most, counted)
        found = np.hstack([ranks.rank(values[a:b], ties[a:b]) for a, b in ((0, 7), (7, 8), (8, 150))])
        for t, (p, varied) in enumerate(found.T):
            bag, bits = np.append(known, values[: t + 1]), 52
            while bits and len(np.unique(cut(bag, bits))) > most:
                bits -= 1
            seen = scores(cut(bag, bits), counted)
            assert p == pytest.approx(((seen < seen[-1]).sum() + ties[t] * (seen == seen[-1]).sum()) / len(bag))
            assert varied == (len(set(seen)) > 1)
        assert ranks.bits == bits and ranks.counts.sum() == 190


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("bag", ["aabcd", "aaabb", "abcde", "aaaab"])
def test_ranks_of_categories_are_independent_and_uniform_over_all_orders_of_a_bag(bag, counted):
    """P(p_t <= c_t for all t) is the product of the c_t, exactly, with two rows known: ties are integrated out."""
    most, c, total, orders = 8, np.array([0.3, 0.55, 0.8]), 0.0, list(itertools.permutations(map(hashed, bag)))
    for order in orders:
        values = np.array(order[2:])
        low, high = (Ranks.of(np.array(order[:2]), most, counted).rank(values, np.full(3, u))[0] for u in (0.0, 1.0))
        total += np.prod(np.clip((c - low) / (high - low), 0, 1)) / len(orders)
    assert total == pytest.approx(c.prod(), abs=1e-12)


def test_ranks_of_ties_and_few_digits_are_uniform():
    rng = np.random.default_rng(0)
    towns = np.array([hashed(f"T{i}") for i in range(300)])
    for draw in (lambda n: rng.poisson(1, n) * 1.0, rng.standard_cauchy, lambda n: towns[rng.zipf(1.3, n) % 300]):
        for counted in (False, True):
            p = [Ranks.of(draw(20), 12, counted).rank(draw(30), rng.random(30))[0] for _ in range(80)]
            assert kstest(np.ravel(p), "uniform").pvalue > 1e-4


def test_capital_is_a_martingale():
    """Over a fine grid of ranks the next capital is on average the capital, after any past."""
    past = np.tile(np.random.default_rng(1).random((60, 1)) ** 2, 4000)
    bets = Bets.start(4000, 7)
    before = bets.take(past)[-1]
    growth = np.exp(bets.take(((np.arange(4000) + 0.5) / 4000)[None])[-1] - before)
    assert growth.mean() == pytest.approx(1, abs=0.02) and growth.mean() <= 1  # beside p = 0 and 1 extremes are cut
    assert growth.std() > 0.1


@pytest.mark.compiles
def test_false_alarms_are_as_rare_as_promised():
    """200 streams of 400 rows at level .2, heavy tails, ties and gaps."""
    rng, alarms = np.random.default_rng(2), 0
    draws = [rng.standard_cauchy, lambda n: rng.poisson(2, n) * 1.0, lambda n: (rng.random(n) < 0.02) * 1.0]
    p = [Ranks.of(draw(30), 64).rank(draw(400), rng.random(400))[0] for _ in range(200) for draw in draws]
    highest = Bets.start(600, 30).take(np.array(p).T).max(0).reshape(200, 3).max(1)
    alarms = (highest >= np.log(3 / 0.2)).sum()
    assert alarms <= binom(200, 0.2).ppf(0.999)


def test_a_change_is_told_in_words():
    rng = np.random.default_rng(3)
    watch = Watch.from_rows(*table(200, rng))
    assert watch.update(*table(100, rng)) == [] and "no alarm" in repr(watch)
    found = watch.update(*table(150, rng, shift=1.5))
    first = found[0]
    assert first.part == "values of creatinine" and abs(first.since - 100) < 15 and first.row < 160
    assert first.text == f"since about row {first.since} 'creatinine' is higher than before"
    X, y = table(60, rng, shift=1.5)
    told = [alarm.text for alarm in watch.update(X.assign(age=np.nan, sex="x"), np.where(y == "ill", "ill", "new"))]
    assert any(
        re.search(r"'age' is missing more often than before: in (\d+) of \1 rows, 0 of 4", text) for text in told
    )
    assert any(re.search(r"'sex': 'x' is more frequent than before: (\d+) of \1 rows, 1 of 4", t) for t in told)
    assert any("class 'new' that is new is more frequent" in text for text in told)
    assert watch.evidence["values of creatinine"].max() > watch.threshold
    watch.restart(X, y)
    assert watch.alarms == [] and watch.spent == 0.1


def test_what_the_classifier_says_is_watched():
    rng = np.random.default_rng(4)
    X, y = table(150, rng)
    classifier = bg.NaiveBayesClassifier().fit(X, y)
    watch = Watch(classifier)
    names = [part.name for part in watch.parts]
    assert {"labels", "score", "shares of well", "density"} <= set(names)
    watch.update(*table(300, rng))
    X_new, y_new = table(200, rng)
    assert watch.update(X_new, np.where(y_new == "ill", "well", "ill"))[0].part == "score"
    alone = Watch.from_rows(X, y, classifier, left_out=True)
    assert {part.kind for part in alone.parts} == {"values", "rarity", "gaps", "labels"}
    asked = Watch.from_rows(X, y, classifier, left_out=True, parts=["score"])
    assert np.array_equal(asked._ranks[0].keys, np.unique(cut(classifier.leave_one_out(X, y).conditional, 52)))


def test_saved_and_loaded_it_goes_on_as_if_nothing_had_been(tmp_path):
    rng = np.random.default_rng(5)
    X, y = table(100, rng)
    classifier = bg.NaiveBayesClassifier().fit(X, y)
    watch = Watch.from_rows(*table(100, rng), classifier, distinct=64)
    watch.update(*table(700, rng))
    watch.save(path := tmp_path / "state.safetensors")
    classifier.save(tmp_path / "model.safetensors")  # a process that goes on has the file alone
    again = Watch.load(path, bg.load(tmp_path / "model.safetensors"))
    more = table(200, rng, shift=1.5)
    assert watch.update(*more) == again.update(*more) != []
    pd.testing.assert_frame_equal(watch.evidence, again.evidence)
    with pytest.raises(ValueError, match="goes on with the classifier that it began with"):
        Watch.load(path, bg.NaiveBayesClassifier().fit(X[:50], y[:50]))
    path.write_bytes(path.read_bytes()[:-9])
    refuses(lambda: Watch.load(path, classifier), r"no watch that bayesgen goes on with.*begin anew")


def test_a_state_of_older_ranks_is_refused(tmp_path):
    storage.write_state(path := tmp_path / "state.safetensors", "watch", {"rows": 1}, 1, None)
    refuses(lambda: Watch.load(path), "older or newer bayesgen wrote it.*version 1.*delete it to begin anew")


def test_rows_that_came_before_are_taken_only_when_asked_for_again():
    rng = np.random.default_rng(9)
    known, X = table(50, rng)[0], table(30, rng)[0]
    watch = Watch.from_rows(known)
    watch.update(X)
    for rows in (X, known, X.copy()):
        refuses(lambda rows=rows: watch.update(rows), "came before, in this order, and count already; again=True")
    assert watch.rows == 30
    watch.update(X, again=True)
    watch.update(X[::-1])
    assert watch.rows == 90
    for sex in "fmfmfm":  # equal rows are lawful
        watch.update(pd.DataFrame({"creatinine": [1.0], "age": [2.0], "sex": [sex]}))
    refuses(lambda: watch.update(X[:1].assign(creatinine=1.0, age=2.0, sex="f"), again=False), "came before")
    watch.restart(known)
    watch.update(X)
    assert watch.rows == 126


def test_a_second_writer_is_refused_and_nothing_is_lost(tmp_path):
    rng = np.random.default_rng(10)
    watch, path = Watch.from_rows(table(50, rng)[0]), tmp_path / "state.safetensors"
    watch.save(path)
    first, second = Watch.load(path), Watch.load(path)
    first.update(table(20, rng)[0])
    second.update(table(30, rng)[0])
    first.save(path)
    first.save(path)
    for other in (second, watch, Watch.from_rows(table(50, rng)[0])):
        refuses(lambda other=other: other.save(path), "was written since it was loaded.*load it and take up")
    assert Watch.load(path).rows == 20

    def add(X):
        while True:
            watch = Watch.load(path)
            watch.update(X)
            try:
                return watch.save(path)
            except ValueError:
                continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, [table(1, rng)[0] for _ in range(12)]))
    assert Watch.load(path).rows == 32


def test_what_never_varied_tells_nothing_and_the_sentence_is_of_what_was_seen():
    rng = np.random.default_rng(11)
    constant = [pd.DataFrame({f"c{i}": np.full(n, 1.0) for i in range(100)}) for n in (20, 300)]
    watch = Watch.from_rows(constant[0], level=0.9, parts=["values"])
    assert watch._bets.take(np.random.default_rng(2).random((200, 100))).max() > watch.threshold * np.log(
        10
    )  # ties alone would alarm
    watch = Watch.from_rows(constant[0], level=0.9)
    assert watch.update(constant[1]) == [] and (watch.evidence == 0).all(axis=None)
    watch = Watch.from_rows(pd.DataFrame({"x": rng.normal(size=100)}))
    watch.update(pd.DataFrame({"x": rng.normal(size=159)}))
    assert watch.update(pd.DataFrame({"x": np.full(30, np.nan)}))[0].text.endswith(
        f"'x' is missing more often than before: in {watch.alarms[0].row - 158} of {watch.alarms[0].row - 158} rows, "
        "0 of 259 before"
    )


@pytest.mark.compiles
def test_a_new_code_in_a_tenth_of_the_rows_and_a_flood_of_codes_are_found():
    """By the hash the one, by how often codes came the other: 30 streams each of 400 rows after 200 known."""
    share, found = 1 / np.arange(1, 31), {"new": [], "flood": []}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        old = "c" + rng.choice(30, 600, p=share / share.sum()).astype(str).astype(object)
        for name, often, code in (("new", 0.1, lambda i: "new"), ("flood", 0.2, lambda i: f"n{i}")):
            rows = [
                code(i) if i >= 200 and u < often else v
                for i, (v, u) in enumerate(zip(old, rng.random(600), strict=True))
            ]
            watch = Watch.from_rows(pd.DataFrame({"code": rows[:200]}), parts=["values", "rarity"])
            found[name] += watch.update(pd.DataFrame({"code": rows[200:]}))
    assert sum("'code': 'new'" in alarm.text for alarm in found["new"]) >= 20
    assert [alarm.part for alarm in found["flood"]].count("rarity of code") >= 28
    assert sum("hold one that had never come" in alarm.text for alarm in found["flood"]) >= 25


def test_dates_are_watched_and_what_cannot_be_ranked_is_named():
    rng = np.random.default_rng(12)
    days = rng.permutation(pd.date_range("2024-01-01", periods=200).to_numpy())
    for dates in (pd.Series(days), pd.Series(days).dt.strftime("%Y-%m-%d"), pd.Series(days).dt.date):
        watch = Watch.from_rows(pd.DataFrame({"seen": dates[:120]}))
        assert watch.update(pd.DataFrame({"seen": dates[120:]})) == []
        late = pd.DataFrame({"seen": pd.date_range("2025-01-01", periods=60).strftime("%Y-%m-%d")})
        assert "'seen' is later than before" in watch.update(late)[0].text
    refuses(lambda: Watch.from_rows(pd.DataFrame({"a": [[1], [2]]})), "'a' holds list.*cannot be ranked", TypeError)
    with pytest.warns(UserWarning, match="'a' holds numbers as text, watched as categories: give numbers"):
        Watch.from_rows(pd.DataFrame({"a": [f"{v:.1f}" for v in rng.normal(size=50)]}))
    numbers = Watch.from_rows(pd.DataFrame({"a": [1.0, 2.0, 3.0]}))
    refuses(lambda: numbers.update(pd.DataFrame({"a": days[:9]})), "'a' held numbers or dates.*now holds Datetime")
    refuses(
        lambda: numbers.update(pd.DataFrame({"a": ["one"]})),
        "'a' held numbers or dates when the watch began, and now holds 'one'",
    )


def test_the_series_stays_short_and_rows_may_come_one_by_one():
    rng = np.random.default_rng(6)
    X, _ = table(700, rng)
    one, many = Watch.from_rows(X[:50]), Watch.from_rows(X[:50])
    many.update(X[50:])
    for i in range(50, 100):
        one.update(X[i : i + 1])
    assert len(many.evidence) <= 513 and one.rows == 50
    pd.testing.assert_series_equal(one.evidence.loc[20], many.evidence.loc[20])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: Watch.from_rows(X, level=2), "level must lie between 0 and 1"),
        (lambda X: Watch.from_rows(X, parts=["rows"]), "parts must be among"),
        (lambda X: Watch.from_rows(X, parts=["score"]), "nothing to watch of these"),
        (lambda X: Watch.from_rows(X).update(X[["age", "sex"]]), "lacks the columns"),
        (lambda X: Watch.from_rows(X).update(X.assign(age=np.inf)), "'age' holds an infinite value"),
        (lambda X: Watch.from_rows(X, ["a", "b"] * 10).update(X, ["a"]), r"y must have shape \(20,\)"),
    ],
)
def test_bad_input_is_refused(call, message):
    refuses(lambda: call(table(20, np.random.default_rng(7))[0]), message)


def test_the_command_ends_with_status_3_at_an_alarm(tmp_path):
    rng = np.random.default_rng(8)
    paths = [tmp_path / f"{name}.csv" for name in ("fit", "quiet", "changed")]
    for path, n, shift in zip(paths, (200, 80, 120), (0, 0, 2), strict=True):
        X, y = table(n, rng, shift)
        X.assign(ill=y).to_csv(path, index=False)
    fit, quiet, changed = map(str, paths)
    model, state = str(tmp_path / "model.safetensors"), str(tmp_path / "state.safetensors")
    bg.NaiveBayesClassifier().fit(*table(200, np.random.default_rng(8))).save(model)
    with_state = ["--state", state, "--target", "ill"]
    code, out, _ = run(model, quiet, *with_state, "--reference", fit, command="watch")
    assert code == 0 and "80 rows, 80 so far" in out and "No alarm: 8 parts" in out
    code, out, _ = run(model, changed, *with_state, command="watch")
    assert code == 3 and "'creatinine' is higher than before (found at row" in out
    code, _, err = run(model, changed, "--state", state, "--reference", fit, command="watch")
    assert code == 2 and "delete it to begin anew" in err
    code, _, err = run(model, quiet, *with_state, command="watch")
    assert code == 2 and "came before, in this order, and count already; --again takes them once more" in err
    code, out, _ = run(model, quiet, *with_state, "--again", command="watch")
    assert code == 3 and "80 rows, 280 so far" in out


@pytest.mark.compiles
def test_the_law_of_false_alarms_in_short():
    """Five streams each of the least favourable kinds, at level .2; `python -m benchmarks.drift law` has 200 at .05."""
    drift = pytest.importorskip("benchmarks.drift")  # a source distribution has the tests alone
    kinds = [kind for kind in drift.KINDS if kind != "thirty columns"]
    alarms = {kind: sum(drift.alarmed(kind, seed, 300, 0.2) for seed in range(5)) for kind in kinds}
    assert max(alarms.values()) < 5, alarms  # .0003 for each kind at the level
    assert sum(alarms.values()) <= binom(5 * len(kinds), 0.2).ppf(0.999), alarms
