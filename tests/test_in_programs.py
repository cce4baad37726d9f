"""Models and leaves inside NumPyro programs of a user: classes of new rows, gaps, enumeration, plates around them."""

import jax
import jax.numpy as jnp
import laws
import numpy as np
import numpyro
import pytest
from laws import compiled, sampled
from numpyro import handlers
from numpyro.contrib.funsor import config_enumerate, enum, infer_discrete
from numpyro.contrib.funsor import log_density as enumerated_log_density
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from refusals import refuses
from scipy import stats
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal

import bayesgen as bg
from bayesgen import models
from bayesgen.models import BetaBernoulli, DirichletCategorical, GammaPoisson, NaiveBayes, NormalInverseGamma
from bayesgen.models.leaf import Leaf
from bayesgen.posterior import ParameterDraws

CASES = {case.name: case for case in laws.CASES}


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def over(*names):
    """Over the cases of these names; those with a star are slow tests, since another line runs the same code."""
    marks = {name.rstrip("*"): pytest.mark.slow if name.endswith("*") else () for name in names}
    return pytest.mark.parametrize("case", [pytest.param(CASES[n], id=n, marks=m) for n, m in marks.items()])


def draw(case, i=0):
    """One draw of the parameters of a model."""
    return {site: value[i] for site, value in laws.parameters(case, 3).items()}


# -- gaps --------------------------------------------------------------------------------------------------------------


@pytest.mark.compiles
def test_a_row_of_a_full_discriminant_with_a_gap_has_the_density_of_the_entries_that_are_there():
    """By SciPy's normal of the observed columns; a whole row missing has density 1."""
    case = CASES["full"]
    params, rng = draw(case), np.random.default_rng(0)
    x, t = rng.normal(2.0, 1.5, (6, 2)), np.array([0, 1, 0, 1, 1, 0])
    x[1, 0] = x[2, 1] = np.nan
    x[3] = np.nan

    def rows(x):  # as SVI and HMCECS compile a program: no gap is known while they do
        sites = handlers.trace(handlers.substitute(case.model, sampled(case.model, params))).get_trace(x, t)
        return sites["gaussian.x"]["fn"].log_prob(sites["gaussian.x"]["value"])

    expected = np.zeros(6)
    for i, k in enumerate(t):
        if (seen := np.flatnonzero(~np.isnan(x[i]))).size:
            mean, covariance = params["gaussian.mean"][k], params["gaussian.covariance"][k]
            expected[i] = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(x[i, seen])
    np.testing.assert_allclose(rows(x), expected, rtol=1e-10)
    np.testing.assert_allclose(compiled(rows, x)(x), expected, rtol=1e-10)
    whole = np.nan_to_num(x)
    normal = [multivariate_normal(params["gaussian.mean"][k], params["gaussian.covariance"][k]) for k in (0, 1)]
    np.testing.assert_allclose(
        compiled(rows, x)(whole), [normal[k].logpdf(row) for k, row in zip(t, whole, strict=True)], rtol=1e-10
    )


# -- the class of a new row --------------------------------------------------------------------------------------------


@over("naive Bayes", "naive Bayes of counts", "full shared", "isotropic shared*", "student shared*")
def test_the_joint_of_a_program_averages_to_the_predictive(case):
    x = case.data(7, "entries")[0]
    draws = laws.parameters(case, 5)
    key = jax.random.PRNGKey(0)
    found = compiled(lambda key: Predictive(case.model, draws)(key, x)["t_log_joint"], key)(key)
    assert found.shape == (5, 7, len(case.model.class_names))
    samples = {site: value[None] for site, value in draws.items()}
    expected = ParameterDraws(case.model, samples).log_predictive(x)
    np.testing.assert_allclose(logsumexp(found, axis=0) - np.log(5), expected, rtol=1e-10, atol=1e-10)


