"""Checks of the arguments of pipelines."""

from typing import Any

import numpy as np
import tensorflow as tf

BINARIZATION_METHODS = ("threshold", "sample")
#: By how much resized images may leave [0, 1].
_ROUNDING = 1e-3


def check_binarization_method(method: str) -> None:
    """Raises a ValueError unless `method` names a way to binarize."""
    if not isinstance(method, str) or method not in BINARIZATION_METHODS:
        raise ValueError(
            f"Expected a binarization method among {BINARIZATION_METHODS}. "
            f"Received: method={method!r:.200}. Use 'sample' to draw each pixel with "
            "its intensity as the mean, 'threshold' to compare it with 127/255."
        )


def check_dataset(dataset: tf.data.Dataset) -> None:
    """Raises a TypeError unless `dataset` is a `tf.data.Dataset`."""
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(
            f"Expected a tf.data.Dataset. Received: dataset of {type(dataset)}. Make "
            "one from an array with tf.data.Dataset.from_tensor_slices(array)."
        )


def check_intensities(dataset: tf.data.Dataset) -> None:
    """Raises an error unless elements of a dataset begin with floats."""
    check_dataset(dataset)
    spec = dataset.element_spec
    first = spec[0] if isinstance(spec, tuple) and spec else spec
    if not isinstance(first, tf.TensorSpec) or not first.dtype.is_floating:
        raise ValueError(
            "Expected elements that begin with floats in [0, 1]. Received: "
            f"dataset.element_spec={spec!r:.200}. Map the dataset to such tensors."
        )


def in_unit_interval(values: tf.Tensor) -> tf.Tensor:
    """Returns values of an element, which raise an error where they are not in [0, 1].

    Raises:
        tf.errors.InvalidArgumentError: when the dataset is read.
    """
    inside = tf.reduce_all((values >= -_ROUNDING) & (values <= 1.0 + _ROUNDING))
    check = tf.debugging.Assert(
        inside,
        [
            "Expected values in [0, 1]. Received: values from",
            tf.reduce_min(values),
            "to",
            tf.reduce_max(values),
            "or NaN. Divide raw pixels by 255; turn spins s into (s + 1) / 2.",
        ],
    )
    with tf.control_dependencies([check]):
        return tf.identity(values)


def check_counter(iterations: Any) -> None:
    """Raises an error unless `iterations` is an integer, or a function for one."""
    dtype = getattr(iterations, "dtype", None)
    number = isinstance(iterations, int | np.integer)
    if dtype is not None and not number:
        rank = len(getattr(iterations, "shape", (1,)))
        try:
            number = tf.as_dtype(dtype).is_integer and not rank
        except TypeError:
            number = False
    if not number and (not callable(iterations) or isinstance(iterations, type)):
        raise TypeError(
            "Expected iterations as an integer variable, such as optimizer.iterations, "
            "an int, or a function that returns one. Received: iterations of type "
            f"{type(iterations).__name__}."
        )
    if isinstance(iterations, int) and not -(2**63) <= iterations < 2**63:
        raise ValueError(
            f"Expected iterations as a 64-bit int. Received: {iterations!r}."
        )
