"""Simulation-based calibration of every model: `python tests/calibrate.py [exact|nuts] [simulations]`.

Writes docs/reliability/calibration-<inference>.csv; by default 1000 simulations of exact posteriors, 200 of NUTS.
"""

import csv
import sys
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import laws
import numpy as np

from bayesgen import NUTS
from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletMultinomial,
    GammaPoisson,
    GaussianDiscriminant,
    LaplaceLinearRegression,
    LinearRegression,
    LinearRegressionKnownVariance,
    LogisticRegression,
    NaiveBayes,
    NormalInverseWishart,
    OrderedRegression,
    ProbitRegression,
    SeparationPrior,
)
from bayesgen.testing import check_calibration

FOLDER = Path(__file__).parents[1] / "docs" / "reliability"
# One chain: its draws are thinned to independence anyway. A high acceptance keeps the tails of scales.
SAMPLER = NUTS(num_samples=600, num_warmup=400, num_chains=1, target_accept=0.9)
SIZE = 12  # rows: few, so that a mistake about the prior shows
X = np.random.default_rng(0).normal(size=(SIZE, 2))


@dataclass(frozen=True)
class World:
    """A model, the missing entries of its rows, and a generator of data where the model has none."""

    name: str
    model: Any
    missing: Any = None
    simulate: Any = None

    def check(self, simulations, inference="exact", draws=99):
        seed = zlib.crc32(self.name.encode())
        return check_calibration(
            self.model, SIZE, inference, simulations=simulations, draws=draws, missing=self.missing,
            simulate=self.simulate, seed=seed,
        )  # fmt: skip


def gaps(*shape, share=0.25):
    """A fixed mask of missing entries, its first row whole."""
    mask = np.random.default_rng(1).random((SIZE, *shape)) < share
    mask[0] = False
    return mask


def rows(width):
    """A fixed mask of rows that are missing as a whole."""
    return np.repeat(gaps()[:, None], width, axis=1)


def scores(params):
    return X @ params["coefficients"] + params["intercept"]


def linear(params, rng):
    return X, scores(params) + rng.normal(size=SIZE) * np.sqrt(params["variance"])


def laplace(params, rng):
    return X, scores(params) + rng.laplace(size=SIZE) * np.sqrt(params["variance"] / 2)


def logistic(params, rng):
    return X, (rng.logistic(size=SIZE) < scores(params)).astype(int)


def softmax(params, rng):
    score = X @ params["coefficients"].T + params["intercept"]
    return X, (score + rng.gumbel(size=score.shape)).argmax(1)


def probit(params, rng):
    return X, (rng.normal(size=SIZE) < scores(params)).astype(int)


def ordered(params, rng):
    return X, np.searchsorted(params["cuts"], X @ params["coefficients"] + rng.logistic(size=SIZE))


BY_NAME = {case.name: case.model for case in laws.CASES}
COUNTS = {"calls": GammaPoisson([2.0, 0.7], [0.5, 1.5]), "bag": DirichletMultinomial([0.5, 1.0, 2.5], length=7)}
CURVED = NormalInverseWishart([1.0, -1.0], 0.5, 3.5, [[2.0, 0.6], [0.6, 1.0]])  # a weaker prior than the laws'
LINE = {"mean": [1.0, -0.5, 2.0], "factor": [[1.5, 0, 0], [0.3, 1.0, 0], [-0.4, 0.2, 0.8]]}

