"""The contract of fitted estimators, as files and questions ask them; `bayesgen.estimators` has those that keep it."""

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bayesgen.models import ClassConditional
from bayesgen.models.categorical import KnownCategorical
from bayesgen.posterior.posterior import Posterior
from bayesgen.tables.schema import Schema
from bayesgen.tables.table import Table


class Fitted(abc.ABC):
    """A fitted estimator. A subclass must write `table`, `read`, `read_for_draws`, `like_fit` and `check_parts`."""

    schema_: Schema
    fitted_names: ClassVar[tuple[str, ...]]  # the attributes that fitting sets, which a file holds
    optional_names: ClassVar[tuple[str, ...]] = ("feature_names_in_",)  # those that it sets at times

    @abc.abstractmethod
    def table(self, X, reset: bool = False) -> Table:
        """Return rows as a `Table` of the columns of the fit; with ``reset`` its columns are expected from now on."""

    @abc.abstractmethod
    def read(self, X) -> Any:
        """Return the rows of a table as the posterior takes them."""

    @abc.abstractmethod
    def read_for_draws(self, X) -> Any:
        """Return the rows of a table as the posterior's `label_draws` takes them."""

    @abc.abstractmethod
    def like_fit(self, columns: Mapping[str, np.ndarray]) -> Any:
        """Return columns by name as rows of the fit's kind: a DataFrame where it had column names, else an array."""

    @abc.abstractmethod
    def check_parts(self) -> None:
        """Raise if parts read from a file do not fit each other; see `bayesgen.estimators.consistency`."""


class FittedClassifier(Fitted):
    """A fitted classifier whose log odds are sums of terms, one of each column. A subclass must write `terms`."""

    classes_: np.ndarray

    @abc.abstractmethod
    def terms(self, X) -> tuple[Sequence[str], list[np.ndarray]]:
        """Return names of columns, and terms (n, K) of the class prior and of each of them, for `explain`."""


class FittedDensity(FittedClassifier):
    """A fitted classifier under which rows have a density. A subclass must write `joint`."""

    @abc.abstractmethod
    def joint(self) -> Any:
        """Return the joint density of rows and classes, a `bayesgen.inspection.missing.Joint`."""


class FittedModel(FittedDensity):
    """A fitted generative classifier of one model.

    A subclass must write `template`, `as_model_takes` and `known_classes`.
    """

    model_: ClassConditional
    statistics_: Any
    posterior_: Posterior

    @abc.abstractmethod
    def template(self, schema: Schema) -> ClassConditional:
        """Return the model of the blocks of a schema; priors that follow the data are left to come."""

    @abc.abstractmethod
    def as_model_takes(self, blocks: Mapping[str, np.ndarray]) -> Any:
        """Return the blocks of rows in the form that the model takes."""

    @abc.abstractmethod
    def known_classes(self, priors) -> KnownCategorical:
        """Return given class probabilities, checked, as a model of classes with nothing to learn."""
