"""Boundaries between classes that a generative model implies, from a point estimate or for every posterior draw.

With Gaussian classes the class probabilities are a softmax of scores of degree two in x, so two classes meet in a conic
(quadric), under a shared covariance in a hyperplane; `docs/mathematics/boundaries.md` derives them. A posterior over
parameters is so a posterior over boundaries. The posterior predictive class probability averages over them and has no
boundary of this form itself.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from bayesgen.core.errors import listed
from bayesgen.models.beside_constants import of_all
from bayesgen.models.classifier import GaussianDiscriminant
from bayesgen.models.logistic_regression import LogisticRegression
from bayesgen.models.structures import structure


@dataclass(frozen=True)
class Discriminant:
    """Scores s_k(x) = x'Q_k x + w_k'x + b_k of every class, up to a term that all classes share.

    Attributes
    ----------
    classes : tuple
        Labels of the K classes.
    quadratic : array, shape (draws..., K, D, D)
        Q_k, symmetric, per squared unit of the columns; exactly 0 where the classes share the covariance.
    weights : array, shape (draws..., K, D)
        w_k, per unit of the columns.
    intercept : array, shape (draws..., K)
        b_k, in log odds.
    """

    classes: tuple
    quadratic: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray

    @property
    def linear(self) -> bool:
        """Return True if every boundary is a hyperplane."""
        return not self.quadratic.any()

    def scores(self, x) -> np.ndarray:
        """Return the scores of rows (n, D): (draws..., n, K)."""
        return np.swapaxes(Boundary(self.quadratic, self.weights, self.intercept).log_odds(x), -1, -2)

    def predict_proba(self, x) -> np.ndarray:
        """Return p(t = k | x, θ), the softmax of the scores: (draws..., n, K)."""
        return softmax(self.scores(x), axis=-1)

    def between(self, first, second) -> "Boundary":
        """Return the boundary between two classes, given by their labels."""
        absent = [label for label in (first, second) if label not in self.classes]
        if absent:
            raise ValueError(f"{absent[0]!r} is not one of the classes {listed(self.classes)}")
        a, b = self.classes.index(first), self.classes.index(second)
        parts = (self.quadratic, -3), (self.weights, -2), (self.intercept, -1)
        return Boundary(*(part.take(a, axis) - part.take(b, axis) for part, axis in parts))


@dataclass(frozen=True)
class Boundary:
    """The points where two classes are equally probable: x'Qx + w'x + b = 0; positive on the side of the first class.

    Attributes
    ----------
    quadratic : array, shape (draws..., D, D)
    weights : array, shape (draws..., D)
    intercept : array, shape (draws...)
    """

    quadratic: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray

    def log_odds(self, x) -> np.ndarray:
        """Return the log odds of the first class against the second, at rows (n, D): (draws..., n)."""
        x = _rows(x, self.weights.shape[-1])
        square = np.einsum("ni,...ij,nj->...n", x, self.quadratic, x, optimize=True)
        return square + np.einsum("...d,nd->...n", self.weights, x) + self.intercept[..., None]

    def conic(self) -> np.ndarray:
        """Return the symmetric matrix C of the quadric, (draws..., D + 1, D + 1): log odds = (x, 1)' C (x, 1)."""
        half = self.weights[..., None] / 2
        top = np.concatenate([self.quadratic, half], axis=-1)
        below = np.concatenate([np.swapaxes(half, -1, -2), self.intercept[..., None, None]], axis=-1)
        return np.concatenate([top, below], axis=-2)

    def kind(self) -> np.ndarray:
        """Return the curve in two columns, for every draw: "line", "ellipse", "hyperbola", "parabola" or "nowhere".

        The invariants of the conic decide: det Q, and for an ellipse the sign of det C. "parabola" is every conic with
        det Q = 0 to rounding (a pair of parallel lines too), "nowhere" is no boundary at all.
        """
        if self.weights.shape[-1] != 2:
            raise ValueError(f"kind() tells curves in 2 columns, got {self.weights.shape[-1]}")
        a, b, c = self.quadratic[..., 0, 0], self.quadratic[..., 0, 1], self.quadratic[..., 1, 1]
        determinant, resolution = a * c - b * b, 1e-12 * (np.abs(a * c) + b * b)
        real = (a + c) * np.linalg.det(self.conic()) < 0
        flat = ~self.quadratic.any((-1, -2))
        cases = [flat, np.abs(determinant) <= resolution, determinant < 0, real]
        return np.select(cases, ["line", "parabola", "hyperbola", "ellipse"], "nowhere")

    def crossings(self, start, direction) -> np.ndarray:
        """Return s where straight lines start + s direction meet the boundary, increasing, NaN where they do not.

        Parameters
        ----------
        start : array, shape (n, D)
            A point of each line.
        direction : array, shape (D,)
            Their common direction.

        Returns
        -------
        array, shape (draws..., n, 2)
            A line meets a quadric twice or not at all, a hyperplane once (the second entry is NaN).
        """
        dim = self.weights.shape[-1]
        start, u = _rows(start, dim), np.asarray(direction, float)
        if u.shape != (dim,) or not u.any():
            raise ValueError(f"direction must hold {dim} numbers, not all 0, got {direction!r}")
        square = np.einsum("i,...ij,j->...", u, self.quadratic, u)[..., None]
        a = np.broadcast_to(square, (*self.intercept.shape, len(start)))
        b = (self.weights @ u)[..., None] + 2 * np.einsum("i,...ij,nj->...n", u, self.quadratic, start)
        c = self.log_odds(start)
        with np.errstate(invalid="ignore", divide="ignore"):
            # Of the two roots the larger is free of cancellation; the other follows from their product c/a.
            q = -0.5 * (b + np.copysign(np.sqrt(b * b - 4 * a * c), b))
            roots = np.stack([np.where(a == 0, -c / b, q / a), np.where(a == 0, np.nan, c / q)], axis=-1)
        return np.sort(np.where(np.isfinite(roots), roots, np.nan), axis=-1)  # NaN sorts last


