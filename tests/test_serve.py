"""The service of `docs/serve/` answers as its classifier does and refuses what it cannot hold; it imports little."""

import functools
import importlib.util
import itertools
import re
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from fnmatch import fnmatch

import numpy as np
import pandas as pd
import pytest
import serving
from commands import run
from serving import BUILT, NUMBERS, SERVE, X, Y, as_json

import bayesgen as bg

ROW = {
    "blood pressure": 151.5,
    "visits": 4,
    "income": 900.0,
    "town": "south",
    "smoker": True,
    "since": "2024-02-01T09:30",
}


@contextmanager
def client_of(folder):
    """A client of the app that serves the files of a folder."""
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    specification = importlib.util.spec_from_file_location("app", SERVE / "app.py")
    module = importlib.util.module_from_spec(specification)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL", str(folder / "model.safetensors"))
        patch.setenv("COSTS", str(folder / "costs.csv"))
        specification.loader.exec_module(module)
    with TestClient(module.app) as client:
        yield client


@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=[pytest.mark.compiles] * (n == "averaged")) for n in BUILT]
)
def served(request, tmp_path_factory):
    """A classifier, its rows, and a client of the app that serves it."""
    folder = tmp_path_factory.mktemp("served")
    classifier, rows = serving.saved(request.param, folder)
    with client_of(folder) as client:
        yield classifier, rows, client


def test_it_answers_as_the_classifier_does(served):
    classifier, rows, client = served
    found = client.post("/predict", json=as_json(rows[:20]))
    assert found.status_code == 200
    expected = classifier.predict_proba(rows[:20])
    assert np.array_equal([list(own["probability"].values()) for own in found.json()], expected)
    assert [own["class"] for own in found.json()] == classifier.predict(rows[:20]).tolist()
    told = client.post("/explain", json=as_json(rows[:1])[0], params={"label": "ill"}).json()
    assert told == classifier.explain(rows[:1], row=0, label="ill").to_dict()
    taken = client.post("/decide", json=as_json(rows[:20])).json()
    assert {own["action"] for own in taken} == {"treat", "wait"}
    assert [own["action"] for own in taken] == np.where(expected[:, 0] * 10 > expected[:, 1], "treat", "wait").tolist()


def test_it_says_that_it_is_ready_and_what_it_serves(served):
    classifier, _, client = served
    assert client.get("/health").json() == {"ready": True}
    told = client.get("/version").json()
    assert told["bayesgen"] == bg.__version__ and told["kind"] == type(classifier).__name__
    assert told["classes"] == ["ill", "well"] and len(told["model"]) == 64


@pytest.mark.parametrize("served", ["naive Bayes", "averaged"], indirect=True)
@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("town", "west", "'north' or 'south'"),
        ("visits", -1, "greater than or equal to 0"),
        ("visits", 1.5, "integer"),
        ("visits", 10**30, "less than or equal to"),
        ("income", 0, "greater than 0"),
        ("blood pressure", "high", "number"),
        ("blood pressure", 10**400, "number"),
        ("blood pressure", "1,234", "1,234 is 1234 or 1.234? Write 1234 or 1.234"),
        ("blood pressure", "NA", "a gap is null"),
        ("smoker", 2, "boolean"),
        ("since", "31.02.2024", "write dates as 2024-01-31"),
        ("since", "2024-02-31", "write dates as 2024-01-31"),
        ("since", "03/04/2024", "begin with the day or with the month"),
        ("since", 19754, "2024-01-31T12:30"),  # days to bayesgen, seconds to others
        ("since", "1706745600", "write dates as 2024-01-31"),
        ("presure", 120, "not permitted"),
    ],
)
def test_what_the_columns_cannot_hold_is_refused(served, column, value, told):
    client = served[2]
    found = client.post("/predict", json=[ROW, ROW | {column: value}])
    assert found.status_code == 422
    (problem,) = found.json()["detail"]
    assert problem["loc"][1] == 1 and column in problem["loc"] and told in problem["msg"]


@pytest.mark.parametrize("served", ["naive Bayes", "averaged"], indirect=True)
def test_texts_are_read_as_entries_of_a_later_file(served):
    client = served[2]
    texts = {"blood pressure": " 151.5", "visits": "4", "income": "9e2", "since": "01.02.2024 9:30"}
    found = client.post("/predict", json=[ROW, ROW | texts]).json()
    assert found[0] == found[1]


