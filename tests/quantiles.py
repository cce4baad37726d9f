"""Quantiles and evidences of the Laplace approximation, pooled over data sets: `python tests/quantiles.py [NAME ...]`.

One fit's own draws cannot show that its tails are a little thin; 200 fits can. Of every scalar the share of draws below
each exact quantile is averaged over the data sets whose fit gave no warning. With n draws kept and S' effective
proposals it has the variance p(1 - p)(1/n + mean 1/S')/sets. The quoted error of the evidence must cover the truth in
95 % of the sets. The truth is exact, or a sum over a grid that is exact to five digits.

Writes docs/reliability/laplace.csv: the lines of the worlds named, or all; some minutes each.
"""

import csv
import functools
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats
from scipy.integrate import cumulative_simpson
from scipy.interpolate import CubicSpline, PchipInterpolator

import bayesgen as bg
from bayesgen.models import (
    BetaBernoulli,
    DirichletCategorical,
    GaussianDiscriminant,
    LogisticRegression,
    NormalInverseGamma,
    NormalInverseWishart,
    ProbitRegression,
    SeparationPrior,
)

TABLE = Path(__file__).parents[1] / "docs" / "reliability" / "laplace.csv"
P = np.array([0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99])
T = np.arange(8) % 2


@dataclass(frozen=True)
class World:
    """A model, how its data arise, and its exact posterior.

    Attributes
    ----------
    simulate : callable
        Data of a random generator, the true parameters drawn from the prior.
    truth : callable
        Of model and data: the log evidence, and of every scalar its quantiles at `P`.
    scalars : callable
        The same scalars of the sites of draws, each (draws,).
    """

    name: str
    model: Any
    simulate: Callable
    truth: Callable
    scalars: Callable

    def check(self, sets: int = 200) -> "Pooled":
        """Fit so many data sets."""
        seed, pooled = zlib.crc32(self.name.encode()), Pooled()
        for i in range(sets):
            data = self.simulate(np.random.default_rng([seed, i]))
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always", bg.inference.SamplerWarning)
                found = bg.fit(self.model, data, "laplace", seed=i)
            evidence, quantiles = self.truth(self.model, data)
            draws = self.scalars({site: v[0] for site, v in found.samples.items()})
            pooled.add(found, bool(told), evidence, {s: (draws[s] <= q[:, None]).mean(1) for s, q in quantiles.items()})
        return pooled


class Pooled:
    """The results of many fits."""

    def __init__(self):
        self.run, self.warned, self.shares, self.z, self.kept = [], [], [], [], 0

    def add(self, found, warned, evidence, shares):
        """Add a fit, with the true evidence and the shares of draws below each quantile."""
        self.warned.append(warned)
        self.run.append(found.run)
        self.shares.append(shares)
        self.z.append((found.log_evidence - evidence) / found.run["log_evidence_error"])
        self.kept = len(found.sample_stats["lp"][0])

    @property
    def good(self):
        """The fits without a warning."""
        return ~np.array(self.warned)

    @property
    def share(self) -> dict:
        """The pooled share of every scalar below each quantile."""
        shares = [s for s, good in zip(self.shares, self.good, strict=True) if good]
        return {name: np.mean([s[name] for s in shares], 0) for name in shares[0]}

    @property
    def scores(self) -> dict:
        """The error of the pooled share of each scalar and quantile, in standard errors."""
        effective = np.array([run["effective_proposals"] for run in self.run])[self.good]
        error = np.sqrt(P * (1 - P) * (1 / self.kept + (1 / effective).mean()) / len(effective))
        return {name: (share - P) / error for name, share in self.share.items()}

    @property
    def worst(self) -> float:
        """The largest of these scores."""
        return max(np.abs(z).max() for z in self.scores.values())

    @property
    def covered(self) -> float:
        """Share of fits without a warning whose 95 % interval of the evidence holds the truth."""
        return float((np.abs(np.array(self.z)[self.good]) < stats.norm.ppf(0.975)).mean())


# -- truths ------------------------------------------------------------------------------------------------------------


