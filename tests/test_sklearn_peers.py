"""scikit-learn's own tests of its naive Bayes and discriminant analysis, on ours; see `sklearn_peers`."""

from pathlib import Path

import pytest
import sklearn
import sklearn_peers as peers

import bayesgen as bg

DOCS = Path(bg.__file__).parents[1] / "docs" / "ecosystem.md"
pytestmark = [
    pytest.mark.release,
    pytest.mark.skipif(not sklearn.__version__.startswith("1.9"), reason="the list is that of scikit-learn 1.9"),
]
ITEMS = [
    pytest.param(item, id=item.name, marks=pytest.mark.slow if item.name.startswith(peers.LONG) else ())
    for module in peers.OURS
    for item in peers.items(module)
]


@pytest.mark.parametrize("item", ITEMS)
def test_of_scikit_learn(item):
    """It passes, or fails for the reason that is listed: one that passes after all is to be taken off the list."""
    if peers.difference(item) is None:
        item.run()
        return
    with pytest.raises((Exception, pytest.fail.Exception)):
        item.run()


def test_the_list_is_of_tests_that_are_there():
    names = {name for param in ITEMS for name in (param.id, param.id.partition("[")[0])}
    assert not peers.DIFFERENCES.keys() - names


def test_the_table_of_the_documentation():
    """`python tests/sklearn_peers.py` writes it anew."""
    if not DOCS.exists():
        pytest.skip("an installed package has no documentation")
    assert peers.table() in DOCS.read_text()
