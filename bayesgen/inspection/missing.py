r"""The joint density of rows and classes under a fitted classifier, and the imputation of missing entries from it.

Joint density: `Joint` is the contract. A classifier of one model has its posterior predictive, untempered
(`bayesgen.inspection.joint_of_model`). The tempered members of an averaged classifier have no density of x; its
untempered members do, under weights that are stacked on log p(x, t) of rows left out (`bayesgen.inspection.averaged`).

Components: the joint density of a single classifier is a mixture. Its components are the classes of an exact posterior
or of a point; otherwise each class under each of some draws of the parameters. Given a component, a missing entry is a
Student-t or takes values one can list.

Imputation: missing entries are replaced by means, modes or draws of

.. math:: p(x_m \mid x_o) = \sum_k p(t = k \mid x_o)\, p(x_m \mid t = k, x_o)

averaged over the posterior; a known class leaves its term alone. The parameters are drawn first, once for all rows,
then classes and entries given them: repeated draws are multiple imputation (Rubin 1987, *Multiple Imputation for
Nonresponse in Surveys*). The rows of a fit by NUTS may have gaps themselves: given their classes and the draws of the
parameters, the entries drawn here are draws from the posterior of those missing entries.
"""

import abc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import NoClosedForm, listed
from bayesgen.numerics.pieces import count_rows
from bayesgen.posterior.posterior import generator
from bayesgen.tables.labels import class_codes, class_labels

Rows = Mapping[str, np.ndarray]  # name of a block -> its entries (n, ...) as floats, NaN where missing
Measured = tuple[Any, np.ndarray, np.ndarray, np.ndarray]


