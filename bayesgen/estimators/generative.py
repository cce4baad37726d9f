"""The generative classifiers: read the table, run an inference on what is kept of its rows, ask the posterior."""

import abc
import weakref
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import Argument, InputWarning, warn
from bayesgen.estimators import settings
from bayesgen.estimators.estimator import Estimator, sample, score, score_samples
from bayesgen.inference import Inference, resolve
from bayesgen.inspection.data_tree import to_arviz
from bayesgen.inspection.explain import explain, terms_of_model
from bayesgen.inspection.fitted import FittedModel
from bayesgen.inspection.leave_one_out import leave_one_out
from bayesgen.inspection.one_model import JointOfModel
from bayesgen.inspection.probabilities import tempered, warn_of_few_draws
from bayesgen.inspection.summary import Summary
from bayesgen.numerics.pieces import pieces, select_rows
from bayesgen.numerics.sums import Grouping
from bayesgen.posterior.likelihoods import warn_of_lost
from bayesgen.posterior.posterior import Posterior
from bayesgen.tables.findings import ANSWERS, findings, tell
from bayesgen.tables.rows import fingerprint
from bayesgen.tables.schema import Schema

TOLD: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # findings told of a fit, which are no part of it
_SAMPLED = 1 << 21  # parameters that `sample` draws at a time: 16 MB


