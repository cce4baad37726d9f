"""The page that learns: what its file holds, what it saves, and that Python does the same.

In Chromium: `npm install --no-save playwright-core axe-core && python -m pytest -m slow tests/test_learn_page.py`.
"""

import contextlib
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import run
from py_mini_racer import MiniRacer
from scorers import Page
from sklearn.datasets import load_breast_cancer
from test_page_in_browser import ROOT, ready

import bayesgen as bg
from bayesgen.core import registry
from bayesgen.export import learning_page, to_page
from bayesgen.files import container
from bayesgen.files.values import Writer

needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")


def sums_of(classifier, **other) -> bytes:
    """A file of sums alone, as the page saves it, with other values in the place of some."""
    held = {name: getattr(classifier, name) for name in ("schema_", "statistics_", "classes_")}
    parts = {"parameters": classifier.get_params(deep=False), "fitted": held}
    writer = Writer(registry.may_be_saved)
    parts = {part: {**values, **other.get(part, {})} for part, values in parts.items()}
    written = {part: {name: writer.write(v, name) for name, v in values.items()} for part, values in parts.items()}
    return container.pack({"estimator": type(classifier).__name__, **written}, writer.arrays)


def penguins():
    X = bg.data.load("penguins")
    return X, X.pop("species")


def fitted():
    X, y = penguins()
    yield bg.NaiveBayesClassifier({"year": "poisson"}).fit(X, y), X
    X = X.select_dtypes("number").dropna()
    for covariance, shared in (("full", False), ("full", True), ("diagonal", False)):
        yield bg.GaussianDiscriminantClassifier(covariance, shared).fit(X, y[X.index]), X


def test_sums_alone_are_loaded_as_the_estimator_that_they_were_summed_for(tmp_path):
    for classifier, X in fitted():
        (tmp_path / "sums.safetensors").write_bytes(sums_of(classifier))
        again = bg.load(tmp_path / "sums.safetensors")
        assert np.array_equal(again.predict_proba(X), classifier.predict_proba(X))
        again.save(tmp_path / "whole.safetensors")
        assert np.array_equal(bg.load(tmp_path / "whole.safetensors").predict_proba(X), classifier.predict_proba(X))


def test_sums_that_do_not_fit_are_refused(tmp_path):
    X, y = penguins()
    classifier = bg.NaiveBayesClassifier().fit(X, y)
    numbers = bg.NaiveBayesClassifier().fit(X.select_dtypes("number"), y)
    for other, problem in (
        ({"fitted": {"classes_": np.array(["a", "b"], object)}}, "3 classes, not 2"),
        ({"fitted": {"statistics_": numbers.statistics_}}, "blocks"),
        ({"fitted": {"schema_": numbers.schema_}}, "blocks"),
        ({"fitted": {"schema_": "text"}}, "the file says what no estimator"),
        ({"parameters": {"inference": "nuts"}}, "needs the attribute 'n_features_in_'"),
        ({"parameters": {"prior": "none"}}, "prior"),
    ):
        (tmp_path / "sums.safetensors").write_bytes(sums_of(classifier, **other))
        with pytest.raises(ValueError, match=problem) as told:
            bg.load(tmp_path / "sums.safetensors")
        assert "sums.safetensors" in str(told.value)


def altered(statistics, name, entry, change):
    """Statistics with another array in the place of one of a leaf, or of the classes."""
    sums = statistics.leaves.get(name, statistics.classes)
    sums = replace(sums, **{entry: change(np.array(getattr(sums, entry), float))})
    leaves = {**statistics.leaves, name: sums}
    return replace(statistics, classes=sums) if name == "classes" else replace(statistics, leaves=leaves)


def test_sums_that_no_rows_have_are_refused(tmp_path):
    entries = {"gaussian": ("n", "mean", "scatter"), "poisson": ("sums", "base"), "island": ("sums", "base")}
    changes = {
        "NaN": lambda v: v * np.nan, "infinite": lambda v: v + np.inf, "negative": lambda v: np.where(v > 0, -v - 1, v),
        "one below 0": lambda v: v - np.where(np.arange(v.size).reshape(v.shape) == 0, 1e9, 0),
        "of another axis": lambda v: v[..., None], "of fewer classes": lambda v: v[:-1] if v.ndim else v[None],
        "broadcast": lambda v: v[..., :1] if v.ndim else v[None],
    }  # fmt: skip
    for classifier, _ in fitted():
        statistics, signed = classifier.statistics_, {"mean", "base"}  # which may be below 0
        for name in ("classes", *statistics.leaves):
            for entry in entries.get(name, ("sums",)):
                for what, change in changes.items():
                    if entry in signed and what in ("negative", "one below 0"):
                        continue
                    wrong = altered(statistics, name, entry, change)
                    (tmp_path / "sums.safetensors").write_bytes(sums_of(classifier, fitted={"statistics_": wrong}))
                    with pytest.raises(ValueError, match=r"sums\.safetensors: "):
                        bg.load(tmp_path / "sums.safetensors")
                        pytest.fail(f"{type(classifier).__name__} takes {entry} of {name!r} that are {what}")


