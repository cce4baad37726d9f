"""Reference posteriors of the lecture models, as a folder in the format of posteriordb.

posteriordb (stan-dev/posteriordb on GitHub) keeps data, models and 10,000 nearly independent draws of each posterior,
by which samplers are judged; of generative classifiers it has none. `python -m benchmarks.reference FOLDER [NAME ...]`
writes `posteriors`, `data`, `models` (plain NumPyro programs: `benchmarks/programs.py`) and `reference_posteriors`, of
all models or those named. Where there is an exact posterior the draws are independent draws from it, in ten chains, and
its hyperparameters stand beside them; else every tenth of ten long chains of NUTS. `docs/reference.md` shows how to
read the folder.
"""

import argparse
import dataclasses
import inspect
import json
import zipfile
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bayesgen as bg
from bayesgen import models
from benchmarks import programs

CHAINS, DRAWS, THIN = 10, 1000, 10
SEED = 4711
ABC = ("a", "b", "c")
FLAT3 = [1.0, 1.0, 1.0]


class Reference(NamedTuple):
    """A posterior: a model, the arguments of its `statistics`, what its program takes, and words about it."""

    model: Any
    rows: tuple
    data: dict[str, Any]
    title: str
    source: str  # of the data

    @property
    def exact(self) -> bool:
        """True if the posterior has a closed form."""
        return self.model.conjugate


PENGUINS = "Palmer penguins (Gorman, Williams and Fraser 2014), complete rows"
VOTERS = "American National Election Study of 1996, as in statsmodels"
GRADES = {"mean": 4.2, "kappa": 0.1, "alpha": 2.0, "beta": 0.5}
VECTOR = {"mean": [44.0, 17.0], "kappa": 0.1, "nu": 5.0, "scale": [[20.0, 0.0], [0.0, 5.0]]}
LINE = {"prior_scale": [2.5, 2.5], "intercept_scale": 2.5}
NOISE = {"alpha": 1.0, "beta": 0.2}
CORPS = np.repeat([0, 1, 2, 3, 4], [109, 65, 22, 3, 1])
WORDS = "alice was beginning to get very tired of sitting by her sister on the bank and of having nothing to do"


def _penguins():
    rows = bg.data.load("penguins").dropna()
    return {
        "t": np.unique(rows.species, return_inverse=True)[1],
        "island": np.unique(rows.island, return_inverse=True)[1],
        "male": (rows.sex == "male").to_numpy(int),
        "mass": rows.body_mass_g.to_numpy() / 1000,
        "bill": rows[["bill_length_mm", "bill_depth_mm"]].to_numpy(),
    }


def _voters():
    rows = bg.data.load("anes96")
    x = rows[["selfLR", "income"]].to_numpy(float)
    return rows, (x - x.mean(0)).round(6) / x.std(0).round(6)


def _given(model, x, data, title, source) -> Reference:
    """Return the reference of a leaf, whose program calls its rows "x"."""
    return Reference(model, (np.asarray(x, float),), {"x": x, **data}, title, source)


def _coin() -> Reference:
    vote = _voters()[0].vote.to_numpy()
    return _given(models.BetaBernoulli(2.0, 2.0), vote, {"a": 2.0, "b": 2.0}, "A coin under a beta prior", VOTERS)


def _binomial() -> Reference:
    days, prior = _voters()[0].TVnews.to_numpy(), {"a": 1.0, "b": 1.0}
    model = models.BetaBinomial(**prior, trials=7)
    return _given(model, days, {"trials": 7} | prior, "Days of seven under a beta prior", VOTERS)


def _categorical() -> Reference:
    model = models.DirichletCategorical(FLAT3)
    return _given(model, _penguins()["island"], {"alpha": FLAT3}, "A die under a Dirichlet prior", PENGUINS)


def _multinomial() -> Reference:
    p = _penguins()
    table = np.array([[((p["island"] == i) & (p["t"] == k)).sum() for k in range(3)] for i in range(3)])
    model = models.DirichletMultinomial(FLAT3)
    return _given(model, table, {"alpha": FLAT3}, "Counts of categories under a Dirichlet prior", PENGUINS)


def _poisson() -> Reference:
    prior = {"concentration": 2.0, "rate": 1.0}
    source = "Deaths by horse kicks in 200 years of a corps (Bortkiewicz 1898)"
    return _given(models.GammaPoisson(**prior), CORPS, prior, "Counts under a gamma prior", source)


def _gentoo():
    p = _penguins()
    return p["mass"][p["t"] == 2]


def _normal_known_variance() -> Reference:
    prior = {"mean": 4.0, "sd": 2.0, "noise_sd": 0.5}
    return _given(models.NormalKnownVariance(**prior), _gentoo(), prior, "A normal mean, known variance", PENGUINS)


