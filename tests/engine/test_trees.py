"""Trees as arrays, and the forest of an average: walks, rows out of bag, guards, files."""

from dataclasses import fields, replace

import numpy as np
import pytest
from refusals import refuses, refuses_parts
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier

import bayesgen as bg
from bayesgen.averaging import directions, ensembles
from bayesgen.averaging.directions import _discriminant
from bayesgen.averaging.ensembles import BoostedMember, BoostedMembers, ForestMember, ForestMembers, together
from bayesgen.averaging.member_rows import Rows
from bayesgen.averaging.view import Training
from bayesgen.core.shapes import check_shapes
from bayesgen.numerics.trees import Ranks, Trees

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers


def table(n=200, seed=0, gaps=0.1):
    """Numbers and categories of three classes, with gaps."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    x = np.exp(rng.normal(size=(n, 3)) + 0.5 * codes[:, None])
    c = np.column_stack([rng.integers(0, 2, n), np.where(rng.random(n) < 0.4, codes, rng.integers(0, 4, n))])
    x[rng.random(x.shape) < gaps] = np.nan
    c[rng.random(c.shape) < gaps] = -1
    return Rows(x, c, codes, np.ones(n), (2, 4), 3)


def checkerboard(n=400, seed=1):
    """Two columns whose classes are the fields of a checkerboard."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, (n, 2))
    return X, X.astype(int).sum(1) % 2


@pytest.fixture(scope="module")
def board():
    return bg.AveragedClassifier(members=["gaussian", "forest"]).fit(*checkerboard())


def test_all_trees_at_once_walk_as_scikit_learn_does():
    rows = table()
    z = together(rows.x, rows.c, rows.levels)
    ranks = Ranks(z)
    every = [DecisionTreeClassifier(max_features=m, random_state=0).fit(ranks.rank, rows.codes) for m in (1, 2, None)]
    leaf = np.concatenate([np.arange(t.tree_.node_count) for t in every])[:, None].astype(float)
    as_seen = np.arange(z.shape[1]), np.zeros(z.shape[1], bool)
    joined = Trees.of([t.tree_ for t in every], leaf, ranks, *as_seen)
    for part, leaves in joined.leaves(z):
        expected = np.column_stack([t.apply(ranks.rank[part]) for t in every])
        np.testing.assert_array_equal(joined.leaf[leaves, 0], expected)
    check_shapes(joined, {"features": z.shape[1], "values": 1})
    refuses(lambda: check_shapes(joined, {"features": 1, "values": 1}), r"Trees\.column are no places of 1 features")


def test_numbers_of_any_size_are_told_apart():
    x = 1e12 + np.arange(8.0)[:, None] % 4  # one and the same in float32
    rows = Rows(np.vstack([x, 1e200 * (x - 1e12)]), np.empty((16, 0), int), np.arange(16) % 2, np.ones(16), (), 2)
    part, _ = ensembles.grown(rows, 0)
    density = part.log_density(rows.x, rows.c, [0])[0]
    assert (density.argmax(1) == rows.codes).all()


def test_a_row_is_left_out_by_the_trees_that_did_not_draw_it():
    rows = table(60)
    training = Training(rows, rows, seed=3)
    out = np.array([0, 7, 30])
    (part,), (left,) = ForestMember.fit_and_leave_out([(ForestMember(),)], training, out, np.zeros(3, int))
    _, drawn = ensembles.grown(rows, 3)
    assert 0.3 < 1 - drawn.mean() < 0.45
    ((_, leaves),) = part.trees.leaves(together(rows.x, rows.c, rows.levels)[out])
    for own, row, walked in zip(left[0], out, leaves, strict=True):
        share = part.trees.leaf[walked][~drawn[:, row]]
        expected = np.log((share.sum(0) + 0.5) / (len(share) + 1.5)) - part.log_prior
        np.testing.assert_allclose(own, expected, rtol=1e-6)


