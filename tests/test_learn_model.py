"""What the page learns of a table is what Python learns: probabilities, rows left out, sums, and the program."""

import base64
import contextlib
import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from py_mini_racer import JSEvalException, MiniRacer
from scipy.stats import ks_2samp
from scorers import records

import bayesgen as bg
from bayesgen.core.statistics import SumStatistics
from bayesgen.export.plain import plain
from bayesgen.export.script import source
from bayesgen.export.wording import packaged
from bayesgen.models.class_program import ClassStatistics
from bayesgen.models.moments import Moments

STRUCTURES = {
    "naive bayes": lambda counts: bg.NaiveBayesClassifier(dict.fromkeys(counts, "poisson") or "auto"),
    "full": lambda counts: bg.GaussianDiscriminantClassifier(),
    "shared": lambda counts: bg.GaussianDiscriminantClassifier(shared=True),
}
VECTORS = ("full", "shared")


class Learner:
    """What JavaScript learned of a table, asked by expressions."""

    def __init__(self, engine, structure, columns, target):
        self.engine = engine
        engine.eval(f"{packaged('numbers.js')}\n{packaged('learn_model.js')}")
        given = json.dumps(json.dumps({"columns": columns, "target": target}))
        engine.eval(
            f"const {{columns, target}} = JSON.parse({given}); target.codes = Int32Array.from(target.codes);"
            "for (const one of columns) {"
            "if (one.values) one.values = Float64Array.from(one.values, (v) => v ?? NaN);"
            "if (one.codes) one.codes = Int32Array.from(one.codes); }"
            f"const learned = learn({json.dumps(structure)}, columns, target);"
        )

    def ask(self, expression) -> Any:
        """Return the value of an expression, with NaN, infinite numbers and typed arrays."""
        far = "typeof v === 'number' && !Number.isFinite(v) ? `#${v}`"
        plainly = f"(k, v) => {far} : ArrayBuffer.isView(v) ? [...v] : v"
        return _number(json.loads(self.engine.eval(f"JSON.stringify({expression}, {plainly})")))


