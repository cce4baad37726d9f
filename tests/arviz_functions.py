"""The call of each function of ArviZ on a tree of `to_arviz`, or the reason for none: rows of docs/ecosystem.md."""

import functools
from types import SimpleNamespace

import arviz_base as azb
import arviz_plots as azp
import arviz_stats as azs
import numpy as np
import numpyro
import numpyro.distributions as dist
import xarray as xr
from sklearn.datasets import load_diabetes, load_iris

import bayesgen as bg
from bayesgen.models import NormalInverseGamma

KINDS = ("classifier", "leaf", "regression", "function")
NUTS = bg.NUTS(200, 200, 2)
X, Y = load_iris(return_X_y=True)
ROWS, CLASSES = X[50:, :2], np.array(["setosa", "versicolor", "virginica"])[Y[50:]]


def visits(counts):
    spread = numpyro.sample("spread", dist.Gamma(2.0, 2.0))
    rate = numpyro.sample("rate", dist.LogNormal(0.0, spread))
    with numpyro.plate("obs", len(counts)):
        numpyro.sample("counts", dist.Poisson(rate), obs=counts)


@functools.cache
def case(kind):
    """A tree of one kind, the name of a parameter, of one number among the parameters, and of what was observed."""
    if kind == "classifier":
        fitted = bg.GaussianDiscriminantClassifier(shared=True, inference=NUTS, random_state=0).fit(ROWS, CLASSES)
        tree = fitted.to_arviz(ROWS, CLASSES, columns=True)
        return SimpleNamespace(tree=tree, latent="gaussian.mean", number="gaussian.mean", seen="x0")
    if kind == "leaf":
        posterior = bg.fit(NormalInverseGamma(0.0, 0.1, 1.0, 1.0), ROWS[:40, 0], NUTS, seed=0)
        return SimpleNamespace(tree=posterior.to_arviz(0, ROWS[:40, 0]), latent="mean", number="mean", seen="x")
    if kind == "regression":
        x, y = load_diabetes(return_X_y=True)
        tree = bg.LinearRegressor(inference=NUTS, random_state=0).fit(x[:60, :3], y[:60]).to_arviz(x[:60, :3], y[:60])
        return SimpleNamespace(tree=tree, latent="coefficients", number="intercept", seen="y")
    counts = np.random.default_rng(0).poisson(3.0, 40)
    tree = bg.fit(visits, counts, NUTS, seed=0).to_arviz(0, counts)
    return SimpleNamespace(tree=tree, latent="rate", number="rate", seen="counts")


def pick(tree, group, name):
    """One number of a parameter, as a data set."""
    values = tree[group][name]
    first = {dim: 0 for dim in values.dims if dim not in ("chain", "draw")}
    return values.isel(first, drop=True).to_dataset(name=name)


def one_number(c):
    """Posterior and prior of one number: ArviZ's ratio of densities takes no arrays."""
    return xr.DataTree.from_dict({group: pick(c.tree, group, c.number) for group in ("posterior", "prior")})


def given_x(c):
    """Return a classifier's tree of classes given columns, as in docs/howto/arviz.md; other trees as they are."""
    if "conditional_log_likelihood" not in c.tree.children:
        return c.tree
    groups = {group: node.to_dataset() for group, node in c.tree.children.items()}
    groups |= {"log_likelihood": groups["conditional_log_likelihood"], "constant_data": groups["observed_data"]}
    groups |= {group: groups[group][["t"]] for group in ("observed_data", "posterior_predictive")}
    return xr.DataTree.from_dict(groups)


def target(c):
    return "t" if "t" in c.tree.observed_data else c.seen


def of_target(function, **options):
    return lambda c: function(given_x(c), var_name=target(c), **options)


def on_target(function, **options):
    return lambda c: function(given_x(c), var_names=[target(c)], **options)


def on_latent(function, **options):
    return lambda c: function(c.tree, var_names=[c.latent], **options)


def on_seen(function, **options):
    return lambda c: function(c.tree, var_names=[c.seen], **options)


def with_mean(c):
    """The mean of each row beside the parameters, which R² asks for."""
    p, columns = c.tree.posterior, c.tree.constant_data.to_dataset().to_array("feature")
    posterior = p.to_dataset().assign(mu=p["intercept"] + p["coefficients"].dot(columns), sigma=p["variance"] ** 0.5)
    return xr.DataTree.from_dict({g: n.to_dataset() for g, n in c.tree.children.items()} | {"posterior": posterior})


