"""Pictures of classifiers, of columns and of class probabilities, and what all pictures refuse."""

import functools
import inspect
import io
import itertools
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from refusals import refuses
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import bayesgen as bg
from bayesgen import evaluation, plot
from bayesgen.comparison import over_time
from bayesgen.models import BetaBernoulli

mpl.use("Agg")


def axes():
    return Figure().subplots()


def labels(ax):
    return ax.get_legend_handles_labels()[1]


# -- classifiers ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b", "c"], 25)
    return rng.normal(size=(75, 2)) + np.repeat([[0, 0], [3, 0], [1, 4]], 25, axis=0), y


def test_class_conditionals_and_the_sigmoid(plane):
    X, y = plane[0][:50, :1], plane[1][:50]
    classifier = bg.GaussianDiscriminantClassifier(shared=True).fit(X, y)
    x = np.linspace(-60, 60, 4001)
    ax = plot.class_conditionals(classifier, x, ax=axes())
    right = ax.figure.axes[1]
    areas = [np.trapezoid(line.get_ydata(), x) for line in ax.lines]
    np.testing.assert_allclose(areas, classifier.posterior_.model.classes.mean, atol=1e-3)
    assert len(right.lines) == 1
    a, b = (line.get_ydata() for line in ax.lines)
    np.testing.assert_allclose(right.lines[0].get_ydata(), b / (a + b), rtol=1e-9)
    assert labels(right) == ["P(b | x)"]


def test_softmax_has_a_curve_for_every_class(plane):
    classifier = bg.GaussianDiscriminantClassifier().fit(plane[0][:, :1], plane[1])
    ax = plot.class_conditionals(classifier, np.linspace(-5, 8, 50), ax=axes())
    curves = [line.get_ydata() for line in ax.figure.axes[1].lines]
    np.testing.assert_allclose(np.sum(curves, axis=0), 1)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "isotropic"])
def test_decision_regions_of_every_covariance(plane, covariance, shared):
    classifier = bg.GaussianDiscriminantClassifier(covariance, shared).fit(*plane)
    ax = plot.decision_regions(classifier, *plane, steps=41, ax=axes())
    assert set(labels(ax)) == {"a", "b", "c", "90% of boundaries"}


def contour_points(ax):
    sets = [c for c in ax.collections if hasattr(c, "levels") and list(c.levels) == [0.0]]
    return [np.concatenate([path.vertices for path in c.get_paths()]) for c in sets]


def test_on_the_boundary_two_classes_are_equally_probable(plane):
    classifier = bg.GaussianDiscriminantClassifier().fit(*plane)
    ax = plot.decision_regions(classifier, *plane, steps=101, ax=axes())
    first, second = contour_points(ax)
    for points in (first, second):
        top = np.sort(classifier.predict_proba(points), axis=1)[:, -2:]
        assert np.quantile(top[:, 1] - top[:, 0], 0.95) < 0.03  # but where three classes meet


def test_a_slow_machine_brings_no_warning_of_the_legend(plane, monkeypatch):
    """Matplotlib warns where it looks for the place of a legend for more than a second of the wall clock."""
    seconds = itertools.count()
    monkeypatch.setattr("matplotlib.legend.time.perf_counter", lambda: 2.0 * next(seconds))
    X, y = plane
    ax = plot.decision_regions(bg.GaussianDiscriminantClassifier().fit(X, y), X, y, ax=Figure().subplots())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.savefig(io.BytesIO())
    assert next(seconds) > 0  # a place was looked for


def test_the_band_is_where_draws_disagree(plane):
    X, y = plane[0][:50], plane[1][:50]
    exact = bg.GaussianDiscriminantClassifier(shared=True).fit(X, y)
    middle, far = X.mean(0), X[y == "a"].mean(0) - [3, 0]
    share = plot.agreement(exact, [middle, far], draws=500)
    assert 0.5 <= share[0] < 0.95 < share[1]
    point = bg.GaussianDiscriminantClassifier(shared=True, inference="map").fit(X, y)
    assert (plot.agreement(point, [middle, far]) == 1).all()
    ax = plot.decision_regions(point, X, y, steps=21, ax=axes())
    assert labels(ax) == ["a", "b"]


