import numpy as np
import pytest
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
    assert (uniform * 2.0**24 % 2.0 == 1.0).all()  # so that none is 0 or 1
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4


def test_streams_differ():
    seeds = [random.as_seed(1), random.as_seed(2)]
    seeds += [random.fold_in(seeds[0], i) for i in range(-3, 3)]
    draws = {tuple(random.uniform((4,), seed).numpy()) for seed in seeds}
    assert len(draws) == len(seeds)


def test_seeds_of_an_integer_and_of_a_tensor_are_the_same():
    seed = random.as_seed(7)
    folds = [tf.function(random.fold_in, jit_compile=jit) for jit in (False, True)]
    for data in (0, 5, -3, 2**31 - 1, 2**40):
        wanted = random.fold_in(seed, data)
        np.testing.assert_array_equal(random.fold_in(seed, np.int64(data)), wanted)
        for fold in (random.fold_in, *folds):
            for dtype in (tf.int32, tf.int64) if data < 2**31 else (tf.int64,):
                found = fold(seed, tf.constant(data, dtype))
                np.testing.assert_array_equal(found, wanted)


def test_numbers_of_neighboring_seeds_and_streams_are_independent():
    """As Philox's are for any keys and counters: no scrambling, no correlation."""
    seeds = [tf.constant([a, b]) for a in (0, 1, 2) for b in (0, 1, 2)]
    seeds += [random.fold_in(seeds[0], i) for i in range(9)]
    draws = np.stack([random.uniform((20_000,), seed) for seed in seeds])
    correlations = np.corrcoef(draws) - np.eye(len(seeds))
    assert np.abs(correlations).max() < 5 / np.sqrt(20_000)
    pairs = np.floor(8 * draws[:, ::2]) + 8 * np.floor(8 * draws[:, 1::2])
    for row in pairs:  # of successive numbers
        assert stats.chisquare(np.bincount(row.astype(int), minlength=64))[1] > 1e-5


def test_a_seed_is_none_of_the_numbers():
    seed = random.as_seed(3)
    numbers = set(random.uniform((1000,), seed).numpy())
    bits = tf.bitcast(random.fold_in(seed, 0), tf.uint32).numpy()
    assert not numbers & {np.float32((bit & 0x7FFFFF) * 2.0**-23) for bit in bits}


def test_large_seeds():
    assert random.as_seed(2**40 + 1).shape == (2,)
    assert (random.as_seed(2**40 + 1) != random.as_seed(1)).numpy().any()


@pytest.mark.parametrize("jit_compile", [None, True])
def test_numbers_from_a_position_on(jit_compile):
    with pytest.raises(ValueError, match="a multiple of 4. Received: first=2"):
        random.uniform((5, 4), 7, 2)
    whole = random.uniform((40, 3), 7).numpy().ravel()
    part = tf.function(
        lambda first: random.uniform((5, 4), 7, first), jit_compile=jit_compile
    )
    for first in (0, 4, 100):
        wanted = whole[first : first + 20].reshape(5, 4)
        np.testing.assert_array_equal(random.uniform((5, 4), 7, first), wanted)
        np.testing.assert_array_equal(part(tf.constant(first, tf.int64)), wanted)
