r"""The joint density of rows and classes under a fitted classifier, and the imputation of missing entries from it.

Joint density: a `Joint` reads rows, and hands out the mixture of components that answers for them
(`bayesgen.posterior.component`). A classifier of one model has its posterior predictive, untempered
(`bayesgen.inspection.one_model`). The tempered members of an averaged classifier have no density of x; its
untempered members do, under weights that are stacked on log p(x, t) of rows left out (`bayesgen.inspection.members`).

Imputation: the missing entries x_m of a row are replaced by means, modes or draws given its observed entries x_o,

.. math:: p(x_m \mid x_o) = \sum_c p(c \mid x_o)\, p(x_m \mid c, x_o), \qquad p(c \mid x_o) \propto p(c)\, p(x_o \mid c)

over the components c; a known class leaves its components alone. So x_o weighs the classes, the groups and members of
an average, and the draws of a sampler alike: component c is

- a class k under an exact posterior, of weight π_k p(x_o | k), parameters integrated out, or under a point;
- a member, class and group (m, k, g) of an average, of weight v_m π_k p(g | k) p_m(x_o | k, g), untempered;
- a draw and class (s, k) of a sampler, of weight π_ks p(x_o | k, θ_s).

A draw of x_m takes a component, then x_m given it: columns that share a covariance or a variance are a Student-t
vector, of which x_o is known (`bayesgen.numerics.student_gaps`), others have predictives of their own. So rows are
independent given the fit, and many draws of a row have the means, medians and quantiles of p(x_m | x_o).

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
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from bayesgen.core.errors import warn
from bayesgen.core.registry import fitted_of
from bayesgen.inspection.fitted import FittedDensity
from bayesgen.inspection.probabilities import FewDrawsWarning, more_draws
from bayesgen.numerics.checks import check_count, check_flag
from bayesgen.numerics.draws import generator, rounds_apart
from bayesgen.numerics.pieces import CELLS, DENSITIES, count_rows, pieces, select_rows, taken
from bayesgen.posterior.component import Along, Components, Entry, Gap, Given, Rows
from bayesgen.tables.labels import codes_of

Measured = tuple[Any, np.ndarray, np.ndarray, np.ndarray]

FEWEST = 50  # effective draws of a sampler below which imputed values are called rough
_MEANS, _VALUES = 500, 100  # draws of a sampler, for means and for the values of entries
SHARE = 0.995  # of the weight: the heaviest members, which stand for an average where entries are valued


class Joint(abc.ABC):
    """The density p(x, t = k | data) of a classifier as a mixture, and all questions about rows and missing entries.

    A subclass must write `read`, `nothing`, `log_density`, `components`, `drawn`, `knows` and `log_probability`. It may
    write `blocks`, `tails` and `totals`.
    """

    classifier: Any
    log_prior: np.ndarray  # (K,): log of the class probabilities
    efficiency: float | None = None  # effective draws of a sampler per draw; None where the components are no draws

    # -- to be written -----------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def read(self, X) -> Rows:
        """Return the rows as one array per block of the components."""

    @abc.abstractmethod
    def nothing(self) -> Rows:
        """Return one row without entries."""

    @abc.abstractmethod
    def log_density(self, rows: Rows) -> np.ndarray:
        """Return log p(x | t = k, data), shape (n, K), missing entries integrated out."""

    @abc.abstractmethod
    def components(self, draws: int | None = None, even: bool = False) -> Components:
        """Return the mixture; so many ``draws`` stand for a sampled posterior, by default all of them."""

    @abc.abstractmethod
    def drawn(self, rows: Rows, codes, fitted, rng) -> Iterator[Components]:
        """Yield single members under draws of their parameters given what is known, as `filled_together` has it."""

    @abc.abstractmethod
    def knows(self, rows: Rows, codes) -> bool:
        """Return True if these are the rows and classes of the fit, as sums and sums of squares show."""

    @abc.abstractmethod
    def log_probability(self, given: Given, entry: Entry | None = None, along: Along | None = None) -> np.ndarray:
        """Return the reported log class probabilities of rows, (K, n), or along the values of an entry, (K, E, Q)."""

    def valued(self) -> Components:
        """Return the mixture by which entries are valued: a part that stands for the whole."""
        return self.components(_VALUES)

    def blocks(self, rows: Rows) -> Mapping[str, np.ndarray]:
        """Return the rows by block of the schema."""
        return rows

    def check(self, rows: Rows, question: str) -> None:
        """Raise if a question about missing entries has no answer for these rows."""
        refuse_totals(self, question, rows)

    def tails(self, rows: Rows) -> np.ndarray | None:
        """Return P(p(new | k) <= p(x | k)), shape (n, K), or None if there is no formula."""
        return None

    def totals(self) -> Mapping[str, tuple[str, str]]:
        """Return the blocks that are modelled given their total: a column of each, and the name of its density."""
        return {}

    # -- the questions -----------------------------------------------------------------------------------------------

    def column(self, gap: Gap) -> int:
        """Return the place of a gap among the columns of the table."""
        schema = self.classifier.schema_
        (name,) = (block.columns[gap.place] for block in schema.blocks if block.name == gap.block)
        return schema.columns.index(name)

    def draw(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw ``count`` rows of each class from the posterior predictive, class by class, each from own parameters."""
        codes = np.repeat(np.arange(len(self.log_prior)), count)
        return self.components(even=True).draw(self.nothing(), codes, rng)

    def expected(self, rows: Rows, codes) -> Rows:
        """Return the rows with the expected value of each missing entry filled in, given their classes where known."""
        components, result = self.components(_MEANS), {name: v.copy() for name, v in rows.items()}
        flat = {name: v.reshape(len(v), -1) for name, v in result.items()}
        incomplete = _incomplete(rows)
        for piece in pieces(len(incomplete), components.groups * max(v.shape[1] for v in flat.values()), DENSITIES):
            chosen = incomplete[piece]
            for entry in components.given(select_rows(rows, chosen), taken(codes, chosen)).entries():
                flat[entry.gap.block][chosen[entry.gap.rows], entry.gap.place] = entry.expected()
        return result

    def filled(self, rows: Rows, codes, draws: int, rng: np.random.Generator) -> Iterator[Rows]:
        """Yield the rows ``draws`` times, missing entries drawn, the rows independent given the fit."""
        components, effective = self.components(), np.full(count_rows(rows), np.inf)
        tables = [{name: v.copy() for name, v in rows.items()} for _ in range(draws)]
        incomplete = _incomplete(rows)
        for piece in pieces(len(incomplete), components.groups, DENSITIES):
            chosen = incomplete[piece]
            given = components.given(select_rows(rows, chosen), taken(codes, chosen))
            effective[chosen] = 1 / (given.chance.sum(1) ** 2).sum(0)
            _, groups = given.choose(rng, (draws,))
            again = select_rows(given.rows, np.tile(np.arange(len(chosen)), draws))
            for name, drawn in components.fill(again, [group.ravel() for group in groups], rng).items():
                for table, one in zip(tables, np.split(drawn, draws), strict=True):
                    table[name][chosen] = one
        if self.efficiency is not None:
            effective *= self.efficiency
            self.warn_of_few(effective, f"values of {(effective < FEWEST).sum()} of {len(effective)} rows")
        yield from tables

    def filled_together(self, rows: Rows, codes, draws: int, rng: np.random.Generator, fitted) -> Iterator[Rows]:
        """Yield the rows ``draws`` times, missing entries drawn, all rows of a table under the same parameters.

        ``codes`` (n,) are the classes of the rows where they are known, ``fitted`` (n,) those at the fit where they are
        its rows; else None.
        """
        drawn = self.drawn(rows, codes, fitted, rng)
        for _ in range(draws):
            yield next(drawn).complete(rows, codes, rng)[0]

    def measured(self, rows: Rows) -> Iterator[Measured]:
        """Yield the class probabilities at the possible values of each missing entry, some entries at a time.

        These are the places of E entries, as rows and columns, the log class probabilities now (K, E) and at Q possible
        values of each entry (K, E, Q), and the probabilities of these values (E, Q).
        """
        components, incomplete = self.valued(), _incomplete(rows)
        for piece in pieces(len(incomplete), components.nodes, 2 * CELLS):
            chosen = incomplete[piece]
            given = components.given(select_rows(rows, chosen))
            now = self.log_probability(given)
            for entry in given.entries():
                gap, along = entry.gap, entry.along()
                weight = softmax(logsumexp(along.log_joint, axis=0) + along.log_width, axis=1)
                then = self.log_probability(given, entry, along)
                yield (chosen[gap.rows], self.column(gap)), now[:, gap.rows], then, weight

    def member_chances(self, components: Components, rows: Rows, codes) -> np.ndarray:
        """Return p(m | all observed entries of all rows), (M,)."""
        total = components.log_member.copy()
        for piece in pieces(count_rows(rows), components.groups, DENSITIES):
            total += components.log_total(select_rows(rows, piece), taken(codes, piece))
        return softmax(total)

    def warn_of_few(self, effective, what: str) -> None:
        """Warn where values rest on few effective draws of a sampler, (n,), by rows or of all rows together."""
        few = effective < FEWEST
        if few.any():
            cure = more_draws(self.classifier.posterior_.model.conjugate)
            text = f"{what} rest on fewer than {FEWEST} effective draws of the parameters, and are rough: "
            warn(FewDrawsWarning(text, *cure, rows=few))