def test_a_discriminative_classifier_and_a_foreign_one_have_regions_too(plane):
    X, y = pd.DataFrame(plane[0][:50], columns=["u", "v"]), plane[1][:50]
    for classifier in (bg.LogisticClassifier(inference="map"), LinearDiscriminantAnalysis()):
        ax = plot.decision_regions(classifier.fit(X, y), X, y, steps=21, ax=axes())
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("u", "v")
        assert len(contour_points(ax)) == 1


def test_class_probabilities_of_a_new_row(plane):
    classifier = bg.NaiveBayesClassifier().fit(*plane)
    ax = plot.class_probabilities(classifier, *plane, [6.0, 9.0], steps=41, ax=axes())
    own = classifier.predict_proba([[6.0, 9.0]])[0]
    text = next(t.get_text() for t in ax.texts if "P(a)" in t.get_text())
    assert text.split("\n") == [f"P({name}) = {p:.2g}" for name, p in zip("abc", own, strict=True)]
    assert sum(list(getattr(c, "levels", [])) == [0.5, 0.9, 0.99] for c in ax.collections) == 3
    assert labels(ax)[-1] == "new row"


def test_boundaries_of_several_classifiers(plane):
    X, y = np.vstack([plane[0][:50], [[30, 20]]]), np.append(plane[1][:50], "b")
    fits = {"LDA": bg.GaussianDiscriminantClassifier(shared=True), "logistic": bg.LogisticClassifier(inference="map")}
    fits = {label: classifier.fit(X, y) for label, classifier in fits.items()}
    ax = plot.boundaries(fits, X, y, ax=axes())
    for points, classifier in zip(contour_points(ax), fits.values(), strict=True):
        np.testing.assert_allclose(classifier.predict_proba(points)[:, 0], 0.5, atol=1e-3)
    assert {"LDA", "logistic"} < set(labels(ax))


def test_probability_along_a_line(plane):
    X, y = plane[0][:50], plane[1][:50]
    fits = {way: bg.GaussianDiscriminantClassifier(inference=way).fit(X, y) for way in ("ml", "map", "exact")}
    ax = plot.along_line(fits, [0, 0], [30, 40], X=X, ax=axes())
    for line, classifier in zip(ax.lines[:3], fits.values(), strict=True):
        assert line.get_xdata()[-1] == pytest.approx(50)
        assert line.get_ydata()[-1] == pytest.approx(classifier.predict_proba([[30, 40]])[0, 1], rel=1e-12)
    np.testing.assert_allclose(ax.lines[3].get_xdata(), X @ [0.6, 0.8])


@pytest.mark.parametrize("kind", ["naive Bayes", "full covariance", "averaged"])
def test_a_column_is_drawn_as_it_is_in_each_class(kind):
    table = bg.data.load("penguins").dropna()
    y, table = table["species"], table[["bill_length_mm", "body_mass_g"]]
    made = {
        "naive Bayes": bg.NaiveBayesClassifier,
        "full covariance": bg.GaussianDiscriminantClassifier,
        "averaged": functools.partial(bg.AveragedClassifier, members=["gaussian", "mixture"]),
    }
    ax = plot.column(made[kind](random_state=0).fit(table, y), "body_mass_g", ax=axes())
    assert labels(ax) == ["Adelie", "Chinstrap", "Gentoo"]
    for line, name in zip(ax.lines, labels(ax), strict=True):
        x, density = line.get_data()
        drawn = np.trapezoid(density, x)
        assert 0.95 < drawn < 1.0  # what lies beyond the ends is left out, of the mean as well
        own = table["body_mass_g"][y == name]
        np.testing.assert_allclose(np.trapezoid(density * x, x) / drawn, own.mean(), rtol=0.01)


def test_categories_counts_and_bits_have_bars():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 60)
    table = pd.DataFrame(
        {
            "letter": rng.choice(["p", "q", "r"], 120),
            "count": rng.poisson(np.where(y == "a", 1, 3)),
            "bit": rng.random(120) < 0.3,
            "many": rng.poisson(np.where(y == "a", 100, 300)),
        }
    )
    classifier = bg.NaiveBayesClassifier({"count": "poisson", "many": "poisson"}, random_state=0).fit(table, y)
    for name, count in {"letter": 3, "bit": 2}.items():
        ax = plot.column(classifier, name, ax=axes())
        assert [len(bars) for bars in ax.containers] == [count, count]
        for bars in ax.containers:
            np.testing.assert_allclose(sum(bar.get_height() for bar in bars), 1)
    bars = plot.column(classifier, "count", ax=axes()).containers[0]
    share = (table["count"][y == "a"] == 0).mean()
    np.testing.assert_allclose(bars[0].get_height(), share, atol=0.1)
    line = plot.column(classifier, "many", ax=axes()).lines[1]
    assert (line.get_xdata() % 1 == 0).all() and 290 < line.get_xdata()[line.get_ydata().argmax()] < 310


