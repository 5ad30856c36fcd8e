"""Modes of a model: their peaks, where chains may not come, and jumps between them.

Beside a wide mode a chain may need thousands of sweeps, or luck, to find a narrow one
that holds more mass. Without noise some states lead there at once. Going uphill costs
little, so many states do.

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
from keras_rbm.inference.annealing.pool import comparable, heaviest_rows
from keras_rbm.inference.potentials import finite_layers
from keras_rbm.inference.traces import traced_by_size

#: Starts of either kind, as a multiple of M: going uphill costs little.
_STARTS = 20
#: Sweeps uphill: most states arrive in ten, the last in narrow modes after twenty.
_SWEEPS = 20
#: Rows of one walk uphill, for the sake of memory.
_ROWS_AT_ONCE = 10_000


class Peaks(NamedTuple):
    """States that iterated conditional modes reach.

    Attributes:
        highest: tensor (K, B, V), of least free energy.
        others: tensor (n · B, V), of any height.
    """

    highest: tf.Tensor
    others: tf.Tensor


def find_peaks(potentials, regions, first, num_chains, count, seed):
    """Returns states that iterated conditional modes [1] reach from many starts.

    They start at states of independent visible units with the means
    `u m + (1 - u) e`, where m are the means of `first`, u is uniform in (0, 1) for each
    start, and e are the units' lowest means for every other start, their highest for
    the rest (the means at natural parameters of 0, for categories and units without
    limit). As many start at hidden states that are drawn without any input but, of
    each start, the logit of a u: binary units are on with probability u.

    Args:
        potentials: `Potentials` of B models, or a single one.
        regions: `Regions` of each model; the highest states are of different ones, and
            the last repeat the first if fewer are reached.
        first: tensor (rows,) or (B, rows), visible natural parameters.
        num_chains: int, M; there are twenty times as many starts of either kind.
        count: int, K.
        seed: int tensor (2,).

    References:
        1. Besag. On the statistical analysis of dirty pictures. Journal of the Royal
           Statistical Society B, 1986.
    """
    units, batch, starts = (
        potentials.visible,
        regions.centers.shape[1],
        _STARTS * num_chains,
    )
    size = min(starts, max(2, _ROWS_AT_ONCE // batch))
    walkers, highest, others = potentials.repeat(size), [], []
    for number in range(-(-starts // size)):
        part = random.fold_in(seed, number)
        visible = _visible_starts(units, first, size, batch, random.fold_in(part, 0))
        hidden = _hidden_starts(walkers.hidden, size * batch, random.fold_in(part, 1))
        for states in (visible, units.mode(walkers.visible_natural(hidden))):
            states, log_weights = uphill(walkers, states)
            highest.append(_heaviest(units, regions, states, log_weights, count))
            if number == 0:
                others.append(states[: num_chains * batch])
    states = tf.reshape(tf.concat(highest, 0), (-1, units.num_units))
    models = potentials.repeat(len(states) // batch)
    log_weights = -models.free_energy(states)
    highest = _heaviest(units, regions, states, log_weights, count)
    return Peaks(highest, tf.concat(others, 0))


def _visible_starts(units, first, size, batch, seed):
    """Returns states (size · B, V) between those of `first` and all units at an end."""
    ends = units.mean(tf.tile(units.ends, (-(-size // 2), 1)))[:size]
    share = random.uniform((size, batch, 1), random.fold_in(seed, 0))
    means = share * units.mean(first) + (1.0 - share) * ends[:, tf.newaxis]
    means = tf.reshape(means, (-1, units.num_rows))
    return units.draw(units.natural_for_expected(means), random.fold_in(seed, 1))


def _hidden_starts(units, rows, seed):
    """Returns hidden states (rows, H), of each row with another share of units on."""
    share = random.uniform((rows, 1), random.fold_in(seed, 0))
    natural = tf.math.log(share) - tf.math.log1p(-share)
    natural = tf.tile(natural, (1, units.num_rows))
    return units.draw(natural, random.fold_in(seed, 1))


@traced_by_size
def uphill(potentials, visible):
    """Returns where states lead without noise, and their log weights.

    Args:
        potentials: `Potentials` of as many models as rows, or a single one.
        visible: tensor (C, V), states.

    Returns:
        tensors (C, V) and (C,), nats.
    """

    def sweep(index, visible):
        hidden = potentials.hidden.mode(potentials.hidden_natural(visible))
        new = potentials.visible.mode(potentials.visible_natural(hidden))
        return index + 1, tf.ensure_shape(new, visible.shape)

    _, visible = tf.while_loop(
        lambda index, _: index < _SWEEPS, sweep, (tf.constant(0), visible)
    )
    return visible, -potentials.free_energy(visible)


def _heaviest(units, regions, states, log_weights, count):
    """Returns states (count, B, V) of states (n · B, V)."""
    batch = regions.centers.shape[1]
    rows = np.reshape(units.encode(states), (-1, batch, units.num_rows))
    log_weights = np.reshape(comparable(np.float64(log_weights)), rows.shape[:2])
    return tf.gather(states, heaviest_rows(regions.labels(rows), log_weights, count))


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
            models.visible.draw(
                models.visible_natural(states), random.fold_in(ending, i)
            )
            for i, states in enumerate(hidden)
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
    model_of_row = tf.range(rows) % batch

    def jump(number, hidden, weights):
        noise = random.uniform((5, rows), random.fold_in(seed, number))
        one, other = (
            tf.gather(peaks, tf.cast(share * count, tf.int32) * batch + model_of_row)
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
