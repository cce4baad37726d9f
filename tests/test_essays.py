"""The essays, pictures that move, compute what the Python classes do."""

import json

import numpy as np
import pytest
from py_mini_racer import MiniRacer
from scipy import stats

import bayesgen as bg
from bayesgen.models import BetaBernoulli
from docs import essays


@pytest.fixture(scope="module")
def ask():
    """Ask for an expression of JavaScript, with values by name."""
    with MiniRacer() as engine:
        engine.eval(essays.script())

        def ask(expression, **values):
            given = "".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
            return json.loads(engine.eval(f"(() => {{{given} return JSON.stringify({expression})}})()"))

        yield ask


@pytest.mark.parametrize("path", essays.PAGES, ids=lambda path: path.stem)
def test_a_page_is_one_small_file_with_what_it_shares_as_it_is_now(path):
    page = path.read_text(encoding="utf-8")
    assert page == essays.written(page), "write it again: python docs/essays.py"
    assert len(page.encode()) <= 300_000
    assert "src=" not in page.split("<script>")[0]  # it loads nothing
    assert page.count("<li>") >= 3


# -- the coin --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [(2, 2), (1, 1), (0.5, 0.5), (1, 3), (7.3, 0.2)])
@pytest.mark.parametrize("tosses", [(2, 0), (55, 45), (0, 0), (0, 1), (3, 100)])
def test_the_three_answers_are_those_of_the_class(ask, prior, tosses):
    found = ask("coin.answers({a, b}, heads, tails)", a=prior[0], b=prior[1], heads=tosses[0], tails=tosses[1])
    rows = np.repeat([1, 0], tosses)
    for name, way in {"ml": "ml", "map": "map", "predictive": "exact"}.items():
        try:
            expected = np.exp(bg.fit(BetaBernoulli(*prior), rows, way).log_predictive([1]))[0]
        except ValueError:
            assert found[name] is None
        else:
            if found[name] is None:  # a flat density is highest everywhere, and Python takes its middle
                assert (name, prior, tosses) == ("map", (1, 1), (0, 0))
            else:
                assert found[name][0] / found[name][1] == pytest.approx(expected, abs=1e-10)


def test_the_table_of_the_slide(ask):
    few, many = (ask("coin.answers({a: 2, b: 2}, ...tosses)", tosses=tosses) for tosses in ((2, 0), (55, 45)))
    assert few == {"ml": [2, 2], "map": [3, 4], "predictive": [4, 6]}
    assert many == {"ml": [55, 100], "map": [56, 102], "predictive": [57, 104]}


@pytest.mark.parametrize("beta", [(2, 2), (4, 2), (0.1, 120), (0.5, 1.5), (57, 47), (120, 120), (20.1, 0.1)])
def test_density_and_interval_are_those_of_scipy(ask, beta):
    theta = [1e-4, 0.02, 0.3, 0.55, 0.999]
    density = ask("theta.map((t) => coin.logDensity({a, b}, t))", a=beta[0], b=beta[1], theta=theta)
    assert density == pytest.approx(stats.beta.logpdf(theta, *beta), abs=1e-10, rel=1e-12)
    ends = ask("[0.05, 0.5, 0.95].map((share) => coin.quantile({a, b}, share))", a=beta[0], b=beta[1])
    below = ask("theta.map((t) => coin.distribution({a, b}, t))", a=beta[0], b=beta[1], theta=theta)
    assert below == pytest.approx(stats.beta.cdf(theta, *beta), abs=1e-12)
    assert ends == pytest.approx(stats.beta.ppf([0.05, 0.5, 0.95], *beta), abs=1e-10)