def ranks(c):
    """Return the ranks of simulation-based calibration in the form that ArviZ takes."""
    result = bg.testing.check_calibration(NormalInverseGamma(0.0, 0.1, 1.0, 1.0), size=5, simulations=50, seed=0)
    return azb.from_dict(
        {"prior_sbc": {name: (r[None] + 0.5) / (result.draws + 1) for name, r in result.ranks.items()}}
    )


def latent(c):
    return c.tree.posterior[c.latent]


def twice(c):
    return {"one": c.tree, "two": c.tree.copy()}


def focus(c):
    values = latent(c)
    return {dim: values[dim].values[0] for dim in values.dims if dim not in ("chain", "draw")}


def subsample(c):
    return azs.loo_subsample(c.tree, observations=20, pointwise=True)


STATS = {
    "bayes_factor": lambda c: azs.bayes_factor(one_number(c), [c.number]),
    "bayesian_r2": lambda c: azs.bayesian_r2(with_mean(c), "mu", "sigma"),
    "bfmi": lambda c: azs.bfmi(c.tree),
    "ci_in_rope": on_latent(azs.ci_in_rope, rope=(0.0, 1.0)),
    "compare": lambda c: azs.compare(twice(c)),
    "ecdf": lambda c: azs.ecdf(latent(c)),
    "ess": on_latent(azs.ess),
    "eti": on_latent(azs.eti),
    "hdi": on_latent(azs.hdi),
    "histogram": lambda c: azs.histogram(latent(c)),
    "kde": lambda c: azs.kde(latent(c)),
    "kl_divergence": on_latent(lambda tree, **names: azs.kl_divergence(tree, tree, num_samples=100, **names)),
    "loo": lambda c: azs.loo(c.tree),
    "loo_expectations": of_target(azs.loo_expectations),
    "loo_i": lambda c: azs.loo_i(0, c.tree),
    "loo_metrics": of_target(azs.loo_metrics),
    "loo_pit": on_target(azs.loo_pit),
    "loo_r2": of_target(azs.loo_r2),
    "loo_score": of_target(azs.loo_score),
    "loo_subsample": subsample,
    "mcse": on_latent(azs.mcse),
    "mean": on_latent(azs.mean),
    "median": on_latent(azs.median),
    "metrics": of_target(azs.metrics),
    "mode": on_latent(azs.mode),
    "psense": on_latent(azs.psense),
    "psense_summary": on_latent(azs.psense_summary),
    "qds": lambda c: azs.qds(latent(c)),
    "residual_r2": lambda c: azs.residual_r2(with_mean(c), "mu", "y"),
    "rhat": on_latent(azs.rhat),
    "rhat_nested": on_latent(azs.rhat_nested, superchain_ids=[0, 0]),
    "summary": on_latent(azs.summary),
    "thin": lambda c: azs.thin(c.tree),
    "update_subsample": lambda c: azs.update_subsample(subsample(c), c.tree, observations=5),
    "wasserstein": on_latent(lambda tree, **names: azs.wasserstein(tree, tree, num_samples=100, **names)),
    "weight_predictions": lambda c: azs.weight_predictions([c.tree, c.tree], weights=[0.5, 0.5]),
}
STATS |= {  # of ArviZ 1 alone, so looked up when they are called
    "diagnose": lambda c: azs.diagnose(c.tree),
    "get_log_likelihood": lambda c: azs.get_log_likelihood(c.tree),
    "hexbin": lambda c: azs.hexbin(latent(c), latent(c)),
    "histogram2d": lambda c: azs.histogram2d(latent(c), latent(c)),
    "iqr": lambda c: on_latent(azs.iqr)(c),
    "kde2d": lambda c: azs.kde2d(latent(c), latent(c) + np.random.default_rng(0).normal(size=latent(c).shape)),
    "loo_influence": lambda c: on_target(azs.loo_influence)(c),
    "mad": lambda c: on_latent(azs.mad)(c),
    "std": lambda c: on_latent(azs.std)(c),
    "var": lambda c: on_latent(azs.var)(c),
}
ON = {"backend": "matplotlib"}
PLOTS = {
    "combine_plots": on_latent(
        lambda tree, **o: azp.combine_plots(tree, [(azp.plot_ess, {}), (azp.plot_dist, {})], **o), **ON
    ),
    "plot_bf": lambda c: azp.plot_bf(one_number(c), var_names=c.number, **ON),
    "plot_compare": lambda c: azp.plot_compare(azs.compare(twice(c)), **ON),
    "plot_ecdf_pit": lambda c: azp.plot_ecdf_pit(ranks(c), **ON),
    "plot_energy": lambda c: azp.plot_energy(c.tree, **ON),
    "plot_khat": lambda c: azp.plot_khat(azs.loo(c.tree, pointwise=True), **ON),
    "plot_lm": lambda c: azp.plot_lm(c.tree, x="x0", y="y", **ON),
    "plot_loo_pit": on_target(azp.plot_loo_pit, **ON),
    "plot_pair_focus": lambda c: azp.plot_pair_focus(
        c.tree, c.latent, focus_var_coords=focus(c), var_names=[c.latent], **ON
    ),
    "plot_parallel": lambda c: azp.plot_parallel(c.tree, **ON),
    "plot_ppc_pava": on_target(azp.plot_ppc_pava, **ON),
    "plot_ppc_pava_residuals": on_target(azp.plot_ppc_pava_residuals, x_var="x0", **ON),
    "plot_ppc_rootogram": on_target(azp.plot_ppc_rootogram, **ON),
}
OF_SEEN = ("plot_ppc_dist", "plot_ppc_dist_pit", "plot_ppc_interval", "plot_ppc_pit", "plot_ppc_tstat")
_REFIT = "asks for a wrapper that fits anew: `leave_one_out` of an exact posterior needs none, `cross_val_score` refits"
_CENSORED = "nothing here is censored"
_LINE = "of a regression alone: a mean of each row that its columns predict"
_CLASSES = "of classes alone"
_ENERGY = "of a sampler's draws, as here: an exact posterior, Laplace's and a point have no energy"
LEFT_OUT = {  # function: (kinds it is called on, why on no other)
    "SamplingWrapper": ((), _REFIT),
    "bayesian_r2": (("regression",), _LINE),
    "bfmi": (KINDS, _ENERGY),
    "generate_survival_curves": ((), _CENSORED),
    "kaplan_meier": ((), _CENSORED),
    "lfo_cv": ((), "of a series in time; rows here have no order"),
    "loo_approximate_posterior": ((), "of draws from an approximation with a density; ours are exact or a sampler's"),
    "loo_kfold": ((), _REFIT),
    "loo_moment_match": ((), _REFIT),
    "loo_r2": (("regression",), _LINE),
    "plot_energy": (KINDS, _ENERGY),
    "plot_ecdf_pit": (("leaf",), "of simulation-based calibration, not of a fit: `check_calibration` of a model"),
    "plot_lm": (("regression",), _LINE),
    "plot_ppc_censored": ((), _CENSORED),
    "plot_loo_pava": (("classifier",), _CLASSES),
    "plot_ppc_pava": (("classifier",), _CLASSES),
    "plot_ppc_pava_residuals": (("classifier",), _CLASSES),
    "plot_ppc_rootogram": (("classifier", "function"), "of counts alone"),
    "reloo": ((), _REFIT),
    "residual_r2": (("regression",), _LINE),
}
NOT_OF_A_FIT = {"ELPDData", "ELPDDataLOO", "ELPDDataLOOKFold", "ELPDDataLOOSubsample", "ELPDDataLFO"}
NOT_OF_A_FIT |= {"AzStatsDaAccessor", "AzStatsDsAccessor", "AzStatsDtAccessor", "PlotCollection", "PlotMatrix"}
NOT_OF_A_FIT |= {"add_bands", "add_lines", "get_function"}


