"""Files are written whole or not at all, and loaded whole or not at all."""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from same import assert_same, refused, unchanged
from small_models import binary, compiled, fitted as after_fit, slow

from keras_rbm import CRBM, DBN, RBM, InfiniteRBM

pytestmark = pytest.mark.faults

DATA = binary()


def fitted(seed=0, **kwargs):
    rbm = RBM(4, seed=seed, **kwargs)
    return after_fit(compiled(rbm, keras.optimizers.Adam(0.01), rule="pcd"), DATA)


def names_in(folder):
    return [file.name for file in folder.iterdir()]


@pytest.fixture
def full_disk():
    """Returns a function after which no file can grow beyond some bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("size", [0, 1000, *map(slow, range(2000, 20000, 1000))])
def test_full_disk(size, tmp_path, full_disk):
    rbm, path = fitted(), tmp_path / "model.keras"
    rbm.save(path)
    before = path.read_bytes()
    after_fit(rbm, DATA)
    full_disk(min(size, len(before) - 1))
    with pytest.raises(OSError):
        rbm.save(path)
    assert path.read_bytes() == before
    assert names_in(tmp_path) == [path.name]


def test_what_a_killed_process_has_left_is_removed(tmp_path):
    """But not what another may still write, or other files."""
    path = tmp_path / "model.keras"
    names = [".0123abcd-model.keras", ".89abcdef-model.keras", ".01234567-a.keras"]
    names += [".snapshot-model.keras"]
    for name in names:
        (tmp_path / name).touch()
    hours_ago = time.time() - 7200.0
    os.utime(tmp_path / names[0], (hours_ago, hours_ago))
    for name in names[2:]:
        os.utime(tmp_path / name, (hours_ago, hours_ago))
    fitted().save(path)
    assert sorted(names_in(tmp_path)) == sorted([*names[1:], path.name])


_SAVE_WEIGHTS = """
import resource, signal, sys
import keras_rbm
rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
rbm.save_weights(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
rbm.kernel.assign(rbm.kernel + 1.0)
rbm.save_weights(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.parametrize("size", [0, 3000, 9000])
def test_full_disk_in_a_process_of_its_own(size, tmp_path):
    """HDF5 may end the process with a segmentation fault: the old file is whole."""
    path = tmp_path / "model.weights.h5"
    run = subprocess.run([sys.executable, "-c", _SAVE_WEIGHTS, path, str(size)])
    assert run.returncode != 0
    rbm = RBM(4, num_visible=6, seed=1)
    rbm.load_weights(path)
    np.testing.assert_array_equal(rbm.kernel, RBM(4, num_visible=6, seed=0).kernel)


def test_export_over_another_and_one_that_fails(tmp_path, full_disk):
    rbm, path = fitted(), tmp_path / "served"
    rbm.export(path)
    rbm.export(str(path))
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    full_disk(100)
    with pytest.raises((OSError, tf.errors.OpError)):
        rbm.export(path)
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before
    assert names_in(tmp_path) == ["served"]


def test_whoever_reads_meanwhile_sees_a_whole_file(tmp_path, monkeypatch):
    rbm, path = fitted(), tmp_path / "model.keras"
    rbm.save(path)
    seen = []
    save = type(rbm).save_own_variables

    def reading(self, store):
        seen.append(keras.saving.load_model(path))
        save(self, store)

    monkeypatch.setattr(RBM, "save_own_variables", reading)
    rbm.save(path)
    assert seen and isinstance(seen[0], RBM)


@pytest.mark.parametrize("name", ["best.keras", "best.weights.h5"])
def test_model_checkpoint_writes_beside(name, tmp_path, monkeypatch):
    renamed, replace = [], pathlib.os.replace
    monkeypatch.setattr(
        "os.replace", lambda a, b: renamed.append(pathlib.Path(b).name) or replace(a, b)
    )
    options = {"save_weights_only": "weights" in name}
    keep = keras.callbacks.ModelCheckpoint(tmp_path / name, **options)
    after_fit(compiled(RBM(4, seed=0)), DATA, callbacks=[keep])
    assert renamed == [name]


def test_refused_weights_change_nothing(tmp_path):
    rbm, path = fitted(), tmp_path / "other.weights.h5"
    after_fit(compiled(RBM(5, seed=0), rule="pcd"), DATA).save_weights(path)
    with refused("Nothing was loaded", rbm):
        rbm.load_weights(path)
    dbn = DBN([rbm, RBM(3, seed=1)])
    after_fit(compiled(DBN([4, 2], seed=0)), DATA).save_weights(path)
    with unchanged(rbm), refused("could not be loaded"):
        dbn.load_weights(path)


def test_another_kind_of_model_is_refused(tmp_path):
    grown = InfiniteRBM(4, seed=0)
    grown.build((None, 6))
    conditional = CRBM(4, num_visible=6, num_features=6)
    rbm, path = fitted(), tmp_path / "other.weights.h5"
    for other in (fitted(visible="gaussian"), grown, conditional):
        other.save_weights(path)
        with refused("model of one kind: RBM of Bernoulli", rbm):
            rbm.load_weights(path)


def test_a_subclass_loads_what_its_base_saved(tmp_path):
    class Mine(RBM):
        pass

    rbm, mine = fitted(), Mine(4, num_visible=6)
    rbm.save_weights(tmp_path / "a.weights.h5")
    mine.load_weights(tmp_path / "a.weights.h5")
    assert_same(mine.weights, rbm.weights)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.save("model.h5"), r"ends in '.keras'.*model.h5"),
        (lambda m: m.save_weights("model.h5"), r"ends in '.weights.h5'"),
        (lambda m: RBM(4).load_weights("a.weights.h5"), "built model in load_weights"),
    ],
)
def test_paths_that_are_none_of_ours(call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rbm = fitted()
    with refused(words, rbm):
        call(rbm)
    assert not names_in(tmp_path)
