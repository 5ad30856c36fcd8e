"""Images for TensorBoard, with the package and without it."""

import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from watched_training import assert_training_unchanged

import keras_rbm
from keras_rbm.callbacks import TensorBoardImages


@pytest.fixture
def data():
    return np.random.default_rng(0).integers(0, 2, (40, 12)).astype("float32")


@pytest.fixture
def written(monkeypatch):
    """Images that would be written, by (name, step), as if tensorboard were there."""
    images = {}

    def image(name, data, step):
        images[name, int(step)] = np.asarray(data)

    monkeypatch.setitem(sys.modules, "tensorboard", types.ModuleType("tensorboard"))
    monkeypatch.setattr(tf.summary, "image", image)
    return images


def compiled():
    rbm = keras_rbm.RBM(5, num_visible=12, seed=0)
    rbm.compile(keras.optimizers.SGD(0.1), rule="pcd")
    return rbm


def test_without_tensorboard_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match=r"pip install keras-rbm\[tensorboard\]"):
        TensorBoardImages("logs")


def test_writes_filters_and_samples(data, written, tmp_path):
    rbm = compiled()
    callback = TensorBoardImages(
        tmp_path, every=2, num_samples=4, steps=3, image_shape=(3, 4)
    )
    rbm.fit(data, epochs=5, callbacks=[callback], verbose=0)
    assert set(written) == {(n, e) for n in ("filters", "samples") for e in (1, 3)}
    # 5 filters in 3 columns and 2 rows, 4 samples in 2 by 2, a pixel between images.
    assert written["filters", 3].shape == (1, 2 * 4 + 1, 3 * 5 + 1, 3)
    assert written["samples", 3].shape == (1, 2 * 4 + 1, 2 * 5 + 1, 1)
    for images in written.values():
        assert images.min() >= 0.0 and images.max() <= 1.0


def test_filters_are_red_where_positive_and_blue_where_negative(
    data, written, tmp_path
):
    rbm = compiled()
    rbm.optimizer.learning_rate = 0.0
    kernel = np.zeros((12, 5), "float32")
    kernel[0, 0], kernel[1, 0] = 2.0, -2.0
    rbm.kernel.assign(kernel)
    rbm.fit(
        data, callbacks=[TensorBoardImages(tmp_path, image_shape=(3, 4))], verbose=0
    )
    image = written["filters", 0][0]
    np.testing.assert_allclose(image[1, 1], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(image[1, 2], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(image[1, 3], [1.0, 1.0, 1.0])


def test_chains_start_at_the_base_rate(data, written, tmp_path):
    rbm = compiled()
    callback = TensorBoardImages(
        tmp_path,
        num_samples=4,
        steps=0,
        image_shape=(3, 4),
    )
    rbm.fit(data, callbacks=[callback], verbose=0)
    start = rbm.sample(4, steps=0, seed=0)
    expected = rbm.reconstruct(start).numpy()[0].reshape(3, 4)
    np.testing.assert_allclose(
        written["samples", 0][0, 1:4, 1:5, 0], expected, rtol=1e-6
    )


def test_training_goes_on_as_without_it(data, written, tmp_path):
    assert_training_unchanged(
        compiled, data, TensorBoardImages(tmp_path, steps=2, image_shape=(3, 4))
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"every": 0}, "Received: every=0"),
        ({"num_samples": 0}, "Received: num_samples=0"),
        ({"steps": -1}, "Received: steps=-1"),
        ({}, "image_shape=None for 12 units"),
        ({"image_shape": (5, 5)}, r"image_shape=\(5, 5\)"),
    ],
)
def test_bad_arguments(data, written, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        callback = TensorBoardImages(tmp_path, **arguments)
        compiled().fit(data, callbacks=[callback], verbose=0)
    assert not written


def test_event_file_with_the_real_package(data, tmp_path):
    pytest.importorskip("tensorboard")
    callback = TensorBoardImages(tmp_path, num_samples=4, steps=2, image_shape=(3, 4))
    compiled().fit(data, callbacks=[callback], verbose=0)
    (path,) = (tmp_path / "images").iterdir()
    events = tf.compat.v1.train.summary_iterator(str(path))
    tags = {value.tag for event in events for value in event.summary.value}
    assert tags == {"filters", "samples"}


@pytest.mark.usefixtures("written")
def test_units_of_several_rows_are_refused_at_the_start(tmp_path):
    data = np.zeros((8, 4), "float32")
    rbm = keras_rbm.RBM(3, visible=keras_rbm.units.Categorical(3), seed=0)
    rbm.compile(keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match="12 rows of the kernel for 4 units"):
        rbm.fit(data, callbacks=[TensorBoardImages(tmp_path)], verbose=0)
    assert int(rbm.optimizer.iterations) == 0
