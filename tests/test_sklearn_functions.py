"""Every tool of scikit-learn on every kind of estimator; see `sklearn_functions`."""

from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import sklearn_functions as functions
from sklearn.base import clone

import bayesgen as bg

plt.switch_backend("Agg")
DOCS = Path(bg.__file__).parents[1] / "docs" / "ecosystem.md"
pytestmark = pytest.mark.release


AT_ONCE = ("make_pipeline, set_output", "VotingClassifier")  # on the averaged classifier; all is half a minute
PAIRS = [
    pytest.param(name, kind, marks=pytest.mark.slow if kind == "averaged" and name not in AT_ONCE else ())
    for name in functions.TOOLS
    for kind in functions.kinds_of(name)
]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
@pytest.mark.filterwarnings("ignore:.*Early stopping criterion not reached")
@pytest.mark.filterwarnings("ignore:no member predicts rows left out better")  # of labels permuted
def test_tools(name, kind):
    functions.TOOLS[name](kind, clone(functions.KINDS[kind]), *functions.data(kind))
    plt.close("all")


def test_what_is_left_out_is_there():
    assert functions.LEFT_OUT.keys() <= functions.TOOLS.keys()
    assert all(kinds and reason for kinds, reason in functions.LEFT_OUT.values())


def test_the_table_of_the_documentation():
    """`python tests/sklearn_functions.py` writes it anew."""
    if not DOCS.exists():
        pytest.skip("an installed package has no documentation")
    assert functions.table() in DOCS.read_text()
