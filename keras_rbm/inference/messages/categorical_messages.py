"""Message passing between categorical visible and binary hidden units.

A hidden unit hears from a visible unit one number, the odds ratio `s`, and sends one
for each category a. With `E_a = exp(W_a)`, beliefs `tau_a` (visible) and `beta`
(hidden), and `beta' = 1 - beta`,

    hidden to visible   r_a = s beta' + E_a beta
    visible to hidden   s = (sum_a E_a tau_a / r_a) / (sum_a tau_a / r_a)

and `tau_a` is proportional to `exp(b_a)` times the product of `r_a` over all hidden
units, the odds of h are `exp(c)` times the product of `s` over all visible units. A
message `r` may have any scale, here that of a mean of `s` and `E_a`, so that it needs
no division. Max-product replaces each sum by a maximum. For two categories with
`E = (1, exp W)` these are the binary messages of `ratio_messages`, whose `r` is
`r_1 / r_0`, in the same order. `s` is kept; `r` is computed twice instead, which is
faster, unless damping needs the previous one.

As each message is a mean of what it is made of, it lies between the smallest and the
largest `E`, so the bounds of the binary messages hold: products of eight are finite
for weights to ±10, and single ones to ±40. Beyond that, `LogMessages` works with
logarithms in float64.
"""

import functools
from typing import NamedTuple

import tensorflow as tf

from keras_rbm.inference.messages.blocks import by_category, sum_of_logs

#: Most categories whose sum is written as additions, which XLA computes faster.
_MOST_ADDITIONS = 32


class CategoricalRatios(NamedTuple):
    """Sweeps of a few models: odds (q · U, H), b (n, q · U), c (n, H), by category.

    A state is `(…, s, visible, hidden)`: messages (n, U, H), unnormalized log-beliefs
    (n, q, U), and log-odds (n, H). What is before is what the last `r` is computed
    from: the previous s and hidden; with damping r itself, (n, q, U, H).

    Attributes:
        sums: bool, whether messages sum over a state, or take the maximum.
        damping: float, as in `sum_product`.
        block: int, how many ratios to multiply before taking a logarithm.
        num_states: int, q.
    """

    sums: bool
    damping: float
    block: int
    num_states: int

    def start(self, model):
        odds, b, c = by_category(model, self.num_states)
        s = tf.ones((b.shape[0], *odds.shape[1:]), b.dtype)
        if self.damping:
            return tf.ones((b.shape[0], *odds.shape), b.dtype), s, b, c
        return s, c, s, b, c

    def sweep(self, model, state):
        odds, b, c = by_category(model, self.num_states)
        *before, s, _, hidden = state
        r = self._to_visible(odds, s, hidden)
        if self.damping:
            r = before[0] ** self.damping * r ** (1.0 - self.damping)
            before = (r,)
        else:
            before = (s, hidden)
        visible = b + sum_of_logs(r, self.block, 3)
        on, off = self._to_hidden(odds, r, visible)
        s = on / off
        return *before, s, visible, c + sum_of_logs(s, self.block, 1)

    def beliefs(self, model, state):
        """Returns beliefs of visible and hidden units, (n, q, U) and (n, H)."""
        *_, visible, hidden = state
        return tf.nn.softmax(visible, 1), tf.sigmoid(hidden)

    def read(self, model, state):
        """Returns beliefs of visible and hidden units, log Z, and beliefs of pairs.

        With `s` as the fraction of its two sums each pair's own part of the Bethe
        estimate is 1, so that log Z is that of the units.
        """
        odds, _, _ = by_category(model, self.num_states)
        *before, _, visible, hidden = state
        r = before[0] if self.damping else self._to_visible(odds, *before)
        on, off = self._to_hidden(odds, r, visible)
        log_partition = (
            tf.reduce_sum(tf.reduce_logsumexp(visible, 1), -1)
            + tf.reduce_sum(tf.math.softplus(hidden), -1)
            + tf.reduce_sum(sum_of_logs(off, self.block, 1), -1)
        )
        shares = odds * self._weights(visible)[..., tf.newaxis] / r
        pairs = shares * (tf.sigmoid(hidden)[:, tf.newaxis] / on)[:, tf.newaxis]
        return *self.beliefs(model, state), log_partition, pairs

    def _to_visible(self, odds, s, hidden):
        """Returns messages to the categories, (n, q, U, H)."""
        on = tf.sigmoid(hidden)[:, tf.newaxis, tf.newaxis]
        off = tf.sigmoid(-hidden)[:, tf.newaxis]
        combine = tf.add if self.sums else tf.maximum
        return combine((s * off)[:, tf.newaxis], odds * on)

    def _to_hidden(self, odds, r, visible):
        """Returns numerator and denominator of `s`, (n, U, H)."""
        cavity = self._weights(visible)[..., tf.newaxis] / r
        return self._total(odds * cavity), self._total(cavity)

    def _weights(self, visible):
        """Returns beliefs; for maxima relative to the largest one."""
        if self.sums:
            return tf.nn.softmax(visible, 1)
        return tf.exp(visible - tf.reduce_max(visible, 1, keepdims=True))

    def _total(self, array):
        """Returns the sum or the maximum over categories."""
        if self.num_states <= _MOST_ADDITIONS:
            combine = tf.add if self.sums else tf.maximum
            return functools.reduce(combine, tf.unstack(array, axis=1))
        return (tf.reduce_sum if self.sums else tf.reduce_max)(array, 1)
