"""A learning rate that falls to 0 in as many steps as `fit` makes."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rbm._checks import check_numbers

#: A fit so long that its rate does not fall.
_LONG = 1e30


@keras.saving.register_keras_serializable("keras_rbm")
class FallingRate(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate schedule that falls to 0 in a straight line while `fit` runs.

    In update t, counted from the first of `fit`'s epoch 0, it is
    `initial_learning_rate * (1 - t / T)`, where T is how many updates `fit` was asked
    for: all epochs times their steps. So nobody has to count steps, and the last epochs
    average the noise of the samples away. It begins again with each call of `fit`; with
    `initial_epoch`, or resumed from a backup, it goes on where that epoch begins. If a
    pipeline does not say how long it is, the rate falls from epoch to epoch:
    `initial_learning_rate * (1 - epoch / epochs)`. Outside of `fit`, as in
    `train_on_batch`, and in models of other libraries, it does not fall.

    Args:
        initial_learning_rate: float > 0, or `None`: a model of this library chooses it
            when it is built, and again at its first data, see `RBM.compile`.

    Raises:
        TypeError, ValueError: if it is not a number > 0.

    Example:

    >>> rate = keras_rbm.optimizers.FallingRate(0.1)
    >>> rbm = keras_rbm.RBM(4, seed=0)
    >>> rbm.compile(keras.optimizers.SGD(rate), rule="pcd")
    >>> history = rbm.fit(np.eye(6, dtype="float32"), epochs=4, verbose=0)
    """

    def __init__(self, initial_learning_rate: float | None) -> None:
        if initial_learning_rate is not None:
            check_numbers(initial_learning_rate=initial_learning_rate)
            if not initial_learning_rate > 0.0:
                raise ValueError(
                    "Expected initial_learning_rate > 0. Received: "
                    f"initial_learning_rate={initial_learning_rate}."
                )
            initial_learning_rate = float(initial_learning_rate)
        self.initial_learning_rate = initial_learning_rate
        self.settled = initial_learning_rate is not None
        # Variables: a step that has been traced sees each new fit.
        self._end, self._length = (tf.Variable(_LONG, trainable=False) for _ in "ab")

    def fall(self, end: float, length: float) -> None:
        """Lets the rate fall to 0 in update `end`, over so many updates."""
        self._end.assign(end)
        self._length.assign(length)

    def hold(self, share: float = 1.0) -> None:
        """Holds the rate at a share of the initial one."""
        self.fall(share * _LONG, _LONG)

    def __call__(self, step):
        """Returns the rate of an update, a scalar; NaN if none is chosen yet."""
        share = (self._end - tf.cast(step, tf.float32)) / self._length
        initial = self.initial_learning_rate
        return (np.nan if initial is None else initial) * tf.clip_by_value(share, 0, 1)

    def get_config(self) -> dict[str, Any]:
        initial = self.initial_learning_rate if self.settled else None
        return {"initial_learning_rate": initial}
