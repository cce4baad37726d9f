"""Priors in an expert's words: their prior predictive has the mean and the spread that were guessed."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from bayesgen import plot
from bayesgen.models import BetaBernoulli, DirichletCategorical, GammaPoisson, LogNormal, NormalInverseGamma

LEAVES = {
    "normal": NormalInverseGamma.from_guess(mean=120, sd=10, rows=20),
    "log": LogNormal.from_guess(median=1000, factor=3, rows=30),
    "counts": GammaPoisson.from_guess(mean=3, rows=2),
    "coin": BetaBernoulli.from_guess(0.2, rows=10),
    "die": DirichletCategorical([2.0, 1.0, 1.0], ["u", "v", "w"]),
}


def test_draws_have_what_was_guessed():
    rng = np.random.default_rng(0)
    draws = {name: leaf.sample_parameters(rng, (40_000,)) for name, leaf in LEAVES.items()}
    values = rng.normal(draws["normal"]["mean"], np.sqrt(draws["normal"]["variance"]))
    assert values.mean() == pytest.approx(120, abs=0.3)
    assert np.sqrt(draws["normal"]["variance"].mean()) == pytest.approx(10, rel=0.02)
    values = np.exp(rng.normal(draws["log"]["mean"], np.sqrt(draws["log"]["variance"])))
    assert np.median(values) == pytest.approx(1000, rel=0.05)
    within = (values > 1000 / 3) & (values < 3000)
    assert within.mean() == pytest.approx(0.68, abs=0.03)
    assert draws["counts"]["mean"].mean() == pytest.approx(3, rel=0.02)
    assert draws["coin"]["probability"].mean() == pytest.approx(0.2, rel=0.02)


@pytest.mark.parametrize("name", LEAVES)
def test_the_picture_has_nearly_all_of_the_predictive(name):
    ax = plot.prior(LEAVES[name], ax=Figure().subplots())
    if ax.patches:
        total = sum(bar.get_height() for bar in ax.patches)
    else:
        x, density = ax.lines[0].get_data()
        total = np.trapezoid(density, x)
    assert 0.95 < total < 1.001


def test_a_block_of_columns_is_refused():
    with pytest.raises(ValueError, match="covers more"):
        plot.prior(BetaBernoulli([1.0, 2.0], 1.0), ax=Figure().subplots())
