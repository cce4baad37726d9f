"""Ways of inference: each a small frozen record, called on a model and its data, returning a posterior."""

from bayesgen.inference.base import INFERENCES, Exact, Inference, SamplerWarning, fit, named, resolve
from bayesgen.inference.laplace import Laplace
from bayesgen.inference.nuts import NUTS
from bayesgen.inference.point import MAP, ML

__all__ = [
    "INFERENCES",
    "MAP",
    "ML",
    "NUTS",
    "Exact",
    "Inference",
    "Laplace",
    "SamplerWarning",
    "fit",
    "named",
    "resolve",
]
