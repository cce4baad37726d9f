r"""Regressions of posteriordb: means and second moments of every parameter against its reference draws.

posteriordb (stan-dev/posteriordb on GitHub) keeps data, models in Stan and 10,000 nearly independent draws of each
posterior. Its linear regressions have flat priors on weights and standard deviation, a half-Cauchy or half-normal on
the latter, or normal weights; ours have a normal-inverse-gamma prior (`LinearRegression`, exact draws) or independent
ones (`SemiConjugateLinearRegression`, NUTS). So each of our draws has the weight p(w, s)/q(w, s), with the prior p of
the reference and the prior q of ours, which is flat enough to leave most draws effective.

`python -m benchmarks posteriordb` reads the folder that the variable POSTERIORDB names, a clone's `posterior_database`,
and does nothing where there is none.
"""

import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import bayesgen as bg
from bayesgen.models import LinearRegression, SemiConjugateLinearRegression

DRAWS = 20_000  # exact ones; the reference has 10,000
ALPHA = 0.5  # of the inverse gamma; its scale is a hundredth of the variance of the residuals
WIDE = 100.0  # prior standard deviation of a weight, for a target and a column of standard deviation 1


class Regression(NamedTuple):
    """A posterior of the database: the target and the columns that its model makes of the data, and its priors."""

    target: Callable[[dict], Any]
    columns: Callable[[dict], tuple]
    sigma: Callable[[Any], Any] = lambda sigma: 0.0  # log prior density of the standard deviation
    weights: Callable[[Any], Any] = lambda w: 0.0  # log prior density of the weights
    intercept: bool = True


def _same(name: str) -> Callable[[dict], Any]:
    return lambda data: data[name]


def _log(name: str) -> Callable[[dict], Any]:
    return lambda data: np.log(data[name])


def _interaction(a, b) -> tuple:
    return a, b, a * b


def _z(values, sds: float = 1.0):
    return (values - values.mean()) / (sds * values.std(ddof=1))


def _half_cauchy(sigma):
    return stats.cauchy(0, 2.5).logpdf(sigma)


def _area(d) -> Any:
    return d["diam1"] * d["diam2"]


def _nes(d) -> tuple:
    ages = (d["age_discrete"] == age for age in (2, 3, 4))
    return d["real_ideo"], d["race_adj"], *ages, d["educ1"], d["gender"], d["income"]


def _shape(d) -> tuple:
    area = _area(d)
    return (np.log(area * d["canopy_height"]), np.log(area), np.log(d["diam1"] / d["diam2"]), np.log(d["total_height"]))


_MESQUITE = "diam1", "diam2", "canopy_height", "total_height", "density"
_KID, _EARN, _WEIGHT = _same("kid_score"), _log("earn"), _log("weight")
_BLR = Regression(
    _same("y"),
    lambda d: tuple(d["X"].T),
    stats.norm(0, 10).logpdf,
    lambda w: stats.norm(0, 10).logpdf(w).sum(-1),
    intercept=False,
)

POSTERIORS = {
    **{f"nes{year}-nes": Regression(_same("partyid7"), _nes) for year in range(1972, 2001, 4)},
    "kidiq-kidscore_momhs": Regression(_KID, lambda d: (d["mom_hs"],), _half_cauchy),
    "kidiq-kidscore_momiq": Regression(_KID, lambda d: (d["mom_iq"],), _half_cauchy),
    "kidiq-kidscore_momhsiq": Regression(_KID, lambda d: (d["mom_hs"], d["mom_iq"]), _half_cauchy),
    "kidiq-kidscore_interaction": Regression(_KID, lambda d: _interaction(d["mom_hs"], d["mom_iq"]), _half_cauchy),
    "kidiq_with_mom_work-kidscore_interaction_c": Regression(
        _KID, lambda d: _interaction(d["mom_hs"] - d["mom_hs"].mean(), d["mom_iq"] - d["mom_iq"].mean())
    ),
    "kidiq_with_mom_work-kidscore_interaction_c2": Regression(
        _KID, lambda d: _interaction(d["mom_hs"] - 0.5, d["mom_iq"] - 100)
    ),
    "kidiq_with_mom_work-kidscore_interaction_z": Regression(
        _KID, lambda d: _interaction(_z(d["mom_hs"], 2), _z(d["mom_iq"], 2))
    ),
    "kidiq_with_mom_work-kidscore_mom_work": Regression(
        _KID, lambda d: tuple(d["mom_work"] == kind for kind in (2, 3, 4))
    ),
    "earnings-earn_height": Regression(_same("earn"), lambda d: (d["height"],)),
    "earnings-logearn_height": Regression(_EARN, lambda d: (d["height"],)),
    "earnings-log10earn_height": Regression(lambda d: np.log10(d["earn"]), lambda d: (d["height"],)),
    "earnings-logearn_height_male": Regression(_EARN, lambda d: (d["height"], d["male"])),
    "earnings-logearn_logheight_male": Regression(_EARN, lambda d: (np.log(d["height"]), d["male"])),
    "earnings-logearn_interaction": Regression(_EARN, lambda d: (d["height"], d["male"], d["height"] * d["male"])),
    "earnings-logearn_interaction_z": Regression(_EARN, lambda d: _interaction(_z(d["height"]), d["male"])),
    "mesquite-mesquite": Regression(_same("weight"), lambda d: (*(d[name] for name in _MESQUITE), d["group"])),
    "mesquite-logmesquite": Regression(_WEIGHT, lambda d: (*(np.log(d[name]) for name in _MESQUITE), d["group"])),
    "mesquite-logmesquite_logvolume": Regression(_WEIGHT, lambda d: _shape(d)[:1]),
    "mesquite-logmesquite_logva": Regression(_WEIGHT, lambda d: (*_shape(d)[:2], d["group"])),
    "mesquite-logmesquite_logvash": Regression(_WEIGHT, lambda d: (*_shape(d), d["group"])),
    "mesquite-logmesquite_logvas": Regression(_WEIGHT, lambda d: (*_shape(d), np.log(d["density"]), d["group"])),
    "sblrc-blr": _BLR,
    "sblri-blr": _BLR,
}


