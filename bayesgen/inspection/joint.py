"""The density of rows and classes that a fitted classifier has, whichever it is: what questions about x alone ask.

A single classifier has its posterior predictive, untempered. The tempered members of an averaged classifier have no
density of x; its untempered members do, under weights that are stacked on log p(x, t) of rows left out.
"""

import abc
from collections.abc import Mapping

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from bayesgen.averaging import draws
from bayesgen.errors import NoClosedForm
from bayesgen.inspection.averaged import Averaged
from bayesgen.numerics.memory import check_memory

Rows = Mapping[str, np.ndarray]  # name of a block -> its entries (n, ...) as floats, NaN where missing


class Joint(abc.ABC):
    """The density p(x, t = k | data) of a classifier, and rows drawn from it.

    Attributes
    ----------
    log_prior : array, shape (K,)
        Log of the class probabilities.
    """

    log_prior: np.ndarray

    @abc.abstractmethod
    def read(self, X) -> Rows:
        """Return the rows as one array a block."""

    @abc.abstractmethod
    def log_density(self, rows: Rows) -> np.ndarray:
        """Log p(x | t = k, data), (n, K), what is missing integrated out."""

    @abc.abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Rows:
        """Rows of the posterior predictive, ``count`` of each class, class by class, each of parameters of its own."""

    def tails(self, rows: Rows) -> np.ndarray | None:
        """P(p(new | k) <= p(x | k)), (n, K), where there is a formula."""
        return None


class SingleJoint(Joint):
    """The joint density of columns and class under one generative model."""

    def __init__(self, classifier):
        self.classifier, even = classifier, np.full(len(classifier.classes_), 1 / len(classifier.classes_))
        self.posterior = classifier.posterior_.with_class_prior(classifier._known(even))
        self.log_prior = classifier.posterior_.log_predictive(classifier._shape(classifier.schema_.nothing()))[0]

    def read(self, X):
        """Rows by leaf; sparse ones are made dense."""
        rows = self.posterior.model.check(self.classifier._read(X))
        cells = sum(float(np.prod(v.shape)) for v in rows.values() if sparse.issparse(v))
        check_memory("the rows of a sparse matrix, made dense,", int(8 * cells), "give fewer rows at a time")
        return {name: np.asarray(v.toarray() if sparse.issparse(v) else v, float) for name, v in rows.items()}

    def log_density(self, rows):
        """Return the log density of the posterior predictive."""
        return self.posterior.log_predictive(self.classifier._shape(rows)) + np.log(len(self.log_prior))

    def draw(self, count, rng):
        """Draw rows leaf by leaf."""
        model, params, classes = self.posterior.model, self.posterior.draws(rng, (count,)), len(self.log_prior)
        drawn = {name: leaf.draw(model.site(params, name), rng) for name, leaf in model.leaves.items()}
        drawn = {name: np.asarray(v, float).swapaxes(0, 1) for name, v in drawn.items()}
        return {name: v.reshape(classes * count, *v.shape[2:]) for name, v in drawn.items()}

    def tails(self, rows):
        """By the one leaf of a model, where its posterior is exact."""
        leaves = self.posterior.model.leaves
        if self.posterior.kind != "exact" or len(leaves) > 1:
            return None
        ((name, leaf),) = leaves.items()
        try:
            return leaf.tail_probability(rows[name]).reshape(-1, len(self.log_prior))
        except NoClosedForm:
            return None


class AveragedJoint(Joint):
    """Of the untempered members of an average."""

    def __init__(self, classifier):
        self.classifier, self.average = classifier, classifier.average_
        self.log_prior = self.average.log_class_prior

    def read(self, X):
        """Return the numbers of the rows, and the codes of their categories."""
        x, c = self.classifier._read(X)
        return {"numbers": x, "categories": np.where(c < 0, np.nan, c)}

    def log_density(self, rows):
        """Of the members, in the units of the columns."""
        return self.average.log_joint(*self.arrays(rows)) - self.log_prior

    @staticmethod
    def arrays(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Numbers, and codes of categories, -1 where missing, as the engine takes them."""
        c = rows["categories"]
        return rows["numbers"], np.where(np.isnan(c), -1, c).astype(np.intp)

    def draw(self, count, rng):
        """Each row of a member of its own."""
        x, c = draws.rows(self.average, np.repeat(np.arange(len(self.log_prior)), count), rng)
        return {"numbers": x, "categories": c.astype(float)}


def joint_of(classifier, question: str) -> Joint:
    """The joint density of a fitted classifier, or an error where it has none."""
    check_is_fitted(classifier)
    if not hasattr(classifier, "score_samples"):
        raise ValueError(f"{question} asks for the density of a row: it needs a generative classifier")
    return (AveragedJoint if isinstance(classifier, Averaged) else SingleJoint)(classifier)
