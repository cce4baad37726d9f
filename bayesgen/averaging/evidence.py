r"""Posteriors of the members as hyperparameters, and their evidence.

The posterior of a group is normal-inverse-Wishart(mean, kappa, nu, scale), of diagonal structures one such of D = 1 a
column. With Z the normalising constant of nu and scale over what shares a covariance,

.. math:: \log p(X \mid t) = -\tfrac{ND}{2} \log \pi + \tfrac{D}{2} \sum_g \log\frac{\kappa}{\kappa_g}
   + \sum \Big(\tfrac{\nu}{2} \log|\Psi| - \tfrac{\nu_n}{2} \log|\Psi_n|
   + \log\frac{\Gamma_D(\nu_n/2)}{\Gamma_D(\nu/2)}\Big)

(Murphy 2007, section 9). The priors follow the data, so it is an empirical Bayes quantity.
"""

from dataclasses import dataclass

import numpy as np

from bayesgen.averaging.reference import Reference
from bayesgen.numerics.special import log_gamma_ratio, multivariate_log_gamma_ratio


@dataclass(frozen=True)
class Hyperparameters:
    """Of groups: mean (G, D), kappa (G,), nu (H,), scale (H, D, D), or (H, D) if diagonal; H = G, or 1 if shared."""

    mean: np.ndarray
    kappa: np.ndarray
    nu: np.ndarray
    scale: np.ndarray


def posterior(member, reference: Reference, prior: bool = False) -> Hyperparameters:
    """The posterior of a member given all rows, or its prior."""
    dim, diagonal, shared = reference.centre.shape[1], "diagonal" in member.structure, "shared" in member.structure
    n = reference.n[0] * (not prior)
    kappa = member.kappa + n
    delta = reference.mean[0] - reference.centre[0]
    mean = reference.centre[0] + (n / kappa)[:, None] * delta
    V = reference.covariance[0]
    start = member.rho * ((1 - member.shrinkage) * V + member.shrinkage * np.diag(np.diag(V)))
    beta = (member.kappa * n / kappa)[:, None, None]
    scatter = (0 if prior else reference.scatter) + beta * delta[:, :, None] * delta[:, None, :]
    nu = member.rho + (2 if diagonal else dim + 1)
    if shared:
        scatter, n = scatter.sum(0, keepdims=True), n.sum(keepdims=True)
    scale = start + scatter
    return Hyperparameters(mean, kappa, nu + n, np.diagonal(scale, axis1=1, axis2=2) if diagonal else scale)


def gaussian_evidence(member, statistics) -> float:
    """Log p(X | t) of all rows under a Gaussian member."""
    reference = Reference.of(statistics)
    before, after = (posterior(member, reference, prior) for prior in (True, False))
    dim = reference.centre.shape[1]
    means = 0.5 * dim * np.log(before.kappa / after.kappa).sum() - 0.5 * dim * statistics.n.sum() * np.log(np.pi)
    more = after.nu - before.nu
    if before.scale.ndim == 2:
        gammas = dim * log_gamma_ratio(before.nu / 2, more / 2)
    else:
        gammas = multivariate_log_gamma_ratio(before.nu, more, dim)
    return float(means + (before.nu @ _log_det(before) - after.nu @ _log_det(after)) / 2 + gammas.sum())


def _log_det(p: Hyperparameters):
    """Log determinant of each scale, (H,)."""
    return np.log(p.scale).sum(1) if p.scale.ndim == 2 else np.linalg.slogdet(p.scale)[1]


def log_evidence(members, numbers, categories) -> np.ndarray:
    """Log p(x | t) of all rows under every member, (M,); -inf for those that have no evidence or leave columns out."""
    first = {(1, m): gaussian_evidence(m, view.statistics) for view in numbers for m in view.members}
    result = np.full(len(members), -np.inf)
    for place, (a, b) in enumerate(members):
        if (
            (a is None) == (not numbers)
            and (b is None) == (categories is None)
            and (b is None or b[0] == "independent")
        ):
            result[place] = (0 if a is None else first[a]) + (0 if b is None else _dirichlet(categories, b[1]))
    return result


def _dirichlet(categories, alpha) -> float:
    """Log evidence of counts by class and column under Dirichlet(alpha)."""
    result, start = 0.0, 0
    for levels in categories.levels:
        n = categories.single[:, start : start + levels]
        start += levels
        result += log_gamma_ratio(alpha, n).sum() - log_gamma_ratio(levels * alpha, n.sum(1)).sum()
    return float(result)
