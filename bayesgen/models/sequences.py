r"""Sequences of categories as arrays of codes: contexts of a Markov chain, gaps, and the sums that are kept of rows.

A row is coded as ``0 .. V-1`` for its symbols, V where a symbol is missing, and -1 behind its end. The **context** of a
symbol is the m symbols before it, m the order of the chain; near the beginning of a row it is shorter, and then also
says so: of two symbols a and b and order 2 the contexts are ^, ^a, ^b, aa, ab, ba, bb.

Where a row has no gap, counts of (context, symbol) say all. A missing symbol hides its own count and those of the next
m symbols. Rows are therefore cut: what lies between a missing symbol and the m-th known one after it is a **stretch**,
whose probability given the context before it, the missing symbols summed out, is a forward recursion over contexts
(`docs/mathematics/markov-chain.md`). All other symbols are counted. Missing symbols at the end of a row sum to 1 and
are left out. A missing symbol has no effect under order 0.
"""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesgen.core import program
from bayesgen.core.errors import DataError, NoClosedForm
from bayesgen.core.statistics import NOT_THERE, PlainSums, added
from bayesgen.models.leaf import log_or_floor
from bayesgen.models.symbols import END
from bayesgen.numerics.special import namespace

MOST = 10_000  # ways to complete a row, or the rows of a class, that are summed one by one


