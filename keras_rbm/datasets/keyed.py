"""Epochs whose randomness depends only on a seed and a counter."""

import itertools

import tensorflow as tf

from keras_rbm._checks import seed_number

# Keeps the streams of one seed apart.
SHUFFLING, SAMPLING, CORRUPTING = 0, 1, 2


def map_with_keys(dataset, function, stream, seed, redraw, iterations):
    """Maps `function(element, key)`, with one key per epoch and position.

    The key, int64 (2,), is a function of `(seed, stream, epoch, position)`; `redraw`
    and `iterations` are those of `binarize`.
    """
    stream_key = fold_in(root_key(seed), stream)

    def map_epoch(epoch):
        epoch_key = fold_in(stream_key, epoch)

        def map_element(index, element):
            return function(element, fold_in(epoch_key, index))

        return dataset.enumerate().map(map_element, num_parallel_calls=tf.data.AUTOTUNE)

    if not redraw:
        return map_epoch(tf.constant(0, tf.int64))
    counter = itertools.count()
    read = (lambda: next(counter)) if iterations is None else reader(iterations)
    return each_epoch(read, (), map_epoch, dataset.cardinality())


def shuffled_rows(count, seed, step):
    """Returns the order of `count` rows in an epoch, int64 (count,), on the host."""
    with tf.device("CPU:0"):
        return _permutation(
            tf.constant(count, tf.int64), root_key(seed), tf.cast(step, tf.int64)
        )


@tf.function(autograph=False)
def _permutation(count, key, step):
    key = fold_in(fold_in(key, SHUFFLING), step)
    return tf.random.experimental.stateless_shuffle(tf.range(count), key, alg="philox")


def each_epoch(read, shape, make_epoch, cardinality):
    """Returns a dataset that calls `read` once per iterator and uses its value.

    `read` returns an int64 tensor of this shape. It runs in Python, outside of the
    dataset's graph, which TensorFlow optimizes again for each iterator.
    """

    def epoch(_):
        # A Python function, not a captured variable: it can read a variable on any
        # device, also one that is mirrored over replicas.
        return make_epoch(tf.ensure_shape(tf.py_function(read, [], tf.int64), shape))

    epochs = tf.data.Dataset.range(1).flat_map(epoch)
    if int(cardinality) == tf.data.UNKNOWN_CARDINALITY:
        return epochs
    return epochs.apply(tf.data.experimental.assert_cardinality(cardinality))


def reader(iterations):
    """Returns a function of no arguments that reads a counter as int64.

    Raises:
        TypeError: if `iterations` is neither an integer nor a function for one.
    """

    def read():
        value = iterations() if callable(iterations) else iterations
        return tf.cast(tf.convert_to_tensor(value), tf.int64)

    try:
        is_counter = (
            callable(iterations) or tf.convert_to_tensor(iterations).dtype.is_integer
        )
    except (TypeError, ValueError, OverflowError):
        is_counter = False
    if not is_counter:
        raise TypeError(
            "Expected iterations as an integer variable, such as optimizer.iterations, "
            "an int, or a function that returns one. Received: iterations of type "
            f"{type(iterations).__name__}."
        )
    return read


def root_key(seed):
    """Returns the key, int64 (2,), of a 64-bit seed."""
    return tf.constant([seed_number(seed), 0], tf.int64)


def fold_in(key, value):
    """Returns a new key, a function of a key and a number."""
    # The algorithm is explicit: "auto_select" gives other bits on another device.
    return tf.random.experimental.stateless_fold_in(
        key, tf.cast(value, tf.int64), alg="philox"
    )
