"""Logarithms of gamma draws: those of a small shape a leave float64, one in e^(708 a) of them."""

import numpy as np


def log_gammas(rng, shape_parameter, size) -> np.ndarray:
    """Draw logarithms of Gamma(shape, 1) by Marsaglia and Tsang's boost: G(a) = G(a + 1) U^(1/a)."""
    return np.log(rng.standard_gamma(shape_parameter + 1, size)) + np.log1p(-rng.random(size)) / shape_parameter
