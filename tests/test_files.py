"""Files are whole or absent, and the contents of a crafted one are believed only as far as they fit."""

import errno
import json
import os
import resource
import socket
import stat
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fuzz_files import sealed
from refusals import refuses
from test_storage import FEATURES, GD, LINE, LOGIT, NB, forge, put, same, saved, table  # noqa: F401

import bayesgen as bg
from bayesgen.files import container, disk

RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(30, 2)), np.arange(30) % 2
FITTED = GD().fit(X, T)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


# -- saving


def test_a_new_file_is_as_the_umask_has_it(tmp_path, umask):
    FITTED.save(tmp_path / "model.safetensors")
    assert mode(tmp_path / "model.safetensors") == 0o640


@pytest.mark.parametrize("estimator", [LOGIT(inference="map"), LINE(noise="laplace", inference="map")])
def test_a_file_with_rows_is_for_its_owner(estimator, tmp_path):
    estimator.fit(X, T).save(tmp_path / "model.safetensors")
    assert mode(tmp_path / "model.safetensors") == 0o600


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o666])
def test_an_existing_file_keeps_its_mode(kept, tmp_path, umask):
    path = tmp_path / "model.safetensors"
    path.touch()
    path.chmod(kept)
    FITTED.save(path)
    assert mode(path) == kept
    same(bg.load(path), FITTED)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_an_existing_file_keeps_its_owner(tmp_path):
    path = tmp_path / "model.safetensors"
    path.touch()
    os.chown(path, 1234, 4321)
    FITTED.save(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(there, tmp_path):
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / "model.safetensors", tmp_path / "latest.safetensors"
    if there:
        target.touch()
    link.symlink_to("store/model.safetensors")
    FITTED.save(link)
    assert link.is_symlink() and os.readlink(link) == "store/model.safetensors" and not target.is_symlink()
    same(bg.load(target), FITTED)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["latest.safetensors", "model.safetensors", "store"]


def pipe(path):
    os.mkfifo(path)


def listening(path):
    with socket.socket(socket.AF_UNIX) as own:
        folder = os.open(path.parent, os.O_RDONLY)  # a path of a socket is short
        own.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)


def device(path):
    path.symlink_to("/dev/null")


@pytest.mark.parametrize(
    ("make", "kind"), [(os.mkdir, "a folder"), (pipe, "a named pipe"), (listening, "a socket"), (device, "a device")]
)
def test_only_regular_files_are_replaced_or_read(make, kind, tmp_path):
    path = tmp_path / "model.safetensors"
    make(path)
    before = path.stat()
    for act in (FITTED.save, bg.load):
        with pytest.raises(ValueError, match=rf"model\.safetensors: this is {kind}; expected a regular file"):
            act(path)
    assert path.stat().st_mode == before.st_mode and path.stat().st_ino == before.st_ino


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No such folder.*nowhere'"):
        FITTED.save(tmp_path / "nowhere" / "model.safetensors")


def test_twelve_saves_at_once(tmp_path):
    path, estimators = (
        tmp_path / "model.safetensors",
        [GD(priors=[p, 1 - p]).fit(X, T) for p in np.linspace(0.1, 0.9, 12)],
    )
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda estimator: estimator.save(path), estimators))
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]
    assert bg.load(path).priors in [estimator.priors for estimator in estimators]


def test_a_users_file_is_not_mistaken_for_a_temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda size: "taken")  # which of 64 random bits no name is
    users = [tmp_path / "model.safetensors.unfinished", tmp_path / ".bayesgen-taken.unfinished"]
    for path in users:
        path.write_text("mine")
    with pytest.raises(FileExistsError):
        FITTED.save(tmp_path / "model.safetensors")
    assert [path.read_text() for path in users] == ["mine", "mine"] and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), BrokenPipeError(), KeyboardInterrupt()]
)
@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
def test_what_goes_wrong_leaves_the_old_file(step, error, saved, monkeypatch):  # noqa: F811
    def fail(*arguments):
        raise error

    before = saved.read_bytes()
    monkeypatch.setattr(step, fail)
    with pytest.raises(type(error)) as told:
        FITTED.save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before and [path.name for path in saved.parent.iterdir()] == ["model.safetensors"]
    if isinstance(error, OSError) and error.errno:
        assert str(saved) in str(told.value)


