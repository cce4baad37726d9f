"""The generative classifiers: read the table, run an inference on what is kept of its rows, ask the posterior."""

import abc
import weakref
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from bayesgen.core.errors import Argument, InputWarning, warn
from bayesgen.estimators import settings
from bayesgen.estimators.estimator import Estimator, asks, score
from bayesgen.export import program_or_none
from bayesgen.inference import Inference, resolve
from bayesgen.inspection.data_tree import to_arviz
from bayesgen.inspection.explain import explain
from bayesgen.inspection.leave_one_out import leave_one_out
from bayesgen.inspection.one_model import FittedModel
from bayesgen.inspection.summary import Summary
from bayesgen.models.classifier import ClassConditional
from bayesgen.numerics.pieces import select_rows
from bayesgen.numerics.sums import Grouping
from bayesgen.posterior.posterior import Posterior
from bayesgen.sheets.rows import fingerprint
from bayesgen.tables.findings import ANSWERS, findings, tell
from bayesgen.tables.schema import Schema

TOLD: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # findings told of a fit, which are no part of it


@dataclass(eq=False, repr=False, kw_only=True)
class GenerativeClassifier(ClassifierMixin, Estimator, abc.ABC):
    """Base of the generative classifiers: a class prior, a schema, statistics free of any prior, and a posterior."""

    class_concentration: ArrayLike = 1.0
    priors: ArrayLike | None = None
    inference: str | Inference = "exact"
    random_state: Any = None

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
        template = self._template(schema)
        row, code, votes = rows.stacked()
        by_class = Grouping(code, len(self.classes_), votes, (len(self.classes_),))
        blocks, shared = template.blocks(rows.blocks), rows.shared
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

    # kinds of findings of numbers that stand for answers, where these may be taken as Gaussian
    _answers: ClassVar[Any] = ()

    def _infer(self, inference, model, statistics) -> Posterior:
        """Return the posterior of a model with its prior."""
        return inference(model, statistics, seed=self.random_state)

    _weak = True  # False if no Gaussian column has a prior that follows the data

    @abc.abstractmethod
    def _learn_schema(self, table) -> Schema:
        """Divide the columns of a table into blocks."""

    @abc.abstractmethod
    def _template(self, schema: Schema) -> ClassConditional:
        """Return the model of the blocks of a schema; priors that follow the data are left to come."""

    predict, predict_proba = asks(FittedModel.predict), asks(FittedModel.predict_proba)
    predict_log_proba = asks(FittedModel.predict_log_proba)
    predict_joint_log_proba = asks(FittedModel.predict_joint_log_proba)
    sample, score, score_samples = asks(FittedModel.sample), score, asks(FittedModel.score_samples)

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
        return replace(Summary.of(self), program=program_or_none(self))

    def _repr_mimebundle_(self, **kwargs):
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
