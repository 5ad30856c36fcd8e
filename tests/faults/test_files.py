"""Files are written whole or not at all, and loaded whole or not at all."""

import pathlib
import resource
import signal
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_rbm import CRBM, DBN, RBM, InfiniteRBM

pytestmark = pytest.mark.faults

DATA = np.random.default_rng(0).integers(0, 2, (40, 6)).astype("float32")


def fitted(seed=0, **kwargs):
    rbm = RBM(4, seed=seed, **kwargs)
    rbm.compile(keras.optimizers.Adam(0.01), rule="pcd")
    rbm.fit(DATA, verbose=0)
    return rbm


def everything(rbm):
    variables = [*rbm.weights, *rbm.optimizer.variables, *rbm.learner.variables]
    variables += [rbm.seed_generator.state]
    return [np.array(variable) for variable in variables]


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture
def full_disk():
    """Returns a function after which no file can grow beyond some bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


MORE = [pytest.param(n, marks=pytest.mark.slow) for n in range(2000, 20000, 1000)]


@pytest.mark.parametrize("size", [0, 1000, *MORE])
def test_full_disk(size, tmp_path, full_disk):
    rbm, path = fitted(), tmp_path / "model.keras"
    rbm.save(path)
    before = path.read_bytes()
    rbm.fit(DATA, verbose=0)
    full_disk(min(size, len(before) - 1))
    with pytest.raises(OSError):
        rbm.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


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


def test_export_that_fails(tmp_path, full_disk):
    rbm, path = fitted(), tmp_path / "served"
    rbm.export(path)
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    full_disk(100)
    with pytest.raises((OSError, tf.errors.OpError)):
        rbm.export(path)
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before
    assert [file.name for file in tmp_path.iterdir()] == ["served"]


def test_export_over_another(tmp_path):
    rbm = fitted()
    rbm.export(tmp_path / "served")
    rbm.export(str(tmp_path / "served"))
    assert [file.name for file in tmp_path.iterdir()] == ["served"]


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


@pytest.mark.parametrize("checkpoint", ["whole", "weights"])
def test_model_checkpoint_writes_beside(checkpoint, tmp_path, monkeypatch):
    renamed = []
    replace = pathlib.os.replace
    monkeypatch.setattr(
        "os.replace", lambda a, b: renamed.append(pathlib.Path(b).name) or replace(a, b)
    )
    name = "best.keras" if checkpoint == "whole" else "best.weights.h5"
    keep = keras.callbacks.ModelCheckpoint(
        tmp_path / name, save_weights_only=checkpoint == "weights"
    )
    rbm = RBM(4, seed=0)
    rbm.compile()
    rbm.fit(DATA, callbacks=[keep], verbose=0)
    assert renamed == [name]


def test_refused_weights_change_nothing(tmp_path):
    wide = RBM(5, seed=0)
    wide.compile(keras.optimizers.Adam(0.5), rule="pcd")
    wide.fit(DATA, epochs=3, verbose=0)
    wide.save_weights(tmp_path / "wide.weights.h5")
    rbm = fitted()
    before = everything(rbm)
    with pytest.raises(ValueError, match="Nothing was loaded"):
        rbm.load_weights(tmp_path / "wide.weights.h5")
    assert_same(before, everything(rbm))
    dbn = DBN([rbm, RBM(3, seed=1)])
    other = DBN([4, 2], seed=0)
    other.compile()
    other.fit(DATA, verbose=0)
    other.save_weights(tmp_path / "other.weights.h5")
    with pytest.raises(ValueError, match="could not be loaded"):
        dbn.load_weights(tmp_path / "other.weights.h5")
    assert_same(before, everything(rbm))


def test_another_kind_of_model_is_refused(tmp_path):
    gaussian = fitted(visible="gaussian")
    grown = InfiniteRBM(4, seed=0)
    grown.build((None, 6))
    conditional = CRBM(4, num_visible=6, num_features=6)
    rbm = fitted()
    before = everything(rbm)
    for number, other in enumerate((gaussian, grown, conditional)):
        path = tmp_path / f"{number}.weights.h5"
        other.save_weights(path)
        with pytest.raises(ValueError, match="model of one kind: RBM of Bernoulli"):
            rbm.load_weights(path)
    assert_same(before, everything(rbm))


def test_a_subclass_loads_what_its_base_saved(tmp_path):
    class Mine(RBM):
        pass

    rbm = fitted()
    rbm.save_weights(tmp_path / "a.weights.h5")
    mine = Mine(4, num_visible=6)
    mine.load_weights(tmp_path / "a.weights.h5")
    np.testing.assert_array_equal(mine.kernel, rbm.kernel)


def test_paths_that_are_none_of_ours(tmp_path):
    rbm = fitted()
    with pytest.raises(ValueError, match=r"ends in '.keras'.*model.h5"):
        rbm.save(tmp_path / "model.h5")
    with pytest.raises(ValueError, match=r"ends in '.weights.h5'"):
        rbm.save_weights(tmp_path / "model.h5")
    with pytest.raises(ValueError, match="built model in load_weights"):
        RBM(4).load_weights(tmp_path / "model.weights.h5")
    assert not any(tmp_path.iterdir())
