"""What is no model, no states, no base: an error that says so, before anything runs."""

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from brute_force import random_gaussian_potentials, random_potentials

import keras_rbm
from keras_rbm import inference, units
from keras_rbm.inference.annealing.options import Options
from keras_rbm.inference.log_partition import log_partitions

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


GAUSSIAN = random_gaussian_potentials(3, 3).visible
ENDLESS = inference.Potentials(tf.zeros((3, 3)), GAUSSIAN, GAUSSIAN)
UNBOUNDED = inference.Potentials(tf.fill((3, 3), 9.0), GAUSSIAN, GAUSSIAN)
SEVERAL = inference.Potentials(tf.zeros((3, 2)), tf.zeros((4, 3)), tf.zeros(2))
LARGE = random_potentials(30, 31)
CATEGORIES = keras_rbm.RBM(
    2, visible=units.Categorical(3), hidden="gaussian", num_visible=4
).potentials()


def gibbs(num_sweeps, seed=0):
    return inference.gibbs_chain(MODEL, STATES, seed, num_sweeps=num_sweeps)


def ais(base):
    return inference.annealed_importance_sampling(MODEL, base=base, betas=5)


def anneal(precision):
    return inference.anneal(MODEL, precision=precision)


def temper(num_chains):
    return inference.temper(MODEL, num_chains=num_chains)


def chains(count):
    return inference.annealed_importance_sampling(MODEL, num_chains=count)


def annealed(count):
    return inference.annealed_log_likelihood(MODEL, STATES, num_chains=count)


def couplings(weights):
    return inference.effective_couplings(CATEGORIES, STATES, weights)


SEED = "Expected seed to be an int"
#: What is called with what, and what is said.
REFUSED = [
    (ais, (STATES,), r"Expected base of shape \(4,\)"),
    (lambda base: inference.anneal(MODEL, base=base), ("zero",), "base as a dense"),
    (inference.conditional_moments, (MODEL, STATES, np.ones(3)), "weights of shape"),
    (lambda w: inference.sum_product(MODEL, weights=w), ("one",), "weights as a dense"),
    *((gibbs, (n,), "int num_sweeps ≥ 0") for n in map(tf.constant, ([1, 2], 2.0, -1))),
    *((gibbs, (1, s), SEED) for s in ("text", [0.5, 1.0], np.array(["a"]), {}, None)),
    (inference.exact_log_partition, (LARGE,), "at most 25 binary .*num_visible=30"),
    (inference.exact_log_partition, (ENDLESS,), "at least one layer of units with fin"),
    (inference.Exact(), (LARGE,), "at most 25 binary units"),
    (inference.Exact(), (MODEL, None, "all"), "(?s)pairwise.*'all'"),
    (inference.Exact(), (ENDLESS,), "(?s)one layer.*Gaussian.*MeanField"),
    (
        inference.pseudo_log_likelihood,
        (ENDLESS, tf.zeros((1, 3))),
        "finitely many.*Gau",
    ),
    (couplings, (np.ones(3),), "weights of shape"),
    *(
        (couplings, (w,), "≥ 0")
        for w in (np.zeros(12), -np.ones(12), np.full(12, np.nan))
    ),
    (inference.parallel_tempering, (SEVERAL,), "single model for tempering. Received"),
    (inference.temper, (SEVERAL,), "single model for tempering"),
    (inference.temper, (UNBOUNDED,), "positive definite"),
    (inference.annealed_importance_sampling, (UNBOUNDED,), "positive definite"),
    *((temper, (n,), "num_chains") for n in (1, 0, 2.5)),
    (anneal, (0.0,), "precision"),
    (anneal, (np.nan,), "precision"),
    (anneal, ("0.1",), "precision"),
    (chains, (1,), "num_chains ≥ 2. Received: num_chains=1"),
    (annealed, (0,), "num_chains ≥ 1. Received: num_chains=0"),
    (log_partitions, (MODEL, ["magic"], Options()), "'exact', .* Received: 'magic'"),
    (inference.contact_scores, (tf.eye(12), 5), "rows that are a multiple"),
    (inference.contact_scores, (tf.zeros((3, 4)), 3), "rows that are a multiple"),
    (inference.contact_scores, (tf.eye(12), 1), "num_units ≥ 2"),
    (inference.contact_scores, (tf.eye(12), 2.0), "num_units ≥ 2"),
]


@pytest.mark.parametrize(("call", "arguments", "word"), REFUSED)
def test_what_is_refused(call, arguments, word):
    with pytest.raises((TypeError, ValueError), match=word):
        call(*arguments)


def test_counts_that_are_tensors():
    gibbs(tf.constant(2))
