"""Message passing with logarithms of odds ratios, for weights whose exp overflows.

With the cavity log-odds `a = log-odds of the sender - log of its receiver's message` a
message is `log r = sp(W + a) - sp(a)`, sp the softplus for sum-product and the positive
part for max-product: the ratios of `ratio_messages`, in float64, at several times their
cost.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm.inference.messages.ratio_messages import Model, State

#: Weights beyond this need logarithms.
LARGEST_WEIGHT = 40.0


class LogMessages(NamedTuple):
    """Sweeps of a few models, whose parameters are the kernel W, b and c, in float64.

    A state is `(to_visible, to_hidden, visible, hidden)`: messages both ways and the
    beliefs' log-odds. Attributes and methods are those of `RatioMessages`.
    """

    sums: bool
    damping: float

    def start(self, model: Model) -> State:
        kernel, b, c = model
        silent = tf.zeros((b.shape[0], *kernel.shape), b.dtype)
        return silent, silent, b, c

    def sweep(self, model: Model, state: State) -> State:
        kernel, b, c = model
        to_visible, to_hidden, _, hidden = state
        new = self._message(kernel, hidden[:, tf.newaxis, :] - to_hidden)
        new = self.damping * to_visible + (1.0 - self.damping) * new
        visible = b + tf.reduce_sum(new, 2)
        to_hidden = self._message(kernel, visible[:, :, tf.newaxis] - new)
        return new, to_hidden, visible, c + tf.reduce_sum(to_hidden, 1)

    def before(self, model: Model, state: State) -> State:
        return state[2:]

    def read(self, model: Model, state: State) -> State:
        kernel, b, c = model
        to_visible, _, visible, hidden = state
        on, off = -tf.math.softplus(-visible), -tf.math.softplus(visible)
        both = tf.math.reduce_logsumexp(
            tf.stack(
                [to_visible + off[:, :, tf.newaxis], kernel + on[:, :, tf.newaxis]]
            ),
            0,
        )
        log_partition = (
            tf.reduce_sum(b - off - visible, -1)
            + tf.reduce_sum(c + tf.math.softplus(-hidden), -1)
            + tf.reduce_sum(both, (1, 2))
        )
        hidden_on = -tf.math.softplus(-hidden)[:, tf.newaxis, :]
        pairs = tf.exp(kernel + on[:, :, tf.newaxis] + hidden_on - both)
        return visible, hidden, pairs, log_partition

    def _message(self, kernel, cavity):
        soft = tf.math.softplus if self.sums else tf.nn.relu
        return soft(kernel + cavity) - soft(cavity)
