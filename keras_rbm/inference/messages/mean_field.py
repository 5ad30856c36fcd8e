"""Naive mean field."""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm.inference.arguments import check_model
from keras_rbm.inference.messages.beliefs import (
    HUGE,
    Beliefs,
    as_limits,
    batch_of_models,
    check_options,
    checked_weights,
    pairwise_products,
    without_batch,
)
from keras_rbm.inference.soundness import check_normalizable


def mean_field(
    potentials,
    *,
    max_iterations=100,
    tolerance=1e-3,
    damping=0.0,
    weights=None,
    pairwise="mean",
):
    """Approximates a model by independent units.

    Updates one layer given the other: binary layers by `v = sigmoid(W h + b)`,
    `h = sigmoid(v' W + c)`, starting from `h = sigmoid(c)`; others by the means m of
    their statistics, with natural parameters `eta_v = b + W m_h` and
    `eta_h = c + W' m_v`. Without damping no update lowers the bound

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
    beliefs = _iterate(potentials, weights, *limits, float(damping), pairwise)
    if potentials.batch_size is None:
        return without_batch(beliefs, pairwise)
    return beliefs


class _Layer(NamedTuple):
    """A layer given the other: natural parameters, and means of the statistics."""

    natural: tf.Tensor
    means: tf.Tensor

    @classmethod
    def given(cls, units, inputs, old=None, damping=0.0):
        natural = units.natural(inputs)
        if damping:
            natural = (1.0 - damping) * natural + damping * old.natural
        return cls(natural, units.first(units.mean(natural)))

    def change(self, old):
        return tf.reduce_max(tf.abs(self.means - old.means), -1)

    def unless(self, stopped, old):
        return _Layer(
            tf.where(stopped, old.natural, self.natural),
            tf.where(stopped, old.means, self.means),
        )

    def bound(self, units):
        """Returns `sum A(eta) - (eta - bias)' m`, (B,)."""
        inputs = self.natural - units.bias
        own = tf.reduce_sum(units.log_partition(self.natural), -1)
        return own - tf.reduce_sum(inputs * self.means, -1)


@tf.function(autograph=False)
def _iterate(potentials, weights, max_iterations, tolerance, damping, pairwise):
    models, weights = batch_of_models(potentials, weights)
    kernel, visible, hidden = models.kernel, models.visible, models.hidden

    def active(iterations, residual):
        return (iterations < max_iterations) & (residual >= tolerance)

    def step(v, h, iterations, residual):
        going = active(iterations, residual)
        inputs = tf.matmul(h.means, kernel, transpose_b=True)
        new_v = _Layer.given(visible, inputs, v, damping)
        inputs = tf.matmul(new_v.means, kernel)
        new_h = _Layer.given(hidden, inputs, h, damping)
        change = tf.maximum(new_v.change(v), new_h.change(h))
        stopped = ~going[:, tf.newaxis]
        return (
            new_v.unless(stopped, v),
            new_h.unless(stopped, h),
            iterations + tf.cast(going, tf.int32),
            tf.where(going, change, residual),
        )

    rows = tf.shape(visible.bias)[:1]
    v, h, iterations, residual = tf.while_loop(
        lambda v, h, *state: tf.reduce_any(active(*state)),
        step,
        (
            _Layer.given(visible, tf.zeros_like(visible.bias)),
            _Layer.given(hidden, tf.zeros_like(hidden.bias)),
            tf.zeros(rows, tf.int32),
            tf.fill(rows, HUGE),
        ),
    )
    coupling = tf.reduce_sum(tf.matmul(v.means, kernel) * h.means, -1)
    return Beliefs(
        visible.mean(v.natural),
        hidden.mean(h.natural),
        pairwise_products(v.means, h.means, weights, pairwise),
        coupling + v.bound(visible) + h.bound(hidden),
        iterations,
        residual < tolerance,
        residual,
    )
