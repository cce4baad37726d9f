r"""Labels: the rows to label next, the class behind a doubtful label, the weight of rows without labels.

`next_labels` chooses the rows whose labels hold most information about the parameters. The mutual information between
the labels of some rows B and the parameters, given their columns,

.. math:: I(t_B; \theta \mid x_B) = H[t_B \mid x_B] - \mathrm{E}_{\theta \mid x_B}\Big[\sum_{b \in B} H[t_b \mid x_b,
   \theta]\Big],

is high where the classifier is unsure *because* it knows too little of the parameters, not because classes overlap
there (Houlsby, Huszár, Ghahramani and Lengyel 2011, arXiv:1112.5745). In a generative model the columns themselves are
evidence of :math:`\theta`: a draw counts in proportion to :math:`\prod_b p(x_b \mid \theta)`. Rows are added one by
one, each the best beside those before it (Kirsch, van Amersfoort and Gal 2019, *BatchBALD*): two similar rows have
little more information than one, so a batch does not repeat itself. The entropy of a batch is summed over all its
labellings up to 256 of them, and over 256 drawn ones beyond.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, softmax
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from bayesgen.core.memory import check_memory
from bayesgen.core.registry import fitted_of
from bayesgen.inspection.probabilities import by_pieces
from bayesgen.numerics.checks import check_count, check_weight
from bayesgen.numerics.draws import generator
from bayesgen.numerics.folds import folds
from bayesgen.numerics.pieces import DENSITIES, count_rows, pieces, split_rows
from bayesgen.tables.labels import class_codes, codes_of, some_labels

_LABELLINGS = 256
_DRAWS = 500  # of the posterior, for the class of a row given its label


@dataclass(frozen=True)
class NextLabels:
    """Rows to label, the first the most informative.

    Attributes
    ----------
    rows : int array, shape (n,)
        Places of the rows in X.
    information : array, shape (n,)
        Information of their labels about the parameters, in nats: of the first row, of the first two, and so on.
    effective : array, shape (n,)
        Effective draws behind each of these; below 100 they are rough, and more draws help.
    """

    rows: np.ndarray
    information: np.ndarray
    effective: np.ndarray


def next_labels(classifier, X, n: int = 1, size: int = 1000) -> NextLabels:
    """Choose the rows whose labels, together, hold most information about the parameters.

    Parameters
    ----------
    classifier : fitted classifier
        Classifier by exact inference or NUTS, since a point estimate leaves nothing to learn; or an averaged one, whose
        draws are members with their parameters, and count the same whatever x is (a tempered member has no density of
        x).
    X : DataFrame or array, shape (rows, columns)
        Rows without labels.
    n : int, default 1
        Number of rows to choose.
    size : int, default 1000
        Number of draws of the parameters.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = GaussianDiscriminantClassifier(random_state=0).fit(X[::7, 2:], y[::7])
    >>> next_labels(classifier, [[1.4, 0.2], [4.9, 1.6], [4.9, 1.6], [4.0, 1.8]], n=2).rows
    array([3, 1])
    """
    classifier = fitted_of(classifier)
    check_count("n", n)
    check_count("size", size)
    joint = _joint(classifier, X, size)
    if n > joint.shape[1]:
        raise ValueError(f"n must be at most the {joint.shape[1]} rows of X, got {n}")
    return _greedy(joint, n, generator(classifier.random_state))


def _joint(classifier, X, size) -> np.ndarray:
    """Return p(x_i, t = k | θ_s) of each row up to a factor of the row, (size, rows, K)."""
    if not classifier.posterior_.uncertain:
        raise ValueError("next_labels() asks how uncertain parameters are: it needs inference='exact' or 'nuts'")
    rows = classifier.read_for_draws(X)
    shape = size, count_rows(rows), len(classifier.classes_)
    what = f"{size} draws of {shape[1]} rows' probabilities of {shape[2]} classes"
    check_memory(what, 4 * 8 * shape[0] * shape[1] * shape[2], "take fewer draws (size=), or fewer rows")
    parts = []
    for density, log_probability in by_pieces(classifier, rows, size):
        with np.errstate(under="ignore"):
            level = density.max(1)
            weight = np.exp(density - level[:, None]).sum(1) * np.exp(level - level.max(0))
            parts.append(np.exp(log_probability) * weight[..., None])
    return np.concatenate(parts, axis=1)


@np.errstate(under="ignore")
def _greedy(joint, n, rng) -> NextLabels:
    """Add the row that makes the information of all chosen largest, n times."""
    density = joint.sum(2)  # p(x_i | θ_s)
    with np.errstate(invalid="ignore"):
        doubt = entr(np.nan_to_num(joint / density[..., None])).sum(2)  # H[t_i | x_i, θ_s]
    size, count, classes = joint.shape
    weight, known = np.ones(size), np.zeros(size)
    labelling, share = np.ones((size, 1)), np.ones(1)  # p(labels of the chosen rows, x | θ_s); what each stands for
    chosen, values, effective = [], [], []
    for _ in range(n):
        information, draws = np.full(count, -np.inf), np.empty(count)
        for piece in pieces(count, labelling.shape[1] * classes + size):
            weighted = weight[:, None] * density[:, piece]
            total = weighted.sum(0)
            draws[piece] = total**2 / (weighted**2).sum(0)
            conditional = (weighted * (known[:, None] + doubt[:, piece])).sum(0) / total
            p = np.einsum("sm,sik->mik", labelling, joint[:, piece], optimize=True) / total[:, None]
            each = p.sum(2) * share[:, None]  # of the labellings at hand, given this row too
            surprise = -np.where(p > 0, np.log(np.where(p > 0, p, 1.0)), 0.0)
            entropy = (share[:, None, None] * p * surprise).sum((0, 2)) / each.sum(0)
            information[piece] = entropy - conditional
        information[chosen] = -np.inf
        best = int(np.nan_to_num(information, nan=-np.inf).argmax())
        chosen.append(best)
        values.append(max(0.0, information[best]))
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
    return NextLabels(np.array(chosen), np.array(values), np.array(effective))


def class_given_label(classifier, X, y) -> np.ndarray:
    r"""Return the probability of each class given a row and its label: small at a label that looks wrong.

    .. math:: p(t_i = k \mid x_i, s_i, \text{data}) = \mathrm{E}_{\theta \mid \text{data}} \left[
       \frac{\pi_k \Gamma_{k s_i} p(x_i \mid \theta_k)}{\sum_l \pi_l \Gamma_{l s_i} p(x_i \mid \theta_l)} \right]

    This is exact for rows of the fit, whose labels are among the data; the labels of other rows have taught nothing.

    Parameters
    ----------
    classifier : LatentClassClassifier
        Classifier fitted with ``label_noise``, whose posterior is used.
    X, y : rows and their labels
        Rows of the fit, with the labels as given.

    Returns
    -------
    array, shape (n, K)
        Columns in the order of ``classes_``.

    Examples
    --------
    >>> from bayesgen import LatentClassClassifier
    >>> from bayesgen.models import LabelNoise
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> y[3] = 2
    >>> classifier = LatentClassClassifier("discriminant", label_noise=LabelNoise(0.05)).fit(X, y)
    >>> class_given_label(classifier, X[3:4], y[3:4]).round(2)
    array([[1., 0., 0.]])
    """
    classifier = fitted_of(classifier)
    if getattr(classifier, "confusion_", None) is None:
        raise ValueError("class_given_label() needs a LatentClassClassifier that was fitted with label_noise=")
    posterior = classifier.posterior_with_labels_
    rows = posterior.check(classifier.read(X))
    rows = posterior.model.beside(rows, codes_of(y, classifier.classes_, count_rows(rows)))
    size = 1 if classifier.posterior_.kind == "point" else _DRAWS
    params = posterior.draws(generator(classifier.random_state), (size,))
    found = []
    for piece in split_rows(rows, max(1, DENSITIES // (size * len(classifier.classes_)))):
        with np.errstate(under="ignore"):
            found += list(softmax(posterior.model.log_likelihood_rows(params, piece), axis=1).mean(0).T)
    return np.stack(found)


@dataclass(frozen=True)
class UnlabelledWeight:
    """Log loss of labelled rows held out, by the weight that rows without a label have.

    Attributes
    ----------
    weights : array, shape (W,)
        Weights that were tried; weight 0 leaves the rows out.
    losses : array, shape (W, n)
        -log p(true class) of each labelled row.
    """

    weights: np.ndarray
    losses: np.ndarray

    @property
    def log_loss(self) -> np.ndarray:
        """Return the mean loss over the rows under each weight, (W,)."""
        return self.losses.mean(1)

    @property
    def best(self) -> float:
        """Return the weight of least log loss; 0 if rows without a label do harm."""
        return float(self.weights[self.log_loss.argmin()])


def unlabelled_weight(classifier, X, y, weights=(0.0, 0.1, 0.3, 1.0), seed: int = 0) -> UnlabelledWeight:
    """Try weights for the rows without a label, by cross-validation over the rows that have one.

    If the model is wrong, rows without a label may pull the classes towards groups that are no classes, the more rows
    the more. So try before: ``fit(X, y, sample_weight=np.where(has_label, 1, best))``.

    Parameters
    ----------
    classifier : LatentClassClassifier
        Classifier, which stays as it is.
    X, y : rows and labels, some of them missing
        All rows of a fit. Every class needs two labels.
    weights : array, shape (W,)
        Weights to try, >= 0.
    seed : int
        Seed of the folds: five, or as many as the smallest class has labels.

    Examples
    --------
    >>> from bayesgen import LatentClassClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> some = np.where(np.arange(150) % 10 == 0, y, np.nan)  # five labels of each class
    >>> classifier = LatentClassClassifier("discriminant", shared=True)
    >>> unlabelled_weight(classifier, X, some, weights=[0.0, 1.0]).log_loss.round(2)
    array([0.16, 0.1 ])
    """
    labels, place = some_labels(y, 0)
    if (place >= 0).all() or not len(labels):
        raise ValueError("every row of y has a label, or none; weights are tried where some have one")
    tried = np.asarray(check_weight(np.atleast_1d(weights), np.size(weights), "weights"))
    _, codes = class_codes(labels)
    fewest = np.bincount(codes).min()
    if fewest < 2:
        raise ValueError("a class has one label only; to hold it out every class needs two")
    known, fold = place >= 0, folds(codes, min(5, int(fewest)), seed)
    losses = np.empty((len(tried), len(codes)))
    for w, j in np.ndindex(len(tried), int(fold.max()) + 1):
        weight, out = np.where(known, 1.0, tried[w]), fold == j
        held = np.flatnonzero(known)[out]
        weight[held] = 0.0
        fitted = clone(classifier).fit(X, y, weight)
        mine = codes_of(labels[out], fitted.classes_, len(held))
        losses[w, out] = -fitted.predict_log_proba(_safe_indexing(X, held))[np.arange(len(held)), mine]
    return UnlabelledWeight(tried, losses)
