"""A fit goes on from a checkpoint only where it is the same fit of the same rows; anything else is refused by name."""

import os
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from test_fit_statistics import WEIGHT, Y, mixed

import bayesgen as bg
from bayesgen.files import storage
from bayesgen.models import NormalInverseGamma
from bayesgen.tables.rows import RowSchema

NB, GD = bg.NaiveBayesClassifier, bg.GaussianDiscriminantClassifier
TABLE = mixed().assign(kind=Y, other=np.roll(Y, 7), weight=WEIGHT, heavy=WEIGHT[::-1])
FAMILIES = {"x": "gaussian"}
TARGET = {"target": "kind"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "on-the-way"


@pytest.fixture
def files(tmp_path):
    """Three Parquet files of two row groups each."""
    (tmp_path / "rows").mkdir()
    paths = [tmp_path / "rows" / f"{i}.parquet" for i in range(3)]
    for i, own in enumerate(paths):
        parquet.write_table(pa.Table.from_pandas(TABLE[20 * i : 20 * i + 20]), own, row_group_size=10)
    return paths


def interrupted(estimator, source, path, after=3, **arguments):
    """Break a fit off when so many parts were summed."""
    read, statistics = [], RowSchema.statistics

    def until(self, batch):
        read.append(len(batch))
        if len(read) > after:
            raise KeyboardInterrupt
        return statistics(self, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowSchema, "statistics", until)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit_batches(source, **TARGET | arguments, checkpoint=path, workers=1)
    assert path.exists()


def refused(source, path, message, estimator=None, **arguments):
    """A fit is refused, and its checkpoint stays; without the checkpoint it is not refused."""
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message) as told:
        (estimator or NB(FAMILIES)).fit_batches(source, **TARGET | arguments, checkpoint=path)
    assert re.search("delete (the checkpoint|it) to begin anew", str(told.value)) and str(path) in str(told.value)
    assert path.read_bytes() == before
    (estimator or NB(FAMILIES)).fit_batches(source, **TARGET | arguments)


def goes_on(source, path, estimator=None, **arguments):
    """Check that a fit goes on and equals the fit to all rows."""
    make = estimator or NB(FAMILIES)
    whole = bg.NaiveBayesClassifier(**make.get_params(deep=False)).fit_batches(source, **TARGET | arguments)
    read, statistics = [], RowSchema.statistics

    def counted(self, batch):
        read.append(len(batch))
        return statistics(self, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowSchema, "statistics", counted)
        make.fit_batches(source, **TARGET | arguments, checkpoint=path)
    assert not path.exists() and sum(read) < 60
    assert make.total_weight_ == pytest.approx(whole.total_weight_)
    assert make.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-12)


# -- the same call ---------------------------------------------------------------------------------------------------


def test_the_same_goes_on(files, path):
    interrupted(NB(FAMILIES), files, path)
    goes_on(files, path)


def test_a_setting_that_changes_no_sum_may_change(files, path):
    interrupted(NB(FAMILIES, random_state=np.random.RandomState(0)), files, path)
    goes_on(files, path, NB(FAMILIES, inference="map", random_state=1), sample_weight=None)


def test_a_folder_by_another_spelling_goes_on(files, path, monkeypatch):
    interrupted(NB(FAMILIES), files[0].parent, path)
    monkeypatch.chdir(path.parent)
    goes_on("rows", path)


class Own(NormalInverseGamma):
    """A leaf of the user."""


def test_a_leaf_of_the_user_goes_on(files, path):
    features = {**FAMILIES, "x": Own(0.0, 1.0, 2.0, 2.0)}
    interrupted(NB(features), files, path)
    goes_on(files, path, NB(features))


STREAMS = {
    "tables": lambda: [TABLE[i : i + 10] for i in range(0, 60, 10)],
    "an iterator": lambda: iter([pl.from_pandas(TABLE[i : i + 10]) for i in range(0, 60, 10)]),
    "a reader": lambda: pa.Table.from_pandas(TABLE).to_reader(10),
    "mappings": lambda: [{c: TABLE[c].to_numpy()[i : i + 10] for c in TABLE} for i in range(0, 60, 10)],
}


