"""Boundaries between classes: what the lectures prove of them, against SciPy's densities and scikit-learn's fits."""

import numpy as np
import pytest
from refusals import refuses
from scipy import stats
from scipy.optimize import brentq
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

import bayesgen as bg
from bayesgen.inspection.boundary import discriminant, parameter_count

X, Y = load_iris(return_X_y=True)
STRUCTURES = [(c, s) for c in ("full", "diagonal", "isotropic") for s in (False, True)]


def fitted(covariance, shared, inference="ml", columns=slice(None)):
    return bg.GaussianDiscriminantClassifier(covariance, shared, inference=inference).fit(X[:, columns], Y)


@pytest.mark.parametrize(("covariance", "shared"), STRUCTURES)
def test_scores_give_bayes_rule_on_scipys_densities(covariance, shared):
    classifier = fitted(covariance, shared)
    theta = classifier.posterior_.params
    joint = np.empty((len(X), 3))
    for k in range(3):
        if covariance == "full":
            matrix = theta["gaussian.covariance"] if shared else theta["gaussian.covariance"][k]
        else:
            variance = theta["gaussian.variance"]
            matrix = np.eye(4) * (variance if shared else variance[k])
        joint[:, k] = theta["classes.probability"][k] * stats.multivariate_normal(
            theta["gaussian.mean"][k], matrix
        ).pdf(X)
    scores = discriminant(classifier.posterior_)
    assert scores.linear == shared
    np.testing.assert_allclose(scores.predict_proba(X), joint / joint.sum(1, keepdims=True), rtol=1e-8, atol=1e-12)


def test_a_shared_covariance_is_a_softmax_of_scikit_learns_linear_function():
    own = discriminant(fitted("full", True).posterior_)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X, Y)  # its covariance divides by n too
    np.testing.assert_allclose(own.weights, lda.coef_, rtol=1e-8)
    np.testing.assert_allclose(own.intercept, lda.intercept_, rtol=1e-8)


def test_separate_covariances_are_scikit_learns_quadratic_function():
    rows = X[::7]
    boundary = discriminant(fitted("full", False).posterior_).between(1, 0)
    # Its covariances divide by n or by n - 1, as the version and the solver will: rows are spread to give ours.
    divisor = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, Y).covariance_[0][0, 0] / X[:50, 0].var()
    mean = np.repeat([X[k * 50 : k * 50 + 50].mean(0) for k in range(3)], 50, axis=0)
    scores = QuadraticDiscriminantAnalysis().fit(mean + (X - mean) / np.sqrt(divisor), Y).decision_function(rows)
    np.testing.assert_allclose(boundary.log_odds(rows), scores[:, 1] - scores[:, 0], rtol=1e-8)


def test_two_equally_probable_isotropic_classes_meet_in_the_bisector_of_their_means():
    half = Y < 2
    classifier = bg.GaussianDiscriminantClassifier("isotropic", True, priors=[0.5, 0.5], inference="ml").fit(
        X[half], Y[half]
    )
    a, b = classifier.posterior_.params["gaussian.mean"]
    boundary = discriminant(classifier.posterior_).between(0, 1)
    normal = boundary.weights / np.linalg.norm(boundary.weights)
    np.testing.assert_allclose(normal, (a - b) / np.linalg.norm(a - b), rtol=1e-12)
    assert boundary.log_odds([(a + b) / 2])[0] == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(boundary.crossings([b], a - b)[0], [0.5, np.nan], rtol=1e-12)


def test_unequal_class_probabilities_move_the_bisector_away_from_the_likelier_class():
    half = Y < 2
    classifier = bg.GaussianDiscriminantClassifier("isotropic", True, priors=[0.9, 0.1], inference="ml").fit(
        X[half], Y[half]
    )
    theta = classifier.posterior_.params
    a, b = theta["gaussian.mean"]
    shift = theta["gaussian.variance"] * np.log(9) / ((a - b) ** 2).sum()
    crossing = discriminant(classifier.posterior_).between(0, 1).crossings([b], a - b)[0, 0]
    assert crossing == pytest.approx(0.5 - shift, rel=1e-10)


