"""Net benefit: by hand, with its band, and what is refused."""

import numpy as np
import pytest

from bayesgen.evaluation import net_benefit


def simulated(n, rng):
    p = rng.beta(1, 2, n)
    return (rng.random(n) < p) * 1, np.clip(p + 0.1 * rng.normal(size=n), 0.001, 0.999)


def test_it_is_that_of_a_table_by_hand():
    y, p = ["well"] * 6 + ["ill"] * 4, [0.1, 0.1, 0.2, 0.2, 0.6, 0.7, 0.2, 0.5, 0.8, 0.9]
    found = net_benefit(y, np.column_stack([p, 1 - np.array(p)]), [0.2, 0.5], positive="ill")
    assert np.allclose(found.model, [(4 - 4 / 4) / 10, (3 - 2) / 10], atol=1e-12)
    assert np.allclose(found.treat_all, [(4 - 6 / 4) / 10, (4 - 6) / 10], atol=1e-12) and found.few.all()
    doubled = net_benefit([*y, *y[:3]], [*(1 - np.array(p)), *(1 - np.array(p[:3]))], 0.3, positive="well")
    weighted = net_benefit(y, 1 - np.array(p), 0.3, positive="well", weights=[2, 2, 2, 1, 1, 1, 1, 1, 1, 1])
    assert np.allclose(doubled.model, weighted.model, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 5])
def test_the_band_holds_the_truth_in_nine_of_ten_cases(groups):
    rng, held = np.random.default_rng(0), []
    y, p = simulated(400_000, rng)
    at = np.array([0.15, 0.3, 0.5])
    truth = (((p[:, None] >= at) * np.where(y[:, None], 1, -at / (1 - at))).mean(0))[None]
    for _ in range(300):
        y, p = (np.repeat(v, groups) for v in simulated(200, rng))
        found = net_benefit(y, p, at, groups=np.arange(len(y)) // groups)
        assert not found.few.any()
        held.append((found.lower <= truth[0]) & (truth[0] <= found.upper))
    assert np.abs(np.mean(held, 0) - 0.9).max() < 0.06  # 3.5 standard errors of 300 tables


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="positive must be one of the classes"):
        net_benefit([0, 1], [0.2, 0.7], positive="ill")
    with pytest.raises(ValueError, match="thresholds must be probabilities"):
        net_benefit([0, 1], [0.2, 0.7], [0.0])
    with pytest.raises(ValueError, match="positive must name"):
        net_benefit([0, 1, 2], np.eye(3))