@pytest.mark.parametrize("source", STREAMS)
def test_what_stands_in_no_file_goes_on_if_it_gives_the_same_batches(source, path):
    known = NB(FAMILIES).fit_batches(STREAMS["tables"](), "kind")
    declared = {"schema": known.schema_, "classes": known.classes_}
    interrupted(NB(FAMILIES), STREAMS[source](), path, **declared)
    again = NB(FAMILIES).fit_batches(STREAMS[source](), "kind", checkpoint=path, **declared)
    assert again.log_evidence_ == pytest.approx(known.log_evidence_, rel=1e-12) and not path.exists()


def test_an_interrupt_between_two_statements_counts_no_part_twice(files, path, monkeypatch):
    """The sum and the list of its parts change at once: here the interrupt comes as soon as the sum is made."""
    from bayesgen.estimators import resuming

    after, calls = resuming._after, []

    def interrupting(marks, mark):
        calls.append(mark)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return after(marks, mark)

    monkeypatch.setattr(resuming, "_after", interrupting)
    with pytest.raises(KeyboardInterrupt):
        NB(FAMILIES).fit_batches(files, "kind", checkpoint=path, workers=1)
    monkeypatch.undo()
    goes_on(files, path)


# -- another call ----------------------------------------------------------------------------------------------------

ARGUMENTS = {
    "target": ({"target": "other"}, "the argument target= is another"),
    "weight": ({"sample_weight": "weight"}, "the argument sample_weight= is another"),
    "missing": ({"missing": ["red"]}, "the argument missing= is another"),
    "classes": ({"classes": ["a", "b", "c", "d"]}, "the argument classes= is another"),
}


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_another_argument_is_refused(argument, files, path):
    arguments, message = ARGUMENTS[argument]
    interrupted(NB(FAMILIES), files, path)
    refused(files, path, message, **arguments)


def test_another_of_two_arguments_is_refused(files, path):
    interrupted(NB(FAMILIES), files, path, sample_weight="weight", classes=["a", "b", "c"])
    refused(files, path, "sample_weight= is another", sample_weight="heavy", classes=["a", "b", "c"])
    refused(files, path, "classes= is another", sample_weight="weight", classes=["a", "b", "c", "d"])


def test_another_schema_is_refused(files, path):
    known = NB(FAMILIES).fit_batches(files, "kind")
    without = NB({**FAMILIES, "x": "drop"}).fit_batches(files, "kind")
    interrupted(NB(FAMILIES), files, path, schema=known.schema_, classes=known.classes_)
    refused(files, path, "schema= is another", schema=without.schema_, classes=known.classes_)
    refused(files, path, "schema= is another", classes=known.classes_)


def test_other_settings_are_refused(files, path):
    interrupted(NB(FAMILIES), files, path)
    refused(files, path, "the classifier's features= is another", NB({**FAMILIES, "x": "drop"}))
    refused(files, path, "the classifier's exponent= is another", NB(FAMILIES, exponent=0.5))
    prior = np.full(2000, 1.0)
    prior[1000] += 1e-12  # which no repr shows
    digests = {storage.digest(NormalInverseGamma(np.zeros(2000), 1.0, p, 1.0), "x") for p in (prior, prior.round(6))}
    assert len(digests) == 2


def test_another_estimator_is_refused(tmp_path, path):
    table = TABLE[["x", "kind"]]
    tables = [table[i : i + 10] for i in range(0, 60, 10)]
    interrupted(NB(), tables, path)
    refused(tables, path, "of a NaiveBayesClassifier, not a GaussianDiscriminantClassifier", GD("diagonal"))


def test_other_files_are_refused(files, path):
    interrupted(NB(FAMILIES), files, path)
    refused(files[:2], path, r"it read .*2\.parquet, which is not read now")
    refused(files[::-1], path, "the files come in another order")
    more = files[0].with_name("3.parquet")
    more.write_bytes(files[0].read_bytes())
    refused([*files, more], path, r"it did not read .*3\.parquet")
    refused(files[0].parent, path, r"it did not read .*3\.parquet")


def test_a_parquet_file_of_other_row_groups_is_refused(files, path):
    interrupted(NB(FAMILIES), files, path)
    found = files[0].stat()
    parquet.write_table(pa.Table.from_pandas(TABLE[:20]), files[0], row_group_size=5)
    os.utime(files[0], ns=(found.st_atime_ns, found.st_mtime_ns))
    refused(files, path, r"0\.parquet has changed \(.*footer")


