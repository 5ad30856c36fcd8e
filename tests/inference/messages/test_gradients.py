"""Gradients through inference: exact, and those of the sweeps that were made."""

import numpy as np
import pytest
import tensorflow as tf
from brute_force import Enumerated, random_potentials
from message_passing import potentials_of
from small_models import quick, slow

from keras_rbm import inference
from keras_rbm.inference import Potentials
from keras_rbm.inference.messages import batches, mean_field
from keras_rbm.inference.messages.batches import gradients_of_sweeps
from keras_rbm.inference.messages.ratio_messages import LogMessages, RatioMessages
from keras_rbm.units.bernoulli import BernoulliParameters
from keras_rbm.units.gaussian import GaussianParameters

RNG = np.random.default_rng(0)
METHODS = "max_product", "mixed_product"


def normal(*shape, dtype=tf.float64):
    return tf.constant(RNG.normal(size=shape), dtype)


def check_directions(function, parameters, gradient, step=1e-5, tolerance=1e-8):
    """Compares a gradient with central differences along random directions."""
    leaves = tf.nest.flatten(parameters)
    for index, found in enumerate(tf.nest.flatten(gradient)):
        direction = normal(*found.shape, dtype=leaves[index].dtype)
        values = []
        for sign in (1.0, -1.0):
            moved = list(leaves)
            moved[index] += sign * step * direction
            values.append(function(tf.nest.pack_sequence_as(parameters, moved)))
        numeric = float(values[0] - values[1]) / (2 * step)
        along = float(tf.reduce_sum(found * direction))
        assert abs(numeric - along) < tolerance * (1 + abs(numeric))


def check_sweeps(start, sweep, read, model, counts):
    """Compares `gradients_of_sweeps` with differences, in float64."""
    weights = None

    def total(model):
        ends = []
        state = start(model)
        for _ in range(max(counts) + 1):
            ends.append(tf.nest.map_structure(lambda part: part, state))
            state = sweep(model, state)
        rows = [
            tf.nest.map_structure(lambda part, row=row: part[row], ends[count])
            for row, count in enumerate(counts)
        ]
        end = tf.nest.map_structure(lambda *parts: tf.stack(parts), *rows)
        return sum(
            tf.reduce_sum(weight * part)
            for weight, part in zip(weights, read(model, end), strict=True)
        )

    weights = [normal(*part.shape) for part in read(model, start(model))]
    found = gradients_of_sweeps(start, sweep, read, model, tf.constant(counts), weights)
    check_directions(total, model, found)


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize(
    "kind, counts",
    [
        ("ratios", [1, 3]),
        ("large ratios", [1, 3]),
        ("logarithms", [1, 3]),
        ("ratios", [40, 37]),  # beyond 16 states are kept
        slow("large ratios", [40, 37]),
        slow("logarithms", [40, 37]),
    ],
)
def test_belief_propagation_in_float64(kind, damping, counts):
    model = normal(8, 8), normal(2, 8), normal(2, 8)
    messages = {
        "ratios": RatioMessages(True, damping, 8),
        "large ratios": RatioMessages(True, damping, 1),
        "logarithms": LogMessages(True, damping, 1),
    }[kind]
    if kind != "logarithms":
        model = tf.exp(model[0]), *model[1:]
    check_sweeps(messages.start, messages.sweep, messages.read, model, counts)


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("start", [None, "means"])
@pytest.mark.parametrize("kind", ["binary", "gaussian"])
def test_mean_field_in_float64(kind, start, damping):
    visible = BernoulliParameters(normal(3, 6))
    if kind == "gaussian":
        ones = tf.ones(6, tf.float64)
        visible = GaussianParameters(normal(3, 6), 0.3 * ones, ones, ones)
    hidden = BernoulliParameters(normal(3, 4))
    model = Potentials(0.5 * normal(6, 4), visible, hidden)
    means = None if start is None else tf.sigmoid(normal(3, 6))
    check_sweeps(
        lambda model: mean_field._start(model, means, damping),
        lambda model, state: mean_field._sweep(model, state, damping),
        lambda model, state: mean_field._read(model, state, None, None),
        model,
        [2, 5, 20],
    )


def jacobian(infer, potentials):
    """Returns that of visible and hidden beliefs, with respect to W, b and c."""
    parts = [tf.identity(part) for part in tf.nest.flatten(potentials)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(parts)
        beliefs = infer(Potentials(*parts), pairwise=None)
        means = tf.concat([beliefs.visible, beliefs.hidden], 0)
    rows = tape.jacobian(means, parts, experimental_use_pfor=False)
    return np.concatenate([np.reshape(row, (len(means), -1)) for row in rows], 1)


def covariance(potentials):
    """Returns the exact Jacobian: the covariance of states with the statistics."""
    exact = Enumerated(potentials)
    v, h = (
        np.repeat(exact.v, len(exact.h), 0),
        np.tile(exact.h, (len(exact.v), 1)),
    )
    pairs = (v[:, :, np.newaxis] * h[:, np.newaxis, :]).reshape(len(v), -1)
    states = np.concatenate([v, h], 1)
    statistics = np.concatenate([pairs, v, h], 1)
    p = exact.joint.reshape(-1, 1)
    mean = (p * states).sum(0)
    return (p * (states - mean)).T @ statistics


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (5, 6)])
def test_exact_inference_has_the_covariance_as_jacobian(sizes, monkeypatch):
    if sizes == (5, 6):
        monkeypatch.setattr(batches, "CHUNK_SIZE", 9)  # 3 of 32 states at once
    potentials = random_potentials(*sizes)
    found = jacobian(inference.Exact(), potentials)
    np.testing.assert_allclose(found, covariance(potentials), atol=1e-6)