def _number(value) -> Any:
    if isinstance(value, dict):
        return {key: _number(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_number(one) for one in value]
    return {"#NaN": np.nan, "#Infinity": np.inf}.get(value, value) if isinstance(value, str) else value


def column(name, block, entries, by):
    """Return a column as `columnOf` makes it, of the codes or numbers that Python reads, and how they were written."""
    kind = {"gaussian": "number", "poisson": "count", "bernoulli": "bool", "categorical": "category"}[block.leaf]
    found = {"name": name, "kind": kind, "values": None, "codes": None, "by": by}
    if kind in ("number", "count"):
        return found | {"values": [None if v != v else float(v) for v in entries], "categories": []}
    codes = [-1 if v != v else int(v) for v in entries]
    return found | {"codes": codes, "categories": list(block.categories or (False, True))}


@contextlib.contextmanager
def learner(classifier, structure, X, y):
    """Give what JavaScript learns of the table of a fitted classifier."""
    schema = classifier.schema_
    rows = schema.read(classifier.table(X))
    entries = {c: rows[b.name].reshape(len(X), -1)[:, b.columns.index(c)] for c, b in schema.block_of.items()}
    columns = [column(name, schema.block_of[name], entries[name], schema.texts_of(name)) for name in X]
    classes = classifier.classes_.tolist()
    codes = [classes.index(label) for label in y]
    target = {"name": "t", "classes": classes, "labels": classes, "codes": codes}
    with MiniRacer() as engine:
        yield Learner(engine, structure, columns, target)


def fitted(structure, X, y, counts=()) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return STRUCTURES[structure](counts).fit(X, pd.Series(y, name="t"))


def hard(rng, n, classes=3) -> Any:
    """Return a table with what a first version breaks on, its classes, and its columns of counts."""
    y = rng.integers(0, classes, n)
    y[:classes] = range(classes)
    X = pd.DataFrame({
        "far": 1e9 + rng.normal(y, 1, n).round(rng.integers(0, 9)),
        "__proto__": rng.normal(y, 1, n),
        "</script>": rng.choice(["it's", 'a "b"', "é<!--", "Z", "a"], n),
        "bits": rng.integers(0, 2, n), "yes": rng.random(n) < 0.3, "ties": rng.integers(0, 3, n) * 0.5,
        "events": rng.poisson(3 + y * 40), "toString": rng.choice(["u", "v"], n),
        "again": rng.choice(["u", "v"], n), "outlying": rng.normal(0, 1, n), "gone": rng.normal(0, 1, n),
        "tiny": rng.normal(y, 1, n) * 1e-12,
    })  # fmt: skip
    X.loc[n // 2, "outlying"] = 1e6
    X.loc[rng.random(n) < 0.1 * (y + 1), "__proto__"] = np.nan
    X.loc[y == 0, "gone"] = np.nan
    X.loc[rng.random(n) < 0.1, "far"] = np.nan
    X["</script>"] = X["</script>"].astype(object).where(rng.random(n) > 0.2, None)
    X["yes"] = X["yes"].astype(object).where(rng.random(n) > 0.2, None)
    X["events"] = X["events"].astype(float).where(rng.random(n) > 0.1)
    X.loc[y == 1, "toString"] = "v"
    keep = (y != classes - 1) | (np.arange(n) < classes)  # of the last class one row
    return X[keep].reset_index(drop=True), np.array([f"k{k}" for k in range(classes)])[y][keep], ("events",)


def tables(rng, structure, n) -> Any:
    X, y, counts = hard(rng, n)
    if structure in VECTORS:
        X = X[["far", "__proto__", "bits", "ties", "outlying", "tiny", "events"]].astype(float)
        X = X.fillna({c: X[c].median() for c in X})
        counts = ()
    X = X[[name for name in X if X[name].nunique() > 1]]  # the page leaves constant columns out
    return X, y, counts


def assert_alike(structure, X, y, counts):
    """Hold probabilities, rows left out and their loss against Python's."""
    classifier = fitted(structure, X, y, counts)
    out = classifier.leave_one_out(X, y)
    with learner(classifier, structure, X, y) as made:
        mine = np.array(made.ask("learned.leftOut.probability")).reshape(out.probability.shape)
        apart = np.abs(mine - out.probability).max()
        print(f"{structure} {X.shape}: rows left out {apart:.1e} apart")
        assert apart < 1e-9
        assert made.ask("learned.leftOut.loss") == pytest.approx(-out.conditional.mean(), rel=1e-9)


@pytest.mark.parametrize("n", [4, 40, 65, 300])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_probability_is_that_of_python(structure, n):
    assert_alike(structure, *tables(np.random.default_rng(n), structure, n))


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_probability_is_that_of_python_in_many_tables_and_over_pieces_of_rows(structure):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        assert_alike(structure, *tables(rng, structure, int(rng.integers(4, 300))))
    assert_alike(structure, *tables(np.random.default_rng(0), structure, 13_000))  # more rows than Python sums at once


def unpacked(written) -> np.ndarray:
    """Return numbers that a record holds, on one axis."""
    if not isinstance(written, dict):
        return np.ravel(np.array(written, float))
    ((kind, text),) = written.items()
    return np.frombuffer(base64.b64decode(text), f"<{kind}").astype(float)


def drawn(about) -> np.ndarray:
    middle, spread, codes = about["drawn"]
    values = middle + spread * np.sinh((unpacked(codes) - 2**15) / 1000)
    return values if about["kind"] == "number" else values.round()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_record_of_a_calculator_is_that_of_python_and_scores_alike(structure):
    X, y, counts = tables(np.random.default_rng(5), structure, 200)
    classifier = fitted(structure, X, y, counts)
    expected = plain(classifier, 400)
    with learner(classifier, structure, X, y) as made:
        about = {"version": "v", "date": "d", "reading": expected["reading"]}
        record = made.ask(f"learned.record({json.dumps(about)})")
    assert record.keys() == expected.keys()
    for mine, theirs in zip(record["columns"], expected["columns"], strict=True):
        refuses = (
            {"words"} if theirs["kind"] == "category" else set()
        )  # of an unseen category, which is taken as missing
        alike = theirs.keys() - {"range", "drawn", *refuses}
        assert mine.keys() == theirs.keys() - refuses
        assert {key: mine[key] for key in alike} == {key: theirs[key] for key in alike}
        assert ks_2samp(drawn(mine), drawn(theirs)).pvalue > 1e-6
        if "range" in theirs:  # as far as 10,000 draws tell the ends
            (low, high), width = theirs["range"], theirs["range"][1] - theirs["range"][0]
            off = 0.35 * width + (mine["kind"] == "count") + 1e-11 * abs(low)
            assert mine["range"] == pytest.approx([low, high], abs=off)
    for mine, theirs in zip(record["factors"], expected["factors"], strict=True):
        assert mine.keys() == theirs.keys()
        for key, value in theirs.items():
            if isinstance(value, str | bool):
                assert mine[key] == value
            else:
                given = np.broadcast_to(unpacked(value), np.shape(unpacked(mine[key])))
                assert unpacked(mine[key]) == pytest.approx(given, rel=1e-9, abs=1e-300)
    for key in ("priors", "members"):
        assert same(record[key], expected[key])
    for key in ("classes", "target", "unused", "generative", "infinite", "gaps", "kind", "interval", "unseen"):
        assert record[key] == expected[key]
    assert (record["exponent"], record["order"], record["derived"]) == (1, expected["order"], [])
    told = {key: v for key, v in record["about"].items() if key in ("package", "model", "rows", "score", "draws")}
    assert told == {key: expected["about"][key] for key in told}
    assert record["about"]["shares"] == pytest.approx(expected["about"]["shares"])
    with MiniRacer() as engine:
        engine.eval(source(record))
        rows = json.dumps(json.dumps(records(X)))
        found = np.array(json.loads(engine.eval(f"JSON.stringify(JSON.parse({rows}).map((row) => predictProba(row)))")))
    assert np.abs(found - classifier.predict_proba(X)).max() < 1e-9


def same(mine, theirs) -> bool:
    """Return True if two records of numbers differ by rounding alone."""
    if isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(same(mine[key], theirs[key]) for key in theirs)
    return unpacked(mine) == pytest.approx(unpacked(theirs), rel=1e-12)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_sums_by_block_are_those_of_python_and_make_the_same_classifier(structure):
    X, y, counts = tables(np.random.default_rng(6), structure, 120)
    classifier = fitted(structure, X, y, counts)
    whole, schema, K = classifier.statistics_, classifier.schema_, len(classifier.classes_)
    with learner(classifier, structure, X, y) as made:
        found = made.ask("learned.statistics")
    leaves = {}
    for block, mine in zip(schema.blocks, found["blocks"], strict=True):
        assert (mine["name"], mine["leaf"], tuple(mine["columns"]), mine["single"]) == (
            block.name, block.leaf, block.columns, block.single
        )  # fmt: skip
        assert mine["categories"] == (None if block.categories is None else list(block.categories))
        theirs = whole.leaves[block.name]
        kind, names = (Moments, ("n", "mean", "scatter")) if isinstance(theirs, Moments) else (SumStatistics, ("sums",))
        arrays = [np.array(mine[name]).reshape(getattr(theirs, name).shape) for name in names]
        for name, array in zip(names, arrays, strict=True):
            expected = getattr(theirs, name)
            assert array == pytest.approx(expected, rel=1e-12, abs=1e-12 * np.abs(expected).max())
        assert mine["base"] == pytest.approx(theirs.base, rel=1e-12)
        leaves[block.name] = kind(*arrays) if kind is Moments else kind(*arrays, np.float64(mine["base"]))
    sums = np.array(found["classes"], float)
    statistics = ClassStatistics(SumStatistics(sums, np.float64(0)), leaves, sums)
    assert sums.shape == (K,)
    with warnings.catch_warnings(action="ignore"):
        again = STRUCTURES[structure](counts).fit_statistics(schema, statistics, classifier.classes_)
    assert np.abs(again.predict_proba(X) - classifier.predict_proba(X)).max() < 1e-9


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_column_is_worth_what_python_loses_without_it(structure):
    X, y, counts = tables(np.random.default_rng(7), structure, 60)
    with learner(fitted(structure, X, y, counts), structure, X, y) as made:
        for j, name in enumerate(X):
            others = X.drop(columns=name)
            classifier = fitted(structure, others, y, [c for c in counts if c != name])
            expected = -classifier.leave_one_out(others, y).conditional.mean()
            assert made.ask(f"learned.without({j})") == pytest.approx(expected, rel=1e-9), name
        nothing = X[[]].assign(c=1.0)
        rate = -fitted("naive bayes", nothing, y).leave_one_out(nothing, y).conditional.mean()
        assert made.ask("learned.base") == pytest.approx(rate, rel=1e-12)


def test_the_best_of_the_candidates_is_that_of_python():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 3, 60).astype(str)
        root = rng.normal(size=(3, 4, 4)) if seed % 3 else np.broadcast_to(rng.normal(size=(4, 4)), (3, 4, 4))
        rows = np.einsum("nij,nj->ni", root[y.astype(int)], rng.normal(size=(60, 4)))
        X = pd.DataFrame(rows + 0.5 * y.astype(int)[:, None], columns=list("pqrs"))
        losses = {}
        for structure in STRUCTURES:
            classifier = fitted(structure, X, y)
            with learner(classifier, structure, X, y) as made:
                losses[structure] = made.ask("learned.leftOut.loss"), -classifier.leave_one_out(X, y).conditional.mean()
        found = np.array(list(losses.values()))
        assert np.array_equal(*(found < found.min(0) + 1e-9).T)


def test_rows_without_a_class_are_left_out():
    target = {"name": "t", "classes": ["a", "b"], "labels": ["a", "b"], "codes": [-1, 0, 1, 1, 0, -1]}
    words = {"name": "w", "kind": "category", "codes": [-1, 0, 1, 1, 0, 1], "categories": ["r", "t"]}
    with MiniRacer() as engine:
        made = Learner(engine, "naive bayes", [words], target)
        assert (made.ask("learned.rows"), made.ask("learned.places")) == (4, [1, 2, 3, 4])
        X = pd.DataFrame({"w": list("rttr")})
        expected = bg.NaiveBayesClassifier().fit(X, list("abba")).leave_one_out(X, list("abba")).probability
        assert np.array(made.ask("learned.leftOut.probability")) == pytest.approx(expected.ravel())


@pytest.mark.parametrize("values", [[1e-200, 2e-200, 3e-200], [1e9, 1e9 + 2e-7, 1e9]])
def test_numbers_that_vary_by_rounding_alone_are_refused(values):
    target = {"name": "t", "classes": ["a", "b"], "labels": ["a", "b"], "codes": [0, 1, 1]}
    one = {"name": "it's", "kind": "number", "values": values, "codes": None}
    with MiniRacer() as engine, pytest.raises(JSEvalException, match="it's varies by rounding alone, or below 1e-150"):
        Learner(engine, "full", [one], target)


def test_a_diagonal_discriminant_of_complete_numbers_is_naive_bayes():
    X, y, _ = tables(np.random.default_rng(9), "full", 80)
    other = bg.GaussianDiscriminantClassifier("diagonal").fit(X, y)
    np.testing.assert_allclose(other.predict_proba(X), fitted("naive bayes", X, y).predict_proba(X), rtol=0, atol=1e-12)
