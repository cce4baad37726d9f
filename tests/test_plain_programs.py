"""A program as text is the model: its sites, and its joint density, in a namespace that has only JAX and NumPyro."""

import html
import subprocess
import sys
from dataclasses import replace

import jax
import laws
import numpy as np
import numpyro
import pandas as pd
import pytest
from commands import run
from numpyro import handlers
from numpyro.contrib.funsor import config_enumerate, enum
from numpyro.contrib.funsor.infer_util import log_density as log_density_of_sum
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density

import bayesgen as bg
from bayesgen.core.program import x64
from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletCategorical,
    DirichletMultinomial,
    GammaPoisson,
    GaussianDiscriminant,
    HaldaneBernoulli,
    LabelNoise,
    LogNormal,
    MarkovChain,
    NaiveBayes,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownMean,
    NormalKnownVariance,
    Pooled,
    PooledGroups,
    ReferenceGaussian,
    SeparationPrior,
    UnknownClasses,
)
from bayesgen.models.function import statistics_program

# Models of `bayesgen.models` that are refused, and the word that tells it.
REFUSED = {
    "PooledGroups": (PooledGroups(NormalKnownVariance(0.0, 1.0, 1.0), groups=2), "PooledGroups is not written"),
    "HaldaneBernoulli": (HaldaneBernoulli(), "improper"),
    "ReferenceGaussian": (ReferenceGaussian(), "improper"),
    "SeparationPrior": (SeparationPrior(0.0), "a prior alone"),
    "LabelNoise": (LabelNoise(), "a prior alone"),
}
LIKE = {"HaldaneCategorical", "ReferencePoisson", "ReferenceVector"}  # improper too
THREE = DirichletCategorical(1.5, ["a", "b", "c"])
NUMBERS = NormalInverseGamma([1.0, 2.0], 1.5, [3.0, 4.0], 2.0)
POOLED = {
    "coins": (BetaBernoulli([2.0, 1.5], 1.5), lambda rng, n: rng.integers(0, 2, (n, 2)) * 1.0),
    "heads": (BetaBinomial(2.0, 1.5, trials=4), lambda rng, n: rng.integers(0, 5, n) * 1.0),
    "die": (DirichletCategorical([1.5, 2.0, 1.0]), lambda rng, n: rng.integers(0, 3, n) * 1.0),
    "words": (DirichletMultinomial([1.5, 2.0, 1.0]), lambda rng, n: rng.poisson(2.0, (n, 3)) * 1.0),
    "calls": (GammaPoisson([2.0, 1.0], 1.5), lambda rng, n: rng.poisson(2.0, (n, 2)) * 1.0),
    "sizes": (NUMBERS, lambda rng, n: rng.normal(size=(n, 2))),
    "skewed": (LogNormal(0.5, 1.5, 3.0, 2.0, shift=1.0), lambda rng, n: rng.exponential(size=n)),
    "heat": (NormalKnownVariance(1.0, 2.0, 0.5), lambda rng, n: rng.normal(size=n)),
    "gauge": (NormalKnownMean(1.0, 3.0, 2.0), lambda rng, n: rng.normal(size=n)),
}


def read_back(text):
    """The names that a text defines, run where there is no bayesgen."""
    assert "bayesgen" not in text.replace("written by bayesgen", "")
    assert max(map(len, text.splitlines())) <= 120, "a line that a page cannot show"
    names = {"__name__": "plain"}
    try:
        exec(compile(text, "plain.py", "exec"), names)
    finally:  # a text that runs by itself computes in float64; other tests of this process do not
        jax.config.update("jax_enable_x64", False)
    return names


def drawn(model, *data):
    """Sites that a program draws, and the names of those that it has."""
    trace = handlers.trace(handlers.seed(model, 0)).get_trace(*data)
    sites = {name: site for name, site in trace.items() if site["type"] in ("sample", "deterministic")}
    latent = {k: s["value"] for k, s in sites.items() if s["type"] == "sample" and not s["is_observed"]}
    return latent, sites.keys()


def same(model, plain, data, digits=1e-10):
    """Assert that two programs have the same sites, and the same joint density."""
    with x64():
        params, sites = drawn(model, *data)
        wanted, found = (float(log_density(p, data, {}, params)[0]) for p in (model, plain))
        assert drawn(handlers.substitute(plain, params), *data)[1] - {"sorted_normals"} == sites
    assert found == pytest.approx(wanted, rel=digits)