def test_the_class_of_a_new_row_is_that_of_the_exact_posterior():
    """Bayes' rule by hand from SciPy's densities; Predictive's own "t" is a draw of the class prior."""
    model = CASES["full"].model
    x, t = CASES["full"].data(40, "no")
    new = x[:5]
    posterior = bg.fit(model, (x, t)).as_draws(0).flat
    found = Predictive(model, posterior)(jax.random.PRNGKey(0), new)
    probability = softmax(logsumexp(found["t_log_joint"], axis=0), axis=-1)
    joint = np.empty((4000, 5, 2))
    for k in range(2):
        mean, covariance = posterior["gaussian.mean"][:, k], posterior["gaussian.covariance"][:, k]
        z = np.linalg.solve(np.linalg.cholesky(covariance)[:, None], (new - mean[:, None])[..., None])[..., 0]
        joint[..., k] = np.exp(-0.5 * (z**2).sum(-1)) / np.sqrt(np.linalg.det(2 * np.pi * covariance))[:, None]
        joint[..., k] *= posterior["classes.probability"][:, None, k]
    by_hand = joint.mean(0) / joint.mean(0).sum(-1, keepdims=True)
    np.testing.assert_allclose(probability, by_hand, rtol=1e-9)
    assert np.abs(np.eye(2)[found["t"]].mean((0, 1)) - posterior["classes.probability"].mean(0)).max() < 0.02


@pytest.mark.compiles
def test_the_joint_is_recorded_only_where_the_class_is_drawn_or_one_asks():
    case = CASES["full"]
    x, t = case.data(4)

    def sites(*args, model=case.model, **options):
        found = {}
        jax.eval_shape(
            lambda key: found.update(handlers.trace(handlers.seed(model, key)).get_trace(*args, **options)),
            jax.random.PRNGKey(0),
        )
        return found.keys()

    assert "t_log_joint" in sites(x)
    assert "t_log_joint" not in sites(x, t)
    assert "t_log_joint" in sites(x, t, log_joint=True)
    assert "t_log_joint" not in sites(x, log_joint=False)
    assert "t_log_joint" not in sites(size=3)
    assert "t_log_joint" not in sites(x, model=handlers.condition(case.model, {"t": t}))
    assert "t_log_joint" not in sites(x, model=enum(config_enumerate(case.model), -4))
    assert "t_log_joint" not in sites(x, model=handlers.do(case.model, {"t": t}))
    # As samplers of discrete sites collect their draws: every site has a value, with a seed or without.
    values = {**sampled(case.model, draw(case)), "t": t}
    assert "t_log_joint" not in handlers.trace(handlers.substitute(case.model, values)).get_trace(x)
    assert "t_log_joint" not in handlers.trace(handlers.substitute(handlers.seed(case.model, 0), values)).get_trace(x)


# -- enumeration -------------------------------------------------------------------------------------------------------


@pytest.mark.compiles
@over("naive Bayes", "naive Bayes of counts", "full", "diagonal shared*", "student*")
def test_enumerated_classes_are_summed_out(case):
    """All classes unknown, and some: the sum over classes of the algebra's densities, to rounding."""
    x, t = case.data(6, "entries")
    params = draw(case)
    rows = case.model.log_likelihood_rows({s: v[None] for s, v in params.items()}, case.model.check(x))[0]
    partly = np.where(np.arange(6) % 3 == 1, -1, t)
    values = sampled(case.model, params)
    prior = float(compiled(lambda v: log_density(case.model.latents, (), {}, v)[0], values)(values))
    for codes in (None, partly):
        model = enum(config_enumerate(case.model), -4)
        found = compiled(lambda v, c=codes, m=model: enumerated_log_density(m, (x, c), {}, v)[0], values)(values)
        unknown = np.ones(6, bool) if codes is None else codes < 0
        expected = np.where(unknown, logsumexp(rows, axis=0), rows[t, np.arange(6)])
        np.testing.assert_allclose(found, prior + expected.sum(), rtol=1e-10)


@pytest.mark.compiles
def test_classes_are_inferred_where_they_are_not_known():
    """A row far on one side has that side's class; classes that are known stay as they are."""
    model = NaiveBayes(DirichletCategorical(1.0, 2), {"size": NormalInverseGamma([0.0, 0.0], 1.0, 2.0, 2.0)})
    params = {
        "classes.probability": jnp.array([0.5, 0.5]),
        "size.mean": jnp.array([[-9.0, -9.0], [9.0, 9.0]]),
        "size.variance": jnp.ones((2, 2)),
    }
    x = {"size": np.array([[-9.0, -8.0], [9.0, np.nan], [np.nan, np.nan], [8.0, 8.0]])}
    t = np.array([-1, -1, 1, 0])

    def classes(key):
        program = handlers.seed(config_enumerate(handlers.substitute(model, params)), key)
        found = infer_discrete(program, first_available_dim=-4, rng_key=key)
        return handlers.trace(found).get_trace(x, t)["t"]["value"]

    assert jax.jit(classes)(jax.random.PRNGKey(0)).tolist() == [0, 1, 1, 0]


