"""The page "A leaf in your own program": ten analyses, each against the number that was published."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import bayesgen as bg

PAGE = Path(bg.__file__).parents[1] / "docs" / "howto" / "leaf-in-a-program.md"
PUBLISHED = {  # name on the page: (numbers, half of their last digit, or the error that the source states)
    "laplace": (1.15e-42, 0.005e-42),  # girls born in Paris: Gelman et al. 2013, section 2.4
    "interval": ([0.415, 0.477], 0.0005),  # placenta previa: the same section
    "factor": (0.48, 0.005),  # the Euro: MacKay 2003, section 3.3
    "share": (0.44, 0.005),  # therapeutic touch: Rosa et al. 1998
    "rates": ([70 / 150, 53 / 130], 1e-4),  # its two series; a search in single precision
    "speed": ([23.6, 28.8], 0.06),  # Newcomb: Gelman et al. 2013, section 3.2; 28.85 is printed as 28.8
    "rat_means": ([2.403, 14.319], 0.02),  # a coarser grid than the one printed
    "school_means": ([4.41, 3.58], 0.05),  # 10,000 draws of posteriordb, with their Monte Carlo error
    "bills": ([38.8, 48.8, 47.5], 0.05),  # Horst, Hill and Gorman 2020
    "shares": ([0.40, 0.42, 0.11, 0.07], 0.005),  # Dawid and Skene 1979, table 3
}


@pytest.fixture(scope="module")
def page():
    """The names that the page's code defines."""
    if not PAGE.exists():
        pytest.skip("an installed package has no documentation")
    cells = re.findall(r"```\{code-cell\}\n(?::.*\n)*(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile("\n".join(cells), str(PAGE), "exec"), names)  # our own page
    return names


@pytest.mark.compiles
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_number(page, name):
    number, error = PUBLISHED[name]
    np.testing.assert_allclose(page[name], number, rtol=0, atol=error)


@pytest.mark.compiles
def test_the_kicks_of_horses(page):
    """Fisher's mean of 0.61; the reference prior adds half a death to 122 in 200 years."""
    rate = page["rate"]
    np.testing.assert_allclose(rate.concentration / rate.rate, 0.61, atol=0.005)


@pytest.mark.compiles
def test_the_drift_is_found_beside_the_classes(page):
    """The first cell: an instrument that drifts by 0.5, by least squares of rows less the means of their classes."""
    x, t, time = page["x"], page["t"], page["time"]
    seen = np.argwhere(~np.isnan(x))
    columns = np.zeros((len(seen), 7))
    for row, (i, j) in enumerate(seen):
        columns[row, 2 * t[i] + j], columns[row, 6] = 1.0, time[i]
    slope = np.linalg.lstsq(columns, x[tuple(seen.T)])[0][6]
    found = bg.fit(page["drifting"], (x, t, time), "map").params["drift"]
    assert (
        abs(found - slope) < 0.11
    )  # its standard error: the prior of the means, worth a tenth of a row, moves it less
