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
from bayesgen.averaging.stack import SOFTMAX
from bayesgen.numerics.pieces import pieces
from bayesgen.numerics.student import triangular_inverse

_CELLS = 1 << 20  # entries of matrices drawn at a time


def gaussians(view, member, size, rng):
    """Draws of the groups' means, and of Cholesky factors of covariances, or of standard deviations where diagonal.

    Returns
    -------
    mean : array, shape (*size, G, D)
    root : array, shape (*size, H, D, D) or (*size, H, D)
        H = G, or 1 where the groups share it.
    """
    p = posterior(member, Reference.of(view.statistics))
    if p.scale.ndim == 2:
        root = np.sqrt(p.scale / rng.chisquare(p.nu[:, None], (*size, *p.scale.shape)))
        noise = rng.standard_normal((*size, *p.mean.shape)) * root
    else:
        dim = p.scale.shape[-1]
        lower = np.tril(rng.standard_normal((*size, *p.scale.shape)), -1)
        places = np.arange(dim)
        freedom = p.nu[:, None] + places - dim + 1
        lower[..., places, places] = np.sqrt(rng.chisquare(freedom, (*size, *freedom.shape)))
        root = np.linalg.cholesky(p.scale) @ triangular_inverse(lower)
        noise = (root @ rng.standard_normal((*size, *p.mean.shape, 1)))[..., 0]
    return p.mean + noise / np.sqrt(p.kappa)[:, None], root


def shares(view, size, rng):
    """The probability of each group within its class, (*size, G)."""
    owner = view.view.owner
    drawn = rng.standard_gamma(view.statistics.n + 1, (*size, len(owner)))
    return drawn / (drawn @ (owner[:, None] == np.arange(owner[-1] + 1)))[..., owner]


def parameters(average, a, b, size, rng) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Draws of the parameters of one member (a, b), by name: dims and values (*size, ...), bent columns' units."""
    weights = average.class_weight + average.concentration
    result: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "class_probability": (("class",), rng.dirichlet(weights, size))
    }
    if a is not None:
        view = next(v for v in average.numeric if v.count == a[0])
        mean, root = gaussians(view, a[1], size, rng)
        group = ("class",) if len(view.view.owner) == len(weights) else ("group",)
        own = () if root.shape[len(size)] < mean.shape[len(size)] else group
        spread = root**2 if root.ndim == mean.ndim else root @ np.swapaxes(root, -1, -2)
        if not own:
            spread = np.take(spread, 0, axis=len(size))
        result["mean"] = ((*group, "column"), mean)
        if root.ndim == mean.ndim:
            result["variance"] = ((*own, "column"), spread)
        else:
            result["covariance"] = ((*own, "column", "other column"), spread)
        if group == ("group",):
            result["share"] = (group, shares(view, size, rng))
    if b is not None:
        categories = average.categorical
        alpha = b[1] if b[0] == "independent" else categories.alphas[0]
        counts = np.broadcast_to(categories.single + alpha, (*size, *categories.single.shape))
        result["level_probability"] = (("class", "level"), _levels(categories, counts, rng))
    return result


def _levels(categories, weights, rng):
    """Probabilities of the levels of each column, (..., L), drawn under Dirichlet ``weights``."""
    drawn = np.maximum(rng.standard_gamma(weights), 1e-300)
    return drawn / (drawn @ categories.by_column)[..., categories.column]


def tables(categories, member, rng):
    """Of "independent" p(a | k), (K, L); of "one parent" also p(b | k, a), (K, L, L)."""
    structure, strength = member
    alpha = strength if structure == "independent" else categories.alphas[0]
    level = _levels(categories, categories.single + alpha, rng)
    if structure == "independent":
        return level, None
    return level, _levels(categories, categories.pairs + strength * level[:, None], rng)


