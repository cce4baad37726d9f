"""The models that `bayesgen fit` learns: the options that each takes, and saved ones as the commands ask them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bayesgen.cli import reading


@dataclass(frozen=True)
class Choice:
    """A model that `bayesgen fit` learns.

    Attributes
    ----------
    build : callable (X, inference, seed, features) -> estimator
        Returns the unfitted classifier of columns X.
    inference : str or None
        Inference by default; None where the model has none to choose.
    takes : tuple of str
        Options that this model takes and others do not.
    """

    build: Callable[..., Any]
    inference: str | None
    takes: tuple[str, ...]


def _averaged(X, inference, seed, features):
    from bayesgen.estimators.averaged import AveragedClassifier

    return AveragedClassifier(features=features or "auto", random_state=seed)


def _single(model: str):
    def build(X, inference, seed, features):
        from bayesgen.comparison import candidates

        return candidates.estimator(X, model, inference, seed, features)

    return build


def _logistic(X, inference, seed, features):
    from bayesgen.estimators.linear_classifiers import LogisticClassifier

    return LogisticClassifier(inference=inference, missing="mean", unseen="missing", random_state=seed)


def learn(model: str, prepared, inference, seed, group: str | None = None):
    """Return a classifier that learned from all rows of a table; ``group`` is the column of what they belong to."""
    classifier = MODELS[model].build(prepared.X, inference, seed, prepared.features)
    return classifier.fit(prepared.X, prepared.y, **_groups(prepared, group))


def _groups(prepared, group: str | None) -> dict[str, Any]:
    return {"groups": prepared.names[group]} if group else {}


def learn_large(
    model: str, prepared, inference, seed, sample, target: str, rows: Callable[..., Any], group: str | None = None
):
    """Return a classifier that learned from large files, of which ``prepared`` is a sample.

    The averaged classifier learns from the sample, under the frequencies of the classes in all files; others from all
    rows, in batches, with the columns of the sample. ``rows(finish=)`` is the source of these, see `folders.Cleaned`.
    """
    from bayesgen.estimators.naive_bayes import NaiveBayesClassifier

    X = prepared.X
    if model == "averaged":
        classifier = MODELS[model].build(X, inference, seed, prepared.features)
        priors = sample.priors(prepared.y, prepared.rows)
        return classifier.set_params(priors=priors).fit(X, prepared.y, **_groups(prepared, group))
    if model != "nb":
        source = rows(finish=lambda X: X.dropna()) if model == "gda" else rows()
        return MODELS[model].build(X, inference, seed, {}).fit_batches(source, target)
    kinds = {column: "categorical" for column in X if hasattr(X[column], "cat")}
    kinds |= {column: "bernoulli" for column in X if str(X[column].dtype) in ("bool", "boolean")}
    features = kinds | prepared.features
    classifier = NaiveBayesClassifier(features or "auto", inference=inference, random_state=seed)
    return classifier.fit_batches(rows(), target)


MODELS: dict[str, Choice] = {
    "averaged": Choice(_averaged, None, ("categorical", "count", "bernoulli", "log", "group")),
    "nb": Choice(_single("nb"), "exact", ("inference", "categorical", "count", "bernoulli", "log")),
    "gda": Choice(_single("gda"), "exact", ("inference",)),
    "logistic": Choice(_logistic, "map", ("inference", "categorical", "bernoulli")),
}
_FEW_TAKE = ("inference", "categorical", "count", "bernoulli", "log", "group")  # options that not every model takes


def check_options(model: str, given: Mapping[str, Any]) -> None:
    """Raise ValueError unless there is a model of this name, and it takes the options that were given.

    Parameters
    ----------
    model : str
        Name of a model, one of `MODELS`.
    given : mapping from option to its value
        None, and nothing, stand for an option that was not given.
    """
    if model not in MODELS:
        raise ValueError(f"--model must be one of {', '.join(MODELS)}; got {model!r}")
    for option in _FEW_TAKE:
        if given.get(option) and option not in MODELS[model].takes:
            others = ", ".join(name for name, choice in MODELS.items() if option in choice.takes)
            raise ValueError(f"--{option} is not for --model {model}; these take it: {others}")


def inference_of(model: str, name: str | None):
    """Return the inference of a name, or of none the model's own: its name in `MODELS`."""
    own = MODELS[model].inference
    return None if own is None else reading.inference((name or own).strip().lower())


def load(path, untrusted: bool = False):
    """Return a saved estimator; a logistic or probit classifier fills gaps, as one that `fit` saved."""
    from bayesgen.files import storage

    estimator = storage.load(path, untrusted=untrusted)
    return estimator.set_params(missing="mean") if hasattr(estimator, "missing") else estimator
