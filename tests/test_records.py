"""What was fitted is a record: it answers every question as the estimator that holds it, and may be made by hand."""

from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import bayesgen as bg
from bayesgen import inspection
from bayesgen.inspection.data_tree import to_arviz
from bayesgen.inspection.explain import explain
from bayesgen.inspection.fitted import FittedDensity, FittedScores
from bayesgen.inspection.leave_one_out import leave_one_out
from bayesgen.inspection.members import FittedAverage
from bayesgen.inspection.one_model import FittedLatent, FittedModel
from bayesgen.inspection.probabilities import predict_proba_draws, predict_proba_interval
from bayesgen.inspection.summary import Summary
from bayesgen.models.leaf import Leaf

X = bg.data.load("penguins").drop(columns="year").sample(frac=1, random_state=0)[:80].reset_index(drop=True)
Y = X.pop("species")
NUMBERS = X.select_dtypes("number").dropna()
LABELS = Y[NUMBERS.index]

QUESTIONS = {  # of a generative classifier and of an average
    "predict_proba": lambda one, x, y: one.predict_proba(x),
    "score_samples": lambda one, x, y: one.score_samples(x),
    "sample": lambda one, x, y: one.sample(5)[1],
    "explain": lambda one, x, y: explain(one, x[:5]),
    "evidence of one row": lambda one, x, y: [*explain(one, x[:5], row=1).terms.values()],
    "draws": lambda one, x, y: predict_proba_draws(one, x[:5], size=20),
    "interval": lambda one, x, y: predict_proba_interval(one, x[:5], size=50),
    "impute": lambda one, x, y: inspection.impute(one, _gaps(x)).select_dtypes("number"),
    "next_measurement": lambda one, x, y: inspection.next_measurement(one, _gaps(x)).select_dtypes("number"),
    "typicality": lambda one, x, y: inspection.typicality(one, x[:4], draws=100).overall,
    "importance": lambda one, x, y: inspection.importance(one, x[:9], y[:9]),
    "class prior": lambda one, x, y: inspection.estimate_class_prior(one, x, draws=20).mean,
    "next_labels": lambda one, x, y: inspection.next_labels(one, x[:9], n=2, size=50).rows,
    "watch": lambda one, x, y: [part.name for part in inspection.Watch(one).parts],
    "export": lambda one, x, y: [bg.export.script(one).split("checksum")[0]],
}
OF_ONE_MODEL = {
    "leave_one_out": lambda one, x, y: leave_one_out(one, x, y).log_joint,
    "summary": lambda one, x, y: [str(Summary.of(one))],
    "to_arviz": lambda one, x, y: to_arviz(one, x[:9], y[:9], draws=20).log_likelihood["joint"],
    "log evidence": lambda one, x, y: one.log_evidence_,
}


PICTURES = {
    "decision_regions": lambda one: bg.plot.decision_regions(one, NUMBERS.iloc[:, :2], LABELS, steps=9),
    "column": lambda one: bg.plot.column(one, NUMBERS.columns[0]),
    "agreement": lambda one: bg.plot.agreement(one, NUMBERS, 20),
}


def _gaps(x):
    return x[:4].mask(np.eye(4, x.shape[1], dtype=bool))


def alike(answer, expected, rtol=0):
    if np.asarray(expected).dtype.kind in "fiu":
        np.testing.assert_allclose(np.asarray(answer, float), np.asarray(expected, float), rtol, rtol)
    else:
        assert np.asarray(answer).tolist() == np.asarray(expected).tolist()


MODEL = bg.NaiveBayesClassifier(random_state=0).fit(X, Y)


@pytest.mark.parametrize("name", [*QUESTIONS, *OF_ONE_MODEL])
def test_a_record_made_by_hand_answers_as_the_estimator(name):
    record = FittedModel(
        schema_=MODEL.schema_,
        feature_names_in_=MODEL.feature_names_in_,
        classes_=MODEL.classes_,
        model_=MODEL.model_,
        statistics_=MODEL.statistics_,
        posterior_=MODEL.posterior_,
        random_state=0,
        unseen="missing",
        estimator="NaiveBayesClassifier",
    )
    ask = (QUESTIONS | OF_ONE_MODEL)[name]
    alike(ask(record, X, Y), ask(MODEL, X, Y))


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_record_of_an_average_answers_as_the_estimator(name, average):
    ask = QUESTIONS[name]
    assert type(average.fitted_) is FittedAverage
    alike(ask(average.fitted_, X, Y), ask(average, X, Y))


@pytest.fixture(scope="module")
def average():
    return bg.AveragedClassifier(members=["gaussian", "category"]).fit(X, Y)


@pytest.mark.parametrize("name", ["predict_proba", "explain", "evidence of one row", "draws", "importance", "export"])
def test_the_record_of_scores_answers_as_the_estimator(name):
    ask, line = QUESTIONS[name], bg.LogisticClassifier(inference="map", missing="mean", random_state=0)
    line.fit(NUMBERS, LABELS)
    assert type(line.fitted_) is FittedScores
    alike(ask(line.fitted_, NUMBERS, LABELS), ask(line, NUMBERS, LABELS))