def rows(average, codes, rng):
    """Draw rows of given classes, each of a member and parameters of its own.

    Parameters
    ----------
    average : Average
    codes : int array, shape (n,)
        Classes.
    rng : Generator

    Returns
    -------
    x : array, shape (n, D)
        Numbers.
    c : int array, shape (n, F)
        Codes of categories.
    """
    names = average.names
    dim = average.numeric[0].statistics.mean.shape[1] if average.numeric else 0
    levels = () if average.categorical is None else average.categorical.levels
    x, c = np.empty((len(codes), dim)), np.empty((len(codes), len(levels)), np.intp)
    chosen = rng.choice(len(names), len(codes), p=average.density_weights)
    for m in np.unique(chosen):
        (a, b), at = names[m], np.flatnonzero(chosen == m)
        if a is not None:
            view = next(v for v in average.numeric if v.count == a[0])
            for part in pieces(len(at), view.statistics.scatter.size, _CELLS, len(at)):
                own = at[part]
                mean, root = gaussians(view, a[1], (len(own),), rng)
                share = np.where(view.view.owner == codes[own, None], shares(view, (len(own),), rng), 0.0)
                group, each = choose(share, rng), np.arange(len(own))
                z, root = rng.standard_normal((len(own), dim)), root[each, group if root.shape[1] > 1 else 0]
                y = mean[each, group] + (root * z if root.ndim == 2 else (root @ z[..., None])[..., 0])
                x[own] = view.view.warp.back(y)
        if b is not None:
            for row in at:
                level, table = tables(average.categorical, b, rng)
                k = codes[row]
                c[row] = _category_row(average.categorical, level[k], None if table is None else table[k], rng)
    return x, c


def choose(weights, rng):
    """A place drawn in each row of ``weights`` (n, G), in proportion to them."""
    cumulative = np.cumsum(weights, axis=1)
    return (rng.random((len(weights), 1)) * cumulative[:, -1:] > cumulative[:, :-1]).sum(1)


def _category_row(categories, level, table: np.ndarray | None, rng):
    ends = np.cumsum(categories.levels)
    starts = ends - categories.levels
    parent = None if table is None else int(rng.integers(len(starts)))
    result = np.empty(len(starts), np.intp)
    order = range(len(starts)) if parent is None else [parent, *(j for j in range(len(starts)) if j != parent)]
    for j in order:
        chances = level if table is None or parent is None or j == parent else table[starts[parent] + result[parent]]
        own = chances[starts[j] : ends[j]]
        result[j] = rng.choice(len(own), p=own / own.sum())
    return result


@np.errstate(under="ignore")
def probabilities(average, x, c, size: int, rng) -> np.ndarray:
    """p(k | x, θ) of rows under members drawn by weight and parameters drawn from their posteriors, (size, n, K)."""
    names, classes = average.names, len(average.class_weight)
    result = np.zeros((size, len(x), classes))
    chosen = rng.choice(len(names), size, p=average.weights)
    for m in np.unique(chosen):
        (a, b), at = names[m], np.flatnonzero(chosen == m)
        if a == SOFTMAX:  # a point: its spread is not known
            result[at] += average.discriminative.log_density(x, c)[STRENGTHS.index(b)]
            a = b = None
        if a is not None:
            view = next(v for v in average.numeric if v.count == a[0])
            drawn = (*gaussians(view, a[1], (len(at),), rng), np.log(shares(view, (len(at),), rng)))
            rows = view.read(x)
            for s, *own in zip(at, *drawn, strict=True):
                result[s] += _number_density(view, *own, *rows)
        if b is not None:
            for s in at:
                result[s] += average.categorical.density(c, *tables(average.categorical, b, rng))
        result[at] *= average.exponents[m]
    result += np.log(rng.dirichlet(average.class_weight + average.concentration, size))[:, None]
    return np.exp(result - logsumexp(result, axis=2, keepdims=True))


def _number_density(view, mean, root, log_share, y, seen):
    """Log p(x | k, θ) of rows under one draw, (n, K)."""
    return view.mix(group_density(mean, root, y, seen), log_share)


def group_density(mean, root, y, seen):
    """Log p(y | group, θ) of bent rows under one draw, (n, G), up to a number of each row."""
    density = np.empty((len(y), len(mean)))
    for g in range(len(mean)):
        own, z = root[g if len(root) > 1 else 0], y - mean[g]
        if own.ndim == 1:
            column = -0.5 * (z / own) ** 2 - np.log(own)
            density[:, g] = (column if seen is None else np.where(seen, column, 0.0)).sum(1)
        else:
            seen_z = z if seen is None else z * seen
            log_det, white = whiten((own @ own.T)[None], seen_z[:, None], seen)
            density[:, g] = -0.5 * (white**2).sum((1, 2)) - 0.5 * log_det
    return density
