"""Message passing with logarithms of odds ratios, for weights whose exp overflows.

With the cavity log-odds `a = log-odds of the sender - log of its receiver's message` a
message is `log r = sp(W + a) - sp(a)`, sp the softplus for sum-product and the positive
part for max-product: the ratios of `belief_propagation`, in float64, at several times
their cost.
"""

import tensorflow as tf

from keras_rbm.inference.messages.beliefs import Beliefs
from keras_rbm.inference.messages.sweeps import change_of_beliefs, until_converged
from keras_rbm.inference.traces import compiled

#: Weights beyond this need logarithms.
LARGEST_WEIGHT = 40.0


@compiled
def propagate(
    kernel: tf.Tensor,
    b: tf.Tensor,
    c: tf.Tensor,
    weights: tf.Tensor,
    max_iterations: tf.Tensor,
    tolerance: tf.Tensor,
    *,
    sums: bool,
    damping: float,
    pairwise: str | None,
) -> Beliefs:
    """Runs belief propagation on a few models; arguments as in `belief_propagation`.

    `kernel` (V, H) is W itself; `sums` is True for sum-product, False for max-product.
    """
    kernel, b, c = (tf.cast(x, tf.float64) for x in (kernel, b, c))
    soft = tf.math.softplus if sums else tf.nn.relu

    def message(cavity):
        return soft(kernel + cavity) - soft(cavity)

    def sweep(to_visible, to_hidden, *before):
        hidden = before[1]
        new = message(hidden[:, tf.newaxis, :] - to_hidden)
        new = damping * to_visible + (1.0 - damping) * new
        visible = b + tf.reduce_sum(new, 2)
        to_hidden = message(visible[:, :, tf.newaxis] - new)
        after = (visible, c + tf.reduce_sum(to_hidden, 1))
        return (new, to_hidden, *after), change_of_beliefs(after, before)

    silent = tf.zeros((b.shape[0], *kernel.shape), tf.float64)
    (to_visible, _, visible, hidden), iterations, residual = until_converged(
        sweep, (silent, silent, b, c), max_iterations, tolerance
    )
    on, off = -tf.math.softplus(-visible), -tf.math.softplus(visible)
    both = tf.math.reduce_logsumexp(
        tf.stack([to_visible + off[:, :, tf.newaxis], kernel + on[:, :, tf.newaxis]]), 0
    )
    log_partition = (
        tf.reduce_sum(b - off - visible, -1)
        + tf.reduce_sum(c + tf.math.softplus(-hidden), -1)
        + tf.reduce_sum(both, (1, 2))
    )
    pairs = None
    if pairwise is not None:
        hidden_on = -tf.math.softplus(-hidden)[:, tf.newaxis, :]
        pairs = tf.exp(kernel + on[:, :, tf.newaxis] + hidden_on - both)
        pairs = tf.cast(pairs, tf.float32)
    if pairwise == "mean":
        pairs = tf.reduce_sum(pairs * weights[:, tf.newaxis, tf.newaxis], 0)
    return Beliefs(
        tf.cast(tf.sigmoid(visible), tf.float32),
        tf.cast(tf.sigmoid(hidden), tf.float32),
        pairs,
        tf.cast(log_partition, tf.float32),
        iterations,
        residual < tolerance,
        residual,
    )
