"""Pairs of columns that stay dependent within a class: found where planted, and p-values that are uniform elsewhere."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayesgen as bg
from bayesgen.inspection import bivariate_residuals
from bayesgen.posterior import ParameterDraws


def table(seed=0, n=200, copied=0.0, columns="ABCDE"):
    """Answers of two classes; a share of the last is the one before, whatever the class."""
    rng = np.random.default_rng(seed)
    t = rng.random(n) < 0.4
    bits = rng.random((n, len(columns))) < np.where(t, 0.85, 0.2)[:, None]
    bits[:, -1] = np.where(rng.random(n) < copied, bits[:, -2], bits[:, -1])
    return pd.DataFrame(bits, columns=list(columns)), t, rng


def fit(X, **settings):
    return bg.LatentClassClassifier(**{"classes": 2, "starts": 4, "random_state": 0} | settings).fit(X)


def test_a_planted_pair_is_the_first_of_columns_of_every_kind():
    X, t, rng = table(copied=0.5)
    X["z"] = rng.normal(2.0 * t)
    X["w"] = 0.6 * X["z"] + rng.normal(size=200)
    X["n"] = rng.poisson(2.0 + 3.0 * t)
    X["price"] = np.exp(rng.normal(1.0 * t))
    X["die"] = pd.Categorical(np.where(rng.random(200) < 0.5, rng.integers(3, size=200), t).astype(str))
    X.loc[:9, "z"] = np.nan
    found = bivariate_residuals(fit(X, features={"price": "log", "n": "poisson"}), tables=39)
    assert set(found.index[:2]) == {("D", "E"), ("z", "w")} and (found["p"][:2] == 1 / 40).all()
    assert (found["residual"].iloc[:2] > 5).all() and len(found) == 10 * 9 / 2
    assert 0.3 < found["p"].iloc[2:].mean() < 0.7 and found.attrs["tables"] == "39 tables from the point estimate"


def test_a_residual_of_categories_is_the_one_of_pearson():
    X, _, _ = table(3, copied=0.3)
    X["D"] = pd.Categorical(np.where(X["D"], "yes", np.where(X["E"], "no", "perhaps")))
    fitted = fit(X)
    params = fitted.posterior_.params
    found = bivariate_residuals(fitted, tables=1)["residual"]
    yes = params["bernoulli.probability"]
    names = [block.columns for block in fitted.schema_.blocks]
    assert names == [("A", "B", "C", "E"), ("D",)]
    share, three = params["classes.probability"], params["D.probability"]
    two = np.stack([1 - yes[:, 3], yes[:, 3]], axis=1)
    expected = 200 * np.einsum("k,ka,kb->ab", share, three, two)
    observed = pd.crosstab(X["D"], X["E"]).to_numpy()
    pearson = stats.chisquare(observed.ravel(), expected.ravel() * observed.sum() / expected.sum()).statistic
    assert found[("E", "D")] == pytest.approx(pearson / 2, rel=1e-6)


def test_draws_take_part_and_other_classifiers_are_refused():
    X, t, rng = table(copied=0.4, columns="ABCFGHDE")
    fitted = fit(X)
    model, statistics = fitted.model_, fitted.statistics_
    exact = model.update(statistics.expected(model, statistics.start))
    fitted.posterior_ = ParameterDraws(model, exact.sample_parameters(rng, (1, 50)))
    found = bivariate_residuals(fitted, tables=19)
    assert found.index[0] == ("D", "E") and found.attrs["tables"] == "19 tables from draws of the posterior"
    numbers = pd.DataFrame(np.random.default_rng(0).normal(3.0 * t[:, None], size=(200, 2)), columns=["u", "v"])
    with pytest.raises(ValueError, match=r"columns .*u.*v.*is not for a NormalInverseWishart"):
        bivariate_residuals(fit(numbers, model="discriminant"))
    with pytest.raises(ValueError, match=r"columns .*is not for a StudentT"):
        bivariate_residuals(fit(numbers, features={"u": "student", "v": "student"}))
    with pytest.raises(ValueError, match="of rows without labels and weights"):
        bivariate_residuals(bg.LatentClassClassifier(classes=2, random_state=0).fit(X, sample_weight=np.arange(200)))
    with pytest.raises(ValueError, match="two classes or more"):
        bivariate_residuals(fit(X, classes=1))


@pytest.mark.slow
def test_p_of_independent_columns_is_uniform():
    """One pair of each of 150 tables; p takes the values 1/20, 2/20, ..."""
    p = [bivariate_residuals(fit(table(seed)[0]), tables=19)["p"][("A", "B")] for seed in range(150)]
    low = sum(value <= 0.1 for value in p)
    assert stats.binomtest(low, 150, 0.1).pvalue > 1e-4
    assert abs(np.mean(p) - 0.525) < 4 * np.sqrt(1 / 12 / 150)
