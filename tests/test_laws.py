"""Every law over every model of the table."""

import laws
import pytest

PAIRS = [
    pytest.param(case, law, id=f"{case.name}-{law.__name__}", marks=pytest.mark.slow if law in case.slow else ())
    for case in laws.CASES
    for law in laws.LAWS
    if law not in case.without
]


@pytest.mark.parametrize(("case", "law"), PAIRS)
def test_law(case, law):
    law(case)
