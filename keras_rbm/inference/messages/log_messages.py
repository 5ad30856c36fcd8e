"""Message passing with logarithms of odds ratios, for weights whose exp overflows.

With the cavity log-odds `a = log-odds of the sender - log of its receiver's message` a
hidden unit sends `log r = sp(W + a)` for each category, sp the softplus for sum-product
and the positive part for max-product, and hears `log s`, the difference of two sums
over categories: the ratios of `categorical_messages` in float64, at several times their
cost. Of a binary unit only state 1 has a row, and its message is relative to that for
state 0, `sp(W + a) - sp(a)`: the ratios of `ratio_messages`.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm.inference.messages.blocks import by_category


class LogMessages(NamedTuple):
    """Sweeps of a few models, whose parameters are the kernel W, b and c.

    A state is `(log r, log s, visible, hidden)`: messages (n, q, U, H) and (n, U, H),
    unnormalized log-beliefs (n, q, U), and log-odds (n, H), in float64. Attributes and
    methods are those of `CategoricalRatios`; q is 1 for binary units.
    """

    sums: bool
    damping: float
    num_states: int

    def start(self, model):
        kernel, b, c = self._model(model)
        log_r = tf.zeros((b.shape[0], *kernel.shape), b.dtype)
        return log_r, log_r[:, 0], b, c

    def sweep(self, model, state):
        kernel, b, c = self._model(model)
        log_r, log_s, _, hidden = state
        cavity = (hidden[:, tf.newaxis] - log_s)[:, tf.newaxis]
        new = self._soft(kernel + cavity)
        if self.num_states == 1:
            new -= self._soft(cavity)
        log_r = self.damping * log_r + (1.0 - self.damping) * new
        visible = b + tf.reduce_sum(log_r, 3)
        on, off = self._to_hidden(kernel, log_r, visible)
        log_s = on - off
        return log_r, log_s, visible, c + tf.reduce_sum(log_s, 1)

    def beliefs(self, model, state):
        *_, visible, hidden = state
        alone = self.num_states == 1
        shares = tf.sigmoid(visible) if alone else tf.nn.softmax(visible, 1)
        return shares, tf.sigmoid(hidden)

    def read(self, model, state):
        kernel, _, _ = self._model(model)
        log_r, _, visible, hidden = state
        on, off = self._to_hidden(kernel, log_r, visible)
        total = self._total(visible)
        log_partition = (
            tf.reduce_sum(total, -1)
            + tf.reduce_sum(tf.math.softplus(hidden), -1)
            + tf.reduce_sum(off - total[..., tf.newaxis], (1, 2))
        )
        log_on = on + tf.math.softplus(-hidden)[:, tf.newaxis]
        cavity = visible[..., tf.newaxis] - log_r
        pairs = tf.exp(kernel + cavity - log_on[:, tf.newaxis])
        return *self.beliefs(model, state), log_partition, pairs

    def _model(self, model):
        double = [tf.cast(part, tf.float64) for part in model]
        return by_category(double, self.num_states)

    def _soft(self, log_odds):
        return (tf.math.softplus if self.sums else tf.nn.relu)(log_odds)

    def _total(self, logs):
        """Returns the logarithm of a sum over all states of a unit, or the maximum."""
        if self.num_states == 1:
            return self._soft(logs[:, 0])
        return (tf.reduce_logsumexp if self.sums else tf.reduce_max)(logs, 1)

    def _to_hidden(self, kernel, log_r, visible):
        """Returns logarithms of the numerator and denominator of `s`, (n, U, H)."""
        cavity = visible[..., tf.newaxis] - log_r
        return self._total(kernel + cavity), self._total(cavity)
