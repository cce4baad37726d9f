"""The base of the estimators: settings by path, tables, fits that happen whole or not at all, files, evidence."""

import abc
import contextlib
import dataclasses
import functools
import operator
import threading
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesgen.estimators import streaming
from bayesgen.export import export, to_page
from bayesgen.files import storage
from bayesgen.files.container import VERSION
from bayesgen.inference import named
from bayesgen.inspection.fitted import Fitted
from bayesgen.inspection.probabilities import predict_proba_draws, predict_proba_interval
from bayesgen.tables.learned_rows import labels_of
from bayesgen.tables.table import Table

_P = ParamSpec("_P")
_R = TypeVar("_R")
_FORMAT = "_bayesgen_format"
_learning: dict[int, int] = {}  # the thread in which an estimator learns, by the estimator's `id`
_lock = threading.Lock()


def settings(value: Any) -> dict[str, Any]:
    """Return the settings within a value by path: ``num_samples`` of an inference, ``height__kappa`` of leaves."""
    result = {}
    for name, setting in _parts(value).items():
        result[name] = setting
        result |= {f"{name}__{path}": inner for path, inner in settings(setting).items()}
    return result


def changed(value: Any, changes: Mapping[str, Any], where: str) -> Any:
    """Return a record or mapping with some of its `settings` changed, by path; messages call it ``where``."""
    parts, new, inner = _parts(value), {}, {}
    for path, setting in changes.items():
        name = next((n for n in parts if path == n or path.startswith(f"{n}__")), None)
        if name is None:
            there = f"it has {sorted(parts)}" if parts else "give an inference, prior or leaf to set something in"
            raise ValueError(f"{where}={value!r:.100} has no setting {path!r}; {there}")
        if path == name:
            new[name] = setting
        else:
            inner.setdefault(name, {})[path[len(name) + 2 :]] = setting
    for name, within in inner.items():
        new[name] = changed(new.get(name, parts[name]), within, f"{where}__{name}")
    return {**value, **new} if isinstance(value, Mapping) else dataclasses.replace(value, **new)


def _parts(value) -> dict[str, Any]:
    """Return the values of a mapping, or the fields that the user of a record gives (estimators set the others)."""
    if isinstance(value, Mapping):
        return {key: setting for key, setting in value.items() if isinstance(key, str)}
    if isinstance(value, type) or not dataclasses.is_dataclass(value):
        return {}
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if not field.kw_only}


class Held:
    """The attribute ``fitted_`` of estimators of one class: the record of what one has learned, which questions take.

    Its model is one of ``models``. Fitting sets what the record needs, and ``names``, which a file holds; what is
    ``optional`` at times.
    """

    def __init__(self, kind: type[Fitted], models: tuple[type, ...], *names: str, optional: tuple[str, ...] = ()):
        self._kind, self._models, fields = kind, models, dataclasses.fields(kind)
        needed = [field.name for field in fields if field.default is dataclasses.MISSING]
        self._fields, self.names = [field.name for field in fields], ("n_features_in_", *needed, *names)
        self.optional = ("feature_names_in_", *optional)

    def __get__(self, estimator, owner=None) -> Any:
        if estimator is None:
            return self
        known = vars(estimator)
        if "schema_" not in known:
            check_is_fitted(estimator, "schema_")
        known = {name: known[name] for name in self._fields if name in known}
        return self._kind(**known, estimator=type(estimator).__name__)

    def check(self, estimator) -> None:
        """Raise if parts of an estimator that were read from a file do not fit each other."""
        from bayesgen.estimators import consistency  # with all of the average, which only files need

        consistency.check_parts(estimator, self._models)


def held(name: str, doc: str) -> Any:
    """Return a property of estimators that is one of their record."""
    return property(operator.attrgetter(f"fitted_.{name}"), doc=doc)


def asks(method: Callable[Concatenate[Any, _P], _R]) -> Callable[Concatenate[Any, _P], _R]:
    """Return a method of records as a method of the estimators that hold them."""

    @functools.wraps(method)
    def ask(self, *args: _P.args, **options: _P.kwargs) -> _R:
        return getattr(self.fitted_, method.__name__)(*args, **options)

    return ask


_has_probabilities = available_if(lambda estimator: hasattr(estimator, "predict_proba"))  # regressions have none


