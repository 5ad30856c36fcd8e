"""The loop of annealed importance sampling, in either direction of a tempered path."""

import functools
import math
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.gibbs import ChainState, sweep_noise
from keras_rbm.inference.traces import kind_of_models

#: Temperatures between two updates of the progress bar.
_SEGMENT = 250
#: Temperatures whose noise is drawn at once; a divisor of `_SEGMENT`.
_BLOCK = 10
#: Chains · V · H from which XLA's compilation, about a second, pays off.
_LARGE = 10**6


class Annealed(NamedTuple):
    """Chains that were annealed along a path, M for each model.

    Attributes:
        visible: tensor (C, V), their last states.
        log_weights: tensor (C,), float64, what the path added to log Z_0.
        steps: tensor (blocks, C), float64, what each block of temperatures added.
    """

    visible: tf.Tensor
    log_weights: tf.Tensor
    steps: tf.Tensor


def anneal(path, visible, betas, seed, progress=False, reverse=False):
    """Anneals chains along a path and returns them as `Annealed`.

    Args:
        path: `TemperedPath`.
        visible: tensor (C, V), states to start from.
        betas: array (K + 1,), inverse temperatures from 0 to 1.
        seed: int or integer tensor of shape (2,).
        progress: bool. Show a progress bar.
        reverse: bool, whether to go from 1 to 0.
    """
    lows, highs = (betas[-2::-1], betas[:0:-1]) if reverse else (betas[:-1], betas[1:])
    lows, highs = (tf.constant(values, tf.float32) for values in (lows, highs))
    seed = random.as_seed(seed)
    log_weights = tf.zeros(tf.shape(visible)[:1], tf.float64)
    chains = ChainState(visible, path.potentials.hidden_natural(visible))
    state = (chains, log_weights)
    sizes = (visible.shape[0], *path.potentials.kernel.shape)
    large = None not in sizes and math.prod(sizes) >= _LARGE
    block = _block_compiled if large else _block
    kind = kind_of_models(path.potentials)
    run = _run(block, kind, path.base.shape.rank, reverse)
    count = lows.shape[0]
    segment = _SEGMENT if progress and tf.executing_eagerly() else count
    bar = keras.utils.Progbar(count, unit_name="temperature") if progress else None
    steps = []
    for start in range(0, count, segment):
        end = min(start + segment, count)
        span = tf.constant([start, end])
        *state, added = run(path, state, lows, highs, span, seed, reverse)
        steps.append(added)
        if bar is not None:
            bar.update(end)
    chains, log_weights = state
    return Annealed(chains.visible, log_weights, tf.concat(steps, 0))


def block_ends(betas):
    """Returns the inverse temperatures between which `Annealed.steps` lie."""
    return np.append(betas[:-1:_BLOCK], betas[-1])


def _block(path, state, lows, highs, span, seed, reverse):
    """Anneals over temperatures `span[0]` to `span[1]`, at most `_BLOCK` of them."""
    first, last = span[0], span[1]
    rows = tf.shape(state[0].visible)[0]
    noise = sweep_noise(path.potentials, rows, seed, num_sweeps=_BLOCK)

    def step(index, chains, log_weights):
        low, high = tf.gather(lows, index), tf.gather(highs, index)
        # Not noise[i]: slicing at an argument would compile again for each value.
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
    steps = tf.TensorArray(
        tf.float64,
        -(-(span[1] - span[0]) // _BLOCK),
        element_shape=state[1].shape,
        clear_after_read=False,
    )

    def body(start, number, steps, *state):
        end = tf.minimum(start + _BLOCK, span[1])
        block_seed = random.fold_in(seed, start)
        new = block(path, state, lows, highs, (start, end), block_seed, reverse)
        # A trace for other sizes may be reused for these, with unknown shapes.
        new = tf.nest.map_structure(
            lambda x, old: tf.ensure_shape(x, old.shape), new, state
        )
        steps = steps.write(number, new[1] - state[1])
        return end, number + 1, steps, *new

    _, _, steps, *state = tf.while_loop(
        lambda start, *_: start < span[1],
        body,
        (span[0], tf.constant(0), steps, *state),
        parallel_iterations=1,
    )
    return *state, steps.stack()


@functools.cache
def _run(block, *kind):
    """Returns the loop over blocks, traced once for all sizes of a growing model.

    Each loop is given models of one kind only, which differ in little but H.
    """
    blocks = functools.partial(_blocks, block)
    return tf.function(blocks, autograph=False, reduce_retracing=True)
