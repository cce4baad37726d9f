r"""The joint density of rows and classes under a fitted classifier, and the imputation of missing entries from it.

Joint density: `Joint` is the contract. A classifier of one model has its posterior predictive, untempered
(`bayesgen.inspection.joint_of_model`). The tempered members of an averaged classifier have no density of x; its
untempered members do, under weights that are stacked on log p(x, t) of rows left out (`bayesgen.inspection.averaged`).

The joint density is a mixture. Given a component, a missing entry is a Student-t or takes values one can list.

Imputation: the missing entries x_m of a row are replaced by means, modes or draws given its observed entries x_o,

.. math:: p(x_m \mid x_o) = \sum_c p(c \mid x_o)\, p(x_m \mid c, x_o), \qquad p(c \mid x_o) \propto p(c)\, p(x_o \mid c)

over the components c; a known class leaves its components alone. So x_o weighs the classes, the groups and members of
an average, and the draws of a sampler alike: component c is

- a class k under an exact posterior, of weight π_k p(x_o | k), parameters integrated out, or under a point;
- a member, class and group (m, k, g) of an average, of weight v_m π_k p(g | k) p_m(x_o | k, g), untempered;
- a draw and class (s, k) of a sampler, of weight π_ks p(x_o | k, θ_s).

A draw of x_m takes a component, then x_m given it: columns that share a covariance or a variance are a Student-t
vector, of which x_o is known (`bayesgen.models.gaps`), others have predictives of their own. So rows are independent
given the fit, and many draws of a row have the means, medians and quantiles of p(x_m | x_o).

Tables: what is computed from all rows of a drawn table, as the mean of a column, varies from table to table also by
what is not known of the parameters, which the rows share. For that all rows of a table are drawn under one θ, which
knows what the fit and all observed entries of the table tell (Rubin 1987, *Multiple Imputation for Nonresponse in
Surveys*). Gibbs' sampler alternates (Tanner and Wong 1987, *JASA* 82, 528-540)

.. math:: (t, x_m) \sim p(t, x_m \mid x_o, \theta), \qquad \theta \sim p(\theta \mid \text{fit}, t, x_o, x_m)

Draws are taken log(0.01)/log(γ) rounds apart, where they hardly correlate: γ is the part of the information that is
missing, the part of all rows that lack their class, or one column of the worst pair. A posterior that knows the rows
already, as those of its fit, gives θ itself; a point estimate of it gives way to Gibbs' sampler under the prior. The
draws of a sampler have no closed form to go on from: they are picked in proportion to the density of all new rows.
"""

import abc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.core.errors import Argument, NoClosedForm, listed, warn
from bayesgen.inspection.probabilities import FewDrawsWarning
from bayesgen.numerics.checks import check_flag
from bayesgen.numerics.pieces import DENSITIES, count_rows, pieces
from bayesgen.posterior.posterior import generator
from bayesgen.tables.labels import codes_of

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
        """Yield the rows ``draws`` times, missing entries drawn, the rows independent given the fit."""

    @abc.abstractmethod
    def filled_together(self, rows: Rows, codes, draws: int, rng: np.random.Generator, fitted) -> Iterator[Rows]:
        """Yield the rows ``draws`` times, missing entries drawn, all rows of a table under the same parameters.

        Parameters
        ----------
        rows : mapping from name to array
            Rows, NaN where missing.
        codes : int array, shape (n,), optional
            Classes of the rows, where they are known.
        draws : int
            Number of tables.
        rng : Generator
        fitted : int array, shape (n,), optional
            Classes of the rows at the fit, where they are the rows of the fit.
        """

    @abc.abstractmethod
    def knows(self, rows: Rows, codes) -> bool:
        """Return True if these are the rows and classes of the fit, as sums and sums of squares show."""

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


