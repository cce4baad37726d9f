"""The averaged classifier: its laws, at home in scikit-learn, any table, bad input."""

import copy
from dataclasses import replace

import arviz_plots as azp
import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from refusals import refuses
from scipy import integrate, sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import estimator_checks_generator

from bayesgen import AveragedClassifier, GaussianDiscriminantClassifier, data, inspection, load, plot
from bayesgen.averaging import ensembles
from bayesgen.averaging.member import NOTHING, Product
from bayesgen.core.program import same
from bayesgen.numerics.special import log_mixture

IRIS, SPECIES = load_iris(return_X_y=True)
FIT, TEST = slice(None, None, 5), slice(2, None, 5)
FEW = ["gaussian", "category"]
ONE = AveragedClassifier(members=[*FEW, "softmax"])


def mixed(n=60, seed=0):
    """A table of every kind of column, with gaps, and its classes."""
    rng = np.random.default_rng(seed)
    code = np.arange(n) % 3
    X = pd.DataFrame(
        {
            "height": rng.normal(10 + 2 * code, 2),
            "width": np.exp(rng.normal(code, 1)),
            "sick": rng.random(n) < 0.2 + 0.3 * code,
            "leaf": pd.Categorical(rng.choice(["oval", "round"], n), categories=["lobed", "oval", "round"]),
            "soil": np.where(rng.random(n) < 0.2 + 0.3 * code, "clay", "sand").astype(object),
        }
    )
    X.loc[[3, n - 2], "height"] = np.nan
    X.loc[[4, n - 1], "leaf"] = np.nan
    X.loc[[4, n // 2], "soil"] = None
    return X, np.array(["ash", "birch", "oak"])[code]


@pytest.fixture(scope="module")
def fitted():
    return AveragedClassifier().fit(IRIS[FIT], SPECIES[FIT])


@pytest.fixture(scope="module")
def fitted_mixed():
    return AveragedClassifier().fit(*mixed())


TREES = ("forest", "boosted")

# -- scikit-learn


# Checks of what members compute; the others are about reading a table. That a weight of two is two rows, and a fit
# twice the same, of all families: the laws below.
NUMBERS = {"check_classifiers_train", "check_estimators_nan_inf", "check_estimators_pickle", "check_fit2d_1feature"}
NUMBERS |= {"check_fit2d_1sample", "check_methods_sample_order_invariance", "check_methods_subset_invariance"}


def checks():
    """Each check of scikit-learn on few members, in the second command; on all of them there, or in the slow tests."""
    for members, every in ((FEW, False), ("all", True)):
        for estimator, check in estimator_checks_generator(AveragedClassifier(members=members)):
            whole = check.func.__name__ in NUMBERS and not check.keywords
            options = "".join(f"-{name}={value}" for name, value in check.keywords.items())
            name = f"{check.func.__name__}{options}-{'all' if every else 'few'}"
            mark = pytest.mark.compiles if whole else pytest.mark.slow
            yield pytest.param(estimator, check, id=name, marks=mark if every else pytest.mark.compiles)


@pytest.mark.filterwarnings("ignore:columns .* hold one value:UserWarning")
@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")
@pytest.mark.filterwarnings("ignore:y is constant:UserWarning")
@pytest.mark.filterwarnings("ignore:all rows of the labels:UserWarning")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.compiles
def test_what_is_loaded_is_what_was_saved(fitted_mixed, tmp_path):
    X, _ = mixed(6, seed=1)
    fitted_mixed.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.get_params() == fitted_mixed.get_params() and vars(again).keys() == vars(fitted_mixed).keys()
    assert again.average_ == fitted_mixed.average_ and again.schema_ == fitted_mixed.schema_
    assert same(again.scores_, fitted_mixed.scores_)
    for ask in ("predict_proba", "score_samples", "predict_proba_interval"):
        np.testing.assert_array_equal(getattr(again, ask)(X), getattr(fitted_mixed, ask)(X))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: {"average_": replace(c.average_, weights=c.average_.weights[1:])}, "weights are not"),
        (
            lambda c: {"average_": replace(c.average_, parts=tuple(c.average_.modelling("numbers")))},
            "not of 3 categories",
        ),
        (
            lambda c: {"average_": replace(c.average_, parts=tuple(c.average_.modelling("categories")))},
            "not of 2 numeric columns",
        ),
        (lambda c: {"constant_": ("soil",)}, "constant_ are no numbers"),
        (lambda c: {"classes_": c.classes_[:2]}, r"Average\.class_weight are not .*classes = 2"),
    ],
)
def test_a_file_whose_parts_do_not_fit_is_refused(fitted_mixed, tmp_path, change, words):
    broken = copy.copy(fitted_mixed)
    vars(broken).update(change(fitted_mixed))
    broken.save(tmp_path / "model.safetensors")
    refuses(lambda: load(tmp_path / "model.safetensors"), words)