def _normal_known_mean() -> Reference:
    prior = {"mean": 5.0, "alpha": 2.0, "beta": 0.5}
    return _given(models.NormalKnownMean(**prior), _gentoo(), prior, "A normal variance, known mean", PENGUINS)


def _normal() -> Reference:
    title = "A normal distribution under a normal-inverse-gamma prior"
    return _given(models.NormalInverseGamma(**GRADES), _gentoo(), GRADES, title, PENGUINS)


def _log_normal() -> Reference:
    prior = {"mean": 3.0, "kappa": 0.1, "alpha": 2.0, "beta": 4.0}
    model, data = models.LogNormal(**prior, shift=1.0), {"shift": 1.0} | prior
    return _given(model, _voters()[0].popul.to_numpy(), data, "A shifted log-normal distribution", VOTERS)


def _gaussian_vector() -> Reference:
    p = _penguins()
    title = "Gaussian vectors under a normal-inverse-Wishart prior"
    return _given(models.NormalInverseWishart(**VECTOR), p["bill"][p["t"] == 1], VECTOR, title, PENGUINS)


def _markov_chain() -> Reference:
    words = [[int(letter not in "aeiou") for letter in word] for word in WORDS.split()]
    before = np.array([1 + code for word in words for code in [-1, *word[:-1]]])
    data = {"before": before, "symbol": np.concatenate(words), "alpha": [1.0, 1.0]}
    title = "A Markov chain of vowels (0) and consonants (1) in words"
    return Reference(models.MarkovChain(2), (words,), data, title, "Carroll 1865, Alice in Wonderland, first words")


def _naive_bayes() -> Reference:
    p = _penguins()
    leaves = {
        "island": models.DirichletCategorical(FLAT3),
        "male": models.BetaBernoulli(1.0, 1.0),
        "mass": models.NormalInverseGamma(**GRADES),
    }
    data = {name: p[name] for name in ("t", *leaves)}
    prior = {"classes_alpha": FLAT3, "island_alpha": FLAT3, "a": 1.0, "b": 1.0} | GRADES
    model = models.NaiveBayes(models.DirichletCategorical(FLAT3, ABC), leaves)
    rows = {name: p[name].astype(float) for name in leaves}
    return Reference(model, (rows, p["t"]), data | prior, "Naive Bayes of a category, a coin and a number", PENGUINS)


def _discriminant(shared: bool = False) -> Reference:
    p = _penguins()
    classes = models.DirichletCategorical(FLAT3, ABC)
    model = models.GaussianDiscriminant(classes, models.NormalInverseWishart(**VECTOR), shared=shared)
    data, kind = {"t": p["t"], "x": p["bill"], "alpha": FLAT3} | VECTOR, "linear" if shared else "quadratic"
    return Reference(model, (p["bill"], p["t"]), data, f"A {kind} Gaussian discriminant", PENGUINS)


def _line_rows():
    p = _penguins()
    return (p["bill"] - [44.0, 17.0]) / [5.0, 2.0], p["mass"] - 4.2


def _line() -> Reference:
    x, t = _line_rows()
    model = models.LinearRegression(np.zeros(3), 2.5 * np.eye(3), **NOISE)
    data = {"x": x, "t": t} | LINE | NOISE
    return Reference(model, (x, t), data, "A line, its prior in units of the noise", PENGUINS)


def _line_known_noise() -> Reference:
    x, t = _line_rows()
    model = models.LinearRegressionKnownVariance(np.zeros(3), 2.5 * np.eye(3), noise_sd=0.5)
    return Reference(model, (x, t), {"x": x, "t": t, "noise_sd": 0.5} | LINE, "A line, known noise", PENGUINS)


def _line_prior_apart() -> Reference:
    x, t = _line_rows()
    model = models.SemiConjugateLinearRegression(np.zeros(3), 2.5 * np.eye(3), **NOISE)
    return Reference(model, (x, t), {"x": x, "t": t} | LINE | NOISE, "A line, priors apart", PENGUINS)


def _line_robust() -> Reference:
    x, t = _line_rows()
    model = models.LaplaceLinearRegression(**LINE, **NOISE)
    return Reference(model, (x, t), {"x": x, "t": t} | LINE | NOISE, "A line under Laplace noise", PENGUINS)


def _scored(model, t, title, **more) -> Reference:
    x = _voters()[1]
    return Reference(model, (x, t), {"x": x, "t": t} | LINE | more, title, VOTERS)


def _logistic() -> Reference:
    return _scored(models.LogisticRegression(**LINE), _voters()[0].vote.to_numpy(), "Logistic regression")


def _probit() -> Reference:
    return _scored(models.ProbitRegression(**LINE), _voters()[0].vote.to_numpy(), "Probit regression")


