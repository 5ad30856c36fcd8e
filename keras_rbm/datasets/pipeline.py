"""Input pipelines whose order and noise are functions of a seed.

`tf.data` reshuffles, and Keras shuffles, from hidden state that no checkpoint keeps.
Here the order of the examples and the sampled pixels depend only on `seed` and a
counter that is read when an epoch begins. Give `optimizer.iterations` as the counter,
and a resumed run continues exactly where the interrupted one stopped.
"""

import itertools
import operator

import keras
import numpy as np
import tensorflow as tf

BINARIZATION_METHODS = ("threshold", "sample")

# Keeps the streams of one seed apart.
_SHUFFLING, _SAMPLING = 0, 1


def binarize(dataset, method, *, seed=0, redraw=True, iterations=None):
    """Makes the first component of every element binary.

    `"threshold"` sets a pixel to 1 if its intensity is above 127/255, `"sample"` draws
    it from a Bernoulli distribution with its intensity as the mean ("statistical
    binarisation", Salakhutdinov & Murray, 2008). The uniform numbers behind a sampled
    element are a function of `(seed, epoch, position in dataset)` alone.

    Apply it *after* `shuffled_batches`, which keeps what it is given in memory and so
    would freeze the samples; elements may be single vectors or batches.

    Args:
      dataset: `tf.data.Dataset` of float tensors in [0, 1] of any shape, or of tuples
        that begin with one; further components pass unchanged. `"sample"` needs it to
        have the same order in every epoch, or one that depends on the same counter.
      method: `"threshold"` or `"sample"`.
      seed: int, the key of the samples. Unused by `"threshold"`.
      redraw: bool. True draws new samples for every epoch; False draws once, so that
        every epoch sees the same values: right for validation and test data.
      iterations: optional integer scalar variable such as `optimizer.iterations`, read
        when an epoch begins and used in the place of the epoch's number, so that a
        resumed run sees the samples it would have seen. By default the epoch's number
        is that of the iterators made so far of the dataset that this call returns.

    Returns:
      A `tf.data.Dataset` of the same structure, shapes, types and cardinality, with
      the first component in {0, 1}.

    Raises:
      ValueError: if `method` is unknown or `seed` is not an integer.

    Example:
    ```python
    import keras_rbm as kr

    digits = kr.datasets.load("digits", "test").batch(100)
    fixed = kr.datasets.binarize(digits, "sample", seed=1, redraw=False)
    ```

    References:
      1. R. Salakhutdinov, I. Murray. On the quantitative analysis of deep belief
         networks. ICML 2008.
    """
    check_binarization_method(method)
    if method == "threshold":
        return dataset.map(
            lambda *element: _map_first(_threshold, _unsplat(dataset, element)),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
    key = _fold_in(_root_key(seed), _SAMPLING)

    def sample_epoch(epoch):
        epoch_key = _fold_in(key, epoch)

        def sample(index, element):
            return _map_first(
                lambda mean: _bernoulli(mean, _fold_in(epoch_key, index)), element
            )

        return dataset.enumerate().map(sample, num_parallel_calls=tf.data.AUTOTUNE)

    if not redraw:
        return sample_epoch(tf.constant(0, tf.int64))
    counter = itertools.count()
    read = (lambda: next(counter)) if iterations is None else _reader(iterations)
    return _each_epoch(read, sample_epoch, dataset.cardinality())


def shuffled_batches(data, batch_size, *, seed, iterations, drop_remainder=False):
    """Batches of examples in a new order every epoch, reproducible after a resume.

    The order of an epoch is a permutation of all examples, a function of `seed` and of
    the value that `iterations` has when the epoch's iterator is created. All examples
    are held in memory.

    Args:
      data: arrays or tensors in a nest of tuples, lists and dicts, each with the
        examples on its first axis and floats cast to `keras.config.floatx()`; `None`
        components stay `None`. Or a finite `tf.data.Dataset` of single examples, of
        any structure. Lists come back as tuples.
      batch_size: int, the number of examples in a batch; the last may have fewer.
      seed: int, the key of the permutations.
      iterations: integer scalar variable, e.g. `optimizer.iterations`. An optimizer
        counts the steps done, so each epoch has its own value and a checkpoint keeps
        it. Outside of training, an int gives a single fixed order.
      drop_remainder: bool, whether to leave out a last batch with fewer examples.

    Returns:
      A `tf.data.Dataset` of batches with the structure of `data` and known cardinality.

    Raises:
      ValueError: if there are no examples, the components differ in their number of
        examples, one has no axis of examples, a dataset is infinite, `batch_size` is
        below 1 or above the number of examples with `drop_remainder=True`, or `seed` is
        not an integer.

    Example:
    ```python
    import keras
    import keras_rbm as kr

    optimizer = keras.optimizers.SGD(0.01)
    batches = kr.datasets.shuffled_batches(
        kr.datasets.load("digits"), 100, seed=0, iterations=optimizer.iterations
    )
    train = kr.datasets.binarize(batches, "sample", iterations=optimizer.iterations)
    ```
    """
    batch_size = _as_int("batch_size", batch_size)
    if batch_size < 1:
        raise ValueError(
            "Expected batches of at least one example. "
            f"Received: batch_size={batch_size}. Pass a positive integer."
        )
    key = _fold_in(_root_key(seed), _SHUFFLING)
    # On the host: tf.data gathers there, wherever eager tensors are put by default.
    with tf.device("CPU:0"):
        examples = _in_memory(data)
    num_examples = _count_examples(examples)
    num_batches, remainder = divmod(num_examples, batch_size)
    if drop_remainder and not num_batches:
        raise ValueError(
            "Expected at least one full batch with drop_remainder=True. Received: "
            f"batch_size={batch_size} for {num_examples} examples. "
            "Pass a smaller batch_size."
        )
    if remainder and not drop_remainder:
        num_batches += 1

    def shuffle_epoch(step):
        order = tf.random.experimental.stateless_shuffle(
            tf.range(num_examples, dtype=tf.int64), _fold_in(key, step), alg="philox"
        )

        def gather_batch(index):
            rows = order[index * batch_size : (index + 1) * batch_size]
            if drop_remainder:
                rows = tf.ensure_shape(rows, (batch_size,))
            return _map_present(lambda x: tf.gather(x, rows), examples)

        return tf.data.Dataset.range(num_batches).map(gather_batch)

    batches = _each_epoch(_reader(iterations), shuffle_epoch, num_batches)
    return batches.prefetch(tf.data.AUTOTUNE)


def check_binarization_method(method):
    """Raises a ValueError unless `method` names a way to binarise."""
    if method not in BINARIZATION_METHODS:
        raise ValueError(
            f"Expected a binarisation method among {BINARIZATION_METHODS}. "
            f"Received: method={method!r}. Use 'sample' to draw each pixel with its "
            "intensity as the mean, 'threshold' to compare it with 127/255."
        )


def _each_epoch(read, make_epoch, cardinality):
    """Dataset that calls `read` as an iterator is created and maps its value."""
    # A Python function, not a captured variable: tf.data cannot capture a variable
    # that lives on a GPU, is mirrored over replicas, or belongs to another strategy.
    start = tf.data.Dataset.range(1).map(
        lambda _: tf.ensure_shape(tf.py_function(read, [], tf.int64), ())
    )
    epochs = start.flat_map(make_epoch)
    if int(cardinality) == tf.data.UNKNOWN_CARDINALITY:
        return epochs
    return epochs.apply(tf.data.experimental.assert_cardinality(cardinality))


def _reader(iterations):
    return lambda: int(keras.ops.convert_to_numpy(iterations))


def _root_key(seed):
    return tf.constant([_as_int("seed", seed), 0], tf.int64)


def _fold_in(key, value):
    # The algorithm is named: "auto_select" gives other bits on another device.
    return tf.random.experimental.stateless_fold_in(
        key, tf.cast(value, tf.int64), alg="philox"
    )


def _bernoulli(mean, key):
    uniform = tf.random.stateless_uniform(
        tf.shape(mean), key, dtype=mean.dtype, alg="philox"
    )
    return tf.ensure_shape(tf.cast(uniform < mean, mean.dtype), mean.shape)


def _threshold(intensity):
    # The same division as the one that scaled the 8-bit pixels: 127 stays equal.
    threshold = tf.constant(127, intensity.dtype) / tf.constant(255, intensity.dtype)
    return tf.cast(intensity > threshold, intensity.dtype)


def _unsplat(dataset, element):
    return element if isinstance(dataset.element_spec, tuple) else element[0]


def _map_first(function, element):
    if isinstance(element, tuple):
        return (function(element[0]), *element[1:])
    return function(element)


def _map_present(function, *nests):
    return tf.nest.map_structure(
        lambda *parts: None if parts[0] is None else function(*parts), *nests
    )


def _in_memory(data):
    """Tensors that hold all examples of arrays or of a finite dataset."""
    if not isinstance(data, tf.data.Dataset):
        return _map_present(_as_tensor, _lists_as_tuples(data))
    if data.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "Expected a finite dataset. Received: data with infinite cardinality. "
            "Call take(count) on it, and leave out repeat()."
        )
    blocks = list(data.batch(1024))
    if not blocks:
        raise ValueError(
            "Expected at least one example. Received: data=an empty dataset. "
            "Check the filters and the split that made it."
        )
    return _map_present(lambda *parts: tf.concat(parts, 0), *blocks)


