"""Jumps between modes that are known, with the mass of each and of all combinations.

A chain may be in the right mode of one part of a model and in the wrong one of another;
parts that hardly depend on each other have as many modes together as there are
combinations. Gibbs sampling does not move between modes that lie apart. But two states
of different modes show what to change, and a part of what they differ in is a jump to
another combination.
"""

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.peaks import uphill
from keras_rbm.inference.potentials import finite_layers
from keras_rbm.inference.traces import traced_by_size


def jumped(potentials, visible, known, rounds, snapshots, seed):
    """Lets chains jump by what two known states, taken uphill, differ in.

    Let a and b be two of these, and G a group of units of the layer with fewer states:
    all of them, or one unit and those that share most connections with it. A jump
    exchanges a_j for b_j and b_j for a_j in the units j of G, and leaves other values
    as they are. It is its own inverse, and a, b and G do not depend on the chain. So
    accepted with the probability `min(1, p(h') / p(h))`, the other layer summed out,
    it leaves the model invariant (Metropolis).

    Args:
        potentials: `Potentials` of B models, or a single one.
        visible: tensor (M · B, V), states; row i belongs to model i modulo B.
        known: tensor (K · B, V), states of the modes, which must not depend on which
            states the chains begin in: chains that are alone in a mode, and know of
            it only by their own states, would leave it too often.
        rounds: int ≥ 1, jumps that are tried before each snapshot.
        snapshots: int ≥ 1, S; as many come before the first one.
        seed: int tensor (2,).

    Returns:
        tensor (S, M · B, V), states on the way; if neither layer is finite, (1, M · B,
        V), those given.
    """
    layers = finite_layers(potentials)
    if not layers:
        return visible[tf.newaxis]
    batch = 1 if potentials.batch_size is None else int(potentials.batch_size)
    models = potentials.repeat(len(visible) // batch)
    peaks, _ = uphill(potentials.repeat(len(known) // batch), known)
    sizes = batch, tf.constant(rounds), snapshots
    if min(reversed(layers), key=layers.get) == "visible":
        near = _nearness(potentials.transpose())
        return _jumps(models.transpose(), visible, peaks, near, seed, *sizes)
    starting, ending = (random.fold_in(seed, -stream) for stream in (1, 2))
    ends = potentials.repeat(len(peaks) // batch)
    peaks = ends.hidden.mode(ends.hidden_natural(peaks))
    hidden = models.hidden.draw(models.hidden_natural(visible), starting)
    hidden = _jumps(models, hidden, peaks, _nearness(potentials), seed, *sizes)
    return tf.stack(
        [
            models.visible.draw(models.visible_natural(own), random.fold_in(ending, i))
            for i, own in enumerate(hidden)
        ]
    )


def _nearness(potentials):
    """Returns for each hidden unit the place of each other by nearness, (H, H).

    Units are near if their absolute weights have a large cosine.
    """
    units = potentials.num_hidden
    weights = tf.math.unsorted_segment_sum(
        tf.abs(tf.cast(tf.transpose(potentials.kernel), tf.float32)),
        tf.constant(potentials.hidden.unit_of_row),
        units,
    )
    weights = tf.math.l2_normalize(weights, 1)
    likeness = tf.matmul(weights, weights, transpose_b=True) + 2.0 * tf.eye(units)
    return tf.argsort(tf.argsort(-likeness, stable=True))


@traced_by_size
def _jumps(models, hidden, peaks, places, seed, batch, rounds, snapshots):
    """Returns hidden states on the way, (S, M · B, H)."""
    rows, units = hidden.shape
    count = peaks.shape[0] // batch
    by_visible = models.transpose()
    own = tf.range(rows) % batch

    def jump(number, hidden, weights):
        noise = random.uniform((5, rows), random.fold_in(seed, number))
        one, other = (
            tf.gather(peaks, tf.cast(share * count, tf.int32) * batch + own)
            for share in (noise[0], noise[1])
        )
        unit = tf.cast(noise[2] * units, tf.int32)
        size = tf.cast(2.0 * noise[3] * units, tf.int32)  # of half of them all
        group = tf.gather(places, unit) <= size[:, tf.newaxis]
        new = tf.where(hidden == one, other, tf.where(hidden == other, one, hidden))
        new = tf.where(group, new, hidden)
        new_weights = -by_visible.free_energy(new)
        accepted = tf.math.log(noise[4]) < new_weights - weights
        hidden = tf.where(accepted[:, tf.newaxis], new, hidden)
        return number + 1, hidden, tf.where(accepted, new_weights, weights)

    def until(end, state):
        return tf.while_loop(lambda number, *_: number < end, jump, state)

    def snapshot(number, state, found):
        state = until((snapshots + 1 + number) * rounds, state)
        return number + 1, state, found.write(number, state[1])

    state = tf.constant(0), hidden, -by_visible.free_energy(hidden)
    found = tf.TensorArray(hidden.dtype, snapshots, element_shape=hidden.shape)
    start = tf.constant(0), until(snapshots * rounds, state), found
    *_, found = tf.while_loop(lambda number, *_: number < snapshots, snapshot, start)
    return found.stack()