def _parties():
    return np.array([0, 0, 1, 1, 1, 2, 2])[_voters()[0].PID.to_numpy()]


def _softmax() -> Reference:
    model = models.LogisticRegression(**LINE, classes=ABC)
    return _scored(model, _parties(), "Softmax regression, a score for every class", classes=3)


def _ordered() -> Reference:
    model = models.OrderedRegression(**LINE, classes=ABC)
    return _scored(model, _parties(), "Cumulative logit regression of ordered classes", classes=3)


REFERENCES: dict[str, Callable[[], Reference]] = {
    "coin": _coin,
    "binomial": _binomial,
    "categorical": _categorical,
    "multinomial": _multinomial,
    "poisson": _poisson,
    "normal_known_variance": _normal_known_variance,
    "normal_known_mean": _normal_known_mean,
    "normal": _normal,
    "log_normal": _log_normal,
    "gaussian_vector": _gaussian_vector,
    "markov_chain": _markov_chain,
    "naive_bayes": _naive_bayes,
    "discriminant": _discriminant,
    "discriminant_shared": lambda: _discriminant(shared=True),
    "line": _line,
    "line_known_noise": _line_known_noise,
    "line_prior_apart": _line_prior_apart,
    "line_robust": _line_robust,
    "logistic": _logistic,
    "probit": _probit,
    "softmax": _softmax,
    "ordered": _ordered,
}


# -- draws -------------------------------------------------------------------------------------------------------------


def latent_sites(name: str, data, samples) -> dict[str, int]:
    """Return the latent sites of a program, each with the number of its dimensions that are free."""
    from numpyro import handlers
    from numpyro.distributions import biject_to

    first = {site: values[0, 0] for site, values in samples.items()}
    trace = handlers.trace(handlers.substitute(getattr(programs, name), first)).get_trace(**arrays(data))
    found = {}
    for site, message in trace.items():
        if message["type"] == "sample" and not message["is_observed"]:
            function = message["fn"]
            free = biject_to(function.support).inverse_shape(function.batch_shape + function.event_shape)
            found[site] = int(np.prod(free))
    return found


def arrays(data) -> dict[str, Any]:
    """Return the data of a program, as read from a file: lists become arrays, numbers stay."""
    return {name: np.asarray(value) if isinstance(value, list | np.ndarray) else value for name, value in data.items()}


def drawn(reference: Reference, chains: int = CHAINS, draws: int = DRAWS, seed: int = SEED):
    """Return draws by site, (chains, draws, ...), and how they were made."""
    if reference.exact:
        posterior = bg.fit(reference.model, reference.rows)
        samples = posterior.draws(seed, (chains, draws))
        made = {"posterior": hyperparameters(posterior.model), "log_evidence": float(posterior.log_evidence)}
        return samples, {}, {"method": "analytical", "method_arguments": {"chains": chains, "seed": seed} | made}
    sampler = bg.NUTS(num_samples=THIN * draws, num_warmup=2000, num_chains=chains, target_accept=0.95, progress=False)
    posterior = bg.fit(reference.model, reference.rows, sampler, seed=seed)
    arguments = {"chains": chains, "iter": 2000 + THIN * draws, "warmup": 2000, "thin": THIN, "seed": seed}
    made = {"method": "numpyro_sampling", "method_arguments": arguments | {"control": {"target_accept": 0.95}}}
    energy = posterior.sample_stats["energy"]
    moved = np.square(np.diff(energy, axis=1)).mean(1) / energy.var(1)
    stats = {
        "divergent_transitions": posterior.sample_stats["diverging"].sum(1).tolist(),
        "expected_fraction_of_missing_information": moved.tolist(),
    }
    return {site: values[:, ::THIN] for site, values in posterior.samples.items()}, stats, made


def hyperparameters(record) -> dict[str, Any]:
    """Return the hyperparameters of a posterior by name, those of its parts by the name of the part."""
    if hasattr(record, "leaves"):
        parts = {"classes": record.classes} | dict(record.leaves)
        return {name: hyperparameters(part) for name, part in parts.items()}
    names = [field.name for field in dataclasses.fields(record) if "rank" in field.metadata]
    return {"family": type(record).__name__} | {name: np.asarray(getattr(record, name)).tolist() for name in names}


def columns(samples, sites) -> dict[str, np.ndarray]:
    """Return the draws of each scalar, (chains, draws), under its name in Stan, with places from 1."""
    found = {}
    for site in sites:
        values = np.asarray(samples[site], float)
        for place in np.ndindex(values.shape[2:]):
            name = site + (f"[{','.join(str(i + 1) for i in place)}]" if place else "")
            found[name] = values[(slice(None), slice(None), *place)]
    return found