def test_a_column_that_is_not_there_and_a_classifier_without_densities():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match="no column 'z'; there are: x0, x1"):
        plot.column(bg.NaiveBayesClassifier().fit(X, y), "z", ax=axes())
    with pytest.raises(ValueError, match="a LogisticClassifier learns nothing of how its columns are distributed"):
        plot.column(bg.LogisticClassifier(inference="map").fit(X, y), "x0", ax=axes())


def test_regions_of_two_columns_out_of_more_are_those_with_the_others_missing():
    table = bg.data.load("penguins").dropna()
    y, two = table["species"], table[["bill_length_mm", "body_mass_g"]]
    whole, alone = bg.NaiveBayesClassifier(random_state=0), bg.NaiveBayesClassifier(random_state=0)
    whole.fit(table.drop(columns="species"), y), alone.fit(two, y)
    for drawn in (plot.decision_regions, plot.class_probabilities):
        one, other = (drawn(c, two, y, steps=21, ax=axes()) for c in (whole, alone))
        assert (one.get_xlabel(), one.get_ylabel()) == ("bill_length_mm", "body_mass_g")
        for mesh, same in zip(one.collections, other.collections, strict=True):
            if mesh.get_array() is not None:
                np.testing.assert_allclose(mesh.get_array(), same.get_array(), rtol=1e-6, atol=1e-12)
    with pytest.raises(ValueError, match="X has 2 columns, and the fit had 7: give a DataFrame"):
        plot.decision_regions(whole, two.to_numpy(), y, ax=axes())


# -- probabilities ----------------------------------------------------------------------------------------------------


def simulate(n=300):
    rng = np.random.default_rng(0)
    probability = rng.dirichlet([0.4, 0.4, 0.4], n)
    truth = (probability.cumsum(1) < rng.random((n, 1))).sum(1).clip(max=2)
    return truth, probability


def test_reliability_shows_what_the_calibration_error_measures():
    truth, probability = simulate()
    ax = plot.reliability(truth, probability, bins=5, ax=axes())
    p, frequency = ax.lines[1].get_data()
    count = np.array([float(text.get_text()) for text in ax.texts])
    assert count.sum() == len(truth)
    error = evaluation.expected_calibration_error(truth, probability, bins=5)
    assert (count * np.abs(p - frequency)).sum() / count.sum() == pytest.approx(error)
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_probabilities_are_those_of_the_true_class():
    truth, probability = simulate()
    reference = np.full_like(probability, 1 / 3)
    ax = plot.probabilities(truth, probability, reference, ax=axes())
    right, wrong = (np.asarray(points.get_offsets()) for points in ax.collections)
    hit = probability.argmax(1) == truth
    np.testing.assert_allclose(right[:, 1], probability[hit, truth[hit]])
    np.testing.assert_allclose(wrong[:, 1], probability[~hit, truth[~hit]])
    np.testing.assert_allclose(right[:, 0], 1 / 3)
    assert (ax.get_xscale(), ax.get_yscale()) == ("logit", "logit")


def test_probabilities_of_zero_and_one_lie_at_the_edge_and_ranks_stand_in_for_a_reference():
    ax = plot.probabilities([0, 0, 1], [[1, 0], [0, 1], [0.4, 0.6]], ax=axes())
    points = np.concatenate([c.get_offsets() for c in ax.collections])
    assert sorted(points[:, 0]) == pytest.approx([1 / 6, 1 / 2, 5 / 6])
    low, high = ax.get_ylim()
    assert ((low < points[:, 1]) & (points[:, 1] < high)).all()