@pytest.mark.parametrize("served", ["naive Bayes", "averaged"], indirect=True)
def test_dates_have_times_of_the_day_and_time_zones(served):
    classifier, _, client = served
    sent = ["2024-02-01", "2024-02-01T18:00", "2024-02-01 18:00:00", "2024-02-01T18:00Z", "2024-02-01T20:00+02:00"]
    meant = [pd.Timestamp("2024-02-01"), *[pd.Timestamp("2024-02-01 18:00")] * 4]
    rows = pd.DataFrame([ROW] * 5).assign(since=meant)
    expected = classifier.predict_proba(rows)
    assert (expected[1:] == expected[1]).all() and expected[0, 0] != expected[1, 0]
    found = client.post("/predict", json=[ROW | {"since": own} for own in sent]).json()
    assert np.array_equal([list(own["probability"].values()) for own in found], expected)
    for i, own in enumerate(sent):  # each in a request of its own
        (found,) = client.post("/predict", json=[ROW | {"since": own}]).json()
        assert list(found["probability"].values()) == classifier.predict_proba(rows[i : i + 1])[0].tolist()


def test_a_model_of_the_command_line_takes_its_dates(tmp_path):
    """Its dates are numbers of days to the model, and dates to whoever asks."""
    X[["income", "since"]].assign(state=Y).to_csv(tmp_path / "clinic.csv", index=False)
    said = ["--target", "state", "--model", "nb", "--date", "since", "--output", tmp_path / "model.safetensors"]
    assert run(tmp_path / "clinic.csv", *said, command="fit")[0] == 0
    serving.costs(tmp_path)
    expected = bg.load(tmp_path / "model.safetensors").predict_proba(X[["income", "since"]][:9])
    with client_of(tmp_path) as client:
        found = client.post("/predict", json=as_json(X[["income", "since"]][:9])).json()
        assert np.array_equal([list(own["probability"].values()) for own in found], expected)
        told = client.post("/explain", json=as_json(X[["income", "since"]][:1])[0])
        assert told.status_code == 200
        assert client.post("/predict", json=[{"since": 19754}]).status_code == 422


@pytest.mark.parametrize("served", ["averaged"], indirect=True)
def test_other_requests_that_make_no_sense(served):
    client = served[2]
    assert client.post("/predict", json=[]).status_code == 422
    found = client.post("/explain", json=ROW, params={"label": "dead"})
    assert found.status_code == 422 and "dead" in found.json()["detail"]
    assert client.post("/predict", json=[{}]).status_code == 200  # nothing is known of this row but the base rate


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT)
def test_many_clients_at_once(name, tmp_path):
    """50 clients, 20,000 requests: no error, answers equal to one thread's, and memory that stays."""
    pytest.importorskip("uvicorn")
    found = serving.load(name, tmp_path)
    assert (found.failed, found.different) == (0, 0)
    assert found.after < found.before + 20  # MB


def test_the_image_copies_what_there_is_and_installs_what_the_wheel_offers():
    text = (SERVE / "Dockerfile").read_text()
    project = tomllib.loads((serving.ROOT / "pyproject.toml").read_text())["project"]
    (version,) = re.findall(r"^FROM python:(3\.\d+)-slim$", text, re.MULTILINE)
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]
    needs = {
        re.split("[>=]", line)[0] for line in (SERVE / "prediction.txt").read_text().splitlines() if line[0] != "#"
    }
    offered = [*project["dependencies"], *project["optional-dependencies"]["serve"]]
    assert needs <= {re.split("[>=]", line)[0] for line in offered}
    wheel, *copied = [name for line in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE) for name in line.split()]
    assert fnmatch(f"bayesgen-{bg.__version__}-py3-none-any.whl", wheel)
    given = dict(re.findall(r"(MODEL|COSTS)=(\S+)", text))
    assert {*given} == {*re.findall(r'os\.environ\["(.*?)"\]', (SERVE / "app.py").read_text())}
    ours = set(copied) - set(given.values())
    assert ours == {"app.py", "prediction.txt"} and len(copied) == 4  # the model and the costs are the user's
    assert all((SERVE / name).is_file() for name in ours)
    assert all(name in text.split("#   docker")[0] for name in copied)  # which tells what has to stand beside the file


