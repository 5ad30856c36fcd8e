"""Sums of logarithms, computed as logarithms of products of a few numbers."""

import functools

import tensorflow as tf


def _products(array, block, axis):
    """Returns products of `block` entries each, evenly spaced along an axis."""
    return functools.reduce(tf.multiply, tf.split(array, block, axis))


def sum_of_logs(array: tf.Tensor, block: int, axis: int) -> tf.Tensor:
    """Returns the sum of logarithms along an axis, whose size `block` divides."""

    @tf.custom_gradient
    def total(array):
        logs = tf.math.log(_products(array, block, axis))
        return tf.reduce_sum(
            logs, axis
        ), lambda upstream: tf.expand_dims(upstream, axis) / array

    return total(array)


def sum_of_log_ratios(
    numerator: tf.Tensor, denominator: tf.Tensor, block: int, axis: int
) -> tf.Tensor:
    """Returns the sum of logarithms of ratios along an axis."""

    @tf.custom_gradient
    def total(numerator, denominator):
        ratios = _products(numerator, block, axis) / _products(denominator, block, axis)

        def backward(upstream):
            upstream = tf.expand_dims(upstream, axis)
            return upstream / numerator, -upstream / denominator

        return tf.reduce_sum(tf.math.log(ratios), axis), backward

    return total(numerator, denominator)
