"""Every function of ArviZ on a classifier, a leaf, a regression and a user's function; see `arviz_functions`."""

from pathlib import Path

import arviz_functions as functions
import arviz_plots as azp
import arviz_stats as azs
import matplotlib
import pytest
import xarray as xr

import bayesgen as bg

matplotlib.use("Agg")
pytestmark = [
    pytest.mark.release,
    pytest.mark.filterwarnings("default"),  # of ArviZ, about its dependencies and about short chains
]
DOCS = Path(bg.__file__).parents[1] / "docs" / "ecosystem.md"
MIXED = azp.__version__.startswith("0.") and tuple(map(int, xr.__version__.split(".")[:2])) >= (2026, 4)


@pytest.mark.parametrize("kind", functions.KINDS)
@pytest.mark.parametrize("name", sorted(functions.STATS))
def test_statistics(name, kind):
    if kind in functions.kinds_of(name) and hasattr(azs, name):
        assert functions.STATS[name](functions.case(kind)) is not None


@pytest.mark.skipif(MIXED, reason="arviz-plots 0.8 needs xarray < 2026.4; see pyproject.toml")
@pytest.mark.parametrize("kind", functions.KINDS)
@pytest.mark.parametrize("name", sorted(functions.PLOTS))
def test_plots(name, kind):
    if kind in functions.kinds_of(name) and hasattr(azp, name):
        functions.PLOTS[name](functions.case(kind))
        matplotlib.pyplot.close("all")


def test_no_function_is_forgotten():
    """A function that a new release of ArviZ brings fails here until it is called, or there is a reason."""
    known = {*functions.STATS, *functions.PLOTS, *functions.LEFT_OUT}
    assert not functions.public(azs) - known
    assert not functions.public(azp) - known
    for name, (kinds, reason) in functions.LEFT_OUT.items():
        assert reason and (bool(kinds) == (name in functions.STATS or name in functions.PLOTS)), name


def test_the_table_of_the_documentation():
    """`python tests/arviz_functions.py` writes it anew."""
    if not DOCS.exists():
        pytest.skip("an installed package has no documentation")
    assert functions.table() in DOCS.read_text()
