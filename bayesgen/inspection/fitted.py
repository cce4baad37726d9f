"""A record of what fitting made, of plain values: it reads rows and answers questions, and knows no estimator.

Questions, exports and watches take a record; an estimator holds one, its attribute ``fitted_``, and hands it on. Those
of generative classifiers are in `bayesgen.inspection.one_model` and `members`.
"""

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from bayesgen.core.errors import listed
from bayesgen.core.names import by_name
from bayesgen.inspection.explain import terms_of_score
from bayesgen.models.categorical import KnownCategorical
from bayesgen.models.model import Model
from bayesgen.numerics.checks import check_count, check_shares
from bayesgen.numerics.draws import generator
from bayesgen.posterior.posterior import Posterior
from bayesgen.tables import design
from bayesgen.tables.schema import Schema, side_by_side
from bayesgen.tables.table import Table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Fitted(abc.ABC):
    """A record of what fitting made; its fields have the names of estimators. A subclass must write `read`.

    Questions about parameters, as draws, odds, summaries and exports, ask for ``model_``, ``statistics_`` and
    ``posterior_`` besides, which a `bayesgen.inspection.one_model.FittedModel` has.
    """

    schema_: Schema  # the columns of the fit, and how they form blocks
    feature_names_in_: np.ndarray | None = None  # names of the columns, where the rows of the fit had some
    random_state: Any = None  # source of randomness of draws
    unseen: str = "error"  # or "missing": treatment of a category that was not there at the fit
    estimator: str = "Estimator"  # name of the kind of estimator, for messages

    @property
    def fitted_(self) -> Self:
        """The record itself, as it is that of an estimator."""
        return self

    @abc.abstractmethod
    def read(self, X) -> Any:
        """Return the rows of a table as the posterior takes them."""

    def read_for_draws(self, X) -> Any:
        """Return the rows of a table as the posterior's `label_draws` takes them."""
        return cast(Any, self).posterior_.check(self.read(X))

    def table(self, X) -> Table:
        """Return rows as a `Table`, or raise where their columns are not those of the fit."""
        table, known = Table(X), self.feature_names_in_
        alike = len(table.columns) == len(self.schema_.columns) if known is None else known.tolist() == table.names
        if not alike or (known is None) != (table.names is None):
            refusing: Any = type(self.estimator, (BaseEstimator,), {})()  # scikit-learn's words name the estimator
            refusing.n_features_in_ = len(self.schema_.columns)
            if known is not None:
                refusing.feature_names_in_ = known
            validate_data(refusing, table.native, reset=False, skip_check_array=True)  # pyright: ignore[reportArgumentType]  # no stubs
        return table

    def like_fit(self, columns: Mapping[str, np.ndarray]) -> Any:
        """Return columns by name as rows of the fit's kind: a DataFrame where it had column names, else an array."""
        if self.feature_names_in_ is None:
            return side_by_side(columns.values())
        library: Any = self.schema_.library
        if library != "pandas":
            import narwhals as nw

            return nw.from_dict({name: c.tolist() for name, c in columns.items()}, backend=library).to_native()
        import pandas as pd

        return pd.DataFrame(columns)

    @property
    def log_evidence_(self) -> float:
        """Log p(data | model), every constant kept: in closed form, or as ``inference="laplace"`` estimates it."""
        model, statistics, posterior = (getattr(self, name) for name in ("model_", "statistics_", "posterior_"))
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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedClassifier(Fitted):
    """A fitted classifier. A subclass must write `terms` and `predict_proba`."""

    classes_: np.ndarray

    @abc.abstractmethod
    def terms(self, X, /) -> tuple[Sequence[str], list[np.ndarray]]:
        """Return names of columns, and terms (n, K) of the class prior and of each of them, for `explain`."""

    @abc.abstractmethod
    def predict_proba(self, X) -> np.ndarray:
        """Return the probability of each class, (n, K), columns in the order of ``classes_``."""

    @np.errstate(divide="ignore")
    def predict_log_proba(self, X) -> np.ndarray:
        """Return the log probability of each class, (n, K); see `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict(self, X) -> np.ndarray:
        """Return the most probable class of each row; ties go to the first."""
        return self.classes_[self.predict_proba(X).argmax(1)]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedRegression(Fitted):
    """A fitted regression: the model of standardised columns, what is kept of rows, the posterior, and coefficients."""

    model_: Model
    statistics_: Any
    posterior_: Posterior
    centre_: np.ndarray  # (D,): columns are standardised as (x - centre_) / scale_
    scale_: np.ndarray
    coef_: np.ndarray  # means or estimates, for the columns as given
    intercept_: Any = None
    missing: str = "error"  # or "mean": treatment of a missing entry, which takes the mean of its column

    def read(self, X):
        x = design.read(self.schema_, self.table(X), self.unseen)
        x = design.filled(self.schema_, x, self.centre_ if self.missing == "mean" else None)
        with np.errstate(over="ignore"):
            z = (x - self.centre_) / self.scale_
        if not np.isfinite(z).all():
            row, j = np.argwhere(~np.isfinite(z))[0]
            raise ValueError(
                f"column {design.names(self.schema_)[j]!r}: the value {x[row, j]:g} in row {row} is too far from the "
                "rows of the fit for float64"
            )
        return z


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedScores(FittedRegression, FittedClassifier):
    """A fitted classifier of linear scores; ``cuts_`` (K - 1,) are those of ordered classes, which have one score."""

    cuts_: np.ndarray | None = None

    terms = terms_of_score

    @np.errstate(under="ignore")
    def predict_log_proba(self, X) -> np.ndarray:
        """Return the log probability of each class, (n, K): p(t = k | x, θ) averaged over the posterior of θ."""
        return self.posterior_.log_predictive(self.read(X))

    @np.errstate(under="ignore")
    def predict_proba(self, X) -> np.ndarray:
        """Return the probability of each class, (n, K), columns in the order of ``classes_``."""
        return np.exp(self.predict_log_proba(X))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedDensity(FittedClassifier):
    """A fitted classifier under which rows have a density.

    A subclass must write `joint`, `predict_joint_log_proba` and `draw`. Its `predict_proba` takes ``priors`` too, class
    probabilities in place of those of the fit.
    """

    @abc.abstractmethod
    def joint(self) -> Any:
        """Return the joint density of rows and classes, a `bayesgen.inspection.missing.Joint`."""

    @abc.abstractmethod
    def predict_joint_log_proba(self, X) -> np.ndarray:
        """Return log p(x, t = k | data) of each row and class, (n, K); its log sum over k is `score_samples`."""

    @abc.abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the blocks of drawn rows, and the codes of their classes (count,)."""

    @np.errstate(divide="ignore")
    def predict_log_proba(self, X, priors=None) -> np.ndarray:
        """Return the log probability of each class, (n, K); see `predict_proba`."""
        return np.log(cast(Any, self).predict_proba(X, priors))

    @np.errstate(under="ignore")
    def score_samples(self, X) -> Any:
        """Return the log density log p(x) of each row, (n,), summed over classes: low where nothing was like it."""
        return logsumexp(self.predict_joint_log_proba(X), axis=1)

    def sample(self, n_samples: int = 1) -> Any:
        """Draw rows with their classes from the posterior predictive, each from a draw of the posterior of its own.

        An averaged classifier draws from its untempered members, stacked on log p(x, t) of rows left out.

        Parameters
        ----------
        n_samples : int, default 1
            Number of rows.

        Returns
        -------
        X : DataFrame or array, shape (n_samples, columns)
            A DataFrame where the fit had column names; dates are of the type datetime64, in UTC. A column that was
            constant at the fit has this value.
        y : array, shape (n_samples,)
            Class labels.
        """
        check_count("n_samples", n_samples)
        blocks, codes = self.draw(n_samples, generator(self.random_state))
        return self.like_fit(self.schema_.write(blocks)), self.classes_[codes]


def known_classes(priors, classes) -> KnownCategorical:
    """Return the known class probabilities ``priors``, one for each of ``classes``, or raise."""
    labels = classes.tolist()
    priors = by_name("priors", priors, labels, expected="one probability for each of the classes")
    if np.shape(priors) != (len(labels),):
        got = f"; got {priors!r}" if np.ndim(priors) == 0 else ""
        expected = f"one probability for each of the {len(labels)} classes {listed(labels)}"
        raise ValueError(f"priors must hold {expected}{got}")
    return KnownCategorical(check_shares("priors", priors), labels)
