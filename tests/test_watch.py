"""The watch over rows that come: its ranks, its bets, its alarms, its files, and the command."""

import numpy as np
import pandas as pd
import pytest
from commands import run
from refusals import refuses
from scipy.stats import binom, kstest

import bayesgen as bg
from bayesgen.inspection import Watch
from bayesgen.numerics.betting import Bets, Ranks, cut


def table(n, rng, shift=0.0):
    y = rng.integers(0, 2, n)
    X = pd.DataFrame(rng.standard_t(4, (n, 2)) + y[:, None] * [1.5, 0.0], columns=["creatinine", "age"])
    X["sex"] = rng.choice(["f", "m"], n)
    return X.assign(creatinine=X.creatinine + shift), np.where(y, "ill", "well")


@pytest.mark.parametrize("most", [3, 20, 4096])
def test_ranks_are_those_of_the_whole_bag_at_as_many_digits_as_it_allows(most):
    rng = np.random.default_rng(most)
    for draw in (rng.standard_cauchy, lambda n: rng.integers(-3, 3, n) * 1.0):
        known, values, ties, bits = draw(40), draw(150), rng.random(150), 52
        ranks = Ranks.of(known, most)
        found = np.concatenate([ranks.rank(values[a:b], ties[a:b]) for a, b in ((0, 7), (7, 8), (8, 150))])
        for t, p in enumerate(found):
            bag, bits = np.append(known, values[: t + 1]), 52
            while bits and len(np.unique(cut(bag, bits))) > most:
                bits -= 1
            seen = cut(bag, bits)
            assert p == pytest.approx(((seen < seen[-1]).sum() + ties[t] * (seen == seen[-1]).sum()) / len(bag))
        assert ranks.bits == bits and ranks.counts.sum() == 190


def test_ranks_of_ties_and_few_digits_are_uniform():
    rng = np.random.default_rng(0)
    for draw in (lambda n: rng.poisson(1, n) * 1.0, rng.standard_cauchy):
        p = [Ranks.of(draw(20), 12).rank(draw(30), rng.random(30)) for _ in range(200)]
        assert kstest(np.ravel(p), "uniform").pvalue > 1e-4


def test_capital_is_a_martingale():
    """Over a fine grid of ranks the next capital is on average the capital, after any past."""
    past = np.tile(np.random.default_rng(1).random((60, 1)) ** 2, 20000)
    bets = Bets.start(20000)
    before = bets.take(past)[-1]
    growth = np.exp(bets.take(((np.arange(20000) + 0.5) / 20000)[None])[-1] - before)
    assert growth.mean() == pytest.approx(1, abs=0.02) and growth.mean() <= 1  # beside p = 0 and 1 extremes are cut
    assert growth.std() > 0.1


@pytest.mark.compiles
def test_false_alarms_are_as_rare_as_promised():
    """200 streams of 400 rows at level .2, heavy tails, ties and gaps."""
    rng, alarms = np.random.default_rng(2), 0
    draws = [rng.standard_cauchy, lambda n: rng.poisson(2, n) * 1.0, lambda n: (rng.random(n) < 0.02) * 1.0]
    p = [Ranks.of(draw(30), 64).rank(draw(400), rng.random(400)) for _ in range(200) for draw in draws]
    highest = Bets.start(600).take(np.array(p).T).max(0).reshape(200, 3).max(1)
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
    assert any("'age' is missing more often than before: 100% of" in text for text in told)
    assert any("'sex': 'a category' that is new is more frequent" in text for text in told)
    assert any("class 'a label' that is new is more frequent" in text for text in told)
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
    assert {part.kind for part in alone.parts} == {"values", "gaps", "labels"}
    asked = Watch.from_rows(X, y, classifier, left_out=True, parts=["score"])
    assert np.array_equal(asked._ranks[0].keys, np.unique(cut(classifier.leave_one_out(X, y).conditional, 52)))


def test_saved_and_loaded_it_goes_on_as_if_nothing_had_been(tmp_path):
    rng = np.random.default_rng(5)
    X, y = table(100, rng)
    classifier = bg.NaiveBayesClassifier().fit(X, y)
    watch = Watch.from_rows(*table(100, rng), classifier, distinct=64)
    watch.update(*table(700, rng))
    watch.save(path := tmp_path / "state.safetensors")
    again = Watch.load(path, classifier)
    more = table(200, rng, shift=1.5)
    assert watch.update(*more) == again.update(*more) != []
    pd.testing.assert_frame_equal(watch.evidence, again.evidence)
    with pytest.raises(ValueError, match="goes on with the classifier that it began with"):
        Watch.load(path, bg.NaiveBayesClassifier().fit(X[:50], y[:50]))
    path.write_bytes(path.read_bytes()[:-9])
    refuses(lambda: Watch.load(path, classifier), r"no watch of bayesgen.*begin anew")


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
    assert code == 0 and "80 rows, 80 so far" in out and "No alarm: 7 parts" in out
    code, out, _ = run(model, changed, *with_state, command="watch")
    assert code == 3 and "'creatinine' is higher than before (found at row" in out
    code, _, err = run(model, changed, "--state", state, "--reference", fit, command="watch")
    assert code == 2 and "delete it to begin anew" in err
