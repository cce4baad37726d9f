"""TabArena's protocol: its folds and tables, and, where TabArena is installed, our classifier under its runner."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

tabarena = pytest.importorskip("benchmarks.tabarena")  # a source distribution has the tests alone
quality = pytest.importorskip("benchmarks.quality")
needed = pytest.mark.skipif(find_spec("tabarena") is None, reason="needs TabArena: bash benchmarks/tabarena.sh")


def rows():
    """Numbers, a category of three values, one of two and gaps; the first two columns tell the classes apart."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [50, 40, 30])
    X = pd.DataFrame({"number": rng.normal(2.0 * y), "level": pd.Categorical(np.array(["a", "b", "c"])[y])})
    X["pair"] = pd.Categorical(rng.choice(["yes", "no"], len(y)))
    return X.mask(rng.random(X.shape) < 0.1), y


def test_each_repeat_has_every_row_in_one_fold_and_the_classes_in_their_shares():
    y = rows()[1]
    places = tabarena.splits(y, 2)
    for repeat in (0, 1):
        assert sorted(row for fold in range(3) for row in places[repeat][fold][1]) == list(range(len(y)))
        for fit, test in places[repeat].values():
            assert not set(fit) & set(test) and np.abs(np.bincount(y[test]) - [50 / 3, 40 / 3, 10]).max() < 1
    assert places[0] != places[1] and places == tabarena.splits(y, 2)


def test_errors_are_those_of_splits_that_all_have():
    ours, other = f"{tabarena.OURS}, once", "LightGBM, bagged"
    errors = {ours: [0.1, 0.2, 0.3], other: [0.2, 0.1]}
    frame = pd.DataFrame(
        {"data": "pima", "repeat": "0", "fold": fold, "model": model, "metric": "roc_auc", "error": error}
        for model, found in errors.items()
        for fold, error in enumerate(found)
    ).assign(fit_seconds=2.0)
    table = tabarena.compared(frame).set_index("model")
    assert table.loc[ours, ["error", "splits", "measure"]].tolist() == ["0.1500", 2, "1 - AUC"]
    assert table.loc[other, "ours, once, less it (splits ahead)"] == "+0.0000 (1)"
    page = tabarena.page(frame)
    assert "diabetes" in page and "RealTabPFN" in page and "splice" not in page


def test_only_published_figures_of_its_tasks_are_quoted():
    theirs = tabarena.published(set(tabarena.TASKS))
    assert set(theirs["task"]) == set(tabarena.TASKS.values()) and theirs.notna().all(axis=None)


@pytest.mark.compiles
def test_without_tabarena_it_says_how_to_get_it(tmp_path):
    blocked = "import sys, importlib.util as u; find = u.find_spec; "
    blocked += "u.find_spec = lambda name, *rest: None if name == 'tabarena' else find(name, *rest); "
    code = blocked + "from benchmarks.tabarena import main; assert 'tabarena' not in sys.modules; main()"
    kept = tmp_path / "kept.csv"
    run = subprocess.run([sys.executable, "-c", code, "--kept", kept], capture_output=True, text=True)
    assert run.returncode == 2 and "bash benchmarks/tabarena.sh" in run.stderr and not kept.exists()


@needed
@pytest.mark.filterwarnings("ignore")  # of packages of others
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("how", ["once", "bagged"])
def test_the_runner_of_tabarena_fits_and_scores_ours(classes, how, monkeypatch):
    from tabarena.benchmark.experiment.experiment_runner import ExperimentRunner

    monkeypatch.setattr(ExperimentRunner, "convert_to_output", lambda runner, out: out)  # it would drop probabilities
    X, y = rows()
    X, y = X[y < classes].drop(columns="level" if classes == 2 else []), y[y < classes]
    own = tabarena.task("made up", X, y, repeats=1)
    found = tabarena.one(f"{tabarena.OURS}, {how}", own, repeat=0, fold=1)
    probability = found["probabilities"]
    assert sorted(probability.index) == sorted(tabarena.splits(y, 1)[0][1][1])
    score = quality.score(y[probability.index], probability.to_numpy())
    assert found["metric"] == ("roc_auc" if classes == 2 else "log_loss")
    assert found["metric_error"] == pytest.approx(score["auc_error" if classes == 2 else "log_loss"], rel=1e-5)
    assert found["metric_error"] < 0.4


@needed
@pytest.mark.filterwarnings("ignore")
def test_the_model_of_autogluon_gives_the_probabilities_of_the_classifier():
    from bayesgen import AveragedClassifier
    from benchmarks.tabarena_model import AveragedModel

    X, y = rows()
    model = AveragedModel(path="", name="ours", problem_type="multiclass", hyperparameters={"members": "generative"})
    model.fit(X=X, y=pd.Series(y))
    ours = AveragedClassifier(members="generative").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), ours.predict_proba(X), rtol=1e-6)