def discriminant(posterior, *, seed=None, size: tuple[int, ...] = (4, 1000)) -> Discriminant:
    """Return the scores of a Gaussian discriminant or logistic posterior, for its point estimate or every draw.

    Parameters
    ----------
    posterior : Posterior
        Posterior of a `GaussianDiscriminant` (every covariance) or a `LogisticRegression` (``classifier.posterior_``;
        if columns are standardised, the scores refer to the standardised columns).
    seed : int, Generator or JAX key, optional
        Source of randomness of the draws.
    size : tuple of int
        Number of draws, as leading axes; a point estimate has none.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = [[0.0, 0.0], [1.0, 0.5], [4.0, 3.0], [5.0, 3.5]], ["a", "a", "b", "b"]
    >>> lda = GaussianDiscriminantClassifier(shared=True).fit(X, y)
    >>> boundaries = discriminant(lda.posterior_, seed=0, size=(500,)).between("b", "a")
    >>> boundaries.weights.shape
    (500, 2)
    >>> bool((boundaries.log_odds([[2.5, 1.75]]) > 0).any())  # the middle may lie on either side
    True
    """
    model = posterior.model
    if not isinstance(model, GaussianDiscriminant | LogisticRegression):
        raise TypeError(
            f"discriminant() takes a posterior of GaussianDiscriminant or LogisticRegression, got one of "
            f"{type(model).__name__}"
        )
    _refuse_student(model)
    params = posterior.point_or_draws(seed, size)
    return (_of_logistic if isinstance(model, LogisticRegression) else _of_gaussian)(model, params)