def test_where_classes_are_fields_of_a_board_the_forest_leads(board):
    X, y = checkerboard(seed=2)
    alone = bg.AveragedClassifier(members=["gaussian", "category"]).fit(*checkerboard())
    losses = [log_loss(y, classifier.predict_proba(X)) for classifier in (board, alone)]
    assert losses[0] < 0.4 < 0.65 < losses[1]
    own = board.summary().query("kind == 'forest'")
    assert len(own) == 1 and own["weight"].item() > 0.9
    assert board.scores_["nested"] > board.scores_["base_rate"] + 0.25


def test_no_row_costs_more_than_the_rows_allow(board):
    part = next(own for own in board.average_.parts if isinstance(own.members[0], ForestMember))
    here = np.array([isinstance(member, ForestMember) for member in board.members_])
    alone = replace(board.average_, weights=here.astype(float), exponents=np.full(len(here), 50.0), sharpening=1.0)
    X, _ = checkerboard(seed=2)
    probability = alone.probability(X, np.empty((len(X), 0), int))
    assert part.rows == 400 and probability.min() == pytest.approx(0.5 / 401, rel=0.02)
    np.testing.assert_allclose(probability.sum(1), 1)


def test_bent_columns_grow_the_same_trees():
    rows = table(gaps=0.0)
    bent = replace(rows, x=np.log(rows.x))
    vars(bent)["order"] = rows.order  # bends may change the order by content, in which trees draw columns
    here, there = (ensembles.grown(own, 5)[0].log_density(own.x, own.c, [0]) for own in (rows, bent))
    np.testing.assert_array_equal(here, there)


def test_files_answer_equally_and_stay_small(board, tmp_path, monkeypatch):
    X, y = checkerboard(seed=2)
    board.save(tmp_path / "board.safetensors")
    np.testing.assert_array_equal(bg.load(tmp_path / "board.safetensors").predict_proba(X), board.predict_proba(X))
    monkeypatch.setattr(ensembles, "_BYTES", 2e5)
    part, _ = ensembles.grown(Rows(X, np.empty((len(X), 0), int), y, np.ones(len(y)), (), 2), 0)
    size = sum(getattr(part.trees, field.name).nbytes for field in fields(part.trees))
    assert 2e5 <= size < 2.1e5 and len(part.trees.root) > 10


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda trees: {"child": trees.child * 0}, "the trees lead nowhere"),  # around in a circle
        (lambda trees: {"root": trees.root + len(trees.column)}, "the trees lead nowhere"),
        (lambda trees: {"column": trees.column + 2}, r"Trees\.column are no places of 2 features"),
        (lambda trees: {"leaf": trees.leaf[:, :1]}, r"Trees\.leaf are not finite numbers"),
        (
            lambda trees: {"threshold": np.append(trees.threshold, 0.0)},
            r"Trees\.threshold are not finite numbers of the shape \(nodes\)",
        ),
        (lambda trees: {"gap": trees.gap[1:]}, r"Trees\.gap are not whole"),
        (lambda trees: {"child": trees.child.astype(float)}, r"Trees\.child are not whole"),
    ],
)
def test_a_file_whose_trees_lead_astray_is_refused(board, tmp_path, change, words):
    other = lambda part: {"trees": replace(part.trees, **change(part.trees))}  # noqa: E731
    refuses_parts(board, ForestMembers, other, words, tmp_path / "board.safetensors")


# -- boosted trees ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_boosted_trees_say_what_scikit_learn_says(classes):
    rows = table(240)
    rows = replace(rows, codes=rows.codes % classes, classes=classes)
    part = BoostedMembers.of((BoostedMember(6), BoostedMember(24)), rows)
    z = ensembles.numbered(rows.x, rows.c)[:, [4, 0, 1, 2, 3]]
    for leaves, own in zip((6, 24), part.log_density(rows.x, rows.c, [0, 1]), strict=True):
        settings = {"learning_rate": 0.3, "max_iter": 20, "min_samples_leaf": 16, "early_stopping": False}
        peer = HistGradientBoostingClassifier(max_leaf_nodes=leaves, categorical_features=[0], **settings)
        peer.fit(z, rows.codes)
        np.testing.assert_allclose(np.exp(own + part.log_prior), peer.predict_proba(z), atol=1e-12)


