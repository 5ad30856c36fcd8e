"""Naive mean field."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.arguments import (
    as_floats,
    check_model,
    check_normalizable,
)
from keras_rbm.inference.estimates import LogPartition
from keras_rbm.inference.messages.adjoint import gradients_of_sweeps, with_gradient
from keras_rbm.inference.messages.beliefs import (
    Beliefs,
    as_limits,
    batch_of_models,
    check_options,
    checked_weights,
    pairwise_products,
    static_size,
    without_batch,
)
from keras_rbm.inference.messages.sweeps import until_converged, where_rows
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import loop_by_size, traced_by_size
from keras_rbm.units.layer_parameters import LayerParameters


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
    check_model(potentials)
    check_normalizable(potentials)
    check_options(max_iterations, tolerance, damping, pairwise)
    weights = checked_weights(weights)
    limits = as_limits(max_iterations, tolerance)
    starts = checked_starts(starts, potentials)
    beliefs = _iterate(potentials, weights, *limits, float(damping), pairwise, starts)
    if potentials.batch_size is None:
        return without_batch(beliefs, pairwise)
    return beliefs


def mean_field_bound(potentials: Potentials, **kwargs: Any) -> LogPartition:
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
    kernel, visible, hidden_units = tf.nest.map_structure(
        lambda leaf: tf.cast(leaf, tf.float64), tuple(potentials)
    )
    means = hidden_units.first(tf.cast(hidden, tf.float64))
    rows = means if means.shape.rank == 2 else means[tf.newaxis]
    v = _Layer.given(visible, tf.matmul(rows, kernel, transpose_b=True))
    h = _Layer.given(hidden_units, tf.matmul(v.means, kernel))
    bound = _total(kernel, visible, hidden_units, v, h)
    return bound if means.shape.rank == 2 else bound[0]


def _total(kernel, visible, hidden, v, h):
    """Returns the bound of log Z of layers v and h, (B,)."""
    coupling = tf.reduce_sum(tf.matmul(v.means, kernel) * h.means, -1)
    return coupling + v.bound(visible) + h.bound(hidden)


class _Layer(NamedTuple):
    """A layer given the other: natural parameters, and means of the statistics."""

    natural: tf.Tensor
    means: tf.Tensor

    @classmethod
    def given(
        cls,
        units: LayerParameters,
        inputs: tf.Tensor,
        old: "_Layer | None" = None,
        damping: float = 0.0,
    ) -> "_Layer":
        natural = units.natural(inputs)
        if damping:
            natural = (1.0 - damping) * natural + damping * old.natural
        return cls(natural, units.first(units.mean(natural)))

    def change(self, old: "_Layer") -> tf.Tensor:
        return tf.reduce_max(tf.abs(self.means - old.means), -1)

    def bound(self, units: LayerParameters) -> tf.Tensor:
        """Returns `sum A(eta) - (eta - bias)' m`, (B,)."""
        inputs = self.natural - units.bias
        own = tf.reduce_sum(units.log_partition(self.natural), -1)
        return own - tf.reduce_sum(inputs * self.means, -1)


@loop_by_size
def _iterate(potentials, weights, max_iterations, tolerance, damping, pairwise, starts):
    """Returns the `Beliefs` from the start with the highest bound, of each model."""
    models, weights = batch_of_models(potentials, weights)
    fixed = tf.nest.map_structure(tf.stop_gradient, models)
    best = None
    for number, start in enumerate(starts):
        sweeps = _Sweeps(start, damping)
        found = sweeps.run(fixed, number, max_iterations, tolerance)
        best = found if best is None else found.if_higher(best)
    visible, hidden, bound, *pairs = _means_at(
        fixed, (best.visible, best.hidden), weights, pairwise
    )
    beliefs = Beliefs(
        visible,
        hidden,
        pairs[0] if pairs else None,
        bound,
        best.iterations,
        best.residual < tolerance,
        best.residual,
    )

    def first(models):
        """Returns the states from which the best have come."""
        states = [_Sweeps(start, damping).start(models) for start in starts]
        chosen = states[0]
        for number, state in enumerate(states[1:], 1):
            chosen = where_rows(best.start == number, state, chosen)
        return chosen

    def gradient(upstream):
        parts = [upstream.visible, upstream.hidden, upstream.log_partition]
        parts += [] if pairwise is None else [upstream.pairwise]
        return gradients_of_sweeps(
            first,
            lambda models, state: _Sweeps(None, damping).sweep(models, state),
            lambda models, state: _means_at(models, state, weights, pairwise),
            fixed,
            best.iterations,
            parts,
        )

    return with_gradient(beliefs, models, gradient)


def _means_at(models, state, weights, pairwise):
    """Returns means of both layers, the bound, and of pairs, if any, at a state."""
    v, h = state
    results = [
        models.visible.mean(v.natural),
        models.hidden.mean(h.natural),
        _total(models.kernel, models.visible, models.hidden, v, h),
    ]
    pairs = pairwise_products(v.means, h.means, weights, pairwise)
    return results if pairs is None else [*results, pairs]


class _Fit(NamedTuple):
    """Where mean field ended, of each model."""

    visible: _Layer
    hidden: _Layer
    bound: tf.Tensor
    iterations: tf.Tensor
    residual: tf.Tensor
    start: tf.Tensor

    def if_higher(self, other: "_Fit") -> "_Fit":
        """Returns this one where its bound is higher, elsewhere the other."""
        higher = (self.bound > other.bound) | ~tf.math.is_finite(other.bound)
        return where_rows(higher, self, other)


class _Sweeps(NamedTuple):
    """Sweeps over B models; a state is the two layers."""

    first: tf.Tensor | None  # means of the visible units to start from
    damping: float

    def start(self, models: Potentials) -> tuple[_Layer, _Layer]:
        kernel, visible, hidden = models
        if self.first is None:
            v = _Layer.given(visible, tf.zeros_like(visible.bias))
            return v, _Layer.given(hidden, tf.zeros_like(hidden.bias))
        means = tf.broadcast_to(
            tf.cast(self.first, kernel.dtype), tf.shape(visible.bias)
        )
        h = _Layer.given(hidden, tf.matmul(means, kernel))
        v = self._visible_given(models, h)
        if self.damping:  # of what an undamped sweep has made of the start
            h = _Layer.given(hidden, tf.matmul(v.means, kernel))
        return v, h

    def sweep(
        self, models: Potentials, state: tuple[_Layer, _Layer]
    ) -> tuple[_Layer, _Layer]:
        v, h = state
        new = self._visible_given(models, h, v, self.damping)
        inputs = tf.matmul(new.means, models.kernel)
        return new, _Layer.given(models.hidden, inputs, h, self.damping)

    def _visible_given(self, models, h, *old):
        inputs = tf.matmul(h.means, models.kernel, transpose_b=True)
        return _Layer.given(models.visible, inputs, *old)

    def run(
        self,
        models: Potentials,
        number: int,
        max_iterations: tf.Tensor,
        tolerance: tf.Tensor,
    ) -> _Fit:
        """Returns where it ends; `number` is that of the start."""

        def sweep(*state):
            new_v, new_h = new = self.sweep(models, state)
            return new, tf.maximum(new_v.change(state[0]), new_h.change(state[1]))

        (v, h), iterations, residual = until_converged(
            sweep, self.start(models), max_iterations, tolerance
        )
        bound = _total(models.kernel, models.visible, models.hidden, v, h)
        number = tf.fill(tf.shape(iterations), number)
        return _Fit(v, h, bound, iterations, residual, number)


def checked_starts(starts: Any, potentials: Potentials) -> tuple[tf.Tensor | None, ...]:
    """Returns starts as a tuple; raises a ValueError unless they are visible means."""
    if not isinstance(starts, (list, tuple)) or not starts:
        raise ValueError(
            "Expected starts, a list of visible means (B, rows) or None. Received: "
            f"{starts!r:.200}. Pass for example starts=[None, x]."
        )
    batch = potentials.batch_size
    count = 1 if batch is None else static_size(potentials, batch)
    shape = (count, potentials.visible_bias.shape[-1])

    def checked(start):
        size = start.shape if tf.is_tensor(start) else np.shape(start)
        return as_floats("starts", start, shape[-1:] if len(size) == 1 else shape)

    return tuple(None if start is None else checked(start) for start in starts)