@pytest.mark.compiles
def test_codes_that_no_class_has_are_refused():
    case = CASES["full"]
    x, t = case.data(4)
    with pytest.raises(ValueError, match=r"t must hold codes 0\.\.1 of the classes, or -1 where it is not known"):
        handlers.seed(case.model, 0)(x, t + 7)


# -- plates of the user ------------------------------------------------------------------------------------------------


def within(model, dim=None):
    """A program of a model in two hospitals."""

    def program(*data, **options):
        with numpyro.plate("hospital", 2, dim=dim):
            return model(*data, **options)

    return program


def padded(data, length):
    """Rows and codes of one hospital, with rows that are not there: no entry, no class."""
    gone = length - len(jax.tree_util.tree_leaves(data)[0])
    return jax.tree_util.tree_map(
        lambda a: np.concatenate([a, np.full((gone, *a.shape[1:]), -1 if a.dtype.kind == "i" else np.nan)]), data
    )


IN_PLATES = ("coins", "bags of four", "gaussian plane", "naive Bayes", "full shared", "isotropic shared")


@pytest.mark.compiles
@over(*IN_PLATES, "separation shared*", "student*")
def test_in_a_plate_the_density_is_the_sum_over_its_elements(case):
    """Hospitals of five and three rows, by the algebra's likelihood of each; parameters lead with the hospital."""
    hospitals = [case.data(5, "entries"), case.data(3, "entries", seed=1)]
    draws = [draw(case, i) for i in range(2)]
    values = [sampled(case.model, params) for params in draws]
    both = jax.tree_util.tree_map(lambda *a: np.stack(a), hospitals[0], padded(hospitals[1], 5))
    prior = compiled(lambda v: log_density(case.model.latents, (), {}, v)[0], values[0])
    expected = sum(
        float(prior(v)) + case.model.log_likelihood(params, case.model.statistics(*data))
        for v, params, data in zip(values, draws, hospitals, strict=True)
    )
    for dim in (None, -2):  # the next axis, as NumPyro takes it by default, or one in front of the rows'
        lead = (2,) if dim is None else (2, 1)
        together = {
            site: np.stack([v[site] for v in values]).reshape(*lead, *values[0][site].shape) for site in values[0]
        }
        # Rows as constants of the program, and as arguments that are traced with it.
        given = (both,) if dim else ()
        density = compiled(
            lambda v, data=both, dim=dim: log_density(within(case.model, dim), data, {}, v)[0], together, *given
        )
        np.testing.assert_allclose(density(together, *given), expected, rtol=1e-10)


@pytest.mark.compiles
def test_in_a_plate_rows_are_drawn_and_classes_averaged():
    """Shapes of draws, and each hospital's joint of new rows is that of its own parameters."""
    case = CASES["full shared"]
    values = [sampled(case.model, draw(case, i)) for i in range(2)]
    together = {site: np.stack([v[site] for v in values])[None] for site in values[0]}
    x = np.stack([case.data(4, "entries", seed=i)[0] for i in range(2)])
    key = jax.random.PRNGKey(0)
    program = within(case.model)
    new = compiled(lambda key: Predictive(program, together)(key, x)["t_log_joint"], key)(key)[
        0
    ]  # (rows, hospitals, K)
    for i in range(2):
        samples = {site: value[None, None] for site, value in draw(case, i).items()}
        expected = ParameterDraws(case.model, samples).log_predictive(x[i])
        np.testing.assert_allclose(new[:, i], expected, rtol=1e-10)
    found = {}
    jax.eval_shape(lambda key: found.update(Predictive(program, num_samples=3)(key, size=6)), key)
    assert found["gaussian.mean"].shape == (3, 2, 2, 2) and found["gaussian.x"].shape == (3, 6, 2, 2)


