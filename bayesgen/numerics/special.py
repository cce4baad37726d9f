r"""One table of special functions for NumPy and JAX arrays, and differences of log-gammas that keep their digits.

Two log-gammas of arguments near n are n log n each, and their difference has lost as many digits: at n = 10¹⁵ the
density of a Student-t would err by 0.9. Stirling's series (Abramowitz & Stegun 6.1.41),

.. math:: \log\Gamma(z) = (z - \tfrac12) \log z - z + \tfrac12 \log 2\pi + S(z), \quad
   S(z) = \sum_{k \ge 1} \frac{B_{2k}}{2k (2k - 1) z^{2k - 1}}

is therefore subtracted term by term, with b = a + d:

.. math:: \log\Gamma(a + d) - \log\Gamma(a) = (a - \tfrac12) \log(1 + d/a) + d (\log b - 1) + S(b) - S(a).

With a >= 10 and d >= 0, log b exceeds 2.3: the first two terms are >= 0, nothing large cancels, and the rounding of b
does not matter. S alternates, and its error is less than the first term left out (A&S 6.1.42): with six terms less than
10⁻¹³/156 = 7e-16. Below 10 the plain difference is as good: there log Γ(a) is at most 19 (down to a = 10⁻⁸), and its
rounding error is small beside max(1, |difference|).

`log1p_sum_squares` goes beyond 1e154, where a square alone overflows.
"""

import sys
from typing import Any

import numpy as np
from scipy import special

from bayesgen.core import program

_LARGE = 10.0  # from here on Stirling's series
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # B_2k / (2k (2k - 1)), k = 1..6

# -- the table -------------------------------------------------------------------------------------------------------


def namespace(*arrays) -> Any:  # no type says that a module is one of these two
    """Return ``jax.numpy`` if an argument is a JAX array or tracer, else ``numpy``, without importing JAX."""
    array = getattr(sys.modules.get("jax"), "Array", None)
    return program.jnp if array and any(isinstance(value, array) for value in arrays) else np


def _library(*arrays) -> Any:
    return special if namespace(*arrays) is np else program.jax.scipy.special


def gammaln(x):
    """Return the log of the gamma function, x > 0."""
    return _library(x).gammaln(x)


def xlogy(x, y):
    """Return x log y, and 0 where x is 0."""
    return _library(x, y).xlogy(x, y)


def log_ndtr(x):
    """Return the log of the distribution function of the standard normal, exact in both tails."""
    return _library(x).log_ndtr(x)


def softplus(x):
    """Return log(1 + exp(x)), exact in both tails; with NumPy in a third of the time of ``logaddexp(0, x)``."""
    if namespace(x) is not np:
        return program.jax.nn.softplus(x)
    return np.maximum(x, 0.0) + np.log1p(np.exp(-abs(x)))


def _elementwise(function, *arrays):
    """Return ``function(xp, *arrays)`` of float arrays that broadcast.

    JAX arrays keep their precision. They are broadcast beforehand, for a user whose JAX refuses to promote ranks.
    """
    xp = namespace(*arrays)
    if xp is not np:
        dtype = xp.result_type(float, *arrays)
        return function(xp, *xp.broadcast_arrays(*(xp.asarray(value, dtype) for value in arrays)))
    return function(np, *(np.asarray(value, float) for value in arrays))


def _stirling_tail(z):
    """Return S(z) of Stirling's series to within 7e-16, z >= 10."""
    w = 1 / z
    square = w * w
    result = square * _STIRLING[-1] + _STIRLING[-2]
    for coefficient in _STIRLING[-3::-1]:  # in place, where arrays can be written to
        result *= square
        result += coefficient
    result *= w
    return result


# -- differences -----------------------------------------------------------------------------------------------------


def log_gamma_ratio(a, d):
    """Return log Γ(a + d) - log Γ(a), a > 0 and a + d > 0, without loss of digits however large a or d.

    The step d is an argument of its own, since 2^52 + 1/2 would be rounded. The result is accurate to 1e-13 max(1,
    |value|) in float64 and 1e-5 max(1, |value|) in float32, for a and |d| from 1e-8 to 2^53. The derivatives under JAX,
    ψ(a + d) - ψ(a) by a and ψ(a + d) by d, have the same accuracy relative to the larger of 1 and the two digammas.
    """
    return _elementwise(_log_gamma_ratio, a, d)


def _log_gamma_ratio(xp, a, d):
    b, down = a + d, d < 0
    low = xp.where(down, b, a)
    small = low < _LARGE
    if xp is np and not (small.any() or down.any()):
        return _stirling_step(xp, a, d)
    if xp is np and small.all():
        return gammaln(b) - gammaln(a)
    up = _stirling_step(xp, xp.where(small, _LARGE, low), xp.where(down, -d, d))  # a step down is one up from its end
    return xp.where(small, gammaln(b) - gammaln(a), xp.where(down, -up, up))


def _stirling_step(xp, low, step):
    """Return log Γ(low + step) - log Γ(low), low >= 10, step >= 0."""
    high = low + step
    tails = _stirling_tail(high) - _stirling_tail(low)
    return (low - 0.5) * xp.log1p(step / low) + step * (xp.log(high) - 1) + tails


def multivariate_log_gamma_ratio(nu, d, dim: int):
    r"""Return log Γ_D((nu + d)/2) - log Γ_D(nu/2), as in evidence and predictive of a Wishart.

    Γ_D(z) = π^(D(D-1)/4) ∏_{j<D} Γ(z - j/2) (Muirhead 1982, theorem 2.1.12); its power of π cancels. ``nu`` are degrees
    of freedom, > D - 1, and ``d`` their increase.
    """
    xp = namespace(nu, d)
    nu, d = xp.asarray(nu)[..., None], xp.asarray(d)[..., None]
    below = np.arange(dim, dtype=nu.dtype if nu.dtype.kind == "f" else float).reshape((1,) * (nu.ndim - 1) + (dim,))
    return log_gamma_ratio((nu - below) / 2, d / 2).sum(-1)


