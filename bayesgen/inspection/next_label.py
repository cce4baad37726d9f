r"""Which row to label next: the one whose label would tell most about the parameters.

The mutual information between the labels of some rows B and the parameters, given their columns,

.. math:: I(t_B; \theta \mid x_B) = H[t_B \mid x_B] - \mathrm{E}_{\theta \mid x_B}\Big[\sum_{b \in B} H[t_b \mid x_b,
   \theta]\Big],

is high where the classifier is unsure *because* it knows too little of the parameters, not because classes overlap
there (Houlsby, Huszár, Ghahramani and Lengyel 2011, arXiv:1112.5745). In a generative model the columns themselves tell
about :math:`\theta`: a draw counts in proportion to :math:`\prod_b p(x_b \mid \theta)`. Rows are added one by one, each
the best beside those before it (Kirsch, van Amersfoort and Gal 2019, *BatchBALD*): two rows that say the same have
little more information than one, so a batch does not repeat itself. The entropy of a batch is summed over all its
labellings up to 256 of them, and over 256 drawn ones beyond.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

from bayesgen.inspection.averaged import Averaged, averaged_draws
from bayesgen.inspection.probabilities import check_draws
from bayesgen.inspection.tempering import tempered
from bayesgen.numerics.checks import check_count
from bayesgen.numerics.memory import check_memory
from bayesgen.numerics.pieces import DENSITIES, count_rows, pieces, split_rows
from bayesgen.posterior import generator

_LABELLINGS = 256


@dataclass(frozen=True)
class Query:
    """Rows to label, the first the most informative.

    Attributes
    ----------
    rows : int array, shape (n,)
        Their places in X.
    information : array, shape (n,)
        What their labels tell of the parameters, in nats: of the first row, of the first two, and so on.
    effective : array, shape (n,)
        Effective draws that each of these rests on; below 100 they are rough, and more draws help.
    """

    rows: np.ndarray
    information: np.ndarray
    effective: np.ndarray


def query(classifier, X, n: int = 1, size: int = 1000) -> Query:
    """Choose the rows whose labels would tell most about the parameters, together.

    Parameters
    ----------
    classifier : fitted classifier
        By exact inference or NUTS, since a point estimate leaves nothing to learn; or averaged, whose draws are of
        members and of their parameters, and count the same whatever x is (a tempered member has no density of x).
    X : DataFrame or array, shape (rows, columns)
        Rows without labels.
    n : int, default 1
        How many to choose.
    size : int, default 1000
        Draws of the parameters.

    Returns
    -------
    Query

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier(random_state=0).fit(X[::7, 2:], y[::7])
    >>> query(classifier, [[1.4, 0.2], [4.9, 1.6], [4.9, 1.6], [4.0, 1.8]], n=2).rows
    array([3, 1])
    """
    check_is_fitted(classifier)
    check_count("n", n)
    check_count("size", size)
    joint = _joint(classifier, X, size)
    if n > joint.shape[1]:
        raise ValueError(f"n must be at most the {joint.shape[1]} rows of X, got {n}")
    return _greedy(joint, n, generator(classifier.random_state))


def _joint(classifier, X, size) -> np.ndarray:
    """p(x_i, t = k | θ_s) of each row in units of its own, (size, rows, K)."""
    rows = classifier._read(X)
    averaged = isinstance(classifier, Averaged)
    posterior = None if averaged else classifier.posterior_
    if posterior is not None:
        if posterior.kind == "point":
            raise ValueError("query() asks what is uncertain of the parameters: it needs inference='exact' or 'nuts'")
        check_draws(posterior, size)
        rows = posterior.model.check(rows)
    count = len(rows[0]) if averaged else count_rows(rows)
    shape = size, count, len(classifier.classes_)
    what = f"{size} draws of {count} rows' probabilities of {shape[2]} classes"
    check_memory(what, 4 * 8 * shape[0] * shape[1] * shape[2], "take fewer draws (size=), or fewer rows")
    if posterior is None:
        return np.concatenate(list(averaged_draws(classifier, rows, size)), axis=1)
    params, result, done = posterior.draws(classifier.random_state, (size,)), np.empty(shape), 0
    exponent = getattr(classifier, "exponent_", 1.0)
    for part in split_rows(rows, max(1, DENSITIES // (size * shape[2]))):
        density = np.moveaxis(posterior.model.log_likelihood_rows(params, part), 1, -1)
        with np.errstate(divide="ignore", under="ignore"):
            own = density
            if exponent != 1:
                own = tempered(density, np.log(params["classes.probability"])[:, None], exponent)
            label = np.exp(own - own.max(-1, keepdims=True))
            level = density.max(-1)
            weight = np.exp(density - level[..., None]).sum(-1) * np.exp(level - level.max(0))
            label *= (weight / label.sum(-1))[..., None]
        result[:, done : done + label.shape[1]] = label
        done += label.shape[1]
    return result


@np.errstate(under="ignore")
def _greedy(joint, n, rng) -> Query:
    """Add the row that makes the information of all chosen largest, n times."""
    density = joint.sum(2)  # p(x_i | θ_s)
    with np.errstate(invalid="ignore"):
        doubt = entr(np.nan_to_num(joint / density[..., None])).sum(2)  # H[t_i | x_i, θ_s]
    size, count, classes = joint.shape
    weight, known = np.ones(size), np.zeros(size)
    labelling, share = np.ones((size, 1)), np.ones(1)  # p(labels of the chosen rows, x | θ_s); what each stands for
    chosen, told, effective = [], [], []
    for _ in range(n):
        information, draws = np.full(count, -np.inf), np.empty(count)
        for part in pieces(count, labelling.shape[1] * classes + size):
            own = weight[:, None] * density[:, part]
            total = own.sum(0)
            draws[part] = total**2 / (own**2).sum(0)
            conditional = (own * (known[:, None] + doubt[:, part])).sum(0) / total
            p = np.einsum("sm,sik->mik", labelling, joint[:, part], optimize=True) / total[:, None]
            each = p.sum(2) * share[:, None]  # of the labellings at hand, given this row too
            surprise = -np.where(p > 0, np.log(np.where(p > 0, p, 1.0)), 0.0)
            entropy = (share[:, None, None] * p * surprise).sum((0, 2)) / each.sum(0)
            information[part] = entropy - conditional
        information[chosen] = -np.inf
        best = int(np.nan_to_num(information, nan=-np.inf).argmax())
        chosen.append(best)
        told.append(max(0.0, information[best]))
        effective.append(draws[best])
        weight, known = weight * density[:, best], known + doubt[:, best]
        top = weight.max()
        labelling = (labelling[:, :, None] * joint[:, best, None]).reshape(size, -1) / top
        weight, share = weight / top, np.repeat(share, classes)
        if len(share) > _LABELLINGS:
            p = labelling.sum(0) / weight.sum()
            upto = np.cumsum(share * p)
            places = (np.arange(_LABELLINGS) + rng.random()) / _LABELLINGS  # systematic: less noise than one by one
            picked = np.searchsorted(upto / upto[-1], places)
            labelling, share = labelling[:, picked], 1 / (p[picked] * _LABELLINGS)
    return Query(np.array(chosen), np.array(told), np.array(effective))