FIRST = "coin", "full shared", "softmax"  # of the default run; others compile
by_case = [pytest.param(c, id=c.name, marks=[] if c.name in FIRST else [pytest.mark.compiles]) for c in laws.CASES]


@pytest.mark.parametrize("case", by_case)
def test_text_is_the_model(case):
    gaps = "no" if case.given or case.name in ("coin", "full", "naive Bayes") else "entries"
    data = case.data(6, gaps)
    if case.name == "chain" and gaps != "no":
        with pytest.raises(ValueError, match=r"gaps of a MarkovChain are not written"):
            bg.program(case.model, data[0])
        gaps, data = "no", case.data(6, "no")
    text = bg.program(case.model, data[0] if gaps != "no" else None)
    body = text[text.index("def model") : text.index("\n\n\n", text.index("def model"))]
    assert len(body.splitlines()) <= 40
    same(case.model, read_back(text)["model"], data)


def test_every_exported_model_is_written_or_refused():
    written = {type(case.model).__name__ for case in laws.CASES} | {"Pooled", "UnknownClasses"}
    inner = {type(leaf).__name__ for case in laws.CASES for leaf in getattr(case.model, "leaves", {}).values()}
    assert (written | inner | REFUSED.keys() | LIKE | {"ClassConditional"}) >= set(bg.models.__all__)
    for name, (model, words) in REFUSED.items():
        with pytest.raises((ValueError, TypeError), match=words) as told:
            bg.program(model)
        assert name in str(told.value)
    for refused in (bg.AveragedClassifier(), bg.NaiveBayesClassifier()):
        with pytest.raises(ValueError, match=r"is no one program, but many|is not fitted"):
            bg.program(refused)
    with pytest.raises(ValueError, match="NaiveBayesClassifier has no members: leave out member="):
        bg.program(bg.NaiveBayesClassifier(), member=0)
    with pytest.raises(TypeError, match="of a model or of an estimator, got int"):
        bg.program(3)


@pytest.mark.compiles
@pytest.mark.parametrize("name", POOLED)
def test_pooled_leaves(name):
    leaf, rows = POOLED[name]
    rng, pooled = np.random.default_rng(1), Pooled(leaf, scale=0.7)
    x, t = rows(rng, 7), np.arange(7) % 3
    same(pooled, read_back(bg.program(pooled))["model"], (x,))
    model = NaiveBayes(THREE, {name: pooled, "other": NUMBERS})
    data = ({name: x, "other": rng.normal(size=(7, 2))}, t)
    same(model, read_back(bg.program(model))["model"], data)


PARTLY = {
    "naive Bayes": (
        UnknownClasses(NaiveBayes(THREE, {"coin": BetaBernoulli([1.0, 2.0], 2.0), "size": NUMBERS})),
        lambda rng, n: {"coin": rng.integers(0, 2, (n, 2)) * 1.0, "size": rng.normal(size=(n, 2))},
    ),
    "shared covariance": (
        UnknownClasses(GaussianDiscriminant(THREE, NormalInverseWishart([0.0, 1.0], 1.5, 5.0, np.eye(2)), shared=True)),
        lambda rng, n: rng.normal(size=(n, 2)),
    ),
    "isotropic": (
        UnknownClasses(
            GaussianDiscriminant(THREE, NormalInverseGamma([0.0, 1.0], 1.5, 3.0, 2.0), covariance="isotropic")
        ),
        lambda rng, n: rng.normal(size=(n, 2)),
    ),
    "wrong labels, or none": (
        UnknownClasses(
            GaussianDiscriminant(THREE, NormalInverseGamma([0.0, 1.0], 1.5, 3.0, 2.0), covariance="diagonal"),
            LabelNoise(0.1).confusion(["a", "b", "c"]),
        ),
        lambda rng, n: rng.normal(size=(n, 2)),
    ),
    "wrong labels": (
        UnknownClasses(NaiveBayes(THREE, {"size": NUMBERS}), LabelNoise(0.1).confusion(["a", "b", "c"])),
        lambda rng, n: {"size": rng.normal(size=(n, 2))},
    ),
}