def quantiles_on(axis, weight):
    """Quantiles of a density whose values on an even grid are these; its logarithm is close to a spline."""
    fine = np.linspace(axis[0], axis[-1], 4000)
    density = np.exp(CubicSpline(axis, np.log(np.maximum(weight, 1e-300)))(fine))
    upto = cumulative_simpson(density, initial=0.0)
    return np.interp(P, upto / upto[-1], fine)


def mixture_quantiles(mean, sd, share):
    """Quantiles of a mixture of Gaussians."""
    center = share @ mean
    spread = np.sqrt(share @ (sd**2 + (mean - center) ** 2))
    axis = center + np.linspace(-7, 7, 120) * spread
    upto = np.array([share @ special.ndtr((a - mean) / sd) for a in axis])
    rising = np.concatenate([[True], np.diff(upto) > 1e-12])
    return PchipInterpolator(upto[rising], axis[rising])(P)


def gamma_normal(model, x):
    posterior = model.update(model.statistics(x))
    dof, scale = 2 * posterior.alpha, np.sqrt(posterior.beta / posterior.alpha / posterior.kappa)
    return float(model.log_evidence(model.statistics(x))), {
        "variance": stats.invgamma.ppf(P, posterior.alpha, scale=posterior.beta),
        "mean": stats.t.ppf(P, dof, posterior.mean, scale),
    }


def coins(model, x):
    posterior = model.update(model.statistics(x))
    quantiles = {f"probability {j}": stats.beta.ppf(P, posterior.a[j], posterior.b[j]) for j in range(x.shape[1])}
    return float(model.log_evidence(model.statistics(x))), quantiles


def full(model, data):
    statistics = model.statistics(*data)
    leaf = model.update(statistics).gaussian
    dim, quantiles = leaf.mean.shape[-1], {}
    for k in range(2):
        dof, scale = leaf.nu[k] - dim + 1, leaf.scale[k, 0, 0]
        quantiles[f"mean {k}"] = stats.t.ppf(P, dof, leaf.mean[k, 0], np.sqrt(scale / leaf.kappa[k] / dof))
        quantiles[f"variance {k}"] = stats.invgamma.ppf(P, dof / 2, scale=scale / 2)
    return float(model.log_evidence(statistics)), quantiles


def separation(model, data):
    """Given the covariance the mean of a class is Gaussian; its two standard deviations and correlation are summed."""
    (x, t), leaf = data, model.gaussian
    prior, alpha, evidence, quantiles = leaf.mean_sd[0] ** 2, model.classes.alpha, 0.0, {}
    evidence += special.betaln(*(alpha + np.bincount(t, minlength=2))) - special.betaln(*alpha)
    for k in range(2):
        rows = x[t == k]
        n, center = len(rows), rows.mean(0)
        scatter = (rows - center).T @ (rows - center)
        low, high = 0.5 * np.log(np.diagonal(scatter) / n) - 1.8, np.log(6 * leaf.scale)
        u, v = (np.linspace(low[j], high[j], 50) for j in range(2))  # logs of the standard deviations
        w = np.linspace(-8, 8, 80)  # artanh of the correlation
        a, b, r = np.exp(u)[:, None, None], np.exp(v)[:, None], np.tanh(w)
        rest = 1 / np.cosh(w) ** 2  # 1 - r²
        log_density = -(n - 1) * (np.log(a) + np.log(b) + 0.5 * np.log(rest)) - (n - 1) * np.log(2 * np.pi)
        log_density -= np.log(n)
        quadratic = scatter[0, 0] / a**2 + scatter[1, 1] / b**2 - 2 * r * scatter[0, 1] / (a * b)
        log_density = log_density - 0.5 * quadratic / rest
        aa, bb, ab = a**2 / n + prior, b**2 / n + prior, r * a * b / n  # of the mean of the rows
        det, (p, q) = aa * bb - ab**2, center - leaf.mean
        log_density -= np.log(2 * np.pi) + 0.5 * np.log(det) + 0.5 * (bb * p**2 + aa * q**2 - 2 * ab * p * q) / det
        for sd, s in ((a, leaf.scale[0]), (b, leaf.scale[1])):
            log_density = log_density + stats.halfnorm.logpdf(sd, scale=s) + np.log(sd)
        eta = leaf.eta
        log_density += eta * np.log(rest) - (2 * eta - 1) * np.log(2) - special.betaln(eta, eta)
        top = log_density.max()
        weight = np.exp(log_density - top)
        cell = (u[1] - u[0]) * (v[1] - v[0]) * (w[1] - w[0])
        evidence += np.log(weight.sum() * cell) + top
        quantiles[f"sd {k}"] = np.exp(quantiles_on(u, weight.sum((1, 2))))
        quantiles[f"correlation {k}"] = np.tanh(quantiles_on(w, weight.sum((0, 1))))
        kept = weight > 1e-7
        aa, bb, ab, det = (np.broadcast_to(z, weight.shape)[kept] for z in (aa, bb, ab, det))
        location = leaf.mean[0] + prior * (bb * p - ab * q) / det
        sd = np.sqrt(prior - prior**2 * bb / det)
        quantiles[f"mean {k}"] = mixture_quantiles(location, sd, weight[kept] / weight[kept].sum())
    return float(evidence), quantiles


