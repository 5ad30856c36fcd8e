import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rbm
from keras_rbm import InfiniteRBM, inference
from keras_rbm.rules import FrankWolfe
from keras_rbm.units.bernoulli import BernoulliParameters

DATA = np.random.default_rng(0).integers(0, 2, (30, 6)).astype("float32")
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
    own = data @ np.asarray(model.visible_bias, float)
    return -own - np.logaddexp(0.0, data @ kernel + bias).sum(1)


@pytest.mark.filterwarnings("ignore:Expected chains that have forgotten")
def test_every_method_sees_the_units_in_use():
    model = made()
    assert model.hidden_units == 2
    np.testing.assert_allclose(
        model.free_energy(DATA), free_energy(model, DATA), rtol=1e-5
    )
    exact = model.log_partition("exact")
    states = np.array(list(np.ndindex(*[2] * 6)), float)
    want = np.logaddexp.reduce(-free_energy(model, states))
    np.testing.assert_allclose(exact.value, want, rtol=1e-6)
    ais = model.log_partition("ais", betas=200, num_chains=1000)
    assert abs(ais.value - want) < 5 * ais.stderr
    assert model.log_likelihood(DATA, exact).shape == (30,)
    annealing = model.anneal(betas=20)
    below = inference.annealed_log_likelihood(
        model.potentials(), DATA[:3], base=annealing.base, betas=annealing.betas
    )
    assert below.shape == (3,)
    assert np.isfinite(model.pseudo_log_likelihood(DATA)).all()
    for method in ("gibbs", "tempering"):
        samples = model.sample(7, steps=5, method=method, seed=1)
        assert samples.shape == (7, 6) and set(samples.numpy().flat) <= {0.0, 1.0}
    features = model.predict(DATA, verbose=0)
    kernel, bias = (np.array(part, float) for part in zip(*UNITS, strict=True))
    want = 1 / (1 + np.exp(-(DATA @ kernel.T + bias)))
    np.testing.assert_allclose(features, want, rtol=1e-5)
    logits = features @ kernel + np.linspace(-1.0, 1.0, 6)
    np.testing.assert_allclose(
        model.reconstruct(DATA), 1 / (1 + np.exp(-logits)), rtol=1e-4
    )


def test_a_new_model_is_independent_pixels():
    model = InfiniteRBM(4, num_visible=6, seed=0)
    model.adapt(DATA)
    assert model.hidden_units == 0 and not model.is_full
    mean = DATA.mean(0)
    want = np.log(np.where(DATA == 1, mean, 1 - mean)).sum(1)
    np.testing.assert_allclose(model.log_likelihood(DATA, "exact"), want, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(DATA, verbose=0), np.zeros((30, 1)))
    ais = model.log_partition("ais", betas=50)
    assert float(ais.value) == pytest.approx(
        float(model.log_partition("exact").value), abs=5 * float(ais.stderr) + 1e-3
    )
    model.insert_unit(*UNITS[0])
    assert model.hidden_units == 1


def test_to_rbm():
    model = made()
    model.adapt(DATA)
    rbm = model.to_rbm()
    assert isinstance(rbm, keras_rbm.RBM) and rbm.hidden_units == 2
    np.testing.assert_allclose(
        rbm.free_energy(DATA), model.free_energy(DATA), rtol=1e-5
    )
    np.testing.assert_allclose(
        rbm.log_partition("exact").value, model.log_partition("exact").value, rtol=1e-6
    )
    np.testing.assert_array_equal(rbm.base_rate, model.base_rate)


def test_to_rbm_without_units():
    with pytest.raises(ValueError, match="Expected a model with hidden units"):
        InfiniteRBM(4, num_visible=6).to_rbm()


def test_from_rbm_and_back():
    rbm = keras_rbm.RBM(3, num_visible=6, seed=2)
    rbm.adapt(DATA)
    model = InfiniteRBM.from_rbm(rbm, 5, name="grown")
    assert (model.hidden_units, model.seed, model.name) == (3, 2, "grown")
    np.testing.assert_allclose(model.free_energy(DATA), rbm.free_energy(DATA))
    again = model.to_rbm()
    for a, b in zip(rbm.weights, again.weights, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("rbm", "count", "message"),
    [
        (keras_rbm.RBM(3), 5, "built model"),
        (keras_rbm.RBM(3, num_visible=4), 2, "max_hidden_units ≥ 3"),
        (keras_rbm.RBM(3, num_visible=4), 0, "max_hidden_units ≥ 1"),
        (keras_rbm.RBM(3, visible="gaussian", num_visible=4), 5, "binary units"),
        (keras_rbm.RBM(3, hidden="gaussian", num_visible=4), 5, "binary units"),
    ],
)
def test_from_rbm_refuses(rbm, count, message):
    with pytest.raises(ValueError, match=f"Expected.*{message}.*Received"):
        InfiniteRBM.from_rbm(rbm, count)


def test_units_come_in_order():
    model = made()
    model.insert_unit(np.ones(6), 3.0)
    assert model.hidden_units == 3
    np.testing.assert_allclose(model.hidden_bias[:3], [0.5, -1.0, 3.0])
    np.testing.assert_allclose(model.kernel[:, 2], 1.0)
    np.testing.assert_array_equal(model.kernel[:, 3:], 0.0)
    np.testing.assert_array_equal(model.hidden_bias[3:], 0.0)


