"""Averaging draws: the log of the mean density over S draws as matrix products, against triangular solves and vmap."""

# ruff: noqa: B023 - a contender is called in the turn of the loop that makes it

import tracemalloc

import numpy as np
from scipy.linalg import solve_triangular

from bayesgen.numerics.draws import log_mean_density
from benchmarks.fit import model, rows
from benchmarks.timing import Table, agree, medians


def by_solves(params, x):
    """Whiten the rows under every draw and class; a running log-sum-exp."""
    root, mean = params["gaussian.cholesky"], params["gaussian.mean"]
    prior, (draws, groups, dim) = np.log(params["classes.probability"]), mean.shape
    total = np.full((groups, len(x)), -np.inf)
    for s in range(draws):
        for k in range(groups):
            z = solve_triangular(root[s, k], (x - mean[s, k]).T, lower=True, check_finite=False)
            level = prior[s, k] - np.log(np.diagonal(root[s, k])).sum()
            total[k] = np.logaddexp(total[k], level - 0.5 * np.einsum("ij,ij->j", z, z))
    return (total - np.log(draws) - 0.5 * dim * np.log(2 * np.pi)).T


def by_vmap(params, x):
    """NumPyro's density under every draw by `jax.vmap`, float64; returns a function that runs it compiled."""
    from bayesgen.core import program

    jax, jnp, dist = program.jax, program.jnp, program.dist
    with program.x64():
        arrays = {site: jnp.asarray(np.array(params[f"gaussian.{site}"])) for site in ("mean", "cholesky")}
        prior, data = jnp.log(jnp.asarray(params["classes.probability"])), jnp.asarray(x)

        def one(mean, cholesky, prior):
            return dist.MultivariateNormal(mean, scale_tril=cholesky).log_prob(data[:, None]) + prior

        @jax.jit
        def mean(mean, cholesky, prior):
            return jax.nn.logsumexp(jax.vmap(one)(mean, cholesky, prior), axis=0) - jnp.log(len(mean))

    def call():
        with program.x64():
            return np.asarray(mean(arrays["mean"], arrays["cholesky"], prior))

    return call


def run(quick: bool = False) -> list[Table]:
    """Fill the table; the floor is the bare matrix product."""
    table = Table(
        "Averaging draws", "GDA, 10 columns, 3 classes. The floor is the bare matrix product, without its exponentials."
    )
    n = 2_000 if quick else 10_000
    x, t = rows("gaussian", n, 10, 3)
    ours = model("vector", 10, 3)
    posterior = ours.update(ours.statistics(x, t))
    for draws in (100,) if quick else (1000, 4000):
        params = posterior.sample_parameters(np.random.default_rng(0), (draws,))
        checked = ours.check(x)
        agree("the average", log_mean_density(ours, params, checked), by_solves(params, x), 1e-9)
        left, right = np.random.default_rng(0).normal(size=(draws, 66)), np.ones((66, 1024))
        contenders = {
            "ours": lambda: log_mean_density(ours, params, checked),
            "triangular solves": lambda: by_solves(params, x),
            "floor": lambda: [left @ right for _ in range(3 * -(-n // 1024))],
        }
        if draws * n * 3 * 8 * 20 < 6e9:  # vmap holds every whitened row of every draw
            contenders["vmap"] = by_vmap(params, x)
        time = medians(contenders, 3)
        for peer, goal in (("triangular solves", 15), ("vmap", None)):
            if peer in time:
                table.add(
                    f"{draws} draws, {n} rows", peer, time[peer] / time["ours"], goal, time["ours"] / time["floor"]
                )
        tracemalloc.start()
        log_mean_density(ours, params, checked)
        table.note += f" Memory at {draws} draws: {tracemalloc.get_traced_memory()[1] / 1e9:.3f} GB (at most 0.1)."
        tracemalloc.stop()
    return [table]