# -- the average


def test_the_average_is_as_good_as_its_best_member_and_better_than_the_class_prior(fitted):
    scores, weights = fitted.scores_, fitted.weights_
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    assert scores["members"].max() - 0.05 < scores["average"] < scores["members"].max() + 0.05
    assert scores["base_rate"] + 0.9 < scores["nested"] <= scores["average"] + 1e-3
    np.testing.assert_allclose(scores["members"].min(), scores["base_rate"])
    assert log_loss(SPECIES[TEST], fitted.predict_proba(IRIS[TEST])) < 0.2


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")
def test_columns_that_are_no_sign_of_the_class_cost_little():
    excess, trusted = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 5)), np.arange(40) % 2
        classifier = AveragedClassifier(members=["gaussian", "softmax"]).fit(X, y)
        p = classifier.predict_proba(rng.normal(size=(500, 5)))
        excess.append(-np.log(p).mean() - np.log(2))
        gain = 40 * (classifier.scores_["nested"] - classifier.scores_["base_rate"])
        alone = [kind == NOTHING for kind in classifier.members_].index(True)
        trusted.append(1 - classifier.weights_[alone] <= expit(gain + 1.5) + 1e-9)
    assert np.mean(excess) < 0.011  # .015 without the gate, .007 with it
    assert all(trusted)


def test_summary_lists_every_member_by_weight(fitted_mixed):
    table = fitted_mixed.summary()
    assert len(table) == len(fitted_mixed.members_) == len(fitted_mixed.exponents_)
    assert table["weight"].is_monotonic_decreasing and table["weight"].sum() == pytest.approx(1)
    base = table[table["kind"] == "base rate"]
    assert len(base) == 1
    np.testing.assert_allclose(base["log score"], fitted_mixed.scores_["base_rate"])


@pytest.mark.parametrize("weights", ["stacking", "evidence"])
def test_each_way_to_weigh_predicts(weights):
    classifier = AveragedClassifier(weights, members=[*FEW, "softmax"]).fit(IRIS[FIT], SPECIES[FIT])
    assert log_loss(SPECIES[TEST], classifier.predict_proba(IRIS[TEST])) < 0.25
    if weights == "evidence":
        assert (classifier.exponents_ == 1).all()
        assert classifier.weights_[-1] == 0  # the class prior alone has no evidence for x


@pytest.mark.filterwarnings("ignore:no member predicts:UserWarning")
def test_components_find_what_one_gaussian_cannot():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 160)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * 3 + rng.normal(0, 0.5, (160, 2))
    y = (np.sin(3 * angle) > 0).astype(int)  # three pieces of each class around the ring
    pools = ["gaussian", "mixture"], ["gaussian"]
    with_, without = (AveragedClassifier(members=own).fit(X[:80], y[:80]) for own in pools)
    assert with_.scores_["nested"] > without.scores_["nested"] + 0.1
    losses = [log_loss(y[80:], classifier.predict_proba(X[80:])) for classifier in (with_, without)]
    assert losses[0] < losses[1] - 0.1


# -- laws


def test_a_row_without_entries_has_the_class_prior():
    X, y = IRIS[:90], SPECIES[:90]
    classifier = clone(ONE).fit(X, y)
    np.testing.assert_allclose(classifier.predict_proba(np.full((1, 4), np.nan))[0], np.array([51, 41]) / 92, rtol=1e-9)


def test_units_and_offsets_change_nothing(fitted):
    moved = AveragedClassifier().fit(IRIS[FIT] * [1e-3, 1, 1e4, 7] + [0, 100, -5, 1e3], SPECIES[FIT])
    again = moved.predict_proba(IRIS[TEST] * [1e-3, 1, 1e4, 7] + [0, 100, -5, 1e3])
    np.testing.assert_allclose(again, fitted.predict_proba(IRIS[TEST]), atol=1e-6)