def _as_tensor(array):
    tensor = tf.convert_to_tensor(array)
    if tensor.dtype.is_floating:
        tensor = tf.cast(tensor, keras.config.floatx())
    return tf.identity(tensor)


def _lists_as_tuples(nest):
    # tf.data packs a list into one tensor.
    if isinstance(nest, list | tuple) and not hasattr(nest, "_fields"):
        return tuple(_lists_as_tuples(part) for part in nest)
    if isinstance(nest, dict):
        return {name: _lists_as_tuples(part) for name, part in nest.items()}
    return nest


def _count_examples(examples):
    shapes = [x.shape for x in tf.nest.flatten(examples) if x is not None]
    if not shapes or any(shape.rank == 0 for shape in shapes):
        raise ValueError(
            "Expected arrays with the examples on their first axis. "
            f"Received: data with shapes {[tuple(shape) for shape in shapes]}. "
            "Convert lists of numbers with numpy.array."
        )
    counts = {int(shape[0]) for shape in shapes}
    if len(counts) > 1 or counts == {0}:
        raise ValueError(
            "Expected the same, positive number of examples in all components. "
            f"Received: data with shapes {[tuple(shape) for shape in shapes]}. "
            "Check the first axis of each array."
        )
    return counts.pop()


def _as_int(name, value):
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ValueError(
            f"Expected an integer. Received: {name}={value!r}. Pass a Python int."
        ) from None
