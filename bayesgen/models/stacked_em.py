r"""Expectation-maximisation from many starts at once, each of which is accelerated.

Rows of unknown class are kept as T(x_i), side by side over the leaves, so both steps of all starts s are products of
matrices. With η the natural parameters, and S the sums of the rows whose class is known,

.. math:: \log r_{sik} = \log \pi_{sk} + \eta_{sk} \cdot T(x_i) + \text{const}, \qquad
   S_{sk} = S_k + \sum_i w_i r_{sik} T(x_i), \qquad \theta_{sk} = \text{the closed form of the leaf at } S_{sk}

The sums S determine the next step, so the search is a map F of sums to sums. It converges at a linear rate, slowly
where classes overlap. Of two steps r = F(S) - S and v = F(F(S)) - F(S) - r SQUAREM makes

.. math:: S' = S + 2 a r + a^2 v, \qquad a = \max(1, \lVert r \rVert / \lVert v \rVert)

(Varadhan and Roland 2008, *Scandinavian Journal of Statistics* 35, scheme S3). A start takes F(S') if S' is a point
where parameters exist and the step from it is shorter than r, else F(F(S)). Sums are measured in rows: those of T_j are
divided by the root mean square of T_ij.
"""

import contextlib

import numpy as np
from scipy.special import xlogy

from bayesgen.core.errors import DataError
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.classifier import ClassConditional
from bayesgen.numerics.sums import Grouping

TOLERANCE = 1e-9  # rows by which sums still move at the end
_FAILURES = ValueError, np.linalg.LinAlgError  # of a closed form