@pytest.mark.compiles
def test_a_fit_of_coins_in_a_plate_is_each_coin():
    """The mode of Beta(2 + ones, 2 + zeros) in each hospital, with tosses that were not made."""
    tosses = np.array([[1.0, 1.0, 0.0, 1.0], [0.0, 0.0, np.nan, np.nan]])

    def program(x):
        with numpyro.plate("hospital", 2):
            BetaBernoulli(2.0, 2.0)(x)

    found = bg.fit(program, (tosses,), "map")
    np.testing.assert_allclose(found.params["probability"], [4 / 6, 1 / 4], rtol=1e-5)


@pytest.mark.compiles
def test_rows_that_do_not_fit_the_plates_are_refused():
    for model, rows in ((BetaBernoulli(2.0, 2.0), np.zeros(5)), (CASES["full"].model, np.zeros((5, 2)))):
        with pytest.raises(ValueError, match=r"first those of the plates, then the rows, then the features; got shape"):
            handlers.seed(within(model), 0)(rows)
    with pytest.raises(ValueError, match="a regression has rows of its own in every element of a plate"):
        handlers.seed(within(CASES["linear"].model), 0)(np.zeros((2, 5, 2)))


@pytest.mark.compiles
def test_two_leaves_of_the_same_rows_have_prefixes():
    coin, size = BetaBernoulli([2.0, 1.0], 2.0), NormalInverseGamma(0.0, 1.0, 2.0, 2.0)
    bits, sizes = np.array([[0.0, 1.0], [1.0, np.nan], [1.0, 1.0]]), np.array([0.5, 2.0, np.nan])

    def program(bits, sizes):
        coin(bits, prefix="coin")
        size(sizes, prefix="size")

    params = {"coin.probability": np.array([0.3, 0.6]), "size.mean": np.array(0.7), "size.variance": np.array(2.0)}
    found, sites = log_density(program, (bits, sizes), {}, params)
    expected = stats.beta([2.0, 1.0], 2.0).logpdf([0.3, 0.6]).sum() + np.log([0.7 * 0.3 * 0.3, 0.6 * 0.6]).sum()
    expected += stats.invgamma(2.0, scale=2.0).logpdf(2.0) + stats.norm(0.0, 2.0**0.5).logpdf(0.7)
    expected += stats.norm(0.7, 2.0**0.5).logpdf([0.5, 2.0]).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert {name for name, site in sites.items() if site["type"] == "plate"} == {"coin.feature", "obs"}
    refuses(handlers.trace(handlers.seed(lambda: (coin(bits), coin(bits)), 0)).get_trace, 'prefix="first"')
    with pytest.raises(ValueError, match=r"handlers\.scope\(prefix="):
        model, data = CASES["linear"].model, CASES["linear"].data(3)
        handlers.trace(handlers.seed(lambda: (model(*data), model(*data)), 0)).get_trace()


@pytest.mark.compiles
def test_in_a_plate_classes_are_enumerated():
    case = CASES["full"]
    hospitals = [case.data(4, "entries", seed=i)[0] for i in range(2)]
    draws = [draw(case, i) for i in range(2)]
    values = [sampled(case.model, params) for params in draws]
    together = {site: np.stack([v[site] for v in values]) for site in values[0]}
    prior = compiled(lambda v: log_density(case.model.latents, (), {}, v)[0], values[0])
    expected = sum(float(prior(v)) for v in values)
    for params, x in zip(draws, hospitals, strict=True):
        rows = case.model.log_likelihood_rows({s: v[None] for s, v in params.items()}, case.model.check(x))[0]
        expected += logsumexp(rows, axis=0).sum()
    model = enum(config_enumerate(within(case.model)), -4)
    density = compiled(lambda v: enumerated_log_density(model, (np.stack(hospitals),), {}, v)[0], together)
    np.testing.assert_allclose(density(together), expected, rtol=1e-10)


@pytest.mark.compiles
def test_a_site_that_a_model_does_not_have_is_named_with_those_it_has():
    model = NaiveBayes(DirichletCategorical(1.0, 2), {"x": GammaPoisson(2.0, 1.0)})
    with handlers.seed(rng_seed=0):
        for latents, known in (
            (GammaPoisson(2.0, 1.0).latents, "'mean'"),
            (model.latents, "'classes.probability', 'x.mean'"),
        ):
            with pytest.raises(KeyError, match=f"there is no site 'rate'; the sites are {known}"):
                latents()["rate"]
        doubled = jax.tree_util.tree_map(lambda value: 2 * value, GammaPoisson(2.0, 1.0).latents())
    assert doubled.keys() == {"mean"}


