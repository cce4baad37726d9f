"""The base of the estimators: settings by path, tables, fits that happen whole or not at all, files, evidence."""

import abc
import contextlib
import dataclasses
import functools
import threading
from collections.abc import Mapping
from typing import Any, Self, cast

import numpy as np
from scipy.special import logsumexp
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
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.draws import generator
from bayesgen.tables.labels import class_codes, class_labels
from bayesgen.tables.schema import side_by_side
from bayesgen.tables.shares import Shares, labels_or_shares
from bayesgen.tables.table import Table


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


_FORMAT = "_bayesgen_format"
_learning: dict[int, int] = {}  # the thread in which an estimator learns, by the estimator's `id`
_lock = threading.Lock()


_has_probabilities = available_if(lambda estimator: hasattr(estimator, "predict_proba"))  # regressions have none


class Estimator(BaseEstimator, Fitted, abc.ABC):
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
        """Raise ValueError where a setting is none of its options."""
        for name, allowed in options.items():
            if (value := getattr(self, name)) not in allowed:
                raise ValueError(f"{name} must be one of {list(allowed)}, got {value!r}")

    def table(self, X, reset=False):
        table = Table(X)
        if not self._knows(table, reset):
            validate_data(self, table.native, reset=reset, skip_check_array=True)  # pyright: ignore[reportArgumentType]  # no stubs
        return table

    def _knows(self, table, reset: bool) -> bool:
        """Return True if the columns are those of fit, or are learned here; scikit-learn checks the other cases."""
        names = table.names
        if names is not None and set(map(type, names)) != {str}:
            return False
        if reset:
            self._expect(table.columns, names is not None)
            return True
        known = getattr(self, "feature_names_in_", None)
        if names is None or known is None:
            return names is None and known is None and self.n_features_in_ == len(table.columns)
        return known.tolist() == names

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
        check_is_fitted(self)
        if "model_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no log_evidence_: it is not one model")
        model, statistics, posterior = (vars(self)[name] for name in ("model_", "statistics_", "posterior_"))
        if getattr(statistics, "decayed", False):
            raise AttributeError(
                "log_evidence_ is that of whole rows, each of one class, and some were made to count less by decay(), "
                "or have shares of the classes as labels"
            )
        problem = "not every part of the model is conjugate"
        if model.conjugate:
            try:
                return float(model.log_evidence(statistics))
            except ValueError as error:  # such as gaps in a full covariance; hasattr() then answers
                problem = str(error)
        if posterior.kind != "exact" and hasattr(posterior, "log_evidence"):  # an exact one has been asked
            return posterior.log_evidence
        estimated = "; inference='laplace' estimates it" if model.proper else ""
        raise AttributeError(f"log_evidence_ has no closed form here: {problem}{estimated}")

    def read_for_draws(self, X):
        return cast(Any, self).posterior_.check(self.read(X))

    predict_proba_draws = _has_probabilities(predict_proba_draws)
    predict_proba_interval = _has_probabilities(predict_proba_interval)
    export = _has_probabilities(export)
    to_page = _has_probabilities(to_page)

    def like_fit(self, columns):
        if not hasattr(self, "feature_names_in_"):
            return side_by_side(columns.values())
        library: Any = self.schema_.library
        if library != "pandas":
            import narwhals as nw

            return nw.from_dict({name: c.tolist() for name, c in columns.items()}, backend=library).to_native()
        import pandas as pd

        return pd.DataFrame(columns)


@functools.cache
def _parameters(of: type[Estimator]) -> list[str]:
    """Return the names of an estimator's parameters, read from the signature; clones need them often."""
    return of._get_param_names()


# Methods of the classifiers that have a density of a row, which write ``predict_joint_log_proba`` and ``_draw``.


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

    y = labels_or_shares(y, default=self.classes_)
    if isinstance(y, Shares):
        _, predicted = class_codes(self.predict(X), self.classes_)
        shares = y.among(self.classes_.tolist())
        return float(np.average(shares[np.arange(len(y)), predicted], weights=sample_weight))
    return float(accuracy_score(class_labels(y), self.predict(X), sample_weight=sample_weight))


@np.errstate(under="ignore")
def score_samples(classifier, X):
    """Return the log density log p(x) of each row, (n,), summed over classes: low where nothing like it was seen."""
    return logsumexp(classifier.predict_joint_log_proba(X), axis=1)


def sample(classifier, n_samples: int = 1):
    """Draw rows with their classes from the posterior predictive, each from a draw of the posterior of its own.

    An averaged classifier draws from its untempered members, stacked on log p(x, t) of rows left out.

    Parameters
    ----------
    n_samples : int, default 1
        Number of rows.

    Returns
    -------
    X : DataFrame or array, shape (n_samples, columns)
        A DataFrame where the fit had column names; dates are of the type datetime64, in UTC. A column that was constant
        at the fit has this value.
    y : array, shape (n_samples,)
        Class labels.
    """
    check_is_fitted(classifier)
    check_count("n_samples", n_samples)
    blocks, codes = classifier._draw(n_samples, generator(classifier.random_state))
    return classifier.like_fit(classifier.schema_.write(blocks)), classifier.classes_[codes]
