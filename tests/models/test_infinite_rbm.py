import numpy as np
import pytest
import tensorflow as tf
from same import assert_same
from small_models import all_states, binary, compiled, reloaded

import keras_rbm
from keras_rbm import InfiniteRBM, inference
from keras_rbm.rules import FrankWolfe
from keras_rbm.units.bernoulli import BernoulliParameters

DATA = binary(30)
UNITS = [([1.0, -1, 2, 0, 0, 1], 0.5), ([0.3, 1, -2, 1, 1, 0], -1.0)]


def made(capacity=5):
    model = InfiniteRBM(capacity, num_visible=6, seed=0)
    for weights, bias in UNITS:
        model.insert_unit(weights, bias)
    model.visible_bias.assign(np.linspace(-1.0, 1.0, 6))
    return model


def free_energy(model, data):
    """Returns F written out."""
    kernel, bias = (
        np.asarray(variable, float)[..., : model.hidden_units]
        for variable in (model.kernel, model.hidden_bias)
    )
    of_visible = data @ np.asarray(model.visible_bias, float)
    return -of_visible - np.logaddexp(0.0, data @ kernel + bias).sum(1)


@pytest.mark.filterwarnings("ignore:Expected chains that have forgotten")
def test_every_method_sees_the_units_in_use():
    model = made()
    assert model.hidden_units == 2
    energies = free_energy(model, DATA)
    np.testing.assert_allclose(model.free_energy(DATA), energies, rtol=1e-5)
    exact = model.log_partition("exact")
    want = np.logaddexp.reduce(-free_energy(model, all_states(*[2] * 6)))
    np.testing.assert_allclose(exact.value, want, rtol=1e-6)
    ais = model.log_partition("ais", num_chains=1000)
    assert abs(ais.value - want) < 5 * ais.stderr
    assert model.log_likelihood(DATA, exact).shape == (30,)
    annealing = model.anneal()
    start = {"base": annealing.base, "betas": annealing.betas}
    below = inference.annealed_log_likelihood(model.potentials(), DATA[:3], **start)
    assert below.shape == (3,)
    assert np.isfinite(model.pseudo_log_likelihood(DATA)).all()
    for method in ("gibbs", "tempering"):
        samples = model.sample(7, steps=5, method=method, seed=1)
        assert samples.shape == (7, 6) and set(samples.numpy().flat) <= {0.0, 1.0}
    features = model.predict(DATA, verbose=0)
    kernel, bias = (np.array(part, float) for part in zip(*UNITS, strict=True))
    want = 1 / (1 + np.exp(-(DATA @ kernel.T + bias)))
    np.testing.assert_allclose(features, want, rtol=1e-5)
    want = 1 / (1 + np.exp(-(features @ kernel + np.linspace(-1.0, 1.0, 6))))
    np.testing.assert_allclose(model.reconstruct(DATA), want, rtol=1e-4)


def test_a_new_model_is_independent_pixels():
    model = InfiniteRBM(4, num_visible=6, seed=0)
    model.adapt(DATA)
    assert model.hidden_units == 0 and not model.is_full
    mean = DATA.mean(0)
    want = np.log(np.where(DATA == 1, mean, 1 - mean)).sum(1)
    np.testing.assert_allclose(model.log_likelihood(DATA, "exact"), want, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(DATA, verbose=0), np.zeros((30, 1)))
    ais, exact = (model.log_partition(method) for method in ("ais", "exact"))
    assert abs(ais.value - exact.value) < 5 * ais.stderr + 1e-3
    model.insert_unit(*UNITS[0])
    assert model.hidden_units == 1


def test_from_rbm_and_back():
    rbm = keras_rbm.RBM(3, num_visible=6, seed=2)
    rbm.adapt(DATA)
    model = InfiniteRBM.from_rbm(rbm, 5, name="grown")
    assert (model.hidden_units, model.seed, model.name) == (3, 2, "grown")
    np.testing.assert_allclose(model.free_energy(DATA), rbm.free_energy(DATA))
    assert_same(rbm.weights, model.to_rbm().weights)
    roomier = InfiniteRBM.from_rbm(made(capacity=2), 4)
    assert roomier.hidden_units == 2 and not roomier.is_full
    np.testing.assert_allclose(roomier.free_energy(DATA), made().free_energy(DATA))


def test_units_come_in_order():
    """The traced function must not keep the number of units of its first call."""
    model = made()
    assert model.predict(DATA, verbose=0).shape == (30, 2)
    model.insert_unit(np.ones(6), 3.0)
    assert model.hidden_units == 3
    assert model.predict(DATA, verbose=0).shape == (30, 3)
    np.testing.assert_allclose(model.hidden_bias, [0.5, -1.0, 3.0, 0.0, 0.0])
    np.testing.assert_allclose(model.kernel[:, 2], 1.0)
    np.testing.assert_array_equal(model.kernel[:, 3:], 0.0)


def test_precision_is_kept():
    rbm = keras_rbm.RBM(2, num_visible=6, dtype="mixed_bfloat16", seed=0)
    model = InfiniteRBM.from_rbm(rbm, 4)
    assert model.compute_dtype == model.to_rbm().compute_dtype == "bfloat16"
    assert InfiniteRBM.from_rbm(rbm, 4, dtype="float32").compute_dtype == "float32"


def test_capacity_costs_nothing_but_memory():
    """The potentials that every computation starts from have the units in use."""
    model = made(capacity=5000)
    assert model.potentials().kernel.shape == (6, 2)
    in_graph = tf.function(lambda: tf.shape(model.potentials().kernel))()
    np.testing.assert_array_equal(in_graph, [6, 2])
    assert isinstance(model.potentials().hidden, BernoulliParameters)
    assert inference.exact_moments(model.potentials()).kernel.shape == (6, 2)


def test_each_rule_has_its_own_samples(tmp_path):
    """Compiled with another rule and back, a model went on with the other's chains."""
    model = InfiniteRBM(4, num_visible=6, seed=0)
    first, second = FrankWolfe(num_samples=60), FrankWolfe(num_samples=20)
    for rule in (first, second, first):
        compiled(model, rule=rule)
    assert model._samples.read().of_search.shape == (60, 6)
    chains = [m._samples.read().chains for m in (model, reloaded(model, tmp_path))]
    np.testing.assert_array_equal(*chains)
