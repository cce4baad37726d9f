"""The lecture models once more, from SciPy's densities and draws alone: nothing here knows a conjugate posterior.

The exact answers come by weighting draws of the prior with the likelihood of the rows, the point estimates by a search
that knows only the value of the density. Arrays are written draws M, classes K, columns D.
"""

import numpy as np
from scipy import optimize, stats
from scipy.special import expit, softmax, xlogy

K = 2


class Leaf:
    """Scalar features, each with a parameter of its own in every class; a missing entry has no factor."""

    def __init__(self, *hyper):
        self.hyper = [np.asarray(h, float) for h in hyper]
        self.columns = np.broadcast_shapes(*(h.shape for h in self.hyper))[0]

    def shape(self, m):
        return m, K, self.columns

    def log_rows(self, theta, x):
        """Log p(x | θ, k) of one row: (M, K)."""
        return np.where(np.isnan(x), 0.0, self.log_entry(theta, np.nan_to_num(x))).sum(-1)


class Bernoulli(Leaf):
    def draw(self, rng, m):
        return [rng.beta(*self.hyper, self.shape(m))]

    def unpack(self, v):
        return [expit(v).reshape(self.shape(1))]

    size = property(lambda self: K * self.columns)

    def log_prior(self, theta):
        return stats.beta.logpdf(theta[0], *self.hyper).sum((1, 2))

    def log_entry(self, theta, x):
        return stats.bernoulli.logpmf(x.astype(int), theta[0])


class Binomial(Bernoulli):
    tosses = 5

    def log_entry(self, theta, x):
        return stats.binom.logpmf(x.astype(int), self.tosses, theta[0])


class Poisson(Bernoulli):
    def draw(self, rng, m):
        return [rng.gamma(self.hyper[0], 1 / self.hyper[1], self.shape(m))]

    def unpack(self, v):
        return [np.exp(v).reshape(self.shape(1))]

    def log_prior(self, theta):
        return stats.gamma.logpdf(theta[0], self.hyper[0], scale=1 / self.hyper[1]).sum((1, 2))

    def log_entry(self, theta, x):
        return stats.poisson.logpmf(x.astype(int), theta[0])


class Categorical(Leaf):
    """One column; ``hyper`` is alpha (V,)."""

    def __init__(self, alpha):
        super().__init__(alpha)
        self.values, self.columns = self.columns, 1

    def draw(self, rng, m):
        return [rng.dirichlet(self.hyper[0], (m, K))]

    def unpack(self, v):
        return [softmax(np.column_stack([v.reshape(K, -1), np.zeros(K)]), axis=1)[None]]

    size = property(lambda self: K * (self.values - 1))

    def log_prior(self, theta):
        return np.array([sum(stats.dirichlet.logpdf(p, self.hyper[0]) for p in draw) for draw in theta[0]])

    def log_rows(self, theta, x):
        return np.zeros(theta[0].shape[:2]) if np.isnan(x).any() else np.log(theta[0][..., int(x[0])])


class Multinomial(Categorical):
    """A bag of V words, missing as a whole."""

    def __init__(self, alpha):
        super().__init__(alpha)
        self.columns = self.values

    def log_rows(self, theta, x):
        if np.isnan(x).all():
            return np.zeros(theta[0].shape[:2])
        return stats.multinomial.logpmf(x.astype(int), int(x.sum()), theta[0])


class KnownVariance(Leaf):
    """``hyper`` is prior mean, prior sd, noise sd."""

    size = property(lambda self: K * self.columns)

    def draw(self, rng, m):
        return [rng.normal(self.hyper[0], self.hyper[1], self.shape(m))]

    def unpack(self, v):
        return [v.reshape(self.shape(1))]

    def log_prior(self, theta):
        return stats.norm.logpdf(theta[0], self.hyper[0], self.hyper[1]).sum((1, 2))

    def log_entry(self, theta, x):
        return stats.norm.logpdf(x, theta[0], self.hyper[2])


class Gaussian:
    """Vectors of two columns under a covariance structure; missing entries by the marginal. θ is (mean, covariance)."""

    def __init__(self, covariance, shared, **hyper):
        self.covariance, self.shared, self.hyper = covariance, shared, hyper
        self.columns, self.owners = 2, 1 if shared else K
        self.free = {"full": 3, "diagonal": 2, "isotropic": 1}[covariance]
        self.size = 2 * K + self.free * self.owners

    def draw(self, rng, m):
        h = self.hyper
        if self.covariance == "full":
            matrix = stats.invwishart(h["nu"], h["scale"]).rvs(m * self.owners, random_state=rng)
            matrix = matrix.reshape(m, self.owners, 2, 2)
        else:
            size = (m, self.owners, 2 if self.covariance == "diagonal" else 1)
            matrix = (1 / rng.gamma(h["alpha"], 1 / np.asarray(h["beta"]), size))[..., None] * np.eye(2)
        matrix = np.broadcast_to(matrix, (m, K, 2, 2))
        root = np.linalg.cholesky(matrix / h["kappa"])
        return [h["mean"] + np.einsum("mkij,mkj->mki", root, rng.normal(size=(m, K, 2))), matrix]

    def unpack(self, v):
        mean, rest = v[: 2 * K].reshape(1, K, 2), v[2 * K :].reshape(self.owners, self.free)
        matrix = np.zeros((self.owners, 2, 2))
        sd = np.exp(rest[:, :2] if self.free > 1 else np.repeat(rest, 2, axis=1))
        matrix[:, [0, 1], [0, 1]] = sd**2
        if self.free == 3:
            matrix[:, 0, 1] = matrix[:, 1, 0] = np.tanh(rest[:, 2]) * sd.prod(1)
        return [mean, np.broadcast_to(matrix, (K, 2, 2))[None]]

    def log_prior(self, theta):
        return np.array([self.log_prior_of(mean, matrix) for mean, matrix in zip(*theta, strict=True)])

    def log_prior_of(self, mean, matrix):
        h = self.hyper
        value = sum(stats.multivariate_normal.logpdf(mean[k], h["mean"], matrix[k] / h["kappa"]) for k in range(K))
        for k in range(self.owners):
            if self.covariance == "full":
                value += stats.invwishart.logpdf(matrix[k], h["nu"], h["scale"])
            else:
                variances = np.diagonal(matrix[k])[: 2 if self.covariance == "diagonal" else 1]
                value += stats.invgamma.logpdf(variances, h["alpha"], scale=h["beta"]).sum()
        return value

    def log_rows(self, theta, x):
        mean, matrix = theta
        seen = ~np.isnan(x)
        if not seen.any():
            return np.zeros(mean.shape[:2])
        sd = np.sqrt(np.diagonal(matrix, axis1=-2, axis2=-1))
        if not seen.all():  # one of two: its own normal
            j = int(seen.argmax())
            return stats.norm.logpdf(x[j], mean[..., j], sd[..., j])
        # the first, and the second given the first
        slope = matrix[..., 0, 1] / matrix[..., 0, 0]
        rest = matrix[..., 1, 1] - slope * matrix[..., 0, 1]
        conditional = mean[..., 1] + slope * (x[0] - mean[..., 0])
        return stats.norm.logpdf(x[0], mean[..., 0], sd[..., 0]) + stats.norm.logpdf(x[1], conditional, np.sqrt(rest))


