"""What learning rules do alike: names, configs, evaluation, and what each refuses."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import random_potentials, rbm_like
from comparisons import (
    BAD_COUNTS,
    assert_close,
    assert_equal,
    assert_restored,
    refused,
    unchanged,
)
from random_models import parameters, random_crbm, rule_gradients, weighted_pairs
from steps import evaluated_losses, step_of

import keras_rbm
from keras_rbm import CRBM, RBM, inference, rules

DATA = np.random.default_rng(0).integers(0, 2, (40, 6)).astype("float32")
NAN, INFINITY = float("nan"), float("inf")


def fitted(rule, optimizer="sgd", epochs=1, **kwargs):
    rbm = RBM(4, num_visible=6, seed=0, **kwargs)
    rbm.compile(optimizer, rule=rule)
    rbm.fit(DATA, batch_size=10, epochs=epochs, verbose=0)
    return rbm


#: Each rule with options that are not its defaults.
OPTIONS = [
    ("cd", {"gibbs_steps": 3, "sparsity_target": 0.1, "sparsity_cost": 0.2}),
    ("pcd", {"gibbs_steps": 2, "num_chains": 7, "centered": True}),
    ("fpcd", {"num_chains": 7, "fast_learning_rate": 0.3, "fast_decay": 0.8}),
    ("sdcp", {"inner_steps": 3, "gibbs_steps": 2, "centered": True}),
    ("parallel_tempering", {"num_chains": 7, "num_replicas": 2, "num_ladders": 4}),
    ("cd_perceptron", {"gibbs_steps": 4, "sparsity_target": 0.1, "sparsity_cost": 1.0}),
    ("max_margin", {"sparsity_target": 0.1, "sparsity_cost": 0.2}),
    ("maximum_likelihood", {"sparsity_target": 0.1, "sparsity_cost": 0.2}),
]


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_names_and_configs(name, options):
    kind = type(rules.get(name.upper()))
    rule = kind(**options)
    again = assert_restored(rules, rule)
    config = again.get_config()
    assert config | options == config != kind().get_config()
    centered = kind().get_config()["centered"]
    assert centered is (False if name == "cd_perceptron" else None)
    assert repr(again) == repr(rule) and repr(rule).startswith(kind.__name__)
    assert isinstance(rules.get(rules.serialize(rule)), kind)


def test_configs_hold_inference():
    mean_field = inference.MeanField(max_iterations=3, tolerance=0.01)
    propagation = inference.BeliefPropagation(max_iterations=7, damping=0.1)
    for infer in ("exact", mean_field, propagation):
        rule = rules.MaximumLikelihood(infer)
        again = assert_restored(rules, rule).inference
        assert type(again) is type(rule.inference)
        assert repr(again) == repr(rule.inference)


COUNTS = [
    (rules.ContrastiveDivergence, "gibbs_steps"),
    (rules.PersistentContrastiveDivergence, "num_chains"),
    (rules.SDCP, "inner_steps"),
    (rules.SDCP, "gibbs_steps"),
    (rules.ContrastiveDivergencePerceptron, "gibbs_steps"),
    (rules.FastPersistentContrastiveDivergence, "gibbs_steps"),
    (rules.FastPersistentContrastiveDivergence, "num_chains"),
    (rules.ParallelTempering, "gibbs_steps"),
    (rules.ParallelTempering, "num_chains"),
    (rules.ParallelTempering, "num_ladders"),
    (rules.FrankWolfe, "num_starts"),
]


@pytest.mark.parametrize(("kind", "name"), COUNTS)
def test_counts_that_are_no_positive_ints(kind, name):
    for count in BAD_COUNTS:
        with pytest.raises(ValueError, match=f"int {name} ≥ 1. Received: {name}="):
            kind(**{name: count})


#: Rule, options of the rule, what is said.
REFUSED = [
    ("cd", {"sparsity_target": 1.0, "sparsity_cost": 1.0}, "sparsity_target between 0"),
    ("cd", {"sparsity_target": 0.1, "sparsity_cost": -1.0}, "sparsity_cost ≥ 0"),
    ("cd", {"sparsity_cost": 1.0}, "and a sparsity_cost > 0 together"),
    ("cd", {"sparsity_cost": "1"}, "Expected .* Received: sparsity_cost='1'"),
    ("cd", {"sparsity_target": ""}, "Expected .* Received: sparsity_target=''"),
    ("cd", {"sparsity_cost": True}, "Expected .* Received: sparsity_cost=True"),
    ("cd", {"centered": "False"}, "Expected .* Received: centered='False'"),
    ("fpcd", {"fast_decay": 1.0}, "≥ 0 and fast_decay in"),
    ("fpcd", {"fast_decay": -0.1}, "≥ 0 and fast_decay in"),
    ("fpcd", {"fast_learning_rate": -0.01}, "≥ 0 and fast_decay in"),
    ("fpcd", {"fast_decay": NAN}, "finite number|≥ 0 and"),
    ("fpcd", {"fast_learning_rate": NAN}, "finite number|≥ 0 and"),
    ("fpcd", {"fast_learning_rate": INFINITY}, "finite number|≥ 0 and"),
    ("fpcd", {"fast_learning_rate": "1"}, "number. Received: fast_learning_rate='1'"),
    ("parallel_tempering", {"num_replicas": 1}, "≥ 2. Received: num_replicas=1"),
    ("parallel_tempering", {"num_replicas": 2.5}, "int num_replicas ≥ 2"),
    ("frank_wolfe", {"l2": -0.1}, "Expected .*l2 ≥ 0.*Received"),
    ("frank_wolfe", {"l2": NAN}, "Expected .*l2 ≥ 0.*Received"),
    ("frank_wolfe", {"l2": "0.1"}, "Expected .*l2 ≥ 0.*Received"),
    ("frank_wolfe", {"l2": True}, "Expected .*l2 ≥ 0.*Received"),
    ("frank_wolfe", {"l2": None}, "Expected .*l2 ≥ 0.*Received"),
    ("frank_wolfe", {"num_samples": 1}, "Expected .*num_samples ≥ 2.*Received"),
    ("hybrid_discriminative", {"generative_weight": -1.0}, "≥ 0"),
    ("hybrid_discriminative", {"generative": "sdcp"}, "negative phase"),
    ("hybrid_discriminative", {"generative": "max_margin"}, "negative phase"),
    ("maximum_likelihood", {"inference": "magic"}, "an inference method.*Received"),
    ("maximum_likelihood", {"inference": 7}, "an inference method.*Received"),
    (
        "maximum_likelihood",
        {"inference": inference.Exact},
        "inference method.*Received",
    ),
    ("maximum_likelihood", {"inference": "pcd"}, "an inference method.*Received"),
]


@pytest.mark.parametrize(("name", "options", "word"), REFUSED, ids=str)
def test_options_that_are_refused(name, options, word):
    with pytest.raises((TypeError, ValueError), match=word):
        type(rules.get(name))(**options)


@pytest.mark.parametrize("identifier", ["nce", None, 3, rules.ContrastiveDivergence])
def test_unknown_rules(identifier):
    with pytest.raises(ValueError, match=r"one of .*'cd'.*Received"):
        rules.get(identifier)


#: Model and its options, rule and its options, what is said when it is compiled.
UNSUITED = [
    (CRBM, {"inference": "sum_product"}, "max_margin", {}, r"finds states.*: \w+\("),
    (CRBM, {"inference": "mean_field"}, "max_margin", {}, r"finds states.*: \w+\("),
    (CRBM, {"inference": "exact"}, "max_margin", {}, r"finds states.*: \w+\("),
    (CRBM, {"inference": "max_product"}, "maximum_likelihood", {}, "max_product"),
    (CRBM, {"inference": "mixed_product"}, "maximum_likelihood", {}, "mixed_product"),
    (CRBM, {}, "maximum_likelihood", {"inference": "max_product"}, "yields marginals"),
    (RBM, {}, "maximum_likelihood", {"inference": "mixed_product"}, "mixed_product"),
    (CRBM, {}, "fpcd", {}, "without input for FastPersistent.*CRBM"),
    (CRBM, {"num_visible": 6}, "fpcd", {}, "without input for FastPersistent.*CRBM"),
    (CRBM, {}, "parallel_tempering", {}, "without input for ParallelTempering.*CRBM"),
    (RBM, {}, "frank_wolfe", {}, "model of fixed size.*InfiniteRBM"),
    (keras_rbm.InfiniteRBM, {}, "pcd", {}, "adds hidden units.*to_rbm"),
    (RBM, {}, "marginal_loss", {"loss": "mse"}, "with input"),
]


@pytest.mark.parametrize(("kind", "given", "rule", "options", "word"), UNSUITED)
def test_models_that_a_rule_does_not_suit(kind, given, rule, options, word):
    model = kind(3, **given)
    marginal = rule == "marginal_loss"  # a loss of `compile`, without a name of its own
    rule = (rules.MarginalLoss if marginal else type(rules.get(rule)))(**options)
    refused(model, lambda: model.compile("sgd", rule=rule), word)
    assert model.rule is None and rule.learner is None and not rule.built


def test_a_model_that_refused_a_rule_takes_another():
    crbm = CRBM(4, inference="max_product")
    crbm.compile("sgd", rule="cd")
    before = crbm.rule
    refused(crbm, lambda: crbm.compile(rule="fpcd"), "without input")
    assert crbm.rule is before
    # What the rule learns by counts, not what the model predicts by.
    crbm.compile("sgd", rule=rules.MaximumLikelihood("sum_product"))


def test_variables_of_a_rule_have_names_of_their_own():
    """One was saved over the other, and both were loaded from it."""

    class Twice(rules.ContrastiveDivergence):
        def build(self, learner):
            super().build(learner)
            for _ in range(2):
                learner.add_variable("steps", (), "zeros")

    with pytest.raises(ValueError, match="Expected another name.*name='steps' twice"):
        RBM(3, num_visible=4).compile("sgd", rule=Twice())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cd", {"centered": False}),
        ("cd", {"centered": True}),
        ("pcd", {"num_chains": 7}),
        ("sdcp", {"inner_steps": 2}),
        ("fpcd", {"num_chains": 7}),
        ("parallel_tempering", {"num_chains": 9, "num_replicas": 3}),
    ],
)
def test_a_batch_without_weight_teaches_nothing(name, options):
    """Persistent chains used to pull the parameters all the same."""
    rule = type(rules.get(name))(**{"centered": True} | options)
    rbm = rbm_like(random_potentials(6, 3))
    rbm.compile(keras.optimizers.SGD(0.1), rule=rule)
    offsets = [v.numpy() for v in rule.learner.variables if "offset" in v.name]
    assert len(offsets) == 2 * rule.centered
    with unchanged(rbm):
        rbm.fit(DATA, sample_weight=np.zeros(40), verbose=0)
    assert_equal([v for v in rule.learner.variables if "offset" in v.name], offsets)


#: Rule, inference of the model, whether it predicts marginals.
CONDITIONAL = [
    ("cd_perceptron", "mean_field", False),
    ("max_margin", "mixed_product", False),
    ("max_margin", "max_product", False),
    ("maximum_likelihood", "exact", True),
    ("maximum_likelihood", "sum_product", True),
]


@pytest.mark.parametrize(("rule", "infer", "predicts"), CONDITIONAL)
def test_steps_and_evaluation_are_those_of_the_phases(rule, infer, predicts):
    crbm = random_crbm(rule, infer)
    rule = type(crbm.rule)(centered=False)
    crbm.compile(keras.optimizers.SGD(0.5), rule=rule, run_eagerly=True)
    x, v, weights = weighted_pairs()
    state = crbm.seed_generator.state.numpy()
    seed = crbm._next_seed()
    want, phases = rule_gradients(crbm, x, v, weights, seed)
    losses, prediction = evaluated_losses(crbm, crbm.potentials(x), v, seed)
    np.testing.assert_allclose(losses, phases.losses, rtol=1e-6)
    assert (prediction is not None) == (phases.prediction is not None) == predicts
    crbm.seed_generator.state.assign(state)
    before = parameters(crbm)
    loss = crbm.train_on_batch(x, v, sample_weight=3.0 * weights)
    np.testing.assert_allclose(loss, tf.reduce_sum(weights * losses), rtol=1e-5)
    moved = {n: (before[n] - after) / 0.5 for n, after in parameters(crbm).items()}
    assert_close(moved, want)


def test_sparsity():
    rbm = RBM(4, num_visible=6, seed=0)
    rule = rules.ContrastiveDivergence(sparsity_target=0.2, sparsity_cost=3.0)
    positive = step_of(rbm.potentials(), DATA, tf.fill([40], 1 / 40)).positive
    got = rule._sparse({"hidden_bias": tf.zeros(4)}, positive)["hidden_bias"]
    mean = rbm.predict(DATA, verbose=0).mean(0)
    np.testing.assert_allclose(-got, 3.0 * (0.2 - mean), rtol=1e-5)


@pytest.mark.parametrize(
    "optimizer",
    [
        keras.optimizers.AdamW(0.01, weight_decay=0.1, clipnorm=1.0),
        keras.optimizers.SGD(0.1, gradient_accumulation_steps=2, use_ema=True),
    ],
    ids=lambda optimizer: type(optimizer).__name__,
)
def test_keras_optimizers_work(optimizer):
    data = np.tile(np.float32([1, 1, 1, 0, 0, 0]), (40, 1))
    rbm = RBM(4, num_visible=6, seed=0)
    rbm.compile(optimizer)
    before = rbm.pseudo_log_likelihood(data).numpy().mean()
    rbm.fit(data, batch_size=10, epochs=20, verbose=0)
    assert rbm.pseudo_log_likelihood(data).numpy().mean() > before + 0.5


def test_loss_scaling_leaves_the_step_alone():
    sgd = keras.optimizers.SGD
    plain = fitted("cd", sgd(0.1))
    scaled = keras.optimizers.LossScaleOptimizer(sgd(0.1))
    for optimizer in (scaled, sgd(0.1, loss_scale_factor=64.0)):
        kernel = fitted("cd", optimizer).kernel
        np.testing.assert_allclose(plain.kernel, kernel, rtol=1e-5, atol=1e-7)


def test_regularizer_adds_its_gradient():
    plain, decayed = (
        fitted(
            rules.ContrastiveDivergence(centered=False),
            keras.optimizers.SGD(1.0),
            epochs=0,
            kernel_regularizer=penalty,
        )
        for penalty in (None, keras.regularizers.L2(0.01))
    )
    kernel = decayed.kernel.numpy()
    np.testing.assert_array_equal(kernel, plain.kernel)
    for rbm in (plain, decayed):
        rbm.train_on_batch(DATA)
    difference = plain.kernel - decayed.kernel
    np.testing.assert_allclose(difference, 0.02 * kernel, rtol=1e-3, atol=1e-6)
