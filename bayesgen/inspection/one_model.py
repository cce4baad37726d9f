"""A fitted generative model of rows and classes, and its joint density: one member, or a member for each draw."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp

from bayesgen.core.errors import NoClosedForm
from bayesgen.inspection.explain import terms_of_model
from bayesgen.inspection.fitted import FittedDensity, known_classes
from bayesgen.inspection.leave_one_out import check_rows
from bayesgen.inspection.missing import Joint, gibbs
from bayesgen.inspection.probabilities import tempered, warn_of_few_draws
from bayesgen.models import LabelNoise, UnknownClasses, latent_classes
from bayesgen.models.beside_constants import BesideConstants
from bayesgen.models.classifier import ClassConditional
from bayesgen.models.model import Params
from bayesgen.models.unknown_labels import CONFUSION, PartlyLabelled
from bayesgen.numerics.draws import choose, generator
from bayesgen.numerics.pieces import pieces
from bayesgen.posterior.component import Components, Rows
from bayesgen.posterior.leaf_factor import leaf_factors
from bayesgen.posterior.likelihoods import warn_of_lost
from bayesgen.posterior.posterior import Posterior
from bayesgen.tables.arrays import made_dense
from bayesgen.tables.schema import Schema

_SAMPLED = 1 << 21  # parameters that `sample` draws at a time: 16 MB


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedModel(FittedDensity):
    """A fitted generative classifier: the model with its prior, what is kept of rows, and the posterior."""

    model_: ClassConditional
    statistics_: Any
    posterior_: Posterior
    exponent_: float = 1.0  # of the features, by which class probabilities are tempered

    def read(self, X):
        return self.schema_.read(self.table(X), self.unseen)

    def joint(self):
        return JointOfModel(self)

    terms = terms_of_model

    @np.errstate(under="ignore")
    def predict_log_proba(self, X, priors=None) -> np.ndarray:
        """Return the log probability of each class, (n, K); see `predict_proba`."""
        joint = self._joint(X, priors)
        return joint - np.log(np.exp(joint).sum(1))[:, None]

    @np.errstate(under="ignore")
    def predict_proba(self, X, priors=None) -> np.ndarray:
        """Return the probability of each class, (n, K), columns in the order of ``classes_``.

        The joint p(x, t = k | data) is averaged over the posterior first and normalised over k after. A row that every
        class gives probability 0 (a plug-in estimate can) gets the class prior, with a warning.

        Parameters
        ----------
        X : DataFrame or array, shape (n, columns)
            Rows; a missing entry is integrated out.
        priors : array, shape (K,), or mapping or Series from class to float, optional
            Class probabilities of the population to decide for, where it is another than the data come from; the fit
            stays as it is.
        """
        joint = self._joint(X, priors)
        np.exp(joint, out=joint)
        joint /= joint.sum(1)[:, None]
        return joint

    def _joint(self, X, priors) -> np.ndarray:
        """Return log p(x, t = k | data), (n, K), less the largest of each row."""
        rows, posterior = self.read(X), self.posterior_
        if priors is not None:
            posterior = posterior.with_class_prior(known_classes(priors, self.classes_))
        joint, effective = posterior.log_predictive_with_effective(rows)
        if effective is not None:
            warn_of_few_draws(joint, effective, posterior.model.conjugate)
        joint = tempered(joint, posterior.log_class_prior, self.exponent_)
        top = joint.max(1)
        lost = np.isneginf(top)
        if lost.any():
            joint[lost] = posterior.log_class_prior
            top = joint.max(1)
            warn_of_lost(int(lost.sum()))
        joint -= top[:, None]
        return joint

    def predict_joint_log_proba(self, X) -> np.ndarray:
        """Return log p(x, t = k | data) of each row and class, (n, K); its log sum over k is `score_samples`."""
        return self.posterior_.log_predictive(self.read(X))

    def draw(self, count, rng):
        width, parts = sum(v.size for v in self.posterior_.draws(0, (1,)).values()), []
        for piece in pieces(count, width, _SAMPLED, count):
            params = self.posterior_.draws(rng, (piece.stop - piece.start,))
            parts.append(self.model_.sample_rows(params, int(rng.integers(2**31))))
        rows = {name: np.concatenate([x[name] for _, x in parts]) for name in parts[0][1]}
        return rows, np.concatenate([t for t, _ in parts])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedLatent(FittedModel):
    """A fitted classifier of rows of unknown class; ``confusion_`` is the probability of each label in each class."""

    confusion_: np.ndarray | None = None
    label_noise: LabelNoise | None = None

    @property
    def free_(self) -> np.ndarray:
        """Classes that are named by an order."""
        if not isinstance(self.statistics_, PartlyLabelled):
            return self.classes_[:0]
        return self.classes_[latent_classes.free(self.model_, self.statistics_)]

    @property
    def log_evidence_(self) -> float:
        if not isinstance(self.statistics_, PartlyLabelled):
            return super().log_evidence_
        exact = latent_classes.log_evidence(self.model_, self.statistics_)
        if exact is not None:
            return exact
        estimated = getattr(self.posterior_, "log_evidence", None)
        if estimated is None:
            raise AttributeError(
                "log_evidence_ is a sum over all labellings of the rows: inference='laplace' estimates it"
            )
        return float(estimated + math.lgamma(len(self.free_) + 1))

    @property
    def posterior_with_labels_(self) -> Any:
        """The posterior with the parameters of the labels, too."""
        draws: Any = self.posterior_.as_draws(generator(self.random_state))
        noise, samples = self.label_noise, dict(draws.samples)
        confusion = noise and noise.confusion(self.classes_.tolist())
        if self.confusion_ is not None:
            lead = next(iter(samples.values())).shape[:2]
            samples[CONFUSION] = np.broadcast_to(self.confusion_, (*lead, *self.confusion_.shape[2:]))
        return replace(draws, model=UnknownClasses(self.model_, confusion), samples=samples)


class JointOfModel(Joint):
    """The joint density of columns and class under one generative model, untempered."""

    def __init__(self, classifier):
        self.classifier, self.posterior = classifier, classifier.posterior_
        even = np.full(len(classifier.classes_), 1 / len(classifier.classes_))
        self.even = self.posterior.with_class_prior(known_classes(even, classifier.classes_))
        self.log_prior = self.posterior.log_class_prior
        if self.posterior.kind == "draws":
            self.efficiency = self.posterior.as_draws().efficiency

    def read(self, X):
        rows = self.posterior.model.check(self.classifier.read(X))
        return {name: made_dense(v) for name, v in rows.items()}

    def nothing(self):
        return {name: np.asarray(v, float) for name, v in self.classifier.schema_.nothing().items()}

    def totals(self):
        return totals_of(self.classifier.model_)

    def log_density(self, rows):
        """Return the log density, -inf where a column that was constant at the fit has another value."""
        density = self.even.log_predictive(rows) + np.log(len(self.log_prior))
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
        log_joint: Any = logsumexp(given.log_joint, axis=0) if along is None else along.log_joint
        prior = self.log_prior.reshape(-1, *[1] * (log_joint.ndim - 1))
        return log_softmax(tempered(log_joint, prior, self.classifier.exponent_), axis=0)

    def knows(self, rows, codes):
        classifier, statistics = self.classifier, self.classifier.statistics_
        try:
            check_rows(classifier, statistics, classifier.model_.statistics(rows, codes))
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
        flat = [v.reshape(len(v), -1) for v in rows.values()]
        nothing = np.zeros(len(flat[0]), np.intp)
        statistics = prior.statistics(rows, nothing if codes is None else codes)
        closed = prior.has_closed_form(statistics)
        if closed and codes is not None:
            posterior = prior.update(statistics)
            while True:
                yield self._under(posterior.sample_parameters(rng, (1,)))

        def learned(completed, t, groups):
            statistics = prior.statistics(rows if closed else completed, t)
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