@pytest.mark.compiles
def test_units_change_nothing_where_entries_are_missing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)), np.arange(40) % 3
    X[y == 0] += 2
    X[rng.random(X.shape) < 0.15] = np.nan
    here = AveragedClassifier().fit(X, y).predict_proba(X)
    there = AveragedClassifier().fit(X / 8 - 64, y).predict_proba(X / 8 - 64)  # a gap stands at no number's place
    np.testing.assert_allclose(there, here, atol=1e-8)


@pytest.mark.filterwarnings("ignore:all rows of the labels:UserWarning")
@pytest.mark.filterwarnings("ignore:.*(rows|by weight) repeat another:UserWarning")
@pytest.mark.compiles
def test_order_of_rows_changes_nothing_and_a_weight_of_two_is_two_rows():
    X, y = mixed()
    weight = np.arange(60) % 3
    classifier = AveragedClassifier()
    weighted = classifier.fit(X, y, weight).predict_proba(X)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(60), weight))
    repeated = classifier.fit(X.iloc[order], y[order]).predict_proba(X)  # and nothing of the fit before stays
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


def test_names_of_classes_and_order_of_columns_change_nothing(fitted):
    back = AveragedClassifier().fit(IRIS[FIT][:, ::-1], np.array(["c", "b", "a"])[SPECIES[FIT]])
    again = back.predict_proba(IRIS[TEST][:, ::-1])[:, ::-1]
    np.testing.assert_allclose(again, fitted.predict_proba(IRIS[TEST]), atol=1e-6)


@pytest.mark.parametrize(
    "members", [["gaussian", "category", "softmax"], *(pytest.param([m], marks=pytest.mark.compiles) for m in TREES)]
)
def test_signs_and_names_of_categories_change_nothing(members, monkeypatch):
    monkeypatch.setattr(ensembles, "_FEWEST", 200)
    table = data.load("penguins").iloc[:: 1 if members == ["boosted"] else 3]  # with gaps
    species = table.pop("species")
    turned = table.copy()
    for name in table:
        if name in ("island", "sex"):
            names = sorted(table[name].dropna().unique())
            turned[name] = table[name].map(dict(zip(names, names[::-1], strict=True)))
        else:
            turned[name] = -table[name]
    first, second = (AveragedClassifier(members=members).fit(X, species).predict_proba(X) for X in (table, turned))
    np.testing.assert_allclose(second, first, atol=1e-9)


@pytest.mark.compiles
def test_order_of_mixed_columns_with_gaps_changes_nothing(fitted_mixed):
    X, y = mixed()
    new = {"ash": "z", "oak": "b"}
    names = np.array([new.get(name, name) for name in y])
    columns = np.random.default_rng(1).permutation(X.columns)
    again = AveragedClassifier().fit(X[columns], names)
    place = [list(again.classes_).index(new.get(name, name)) for name in fitted_mixed.classes_]
    np.testing.assert_allclose(again.predict_proba(X[columns])[:, place], fitted_mixed.predict_proba(X), atol=1e-6)


def test_priors_multiply_the_average_and_change_no_fit(fitted):
    priors = np.array([0.7, 0.2, 0.1])
    plain = fitted.predict_proba(IRIS[TEST])
    expected = plain * priors / (1 / 3)
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(IRIS[TEST], priors=priors), expected)
    known = AveragedClassifier(priors=priors).fit(IRIS[FIT], SPECIES[FIT])
    np.testing.assert_array_equal(known.weights_, fitted.weights_)
    np.testing.assert_allclose(known.predict_proba(IRIS[TEST]), expected)


def test_density_of_a_row_integrates_to_one():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.exp(rng.normal(y, 0.7))[:, None]
    classifier = AveragedClassifier(members="generative").fit(X, y)
    assert classifier.average_.modelling("numbers")[0].view.warp.power[0] < 1
    middle, scale = X.mean(), X.std()
    grid = middle + scale * np.sinh(np.linspace(-25, 25, 40001))
    density = np.exp(classifier.score_samples(grid[:, None]))
    assert integrate.simpson(density, grid) == pytest.approx(1, abs=0.01)


