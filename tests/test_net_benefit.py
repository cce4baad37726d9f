"""Net benefit: by hand, with its band, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

import bayesgen as bg
from bayesgen.evaluation import net_benefit

LOSS = pd.DataFrame({"treat": [4.0, 1.0, 0.0], "wait": [0.0, 3.0, 5.0]}, index=["well", "mild", "bad"])


def simulated(n, rng, kind="even"):
    p = {"even": lambda: rng.beta(1, 2, n), "sharp": lambda: rng.beta(0.2, 0.2, n)}[kind]()
    return (rng.random(n) < p) * 1, np.clip(p + (0.1 if kind == "even" else 0.02) * rng.normal(size=n), 0.001, 0.999)


def by_definition(y, p, t):
    """Return the net benefit at one threshold from counts of true and false positives."""
    found, alarms = sum((p >= t) & (y == 1)), sum((p >= t) & (y == 0))
    return found / len(y) - alarms / len(y) * (t / (1 - t))


def test_it_is_that_of_a_table_by_hand():
    y, p = ["well"] * 6 + ["ill"] * 4, [0.1, 0.1, 0.2, 0.2, 0.6, 0.7, 0.2, 0.5, 0.8, 0.9]
    found = net_benefit(y, np.column_stack([p, 1 - np.array(p)]), [0.2, 0.5], positive="ill")
    assert np.allclose(found.model, [(4 - 4 / 4) / 10, (3 - 2) / 10], atol=1e-12)
    assert np.allclose(found.single["all"], [(4 - 6 / 4) / 10, (4 - 6) / 10], atol=1e-12) and found.few.all()
    assert not found.single["none"].any()
    assert found.sentence(0.5) == (
        "In 100 rows, at a threshold probability of 'ill' of 0.5, acting on the model gives 10.0 (cases found, net of "
        "false alarms; too few rows are treated differently to say how sure this is), 'none' for all 0.0, 'all' for "
        "all -20.0."
    )
    doubled = net_benefit([*y, *y[:3]], [*(1 - np.array(p)), *(1 - np.array(p[:3]))], 0.3, positive="well")
    weighted = net_benefit(y, 1 - np.array(p), 0.3, positive="well", weights=[2, 2, 2, 1, 1, 1, 1, 1, 1, 1])
    assert np.allclose(doubled.model, weighted.model, atol=1e-12)


def test_it_is_that_of_the_counts_at_every_threshold():
    y, p = simulated(300, np.random.default_rng(1))
    p = p.round(2)  # so that some stand at a threshold
    found = net_benefit(y, p)
    expected = [by_definition(y, p, t) for t in found.thresholds]
    assert np.allclose(found.model, expected, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_it_is_that_of_dcurves():
    dcurves = pytest.importorskip("dcurves")
    y, p = simulated(500, np.random.default_rng(2))
    found = net_benefit(y, p)
    table = dcurves.dca(data=pd.DataFrame({"y": y, "p": p}), outcome="y", modelnames=["p"], thresholds=found.thresholds)
    curves = table.pivot(index="threshold", columns="model", values="net_benefit")
    assert np.allclose(curves["p"], found.model, rtol=0, atol=1e-12)
    assert np.allclose(curves["all"], found.single["all"], rtol=0, atol=1e-12)


def test_losses_of_two_classes_say_the_same():
    y, p = simulated(400, np.random.default_rng(3))
    odds = np.array([0.25, 1.0])
    ratio = 1 / odds  # cost of a case overlooked where a false alarm costs 1
    found = net_benefit(y, p, ratio, loss=[[0, 1], [1, 0]], vary=(1, 0))
    curve = net_benefit(y, p, odds / (1 + odds))
    saved = (curve.model - np.maximum(curve.single["all"], 0)) * ratio
    assert np.allclose(found.model, saved, atol=1e-12) and np.allclose(found.best, curve.best, atol=0.02)


def test_any_losses_are_those_of_the_decisions():
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], 200)
    y = np.array(LOSS.index)[(p.cumsum(1) < rng.random((200, 1))).sum(1)]
    found = net_benefit(y, p, [2, 5, 9], loss=LOSS, vary=("bad", "wait"), labels=LOSS.index)
    for t, cost in enumerate([2, 5, 9]):
        loss = LOSS.copy()
        loss.loc["bad", "wait"] = cost
        taken = bg.evaluation.realised_loss(y, p, loss, labels=list(LOSS.index))
        alone = {action: loss.loc[y, action].mean() for action in loss}
        assert np.isclose(found.model[t], min(alone.values()) - taken, atol=1e-12)
        for action, mean in alone.items():
            assert np.isclose(found.single[action][t], min(alone.values()) - mean, atol=1e-12)
    assert (found.lower < found.model).all() and (found.model < found.upper).all() and not found.few.any()
    assert "at a cost of 'wait' where 'bad' is true of 5, acting on the model gives" in found.sentence(4.5)
    assert "beats both 'treat' and 'wait' is" in found.sentence(5)


def test_one_fitted_model_has_the_band_of_its_draws():
    X = bg.data.load("penguins")[["bill_length_mm", "sex"]][:240]
    y = bg.data.load("penguins")["species"][:240]
    keep = y != "Chinstrap"
    classifier = bg.NaiveBayesClassifier(random_state=0).fit(X[keep][::8], y[keep][::8])
    draws, p = classifier.predict_proba_draws(X, 200), classifier.predict_proba(X)
    found = net_benefit(draws, p, [0.3], labels=classifier.classes_)
    acted, odds = p[:, 1] >= 0.3, 0.3 / 0.7
    by_draw = [(acted * (q[:, 1] - (1 - q[:, 1]) * odds)).mean() for q in draws]
    everyone = [(q[:, 1] - (1 - q[:, 1]) * odds).mean() for q in draws]
    assert np.isclose(found.model[0], np.mean(by_draw), atol=1e-12) and not found.few.any()
    assert np.allclose([found.lower[0], found.upper[0]], np.quantile(by_draw, [0.05, 0.95]), atol=1e-12)
    assert found.best[0] == np.mean(np.array(by_draw) > np.maximum(everyone, 0))


def coverage(tables, n, kind, groups=1, at=(0.15, 0.3, 0.5, 0.9)):
    """Return how often the band holds the truth at each threshold, where at least nine of ten tables have one."""
    rng, at = np.random.default_rng(0), np.array(at)
    y, p = simulated(1_000_000, rng, kind)
    truth = [by_definition(y, p, t) for t in at]
    held = np.full((tables, len(at)), np.nan)
    for row in held:
        y, p = (np.repeat(v, groups) for v in simulated(n, rng, kind))
        found = net_benefit(y, p, at, groups=np.arange(len(y)) // groups)
        row[~found.few] = ((found.lower <= truth) & (truth <= found.upper))[~found.few]
    return np.nanmean(held[:, np.isfinite(held).mean(0) > 0.9], axis=0)


@pytest.mark.parametrize("groups", [1, pytest.param(5, marks=pytest.mark.compiles)])
def test_the_band_holds_the_truth_in_nine_of_ten_cases(groups):
    assert np.abs(coverage(100, 150, "even", groups, (0.15, 0.3, 0.5)) - 0.9).max() < 0.11  # 3.5 standard errors


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "n"), [("even", 150), ("even", 1000), ("sharp", 150), ("sharp", 1000)])
def test_its_coverage_is_within_three_points(kind, n):
    held = coverage(1500, n, kind)
    assert len(held) >= 3 and np.abs(held - 0.9).max() < 0.03  # a standard error is 0.8 points


def test_groups_are_counted_where_rows_are_few():
    y, p = simulated(400, np.random.default_rng(5))
    assert not net_benefit(y, p, [0.3]).few.any()
    assert net_benefit(y, p, [0.3], groups=np.arange(400) // 40).few.all()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [0.2, 0.7]), {"positive": "ill"}, "positive must be one of the classes"),
        (([0, 1], [0.2, 0.7], [0.0]), {}, "thresholds must be probabilities"),
        (([0, 1], [0.2, 0.7], []), {}, "thresholds must be probabilities"),
        (([0, 1, 2], np.eye(3)), {}, "positive must name"),
        ((np.full((3, 2, 3), 1 / 3), [0.2, 0.7]), {}, "y must hold draws of all 2 class probabilities of the 2 rows"),
        (([0, 1], [0.2, 0.7], [1]), {"loss": [[0, 1], [1, 0]]}, "vary names a class and an action"),
        (([0, 1], [0.2, 0.7], [1]), {"loss": [[0, 1], [1, 0]], "vary": (1, 2)}, "vary must name a class of"),
    ],
)
def test_bad_input_is_refused(arguments, options, message):
    refuses(lambda: net_benefit(*arguments, **options), message)