def test_the_command_writes_the_page_and_takes_no_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given, written in (["--learn"], "learn.html"), (["--learn", "--output", "new/it.html"], "new/it.html"):
        code, out, err = run(*given, command="page")
        assert (code, err) == (0, "") and f"Written to {written}" in out and Path(written).exists()
    for wrong in ([], ["model.safetensors", "--learn"], ["--learn", "--loss", "learn.html"]):
        code, out, err = run(*wrong, command="page")
        assert code == 2 and "give either the file of a saved classifier, or --learn" in err
    code, out, err = run("--learn", "--output", "learn.txt", command="page")
    assert code == 2 and "learn.txt" in err and not Path("learn.txt").exists()


def test_the_page_asks_no_network_and_declares_each_name_once(tmp_path):
    learning_page(tmp_path / "learn.html")
    text = (tmp_path / "learn.html").read_text()
    assert not re.search(
        r"https?:|fetch\(|XMLHttp|WebSocket|EventSource|import\(|innerHTML|outerHTML|insertAdjacent", text
    )
    assert not re.search(r"<(script|link|img|iframe)[^>]* (src|href)=(?!\"data:,\")", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy and policy[1].startswith("default-src 'none'; script-src 'unsafe-inline'; style-src 'sha256-")
    assert policy[1].endswith("; img-src data:; base-uri 'none'; form-action 'none'")
    script = text.split("<script>")[1]
    names = re.findall(r"^(?:async )?(?:function\*?|const|let|class) (\w+|\$)", script, re.MULTILINE)
    assert len(names) > 50 and sorted(names) == sorted(set(names))


def unkind(rng, n=60):
    """A table with what a first version breaks on, labels in odd order."""
    y = np.array(["b", "Z", "a", "10", "9"])[np.minimum(rng.integers(0, 4, n), 3)].astype(object)
    y[7], y[11] = "once", ""
    table = pd.DataFrame({
        "two\nlines": rng.normal(size=n), "flag": rng.choice(["1.0", "0.0", ""], n),
        "padded": rng.choice(["u ", " v", "w"], n),
        "far": 1e9 + rng.normal(size=n) + (y == "a"), "</script>": rng.choice(["u", "<!--", "=1+1", ""], n),
        "__proto__": rng.normal(size=n) * 10.0 ** rng.integers(-3, 3, n), "constructor": rng.choice(["x", "y"], n),
        "bits": rng.integers(0, 2, n), "yes": rng.choice(["True", "False", ""], n), "events": rng.poisson(3, n),
        "gone": np.where(y == "b", np.nan, rng.normal(size=n)), "always": 3,
        "rate": [f"{v}%" for v in rng.integers(0, 90, n)], "patient_id": rng.integers(0, 9999, n),
        "owed": [f"({v})" if v % 2 else f"{v}-" for v in rng.integers(10, 99, n)],
        "beyond": rng.choice(["1e200", "7", "9"], n),
    })  # fmt: skip
    table.loc[3, "far"] += 1e6
    table.loc[y == "Z", "constructor"] = "only here"
    return table.assign(**{"say <what> & 'why'": y})


def tables(folder) -> Iterator[dict[str, Any]]:
    """Write tables, and yield them as cases, with the kinds that a user says."""
    X, y = penguins()
    X.assign(species=y).to_csv(folder / "penguins.csv", index=False)
    yield {"name": "penguins", "file": "penguins.csv", "target": "species", "said": {"year": "category"}}
    cancer: Any = load_breast_cancer(as_frame=True)
    cancer.data.iloc[:, :6].assign(kind=np.where(cancer.target, "benign", "malignant"))[::5].to_csv(
        folder / "cancer.csv", index=False
    )
    yield {"name": "cancer", "file": "cancer.csv", "target": "kind"}
    rng = np.random.default_rng(1)
    target = "say <what> & 'why'"
    for name, sep, decimal, rows in (("office", ";", ",", 80), ("forty", "\t", ".", 40)):
        unkind(rng, rows).to_csv(folder / f"{name}.csv", index=False, sep=sep, decimal=decimal)
        said = {"events": "count", "bits": "bool", "flag": "bool"}
        yield {"name": name, "file": f"{name}.csv", "target": target, "said": said}

    numbers = pd.DataFrame({"price": rng.integers(1000, 9999, 30), "n": rng.integers(0, 99, 30)})
    numbers["price"] = numbers["price"].map("{:,}".format).str.replace(",", ".")
    numbers.assign(k=rng.choice(["x", "y"], 30)).to_csv(folder / "doubt.csv", index=False, sep=";", decimal=",")
    yield {"name": "doubt", "file": "doubt.csv", "target": "k", "signs": "1.234,5"}


def options_of(page: str) -> dict:
    found = re.search(r"^const page = (.*);$", page, re.MULTILINE)
    assert found is not None
    return json.loads(found[1])


def check(folder, case, place):
    """Run the program that the page prints, and compare what it and the files of the page say."""
    path = folder / f"{case['name']}-{place}"
    with contextlib.redirect_stdout(io.StringIO()) as told, warnings.catch_warnings(action="ignore"):
        space = runpy.run_path(f"{path}.py")
    classifier, X = space["classifier"], space["X"]
    loaded = bg.load(f"{path}.safetensors")
    assert loaded.schema_.reading.fractions == classifier.schema_.reading.fractions
    assert loaded.schema_ == classifier.schema_ and loaded.get_params() == classifier.get_params()
    assert (loaded.schema_.whole, loaded.schema_.target) == (classifier.schema_.whole, classifier.schema_.target)
    assert loaded.schema_.unsigned == classifier.schema_.unsigned
    with warnings.catch_warnings(action="ignore"):
        expected = classifier.predict_proba(X)
        np.testing.assert_allclose(loaded.predict_proba(X), expected, rtol=0, atol=1e-9)
        to_page(classifier, folder / "python.html")
    ours, theirs = (options_of(Path(page).read_text()) for page in (f"{path}.html", folder / "python.html"))
    for mine, other in zip(ours["columns"], theirs["columns"], strict=True):
        assert ("range" in mine) == ("range" in other)  # by other draws
        for column in (mine, other):
            column.pop("range", None)
    assert ours["columns"] == theirs["columns"]
    assert ours == theirs
    assert told.getvalue().startswith("LeaveOneOut(")
    return space


NAMES = [
    "penguins",
    *(pytest.param(name, marks=pytest.mark.compiles) for name in ("cancer", "office", "forty", "doubt")),
]


@needs_node
@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_saves_and_prints_is_what_python_learns(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    learning_page("learn.html")
    (case,) = (one for one in tables(tmp_path) if one["name"] == name)
    Path("cases.json").write_text(json.dumps([case]))
    subprocess.run(["node", ROOT / "tests" / "learn_page.mjs", "."], check=True, capture_output=True, text=True)
    found = json.loads(Path(f"{name}.json").read_text())
    assert len(found["models"]) == (3 if name in ("cancer", "doubt") else 1)
    said = case.get("said", {})
    assert {column: found["told"][f"column {column}"] for column in said} == said
    for place, model in enumerate(found["models"]):
        space = check(tmp_path, case, place)
        left_out, expected = space["left_out"], space["classifier"].predict_proba(space["X"][:7])
        assert model["loss"] == pytest.approx(-left_out.conditional.mean(), abs=1e-9)
        shares = np.bincount(left_out.codes)[left_out.codes]
        base = -np.log(shares / (len(shares) - 1 + len(space["classifier"].classes_))).mean()
        assert found["base"] == pytest.approx(base, abs=1e-12)
        assert len(model["without"]) == space["X"].shape[1]
        sep = {"office": ";", "doubt": ";", "forty": "\t"}.get(name, ",")
        with MiniRacer() as engine:  # the calculator answers rows of the file
            status, lines = Page(Path(f"{name}-{place}.html"), engine).pasted(Path(case["file"]).read_text())
        assert status.startswith(f"Answered: {len(pd.read_csv(case['file'], sep=sep))}."), status
        answers = [[float(v.replace(",", ".")) for v in line[-1 - expected.shape[1] : -1]] for line in lines[1:8]]
        np.testing.assert_allclose(answers, expected, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.skipif(not ready(), reason="needs node, Chromium and `npm install --no-save playwright-core axe-core`")
def test_the_page_learns_in_chromium_from_the_disk_as_python_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learning_page("learn.html")
    cases = list(tables(tmp_path))
    cases[0]["looks"] = [[320, "light"], [390, "dark"], [1280, "light"]]
    cases[2]["looks"] = [[320, "dark"], [1280, "dark"]]  # with names that are markup
    cases[3]["pasted"] = True
    shutil.copy("forty.csv", "pasted.csv")
    Path("cases.json").write_text(json.dumps(cases))
    command = ["node", ROOT / ".ci/learn.mjs", ".", *([os.environ["PICTURES"]] if "PICTURES" in os.environ else [])]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    print(ran.stdout)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for case in cases:
        shown = json.loads(Path(f"{case['name']}.json").read_text())
        losses = [float(one["label"].rpartition(" ")[2]) for one in shown["told"]]
        assert losses == sorted(losses) and len(losses) == (3 if case["name"] in ("cancer", "doubt") else 1)
        assert ("One model fits" in shown["order"]) == (len(losses) == 1)
        for place, (loss, one) in enumerate(zip(losses, shown["told"], strict=True)):
            left_out = check(tmp_path, case, place)["left_out"]
            assert loss == pytest.approx(-left_out.conditional.mean(), abs=1e-4)
            assert one["rows"] == min(200, len(left_out.codes))
            sep, decimal = (";", ",") if case["name"] in ("office", "doubt") else (",", ".")
            rows = pd.read_csv(f"{case['name']}-{place}.csv", sep=sep, decimal=decimal)
            classes = len(left_out.probability[0])
            np.testing.assert_allclose(rows.iloc[:, -classes:], left_out.probability, rtol=0, atol=1e-9)
            theirs = pd.read_csv("rows-left-out.csv")  # of the program
            assert rows["row"].tolist() == theirs["row"].tolist()
