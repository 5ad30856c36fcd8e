"""States of the visible units that are not known, given those that are."""

import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference.gibbs import ChainState, noisy_sweep, sweep_noise
from keras_rbm.inference.potentials import Potentials
from keras_rbm.inference.traces import traced_by_size
from keras_rbm.inference.unit_states import UnitStates
from keras_rbm.units.layer_parameters import LayerParameters, index_of_noise


def complete(
    potentials: Potentials,
    visible: tf.Tensor,
    known: tf.Tensor,
    base: tf.Tensor,
    seed: tf.Tensor,
    num_sweeps: int | tf.Tensor,
) -> tf.Tensor:
    """Draws the visible states that are not known by a chain that keeps the others.

    The first hidden states are drawn as if unknown units had the mean of the model
    without coupling. The last step draws one unknown unit of each example given all
    others, with the hidden units summed out: if it is the only one, the state is from
    `p(v_unknown | v_known)` exactly, if units have finitely many states.

    Args:
        potentials: `Potentials`.
        visible: tensor (B, V), states; any where not known.
        known: bool tensor (B, V).
        base: tensor (rows,) or (B, rows), natural parameters of the visible units
            without coupling.
        seed: int tensor (2,).
        num_sweeps: int or int tensor ≥ 1.

    Returns:
        tensor (B, V), states.
    """
    units, count = potentials.visible, tf.shape(visible)[0]
    state = started(potentials, visible, known, base)

    def sweep(index, state):
        noise = sweep_noise(potentials, count, random.fold_in(seed, index)).of_sweep(0)
        return index + 1, _of_shape(state, noisy_sweep(potentials, state, noise, known))

    _, state = tf.while_loop(
        lambda index, _: index < num_sweeps, sweep, (tf.constant(0), state)
    )
    if not units.finite:
        return state.visible
    return _one_unit_drawn(potentials, state, known, random.fold_in(seed, -1))


def _of_shape(old, new):
    """Returns new tensors that are known to have the shapes of old ones."""
    return tf.nest.map_structure(
        lambda one, two: tf.ensure_shape(two, one.shape), old, new
    )


def started(
    potentials: Potentials, visible: tf.Tensor, known: tf.Tensor, base: tf.Tensor
) -> ChainState:
    """Returns the `ChainState` from which unknown states are drawn, see `complete`."""
    units = potentials.visible
    rows = known_rows(units, known)
    mean = tf.where(rows, units.encode(visible), units.mean(base))
    return ChainState(visible, potentials.hidden_natural_of_mean(mean))


def known_rows(units: LayerParameters, known: tf.Tensor) -> tf.Tensor:
    """Returns bools (B, rows): whether each row of the kernel is of a known unit."""
    if units.num_rows == units.num_units:
        return known
    return tf.gather(known, units.unit_of_row, axis=-1)


def _one_unit_drawn(potentials, state, known, seed):
    """Returns states after one unknown unit of each row is drawn given the others."""
    visible, natural = state
    unit = chosen_unit(tf.logical_not(known), random.fold_in(seed, 0))
    table = UnitStates.of(potentials.visible, potentials.kernel)
    log_weights, _ = conditional_log_weights(potentials, table, visible, natural, unit)
    noise = random.uniform(tf.shape(unit), random.fold_in(seed, 1))
    number = tf.cast(index_of_noise(log_weights, noise), tf.int32)
    drawn = tf.gather(tf.gather(table.values, unit), number, batch_dims=1)
    here = tf.one_hot(unit, tf.shape(visible)[1], on_value=True, off_value=False)
    change = tf.logical_and(here, tf.logical_not(known))
    return tf.where(change, drawn[:, tf.newaxis], visible)


