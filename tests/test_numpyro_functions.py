"""Every tool of NumPyro on every kind of model; see `numpyro_functions`. All of it: `-m release`, some minutes."""

import importlib.util
from pathlib import Path

import numpyro_functions as functions
import pytest
from numpyro import infer
from numpyro.infer import autoguide

import bayesgen as bg

DOCS = Path(bg.__file__).parents[1] / "docs" / "ecosystem.md"
pytestmark = pytest.mark.release
PAIRS = [  # all but the handlers on a leaf compile for seconds
    pytest.param(name, kind, marks=() if name in functions.HANDLERS and kind == "leaf" else pytest.mark.slow)
    for name in functions.TOOLS
    for kind in functions.kinds_of(name)
]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
@pytest.mark.filterwarnings("ignore:.*(chain|ensemble|acceptance).*")
def test_tools(name, kind):
    if name in functions.OUTSIDE and not importlib.util.find_spec(name):
        pytest.skip(f"{name} is not installed")
    functions.TOOLS[name](functions.CASES[kind])


def test_no_tool_is_forgotten():
    """A tool that a new release of NumPyro brings fails here until it is used, or there is a reason."""
    told = " ".join((*functions.TOOLS, *functions.LEFT_OUT, "AutoContinuous AutoGuide AutoRVRS"))  # bases of guides
    samplers = [n for n in infer.__all__ if isinstance(getattr(infer, n), type) and issubclass(
        getattr(infer, n), infer.mcmc.MCMCKernel)]  # fmt: skip
    assert not [name for name in (*samplers, *autoguide.__all__) if name not in told]


def test_the_table_of_the_documentation():
    """`python tests/numpyro_functions.py` writes it anew."""
    if not DOCS.exists():
        pytest.skip("an installed package has no documentation")
    assert functions.table() in DOCS.read_text()
