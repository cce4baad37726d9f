"""Tables as users bring them: column names, categories, gaps, unseen values, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg

Y = np.array(["a", "b"] * 4)


def test_integer_column_names():
    X = pd.DataFrame(np.arange(16.0).reshape(8, 2))
    np.testing.assert_allclose(
        bg.NaiveBayesClassifier().fit(X, Y).predict_proba(X),
        bg.NaiveBayesClassifier().fit(X.to_numpy(), Y).predict_proba(X.to_numpy()),
    )


def test_unused_categories_count():
    levels = pd.Categorical(["u", "v"] * 4, categories=["w", "u", "v"])
    classifier = bg.NaiveBayesClassifier().fit(pd.DataFrame({"c": levels}), Y)
    assert classifier.schema_.blocks[0].categories == ("w", "u", "v")
    unseen = pd.DataFrame({"c": pd.Categorical(["w"], categories=["w", "u", "v"])})
    np.testing.assert_allclose(classifier.predict_proba(unseen), [[0.5, 0.5]])


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_a_gap_of_any_kind_drops_out(gap):
    X = pd.DataFrame({"c": ["u", "v"] * 4, "x": np.arange(8.0)})
    classifier = bg.NaiveBayesClassifier().fit(X, Y)
    row = pd.DataFrame({"c": pd.Series([gap], dtype=object), "x": [2.0]})
    alone = bg.NaiveBayesClassifier().fit(X[["x"]], Y)
    np.testing.assert_allclose(classifier.predict_proba(row), alone.predict_proba(row[["x"]]), rtol=1e-12)


def test_unseen_category():
    X = pd.DataFrame({"c": ["u", "v"] * 4, "x": np.arange(8.0)})
    new = pd.DataFrame({"c": ["w"], "x": [2.0]})
    with pytest.raises(ValueError, match=r"column 'c': 'w' in row 0.*unseen='missing'"):
        bg.NaiveBayesClassifier().fit(X, Y).predict(new)
    tolerant = bg.NaiveBayesClassifier(unseen="missing").fit(X, Y)
    gap = new.assign(c=None)
    np.testing.assert_array_equal(tolerant.predict_proba(new), tolerant.predict_proba(gap))


def test_a_slash_in_a_column_name_survives_arviz():
    X = pd.DataFrame({"a/b": ["u", "v"] * 4})
    tree = bg.NaiveBayesClassifier(random_state=0).fit(X, Y).to_arviz()
    assert tree.posterior["a_b.probability"].dims == ("chain", "draw", "class", "a_b.category")


def test_an_all_missing_row_gets_the_class_prior():
    X = pd.DataFrame({"c": ["u", "v"] * 4, "x": np.arange(8.0)})
    nothing = pd.DataFrame({"c": [None], "x": [np.nan]})
    y = np.array(["a"] * 6 + ["b"] * 2)
    np.testing.assert_allclose(bg.NaiveBayesClassifier().fit(X, y).predict_proba(nothing), [[7 / 10, 3 / 10]])


def test_integer_weight_is_a_repeated_row():
    X, w = np.arange(16.0).reshape(8, 2) ** 1.5, np.array([1, 2, 0, 3, 1, 1, 2, 1])
    for make in (bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier):
        weighted = make().fit(X, Y, sample_weight=w)
        repeated = make().fit(np.repeat(X, w, axis=0), np.repeat(Y, w))
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-10)
        assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-12)


FRAME = pd.DataFrame({"x": np.arange(8.0) ** 1.2, "z": [1.0, 3.0, 2.0, 5.0, 4.0, 7.0, 6.0, 9.0]})
GAPPY = FRAME.assign(z=FRAME["z"].where(FRAME.index != 3))


@pytest.mark.parametrize(
    ("make", "X", "y", "error", "words"),
    [
        (bg.NaiveBayesClassifier(), FRAME.assign(x=np.inf), Y, ValueError, "column 'x'.*infinite"),
        (bg.NaiveBayesClassifier(), FRAME.assign(d=pd.Timestamp("2020-01-01")), Y, TypeError, "column 'd'"),
        (bg.NaiveBayesClassifier("bernoulli"), FRAME, Y, ValueError, "column 'z'.*not 0 or 1"),
        (bg.NaiveBayesClassifier("gauss"), FRAME, Y, ValueError, "features must be 'auto'"),
        (bg.NaiveBayesClassifier({"q": "gaussian"}), FRAME, Y, ValueError, r"\['q'\]"),
        (bg.NaiveBayesClassifier(inference="mcmc"), FRAME, Y, ValueError, "inference must be one of"),
        (bg.NaiveBayesClassifier(unseen="drop"), FRAME, Y, ValueError, "unseen must be"),
        (bg.NaiveBayesClassifier(priors=[1.0]), FRAME, Y, ValueError, "priors must hold one probability"),
        (bg.NaiveBayesClassifier(priors=[0.5, 0.6]), FRAME, Y, ValueError, "sum to 1"),
        (bg.NaiveBayesClassifier(alpha=-1.0), FRAME, Y, ValueError, "alpha must be positive"),
        (bg.NaiveBayesClassifier(inference="ml"), FRAME, list("aaaaaaab"), ValueError, "class 'b', column 'x'"),
        (bg.NaiveBayesClassifier(), FRAME, Y[:5], ValueError, "8 rows and y has 5"),
        (bg.NaiveBayesClassifier(), FRAME, [None, *Y[1:]], ValueError, "missing labels"),
        (bg.NaiveBayesClassifier(), FRAME.iloc[:0], Y[:0], ValueError, "X has 0 samples"),
        (bg.GaussianDiscriminantClassifier(), GAPPY, Y, ValueError, "column 'z'.*partly missing.*'map' or 'nuts'"),
        (bg.GaussianDiscriminantClassifier("round"), FRAME, Y, ValueError, "covariance must be one of"),
        (bg.GaussianDiscriminantClassifier(), FRAME.assign(x="u"), Y, ValueError, "column 'x'.*not a number"),
    ],
)
def test_refused(make, X, y, error, words):
    with pytest.raises(error, match=words):
        make.fit(X, y)
