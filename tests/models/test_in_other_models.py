"""Models as layers of other Keras models, and their scores in traced functions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rbm as kr

X = np.random.default_rng(0).integers(0, 2, (40, 6)).astype("float32")
Y = X.sum(1, keepdims=True)
LAYERS = {
    "RBM": lambda: kr.RBM(4, seed=0),
    "DBN": lambda: kr.DBN([kr.RBM(4, seed=0), kr.RBM(3, seed=1)]),
    "DBM": lambda: kr.DBM([4, 3], seed=0),
}


@keras.saving.register_keras_serializable("tests")
class Network(keras.Model):
    """A subclassed model with a layer of its own choice."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer, self.dense = layer, keras.layers.Dense(1, "linear", True, "ones")

    def call(self, inputs):
        return self.dense(self.layer(inputs))

    def get_config(self):
        return {"layer": keras.saving.serialize_keras_object(self.layer)}

    @classmethod
    def from_config(cls, config):
        return cls(keras.saving.deserialize_keras_object(config["layer"]))


def dense():
    return keras.layers.Dense(1, kernel_initializer="ones")


def sequential(*layers):
    return keras.Sequential([*layers, dense()])


OUTER = {
    "sequential": (sequential, X),
    "subclass": (Network, X),
    "flatten": (lambda layer: sequential(keras.layers.Flatten(), layer), X),
    "rescaling": (lambda layer: sequential(keras.layers.Rescaling(1.0), layer), X),
}


@pytest.mark.usefixtures("traced")
@pytest.mark.filterwarnings("ignore:Gradients do not exist")  # of visible biases
@pytest.mark.parametrize(
    "kind, outer",
    [
        pytest.param(
            kind,
            outer,
            marks=[]
            if (kind, outer) in (("RBM", "flatten"), ("DBM", "sequential"))
            else pytest.mark.slow,
        )
        for kind in LAYERS
        for outer in OUTER
    ],
)
def test_built_by_the_first_fit_of_another_model(kind, outer, tmp_path):
    """Its record of the base rate could not be computed while `fit` was traced."""
    make, x = OUTER[outer]
    x = x.reshape(-1, 3, 2) if outer == "flatten" else x
    model = make(LAYERS[kind]())
    model.compile(keras.optimizers.SGD(0.01), "mse")
    losses = model.fit(x, Y, epochs=2, verbose=0, shuffle=False).history["loss"]
    before = keras.Sequential([keras.Input((6,)), LAYERS[kind](), dense()])
    before.compile(keras.optimizers.SGD(0.01), "mse")
    same = before.fit(X, Y, epochs=2, verbose=0, shuffle=False).history["loss"]
    np.testing.assert_allclose(losses, same, rtol=1e-5)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(x), model(x))


