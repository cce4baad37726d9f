r"""Describe classes that nobody named: profiles with intervals, memberships, and the rows left out.

All of it rests on draws of the posterior: those of NUTS or Laplace, or of a point estimate the weighted draws about its
mode (`bayesgen.models.latent_classes.weighted_draws`), whose classes are matched with those of the fit.

**Separation.** A column j alone, of a row of class t, tells about its class

.. math:: I_j = \frac1n \sum_{ik} r_{ik} \log \frac{p(x_{ij} \mid k)}{\sum_l \pi_l \, p(x_{ij} \mid l)}

nats, the information of the column about the class, averaged over rows and their memberships r_ik; log K is the most.

**Leaving out.** With draws θ_s of weights w_s,

.. math:: p(x_i \mid x_{-i}) = \frac{\sum_s w_s}{\sum_s w_s / p(x_i \mid \theta_s)}

(Gelfand, Dey and Chang 1992), where k, the Pareto shape of the largest w_s / p(x_i | θ_s), says whether they bear it.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import logsumexp, softmax

from bayesgen.core.registry import fitted_of
from bayesgen.models import latent_classes
from bayesgen.models.beside_constants import varying
from bayesgen.models.unknown_labels import PartlyLabelled
from bayesgen.numerics.checks import check_count, check_level
from bayesgen.numerics.draws import LARGEST_K, pareto_shape, systematic
from bayesgen.numerics.pieces import DENSITIES, split_rows

_DRAWS = 400  # of profiles and memberships


def _draws(classifier) -> dict[str, np.ndarray]:
    """Return draws of the parameters, (draws, ...), classes in the order of the fit."""
    posterior, rng = classifier.posterior_, np.random.default_rng(0)
    if posterior.uncertain:
        return posterior.draws(rng, (_DRAWS,))
    model, statistics = classifier.model_, classifier.statistics_
    if not isinstance(statistics, PartlyLabelled) and model.conjugate:
        return model.update(statistics).sample_parameters(rng, (_DRAWS,))
    confusion = classifier.posterior_with_labels_.model.confusion
    found = latent_classes.weighted_draws(model, statistics, rng, confusion=confusion)
    place = systematic(rng, found.weight, _DRAWS)
    draws = {site: value[place] for site, value in found.params.items()}
    if statistics.start is None or len(classifier.free_) < 2:
        return draws
    samples = {site: value[None] for site, value in draws.items()}
    return {site: value[0] for site, value in latent_classes.matched(model, statistics, samples).items()}


def class_profiles(classifier, level: float = 0.95) -> pd.DataFrame:
    """Return what each class is: its share, and mean, sd or probabilities of each column, with intervals.

    Of a point estimate the intervals come from weighted draws about it; ``plot.class_profiles`` draws them.

    Parameters
    ----------
    level : float, default 0.95
        Posterior probability of an interval, between its equal tails.

    Returns
    -------
    DataFrame
        Rows by (column, quantity); columns by (class, "mean" | "low" | "high").

    Examples
    --------
    >>> from bayesgen import LatentClassClassifier
    >>> X = np.r_[np.arange(20) / 20.0, 10 + np.arange(10) / 10.0][:, None]
    >>> profiles = LatentClassClassifier(classes=2, starts=2, random_state=0).fit(X).class_profiles()
    >>> profiles.xs("mean", axis=1, level=1).loc[("x0", "mean")].round(0).tolist()
    [0.0, 10.0]
    """
    check_level("level", level)
    classifier = fitted_of(classifier)
    draws, model, values = _draws(classifier), classifier.model_, {}
    count = len(next(iter(draws.values())))
    values["class", "probability"] = draws[f"{model.CLASSES}.probability"]
    for block in classifier.schema_.blocks:
        leaf, columns = varying(model.leaves[block.name], block.values)
        sites = model.site(draws, block.name)
        if sites.keys() & {"variance", "covariance"}:
            sites = leaf.select_class(sites, ...)
        for j, column in enumerate(columns):
            each = [leaf.quantities({s: v[i] for s, v in sites.items()}, j, block.categories) for i in range(count)]
            values |= {(column, name): np.stack([one[name] for one in each]) for name in each[0]}
    index = pd.MultiIndex.from_tuples(list(values), names=["column", "quantity"])
    return _with_ends(classifier, np.stack(list(values.values()), axis=1), level).set_axis(index)


def _with_ends(classifier, draws, level: float) -> pd.DataFrame:
    """Return means of draws (draws, rows, K) and ends of their intervals, by (class, "mean" | "low" | "high")."""
    tail = (1 - level) / 2
    ends = np.stack([draws.mean(0), *np.quantile(draws, [tail, 1 - tail], axis=0)], axis=2)  # (rows, K, 3)
    heads = pd.MultiIndex.from_product([classifier.classes_.tolist(), ["mean", "low", "high"]], names=["class", None])
    return pd.DataFrame(ends.reshape(len(ends), -1), columns=heads)


def membership(classifier, X, level: float = 0.95) -> pd.DataFrame:
    """Return the probability of each class for rows, with an interval: how well the parameters are known moves it.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
    level : float, default 0.95
        Posterior probability of an interval of p(t = k | x, θ).

    Returns
    -------
    DataFrame, shape (n, 3K)
        Columns by (class, "mean" | "low" | "high").
    """
    classifier = fitted_of(classifier)
    draws, rows = _draws(classifier), classifier.read(X)
    joint = classifier.model_.log_likelihood_rows(draws, classifier.model_.check(rows))
    return _with_ends(classifier, np.moveaxis(softmax(joint, axis=1), 1, 2), level)


def typical_rows(classifier, X, count: int = 3) -> pd.DataFrame:
    """Return the rows that are typical of each class: of those in which it is the most probable, the densest.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
    count : int, default 3
        Rows of each class, fewer where it has fewer; the most typical is the first.

    Returns
    -------
    DataFrame, index (class, row)
        "membership", the probability of the class, and the columns of X.
    """
    classifier = fitted_of(classifier)
    check_count("count", count)
    table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=list(classifier.schema_.columns))
    density = classifier.posterior_.log_predictive(classifier.read(X))
    member = softmax(density, axis=1)
    taken = []
    for k in range(member.shape[1]):
        order = np.argsort(-np.where(member.argmax(1) == k, density[:, k], -np.inf), kind="stable")
        taken += [(k, row) for row in order[: min(count, (member.argmax(1) == k).sum())]]
    codes, places = np.array(taken, int).reshape(-1, 2).T
    index = pd.MultiIndex.from_arrays([classifier.classes_[codes], table.index[places]], names=["class", "row"])
    return table.iloc[places].set_axis(index).assign(membership=member[places, codes])


def separating_columns(classifier, X) -> pd.Series:
    """Return how much each column alone tells about the class, in nats, the most telling first; see the module.

    Parameters
    ----------
    X : DataFrame or array, shape (n, columns)
        Rows, as those of the fit.
    """
    classifier = fitted_of(classifier)
    names, terms = classifier.terms(X)
    prior, *terms = map(np.asarray, terms)
    member, share = classifier.predict_proba(X), softmax(prior, axis=-1)
    whole = [np.asarray(logsumexp(term + np.log(share), axis=1))[:, None] for term in terms]
    told = [(member * (term - level)).sum(1).mean() for term, level in zip(terms, whole, strict=True)]
    return pd.Series(told, index=list(names), name="nats").sort_values(ascending=False)


@dataclass(frozen=True)
class LeftOut:
    """Rows of unknown class, each predicted from all others by importance weights."""

    log_density: np.ndarray  # (m,): log p(x_i | all other rows)
    # (m,): shape of the largest weights of each row; above 0.7 do not trust its density: take out the row and fit
    pareto_k: np.ndarray

    @property
    def elpd(self) -> float:
        """Sum of the log densities of the rows left out."""
        return float(self.log_density.sum())

    @property
    def doubtful(self) -> int:
        """Number of rows whose k is above 0.7."""
        return int((self.pareto_k > LARGEST_K).sum())


def left_out(classifier) -> LeftOut:
    """Return each row of unknown class of the fit as predicted from all others; see the module."""
    classifier = fitted_of(classifier)
    model, statistics = classifier.model_, classifier.statistics_
    found = latent_classes.weighted_draws(model, statistics, np.random.default_rng(0))
    total, density, k = np.asarray(logsumexp(found.log_weight)), [], []
    cells = len(found.log_weight) * len(model.class_names)
    for rows in split_rows(statistics.rows, max(1, DENSITIES // cells)):
        level = np.logaddexp.reduce(model.log_likelihood_rows(found.params, rows), axis=1)  # (draws, rows)
        weight = found.log_weight[:, None] - level
        density.append(total - np.asarray(logsumexp(weight, axis=0)))
        k.append(pareto_shape(weight))
    return LeftOut(np.concatenate(density), np.concatenate(k))
