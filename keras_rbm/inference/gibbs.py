"""Block Gibbs sampling."""

from typing import NamedTuple

import tensorflow as tf

from keras_rbm import random


class GibbsState(NamedTuple):
    """State of block Gibbs chains: `visible` (C, V) and `hidden` (C, H)."""

    visible: tf.Tensor
    hidden: tf.Tensor


def sample_hidden_given_visible(potentials, visible, seed):
    """Returns hidden states (C, H) drawn from p(h | v)."""
    return potentials.hidden.sample(potentials.hidden_natural(visible), seed)


def sample_visible_given_hidden(potentials, hidden, seed):
    """Returns visible states (C, V) drawn from p(v | h)."""
    return potentials.visible.sample(potentials.visible_natural(hidden), seed)


def gibbs_sweep(potentials, visible, seed):
    """Draws h from p(h | v), then v from p(v | h).

    The sweep leaves the model's distribution of v invariant, and is reversible
    with respect to it.

    Args:
        potentials: `Potentials`.
        visible: tensor (C, V), states.
        seed: int or integer tensor of shape (2,).

    Returns:
        `GibbsState`, the new v and the h that it was drawn from.

    Example:

    >>> model = keras_rbm.inference.Potentials(tf.zeros((3, 2)), [9.0] * 3, [0.0] * 2)
    >>> keras_rbm.inference.gibbs_sweep(model, tf.zeros((1, 3)), seed=0).visible.numpy()
    array([[1., 1., 1.]], dtype=float32)
    """
    hidden = sample_hidden_given_visible(potentials, visible, random.fold_in(seed, 0))
    visible = sample_visible_given_hidden(potentials, hidden, random.fold_in(seed, 1))
    return GibbsState(visible, hidden)


def gibbs_chain(potentials, visible, seed, *, num_sweeps, clamp=None):
    """Runs several sweeps of block Gibbs sampling.

    Args:
        potentials: `Potentials`.
        visible: tensor (C, V), states to start from.
        seed: int or integer tensor of shape (2,).
        num_sweeps: int or scalar integer tensor.
        clamp: bool tensor (V,) or (C, V), units that keep their starting value.

    Returns:
        tensor (C, V), visible states.
    """
    return _gibbs_chain(
        potentials, visible, random.as_seed(seed), tf.cast(num_sweeps, tf.int32), clamp
    )


@tf.function(autograph=False)
def _gibbs_chain(potentials, visible, seed, num_sweeps, clamp):
    def sweep(index, state):
        new = gibbs_sweep(potentials, state, random.fold_in(seed, index)).visible
        if clamp is not None:
            new = tf.where(clamp, visible, new)
        return index + 1, new

    return tf.while_loop(
        lambda index, _: index < num_sweeps, sweep, (tf.constant(0), visible)
    )[1]


def hidden_chain(potentials, hidden, seed, *, num_sweeps):
    """Runs sweeps v from p(v | h), h from p(h | v), and ends on a v.

    This is the chain of contrastive divergence: started from h drawn given the
    data, it spends `2 num_sweeps - 1` matrix products, none of them wasted.

    Args:
        potentials: `Potentials`.
        hidden: tensor (C, H), states.
        seed: int or integer tensor of shape (2,).
        num_sweeps: int ≥ 1.

    Returns:
        tensor (C, V), visible states after `num_sweeps` sweeps.
    """
    seed = random.as_seed(seed)

    def sweep(index, hidden):
        sweep_seed = random.fold_in(seed, index)
        visible = sample_visible_given_hidden(
            potentials, hidden, random.fold_in(sweep_seed, 0)
        )
        return index + 1, sample_hidden_given_visible(
            potentials, visible, random.fold_in(sweep_seed, 1)
        )

    last = num_sweeps - 1
    _, hidden = tf.while_loop(
        lambda index, _: index < last, sweep, (tf.constant(0), hidden)
    )
    return sample_visible_given_hidden(
        potentials, hidden, random.fold_in(seed, num_sweeps)
    )
