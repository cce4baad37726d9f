"""Pairs of columns that stay dependent within classes, where gaps depend on what other columns hold.

``python tests/test_bivariate_gaps.py`` writes docs/reliability/bivariate-residuals.csv, some minutes; the tests do few.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.inspection import bivariate_residuals

TABLE = Path(__file__).parents[1] / "docs" / "reliability" / "bivariate-residuals.csv"
GAPS = ("none", "at random", "by another column")


def p_of(seed: int, gaps: str, copied: float) -> float:
    """Return p of A and C in a table of two classes, a share of whose answers C are those of A."""
    rng = np.random.default_rng(seed)
    t = rng.random(300) < 0.5
    X = pd.DataFrame(np.where(rng.random((300, 5)) < np.where(t, 0.8, 0.25)[:, None], "yes", "no"), columns=[*"ABCDE"])
    X["z"] = rng.normal(2.0 * t)
    X["C"] = np.where(rng.random(300) < copied, X["A"], X["C"])
    if gaps != "none":
        X.loc[(rng.random(300) < 0.35) if gaps == "at random" else (X.A == "yes") & (rng.random(300) < 0.7), "C"] = None
        X.loc[(rng.random(300) < 0.2) if gaps == "at random" else (X.B == "no") & (rng.random(300) < 0.4), "z"] = np.nan
    fitted = bg.LatentClassClassifier(classes=2, starts=5, random_state=0).fit(X)
    return bivariate_residuals(fitted, tables=19, seed=seed)["p"]["A", "C"]


def test_gaps_that_depend_on_an_answer_are_no_dependence_and_hide_none():
    assert min(p_of(seed, GAPS[2], 0.0) for seed in range(2)) > 0.05
    assert p_of(0, GAPS[2], 0.5) == 0.05


@pytest.mark.slow
@pytest.mark.parametrize("gaps", GAPS)
def test_p_below_a_twentieth_is_as_rare_as_said(gaps):
    """16 of 200 is 8 %; a planted dependence is found in 90 %."""
    assert sum(p_of(seed, gaps, 0.0) <= 0.05 for seed in range(200)) <= 16
    assert sum(p_of(seed, gaps, 0.5) <= 0.05 for seed in range(50)) >= 45


def main(wanted):
    """Write the lines of the kinds of gaps that are wanted, or all."""
    lines = {line["gaps"]: line for line in (pd.read_csv(TABLE).to_dict("records") if TABLE.exists() else [])}
    for gaps in wanted or GAPS:
        alarms, found = (sum(p_of(s, gaps, c) <= 0.05 for s in range(n)) for c, n in ((0.0, 200), (0.5, 50)))
        lines[gaps] = {"gaps": gaps, "independent": 200, "p <= .05": alarms, "dependent": 50, "found": found}
        pd.DataFrame(lines.values()).to_csv(TABLE, index=False)


if __name__ == "__main__":
    main(sys.argv[1:])
