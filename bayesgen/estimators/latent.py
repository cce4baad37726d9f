"""The estimator of classes that few labels tell, or none: mixtures, latent class analysis, raters without a truth."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from bayesgen.core import registry
from bayesgen.core.errors import Argument, InputTypeError, listed
from bayesgen.estimators.generative import GenerativeClassifier
from bayesgen.estimators.settings import naive_bayes_of
from bayesgen.inference import ML, Inference, resolve
from bayesgen.models import NaiveBayes, latent_classes
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.pieces import count_rows, select_rows, taken
from bayesgen.numerics.sums import Grouping
from bayesgen.posterior.arviz import tree
from bayesgen.posterior.posterior import generator
from bayesgen.tables.labels import existing, unwrapped
from bayesgen.tables.rows import fingerprint
from bayesgen.tables.schema import Schema


@registry.estimator
@dataclass(eq=False, repr=False)
class LatentClassClassifier(GenerativeClassifier):
    """Naive Bayes whose classes are not known: of all rows, or of those without a label.

    With Gaussian columns it is a mixture of Gaussians, with categories latent class analysis, and with a column for
    each rater the model of Dawid and Skene. Columns are independent given the class.

    Parameters
    ----------
    features : str or mapping, default "auto"
        Models of the columns; see `NaiveBayesClassifier`. A leaf with ``per_class=True`` has hyperparameters for each
        class, along their first axis.
    classes : int or sequence, default 2
        Number of classes, which are then called 0, 1, ...; or their names. Labels in ``y`` are among them.
    order_by : column, optional
        Column by whose mean, from low to high, the classes are named that have neither a label nor a prior of their
        own. By default the most frequent class is the first.
    class_concentration, priors
        As for `NaiveBayesClassifier`.
    inference : {"ml", "map", "nuts", "laplace"} or Inference, default "map"
        Method of inference; where every row has a label, "exact" too.
    starts : int, default 20
        Number of starts of the search for the classes. It ends in the best by a lower bound of the evidence, where
        "map", "laplace" and chains of "nuts" begin; for "ml" in that of the highest likelihood.
    random_state : int, RandomState or None
        Source of randomness for starts, NUTS and draws.

    Attributes
    ----------
    classes_ : array
        Class labels.
    free_ : array
        Labels of the classes that neither a label nor the prior tells apart, and that are named by an order.
    model_, statistics_, posterior_, schema_
        As for `NaiveBayesClassifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4.0, 1.0, 30), rng.normal(4.0, 1.0, 50)])[:, None]  # two humps
    >>> mixture = LatentClassClassifier(classes=["low", "high"], order_by=0, starts=3, random_state=0).fit(X)
    >>> mixture.predict([[-3.0], [5.0]]).tolist()
    ['low', 'high']
    """

    _models = (NaiveBayes,)

    # Settings of `GenerativeClassifier` that do not vary here.
    prior, unseen, unlabelled, label_noise, _weak = "weak", "missing", "missing", None, True

    features: str | Mapping[Any, Any] = "auto"
    classes: int | Sequence = 2
    order_by: Any = None
    class_concentration: ArrayLike = 1.0
    priors: ArrayLike | None = None
    inference: str | Inference = "map"
    starts: int = 20
    random_state: Any = None

    def fit(self, X, y=None, sample_weight=None) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Learn from rows, and from the classes of those that have a label.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            NaN, None or NA where missing.
        y : array, shape (n,), optional
            Class labels; NaN, None or NA where a row has none.
        sample_weight : array, shape (n,), optional
            Row weights >= 0; an integer weight is a row repeated.
        """
        check_count("starts", self.starts)
        with self._whole():
            table = self._table(X, reset=True)
            self.classes_ = named_classes(self.classes)
            codes = np.full(len(table), -1) if y is None else _codes(y, self.classes_)
            table, codes, weight = existing(table, codes, sample_weight)
            if len(self.classes_) == 1:
                codes = np.zeros(len(codes), np.intp)
            schema, known = self._learn_schema(table), codes >= 0
            blocks = schema.read(table)
            labelled = weight if known.all() else known * (1.0 if weight is None else weight)
            template, statistics = self._summarise(schema, blocks, np.maximum(codes, 0), labelled)
            if not known.all():
                classes = len(self.classes_)
                one = Grouping(np.zeros(len(codes), np.intp), classes, weight, (classes,))
                whole = template.sum_rows(template.blocks(blocks), one, fingerprint(schema, self.classes_))
                about = latent_classes.narrowed(whole)
                model = template.with_prior(about)
                _require_conjugate(model)
                rows = select_rows(template.blocks(blocks), ~known)
                statistics = PartlyLabelled.of(template, statistics, rows, taken(weight, ~known), about=about)
                statistics = self._begun(model, statistics, table, ~known)
            self._learn(schema, template, statistics)
            self._match()
        return self

    def _begun(self, model, statistics, table, unknown):
        """Return the statistics with the start of the search, its classes in order."""
        likelihood = isinstance(resolve(self.inference), ML)
        found = latent_classes.begun(model, statistics, self.starts, generator(self.random_state), likelihood)
        values = None
        if self.order_by is not None:
            places = dict(enumerate(table.columns)) if isinstance(self.order_by, int) else {}
            column = places.get(self.order_by, str(self.order_by))
            if column not in table.columns:
                raise ValueError(f"order_by is no column of X: {self.order_by!r}; it has {listed(table.columns)}")
            values = np.asarray(table.numbers((column,)), float)[unknown, 0]
        return latent_classes.ordered(model, found, values)

    def _match(self):
        """Give the classes of every draw the names of the classes at the start."""
        statistics, posterior = self.statistics_, cast(Any, self.posterior_)
        if posterior.kind == "draws" and len(self.free_) > 1:
            samples = latent_classes.matched(self.model_, statistics, posterior.as_draws().samples)
            self.posterior_ = replace(posterior, samples=samples)

    @property
    def free_(self) -> np.ndarray:
        """Classes that neither a label nor the prior tells apart, which are named by an order."""
        check_is_fitted(self)
        if not isinstance(self.statistics_, PartlyLabelled):
            return self.classes_[:0]
        return self.classes_[latent_classes.free(self.model_, self.statistics_)]

    def _learn_schema(self, table):
        return Schema.learn(table, self.features)

    _template = naive_bayes_of  # pyright: ignore[reportAssignmentType]  # it calls itself not self, but classifier

    @property
    def log_evidence_(self) -> float:
        """Log p(rows, labels that there are), the unknown classes summed out.

        It is exact where every row has a label, and for up to 12 rows without any. Else it is what
        ``inference="laplace"`` estimates at one mode, times the number of ways to rename the `free_` classes, as many
        modes as there are: too small where the posterior has others that are worth as much. With one class it is exact.
        """
        check_is_fitted(self)
        if not isinstance(self.statistics_, PartlyLabelled):
            return super().log_evidence_
        exact = latent_classes.log_evidence(self.model_, self.statistics_)
        if exact is not None:
            return exact
        estimated = getattr(self.posterior_, "log_evidence", None)
        if estimated is None:
            raise AttributeError(
                "log_evidence_ is a sum over all labellings of the rows: inference='laplace' estimates it"
            )
        return float(estimated + math.lgamma(len(self.free_) + 1))

    def to_arviz(self, X=None, draws: int | None = None):
        """Return the posterior as an ArviZ `xarray.DataTree`.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns), optional
            Rows. They add the group "log_likelihood" with "x", log p(x_i | θ) summed over the classes: ArviZ's ``loo``
            and ``compare`` of it judge the number of classes by rows left out.
        draws : int, optional
            Number of draws, evenly apart in each chain; default: all.
        """
        check_is_fitted(self)
        posterior = self.posterior_.as_draws(generator(self.random_state)).thinned(draws)
        if X is None:
            return tree(posterior)
        rows, lead = self.model_.check(self._read(X)), next(iter(posterior.samples.values())).shape[:2]
        density = np.logaddexp.reduce(self.model_.log_likelihood_rows(posterior.flat, rows), axis=1)
        return tree(posterior, {"log_likelihood": {"x": density.reshape(*lead, count_rows(rows))}})


def named_classes(classes) -> np.ndarray:
    """Return the names of the classes from their names or their number; raise an error for anything else."""
    if isinstance(classes, bool | str) or not isinstance(classes, int | np.integer | Sequence | np.ndarray):
        raise TypeError(f"classes must be their number, or their names, got {classes!r}")
    if isinstance(classes, int | np.integer):
        check_count("classes", classes)
        return np.arange(classes)
    names = np.asarray(classes)
    if names.ndim != 1 or names.dtype.kind not in "iuUO" or not len(names) or len(set(names.tolist())) < len(names):
        raise ValueError(f"classes must be distinct names, got {classes!r}")
    return names


def _codes(y, classes) -> np.ndarray:
    """Return the code of each label, -1 where there is none; raise for a label that is no class."""
    y = np.asarray(unwrapped(y))
    if y.ndim != 1:
        raise ValueError(f"y must be one label a row, or missing; got shape {y.shape}")
    position = {label: code for code, label in enumerate(classes.tolist())}
    gone = pd.isna(y)
    if strange := sorted({label for label in y[~gone].tolist() if label not in position}, key=str):
        raise ValueError(f"y holds the labels {listed(strange)}, which are not among classes, {listed(classes)}")
    return np.array([-1 if lost else position[label] for label, lost in zip(y.tolist(), gone, strict=True)])


def _require_conjugate(model) -> None:
    """Raise for a leaf of which the search for the classes has no posterior."""
    for name, leaf in model.leaves.items():
        if not (leaf.conjugate and leaf.proper):
            raise InputTypeError(
                f"columns {listed(model.columns_of(name) or (name,))}: a {type(leaf).__name__} has no posterior in "
                "closed form under a prior that is a distribution, by which the search for classes goes; give another "
                "leaf, or labels and NaiveBayesClassifier with ",
                Argument("inference", "nuts"),
            )
