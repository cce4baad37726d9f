"""Draws of the parameters that all rows of an imputed table share, under one generative model.

`bayesgen.inspection.missing` has the mathematics. Leaves whose posterior is exact given rows with gaps need no
completed rows: given the classes, their parameters are drawn at once. Gibbs' sampler is left with classes that are not
known, and with columns of a full covariance.
"""

from collections.abc import Iterator

import numpy as np

from bayesgen.inspection.leave_one_out import check_rows
from bayesgen.inspection.missing import Components, warn_of_few
from bayesgen.models.model import Params
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.numerics.draws import choose, rounds_apart
from bayesgen.numerics.pieces import DENSITIES, count_rows, pieces, select_rows, taken


def knows(classifier, rows, codes) -> bool:
    """Return True if these are the rows and classes of the fit."""
    statistics = classifier.statistics_
    if isinstance(statistics, PartlyLabelled):
        return False
    try:
        check_rows(classifier, statistics, classifier.model_.statistics(classifier._as_model_takes(rows), codes))
    except ValueError:
        return False
    return True


def complete(joint, params: Params, rows, codes, rng):
    """Return rows with missing entries drawn under one draw of the parameters, and their classes, drawn if unknown."""
    components, place = Components(joint, params), codes
    if place is None:
        place = np.empty(count_rows(rows), np.intp)
        for piece in pieces(len(place), len(joint.log_prior), DENSITIES):
            score = components.log_weight(select_rows(rows, piece))[0]
            place[piece] = choose(np.exp(score - score.max(0)).T, rng)
    return components.fill(rows, place, rng), place


def parameters(joint, rows, codes, fitted, rng) -> Iterator[Params]:
    """Yield draws of the parameters, arrays (1, ...), given the fit and the observed entries of rows, without end.

    Parameters
    ----------
    joint : SingleJoint
    rows : mapping from name to array
    codes : int array, shape (n,), optional
        Classes of the rows, where they are known.
    fitted : int array, shape (n,), optional
        Classes of the rows at the fit, where they are its rows.
    rng : Generator
    """
    posterior, prior = joint.classifier.posterior_, joint.classifier.model_
    start = posterior.draws(rng, (1,))
    if posterior.kind == "exact" and fitted is None:
        known = joint.classifier.statistics_.classes.total()
        yield from _gibbs(joint, posterior.model, start, rows, codes, known, rng)
    if posterior.kind == "point" and fitted is not None and prior.conjugate:
        yield from _gibbs(joint, prior, start, rows, fitted, np.zeros(len(joint.log_prior)), rng)
    draws, weight = None, None
    if posterior.kind == "draws" and fitted is None:
        draws = posterior.as_draws()
        weight = _weight(joint, draws, rows, codes)
    while True:
        if draws is None:
            yield posterior.draws(rng, (1,))
        else:
            yield {site: v[choose(weight, rng)] for site, v in draws.flat.items()}


def _weight(joint, draws, rows, codes) -> np.ndarray:
    """Return the probability of each draw given the observed entries of all rows, (1, S)."""
    components, total = Components(joint, draws.flat), 0.0
    for piece in pieces(count_rows(rows), components.count * len(joint.log_prior), DENSITIES):
        score = components.log_weight(select_rows(rows, piece), taken(codes, piece))
        total = total + np.logaddexp.reduce(score, axis=1).sum(-1)
    weight = np.exp(total - np.max(total))
    weight /= weight.sum()
    warn_of_few(np.array([draws.efficiency / (weight**2).sum()]), "the tables", joint)
    return weight[None]


def _gibbs(joint, prior, params: Params, rows, codes, known, rng) -> Iterator[Params]:
    """Alternate rows given parameters and parameters given rows; yield draws that hardly correlate.

    Parameters
    ----------
    joint : SingleJoint
    prior : ClassConditional
        The model before these rows.
    params : mapping from site to array (1, ...)
        Parameters to begin with.
    rows : mapping from name to array
    codes : int array, shape (n,), optional
        Classes of the rows, where they are known.
    known : array, shape (K,)
        Number of rows of each class that the prior has learned from.
    rng : Generator
    """
    take, flat = joint.classifier._as_model_takes, [v.reshape(len(v), -1) for v in rows.values()]
    nothing = np.zeros(len(flat[0]), np.intp)
    statistics = prior.statistics(take(rows), nothing if codes is None else codes)
    closed = prior.has_closed_form(statistics)
    if closed and codes is not None:
        posterior = prior.update(statistics)
        while True:
            yield posterior.sample_parameters(rng, (1,))
    rounds = rounds_apart(~np.isnan(np.hstack(flat)), codes, known)
    while True:
        for _ in range(rounds):
            completed, t = complete(joint, params, rows, codes, rng)
            statistics = prior.statistics(take(rows if closed else completed), t)
            params = prior.update(statistics).sample_parameters(rng, (1,))
        yield params
