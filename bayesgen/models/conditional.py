r"""Student vectors given some of their entries: what is missing, given what is seen.

Of a D-variate Student-t (m, S, ν), ν infinite for a Gaussian, with d entries o seen and
δ² = (x_o - m_o)' S_oo⁻¹ (x_o - m_o), the others are a Student-t with ν + d degrees of freedom about
m_u + S_uo S_oo⁻¹ (x_o - m_o), whose squared scale is

.. math:: \frac{\nu + \delta^2}{\nu + d} \big(S_{uu} - S_{uo} S_{oo}^{-1} S_{ou}\big)

(Ding 2016, *The American Statistician* 70, 293-295.)
"""

import numpy as np

from bayesgen.numerics.patterns import patterns


def conditional_student(x, mean, scale, dof):
    """Each missing entry given those seen in its row.

    Parameters
    ----------
    x : array, shape (n, D)
        Rows, NaN where missing.
    mean : array, shape (..., D)
    scale : array, shape (..., D, D)
        Scale matrices, or covariances where ``dof`` is infinite.
    dof : array, shape (...)

    Returns
    -------
    location, spread : array, shape (..., n, D)
        Of the Student-t of each missing entry: centre, and square root of the squared scale. NaN where it is seen.
    freedom : array, shape (..., n, 1)
        Its degrees of freedom.
    """
    lead = mean.shape[:-1]
    location, spread = np.full((2, *lead, *x.shape), np.nan)
    freedom, dof = np.empty((*lead, len(x), 1)), np.broadcast_to(dof, lead)[..., None]
    for seen, rows in patterns(~np.isnan(x)):
        gone = np.setdiff1d(np.arange(x.shape[1]), seen)
        z = x[np.ix_(rows, seen)] - mean[..., None, seen]
        across, block = scale[..., seen[:, None], gone], scale[..., seen[:, None], seen]
        regress = np.linalg.solve(block, across)
        square = (z * np.linalg.solve(block, z.mT).mT).sum(-1)
        left = np.diagonal(scale, axis1=-2, axis2=-1)[..., gone] - (across * regress).sum(-2)
        with np.errstate(invalid="ignore"):
            factor = np.where(np.isinf(dof), 1.0, (dof + square) / (dof + len(seen)))
        location[..., rows[:, None], gone] = mean[..., None, gone] + z @ regress
        spread[..., rows[:, None], gone] = np.sqrt(left[..., None, :] * factor[..., None])
        freedom[..., rows, 0] = dof + len(seen)
    return location, spread, freedom


def fill_normal(x, mean, cholesky, rng) -> np.ndarray:
    """Draw what is missing of rows (n, D) of a Gaussian given what is seen: a row drawn whole, and moved to what is."""
    drawn, covariance = mean + rng.standard_normal(x.shape) @ cholesky.T, cholesky @ cholesky.T
    result = x.copy()
    for seen, rows in patterns(~np.isnan(x)):
        gone = np.setdiff1d(np.arange(x.shape[1]), seen)
        regress = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[np.ix_(seen, gone)])
        apart = (x[np.ix_(rows, seen)] - drawn[np.ix_(rows, seen)]) @ regress
        result[np.ix_(rows, gone)] = drawn[np.ix_(rows, gone)] + apart
    return result
