"""What every approximate inference promises, of binary and of categorical units."""

import functools
import gc
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from brute_force import random_gaussian_potentials, random_potentials
from message_passing import assert_same, random_batch, rows
from small_models import slow

from keras_rbm import inference, units
from keras_rbm.inference import (
    BeliefPropagation,
    Exact,
    MeanField,
    Potentials,
    max_product,
    mean_field,
    mixed_product,
    sum_product,
)

MESSAGES = [sum_product, max_product, mixed_product]
PROPAGATION = [
    (functools.partial(BeliefPropagation, function.__name__), function)
    for function in MESSAGES
]
OBJECTS = [*PROPAGATION, (MeanField, mean_field)]
#: Inference and number of categories. Maxima often go in circles, up to 100 times.
FEW = functools.partial(max_product, max_iterations=12)
CASES = [(infer, q) for infer in (sum_product, mixed_product) for q in (1, 3)]
CASES += [slow(FEW, 1), (FEW, 3), (mean_field, 1)]
of_all_units = pytest.mark.parametrize(("infer", "q"), [*CASES, (Exact(), 1)])


def options_of(function, **options):
    """Returns options; mixed-product has none but the number of sweeps."""
    count = options["max_iterations"]
    return {"max_iterations": count} if function is mixed_product else options


def stack(results):
    """Returns one batched result of the results of single models."""
    return tf.nest.map_structure(lambda *leaves: tf.stack(leaves), *results)


def alone(infer, potentials):
    return stack([infer(row, pairwise="each") for row in rows(potentials)])


@pytest.mark.parametrize(("infer", "q"), CASES)
def test_rows_do_not_depend_on_the_batch(infer, q):
    potentials = random_batch(6, 5, 7, seed=10, q=q)
    each = alone(infer, potentials)
    assert len(set(each.num_iterations.numpy())) > 1  # some rows stop earlier
    for size in (1, 3, 7):
        layers = (u._replace(bias=u.bias[:size]) for u in potentials[1:])
        want = tf.nest.map_structure(lambda leaf, size=size: leaf[:size], each)
        some = Potentials(potentials.kernel, *layers)
        assert_same(infer(some, pairwise="each"), want)


@of_all_units
def test_either_bias_may_have_the_batch(infer, q):
    kernel, visible, hidden = random_batch(6, 5, 3, q=q)
    for potentials in (
        Potentials(kernel, visible, hidden.bias[0]),
        Potentials(kernel, visible._replace(bias=visible.bias[0]), hidden),
    ):
        found = infer(potentials, pairwise="each")
        assert_same(found, alone(infer, potentials))


@of_all_units
def test_shapes_and_weighted_pairs(infer, q):
    potentials = random_batch(12, 8, 5, q=q)
    batched, one = infer(potentials), infer(rows(potentials)[0], pairwise="each")
    for result, batch in ((batched, (5,)), (one, ())):
        assert result.visible.shape == (*batch, 12 * q)
        assert result.hidden.shape == (*batch, 8)
        assert result.pairwise.shape == (12 * q, 8)
        for scalar in result[3:]:
            assert scalar.shape == batch
        assert result.num_iterations.dtype.is_integer
        assert result.converged.dtype == tf.bool
    assert infer(potentials, pairwise=None).pairwise is None
    each = infer(potentials, pairwise="each").pairwise.numpy()
    np.testing.assert_allclose(batched.pairwise, each.mean(0), atol=1e-6)
    for weights in ([0.1, 0.4, 0.0, 0.3, 0.2], [0, 0, 2.0, 0, 0], [0.0] * 5):
        got = infer(potentials, weights=tf.constant(weights, tf.float32))
        want = np.einsum("n,nij->ij", weights, each)
        np.testing.assert_allclose(got.pairwise, want, atol=1e-6)
        np.testing.assert_array_equal(got.visible, batched.visible)


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
@of_all_units
def test_compiles_for_any_batch_size(infer, q, jit_compile, compiled_inference):
    # Weakly coupled: no max-marginal is so near a tie that rounding decides.
    kernel, visible, hidden = random_batch(12, 8, 5, scale=0.3, q=q)
    specs = [tf.TensorSpec([None, size]) for size in (12 * q, 8)]
    want = infer(Potentials(kernel, visible, hidden))
    compiled = tf.function(
        lambda b, c: infer(Potentials(kernel, visible._replace(bias=b), c)),
        input_signature=specs,
        jit_compile=jit_compile,
    )
    assert_same(compiled(visible.bias, hidden.bias), want)
    many = compiled(*(tf.tile(units.bias, (30, 1)) for units in (visible, hidden)))
    np.testing.assert_allclose(many.visible[-5:], want.visible, atol=1e-5)


