"""Input pipelines whose order and noise are functions of a seed.

`tf.data` and Keras shuffle by hidden state that no checkpoint keeps. Here the order of
the examples and the sampled pixels depend only on `seed` and a counter that is read
when the first batch of an epoch is made. With `optimizer.iterations` as the counter, a
resumed run continues exactly where the interrupted one stopped.

The train step must then increase the counter only after it has its batch. In a
`tf.function` the two are independent, and TensorFlow may run them in either order, so
a custom `train_step` needs

    with tf.control_dependencies(tf.nest.flatten(batch)):
        self.optimizer.apply(gradients, variables)

or, as `iterations`, a function of a number that a callback stores in `on_epoch_begin`.
"""

from typing import Any

import tensorflow as tf

from keras_rbm._checks import check_counts, check_flags
from keras_rbm.datasets import in_memory, keyed

BINARIZATION_METHODS = ("threshold", "sample")
#: By how much resized images may leave [0, 1].
_ROUNDING = 1e-3


def binarize(
    dataset: tf.data.Dataset,
    method: str,
    *,
    seed: int = 0,
    redraw: bool = True,
    iterations: Any = None,
) -> tf.data.Dataset:
    """Makes the first component of every element binary.

    `"threshold"` sets a pixel to 1 if its intensity is above 127/255, `"sample"` draws
    it from a Bernoulli distribution with its intensity as the mean ("statistical
    binarization", Salakhutdinov & Murray, 2008). The uniform numbers for a sampled
    element depend only on `(seed, epoch, position in dataset)`.

    Apply it *after* `shuffled_batches`, which holds its data in memory and so would
    freeze the samples. Elements may be single vectors or batches.

    Args:
        dataset: `tf.data.Dataset` of float tensors in [0, 1] of any shape, or of tuples
            that begin with one; further components pass unchanged. For `"sample"` its
            order must be the same in every epoch, or depend on the same counter.
        method: `"threshold"` or `"sample"`.
        seed: int, the key of the samples. Unused by `"threshold"`.
        redraw: bool. True draws new samples for every epoch; False draws once, so every
            epoch sees the same values: right for validation and test data.
        iterations: optional counter as for `shuffled_batches`, used instead of the
            epoch number, so a resumed run sees the same samples as an uninterrupted
            one. By default the epoch number counts the iterators made from the returned
            dataset.

    Returns:
        `tf.data.Dataset` of the same structure, shapes, types and cardinality, with the
        first component in {0, 1}.

    Raises:
        ValueError: if `method` is unknown or `seed` is not an integer.
        tf.errors.InvalidArgumentError: when the dataset is read, if it has values
            outside [0, 1].

    Example:
    ```python
    import keras_rbm as kr

    digits = kr.datasets.load("digits", "test").batch(100)
    fixed = kr.datasets.binarize(digits, "sample", seed=1, redraw=False)
    ```

    References:
        1. Salakhutdinov, Murray. On the quantitative analysis of deep belief
           networks. ICML 2008.
    """
    check_floats(dataset)
    check_binarization_method(method)
    check_flags(redraw=redraw)
    if method == "threshold":
        return dataset.map(
            lambda *element: _map_first(_threshold, _unsplat(dataset, element)),
            num_parallel_calls=tf.data.AUTOTUNE,
        )

    def sample(element, key):
        return _map_first(lambda mean: _bernoulli(mean, key), element)

    return keyed.map_with_keys(
        dataset, sample, keyed.SAMPLING, seed, redraw, iterations
    )


