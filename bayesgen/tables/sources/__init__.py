"""Sources of batches: files of Parquet and CSV, Arrow streams, lazy frames, collections of Dask, iterators of tables.

A source gives jobs. A job is a part that can be read by itself on any thread, such as a row group of a Parquet file; it
has a name for messages, and yields batches small enough to stay in the cache. So memory does not grow with the rows.
"""

from bayesgen.tables.sources.base import Job, Source, told
from bayesgen.tables.sources.csv import kinds_of
from bayesgen.tables.sources.dask import DaskParts
from bayesgen.tables.sources.recognise import source_of

__all__ = ["DaskParts", "Job", "Source", "kinds_of", "source_of", "told"]
