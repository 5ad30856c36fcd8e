"""Visible units that are not known, or not there: what is drawn, summed, left out."""

import operator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_rbm import random
from keras_rbm.inference import unit_states
from keras_rbm.inference.exact import digits_of
from keras_rbm.inference.gibbs import ChainState, noisy_sweep, sweep_noise
from keras_rbm.inference.potentials import Potentials, num_states, own_log_weight
from keras_rbm.inference.traces import traced_by_size
from keras_rbm.units.joined_units import JoinedParameters
from keras_rbm.units.unit import LayerParameters, index_of_noise

#: States of a row's unknown units, up to which all are summed.
MOST_STATES = 2**10
#: Numbers of states that are held at once.
_AT_ONCE = 2**22


def is_known(values):
    """Returns bools of the shape of an array or tensor of numbers: false for NaN."""
    if tf.is_tensor(values) and not values.dtype.is_floating:
        return tf.ones_like(values, tf.bool)
    return values == values


def filled(values, fill=0.0):
    """Returns an array or tensor with other values in the place of NaN."""
    if tf.is_tensor(values):
        fill = tf.cast(fill, values.dtype)
        return tf.where(is_known(values), values, fill * tf.ones_like(values))
    return np.where(is_known(values), values, fill)


class _PartialFields(NamedTuple):
    units: LayerParameters
    columns: tf.Tensor
    rows: tf.Tensor


class PartialParameters(LayerParameters, _PartialFields):
    """B layers of units, from each of which some are left out.

    A unit that is left out has no energy and no coupling: its statistics are 0, and its
    state means nothing. This is no layer of finitely many states, because a sum over
    all states would count those of such a unit.

    `units`, the parameters of the whole layer; `columns`, (B, units), and `rows`, (B,
    rows): 1 for the units that are there, and for their rows of the kernel, else 0.
    """

    __slots__ = ()

    @property
    def bias(self):
        return self.units.bias * self.rows

    def named(self):
        return self.units.named() | {"bias": self.bias}

    @property
    def whole(self):
        return self.units

    def with_bias(self, bias):
        return self._replace(units=self.units.with_bias(bias))

    def repeat(self, count):
        tiled = (tf.tile(mask, (count, 1)) for mask in (self.columns, self.rows))
        return PartialParameters(self.units.repeat(count), *tiled)

    def of_model(self, index):
        masks = (mask[index] for mask in (self.columns, self.rows))
        return PartialParameters(self.units.of_model(index), *masks)

    def log_partition(self, natural):
        return self.units.log_partition(natural) * self.columns

    def first(self, encoded):
        return self.units.first(encoded) * self.rows

    def statistics(self, states):
        return self._masked(self.units.statistics(states))

    def expected_statistics(self, natural):
        return self._masked(self.units.expected_statistics(natural))

    def base_measure(self, states):
        return self.units.base_measure(states) * self.columns

    def _masked(self, statistics):
        masks = {name: self.columns for name in statistics._fields} | {
            "bias": self.rows
        }
        return statistics._replace(
            **{name: masks[name] * own for name, own in statistics._asdict().items()}
        )


# What of a layer does not depend on which of its units are there.
for _name in (
    *("num_rows", "num_units", "unit_of_row", "ends", "curvature"),
    *("natural", "mean", "mode", "sample", "encode", "state_like"),
    *("natural_for_mean", "natural_for_expected"),
):
    setattr(PartialParameters, _name, property(operator.attrgetter(f"units.{_name}")))


def partial(units, columns):
    """Returns a layer without some of its units.

    Args:
        units: `LayerParameters`, biases (rows,) or (B, rows).
        columns: bool tensor (B, units), true for units that are there.
    """
    if isinstance(units, JoinedParameters):
        sizes = [part.num_units for part in units.parts]
        return units.of_parts(partial, tf.split(columns, sizes, -1))
    columns = tf.cast(columns, units.bias.dtype)
    rows = columns
    if units.num_rows != units.num_units:
        rows = tf.gather(columns, units.unit_of_row, axis=-1)
    return PartialParameters(units, columns, rows)


def given(potentials, visible):
    """Returns the models of what is not known, given some of the visible states.

    `E(v_unknown, h | v_known)` differs from `E(v, h)` by the energy of the known
    units alone, so that `log sum_{v_unknown, h} exp(-E(v, h))` is log Z of the
    model that is returned plus their log-weight. Known units are left out of it,
    and add `W_known' t(v_known)` to the hidden biases.

    Args:
        potentials: `Potentials`, a single model.
        visible: tensor (B, V), states, NaN where they are not known.

    Returns:
        `(potentials, log_weights)`: B models, and a tensor (B,), nats.
    """
    known, states = is_known(visible), filled(visible)
    observed = potentials._replace(visible=partial(potentials.visible, known))
    unknown = partial(potentials.visible, tf.logical_not(known))
    hidden = potentials.hidden.with_bias(observed.hidden_natural(states))
    log_weights = own_log_weight(observed.visible, states)
    return Potentials(potentials.kernel, unknown, hidden), log_weights


def rows_with_few_unknown(potentials, visible):
    """Returns bools (N,): whether a row's unknown units have few states together.

    Args:
        potentials: `Potentials`, a single model.
        visible: array (N, V), states, NaN where not known.
    """
    sizes, _ = _states_of_units(potentials.visible)
    return np.where(np.isnan(visible), np.log2(sizes), 0.0).sum(1) <= np.log2(
        MOST_STATES
    )


