"""The centered gradient."""

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._replicas import all_sum
from keras_rbm.rules.learner import Learner
from keras_rbm.units.categorical import Categorical


class Centering:
    """The offsets mu of visible and lambda of hidden units, and the centered gradient.

    The model `-E = (v - mu)' W (h - lambda) + …` is the same family of distributions
    for all offsets; its gradient, written in the ordinary parameters, is

    * `G_W = <(v - mu)(h - lambda)'>+ - <(v - mu)(h - lambda)'>-`,
    * `G_b = <v>+ - <v>- - G_W lambda`,
    * `G_c = <h>+ - <h>- - G_W' mu`,

    and does not change its behavior if data are inverted. Where one of them is frozen,
    what would have to move with it is not centered: mu is 0 for a frozen `c`, lambda
    for a frozen `b`, both are for a frozen `W`. The parameters are the ordinary ones,
    so moving the offsets does not change the model. Before each update
    `mu <- (1 - nu) mu + nu <v>+`, and lambda likewise: `dd_s^b` in [1].

    References:
        1. Melchior, Fischer, Wiskott. How to center deep Boltzmann machines.
           JMLR 2016.
    """

    #: nu, how fast the offsets follow the batches' means.
    sliding_factor = 0.01
    visible_offset: keras.Variable | None
    hidden_offset: keras.Variable | None
    _learner: Learner | None
    _unit_of_row: np.ndarray | None = None  # where categorical units may be absent

    def __init__(self):
        self.visible_offset = self.hidden_offset = self.learner = None

    def build(self, learner):
        """Creates the offsets: means of the data and of hidden units without input."""
        self.learner = learner
        own = learner.has_own_models and not learner.model.conditional
        if own and isinstance(learner.model.visible, Categorical):
            self._unit_of_row = np.asarray(learner.potentials().visible.unit_of_row)
        names = ("visible_offset", "hidden_offset")
        for name, start in zip(names, self._starts(), strict=True):
            variable = learner.add_variable(
                name, start.shape, lambda shape, dtype=None, start=start: start
            )
            setattr(self, name, variable)

    def reset(self, mean=None):
        """Resets the offsets to the mean of the data, and of units without input.

        Args:
            mean: see `Learner.recenter`.
        """
        visible, hidden = self._starts(mean)
        self.visible_offset.assign(visible)
        self.hidden_offset.assign(hidden)

    def slide(self, positive):
        """Moves the offsets toward the means of the positive phase."""
        mean = positive.mean()
        visible, hidden, total = all_sum(
            (mean.visible.bias, mean.hidden.bias, mean.weights)
        )
        if self._unit_of_row is not None:  # the mean of those that are there
            there = self._of_units(visible[tf.newaxis])[0]
            known = tf.math.divide_no_nan(visible, there)
            visible = tf.where(there > 0.0, known, self.visible_offset)
        # A batch whose weights are all zero does not change the offsets.
        rate = self.sliding_factor * tf.sign(total)
        for offset, target in (
            (self.visible_offset, visible),
            (self.hidden_offset, hidden),
        ):
            offset.assign(offset + rate * (target - offset))

    def kernel(self, moments):
        """Returns `<(v - mu)(h - lambda)'>` of a phase, (V, H), 0 if weights are 0."""
        mean = moments.mean()
        mu, lam = self._offsets()
        kernel = mean.kernel - _outer(mean.visible.bias, lam)
        if self._unit_of_row is None:
            kernel -= _outer(mu, mean.hidden.bias - mean.weights * lam)
        else:
            there = (
                self._of_units(moments.visible.bias) * moments.weights[:, tf.newaxis]
            )
            hidden = moments.hidden.bias - lam
            kernel -= mu[:, tf.newaxis] * tf.matmul(there, hidden, transpose_a=True)
        return kernel

    def _of_units(self, rows):
        """Returns the sum of each unit's rows for each of them, (B, rows)."""
        sums = tf.math.unsorted_segment_sum(
            tf.transpose(rows), self._unit_of_row, self._unit_of_row[-1] + 1
        )
        return tf.transpose(tf.gather(sums, self._unit_of_row))

    def kernel_shift(self, kernel):
        """Returns what a change of the kernel adds to the ordinary kernel.

        It is `None`, unless categorical units may be absent: then a unit's change is
        centered by itself.
        """
        if self._unit_of_row is None:
            return None
        mu, _ = self._offsets()
        return -tf.transpose(self._of_units(tf.transpose(mu[:, tf.newaxis] * kernel)))

    def shifts(self, kernel):
        """Returns what a change of the kernel adds to the ordinary biases, by name."""
        mu, lam = self._offsets()
        hidden = -tf.linalg.matvec(kernel, mu, transpose_a=True)
        if self._unit_of_row is not None:
            hidden = tf.zeros_like(hidden)
        return {"visible_bias": -tf.linalg.matvec(kernel, lam), "hidden_bias": hidden}

    def ordinary(self, gradients):
        """Returns gradients of the ordinary parameters, given those of the centered."""
        shifts = self.shifts(gradients["kernel"])
        return gradients | {name: gradients[name] + shifts[name] for name in shifts}

    def _starts(self, mean=None):
        """Returns the mean statistics of the data, and of hidden units without input.

        A model with input knows no mean of the data: it has that of the biases alone.
        """
        _, visible, hidden = self.learner.biases()
        if mean is None and not self.learner.model.conditional:
            mean = self.learner.mean_states()
        means = [
            layer.expected_statistics(layer.bias).bias for layer in (visible, hidden)
        ]
        return means if mean is None else (visible.first(mean), means[1])

    def _offsets(self):
        """Returns mu and lambda, 0 where what would have to move is frozen."""
        frozen = self.learner.frozen
        visible = float(frozen.isdisjoint({"kernel", "hidden_bias"}))
        hidden = float(frozen.isdisjoint({"kernel", "visible_bias"}))
        return self.visible_offset * visible, self.hidden_offset * hidden


def _outer(column, row):
    return column[:, tf.newaxis] * row
