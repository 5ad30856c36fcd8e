"""Pairs of a corrupted and a clean example, to learn restoration from."""

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_counts, check_flags
from keras_rbm._images import checked_image_shape
from keras_rbm.datasets import keyed
from keras_rbm.datasets.pipeline import check_floats, in_unit_interval


def corrupt(
    dataset: tf.data.Dataset,
    corruption: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    *,
    seed: int = 0,
    redraw: bool = False,
    iterations: Any = None,
) -> tf.data.Dataset:
    """Puts a corrupted copy before the first component of every element.

    `model.fit(corrupt(...))` then sees `x` = corrupted and `y` = clean. The random
    numbers for an element depend only on `(seed, epoch, position in dataset)`, and are
    independent of those of `binarize` with the same seed.

    With `redraw=False` the noise depends on the position: corrupt *before*
    `shuffled_batches`, which keeps each pair together. For fresh noise in every epoch
    corrupt *after* it, with `redraw=True` and the same `iterations`.

    Args:
        dataset: `tf.data.Dataset` of float tensors (V,) or (B, V) in [0, 1], or of
            tuples that begin with one; further components follow the pair. Keras
            would use the first of these as weights: leave labels out.
        corruption: `flip(...)`, `occlude(...)`, or a function `(clean, key) ->
            corrupted` that keeps the shape and draws from `key`, int64 (2,), by
            stateless random functions.
        seed: int, the key of the noise.
        redraw: bool. False draws once, so every epoch sees the same pairs; True
            draws new noise for every epoch.
        iterations: optional counter as for `shuffled_batches`, used with
            `redraw=True` instead of the epoch number, so a resumed run sees the same
            noise as an uninterrupted one. By default the epoch number counts the
            iterators made from the returned dataset.

    Returns:
        A `tf.data.Dataset` of tuples `(corrupted, clean, *rest)`, the first two of
        the same shape and type, with the cardinality of `dataset`.

    Raises:
        TypeError: if `dataset` is not a dataset, or `corruption` not a function.
        ValueError: if the elements do not begin with floats, the corruption does not
            fit them, or `seed` is not an integer.

    Example:

    >>> optimizer = keras.optimizers.SGD(0.1)
    >>> counter = optimizer.iterations
    >>> digits = np.zeros((100, 64), "float32")
    >>> flip = keras_rbm.datasets.flip(0.1)

    The same pairs in every epoch:

    >>> pairs = tf.data.Dataset.from_tensor_slices(digits)
    >>> pairs = keras_rbm.datasets.corrupt(pairs, flip, seed=1)
    >>> train = keras_rbm.datasets.shuffled_batches(
    ...     pairs, 20, seed=0, iterations=counter
    ... )

    Fresh noise in every epoch:

    >>> batches = keras_rbm.datasets.shuffled_batches(
    ...     digits, 20, seed=0, iterations=counter
    ... )
    >>> train = keras_rbm.datasets.corrupt(
    ...     batches, flip, seed=1, redraw=True, iterations=counter
    ... )
    >>> [noisy.shape == clean.shape == (20, 64) for noisy, clean in train]
    [True, True, True, True, True]
    """
    check_floats(dataset)
    check_flags(redraw=redraw)
    if not callable(corruption):
        raise TypeError(
            "Expected corruption as a function, such as flip(0.1). Received: "
            f"corruption={corruption!r}."
        )

    def pair(element, key):
        clean, *rest = element if isinstance(element, tuple) else (element,)
        corrupted = tf.ensure_shape(corruption(clean, key), clean.shape)
        return (corrupted, clean, *rest)

    return keyed.map_with_keys(
        dataset, pair, keyed.CORRUPTING, seed, redraw, iterations
    )


def flip(probability: float) -> Callable:
    """Returns a corruption that replaces each pixel v by 1 - v at random.

    Args:
        probability: float in [0, 1], with which each pixel is flipped, independently
            of the others.

    Raises:
        ValueError: if the probability is outside [0, 1].
        tf.errors.InvalidArgumentError: when the dataset is read, if it has values
            outside [0, 1].

    Example:

    >>> dataset = tf.data.Dataset.from_tensors([0.0, 1.0])
    >>> certain = keras_rbm.datasets.corrupt(dataset, keras_rbm.datasets.flip(1.0))
    >>> [noisy.numpy().tolist() for noisy, clean in certain]
    [[1.0, 0.0]]
    """
    _check_fraction(probability=probability)

    def corruption(clean, key):
        uniform = tf.random.stateless_uniform(tf.shape(clean), key, alg="philox")
        clean = in_unit_interval(clean)
        return tf.where(uniform < probability, 1 - clean, clean)

    return corruption


def occlude(
    size: int, value: float = 0.0, image_shape: tuple[int, int] | None = None
) -> Callable:
    """Returns a corruption that covers one square patch of each image.

    All positions at which the patch lies inside the image are equally likely.

    Args:
        size: int, the side of the patch in pixels.
        value: float in [0, 1], the value of the covered pixels.
        image_shape: `(height, width)`, or `None` for square images.

    Raises:
        ValueError: if the size is not an int ≥ 1 or the value is outside [0, 1]; from
            `corrupt`, if the vectors do not form an image of that shape or the patch
            does not fit into it.

    Example:

    >>> dataset = tf.data.Dataset.from_tensors(tf.ones([16]))
    >>> covered = keras_rbm.datasets.corrupt(dataset, keras_rbm.datasets.occlude(2))
    >>> [int(sum(noisy)) for noisy, clean in covered]
    [12]
    """
    check_counts(size=size)
    _check_fraction(value=value)

    def corruption(clean, key):
        height, width = checked_image_shape(image_shape, clean.shape[-1])
        if size > min(height, width):
            raise ValueError(
                f"Expected a patch that fits into images of {height} × {width} pixels. "
                f"Received: size={size}. Pass at most size={min(height, width)}."
            )
        num_rows, num_columns = height - size + 1, width - size + 1
        position = tf.random.stateless_uniform(
            tf.concat([tf.shape(clean)[:-1], [1]], 0),
            key,
            maxval=num_rows * num_columns,
            dtype=tf.int32,
            alg="philox",
        )
        top, left = position // num_columns, position % num_columns
        row, column = np.divmod(np.arange(height * width, dtype=np.int32), width)
        covered = (top <= row) & (row < top + size)
        covered &= (left <= column) & (column < left + size)
        return tf.where(covered, tf.constant(value, clean.dtype), clean)

    return corruption


def _check_fraction(**values):
    for name, value in values.items():
        if not isinstance(value, numbers.Real) or not 0 <= value <= 1:
            raise ValueError(
                f"Expected a number from 0 to 1. Received: {name}={value!r}. Pass for "
                f"example {name}=0.1."
            )
