"""Ways of inference: each a small frozen record, called on a model and its data, returning a posterior."""

from bayesgen.inference.base import INFERENCES, Exact, Inference, SamplerWarning, fit, named, resolve
from bayesgen.inference.laplace import Laplace
from bayesgen.inference.memberships import Memberships
from bayesgen.inference.nuts import NUTS
from bayesgen.inference.point import MAP, ML
from bayesgen.posterior.compiled import cache_compilation
from bayesgen.posterior.posterior import ExactPosterior, MembershipPosterior, ParameterDraws, PointEstimate

__all__ = [
    "INFERENCES",
    "MAP",
    "ML",
    "NUTS",
    "Exact",
    "ExactPosterior",
    "Inference",
    "Laplace",
    "MembershipPosterior",
    "Memberships",
    "ParameterDraws",
    "PointEstimate",
    "SamplerWarning",
    "cache_compilation",
    "fit",
    "named",
    "resolve",
]
