"""Models inside NumPyro programs of a user: classes of new rows, gaps, enumeration, plates around them."""

import jax
import jax.numpy as jnp
import laws
import numpy as np
import pytest
from laws.helpers import compiled, sampled
from numpyro import handlers
from numpyro.contrib.funsor import config_enumerate, enum, infer_discrete
from numpyro.contrib.funsor import log_density as enumerated_log_density
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal

import bayesgen as bg
from bayesgen.models import DirichletCategorical, NaiveBayes, NormalInverseGamma
from bayesgen.posterior import ParameterDraws

CASES = {case.name: case for case in laws.CASES}


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def over(*names):
    return pytest.mark.parametrize("case", [CASES[name] for name in names], ids=lambda case: case.name)


def draw(case, i=0):
    """One draw of the parameters of a model."""
    return {site: value[i] for site, value in laws.parameters(case, 3).items()}


# -- gaps --------------------------------------------------------------------------------------------------------------


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


@over("naive Bayes", "naive Bayes of counts", "full shared", "isotropic shared")
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


# -- enumeration -------------------------------------------------------------------------------------------------------


@over("naive Bayes", "naive Bayes of counts", "full", "diagonal shared")
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


def test_codes_that_no_class_has_are_refused():
    case = CASES["full"]
    x, t = case.data(4)
    with pytest.raises(ValueError, match=r"t must hold codes 0\.\.1 of the classes, or -1 where it is not known"):
        handlers.seed(case.model, 0)(x, t + 7)
