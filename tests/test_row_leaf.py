"""A leaf that keeps its rows, as an author writes one: laws, quadrature, files, and what it refuses by name."""

from dataclasses import dataclass

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import bayesgen as bg
from bayesgen.inference import Exact
from bayesgen.models.leaf import DataError, Hyperparameter, hyperparameter
from bayesgen.models.row_leaf import RowLeaf, RowsByGroup
from bayesgen.testing import check_leaf


@dataclass(frozen=True, eq=False)
class Cauchy(RowLeaf):
    """x ~ Cauchy(centre, 1), centre ~ Normal(0, width)."""

    width: Hyperparameter = hyperparameter(1.0, positive=True)

    def parameters(self):
        return {"centre": numpyro.sample("centre", dist.Normal(0.0, self.width))}

    def likelihood(self, params):
        return dist.Cauchy(params["centre"], 1.0)

    def log_density(self, params, x):
        centre = params["centre"]
        return -centre.__array_namespace__().log1p((x - centre) ** 2) - np.log(np.pi)


def log_prior(leaf, params):
    return stats.norm(0, leaf.width).logpdf(params["centre"]).sum()


ROWS = stats.cauchy([0.5, -0.3]).rvs((60, 2), random_state=0)


def test_laws():
    laws = [
        "pieces_make_the_whole",
        "a_weight_is_a_row_repeated",
        "a_weight_may_be_a_fraction",
        "likelihood_of_statistics_is_that_of_rows",
        "map_maximises",
        "ml_maximises",
        "row_program_is_statistics_program",
        "prior_program_is_the_prior",
        "draws_have_named_dims",
        "is_a_pytree",
    ]
    told = check_leaf(Cauchy([1.0, 0.7]), ROWS, log_prior, laws)
    assert set(told.values()) == {"holds"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    y = np.repeat(["left", "right"], [25, 12])
    X = np.column_stack([rng.standard_cauchy(37) + 2 * (y == "right"), rng.normal(size=37)])
    X[3, 0] = np.nan
    return X, y


@pytest.fixture(scope="module")
def fitted(table):
    return bg.NaiveBayesClassifier({"x0": Cauchy(2.0)}, inference="map").fit(*table)


@pytest.mark.compiles
def test_the_mode_of_each_class_is_where_a_grid_has_it(table, fitted):
    X, y = table
    grid = np.linspace(-4, 6, 100_001)
    for k, label in enumerate(fitted.classes_):
        x = X[(y == label) & ~np.isnan(X[:, 0]), 0]
        log_p = stats.norm(0, 2).logpdf(grid) + sum(stats.cauchy(grid).logpdf(value) for value in x)
        assert fitted.posterior_.params["x0.centre"][k] == pytest.approx(grid[log_p.argmax()], abs=1e-4)


@pytest.mark.compiles
def test_a_file_has_the_rows_and_is_private(fitted, table, tmp_path):
    fitted.save(tmp_path / "fit.bayesgen")
    assert (tmp_path / "fit.bayesgen").stat().st_mode & 0o77 == 0
    again = bg.load(tmp_path / "fit.bayesgen", [Cauchy])
    np.testing.assert_array_equal(again.predict_proba(table[0]), fitted.predict_proba(table[0]))
    assert isinstance(again.statistics_.leaves["x0"], RowsByGroup)


@pytest.mark.compiles
def test_what_needs_sums_is_refused_by_name(fitted, table):
    X, y = table
    with pytest.raises(TypeError, match=r"'x0'.*Cauchy cannot learn from rows without a label"):
        bg.LatentClassClassifier(features={"x0": Cauchy(2.0)}).fit(X, np.where(np.arange(37) == 30, None, y))
    with pytest.raises(ValueError, match="keeps its rows cannot forget some of them"):
        fitted.statistics_.leaves["x0"] - fitted.statistics_.leaves["x0"]
    with pytest.raises(TypeError, match="no exact posterior"):
        bg.NaiveBayesClassifier({"x0": Cauchy(2.0)}, inference=Exact()).fit(X, y)
    with pytest.raises(DataError, match=r"rows have \(2,\) features where the model has \(\)"):
        Cauchy(2.0).statistics(ROWS)
