"""The loop of annealed importance sampling, either way along a tempered path."""

import functools
import math

import keras
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.gibbs import ChainState, sweep_noise

#: Temperatures between two updates of the progress bar.
_SEGMENT = 250
#: Temperatures whose noise is drawn at once; a divisor of `_SEGMENT`.
_BLOCK = 10
#: Chains · V · H from which XLA's compilation, about a second, is worth it.
_LARGE = 10**6


def anneal(path, visible, log_weights, betas, seed, progress, reverse=False):
    """Returns the log weights after all pairs of temperatures (lows, highs)."""
    lows, highs = (tf.constant(values, tf.float32) for values in betas)
    seed = random.as_seed(seed)
    log_weights = tf.cast(log_weights, tf.float64)
    chains = ChainState(visible, path.potentials.hidden_natural(visible))
    state = (chains, log_weights)
    sizes = (visible.shape[0], *path.potentials.kernel.shape)
    large = None not in sizes and math.prod(sizes) >= _LARGE
    block = _block_compiled if large else _block
    run = _run(block, sizes[1], path.potentials.batch_size is None)
    count = lows.shape[0]
    segment = _SEGMENT if progress and tf.executing_eagerly() else count
    bar = keras.utils.Progbar(count, unit_name="temperature") if progress else None
    for start in range(0, count, segment):
        end = min(start + segment, count)
        span = tf.constant([start, end])
        state = run(path, state, lows, highs, span, seed, reverse)
        if bar is not None:
            bar.update(end)
    return state[-1]


def _block(path, state, lows, highs, span, seed, reverse):
    """Anneals over temperatures `span[0]` to `span[1]`, at most `_BLOCK` of them."""
    first, last = span[0], span[1]
    rows = tf.shape(state[0].visible)[0]
    noise = sweep_noise(path.potentials, rows, seed, num_sweeps=_BLOCK)

    def step(index, chains, log_weights):
        low, high = tf.gather(lows, index), tf.gather(highs, index)
        # Not noise[i]: slicing at an argument would compile anew for each value.
        draws = noise.of_sweep(index - first)
        if not reverse:
            log_weights += path.log_weight_difference(chains, low, high)
        chains = path.sweep(chains, high, draws)
        if reverse:
            log_weights += path.log_weight_difference(chains, low, high)
        return index + 1, chains, log_weights

    return tf.while_loop(lambda index, *_: index < last, step, (first, *state))[1:]


_block_compiled = tf.function(_block, autograph=False, jit_compile=True)


def _blocks(block, path, state, lows, highs, span, seed, reverse):
    def body(start, *state):
        end = tf.minimum(start + _BLOCK, span[1])
        block_seed = random.fold_in(seed, start)
        state = block(path, state, lows, highs, (start, end), block_seed, reverse)
        return end, *state

    return tf.while_loop(
        lambda start, *_: start < span[1],
        body,
        (span[0], *state),
        parallel_iterations=1,
    )[1:]


@functools.cache
def _run(block, *kind):
    """Returns the loop over blocks, traced once for all sizes of a growing model.

    It is given models of one kind alone, between which little but H differs.
    """
    blocks = functools.partial(_blocks, block)
    return tf.function(blocks, autograph=False, reduce_retracing=True)
