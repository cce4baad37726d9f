"""Models without an exact posterior under the default inference, and what is refused of them."""

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.models import BetaBernoulli, Pooled

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
X = RNG.normal(size=(60, 1)) + Y[:, None]


@pytest.mark.parametrize(
    ("leaf", "rows", "name"),
    [
        ("student", X, "map"),
        pytest.param(Pooled(BetaBernoulli(1.0, 1.0)), X > 1, "laplace", marks=pytest.mark.compiles),
    ],
)
def test_the_default_is_an_inference_that_works_and_is_told(leaf, rows, name):
    with pytest.warns(UserWarning, match=f"no exact posterior.*fitted by inference='{name}'") as told:
        fitted = bg.NaiveBayesClassifier({"x0": leaf}, random_state=0).fit(rows, Y)
    assert len([w for w in told if "exact posterior" in str(w.message)]) == 1
    expected = bg.NaiveBayesClassifier({"x0": leaf}, inference=name, random_state=0).fit(rows, Y)
    np.testing.assert_array_equal(fitted.predict_proba(rows), expected.predict_proba(rows))
    of_draws = r"exact.*has none; of draws, .*, take arviz_stats.loo\(classifier.to_arviz\(X, y\)\)"
    with pytest.raises(ValueError, match=of_draws):
        fitted.leave_one_out(rows, Y)
