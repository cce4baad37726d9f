"""The use of each tool of NumPyro on each kind of model, or the reason for none: the rows of docs/ecosystem.md."""

from collections.abc import Callable
from types import MappingProxyType

import jax
import jax.numpy as jnp
import laws
import numpy as np
import numpyro
from jax import random
from numpyro import handlers
from numpyro.infer import (
    AIES,
    ESS,
    HMC,
    HMCECS,
    MCMC,
    NUTS,
    SA,
    SVI,
    BarkerMH,
    DiscreteHMCGibbs,
    MixedHMC,
    Predictive,
    Trace_ELBO,
    TraceMeanField_ELBO,
    autoguide,
    initialize_model,
    log_likelihood,
)
from numpyro.infer.inspect import get_dependencies
from numpyro.infer.reparam import LocScaleReparam
from numpyro.infer.util import log_density
from numpyro.optim import Adam

KINDS = {
    "leaf": "coin",
    "discriminant": "full",
    "naive Bayes": "naive Bayes",
    "linear": "linear",
    "logistic": "logistic",
}
CASES = {kind: next(case for case in laws.CASES if case.name == name) for kind, name in KINDS.items()}
N = 40  # rows


def data(case):
    """Rows in the user's precision."""
    return jax.tree_util.tree_map(lambda a: jnp.asarray(a, jnp.float32 if a.dtype.kind == "f" else None), case.data(N))


def samples(case, count=3):
    """Draws of the parameters, in the user's precision."""
    return {site: jnp.asarray(v, jnp.float32) for site, v in laws.parameters(case, count).items()}


def trace(model, *args, **options):
    return handlers.trace(handlers.seed(model, random.key(0))).get_trace(*args, **options)


def latent(case):
    """The sites that are sampled, from one run of the model."""
    sites = trace(case.model, *data(case)).items()
    return {name: s for name, s in sites if s["type"] == "sample" and not s["is_observed"]}


def density(model, case, **options):
    values = {name: site["value"] for name, site in latent(case).items()}
    return float(log_density(model, data(case), options, values)[0])


def observed(sites):
    return [name for name, site in sites.items() if site["type"] == "sample" and site["is_observed"]]


def substituted(case):
    name, site = next(iter(latent(case).items()))
    for handler in (handlers.substitute, handlers.condition):
        sites = trace(handler(case.model, {name: site["value"]}), *data(case))
        np.testing.assert_array_equal(sites[name]["value"], site["value"])
        assert sites[name]["is_observed"] == (handler is handlers.condition)


def intervened(case):
    name, site = next(iter(latent(case).items()))
    sites = trace(handlers.do(case.model, {name: site["value"]}), *data(case))
    assert sites.keys() == trace(case.model, *data(case)).keys()  # no site under another name


def masked(case):
    assert density(handlers.mask(case.model, mask=False), case) == 0


def scaled(case):
    np.testing.assert_allclose(
        density(handlers.scale(case.model, scale=3.0), case), 3 * density(case.model, case), 1e-5
    )


def blocked(case):
    name = next(iter(latent(case)))
    assert name not in trace(handlers.block(handlers.seed(case.model, random.key(0)), hide=[name]), *data(case))


def reparametrised(case):
    sites = trace(handlers.reparam(case.model, {"coefficients": LocScaleReparam(0)}), *data(case))
    assert "coefficients_decentered" in sites


def two_in_one(case):
    """Two models in one program, each under a name of its own: one density, the sum of the two."""

    def both(*args):
        for name in ("one", "two"):
            with handlers.scope(prefix=name):
                case.model(*args)

    sites = {f"{k}/{n}": s["value"] for k in ("one", "two") for n, s in latent(case).items()}
    joint, seen = log_density(both, data(case), {}, sites)
    np.testing.assert_allclose(joint, 2 * density(case.model, case), rtol=1e-5)
    assert len(observed(seen)) == 2 * len(observed(trace(case.model, *data(case))))


def prior_predictive(case):
    args, sizes = (data(case)[:1], {}) if case.given else ((), {"size": N})
    drawn = Predictive(case.model, num_samples=2)(random.key(0), *args, **sizes)
    assert all(jnp.isfinite(v).all() for v in drawn.values())


