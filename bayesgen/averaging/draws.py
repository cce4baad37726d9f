"""Draws of the parameters of members from their posteriors, and of class probabilities under them."""

from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayesgen.averaging.member import Product
from bayesgen.numerics.tempering import sharpened

_CELLS = 1 << 20  # entries of matrices drawn at a time


def gaussians(view, place: int, size, rng) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the posterior of a member of a view, and draws of the parameters of its groups, (*size, G, ...)."""
    posterior = view.posterior(place)
    return posterior, posterior.sample_parameters(rng, size)


def shares(view, size, rng):
    """Draw the probability of each group within its class, (*size, G)."""
    owner = view.view.owner
    drawn = rng.standard_gamma(view.n + 1, (*size, len(owner)))
    return drawn / (drawn @ (owner[:, None] == np.arange(owner[-1] + 1)))[..., owner]


def parameters(average, member: Product, size, rng) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Draw the parameters of one member, in units of the bent columns: dims and values (*size, ...) by name."""
    weights = average.class_weight + average.concentration
    result: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "class_probability": (("class",), rng.dirichlet(weights, size))
    }
    if member.numbers is not None:
        view, place = average.place(member.numbers)
        _, drawn = gaussians(view, place, size, rng)
        group = ("class",) if len(view.view.owner) == len(weights) else ("group",)
        for site, values in drawn.items():
            if site != "cholesky":
                own = () if site != "mean" and view.members[place].shared else group
                result[site] = ((*own, *("feature", "feature2")[: values.ndim - len(size) - len(own)]), values)
        if group == ("group",):
            result["share"] = (group, shares(view, size, rng))
    if member.categories is not None:
        part, place = average.place(member.categories)
        levels = np.concatenate(
            [d.sample_parameters(rng, size)["probability"] for d in part.dice(member.categories)], -1
        )
        result["level_probability"] = (("class", "level"), levels)
    if member.leaves:
        leaves = average.leaves
        result |= {site: (leaves.posterior.dims(site), v) for site, v in leaves.draws(rng, size).items()}
    return result


def tables(categories, member, size: int, rng):
    """Yield draws of p(a | k), (K, L), with None for "independent" or p(b | k, a), (K, L, L), for "one parent"."""
    drawn = [die.sample_parameters(rng, (size,))["probability"] for die in categories.dice(member)]
    for level in np.concatenate(drawn, -1):
        if member.structure == "independent":
            yield level, None
        else:
            table = np.maximum(rng.standard_gamma(categories.pairs + member.strength * level[:, None]), 1e-300)
            yield level, table / (table @ categories.by_column)[..., categories.column]


@np.errstate(under="ignore")
def probabilities(average, x, c, e, size: int, rng) -> np.ndarray:
    """Return p(k | x, θ), (size, n, K), under members drawn by weight and parameters drawn from their posteriors."""
    classes = len(average.class_weight)
    result = np.zeros((size, len(x), classes))
    chosen = rng.choice(len(average.members), size, p=average.weights)
    for m in np.unique(chosen):
        member, at = average.members[m], np.flatnonzero(chosen == m)
        if not average.drawn(member):  # a point: its spread is not known
            result[at] += average.log_density(x, c, np.arange(len(average.members)) == m, e)
            result[at] *= average.exponents[m]
            continue
        if member.numbers is not None:
            view, place = average.place(member.numbers)
            posterior, drawn = gaussians(view, place, (len(at),), rng)
            result[at] += group_density(view, posterior, drawn, np.log(shares(view, (len(at),), rng)), x)
        if member.categories is not None:
            part, _ = average.place(member.categories)
            for s, own in zip(at, tables(part, member.categories, len(at), rng), strict=True):
                result[s] += part.density(c, *own)
        if member.leaves:
            result[at] += average.leaves.density_under(average.leaves.draws(rng, (len(at),)), e)
        result[at] *= average.exponents[m]
    result += np.log(rng.dirichlet(average.class_weight + average.concentration, size))[:, None]
    least = average.least[chosen, None, None]
    result = np.exp(result - logsumexp(result, axis=2, keepdims=True))
    prior = np.exp(average.log_class_prior)
    result = sharpened((result + least * prior) / (1 + least), prior, average.sharpening)
    return result / result.sum(2, keepdims=True)


def group_density(view, posterior, params, log_share, x) -> np.ndarray:
    """Return log p(x | k, θ) of rows under draws of parameters, (size, n, K), up to a constant for each row."""
    y = view.view.warp.forward(x)
    density = posterior.log_likelihood_rows(params, y).swapaxes(1, 2)
    return view.mix(density, log_share[:, None], 2)