def diagnostics(found, stats) -> tuple[dict, dict]:
    """Return diagnostics of the draws of each scalar, and the checks of posteriordb's definition."""
    from arviz_stats import ess, rhat

    table, last = np.stack(list(found.values())), slice(None, -1)
    centred = table - table.mean(2, keepdims=True)
    lag = ((centred[..., 1:] * centred[..., last]).mean(2) / table.var(2)).mean(1)
    bulk = [float(ess(values, method="bulk")) for values in table]
    tail = [float(ess(values, method="tail", prob=(0.05, 0.95))) for values in table]
    worst = [float(rhat(values)) for values in table]
    chains, draws = table.shape[1:]
    result = {
        "diagnostic_information": {"names": list(found)},
        "ndraws": chains * draws,
        "nchains": chains,
        "effective_sample_size_bulk": bulk,
        "effective_sample_size_tail": tail,
        "r_hat": worst,
        "mean_lag1_ac": lag.tolist(),
    } | stats
    checks = {
        "ndraws_is_10k": chains * draws == 10_000,
        "nchains_is_gte_4": chains >= 4,
        "ess_within_bounds": bool(0.8 * chains * draws < min(bulk) and max(bulk) < 1.25 * chains * draws),
        "r_hat_below_1_01": max(worst) < 1.01,
        "abs_mean_lag1_ac_below_0_05": bool(np.abs(lag).max() < 0.05),
    }
    if stats:
        checks["efmi_above_0_2"] = min(stats["expected_fraction_of_missing_information"]) > 0.2
        checks["no_divergent_transitions"] = not any(stats["divergent_transitions"])
    return result, checks


# -- the folder --------------------------------------------------------------------------------------------------------


def write(folder: Path, name: str, chains: int = CHAINS, draws: int = DRAWS) -> dict[str, bool]:
    """Write one posterior into a folder; return the checks made."""
    reference = REFERENCES[name]()
    data = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in reference.data.items()}
    samples, stats, made = drawn(reference, chains, draws)
    sites = latent_sites(name, data, samples)
    found = columns(samples, sites)
    result, checks = diagnostics(found, stats)
    full, by = f"bayesgen_{name}-{name}", {"added_by": "bayesgen", "added_date": date.today().isoformat()}
    versions = {f"{package}_version": version(package) for package in ("numpyro", "jax", "numpy")}
    info = {
        "posteriors": {
            "name": full,
            "keywords": ["bayesgen"],
            "model_name": name,
            "data_name": f"bayesgen_{name}",
            "reference_posterior_name": full,
            "dimensions": sites,
        },
        "data/info": {
            "name": f"bayesgen_{name}",
            "keywords": [],
            "title": f"{reference.title}: rows and hyperparameters",
            "description": reference.source,
            "references": [],
            "data_file": f"data/data/bayesgen_{name}.json",
        },
        "models/info": {
            "name": name,
            "title": reference.title,
            "description": reference.title,
            "keywords": [],
            "references": [],
            "prior": {"keywords": []},
            "model_implementations": {"numpyro": {"model_code": f"models/numpyro/{name}.py"}},
            "licence": "Apache-2.0",
        },
        "reference_posteriors/draws/info": {
            "name": full,
            "inference": made,
            "diagnostics": result,
            "checks_made": checks,
            "comments": None,
            "versions": versions | {"bayesgen_version": bg.__version__},
        },
    }
    for place, text in info.items():
        ending = "json" if place == "posteriors" else "info.json"
        path = folder / place / f"{text['name']}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(text | by, indent=2) + "\n")
    code = folder / "models" / "numpyro" / f"{name}.py"
    code.parent.mkdir(parents=True, exist_ok=True)
    head = inspect.getsource(programs).split("\n\n\n")[0].split("\n", 2)[2]
    code.write_text(f"{head}\n\n\n{inspect.getsource(getattr(programs, name))}")
    rows = [{key: values[chain].tolist() for key, values in found.items()} for chain in range(chains)]
    _zip(folder / "data" / "data" / f"bayesgen_{name}.json.zip", data)
    _zip(folder / "reference_posteriors" / "draws" / "draws" / f"{full}.json.zip", rows)
    return checks


def _zip(path: Path, content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(path.name.removesuffix(".zip"), json.dumps(content))


def main() -> None:
    """Write the posteriors named, or all; say which checks each has passed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[*REFERENCES, []], metavar="NAME")
    arguments = parser.parse_args()
    for name in arguments.names or REFERENCES:
        failed = [check for check, passed in write(arguments.folder, name).items() if not passed]
        print(f"{name}: {', '.join(failed) if failed else 'all checks passed'}", flush=True)


if __name__ == "__main__":
    main()
