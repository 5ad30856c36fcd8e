"""Random numbers that are the same with and without XLA.

`keras.random` and the default algorithm of `tf.random.stateless_*` draw
different numbers in the two modes, and on a CPU under XLA they are a hundred
times slower than Philox. Only the *integers* of Philox agree between the modes
(the conversion to floats does not), so floats are made here.

Philox [1] is a function of a key and a counter, and works well for neighboring keys
and counters. The key is the seed; the upper half of the counter says what is drawn.
`tf.random.stateless_*(alg="philox")` scrambles the seed first, which takes thirty
operations instead of one, to trace and to run.

References:
    1. Salmon, Moraes, Dror, Shaw. Parallel random numbers: as easy as 1, 2, 3. SC 2011.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_rbm._checks import as_array, is_int

_MANTISSA = 0x7FFFFF
_ONE = 0x3F800000
#: Half the distance between two neighboring values of `uniform`.
HALF_STEP = 2.0**-24
_PHILOX = 1
_NUMBERS, _SEEDS = 0, 1
#: Numbers that Philox makes for each value of its counter.
_EACH = 4


def as_seed(seed: int | tf.Tensor) -> tf.Tensor:
    """Returns `seed` as an int32 tensor of shape (2,).

    Args:
        seed: int, or integer tensor of shape (2,) such as
            `keras.random.SeedGenerator.next()` returns.
    """
    if is_int(seed):
        seed = int(seed)
        return tf.constant([seed & 0x7FFFFFFF, seed >> 31 & 0x7FFFFFFF], tf.int32)
    values = seed if tf.is_tensor(seed) or hasattr(seed, "value") else as_array(seed)
    if getattr(values, "shape", None) != (2,) or not _is_integer(values.dtype):
        raise ValueError(
            "Expected seed to be an int or an integer tensor of shape (2,). Received: "
            f"seed={seed!r}."
        )
    return tf.cast(values, tf.int32)


def _is_integer(dtype):
    try:
        return tf.as_dtype(dtype).is_integer
    except TypeError:
        return False


def fold_in(seed: int | tf.Tensor, data: int | tf.Tensor) -> tf.Tensor:
    """Returns a new seed, a function of `seed` and the integer `data`."""
    return _integers((2,), seed, _counter(data, _SEEDS, 1))


def uniform(
    shape: Sequence[int | tf.Tensor] | tf.Tensor,
    seed: int | tf.Tensor,
    first: int | tf.Tensor = 0,
) -> tf.Tensor:
    """Returns float32 numbers uniform on (0, 1): odd multiples of 2^-24.

    None is 0, which would be below any probability, e^-80, too, as often as 2^-23.

    Args:
        shape: list of int or scalar tensors, or int tensor.
        seed: int or integer tensor of shape (2,).
        first: int or scalar int64 tensor, a multiple of 4: the numbers are those of a
            longer vector from this position on.
    """
    bits = _integers(shape, seed, _counter(first, _NUMBERS))
    ones_to_twos = tf.bitwise.bitwise_or(tf.bitwise.bitwise_and(bits, _MANTISSA), _ONE)
    return tf.bitcast(ones_to_twos, tf.float32) - (1.0 - HALF_STEP)


def _counter(first, kind, numbers=_EACH):
    """Returns where Philox begins, two uint64; it counts so many `numbers` at once."""
    if isinstance(first, (int, np.integer)):
        if first % numbers:
            raise ValueError(
                f"Expected first as a multiple of {numbers}. Received: first={first}."
            )
        return np.array([int(first) // numbers % 2**64, kind], "uint64")
    first = tf.cast(first, tf.int64) // numbers
    return tf.stack([tf.bitcast(first, tf.uint64), kind])


def _integers(shape, seed, counter):
    """Returns int32 numbers, uniform over all int32 values."""
    key = tf.reshape(tf.bitcast(as_seed(seed), tf.uint64), [1])
    return tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=shape, key=key, counter=counter, alg=_PHILOX, dtype=tf.int32
    )