def test_the_record_of_classes_without_labels_answers_as_the_estimator():
    found = bg.LatentClassClassifier(classes=2, starts=2, random_state=0).fit(NUMBERS)
    record = found.fitted_
    assert type(record) is FittedLatent
    alike(record.free_, found.free_)
    alike(record.predict_proba(NUMBERS), found.predict_proba(NUMBERS))
    alike(Summary.of(record).to_frame(), Summary.of(found).to_frame())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Letter(FittedDensity):
    """A record that has what the docstrings ask of it, and nothing else."""

    inner: FittedModel

    def read(self, X):
        return self.inner.read(X)

    def terms(self, X):
        return self.inner.terms(X)

    def predict_proba(self, X, priors=None):
        return self.inner.predict_proba(X, priors)

    def joint(self):
        return self.inner.joint()

    def predict_joint_log_proba(self, X):
        return self.inner.predict_joint_log_proba(X)

    def draw(self, count, rng):
        return self.inner.draw(count, rng)


@pytest.mark.parametrize("name", [*QUESTIONS, *OF_ONE_MODEL])
def test_the_contract_kept_to_the_letter_answers_or_says_what_it_lacks(name):
    ask, inner = (QUESTIONS | OF_ONE_MODEL)[name], MODEL.fitted_
    fields = {key: getattr(inner, key) for key in ("schema_", "feature_names_in_", "classes_", "random_state")}
    record = Letter(**fields, inner=inner)
    if name in ("evidence of one row", "draws", "interval", "next_labels", "export", *OF_ONE_MODEL):
        with pytest.raises(AttributeError, match=r"'Letter' object has no attribute '(model|statistics|posterior)_'"):
            ask(record, X, Y)
    else:
        alike(ask(record, X, Y), ask(MODEL, X, Y), 1e-12)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_take_records(name):
    columns = slice(2) if name == "decision_regions" else slice(None)
    PICTURES[name](bg.NaiveBayesClassifier(random_state=0).fit(NUMBERS.iloc[:, columns], LABELS).fitted_)
    plt.close("all")


def test_the_members_of_a_record_are_drawn(average):
    bg.plot.members(average.fitted_)
    plt.close("all")


def test_a_record_is_its_own_and_forgets_nothing_of_a_later_fit():
    record = bg.NaiveBayesClassifier().fit(NUMBERS, LABELS).fitted_
    assert record.fitted_ is record
    classifier = bg.NaiveBayesClassifier().fit(NUMBERS, LABELS)
    held, before = classifier.fitted_, classifier.predict_proba(NUMBERS)
    classifier.partial_fit(NUMBERS[:9], LABELS[:9])
    alike(held.predict_proba(NUMBERS), before)
    assert (classifier.predict_proba(NUMBERS) != before).any()


def test_rows_of_other_columns_are_refused_in_the_words_of_the_estimator():
    record = bg.GaussianDiscriminantClassifier().fit(NUMBERS.to_numpy(), LABELS).fitted_
    with pytest.raises(ValueError, match="X has 2 features, but GaussianDiscriminantClassifier is expecting 4"):
        record.predict_proba(NUMBERS.to_numpy()[:, :2])
    with pytest.raises(ValueError, match="feature names should match"):
        MODEL.fitted_.predict_proba(X.rename(columns={"sex": "mass"}))


ESTIMATORS = [getattr(bg, name) for name in bg.__all__ if hasattr(getattr(bg, name), "fitted_")]


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_what_is_not_fitted_says_so_to_every_question(cls):
    for ask in (lambda one: one.fitted_, lambda one: explain(one, X), lambda one: inspection.impute(one, X)):
        with pytest.raises(NotFittedError, match=f"This {cls.__name__} instance is not fitted yet"):
            ask(cls())


def test_only_estimators_and_pictures_ask_whether_something_is_fitted():
    root = Path(bg.__file__).parent
    asks = [path for path in root.rglob("*.py") if "check_is_fitted(" in path.read_text(encoding="utf-8")]
    found = {path.relative_to(root).as_posix() for path in asks}
    assert found == {"estimators/estimator.py", "estimators/averaged.py", "estimators/imputer.py", "plot/style.py"}


MODELS = [getattr(bg.models, name) for name in bg.models.__all__]
LEAVES = [cls for cls in MODELS if issubclass(cls, Leaf)]


@pytest.mark.parametrize(
    ("cls", "most"),
    [
        (bg.NaiveBayesClassifier, 45),
        (bg.GaussianDiscriminantClassifier, 47),
        (bg.LatentClassClassifier, 48),
        (bg.AveragedClassifier, 50),  # it learns on, forgets, decays and is fitted anew
        (bg.LogisticClassifier, 31),
        *((leaf, 68) for leaf in LEAVES),
    ],
)
def test_public_names_do_not_grow(cls, most):
    assert len([name for name in dir(cls) if not name.startswith("_")]) <= most