@pytest.mark.parametrize("function", [sum_product, slow(mean_field)])
def test_max_iterations_may_be_a_tensor(function):
    potentials, traces = random_batch(12, 8, 5), []

    @tf.function
    def traced(max_iterations):
        traces.append(max_iterations)
        return function(potentials, max_iterations=max_iterations, tolerance=0.0)

    for count in (2, 7, 3):
        got = traced(tf.constant(count))
        want = function(potentials, max_iterations=count, tolerance=0.0)
        assert_same(got, want)
        np.testing.assert_array_equal(got.num_iterations, [count] * 5)
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("make", "function"), [*OBJECTS[::2], *(slow(*pair) for pair in OBJECTS[1::2])]
)
def test_max_iterations_of_an_object_is_no_constant(make, function):
    """Under a function traced once."""
    kernel, visible, hidden = random_batch(12, 8, 5)
    infer, traces = make(**options_of(function, max_iterations=9, tolerance=0.0)), []

    @tf.function
    def traced(visible_bias):
        traces.append(visible_bias)
        return infer(Potentials(kernel, visible_bias, hidden))

    for count in (1, 4, 2):
        infer.max_iterations = count
        assert int(infer.max_iterations) == count
        options = options_of(function, max_iterations=count, tolerance=0.0)
        want = function(Potentials(kernel, visible, hidden), **options)
        assert_same(traced(visible.bias), want)
    assert len(traces) == 1


@pytest.mark.parametrize("make", [BeliefPropagation, MeanField])
def test_objects_share_nothing(make):
    """Uses an object inside a function after another one is gone.

    A cached trace once held the variable `max_iterations` of the object that had
    caused it: "Called a function referencing variables which have been deleted".
    """
    potentials = random_batch(12, 8, 5)
    make()(potentials)
    gc.collect()
    infer = make()
    assert_same(tf.function(lambda: infer(potentials))(), infer(potentials))


@pytest.mark.parametrize(("make", "function"), [*OBJECTS, (Exact, None)])
def test_an_object_is_the_function_and_is_restored(make, function):
    potentials = random_batch(12, 8, 5)
    options = {"max_iterations": 9, "tolerance": 1e-4, "damping": 0.5}
    options = options_of(function, **options) if function else {}
    infer = make(**options)
    found = infer(potentials, pairwise="each")
    if function:
        assert_same(found, function(potentials, pairwise="each", **options))
    config = infer.get_config()
    for name, value in options.items():
        assert float(config[name]) == float(getattr(infer, name)) == value
    stored = json.dumps(keras.saving.serialize_keras_object(infer))
    restored = keras.saving.deserialize_keras_object(json.loads(stored))
    assert type(restored) is type(infer) and restored.get_config() == config
    assert_same(restored(potentials, pairwise="each"), found, atol=0, rtol=0)


@pytest.mark.parametrize(
    "option",
    [
        {"max_iterations": 0},
        {"max_iterations": -3},
        {"tolerance": -1e-3},
        {"damping": 1.0},
        {"damping": -0.1},
    ],
    ids=str,
)
def test_options_out_of_range(option):
    (name,) = option
    for make, function in OBJECTS:
        if function is not mixed_product or name == "max_iterations":
            with pytest.raises(ValueError, match=name):
                function(random_potentials(3, 2), **option)
            with pytest.raises(ValueError, match=name):
                make(**option)


GAUSSIAN = random_gaussian_potentials(3, 2)
CATEGORIES = units.Categorical(3).parameters(tf.zeros(6))
NOT_BINARY = [GAUSSIAN, GAUSSIAN.transpose()] + [
    Potentials(tf.zeros((6, 6)), first, CATEGORIES) for first in (CATEGORIES, [0.0] * 6)
]


@pytest.mark.parametrize(("make", "function"), OBJECTS)
def test_what_is_refused(make, function):
    for infer in (function, make()):
        with pytest.raises(ValueError, match="(?s)pairwise.*'all'"):
            infer(random_potentials(3, 2), pairwise="all")
        with pytest.raises(ValueError, match=r"weights of shape \(4,\)"):
            infer(random_batch(3, 2, 4), weights=tf.ones(3))
        for potentials in NOT_BINARY if function is not mean_field else []:
            with pytest.raises(ValueError, match="binary units.*Parameters"):
                infer(potentials)


def test_which_units_belief_propagation_takes():
    infer = BeliefPropagation()
    binary, categorical = units.Bernoulli(), units.Categorical(3)
    for layers in ((binary,) * 2, (binary,) * 3, (categorical, binary)):
        assert infer.takes(*layers)
    for layers in (
        (binary, categorical),
        (categorical, categorical),
        (categorical, binary, binary),
        (units.Spin(), binary),
    ):
        assert not infer.takes(*layers)


def test_unknown_methods_and_what_arrays_make():
    with pytest.raises(ValueError, match="(?s)method.*'loopy'"):
        BeliefPropagation("loopy")
    arrays = np.ones((3, 2)), np.zeros((4, 3)), np.zeros((4, 2))
    for infer in ("sum_product", "max_product", "mean_field", "exact"):
        assert inference.get(infer)(Potentials(*arrays)).visible.shape == (4, 3)