class Classifier:
    """A Dirichlet class prior and independent parts; rows are the parts' columns side by side."""

    def __init__(self, alpha, *parts):
        self.alpha, self.parts = np.asarray(alpha, float), parts
        self.cuts = np.cumsum([p.columns for p in parts])[:-1]
        self.drawn = {}  # of the prior, and what was asked of it: rows with and without gaps have most of it in common

    def draw(self, rng, m):
        return [rng.dirichlet(self.alpha, m), *(p.draw(rng, m) for p in self.parts)]

    def log_joint(self, theta, x):
        """Log p(x, t = k | θ) of one row: (M, K)."""
        pieces = np.split(np.asarray(x, float), self.cuts)
        return np.log(theta[0]) + sum(p.log_rows(t, x) for p, t, x in zip(self.parts, theta[1:], pieces, strict=True))

    def log_rows(self, theta, rows, codes):
        return sum(self.log_joint(theta, x)[:, t] for x, t in zip(rows, codes, strict=True))

    def predictive(self, rows, codes, new, draws=200_000, seed=0):
        """p(x, t = k | rows) of new rows, and its standard error, by prior draws weighted with their likelihood.

        Prior and likelihood are products over the class probabilities and the parts, so each is averaged by itself.
        """
        if (seed, draws) not in self.drawn:
            self.drawn = {(seed, draws): (self.draw(np.random.default_rng(seed), draws), {})}
        (pi, *thetas), known = self.drawn[seed, draws]

        def log_rows(j, x):
            x = np.split(np.asarray(x, float), self.cuts)[j]
            key = j, x.tobytes()
            if key not in known:
                known[key] = self.parts[j].log_rows(thetas[j], x)
            return known[key]

        mean, error = _weighted(np.log(pi[:, codes]).sum(1), np.broadcast_to(pi, (len(new), *pi.shape)))
        relative = (error / mean) ** 2
        for j in range(len(self.parts)):
            log_weight = sum(log_rows(j, x)[:, t] for x, t in zip(rows, codes, strict=True))
            own, error = _weighted(log_weight, np.stack([np.exp(log_rows(j, x)) for x in new]))
            mean, relative = mean * own, relative + (error / own) ** 2
        return mean, mean * np.sqrt(relative)

    def estimate(self, rows, codes, with_prior, starts=2):
        """θ of highest likelihood, or posterior density in θ itself, by a search over an unconstrained vector."""

        def unpack(v):
            parts, theta = v[1:], [np.array([[expit(v[0]), expit(-v[0])]])]
            for p in self.parts:
                theta.append(p.unpack(parts[: p.size]))
                parts = parts[p.size :]
            return theta

        def costs(vectors):
            classes, *parts = zip(*map(unpack, vectors), strict=True)
            parts = [[np.concatenate(site) for site in zip(*own, strict=True)] for own in parts]
            theta = [np.concatenate(classes), *parts]
            value = self.log_rows(theta, rows, codes)
            if with_prior:
                value = value + (xlogy(self.alpha - 1, theta[0])).sum(-1)
                value = value + sum(p.log_prior(t) for p, t in zip(self.parts, parts, strict=True))
            return -value

        def cost_and_slope(v):
            """With its central differences, all at once."""
            step = 1e-5 * np.eye(len(v))
            value, *around = costs([v, *(v + step), *(v - step)])
            return value, np.subtract(*np.split(np.array(around), 2)) / 2e-5

        rng, size = np.random.default_rng(1), 1 + sum(p.size for p in self.parts)
        found = []
        for _ in range(starts):
            v = rng.normal(scale=0.3, size=size)
            v = optimize.minimize(cost_and_slope, v, jac=True, method="BFGS", options={"gtol": 1e-9}).x
            found.append((costs([v])[0], v))
        best = min(found, key=lambda pair: pair[0])
        return unpack(best[1]), -best[0]


def _weighted(log_weight, values):
    """Mean of values (n, M, K) over weighted draws, and its standard error, (n, K)."""
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > 500
    mean = np.einsum("m,nmk->nk", weight, values)
    return mean, np.sqrt(np.einsum("m,nmk->nk", weight**2, (values - mean[:, None]) ** 2))
