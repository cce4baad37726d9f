r"""Sequences of categories: a Markov chain of order 0 to 3 under Dirichlet priors.

A row is a sequence of symbols, of a length of its own. With c_i the context of the i-th symbol, which is the m symbols
before it, or all of them where these are fewer,

.. math:: \theta_c \sim \mathrm{Dirichlet}(\alpha_c), \qquad
   p(x_1, \dots, x_L \mid L, \theta) = \prod_{i=1}^{L} \theta_{c_i x_i}

so the initial distribution is the row of the empty context, and the transition matrix has a row for each other context.
Everything is conditional on the length, as a document of a `DirichletMultinomial` is: it says nothing of the class.

Each context is a die: counts of its symbols make the posterior Dirichlet(alpha_c + n_c), evidence, MAP and ML those of
`DirichletCategorical`, which order 0 is (`docs/mathematics/markov-chain.md`). The predictive of a row is its evidence.

**Gaps.** Missing symbols at the end of a row drop out, and every one under order 0. Others are summed out by a forward
recursion given the parameters (`bayesgen.models.sequences`), so the posterior is a mixture of Dirichlets over the ways
to complete the rows. The evidence, and the predictive of a row, add them up one by one where they are few. ML and MAP
go by expectation-maximisation (Baum, Petrie, Soules and Weiss 1970), NUTS by the recursion.
(Murphy 2012, *Machine Learning: A Probabilistic Perspective*, section 17.2.)
"""

import functools
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from bayesgen.core import program
from bayesgen.core.errors import DataError, NoClosedForm, listed, refuse_where
from bayesgen.core.program import static
from bayesgen.models.categorical import labels, log_evidence_of_counts, shares
from bayesgen.models.leaf import LOG_ZERO, Hyperparameter, hyperparameter
from bayesgen.models.model import check_total, revised
from bayesgen.models.sequences import ChainStatistics, Contexts, earlier, sequence_distribution
from bayesgen.models.symbols import END, Symbols
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.newton import fixed_point
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.special import log_sum_groups, namespace

_LARGEST = 1_000_000  # entries of the transition matrix
_STILL = 1e-12  # distance from the maximum at the end of expectation-maximisation