@dataclass(eq=False, repr=False, kw_only=True)
class GenerativeClassifier(ClassifierMixin, Estimator, FittedModel):
    """Base of the generative classifiers: a class prior, a schema, statistics free of any prior, and a posterior."""

    class_concentration: ArrayLike = 1.0
    priors: ArrayLike | None = None
    inference: str | Inference = "exact"
    random_state: Any = None

    fitted_names = ("n_features_in_", "model_", "statistics_", "posterior_", "classes_", "schema_")
    _models: ClassVar[tuple[type, ...]]  # that it may have

    _absent: ClassVar[dict[str, str]] = {  # arguments that it has not, and what there is instead
        "class_weight": "give the probabilities of the classes by priors=, to the classifier or to predict_proba, and "
        "what each mistake costs to bayesgen.decision.decide"
    }

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse an argument that is not there with a word on what is; `__init__` only keeps its arguments."""
        for name in cls._absent.keys() & options:
            raise TypeError(f"{cls.__name__} has no {name}: {cls._absent[name]}")
        return super().__new__(cls)

    def _summarise(self, schema, rows):
        """Return the model without its weak priors, and the statistics of some rows."""
        template = self.template(schema)
        row, code, votes = rows.stacked()
        by_class = Grouping(code, len(self.classes_), votes, (len(self.classes_),))
        blocks, shared = template.blocks(self.as_model_takes(rows.blocks)), rows.shared
        blocks = select_rows(blocks, row) if shared else blocks
        statistics = template.sum_rows(blocks, by_class, fingerprint(schema, self.classes_))
        return template, replace(statistics, decayed=True) if shared else statistics

    def _learn(self, schema, template, statistics):
        model = template.with_prior(statistics)
        inference = _inference_for(model, self.inference)
        if self._weak:
            settings.check_scale(schema, statistics)
        posterior = self._infer(inference, model, statistics)
        self.schema_, self.statistics_, self.model_, self.posterior_ = (schema, statistics, model, posterior)

    def _tell_findings(self, rows=None, told=()) -> None:
        """Tell what the rows that came, or the sums of all so far, hold that may not be as meant, and was not told."""
        features = getattr(self, "features", None)
        named = hasattr(self, "feature_names_in_") and isinstance(features, str) and features == "auto"
        skip = {*(ANSWERS.keys() - self._answers if named else ANSWERS), *(() if self._weak else ("constant",))}
        TOLD[self] = tell(findings(self.schema_, self.statistics_, rows, self.classes_, skip), told)

    _answers: ClassVar[
        Any
    ] = ()  # kinds of findings of numbers that stand for answers, where these may be taken as Gaussian

    def _infer(self, inference, model, statistics) -> Posterior:
        """Return the posterior of a model with its prior."""
        return inference(model, statistics, seed=self.random_state)

    # The classifiers differ in schema and model, and in the rows that the model takes.

    _weak = True  # False if no Gaussian column has a prior that follows the data

    @abc.abstractmethod
    def _learn_schema(self, table) -> Schema:
        """Divide the columns of a table into blocks."""

    def known_classes(self, priors):
        return settings.known_classes(priors, self.classes_)

    def as_model_takes(self, blocks):
        return blocks

    def check_parts(self):
        from bayesgen.estimators import consistency  # with all of the average, which only files need

        consistency.check_generative(self, self._models)

    def joint(self):
        return JointOfModel(self)

    def terms(self, X):
        return terms_of_model(self, X)

    def read(self, X):
        if "posterior_" not in vars(self):
            check_is_fitted(self)
        return self.as_model_takes(self.schema_.read(self.table(X), getattr(self, "unseen", "error")))

    def predict_log_proba(self, X, priors=None) -> np.ndarray:
        """Return the log probability of each class, (n, K); see `predict_proba`."""
        joint = self._joint(X, priors)
        with np.errstate(under="ignore"):
            return joint - np.log(np.exp(joint).sum(1))[:, None]

    def predict_proba(self, X, priors=None) -> np.ndarray:
        """Return the probability of each class, (n, K), columns in the order of ``classes_``.

        The joint p(x, t = k | data) is averaged over the posterior first and normalised over k after. A row that every
        class gives probability 0 (a plug-in estimate can) gets the class prior, with a warning.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows; a missing entry is integrated out.
        priors : array, shape (K,), or mapping or Series from class to float, optional
            Class probabilities of the population to decide for, where it is another than the data come from; the fit
            stays as it is.
        """
        joint = self._joint(X, priors)
        with np.errstate(under="ignore"):
            for piece in pieces(*joint.shape):
                np.exp(joint[piece], out=joint[piece])
                joint[piece] /= joint[piece].sum(1)[:, None]
        return joint

    def _joint(self, X, priors) -> np.ndarray:
        """Return log p(x, t = k | data), (n, K), less the largest of each row."""
        rows, posterior = self.read(X), self.posterior_
        if priors is not None:
            posterior = posterior.with_class_prior(self.known_classes(priors))
        joint, effective = posterior.log_predictive_with_effective(rows)
        if effective is not None:
            warn_of_few_draws(joint, effective, posterior.model.conjugate)
        exponent = getattr(self, "exponent_", 1.0)
        if exponent != 1:
            joint = tempered(joint, posterior.log_class_prior, exponent)
        count = 0
        for piece in pieces(*joint.shape):  # that stay in the cache
            rows_joint = joint[piece]
            top = rows_joint.max(1)
            if not top.min() > -np.inf:
                lost = np.isneginf(top)
                count += int(lost.sum())
                rows_joint[lost] = posterior.log_class_prior
                top = rows_joint.max(1)
            rows_joint -= top[:, None]
        if count:
            warn_of_lost(count)
        return joint

    def predict(self, X) -> np.ndarray:
        """Return the most probable class of each row; ties go to the first."""
        best = self._joint(X, None).argmax(1)
        return self.classes_[best]

    def predict_joint_log_proba(self, X) -> np.ndarray:
        """Return log p(x, t = k | data) of each row and class, (n, K); its log sum over k is `score_samples`."""
        rows = self.read(X)
        return self.posterior_.log_predictive(rows)

    def _draw(self, count, rng):
        width, parts = sum(v.size for v in self.posterior_.draws(0, (1,)).values()), []
        for piece in pieces(count, width, _SAMPLED, count):
            params = self.posterior_.draws(rng, (piece.stop - piece.start,))
            parts.append(self.model_.sample_rows(params, int(rng.integers(2**31))))
        rows = {name: np.concatenate([x[name] for _, x in parts]) for name in parts[0][1]}
        return rows, np.concatenate([t for t, _ in parts])

    sample, score, score_samples = sample, score, score_samples

    def summary(self) -> Summary:
        """Return what was learned, by column and class, as a table for the screen, a frame or a paper.

        Examples
        --------
        >>> from bayesgen import NaiveBayesClassifier
        >>> X, y = [[1.0, 0.0], [1.4, 0.5], [3.1, 0.1], [2.9, 0.6]], ["a", "a", "b", "b"]
        >>> learned = NaiveBayesClassifier().fit(X, y).summary()
        >>> learned.to_frame().loc[("x0", "mean")].round(2).to_dict()
        {'a': 1.2, 'b': 3.0}
        """
        return Summary.of(self)

    def _repr_mimebundle_(self, **kwargs):
        """Return the notebook view: the settings, and once fitted the summary."""
        shown = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown and hasattr(self, "posterior_"):
            shown["text/html"] += self.summary()._repr_html_()
        return shown

    explain, leave_one_out, to_arviz = explain, leave_one_out, to_arviz  # documented in `bayesgen.inspection`

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _inference_for(model, inference: str | Inference) -> Inference:
    """Return an inference as `resolve` does; where a model has no exact posterior, another in place of "exact", told.

    "exact" is the default, which nobody chose for a Student-t or a pooled leaf: the mode is found where there is one,
    else draws by Laplace. An `Exact()` that was given is taken at its word, and refuses.
    """
    if not (isinstance(inference, str) and inference.lower() == "exact") or model.conjugate:
        return resolve(inference)
    name, other = ("map", "laplace") if model.bounded else ("laplace", "nuts")
    problem = f"{type(model).__name__} has no exact posterior, since not every part is conjugate: fitted by "
    warn(InputWarning(problem, Argument("inference", name), "; another way is ", Argument("inference", other)))
    return resolve(name)