def test_in_every_step_of_a_sequence():
    steps = np.stack([X, 1.0 - X], 1)
    model = keras.Sequential(
        [
            keras.layers.TimeDistributed(kr.RBM(4, seed=0)),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    model.fit(steps, Y, verbose=0)
    rbm = model.layers[0].layer
    features = model.layers[0](steps)
    np.testing.assert_allclose(features[:, 1], rbm(1.0 - X), rtol=1e-6)


def test_frozen_shared_and_cloned():
    rbm = kr.RBM(4, num_visible=6, seed=0)
    rbm.trainable = False
    one, two = keras.Input((6,)), keras.Input((6,))
    outputs = keras.layers.Dense(1)(keras.layers.Concatenate()([rbm(one), rbm(two)]))
    model = keras.Model([one, two], outputs)
    model.compile("adam", "mse")
    kernel = rbm.kernel.numpy()
    model.fit([X, 1.0 - X], Y, verbose=0)
    np.testing.assert_array_equal(rbm.kernel, kernel)
    assert len(model.trainable_variables) == 2
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone([X, X]), model([X, X]))


def grown(units):
    model = kr.InfiniteRBM(4, num_visible=6, seed=0)
    for _ in range(units):
        model.insert_unit(np.ones(6), 0.0)
    return model


def test_an_infinite_rbm_has_a_width_there():
    """Dense said that its weights' shape was not known."""
    model = keras.Sequential([grown(2), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(X, Y, verbose=0)
    assert model.layers[1].kernel.shape == (2, 1)


@pytest.mark.usefixtures("traced")
def test_an_infinite_rbm_without_units_says_what_to_do():
    model = keras.Sequential([grown(0), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    with pytest.raises(ValueError, match=r"none yet. Call fit\(\) first.*to_rbm"):
        model.fit(X, Y, verbose=0)


def scores(name):
    """Returns functions of a model of one kind, and what they are called on."""
    if name == "CRBM":
        model = kr.CRBM(4, num_visible=6, num_features=6, seed=0)
        z = model.log_partition(X)
        return {
            "log_likelihood": lambda x: model.log_likelihood(x, x, z),
            "bethe": lambda x: model.log_likelihood(x, x),
            "exact": lambda x: model.log_likelihood(x, x, "exact"),
            "free_energy": lambda x: model.free_energy(x, x),
            "sample": lambda x: model.sample(x, steps=2, seed=1),
        }
    model = grown(2) if name == "InfiniteRBM" else LAYERS[name]()
    if not model.built:
        model.build((None, 6))
    found = {"sample": lambda x: model.sample(5, steps=2, seed=1)}
    if name in ("DBN", "DBM"):
        return found | {"bound": lambda x: model.log_likelihood_bound(x, 30.0)}
    z = model.log_partition("exact")
    return found | {
        "log_likelihood": lambda x: model.log_likelihood(x, z),
        "free_energy": model.free_energy,
        "pseudo_log_likelihood": lambda x: model.pseudo_log_likelihood(x),
    }


@pytest.mark.parametrize(
    "name",
    [
        "RBM",
        "DBN",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("CRBM", "InfiniteRBM", "DBM")
        ),
    ],
)
def test_scores_and_samples_can_be_traced(name):
    for function in scores(name).values():
        values = tf.function(function)(tf.constant(X))
        np.testing.assert_allclose(values, function(X), rtol=1e-5)


def test_log_z_is_for_eager_code():
    """An array was made of a symbolic tensor."""
    rbm = kr.RBM(4, num_visible=6, seed=0)
    with pytest.raises(ValueError, match="outside of a tf.function"):
        tf.function(lambda x: rbm.log_likelihood(x, "exact"))(X)
    crbm = kr.CRBM(4, num_visible=6, num_features=6, seed=0)
    with pytest.raises(ValueError, match="outside of a tf.function"):
        tf.function(lambda x: crbm.log_likelihood(x, x, "ais"))(X)


def test_gradients_pass_through_the_layers_of_a_dbm():
    """Through mean field, to the kernels and to what comes before."""
    dbm = kr.DBM([4, 3], seed=0)
    dbm.build(X.shape)
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(dbm(x) ** 2)
    kernels = [v for v in dbm.trainable_variables if "kernel" in v.name]
    found = tape.gradient(total, [x, *(kernel.value for kernel in kernels)])
    assert len(kernels) == 2
    for part in found:
        assert np.abs(part).max() > 0.0
    moved = x + 0.1 * np.sign(X - 0.5)
    change = tf.reduce_sum(dbm(moved) ** 2) - total
    linear = tf.reduce_sum(found[0] * (moved - x))
    np.testing.assert_allclose(change, linear, rtol=0.05)


@pytest.mark.usefixtures("compiled_inference")
@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_a_crbm_that_finds_states_is_fixed_there():
    crbm = kr.CRBM(9, num_visible=9, inference="max_product", seed=0)
    model = keras.Sequential([keras.layers.Dense(4), crbm, dense()])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(X, Y, verbose=0)
    before = crbm.kernel.numpy()
    model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(crbm.kernel, before)