@pytest.mark.compiles
@pytest.mark.parametrize("name", PARTLY)
def test_unknown_classes_summed_out_and_enumerated(name):
    model, rows = PARTLY[name]
    rng = np.random.default_rng(2)
    x, t = rows(rng, 9), rng.integers(0, 3, 9)
    first = next(iter(x.values())) if isinstance(x, dict) else x
    first[3, 0] = np.nan
    if name != "wrong labels":
        t[::2] = -1
    names = read_back(bg.program(model, x))
    with x64():
        params, _ = drawn(model.latents)
        statistics = model.statistics(x, t)
        wanted = float(log_density(statistics_program, (model, statistics), {}, params)[0])
        assert float(log_density(names["model"], (x, t), {}, params)[0]) == pytest.approx(wanted, rel=1e-10)
        summed = enum(config_enumerate(names["enumerated"]), first_available_dim=-3)
        assert float(log_density_of_sum(summed, (x, t), {}, params)[0]) == pytest.approx(wanted, rel=1e-10)


X = pd.DataFrame(
    {
        "age": [54.0, 61, 47, 70, np.nan, 33, 58, 66],
        "smokes": [True, False, True, True, False, False, True, False],
        "ward": list("abcaabbc"),
    }
)
Y = np.array(["ill", "well"] * 4)
ESTIMATORS = {
    "naive Bayes": (bg.NaiveBayesClassifier(), X),
    "discriminant": (bg.GaussianDiscriminantClassifier(inference="map"), X[["age"]].assign(dose=np.arange(8.0) ** 2)),
    "latent": (bg.LatentClassClassifier(classes=2, random_state=0), X),
    "logistic": (bg.LogisticClassifier(inference="map"), X[["smokes", "ward"]]),
    "line": (bg.LinearRegressor(), X[["smokes", "ward"]]),
}


@pytest.mark.compiles
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_before_and_after_a_fit(name):
    estimator, table = ESTIMATORS[name]
    y = np.arange(8.0) if name == "line" else Y
    rows = (table,) if name == "latent" else (table, y)
    before = bg.program(estimator, *rows)
    assert not hasattr(estimator, "model_")
    fitted = estimator.fit(*rows)
    assert bg.program(fitted) == before  # weak priors have the numbers that the rows gave them
    names, model = read_back(before), fitted.model_
    for column in table:
        assert column in before[before.index("# ") : before.index("def model")]
    if name in ("naive Bayes", "discriminant"):
        read = fitted.fitted_.read(table)
        same(model, names["model"], (read if name == "naive Bayes" else read["gaussian"], np.arange(8) % 2))
    elif name != "latent":
        read = fitted.fitted_.read(table)
        given = read * fitted.scale_ + fitted.centre_
        target = y if name == "line" else np.arange(8) % 2
        with x64():
            params, _ = drawn(model, read, target)
            wanted = float(log_density(model, (read, target), {}, params)[0])
            found = float(log_density(names["model"], (given, target), {}, params)[0])
        assert found == pytest.approx(wanted, rel=1e-10)


@pytest.mark.compiles
@pytest.mark.parametrize("name", ["coins", "naive Bayes, known classes", "linear"])
def test_nuts_of_the_text_agrees_with_the_exact_posterior(name):
    case = next(case for case in laws.CASES if case.name == name)
    data = case.data(30, "no")
    with x64():
        sampler = MCMC(
            NUTS(read_back(bg.program(case.model))["model"]), num_warmup=500, num_samples=2000, progress_bar=False
        )
        sampler.run(jax.random.PRNGKey(0), *data)
        draws = sampler.get_samples()
    exact = case.model.update(case.model.statistics(*data))
    for site, values in exact.sample_parameters(np.random.default_rng(0), (20_000,)).items():
        found, values = np.asarray(draws[site]), np.asarray(values)
        if np.ptp(values, 0).all():  # a number that is known has no draws
            size = np.maximum(effective_sample_size(found[None]), 1.0)
            assert (size > 200).all()
            error = np.sqrt(found.var(0) / size + values.var(0) / len(values))
            assert (np.abs(found.mean(0) - values.mean(0)) < 5 * error).all(), site


