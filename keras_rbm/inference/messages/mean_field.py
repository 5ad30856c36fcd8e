"""Naive mean field."""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.arguments import as_floats, check_normalizable
from keras_rbm.inference.estimates import LogPartition
from keras_rbm.inference.messages import batches
from keras_rbm.inference.messages.beliefs import (
    Beliefs,
    batch_of_models,
    checked_arguments,
    pairwise_products,
    static_size,
    without_batch,
)
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import loop_by_size, traced_by_size


def mean_field(
    potentials: Potentials,
    *,
    max_iterations: int | tf.Tensor = 100,
    tolerance: float = 1e-3,
    damping: float = 0.0,
    weights: ArrayLike | None = None,
    pairwise: str | None = "mean",
    starts: Sequence[ArrayLike | None] = (None,),
) -> Beliefs:
    """Approximates a model by independent units.

    Updates one layer given the other: binary layers by `v = sigmoid(W h + b)`,
    `h = sigmoid(v' W + c)`, starting from `h = sigmoid(c)`; others by the means m of
    their statistics, with natural parameters `eta_v = b + W m_h` and
    `eta_h = c + W' m_v`. A model with strong weights has several fixed points; the
    start decides which one is found. Gradients pass through the sweeps that were made,
    to all parameters, but not to `starts`. Without damping no update lowers the bound

        log Z ≥ m_v' W m_h + sum A(eta_v) - (eta_v - b)' m_v
                           + sum A(eta_h) - (eta_h - c)' m_h,

    for binary units `v' W h + b' v + c' h + S(v) + S(h)` with S the entropy.

    Args:
        potentials: `Potentials` with units of any types.
        max_iterations: int ≥ 1, maximum number of sweeps (both layers); may be a
            tensor or variable.
        tolerance: float ≥ 0; a model has converged when no mean changed by as much
            in a sweep. If sweeps converge slowly, the limit may be further away.
        damping: float in [0, 1), weight of the old natural parameters.
        weights: tensor (B,), of the models in `pairwise="mean"`; by default 1 / B.
        pairwise: `"mean"`, `"each"` or `None`, see `Beliefs`.
        starts: sequence of tensors (B, rows) or (rows,), means of the visible units
            that the first hidden ones are computed from; `None` among them stands for
            `h = sigmoid(c)`. Of several the result with the highest bound is returned,
            model by model.

    Returns:
        `Beliefs`; `log_partition` is the lower bound.

    Raises:
        ValueError: if an option is out of range, or both layers are unbounded and the
            partition function is not finite.

    Example:

    >>> model = keras_rbm.inference.Potentials([[2.0]], [0.0], [-1.0])
    >>> bound = keras_rbm.inference.mean_field(model).log_partition
    >>> exact = keras_rbm.inference.exact_log_partition(model)
    >>> float(bound) < float(exact)
    True

    References:
        1. Peterson, Anderson. A mean field theory learning algorithm for neural
           networks. Complex Systems, 1987.
        2. Wainwright, Jordan. Graphical models, exponential families, and variational
           inference. Foundations and Trends in Machine Learning, 2008.
    """
    weights, limits = checked_arguments(
        potentials, weights, pairwise, max_iterations, tolerance, damping
    )
    check_normalizable(potentials)
    starts = checked_starts(starts, potentials)
    beliefs = _iterate(potentials, weights, *limits, float(damping), pairwise, starts)
    return without_batch(beliefs, potentials, pairwise)


def mean_field_bound(potentials, **kwargs):
    """Computes the bound of `mean_field` in float64, as a `LogPartition`.

    If weights are strong, rounding in float32 may lift the bound above log Z.

    Args:
        potentials, **kwargs: as for `mean_field`.
    """
    means = mean_field(potentials, pairwise=None, **kwargs).hidden
    bound = _bound_in_float64(potentials, means)
    return LogPartition.without_error(bound, lower=bound, upper=math.inf)


@traced_by_size
def _bound_in_float64(potentials, hidden):
    """Returns the bound after another sweep, which does not lower it, (B,) or ()."""
    cast = functools.partial(tf.cast, dtype=tf.float64)
    kernel, visible, units = models = tf.nest.map_structure(cast, tuple(potentials))
    means = units.first(cast(hidden))
    rows = means if means.shape.rank == 2 else means[tf.newaxis]
    v = _given(visible, tf.matmul(rows, kernel, transpose_b=True))
    bound = _bound(models, v, _given(units, tf.matmul(v.means, kernel)))
    return bound if means.shape.rank == 2 else bound[0]


def _bound(models, v, h):
    """Returns the bound of log Z of layers v and h, (B,)."""
    kernel, visible, hidden = models
    coupling = tf.reduce_sum(tf.matmul(v.means, kernel) * h.means, -1)
    return coupling + v.bound(visible) + h.bound(hidden)


