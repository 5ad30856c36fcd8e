"""A CRBM of one categorical unit: the discriminative RBM of Larochelle and Bengio."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rbm as kr
from keras_rbm import units


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)).astype("float32")
    return x, (x @ rng.normal(size=(4, 3))).argmax(1)


def model(**kwargs):
    crbm = kr.CRBM(5, visible=units.Categorical(3), seed=0, **kwargs)
    crbm.compile(metrics=["accuracy", kr.metrics.ExactMatch()])
    return crbm


def test_learns_classes():
    x, y = data()
    crbm = model()
    history = crbm.fit(x, y, epochs=40, batch_size=30, verbose=0)
    assert isinstance(crbm.inference, kr.inference.Exact)
    p = crbm.predict(x, verbose=0)
    assert p.shape == (60, 3)
    np.testing.assert_allclose(p.sum(1), 1.0, rtol=1e-5)
    right = np.mean(p.argmax(1) == y)
    assert right > 0.9
    found = crbm.evaluate(x, y, verbose=0, return_dict=True)
    assert found["accuracy"] == pytest.approx(right)
    assert found["exact_match"] == pytest.approx(right)
    log_p = np.log(p[np.arange(60), y])
    assert found["loss"] == pytest.approx(-log_p.mean(), abs=1e-4)
    scores = crbm.log_likelihood(x, y[:, np.newaxis], "exact")
    np.testing.assert_allclose(scores, log_p, atol=1e-4)
    np.testing.assert_array_equal(crbm.predict_map(x)[:, 0], p.argmax(1))
    assert history.history["loss"][-1] < history.history["loss"][0]


def test_gradient_is_exact():
    x, y = data()
    crbm = kr.CRBM(
        5,
        visible=units.Categorical(3),
        num_visible=1,
        num_features=4,
        seed=0,
        kernel_regularizer=None,
    )
    rng = np.random.default_rng(1)
    for weight in crbm.trainable_variables:
        weight.assign(rng.normal(size=weight.shape))
    crbm.compile(keras.optimizers.SGD(1.0))
    with tf.GradientTape() as tape:
        potentials = crbm.potentials(tf.constant(x))
        log_weights = tf.stack(
            [-potentials.free_energy(tf.fill((60, 1), float(k))) for k in range(3)], 1
        )
        loss = tf.reduce_mean(
            keras.ops.sparse_categorical_crossentropy(y, log_weights, from_logits=True)
        )
    exact = tape.gradient(loss, crbm.trainable_variables)
    before = crbm.get_weights()
    crbm.train_on_batch(x, y)
    names = [weight.path for weight in crbm.weights]
    for variable, gradient in zip(crbm.trainable_variables, exact, strict=True):
        old = before[names.index(variable.path)]
        np.testing.assert_allclose(old - variable, gradient, atol=1e-6)


def test_pipelines_of_labels():
    x, y = data()
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(30)
    crbm = model()
    crbm.fit(batches, epochs=2, verbose=0, validation_data=batches)
    assert crbm.num_visible == 1


def test_unknown_labels_teach_nothing():
    x, y = data()
    some = y.astype("float32")
    some[::3] = np.nan
    known = ~np.isnan(some)
    weights = []
    for pair in ((x, some), (x[known], some[known])):
        crbm = kr.CRBM(
            5,
            visible=units.Categorical(3),
            num_visible=1,
            num_features=4,
            seed=0,
            missing="latent",
        )
        crbm.compile(keras.optimizers.SGD(0.1))
        crbm.train_on_batch(*pair)
        weights.append(crbm.get_weights())
    for one, two in zip(*weights, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)


def test_class_weights_are_weights():
    x, y = data()
    weights = []
    for given in (
        {"class_weight": {0: 3.0, 2: 0.5}},
        {"sample_weight": np.array([3.0, 1.0, 0.5])[y]},
    ):
        crbm = model()
        crbm.fit(x, y, batch_size=60, verbose=0, **given)
        weights.append(crbm.get_weights())
    for one, two in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, two)
    rbm = kr.RBM(2, num_visible=4)
    rbm.compile()
    with pytest.raises(ValueError, match="class_weight"):
        rbm.fit(np.zeros((3, 4)), class_weight={0: 1.0})


@pytest.mark.parametrize("bad", [3.0, -1.0, 0.5])
def test_other_labels(bad):
    x, y = data()
    crbm = model(num_visible=1, num_features=4)
    before = crbm.get_weights()
    wrong = y.astype("float32")
    wrong[7] = bad
    with pytest.raises(ValueError, match="row 7"):
        crbm.fit(x, wrong, verbose=0)
    for one, two in zip(before, crbm.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_exact_inference_of_any_units():
    """Several small categorical outputs, against all states."""
    rng = np.random.default_rng(0)
    for hidden in ("bernoulli", "spin", "gaussian"):
        crbm = kr.CRBM(
            3,
            visible=units.Categorical(3),
            hidden=hidden,
            num_visible=2,
            num_features=2,
            seed=0,
        )
        for weight in crbm.trainable_variables:
            weight.assign(0.5 * rng.normal(size=weight.shape))
        assert isinstance(crbm.inference, kr.inference.Exact)
        x = np.float32([[0.3, -0.7]])
        states = np.float32(list(np.ndindex(3, 3)))
        energies = crbm.free_energy(np.repeat(x, 9, 0), states).numpy()
        shares = np.exp(-energies - np.logaddexp.reduce(-energies))
        exact = shares @ np.eye(3)[states.astype(int)].reshape(9, 6)
        np.testing.assert_allclose(crbm.predict(x, verbose=0)[0], exact, atol=1e-5)
        likelihood = crbm.log_likelihood(np.repeat(x, 9, 0), states)
        np.testing.assert_allclose(np.exp(likelihood), shares, atol=1e-6)
    with pytest.raises(ValueError, match="states"):
        kr.inference.Exact()(
            kr.CRBM(
                20, visible=units.Categorical(3), num_visible=20, num_features=2
            ).potentials(tf.zeros((1, 2)))
        )


def test_accuracy_of_several_labels_counts_labels():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3)).astype("float32")
    y = (x > 0).astype("float32")
    crbm = kr.CRBM(3, seed=0)
    crbm.compile(metrics=["accuracy", kr.metrics.ExactMatch()])
    crbm.fit(x, y, batch_size=50, verbose=0)
    found = crbm.evaluate(x, y, batch_size=50, verbose=0, return_dict=True)
    right = crbm.predict_map(x).numpy() == y
    assert found["accuracy"] == pytest.approx(right.mean())
    assert found["exact_match"] == pytest.approx(right.all(1).mean())