def test_the_conic_and_its_kind():
    def between(first, second, means=((0.0, 0.0), (1.0, 0.0))):
        from bayesgen.inspection.boundary import Discriminant

        precision = np.linalg.inv(np.array([first, second], float))
        mean = np.array(means)
        weights = np.einsum("kij,kj->ki", precision, mean)
        intercept = -0.5 * (weights * mean).sum(1) + 0.5 * np.log(np.linalg.det(precision))
        return Discriminant(("a", "b"), -0.5 * precision, weights, intercept).between("a", "b")

    one, narrow = np.eye(2), np.diag([0.25, 0.25])
    assert between(narrow, one).kind() == "ellipse"
    assert between(np.diag([0.25, 1.0]), np.diag([1.0, 0.25])).kind() == "hyperbola"
    assert between(np.diag([0.25, 1.0]), one).kind() == "parabola"
    assert between(one, one).kind() == "line"
    far = between(narrow, one)
    nowhere = type(far)(far.quadratic, far.weights, far.intercept - 50)
    assert nowhere.kind() == "nowhere"
    assert np.isnan(nowhere.crossings([[0.0, 0.0]], [1.0, 0.0])).all()
    x = np.array([[0.3, -0.7], [2.0, 1.0]])
    homogeneous = np.column_stack([x, np.ones(2)])
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", homogeneous, far.conic(), homogeneous), far.log_odds(x))


@pytest.mark.parametrize("shared", [False, True])
def test_crossings_are_zeros_of_the_log_odds_for_every_draw(shared):
    posterior = fitted("full", shared, "exact", slice(0, 2)).posterior_
    boundary = discriminant(posterior, seed=0, size=(7,)).between(1, 0)
    start, direction = np.array([[4.0, 2.0], [5.0, 4.5]]), np.array([1.0, 0.2])
    s = boundary.crossings(start, direction)
    assert s.shape == (7, 2, 2) and np.isfinite(s[..., 0]).any()
    for i, j, k in np.argwhere(np.isfinite(s)):
        assert boundary.log_odds([start[j] + s[i, j, k] * direction])[i, 0] == pytest.approx(0, abs=1e-7)
    reference = brentq(
        lambda r: boundary.log_odds([start[0] + r * direction])[0, 0], *np.sort(s[0, 0, 0] + [-0.1, 0.1])
    )
    assert s[0, 0, 0] == pytest.approx(reference, abs=1e-9)


def test_the_posterior_over_boundaries_narrows_with_data():
    def spread(step):
        posterior = bg.GaussianDiscriminantClassifier(shared=True).fit(X[:100:step, :2], Y[:100:step]).posterior_
        boundary = discriminant(posterior, seed=0, size=(2000,)).between(1, 0)
        return np.subtract(*np.nanquantile(boundary.crossings([[0.0, 3.0]], [1.0, 0.0])[:, 0, 0], [0.9, 0.1]))

    assert spread(10) > 2 * spread(1)


def test_scores_of_a_softmax_regression():
    z = (X - X.mean(0)) / X.std(0)
    for symmetric, classes in ((True, 3), (False, 3), (True, 2)):
        rows = classes > Y
        model = bg.models.LogisticRegression(np.full(4, 2.0), classes=tuple(range(classes)), symmetric=symmetric)
        posterior = bg.fit(model, (z[rows], Y[rows]), "map")
        expected = np.exp(posterior.log_predictive(z))
        np.testing.assert_allclose(discriminant(posterior).predict_proba(z), expected, rtol=1e-9, atol=1e-12)


def test_parameter_counts_are_the_sizes_of_what_is_fitted():
    for covariance, shared in STRUCTURES:
        theta = fitted(covariance, shared).posterior_.params
        spread = theta["gaussian.covariance" if covariance == "full" else "gaussian.variance"]
        free = spread.size // 16 * 10 if covariance == "full" else spread.size  # symmetric 4 x 4
        count = theta["classes.probability"].size - 1 + theta["gaussian.mean"].size + free
        assert parameter_count(3, 4, covariance, shared) == count


def test_errors_say_what_is_expected():
    classifier = fitted("full", True)
    with pytest.raises(ValueError, match="'virginica' is not one of the classes"):
        discriminant(classifier.posterior_).between(0, "virginica")
    refuses(lambda: discriminant(classifier.posterior_).scores([[1.0]]), "rows of 4 columns")
    refuses(lambda: discriminant(classifier.posterior_).scores([[1.0, np.nan, 1.0, 1.0]]), "missing")
    refuses(lambda: discriminant(bg.NaiveBayesClassifier().fit(X, Y).posterior_), "GaussianDiscriminant", TypeError)
    refuses(lambda: parameter_count(2, 2, "round"), "covariance")
    refuses(lambda: discriminant(classifier.posterior_).between(0, 1).crossings(X[:1], [0.0]), "direction")
    refuses(discriminant(classifier.posterior_).between(0, 1).kind, "2 columns")
