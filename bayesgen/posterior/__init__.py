"""Posteriors, which inferences return: in closed form, as draws or as a point; and their draws for ArviZ."""

from bayesgen.numerics.draws import generator
from bayesgen.posterior.posterior import ExactPosterior, MembershipPosterior, ParameterDraws, PointEstimate, Posterior
from bayesgen.posterior.predictive import Predictive

__all__ = [
    "ExactPosterior",
    "MembershipPosterior",
    "ParameterDraws",
    "PointEstimate",
    "Posterior",
    "Predictive",
    "generator",
]