def student_tail(square, dim, dof) -> np.ndarray:
    """Return P(δ²/dof >= square), δ² the squared distance of a ``dim``-variate Student-t from its centre: δ²/dim ~ F.

    >>> float(student_tail(3.0, 2, 1.0))  # in two dimensions (1 + square)^(-dof/2)
    0.5
    """
    with np.errstate(over="ignore"):
        return special.betainc(np.asarray(dof) / 2, np.maximum(np.asarray(dim) / 2, 0.5), 1 / (1 + np.asarray(square)))


def _betaln(xp, a, b):
    """Return log Γ(a) Γ(b)/Γ(a + b), as log Γ of the smaller argument less a `log_gamma_ratio` of the larger."""
    low = xp.minimum(a, b)
    return gammaln(low) - _log_gamma_ratio(xp, xp.maximum(a, b), low)


def log_multichoose(a, x):
    """Return log Γ(a + x)/(Γ(a) x!), the coefficient in every predictive of counts: -log B(a, x + 1) - log(a + x).

    For concentrations a > 0 and counts x >= 0; a = n - x + 1 gives the log of the binomial coefficient of x out of n.
    It is accurate to 1e-13 max(1, |value|) in float64, whichever of the two is the larger.
    """
    return _elementwise(lambda xp, a, x: -_betaln(xp, a, x + 1) - xp.log(a + x), a, x)


def log_beta_binomial(a, b, x, y):
    """Return log C(n, x) B(a + x, b + y)/B(a, b), for the probability of x heads in n = x + y tosses, prior Beta(a, b).

    Prior counts a and b are > 0, counts or their weights x and y >= 0. With M of `log_multichoose` and t = a + b, it is
    M(a, x) + M(b, y) - M(t, n), as for every Pólya urn (Johnson, Kemp & Kotz 2005, *Univariate Discrete Distributions*,
    chapter 6). M(a, x) is made of terms of at most l log(a + x), l = min(a, x + 1), each rounded a few times, so that
    4 ε l log(a + x) covers them with a margin, ε being 2.2e-16; and the first two l add up to at most the third and 1.

    So the result is accurate to the larger of 3e-13 max(1, |value|), thrice the accuracy of M, and
    8 ε (1 + min(t, n)) log(1 + t + n): that is 3e-8 for a million tosses after a million, and 3e-13 under a flat prior,
    however many tosses. In float32 it is the larger of 6e-5 max(1, |value|) and the second term with its ε.
    """

    def urn(xp, a, b, x, y):
        value = log_multichoose(a, x) + log_multichoose(b, y) - log_multichoose(a + b, x + y)
        return xp.where(x + y == 0, 0.0, value)

    return _elementwise(urn, a, b, x, y)


def log_beta_ratio(a, b, x, y):
    """Return log B(a + x, b + y) - log B(a, b), the evidence of x heads and y tails in order, prior Beta(a, b).

    It is `log_beta_binomial` without the coefficient, log C(n, x). That adds 1e-13 max(1, |value|) to its errors.
    """
    return _elementwise(lambda xp, a, b, x, y: log_beta_binomial(a, b, x, y) - log_multichoose(y + 1, x), a, b, x, y)


@np.errstate(under="ignore")
def log1p_sum_squares(z, axis: int | tuple[int, ...] = -1):
    """Return log(1 + Σ z²) over an axis without overflow, for the log density of a Student-t far from its centre.

    With c = max(1, max |z|) it is 2 log c + log(1/c² + Σ (z/c)²), in which nothing overflows; with NumPy this form is
    used only for the sums that did overflow. ``axis`` () sums over none. The result is NaN where an entry is NaN, and
    infinite where one is infinite.
    """
    if namespace(z) is not np:
        return _scaled(z, axis)
    with np.errstate(over="ignore"):
        result = np.asarray(np.log1p(np.square(z).sum(axis)))
        if np.isinf(result).any():
            far = np.isinf(result)
            result[far] = np.asarray(_scaled(z, axis))[far]
    return result


def _scaled(z, axis):
    xp = namespace(z)
    size = abs(z).max(axis, keepdims=True, initial=1.0)
    size = xp.where(xp.isinf(size), 1.0, size)
    if xp is not np:
        size = program.jax.lax.stop_gradient(size)  # the value does not depend on it
    parts, level = z / size, xp.squeeze(size, axis)
    return 2 * xp.log(level) + xp.log1p((parts * parts).sum(axis) + ((1 / level) ** 2 - 1))


def log_sum_groups(log_terms, first, axis: int = 0) -> np.ndarray:
    """Return the log of sums of terms, given by their logs, over groups side by side on an axis, begun at ``first``."""
    top = np.maximum(np.maximum.reduceat(log_terms, first, axis), -1e300)
    with np.errstate(under="ignore", divide="ignore"):
        terms = log_terms - np.repeat(top, np.diff(first, append=log_terms.shape[axis]), axis)
        return np.log(np.add.reduceat(np.exp(terms, out=terms), first, axis)) + top


def log_mixture(log_terms, weights) -> np.ndarray:
    """Return the log of the sum over members of weights (M,) times terms given by their logarithms (M, ...).

    ``logsumexp(b=)`` divides by the weight of the largest term: if that is 1e-310, it overflows and the sum is -inf.
    """
    with np.errstate(divide="ignore"):  # a weight of 0
        return np.asarray(special.logsumexp((log_terms.T + np.log(weights)).T, axis=0))