@pytest.mark.filterwarnings("default")  # warnings of MLflow are its own
def test_mlflow_takes_it(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    classifier = bg.NaiveBayesClassifier(random_state=0).fit(NUMBERS, Y)
    classifier.save(tmp_path / "model.safetensors")
    command = [
        sys.executable,
        str(SERVE / "mlflow_model.py"),
        str(tmp_path / "model.safetensors"),
        str(tmp_path / "saved"),
    ]
    subprocess.run(command, capture_output=True, text=True, check=True)
    found = mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(NUMBERS[:9])
    assert found["class"].tolist() == classifier.predict(NUMBERS[:9]).tolist()
    assert np.array_equal(found[["p_ill", "p_well"]], classifier.predict_proba(NUMBERS[:9]))


HEAVY = ("jax", "numpyro", "arviz", "arviz_base", "arviz_stats", "arviz_plots", "xarray", "matplotlib", "typer")
ASKED = """
import sys
import bayesgen as bg
classifier = bg.load(sys.argv[1])
X = bg.data.load("penguins")[list(classifier.feature_names_in_)].dropna()[:5]
classifier.predict_proba(X)
if hasattr(classifier, "explain"):
    classifier.explain(X, row=0)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
PEER = """
import pickle, pandas, sklearn.naive_bayes as peer
model = pickle.loads(pickle.dumps(peer.GaussianNB().fit([[0.0], [1.0]], [0, 1])))
model.predict_proba(pandas.DataFrame({"x": [0.5]}).to_numpy())
"""
MEMORY = """
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def in_a_fresh_process(code, *arguments):
    """The words that a program prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@functools.cache
def memory_of_a_peer():
    return int(in_a_fresh_process(PEER + MEMORY)[0])


@pytest.mark.compiles
@pytest.mark.parametrize(
    "kind",
    ["averaged", "logistic", *(pytest.param(own, marks=pytest.mark.slow) for own in ("naive Bayes", "discriminant"))],
)
def test_a_process_that_only_predicts_never_imports_the_heavy_packages(tmp_path, kind):
    rows = bg.data.load("penguins").dropna()[::6]
    y = rows.pop("species")
    numbers = rows[["bill_length_mm", "body_mass_g"]]
    {
        "naive Bayes": lambda: bg.NaiveBayesClassifier().fit(rows, y),
        "discriminant": lambda: bg.GaussianDiscriminantClassifier().fit(numbers, y),
        "averaged": lambda: bg.AveragedClassifier(members=["gaussian", "category", "forest"]).fit(rows, y),
        "logistic": lambda: bg.LogisticClassifier(inference=bg.Laplace(1000)).fit(numbers, y),
    }[kind]().save(tmp_path / "model.safetensors")
    *modules, memory = in_a_fresh_process(ASKED + MEMORY, tmp_path / "model.safetensors")
    assert "bayesgen" in modules and not set(HEAVY) & set(modules)
    assert int(memory) < 1.5 * memory_of_a_peer()  # 1.2 times scikit-learn's was measured


# -- what is no number, no cost, and too long


def test_a_bool_is_no_code_and_costs_name_classes_as_they_are_written(tmp_path):
    rows = pd.DataFrame({"code": np.resize([1, 2, 3], 60), "z": np.arange(60) % 7 + 0.5})
    classifier = bg.NaiveBayesClassifier({"code": "categorical"}).fit(rows, np.resize(["NA", "01", "1.0", "01"], 60))
    classifier.save(tmp_path / "model.safetensors")
    (tmp_path / "costs.csv").write_text("class,act,wait\nNA,0,9\n01,4,0\n1.0,2,3\n")
    with client_of(tmp_path) as client:
        for row in ({"code": True}, {"code": 1, "z": False}, {"code": "1"}, {"code": 4}):
            assert client.post("/predict", json=[row]).status_code == 422, row
        taken = client.post("/decide", json=as_json(rows[:9]))
        assert taken.status_code == 200
        costs = classifier.predict_proba(rows[:9]) @ np.array([[4, 0], [2, 3], [0, 9]])
        assert [own["action"] for own in taken.json()] == np.array(["act", "wait"])[costs.argmin(1)].tolist()


@pytest.mark.parametrize("served", ["naive Bayes"], indirect=True)
def test_a_body_that_is_too_long_is_refused_unread_and_no_refusal_repeats_it(served):
    client = served[2]
    piece = b"[" * (1 << 20)  # no parser may see it: it is no JSON

    def endless():
        while True:
            yield piece

    for body in (piece * 17, itertools.islice(endless(), 17)):  # with its length, and in chunks
        found = client.post("/predict", content=body)
        assert found.status_code == 413 and "more than 16777216 bytes" in found.json()["detail"]
    secret = "secret" * 1000
    for body in ([ROW | {"town": secret}] * 50, [ROW | {"visits": secret}], [ROW | {secret: 1}], {"rows": secret}):
        found = client.post("/predict", json=body)
        assert found.status_code == 422 and len(found.text) < 10_000 and secret not in found.text
        assert len(found.json()["detail"]) <= 20
    found = client.post("/predict", content=f'[{{"town": "{secret}"')
    assert found.status_code == 422 and "secret" not in found.text
    assert client.post("/predict", json=[ROW]).status_code == 200
