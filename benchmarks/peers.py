"""The posteriors of `nuts` as a user of PyMC, nutpie or Stan would write them, on the same sufficient statistics.

Each function takes a model and its statistics, and returns a function that samples (compiled before), giving draws of
the sites by name, arrays (chains, draws, ...). Install the peers with `pip install -e ".[bench]"`.
"""

import importlib.util
import logging

import numpy as np

INSTALLED = [name for name in ("nutpie", "pymc", "stan") if importlib.util.find_spec(name)]
ABSENT = [name for name in ("nutpie", "pymc", "stan") if name not in INSTALLED]
SITES = {"bernoulli": ("classes.probability", "x.probability"), "vector": ("classes.probability", "gaussian.mean")}


def pymc_model(model, statistics):
    """Write the model in PyMC; sites under their own names, "." replaced by "_"."""
    import pymc as pm
    import pytensor.tensor as pt

    counts = statistics.classes.sums
    with pm.Model() as result:
        probability = pm.Dirichlet("classes_probability", a=np.ones(len(counts)) * model.classes.alpha)
        pm.Potential("classes", (counts * pt.log(probability)).sum())
        if "x" in model.leaves:
            leaf, (zeros, ones) = model.leaves["x"], np.moveaxis(statistics.leaves["x"].total(), -1, 0)
            p = pm.Beta("x_probability", alpha=np.broadcast_to(leaf.a, ones.shape), beta=leaf.b, shape=ones.shape)
            pm.Potential("rows", (ones * pt.log(p) + zeros * pt.log1p(-p)).sum())
            return result
        leaf, own = model.gaussian, statistics.leaves["gaussian"]
        groups, dim = own.mean.shape
        below = np.tril_indices(dim, -1)
        log_diagonal = pm.Flat("log_diagonal", shape=(groups, dim))
        lower = pm.Flat("lower", shape=(groups, len(below[0])))
        mean = pm.Flat("gaussian_mean", shape=(groups, dim))
        for k in range(groups):
            root = pt.set_subtensor(pt.diag(pt.exp(log_diagonal[k]))[below], lower[k])
            away = np.sqrt(own.n[k]) * (own.mean[k] - mean[k]), np.sqrt(float(leaf.kappa)) * (leaf.mean - mean[k])
            fixed = np.linalg.cholesky(leaf.scale + own.scatter[k])
            white = pt.linalg.solve_triangular(root, pt.concatenate([fixed, pt.stack(away).T], axis=1), lower=True)
            power = float(leaf.nu) + dim + 2 + own.n[k]
            # |dΣ/dL| = 2^D ∏ L_ii^(D - i + 1), i from 1; and dL_ii = L_ii d log L_ii
            volume = ((np.arange(dim, 0, -1) + 1) * log_diagonal[k]).sum()
            pm.Potential(f"rows{k}", -power * log_diagonal[k].sum() - 0.5 * (white**2).sum() + volume)
    return result


def _sites(trace, family):
    return {site: np.asarray(trace[site.replace(".", "_")]) for site in SITES[family]}


def nutpie(family, model, statistics, samples, warmup):
    """NUTS of nutpie, compiled by numba."""
    import nutpie

    compiled = nutpie.compile_pymc_model(pymc_model(model, statistics), backend="numba")

    def run():
        trace = nutpie.sample(compiled, draws=samples, tune=warmup, chains=2, cores=2, seed=0, progress_bar=False)
        return _sites(trace.posterior, family)

    return run


def pymc(family, model, statistics, samples, warmup):
    """NUTS of PyMC itself."""
    import pymc as pm

    logging.getLogger("pymc").setLevel(logging.ERROR)
    written = pymc_model(model, statistics)

    def run():
        with written:
            trace = pm.sample(samples, tune=warmup, chains=2, cores=2, random_seed=0, progressbar=False)
        return _sites(trace.posterior, family)

    return run


STAN = {
    "bernoulli": """
        data { int K; int D; vector[K] alpha; vector[K] counts; matrix[K, D] a; matrix[K, D] b; }
        parameters { simplex[K] pi; matrix<lower=0, upper=1>[K, D] p; }
        model {
          target += sum((alpha - 1 + counts) .* log(pi));
          target += sum((a - 1) .* log(p)) + sum((b - 1) .* log1m(p));
        }""",
    "vector": """
        data { int K; int D; vector[K] alpha; vector[K] counts; vector[D] m; real kappa; real nu;
               matrix[D, D] root_scale; array[K] vector[D] mean; array[K] matrix[D, D] root_scatter; }
        parameters { simplex[K] pi; array[K] vector[D] mu; array[K] cholesky_factor_cov[D] L; }
        model {
          target += sum((alpha - 1 + counts) .* log(pi));
          for (k in 1:K) {
            L[k] ~ inv_wishart_cholesky(nu, root_scale);
            mu[k] ~ multi_normal_cholesky(m, L[k] / sqrt(kappa));
            target += -counts[k] * sum(log(diagonal(L[k])))
                      - 0.5 * sum(square(mdivide_left_tri_low(L[k], root_scatter[k])))
                      - 0.5 * counts[k] * dot_self(mdivide_left_tri_low(L[k], mean[k] - mu[k]));
          }
        }""",
}


def stan(family, model, statistics, samples, warmup):
    """NUTS of Stan, by pystan."""
    import stan

    counts = statistics.classes.sums
    data = {"K": len(counts), "alpha": (np.ones(len(counts)) * model.classes.alpha).tolist(), "counts": counts.tolist()}
    if family == "bernoulli":
        leaf, (zeros, ones) = model.leaves["x"], np.moveaxis(statistics.leaves["x"].total(), -1, 0)
        data |= {"D": ones.shape[1], "a": (leaf.a + ones).tolist(), "b": (leaf.b + zeros).tolist()}
        names = ("pi", "p")
    else:
        leaf, own = model.gaussian, statistics.leaves["gaussian"]
        data |= {"D": own.mean.shape[1], "m": leaf.mean.tolist(), "kappa": float(leaf.kappa), "nu": float(leaf.nu)}
        roots = (np.linalg.cholesky(a).tolist() for a in (leaf.scale, own.scatter))
        data |= dict(zip(("root_scale", "root_scatter"), roots, strict=True)) | {"mean": own.mean.tolist()}
        names = ("pi", "mu")
    # It remembers what it sampled: the same model and seed would give the draws of the last call at once.
    built = iter([stan.build(STAN[family], data=data, random_seed=seed) for seed in range(1, 20)])

    def run():
        fit = next(built).sample(num_chains=2, num_samples=samples, num_warmup=warmup)
        draws = (fit[name] for name in names)  # (..., draws x chains), chains running fastest
        draws = (np.moveaxis(v.reshape(*v.shape[:-1], samples, 2), (-1, -2), (0, 1)) for v in draws)
        return dict(zip(SITES[family], draws, strict=True))

    return run


CONTENDERS = {"nutpie": nutpie, "pymc": pymc, "stan": stan}
GOALS = {"nutpie": {"bernoulli": 0.9, "vector": 2.0}, "pymc": 10.0, "stan": 3.5}