def test_a_parquet_file_of_other_rows_as_many_and_as_large_is_refused(files, path):
    """Size, time and row groups are as before; the footer says where columns begin and what they hold."""
    table = pd.DataFrame({"x": np.arange(60.0), "kind": ["a", "b"] * 30})
    how = {"row_group_size": 10, "compression": "none", "use_dictionary": False}
    parquet.write_table(pa.Table.from_pandas(table), files[0], **how)
    found = files[0].stat()
    interrupted(NB(), files[0], path)
    parquet.write_table(pa.Table.from_pandas(table.assign(x=table.x[::-1].to_numpy() + 0.5)), files[0], **how)
    os.utime(files[0], ns=(found.st_atime_ns, found.st_mtime_ns))
    assert files[0].stat().st_size == found.st_size
    refused(files[0], path, r"0\.parquet has changed \(footer\)", NB())


def test_a_file_written_again_is_refused_by_its_time(files, path):
    interrupted(NB(FAMILIES), files, path)
    found = files[1].stat()
    os.utime(files[1], ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    refused(files, path, r"1\.parquet has changed \(time\)")


@pytest.fixture
def text(tmp_path, monkeypatch):
    """A CSV file that is read in several blocks."""
    from bayesgen.tables import fields

    monkeypatch.setattr(fields, "_BYTES", 1 << 10)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.integers(10, 99, 4000), "kind": rng.choice(["a", "b"], 4000)})
    table.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def test_a_csv_file_goes_on(text, path):
    interrupted(NB({"x": "gaussian"}), text, path)
    again = NB({"x": "gaussian"}).fit_batches(text, "kind", checkpoint=path)
    assert again.total_weight_ == 4000 and not path.exists()


@pytest.mark.parametrize("place", [0.0, 0.5, 1.0], ids=["beginning", "middle", "end"])
@pytest.mark.parametrize("kept", [True, False], ids=["same time", "later"])
def test_a_csv_file_of_the_same_size_is_refused(place, kept, text, path):
    interrupted(NB({"x": "gaussian"}), text, path)
    found, lines = text.stat(), text.read_text().splitlines()
    row = 1 + int(place * (len(lines) - 2))
    lines[row] = "10,b" if lines[row] != "10,b" else "11,b"
    text.write_text("\n".join(lines) + "\n")
    assert text.stat().st_size == found.st_size
    os.utime(text, ns=(found.st_atime_ns, found.st_mtime_ns + (not kept)))
    what = "beginning and end" if kept else "time, beginning and end"
    refused(text, path, rf"rows\.csv has changed \({what}\)", NB({"x": "gaussian"}))


def test_another_missing_word_of_csv_is_refused(text, path):
    interrupted(NB({"x": "gaussian"}), text, path)
    refused(text, path, "the argument missing= is another", NB({"x": "gaussian"}), missing=["10"])


CHANGED = {
    "an entry": lambda tables: [tables[0].assign(x=tables[0]["x"] + (np.arange(10) == 5)), *tables[1:]],
    "the order": lambda tables: [tables[1], tables[0], *tables[2:]],
    "the cuts": lambda tables: [pd.concat(tables[:2]), *tables[2:]],
    "a category": lambda tables: [
        t.assign(colour=t["colour"].cat.rename_categories({"red": "blue", "blue": "red"})) for t in tables
    ],
    "a label": lambda tables: [tables[0].assign(kind=tables[0]["kind"].to_numpy()[::-1]), *tables[1:]],
}


@pytest.mark.parametrize("change", CHANGED)
def test_other_tables_are_refused(change, path):
    tables = STREAMS["tables"]()
    interrupted(NB(FAMILIES), tables, path)
    other = CHANGED[change](tables)
    refused(other, path, "its first 3 parts are not those that were summed")
    refused(pl.from_pandas(pd.concat(other)), path, "of another source|of another fit|summed 3 parts of 1")


def test_other_arrays_are_refused(path):
    x = np.random.default_rng(0).normal(size=(60, 2))
    pieces = [(x[i : i + 10], Y[i : i + 10]) for i in range(0, 60, 10)]
    interrupted(GD("diagonal"), pieces, path, target=None)
    other = [(x[i : i + 10] * 2, Y[i : i + 10]) for i in range(0, 60, 10)]
    refused(other, path, "its first 3 parts are not those", GD("diagonal"), target=None)


def test_fewer_tables_than_were_summed_are_refused(path):
    tables = STREAMS["tables"]()
    interrupted(NB(FAMILIES), tables, path, after=5)
    refused(tables[:4], path, "has summed 5 parts of 4")


# -- made up ----------------------------------------------------------------------------------------------------------


