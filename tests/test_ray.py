"""Rows on Ray: the eight lines of docs/howto/engines.md. It needs `pip install "ray[data]"`."""

import pickle

import numpy as np
import pandas as pd
import pytest
from test_batches import equal

import bayesgen as bg

pytestmark = pytest.mark.slow


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
