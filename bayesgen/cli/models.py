"""The models that `bayesgen fit` learns: the options that each takes, and saved ones as the commands ask them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bayesgen.cli import folders, reading
from bayesgen.estimators.averaged import AveragedClassifier
from bayesgen.estimators.linear_classifiers import LogisticClassifier
from bayesgen.estimators.naive_bayes import NaiveBayesClassifier
from bayesgen.files import storage


class Choice(NamedTuple):
    """A model that `bayesgen fit` learns."""

    inference: str | None  # by default; None where the model has none to choose
    takes: tuple[str, ...]  # options that this model takes and others do not


class Large(NamedTuple):
    """Rows of large files, of which a table that was prepared is a sample."""

    sample: folders.Sample
    target: str
    rows: Callable[..., folders.Cleaned]  # called as rows() or rows(finish=)


def _unfitted(model: str, X, inference, seed, features) -> Any:
    """Return the unfitted classifier of columns X."""
    if model == "averaged":
        return AveragedClassifier(features=features or "auto", random_state=seed)
    if model == "logistic":
        return LogisticClassifier(inference=inference, missing="mean", unseen="missing", random_state=seed)
    from bayesgen.comparison import candidates  # here, since it takes a tenth of `import bayesgen`

    return candidates.estimator(X, model, inference, seed, features)


def learn(model: str, prepared, inference, seed, group: str | None, large: Large | None):
    """Return a classifier that learned from all rows of a table; ``group`` is the column of what they belong to.

    Of large files the averaged classifier learns from the sample, under the frequencies of the classes in all files;
    others learn from all rows, in batches, with the columns of the sample.
    """
    X = prepared.X
    if large is None or model == "averaged":
        classifier = _unfitted(model, X, inference, seed, prepared.features)
        if large is not None:
            classifier.set_params(priors=large.sample.priors(prepared.y, prepared.rows))
        return classifier.fit(X, prepared.y, **({"groups": prepared.names[group]} if group else {}))
    if model != "nb":
        source = large.rows(finish=lambda X: X.dropna()) if model == "gda" else large.rows()
        return _unfitted(model, X, inference, seed, {}).fit_batches(source, large.target)
    kinds = {column: "categorical" for column in X if hasattr(X[column], "cat")}
    kinds |= {column: "bernoulli" for column in X if str(X[column].dtype) in ("bool", "boolean")}
    features = kinds | prepared.features
    classifier = NaiveBayesClassifier(features or "auto", inference=inference, random_state=seed)
    return classifier.fit_batches(large.rows(), large.target)


MODELS = {
    "averaged": Choice(None, ("categorical", "count", "bernoulli", "log", "group")),
    "nb": Choice("exact", ("inference", "categorical", "count", "bernoulli", "log")),
    "gda": Choice("exact", ("inference",)),
    "logistic": Choice("map", ("inference", "categorical", "bernoulli")),
}
_FEW_TAKE = ("inference", "categorical", "count", "bernoulli", "log", "group")  # options that not every model takes


def check_options(model: str, given: Mapping[str, Any]) -> None:
    """Raise ValueError unless there is a model of this name, and it takes the options that were given a value."""
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
    estimator = storage.load(path, untrusted=untrusted)
    return estimator.set_params(missing="mean") if hasattr(estimator, "missing") else estimator