class Joint(abc.ABC):
    """The density p(x, t = k | data) of a classifier, rows drawn from it, and missing entries given the observed ones.

    Attributes
    ----------
    log_prior : array, shape (K,)
        Log of the class probabilities.
    """

    log_prior: np.ndarray

    @abc.abstractmethod
    def read(self, X) -> Rows:
        """Return the rows as one array per block."""

    @abc.abstractmethod
    def blocks(self, rows: Rows) -> Mapping[str, np.ndarray]:
        """Return the rows by block of the schema."""

    @abc.abstractmethod
    def log_density(self, rows: Rows) -> np.ndarray:
        """Return log p(x | t = k, data), shape (n, K), missing entries integrated out."""

    @abc.abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw ``count`` rows of each class from the posterior predictive, class by class, each from own parameters."""

    def tails(self, rows: Rows) -> np.ndarray | None:
        """Return P(p(new | k) <= p(x | k)), shape (n, K), or None if there is no formula."""
        return None

    def totals(self) -> Mapping[str, tuple[str, str]]:
        """Return the blocks that are modelled given their total: a column of each, and the name of its density."""
        return {}

    @abc.abstractmethod
    def expected(self, rows: Rows, codes) -> Rows:
        """Return the rows with the expected value of each missing entry filled in, given their classes where known."""

    @abc.abstractmethod
    def filled(self, rows: Rows, codes, draws: int, rng: np.random.Generator) -> Iterator[Rows]:
        """Yield the rows ``draws`` times, missing entries drawn, each time under newly drawn parameters."""

    @abc.abstractmethod
    def measured(self, rows: Rows) -> Iterator[Measured]:
        """Yield the class probabilities at the possible values of each missing entry, some entries at a time.

        Yields
        ------
        places : tuple of rows and columns
            Places of E entries.
        now : array, shape (K, E)
            Log class probabilities without them.
        then : array, shape (K, E, Q)
            Log class probabilities at Q possible values of each entry.
        weight : array, shape (E, Q)
            Probabilities of these values.
        """


def joint_of(classifier, question: str) -> Joint:
    """Return the joint density of a fitted classifier; raise if it has none."""
    check_is_fitted(classifier)
    if not hasattr(classifier, "score_samples"):
        raise ValueError(f"{question} asks for the density of a row: it needs a generative classifier")
    return classifier._density()


_MASS = 1e-9  # probability of a count that may be left out
_MOST = 1 << 16  # values of a count that are listed


@dataclass(frozen=True)
class Table:
    """The values of a finite entry or a count, (V,), and their log probabilities under each component, (S, K, V)."""

    values: np.ndarray
    log_mass: np.ndarray


@dataclass(frozen=True)
class Gap:
    """A column with missing entries.

    Attributes
    ----------
    block : str
        Its leaf.
    place : int
        Its place among the columns of the leaf.
    column : int
        Its place among the columns of the table.
    rows : int array
        Rows in which it is missing.
    """

    block: str
    place: int
    column: int
    rows: np.ndarray


class Components:
    """The components of a single classifier; see the module.

    Parameters
    ----------
    joint : Joint
        The joint density of a classifier with one posterior.
    draws : int
        Number of draws of the parameters, where the posterior is neither exact nor a point.
    """

    def __init__(self, joint: Any, draws: int):
        posterior = joint.classifier.posterior_
        self.classifier, self.model, self.params = joint.classifier, posterior.model, None
        if posterior.kind == "point":
            self.params = posterior.draws(0, (1,))
        elif posterior.kind == "draws":
            self.params = posterior.draws(generator(joint.classifier.random_state), (draws,))
        self.count = 1 if self.params is None else len(next(iter(self.params.values())))
        self._tables: dict[tuple[str, int], Table] = {}

    def log_weight(self, rows: Rows) -> np.ndarray:
        """Return log p(x, t = k | θ) of rows under every component, shape (S, K, n)."""
        if self.params is None:
            return self.model.log_predictive(self.classifier._as_model_takes(rows)).T[None]
        return self.model.log_likelihood_rows(self.params, rows)

    def is_number(self, block: str) -> bool:
        """Return True if a leaf models numbers."""
        return self.model.leaves[block].density_kind == "density"

    def is_label(self, block: str) -> bool:
        """Return True if a leaf models categories or bits, which have no mean."""
        return any(b.name == block and b.categories is not None for b in self.classifier.schema_.blocks) or (
            self.model.leaves[block].cardinality(0) == 2
        )

    def student(self, block: str, rows: Rows):
        """Return location, scale and degrees of freedom of a leaf of numbers, each of shape (S, K, n or 1, D or 1)."""
        leaf, x = self.model.leaves[block], rows[block].reshape(len(rows[block]), -1)
        own = rows[block] if not leaf.event_dim else x
        try:
            if self.params is None:
                return tuple(part[None] for part in _filled(leaf.student(own)))
            return _filled(leaf.student(own, self.model.site(self.params, block)))
        except NoClosedForm as error:
            raise NoClosedForm(f"columns {listed(self.model.columns_of(block))}: {error}") from None

    def table(self, gap: Gap) -> Table:
        """Return the values and probabilities of a finite entry or a count, whatever the other entries of its row."""
        key = gap.block, gap.place
        if key not in self._tables:
            size = self.model.leaves[gap.block].cardinality(gap.place)
            self._tables[key] = self._listed(*key, size) if size else self._counted(*key)
        return self._tables[key]

    def _listed(self, block, place, size) -> Table:
        leaf, values = self.model.leaves[block], np.arange(size, dtype=float)
        width = int(np.prod(leaf.features)) if leaf.features else 1
        x = np.full((size, width), np.nan)
        x[:, place] = values
        x = leaf.check(x.reshape(size, *leaf.features))
        if self.params is None:
            return Table(values, leaf.log_predictive(x).reshape(size, -1).T[None])
        return Table(values, leaf.log_likelihood_rows(self.model.site(self.params, block), x))

    def _counted(self, block, place) -> Table:
        size = 64
        while True:
            table = self._listed(block, place, size)
            if np.exp(table.log_mass).sum(-1).min() > 1 - _MASS or size >= _MOST:
                return table
            size *= 4


def _filled(parts):
    """Return arrays with as many axes as the first."""
    return tuple(part.reshape((1,) * (parts[0].ndim - part.ndim) + part.shape) for part in parts)


def gaps_of(schema, rows: Rows) -> Iterator[Gap]:
    """Yield the columns that have missing entries."""
    for block in schema.blocks:
        missing = np.isnan(rows[block.name].reshape(len(rows[block.name]), -1))
        for place in np.flatnonzero(missing.any(0)):
            column = schema.columns.index(block.columns[place])
            yield Gap(block.name, int(place), column, np.flatnonzero(missing[:, place]))


def refuse_totals(joint: Joint, question: str, rows: Rows | None = None) -> None:
    """Raise if a leaf is modelled given its total; with ``rows``, only if an entry, and so the total, is missing."""
    blocks = None if rows is None else joint.blocks(rows)
    for name, (column, kind) in joint.totals().items():
        if blocks is None or np.isnan(blocks[name]).any():
            raise ValueError(
                f"{question} has no answer for {name!r} (columns such as {column!r}): its model is a {kind}"
                + ("; leave these columns out of the fit" if rows is None else ", and entries are missing")
            )


def impute(classifier, X, y=None, draws: int = 0):
    """Fill the missing entries of rows with their expected values, or with draws.

    Without draws, a number or a count is filled with its mean, a category or a bit with its most probable value. A
    log-normal column takes exp of the mean logarithm, as a mean need not exist; under an averaged classifier, whose
    columns are bent, a number takes its median. Gaps are taken as ignorable: that an entry is missing says nothing of
    its value.

    Parameters
    ----------
    classifier : fitted generative or averaged classifier
        The classifier whose joint density, untempered, the entries are filled from.
    X : DataFrame or array, shape (n, columns)
        Rows.
    y : array, shape (n,), optional
        Classes of the rows, where they are known, as for the rows of the fit.
    draws : int, default 0
        Number of tables to draw, each under newly drawn parameters; 0 fills in expected values.

    Returns
    -------
    DataFrame or array, shape (n, columns), or a list of ``draws`` of them
        A DataFrame, with the index of X, where the fit had column names. Observed entries stay as they were, except
        that dates have the type datetime64, in UTC.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier(random_state=0).fit(X, y)
    >>> row = [[6.0, 2.7, np.nan, 1.6]]
    >>> impute(classifier, row).round(1)
    array([[6. , 2.7, 4.8, 1.6]])
    >>> [float(table[0, 2].round(1)) for table in impute(classifier, row, draws=2)]
    [4.7, 4.8]
    """
    joint = joint_of(classifier, "impute()")
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 0:
        raise ValueError(f"draws must be a whole number >= 0, got {draws!r}")
    codes = None
    if y is not None:
        codes = class_codes(class_labels(y), classifier.classes_)[1]
    rows, rng = joint.read(X), generator(classifier.random_state)
    count = count_rows(rows)
    if codes is not None and len(codes) != count:
        raise ValueError(f"X has {count} rows and y has {len(codes)}; they must be of one length")
    refuse_totals(joint, "impute()", rows)
    if not draws:
        return _table(classifier, X, joint.blocks(joint.expected(rows, codes)))
    return [_table(classifier, X, joint.blocks(own)) for own in joint.filled(rows, codes, draws, rng)]


def _table(classifier, X, rows):
    """Return rows in the form of the fit, with the index of X."""
    result = classifier._like_fit(classifier.schema_.write(rows))
    if hasattr(result, "index") and hasattr(X, "index") and not callable(X.index):
        result.index = X.index
    return result
