"""What is no model, no states, no base: an error that says so, before anything runs."""

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from brute_force import random_potentials

from keras_rbm import inference

MODEL = random_potentials(4, 3)
STATES = np.random.default_rng(0).integers(0, 2, (12, 4)).astype("float32")

TAKE_STATES = {
    "gibbs_sweep": lambda x: inference.gibbs_sweep(MODEL, x, seed=0),
    "gibbs_chain": lambda x: inference.gibbs_chain(MODEL, x, 0, num_sweeps=2),
    "sample_hidden": lambda x: inference.sample_hidden_given_visible(MODEL, x, 0),
    "pseudo": lambda x: inference.pseudo_log_likelihood(MODEL, x),
    "stochastic": lambda x: inference.stochastic_pseudo_log_likelihood(MODEL, x, 0),
    "reconstruction": lambda x: inference.reconstruction_log_likelihood(MODEL, x),
    "moments": lambda x: inference.conditional_moments(MODEL, x, np.full(12, 1 / 12)),
    "annealed": lambda x: inference.annealed_log_likelihood(MODEL, x, betas=5),
    "reverse": lambda x: inference.reverse_annealed_importance_sampling(
        MODEL, x, betas=5
    ),
}


@pytest.mark.parametrize("name", TAKE_STATES)
def test_states(name):
    """One example was taken for a batch, by a silent broadcast, or ended in TensorFlow.

    A sparse matrix, text and a mask of another width ended there, too.
    """
    call = TAKE_STATES[name]
    for states in (STATES[0], STATES[:, :3], STATES.reshape(12, 2, 2)):
        with pytest.raises(ValueError, match=r"Expected visible of shape.*Received"):
            call(states)
    sparse = scipy.sparse.csr_matrix(STATES), tf.sparse.from_dense(STATES)
    for states in (*sparse, "text", None, {"x": STATES}, STATES.astype(str), [[0], []]):
        with pytest.raises(TypeError, match="Expected visible as a dense.*Received"):
            call(states)
    call(STATES.astype("int64"))


@pytest.mark.parametrize("type_", ["float16", "float64", "int32", "bool"])
def test_other_types_are_numbers_too(type_):
    for name in ("gibbs_chain", "pseudo", "reconstruction", "annealed"):
        one, other = (TAKE_STATES[name](x) for x in (STATES, STATES.astype(type_)))
        np.testing.assert_array_equal(one, other)


def test_what_is_no_model():
    for call in (
        inference.exact_log_partition,
        inference.exact_moments,
        inference.sum_product,
        inference.max_product,
        inference.mixed_product,
        inference.mean_field,
        inference.anneal,
        inference.annealed_importance_sampling,
        inference.parallel_tempering,
        inference.temper,
        lambda model: inference.gibbs_sweep(model, STATES, 0),
    ):
        for model in ("text", None, STATES, {"kernel": STATES}):
            with pytest.raises(TypeError, match="Expected a model.*Pass model.pot"):
                call(model)


def test_base_and_weights():
    with pytest.raises(ValueError, match=r"Expected base of shape \(4,\)"):
        inference.annealed_importance_sampling(MODEL, base=STATES, betas=5)
    with pytest.raises(TypeError, match="Expected base as a dense"):
        inference.anneal(MODEL, base="zero")
    with pytest.raises(ValueError, match="Expected weights of shape"):
        inference.conditional_moments(MODEL, STATES, np.ones(3))
    with pytest.raises(TypeError, match="Expected weights as a dense"):
        inference.sum_product(MODEL, weights="equal")


def test_counts_that_are_tensors():
    for count in (tf.constant([1, 2]), tf.constant(2.0), tf.constant(-1)):
        with pytest.raises(ValueError, match="Expected an int num_sweeps ≥ 0"):
            inference.gibbs_chain(MODEL, STATES, 0, num_sweeps=count)
    inference.gibbs_chain(MODEL, STATES, 0, num_sweeps=tf.constant(2))


@pytest.mark.parametrize("seed", ["text", [0.5, 1.0], np.array(["a", "b"]), {}, None])
def test_seeds(seed):
    with pytest.raises(ValueError, match="Expected seed to be an int"):
        inference.gibbs_sweep(MODEL, STATES, seed)
