"""A penalty that may depend on the number of units."""

import math
import numbers

import keras
import tensorflow as tf

_Schedule = keras.optimizers.schedules.LearningRateSchedule


class Penalty:
    """The penalty of a unit, see `FrankWolfe`.

    Args:
        l2: float ≥ 0, a `LearningRateSchedule` of the number of units, or its config.

    Raises:
        ValueError: if `l2` is none of these.
    """

    def __init__(self, l2):
        if isinstance(l2, dict) and "class_name" in l2:
            l2 = keras.saving.deserialize_keras_object(l2)
        number = isinstance(l2, numbers.Real) and not isinstance(l2, bool)
        if not isinstance(l2, _Schedule) and not (number and 0.0 <= l2 < math.inf):
            raise ValueError(
                "Expected a number l2 ≥ 0, or a LearningRateSchedule. Received: "
                f"l2={l2!r}."
            )
        self.l2 = l2

    def at(self, model):
        """Returns the penalty, a scalar, of a model's next unit."""
        l2 = self.l2
        if isinstance(l2, _Schedule):
            l2 = l2(tf.math.count_nonzero(model.coefficients, dtype=tf.int32))
        return tf.cast(l2, tf.float32)

    def config(self):
        """Returns the argument of `Penalty`; a schedule as its Keras config."""
        if isinstance(self.l2, _Schedule):
            return keras.saving.serialize_keras_object(self.l2)
        return self.l2
