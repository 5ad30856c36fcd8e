"""Learning by a loss of the marginals, against enumeration."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import assert_equal, assert_same_weights
from random_models import randomize

import keras_rbm as kr
from keras_rbm.inference import BeliefPropagation, MeanField

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)).astype("float32")
Y = RNG.integers(0, 2, (30, 4)).astype("float32")
RATE = 0.01


def made(inference="exact", backbone=None, **compiled):
    """Returns a CRBM with random weights, compiled with SGD."""
    crbm = kr.CRBM(
        3,
        inference=inference,
        num_visible=4,
        kernel_regularizer=None,
        backbone=backbone,
        seed=0,
    )
    crbm.build(X.shape)
    compiled = compiled or {"loss": "binary_crossentropy"}
    randomize(crbm).compile(keras.optimizers.SGD(RATE), run_eagerly=True, **compiled)
    return crbm


@pytest.mark.parametrize(
    "inference",
    [BeliefPropagation(max_iterations=3), MeanField(max_iterations=3), "exact"],
)
def test_a_step_is_that_of_the_model_as_a_layer(inference):
    """Also through a backbone with Dropout, whose masks are those of training."""

    def backbone():
        dense = keras.layers.Dense(5, "tanh", name="dense")
        return keras.Sequential([dense, keras.layers.Dropout(0.3, seed=1)])

    crbm, layer = made(inference, backbone()), made(inference, backbone())
    crbm.train_on_batch(X, Y)
    with tf.GradientTape() as tape:
        losses = keras.losses.binary_crossentropy(Y, layer(X, training=True))
        loss = 4 * tf.reduce_mean(losses)
    variables = layer.trainable_variables
    keras.optimizers.SGD(RATE).apply(tape.gradient(loss, variables), variables)
    assert_equal(crbm.trainable_variables, variables, atol=1e-6)


@keras.saving.register_keras_serializable("tests")
def squared(targets, marginals):
    return tf.reduce_sum((targets - marginals) ** 2, -1)


@pytest.mark.parametrize("loss", ["mse", keras.losses.BinaryFocalCrossentropy, squared])
def test_any_keras_loss_is_saved_with_the_model(loss, tmp_path):
    crbm = made(loss=loss() if isinstance(loss, type) else loss)
    crbm.fit(X, Y, epochs=2, verbose=0)
    crbm.save(tmp_path / "crbm.keras")
    again = keras.models.load_model(tmp_path / "crbm.keras")
    values = [m.evaluate(X, Y, verbose=0) for m in (crbm, again)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    if loss == "mse":
        marginals = crbm.predict(X, verbose=0)
        assert values[0] == pytest.approx(np.mean((Y - marginals) ** 2), rel=1e-5)


def test_a_loss_of_each_unit_is_averaged():
    models = [made(loss="mse"), made(loss=lambda y, p: (y - p) ** 2)]
    losses = [crbm.train_on_batch(X, Y) for crbm in models]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert_same_weights(*models, atol=1e-7)


@pytest.mark.filterwarnings("error")
def test_a_loss_that_is_not_in_nats_is_no_divergence():
    crbm = kr.CRBM(3, num_visible=4, num_features=3, seed=0)
    crbm.compile("adam", "mape", run_eagerly=True)
    crbm.fit(X, Y, verbose=0)


@pytest.mark.usefixtures("traced", "compiled_inference")
@pytest.mark.slow
def test_one_row_is_enough():
    """Its number is known when the step is traced, that of its marginals is not."""
    crbm = kr.CRBM(10, inference=BeliefPropagation(max_iterations=3), seed=0)
    crbm.compile(loss="binary_crossentropy")
    x, y = np.zeros((1, 9), "float32"), np.ones((1, 9), "float32")
    history = crbm.fit(x, y, epochs=3, verbose=0).history
    assert np.isfinite(history["loss"]).all()


def test_the_lazy_way_learns():
    y = (X > 0).astype("float32")
    crbm = kr.CRBM(3, seed=0)
    crbm.compile(loss="binary_crossentropy", metrics=["binary_accuracy"])
    history = crbm.fit(X, y, epochs=30, verbose=0).history
    assert history["loss"][-1] < 0.4  # 0.69 without x
    assert history["binary_accuracy"][-1] > 0.9


def mean_of_all(targets, marginals):
    return tf.reduce_mean((targets - marginals) ** 2)


FROM_LOGITS = keras.losses.BinaryCrossentropy(from_logits=True)
OF_ROWS = keras.losses.BinaryCrossentropy(axis=0)


@pytest.mark.parametrize(
    ("compile", "word"),
    [
        (lambda: made(loss="mse", rule="cd"), "a rule or a loss"),
        (lambda: made(loss="no such loss"), "Keras loss"),
        (lambda: made("max_product"), "yields marginals"),
        (lambda: kr.CRBM(3, visible="gaussian").compile(loss="mse"), "binary units"),
        (lambda: kr.RBM(3).compile(loss="mse"), "no loss"),
        (lambda: made(loss=FROM_LOGITS), "from_logits"),
        (lambda: made(loss=OF_ROWS).train_on_batch(X, Y), "number for each example"),
        (lambda: made(loss=mean_of_all).train_on_batch(X, Y), "for each example"),
    ],
)
def test_losses_that_are_refused(compile, word):
    with pytest.raises(ValueError, match=word):
        compile()