# Cases of the laws that have nothing to learn, or are below: tosses are given, columns are fixed, counts have gaps.
ELSEWHERE = ("known die", "calls", "heads of six", "tosses", "bag", "bags of four", "naive Bayes of counts")
ELSEWHERE += ("linear", "linear, known noise", "linear through 0")
EXACT = [
    *(World(case.name, case.model) for case in laws.CASES if case.model.conjugate and case.name not in ELSEWHERE),
    World("counts", COUNTS["calls"]),
    World("counts with gaps", COUNTS["calls"], gaps(2)),
    World("heads of six", BetaBinomial(1.5, 2.5, trials=6), gaps()),
    World("bag of words", COUNTS["bag"], rows(3)),
    World("naive Bayes of counts", NaiveBayes(laws.TWO, COUNTS), {"calls": gaps(2), "bag": rows(3)}),
    World("naive Bayes with gaps", BY_NAME["naive Bayes"],
          {"coin": gaps(2), "die": gaps(), "size": gaps(), "sizes": gaps(3), "heat": gaps()}),
    World("normals with gaps", BY_NAME["normals"], gaps(3)),
    World("dice with gaps", BY_NAME["dice"], gaps(2)),
    World("coin that is hardly ever fair", NaiveBayes(laws.TWO, {"coin": BetaBernoulli(0.3, 0.2)})),
    World("full, weak prior, missing rows", GaussianDiscriminant(laws.THREE, CURVED), rows(2)),
    World("full shared, missing rows", BY_NAME["full shared"], rows(2)),
    *(World(f"{name}, with gaps", BY_NAME[name], gaps(2))
      for name in ("diagonal", "diagonal shared", "isotropic", "isotropic shared")),
    World("linear regression", LinearRegression(**LINE, alpha=3.0, beta=2.0), simulate=linear),
    World("linear regression through 0", BY_NAME["linear through 0"], simulate=linear),
    World("linear regression, known noise", LinearRegressionKnownVariance(**LINE, noise_sd=0.7), simulate=linear),
]  # fmt: skip

TWO_SCALES = {"prior_scale": [1.5, 1.0], "intercept_scale": 1.0}
SAMPLED = [
    World("normal", BY_NAME["normal"]),
    World("full", BY_NAME["full"]),
    World("full, with gaps", BY_NAME["full"], gaps(2)),
    World("full shared, with gaps", BY_NAME["full shared"], gaps(2)),
    World("isotropic, with gaps", BY_NAME["isotropic"], gaps(2)),
    World("separation", BY_NAME["separation"]),
    World("separation, with gaps", BY_NAME["separation"], gaps(2)),
    World("separation shared, with gaps", BY_NAME["separation shared"], gaps(2)),
    World("separation of three columns",
          GaussianDiscriminant(laws.TWO, SeparationPrior([1.0, 2.0, 0.0], 1.0, [1.5, 1.2, 1.0], eta=1.5), shared=True)),
    World("separation diagonal, with gaps", BY_NAME["separation diagonal"], gaps(2)),
    World("naive Bayes of counts, with gaps", NaiveBayes(laws.TWO, COUNTS), {"calls": gaps(2), "bag": rows(3)}),
    World("logistic", LogisticRegression(**TWO_SCALES), simulate=logistic),
    World("softmax", LogisticRegression(**TWO_SCALES, classes=(0, 1, 2)), simulate=softmax),
    World("probit", ProbitRegression(**TWO_SCALES), simulate=probit),
    World("ordered", OrderedRegression(**TWO_SCALES), simulate=ordered),
    World("Laplace noise and prior", LaplaceLinearRegression([1.5, 1.0], 1.0, 0.0, 3.0, 2.0, prior="laplace"),
          simulate=laplace),
]  # fmt: skip


def main(kind="exact", simulations=None):
    worlds, inference = (EXACT, "exact") if kind == "exact" else (SAMPLED, SAMPLER)
    simulations = int(simulations or (1000 if kind == "exact" else 200))
    table, least = [], []
    for world in worlds:
        start = time.time()
        result = world.check(simulations, inference, draws=99 if kind == "exact" else 49)
        least += result.p_values.values()
        worst = next(iter(result.adjusted))
        line = [world.name, simulations, len(result.ranks), f"{result.p_value:.3f}", worst]
        line += [f"{result.effective:.0f}", result.divergent] if kind == "nuts" else []
        table.append(line)
        print(*line, f"{time.time() - start:.1f} s", sep=", ", flush=True)
        head = ["model", "simulations", "rank tests", "least p value", "of"]
        head += ["least effective draws", "with a divergence"] if kind == "nuts" else []
        every = min(1.0, min(least) * len(least))
        FOLDER.mkdir(exist_ok=True)
        with (FOLDER / f"calibration-{kind}.csv").open("w", newline="") as file:
            total = ["all", sum(r[1] for r in table), len(least), f"{every:.3f}", ""] + [""] * (len(head) - 5)
            csv.writer(file).writerows([head, *table, total])
    print(f"all: {len(least)} rank tests, least p value {every:.3f} by Holm's correction")
    return 0 if every > 0.01 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
