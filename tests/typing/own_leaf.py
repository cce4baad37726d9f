"""A leaf of one's own, with types: the waiting time of notebooks/8-own-leaf.ipynb. Run by test_typing.py."""

from dataclasses import dataclass, replace
from typing import Any, Self, assert_type

import numpy as np
import numpyro
import numpyro.distributions as dist
from numpy.typing import NDArray

import bayesgen as bg
from bayesgen.core.statistics import SumStatistics
from bayesgen.models.leaf import ConjugateFamily, DataError, Hyperparameter, first, hyperparameter
from bayesgen.models.model import Params
from bayesgen.numerics.special import gammaln, namespace


@dataclass(frozen=True, eq=False)
class GammaExponential(ConjugateFamily):
    """Waiting time x ~ Exponential(rate), rate ~ Gamma(a, b)."""

    a: Hyperparameter = hyperparameter(positive=True)
    b: Hyperparameter = hyperparameter(positive=True)

    def parameters(self) -> Params:
        return {"rate": numpyro.sample("rate", dist.Gamma(self.a, self.b))}

    def likelihood(self, params: Params) -> dist.Distribution:
        return dist.Exponential(params["rate"])

    def sufficient_statistic(self, x: np.ndarray, about: Any = 0.0) -> np.ndarray:
        return np.stack([np.ones_like(x), x], axis=-1)

    def natural_parameters(self, params: Params, about: Any = 0.0) -> Any:
        rate = params["rate"]
        xp = namespace(rate)
        return xp.stack([xp.log(rate), -rate], axis=-1)

    def update(self, statistics: SumStatistics) -> Self:
        n, total = np.moveaxis(statistics.total(), -1, 0)
        return replace(self, a=self.a + n, b=self.b + total)

    def log_evidence_terms(self, statistics: SumStatistics) -> Any:
        p, xp = self.update(statistics), namespace(self.a, self.b)
        return self.a * xp.log(self.b) - p.a * xp.log(p.b) + gammaln(p.a) - gammaln(self.a)

    def mode(self) -> Params:
        return {"rate": (self.a - 1) / self.b}

    def ml(self, statistics: SumStatistics) -> Params:
        n, total = np.moveaxis(statistics.total(), -1, 0)
        if (total <= 0).any():
            raise DataError("maximum likelihood does not exist: no time has passed", **first(total <= 0))
        return {"rate": n / total}

    def sample_parameters(self, rng: np.random.Generator, size: tuple[int, ...] = ()) -> Params:
        return {"rate": rng.gamma(self.a, 1 / self.b, (*size, *self.batch_shape))}


leaf = GammaExponential(2, [3.0, 4.0])
assert_type(leaf.a, NDArray[np.float64])
assert_type(leaf.per_class, bool)
assert_type(leaf.update(leaf.statistics([[0.5, 1.0]])), GammaExponential)
assert_type(bg.fit(GammaExponential(a=2.0, b=3.0), [0.5, 1.5]).draws(), Params)
classifier = bg.NaiveBayesClassifier({"wait": leaf}, inference=bg.NUTS(num_samples=500))
