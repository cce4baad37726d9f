"""The callbacks of scikit-learn 1.9 and newer, on the averaged classifier."""

import contextlib
import io
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV

from bayesgen import AveragedClassifier
from bayesgen.averaging import learning
from bayesgen.estimators import callbacks

pytestmark = pytest.mark.compiles  # an engine; users meet it in the tests of the classifiers

callback = pytest.importorskip("sklearn.callback")

X, Y = load_iris(return_X_y=True)
X, Y = X[::2], Y[::2]
SMALL = AveragedClassifier(members=["gaussian", "softmax"])


class Told:
    """A callback that keeps what it is told, and has the propagation of scikit-learn's bar."""

    max_propagation_depth = None

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        given = None if X is None else (X.shape, y.shape, metadata and list(metadata))
        self.events.append(("begin", context.task_name, context.max_subtasks, given))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        able = fitted_estimator is not None and fitted_estimator.predict(X).shape
        self.events.append(("end", context.task_name, able))


def test_callbacks_are_told_of_every_stage_and_of_the_fit():
    told, stages = Told(), ["sums of all rows", "members 'softmax'"]
    stages += [*(f"fold {j} of 10" for j in range(1, 11)), "exponents and weights"]
    classifier = clone(SMALL).set_callbacks(told).fit(X, Y, np.ones(75))
    each = [event for text in stages for event in (("begin", text, 0, None), ("end", text, False))]
    whole = ("begin", "fit", 13, ((75, 4), (75,), ["sample_weight"])), ("end", "fit", (75,))
    assert told.events == ["setup", whole[0], *each, whole[1], "teardown"]
    np.testing.assert_array_equal(classifier.predict_proba(X), clone(SMALL).fit(X, Y, np.ones(75)).predict_proba(X))
    assert not [name for name in vars(classifier) if "ctx" in name]
    classifier.set_callbacks().fit(X, Y)
    assert told.events[-1] == "teardown" and told.events.count("setup") == 1
    assert pickle.loads(pickle.dumps(classifier)).predict(X[:1]) == Y[0]


def test_a_fit_that_fails_tears_down_and_leaves_the_fit_before(monkeypatch):
    told = Told()
    classifier = clone(SMALL).fit(X, Y)
    before = classifier.predict_proba(X)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(learning, "weigh", fail)
    with pytest.raises(MemoryError):
        classifier.set_callbacks(told).fit(X[::2], Y[::2])
    assert told.events[-2:] == [("begin", "exponents and weights", 0, None), "teardown"]
    np.testing.assert_array_equal(classifier.predict_proba(X), before)
    told.events.clear()
    with pytest.raises(ValueError, match="missing labels"):  # refused before the first stage
        classifier.fit(X, np.full(75, np.nan))
    assert told.events == ["setup", "teardown"]


def test_without_callbacks_in_scikit_learn_there_is_nothing_to_set(monkeypatch):
    assert hasattr(SMALL, "set_callbacks")
    monkeypatch.setattr(callbacks, "find_spec", lambda name: None)
    assert not hasattr(SMALL, "set_callbacks")
    clone(SMALL).fit(X, Y)


def test_a_monitor_scores_alone_and_in_a_search():
    monitor = callback.ScoringMonitor(scoring="neg_log_loss")
    classifier = clone(SMALL).set_callbacks(monitor).fit(X, Y)
    (row,) = monitor.get_logs().data
    np.testing.assert_allclose(row["neg_log_loss"], -log_loss(Y, classifier.predict_proba(X)))
    search = GridSearchCV(classifier, {"bend": [True, False]}, cv=2, scoring="neg_log_loss").fit(X, Y)
    logs = monitor.get_logs("all")
    assert [len(log.data) for log in logs] == [1, 5] and logs[1].estimator_name == "GridSearchCV"
    refit = min(logs[1].data, key=lambda row: len(row["task_id_path"]))  # the others stand a level deeper: the splits
    np.testing.assert_allclose(refit["neg_log_loss"], search.score(X, Y))


def test_the_bar_of_scikit_learn_counts_the_stages_alone_and_in_a_search():
    pytest.importorskip("rich")
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        clone(SMALL).set_callbacks(callback.ProgressBar()).fit(X, Y)
        search = GridSearchCV(clone(SMALL), {"bend": [True, False]}, cv=2).set_callbacks(callback.ProgressBar())
        search.fit(X, Y)
    alone, searched = shown.getvalue().split("GridSearchCV - fit", 1)
    assert "AveragedClassifier - fit" in alone and alone.count("100%") == 1
    assert "AveragedClassifier - fit" in searched and "0%" not in searched.replace("100%", "")