def chosen_unit(among: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Returns the index of a random true entry of each row, (B,); 0 if there is none.

    Args:
        among: bool tensor (B, V).
        seed: seed of the B numbers that it takes.
    """
    so_far = tf.cumsum(tf.cast(among, tf.int32), -1)
    count = so_far[:, -1]
    noise = random.uniform([tf.shape(among)[0]], seed)
    rank = tf.cast(noise * tf.cast(count, noise.dtype), tf.int32)
    return tf.argmax(so_far > rank[:, tf.newaxis], -1, tf.int32)


def conditional_log_weights(
    potentials: Potentials,
    table: UnitStates,
    visible: tf.Tensor,
    natural: tf.Tensor,
    unit: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns `log p(v_i, other v)` up to a constant for each state of one unit i.

    Args:
        potentials: `Potentials`.
        table: `UnitStates` of the visible units.
        visible: tensor (B, V), states.
        natural: tensor (B, H), natural parameters of h given v.
        unit: int tensor (B,), i for each row.

    Returns:
        `(log_weights, shares)`: tensors (B, m); the second is 1 at the present state.
    """
    shares = table.shares(tf.gather(visible, unit, batch_dims=1), unit)
    inputs = table.inputs(unit)
    other = natural - tf.reduce_sum(shares[..., tf.newaxis] * inputs, 1)
    own = table.own
    if own.shape.rank == 3:
        own = tf.gather(own, unit, batch_dims=1)
    else:
        own = tf.gather(own, unit)
    hidden = [
        tf.reduce_sum(potentials.hidden.log_partition(other + inputs[:, k]), -1)
        for k in range(table.count)
    ]
    return own + tf.stack(hidden, -1), shares


#: `complete` as a `tf.function`, for a number of sweeps that is a tensor.
draw_unknown = traced_by_size(complete)


@traced_by_size
def chain_means(
    potentials: Potentials,
    visible: tf.Tensor,
    known: tf.Tensor,
    base: tf.Tensor,
    seed: tf.Tensor,
    num_sweeps: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Estimates means of the encoded visible states by chains that keep known ones.

    Args:
        potentials, visible, known, base, seed: as for `complete`.
        num_sweeps: int tensor ≥ 1; the first fifth does not count.

    Returns:
        `(means, states)`: tensors (B, rows), averages of `E[v | h]`, and (B, V), the
        last states.
    """
    left_out = num_sweeps // 5
    state = started(potentials, visible, known, base)
    totals = tf.zeros_like(potentials.visible.encode(visible))

    def sweep(index, state, totals):
        noise = sweep_noise(
            potentials, tf.shape(visible)[0], random.fold_in(seed, index)
        ).of_sweep(0)
        hidden = potentials.hidden.sample(state.hidden_natural, noise.hidden)
        natural = potentials.visible_natural(hidden)
        drawn = potentials.visible.sample(natural, noise.visible)
        drawn = tf.where(known, visible, drawn)
        mean, before = potentials.visible.mean(natural), totals
        totals += tf.where(index >= left_out, mean, tf.zeros_like(mean))
        new = ChainState(drawn, potentials.hidden_natural(drawn))
        return index + 1, _of_shape(state, new), _of_shape(before, totals)

    start = tf.constant(0), state, totals
    _, state, totals = tf.while_loop(lambda i, *_: i < num_sweeps, sweep, start)
    means = totals / tf.cast(num_sweeps - left_out, totals.dtype)
    rows = known_rows(potentials.visible, known)
    encoded = potentials.visible.encode(visible)
    return tf.where(rows, encoded, means), state.visible


@traced_by_size
def means_if_present(
    potentials: Potentials, visible: tf.Tensor, known: tf.Tensor
) -> tf.Tensor:
    """Returns each absent unit's mean, were it there, given the present ones.

    For units of finitely many states `p(v_i | v_known)` is exact: of the model with
    the known units and unit i alone. For others it is `E[v_i | h = E[h | v_known]]`.

    Args:
        potentials: `Potentials` of the present units, (B, …) models.
        visible: tensor (B, V), states, any where absent.
        known: bool tensor (B, V).

    Returns:
        tensor (B, rows), encoded means; those of known units are their states.
    """
    units = potentials.visible.whole
    encoded, natural = units.encode(visible), potentials.hidden_natural(visible)
    rows = known_rows(units, known)
    if not units.finite:
        hidden = potentials.hidden.mean(natural)
        means = units.mean(potentials.visible_natural_of_mean(hidden))
        return tf.where(rows, encoded, means)
    table = UnitStates.of(units, potentials.kernel)
    if table.own.shape.rank == 3:
        own = tf.transpose(table.own, (1, 0, 2))
    else:
        own = table.own[:, tf.newaxis]

    def of_unit(unit):
        added = table.inputs(unit)
        weights = tf.stack(
            [
                tf.reduce_sum(potentials.hidden.log_partition(natural + added[k]), -1)
                for k in range(table.count)
            ],
            -1,
        )
        return tf.nn.softmax(tf.gather(own, unit) + weights)

    shares = tf.map_fn(
        of_unit, tf.range(tf.shape(visible)[1]), fn_output_signature=encoded.dtype
    )
    states = tf.transpose(table.values)  # (m, units)
    by_state = tf.map_fn(
        lambda number: units.encode(states[number : number + 1])[0],
        tf.range(table.count),
        fn_output_signature=encoded.dtype,
    )
    each = tf.gather(shares, units.unit_of_row)  # (rows, B, m)
    means = tf.einsum("rbm,mr->br", each, by_state)
    return tf.where(rows, encoded, means)