def mean_scores(posterior, *, seed=None) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior means of the weights w_k, (K, D), and intercepts b_k, (K,), under a shared covariance.

    An exact posterior has them in closed form: the means of Σ⁻¹μ_k and of log π_k - ½ μ_k'Σ⁻¹μ_k. They are P m_k and
    log π_k - ½ (m_k'P m_k + D/κ_k), with P the mean of Σ⁻¹, since μ_k given Σ has mean m_k and covariance Σ/κ_k; so
    they are the mean scores, not the scores of the mean parameters.

    Parameters
    ----------
    posterior : Posterior
        Posterior of a `GaussianDiscriminant` whose classes share the covariance.
    seed : int, Generator or JAX key, optional
        Source of randomness, for posteriors that have to be drawn from.

    Examples
    --------
    >>> from bayesgen import GaussianDiscriminantClassifier
    >>> X, y = [[0.0, 0.0], [1.0, 0.5], [4.0, 3.0], [5.0, 3.5]], ["a", "a", "b", "b"]
    >>> weights, intercept = mean_scores(GaussianDiscriminantClassifier(shared=True).fit(X, y).posterior_)
    >>> weights[1].round(2), intercept.round(2)
    (array([ 8.43, 41.37]), array([ -1.98, -87.27]))
    """
    model = posterior.model
    if not isinstance(model, GaussianDiscriminant) or not model.shared:
        raise TypeError("mean_scores() takes a posterior of a GaussianDiscriminant whose classes share the covariance")
    _refuse_student(model)
    if posterior.integrated:
        said = model.gaussian.density()
        location, _, dof, kappa = said.arrays().values()
        vector = kappa.ndim < location.ndim
        # the squared scale of the predictive is 1 + 1/κ times S/(ν - D + 1), or β/α, where P is ν S⁻¹, or α/β
        more = (1 + 1 / kappa) * (1 + (location.shape[-1] - 1) / dof if vector else 1)
        weights = (_precision(said)[0] @ location[..., None])[..., 0] * (more[..., None] if vector else more)
        square = weights * location + 1 / (kappa[..., None] if vector else kappa)
        return of_all(model.gaussian, weights, 0.0), model.classes.mean_log - 0.5 * square.sum(-1)
    score = _of_gaussian(model, posterior.as_draws(seed).flat)
    return score.weights.mean(0), score.intercept.mean(0)


def _refuse_student(model) -> None:
    if getattr(model, "covariance", None) == "student":
        raise TypeError(
            "the log odds of Student's t are neither linear nor quadratic in the row: there are no weights and no "
            "matrix; bayesgen.plot.decision_regions shows where each class is the most probable"
        )


def _of_gaussian(model, params) -> Discriminant:
    with np.errstate(divide="ignore"):
        log_prior = np.log(params["classes.probability"])
    leaf, said = model.gaussian, model.gaussian.density(model.site(params, "gaussian"))
    precision, log_determinant = _precision(said)
    mean = said.arrays()["location"]
    weights = (precision @ mean[..., None])[..., 0]
    intercept = log_prior - 0.5 * (weights * mean).sum(-1)
    weights, precision = of_all(leaf, weights, 0.0), of_all(leaf, of_all(leaf, precision, 0.0).mT, 0.0)
    if model.shared:  # the quadratic term and the determinant are common to all classes
        return Discriminant(model.class_names, np.zeros_like(precision), weights, intercept)
    return Discriminant(model.class_names, -0.5 * precision, weights, intercept - 0.5 * log_determinant)


def _precision(said) -> tuple[np.ndarray, np.ndarray]:
    """Return inverse matrices (..., D, D), and log-determinants, of the squared scales of numbers or of a vector."""
    location, scale, *_ = said.arrays().values()
    if scale.ndim == location.ndim:
        return np.eye(scale.shape[-1]) / scale[..., None] ** 2, 2 * np.log(scale).sum(-1)
    cholesky = np.linalg.cholesky(scale)
    inverse = np.linalg.inv(cholesky)
    return inverse.mT @ inverse, 2 * np.log(np.diagonal(cholesky, axis1=-2, axis2=-1)).sum(-1)


def _of_logistic(model, params) -> Discriminant:
    weights, intercept = params["coefficients"], params["intercept"]
    if len(model.classes) == 2:
        weights, intercept = weights[..., None, :], intercept[..., None]
    absent = len(model.classes) - intercept.shape[-1]  # the reference class scores 0
    width = [(0, 0)] * (intercept.ndim - 1) + [(absent, 0) if model.scored == model.classes[1:] else (0, absent)]
    weights, intercept = np.pad(weights, [*width, (0, 0)]), np.pad(intercept, width)
    return Discriminant(model.classes, np.zeros((*weights.shape, weights.shape[-1])), weights, intercept)


def parameter_count(classes: int, columns: int, covariance: str = "full", shared: bool = False) -> int:
    """Count the free parameters of a Gaussian discriminant: K - 1 class probabilities, K means, the covariances.

    Parameters
    ----------
    classes, columns : int
        K and D.
    covariance : {"full", "diagonal", "isotropic"}
        D(D + 1)/2, D or 1 parameters each.
    shared : bool
        One covariance, or K.

    Examples
    --------
    Ten columns and two classes, against the D + 1 = 11 of logistic regression:

    >>> parameter_count(2, 10), parameter_count(2, 10, shared=True), parameter_count(2, 10, "isotropic", True)
    (131, 76, 22)
    """
    each = structure(covariance).count(columns)
    return classes - 1 + classes * columns + each * (1 if shared else classes)


def _rows(x, columns: int) -> np.ndarray:
    x = np.asarray(x, float)
    if x.ndim != 2 or x.shape[1] != columns:
        raise ValueError(f"expected rows of {columns} columns, (n, {columns}), got shape {x.shape}")
    if np.isnan(x).any():
        raise ValueError("a score needs all columns; predict_proba integrates over missing ones")
    return x
