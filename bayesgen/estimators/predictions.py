"""Predictions as tables, for rows in memory and for rows in batches, yielded or written to a file."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesgen.estimators.progress import bar
from bayesgen.estimators.workers import in_order
from bayesgen.files import disk
from bayesgen.tables.batches import DaskParts, Job, located
from bayesgen.tables.files import PARQUET
from bayesgen.tables.rows import columns_of
from bayesgen.tables.sources import kinds_of, source_of


def predict_batches(estimator, data, output, missing, progress, workers) -> Any:
    """Do `Estimator.predict_batches`, where the arguments are documented."""
    check_is_fitted(estimator)
    schema, named = estimator.schema_, hasattr(estimator, "feature_names_in_")
    columns, source = list(schema.columns), source_of(data, [*missing, *schema.missing])
    if isinstance(source, DaskParts) and hasattr(data, "map_partitions") and output is None:
        return data.map_partitions(_of_partition, estimator, columns, named, meta=_none(estimator))
    source.declare(kinds_of(schema))

    def predicted(job: Job):
        with located(job.place):
            found = [predictions(estimator, columns_of(batch, columns, named)) for batch in job.read() if len(batch)]
        return found

    def numbered():
        row = 0
        with bar("rows", source.rows, progress) as advance:
            for found in in_order(source.jobs(columns), predicted, workers):
                for frame in found:
                    frame.insert(0, "row", np.arange(row, row + len(frame)))
                    row += len(frame)
                    advance(len(frame))
                    yield frame

    return numbered() if output is None else _written(numbered(), Path(output), source.paths)


def predictions(estimator, X):
    """Return class and probabilities of rows, or mean and standard deviation, as a DataFrame."""
    import pandas as pd

    if not hasattr(estimator, "predict_proba"):
        mean, sd = estimator.predict(X, return_std=True)
        return pd.DataFrame({"prediction": mean, "sd": sd})
    probability, classes = estimator.predict_proba(X), estimator.classes_
    columns = {f"p_{c}": p for c, p in zip(classes.tolist(), probability.T, strict=True)}
    return pd.DataFrame({"class": classes[probability.argmax(1)]} | columns)


def _of_partition(frame, estimator, columns, named):
    """Return the predictions of a partition of a Dask DataFrame, with its index."""
    if not len(frame):
        return _none(estimator)
    return predictions(estimator, columns_of(frame, columns, named)).set_index(frame.index)


def _none(estimator):
    """Return an empty table of predictions."""
    import pandas as pd

    names = ["prediction", "sd"]
    if hasattr(estimator, "classes_"):
        names = ["class", *(f"p_{c}" for c in estimator.classes_.tolist())]
    empty = pd.DataFrame({name: np.empty(0) for name in names})
    return empty.astype({"class": pd.Series(estimator.classes_[:1]).dtype}) if "class" in names else empty


def _written(frames, path: Path, inputs: Iterable) -> int:
    """Write frames to a Parquet or CSV file, batch by batch, as a whole or not at all; return the number of rows."""
    import pyarrow as pa
    from pyarrow import parquet

    kind = path.suffix.lower()
    if kind not in (*PARQUET, ".csv"):
        raise ValueError(f"{path}: give a name that ends in .parquet or .csv")
    writer, count = None, 0
    with disk.writing(path, inputs) as file, contextlib.ExitStack() as closing:
        for frame in frames:
            if kind == ".csv":
                frame.to_csv(file, index=False, header=not count)
            else:
                table = pa.Table.from_pandas(frame, preserve_index=False)
                writer = writer or closing.enter_context(parquet.ParquetWriter(file, table.schema))
                writer.write_table(table)
            count += len(frame)
        if not count:
            raise ValueError("the source has no rows: there is nothing to predict")
    return count
