"""The share of examples on which inference converges, against counting it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from model_test_case import two_cpus
from random_models import randomize

import keras_rbm
from keras_rbm import inference, rules
from keras_rbm.callbacks import BPConvergence
from keras_rbm.models.data import rows

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (34, 5)).astype("float32")
Y = RNG.integers(0, 2, (34, 6)).astype("float32")
PAIRS = tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)
SLOW = pytest.mark.slow
RULES = {"mixed_product": "max_margin", "max_product": "max_margin"}


def compiled(infer="sum_product", rule=None, scale=3.0):
    """Returns a CRBM whose inference converges for some examples only."""
    infer = inference.get(infer)
    crbm = keras_rbm.CRBM(4, inference=infer, num_visible=6, num_features=5, seed=0)
    randomize(crbm, 1, scale)
    rule = rule or RULES.get(getattr(infer, "method", None), "maximum_likelihood")
    crbm.compile(keras.optimizers.SGD(0.1), rule=rule)
    return crbm


def logged(crbm, *callbacks, **kwargs):
    history = crbm.fit(X, Y, callbacks=[*callbacks], verbose=0, **kwargs)
    return history.history["bp_converged"]


def counted(infer, crbm):
    """The share, one example at a time."""
    beliefs = [infer(crbm.potentials(x[np.newaxis])) for x in X]
    return np.mean([b.converged.numpy()[0] for b in beliefs])


@pytest.mark.parametrize(
    ("infer", "sweeps"),
    [
        ("sum_product", 4),
        ("mixed_product", 2),
        ("mean_field", 6),
        pytest.param("max_product", 3, marks=SLOW),
    ],
)
def test_is_the_share_that_converged(infer, sweeps, monkeypatch):
    monkeypatch.setattr(rows, "ROWS_AT_ONCE", 10)  # 34: the last has 4
    crbm = compiled(infer)
    crbm.inference.max_iterations = sweeps
    share = logged(crbm, BPConvergence(X), epochs=2)
    assert share[-1] == counted(crbm.inference, crbm)
    assert 0.0 < share[-1] < 1.0


def test_exact_inference_always_converges():
    assert logged(compiled("exact"), BPConvergence(X)) == [1.0]


def test_watches_the_inference_that_learns():
    learns = inference.BeliefPropagation(max_iterations=1)
    crbm = compiled("mean_field", rules.MaximumLikelihood(learns))
    crbm.inference.max_iterations = 1000
    assert logged(crbm, BPConvergence(X)) == [0.0]


def test_a_few_examples_at_a_time(monkeypatch):
    monkeypatch.setattr(rows, "ROWS_AT_ONCE", 8)
    crbm, sizes = compiled(), []
    potentials = crbm.potentials
    monkeypatch.setattr(
        crbm, "potentials", lambda x: sizes.append(x.shape[0]) or potentials(x)
    )
    callback = BPConvergence(X)
    callback.set_model(crbm)
    callback.on_epoch_end(0, {})
    assert sizes == [8, 8, 8, 8, 2]


@pytest.mark.parametrize(
    "x",
    [
        PAIRS,
        PAIRS.unbatch(),
        PAIRS.map(lambda x, y: x),
        tf.data.Dataset.from_tensor_slices(X),
        X.astype(int),
        X.tolist(),
    ],
    ids=["pairs", "unbatched pairs", "batches", "rows", "ints", "lists"],
)
def test_accepts(x):
    np.testing.assert_array_equal(BPConvergence(x).x, X)


def test_reads_a_dataset_once():
    reads = []

    def generate():
        reads.append(1)
        yield from zip(X, Y, strict=True)

    spec = (tf.TensorSpec(5), tf.TensorSpec(6))
    dataset = tf.data.Dataset.from_generator(generate, output_signature=spec)
    logged(compiled(), BPConvergence(dataset), epochs=3)
    assert len(reads) == 1


def test_traces_the_step_once():
    crbm = compiled()
    traces, step = [], crbm.train_step
    crbm.train_step = lambda data: traces.append(1) or step(data)
    crbm.fit(PAIRS.take(3), epochs=3, callbacks=[BPConvergence(X)], verbose=0)
    assert len(traces) == 1


@SLOW
def test_two_replicas():
    with two_cpus().scope():
        crbm = compiled()
    crbm.inference.max_iterations = 4
    share = logged(crbm, BPConvergence(X), shuffle=False)
    assert share == [counted(crbm.inference, crbm)] and 0.0 < share[0] < 1.0