@dataclass(frozen=True, eq=False)
class MarkovChain(Symbols):
    """Sequences of categories, each drawn given the ``order`` ones before it, with Dirichlet(alpha) priors.

    Rows are texts, lists or tuples of symbols, such as "GATTACA"; or arrays (n, L) of codes 0..V-1, NaN where a symbol
    is missing, -1 behind the end. In a table the sequence is a column, ``features={"dna": MarkovChain("ACGT")}``.

    Parameters
    ----------
    categories : int or sequence
        The symbols, or their number V; a text is its characters.
    order : {0, 1, 2, 3}, default 1
        Number of symbols before that a symbol depends on.
    alpha : float or array, shape (V,) or (contexts, V), default 1.0
        Prior count of each symbol in each context, > 0. Contexts come by length, then in the order of the symbols; see
        ``contexts``. An array (V,) holds for every context.
    separator : str, optional
        Text between the symbols of a text, such as " "; by default each character is a symbol.
    gap : str, optional
        Symbol that stands for a missing one, such as "N". In lists None and NaN do so, too.
    length : int, default 20
        Length of the sequences that are drawn; observed ones have their own.

    Examples
    --------
    >>> chain = MarkovChain("ab", order=1)
    >>> posterior = chain.update(chain.statistics(["aab", "abab"]))
    >>> dict(zip(chain.contexts, posterior.mean.round(2).tolist()))
    {'^': [0.75, 0.25], 'a': [0.33, 0.67], 'b': [0.67, 0.33]}
    >>> np.exp(posterior.log_predictive(["ab", "ba"])).round(3)
    array([0.5  , 0.167])
    """

    categories: Any = static()
    order: int = static(default=1)
    alpha: Hyperparameter = hyperparameter(1.0, rank=2, positive=True)
    separator: str | None = static(default=None)
    gap: str | None = static(default=None)
    length: int = static(default=20)

    event_dim = 1
    _column_kind = "O"
    density_kind = "probability given the length"
    site_dims = {"probability": ("context", "category")}

    def __post_init__(self):
        if isinstance(self.order, bool) or self.order not in (0, 1, 2, 3):
            raise ValueError(f"MarkovChain: order must be 0, 1, 2 or 3, got {self.order!r}")
        check_count("MarkovChain: length", self.length)
        object.__setattr__(self, "categories", labels("MarkovChain", self.categories))
        count = len(self.categories)
        if self.gap is not None and self.gap in self.categories:
            raise ValueError(f"MarkovChain: gap {self.gap!r} is one of the categories: it cannot mark a missing symbol")
        if self.separator is not None and (not isinstance(self.separator, str) or not self.separator):
            raise ValueError(f"MarkovChain: separator must be a text, or None for none; got {self.separator!r}")
        if count ** (self.order + 1) > _LARGEST:
            raise ValueError(
                f"MarkovChain: {count} categories and order {self.order} make {count}^{self.order + 1} probabilities; "
                "take a lower order, or gather rare symbols in one"
            )
        shape, alpha = (len(self._chain.tuples), count), self.alpha
        if np.ndim(alpha) < 2 or np.shape(alpha)[-2:] != shape:
            try:
                alpha = namespace(alpha).broadcast_to(alpha, shape)
            except (ValueError, TypeError):
                raise ValueError(
                    f"MarkovChain: alpha must be a number, or have one entry for each of the {count} categories, or "
                    f"the shape {shape} (contexts, categories); got {np.shape(alpha)}"
                ) from None
            object.__setattr__(self, "alpha", alpha)
        super().__post_init__()
        with np.errstate(over="ignore"):
            check_total(self, "the entries of alpha", self.alpha.sum(-1))

    @functools.cached_property
    def _chain(self) -> Contexts:
        return Contexts.of(len(self.categories), self.order)

    @property
    def contexts(self) -> list[str]:
        """Names of the contexts: the symbols before, after "^" where the row begins with them."""
        plain = all(isinstance(c, str) and len(c) == 1 for c in self.categories)
        between = self.separator or ("" if plain else " ")

        def name(context):
            return "^" * (len(context) < self.order) + between.join(str(self.categories[v]) for v in context)

        return [name(context) for context in self._chain.tuples]

    def coords(self):
        return {"context": self.contexts, **super().coords()}

    # -- rows --------------------------------------------------------------------------------------------------------

    def for_table(self, columns, table):
        """Return itself, or raise unless there is one column."""
        if len(columns) > 1:
            raise ValueError(f"a MarkovChain models one column of sequences, got {listed(columns)}; give each its own")
        return self

    def read_columns(self, table, columns, unseen=None):
        """Return the codes (n, L) of a column of sequences."""
        new = None if unseen is None else {}
        try:
            rows = self._encode(table.labels(columns[0]), new)
        except DataError as error:
            raise error.with_names((), columns) from None
        if new and unseen is not None:
            unseen[columns[0]] = new
        return rows

    def write_columns(self, rows):
        """Return the column of sequences."""
        return [self._decode(rows)]

    def _shaped(self, x):
        if not sparse.issparse(x) and (not hasattr(x, "dtype") or x.dtype.kind not in "biuf"):
            if isinstance(x, str):
                raise TypeError(f"MarkovChain takes many sequences, [{x!r:.20}], where one was given")
            x = self._encode(x)
        return super()._shaped(x)

    def check(self, x):
        """Return codes 0..V-1, NaN where missing and -1 behind the end of a row, or raise."""
        x = np.asarray(super().check(x), float)
        count, ended = len(self.categories), x == END
        bad = ~(np.isnan(x) | ended | ((x >= 0) & (x < count) & (x == np.floor(x))))
        if bad.any():
            row, place = map(int, np.argwhere(bad)[0])
            problem = f"no code 0..{count - 1}, nor -1, which is its end"
            raise DataError(f"row {row} has {x[row, place]:g} at place {place}: {problem}", row=row)
        if len(x) and ended[:, 0].any():
            row = int(ended[:, 0].argmax())
            raise DataError(f"row {row} is an empty sequence; give NaN where it is missing, or leave it out", row=row)
        after = ended[:, :-1] & ~ended[:, 1:]
        if after.any():
            row = int(after.any(1).argmax())
            raise DataError(f"row {row} goes on behind its end, -1", row=row)
        return x

    def _missing(self, x):
        return (np.isnan(x) | (x == END)).all(-1)

    def _codes(self, x) -> np.ndarray:
        return np.where(np.isnan(x), len(self.categories), x).astype(np.intp)

    def _counts(self, found) -> sparse.csr_array:
        """Return the counts (n, contexts * V) of what `Contexts.look_up` found."""
        row, place = np.nonzero(found >= 0)
        shape = len(found), math.prod(self.alpha.shape[-2:])
        return sparse.csr_array((np.ones(len(row)), (row, found[row, place])), shape)

    def sufficient_statistic(self, x, about=0.0):
        """Return the counts of each (context, symbol) of rows without a gap."""
        return self._counts(self._chain.look_up(self._codes(x))[0]).toarray()

    def natural_parameters(self, params, about=0.0):
        """Return the log probability of each symbol in each context, side by side."""
        log_p = super().natural_parameters(params)
        return log_p.reshape(*log_p.shape[:-2], -1)

    def sum_rows(self, x, rows):
        """Count symbols by context and group; what a gap hides is kept as stretches."""
        x = self.check(x)
        width, weights = math.prod(self.alpha.shape[-2:]), {}
        sums = np.zeros((rows.count, width))
        for piece in pieces(len(x), x.shape[1]):
            codes, grouping = self._codes(x[piece]), rows[piece]
            found, before = self._chain.look_up(codes)
            sums += grouping.membership() @ self._counts(found)
            for row, stretch in self._chain.stretches(codes, before):
                weight = weights.setdefault(stretch, np.zeros(rows.count))
                weight[grouping.codes[row]] += 1.0 if grouping.weight is None else grouping.weight[row]
        weights = {stretch: weight.reshape(rows.lead) for stretch, weight in weights.items()}
        return ChainStatistics.of(sums.reshape(*rows.lead, width), weights)

    # -- the program -------------------------------------------------------------------------------------------------

    def parameters(self):
        prior = program.dist.Dirichlet(self.alpha).to_event(1)
        return {"probability": program.numpyro.sample("probability", prior)}

    def likelihood(self, params):
        return sequence_distribution()(params["probability"], self.order, params.get("length", self.length))

    def _density_of(self, params, x=None):
        if x is None:
            return self.likelihood(params), None
        jnp, count = program.jnp, len(self.categories)
        codes = jnp.where(jnp.isnan(x), count, x).astype(int) if jnp.issubdtype(x.dtype, jnp.floating) else x
        return self.likelihood({**params, "length": x.shape[-1]}), codes

    def draw(self, params, rng):
        p, chain = np.asarray(params["probability"]), self._chain
        cumulative = np.cumsum(p, axis=-1)[..., :-1]
        cell, result = np.full(p.shape[:-2], chain.cell[0]), np.empty((*p.shape[:-2], self.length))
        for i in range(self.length):
            bounds = np.take_along_axis(cumulative, chain.place[cell][..., None, None], -2)[..., 0, :]
            result[..., i] = symbol = (rng.random((*cell.shape, 1)) > bounds).sum(-1)
            cell = chain.after(cell, symbol)
        return result

    def fill(self, x, group, rng, params=None):
        raise NoClosedForm("MarkovChain sums missing symbols out and does not draw them")

    def log_likelihood(self, params, statistics):
        result = super().log_likelihood(params, statistics)
        if len(statistics.stretches):
            logs = self._chain.log_stretches(params["probability"], statistics.stretches)
            result = result + (statistics.weights * logs).sum()
        return result

    def log_likelihood_rows(self, params, x):
        p, chain, codes = params["probability"], self._chain, self._codes(x)
        found, before = chain.look_up(codes)
        lead = p.shape[:-2]
        result = (self._counts(found) @ self.natural_parameters(params).reshape(-1, p.shape[-2] * p.shape[-1]).T).T
        if cut := list(chain.stretches(codes, before)):
            weights: dict = {}
            for row, stretch in cut:
                weights.setdefault(stretch, np.zeros(len(x)))[row] += 1.0
            kept = ChainStatistics.of(np.zeros((len(x), 1)), weights)
            flat = p.reshape(-1, *p.shape[-2:])
            for piece in pieces(len(flat), len(kept.stretches) * len(chain.place) * p.shape[-1]):
                result[piece] += chain.log_stretches(flat[piece], kept.stretches) @ kept.weights.T
        result[result < LOG_ZERO / 2] = -np.inf
        return result.reshape(*lead, len(x))

    # -- the algebra -------------------------------------------------------------------------------------------------

    def has_closed_form(self, statistics):
        """Return True if no row has a gap before its last symbol, or a gap says nothing, as under order 0."""
        return not len(statistics.stretches)

    def start_from(self, statistics):
        """Return the posterior of the symbols whose context is known: of all, where no row has a gap."""
        return self._counted(statistics.total())

    def update(self, statistics) -> Self:
        if not self.has_closed_form(statistics):
            raise DataError(
                "rows lack symbols before their last one, so the posterior is a mixture over the ways to complete "
                "them; use 'map', 'ml' or 'nuts'"
            )
        return self._counted(statistics.total())

    def _by_context(self, counts):
        return counts.reshape(*counts.shape[:-1], *self.alpha.shape[-2:])

    def _counted(self, counts) -> Self:
        return revised(self, alpha=self.alpha + self._by_context(counts))

    def log_evidence_terms(self, statistics):
        """Return the log evidence of each group; over gaps the sum of those of all completions, where these are few."""
        if len(statistics.stretches):
            alpha = np.broadcast_to(self.alpha, (*statistics.sums.shape[:-1], *self.alpha.shape[-2:]))
            groups = zip(alpha.reshape(-1, *alpha.shape[-2:]), statistics.completed(self._chain), strict=True)
            each = ((log_evidence_of_counts(prior, self._by_context(s)).sum(-1), times) for prior, (s, times) in groups)
            terms = [logsumexp(levels, b=times) for levels, times in each]
            return np.array(terms).reshape(statistics.sums.shape[:-1])
        return log_evidence_of_counts(self.alpha, self._by_context(statistics.total())).sum(-1)

    def log_predictive(self, x):
        """Return log p(row) with the parameters integrated out, symbol by symbol given those before it in the row.

        Missing symbols are summed out over all completions of the row, `bayesgen.models.sequences.MOST` at most.
        """
        x = self.check(self._shaped(x))
        codes, groups, result = self._codes(x), self._groups(x), []
        for piece in pieces(len(x), x.shape[1] * max(1, math.prod(groups))):
            rows, owner = self._completed(codes[piece])
            terms = self._log_predictive_of(rows)
            first = np.searchsorted(owner, np.arange(len(codes[piece])))
            result.append(terms if len(rows) == len(first) else log_sum_groups(terms, first))
        xp = namespace(self.alpha)
        return xp.concatenate(result or [np.zeros((0, math.prod(groups)))]).reshape(len(x), *groups)

    def _completed(self, codes) -> tuple[np.ndarray, np.ndarray]:
        """Return every row in all its completions, and the place of the row that each belongs to."""
        chain, rows, owner = self._chain, [codes], [np.arange(len(codes))]
        _, before = chain.look_up(codes)
        cut = sorted({row for row, _ in chain.stretches(codes, before)})
        if not cut:
            return codes, owner[0]
        whole = np.ones(len(codes), bool)
        for row in cut:
            whole[row], symbols = False, codes[row].copy()
            last = np.flatnonzero((symbols >= 0) & (symbols < chain.count))[-1]
            symbols[last + 1 :] = END
            rows.append(chain.completions(symbols))
            owner.append(np.full(len(rows[-1]), row))
        rows[0], owner[0] = codes[whole], owner[0][whole]
        order = np.argsort(np.concatenate(owner), kind="stable")
        return np.concatenate(rows)[order], np.concatenate(owner)[order]

    def _log_predictive_of(self, codes):
        """Return the log predictive of rows whose gaps hide nothing, (n, groups)."""
        found, _ = self._chain.look_up(codes)
        count, xp = len(self.categories), namespace(self.alpha)
        seen, context = found >= 0, np.where(found >= 0, found // count, -1)
        alpha = self.alpha.reshape(-1, math.prod(self.alpha.shape[-2:]))
        total = self.alpha.sum(-1).reshape(-1, self.alpha.shape[-2])
        counts = alpha[:, np.maximum(found, 0)] + earlier(found)
        totals = total[:, np.maximum(context, 0)] + earlier(context)
        return xp.where(seen, xp.log(counts) - xp.log(totals), 0.0).sum(-1).T

    def ml(self, statistics):
        """Return the share of each symbol in each context, by expectation-maximisation where rows have gaps."""
        seen = statistics.total().sum(-1) + statistics.weights.sum(-1)
        refuse_where(seen == 0, "maximum likelihood does not exist: no observed symbol")
        return self._maximise(statistics, lambda counts: shares(self._by_context(counts)))

    def map(self, statistics):
        return self._maximise(statistics, lambda counts: self._counted(counts).mode()["probability"])

    def _maximise(self, statistics, best):
        """Alternate ``best``, probabilities of the most likely kind given counts, and expected counts given these."""
        if not len(statistics.stretches):
            return {"probability": best(statistics.total())}

        def advance(p):
            new = best(statistics.total() + self._chain.expected(p, statistics.stretches, statistics.weights))
            return new, float(np.abs(new - p).max())

        problem = "no maximum was reached over the missing symbols; use 'nuts', or a stronger prior with 'map'"
        return {"probability": fixed_point(advance, self._counted(statistics.total()).mean, _STILL, problem)}
