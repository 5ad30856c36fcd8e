import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_potentials, rbm_like
from same import state
from small_models import binary, compiled, fitted, slow
from steps import gradients_of, step_of

import keras_rbm
from keras_rbm import RBM, inference

DATA = binary(34)


def rbm(**kwargs):
    model = RBM(4, num_visible=6, seed=0)
    return compiled(model, keras.optimizers.SGD(0.1), **kwargs)


def test_likelihood_and_moments_are_enumerations():
    potentials = random_potentials(6, 4)
    truth = Enumerated(potentials)
    model = rbm_like(potentials)
    z = model.log_partition("exact")
    np.testing.assert_allclose(z.value, truth.log_partition, rtol=1e-6)
    assert z.stderr == 0 and z.lower == z.value == z.upper
    log_p = model.log_likelihood(truth.v, log_partition=z)
    np.testing.assert_allclose(log_p, np.log(truth.p_visible), atol=1e-5)
    for same in (float(z.value), "exact"):
        again = model.log_likelihood(truth.v, log_partition=same)
        np.testing.assert_allclose(log_p, again, rtol=1e-6)


def test_all_estimates_agree_on_a_small_model():
    model = rbm_like(random_potentials(8, 5))
    truth = model.log_partition("exact").value
    ais = model.log_partition("ais")
    assert abs(ais.value - truth) < 4 * ais.stderr
    assert ais.lower <= truth <= ais.upper
    assert json.loads(json.dumps(ais.upper)) == ais.upper  # a number
    assert json.dumps(ais.is_finite) == "true" and f"{ais.lower:.1f}"
    assert round(ais.value, 2) == np.round(ais.value, 2)
    reverse = model.log_partition("reverse_ais", num_chains=400)
    assert abs(reverse.value - truth) < 4 * reverse.stderr + 0.01
    annealing = model.anneal()
    some = DATA[:5, [0] * 8]
    start = {"base": annealing.base, "betas": annealing.betas}
    below = inference.annealed_log_likelihood(
        model.potentials(), some, num_chains=100, **start
    )
    log_p = model.log_likelihood(some, log_partition=truth)
    np.testing.assert_allclose(below, log_p, atol=0.3)


def test_annealing_starts_from_the_base_rate():
    model = RBM(4, num_visible=6, seed=0)
    np.testing.assert_array_equal(model._base_natural(model.potentials()), np.zeros(6))
    model.adapt(DATA)
    rate = DATA.mean(0)
    logit = np.log(rate / (1 - rate))
    for found in (model.visible_bias, model._base_natural(model.potentials())):
        np.testing.assert_allclose(found, logit, rtol=1e-4)


def test_predict_reconstruct_and_call():
    model = rbm_like(random_potentials(6, 4))
    kernel = model.kernel.numpy()
    hidden = 1 / (1 + np.exp(-(DATA @ kernel + model.hidden_bias.numpy())))
    for found in (model.predict(DATA, verbose=0), model(DATA)):
        np.testing.assert_allclose(found, hidden, rtol=1e-5)
    visible = 1 / (1 + np.exp(-(hidden @ kernel.T + model.visible_bias.numpy())))
    np.testing.assert_allclose(model.reconstruct(DATA), visible, rtol=1e-4)
    assert model.compute_output_shape((None, 6)) == (None, 4)
    many = np.tile(DATA, (70, 1))
    for method in (model.free_energy, model.pseudo_log_likelihood, model.reconstruct):
        np.testing.assert_allclose(method(many)[-34:], method(DATA), rtol=1e-5)


def test_sample():
    assert rbm_like(random_potentials(5, 3)).sample(steps=1).shape == (1, 5)
    model = rbm_like(random_potentials(6, 4))
    samples = model.sample(20, steps=3)
    assert samples.shape == (20, 6) and set(np.unique(samples)) <= {0.0, 1.0}
    assert (model.sample(20, steps=3) != samples).numpy().any()
    again = [model.sample(20, steps=3, seed=5) for _ in range(2)]
    np.testing.assert_array_equal(*again)
    start = model.sample(34, steps=0, initial_visible=DATA)
    np.testing.assert_array_equal(start, DATA)


