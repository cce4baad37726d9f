r"""Ratios of beta functions, for the evidence of a coin and the beta-binomial, accurate up to 2^53 tosses.

Let p = a + x, q = b + y, t = a + b, s = p + q and u = x b - y a. Put Stirling's series of `bayesgen.numerics.special`
in each of the six log-gammas of B(p, q)/B(a, b), and cancel by hand all that cancels in exact algebra:

.. math:: -x \log\frac sp - y \log\frac sq - K(a, b) + \tfrac12 \log\frac{as}{tp} - \tfrac12 \log\frac qb
   + S(p) - S(a) + S(q) - S(b) - S(s) + S(t).

The first two terms are the cost of the data under the posterior mean p/s. K(a, b) = a log(as/(tp)) + b log(bs/(tq)) is
t times the Kullback-Leibler divergence of a/t from p/s. All three are costs: no large numbers are subtracted.

The binomial coefficient C(n, x), n = x + y, adds x log(n/x) + y log(n/y). The cost of the data then becomes K(x, y),
n times the divergence of x/n from p/s. So a beta-binomial of millions of tosses is accurate, though its factors are e
to the millions (the saddle-point form of Loader 2000, *Fast and accurate computation of binomial probabilities*).

Since xs - np = u = tp - as, and xq - yp = u as well, a divergence is K(x, y) = u²/(npq) + x l(u/(np)) + y l(-u/(nq))
with l(v) = log(1 + v) - v. Here the terms of first order have cancelled, so this form is used where both v are small;
far apart, those terms are no larger than K. The form needs u to its last digits.
"""

import numpy as np

from bayesgen.numerics.special import elementwise, gammaln, log_multichoose, stirling_tail

_LARGE = 10  # from here on Stirling's series is accurate
_NEAR = 0.25  # terms of first order are cancelled where the ratio of two shares is this near to 1


def log_beta_ratio(a, b, x, y):
    """Return log B(a + x, b + y) - log B(a, b), the evidence of x heads and y tails in order, prior Beta(a, b).

    Prior counts a and b are > 0, counts or their weights x and y >= 0. The result is accurate to 2e-13 max(1, |value|)
    in float64 and 1e-4 max(1, |value|) in float32, for arguments from 1e-8 to 2^53.
    """
    return elementwise(_log_beta_ratio, a, b, x, y)


def log_beta_binomial(a, b, x, y):
    """Return log C(x + y, x) B(a + x, b + y)/B(a, b), for the probability of x heads in x + y tosses.

    Arguments and accuracy are those of `log_beta_ratio`; counts may be 0.
    """
    return elementwise(_log_beta_binomial, a, b, x, y)


def _log_beta_ratio(xp, a, b, x, y):
    shape, p, q, _ = _without_cost(xp, a, b, x, y)
    return shape - (x * xp.log1p(q / p) + y * xp.log1p(p / q))


def _log_beta_binomial(xp, a, b, x, y):
    shape, p, q, u = _without_cost(xp, a, b, x, y)
    few = xp.minimum(x, y) < _LARGE  # then C(n, x), no larger than n^10, has a series of its own
    if xp is np and not few.any():
        return _saddle(xp, shape, x, y, p, q, u)
    plain = shape - (x * xp.log1p(q / p) + y * xp.log1p(p / q)) + log_multichoose(y + 1, x)
    x, y, u = (xp.where(few, one, value) for value, one in ((x, _LARGE), (y, _LARGE), (u, 0)))
    return xp.where(few, plain, _saddle(xp, shape, x, y, p, q, u))


def _saddle(xp, shape, x, y, p, q, u):
    """Return the log probability with coefficient and cost combined in a divergence."""
    n = x + y
    saddle = shape - _divergence(xp, x, y, p, q, u) - 0.5 * (np.log(2 * np.pi) + xp.log(x / n) + xp.log(y))
    return saddle + (stirling_tail(n) - stirling_tail(x) - stirling_tail(y))


def _without_cost(xp, a, b, x, y):
    """Return log B(a + x, b + y)/B(a, b) without the data's cost x log(s/p) + y log(s/q), and p, q, u."""
    p, q, t, u = a + x, b + y, a + b, _cross(xp, x, b, y, a)
    tails = _tail(xp, p) + _tail(xp, q) - _tail(xp, p + q) - (_tail(xp, a) + _tail(xp, b) - _tail(xp, t))
    shape = -_divergence(xp, a, b, p, q, -u) - 0.5 * (xp.log1p(x / a) - xp.log1p((x + y) / t) + xp.log1p(y / b))
    return shape + tails, p, q, u


def _tail(xp, z):
    """Return S(z) = log Γ(z) - (z - 1/2) log z + z - log(2π)/2, by its series where z is large, else as it stands."""
    small = z < _LARGE
    if xp is np and not small.any():
        return stirling_tail(z)
    low = xp.where(small, z, 1.0)
    plain = gammaln(low) - (low - 0.5) * xp.log(low) + (low - 0.5 * np.log(2 * np.pi))
    return xp.where(small, plain, stirling_tail(xp.where(small, _LARGE, z)))


def _cross(xp, x, b, y, a):
    """Return x b - y a to its last digits, though near the mode its terms are larger by the root of the count.

    Each product is kept as its rounded value and the exact remainder, from halves that multiply without rounding
    (Dekker 1971, *A floating-point technique for extending the available precision*).
    """
    splitter = 2.0 ** (xp.finfo(x.dtype).nmant // 2 + 1) + 1  # 2^27 + 1; 2^12 + 1 in float32

    def halves(value):
        high = splitter * value - (splitter * value - value)
        return high, value - high

    def product(one, other):
        value, (high, low), (upper, lower) = one * other, halves(one), halves(other)
        return value, ((high * upper - value) + high * lower + low * upper) + low * lower

    (xb, xb_error), (ya, ya_error) = product(x, b), product(y, a)
    return (xb - ya) + (xb_error - ya_error)


def _divergence(xp, x, y, p, q, u):
    """Return K(x, y) = x log(xs/(np)) + y log(ys/(nq)), where n = x + y, s = p + q and u = xq - yp."""
    n, s = x + y, p + q
    v, w = u / (n * p), -u / (n * q)
    near_v, near_w = abs(v) <= _NEAR, abs(w) <= _NEAR
    near = near_v & near_w
    v, w = xp.where(near_v, v, 0.0), xp.where(near_w, w, 0.0)
    close = u / n * (u / p) / q + x * _log_less_linear(v) + y * _log_less_linear(w)
    if xp is np and near.all():
        return close
    log_v = xp.where(near_v, xp.log1p(v), xp.log(x * s / (n * p)))
    log_w = xp.where(near_w, xp.log1p(w), xp.log(y * s / (n * q)))
    return xp.where(near, close, x * log_v + y * log_w)


def _log_less_linear(v):
    """Return log(1 + v) - v, |v| <= 1/4.

    With w = v/(2 + v) the logarithm is 2 artanh(w), and 2w - v = -v w, hence -v w + 2 w³ (1/3 + w²/5 + w⁴/7 + ...).
    Nine terms have a relative error of 1e-16 (the next is 2 w³ 7⁻¹⁸/21).
    """
    w = v / (2 + v)
    square = w * w
    series = square * (1 / 19) + 1 / 17
    for odd in range(15, 1, -2):
        series *= square
        series += 1 / odd
    series *= square
    return w * (2 * series - v)
