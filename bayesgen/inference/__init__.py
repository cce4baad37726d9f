"""Ways of inference: each a small frozen record, called on a model and its data, returning a posterior."""

from bayesgen.inference.base import INFERENCES, Inference, fit, named, resolve
from bayesgen.inference.exact import Exact
from bayesgen.inference.nuts import NUTS, SamplerWarning
from bayesgen.inference.point import MAP, ML

__all__ = ["INFERENCES", "MAP", "ML", "NUTS", "Exact", "Inference", "SamplerWarning", "fit", "named", "resolve"]