def joint_of(classifier, question: str) -> Joint:
    """Return the joint density of a fitted classifier; raise if it has none."""
    classifier = fitted_of(classifier)
    if not isinstance(classifier, FittedDensity):
        raise ValueError(f"{question} asks for the density of a row: it needs a generative classifier")
    return classifier.joint()


def gibbs(start: Components, learned: Callable, rows: Rows, codes, rng, seen, known) -> Iterator[Components]:
    """Alternate rows given parameters and parameters given rows; yield draws that hardly correlate.

    A single member starts under any parameters; ``learned`` takes completed rows, their classes and their groups to the
    member under a draw of its parameters. Entries that are not ``seen`` (n, columns) are drawn, and classes where
    ``codes`` are None; the parameters learn from ``known`` rows of each class (K,) besides these.
    """
    rounds, components = rounds_apart(seen, codes, known), start
    while True:
        for _ in range(rounds):
            components = learned(*components.complete(rows, codes, rng))
        yield components


def _incomplete(rows: Rows) -> np.ndarray:
    return np.flatnonzero(np.any([np.isnan(v.reshape(len(v), -1)).any(1) for v in rows.values()], axis=0))


def refuse_totals(joint: Joint, question: str, rows: Rows | None = None) -> None:
    """Raise if a leaf is modelled given its total; with ``rows``, only if an entry, and so the total, is missing."""
    blocks = None if rows is None else joint.blocks(rows)
    for name, (column, kind) in joint.totals().items():
        if blocks is None or np.isnan(blocks[name]).any():
            raise ValueError(
                f"{question} has no answer for {name!r} (columns such as {column!r}): its model is a {kind}"
                + ("; leave these columns out of the fit" if rows is None else ", and entries are missing")
            )


