"""A CRBM of one categorical unit: the discriminative RBM of Larochelle and Bengio."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from same import assert_descends, assert_same
from small_models import all_states, batches, compiled, fitted, randomized

import keras_rbm as kr
from keras_rbm import units

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype("float32")
Y = (X @ RNG.normal(size=(4, 3))).argmax(1)
METRICS = "accuracy", "exact_match"


def made(**kwargs):
    return kr.CRBM(5, visible=units.Categorical(3), seed=0, **kwargs)


def with_metrics(crbm):
    return compiled(crbm, metrics=["accuracy", kr.metrics.ExactMatch()])


def built(**kwargs):
    return made(num_visible=1, num_features=4, **kwargs)


def test_learns_classes():
    crbm = with_metrics(made())
    loss = crbm.fit(X, Y, epochs=40, batch_size=30, verbose=0).history["loss"]
    assert isinstance(crbm.inference, kr.inference.Exact) and loss[-1] < loss[0]
    p = crbm.predict(X, verbose=0)
    assert p.shape == (60, 3)
    np.testing.assert_allclose(p.sum(1), 1.0, rtol=1e-5)
    right = np.mean(p.argmax(1) == Y)
    assert right > 0.9
    found = crbm.evaluate(X, Y, verbose=0, return_dict=True)
    assert [found[name] for name in METRICS] == pytest.approx([right, right])
    log_p = np.log(p[np.arange(60), Y])
    assert found["loss"] == pytest.approx(-log_p.mean(), abs=1e-4)
    scores = crbm.log_likelihood(X, Y[:, np.newaxis], "exact")
    np.testing.assert_allclose(scores, log_p, atol=1e-4)
    np.testing.assert_array_equal(crbm.predict_map(X)[:, 0], p.argmax(1))


def test_gradient_is_exact():
    crbm = randomized(built(kernel_regularizer=None))
    rule = kr.rules.MaximumLikelihood(centered=False)
    compiled(crbm, keras.optimizers.SGD(1.0), rule=rule)
    with tf.GradientTape() as tape:
        potentials = crbm.potentials(tf.constant(X))
        classes = [tf.fill((60, 1), float(k)) for k in range(3)]
        log_weights = tf.stack([-potentials.free_energy(k) for k in classes], 1)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(Y, log_weights)
        loss = tf.reduce_mean(loss)
    exact = tape.gradient(loss, [v.value for v in crbm.trainable_variables])
    assert_descends(crbm, exact, X, Y, atol=1e-6)


def test_pipelines_of_labels():
    pairs = batches(X, Y, size=30)
    crbm = fitted(with_metrics(made()), pairs, epochs=2, validation_data=pairs)
    assert crbm.num_visible == 1


def test_unknown_labels_teach_nothing():
    some = np.where(np.arange(60) % 3, Y, np.nan).astype("float32")
    known = ~np.isnan(some)
    models = []
    for pair in ((X, some), (X[known], some[known])):
        models.append(compiled(built(missing="latent"), keras.optimizers.SGD(0.1)))
        models[-1].train_on_batch(*pair)
    assert_same(*[model.weights for model in models], atol=1e-6)


def test_class_weights_are_weights():
    of_rows = np.array([3.0, 1.0, 0.5])[Y]
    given = {"class_weight": {0: 3.0, 2: 0.5}}, {"sample_weight": of_rows}
    models = [
        fitted(with_metrics(made()), X, Y, batch_size=60, **weights)
        for weights in given
    ]
    assert_same(*[model.weights for model in models])


@pytest.mark.parametrize("hidden", ["bernoulli", "spin", "gaussian"])
def test_exact_inference_of_any_units(hidden):
    """Several small categorical outputs, against all states."""
    unit, sizes = units.Categorical(3), {"num_visible": 2, "num_features": 2}
    crbm = randomized(kr.CRBM(3, visible=unit, hidden=hidden, seed=0, **sizes), 0.5)
    assert isinstance(crbm.inference, kr.inference.Exact)
    x, states = np.float32([[0.3, -0.7]]), all_states(3, 3)
    energies = crbm.free_energy(np.repeat(x, 9, 0), states).numpy()
    shares = np.exp(-energies - np.logaddexp.reduce(-energies))
    exact = shares @ np.eye(3)[states.astype(int)].reshape(9, 6)
    np.testing.assert_allclose(crbm.predict(x, verbose=0)[0], exact, atol=1e-5)
    likelihood = crbm.log_likelihood(np.repeat(x, 9, 0), states)
    np.testing.assert_allclose(np.exp(likelihood), shares, atol=1e-6)


def test_accuracy_of_several_labels_counts_labels():
    y = (X[:50, :3] > 0).astype("float32")
    crbm = fitted(with_metrics(kr.CRBM(3, seed=0)), X[:50], y, batch_size=50)
    found = crbm.evaluate(X[:50], y, batch_size=50, verbose=0, return_dict=True)
    right = crbm.predict_map(X[:50]).numpy() == y
    wanted = [right.mean(), right.all(1).mean()]
    assert [found[name] for name in METRICS] == pytest.approx(wanted)