def test_saved_and_loaded(tmp_path):
    model = made()
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.hidden_units == 2
    np.testing.assert_array_equal(again.free_energy(DATA), model.free_energy(DATA))


def test_predict_follows_growth():
    """The traced function must not keep the number of units of its first call."""
    model = made()
    assert model.predict(DATA, verbose=0).shape == (30, 2)
    model.insert_unit(np.ones(6), 0.0)
    assert model.predict(DATA, verbose=0).shape == (30, 3)


def test_as_a_layer():
    classifier = keras.Sequential([made(), keras.layers.Dense(2)])
    assert classifier(DATA).shape == (30, 2)
    assert classifier.predict(DATA, verbose=0).shape == (30, 2)


@pytest.mark.parametrize("functional", [False, True])
def test_saved_inside_another_model(functional, tmp_path):
    """Dense was built for one unit, the growing model's first, when loaded."""
    grown, dense = made(), keras.layers.Dense(2)
    if functional:
        inputs = keras.Input((6,))
        classifier = keras.Model(inputs, dense(grown(inputs)))
    else:
        classifier = keras.Sequential([keras.Input((6,)), grown, dense])
    classifier.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(DATA), classifier(DATA))


def test_more_room():
    model = InfiniteRBM.from_rbm(made(capacity=2), 4)
    assert model.hidden_units == 2 and not model.is_full
    np.testing.assert_allclose(model.free_energy(DATA), made().free_energy(DATA))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.insert_unit(np.ones(5), 0.0),
        lambda m: m.insert_unit(np.full(6, np.nan), 0.0),
        lambda m: m.insert_unit(np.ones(6), [0.0, 1.0]),
        lambda m: m.insert_unit(np.ones(6), np.inf),
        lambda m: m.insert_unit("a", 0.0),
        lambda m: m.insert_unit(None, 0.0),
    ],
)
def test_bad_units_change_nothing(change):
    model = made()
    before = [variable.numpy() for variable in model.weights]
    with pytest.raises((TypeError, ValueError), match="Expected.*Received"):
        change(model)
    for variable, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(variable, value)


def test_no_room_for_a_unit():
    with pytest.raises(ValueError, match="Expected room for a unit.*from_rbm"):
        made(capacity=2).insert_unit(np.ones(6), 0.0)


def test_precision_is_kept():
    rbm = keras_rbm.RBM(2, num_visible=6, dtype="mixed_bfloat16", seed=0)
    model = InfiniteRBM.from_rbm(rbm, 4)
    assert model.compute_dtype == model.to_rbm().compute_dtype == "bfloat16"
    assert InfiniteRBM.from_rbm(rbm, 4, dtype="float32").compute_dtype == "float32"


@pytest.mark.parametrize("rbm", [None, keras.layers.Dense(2)])
def test_from_rbm_of_something_else(rbm):
    with pytest.raises(TypeError, match="Expected an RBM or InfiniteRBM"):
        InfiniteRBM.from_rbm(rbm, 5)


@pytest.mark.parametrize("count", [0, -1, 2.5, "3", None])
def test_bad_sizes(count):
    with pytest.raises(ValueError, match="max_hidden_units ≥ 1"):
        InfiniteRBM(count)


def test_bad_data():
    model = InfiniteRBM(4, num_visible=6)
    model.compile()
    for data in (DATA[:, :5], DATA * 3, DATA * np.nan, DATA[0]):
        with pytest.raises(ValueError, match="Expected"):
            model.fit(data, verbose=0)
    with pytest.raises(ValueError, match="Expected a built model"):
        print(InfiniteRBM(4).hidden_units)


def test_capacity_costs_nothing_but_memory():
    """The potentials that every computation starts from have the units in use."""
    model = made(capacity=5000)
    assert model.potentials().kernel.shape == (6, 2)

    @tf.function
    def graph():
        return tf.shape(model.potentials().kernel)

    np.testing.assert_array_equal(graph(), [6, 2])
    assert isinstance(model.potentials().hidden, BernoulliParameters)
    assert inference.exact_moments(model.potentials()).kernel.shape == (6, 2)


def test_config_of_a_model_that_is_not_built():
    model = InfiniteRBM(5, seed=1)
    again = InfiniteRBM.from_config(model.get_config())
    assert not again.built and again.get_config() == model.get_config()


@pytest.mark.parametrize("side", ["visible", "hidden"])
def test_units_are_binary(side):
    """Other types were taken, and then the model was trained as if they were binary."""
    with pytest.raises(TypeError, match=side):
        InfiniteRBM(5, **{side: "spin"})


def test_each_rule_has_its_own_samples(tmp_path):
    """Compiled with another rule and back, a model went on with the other's chains."""
    model = InfiniteRBM(4, num_visible=6, seed=0)
    first, second = FrankWolfe(num_samples=60), FrankWolfe(num_samples=20)
    for rule in (first, second, first):
        model.compile(rule=rule)
    assert model._samples.read().of_search.shape == (60, 6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        loaded._samples.read().chains, model._samples.read().chains
    )


def test_an_optimizer_that_accumulates_is_refused():
    optimizer = keras.optimizers.SGD(gradient_accumulation_steps=2)
    with pytest.raises(ValueError, match="only counts the steps"):
        InfiniteRBM(4).compile(optimizer)
