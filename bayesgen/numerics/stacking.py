r"""Weights of a mixture by the log score of its members: stacking, under a Dirichlet prior.

The weights w maximise F(w), the sum of both terms in "Stacking" of `docs/mathematics/averaged.md`, where ω_i are the
weights of the rows. F is concave, and at its maximum every entry of the gradient is T = Σ_i ω_i + c. By Jensen's
inequality no weights are better than w by more than T log(max_m ∂F/∂w_m / T), which is at hand at every step and says
when to stop. The search is Newton's on w_m z_m = c a_m, with slacks z_m = T - Σ_i ω_i p_im / Σ_l w_l p_il > 0: a
primal-dual interior point. Among members nearly alike EM moves so slowly that weights .3 from the maximum looked as if
they had settled.
"""

import numpy as np

from bayesgen.core.errors import warn

_SHRINK, _INSIDE = 0.1, 0.99  # of the distance of w z from its end, kept at a step; of the way to the boundary
_SINGULAR = 1e-12  # share of the rows that the prior of a member is worth at least: below, equations lose all digits
_ROUNDING = 1e-14  # of the mean log score


def stack(log_score, weight, prior, start=None, tolerance: float = 1e-7, steps: int = 200) -> np.ndarray:
    """Return the weights of the members, (M,); those below 1e-4 are 0, so that prediction need not look at them.

    ``log_score`` (M, n) is log p_im, up to a constant for each row, and ``weight`` (n,) that of the rows; ``prior``
    (M,) is c a_m, all > 0, with which the search begins unless a ``start`` (M,) is given. It ends where F is within
    ``tolerance`` of its maximum; of rows that weigh so much that rounding is more than that, within 1e-14 T. Some ten
    ``steps`` are needed, and a warning is given where these do not do.
    """
    score = np.exp(log_score - log_score.max(0))
    prior = np.maximum(prior, _SINGULAR * weight.sum())
    total = weight.sum() + prior.sum()
    tolerance = max(tolerance, _ROUNDING * total)
    weights = prior if start is None else np.maximum(start, prior / total)
    weights = weights / weights.sum()
    slack = (prior + _SHRINK * total / len(prior)) / weights
    for _ in range(steps):
        mixture = weights @ score
        gradient = score @ (weight / mixture)
        if total * np.log((gradient + prior / weights).max() / total) < tolerance:
            break
        product = prior + _SHRINK * max(0.0, (weights * slack - prior).mean())
        step = _solve(score * (np.sqrt(weight) / mixture), slack / weights, gradient - total + product / weights)
        change = (product - slack * step) / weights - slack
        weights = weights + _inside(weights, step) * step
        weights, slack = weights / weights.sum(), slack + _inside(slack, change) * change
    else:
        warn(
            f"the weights of the members were not found in {steps} steps: the averaged classifier may predict a little "
            "worse than it could"
        )
    weights[weights < min(1e-4, weights.max())] = 0.0
    return weights / weights.sum()


def _solve(root, diagonal, right) -> np.ndarray:
    """Solve (root rootᵀ + diag(diagonal)) x = right, of the size of the smaller side of ``root`` (M, n)."""
    if len(root) <= root.shape[1]:
        return np.linalg.solve(root @ root.T + np.diag(diagonal), right)
    scaled, x = root / diagonal[:, None], right / diagonal
    return x - scaled @ np.linalg.solve(root.T @ scaled + np.eye(root.shape[1]), root.T @ x)


def _inside(values, step) -> float:
    return min(1.0, _INSIDE / max(1e-300, (-step / values).max()))
