"""Reference posteriors: plain programs against the models' algebra, and the written folder against NumPyro's NUTS."""

import json
import zipfile

import jax
import laws
import numpy as np
import pytest
from laws.priors import log_prior

import bayesgen as bg

reference = pytest.importorskip("benchmarks.reference")  # a source distribution has the tests alone
programs = pytest.importorskip("benchmarks.programs")
FAST = ("log_normal", "markov_chain", "ordered")  # the others compile for longer


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in reference.REFERENCES]
)
def test_program_has_the_density_of_the_model(name):
    """NumPyro's densities in the program; SciPy's prior and the likelihood of the sums beside it."""
    from numpyro.infer.util import log_density

    own = reference.REFERENCES[name]()
    statistics = own.model.statistics(*own.rows)
    if own.exact:
        draws = bg.fit(own.model, own.rows).draws(0, (1, 3))
    else:
        mode = bg.fit(own.model, own.rows, "map").params
        draws = {
            site: np.stack([np.asarray(v), 1.1 * np.asarray(v), 0.8 * np.asarray(v)])[None] for site, v in mode.items()
        }
    with laws.x64():
        sites = reference.latent_sites(name, own.data, draws)
        for i in range(3):
            params = {site: np.asarray(values)[0, i] for site, values in draws.items()}
            given = {site: params[site] for site in sites}
            plain, _ = log_density(getattr(programs, name), (), reference.arrays(own.data), given)
            ours = log_prior(own.model, params) + float(own.model.log_likelihood(params, statistics))
            np.testing.assert_allclose(float(plain), ours, rtol=1e-11)


def read(path):
    with zipfile.ZipFile(path) as file:
        return json.loads(file.read(file.namelist()[0]))


@pytest.mark.compiles
def test_written_draws_are_those_of_the_written_program(tmp_path):
    from arviz_stats import ess
    from numpyro.infer import MCMC, NUTS

    reference.write(tmp_path, "normal", chains=4, draws=500)
    about = json.loads((tmp_path / "posteriors" / "bayesgen_normal-normal.json").read_text())
    assert about["dimensions"] == {"variance": 1, "mean": 1}
    draws = tmp_path / "reference_posteriors" / "draws"
    chains = read(draws / "draws" / f"{about['reference_posterior_name']}.json.zip")
    info = json.loads((draws / "info" / f"{about['name']}.info.json").read_text())
    assert info["diagnostics"]["ndraws"] == 2000 and info["checks_made"]["r_hat_below_1_01"]
    model = json.loads((tmp_path / "models" / "info" / f"{about['model_name']}.info.json").read_text())
    code = (tmp_path / model["model_implementations"]["numpyro"]["model_code"]).read_text()
    namespace = {}
    exec(code, namespace)
    data = read(tmp_path / "data" / "data" / f"{about['data_name']}.json.zip")
    with laws.x64():
        sampler = MCMC(NUTS(namespace["normal"]), num_warmup=300, num_samples=1000, progress_bar=False)
        sampler.run(jax.random.PRNGKey(0), **reference.arrays(data))
    for site, values in sampler.get_samples().items():
        exact, values = np.concatenate([chain[site] for chain in chains]), np.asarray(values)
        for power in (1, 2):
            a, b = exact**power, values**power
            error = np.sqrt(a.var() / len(a) + b.var() / ess(b[None], method="mean"))
            assert abs(a.mean() - b.mean()) < 5 * error
    posterior = info["inference"]["method_arguments"]["posterior"]  # exact: mean of the variance β/(α - 1)
    mean = np.mean([chain["variance"] for chain in chains])
    np.testing.assert_allclose(mean, posterior["beta"] / (posterior["alpha"] - 1), rtol=0.03)
