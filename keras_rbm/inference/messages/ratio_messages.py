"""Message passing in odds-ratio form, and by logarithms where these may overflow.

The messages of an edge are carried as ratios `m(1) / m(0)`: with `E = exp(W)`,
beliefs `alpha` (visible) and `beta` (hidden) and their complements `alpha'`, `beta'`,

    hidden to visible   r = (s beta' + E beta) / (s beta' + beta)
    visible to hidden   s = (r alpha' + E alpha) / (r alpha' + alpha)

are the fixed-point iteration of Ping & Ihler (2017, Algorithm 1) with one division
instead of four transcendental functions. Max-product replaces each sum by a maximum.
`s` follows from `r` and `alpha`, so only `r` is kept. Sums of logarithms are computed
as logarithms of products of eight ratios if these cannot overflow; if the ratios
themselves might, `LogMessages` works with their logarithms.

Of these, with the cavity log-odds `a = log-odds of the sender - log of its receiver's
message`, a hidden unit sends `log r = sp(W + a)` for each category, sp the softplus for
sum-product and the positive part for max-product, and hears `log s`, the difference of
two sums over categories: the ratios of `categorical_messages` in float64, at several
times their cost. Of a binary unit only state 1 has a row, and its message is relative
to that for state 0, `sp(W + a) - sp(a)`: the ratios above.
"""

import functools
from typing import NamedTuple

import tensorflow as tf

from keras_rbm.inference.messages import blocks


class RatioMessages(NamedTuple):
    """Sweeps of a few models, whose parameters are `odds` (V, H), b (n, V), c (n, H).

    A state is `(r, visible, hidden)`: messages (n, V, H) and the beliefs' log-odds.

    Attributes:
        sums: bool, whether messages sum over a state, or take the maximum.
        damping: float, as in `sum_product`.
        block: int, how many ratios to multiply before taking a logarithm.
    """

    sums: bool
    damping: float
    block: int

    def start(self, model):
        odds, b, c = model
        # There are no messages from the visible units yet: s = 1.
        silent = tf.fill(b.shape, tf.constant(-float("inf"), b.dtype))
        return tf.ones((b.shape[0], *odds.shape), b.dtype), silent, c

    def sweep(self, model, state):
        odds, b, c = model
        r, visible, hidden = state
        new = self._next_messages(odds, r, visible, hidden)
        if self.damping:
            new = r**self.damping * new ** (1.0 - self.damping)
        visible = b + blocks.sum_of_logs(new, self.block, 2)
        return new, visible, c + self._log_sums(odds, new, visible)

    def beliefs(self, model, state):
        """Returns beliefs of both layers, at the start those without messages."""
        _, visible, hidden = state
        visible = tf.where(visible == -float("inf"), model[1], visible)
        return tf.sigmoid(visible), tf.sigmoid(hidden)

    def read(self, model, state):
        """Returns beliefs of visible and hidden units, log Z, and beliefs of pairs."""
        odds, b, c = model
        r, visible, hidden = state
        numerator, _ = self._to_hidden(odds, r, visible)
        log_partition = (
            tf.reduce_sum(b + tf.math.softplus(-visible), -1)
            + tf.reduce_sum(c + tf.math.softplus(-hidden), -1)
            + tf.reduce_sum(blocks.sum_of_logs(numerator, self.block, 2), -1)
        )
        alpha, beta = tf.sigmoid(visible), tf.sigmoid(hidden)
        pairs = odds * _column(alpha) / numerator * _row(beta)
        return alpha, beta, log_partition, pairs

    def _next_messages(self, odds, r, visible, hidden):
        """Returns new messages to the visible units, (n, V, H)."""

        @tf.custom_gradient
        def messages(odds, r, visible, hidden):
            numerator, denominator = self._to_hidden(odds, r, visible)
            new = self._to_visible(odds, numerator, denominator, hidden)

            def backward(upstream):
                a, off_a = _column(tf.sigmoid(visible)), _column(_off(visible))
                b, off_b = _row(tf.sigmoid(hidden)), _row(_off(hidden))
                shared = upstream / (numerator * off_b + denominator * b)
                of_numerator = off_b * shared * (1.0 - new)
                of_denominator = b * shared * (odds - new)
                of_odds = b * (shared * denominator) + a * of_numerator
                of_b = new * (shared * numerator - shared * denominator)
                of_b += odds * (shared * denominator) - shared * numerator
                of_a = of_numerator * (odds - r) + of_denominator * (1.0 - r)
                return (
                    tf.reduce_sum(of_odds, 0),
                    (of_numerator + of_denominator) * off_a,
                    (a * off_a)[..., 0] * _sum(of_a, 2),
                    (b * off_b)[:, 0] * _sum(of_b, 1),
                )

            return new, backward

        return messages(odds, r, visible, hidden)

    def _log_sums(self, odds, r, visible):
        """Returns sums of the logarithms of messages to the hidden units, (n, H)."""

        @tf.custom_gradient
        def sums(odds, r, visible):
            numerator, denominator = self._to_hidden(odds, r, visible)
            ratios = blocks.products(numerator, self.block, 1)
            ratios /= blocks.products(denominator, self.block, 1)

            def backward(upstream):
                a, off_a = _column(tf.sigmoid(visible)), _column(_off(visible))
                of_numerator = _row(upstream) / numerator
                of_denominator = -_row(upstream) / denominator
                of_a = of_numerator * (odds - r) + of_denominator * (1.0 - r)
                return (
                    tf.reduce_sum(of_numerator * a, 0),
                    (of_numerator + of_denominator) * off_a,
                    (a * off_a)[..., 0] * _sum(of_a, 2),
                )

            return tf.reduce_sum(tf.math.log(ratios), 1), backward

        return sums(odds, r, visible)

    def _combine(self, one, two):
        return tf.add(one, two) if self.sums else tf.maximum(one, two)

    def _to_hidden(self, odds, r, log_odds):
        """Returns numerator and denominator of `s`."""
        alpha, complement = _column(tf.sigmoid(log_odds)), _column(_off(log_odds))
        rest = r * complement
        return self._combine(rest, odds * alpha), self._combine(rest, alpha)

    def _to_visible(self, odds, numerator, denominator, log_odds):
        """Returns `r`, given `s` as a fraction."""
        if self.block == 1:  # the weights are large: their products may overflow
            numerator, denominator = numerator / denominator, 1.0
        beta, complement = _row(tf.sigmoid(log_odds)), _row(_off(log_odds))
        rest, on = numerator * complement, denominator * beta
        return self._combine(rest, odds * on) / self._combine(rest, on)


def _sum(array, axis):
    """Returns sums along an axis of a multiple of 8; XLA adds eight parts faster."""
    return tf.reduce_sum(functools.reduce(tf.add, tf.split(array, 8, axis)), axis)


def _off(log_odds):
    return tf.sigmoid(-log_odds)


def _column(array):
    return array[:, :, tf.newaxis]


def _row(array):
    return array[:, tf.newaxis, :]


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
        return blocks.by_category(double, self.num_states)

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
