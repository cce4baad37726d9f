"""The service of `docs/serve/` answers as its classifier does and refuses what it cannot hold; it imports little."""

import functools
import importlib.util
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesgen as bg

SERVE = Path(__file__).parent.parent / "docs" / "serve"

rng = np.random.default_rng(0)
Y = np.where(rng.random(120) < 0.4, "ill", "well")
ILL = Y == "ill"
X = pd.DataFrame(
    {
        "blood pressure": rng.normal(120 + 20 * ILL, 10).round(1),
        "visits": rng.poisson(1.0 + 2 * ILL),
        "income": np.exp(rng.normal(7.0, 1.0, 120)).round(2),
        "town": rng.choice(["north", "south"], 120),
        "smoker": rng.random(120) < 0.3 + 0.2 * ILL,
        "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 120), unit="D"),
    }
)
X.loc[::7, "blood pressure"] = np.nan
NUMBERS = X[["blood pressure", "income"]]
FEATURES = {"visits": "poisson", "income": "log", "since": "date"}
BUILT = {
    "naive Bayes": (bg.NaiveBayesClassifier(FEATURES, random_state=0), X),
    "discriminant with gaps": (bg.GaussianDiscriminantClassifier(inference="map", random_state=0), NUMBERS),
    "averaged": (bg.AveragedClassifier(members=["gaussian", "category"], features=FEATURES, random_state=0), X),
}
ROW = {"blood pressure": 151.5, "visits": 4, "income": 900.0, "town": "south", "smoker": True, "since": "2024-02-01"}


def loaded(name):
    """A file of the service, as a module of its own."""
    specification = importlib.util.spec_from_file_location(name, SERVE / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=BUILT)
def served(request, tmp_path_factory):
    """A classifier, its rows, and a client of the app that serves it."""
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    folder = tmp_path_factory.mktemp("served")
    unfitted, rows = BUILT[request.param]
    classifier = unfitted.fit(rows, Y)
    classifier.save(folder / "model.nc")
    pd.DataFrame({"class": ["ill", "well"], "treat": [0, 1], "wait": [10, 0]}).to_csv(folder / "costs.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL", str(folder / "model.nc"))
        patch.setenv("COSTS", str(folder / "costs.csv"))
        app = loaded("app").app
    with TestClient(app) as client:
        yield classifier, rows, client


def as_json(rows):
    """Rows as a client sends them: what is missing is left out."""
    records = rows.assign(since=rows["since"].dt.strftime("%Y-%m-%d")) if "since" in rows else rows
    return [{k: v for k, v in own.items() if v == v} for own in records.to_dict("records")]


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
        ("income", 0, "greater than 0"),
        ("blood pressure", "high", "number"),
        ("blood pressure", 10**400, "number"),
        ("smoker", 2, "boolean"),
        ("since", "31.02.2024", "date"),
        ("presure", 120, "not permitted"),
    ],
)
def test_what_the_columns_cannot_hold_is_refused(served, column, value, told):
    client = served[2]
    found = client.post("/predict", json=[ROW, ROW | {column: value}])
    assert found.status_code == 422
    (problem,) = found.json()["detail"]
    assert problem["loc"][1] == 1 and column in problem["loc"] and told in problem["msg"]


@pytest.mark.parametrize("served", ["averaged"], indirect=True)
def test_other_requests_that_make_no_sense(served):
    client = served[2]
    assert client.post("/predict", json=[]).status_code == 422
    found = client.post("/explain", json=ROW, params={"label": "dead"})
    assert found.status_code == 422 and "dead" in found.json()["detail"]
    assert client.post("/predict", json=[{}]).status_code == 200  # nothing is known of this row but the base rate


@pytest.mark.slow
def test_many_clients_at_once(served):
    """50 clients, 20,000 requests: no error, answers equal to those of one thread, and memory that stays."""
    import resource

    _, rows, client = served
    sent = as_json(rows)
    alone = [client.post("/predict", json=[row]).json() for row in sent]
    why = [client.post("/explain", json=row).json() for row in sent[:4]]

    def ask(i):
        if i % 10:
            return client.post("/predict", json=[sent[i % len(sent)]]).json() == alone[i % len(sent)]
        return client.post("/explain", json=sent[i % 4]).json() == why[i % 4]

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(ask, range(2_000)))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert all(pool.map(ask, range(2_000, 20_000)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 50_000  # KB


@pytest.mark.filterwarnings("default")  # those of MLflow are its own
def test_mlflow_takes_it(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    classifier = bg.NaiveBayesClassifier(random_state=0).fit(NUMBERS, Y)
    classifier.save(tmp_path / "model.nc")
    command = [sys.executable, str(SERVE / "mlflow_model.py"), str(tmp_path / "model.nc"), str(tmp_path / "saved")]
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
        "logistic": lambda: bg.LogisticClassifier(inference=bg.Laplace(1000, 2000)).fit(numbers, y),
    }[kind]().save(tmp_path / "model.nc")
    *modules, memory = in_a_fresh_process(ASKED + MEMORY, tmp_path / "model.nc")
    assert "bayesgen" in modules and not set(HEAVY) & set(modules)
    assert int(memory) < 1.5 * memory_of_a_peer()  # 1.2 times scikit-learn's was measured
