"""Complete rows for the cases: each function makes one (rng, n) -> (x,) or (x, t), x of floats so that it takes NaN."""

import numpy as np


def bits(*shape):
    return lambda rng, n: ((rng.random((n, *shape)) < 0.4).astype(float),)


def codes(count, *shape):
    return lambda rng, n: (rng.integers(0, count, (n, *shape)).astype(float),)


def normals(*shape, mean=2.0, sd=1.5):
    return lambda rng, n: (rng.normal(mean, sd, (n, *shape)),)


def outlying(*shape):
    """Numbers with outliers: Student's t with three degrees of freedom."""
    return lambda rng, n: (2.0 + rng.standard_t(3, (n, *shape)),)


def skewed(*shape, shift=0):
    return lambda rng, n: (np.exp(rng.normal(1.0, 0.7, (n, *shape))) - shift * np.exp(-1.5),)


def counts(*shape, mean=2.5):
    return lambda rng, n: (rng.poisson(mean, (n, *shape)).astype(float),)


def heads(trials):
    return lambda rng, n: (rng.binomial(trials, 0.4, (n, *np.shape(trials))).astype(float),)


def tosses(most=8):
    """Pairs (heads, tosses), tosses from 0 up."""

    def rows(rng, n):
        all_tosses = rng.integers(0, most + 1, n)
        return (np.stack([rng.binomial(all_tosses, 0.4), all_tosses], -1).astype(float),)

    return rows


def documents(words, *shape, length=None):
    """Documents of up to five words, some of them empty; or all of one length."""

    def rows(rng, n):
        lengths = rng.integers(0, 6, (n, *shape)) if length is None else np.full((n, *shape), length)
        return (rng.multinomial(lengths, rng.dirichlet(np.full(words, 5.0))).astype(float),)

    return rows


def sequences(symbols, length):
    """Sequences of codes, a third of them shorter by one: -1 stands behind their end."""

    def rows(rng, n):
        x = rng.integers(0, symbols, (n, length)).astype(float)
        x[::3, -1] = -1
        return (x,)

    return rows


def classed(count, **parts):
    """Rows of a classifier: classes at random, the rows of class k moved (or, where discrete, drawn anew) by k."""

    def rows(rng, n):
        t = rng.permutation(np.arange(n) % count)
        x = {}
        for name, part in parts.items():
            (x[name],) = part(rng, n)
            if not np.array_equal(x[name], np.round(x[name])):
                x[name] += t.reshape(-1, *[1] * (x[name].ndim - 1))
        return (x["x"] if list(x) == ["x"] else x), t

    return rows


def columns(width, classes=0):
    """Rows of a regression: a noisy target, linear in the columns; or the class whose such score is the highest."""

    def rows(rng, n):
        x = rng.normal(size=(n, width)) @ (np.eye(width) + 0.3)
        slopes = np.cos(np.arange(width * max(classes, 1))).reshape(width, -1)
        scores = x @ slopes
        if classes:
            return x, (scores + rng.gumbel(size=scores.shape)).argmax(1)
        return x, 1 + scores[:, 0] + 0.7 * rng.standard_normal(n)

    return rows
