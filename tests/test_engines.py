"""Other engines sum rows where they are: Dask for every family, and Spark and Ray as docs/howto/engines.md has them."""

import os
import pickle
import signal
import sys
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from refusals import refuses
from test_batches import TABLE, equal, fresh
from test_fit_statistics import CASES, WEIGHT, Y

import bayesgen as bg

NB = bg.NaiveBayesClassifier


@pytest.fixture
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def delayed(X, weight=None):
    """Four partitions, one of them skewed and one empty."""
    cuts = [slice(0, 3), slice(3, 3), slice(3, 50), slice(50, 60)]
    if not isinstance(X, pd.DataFrame):
        return [dask.delayed((X[own], Y[own], *([] if weight is None else [weight[own]]))) for own in cuts]
    table = X.assign(kind=Y) if weight is None else X.assign(kind=Y, weight=weight)
    return [dask.delayed(table[own]) for own in cuts]


@pytest.mark.parametrize("case", CASES)
def test_every_family_learns_from_partitions_what_it_learns_in_memory(case, here):
    estimator, X = CASES[case]
    whole = fresh(estimator).fit(X, Y, WEIGHT)
    names = {"target": "kind", "sample_weight": "weight"} if isinstance(X, pd.DataFrame) else {}
    again = fresh(estimator).fit_batches(delayed(X, WEIGHT), **names)
    equal(again, whole, X)


def test_frames_arrays_and_files_of_dask(here, tmp_path):
    X = TABLE.drop(columns=["kind", "weight"])
    whole = NB().fit(X, Y)
    frame = dd.from_pandas(TABLE.drop(columns="weight"), npartitions=5)
    equal(NB().fit_batches(frame, "kind"), whole, X)
    again = bg.GaussianDiscriminantClassifier(inference="map")
    numbers = np.random.default_rng(0).normal(size=(60, 4))
    again.fit_batches((da.from_array(numbers, chunks=(17, 2)), da.from_array(Y, chunks=30)))
    equal(again, fresh(again).fit(numbers, Y), numbers)


def test_what_is_wrong_names_the_partition(here):
    X = TABLE.drop(columns=["kind", "weight"])
    whole = NB().fit(X, Y)
    strange = TABLE[30:].assign(colour="pink")
    parts = [dask.delayed(TABLE[:30]), dask.delayed(strange)]
    declared = {"schema": whole.schema_, "classes": whole.classes_}
    with pytest.raises(ValueError, match="partition 1: column 'colour': 'pink' in row 0 is not one of the categories"):
        NB().fit_batches(parts, "kind", sample_weight="weight", **declared)
    with pytest.raises(ValueError, match=r"partition 1: .*lacks"):
        NB().fit_batches([parts[0], dask.delayed(TABLE.drop(columns="x"))], "kind", sample_weight="weight")
    refuses(lambda: NB().fit_batches([dask.delayed(TABLE[:0])], "kind"), "no rows")


def part_of_many(number, flag):
    """Rows of a partition; the first time that number 7 is asked for, its worker dies."""
    if number == 7 and not os.path.exists(flag):
        open(flag, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    size = 20_000 if number == 3 else 0 if number == 4 else 200  # skewed, empty
    rng = np.random.default_rng(number)
    t = rng.integers(3, size=size)
    table = pd.DataFrame(rng.normal(t[:, None], size=(size, 3)), columns=list("xyz"))
    kinds = ["u", "v", *(["new"] if number == 9 else [])]
    return table.assign(c=rng.choice(kinds, size) if size else np.empty(0, object), t=t)


@pytest.mark.slow
def test_a_cluster_of_processes_survives_a_killed_worker(tmp_path):
    from dask.distributed import Client, LocalCluster

    flag = str(tmp_path / "died")
    how = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**how) as cluster, Client(cluster):
        parts = [dask.delayed(part_of_many)(number, flag) for number in range(16)]
        again = NB().fit_batches(parts, "t")
    assert os.path.exists(flag)
    table = pd.concat([part_of_many(number, flag) for number in range(16)])
    whole = NB().fit(table.drop(columns="t"), table.t)
    assert again.schema_ == whole.schema_
    equal(again, whole, table.drop(columns="t"))


def test_predictions_of_a_dask_frame_are_one(here):
    X = TABLE.drop(columns=["kind", "weight"])
    fitted = NB().fit(X, Y)
    found = fitted.predict_batches(dd.from_pandas(TABLE, npartitions=4)).compute()
    np.testing.assert_allclose(found[["p_a", "p_b", "p_c"]], fitted.predict_proba(X))
    assert found.index.equals(TABLE.index) and found["class"].tolist() == fitted.predict(X).tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # warnings of Spark
def test_a_spark_table_teaches_what_its_rows_would(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # else the first Python of the path
    sql = pytest.importorskip("pyspark.sql")
    rng = np.random.default_rng(0)
    t = rng.integers(3, size=3000)
    frame = pd.DataFrame(
        {"x": rng.normal(t), "calls": rng.poisson(1.0 + t).astype(float), "bit": rng.random(3000) < 0.5}
    )
    frame["colour"], frame["kind"] = rng.choice(["red", "blue"], 3000), np.array(["a", "b", "c"])[t]
    classifier = bg.NaiveBayesClassifier({"calls": "poisson"})
    schema = classifier.row_schema(frame[:100], "kind", classes=["a", "b", "c"])

    def summed(batches):
        total = sum(schema.sum(batch) for batch in batches)
        yield pa.RecordBatch.from_pydict({"statistics": [pickle.dumps(total)]})

    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    try:
        table = spark.createDataFrame(frame).repartition(7)
        rows = table.mapInArrow(summed, "statistics binary").collect()
    finally:
        spark.stop()
    total = sum(pickle.loads(row.statistics) for row in rows)
    classifier.fit_statistics(schema.schema, total, schema.classes)
    X = frame.drop(columns="kind")
    equal(classifier, bg.NaiveBayesClassifier({"calls": "poisson"}).fit(X, frame["kind"]), X)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # warnings of Ray
def test_rows_on_ray_teach_what_they_teach_here(tmp_path):
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    rng = np.random.default_rng(0)
    t = rng.integers(3, size=3000)
    frame = pd.DataFrame({"x": rng.normal(t), "colour": rng.choice(["red", "blue"], 3000)})
    frame["kind"] = np.array(["a", "b", "c"])[t]
    for i in range(3):
        frame[1000 * i : 1000 * i + 1000].to_parquet(tmp_path / f"{i}.parquet")
    classifier = bg.NaiveBayesClassifier()
    schema = classifier.row_schema(frame[:100], "kind", classes=["a", "b", "c"])

    def summed(batch):
        return {"statistics": [pickle.dumps(schema.sum(batch))]}

    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=10**8)
    try:
        rows = ray.data.read_parquet(str(tmp_path)).map_batches(summed, batch_format="pyarrow", batch_size=700)
        total = sum(pickle.loads(row["statistics"]) for row in rows.iter_rows())
    finally:
        ray.shutdown()
    classifier.fit_statistics(schema.schema, total, schema.classes)
    X = frame.drop(columns="kind")
    equal(classifier, bg.NaiveBayesClassifier().fit(X, frame["kind"]), X)