RNG = np.random.default_rng(0)
N, T = 12, np.arange(12) % 2
NUMBERS = RNG.normal(size=(N, 2))
CODES = RNG.integers(0, 3, (N, 2)).astype(float)
NIG = models.NormalInverseGamma([0.0, 1.0], 1.0, 3.0, 2.0)
LEAVES = {
    "BetaBernoulli": (models.BetaBernoulli([1.0, 2.0], 2.0), (NUMBERS > 0).astype(float)),
    "BetaBinomial": (models.BetaBinomial([1.0, 2.0], 2.0, trials=[3, 4]), CODES),
    "DirichletCategorical": (models.DirichletCategorical(np.ones((2, 3)), 3), CODES),
    "DirichletMultinomial": (models.DirichletMultinomial([1.0, 2.0, 1.5], length=4), np.tile([2.0, 1.0, 1.0], (N, 1))),
    "GammaPoisson": (models.GammaPoisson([1.0, 2.0], 1.0), CODES),
    "LogNormal": (models.LogNormal([0.0, 1.0], 1.0, 3.0, 2.0), np.exp(NUMBERS)),
    "MarkovChain": (models.MarkovChain(3, length=4), RNG.integers(0, 3, (N, 4)).astype(float)),
    "NormalInverseGamma": (NIG, NUMBERS),
    "NormalInverseWishart": (models.NormalInverseWishart([0.0, 1.0], 1.0, 4.0, np.eye(2)), NUMBERS),
    "NormalKnownMean": (models.NormalKnownMean([0.0, 1.0], 3.0, 2.0), NUMBERS),
    "NormalKnownVariance": (models.NormalKnownVariance([0.0, 1.0], 2.0, 1.0), NUMBERS),
    "Pooled": (models.Pooled(NIG), NUMBERS),
    "PooledGroups": (
        models.PooledGroups(models.NormalInverseGamma(0.0, 1.0, 3.0, 2.0), groups=3),
        np.column_stack([NUMBERS[:, 0], np.arange(N) % 3]),
    ),
    "StudentT": (models.StudentT(NIG), NUMBERS),
}
REFUSED = {"HaldaneBernoulli", "HaldaneCategorical", "KnownCategorical"}  # no draws; a prior of classes


def test_every_exported_leaf_is_here():
    exported = {name for name in models.__all__ if issubclass(getattr(models, name), Leaf)}
    improper = {name for name in exported if name.startswith("Reference")}
    assert exported - improper - REFUSED == LEAVES.keys()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.compiles if name == "BetaBernoulli" else pytest.mark.slow)
        for name in LEAVES
    ],
)
def test_a_leaf_runs_in_every_program(name):
    leaf, rows = LEAVES[name]
    key = jax.random.PRNGKey(0)

    def in_plate(x):
        with numpyro.plate("ward", 2, dim=-2):
            leaf(x)

    model = NaiveBayes(DirichletCategorical(2.0, 2), {"x": leaf})
    with laws.x64():
        assert np.isfinite(Predictive(leaf, num_samples=2)(key, rows)["x"]).all()
        assert Predictive(in_plate, num_samples=2)(key, np.stack([rows, rows]))["x"].shape[0] == 2
        draws = {k: np.array(v) for k, v in Predictive(model, num_samples=3)(key, {"x": rows}, T).items()}
        params = {k: v for k, v in draws.items() if k not in ("t", "x.x", "t_log_joint")}
        joint = Predictive(model, params)(key, {"x": rows})["t_log_joint"]
        found = Predictive(config_enumerate(model), params, infer_discrete=True)(key, {"x": rows}, np.full(N, -1))["t"]
    assert np.isin(found, [0, 1]).all()
    expected = model.log_likelihood_rows(params, model.check({"x": rows}))
    np.testing.assert_allclose(np.swapaxes(joint, 1, 2), expected, rtol=1e-8)
    kept, (of_rows, total) = model.statistics({"x": rows}, T), (expected[:, T, np.arange(N)].sum(1), [])
    for j in range(3):
        total.append(float(model.log_likelihood({k: v[j] for k, v in params.items()}, kept)))
    np.testing.assert_allclose(total, of_rows, rtol=1e-8)
