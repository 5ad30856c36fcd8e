import keras
import numpy as np
import pytest
import tensorflow as tf
from steps import step_of

import keras_rbm
from keras_rbm import rules

DATA = np.random.default_rng(0).integers(0, 2, (40, 6)).astype("float32")
RULES = [
    rules.ContrastiveDivergence(gibbs_steps=3, sparsity_target=0.1, sparsity_cost=0.2),
    rules.PersistentContrastiveDivergence(gibbs_steps=2, num_chains=7),
]


def fitted(rule, optimizer="sgd", epochs=1, **kwargs):
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0, **kwargs)
    rbm.compile(optimizer, rule=rule)
    rbm.fit(DATA, batch_size=10, epochs=epochs, verbose=0)
    return rbm


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_config_round_trip(rule):
    again = rules.deserialize(rules.serialize(rule))
    assert type(again) is type(rule)
    assert again.get_config() == rule.get_config()
    assert repr(rule).startswith(type(rule).__name__)


def test_names():
    assert isinstance(rules.get("cd"), rules.ContrastiveDivergence)
    assert isinstance(rules.get("PCD"), rules.PersistentContrastiveDivergence)
    config = rules.serialize(rules.get("pcd"))
    assert isinstance(rules.get(config), rules.PersistentContrastiveDivergence)


@pytest.mark.parametrize("identifier", ["nce", None, 3, rules.ContrastiveDivergence])
def test_unknown_rule(identifier):
    with pytest.raises(ValueError, match=r"one of .*'cd'.*Received"):
        rules.get(identifier)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3", None])
def test_counts_that_are_no_positive_ints(count):
    with pytest.raises(ValueError, match="gibbs_steps ≥ 1. Received: gibbs_steps="):
        rules.ContrastiveDivergence(gibbs_steps=count)
    with pytest.raises(ValueError, match="num_chains ≥ 1. Received: num_chains="):
        rules.PersistentContrastiveDivergence(num_chains=count)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sparsity_target": 1.0, "sparsity_cost": 1.0}, "sparsity_target between 0"),
        ({"sparsity_target": 0.1, "sparsity_cost": -1.0}, "sparsity_cost ≥ 0"),
        ({"sparsity_cost": 1.0}, "sparsity_target and a sparsity_cost > 0 together"),
    ],
)
def test_bad_sparsity(arguments, message):
    with pytest.raises(ValueError, match=message):
        rules.ContrastiveDivergence(**arguments)


@pytest.mark.parametrize(
    "name, value",
    [
        ("sparsity_cost", "1"),
        ("sparsity_target", ""),
        ("sparsity_cost", True),
        ("centered", "False"),
    ],
)
def test_options_of_other_types(name, value):
    """Text was compared with numbers, and "False" passed for true."""
    with pytest.raises(TypeError, match=f"Expected .* Received: {name}={value!r}"):
        rules.ContrastiveDivergence(**{name: value})


def test_sparsity_lowers_activation():
    plain = fitted("cd", keras.optimizers.SGD(0.1), epochs=30)
    sparse = fitted(
        rules.ContrastiveDivergence(sparsity_target=0.05, sparsity_cost=2.0),
        keras.optimizers.SGD(0.1),
        epochs=30,
    )
    activation = [np.mean(m.predict(DATA, verbose=0)) for m in (plain, sparse)]
    assert activation[1] < 0.15 < activation[0]


def test_sparsity_is_the_stated_term():
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    rule = rules.ContrastiveDivergence(sparsity_target=0.2, sparsity_cost=3.0)
    weights = tf.fill([40], 1 / 40)
    positive = step_of(rbm.potentials(), DATA, weights).positive
    zeros = {"hidden_bias": tf.zeros(4)}
    got = rule._sparse(zeros, positive)["hidden_bias"]
    mean = rbm.predict(DATA, verbose=0).mean(0)
    np.testing.assert_allclose(-got, 3.0 * (0.2 - mean), rtol=1e-5)