class _Layer(NamedTuple):
    """A layer given the other: natural parameters, and means of the statistics."""

    natural: tf.Tensor
    means: tf.Tensor

    def change(self, old):
        return tf.reduce_max(tf.abs(self.means - old.means), -1)

    def bound(self, units):
        """Returns `sum A(eta) - (eta - bias)' m`, (B,)."""
        inputs = self.natural - units.bias
        total = tf.reduce_sum(units.log_partition(self.natural), -1)
        return total - tf.reduce_sum(inputs * self.means, -1)


def _given(units, inputs, old=None, damping=0.0):
    """Returns a `_Layer` of units with inputs from the other one."""
    natural = units.natural(inputs)
    if damping:
        natural = (1.0 - damping) * natural + damping * old.natural
    return _Layer(natural, units.first(units.mean(natural)))


@loop_by_size
def _iterate(potentials, weights, max_iterations, tolerance, damping, pairwise, starts):
    """Returns the `Beliefs` from the start with the highest bound, of each model."""
    models, weights = batch_of_models(potentials, weights)
    fixed = tf.nest.map_structure(tf.stop_gradient, models)

    def sweep(v, h):
        new_v, new_h = new = _sweep(fixed, (v, h), damping)
        return new, tf.maximum(new_v.change(v), new_h.change(h))

    best = None
    for number, means in enumerate(starts):
        state, *progress = batches.until_converged(
            sweep, _start(fixed, means, damping), max_iterations, tolerance
        )
        bound = _bound(fixed, *state)
        end = bound, state, progress, tf.fill(tf.shape(bound), number)
        if best is not None:
            higher = (best[0] > bound) | ~tf.math.is_finite(bound)
            end = batches.where_rows(higher, best, end)
        best = end
    best = tf.nest.map_structure(tf.stop_gradient, best)
    _, state, (iterations, residual), number_of_best = best

    def start(models):
        """Returns the states from which the best have come."""
        states = [_start(models, means, damping) for means in starts]
        chosen = states[0]
        for number, state in enumerate(states[1:], 1):
            chosen = batches.where_rows(number_of_best == number, state, chosen)
        return chosen

    def gradient(*upstream):
        gradients = batches.gradients_of_sweeps(
            start,
            lambda models, state: _sweep(models, state, damping),
            lambda models, state: _read(models, state, weights, pairwise),
            fixed,
            iterations,
            upstream,
        )
        return tf.nest.flatten(gradients)

    values = _read(fixed, state, weights, pairwise)
    values = batches.with_gradient(values, tf.nest.flatten(models), gradient)
    pairs = values.pop() if pairwise else None
    visible, hidden, bound = values
    converged = residual < tolerance
    return Beliefs(visible, hidden, pairs, bound, iterations, converged, residual)


def _start(models, means, damping):
    """Returns the two layers that sweeps over B models start from."""
    kernel, visible, hidden = models
    if means is None:
        v = _given(visible, tf.zeros_like(visible.bias))
        return v, _given(hidden, tf.zeros_like(hidden.bias))
    means = tf.broadcast_to(tf.cast(means, kernel.dtype), tf.shape(visible.bias))
    h = _given(hidden, tf.matmul(means, kernel))
    v = _given(visible, tf.matmul(h.means, kernel, transpose_b=True))
    if damping:  # of what an undamped sweep has made of the start
        h = _given(hidden, tf.matmul(v.means, kernel))
    return v, h


def _sweep(models, state, damping):
    """Returns the two layers after an update of each."""
    (kernel, visible, hidden), (v, h) = models, state
    inputs = tf.matmul(h.means, kernel, transpose_b=True)
    v = _given(visible, inputs, v, damping)
    return v, _given(hidden, tf.matmul(v.means, kernel), h, damping)


def _read(models, state, weights, pairwise):
    """Returns means of both layers, the bound, and of pairs, if any, at a state."""
    v, h = state
    visible, hidden = models.visible.mean(v.natural), models.hidden.mean(h.natural)
    results = [visible, hidden, _bound(models, v, h)]
    if pairwise:
        results.append(pairwise_products(v.means, h.means, weights, pairwise))
    return results


def checked_starts(starts, potentials):
    """Returns starts as a tuple; raises a ValueError unless they are visible means."""
    if not isinstance(starts, (list, tuple)) or not starts:
        raise ValueError(
            "Expected starts, a list of visible means (B, rows) or None. Received: "
            f"{starts!r:.200}. Pass for example starts=[None, x]."
        )
    shape = (static_size(potentials), potentials.visible_bias.shape[-1])

    def checked(start):
        size = start.shape if tf.is_tensor(start) else np.shape(start)
        return as_floats("starts", start, shape[-1:] if len(size) == 1 else shape)

    return tuple(None if start is None else checked(start) for start in starts)
