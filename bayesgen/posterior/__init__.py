"""What an inference returns: a posterior, exactly, as draws or as a point; its draws as ArviZ takes them."""

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
