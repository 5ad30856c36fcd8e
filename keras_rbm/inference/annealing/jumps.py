"""Jumps between modes, in all parts of a model at once or in one of them.

A chain may be in the right mode of one part of a model and in the wrong one of another;
parts that hardly depend on each other have as many modes together as there are
combinations. Gibbs sampling does not move between modes that lie apart. But two states
of different modes show what to change, and a part of what they differ in is a jump to
another combination.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.annealing.modes import uphill
from keras_rbm.inference.potentials import finite_layers
from keras_rbm.inference.traces import traced_by_size
from keras_rbm.inference.weights import systematic_rows

#: Groups that jumps choose from, for each unit of a layer.
_GROUPS_PER_UNIT = 8
#: Share of jumps in which all units take part, and share, among the rest, of clusters
#: that do not last.
_ALL, _ANY = 0.1, 0.2
#: Uniform numbers of a jump.
_NOISE = 4


class Groups(NamedTuple):
    """Groups of units: clusters of their dendrogram (average linkage).

    Units are near if their absolute weights have a large cosine. A cluster is drawn in
    proportion to the square of how long it lasts, from the height at which it forms to
    that at which it joins another: a part that hardly depends on the rest lasts long.
    All clusters have some chance, and a tenth of the draws are all units.

    Attributes:
        clusters: bool tensor (2 H - 1, H).
        numbers: int tensor (8 H,), those of clusters that are drawn with equal chances.
    """

    clusters: tf.Tensor
    numbers: tf.Tensor

    @classmethod
    def of(cls, potentials):
        """Returns groups of hidden units; of visible ones if those are not finite."""
        from scipy.cluster.hierarchy import linkage

        if not potentials.hidden.finite:
            potentials = potentials.transpose()
        units = potentials.num_hidden
        weights = tf.math.unsorted_segment_sum(
            tf.abs(tf.cast(tf.transpose(potentials.kernel), tf.float32)),
            tf.constant(potentials.hidden.unit_of_row),
            units,
        )
        weights = tf.math.l2_normalize(weights, 1).numpy()
        clusters = [*np.eye(units, dtype=bool)]
        if units == 1:
            return cls(tf.constant(clusters), tf.zeros(1, tf.int32))
        apart = np.maximum(1.0 - weights @ weights.T, 0.0)
        merges = linkage(apart[np.triu_indices(units, 1)], "average")
        heights = np.append(np.zeros(units), merges[:, 2])
        lasting = np.zeros(2 * units - 1)
        for one, other, height, _ in merges:
            pair = [int(one), int(other)]
            clusters.append(clusters[pair[0]] | clusters[pair[1]])
            lasting[pair] = height - heights[pair]
        shares = np.square(lasting[:-1])
        shares += _ANY * shares.mean() + 1e-30
        shares = np.append((1.0 - _ALL) * shares / shares.sum(), _ALL)
        shares, half = (tf.constant(x, tf.float64) for x in ([np.log(shares)], [0.5]))
        numbers = systematic_rows(shares, _GROUPS_PER_UNIT * units, half)[0]
        return cls(tf.constant(np.array(clusters)), numbers)

    def drawn(self, share):
        """Returns groups (rows, H) for numbers (rows,) uniform between 0 and 1."""
        number = _number(share, tf.shape(self.numbers)[0])
        return tf.gather(self.clusters, tf.gather(self.numbers, number))


class Jumps(NamedTuple):
    """Jumps of one layer between known states of B models.

    Let a and b be two of these, and G a group of units. A jump exchanges a_j for b_j
    and b_j for a_j in the units j of G, and leaves other values as they are. It is its
    own inverse, and a, b and G do not depend on the chain. So accepted with the
    probability `min(1, p(h') / p(h))` it leaves any model p invariant (Metropolis).

    Attributes:
        known: tensor (K, B, H), states.
        groups: `Groups`.
    """

    known: tf.Tensor
    groups: Groups

    @classmethod
    def between(cls, potentials, visible, groups=None):
        """Returns jumps between states that visible ones lead to, going uphill.

        They are jumps of the hidden layer, or of the visible one if the hidden layer is
        not finite; `None` if neither is.

        Args:
            potentials: `Potentials` of B models, or a single one.
            visible: tensor (K · B, V), states. They must not depend on which states
                the chains begin in: chains that are alone in a mode, and know of it
                only by their own states, would leave it too often.
            groups: `Groups.of` the potentials, if they are known.
        """
        layers = finite_layers(potentials)
        if not layers:
            return None
        batch = 1 if potentials.batch_size is None else int(potentials.batch_size)
        models = potentials.repeat(len(visible) // batch)
        states, _ = uphill(models, visible)
        if "hidden" in layers:
            states = models.hidden.mode(models.hidden_natural(states))
        known = tf.reshape(states, (-1, batch, states.shape[1]))
        return cls(known, groups or Groups.of(potentials))

    @staticmethod
    def noise(shape, rows, seed):
        """Returns the noise of jumps of rows of states, (*shape, 4, rows)."""
        return random.uniform((*shape, _NOISE, rows), seed)

    def proposed(self, states, noise):
        """Returns where states (M · B, H) jump to, for noise (4, M · B)."""
        count, batch, units = tf.unstack(tf.shape(self.known))
        model = tf.range(tf.shape(states)[0]) % batch
        known = tf.reshape(self.known, (count * batch, units))
        one, other = (
            tf.gather(known, _number(share, count) * batch + model)
            for share in (noise[0], noise[1])
        )
        group = self.groups.drawn(noise[2])
        new = tf.where(states == one, other, tf.where(states == other, one, states))
        return tf.ensure_shape(tf.where(group, new, states), states.shape)

    @staticmethod
    def accepted(gains, noise):
        """Returns which jumps are made, bools (M · B,), for what log p gains."""
        return tf.math.log(noise[3]) < gains


def _number(share, count):
    """Returns numbers below a count, for shares between 0 and 1."""
    number = tf.cast(share * tf.cast(count, share.dtype), tf.int32)
    return tf.minimum(number, count - 1)


def jumped(potentials, visible, jumps, rounds, snapshots, seed):
    """Lets chains jump between modes.

    Args:
        potentials: `Potentials` of B models, or a single one.
        visible: tensor (M · B, V), states; row i belongs to model i modulo B.
        jumps: `Jumps.between` states of the same models.
        rounds: int ≥ 1, jumps that are tried before each snapshot.
        snapshots: int ≥ 1, S; as many come before the first one.
        seed: int tensor (2,).

    Returns:
        tensor (S, M · B, V), states on the way.
    """
    models = potentials.repeat(tf.shape(visible)[0] // tf.shape(jumps.known)[1])
    size = tf.constant(rounds), snapshots
    if not potentials.hidden.finite:
        return _jumps(models.transpose(), visible, jumps, seed, *size)
    starting, ending = (random.fold_in(seed, -stream) for stream in (1, 2))
    hidden = models.hidden.draw(models.hidden_natural(visible), starting)
    hidden = _jumps(models, hidden, jumps, seed, *size)
    drawn = [
        models.visible.draw(models.visible_natural(states), random.fold_in(ending, i))
        for i, states in enumerate(hidden)
    ]
    return tf.stack(drawn)


@traced_by_size
def _jumps(models, hidden, jumps, seed, rounds, snapshots):
    """Returns hidden states on the way, (S, M · B, H)."""
    rows = hidden.shape[0]
    by_visible = models.transpose()

    def jump(number, hidden, weights):
        noise = jumps.noise((), rows, random.fold_in(seed, number))
        new = jumps.proposed(hidden, noise)
        new_weights = -by_visible.free_energy(new)
        accepted = jumps.accepted(new_weights - weights, noise)
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