def test_a_member_of_hardly_any_weight_may_have_the_largest_density():
    """Weights by evidence are as small as 1e-310; SciPy's weighted sum divides by them, overflows and gives -inf."""
    log_density = np.array([[[-1000.0, -3.0]], [[-1002.0, -1.0]], [[-2.0, -np.inf]]])
    got = log_mixture(log_density, np.array([1e-310, 1.0, 0.0]))
    np.testing.assert_allclose(got, [[-1002.0, -1.0]], rtol=1e-12)


def test_a_gap_integrates_the_density(fitted):
    row = IRIS[60:61].copy()
    gap = row.copy()
    gap[0, 1] = np.nan
    grid = 3 + np.sinh(np.linspace(-8, 8, 3001))
    joint = np.exp(
        fitted.average_.log_joint(*fitted.fitted_.read(np.where(np.arange(4) == 1, grid[:, None], row)).values())
    )
    marginal = np.exp(fitted.average_.log_joint(*fitted.fitted_.read(gap).values()))[0]
    np.testing.assert_allclose(integrate.simpson(joint, grid, axis=0), marginal, rtol=1e-3)


def test_samples_look_like_the_rows(fitted_mixed):
    X, y = mixed()
    rows, classes = fitted_mixed.sample(400)
    assert list(rows.columns) == list(X.columns) and set(classes) <= set(y)
    assert set(rows["soil"]) == {"clay", "sand"} and set(rows["leaf"]) <= {"lobed", "oval", "round"}
    for name in "ash", "oak":
        assert rows["height"][classes == name].median() == pytest.approx(X["height"][y == name].median(), abs=1.2)
        assert rows["sick"][classes == name].mean() == pytest.approx(X["sick"][y == name].mean(), abs=0.2)


@pytest.mark.compiles
def test_intervals_hold_the_probability(fitted_mixed):
    X, _ = mixed(6, seed=2)
    interval = fitted_mixed.predict_proba_interval(X, level=0.99)
    probability = fitted_mixed.predict_proba(X)
    assert interval.shape == (6, 3, 2) and (interval[..., 0] <= interval[..., 1]).all()
    assert ((interval[..., 0] <= probability) & (probability <= interval[..., 1])).all()
    narrow = fitted_mixed.predict_proba_interval(X, level=0.5)
    assert (np.diff(narrow) < np.diff(interval)).all()  # the shortest of fewer draws that holds p need not lie within