def public(module):
    """Functions and classes that a module of ArviZ shows."""
    return {n for n in dir(module) if n[0] != "_" and callable(getattr(module, n))} - NOT_OF_A_FIT


_NEW = {  # plots of ArviZ 1 alone
    "plot_loo_interval": lambda c: on_target(azp.plot_loo_interval, **ON)(c),
    "plot_loo_pava": lambda c: on_target(azp.plot_loo_pava, **ON)(c),
    "plot_ppc_dist_pit": lambda c: on_seen(azp.plot_ppc_dist_pit, **ON)(c),
}
PLOTS |= _NEW
for _name in public(azp):
    if _name not in LEFT_OUT or LEFT_OUT[_name][0]:
        PLOTS.setdefault(_name, (on_seen if _name in OF_SEEN else on_latent)(getattr(azp, _name), **ON))


def kinds_of(name):
    return LEFT_OUT.get(name, (KINDS, ""))[0]


def table():
    """The table of docs/ecosystem.md."""
    lines = [f"| function | {' | '.join(KINDS)} | why not |", "|---|" + "---|" * (len(KINDS) + 1)]
    for name in sorted({*STATS, *PLOTS, *LEFT_OUT}):
        cells = " | ".join("yes" if kind in kinds_of(name) else "-" for kind in KINDS)
        lines.append(f"| `{name}` | {cells} | {LEFT_OUT.get(name, ((), ''))[1]} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