def posterior_predictive(case):
    args, sizes = (data(case)[:1], {}) if case.given else ((), {"size": N})
    drawn = Predictive(case.model, samples(case))(random.key(0), *args, **sizes)
    for name in observed(trace(case.model, *data(case))):
        assert drawn[name].shape[:2] == (3, N)


def row_densities(case):
    """The log likelihood by row has the sum that the model gives for its statistics."""
    rows = log_likelihood(case.model, samples(case), *data(case))
    total = sum(v.reshape(3, -1).sum(1) for v in rows.values())
    given = {site: np.asarray(v, float) for site, v in samples(case).items()}
    statistics = case.model.statistics(*case.data(N))
    own = [float(case.model.log_likelihood({s: v[i] for s, v in given.items()}, statistics)) for i in range(3)]
    np.testing.assert_allclose(total, own, rtol=1e-3)


def drawn_as_a_graph(case):
    graph = numpyro.render_model(case.model, model_args=data(case), render_distributions=True)
    assert all(name in graph.source for name in (*latent(case), "obs"))


def depended(case):
    found = get_dependencies(case.model, data(case))["posterior_dependencies"]
    assert found.keys() == latent(case).keys()


def enumerated(case):
    """Classes that are not known, summed out by a sampler that sees continuous sites alone, and then inferred."""
    from numpyro.contrib.funsor import config_enumerate, infer_discrete

    x, t = data(case)
    t = t.at[: N // 2].set(-1)
    mcmc = MCMC(NUTS(config_enumerate(case.model)), num_warmup=10, num_samples=10, progress_bar=False)
    mcmc.run(random.key(0), x, t)
    last = {site: v[-1] for site, v in mcmc.get_samples().items()}
    program = handlers.seed(handlers.substitute(config_enumerate(case.model), last), random.key(1))
    found = trace(infer_discrete(program, first_available_dim=-4, rng_key=random.key(2)), x, t)["t"]["value"]
    assert (found[N // 2 :] == t[N // 2 :]).all() and ((found >= 0) & (found < len(case.model.class_names))).all()


def gibbs(kernel) -> Callable:
    """Classes that are not known, as discrete sites of a sampler."""

    def use(case):
        x, _ = case.data(6)
        mcmc = MCMC(kernel(case.model), num_warmup=3, num_samples=10, progress_bar=False)
        mcmc.run(random.key(0), jax.tree_util.tree_map(lambda a: jnp.asarray(a, jnp.float32), x))
        drawn = mcmc.get_samples()
        assert drawn["t"].shape == (10, 6) and "t_log_joint" not in drawn
        assert all(jnp.isfinite(v).all() for v in drawn.values())

    return use


def by_enumerated_elbo(case):
    from numpyro.contrib.funsor import config_enumerate
    from numpyro.infer import TraceEnum_ELBO

    x, _ = data(case)
    guide = autoguide.AutoNormal(handlers.block(case.model, hide=["t"]))
    result = SVI(config_enumerate(case.model), guide, Adam(0.02), TraceEnum_ELBO()).run(
        random.key(0), 50, x, progress_bar=False
    )
    assert np.isfinite(result.losses).all()


def sampled(kernel, settings=MappingProxyType({}), **options) -> Callable:
    def use(case):
        mcmc = MCMC(kernel(case.model, **settings), num_warmup=10, num_samples=10, progress_bar=False, **options)
        mcmc.run(random.key(0), *data(case))
        assert all(jnp.isfinite(v).all() for v in mcmc.get_samples(group_by_chain=True).values())

    return use


def subsampled(case):
    """Energy-conserving subsampling of the rows; all rows as the subsample give the same as none."""
    np.testing.assert_allclose(density(case.model, case, subsample_size=N), density(case.model, case), rtol=1e-6)
    kernel = HMCECS(NUTS(case.model), num_blocks=2)
    mcmc = MCMC(kernel, num_warmup=10, num_samples=10, progress_bar=False)
    mcmc.run(random.key(0), *data(case), subsample_size=10)
    assert all(jnp.isfinite(v).all() for v in mcmc.get_samples().values())


def minibatches(case):
    guide = autoguide.AutoNormal(case.model)
    result = SVI(case.model, guide, Adam(0.05), Trace_ELBO()).run(
        random.key(0), 50, *data(case), subsample_size=10, progress_bar=False
    )
    assert np.isfinite(result.losses).all()


def fitted(name, elbo=Trace_ELBO, steps=50, size=0.02, **options) -> Callable:
    def use(case):
        guide = getattr(autoguide, name)(case.model, **options)
        result = SVI(case.model, guide, Adam(size), elbo()).run(random.key(0), steps, *data(case), progress_bar=False)
        assert np.isfinite(result.losses).all() and result.losses[-10:].mean() < result.losses[:10].mean()
        drawn = guide.sample_posterior(random.key(1), result.params, sample_shape=(2,))
        assert latent(case).keys() <= drawn.keys()

    return use


def listed_guides(case):
    """A guide for one site and one for the others."""
    first, *others = latent(case)
    guide = autoguide.AutoGuideList(case.model)

    guide.append(autoguide.AutoDelta(handlers.block(case.model, hide=others)))
    if others:
        guide.append(autoguide.AutoNormal(handlers.block(case.model, hide=[first])))
    result = SVI(case.model, guide, Adam(0.02), Trace_ELBO()).run(random.key(0), 20, *data(case), progress_bar=False)
    assert np.isfinite(result.losses).all()


def potential(case):
    """Return the needs of other samplers: an unconstrained start, the potential and its gradient, and the way back."""
    info = initialize_model(random.key(0), case.model, model_args=data(case))
    value, slope = jax.value_and_grad(info.potential_fn)(info.param_info.z)
    assert jnp.isfinite(value) and all(jnp.isfinite(v).all() for v in jax.tree_util.tree_leaves(slope))
    assert latent(case).keys() <= info.postprocess_fn(info.param_info.z).keys()


def by_blackjax(case):
    import blackjax

    info = initialize_model(random.key(0), case.model, model_args=data(case))
    adapt = blackjax.window_adaptation(blackjax.nuts, lambda z: -info.potential_fn(z))
    (state, parameters), _ = adapt.run(random.key(1), info.param_info.z, num_steps=50)
    kernel = blackjax.nuts(lambda z: -info.potential_fn(z), **parameters)
    state, _ = jax.jit(kernel.step)(random.key(2), state)
    assert all(jnp.isfinite(v).all() for v in info.postprocess_fn(state.position).values())


def by_nutpie(case):
    import nutpie
    from jax.flatten_util import ravel_pytree

    with jax.enable_x64(True):
        info = initialize_model(random.key(0), case.model, model_args=case.data(N))
        start, back = ravel_pytree(info.param_info.z)
        slope = jax.jit(jax.value_and_grad(lambda z: -info.potential_fn(back(z))))

        def log_density_and_gradient(z):
            with jax.enable_x64(True):  # of this thread: nutpie has its own
                value, gradient = slope(z)
            return float(value), np.asarray(gradient)

        compiled = nutpie.compiled_pyfunc.from_pyfunc(
            len(start),
            lambda: log_density_and_gradient,
            lambda *_: lambda z: {"z": np.asarray(z)},
            [np.dtype("float64")],
            [(len(start),)],
            ["z"],
        )
        draws = nutpie.sample(compiled, draws=20, tune=50, chains=1, progress_bar=False, cores=1)
        assert np.isfinite(draws.posterior["z"].values).all()


HANDLERS = {
    "`substitute`, `condition`": substituted,
    "`do`": intervened,
    "`mask`": masked,
    "`scale`": scaled,
    "`block`": blocked,
    "`scope`: two models in one program": two_in_one,
    "`reparam` by `LocScaleReparam`": reparametrised,
    "`render_model`": drawn_as_a_graph,
    "`get_dependencies`": depended,
    "`Predictive`, of the prior": prior_predictive,
    "`Predictive`, of posterior draws": posterior_predictive,
    "`log_likelihood`": row_densities,
    "`initialize_model`, its potential and gradient": potential,
}
LONG = {  # what compiles for seconds: slow tests but on the leaf
    "`NUTS`": sampled(NUTS),
    "`HMC`": sampled(HMC, {"num_steps": 10, "trajectory_length": None}),  # 2π over a step that is still tiny: minutes
    "`BarkerMH`": sampled(BarkerMH),
    "`SA`": sampled(SA),
    "`AIES`": sampled(AIES, num_chains=20, chain_method="vectorized"),
    "`ESS`": sampled(ESS, num_chains=20, chain_method="vectorized"),
    "`HMCECS`: subsampled rows": subsampled,
    "`SVI` of minibatches": minibatches,
    "`AutoDelta`": fitted("AutoDelta"),
    "`AutoNormal`": fitted("AutoNormal", TraceMeanField_ELBO),
    "`AutoDiagonalNormal`": fitted("AutoDiagonalNormal"),
    "`AutoMultivariateNormal`": fitted("AutoMultivariateNormal"),
    "`AutoLowRankMultivariateNormal`": fitted("AutoLowRankMultivariateNormal"),
    "`AutoLaplaceApproximation`": fitted("AutoLaplaceApproximation", steps=1500, size=0.05),  # it needs the mode
    "`AutoBNAFNormal`": fitted("AutoBNAFNormal"),
    "`AutoIAFNormal`": fitted("AutoIAFNormal"),
    "`AutoDAIS`": fitted("AutoDAIS"),
    "`AutoGuideList`": listed_guides,
    "`config_enumerate`, `infer_discrete`: classes not known": enumerated,
    "`DiscreteHMCGibbs`: classes not known": gibbs(lambda model: DiscreteHMCGibbs(NUTS(model))),
    "`MixedHMC`: classes not known": gibbs(lambda model: MixedHMC(HMC(model, trajectory_length=1.2))),
    "`TraceEnum_ELBO`: classes not known": by_enumerated_elbo,
}
OUTSIDE = {  # samplers of other packages, which are looked for
    "blackjax": by_blackjax,
    "nutpie": by_nutpie,
}
_LOCAL = "it asks for latents that belong to single rows; those here are shared by all rows"
LEFT_OUT = {  # tool: (kinds it is used on, why on no other)
    "`reparam` by `LocScaleReparam`": (("logistic",), "of sites with a location and a scale alone"),
    "`ESS`": (
        tuple(kind for kind in KINDS if kind != "discriminant"),
        "in single precision its walkers reach covariances that overflow, and it goes on with NaN (NumPyro 0.22, 20 "
        "and 40 chains); `AIES` does not",
    ),
    "`AutoGuideList`": (
        tuple(kind for kind in KINDS if kind not in ("discriminant", "naive Bayes")),
        "the guides in its list may show no deterministic site, and the model has some (a variance from its logarithm)",
    ),
    "`AutoIAFNormal`": (tuple(KINDS)[1:], "it asks for two latent numbers or more"),
    "`AutoBNAFNormal`": (tuple(KINDS)[1:], "it asks for two latent numbers or more"),
    "`AutoSemiDAIS`, `AutoBatchedMultivariateNormal`, `AutoBatchedLowRankMultivariateNormal`": ((), _LOCAL),
    "`AutoSurrogateLikelihoodDAIS`": ((), "it asks for a second, cheaper model, which only its user can write"),
    **dict.fromkeys(
        (
            "`config_enumerate`, `infer_discrete`: classes not known",
            "`DiscreteHMCGibbs`: classes not known",
            "`MixedHMC`: classes not known",
            "`TraceEnum_ELBO`: classes not known",
        ),
        (("discriminant", "naive Bayes"), "of classes alone, which a regression has as its target and a leaf has not"),
    ),
    "`HMCGibbs`, `CustomGibbs`, `DiscreteGibbs`, `Gibbs`": (
        (),
        "they ask for conditional draws that their user writes",
    ),
    "`NestedSampler` of numpyro.contrib": (
        (),
        "its wrapper in NumPyro 0.22 cannot be imported with jaxns 3, the present one",
    ),
}
TOOLS = HANDLERS | LONG | OUTSIDE


def kinds_of(name):
    return LEFT_OUT.get(name, (tuple(KINDS), ""))[0]


def table():
    """The table of docs/ecosystem.md."""
    lines = [f"| tool | {' | '.join(KINDS)} | why not |", "|---|" + "---|" * (len(KINDS) + 1)]
    for name in (*TOOLS, *(n for n in LEFT_OUT if n not in TOOLS)):
        cells = " | ".join("yes" if kind in kinds_of(name) else "-" for kind in KINDS)
        lines.append(f"| {name} | {cells} | {LEFT_OUT.get(name, ((), ''))[1]} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
