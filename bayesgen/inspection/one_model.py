"""The joint density of rows and classes under one generative model: one member, or a member for each draw."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp

from bayesgen.core.errors import NoClosedForm
from bayesgen.inspection.leave_one_out import check_rows
from bayesgen.inspection.missing import Joint, gibbs
from bayesgen.inspection.probabilities import tempered
from bayesgen.models.beside_constants import BesideConstants
from bayesgen.models.model import Params
from bayesgen.numerics.draws import choose, generator
from bayesgen.posterior.component import Components, Rows
from bayesgen.posterior.leaf_factor import leaf_factors
from bayesgen.tables.arrays import made_dense
from bayesgen.tables.schema import Schema


class JointOfModel(Joint):
    """The joint density of columns and class under one generative model, untempered."""

    def __init__(self, classifier):
        self.classifier, self.posterior = classifier, classifier.posterior_
        even = np.full(len(classifier.classes_), 1 / len(classifier.classes_))
        self.even = self.posterior.with_class_prior(classifier.known_classes(even))
        self.log_prior = self.posterior.log_class_prior
        if self.posterior.kind == "draws":
            self.efficiency = self.posterior.as_draws().efficiency

    def read(self, X):
        rows = self.posterior.model.check(self.classifier.read(X))
        return {name: made_dense(v) for name, v in rows.items()}

    def nothing(self):
        return {name: np.asarray(v, float) for name, v in self.classifier.schema_.nothing().items()}

    def blocks(self, rows):
        """Return the rows unchanged: leaves are blocks."""
        return rows

    def totals(self):
        return totals_of(self.classifier.model_)

    def log_density(self, rows):
        """Return the log density, -inf where a column that was constant at the fit has another value."""
        density = self.even.log_predictive(self.classifier.as_model_takes(rows)) + np.log(len(self.log_prior))
        for name, leaf in self.posterior.model.leaves.items():
            if isinstance(leaf, BesideConstants):
                density[~leaf.possible(rows[name])] = -np.inf
        return density

    def tails(self, rows):
        """Return the tail probabilities of a model with one leaf and an exact posterior; else None."""
        leaves = self.posterior.model.leaves
        if not self.posterior.integrated or len(leaves) > 1:
            return None
        ((name, leaf),) = leaves.items()
        try:
            return leaf.tail_probability(rows[name]).reshape(-1, len(self.log_prior))
        except NoClosedForm:
            return None

    def components(self, draws=None, even=False):
        """Integrate the parameters of an exact posterior out; a point needs one draw, others take some, or all."""
        posterior = self.even if even else self.posterior
        if posterior.integrated:
            return self._mixture(None, posterior.log_class_prior[None])
        if posterior.kind == "point":
            return self._under(posterior.draws(0, (1,)))
        if draws is None:
            return self._under(posterior.as_draws().flat)
        return self._under(posterior.draws(generator(self.classifier.random_state), (draws,)))

    def _under(self, params: Params) -> Components:
        """Return the mixture whose members are draws of the parameters, (S, ...)."""
        with np.errstate(divide="ignore"):
            log_class = np.log(params[f"{self.posterior.model.CLASSES}.probability"])
        return self._mixture(params, log_class)

    def _mixture(self, params: Params | None, log_class) -> Components:
        factors = leaf_factors(self.posterior.model, labels_of(self.classifier.schema_), params)
        members = len(log_class)
        choice = np.repeat(np.arange(members)[:, None], len(factors), axis=1)
        return Components(np.full(members, -np.log(members)), log_class, factors, choice)

    def log_probability(self, given, entry=None, along=None):
        """Temper the joint density, and normalise it."""
        log_joint: Any = logsumexp(given.log_joint, axis=0) if along is None else along.log_joint
        prior = self.log_prior.reshape(-1, *[1] * (log_joint.ndim - 1))
        return log_softmax(tempered(log_joint, prior, getattr(self.classifier, "exponent_", 1.0)), axis=0)

    def knows(self, rows, codes):
        classifier, statistics = self.classifier, self.classifier.statistics_
        try:
            check_rows(classifier, statistics, classifier.model_.statistics(classifier.as_model_takes(rows), codes))
        except ValueError:
            return False
        return True

    def drawn(self, rows, codes, fitted, rng):
        """Draw from an exact posterior that learns from the rows; pick draws of a sampler that the rows make likely."""
        posterior, prior = self.posterior, self.classifier.model_
        start = posterior.draws(rng, (1,))
        if posterior.integrated and fitted is None:
            statistics = self.classifier.statistics_
            known = getattr(statistics, "sizes", statistics.classes.total())
            yield from self._gibbs(posterior.model, start, rows, codes, known, rng)
        if posterior.kind == "point" and fitted is not None and prior.conjugate:
            yield from self._gibbs(prior, start, rows, fitted, np.zeros(len(self.log_prior)), rng)
        if posterior.kind == "draws" and fitted is None:
            draws = posterior.as_draws()
            chance = self.member_chances(self._under(draws.flat), rows, codes)
            self.warn_of_few(np.array([draws.efficiency / (chance**2).sum()]), "the tables")
            while True:
                place = choose(chance[None], rng)
                yield self._under({site: v[place] for site, v in draws.flat.items()})
        while True:
            yield self._under(posterior.draws(rng, (1,)))

    def _gibbs(self, prior, params: Params, rows: Rows, codes, known, rng) -> Iterator[Components]:
        """Alternate rows and parameters; the prior has learned from ``known`` rows (K,), but from none of these."""
        take, flat = self.classifier.as_model_takes, [v.reshape(len(v), -1) for v in rows.values()]
        nothing = np.zeros(len(flat[0]), np.intp)
        statistics = prior.statistics(take(rows), nothing if codes is None else codes)
        closed = prior.has_closed_form(statistics)
        if closed and codes is not None:
            posterior = prior.update(statistics)
            while True:
                yield self._under(posterior.sample_parameters(rng, (1,)))

        def learned(completed, t, groups):
            statistics = prior.statistics(take(rows if closed else completed), t)
            return self._under(prior.update(statistics).sample_parameters(rng, (1,)))

        yield from gibbs(self._under(params), learned, rows, codes, rng, ~np.isnan(np.hstack(flat)), known)


def labels_of(schema: Schema) -> set[str]:
    """Return the names of the blocks that hold categories."""
    return {block.name for block in schema.blocks if block.categories is not None}


def totals_of(model) -> Mapping[str, tuple[str, str]]:
    """Return the leaves of counts given their total: a column of each, and the name of its density."""
    given = {name: leaf.density_kind for name, leaf in model.leaves.items()}
    given = {name: kind for name, kind in given.items() if kind.startswith("probability given")}
    return {name: ((*model.columns_of(name), name)[0], kind) for name, kind in given.items()}
