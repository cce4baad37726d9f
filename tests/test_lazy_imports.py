"""ArviZ announces JAX and NumPyro as modules that load late: whatever of ours looks at them first, they are whole."""

import subprocess
import sys

import pytest

FIRST = {
    "to_arviz with rows": "bg.fit(GAUSSIAN, [1.0, 2.0, 3.0], 'exact').to_arviz(0, [1.0, 2.0, 3.0])",
    "predictive": "GAUSSIAN.predictive()",
    "columns": "CLASSIFIER.to_arviz(X, y, columns=True)",
    "sample": "CLASSIFIER.sample(3)",
    "NUTS": "",
}
PROGRAM = """
import arviz_base
import bayesgen as bg
X, y = [[0.0], [1.0], [2.0], [4.0]], [0, 0, 1, 1]
GAUSSIAN = bg.models.NormalInverseGamma(0.0, 1.0, 2.0, 2.0)
CLASSIFIER = bg.NaiveBayesClassifier().fit(X, y)
{first}
bg.fit(bg.models.BetaBernoulli(1.0, 1.0), [1, 0, 1], bg.NUTS(5, 5, 1))
import sys, numpyro
assert numpyro.distributions is sys.modules["numpyro.distributions"]
"""


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(own, id=name, marks=[] if name == "to_arviz with rows" else pytest.mark.slow)  # a process for each
        for name, own in FIRST.items()
    ],
)
def test_numpyro_is_whole_after_whatever_comes_first(first):
    code = PROGRAM.format(first=first)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