def test_a_disk_that_is_full(saved):  # noqa: F811
    """As far as one can fill it: a limit on the size of a file makes the writing itself fail."""
    before, limit = saved.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        refuses(lambda: FITTED.save(saved), r"model\.safetensors", OSError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert saved.read_bytes() == before and len(list(saved.parent.iterdir())) == 1


def test_an_attribute_that_fit_does_not_set_is_not_saved(tmp_path):
    fitted = GD().fit(X, T)
    fitted.note_ = 3
    with pytest.raises(ValueError, match="a fitted GaussianDiscriminantClassifier has no attribute 'note_'"):
        fitted.save(tmp_path / "model.safetensors")


# -- what a crafted file says, under a checksum that fits


def array(name):
    return {"array": name}


def other(name):
    return {"object": name, "own": False, "fields": {}}


def labels(*items, dtype="O", shape=None):
    return {"labels": list(items), "dtype": dtype, "shape": [len(items)] if shape is None else shape}


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"list": [value]}
    return value


MODEL = ("fitted", "model_", "fields")
LEAF = (*MODEL, "gaussian", "fields")
CRAFTED = {
    "another format": (
        put("version", value=3),
        r"written in format 3 by bayesgen .*; this version reads format 5: read it with",
    ),
    "another estimator": (put("estimator", value="os.system"), "no estimator of bayesgen"),
    "no parameters": (put("parameters", value=[]), "no estimator of bayesgen"),
    "a parameter more": (put("parameters", "gravity", value=9.81), "no estimator of bayesgen"),
    "a parameter that is no array": (
        put("parameters", "inference", value=array("nothing")),
        "no estimator of bayesgen",
    ),
    "another class": (put("parameters", "inference", value=other("system")), "the class system"),
    "a leaf for an inference": (put("parameters", "inference", value=other("Louder")), "the class Louder"),
    "an attribute": (put("fitted", "predict", value=1), "has no attribute 'predict'"),
    "a special attribute": (put("fitted", "__class__", value=1), "has no attribute '__class__'"),
    "an attribute less": (lambda s: s["fitted"].pop("model_"), "needs the attribute 'model_'"),
    "a parameter less": (lambda s: s["parameters"].pop("prior"), "has these parameters"),
    "nested": (put("parameters", "prior", value=nested(100)), "nested more than 64 deep"),
    "nested deeper": (put("parameters", "prior", value=nested(400)), "nested more than 64 deep|recursion"),
    "an unknown tag": (put("parameters", "prior", value={"pickle": "gASV"}), "nothing is written as"),
    "two tags": (put("parameters", "prior", value={"list": [], "tuple": []}), "nothing is written as"),
    "a word for a number": (put("parameters", "prior", value={"float": "1e9"}), "no estimator of bayesgen does"),
    "a list of letters": (put("parameters", "prior", value={"list": "abc"}), "expected a list"),
    "a key that is a list": (put("parameters", "prior", value={"dict": [[{"list": []}, 1]]}), "no estimator of"),
    "labels, too few": (put("fitted", "classes_", value=labels(1, 2, shape=[10**12])), "2 labels are declared"),
    "labels, too wide": (put("fitted", "classes_", value=labels("a", "b", dtype="<U999999999")), "too large"),
    "labels of another type": (put("fitted", "classes_", value=labels(1, 2, dtype="V10")), "2 labels are declared"),
    "classes twice": (put("fitted", "classes_", value=labels(1, 1, 3)), "classes_ are not distinct"),
    "classes of lists": (put("fitted", "classes_", value=labels({"list": []}, dtype="O")), "no estimator of"),
    "other classes": (put("fitted", "classes_", value=labels(1, 3, 8)), "has other classes than classes_"),
    "classes that are none": (put("fitted", "classes_", value=3), "no array of labels"),
    "columns, a word": (put("fitted", "n_features_in_", value="3"), "no number of columns"),
    "columns, too many": (put("fitted", "n_features_in_", value=10**12), "has not 1000000000000 columns"),
    "names, too few": (put("fitted", "feature_names_in_", value=labels("a")), "are not 3 names"),
    "a model that is none": (put("fitted", "model_", value=3), "model_ is a int"),
    "a posterior that is none": (put("fitted", "posterior_", value=3), "posterior_ is a int"),
    "a block without columns": (
        put("fitted", "schema_", "fields", "blocks", "tuple", 0, "fields", "columns", value={"tuple": []}),
        "a block of schema_ has no column",
    ),
    "categories under a leaf of numbers": (
        put("fitted", "schema_", "fields", "blocks", "tuple", 0, "fields", "categories", value={"tuple": []}),
        "has not the categories of its leaf",
    ),
    "categories that cannot be looked up": (
        put(*MODEL, "classes", "fields", "categories", value={"tuple": [1, 3, {"list": []}]}),
        "no estimator of bayesgen does: TypeError",
    ),
    "a schema that is none": (put("fitted", "schema_", value="columns"), "schema_ is a str"),
    "statistics that are none": (put("fitted", "statistics_", value="sums"), "no estimator of bayesgen does"),
    "a class in another place": (put("fitted", "model_", value=other("Exact")), "model_ is a Exact"),
    "a field less": (lambda s: s["fitted"]["model_"]["fields"].pop("shared"), "GaussianDiscriminant has the fields"),
    "a field more": (put(*MODEL, "power", value=2), "GaussianDiscriminant has the fields"),
    "a field of another type": (put(*MODEL, "covariance", value=7), "covariance a value of the wrong type"),
    "a hyperparameter of another type": (put(*LEAF, "mean", value="0"), "mean a value of the wrong type"),
    "a hyperparameter of another shape": (
        put(*LEAF, "mean", value=array("posterior_.model.gaussian.mean")),
        "shapes of prior",
    ),
    "a hyperparameter not finite": (put(*LEAF, "kappa", value={"float": "nan"}), "kappa must be finite"),
    "as many categories as you like": (
        put(*MODEL, "classes", "fields", "categories", value=10**12),
        "categories a value of the wrong type",
    ),
    "an array that is not there": (put("fitted", "classes_", value=array("none")), "no estimator of bayesgen does"),
}


