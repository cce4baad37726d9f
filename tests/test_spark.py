"""A Spark table on a local Spark: the eight lines of docs/howto/engines.md. It needs pyspark and a Java runtime."""

import pickle
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_batches import equal

import bayesgen as bg

pytestmark = pytest.mark.slow


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