@dataclass(frozen=True)
class Contexts:
    """Contexts of a chain over V symbols, and their places in the cube of the last m of V symbols or "none yet"."""

    count: int  # count, order: number of symbols V, and m
    order: int
    tuples: tuple[tuple[int, ...], ...]  # the contexts in the order of the parameters, shorter ones first
    place: np.ndarray  # ((V + 1)^m,): context of each cell of the cube; their number where a cell is none
    cell: np.ndarray  # (contexts,): cell of each context

    @classmethod
    @functools.cache
    def of(cls, count: int, order: int) -> "Contexts":
        """Return the contexts of a chain; equal ones are one object."""
        tuples = [c for m in range(order + 1) for c in itertools.product(range(count), repeat=m)]
        digits = [(count,) * (order - len(c)) + c for c in tuples]
        cell = np.array([sum(d * (count + 1) ** j for j, d in enumerate(reversed(row))) for row in digits], np.intp)
        place = np.full((count + 1) ** order, len(tuples), np.intp)
        place[cell] = np.arange(len(tuples))
        return cls(count, order, tuple(tuples), place, cell)

    def after(self, cell, symbol):
        """Return the cell of the context that follows when ``symbol`` comes after a context."""
        return (cell % (self.count + 1) ** (self.order - 1)) * (self.count + 1) + symbol if self.order else cell

    def look_up(self, codes, cell=None) -> tuple[np.ndarray, np.ndarray]:
        """Return the place at which each symbol is counted, and the cell of the context before it; both (n, L).

        The place is context * V + symbol; it is -1 where a symbol is not counted. ``cell`` is that before the first
        symbol, by default that of the beginning of a row.
        """
        found, before = np.full(codes.shape, -1), np.zeros(codes.shape, np.intp)
        cell = np.full(len(codes), self.cell[0] if cell is None else cell)
        hidden = np.zeros(len(codes), np.intp)  # symbols until the context is known again
        for i, symbol in enumerate(codes.T):
            before[:, i] = cell
            known = (symbol >= 0) & (symbol < self.count)
            seen = known & (hidden == 0)
            found[seen, i] = self.place[cell[seen]] * self.count + symbol[seen]
            hidden = np.where(symbol == self.count, self.order, np.maximum(hidden - 1, 0))
            cell = self.after(cell, np.where(known, symbol, 0))
        return found, before

    def stretches(self, codes, before) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the row of each stretch, and the stretch: the cell before it, then its symbols."""
        gone, known = codes == self.count, (codes >= 0) & (codes < self.count)
        ends = np.where(known.any(1), codes.shape[1] - np.argmax(known[:, ::-1], 1), 0)
        gone &= np.arange(codes.shape[1]) < ends[:, None]
        for row in np.flatnonzero(gone.any(1)) if self.order else ():
            lost = np.flatnonzero(gone[row])
            for run in np.split(lost, np.flatnonzero(np.diff(lost) > self.order) + 1):
                stop = min(run[-1] + self.order + 1, ends[row])
                yield int(row), (int(before[row, run[0]]), *codes[row, run[0] : stop].tolist())

    def cube(self, p):
        """Return the probabilities (..., contexts, V) by cell of the cube, 0 where a cell is no context."""
        xp = namespace(p)
        return xp.concatenate([p, xp.zeros_like(p[..., :1, :])], axis=-2)[..., self.place, :]

    def step(self, cube, state, symbol):
        """Return the joint probability (..., cells, V) of context and symbol, from that of contexts (..., cells)."""
        xp = namespace(cube, state, symbol)
        allowed = (symbol[..., None] == xp.arange(self.count)) | (symbol[..., None] == self.count)
        return state[..., None] * cube * allowed[..., None, :]

    def move(self, joint):
        """Return the probability of each context after a symbol, from the joint of the context before it and it."""
        xp = namespace(joint)
        if not self.order:
            return joint.sum((-2, -1))[..., None]
        lead, count = joint.shape[:-2], self.count
        joint = joint.reshape(*lead, count + 1, -1, count).sum(-3)
        none = xp.zeros_like(joint[..., :1])
        return xp.concatenate([joint, none], axis=-1).reshape(*lead, -1)

    def log_probability(self, p, state, symbols):
        """Return the log probability of symbols (..., L), missing ones summed out. NumPy or JAX.

        ``p`` are the probabilities (..., contexts, V), ``state`` that of each cell before the first symbol.
        """
        xp, cube = namespace(p, symbols), self.cube(p)
        lead = np.broadcast_shapes(p.shape[:-2], state.shape[:-1], symbols.shape[:-1])

        def forward(carry, symbol):
            state, log = carry
            new = self.move(self.step(cube, state, symbol))
            total = new.sum(-1)
            there = symbol != END
            log = log + xp.where(there, log_or_floor(total), 0.0)
            new = new / xp.where(total > 0, total, 1.0)[..., None]
            return (xp.where(there[..., None], new, state), log), None

        carry = xp.broadcast_to(state, (*lead, state.shape[-1])) + 0.0 * p.sum(), xp.zeros(lead) + 0.0 * p.sum()
        symbols = xp.moveaxis(symbols, -1, 0)
        if xp is not np:
            return program.jax.lax.scan(forward, carry, symbols)[0][1]
        for symbol in symbols:
            carry, _ = forward(carry, symbol)
        return carry[1]

    def log_stretches(self, p, stretches):
        """Return the log probability of each stretch (s, 1 + L) under probabilities (..., contexts, V): (..., s)."""
        xp = namespace(p, stretches)
        start = (stretches[:, :1] == xp.arange(len(self.place))) * 1.0
        return self.log_probability(p[..., None, :, :], start, stretches[:, 1:])

    def expected(self, p, stretches, weights) -> np.ndarray:
        """Return the expected counts (..., contexts * V) of stretches (s, 1 + L) of weights (..., s).

        They come from probabilities (..., contexts, V) by a forward and a backward recursion.
        """
        cube, count = self.cube(p)[..., None, :, :], self.count
        states = [(stretches[:, :1] == np.arange(len(self.place))) * np.ones((*p.shape[:-2], 1, 1))]
        symbols = stretches[:, 1:].T
        for symbol in symbols:
            new = self.move(self.step(cube, states[-1], symbol))
            total = new.sum(-1, keepdims=True)
            states.append(np.where(symbol[:, None] != END, new / np.where(total > 0, total, 1.0), states[-1]))
        later, result = np.ones_like(states[0]), np.zeros((*p.shape[:-2], len(self.place), count))
        for symbol, state in zip(symbols[::-1], states[-2::-1], strict=True):
            there = symbol != END
            ahead = later.reshape(*later.shape[:-1], 1, -1, count + 1)[..., :count]
            ahead = np.broadcast_to(ahead, (*ahead.shape[:-3], count + 1, *ahead.shape[-2:]))
            ahead = ahead.reshape(*later.shape, count)
            joint = self.step(cube, state, symbol) * ahead
            total = joint.sum((-2, -1), keepdims=True)
            joint = joint / np.where(total > 0, total, 1.0)
            result += ((weights * there)[..., None, None] * joint).sum(-3)
            back = self.step(cube, np.ones_like(state), symbol) * ahead
            back = back.sum(-1)
            later = np.where(there[:, None], back / back.max(-1, keepdims=True).clip(1e-300), later)
        return result[..., self.cell, :].reshape(*p.shape[:-2], -1)

    def completions(self, codes) -> np.ndarray:
        """Return every way to complete one row (L,), (ways, L); raise where there are more than `MOST`."""
        lost = np.flatnonzero(codes == self.count)
        if self.count ** len(lost) > MOST:
            raise DataError(
                f"a row lacks {len(lost)} of its symbols before the last one that it has: {self.count}^{len(lost)} "
                f"ways to complete it exceed the {MOST:,} that are summed one by one; use 'map' or 'nuts', where "
                "they are summed under known parameters"
            )
        result = np.repeat(codes[None], self.count ** len(lost), axis=0)
        result[:, lost] = list(itertools.product(range(self.count), repeat=len(lost)))
        return result


@dataclass(frozen=True, eq=False)
class ChainStatistics(PlainSums):
    """Counts of (context, symbol), and the stretches with a gap."""

    sums: np.ndarray  # (groups..., contexts * V): weighted counts of the symbols whose context is known
    # (s, 1 + L): distinct stretches, sorted: the cell before the first symbol, then codes, -1 behind the end
    stretches: np.ndarray
    weights: np.ndarray  # (groups..., s): weight of each stretch in each group

    base = 0.0

    @classmethod
    def of(cls, sums, weights: dict[tuple[int, ...], np.ndarray]) -> "ChainStatistics":
        """Return the statistics of counts and of stretches with their weights by group."""
        kept = sorted(stretch for stretch, weight in weights.items() if weight.any())
        width = max(map(len, kept), default=0)
        stretches = np.array([(*s, *(END,) * (width - len(s))) for s in kept], np.intp).reshape(len(kept), width)
        stacked = np.stack([weights[s] for s in kept], -1) if kept else np.zeros((*sums.shape[:-1], 0))
        return cls(sums, stretches, stacked)

    def by_stretch(self) -> dict[tuple[int, ...], np.ndarray]:
        """Return the weights by stretch."""
        names = [tuple(s[: 1 + (s[1:] != END).sum()].tolist()) for s in self.stretches]
        return {name: self.weights[..., j] for j, name in enumerate(names)}

    def of_total(self, total, centre) -> "ChainStatistics":
        """Return the statistics of other rows without gaps, in any groups, from their counts."""
        return ChainStatistics.of(total, {})

    def _with(self, other, sign):
        if not isinstance(other, ChainStatistics) or self.sums.shape != other.sums.shape:
            return super()._with(other, sign)
        weights = self.by_stretch()
        for stretch, weight in other.by_stretch().items():
            weights[stretch] = added(weights.get(stretch, 0.0), weight, sign)
        return ChainStatistics.of(added(self.sums, other.sums, sign), weights)

    def without(self, gone, signed=False):
        kept = self - gone
        if (kept.sums < 0).any() or (kept.weights < 0).any():
            raise ValueError(f"{NOT_THERE}: a count would be below 0")
        return kept

    def scaled(self, factor):
        return ChainStatistics(self.sums * factor, self.stretches, self.weights * factor)

    def completed(self, contexts: Contexts) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return, for each group, the counts of every way to complete its rows, (ways, dim), and how often each occurs.

        Raise `NoClosedForm` where there are more than `MOST` ways, or weights that are no whole numbers.
        """
        dim, result = self.sums.shape[-1], []
        weights = self.weights.reshape(-1, len(self.stretches))
        for counted, weight in zip(self.sums.reshape(-1, dim), weights, strict=True):
            sums, times = counted[None], np.ones(1)
            for stretch, often in zip(self.stretches, weight, strict=True):
                if often != np.floor(often):
                    raise NoClosedForm("rows with gaps and a weight that is no whole number have no evidence")
                found, _ = contexts.look_up(contexts.completions(stretch[1:]), stretch[0])
                counts = np.zeros((len(found), dim + 1))
                np.add.at(counts, (np.arange(len(found))[:, None], found), 1.0)  # -1, the end, is the last column
                for _ in range(int(often)):
                    if len(sums) * len(counts) > MOST:
                        raise NoClosedForm(
                            f"the gaps of the rows of a class have more than {MOST:,} completions, over which their "
                            "evidence is a sum"
                        )
                    both = (sums[:, None] + counts[:, :-1]).reshape(-1, dim)
                    sums, place = np.unique(both, axis=0, return_inverse=True)
                    times = np.bincount(place.ravel(), np.repeat(times, len(counts)))
            result.append((sums, times))
        return result