def link(log_probability, model, data):
    """A sum over a grid of intercept and two coefficients, in a box about a first, coarse one."""
    (x, t), scale = data, np.append(model.intercept_scale, model.prior_scale)
    sign, low, high = 2 * t - 1, -5 * scale, 5 * scale
    for count in (40, 60):
        axes = [np.linspace(*ends, count) for ends in zip(low, high, strict=True)]
        a, b, c = np.meshgrid(*axes, indexing="ij", sparse=True)
        log_density = sum(stats.norm.logpdf(z, scale=s) for z, s in zip((a, b, c), scale, strict=True))
        for row, s in zip(x, sign, strict=True):
            log_density = log_density + log_probability(s * (a + b * row[0] + c * row[1]))
        top = log_density.max()
        weight = np.exp(log_density - top)
        others = [tuple({0, 1, 2} - {j}) for j in range(3)]
        cell = np.prod([axis[1] - axis[0] for axis in axes])
        evidence = np.log(weight.sum() * cell) + top
        quantiles = [quantiles_on(axis, weight.sum(other)) for axis, other in zip(axes, others, strict=True)]
        low, high = low.copy(), high.copy()
        for j in range(3):
            mass = weight.sum(others[j])
            mean = mass @ axes[j] / mass.sum()
            sd = np.sqrt(mass @ (axes[j] - mean) ** 2 / mass.sum())
            low[j], high[j] = max(low[j], mean - 8 * sd), min(high[j], mean + 8 * sd)
    return float(evidence), dict(zip(("intercept", "coefficient 0", "coefficient 1"), quantiles, strict=True))


# -- worlds ------------------------------------------------------------------------------------------------------------


def rows_of(model, size, rng):
    """Parameters of a discriminant from its prior, and so many rows of each class."""
    if isinstance(model.gaussian, NormalInverseWishart):
        params = model.gaussian.sample_parameters(rng, (2,))
        mean, cholesky = params["mean"], params["cholesky"]
    else:
        leaf = model.gaussian
        mean = leaf.mean + leaf.mean_sd * rng.normal(size=(2, 2))
        sd = np.abs(rng.normal(size=(2, 2))) * leaf.scale
        r = 2 * rng.beta(leaf.eta, leaf.eta, 2) - 1
        root = np.array([[[1, 0], [own, np.sqrt(1 - own**2)]] for own in r])
        cholesky = sd[..., None] * root
    t = np.arange(size) % 2
    return mean[t] + np.einsum("nij,nj->ni", cholesky[t], rng.normal(size=(size, mean.shape[-1]))), t


def labels(noise, model, rng):
    """Twelve rows of two columns, and labels from the prior."""
    x = rng.normal(size=(12, 2))
    score = model.intercept_scale * rng.normal() + x @ (model.prior_scale * rng.normal(size=2))
    return x, (getattr(rng, noise)(size=12) < score).astype(int)


def weights(sites):
    names = {"intercept": sites["intercept"], "coefficient 0": sites["coefficients"][:, 0]}
    return {**names, "coefficient 1": sites["coefficients"][:, 1]}


