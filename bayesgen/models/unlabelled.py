r"""Rows without labels beside rows that have one: the label is summed out, or expected.

.. math:: p(\text{rows} \mid \theta) = \prod_{i \text{ labelled}} p(x_i, t_i \mid \theta)
   \prod_{i \text{ unlabelled}} \Big( \sum_k \pi_k \, p(x_i \mid \theta_k) \Big)^{w_i}

The sum over labels has no sufficient statistics, so these rows are kept, and there is no exact posterior: it would be a
sum over all K^m labellings. NUTS and Laplace take the density as it stands. Maximum likelihood and MAP go by
expectation-maximisation (Dempster, Laird and Rubin 1977; Nigam, McCallum, Thrun and Mitchell 2000): under the
parameters at hand a row belongs to class k with probability r_ik, and counts w_i r_ik of a row in the closed form of
each class. It begins at the labelled rows, and ends when no r_ik moves by more than 1e-9.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from bayesgen.errors import DataError
from bayesgen.numerics.pieces import count_rows, select_rows
from bayesgen.numerics.special import namespace
from bayesgen.numerics.sums import Grouping
from bayesgen.statistics import Statistics

_LIMIT = 10_000  # steps of expectation-maximisation
_STILL = 1e-9


@dataclass(frozen=True, eq=False)
class PartlyLabelled(Statistics):
    """Statistics of labelled rows, and the rows without a label.

    Attributes
    ----------
    labelled : ClassStatistics
        Of the rows with a label.
    rows : dict from leaf to array (m, ...)
        The others, checked, NaN where missing.
    terms : dict from leaf to array (m, dim T)
        Their T(x) about ``centres``, 0 where missing; the features of a leaf are side by side.
    centres : dict from leaf to array
        The means of the columns, where T has a centre.
    base : array, shape (m,)
        Sum of log h(x) over leaves.
    weight : array, shape (m,)
        What each counts, > 0.
    """

    labelled: Any
    rows: dict[str, np.ndarray]
    terms: dict[str, np.ndarray]
    centres: dict[str, np.ndarray]
    base: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, model, labelled, x, weight=None) -> "PartlyLabelled":
        """Put rows without labels, as the model takes them, beside the statistics of those that have one."""
        rows = {name: np.asarray(own, float) for name, own in model.check(x).items()}
        count = count_rows(rows)
        terms, centres, base = {}, {}, np.zeros(count)
        for name, leaf in model.leaves.items():
            own, missing = rows[name], leaf.missing(rows[name])
            if leaf.event_dim and (np.isnan(own).reshape(count, -1).any(1) & ~missing.reshape(count, -1).all(1)).any():
                raise DataError(
                    "rows without a label have gaps, which a full covariance does not take: leave them out, or take a "
                    "diagonal or isotropic covariance"
                )
            pooled = getattr(labelled.leaves[name], "pooled", None)
            centres[name] = np.zeros(()) if pooled is None else pooled.mean
            with np.errstate(invalid="ignore"):
                term = np.where(missing[..., None], 0.0, leaf.sufficient_statistic(own, centres[name]))
                base += np.where(missing, 0.0, leaf.log_base_measure(own)).reshape(count, -1).sum(1)
            terms[name] = term.reshape(count, -1)
        return cls(labelled, rows, terms, centres, base, np.ones(count) if weight is None else weight)

    @property
    def classes(self):
        """Counts of the labelled rows."""
        return self.labelled.classes

    @property
    def leaves(self):
        """Statistics of the labelled rows."""
        return self.labelled.leaves

    def log_likelihood(self, model, params) -> Any:
        """Log p(all rows | params), the missing labels summed out. NumPy or JAX."""
        share = params[f"{model.CLASSES}.probability"]
        xp = namespace(share)
        joint = xp.log(share)
        for name, leaf in model.leaves.items():
            eta = leaf.natural_parameters(model.site(params, name), self.centres[name])
            joint = joint + self.terms[name] @ eta.reshape(len(share), -1).T
        top = joint.max(1)
        level = top + xp.log(xp.exp(joint - top[:, None]).sum(1))
        return model.log_likelihood(params, self.labelled) + (self.weight * (level + self.base)).sum()

    def labels(self, model, params) -> np.ndarray:
        """Probability of each class of the rows without a label, (m, K)."""
        one = {site: np.asarray(value)[None] for site, value in params.items()}
        with np.errstate(under="ignore"):
            return softmax(model.log_likelihood_rows(one, self.rows)[0].T, axis=1)

    def expected(self, model, labels):
        """Statistics of all rows, each of the unlabelled in every class by its probability."""
        count, classes = labels.shape
        weight = (self.weight[:, None] * labels).ravel()
        rows = select_rows(self.rows, np.repeat(np.arange(count), classes))
        codes = np.tile(np.arange(classes), count)
        return self.labelled + model.sum_rows(rows, Grouping(codes, classes, weight, (classes,)))

    def maximise(self, model, closed_form: Callable[[Any], Any]):
        """Maximise by expectation-maximisation; ``closed_form`` takes statistics of labelled rows to parameters."""
        params, before = closed_form(self.labelled), None
        for _ in range(_LIMIT):
            labels = self.labels(model, params)
            if before is not None and np.abs(labels - before).max() < _STILL:
                return params
            params, before = closed_form(self.expected(model, labels)), labels
        raise DataError("no maximum was reached over the missing labels; use 'nuts', or fewer rows without a label")