def earlier(codes) -> np.ndarray:
    """Return, for each entry of (n, L), how many entries of its row before it are equal to it."""
    order = np.argsort(codes, axis=1, kind="stable")
    ordered = np.take_along_axis(codes, order, 1)
    places = np.broadcast_to(np.arange(codes.shape[1]), codes.shape)
    fresh = np.ones(codes.shape, bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    rank = places - np.maximum.accumulate(np.where(fresh, places, 0), axis=1)
    result = np.empty_like(rank)
    np.put_along_axis(result, order, rank, 1)
    return result


@functools.cache
def sequence_distribution() -> Any:
    """Return the class of the distribution of sequences, which is made when JAX is first used."""
    dist, jax, jnp = program.dist, program.jax, program.jnp

    class MarkovSequence(dist.Distribution):
        """Sequences of a Markov chain, given their lengths: V is a missing symbol, -1 stands behind the end."""

        arg_constraints = {"probability": dist.constraints.independent(dist.constraints.simplex, 1)}
        pytree_data_fields = ("probability",)
        pytree_aux_fields = ("order", "length")

        def __init__(self, probability, order, length, *, validate_args=None):
            self.probability, self.order, self.length = probability, order, length
            super().__init__(probability.shape[:-2], (length,), validate_args=validate_args)

        @property
        def _chain(self):
            return Contexts.of(self.probability.shape[-1], self.order)

        @dist.constraints.dependent_property(is_discrete=True, event_dim=1)
        def support(self):
            """Codes of symbols."""
            return dist.constraints.independent(dist.constraints.integer_interval(0, self._chain.count - 1), 1)

        def log_prob(self, value):
            """Return the log probability of sequences, missing symbols summed out."""
            start = jnp.zeros(len(self._chain.place)).at[int(self._chain.cell[0])].set(1.0)
            return self._chain.log_probability(self.probability, start, value)

        def sample(self, key, sample_shape=()):
            """Draw symbol by symbol."""
            chain, p = self._chain, self.probability
            shape = (*sample_shape, *self.batch_shape)

            def following(cell, key):
                probability = jnp.take_along_axis(
                    jnp.broadcast_to(p, (*shape, *p.shape[-2:])), jnp.asarray(chain.place)[cell][..., None, None], -2
                )[..., 0, :]
                symbol = jax.random.categorical(key, jnp.log(probability))
                return chain.after(cell, symbol), symbol

            cell = jnp.full(shape, int(chain.cell[0]))
            _, symbols = jax.lax.scan(following, cell, jax.random.split(key, self.length))
            return jnp.moveaxis(symbols, 0, -1)

    return MarkovSequence