def test_confusion_counts_what_was_done_and_what_it_cost():
    loss = [[0, 1, 0.5], [10, 0, 0.5]]
    truth, action = [0, 0, 0, 1, 1], [0, 1, 1, 0, 2]
    ax = plot.confusion(truth, action, loss, classes=["well", "ill"], actions=["go", "treat", "test"], ax=axes())
    assert [t.get_text() for t in ax.texts][:3] == ["1\ncost 0", "2\ncost 2", "0\ncost 0"]
    assert ax.get_title() == f"mean loss {bg.decision.risk(truth, action, loss):.3g}"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["go", "treat", "test"]
    refuses(lambda: plot.confusion(truth, [0, 1, 1, 0, 3], loss, ax=axes()), "action")


def test_labels_are_drawn_as_codes_are():
    truth, probability = simulate()
    names = np.array(["ash", "birch", "oak"])
    for draw in (plot.reliability, plot.probabilities):
        one, other = draw(truth, probability, ax=axes()), draw(names[truth], probability, ax=axes())
        for mine, theirs in zip(one.lines, other.lines, strict=True):
            np.testing.assert_array_equal(mine.get_data(), theirs.get_data())
        for mine, theirs in zip(one.collections, other.collections, strict=True):
            np.testing.assert_array_equal(mine.get_offsets(), theirs.get_offsets())
        one, other = (draw(names[truth[:1]], p, labels=names, ax=axes()) for p in (probability[:1], [[1, 0, 0]]))
    action = probability.argmax(1)
    loss = [[0, 1, 5], [1, 0, 5], [9, 9, 0]]
    one, other = (
        plot.confusion(*given, loss, classes=classes, ax=axes())
        for given, classes in (((truth, action), None), ((names[truth], names[action]), names))
    )
    assert [t.get_text() for t in one.texts] == [t.get_text() for t in other.texts]
    assert [t.get_text() for t in other.get_yticklabels()] == list(names)
    unnamed = plot.confusion(names[truth], names[action], loss, ax=axes())
    assert [t.get_text() for t in unnamed.get_xticklabels()] == list(names)
    refuses(lambda: plot.reliability(["ash"], [[0.5, 0.5]], ax=axes()), "y_true holds 1 distinct values")


def test_learning_curves_are_means_with_two_standard_errors():
    scores = {"one": [[1.0, 0.5], [2.0, 0.7], [3.0, 0.9]], "other": [1.5, 0.2]}
    ax = plot.learning_curves([10, 100], scores, ax=axes())
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [2, 0.7])
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(2 + 2 / 3**0.5)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [1.5, 0.2])
    assert labels(ax) == ["one", "other"]


# -- in general -------------------------------------------------------------------------------------------------------


def test_without_axes_the_current_ones_are_drawn_on():
    import matplotlib.pyplot as plt

    figure, (_, second) = plt.subplots(1, 2)
    assert plot.reliability(*simulate()) is second
    plt.close(figure)


WRONG = {  # what is no argument of any picture, beside what is one of another
    "nothing": None, "a number": 3, "text": "x", "an array": np.zeros(3), "a dict": {"a": 1}, "an object": object(),
    "an unfitted classifier": bg.NaiveBayesClassifier(), "a leaf": BetaBernoulli(1, 1), "a list": [1, 2],
    "a fitted one": bg.NaiveBayesClassifier().fit(np.arange(8.0)[:, None], [0, 1] * 4),
}  # fmt: skip


TAKEN = {"bayes_net": "a leaf", "coin": "a leaf", "prior": "a leaf", "class_conditionals": "a fitted one"}


@pytest.mark.parametrize("name", [*plot.__all__, "over_time"])
def test_what_cannot_be_drawn_is_refused_by_name(name):
    """Each first argument that is no such thing is a TypeError or ValueError of ours, never an AttributeError."""
    draw = getattr(plot, name, over_time)
    needed = [
        p.name
        for p in inspect.signature(draw).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)
    ]
    for what, value in WRONG.items():
        if what == TAKEN.get(name) or not needed:
            continue
        ax = {} if name == "over_time" else {"ax": Figure().subplots()}
        with pytest.raises((TypeError, ValueError)) as caught:
            draw(*[value] * len(needed), **ax)
        assert "object has no attribute" not in str(caught.value), what


def test_what_is_no_axes_is_refused():
    refuses(lambda: plot.squashing(ax="x"), "ax must be Axes of matplotlib, .* got a str", TypeError)
    refuses(lambda: plot.models(1, ax=np.zeros(2)), "result must be what compare_models returns, got a int", TypeError)
