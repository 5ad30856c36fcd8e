"""Sum-product and max-product belief propagation in odds-ratio form.

The messages of an edge are carried as ratios `m(1) / m(0)`: with `E = exp(W)`,
beliefs `alpha` (visible) and `beta` (hidden) and their complements `alpha'`, `beta'`,

    hidden to visible   r = (s beta' + E beta) / (s beta' + beta)
    visible to hidden   s = (r alpha' + E alpha) / (r alpha' + alpha)

are the fixed-point iteration of Ping & Ihler (2017, Algorithm 1) with one division
instead of four transcendental functions. Max-product replaces each sum by a maximum.
`s` follows from `r` and `alpha`, so only `r` is kept. Sums of logarithms are computed
as logarithms of products of eight ratios if these cannot overflow; if the ratios
themselves might, `log_messages` works with their logarithms.
"""

import tensorflow as tf
from numpy.typing import ArrayLike

from keras_rbm.inference.arguments import check_model
from keras_rbm.inference.messages.beliefs import (
    Beliefs,
    BinaryModels,
    as_limits,
    check_options,
    checked_weights,
    pairwise_products,
    without_batch,
)
from keras_rbm.inference.messages.blocks import in_blocks, products, sum_of_logs
from keras_rbm.inference.messages.log_messages import propagate
from keras_rbm.inference.messages.sweeps import change_of_beliefs, until_converged
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import compiled, traced


def sum_product(
    potentials: Potentials,
    *,
    max_iterations: int | tf.Tensor = 100,
    tolerance: float = 1e-3,
    damping: float = 0.0,
    weights: ArrayLike | None = None,
    pairwise: str | None = "mean",
) -> Beliefs:
    """Approximates the marginals of a binary model by loopy belief propagation [1].

    Exact if the non-zero weights form a tree, after as many sweeps as its
    diameter. Each model of a batch stops independently of the others.

    Args:
        potentials: `Potentials` of binary units.
        max_iterations: int ≥ 1, maximum number of sweeps (messages both ways); a
            tensor or variable can change without a new trace.
        tolerance: float ≥ 0; a model has converged when no belief changed by as much
            in a sweep. With 0 all `max_iterations` sweeps are made.
        damping: float in [0, 1), weight of the old messages to visible units, in the
            logarithmic domain; fixed points stay the same.
        weights: tensor (B,), of the models in `pairwise="mean"`; by default 1 / B.
        pairwise: `"mean"`, `"each"` or `None`, see `Beliefs`.

    Returns:
        `Beliefs`; `log_partition` is the Bethe estimate (not a bound).

    Raises:
        ValueError: if a unit is not binary or an option is out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials([[2.0]], [0.0], [-1.0])
    >>> beliefs = keras_rbm.inference.sum_product(model)
    >>> exact = keras_rbm.inference.exact_log_partition(model)
    >>> print(np.round([beliefs.log_partition, exact], 4))
    [1.6265 1.6265]

    References:
        1. Ping, Ihler. Belief propagation in conditional RBMs for structured
           prediction. AISTATS 2017.
    """
    check_model(potentials)
    check_options(max_iterations, tolerance, damping, pairwise)
    weights = checked_weights(weights)
    limits = as_limits(max_iterations, tolerance)
    return _propagate(potentials, weights, *limits, True, float(damping), pairwise)


def max_product(
    potentials: Potentials,
    *,
    max_iterations: int | tf.Tensor = 100,
    tolerance: float = 1e-3,
    damping: float = 0.0,
    weights: ArrayLike | None = None,
    pairwise: str | None = "mean",
) -> Beliefs:
    """Approximates the most probable joint state (v, h) by belief propagation.

    Exact if the non-zero weights form a tree and the maximum is unique. A unit
    is 1 in the decoded state if its belief, a normalized max-marginal, exceeds 1/2.

    Args:
        potentials: like all other arguments, see `sum_product`.

    Returns:
        `Beliefs`: `pairwise` is `v h'` of the decoded state, `log_partition` its
        log-weight `-E(v, h)`, a lower bound of log Z.

    Raises:
        ValueError: if a unit is not binary or an option is out of range.

    Example:

    >>> model = keras_rbm.inference.Potentials([[2.0]], [0.5], [-1.0])
    >>> beliefs = keras_rbm.inference.max_product(model)
    >>> print((beliefs.visible > 0.5).numpy(), (beliefs.hidden > 0.5).numpy())
    [ True] [ True]
    """
    check_model(potentials)
    check_options(max_iterations, tolerance, damping, pairwise)
    weights = checked_weights(weights)
    limits = as_limits(max_iterations, tolerance)
    beliefs = _propagate(potentials, weights, *limits, False, float(damping), None)
    batch = potentials.batch_size is not None
    models = BinaryModels.of(potentials, weights)
    v, h = (
        tf.cast((layer if batch else layer[tf.newaxis]) > 0.5, tf.float32)
        for layer in (beliefs.visible, beliefs.hidden)
    )
    coupled = models.visible_bias + tf.matmul(h, models.kernel, transpose_b=True)
    weight = tf.reduce_sum(v * coupled, -1) + tf.reduce_sum(h * models.hidden_bias, -1)
    pairs = pairwise_products(v, h, models.weights, pairwise)
    if not batch:
        weight, pairs = weight[0], pairs[0] if pairwise == "each" else pairs
    return beliefs._replace(log_partition=weight, pairwise=pairs)


