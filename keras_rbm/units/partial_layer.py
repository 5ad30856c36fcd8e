"""A layer of which each example has only some units."""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_rbm.units.joined_units import JoinedParameters
from keras_rbm.units.layer_parameters import LayerParameters


class _Fields(NamedTuple):
    units: LayerParameters
    columns: tf.Tensor
    rows: tf.Tensor


class PartialParameters(LayerParameters, _Fields):
    """B layers of units, from each of which some are left out.

    A unit that is left out has no energy and no coupling: its statistics are 0, and its
    state means nothing. This is no layer of finitely many states, because a sum over
    all states would count those of such a unit.

    `units`, the parameters of the whole layer; `columns`, (B, units), and `rows`, (B,
    rows): 1 for the units that are there, and for their rows of the kernel, else 0.
    """

    __slots__ = ()

    @property
    def bias(self) -> tf.Tensor:
        return self.units.bias * self.rows

    def named(self) -> dict[str, tf.Tensor]:
        return self.units.named() | {"bias": self.bias}

    @property
    def whole(self) -> LayerParameters:
        return self.units

    @property
    def num_rows(self) -> int | tf.Tensor:
        return self.units.num_rows

    @property
    def num_units(self) -> int | tf.Tensor:
        return self.units.num_units

    @property
    def ends(self) -> tf.Tensor:
        return self.units.ends

    @property
    def unit_of_row(self) -> Any:
        return self.units.unit_of_row

    @property
    def curvature(self) -> tf.Tensor:
        return self.units.curvature

    def with_bias(self, bias: tf.Tensor) -> "PartialParameters":
        return self._replace(units=self.units.with_bias(bias))

    def repeat(self, count: int | tf.Tensor) -> "PartialParameters":
        tiled = (tf.tile(mask, (count, 1)) for mask in (self.columns, self.rows))
        return PartialParameters(self.units.repeat(count), *tiled)

    def of_model(self, index: int | tf.Tensor) -> "PartialParameters":
        masks = (mask[index] for mask in (self.columns, self.rows))
        return PartialParameters(self.units.of_model(index), *masks)

    def natural(self, inputs: tf.Tensor) -> tf.Tensor:
        return self.units.natural(inputs)

    def log_partition(self, natural: tf.Tensor) -> tf.Tensor:
        return self.units.log_partition(natural) * self.columns

    def mean(self, natural: tf.Tensor) -> tf.Tensor:
        return self.units.mean(natural)

    def mode(self, natural: tf.Tensor) -> tf.Tensor:
        return self.units.mode(natural)

    def sample(self, natural: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        return self.units.sample(natural, noise)

    def encode(self, states: tf.Tensor) -> tf.Tensor:
        return self.units.encode(states)

    def first(self, encoded: tf.Tensor) -> tf.Tensor:
        return self.units.first(encoded) * self.rows

    def state_like(self, means: tf.Tensor) -> tf.Tensor:
        return self.units.state_like(means)

    def statistics(self, states: tf.Tensor) -> Any:
        return self._masked(self.units.statistics(states))

    def expected_statistics(self, natural: tf.Tensor) -> Any:
        return self._masked(self.units.expected_statistics(natural))

    def base_measure(self, states: tf.Tensor) -> tf.Tensor:
        return self.units.base_measure(states) * self.columns

    def natural_for_mean(self, mean: tf.Tensor) -> tf.Tensor:
        return self.units.natural_for_mean(mean)

    def natural_for_expected(self, mean: tf.Tensor) -> tf.Tensor:
        return self.units.natural_for_expected(mean)

    def _masked(self, statistics):
        masks = {name: self.columns for name in statistics._fields} | {
            "bias": self.rows
        }
        return statistics._replace(
            **{name: masks[name] * own for name, own in statistics._asdict().items()}
        )


def partial(units: LayerParameters, columns: tf.Tensor) -> LayerParameters:
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