class Estimator(BaseEstimator, abc.ABC):
    """An estimator that reads tables."""

    def save(self, path) -> None:
        """Write the fitted estimator to a safetensors file that `bayesgen.load` reads back, without running code.

        The file holds parameters, statistics and posterior. The classifiers without sufficient statistics (logistic,
        probit), and the averaged classifier of more than 100 numeric columns, keep the rows themselves.

        Parameters
        ----------
        path : str or Path
            The file; one of that name is replaced.
        """
        storage.save(self, path)

    def get_params(self, deep: bool = True) -> dict:
        """Return parameters by name; with ``deep`` settings within: ``inference__num_samples``, ``prior__kappa``."""
        params = {name: getattr(self, name) for name in _parameters(type(self))}
        if deep:
            inner = {name: settings(named(value)) for name, value in params.items()}
            params |= {f"{name}__{path}": value for name, found in inner.items() for path, value in found.items()}
        return params

    def set_params(self, **params) -> Self:
        """Set parameters; a setting within an inference, prior or leaf makes a new one of these records.

        Parameters
        ----------
        **params
            By name: ``inference="nuts"``, ``inference__num_samples=500``, ``prior__kappa=0.1``,
            ``features__height__kappa=0.1`` (of the leaf of a column).
        """
        known, inside = _parameters(type(self)), {}
        for name, value in params.items():
            first, _, path = name.partition("__")
            if first not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {first!r}; it has {known}")
            if path:
                inside.setdefault(first, {})[path] = value
            else:
                setattr(self, name, value)
        for name, changes in inside.items():
            setattr(self, name, changed(named(getattr(self, name)), changes, name))
        return self

    predict_batches = streaming.predict_batches

    def __getstate__(self):
        return vars(self) | {_FORMAT: VERSION}

    def __setstate__(self, state):
        written = state.pop(_FORMAT, 1)
        if written != VERSION:
            raise ValueError(
                f"this pickle of a {type(self).__name__} has format {written}, this bayesgen reads format {VERSION}; "
                "read it with the version that wrote it (format 1: bayesgen 0.1), or fit anew and keep it by save()"
            )
        super().__setstate__(state)

    @contextlib.contextmanager
    def _whole(self):
        """Restore all attributes if the block fails: a failed fit leaves the fit before.

        Only one thread at a time may enter: two that add rows to the same statistics would lose those of one.
        """
        me = threading.get_ident()
        with _lock:
            outer = id(self) not in _learning
            owner = _learning.setdefault(id(self), me)
        if owner != me:
            raise RuntimeError(
                f"this {type(self).__name__} learns in another thread at this moment, and rows of one of the two would "
                "be lost: let one thread at a time fit it, under a lock, or let each thread learn with an estimator of "
                "its own; those whose statistics add are merged by sum(estimators)"
            )
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise
        finally:
            if outer:
                del _learning[id(self)]

    def _check_options(self, **options: tuple[str, ...]) -> None:
        for name, allowed in options.items():
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")

    fitted_: Held  # the record of what was learned
    classes_: np.ndarray  # of classifiers

    def table(self, X, reset=False) -> Table:
        """Return rows as a `Table` of the columns of the fit; with ``reset`` its columns are expected from now on."""
        if not reset:
            return self.fitted_.table(X)
        table = Table(X)
        if table.names is None or set(map(type, table.names)) == {str}:
            self._expect(table.columns, table.names is not None)
        else:  # scikit-learn has the words
            validate_data(self, table.native, reset=True, skip_check_array=True)  # pyright: ignore[reportArgumentType]  # no stubs
        return table

    def _expect(self, columns, named: bool) -> None:
        """Expect these columns from now on: keep their number and, where the rows have them, their names."""
        self.n_features_in_ = len(columns)
        vars(self).pop("feature_names_in_", None)
        if named:
            self.feature_names_in_ = np.asarray(columns, dtype=object)

    @property
    def log_evidence_(self) -> float:
        """Log p(data | model), every constant kept: in closed form, or as ``inference="laplace"`` estimates it.

        The data are the rows and their classes, as a sequence; for a regression the target given the columns, as they
        are standardised. Priors that follow the data make it an empirical Bayes quantity.
        """
        return self.fitted_.log_evidence_

    predict_proba_draws = _has_probabilities(predict_proba_draws)
    predict_proba_interval = _has_probabilities(predict_proba_interval)
    export = _has_probabilities(export)
    to_page = _has_probabilities(to_page)


@functools.cache
def _parameters(of: type[Estimator]) -> list[str]:
    """Return the names of an estimator's parameters, read from the signature; clones need them often."""
    return of._get_param_names()


def score(self, X, y, sample_weight=None) -> float:
    """Return the share of rows whose class is predicted right, their accuracy, by weight.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        Rows.
    y : array, shape (n,), or (n, K)
        Their classes, of any type that `fit` takes; of shares it is the mean share of the predicted class.
    sample_weight : array, shape (n,), optional
        Row weights >= 0.
    """
    from sklearn.metrics import accuracy_score

    y, predicted = labels_of(y, self.classes_), self.predict(X)
    if y.ndim == 2:
        return float(np.average(y[predicted[:, None] == self.classes_], weights=sample_weight))
    return float(accuracy_score(y, predicted, sample_weight=sample_weight))


def decision_function(self, X) -> np.ndarray:
    """Return scores, the largest for the predicted class: two classes (n,), positive for the second; else (n, K).

    They are the log odds of two classes, which for a logistic point estimate are intercept + x coefficients, and log
    probabilities of more.
    """
    log_p = self.predict_log_proba(X)
    return log_p[:, 1] - log_p[:, 0] if log_p.shape[1] == 2 else log_p
