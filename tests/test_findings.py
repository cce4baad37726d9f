"""What may not be as meant is told by every way to learn, in the same words, once for each fit."""

import pickle
import re
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg
from bayesgen.core.errors import Argument, InputWarning
from bayesgen.models.moments import grouped_moments
from bayesgen.numerics.sums import Grouping
from bayesgen.tables import wild
from bayesgen.tables.columns import edges_of

NB = bg.NaiveBayesClassifier
KINDS = {
    "wild": "times as far",
    "bits": "numbers 0 and 1",
    "alike": "'Yes'.*spell",
    "repeats": "repeat another",
    "copy": "as if copied",
    "constant": "are constant",
}


def table():
    """A table with a slip, a column of 0 and 1, labels spelled alike, repeats, a copy of the class and a constant."""
    rng, n = np.random.default_rng(0), 400
    y = np.where(rng.random(n) < 0.5, "Yes", "no").astype(object)
    y[:3] = "yes"
    x = {"a": rng.normal(20, 1, n), "b": rng.normal(5, 1, n), "bit": rng.integers(0, 2, n).astype(float)}
    X = pd.DataFrame(x | {"copy": pd.Series(y).map({"Yes": 1.0, "no": 7.0, "yes": 3.0}), "const": 3.0})
    X.iloc[17, 1] = 25000.0
    return pd.concat([X, X[:40]], ignore_index=True), np.concatenate([y, y[:40]])


X, Y = table()


def summed(X, y):
    rows = NB().row_schema([(X, y)])
    return NB().fit_statistics(rows.schema, rows.sum((X, y)), rows.classes)


WAYS = {
    "fit": lambda: NB().fit(X, Y),
    "partial_fit": lambda: NB().partial_fit(X, Y, classes=["Yes", "no", "yes"]),
    "fit_batches": lambda: NB().fit_batches([(X[:200], Y[:200]), (X[200:], Y[200:])]),
    "fit_statistics": lambda: summed(X, Y),
    "discriminant": lambda: bg.GaussianDiscriminantClassifier().fit(X.drop(columns="copy"), Y),
    "average": lambda: bg.AveragedClassifier(members=["gaussian"]).fit(X, Y),
    "logistic": lambda: bg.LogisticClassifier(inference="map").fit(X, Y),
    "latent": lambda: bg.LatentClassClassifier().fit(X, Y),
    "no labels": lambda: bg.LatentClassClassifier(classes=2, starts=2).fit(X),
}
CANNOT = {
    ("discriminant", "copy"): "its scatter is 0, which the model refuses, so the column is not in the table",
    ("discriminant", "bits"): "a discriminant takes all columns as Gaussian, and has no other leaf to advise",
    ("logistic", "bits"): "a score takes a number of 0 and 1 as it takes a category",
    ("no labels", "alike"): "there are no labels",
    ("no labels", "copy"): "there are no labels",
    ("fit_batches", "repeats"): "sums do not tell which rows agree",
    ("fit_statistics", "repeats"): "sums do not tell which rows agree",
}


