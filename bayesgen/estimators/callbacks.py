"""scikit-learn's callbacks, from its version 1.9 on: they are told the stages of a fit, and see what it has learned."""

import abc
from importlib.util import find_spec
from typing import Any, Self

from sklearn.utils.metaestimators import available_if


def _untold(done: int, total: int, text: str) -> None:
    """Tell nobody of a stage."""


class Tasks:
    """The tasks of one fit, as scikit-learn's callbacks see them: the fit, and within it one stage after the other."""

    def __init__(self, estimator, X, y, sample_weight):
        from sklearn.callback import CallbackSupportMixin

        self.estimator = estimator
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.rows = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self.fit: Any = CallbackSupportMixin._init_callback_context(estimator)
        self.stage: Any = None

    def begin(self, done: int, total: int, text: str) -> None:
        """Begin a stage, once the stage before has ended; the first one says how many there are."""
        if self.stage is None:
            self.fit.max_subtasks = total
            self.fit.call_on_fit_task_begin(**self.rows)
        else:
            self.stage.call_on_fit_task_end(estimator=self.estimator)
        self.stage = self.fit.subcontext(task_name=text).call_on_fit_task_begin(estimator=self.estimator)

    def end(self) -> None:
        """End the last stage and the fit; callbacks may predict with what was learned."""
        self.stage.call_on_fit_task_end(estimator=self.estimator)
        self.fit.call_on_fit_task_end(**self.rows, reconstruction_attributes={})


class CallbackSupport(abc.ABC):
    """An estimator whose fit tells scikit-learn's callbacks of its stages."""

    @abc.abstractmethod
    def _learn(self, X, y, sample_weight, groups, tell) -> Any:
        """Learn from rows; call ``tell(done, total, text)`` before each stage of the work, and return the estimator."""

    @available_if(lambda estimator: find_spec("sklearn.callback") is not None)
    def set_callbacks(self, *callbacks) -> Self:
        """Set scikit-learn's callbacks of the next fits, such as `sklearn.callback.ProgressBar`; it needs 1.9 or newer.

        Parameters
        ----------
        *callbacks : callbacks
            They are told of the fit and of each of its stages; none takes away those that were set.

        Examples
        --------
        >>> from sklearn.callback import ScoringMonitor
        >>> from sklearn.datasets import load_iris
        >>> import bayesgen as bg
        >>> monitor = ScoringMonitor(scoring="accuracy")
        >>> classifier = bg.AveragedClassifier(members=["gaussian"]).set_callbacks(monitor)
        >>> classifier = classifier.fit(*load_iris(return_X_y=True))
        >>> [round(row["accuracy"], 2) for row in monitor.get_logs().data]
        [0.97]
        """
        from sklearn.callback import CallbackSupportMixin  # here, since it takes a thirtieth of a second, for Rich

        CallbackSupportMixin.set_callbacks(self, *callbacks)  # pyright: ignore[reportArgumentType]
        return self

    def _told(self, X, y, sample_weight, groups):
        """Learn from rows, and tell the callbacks, where there are any, of the stages."""
        if not hasattr(self, "_skl_callbacks"):
            return self._learn(X, y, sample_weight, groups, _untold)
        from sklearn.callback import with_callbacks

        @with_callbacks  # which tears down what `Tasks` sets up, whether the fit ends or fails
        def fit(estimator):
            tasks = Tasks(estimator, X, y, sample_weight)
            learned = self._learn(X, y, sample_weight, groups, tasks.begin)
            tasks.end()
            return learned

        return fit(self)