def test_sum_product_has_the_covariance_on_a_tree():
    potentials = random_potentials(5, 4)
    edges = np.zeros((5, 4), "float32")
    edges[0], edges[:, 0] = 1, 1
    potentials = potentials._replace(kernel=potentials.kernel * edges)
    # Weights that are zero are part of a loop as soon as they change.
    columns = np.r_[edges.ravel() > 0, np.ones(9, bool)]
    found = jacobian(
        inference.BeliefPropagation(max_iterations=10, tolerance=0.0), potentials
    )
    exact = covariance(potentials)
    np.testing.assert_allclose(found[:, columns], exact[:, columns], atol=1e-6)


#: Inference, number of categories, and a factor of one weight.
INFERENCES = {
    "messages": (inference.BeliefPropagation(max_iterations=4), 1, 1.0),
    "damped": (inference.BeliefPropagation(max_iterations=4, damping=0.2), 1, 1.0),
    "mean field": (inference.MeanField(max_iterations=4), 1, 1.0),
    "exact": (inference.Exact(), 1, 1.0),
} | {
    f"categories, {kind}": (
        inference.BeliefPropagation(max_iterations=4, damping=damping),
        *(3, scale),
    )
    for kind, damping, scale in (
        *(("ratios", 0.0, 1.0), ("damped logs", 0.3, 100.0)),
        *(("damped ratios", 0.3, 1.0), ("logs", 0.0, 100.0)),
    )
}
#: The others compile as many gradients again, a second or more each.
QUICK = [("mean field", "each"), ("exact", "each"), ("exact", None)]
QUICK += [("categories, ratios", "each"), ("categories, damped logs", "each")]
CASES = [(name, pairwise) for name in INFERENCES for pairwise in ("mean", "each", None)]


@pytest.mark.parametrize("case", quick(CASES, *QUICK), ids=str)
def test_all_beliefs_have_gradients(case, request):
    """Also those of pairs and log Z, of each model of a batch."""
    (infer, q, factor), pairwise = INFERENCES[case[0]], case[1]
    if q == 1:
        request.getfixturevalue("compiled_inference")
    sizes = (9, 5) if q == 1 else (9, 3)
    kernel = RNG.normal(size=sizes)
    kernel[0, 0] *= factor
    parts = [tf.constant(kernel, tf.float32)]
    parts += [normal(3, n, dtype=tf.float32) for n in sizes]
    shape = (3, *sizes) if pairwise == "each" else sizes
    shapes = *((3, n) for n in sizes), (3,), shape
    weights = [normal(*s, dtype=tf.float32) for s in shapes]

    def total(parts):
        beliefs = infer(potentials_of(*parts, q), pairwise=pairwise)
        values = beliefs.visible, beliefs.hidden, beliefs.log_partition
        values = values if pairwise is None else (*values, beliefs.pairwise)
        return sum(
            tf.reduce_sum(weight * value)
            for weight, value in zip(weights, values, strict=False)
        )

    with tf.GradientTape() as tape:
        tape.watch(parts)
        value = total(parts)
    found = tape.gradient(value, parts)
    check_directions(total, parts, found, step=1e-3, tolerance=1e-2)


def test_a_batch_of_several_chunks_has_the_gradients_of_its_models(monkeypatch):
    monkeypatch.setattr(batches, "CHUNK_SIZE", 4 * 2 * 8 * 8)  # two models each
    parts = [tf.cast(normal(*s), tf.float32) for s in ((5, 7), (5, 5), (5, 7))]

    def gradient(rows):
        chosen = [parts[0], *(tf.gather(part, rows) for part in parts[1:])]
        with tf.GradientTape() as tape:
            tape.watch(chosen)
            beliefs = inference.sum_product(Potentials(*chosen), pairwise=None)
            total = tf.reduce_sum(beliefs.visible**2) + tf.reduce_sum(beliefs.hidden)
        return tape.gradient(total, chosen)

    whole = gradient([0, 1, 2, 3, 4])
    single = [gradient([row]) for row in range(5)]
    np.testing.assert_allclose(whole[0], sum(each[0] for each in single), atol=1e-5)
    for part in (1, 2):
        expected = np.concatenate([each[part] for each in single])
        np.testing.assert_allclose(whole[part], expected, atol=1e-5)


@pytest.mark.parametrize("q", quick([1, 3], 1))
@pytest.mark.parametrize("method", quick(METHODS, METHODS[0]))
def test_states_have_no_gradient(method, q, compiled_inference):
    """Nor does TensorFlow look for one in the compiled loop, which has none."""
    kernel = normal(4 * q, 3, dtype=tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        potentials = potentials_of(kernel, tf.zeros((2, 4 * q)), tf.zeros((2, 3)), q)
        found = inference.BeliefPropagation(method)(potentials, pairwise=None).visible
    assert tape.gradient(found, kernel) is None


@pytest.mark.parametrize("method", ["exact", "mean_field", "sum_product"])
def test_a_second_derivative_is_an_error(method):
    kernel, b = normal(4, 3, dtype=tf.float32), normal(2, 4, dtype=tf.float32)

    def first(b):
        with tf.GradientTape() as tape:
            tape.watch(b)
            potentials = Potentials(kernel, b, tf.zeros((2, 3)))
            means = inference.get(method)(potentials, pairwise=None).visible
            total = tf.reduce_sum(means**2)
        return tape.gradient(total, b)

    with tf.GradientTape() as tape:
        tape.watch(b)
        with tape.stop_recording():
            assert first(b).shape == b.shape
        with pytest.raises(ValueError, match="first derivatives"):
            tape.gradient(tf.reduce_sum(first(b) ** 2), b)