@pytest.mark.compiles
def test_names_that_no_variable_has():
    names = ['a "b"', "a b", "a_b", "1st", "class", "\n# x", "m²", "m2", "ﬁ", "fi", "Größe", "a, (b[", "{mean}", "a\\"]
    leaf = BetaBernoulli(np.linspace(1.0, 2.0, 12), 2.0)
    model = NaiveBayes(THREE, {name: replace(leaf, b=2.0 + k) for k, name in enumerate(names)})
    rng = np.random.default_rng(0)
    x = {name: rng.integers(0, 2, (4, 12)) * 1.0 for name in names}
    same(model, read_back(bg.program(model))["model"], (x, np.arange(4) % 3))


@pytest.mark.compiles
def test_brackets_of_long_lines_stay_what_they_are():
    """A comma behind what brackets hold would make a tuple of a quotient, or of the name of a leaf."""
    name = "a name that is wide " * 2
    model = NaiveBayes(THREE, {name: NormalInverseGamma(np.arange(12.0), np.arange(1.0, 13.0), 3.0, 2.0)})
    data = {name: np.random.default_rng(0).normal(size=(4, 12))}, np.arange(4) % 3
    data[0][name][1, 2] = np.nan
    same(model, read_back(bg.program(model, data[0]))["model"], data)


@pytest.mark.compiles
@pytest.mark.parametrize("covariance", ["diagonal", "isotropic"])
def test_a_posterior_is_a_prior_of_its_own_for_each_class(covariance):
    model = GaussianDiscriminant(THREE, NormalInverseGamma([0.0, 1.0], 1.5, 3.0, 2.0), covariance=covariance)
    x, t = np.random.default_rng(0).normal(size=(9, 2)), np.arange(9) % 3
    posterior = model.update(model.statistics(x, t))
    same(posterior, read_back(bg.program(posterior))["model"], (x, t))


@pytest.fixture(scope="module")
def averaged():
    """An average of numbers, categories and a column with a leaf of its own, and the rows of its fit."""
    rng = np.random.default_rng(5)
    y = rng.choice(["a", "b", "c"], 60)
    skew = rng.exponential(size=60) ** 2 + (y == "a")
    table = pd.DataFrame({"dose": skew, "age": rng.normal(size=60), "calls": rng.poisson(3.0 + 2 * (y == "b"))})
    table["ward"], table["smokes"] = rng.choice(["n", "s", "w"], 60), rng.random(60) < 0.4
    classifier = bg.AveragedClassifier(
        members=["gaussian", "category", "softmax"], features={"calls": GammaPoisson(2.0, 1.0)}, random_state=0
    )
    return classifier.fit(table, y), table, y


def _members(averaged):
    """The first row in the summary of each structure, and the members in this order."""
    average = averaged[0].average_
    order = [average.members[m] for m in np.argsort(-average.weights, kind="stable")]
    first = {member.family: place for place, member in reversed(list(enumerate(order)))}
    return order, first


def test_the_model_of_a_member_is_the_member(averaged):
    """Learned from the rows of the fit, it has the member's densities of others; its place is a row of `summary`."""
    classifier, table, y = averaged
    order, first = _members(averaged)
    summary, average = classifier.summary(), classifier.average_
    rows, new = (classifier.fitted_.read(part) for part in (table, table[::-3]))
    written = {"full", "shared", "diagonal", "shared diagonal", "independent", "leaves"}
    names = ["ward", "smokes"]
    for family, place in first.items():
        if not set(family.split(" x ")) <= written:
            with pytest.raises(ValueError, match="is no product of leaves, as a plain program is: take another"):
                bg.program(classifier, member=place)
            continue
        assert summary["weight"][place] == average.weights[average.members.index(order[place])]
        model, bends = classifier.fitted_.model_of(place)
        assert set(model.leaves) >= {"calls"}

        def by_leaf(read, bends=bends, model=model):
            numbers = read["numbers"] if bends is None else bends.forward(read["numbers"])
            each = {"numbers": numbers, "calls": read["leaves"][:, 0]}
            each |= dict(zip(names, read["categories"].T.astype(float), strict=True))
            return {name: each[name] for name in model.leaves}

        codes = np.searchsorted(classifier.classes_, y)
        posterior = model.update(model.statistics(by_leaf(rows), codes))
        used = np.array([member == order[place] for member in average.members])
        wanted = average.log_density(new["numbers"], new["categories"], used, new["leaves"])[0]
        found = posterior.log_predictive(by_leaf(new)) - average.log_class_prior
        np.testing.assert_allclose(found - wanted, (found - wanted)[:, :1] + 0 * found, atol=1e-9)