def test_a_rule_belongs_to_one_model():
    rule = rules.ContrastiveDivergence()
    first = fitted(rule)
    first.compile("adam", rule=rule)
    second = keras_rbm.RBM(4, num_visible=6, name="second")
    with pytest.raises(ValueError, match="new rule object for each model.*belongs to"):
        second.compile(rule=rule)
    assert second.rule is None


def test_chains_move_and_are_not_weights():
    rule = rules.PersistentContrastiveDivergence(num_chains=9)
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    rbm.compile("sgd", rule=rule)
    before = rule.chains.numpy()
    rbm.fit(DATA, epochs=2, verbose=0)
    assert (rule.chains.numpy() != before).any()
    assert set(np.unique(rule.chains)) <= {0.0, 1.0}
    names = [weight.name for weight in rbm.weights]
    record = ["base_rate", "examples_seen"]
    assert names == ["kernel", "visible_bias", "hidden_bias", *record]


@pytest.mark.parametrize(
    "optimizer",
    [
        keras.optimizers.AdamW(0.01, weight_decay=0.1, clipnorm=1.0),
        keras.optimizers.SGD(0.1, gradient_accumulation_steps=2),
        *(
            pytest.param(optimizer, marks=pytest.mark.slow)
            for optimizer in (
                keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
                keras.optimizers.Adam(0.01),
                keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 100)),
                keras.optimizers.SGD(0.1, use_ema=True),
                keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)),
            )
        ),
    ],
    ids=lambda optimizer: type(optimizer).__name__,
)
def test_keras_optimizers_work(optimizer):
    data = np.tile(np.float32([1, 1, 1, 0, 0, 0]), (40, 1))
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    rbm.compile(optimizer)
    before = rbm.pseudo_log_likelihood(data).numpy().mean()
    rbm.fit(data, batch_size=10, epochs=20, verbose=0)
    assert rbm.pseudo_log_likelihood(data).numpy().mean() > before + 0.5


def test_loss_scaling_leaves_the_step_alone():
    plain = fitted("cd", keras.optimizers.SGD(0.1))
    scaled = fitted(
        "cd", keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    )
    factor = fitted("cd", keras.optimizers.SGD(0.1, loss_scale_factor=64.0))
    for other in (scaled, factor):
        np.testing.assert_allclose(plain.kernel, other.kernel, rtol=1e-5, atol=1e-7)


def test_regularizer_adds_its_gradient():
    rule, again = (rules.ContrastiveDivergence(centered=False) for _ in range(2))
    plain = fitted(rule, keras.optimizers.SGD(1.0), epochs=0)
    decayed = keras_rbm.RBM(
        4, num_visible=6, seed=0, kernel_regularizer=keras.regularizers.L2(0.01)
    )
    decayed.compile(keras.optimizers.SGD(1.0), rule=again)
    decayed.fit(DATA, epochs=0)
    kernel = decayed.kernel.numpy()
    np.testing.assert_array_equal(kernel, plain.kernel)
    for rbm in (plain, decayed):
        rbm.train_on_batch(DATA)
    np.testing.assert_allclose(
        plain.kernel - decayed.kernel, 0.02 * kernel, rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("rule", ["cd", "pcd"])
def test_a_batch_without_weight_teaches_nothing(rule):
    """Persistent chains used to pull the parameters all the same."""
    rbm = keras_rbm.RBM(4, num_visible=6, seed=0)
    rbm.compile(keras.optimizers.SGD(0.1), rule=rule)
    before = [weight.numpy() for weight in rbm.weights]
    rbm.fit(DATA, sample_weight=np.zeros(40), verbose=0)
    for a, b in zip(before, rbm.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_variables_of_a_rule_have_names_of_their_own():
    """One was saved over the other, and both were loaded from it."""

    class Twice(rules.ContrastiveDivergence):
        def build(self, learner):
            super().build(learner)
            for _ in range(2):
                learner.add_variable("steps", (), "zeros")

    with pytest.raises(ValueError, match="Expected another name.*name='steps' twice"):
        keras_rbm.RBM(3, num_visible=4).compile("sgd", rule=Twice())