def _states_of_units(units):
    """Returns how many states each unit has, and its states, (units, most).

    Units without finitely many states have infinitely many, and none are listed: so a
    label is summed over beside real-valued units that are known.
    """
    parts = units.parts if isinstance(units, JoinedParameters) else [units]
    most = max(part.values.shape[1] if part.finite else 1 for part in parts)
    sizes, values = [], []
    for part in parts:
        listed = part.values if part.finite else np.zeros((part.num_units, 1))
        values.append(np.pad(listed, ((0, 0), (0, most - listed.shape[1]))))
        finite = part.finite
        sizes.append(num_states(part) if finite else np.full(len(listed), np.inf))
    return np.concatenate(sizes), np.concatenate(values)


def sums_over_unknown(potentials, visible, with_means=False):
    """Sums `exp(-F(v))` over the states of unknown units.

    Args:
        potentials: `Potentials`, a single model.
        visible: array (N, V), with few unknown units in each row.
        with_means: bool, whether means are computed, too.

    Returns:
        `(log_sums, means)`: float64 arrays (N,), in nats, and (N, rows) or `None`: the
        mean of the encoded visible states given the known ones.
    """
    units = potentials.visible
    sizes, values = _states_of_units(units)
    unknown = np.isnan(visible)
    sizes = np.where(unknown, sizes, 1).astype(int)  # of each row
    lengths = sizes.prod(1)
    log_sums = np.zeros(len(visible))
    means = np.zeros((len(visible), int(units.num_rows))) if with_means else None
    width = visible.shape[1] + (means.shape[1] if means is not None else 0)
    part_of = np.cumsum(lengths) // (_AT_ONCE // width)
    for part in np.unique(part_of):
        numbers = np.flatnonzero(part_of == part)
        row = np.repeat(numbers, lengths[numbers])
        starts = np.cumsum(lengths[numbers]) - lengths[numbers]
        within = np.arange(len(row)) - np.repeat(starts, lengths[numbers])
        digits = digits_of(within, sizes[row])
        states = values[np.arange(len(values)), digits]
        states = tf.constant(np.where(unknown[row], states, visible[row]), tf.float32)
        log_weights = -np.float64(potentials.free_energy(states))
        log_sums[numbers] = sums = np.logaddexp.reduceat(log_weights, starts)
        if means is not None:
            shares = np.exp(log_weights - np.repeat(sums, lengths[numbers]))
            rows = shares[:, np.newaxis] * np.float64(units.encode(states))
            means[numbers] = np.add.reduceat(rows, starts)
    return log_sums, means


def complete(potentials, visible, known, base, seed, num_sweeps):
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


def started(potentials, visible, known, base):
    """Returns the `ChainState` from which unknown states are drawn, see `complete`."""
    units = potentials.visible
    rows = known_rows(units, known)
    mean = tf.where(rows, units.encode(visible), units.mean(base))
    return ChainState(visible, potentials.hidden_natural_of_mean(mean))


def known_rows(units, known):
    """Returns bools (B, rows): whether each row of the kernel is of a known unit."""
    if units.num_rows == units.num_units:
        return known
    return tf.gather(known, units.unit_of_row, axis=-1)


def _one_unit_drawn(potentials, state, known, seed):
    """Returns states after one unknown unit of each row is drawn given the others."""
    visible, natural = state
    unit = unit_states.chosen_unit(tf.logical_not(known), random.fold_in(seed, 0))
    table = unit_states.UnitStates.of(potentials.visible, potentials.kernel)
    log_weights, _ = unit_states.conditional_log_weights(
        potentials, table, visible, natural, unit
    )
    noise = random.uniform(tf.shape(unit), random.fold_in(seed, 1))
    number = tf.cast(index_of_noise(log_weights, noise), tf.int32)
    drawn = tf.gather(tf.gather(table.values, unit), number, batch_dims=1)
    here = tf.one_hot(unit, tf.shape(visible)[1], on_value=True, off_value=False)
    change = tf.logical_and(here, tf.logical_not(known))
    return tf.where(change, drawn[:, tf.newaxis], visible)


#: `complete` as a `tf.function`, for a number of sweeps that is a tensor.
draw_unknown = traced_by_size(complete)


@traced_by_size
def chain_means(potentials, visible, known, base, seed, num_sweeps):
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
def means_if_present(potentials, visible, known):
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
    table = unit_states.UnitStates.of(units, potentials.kernel)
    if table.own.shape.rank == 3:
        bias = tf.transpose(table.own, (1, 0, 2))
    else:
        bias = table.own[:, tf.newaxis]

    def of_unit(unit):
        added = table.inputs(unit)
        weights = tf.stack(
            [
                tf.reduce_sum(potentials.hidden.log_partition(natural + added[k]), -1)
                for k in range(table.count)
            ],
            -1,
        )
        return tf.nn.softmax(tf.gather(bias, unit) + weights)

    shares = tf.map_fn(
        of_unit, tf.range(tf.shape(visible)[1]), fn_output_signature=encoded.dtype
    )
    states = tf.transpose(table.values)  # (m, units)
    by_state = tf.map_fn(
        lambda number: units.encode(states[number : number + 1])[0],
        tf.range(table.count),
        fn_output_signature=encoded.dtype,
    )
    of_rows = tf.gather(shares, units.unit_of_row)  # (rows, B, m)
    means = tf.einsum("rbm,mr->br", of_rows, by_state)
    return tf.where(rows, encoded, means)
