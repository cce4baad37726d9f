"""Missing entries are integrated out: from a prediction, from the likelihood of all rows, from the evidence."""

import copy
import itertools

import numpy as np
from scipy.integrate import quad_vec

from bayesgen.models import DirichletMultinomial
from bayesgen.posterior import ParameterDraws
from bayesgen.testing.case import block, close, is_pair, log_joint, one, parameters, pick


def missing_is_marginal(case):
    """A missing entry is integrated out: ∫ p(..., x_j, ...) dx_j = p(..., missing, ...) at prediction."""
    posterior = case.model.update(case.model.statistics(*case.data(12)))

    def density(data, row):
        return np.exp(posterior.log_predictive(pick(data, [row])[0])[0])

    _integrates_out(case, case.data(12, "entries", seed=1), density)


def missing_at_fit_is_marginal(case):
    """A missing entry is integrated out of the likelihood of all rows, given parameters."""
    params = one(parameters(case, 1))

    def density(data, row):
        return np.exp(case.model.log_likelihood(params, case.model.statistics(*data)))

    _integrates_out(case, case.data(6, "entries"), density)


def evidence_of_missing_is_marginal(case):
    """A missing entry is integrated out of the evidence, where the posterior is exact."""

    def density(data, row):
        return np.exp(case.model.log_evidence(case.model.statistics(*data)))

    _integrates_out(case, case.data(6), density, vectors=False)


def target_has_probability_one(case):
    """p(t | x) integrates to 1 over the target, averaged over the posterior."""
    if case.model.conjugate:
        posterior = case.model.update(case.model.statistics(*case.data(12)))
    else:
        posterior = ParameterDraws(case.model, {site: v[None] for site, v in parameters(case, 5).items()})
    x, t = case.data(3, seed=1)
    if t.dtype.kind == "i":
        total = sum(np.exp(log_joint(posterior, (x, np.full(3, k)))) for k in range(len(case.model.classes)))
    else:
        total = quad_vec(lambda u: np.exp(log_joint(posterior, (x, t + u))), -np.inf, np.inf, epsabs=1e-10)[0]
    close(total, 1, 1e-7, "sum or integral over the target")


def _integrates_out(case, data, density, vectors=True):
    for name, index, values in observed_entries(case, data):
        leaf = case.parts[name]
        if not vectors and leaf.event_dim and not (is_pair(leaf) or isinstance(leaf, DirichletMultinomial)):
            continue  # with a part of a Gaussian vector missing there is no exact evidence
        value = block(data, name)[index]

        def density_at(entry, name=name, index=index):
            changed = copy.deepcopy(data)
            block(changed, name)[index] = entry
            return density(changed, index[0])

        scale = density_at(value)
        whole = values(lambda entry, density_at=density_at, scale=scale: density_at(entry) / scale, value)
        what = f"sum over the entry at {index}, and the density where it is missing"
        close(whole, density_at(np.nan) / scale, 1e-7, what)


def observed_entries(case, data):
    """Yield (name, index, values) of one observed entry of each feature of a leaf, or of the part that may be missing.

    With several leaves it is one feature of each: every leaf is a case of its own as well.
    ``values`` (f, value) is the sum or integral of f over all values that the entry could have in place of ``value``.
    """
    params = one(parameters(case, 1))
    for name, leaf in case.parts.items():
        x = block(data, name)
        whole = isinstance(leaf, DirichletMultinomial)  # a document is missing as a whole
        observations = x.shape[1 : x.ndim - leaf.event_dim]
        places = list(np.ndindex(observations if whole or is_pair(leaf) else x.shape[1:]))
        for place in places[:1] if len(case.parts) > 1 else places:
            place = (*place, 0) if is_pair(leaf) else place  # the heads
            seen = ~np.isnan(x[(slice(None), *place)])
            seen = seen.all(-1) if whole else seen
            others = ~np.isnan(x).all(tuple(range(1, x.ndim))) if x.ndim > 1 else seen
            index = (int(np.argmax(seen & others)), *place)
            if whole:
                yield name, index, documents
            elif is_pair(leaf):
                yield name, index, up_to(x[(*index[:-1], 1)])
            else:
                of_class = leaf.select_class(case.model.site(params, name), [0]) if len(data) > 1 else params
                yield name, index, over(leaf.likelihood(of_class).support, x.shape[1:], place)


def documents(f, value):
    """Sum over all documents of the same length."""
    counts = itertools.product(range(int(value.sum()) + 1), repeat=len(value))
    return sum(f(np.array(c, float)) for c in counts if sum(c) == value.sum())


def up_to(most):
    """Sum over the counts 0..most."""
    return lambda f, value: sum(f(float(v)) for v in range(int(most) + 1))


def over(support, shape, place):
    """Sum or integrate over the support of NumPyro's likelihood; counts up to where the tail is negligible."""
    support = getattr(support, "base_constraint", support) if support.is_discrete else support  # of an entry
    if support.is_discrete and hasattr(support, "lower_bound") and not hasattr(support, "upper_bound"):
        return _counts
    if support.is_discrete:
        return up_to(np.broadcast_to(getattr(support, "upper_bound", 1), (1, *shape))[0, *place])
    if hasattr(support, "lower_bound"):
        low = float(support.lower_bound)
        return lambda f, value: quad_vec(f, low, np.inf, epsabs=1e-11, epsrel=1e-9)[0]
    return lambda f, value: quad_vec(lambda u: f(value + u), -np.inf, np.inf, epsabs=1e-11, epsrel=1e-9)[0]


def _counts(f, value):
    total, count = 0.0, 0
    while True:
        term = f(float(count))
        total, count = total + term, count + 1
        if count > value + 10 and np.max(term / total) < 1e-12:
            return total
