"""Chains that are annealed along a path, to a model or back."""

import functools
import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference import traces
from keras_rbm.inference.annealing.path import TemperedPath
from keras_rbm.inference.gibbs import ChainState, sweep_noise

#: Temperatures whose noise is drawn at once.
_BLOCK = 10
#: Jumps of a sweep, if there are any: with one, intervals of twelve parts of six units
#: were twice as wide.
_JUMPS = 4
#: Chains · V · H from which XLA's compilation, about a second, pays off.
_LARGE = 10**6


class Annealed(NamedTuple):
    """Chains that were annealed along a path, M for each model.

    Attributes:
        visible: tensor (C, V), their last states: of chains annealed back, at the base.
        log_weights: tensor (C,), float64, log Z_0 and what the path added to it.
        steps: tensor (blocks, C), float64, what each block of steps added; on the way
            forward a block lies between two `block_ends`.
    """

    visible: tf.Tensor
    log_weights: tf.Tensor
    steps: tf.Tensor


def anneal_forward(potentials, base, betas, num_chains, seed, jumps=None):
    """Anneals M new chains for each model, or from each base, to the model.

    Args:
        potentials, base, num_chains: as for `TemperedPath.of`.
        betas: array (K + 1,), inverse temperatures from 0 to 1.
        seed: int or integer tensor of shape (2,).
        jumps: `Jumps` of hidden units that each sweep tries, or `None`.
    """
    path = TemperedPath.of(potentials, base, num_chains, jumps)
    seed = random.as_seed(seed)
    rows = path.potentials.batch_size
    if rows is None:
        rows = num_chains if path.base.shape.rank == 1 else len(path.base)
    visible = path.sample_base(rows, random.fold_in(seed, -1))
    return _annealed(
        path, visible, np.stack([betas[:-1], betas[1:], betas[1:]], 1), seed
    )


def anneal_backward(potentials, visible, base, betas, seed, jumps=None):
    """Anneals states (C, V) from the model back to the base, see `anneal_forward`."""
    path = TemperedPath.of(potentials, base, jumps=jumps)
    # A sweep comes first: it is a step that adds nothing.
    lows, highs = (np.append(1.0, each[::-1]) for each in (betas[:-1], betas[1:]))
    schedule = np.stack([lows, highs, lows], 1)
    return _annealed(path, visible, schedule, random.as_seed(seed))


def block_ends(betas):
    """Returns the inverse temperatures between which `Annealed.steps` lie."""
    return np.append(betas[:-1:_BLOCK], betas[-1])


def _annealed(path, visible, schedule, seed):
    """Anneals by the betas of each step, (steps, 3).

    They are the two between which the log weight grows, and that of the next sweep.
    """
    sizes = (visible.shape[0], *path.potentials.kernel.shape)
    large = None not in sizes and math.prod(sizes) >= _LARGE
    compile = large and traces.compiles
    if path.base.shape.rank == 1 and compile:  # as from several bases: one program
        rows = path.potentials.visible.num_rows
        path = path._replace(base=tf.broadcast_to(path.base, (len(visible), rows)))
    block = _block_compiled if compile else _block
    kind = traces.kind_of_models(path.potentials), path.base.shape.rank
    run = _run(block, *kind, path.jumps is None)
    chains = ChainState(visible, path.potentials.hidden_natural(visible))
    log_weights = tf.zeros(tf.shape(visible)[:1], tf.float64)
    schedule = tf.constant(schedule, tf.float32)
    chains, log_weights, steps = run(path, (chains, log_weights), schedule, seed)
    return Annealed(chains.visible, log_weights + path.log_partition_of_base(), steps)


def _block(path, state, schedule, count, seed):
    """Anneals by the first `count` of at most `_BLOCK` steps."""
    rows = state[0].visible.shape[0] or tf.shape(state[0].visible)[0]
    noise = sweep_noise(path.potentials, rows, seed, num_sweeps=_BLOCK)
    jumps = path.jumps
    if jumps is not None:
        jumps = jumps.noise((_BLOCK, _JUMPS), rows, random.fold_in(seed, 1))

    def step(index, chains, log_weights):
        low, high, beta = tf.unstack(tf.gather(schedule, index))
        log_weights += path.log_weight_difference(chains, low, high)
        own = None if jumps is None else tf.gather(jumps, index)
        chains = path.sweep(chains, beta, noise.of_sweep(index), jumps=own)
        return index + 1, chains, log_weights

    start = tf.constant(0), *state
    return tf.while_loop(lambda index, *_: index < count, step, start)[1:]


_block_compiled = tf.function(_block, autograph=False, jit_compile=True)


def _blocks(block, path, state, schedule, seed):
    count = tf.shape(schedule)[0]
    steps = tf.TensorArray(
        tf.float64,
        -(-count // _BLOCK),
        element_shape=state[1].shape,
        clear_after_read=False,
    )

    def body(start, number, steps, *state):
        # Of one shape, for which XLA compiles, whatever the number of temperatures is.
        block_schedule = tf.gather(
            schedule, tf.minimum(start + tf.range(_BLOCK), count - 1)
        )
        size, block_seed = (
            tf.minimum(_BLOCK, count - start),
            random.fold_in(seed, start),
        )
        new = block(path, state, block_schedule, size, block_seed)
        # A trace for other sizes may be reused for these, with unknown shapes.
        new = tf.nest.map_structure(
            lambda x, old: tf.ensure_shape(x, old.shape), new, state
        )
        steps = steps.write(number, new[1] - state[1])
        return start + size, number + 1, steps, *new

    _, _, steps, *state = tf.while_loop(
        lambda start, *_: start < count,
        body,
        (tf.constant(0), tf.constant(0), steps, *state),
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
