"""Checks an installed keras_rbm: no file that it needs was left out of the wheel.

Each data set's builder finds its description, citation and checksums; the generated
sets are made and read. A model is fitted, saved and loaded.
"""

import importlib
import pathlib
import sysconfig
import tempfile

import keras
import numpy as np
import tensorflow_datasets as tfds

import keras_rbm as kr
from keras_rbm.datasets.loading import _SOURCES

GENERATED = ("digits", "bars_and_stripes", "shifting_bar")


def main():
    """Checks all of it."""
    place = pathlib.Path(kr.__file__).resolve()
    packages = pathlib.Path(sysconfig.get_paths()["purelib"]).resolve()
    assert packages in place.parents, f"{place} is not that of the wheel"
    with tempfile.TemporaryDirectory() as folder:
        for name, source in _SOURCES.items():
            check_builder(name, source, folder)
        for name in GENERATED:
            rows = len(list(kr.datasets.load(name, data_dir=folder)))
            print(f"{name}: {rows} examples")
        check_model(kr.datasets.load("digits", data_dir=folder), folder)
    print(f"{len(_SOURCES) + 1} passed, 0 failed")


def check_builder(name, source, folder):
    """Makes a set's builder, and looks at what it reads from files beside it."""
    if source.is_ours:
        cls = importlib.import_module(f"keras_rbm.datasets.{name}").Builder
        assert tfds.builder_cls(name) is cls
    else:
        cls = tfds.builder_cls(name)
    config = cls.make_config() if source.options else None
    builder = cls(data_dir=folder, config=config)
    assert len(builder.info.description) > 40, name
    assert "@" in builder.info.citation, name
    if name == "caltech101_silhouettes":
        assert builder.url_infos, name
    print(f"{name}: builder {builder.info.full_name}")


def check_model(data, folder):
    """Fits, saves and loads a model."""
    images = np.stack(list(data.as_numpy_iterator()))
    rbm = kr.RBM(16, seed=0)
    rbm.compile("sgd")
    rbm.fit(images, verbose=0)
    path = pathlib.Path(folder) / "rbm.keras"
    rbm.save(path)
    loaded = keras.saving.load_model(path)
    np.testing.assert_array_equal(loaded(images[:5]), rbm(images[:5]))
    print("fit, save and load")


if __name__ == "__main__":
    main()