def shuffled_batches(
    data: Any,
    batch_size: int,
    *,
    seed: int,
    iterations: Any,
    drop_remainder: bool = False,
) -> tf.data.Dataset:
    """Batches of examples in a new order every epoch, reproducible after a resume.

    The order of an epoch is a permutation of all examples, a function of `seed` and of
    the value that `iterations` has when the epoch's first batch is made. All examples
    are held in memory.

    Args:
        data: arrays or tensors in a nest of tuples, lists and dicts, each with the
            examples on its first axis and floats cast to `keras.config.floatx()`;
            `None` components stay `None`. SciPy sparse matrices are held as they are,
            and batches of them are dense. Or a finite `tf.data.Dataset` of single
            examples, of any structure. Lists come back as tuples.
        batch_size: int, the number of examples in a batch; the last may have fewer.
        seed: int, the key of the permutations.
        iterations: integer scalar variable, e.g. `optimizer.iterations`, or a function
            without arguments that returns an int. An optimizer counts its steps, so
            each epoch has its own value and a checkpoint keeps it. A custom
            `train_step` must apply its gradients under `tf.control_dependencies([x])`,
            or the optimizer may increase the counter before it is read. An int gives
            one fixed order.
        drop_remainder: bool, whether to leave out a last batch with fewer examples.

    Returns:
        `tf.data.Dataset` of batches with the structure of `data` and known cardinality.
        Its options turn autotuning off, because each epoch would end by waiting for it.

    Raises:
        ValueError: if there are no examples, the components differ in their number of
            examples, one has no axis of examples, a dataset is infinite, `batch_size`
            is below 1 or above the number of examples with `drop_remainder=True`, or
            `seed` is not an integer.

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
    check_counts(batch_size=batch_size)
    check_flags(drop_remainder=drop_remainder)
    read = keyed.reader(iterations)
    keyed.root_key(seed)  # raises an error unless it is a seed
    # On the host, where tf.data gathers, not on the default device of eager tensors.
    with tf.device("CPU:0"):
        examples = in_memory.hold_in_memory(data)
    num_examples = in_memory.count_examples(examples)
    if drop_remainder and num_examples < batch_size:
        raise ValueError(
            "Expected at least one full batch with drop_remainder=True. Received: "
            f"batch_size={batch_size} for {num_examples} examples. "
            "Pass a smaller batch_size."
        )
    num_batches = num_examples // batch_size
    if not drop_remainder:
        num_batches = -(-num_examples // batch_size)

    def read_order():
        return keyed.shuffled_rows(num_examples, seed, read())

    def rows_of(order):
        return tf.data.Dataset.from_tensor_slices(order).batch(
            batch_size, drop_remainder
        )

    def gather(rows):
        return in_memory.map_present(lambda x: in_memory.gather(x, rows), examples)

    # The end of an epoch would wait for the autotuner's thread, for up to a second.
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = keyed.each_epoch(read_order, (num_examples,), rows_of, num_batches)
    return batches.map(gather).prefetch(2).with_options(options)


def check_binarization_method(method):
    """Raises a ValueError unless `method` names a way to binarize."""
    if not isinstance(method, str) or method not in BINARIZATION_METHODS:
        raise ValueError(
            f"Expected a binarization method among {BINARIZATION_METHODS}. "
            f"Received: method={method!r:.200}. Use 'sample' to draw each pixel with "
            "its intensity as the mean, 'threshold' to compare it with 127/255."
        )


def check_floats(dataset):
    """Raises an error unless elements of a dataset begin with floats."""
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(
            f"Expected a tf.data.Dataset. Received: dataset of {type(dataset)}. Make "
            "one from an array with tf.data.Dataset.from_tensor_slices(array)."
        )
    spec = dataset.element_spec
    first = spec[0] if isinstance(spec, tuple) and spec else spec
    if not isinstance(first, tf.TensorSpec) or not first.dtype.is_floating:
        raise ValueError(
            "Expected elements that begin with floats in [0, 1]. Received: "
            f"dataset.element_spec={spec!r:.200}. Map the dataset to such tensors."
        )


def in_unit_interval(values):
    """Returns values of an element, which raise an error where they are not in [0, 1].

    Raises:
        tf.errors.InvalidArgumentError: when the dataset is read.
    """
    inside = tf.reduce_all((values >= -_ROUNDING) & (values <= 1.0 + _ROUNDING))
    received = tf.reduce_min(values), "to", tf.reduce_max(values)
    check = tf.debugging.Assert(
        inside,
        [
            "Expected values in [0, 1]. Received: values from",
            *received,
            "or NaN. Divide raw pixels by 255; turn spins s into (s + 1) / 2.",
        ],
    )
    with tf.control_dependencies([check]):
        return tf.identity(values)


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
        return (function(in_unit_interval(element[0])), *element[1:])
    return function(in_unit_interval(element))