def _read(path: Path) -> Any:
    with zipfile.ZipFile(path) as file:
        return json.loads(file.read(file.namelist()[0]))


def drawn(regression: Regression, x, t, exact: bool, size: int, seed: int = 0):
    """Return draws (S, P) of the weights and the standard deviation, how many each is worth, and their log weights.

    The prior of the weights has standard deviations of `WIDE` in the units of the data; the exact one is in units of
    the noise, whose spread is at most the target's.
    """
    scale = t.std() * WIDE / np.r_[1.0 if regression.intercept else [], x.std(0)]
    if regression.intercept:
        scale[0] += WIDE * t.std() * np.abs(x.mean(0) / x.std(0)).sum()  # where the columns are 0
    rows = np.column_stack([np.ones(len(x)), x]) if regression.intercept else x
    beta = 0.01 * (t - rows @ np.linalg.lstsq(rows, t)[0]).var()
    kind = LinearRegression if exact else SemiConjugateLinearRegression
    units = t.std() if exact else 1.0
    model = kind(np.zeros(len(scale)), np.diag(scale / units), ALPHA, beta, intercept=regression.intercept)
    result = bg.fit(model, (x, t), "exact" if exact else bg.NUTS(num_samples=size // 4), seed=seed)
    found = result.draws(seed, (4, size // 4)) if exact else result.samples
    params: Any = {site: value.reshape(size, *value.shape[2:]) for site, value in found.items()}
    names = ("intercept", "coefficients") if regression.intercept else ("coefficients",)
    w = np.column_stack([params[name] for name in names])
    variance = np.asarray(params["variance"])
    sigma = np.sqrt(variance)
    noise = variance if exact else np.ones_like(variance)
    ours = -(ALPHA + 1) * np.log(variance) - beta / variance
    ours -= 0.5 * len(scale) * np.log(noise) + 0.5 * ((w * units / scale) ** 2).sum(1) / noise
    log_weight = regression.weights(w) + regression.sigma(sigma) - np.log(sigma) - ours
    return np.column_stack([w, sigma]), log_weight


def compared(reference, draws, log_weight, effective: float) -> tuple[float, float]:
    """Return the largest |z| of means and second moments, and the effective number of our draws.

    The error of a weighted mean is the root of sum w_i^2 (f_i - mean)^2: weights go with the standard deviation.
    """
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    share = effective / len(draws)
    centre, scale = reference.mean(0), reference.std(0)
    largest = 0.0
    for power in (1, 2):
        theirs, ours = (((own - centre) / scale) ** power for own in (reference, draws))
        mean = weight @ ours
        error = theirs.var(0) / len(theirs) + weight**2 @ (ours - mean) ** 2 / share
        largest = max(largest, float(np.abs((mean - theirs.mean(0)) / np.sqrt(error)).max()))
    return largest, share / float((weight**2).sum())


@dataclass
class Section:
    """The section of `results.md`."""

    rows: list[tuple] = field(default_factory=list)

    def markdown(self) -> str:
        """The table as Markdown."""
        total = sum(2 * parameters for _, parameters, *_ in self.rows)
        lines = [
            "## Regressions of posteriordb",
            "",
            f"{len(self.rows)} linear regressions with reference draws: largest |z| of mean and second moment of any",
            f"parameter ({total} moments each way), by draws of the exact posterior and by NUTS, weighted from our",
            "prior to theirs; and how many draws that leaves effective.",
            "",
            "| posterior | parameters | exact: largest z | draws | NUTS: largest z | draws |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for name, parameters, *pairs in self.rows:
            cells = [f"{z:.1f} | {count:.0f}" if count else "- | -" for z, count in pairs]
            lines.append(f"| {name} | {parameters} | {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"


def run(quick: bool = False) -> list[Section]:
    """Compare all posteriors of the folder, or two."""
    from numpyro.diagnostics import effective_sample_size

    folder = Path(os.environ.get("POSTERIORDB", "posterior_database"))
    if not folder.exists():
        print("  skipped: POSTERIORDB names no folder")
        return []
    section = Section()
    for name, regression in list(POSTERIORS.items())[:: 16 if quick else 1]:
        chains = _read(folder / "reference_posteriors" / "draws" / "draws" / f"{name}.json.zip")
        reference = np.column_stack([np.concatenate([chain[site] for chain in chains]) for site in chains[0]])
        raw = _read(folder / "data" / "data" / f"{name.split('-')[0]}.json.zip")
        data = {key: np.asarray(value, float) for key, value in raw.items()}
        t, x = regression.target(data), np.column_stack(regression.columns(data)).astype(float)
        exact = (0.0, 0.0)
        if regression.intercept:  # the prior of the others is not in units of the noise
            exact = compared(reference, *drawn(regression, x, t, True, DRAWS), DRAWS)
        draws, log_weight = drawn(regression, x, t, False, DRAWS)
        effective = min(float(effective_sample_size(column.reshape(4, -1))) for column in draws.T)
        section.rows.append((name, reference.shape[1], exact, compared(reference, draws, log_weight, effective)))
        print("  ", *section.rows[-1], flush=True)
    return [section]