@pytest.mark.parametrize("kind", CRAFTED)
def test_what_a_crafted_file_says_is_checked(kind, saved):  # noqa: F811
    change, words = CRAFTED[kind]
    forge(saved, change)
    refuses(lambda: bg.load(saved), rf"model\.safetensors: .*({words})")


def headed(path, change):
    """Rewrite the header of a file; its checksum fits what it said before."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little") + 8
    header = json.loads(content[8:size])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[size:])


def entry(**changes):
    return lambda header: header["classes_"].update(changes)


HEADERS = {
    "more than the file holds": (entry(shape=[1 << 40], data_offsets=[0, 1 << 43]), "the file is damaged"),
    "a size that overflows": (entry(shape=[1 << 40, 1 << 40, 1 << 40]), "the file is damaged"),
    "an array over another": (lambda header: header.update(more=header["classes_"]), "the file is damaged"),
    "another shape": (entry(shape=[1, 3]), "does not fit its checksum"),
    "another type": (entry(dtype="U64"), "does not fit its checksum"),
    "numbers that NumPy has not": (entry(dtype="F8_E5M2", shape=[24]), "the file is damaged"),
    "complex numbers": (entry(dtype="C64"), "does not fit its checksum"),
    "axes without end": (entry(shape=[3] + [1] * 100), "the file is damaged"),
    "words that are no text": (
        lambda header: header["__metadata__"].update(bayesgen=3),
        "not a file that bayesgen has saved",
    ),
    "other words before it": (
        lambda header: header.update(__metadata__={"a": "b", **header["__metadata__"]}),
        "not a file that bayesgen has saved",
    ),
    "a text that does not end": (lambda header: header.clear(), "not a file that bayesgen has saved"),
    "arrays without end": (
        lambda header: header.update({f"a{i}": {"shape": [0]} for i in range(1 << 17)}),
        "it has more than 131072 arrays",
    ),
    "no words": (lambda header: header.pop("__metadata__"), "not a file that bayesgen has saved"),
    "no text": (lambda header: header["__metadata__"].pop("bayesgen"), "not a file that bayesgen has saved"),
    "no digest": (lambda header: header.update(other=header.pop("sha256")), "not a file that bayesgen has saved"),
    "another text": (lambda header: header["__metadata__"].update(bayesgen="{}"), "does not fit its checksum"),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_what_a_crafted_header_says_is_checked(kind, saved):  # noqa: F811
    change, words = HEADERS[kind]
    headed(saved, change)
    refuses(lambda: bg.load(saved), rf"model\.safetensors: .*{words}")


def test_arrays_of_other_numbers_are_refused(saved):  # noqa: F811
    forge(saved, arrays={"classes_": np.ones(3, np.complex64)})
    refuses(lambda: bg.load(saved), "the array 'classes_' is of complex64 numbers")


def test_a_byte_that_is_no_bool_is_true(saved):  # noqa: F811
    content = container.pack({}, {"a": np.array([0, 1, 7], np.uint8).view(bool)})
    arrays = container.unpack(content)[1]
    assert arrays["a"].view(np.uint8).tolist() == [0, 1, 1]


def test_a_header_too_long(saved, monkeypatch):  # noqa: F811
    refuses(lambda: container._bounded(b"[" * (1 << 24)), "more than 100 MB, or 8388608 values")
    for text, words in (("[]", "no JSON object"), ('{"x": NaN}', "NaN is no JSON"), ("{" * 10**5, "no JSON")):
        with pytest.raises(ValueError, match=words):
            container.unpack(sealed(text, {}))
    monkeypatch.setattr(container, "_HEADER", 1000)
    refuses(lambda: FITTED.save(saved), "more than")


def test_a_sparse_file_of_any_size_is_refused_before_memory_is_asked_for(tmp_path):
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # of nothing: it takes no room
    refuses(lambda: bg.load(path), r"model\.safetensors: not a file that")
    with path.open("r+b") as file:
        file.truncate(50 * 10**9)
        file.write((100).to_bytes(8, "little") + b"{")
    refuses(lambda: bg.load(path), r"model\.safetensors: a file of 50 GB, where at most 17 GB are saved")


def test_what_would_not_be_read_again_is_not_saved(saved, monkeypatch):  # noqa: F811
    before = saved.read_bytes()
    monkeypatch.setattr(container, "_LARGEST", 1000)
    refuses(lambda: FITTED.save(saved), "keep fewer draws or fewer rows")
    assert saved.read_bytes() == before


def test_small_numbers_that_stand_for_many(tmp_path):
    """A hyperparameter (1000, 1) of a thousand categories is a million; of a million categories it is too much."""
    words = np.arange(20) % 2
    fitted = NB("multinomial").fit(np.eye(20, 20_000), words)
    fitted.save(tmp_path / "model.safetensors")  # as many columns as one likes are fine
    same(bg.load(tmp_path / "model.safetensors"), fitted)
    NB("categorical").fit(np.array([["p"], ["q"]], dtype=object), [0, 1]).save(tmp_path / "model.safetensors")
    leaf = ("fitted", "model_", "fields", "classes", "fields")

    def many(specification):
        put(*leaf, "alpha", value=array("alpha"))(specification)
        put(*leaf, "categories", value={"tuple": list(range(20_000))})(specification)

    forge(tmp_path / "model.safetensors", many, {"alpha": np.ones((10_000, 1))})
    refuses(lambda: bg.load(tmp_path / "model.safetensors"), "make more than 134217728 parameters")


# -- several files together


def everything(folder):
    """Return the contents of a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_that_are_put_together_replace_make_and_remove(tmp_path):
    old, link = tmp_path / "old", tmp_path / "link"
    old.write_bytes(b"before")
    old.chmod(0o640)
    (tmp_path / "gone").write_bytes(b"before")
    link.symlink_to("old2")
    (tmp_path / "old2").write_bytes(b"before")
    disk.write_together(
        {old: b"now", link: b"linked", tmp_path / "new": b"now", tmp_path / "gone": None, tmp_path / "never": None}
    )
    assert everything(tmp_path) == {"old": b"now", "old2": b"linked", "link": b"linked", "new": b"now"}
    assert link.is_symlink() and mode(old) == 0o640


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
@pytest.mark.parametrize("count", range(6))
def test_of_files_that_are_put_together_none_is_there_where_one_fails(step, error, count, tmp_path, monkeypatch):
    for name in ("a", "b", "gone"):
        (tmp_path / name).write_bytes(b"before")
    before, calls, real = everything(tmp_path), [], getattr(os, step.removeprefix("os."))

    def fail(*arguments):
        calls.append(arguments)
        if len(calls) == 1 + count % (3 if step == "os.fsync" else 6):
            raise error
        return real(*arguments)

    monkeypatch.setattr(step, fail)
    with pytest.raises(type(error)):
        disk.write_together({tmp_path / n: b"now" for n in ("a", "new", "b")} | {tmp_path / "gone": None})
    monkeypatch.undo()
    assert everything(tmp_path) == before


def test_where_one_of_several_files_cannot_be_put_none_is(tmp_path):
    (tmp_path / "a").write_bytes(b"before")
    (tmp_path / "folder").mkdir()
    for last in ("folder", "none/b"):
        with pytest.raises((ValueError, OSError), match=r"a folder|No such folder"):
            disk.write_together({tmp_path / "a": b"now", tmp_path / last: b"now"})
        assert (tmp_path / "a").read_bytes() == b"before" and len(list(tmp_path.iterdir())) == 2


def test_an_error_of_what_is_read_is_not_said_to_be_of_what_is_written(tmp_path):
    with pytest.raises(OSError) as told, disk.writing(tmp_path / "p.csv"):
        raise OSError(errno.EIO, "Input/output error", "the input")
    assert told.value.filename == "the input" and not list(tmp_path.iterdir())
