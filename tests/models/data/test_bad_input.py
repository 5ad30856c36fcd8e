"""Bad input: the message, and that weights and chains stay as they were."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rbm

DATA = np.random.default_rng(0).integers(0, 2, (20, 6)).astype("float32")
NAN = np.where(np.eye(20, 6) == 1, np.nan, DATA)


@pytest.fixture(scope="module")
def rbm():
    model = keras_rbm.RBM(4, num_visible=6, seed=0)
    model.compile(rule="pcd")
    return model


def state(model):
    variables = [*model.weights, *model.learner.variables, model.seed_generator.state]
    return [variable.numpy() for variable in variables]


BAD_DATA = [
    (DATA[0], r"x of shape \(examples, 6\).*x.shape=\(6,\)"),
    (DATA[:, :5], r"x of shape \(examples, 6\).*x.shape=\(20, 5\)"),
    (DATA.reshape(20, 2, 3), r"x of shape \(examples, 6\).*\(20, 2, 3\)"),
    (NAN, "finite x.*NaN or infinite"),
    (np.full((3, 6), np.inf), "finite x.*NaN or infinite"),
    (DATA * 255, "x, states of Bernoulli units.*from 0 to 255"),
    (-DATA, "x, states of Bernoulli units.*from -1 to 0"),
    (DATA[:0], "at least one example"),
]


@pytest.mark.parametrize(("data", "message"), BAD_DATA, ids=range(len(BAD_DATA)))
def test_data(rbm, data, message):
    before = state(rbm)
    calls = [rbm.fit, rbm.evaluate, rbm.free_energy, rbm.reconstruct]
    calls += [rbm.pseudo_log_likelihood, rbm.log_likelihood]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(data)
    with pytest.raises(ValueError, match="Expected .*data"):
        keras_rbm.RBM(3, num_visible=6).adapt(data)
    with pytest.raises(ValueError, match=message):
        rbm.fit(DATA, validation_data=data)
    for a, b in zip(before, state(rbm), strict=True):
        np.testing.assert_array_equal(a, b)


CALLS = {
    "targets": (lambda m: m.fit(DATA, DATA), "data without targets.*Received: y"),
    "labeled dataset": (
        lambda m: m.fit(tf.data.Dataset.from_tensors((DATA, DATA[:, 0]))),
        "data without targets",
    ),
    "dataset values": (
        lambda m: m.fit(tf.data.Dataset.from_tensors(DATA * 255)),
        "from 0 to 255",
    ),
    "empty dataset": (
        lambda m: m.fit(tf.data.Dataset.from_tensor_slices(DATA).batch(5).take(0)),
        "at least one batch",
    ),
    "lengths": (
        lambda m: m.fit(DATA, sample_weight=np.ones(3)),
        r"arrays of one length.*\[20, 3\]",
    ),
    "weights": (
        lambda m: m.fit(DATA, sample_weight=-np.ones(20)),
        "finite sample_weight ≥ 0",
    ),
    "class weights": (lambda m: m.fit(DATA, class_weight={0: 1.0}), "class_weight"),
    "batch size": (
        lambda m: m.fit(DATA, batch_size=0),
        "batch_size ≥ 1. Received: batch_size=0",
    ),
    "samples": (lambda m: m.sample(0), "num_samples ≥ 1. Received: num_samples=0"),
    "half a sample": (lambda m: m.sample(2.5), "int num_samples ≥ 1"),
    "steps": (lambda m: m.sample(2, steps=-1), "steps ≥ 0. Received: steps=-1"),
    "start": (
        lambda m: m.sample(3, initial_visible=DATA),
        r"initial_visible of shape \(3, 6\).*\(20, 6\)",
    ),
    "seed": (lambda m: m.sample(2, seed="a"), "seed to be an int.*seed='a'"),
    "method": (
        lambda m: m.log_partition("magic"),
        "one of .'exact', .*Received: 'magic'",
    ),
    "precision": (lambda m: m.log_partition(precision=0.0), "precision > 0.*Received"),
    "log Z": (
        lambda m: m.log_likelihood(DATA, [1.0, 2.0]),
        r"LogPartition or one number.*\[1.0, 2.0\]",
    ),
    "chains": (lambda m: m.log_partition(num_chains=1), "num_chains ≥ 2"),
    "loss": (lambda m: m.compile(loss="mse"), "no loss.*Pass rule="),
    "rule": (lambda m: m.compile(rule="nce"), "Expected a learning rule.*'nce'"),
    "call": (lambda m: m(DATA[:, :3]), r"have value 6.*\(20, 3\)"),
    "dataset weights": (
        lambda m: m.fit(tf.data.Dataset.from_tensors((DATA, (), -np.ones(20)))),
        "finite sample_weight ≥ 0",
    ),
    "dataset width": (
        lambda m: m.predict(tf.data.Dataset.from_tensors(DATA[:, :3])),
        r"x of shape \(examples, 6\)",
    ),
    "pairs": (lambda m: m.fit((DATA, DATA[:, 0])), "x as one array.*as x and y"),
    "no batch": (lambda m: m.fit(iter(())), "at least one batch"),
    "huge count": (lambda m: m.log_partition(num_chains=2**40), r"< 2\*\*31"),
}


@pytest.mark.parametrize("case", CALLS)
def test_call(rbm, case):
    call, message = CALLS[case]
    before, rule = state(rbm), rbm.rule
    with pytest.raises(ValueError, match=message):
        call(rbm)
    assert rbm.rule is rule
    for a, b in zip(before, state(rbm), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "labels", [np.arange(4), np.arange(4)[:, np.newaxis], np.array(list("abca"))]
)
def test_classes_are_no_states(labels):
    """The error names the cure for classes, not the states of units."""
    crbm = keras_rbm.CRBM(2, seed=0)
    crbm.compile("sgd")
    with pytest.raises(ValueError, match="keras.utils.to_categorical"):
        crbm.fit(np.ones((4, 3), "float32"), labels, verbose=0)
    assert not crbm.built


@pytest.mark.parametrize("data", ["text", {"a": DATA}, 3, None, DATA.astype(complex)])
def test_things_that_are_no_data(rbm, data):
    for call in (rbm.fit, rbm.predict, rbm.reconstruct, rbm.free_energy):
        with pytest.raises((TypeError, ValueError), match="Expected"):
            call(data)


def test_rows_as_lists(rbm):
    np.testing.assert_array_equal(
        rbm.predict(DATA.tolist(), verbose=0), rbm.predict(DATA, verbose=0)
    )


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "4", None])
def test_sizes(size):
    with pytest.raises(ValueError, match="int hidden_units ≥ 1. Received"):
        keras_rbm.RBM(size)
    if size is not None:
        with pytest.raises(ValueError, match="int num_visible ≥ 1. Received"):
            keras_rbm.RBM(3, num_visible=size)


def test_unit_types():
    with pytest.raises(ValueError, match="Expected a unit type.*'softmax'"):
        keras_rbm.RBM(3, visible="softmax")


def test_float64_policy():
    with pytest.raises(ValueError, match="float32 variables.*'float64'"):
        keras_rbm.RBM(3, dtype="float64")


@pytest.mark.parametrize("shape", [(None,), (None, None), (None, 2, 3), (None, 0)])
def test_build_shapes(shape):
    with pytest.raises(ValueError, match="input of shape"):
        keras_rbm.RBM(3).build(shape)


UNBUILT = {
    "potentials": lambda m: m.potentials(),
    "free_energy": lambda m: m.free_energy(DATA),
    "pseudo_log_likelihood": lambda m: m.pseudo_log_likelihood(DATA),
    "log_partition": lambda m: m.log_partition(),
    "sample": lambda m: m.sample(3),
    "reconstruct": lambda m: m.reconstruct(DATA),
    "predict": lambda m: m.predict(DATA),
    "evaluate": lambda m: m.evaluate(DATA),
}


@pytest.mark.parametrize("method", UNBUILT)
def test_unbuilt(method):
    with pytest.raises(ValueError, match=rf"built model in {method}\(\).*num_visible="):
        UNBUILT[method](keras_rbm.RBM(3))


def test_uncompiled():
    with pytest.raises(ValueError, match="compile"):
        keras_rbm.RBM(3).fit(DATA)


def test_one_rule_for_two_unbuilt_models():
    """Compiled before either was built, the second used to move the first's chains."""
    rule = keras_rbm.rules.PersistentContrastiveDivergence()
    first, second = keras_rbm.RBM(3), keras_rbm.RBM(3)
    first.compile(rule=rule)
    with pytest.raises(ValueError, match="new rule object for each model"):
        second.compile(rule=rule)