FEWEST = 50  # effective draws of a sampler below which imputed values are called rough
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
    params : mapping from site to array (S, ...), optional
        Draws of the parameters; without them they are integrated out.
    """

    def __init__(self, joint: Any, params=None):
        self.classifier, self.model, self.params = joint.classifier, joint.classifier.posterior_.model, params
        self.log_prior = joint.log_prior
        self.count = 1 if params is None else len(next(iter(params.values())))
        self._tables: dict[tuple[str, int], Table] = {}

    @classmethod
    def of(cls, joint: Any, draws: int | None = None) -> "Components":
        """Return the components of the posterior: an exact one and a point need no draws, others take some, or all."""
        posterior = joint.classifier.posterior_
        if posterior.kind == "exact":
            return cls(joint)
        if posterior.kind == "point":
            return cls(joint, posterior.draws(0, (1,)))
        if draws is None:
            return cls(joint, posterior.as_draws().flat)
        return cls(joint, posterior.draws(generator(joint.classifier.random_state), (draws,)))

    def log_weight(self, rows: Rows, codes=None) -> np.ndarray:
        """Return log p(x, t = k | θ) of rows under every component, shape (S, K, n); -inf where the class is another.

        A row that no component can explain, as under a plug-in estimate, weighs them by the class prior.
        """
        if self.params is None:
            score = self.model.log_predictive(self.classifier._as_model_takes(rows)).T[None]
        else:
            score = self.model.log_likelihood_rows(self.params, rows)
        instead = self.log_prior[:, None]
        if codes is not None:
            known = np.arange(len(instead))[:, None] == codes
            score, instead = np.where(known, score, -np.inf), np.where(known, 0.0, -np.inf)
        lost = np.isneginf(score).all((0, 1))
        score[..., lost] = np.broadcast_to(instead, score.shape[1:])[:, lost]
        return score

    def fill(self, rows: Rows, place, rng) -> dict[str, np.ndarray]:
        """Draw the missing entries of rows, each from the component at its place in (S, K), made flat."""
        own, group = np.unique(place, return_inverse=True)
        draw, code = np.divmod(own, len(self.log_prior))
        result = {}
        for name, leaf in self.model.leaves.items():
            x, params = rows[name].copy(), None
            if self.params is not None:
                params = leaf.select_class(self.model.site(self.params, name), (draw, code))
            flat, at = x.reshape(len(x), -1), group if params is not None else place
            gone = np.flatnonzero(np.isnan(flat).any(1))
            for piece in pieces(len(gone), len(self.log_prior) * flat.shape[1] ** (1 + leaf.event_dim), DENSITIES):
                x[gone[piece]] = leaf.fill(x[gone[piece]], at[gone[piece]], rng, params)
            result[name] = x
        return result

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


def warn_of_few(effective, what: str, joint: Any) -> None:
    """Warn where values rest on few effective draws of a sampler, (n,), by rows or of all rows together."""
    few = effective < FEWEST
    if few.any():
        exact = joint.classifier.posterior_.model.conjugate
        cure = ["use ", Argument("inference", "exact"), ", or more draws"] if exact else ["take more draws"]
        text = f"{what} rest on fewer than {FEWEST} effective draws of the parameters, and are rough: "
        warn(FewDrawsWarning(text, *cure, rows=few))


def refuse_totals(joint: Joint, question: str, rows: Rows | None = None) -> None:
    """Raise if a leaf is modelled given its total; with ``rows``, only if an entry, and so the total, is missing."""
    blocks = None if rows is None else joint.blocks(rows)
    for name, (column, kind) in joint.totals().items():
        if blocks is None or np.isnan(blocks[name]).any():
            raise ValueError(
                f"{question} has no answer for {name!r} (columns such as {column!r}): its model is a {kind}"
                + ("; leave these columns out of the fit" if rows is None else ", and entries are missing")
            )


def impute(classifier, X, y=None, draws: int = 0, joint: bool = False):
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
        Number of tables to draw; 0 fills in expected values.
    joint : bool, default False
        True to draw all rows of a table under the same parameters, given the fit and all observed entries of X, for
        multiple imputation: what is computed from whole tables varies as it should from one to the next. The rows of
        the fit, recognised by X and y, are not counted twice. False to draw each row by itself, given the fit.

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
    [4.9, 4.6]
    """
    density = joint_of(classifier, "impute()")
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 0:
        raise ValueError(f"draws must be a whole number >= 0, got {draws!r}")
    check_flag("joint", joint)
    if joint and not draws:
        raise ValueError("joint=True is about draws: give draws=, the number of tables")
    rows, rng = density.read(X), generator(classifier.random_state)
    count = count_rows(rows)
    codes = _only_class(classifier, count) if y is None else codes_of(y, classifier.classes_, count)
    refuse_totals(density, "impute()", rows)
    if not draws:
        return _table(classifier, X, density.blocks(density.expected(rows, codes)))
    if joint:
        fitted = codes if codes is not None and density.knows(rows, codes) else None
        tables = list(density.filled_together(rows, codes, draws, rng, fitted))
    else:
        tables = list(density.filled(rows, codes, draws, rng))
    return [_table(classifier, X, density.blocks(own)) for own in tables]


def draw_table(classifier, X, fitted=None):
    """Return rows with missing entries drawn, their classes unknown.

    ``fitted`` are the classes of the rows of the fit: if X holds these rows, they are drawn under the same parameters.
    """
    density = joint_of(classifier, "impute()")
    rows, rng = density.read(X), generator(classifier.random_state)
    refuse_totals(density, "impute()", rows)
    codes = _only_class(classifier, count_rows(rows))
    if fitted is not None and len(fitted) == count_rows(rows) and density.knows(rows, fitted):
        (own,) = density.filled_together(rows, codes, 1, rng, fitted)
    else:
        (own,) = density.filled(rows, codes, 1, rng)
    return _table(classifier, X, density.blocks(own))


def _only_class(classifier, count: int):
    """Return the codes of rows where there is one class; else None."""
    return np.zeros(count, np.intp) if len(classifier.classes_) == 1 else None


def _table(classifier, X, rows):
    """Return rows in the form of the fit, with the index of X."""
    result = classifier._like_fit(classifier.schema_.write(rows))
    if hasattr(result, "index") and hasattr(X, "index") and not callable(X.index):
        result.index = X.index
    return result
