"""The posterior of a classifier, and what it says of rows and their classes, as ArviZ takes it."""

import math

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.inspection.averaged import member_posteriors
from bayesgen.inspection.probabilities import possible
from bayesgen.models.class_conditional import ClassConditional
from bayesgen.numerics.pieces import DENSITIES, split_rows
from bayesgen.posterior import ParameterDraws, generator, tree
from bayesgen.tables.labels import class_codes, class_labels


def to_arviz(classifier, X=None, y=None):
    """Return the posterior as an ArviZ `xarray.DataTree`; an exact one is drawn, as chains.

    Parameters
    ----------
    classifier : fitted generative classifier
        Whose posterior it is.
    X, y : optional
        Rows and their classes; they add the groups "log_likelihood" ("joint": log p(x_i, t_i | θ), "conditional":
        log p(t_i | x_i, θ)), "observed_data" and "posterior_predictive" ("t": codes drawn given x_i), and, where
        the prior can be drawn from, "prior" and "prior_predictive" (a row of each draw).
    """
    check_is_fitted(classifier)
    if hasattr(classifier, "average_"):
        if X is not None:
            raise ValueError("to_arviz() of an averaged classifier says nothing of rows: its average has no likelihood")
        return member_posteriors(classifier)
    if (X is None) != (y is None):
        raise ValueError("to_arviz() takes X and y together")
    if X is None:
        return classifier.posterior_.to_arviz(classifier.random_state)
    from arviz_base import from_dict

    rng, model = generator(classifier.random_state), classifier.model_
    posterior = classifier.posterior_.as_draws(rng)
    result = tree(posterior, row_groups(classifier, posterior, X, y, rng))
    if model.conjugate:
        prior = ParameterDraws(model, model.sample_parameters(rng, (1, 1000)))
        t, x = model.sample_rows({site: v[0] for site, v in prior.samples.items()}, int(rng.integers(2**31)))
        new = {"t": t, **classifier.schema_.write(x)}
        result["prior"] = tree(prior, name="prior")["prior"]
        predictive = from_dict({"prior_predictive": {name: v[None] for name, v in new.items()}})
        result["prior_predictive"] = predictive["prior_predictive"]
    return result


def row_groups(classifier, draws: ParameterDraws, X, y, rng) -> dict[str, dict[str, np.ndarray]]:
    """ArviZ's groups that speak of rows and their classes, of any classifier; see `to_arviz`."""
    labels = class_labels(y)
    _, codes = class_codes(labels, classifier.classes_)
    x = draws.model.check(classifier._read(X))
    n = (next(iter(x.values())) if isinstance(x, dict) else x).shape[0]
    if n != len(codes):
        raise ValueError(f"X has {n} rows and y has {len(codes)}; they must be of one length")
    flat, lead = draws.flat, next(iter(draws.samples.values())).shape[:2]
    shape = (math.prod(lead), n)
    joint, conditional, t = np.empty(shape), np.empty(shape), np.empty(shape, int)
    done = 0
    for rows in split_rows(x, max(1, DENSITIES // shape[0])):
        density = draws.model.log_likelihood_rows(flat, rows)  # (draws, K, rows)
        part = slice(done, done := done + density.shape[-1])
        own = (slice(None), codes[part], np.arange(density.shape[-1]))
        joint[:, part] = density[own]
        density = possible(density, flat)
        top = density.max(1)
        cumulative = np.exp(density - top[:, None]).cumsum(1)
        conditional[:, part] = density[own] - top - np.log(cumulative[:, -1])
        t[:, part] = (rng.random(top.shape) * cumulative[:, -1] > np.moveaxis(cumulative, 1, 0)).sum(0)
    likelihood = {"joint": joint} if isinstance(draws.model, ClassConditional) else {}
    likelihood |= {"conditional": conditional}
    return {
        "log_likelihood": {name: v.reshape(*lead, -1) for name, v in likelihood.items()},
        "posterior_predictive": {"t": t.reshape(*lead, -1)},
        "observed_data": {"t": codes},
    }
