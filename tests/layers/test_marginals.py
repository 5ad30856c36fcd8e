"""The layer that takes the place of a sigmoid."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from same import refused
from small_models import compiled, quick, reloaded

import keras_rbm as kr
from keras_rbm.inference import BeliefPropagation, Exact, MeanField, Potentials
from keras_rbm.layers import Marginals

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(5, 3, 4, 1)).astype("float32")


def random_layer(*shapes):
    layer = Marginals(3)
    layer.build(shapes[0] if len(shapes) == 1 else list(shapes))
    for variable in (layer.kernel, layer.hidden_bias):
        variable.assign(RNG.normal(size=variable.shape))
    return layer


def test_without_coupling_it_is_a_sigmoid():
    layer = Marginals(10, kernel_initializer="zeros")
    assert isinstance(layer.inference, BeliefPropagation)
    found = layer(IMAGES)
    assert found.shape == IMAGES.shape
    np.testing.assert_allclose(found, keras.ops.sigmoid(IMAGES), atol=1e-6)


@pytest.mark.parametrize("pair", [False, True])
def test_marginals_are_those_of_the_model(pair):
    layer = random_layer(*([(5, 3, 4, 1), (5, 3)] if pair else [(5, 12)]))
    assert isinstance(layer.inference, Exact)  # as there are few hidden units
    visible, hidden = IMAGES.reshape(5, 12), RNG.normal(size=(5, 3)).astype("float32")
    found = layer([IMAGES, hidden] if pair else visible)
    biases = visible, layer.hidden_bias + (hidden if pair else 0.0)
    potentials = Potentials(*map(tf.convert_to_tensor, (layer.kernel, *biases)))
    exact = kr.inference.exact_moments(potentials).visible.bias
    np.testing.assert_allclose(np.reshape(found, (5, 12)), exact, atol=1e-5)


INFERENCE = {
    "belief propagation": BeliefPropagation(max_iterations=5),
    "mean field": MeanField(starts=["independent"]),
    "exact": "exact",
}


@pytest.mark.usefixtures("traced", "compiled_inference")
@pytest.mark.parametrize("name", quick(INFERENCE, "exact"))
def test_a_network_learns_saves_and_exports(name, tmp_path):
    """Outputs that must agree: independent ones can only predict their mean."""
    keras.utils.set_random_seed(0)
    x = RNG.normal(size=(64, 2)).astype("float32")
    y = np.repeat(x[:, :1] + 0.5 * RNG.normal(size=(64, 1)) > 0, 9, 1).astype("float32")
    inputs = keras.Input((2,))
    head = Marginals(9, INFERENCE[name], kernel_regularizer="l2", seed=0)
    model = keras.Model(inputs, head(keras.layers.Dense(9)(inputs)))
    compiled(model, keras.optimizers.Adam(0.05), "binary_crossentropy")
    loss = model.fit(x, y, batch_size=20, epochs=3, verbose=0).history["loss"]
    assert loss[-1] < loss[0]
    again, found = reloaded(model, tmp_path), model.predict(x, verbose=0)
    np.testing.assert_array_equal(again.predict(x, verbose=0), found)
    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    np.testing.assert_allclose(exported.serve(x), found, atol=1e-6)
    assert keras.models.clone_model(model).layers[-1].hidden_units == 9


def test_half_precision_has_outputs_of_its_type():
    layer = Marginals(3, dtype="mixed_bfloat16", seed=0)
    assert layer(IMAGES).dtype == "bfloat16"
    assert layer.kernel.dtype == "float32"


NARROW = [np.zeros((4, 6)), np.zeros((4, 1))]
REFUSALS = [
    (lambda: Marginals(0), "hidden_units"),
    (lambda: Marginals(3, "max_product"), "yields marginals"),
    (lambda: Marginals(3, MeanField(starts=["input"])), "given biases"),
    (lambda: Marginals(3, kernel_initializer="nothing"), "kernel_initializer"),
    (lambda: Marginals(3, kernel_regularizer="nothing"), "kernel_regularizer"),
    (lambda: Marginals(3)(keras.Input((None, 3))), "a known number"),
    (lambda: Marginals(3)(np.zeros(4)), "a known number"),
    (lambda: Marginals(3)([IMAGES, np.zeros((5, 2))]), "hidden biases of shape"),
    (lambda: random_layer((5, 6))(np.zeros((4, 12))), "biases of 6"),
    (lambda: random_layer((5, 6), (5, 3))(NARROW), "hidden biases of shape"),
]


@pytest.mark.parametrize(("make", "words"), REFUSALS)
def test_errors_say_what_to_do(make, words):
    with refused(words):
        make()
