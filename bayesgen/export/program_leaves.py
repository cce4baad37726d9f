"""The priors and densities of leaves in the words of NumPyro, a line for each site.

In these texts ``$alpha`` is a hyperparameter of the leaf, ``{mean}`` the value of a site, ``{x}`` the rows, and
``seen`` the mask of their entries. A site is drawn from the distribution that stands beside it; one that begins with
"=" is worked out from the others.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bayesgen import models
from bayesgen.core.errors import InputError
from bayesgen.models.leaf import Leaf
from bayesgen.models.population import CENTRE
from bayesgen.models.separation import SeparationDiagonal, SeparationFull


@dataclass(frozen=True)
class LeafText:
    """A leaf as text."""

    sites: dict[str, str]  # the distribution of each site, in the order in which they are drawn
    likelihood: str  # the distribution of an observation
    rows: str = "rng.normal(size=({shape}))"  # rows to try the program with
    entry: str = "{x}"  # what is observed of the rows
    event: int = 0  # number of last axes of the rows along which an observation is a product
    mask: str = "seen"  # mask of the observations that are there; "" where a part of one may be missing
    possible: str = ""  # where 0 is no entry: one that stands for a missing one
    vector: str = ""  # the distribution of a vector with gaps


_COIN = {"probability": "dist.Beta($a, $b)"}
_DIE = {"probability": "dist.Dirichlet($alpha)"}
_CONTEXTS = {"probability": "dist.Dirichlet($alpha).to_event(1)"}
_GAMMA = {"mean": "dist.Gamma($concentration, $rate)"}
_VARIANCE = {"variance": "dist.InverseGamma($alpha, $beta)"}
_CONJUGATE = _VARIANCE | {"mean": "dist.Normal($mean, ({variance} / $kappa) ** 0.5)"}
_KNOWN_MEAN = _VARIANCE | {"mean": "=jnp.full_like({variance}, $mean)"}
_KNOWN_VARIANCE = {"mean": "dist.Normal($mean, $sd)", "variance": "=jnp.full_like({mean}, $noise_sd ** 2)"}
_APART = {"sd": "dist.HalfNormal($scale)", "variance": "={sd} ** 2", "mean": "dist.Normal($mean, $mean_sd)"}
_WISHART = {
    "cholesky": "dist.InverseWishartCholesky($nu, scale_tril=jnp.linalg.cholesky($scale))",
    "mean": "dist.MultivariateNormal($mean, scale_tril={cholesky} / $kappa:matrix ** 0.5)",
    "covariance": "={cholesky} @ {cholesky}.mT",
}
_APART_VECTOR = {
    "sd": "dist.HalfNormal($scale).to_event(1)",
    "correlation_cholesky": "dist.LKJCholesky($D, $eta)",
    "cholesky": "={sd}[..., None] * {correlation_cholesky}",
    "covariance": "={cholesky} @ {cholesky}.mT",
    "mean": "dist.Normal($mean, $mean_sd).to_event(1)",
}
_DOF = "dist.TransformedDistribution(dist.Gamma($dof_shape, $dof_rate), dist.transforms.AffineTransform(1.0, 1.0))"
_NORMAL = "dist.Normal({mean}, {variance} ** 0.5)"
_PAIRS = "np.stack([rng.integers(0, 4, ({shape})), np.full(({shape}), 5)], -1)"
_WORDS = "rng.multinomial(9, np.full($V, 1 / $V), ({shape}))"
_CODES = "dist.Categorical(probs={probability})", "rng.integers(0, $V, ({shape}))", "{x}.astype(int)"
_BAG = "dist.Multinomial({x}.sum(-1).astype(int), probs={probability})"
_CHAIN = "dist.Categorical(probs={probability:chain}).mask({x} >= 0)", "rng.integers(0, $V, ({shape}, 4))"
_GAPS = "dist.MultivariateNormal(jnp.where(seen, {mean}, 0.0), marginal({covariance}, seen))"
_VECTOR: dict[str, Any] = {"mask": "", "vector": _GAPS, "rows": "rng.normal(size=({shape}, $D))"}
_WHOLE = "dist.MultivariateNormal({mean}, scale_tril={cholesky})"


def _binomial(leaf) -> LeafText:
    if leaf.trials is not None:
        return LeafText(_COIN, "dist.Binomial($trials, {probability})", "rng.binomial($trials, 0.5, ({shape}))")
    density = "dist.Binomial({x}[..., 1].astype(int), {probability})"
    return LeafText(_COIN, density, _PAIRS, entry="{x}[..., 0]", mask="seen[..., 0]")


def _log_normal(leaf) -> LeafText:
    shift = f", dist.transforms.AffineTransform({-leaf.shift!r}, 1.0)" * bool(leaf.shift)
    density = f"dist.TransformedDistribution({_NORMAL}, [dist.transforms.ExpTransform(){shift}])"
    return LeafText(_CONJUGATE, density, "rng.exponential(size=({shape}))", possible=", 1.0")


def _student(leaf) -> LeafText:
    inner, dof = text_of(leaf.gaussian), {"dof": _DOF} if leaf.dof is None else {}
    spread = "{cholesky}" if leaf.event_dim else "{variance} ** 0.5"
    density = f"dist.{'Multivariate' * leaf.event_dim}StudentT({'{dof}' if dof else '$dof'}, {{mean}}, {spread})"
    return replace(inner, sites=inner.sites | dof, likelihood=density, vector="")


# Hyperparameters of a class that is drawn from a population; see `bayesgen.models.population`.
_GIVEN = {
    "a": "{centre_probability} / {spread} ** 2",
    "b": "(1 - {centre_probability}) / {spread} ** 2",
    "concentration": "{centre_mean} / {spread} ** 2",
    "rate": "1 / {spread} ** 2",
    "mean": "{centre_mean}",
    "sd": "$noise_sd * {spread}",
    "kappa": "(1 / {spread} ** 2)",
    "alpha": "0.5 / {variance_spread} ** 2",
    "beta": "{centre_variance} * 0.5 / {variance_spread} ** 2",
}
_GIVEN_DIE = {"alpha": "{centre_probability} / {spread}[..., None] ** 2"}


def _pooled(leaf) -> LeafText:
    inner = text_of(leaf.leaf)
    given = _GIVEN_DIE if inner.sites == _DIE else _GIVEN
    sites = {CENTRE + site: prior.replace("{", "{" + CENTRE) for site, prior in inner.sites.items()}
    for spread in leaf.population.spreads:
        sites[spread] = f"dist.Half{'Cauchy' if spread == 'spread' else 'Normal'}($scale)"
    members = {k: re.sub(r"\$(\w+)", lambda name: given.get(name[1], name[0]), v) for k, v in inner.sites.items()}
    return replace(inner, sites=sites | members)


_TEXTS: dict[type, Callable[[Any], LeafText] | LeafText] = {
    models.BetaBernoulli: LeafText(_COIN, "dist.Bernoulli({probability})", "rng.integers(0, 2, ({shape}))"),
    models.BetaBinomial: _binomial,
    models.DirichletCategorical: LeafText(_DIE, *_CODES),
    models.KnownCategorical: LeafText({"probability": "=$probability"}, *_CODES),
    models.DirichletMultinomial: LeafText(_DIE, _BAG, _WORDS, mask="seen.all(-1)"),
    models.MarkovChain: LeafText(_CONTEXTS, *_CHAIN, "jnp.maximum({x}, 0).astype(int)", event=1, mask=""),
    models.GammaPoisson: LeafText(_GAMMA, "dist.Poisson({mean})", "rng.poisson(3.0, ({shape}))"),
    models.NormalKnownMean: LeafText(_KNOWN_MEAN, _NORMAL),
    models.NormalKnownVariance: LeafText(_KNOWN_VARIANCE, _NORMAL),
    models.NormalInverseGamma: LeafText(_CONJUGATE, _NORMAL),
    models.LogNormal: _log_normal,
    models.NormalInverseWishart: LeafText(_WISHART, _WHOLE, **_VECTOR),
    models.StudentT: _student,
    models.Pooled: _pooled,
    SeparationDiagonal: LeafText(_APART, _NORMAL),
    SeparationFull: LeafText(_APART_VECTOR, _WHOLE, **_VECTOR),
}


def text_of(leaf: Leaf) -> LeafText:
    """Return a leaf as text, or raise."""
    if type(leaf) not in _TEXTS or len(leaf.features) > 1:
        shape = " of features in rows and columns" * (type(leaf) in _TEXTS)
        raise InputError(f"a {type(leaf).__name__}{shape} is not written as a plain program")
    text = _TEXTS[type(leaf)]
    return text if isinstance(text, LeafText) else text(leaf)


def value_of(leaf: Any, name: str) -> tuple[Any, int]:
    """Return a hyperparameter of a leaf, or of the one within it, and the number of axes that belong to one feature.

    "D" and "V" are the lengths of a vector and of a list of categories.
    """
    found = {each.name: each.metadata.get("rank", 0) for each in fields(leaf)}
    if name == "V":
        return np.asarray(len(leaf.categories)), 0
    if name == "D" and "mean" in found:
        return np.asarray(leaf.mean.shape[-1]), 0
    if name not in found:
        return value_of(getattr(leaf, "leaf", None) or leaf.gaussian, name)
    return np.asarray(getattr(leaf, name)), max(found[name], name == "alpha" and "categories" in found)
