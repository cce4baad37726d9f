"""The prior density of every model once more, as SciPy writes it in the parameters of the model."""

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    ClassConditional,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    GaussianDiscriminant,
    KnownCategorical,
    LaplaceLinearRegression,
    LinearRegression,
    LinearRegressionKnownVariance,
    LogisticRegression,
    LogNormal,
    MarkovChain,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownMean,
    NormalKnownVariance,
    OrderedRegression,
    ProbitRegression,
    SemiConjugateLinearRegression,
    StudentT,
)


def log_prior(model, params) -> float:
    """Return the log density of the parameters; for a classifier the sum over its classes and each of its leaves."""
    if not isinstance(model, ClassConditional):
        return float(PRIORS[type(model)](model, params))
    result = log_prior(model.classes, model.site(params, "classes"))
    for name, leaf in model.leaves.items():
        own = model.site(params, name)
        if isinstance(model, GaussianDiscriminant):
            result += float(_discriminant(model, own))
        else:
            classes = range(len(model.class_names))
            result += sum(log_prior(leaf, {site: v[k] for site, v in own.items()}) for k in classes)
    return result


# -- leaves: of the parameters of one class ----------------------------------------------------------------------------


def _beta(leaf, params):
    return stats.beta(leaf.a, leaf.b).logpdf(params["probability"]).sum()


def _dirichlet(leaf, params):
    rows = params["probability"].reshape(-1, params["probability"].shape[-1])
    alpha = np.broadcast_to(leaf.alpha, params["probability"].shape).reshape(rows.shape)
    return sum(stats.dirichlet(a).logpdf(p / p.sum()) for a, p in zip(alpha, rows, strict=True))


def _normal_inverse_gamma(leaf, params):
    mean, variance = params["mean"], params["variance"]
    spread = stats.norm(leaf.mean, np.sqrt(variance / leaf.kappa)).logpdf(mean)
    return (stats.invgamma(leaf.alpha, scale=leaf.beta).logpdf(variance) + spread).sum()


def _normal_inverse_wishart(leaf, params):
    """Return the log density for one class, for several, or for several that share the covariance."""
    mean, covariance = np.atleast_2d(params["mean"]), params["covariance"]
    covariance = covariance if covariance.ndim == 3 else covariance[None]
    density = sum(stats.invwishart(float(leaf.nu), leaf.scale).logpdf(c) for c in covariance)
    each = zip(mean, np.broadcast_to(covariance, (len(mean), *covariance.shape[1:])), strict=True)
    return density + sum(stats.multivariate_normal(leaf.mean, c / leaf.kappa).logpdf(m) for m, c in each)


def _student(leaf, params):
    vector = isinstance(leaf.gaussian, NormalInverseWishart)
    density = (_normal_inverse_wishart if vector else _normal_inverse_gamma)(leaf.gaussian, params)
    if leaf.dof is not None:
        return density
    return density + stats.gamma(leaf.dof_shape, loc=1, scale=1 / leaf.dof_rate).logpdf(params["dof"]).sum()


# -- structures of the covariance: of the parameters of all classes together -------------------------------------------


def _discriminant(model, params):
    prior = model.gaussian
    if hasattr(prior, "mean_sd"):
        return _separation(prior, params)
    if model.covariance == "student":
        return _student(prior, params)
    if model.covariance == "full":
        return _normal_inverse_wishart(prior, params)
    variance, isotropic = params["variance"], model.covariance == "isotropic"
    alpha, beta = (a.reshape(()) if isotropic else a for a in (prior.alpha, prior.beta))
    density = stats.invgamma(alpha, scale=beta).logpdf(variance).sum()
    variance = variance[..., None] if isotropic else variance
    return density + stats.norm(prior.mean, np.sqrt(variance / prior.kappa)).logpdf(params["mean"]).sum()


def _separation(prior, params):
    """In means, standard deviations and the correlation r of two columns: LKJ(η) is (1 + r)/2 ~ Beta(η, η)."""
    density = stats.norm(prior.mean, prior.mean_sd).logpdf(params["mean"]).sum()
    density += stats.halfnorm(scale=prior.scale).logpdf(params["sd"]).sum()
    if "covariance" in params:
        assert prior.mean.shape == (2,)
        r = params["covariance"][..., 0, 1] / params["sd"].prod(-1)
        density += (stats.beta(prior.eta, prior.eta).logpdf((1 + r) / 2) - np.log(2)).sum()
    return density


# -- regressions -------------------------------------------------------------------------------------------------------


def _line(model, params):
    """Weights ~ N(mean, F F'), of `LinearRegression` in units of the noise variance."""
    weights = np.append(params["intercept"], params["coefficients"]) if model.intercept else params["coefficients"]
    unit = params["variance"] if isinstance(model, LinearRegression) else 1.0
    density = stats.multivariate_normal(model.mean, unit * model.factor @ model.factor.T).logpdf(weights)
    if isinstance(model, LinearRegressionKnownVariance):
        return density
    return density + stats.invgamma(model.alpha, scale=model.beta).logpdf(params["variance"])


def _laplace_line(model, params):
    sd, family = np.sqrt(params["variance"]), stats.laplace if model.prior == "laplace" else stats.norm
    density = stats.invgamma(model.alpha, scale=model.beta).logpdf(params["variance"])
    density += stats.norm(model.intercept_mean, model.intercept_scale * sd).logpdf(params["intercept"])
    return density + family(0, model.prior_scale * sd).logpdf(params["coefficients"]).sum()


def _scores(model, params):
    density = stats.norm(0, model.intercept_scale).logpdf(params["intercept"]).sum()
    return density + stats.norm(0, model.prior_scale).logpdf(params["coefficients"]).sum()


def _ordered(model, params):
    """Each of the (K - 1)! orders of independent cut points is as likely; one is the sorted one."""
    cuts = params["cuts"]
    density = stats.norm(0, model.intercept_scale).logpdf(cuts).sum() + np.log(float(math.factorial(len(cuts))))
    return density + stats.norm(0, model.prior_scale).logpdf(params["coefficients"]).sum()


PRIORS: dict[type, Callable] = {
    BetaBernoulli: _beta,
    BetaBinomial: _beta,
    DirichletCategorical: _dirichlet,
    DirichletMultinomial: _dirichlet,
    MarkovChain: _dirichlet,
    GammaPoisson: lambda leaf, p: stats.gamma(leaf.concentration, scale=1 / leaf.rate).logpdf(p["mean"]).sum(),
    KnownCategorical: lambda leaf, p: 0.0,
    NormalKnownVariance: lambda leaf, p: stats.norm(leaf.mean, leaf.sd).logpdf(p["mean"]).sum(),
    LogNormal: _normal_inverse_gamma,
    NormalKnownMean: lambda leaf, p: stats.invgamma(leaf.alpha, scale=leaf.beta).logpdf(p["variance"]).sum(),
    NormalInverseGamma: _normal_inverse_gamma,
    NormalInverseWishart: _normal_inverse_wishart,
    StudentT: _student,
    LinearRegression: _line,
    LinearRegressionKnownVariance: _line,
    SemiConjugateLinearRegression: _line,
    LaplaceLinearRegression: _laplace_line,
    LogisticRegression: _scores,
    ProbitRegression: _scores,
    OrderedRegression: _ordered,
}
