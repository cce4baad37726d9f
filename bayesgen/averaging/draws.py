r"""Draws: rows from the untempered members, and class probabilities under parameters drawn from the posteriors.

Given a member, Σ is drawn by Bartlett's decomposition (variances by their inverse chi-squares where it is diagonal),
μ given Σ, the probabilities of groups, levels and classes from their Dirichlet posteriors.
"""

import numpy as np
from scipy.special import logsumexp

from bayesgen.averaging.evidence import posterior
from bayesgen.averaging.gaussian import whiten
from bayesgen.averaging.logistic import STRENGTHS
from bayesgen.averaging.reference import Reference


def _gaussians(view, member, rng):
    """Mean (G, D) and Cholesky factor (H, D, D), or standard deviations (H, D), of every group; H = 1 where shared."""
    p = posterior(member, Reference.of(view.statistics))
    if p.scale.ndim == 2:
        root = np.sqrt(p.scale / rng.chisquare(p.nu[:, None], p.scale.shape))
        noise = rng.standard_normal(p.mean.shape) * root
    else:
        dim = p.scale.shape[-1]
        lower = np.tril(rng.standard_normal(p.scale.shape), -1)
        places = np.arange(dim)
        lower[:, places, places] = np.sqrt(rng.chisquare(p.nu[:, None] + places - dim + 1))
        root = np.linalg.cholesky(p.scale) @ np.linalg.inv(lower)
        noise = (root @ rng.standard_normal((*p.mean.shape, 1)))[..., 0]
    return p.mean + noise / np.sqrt(p.kappa)[:, None], root


def _shares(view, rng):
    """Log of the probability of each group within its class, (G,)."""
    owner = view.view.owner
    drawn = rng.standard_gamma(view.statistics.n + 1)
    return np.log(drawn) - np.log(np.bincount(owner, drawn))[owner]


def _levels(categories, weights, rng):
    """Probabilities of the levels of each column, (..., L), drawn under Dirichlet ``weights``."""
    drawn = np.maximum(rng.standard_gamma(weights), 1e-300)
    return drawn / (drawn @ categories.by_column)[..., categories.column]


def _tables(categories, member, rng):
    """Of "independent" p(a | k), (K, L); of "one parent" also p(b | k, a), (K, L, L)."""
    structure, strength = member
    alpha = strength if structure == "independent" else categories.alphas[0]
    level = _levels(categories, categories.single + alpha, rng)
    if structure == "independent":
        return level, None
    return level, _levels(categories, categories.pairs + strength * level[:, None], rng)


def rows(average, count: int, rng):
    """Draw rows: numbers (count, D), codes of categories (count, F) and of classes (count,)."""
    names, classes = average.names, np.exp(average.log_class_prior)
    codes = rng.choice(len(classes), count, p=classes / classes.sum())
    dim = average.numbers[0].statistics.mean.shape[1] if average.numbers else 0
    levels = () if average.categories is None else average.categories.levels
    x, c = np.empty((count, dim)), np.empty((count, len(levels)), np.intp)
    for row, m in enumerate(rng.choice(len(names), count, p=average.density_weights)):
        a, b = names[m]
        if a is not None:
            view = next(v for v in average.numbers if v.count == a[0])
            mean, root = _gaussians(view, a[1], rng)
            log_share = np.where(view.view.owner == codes[row], _shares(view, rng), -np.inf)
            g = rng.choice(len(mean), p=np.exp(log_share))
            z, own = rng.standard_normal(dim), root[g if len(root) > 1 else 0]
            y = mean[g] + (own @ z if own.ndim == 2 else own * z)
            x[row] = view.view.warp.back(y)
        if b is not None:
            level, table = _tables(average.categories, b, rng)
            c[row] = _category_row(
                average.categories, level[codes[row]], table if table is None else table[codes[row]], rng
            )
    return x, c, codes


def _category_row(categories, level, table, rng):
    ends = np.cumsum(categories.levels)
    starts = ends - categories.levels
    parent = None if table is None else int(rng.integers(len(starts)))
    result = np.empty(len(starts), np.intp)
    order = range(len(starts)) if parent is None else [parent, *(j for j in range(len(starts)) if j != parent)]
    for j in order:
        chances = level if parent is None or j == parent else table[starts[parent] + result[parent]]
        own = chances[starts[j] : ends[j]]
        result[j] = rng.choice(len(own), p=own / own.sum())
    return result


def probabilities(average, x, c, size: int, rng) -> np.ndarray:
    """p(k | x, θ) of rows under members drawn by weight and parameters drawn from their posteriors, (size, n, K)."""
    names, classes = average.names, len(average.class_weight)
    result = np.empty((size, len(x), classes))
    for s, m in enumerate(rng.choice(len(names), size, p=average.weights)):
        a, b = names[m]
        density = np.zeros((len(x), classes))
        if a == "softmax":  # a point: its spread is not known
            density += average.discriminative.log_density(x, c)[STRENGTHS.index(b)]
            a = b = None
        if a is not None:
            view = next(v for v in average.numbers if v.count == a[0])
            density += _number_density(view, a[1], x, rng)
        if b is not None:
            density += average.categories.density(c, *_tables(average.categories, b, rng))
        prior = np.log(rng.dirichlet(average.class_weight + average.concentration))
        joint = prior + average.exponents[m] * density
        result[s] = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    return result


def _number_density(view, member, x, rng):
    """Log p(x | k, θ) of rows under one draw, (n, K)."""
    mean, root = _gaussians(view, member, rng)
    y, seen = view.read(x)
    density = np.empty((len(x), len(mean)))
    for g in range(len(mean)):
        own, z = root[g if len(root) > 1 else 0], y - mean[g]
        if own.ndim == 1:
            column = -0.5 * (z / own) ** 2 - np.log(own)
            density[:, g] = (column if seen is None else np.where(seen, column, 0.0)).sum(1)
        else:
            seen_z = z if seen is None else z * seen
            log_det, white = whiten((own @ own.T)[None], seen_z[:, None], seen)
            density[:, g] = -0.5 * (white**2).sum((1, 2)) - 0.5 * log_det
    return view.mix(density, _shares(view, rng))