def mean_likelihood(model, data):
    return model.log_likelihood(data, "exact").numpy().mean()


@pytest.mark.parametrize("units", [1, 3])
def test_tempered_samples_of_weights_that_were_set(units):
    """A mode of half of the mass, which replicas from the base rate do not find."""
    signs = np.random.default_rng(0).choice([-12.0, 12.0], (40, 1))
    gain = np.logaddexp(0.0, signs - 1.0).sum() - 40 * np.logaddexp(0.0, -1.0)
    model = RBM(units, num_visible=40, seed=0)
    model.kernel.assign(np.repeat(signs / units, units, 1))
    model.visible_bias.assign(np.full(40, -1.0))
    model.hidden_bias.assign(np.full(units, -gain / units))
    truth = inference.exact_moments(model.potentials()).visible.bias
    with pytest.warns(UserWarning, match="never been at beta = 0"):
        samples = model.sample(200, method="tempering", steps=100, seed=1)
    assert np.abs(np.mean(samples, 0) - truth).max() < 0.15


@pytest.mark.parametrize("rule", ["cd", "pcd"])
def test_training_raises_the_exact_likelihood(rule):
    patterns = np.repeat(np.float32([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]), 1200, 0)
    model = RBM(4, num_visible=6, seed=0)
    before = mean_likelihood(model, patterns)
    compiled(model, keras.optimizers.SGD(0.2), rule=rule)
    after = mean_likelihood(fitted(model, patterns, batch_size=20), patterns)
    assert before < -4 and after > -2


def test_shuffling_is_new_each_epoch_and_a_function_of_the_seed():
    seen = []

    class Spy(keras_rbm.rules.ContrastiveDivergence):
        def phases(self, step):
            tf.py_function(lambda v: seen.append(v.numpy()), [step.visible], [])
            return super().phases(step)

    data = np.eye(20, dtype="float32")
    for _ in range(2):
        model = compiled(RBM(2, num_visible=20, seed=3), rule=Spy())
        fitted(model, data, batch_size=10, epochs=2)
    orders = [np.concatenate(seen[i : i + 2]).argmax(1) for i in range(0, 8, 2)]
    assert all(sorted(order) == list(range(20)) for order in orders)
    assert (orders[0] != orders[1]).any()
    np.testing.assert_array_equal(orders[:2], orders[2:])


def test_validation_split_takes_the_last_rows():
    model = rbm()
    history = model.fit(DATA, validation_split=0.25, verbose=0)
    loss = model.evaluate(DATA[25:], verbose=0)
    np.testing.assert_allclose(history.history["val_loss"], loss, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Training has diverged")  # it began so
@pytest.mark.parametrize(
    ("weight", "fill"), [(50.0, 0.0), (-50.0, 1.0), slow(0.0, 1.0)]
)
def test_extreme_weights_and_data_stay_finite(weight, fill):
    model = RBM(4, num_visible=9, seed=0)
    data = np.full((20, 9), fill, "float32")
    model.adapt(data)
    model.kernel.assign(np.full((9, 4), weight, "float32"))
    fitted(compiled(model, keras.optimizers.SGD(0.01), run_eagerly=True), data)
    assert all(np.isfinite(value).all() for value in state(model))
    for score in (model.free_energy, model.log_likelihood, model.pseudo_log_likelihood):
        assert np.isfinite(score(data)).all()
    potentials, weights = model.potentials(), tf.fill([20], 0.05)
    positive = inference.conditional_moments(potentials, tf.constant(data), weights)
    step = step_of(potentials, data, weights, tf.constant([0, 1]), model)
    negative = model.rule.negative_phase(step)
    gradients = gradients_of(model, positive, negative).values()
    assert all(np.isfinite(gradient).all() for gradient in gradients)