def crafted(path, **changes):
    """Write a checkpoint anew with other values; values of `None` are left out."""
    values = storage.read_checkpoint(path, {})
    storage.write_checkpoint(path, {name: value for name, value in (values | changes).items() if value is not None})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("done", [None, 0, -1, 7, 10**9, 2.0, True, "3", [3]]),
        ("rows", [None, -1, 3.0, True, "30"]),
        ("marks", [None, 3, "", "0" * 64]),
        ("total", [None, 3, "sums", np.zeros(3)]),
        ("schema", [None, 3, ("x",), {"x": "gaussian"}]),
        ("classes", [None, ("a", "b", "c"), np.array(["a", "b"]), np.array(["b", "a", "c"]), np.zeros((3, 1))]),
        ("of", [None, {}, 3, {"estimator": "NaiveBayesClassifier"}, {"estimator": ["a"]}]),
        ("more", [3]),
    ],
)
def test_a_crafted_checkpoint_is_refused(name, values, files, path):
    interrupted(NB(FAMILIES), files, path)
    whole = path.read_bytes()
    for value in values:
        path.write_bytes(whole)
        crafted(path, **{name: value})
        refused(files, path, "this checkpoint|this is no checkpoint of bayesgen")


def test_crafted_sums_of_other_shapes_are_refused(files, path):
    from dataclasses import replace

    interrupted(NB(FAMILIES), files, path)
    whole, total = path.read_bytes(), storage.read_checkpoint(path, {})["total"]
    name = next(name for name, own in total.leaves.items() if type(own).__name__ == "Moments")
    moments = total.leaves[name]
    for other in (
        replace(total, squares=total.squares[:1]),
        replace(total, squares=total.squares * np.nan),
        replace(total, classes=replace(total.classes, base=np.zeros(3))),
        replace(total, leaves=total.leaves | {name: replace(moments, n=moments.n[:1])}),
        replace(total, leaves=total.leaves | {name: total.classes}),
        replace(total, leaves={"x": moments}),
        replace(total, schema="0" * 16),
        replace(total, schema=""),
    ):
        path.write_bytes(whole)
        crafted(path, total=other)
        refused(files, path, "no checkpoint of bayesgen: its sums are not those of its columns and classes")


def test_gaps_in_a_full_covariance_go_on(tmp_path, path):
    x = np.random.default_rng(0).normal(size=(60, 2))
    x[::4, 0], x[1::4, 1] = np.nan, np.nan
    pieces = [(x[i : i + 10], Y[i : i + 10]) for i in range(0, 60, 10)]
    interrupted(GD(inference="map"), pieces, path, target=None)
    again = GD(inference="map").fit_batches(pieces, checkpoint=path)
    np.testing.assert_allclose(again.predict_proba(x), GD(inference="map").fit(x, Y).predict_proba(x), rtol=1e-6)


@pytest.mark.parametrize("content", [b"", b"no checkpoint", None], ids=["empty", "text", "a saved model"])
def test_what_is_no_checkpoint_is_refused_and_kept(content, files, path):
    if content is None:
        NB(FAMILIES).fit_batches(files, "kind").save(path)
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="on-the-way: "):
        NB(FAMILIES).fit_batches(files, "kind", checkpoint=path)
    assert path.read_bytes() == before


def test_where_no_checkpoint_can_be_kept_nothing_is_read(files, tmp_path):
    def tables():
        raise AssertionError("a row was read")
        yield

    os.mkfifo(tmp_path / "pipe")
    for name, message in (("pipe", "a named pipe"), ("rows", "a folder"), ("none/a", "No such folder")):
        with pytest.raises((ValueError, OSError), match=message):
            NB().fit_batches(tables(), "kind", classes=["a", "b"], checkpoint=tmp_path / name)
    with pytest.raises(ValueError, match="it is the file that is read"):
        NB().fit_batches(files[0], "kind", checkpoint=files[0])
    assert parquet.read_metadata(files[0]).num_rows == 20


def test_a_file_that_a_fit_did_not_write_is_not_removed(files, path, monkeypatch):
    """Somebody puts a file where the checkpoint would be; the fit ends without having needed one."""
    statistics = RowSchema.statistics

    def slow(self, batch):
        path.write_text("mine")
        return statistics(self, batch)

    monkeypatch.setattr(RowSchema, "statistics", slow)
    NB(FAMILIES).fit_batches(files, "kind", checkpoint=path)
    assert path.read_text() == "mine"
