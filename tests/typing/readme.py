"""The Python of README and of docs/howto/write-models.md: the same text, which `tests/test_typing.py` compares."""

# ruff: noqa: E402, I001

import bayesgen as bg

X = bg.data.load("penguins").sample(frac=1, random_state=0)  # text, numbers and gaps
y = X.pop("species")
classifier = bg.AveragedClassifier().fit(X[:60], y[:60])  # nothing to tune; classifier.summary() tells its members
probability = classifier.predict_proba(X[60:])
loss = [[0, 1, 5], [1, 0, 5], [9, 9, 0]]  # rows: the truth; columns: what we do
print(classifier.score(X[60:], y[60:]), bg.decision.decide(probability, loss)[:5])
model = bg.NaiveBayesClassifier().fit(X, y)  # one model alone: the exact posterior; inference="nuts" samples it
print(model.log_evidence_, model.to_arviz().posterior)  # draws with named dims and labelled coords


import jax
import numpy as np
from bayesgen.models import BetaBernoulli
from numpyro.infer import MCMC, NUTS

coin = BetaBernoulli(a=2, b=2)
posterior = coin.update(coin.statistics([1, 1]))  # Beta(4, 2)
sampler = MCMC(NUTS(coin), num_warmup=500, num_samples=500, progress_bar=False)
sampler.run(jax.random.PRNGKey(0), np.array([1, 1]))
print("exact:", posterior, " NUTS, mean:", sampler.get_samples()["probability"].mean())


import bayesgen as bg

print(bg.program(coin))


import bayesgen as bg
import numpyro
import numpyro.distributions as dist


def visits(counts):
    rate = numpyro.sample("rate", dist.LogNormal(0.0, 1.0))
    with numpyro.plate("obs", len(counts)):
        numpyro.sample("counts", dist.Poisson(rate), obs=counts)


print(bg.fit(visits, [2, 3, 1], "map").log_predictive([0, 1, 2]))


from arviz_stats import loo  # pyright: ignore[reportPrivateImportUsage]  # ArviZ does not say that it exports it
from sklearn.model_selection import GridSearchCV

X = bg.data.load("penguins").sample(frac=1, random_state=0)
y = X.pop("species")
rows = X.select_dtypes("number").drop(columns="year").dropna()
labels = y[rows.index]
search = GridSearchCV(
    bg.GaussianDiscriminantClassifier(), {"covariance": ["full", "diagonal"], "shared": [False, True]}
)
best = search.fit(rows, labels).best_estimator_  # scikit-learn's search over structures ...
models = {s: bg.GaussianDiscriminantClassifier(shared=s).fit(rows, labels) for s in (False, True)}
print(bg.compare_evidence(models))  # ... and Bayes' own: posterior probabilities of the structures
print(best.leave_one_out(rows, labels).elpd)  # exact
print(loo(best.to_arviz(rows, labels)).elpd)  # ArviZ's, from draws; it warns where a row weighs too much (Pareto k)  # pyright: ignore[reportAttributeAccessIssue]  # no tuple here