class StackedEM:
    """The two steps of expectation-maximisation for a classifier and its `PartlyLabelled` statistics.

    ``model`` is a `ClassConditional` with its prior, of exponential families; ``known`` are the `ClassStatistics` of
    rows by class, which stay. The ``way`` names the closed form of the leaves: "map", "ml", or "start", which is "map"
    with means of parameters where there is no mode.
    """

    def __init__(self, model: ClassConditional, statistics, way: str, known=None):
        self.model, self.way, self.weight, self.base = model, way, statistics.weight, statistics.base
        self.centres, rows = statistics.centres, len(statistics.weight)
        one = Grouping.of(min(rows, 1))
        self.kinds = {name: leaf.sum_rows(statistics.rows[name][:1], one) for name, leaf in model.leaves.items()}
        classes = len(model.class_names)
        parts = [np.ones((rows, 1)), *(statistics.terms[name] for name in model.leaves)]
        self.ends = np.cumsum([part.shape[1] for part in parts])
        self.terms = np.concatenate(parts, axis=1)  # (m, Q): 1, then T(x) of all leaves
        self.known = np.zeros((classes, self.terms.shape[1]))
        if known is not None:
            totals = [known.leaves[name].total_about(self.centres[name]).reshape(classes, -1) for name in model.leaves]
            self.known = np.concatenate([known.classes.total()[:, None], *totals], axis=1)
        total = self.weight.sum()
        size = np.sqrt(self.weight @ self.terms**2 / max(total, 1e-300))
        self.scale = np.where(size > 0, size, 1.0)
        self.positive = (self.terms >= 0).all(0) & (self.known >= 0).all(0)
        self.tolerance = TOLERANCE + 1e-13 * total

    def statistics(self, sums):
        """Return the class counts (..., K) and the statistics of each leaf from sums (..., K, Q)."""
        counts = SumStatistics(sums[..., 0], np.float64(0))
        leaves = {}
        for name, start, end in zip(self.model.leaves, self.ends, self.ends[1:], strict=False):
            total = sums[..., start:end].reshape(*sums.shape[:-1], *self.kinds[name].total().shape)
            leaves[name] = self.kinds[name].of_total(total, self.centres[name])
        return counts, leaves

    def complete(self, sums) -> ClassStatistics:
        """Return the statistics of a classifier from sums (K, Q)."""
        counts, leaves = self.statistics(sums)
        return ClassStatistics(counts, leaves, sums[:, 0])

    def parameters(self, sums):
        """Return the parameters that are best for sums (..., K, Q), or raise."""
        counts, leaves = self.statistics(sums)
        classes = self._best(self.model.classes, counts)
        if sums.ndim == 2:  # a message may name the class
            found = self.model.leafwise(lambda name, leaf: self._best(leaf, leaves[name]))
        else:
            found = {name: self._best(leaf, leaves[name]) for name, leaf in self.model.leaves.items()}
        return self.model.join(classes, found)

    def maximised(self, sums):
        """Return natural parameters (..., K, Q) that are best for sums (..., K, Q)."""
        return self.natural(self.parameters(sums), sums.shape[:-1])

    def _best(self, leaf, sums):
        try:
            return leaf.ml(sums) if self.way == "ml" else leaf.map(sums)
        except DataError:
            if self.way != "start":
                raise
            return leaf.update(sums).expected()

    def tried(self, sums):
        """Return `maximised`, 0 for the starts (S, K, Q) that have no parameters, and True for these."""
        eta = np.full(sums.shape, np.nan)
        with np.errstate(all="ignore"):
            try:
                eta[...] = self.maximised(sums)
            except _FAILURES:
                for one, target in zip(sums, eta, strict=True):
                    with contextlib.suppress(*_FAILURES):
                        target[...] = self.maximised(one)
        bad = ~np.isfinite(eta[..., 1:]).all((1, 2)) | np.isnan(eta[..., 0]).any(1)
        eta[bad] = 0.0
        return eta, bad

    def expected(self, eta):
        """Return probabilities of the classes of rows (S, K, m), and the log likelihood (S,), from parameters."""
        count, classes, width = eta.shape
        joint = (eta.reshape(-1, width) @ self.terms.T).reshape(count, classes, -1)
        top = joint.max(1, keepdims=True)
        joint -= top
        with np.errstate(under="ignore"):
            np.exp(joint, out=joint)
        total = joint.sum(1, keepdims=True)
        joint /= total
        return joint, (np.log(total) + top)[:, 0] @ self.weight + self.weight @ self.base

    def level(self, sums) -> float:
        """Return the log likelihood at the parameters of sums (K, Q), or raise where a step has none."""
        labels, found = self.expected(self.maximised(sums)[None])
        self.parameters(self.summed(labels)[0])
        return float(found[0])

    def summed(self, labels):
        """Return the sums (S, K, Q) of rows that count in each class by probabilities (S, K, m)."""
        count, classes, rows = labels.shape
        return ((labels * self.weight).reshape(-1, rows) @ self.terms).reshape(count, classes, -1) + self.known

    def step(self, sums):
        """Return the sums after a step, NaN where a start has no parameters."""
        eta, bad = self.tried(sums)
        result = self.summed(self.expected(eta)[0])
        result[bad] = np.nan
        return result

    def size(self, change):
        """Return the largest entry of each change of sums, in rows."""
        return np.abs(change / self.scale).max((1, 2))

    def climb(self, sums, limit: int = 400):
        """Return the sums (S, K, Q) at the end of the search, and True for the starts that came there."""
        sums, alive = sums.copy(), np.arange(len(sums))
        arrived = np.zeros(len(sums), bool)
        for _ in range(limit):
            begin = sums[alive]
            first = self.step(begin)
            r = first - begin
            second = self.step(first)
            v = second - first - r
            lost = np.isnan(second).any((1, 2))
            sums[alive] = second
            before, after = self.size(r), self.size(second - first)
            with np.errstate(invalid="ignore", divide="ignore"):
                rate = np.minimum(after / before, 1.0)
                done = (after == 0) | (after * rate / (1 - rate) < self.tolerance) | (after < 1e-3 * self.tolerance)
            arrived[alive[done]] = True
            going = ~(done | lost)
            alive = alive[going]
            if not len(alive):
                break
            begin, second, r, v = begin[going], second[going], r[going], v[going]
            norm = np.sqrt(((r / self.scale) ** 2).sum((1, 2)) / ((v / self.scale) ** 2).sum((1, 2)).clip(1e-300))
            a = np.maximum(norm, 1.0)[:, None, None]
            trial = begin + 2 * a * r + a * a * v
            low = (trial[..., self.positive] < 0).any((1, 2))
            trial[low] = second[low]
            then = self.step(trial)
            better = ~low & (self.size(then - trial) < before[going])  # False where there is none: NaN
            sums[alive] = np.where(better[:, None, None], then, second)
        return sums, arrived

    def evidences(self, sums):
        """Return log ∫ p(θ) exp(η(θ) · sums) dθ of sums (S, K, Q), (S,): the evidence but for the base measure."""
        counts, leaves = self.statistics(sums)
        level = self.model.classes.log_evidence_terms(counts)
        for name, leaf in self.model.leaves.items():
            level = level + leaf.log_evidence_terms(leaves[name]).reshape(len(sums), -1).sum(1)
        return level

    def natural(self, params, lead: tuple[int, ...]):
        """Return natural parameters (lead..., Q) of parameters, the first the log of the shares."""
        with np.errstate(divide="ignore"):
            parts = [np.broadcast_to(np.log(params[f"{self.model.CLASSES}.probability"]), lead)[..., None]]
        for name, leaf in self.model.leaves.items():
            eta = leaf.natural_parameters(self.model.site(params, name), self.centres[name])
            parts.append(np.broadcast_to(eta, (*lead, *eta.shape[len(lead) :])).reshape(*lead, -1))
        return np.concatenate(parts, axis=-1)

    def heights(self, sums):
        """Return, for each start, the log likelihood under "ml", else the lower bound of the evidence at its sums."""
        eta, bad = self.tried(sums)
        labels, level = self.expected(eta)
        if self.way != "ml":
            entropy = -xlogy(labels, labels).sum(1) @ self.weight
            level = self.evidences(self.summed(labels)) + entropy + self.weight @ self.base
        return np.where(bad, -np.inf, level), labels