@pytest.mark.compiles
def test_members_of_an_average_with_the_slope_of_their_bends(averaged):
    classifier, first = averaged[0], _members(averaged)[1]
    read = classifier.fitted_.read(averaged[1][:7])
    for family in ("full x independent", "shared diagonal"):
        model, bends = classifier.fitted_.model_of(first[family])
        x = {"numbers": read["numbers"].copy(), "calls": read["leaves"][:, 0].copy()}
        x |= {name: codes.astype(float) for name, codes in zip(["ward", "smokes"], read["categories"].T, strict=True)}
        x = {name: x[name] for name in model.leaves}
        x["numbers"][2, 0] = np.nan

        def bent(x, t, model=model, bends=bends):
            model(x | {"numbers": bends.forward(x["numbers"])}, t)
            numpyro.factor("slope", bends.log_slope(x["numbers"]).sum())

        same(bent, read_back(bg.program(classifier, member=first[family]))["model"], (x, np.arange(7) % 3))


def test_columns_that_are_constant_are_left_out():
    table = pd.DataFrame({"dose": np.arange(8.0), "one": np.ones(8)})
    text = bg.program(bg.NaiveBayesClassifier(), table, Y)
    assert "left out: {'one': 1.0}" in text or "left out: ['one']" in text
    assert "Columns of x[\"gaussian\"]: ['dose']" in text
    with pytest.raises(ValueError, match="no column"):
        bg.program(bg.GaussianDiscriminantClassifier(), table[["one"]], Y)


def test_a_fitted_chain_is_written_unless_a_row_has_a_gap():
    """Its statistics are counts of pairs, which do not say how many symbols there were."""
    table = pd.DataFrame({"word": ["aba", "bb", "ab", "a", "bba", "bab", "aa", "b"]})
    classifier = bg.NaiveBayesClassifier(features={"word": MarkovChain("ab", order=1)}).fit(table, Y)
    assert "contexts(" in bg.program(classifier)
    table["word"] = [["a", None, "b"], *table["word"].map(list)[1:]]
    with pytest.raises(ValueError, match="gaps of a MarkovChain are not written"):
        bg.program(classifier, table, Y)


def test_the_notebook_view_of_a_summary_folds_the_program():
    fitted = bg.NaiveBayesClassifier().fit(X, Y)
    shown = fitted.summary()._repr_html_()
    assert f"<pre>{html.escape(bg.program(fitted))}</pre></details>" in shown
    assert shown in fitted._repr_mimebundle_()["text/html"]
    chained = bg.NaiveBayesClassifier(features={"word": MarkovChain("ab", order=1)}, inference="map")
    chained.fit(pd.DataFrame({"word": [["a", None, "b"], *map(list, ["ab", "ba", "aab", "b", "ab", "bb", "a"])]}), Y)
    assert "<details>" not in chained.summary()._repr_html_(), "there is none to write"


@pytest.mark.compiles
def test_a_saved_text_runs_by_itself(tmp_path):
    program = bg.program(BetaBernoulli(2.0, 2.0))
    program.save(tmp_path / "coin.py")
    with pytest.raises(ValueError, match="\\.py"):
        program.save(tmp_path / "coin.txt")
    ran = subprocess.run([sys.executable, tmp_path / "coin.py"], capture_output=True, text=True, check=True)
    assert "probability" in ran.stdout


@pytest.mark.compiles
def test_the_command_prints_the_text_or_writes_it(tmp_path):
    fitted = bg.NaiveBayesClassifier().fit(X, Y)
    fitted.save(tmp_path / "model.safetensors")
    code, out, _ = run(tmp_path / "model.safetensors", command="program")
    assert code == 0 and out == " ".join(bg.program(fitted).split())
    code, out, _ = run(tmp_path / "model.safetensors", "--output", tmp_path / "new" / "program.py", command="program")
    assert code == 0 and (tmp_path / "new" / "program.py").read_text() == bg.program(fitted)
    code, _, err = run(tmp_path / "model.safetensors", "--output", tmp_path / "program.txt", command="program")
    assert code and ".py" in err
    code, _, err = run(tmp_path / "model.safetensors", "--member", 0, command="program")
    assert code and "NaiveBayesClassifier has no members: leave out --member" in err