def test_evaluate_is_unbiased_whatever_the_batch_size():
    """A fixed seed for every batch used to probe the same units again and again."""
    rng = np.random.default_rng(0)
    model = keras_rbm.RBM(4, num_visible=30, seed=0)
    model.compile()
    model.visible_bias.assign(rng.normal(0, 3, 30))
    data = (rng.random((3000, 30)) < 0.5).astype("float32")
    each = -keras_rbm.inference.pseudo_log_likelihood(model.potentials(), data)
    spread = 30 * 3.0 / np.sqrt(3000)
    for batch_size in (10, 100, 1000):
        loss = model.evaluate(data, batch_size=batch_size, verbose=0)
        assert abs(loss - np.mean(each)) < 4 * spread


OTHERS = {
    "epochs": lambda m: m.fit(DATA, epochs=2**40),
    "first epoch": lambda m: m.fit(DATA, initial_epoch=-1),
    "shuffle": lambda m: m.fit(DATA, shuffle=DATA),
    "evaluated batches": lambda m: m.evaluate(DATA, batch_size="10"),
    "predicted batches": lambda m: m.predict(DATA, batch_size=0),
    "no batch to predict": lambda m: m.predict(
        tf.data.Dataset.from_tensor_slices(DATA).batch(5).take(0)
    ),
    "a set": lambda m: m.predict({1, 2}),
    "a generator as a batch": lambda m: m.predict_on_batch(iter([DATA])),
    "targets beside a dataset": lambda m: m.evaluate(
        tf.data.Dataset.from_tensors(DATA), DATA
    ),
    "dicts": lambda m: m.free_energy(tf.data.Dataset.from_tensors({"x": DATA})),
    "a sparse row": lambda m: m.fit(tf.sparse.from_dense(DATA[0])),
    "ragged": lambda m: m.fit(tf.ragged.constant([[0.0], [0.0, 1.0]])),
    "log Z": lambda m: m.log_likelihood(DATA, {"value": 1.0}),
    "steps": lambda m: m.sample(2, steps=tf.constant([1, 2])),
    "number": lambda m: m.sample(tf.constant(2.5)),
    "method": lambda m: m.sample(2, method=DATA),
    "metrics": lambda m: m.compile(metrics="mse"),
    "optimizer": lambda m: m.compile("steepest"),
    "eagerly": lambda m: m.compile(run_eagerly=DATA),
    "jit": lambda m: m.compile(jit_compile="yes"),
    "path": lambda m: m.export(3),
    "no path": lambda m: m.export(""),
    "path of weights": lambda m: m.load_weights("text"),
    "shape": lambda m: m.build(6),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_arguments(rbm, case):
    """Each ended in an error of Keras or TensorFlow, trained on, or hung."""
    before, rule, optimizer = state(rbm), rbm.rule, rbm.optimizer
    with pytest.raises((TypeError, ValueError), match=r"(?s)Expected.*Received"):
        OTHERS[case](rbm)
    assert rbm.rule is rule and rbm.optimizer is optimizer
    for a, b in zip(before, state(rbm), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", ["text", 0.5, True, 2**64, DATA])
def test_seeds(seed):
    for make in (keras_rbm.RBM, lambda n, **k: keras_rbm.DBN([n], **k)):
        with pytest.raises(ValueError, match="Expected seed as a 64-bit int"):
            make(3, seed=seed)
    assert keras_rbm.RBM(3, seed=np.int64(2)).seed == 2


@pytest.mark.parametrize("name", ["kernel_initializer", "visible_bias_initializer"])
@pytest.mark.parametrize("value", ["text", 3, {1, 2}, {"class_name": "Dense"}])
def test_parts_of_keras(name, value):
    with pytest.raises(ValueError, match=f"Expected {name} as Keras takes it"):
        keras_rbm.RBM(3, **{name: value})


def test_variables_are_data():
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    for variable in (tf.Variable(DATA), keras.Variable(DATA)):
        np.testing.assert_array_equal(rbm.free_energy(variable), rbm.free_energy(DATA))


def test_rounded_values_of_a_scaler_are_states():
    """`MinMaxScaler` gives 1 + 2e-16, `predict` took it, and `fit` did not."""
    data = DATA.astype("float64")
    data[0, 0], data[1, 0] = 1.0 + 2e-16, -1e-7
    rbm = keras_rbm.RBM(3, seed=0)
    rbm.compile()
    rbm.fit(data, verbose=0)
    rbm.evaluate(data, verbose=0)
    assert np.all(np.isfinite(rbm.free_energy(data)))
    assert rbm.predict(data, verbose=0).shape == (20, 3)
    with pytest.raises(ValueError, match="Received: 1.01 in row 0"):
        rbm.fit(data + 0.01 * (data > 0.5), verbose=0)
