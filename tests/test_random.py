import numpy as np
import tensorflow as tf
from scipy import stats

from keras_rbm import random


def test_same_numbers_with_and_without_xla():
    plain = tf.function(lambda seed: random.uniform((333, 7), seed))
    compiled = tf.function(
        lambda seed: random.uniform((333, 7), seed), jit_compile=True
    )
    seed = tf.constant([12, 5])
    np.testing.assert_array_equal(plain(seed), compiled(seed))
    np.testing.assert_array_equal(plain(seed), random.uniform((333, 7), seed))


def test_distributions():
    uniform = random.uniform((100_000,), 3).numpy()
    assert 0 <= uniform.min() and uniform.max() < 1
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4


def test_streams_differ():
    seeds = [random.as_seed(1), random.as_seed(2)]
    seeds += [random.fold_in(seeds[0], i) for i in range(-3, 3)]
    draws = {tuple(random.uniform((4,), seed).numpy()) for seed in seeds}
    assert len(draws) == len(seeds)


def test_large_seeds():
    assert random.as_seed(2**40 + 1).shape == (2,)
    assert (random.as_seed(2**40 + 1) != random.as_seed(1)).numpy().any()
