"""Posteriors, which inferences return: exact, as draws or as a point; and their draws for ArviZ."""

from bayesgen.posterior.posterior import (
    ExactPosterior,
    ParameterDraws,
    PointEstimate,
    Posterior,
    distance,
    generator,
    log_mean_density,
)

__all__ = [
    "ExactPosterior",
    "ParameterDraws",
    "PointEstimate",
    "Posterior",
    "distance",
    "generator",
    "log_mean_density",
]