def told(call):
    """Return a value, and the warnings while it was made."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        value = call()
    return value, [w.message for w in seen if isinstance(w.message, InputWarning)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_learn_tells_every_kind_once(way):
    """47 of 54 cells; the others are named with their reason."""
    found = [str(message) for message in told(WAYS[way])[1]]
    for kind, words in KINDS.items():
        count = sum(bool(re.search(words, text)) for text in found)
        assert count == ((way, kind) not in CANNOT), (kind, found)


def test_a_fit_tells_a_finding_once_and_another_fit_tells_it_again():
    classifier = NB()
    _, first = told(lambda: classifier.partial_fit(X[:220], Y[:220], classes=["Yes", "no", "yes"]))
    assert {message.kind for message in first} >= {"wild", "bits", "alike", "copy", "constant"}
    _, later = told(lambda: classifier.partial_fit(X[220:400], Y[220:400]))
    assert later == []
    other, _ = told(lambda: NB().partial_fit(X[400:], Y[400:], classes=["Yes", "no", "yes"]))
    assert told(lambda: classifier + other)[1] == []
    _, again = told(lambda: classifier.fit(X, Y))
    assert {message.kind for message in again} >= {"wild", "bits", "alike", "copy", "constant", "repeats"}


def test_threads_that_fit_at_once_do_not_silence_each_other():
    """What was told is of the fitted object: of four at once each tells all of it, at its first piece alone."""
    start, seen = threading.Barrier(4), []

    def learn(_):
        classifier = NB()
        start.wait()
        for rows in (slice(220), slice(220, 400)):
            classifier.partial_fit(X[rows], Y[rows], classes=["Yes", "no", "yes"])
        return threading.get_ident()

    with warnings.catch_warnings(), ThreadPoolExecutor(4) as threads:
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: seen.append((threading.get_ident(), message.kind))
        every = set(threads.map(learn, range(4)))
    kinds = {kind for _, kind in seen}
    assert kinds >= {"wild", "bits", "alike", "copy", "constant"} and len(every) == 4
    assert sorted(seen) == sorted((thread, kind) for thread in every for kind in kinds)


def test_a_piece_that_brings_something_new_is_told():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 2)), np.resize(["u", "v"], 400)
    classifier, none = told(lambda: NB().partial_fit(x[:200], y[:200], classes=["u", "v"]))
    assert none == []
    x[300, 1] = -4e4
    (message,) = told(lambda: classifier.partial_fit(x[200:], y[200:]))[1]
    assert (message.kind, message.column, message.row, message.value) == ("wild", "x1", 100, -4e4)


def test_facts_and_cures_stand_for_themselves():
    for message in told(lambda: NB().fit(X, Y))[1]:
        text = "".join(map(str, message.parts))
        assert text == str(message) and message.kind
        if message.kind == "bits":
            (cure,) = (part for part in message.parts if isinstance(part, Argument))
            assert (cure.name, cure.value, message.value) == ("features", "bernoulli", ["bit"])


# -- wild entries: rows, what was seen of pieces, and moments alone --------------------------------------------------


def moments(x, codes, classes=2):
    return grouped_moments(x, Grouping(codes, classes, None, (classes,)))


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("rows", [300, 30_000])
def test_sums_of_the_fit_hide_no_wild_entry(rows, order):
    """Sums and edges that are there lead to the same entries as a look at all rows: a slip, many, one by one, none."""
    rng, found = np.random.default_rng(1), 0
    for trial in range(12):
        x, codes = rng.standard_t(3, (rows, 8)) + rng.choice([0, 1e4], 8), rng.integers(0, 2, rows)
        for j, count in enumerate((0, 1, 2, 3, rows // 150, rows // 110, rows // 40, 1)):
            where = rng.choice(rows, count, replace=False)
            x[where, j] += np.abs(x[:, j]).max() * 10.0 ** rng.uniform(1, 6)
        if trial % 3 == 1:
            x[rng.random(x.shape) < 0.1] = np.nan
        if trial % 3 == 2:
            x = x[np.argsort(x[:, 0])]
        alone, x = wild.find(x, codes), np.asarray(x, order=order)
        beside = wild.find(x, codes, moments(x, codes), edges_of(x))
        for one, other in zip(alone, beside, strict=True):
            np.testing.assert_array_equal(one, other)
        found += len(alone.row)
    assert found > 50


def test_moments_alone_show_a_slip_and_no_class_of_its_own_spread():
    rng = np.random.default_rng(3)
    for count in (1, 2, 3):
        x, codes = rng.normal(5, 1, (400, 2)), np.arange(400) % 2
        x[2 * np.arange(count), 1] = 25000.0
        ((j, k, value, times),) = wild.by_moments(moments(x, codes))
        assert (j, k) == (1, 0) and value == pytest.approx(25000, rel=0.02) and times == pytest.approx(25000, rel=0.2)
    alarms = 0
    for _ in range(400):  # a class that spreads a thousand times as far as the other, about the same middle
        x, codes = rng.normal(size=(100, 1)), np.arange(100) % 2
        x[codes == 1] *= 1000
        alarms += len(wild.by_moments(moments(x, codes)))
    # n²d²/S is then χ² of one degree: within a twentieth of 1, 2 or 3 with probability .024 + .021 + .016
    assert abs(alarms - 400 * 0.061) < 5 * (400 * 0.061 * 0.939) ** 0.5


def test_what_was_seen_is_kept_nowhere():
    """The least and greatest entry are values of people: no fit has them, nor what is pickled of it."""
    x = np.random.default_rng(0).normal(size=(20_000, 2))
    y = np.arange(20_000) % 2
    fits = [NB().fit(x, y), NB().fit_batches([(x[:9000], y[:9000]), (x[9000:], y[9000:])])]
    fits += [NB().partial_fit(x, y, classes=[0, 1]), bg.LatentClassClassifier().fit(x, y)]
    fits += [bg.GaussianDiscriminantClassifier().fit(pd.DataFrame(x, columns=["a", "b"]), y)]
    for fit in fits:
        kept = pickle.dumps(fit)
        assert not [value for value in (*x.min(0), *x.max(0)) if value.tobytes() in kept]
        (sums,) = fit.statistics_.leaves.values()
        assert sums.mean.tobytes() in kept


@pytest.mark.parametrize("way", ["fit", "fit_statistics"])
def test_copies_of_every_kind_are_told_by_rows_and_by_sums(way):
    rng = np.random.default_rng(4)
    y = rng.choice(["u", "v"], 60)
    table = pd.DataFrame(
        {"number": np.where(y == "u", 2.5, -1.0), "bool": y == "u", "word": np.where(y == "u", "p", "q")}
    )
    near = table.copy()
    near.loc[5] = [0.5, y[5] != "u", "r"]
    gap = table.astype({"number": float, "bool": "boolean"})
    gap.loc[5] = [np.nan, pd.NA, None]
    for X, expected in ((table, [*table]), (near, []), (gap, [])):
        seen = told(lambda X=X: NB().fit(X, y) if way == "fit" else summed(X, y))[1]
        assert [message.column for message in seen if message.kind == "copy"] == expected, X.head(7)


# -- one file of words, one reading of rows --------------------------------------------------------------------------


def test_the_words_stand_in_one_file():
    package = Path(bg.__file__).parent
    assert not [
        path
        for path in package.rglob("*.py")
        if re.search(r"\bdef _?warn_of_", path.read_text("utf-8"))
        and path.name not in ("missing.py", "probabilities.py", "likelihoods.py")
    ]  # of predictions


def test_no_room_below_the_commands_writes_an_option_of_theirs():
    package = Path(bg.__file__).parent
    option = re.compile(r"""[`"' ]--[a-z]""")
    below = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in ("cli", "__main__.py")]
    assert len(below) > 150
    assert not [path.name for path in below if option.search(path.read_text("utf-8"))]


def test_estimators_read_labels_weights_and_groups_by_one_record():
    folder = Path(bg.__file__).parent / "estimators"
    reading = re.compile(r"from bayesgen\.tables\.(labels|shares) import")
    assert not [path.name for path in folder.glob("*.py") if reading.search(path.read_text("utf-8"))]


def test_a_fit_of_naive_bayes_makes_few_calls():
    """Of functions of the package, comprehensions aside: 154 before labels, weights and groups were read at once."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.calls"], capture_output=True, text=True, check=True)
    assert int(re.findall(r"fit: (\d+) calls", done.stdout)[0]) <= 120
