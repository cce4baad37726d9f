"""Saving: a loaded estimator equals the saved one, to the bit; any other file is refused."""

import copy
import functools
import json
import pickle
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import fuzz_files
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from refusals import refuses
from safetensors import safe_open
from safetensors.numpy import load_file, save, save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bayesgen as bg
from bayesgen.files import container, storage
from bayesgen.models import (
    BetaBernoulli,
    BetaBinomial,
    DirichletCategorical,
    GammaPoisson,
    NormalInverseGamma,
    NormalKnownVariance,
    SeparationPrior,
)
from bayesgen.posterior import ParameterDraws

NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
LINE, LOGIT, PROBIT = bg.LinearRegressor, bg.LogisticClassifier, bg.ProbitClassifier


def table(n=60):
    """A table of every kind of column, and its classes."""
    rng = np.random.default_rng(0)
    y = np.repeat(["ash", "birch", "oak"], n // 3)
    k = np.repeat([0.0, 1.0, 2.0], n // 3)
    frame = pd.DataFrame(
        {
            "height / m": rng.normal(10 + 2 * k, 2),
            "rings": rng.poisson(5 + 3 * k).astype(float),
            "sick": rng.random(n) < 0.2 + 0.3 * k,
            "leaf": pd.Categorical(rng.choice(["oval", "round"], n), categories=["lobed", "oval", "round"]),
            "größe": rng.choice([1.0, 2.5, 7.0], n),
            "heads": rng.binomial(9, 0.3, n),
            "tosses": 9,
            "cheap": rng.poisson(2.0, n),
            "now": rng.poisson(1.0 + k),
        }
    )
    frame.loc[[3, 40], "height / m"] = np.nan
    return frame, y


FEATURES = {
    "rings": GammaPoisson(2.0, 0.3),
    "größe": "categorical",
    ("heads", "tosses"): BetaBinomial(1, 1),
    ("cheap", "now"): "multinomial",
    "sick": BetaBernoulli([2.0], 1.0),
}
RNG = np.random.default_rng(1)
X = RNG.normal(size=(60, 3)) @ RNG.normal(size=(3, 3)) + 5.0
T = np.repeat([3, 1, 7], 20)
SHIFTED = X + T[:, None]
BINARY = T > 1

CASES = {
    **{f"naive Bayes, {how}": (NB(FEATURES, inference=how), *table()) for how in ("exact", "map", "ml")},
    "naive Bayes, a chosen exponent": (NB(exponent="loo"), SHIFTED, T),
    "naive Bayes, given priors": (NB(priors=[0.2, 0.3, 0.5], unseen="missing", random_state=3), *table()),
    "naive Bayes, objects": (
        NB({0: NormalKnownVariance(0.0, 2.0, 1.0)}),
        SHIFTED.astype(object),
        T.astype(str).astype(object),
    ),
    **{
        f"discriminant, {covariance}, {'shared' if shared else 'own'}, {how}": (
            GD(covariance, shared, inference=how),
            SHIFTED,
            T,
        )
        for covariance in ("full", "diagonal", "isotropic")
        for shared in (False, True)
        for how in ("exact", "map", "ml")
    },
    "discriminant, gaps": (
        GD(inference="map"),
        np.where(np.random.default_rng(0).random((60, 3)) < 0.1, np.nan, SHIFTED),
        T,
    ),
    **{f"line, {how}": (LINE(inference=how), X, X @ [1.0, 2.0, 3.0] + T) for how in ("exact", "map", "ml")},
    "line, robust": (LINE(noise="laplace", inference="map"), X, X @ [1.0, 2.0, 3.0] + T),
    "logistic": (LOGIT(inference="map"), SHIFTED, T),
    "logistic, one class pinned": (
        LOGIT(inference="map", symmetric=False),
        pd.DataFrame(SHIFTED).rename(columns=str),
        T,
    ),
    "probit": (PROBIT(inference="map"), X + BINARY[:, None], BINARY),
    "ordered": (bg.OrderedClassifier(inference="map"), SHIFTED, T),
}


def answers(estimator, X):
    names = ("predict", "predict_proba", "predict_log_proba", "score_samples")
    return {name: getattr(estimator, name)(X) for name in names if hasattr(estimator, name)}


def same(a, b):
    """Compare estimators, and all their state, to the bit."""
    assert type(a) is type(b) and vars(a).keys() == vars(b).keys()
    for name, value in vars(a).items():
        other = vars(b)[name]
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype
            np.testing.assert_array_equal(value, other)
        else:
            assert value == other, name


def other(fitted):
    """Return a copy that differs in one number."""
    result = copy.copy(fitted)
    result.n_features_in_ = -1
    return result


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:columns .* are constant:UserWarning")
def test_what_is_loaded_is_what_was_saved(case, tmp_path):
    estimator, rows, y = CASES[case]
    fitted = clone(estimator).fit(rows, y)
    fitted.save(tmp_path / "model.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]
    again = bg.load(str(tmp_path / "model.safetensors"))
    same(fitted, again)
    assert storage.fingerprint(fitted) == storage.fingerprint(again) != storage.fingerprint(other(fitted))
    want, got = answers(fitted, rows), answers(again, rows)
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)
    fitted.random_state = again.random_state = 0
    xr.testing.assert_equal(again.to_arviz()["posterior"].to_dataset(), fitted.to_arviz()["posterior"].to_dataset())
    same(clone(again), clone(fitted))


SAMPLER = bg.NUTS(num_samples=20, num_warmup=20, num_chains=2)


def sampled(make, y):
    return make(inference=SAMPLER, random_state=0).fit(X[:, 1:], y)


def scattered(make, y):
    """As NUTS leaves an estimator, without the wait: draws near the mode."""
    fitted = make(inference="map", random_state=0).fit(X[:, 1:], y)
    rng = np.random.default_rng(0)
    sites = {site: v + rng.uniform(0, 1e-3, (2, 20, *v.shape)) for site, v in fitted.posterior_.params.items()}
    stats = {"lp": rng.normal(size=(2, 20)), "diverging": np.zeros((2, 20), bool), "n_steps": np.full((2, 20), 7)}
    fitted.posterior_ = ParameterDraws(fitted.model_, sites, stats)
    return fitted.set_params(inference=SAMPLER)


@pytest.mark.parametrize("make", [NB, GD, LINE, LOGIT, PROBIT])
@pytest.mark.parametrize("how", [scattered, pytest.param(sampled, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore::bayesgen.inference.nuts.SamplerWarning")
def test_draws_are_kept(make, how, tmp_path):
    fitted = how(make, X[:, 0] if make is LINE else BINARY)
    fitted.save(tmp_path / "model.safetensors")
    again = bg.load(tmp_path / "model.safetensors")
    same(fitted, again)
    assert storage.fingerprint(fitted) == storage.fingerprint(again)
    assert again.inference == SAMPLER and again.posterior_.sample_stats["lp"].shape == (2, 20)
    for name, value in answers(fitted, X[:, 1:]).items():
        np.testing.assert_array_equal(answers(again, X[:, 1:])[name], value)


@pytest.mark.parametrize("asked", [False, True])
def test_a_sampler_of_a_file_from_before_may_have_spread_rows(asked, tmp_path):
    fitted = scattered(LOGIT, BINARY)
    fitted.save(tmp_path / "model.safetensors")

    def old(specification):
        specification["parameters"]["inference"]["fields"]["shard_rows"] = asked

    forge(tmp_path / "model.safetensors", old)
    same(bg.load(tmp_path / "model.safetensors"), fitted)


def test_a_stream_goes_on_after_loading(tmp_path):
    rows, y = table()
    half = NB(FEATURES).partial_fit(rows[::2], y[::2], classes=["ash", "birch", "oak"])
    half.save(tmp_path / "model.safetensors")
    whole = bg.load(tmp_path / "model.safetensors").partial_fit(rows[1::2], y[1::2])
    assert whole.model_ == half.partial_fit(rows[1::2], y[1::2]).model_


def test_the_file_is_open(tmp_path):
    """Any reader of safetensors finds the numbers under telling names."""
    fitted = GD(shared=True).fit(SHIFTED, T)
    fitted.save(tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", "np") as file:
        words, mean = file.metadata(), file.get_tensor("posterior_.model.gaussian.mean")
    told = json.loads(words["bayesgen"])
    assert (told["format"], told["version"], told["library"]) == ("estimator", 5, bg.__version__)
    assert told["estimator"] == "GaussianDiscriminantClassifier"
    np.testing.assert_array_equal(mean, fitted.posterior_.model.gaussian.mean)
    save_file(load_file(tmp_path / "model.safetensors"), tmp_path / "again.safetensors", words)
    same(bg.load(tmp_path / "again.safetensors"), fitted)
    fitted.save(tmp_path / "again.safetensors")  # a file of equal bytes
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()


def test_many_columns(tmp_path):
    wide = RNG.poisson(0.1, (20, 5000))
    fitted = NB("multinomial").fit(wide, np.arange(20) % 2)
    fitted.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        bg.load(tmp_path / "model.safetensors").predict_proba(wide), fitted.predict_proba(wide)
    )


# -- a leaf of one's own


@dataclass(frozen=True, eq=False)
class Louder(NormalInverseGamma):
    """A leaf of a user."""


def test_an_own_leaf_is_handed_over_at_load(tmp_path):
    fitted = NB({0: Louder(0.0, 1.0, 1.0, 1.0)}).fit(X, BINARY)
    fitted.save(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"model.safetensors: holds the class Louder.*leaves=\[Louder\]"):
        bg.load(tmp_path / "model.safetensors")
    again = bg.load(tmp_path / "model.safetensors", leaves=[Louder])
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert storage.fingerprint(again) == storage.fingerprint(fitted)


# -- refusals


def fitted_shared():
    return GD(shared=True).fit(SHIFTED, T)


@functools.cache
def content():
    """The bytes of a file, which takes longer to write than to copy."""
    with tempfile.TemporaryDirectory() as folder:
        fitted_shared().save(path := Path(folder) / "model.safetensors")
        return path.read_bytes()


@pytest.fixture
def saved(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(content())
    return tmp_path / "model.safetensors"


def test_every_damage_is_told(saved):
    """None of 200 flipped bytes and ends cut off comes through; `python tests/fuzz_files.py` tries many more."""
    good, rng = saved.read_bytes(), np.random.default_rng(0)
    for content in (fuzz_files.damaged(good, rng) for _ in range(200)):
        saved.write_bytes(content)
        refuses(lambda: bg.load(saved), f"{re.escape(str(saved))}: (the file is damaged|not a file that)")


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "not a file that"), (b"PK\x03\x04", "not a file that"), (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
     (b"\x10" + bytes(7) + b"{" + bytes(4000), "not a file that"), (b"\x80\x04K\x01.", "not a file that"),
     (b"x,t\n1,a\n", "not a file that"), (save({"x": np.ones(3)}), "not a file that bayesgen has saved")],
)  # fmt: skip
def test_a_foreign_file(content, words, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(content)
    refuses(lambda: bg.load(tmp_path / "model.safetensors"), rf"model\.safetensors: .*{words}")


def test_an_hdf5_file_is_of_an_older_version():
    with pytest.raises(ValueError, match=r"0\.2\.0\.nc: an HDF5 file, as bayesgen 0\.2\.0 .*read it with the"):
        bg.load(Path(__file__).parent / "saved" / "0.2.0.nc")


def forge(path, change=lambda specification: None, arrays=None):
    """Rewrite a file with another specification, and a checksum that fits."""
    specification, found = container.unpack(path.read_bytes())
    change(specification)
    path.write_bytes(container.pack(specification, found | (arrays or {})))


def put(*keys, value):
    def change(specification):
        inner = specification
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (GD(random_state=np.random.RandomState(0)), "random_state: .*must be an int or None"),
        (GD(inference=lambda model, data, seed: bg.Exact()(model, data)), "inference: .* cannot be saved"),
    ],
)
def test_what_cannot_be_saved_leaves_the_file_as_it_is(saved, estimator, words):
    before = saved.read_bytes()
    refuses(lambda: estimator.fit(SHIFTED, T).save(saved), words, TypeError)
    assert saved.read_bytes() == before and len(list(saved.parent.iterdir())) == 1


def test_not_fitted_or_not_ours_or_not_there(tmp_path):
    refuses(lambda: bg.load(tmp_path / "none.safetensors"), "none.safetensors", FileNotFoundError)
    with pytest.raises(NotFittedError):
        GD().save(tmp_path / "model.safetensors")

    class Mine(GD):
        """A user's own estimator."""

    with pytest.raises(TypeError, match="Mine is not an estimator of bayesgen"):
        Mine().fit(SHIFTED, T).save(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.compiles
def test_priors_are_kept(tmp_path):
    for prior in (SeparationPrior(), NormalInverseGamma(np.zeros(3), 0.1, 1.0, 1.0)):
        fitted = GD("diagonal", prior=prior, inference="map").fit(SHIFTED, T)
        fitted.save(tmp_path / "model.safetensors")
        same(bg.load(tmp_path / "model.safetensors"), fitted)
    leaf = DirichletCategorical(1.0, ["a", 2, None, 1.5, True and "x"])
    fitted = NB({0: leaf}).fit(np.array([["a"], ["x"]], dtype=object), [0, 1])
    fitted.save(tmp_path / "model.safetensors")
    same(bg.load(tmp_path / "model.safetensors"), fitted)


def test_a_pickle_of_another_version_is_refused():
    """It would hold records whose fields have other names; pickles of this version come back, by copy too."""
    fitted = NB().fit(X, BINARY)
    same(pickle.loads(pickle.dumps(fitted)), fitted)
    same(copy.deepcopy(fitted), fitted)
    state = fitted.__getstate__()
    del state["_bayesgen_format"]
    refuses(lambda: NB().__setstate__(state), r"pickle of a NaiveBayesClassifier has format 1, .* bayesgen 0\.1")
