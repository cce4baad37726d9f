r"""Contributions of the columns to an averaged log probability.

.. math:: e_{kj} = \beta \sum_m w_m \tau_m \big(\log p_m(x \mid k) - \log p_m(x_{-j} \mid k)\big), \qquad
   r_k = \log p(k \mid x) - \log \pi_k - \sum_j e_{kj}

each centred over the classes; x_{-j} is x with the entry of column j integrated out. Columns with leaves follow the
others; those of a leaf that are one observation have one term.
"""

from typing import Any, cast

import numpy as np

from bayesgen.numerics.pieces import taken
from bayesgen.numerics.special import log_mixture
from bayesgen.numerics.tempering import log_probability


def terms(average, x, c, e=None) -> np.ndarray:
    """Return the terms of prior, numbers, categories, P parts of leaves, and remainder, (n, K, 1 + D + F + P + 1)."""
    leaves = cast(Any, average.leaves)
    parts = [] if average.leaves is None else leaves.parts()
    log_prior = average.log_class_prior if average.given is None else np.log(average.given)
    result = np.empty((len(x), len(log_prior), x.shape[1] + c.shape[1] + len(parts) + 2))
    result[..., 0] = log_prior
    used = average.weights > 0
    weights, exponents, least = average.weights[used], average.exponents[used], average.least[used]
    share = average.sharpening * weights * exponents
    carried = share[average.carries[used]].sum()
    for part in average.pieces(len(x), used):
        entries = taken(e, part)
        density = average.log_density(x[part], c[part], used, entries)
        whole = np.tensordot(share, density, 1)
        log_q = log_probability(density, average.log_class_prior, exponents, least)
        gain = log_mixture(log_q, weights) - average.log_class_prior  # finite where p itself is 0
        result[part, :, -1] = average.sharpening * gain + log_prior
        for j in range(x.shape[1]):
            rest = x[part].copy()
            rest[:, j] = np.nan
            result[part, :, 1 + j] = whole - np.tensordot(share, average.log_density(rest, c[part], used, entries), 1)
        for j in range(c.shape[1]):
            rest = c[part].copy()
            rest[:, j] = -1
            term = whole - np.tensordot(share, average.log_density(x[part], rest, used, entries), 1)
            result[part, :, 1 + x.shape[1] + j] = term
        for j, (_, _, places) in enumerate(parts):
            own: Any = entries
            rest = own.copy()
            rest[:, places] = np.nan
            term = leaves.log_density(own) - leaves.log_density(rest)
            result[part, :, 1 + x.shape[1] + c.shape[1] + j] = carried * term
    result[..., -1] -= result[..., :-1].sum(2)
    return result - result.mean(1, keepdims=True)
