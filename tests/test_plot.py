import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from bayesgen import evaluation, plot


def simulate(n=300):
    rng = np.random.default_rng(0)
    probability = rng.dirichlet([0.4, 0.4, 0.4], n)
    truth = (probability.cumsum(1) < rng.random((n, 1))).sum(1).clip(max=2)
    return truth, probability


def axes():
    return Figure().subplots()


def test_reliability_shows_what_the_calibration_error_measures():
    truth, probability = simulate()
    ax = plot.reliability(truth, probability, bins=5, ax=axes())
    p, frequency = ax.lines[1].get_data()
    count = np.array([float(text.get_text()) for text in ax.texts])
    assert count.sum() == len(truth)
    error = evaluation.expected_calibration_error(truth, probability, bins=5)
    assert (count * np.abs(p - frequency)).sum() / count.sum() == pytest.approx(error)
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_probabilities_are_those_of_the_true_class():
    truth, probability = simulate()
    reference = np.full_like(probability, 1 / 3)
    ax = plot.probabilities(truth, probability, reference, ax=axes())
    right, wrong = (np.asarray(points.get_offsets()) for points in ax.collections)
    hit = probability.argmax(1) == truth
    np.testing.assert_allclose(right[:, 1], probability[hit, truth[hit]])
    np.testing.assert_allclose(wrong[:, 1], probability[~hit, truth[~hit]])
    np.testing.assert_allclose(right[:, 0], 1 / 3)
    assert (ax.get_xscale(), ax.get_yscale()) == ("logit", "logit")


def test_probabilities_of_zero_and_one_lie_at_the_edge_and_ranks_stand_in_for_a_reference():
    ax = plot.probabilities([0, 0, 1], [[1, 0], [0, 1], [0.4, 0.6]], ax=axes())
    points = np.concatenate([c.get_offsets() for c in ax.collections])
    assert sorted(points[:, 0]) == pytest.approx([1 / 6, 1 / 2, 5 / 6])
    low, high = ax.get_ylim()
    assert ((low < points[:, 1]) & (points[:, 1] < high)).all()


def test_without_axes_a_figure_is_made():
    import matplotlib as mpl

    mpl.use("Agg")
    ax = plot.reliability(*simulate())
    assert ax.figure.axes == [ax]
    mpl.pyplot.close(ax.figure)


def test_importing_does_not_load_matplotlib():
    code = "import sys, bayesgen, bayesgen.plot, bayesgen.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