@traced
def _propagate(potentials, weights, max_iterations, tolerance, sums, damping, pairwise):
    models = BinaryModels.of(potentials, weights)
    options = {"sums": sums, "damping": damping, "pairwise": pairwise}

    def chunk(part, odds, block):
        arguments = (*part[1:], max_iterations, tolerance)
        if block:
            return _chunk(odds, *arguments, block=block, **options)
        return propagate(part.kernel, *arguments, **options)

    beliefs = in_blocks(chunk, models, pairwise)
    if potentials.batch_size is None:
        return without_batch(beliefs, pairwise)
    return beliefs


@compiled
def _chunk(
    odds, b, c, weights, max_iterations, tolerance, *, sums, block, damping, pairwise
):
    """Runs belief propagation on a few models.

    Args:
        odds: tensor (V, H), exp(W).
        b, c: tensors (n, V) and (n, H).
        weights: tensor (n,).
        max_iterations, tolerance: scalar tensors.
        sums: bool, whether messages sum over a state, or take the maximum.
        block: int, how many ratios to multiply before taking a logarithm.
        damping, pairwise: as in `sum_product`.

    Returns:
        `Beliefs`.
    """
    combine = tf.add if sums else tf.maximum

    def to_hidden(r, log_odds):
        """Returns numerator and denominator of `s`."""
        alpha, complement = _column(tf.sigmoid(log_odds)), _column(_off(log_odds))
        rest = r * complement
        return combine(rest, odds * alpha), combine(rest, alpha)

    def to_visible(numerator, denominator, log_odds):
        """Returns `r`, given `s` as a fraction."""
        if block == 1:  # the weights are large: their products may overflow
            numerator, denominator = numerator / denominator, 1.0
        beta, complement = _row(tf.sigmoid(log_odds)), _row(_off(log_odds))
        rest, on = numerator * complement, denominator * beta
        return combine(rest, odds * on) / combine(rest, on)

    def sweep(r, visible, hidden):
        new = to_visible(*to_hidden(r, visible), hidden)  # type: ignore[call-arg]
        if damping:
            new = r**damping * new ** (1.0 - damping)
        before = (tf.where(visible == silent, b, visible), hidden)
        visible = b + sum_of_logs(new, block, 2)
        numerator, denominator = to_hidden(new, visible)
        ratios = products(numerator, block, 1) / products(denominator, block, 1)
        after = (visible, c + tf.reduce_sum(tf.math.log(ratios), 1))
        return (new, *after), change_of_beliefs(after, before)

    # There are no messages from the visible units yet: s = 1.
    silent = tf.fill(b.shape, -float("inf"))
    start = (tf.ones((b.shape[0], *odds.shape)), silent, c)
    (r, visible, hidden), iterations, residual = until_converged(
        sweep, start, max_iterations, tolerance
    )
    numerator, _ = to_hidden(r, visible)
    log_partition = (
        tf.reduce_sum(b + tf.math.softplus(-visible), -1)
        + tf.reduce_sum(c + tf.math.softplus(-hidden), -1)
        + tf.reduce_sum(sum_of_logs(numerator, block, 2), -1)
    )
    pairs = None
    if pairwise is not None:
        pairs = odds * _column(tf.sigmoid(visible)) / numerator
        pairs *= _row(tf.sigmoid(hidden))
    if pairwise == "mean":
        pairs = tf.reduce_sum(pairs * weights[:, tf.newaxis, tf.newaxis], 0)
    return Beliefs(
        tf.sigmoid(visible),
        tf.sigmoid(hidden),
        pairs,
        log_partition,
        iterations,
        residual < tolerance,
        residual,
    )


def _off(log_odds):
    return tf.sigmoid(-log_odds)


def _column(array):
    return array[:, :, tf.newaxis]


def _row(array):
    return array[:, tf.newaxis, :]