@np.errstate(under="ignore")
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
    classifier = density.classifier
    check_count("draws", draws, 0)
    check_flag("joint", joint)
    if joint and not draws:
        raise ValueError("joint=True is about draws: give draws=, the number of tables")
    rows, rng = density.read(X), generator(classifier.random_state)
    count = count_rows(rows)
    codes = _only_class(classifier, count) if y is None else codes_of(y, classifier.classes_, count)
    density.check(rows, "impute()")
    if not draws:
        return _table(classifier, X, density.blocks(density.expected(rows, codes)))
    if joint:
        fitted = codes if codes is not None and density.knows(rows, codes) else None
        tables = list(density.filled_together(rows, codes, draws, rng, fitted))
    else:
        tables = list(density.filled(rows, codes, draws, rng))
    return [_table(classifier, X, density.blocks(table)) for table in tables]


@np.errstate(under="ignore")
def draw_table(classifier, X, fitted=None):
    """Return rows of unknown class with missing entries drawn: rows of the fit, of classes ``fitted``, under one θ."""
    density = joint_of(classifier, "impute()")
    classifier = density.classifier
    rows, rng = density.read(X), generator(classifier.random_state)
    density.check(rows, "impute()")
    codes = _only_class(classifier, count_rows(rows))
    if fitted is not None and len(fitted) == count_rows(rows) and density.knows(rows, fitted):
        (table,) = density.filled_together(rows, codes, 1, rng, fitted)
    else:
        (table,) = density.filled(rows, codes, 1, rng)
    return _table(classifier, X, density.blocks(table))


def _only_class(classifier, count: int):
    """Return the codes of rows where there is one class; else None."""
    return np.zeros(count, np.intp) if len(classifier.classes_) == 1 else None


def _table(classifier, X, rows):
    """Return rows in the form of the fit, with the index of X."""
    result = classifier.like_fit(classifier.schema_.write(rows))
    if hasattr(result, "index") and hasattr(X, "index") and not callable(X.index):
        result.index = X.index
    return result