def test_terms_of_an_explanation_add_up(fitted_mixed):
    X, _ = mixed(6, seed=3)
    X.loc[0, "height"] = np.nan
    said = fitted_mixed.explain(X)
    assert said.coords["term"].values.tolist() == ["prior", *X.columns, "remainder"]
    total = np.exp(said.sum("term").values)
    np.testing.assert_allclose(total / total.sum(1, keepdims=True), fitted_mixed.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(said.sel(term="height")[0], 0, atol=1e-9)
    np.testing.assert_allclose(said.sum("class"), 0, atol=1e-9)


def test_rows_of_one_pattern_of_gaps_predict_as_alone(fitted):
    X = IRIS[:80].copy()
    X[:, 2] = np.nan
    together = fitted.predict_proba(X)
    alone = np.concatenate([fitted.predict_proba(X[i : i + 1]) for i in range(0, 80, 20)])
    np.testing.assert_allclose(together[::20], alone, rtol=1e-8)


# -- what it refuses, and what it warns of


def test_an_unseen_category_is_refused_or_missing(fitted_mixed):
    X, y = mixed()
    new = X.assign(soil="peat").astype({"soil": object})
    with pytest.warns(UserWarning, match=r"60 values taken as missing.*'soil': \['peat'\] in 60 rows"):
        probability = fitted_mixed.predict_proba(new)
    missing = X.assign(soil=None).astype({"soil": object})
    np.testing.assert_allclose(probability, fitted_mixed.predict_proba(missing))
    strict = AveragedClassifier(unseen="error", members=[*FEW, "softmax"]).fit(X, y)
    refuses(lambda: strict.predict_proba(new), "column 'soil': 'peat' in row 0")


def test_questions_without_an_answer_say_why(fitted):
    assert not hasattr(fitted, "log_evidence_") and not hasattr(fitted, "fit_batches")
    refuses(lambda: fitted.log_evidence_, "tempered members have no joint density", AttributeError)
    refuses(lambda: inspection.draw_reliability(fitted, IRIS), "is about draws of a generative classifier")
    assert not hasattr(fitted.posterior_, "draws")  # its members have one posterior each
    alone = GaussianDiscriminantClassifier().fit(IRIS, SPECIES)
    with pytest.raises(TypeError, match="is about an AveragedClassifier, got a GaussianDiscriminantClassifier"):
        plot.members(alone)


def test_posteriors_of_the_members_are_those_of_their_statistics(fitted_mixed):
    tree = fitted_mixed.to_arviz()
    first = tree["member 0"]
    heaviest = fitted_mixed.summary().query("kind == 'generative'").iloc[0]
    assert first.attrs["weight"] == heaviest["weight"] and first.attrs["exponent"] == heaviest["exponent"]
    assert first["posterior"]["class_probability"].dims == ("chain", "draw", "class")
    for name, member in tree.children.items():
        posterior = member["posterior"]
        assert posterior.sizes["chain"] == 4 and posterior.sizes["draw"] == 250, name
        mean = posterior["class_probability"].mean(("chain", "draw"))
        np.testing.assert_allclose(mean, [1 / 3] * 3, atol=0.02)


@pytest.mark.compiles
def test_parameters_of_the_members_have_names_and_pictures():
    """Levels of two columns differ in name, and every axis has labels, which `plot_forest` and `plot_rank` need."""
    rng, y = np.random.default_rng(0), np.repeat(["a", "b"], 40)
    X = pd.DataFrame({"x": rng.normal(size=80) + 6 * rng.integers(2, size=80), "z": rng.normal(size=80)})
    X["colour"], X["wet"] = rng.choice(["red", "blue"], 80), rng.random(80) < np.where(y == "a", 0.2, 0.8)
    X["soil"] = np.where(rng.random(80) < np.where(y == "a", 0.2, 0.8), "clay", "sand")
    tree = AveragedClassifier(members="generative", random_state=0).fit(X, y).to_arviz()
    axes = {}
    for member in tree.children.values():
        posterior = member["posterior"]
        assert set(posterior.dims) == set(posterior.coords)
        axes |= {dim: values.values.tolist() for dim, values in posterior.coords.items()}
    assert axes["level"] == ["colour = blue", "colour = red", "wet = False", "wet = True", "soil = clay", "soil = sand"]
    assert axes["group"][:2] == ["a, component 0", "a, component 1"] and axes["feature2"] == axes["feature"] == [
        "x",
        "z",
    ]
    shown = next(member for member in tree.children.values() if "level" in member["posterior"].dims)
    level = shown["posterior"]["level_probability"].sel({"class": "b"}).mean(("chain", "draw"))
    share = np.mean(X["soil"][y == "b"] == "clay")
    assert float(level.sel(level="soil = clay")) == pytest.approx(share, abs=0.1)
    for picture in (azp.plot_forest, azp.plot_rank):
        picture(shown, var_names=["level_probability"], backend="matplotlib")
    matplotlib.pyplot.close("all")


def test_drawn_means_and_covariances_have_those_of_the_posterior(fitted):
    view = fitted.average_.modelling("numbers")[0]
    for structure in ("full", "shared", "diagonal", "shared diagonal"):
        place = next(m for m, member in enumerate(view.members) if member.structure == structure)
        expected = view.posterior(place).expected()
        own = Product((view.members[place],))
        drawn = fitted.average_.parameters(own, (4000,), np.random.default_rng(0))
        (dims, mean), name = drawn["mean"], "variance" if "diagonal" in structure else "covariance"
        assert dims == ("class", "feature") and ("class" in drawn[name][0]) == ("shared" not in structure)
        np.testing.assert_allclose(mean.mean(0), expected["mean"], atol=0.03)
        np.testing.assert_allclose(drawn[name][1].mean(0), expected[name], atol=0.05 * np.abs(expected[name]).max())


def test_picture_of_the_members(fitted, fitted_mixed):
    for classifier in (fitted, fitted_mixed):
        ax = plot.members(classifier, ax=Figure().add_subplot())
        assert 0 < len(ax.patches) <= 12 and ax.get_xlabel() == "weight"
        assert "nan" not in "".join(text.get_text() for text in ax.texts)


def test_sparse_rows_and_bad_levels_are_refused(fitted):
    refuses(lambda: AveragedClassifier().fit(sparse.csr_array(IRIS), SPECIES), "sparse", TypeError)
    refuses(lambda: fitted.predict_proba_interval(IRIS[:1], level=1.0), "level must lie between 0 and 1")
