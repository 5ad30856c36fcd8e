"""The bipartite model that every inference routine takes."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm.inference.arguments import as_floats, checked_states
from keras_rbm.units.bernoulli import BernoulliParameters
from keras_rbm.units.unit import LayerParameters


class _Fields(NamedTuple):
    kernel: tf.Tensor
    visible: LayerParameters
    hidden: LayerParameters


class Potentials(_Fields):
    """A bipartite pairwise model: the kernel and the two layers' parameters.

    `-E(v, h) = t(v)' W t(h) + own terms of v + own terms of h`, where `t` is the
    units' first statistic; for binary units `v' W h + b' v + c' h`.

    Matrix products run in the kernel's dtype (bfloat16 under mixed precision),
    everything else in the parameters' dtype.

    Args:
        kernel: tensor of shape (V, H).
        visible: parameters of the visible units (`keras_rbm.units`), or for
            binary units their bias, of shape (V,) or (B, V).
        hidden: the same for the hidden units, (H,) or (B, H).

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [0.0] * 3, [0.0] * 2)
    >>> print(model.free_energy(tf.ones((1, 3))).numpy().round(3))
    [-1.386]
    """

    __slots__ = ()

    def __new__(cls, kernel, visible, hidden):
        if isinstance(kernel, (list, np.ndarray)):
            kernel = as_floats("kernel", kernel)
        visible, hidden = _layer(visible), _layer(hidden)
        if tf.is_tensor(kernel):
            _check_shapes(kernel, visible, hidden)
        return super().__new__(cls, kernel, visible, hidden)

    @property
    def visible_bias(self) -> tf.Tensor:
        return self.visible.bias

    @property
    def hidden_bias(self) -> tf.Tensor:
        return self.hidden.bias

    @property
    def num_visible(self) -> int | tf.Tensor:
        """Number of columns of visible states: int, or a tensor if it may change.

        The kernel has `visible.num_rows` rows: more, if a unit has several categories.
        """
        return self.visible.num_units

    @property
    def num_hidden(self) -> int | tf.Tensor:
        """The same for hidden states; the kernel has `hidden.num_rows` columns."""
        return self.hidden.num_units

    @property
    def batch_size(self) -> tf.Tensor | None:
        """Number of models if biases have a batch dimension, else `None`."""
        for bias in (self.visible_bias, self.hidden_bias):
            if bias.shape.rank == 2:
                return tf.shape(bias)[0]
        return None

    def named(self) -> dict[str, tf.Tensor]:
        """Returns a dict of all parameters by name, such as `visible_bias`."""
        layers = {"visible": self.visible, "hidden": self.hidden}
        return {"kernel": self.kernel} | {
            f"{side}_{name}": value
            for side, layer in layers.items()
            for name, value in layer.named().items()
        }

    def transpose(self) -> "Potentials":
        """Returns the same model with the layers' roles exchanged."""
        return Potentials(tf.transpose(self.kernel), self.hidden, self.visible)

    def repeat(self, count: int | tf.Tensor) -> "Potentials":
        """Returns `count` copies of each of B models; row i is model i modulo B.

        A single model, without a batch dimension, is returned unchanged.
        """
        if self.batch_size is None:
            return self
        layers = (layer.repeat(count) for layer in (self.visible, self.hidden))
        return Potentials(self.kernel, *layers)

    def hidden_input(self, visible: tf.Tensor) -> tf.Tensor:
        """Returns t(v)' W of shape (B, H) for visible states (B, V)."""
        first = self.visible.first_of(visible)
        return self._product(first, transpose=False)

    def visible_input(self, hidden: tf.Tensor) -> tf.Tensor:
        """Returns W t(h) of shape (B, V) for hidden states (B, H)."""
        first = self.hidden.first_of(hidden)
        return self._product(first, transpose=True)

    def hidden_natural(self, visible: tf.Tensor) -> tf.Tensor:
        """Returns the hidden units' natural parameters given v, (B, H)."""
        return self.hidden.natural(self.hidden_input(visible))

    def visible_natural(self, hidden: tf.Tensor) -> tf.Tensor:
        """Returns the visible units' natural parameters given h, (B, V)."""
        return self.visible.natural(self.visible_input(hidden))

    def hidden_natural_of_mean(self, mean: tf.Tensor) -> tf.Tensor:
        """Returns hidden natural parameters given encoded means of visible units."""
        product = self._product(self.visible.first(mean), transpose=False)
        return self.hidden.natural(product)

    def visible_natural_of_mean(self, mean: tf.Tensor) -> tf.Tensor:
        """Returns visible natural parameters given means of hidden units, (B, H)."""
        product = self._product(self.hidden.first(mean), transpose=True)
        return self.visible.natural(product)

    def free_energy(
        self, visible: tf.Tensor, hidden_natural: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Returns `F(v) = -log sum_h exp(-E(v, h))`, (B,), in nats.

        `hidden_natural` of v may be passed if it is already known.
        """
        if hidden_natural is None:
            hidden_natural = self.hidden_natural(visible)
        hidden = self.hidden.log_partition(hidden_natural)
        return -own_log_weight(self.visible, visible) - tf.reduce_sum(hidden, -1)

    def gradients(
        self, positive: "Moments", negative: "Moments"
    ) -> dict[str, tf.Tensor]:
        """Returns the gradient of minus the mean log-likelihood by the parameters.

        Args:
            positive, negative: `Moments` of the data and of the model. Of B models
                both have B rows.

        Returns:
            dict of names of `named` to expected statistics of the model minus those of
            the data, in the shape of each parameter that is learned.
        """
        gradients = {"kernel": negative.kernel - positive.kernel}
        of_model, of_data = negative.mean(), positive.mean()
        layers = {"visible": self.visible, "hidden": self.hidden}
        for side, layer in layers.items():
            for name in getattr(positive, side)._fields:
                phases = of_model, of_data
                if name == "bias" and layer.bias.shape.rank == 2:
                    phases = negative, positive
                one, two = (_weighted(phase, side, name) for phase in phases)
                gradients[f"{side}_{name}"] = one - two
        return gradients

    def _product(self, states, transpose):
        product = tf.matmul(
            tf.cast(states, self.kernel.dtype), self.kernel, transpose_b=transpose
        )
        return tf.cast(product, self.visible_bias.dtype)


class Moments(NamedTuple):
    """One phase of a gradient: statistics of the examples (or chains) and weights.

    Weights are normalized over all replicas, so weighted sums are means and replicas'
    gradients add up. Each phase has its own weights and its own number of rows.

    Attributes:
        kernel: tensor (V, H), weighted mean of t(v) t(h)'.
        visible: statistics of the visible units, leaves (B, V).
        hidden: statistics of the hidden units, leaves (B, H).
        weights: tensor (B,).
    """

    kernel: tf.Tensor
    visible: Any
    hidden: Any
    weights: tf.Tensor

    def mean(self) -> "Moments":
        """Returns the moments averaged over the rows, without a row axis."""
        row = self.weights[tf.newaxis, :]
        visible, hidden = tf.nest.map_structure(
            lambda leaf: tf.squeeze(tf.matmul(row, leaf), 0),
            (self.visible, self.hidden),
        )
        return Moments(self.kernel, visible, hidden, tf.reduce_sum(self.weights))


def conditional_moments(
    potentials: Potentials,
    visible: tf.Tensor,
    weights: tf.Tensor,
    hidden_natural: tf.Tensor | None = None,
) -> Moments:
    """Returns the moments of visible states, with hidden units in expectation.

    Args:
        potentials: `Potentials`.
        visible: tensor (B, V), states.
        weights: tensor (B,), normalized.
        hidden_natural: tensor (B, H), `potentials.hidden_natural(visible)`, if it is
            already known.

    Returns:
        `Moments`.
    """
    visible = checked_states(potentials, "visible", visible)
    weights = as_floats("weights", weights, visible.shape[:1])
    if hidden_natural is None:
        hidden_natural = potentials.hidden_natural(visible)
    v = potentials.visible.statistics(visible)
    h = potentials.hidden.expected_statistics(hidden_natural)
    dtype = potentials.kernel.dtype
    # bfloat16 rounds 1/B differently in each phase: keep the scale outside.
    # The largest of no weights, on a replica without rows, is minus infinity.
    scale = 1.0 if dtype == v.bias.dtype else tf.maximum(tf.reduce_max(weights), 0.0)
    relative = tf.math.divide_no_nan(weights, scale)[:, tf.newaxis]
    product = tf.matmul(
        tf.cast(v.bias * relative, dtype), tf.cast(h.bias, dtype), transpose_a=True
    )
    kernel = tf.cast(product, v.bias.dtype)
    if dtype != v.bias.dtype:
        kernel *= scale
    return Moments(kernel, v, h, weights)


def _weighted(moments, side, name):
    """Returns a statistic, times the weights of its rows if it has rows."""
    statistic = getattr(getattr(moments, side), name)
    if statistic.shape.rank == 1:
        return statistic
    return moments.weights[:, tf.newaxis] * statistic


def own_log_weight(units, states):
    """Returns a layer's own part of the log-weight of its states, (B,), in nats."""
    total = tf.reduce_sum(units.bias * units.first_of(states), -1)
    return total + tf.reduce_sum(units.base_measure(states), -1)


def log_conditional(units, states, natural):
    """Returns the log-density of a layer's states given the other layer, (B,), nats."""
    total = tf.reduce_sum(natural * units.first_of(states), -1)
    base = units.base_measure(states) - units.log_partition(natural)
    return total + tf.reduce_sum(base, -1)


def finite_layers(potentials):
    """Returns log2 of the number of states of the layers that can be enumerated.

    A dict with "visible" and "hidden", without layers of infinitely many states. For
    binary units the value is their number.
    """
    layers = {"visible": potentials.visible, "hidden": potentials.hidden}
    return {
        side: float(np.log2(num_states(units)).sum())
        for side, units in layers.items()
        if units.finite
    }


def num_states(units):
    """Returns how many states each unit of a finite layer has, an int array."""
    return 1 + np.count_nonzero(np.diff(units.values), axis=1)


def _check_shapes(kernel, visible, hidden):
    """Raises a ValueError unless the biases fit the kernel."""
    biases = [units.bias for units in (visible, hidden)]
    if not all(tf.is_tensor(bias) for bias in biases):
        return
    shapes = [tensor.shape for tensor in (kernel, *biases)]
    if any(shape.rank is None for shape in shapes):
        return
    fits = shapes[0].rank == 2 and all(
        shape.rank in (1, 2) and shape[-1:].is_compatible_with([size])
        for shape, size in zip(shapes[1:], shapes[0], strict=True)
    )
    if not fits:
        raise ValueError(
            "Expected a kernel of shape (V, H), a visible bias (V,) or (B, V) and a "
            "hidden bias (H,) or (B, H). Received: shapes "
            f"{[tuple(shape) for shape in shapes]}."
        )
    batches = [shape[:1] for shape in shapes[1:] if shape.rank == 2]
    if len(batches) == 2 and not batches[0].is_compatible_with(batches[1]):
        raise ValueError(
            "Expected biases of one batch of models. Received: visible bias "
            f"{tuple(shapes[1])}, hidden bias {tuple(shapes[2])}."
        )


def _layer(units):
    if hasattr(units, "natural"):
        return units
    if isinstance(units, (list, tuple, np.ndarray)):
        units = as_floats("bias", units)
    return BernoulliParameters(units)
