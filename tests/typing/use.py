"""Code of a user: fit models and estimators, ask posteriors, add statistics, give an inference of one's own."""

from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np

import bayesgen as bg
from bayesgen.inference import Inference
from bayesgen.models import BetaBernoulli, DirichletCategorical, NormalInverseWishart
from bayesgen.models.classifier import ClassStatistics
from bayesgen.models.model import Model, Params, is_conjugate
from bayesgen.posterior import Posterior

X, y = [[1.0, 0.3], [1.4, 0.1], [3.1, 0.9], [2.9, 0.7]], ["a", "a", "b", "b"]

posterior = bg.fit(BetaBernoulli(2, 2), [1, 1])
assert_type(posterior, Posterior)
assert_type(posterior.log_predictive([1]), np.ndarray)
assert_type(posterior.draws(seed=1), Params)
assert_type(bg.Exact()(BetaBernoulli(2, 2), [1, 1]), bg.inference.ExactPosterior)
assert_type(bg.fit(BetaBernoulli(2, 2), [1, 1], bg.MAP()), Posterior)

whole = bg.NaiveBayesClassifier().fit(X, y)
assert_type(whole, bg.NaiveBayesClassifier)
assert_type(whole.predict_proba(X, priors=[0.5, 0.5]), np.ndarray)
rows = whole.row_schema([(X, y)])
halves = [rows.sum((X[own], y[own])) for own in (slice(2), slice(2, 4))]
assert_type(halves[0] + halves[1], ClassStatistics)
again = bg.NaiveBayesClassifier().fit_statistics(whole.schema_, sum(halves), whole.classes_)
assert_type(again.posterior_, Posterior)
assert_type(again.log_evidence_, float)

leaves = {0: BetaBernoulli(2, 2), (1, 2): "gaussian"}
mixed = bg.NaiveBayesClassifier(leaves, class_concentration=[1, 2], priors=None, inference="map", random_state=1)
prior = NormalInverseWishart(mean=[0, 0], kappa=1, nu=5, scale=np.eye(2))
discriminant = bg.GaussianDiscriminantClassifier("full", prior=prior, inference=bg.NUTS(num_samples=10))
line = bg.LinearRegressor(prior_scale=100, inference=bg.MAP())
logistic = bg.LogisticClassifier(inference=bg.MAP())
average = bg.AveragedClassifier(members=["gaussian", ("line", logistic)], features={0: "poisson"}, priors=[0.5, 0.5])


@dataclass(frozen=True)
class Twice:
    """The exact posterior of rows that count double."""

    def __call__(self, model: Model, data: Any, *, seed: Any = None) -> Posterior:
        if not is_conjugate(model):
            raise TypeError("not conjugate")
        once = model.statistics(data)
        return bg.inference.ExactPosterior(model.update(once + once), model, once + once)


own: Inference = Twice()
assert_type(bg.fit(BetaBernoulli(1, 1), [1, 0], own), Posterior)
assert_type(bg.fit(DirichletCategorical([1, 1]), [0, 1], Twice()), Posterior)
