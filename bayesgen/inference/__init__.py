"""Ways of inference: each a small frozen record, called on a model and its data, returning a posterior."""

from bayesgen.inference.base import Inference, fit, named
from bayesgen.inference.exact import Exact
from bayesgen.inference.nuts import NUTS, SamplerWarning
from bayesgen.inference.point import MAP, ML

__all__ = ["MAP", "ML", "NUTS", "Exact", "Inference", "SamplerWarning", "fit", "named"]