def bill(n, seed=0):
    """Charges whose sum tells the class, beside a rule over another column: no column alone does."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6)) * [9, 4, 2, 1, 1, 1] + [30, 17, 9, 0, 0, 0]
    c = rng.integers(0, 2, (n, 1))
    codes = np.where(x[:, 3] > 1, x[:, 4] > 0, (x[:, :3].sum(1) > 62) & (c[:, 0] == 0)).astype(int)
    return Rows(x, c, codes, np.ones(n), (2,), 2)


def test_a_step_in_a_sum_is_found_where_a_discriminant_is_drawn_aside():
    """Skewed columns, and a class above a bound of their sum: the cosine of the sum that is true."""
    truth, found = np.array([3.0, 2.0, 1.0, 0.0, 0.0]) / 14**0.5, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        z = rng.exponential(size=(800, 5)) ** 1.5
        z = (z - z.mean(0)) / z.std(0)
        t = ((z @ truth > 0.2) & (rng.random(800) < 0.95)).astype(float)
        ways = directions._step(z, t, np.ones(800)), _discriminant(z, t, np.ones(800))
        found.append([abs(w @ truth) / np.linalg.norm(w) for w in ways])
    step, line = np.mean(found, 0)
    assert 1 - step < (1 - line) / 3


def test_a_step_is_the_maximum_of_its_likelihood():
    rng = np.random.default_rng(0)
    z, weight = rng.normal(size=(500, 3)), rng.uniform(0.5, 2, 500)
    t = (rng.random(500) < 0.1 + 0.8 * expit(3 * z[:, 0] - 2 * z[:, 1])).astype(float)
    share = weight / weight.sum()
    found = directions._climbed(z, t, share, np.array([2.0, -2.0, 0.1, 0.0, -1.0, 1.0]), 200)

    def objective(free):
        a, b = expit(free[4:])
        p = a + (b - a) * expit(z @ free[:3] - free[3])
        return share @ np.log(np.where(t == 1, p, 1 - p)) - 0.02 / 500 * (free[:3] ** 2).sum()

    best = minimize(lambda free: -objective(free), found, method="Nelder-Mead", options={"fatol": 1e-12, "xatol": 1e-8})
    assert objective(found) == pytest.approx(-best.fun, abs=1e-7)


def test_columns_without_a_step_in_a_sum_keep_the_discriminant():
    rng = np.random.default_rng(3)
    z, t = rng.normal(size=(400, 6)), rng.integers(0, 2, 400).astype(float)
    line = _discriminant(z, t, np.ones(400))
    np.testing.assert_array_equal(directions._step(z, t, np.ones(400)), line)
    np.testing.assert_array_equal(directions._step(0 * z, t, np.ones(400)), np.zeros(6))


@pytest.mark.parametrize("seed", range(4))
def test_rounding_moves_no_step(seed):
    """Rows in another order, units times 3.7 and entries moved by 1e-12 of themselves."""
    rows, rng = bill(1200), np.random.default_rng(seed)
    other = replace(rows, x=rows.x * 3.7 * (1 + 1e-12 * rng.normal(size=rows.x.shape))).take(rng.permutation(1200))
    one, two = (BoostedMembers.of((BoostedMember(6, True),), each.take(each.by_content())) for each in (rows, other))
    np.testing.assert_allclose(one.sums.sums(rows.x), two.sums.sums(rows.x * 3.7), atol=1e-9)
    density = (part.log_density(x, rows.c, [0]) for part, x in ((one, rows.x), (two, rows.x * 3.7)))
    np.testing.assert_allclose(*density, atol=1e-9)


def test_trees_find_a_rule_over_a_sum_by_steps_in_the_nodes():
    rows, new = bill(1200), bill(2000, seed=1)
    part = BoostedMembers.of((BoostedMember(6, True), BoostedMember(6)), rows)
    charges = part.sums.weight[:, :3] / np.linalg.norm(part.sums.weight, axis=1)[:, None] / part.sums.span[:3]
    cosine = charges.sum(1) / np.linalg.norm(charges, axis=1) / 3**0.5
    assert np.abs(cosine).max() > 0.99  # of one node all charges count equally, by what they cost
    with_sums, without = (
        log_loss(new.codes, np.exp(density + part.log_prior)) for density in part.log_density(new.x, new.c, [0, 1])
    )
    assert with_sums < 0.75 * without < 0.15


def test_a_discriminant_is_a_ridge_regression_of_the_class():
    rng = np.random.default_rng(0)
    z, weight = rng.normal(size=(80, 3)), rng.uniform(0.5, 2, 80)
    t = (z[:, 0] + rng.normal(size=80) > 0).astype(float)
    peer = Ridge(alpha=0.1 * weight.sum()).fit(z, t, weight)
    np.testing.assert_allclose(_discriminant(z, t, weight), peer.coef_, rtol=1e-10)


@pytest.mark.parametrize("change", ["rows", "columns", "units"])
def test_sums_depend_on_what_rows_hold_alone(change):
    rows, rng, members = bill(300), np.random.default_rng(1), (BoostedMember(6, True),)
    rows.x[rng.random(rows.x.shape) < 0.1] = np.nan
    rows.x[3] = np.nan  # no number and no sum
    factor, columns = rng.choice([-1.0, 1.0], 6) * np.exp(rng.normal(size=6)), rng.permutation(6)
    rows = replace(rows, weight=rng.uniform(0.5, 2, 300))
    other = {
        "rows": rows.take(rng.permutation(300)),
        "columns": replace(rows, x=rows.x[:, columns]),
        "units": replace(rows, x=rows.x * factor),
    }[change]
    part, again = (BoostedMembers.of(members, own.take(own.by_content())) for own in (rows, other))
    asked = other if change in ("columns", "units") else rows
    expected = part.log_density(rows.x, rows.c, [0])
    assert len(part.sums.weight) > 1
    np.testing.assert_allclose(again.log_density(asked.x, asked.c, [0]), expected, atol=1e-12)


def test_a_class_that_a_fold_lacks_is_rare_in_it():
    rows = replace(table(240), classes=4)
    part = BoostedMembers.of((BoostedMember(8),), rows)
    probability = np.exp(part.log_density(rows.x, rows.c, [0])[0] + part.log_prior)
    np.testing.assert_allclose(probability.sum(1), 1)
    assert 0 < probability[:, 3].max() < 0.01


@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")
def test_boosted_trees_take_part_from_a_number_of_rows_on(tmp_path, monkeypatch):
    monkeypatch.setattr(ensembles, "_ENOUGH", 300)  # 1,000 take longer to fit
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (600, 6)).astype(float)  # a rule of three columns, which no other member has
    y = ((X[:, 0] > 1) ^ (X[:, 1] > 1) ^ (X[:, 2] > 1)).astype(int)
    few, several, many = (
        bg.AveragedClassifier(members=["gaussian", "boosted"]).fit(X[:n], y[:n]) for n in (99, 200, 400)
    )
    assert "boosted" not in set(few.summary()["kind"])
    assert several.summary().query("kind == 'boosted'")["leaves"].tolist() == [6]
    own = many.summary().query("kind == 'boosted'")
    assert sorted(own["leaves"]) == [6, 24] and own["weight"].sum() > 0.5
    assert log_loss(y[400:], many.predict_proba(X[400:])) < 0.3
    many.save(tmp_path / "rule.safetensors")
    again = bg.load(tmp_path / "rule.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), many.predict_proba(X))
    words = r"BoostedMembers\.score are no places of"
    refuses_parts(many, BoostedMembers, lambda part: {"score": part.score + 1}, words, tmp_path / "wrong.safetensors")


def test_a_split_of_gaps_from_all_numbers_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(ensembles, "_FEWEST", 200)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(240, 2)), np.arange(240) % 2
    X[(y == 1) & (rng.random(240) < 0.9), 0] = np.nan
    classifier = bg.AveragedClassifier(members=["gaussian", "boosted"]).fit(X, y)
    assert classifier.score(X, y) > 0.9
    classifier.save(tmp_path / "gaps.safetensors")
    np.testing.assert_array_equal(bg.load(tmp_path / "gaps.safetensors").predict_proba(X), classifier.predict_proba(X))