def of_classes(sites):
    """The first column's mean and spread in each class, and the correlation."""
    found = {}
    for k in range(2):
        found[f"mean {k}"] = sites["gaussian.mean"][:, k, 0]
        found[f"variance {k}"] = sites["gaussian.covariance"][:, k, 0, 0]
        if "gaussian.sd" in sites:
            found[f"sd {k}"] = sites["gaussian.sd"][:, k, 0]
            found[f"correlation {k}"] = sites["gaussian.correlation_cholesky"][:, k, 1, 0]
    return found


NORMAL = NormalInverseGamma(0.0, 1.0, 1.0, 1.0)
COINS = BetaBernoulli([0.5, 1.0, 2.0], 0.5)
CLASSES = DirichletCategorical([2.0, 1.5])
SEPARATION = GaussianDiscriminant(CLASSES, SeparationPrior([0.0, 0.5], 2.0, 1.5))
FULL = GaussianDiscriminant(CLASSES, NormalInverseWishart([0.5, 0.0, 1.0], 1.0, 5.0, 2 * np.eye(3)))
LOGISTIC, PROBIT = LogisticRegression([2.5, 2.5], 2.5), ProbitRegression([1.5, 1.5], 1.5)


def normal_rows(rng):
    params = NORMAL.sample_parameters(rng)
    return params["mean"] + np.sqrt(params["variance"]) * rng.normal(size=4)


def tosses(rng):
    return (rng.random((3, 3)) < COINS.sample_parameters(rng)["probability"]).astype(float)


WORLDS = [
    World("normal, 4 rows", NORMAL, normal_rows, gamma_normal, lambda sites: sites),
    World("coins, 3 tosses", COINS, tosses, coins,
          lambda sites: {f"probability {j}": sites["probability"][:, j] for j in range(3)}),
    World("separation, 2 columns, 20 rows a class", SEPARATION, functools.partial(rows_of, SEPARATION, 40), separation,
          of_classes),
    World("separation of few, 2 columns, 6 rows a class", SEPARATION, functools.partial(rows_of, SEPARATION, 12),
          separation, of_classes),
    World("full, 3 columns, 20 rows a class", FULL, functools.partial(rows_of, FULL, 40), full, of_classes),
    World("logistic, 2 columns, 12 rows", LOGISTIC, functools.partial(labels, "logistic", LOGISTIC),
          functools.partial(link, special.log_expit), weights),
    World("probit, 2 columns, 12 rows", PROBIT, functools.partial(labels, "normal", PROBIT),
          functools.partial(link, special.log_ndtr), weights),
]  # fmt: skip
BY_NAME = {world.name.split(",")[0]: world for world in WORLDS}
HEAD = ["model", "data sets", "warned", "quantiles", "largest z", "of", "evidences covered, %"]
HEAD += ["least effective proposals", "largest k"]


def line(world, pooled):
    """A line of the table."""
    worst, score = max(pooled.scores.items(), key=lambda item: np.abs(item[1]).max())
    place = np.abs(score).argmax()
    least = min(r["effective_proposals"] for r, good in zip(pooled.run, pooled.good, strict=True) if good)
    return [
        world.name, len(pooled.run), int((~pooled.good).sum()), len(pooled.scores) * len(P), f"{score[place]:+.1f}",
        f"{worst} at {P[place]:g}", f"{100 * pooled.covered:.1f}", f"{least:.0f}",
        f"{max(run['pareto_k'] for run in pooled.run):.2f}",
    ]  # fmt: skip


def main(*names):
    for world in [BY_NAME[name] for name in names] or WORLDS:
        start = time.time()
        new = line(world, world.check())
        print(*new, f"{time.time() - start:.0f} s", sep=" | ", flush=True)
        table = {row[0]: row for row in csv.reader(TABLE.open())} if TABLE.exists() else {}
        table[world.name] = new
        with TABLE.open("w", newline="") as file:
            csv.writer(file).writerows([HEAD, *(table[w.name] for w in WORLDS if w.name in table)])


if __name__ == "__main__":
    main(*sys.argv[1:])
